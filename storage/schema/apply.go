package schema

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// ChangeKind says what is wrong with a change.
type ChangeKind uint8

// The kinds of a ChangeError, with the SQLSTATE that each one means.
const (
	InvalidDefinition ChangeKind = iota // 42P16: the table that would result is not valid
	ColumnExists                        // 42701
	ColumnMissing                       // 42703
	NotAllowed                          // 0A000: the change is one that Paimon does not allow
	BadOption                           // 22023: an option's value is not one that it can have
	// NullToNotNull (0A000): the option alter-column-null-to-not-null.disabled
	// stands in the way. Whoever has made sure that the column has no NULL repeats
	// the change with UpdateNullability.Verified.
	NullToNotNull
	BadDefault // 42804: a default that is not a value of its column's type
	// KeyNotEmpty (55000): a primary key is added to a table that has had rows.
	KeyNotEmpty
)

// ChangeError says why a change of a schema, or a new schema, is refused.
type ChangeError struct {
	Kind   ChangeKind
	Column string // the column concerned, its path joined by dots; may be empty
	Option string // the option concerned; may be empty
	Msg    string
}

func (e *ChangeError) Error() string { return e.Msg }

func refuse(k ChangeKind, format string, args ...any) *ChangeError {
	return &ChangeError{Kind: k, Msg: fmt.Sprintf(format, args...)}
}

func (e *ChangeError) on(column string) *ChangeError { e.Column = column; return e }
func (e *ChangeError) option(key string) *ChangeError {
	e.Option = key
	return e
}

// Options that Apply looks at.
const (
	optType           = "type"
	optPath           = "path"
	optPrimaryKey     = "primary-key"
	optPartition      = "partition"
	optBucket         = "bucket"
	optBucketKey      = "bucket-key"
	optSequenceField  = "sequence.field"
	optNullToNotNull  = "alter-column-null-to-not-null.disabled"
	optNoExplicitCast = "disable-explicit-type-casting"
	optBeforeParts    = "add-column-before-partition"
	optMergeEngine    = "merge-engine"
	optVectors        = "deletion-vectors.enabled"
)

// immutable are the options that cannot change once a table has a snapshot.
var immutable = map[string]bool{
	optBucketKey: true, "bucket-function.type": true, "data-file.path-directory": true, optMergeEngine: true,
	"sequence.snapshot-ordering": true, "aggregation.remove-record-on-delete": true,
	"partial-update.remove-record-on-delete": true, "partial-update.remove-record-on-sequence-group": true,
	"rowkind.field": true, optPrimaryKey: true, "primary-key.nullable": true, optPartition: true,
	"dynamic-bucket.initial-buckets": true, "force-lookup": true, "row-tracking.enabled": true,
	"data-evolution.enabled": true, "index-file-in-data-file-dir": true, "blob-field": true,
	"blob-descriptor-field": true, "blob-view-field": true, "blob-external-storage-path": true,
	"blob-external-storage-field": true, "pk-clustering-override": true,
}

// alteration is a schema while changes are applied to it.
type alteration struct {
	old         *Table
	hasSnapshot bool

	fields  types.Schema
	options map[string]string
	keys    []string
	comment string
	highest int32
	settled string // option, see Settled
}

// Apply returns the schema version that follows t after changes, validated. t is
// not changed. hasSnapshot says that the table has, or once had, rows: some
// options are fixed then. Errors are *ChangeError. The rules are those of Java's
// SchemaManager.
func Apply(t *Table, changes []Change, hasSnapshot bool) (*Table, error) {
	a := &alteration{
		old: t, hasSnapshot: hasSnapshot, fields: slices.Clone(t.Fields), options: maps.Clone(t.Options),
		keys: slices.Clone(t.PrimaryKeys), comment: t.Comment, highest: t.HighestFieldID,
	}
	if a.options == nil {
		a.options = map[string]string{}
	}
	for _, c := range changes {
		if err := a.apply(c); err != nil {
			return nil, err
		}
	}
	out := &Table{
		ID: t.ID + 1, Version: CurrentVersion, Fields: a.fields, HighestFieldID: a.highest,
		PartitionKeys: slices.Clone(t.PartitionKeys), PrimaryKeys: a.keys, Options: a.options,
		Comment: a.comment, TimeMillis: time.Now().UnixMilli(),
	}
	if err := normalize(out); err != nil {
		return nil, err
	}
	return out, Validate(out)
}

