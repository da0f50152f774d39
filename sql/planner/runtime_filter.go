package planner

import (
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// runtimeFilters connects each hash join to the scans of its probe side whose
// rows its build keys bound: rows without a match are dropped by the join
// anyway, so not reading them is safe where what lies between keeps rows apart.
func runtimeFilters(n plan.Node) {
	for _, in := range n.Inputs() {
		runtimeFilters(in)
	}
	h, ok := n.(*plan.HashJoin)
	if !ok {
		return
	}
	switch h.Kind {
	case plan.Inner, plan.Semi, plan.Right:
	default:
		return
	}
	if h.BuildLeft {
		return
	}
	for i, k := range h.LeftKeys {
		probe, build := k.Type(), h.RightKeys[i].Type()
		if h.NullEq != nil && h.NullEq[i] || !filterable(probe) || !filterable(build) || probe.IsNanos() != build.IsNanos() {
			continue
		}
		if s := plan.Unchanged(k); s != nil {
			attach(h, i, h.Left, s.Index)
		}
	}
}

// filterable key types have values that storage's statistics and indexes know.
func filterable(t types.Type) bool {
	switch t.Kind {
	case types.TinyInt, types.Int2, types.Int4, types.Int8, types.Date, types.Text, types.Varchar,
		types.Timestamp, types.TimestampTZ, types.Numeric, types.Float4, types.Float8, types.BpChar, types.Bytea,
		types.UUID, types.Time,
		// Of no table of the warehouse; the relations of pg_catalog look at them.
		types.OID, types.Name:
		return true
	}
	return false
}

// attach follows column at of n down to the scan it comes from.
func attach(h *plan.HashJoin, key int, n plan.Node, at int) {
	for {
		switch x := n.(type) {
		case *plan.Scan:
			if h.Right.Est().Rows > 0.75*x.Est().Rows || at >= len(x.Spec.Columns) || x.Spec.Columns[at] < 0 {
				return
			}
			x.LateIn = append(x.LateIn, plan.RuntimeFilter{JoinID: h.ID, Key: key, Column: at})
			h.HasRuntimeFilters = true
			return
		case *plan.Filter:
			n = x.Input
		case *plan.Project:
			s := plan.Unchanged(x.Exprs[at])
			if s == nil {
				return
			}
			n, at = x.Input, s.Index
		case *plan.Sort:
			if x.Limit > 0 {
				return
			}
			n = x.Input
		case *plan.Aggregate:
			if x.Sets != nil || at >= len(x.Groups) {
				return
			}
			s := plan.Unchanged(x.Groups[at])
			if s == nil {
				return
			}
			n, at = x.Input, s.Index
		case *plan.HashJoin:
			l := len(x.Left.Schema())
			switch {
			case at < l && (x.Kind == plan.Inner || x.Kind == plan.Left || x.Kind == plan.Semi || x.Kind == plan.Anti || x.Kind == plan.NullAnti || x.Kind == plan.Mark):
				n = x.Left
			case at >= l && (x.Kind == plan.Inner || x.Kind == plan.Right):
				n, at = x.Right, at-l
			default:
				return
			}
		case *plan.NestedLoop:
			l := len(x.Left.Schema())
			switch {
			case at < l && (x.Kind == plan.Inner || x.Kind == plan.Left || x.Kind == plan.Semi || x.Kind == plan.Anti):
				n = x.Left
			case at >= l && x.Kind == plan.Inner:
				n, at = x.Right, at-l
			default:
				return
			}
		case *plan.Append:
			for _, in := range x.Ins {
				attach(h, key, in, at)
			}
			return
		default:
			return
		}
	}
}
