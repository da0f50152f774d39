package procedure

import (
	"context"
	"errors"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/cluster"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// compactProcedure rewrites the files of a table: all of them into the highest
// level, or (compact_strategy => 'minor') only what the table's options find
// worth it. With order_strategy and order_by the rows of an append table are
// sorted; a table with clustering.incremental sorts itself, and minor is its
// default.
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
	j, err := compactJobOf(v, "options")
	if err != nil {
		return nil, err
	}
	if v.Text("partitions") != "" && v.Text("where") != "" {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "partitions and where cannot be used together")
	}
	if j.choice.Specs, err = partitionSpecs(v.Text("partitions")); err != nil {
		return nil, err
	}
	j.choice.Where = strings.TrimSpace(v.Text("where"))
	if j.buckets, err = bucketList(v.Text("buckets")); err != nil {
		return nil, err
	}
	if err := j.sorting(v); err != nil {
		return nil, err
	}
	t, err := h.Table(ctx, v.Text("table"))
	if err != nil {
		return nil, err
	}
	r, err := j.run(ctx, h, t)
	if err != nil {
		return nil, err
	}
	return [][]types.Datum{report(r)}, nil
}

// compactJob is what sys.compact and sys.compact_database do to a table.
type compactJob struct {
	full    bool
	chosen  bool // full was asked for, or not: else it depends on the table
	sort    *table.SortOptions
	options map[string]string
	choice  Choice
	buckets []int32
}

// compactJobOf reads the arguments that both procedures have.
func compactJobOf(v *Values, options string) (*compactJob, error) {
	j := &compactJob{full: true}
	switch s := strings.ToLower(strings.TrimSpace(v.Text("compact_strategy"))); s {
	case "":
	case "full":
		j.chosen = true
	case "minor":
		j.full, j.chosen = false, true
	default:
		return nil, pgerr.New(pgerr.InvalidParameterValue, "compact_strategy \"%s\" is neither full nor minor", s)
	}
	var err error
	if j.options, err = optionList(v.Text(options)); err != nil {
		return nil, err
	}
	if idle := strings.TrimSpace(v.Text("partition_idle_time")); idle != "" {
		if j.choice.Idle, err = schema.ParseDuration(idle); err != nil || j.choice.Idle <= 0 {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "partition_idle_time \"%s\" is not a duration such as '1 d' or '30 min'", idle)
		}
	}
	return j, nil
}

// sorting reads the arguments of a sort compaction.
// Source: CompactProcedure.java of Flink and of Spark.
func (j *compactJob) sorting(v *Values) error {
	name := strings.TrimSpace(v.Text("order_strategy"))
	var by []string
	for _, c := range strings.Split(v.Text("order_by"), ",") {
		if c = strings.Trim(strings.TrimSpace(c), "`\""); c != "" {
			by = append(by, c)
		}
	}
	s, ok := cluster.ParseStrategy(name)
	switch {
	case !ok && name != "":
		return pgerr.New(pgerr.InvalidParameterValue, "order_strategy \"%s\" is none of none, order, zorder, hilbert", name)
	case s == cluster.None && by != nil:
		return pgerr.New(pgerr.InvalidParameterValue, "order_by needs an order_strategy")
	case s == cluster.None:
		return nil
	case by == nil:
		return pgerr.New(pgerr.InvalidParameterValue, "order_strategy \"%s\" needs order_by", name)
	case j.choice.Idle != 0:
		return pgerr.New(pgerr.InvalidParameterValue, "partition_idle_time cannot be used with order_strategy")
	case j.buckets != nil:
		return pgerr.New(pgerr.InvalidParameterValue, "buckets cannot be used with order_strategy")
	}
	j.sort = &table.SortOptions{Strategy: s, Columns: by}
	j.full = true // all files of the partitions are sorted, whatever compact_strategy says
	return nil
}

// clusterError says what was wrong with the columns or the table.
func clusterError(err error) error {
	var e *table.ClusterError
	switch {
	case !errors.As(err, &e):
		return err
	case e.Column != "":
		return pgerr.New(pgerr.UndefinedColumn, "%s", e.Reason)
	case e.Unsupported:
		return pgerr.New(pgerr.FeatureNotSupported, "%s", e.Reason)
	}
	return pgerr.New(pgerr.InvalidParameterValue, "%s", e.Reason)
}

// fixedHere are options, or with a dot at the end families of them, that say what
// rows become: a compaction under others than the table's would change rows.
var fixedHere = []string{"sequence.field", "sequence.field.sort-order", "fields.", "ignore-delete", "deduplicate.ignore-delete", "partial-update.ignore-delete", "first-row.ignore-delete",
	"deletion-vectors.enabled", "bucket", "record-level.time-field"}

