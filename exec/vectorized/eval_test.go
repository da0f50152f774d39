package vectorized

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// exprGen makes random boolean and integer expressions over the columns of sc
// together with their meaning for one row.
type exprGen struct {
	t  *testing.T
	r  *rand.Rand
	sc plan.Node
}

type rowFunc func(r row) types.Datum

func (g *exprGen) ints(depth int) (plan.Expr, rowFunc) {
	k := g.r.IntN(6)
	if depth <= 0 {
		k = g.r.IntN(2)
	}
	switch k {
	case 0:
		v := types.Datum(int64(g.r.IntN(9) - 3))
		if g.r.IntN(8) == 0 {
			v = nil
		}
		return lit(tInt8, v), func(row) types.Datum { return v }
	case 1:
		i := g.r.IntN(2) * 2 // columns 0 and 2 are int8
		return slot(g.sc, i), func(r row) types.Datum { return r[i] }
	case 2:
		a, fa := g.ints(depth - 1)
		b, fb := g.ints(depth - 1)
		return op(g.t, "+", a, b), func(r row) types.Datum {
			x, y := fa(r), fb(r)
			if x == nil || y == nil {
				return nil
			}
			return x.(int64) + y.(int64)
		}
	case 3:
		c := &plan.Case{T: tInt8}
		var conds, results []rowFunc
		for range 1 + g.r.IntN(3) {
			e, f := g.bools(depth - 1)
			x, fx := g.ints(depth - 1)
			c.Whens = append(c.Whens, plan.When{Cond: e, Result: x})
			conds, results = append(conds, f), append(results, fx)
		}
		other := rowFunc(func(row) types.Datum { return nil })
		if g.r.IntN(2) == 0 {
			c.Else, other = g.ints(depth - 1)
		}
		return c, func(r row) types.Datum {
			for i, f := range conds {
				if f(r) == true {
					return results[i](r)
				}
			}
			return other(r)
		}
	case 4:
		c := &plan.Coalesce{T: tInt8}
		var fs []rowFunc
		for range 1 + g.r.IntN(3) {
			x, f := g.ints(depth - 1)
			c.Args, fs = append(c.Args, x), append(fs, f)
		}
		return c, func(r row) types.Datum {
			for _, f := range fs {
				if v := f(r); v != nil {
					return v
				}
			}
			return nil
		}
	}
	m := &plan.MinMax{T: tInt8, Less: operator_(g.t, "<", tInt8, tInt8), Greatest: g.r.IntN(2) == 0}
	var fs []rowFunc
	for range 1 + g.r.IntN(3) {
		x, f := g.ints(depth - 1)
		m.Args, fs = append(m.Args, x), append(fs, f)
	}
	return m, func(r row) types.Datum {
		var best types.Datum
		for _, f := range fs {
			v := f(r)
			if v != nil && (best == nil || (less(v, best) > 0) == m.Greatest && less(v, best) != 0) {
				best = v
			}
		}
		return best
	}
}

func not3(v types.Datum) types.Datum {
	if v == nil {
		return nil
	}
	return !v.(bool)
}

