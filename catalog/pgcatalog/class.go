package pgcatalog

import (
	"sort"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// fillClass lists tables, their primary keys as indexes, and the catalog itself.
func fillClass(f *Filler) error {
	for i := range builtin() {
		d := &builtin()[i]
		f.Row("oid", d.RelOID(), "relname", d.Name, "relnamespace", NamespaceOID(d.Schema), "relowner", superuserOID,
			"relam", amOf(d.Kind), "relkind", d.Kind, "relpersistence", "p", "relispopulated", true, "relreplident", "n",
			"relnatts", len(d.Fields), "reltuples", -1.0)
	}
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		pk := key(rel)
		tuples := -1.0
		if f.Wants("reltuples") {
			if st, err := rel.Stats(f.Ctx, table.Scan{Limit: -1}); err == nil && st != nil {
				tuples = float64(st.Rows)
			}
		}
		var opts types.Datum
		if t, ok := rel.(catalog.TableInfo); ok && f.Wants("reloptions") {
			opts = optionList(t.Options())
		}
		f.Row("oid", rel.OID(), "relname", rel.Name(), "relnamespace", NamespaceOID(rel.Schema()), "reltype", rowTypeOID(rel),
			"relowner", superuserOID, "relam", amOf(rel.Kind()), "reltuples", tuples, "relhasindex", len(pk) > 0,
			"relpersistence", "p", "relkind", rel.Kind(), "relnatts", len(rel.Columns()), "relispopulated", true,
			"relreplident", "d", "reloptions", opts)
		if len(pk) > 0 {
			f.Row("oid", IndexOID(rel), "relname", KeyName(rel.Name()), "relnamespace", NamespaceOID(rel.Schema()),
				"relowner", superuserOID, "relam", btreeAM, "reltuples", tuples, "relpersistence", "p", "relkind", "i",
				"relnatts", len(pk), "relispopulated", true, "relreplident", "n")
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
		out = append(out, k+"="+v)
	}
	sort.Strings(out)
	return datum(out)
}

// fillAttribute lists the columns of everything that fillClass lists.
func fillAttribute(f *Filler) error {
	one := func(rel uint32, name string, t types.Type, num int, notNull, hasDef bool) {
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
			"attstorage", storage, "attnotnull", notNull, "atthasdef", hasDef, "attislocal", true, "attcollation", collationOf(t))
	}
	for i := range builtin() {
		d := &builtin()[i]
		for j, c := range d.Fields {
			one(d.RelOID(), c.Name, c.Type, j+1, c.Type.NotNull, false)
		}
	}
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		byName := map[string]catalog.Column{}
		for _, c := range rel.Columns() {
			one(rel.OID(), c.Name, c.Type, int(c.AttNum), c.NotNull, c.HasDefault)
			byName[c.Name] = c
		}
		for i, k := range key(rel) {
			one(IndexOID(rel), k, byName[k].Type, i+1, false, false)
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
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		for _, c := range rel.Columns() {
			if c.HasDefault {
				f.Row("oid", catalog.OIDOf('d', rel.Schema(), rel.Name()+"."+c.Name), "adrelid", rel.OID(), "adnum", c.AttNum,
					"adbin", DefaultExpr(c))
			}
		}
		return nil
	})
}

// DefaultExpr prints a column's default as pg_get_expr does: Paimon keeps a
// literal's text, which is cast to the column's type.
func DefaultExpr(c catalog.Column) string {
	if c.Type.IsNumber() || c.Type.Kind == types.Bool {
		return c.Default
	}
	return quoteLiteral(c.Default) + "::" + c.Type.WithNotNull(false).String()
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
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		if t, ok := rel.(catalog.TableInfo); ok && t.Comment() != "" {
			f.Row("objoid", rel.OID(), "classoid", classClass, "description", t.Comment())
		}
		for _, c := range rel.Columns() {
			if c.Description != "" {
				f.Row("objoid", rel.OID(), "classoid", classClass, "objsubid", c.AttNum, "description", c.Description)
			}
		}
		return nil
	})
}
