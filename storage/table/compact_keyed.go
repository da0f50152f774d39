package table

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// A bucket of a primary-key table is compacted by a unit, cut into steps. Each step
// goes one of these ways:
//
//	moved            another level in the manifest
//	moved and told   the same, but its rows are looked up in higher levels first: for
//	                 the changelog, for deletion vectors
//	rewritten        merged, each key's winner or folded row written (compact.Copy)
//	rewritten by     every version is seen, looked up and told of
//	versions         (compact_changelog.go)

// keyedJob plans the compaction of a bucket of a primary-key table; false when
// there is nothing to do.
func (c *compaction) keyedJob(ctx context.Context, j *job, files []*manifest.DataFile) (bool, error) {
	l := compact.NewLevels(files, c.opts)
	m, err := c.t.moment(ctx, c.p.state, c.opts, &l)
	if err != nil {
		return false, err
	}
	switch {
	case c.o.Full || c.o.DropVectors:
		j.unit = compact.PickFull(l, c.opts, func(f *manifest.DataFile) bool {
			_, ok := c.dvs[f.Name]
			return ok || c.must(f)
		})
	case c.o.Level0:
		j.unit = compact.PickLevel0(l, c.opts, m)
	default:
		j.unit = compact.Pick(l, c.opts, m)
	}
	if j.unit == nil {
		return false, nil
	}
	if c.revives(&l, j.unit) {
		j.unit = compact.PickFull(l, c.opts, c.must)
	}
	for _, f := range files {
		j.files = append(j.files, f.Name)
		j.like = j.entries[f]
	}
	if !j.unit.Rewrite {
		for _, r := range l.Runs[len(j.unit.Runs):] {
			var run []File
			for _, f := range r.Files {
				run = append(run, c.file(f))
			}
			j.rest = append(j.rest, run)
		}
	}
	for _, f := range files {
		if err := c.p.check(&File{Meta: f}); err != nil {
			return false, err
		}
	}
	for _, f := range j.unit.Files() {
		lo, err1 := c.p.fileKey(f.MinKey)
		hi, err2 := c.p.fileKey(f.MaxKey)
		if err := errors.Join(err1, err2); err != nil {
			return false, &fileio.CorruptionError{Path: j.dir + "/" + f.Name, Offset: -1, Reason: "key range in its manifest entry", Err: err}
		}
		j.inputs = append(j.inputs, compact.Input{File: f, Min: lo, Max: hi})
	}
	j.steps = j.unit.Plan(j.inputs, c.opts, c.must)
	for i := range j.steps {
		s := &j.steps[i]
		if s.Upgrade != nil {
			way := j.unit.Upgrade(s.Upgrade, c.opts)
			if way == compact.Move || way == compact.MoveAndTell && !c.tells() && len(j.rest) == 0 {
				continue
			}
			s.Sections = [][][]int{{{s.Input}}}
			if way == compact.Rewrite {
				s.Upgrade = nil
			}
		}
		for _, i := range inputsOf(*s) {
			j.rows += j.inputs[i].File.Rows
			j.bytes += j.inputs[i].File.Size
		}
	}
	return len(j.steps) > 0, nil
}

// file is a data file with its deletion vector.
func (c *compaction) file(f *manifest.DataFile) File { return File{Meta: f, DV: c.refs[f.Name]} }

// tells reports whether compactions make a changelog.
func (c *compaction) tells() bool {
	return c.opts.Changelog == "lookup" || c.opts.Changelog == "full-compaction"
}

// must reports whether a file has to be rewritten though nothing overlaps it: it
// may hold expired rows, or rows that a deletion vector has taken away when no
// vectors may be left.
func (c *compaction) must(f *manifest.DataFile) bool {
	if _, ok := c.dvs[f.Name]; ok && c.o.DropVectors {
		return true
	}
	if c.expire == nil {
		return false
	}
	fs, err := c.p.fileSchema(f.SchemaID)
	if err != nil {
		return false // it is told when the file is opened
	}
	s, ok := c.p.valueStats(f, fs, c.expire.Column)
	if !ok || s.Min == nil {
		return false
	}
	sec, ok := c.expire.Seconds(s.Min)
	return ok && sec < c.expire.Before
}

