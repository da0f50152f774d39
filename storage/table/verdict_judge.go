package table

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// keyedBucket is a bucket of a key table that is planned.
type keyedBucket struct {
	kept       []live
	gone       []bool // by place in kept: its keys do not match
	spans      []mergetree.Span
	file       func(live) File
	vectorMode bool
	sections   []judgedSection
}

// merges reports whether a section has to be merged.
func (b *keyedBucket) merges(s *mergetree.Section) bool {
	level0 := false
	for _, r := range s.Runs {
		for _, i := range r {
			level0 = level0 || b.kept[i].File.Level == 0
		}
	}
	return len(s.Runs) > 1 && (!b.vectorMode || level0)
}

// judgedSection is a section that has to be merged, and its verdict, if there is one.
type judgedSection struct {
	runs [][]File
	at   map[*manifest.DataFile]int // places in kept
	v    *verdict
}

// judging is the work of finding the verdict of a section.
type judging struct {
	p     *planner
	l     live
	runs  [][]File
	rows  int64
	key   sectionKey
	read  *readPlan // of keys
	dir   string
	slots chan struct{} // one for each goroutine that works
	busy  chan struct{} // see verdicts.enter
	v     *verdict
	bad   bool // it cannot be read; the merge will say why, if it comes to it
}

// judgeAll finds the verdicts of buckets' sections: what is not known is judged side by
// side where the plan reads all of the section.
func (p *planner) judgeAll(ctx context.Context, bs []*keyedBucket) error {
	type waiting struct {
		s    *judgedSection
		key  sectionKey
		busy chan struct{}
		j    *judging
	}
	s := p.t.env.verdicts
	var waits []waiting
	var jobs []*judging
	var marks int64
	defer func() { // of what an error left undone
		for _, j := range jobs {
			s.leave(j.key, nil, j.busy)
		}
	}()
	run := func() error {
		err := p.runJudging(ctx, jobs)
		for _, j := range jobs {
			s.leave(j.key, j.v, j.busy)
		}
		jobs, marks = nil, 0
		return err
	}
	for _, b := range bs {
		b.sections = p.mergingSections(b)
		for i := range b.sections {
			x := &b.sections[i]
			rows, most, whole := int64(0), int64(0), p.read.keyFrom == nil && p.read.keyTo == nil && p.settles()
			for _, r := range x.runs {
				n := runRows(r)
				rows, most = rows+n, max(most, n)
			}
			for _, i := range x.at {
				whole = whole && !b.gone[i]
			}
			if rows < s.least {
				continue
			}
			l := b.kept[x.at[x.runs[0][0].Meta]]
			folds := p.folds([][][]File{x.runs}) != nil
			key := p.sectionKey(l, x.runs)
			v, judge, busy := s.enter(key.files, whole, !folds || 2*(rows-most) <= most)
			w := waiting{s: x, key: key, busy: busy}
			switch {
			case judge:
				w.j = &judging{p: p, l: l, runs: x.runs, rows: rows, key: key, dir: p.bucketDir(l.part, l.Bucket), busy: busy}
				jobs = append(jobs, w.j)
				waits = append(waits, w)
				for _, r := range x.runs {
					for i := range r {
						w.j.bad = w.j.bad || p.check(&r[i]) != nil
					}
				}
				if marks += rows / 8; folds {
					marks += rows / 8
				}
				if marks > s.budget/4 {
					if err := run(); err != nil {
						return err
					}
				}
			case busy != nil:
				waits = append(waits, w)
			default:
				x.v = v
			}
		}
	}
	if err := run(); err != nil {
		return err
	}
	// Only now, when nobody waits for this plan, it waits for others.
	for _, w := range waits {
		if w.j != nil {
			if w.s.v = w.j.v; w.s.v != nil {
				p.report.Judged++
			}
			continue
		}
		var err error
		if w.s.v, err = s.wait(ctx, w.key.files, w.busy); err != nil {
			return err
		}
	}
	return nil
}

