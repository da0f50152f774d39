package fileindex

import (
	"errors"
	"fmt"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

var fields = types.Schema{
	{ID: 0, Name: "a", Type: types.Of(types.Int4)},
	{ID: 1, Name: "s", Type: types.Of(types.Text)},
	{ID: 2, Name: "m", Type: types.Type{Kind: types.Map, Key: ptr(types.Of(types.Text)), Elem: ptr(types.Of(types.Int8))}},
	{ID: 3, Name: "v", Type: types.Type{Kind: types.Array, Elem: ptr(types.Of(types.Int8))}},
}

func ptr[T any](v T) *T { return &v }

func text(v any) string { return fmt.Sprint(v) }

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name string
		o    schema.Options
		want []string // container, kind, options
		bad  string   // the option that is refused
	}{
		{name: "none", o: schema.Options{"file-index.read.enabled": "true"}},
		{name: "two kinds", o: schema.Options{"file-index.bitmap.columns": "s, a", "file-index.bloom-filter.columns": "s", "file-index.bloom-filter.s.items": "9"},
			want: []string{"a bitmap map[]", "s bitmap map[]", "s bloom-filter map[items:9]"}},
		{name: "map keys", o: schema.Options{"file-index.bitmap.columns": "m[x],m[y]", "file-index.bitmap.m.version": "1", "file-index.bitmap.m[y].version": "2"},
			want: []string{"m[x] bitmap map[version:1]", "m[y] bitmap map[version:2]"}},
		{name: "kind", o: schema.Options{"file-index.brin.columns": "a"}, bad: "file-index.brin.columns"},
		{name: "column", o: schema.Options{"file-index.bitmap.columns": "b"}, bad: "file-index.bitmap.columns"},
		{name: "type", o: schema.Options{"file-index.bitmap.columns": "v"}, bad: "file-index.bitmap.columns"},
		{name: "key of no map", o: schema.Options{"file-index.bitmap.columns": "a[x]"}, bad: "file-index.bitmap.columns"},
		{name: "option of another column", o: schema.Options{"file-index.bitmap.columns": "a", "file-index.bitmap.s.version": "1"}, bad: "file-index.bitmap.s.version"},
	} {
		cfg, err := Parse(c.o, fields)
		var bad *OptionError
		if c.bad != "" {
			if !errors.As(err, &bad) || bad.Option != c.bad {
				t.Errorf("%s: %v", c.name, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		var got []string
		if cfg != nil {
			for _, x := range cfg.Columns {
				got = append(got, x.Container()+" "+x.Kind.Name()+" "+text(x.Options))
			}
		}
		if text(got) != text(c.want) {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}

// TestRoundTrip writes the indexes of a file and asks them.
func TestRoundTrip(t *testing.T) {
	cfg, err := Parse(schema.Options{"file-index.bitmap.columns": "a,m[x]", "file-index.bloom-filter.columns": "s,m[none]"}, fields)
	if err != nil {
		t.Fatal(err)
	}
	w, err := cfg.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	entry := func(k string, v int64) types.Datum { return []types.KV{{K: k, V: v}} }
	cols := []arrow.Array{
		vec.FromDatums(fields[0].Type, []types.Datum{int64(1), nil, int64(3)}),
		vec.FromDatums(fields[1].Type, []types.Datum{"p", "q", nil}),
		vec.FromDatums(fields[2].Type, []types.Datum{entry("x", 5), nil, entry("y", 6)}),
		vec.FromDatums(fields[3].Type, []types.Datum{nil, nil, nil}),
	}
	if err := w.Append(cols, 3); err != nil {
		t.Fatal(err)
	}
	raw, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(index.BytesSource(raw), fields)
	if err != nil {
		t.Fatal(err)
	}
	eval := func(n predicate.Node) Answer {
		if l, ok := n.(*predicate.Leaf); ok {
			l.Type = fields[l.Col].Type
		}
		r, err := f.Eval(n, 3)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	if r := eval(&predicate.Leaf{Op: predicate.Eq, Col: 0, Args: []types.Datum{int64(3)}}); r.Rows == nil || text(r.Rows.ToArray()) != "[2]" || r.Kind != "bitmap" {
		t.Errorf("a = 3: %v", r)
	}
	if r := eval(&predicate.Leaf{Op: predicate.Eq, Col: 0, Args: []types.Datum{int64(2)}}); r.Verdict != index.None {
		t.Errorf("a = 2: %v", r)
	}
	if r := eval(&predicate.Leaf{Op: predicate.Eq, Col: 1, Args: []types.Datum{"q"}}); r.Verdict == index.None || r.Kind != "" {
		t.Errorf("s = q: %v", r)
	}
	if r := eval(&predicate.Leaf{Op: predicate.Eq, Col: 1, Args: []types.Datum{"not there"}}); r.Verdict != index.None || r.Kind != "bloom-filter" {
		t.Errorf("s = not there: %v", r)
	}
	under := func(key string, op predicate.Op, args ...types.Datum) *predicate.MapLeaf {
		return &predicate.MapLeaf{Key: key, Leaf: predicate.Leaf{Op: op, Col: 2, Type: types.Of(types.Int8), Args: args}}
	}
	if r := eval(under("none", predicate.Eq, int64(5))); r.Verdict != index.None || r.Kind != "bloom-filter" {
		t.Errorf("m[none] = 5: %v", r)
	}
	if r := eval(under("x", predicate.Eq, int64(5))); r.Rows == nil || text(r.Rows.ToArray()) != "[0]" {
		t.Errorf("m[x] = 5: %v", r)
	}
	if r := eval(&predicate.Not{Arg: under("x", predicate.Eq, int64(5))}); r.Verdict != index.None {
		t.Errorf("NOT m[x] = 5: %v", r)
	}
	if r := eval(&predicate.And{Args: []predicate.Node{under("x", predicate.IsNull), under("y", predicate.Eq, int64(6))}}); r.Rows == nil || text(r.Rows.ToArray()) != "[1 2]" {
		t.Errorf("m[x] IS NULL: %v", r)
	}
}

// TestAmbiguous: where a column has the name that the values under a map's key go by,
// nothing is said of either.
func TestAmbiguous(t *testing.T) {
	both := append(fields[:4:4], types.Field{ID: 4, Name: "m[x]", Type: types.Of(types.Int8)})
	cfg, err := Parse(schema.Options{"file-index.bitmap.columns": "m[x]"}, fields)
	if err != nil {
		t.Fatal(err)
	}
	w, err := cfg.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	var cols []arrow.Array
	for i, f := range fields {
		d := types.Datum(nil)
		if i == 2 {
			d = []types.KV{{K: "x", V: int64(5)}}
		}
		cols = append(cols, vec.FromDatums(f.Type, []types.Datum{d}))
	}
	if err := w.Append(cols, 1); err != nil {
		t.Fatal(err)
	}
	raw, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	leaf := predicate.Leaf{Op: predicate.Eq, Type: types.Of(types.Int8), Args: []types.Datum{int64(6)}}
	for _, fs := range []types.Schema{fields, both} {
		f, err := Open(index.BytesSource(raw), fs)
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range []predicate.Node{&predicate.MapLeaf{Key: "x", Leaf: leaf}, &leaf} {
			if m, ok := n.(*predicate.MapLeaf); ok {
				m.Col = 2
			} else if leaf.Col = 4; len(fs) < 5 {
				continue
			}
			r, err := f.Eval(n, 1)
			if err != nil {
				t.Fatal(err)
			}
			if none := r.Verdict == index.None; none != (len(fs) == 4) {
				t.Errorf("%#v over %d columns: %v", n, len(fs), r)
			}
		}
	}
}

// TestLongLists: a list of more values than looking them up is worth is not looked up.
func TestLongLists(t *testing.T) {
	cfg, err := Parse(schema.Options{"file-index.bitmap.columns": "a", "file-index.range-bitmap.columns": "a", "file-index.bloom-filter.columns": "a"}, fields[:1])
	if err != nil {
		t.Fatal(err)
	}
	const rows = 20_000
	w, err := cfg.NewWriter()
	if err != nil {
		t.Fatal(err)
	}
	values := make([]types.Datum, rows)
	for i := range values {
		values[i] = int64(i)
	}
	if err := w.Append([]arrow.Array{vec.FromDatums(fields[0].Type, values)}, rows); err != nil {
		t.Fatal(err)
	}
	raw, err := w.Finish()
	if err != nil {
		t.Fatal(err)
	}
	f, err := Open(index.BytesSource(raw), fields[:1])
	if err != nil {
		t.Fatal(err)
	}
	absent := func(n int) *predicate.Leaf {
		l := &predicate.Leaf{Op: predicate.In, Col: 0, Type: fields[0].Type}
		for i := range n {
			l.Args = append(l.Args, int64(rows+i))
		}
		return l
	}
	few := &predicate.Leaf{Op: predicate.Eq, Col: 0, Type: fields[0].Type, Args: []types.Datum{int64(7)}}
	for _, c := range []struct {
		what string
		n    predicate.Node
		rows int64 // of the file; -1 = unknown
		want index.Verdict
	}{
		{"few values", absent(60), rows, index.None},
		{"many values, for many rows", absent(rows / 100), rows, index.None},
		{"too many", absent(rows/100 + 1), rows, index.Some},
		{"their absence", &predicate.Not{Arg: absent(rows/100 + 1)}, rows, index.Some},
		{"rows not known", absent(rows), -1, index.None},
		{"beside a short question", &predicate.And{Args: []predicate.Node{absent(rows), &predicate.Leaf{Op: predicate.Lt, Col: 0, Type: fields[0].Type, Args: []types.Datum{int64(0)}}}}, rows, index.None},
	} {
		if r, err := f.Eval(c.n, c.rows); err != nil || r.Verdict != c.want {
			t.Errorf("%s: %v, %v", c.what, r, err)
		}
	}
	r, err := f.Eval(&predicate.And{Args: []predicate.Node{absent(rows), few}}, rows)
	if err != nil || r.Rows == nil || r.Rows.GetCardinality() != 1 {
		t.Errorf("beside a question for one row: %v, %v", r, err)
	}
	r, err = f.Eval(&predicate.Or{Args: []predicate.Node{absent(rows), few}}, rows)
	if err != nil || r.Rows != nil || r.Verdict != index.Some {
		t.Errorf("or one row: %v, %v", r, err)
	}
}
