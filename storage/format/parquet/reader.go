package parquet

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// Format is the Parquet data file format.
type Format struct {
	// Pages keeps inflated pages across readers; nil = none.
	Pages *PageCache
}

// Forget drops the pages that are cached of files.
func (f Format) Forget(paths ...string) { f.Pages.Forget(paths...) }

// PageStats says what is kept of inflated pages.
func (f Format) PageStats() fileio.CacheStats { return f.Pages.Stats() }

// Name is "parquet".
func (Format) Name() string { return "parquet" }

var (
	_ format.Format       = Format{}
	_ format.Reader       = (*Reader)(nil)
	_ format.ColumnReader = (*columnReader)(nil)
)

// Reader is an open Parquet file. Footer, page index and dictionaries are read
// once and kept, so many column readers may share one Reader, concurrently.
type Reader struct {
	f      fileio.File
	size   int64
	mem    []byte // bytes of the file that are in memory, from memOff on
	memOff int64
	bytes  atomic.Int64
	pages  *PageCache // nil = none
	noCRC  bool       // for fuzzing: page checksums would hide what lies behind them

	meta   *fileMeta
	root   *snode
	leaves []*snode
	rows   int64
	schema types.Schema
	cols   []*bnode

	mu      sync.Mutex // guards the map
	indexes map[chunkKey]*chunkCache
}

type chunkKey struct{ group, col int }

// chunkCache is what is known of one column chunk beyond the footer.
type chunkCache struct {
	mu      sync.Mutex
	hasLocs bool
	locs    []pageLoc
	hasCols bool
	cols    *columnIndex
	hasDict bool
	dict    any
}

// Open reads the footer of f. See format.Format.
func (fm Format) Open(ctx context.Context, f fileio.File, row types.Schema) (format.Reader, error) {
	r, err := open(ctx, f, row)
	if err != nil {
		return nil, err
	}
	r.pages = fm.Pages
	return r, nil
}

func open(ctx context.Context, f fileio.File, row types.Schema) (r *Reader, err error) {
	r = &Reader{f: f, size: f.Size(), schema: row, indexes: map[chunkKey]*chunkCache{}}
	defer func() {
		if p := recover(); p != nil { // the last resort: a bug met by odd bytes
			err = r.corrupt(-1, "reading the footer went wrong: %v", p)
		}
		if err != nil {
			_ = f.Close()
			r = nil
		}
	}()
	b, err := r.footer(ctx)
	if err != nil {
		return nil, err
	}
	if r.meta, err = parseFooter(b); err != nil {
		return nil, &fileio.CorruptionError{Path: f.Path(), Offset: r.size - 8 - int64(len(b)), Reason: "footer", Err: err}
	}
	if r.meta.encrypted {
		return nil, &fileio.UnsupportedError{Feature: "encrypted Parquet file"}
	}
	if r.root, r.leaves, err = buildSchema(r.meta.schema); err != nil {
		return nil, &fileio.CorruptionError{Path: f.Path(), Offset: -1, Reason: "footer", Err: err}
	}
	if err := r.checkGroups(); err != nil {
		return nil, err
	}
	for _, fd := range row {
		b, err := bind(r.root, fd)
		if err != nil {
			var u *fileio.UnsupportedError
			if errors.As(err, &u) {
				return nil, u
			}
			return nil, &fileio.CorruptionError{Path: f.Path(), Offset: -1, Reason: err.Error()}
		}
		if b.leaf != nil && (b.leaf.node.def > 255 || b.leaf.node.rep > 255) {
			return nil, &fileio.UnsupportedError{Feature: "a Parquet column nested this deeply"}
		}
		r.cols = append(r.cols, b)
	}
	return r, nil
}

// footer returns the bytes of the FileMetaData:
//
//	... | FileMetaData | uint32 LE length | "PAR1"
func (r *Reader) footer(ctx context.Context) ([]byte, error) {
	if m, ok := r.f.(interface{ Bytes() []byte }); ok {
		if b := m.Bytes(); int64(len(b)) == r.size {
			r.mem = b
		}
	}
	if r.size < 12 {
		return nil, r.corrupt(0, "%d bytes are too few for a Parquet file", r.size)
	}
	if r.mem == nil {
		n := r.size
		if n > wholeBytes {
			n = tailBytes
		}
		b, err := r.readAt(ctx, r.size-n, int(n), nil)
		if err != nil {
			return nil, err
		}
		r.mem, r.memOff = b, r.size-n
	}
	end := r.mem[len(r.mem)-8:]
	switch string(end[4:]) {
	case "PAR1":
	case "PARE":
		return nil, &fileio.UnsupportedError{Feature: "encrypted Parquet file"}
	default:
		return nil, r.corrupt(r.size-4, "there is no Parquet magic at the end")
	}
	n := int64(le32(end))
	if n > r.size-12 {
		return nil, r.corrupt(r.size-8, "a footer of %d bytes does not fit the file", n)
	}
	return r.readAt(ctx, r.size-8-n, int(n), nil)
}

