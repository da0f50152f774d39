package planner

import (
	"slices"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// prunePlan drops columns, aggregates and window calls that nothing above uses.
func (p *planner) prunePlan(n plan.LNode) (plan.LNode, error) {
	need := colsOf(n)
	return n, p.prune(n, need)
}

func (p *planner) needOf(n plan.LNode, need colSet) colSet {
	out := colSet{}
	out.addAll(need)
	n.EachExpr(func(e *plan.Expr) { out.addAll(usedCols(*e)) })
	return out
}

func (p *planner) prune(n plan.LNode, need colSet) error {
	if err := p.enter(); err != nil {
		return err
	}
	defer p.leave()
	switch n := n.(type) {
	case *plan.LGet:
		all := p.needOf(n, need)
		var out []plan.LCol
		var att []int
		for i, c := range n.Out {
			if all[c.ID] {
				out, att = append(out, c), append(att, n.Att[i])
			}
		}
		n.Out, n.Att = out, att
		return nil
	case *plan.LProject:
		var es []plan.Expr
		var out []plan.LCol
		for i, c := range n.Out {
			if need[c.ID] {
				es, out = append(es, n.Exprs[i]), append(out, c)
			}
		}
		n.Exprs, n.Out = es, out
		return p.prune(n.In, p.needOf(n, colSet{}))
	case *plan.LAggregate:
		var aggs []plan.AggCall
		var cols []plan.LCol
		for i, c := range n.AggCols {
			if need[c.ID] {
				aggs, cols = append(aggs, n.Aggs[i]), append(cols, c)
			}
		}
		n.Aggs, n.AggCols = aggs, cols
		return p.prune(n.In, p.needOf(n, colSet{}))
	case *plan.LWindow:
		var calls []plan.WindowCall
		var cols []plan.LCol
		for i, c := range n.CallCols {
			if need[c.ID] {
				calls, cols = append(calls, n.Calls[i]), append(cols, c)
			}
		}
		if len(calls) > 0 {
			n.Calls, n.CallCols = calls, cols
		}
		return p.prune(n.In, p.needOf(n, need))
	case *plan.LUnion:
		var keep []int
		for i, c := range n.Out {
			if need[c.ID] {
				keep = append(keep, i)
			}
		}
		if len(keep) < len(n.Out) {
			n.Out = pick(n.Out, keep)
			for i, in := range n.Ins {
				cols := pick(in.Cols(), keep)
				pr := &plan.LProject{In: in, Out: cols}
				for _, c := range cols {
					pr.Exprs = append(pr.Exprs, c.Ref())
				}
				if low, ok := in.(*plan.LProject); ok {
					pr = &plan.LProject{In: low.In, Exprs: pick(low.Exprs, keep), Out: cols}
				}
				n.Ins[i] = pr
			}
		}
		for _, in := range n.Ins {
			if err := p.prune(in, colsOf(in)); err != nil {
				return err
			}
		}
		return nil
	case *plan.LSetOp, *plan.LRecursive:
		for _, k := range n.Kids() {
			if err := p.prune(*k, colsOf(*k)); err != nil {
				return err
			}
		}
		return nil
	case *plan.LDistinct:
		if n.On == nil {
			return p.prune(n.In, colsOf(n.In))
		}
		return p.prune(n.In, p.needOf(n, need))
	case *plan.LJoin:
		all := p.needOf(n, need)
		if n.Lateral {
			all.addAll(freeCols(n.Right))
		}
		if err := p.prune(n.Left, all); err != nil {
			return err
		}
		return p.prune(n.Right, all)
	case *plan.LValues:
		var keep []int
		for i, c := range n.Out {
			if need[c.ID] {
				keep = append(keep, i)
			}
		}
		volatile := false
		n.EachExpr(func(e *plan.Expr) { volatile = volatile || hasVolatile(*e) })
		if len(keep) < len(n.Out) && !volatile {
			n.Out = pick(n.Out, keep)
			for i, r := range n.Rows {
				n.Rows[i] = pick(r, keep)
			}
		}
		return nil
	}
	all := p.needOf(n, need)
	for _, k := range n.Kids() {
		if err := p.prune(*k, all); err != nil {
			return err
		}
	}
	return nil
}

func pick[T any](s []T, at []int) []T {
	out := make([]T, 0, len(at))
	for _, i := range at {
		if i < len(s) {
			out = append(out, s[i])
		}
	}
	return out
}

// nestedPrune finds the members of row columns that are used, where a column is
// used through members only.
func (p *planner) nestedPrune(root plan.LNode) (plan.LNode, error) {
	gets := map[plan.ColID]*plan.LGet{}
	whole := colSet{}
	paths := map[plan.ColID][][]string{}
	eachNode(root, func(n plan.LNode) {
		if g, ok := n.(*plan.LGet); ok {
			for _, c := range g.Out {
				if c.T.Kind == types.Row {
					gets[c.ID] = g
				}
			}
		}
	})
	if len(gets) == 0 {
		return root, nil
	}
	var look func(e plan.Expr)
	look = func(e plan.Expr) {
		path, col := fieldPath(e)
		if col != nil {
			if len(path) == 0 {
				whole[col.ID] = true
			} else {
				dup := false
				for _, o := range paths[col.ID] {
					dup = dup || slices.Equal(o, path)
				}
				if !dup {
					paths[col.ID] = append(paths[col.ID], path)
				}
			}
			return
		}
		plan.EachArg(e, func(a *plan.Expr) { look(*a) })
	}
	for _, c := range root.Cols() {
		whole[c.ID] = true
	}
	eachNode(root, func(n plan.LNode) {
		n.EachExpr(func(e *plan.Expr) { look(*e) })
		switch n.(type) {
		case *plan.LUnion, *plan.LSetOp, *plan.LRecursive, *plan.LDistinct:
			for _, k := range n.Kids() {
				for _, c := range (*k).Cols() {
					whole[c.ID] = true
				}
			}
		}
	})
	for id, g := range gets {
		if whole[id] || len(paths[id]) == 0 {
			continue
		}
		if g.Nested == nil {
			g.Nested = make([][][]string, len(g.Out))
		}
		for i, c := range g.Out {
			if c.ID == id {
				g.Nested[i] = paths[id]
			}
		}
	}
	return root, nil
}

// fieldPath takes r.a.b apart: the names and the column.
func fieldPath(e plan.Expr) ([]string, *plan.Col) {
	switch x := e.(type) {
	case *plan.Col:
		return nil, x
	case *plan.Field:
		t := x.Arg.Type()
		if t.Kind != types.Row || x.Index >= len(t.Fields) {
			return nil, nil
		}
		path, c := fieldPath(x.Arg)
		if c == nil {
			return nil, nil
		}
		return append(path, t.Fields[x.Index].Name), c
	}
	return nil, nil
}
