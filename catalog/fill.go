package catalog

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

const fillRows = 2048

// FillRows turns rows of datums into batches, column by column. It serves small
// relations: system tables and pg_catalog.
func FillRows(ctx context.Context, fields types.Schema, s table.Scan, yield func(*vec.Batch) error,
	fill func(want func(int) bool, add func(...types.Datum)) error,
) error {
	wanted := make([]bool, len(fields))
	for i := range wanted {
		wanted[i] = s.Columns == nil
	}
	for _, c := range s.Columns {
		if c >= 0 {
			wanted[c] = true
		}
	}
	cols := make([][]types.Datum, len(fields))
	n := 0
	var failed error
	flush := func() {
		if n == 0 || failed != nil {
			return
		}
		if failed = context.Cause(ctx); failed != nil {
			return
		}
		b := &vec.Batch{Schema: fields, N: n}
		for i := range fields {
			if wanted[i] {
				b.Cols = append(b.Cols, vec.FromDatums(fields[i].Type, cols[i]))
			} else {
				b.Cols = append(b.Cols, nil)
			}
			cols[i] = nil
		}
		n = 0
		failed = yield(b)
	}
	err := fill(func(c int) bool { return wanted[c] }, func(row ...types.Datum) {
		if failed != nil {
			return
		}
		for i := range fields {
			if wanted[i] {
				var v types.Datum
				if i < len(row) {
					v = row[i]
				}
				cols[i] = append(cols[i], v)
			}
		}
		if n++; n == fillRows {
			flush()
		}
	})
	if err != nil {
		return err
	}
	flush()
	return failed
}
