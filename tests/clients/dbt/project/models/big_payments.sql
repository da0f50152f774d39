{{ config(materialized='view') }}
select * from {{ ref('payments') }} where amount > {{ cents(1000) }}
