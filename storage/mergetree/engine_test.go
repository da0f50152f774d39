package mergetree

import (
	"fmt"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// engineTable makes a table of columns "name TYPE [NOT NULL]"; the first is the key.
func engineTable(t testing.TB, options map[string]string, cols ...string) *schema.Table {
	t.Helper()
	tab := &schema.Table{Options: options}
	for i, c := range cols {
		name, typ, _ := strings.Cut(c, " ")
		ty, err := parseType(typ)
		if err != nil {
			t.Fatal(err)
		}
		tab.Fields = append(tab.Fields, types.Field{ID: int32(i), Name: name, Type: ty})
	}
	tab.PrimaryKeys = []string{tab.Fields[0].Name}
	return tab
}

// parseType reads a type as text, ROW<name TYPE, ..> inside of one list or map, too.
func parseType(s string) (types.Type, error) {
	before, row, ok := strings.Cut(s, "ROW<")
	if !ok {
		return types.ParsePaimonText(s)
	}
	row, _, _ = strings.Cut(row, ">")
	r := types.Type{Kind: types.Row}
	for i, f := range strings.Split(row, ", ") {
		name, typ, _ := strings.Cut(f, " ")
		ft, err := types.ParsePaimonText(typ)
		if err != nil {
			return r, err
		}
		r.Fields = append(r.Fields, types.Field{ID: int32(100 + i), Name: name, Type: ft})
	}
	switch before {
	case "ARRAY<":
		return types.ArrayOf(r), nil
	case "MAP<STRING, ":
		return types.MapOf(types.Of(types.Text), r), nil
	}
	return r, nil
}

// versionRow is a version: its kind and values in table order.
type versionRow struct {
	kind uint8
	vals []types.Datum
}

var kindNames = map[string]uint8{"+I": KindInsert, "-U": KindUpdateBefore, "+U": KindUpdateAfter, "-D": KindDelete}

func vr(kind string, vals ...types.Datum) versionRow {
	for i, v := range vals {
		if n, ok := v.(int); ok {
			vals[i] = int64(n)
		}
	}
	return versionRow{kindNames[kind], vals}
}

// versionsOf makes the versions of keys as an engine reads them.
func versionsOf(tab *schema.Table, reads []int, keys [][]versionRow) *Versions {
	v := &Versions{}
	plain := true
	for _, k := range keys {
		for _, r := range k {
			v.Kinds = append(v.Kinds, r.kind)
			plain = plain && r.kind == KindInsert
			v.N++
		}
		v.Ends = append(v.Ends, uint32(v.N))
	}
	if plain {
		v.Kinds = nil
	}
	for _, c := range reads {
		// Columns come as slices of others: the rows before must not show.
		ds := []types.Datum{nil, keys[0][0].vals[c], nil}
		before := len(ds)
		for _, k := range keys {
			for _, r := range k {
				ds = append(ds, r.vals[c])
			}
		}
		v.Cols = append(v.Cols, vec.Slice(vec.FromDatums(tab.Fields[c].Type, ds), before, len(ds)))
	}
	return v
}

// foldAll folds keys and returns each as text: kind (values) @ position of the
// version whose sequence number it has.
func foldAll(t testing.TB, tab *schema.Table, cols []int, keys [][]versionRow) ([]string, error) {
	t.Helper()
	if cols == nil {
		for i := range tab.Fields {
			cols = append(cols, i)
		}
	}
	e, err := NewEngine(EngineSpec{Table: tab, Options: tab.Options, Columns: cols})
	if err != nil {
		return nil, err
	}
	v := versionsOf(tab, e.Reads(), keys)
	var out Folded
	if err := e.Fold(v, &out); err != nil {
		return nil, err
	}
	return foldedText(tab, cols, v, &out), nil
}

func foldedText(tab *schema.Table, cols []int, v *Versions, out *Folded) []string {
	var text []string
	from := uint32(0)
	for k, e := range v.Ends {
		kind := KindInsert
		if out.Kinds != nil {
			kind = out.Kinds[k]
		}
		last := e - 1
		if out.Last != nil {
			last = out.Last[k]
		}
		if kind == NoRow {
			text = append(text, "none")
		} else {
			text = append(text, fmt.Sprintf("%s %s @%d", map[uint8]string{0: "+I", 1: "-U", 2: "+U", 3: "-D"}[kind], rowText(tab, cols, out.Cols, k), last-from))
		}
		from = e
	}
	return text
}

func rowText(tab *schema.Table, cols []int, arrs []arrow.Array, k int) string {
	var b strings.Builder
	for i, c := range cols {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(datumText(vec.DatumAt(arrs[i], tab.Fields[c].Type, k)))
	}
	return "(" + b.String() + ")"
}

func datumText(d types.Datum) string {
	switch x := d.(type) {
	case nil:
		return "null"
	case string:
		return "'" + x + "'"
	case []byte:
		return fmt.Sprintf("x%x", x)
	case []types.Datum:
		out := make([]string, len(x))
		for i, e := range x {
			out[i] = datumText(e)
		}
		return "[" + strings.Join(out, ",") + "]"
	case []types.KV:
		out := make([]string, len(x))
		for i, e := range x {
			out[i] = datumText(e.K) + ":" + datumText(e.V)
		}
		return "{" + strings.Join(out, ",") + "}"
	}
	return fmt.Sprint(d)
}

func TestDeduplicateAndFirstRow(t *testing.T) {
	key := [][]versionRow{
		{vr("+I", 1, "a"), vr("-D", 1, "b")},
		{vr("-D", 2, "a"), vr("+U", 2, "b"), vr("-U", 2, "c")},
		{vr("-D", 3, "a"), vr("-U", 3, "b")},
	}
	for _, c := range []struct {
		name    string
		options map[string]string
		keys    [][]versionRow
		want    string
	}{
		{"last wins, kind as stored", nil, key, "-D (1, 'b') @1; -U (2, 'c') @2; -U (3, 'b') @1"},
		{"ignore-delete", map[string]string{"ignore-delete": "true"}, key, "+I (1, 'a') @0; +U (2, 'b') @1; none"},
		{"first-row", map[string]string{"merge-engine": "first-row"}, [][]versionRow{{vr("+I", 1, nil), vr("+U", 1, "b")}}, "+I (1, null) @0"},
		{"first-row, deletion", map[string]string{"merge-engine": "first-row"}, key, "error: merge engine first-row takes no deletions; set option ignore-delete to leave them out"},
		{"first-row, ignored", map[string]string{"merge-engine": "first-row", "first-row.ignore-delete": "true"}, key, "+I (1, 'a') @0; +U (2, 'b') @1; none"},
	} {
		t.Run(c.name, func(t *testing.T) {
			if got := outcome(foldAll(t, engineTable(t, c.options, "k INT", "v STRING"), nil, c.keys)); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func outcome(got []string, err error) string {
	if err != nil {
		return "error: " + err.Error()
	}
	return strings.Join(got, "; ")
}
