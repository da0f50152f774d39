package schema

import (
	"errors"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/mergetree/aggregate"
)

// mergeEngine checks what partial-update and aggregation ask for. Java looks at
// most of it when it first merges; here a table that could not be read is not made.
// Source: SchemaValidation.java, PartialUpdateMergeFunction.java,
// FieldAggregatorFactory.java.
func (v *validation) mergeEngine() {
	if !v.keyed() {
		return
	}
	engine := v.engine()
	if engine != "partial-update" && engine != "aggregation" {
		return
	}
	own := v.o.List(optSequenceField) // columns that are not aggregated, whatever is said
	if engine == "partial-update" {
		own = v.partialUpdate()
	}
	def := v.o[optDefaultFunction]
	for _, f := range v.t.Fields {
		fn, key := v.aggregate(f.Name), fieldsPrefix+f.Name+".aggregate-function"
		if fn == "" {
			fn, key = def, optDefaultFunction
		}
		// Java asks this where it makes an aggregator, and it makes one for columns
		// that aggregate nothing, too.
		if engine == "aggregation" || slices.Contains(v.t.PrimaryKeys, f.Name) || fn != "" && !slices.Contains(own, f.Name) {
			v.ignoresRetract(f)
		}
		if fn == "" {
			continue
		}
		a := aggregate.Find(fn)
		if a == nil {
			v.bad(key, "invalid value for option %q: there is no aggregate function %q", key, fn)
			return
		}
		if slices.Contains(v.t.PrimaryKeys, f.Name) || slices.Contains(own, f.Name) {
			continue
		}
		v.function(a, f, key)
	}
}

const optDefaultFunction = "fields.default-aggregate-function"

// ignoresRetract checks that a column does not ignore retractions that are to remove
// the row.
func (v *validation) ignoresRetract(f types.Field) {
	const remove = "aggregation.remove-record-on-delete"
	spec := aggregate.Spec{Column: f, Options: v.t.Options}
	if retract := fieldsPrefix + f.Name + ".ignore-retract"; v.on(remove) && spec.Flag("ignore-retract", false) {
		v.bad(retract, "options %q and %q exclude each other", retract, remove)
	}
}

// function checks that an aggregate function suits a column and its options.
func (v *validation) function(a *aggregate.Function, f types.Field, key string) {
	if a.Takes != nil && !a.Takes(f.Type) {
		v.bad(key, "aggregate function %s does not take column %q of type %s", a.Name, f.Name, types.PaimonString(f.Type))
		return
	}
	if a.Check == nil {
		return
	}
	if err := a.Check(aggregate.Spec{Column: f, Options: v.t.Options}); err != nil {
		var e *aggregate.OptionError
		if errors.As(err, &e) {
			key = e.Key
		}
		v.bad(key, "aggregate function %s of column %q: %s", a.Name, f.Name, err)
	}
}

// partialUpdate checks sequence groups, fields.<a>,<b>.sequence-group = c,d, and
// returns the columns that order them.
func (v *validation) partialUpdate() []string {
	order := map[string]string{} // a group's own field: the group's option
	owner := map[string]string{} // a column: the option that has it in a group
	var fields []string
	check := func(c, k string) {
		if _, ok := v.field(c); !ok {
			v.bad(k, "option %q names column %q, which does not exist", k, c)
		}
		if slices.Contains(v.t.PrimaryKeys, c) {
			v.bad(k, "option %q names column %q of the primary key, which cannot be in a sequence group", k, c)
		}
	}
	for _, k := range sortedKeys(v.t.Options) {
		if !strings.HasPrefix(k, fieldsPrefix) || !strings.HasSuffix(k, suffixSeqGroup) || len(k) <= len(fieldsPrefix)+len(suffixSeqGroup) {
			continue
		}
		for _, c := range strings.Split(k[len(fieldsPrefix):len(k)-len(suffixSeqGroup)], ",") {
			check(c, k)
			if f, ok := v.field(c); ok && isBlob(f.Type) {
				v.bad(k, "column %q of type %s cannot order a sequence group", c, types.PaimonString(f.Type))
			}
			if order[c] != "" && order[c] != k {
				v.bad(k, "column %q orders more than one sequence group", c)
			}
			order[c] = k
			fields = append(fields, c)
		}
		for _, c := range strings.Split(v.o[k], ",") {
			check(c, k)
			if owner[c] != "" {
				v.bad(k, "column %q is in more than one sequence group", c)
			}
			owner[c] = k
		}
	}
	for _, f := range v.t.Fields {
		if k := owner[f.Name]; k != "" && order[f.Name] != "" && order[f.Name] != k {
			v.bad(k, "column %q is in more than one sequence group", f.Name)
		}
	}
	v.removals(order)
	// Without a sequence group to order them, functions that need an order have none.
	for _, f := range v.t.Fields {
		k, fn := fieldsPrefix+f.Name+".aggregate-function", v.aggregate(f.Name)
		if fn == "" {
			k, fn = optDefaultFunction, v.o[optDefaultFunction]
		}
		if fn == "" || slices.Contains(v.t.PrimaryKeys, f.Name) || order[f.Name] != "" {
			continue
		}
		if owner[f.Name] == "" && fn != "last_non_null_value" {
			v.bad(k, "column %q must be in a sequence group to have aggregate function %s", f.Name, fn)
		}
	}
	return fields
}

// removals checks how deletions remove rows of a partial-update table whose groups
// are ordered by the columns of order.
func (v *validation) removals(order map[string]string) {
	const onDelete, onGroup = "partial-update.remove-record-on-delete", "partial-update.remove-record-on-sequence-group"
	remove := v.on(onDelete)
	switch {
	case remove && v.ignoreDelete():
		v.bad(onDelete, "options %q and %q exclude each other", "ignore-delete", onDelete)
	case v.has(onGroup) && v.ignoreDelete():
		v.bad(onGroup, "options %q and %q exclude each other", "ignore-delete", onGroup)
	case remove && len(order) > 0:
		v.bad(onDelete, "option %q does not go with sequence groups", onDelete)
	}
	if v.has(onGroup) {
		for _, c := range strings.Split(v.o[onGroup], ",") {
			if order[c] == "" {
				v.bad(onGroup, "option %q names column %q, which is no field of a sequence group", onGroup, c)
			}
		}
	}
}
