package parquet

import (
	"encoding/binary"
	"math"
)

// maxStatBytes: longer bounds than this are left out of the footer.
const maxStatBytes = 4096

// writeIndexes writes bloom filters, column indexes and offset indexes, each
// kind for all row groups together, before the footer.
func (w *Writer) writeIndexes() error {
	each := func(fn func(c *writtenChunk) []byte, off func(c *writtenChunk) (*int64, *int32)) error {
		for _, g := range w.groups {
			for _, c := range g.chunks {
				b := fn(c)
				if b == nil {
					continue
				}
				o, n := off(c)
				*o, *n = w.off, int32(len(b))
				if err := w.write(b); err != nil {
					return err
				}
			}
		}
		return nil
	}
	if err := each((*writtenChunk).bloomFilter, func(c *writtenChunk) (*int64, *int32) { return &c.bloomOff, &c.bloomLen }); err != nil {
		return err
	}
	column := func(c *writtenChunk) []byte { return c.columnIndex(w.o.truncate) }
	if err := each(column, func(c *writtenChunk) (*int64, *int32) { return &c.columnIndexOff, &c.columnIndexLen }); err != nil {
		return err
	}
	return each((*writtenChunk).offsetIndex, func(c *writtenChunk) (*int64, *int32) { return &c.offsetIndexOff, &c.offsetIndexLen })
}

func (c *writtenChunk) bloomFilter() []byte {
	if c.bloom == nil {
		return nil
	}
	t := twrite{}
	t.open(0)
	t.i32(1, int32(len(c.bloom)))
	for id := int16(2); id <= 4; id++ { // block, XXH64, uncompressed
		t.open(id)
		t.empty(1)
		t.close()
	}
	t.close()
	return append(t.b, c.bloom...)
}

// columnIndex is nil where pages have no trustworthy bounds: NaN, INT96.
func (c *writtenChunk) columnIndex(truncate int) []byte {
	if c.cmp == nil || c.nan {
		return nil
	}
	text := c.l.node.el.logical == logString
	cut := c.l.node.el.typ == pBytes
	bound := func(v []byte, upper bool) []byte {
		v = signedZero(c.l, v, upper)
		if cut {
			return truncated(v, truncate, upper, text)
		}
		return v
	}
	t := twrite{}
	t.open(0)
	t.list(1, ttTrue, len(c.pages))
	for _, p := range c.pages {
		if p.null {
			t.b = append(t.b, ttTrue)
		} else {
			t.b = append(t.b, ttFalse)
		}
	}
	t.list(2, ttBinary, len(c.pages))
	for _, p := range c.pages {
		t.elemBin(bound(p.lo, false))
	}
	t.list(3, ttBinary, len(c.pages))
	for _, p := range c.pages {
		t.elemBin(bound(p.hi, true))
	}
	t.i32(4, c.order())
	t.list(5, ttI64, len(c.pages))
	for _, p := range c.pages {
		t.zigzag(p.nulls)
	}
	t.close()
	return t.b
}

// order is the boundary order: 1 when minima and maxima of the pages that have
// any never fall, 2 when they never rise, else 0.
func (c *writtenChunk) order() int32 {
	up, down := true, true
	var last *pageInfo
	for i := range c.pages {
		p := &c.pages[i]
		if p.null {
			continue
		}
		if last != nil {
			a, b := c.cmp(last.lo, p.lo), c.cmp(last.hi, p.hi)
			up = up && a <= 0 && b <= 0
			down = down && a >= 0 && b >= 0
		}
		last = p
	}
	switch {
	case up:
		return 1
	case down:
		return 2
	}
	return 0
}

// signedZero: a zero bound of floats stands for both zeros.
func signedZero(l *leaf, v []byte, upper bool) []byte {
	switch {
	case l.node.el.typ == pFloat && len(v) == 4 && float32bits(int32(le32(v))) == 0:
		z := uint32(1) << 31
		if upper {
			z = 0
		}
		return binary.LittleEndian.AppendUint32(nil, z)
	case l.node.el.typ == pDouble && len(v) == 8 && float64bits(int64(le64(v))) == 0:
		z := math.Float64bits(math.Copysign(0, -1))
		if upper {
			z = 0
		}
		return binary.LittleEndian.AppendUint64(nil, z)
	}
	return v
}

func (c *writtenChunk) offsetIndex() []byte {
	t := twrite{}
	t.open(0)
	t.list(1, ttStruct, len(c.pages))
	for _, p := range c.pages {
		t.open(0)
		t.i64(1, c.dataOff+p.off)
		t.i32(2, p.size)
		t.i64(3, p.first)
		t.close()
	}
	t.close()
	return t.b
}

