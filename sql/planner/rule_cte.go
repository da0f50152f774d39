package planner

import "github.com/paimon-sql/paimon-sql/sql/plan"

// inlineCTEs puts the plan of a CTE that is read once in place of its scan, as
// PostgreSQL does, so that conditions reach it. What stays a CTE is optimized
// on its own and computed once.
func (p *planner) inlineCTEs(n plan.LNode) (plan.LNode, error) {
	if p.inlined {
		return n, nil // part of a plan that was looked through
	}
	p.inlined = true
	// References may have gone with the definitions that held them, so count
	// what the plan can reach.
	refs := map[*plan.LCTE]int{}
	var count func(n plan.LNode)
	var countExpr func(e plan.Expr)
	countExpr = func(e plan.Expr) {
		plan.Walk(e, func(x plan.Expr) bool {
			if s, ok := x.(*plan.Subquery); ok {
				count(s.Plan.(*subplan).root)
			}
			return true
		})
	}
	count = func(n plan.LNode) {
		eachNode(n, func(n plan.LNode) {
			n.EachExpr(func(e *plan.Expr) { countExpr(*e) })
			if s, ok := n.(*plan.LCTEScan); ok {
				refs[s.CTE]++
				if refs[s.CTE] == 1 {
					count(s.CTE.Plan)
				}
			}
		})
	}
	count(n)
	var inline func(n plan.LNode) (plan.LNode, error)
	var inExpr func(e plan.Expr) error
	inExpr = func(e plan.Expr) error {
		var err error
		plan.Walk(e, func(x plan.Expr) bool {
			if s, ok := x.(*plan.Subquery); ok && err == nil {
				sub := s.Plan.(*subplan)
				sub.root, err = inline(sub.root)
			}
			return err == nil
		})
		return err
	}
	done := map[*plan.LCTE]bool{}
	inline = func(n plan.LNode) (plan.LNode, error) {
		return p.rewriteUp(n, func(n plan.LNode) (plan.LNode, error) {
			var err error
			n.EachExpr(func(e *plan.Expr) {
				if err == nil {
					err = inExpr(*e)
				}
			})
			if err != nil {
				return nil, err
			}
			s, ok := n.(*plan.LCTEScan)
			if !ok {
				return n, nil
			}
			c := s.CTE
			c.Refs = refs[c]
			if !done[c] {
				done[c] = true
				if c.Plan, err = inline(c.Plan); err != nil {
					return nil, err
				}
			}
			// One that depends on an outer row cannot be computed once.
			correlated := len(freeCols(c.Plan)) > 0 || perRow(c.Plan)
			if refs[c] != 1 || !correlated && (p.off("inline_cte") || c.Always || planVolatile(c.Plan) && !c.Never) {
				return n, nil
			}
			pr := &plan.LProject{In: c.Plan, Out: s.Out}
			for i, col := range c.Plan.Cols() {
				if i < len(s.Out) {
					pr.Exprs = append(pr.Exprs, col.Ref())
				}
			}
			return pr, nil
		})
	}
	return inline(n)
}
