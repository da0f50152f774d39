with once as (select * from {{ ref('hidden') }})
select customer, n, total from once
