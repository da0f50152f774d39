package planner

import (
	"slices"

	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// exactKids reports whether a node takes its inputs' columns by position.
func exactKids(n plan.LNode) bool {
	switch n.(type) {
	case *plan.LUnion, *plan.LSetOp, *plan.LRecursive, *plan.LDistinct:
		return true
	}
	return false
}

// swapRight turns RIGHT joins into LEFT ones. Columns are found by ID, so their
// order does not matter.
func (p *planner) swapRight(n plan.LNode) (plan.LNode, error) {
	return n, p.eachPlanDeep(n, func(n plan.LNode) {
		if j, ok := n.(*plan.LJoin); ok && j.Kind == plan.Right {
			j.Kind, j.Left, j.Right = plan.Left, j.Right, j.Left
		}
	})
}

// eachPlanDeep visits a plan with the plans of its subqueries and CTEs.
func (p *planner) eachPlanDeep(n plan.LNode, f func(plan.LNode)) error {
	seen := map[*plan.LCTE]bool{}
	var visit func(n plan.LNode) error
	visit = func(n plan.LNode) error {
		if err := p.enter(); err != nil {
			return err
		}
		defer p.leave()
		f(n)
		var err error
		n.EachExpr(func(e *plan.Expr) {
			plan.Walk(*e, func(x plan.Expr) bool {
				if s, ok := x.(*plan.Subquery); ok && err == nil {
					err = visit(s.Plan.(*subplan).root)
				}
				return err == nil
			})
		})
		if err != nil {
			return err
		}
		if s, ok := n.(*plan.LCTEScan); ok && !seen[s.CTE] {
			seen[s.CTE] = true
			if err := visit(s.CTE.Plan); err != nil {
				return err
			}
		}
		for _, k := range n.Kids() {
			if err := visit(*k); err != nil {
				return err
			}
		}
		return nil
	}
	return visit(n)
}

// mergeProjects removes projections that only rename columns, and joins a
// projection with one below it.
func (p *planner) mergeProjects(root plan.LNode) (plan.LNode, error) {
	renames := map[plan.ColID]plan.ColID{}
	names := map[plan.ColID]string{}
	var walk func(n plan.LNode, exact bool) plan.LNode
	walk = func(n plan.LNode, exact bool) plan.LNode {
		if p.enter() != nil {
			p.leave()
			return n
		}
		defer p.leave()
		ex := exactKids(n)
		for _, k := range n.Kids() {
			// A top projection is looked through by those that take columns by
			// position, so only its own input may change.
			*k = walk(*k, ex || exact && passes(n))
		}
		pr, ok := n.(*plan.LProject)
		if !ok || exact {
			return n
		}
		local := colsOf(pr.In)
		for _, e := range pr.Exprs {
			// A column of an outer row is a value here: it can be absent where the
			// row it belongs to is not.
			if c, ok := e.(*plan.Col); !ok || !local[c.ID] {
				return n
			}
		}
		// Renamed columns live on under their old IDs; the same column twice
		// becomes one.
		for i, e := range pr.Exprs {
			c := e.(*plan.Col)
			if c.ID != pr.Out[i].ID {
				renames[pr.Out[i].ID] = c.ID
				names[pr.Out[i].ID] = pr.Out[i].Name
			}
		}
		return pr.In
	}
	before := slices.Clone(root.Cols())
	root = walk(root, true)
	if len(renames) > 0 {
		resolve := func(id plan.ColID) plan.ColID {
			for range 10000 {
				n, ok := renames[id]
				if !ok {
					break
				}
				id = n
			}
			return id
		}
		ren := func(e plan.Expr) plan.Expr {
			return plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
				if c, ok := x.(*plan.Col); ok {
					if _, hit := renames[c.ID]; hit {
						n := *c
						n.ID = resolve(c.ID)
						return &n, true
					}
				}
				return nil, false
			})
		}
		err := p.eachPlanDeep(root, func(n plan.LNode) {
			n.EachExpr(func(e *plan.Expr) { *e = ren(*e) })
			// A column list that repeats an ID of its input follows it.
			switch n := n.(type) {
			case *plan.LAggregate:
				for i, g := range n.Groups {
					if c, ok := g.(*plan.Col); ok {
						if _, hit := renames[n.GroupCols[i].ID]; hit {
							n.GroupCols[i].ID = c.ID
						}
					}
				}
			case *plan.LProject:
				for i, e := range n.Exprs {
					if c, ok := e.(*plan.Col); ok {
						if _, hit := renames[n.Out[i].ID]; hit {
							n.Out[i].ID = c.ID
						}
					}
				}
			}
		})
		if err != nil {
			return nil, err
		}
		// Whoever asked for this plan knows its columns by their old IDs.
		if top, ok := root.(*plan.LProject); ok {
			top.Out = before
		} else {
			root = sameCols(root, before)
		}
	}
	// A projection over a projection.
	return p.rewriteUp(root, func(n plan.LNode) (plan.LNode, error) {
		top, ok := n.(*plan.LProject)
		if !ok {
			return n, nil
		}
		low, ok := top.In.(*plan.LProject)
		if !ok {
			return n, nil
		}
		uses := map[plan.ColID]int{}
		for _, e := range top.Exprs {
			plan.Walk(e, func(x plan.Expr) bool {
				if c, ok := x.(*plan.Col); ok {
					uses[c.ID]++
				}
				return true
			})
		}
		m := map[plan.ColID]plan.Expr{}
		for i, c := range low.Out {
			if uses[c.ID] > 1 && !cheap(low.Exprs[i]) || hasVolatile(low.Exprs[i]) {
				return n, nil
			}
			m[c.ID] = low.Exprs[i]
		}
		for i := range top.Exprs {
			top.Exprs[i] = substTyped(top.Exprs[i], m)
		}
		top.In = low.In
		return top, nil
	})
}

