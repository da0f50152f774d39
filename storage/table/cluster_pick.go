package table

import (
	"cmp"
	"context"
	"slices"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Incremental clustering treats the files of a partition as those of a primary-key
// table: every file of level 0 is a sorted run, newly written and in no order; all
// files of a higher level are one run, sorted together. What the universal rules
// pick is sorted as a whole and becomes the run of a level further up, so that rows
// are rewritten a few times in all.
// Source: IncrementalClusterManager.java, IncrementalClusterStrategy.java.

// clusterOptions are o without the rules that Java does not have here.
func clusterOptions(o *compact.Options) *compact.Options {
	k := *o
	k.Interval, k.TotalSize, k.IncrementalSize = 0, 0, 0
	k.OffPeakStart, k.OffPeakEnd = -1, -1
	k.DeltaCommits, k.ForceLevel0 = 0, 0
	return &k
}

// pickCluster picks the runs of a bucket to sort; nil = there is nothing to do.
func (c *compaction) pickCluster(ctx context.Context, files []*manifest.DataFile) (*compact.Unit, error) {
	o := clusterOptions(c.opts)
	l := compact.NewLevels(files, o)
	if !c.o.Full {
		return compact.Pick(l, o, compact.Moment{}), nil
	}
	if len(l.Runs) == 0 {
		return nil, nil
	}
	if len(l.Runs) == 1 && l.Runs[0].Level == l.Max {
		// Sorted already, if it was by these columns.
		s, err := c.p.schemas.Get(ctx, l.Runs[0].Files[0].SchemaID)
		if err != nil {
			return nil, err
		}
		if slices.Equal(schema.Options(s.Options).List("clustering.columns"), c.cluster.names) {
			return nil, nil
		}
	}
	return &compact.Unit{Level: l.Max, Runs: l.Runs, Max: l.Max}, nil
}

// clusterDue reports whether files of one bucket are due for incremental
// clustering.
func clusterDue(files []*manifest.DataFile, o *compact.Options) bool {
	o = clusterOptions(o)
	return compact.Pick(compact.NewLevels(files, o), o, compact.Moment{}) != nil
}

// HistoryPartitions are partitions that a compaction of the partitions of o takes
// along: no file was added to them for clustering.history-partition.idle-to-full-sort
// and they hold files below the highest level; those idle for longest first, as many
// as clustering.history-partition.limit. They are to be compacted with Full. None
// where that option is not set, or where o names no partitions.
// Source: HistoryPartitionCluster.java.
func (t *FileStore) HistoryPartitions(ctx context.Context, o CompactOptions) ([][]byte, error) {
	return t.historyPartitions(ctx, o, time.Now())
}

func (t *FileStore) historyPartitions(ctx context.Context, o CompactOptions, now time.Time) ([][]byte, error) {
	st, err := t.state(ctx, snapshot.Ref{Branch: o.Branch}, o.Options)
	if err != nil || o.Partitions == nil || len(st.schema.PartitionKeys) == 0 {
		return nil, err
	}
	itself, err := st.clustersItself()
	if err != nil || !itself {
		return nil, err
	}
	idle, err := st.options.Duration("clustering.history-partition.idle-to-full-sort", 0)
	if err != nil || idle <= 0 {
		return nil, err
	}
	limit, err := st.options.Int("clustering.history-partition.limit", 5)
	if err != nil {
		return nil, err
	}
	opts, err := compact.ParseOptions(st.options, false)
	if err != nil {
		return nil, err
	}
	before := now.Add(-idle).UnixMilli()
	type history struct {
		image  string
		newest int64
		low    bool // it has files below the highest level
	}
	by := map[string]*history{}
	err = t.filesOf(ctx, st, func(all bucketFiles) {
		for id, files := range all {
			h := by[id.Partition]
			if h == nil {
				h = &history{image: id.Partition}
				by[id.Partition] = h
			}
			for _, e := range files {
				h.newest = max(h.newest, e.File.CreationMillis)
				h.low = h.low || e.File.Level < opts.Levels-1
			}
		}
	})
	if err != nil {
		return nil, err
	}
	var found []*history
	for _, h := range by {
		if h.low && h.newest < before && !slices.ContainsFunc(o.Partitions, func(p []byte) bool { return string(p) == h.image }) {
			found = append(found, h)
		}
	}
	slices.SortFunc(found, func(a, b *history) int { return cmp.Or(cmp.Compare(a.newest, b.newest), cmp.Compare(a.image, b.image)) })
	var out [][]byte
	for _, h := range found[:min(int64(len(found)), max(limit, 0))] {
		out = append(out, []byte(h.image))
	}
	return out, nil
}
