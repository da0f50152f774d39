package compact

import (
	"cmp"
	"slices"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// Picking is universal compaction, as RocksDB calls it and as Java Paimon does it
// (UniversalCompaction.java), without any state: files, options and the time in,
// files and an output level out.
//
//	level 0: every file is a sorted run, newest first      [f7] [f6] [f5]
//	level 1 and up: one run per level                       L4: [f1 f2]
//	                                                        L5: [f0]
//
// A unit is always a prefix of the runs, newest to oldest. Its output level is
// below every run that it leaves out and is never 0, so a unit with any level-0
// run has all of them; hence what it leaves out is older than what it takes in,
// level by level.

// Run is one sorted run of a bucket.
type Run struct {
	Level int32
	Size  int64
	Files []*manifest.DataFile
}

// Levels are the sorted runs of one bucket, newest first.
type Levels struct {
	Runs []Run
	Max  int32 // highest level that there may be
}

// NewLevels sorts the files of a bucket into runs.
func NewLevels(files []*manifest.DataFile, o *Options) Levels {
	l := Levels{Max: o.Levels - 1}
	var zero []*manifest.DataFile
	by := map[int32][]*manifest.DataFile{}
	for _, f := range files {
		if f.Level <= 0 {
			zero = append(zero, f)
			continue
		}
		by[f.Level] = append(by[f.Level], f)
		l.Max = max(l.Max, f.Level) // num-levels was lowered since
	}
	slices.SortFunc(zero, func(a, b *manifest.DataFile) int {
		return cmp.Or(cmp.Compare(b.MaxSequence, a.MaxSequence), cmp.Compare(a.MinSequence, b.MinSequence),
			cmp.Compare(a.CreationMillis, b.CreationMillis), cmp.Compare(a.Name, b.Name))
	})
	for _, f := range zero {
		l.Runs = append(l.Runs, Run{Size: f.Size, Files: []*manifest.DataFile{f}})
	}
	levels := make([]int32, 0, len(by))
	for lv := range by {
		levels = append(levels, lv)
	}
	slices.Sort(levels)
	for _, lv := range levels {
		r := Run{Level: lv, Files: by[lv]}
		for _, f := range r.Files {
			r.Size += f.Size
		}
		l.Runs = append(l.Runs, r)
	}
	return l
}

// Unit is what one compaction of a bucket takes in and where it goes.
type Unit struct {
	Level int32 // of the output
	Runs  []Run // a prefix of Levels.Runs
	// DropDelete says that nothing older than the output is left in the bucket, or
	// that deletion vectors tell of it, so that rows of kind -U and -D need not be
	// kept.
	DropDelete bool
	// Max is the bucket's highest level; a unit that goes there keeps no deletes.
	Max int32
	// Rewrite says that every file is rewritten by itself.
	Rewrite bool
}

// Files returns the files of all runs.
func (u *Unit) Files() []*manifest.DataFile {
	var out []*manifest.DataFile
	for _, r := range u.Runs {
		out = append(out, r.Files...)
	}
	return out
}

// Moment is the time of a pick: the hour for off-peak ratios, and, for
// compaction.optimization-interval, when the bucket was last compacted whole (the
// zero time = never).
type Moment struct {
	Now, LastFull time.Time
	// Commits is how many commits of rows there were since LastFull, as far as
	// Options.DeltaCommits asks.
	Commits int
}

// LastFull estimates when a bucket was last compacted whole: by the newest file
// of its highest level. Creation times of files are the writer's clock as if UTC.
func (l *Levels) LastFull() time.Time {
	newest := int64(0)
	for _, r := range l.Runs {
		if r.Level == l.Max {
			for _, f := range r.Files {
				newest = max(newest, f.CreationMillis)
			}
		}
	}
	if newest == 0 {
		return time.Time{}
	}
	return time.UnixMilli(newest)
}

// Pick returns what is due, or nil.
func Pick(l Levels, o *Options, m Moment) *Unit {
	p := picker{l, o, m}
	u := p.pick()
	if u == nil || len(u.Runs) == 0 {
		return nil
	}
	if files := u.Files(); len(files) == 1 && files[0].Level == u.Level {
		return nil
	}
	return u
}

// PickFull returns the compaction of everything to the highest level. When it is
// there already, only files are rewritten that must be; nil when there are none.
func PickFull(l Levels, o *Options, must func(*manifest.DataFile) bool) *Unit {
	if len(l.Runs) == 0 {
		return nil
	}
	p := picker{l: l, o: o}
	if len(l.Runs) > 1 || l.Runs[0].Level != l.Max {
		return p.unit(l.Max, len(l.Runs))
	}
	r := Run{Level: l.Max}
	for _, f := range l.Runs[0].Files {
		if o.ForceRewrite || must != nil && must(f) {
			r.Files = append(r.Files, f)
			r.Size += f.Size
		}
	}
	if len(r.Files) == 0 {
		return nil
	}
	u := p.unit(l.Max, 1)
	u.Runs, u.Rewrite = []Run{r}, true
	return u
}

// PickLevel0 takes level 0 up: by what is due anyway, or else with as few other
// runs as may be. nil when there are no files in level 0.
func PickLevel0(l Levels, o *Options, m Moment) *Unit {
	zero := l.level0()
	if zero == 0 {
		return nil
	}
	if u := Pick(l, o, m); u != nil && u.Runs[0].Level == 0 {
		return u // a unit with any level-0 run has all of them
	}
	p := picker{l, o, m}
	return p.byRatio(zero, true)
}

// level0 is the number of runs in level 0.
func (l *Levels) level0() int {
	n := 0
	for n < len(l.Runs) && l.Runs[n].Level == 0 {
		n++
	}
	return n
}

type picker struct {
	l Levels
	o *Options
	m Moment
}

func (p *picker) pick() *Unit {
	runs := p.l.Runs
	if len(runs) == 0 {
		return nil
	}
	if len(runs) > 1 && p.early() {
		return p.unit(p.l.Max, len(runs))
	}
	if p.o.DeltaCommits > 0 && p.m.Commits >= p.o.DeltaCommits && (len(runs) > 1 || runs[0].Level != p.l.Max) {
		return p.unit(p.l.Max, len(runs))
	}
	if len(runs) >= p.o.Trigger {
		if p.amplified() {
			return p.unit(p.l.Max, len(runs))
		}
		if u := p.byRatio(1, false); u != nil {
			return u
		}
	}
	if n := len(runs) - p.o.Trigger + 1; n > 1 {
		if u := p.byRatio(n, false); u != nil {
			return u
		}
	}
	if zero := p.l.level0(); p.o.ForceLevel0 > 0 && zero >= p.o.ForceLevel0 {
		return p.byRatio(zero, true)
	}
	return nil
}

// early reports whether one of the rules for an early full compaction applies.
func (p *picker) early() bool {
	if p.o.Interval > 0 && (p.m.LastFull.IsZero() || p.m.Now.Sub(p.m.LastFull) > p.o.Interval) {
		return true
	}
	total, incremental := int64(0), int64(0)
	for _, r := range p.l.Runs {
		total += r.Size
		if r.Level != p.l.Max {
			incremental += r.Size
		}
	}
	return p.o.TotalSize > 0 && total < p.o.TotalSize || p.o.IncrementalSize > 0 && incremental > p.o.IncrementalSize
}

// amplified reports whether the newer runs are too big beside the oldest.
func (p *picker) amplified() bool {
	newer := int64(0)
	last := len(p.l.Runs) - 1
	for _, r := range p.l.Runs[:last] {
		newer += r.Size
	}
	return newer*100 > p.o.SizeAmplification*p.l.Runs[last].Size
}

// byRatio begins with the n newest runs and takes in older ones as long as they
// are not much bigger than what it has; once something is to be done, levels 0
// and 1 are taken in whatever their size.
func (p *picker) byRatio(n int, force bool) *Unit {
	runs := p.l.Runs
	size := int64(0)
	for _, r := range runs[:n] {
		size += r.Size
	}
	ratio := p.o.SizeRatio + p.o.offPeak(p.m.Now.Hour())
	due := force || n > 1
	for ; n < len(runs); n++ {
		next := runs[n]
		if float64(size)*(100+float64(ratio))/100 < float64(next.Size) && (!due || next.Level > 1) {
			break
		}
		size += next.Size
		due = true
	}
	if !due {
		return nil
	}
	level := p.l.Max
	if n < len(runs) {
		level = max(0, runs[n].Level-1)
	}
	for level == 0 && n < len(runs) {
		level = runs[n].Level // level 0 is no output: what follows is taken in, up to the first level that is one
		n++
	}
	if n == len(runs) {
		level = p.l.Max
	}
	return p.unit(level, n)
}

// unit takes the n newest runs to a level.
func (p *picker) unit(level int32, n int) *Unit {
	highest := p.l.Runs[len(p.l.Runs)-1].Level
	// With deletion vectors a delete is done with once the row is marked.
	drop := level != 0 && (level >= highest || p.o.DeletionFiles)
	return &Unit{Level: level, Runs: p.l.Runs[:n:n], DropDelete: drop, Max: p.l.Max}
}
