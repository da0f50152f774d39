package table

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/storage/fileindex"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// File indexes are asked twice. Those that lie in manifest entries are asked while a
// scan is planned: files without a match get no split. Those in files of their own are
// asked when the data file is about to be read, before it is opened. Either way the
// positions of candidates go on to the reader of the file.
//
// As with statistics, values of a key table are asked about only where nothing merges.
//
// An index is only an advantage. One that is missing, damaged, of an unknown version or
// that cannot be read is passed over: the data file is read without it, which is counted
// and told to Events.IndexDamaged once. Should the disk be broken, the data file will
// say so.

// wholeIndex is up to which size a file of indexes is read at once. Of a larger one the
// head is read, and what the indexes ask for: a bloom filter asks for single bytes.
const wholeIndex = 4 << 10

// indexFile is an opened file of indexes as it is kept in the cache.
type indexFile struct {
	*fileindex.File // nil = it cannot be used
	src             *indexSource
}

// indexSource reads a file of indexes. The file is open only while somebody asks.
type indexSource struct {
	io   fileio.FileIO
	path string
	size int64
	read atomic.Int64 // bytes so far

	mu    sync.Mutex // guards the two below
	users int
	f     fileio.File
}

var _ index.Source = (*indexSource)(nil)

// Size returns the number of bytes of the file.
func (s *indexSource) Size() int64 { return s.size }

// ReadAt is io.ReaderAt's.
func (s *indexSource) ReadAt(p []byte, off int64) (int, error) {
	f, err := s.file()
	if err != nil {
		return 0, err
	}
	n, err := f.ReadAt(p, off)
	s.read.Add(int64(n))
	return n, err
}

func (s *indexSource) file() (fileio.File, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.f != nil {
		return s.f, nil
	}
	// Others may be waiting for the same file: it is not one statement's alone.
	f, err := s.io.Open(context.Background(), s.path)
	if err != nil {
		return nil, err
	}
	if s.size >= 0 && f.Size() != s.size {
		_ = f.Close()
		return nil, index.Corrupt("%d bytes, which were %d before", f.Size(), s.size)
	}
	s.f, s.size = f, f.Size()
	return f, nil
}

func (s *indexSource) begin() {
	s.mu.Lock()
	s.users++
	s.mu.Unlock()
}

func (s *indexSource) end() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.users--; s.users == 0 && s.f != nil {
		_ = s.f.Close() // it was only read
		s.f = nil
	}
}

// fileIndexPath returns the path of a data file's indexes, "" when it has none of its own.
// Source: FileIndexEvaluator.java.
func fileIndexPath(dir string, m *manifest.DataFile) (string, error) {
	name := ""
	for _, x := range m.ExtraFiles {
		if !strings.HasSuffix(x, fileindex.Suffix) {
			continue
		}
		if name != "" {
			return "", &fileio.CorruptionError{Path: dir + "/" + m.Name, Offset: -1, Reason: fmt.Sprintf("it has more than one file of indexes: %s and %s", name, x)}
		}
		name = x
	}
	if name == "" {
		return "", nil
	}
	if i := strings.LastIndexByte(m.ExternalPath, '/'); i >= 0 {
		dir = m.ExternalPath[:i]
	}
	return dir + "/" + name, nil
}

// readsIndexes reports whether a scan of the table looks at file indexes.
func (s *Scan) readsIndexes(o schema.Options) bool {
	return s.prunes(PruneIndexes) && o.Flag("file-index.read.enabled", true)
}

// openIndex returns the indexes in a file, from the cache if they are there. Where they
// are known to be of no use its File is nil.
func (e *Env) openIndex(path string, fs *schema.Table) (*indexFile, int64, error) {
	if x, ok := e.indexes.Get(path); ok {
		if x.src != nil {
			x.src.begin()
		}
		return x, 0, nil
	}
	src := &indexSource{io: e.IO, path: path, size: -1}
	src.begin()
	_, err := src.file()
	if err != nil {
		src.end()
		return nil, 0, err
	}
	x := &indexFile{src: src}
	if src.size <= wholeIndex {
		b := make([]byte, src.size)
		n, err := src.ReadAt(b, 0)
		if err == nil || errors.Is(err, io.EOF) {
			x.File, err = fileindex.Open(index.BytesSource(b[:n]), fs.Fields)
		}
		if err != nil {
			src.end()
			return nil, src.read.Load(), err
		}
		return x, src.read.Load(), nil
	}
	if x.File, err = fileindex.Open(src, fs.Fields); err != nil {
		src.end()
		return nil, src.read.Load(), err
	}
	return x, src.read.Load(), nil
}

