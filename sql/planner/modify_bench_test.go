package planner

import (
	"context"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/sql/parser"
)

func BenchmarkPlanModify(b *testing.B) {
	c := dmlCat(b)
	big := "INSERT INTO t VALUES " + strings.Repeat("(1, 2, 'some text', 3.25, '2020-01-01'), ", 999) + "(1, 2, 'some text', 3.25, '2020-01-01')"
	for _, bm := range []struct{ name, sql string }{
		{"insert", "INSERT INTO t VALUES ($1, $2, $3, $4, $5)"},
		{"update", "UPDATE k2 SET c = c + 1 WHERE a = $1 AND b = $2"},
		{"delete", "DELETE FROM t WHERE id = $1"},
		{"upsert", "INSERT INTO t VALUES ($1, $2, $3, $4, $5) ON CONFLICT (id) DO UPDATE SET a = excluded.a RETURNING id"},
		{"values1000", big},
	} {
		stmts, err := parser.Parse(bm.sql)
		if err != nil {
			b.Fatal(err)
		}
		o := Options{Resolver: c, Env: testEnv{}}
		b.Run(bm.name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if _, err := PlanModify(context.Background(), stmts[0], bm.sql, o); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
