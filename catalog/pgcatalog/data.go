package pgcatalog

import (
	_ "embed"
	"strconv"
	"strings"
	"sync"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// relations.txt has one relation a line: schema, name, relkind, OID (0 =
// derived), then column:type, ! where NOT NULL. The columns are PostgreSQL
// 15's, in its order, because clients select * and count on positions.
//
//go:embed relations.txt
var relationsText string

// types.txt holds pg_type's rows of PostgreSQL 15 that are neither composite nor
// arrays of composites, ioprocs.txt the functions that they and pg_am name.
//
//go:embed types.txt
var typesText string

//go:embed ioprocs.txt
var ioprocsText string

// casts.txt holds pg_cast's rows of PostgreSQL 15.
//
//go:embed casts.txt
var castsText string

//go:embed opclasses.txt
var opclassesText string

//go:embed opfamilies.txt
var opfamiliesText string

var (
	load    sync.Once
	parsed  []Def
	indexed map[[2]string]*Def
)

// builtin returns every relation. It is parsed at first use, because the fills
// refer to the list themselves.
func builtin() []Def {
	load.Do(func() { parsed, indexed = parseRelations() })
	return parsed
}

// grows says how many rows of a relation the warehouse adds, by name.
var grows = map[string]func(catalog.ListingSize) int64{
	"pg_class":            func(s catalog.ListingSize) int64 { return s.Relations + s.Keys },
	"pg_attribute":        func(s catalog.ListingSize) int64 { return s.Columns + s.Keys },
	"pg_type":             func(s catalog.ListingSize) int64 { return s.Relations },
	"pg_index":            func(s catalog.ListingSize) int64 { return s.Keys },
	"pg_indexes":          func(s catalog.ListingSize) int64 { return s.Keys },
	"pg_constraint":       func(s catalog.ListingSize) int64 { return s.Keys },
	"pg_tables":           func(s catalog.ListingSize) int64 { return s.Relations },
	"pg_sequence":         func(s catalog.ListingSize) int64 { return s.Sequences },
	"pg_sequences":        func(s catalog.ListingSize) int64 { return s.Sequences },
	"pg_stat_all_tables":  func(s catalog.ListingSize) int64 { return s.Relations },
	"pg_stat_user_tables": func(s catalog.ListingSize) int64 { return s.Relations },
	"tables":              func(s catalog.ListingSize) int64 { return s.Relations },
	"columns":             func(s catalog.ListingSize) int64 { return s.Columns },
	"table_constraints":   func(s catalog.ListingSize) int64 { return s.Keys + s.Columns },
	"key_column_usage":    func(s catalog.ListingSize) int64 { return s.Keys },
}

func lookup(schema, name string) (*Def, bool) {
	builtin()
	d, ok := indexed[[2]string{schema, name}]
	return d, ok
}

func parseRelations() ([]Def, map[[2]string]*Def) {
	var defs []Def
	fill := fills()
	for _, line := range lines(relationsText) {
		w := strings.Fields(line)
		oid, _ := strconv.ParseUint(w[3], 10, 32)
		if w[0] == "information_schema" {
			oid = 0 // these differ from server to server
		}
		d := Def{Schema: w[0], Name: w[1], Kind: w[2][0], OID: uint32(oid), Rows: 100, Fill: fill[w[0]+"."+w[1]], Grows: grows[w[1]]}
		if d.Fill == nil {
			d.Rows = 1
		}
		for _, c := range w[4:] {
			name, typ, _ := strings.Cut(c, ":")
			notNull := strings.HasSuffix(typ, "!")
			t := typeByName(strings.TrimSuffix(typ, "!"))
			d.Fields = append(d.Fields, types.Field{ID: -1, Name: name, Type: t.WithNotNull(notNull)})
		}
		defs = append(defs, d)
	}
	m := make(map[[2]string]*Def, len(defs))
	for i := range defs {
		m[[2]string{defs[i].Schema, defs[i].Name}] = &defs[i]
	}
	return defs, m
}

// typeByName maps pg_type.typname to a type; the few that the product lacks are
// text.
func typeByName(name string) types.Type {
	if e, ok := strings.CutPrefix(name, "_"); ok {
		return types.ArrayOf(typeByName(e))
	}
	for _, k := range types.Kinds() {
		if types.InfoOf(k).Name == name {
			return types.Of(k)
		}
	}
	return types.Of(types.Text)
}

func lines(s string) []string { return strings.Split(strings.TrimRight(s, "\n"), "\n") }

// fields cuts a tab-separated line.
func fields(line string) []string { return strings.Split(line, "\t") }

func num(s string) int64 {
	n, _ := strconv.ParseInt(s, 10, 64)
	return n
}

// oidList turns "23 25" into datums.
func oidList(s string) []types.Datum {
	out := []types.Datum{}
	if s == "-" {
		return out
	}
	for _, w := range strings.Fields(s) {
		out = append(out, num(w))
	}
	return out
}
