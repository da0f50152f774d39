package table

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/google/uuid"
	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/fileindex"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// IndexOptions say which files get the indexes that the table's options ask for.
type IndexOptions struct {
	Branch string
	// Partitions are BinaryRow images; nil = all.
	Partitions [][]byte
	// Anew makes also the indexes that the files have: after another fpp, say.
	Anew    bool
	Account *mem.Account
	// Progress, Throttle and Publish are as in CompactOptions; progress is in rows.
	Progress func(done, total int64)
	Throttle func(ctx context.Context, bytes int64) error
	Publish  func(ctx context.Context) (done func(), err error)
}

// IndexReport says what was done.
type IndexReport struct {
	SnapshotID int64 // of the last commit, 0 = nothing was to be done
	Files      int   // whose indexes have changed
	Partitions int   // that they are in
	Rows       int64 // that were read
	Bytes      int64 // of the new containers
	LostRaces  int   // files that others replaced meanwhile
	Skipped    int   // files in a format that is not read here
}

// indexBatch is how many files are published at a time.
const indexBatch = 500

// indexParallel is how many files are read side by side.
const indexParallel = 2

// RewriteIndexes gives existing files the indexes that the table's options ask for and
// they lack, and takes from them those that are no longer asked for. Rows and data files
// stay as they are; an entry is replaced by one that differs in its indexes, in COMPACT
// snapshots as in Java (FileIndexProcessor.java, RewriteFileIndexSink.java). Java makes
// all indexes anew each time. A file that somebody else replaced meanwhile is left to
// who made the new one, which has its indexes from the start.
//
// A container that cannot be read is made anew. An index file has a name of its own each
// time: another process may be at the same file, and names are what caches go by.
func (t *FileStore) RewriteIndexes(ctx context.Context, o IndexOptions) (*IndexReport, error) {
	x := &indexing{t: t, o: o, parts: map[string]bool{}}
	for round := 1; ; round++ {
		lost := x.report.LostRaces
		if err := x.round(ctx); err != nil {
			return &x.report, err
		}
		// Who made the new files may not have known of the indexes.
		if x.report.LostRaces == lost || round == indexRounds {
			x.report.Partitions = len(x.parts)
			return &x.report, nil
		}
		x.o.Anew = false
	}
}

// indexRounds is how often files are looked for that others have made meanwhile.
const indexRounds = 3

// round goes through the files of the newest state.
func (x *indexing) round(ctx context.Context) error {
	st, err := x.t.state(ctx, snapshot.Ref{Branch: x.o.Branch}, nil)
	if err != nil || st.snap == nil {
		return err
	}
	if err := st.refuseWrite(); err != nil {
		return err
	}
	x.st, x.schemas = st, map[int64]*indexSchema{}
	if x.config, err = fileindex.Parse(st.options, st.schema.Fields); err != nil {
		return err
	}
	if x.places, err = x.t.newPlaces(st.schema); err != nil {
		return err
	}
	work, err := x.plan(ctx)
	if err != nil {
		return err
	}
	for len(work) > 0 {
		n := min(indexBatch, len(work))
		if err := x.batch(ctx, work[:n]); err != nil {
			return err
		}
		work = work[n:]
	}
	return nil
}

// indexing is one call of RewriteIndexes.
type indexing struct {
	t *FileStore
	o IndexOptions

	// Of the round.
	st     *state
	config *fileindex.Config // nil = no indexes
	places *places

	mu      sync.Mutex // guards what is below
	schemas map[int64]*indexSchema
	done    int64 // rows
	total   int64
	parts   map[string]bool
	report  IndexReport
}

// indexSchema is what is asked of the files of one schema.
type indexSchema struct {
	schema *schema.Table
	config *fileindex.Config // nil = nothing
	read   *planner          // reads cols
	cols   []int             // fields that are indexed
}

// indexed is a file and what becomes of it.
type indexed struct {
	old  *manifest.Entry
	dir  string
	is   *indexSchema
	have []fileindex.Existing
	bad  bool // the container cannot be read
	new  *manifest.DataFile
}

