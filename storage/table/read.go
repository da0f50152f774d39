package table

import (
	"context"
	"fmt"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// Read opens the reader of a split that Plan made. A reader is for one goroutine;
// readers of several splits may run at once.
func (t *FileStore) Read(ctx context.Context, s Scan, p Split, o ReadOptions) (SplitReader, error) {
	if o.BatchRows <= 0 {
		o.BatchRows = 2048
	}
	if o.Counters == nil {
		o.Counters = &format.Counters{}
	}
	if d, ok := p.Impl.(*diffPiece); ok && d.read.t == t {
		return newDiffReader(d, o), nil
	}
	if c, ok := p.Impl.(*countedRows); ok && c.t == t {
		return &countedReader{filter: o.Filter, size: int64(o.BatchRows), left: p.Rows}, nil
	}
	if k, ok := p.Impl.(*knownRows); ok && k.t == t {
		return newKnownReader(k, o.BatchRows), nil
	}
	im, ok := p.Impl.(*piece)
	if !ok || im.read.t != t {
		return nil, fmt.Errorf("split was not planned by this table")
	}
	if r := im.skipBeaten(&s, &p, o.Counters); r != nil {
		return r, nil
	}
	if p.Raw {
		return newRawReader(im, s, p, o), nil
	}
	if im.fold != nil {
		return newFoldedReader(im, p, o), nil
	}
	return newMergeReader(im, p, o), nil
}

// out cuts finished rows into batches of the wanted size.
type out struct {
	fields types.Schema
	size   int
	cols   []arrow.Array
	sel    []uint16 // of the rows that are left, nil = all
	n, at  int
	live   *mergetree.RowSet // of the file: the rows that are left, when not nil
	pos    int64             // the row of the file that comes first
}

func (q *out) put(cols []arrow.Array, n int) { q.cols, q.n, q.at, q.sel, q.live = cols, n, 0, nil, nil }

// putLive queues those of n rows of a file, from pos on, that are in live.
func (q *out) putLive(cols []arrow.Array, n int, live *mergetree.RowSet, pos int64) {
	q.put(cols, n)
	q.live, q.pos = live, pos
}

// putSel queues the rows sel, at least one, of n.
func (q *out) putSel(cols []arrow.Array, n int, sel []uint16) {
	q.put(cols, n)
	q.sel = sel
}

func (q *out) next() *vec.Batch {
	if q.at >= q.n {
		return nil
	}
	from, to := q.at, min(q.at+q.size, q.n)
	q.at = to
	b := &vec.Batch{Schema: q.fields, N: to - from, Cols: q.cols}
	if q.live != nil {
		b.Sel, _ = q.live.Keep(q.pos+int64(from), to-from, nil)
		if b.Sel != nil && len(b.Sel) == 0 {
			return q.next()
		}
	}
	if q.sel != nil {
		k, _ := slices.BinarySearch(q.sel, uint16(min(to, maxRow)))
		if to > maxRow {
			k = len(q.sel)
		}
		part := q.sel[:k]
		if q.sel = q.sel[k:]; len(q.sel) == 0 {
			q.at = q.n
		}
		if len(part) == 0 {
			return q.next()
		}
		if len(part) < to-from {
			b.Sel = make([]uint16, len(part))
			for i, x := range part {
				b.Sel[i] = x - uint16(from)
			}
		}
	}
	if from > 0 || to < q.n {
		b.Cols = make([]arrow.Array, len(q.cols))
		for i, a := range q.cols {
			b.Cols[i] = vec.Slice(a, from, to)
		}
	}
	return b
}

// maxRow is the last row that a selection can name.
const maxRow = 1<<16 - 1

// rawReader reads files whose rows need no merge. Per window: the deletion vector
// and the row kind give keep; the filter's columns are read and narrow it; the
// other columns are read for what is left.
type rawReader struct {
	plan   *readPlan
	dir    string
	split  Split
	late   LateFilter
	order  *Order // nil = more than the rows that come first may be wanted
	filter RowFilter
	c      *format.Counters

	first  []int // scan columns that are read first: the filter's
	rest   []int // the others
	firstP []int // where first's columns are in the batch, -1 = not wanted
	restP  []int
	fschem types.Schema // of first, for the filter

	file   int
	cur    *openFile
	kinds  bool // the current file may hold deleted rows
	sels   bool // batches may have a selection
	ranges []format.RowRange
	pos    int64
	end    int64
	a, b   *fileColumns

	rows  int // of a window
	bytes int64
	keep  []uint16
	buf   []uint16
	out   out
	err   error
}

func newRawReader(im *piece, s Scan, p Split, o ReadOptions) *rawReader {
	r := &rawReader{
		plan: im.read, dir: im.dir, split: p, late: s.Late, filter: o.Filter, c: o.Counters,
		rows: im.read.t.env.sizes.window, sels: o.Selections,
		out: out{fields: im.read.fields, size: o.BatchRows},
	}
	if im.read.at.Branch != s.At.Branch {
		r.late = nil // its columns are those of the other branch
	}
	if x := s.Order; x != nil && x.Rows > 0 && r.late != nil && s.Incremental == nil && !im.read.kinds && im.read.filter == nil && x.Column >= 0 && x.Column < len(im.read.columns) {
		r.order = x
	}
	r.keep, r.buf = make([]uint16, 0, r.rows), make([]uint16, 0, r.rows)
	var fcols []int
	if r.filter != nil {
		fcols = r.filter.Columns()
	}
	for _, i := range fcols {
		r.first = append(r.first, r.plan.columns[i])
		r.firstP = append(r.firstP, i)
		r.fschem = append(r.fschem, r.plan.fields[i])
	}
	for i, c := range r.plan.columns {
		if !slices.Contains(fcols, i) {
			r.rest = append(r.rest, c)
			r.restP = append(r.restP, i)
		}
	}
	return r
}

// Next returns the next batch, nil at the end.
func (r *rawReader) Next(ctx context.Context) (*vec.Batch, error) {
	if r.err != nil {
		return nil, r.err
	}
	for {
		if b := r.out.next(); b != nil {
			return b, nil
		}
		more, err := r.window(ctx)
		if err != nil {
			r.err = r.plan.t.explain(ctx, r.plan.st, r.plan.at, err)
			return nil, r.err
		}
		if !more {
			return nil, nil
		}
	}
}

// window reads one window of rows into r.out; false at the end of the split.
func (r *rawReader) window(ctx context.Context) (bool, error) {
	for r.pos >= r.end {
		if ok, err := r.nextRange(ctx); !ok || err != nil {
			return false, err
		}
	}
	if ctx.Err() != nil {
		return false, context.Cause(ctx)
	}
	n := int(min(int64(r.rows), r.end-r.pos))
	m, live, pos := n, r.cur.left(), r.pos
	if live != nil {
		m = int(live.CountIn(pos, pos+int64(n)))
		if m < n && m*100 >= n*stretchShare {
			n, m = live.Stretch(pos, n)
		}
	}
	r.pos += int64(n)
	r.c.Rows += int64(n)
	if m == 0 {
		return true, r.skip(ctx, n)
	}
	var keep []uint16
	if m < n {
		dense := r.sels && m*100 >= n*denseShare
		if dense && len(r.first) == 0 && !r.kinds && r.filter == nil {
			cols, err := r.whole(ctx, n, nil)
			if err == nil {
				r.out.putLive(cols, n, live, pos)
			}
			return true, err
		}
		keep, _ = live.Keep(pos, n, r.keep)
		if dense {
			return true, r.dense(ctx, n, keep)
		}
	}
	var first []arrow.Array
	if r.a != nil {
		var err error
		if first, err = r.a.Read(ctx, n, keep); err != nil {
			return false, err
		}
	}
	sel, err := r.sel(ctx, first, m)
	if err != nil {
		return false, err
	}
	if sel != nil && len(sel) == 0 {
		return true, r.skipRest(ctx, n)
	}
	if sel != nil && len(sel) == m {
		sel = nil
	}
	return true, r.emit(ctx, n, m, keep, first, sel)
}

// denseShare is the share of rows, in percent, from which on a window is decoded whole
// and its rows are named by a selection.
const denseShare = 60

// stretchShare is the share of rows, in percent, from which on a window is cut where
// long stretches of rows that live, or that do not, begin and end.
const stretchShare = 25

// dense is window where most rows live, keep of n, and are looked at.
func (r *rawReader) dense(ctx context.Context, n int, keep []uint16) error {
	var first []arrow.Array
	if r.a != nil {
		var err error
		if first, err = r.a.Read(ctx, n, nil); err != nil {
			return err
		}
	}
	// The filter sees live rows only: of others it might make an error.
	lives := make([]arrow.Array, len(first))
	for i, a := range first {
		lives[i] = vec.FilterSel(a, keep)
	}
	sel, err := r.sel(ctx, lives, len(keep))
	if err != nil {
		return err
	}
	if sel != nil && len(sel) == 0 {
		return r.skipRest(ctx, n)
	}
	if sel != nil && len(sel) < len(keep) {
		composed := make([]uint16, len(sel))
		for i, s := range sel {
			composed[i] = keep[s]
		}
		keep = composed
	}
	if len(keep)*100 < n*denseShare {
		return r.emit(ctx, n, n, nil, first, keep)
	}
	cols, err := r.whole(ctx, n, first)
	if err == nil {
		r.out.putSel(cols, n, slices.Clone(keep))
	}
	return err
}

// whole reads the remaining columns of n rows.
func (r *rawReader) whole(ctx context.Context, n int, first []arrow.Array) ([]arrow.Array, error) {
	cols := make([]arrow.Array, len(r.plan.columns))
	rest, err := r.b.Read(ctx, n, nil)
	if err != nil {
		return nil, err
	}
	for i, p := range r.restP {
		cols[p] = rest[i]
	}
	for i, p := range r.firstP {
		cols[p] = first[i]
	}
	return cols, nil
}

// sel returns which of m rows stay, nil = all: not deleted by kind, and passing
// the filter.
func (r *rawReader) sel(ctx context.Context, first []arrow.Array, m int) ([]uint16, error) {
	var sel []uint16
	if r.kinds {
		sel = liveKinds(first[len(first)-1], r.buf[:0])
		first = first[:len(first)-1]
	}
	if r.filter == nil {
		return sel, nil
	}
	passed, err := r.filter.Select(ctx, &vec.Batch{Schema: r.fschem, Cols: first, N: m})
	if err != nil {
		return nil, err
	}
	if passed == nil { // an empty selection, never "all"
		passed = []uint16{}
	}
	if sel == nil {
		return passed, nil
	}
	return intersect(sel, passed), nil
}

// intersect narrows a to what is in b too; both ascend. a is overwritten.
func intersect(a, b []uint16) []uint16 {
	out, j := a[:0], 0
	for _, x := range a {
		for j < len(b) && b[j] < x {
			j++
		}
		if j < len(b) && b[j] == x {
			out = append(out, x)
		}
	}
	return out
}

// liveKinds appends the rows whose kind is +I or +U.
func liveKinds(a arrow.Array, out []uint16) []uint16 {
	v := vec.ViewOf[int16](a).V
	for i, k := range v {
		if k == 0 || k == 2 {
			out = append(out, uint16(i))
		}
	}
	return out
}

// emit reads the remaining columns for the rows that are left and queues them.
func (r *rawReader) emit(ctx context.Context, n, m int, keep []uint16, first []arrow.Array, sel []uint16) error {
	rows := m
	if sel != nil {
		rows = len(sel)
		composed := sel
		if keep != nil {
			composed = make([]uint16, len(sel))
			for i, s := range sel {
				composed[i] = keep[s]
			}
		}
		keep = composed
	}
	cols := make([]arrow.Array, len(r.plan.columns))
	rest, err := r.b.Read(ctx, n, keep)
	if err != nil {
		return err
	}
	for i, p := range r.restP {
		cols[p] = rest[i]
	}
	for i, p := range r.firstP {
		cols[p] = vec.FilterSel(first[i], sel)
	}
	r.out.put(cols, rows)
	return nil
}

var noRows = []uint16{}

// skip passes over n rows of both readers.
func (r *rawReader) skip(ctx context.Context, n int) error {
	r.c.RowsSkipped += int64(n)
	if r.a != nil {
		if _, err := r.a.Read(ctx, n, noRows); err != nil {
			return err
		}
	}
	return r.skipRest(ctx, n)
}

func (r *rawReader) skipRest(ctx context.Context, n int) error {
	_, err := r.b.Read(ctx, n, noRows)
	return err
}

// nextRange opens the readers of the next row range, opening files as needed.
func (r *rawReader) nextRange(ctx context.Context) (bool, error) {
	r.closeColumns()
	for len(r.ranges) == 0 {
		r.closeFile()
		if r.file >= len(r.split.Files) {
			return false, nil
		}
		if err := r.openFile(ctx, &r.split.Files[r.file]); err != nil {
			return false, err
		}
		r.file++
	}
	rg := r.ranges[0]
	r.ranges = r.ranges[1:]
	first := r.first
	if r.kinds {
		first = append(slices.Clone(first), PseudoKind)
	}
	var err error
	if len(first) > 0 {
		if r.a, err = r.cur.columns(ctx, rg, first); err != nil {
			return false, err
		}
	}
	if r.b, err = r.cur.columns(ctx, rg, r.rest); err != nil {
		return false, err
	}
	if r.a != nil {
		r.b.late()
	}
	r.pos, r.end = rg.From, rg.To
	return true, nil
}

// openFile opens a file and finds the row ranges to be read. There are none where
// indexes rule the file out, which then is not opened.
func (r *rawReader) openFile(ctx context.Context, f *File) error {
	var late predicate.Node
	if r.late != nil {
		late = predicate.Simplify(r.late.Poll())
	}
	whole := format.RowRange{From: 0, To: f.Meta.Rows}
	if r.split.Range != nil {
		whole = *r.split.Range
	}
	if f.ends.beaten(late) {
		r.c.Rows += whole.To - whole.From
		r.c.RowsSkipped += whole.To - whole.From
		if whole.From == 0 {
			r.c.SkipFile(beatenReason, 1)
		}
		return nil
	}
	found, err := r.plan.candidates(ctx, r.dir, f, late, r.c)
	if err != nil {
		return err
	}
	if found.none {
		r.c.Rows += whole.To - whole.From
		r.c.RowsSkipped += whole.To - whole.From
		if whole.From == 0 {
			r.c.SkipFile(found.reason(), 1)
			r.c.SkipRuntime(found.blame, 1)
		}
		return nil
	}
	o, err := r.plan.open(ctx, r.dir, f)
	if err != nil {
		return err
	}
	r.cur, r.bytes = o, o.Bytes()
	o.counters = r.c
	o.without = func(pages int64) { r.c.IndexPages += pages }
	r.kinds = r.plan.keyed && f.Meta.DeleteRows != 0 && !r.plan.kinds && f.only == nil
	if r.ranges, err = o.ranges(ctx, whole, predicate.Conj(r.plan.filter, late), r.c); err != nil {
		return err
	}
	if r.order != nil && !r.kinds {
		if err := r.plan.top(ctx, r.dir, o, r.order, &found, r.c); err != nil {
			return err
		}
	}
	if found.rows != nil {
		r.ranges = o.narrow(found.rows, r.ranges, r.c)
	}
	return nil
}

func (r *rawReader) closeColumns() {
	if r.a != nil {
		_ = r.a.Close()
	}
	if r.b != nil {
		_ = r.b.Close()
	}
	r.a, r.b = nil, nil
}

func (r *rawReader) closeFile() {
	if r.cur != nil {
		r.c.BytesRead += max(0, r.cur.Bytes()-r.bytes)
		r.plan.close(r.cur)
		r.cur = nil
	}
}

// Close releases the files.
func (r *rawReader) Close() error {
	r.closeColumns()
	r.closeFile()
	r.file, r.ranges, r.pos, r.end = len(r.split.Files), nil, 0, 0
	return nil
}
