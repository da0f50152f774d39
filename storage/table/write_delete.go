package table

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Deleting rows of an append table by position goes one of two ways. With
// deletion-vectors.enabled the positions go into deletion vectors, and each index
// file that held a vector of a changed data file is replaced by one with all the
// vectors that still live. Otherwise files are rewritten without the rows (copy on
// write). A file that the same transaction added is always rewritten: it was
// never published, so no index need ever speak of it. A file of which every row
// is deleted just goes.
// Source: BaseAppendDeleteFileMaintainer.java, AppendDeleteFileMaintainer.java.

// deletion is what is to be deleted of one file.
type deletion struct {
	file  *live
	rows  *dv.Vector
	fresh bool // added by the overlay
}

// deletePlan finds files and reads them.
type deletePlan struct {
	p   *planner
	ids *planner // reads the ids of rows, too, where the table has them
	dvs map[string]*manifest.DeletionVectorRef
}

// delete notes positions of one file.
func (w *tableWriter) delete(ctx context.Context, file string, rows []int64) error {
	d, ok := w.deleted[file]
	if !ok {
		if err := w.find(ctx); err != nil {
			return err
		}
		l, ok := w.byPath[file]
		if !ok {
			return fmt.Errorf("delete rows of %s: the table has no such file", file)
		}
		d = &deletion{file: l, rows: &dv.Vector{}}
		if o := w.o.Overlay; o != nil {
			for i := range o.Files {
				d.fresh = d.fresh || o.Files[i].Kind == manifest.Add && o.Files[i].File.Name == l.File.Name
			}
		}
		w.deleted[file] = d
	}
	for _, r := range rows {
		if r < 0 || r >= d.file.File.Rows {
			return fmt.Errorf("delete row %d of %s: it has %d rows", r, file, d.file.File.Rows)
		}
		d.rows.Add(r)
	}
	return nil
}

// find reads which files the table has.
func (w *tableWriter) find(ctx context.Context) error {
	if w.byPath != nil {
		return nil
	}
	p, err := w.t.newPlanner(ctx, w.scan())
	if err != nil {
		return err
	}
	files, err := p.liveEntries(ctx)
	if err != nil {
		return err
	}
	w.byPath = make(map[string]*live, len(files))
	for i := range files {
		l := &files[i]
		w.byPath[shownPath(p, l)] = l
	}
	return nil
}

// shownPath is what PseudoFile shows of a file: its path below the table's
// directory, or its external path. Names hold a UUID, so both are unambiguous.
func shownPath(p *planner, l *live) string {
	if l.File.ExternalPath != "" {
		return l.File.ExternalPath
	}
	return strings.TrimPrefix(p.bucketDir(l.part, l.Bucket)+"/"+l.File.Name, p.t.dir+"/")
}

// scan is a scan of everything that the writer goes on from.
func (w *tableWriter) scan() Scan {
	at := w.o.At
	at.Snap, at.Empty, at.Schema = w.st.snap, w.st.snap == nil, w.st.schema.ID+1
	if at.Empty {
		at = snapshot.Ref{Branch: at.Branch, Schema: at.Schema, Empty: true}
	}
	return Scan{At: at, Limit: -1, Overlay: w.o.Overlay, Options: w.o.Options}
}

// applyDeletes turns the noted positions into changes.
func (w *tableWriter) applyDeletes(ctx context.Context, c *commit.Changes) error {
	p, err := w.t.newPlanner(ctx, w.scan())
	if err != nil {
		return err
	}
	dp := &deletePlan{p: p, ids: p}
	if w.st.tracksRows() {
		s := w.scan()
		s.Columns = w.st.copied(true)
		if dp.ids, err = w.t.newPlanner(ctx, s); err != nil {
			return err
		}
	}
	if dp.dvs, err = p.vectors(ctx); err != nil {
		return err
	}
	vectors, err := w.st.options.Bool("deletion-vectors.enabled", false)
	if err != nil {
		return err
	}
	change := &vectorChange{}
	reads := &commit.ReadSet{}
	for _, name := range sortedKeys(w.deleted) {
		d := w.deleted[name]
		if d.rows.Cardinality() == 0 {
			continue
		}
		old, err := dp.vector(ctx, d.file)
		if err != nil {
			return err
		}
		gone := old.Clone()
		d.rows.Each(func(pos int64) bool { gone.Add(pos); return true })
		if gone.Cardinality() == old.Cardinality() {
			continue
		}
		if !d.fresh {
			reads.Files = append(reads.Files, d.file.File.Name)
		}
		f := d.file
		if gone.Cardinality() < f.File.Rows {
			if vectors && !d.fresh {
				change.set(f, gone)
				continue
			}
			files, err := w.rewrite(ctx, dp, f, gone)
			if err != nil {
				return err
			}
			for _, m := range files {
				c.Files = append(c.Files, manifest.Entry{Kind: manifest.Add, Partition: f.Partition, Bucket: f.Bucket, TotalBuckets: f.TotalBuckets, File: m})
			}
		}
		c.Files = append(c.Files, manifest.Entry{Kind: manifest.Delete, Partition: f.Partition, Bucket: f.Bucket, TotalBuckets: f.TotalBuckets, File: f.File})
		if old.Cardinality() > 0 {
			change.remove(f)
		}
	}
	if len(c.Files) == 0 && len(change.files) == 0 {
		return nil
	}
	slices.Sort(reads.Files)
	c.Kind = commit.Overwrite
	c.Reads = reads
	c.Indexes, err = w.writeVectors(ctx, p, change)
	return err
}

