package pruning

import (
	"fmt"
	"math/rand/v2"
	"strings"
)

// kind is a type of columns, with the literals that its values are drawn from: few, so
// that predicates hit, and among them all that statistics and indexes may get
// wrong.
type kind struct {
	typ    string
	values []string
	like   []string // patterns
	wider  string   // a type that ALTER makes of it, "" = none
	key    bool     // may be a key
	under  []string // of a map: keys that are asked for; values are of kinds[elem]
	elem   int
}

var long = strings.Repeat("common beginning ", 3)

// maps draws literals of maps from text, whose values are those of a kind.
func maps(elem int, keys ...string) []string {
	vs := scalars[elem].values
	out := []string{"map[]"}
	for i := range vs {
		out = append(out, fmt.Sprintf("map['%s', %s]", keys[0], vs[i]), fmt.Sprintf("map['%s', %s, '%s', %s]", keys[0], vs[i], keys[1], vs[(i+1)%len(vs)]),
			fmt.Sprintf("map['%s', %s, '%s', null]", keys[1], vs[i], keys[0]))
	}
	return out
}

var kinds = append(scalars, []kind{
	{typ: "map<text, integer>", values: maps(3, "x", "y"), under: []string{"x", "y", "no"}, elem: 3},
	{typ: "map<text, text>", values: maps(14, "x", "z"), under: []string{"x", "z", "no"}, elem: 14},
}...)

var scalars = []kind{
	{typ: "boolean", values: []string{"true", "false"}},
	{typ: "tinyint", values: []string{"(-128)::smallint", "(-1)::smallint", "0::smallint", "1::smallint", "127::smallint"}, wider: "bigint", key: true},
	{typ: "smallint", values: []string{"'-32768'::smallint", "-7", "0", "7", "300", "32767"}, wider: "integer", key: true},
	{typ: "integer", values: []string{"'-2147483648'::int", "-1", "0", "1", "2", "3", "17", "1000000", "2147483647"}, wider: "bigint", key: true},
	{typ: "bigint", values: []string{"'-9223372036854775808'::bigint", "-5", "0", "1", "4", "5000000000", "9223372036854775807"}, key: true},
	{typ: "real", values: []string{"'NaN'::real", "'-0'::real", "'0'::real", "'-Infinity'::real", "'Infinity'::real", "1.5::real", "(-2.25)::real", "0.1::real"}, wider: "double precision"},
	{typ: "double precision", values: []string{"'NaN'::float8", "'-0'::float8", "0::float8", "'-Infinity'::float8", "'Infinity'::float8", "1.5", "-2.25", "0.1", "1e300"}},
	{typ: "numeric(9,2)", values: []string{"-9999999.99", "-1.10", "0", "0.01", "1.10", "42", "9999999.99"}, wider: "numeric(12,2)", key: true},
	{typ: "numeric(30,4)", values: []string{"-99999999999999999999999999.9999", "-1.5", "0", "1.5", "18446744073709551616", "99999999999999999999999999.9999"}},
	{typ: "date", values: []string{"date '0001-01-01'", "date '1969-12-31'", "date '1970-01-01'", "date '2024-02-29'", "date '2026-11-30'", "date '9999-12-31'"}, key: true},
	{typ: "time", values: []string{"time '00:00'", "time '12:34:56'", "time '23:59:59'"}},
	{typ: "timestamp(3)", values: []string{"timestamp '1969-12-31 23:59:59.999'", "timestamp '1970-01-01'", "timestamp '2026-11-30 12:00:00.123'", "timestamp '2026-11-30 12:00:00.124'"}},
	{typ: "timestamp", values: []string{"timestamp '1969-12-31 23:59:59.999999'", "timestamp '1970-01-01'", "timestamp '2026-11-30 12:00:00.123456'", "timestamp '2026-11-30 12:00:00.123457'"}, key: true},
	{typ: "timestamptz", values: []string{"timestamptz '1969-12-31 23:59:59.999999+00'", "timestamptz '2026-11-30 12:00:00+02'", "timestamptz '2026-11-30 12:00:00.000001+02'"}},
	{typ: "text", values: []string{"''", "'a'", "'A'", "'b'", "'ab'", "'äöü'", "'" + long + "1'", "'" + long + "2'", "'" + long + "'", "repeat(chr(1114111), 20)", "repeat('zz', 12)", "'0123456789abcdef'", "'0123456789abcdef0'"},
		like: []string{"'a%'", "'" + long + "%'", "'0123456789abcdef%'", "'" + long[:16] + "%'", "'%b'", "'a_'"}, key: true},
	{typ: "varchar(40)", values: []string{"''", "'x'", "'y'", "'" + long[:30] + "1'", "'" + long[:30] + "2'", "'Zürich'"}, like: []string{"'" + long[:20] + "%'", "'Z%'"}, key: true},
	{typ: "char(6)", values: []string{"''", "'a'", "'a     '", "'ab'", "'abcdef'", "'b'"}},
	{typ: "bytea", values: []string{`'\x'::bytea`, `'\x00'::bytea`, `'\xff'::bytea`, `'\xffff'::bytea`, `'\x0102'::bytea`, `decode(repeat('ff', 20), 'hex')`, `decode(repeat('ab', 20), 'hex')`}},
	{typ: "uuid", values: []string{"'00000000-0000-0000-0000-000000000000'::uuid", "'01900000-7bbb-7000-8000-00000000000a'::uuid", "'0190ffff-7bbb-7000-8000-00000000000b'::uuid", "'abcdef01-2345-4789-8abc-def012345678'::uuid", "'ffffffff-ffff-ffff-ffff-ffffffffffff'::uuid"}},
}