func (g *exprGen) bools(depth int) (plan.Expr, rowFunc) {
	k := g.r.IntN(9)
	if depth <= 0 {
		k = g.r.IntN(4)
	}
	switch k {
	case 0, 1: // comparisons of several types with constants and columns
		names := []string{"=", "<>", "<", "<=", ">", ">="}
		o := g.r.IntN(6)
		var a, b plan.Expr
		var fa, fb rowFunc
		switch g.r.IntN(4) {
		case 0:
			i := []int{1, 3, 4}[g.r.IntN(3)] // text, numeric, float
			t := g.sc.Schema()[i].Type
			v := randomDatum(g.r, t, 8, false)
			a, b = slot(g.sc, i), lit(t, v)
			fa, fb = func(r row) types.Datum { return r[i] }, func(row) types.Datum { return v }
		case 1:
			i := []int{1, 3, 4}[g.r.IntN(3)]
			t := g.sc.Schema()[i].Type
			v := randomDatum(g.r, t, 8, false)
			b, a = slot(g.sc, i), lit(t, v)
			fb, fa = func(r row) types.Datum { return r[i] }, func(row) types.Datum { return v }
		default:
			a, fa = g.ints(depth - 1)
			b, fb = g.ints(depth - 1)
		}
		return op(g.t, names[o], a, b), func(r row) types.Datum {
			x, y := fa(r), fb(r)
			if x == nil || y == nil {
				return nil
			}
			return vec.CmpOp(o).Holds(less(x, y))
		}
	case 2:
		i := g.r.IntN(5)
		e := &plan.IsNull{Arg: slot(g.sc, i), Not: g.r.IntN(2) == 0}
		return e, func(r row) types.Datum { return (r[i] == nil) != e.Not }
	case 3:
		i := g.r.IntN(5)
		t := g.sc.Schema()[i].Type
		e := &plan.InList{Eq: operator_(g.t, "=", t, t), Arg: slot(g.sc, i), Not: g.r.IntN(2) == 0}
		var vals []types.Datum
		for range 1 + g.r.IntN(12) {
			v := randomDatum(g.r, t, 8, g.r.IntN(4) == 0)
			vals = append(vals, v)
			e.Items = append(e.Items, lit(t, v))
		}
		return e, func(r row) types.Datum {
			var res types.Datum = false
			for _, v := range vals {
				switch {
				case r[i] == nil || v == nil:
					if res == false {
						res = nil
					}
				case less(r[i], v) == 0:
					res = true
				}
				if res == true {
					break
				}
			}
			if e.Not {
				return not3(res)
			}
			return res
		}
	case 4, 5:
		var args []plan.Expr
		var fs []rowFunc
		for range 1 + g.r.IntN(4) {
			e, f := g.bools(depth - 1)
			args, fs = append(args, e), append(fs, f)
		}
		if k == 4 {
			return &plan.And{Args: args}, func(r row) types.Datum {
				var res types.Datum = true
				for _, f := range fs {
					res = and3(res, f(r))
				}
				return res
			}
		}
		return &plan.Or{Args: args}, func(r row) types.Datum {
			var res types.Datum = true
			for _, f := range fs {
				res = and3(res, not3(f(r)))
			}
			return not3(res)
		}
	case 6:
		e, f := g.bools(depth - 1)
		return &plan.Not{Arg: e}, func(r row) types.Datum { return not3(f(r)) }
	case 7:
		e, f := g.bools(depth - 1)
		b := &plan.IsBool{Arg: e, Test: plan.BoolTest(g.r.IntN(3)), Not: g.r.IntN(2) == 0}
		return b, func(r row) types.Datum {
			var want types.Datum = b.Test == plan.TestTrue
			if b.Test == plan.TestUnknown {
				want = nil
			}
			return (f(r) == want) != b.Not
		}
	}
	a, fa := g.ints(depth - 1)
	b, fb := g.ints(depth - 1)
	d := &plan.Distinct{Eq: operator_(g.t, "=", tInt8, tInt8), Left: a, Right: b, Not: g.r.IntN(2) == 0}
	return d, func(r row) types.Datum { return (fa(r) != fb(r)) != d.Not }
}

// TestExpressions evaluates random expressions in both ways, as a value and as a
// selection, with a selection of live rows, against their definition.
func TestExpressions(t *testing.T) {
	r := newRand(t)
	for range 1500 {
		rel, rows := makeRel(r, 1+r.IntN(40), 8, r.IntN(3) > 0, tInt8, tText, tInt8, tNum, tFloat)
		sc := scanOf(rel)
		g := &exprGen{t, r, sc}
		cond, fc := g.bools(4)
		val, fv := g.ints(4)
		at := 0
		ec, err := compileExpr(cond)
		if err != nil {
			t.Fatal(err)
		}
		ev, err := compileExpr(val)
		if err != nil {
			t.Fatal(err)
		}
		x := &evalContext{ctx: context.Background(), params: newParams(nil, 0)}
		for _, b := range rel.batches {
			part := rows[at : at+b.N]
			at += b.N
			sub := *b
			if r.IntN(2) == 0 {
				sub.Sel = []uint16{}
				for i := range b.N {
					if r.IntN(3) > 0 {
						sub.Sel = append(sub.Sel, uint16(i))
					}
				}
			}
			sel, err := ec.selectRows(x, &sub)
			if err != nil {
				t.Fatal(err)
			}
			var want []uint16
			eachRow(&sub, func(i int) {
				if fc(part[i]) == true {
					want = append(want, uint16(i))
				}
			})
			if fmt.Sprint(sel) != fmt.Sprint(want) && len(sel)+len(want) > 0 {
				t.Fatalf("%s selects %v of %v, want %v\n%v", describe(cond), sel, sub.Sel, want, part)
			}
			c, err := ec.column(x, &sub)
			if err != nil {
				t.Fatal(err)
			}
			v, err := ev.column(x, &sub)
			if err != nil {
				t.Fatal(err)
			}
			eachRow(&sub, func(i int) {
				if got := vec.DatumAt(c, boolT, i); got != fc(part[i]) {
					t.Fatalf("%s of %v is %v, want %v", describe(cond), rowText(part[i]), got, fc(part[i]))
				}
				if got := vec.DatumAt(v, tInt8, i); got != fv(part[i]) {
					t.Fatalf("%s of %v is %v, want %v", describe(val), rowText(part[i]), got, fv(part[i]))
				}
			})
		}
	}
}

