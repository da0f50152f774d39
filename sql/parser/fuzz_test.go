package parser

import (
	"testing"

	"github.com/paimon-sql/paimon-sql/sql/ast"
)

var seeds = []string{
	"select a, (b).c[1:2] from t x join u using (a) where a in (select 1) group by rollup (a) order by 1 desc nulls last limit 2",
	"with recursive a(b) as (select 1 union all select b + 1 from a) select * from a for update of a skip locked",
	"select count(distinct a) filter (where b) over (partition by c rows between 1 preceding and current row exclude ties)",
	"insert into t (a, b[1]) values (1, default) on conflict (a) do update set a = excluded.a returning *",
	"merge into t using s on t.a = s.a when matched then delete when not matched then insert values (1)",
	"create table t (a int primary key, b map<text, int> not null default '1', check (a > 0)) partitioned by (a) with ('k' = 'v')",
	"alter table t add column a.b int after c, alter c type text using d::text, drop partition (dt = '1')",
	"create policy p on t for select to x using (a)",
	"select E'\\u0041' , U&'\\0041' uescape '!', $$a$$, b'01', x'1f', 1e5, $1, \"a\"\"b\", `c`",
	"copy t (a) from stdin with (format csv, force_null (a))",
	"set a.b = 1, 'x'; show a; begin isolation level serializable; commit",
	"select * from t /*+ OPTIONS('a'='b') */ for version as of 1",
	"select case a when 1 then 2 end, extract(year from b), trim(both from c), (a, b) overlaps (c, d)",
	"grant select (a), update on t to public with grant option",
	"create function f(a int default 1) returns table (b int) language sql begin atomic select 1; end",
}

// FuzzParse: whatever the text, the parser ends, does not panic, and what it
// accepts survives printing and parsing.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, sql string) {
		if len(sql) > 1<<14 {
			return
		}
		stmts, err := Parse(sql)
		if err != nil {
			if pos, _ := errorOf(err); pos < 0 || pos > len(sql)+1 {
				t.Fatalf("position %d", pos)
			}
			return
		}
		for _, s := range stmts {
			text := ast.Format(s)
			again, err := Parse(text)
			if err != nil {
				t.Fatalf("%q formats to %q: %v", sql, text, err)
			}
			if len(again) != 1 || !ast.Equal(s, again[0]) {
				t.Fatalf("%q formats to %q, another tree", sql, text)
			}
		}
	})
}

// TestSeeds keeps the seeds valid, so that fuzzing starts inside the grammar.
func TestSeeds(t *testing.T) {
	for _, s := range seeds {
		if _, err := Parse(s); err != nil {
			t.Errorf("%s: %v", s, err)
		}
	}
}

func BenchmarkParse(b *testing.B) {
	for _, c := range []struct{ name, sql string }{
		{"short", "select a from t where k = $1"},
		{"query", `select l_returnflag, l_linestatus, sum(l_quantity) as sum_qty,
			sum(l_extendedprice * (1 - l_discount)) as sum_disc_price, avg(l_discount) as avg_disc, count(*) as count_order
			from lineitem l join orders o on l.l_orderkey = o.o_orderkey left join customer c using (c_custkey)
			where l_shipdate <= date '1998-12-01' - interval '90' day and o.o_comment not like '%special%'
			group by l_returnflag, l_linestatus having count(*) > 10 order by l_returnflag, l_linestatus desc limit 10`},
		{"values", "insert into t values " + repeatList("(1, 'abc', 2.5, null)", 1000)},
		{"in", "select * from t where a in (" + repeatList("123456", 1000) + ")"},
		{"error", "select a, b, c from t where x = = 1"},
	} {
		b.Run(c.name, func(b *testing.B) {
			b.SetBytes(int64(len(c.sql)))
			b.ReportAllocs()
			for b.Loop() {
				Parse(c.sql)
			}
		})
	}
}

func repeatList(item string, n int) string {
	out := item
	for range n - 1 {
		out += ", " + item
	}
	return out
}
