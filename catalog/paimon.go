package catalog

import (
	"context"
	"errors"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// TableRelation is a Paimon table pinned to one state and one schema.
type TableRelation struct {
	sqlSchema, name string
	store           *table.FileStore
	sch             *schema.Table
	at              snapshot.Ref
	dynamic         map[string]string
	skipLevel0      bool
	incremental     *table.Incremental // a range of changes is read, not the state
	overlay         *commit.Changes
	cols            []Column
	convert         []*conversion // by column; nil = as stored
	converts        bool
}

var _ TableInfo = (*TableRelation)(nil)

func newTableRelation(sqlSchema, name string, store *table.FileStore, sch *schema.Table, at snapshot.Ref, o ResolveOptions) *TableRelation {
	r := &TableRelation{
		sqlSchema: sqlSchema, name: name, store: store, sch: sch, at: at, dynamic: o.Dynamic,
		skipLevel0: !o.FreshReads, convert: make([]*conversion, len(sch.Fields)),
	}
	if o.Overlay != nil {
		r.overlay = o.Overlay(store.Dir(), at.Branch)
	}
	for i, f := range sch.Fields {
		notNull := f.Type.NotNull
		if c := conversionOf(f.Type, sch.Options["pg-type."+f.Name]); c != nil {
			r.convert[i], r.converts = c, true
			f.Type = c.to.WithNotNull(notNull)
		}
		f.Type = f.Type.SQL()
		r.cols = append(r.cols, Column{Field: f, NotNull: notNull, AttNum: int16(i + 1)})
	}
	return r
}

// Schema returns the SQL schema's name.
func (r *TableRelation) Schema() string { return r.sqlSchema }

// Name returns the table's name, with a branch suffix if it has one.
func (r *TableRelation) Name() string { return r.name }

// OID returns the relation's OID, which depends on its name only.
func (r *TableRelation) OID() uint32 { return OIDOf('r', r.sqlSchema, r.name) }

// Kind is 'r'.
func (r *TableRelation) Kind() byte { return 'r' }

// Columns returns the columns in schema order.
func (r *TableRelation) Columns() []Column { return r.cols }

// PrimaryKey returns the primary key in declared order, nil for append tables.
func (r *TableRelation) PrimaryKey() []string { return r.sch.PrimaryKeys }

// PartitionKeys returns the partition columns.
func (r *TableRelation) PartitionKeys() []string { return r.sch.PartitionKeys }

// Options returns the table's options; not to be changed.
func (r *TableRelation) Options() map[string]string { return r.sch.Options }

// Comment returns the table's comment.
func (r *TableRelation) Comment() string { return r.sch.Comment }

// SchemaID returns the id of the schema that the relation is read with.
func (r *TableRelation) SchemaID() int64 { return r.sch.ID }

// At returns the state that the relation is pinned to.
func (r *TableRelation) At() snapshot.Ref { return r.at }

// Table returns the table behind the relation.
func (r *TableRelation) Table() table.Table { return r.store }

// Store returns the same, with its metadata.
func (r *TableRelation) Store() *table.FileStore { return r.store }

// TableSchema returns the Paimon schema that the relation is read with.
func (r *TableRelation) TableSchema() *schema.Table { return r.sch }

// Overlay returns what the session's transaction wrote to the table and has not
// committed; nil when it wrote nothing. Its scans show it.
func (r *TableRelation) Overlay() *commit.Changes { return r.overlay }

// scan lays what the relation is pinned to over a scan.
func (r *TableRelation) scan(s table.Scan) table.Scan {
	s.At = r.at
	if s.Overlay == nil {
		s.Overlay = r.overlay
	}
	s.SkipLevel0 = r.skipLevel0
	s.Incremental = r.incremental
	if len(r.dynamic) > 0 {
		s.Options = schema.Options(r.dynamic).With(s.Options)
	}
	if r.incremental != nil {
		s.Extremes, s.Order = nil, nil
	}
	if r.converts {
		s = r.unconverted(s)
		s.Filter = r.stored(s.Filter)
		if s.Late != nil {
			s.Late = lateStored{r, s.Late}
		}
	}
	return s
}

// stored rewrites a filter on SQL values to one on stored values; leaves of
// columns that are converted pass only where that is exact.
func (r *TableRelation) stored(n predicate.Node) predicate.Node {
	return predicate.RewriteMaps(predicate.Simplify(n), func(l *predicate.Leaf) predicate.Node {
		if l.Col < 0 || l.Col >= len(r.convert) || r.convert[l.Col] == nil {
			return l
		}
		c := *l
		c.Type = r.sch.Fields[l.Col].Type
		switch {
		case r.convert[l.Col].sameOrder:
			return &c
		case l.Op == predicate.IsNull || l.Op == predicate.IsNotNull && l.Set == nil:
			return &c
		case r.convert[l.Col].to.Kind == types.UUID:
			return uuidLeaf(l, c.Type)
		}
		return nil
	}, func(m *predicate.MapLeaf) predicate.Node {
		if m.Col < 0 || m.Col >= len(r.convert) || r.convert[m.Col] == nil {
			return m
		}
		return nil
	})
}

type lateStored struct {
	r    *TableRelation
	late table.LateFilter
}

// Poll rewrites the newest predicate.
func (l lateStored) Poll() predicate.Node { return l.r.stored(l.late.Poll()) }

// Plan splits a scan of the pinned state.
func (r *TableRelation) Plan(ctx context.Context, s table.Scan) (*table.Plan, error) {
	p, err := r.store.Plan(ctx, r.scan(s))
	return p, r.named(err)
}

// Read reads one split of Plan.
func (r *TableRelation) Read(ctx context.Context, s table.Scan, p table.Split, o table.ReadOptions) (table.SplitReader, error) {
	read := r.readConverted
	if !r.converts {
		read = r.readStored
	}
	sr, err := read(ctx, s, p, o)
	return sr, r.named(err)
}

func (r *TableRelation) readStored(ctx context.Context, s table.Scan, p table.Split, o table.ReadOptions) (table.SplitReader, error) {
	return r.store.Read(ctx, r.scan(s), p, o)
}

// named tells a user who joins several tables which of them cannot be read.
func (r *TableRelation) named(err error) error {
	var u *fileio.UnsupportedError
	if err == nil || !errors.As(err, &u) || u.Table != "" {
		return err
	}
	return &fileio.UnsupportedError{Feature: u.Feature, Table: r.sqlSchema + "." + r.name}
}

// Stats returns estimates of the pinned state.
func (r *TableRelation) Stats(ctx context.Context, _ table.Scan) (*table.Stats, error) {
	st, err := r.store.Stats(ctx, r.at)
	if err != nil || st == nil || !r.converts && r.overlay == nil {
		return st, err
	}
	out := *st
	if r.overlay != nil {
		addOverlay(&out, r.overlay)
	}
	out.Columns = make(map[int32]table.ColumnStats, len(st.Columns))
	for id, c := range st.Columns {
		out.Columns[id] = c
	}
	for i, c := range r.convert {
		if c != nil && !c.sameOrder {
			x := out.Columns[r.sch.Fields[i].ID]
			x.Min, x.Max = nil, nil
			out.Columns[r.sch.Fields[i].ID] = x
		}
	}
	return &out, nil
}

// addOverlay counts the files of a transaction in; its values may lie outside the
// bounds that the committed files have, so those are no longer known.
func addOverlay(st *table.Stats, c *commit.Changes) {
	for _, e := range c.Files {
		sign := int64(1)
		if e.Kind == manifest.Delete {
			sign = -1
		}
		st.Rows += sign * e.File.Rows
		st.Bytes += sign * e.File.Size
	}
	if c.Overwrite != nil {
		st.Rows = max(st.Rows, 0)
	}
	st.Rows, st.Bytes = max(st.Rows, 0), max(st.Bytes, 0)
	cols := make(map[int32]table.ColumnStats, len(st.Columns))
	for id, x := range st.Columns {
		x.Min, x.Max = nil, nil
		cols[id] = x
	}
	st.Columns = cols
}

// columnTypes returns the types of scan columns as SQL sees them.
func (r *TableRelation) fields(b types.Schema, columns []int) types.Schema {
	out := append(types.Schema(nil), b...)
	for i, c := range columns {
		if c >= 0 && r.convert[c] != nil {
			out[i] = r.cols[c].Field
		}
	}
	return out
}

// unconverted leaves out of a scan what would take stored values for SQL values.
func (r *TableRelation) unconverted(s table.Scan) table.Scan {
	converted := func(c int) bool { return c >= 0 && c < len(r.convert) && r.convert[c] != nil }
	column := func(pos int) int {
		if s.Columns == nil {
			return pos
		}
		if pos < 0 || pos >= len(s.Columns) {
			return -1
		}
		return s.Columns[pos]
	}
	if s.Filter != nil && s.Exact {
		// What cannot be said of stored values is left out of the filter.
		predicate.RewriteMaps(s.Filter, func(l *predicate.Leaf) predicate.Node {
			s.Exact = s.Exact && !converted(l.Col)
			return l
		}, func(m *predicate.MapLeaf) predicate.Node {
			s.Exact = s.Exact && !converted(m.Col)
			return m
		})
		if !s.Exact {
			s.Extremes, s.Limit = nil, -1
		}
	}
	if s.Extremes != nil {
		for _, pos := range s.Extremes.Columns {
			if converted(column(pos)) {
				s.Extremes = nil
				break
			}
		}
	}
	if s.Order != nil {
		if c := column(s.Order.Column); converted(c) {
			// Values that differ where they are stored may be equal here.
			o := *s.Order
			o.Rows = 0
			if s.Order = &o; !r.convert[c].sameOrder {
				s.Order = nil
			}
		}
	}
	if s.Partitions != nil {
		for _, k := range s.Partitions.Columns() {
			if k < 0 || k >= len(r.sch.PartitionKeys) || converted(r.sch.Fields.Index(r.sch.PartitionKeys[k])) {
				s.Partitions = nil
				break
			}
		}
	}
	return s
}
