package schema

import (
	"os"
	"path/filepath"
	"reflect"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

func ty(t testing.TB, s string) types.Type {
	t.Helper()
	v, err := types.ParsePaimonText(s)
	if err != nil {
		t.Fatal(err)
	}
	return v
}

func TestVersions(t *testing.T) {
	const fields = `"id":1,"fields":[{"id":0,"name":"a","type":"INT"}],"highestFieldId":0,"partitionKeys":[],"primaryKeys":[],"options":{}`
	for _, c := range []struct{ json, bucket, format string }{
		{`{` + fields + `}`, "1", "orc"},
		{`{"version":2,` + fields + `}`, "", "orc"},
		{`{"version":3,` + fields + `,"future":[1]}`, "", ""},
	} {
		s, err := Parse([]byte(c.json))
		if err != nil || s.Options["bucket"] != c.bucket || s.Options["file.format"] != c.format {
			t.Errorf("%s: %+v, %v", c.json, s, err)
		}
	}
	for _, bad := range []string{``, `{}`, `{"version":9,` + fields + `}`, `{"version":3,"id":0,"fields":[],"primaryKeys":["k"]}`,
		`{"version":3,"id":0,"fields":[{"id":0,"name":"a","type":"INT"},{"id":1,"name":"a","type":"INT"}]}`} {
		if s, err := Parse([]byte(bad)); err == nil {
			t.Errorf("%s parsed as %+v", bad, s)
		}
	}
}

// TestFixtures: every schema that Java wrote reads, and what we write of it reads
// back the same.
func TestFixtures(t *testing.T) {
	dir := os.Getenv("PAIMON_SQL_SHARED")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared")
	}
	files, _ := filepath.Glob(filepath.Join(dir, "fixtures", "*", "*", "*.db", "*", "schema", "schema-*"))
	if len(files) == 0 {
		t.Skip("needs ../shared/fixtures")
	}
	for _, f := range files {
		raw, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(raw)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		again, err := Encode(s)
		if err != nil {
			t.Errorf("%s: %v", f, err)
			continue
		}
		back, err := Parse(again)
		s.Version = CurrentVersion
		for _, p := range []*Table{s, back} {
			if len(p.PartitionKeys) == 0 {
				p.PartitionKeys = nil
			}
			if len(p.PrimaryKeys) == 0 {
				p.PrimaryKeys = nil
			}
		}
		if err != nil || !reflect.DeepEqual(s, back) {
			t.Errorf("%s: %v\n%+v\n%+v", f, err, s, back)
		}
	}
	t.Logf("%d schemas", len(files))
}

func TestOptions(t *testing.T) {
	for s, want := range map[string]int64{"128 mb": 128 << 20, "500 bytes": 500, "1b": 1, "2G": 2 << 30, "7": 7, "3 kb": 3 << 10} {
		if n, err := ParseSize(s); err != nil || n != want {
			t.Errorf("%q: %d, %v", s, n, err)
		}
	}
	for s, want := range map[string]time.Duration{"1 h": time.Hour, "36 d": 36 * 24 * time.Hour, "10s": 10 * time.Second, "500": 500 * time.Millisecond, "2 min": 2 * time.Minute} {
		if d, err := ParseDuration(s); err != nil || d != want {
			t.Errorf("%q: %v, %v", s, d, err)
		}
	}
	for _, bad := range []string{"", "mb", "-1 mb", "1 parsec", "99999999999999999999", "9999999 tb"} {
		if n, err := ParseSize(bad); err == nil {
			t.Errorf("size %q is %d", bad, n)
		}
	}
	o := Options{"a": " TRUE ", "b": "yes", "l": " s0 , s1 ,", "n": "12"}
	if b, err := o.Bool("a", false); !b || err != nil {
		t.Error(b, err)
	}
	if _, err := o.Bool("b", false); err == nil {
		t.Error("yes is not a boolean")
	}
	if got := o.List("l"); len(got) != 2 || got[1] != "s1" {
		t.Error(got)
	}
	if w := o.With(map[string]string{"n": "13"}); w["n"] != "13" || o["n"] != "12" {
		t.Error(w, o)
	}
}