func describe(e plan.Expr) string {
	switch e := e.(type) {
	case *plan.Slot:
		return fmt.Sprintf("c%d", e.Index)
	case *plan.Const:
		return text(e.Value)
	case *plan.Call:
		return "(" + describe(e.Args[0]) + " " + e.F.Name + " " + describe(e.Args[1]) + ")"
	}
	s := fmt.Sprintf("%T(", e)
	plan.EachArg(e, func(p *plan.Expr) { s += describe(*p) + ", " })
	return s + ")"
}

// TestGuards: what stands behind a guard sees only the rows that pass it.
func TestGuards(t *testing.T) {
	s := schemaOf(tInt8)
	sc := scanOf(relOf(s, []row{{int64(0)}, {int64(2)}, {nil}, {int64(5)}}))
	div := op(t, "/", lit(tInt8, int64(10)), slot(sc, 0))
	guard := op(t, "<>", slot(sc, 0), lit(tInt8, int64(0)))
	p := &plan.Project{Base: base(schemaOf(tInt8, boolT)), Input: sc, Exprs: []plan.Expr{
		&plan.Case{T: tInt8, Whens: []plan.When{{Cond: guard, Result: div}}},
		&plan.And{Args: []plan.Expr{guard, op(t, ">", div, lit(tInt8, int64(3)))}},
	}}
	want := []row{{nil, false}, {int64(5), true}, {nil, nil}, {int64(2), false}}
	expect(t, config{1, 10, 0}, p, want, true, "guarded division")
	f := &plan.Filter{Base: base(s), Input: sc, Cond: &plan.And{Args: []plan.Expr{guard, op(t, ">", div, lit(tInt8, int64(3)))}}}
	expect(t, config{1, 10, 0}, f, []row{{int64(2)}}, true, "guarded filter")
}

func TestNestedValues(t *testing.T) {
	ti := types.ArrayOf(tInt8)
	sc := scanOf(relOf(schemaOf(tInt8, tInt8, ti), []row{
		{int64(1), int64(2), []types.Datum{int64(7), nil, int64(9)}}, {nil, int64(3), []types.Datum{}}, {int64(2), int64(3), nil}}))
	rec := types.Type{Kind: types.Record, Fields: []types.Field{{Name: "a", Type: tInt8}, {Name: "b", Type: tInt8}}}
	mkRow := &plan.MakeRow{Elems: []plan.Expr{slot(sc, 0), slot(sc, 1)}, T: rec}
	eq, lt := operator_(t, "=", tInt8, tInt8), operator_(t, "<", tInt8, tInt8)
	p := &plan.Project{Base: base(schemaOf(ti, tInt8, tInt8, ti, boolT, boolT, boolT, boolT)), Input: sc, Exprs: []plan.Expr{
		&plan.MakeArray{Elems: []plan.Expr{slot(sc, 0), lit(tInt8, int64(5)), slot(sc, 1)}, T: ti},
		&plan.Field{Arg: mkRow, Index: 1, T: tInt8},
		&plan.Subscript{Arg: slot(sc, 2), Index: slot(sc, 0), T: tInt8},
		&plan.Subscript{Arg: slot(sc, 2), Slice: true, Low: lit(tInt8, int64(2)), T: ti},
		&plan.AnyAll{Op: eq, Left: lit(tInt8, int64(9)), Array: slot(sc, 2)},
		&plan.AnyAll{Op: lt, Left: slot(sc, 1), Array: slot(sc, 2), All: true},
		&plan.RowCompare{Op: "<", Left: []plan.Expr{slot(sc, 0), slot(sc, 1)}, Right: []plan.Expr{lit(tInt8, int64(2)), lit(tInt8, int64(3))}, Eq: nil, Less: nil},
		&plan.IsNull{Arg: mkRow},
	}}
	rc := p.Exprs[6].(*plan.RowCompare)
	rc.Eq = append(rc.Eq, eq, eq)
	rc.Less = append(rc.Less, lt, lt)
	want := []row{
		{[]types.Datum{int64(1), int64(5), int64(2)}, int64(2), int64(7), []types.Datum{nil, int64(9)}, true, nil, true, false},
		{[]types.Datum{nil, int64(5), int64(3)}, int64(3), nil, []types.Datum{}, false, true, nil, false},
		{[]types.Datum{int64(2), int64(5), int64(3)}, int64(3), nil, nil, nil, nil, false, false},
	}
	expect(t, config{1, 10, 0}, p, want, true, "nested values")
	expect(t, config{1, 1, 0}, p, want, true, "nested values")
}