// keepIndex puts an index into the cache, or back: what it holds is what was read of it.
func (e *Env) keepIndex(path string, x *indexFile) {
	e.indexes.Put(path, x, x.src.read.Load()+int64(len(path))+512)
}

// damagedIndex notes that indexes are of no use. What will be so for good is remembered.
func (e *Env) damagedIndex(path string, err error) {
	if errors.Is(err, fileio.ErrNotExist) || errors.Is(err, index.ErrCorrupt) || errors.Is(err, index.ErrVersion) {
		e.indexes.Put(path, &indexFile{}, int64(len(path))+512)
	}
	if _, seen := e.badIndexes.Get(path); !seen {
		e.badIndexes.Put(path, struct{}{}, 1)
		if e.events.IndexDamaged != nil {
			e.events.IndexDamaged(path, err)
		}
	}
}

// forgetIndex drops the indexes of a data file.
func (e *Env) forgetIndex(path string) {
	e.indexes.Delete(path)
	e.indexes.Delete(path + fileindex.Suffix)
}

// embeddedName stands behind the path of a data file whose indexes lie in its manifest
// entry.
const embeddedName = " (index in its manifest entry)"

// askEmbedded asks the indexes in a file's manifest entry about n, whose leaves index the
// fields of the file's schema.
func (e *Env) askEmbedded(path string, m *manifest.DataFile, fs *schema.Table, n predicate.Node, c *format.Counters) fileindex.Answer {
	x, err := fileindex.Open(index.BytesSource(m.EmbeddedIndex), fs.Fields)
	var a fileindex.Answer
	if err == nil {
		a, err = x.Eval(n, m.Rows)
	}
	if err != nil {
		c.IndexDamaged++
		e.damagedIndex(path+embeddedName, err)
		return fileindex.Answer{}
	}
	return a
}

// withIndex opens a data file's indexes, wherever they are, and hands them to ask.
// Damage is no error.
func (r *readPlan) withIndex(ctx context.Context, dir string, m *manifest.DataFile, fs *schema.Table, c *format.Counters, ask func(*fileindex.File) error) error {
	e := r.t.env
	path, err := fileIndexPath(dir, m)
	if err != nil || path == "" {
		return err
	}
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	x, n, err := e.openIndex(path, fs)
	if c.IndexBytes += n; err == nil && x.File != nil {
		before := x.src.read.Load()
		err = ask(x.File)
		c.IndexBytes += x.src.read.Load() - before
		x.src.end()
		if err == nil {
			e.keepIndex(path, x)
			return nil
		}
	}
	c.IndexDamaged++
	if err != nil {
		e.damagedIndex(path, err)
	}
	return nil
}

// candidates are what indexes say of one data file and a scan's filter.
type candidates struct {
	none bool
	rows *roaring.Bitmap // nil = all
	kind string          // of the index that was the last to leave rows out
	// embedded and own say that the indexes in the manifest entry, and those in a file of
	// their own, have been asked.
	embedded, own bool
	blame         int // with none: the runtime filter that ruled the file out, see blame
}

func (a *candidates) take(b fileindex.Answer) {
	switch {
	case a.none:
	case b.Verdict == index.None:
		a.none, a.rows, a.kind = true, nil, b.Kind
	case b.Rows == nil:
	case a.rows == nil:
		a.rows, a.kind = b.Rows, b.Kind
	default:
		a.rows, a.kind = roaring.And(a.rows, b.Rows), b.Kind
		a.none = a.rows.IsEmpty()
	}
}

// reason is how the kind is called among the reasons of PlanReport.Skipped.
func (a *candidates) reason() string { return strings.TrimSuffix(a.kind, "-filter") }

// candidates asks the indexes of a data file about the scan's filter, as far as planning
// has not, and about late, which may be nil.
func (r *readPlan) candidates(ctx context.Context, dir string, f *File, late predicate.Node, c *format.Counters) (a candidates, err error) {
	if f.found != nil {
		a = *f.found
	}
	m := f.Meta
	if a.none || !r.indexes || len(m.EmbeddedIndex) == 0 && len(m.ExtraFiles) == 0 {
		return a, nil
	}
	open := func(asked bool) predicate.Node {
		if asked {
			return late
		}
		return predicate.Conj(r.filter, late)
	}
	embedded, own := open(a.embedded), open(a.own)
	if embedded == nil && own == nil {
		return a, nil
	}
	fs := r.st.schema
	if m.SchemaID != fs.ID {
		if fs, err = r.t.schemaOf(ctx, r.st.branch, m.SchemaID); err != nil {
			return a, err
		}
	}
	evo := r.t.evolutions.Get(fs, r.st.schema)
	if n := evo.IndexPredicate(embedded); n != nil && len(m.EmbeddedIndex) > 0 {
		a.take(r.t.env.askEmbedded(dir+"/"+m.Name, m, fs, n, c))
		a.embedded = true
		if a.none {
			a.blame = blame(n, func(n predicate.Node) bool {
				return r.t.env.askEmbedded(dir+"/"+m.Name, m, fs, n, &format.Counters{}).Verdict == index.None
			})
		}
	}
	n := evo.IndexPredicate(own)
	if n == nil || a.none {
		return a, nil
	}
	a.own = true
	err = r.withIndex(ctx, dir, m, fs, c, func(x *fileindex.File) error {
		b, err := x.Eval(n, m.Rows)
		if err != nil {
			return err
		}
		if a.take(b); a.none {
			a.blame = blame(n, func(n predicate.Node) bool {
				b, err := x.Eval(n, m.Rows)
				return err == nil && b.Verdict == index.None
			})
		}
		return nil
	})
	return a, err
}

