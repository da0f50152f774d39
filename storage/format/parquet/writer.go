package parquet

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// Writer writes one Parquet file as Java Paimon's reader wants it: v1 pages,
// PLAIN or dictionary values, definition and repetition levels in RLE, column
// and offset index.
type Writer struct {
	w      io.Writer
	o      *writeOptions
	c      codec
	schema types.Schema
	els    []element
	cols   []*columnWriter
	leaves []*leafWriter
	order  []int // of columns, those that cost most first; copies are left out

	off    int64
	rows   int64 // of finished row groups
	group  int64 // of the current one
	groups []writtenGroup
	err    error
}

type writtenGroup struct {
	chunks []*writtenChunk
	rows   int64
}

// writtenChunk is what the footer and the indexes say of a column chunk.
type writtenChunk struct {
	l                        *leaf
	dictOff, dataOff         int64 // dictOff 0 = no dictionary
	compressed, uncompressed int64
	values, nulls            int64
	pages                    []pageInfo
	lo, hi                   []byte
	bounded, nan             bool
	cmp                      func(a, b []byte) int
	bloom                    []byte

	bloomOff                       int64
	bloomLen                       int32
	columnIndexOff, offsetIndexOff int64
	columnIndexLen, offsetIndexLen int32
}

// writeOptions are the options of a table that shape the file.
type writeOptions struct {
	blockBytes int64
	pageBytes  int
	pageRows   int
	dictBytes  int
	checksum   bool
	truncate   int // column index
	all        map[string]string
	err        error
}

func newWriteOptions(o format.WriteOptions) (*writeOptions, error) {
	w := &writeOptions{all: o.Options}
	w.blockBytes = o.BlockSize
	if w.blockBytes <= 0 {
		w.blockBytes = w.size("parquet.block.size", w.size("file.block-size", 128<<20))
	}
	w.pageBytes = int(min(w.size("parquet.page.size", 1<<20), 1<<30))
	w.pageRows = int(w.size("parquet.page.row.count.limit", 20000))
	w.dictBytes = int(w.size("parquet.dictionary.page.size", 1<<20))
	w.truncate = int(w.size("parquet.columnindex.truncate.length", 64))
	w.checksum = w.flag("parquet.page.write-checksum.enabled", "", true)
	switch v := strings.ToLower(w.all["parquet.writer.version"]); v {
	case "", "v1", "parquet_1_0":
	default:
		// Java's reader gives wrong strings for the encodings of v2.
		return nil, &fileio.UnsupportedError{Feature: "parquet.writer.version " + v}
	}
	if w.err != nil {
		return nil, w.err
	}
	return w, nil
}

// size reads a number of bytes or rows: "1048576", "1 mb", "128mb".
func (w *writeOptions) size(key string, def int64) int64 {
	v, ok := w.all[key]
	if !ok {
		return def
	}
	s := strings.ToLower(strings.TrimSpace(v))
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(s[:i], 10, 64)
	unit, known := map[string]int64{"": 1, "b": 1, "bytes": 1, "k": 1 << 10, "kb": 1 << 10, "kibibytes": 1 << 10,
		"m": 1 << 20, "mb": 1 << 20, "mebibytes": 1 << 20, "g": 1 << 30, "gb": 1 << 30, "gibibytes": 1 << 30}[strings.TrimSpace(s[i:])]
	if err != nil || !known || n <= 0 || n > (1<<62)/unit {
		w.err = fmt.Errorf("option %s: %q is not a size", key, v)
		return def
	}
	return n * unit
}

// flag reads a boolean; key#col goes before key.
func (w *writeOptions) flag(key, col string, def bool) bool {
	v, ok := w.all[key+"#"+col]
	if !ok || col == "" {
		if v, ok = w.all[key]; !ok {
			return def
		}
	}
	b, err := strconv.ParseBool(strings.ToLower(v))
	if err != nil {
		w.err = fmt.Errorf("option %s: %q is not true or false", key, v)
		return def
	}
	return b
}

// dictionary reports whether a column may have dictionaries. Values of fixed length,
// which are numerics of more than 18 digits, have none in Java's files, and Java 1.4
// looks them up in a dictionary without their leading bytes: it would find no value
// in ours, and skip the row group.
func (w *writeOptions) dictionary(l *leaf) bool {
	return l.node.el.typ != pFixed && w.flag("parquet.enable.dictionary", strings.Join(leafPath(l), "."), true)
}

// bloomBytes is the size of a column's bloom filter, 0 for none: what the
// expected number of distinct values asks for at 1 % false positives, at most
// parquet.bloom.filter.max.bytes.
func (w *writeOptions) bloomBytes(l *leaf) int {
	col := strings.Join(leafPath(l), ".")
	if len(w.all) == 0 || !w.flag("parquet.bloom.filter.enabled", col, false) || l.node.el.typ == pBool || l.node.el.typ == pFixed {
		return 0 // of fixed length: as dictionary says
	}
	most := w.size("parquet.bloom.filter.max.bytes", 1<<20)
	n := most
	if v, ok := w.all["parquet.bloom.filter.expected.ndv#"+col]; ok {
		ndv, err := strconv.ParseInt(v, 10, 64)
		if err != nil || ndv <= 0 {
			w.err = fmt.Errorf("option parquet.bloom.filter.expected.ndv#%s: %q is not a number", col, v)
			return 0
		}
		n = min(ndv*2, most) // some 10 bits a value, then up to a power of two
	}
	size := int64(bloomBlock)
	for size < n && size*2 <= most {
		size *= 2
	}
	return int(size)
}

