package table

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Fold prepares a transaction's changes for their commit. See Table.
//
// A later commit has to have higher sequence numbers in each bucket, else its
// rows would lose to those it replaces. In a key table the numbers are in the
// files: a bucket's files that are not above the state's highest number, or that
// are several, are merged into one and numbered anew. In an append table they
// are only in the manifest, and only those with buckets have an order; small
// files, one per statement, are joined there, too.
func (t *FileStore) Fold(ctx context.Context, c commit.Changes, at snapshot.Ref, m *mem.Account) (commit.Changes, []manifest.Entry, error) {
	st, err := t.state(ctx, at, nil)
	if err != nil {
		return c, nil, err
	}
	rule, err := st.bucketCount()
	if err != nil {
		return c, nil, err
	}
	f := &folder{t: t, st: st, c: &c, account: m, gone: map[int]bool{}}
	order := f.group()
	if len(order) == 0 {
		return c, nil, nil
	}
	old := &restored{}
	if rule > 0 || st.primaryKey() {
		if old, err = t.restore(ctx, st); err != nil {
			return c, nil, err
		}
	}
	// Since the files were written the partition may have got another number of
	// buckets.
	for i := range c.Files {
		e := &c.Files[i]
		if have := old.total[string(e.Partition)]; e.Kind == manifest.Add && e.TotalBuckets > 0 && have > 0 && have != e.TotalBuckets && !replaced(&c, e.Partition) {
			return c, nil, &commit.ConflictError{SnapshotID: st.snap.ID, Reason: fmt.Sprintf("a partition has %d buckets and would be written with %d", have, e.TotalBuckets)}
		}
	}
	out := c
	out.Files = slices.Clone(c.Files)
	for _, id := range order {
		if id.Bucket == postponeBucket {
			continue // its files are not merged, and their order is that of their making
		}
		first := old.next([]byte(id.Partition), id.Bucket)
		files := f.added[id]
		if st.primaryKey() {
			if len(files) > 1 || c.Files[files[0]].File.MinSequence < first {
				if mergetree.Removes(st.options) {
					err = f.mergeApart(ctx, files, first, f.merge)
				} else {
					err = f.replace(ctx, files, first, f.merge)
				}
			}
		} else if files = f.fresh(id); f.small(files) {
			err = f.replace(ctx, files, first, f.join)
		} else if rule > 0 {
			renumber(out.Files, files, first)
		}
		if err != nil {
			f.undo(ctx)
			return c, nil, err
		}
	}
	kept := make([]manifest.Entry, 0, len(out.Files))
	var dropped []manifest.Entry
	for i, e := range out.Files {
		if f.gone[i] {
			dropped = append(dropped, e)
		} else {
			kept = append(kept, e)
		}
	}
	out.Files = append(kept, f.written...)
	return out, dropped, nil
}

// folder is the work of one Fold.
type folder struct {
	t       *FileStore
	st      *state
	c       *commit.Changes
	account *mem.Account
	p       *planner

	added   map[commit.BucketID][]int // level-0 files that c adds, by place in c.Files
	removed map[commit.BucketID][]*manifest.DataFile
	gone    map[int]bool // of c.Files
	written []manifest.Entry
}

// Small files of an append table are worth joining when they are this many.
const (
	joinFiles = 8
	joinBytes = 8 << 20
)

// group finds the files of each bucket; buckets come in order of appearance.
func (f *folder) group() []commit.BucketID {
	f.added, f.removed = map[commit.BucketID][]int{}, map[commit.BucketID][]*manifest.DataFile{}
	var order []commit.BucketID
	for i := range f.c.Files {
		e := &f.c.Files[i]
		id := commit.BucketID{Partition: string(e.Partition), Bucket: e.Bucket}
		switch {
		case e.Kind == manifest.Delete:
			f.removed[id] = append(f.removed[id], e.File)
		case e.File.Level == 0:
			if f.added[id] == nil {
				order = append(order, id)
			}
			f.added[id] = append(f.added[id], i)
		}
	}
	return order
}

// fresh are the added files of a bucket of an append table in order, without those that
// stand for a file they rewrite: these keep that one's place.
func (f *folder) fresh(id commit.BucketID) []int {
	var out []int
	for _, i := range f.added[id] {
		m := f.c.Files[i].File
		if m.HasWriteCols { // rows that keep their ids
			continue
		}
		if !slices.ContainsFunc(f.removed[id], func(d *manifest.DataFile) bool {
			return d.MinSequence <= m.MinSequence && m.MaxSequence <= d.MaxSequence
		}) {
			out = append(out, i)
		}
	}
	if f.c.Files[f.added[id][0]].TotalBuckets > 0 {
		slices.SortStableFunc(out, func(a, b int) int {
			return cmp.Compare(f.c.Files[a].File.MinSequence, f.c.Files[b].File.MinSequence)
		})
	}
	return out
}