// plan finds the files whose indexes are not those that are asked for.
func (x *indexing) plan(ctx context.Context) ([]*indexed, error) {
	live, err := x.st.publisher.Live(ctx, x.st.snap)
	if err != nil {
		return nil, x.t.explain(ctx, x.st, snapshot.Ref{Branch: x.o.Branch}, err)
	}
	var wanted map[string]bool
	if x.o.Partitions != nil {
		wanted = map[string]bool{}
		for _, p := range x.o.Partitions {
			wanted[partitionName(p)] = true
		}
	}
	var all []*indexed
	for _, e := range live {
		if e.Bucket == postponeBucket || wanted != nil && !wanted[partitionName(e.Partition)] {
			continue
		}
		is, err := x.schemaOf(ctx, e.File.SchemaID)
		if err != nil {
			return nil, err
		}
		if is.config == nil && len(e.File.EmbeddedIndex) == 0 && !slices.ContainsFunc(e.File.ExtraFiles, isIndexFile) {
			continue
		}
		f := &indexed{old: e, is: is}
		if f.dir, err = x.places.dir(e.Partition, e.Bucket); err != nil {
			return nil, err
		}
		all = append(all, f)
	}
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(4 * indexParallel)
	for _, f := range all {
		g.Go(func() error {
			var err error
			if f.have, err = x.existing(gctx, f); err != nil && gctx.Err() != nil {
				return context.Cause(gctx)
			}
			f.bad = err != nil
			return nil
		})
	}
	if err := g.Wait(); err != nil {
		return nil, err
	}
	var out []*indexed
	for _, f := range all {
		if x.due(f) {
			out = append(out, f)
			x.total += f.old.File.Rows
		}
	}
	return out, nil
}

// schemaOf returns what is asked of files of a schema.
func (x *indexing) schemaOf(ctx context.Context, id int64) (*indexSchema, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if is := x.schemas[id]; is != nil {
		return is, nil
	}
	is := &indexSchema{schema: x.st.schema}
	var err error
	if id != x.st.schema.ID {
		if is.schema, err = x.t.schemaOf(ctx, x.st.branch, id); err != nil {
			return nil, err
		}
	}
	is.config = x.config.For(x.st.schema.Fields, is.schema.Fields)
	if is.config != nil {
		for i := range is.config.Columns {
			if c := is.config.Columns[i].Field; !slices.Contains(is.cols, c) {
				is.cols = append(is.cols, c)
			}
		}
		slices.Sort(is.cols)
		// Read as the file's own schema, values are as they were written.
		at := snapshot.Ref{Branch: x.o.Branch, Schema: id + 1, Empty: true}
		if is.read, err = x.t.newPlanner(ctx, Scan{At: at, Columns: is.cols, Limit: -1}); err != nil {
			return nil, err
		}
	}
	x.schemas[id] = is
	return is, nil
}

// due reports whether a file's indexes are to be changed.
func (x *indexing) due(f *indexed) bool {
	if f.bad || x.o.Anew && f.is.config != nil {
		return true
	}
	n := 0
	if f.is.config != nil {
		for i := range f.is.config.Columns {
			if !f.has(&f.is.config.Columns[i]) {
				return true
			}
			n++
		}
	}
	return n != len(f.have)
}

func (f *indexed) find(c *fileindex.Column) int {
	return slices.IndexFunc(f.have, func(h fileindex.Existing) bool { return h.Column == c.Container() && h.Kind == c.Kind.Name() })
}

func (f *indexed) has(c *fileindex.Column) bool { return f.find(c) >= 0 }

func isIndexFile(name string) bool { return strings.HasSuffix(name, fileindex.Suffix) }

// containerPath returns the path of a file's container, "" when it lies in the entry or
// there is none.
func (f *indexed) containerPath() string {
	ps := dataPaths(f.dir, f.old.File)
	for i, n := range f.old.File.ExtraFiles {
		if isIndexFile(n) {
			return ps[1+i]
		}
	}
	return ""
}

// existing lists the indexes that a file has.
func (x *indexing) existing(ctx context.Context, f *indexed) (have []fileindex.Existing, err error) {
	err = x.open(ctx, f, func(c *index.Container) error {
		have, err = fileindex.List(c, false)
		return err
	})
	return have, err
}

// open calls use with a file's container, if it has one.
func (x *indexing) open(ctx context.Context, f *indexed, use func(*index.Container) error) error {
	var src index.Source = index.BytesSource(f.old.File.EmbeddedIndex)
	if p := f.containerPath(); p != "" {
		in, err := x.t.env.IO.Open(ctx, p)
		if err != nil {
			return err
		}
		defer in.Close() //nolint:errcheck // reading
		src = in
	} else if src.Size() == 0 {
		return nil
	}
	c, err := index.OpenContainer(src)
	if err != nil {
		return err
	}
	return use(c)
}

