package table

import (
	"context"
	"errors"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// A compaction goes
//
//	newest snapshot -> files by bucket -> units (compact.Pick) -> jobs, two at a
//	time: move files, or merge and write them -> one COMPACT snapshot for all jobs
//	that are done, or several when they are big
//
// Nothing is seen of it before its snapshot. The snapshot deletes exactly the
// files that were read, so a writer who removed one of them meanwhile wins: the
// commit is refused, the outputs are deleted, and the bucket is picked again the
// next time. Jobs that are published together share that fate, so a refused
// commit is tried again job by job.

// compactParallel is how many jobs run side by side.
const compactParallel = 2

// compactBatch is after how many bytes of input what is done is published
// without waiting for the rest.
const compactBatch = 1 << 30

// level0Tries is how often a compaction of level 0 that lost a race is tried.
const level0Tries = 20

// Compact picks and rewrites files of the buckets named and publishes the result.
func (t *FileStore) Compact(ctx context.Context, o CompactOptions) (*CompactReport, error) {
	var report CompactReport
	if o.Full && o.Buckets == nil {
		settled, err := t.settle(ctx, o)
		if err != nil {
			return nil, err
		}
		report = *settled
	}
	ids, err := t.bucketsNamed(ctx, o)
	if err != nil {
		return nil, err
	}
	wait := o.Full || o.Level0 || o.DropVectors
	claimed, give, err := t.claims.take(ctx, t.branch(o.Branch).name, ids, wait)
	if err != nil {
		return nil, err
	}
	defer give()
	for try := 1; ; try++ {
		c, err := t.newCompaction(ctx, o)
		if err != nil {
			return nil, err
		}
		c.report = report
		jobs, err := c.jobs(ctx, claimed)
		if err != nil {
			return nil, err
		}
		err = c.run(ctx, jobs)
		if err != nil || !o.Level0 || c.report.LostRaces == 0 || try == level0Tries {
			return &c.report, err
		}
		report = c.report
		report.LostRaces = 0 // made up for
	}
}

// compaction is one call of Compact.
type compaction struct {
	t       *FileStore
	o       CompactOptions
	p       *planner
	opts    *compact.Options
	keyed   bool
	keep    *readPlan // rows of every kind
	drop    *readPlan // no retractions
	all     *readPlan // the table's columns only, for those who see every version
	expire  *mergetree.Expire
	alone   bool        // there is one job: it may have every core
	cluster *clustering // nil = rows keep their order
	scan    Scan
	dvs     map[string]vector
	refs    map[string]*manifest.DeletionVectorRef
	done    atomic.Int64
	total   int64
	batch   int64      // bytes of inputs after which finished jobs are published
	publish sync.Mutex // held while committing

	mu      sync.Mutex // guards all below
	report  CompactReport
	pending []*outcome
	bytes   int64 // of pending's inputs
}

// job is what is done to one bucket, or to one pack of an append table.
type job struct {
	id           commit.BucketID
	part         *partition
	dir          string
	totalBuckets int32
	entries      map[*manifest.DataFile]manifest.Entry // of the inputs
	rows, bytes  int64                                 // that are rewritten

	unit   *compact.Unit // primary key
	inputs []compact.Input
	steps  []compact.Step
	rest   [][]File       // sorted runs above the unit's, newest first
	files  []string       // all of the bucket's
	like   manifest.Entry // of the bucket, for new entries

	pack  []compact.AppendFile // append
	level int32                // of the output of clustering
}

// outcome is a finished job.
type outcome struct {
	job      *job
	files    []manifest.Entry
	changes  []manifest.Entry      // changelog files
	marks    map[string]*dv.Vector // rows of higher levels that are deleted now
	indexes  []manifest.IndexEntry
	made     []string // paths of new files
	before   int
	after    int
	upgraded int
	rowsIn   int64
	rowsOut  int64
	written  int64
	live     []string // names of input files, which must not have changed
}

func (t *FileStore) newCompaction(ctx context.Context, o CompactOptions) (*compaction, error) {
	at, err := t.Resolve(ctx, snapshot.Ref{Branch: o.Branch})
	if err != nil {
		return nil, err
	}
	c := &compaction{t: t, o: o, batch: compactBatch, scan: Scan{At: at, Limit: -1}}
	st, err := t.state(ctx, at, o.Options)
	if err != nil {
		return nil, err
	}
	c.keyed = st.primaryKey()
	if err := compact.Refuse(st.options, c.keyed); err != nil {
		return nil, err
	}
	if c.opts, err = compact.ParseOptions(st.options, c.keyed); err != nil {
		return nil, err
	}
	if c.cluster, err = newClustering(st, &o); err != nil {
		return nil, err
	}
	if c.cluster != nil && st.tracksRows() {
		return nil, &fileio.UnsupportedError{Feature: "clustering of tables with table option row-tracking.enabled"}
	}
	for i, f := range st.schema.Fields {
		if name := unwritable(f.Type); name != "" {
			return nil, &fileio.UnsupportedError{Feature: "compaction of tables with a " + name + " column (" + f.Name + ")"}
		}
		c.scan.Columns = append(c.scan.Columns, i)
	}
	if c.keyed {
		c.scan.Columns = append(c.scan.Columns, PseudoSequence, PseudoKind)
	} else if st.tracksRows() {
		c.scan.Columns = st.copied(true)
	}
	if c.p, err = t.newPlanner(ctx, c.scan); err != nil {
		return nil, err
	}
	keep := *c.p.read
	if c.keyed {
		if keep.expire, err = st.expiry(time.Now()); err != nil {
			return nil, err
		}
	}
	drop, all := keep, keep
	drop.kinds = false
	if c.keyed {
		n := len(st.schema.Fields)
		all.columns, all.fields = all.columns[:n:n], all.fields[:n:n]
	}
	c.keep, c.drop, c.all, c.expire = &keep, &drop, &all, keep.expire
	if c.refs, err = c.p.vectors(ctx); err != nil {
		return nil, err
	}
	c.dvs, err = t.vectorsOf(ctx, c.p.state, nil)
	return c, err
}

// jobs finds what there is to do in the buckets claimed.
func (c *compaction) jobs(ctx context.Context, claimed map[commit.BucketID]bool) ([]*job, error) {
	var ids []commit.BucketID
	buckets := map[commit.BucketID][]manifest.Entry{}
	err := c.t.filesOf(ctx, c.p.state, func(all bucketFiles) {
		for id, files := range all {
			if !claimed[id] {
				continue
			}
			ids = append(ids, id)
			for _, e := range files {
				buckets[id] = append(buckets[id], e)
			}
		}
	})
	if err != nil {
		return nil, err
	}
	slices.SortFunc(ids, compareBuckets)
	var out []*job
	for _, id := range ids {
		if id.Bucket == postponeBucket {
			continue // see settle
		}
		js, err := c.bucketJobs(ctx, id, buckets[id])
		if err != nil {
			return nil, err
		}
		out = append(out, js...)
	}
	for _, j := range out {
		c.total += j.rows
	}
	c.alone = len(out) == 1
	return out, nil
}

// bucketJobs picks what is due in one bucket.
func (c *compaction) bucketJobs(ctx context.Context, id commit.BucketID, entries []manifest.Entry) ([]*job, error) {
	part, err := c.p.partitionOf([]byte(id.Partition))
	if err != nil {
		return nil, err
	}
	files := make([]*manifest.DataFile, len(entries))
	by := map[*manifest.DataFile]manifest.Entry{}
	for i, e := range entries {
		files[i] = e.File
		by[e.File] = e
	}
	newJob := func() *job {
		return &job{id: id, part: part, dir: c.p.bucketDir(part, id.Bucket), totalBuckets: entries[0].TotalBuckets, entries: by}
	}
	if c.p.tracksRows() {
		// A row whose id is lost stays where it is: copied it would get another one.
		entries = slices.DeleteFunc(slices.Clone(entries), func(e manifest.Entry) bool { return !hasIDs(e.File) })
		if files = files[:0]; len(entries) == 0 {
			return nil, nil
		}
		for _, e := range entries {
			files = append(files, e.File)
		}
	}
	if c.keyed {
		j := newJob()
		ok, err := c.keyedJob(ctx, j, files)
		if !ok || err != nil {
			return nil, err
		}
		return []*job{j}, nil
	}
	if c.cluster != nil {
		return c.clusterJobs(ctx, files, newJob)
	}
	var out []*job
	for _, pack := range pickAppend(appendFiles(files, c.dvs), c.opts, c.p.state, c.o.Full) {
		j := newJob()
		j.pack = slices.Clone(pack)
		compact.Order(j.pack)
		for _, f := range j.pack {
			if err := c.p.check(&File{Meta: f.File}); err != nil {
				return nil, err
			}
			j.rows += f.File.Rows
			j.bytes += f.File.Size
		}
		out = append(out, j)
	}
	return out, nil
}

// inputsOf returns the inputs that a step rewrites.
func inputsOf(s compact.Step) []int {
	var out []int
	for _, sec := range s.Sections {
		for _, run := range sec {
			out = append(out, run...)
		}
	}
	return out
}

// run does the jobs and publishes them. A job that fails does not keep the others
// from being published.
func (c *compaction) run(ctx context.Context, jobs []*job) error {
	var g errgroup.Group
	g.SetLimit(compactParallel)
	var mu sync.Mutex
	var failed []error
	fail := func(err error) {
		mu.Lock()
		defer mu.Unlock()
		if err != nil && len(failed) < 3 {
			failed = append(failed, err)
		}
	}
	for _, j := range jobs {
		if ctx.Err() != nil {
			break
		}
		g.Go(func() error {
			out, err := c.do(ctx, j)
			switch {
			case err == nil:
				fail(c.add(ctx, out))
			case c.lost(ctx, j, err):
				c.mu.Lock()
				c.report.LostRaces++
				c.mu.Unlock()
			default:
				fail(err)
			}
			return nil
		})
	}
	_ = g.Wait() // errors are in failed
	if ctx.Err() != nil {
		c.remove(ctx, c.pending...)
		return context.Cause(ctx)
	}
	fail(c.flush(ctx))
	return errors.Join(failed...)
}

// add takes up a finished job and publishes when there is much of it.
func (c *compaction) add(ctx context.Context, out *outcome) error {
	c.mu.Lock()
	c.pending = append(c.pending, out)
	c.bytes += out.job.bytes
	full := c.bytes >= c.batch
	c.mu.Unlock()
	if !full {
		return nil
	}
	return c.flush(ctx)
}

// flush publishes the finished jobs.
func (c *compaction) flush(ctx context.Context) error {
	c.publish.Lock()
	defer c.publish.Unlock()
	c.mu.Lock()
	outs := c.pending
	c.pending, c.bytes = nil, 0
	c.mu.Unlock()
	if len(outs) == 0 {
		return nil
	}
	conflict, err := c.commit(ctx, outs)
	if !conflict || len(outs) == 1 {
		return err
	}
	var errs []error
	for i := range outs {
		if _, err := c.commit(ctx, outs[i:i+1]); err != nil {
			errs = append(errs, err)
			c.remove(ctx, outs[i+1:]...)
			break
		}
	}
	return errors.Join(errs...)
}

// commit publishes some jobs as one snapshot. A conflict of a single job is a
// lost race; that of several is told to the caller. In every other case the
// outputs are either live or gone afterwards, or the outcome is unknown.
func (c *compaction) commit(ctx context.Context, outs []*outcome) (conflict bool, err error) {
	ch := commit.Changes{Kind: commit.Compact, Branch: c.o.Branch, Identifier: math.MaxInt64, Base: c.p.snap.ID}
	for _, o := range outs {
		ch.Files = append(ch.Files, o.files...)
		ch.Changelog = append(ch.Changelog, o.changes...)
		ch.Indexes = append(ch.Indexes, o.indexes...)
		if !c.keyed || c.opts.DeletionFiles || len(c.dvs) > 0 {
			if ch.Reads == nil {
				ch.Reads = &commit.ReadSet{}
			}
			ch.Reads.Files = append(ch.Reads.Files, o.live...)
		}
	}
	if ch.Reads != nil {
		slices.Sort(ch.Reads.Files)
	}
	if c.o.Publish != nil {
		done, err := c.o.Publish(ctx)
		if err != nil {
			c.remove(ctx, outs...)
			return false, err
		}
		defer done()
	}
	if c.keyed {
		same, err := c.sameRules(ctx)
		if err != nil {
			c.remove(ctx, outs...)
			return false, err
		}
		if !same {
			c.remove(ctx, outs...)
			c.mu.Lock()
			c.report.LostRaces += len(outs)
			c.mu.Unlock()
			return false, nil
		}
	}
	id, err := c.t.Commit(ctx, ch)
	var lost *commit.ConflictError
	var unknown *commit.UnknownOutcomeError
	switch {
	case err == nil:
		c.count(id, outs)
		c.forget(&ch)
		return false, nil
	case errors.As(err, &lost) && len(outs) > 1:
		return true, nil
	case errors.As(err, &lost):
		c.remove(ctx, outs...)
		c.mu.Lock()
		c.report.LostRaces++
		c.mu.Unlock()
		return true, nil
	case errors.As(err, &unknown):
		return false, err
	}
	c.remove(ctx, outs...)
	return false, err
}

// forget drops what is cached of the files that a compaction has replaced: in a
// table that is compacted often it would be most of the cache.
func (c *compaction) forget(ch *commit.Changes) {
	stay := map[string]bool{}
	for i := range ch.Files {
		if ch.Files[i].Kind == manifest.Add {
			stay[ch.Files[i].File.Name] = true
		}
	}
	var paths []string
	for i := range ch.Files {
		e := &ch.Files[i]
		if e.Kind != manifest.Delete || stay[e.File.Name] {
			continue
		}
		if dir, err := c.t.bucketPath(c.p.schema, e.Partition, e.Bucket); err == nil {
			paths = append(paths, dataPaths(dir, e.File)...)
		}
	}
	c.t.env.forget(paths)
}

func (c *compaction) count(id int64, outs []*outcome) {
	c.mu.Lock()
	defer c.mu.Unlock()
	r := &c.report
	r.SnapshotID = id
	for _, o := range outs {
		r.Buckets++
		r.FilesBefore += o.before
		r.FilesAfter += o.after
		r.RowsBefore += o.rowsIn
		r.RowsAfter += o.rowsOut
		r.BytesRead += o.job.bytes
		r.BytesWritten += o.written
		r.Upgraded += o.upgraded
		r.ChangelogFiles += len(o.changes)
		for i := range o.changes {
			r.ChangelogRows += o.changes[i].File.Rows
		}
	}
}

// remove deletes the outputs of jobs that are not published, also when ctx is
// done. What cannot be deleted is an orphan.
func (c *compaction) remove(ctx context.Context, outs ...*outcome) {
	ctx = context.WithoutCancel(ctx)
	for _, o := range outs {
		_ = c.t.env.IO.Delete(ctx, o.made...) // an orphan at worst
	}
}

// lost reports whether a job failed because what it reads is no longer part of
// the table: a newer snapshot dropped it and expired files are deleted.
func (c *compaction) lost(ctx context.Context, j *job, err error) bool {
	var missing *fileio.MissingError
	if ctx.Err() != nil || !errors.As(err, &missing) && !errors.Is(err, snapshot.ErrNotFound) {
		return false
	}
	st, err := c.t.state(ctx, snapshot.Ref{Branch: c.o.Branch}, nil)
	if err != nil {
		return false
	}
	gone := false
	err = c.t.filesOf(ctx, st, func(all bucketFiles) {
		live := all[j.id]
		check := func(f *manifest.DataFile) {
			if _, ok := live[fileID{f.Name, f.ExternalPath, f.Level}]; !ok {
				gone = true
			}
		}
		for _, in := range j.inputs {
			check(in.File)
		}
		for _, f := range j.pack {
			check(f.File)
		}
	})
	return err == nil && gone
}