func (f *folder) small(files []int) bool {
	n := int64(0)
	for _, i := range files {
		n += f.c.Files[i].File.Size
	}
	return len(files) >= joinFiles && n/int64(len(files)) < joinBytes
}

// renumber gives files of an append bucket sequence numbers from first on, where
// theirs are not above it.
func renumber(files []manifest.Entry, which []int, first int64) {
	if !slices.ContainsFunc(which, func(i int) bool { return files[i].File.MinSequence < first }) {
		return
	}
	for _, i := range which {
		m := *files[i].File // shared with the caller's changes
		m.MinSequence, m.MaxSequence = first, first+m.Rows-1
		first += m.Rows
		files[i].File = &m
	}
}

// replace writes files of one bucket anew by write, numbered from first on.
func (f *folder) replace(ctx context.Context, which []int, first int64, write func(context.Context, string, []int, datafile.Writer, int64) error) error {
	if f.p == nil {
		var cols []int
		for i := range f.st.schema.Fields {
			cols = append(cols, i)
		}
		if f.st.primaryKey() {
			cols = append(cols, PseudoKind)
		}
		var err error
		at := snapshot.Ref{Branch: f.c.Branch, Schema: f.st.schema.ID + 1, Empty: true}
		if f.p, err = f.t.newPlanner(ctx, Scan{At: at, Columns: cols, Limit: -1}); err != nil {
			return err
		}
	}
	one := f.c.Files[which[0]]
	part, err := f.p.partitionOf(one.Partition)
	if err != nil {
		return err
	}
	dir := f.p.bucketDir(part, one.Bucket)
	ft, err := f.t.env.writeFormat()
	if err != nil {
		return err
	}
	w, err := datafile.New(datafile.Options{
		IO: f.t.env.IO, Dir: dir + "/", Format: ft, Schema: f.st.schema, Table: f.st.options, Account: f.account, FirstSequence: first,
	})
	if err != nil {
		return err
	}
	for _, i := range which {
		if err := f.p.check(&File{Meta: f.c.Files[i].File}); err != nil {
			return err
		}
	}
	var files []*manifest.DataFile
	if err = write(ctx, dir, which, w, first); err == nil {
		files, err = w.Close(ctx)
	}
	if err != nil {
		_ = w.Abort(ctx) // the error says why
		return err
	}
	for _, m := range files {
		f.written = append(f.written, manifest.Entry{Kind: manifest.Add, Partition: one.Partition, Bucket: one.Bucket, TotalBuckets: one.TotalBuckets, File: m})
	}
	for _, i := range which {
		f.gone[i] = true
	}
	return nil
}

// undo deletes what was written before an error.
func (f *folder) undo(ctx context.Context) {
	_ = f.t.Discard(ctx, commit.Changes{Branch: f.c.Branch, Files: f.written}) // what stays is an orphan
}

// merge writes the newest rows of files of a key table, retractions included.
func (f *folder) merge(ctx context.Context, dir string, which []int, w datafile.Writer, first int64) error {
	rd := &mergeReader{plan: f.p.read, dir: dir, c: &format.Counters{}, im: &piece{read: f.p.read, dir: dir}}
	defer rd.Close() //nolint:errcheck // a reader
	section := make([][]File, len(which))
	for k, i := range which {
		section[k] = []File{{Meta: f.c.Files[i].File}}
	}
	rd.split.Sections = [][][]File{section}
	if err := rd.open(ctx); err != nil {
		return err
	}
	width := len(f.st.schema.Fields)
	var seq []int64
	var kinds []int8
	for {
		cols, n, err := rd.m.Next(ctx)
		if err != nil || n == 0 {
			return err
		}
		seq, kinds = seq[:0], kinds[:0]
		for _, k := range vec.ViewOf[int16](cols[width]).V {
			seq, kinds = append(seq, first), append(kinds, int8(k))
			first++
		}
		if err := w.Write(ctx, cols[:width], n, seq, kinds); err != nil {
			return err
		}
	}
}

// join writes files of an append table one behind the other.
func (f *folder) join(ctx context.Context, dir string, which []int, w datafile.Writer, _ int64) error {
	for _, i := range which {
		err := copyRows(ctx, f.p, dir, f.c.Files[i].File, func(int64, int) ([]uint16, int) { return nil, -1 }, func(cols []arrow.Array, n int) error {
			return w.Write(ctx, cols, n, nil, nil)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
