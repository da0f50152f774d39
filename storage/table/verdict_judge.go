package table

import (
	"context"
	"runtime"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// judge merges the keys of a section, in key ranges side by side. It returns nil when
// the verdict would be too big to be kept.
func (p *planner) judge(ctx context.Context, l live, runs [][]File, rows int64) (*verdict, error) {
	folds := p.folds([][][]File{runs}) != nil
	if size := rows / 8; size > p.t.env.verdicts.budget/4 || folds && 2*size > p.t.env.verdicts.budget/4 {
		return nil, nil
	}
	s := mergeSection{runs: runs, rows: rows}
	fates := map[string]*mergetree.Fate{}
	for _, r := range runs {
		for i := range r {
			if err := p.check(&r[i]); err != nil {
				return nil, err
			}
			f := &mergetree.Fate{Live: mergetree.NewMarks(r[i].Meta.Rows)}
			if folds {
				f.Folded = mergetree.NewMarks(r[i].Meta.Rows)
			}
			fates[r[i].Meta.Name] = f
		}
	}
	bounds, err := p.keyBounds(ctx, l, &s)
	if err != nil {
		return nil, err
	}
	read := *p.read
	read.columns, read.fields, read.pruned = []int{}, types.Schema{}, nil
	read.filter, read.keyPart, read.keyFrom, read.keyTo = nil, nil, nil, nil
	counts := make([]int64, len(bounds)+1)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(runtime.GOMAXPROCS(0))
	for i := range counts {
		im := &piece{read: &read, dir: p.bucketDir(l.part, l.Bucket)}
		if i > 0 {
			im.from = bounds[i-1]
		}
		if i < len(bounds) {
			im.to = bounds[i]
		}
		g.Go(func() error {
			r := newMergeReader(im, Split{Sections: [][][]File{runs}}, ReadOptions{Counters: &format.Counters{}})
			defer r.Close() //nolint:errcheck // a reader
			r.fates = fates
			if err := r.open(gctx); err != nil {
				return err
			}
			var err error
			counts[i], err = r.m.Mark(gctx)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	return verdictFrom(fates, counts), nil
}

// verdictFrom makes a verdict of what was marked.
func verdictFrom(fates map[string]*mergetree.Fate, counts []int64) *verdict {
	v := &verdict{live: map[string]*mergetree.RowSet{}, folded: map[string]*mergetree.RowSet{}}
	for _, n := range counts {
		v.rows += n
	}
	put := func(m map[string]*mergetree.RowSet, name string, marks *mergetree.Marks) {
		v.bytes += 64
		if s := marks.Set(); s.Count() > 0 {
			m[name] = s
			v.bytes += s.Bytes() + int64(len(name)) + 64
		}
	}
	for name, f := range fates {
		put(v.live, name, f.Live)
		if f.Folded != nil {
			put(v.folded, name, f.Folded)
		}
	}
	return v
}
