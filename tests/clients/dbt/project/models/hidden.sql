{{ config(materialized='ephemeral') }}
select customer, count(*) as n, sum(amount) as total from {{ ref('payments') }} group by customer
