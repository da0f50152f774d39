package engine

import (
	"context"
	"maps"
	"slices"
	"sort"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// optionFamilies are prefixes of options whose names hold a column or a key of
// some other program.
var optionFamilies = []string{
	"fields.", "file-index.", "parquet.", "orc.", "avro.", "csv.", "json.", "lance.", "vortex.", "metadata.iceberg.", "pg-type.", "pg-default.", "pg-identity.", "pg-constraint.", catalog.IndexPrefix,
	"partition.", "file.compression.per.level", "file.format.per.level", "blob-descriptor.", "lookup.", "sink.", "scan.", "source.",
	"hive.", "spark.", "flink.", "read.", "write.", "format.", "delta.", "variant.", "vector.", "schema.", "tag.", "commit.", "cdc.",
	"jdbc.", "fs.", "s3.", "oss.", "hadoop.", "dfs.", "rest.", "consumer.", "end-input.",
}

// storageParameters are PostgreSQL's own: kept, and of no effect.
var storageParameters = map[string]bool{
	"fillfactor": true, "parallel_workers": true, "toast_tuple_target": true, "user_catalog_table": true,
	"vacuum_index_cleanup": true, "vacuum_truncate": true, "log_autovacuum_min_duration": true,
}

// insertModeOption is what INSERT does with an existing key of this table, in place
// of the setting paimon.insert_mode.
const insertModeOption = "pg.insert-mode"

func optionKnown(key string) bool {
	if key == insertModeOption || schema.KnownOption(key) || storageParameters[key] || strings.HasPrefix(key, "autovacuum_") || strings.HasPrefix(key, "toast.") {
		return true
	}
	if strings.HasSuffix(key, ".stats-mode") {
		return true
	}
	for _, p := range optionFamilies {
		if strings.HasPrefix(key, p) {
			return true
		}
	}
	return false
}

// tableOption is the key and value of an option of WITH, SET or TBLPROPERTIES.
// Keys are taken as written, only that Paimon's own names may be in any case.
func tableOption(text string, o *ast.Option) (key, value string, err error) {
	key = strings.TrimSpace(o.Name)
	if low := strings.ToLower(key); low != key && schema.KnownOption(low) {
		key = low
	}
	if key == "" {
		return "", "", errAt(text, o.Pos, pgerr.SyntaxError, "an option needs a name")
	}
	if o.Value == nil {
		return key, "true", nil
	}
	value, ok := optionValueText(o.Value)
	if !ok {
		return "", "", errAt(text, o.Pos, pgerr.InvalidParameterValue, "invalid value for option %q", key)
	}
	return key, value, nil
}

// optionValueText is the text of an option's value.
func optionValueText(v ast.OptionValue) (string, bool) {
	switch v := v.(type) {
	case *ast.String:
		return v.Value, true
	case *ast.Number:
		return v.Text, true
	case *ast.Bool:
		return strconv.FormatBool(v.Value), true
	case *ast.OptionWord:
		return v.Text, true
	case *ast.Unary:
		if n, ok := v.Expr.(*ast.Number); ok && (v.Op.Name == "-" || v.Op.Name == "+") {
			return strings.TrimPrefix(v.Op.Name, "+") + n.Text, true
		}
	case *ast.OptionType:
		return ast.Format(v.Type), true
	}
	return "", false
}

// refusedOptions cannot be set by SQL: they would make something else than a
// table of this warehouse.
func refuseOption(text string, pos ast.Pos, key, value string) error {
	switch key {
	case "path":
		return errAt(text, pos, pgerr.FeatureNotSupported, "option %q is not supported: tables live in the warehouse", key)
	case "type":
		if value != "table" {
			return errAt(text, pos, pgerr.FeatureNotSupported, "tables of type %q are not supported", value)
		}
	case insertModeOption:
		if value != "upsert" && value != "strict" {
			return pgerr.New(pgerr.InvalidParameterValue, "invalid value for option %q: %q", key, value).WithHint("Available values: upsert, strict.")
		}
	}
	return nil
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// setOptions is SET (...) and RESET (...). The options are checked together, as
// they may lean on each other.
func (a *alteration) setOptions(ctx context.Context, c *ast.AlterCmd) error {
	var changes []schema.Change
	next := maps.Clone(a.sch.Options)
	if next == nil {
		next = map[string]string{}
	}
	vectors := -1 // where changes has the change of vectorsOption
	for _, o := range c.Options {
		key, value, err := tableOption(a.text, o)
		if err != nil {
			return err
		}
		if key == vectorsOption {
			vectors = len(changes)
		}
		if c.Op == ast.ResetOptions {
			delete(next, key)
			changes = append(changes, schema.RemoveOption{Key: key})
			continue
		}
		if err := refuseOption(a.text, o.Pos, key, value); err != nil {
			return err
		}
		if !optionKnown(key) {
			a.notes = append(a.notes, "table option "+ast.QuoteIdent(key)+" is not known; it is kept")
		}
		next[key] = value
		changes = append(changes, schema.SetOption{Key: key, Value: value})
	}
	if key := a.unsettled(next); key != "" {
		if key == vectorsOption && vectors >= 0 {
			changes = slices.Insert(changes, vectors, schema.Change(schema.Settled{Key: key}))
		}
		// What is wrong with the options is told before anything is compacted.
		if _, err := schema.Apply(a.sch, changes, a.hasSnapshot); err != nil {
			return a.changeError(err)
		}
		if err := a.settle(ctx, key, next); err != nil {
			return err
		}
	}
	return a.do(&a.after, changes...)
}

// vectorsOption says where the deleted rows of a table's files are written down.
const vectorsOption = "deletion-vectors.enabled"

// settleTries is how often a table is compacted for a change of its options while
// other processes go on writing it.
const settleTries = 3

// unsettled names the option that asks for other files than the table has when its
// options become next, "" when there is none. With deletion vectors, readers do not
// merge files; without, they do not look for vectors. Where compactions look up, a row
// in a lower level holds what its key has in the higher ones, which engines that fold
// would count twice, or not at all, when that changes.
func (a *alteration) unsettled(next schema.Options) string {
	if _, ok := a.rel.Table().(*table.FileStore); !ok || !a.hasSnapshot {
		return ""
	}
	was := schema.Options(a.sch.Options)
	if was.Flag(vectorsOption, false) != next.Flag(vectorsOption, false) {
		return vectorsOption
	}
	switch was.Enum("merge-engine", "deduplicate") {
	case "aggregation", "partial-update":
	default:
		return ""
	}
	if len(a.rel.PrimaryKey()) == 0 || needsLookup(was) == needsLookup(next) {
		return ""
	}
	return changelogOption // force-lookup is fixed
}

// changelogOption says where a table's changelog comes from; with lookup,
// compactions look up.
const changelogOption = "changelog-producer"

// settle makes the table's files such as its next options ask for; key is the
// one that is not met. The table is locked, so no session of this server writes it; a
// commit of another process between here and the change makes the change fail.
func (a *alteration) settle(ctx context.Context, key string, next schema.Options) error {
	store := a.rel.Table().(*table.FileStore)
	if t := a.s.touched(keyOf(a.rel)); t != nil && t.writes() {
		return pgerr.New(pgerr.ObjectInUse, "cannot change %q of %q, which this transaction has written to", key, a.rel.Name()).
			WithHint("Commit first.")
	}
	branch := a.rel.At().Branch
	to := map[string]string{
		vectorsOption:   strconv.FormatBool(next.Flag(vectorsOption, false)),
		changelogOption: next.Enum(changelogOption, "none"),
	}
	// Level 0, too: readers of other engines do not see it with deletion vectors.
	first := key == vectorsOption && next.Flag(vectorsOption, false)
	for try := 0; ; try++ {
		if try > 0 || first {
			if err := a.compactAll(ctx, store, branch); err != nil {
				return err
			}
		}
		at, err := store.Resolve(ctx, snapshot.Ref{Branch: branch})
		if err != nil {
			return err
		}
		ok, err := store.Settled(ctx, branch, to)
		if err != nil {
			return err
		}
		if ok {
			t := a.s.touch(a.rel)
			t.base, t.reads = at, unionReads(t.reads, &commit.ReadSet{All: true})
			a.settled = key
			return nil
		}
		if try == settleTries {
			return pgerr.New(pgerr.ObjectInUse, "cannot change %q of %q while another process writes it", key, a.rel.Name())
		}
	}
}

// compactAll is a full compaction that leaves no deletion vectors.
func (a *alteration) compactAll(ctx context.Context, store *table.FileStore, branch string) error {
	acc := a.s.eng.root.Child("max_memory", 0)
	defer acc.Close()
	shown := a.s.eng.maint.track(a.s.pid, a.rel.Schema()+"."+a.rel.Name(), a.rel.OID())
	defer shown.end()
	_, err := store.Compact(ctx, table.CompactOptions{
		Branch: branch, Full: true, DropVectors: true, Account: acc, Progress: shown.progress, Throttle: shown.throttle(nil),
		Options: map[string]string{"write-only": "false"},
	})
	return err
}
