package engine

import (
	"context"
	"sort"
	"strconv"
	"strings"

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
	"fields.", "file-index.", "parquet.", "orc.", "avro.", "csv.", "json.", "lance.", "vortex.", "metadata.iceberg.", "pg-type.", "pg-default.", "pg-constraint.",
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
	for _, o := range c.Options {
		key, value, err := tableOption(a.text, o)
		if err != nil {
			return err
		}
		reset := c.Op == ast.ResetOptions
		settled, err := a.settle(ctx, key, value, reset)
		if err != nil {
			return err
		}
		if settled {
			changes = append(changes, schema.Settled{Key: key})
		}
		if reset {
			changes = append(changes, schema.RemoveOption{Key: key})
			continue
		}
		if err := refuseOption(a.text, o.Pos, key, value); err != nil {
			return err
		}
		if !optionKnown(key) {
			a.notes = append(a.notes, "table option "+ast.QuoteIdent(key)+" is not known; it is kept")
		}
		changes = append(changes, schema.SetOption{Key: key, Value: value})
	}
	return a.do(&a.after, changes...)
}

// vectorsOption says where the deleted rows of a table's files are written down.
const vectorsOption = "deletion-vectors.enabled"

// settleTries is how often a table is compacted for a change of its options while
// other processes go on writing it.
const settleTries = 3

// settle makes the table's files such as a new value of an option asks for, and
// reports whether it had to look: with deletion vectors, readers do not merge files;
// without, they do not look for vectors. The table is locked, so no session of this
// server writes it; a commit of another process between here and the change makes
// the change fail.
func (a *alteration) settle(ctx context.Context, key, value string, reset bool) (bool, error) {
	if key != vectorsOption || !a.hasSnapshot {
		return false, nil
	}
	was := schema.Options(a.sch.Options).Flag(key, false)
	if is := !reset && (schema.Options{key: value}).Flag(key, false); is == was {
		return false, nil
	}
	store, ok := a.rel.Table().(*table.FileStore)
	if !ok {
		return false, nil
	}
	if t := a.s.touched(keyOf(a.rel)); t != nil && t.writes() {
		return false, pgerr.New(pgerr.ObjectInUse, "cannot change %q of %q, which this transaction has written to", key, a.rel.Name()).
			WithHint("Commit first.")
	}
	branch := a.rel.At().Branch
	to := map[string]string{key: strconv.FormatBool(!was)}
	for try := 0; ; try++ {
		// Level 0, too: readers of other engines do not see it with deletion vectors.
		if try > 0 || !was {
			if err := a.compactAll(ctx, store, branch); err != nil {
				return false, err
			}
		}
		at, err := store.Resolve(ctx, snapshot.Ref{Branch: branch})
		if err != nil {
			return false, err
		}
		ok, err := store.Settled(ctx, branch, to)
		if err != nil {
			return false, err
		}
		if ok {
			t := a.s.touch(a.rel)
			t.base, t.reads = at, unionReads(t.reads, &commit.ReadSet{All: true})
			a.settled = true
			return true, nil
		}
		if try == settleTries {
			return false, pgerr.New(pgerr.ObjectInUse, "cannot change %q of %q while another process writes it", key, a.rel.Name())
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
