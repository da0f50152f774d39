package procedure

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// rewriteFileIndex gives existing files the indexes that the table's options ask for,
// and takes those away that they do not. Flink chooses partitions by partitions, Spark
// by where. Both make all indexes anew; here a file keeps those that it has, unless
// force is true.
var rewriteFileIndex = &Procedure{
	Name: "rewrite_file_index",
	Args: []Arg{
		tableArg,
		{Name: "partitions", Kind: types.Text},
		{Name: "where", Kind: types.Text},
		{Name: "force", Kind: types.Bool},
	},
	Columns: types.Schema{
		field("written_partitions", types.Int4), field("written_indexes", types.Int4), field("rows", types.Int8), field("bytes_written", types.Int8),
		field("snapshot_id", types.Int8), field("lost_races", types.Int4), field("skipped_files", types.Int4),
	},
	Run: runRewriteFileIndex,
}

func runRewriteFileIndex(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
	c, err := choiceOf(v, "partitions")
	if err != nil {
		return nil, err
	}
	t, err := h.Table(ctx, v.Text("table"))
	if err != nil {
		return nil, err
	}
	o := table.IndexOptions{Branch: t.Branch, Anew: v.Bool("force"), Account: h.Account()}
	if o.Partitions, err = c.partitions(ctx, h, t); err != nil {
		return nil, err
	}
	progress, end := h.Track(t)
	defer end()
	o.Progress = progress
	o.Publish = func(ctx context.Context) (func(), error) { return h.Publish(ctx, t) }
	r, err := t.Store.RewriteIndexes(ctx, o)
	if err != nil {
		return nil, err
	}
	var id types.Datum
	if r.SnapshotID > 0 {
		id = r.SnapshotID
		h.Changed(t)
	}
	return [][]types.Datum{{int64(r.Partitions), int64(r.Files), r.Rows, r.Bytes, id, int64(r.LostRaces), int64(r.Skipped)}}, nil
}