// moment is the time of a pick.
func (t *FileStore) moment(ctx context.Context, st *state, o *compact.Options, l *compact.Levels) (compact.Moment, error) {
	m := compact.Moment{Now: time.Now(), LastFull: l.LastFull()}
	if o.DeltaCommits <= 1 {
		m.Commits = o.DeltaCommits // what is not at the highest level came with a commit
		return m, nil
	}
	if len(l.Runs) == 0 || len(l.Runs) == 1 && l.Runs[0].Level == l.Max {
		return m, nil
	}
	for sn := st.snap; sn != nil && m.Commits < o.DeltaCommits; {
		if !m.LastFull.IsZero() && sn.TimeMillis <= m.LastFull.UnixMilli() {
			break
		}
		if k := commit.Kind(sn.CommitKind); k == commit.Append || k == commit.Overwrite {
			m.Commits++
		}
		var err error
		if sn, err = st.snapshots.Get(ctx, sn.ID-1); err != nil {
			break // expired: what is known has to do
		}
	}
	return m, nil
}

// doKeyed does the steps of a job.
func (c *compaction) doKeyed(ctx context.Context, j *job, out *outcome, rows func(int64)) error {
	out.marks = map[string]*dv.Vector{}
	for i := range j.steps {
		s := &j.steps[i]
		move := func() {
			f := s.Upgrade
			out.replace([]*manifest.DataFile{f}, []*manifest.DataFile{compact.Upgraded(f, j.unit.Level)})
			out.upgraded++
		}
		if len(s.Sections) == 0 {
			move()
			continue
		}
		split := Split{Bucket: j.id.Bucket}
		var before []*manifest.DataFile
		for _, sec := range s.Sections {
			var runs [][]File
			for _, run := range sec {
				var files []File
				for _, i := range run {
					f := j.inputs[i].File
					files = append(files, c.file(f))
					before = append(before, f)
				}
				runs = append(runs, files)
			}
			split.Sections = append(split.Sections, runs)
		}
		after, err := c.rewrite(ctx, j, s, split, out, rows)
		switch {
		case err != nil:
			return err
		case s.Upgrade != nil:
			move()
		default:
			out.replace(before, after)
		}
	}
	return c.bucketVectors(ctx, j, out)
}

// looksUp reports whether compactions of level 0 look up what is in higher levels.
// Source: CoreOptions.needLookup.
func (st *state) looksUp() bool {
	o := st.options
	return o.Enum("changelog-producer", "none") == "lookup" || o.Flag("deletion-vectors.enabled", false) ||
		st.mergeEngine() == "first-row" || o.Flag("force-lookup", false)
}

// rewrite merges a step's sections, in several key ranges side by side when they
// are big, and returns the data files in key order.
func (c *compaction) rewrite(ctx context.Context, j *job, s *compact.Step, split Split, out *outcome, rows func(int64)) ([]*manifest.DataFile, error) {
	versions := s.Upgrade != nil || c.looksUp(j, s)
	zeros := slices.ContainsFunc(inputsOf(*s), func(i int) bool { return j.inputs[i].File.Level <= 0 })
	bounds, err := c.bounds(ctx, j, s)
	if err != nil {
		return nil, c.explain(ctx, err)
	}
	read := c.keep
	if j.unit.DropDelete {
		read = c.drop
	}
	parts := make([]*outcome, len(bounds)+1)
	files := make([][]*manifest.DataFile, len(parts))
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(compactParallel)
	for i := range parts {
		var from, to []byte
		if i > 0 {
			from = bounds[i-1]
		}
		if i < len(bounds) {
			to = bounds[i]
		}
		part := &outcome{job: j, marks: map[string]*dv.Vector{}}
		parts[i] = part
		sp := split
		sp.Sections = within(j, s, split.Sections, from, to)
		g.Go(func() error {
			need := mergeMemory(sp.Sections)
			if versions {
				need += versionsMemory(j.inputs) + mergeMemory([][][]File{j.rest})
			}
			free, err := c.charge(need)
			if err != nil {
				return err
			}
			defer free()
			im := &piece{dir: j.dir, from: from, to: to}
			if versions {
				im.read = c.all
				files[i], err = c.rewriteVersions(gctx, j, im, sp, s.Upgrade == nil, zeros, part, rows)
				return err
			}
			im.read = read
			r := newMergeReader(im, sp, ReadOptions{BatchRows: 1 << 16, Counters: &format.Counters{}})
			files[i], err = c.write(gctx, j, r, j.unit.Level, 0, part, rows)
			return err
		})
	}
	err = g.Wait()
	for _, p := range parts {
		out.made = append(out.made, p.made...) // deleted with the rest after an error
		out.written += p.written
		out.changes = append(out.changes, p.changes...)
		for name, v := range p.marks {
			if old := out.marks[name]; old != nil {
				v.Each(func(pos int64) bool { old.Add(pos); return true })
			} else {
				out.marks[name] = v
			}
		}
	}
	return slices.Concat(files...), err
}