// TestCasts are values that Java 1.4.2 gave.
func TestCasts(t *testing.T) {
	dec := func(s string) *numeric.Dec { d, _ := parseDecimal(s); return d }
	const day = int64(86_400_000_000)
	for _, c := range []struct {
		from, to string
		in       types.Datum
		want     string // "null", "error" or the value's text
	}{
		{"INT", "TINYINT", int64(300), "44"},
		{"BIGINT", "TINYINT", int64(300), "44"},
		{"DOUBLE", "INT", 1e20, "2147483647"},
		{"DOUBLE", "TINYINT", 1e20, "-1"},
		{"DOUBLE", "INT", -1.9, "-1"},
		{"DECIMAL(10, 3)", "DECIMAL(10, 2)", dec("123.455"), "123.46"},
		{"DECIMAL(10, 3)", "DECIMAL(3, 1)", dec("123.455"), "null"},
		{"DECIMAL(10, 3)", "INT", dec("123.455"), "123"},
		{"DECIMAL(10, 3)", "INT", dec("-123.955"), "-123"},
		{"INT", "DECIMAL(4, 0)", int64(12345), "null"},
		{"DOUBLE", "DECIMAL(10, 2)", 1.005, "1.01"},
		{"STRING", "CHAR(4)", "ab", "ab  "},
		{"STRING", "VARCHAR(3)", "abcdef", "abc"},
		{"STRING", "INT", " 12 ", "error"},
		{"STRING", "INT", "12.7", "12"},
		{"STRING", "BOOLEAN", "on", "error"},
		{"STRING", "BOOLEAN", "Yes", "true"},
		{"STRING", "DATE", "2021-1-1", "2021-01-01"},
		{"STRING", "TIMESTAMP(6)", "2021-01-01 00:00:00.123456789", "2021-01-01 00:00:00.123456"},
		{"TIMESTAMP(9)", "TIMESTAMP(3)", int64(1609459200_999999999), "2021-01-01 00:00:00.999"},
		{"TIMESTAMP(9)", "BIGINT", int64(1609459200_999999999), "1609459200"},
		{"TIMESTAMP(9)", "TIME(3)", int64(1609459200_999999999), "00:00:00.999"},
		{"TIMESTAMP(3)", "BIGINT", int64(-1000), "0"},
		{"INT", "TIMESTAMP(3)", int64(5), "1970-01-01 00:00:05.000"},
		{"TIME(3)", "STRING", int64(0), "00:00:00.0"},
		{"TIME(0)", "STRING", int64(3661001000), "01:01:01"},
		{"BOOLEAN", "INT", true, "1"},
		{"BYTES", "STRING", []byte("ab"), "ab"},
		{"DATE", "TIMESTAMP(9)", int64(1), "1970-01-02 00:00:00.000000000"},
		{"TIMESTAMP(6)", "DATE", -day - 1, "1969-12-30"},
		{"DOUBLE", "STRING", 1e10, "1.0E10"},
		{"FLOAT", "STRING", float64(float32(0.1)), "0.1"},
		{"ARRAY<INT>", "STRING", []types.Datum{int64(1), nil, int64(3)}, "[1, null, 3]"},
		{"MAP<STRING, INT>", "STRING", []types.KV{{K: "k", V: int64(7)}}, "{k -> 7}"},
		{"ARRAY<INT>", "ARRAY<BIGINT>", []types.Datum{int64(1), nil}, "[1, null]"},
		{"INT", "BIGINT", int64(-7), "-7"},
		{"VARCHAR(5)", "STRING", "x", "x"},
	} {
		from, to := ty(t, c.from), ty(t, c.to)
		f, err := newCast(from, to)
		if err != nil {
			t.Errorf("%s to %s: %v", c.from, c.to, err)
			continue
		}
		a := vec.FromDatums(from, []types.Datum{nil, c.in})
		if f != nil {
			a, err = f(a)
		}
		got := "error"
		if err == nil {
			if !a.IsNull(0) || a.Len() != 2 {
				t.Errorf("%s to %s: NULL became %v", c.from, c.to, vec.DatumAt(a, to, 0))
			}
			got, _ = ToText(to, vec.DatumAt(a, to, 1))
		}
		if got != c.want {
			t.Errorf("%s to %s of %v: %s (%v), want %s", c.from, c.to, c.in, got, err, c.want)
		}
	}
	if _, err := newCast(ty(t, "DATE"), ty(t, "INT")); err == nil {
		t.Error("a date became an integer")
	}
}

