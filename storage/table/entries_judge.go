package table

import (
	"context"
	"slices"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// mergeJudged is merge with the statistics of append tables' files asked.
func (p *planner) mergeJudged(ctx context.Context, lists [][]manifest.Entry, names []string) ([]live, error) {
	out, err := p.merge(ctx, lists, names)
	if err != nil || p.primaryKey() {
		return out, err
	}
	return out, p.judgeFiles(ctx, out)
}

// judgedAtOnce is how many entries one goroutine judges between two looks at the
// context.
const judgedAtOnce = 2048

// judgeFiles asks the statistics of every file of an append table, in parallel:
// where nothing merges each file stands for itself.
func (p *planner) judgeFiles(ctx context.Context, out []live) error {
	if p.filter == nil || !p.scan.prunes(PruneStats) || len(out) < judgedAtOnce {
		return nil
	}
	last := int64(-1)
	for i := range out { // the map of schemas is only read from here on
		if id := out[i].File.SchemaID; id != last {
			if _, err := p.fileSchema(id); err != nil {
				return err
			}
			last = id
		}
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(cores.Count())
	for part := range slices.Chunk(out, judgedAtOnce) {
		g.Go(func() error {
			if gctx.Err() != nil {
				return context.Cause(gctx)
			}
			f := fileStats{p: p, values: true}
			for i := range part {
				l := &part[i]
				if f.fs == nil || f.fs.schema.ID != l.File.SchemaID {
					f.fs = p.fileSchemas[l.File.SchemaID]
				}
				f.l = *l
				l.known = matches
				if predicate.Eval(p.filter, &f) == predicate.None {
					l.known = ruledOut
				}
			}
			return nil
		})
	}
	return g.Wait()
}
