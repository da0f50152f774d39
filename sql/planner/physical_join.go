package planner

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

func (b *builder) join(n *plan.LJoin, need colSet) (phys, error) {
	if n.Lateral {
		if colsOf(n.Left).hasAny(freeCols(n.Right)) {
			return b.apply(n, need)
		}
	}
	all := wants(n, need)
	l, err := b.build(n.Left, all)
	if err != nil {
		return phys{}, err
	}
	r, err := b.build(n.Right, all)
	if err != nil {
		return phys{}, err
	}
	lc, rc := setOf(l.cols), setOf(r.cols)
	keys, rest := b.p.splitJoin(n.Conds, lc, rc)
	kind, conds := n.Kind, n.Conds
	if kind == plan.NullAnti && (len(keys) != 1 || len(rest) > 0) {
		kind, keys = plan.Anti, nil
		conds = []plan.Expr{&plan.IsBool{Arg: conj(n.Conds), Test: plan.TestFalse, Not: true}}
	}
	if kind == plan.Mark && !n.Exists && (len(keys) != 1 || len(rest) > 0) {
		keys = nil
	}
	le, re := b.p.est(n.Left), b.p.est(n.Right)
	if kind == plan.Left && len(keys) > 0 && !n.Single && re.rows > 1.5*le.rows {
		// Build the smaller, preserved side.
		kind = plan.Right
		l, r = r, l
		for i := range keys {
			keys[i].l, keys[i].r = keys[i].r, keys[i].l
		}
	}
	out, cols := joinOut(kind, n, l, r)
	at := slots(l.cols, r.cols)
	if len(keys) == 0 {
		nl := &plan.NestedLoop{Base: b.base(n, out), Kind: kind, Left: l.node, Right: r.node, Single: n.Single}
		if len(conds) > 0 {
			if nl.Cond, err = b.expr(conj(conds), at); err != nil {
				return phys{}, err
			}
		}
		return b.trim(n, phys{nl, cols}, need), nil
	}
	h := &plan.HashJoin{Base: b.base(n, out), Kind: kind, Left: l.node, Right: r.node, Single: n.Single}
	nullEq := false
	for _, k := range keys {
		lk, err := b.expr(k.l, slots(l.cols))
		if err != nil {
			return phys{}, err
		}
		rk, err := b.expr(k.r, slots(r.cols))
		if err != nil {
			return phys{}, err
		}
		h.LeftKeys, h.RightKeys = append(h.LeftKeys, lk), append(h.RightKeys, rk)
		h.NullEq = append(h.NullEq, k.nullEq)
		nullEq = nullEq || k.nullEq
	}
	if !nullEq {
		h.NullEq = nil
	}
	if len(rest) > 0 {
		if h.Residual, err = b.expr(conj(rest), at); err != nil {
			return phys{}, err
		}
	}
	if kind == plan.Semi || kind == plan.Anti {
		h.BuildLeft = 4*le.rows < re.rows
	}
	return b.trim(n, phys{h, cols}, need), nil
}

func setOf(cols []plan.ColID) colSet {
	s := colSet{}
	for _, c := range cols {
		s[c] = true
	}
	return s
}

func joinOut(kind plan.JoinKind, n *plan.LJoin, l, r phys) (types.Schema, []plan.ColID) {
	out := append(types.Schema{}, l.node.Schema()...)
	cols := append([]plan.ColID{}, l.cols...)
	nullable := func(s types.Schema) {
		for i := range s {
			s[i].Type.NotNull = false
		}
	}
	switch kind {
	case plan.Semi, plan.Anti, plan.NullAnti:
		return out, cols
	case plan.Mark:
		return append(out, types.Field{ID: -1, Name: n.MarkCol.Name, Type: n.MarkCol.T}), append(cols, n.MarkCol.ID)
	}
	rs := append(types.Schema{}, r.node.Schema()...)
	if kind == plan.Left || kind == plan.Full {
		nullable(rs)
	}
	if kind == plan.Right || kind == plan.Full {
		nullable(out)
	}
	return append(out, rs...), append(cols, r.cols...)
}

// apply runs the right side once per row of the left.
func (b *builder) apply(n *plan.LJoin, need colSet) (phys, error) {
	all := wants(n, need)
	left := colsOf(n.Left)
	free := freeCols(n.Right)
	leftNeed := colSet{}
	leftNeed.addAll(all)
	leftNeed.addAll(free)
	l, err := b.build(n.Left, leftNeed)
	if err != nil {
		return phys{}, err
	}
	a := &plan.Apply{Kind: n.Kind, Left: l.node, Single: n.Single}
	if a.Kind == plan.NullAnti {
		return phys{}, pgerr.New(pgerr.InternalError, "a lateral NOT IN join")
	}
	at := slots(l.cols)
	saved := map[plan.ColID]int{}
	var bound []plan.ColID
	for _, id := range l.cols {
		if !free[id] || !left[id] {
			continue
		}
		param := b.p.newParam()
		if old, ok := b.env[id]; ok {
			saved[id] = old
		}
		b.env[id] = param
		bound = append(bound, id)
		a.Bind = append(a.Bind, plan.ParamBinding{Param: param, Expr: &plan.Slot{Index: at[id], T: l.node.Schema()[at[id]].Type}})
	}
	r, err := b.build(n.Right, all)
	for _, id := range bound {
		delete(b.env, id)
		if old, ok := saved[id]; ok {
			b.env[id] = old
		}
	}
	if err != nil {
		return phys{}, err
	}
	a.Right = r.node
	out, cols := joinOut(n.Kind, n, l, r)
	if len(n.Conds) > 0 {
		if a.Cond, err = b.expr(conj(n.Conds), slots(l.cols, r.cols)); err != nil {
			return phys{}, err
		}
	}
	a.Base = b.base(n, out)
	return b.trim(n, phys{a, cols}, need), nil
}
