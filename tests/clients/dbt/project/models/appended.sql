{{ config(materialized='incremental', incremental_strategy='append') }}
select id, amount from {{ ref('payments') }}
{% if is_incremental() %} where id > (select max(id) from {{ this }}) {% endif %}
