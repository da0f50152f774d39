package pgcatalog

import (
	"context"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// boolArg is an argument of type boolean.
func boolArg(args []types.Datum, i int) (v, ok bool) {
	if i < len(args) {
		v, ok = args[i].(bool)
	}
	return v, ok
}

func datumText(n int) string { return strconv.Itoa(n) }

// Object is what an OID of pg_class names.
type Object struct {
	Schema, Name string
	Rel          catalog.Relation // nil for the catalog's own relations
	Index        bool             // one of Rel
	index        *tableIndex      // which
}

// ByOID finds the object of pg_class with an OID, or the index of a primary key's
// constraint.
func ByOID(ctx context.Context, src Sources, oid uint32) (Object, bool) {
	return byOID(ctx, src, oid, false)
}

// NameOf finds the same object; all that is sure of it is its name.
func NameOf(ctx context.Context, src Sources, oid uint32) (Object, bool) {
	if o, ok := byOID(ctx, src, oid, true); ok {
		return o, true
	}
	return byOID(ctx, src, oid, false)
}

func byOID(ctx context.Context, src Sources, oid uint32, namesOnly bool) (Object, bool) {
	if oid < catalog.FirstUserOID {
		for i := range builtin() {
			if builtin()[i].RelOID() == oid {
				return Object{Schema: builtin()[i].Schema, Name: builtin()[i].Name}, true
			}
		}
		return Object{}, false
	}
	l, err := src.Listing(ctx, namesOnly)
	if err != nil {
		return Object{}, false
	}
	if rel := l.ByOID(oid); rel != nil {
		return Object{Schema: rel.Schema(), Name: rel.Name(), Rel: rel}, true
	}
	d := directoryOf(l)
	if o, ok := d.indexes[oid]; ok {
		return o, true
	}
	if c := d.constraints[oid]; c.primary {
		return d.indexes[IndexOID(c.rel)], true
	}
	return Object{}, false
}

// ByName finds the OID of a relation or index by its schema and very name.
func ByName(ctx context.Context, src Sources, schema, name string) (uint32, bool) {
	if d, ok := lookup(schema, name); ok {
		return d.RelOID(), true
	}
	l, err := src.Listing(ctx, true)
	if err != nil {
		return 0, false
	}
	if rel := l.Find(schema, name); rel != nil {
		return rel.OID(), true
	}
	if oid, ok := directoryOf(l).indexNames[[2]string{schema, name}]; ok {
		return oid, true
	}
	if len(l.Relations(schema)) == 0 {
		return 0, false
	}
	if l, err = src.Listing(ctx, false); err != nil { // it may have been made since
		return 0, false
	}
	if strings.Contains(name, "$") { // a branch or a system table
		if rel, err := src.Catalog().Resolve(ctx, schema, name, catalog.ResolveOptions{}); err == nil {
			return rel.OID(), true
		}
	}
	oid, ok := directoryOf(l).indexNames[[2]string{schema, name}]
	return oid, ok
}

// visible names relations as SQL, with their schema where the search path does not
// lead to them; nil when the source does not know.
func visible(src Sources) func(schema, name string) string {
	if n, ok := src.(interface {
		VisibleName(schema, name string) string
	}); ok {
		return n.VisibleName
	}
	return nil
}

// Text answers the catalog functions whose result is text; nil is NULL. Unknown
// functions and OIDs are NULL, as in PostgreSQL.
func Text(ctx context.Context, src Sources, fn string, args []types.Datum) (*string, error) {
	arg := func(i int) int64 {
		if i < len(args) {
			if n, ok := args[i].(int64); ok {
				return n
			}
		}
		return 0
	}
	str := func(s string) (*string, error) { return &s, nil }
	switch fn {
	case "pg_get_userbyid":
		for _, r := range src.Roles() {
			if int64(r.OID) == arg(0) {
				return str(r.Name)
			}
		}
		return str("unknown (OID=" + strconv.FormatInt(arg(0), 10) + ")")
	case "to_regproc", "regprocout":
		// The input and output functions of types, which cannot be called here.
		for _, line := range lines(ioprocsText) {
			w := fields(line)
			if len(args) > 0 && fn == "to_regproc" && args[0] == types.Datum(w[1]) {
				return str(w[0])
			}
			if fn == "regprocout" && num(w[0]) == arg(0) {
				return str(w[1])
			}
		}
		return nil, nil
	case "pg_get_function_result", "pg_get_function_arguments", "pg_get_function_identity_arguments":
		src, ok := src.(interface{ Functions() []Function })
		if !ok {
			return nil, nil
		}
		for _, f := range src.Functions() {
			if int64(f.OID) != arg(0) {
				continue
			}
			if fn == "pg_get_function_result" {
				if f.Set {
					return str("SETOF " + f.Ret.PlainName())
				}
				return str(f.Ret.PlainName())
			}
			var out []string
			for _, t := range f.Args {
				out = append(out, t.PlainName())
			}
			return str(strings.Join(out, ", "))
		}
	case "pg_get_expr":
		if len(args) > 0 {
			if s, ok := args[0].(string); ok {
				return &s, nil
			}
		}
	case "pg_get_constraintdef":
		if o, ok := ByOID(ctx, src, uint32(arg(0))); ok && o.Index && o.index.primary {
			return str("PRIMARY KEY (" + keyList(o.Rel) + ")")
		}
		l, err := src.Listing(ctx, false)
		if err != nil {
			return nil, err
		}
		if x, ok := directoryOf(l).constraints[uint32(arg(0))]; ok && !x.primary {
			if pretty, _ := boolArg(args, 1); pretty && x.c.Kind == catalog.CheckConstraint {
				return str("CHECK (" + x.c.Expr + ")")
			}
			return str(ConstraintDef(x.c, visible(src)))
		}
		return nil, nil
	case "reltype":
		if x, ok := ByOID(ctx, src, uint32(arg(0))); ok && x.Rel != nil && !x.Index {
			return str(datumText(int(rowTypeOID(x.Rel))))
		}
	case "rowtypename":
		l, err := src.Listing(ctx, false)
		if err != nil {
			return nil, err
		}
		if rel := directoryOf(l).rowTypes[uint32(arg(0))]; rel != nil {
			if name := visible(src); name != nil {
				return str(name(rel.Schema(), rel.Name()))
			}
			return str(quoteIdent(rel.Name()))
		}
	case "pg_get_indexdef":
		o, ok := ByOID(ctx, src, uint32(arg(0)))
		if !ok || !o.Index {
			return nil, nil
		}
		if n := arg(1); n > 0 {
			if int(n) <= len(o.index.columns) {
				return str(o.index.columns[n-1].def())
			}
			return str("")
		}
		return str(o.index.def())
	case "pg_get_viewdef":
		if o, ok := ByOID(ctx, src, uint32(arg(0))); ok && o.Rel != nil {
			if v, ok := o.Rel.(catalog.View); ok {
				pretty, given := boolArg(args, 1)
				return str(ViewText(ctx, src, v, pretty || !given && len(args) > 1))
			}
		}
	case "obj_description":
		class := int64(classClass)
		if len(args) > 1 {
			if s, ok := args[1].(string); ok && s != "pg_class" {
				class = 0
				if s == "pg_namespace" {
					class = classNS
				}
			}
		}
		if class == classNS {
			switch arg(0) {
			case nsPublic:
				return str("standard public schema")
			case nsPgCatalog:
				return str("system catalog schema")
			}
			return nil, nil
		}
		if class != classClass {
			return nil, nil
		}
		if o, ok := ByOID(ctx, src, uint32(arg(0))); ok && o.Rel != nil && !o.Index {
			if c := commentOf(o.Rel); c != "" {
				return str(c)
			}
		}
	case "col_description":
		if o, ok := ByOID(ctx, src, uint32(arg(0))); ok && o.Rel != nil && !o.Index {
			for _, c := range o.Rel.Columns() {
				if int64(c.AttNum) == arg(1) && c.Description != "" {
					return str(c.Description)
				}
			}
		}
	}
	return nil, nil
}
