package vectorized

import (
	"fmt"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

var joinKinds = []plan.JoinKind{plan.Inner, plan.Left, plan.Right, plan.Full, plan.Semi, plan.Anti, plan.NullAnti, plan.Mark}

// oracleJoin joins by a three-valued condition: true, false or nil.
func oracleJoin(kind plan.JoinKind, l, r []row, nl, nr int, cond func(l, r row) types.Datum) []row {
	var out []row
	hit := make([]bool, len(r))
	for _, a := range l {
		matched, null := false, false
		for j, b := range r {
			switch c := cond(a, b); c {
			case true:
				matched = true
				hit[j] = true
				if kind <= plan.Full {
					out = append(out, append(append(row{}, a...), b...))
				}
			case nil:
				null = true
			}
		}
		switch kind {
		case plan.Left, plan.Full:
			if !matched {
				out = append(out, append(append(row{}, a...), make(row, nr)...))
			}
		case plan.Semi:
			if matched {
				out = append(out, a)
			}
		case plan.Anti:
			if !matched {
				out = append(out, a)
			}
		case plan.NullAnti:
			if !matched && !null {
				out = append(out, a)
			}
		case plan.Mark:
			var m types.Datum = matched
			if !matched && null {
				m = nil
			}
			out = append(out, append(append(row{}, a...), m))
		}
	}
	if kind == plan.Right || kind == plan.Full {
		for j, b := range r {
			if !hit[j] {
				out = append(out, append(make(row, nl), b...))
			}
		}
	}
	return out
}

func joinOut(kind plan.JoinKind, l, r plan.Node) types.Schema {
	switch kind {
	case plan.Semi, plan.Anti, plan.NullAnti:
		return l.Schema()
	case plan.Mark:
		return append(append(types.Schema{}, l.Schema()...), types.Field{Name: "mark", Type: boolT})
	}
	return append(append(types.Schema{}, l.Schema()...), r.Schema()...)
}

func and3(a, b types.Datum) types.Datum {
	if a == false || b == false {
		return false
	}
	if a == nil || b == nil {
		return nil
	}
	return true
}

func TestHashJoin(t *testing.T) {
	noLeaks(t)
	r := newRand(t)
	keyTypes := []types.Type{tInt8, tInt4, tText, tNum, tFloat, types.Of(types.UUID)}
	for range 120 {
		kt := keyTypes[r.IntN(len(keyTypes))]
		kt2 := keyTypes[r.IntN(len(keyTypes))]
		dl, dr := 1+r.IntN(40), 1+r.IntN(40)
		if r.IntN(4) == 0 {
			dr = 1_000_000 // keys far apart: no direct table
			dl = dr
		}
		nulls := r.IntN(2) == 0
		lrel, lrows := makeRel(r, r.IntN(200), max(dl, dr), nulls, kt, kt2, tInt8)
		rrel, rrows := makeRel(r, r.IntN(60), dr, nulls, kt, kt2, tInt8)
		if r.IntN(3) == 0 { // unique keys
			seen := map[string]bool{}
			var keep []row
			for _, b := range rrows {
				if k := text(b[0]); !seen[k] {
					seen[k] = true
					keep = append(keep, b)
				}
			}
			rrows = keep
			rrel = relOf(rrel.schema, keep)
		}
		kind := joinKinds[r.IntN(len(joinKinds))]
		two := r.IntN(3) == 0 && kind != plan.NullAnti
		residual := r.IntN(3) == 0 && kind != plan.NullAnti
		nullEq := r.IntN(4) == 0 && kind != plan.NullAnti && kind != plan.Mark
		l, rt := scanOf(lrel), scanOf(rrel)
		j := &plan.HashJoin{Base: base(joinOut(kind, l, rt)), Kind: kind, Left: l, Right: rt,
			LeftKeys: []plan.Expr{slot(l, 0)}, RightKeys: []plan.Expr{slot(rt, 0)}}
		if two {
			j.LeftKeys, j.RightKeys = append(j.LeftKeys, slot(l, 1)), append(j.RightKeys, slot(rt, 1))
		}
		if nullEq {
			j.NullEq = make([]bool, len(j.LeftKeys))
			j.NullEq[0] = true
		}
		if residual {
			j.Residual = op(t, "<", &plan.Slot{Index: 2, T: tInt8}, &plan.Slot{Index: 5, T: tInt8})
		}
		if kind == plan.Inner || kind == plan.Semi || kind == plan.Right {
			l.LateIn = []plan.RuntimeFilter{{JoinID: j.ID, Key: 0, Column: 0}}
		}
		eq := func(a, b types.Datum, ne bool) types.Datum {
			if a == nil || b == nil {
				if ne {
					return a == nil && b == nil
				}
				return nil
			}
			return less(a, b) == 0
		}
		cond := func(a, b row) types.Datum {
			c := eq(a[0], b[0], nullEq)
			if two {
				c = and3(c, eq(a[1], b[1], false))
			}
			if residual {
				var x types.Datum
				if a[2] != nil && b[2] != nil {
					x = less(a[2], b[2]) < 0
				}
				c = and3(c, x)
			}
			return c
		}
		want := oracleJoin(kind, lrows, rrows, 3, 3, cond)
		for _, c := range configs(r) {
			expect(t, c, j, want, false, fmt.Sprintf("kind %d two=%v residual=%v nullEq=%v %v %v", kind, two, residual, nullEq, kt, kt2))
		}
		if kind == plan.Semi || kind == plan.Anti {
			left := *j
			left.Base = base(j.Out)
			ll := *l
			ll.LateIn = nil
			left.Left, left.BuildLeft = &ll, true
			for _, c := range configs(r) {
				expect(t, c, &left, want, false, fmt.Sprintf("built on the left, kind %d two=%v residual=%v nullEq=%v %v %v", kind, two, residual, nullEq, kt, kt2))
			}
		}
		// Only some columns are needed: sum them up through a projection.
		n := len(j.Out)
		k := r.IntN(n)
		p := &plan.Project{Base: base(types.Schema{j.Out[k]}), Input: j, Exprs: []plan.Expr{slot(j, k)}}
		var less []row
		for _, w := range want {
			less = append(less, row{w[k]})
		}
		expect(t, configs(r)[r.IntN(5)], p, less, false, "projected join")
	}
}

// relOf makes a relation of given rows.
func relOf(s types.Schema, rows []row) *memRel {
	rel := &memRel{schema: s}
	rel.batches = append(rel.batches, batchOf(s, rows))
	return rel
}

func TestNestedLoopAndApply(t *testing.T) {
	noLeaks(t)
	r := newRand(t)
	for range 80 {
		lrel, lrows := makeRel(r, r.IntN(60), 12, true, tInt8, tText)
		rrel, rrows := makeRel(r, r.IntN(40), 12, true, tInt8)
		kind := joinKinds[r.IntN(len(joinKinds))]
		l, rt := scanOf(lrel), scanOf(rrel)
		cond := func(a, b row) types.Datum {
			if a[0] == nil || b[0] == nil {
				return nil
			}
			return less(a[0], b[0]) < 0
		}
		want := oracleJoin(kind, lrows, rrows, 2, 1, cond)
		e := op(t, "<", &plan.Slot{Index: 0, T: tInt8}, &plan.Slot{Index: 2, T: tInt8})
		n := &plan.NestedLoop{Base: base(joinOut(kind, l, rt)), Kind: kind, Left: l, Right: rt, Cond: e}
		for _, c := range configs(r) {
			expect(t, c, n, want, false, fmt.Sprintf("nested loop kind %d", kind))
		}
		switch kind {
		case plan.Inner, plan.Left, plan.Semi, plan.Anti, plan.Mark:
		default:
			continue
		}
		// The same by Apply: the right side filters by a parameter, or the
		// condition stays above.
		f := &plan.Filter{Base: base(rt.Out), Input: rt, Cond: op(t, "<", &plan.Param{Index: 0, T: tInt8}, slot(rt, 0))}
		a := &plan.Apply{Base: base(n.Out), Kind: kind, Left: l, Right: f, Bind: []plan.ParamBinding{{Param: 0, Expr: slot(l, 0)}}}
		if kind == plan.Mark { // the filter turns NULL into false
			want = oracleJoin(kind, lrows, rrows, 2, 1, func(a, b row) types.Datum { return cond(a, b) == true })
		}
		for _, c := range configs(r) {
			expect(t, c, a, want, false, fmt.Sprintf("apply kind %d", kind))
		}
		b := &plan.Apply{Base: base(n.Out), Kind: kind, Left: l, Right: rt, Cond: e}
		want = oracleJoin(kind, lrows, rrows, 2, 1, cond)
		for _, c := range configs(r) {
			expect(t, c, b, want, false, fmt.Sprintf("apply with condition, kind %d", kind))
		}
	}
}

func TestSingleJoin(t *testing.T) {
	s := schemaOf(tInt8)
	l, rt := scanOf(relOf(s, []row{{int64(1)}, {int64(2)}})), scanOf(relOf(s, []row{{int64(2)}, {int64(2)}}))
	j := &plan.HashJoin{Base: base(joinOut(plan.Left, l, rt)), Kind: plan.Left, Left: l, Right: rt, Single: true,
		LeftKeys: []plan.Expr{slot(l, 0)}, RightKeys: []plan.Expr{slot(rt, 0)}}
	if _, err := collect(t, &plan.Fragment{Root: j}, nil, config{1, 10, 0}); !pgerr.Is(err, pgerr.CardinalityViolation) {
		t.Fatalf("two matches of a single join: %v", err)
	}
	a := &plan.Apply{Base: base(j.Out), Kind: plan.Left, Left: l, Right: rt, Single: true}
	if _, err := collect(t, &plan.Fragment{Root: a}, nil, config{2, 10, 0}); !pgerr.Is(err, pgerr.CardinalityViolation) {
		t.Fatalf("two rows of a single apply: %v", err)
	}
}