func (r *Reader) corrupt(off int64, form string, args ...any) error {
	return &fileio.CorruptionError{Path: r.f.Path(), Offset: off, Reason: fmt.Sprintf(form, args...)}
}

// checkGroups checks what the footer says of row groups and column chunks
// against the file, once, so that the reading of pages need not.
func (r *Reader) checkGroups() error {
	for g := range r.meta.groups {
		rg := &r.meta.groups[g]
		rg.first = r.rows
		if rg.rows > 1<<62-r.rows {
			return r.corrupt(-1, "row group %d claims %d rows", g, rg.rows)
		}
		r.rows += rg.rows
		if len(rg.cols) != len(r.leaves) {
			return r.corrupt(-1, "row group %d has %d columns, the schema %d", g, len(rg.cols), len(r.leaves))
		}
		for i := range rg.cols {
			c := &rg.cols[i]
			if c.encrypted {
				return &fileio.UnsupportedError{Feature: "encrypted Parquet column"}
			}
			if len(c.filePath) > 0 {
				return &fileio.UnsupportedError{Feature: "Parquet column chunk in another file"}
			}
			name := r.leaves[i].el.name
			if c.typ != r.leaves[i].el.typ {
				return r.corrupt(-1, "column %s has type %s in row group %d and %s in the schema", name, physName(c.typ), g, physName(r.leaves[i].el.typ))
			}
			if s := r.chunkSpan(g, i); s.off < 4 || c.compressed < 0 || c.compressed > r.size || s.end > r.size-8 {
				if rg.rows > 0 || c.compressed != 0 {
					return r.corrupt(-1, "column %s of row group %d lies outside the file", name, g)
				}
			}
		}
	}
	if r.rows != r.meta.rows {
		return r.corrupt(-1, "the footer counts %d rows, its row groups %d", r.meta.rows, r.rows)
	}
	return nil
}

// chunkSpan is where a column chunk lies: its dictionary page comes first.
func (r *Reader) chunkSpan(g, col int) span {
	c := &r.meta.groups[g].cols[col]
	off := c.dataOff
	if c.dictOff > 0 && c.dictOff < off {
		off = c.dictOff
	}
	return span{off, off + c.compressed}
}

// Rows returns the number of rows of the file.
func (r *Reader) Rows() int64 { return r.rows }

// Bytes returns the bytes read from storage so far.
func (r *Reader) Bytes() int64 { return r.bytes.Load() }

// Close closes the file.
func (r *Reader) Close() error { return r.f.Close() }

func (r *Reader) cache(g, col int) *chunkCache {
	k := chunkKey{g, col}
	r.mu.Lock()
	defer r.mu.Unlock()
	c := r.indexes[k]
	if c == nil {
		c = &chunkCache{}
		r.indexes[k] = c
	}
	return c
}

// offsetIndex returns the pages of a chunk, or nil when the file does not tell.
// The offset indexes of a row group lie side by side and mostly in the tail that
// Open has read.
func (r *Reader) offsetIndex(ctx context.Context, g, col int) ([]pageLoc, error) {
	m := &r.meta.groups[g].cols[col]
	if m.offsetIndexLen <= 0 || m.offsetIndexOff <= 0 {
		return nil, nil
	}
	c := r.cache(g, col)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasLocs {
		return c.locs, nil
	}
	b, err := r.readAt(ctx, m.offsetIndexOff, int(m.offsetIndexLen), nil)
	if err != nil {
		return nil, err
	}
	locs, err := parseOffsetIndex(b)
	if err == nil {
		err = checkLocs(locs, r.chunkSpan(g, col), r.meta.groups[g].rows)
	}
	if err != nil {
		return nil, &fileio.CorruptionError{Path: r.f.Path(), Offset: m.offsetIndexOff, Reason: "offset index of " + r.leaves[col].el.name, Err: err}
	}
	c.locs, c.hasLocs = locs, true
	return locs, nil
}

