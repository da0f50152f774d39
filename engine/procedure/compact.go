package procedure

import (
	"context"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// compactProcedure rewrites the files of a table: all of them into the highest
// level, or (compact_strategy => 'minor') only what the table's options find
// worth it.
var compactProcedure = &Procedure{
	Name: "compact",
	Args: []Arg{
		tableArg,
		{Name: "partitions", Kind: types.Text},
		{Name: "order_strategy", Kind: types.Text},
		{Name: "order_by", Kind: types.Text, Aliases: []string{"order_by_columns"}},
		{Name: "options", Kind: types.Text},
		{Name: "where", Kind: types.Text},
		{Name: "partition_idle_time", Kind: types.Text},
		{Name: "compact_strategy", Kind: types.Text},
		{Name: "buckets", Kind: types.Text},
	},
	Columns: types.Schema{
		field("result", types.Bool), field("snapshot_id", types.Int8), field("buckets", types.Int4),
		field("files_before", types.Int4), field("files_after", types.Int4), field("rows_before", types.Int8), field("rows_after", types.Int8),
		field("bytes_read", types.Int8), field("bytes_written", types.Int8), field("files_upgraded", types.Int4), field("lost_races", types.Int4),
	},
	Run: runCompact,
}

func runCompact(ctx context.Context, h Host, v *Values) ([][]types.Datum, error) {
	switch s := strings.ToLower(v.Text("order_strategy")); s {
	case "", "none":
	case "order", "zorder", "hilbert":
		return nil, pgerr.New(pgerr.FeatureNotSupported, "order_strategy \"%s\" of sys.compact is not supported", s)
	default:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "order_strategy \"%s\" is none of none, order, zorder, hilbert", s)
	}
	if err := refuse(v, "compact", "order_by", "options", "partition_idle_time"); err != nil {
		return nil, err
	}
	o := table.CompactOptions{Full: true, Account: h.Account()}
	switch s := strings.ToLower(v.Text("compact_strategy")); s {
	case "", "full":
	case "minor":
		o.Full = false
	default:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "compact_strategy \"%s\" is neither full nor minor", s)
	}
	if v.Has("partitions") && v.Has("where") {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "partitions and where cannot be used together")
	}
	t, err := h.Table(ctx, v.Text("table"))
	if err != nil {
		return nil, err
	}
	o.Branch = t.Branch
	if o.Buckets, err = bucketList(v.Text("buckets")); err != nil {
		return nil, err
	}
	if v.Has("partitions") || v.Has("where") {
		specs, err := partitionSpecs(v.Text("partitions"))
		if err != nil {
			return nil, err
		}
		if o.Partitions, err = h.Partitions(ctx, t, v.Text("where"), specs); err != nil {
			return nil, err
		}
		if len(o.Partitions) == 0 { // nil would be all of them
			return [][]types.Datum{report(&table.CompactReport{})}, nil
		}
	}
	progress, end := h.Track(t)
	defer end()
	o.Progress = progress
	o.Publish = func(ctx context.Context) (func(), error) { return h.Publish(ctx, t) }
	r, err := t.Store.Compact(ctx, o)
	if err != nil {
		return nil, err
	}
	if r.SnapshotID > 0 {
		h.Changed(t)
	}
	return [][]types.Datum{report(r)}, nil
}

func report(r *table.CompactReport) []types.Datum {
	var id types.Datum
	if r.SnapshotID > 0 {
		id = r.SnapshotID
	}
	return []types.Datum{true, id, int64(r.Buckets), int64(r.FilesBefore), int64(r.FilesAfter), r.RowsBefore, r.RowsAfter,
		r.BytesRead, r.BytesWritten, int64(r.Upgraded), int64(r.LostRaces)}
}

// partitionSpecs reads dt=20240101,hh=1;dt=20240102: values may be quoted.
func partitionSpecs(s string) ([]map[string]string, error) {
	var out []map[string]string
	for _, spec := range strings.Split(s, ";") {
		if strings.TrimSpace(spec) == "" {
			continue
		}
		m := map[string]string{}
		for _, kv := range strings.Split(spec, ",") {
			k, v, ok := strings.Cut(kv, "=")
			if k = strings.TrimSpace(k); !ok || k == "" {
				return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid partition \"%s\"", spec).
					WithHint("A partition is written as dt=2024-01-01,hour=3; several are divided by semicolons.")
			}
			v = strings.TrimSpace(v)
			if n := len(v); n >= 2 && v[0] == v[n-1] && (v[0] == '\'' || v[0] == '"') {
				v = v[1 : n-1]
			}
			m[strings.Trim(k, "`\"")] = v
		}
		out = append(out, m)
	}
	return out, nil
}

func bucketList(s string) ([]int32, error) {
	var out []int32
	for _, b := range strings.Split(s, ",") {
		if b = strings.TrimSpace(b); b == "" {
			continue
		}
		n, err := strconv.ParseInt(b, 10, 32)
		if err != nil || n < 0 {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid bucket \"%s\"", b)
		}
		out = append(out, int32(n))
	}
	return out, nil
}
