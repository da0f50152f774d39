package vectorized

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// exact takes back hints that hold only where the storage predicate is the whole
// condition, once it is known with the parameters' values.
func (s *scanStage) exact(vals []types.Datum) {
	s.spec.Extremes, s.spec.Limit = s.n.Spec.Extremes, s.n.Spec.Limit
	if s.n.Spec.Exact {
		return
	}
	if s.spec.Extremes == nil && s.spec.Limit < 0 {
		return
	}
	if s.spec.Exact = s.n.ExactFilter != nil && s.n.ExactFilter(vals); !s.spec.Exact {
		s.spec.Extremes, s.spec.Limit = nil, -1
	}
}

// partitions sets the filter of partitions.
func (s *scanStage) partitions() error {
	if s.n.Partitions == nil {
		return nil
	}
	e, err := compileExpr(s.n.Partitions)
	if err != nil {
		return err
	}
	f := &partitionFilter{x: s.sc.eval(context.Background()), cond: e}
	used := make([]bool, maxPartitionKeys)
	slots(s.n.Partitions, used)
	for i, u := range used {
		if u {
			f.cols = append(f.cols, i)
			f.width = i + 1
		}
	}
	s.spec.Partitions = f
	return nil
}

// maxPartitionKeys bounds the number of a partition key; tables have a few.
const maxPartitionKeys = 1024

// partitionFilter evaluates conditions on partition columns while a scan is planned.
type partitionFilter struct {
	x     *evalContext
	cond  *evaluator
	cols  []int
	width int
}

var _ table.RowFilter = (*partitionFilter)(nil)

// Columns implements table.RowFilter.
func (f *partitionFilter) Columns() []int { return f.cols }

// Select implements table.RowFilter. A fault of the evaluation is an error: the partition
// stays.
func (f *partitionFilter) Select(ctx context.Context, b *vec.Batch) (sel []uint16, err error) {
	defer func() {
		if r := recover(); r != nil {
			sel, err = nil, panicError(r)
		}
	}()
	f.x.ctx = ctx
	full := &vec.Batch{N: b.N, Schema: make(types.Schema, f.width), Cols: make([]arrowArray, f.width)}
	for k, c := range f.cols {
		full.Schema[c], full.Cols[c] = b.Schema[k], b.Cols[k]
	}
	out := make([]uint16, b.N)
	n, err := selectNode(f.cond.root, f.x, full, nil, true, out)
	return out[:n], err
}
