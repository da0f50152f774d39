package procedure

import (
	"context"
	"regexp"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// compactDatabase compacts the tables of databases, one row of result per table.
// Names are chosen by regular expressions that must match them whole, as with
// Paimon: tables by schema.table. A table that cannot be compacted is told in its
// row and does not stop the others.
var compactDatabase = &Procedure{
	Name: "compact_database",
	Args: []Arg{
		{Name: "including_databases", Kind: types.Text},
		{Name: "mode", Kind: types.Text},
		{Name: "including_tables", Kind: types.Text},
		{Name: "excluding_tables", Kind: types.Text},
		{Name: "table_options", Kind: types.Text},
		{Name: "partition_idle_time", Kind: types.Text},
		{Name: "compact_strategy", Kind: types.Text},
	},
	Columns: types.Schema{
		field("table_name", types.Text), field("result", types.Bool), field("snapshot_id", types.Int8), field("files_before", types.Int4), field("files_after", types.Int4),
		field("bytes_written", types.Int8), field("error", types.Text),
	},
	Run: runCompactDatabase,
}

func runCompactDatabase(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
	switch m := strings.ToLower(strings.TrimSpace(v.Text("mode"))); m {
	case "", "divided", "combined": // how many jobs of Flink do it: here it is one
	default:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "mode \"%s\" is neither divided nor combined", m)
	}
	j, err := compactJobOf(v, "table_options")
	if err != nil {
		return nil, err
	}
	databases, err := pattern(v, "including_databases")
	if err != nil {
		return nil, err
	}
	including, err := pattern(v, "including_tables")
	if err != nil {
		return nil, err
	}
	excluding, err := pattern(v, "excluding_tables")
	if err != nil {
		return nil, err
	}
	names, err := h.Tables(ctx, func(schema, name string) bool {
		full := schema + "." + name
		switch {
		case databases != nil && !databases.MatchString(schema), including != nil && !including.MatchString(full):
			return false
		}
		return excluding == nil || !excluding.MatchString(full)
	})
	if err != nil {
		return nil, err
	}
	out := [][]types.Datum{}
	for _, n := range names {
		row, err := j.oneOf(ctx, h, n)
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if err != nil {
			row = []types.Datum{n, false, nil, nil, nil, nil, err.Error()}
		}
		out = append(out, row)
	}
	return out, nil
}

// oneOf compacts one of several tables.
func (j *compactJob) oneOf(ctx context.Context, h Host, name string) ([]types.Datum, error) {
	t, err := h.Table(ctx, name)
	if err != nil {
		return nil, err
	}
	mine := *j
	if mine.choice.Idle > 0 {
		sch, err := t.Store.Schema(ctx, t.At())
		if err != nil {
			return nil, err
		}
		if len(sch.PartitionKeys) == 0 {
			mine.choice.Idle = 0
		}
	}
	r, err := mine.run(ctx, h, t)
	if err != nil {
		return nil, err
	}
	var id types.Datum
	if r.SnapshotID > 0 {
		id = r.SnapshotID
	}
	return []types.Datum{t.Name, true, id, int64(r.FilesBefore), int64(r.FilesAfter), r.BytesWritten, nil}, nil
}

// pattern is an argument that is a regular expression; nil when not given.
func pattern(v *Values, name string) (*regexp.Regexp, error) {
	s := v.Text(name)
	if s == "" {
		return nil, nil //nolint:nilnil // see the doc
	}
	re, err := regexp.Compile("^(?:" + s + ")$")
	if err != nil {
		return nil, pgerr.New(pgerr.InvalidRegularExpression, "argument \"%s\" is no regular expression: %v", name, err)
	}
	return re, nil
}
