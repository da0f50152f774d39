package table

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// In a table with row-tracking.enabled every row has an id that it keeps, and the
// number of the snapshot that changed it last. Neither is written when a row is:
//
//	new rows            the commit gives the file its first row id, and the snapshot's
//	                    number as sequence number
//	rewritten rows      columns _ROW_ID and _SEQUENCE_NUMBER of the file hold what they had
//	changed rows        _ROW_ID holds the id, _SEQUENCE_NUMBER is NULL: the commit gives
//	                    the file the number
//
// So a row's own value counts, and where it is NULL, the file's. Rows that a
// transaction has not committed yet have NULL for what only the commit will tell.
// Source: docs/append-table/row-tracking.md, DataFileRecordReader.java,
// RowTrackingCommitUtils.java.

// Names of the columns that hold ids and sequence numbers.
const (
	rowIDName       = "_ROW_ID"
	rowSequenceName = "_SEQUENCE_NUMBER"
)

var (
	rowIDField       = types.Field{ID: 2147483642, Name: rowIDName, Type: types.Of(types.Int8)}
	rowSequenceField = types.Field{ID: 2147483646, Name: rowSequenceName, Type: types.Of(types.Int8)}
)

// tracksRows reports whether rows have ids.
func (st *state) tracksRows() bool {
	return !st.primaryKey() && st.options.Flag("row-tracking.enabled", false)
}

// keepsIDs reports whether a file has its rows' ids in it.
func keepsIDs(m *manifest.DataFile) bool {
	return m.HasWriteCols && slices.Contains(m.WriteCols, rowIDName)
}

// rowIDs fills in the ids that the file does not hold row by row. The window begins
// at fc.pos.
func (fc *fileColumns) rowIDs(stored arrow.Array, rows int, keep []uint16) arrow.Array {
	first := fc.o.meta.Meta.FirstRowID
	if first < 0 || stored.NullN() == 0 {
		return stored
	}
	have := vec.ViewOf[int64](vec.Decode(stored))
	out := make([]int64, rows)
	for i := range out {
		switch {
		case !have.IsNull(i):
			out[i] = have.V[i]
		case keep != nil:
			out[i] = first + fc.pos + int64(keep[i])
		default:
			out[i] = first + fc.pos + int64(i)
		}
	}
	return vec.Make(arrow.PrimitiveTypes.Int64, out, nil)
}

// versions fills in the sequence numbers that the file does not hold row by row. A
// file of number 0 is not committed yet: snapshots count from 1.
func (fc *fileColumns) versions(stored arrow.Array, rows int) arrow.Array {
	all := fc.o.meta.Meta.MaxSequence
	if all <= 0 || stored.NullN() == 0 {
		return stored
	}
	have := vec.ViewOf[int64](vec.Decode(stored))
	out := make([]int64, rows)
	for i := range out {
		if out[i] = all; !have.IsNull(i) {
			out[i] = have.V[i]
		}
	}
	return vec.Make(arrow.PrimitiveTypes.Int64, out, nil)
}

// copied are the columns of a scan that copies rows: the table's, and where rows have
// ids, those.
func (st *state) copied(ids bool) []int {
	out := make([]int, 0, len(st.schema.Fields)+2)
	for i := range st.schema.Fields {
		out = append(out, i)
	}
	if ids {
		out = append(out, PseudoRowID, PseudoVersion)
	}
	return out
}

// hasIDs reports whether the rows of a file have ids already: new ones get theirs from
// the commit.
func hasIDs(m *manifest.DataFile) bool { return m.FirstRowID >= 0 || keepsIDs(m) }

// writeTracked writes rows of which the last column tells the ids that they keep, NULL
// for none.
func (w *tableWriter) writeTracked(ctx context.Context, b *vec.Batch, kinds []uint8) error {
	k := len(w.st.schema.Fields)
	ids := vec.Decode(b.Cols[k])
	part := &vec.Batch{N: b.N, Cols: b.Cols[:k:k]}
	if ids.NullN() == b.N {
		return w.Write(ctx, part, kinds)
	}
	if err := w.check(part, kinds); err != nil {
		return err
	}
	if ids.DataType().ID() != arrow.INT64 {
		return fmt.Errorf("row ids are written as %s", ids.DataType())
	}
	var fresh, kept []uint32
	v := vec.ViewOf[int64](ids)
	for i := range b.N {
		if v.IsNull(i) {
			fresh = append(fresh, uint32(i))
		} else {
			kept = append(kept, uint32(i))
		}
	}
	if len(fresh) > 0 {
		n := &vec.Batch{N: len(fresh)}
		for _, c := range part.Cols {
			n.Cols = append(n.Cols, vec.Take(c, fresh))
		}
		// They are of an append table: a retraction would have been refused above.
		if err := w.Write(ctx, n, nil); err != nil {
			return err
		}
	}
	cols := append(part.Cols, ids)
	if len(kept) < b.N {
		cols = make([]arrow.Array, 0, k+1)
		for _, c := range append(part.Cols, ids) {
			cols = append(cols, vec.Take(c, kept))
		}
	}
	dest, one, err := w.r.route(ctx, w.t.dir, cols[:k], len(kept))
	if err != nil {
		return err
	}
	if err := w.meet(ctx); err != nil {
		return err
	}
	return w.byTarget(cols, len(kept), dest, one, func(d uint32, cols []arrow.Array, n int) error { return w.writeKept(ctx, d, cols, n) })
}

// writeKept writes changed rows of one bucket with their ids, into a file of their own:
// the commit gives them its snapshot's number.
func (w *tableWriter) writeKept(ctx context.Context, d uint32, cols []arrow.Array, n int) (err error) {
	t := w.targets[d]
	if t.kept == nil {
		open := 0
		for i, o := range w.targets {
			if o.kept == nil {
				continue
			}
			if open++; open >= maxOpenWriters {
				if err := w.closeKept(ctx, uint32(i)); err != nil {
					return err
				}
			}
		}
		t.kept, err = datafile.New(datafile.Options{
			IO: w.t.env.IO, Dir: w.r.targets[d].dir, Format: w.format, Schema: w.st.schema, Table: w.st.options, Account: w.o.Account, RowIDs: true,
		})
		if err != nil {
			return err
		}
	}
	if err := t.kept.Write(ctx, append(cols[:len(cols):len(cols)], vec.MakeNull(arrow.PrimitiveTypes.Int64, n)), n, nil, nil); err != nil {
		w.broken = err
		return err
	}
	return nil
}

// closeKept ends a bucket's file of rows that keep their ids.
func (w *tableWriter) closeKept(ctx context.Context, n uint32) error {
	f := w.targets[n].kept
	if f == nil {
		return nil
	}
	w.targets[n].kept = nil
	return w.closeFile(ctx, n, f)
}
