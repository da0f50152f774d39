package pgcatalog

import (
	"context"
	"fmt"
	"slices"
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Fixed OIDs of PostgreSQL.
const (
	nsPgCatalog  = 11
	nsPublic     = 2200
	nsInfoSchema = 13207
	superuserOID = 10
	classClass   = 1259 // pg_class
	classType    = 1247
	classNS      = 2615
	classDB      = 1262
	classCons    = 2606
	heapAM       = 2
	btreeAM      = 403
	hashAM       = 405
	databaseOID  = 5
)

// NamespaceOID returns the OID of a schema.
func NamespaceOID(schema string) uint32 {
	switch schema {
	case "pg_catalog":
		return nsPgCatalog
	case "public":
		return nsPublic
	case "information_schema":
		return nsInfoSchema
	case "pg_toast":
		return 99
	}
	return catalog.OIDOf('n', "", schema)
}

// schemas lists every schema with the built-in ones.
func schemas(ctx context.Context, src Sources) ([]string, error) {
	user, err := src.Catalog().Schemas(ctx)
	if err != nil {
		return nil, err
	}
	out := []string{"information_schema", "pg_catalog"}
	seen := map[string]bool{"information_schema": true, "pg_catalog": true}
	for _, s := range user {
		if !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	if !seen["public"] {
		out = append(out, "public")
	}
	sort.Strings(out)
	return out, nil
}

// eachTable calls fn for every relation of the warehouse, schema by schema.
func eachTable(ctx context.Context, src Sources, fn func(rel catalog.Relation) error) error {
	l, err := src.Listing(ctx, false)
	if err != nil {
		return err
	}
	for _, s := range l.Schemas() {
		for _, rel := range l.Relations(s) {
			if cause := context.Cause(ctx); cause != nil {
				return cause
			}
			if err := fn(rel); err != nil {
				return err
			}
		}
	}
	return nil
}

// someRelations is up to how many relations are looked at one by one.
const someRelations = 64

// fresh calls fn for the relation that has the name of one in a listing of names.
func (f *Filler) fresh(rel catalog.Relation, fn func(rel catalog.Relation) error) error {
	now, err := f.Src.Catalog().Resolve(f.Ctx, rel.Schema(), rel.Name(), catalog.ResolveOptions{})
	if err != nil {
		return context.Cause(f.Ctx) // left out, as in a listing
	}
	return fn(now)
}

// eachName calls fn for every relation; all that is sure of them is their names.
func (f *Filler) eachName(fn func(rel catalog.Relation) error) error {
	l, err := f.Src.Listing(f.Ctx, true)
	if err != nil {
		return err
	}
	for _, s := range l.Schemas() {
		for _, rel := range l.Relations(s) {
			if err := fn(rel); err != nil {
				return err
			}
		}
	}
	return nil
}

// wantsOnly reports whether the query uses no other columns.
func (f *Filler) wantsOnly(columns ...string) bool {
	for i, c := range f.fields {
		if f.want(i) && !slices.Contains(columns, c.Name) {
			return false
		}
	}
	return true
}

// eachOf calls fn for every relation that a row of the query can be about, whose
// column has the OID of the relation or of one of its indexes.
func (f *Filler) eachOf(column string, fn func(rel catalog.Relation) error) error {
	values, ok := f.only(column)
	if !ok {
		return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
			use := f.may(column, int64(rel.OID()))
			if !use {
				for _, x := range indexesOf(rel) {
					use = use || f.may(column, int64(x.oid))
				}
			}
			if !use {
				return nil
			}
			return fn(rel)
		})
	}
	few := len(values) <= someRelations
	l, err := f.Src.Listing(f.Ctx, few)
	if err != nil {
		return err
	}
	seen := map[catalog.Relation]bool{}
	for _, v := range values {
		n, ok := v.(int64)
		if !ok || n < catalog.FirstUserOID {
			continue
		}
		rel := l.ByOID(uint32(n))
		if rel == nil {
			rel = directoryOf(l).indexes[uint32(n)].Rel
		}
		if rel == nil && few {
			o, _ := ByOID(f.Ctx, f.Src, uint32(n)) // an index may have been made since
			rel = o.Rel
		}
		if rel == nil || seen[rel] {
			continue
		}
		seen[rel] = true
		call := fn
		if few {
			call = func(rel catalog.Relation) error { return f.fresh(rel, fn) }
		}
		if err := call(rel); err != nil {
			return err
		}
	}
	return nil
}