// TestPredicates move by field id, and only where order and values are the same.
func TestPredicates(t *testing.T) {
	f := func(id int32, name, typ string) types.Field { return types.Field{ID: id, Name: name, Type: ty(t, typ)} }
	from := &Table{ID: 0, Fields: types.Schema{f(0, "score", "INT"), f(1, "a", "STRING"), f(2, "gone", "INT"), f(3, "d", "DECIMAL(5, 2)")}}
	to := &Table{ID: 1, Fields: types.Schema{f(3, "d", "DECIMAL(7, 2)"), f(0, "grade", "BIGINT"), f(1, "a", "INT"), f(4, "score", "INT")}}
	e := NewEvolution(from, to)
	leaf := func(col int, op predicate.Op, args ...types.Datum) predicate.Node {
		return &predicate.Leaf{Op: op, Col: col, FieldID: to.Fields[col].ID, Type: to.Fields[col].Type, Args: args}
	}
	same := func(i int) int { return i + 2 }
	l, ok := e.Predicate(leaf(1, predicate.Lt, int64(60)), same).(*predicate.Leaf)
	if !ok || l.Col != 2 || l.Name != "score" || l.Type.Kind != types.Int4 {
		t.Errorf("a renamed and widened column: %+v", l)
	}
	if n := e.Predicate(leaf(1, predicate.Lt, int64(1)<<40), same); n != nil {
		t.Errorf("a constant that the file's type does not hold: %+v", n)
	}
	if n := e.Predicate(leaf(2, predicate.Gt, int64(9)), same); n != nil {
		t.Errorf("text compared as a number: %+v", n)
	}
	if n := e.Predicate(leaf(3, predicate.IsNull), same); n != nil {
		t.Errorf("a column that the file lacks: %+v", n)
	}
	if n := e.Predicate(leaf(0, predicate.Eq, numeric.FromInt64(1)), same); n == nil {
		t.Error("a decimal that only grew")
	}
	and := &predicate.And{Args: []predicate.Node{leaf(1, predicate.Lt, int64(60)), leaf(2, predicate.Gt, int64(9))}}
	if _, ok := e.Predicate(and, same).(*predicate.Leaf); !ok {
		t.Error("AND keeps the part that moves")
	}
	or := &predicate.Or{Args: and.Args}
	if n := e.Predicate(or, same); n != nil {
		t.Errorf("OR with an unknown part is true: %+v", n)
	}
	if src, _ := e.Source(3); src != -1 {
		t.Errorf("a column dropped and added again reads column %d", src)
	}
}

// TestNamesInExpressions: numbers end, and are no names.
func TestNamesInExpressions(t *testing.T) {
	for _, tc := range []struct{ in, want string }{
		{"a > 1", `"b" > 1`},
		{"a > 1e5 AND x < 10.5", `"b" > 1e5 AND x < 10.5`},
		{"a1 > a", `a1 > "b"`},
		{"1", "1"},
		{"f(a, 'a', \"a\")::a", `f("b", 'a', "b")::a`},
	} {
		if got := renameInSQL(tc.in, "a", "b"); got != tc.want {
			t.Errorf("%q: %q, not %q", tc.in, got, tc.want)
		}
	}
}
