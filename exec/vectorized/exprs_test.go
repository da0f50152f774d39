package vectorized

import (
	"context"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

func TestExprsColumns(t *testing.T) {
	b := batchOf(schemaOf(tInt4, tText), []row{{int64(1), "a"}, {int64(0), "b"}, {nil, nil}, {int64(4), "d"}})
	c0, c1 := &plan.Slot{Index: 0, T: tInt4}, &plan.Slot{Index: 1, T: tText}
	es := []plan.Expr{c1, op(t, "+", c0, &plan.Param{Index: 0, T: tInt4}), lit(tInt4, int64(7)), op(t, "/", lit(tInt4, int64(8)), c0)}
	p, err := NewExprs(es, []types.Datum{int64(10)}, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if p.Len() != len(es) {
		t.Errorf("%d expressions", p.Len())
	}
	live := *b
	live.Sel = []uint16{0, 2, 3} // row 1 would divide by zero
	for range 2 {
		out, err := p.Columns(context.Background(), &live)
		if err != nil {
			t.Fatal(err)
		}
		want := []row{{"a", int64(11), int64(7), int64(8)}, {nil, nil, int64(7), nil}, {"d", int64(14), int64(7), int64(2)}}
		for k, i := range live.Sel {
			for j := range es {
				if got := vec.DatumAt(out[j], es[j].Type(), int(i)); got != want[k][j] {
					t.Errorf("row %d column %d: %v, want %v", i, j, got, want[k][j])
				}
			}
		}
	}
	if _, err := p.Columns(context.Background(), b); err == nil {
		t.Error("no error for a division by zero")
	} else if code, _ := pgerr.CodeOf(err); code != pgerr.DivisionByZero {
		t.Errorf("%v", err)
	}
}

func TestExprsSelect(t *testing.T) {
	b := batchOf(schemaOf(tInt4), []row{{int64(1)}, {int64(5)}, {nil}, {int64(9)}, {int64(0)}})
	p, err := NewExprs([]plan.Expr{op(t, ">", &plan.Slot{Index: 0, T: tInt4}, lit(tInt4, int64(3)))}, nil, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	yes, err := p.Select(context.Background(), 0, b)
	if err != nil || !slices.Equal(yes, []uint16{1, 3}) {
		t.Errorf("%v %v", yes, err)
	}
	live := *b
	live.Sel = []uint16{2, 3, 4}
	some, err := p.Select(context.Background(), 0, &live)
	if err != nil || !slices.Equal(some, []uint16{3}) {
		t.Errorf("of some: %v %v", some, err)
	}
	if !slices.Equal(yes, []uint16{1, 3}) {
		t.Errorf("changed by a later call: %v", yes)
	}
}

func BenchmarkExprs(b *testing.B) {
	rows := make([]row, 2048)
	for i := range rows {
		rows[i] = row{int64(i), "x", int64(i * 3)}
	}
	in := batchOf(schemaOf(tInt4, tText, tInt4), rows)
	es := []plan.Expr{&plan.Slot{Index: 0, T: tInt4}, &plan.Slot{Index: 1, T: tText},
		op(b, "+", &plan.Slot{Index: 0, T: tInt4}, &plan.Slot{Index: 2, T: tInt4})}
	p, err := NewExprs(es, nil, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Columns(context.Background(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*in.N), "ns/row")
}