// batch makes the indexes of some files and publishes them.
func (x *indexing) batch(ctx context.Context, work []*indexed) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(indexParallel)
	var missed []*indexed
	var miss error
	for _, f := range work {
		g.Go(func() error {
			err := x.make(gctx, f)
			var missing *fileio.MissingError
			var cannot *fileio.UnsupportedError
			x.mu.Lock()
			defer x.mu.Unlock()
			switch {
			case errors.As(err, &cannot):
				x.report.Skipped++
				err = nil
			case errors.As(err, &missing) && gctx.Err() == nil:
				missed, miss = append(missed, f), err
				err = nil
			}
			x.done += f.old.File.Rows
			if x.o.Progress != nil {
				x.o.Progress(x.done, x.total)
			}
			return err
		})
	}
	err := g.Wait()
	if err == nil && len(missed) > 0 {
		// Replaced, and expired since, or lost.
		if left, serr := x.now(ctx, missed); serr != nil {
			err = serr
		} else if len(left) > 0 {
			err = miss
		}
		x.report.LostRaces += len(missed)
	}
	work = slices.DeleteFunc(slices.Clone(work), func(f *indexed) bool { return f.new == nil })
	if err != nil {
		x.discard(ctx, work)
		return err
	}
	if len(work) == 0 {
		return nil
	}
	return x.publish(ctx, work)
}

// make makes the new entry of a file; new stays nil when it would be as the old.
func (x *indexing) make(ctx context.Context, f *indexed) error {
	var out []index.Index
	if c := f.is.config; c != nil {
		if !f.bad && !x.o.Anew {
			if err := x.open(ctx, f, func(c *index.Container) (err error) {
				f.have, err = fileindex.List(c, true)
				return err
			}); err != nil {
				f.bad, f.have = true, nil
			}
		}
		lacks := c.Only(func(k *fileindex.Column) bool { return f.bad || x.o.Anew || !f.has(k) })
		var fresh []index.Index
		if lacks != nil {
			var err error
			if fresh, err = x.build(ctx, f, lacks); err != nil {
				return err
			}
		}
		for i := range c.Columns {
			k := &c.Columns[i]
			at := slices.IndexFunc(fresh, func(n index.Index) bool { return n.Column == k.Container() && n.Kind == k.Kind.Name() })
			switch {
			case at >= 0:
				out = append(out, fresh[at])
			case !f.bad && !x.o.Anew && f.has(k):
				out = append(out, f.have[f.find(k)].Index)
			}
		}
		if !f.bad && !x.o.Anew && len(fresh) == 0 && len(out) == len(f.have) {
			return nil // what it lacks cannot be made
		}
	}
	return x.describe(ctx, f, out)
}

// build reads the columns of a file and makes indexes over all rows in it, deleted ones
// and retractions too: positions are those of the file.
func (x *indexing) build(ctx context.Context, f *indexed, c *fileindex.Config) (out []index.Index, err error) {
	w, err := c.NewWriter()
	if err != nil {
		return nil, err
	}
	fields := f.is.schema.Fields
	all := make([]arrow.Array, len(fields))
	held := int64(0)
	defer func() { x.o.Account.Shrink(held) }()
	grow := func(n int64) error {
		if n <= held {
			return nil
		}
		if err := x.o.Account.Grow(n - held); err != nil {
			return err
		}
		held = n
		return nil
	}
	reading := readMemory(f.old.File)
	if err := grow(reading); err != nil {
		return nil, err
	}
	x.mu.Lock()
	err = f.is.read.check(&File{Meta: f.old.File})
	x.mu.Unlock()
	if err != nil {
		return nil, err
	}
	rows := int64(0)
	err = copyRows(ctx, f.is.read, f.dir, f.old.File, func(_ int64, n int) ([]uint16, int) { return nil, -1 }, func(cols []arrow.Array, n int) error {
		for i, a := range cols {
			all[f.is.cols[i]] = a
		}
		if err := w.Append(all, n); err != nil {
			return err
		}
		rows += int64(n)
		return grow(reading + w.Bytes())
	})
	if err != nil {
		return nil, err
	}
	if rows != f.old.File.Rows {
		return nil, &fileio.CorruptionError{Path: f.dir + "/" + f.old.File.Name, Offset: -1, Reason: fmt.Sprintf("%d rows where its manifest entry says %d", rows, f.old.File.Rows)}
	}
	x.mu.Lock()
	x.report.Rows += rows
	x.mu.Unlock()
	return w.Indexes()
}