// some reports whether one of rows [from, to) is a candidate.
func (a *candidates) some(from, to int64) bool {
	if a.rows == nil {
		return !a.none
	}
	it := a.rows.Iterator()
	it.AdvanceIfNeeded(uint32(from))
	return it.HasNext() && int64(it.PeekNext()) < to
}

// topShare is how much smaller than a file the rows of a top-N are at least, for an index
// to be asked which they are.
const topShare = 8

// top narrows the candidates of a file to the rows that come first, if an index knows the
// order of the column.
func (r *readPlan) top(ctx context.Context, dir string, o *openFile, want *Order, a *candidates, c *format.Counters) error {
	m, col := o.meta.Meta, r.columns[want.Column]
	if !r.indexes || len(m.EmbeddedIndex) == 0 && len(m.ExtraFiles) == 0 || col < 0 || want.Rows > m.Rows/topShare {
		return nil
	}
	src, err := o.evo.Source(col)
	if err != nil || src < 0 || !o.evo.Identity(col) {
		return nil //nolint:nilerr // who reads the column says it
	}
	var live *roaring.Bitmap
	if s := o.standing(); s != nil {
		live = bitmapOf(s, m.Rows)
	}
	ask := func(x *fileindex.File) error {
		rows, kind, err := x.Top(src, int(want.Rows), want.Desc, want.NullsFirst, live, m.Rows)
		if err == nil && rows != nil {
			if a.rows != nil {
				rows = roaring.And(a.rows, rows)
			}
			a.rows, a.kind = rows, kind
		}
		return err
	}
	if len(m.EmbeddedIndex) > 0 {
		x, err := fileindex.Open(index.BytesSource(m.EmbeddedIndex), o.evo.From.Fields)
		if err == nil {
			err = ask(x)
		}
		if err != nil {
			c.IndexDamaged++
			r.t.env.damagedIndex(dir+"/"+m.Name+embeddedName, err)
		}
		return nil
	}
	return r.withIndex(ctx, dir, m, o.evo.From, c, ask)
}

// bitmapOf makes a bitmap of the rows of a file that are in a set.
func bitmapOf(s *mergetree.RowSet, rows int64) *roaring.Bitmap {
	const step = 1 << 16
	out := roaring.New()
	buf, many := make([]uint16, 0, step), make([]uint32, 0, step)
	for at := int64(0); at < rows; at += step {
		n := min(step, rows-at)
		keep, whole := s.Keep(at, int(n), buf)
		if whole {
			out.AddRange(uint64(at), uint64(at+n))
			continue
		}
		many = many[:0]
		for _, k := range keep {
			many = append(many, uint32(at)+uint32(k))
		}
		out.AddMany(many)
	}
	return out
}

// byIndex asks the indexes in the manifest entry of a file whose rows need no merge; nil
// when there are none.
func (p *planner) byIndex(l live) (*candidates, error) {
	if p.filter == nil || len(l.File.EmbeddedIndex) == 0 || !p.read.indexes {
		return nil, nil
	}
	fs, err := p.fileSchema(l.File.SchemaID)
	if err != nil {
		return nil, err
	}
	if !fs.translated {
		fs.filter, fs.translated = fs.evo.IndexPredicate(p.filter), true
	}
	if fs.filter == nil {
		return nil, nil
	}
	a := &candidates{embedded: true}
	path := p.bucketDir(l.part, l.Bucket) + "/" + l.File.Name
	a.take(p.t.env.askEmbedded(path, l.File, fs.schema, fs.filter, &p.report.Counters))
	if a.none {
		a.blame = blame(fs.filter, func(n predicate.Node) bool {
			return p.t.env.askEmbedded(path, l.File, fs.schema, n, &format.Counters{}).Verdict == index.None
		})
	}
	return a, nil
}
