package table

import (
	"context"
	"fmt"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// planFallback plans a scan of a table with scan.fallback-branch or
// scan.primary-branch: whole partitions come from the first branch that holds
// them, main before its fallback, a primary branch before main. It returns nil
// when the table names no such branch, or is read as that branch itself.
func (p *planner) planFallback(ctx context.Context) (*Plan, error) {
	fallback, primary := p.options.String("scan.fallback-branch", ""), p.options.String("scan.primary-branch", "")
	other := fallback
	if primary != "" {
		other = primary
	}
	if other == "" || other == p.branch.name {
		return nil, nil
	}
	if fallback != "" && primary != "" {
		return nil, &fileio.UnsupportedError{Feature: "scan.fallback-branch together with scan.primary-branch"}
	}
	s, err := p.scanOf(ctx, other)
	if err != nil {
		return nil, err
	}
	q, err := p.t.newPlanner(ctx, s)
	if err != nil {
		return nil, err
	}
	first, second := p, q
	if primary != "" {
		first, second = q, p
	}
	one, err := first.plan(ctx, nil)
	if err != nil {
		return nil, err
	}
	two, err := second.plan(ctx, first.held)
	if err != nil {
		return nil, err
	}
	out := &Plan{Splits: append(one.Splits, two.Splits...), Report: p.report, Schema: p.schema}
	p.report.add(q.report)
	return out, nil
}

// scanOf makes p's scan one of another branch, whose columns are found by name
// and must have the same types up to nullability.
func (p *planner) scanOf(ctx context.Context, branch string) (Scan, error) {
	s := p.scan
	s.At, s.Overlay, s.Late = snapshot.Ref{Branch: branch}, nil, nil
	s.Extremes, s.Partitions, s.Order = nil, nil, nil
	sch, err := p.t.branch(branch).schemas.Latest(ctx)
	if err != nil {
		return s, fmt.Errorf("branch %q: %w", branch, err)
	}
	at := make([]int, len(p.schema.Fields))
	for i, f := range p.schema.Fields {
		at[i] = sch.Fields.Index(f.Name)
		if at[i] < 0 || types.PaimonString(sch.Fields[at[i]].Type.WithNotNull(false)) != types.PaimonString(f.Type.WithNotNull(false)) {
			return s, &fileio.UnsupportedError{Feature: fmt.Sprintf("branch %q with another schema than the table it completes", branch)}
		}
	}
	s.Columns = make([]int, len(p.read.columns))
	for i, c := range p.read.columns {
		s.Columns[i] = c
		if c >= 0 {
			s.Columns[i] = at[c]
		}
	}
	s.Filter = predicate.Rewrite(p.filter, func(l *predicate.Leaf) predicate.Node {
		if l.Col < 0 || l.Col >= len(at) {
			return nil
		}
		c := *l
		c.Col, c.FieldID = at[l.Col], sch.Fields[at[l.Col]].ID
		return &c
	})
	return s, nil
}

// add sums up what two planners saw.
func (r *PlanReport) add(o *PlanReport) {
	r.Manifests += o.Manifests
	r.ManifestsRead += o.ManifestsRead
	r.Partitions += o.Partitions
	r.PartitionsRead += o.PartitionsRead
	r.Buckets += o.Buckets
	r.BucketsRead += o.BucketsRead
	r.Files += o.Files
	r.FilesRead += o.FilesRead
	r.Level0Files += o.Level0Files
	r.RawSplits += o.RawSplits
	r.MergeSplits += o.MergeSplits
	r.DeletionVectors += o.DeletionVectors
	r.Remembered += o.Remembered
	r.Judged += o.Judged
	for k, n := range o.Skipped {
		if r.Skipped == nil {
			r.Skipped = map[string]int64{}
		}
		r.Skipped[k] += n
	}
}
