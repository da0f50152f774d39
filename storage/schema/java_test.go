package schema

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// javaSchema reads the newest schema of a table that Java wrote.
func javaSchema(t *testing.T, c *oracle.Client, table string) *Table {
	t.Helper()
	got, err := NewManager(fileio.NewLocal(c.Warehouse), strings.Replace(table, ".", ".db/", 1)).Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// same compares all of two schemas but the time.
func same(t *testing.T, what string, got, want *Table) {
	t.Helper()
	text := func(x *Table) string {
		y := *x
		y.TimeMillis = 0
		b, err := Encode(&y)
		if err != nil {
			t.Fatalf("%s: %v", what, err)
		}
		return string(b)
	}
	if g, w := text(got), text(want); g != w {
		t.Fatalf("%s: schema is\n%s\nJava's is\n%s", what, g, w)
	}
}

// typeJSON is a type as the oracle takes it.
func typeJSON(t types.Type) json.RawMessage {
	b, err := types.AppendPaimonJSON(nil, t)
	if err != nil {
		panic(err)
	}
	return b
}

func fieldsJSON(fs types.Schema) []map[string]any {
	var out []map[string]any
	for _, f := range fs {
		m := map[string]any{"name": f.Name, "type": typeJSON(f.Type)}
		if f.Description != "" {
			m["comment"] = f.Description
		}
		if f.HasDefault {
			m["default"] = f.Default
		}
		out = append(out, m)
	}
	return out
}

func javaCreate(c *oracle.Client, table string, def *Table) error {
	_, err := c.Try(map[string]any{"cmd": "create", "table": table, "schema": map[string]any{
		"fields": fieldsJSON(def.Fields), "primaryKeys": list(def.PrimaryKeys), "partitionKeys": list(def.PartitionKeys),
		"options": def.Options, "comment": def.Comment,
	}})
	return err
}

func list(s []string) []string {
	if s == nil {
		return []string{}
	}
	return s
}

func moveJSON(m Move) any {
	switch {
	case m.First:
		return "first"
	case m.After != "":
		return map[string]string{"after": m.After}
	case m.Before != "":
		return map[string]string{"before": m.Before}
	}
	return "last"
}

func changeJSON(c Change) map[string]any {
	switch c := c.(type) {
	case SetOption:
		return map[string]any{"op": "set-option", "key": c.Key, "value": c.Value}
	case RemoveOption:
		return map[string]any{"op": "remove-option", "key": c.Key}
	case SetComment:
		return map[string]any{"op": "update-comment", "comment": c.Comment}
	case AddColumn:
		m := map[string]any{"op": "add-column", "name": c.Path, "type": typeJSON(c.Type)}
		if c.Comment != "" {
			m["comment"] = c.Comment
		}
		if c.Move != nil {
			m["move"] = moveJSON(*c.Move)
		}
		return m
	case DropColumn:
		return map[string]any{"op": "drop-column", "name": c.Path}
	case RenameColumn:
		return map[string]any{"op": "rename-column", "name": c.Path, "to": c.To}
	case UpdateType:
		return map[string]any{"op": "update-type", "name": c.Path, "type": typeJSON(c.Type), "keepNullability": c.KeepNullability}
	case UpdateNullability:
		return map[string]any{"op": "update-nullability", "name": c.Path, "nullable": !c.NotNull}
	case UpdateColumnComment:
		return map[string]any{"op": "update-column-comment", "name": c.Path, "comment": c.Comment}
	case UpdateDefault:
		return map[string]any{"op": "update-default", "name": c.Path, "default": c.Default}
	case UpdatePosition:
		return map[string]any{"op": "update-position", "name": c.Column, "move": moveJSON(c.Move)}
	}
	panic(fmt.Sprintf("%T", c))
}

// maker makes definitions and changes at random.
type maker struct{ *rand.Rand }

func pick[T any](m maker, s []T) T { return s[m.IntN(len(s))] }

var atoms = []string{
	"BOOLEAN", "TINYINT", "SMALLINT", "INT", "BIGINT", "FLOAT", "DOUBLE", "DECIMAL(10, 2)", "DECIMAL(38, 18)", "STRING", "VARCHAR(5)", "CHAR(3)",
	"BYTES", "BINARY(4)", "VARBINARY(7)", "DATE", "TIME(3)", "TIME(0)", "TIMESTAMP(3)", "TIMESTAMP(6)", "TIMESTAMP(9)", "TIMESTAMP(6) WITH LOCAL TIME ZONE",
}

func (m maker) typ(depth int) types.Type {
	if depth > 0 && m.IntN(4) == 0 {
		switch m.IntN(4) {
		case 0:
			return types.ArrayOf(m.typ(depth - 1))
		case 1:
			return types.MapOf(types.Of(types.Text), m.typ(depth-1))
		default:
			t := types.Type{Kind: types.Row}
			for i := range 1 + m.IntN(3) {
				t.Fields = append(t.Fields, types.Field{Name: fmt.Sprint("f", i), Type: m.typ(depth - 1)})
			}
			return t
		}
	}
	t, err := types.ParsePaimonText(pick(m, atoms))
	if err != nil {
		panic(err)
	}
	return t
}

var someOptions = []SetOption{
	{"bucket", "2"}, {"bucket", "-1"}, {"bucket", "0"}, {"bucket", "-2"}, {"bucket-key", "k"}, {"bucket-key", "c0"}, {"bucket-key", "k,c0"}, {"bucket-key", "nope"},
	{"sequence.field", "c0"}, {"sequence.field", "c0,c1"}, {"sequence.field", "c0,c0"}, {"sequence.field", "nope"},
	{"merge-engine", "partial-update"}, {"merge-engine", "aggregation"}, {"merge-engine", "first-row"}, {"merge-engine", "DEDUPLICATE"}, {"merge-engine", "none"},
	{"changelog-producer", "input"}, {"changelog-producer", "lookup"}, {"changelog-producer", "full-compaction"}, {"changelog-producer", "none"},
	{"deletion-vectors.enabled", "true"}, {"deletion-vectors.enabled", "false"}, {"deletion-vectors.modifiable", "true"},
	{"snapshot.num-retained.min", "0"}, {"snapshot.num-retained.min", "5"}, {"snapshot.num-retained.max", "3"}, {"changelog.num-retained.max", "2"}, {"changelog.num-retained.min", "20"},
	{"file.format", "orc"}, {"file.format", "avro"}, {"file.format", "csv"}, {"file.format", "nope"}, {"file.format.per.level", "0:avro,5:orc"},
	{"fields.c0.aggregate-function", "sum"}, {"fields.c0.aggregate-function", "last_value"}, {"fields.c1.aggregate-function", "last_non_null_value"}, {"fields.c0.aggregate-function", "nope"}, {"fields.nope.aggregate-function", "sum"},
	{"fields.c0.sequence-group", "c1,c2"}, {"fields.c0,c1.sequence-group", "c2"}, {"fields.c1.sequence-group", "c2"}, {"fields.default-aggregate-function", "last_non_null_value"},
	{"fields.c0.ignore-retract", "true"}, {"ignore-delete", "true"}, {"ignore-delete", "false"}, {"partial-update.remove-record-on-delete", "true"},
	{"rowkind.field", "c0"}, {"rowkind.field", "nope"}, {"record-level.time-field", "c0"}, {"record-level.expire-time", "1 d"},
	{"row-tracking.enabled", "true"}, {"data-evolution.enabled", "true"}, {"partition.expiration-time", "7 d"}, {"streaming-read-overwrite", "true"},
	{"full-compaction.delta-commits", "5"}, {"scan.snapshot-id", "1"}, {"scan.mode", "latest"}, {"scan.mode", "from-snapshot"}, {"scan.timestamp-millis", "5"},
	{"incremental-between", "1,2"}, {"scan.tag-name", "x"}, {"scan.mode", "from-timestamp"}, {"scan.mode", "incremental"}, {"scan.file-creation-time-millis", "7"},
	{"disable-explicit-type-casting", "true"}, {"alter-column-null-to-not-null.disabled", "false"}, {"add-column-before-partition", "true"},
	{"clustering.incremental", "true"}, {"clustering.columns", "c0"}, {"bucket-append-ordered", "false"}, {"some.thing", "x"}, {"table-read.sequence-number.enabled", "true"},
	{"primary-key", "k"}, {"partition", "p"}, {"force-lookup", "true"}, {"upsert-key", "c0"}, {"write-only", "true"}, {"pk-clustering-override", "true"},
}

func (m maker) definition() *Table {
	def := &Table{Options: map[string]string{}, Fields: types.Schema{{Name: "k", Type: types.Of(types.Int4)}, {Name: "p", Type: types.Of(types.Text)}}}
	for i := range 3 + m.IntN(3) {
		f := types.Field{Name: fmt.Sprint("c", i), Type: m.typ(2)}
		if i == 0 && m.IntN(2) == 0 {
			f.Type = types.Of(types.Int8)
		}
		if m.IntN(6) == 0 {
			f.Description = "about " + f.Name
		}
		if m.IntN(6) == 0 {
			f.HasDefault, f.Default = true, pick(m, []string{"1", "'1'", "true", "2020-01-01", "x", "1.5"})
		}
		def.Fields = append(def.Fields, f)
	}
	switch m.IntN(5) {
	case 0:
		def.PrimaryKeys = []string{"k"}
	case 1:
		def.PrimaryKeys = []string{"p", "k"}
		def.PartitionKeys = []string{"p"}
	case 2:
		def.PartitionKeys = []string{"p"}
	case 3:
		def.PrimaryKeys = pick(m, [][]string{{"k", "c0"}, {"c1"}, {"p"}, {"k", "k"}, {"nope"}})
		def.PartitionKeys = pick(m, [][]string{nil, {"p"}, {"c1"}})
	}
	for range m.IntN(3) {
		o := pick(m, someOptions)
		def.Options[o.Key] = o.Value
	}
	if len(def.PrimaryKeys) > 0 && m.IntN(2) == 0 {
		def.Options["bucket"] = "2"
	}
	if m.IntN(3) == 0 {
		def.Comment = "a table"
	}
	return def
}

// path names a column or what is inside it, as the schema stands.
func (m maker) path(t *Table) []string {
	f := pick(m, t.Fields)
	out := []string{f.Name}
	typ := f.Type
	for m.IntN(3) > 0 {
		switch {
		case typ.Kind == types.Row:
			x := pick(m, typ.Fields)
			out, typ = append(out, x.Name), x.Type
		case typ.Kind == types.Array:
			out, typ = append(out, stepElement), *typ.Elem
		case typ.Kind == types.Map:
			out, typ = append(out, stepValue), *typ.Elem
		default:
			return out
		}
	}
	return out
}

// member is path for what names a member of a list: no step into an array or map at
// its end, where Java changes the whole column.
func (m maker) member(t *Table) []string {
	for {
		p := m.path(t)
		if last := p[len(p)-1]; last != stepElement && last != stepValue {
			return p
		}
	}
}

func (m maker) change(t *Table) Change {
	name := func() string { return pick(m, t.Fields).Name }
	fresh := func() string { return pick(m, []string{"n0", "n1", "n2", "c0", "f0", "f9", "rowkind", "_KEY_x"}) }
	move := func() *Move {
		switch m.IntN(5) {
		case 0:
			return &Move{First: true}
		case 1:
			return &Move{After: name()}
		case 2:
			return &Move{Before: name()}
		case 3:
			return &Move{}
		}
		return nil
	}
	switch m.IntN(14) {
	case 0, 1:
		return pick(m, someOptions)
	case 2:
		return RemoveOption{pick(m, someOptions).Key}
	case 3, 4:
		p := m.member(t)
		mv := move()
		if len(p) > 1 {
			mv = nil
		}
		p[len(p)-1] = fresh()
		typ := m.typ(2)
		typ.NotNull = m.IntN(5) == 0
		return AddColumn{Path: p, Type: typ, Move: mv}
	case 5:
		return DropColumn{m.member(t)}
	case 6, 7:
		return RenameColumn{m.member(t), fresh()}
	case 8, 9:
		typ := m.typ(1)
		typ.NotNull = m.IntN(4) == 0
		return UpdateType{m.path(t), typ, m.IntN(2) == 0}
	case 10:
		return UpdateNullability{Path: m.path(t), NotNull: m.IntN(2) == 0}
	case 11:
		return UpdateColumnComment{m.member(t), "said " + strconv.Itoa(m.IntN(9))}
	case 12:
		d := pick(m, []string{"1", "'1'", "true", "2020-01-01", "x", "1.5"})
		return UpdateDefault{m.member(t), &d}
	}
	mv := move()
	if mv == nil {
		return SetComment{"comment " + strconv.Itoa(m.IntN(9))}
	}
	return UpdatePosition{name(), *mv}
}

var sameType = regexp.MustCompile(`\[(.*?)\] cannot be converted to (.*?) without`)

// differs says why one of the two may refuse what the other takes: where Java 1.4
// and 2.1 differ the stricter counts, and what Java takes by mistake we do not.
func differs(old *Table, cs []Change, ours, java error) string {
	var ce *ChangeError
	errors.As(ours, &ce)
	for _, c := range cs {
		switch c := c.(type) {
		case SetOption:
			if java != nil && old.Options[c.Key] == c.Value {
				return "2.1 takes an unchanged option"
			}
			if java != nil && (c.Key == "primary-key" || c.Key == "partition") {
				return "2.1 takes unchanged keys"
			}
		case UpdateType:
			if ours != nil && ce.Kind == BadDefault {
				return "2.1 looks at the default"
			}
			if m := sameType.FindStringSubmatch(fmt.Sprint(java)); m != nil && strings.TrimSuffix(m[1], " NOT NULL") == strings.TrimSuffix(m[2], " NOT NULL") {
				return "Java has no cast to the type itself"
			}
		case RenameColumn:
			if java != nil && (strings.Contains(java.Error(), "Duplicate key") || strings.Contains(java.Error(), "not be found in table schema") || strings.Contains(java.Error(), "Can not find time field")) {
				return "1.4 forgets some options"
			}
			// Java rewrites options after all changes.
			if ours != nil && ce.Kind == BadOption && len(cs) > 1 {
				return "options are set behind a rename"
			}
		}
	}
	if ours == nil {
		return ""
	}
	for _, s := range []string{"aggregate function", "does not go with changelog producer lookup", "of type", "needs option \"record-level.time-field\"", "\"deletion-vectors.enabled\" cannot be changed"} {
		if strings.Contains(ours.Error(), s) && ce.Option != "" && ce.Kind == BadOption {
			return "1.4 finds out when it writes"
		}
	}
	return ""
}

// TestJavaEvolution applies random changes here and in Java: both take them, with
// one outcome, or both refuse.
func TestJavaEvolution(t *testing.T) {
	c := oracle.Java(t, t.TempDir())
	seed := uint64(1)
	if s, err := strconv.ParseUint(os.Getenv("SCHEMA_SEED"), 10, 64); err == nil {
		seed = s
	}
	rounds := 60
	if s, err := strconv.Atoi(os.Getenv("SCHEMA_ROUNDS")); err == nil {
		rounds = s
	}
	t.Logf("SCHEMA_SEED=%d", seed)
	m := maker{rand.New(rand.NewPCG(seed, 0))}
	var made, refusedDefs, taken, refused, skipped int
	for n := range rounds {
		def := m.definition()
		table := fmt.Sprintf("d.t%d", n)
		cur, err := New(def)
		javaErr := javaCreate(c, table, def)
		if (err == nil) != (javaErr == nil) {
			if why := differs(def, nil, err, javaErr); why != "" {
				skipped++
				continue
			}
			b, _ := json.Marshal(map[string]any{"f": fieldsJSON(def.Fields), "pk": def.PrimaryKeys, "part": def.PartitionKeys, "o": def.Options})
			t.Fatalf("seed %d, definition %d: ours %v, Java's %v\n%s", seed, n, err, javaErr, b)
		}
		if err != nil {
			refusedDefs++
			continue
		}
		made++
		same(t, fmt.Sprintf("seed %d, definition %d", seed, n), cur, javaSchema(t, c, table))
		hasSnapshot := false
		if m.IntN(2) == 0 && simple(cur) {
			_, err := c.Try(map[string]any{"cmd": "write", "table": table, "rows": []map[string]any{{"k": 1, "p": "a"}}, "options": map[string]string{"write-only": "true"}})
			hasSnapshot = err == nil
			if err != nil {
				continue // some options make Java's writer fail
			}
		}
		for step := range 12 {
			if _, past := cur.Options["scan.snapshot-id"]; past && hasSnapshot {
				break // Java's catalog loads the table as it was
			}
			var cs []Change
			for range 1 + m.IntN(5)/3 {
				cs = append(cs, m.change(cur))
			}
			next, err := Apply(cur, cs, hasSnapshot)
			var js []map[string]any
			for _, x := range cs {
				js = append(js, changeJSON(x))
			}
			_, javaErr := c.Try(map[string]any{"cmd": "alter", "table": table, "changes": js})
			what, _ := json.Marshal(js)
			if (err == nil) != (javaErr == nil) {
				if why := differs(cur, cs, err, javaErr); why != "" || javaRenames(cur, cs) {
					if skipped++; javaErr == nil {
						cur = javaSchema(t, c, table)
					}
					continue
				}
				b, _ := Encode(cur)
				t.Fatalf("seed %d, table %d, step %d, snapshot %v: ours %v, Java's %v\n%s\n%s", seed, n, step, hasSnapshot, err, javaErr, what, b)
			}
			if err != nil {
				var ce *ChangeError
				if !errors.As(err, &ce) {
					t.Fatalf("error %T %v", err, err)
				}
				refused++
				continue
			}
			taken++
			if javaRenames(cur, cs) {
				skipped++
				cur = javaSchema(t, c, table)
				continue
			}
			same(t, fmt.Sprintf("seed %d, table %d, step %d: %s", seed, n, step, what), next, javaSchema(t, c, table))
			cur = next
		}
	}
	t.Logf("%d definitions made, %d refused; %d changes taken, %d refused; %d differences that are known", made, refusedDefs, taken, refused, skipped)
	if made == 0 || taken == 0 || refused == 0 {
		t.Error("the generator makes one kind only")
	}
}

// javaRenames reports whether Java rewrites options by mistake: it takes the first
// part of a nested path for the column that is renamed.
func javaRenames(t *Table, cs []Change) bool {
	options := maps.Clone(t.Options)
	for _, c := range cs {
		if o, ok := c.(SetOption); ok {
			options[o.Key] = o.Value
		}
	}
	for _, c := range cs {
		r, ok := c.(RenameColumn)
		if !ok {
			continue
		}
		if len(r.Path) == 1 {
			// And there are options that it does not rewrite, nor look at.
			for _, k := range columnListOptions {
				if k != optBucketKey && k != optSequenceField && strings.Contains(options[k], r.Path[0]) {
					return true
				}
			}
			continue
		}
		for k, v := range options {
			if strings.Contains(k, r.Path[0]) || strings.Contains(v, r.Path[0]) {
				return true
			}
		}
	}
	return false
}

// simple reports whether a row of k and p alone can be written.
func simple(t *Table) bool {
	for _, f := range t.Fields {
		if f.Type.NotNull && f.Name != "k" && f.Name != "p" || f.HasDefault {
			return false
		}
	}
	return t.Fields.Index("k") == 0 && t.Fields.Index("p") == 1
}

// TestJavaOptionValues compares which values options take. Java looks at some
// options when it makes a table and at the others when it needs them; we look at
// all, so where Java is lazy we may refuse more.
func TestJavaOptionValues(t *testing.T) {
	c := oracle.Java(t, t.TempDir())
	values := map[optionKind][]string{
		boolOption:     {"true", "FALSE", "yes", " true", "", "1"},
		intOption:      {"1", "+1", "7 ", "2147483648", "1.0", "x", "", "0x1"},
		longOption:     {"1", "9223372036854775807", "9223372036854775808", "1L", "x"},
		floatOption:    {"0.5", "1", "1e3", " .5 ", "1d", "2F", "NaN", "nan", "Infinity", "inf", "0x1p3", "x", "1_0"},
		sizeOption:     {"1", "1 kb", "2MB", " 3 gb ", "64k", "1.5 mb", "1 xb", "-1", "bytes", "5 bytes", "9999999999 tb", "1 kibibytes"},
		durationOption: {"1 s", "5", "3min", "1 h", "2 days", "PT1H", "1.5 s", "-1 s", "x", "10 millis", "1 µs", "999999999999 d"},
		enumOption:     {"nope", " none"},
		mapOption:      {"0:avro", "0:avro,5:orc", "x", "0:", "a:avro", "'0':\"orc\"", "0:avro,0:orc"},
		textOption:     {"x"},
	}
	newer := map[string]bool{"latest-delta": true} // what 2.1 added
	keys := slices.Sorted(maps.Keys(optionList))
	var eager, lazy, compared, stricter int
	n := 0
	try := func(key, value string) (ours, java error) {
		n++
		def := &Table{
			Fields:      types.Schema{{Name: "k", Type: types.Of(types.Int4)}, {Name: "x", Type: types.Of(types.Int4)}},
			PrimaryKeys: []string{"k"}, Options: map[string]string{"bucket": "1"},
		}
		def.Options[key] = value
		_, ours = New(def)
		return ours, javaCreate(c, fmt.Sprintf("d.o%d", n), def)
	}
	limit := 120
	if os.Getenv("SCHEMA_ROUNDS") != "" {
		limit = len(keys)
	}
	rng := rand.New(rand.NewPCG(2, 0))
	rng.Shuffle(len(keys), func(i, j int) { keys[i], keys[j] = keys[j], keys[i] })
	for _, key := range keys[:limit] {
		spec := optionList[key]
		if key == "auto-create" || key == "type" || key == "path" {
			continue
		}
		_, garbage := try(key, "@@")
		isEager := garbage != nil
		if isEager {
			eager++
		} else {
			lazy++
		}
		all := values[spec.kind]
		for _, v := range spec.values {
			all = append(all, v, strings.ToUpper(v))
		}
		for _, v := range all {
			ours, java := try(key, v)
			compared++
			switch {
			case (ours == nil) == (java == nil):
			case java == nil && !isEager:
				stricter++
			case java != nil && newer[strings.ToLower(v)]:
			default:
				t.Errorf("%s = %q: ours %v, Java's %v", key, v, ours, java)
			}
		}
	}
	t.Logf("%d options that Java looks at, %d that it does not; %d values compared, %d refused by us alone", eager, lazy, compared, stricter)
}