// writeFooter writes the FileMetaData, its length and the magic.
func (w *Writer) writeFooter() error {
	t := twrite{}
	t.open(0)
	t.i32(1, 1)
	t.list(2, ttStruct, len(w.els))
	for i := range w.els {
		t.element(&w.els[i])
	}
	t.i64(3, w.rows)
	t.list(4, ttStruct, len(w.groups))
	for i := range w.groups {
		w.groupMeta(&t, i)
	}
	t.str(6, createdBy)
	t.list(7, ttStruct, len(w.leaves))
	for range w.leaves {
		t.open(0)
		t.empty(1)
		t.close()
	}
	t.close()
	b := binary.LittleEndian.AppendUint32(t.b, uint32(len(t.b)))
	return w.write(append(b, "PAR1"...))
}

func (w *Writer) groupMeta(t *twrite, i int) {
	g := &w.groups[i]
	total, compressed := int64(0), int64(0)
	t.open(0)
	t.list(1, ttStruct, len(g.chunks))
	for _, c := range g.chunks {
		total += c.uncompressed
		compressed += c.compressed
		t.open(0)
		t.i64(2, c.start())
		c.meta(t, w.c.id)
		t.i64(4, c.offsetIndexOff)
		t.i32(5, c.offsetIndexLen)
		if c.columnIndexLen > 0 {
			t.i64(6, c.columnIndexOff)
			t.i32(7, c.columnIndexLen)
		}
		t.close()
	}
	t.i64(2, total)
	t.i64(3, g.rows)
	t.i64(5, g.chunks[0].start())
	t.i64(6, compressed)
	t.field(7, ttI16)
	t.zigzag(int64(int16(i)))
	t.close()
}

func (c *writtenChunk) start() int64 {
	if c.dictOff > 0 {
		return c.dictOff
	}
	return c.dataOff
}

// meta writes the ColumnMetaData.
func (c *writtenChunk) meta(t *twrite, codec int32) {
	plain, dict := int32(0), int32(0)
	for _, p := range c.pages {
		if p.enc == encPlain {
			plain++
		} else {
			dict++
		}
	}
	encs := []int32{encRLE}
	if dict > 0 {
		encs = append(encs, encPlainDict)
	}
	if plain > 0 {
		encs = append(encs, encPlain)
	}
	t.open(3)
	t.i32(1, c.l.node.el.typ)
	t.list(2, ttI32, len(encs))
	for _, e := range encs {
		t.zigzag(int64(e))
	}
	path := leafPath(c.l)
	t.list(3, ttBinary, len(path))
	for _, p := range path {
		t.elemBin([]byte(p))
	}
	t.i32(4, codec)
	t.i64(5, c.values)
	t.i64(6, c.uncompressed)
	t.i64(7, c.compressed)
	t.i64(9, c.dataOff)
	if c.dictOff > 0 {
		t.i64(11, c.dictOff)
	}
	if c.cmp != nil {
		c.statistics(t)
	}
	stats := []encodingStat{{pageDict, encPlainDict, min(dict, 1)}, {pageData, encPlainDict, dict}, {pageData, encPlain, plain}}
	n := 0
	for _, s := range stats {
		if s.count > 0 {
			stats[n] = s
			n++
		}
	}
	t.list(13, ttStruct, n)
	for _, s := range stats[:n] {
		t.open(0)
		t.i32(1, s.page)
		t.i32(2, s.enc)
		t.i32(3, s.count)
		t.close()
	}
	if c.bloomLen > 0 {
		t.i64(14, c.bloomOff)
		t.i32(15, c.bloomLen)
	}
	t.close()
}

// statistics writes the chunk's bounds: in the old fields too where their order,
// that of signed bytes, is the type's.
func (c *writtenChunk) statistics(t *twrite) {
	lo, hi := signedZero(c.l, c.lo, false), signedZero(c.l, c.hi, true)
	ok := c.bounded && !c.nan && len(lo)+len(hi) <= maxStatBytes
	el := c.l.node.el
	old := ok && (el.typ != pBytes && el.typ != pFixed)
	t.open(12)
	if old {
		t.bin(1, hi)
		t.bin(2, lo)
	}
	t.i64(3, c.nulls)
	if ok {
		t.bin(5, hi)
		t.bin(6, lo)
	}
	t.close()
}
