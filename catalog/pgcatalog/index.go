package pgcatalog

import (
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

func keyNumbers(rel catalog.Relation) []types.Datum {
	var out []types.Datum
	for _, k := range key(rel) {
		out = append(out, attNum(rel, k))
	}
	return out
}

func fillIndex(f *Filler) error {
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		pk := key(rel)
		if len(pk) == 0 {
			return nil
		}
		var class, coll, opt []types.Datum
		for _, k := range pk {
			t := rel.Columns()[attNum(rel, k)-1].Type
			class = append(class, opclassOf(t))
			coll = append(coll, int64(collationOf(t)))
			opt = append(opt, int64(0))
		}
		f.Row("indexrelid", IndexOID(rel), "indrelid", rel.OID(), "indnatts", len(pk), "indnkeyatts", len(pk),
			"indisunique", true, "indisprimary", true, "indimmediate", true, "indisvalid", true, "indisready", true, "indislive", true,
			"indkey", keyNumbers(rel), "indcollation", coll, "indclass", class, "indoption", opt)
		return nil
	})
}

func fillIndexes(f *Filler) error {
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		if len(key(rel)) > 0 {
			f.Row("schemaname", rel.Schema(), "tablename", rel.Name(), "indexname", KeyName(rel.Name()), "indexdef", indexDef(rel))
		}
		return nil
	})
}

// indexDef is pg_get_indexdef of a primary key.
func indexDef(rel catalog.Relation) string {
	return "CREATE UNIQUE INDEX " + quoteIdent(KeyName(rel.Name())) + " ON " + quoteIdent(rel.Schema()) + "." + quoteIdent(rel.Name()) +
		" USING btree (" + keyList(rel) + ")"
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
