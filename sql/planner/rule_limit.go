package planner

import (
	"math"

	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// limitPlan tells sorts how many rows are wanted of them, and hands limits to
// the branches of UNION ALL.
func (p *planner) limitPlan(root plan.LNode) (plan.LNode, error) {
	return p.rewriteUp(root, func(n plan.LNode) (plan.LNode, error) {
		l, ok := n.(*plan.LLimit)
		if !ok || l.WithTies {
			return n, nil
		}
		want, ok := limitRows(l)
		if !ok {
			return n, nil
		}
		in := l.In
		for {
			if pr, ok := in.(*plan.LProject); ok {
				in = pr.In
				continue
			}
			break
		}
		switch x := in.(type) {
		case *plan.LSort:
			if want > 0 && want <= topLimit {
				x.Top = want
			}
		case *plan.LUnion:
			for i, b := range x.Ins {
				if _, has := b.(*plan.LLimit); !has {
					x.Ins[i] = &plan.LLimit{In: b, Count: &plan.Const{Value: want, T: l.Count.Type()}}
				}
			}
		}
		return n, nil
	})
}

// topLimit bounds top-N: beyond it a whole sort is as good, and spills.
const topLimit = 1 << 20

// limitRows is offset + count, when both are constants.
func limitRows(l *plan.LLimit) (int64, bool) {
	c, ok := l.Count.(*plan.Const)
	if !ok {
		return 0, false
	}
	n, ok := c.Value.(int64)
	if !ok || n < 0 {
		return 0, false
	}
	if l.Offset != nil {
		o, ok := l.Offset.(*plan.Const)
		if !ok {
			return 0, false
		}
		k, ok := o.Value.(int64)
		if !ok || k < 0 || n > math.MaxInt64-k {
			return 0, false
		}
		n += k
	}
	return n, true
}
