package mergetree

import (
	"bytes"
	"encoding/json"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// matrixCase is a function on columns, which is put into every setting there is
// (settings). A key that is refused is a partition of its own: it is not in the way of
// the others.
type matrixCase struct {
	name     string
	function string
	cols     []string // "name TYPE"
	options  map[string]string
	loose    bool // the order of list elements is not defined
	values   map[string][]types.Datum
	nulls    bool // lists have NULLs among their elements
	// alone: not in groups, where late rows find room by the order of what is there,
	// which Java's HashMap decides.
	alone bool
	// newer names the Java class that 1.4 has otherwise or has not: a program with 1.4
	// cannot judge.
	newer string
}

// setting is what surrounds a function: the engine, and what the versions are.
type setting struct {
	name   string
	group  bool // in a sequence group of partial-update
	ignore bool // ignore-retract
	kinds  []string
	option string // = true or, for groups, the group's field
}

var settings = []setting{
	{name: "added"},
	{name: "retracted", kinds: []string{"+I", "+I", "+U", "-D", "-U"}},
	{name: "retraction ignored", ignore: true, kinds: []string{"+I", "+U", "-D", "-U"}},
	{name: "removed", option: removeAggregated, kinds: []string{"+I", "+I", "+U", "-D"}},
	{name: "in a group", group: true},
	{name: "in a group, retracted", group: true, kinds: []string{"+I", "+I", "+U", "-D", "-U"}},
	{name: "in a group, retraction ignored", group: true, ignore: true, kinds: []string{"+I", "+U", "-D", "-U"}},
	{name: "in a group, removed", group: true, option: removeOnGroup, kinds: []string{"+I", "+I", "+U", "-D"}},
}

// Numbers at the ends of their types.
var (
	wideInts = map[string][]types.Datum{
		"a": {int64(-128), int64(127), int64(-1), int64(0), int64(1), int64(2), int64(11)},
		"b": {int64(math.MinInt16), int64(math.MaxInt16), int64(-1), int64(0), int64(1), int64(2), int64(181)},
		"c": {int64(math.MinInt32), int64(math.MaxInt32), int64(-1), int64(0), int64(1), int64(2), int64(46341)},
		"d": {int64(math.MinInt64), int64(math.MaxInt64), int64(-1), int64(0), int64(1), int64(2), int64(3037000500)},
	}
	wideFloats = map[string][]types.Datum{
		"e": floats32(math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, math.MaxFloat32, -math.MaxFloat32, math.SmallestNonzeroFloat32, 1.1, -3, 1e-30, 1<<24),
		"f": floats64(math.NaN(), math.Inf(1), math.Inf(-1), math.Copysign(0, -1), 0, math.MaxFloat64, -math.MaxFloat64, math.SmallestNonzeroFloat64, 0.1, -3, 1e-300, 1<<53),
	}
	wideDecimals = map[string][]types.Datum{
		"g": decimals(2, "9999999.99", "-9999999.99", "0.01", "-0.01", "0.00", "1.00", "3162.28", "0.50", "-2.00"),
		"h": decimals(0, "999999999999999999", "-999999999999999999", "1", "-1", "0", "1000000000", "7"),
		"i": decimals(9, "999999999.999999999", "-999999999.999999999", "0.000000001", "0.5", "-31622.776601683", "1"),
		"j": decimals(0, "9999999999999999999", "-9999999999999999999", "1", "-1", "0", "3162277661", "9223372036854775807", "9223372036854775808"),
		"l": decimals(5, "9999999999999999999999999.99999", "-9999999999999999999999999.99999", "0.00001", "2", "-0.5", "3162277660168.37933"),
		"m": decimals(10, "9999999999999999999999999999.9999999999", "-9999999999999999999999999999.9999999999", "0.0000000001", "1", "-1", "99999999999999.5"),
		"n": decimals(38, "0."+strings.Repeat("9", 38), "-0."+strings.Repeat("9", 38), "0.5", "0.00000000000000000000000000000000000001", "0"),
	}
	decimalCols = []string{"g DECIMAL(9, 2)", "h DECIMAL(18, 0)", "i DECIMAL(18, 9)", "j DECIMAL(19, 0)", "l DECIMAL(30, 5)", "m DECIMAL(38, 10)", "n DECIMAL(38, 38)"}
	intCols     = []string{"a TINYINT", "b SMALLINT", "c INT", "d BIGINT"}
	floatCols   = []string{"e FLOAT", "f DOUBLE"}
)

func floats64(xs ...float64) (out []types.Datum) {
	for _, x := range xs {
		out = append(out, x)
	}
	return out
}

func floats32(xs ...float64) (out []types.Datum) {
	for _, x := range xs {
		out = append(out, float64(float32(x)))
	}
	return out
}

func decimals(scale int, texts ...string) (out []types.Datum) {
	for _, s := range texts {
		whole, frac, _ := strings.Cut(s, ".")
		d := new(numeric.Dec)
		d.Coef.SetString(whole+frac+strings.Repeat("0", scale-len(frac)), 10)
		d.Scale = int32(scale)
		out = append(out, d)
	}
	return out
}

func texts(xs ...string) (out []types.Datum) {
	for _, x := range xs {
		out = append(out, x)
	}
	return out
}

func matrixCases(t *testing.T) []matrixCase {
	const (
		sumClass, productClass = "FieldSumAgg", "FieldProductAgg"
		nestedClass            = "FieldNestedUpdateAgg"
		partialClass           = "FieldNestedPartialUpdateAgg"
	)
	o := func(kv ...string) map[string]string {
		m := map[string]string{}
		for i := 0; i < len(kv); i += 2 {
			m[kv[i]] = kv[i+1]
		}
		return m
	}
	nested := []string{"a ARRAY<ROW<id INT, v STRING, q INT>>"}
	tens := decimals(2, "1.00", "2.00", "-5.00", "0.50", "4.00", "-0.20", "2.50", "10.00") // quotients of these end
	out := []matrixCase{
		{function: "sum", cols: intCols},
		{name: "sum of floats", function: "sum", cols: floatCols, values: wideFloats},
		{name: "sum of decimals", function: "sum", cols: decimalCols, values: wideDecimals},
		{name: "sum of wide integers", function: "sum", cols: intCols, values: wideInts, newer: sumClass},
		{function: "product", cols: []string{"a TINYINT", "b SMALLINT", "c INT", "d BIGINT"}},
		{name: "product without zeros", function: "product", cols: []string{"c INT", "d BIGINT"}, values: map[string][]types.Datum{
			"c": {int64(1), int64(-2), int64(3), int64(7)}, "d": {int64(1), int64(-1), int64(6), int64(1000)}}},
		{name: "product of floats", function: "product", cols: floatCols, values: wideFloats},
		{name: "product of decimals", function: "product", cols: []string{"g DECIMAL(9, 2)", "h DECIMAL(20, 2)"}, values: map[string][]types.Datum{"g": tens, "h": tens}},
		{name: "product of wide decimals", function: "product", cols: decimalCols, values: wideDecimals},
		{name: "product of one wide decimal", function: "product", cols: decimalCols[1:2], values: wideDecimals},
		{name: "product of wide integers", function: "product", cols: intCols, values: wideInts, newer: productClass},
		{name: "product of one wide integer", function: "product", cols: intCols[:1], values: wideInts, newer: productClass},
		{function: "bool_and", cols: []string{"a BOOLEAN"}},
		{function: "bool_or", cols: []string{"a BOOLEAN"}},
		{function: "listagg", cols: []string{"a STRING", "b STRING", "c STRING", "d STRING"}, options: o("fields.b.list-agg-delimiter", "; ", "fields.c.list-agg-delimiter", "", "fields.d.list-agg-delimiter", "é")},
		{name: "listagg distinct", function: "listagg", cols: []string{"a STRING", "b STRING", "d STRING"}, options: o("fields.a.distinct", "true", "fields.b.distinct", "true", "fields.b.list-agg-delimiter", "; ", "fields.d.distinct", "true", "fields.d.list-agg-delimiter", "xx"),
			values: map[string][]types.Datum{"a": texts("a", "b", "a,b", "b,c,b", ",a", "c,", "a,,b"), "b": texts("a; b", "b", "a;b", "; ", "c; a; "), "d": texts("axxb", "xx", "xxx", "b", "bxxa")}},
		{name: "listagg of blanks", function: "listagg", cols: []string{"a STRING", "b STRING"}, options: o("fields.b.distinct", "true"), newer: "FieldListaggAgg",
			values: map[string][]types.Datum{"a": texts("", " ", "a", "\t", "b", "\u00a0", "\u2003"), "b": texts("", " ", "a, ,b", "a", "\u2003,b", " a")}},
		{function: "collect", cols: []string{"a ARRAY<INT>", "b ARRAY<STRING>", "c ARRAY<DOUBLE>", "d ARRAY<DECIMAL(9, 2)>"}},
		{name: "collect with NULLs", function: "collect", cols: []string{"a ARRAY<INT>", "b ARRAY<STRING>"}, nulls: true},
		{name: "collect distinct", function: "collect", loose: true, cols: []string{"a ARRAY<INT>", "b ARRAY<STRING>", "c ARRAY<DOUBLE>", "d ARRAY<DECIMAL(9, 2)>", "e ARRAY<DATE>", "f ARRAY<TIMESTAMP(6)>", "g ARRAY<BOOLEAN>", "h ARRAY<ROW<x INT, y STRING>>", "i ARRAY<ARRAY<INT>>", "j ARRAY<MAP<STRING, INT NOT NULL>>"},
			options: o("fields.a.distinct", "true", "fields.b.distinct", "true", "fields.c.distinct", "true", "fields.d.distinct", "true", "fields.e.distinct", "true", "fields.f.distinct", "true", "fields.g.distinct", "true", "fields.h.distinct", "true", "fields.i.distinct", "true", "fields.j.distinct", "true")},
		{name: "collect distinct with NULLs", function: "collect", loose: true, nulls: true, cols: []string{"a ARRAY<INT>", "b ARRAY<STRING>"}, options: o("fields.a.distinct", "true", "fields.b.distinct", "true")},
		{name: "collect distinct bytes", function: "collect", loose: true, cols: []string{"a ARRAY<BYTES>"}, options: o("fields.a.distinct", "true"), newer: "FieldCollectAgg"},
		{function: "merge_map", cols: []string{"a MAP<STRING, INT>", "b MAP<STRING, ARRAY<INT>>"}},
		{function: "merge_map_with_keytime", cols: []string{"a MAP<STRING, ROW<v INT, t STRING>>", "b MAP<STRING, ROW<t STRING, v INT>>"}, options: o("fields.b.ts-field", "t")},
		{function: "nested_update", cols: nested},
		{name: "nested_update up to", function: "nested_update", cols: nested, options: o("fields.a.count-limit", "4")},
		{name: "nested_update up to few", function: "nested_update", cols: nested, options: o("fields.a.count-limit", "2"), newer: nestedClass},
		{name: "nested_update with NULLs", function: "nested_update", cols: nested, nulls: true, newer: nestedClass},
		{name: "nested_update up to few with NULLs", function: "nested_update", cols: nested, nulls: true, options: o("fields.a.count-limit", "3"), newer: nestedClass},
		{name: "nested_update by key", function: "nested_update", loose: true, cols: nested, options: o("fields.a.nested-key", "id")},
		{name: "nested_update by two keys", function: "nested_update", loose: true, cols: nested, options: o("fields.a.nested-key", "v, id"), newer: nestedClass},
		{name: "nested_update by key up to few", function: "nested_update", loose: true, cols: nested, options: o("fields.a.nested-key", "id", "fields.a.count-limit", "3"), newer: nestedClass, alone: true},
		{name: "nested_update in sequence", function: "nested_update", loose: true, cols: nested, options: o("fields.a.nested-key", "id", "fields.a.nested-sequence-field", "q"), newer: nestedClass},
		{name: "nested_update in sequence of two", function: "nested_update", loose: true, cols: nested, options: o("fields.a.nested-key", "id", "fields.a.nested-sequence-field", "v,q"), newer: nestedClass},
		{name: "nested_update of NULL keys merged", function: "nested_update", loose: true, nulls: true, cols: nested, options: o("fields.a.nested-key", "q", "fields.a.nested-key-null-strategy", "merge"), newer: nestedClass},
		{name: "nested_update of NULL keys ignored", function: "nested_update", loose: true, nulls: true, cols: nested, options: o("fields.a.nested-key", "q,id", "fields.a.nested-key-null-strategy", "ignore"), newer: nestedClass},
		{name: "nested_update of NULL keys refused", function: "nested_update", loose: true, cols: nested, options: o("fields.a.nested-key", "q", "fields.a.nested-key-null-strategy", "error"), newer: nestedClass},
		{function: "nested_partial_update", loose: true, cols: nested, options: o("fields.a.nested-key", "id")},
		{name: "nested_partial_update of duplicates", function: "nested_partial_update", loose: true, nulls: true, cols: nested, options: o("fields.a.nested-key", "q"), newer: partialClass},
		{name: "nested_partial_update of NULL keys ignored", function: "nested_partial_update", loose: true, cols: nested, options: o("fields.a.nested-key", "q", "fields.a.nested-key-null-strategy", "ignore"), newer: partialClass},
		{name: "nested_partial_update of NULL keys refused", function: "nested_partial_update", loose: true, cols: nested, options: o("fields.a.nested-key", "q", "fields.a.nested-key-null-strategy", "error"), newer: partialClass},
	}
	bools := func(cols ...string) []string { return append(cols, "o BOOLEAN") }
	for _, fn := range []string{"max", "min"} {
		cols := []string{"s STRING", "d DATE", "t TIMESTAMP(6)", "b BYTES", "v VARCHAR(10)"}
		out = append(out,
			matrixCase{name: fn + " of integers", function: fn, cols: intCols, values: wideInts},
			matrixCase{name: fn + " of floats", function: fn, cols: floatCols, values: wideFloats},
			matrixCase{name: fn + " of decimals", function: fn, cols: decimalCols, values: wideDecimals},
			matrixCase{name: fn + " of others", function: fn, cols: cols, values: map[string][]types.Datum{
				"s": texts("", "a", "ab", "\U00010000", "\uffff", "Z", "a "), "b": {[]byte{}, []byte{0}, []byte{0x80}, []byte{0x7f, 0xff}}}},
			matrixCase{name: fn + " of booleans", function: fn, cols: bools(), newer: "InternalRowUtils"})
	}
	for _, fn := range []string{"last_value", "last_non_null_value", "first_value", "first_non_null_value"} {
		out = append(out,
			matrixCase{name: fn + " of numbers", function: fn, cols: slices.Concat(intCols, floatCols, decimalCols), values: wideAll()},
			matrixCase{name: fn + " of others", function: fn, nulls: true, cols: bools("s STRING", "d DATE", "b BYTES", "x ARRAY<INT>", "y MAP<STRING, INT>", "z ARRAY<ROW<i INT, v STRING>>")})
	}
	out = append(out, matrixCase{name: "first_not_null_value", function: "first_not_null_value", cols: intCols})
	for _, c := range fixtureSets(t) {
		out = append(out, matrixCase{function: c.name, cols: []string{"a BYTES"}, values: c.values})
	}
	return out
}

func wideAll() map[string][]types.Datum {
	m := maps.Clone(wideInts)
	maps.Copy(m, wideFloats)
	maps.Copy(m, wideDecimals)
	return m
}

// matrixTable is a case in a setting.
type matrixTable struct {
	name     string
	options  map[string]string
	cols     []string
	kinds    []string
	loose    bool
	values   map[string][]types.Datum
	nulls    bool
	newer    string
	sequence string // orders the versions of a key
}

func (c matrixCase) in(s setting) matrixTable {
	name := c.name
	if name == "" {
		name = c.function
	}
	m := matrixTable{name: name + " " + s.name, options: maps.Clone(c.options), kinds: s.kinds, loose: c.loose, values: c.values, nulls: c.nulls, newer: c.newer}
	if m.options == nil {
		m.options = map[string]string{}
	}
	m.cols = []string{"k INT NOT NULL", "u INT NOT NULL"}
	m.options["merge-engine"] = "aggregation"
	var names []string
	for _, col := range c.cols {
		n, _, _ := strings.Cut(col, " ")
		names = append(names, n)
		m.options["fields."+n+".aggregate-function"] = c.function
		if s.ignore {
			m.options["fields."+n+".ignore-retract"] = "true"
		}
	}
	if s.option == removeOnGroup {
		// Before the others: Java takes columns back in their order until it comes to
		// the field that removes the row, and refuses what one of them refuses. Here
		// such a row is removed, wherever the field stands.
		m.cols = append(m.cols, "w INT")
	}
	m.cols = append(m.cols, c.cols...)
	if s.group {
		if s.option != removeOnGroup {
			m.cols = append(m.cols, "w INT")
		}
		m.cols = append(m.cols, "free STRING")
		m.options["merge-engine"] = "partial-update"
		m.options["fields.w.sequence-group"] = strings.Join(names, ",")
	}
	switch s.option {
	case "":
	case removeOnGroup:
		m.options[s.option] = "w"
	default:
		m.options[s.option] = "true"
	}
	return m
}

// mixedTables are tables whose columns have different functions, one of them by
// default.
func mixedTables() []matrixTable {
	retract := []string{"+I", "+I", "+U", "-D", "-U"}
	cols := []string{"k INT NOT NULL", "u INT NOT NULL", "a INT", "b INT", "c STRING", "d INT"}
	return []matrixTable{
		{name: "default sum", cols: []string{"k INT NOT NULL", "u INT NOT NULL", "a INT", "b BIGINT", "c DOUBLE"}, kinds: retract, options: map[string]string{"merge-engine": "aggregation",
			"fields.default-aggregate-function": "sum", "fields.b.aggregate-function": "last_value"}},
		{name: "default last_value, in sequence", cols: cols, kinds: retract, sequence: "d", options: map[string]string{"merge-engine": "aggregation",
			"fields.default-aggregate-function": "last_value", "sequence.field": "d", "fields.a.aggregate-function": "sum"}},
		{name: "default first_value, in sequence", cols: cols, kinds: []string{"+I", "+U"}, sequence: "d", options: map[string]string{"merge-engine": "aggregation",
			"fields.default-aggregate-function": "first_value", "sequence.field": "d", "fields.b.aggregate-function": "max"}},
		{name: "no default, in sequence", cols: cols, kinds: retract, sequence: "d", options: map[string]string{"merge-engine": "aggregation", "sequence.field": "d", "fields.a.aggregate-function": "product"}},
		{name: "default max refuses", cols: cols, kinds: retract, options: map[string]string{"merge-engine": "aggregation",
			"fields.default-aggregate-function": "max", "fields.a.ignore-retract": "true"}},
		{name: "default of groups", cols: cols, kinds: retract, options: map[string]string{"merge-engine": "partial-update",
			"fields.default-aggregate-function": "last_non_null_value", "fields.d.sequence-group": "a,b", "fields.a.aggregate-function": "sum"}},
		{name: "default sum of a group of all", cols: []string{"k INT NOT NULL", "u INT NOT NULL", "a INT", "b DOUBLE", "w INT", "x INT"}, kinds: retract, options: map[string]string{"merge-engine": "partial-update",
			"fields.default-aggregate-function": "sum", "fields.w,x.sequence-group": "a,b"}},
		{name: "groups of several functions", cols: []string{"k INT NOT NULL", "u INT NOT NULL", "a INT", "b STRING", "w INT", "x INT", "c ARRAY<INT>", "d BOOLEAN", "y STRING", "e BIGINT"}, options: map[string]string{"merge-engine": "partial-update",
			"fields.w,x.sequence-group": "a,b", "fields.y.sequence-group": "c,d,e", "fields.a.aggregate-function": "product", "fields.b.aggregate-function": "listagg", "fields.c.aggregate-function": "collect",
			"fields.d.aggregate-function": "bool_or", "fields.e.aggregate-function": "min"}},
		{name: "groups of several functions retracted", cols: []string{"k INT NOT NULL", "u INT NOT NULL", "a INT", "b STRING", "w INT", "x INT", "y STRING", "c ARRAY<INT>", "e BIGINT"}, kinds: retract, options: map[string]string{"merge-engine": "partial-update",
			"fields.w,x.sequence-group": "a,b", "fields.y.sequence-group": "c,e", "fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "last_value", "fields.c.aggregate-function": "collect",
			"fields.e.aggregate-function": "last_non_null_value", "partial-update.remove-record-on-sequence-group": "y"}},
	}
}

// TestJavaMatrix puts every aggregate function, with every option it has and values
// at the ends of its types, into every setting, and compares what is left of keys
// with what Java leaves: the rows, or that it refuses. A third of the matrix in a
// run, all of it with PAIMON_SQL_SOAK; PAIMON_SQL_SEED repeats one.
//
// A program built with Java 1.4 cannot judge what the classes of 2.x do otherwise;
// those cases are skipped by the name of the class.
func TestJavaMatrix(t *testing.T) {
	java := oracle.Java(t, t.TempDir())
	seed := random.Seed(t)
	var tables []matrixTable
	for _, c := range matrixCases(t) {
		for _, s := range settings {
			if !c.alone || !s.group {
				tables = append(tables, c.in(s))
			}
		}
	}
	tables = append(tables, mixedTables()...)
	newest := refusesOverflow(t, java)
	keys, refused := 0, 0
	for i, m := range tables {
		if testkit.Factor() == 1 && (uint64(i)+seed)%3 != 0 {
			continue
		}
		t.Run(m.name, func(t *testing.T) {
			if m.newer != "" && !newest {
				t.Skip("needs an oracle whose " + m.newer + " is that of Java 2.x")
			}
			n, no := m.compare(t, java, rand.New(rand.NewPCG(seed, uint64(i))), fmt.Sprintf("d.m%d", i))
			keys += n
			refused += no
		})
	}
	t.Logf("%d keys of %d tables, %d of them refused; functions of 2.x: %v", keys, len(tables), refused, newest)
}

// refusesOverflow tells the aggregate functions of Java 2.x from those of 1.4.
func refusesOverflow(t *testing.T, java *oracle.Client) bool {
	java.Do(t, map[string]any{"cmd": "create", "table": "d.probe", "schema": map[string]any{"primaryKeys": []string{"k"},
		"fields":  []map[string]any{{"name": "k", "type": "INT NOT NULL"}, {"name": "a", "type": "TINYINT"}},
		"options": map[string]string{"bucket": "1", "write-only": "true", "merge-engine": "aggregation", "fields.a.aggregate-function": "sum"}}})
	row := []map[string]any{{"k": 1, "a": 100}}
	java.Do(t, map[string]any{"cmd": "write", "table": "d.probe", "commits": [][]map[string]any{row, row}})
	_, err := java.Try(map[string]any{"cmd": "read", "table": "d.probe"})
	return err != nil
}

// wraps reports whether a row has a decimal that Java does not write as it is: sums
// may have more digits than the type, and of those that Parquet holds in 32 bits Java's
// writer keeps the lowest. Ours refuses to write them.
func wraps(tab *schema.Table, row string) bool {
	for _, w := range strings.Fields(row) {
		name, v, _ := strings.Cut(w, "=")
		i := tab.Fields.Index(name)
		if i < 0 || tab.Fields[i].Type.Kind != types.Numeric || tab.Fields[i].Type.Prec > 9 {
			continue
		}
		if n, err := strconv.ParseInt(strings.ReplaceAll(v, ".", ""), 10, 64); err == nil && n != int64(int32(n)) {
			return true
		}
	}
	return false
}

const matrixCommits = 5

// compare writes keys, those that we refuse each into a partition of its own, and
// reads them merged and compacted.
func (m matrixTable) compare(t *testing.T, java *oracle.Client, r *rand.Rand, name string) (keys, refused int) {
	tab := engineTable(t, m.options, m.cols...)
	tab.PrimaryKeys = []string{"k", "u"}
	fields := []map[string]any{}
	for _, f := range tab.Fields {
		fields = append(fields, map[string]any{"name": f.Name, "type": types.PaimonString(f.Type)})
	}
	o := maps.Clone(m.options)
	o["bucket"], o["write-only"] = "1", "true"
	java.Do(t, map[string]any{"cmd": "create", "table": name, "schema": map[string]any{"fields": fields, "partitionKeys": []string{"k"}, "primaryKeys": tab.PrimaryKeys, "options": o}})
	all := make([][]map[string]any, matrixCommits)
	var want []string
	left := map[string][]versionRow{} // by the row
	var no [][]versionRow
	for key := range 24 {
		vs := m.draw(r, tab, key)
		commits := r.Perm(matrixCommits)[:len(vs)]
		slices.Sort(commits)
		m.order(tab, vs, commits)
		row := m.left(t, tab, vs)
		part := 0
		if strings.HasPrefix(row, "refused") {
			if len(no) == 3 {
				continue
			}
			no = append(no, vs)
			part = len(no)
		}
		for _, v := range vs {
			v.vals[0] = int64(part)
		}
		if part == 0 && row != "nothing" {
			row = m.left(t, tab, vs)
			want = append(want, row)
			left[row] = vs
		}
		keys++
		for i, v := range vs {
			w := map[string]any{}
			for c, f := range tab.Fields {
				w[f.Name] = wideJSON(f.Type, v.vals[c])
			}
			for name, k := range kindNames {
				if k == v.kind {
					w["_rowkind"] = name
				}
			}
			all[commits[i]] = append(all[commits[i]], w)
		}
	}
	slices.Sort(want)
	java.Do(t, map[string]any{"cmd": "write", "table": name, "commits": all})
	read := func(part int, compact bool) ([]string, error) {
		where := map[string]string{"k": strconv.Itoa(part)}
		if compact {
			if _, err := java.Try(map[string]any{"cmd": "compact", "table": name, "mode": "full", "partitions": []any{where}, "options": map[string]string{"write-only": "false"}}); err != nil {
				return nil, err
			}
		}
		reply, err := java.Try(map[string]any{"cmd": "read", "table": name, "partition": where})
		if err != nil {
			return nil, err
		}
		return m.rows(t, tab, reply["rows"]), nil
	}
	for _, compact := range []bool{false, true} {
		got, err := read(0, compact)
		if err != nil {
			t.Fatalf("compacted %v: java refuses some key, we none: %v", compact, err)
		}
		for i := range max(len(got), len(want)) {
			g, w := "nothing", "nothing"
			if i < len(got) {
				g = got[i]
			}
			if i < len(want) {
				w = want[i]
			}
			if g != w && !(compact && wraps(tab, w)) {
				t.Fatalf("compacted %v:\njava %s\nours %s\nfrom %s", compact, g, w, versionText(tab, left[w]))
			}
		}
	}
	for i, vs := range no {
		got, err := read(i+1, i == 2)
		if err == nil || !refusal(err.Error()) {
			t.Fatalf("java %s, %v\nours %s\nfrom %s", got, err, m.left(t, tab, vs), versionText(tab, vs))
		}
	}
	return keys, len(no)
}

// draw makes the versions of a key, at most one for each commit.
func (m matrixTable) draw(r *rand.Rand, tab *schema.Table, key int) []versionRow {
	var out []versionRow
	for range matrixCommits - r.IntN(3) {
		v := versionRow{kind: KindInsert, vals: []types.Datum{int64(0), int64(key)}}
		if m.kinds != nil {
			v.kind = kindNames[m.kinds[r.IntN(len(m.kinds))]]
		}
		for _, f := range tab.Fields[2:] {
			v.vals = append(v.vals, m.datum(r, f))
		}
		out = append(out, v)
	}
	return out
}

// order sorts the versions of a key as sequence.field has it; the commit that each
// belongs to comes along.
func (m matrixTable) order(tab *schema.Table, vs []versionRow, commits []int) {
	if m.sequence == "" {
		return
	}
	at := tab.Fields.Index(m.sequence)
	type pair struct {
		v versionRow
		c int
	}
	var all []pair
	for i := range vs {
		all = append(all, pair{vs[i], commits[i]})
	}
	slices.SortStableFunc(all, func(a, b pair) int { return compareDatums(orLeast(a.v.vals[at]), orLeast(b.v.vals[at])) })
	for i, p := range all {
		vs[i], commits[i] = p.v, p.c
	}
}

// refusal reports whether Java refused what it was given, rather than fell over it.
func refusal(err string) bool {
	for _, s := range []string{"does not support retract", "overflow", "by zero", "ivision undefined", "Non-terminating", "null values"} {
		if strings.Contains(err, s) {
			return true
		}
	}
	return false
}

// orLeast puts NULL before every value of the sequences here.
func orLeast(d types.Datum) types.Datum {
	if d == nil {
		return int64(-1 << 40)
	}
	return d
}

func (m matrixTable) datum(r *rand.Rand, f types.Field) types.Datum {
	if r.IntN(4) == 0 {
		return nil
	}
	if from := m.values[f.Name]; from != nil && r.IntN(5) > 0 {
		return from[r.IntN(len(from))]
	}
	if f.Type.Kind == types.Bytea && m.values[f.Name] != nil {
		return m.values[f.Name][0] // bitmaps and sketches are no random bytes
	}
	d := randomDatum(r, f.Type)
	if list, ok := d.([]types.Datum); ok && m.nulls && f.Type.Kind == types.Array && r.IntN(2) == 0 {
		list = append(list, nil)
		if len(list) > 1 && r.IntN(2) == 0 { // a key twice, too
			list = append(list, list[0])
		}
		return list
	}
	return d
}

// left is what we make of the versions of a key.
func (m matrixTable) left(t *testing.T, tab *schema.Table, vs []versionRow) string {
	row := func(value func(c int) types.Datum) string {
		var out []string
		for c, f := range tab.Fields {
			out = append(out, f.Name+"="+wideText(f.Type, wideJSON(f.Type, value(c)), m.loose))
		}
		return strings.Join(out, " ")
	}
	switch {
	case len(vs) == 0 || len(vs) == 1 && isRetract(vs[0].kind):
		return "nothing"
	case len(vs) == 1:
		return row(func(c int) types.Datum { return vs[0].vals[c] })
	}
	var cols []int
	for i := range tab.Fields {
		cols = append(cols, i)
	}
	e, err := NewEngine(EngineSpec{Table: tab, Options: tab.Options, Columns: cols})
	if err != nil {
		t.Fatal(err)
	}
	var f Folded
	if err := e.Fold(versionsOf(tab, e.Reads(), [][]versionRow{vs}), &f); err != nil {
		return "refused: " + err.Error()
	}
	if f.Kinds != nil && (f.Kinds[0] == NoRow || isRetract(f.Kinds[0])) {
		return "nothing"
	}
	return row(func(c int) types.Datum { return vec.DatumAt(f.Cols[c], tab.Fields[c].Type, 0) })
}

func (m matrixTable) rows(t *testing.T, tab *schema.Table, raw json.RawMessage) (out []string) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var rows []map[string]any
	if err := d.Decode(&rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		var cols []string
		for _, f := range tab.Fields {
			cols = append(cols, f.Name+"="+wideText(f.Type, row[f.Name], m.loose))
		}
		out = append(out, strings.Join(cols, " "))
	}
	slices.Sort(out)
	return out
}

// wideJSON is jsonDatum for floats that JSON has no numbers for, too.
func wideJSON(t types.Type, d types.Datum) any {
	if x, ok := d.(float64); ok {
		switch {
		case math.IsNaN(x):
			return "NaN"
		case math.IsInf(x, 1):
			return "Infinity"
		case math.IsInf(x, -1):
			return "-Infinity"
		case x == 0 && math.Signbit(x):
			return json.Number("-0.0")
		case t.Kind == types.Float4:
			return json.Number(strconv.FormatFloat(x, 'g', -1, 32))
		}
		return json.Number(strconv.FormatFloat(x, 'g', -1, 64))
	}
	return jsonDatum(t, d)
}

// wideText is canonical for floats by their bits.
func wideText(t types.Type, v any, loose bool) string {
	if n, ok := v.(json.Number); ok && (t.Kind == types.Float4 || t.Kind == types.Float8) {
		bits := 64
		if t.Kind == types.Float4 {
			bits = 32
		}
		if f, err := strconv.ParseFloat(n.String(), bits); err == nil {
			return strconv.FormatFloat(f, 'g', -1, bits)
		}
	}
	return canonical(v, t, loose)
}
