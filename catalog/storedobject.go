package catalog

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// ViewDef is the body of a stored object of kind View.
type ViewDef struct {
	// Query is SQL in which every relation is named with its schema and every star
	// is written out: what search paths and further columns are later does not count.
	Query   string       `json:"query"`
	Columns []ViewColumn `json:"columns"`
	// Uses are the relations that the query reads, and of each the columns.
	Uses    []ViewUse         `json:"uses,omitempty"`
	Options map[string]string `json:"options,omitempty"`
	Comment string            `json:"comment,omitempty"`
	// Created is when the view was made, in microseconds since 1970: dependents are
	// listed in this order.
	Created int64 `json:"created,omitempty"`
}

// ViewColumn is a column of a view.
type ViewColumn struct {
	Name    string     `json:"name"`
	Type    StoredType `json:"type"`
	Comment string     `json:"comment,omitempty"`
	Default string     `json:"default,omitempty"` // SQL; "" = none
}

// ViewUse is a relation that a view reads.
type ViewUse struct {
	Schema  string   `json:"schema"`
	Name    string   `json:"name"`
	Columns []string `json:"columns,omitempty"`
}

// ViewRelation is a stored view. It is bound by its query, never scanned.
type ViewRelation struct {
	obj  *objects.Object
	def  *ViewDef
	cols []Column
}

var _ View = (*ViewRelation)(nil)

// NewView makes the relation of a stored view.
func NewView(o *objects.Object) (*ViewRelation, error) {
	v := &ViewRelation{obj: o, def: &ViewDef{}}
	if err := o.Decode(v.def); err != nil {
		return nil, err
	}
	for i, c := range v.def.Columns {
		v.cols = append(v.cols, Column{
			Field:  types.Field{ID: -1, Name: c.Name, Type: c.Type.Type, Description: c.Comment},
			AttNum: int16(i + 1),
		})
	}
	return v, nil
}

// Schema returns the SQL schema's name.
func (v *ViewRelation) Schema() string { return v.obj.Schema }

// Name returns the view's name.
func (v *ViewRelation) Name() string { return v.obj.Name }

// OID returns the view's OID.
func (v *ViewRelation) OID() uint32 { return v.obj.OID }

// Kind returns v.
func (v *ViewRelation) Kind() byte { return 'v' }

// Columns returns the columns as they were when the view was made.
func (v *ViewRelation) Columns() []Column { return v.cols }

// Query returns the query.
func (v *ViewRelation) Query() string { return v.def.Query }

// Definition returns all that is stored. The caller must not change it.
func (v *ViewRelation) Definition() *ViewDef { return v.def }

// Comment returns the view's comment.
func (v *ViewRelation) Comment() string { return v.def.Comment }

// Plan fails: the planner reads the query.
func (v *ViewRelation) Plan(context.Context, table.Scan) (*table.Plan, error) {
	return nil, fmt.Errorf("view %q cannot be scanned", v.obj.Name)
}

// Read fails as Plan does.
func (v *ViewRelation) Read(context.Context, table.Scan, table.Split, table.ReadOptions) (table.SplitReader, error) {
	return nil, fmt.Errorf("view %q cannot be scanned", v.obj.Name)
}

// Stats knows nothing.
func (v *ViewRelation) Stats(context.Context, table.Scan) (*table.Stats, error) { return nil, nil }

// SequenceRelation is a sequence: one row that says where it stands.
type SequenceRelation struct {
	*Virtual
	obj   *objects.Object
	def   *objects.SequenceDef
	store *objects.Store
}

func newSequence(o *objects.Object, store *objects.Store) (*SequenceRelation, error) {
	r := &SequenceRelation{obj: o, def: &objects.SequenceDef{}, store: store}
	if err := o.Decode(r.def); err != nil {
		return nil, err
	}
	i8, b := types.Of(types.Int8).WithNotNull(true), types.Of(types.Bool).WithNotNull(true)
	fields := types.Schema{{ID: -1, Name: "last_value", Type: i8}, {ID: -1, Name: "log_cnt", Type: i8}, {ID: -1, Name: "is_called", Type: b}}
	r.Virtual = NewSystem(o.Schema, o.Name, fields, func(ctx context.Context, add func(...types.Datum)) error {
		last, called, err := r.Counter().Last(ctx, r.def)
		if err == nil {
			add(last, int64(0), called)
		}
		return err
	})
	r.oid, r.kind, r.rows = o.OID, 'S', 1
	return r, nil
}