// describe writes a container and makes the entry that names it.
func (x *indexing) describe(ctx context.Context, f *indexed, out []index.Index) error {
	m := *f.old.File
	m.EmbeddedIndex = nil
	m.ExtraFiles = slices.DeleteFunc(slices.Clone(m.ExtraFiles), isIndexFile)
	if len(out) > 0 {
		data, err := index.WriteContainer(out)
		if err != nil {
			return err
		}
		if x.o.Throttle != nil {
			if err := x.o.Throttle(ctx, int64(len(data))); err != nil {
				return err
			}
		}
		if int64(len(data)) <= f.is.config.Threshold {
			m.EmbeddedIndex = data
		} else {
			id := uuid.New()
			name := m.Name + "-" + hex.EncodeToString(id[:8]) + fileindex.Suffix
			dir := f.dir
			if m.ExternalPath != "" {
				dir = path.Dir(m.ExternalPath)
			}
			if err := datafile.CreateFile(ctx, x.t.env.IO, dir+"/"+name, data); err != nil {
				return err
			}
			m.ExtraFiles = append(m.ExtraFiles, name)
		}
		x.mu.Lock()
		x.report.Bytes += int64(len(data))
		x.mu.Unlock()
	}
	if id := (&manifest.Entry{Partition: f.old.Partition, Bucket: f.old.Bucket, File: &m}).Identity(); id == f.old.Identity() {
		return nil
	}
	f.new = &m
	return nil
}

// changes are the entries that replace those of work.
func (x *indexing) changes(work []*indexed) commit.Changes {
	c := commit.Changes{Kind: commit.Compact, Branch: x.o.Branch, Identifier: math.MaxInt64, Base: x.st.snap.ID}
	for _, f := range work {
		gone, made := *f.old, *f.old
		gone.Kind, made.Kind, made.File = manifest.Delete, manifest.Add, f.new
		c.Files = append(c.Files, gone, made)
	}
	return c
}

// discard deletes the index files of what is not published. What cannot be deleted is
// an orphan.
func (x *indexing) discard(ctx context.Context, work []*indexed) {
	if len(work) > 0 {
		_ = x.t.Discard(context.WithoutCancel(ctx), x.changes(work))
	}
}

// indexTries is how often a commit is tried with the files that are still there.
const indexTries = 5

// publish commits new entries. Files that others replaced meanwhile are left out.
func (x *indexing) publish(ctx context.Context, work []*indexed) error {
	if x.o.Publish != nil {
		done, err := x.o.Publish(ctx)
		if err != nil {
			x.discard(ctx, work)
			return err
		}
		defer done()
	}
	for try := 1; ; try++ {
		id, err := x.t.Commit(ctx, x.changes(work))
		var lost *commit.ConflictError
		var unknown *commit.UnknownOutcomeError
		switch {
		case err == nil:
			x.report.SnapshotID = id
			x.report.Files += len(work)
			for _, f := range work {
				x.parts[partitionName(f.old.Partition)] = true
			}
			return nil
		case errors.As(err, &unknown):
			return err
		case !errors.As(err, &lost):
			x.discard(ctx, work)
			return err
		}
		var still []*indexed
		if err = nil; try < indexTries {
			still, err = x.now(ctx, work)
		}
		if err != nil {
			x.discard(ctx, work)
			return err
		}
		var gone []*indexed
		for _, f := range work {
			if !slices.Contains(still, f) {
				gone = append(gone, f)
			}
		}
		x.discard(ctx, gone)
		x.report.LostRaces += len(gone)
		if work = still; len(work) == 0 {
			return nil
		}
	}
}

// now returns the files of work that the newest state holds as they were.
func (x *indexing) now(ctx context.Context, work []*indexed) ([]*indexed, error) {
	st, err := x.t.state(ctx, snapshot.Ref{Branch: x.o.Branch}, nil)
	if err != nil || st.snap == nil {
		return nil, err
	}
	live, err := st.publisher.Live(ctx, st.snap)
	if err != nil {
		return nil, err
	}
	now := make(map[manifest.Identity]bool, len(live))
	for _, e := range live {
		now[e.Identity()] = true
	}
	var out []*indexed
	for _, f := range work {
		if now[f.old.Identity()] {
			out = append(out, f)
		}
	}
	return out, nil
}
