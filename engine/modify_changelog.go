package engine

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// kindBefore marks what a row was: for the changelog only.
const kindBefore = table.LogOnly | 1

// before tells the changelog of a table with changelog-producer = input what rows
// (in stored form) were that the statement replaces: an UPDATE is -U and +U there,
// as a source of changes would have said it. Other tables are not told.
func (m *modifier) before(ctx context.Context, old *vec.Batch) error {
	if !table.LogsInput(m.rel.Options()) {
		return nil
	}
	return m.sink.add(ctx, old, constKinds(kindBefore, old.N))
}
