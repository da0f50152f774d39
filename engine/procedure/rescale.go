package procedure

import (
	"context"
	"errors"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// rescaleProcedure rewrites partitions into another number of buckets: those named,
// or all that have another one. Flink calls the argument partition, Spark
// partitions; how parallel they read and write is our business.
var rescaleProcedure = &Procedure{
	Name: "rescale",
	Args: []Arg{
		tableArg,
		{Name: "bucket_num", Kind: types.Int8, Aliases: []string{"bucketNum"}},
		{Name: "partition", Kind: types.Text, Aliases: []string{"partitions"}},
		{Name: "scan_parallelism", Kind: types.Int8},
		{Name: "sink_parallelism", Kind: types.Int8},
		{Name: "where", Kind: types.Text},
	},
	Columns: types.Schema{
		field("result", types.Bool), field("snapshot_id", types.Int8), field("buckets", types.Int4),
		field("partitions", types.Int4), field("rows", types.Int8), field("lost_races", types.Int4),
	},
	Run: runRescale,
}

func runRescale(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
	n, err := bounded(v, "bucket_num", 1)
	if err != nil {
		return nil, err
	}
	c, err := choiceOf(v, "partition")
	if err != nil {
		return nil, err
	}
	t, err := h.Table(ctx, v.Text("table"))
	if err != nil {
		return nil, err
	}
	o := table.RescaleOptions{Branch: t.Branch, Buckets: int32(n), Account: h.Account()}
	if o.Partitions, err = c.partitions(ctx, h, t); err != nil {
		return nil, err
	}
	progress, end := h.Track(t)
	defer end()
	o.Progress = progress
	o.Publish = func(ctx context.Context) (func(), error) { return h.Publish(ctx, t) }
	r, err := t.Store.Rescale(ctx, o)
	if errors.Is(err, table.ErrNoBucketCount) {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "table \"%s\" has no number of buckets of its own", t.Name).
			WithHint("Give the number as bucket_num.")
	}
	if err != nil {
		return nil, err
	}
	var id types.Datum
	if r.SnapshotID > 0 {
		id = r.SnapshotID
		h.Changed(t)
	}
	return [][]types.Datum{{true, id, int64(r.Buckets), int64(r.Partitions), r.Rows, int64(r.LostRaces)}}, nil
}
