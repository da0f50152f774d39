{% snapshot payments_stamped %}
{{ config(target_schema=target.schema, unique_key='id', strategy='timestamp', updated_at='paid_at', hard_deletes='invalidate') }}
select * from {{ ref('payments') }}
{% endsnapshot %}