func (a *alteration) apply(c Change) error {
	switch c := c.(type) {
	case SetOption:
		return a.setOption(c.Key, c.Value)
	case RemoveOption:
		return a.removeOption(c.Key)
	case Settled:
		a.settled = c.Key
		return nil
	case SetComment:
		a.comment = c.Comment
		return nil
	case AddColumn:
		return a.addColumn(c)
	case DropColumn:
		return a.dropColumn(c.Path)
	case RenameColumn:
		return a.renameColumn(c.Path, c.To)
	case UpdateType:
		return a.updateType(c)
	case UpdateNullability:
		return a.updateNullability(c)
	case UpdateColumnComment:
		return a.editField(c.Path, func(f types.Field) (types.Field, error) {
			f.Description = c.Comment
			return f, nil
		})
	case UpdateDefault:
		return a.editField(c.Path, func(f types.Field) (types.Field, error) { return withDefault(f, c.Default) })
	case UpdatePosition:
		return a.move(c.Column, c.Move)
	case AddPrimaryKey:
		return a.addPrimaryKey(c.Columns)
	}
	return refuse(NotAllowed, "change %T is not supported", c)
}

func (a *alteration) setOption(key, value string) error {
	if strings.EqualFold(key, optPath) {
		return refuse(NotAllowed, "option %q cannot be changed", key).option(key)
	}
	old, had := a.old.Options[key]
	unchanged := had && old == value
	switch {
	case key == optType:
		if !had {
			old = "table"
		}
		unchanged = strings.EqualFold(old, value)
	case key == optPrimaryKey && !had:
		unchanged = slices.Equal(Options{key: value}.List(key), a.old.PrimaryKeys)
	case key == optPartition && !had:
		unchanged = slices.Equal(Options{key: value}.List(key), a.old.PartitionKeys)
	}
	if unchanged {
		// An earlier change of the same list may have set something else.
		if had {
			a.options[key] = old
		}
		return nil
	}
	if key == optType {
		return refuse(NotAllowed, "option %q cannot be changed", key).option(key)
	}
	if a.hasSnapshot && !(key == optVectors && a.settled == key) {
		if err := a.checkFixed(key, old, had, value); err != nil {
			return err
		}
	}
	a.options[key] = value
	return nil
}

// checkFixed refuses changes of options that data files depend on.
func (a *alteration) checkFixed(key, old string, had bool, value string) error {
	no := func(format string, args ...any) error { return refuse(NotAllowed, format, args...).option(key) }
	if immutable[key] {
		return no("option %q cannot be changed once the table has data", key)
	}
	o := Options{key: old}
	if !had {
		o = nil
	}
	switch key {
	case optBucket:
		was, err := o.Int(key, -1)
		if err != nil {
			return refuse(BadOption, "%v", err).option(key)
		}
		is, err := Options{key: value}.Int(key, -1)
		if err != nil {
			return refuse(BadOption, "%v", err).option(key)
		}
		if was == -1 {
			return no("option %q cannot be changed when it is -1", key)
		}
		if is == -1 {
			return no("option %q cannot be changed to -1 once the table has data", key)
		}
	case optVectors:
		was, is := o.Flag(key, false), Options{key: value}.Flag(key, false)
		if was != is && !Options(a.old.Options).Flag("deletion-vectors.modifiable", false) {
			return no("option %q cannot be changed once the table has data, unless %q is set", key, "deletion-vectors.modifiable")
		}
	case "ignore-delete", "ignore-update-before":
		if o.Flag(key, false) && !(Options{key: value}).Flag(key, false) {
			return no("option %q cannot be changed from true to false once the table has data", key)
		}
	case "clustering.columns":
		if _, ok := a.old.Options["pk-clustering-override"]; ok {
			return no("option %q cannot be changed when %q is set", key, "pk-clustering-override")
		}
	}
	return nil
}

func (a *alteration) removeOption(key string) error {
	no := func(format string, args ...any) error { return refuse(NotAllowed, format, args...).option(key) }
	if key == optType || strings.EqualFold(key, optPath) {
		return no("option %q cannot be changed", key)
	}
	if a.hasSnapshot {
		old, had := a.old.Options[key]
		switch {
		case immutable[key]:
			return no("option %q cannot be reset once the table has data", key)
		case key == optBucket:
			return no("option %q cannot be reset once the table has data", key)
		case key == optVectors && a.settled != key:
			if err := a.checkFixed(key, old, had, "false"); err != nil {
				return err
			}
		case key == "clustering.columns":
			if _, ok := a.old.Options["pk-clustering-override"]; ok {
				return no("option %q cannot be reset when %q is set", key, "pk-clustering-override")
			}
		}
	}
	delete(a.options, key)
	return nil
}