// eachNamed calls fn for every relation that a row of the query can be about, whose
// columns have the relation's schema and name.
func (f *Filler) eachNamed(schema, name string, fn func(rel catalog.Relation) error) error {
	schemas, some := f.only(schema)
	names, few := f.only(name)
	if !some && !few {
		return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
			if !f.may(schema, rel.Schema()) || !f.may(name, rel.Name()) {
				return nil
			}
			return fn(rel)
		})
	}
	few = few && len(names) <= someRelations
	l, err := f.Src.Listing(f.Ctx, few)
	if err != nil {
		return err
	}
	for _, s := range l.Schemas() {
		if some && !slices.Contains(schemas, types.Datum(s)) {
			continue
		}
		if !few {
			for _, rel := range l.Relations(s) {
				if err := fn(rel); err != nil {
					return err
				}
			}
			continue
		}
		for _, n := range names {
			n, _ := n.(string)
			if rel := l.Find(s, n); rel != nil {
				if err := f.fresh(rel, fn); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// only returns the values that a column must have for the query to use a row; ok is
// false when any will do.
func (f *Filler) only(column string) (values []types.Datum, ok bool) {
	found := false
	f.leaves(column, func(l *predicate.Leaf) {
		if (l.Op == predicate.Eq || l.Op == predicate.In) && (!found || len(l.Args) < len(values)) {
			values, found = l.Args, true
		}
	})
	if found {
		values = slices.Clone(values)
		slices.SortFunc(values, func(a, b types.Datum) int { return strings.Compare(fmt.Sprint(a), fmt.Sprint(b)) })
		values = slices.Compact(values)
	}
	return values, found
}

// may reports whether the query can use a row with a value in a column.
func (f *Filler) may(column string, v types.Datum) bool {
	may := true
	f.leaves(column, func(l *predicate.Leaf) {
		if l.Set != nil && !l.Set.Intersects(v, v) {
			may = false
		}
	})
	return may
}

// leaves calls fn for the conditions on a column that all rows of the query meet.
func (f *Filler) leaves(column string, fn func(l *predicate.Leaf)) {
	at, ok := f.index[column]
	if !ok {
		return
	}
	var walk func(n predicate.Node)
	walk = func(n predicate.Node) {
		switch n := n.(type) {
		case *predicate.Leaf:
			if n.Col == at {
				fn(n)
			}
		case *predicate.And:
			for _, a := range n.Args {
				walk(a)
			}
		}
	}
	walk(f.filter)
}

// directory finds what a listing holds besides relations.
type directory struct {
	indexes     map[uint32]Object // by OID
	indexNames  map[[2]string]uint32
	constraints map[uint32]constraintOf
	rowTypes    map[uint32]catalog.Relation
}

type constraintOf struct {
	rel     catalog.Relation
	primary bool // the primary key; else c
	c       catalog.Constraint
}

// directoryOf makes the directory of a listing once.
func directoryOf(l *catalog.Listing) *directory {
	return l.Derived(func() any {
		d := &directory{
			indexes: map[uint32]Object{}, indexNames: map[[2]string]uint32{}, constraints: map[uint32]constraintOf{}, rowTypes: map[uint32]catalog.Relation{},
		}
		for _, s := range l.Schemas() {
			for _, rel := range l.Relations(s) {
				d.rowTypes[rowTypeOID(rel)] = rel
				for _, x := range indexesOf(rel) {
					d.indexes[x.oid] = Object{s, x.name, rel, true, &x}
					d.indexNames[[2]string{s, x.name}] = x.oid
					if x.primary {
						d.constraints[ConstraintOID(rel)] = constraintOf{rel: rel, primary: true}
					}
				}
				for _, c := range kept(rel) {
					d.constraints[keptOID(rel, c)] = constraintOf{rel: rel, c: c}
				}
			}
		}
		return d
	}).(*directory)
}

// hasDefaults says whether a column of the relation may have a default.
func hasDefaults(rel catalog.Relation) bool {
	t, ok := rel.(*catalog.ListedTable)
	return !ok || t.HasDefaults()
}

// columnCount is the number of a relation's columns.
func columnCount(rel catalog.Relation) int {
	if t, ok := rel.(*catalog.ListedTable); ok {
		return t.ColumnCount()
	}
	return len(rel.Columns())
}

// key returns the primary key of a relation, nil when it has none.
func key(rel catalog.Relation) []string {
	if t, ok := rel.(catalog.TableInfo); ok {
		return t.PrimaryKey()
	}
	return nil
}

// KeyName is the name of a primary key's constraint and index.
func KeyName(table string) string { return table + "_pkey" }

// IndexOID and ConstraintOID are the OIDs behind a table's primary key.
func IndexOID(rel catalog.Relation) uint32 {
	return catalog.OIDOf('i', rel.Schema(), KeyName(rel.Name()))
}

// ConstraintOID returns the OID of the primary key's constraint.
func ConstraintOID(rel catalog.Relation) uint32 {
	return catalog.OIDOf('c', rel.Schema(), KeyName(rel.Name()))
}

func rowTypeOID(rel catalog.Relation) uint32 { return catalog.OIDOf('t', rel.Schema(), rel.Name()) }

func attNum(rel catalog.Relation, column string) int64 {
	for _, c := range rel.Columns() {
		if c.Name == column {
			return int64(c.AttNum)
		}
	}
	return 0
}
