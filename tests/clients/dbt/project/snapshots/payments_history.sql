{% snapshot payments_history %}
{{ config(target_schema=target.schema, unique_key='id', strategy='check', check_cols=['amount']) }}
select * from {{ ref('payments') }}
{% endsnapshot %}
