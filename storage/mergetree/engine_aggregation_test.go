package mergetree

import (
	"math"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

func ints(v ...int) []types.Datum {
	out := []types.Datum{}
	for _, x := range v {
		out = append(out, int64(x))
	}
	return out
}

func dec(coef int64, scale int32) *numeric.Dec {
	d := numeric.FromInt64(coef)
	d.Scale = scale
	return d
}

// The example of Java 1.4.2.
func TestAggregationExample(t *testing.T) {
	o := map[string]string{"merge-engine": "aggregation"}
	for c, fn := range map[string]string{"s": "sum", "mx": "max", "la": "listagg", "ln": "last_value", "fv": "first_value", "col": "collect", "p": "product"} {
		o["fields."+c+".aggregate-function"] = fn
	}
	for _, c := range []string{"mx", "la", "fv"} {
		o["fields."+c+".ignore-retract"] = "true"
	}
	tab := engineTable(t, o, "k INT", "s INT", "mx INT", "la STRING", "ln STRING", "fv STRING", "col ARRAY<INT>", "def INT", "p INT")
	rows := []versionRow{
		vr("+I", 1, 1, 5, "a", "l1", nil, ints(1, 2), 10, 2),
		vr("+I", 1, 2, 3, "b", nil, "f2", ints(2, 3), nil, 3),
		vr("-D", 1, 1, 5, "a", "l1", nil, ints(2), 10, 2),
	}
	for _, c := range []struct {
		rows []versionRow
		want string
	}{
		{rows[:2], "+I (1, 3, 5, 'a,b', null, null, [1,2,2,3], 10, 6) @1"},
		{rows, "+I (1, 2, 5, 'a,b', null, null, [1,2,3], null, 3) @2"},
		{[]versionRow{vr("-D", 2, 1, 5, "a", "l1", nil, ints(2), 10, 2), vr("+I", 2, 1, 5, "a", "l1", nil, ints(2), 10, 2)}, "+I (2, 0, 5, 'a', 'l1', null, [2], 10, 2) @1"},
	} {
		if got := outcome(foldAll(t, tab, nil, [][]versionRow{c.rows})); got != c.want {
			t.Errorf("got  %s\nwant %s", got, c.want)
		}
	}
}

// TestFunctionEdges are what random values do not reach.
func TestFunctionEdges(t *testing.T) {
	add := func(vals ...types.Datum) (out []versionRow) {
		for _, v := range vals {
			out = append(out, vr("+I", 1, v))
		}
		return out
	}
	back := func(vals ...types.Datum) []versionRow {
		out := add(vals...)
		out[len(out)-1].kind = KindDelete
		return out
	}
	row := func(v ...types.Datum) types.Datum {
		for i := range v {
			if n, ok := v[i].(int); ok {
				v[i] = int64(n)
			}
		}
		return v
	}
	list := func(v ...types.Datum) types.Datum { return v }
	kv := func(v ...types.Datum) types.Datum {
		out := []types.KV{}
		for i := 0; i < len(v); i += 2 {
			out = append(out, types.KV{K: v[i], V: v[i+1]})
		}
		return out
	}
	const nested = "ARRAY<ROW<id INT, q INT, v STRING>>"
	for _, c := range []struct {
		function, typ, options string
		rows                   []versionRow
		want                   string // the value, or part of an error
	}{
		{"sum", "TINYINT", "", add(100, 27), "127"},
		{"sum", "TINYINT", "", add(100, 27, 1), "column v: TINYINT overflow: 127 + 1"},
		{"sum", "SMALLINT", "", back(-32768, 1), "column v: SMALLINT overflow: -32768 - 1"},
		{"sum", "INT", "", add(math.MaxInt32, 1), "INT overflow"},
		{"sum", "BIGINT", "", add(int64(math.MaxInt64), 1), "BIGINT overflow: 9223372036854775807 + 1"},
		{"sum", "BIGINT", "", back(nil, int64(math.MinInt64)), "BIGINT overflow"},
		{"sum", "BIGINT", "", back(int64(math.MinInt64), int64(math.MinInt64)), "0"},
		{"sum", "DECIMAL(4, 2)", "", add(dec(9999, 2), dec(1, 2)), "100.00"}, // Java does not look
		{"sum", "DECIMAL(18, 0)", "", add(dec(999999999999999999, 0), dec(999999999999999999, 0), dec(999999999999999999, 0)), "2999999999999999997"},
		{"sum", "DECIMAL(19, 0)", "", add(dec(5e18, 0), dec(5e18, 0)), "null"},
		{"sum", "DECIMAL(19, 0)", "", add(dec(5e18, 0), dec(5e18, 0), dec(7, 0)), "7"},
		{"product", "TINYINT", "", add(64, -2), "-128"},
		{"product", "TINYINT", "", add(64, 2), "TINYINT overflow: 64 * 2"},
		{"product", "BIGINT", "", add(int64(math.MinInt64), -1), "BIGINT overflow"},
		{"product", "BIGINT", "", back(int64(math.MinInt64), -1), "BIGINT overflow: -9223372036854775808 / -1"},
		{"product", "INT", "", back(7, -2), "-3"},
		{"product", "INT", "", back(7, 0), "division by zero"},
		{"product", "INT", "", back(nil, 2), "null"},
		{"product", "INT", "", back(7, nil), "7"},
		{"product", "DECIMAL(4, 2)", "", add(dec(105, 2), dec(110, 2)), "1.16"}, // 1.155
		{"product", "DECIMAL(4, 2)", "", add(dec(-105, 2), dec(110, 2)), "-1.16"},
		{"product", "DECIMAL(4, 2)", "", add(dec(5000, 2), dec(500, 2)), "null"},
		{"product", "DECIMAL(4, 2)", "", back(dec(100, 2), dec(800, 2)), "0.13"}, // 0.125
		{"product", "DECIMAL(4, 2)", "", back(dec(100, 2), dec(300, 2)), "a quotient without an end"},
		{"product", "DECIMAL(38, 0)", "", add(dec(1e18, 0), dec(1e18, 0), dec(100, 0)), "null"},
		{"product", "DOUBLE", "", back(1.0, 0.0), "+Inf"},
		{"max", "DOUBLE", "", add(1.0, math.NaN(), 2.0), "NaN"},
		{"max", "DOUBLE", "", add(math.Copysign(0, -1), 0.0), "0"},
		{"min", "DOUBLE", "", add(0.0, math.Copysign(0, -1)), "-0"},
		{"min", "FLOAT", "", add(math.NaN(), math.Inf(1)), "+Inf"},
		{"max", "BYTES", "", add([]byte{0x7f}, []byte{0x80}, []byte{0x7f, 1}), "x80"},
		{"min", "STRING", "", add("b", "a", nil), "'a'"},
		{"max", "INT", "", back(1, 2), "column v: aggregate function max does not support retraction; set option fields.v.ignore-retract"},
		{"max", "INT", "ignore-retract=true", back(1, 2), "1"},
		{"max", "BOOLEAN", "", add(false, true, false), "true"},
		{"listagg", "STRING", "", add("", "a", " \u2003", "b"), "'a,b'"},
		{"listagg", "STRING", "", add(nil, ""), "null"},
		{"listagg", "STRING", "", add("\u00a0", "b"), "'\u00a0,b'"}, // no white space for Java
		{"listagg", "STRING", "distinct=true", add("a,a", "b,a,c", "c,,d"), "'a,a,b,c,d'"},
		{"listagg", "STRING", "distinct=true list-agg-delimiter=--", add("a--", "--a"), "'a--'"},
		{"collect", "ARRAY<INT>", "", add(list(), nil), "[]"},
		{"collect", "ARRAY<INT>", "", add(nil, nil), "null"},
		{"collect", "ARRAY<INT>", "", back(ints(1, 1, 2), ints(1, 3)), "[1,2]"},
		{"collect", "ARRAY<INT>", "distinct=true", add(ints(1, 1), nil), "[1]"},
		{"collect", "ARRAY<BYTES>", "distinct=true", add(list([]byte{1}, nil), list([]byte{1}, nil)), "[x01,null]"},
		{"merge_map", "MAP<STRING, INT>", "", add(kv("a", int64(1), "b", nil), kv("b", int64(2))), "{'a':1,'b':2}"},
		{"merge_map", "MAP<STRING, INT>", "", back(kv("a", int64(1), "b", nil), kv("b", int64(9))), "{'a':1}"},
		{"merge_map_with_keytime", "MAP<STRING, ROW<v INT, t STRING>>", "", add(kv("a", row(1, "9"), "b", row(1, "1"), "c", nil), kv("a", row(2, "10"), "b", nil, "c", row(3, nil))), "{'a':[1,'9'],'c':null}"},
		{"merge_map_with_keytime", "MAP<STRING, ROW<v INT, t STRING>>", "", add(kv("a", row(1, "\ufffe")), kv("a", row(2, "\U00010000"))), "{'a':[1,'\ufffe']}"},
		{"nested_update", nested, "", add(list(row(1, 1, "a"), nil), list(nil, row(1, 2, "b"))), "[[1,1,'a'],[1,2,'b']]"},
		{"nested_update", nested, "count-limit=2", add(list(row(1, 1, "a")), list(row(2, 1, "a"), row(3, 1, "a"))), "[[1,1,'a'],[2,1,'a']]"},
		{"nested_update", nested, "nested-key=id count-limit=2", add(list(row(1, 1, "a"), row(2, 1, "a")), list(row(3, 1, "a"), row(1, 5, "z"))), "[[1,5,'z'],[2,1,'a']]"},
		{"nested_update", nested, "nested-key=id nested-sequence-field=q", add(list(row(1, 5, "a"), row(2, nil, "a")), list(row(1, 4, "b"), row(2, 0, "b"))), "[[1,5,'a'],[2,0,'b']]"},
		{"nested_update", nested, "nested-key=id,v", add(list(row(1, 5, nil)), list(row(1, 6, nil))), "[[1,6,null]]"},
		{"nested_update", nested, "nested-key=id nested-key-null-strategy=ignore", add(list(row(nil, 5, "a")), list(row(1, 4, "b"))), "[[1,4,'b']]"},
		{"nested_update", nested, "nested-key=id nested-key-null-strategy=error", add(list(row(nil, 5, "a")), list(row(1, 4, "b"))), "NULL in the nested key"},
		{"nested_update", nested, "", back(list(row(1, 5, "a"), row(1, 5, "a"), row(2, 5, "a")), list(row(1, 5, "a"))), "[[2,5,'a']]"},
		{"nested_update", nested, "nested-key=id", back(list(row(1, 5, "a"), row(2, 5, "a")), list(row(2, 0, "x"))), "[[1,5,'a']]"},
		{"nested_partial_update", nested, "nested-key=id", add(list(row(1, nil, "a"), row(1, 2, nil)), nil, list(row(1, 3, nil), nil, row(2, nil, nil))), "[[1,3,'a'],[2,null,null]]"},
		{"first_not_null_value", "INT", "", add(nil, 1, 2), "1"},
		{"rbm32", "BYTES", "", add([]byte{1}, []byte{2}), "damaged value: not a roaring bitmap"},
		{"rbm32", "BYTES", "", add([]byte{1}, nil), "x01"},
	} {
		o := map[string]string{"merge-engine": "aggregation", "fields.v.aggregate-function": c.function}
		for _, s := range strings.Fields(c.options) {
			k, v, _ := strings.Cut(s, "=")
			o["fields.v."+k] = v
		}
		tab := engineTable(t, o, "k INT", "v "+c.typ)
		want := "+I (1, " + c.want + ")"
		got := outcome(foldAll(t, tab, nil, [][]versionRow{c.rows}))
		if !strings.HasPrefix(got, want) && !(strings.HasPrefix(got, "error: ") && strings.Contains(got, c.want)) {
			t.Errorf("%s of %s %s %v:\ngot  %s\nwant %s", c.function, c.typ, c.options, versionText(tab, c.rows), got, want)
		}
	}
}

// TestEngineErrors are tables that make no engine.
func TestEngineErrors(t *testing.T) {
	for _, c := range []struct {
		options map[string]string
		want    string
	}{
		{map[string]string{"merge-engine": "sum-up"}, "merge engine sum-up"},
		{map[string]string{"merge-engine": "aggregation", "fields.v.aggregate-function": "median"}, `there is no aggregate function "median"`},
		{map[string]string{"merge-engine": "aggregation", "fields.v.aggregate-function": "sum"}, `aggregate function sum does not take column "v" of type STRING`},
		{map[string]string{"merge-engine": "partial-update", "fields.w.sequence-group": "v", "fields.x.sequence-group": "w"}, "column w as a field of one sequence group and in another"},
		{map[string]string{"merge-engine": "partial-update", "fields.w.sequence-group": "v", "fields.x.sequence-group": "v"}, `column "v" is in more than one sequence group`},
		{map[string]string{"merge-engine": "partial-update", "fields.w.sequence-group": "v", "fields.x.aggregate-function": "sum"}, `column "x" must be in a sequence group to have aggregate function sum`},
	} {
		tab := engineTable(t, c.options, "k INT", "v STRING", "w INT", "x INT")
		_, err := NewEngine(EngineSpec{Table: tab, Options: tab.Options, Columns: []int{0, 1, 2, 3}})
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: got %v, want %s", c.options, err, c.want)
		}
	}
}
