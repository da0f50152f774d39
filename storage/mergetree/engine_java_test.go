package mergetree

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// javaCase is a table that Java writes, reads, compacts and reads again; we fold
// the same versions.
type javaCase struct {
	name    string
	options map[string]string
	cols    []string
	kinds   []string // what the versions are drawn from; nil = "+I"
	loose   bool     // the order of list elements is not defined
	// values are drawn instead of random ones, by column.
	values map[string][]types.Datum
}

func aggregated(function string, extra map[string]string, cols ...string) javaCase {
	o := map[string]string{"merge-engine": "aggregation"}
	for _, c := range cols[1:] {
		name, _, _ := strings.Cut(c, " ")
		o["fields."+name+".aggregate-function"] = function
	}
	maps.Copy(o, extra)
	return javaCase{name: function, options: o, cols: cols}
}

func (c javaCase) with(kinds ...string) javaCase {
	c.kinds = kinds
	c.name += " " + strings.Join(kinds, "")
	return c
}

var (
	numberCols = []string{"k INT NOT NULL", "a TINYINT", "b SMALLINT", "c INT", "d BIGINT", "e FLOAT", "f DOUBLE", "g DECIMAL(9, 2)", "h DECIMAL(30, 5)"}
	otherCols  = []string{"k INT NOT NULL", "s STRING", "d DATE", "t TIMESTAMP(6)", "b BYTES", "o BOOLEAN", "i INT", "v VARCHAR(10)", "m DECIMAL(5, 1)"}
	groupCols  = []string{"k INT NOT NULL", "a INT", "b STRING", "g1 INT", "c INT", "d INT", "g2 INT", "g3 INT", "e STRING"}
)