// Definition returns the sequence's definition. The caller must not change it.
func (r *SequenceRelation) Definition() *objects.SequenceDef { return r.def }

// Comment returns the sequence's comment.
func (r *SequenceRelation) Comment() string { return r.def.Comment }

// Counter gives the sequence's values.
func (r *SequenceRelation) Counter() *objects.Counter { return r.store.Counter(r.obj.OID) }

// objectOf returns the view or sequence of a name, or ErrNoRelation: the very name,
// or else the only one that differs in case.
func objectOf(st *objects.State, store *objects.Store, sqlSchema, name string) (Relation, error) {
	o := findObject(st, sqlSchema, name)
	if o == nil {
		if n, ok := foldMatch(objectNames(st, sqlSchema), name); ok {
			o = findObject(st, sqlSchema, n)
		}
	}
	if o == nil {
		return nil, fmt.Errorf("relation %q: %w", name, ErrNoRelation)
	}
	return relationOf(o, store)
}

// relationOf makes the relation of a view or sequence.
func relationOf(o *objects.Object, store *objects.Store) (Relation, error) {
	if o.Kind == objects.View {
		return NewView(o)
	}
	return newSequence(o, store)
}

func findObject(st *objects.State, sqlSchema, name string) *objects.Object {
	if o := st.Get(objects.View, sqlSchema, name); o != nil {
		return o
	}
	return st.Get(objects.Sequence, sqlSchema, name)
}

// objectNames lists the views and sequences of a schema.
func objectNames(st *objects.State, sqlSchema string) []string {
	var out []string
	for _, kind := range []objects.Kind{objects.View, objects.Sequence} {
		for _, o := range st.List(kind) {
			if o.Schema == sqlSchema {
				out = append(out, o.Name)
			}
		}
	}
	return out
}

// withObjects adds the views and sequences of a schema to its tables' names.
func withObjects(st *objects.State, sqlSchema string, tables []string) []string {
	more := objectNames(st, sqlSchema)
	if len(more) == 0 {
		return tables
	}
	out := append(slices.Clone(tables), more...)
	slices.Sort(out)
	return slices.Compact(out)
}

// Resolve finds a table, one of its branches or one of its system tables, and pins
// it to a state; or a view or sequence.
func (c *Filesystem) Resolve(ctx context.Context, sqlSchema, name string, o ResolveOptions) (Relation, error) {
	rel, err := c.resolveTable(ctx, sqlSchema, name, o)
	if !errors.Is(err, ErrNoRelation) || strings.Contains(name, "$") {
		return rel, err
	}
	db, dberr := c.database(ctx, sqlSchema)
	if dberr != nil {
		return nil, err
	}
	st, serr := c.objects.State(ctx, true)
	if serr != nil {
		return nil, serr
	}
	return objectOf(st, c.objects, SchemaOf(db), name)
}

// Tables lists the relations of an SQL schema in name order: tables, views and
// sequences.
func (c *Filesystem) Tables(ctx context.Context, sqlSchema string) ([]string, error) {
	db, err := c.database(ctx, sqlSchema)
	if err != nil {
		return nil, err
	}
	out, err := c.tables(ctx, SchemaOf(db))
	if err != nil {
		return nil, err
	}
	st, err := c.objects.State(ctx, true)
	if err != nil {
		return nil, err
	}
	return withObjects(st, SchemaOf(db), out), nil
}

// ObjectCatalog is a Catalog that has stored objects.
type ObjectCatalog interface {
	Catalog
	// State returns the stored objects as the catalog's user sees them.
	State(ctx context.Context) (*objects.State, error)
}

// ObjectEditor changes stored objects together with tables.
type ObjectEditor interface {
	Editor
	ObjectCatalog
	// PutObject stores an object in place of the one of its kind and name; with OID 0
	// it keeps that one's or gets a new one.
	PutObject(ctx context.Context, o objects.Object) (*objects.Object, error)
	// DeleteObject takes an object away; one that is not there is fine.
	DeleteObject(ctx context.Context, kind objects.Kind, schema, name string) error
}

// State returns the stored objects, as of now.
func (c *Filesystem) State(ctx context.Context) (*objects.State, error) {
	return c.objects.State(ctx, true)
}
