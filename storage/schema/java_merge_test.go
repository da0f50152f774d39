package schema

import (
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// mergeType is a type of the column that options are about, and two values of it as
// the oracle takes them.
type mergeType struct {
	name   string
	t      types.Type
	values [2]any
}

func mergeTypes(t *testing.T) []mergeType {
	text := func(s string) types.Type {
		out, err := types.ParsePaimonText(s)
		if err != nil {
			t.Fatal(err)
		}
		return out
	}
	row := func(fields ...string) types.Type {
		r := types.Type{Kind: types.Row}
		for i, f := range fields {
			name, typ, _ := strings.Cut(f, " ")
			r.Fields = append(r.Fields, types.Field{ID: int32(100 + i), Name: name, Type: text(typ)})
		}
		return r
	}
	var out []mergeType
	for _, x := range []struct {
		t    string
		a, b any
	}{
		{"TINYINT", 1, 2}, {"SMALLINT", 1, 2}, {"INT", 1, 2}, {"BIGINT", 1, 2}, {"FLOAT", 1.5, 2.5}, {"DOUBLE", 1.5, 2.5}, {"DECIMAL(9, 2)", "1.50", "2.50"}, {"DECIMAL(30, 2)", "1.50", "2.50"},
		{"STRING", "a", "b"}, {"VARCHAR(10)", "a", "b"}, {"CHAR(3)", "abc", "abd"}, {"BYTES", "00", "01"}, {"BINARY(2)", "0000", "0001"}, {"VARBINARY(5)", "00", "01"}, {"BOOLEAN", true, false},
		{"DATE", "2024-01-01", "2024-01-02"}, {"TIME(3)", "01:02:03", "01:02:04"}, {"TIMESTAMP(6)", "2024-01-01T00:00:00", "2024-01-02T00:00:00"},
		{"ARRAY<INT>", []any{1}, []any{2, nil}}, {"MAP<STRING, INT>", []any{[]any{"a", 1}}, []any{[]any{"a", 2}}},
	} {
		out = append(out, mergeType{x.t, text(x.t), [2]any{x.a, x.b}})
	}
	r := row("id INT", "v STRING")
	one, two := map[string]any{"id": 1, "v": "a"}, map[string]any{"id": 1, "v": "b"}
	return append(out,
		mergeType{"ROW", r, [2]any{one, two}},
		mergeType{"ARRAY<ROW>", types.ArrayOf(r), [2]any{[]any{one}, []any{two}}},
		mergeType{"MAP<STRING, ROW>", types.MapOf(types.Of(types.Text), r), [2]any{[]any{[]any{"a", one}}, []any{[]any{"a", two}}}},
		mergeType{"MAP<STRING, ROW of one>", types.MapOf(types.Of(types.Text), row("v STRING")), [2]any{[]any{[]any{"a", map[string]any{"v": "a"}}}, []any{[]any{"a", map[string]any{"v": "b"}}}}},
		mergeType{"MAP<STRING, ROW without text>", types.MapOf(types.Of(types.Text), row("v INT", "w INT")), [2]any{[]any{[]any{"a", map[string]any{"v": 1, "w": 1}}}, []any{[]any{"a", map[string]any{"v": 2, "w": 2}}}}},
	)
}

var mergeFunctions = []string{"sum", "product", "max", "min", "last_value", "last_non_null_value", "first_value", "first_non_null_value", "first_not_null_value", "bool_and", "bool_or", "listagg", "collect",
	"merge_map", "merge_map_with_keytime", "nested_update", "nested_partial_update", "rbm32", "rbm64", "theta_sketch", "hll_sketch", "primary-key", "count", "SUM", ""}

// mergeOption is an option as one of a combination may have it.
var mergeOption = []func(r *rand.Rand, o map[string]string){
	oneOf("fields.a.aggregate-function", mergeFunctions...),
	oneOf("fields.b.aggregate-function", "sum", "last_value", "last_non_null_value", "listagg"),
	oneOf("fields.g.aggregate-function", "sum", "last_value"),
	oneOf("fields.nothing.aggregate-function", "sum"),
	oneOf("fields.k.aggregate-function", "sum"),
	oneOf("fields.default-aggregate-function", "sum", "last_value", "last_non_null_value", "first_value", "max", "nope", "collect"),
	oneOf("fields.g.sequence-group", "a", "a,b", "b", "k", "g", "nothing", "a,a", "b,h"),
	oneOf("fields.h.sequence-group", "b", "a", "g", "a,b"),
	oneOf("fields.g,h.sequence-group", "a", "a,b", "b"),
	oneOf("fields.k.sequence-group", "a"),
	oneOf("fields.nothing.sequence-group", "a"),
	oneOf("fields.a.ignore-retract", "true", "false"),
	oneOf("fields.a.distinct", "true", "false"),
	oneOf("fields.a.list-agg-delimiter", ";", ""),
	oneOf("fields.a.nested-key", "id", "id,v", "nothing"),
	oneOf("fields.a.count-limit", "3", "0", "-1", "x"),
	oneOf("fields.a.nested-sequence-field", "v", "nothing"),
	oneOf("fields.a.nested-key-null-strategy", "merge", "ignore", "error", "x"),
	oneOf("fields.a.ts-field", "v", "id", "nothing"),
	oneOf("ignore-delete", "true", "false"),
	oneOf("ignore-update-before", "true"),
	oneOf("partial-update.remove-record-on-delete", "true", "false"),
	oneOf("partial-update.remove-record-on-sequence-group", "g", "h", "a", "nothing", "g,h"),
	oneOf("aggregation.remove-record-on-delete", "true", "false"),
	oneOf("sequence.field", "b", "g", "a", "b,g", "nothing", "b,b", "k"),
	oneOf("sequence.field.sort-order", "ascending", "descending", "x"),
	oneOf("changelog-producer", "none", "input", "lookup", "full-compaction"),
	oneOf("rowkind.field", "s", "b", "nothing"),
	oneOf("deletion-vectors.enabled", "true"),
	oneOf("force-lookup", "true"),
}

func oneOf(key string, values ...string) func(r *rand.Rand, o map[string]string) {
	return func(r *rand.Rand, o map[string]string) {
		if v := values[r.IntN(len(values))]; v != "" || strings.HasSuffix(key, "delimiter") {
			o[key] = v
		}
	}
}

// TestJavaMergeOptions compares what becomes of combinations of a merge engine, a
// type, an aggregate function and options: we take or refuse them at CREATE as Java
// does when it creates the table, writes two commits and reads them.
// PAIMON_SQL_SEED repeats a run, PAIMON_SQL_SOAK takes every function with every
// type.
func TestJavaMergeOptions(t *testing.T) {
	c := oracle.Java(t, t.TempDir())
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	var all []mergeCombination
	kinds := mergeTypes(t)
	for _, engine := range []string{"aggregation", "partial-update"} {
		for _, fn := range mergeFunctions {
			for _, k := range kinds {
				o := map[string]string{"merge-engine": engine, "fields.a.aggregate-function": fn}
				if engine == "partial-update" {
					o["fields.g.sequence-group"] = "a"
				}
				if fn == "nested_partial_update" {
					o["fields.a.nested-key"] = "id"
				}
				if fn == "" {
					delete(o, "fields.a.aggregate-function")
				}
				all = append(all, mergeCombination{k, o})
			}
		}
	}
	if testkit.Factor() == 1 {
		r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
		all = all[:60]
	}
	for range 60 * testkit.Factor() * testkit.Factor() {
		o := map[string]string{"merge-engine": []string{"deduplicate", "partial-update", "partial-update", "aggregation", "aggregation", "first-row"}[r.IntN(6)]}
		for range 1 + r.IntN(4) {
			mergeOption[r.IntN(len(mergeOption))](r, o)
		}
		all = append(all, mergeCombination{kinds[r.IntN(len(kinds))], o})
	}
	taken, refused, known := 0, 0, map[string]int{}
	for i, x := range all {
		def := x.table()
		_, ours := New(def)
		java := x.java(c, fmt.Sprintf("d.c%d", i), def)
		switch {
		case ours == nil && java == nil:
			taken++
		case ours != nil && java != nil:
			refused++
		default:
			if why := x.known(ours, java); why != "" {
				known[why]++
				continue
			}
			o, _ := json.Marshal(def.Options)
			t.Errorf("%s %s:\nours %v\njava %v", x.kind.name, o, ours, cut(java))
		}
	}
	t.Logf("%d combinations: %d taken, %d refused", len(all), taken, refused)
	for _, why := range slices.Sorted(maps.Keys(known)) {
		t.Logf("known: %s: %d", why, known[why])
	}
}

func cut(err error) string {
	s := fmt.Sprint(err)
	return s[:min(len(s), 400)]
}

type mergeCombination struct {
	kind    mergeType
	options map[string]string
}

func (x mergeCombination) table() *Table {
	o := maps.Clone(x.options)
	o["bucket"] = "1"
	f := types.Schema{{Name: "k", Type: types.Of(types.Int4).WithNotNull(true)}, {Name: "a", Type: x.kind.t}, {Name: "b", Type: types.Of(types.Int4)}, {Name: "g", Type: types.Of(types.Int4)},
		{Name: "h", Type: types.Of(types.Int4)}, {Name: "s", Type: types.Of(types.Text)}}
	return &Table{Fields: f, PrimaryKeys: []string{"k"}, Options: o}
}

// java says what Java thinks of a table that it makes, writes and reads.
func (x mergeCombination) java(c *oracle.Client, name string, def *Table) error {
	if err := javaCreate(c, name, def); err != nil {
		return err
	}
	for i, v := range x.kind.values {
		switch fn := x.options["fields.a.aggregate-function"]; fn {
		case "rbm32", "rbm64", "theta_sketch", "hll_sketch":
			v = nil // what is no bitmap is refused, but not for the options
		}
		row := map[string]any{"k": 1, "a": v, "b": i, "g": i, "h": i, "s": "+I"}
		if _, err := c.Try(map[string]any{"cmd": "write", "table": name, "rows": []any{row}}); err != nil {
			return err
		}
	}
	_, err := c.Try(map[string]any{"cmd": "read", "table": name})
	return err
}

// known gives the reason of a difference that is meant.
func (x mergeCombination) known(ours, java error) string {
	if java == nil && strings.Contains(ours.Error(), "invalid value for option") {
		return "we look at the value of every option, Java at those that it needs"
	}
	if java == nil && (strings.Contains(ours.Error(), "nested-sequence-field") || strings.Contains(ours.Error(), "nested-key-null-strategy")) {
		return "1.4 does not know options of FieldNestedUpdateAggFactory"
	}
	if java == nil && strings.Contains(ours.Error(), "of the primary key, which cannot be in a sequence group") {
		return "1.4 takes key columns in groups, PartialUpdateMergeFunction of 2.x does not"
	}
	if java == nil && x.ordersSeveral() && strings.Contains(ours.Error(), "more than one sequence group") {
		return "Java lets the order of a HashMap decide which group a column that orders several is in"
	}
	if ours == nil && x.options["sequence.field"] == "a" && strings.Contains(java.Error(), "ClassCastException") {
		return "Java falls over comparing maps of rows"
	}
	if ours == nil && strings.Contains(java.Error(), "Incomparable type: BOOLEAN") {
		return "1.4 does not compare booleans (InternalRowUtils)"
	}
	return ""
}

// ordersSeveral says whether a column orders a sequence group and is in another,
// or orders several.
func (x mergeCombination) ordersSeveral() bool {
	in := map[string]int{}
	for k, v := range x.options {
		if !strings.HasSuffix(k, suffixSeqGroup) {
			continue
		}
		by := strings.Split(strings.TrimSuffix(strings.TrimPrefix(k, fieldsPrefix), suffixSeqGroup), ",")
		for _, c := range by {
			in[c]++
		}
		for _, c := range strings.Split(v, ",") {
			if !slices.Contains(by, c) && x.orders(c) {
				in[c]++
			}
		}
	}
	for _, n := range in {
		if n > 1 {
			return true
		}
	}
	return false
}

func (x mergeCombination) orders(column string) bool {
	for k := range x.options {
		if strings.HasSuffix(k, suffixSeqGroup) && slices.Contains(strings.Split(strings.TrimSuffix(strings.TrimPrefix(k, fieldsPrefix), suffixSeqGroup), ","), column) {
			return true
		}
	}
	return false
}