// check refuses options that a run cannot have for itself.
func (j *compactJob) check(ctx context.Context, t *Table) error {
	if len(j.options) == 0 {
		return nil
	}
	sch, err := t.Store.Schema(ctx, t.At())
	if err != nil {
		return err
	}
	var changes []schema.Change
	for k, v := range j.options {
		for _, f := range fixedHere {
			if k == f || strings.HasSuffix(f, ".") && strings.HasPrefix(k, f) {
				return pgerr.New(pgerr.InvalidParameterValue, "option \"%s\" cannot be set for a compaction", k)
			}
		}
		changes = append(changes, schema.SetOption{Key: k, Value: v})
	}
	_, err = schema.Apply(sch, changes, true)
	return err
}

// run compacts a table.
func (j *compactJob) run(ctx context.Context, h Host, t *Table) (*table.CompactReport, error) {
	if err := j.check(ctx, t); err != nil {
		return nil, err
	}
	o := table.CompactOptions{Full: j.full, Branch: t.Branch, Buckets: j.buckets, Options: j.options, Sort: j.sort, Account: h.Account()}
	clusters, err := t.Store.Clusters(ctx, o)
	if err != nil {
		return nil, clusterError(err)
	}
	if clusters && j.sort == nil && !j.chosen {
		o.Full = false // as in Java: clustering is done bit by bit
	}
	if o.Partitions, err = j.choice.partitions(ctx, h, t); err != nil {
		return nil, err
	}
	history, err := t.Store.HistoryPartitions(ctx, o)
	if err != nil {
		return nil, err
	}
	progress, end := h.Track(t)
	defer end()
	o.Progress = progress
	o.Publish = func(ctx context.Context) (func(), error) { return h.Publish(ctx, t) }
	r := &table.CompactReport{}
	if o.Partitions == nil || len(o.Partitions) > 0 {
		r, err = t.Store.Compact(ctx, o)
	}
	if err == nil && len(history) > 0 {
		var more *table.CompactReport
		o.Partitions, o.Full = history, true
		if more, err = t.Store.Compact(ctx, o); err == nil {
			add(r, more)
		}
	}
	if r != nil && r.SnapshotID > 0 {
		h.Changed(t)
	}
	return r, clusterError(err)
}

// add adds what a second compaction did to the report of the first.
func add(r, more *table.CompactReport) {
	r.SnapshotID = max(r.SnapshotID, more.SnapshotID)
	r.Buckets += more.Buckets
	r.FilesBefore += more.FilesBefore
	r.FilesAfter += more.FilesAfter
	r.RowsBefore += more.RowsBefore
	r.RowsAfter += more.RowsAfter
	r.BytesRead += more.BytesRead
	r.BytesWritten += more.BytesWritten
	r.Upgraded += more.Upgraded
	r.LostRaces += more.LostRaces
}

// optionList reads k=v,k=v.
func optionList(s string) (map[string]string, error) {
	var out map[string]string
	for _, kv := range strings.Split(s, ",") {
		if strings.TrimSpace(kv) == "" {
			continue
		}
		k, v, ok := strings.Cut(kv, "=")
		if k = strings.TrimSpace(k); !ok || k == "" {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid option \"%s\"", strings.TrimSpace(kv)).
				WithHint("Options are written as key=value; several are divided by commas.")
		}
		if out == nil {
			out = map[string]string{}
		}
		out[k] = strings.TrimSpace(v)
	}
	return out, nil
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

// maxBucketList bounds a list of buckets.
const maxBucketList = 1 << 20

// bucketList reads bucket numbers and closed ranges: 0-99,200.
func bucketList(s string) ([]int32, error) {
	var out []int32
	for _, part := range strings.Split(s, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		from, to, ranged := strings.Cut(part, "-")
		lo, err := strconv.ParseInt(strings.TrimSpace(from), 10, 32)
		hi := lo
		if err == nil && ranged {
			hi, err = strconv.ParseInt(strings.TrimSpace(to), 10, 32)
		}
		if err != nil || lo < 0 || hi < lo || hi-lo >= maxBucketList-int64(len(out)) {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid bucket \"%s\"", part).
				WithHint("Buckets are written as numbers and ranges: 0-3,8.")
		}
		for b := lo; b <= hi; b++ {
			out = append(out, int32(b))
		}
	}
	return out, nil
}
