package planner

import (
	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// outerToInner makes inner joins of outer ones whose NULL rows a condition
// above throws away.
func (p *planner) outerToInner(root plan.LNode) (plan.LNode, error) {
	var walk func(n plan.LNode, conds []plan.Expr)
	walk = func(n plan.LNode, conds []plan.Expr) {
		if p.enter() != nil {
			p.leave()
			return
		}
		defer p.leave()
		switch n := n.(type) {
		case *plan.LFilter:
			walk(n.In, append(append([]plan.Expr{}, conds...), n.Conds...))
			return
		case *plan.LSort:
			walk(n.In, conds)
			return
		case *plan.LProject:
			m := map[plan.ColID]plan.Expr{}
			for i, c := range n.Out {
				m[c.ID] = n.Exprs[i]
			}
			var below []plan.Expr
			for _, c := range conds {
				if !hasSubquery(c) {
					below = append(below, substTyped(c, m))
				}
			}
			walk(n.In, below)
			return
		case *plan.LJoin:
			l, r := colsOf(n.Left), colsOf(n.Right)
			reject := func(cols colSet) bool {
				for _, c := range conds {
					if rejectsNull(c, cols) {
						return true
					}
				}
				return false
			}
			if n.Single && uniqueOn(n.Right, n.Conds) {
				n.Single = false
			}
			if n.Kind == plan.Left && !n.Single && reject(r) {
				n.Kind = plan.Inner
			}
			if n.Kind == plan.Full {
				rl, rr := reject(l), reject(r)
				switch {
				case rl && rr:
					n.Kind = plan.Inner
				case rl: // rows without a left side go
					n.Kind = plan.Left
				case rr:
					n.Kind = plan.Left
					n.Left, n.Right = n.Right, n.Left
				}
			}
			switch n.Kind {
			case plan.Inner:
				all := append(append([]plan.Expr{}, conds...), n.Conds...)
				walk(n.Left, all)
				walk(n.Right, all)
			case plan.Left:
				walk(n.Left, conds)
				walk(n.Right, n.Conds)
			case plan.Semi:
				walk(n.Left, append(append([]plan.Expr{}, conds...), n.Conds...))
				walk(n.Right, n.Conds)
			case plan.Anti, plan.NullAnti, plan.Mark:
				walk(n.Left, conds)
				walk(n.Right, nil)
			default:
				walk(n.Left, nil)
				walk(n.Right, nil)
			}
			return
		}
		for _, k := range n.Kids() {
			walk(*k, nil)
		}
	}
	walk(root, nil)
	return root, nil
}

// uniqueOn reports whether the conditions, equalities with columns of n among
// them, fix at most one row of n: they cover its table's primary key.
func uniqueOn(n plan.LNode, conds []plan.Expr) bool {
	for {
		switch x := n.(type) {
		case *plan.LFilter:
			n = x.In
			continue
		case *plan.LSort:
			n = x.In
			continue
		case *plan.LProject:
			if !onlyCols(x.Exprs, x.Out) {
				return false
			}
			n = x.In
			continue
		}
		break
	}
	g, ok := n.(*plan.LGet)
	if !ok {
		return false
	}
	t, ok := g.Rel.(catalog.TableInfo)
	if !ok || len(t.PrimaryKey()) == 0 {
		return false
	}
	own := colsOf(g)
	fixed := map[string]bool{}
	for _, c := range append(append([]plan.Expr{}, conds...), g.Conds...) {
		call, ok := c.(*plan.Call)
		if !ok || call.F == nil || call.F.Name != "=" || len(call.Args) != 2 {
			continue
		}
		for i, a := range call.Args {
			col, ok := a.(*plan.Col)
			if !ok || !own[col.ID] || own.hasAny(usedCols(call.Args[1-i])) {
				continue
			}
			for k, o := range g.Out {
				if o.ID == col.ID && g.Att[k] >= 0 {
					fixed[t.Columns()[g.Att[k]].Name] = true
				}
			}
		}
	}
	for _, k := range t.PrimaryKey() {
		if !fixed[k] {
			return false
		}
	}
	return true
}

// onlyCols reports whether a projection passes columns on under their IDs.
func onlyCols(es []plan.Expr, out []plan.LCol) bool {
	for i, e := range es {
		if c, ok := e.(*plan.Col); !ok || c.ID != out[i].ID {
			return false
		}
	}
	return true
}

// nullOn reports whether e is NULL when all of cols are.
func nullOn(e plan.Expr, cols colSet) bool {
	switch x := e.(type) {
	case *plan.Col:
		return cols[x.ID]
	case *plan.Const:
		return x.Value == nil
	case *plan.Cast:
		return (x.F == nil || x.F.Strict) && nullOn(x.Arg, cols)
	case *plan.Call:
		if x.F == nil || !x.F.Strict || x.F.Set != nil {
			return false
		}
		for _, a := range x.Args {
			if nullOn(a, cols) {
				return true
			}
		}
	case *plan.Not:
		return nullOn(x.Arg, cols)
	case *plan.InList:
		return nullOn(x.Arg, cols) && len(x.Items) > 0
	case *plan.NullIf:
		return nullOn(x.A, cols)
	case *plan.Coalesce:
		for _, a := range x.Args {
			if !nullOn(a, cols) {
				return false
			}
		}
		return true
	case *plan.Field:
		return nullOn(x.Arg, cols)
	case *plan.Subscript:
		return nullOn(x.Arg, cols)
	case *plan.And:
		for _, a := range x.Args {
			if !nullOn(a, cols) {
				return false
			}
		}
		return true
	case *plan.Or:
		for _, a := range x.Args {
			if !nullOn(a, cols) {
				return false
			}
		}
		return true
	}
	return false
}

// rejectsNull reports whether condition e is not true when all of cols are
// NULL.
func rejectsNull(e plan.Expr, cols colSet) bool {
	if nullOn(e, cols) {
		return true
	}
	switch x := e.(type) {
	case *plan.Const:
		return x.Value != true
	case *plan.And:
		for _, a := range x.Args {
			if rejectsNull(a, cols) {
				return true
			}
		}
	case *plan.Or:
		for _, a := range x.Args {
			if !rejectsNull(a, cols) {
				return false
			}
		}
		return true
	case *plan.IsNull:
		return x.Not && nullOn(x.Arg, cols)
	case *plan.IsBool:
		switch {
		case x.Test == plan.TestTrue && !x.Not:
			return rejectsNull(x.Arg, cols)
		case x.Test == plan.TestFalse && !x.Not:
			return nullOn(x.Arg, cols)
		case x.Test == plan.TestUnknown && x.Not:
			return nullOn(x.Arg, cols)
		}
	case *plan.AnyAll:
		return !x.All && nullOn(x.Left, cols) && x.Op != nil && x.Op.Strict
	}
	return false
}