// mergingSections returns the sections of a bucket that have to be merged.
func (p *planner) mergingSections(b *keyedBucket) (out []judgedSection) {
	for _, s := range mergetree.IntervalPartition(b.spans) {
		if !b.merges(&s) {
			continue
		}
		x := judgedSection{runs: make([][]File, len(s.Runs)), at: map[*manifest.DataFile]int{}}
		for k, r := range s.Runs {
			for _, i := range r {
				x.at[b.kept[i].File] = i
				x.runs[k] = append(x.runs[k], b.file(b.kept[i]))
			}
		}
		out = append(out, x)
	}
	return out
}

// runJudging finds the verdicts of jobs.
func (p *planner) runJudging(ctx context.Context, jobs []*judging) error {
	if len(jobs) == 0 {
		return nil
	}
	read := *p.read
	read.columns, read.fields, read.pruned = []int{}, types.Schema{}, nil
	read.filter, read.keyPart, read.keyFrom, read.keyTo = nil, nil, nil, nil
	slots := make(chan struct{}, cores.Count())
	var g errgroup.Group
	g.SetLimit(2 * cap(slots))
	for _, j := range jobs {
		if j.bad {
			continue
		}
		j.read, j.slots = &read, slots
		g.Go(func() error {
			v, err := j.judge(ctx)
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if err == nil && v != nil {
				v.key = j.key.files
				for _, r := range j.runs {
					for i := range r {
						id := r[i].identity()
						v.files = append(v.files, id)
						v.bytes += int64(len(id)) + 16
					}
				}
				j.v = v
			}
			return nil // the merge will say what is wrong, if it comes to it
		})
	}
	return g.Wait()
}

// judge finds a verdict, nil when it would be too big to be kept.
func (j *judging) judge(ctx context.Context) (*verdict, error) {
	s := j.p.t.env.verdicts
	size := j.rows / 8
	if j.p.folds([][][]File{j.runs}) != nil {
		size *= 2
	}
	if size > s.budget/4 {
		return nil, nil
	}
	v, err := j.derive(ctx)
	if v != nil && err == nil && s.derived != nil {
		s.derived(j, v)
	}
	if v != nil || err != nil {
		return v, err
	}
	return j.merge(ctx)
}

// work runs f when it is its turn.
func (j *judging) work(ctx context.Context, f func() error) error {
	select {
	case j.slots <- struct{}{}:
		defer func() { <-j.slots }()
		return f()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// merge merges the keys of a section, in key ranges side by side.
func (j *judging) merge(ctx context.Context) (*verdict, error) {
	p := j.p
	folds := p.folds([][][]File{j.runs}) != nil
	fates := map[string]*mergetree.Fate{}
	for _, r := range j.runs {
		for i := range r {
			f := &mergetree.Fate{Live: mergetree.NewMarks(r[i].Meta.Rows)}
			if folds {
				f.Folded = mergetree.NewMarks(r[i].Meta.Rows)
			}
			fates[r[i].Meta.Name] = f
		}
	}
	bounds, err := p.keyBounds(ctx, j.l, &mergeSection{runs: j.runs, rows: j.rows})
	if err != nil {
		return nil, err
	}
	counts := make([]int64, len(bounds)+1)
	g, gctx := errgroup.WithContext(ctx)
	for i := range counts {
		im := &piece{read: j.read, dir: j.dir}
		if i > 0 {
			im.from = bounds[i-1]
		}
		if i < len(bounds) {
			im.to = bounds[i]
		}
		g.Go(func() error {
			return j.work(gctx, func() error {
				r := newMergeReader(im, Split{Sections: [][][]File{j.runs}}, ReadOptions{Counters: &format.Counters{}})
				defer r.Close() //nolint:errcheck // a reader
				r.fates = fates
				if err := r.open(gctx); err != nil {
					return err
				}
				var err error
				counts[i], err = r.m.Mark(gctx)
				return err
			})
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