// column is one column of a table.
type column struct {
	name string
	kind
}

// tab is a table drawn at random.
type tab struct {
	r    *rand.Rand
	name string
	cols []column
	keys int // so many of cols, from the first, are the primary key
	part []string
	opts map[string]string
	adds int
	log  []string
}

// coverage counts what was drawn.
type coverage map[string]int

func (t *tab) pick(list ...string) string { return list[t.r.IntN(len(list))] }

// set draws the value of an option; "" leaves it out.
func (t *tab) set(cov coverage, option string, values ...string) string {
	v := t.pick(values...)
	if v != "" {
		t.opts[option] = v
		cov[option+" = "+v]++
	}
	return v
}

func draw(r *rand.Rand, name string, cov coverage) *tab {
	t := &tab{r: r, name: name, opts: map[string]string{}}
	for _, i := range r.Perm(len(kinds))[:3+r.IntN(5)] {
		t.cols = append(t.cols, column{fmt.Sprintf("c%d", len(t.cols)), kinds[i]})
		cov["type "+kinds[i].typ]++
	}
	shape := t.pick("append", "append", "bucketed", "key", "key", "vectors")
	cov["table "+shape]++
	if shape != "append" && shape != "bucketed" {
		// Key columns come first.
		k := column{"k", kinds[3+r.IntN(2)]}
		k.values = nil
		for i := range 60 {
			k.values = append(k.values, fmt.Sprint(i*i))
		}
		t.cols = append([]column{k}, t.cols...)
		t.keys = 1
	}
	if r.IntN(3) == 0 {
		for i := range t.cols {
			if i >= t.keys && t.cols[i].key {
				t.part = append(t.part, t.cols[i].name)
				cov["partitioned"]++
				break
			}
		}
	}
	switch shape {
	case "bucketed":
		t.opts["bucket"] = t.pick("2", "5")
		t.opts["bucket-key"] = t.cols[0].name
		if len(t.part) > 0 && t.part[0] == t.cols[0].name || t.cols[0].typ == "real" || t.cols[0].typ == "double precision" || len(t.cols[0].under) > 0 {
			delete(t.opts, "bucket")
			delete(t.opts, "bucket-key")
		}
	case "key":
		t.opts["bucket"] = t.pick("1", "3")
		t.set(cov, "merge-engine", "", "", "partial-update", "first-row")
		t.set(cov, "write-only", "", "true")
	case "vectors":
		t.opts["bucket"] = t.pick("1", "3")
		t.opts["deletion-vectors.enabled"] = "true"
	}
	t.set(cov, "metadata.stats-mode", "", "", "none", "counts", "full", "truncate(2)", "truncate(16)")
	t.set(cov, "metadata.stats-dense-store", "", "false")
	t.set(cov, "parquet.page.size", "", "64", "300")
	t.set(cov, "parquet.block.size", "", "2000")
	t.set(cov, "file-index.in-manifest-threshold", "", "1 b", "1 mb")
	if r.IntN(4) > 0 {
		t.indexes(cov)
	}
	return t
}

// indexed are the types that each kind of file index takes.
var indexed = map[string]func(typ string) bool{
	"bloom-filter": func(typ string) bool { return typ != "boolean" && !strings.HasPrefix(typ, "numeric") },
	"bitmap":       func(typ string) bool { return typ != "bytea" && !strings.HasPrefix(typ, "numeric") },
	"bsi": func(typ string) bool {
		switch typ {
		case "boolean", "text", "varchar(40)", "char(6)", "bytea", "real", "double precision", "numeric(30,4)", "uuid":
			return false
		}
		return true
	},
	"range-bitmap": func(typ string) bool { return typ != "bytea" && !strings.HasPrefix(typ, "numeric") },
}

