package engine

import (
	"sort"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/storage/schema"
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
