package schema

import (
	"errors"
	"maps"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// TestMergeOptions are options of merge engines that are taken, or refused with a
// part of the message and the option to blame.
func TestMergeOptions(t *testing.T) {
	row := types.Type{Kind: types.Row, Fields: []types.Field{{Name: "x", Type: types.Of(types.Int4)}, {Name: "y", Type: types.Of(types.Text)}}}
	varchar := types.Of(types.Varchar)
	varchar.Len, varchar.Mod = 9, 13
	binary := types.Of(types.Bytea)
	binary.Lake, binary.Len = types.LakeBinary, 9
	fields := types.Schema{
		{Name: "k", Type: types.Of(types.Int4)}, {Name: "i", Type: types.Of(types.Int4)}, {Name: "j", Type: types.Of(types.Int8)}, {Name: "s", Type: types.Of(types.Text)},
		{Name: "v", Type: varchar}, {Name: "b", Type: types.Of(types.Bytea)}, {Name: "f", Type: binary}, {Name: "o", Type: types.Of(types.Bool)},
		{Name: "r", Type: row}, {Name: "l", Type: types.ArrayOf(types.Of(types.Int4))}, {Name: "n", Type: types.ArrayOf(row)},
		{Name: "m", Type: types.MapOf(types.Of(types.Text), types.Of(types.Int4))}, {Name: "t", Type: types.MapOf(types.Of(types.Text), row)},
	}
	const agg, part, fn = "merge-engine=aggregation ", "merge-engine=partial-update ", ".aggregate-function="
	for _, c := range []struct{ options, refused, blame string }{
		{agg + "fields.i" + fn + "sum fields.j" + fn + "product fields.s" + fn + "listagg fields.o" + fn + "bool_and", "", ""},
		{agg + "fields.b" + fn + "rbm32 fields.l" + fn + "collect fields.m" + fn + "merge_map fields.n" + fn + "nested_update fields.t" + fn + "merge_map_with_keytime", "", ""},
		{agg + "fields.default" + fn + "x", `column "default", which does not exist`, "fields.default.aggregate-function"},
		{agg + "fields.default-aggregate-function=first_value", "", ""},
		{agg + "fields.default-aggregate-function=sum", "sum does not take column \"s\"", "fields.default-aggregate-function"},
		{agg + "fields.i" + fn + "median", `no aggregate function "median"`, "fields.i.aggregate-function"},
		{agg + "fields.k" + fn + "median", `no aggregate function "median"`, "fields.k.aggregate-function"},
		{agg + "fields.k" + fn + "bool_or", "", ""}, // keys are left alone
		{agg + "fields.s" + fn + "sum", "does not take", "fields.s.aggregate-function"},
		{agg + "fields.v" + fn + "listagg", "does not take", "fields.v.aggregate-function"},
		{agg + "fields.f" + fn + "hll_sketch", "does not take", "fields.f.aggregate-function"},
		{agg + "fields.r" + fn + "max", "does not take", "fields.r.aggregate-function"},
		{agg + "fields.m" + fn + "min", "does not take", "fields.m.aggregate-function"},
		{agg + "fields.o" + fn + "max fields.v" + fn + "min fields.b" + fn + "max", "", ""},
		{agg + "fields.l" + fn + "nested_update", "does not take", "fields.l.aggregate-function"},
		{agg + "fields.m" + fn + "merge_map_with_keytime", "does not take", "fields.m.aggregate-function"},
		{agg + "fields.t" + fn + "merge_map_with_keytime fields.t.ts-field=x", "times of merge_map_with_keytime are text", "fields.t.ts-field"},
		{agg + "fields.t" + fn + "merge_map_with_keytime fields.t.ts-field=z", `names "z"`, "fields.t.ts-field"},
		{agg + "fields.n" + fn + "nested_update fields.n.nested-key=x fields.n.nested-sequence-field=y fields.n.count-limit=3", "", ""},
		{agg + "fields.n" + fn + "nested_update fields.n.nested-key=z", `names "z"`, "fields.n.nested-key"},
		{agg + "fields.n" + fn + "nested_update fields.n.nested-sequence-field=y", `needs "fields.n.nested-key"`, "fields.n.nested-sequence-field"},
		{agg + "fields.n" + fn + "nested_update fields.n.nested-key-null-strategy=ignore", `needs "fields.n.nested-key"`, "fields.n.nested-key-null-strategy"},
		{agg + "fields.n" + fn + "nested_partial_update", "needs option", "fields.n.nested-key"},
		{agg + "sequence.field=j fields.j" + fn + "sum", "cannot have an aggregate function", "sequence.field"},
		{agg + "sequence.field=j fields.default-aggregate-function=last_value", "", ""},
		{agg + "aggregation.remove-record-on-delete=true fields.i" + fn + "sum fields.i.ignore-retract=true", "exclude each other", "fields.i.ignore-retract"},
		{agg + "fields.r.x" + fn + "sum", "options are for whole columns", "fields.r.x.aggregate-function"},

		{"rowkind.field=s", "", ""},
		{"rowkind.field=i", "does not take column \"i\" of type INT", "rowkind.field"},
		{"record-level.expire-time=1h", "needs option \"record-level.time-field\"", "record-level.expire-time"},
		{"record-level.expire-time=1h record-level.time-field=i", "", ""},
		{"num-levels=1", "must be at least 2", "num-levels"},
		{"num-sorted-run.compaction-trigger=0", "must be at least 1", "num-sorted-run.compaction-trigger"},
		{"bucket=-1 dynamic-bucket.target-row-num=-5", "must be at least 1", "dynamic-bucket.target-row-num"},
		{"bucket=-2 postpone.default-bucket-num=0", "must be at least 1", "postpone.default-bucket-num"},

		{part + "fields.j.sequence-group=i,s", "", ""},
		{part + "fields.j,i.sequence-group=s,v fields.s" + fn + "listagg", "", ""},
		{part + "fields.i" + fn + "sum", "must be in a sequence group", "fields.i.aggregate-function"},
		{part + "fields.i" + fn + "last_non_null_value", "", ""},
		{part + "fields.default-aggregate-function=last_non_null_value", "", ""},
		{part + "fields.default-aggregate-function=max", "must be in a sequence group", "fields.default-aggregate-function"},
		{part + "fields.j.sequence-group=s fields.s" + fn + "sum", "does not take", "fields.s.aggregate-function"},
		{part + "fields.j.sequence-group=nope", "does not exist", "fields.j.sequence-group"},
		{part + "fields.j.sequence-group=k", "cannot be in a sequence group", "fields.j.sequence-group"},
		{part + "fields.k.sequence-group=i", "cannot be in a sequence group", "fields.k.sequence-group"},
		{part + "fields.j.sequence-group=s fields.i.sequence-group=s", "more than one sequence group", "fields.j.sequence-group"},
		{part + "fields.j.sequence-group=i fields.i.sequence-group=s", "more than one sequence group", "fields.j.sequence-group"},
		{part + "fields.j.sequence-group=s fields.j,i.sequence-group=v", "orders more than one", "fields.j.sequence-group"},
		{part + "fields.j.sequence-group=s partial-update.remove-record-on-sequence-group=j", "", ""},
		{part + "fields.j.sequence-group=s partial-update.remove-record-on-sequence-group=s", "no field of a sequence group", "partial-update.remove-record-on-sequence-group"},
		{part + "fields.j.sequence-group=s partial-update.remove-record-on-delete=true", "does not go with sequence groups", "partial-update.remove-record-on-delete"},
		{part + "ignore-delete=true partial-update.remove-record-on-delete=true", "exclude each other", "partial-update.remove-record-on-delete"},
		{part + "partial-update.ignore-delete=true fields.j.sequence-group=s partial-update.remove-record-on-sequence-group=j", "exclude each other", "partial-update.remove-record-on-sequence-group"},

		{"merge-engine=first-row", "", ""},
		{"merge-engine=first-row changelog-producer=lookup", "", ""},
		{"merge-engine=first-row changelog-producer=input", "takes only", "changelog-producer"},
		{"merge-engine=first-row sequence.field=j", "cannot be set with merge engine first-row", "sequence.field"},
		{"merge-engine=first-row deletion-vectors.enabled=true", "has no use", "deletion-vectors.enabled"},
		{"merge-engine=median", "invalid value", "merge-engine"},
		{"sequence.field=j,j", "twice", "sequence.field"},
		{"sequence.field=j,i sequence.field.sort-order=descending", "", ""},
		{"fields.i" + fn + "median", "", ""}, // of no meaning to deduplicate
	} {
		o := map[string]string{"bucket": "1"}
		for _, s := range strings.Fields(c.options) {
			k, v, _ := strings.Cut(s, "=")
			o[k] = v
		}
		plain, err := New(&Table{Fields: fields, PrimaryKeys: []string{"k"}, Options: map[string]string{"bucket": "1"}})
		if err != nil {
			t.Fatal(err)
		}
		check := func(what string, err error) {
			var e *ChangeError
			switch {
			case err == nil && c.refused != "":
				t.Errorf("%s %s: taken, want %s", what, c.options, c.refused)
			case err == nil:
			case !errors.As(err, &e) || c.refused == "" || !strings.Contains(err.Error(), c.refused) || e.Option != c.blame && what == "CREATE":
				t.Errorf("%s %s: %v, want %q about %q", what, c.options, err, c.refused, c.blame)
			}
		}
		_, err = New(&Table{Fields: fields, PrimaryKeys: []string{"k"}, Options: maps.Clone(o)})
		check("CREATE", err)
		var changes []Change
		for _, k := range sortedKeys(o) {
			changes = append(changes, SetOption{Key: k, Value: o[k]})
		}
		_, err = Apply(plain, changes, false)
		check("ALTER", err)
	}
}
