package catalog

import (
	"context"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

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
		if i < 0 || !r.keyed(i) {
			return nil, nil
		}
		t := r.sch.Fields[i].Type
		cols, ts = append(cols, i), append(ts, t)
	}
	return cols, ts
}

// keyed reports whether values of a column that are equal in SQL are found by what
// is stored, given the forms that Get tries: 0 and -0, every NaN, CHAR with and
// without its blanks, the spellings of a uuid.
func (r *TableRelation) keyed(i int) bool {
	switch r.sch.Fields[i].Type.Kind {
	case types.Bool, types.TinyInt, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Numeric, types.BpChar,
		types.Text, types.Varchar, types.Bytea, types.Date, types.Time, types.Timestamp, types.TimestampTZ:
	default:
		return false
	}
	c := r.convert[i]
	if c == nil {
		return true
	}
	switch c.to.Kind {
	case types.Varchar, types.Name, types.UUID, types.Numeric, types.Time:
		return true
	}
	return false // of jsonb, interval and timetz, values that are equal have many texts
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
	keys, of := r.spellings(l.Keys)
	l.Keys = keys
	b, which, err := r.store.Get(ctx, l)
	if of != nil {
		for i, k := range which {
			which[i] = of[k]
		}
	}
	if err != nil {
		return nil, nil, r.named(err)
	}
	if r.converts {
		b, err = r.apply(b, l.Columns)
	}
	return b, which, err
}

// spellings adds to keys with uuids those that other programs write. A uuid is
// stored as text: this server, and every program that asks its language for the
// text of a uuid, writes 32 lower-case digits with hyphens. Upper case, and both
// without hyphens, are tried too; no other spelling is a key. of says which of the
// keys asked for each is, nil = the same.
func (r *TableRelation) spellings(keys []arrow.Array) (out []arrow.Array, of []int32) {
	if !r.converts || len(keys) != len(r.sch.PrimaryKeys) {
		return keys, nil
	}
	for k, name := range r.sch.PrimaryKeys {
		c := r.sch.Fields.Index(name)
		if c < 0 || r.convert[c] == nil || r.convert[c].to.Kind != types.UUID {
			continue
		}
		if out == nil {
			out = slices.Clone(keys)
			of = make([]int32, keys[0].Len())
			for i := range of {
				of[i] = int32(i)
			}
		}
		var text []types.Datum
		var row []int32
		s := vec.ViewStr(vec.Decode(out[k]))
		for i := range out[k].Len() {
			if s.IsNull(i) {
				continue // equal to nothing
			}
			for _, x := range uuidSpellings(string(s.At(i))) {
				text, row = append(text, x), append(row, int32(i))
			}
		}
		now := make([]int32, len(row))
		for i, x := range row {
			now[i] = of[x]
		}
		of = now
		for j := range out {
			if j == k {
				out[j] = vec.FromDatums(r.sch.Fields[c].Type, text)
			} else {
				out[j] = vec.Take(out[j], row)
			}
		}
	}
	if out == nil {
		return keys, nil
	}
	return out, of
}

func uuidSpellings(s string) []string {
	bare, upper := strings.ReplaceAll(s, "-", ""), strings.ToUpper(s)
	if upper == s { // digits only
		return []string{s, bare}
	}
	return []string{s, upper, bare, strings.ToUpper(bare)}
}
