package parquet

import (
	"context"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// Prune returns all rows.
func (r *Reader) Prune(ctx context.Context, p predicate.Node, c *format.Counters) ([]format.RowRange, error) {
	if r.rows == 0 {
		return nil, nil
	}
	return []format.RowRange{{From: 0, To: r.rows}}, nil
}
