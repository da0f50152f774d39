package planner

import (
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

func TestEvalExpr(t *testing.T) {
	cases := []struct {
		sql  string
		want types.Type
		val  types.Datum
		code string
	}{
		{"1 + 2", types.Type{}, int64(3), ""},
		{"'7'", types.Of(types.Int8), int64(7), ""},
		{"upper('a') || 'b'", types.Of(types.Text), "Ab", ""},
		{"NULL", types.Of(types.Int4), nil, ""},
		{"date '2020-01-02' - date '2020-01-01'", types.Type{}, int64(1), ""},
		{"a", types.Type{}, nil, "42703"},
		{"(SELECT 1)", types.Type{}, nil, "0A000"},
		{"true", types.Of(types.Date), nil, "42804"},
		{"1 / 0", types.Type{}, nil, "22012"},
		{"count(*)", types.Type{}, nil, "42803"},
	}
	for _, x := range cases {
		e, err := parser.ParseExpr(x.sql)
		if err != nil {
			t.Fatal(err)
		}
		v, _, err := EvalExpr(t.Context(), e, x.sql, x.want, Options{Env: testEnv{}})
		if x.code != "" {
			if c, ok := pgerr.CodeOf(err); !ok || c.String() != x.code {
				t.Errorf("%s: %v, want %s", x.sql, err, x.code)
			}
			continue
		}
		if err != nil || v != x.val {
			t.Errorf("%s: %v %v, want %v", x.sql, v, err, x.val)
		}
	}
	e, err := parser.ParseExpr("t.b > 0 AND a = 'x'")
	if err != nil {
		t.Fatal(err)
	}
	cols := types.Schema{{Name: "a", Type: types.Of(types.Text)}, {Name: "b", Type: types.Of(types.Int4)}}
	x, err := PlanExprOver(t.Context(), e, "", cols, "t", types.Of(types.Bool), Options{Env: testEnv{}})
	if err != nil {
		t.Fatal(err)
	}
	if got := (&deparser{names: []string{"c0", "c1"}}).expr(x); got != "((c1 > 0) AND (c0 = 'x'::text))" {
		t.Error(got)
	}
}

func TestPseudoColumns(t *testing.T) {
	c := tpchCat(t)
	const q = `SELECT "_FILE", "_POS", n_name FROM nation WHERE n_nationkey = 1`
	if _, err := planText(c, q, Options{}); !pgerr.Is(err, pgerr.UndefinedColumn) {
		t.Errorf("%v, want 42703", err)
	}
	p, err := planText(c, q, Options{PseudoColumns: true})
	if err != nil {
		t.Fatal(err)
	}
	s := scans(p.Fragment.Root)[0]
	n := 0
	for _, c := range s.Spec.Columns {
		if c < 0 {
			n++
		}
	}
	if n != 2 || len(p.Columns) != 3 {
		t.Errorf("columns %v", s.Spec.Columns)
	}
	if p, err = planText(c, "SELECT * FROM nation", Options{PseudoColumns: true}); err != nil || len(p.Columns) != 4 {
		t.Error(err, len(p.Columns))
	}
	var _ plan.Node = s
}
