package table

import "github.com/paimon-sql/paimon-sql/index/predicate"

// Runtime filters are conjuncts of Scan.Filter that became known when the statement ran.
// They prune as all others do; here is counted what would not have been left out without
// them.

// RuntimeUse is what one runtime filter left out of a scan.
type RuntimeUse struct {
	Column int // position in Scan.Columns; the scan's owner sets it
	// Files counts files that were not read; Rows those that were, and were dropped before
	// the columns that no filter asks for. The scan's owner counts the rows.
	Files, Rows int64
}

// AddRuntime counts n files that filter (Leaf.Runtime) ruled out; 0 = none did.
func (r *PlanReport) AddRuntime(filter int, n int64) {
	if filter <= 0 {
		return
	}
	for len(r.Runtime) < filter {
		r.Runtime = append(r.Runtime, RuntimeUse{Column: -1})
	}
	r.Runtime[filter-1].Files += n
}

// runtimeLeaf returns the leaf that a conjunct is if it comes from a runtime filter.
func runtimeLeaf(n predicate.Node) *predicate.Leaf {
	if l, ok := n.(*predicate.Leaf); ok && l.Runtime > 0 {
		return l
	}
	return nil
}

// blame says which runtime filter among the conjuncts of n rules out what none is asked
// about, if the others do not: none reports whether nothing passes a predicate. 0 = no
// filter of the kind is to blame; of several that only rule it out together it is the
// first.
func blame(n predicate.Node, none func(predicate.Node) bool) int {
	conjuncts := []predicate.Node{n}
	if a, ok := n.(*predicate.And); ok {
		conjuncts = a.Args
	}
	var own []predicate.Node
	var late []*predicate.Leaf
	for _, c := range conjuncts {
		if l := runtimeLeaf(c); l != nil {
			late = append(late, l)
		} else {
			own = append(own, c)
		}
	}
	if len(late) == 0 || len(own) > 0 && none(predicate.Conj(own...)) {
		return 0
	}
	for _, l := range late {
		if none(l) {
			return l.Runtime
		}
	}
	return late[0].Runtime
}

// skipStats counts a file that statistics rule out.
func (p *planner) skipStats(l live, values bool) {
	p.skip("stats", 1)
	if fs, err := p.fileSchema(l.File.SchemaID); err == nil {
		p.report.AddRuntime(blame(p.filter, func(n predicate.Node) bool {
			return predicate.Eval(n, &fileStats{p, l, fs, values}) == predicate.None
		}), 1)
	}
}

// blameBucket is blame for buckets: a filter without the runtime ones may leave them all.
func (p *planner) blameBucket() int {
	return blame(p.filter, func(n predicate.Node) bool {
		q := *p
		q.filter = n
		return q.newBucketFilter() != nil
	})
}
