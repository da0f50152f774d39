package table

import (
	"context"
	"slices"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Fold prepares a transaction's changes for their commit. See Table.
//
// A later commit has to have higher sequence numbers in each bucket, else its
// rows would lose to those it replaces. In a key table the numbers are in the
// files: a bucket's files that are not above the state's highest number, or that
// are several, are merged into one and numbered anew. In an append table with
// buckets they are only in the manifest.
func (t *FileStore) Fold(ctx context.Context, c commit.Changes, at snapshot.Ref, m *mem.Account) (commit.Changes, []manifest.Entry, error) {
	st, err := t.state(ctx, at, nil)
	if err != nil {
		return c, nil, err
	}
	n, err := st.bucketCount()
	if err != nil {
		return c, nil, err
	}
	if n <= 0 {
		return c, nil, nil
	}
	old, err := t.restore(ctx, st)
	if err != nil {
		return c, nil, err
	}
	// The files of each bucket, in order of appearance.
	index := map[commit.BucketID][]int{}
	var order []commit.BucketID
	for i := range c.Files {
		e := &c.Files[i]
		if e.Kind != manifest.Add || e.File.Level != 0 {
			continue
		}
		id := commit.BucketID{Partition: string(e.Partition), Bucket: e.Bucket}
		if index[id] == nil {
			order = append(order, id)
		}
		index[id] = append(index[id], i)
	}
	f := &folder{t: t, st: st, c: &c, account: m}
	out := c
	out.Files = slices.Clone(c.Files)
	var dropped []manifest.Entry
	gone := map[int]bool{}
	for _, id := range order {
		files, first := index[id], old.next([]byte(id.Partition), id.Bucket)
		if !st.primaryKey() {
			f.renumber(out.Files, files, first)
			continue
		}
		if len(files) == 1 && c.Files[files[0]].File.MinSequence >= first {
			continue
		}
		added, err := f.merge(ctx, files, first)
		if err != nil {
			return c, nil, err
		}
		for _, i := range files {
			gone[i] = true
			dropped = append(dropped, c.Files[i])
		}
		out.Files = append(out.Files, added...)
	}
	if len(gone) > 0 {
		kept := out.Files[:0]
		for i, e := range out.Files {
			if !gone[i] {
				kept = append(kept, e)
			}
		}
		out.Files = kept
	}
	return out, dropped, nil
}

// folder is the work of one Fold.
type folder struct {
	t       *FileStore
	st      *state
	c       *commit.Changes
	account *mem.Account
	p       *planner
}

// renumber gives the files of an append bucket sequence numbers from first on,
// where theirs are not above it. A file that stands for one it rewrites keeps
// that one's place.
func (f *folder) renumber(files []manifest.Entry, which []int, first int64) {
	var fresh []int
	low := false
	for _, i := range which {
		m := files[i].File
		rewritten := false
		for k := range f.c.Files {
			d := &f.c.Files[k]
			rewritten = rewritten || d.Kind == manifest.Delete && d.Bucket == files[i].Bucket && string(d.Partition) == string(files[i].Partition) &&
				d.File.MinSequence <= m.MinSequence && m.MaxSequence <= d.File.MaxSequence
		}
		if !rewritten {
			fresh = append(fresh, i)
			low = low || m.MinSequence < first
		}
	}
	if !low {
		return
	}
	slices.SortStableFunc(fresh, func(a, b int) int { return int(files[a].File.MinSequence - files[b].File.MinSequence) })
	for _, i := range fresh {
		m := *files[i].File // shared with the caller's changes
		m.MinSequence, m.MaxSequence = first, first+m.Rows-1
		first += m.Rows
		files[i].File = &m
	}
}

// merge writes the newest rows of several files of one bucket, retractions
// included, as sorted files whose sequence numbers begin at first.
func (f *folder) merge(ctx context.Context, which []int, first int64) (entries []manifest.Entry, err error) {
	if f.p == nil {
		var cols []int
		for i := range f.st.schema.Fields {
			cols = append(cols, i)
		}
		at := snapshot.Ref{Branch: f.c.Branch, Schema: f.st.schema.ID + 1, Empty: true}
		if f.p, err = f.t.newPlanner(ctx, Scan{At: at, Columns: append(cols, PseudoKind), Limit: -1, Overlay: f.c}); err != nil {
			return nil, err
		}
	}
	p := f.p
	one := f.c.Files[which[0]]
	part, err := p.partitionOf(one.Partition)
	if err != nil {
		return nil, err
	}
	dir := p.bucketDir(part, one.Bucket)
	ft, err := f.t.env.writeFormat()
	if err != nil {
		return nil, err
	}
	w, err := datafile.New(datafile.Options{IO: f.t.env.IO, Dir: dir + "/", Format: ft, Schema: f.st.schema, Table: f.st.options, Account: f.account})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = w.Abort(ctx) // the error says why
		}
	}()
	rd := &mergeReader{plan: p.read, dir: dir, c: &format.Counters{}, im: &piece{read: p.read, dir: dir}}
	defer rd.Close() //nolint:errcheck // a reader
	section := make([][]File, len(which))
	for k, i := range which {
		section[k] = []File{{Meta: f.c.Files[i].File}}
		if err := p.check(&section[k][0]); err != nil {
			return nil, err
		}
	}
	rd.split.Sections = [][][]File{section}
	if err := rd.open(ctx); err != nil {
		return nil, err
	}
	width := len(f.st.schema.Fields)
	var seq []int64
	var kinds []int8
	for {
		cols, n, err := rd.m.Next(ctx)
		if err != nil {
			return nil, err
		}
		if n == 0 {
			break
		}
		seq, kinds = seq[:0], kinds[:0]
		for _, k := range vec.ViewOf[int16](cols[width]).V {
			seq, kinds = append(seq, first), append(kinds, int8(k))
			first++
		}
		if err := w.Write(ctx, cols[:width], n, seq, kinds); err != nil {
			return nil, err
		}
	}
	files, err := w.Close(ctx)
	if err != nil {
		return nil, err
	}
	for _, m := range files {
		entries = append(entries, manifest.Entry{Kind: manifest.Add, Partition: one.Partition, Bucket: one.Bucket, TotalBuckets: one.TotalBuckets, File: m})
	}
	return entries, nil
}
