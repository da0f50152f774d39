{{ config(materialized='incremental', unique_key='id', incremental_strategy=var('strategy', 'delete+insert'), on_schema_change='append_new_columns') }}
select id, customer, amount, paid_at
{%- if var('wide', false) %}, 'x'::text as extra {% endif %}
from {{ ref('payments') }}
{% if is_incremental() %} where paid_at >= (select coalesce(max(paid_at), '1970-01-01') from {{ this }}) {% endif %}