func checkLocs(locs []pageLoc, s span, rows int64) error {
	for i, l := range locs {
		if l.off < s.off || l.off+int64(l.size) > s.end || l.first > rows {
			return fmt.Errorf("page %d lies outside its column chunk", i)
		}
		if i == 0 && l.first != 0 || i > 0 && (l.first < locs[i-1].first || l.off < locs[i-1].off) {
			return fmt.Errorf("page %d is out of order", i)
		}
	}
	if len(locs) == 0 && rows > 0 {
		return fmt.Errorf("it names no page")
	}
	return nil
}

// dictionary returns the values of a chunk's dictionary as s makes them. They
// are read once per Reader; w serves the bytes.
func (r *Reader) dictionary(ctx context.Context, g int, l *leaf, s sink, w *window) (any, error) {
	c := r.cache(g, l.col)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hasDict {
		return c.dict, nil
	}
	v, n, off, err := r.dictPage(ctx, g, l, w)
	if err == nil {
		c.dict, err = s.dictionary(v, n)
	}
	if err != nil {
		return nil, (&chunkReader{r: r, leaf: l}).corrupt(off, err)
	}
	c.hasDict = true
	return c.dict, nil
}

// dictPage reads and inflates the dictionary page, which is a chunk's first.
func (r *Reader) dictPage(ctx context.Context, g int, l *leaf, w *window) (*pageVals, int, int64, error) {
	s := r.chunkSpan(g, l.col)
	c := chunkReader{r: r, leaf: l, meta: &r.meta.groups[g].cols[l.col], at: s.off, end: s.end}
	c.win = *w
	defer func() { *w = c.win }()
	h, off, err := c.header(ctx)
	if err != nil {
		return nil, 0, off, err
	}
	if h.typ != pageDict {
		return nil, 0, off, fmt.Errorf("a page needs a dictionary and there is none")
	}
	if h.enc != encPlain && h.enc != encPlainDict {
		return nil, 0, off, fmt.Errorf("the dictionary has encoding %d", h.enc)
	}
	if int64(h.compressed) > c.end-c.at {
		return nil, 0, off, fmt.Errorf("a dictionary of %d bytes does not fit its column chunk", h.compressed)
	}
	raw, err := c.body(ctx, &h, c.at)
	if err != nil {
		return nil, 0, off, err
	}
	b, err := c.inflate(raw, int(h.uncompressed))
	if err != nil {
		return nil, 0, off, err
	}
	v := &pageVals{}
	if err := setValues(v, b, encPlain, l.node.el, l.conv, int(h.values)); err != nil {
		return nil, 0, off, err
	}
	return v, int(h.values), off, nil
}

// Cuts returns row group starts and, within row groups, page starts.
//
// Pages of different columns need not begin at the same rows (Java ends them by
// size and at 20,000 rows). Where all wanted columns agree often enough those
// rows are taken, else the page starts of the column with the most bytes: the
// others then decode one page twice per cut.
func (r *Reader) Cuts(want []int) []int64 {
	var out []int64
	for g := range r.meta.groups {
		rg := &r.meta.groups[g]
		if rg.first > 0 && rg.rows > 0 {
			out = append(out, rg.first)
		}
		for _, row := range r.pageStarts(g, want) {
			out = append(out, rg.first+row)
		}
	}
	return slices.Compact(out)
}

// cutRows is how far apart cuts should be at most, if pages allow.
const cutRows = 1 << 16

func (r *Reader) pageStarts(g int, want []int) []int64 {
	var heavy []int64
	var most int64 = -1
	count := map[int64]int{}
	cols := 0
	for _, l := range r.leavesOf(want) {
		locs, err := r.offsetIndex(context.Background(), g, l.col)
		if err != nil || locs == nil {
			return nil // Columns reports the error
		}
		cols++
		starts := make([]int64, 0, len(locs))
		for _, p := range locs[1:] {
			if p.first > 0 && p.first < r.meta.groups[g].rows {
				starts = append(starts, p.first)
			}
		}
		starts = slices.Compact(starts)
		for _, s := range starts {
			count[s]++
		}
		if b := r.meta.groups[g].cols[l.col].uncompressed; b > most {
			most, heavy = b, starts
		}
	}
	var common []int64
	for _, s := range heavy {
		if count[s] == cols {
			common = append(common, s)
		}
	}
	if int64(len(common)+1)*cutRows >= r.meta.groups[g].rows {
		return common
	}
	return heavy
}