// versionsMemory estimates what seeing every version holds beside the files: a
// batch of them, the rows made of it, and what waits to be written.
func versionsMemory(inputs []compact.Input) int64 {
	size, rows := int64(0), int64(1)
	for _, in := range inputs {
		size, rows = size+in.File.Size, rows+in.File.Rows
	}
	const batches, keys, inflated = 8, 8192, 4
	// A file of a few rows is mostly what is not rows.
	return max(size/rows, 16) * inflated * min(keys*batches, rows)
}

// within returns the sections that have keys in [from, to), nil = open.
func within(j *job, s *compact.Step, sections [][][]File, from, to []byte) [][][]File {
	if from == nil && to == nil {
		return sections
	}
	var out [][][]File
	for i, sec := range s.Sections {
		for _, x := range slices.Concat(sec...) {
			in := &j.inputs[x]
			if (from == nil || bytes.Compare(in.Max, from) >= 0) && (to == nil || bytes.Compare(in.Min, to) < 0) {
				out = append(out, sections[i])
				break
			}
		}
	}
	return out
}

// bounds cuts a big step into key ranges of about the same number of rows, so that
// a single big bucket keeps more than one core busy. Each range makes files of its
// own, of the target size where there is enough.
func (c *compaction) bounds(ctx context.Context, j *job, s *compact.Step) ([][]byte, error) {
	size := int64(0)
	levels := map[int32][]compact.Input{}
	zero := int32(0)
	for _, i := range inputsOf(*s) {
		in := j.inputs[i]
		size += in.File.Size
		l := in.File.Level
		if l <= 0 { // each a run of its own
			zero--
			l = zero
		}
		levels[l] = append(levels[l], in)
	}
	n := min(int64(min(cores.Count(), compactParallel)), size/(3*c.opts.Target))
	if n < 2 || !c.alone {
		return nil, nil
	}
	var run []compact.Input
	most := int64(0)
	for _, files := range levels {
		k := int64(0)
		for _, f := range files {
			k += f.File.Rows
		}
		if k > most {
			run, most = files, k
		}
	}
	slices.SortFunc(run, func(a, b compact.Input) int { return bytes.Compare(a.Min, b.Min) })
	var out [][]byte
	base, next := int64(0), int64(1)
	for _, f := range run {
		for next < n && next*most/n < base+f.File.Rows {
			file := c.file(f.File)
			k, err := c.p.sample(ctx, live{Entry: &j.like, part: j.part}, &file, next*most/n-base)
			if err != nil {
				return nil, err
			}
			if len(out) == 0 || bytes.Compare(out[len(out)-1], k) < 0 {
				out = append(out, k)
			}
			next++
		}
		base += f.File.Rows
	}
	return out, nil
}

// Settled is Maintenance's. Merge engines that fold keep in a lower level what has
// gone into higher ones only where compactions look up; without, each level holds
// what came to it. Deletion vectors stand for what a lower level's row has taken
// away in higher ones.
func (t *FileStore) Settled(ctx context.Context, branch string, to map[string]string) (bool, error) {
	st, err := t.state(ctx, snapshot.Ref{Branch: branch}, nil)
	if err != nil || !st.primaryKey() || st.snap == nil {
		return err == nil, err
	}
	was, err := compact.ParseOptions(st.options, true)
	if err != nil {
		return false, err
	}
	is, err := compact.ParseOptions(st.options.With(to), true)
	if err != nil {
		return false, err
	}
	oneLevel := is.DeletionFiles && !was.DeletionFiles || is.Lookup != was.Lookup && st.engine() != nil
	if was.DeletionFiles && !is.DeletionFiles {
		dvs, err := t.vectorsOf(ctx, st, nil)
		if err != nil || len(dvs) > 0 {
			return false, err
		}
	}
	ok := true
	if oneLevel {
		err = t.filesOf(ctx, st, func(all bucketFiles) {
			for id, files := range all {
				level := int32(0)
				for _, e := range files {
					if l := e.File.Level; l > 0 && id.Bucket != postponeBucket {
						ok = ok && (level == 0 || level == l)
						level = l
					}
				}
			}
		})
	}
	return ok, err
}

// sameRules reports whether the table's options are still those by which a
// compaction decides what it leaves behind; a change of them and a compaction must
// not pass each other.
func (c *compaction) sameRules(ctx context.Context) (bool, error) {
	now, err := c.p.schemas.Latest(ctx)
	if err != nil || now.ID == c.p.schema.ID {
		return err == nil, err
	}
	o, err := compact.ParseOptions(schema.Options(now.Options).With(c.o.Options), true)
	if err != nil {
		return false, err
	}
	was := c.opts
	return o.Lookup == was.Lookup && o.DeletionFiles == was.DeletionFiles && o.Changelog == was.Changelog, nil
}