func javaCases() []javaCase {
	group := func(name string, extra map[string]string) javaCase {
		o := map[string]string{"merge-engine": "partial-update", "fields.g1.sequence-group": "a,b", "fields.g2,g3.sequence-group": "c,d"}
		maps.Copy(o, extra)
		return javaCase{name: name, options: o, cols: groupCols}
	}
	plain := func(name string, extra map[string]string) javaCase {
		o := map[string]string{"merge-engine": "partial-update"}
		maps.Copy(o, extra)
		return javaCase{name: name, options: o, cols: otherCols}
	}
	out := []javaCase{
		{name: "deduplicate", options: map[string]string{}, cols: otherCols, kinds: []string{"+I", "+U", "-D", "-U"}},
		plain("partial", nil),
		plain("partial remove", map[string]string{"partial-update.remove-record-on-delete": "true"}).with("+I", "+I", "+U", "-D", "-U"),
		group("groups", nil),
		group("groups retract", nil).with("+I", "+I", "+U", "-D", "-U"),
		group("groups remove", map[string]string{"partial-update.remove-record-on-sequence-group": "g2"}).with("+I", "+I", "+U", "-D"),
		group("groups remove by the first", map[string]string{"partial-update.remove-record-on-sequence-group": "g1"}).with("+I", "-D", "-D", "-U"),
		group("groups remove by either", map[string]string{"partial-update.remove-record-on-sequence-group": "g1,g3"}).with("+I", "+U", "-D", "-U"),
		group("groups remove and aggregate", map[string]string{"partial-update.remove-record-on-sequence-group": "g3", "fields.a.aggregate-function": "sum", "fields.d.aggregate-function": "last_non_null_value", "fields.c.aggregate-function": "sum", "fields.e.aggregate-function": "last_non_null_value"}).with("+I", "+U", "-D", "-D", "-U"),
		group("groups aggregate", map[string]string{"fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "listagg", "fields.c.aggregate-function": "max", "fields.d.aggregate-function": "product", "fields.e.aggregate-function": "last_non_null_value"}),
		group("groups first and last", map[string]string{"fields.a.aggregate-function": "first_value", "fields.b.aggregate-function": "first_non_null_value", "fields.c.aggregate-function": "last_value", "fields.d.aggregate-function": "last_non_null_value"}),
		group("groups retract aggregates", map[string]string{"fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "last_value", "fields.c.aggregate-function": "max", "fields.c.ignore-retract": "true", "fields.d.aggregate-function": "last_non_null_value"}).with("+I", "+I", "+U", "-D", "-U"),
		{name: "groups of other types", options: map[string]string{"merge-engine": "partial-update", "fields.g1,g2.sequence-group": "a", "fields.g3.sequence-group": "b", "fields.g4.sequence-group": "c"},
			cols: []string{"k INT NOT NULL", "a INT", "g1 STRING", "g2 DOUBLE", "b INT", "g3 DECIMAL(25, 3)", "c INT", "g4 TIMESTAMP(6)"}, kinds: []string{"+I", "+I", "-D"}},
		aggregated("sum", nil, numberCols...),
		aggregated("sum", nil, numberCols...).with("+I", "+I", "+U", "-D", "-U"),
		aggregated("sum", map[string]string{"aggregation.remove-record-on-delete": "true"}, numberCols...).with("+I", "+U", "-D"),
		aggregated("product", nil, numberCols...),
		aggregated("max", nil, numberCols...), aggregated("min", nil, numberCols...),
		aggregated("bool_and", nil, "k INT NOT NULL", "a BOOLEAN"), aggregated("bool_or", nil, "k INT NOT NULL", "a BOOLEAN"),
		aggregated("listagg", nil, "k INT NOT NULL", "a STRING"),
		aggregated("listagg", map[string]string{"fields.a.distinct": "true", "fields.a.list-agg-delimiter": "; "}, "k INT NOT NULL", "a STRING"),
		aggregated("collect", nil, "k INT NOT NULL", "a ARRAY<INT>", "b ARRAY<STRING>").with("+I", "+I", "-D", "-U"),
		aggregated("merge_map", nil, "k INT NOT NULL", "a MAP<STRING, INT>").with("+I", "+I", "-D", "-U"),
		aggregated("merge_map_with_keytime", map[string]string{"fields.b.ts-field": "t"}, "k INT NOT NULL", "a MAP<STRING, ROW<v INT, t STRING>>", "b MAP<STRING, ROW<t STRING, v INT>>"),
		aggregated("nested_update", nil, "k INT NOT NULL", "a ARRAY<ROW<id INT, v STRING, q INT>>").with("+I", "+I", "-D"),
	}
	// Java 1.4 does not compare booleans, 2.1 does.
	noBools := slices.DeleteFunc(slices.Clone(otherCols), func(s string) bool { return strings.HasSuffix(s, "BOOLEAN") })
	out = append(out, aggregated("max", nil, noBools...), aggregated("min", nil, noBools...))
	for _, fn := range []string{"last_value", "last_non_null_value", "first_value", "first_non_null_value", "first_not_null_value"} {
		out = append(out, aggregated(fn, nil, otherCols...))
	}
	for _, fn := range []string{"last_value", "last_non_null_value"} {
		out = append(out, aggregated(fn, nil, otherCols...).with("+I", "+U", "-D", "-U"))
	}
	distinct := aggregated("collect", map[string]string{"fields.a.distinct": "true", "fields.b.distinct": "true"}, "k INT NOT NULL", "a ARRAY<INT>", "b ARRAY<ROW<x INT, y STRING>>")
	keyed := aggregated("nested_update", map[string]string{"fields.a.nested-key": "id"}, "k INT NOT NULL", "a ARRAY<ROW<id INT, v STRING, q INT>>").with("+I", "+I", "-D")
	partial := aggregated("nested_partial_update", map[string]string{"fields.a.nested-key": "id"}, "k INT NOT NULL", "a ARRAY<ROW<id INT, v STRING, q INT>>")
	for _, c := range []javaCase{distinct, keyed, partial} {
		c.loose = true
		out = append(out, c)
	}
	ignored := aggregated("first_value", map[string]string{}, otherCols...).with("+I", "-D", "-U")
	for _, c := range otherCols[1:] {
		name, _, _ := strings.Cut(c, " ")
		ignored.options["fields."+name+".ignore-retract"] = "true"
	}
	return append(out, ignored)
}

// TestJavaFold lets Java write tables of every engine and function and compares
// what it reads, before and after it compacted them, with our folding of the
// versions that it was given.
func TestJavaFold(t *testing.T) {
	java := oracle.Java(t, t.TempDir())
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	cases := javaCases()
	cases = append(cases, fixtureSets(t)...)
	for round := range testkit.Rounds(1) {
		for i, c := range cases {
			t.Run(c.name, func(t *testing.T) { javaFold(t, java, r, fmt.Sprintf("d.t%d_%d", round, i), c) })
		}
	}
}

func javaFold(t *testing.T, java *oracle.Client, r *rand.Rand, name string, c javaCase) {
	tab := engineTable(t, c.options, c.cols...)
	fields := []map[string]any{}
	for _, f := range tab.Fields {
		fields = append(fields, map[string]any{"name": f.Name, "type": types.PaimonString(f.Type)})
	}
	o := maps.Clone(c.options)
	o["bucket"], o["write-only"] = "1", "true"
	java.Do(t, map[string]any{"cmd": "create", "table": name, "schema": map[string]any{"fields": fields, "primaryKeys": []string{"k"}, "options": o}})

	const keys, commits = 25, 5
	versions := make([][]versionRow, keys)
	all := make([][]map[string]any, commits)
	for i := range commits {
		for _, k := range r.Perm(keys)[:keys*3/4] {
			v := versionRow{kind: KindInsert, vals: []types.Datum{int64(k)}}
			kind := "+I"
			if c.kinds != nil {
				kind = c.kinds[r.IntN(len(c.kinds))]
				v.kind = kindNames[kind]
			}
			row := map[string]any{"_rowkind": kind, "k": k}
			for _, f := range tab.Fields[1:] {
				d := maybeNull(r, f.Type, 3)
				if from := c.values[f.Name]; d != nil && from != nil {
					d = from[r.IntN(len(from))]
				}
				v.vals = append(v.vals, d)
				row[f.Name] = jsonDatum(f.Type, d)
			}
			versions[k] = append(versions[k], v)
			all[i] = append(all[i], row)
		}
	}
	java.Do(t, map[string]any{"cmd": "write", "table": name, "commits": all})

	want := leftOf(t, tab, versions, c.loose)
	for _, state := range []string{"merged", "compacted"} {
		if state == "compacted" {
			java.Do(t, map[string]any{"cmd": "compact", "table": name, "mode": "full", "options": map[string]string{"write-only": "false"}})
		}
		var got []string
		for _, raw := range java.Rows(t, name, nil) {
			d := json.NewDecoder(bytes.NewReader(raw))
			d.UseNumber()
			var m map[string]any
			if err := d.Decode(&m); err != nil {
				t.Fatal(err)
			}
			got = append(got, canonicalRow(tab, m, c.loose))
		}
		slices.Sort(got)
		for i := range max(len(got), len(want)) {
			g, w := "nothing", "nothing"
			if i < len(got) {
				g = got[i]
			}
			if i < len(want) {
				w = want[i]
			}
			if g != w {
				var k int
				_, _ = fmt.Sscanf(w, "k=%d", &k)
				t.Fatalf("%s:\njava %s\nours %s\nfrom %s", state, g, w, versionText(tab, versions[k]))
			}
		}
	}
}

func versionText(tab *schema.Table, vs []versionRow) string {
	var b strings.Builder
	for _, v := range vs {
		for name, k := range kindNames {
			if k == v.kind {
				b.WriteString("\n  " + name)
			}
		}
		for _, d := range v.vals {
			b.WriteString(" " + datumText(d))
		}
	}
	return b.String()
}

// leftOf are the rows that are left of keys, sorted.
func leftOf(t *testing.T, tab *schema.Table, versions [][]versionRow, loose bool) []string {
	t.Helper()
	var cols []int
	for i := range tab.Fields {
		cols = append(cols, i)
	}
	e, err := NewEngine(EngineSpec{Table: tab, Options: tab.Options, Columns: cols})
	if err != nil {
		t.Fatal(err)
	}
	var several [][]versionRow
	var out []string
	row := func(value func(c int) types.Datum) {
		m := map[string]any{}
		for c, f := range tab.Fields {
			m[f.Name] = jsonDatum(f.Type, value(c))
		}
		out = append(out, canonicalRow(tab, m, loose))
	}
	for _, vs := range versions {
		switch {
		case len(vs) > 1:
			several = append(several, vs)
		case len(vs) == 1 && !isRetract(vs[0].kind):
			row(func(c int) types.Datum { return vs[0].vals[c] })
		}
	}
	if len(several) > 0 {
		var f Folded
		if err := e.Fold(versionsOf(tab, e.Reads(), several), &f); err != nil {
			t.Fatal(err)
		}
		for k := range several {
			if f.Kinds == nil || f.Kinds[k] != NoRow && !isRetract(f.Kinds[k]) {
				row(func(c int) types.Datum { return vec.DatumAt(f.Cols[c], tab.Fields[c].Type, k) })
			}
		}
	}
	slices.Sort(out)
	return out
}

// fixtureSets are cases whose values are bitmaps and sketches that Java made.
func fixtureSets(t *testing.T) []javaCase {
	t.Helper()
	var out []javaCase
	for _, c := range []struct{ function, table, column string }{
		{"rbm32", "agg__rbm", "b32"}, {"rbm64", "agg__rbm", "b64"}, {"theta_sketch", "agg__sketch", "th"}, {"hll_sketch", "agg__sketch", "h"},
	} {
		values := javaSets(t, c.table, c.column)
		j := aggregated(c.function, nil, "k INT NOT NULL", "a BYTES")
		j.values = map[string][]types.Datum{"a": values}
		out = append(out, j)
	}
	return out
}

// javaSets reads a column of what Java answered for a table of the fixtures.
func javaSets(t testing.TB, table, column string) []types.Datum {
	t.Helper()
	var out []types.Datum
	for _, suffix := range []string{"", "__v1", "__v2"} {
		b, err := os.ReadFile(filepath.Join(shared(t, "fixtures/java/expected"), table+suffix+".jsonl"))
		if errors.Is(err, os.ErrNotExist) {
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		for line := range strings.Lines(string(b)) {
			var m map[string]any
			if err := json.Unmarshal([]byte(line), &m); err != nil {
				t.Fatal(err)
			}
			if s, ok := m[column].(string); ok {
				v, err := hex.DecodeString(s)
				if err != nil {
					t.Fatal(err)
				}
				out = append(out, v)
			}
		}
	}
	return out
}

// shared finds a directory beside the repository, or skips the test by name.
func shared(t testing.TB, path string) string {
	t.Helper()
	dir := os.Getenv("PAIMON_SQL_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	dir = filepath.Join(dir, path)
	if _, err := os.Stat(dir); err != nil {
		t.Skip("needs ../shared/" + path)
	}
	return dir
}
