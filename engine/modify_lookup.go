package engine

import (
	"context"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// A batch of keys is looked up one by one when it is small, or the table has more
// than rowsPerLookup rows for each: a scan reads those in the time of a lookup.
const (
	fewLookups    = 64
	rowsPerLookup = 200
)

// lookupByKey is modifier.lookup without a scan; ok is false when a scan is better, or
// needed.
func (m *modifier) lookupByKey(ctx context.Context, rows *vec.Batch) (found *vec.Batch, which []int32, ok bool, err error) {
	rel, isKeyed := m.rel.(catalog.KeyedRelation)
	if !isKeyed {
		return nil, nil, false, nil
	}
	if pk, _ := rel.LookupKey(); pk == nil {
		return nil, nil, false, nil
	}
	if rows.N > fewLookups {
		if st, err := rel.Stats(ctx, table.Scan{}); err != nil || st == nil || st.Rows < int64(rows.N)*rowsPerLookup {
			return nil, nil, false, nil // an error will be the scan's
		}
	}
	stored, err := toStored(m.rel, rows)
	if err != nil {
		return nil, nil, false, err
	}
	all := make([]int, len(m.cols))
	for i := range all {
		all[i] = i
	}
	b, of, err := rel.Get(ctx, table.Lookup{Keys: columnsOf(stored, m.pk), Columns: all})
	if mustScan(err) {
		return nil, nil, false, nil
	}
	if err != nil {
		return nil, nil, false, err
	}
	which = make([]int32, rows.N)
	for i := range which {
		which[i] = -1
	}
	for j, i := range of {
		if which[i] < 0 {
			which[i] = int32(j)
		}
	}
	b.Schema = m.schema()
	return b, which, true, nil
}
