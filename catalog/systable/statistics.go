package systable

import (
	"bytes"
	"context"
	"encoding/json"
	"sort"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

var statisticsFields = types.Schema{
	field("snapshot_id", bigint), field("schema_id", bigint), field("mergedRecordCount", bigint), field("mergedRecordSize", bigint),
	field("colstat", text),
}

func fillStatistics(ctx context.Context, src *Source, add func(...types.Datum)) error {
	if src.At == nil || src.At.Statistics == "" {
		return nil
	}
	path := src.Root + "/statistics/" + src.At.Statistics
	raw, err := src.IO.ReadFile(ctx, path)
	if err != nil {
		return err
	}
	var s struct {
		SnapshotID        int64           `json:"snapshotId"`
		SchemaID          int64           `json:"schemaId"`
		MergedRecordCount *int64          `json:"mergedRecordCount"`
		MergedRecordSize  *int64          `json:"mergedRecordSize"`
		ColStats          json.RawMessage `json:"colStats"`
	}
	if err := json.Unmarshal(raw, &s); err != nil {
		return &fileio.CorruptionError{Path: path, Offset: -1, Reason: "statistics do not parse", Err: err}
	}
	var cols types.Datum
	if s.ColStats != nil {
		cols = jackson(s.ColStats)
	}
	add(s.SnapshotID, s.SchemaID, ptr(s.MergedRecordCount), ptr(s.MergedRecordSize), cols)
	return nil
}

// jackson lays JSON out as Java's mapper does: two blanks a level, and one before
// each colon, too.
func jackson(raw json.RawMessage) string {
	var b bytes.Buffer
	if json.Indent(&b, raw, "", "  ") != nil {
		return string(raw)
	}
	var out strings.Builder
	text := false
	for i := 0; i < b.Len(); i++ {
		c := b.Bytes()[i]
		switch {
		case text && c == '\\':
			out.WriteByte(c)
			i++
			c = b.Bytes()[i]
		case c == '"':
			text = !text
		case c == ':' && !text:
			out.WriteByte(' ')
		case c == '}' && !text && b.Bytes()[i-1] == '{':
			out.WriteByte(' ')
		}
		out.WriteByte(c)
	}
	return out.String()
}

var aggregationFields = types.Schema{
	field("field_name", text), field("field_type", text), field("function", text), field("function_options", text), field("comment", text),
}

// fillAggregation lists, per column, the options fields.<column>.* and their values.
// Java's order among several is that of a hash map; here they are sorted.
func fillAggregation(_ context.Context, src *Source, add func(...types.Datum)) error {
	keys := make([]string, 0, len(src.Schema.Options))
	for k := range src.Schema.Options {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, f := range src.Schema.Fields {
		var values, names []string
		for _, k := range keys {
			if p := strings.Split(k, "."); len(p) > 2 && p[0] == "fields" && p[1] == f.Name {
				values, names = append(values, src.Schema.Options[k]), append(names, k)
			}
		}
		add(f.Name, types.PaimonString(f.Type), "["+strings.Join(values, ", ")+"]", "["+strings.Join(names, ", ")+"]", orNull(f.Description))
	}
	return nil
}
