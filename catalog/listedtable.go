package catalog

import (
	"context"

	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// ListedTable is a table as a listing knows it: what its latest schema says, but for
// the columns, which are read when somebody asks. It is pinned to no state; scans and
// estimates are of the newest one.
type ListedTable struct {
	c                    *Filesystem
	sqlSchema, name, dir string
	oid                  uint32
	id                   int64 // of the schema
	sum                  uint64
	columns              int
	pk, parts            []string
	options              map[string]string
	comment              string
	defaults, described  bool // of some column
}

var _ TableInfo = (*ListedTable)(nil)

func newListed(c *Filesystem, sqlSchema, name, dir string, sum uint64, t *schema.Table) *ListedTable {
	l := &ListedTable{
		c: c, sqlSchema: sqlSchema, name: name, dir: dir, oid: OIDOf('r', sqlSchema, name), id: t.ID, sum: sum,
		columns: len(t.Fields), pk: t.PrimaryKeys, parts: t.PartitionKeys, options: t.Options, comment: t.Comment,
	}
	for _, f := range t.Fields {
		_, _, ok := DefaultOf(f, t.Options)
		l.defaults, l.described = l.defaults || ok, l.described || f.Description != ""
	}
	return l
}

// load reads the schema that the table was listed with; nil when it is gone.
func (t *ListedTable) load(ctx context.Context) *TableRelation {
	if r, ok := t.c.listing.columns.Get(t); ok {
		return r
	}
	raw, err := t.c.env.IO.ReadFile(ctx, schemaFile(t.dir, t.id))
	if err != nil {
		return nil
	}
	s, err := schema.Parse(raw)
	if err != nil || s.ID != t.id {
		return nil
	}
	r := newTableRelation(t.sqlSchema, t.name, t.c.store(t.dir), s, snapshot.Ref{}, ResolveOptions{})
	t.c.listing.columns.Put(t, r, int64(len(r.cols)+1))
	return r
}

// Pin resolves the table as Catalog.Resolve does.
func (t *ListedTable) Pin(ctx context.Context) (*TableRelation, error) {
	store, err := t.c.current(ctx, t.dir, "")
	if err != nil {
		return nil, err
	}
	rel, err := t.c.relation(ctx, t.sqlSchema, t.name, "", "", store, ResolveOptions{})
	if err != nil {
		return nil, err
	}
	return rel.(*TableRelation), nil
}

// Pinned returns a relation of a listing as a table pinned to a state, nil when it is
// no table.
func Pinned(ctx context.Context, rel Relation) (*TableRelation, error) {
	switch t := rel.(type) {
	case *TableRelation:
		return t, nil
	case *ListedTable:
		return t.Pin(ctx)
	}
	return nil, nil
}

// Schema returns the SQL schema's name.
func (t *ListedTable) Schema() string { return t.sqlSchema }

// Name returns the table's name.
func (t *ListedTable) Name() string { return t.name }

// OID returns the relation's OID, which depends on its name only.
func (t *ListedTable) OID() uint32 { return t.oid }

// Kind is 'r'.
func (t *ListedTable) Kind() byte { return 'r' }

// ColumnCount is the number of columns.
func (t *ListedTable) ColumnCount() int { return t.columns }

// HasDefaults says whether a column has a default.
func (t *ListedTable) HasDefaults() bool { return t.defaults }

// HasComments says whether a column has a comment.
func (t *ListedTable) HasComments() bool { return t.described }

// Columns reads the columns; there are none when the table was dropped meanwhile.
func (t *ListedTable) Columns() []Column {
	if r := t.load(context.Background()); r != nil {
		return r.cols
	}
	return nil
}

// PrimaryKey returns the primary key in declared order, nil for append tables.
func (t *ListedTable) PrimaryKey() []string { return t.pk }

// PartitionKeys returns the partition columns.
func (t *ListedTable) PartitionKeys() []string { return t.parts }

// Options returns the table's options; not to be changed.
func (t *ListedTable) Options() map[string]string { return t.options }

// Comment returns the table's comment.
func (t *ListedTable) Comment() string { return t.comment }

// SchemaID returns the id of the schema.
func (t *ListedTable) SchemaID() int64 { return t.id }

// At is the newest state.
func (t *ListedTable) At() snapshot.Ref { return snapshot.Ref{} }

// Table returns the table behind the relation.
func (t *ListedTable) Table() table.Table { return t.c.store(t.dir) }

// Plan splits a scan of the newest state.
func (t *ListedTable) Plan(ctx context.Context, s table.Scan) (*table.Plan, error) {
	r, err := t.Pin(ctx)
	if err != nil {
		return nil, err
	}
	return r.Plan(ctx, s)
}

// Read reads one split of Plan.
func (t *ListedTable) Read(ctx context.Context, s table.Scan, p table.Split, o table.ReadOptions) (table.SplitReader, error) {
	r, err := t.Pin(ctx)
	if err != nil {
		return nil, err
	}
	return r.Read(ctx, s, p, o)
}

// Stats returns estimates of the newest state.
func (t *ListedTable) Stats(ctx context.Context, s table.Scan) (*table.Stats, error) {
	r, err := t.Pin(ctx)
	if err != nil {
		return nil, err
	}
	return r.Stats(ctx, s)
}