func sortedKeys[V any](m map[string]V) []string {
	out := make([]string, 0, len(m))
	for k := range m {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// vector returns the deletion vector of a file, nil = none.
func (d *deletePlan) vector(ctx context.Context, l *live) (*dv.Vector, error) {
	ref := d.dvs[l.File.Name]
	if ref == nil {
		return nil, nil
	}
	return d.p.t.env.vector(ctx, ref)
}

// rewrite writes the rows of a file that are not in gone into files of the same
// bucket, in order. Their sequence numbers begin where the file's did: there are
// no more rows than before, so none is taken twice, and the bucket's order stays.
func (w *tableWriter) rewrite(ctx context.Context, d *deletePlan, l *live, gone *dv.Vector) (files []*manifest.DataFile, err error) {
	dir := d.p.bucketDir(l.part, l.Bucket)
	p, ids := d.p, w.st.tracksRows() && hasIDs(l.File)
	if ids {
		p = d.ids
	}
	f, err := datafile.New(datafile.Options{
		IO: w.t.env.IO, Dir: dir + "/", Format: w.format, Schema: w.st.schema, Table: w.st.options,
		FirstSequence: l.File.MinSequence, Account: w.o.Account, RowIDs: ids,
	})
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			_ = f.Abort(ctx) // the error says why
		}
	}()
	if err := d.p.check(&File{Meta: l.File}); err != nil {
		return nil, err
	}
	var buf []uint16
	err = copyRows(ctx, p, dir, l.File, func(pos int64, n int) ([]uint16, int) {
		keep, none := gone.Keep(pos, n, buf)
		switch {
		case none:
			return nil, -1
		case keep == nil:
			keep = []uint16{}
		}
		buf = keep
		return keep, len(keep)
	}, func(cols []arrow.Array, n int) error { return f.Write(ctx, cols, n, nil, nil) })
	if err != nil {
		return nil, err
	}
	if files, err = f.Close(ctx); err != nil {
		return nil, err
	}
	for _, m := range files {
		w.rewritten = append(w.rewritten, dataPaths(dir, m)...)
	}
	return files, nil
}

// copyRows reads a file whole, as the planner's scan wants its columns. keep says
// which of n rows from pos on stay, and how many; -1 = all.
func copyRows(ctx context.Context, p *planner, dir string, m *manifest.DataFile, keep func(pos int64, n int) ([]uint16, int), put func([]arrow.Array, int) error) error {
	of, err := p.read.open(ctx, dir, &File{Meta: m})
	if err != nil {
		return p.explain(ctx, err)
	}
	defer p.read.close(of)
	fc, err := of.columns(ctx, format.RowRange{From: 0, To: of.Rows()}, p.read.columns)
	if err != nil {
		return err
	}
	defer fc.Close() //nolint:errcheck // a reader
	for pos := int64(0); pos < of.Rows(); pos += chunkRows {
		n := int(min(chunkRows, of.Rows()-pos))
		rows, left := keep(pos, n)
		if left < 0 {
			rows, left = nil, n
		}
		cols, err := fc.Read(ctx, n, rows)
		if err != nil {
			return err
		}
		if left > 0 {
			if err := put(cols, left); err != nil {
				return err
			}
		}
	}
	return nil
}

// vectorChange is what changes of the deletion vectors.
type vectorChange struct {
	files []vectorFile
}

// vectorFile is one data file whose vector changes; rows nil: it has none any
// more.
type vectorFile struct {
	file *live
	rows *dv.Vector
}

func (c *vectorChange) set(l *live, rows *dv.Vector) { c.files = append(c.files, vectorFile{l, rows}) }
func (c *vectorChange) remove(l *live)               { c.files = append(c.files, vectorFile{l, nil}) }

// bucketVectors are the vectors of one bucket that have to be written.
type bucketVectors struct {
	part   *partition
	bucket int32
	rows   map[string]*dv.Vector // by data file; nil = removed
	old    []manifest.IndexEntry // index files that are replaced
}

