package planner

import (
	"slices"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// pulled is a subquery without its correlated conditions.
type pulled struct {
	node  plan.LNode
	conds []plan.Expr // over the node's columns and the outer ones
	ok    bool
	// plain: an aggregate without GROUP BY became one grouped by the keys of
	// conds. An outer row without a group has defaults for the columns; marker
	// is a column that is never NULL in a group.
	plain    bool
	defaults map[plan.ColID]plan.Expr
	marker   plan.LCol
}

// pull moves the conditions of n that use columns of outer out of it. n is not
// changed when that fails.
func (p *planner) pull(n plan.LNode, outer colSet) pulled {
	if !outer.hasAny(freeCols(n)) {
		return pulled{node: n, ok: true}
	}
	r := p.pullNode(n, outer)
	if r.ok && outer.hasAny(freeCols(r.node)) {
		r.ok = false
	}
	return r
}

func (p *planner) pullNode(n plan.LNode, outer colSet) pulled {
	if err := p.enter(); err != nil {
		return pulled{}
	}
	defer p.leave()
	if !outer.hasAny(freeCols(n)) {
		return pulled{node: n, ok: true}
	}
	usesOuter := func(es ...plan.Expr) bool {
		for _, e := range es {
			if e != nil && outer.hasAny(usedCols(e)) {
				return true
			}
		}
		return false
	}
	switch n := n.(type) {
	case *plan.LFilter:
		r := p.pullNode(n.In, outer)
		if !r.ok || r.plain {
			return pulled{}
		}
		var keep []plan.Expr
		for _, c := range n.Conds {
			if usesOuter(c) {
				if hasVolatile(c) {
					return pulled{}
				}
				r.conds = append(r.conds, c)
			} else {
				keep = append(keep, c)
			}
		}
		if len(keep) > 0 {
			r.node = &plan.LFilter{In: r.node, Conds: keep}
		}
		return r
	case *plan.LProject:
		if usesOuter(n.Exprs...) {
			return pulled{}
		}
		r := p.pullNode(n.In, outer)
		if !r.ok {
			return pulled{}
		}
		np := &plan.LProject{In: r.node, Exprs: slices.Clone(n.Exprs), Out: slices.Clone(n.Out)}
		have := colsOf(np)
		in := r.node.Cols()
		need := colSet{}
		for _, c := range r.conds {
			need.addAll(usedCols(c))
		}
		if r.plain {
			need[r.marker.ID] = true
		}
		for _, c := range in {
			if need[c.ID] && !have[c.ID] {
				np.Exprs, np.Out = append(np.Exprs, c.Ref()), append(np.Out, c)
			}
		}
		if r.plain {
			d := map[plan.ColID]plan.Expr{}
			for i, c := range n.Out {
				e := p.fold(subst(n.Exprs[i], r.defaults))
				if _, isConst := e.(*plan.Const); !isConst {
					return pulled{}
				}
				d[c.ID] = e
			}
			for id, e := range r.defaults {
				if _, ok := d[id]; !ok {
					d[id] = e
				}
			}
			r.defaults = d
		}
		r.node = np
		return r
	case *plan.LJoin:
		return p.pullJoin(n, outer, usesOuter)
	case *plan.LAggregate:
		return p.pullAggregate(n, outer, usesOuter)
	case *plan.LSort:
		for _, k := range n.Keys {
			if usesOuter(k.Expr) {
				return pulled{}
			}
		}
		r := p.pullNode(n.In, outer)
		if r.ok && !r.plain {
			r.node = &plan.LSort{In: r.node, Keys: n.Keys}
		}
		return r
	case *plan.LDistinct:
		if n.On != nil {
			return pulled{}
		}
		r := p.pullNode(n.In, outer)
		if !r.ok || r.plain || !keyed(r.conds, outer) {
			return pulled{}
		}
		r.node = &plan.LDistinct{In: r.node}
		return r
	case *plan.LWindow:
		bad := usesOuter(n.PartitionBy...)
		n.EachExpr(func(e *plan.Expr) { bad = bad || usesOuter(*e) })
		r := p.pullNode(n.In, outer)
		if bad || !r.ok || r.plain || !keyed(r.conds, outer) {
			return pulled{}
		}
		w := *n
		w.In = r.node
		w.PartitionBy = slices.Clone(n.PartitionBy)
		for _, c := range r.conds {
			in, _, _ := keySides(c, outer)
			w.PartitionBy = append(w.PartitionBy, in)
		}
		r.node = &w
		return r
	case *plan.LProjectSet:
		bad := false
		n.EachExpr(func(e *plan.Expr) { bad = bad || usesOuter(*e) })
		r := p.pullNode(n.In, outer)
		if bad || !r.ok || r.plain {
			return pulled{}
		}
		s := *n
		s.In = r.node
		r.node = &s
		return r
	}
	return pulled{}
}

func (p *planner) pullJoin(n *plan.LJoin, outer colSet, usesOuter func(...plan.Expr) bool) pulled {
	var own, keep []plan.Expr
	for _, c := range n.Conds {
		if usesOuter(c) {
			own = append(own, c)
		} else {
			keep = append(keep, c)
		}
	}
	l := p.pullNode(n.Left, outer)
	if !l.ok || l.plain {
		return pulled{}
	}
	j := *n
	j.Left = l.node
	j.Conds = keep
	out := pulled{ok: true, conds: append(l.conds, own...)}
	if n.Kind != plan.Inner {
		// Conditions of the inner side decide matches, not rows.
		if len(own) > 0 || outer.hasAny(freeCols(n.Right)) || n.Kind == plan.Full || n.Kind == plan.Right {
			return pulled{}
		}
		out.node = &j
		return out
	}
	r := p.pullNode(n.Right, outer)
	if !r.ok || r.plain {
		return pulled{}
	}
	j.Right = r.node
	out.conds = append(out.conds, r.conds...)
	out.node = &j
	return out
}

// keySides splits an equality between an inner and an outer expression.
func keySides(c plan.Expr, outer colSet) (in, out plan.Expr, ok bool) {
	call, is := c.(*plan.Call)
	if !is || call.F == nil || call.F.Name != "=" || len(call.Args) != 2 {
		return nil, nil, false
	}
	a, b := usedCols(call.Args[0]), usedCols(call.Args[1])
	switch {
	case !outer.hasAny(a) && outer.hasAll(b) && len(a) > 0:
		return call.Args[0], call.Args[1], true
	case !outer.hasAny(b) && outer.hasAll(a) && len(b) > 0:
		return call.Args[1], call.Args[0], true
	}
	return nil, nil, false
}

func keyed(conds []plan.Expr, outer colSet) bool {
	for _, c := range conds {
		if _, _, ok := keySides(c, outer); !ok {
			return false
		}
	}
	return true
}

func (p *planner) pullAggregate(n *plan.LAggregate, outer colSet, usesOuter func(...plan.Expr) bool) pulled {
	if n.Sets != nil {
		return pulled{}
	}
	bad := false
	n.EachExpr(func(e *plan.Expr) { bad = bad || usesOuter(*e) })
	r := p.pullNode(n.In, outer)
	if bad || !r.ok || r.plain || len(r.conds) == 0 || !keyed(r.conds, outer) {
		return pulled{}
	}
	a := *n
	a.In = r.node
	a.Groups, a.GroupCols = slices.Clone(n.Groups), slices.Clone(n.GroupCols)
	a.Plain = false
	for i, c := range r.conds {
		in, _, _ := keySides(c, outer)
		at := -1
		for j, g := range a.Groups {
			if exprEqual(g, in) {
				at = j
			}
		}
		if at < 0 {
			var col plan.LCol
			if x, ok := in.(*plan.Col); ok {
				col = plan.LCol{ID: x.ID, Name: x.Name, T: x.T}
			} else {
				col = p.newCol("key", in.Type(), colInfo{kind: colOther})
			}
			at = len(a.Groups)
			a.Groups, a.GroupCols = append(a.Groups, in), append(a.GroupCols, col)
		}
		key := a.GroupCols[at].Ref()
		r.conds[i] = plan.Replace(c, func(x plan.Expr) (plan.Expr, bool) {
			if x == in || exprEqual(x, in) {
				return key, true
			}
			return nil, false
		})
	}
	r.node = &a
	if n.Plain {
		r.plain = true
		r.marker = a.GroupCols[len(a.GroupCols)-1]
		r.defaults = map[plan.ColID]plan.Expr{}
		for i, g := range n.Aggs {
			d := &plan.Const{T: g.T.WithNotNull(false)}
			switch g.Def.Name {
			case "count", "regr_count":
				d = &plan.Const{Value: int64(0), T: types.Of(types.Int8).WithNotNull(true)}
			case "grouping":
				return pulled{}
			}
			r.defaults[n.AggCols[i].ID] = d
		}
	}
	return r
}