// leavesOf returns the distinct leaves of columns.
func (r *Reader) leavesOf(want []int) []*leaf {
	var out []*leaf
	for _, i := range want {
		r.cols[i].walkLeaves(func(l *leaf) {
			if !slices.Contains(out, l) {
				out = append(out, l)
			}
		})
	}
	return out
}

// Columns walks columns over a range of rows. See format.Reader.
func (r *Reader) Columns(ctx context.Context, rr format.RowRange, want []int) (format.ColumnReader, error) {
	if rr.From < 0 || rr.To > r.rows || rr.From > rr.To {
		return nil, fmt.Errorf("read %s: rows %d to %d are not in a file of %d", r.f.Path(), rr.From, rr.To, r.rows)
	}
	c := &columnReader{r: r, want: slices.Clone(want), at: rr.From, to: rr.To, group: -1}
	for _, i := range want {
		if i < 0 || i >= len(r.cols) {
			return nil, fmt.Errorf("read %s: there is no column %d", r.f.Path(), i)
		}
		b := r.cols[i]
		var col column
		switch {
		case b.kind == kMissing:
			col = &missingColumn{dt: b.dt}
		case b.isFlat():
			col = newFlat(r, b, &c.decoded)
		default:
			col = newNested(r, b, &c.decoded)
		}
		c.cols = append(c.cols, col)
		c.empty = append(c.empty, nil)
	}
	return c, nil
}

// columnReader implements format.ColumnReader.
type columnReader struct {
	r      *Reader
	want   []int
	cols   []column
	empty  []arrow.Array // arrays without rows, made on demand
	at, to int64         // rows of the file
	group  int           // row group that cols stand in, -1 = none
	gend   int64         // its last row + 1
	err    error

	decoded int64 // pages

	some    func(from, to int64) bool // see Expect; nil = nothing is known
	without func(pages int64)
	late    bool      // see Late
	pages   *lateRuns // of the row group, when late
	runs    *runSet   // of the row group; nil = each column has a window of its own
}

var (
	_ format.Expecter    = (*columnReader)(nil)
	_ format.PageCounter = (*columnReader)(nil)
)

// PagesDecoded is format.PageCounter's.
func (c *columnReader) PagesDecoded() int64 { return c.decoded }

// Expect says which rows will be wanted. See format.Expecter.
func (c *columnReader) Expect(some func(from, to int64) bool, without func(pages int64)) {
	c.some, c.without = some, without
}

// Late says that what keep names is all that is known. See format.Expecter.
func (c *columnReader) Late() { c.late = true }

