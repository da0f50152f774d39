package table

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// countedRows is a split of rows that are only counted: no column of theirs is wanted, so
// metadata tell all there is to know.
type countedRows struct{ t *FileStore }

// addCounted makes the split of the rows that were counted.
func (p *planner) addCounted(l live) {
	if p.counted > 0 {
		p.add(Split{Partition: l.part.vals, Bucket: l.Bucket, Raw: true, Rows: p.counted, Impl: &countedRows{p.t}})
		p.counted = 0
	}
}

// countedReader returns so many rows without columns.
type countedReader struct {
	filter RowFilter
	size   int64
	left   int64
	err    error
}

// Next returns the next batch, nil at the end.
func (r *countedReader) Next(ctx context.Context) (*vec.Batch, error) {
	for r.err == nil && r.left > 0 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		n := min(r.left, r.size)
		r.left -= n
		if r.filter != nil { // of constants
			sel, err := r.filter.Select(ctx, &vec.Batch{N: int(n)})
			if err != nil {
				r.err = err
				return nil, err
			}
			n = int64(len(sel))
		}
		if n > 0 {
			return &vec.Batch{N: int(n)}, nil
		}
	}
	return nil, r.err
}

// Close ends the reader.
func (r *countedReader) Close() error {
	r.err, r.left = errClosed, 0
	return nil
}
