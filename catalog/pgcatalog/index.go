package pgcatalog

import (
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// opclassOf is the default btree operator class of a type.
func opclassOf(t types.Type) int64 {
	for _, line := range lines(opclassesText) {
		w := fields(line)
		if w[1] == "403" && w[5] == "1" && num(w[4]) == int64(t.OID()) {
			return num(w[0])
		}
	}
	return 3126 // text_ops
}

// keyNumbers are the columns of a primary key.
func keyNumbers(rel catalog.Relation) []types.Datum {
	var out []types.Datum
	for _, k := range key(rel) {
		out = append(out, attNum(rel, k))
	}
	return out
}

// tableIndex is an index as the catalog shows it: a primary key, or indexes of data files.
type tableIndex struct {
	oid     uint32
	name    string
	columns []indexedColumn
	primary bool
	unique  bool
	file    *catalog.Index // nil: the primary key
	rel     catalog.Relation
}

// indexedColumn is a column of an index, or what a map has under a key.
type indexedColumn struct {
	name, key string
	keyed     bool
}

// attName is the name of the index's column: PostgreSQL calls expressions so.
func (c *indexedColumn) attName() string {
	if c.keyed {
		return "expr"
	}
	return c.name
}

// def shows the column in a definition.
func (c *indexedColumn) def() string {
	if c.keyed {
		return "(" + quoteIdent(c.name) + "['" + strings.ReplaceAll(c.key, "'", "''") + "'])"
	}
	return quoteIdent(c.name)
}

// indexesOf returns the indexes of a table, the primary key first.
func indexesOf(rel catalog.Relation) []tableIndex {
	t, ok := rel.(catalog.TableInfo)
	if !ok {
		return nil
	}
	var out []tableIndex
	if pk := t.PrimaryKey(); len(pk) > 0 {
		x := tableIndex{oid: IndexOID(rel), name: KeyName(rel.Name()), primary: true, unique: true, rel: rel}
		for _, k := range pk {
			x.columns = append(x.columns, indexedColumn{name: k})
		}
		out = append(out, x)
	}
	for _, f := range catalog.Indexes(rel.Name(), t.Options()) {
		x := tableIndex{oid: catalog.OIDOf('i', rel.Schema(), f.Name), name: f.Name, unique: f.Unique, file: &f, rel: rel}
		for i := range f.Columns {
			c := indexedColumn{}
			c.name, c.key, c.keyed = f.Column(i)
			if attNum(rel, c.name) > 0 {
				x.columns = append(x.columns, c)
			}
		}
		if len(x.columns) > 0 {
			out = append(out, x)
		}
	}
	return out
}

// am is the index's access method.
func (x *tableIndex) am() int64 {
	if x.file == nil {
		return btreeAM
	}
	return methodOID(x.file.Method())
}

// indexMethods are the access methods of file indexes.
var indexMethods = []string{"bloom", "bitmap", "bsi", "range_bitmap"}

// methodOID is the OID of an access method, 0 for one that is not known.
func methodOID(name string) int64 {
	switch name {
	case "btree":
		return btreeAM
	case "hash":
		return hashAM
	}
	for _, m := range indexMethods {
		if m == name {
			return int64(catalog.OIDOf('a', "pg_catalog", name))
		}
	}
	return 0
}

func fillIndex(f *Filler) error {
	of := "indrelid"
	if _, ok := f.only(of); !ok {
		of = "indexrelid"
	}
	return f.eachOf(of, func(rel catalog.Relation) error {
		for _, x := range indexesOf(rel) {
			var class, coll, opt, keys []types.Datum
			for _, c := range x.columns {
				n := attNum(rel, c.name)
				t := rel.Columns()[n-1].Type
				if c.keyed {
					n = 0 // an expression
					if t.Elem != nil {
						t = *t.Elem
					}
				}
				keys = append(keys, n)
				class = append(class, opclassOf(t))
				coll = append(coll, int64(collationOf(t)))
				opt = append(opt, int64(0))
			}
			f.Row("indexrelid", x.oid, "indrelid", rel.OID(), "indnatts", len(keys), "indnkeyatts", len(keys),
				"indisunique", x.unique, "indisprimary", x.primary, "indimmediate", true, "indisvalid", true, "indisready", true, "indislive", true,
				"indkey", keys, "indcollation", coll, "indclass", class, "indoption", opt)
		}
		return nil
	})
}

func fillIndexes(f *Filler) error {
	return f.eachNamed("schemaname", "tablename", func(rel catalog.Relation) error {
		for _, x := range indexesOf(rel) {
			f.Row("schemaname", rel.Schema(), "tablename", rel.Name(), "indexname", x.name, "indexdef", x.def())
		}
		return nil
	})
}

// def is pg_get_indexdef of an index.
func (x *tableIndex) def() string {
	out, method := "CREATE INDEX ", "btree"
	if x.unique {
		out = "CREATE UNIQUE INDEX "
	}
	var columns []string
	for i := range x.columns {
		columns = append(columns, x.columns[i].def())
	}
	if x.file != nil {
		method = x.file.Method()
	}
	out += quoteIdent(x.name) + " ON " + quoteIdent(x.rel.Schema()) + "." + quoteIdent(x.rel.Name()) + " USING " + method +
		" (" + strings.Join(columns, ", ") + ")"
	if x.file != nil && len(x.file.Options) > 0 {
		var with []string
		for k, v := range x.file.Options {
			with = append(with, quoteIdent(strings.ReplaceAll(k, "-", "_"))+"='"+strings.ReplaceAll(v, "'", "''")+"'")
		}
		sort.Strings(with)
		out += " WITH (" + strings.Join(with, ", ") + ")"
	}
	return out
}

func keyList(rel catalog.Relation) string {
	var out []string
	for _, k := range key(rel) {
		out = append(out, quoteIdent(k))
	}
	return strings.Join(out, ", ")
}

// quoteIdent quotes a name unless it is a plain lower-case one.
func quoteIdent(s string) string {
	plain := s != ""
	for i := 0; i < len(s); i++ {
		c := s[i]
		if (c < 'a' || c > 'z') && c != '_' && (i == 0 || (c < '0' || c > '9') && c != '$') {
			plain = false
		}
	}
	if plain {
		return s
	}
	return `"` + strings.ReplaceAll(s, `"`, `""`) + `"`
}