// Read returns the next n rows. See format.ColumnReader.
func (c *columnReader) Read(ctx context.Context, n int, keep []uint16) (out []arrow.Array, err error) {
	if c.err != nil {
		return nil, c.err
	}
	if n < 0 || int64(n) > c.to-c.at {
		return nil, fmt.Errorf("read %s: %d rows are asked for, %d are left", c.r.f.Path(), n, c.to-c.at)
	}
	if k := len(keep); k > 0 && int(keep[k-1]) >= n {
		return nil, fmt.Errorf("read %s: row %d of %d is asked for", c.r.f.Path(), keep[k-1], n)
	}
	defer func() {
		if p := recover(); p != nil { // the last resort: a bug met by odd bytes
			err = c.r.corrupt(-1, "decoding rows %d to %d went wrong: %v", c.at, c.at+int64(n), p)
		}
		if err != nil {
			c.err = err
		}
	}()
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	m := n
	if keep != nil {
		m = len(keep)
	}
	if m > 0 {
		for _, col := range c.cols {
			col.begin(m)
		}
	}
	if err := c.walk(ctx, n, keep); err != nil {
		return nil, err
	}
	out = make([]arrow.Array, len(c.cols))
	for i, col := range c.cols {
		if m == 0 {
			if c.empty[i] == nil {
				c.empty[i] = emptyArray(c.r.cols[c.want[i]].dt)
			}
			out[i] = c.empty[i]
			continue
		}
		if out[i], err = col.finish(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// walk consumes n rows, row group by row group.
func (c *columnReader) walk(ctx context.Context, n int, keep []uint16) error {
	base := 0
	for base < n {
		if c.group < 0 || c.at >= c.gend {
			if keep != nil && len(keep) == 0 {
				// Nothing more is wanted of this batch: the row group that
				// comes next need not be opened for it.
				c.at += int64(n - base)
				c.group = -1
				return nil
			}
			if err := c.enter(ctx); err != nil {
				return err
			}
		}
		k := int(min(int64(n-base), c.gend-c.at))
		part := keep
		if keep != nil {
			j := search(keep, base+k)
			part, keep = keep[:j:j], keep[j:]
			if part == nil {
				part = []uint16{}
			}
		}
		if c.pages != nil && (part == nil || len(part) > 0) {
			c.pages.want(c.r, c.group, c.at-c.r.meta.groups[c.group].first, k, part, base)
		}
		for _, col := range c.cols {
			if err := col.part(ctx, k, part, base); err != nil {
				return err
			}
		}
		base += k
		c.at += int64(k)
	}
	return nil
}

// enter moves to the row group that holds row at.
func (c *columnReader) enter(ctx context.Context) error {
	gs := c.r.meta.groups
	g := max(c.group, 0)
	for g < len(gs) && c.at >= gs[g].first+gs[g].rows {
		g++
	}
	for g > 0 && c.at < gs[g].first {
		g--
	}
	c.group, c.gend = g, gs[g].first+gs[g].rows
	c.runs.drop(math.MaxInt64)
	c.pages = nil
	runs, err := c.plan(ctx, g)
	if err != nil {
		return err
	}
	c.runs = runs
	for _, col := range c.cols {
		if err := col.start(ctx, g, runs, c.at-gs[g].first); err != nil {
			return err
		}
	}
	return nil
}

// plan decides how the bytes of row group g are read: together in a few runs
// when they are few, else each column for itself.
func (c *columnReader) plan(ctx context.Context, g int) (*runSet, error) {
	from := c.at - c.r.meta.groups[g].first
	to := min(c.to, c.gend) - c.r.meta.groups[g].first
	if c.late {
		l, err := c.newLate(ctx, g, from, to)
		if err != nil {
			return nil, err
		}
		c.pages = l
		return l.set, nil
	}
	var spans []span
	total := int64(0)
	for _, l := range c.r.leavesOf(c.want) {
		s := c.r.chunkSpan(g, l.col)
		locs, err := c.r.offsetIndex(ctx, g, l.col)
		if err != nil {
			return nil, err
		}
		if len(locs) > 0 {
			d := span{s.off, locs[0].off}
			if c.some != nil {
				wanted := c.expected(locs, g, from, to)
				if len(wanted) > 0 && d.end > d.off && d.end-d.off <= maxWindow {
					wanted = append(wanted, d)
				}
				for _, s := range wanted {
					spans = append(spans, s)
					total += s.end - s.off
				}
				continue
			}
			s = pagesOf(locs, from, to)
			if d.end > d.off {
				if d.end == s.off {
					s.off = d.off
				} else if d.end-d.off <= maxWindow {
					spans = append(spans, d)
					total += d.end - d.off
				}
			}
		}
		spans = append(spans, s)
		total += s.end - s.off
	}
	if total > groupBytes {
		if c.some != nil {
			return &runSet{runs: ownRuns(spans)}, nil
		}
		return nil, nil
	}
	return &runSet{runs: coalesce(spans)}, nil
}

// expected is where the pages with wanted rows of from..to lie.
func (c *columnReader) expected(locs []pageLoc, g int, from, to int64) (out []span) {
	first, rows := c.r.meta.groups[g].first, c.r.meta.groups[g].rows
	gone := int64(0)
	for i, l := range locs {
		next := rows
		if i+1 < len(locs) {
			next = locs[i+1].first
		}
		lo, hi := max(l.first, from), min(next, to)
		if lo >= hi {
			continue
		}
		if !c.some(first+lo, first+hi) {
			gone++
			continue
		}
		end := min(l.off+max(int64(l.size), headerGuess), c.r.size)
		if n := len(out); n > 0 && out[n-1].end >= l.off && end-out[n-1].off <= maxWindow {
			out[n-1].end = end
			continue
		}
		out = append(out, span{l.off, end})
	}
	if gone > 0 && c.without != nil {
		c.without(gone)
	}
	return out
}

// pagesOf is where the pages with rows from..to lie.
func pagesOf(locs []pageLoc, from, to int64) span {
	i := 0
	for i+1 < len(locs) && locs[i+1].first <= from {
		i++
	}
	j := i
	for j+1 < len(locs) && locs[j+1].first < to {
		j++
	}
	return span{locs[i].off, locs[j].off + int64(locs[j].size)}
}

// Close gives the buffers back.
func (c *columnReader) Close() error {
	for _, col := range c.cols {
		col.close()
	}
	c.runs.drop(math.MaxInt64)
	if c.err == nil {
		c.err = fmt.Errorf("read %s: the column reader is closed", c.r.f.Path())
	}
	return nil
}