func (a *alteration) addColumn(c AddColumn) error {
	name := strings.Join(c.Path, ".")
	if c.Type.NotNull {
		return refuse(NotAllowed, "column %q cannot be added as NOT NULL: rows that exist have no value for it", name).on(name)
	}
	id := a.highest + 1
	a.highest = id
	f := types.Field{ID: id, Type: AssignIDs(c.Type, &a.highest), Description: c.Comment}
	return a.editList(c.Path, func(fs types.Schema, last string) (types.Schema, error) {
		if fs.Index(last) >= 0 {
			return nil, refuse(ColumnExists, "column %q already exists", name).on(name)
		}
		f.Name = last
		f, err := withDefault(f, c.Default)
		if err != nil {
			return nil, err
		}
		at := len(fs)
		switch {
		case c.Move == nil:
			if len(c.Path) == 1 && Options(a.old.Options).Flag(optBeforeParts, false) {
				for i := range fs {
					if slices.Contains(a.old.PartitionKeys, fs[i].Name) {
						at = i
						break
					}
				}
			}
		case c.Move.First:
			at = 0
		case c.Move.After != "" || c.Move.Before != "":
			ref := c.Move.After + c.Move.Before
			i := fs.Index(ref)
			if i < 0 {
				return nil, refuse(ColumnMissing, "column %q does not exist", ref).on(ref)
			}
			at = i
			if c.Move.After != "" {
				at++
			}
		}
		return slices.Insert(fs, at, f), nil
	})
}

// withDefault sets or drops a field's default; it must be a value of its type.
func withDefault(f types.Field, text *string) (types.Field, error) {
	if text == nil {
		f.Default, f.HasDefault = "", false
		return f, nil
	}
	if err := checkDefault(f.Type, *text); err != nil {
		return f, refuse(BadDefault, "default %q is no value of type %s", *text, types.PaimonString(f.Type)).on(f.Name)
	}
	f.Default, f.HasDefault = *text, true
	return f, nil
}

// checkDefault reports whether text, with or without single quotes around it,
// can be cast to a type.
func checkDefault(t types.Type, text string) error {
	if len(text) >= 2 && text[0] == '\'' && text[len(text)-1] == '\'' {
		text = text[1 : len(text)-1]
	}
	switch t.Kind {
	case types.Array, types.Map, types.Row:
		// Read by Java from its own notation, [a, b], {k -> v} and {a, b}.
		s := strings.TrimSpace(text)
		if t.Fixed == 0 && !t.Multiset && len(s) >= 2 && strings.IndexByte("[{(", s[0]) >= 0 {
			return nil
		}
		return fmt.Errorf("no constant of this type")
	}
	if isText(t) {
		return nil
	}
	cast, err := datumCast(types.Of(types.Text), t)
	if err != nil {
		return err
	}
	_, err = cast(text)
	return err
}

func (a *alteration) dropColumn(path []string) error {
	name := strings.Join(path, ".")
	if len(path) == 1 && (slices.Contains(a.old.PartitionKeys, name) || slices.Contains(a.keys, name)) {
		return refuse(NotAllowed, "column %q is part of the partition or primary key and cannot be dropped", name).on(name)
	}
	err := a.editList(path, func(fs types.Schema, last string) (types.Schema, error) {
		i := fs.Index(last)
		if i < 0 {
			return nil, missing(path, len(path))
		}
		if len(fs) == 1 {
			return nil, refuse(NotAllowed, "column %q is the last one and cannot be dropped", name).on(name)
		}
		return slices.Delete(fs, i, i+1), nil
	})
	if err == nil && len(path) == 1 {
		forgetColumn(a.options, name)
	}
	return err
}

func (a *alteration) renameColumn(path []string, to string) error {
	name := strings.Join(path, ".")
	if len(path) == 1 && slices.Contains(a.old.PartitionKeys, name) {
		return refuse(NotAllowed, "partition column %q cannot be renamed", name).on(name)
	}
	err := a.editList(path, func(fs types.Schema, last string) (types.Schema, error) {
		i := fs.Index(last)
		if i < 0 {
			return nil, missing(path, len(path))
		}
		if fs.Index(to) >= 0 {
			return nil, refuse(ColumnExists, "column %q already exists", to).on(to)
		}
		if len(path) == 1 && isBlob(fs[i].Type) {
			return nil, refuse(NotAllowed, "BLOB column %q cannot be renamed", name).on(name)
		}
		fs[i].Name = to
		return fs, nil
	})
	if err != nil || len(path) > 1 {
		return err
	}
	for i, k := range a.keys {
		if k == name {
			a.keys[i] = to
		}
	}
	renameInOptions(a.options, name, to)
	return nil
}

