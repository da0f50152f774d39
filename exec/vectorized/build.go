package vectorized

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// build makes the stages of a plan node and of the nodes below it.
func build(sc *scope, n plan.Node, req request) (stage, error) {
	if c := sc.pinned[n]; c != nil && c != sc.pinning {
		return &storeScan{sc: sc, schema: n.Schema(), req: req, get: c.rows}, nil
	}
	st, err := buildNode(sc, n, req)
	if err != nil {
		return nil, err
	}
	return &timed{stage: st, s: sc.rt.stats.Node(idOf(n))}, nil
}

func buildNode(sc *scope, n plan.Node, req request) (stage, error) {
	switch n := n.(type) {
	case *plan.Scan:
		return newScan(sc, n, req)
	case *plan.Lookup:
		return newLookup(sc, n, req)
	case *plan.Values:
		return newValues(sc, n, req)
	case *plan.TableFunc:
		return newTableFunc(sc, n, req)
	case *plan.Filter:
		return newFilter(sc, n, req)
	case *plan.Project:
		return newProject(sc, n, req)
	case *plan.ProjectSet:
		return newProjectSet(sc, n, req)
	case *plan.HashJoin:
		return newHashJoin(sc, n, req)
	case *plan.NestedLoop:
		return newNestedLoop(sc, n, req)
	case *plan.Apply:
		return newApply(sc, n, req)
	case *plan.Aggregate:
		return newAggregate(sc, n, req)
	case *plan.Sort:
		return newSort(sc, n, req)
	case *plan.Limit:
		return newLimit(sc, n, req)
	case *plan.DistinctOn:
		return newDistinct(sc, n, req)
	case *plan.SetOp:
		return newSetOp(sc, n, req)
	case *plan.Append:
		return newAppend(sc, n, req)
	case *plan.Window:
		return newWindow(sc, n, req)
	case *plan.CTEScan:
		return newCTEScan(sc, n, req)
	case *plan.RecursiveUnion:
		return newRecursive(sc, n, req)
	case *plan.WorkScan:
		return newWorkScan(sc, n, req)
	}
	return nil, pgerr.New(pgerr.FeatureNotSupported, "plan node %T cannot be executed", n)
}

// idOf returns Base.ID, which the Node interface does not show.
func idOf(n plan.Node) int {
	switch n := n.(type) {
	case *plan.Scan:
		return n.ID
	case *plan.Lookup:
		return n.ID
	case *plan.Values:
		return n.ID
	case *plan.TableFunc:
		return n.ID
	case *plan.Filter:
		return n.ID
	case *plan.Project:
		return n.ID
	case *plan.ProjectSet:
		return n.ID
	case *plan.HashJoin:
		return n.ID
	case *plan.NestedLoop:
		return n.ID
	case *plan.Apply:
		return n.ID
	case *plan.Aggregate:
		return n.ID
	case *plan.Sort:
		return n.ID
	case *plan.Limit:
		return n.ID
	case *plan.DistinctOn:
		return n.ID
	case *plan.SetOp:
		return n.ID
	case *plan.Append:
		return n.ID
	case *plan.Window:
		return n.ID
	case *plan.CTEScan:
		return n.ID
	case *plan.RecursiveUnion:
		return n.Base.ID
	case *plan.WorkScan:
		return n.Base.ID
	}
	return 0
}

// needOf marks the columns of a child that expressions use.
func needOf(child plan.Node, es ...plan.Expr) []bool {
	need := make([]bool, len(child.Schema()))
	for _, e := range es {
		if e != nil {
			slots(e, need)
		}
	}
	return need
}

// orNeed adds what a consumer wants of the first len(need) columns.
func orNeed(need []bool, req request) {
	for i := range need {
		if req.needs(i) {
			need[i] = true
		}
	}
}
