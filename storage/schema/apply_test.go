package schema

import (
	"errors"
	"maps"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

func orders(t *testing.T) *Table {
	t.Helper()
	row := types.Type{Kind: types.Row, Fields: []types.Field{{Name: "x", Type: types.Of(types.Int4)}, {Name: "y", Type: types.Of(types.Int4)}}}
	tab, err := New(&Table{
		Fields: types.Schema{
			{Name: "id", Type: types.Of(types.Int8)}, {Name: "dt", Type: types.Of(types.Date)}, {Name: "amount", Type: types.NumericOf(10, 2)},
			{Name: "pos", Type: row}, {Name: "list", Type: types.ArrayOf(row)}, {Name: "m", Type: types.MapOf(types.Of(types.Text), types.Of(types.Int4))},
		},
		PrimaryKeys: []string{"id", "dt"}, PartitionKeys: []string{"dt"},
		Options: map[string]string{
			"bucket": "2", "sequence.field": "amount", "fields.m.ignore-retract": "true", "pg-type.amount": "numeric", "pg-default.amount": "random()",
			"file-index.bloom-filter.columns": "amount,m[a]", "file-index.bloom-filter.amount.fpp": "0.1",
			"pg-constraint.pos":   `{"kind":"check","expr":"amount > 0 AND lower('amount') <> \"amount\"::text AND amount(1) IS NULL"}`,
			"pg-constraint.other": `{"kind":"unique","columns":["amount","m"]}`,
		},
	})
	if err != nil {
		t.Fatal(err)
	}
	return tab
}

func TestIDs(t *testing.T) {
	tab := orders(t)
	var ids []int32
	for _, f := range tab.Fields {
		ids = append(ids, f.ID)
	}
	if !slices.Equal(ids, []int32{0, 1, 2, 3, 6, 9}) || tab.HighestFieldID != 9 || !tab.Fields[0].Type.NotNull || tab.Fields[4].Type.Elem.Fields[1].ID != 8 {
		t.Errorf("ids %v, highest %d, %+v", ids, tab.HighestFieldID, tab.Fields)
	}
}

// TestRenameRewritesOptions: everything that names a column follows it.
func TestRenameRewritesOptions(t *testing.T) {
	got, err := Apply(orders(t), []Change{RenameColumn{[]string{"amount"}, "Total"}, RenameColumn{[]string{"m"}, "mm"}}, true)
	if err != nil {
		t.Fatal(err)
	}
	want := map[string]string{
		"bucket": "2", "sequence.field": "Total", "fields.mm.ignore-retract": "true", "pg-type.Total": "numeric", "pg-default.Total": "random()",
		"file-index.bloom-filter.columns": "Total,mm[a]", "file-index.bloom-filter.Total.fpp": "0.1",
		"pg-constraint.pos":   `{"expr":"\"Total\" \u003e 0 AND lower('amount') \u003c\u003e \"Total\"::text AND amount(1) IS NULL","kind":"check"}`,
		"pg-constraint.other": `{"columns":["Total","mm"],"kind":"unique"}`,
	}
	if !maps.Equal(got.Options, want) {
		t.Errorf("options %q", got.Options)
	}
	old := orders(t)
	if _, err := Apply(old, []Change{RenameColumn{[]string{"id"}, "key"}}, true); err != nil || old.PrimaryKeys[0] != "id" || old.Options["sequence.field"] != "amount" {
		t.Errorf("the old schema changed: %v, %v", err, old)
	}
	got, err = Apply(orders(t), []Change{RemoveOption{"sequence.field"}, DropColumn{[]string{"amount"}}}, true)
	if err != nil {
		t.Fatal(err)
	}
	want = map[string]string{"bucket": "2", "fields.m.ignore-retract": "true", "file-index.bloom-filter.columns": "m[a]"}
	if !maps.Equal(got.Options, want) {
		t.Errorf("options after a drop %q", got.Options)
	}
}

func TestChangeErrors(t *testing.T) {
	p := func(s ...string) []string { return s }
	one := "1"
	bad := "x"
	cases := []struct {
		name     string
		change   Change
		snapshot bool
		kind     ChangeKind
		column   string
	}{
		{"add existing", AddColumn{Path: p("id"), Type: types.Of(types.Int4)}, false, ColumnExists, "id"},
		{"add not null", AddColumn{Path: p("n"), Type: types.Of(types.Int4).WithNotNull(true)}, false, NotAllowed, "n"},
		{"add behind nothing", AddColumn{Path: p("n"), Type: types.Of(types.Int4), Move: &Move{After: "zz"}}, false, ColumnMissing, "zz"},
		{"add inside nothing", AddColumn{Path: p("zz", "n"), Type: types.Of(types.Int4)}, false, ColumnMissing, "zz"},
		{"add inside a number", AddColumn{Path: p("id", "n"), Type: types.Of(types.Int4)}, false, ColumnMissing, "id.n"},
		{"add inside a row twice", AddColumn{Path: p("pos", "x"), Type: types.Of(types.Int4)}, false, ColumnExists, "pos.x"},
		{"add a default", AddColumn{Path: p("n"), Type: types.Of(types.Int4), Default: &bad}, false, BadDefault, "n"},
		{"add system name", AddColumn{Path: p("_KEY_a"), Type: types.Of(types.Int4)}, false, InvalidDefinition, "_KEY_a"},
		{"drop key", DropColumn{p("id")}, false, NotAllowed, "id"},
		{"drop nothing", DropColumn{p("zz")}, false, ColumnMissing, "zz"},
		{"drop elements", DropColumn{p("list", "element")}, false, NotAllowed, "list.element"},
		{"drop what an option names", DropColumn{p("amount")}, false, BadOption, ""},
		{"rename partition", RenameColumn{p("dt"), "d"}, false, NotAllowed, "dt"},
		{"rename onto", RenameColumn{p("m"), "id"}, false, ColumnExists, "id"},
		{"type of key", UpdateType{p("id"), types.Of(types.Text), true}, false, NotAllowed, "id"},
		{"type without cast", UpdateType{p("m"), types.Of(types.Int4), true}, false, NotAllowed, "m"},
		{"set not null", UpdateNullability{Path: p("amount"), NotNull: true}, false, NullToNotNull, "amount"},
		{"drop not null of key", UpdateNullability{Path: p("id")}, false, NotAllowed, "id"},
		{"default", UpdateDefault{p("pos", "x"), &bad}, false, BadDefault, "x"},
		{"default of nothing", UpdateDefault{p("zz"), &one}, false, ColumnMissing, "zz"},
		{"move", UpdatePosition{"zz", Move{First: true}}, false, ColumnMissing, "zz"},
		{"fixed", SetOption{"merge-engine", "first-row"}, true, NotAllowed, ""},
		{"bucket", SetOption{"bucket", "-1"}, true, NotAllowed, ""},
		{"reset bucket", RemoveOption{"bucket"}, true, NotAllowed, ""},
		{"path", SetOption{"path", "x"}, false, NotAllowed, ""},
		{"type", SetOption{"type", "format-table"}, false, NotAllowed, ""},
		{"value", SetOption{"write-only", "maybe"}, false, BadOption, ""},
		{"size", SetOption{"target-file-size", "1 xb"}, false, BadOption, ""},
		{"second key", AddPrimaryKey{p("m")}, false, InvalidDefinition, ""},
		{"key with rows", AddPrimaryKey{p("m")}, true, KeyNotEmpty, ""},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			_, err := Apply(orders(t), []Change{c.change}, c.snapshot)
			var ce *ChangeError
			if !errors.As(err, &ce) || ce.Kind != c.kind || ce.Column != c.column {
				t.Fatalf("error %#v", err)
			}
		})
	}
	fine := []Change{
		AddColumn{Path: p("list", "element", "z"), Type: types.Of(types.Text)},
		UpdateType{p("m", "value"), types.Of(types.Int8), true},
		UpdateNullability{Path: p("amount"), NotNull: true, Verified: true},
		UpdateDefault{p("amount"), &one},
		SetOption{"bucket", "4"}, SetOption{"no.such.option", "x"},
		UpdatePosition{"m", Move{First: true}},
	}
	got, err := Apply(orders(t), fine, true)
	if err != nil {
		t.Fatal(err)
	}
	if got.ID != 1 || got.Fields[0].Name != "m" || got.Fields[0].Type.Elem.Kind != types.Int8 || got.HighestFieldID != 10 ||
		got.Fields[5].Type.Elem.Fields[2].ID != 10 || !got.Fields[3].Type.NotNull || got.Fields[3].Default != "1" {
		t.Errorf("%+v", got)
	}
}

func FuzzEachName(f *testing.F) {
	for _, s := range []string{`a > 1.5e3 AND "B" = 'x''y' OR c::int4 = $$q$$`, `E'\'' || U&"d" /* a */ -- b`, "`a``b`", "$t$a$t$ 1a 9", `"`, `'`, "$", "0x1F"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		last := 0
		eachName(s, func(start, end int, name string) {
			if start < last || end <= start || end > len(s) {
				t.Fatalf("%q: %d to %d behind %d", s, start, end, last)
			}
			last = end
		})
		if got := renameInSQL(s, "no such name", "x"); got != s {
			t.Fatalf("%q became %q", s, got)
		}
	})
}