// indexes draws file indexes of some columns.
func (t *tab) indexes(cov coverage) {
	for _, k := range []string{"bloom-filter", "bitmap", "bsi", "range-bitmap"} {
		var names []string
		for _, c := range t.cols {
			over := []string{c.name}
			typ := c.typ
			if len(c.under) > 0 {
				over, typ = nil, kinds[c.elem].typ
				for _, key := range c.under {
					over = append(over, c.name+"["+key+"]")
				}
			}
			for _, name := range over {
				if t.r.IntN(2) > 0 || !indexed[k](typ) {
					continue
				}
				names = append(names, name)
				cov[k+" of "+c.typ]++
				if k == "bloom-filter" {
					t.opts["file-index.bloom-filter."+name+".items"] = "50"
				}
				if k == "bitmap" && t.r.IntN(2) == 0 {
					t.opts["file-index.bitmap."+name+".version"] = "1"
				}
			}
		}
		if len(names) > 0 {
			t.opts["file-index."+k+".columns"] = strings.Join(names, ",")
		}
	}
}

func (t *tab) create() string {
	var b strings.Builder
	fmt.Fprintf(&b, "create table %s (", t.name)
	for i, c := range t.cols {
		if i > 0 {
			b.WriteString(", ")
		}
		fmt.Fprintf(&b, "%s %s", c.name, c.typ)
	}
	if t.keys > 0 {
		b.WriteString(", primary key (" + strings.Join(append([]string{t.cols[0].name}, t.part...), ", ") + ")")
	}
	b.WriteString(")")
	if len(t.part) > 0 {
		b.WriteString(" partition by (" + strings.Join(t.part, ", ") + ")")
	}
	if len(t.opts) > 0 {
		b.WriteString(" with (")
		first := true
		for _, k := range sorted(t.opts) {
			if !first {
				b.WriteString(", ")
			}
			first = false
			fmt.Fprintf(&b, "'%s'='%s'", k, t.opts[k])
		}
		b.WriteString(")")
	}
	return b.String()
}

// value draws a literal of a column. lean narrows the choice, so that files differ.
func (t *tab) value(c *column, lean int) string {
	if t.r.IntN(6) == 0 && !t.isKey(c.name) {
		return "null"
	}
	vs := c.values
	if t.r.IntN(4) > 0 {
		vs = vs[lean%len(vs) : min(lean%len(vs)+2, len(vs))]
	}
	return vs[t.r.IntN(len(vs))]
}

func (t *tab) isKey(name string) bool {
	for i := range t.keys {
		if t.cols[i].name == name {
			return true
		}
	}
	if t.keys > 0 {
		for _, p := range t.part {
			if p == name {
				return true
			}
		}
	}
	return false
}

func (t *tab) insert() string {
	var b strings.Builder
	fmt.Fprintf(&b, "insert into %s values ", t.name)
	lean := t.r.IntN(20)
	for i := range 1 + t.r.IntN(40) {
		if i > 0 {
			b.WriteString(", ")
		}
		for k := range t.cols {
			b.WriteString([]string{"(", ", "}[min(k, 1)])
			b.WriteString(t.value(&t.cols[k], lean))
		}
		b.WriteString(")")
	}
	return b.String()
}

// free returns a column that may be altered, or nil.
func (t *tab) free() *column {
	c := &t.cols[t.r.IntN(len(t.cols))]
	if t.isKey(c.name) {
		return nil
	}
	for _, p := range t.part {
		if p == c.name {
			return nil
		}
	}
	if t.opts["bucket-key"] == c.name {
		return nil
	}
	return c
}

// alter is a change of the schema; "" when there is none to make.
func (t *tab) alter() string {
	c := t.free()
	switch {
	case t.r.IntN(3) == 0:
		t.adds++
		n := column{fmt.Sprintf("x%d", t.adds), kinds[t.r.IntN(len(kinds))]}
		t.cols = append(t.cols, n)
		return fmt.Sprintf("alter table %s add column %s %s", t.name, n.name, n.typ)
	case c == nil || t.named(c.name):
		return ""
	case c.wider != "" && t.r.IntN(2) == 0:
		c.typ, c.wider = c.wider, ""
		return fmt.Sprintf("alter table %s alter column %s type %s", t.name, c.name, c.typ)
	case t.r.IntN(2) == 0:
		t.adds++
		old := c.name
		c.name = fmt.Sprintf("r%d", t.adds)
		return fmt.Sprintf("alter table %s rename column %s to %s", t.name, old, c.name)
	case len(t.cols) > 3:
		old := c.name
		for i := range t.cols {
			if t.cols[i].name == old {
				t.cols = append(t.cols[:i:i], t.cols[i+1:]...)
				break
			}
		}
		return fmt.Sprintf("alter table %s drop column %s", t.name, old)
	}
	return ""
}

// named reports whether an option names a column.
func (t *tab) named(col string) bool {
	for k, v := range t.opts {
		if strings.HasSuffix(k, ".columns") {
			for _, n := range strings.Split(v, ",") {
				if n == col || strings.HasPrefix(n, col+"[") {
					return true
				}
			}
		}
	}
	return false
}
