package planner

import (
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// rule is one rewrite of the logical plan. It keeps the meaning of the plan; the
// tests compare results with the rule switched off.
type rule struct {
	name string
	run  func(p *planner, n plan.LNode) (plan.LNode, error)
	// always: without it no plan can be executed.
	always bool
}

// rules run in this order. The list is made by a function because some rules
// optimize plans of their own.
func rules() []rule {
	return []rule{
		{name: "inline_cte", run: (*planner).inlineCTEs, always: true},
		{name: "fold", run: (*planner).foldPlan},
		{name: "sum_case", run: (*planner).sumCase},
		{name: "swap_right", run: (*planner).swapRight, always: true},
		{name: "decorrelate", run: (*planner).decorrelate, always: true},
		{name: "merge_projects", run: (*planner).mergeProjects},
		{name: "pull_up", run: (*planner).pullUp},
		{name: "outer_to_inner", run: (*planner).outerToInner},
		{name: "pushdown", run: (*planner).pushdown},
		{name: "outer_to_inner", run: (*planner).outerToInner},
		{name: "merge_projects", run: (*planner).mergeProjects},
		{name: "fold", run: (*planner).foldPlan},
		{name: "prune", run: (*planner).prunePlan},
		{name: "join_order", run: (*planner).orderJoins},
		{name: "limit", run: (*planner).limitPlan},
		{name: "nested_prune", run: (*planner).nestedPrune},
	}
}

// Rules lists the names that Options.Disabled understands, in order.
func Rules() []string {
	var out []string
	seen := map[string]bool{}
	for _, r := range rules() {
		if !seen[r.name] && (!r.always || r.name == "inline_cte") {
			out = append(out, r.name)
		}
		seen[r.name] = true
	}
	for _, n := range table.PruningNames {
		out = append(out, prunes+n)
	}
	return append(out, "infer", "or_factor", "semi_order", "runtime_filter", "storage_filter", "metadata_extremes", "lookup")
}

// prunes begins the names of the rules that are ways of pruning in storage.
const prunes = "prune_"

// without is what scans do without.
func (p *planner) without() (w table.Pruning) {
	for i, n := range table.PruningNames {
		if p.off(prunes + n) {
			w |= 1 << i
		}
	}
	return w
}

func (p *planner) off(rule string) bool { return p.o.Disabled[rule] }

// optimize runs the rules over a plan.
func (p *planner) optimize(n plan.LNode) (plan.LNode, error) {
	var err error
	for _, r := range rules() {
		if p.off(r.name) && !r.always {
			continue
		}
		if n, err = r.run(p, n); err != nil {
			return nil, err
		}
	}
	return n, nil
}

// eachNode visits a plan from the top, subqueries and CTEs not included.
func eachNode(n plan.LNode, f func(plan.LNode)) {
	f(n)
	for _, k := range n.Kids() {
		eachNode(*k, f)
	}
}

// rewriteUp rebuilds a plan from the leaves.
func (p *planner) rewriteUp(n plan.LNode, f func(plan.LNode) (plan.LNode, error)) (plan.LNode, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	for _, k := range n.Kids() {
		r, err := p.rewriteUp(*k, f)
		if err != nil {
			return nil, err
		}
		*k = r
	}
	return f(n)
}
