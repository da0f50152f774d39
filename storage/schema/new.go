package schema

import (
	"maps"
	"slices"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// New makes the first schema of a table from a definition: columns, keys, options
// and comment. Field ids are given in order, key columns become NOT NULL, and keys
// given as options move where keys belong; the result is validated. def is not
// changed. Errors are *ChangeError.
func New(def *Table) (*Table, error) {
	t := &Table{
		Version: CurrentVersion, HighestFieldID: -1, Options: maps.Clone(def.Options), Comment: def.Comment,
		PartitionKeys: slices.Clone(def.PartitionKeys), PrimaryKeys: slices.Clone(def.PrimaryKeys),
		TimeMillis: time.Now().UnixMilli(),
	}
	if t.Options == nil {
		t.Options = map[string]string{}
	}
	for _, f := range def.Fields {
		t.HighestFieldID++
		f.ID = t.HighestFieldID
		f.Type = AssignIDs(f.Type, &t.HighestFieldID)
		if f.HasDefault {
			var err error
			if f, err = withDefault(f, &f.Default); err != nil {
				return nil, err
			}
		}
		t.Fields = append(t.Fields, f)
	}
	if Options(t.Options).Flag("auto-create", false) {
		return nil, refuse(BadOption, "option %q must be false", "auto-create").option("auto-create")
	}
	for _, k := range []string{"scan.fallback-branch", "scan.primary-branch"} {
		if b := Options(t.Options).String(k, ""); b != "" {
			return nil, refuse(BadOption, "option %q names branch %q, but a new table has no branches", k, b).option(k)
		}
	}
	if err := normalize(t); err != nil {
		return nil, err
	}
	return t, Validate(t)
}

// AssignIDs returns t with new ids for the members of rows inside it, counted up
// from *highest. A member gets its id after the members inside its own type, as
// Java's ReassignFieldId does it.
func AssignIDs(t types.Type, highest *int32) types.Type {
	inner := func(p *types.Type) *types.Type {
		if p == nil {
			return nil
		}
		x := AssignIDs(*p, highest)
		return &x
	}
	switch t.Kind {
	case types.Array:
		t.Elem = inner(t.Elem)
	case types.Map:
		t.Key = inner(t.Key)
		if !t.Multiset {
			t.Elem = inner(t.Elem)
		}
	case types.Row:
		t.Fields = slices.Clone(t.Fields)
		for i := range t.Fields {
			t.Fields[i].Type = AssignIDs(t.Fields[i].Type, highest)
			*highest++
			t.Fields[i].ID = *highest
		}
	}
	return t
}

// normalize moves keys that are given as options where they belong and makes the
// primary key NOT NULL; t is changed, its fields are copied.
func normalize(t *Table) error {
	for _, k := range []struct {
		option string
		keys   *[]string
	}{{optPartition, &t.PartitionKeys}, {optPrimaryKey, &t.PrimaryKeys}} {
		if _, ok := t.Options[k.option]; !ok {
			continue
		}
		if len(*k.keys) > 0 {
			return refuse(InvalidDefinition, "option %q cannot be given beside the clause of that name", k.option).option(k.option)
		}
		*k.keys = Options(t.Options).List(k.option)
		delete(t.Options, k.option)
	}
	seen := map[string]bool{}
	for _, f := range t.Fields {
		if seen[f.Name] {
			return refuse(ColumnExists, "column %q specified more than once", f.Name).on(f.Name)
		}
		seen[f.Name] = true
	}
	for _, keys := range [][]string{t.PartitionKeys, t.PrimaryKeys} {
		dup := map[string]bool{}
		for _, k := range keys {
			if !seen[k] {
				return refuse(ColumnMissing, "column %q named in key does not exist", k).on(k)
			}
			if dup[k] {
				return refuse(ColumnExists, "column %q appears twice in a key", k).on(k)
			}
			dup[k] = true
		}
	}
	if len(t.PrimaryKeys) == 0 || Options(t.Options).Flag("primary-key.nullable", false) {
		return nil
	}
	t.Fields = slices.Clone(t.Fields)
	for i, f := range t.Fields {
		if slices.Contains(t.PrimaryKeys, f.Name) {
			t.Fields[i].Type.NotNull = true
		}
	}
	return nil
}