// writeVectors replaces the index files that hold vectors of changed files. In a
// table with buckets a bucket has one index file, so all of its are replaced.
func (w *tableWriter) writeVectors(ctx context.Context, p *planner, c *vectorChange) ([]manifest.IndexEntry, error) {
	if len(c.files) == 0 {
		return nil, nil
	}
	wide, err := w.st.options.Bool("deletion-vectors.bitmap64", false)
	if err != nil {
		return nil, err
	}
	target, err := w.st.options.Size("deletion-vector.index-file.target-size", 2<<20)
	if err != nil {
		return nil, err
	}
	index := map[bucketKey]*bucketVectors{}
	var order []*bucketVectors
	for _, f := range c.files {
		k := bucketKey{p.parts[string(f.file.Partition)], f.file.Bucket}
		if k.part == nil {
			if k.part, err = p.partitionOf(f.file.Partition); err != nil {
				return nil, err
			}
		}
		b := index[k]
		if b == nil {
			b = &bucketVectors{part: k.part, bucket: k.bucket, rows: map[string]*dv.Vector{}}
			index[k] = b
			order = append(order, b)
		}
		b.rows[f.file.File.Name] = f.rows
	}
	entries, err := p.indexEntries(ctx)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		e := &entries[i]
		if e.Type != "DELETION_VECTORS" || e.Kind != manifest.Add {
			continue
		}
		part, err := p.partitionOf(e.Partition)
		if err != nil {
			return nil, err
		}
		if b := index[bucketKey{part, e.Bucket}]; b != nil {
			if err := w.carry(ctx, p, b, e); err != nil {
				return nil, err
			}
		}
	}
	var out []manifest.IndexEntry
	id, n := uuid.NewString(), 0
	for _, b := range order {
		for _, e := range b.old {
			e.Kind = manifest.Delete
			out = append(out, e)
		}
		var file dv.File
		var metas []manifest.DeletionVectorMeta
		flush := func() error {
			if len(metas) == 0 {
				return nil
			}
			name := fmt.Sprintf("index-%s-%d", id, n)
			n++
			at := indexPath(p, b.part, b.bucket, name)
			if err := create(ctx, w.t.env.IO, at, file.Bytes()); err != nil {
				return err
			}
			w.indexes = append(w.indexes, at)
			out = append(out, manifest.IndexEntry{
				Kind: manifest.Add, Partition: b.part.image, Bucket: b.bucket, Type: "DELETION_VECTORS", Name: name,
				Size: int64(len(file.Bytes())), Rows: int64(len(metas)), DVs: metas,
			})
			file, metas = dv.File{}, nil
			return nil
		}
		for _, name := range sortedKeys(b.rows) {
			v := b.rows[name]
			if v == nil {
				continue
			}
			m := manifest.DeletionVectorMeta{DataFile: name, Cardinality: v.Cardinality()}
			if m.Offset, m.Length, err = file.Append(v, wide); err != nil {
				return nil, err
			}
			metas = append(metas, m)
			// A bucket of a table with buckets has one index file, however big.
			if w.r.rule.n < 0 && int64(len(file.Bytes())) >= target {
				if err := flush(); err != nil {
					return nil, err
				}
			}
		}
		if err := flush(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// carry takes over the vectors of an index file that is to be replaced, if it is.
func (w *tableWriter) carry(ctx context.Context, p *planner, b *bucketVectors, e *manifest.IndexEntry) error {
	touched := w.r.rule.n > 0
	for _, m := range e.DVs {
		_, ok := b.rows[m.DataFile]
		touched = touched || ok
	}
	if !touched {
		return nil
	}
	b.old = append(b.old, *e)
	at := indexPath(p, b.part, b.bucket, e.Name)
	if e.ExternalPath != "" {
		at = e.ExternalPath
	}
	for _, m := range e.DVs {
		if _, ok := b.rows[m.DataFile]; ok {
			continue
		}
		v, err := w.t.env.vector(ctx, &manifest.DeletionVectorRef{Path: at, DeletionVectorMeta: m})
		if err != nil {
			return err
		}
		b.rows[m.DataFile] = v
	}
	return nil
}

// indexPath is where an index file lies.
func indexPath(p *planner, part *partition, bucket int32, name string) string {
	if p.options.Flag("index-file-in-data-file-dir", false) {
		return p.bucketDir(part, bucket) + "/" + name
	}
	return path.Join(p.t.dir, "index", name)
}

// create writes a small file.
func create(ctx context.Context, io fileio.FileIO, at string, raw []byte) error {
	f, err := io.Create(ctx, at)
	if err != nil {
		return err
	}
	if _, err := f.Write(raw); err != nil {
		return errors.Join(err, f.Abort())
	}
	return f.Close()
}
