select 1 from (select sum(total) as t from {{ ref('customers') }}) s where t <> (select sum(amount) from {{ ref('payments') }})
