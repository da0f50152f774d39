package table

import (
	"context"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
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
