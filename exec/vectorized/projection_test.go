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

func TestProjection(t *testing.T) {
	b := batchOf(schemaOf(tInt4, tText), []row{{int64(1), "a"}, {int64(0), "b"}, {nil, nil}, {int64(4), "d"}})
	c0, c1 := &plan.Slot{Index: 0, T: tInt4}, &plan.Slot{Index: 1, T: tText}
	es := []plan.Expr{c1, op(t, "+", c0, &plan.Param{Index: 0, T: tInt4}), lit(tInt4, int64(7)), op(t, "/", lit(tInt4, int64(8)), c0)}
	p, err := NewProjection(es, []types.Datum{int64(10)}, &Env{})
	if err != nil {
		t.Fatal(err)
	}
	live := *b
	live.Sel = []uint16{0, 2, 3} // row 1 would divide by zero
	for range 2 {
		out, err := p.Batch(context.Background(), &live, schemaOf(tText, tInt4, tInt4, tInt4))
		if err != nil {
			t.Fatal(err)
		}
		if out.Cols[0] != b.Cols[1] {
			t.Error("a column was copied")
		}
		want := []row{{"a", int64(11), int64(7), int64(8)}, {nil, nil, int64(7), nil}, {"d", int64(14), int64(7), int64(2)}}
		for k, i := range live.Sel {
			for j := range es {
				if got := vec.DatumAt(out.Cols[j], es[j].Type(), int(i)); got != want[k][j] {
					t.Errorf("row %d column %d: %v, want %v", i, j, got, want[k][j])
				}
			}
		}
	}
	if _, err := p.Eval(context.Background(), b); err == nil {
		t.Error("no error for a division by zero")
	} else if code, _ := pgerr.CodeOf(err); code != pgerr.DivisionByZero {
		t.Errorf("%v", err)
	}
}

func TestCondition(t *testing.T) {
	b := batchOf(schemaOf(tInt4), []row{{int64(1)}, {int64(5)}, {nil}, {int64(9)}, {int64(0)}})
	c, err := NewCondition(op(t, ">", &plan.Slot{Index: 0, T: tInt4}, lit(tInt4, int64(3))), nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	yes, err := c.True(context.Background(), b)
	if err != nil || !slices.Equal(yes, []uint16{1, 3}) {
		t.Errorf("true: %v %v", yes, err)
	}
	no, err := c.False(context.Background(), b)
	if err != nil || !slices.Equal(no, []uint16{0, 4}) {
		t.Errorf("false: %v %v", no, err)
	}
	if !slices.Equal(yes, []uint16{1, 3}) {
		t.Errorf("changed by a later call: %v", yes)
	}
	live := *b
	live.Sel = []uint16{2, 3, 4}
	if no, err = c.False(context.Background(), &live); err != nil || !slices.Equal(no, []uint16{4}) {
		t.Errorf("false of some: %v %v", no, err)
	}
}

func BenchmarkProjection(b *testing.B) {
	rows := make([]row, 2048)
	for i := range rows {
		rows[i] = row{int64(i), "x", int64(i * 3)}
	}
	in := batchOf(schemaOf(tInt4, tText, tInt4), rows)
	es := []plan.Expr{&plan.Slot{Index: 0, T: tInt4}, &plan.Slot{Index: 1, T: tText},
		op(b, "+", &plan.Slot{Index: 0, T: tInt4}, &plan.Slot{Index: 2, T: tInt4})}
	p, err := NewProjection(es, nil, nil)
	if err != nil {
		b.Fatal(err)
	}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := p.Eval(context.Background(), in); err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*in.N), "ns/row")
}