// Create starts a file. See format.Format.
func (Format) Create(_ context.Context, w io.Writer, s types.Schema, o format.WriteOptions) (format.Writer, error) {
	return create(w, s, o)
}

func create(out io.Writer, s types.Schema, fo format.WriteOptions) (*Writer, error) {
	o, err := newWriteOptions(fo)
	if err != nil {
		return nil, err
	}
	w := &Writer{w: out, o: o, schema: s}
	if w.els, err = elementsOf(s); err != nil {
		return nil, err
	}
	root, leaves, err := buildSchema(w.els)
	if err != nil {
		return nil, err
	}
	if len(leaves) == 0 {
		return nil, &fileio.UnsupportedError{Feature: "a Parquet file without columns"}
	}
	level := fo.Level
	if v, ok := o.all["parquet.compression.codec.zstd.level"]; ok {
		if level, err = strconv.Atoi(v); err != nil {
			return nil, fmt.Errorf("option parquet.compression.codec.zstd.level: %q is not a number", v)
		}
	}
	if w.c, err = newCodec(fo.Compression, level); err != nil {
		return nil, err
	}
	for i, f := range s {
		b, err := bindNode(root.children[i], f.Type, 0, 0, f.Name, 0)
		if err != nil {
			return nil, err
		}
		c := &columnWriter{b: b, f: f}
		b.walkLeaves(func(l *leaf) {
			lw := newLeafWriter(l, o, w.c)
			c.leaves = append(c.leaves, lw)
			w.leaves = append(w.leaves, lw)
		})
		w.cols = append(w.cols, c)
	}
	for i, of := range fo.CopyOf {
		if of >= 0 && of < i && w.alike(of, i) {
			w.cols[i].copyOf, w.cols[i].leaves[0].copyOf = of+1, w.cols[of].leaves[0]
		}
	}
	for _, costly := range []bool{true, false} {
		for i, c := range w.cols {
			if c.copyOf == 0 && (len(c.leaves) > 1 || c.leaves[0].w == 0) == costly {
				w.order = append(w.order, i)
			}
		}
	}
	if o.err != nil {
		return nil, o.err
	}
	return w, w.write([]byte("PAR1"))
}

// alike reports whether columns a and b are encoded to the same bytes when they
// hold the same values.
func (w *Writer) alike(a, b int) bool {
	x, y := w.cols[a], w.cols[b]
	if x.copyOf > 0 || x.b.kind != kLeaf || y.b.kind != kLeaf {
		return false
	}
	l, m := x.leaves[0], y.leaves[0]
	e, f := *l.l.node.el, *m.l.node.el
	e.name, e.fieldID, e.hasFieldID = f.name, f.fieldID, f.hasFieldID
	return e == f && l.l.conv == m.l.conv && l.l.node.def == m.l.node.def && l.l.node.rep == m.l.node.rep &&
		l.useDict == m.useDict && len(l.bloom) == len(m.bloom) && l.l.t.Kind == m.l.t.Kind
}

func leafPath(l *leaf) []string { return l.node.path() }

func (n *snode) path() []string {
	if n.parent == nil {
		return nil
	}
	return append(n.parent.path(), n.el.name)
}

func (w *Writer) write(b []byte) error {
	if w.err != nil {
		return w.err
	}
	n, err := w.w.Write(b)
	w.off += int64(n)
	if err != nil {
		w.err = fmt.Errorf("write Parquet: %w", err)
	}
	return w.err
}

// stepRows is how many rows of a column are written between looks at its page's
// size; blockRows how many of all columns between looks at the row group's.
const (
	stepRows  = 1024
	blockRows = 16 << 10
	// parallelCells make it worth to start another goroutine.
	parallelCells = 8 << 10
)

// Write appends n rows. See format.Writer.
func (w *Writer) Write(cols []arrow.Array, n int) error {
	if w.err != nil {
		return w.err
	}
	if len(cols) != len(w.cols) {
		return fmt.Errorf("write Parquet: %d columns are given, the file has %d", len(cols), len(w.cols))
	}
	for i, a := range cols {
		if a.Len() != n {
			return fmt.Errorf("write Parquet: column %s has %d rows, not %d", w.schema[i].Name, a.Len(), n)
		}
		if of := w.cols[i].copyOf; of > 0 && a != cols[of-1] {
			return fmt.Errorf("write Parquet: column %s is not the copy that it was said to be", w.schema[i].Name)
		}
	}
	block := blockRows
	if w.o.blockBytes < 16<<20 {
		block = stepRows
	}
	for at := 0; at < n; {
		k := min(n-at, block)
		if err := w.block(cols, at, at+k); err != nil {
			w.err = err
			return err
		}
		at += k
		w.group += int64(k)
		if w.Buffered() >= w.o.blockBytes {
			if err := w.endGroup(); err != nil {
				return err
			}
		}
	}
	return nil
}

