package pgcatalog

import (
	"context"
	"slices"
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// pageBytes is the size of PostgreSQL's pages, in which pg_class counts.
const pageBytes = 8192

// fillClass lists tables, their primary keys as indexes, and the catalog itself.
func fillClass(f *Filler) error {
	for i := range builtin() {
		d := &builtin()[i]
		f.Row("oid", d.RelOID(), "relname", d.Name, "relnamespace", NamespaceOID(d.Schema), "relowner", superuserOID, "relacl", f.acl(roles.RelationKey(d.Schema, d.Name), roles.Relation),
			"relam", amOf(d.Kind), "relkind", d.Kind, "relpersistence", "p", "relispopulated", true, "relreplident", "n",
			"relnatts", len(d.Fields), "reltuples", -1.0)
	}
	kinds, some := f.only("relkind")
	indexed := !some || slices.Contains(kinds, types.Datum("i"))
	each := func(fn func(catalog.Relation) error) error { return f.eachOf("oid", fn) }
	if !indexed && f.wantsOnly("oid", "relname", "relnamespace", "relowner", "relkind", "relam", "relpersistence", "reltype", "relacl") {
		each = f.eachName
	}
	return each(func(rel catalog.Relation) error {
		tuples, pages := -1.0, int64(0)
		if f.Wants("reltuples") || f.Wants("relpages") {
			if st, err := rel.Stats(f.Ctx, table.Scan{Limit: -1}); err == nil && st != nil {
				tuples, pages = float64(st.Rows), (st.Bytes+pageBytes-1)/pageBytes
			}
		}
		var opts types.Datum
		replident := "d"
		switch t := rel.(type) {
		case catalog.TableInfo:
			if f.Wants("reloptions") {
				opts = optionList(t.Options())
			}
		case *catalog.ViewRelation:
			opts, replident, tuples, pages = optionList(t.Definition().Options), "n", 0, 0
		default:
			replident = "n"
		}
		nchecks, foreign := checks(rel)
		indexes := indexesOf(rel)
		persistence := "p"
		if strings.HasPrefix(rel.Schema(), "pg_temp_") {
			persistence = "t"
		}
		f.Row("oid", rel.OID(), "relname", rel.Name(), "relchecks", nchecks, "relhastriggers", foreign, "relnamespace", NamespaceOID(rel.Schema()), "reltype", rowTypeOID(rel),
			"relowner", f.ownerOf(rel), "relacl", f.relACL(rel), "relam", amOf(rel.Kind()), "reltuples", tuples, "relpages", pages, "relhasindex", len(indexes) > 0,
			"relpersistence", persistence, "relkind", rel.Kind(), "relnatts", columnCount(rel), "relispopulated", true,
			"relreplident", replident, "reloptions", opts, "relhasrules", rel.Kind() == 'v')
		if !indexed {
			return nil
		}
		for _, x := range indexes {
			f.Row("oid", x.oid, "relname", x.name, "relnamespace", NamespaceOID(rel.Schema()),
				"relowner", f.ownerOf(rel), "relam", x.am(), "reltuples", tuples, "relpersistence", persistence, "relkind", "i",
				"relnatts", len(x.columns), "relispopulated", true, "relreplident", "n")
		}
		return nil
	})
}

func amOf(kind byte) int {
	if kind == 'r' {
		return heapAM
	}
	return 0
}

func optionList(m map[string]string) types.Datum {
	if len(m) == 0 {
		return nil
	}
	out := make([]string, 0, len(m))
	for k, v := range m {
		// Constraints, defaults and types are shown where PostgreSQL shows them.
		if strings.HasPrefix(k, "pg-constraint.") || strings.HasPrefix(k, "pg-default.") || strings.HasPrefix(k, "pg-identity.") || strings.HasPrefix(k, "pg-type.") || strings.HasPrefix(k, catalog.IndexPrefix) {
			continue
		}
		out = append(out, k+"="+v)
	}
	if len(out) == 0 {
		return nil
	}
	sort.Strings(out)
	return datum(out)
}

// fillAttribute lists the columns of everything that fillClass lists.
func fillAttribute(f *Filler) error {
	one := func(rel uint32, name string, t types.Type, num int, notNull, hasDef bool, identity string, acl types.Datum) {
		i := t.Info()
		storage := "p"
		if i.Len < 0 {
			storage = "x"
		}
		ndims := 0
		if t.Kind == types.Array && !t.OnWireAsJSON() {
			ndims = 1
		}
		f.Row("attrelid", rel, "attname", name, "atttypid", i.OID, "attstattarget", -1, "attlen", i.Len, "attnum", num,
			"attndims", ndims, "attcacheoff", -1, "atttypmod", t.PGTypmod(), "attbyval", i.ByVal, "attalign", i.Align,
			"attstorage", storage, "attnotnull", notNull, "atthasdef", hasDef, "attislocal", true, "attidentity", identity, "attcollation", collationOf(t), "attacl", acl)
	}
	for i := range builtin() {
		d := &builtin()[i]
		for j, c := range d.Fields {
			one(d.RelOID(), c.Name, c.Type, j+1, c.Type.NotNull, false, "", nil)
		}
	}
	return f.eachOf("attrelid", func(rel catalog.Relation) error {
		byName := map[string]catalog.Column{}
		for _, c := range rel.Columns() {
			_, hasDef := DefaultText(f.Ctx, f.Src, rel, c)
			one(rel.OID(), c.Name, c.Type, int(c.AttNum), c.NotNull, hasDef, identityOf(rel, c.Name), f.columnACL(rel, c.Name))
			byName[c.Name] = c
		}
		for _, x := range indexesOf(rel) {
			for i, c := range x.columns {
				t := byName[c.name].Type
				if c.keyed && t.Elem != nil {
					t = *t.Elem
				}
				one(x.oid, c.attName(), t, i+1, false, false, "", nil)
			}
		}
		return nil
	})
}

// collationOf is 100 (default) for types that have an order by collation.
func collationOf(t types.Type) int {
	if t.Kind == types.Array && t.Elem != nil {
		t = *t.Elem
	}
	switch t.Kind {
	case types.Text, types.Varchar, types.BpChar:
		return 100
	case types.Name:
		return 950
	}
	return 0
}

func fillAttrdef(f *Filler) error {
	return f.eachOf("adrelid", func(rel catalog.Relation) error {
		if !hasDefaults(rel) {
			return nil
		}
		for _, c := range rel.Columns() {
			if text, ok := DefaultText(f.Ctx, f.Src, rel, c); ok {
				f.Row("oid", catalog.OIDOf('d', rel.Schema(), rel.Name()+"."+c.Name), "adrelid", rel.OID(), "adnum", c.AttNum, "adbin", text)
			}
		}
		return nil
	})
}

// DefaultText prints a column's default as pg_get_expr does; ok is false when it
// has none. Of a constant Paimon keeps the text, which is cast to the column's
// type. Sequences are kept by their OIDs and shown by their names. Identity columns
// have none.
func DefaultText(ctx context.Context, src Sources, rel catalog.Relation, c catalog.Column) (text string, ok bool) {
	var options map[string]string
	switch t := rel.(type) {
	case catalog.TableInfo:
		options = t.Options()
	case *catalog.ViewRelation:
		text = t.Definition().Columns[c.AttNum-1].Default
		return text, text != ""
	}
	if catalog.IdentityOf(c.Name, options) != "" {
		return "", false
	}
	text, constant, ok := catalog.DefaultOf(c.Field, options)
	if !ok || !constant {
		return NameSequences(ctx, src, text), ok
	}
	t := c.Type.WithNotNull(false)
	if t.Kind == types.Bool {
		return text, true
	}
	if t.IsNumber() && plainNumber(text) {
		if rest, negative := strings.CutPrefix(text, "-"); negative {
			return quoteLiteral(text) + "::" + numberType(rest, t), true
		}
		return text, true
	}
	t.Mod = 0
	name := t.String()
	return quoteLiteral(text) + "::" + name, true
}

// plainNumber reports whether text is a number as SQL writes it.
func plainNumber(text string) bool {
	digits := strings.TrimPrefix(text, "-")
	return digits != "" && strings.Trim(digits, "0123456789.eE+-") == "" && digits[0] != 'e' && digits[0] != 'E'
}

// numberType is the type that PostgreSQL gives a negative literal.
func numberType(digits string, column types.Type) string {
	if strings.ContainsAny(digits, ".eE") {
		return "numeric"
	}
	if len(digits) < 10 {
		return "integer"
	}
	if len(digits) < 19 {
		return "bigint"
	}
	return column.PlainName()
}

func quoteLiteral(s string) string {
	b := []byte{'\''}
	for i := 0; i < len(s); i++ {
		if s[i] == '\'' {
			b = append(b, '\'')
		}
		b = append(b, s[i])
	}
	return string(append(b, '\''))
}

func fillDescription(f *Filler) error {
	f.Row("objoid", nsPublic, "classoid", classNS, "description", "standard public schema")
	f.Row("objoid", nsPgCatalog, "classoid", classNS, "description", "system catalog schema")
	return f.eachOf("objoid", func(rel catalog.Relation) error {
		if c := commentOf(rel); c != "" {
			f.Row("objoid", rel.OID(), "classoid", classClass, "description", c)
		}
		if t, ok := rel.(*catalog.ListedTable); ok && !t.HasComments() {
			return nil
		}
		for _, c := range rel.Columns() {
			if c.Description != "" {
				f.Row("objoid", rel.OID(), "classoid", classClass, "objsubid", c.AttNum, "description", c.Description)
			}
		}
		return nil
	})
}