func (a *alteration) updateType(c UpdateType) error {
	name := strings.Join(c.Path, ".")
	if len(c.Path) == 1 {
		switch {
		case slices.Contains(a.old.PartitionKeys, name):
			return refuse(NotAllowed, "the type of partition column %q cannot be changed", name).on(name)
		case slices.Contains(a.keys, name):
			return refuse(NotAllowed, "the type of primary key column %q cannot be changed", name).on(name)
		}
	}
	err := a.editType(c.Path, func(from types.Type) (types.Type, error) {
		to := c.Type
		if c.KeepNullability {
			to.NotNull = from.NotNull
		} else if err := a.checkNullability(from, to.NotNull, name); err != nil {
			return to, err
		}
		if x, y := from.WithNotNull(false), to.WithNotNull(false); types.PaimonString(x) == types.PaimonString(y) {
			// The same type: nothing to cast, though Java has code for few of these.
			from.NotNull = to.NotNull
			return from, nil
		}
		explicit := !Options(a.old.Options).Flag(optNoExplicitCast, false)
		if isBlob(from) || isBlob(to) || !canCast(from, to, explicit) {
			return to, refuse(NotAllowed, "the type of column %q cannot be changed from %s to %s", name, types.PaimonString(from), types.PaimonString(to)).on(name)
		}
		return to, nil
	})
	if err != nil {
		return err
	}
	// The default stays as it is, so it must be a value of the new type.
	f := a.fields[a.fields.Index(c.Path[0])]
	if f.HasDefault && checkDefault(f.Type, f.Default) != nil {
		return refuse(BadDefault, "default %q of column %q is no value of type %s", f.Default, f.Name, types.PaimonString(f.Type)).on(f.Name)
	}
	return nil
}

func (a *alteration) checkNullability(from types.Type, notNull bool, name string) error {
	if notNull && !from.NotNull && Options(a.old.Options).Flag(optNullToNotNull, true) {
		return refuse(NullToNotNull, "column %q cannot be made NOT NULL while the table option %q is not false", name, optNullToNotNull).on(name)
	}
	return nil
}

func (a *alteration) updateNullability(c UpdateNullability) error {
	name := strings.Join(c.Path, ".")
	if len(c.Path) == 1 && !c.NotNull && slices.Contains(a.keys, name) {
		return refuse(NotAllowed, "column %q is in a primary key", name).on(name)
	}
	return a.editType(c.Path, func(t types.Type) (types.Type, error) {
		if !c.Verified {
			if err := a.checkNullability(t, c.NotNull, name); err != nil {
				return t, err
			}
		}
		t.NotNull = c.NotNull
		return t, nil
	})
}

func (a *alteration) move(column string, m Move) error {
	from := a.fields.Index(column)
	if from < 0 {
		return missing([]string{column}, 1)
	}
	to := len(a.fields) - 1
	switch {
	case m.First:
		to = 0
	case m.After != "" || m.Before != "":
		ref := a.fields.Index(m.After + m.Before)
		if ref < 0 {
			return missing([]string{m.After + m.Before}, 1)
		}
		if ref == from {
			return refuse(NotAllowed, "column %q cannot be moved relative to itself", column).on(column)
		}
		to = ref
		if m.After != "" && from > ref {
			to++
		}
		if m.Before != "" && from < ref {
			to--
		}
	}
	if (m.First || m.After+m.Before == "") && to == from {
		return refuse(NotAllowed, "column %q is there already", column).on(column)
	}
	f := a.fields[from]
	a.fields = slices.Insert(slices.Delete(a.fields, from, from+1), to, f)
	return nil
}

func (a *alteration) addPrimaryKey(columns []string) error {
	switch {
	case a.hasSnapshot:
		return refuse(KeyNotEmpty, "a primary key can only be added to a table that never had rows")
	case len(a.keys) > 0:
		return refuse(InvalidDefinition, "multiple primary keys for one table are not allowed")
	}
	for _, c := range columns {
		if a.fields.Index(c) < 0 {
			return missing([]string{c}, 1)
		}
	}
	a.keys = slices.Clone(columns)
	return nil
}