// block writes rows of every column. Columns do not know of each other, so a big
// block is shared out to the cores, the costly ones first.
func (w *Writer) block(cols []arrow.Array, from, to int) error {
	one := func(i int) error {
		if err := w.cols[i].write(cols[i], from, to); err != nil {
			return fmt.Errorf("write Parquet: column %s: %w", w.schema[i].Name, err)
		}
		return nil
	}
	workers := min(cores.Count(), len(cols))
	if workers == 1 || (to-from)*len(cols) < parallelCells {
		for _, i := range w.order {
			if err := one(i); err != nil {
				return err
			}
		}
		return nil
	}
	var g errgroup.Group
	var next atomic.Int32
	for range workers {
		g.Go(func() error {
			for {
				k := int(next.Add(1)) - 1
				if k >= len(w.order) {
					return nil
				}
				if err := one(w.order[k]); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// write appends rows of one column, ending pages where they are full.
func (c *columnWriter) write(a arrow.Array, from, to int) error {
	for from < to {
		k := min(to-from, stepRows)
		for _, l := range c.leaves {
			k = min(k, l.o.pageRows-l.rows)
		}
		k = rowsOfBytes(a, from, k, c.leaves[0].o.pageBytes)
		if err := c.append(a, from, from+k); err != nil {
			return err
		}
		from += k
		for _, l := range c.leaves {
			l.judge()
			if l.full() {
				if err := l.flushPage(); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

// at is the chunk as another column's, by bytes further on in the file.
func (c *writtenChunk) at(l *leaf, by int64) *writtenChunk {
	d := *c
	d.l = l
	d.dataOff += by
	if d.dictOff > 0 {
		d.dictOff += by
	}
	return &d
}

func (w *Writer) endGroup() error {
	if w.group == 0 {
		return nil
	}
	g := writtenGroup{rows: w.group}
	type chunk struct {
		*writtenChunk
		parts [][]byte
		off   int64
	}
	made := map[*leafWriter]chunk{}
	for _, l := range w.leaves {
		var parts [][]byte
		var c *writtenChunk
		if from, ok := made[l.copyOf]; ok {
			parts, c = from.parts, from.at(l.l, w.off-from.off)
		} else {
			var err error
			if parts, c, err = l.finishChunk(w.off); err != nil {
				w.err = fmt.Errorf("write Parquet: %w", err)
				return w.err
			}
			made[l] = chunk{c, parts, w.off}
		}
		for _, p := range parts {
			if err := w.write(p); err != nil {
				return err
			}
		}
		g.chunks = append(g.chunks, c)
	}
	for _, l := range w.leaves {
		l.startChunk()
	}
	w.groups = append(w.groups, g)
	w.rows += w.group
	w.group = 0
	return nil
}

// EstimatedSize is the size of the file if it were closed now, about: what is
// not yet compressed counts as it is.
func (w *Writer) EstimatedSize() int64 {
	n := w.off + int64(len(w.leaves))*200
	for _, l := range w.leaves {
		if l.copyOf != nil {
			l = l.copyOf
		}
		n += l.buffered()
	}
	return n
}

// Buffered returns the bytes of the current row group, which are in memory.
func (w *Writer) Buffered() int64 {
	n := int64(0)
	for _, l := range w.leaves {
		n += l.buffered()
	}
	return n
}

func (w *leafWriter) buffered() int64 {
	n := int64(len(w.out) + w.pageBytes())
	if w.dict != nil {
		n += int64(len(w.dict.plain))
	}
	return n
}

// Flush ends the row group: what is buffered goes to the io.Writer.
func (w *Writer) Flush() error {
	if w.err != nil {
		return w.err
	}
	return w.endGroup()
}

// Close writes what is left, the indexes and the footer. It does not close the
// io.Writer. A nested column has no statistics, as with Java.
func (w *Writer) Close() ([]format.ColumnStats, error) {
	if w.err != nil {
		return nil, w.err
	}
	defer func() {
		for _, l := range w.leaves {
			l.release()
		}
	}()
	if err := w.endGroup(); err != nil {
		return nil, err
	}
	if err := w.writeIndexes(); err != nil {
		return nil, err
	}
	if err := w.writeFooter(); err != nil {
		return nil, err
	}
	w.err = errors.New("write Parquet: the file is closed")
	out := make([]format.ColumnStats, len(w.cols))
	for i, c := range w.cols {
		out[i].NullCount = -1
		if c.copyOf > 0 {
			out[i] = out[c.copyOf-1]
		} else if c.b.kind == kLeaf {
			out[i].NullCount = c.leaves[0].fileNulls
			out[i].Min, out[i].Max = c.leaves[0].stats()
		}
	}
	return out, nil
}
