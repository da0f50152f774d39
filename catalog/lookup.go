package catalog

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// KeyedRelation is a table whose rows can be found by their primary key without a
// scan.
type KeyedRelation interface {
	TableInfo
	// LookupKey returns the positions of the primary key's columns in Columns(), in
	// the key's order, and their types as the files hold them; nil when equality in
	// SQL is not equality of what is stored, so that only a scan finds every row.
	LookupKey() (columns []int, stored []types.Type)
	// Get finds rows by key; see table.Table. l.Keys are in stored form, the result's
	// columns in SQL form. At, Overlay, Options and SkipLevel0 of l are the
	// relation's.
	Get(ctx context.Context, l table.Lookup) (*vec.Batch, []int32, error)
}

var _ KeyedRelation = (*TableRelation)(nil)

// LookupKey implements KeyedRelation.
func (r *TableRelation) LookupKey() ([]int, []types.Type) {
	if len(r.sch.PrimaryKeys) == 0 || r.incremental != nil {
		return nil, nil
	}
	for _, o := range []string{"scan.fallback-branch", "scan.primary-branch"} {
		if r.sch.Options[o] != "" || r.dynamic[o] != "" {
			return nil, nil // rows come from two branches
		}
	}
	cols := make([]int, 0, len(r.sch.PrimaryKeys))
	ts := make([]types.Type, 0, len(r.sch.PrimaryKeys))
	for _, n := range r.sch.PrimaryKeys {
		i := r.sch.Fields.Index(n)
		if i < 0 || r.convert[i] != nil && r.convert[i].cast != nil {
			return nil, nil
		}
		t := r.sch.Fields[i].Type
		switch t.Kind {
		case types.Bool, types.TinyInt, types.Int2, types.Int4, types.Int8, types.Numeric, types.Text, types.Varchar,
			types.Bytea, types.Date, types.Timestamp, types.TimestampTZ:
		default:
			// CHAR: other engines store it with and without its blanks. FLOAT, DOUBLE: 0
			// and -0 are two keys. The others have no exact rule yet.
			return nil, nil
		}
		cols, ts = append(cols, i), append(ts, t)
	}
	return cols, ts
}

// Get implements KeyedRelation.
func (r *TableRelation) Get(ctx context.Context, l table.Lookup) (*vec.Batch, []int32, error) {
	l.At, l.SkipLevel0 = r.at, r.skipLevel0
	if l.Overlay == nil {
		l.Overlay = r.overlay
	}
	if len(r.dynamic) > 0 {
		l.Options = schema.Options(r.dynamic).With(l.Options)
	}
	b, which, err := r.store.Get(ctx, l)
	if err != nil {
		return nil, nil, r.named(err)
	}
	if r.converts {
		b, err = r.apply(b, l.Columns)
	}
	return b, which, err
}