// sameCols gives the columns of n the IDs they had.
func sameCols(n plan.LNode, want []plan.LCol) plan.LNode {
	have := n.Cols()
	same := len(have) == len(want)
	for i := 0; same && i < len(have); i++ {
		same = have[i].ID == want[i].ID
	}
	if same || len(have) != len(want) {
		return n
	}
	pr := &plan.LProject{In: n, Out: want}
	for _, c := range have {
		pr.Exprs = append(pr.Exprs, c.Ref())
	}
	return pr
}

// passes reports whether a node hands its input's columns on as they are.
func passes(n plan.LNode) bool {
	switch n.(type) {
	case *plan.LFilter, *plan.LSort, *plan.LLimit, *plan.LDistinct:
		return true
	}
	return false
}

// cheap expressions may be computed twice.
func cheap(e plan.Expr) bool {
	switch x := e.(type) {
	case *plan.Col, *plan.Const, *plan.Param, *plan.Slot:
		return true
	case *plan.Cast:
		return x.F == nil && cheap(x.Arg)
	}
	return false
}

// substTyped replaces columns; a column for a column keeps the nullability of
// the reference, which may stand above an outer join.
func substTyped(e plan.Expr, m map[plan.ColID]plan.Expr) plan.Expr {
	return plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
		c, ok := x.(*plan.Col)
		if !ok {
			return nil, false
		}
		r, ok := m[c.ID]
		if !ok {
			return nil, false
		}
		if rc, ok := r.(*plan.Col); ok {
			n := *rc
			n.T.NotNull = n.T.NotNull && c.T.NotNull
			return &n, true
		}
		return r, true
	})
}

// pullUp opens subqueries of FROM that are joins with computed columns, so that
// their tables take part in the join order around them: the expressions move to
// where they are used.
func (p *planner) pullUp(root plan.LNode) (plan.LNode, error) {
	m := map[plan.ColID]plan.Expr{}
	uses := map[plan.ColID]int{}
	eachNode(root, func(n plan.LNode) {
		n.EachExpr(func(e *plan.Expr) {
			plan.Walk(*e, func(x plan.Expr) bool {
				if c, ok := x.(*plan.Col); ok {
					uses[c.ID]++
				}
				return true
			})
		})
	})
	open := func(n plan.LNode) plan.LNode {
		pr, ok := n.(*plan.LProject)
		if !ok {
			return n
		}
		in := pr.In
		if f, ok := in.(*plan.LFilter); ok {
			in = f.In
		}
		if j, ok := in.(*plan.LJoin); !ok || j.Kind != plan.Inner || j.Lateral {
			return n
		}
		for i, e := range pr.Exprs {
			if hasVolatile(e) || uses[pr.Out[i].ID] > 1 && !cheap(e) {
				return n
			}
		}
		for i, e := range pr.Exprs {
			if c, ok := e.(*plan.Col); ok && c.ID == pr.Out[i].ID {
				continue
			}
			m[pr.Out[i].ID] = e
		}
		return pr.In
	}
	var walk func(n plan.LNode)
	walk = func(n plan.LNode) {
		if p.enter() != nil {
			p.leave()
			return
		}
		defer p.leave()
		for _, k := range n.Kids() {
			walk(*k)
		}
		j, ok := n.(*plan.LJoin)
		if !ok || j.Lateral {
			return
		}
		switch j.Kind {
		case plan.Inner:
			j.Left, j.Right = open(j.Left), open(j.Right)
		case plan.Left, plan.Semi, plan.Anti:
			j.Left = open(j.Left)
		}
	}
	walk(root)
	if len(m) == 0 {
		return root, nil
	}
	// again are columns that a node hands on under the ID they had in an opened
	// projection: above that node they are the node's own.
	var sub func(e plan.Expr, again colSet, depth int) plan.Expr
	sub = func(e plan.Expr, again colSet, depth int) plan.Expr {
		return plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
			c, ok := x.(*plan.Col)
			if !ok || again[c.ID] {
				return nil, false
			}
			r, ok := m[c.ID]
			if !ok {
				return nil, false
			}
			if rc, ok := r.(*plan.Col); ok {
				n := *rc
				n.T.NotNull = n.T.NotNull && c.T.NotNull
				r = &n
			}
			if depth < 1000 {
				r = sub(r, again, depth+1)
			}
			return r, true
		})
	}
	var rewrite func(n plan.LNode, outer colSet) colSet
	rewrite = func(n plan.LNode, outer colSet) colSet {
		again := colSet{}
		again.addAll(outer)
		for i, k := range n.Kids() {
			from := outer
			if j, ok := n.(*plan.LJoin); ok && j.Lateral && i > 0 {
				from = again
			}
			again.addAll(rewrite(*k, from))
		}
		n.EachExpr(func(e *plan.Expr) { *e = sub(*e, again, 0) })
		own := func(out []plan.LCol) {
			for _, c := range out {
				if _, ok := m[c.ID]; ok {
					again[c.ID] = true
				}
			}
		}
		switch n := n.(type) {
		case *plan.LProject:
			own(n.Out)
		case *plan.LAggregate:
			own(n.GroupCols)
		}
		return again
	}
	rewrite(root, colSet{})
	return root, nil
}
