{{ config(materialized='table', indexes=[{'columns': ['customer']}]) }}
select id, customer, amount, cast(paid_at as timestamp) as paid_at from {{ ref('raw_payments') }}
