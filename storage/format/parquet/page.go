package parquet

import (
	"context"
	"errors"
	"fmt"
	"hash/crc32"
	"math/bits"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// page is where a column stands within the current page of its chunk.
//
// A page is first only known by its place and number of rows; it is read,
// decompressed and decoded when the first row of it is wanted. Rows that are
// skipped before that, or between wanted ones, are counted in skipped and made
// up for when the next row is wanted.
type page struct {
	off     int64 // of its header; for messages
	rows    int   // rows in it, -1 while unknown
	left    int   // rows not yet consumed
	skipped int   // rows consumed that the decoders do not know of
	loaded  bool
	at      int64 // position in the file of the body, size bytes
	hdr     pageHeader
	hasHdr  bool
	cached  []byte // the inflated page, when the cache had it
	spans   bool   // a row may continue from the page before (v1 without an index)

	entries  int // levels not yet read
	def, rep hybrid
	hasDef   bool
	hasRep   bool
	vals     pageVals
}

// chunkReader walks the pages of one column in one row group.
type chunkReader struct {
	r    *Reader
	leaf *leaf
	sink sink
	win  window

	decoded *int64 // counts the pages that were opened; the column reader's

	group   int
	meta    *chunkMeta
	idx     []pageLoc // nil: pages are found by walking
	next    int       // of idx
	at      int64     // walking: where the next page header is
	end     int64
	rows    int64 // rows of the row group that lie in pages not yet opened
	dict    any
	hasDict bool

	pg      page
	scratch []byte // the decompressed page
}

// start goes to the pages of row group g and returns how many rows are to be
// passed over to get to row from of it.
func (c *chunkReader) start(ctx context.Context, g int, runs *runSet, from int64) (int64, error) {
	c.group = g
	c.meta = &c.r.meta.groups[g].cols[c.leaf.col]
	c.rows = c.r.meta.groups[g].rows
	s := c.r.chunkSpan(g, c.leaf.col)
	c.at, c.end = s.off, s.end
	c.hasDict, c.dict = false, nil
	c.win.r = c.r
	c.win.reset(runs, s.end)
	c.pg = page{}
	var err error
	if c.idx, err = c.r.offsetIndex(ctx, g, c.leaf.col); err != nil {
		return 0, err
	}
	c.next = 0
	if c.idx != nil {
		i, found := slices.BinarySearchFunc(c.idx, from, func(l pageLoc, row int64) int {
			switch {
			case l.first < row:
				return -1
			case l.first > row:
				return 1
			}
			return 0
		})
		if !found {
			i--
		}
		c.next = max(i, 0)
		c.rows -= c.idx[c.next].first
		from -= c.idx[c.next].first
	}
	return from, nil
}

// skipRows passes over n rows of a flat column, by whole pages where it can.
func (c *chunkReader) skipRows(ctx context.Context, n int64) error {
	for n > 0 {
		if err := c.open(ctx); err != nil {
			return err
		}
		k := int(min(n, int64(c.pg.left)))
		c.pass(k)
		n -= int64(k)
	}
	return nil
}

// pass consumes k <= left rows of the current page without looking at them.
func (c *chunkReader) pass(k int) {
	c.pg.left -= k
	c.pg.skipped += k
}

// open makes sure that the current page has rows left.
func (c *chunkReader) open(ctx context.Context) error {
	for c.pg.left == 0 {
		if err := c.nextPage(ctx); err != nil {
			return err
		}
	}
	return nil
}

func (c *chunkReader) corrupt(off int64, err error) error {
	var u *fileio.UnsupportedError
	var k *fileio.CorruptionError
	var rd *readError
	if errors.As(err, &u) || errors.As(err, &k) || errors.As(err, &rd) || errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		return err
	}
	return &fileio.CorruptionError{Path: c.r.f.Path(), Offset: off, Reason: "column " + c.leaf.node.el.name, Err: err}
}

func (c *chunkReader) corruptf(off int64, format string, args ...any) error {
	return c.corrupt(off, fmt.Errorf(format, args...))
}

// nextPage moves to the next data page without reading its body.
func (c *chunkReader) nextPage(ctx context.Context) error {
	if c.rows <= 0 && (c.flat() || c.idx != nil) {
		return c.corruptf(c.at, "pages hold fewer rows than the row group")
	}
	if c.idx != nil {
		return c.nextIndexed()
	}
	for {
		h, off, err := c.header(ctx)
		if err != nil {
			return err
		}
		body := c.at
		if int64(h.compressed) > c.end-body {
			return c.corruptf(off, "a page of %d bytes does not fit its column chunk", h.compressed)
		}
		c.at += int64(h.compressed)
		switch h.typ {
		case pageDict:
			if c.pg.hasHdr {
				return c.corruptf(off, "a dictionary page is not the first page")
			}
			continue // read when an index into it is met
		case pageData, pageDataV2:
		default:
			continue
		}
		rows := int(h.values)
		if c.flat() {
			if int64(rows) > c.rows {
				return c.corruptf(off, "pages hold more rows than the row group")
			}
		} else if h.typ == pageDataV2 {
			rows = int(h.rows)
			if int64(rows) > c.rows {
				return c.corruptf(off, "pages hold more rows than the row group")
			}
		} else {
			rows = -1
		}
		c.pg = page{off: off, rows: rows, left: rows, at: body, hdr: h, hasHdr: true}
		if rows < 0 {
			// Counting the rows takes the repetition levels; nested does that.
			c.pg.left, c.pg.spans = 1, true
			return nil
		}
		c.rows -= int64(rows)
		if rows > 0 {
			return nil
		}
	}
}

// flat reports whether a page has as many rows as values.
func (c *chunkReader) flat() bool { return c.leaf.node.rep == 0 }

func (c *chunkReader) nextIndexed() error {
	if c.next >= len(c.idx) {
		return c.corruptf(c.at, "pages hold fewer rows than the row group")
	}
	l := c.idx[c.next]
	c.next++
	end := c.r.meta.groups[c.group].rows
	if c.next < len(c.idx) {
		end = c.idx[c.next].first
	}
	rows := end - l.first
	if rows <= 0 && c.next < len(c.idx) {
		return nil
	}
	if rows <= 0 || rows > c.rows || rows > 1<<31-1 {
		return c.corruptf(l.off, "the offset index is out of order")
	}
	c.at = l.off
	c.pg = page{off: l.off, rows: int(rows), left: int(rows)}
	c.rows -= rows
	return nil
}

// headerGuess is how many bytes of a page are looked at first.
const headerGuess = 256

// header reads the page header at c.at and moves c.at behind it.
func (c *chunkReader) header(ctx context.Context) (pageHeader, int64, error) {
	off := c.at
	// A header has 20 to 60 bytes, more when it carries statistics.
	for n := int64(headerGuess); ; n *= 8 {
		left := c.end - off
		if left <= 0 {
			return pageHeader{}, off, c.corruptf(off, "the column chunk ends before its last page")
		}
		k := min(n, left)
		b, err := c.win.get(ctx, off, int(k))
		if err != nil {
			return pageHeader{}, off, err
		}
		if int64(len(b)) > left {
			b = b[:left]
		}
		h, err := parsePageHeader(b)
		if errors.Is(err, errShort) && k < left && n < 1<<24 {
			continue
		}
		if err != nil {
			return h, off, c.corrupt(off, err)
		}
		c.at = off + int64(h.size)
		return h, off, nil
	}
}

// load reads and opens the current page and makes up for skipped rows of a flat
// column.
func (c *chunkReader) load(ctx context.Context) error {
	p := &c.pg
	if !p.loaded {
		if !p.hasHdr {
			if c.next == 1 && c.at > c.r.chunkSpan(c.group, c.leaf.col).off && !c.leaf.levelsOnly {
				// The dictionary lies before the first page: read both at once.
				if err := c.loadDict(ctx); err != nil {
					return err
				}
			}
			var h pageHeader
			var e *cachedPage
			if c.meta.codec != codecNone {
				e = c.r.pages.get(c.pageKey(c.at))
			}
			if e != nil {
				h, c.at, p.cached = e.hdr, e.at, e.data
			} else {
				var err error
				if h, _, err = c.header(ctx); err != nil {
					return err
				}
			}
			if h.typ != pageData && h.typ != pageDataV2 {
				return c.corruptf(p.off, "the offset index points at a page of type %d", h.typ)
			}
			if int64(h.compressed) > c.end-c.at {
				return c.corruptf(p.off, "a page of %d bytes does not fit its column chunk", h.compressed)
			}
			if c.flat() && int(h.values) != p.rows {
				return c.corruptf(p.off, "the page has %d values, the offset index %d rows", h.values, p.rows)
			}
			p.hdr, p.hasHdr, p.at = h, true, c.at
			c.at += int64(h.compressed)
		}
		if err := c.loadBody(ctx); err != nil {
			return c.corrupt(p.off, err)
		}
		p.loaded = true
		*c.decoded++
	}
	return nil
}

// catchUp makes up for rows of a flat page that were passed over.
func (c *chunkReader) catchUp() error {
	p := &c.pg
	n := p.skipped
	if n == 0 {
		return nil
	}
	p.skipped = 0
	if p.hasDef {
		var err error
		if n, err = p.def.countOnes(n); err != nil {
			return err
		}
	}
	return p.vals.skip(n)
}

// body returns the stored bytes of a page, checked against its CRC.
func (c *chunkReader) body(ctx context.Context, h *pageHeader, at int64) ([]byte, error) {
	if h.compressed == 0 {
		return nil, nil
	}
	b, err := c.win.get(ctx, at, int(h.compressed))
	if err != nil {
		return nil, err
	}
	b = b[:h.compressed:h.compressed]
	if h.hasCRC && !c.r.noCRC && crc32.ChecksumIEEE(b) != h.crc {
		return nil, fmt.Errorf("the page's checksum does not match")
	}
	return b, nil
}

// inflate returns the n bytes that b holds, in the page scratch unless stored.
func (c *chunkReader) inflate(b []byte, n int) ([]byte, error) {
	if c.meta.codec == codecNone {
		if len(b) != n {
			return nil, errSize
		}
		return b, nil
	}
	if n == 0 {
		return nil, nil
	}
	if c.scratch == nil && n <= maxWindow {
		c.scratch = getBuf(n)
	}
	out, err := decompress(c.scratch, b, c.meta.codec, n)
	if err != nil {
		return nil, err
	}
	c.scratch = out
	return out, nil
}

func (c *chunkReader) pageKey(off int64) pageKey {
	return pageKey{c.r.f.Path(), c.r.size, off}
}

// inflatePage is inflate of a whole v1 page through the cache.
func (c *chunkReader) inflatePage(raw []byte) ([]byte, error) {
	p := &c.pg
	n := int(p.hdr.uncompressed)
	if p.cached != nil {
		return p.cached, nil
	}
	if c.meta.codec == codecNone || n == 0 || c.idx == nil { // without an index pages are not looked up
		return c.inflate(raw, n)
	}
	k := c.pageKey(p.off)
	if !c.r.pages.admits(k, n) {
		return c.inflate(raw, n)
	}
	b, err := decompress(nil, raw, c.meta.codec, n)
	if err != nil {
		return nil, err
	}
	b = b[:len(b):len(b)]
	c.r.pages.put(k, &cachedPage{p.hdr, p.at, b})
	return b, nil
}

func (c *chunkReader) loadBody(ctx context.Context) error {
	p := &c.pg
	h := &p.hdr
	if (h.enc == encPlainDict || h.enc == encRLEDict) && !c.leaf.levelsOnly {
		// Before the body, as both may come through the same window.
		if err := c.loadDict(ctx); err != nil {
			return err
		}
	}
	var raw []byte
	if p.cached == nil {
		var err error
		if raw, err = c.body(ctx, h, p.at); err != nil {
			return err
		}
	}
	p.entries = int(h.values)
	p.hasDef = c.leaf.node.def > 0
	p.hasRep = c.leaf.node.rep > 0
	var b []byte
	var err error
	if h.typ == pageDataV2 {
		b, err = c.loadV2(raw)
	} else {
		b, err = c.loadV1(raw)
	}
	if err != nil {
		return err
	}
	if c.leaf.levelsOnly {
		return nil
	}
	return c.openValues(b, int(h.values))
}

func levelWidth(max int) uint { return uint(bits.Len(uint(max))) }

// loadV1 inflates a v1 page, whose levels are compressed with its values.
func (c *chunkReader) loadV1(raw []byte) ([]byte, error) {
	p := &c.pg
	h := &p.hdr
	b, err := c.inflatePage(raw)
	if err != nil {
		return nil, err
	}
	if p.hasRep {
		if b, err = levelsV1(&p.rep, b, h.repEnc, c.leaf.node.rep, int(h.values)); err != nil {
			return nil, err
		}
	}
	if p.hasDef {
		if b, err = levelsV1(&p.def, b, h.defEnc, c.leaf.node.def, int(h.values)); err != nil {
			return nil, err
		}
	}
	return b, nil
}

// levelsV1 opens levels that lead b: RLE behind their length in four bytes, or
// the deprecated BIT_PACKED, whose length follows from the number of values.
func levelsV1(l *hybrid, b []byte, enc int32, max, n int) ([]byte, error) {
	w := levelWidth(max)
	switch enc {
	case encRLE:
		if len(b) < 4 {
			return nil, errLevels
		}
		k := uint64(le32(b))
		if k > uint64(len(b)-4) {
			return nil, errLevels
		}
		l.init(b[4:4+k], w)
		return b[4+k:], nil
	case encBitPacked:
		k := (n*int(w) + 7) / 8
		if k > len(b) {
			return nil, errLevels
		}
		l.initPacked(lsbFirst(b[:k], w, n), w, n)
		return b[k:], nil
	}
	return nil, fmt.Errorf("levels have encoding %d", enc)
}

// loadV2 inflates a v2 page, whose levels lie before the compressed values.
func (c *chunkReader) loadV2(raw []byte) ([]byte, error) {
	p := &c.pg
	h := &p.hdr
	if int64(h.repLen)+int64(h.defLen) > int64(len(raw)) || int64(h.repLen)+int64(h.defLen) > int64(h.uncompressed) {
		return nil, errLevels
	}
	if p.hasRep {
		p.rep.init(raw[:h.repLen], levelWidth(c.leaf.node.rep))
	}
	if p.hasDef {
		p.def.init(raw[h.repLen:h.repLen+h.defLen], levelWidth(c.leaf.node.def))
	}
	lv := h.repLen + h.defLen
	b := raw[lv:]
	if !h.compressedV2 {
		if len(b) != int(h.uncompressed-lv) {
			return nil, errSize
		}
		return b, nil
	}
	return c.inflate(b, int(h.uncompressed-lv))
}

// openValues looks at the encoding of the values in b, of which there are at
// most n.
func (c *chunkReader) openValues(b []byte, n int) error {
	v := &c.pg.vals
	*v = pageVals{}
	el := c.leaf.node.el
	enc := c.pg.hdr.enc
	if enc == encPlainDict || enc == encRLEDict {
		if len(b) == 0 { // no values in this page
			return nil
		}
		w := uint(b[0])
		if w > 32 {
			return errWidth
		}
		v.form, v.dict = formDict, c.dict
		v.idx.init(b[1:], w)
		return nil
	}
	return setValues(v, b, enc, el, c.leaf.conv, n)
}

// setValues opens values of any encoding but the dictionary's.
func setValues(v *pageVals, b []byte, enc int32, el *element, cv conv, n int) error {
	w := cv.width(el)
	var err error
	switch {
	case el.typ == pBool:
		return setBools(v, b, enc, n)
	case enc == encPlain && el.typ == pBytes:
		v.form, v.b, v.n = formPlain, b, n
	case enc == encPlain:
		v.form, v.b, v.w, v.n = formFixed, b, w, len(b)/w
	case enc == encDelta && (el.typ == pInt32 || el.typ == pInt64):
		v.form, v.w = formFixed, w
		v.b, v.n, err = plainOfDelta(b, w, n)
	case enc == encByteStream && el.typ != pBytes && el.typ != pInt96:
		v.form, v.w = formFixed, w
		v.b, v.n = unsplit(b, w)
	case enc == encDeltaLength && el.typ == pBytes:
		v.form = formOffs
		v.offs, v.b, err = deltaLengths(b, n)
		v.n = len(v.offs) - 1
	case enc == encDeltaBytes && (el.typ == pBytes || el.typ == pFixed):
		v.form = formOffs
		v.offs, v.b, err = deltaBytes(b, n)
		v.n = len(v.offs) - 1
		if err == nil && el.typ == pFixed {
			err = fixedOfOffs(v, w)
		}
	default:
		return fmt.Errorf("physical type %s has encoding %d", physName(el.typ), enc)
	}
	if err != nil {
		return err
	}
	if el.typ == pBytes && cv == cvDecBE {
		return decimalsOfBytes(v)
	}
	return nil
}

func setBools(v *pageVals, b []byte, enc int32, n int) error {
	switch enc {
	case encPlain:
		v.form, v.b, v.n = formBits, b, len(b)*8
		return nil
	case encRLE:
		// Four bytes of length, then the hybrid. Unfolded by what is there: a
		// page of nothing but one run may claim any number of values.
		if len(b) < 4 || uint64(le32(b)) > uint64(len(b)-4) {
			return errValues
		}
		var h hybrid
		h.init(b[4:4+le32(b)], 1)
		v.form = formBits
		for n > 0 {
			if h.left == 0 && h.next() != nil {
				break // NULLs: fewer values than entries
			}
			k := min(h.left, n)
			if v.n+k > maxDeltaBytes {
				return errTooMuch
			}
			v.b = append(v.b, make([]byte, (v.n+k+7)/8-len(v.b))...)
			if _, err := h.ones(v.b, v.n, k); err != nil {
				return err
			}
			v.n += k
			n -= k
		}
		return nil
	}
	return fmt.Errorf("physical type BOOLEAN has encoding %d", enc)
}

// fixedOfOffs checks that all values have w bytes.
func fixedOfOffs(v *pageVals, w int) error {
	for i := 0; i < v.n; i++ {
		if int(v.offs[i+1]-v.offs[i]) != w {
			return errNegLen
		}
	}
	v.form, v.w = formFixed, w
	return nil
}

// decimalsOfBytes gives byte array decimals one width of 16 bytes.
func decimalsOfBytes(v *pageVals) error {
	var out []byte
	put := func(q []byte) error {
		d, err := decFromBE(q)
		if err != nil {
			return err
		}
		out = be64(be64(out, uint64(d.hi)), d.lo)
		return nil
	}
	if v.form == formOffs {
		for i := 0; i < v.n; i++ {
			if err := put(v.b[v.offs[i]:v.offs[i+1]]); err != nil {
				return err
			}
		}
	} else {
		b := v.b
		for i := 0; i < v.n && len(b) > 0; i++ {
			if len(b) < 4 || uint64(le32(b)) > uint64(len(b)-4) {
				return errNegLen
			}
			l := 4 + int(le32(b))
			if err := put(b[4:l]); err != nil {
				return err
			}
			b = b[l:]
		}
	}
	*v = pageVals{form: formFixed, b: out, w: 16, n: len(out) / 16}
	return nil
}

// loadDict makes the chunk's dictionary available; it is read once per Reader.
func (c *chunkReader) loadDict(ctx context.Context) error {
	if c.hasDict {
		return nil
	}
	d, err := c.r.dictionary(ctx, c.group, c.leaf, c.sink, &c.win)
	if err != nil {
		return err
	}
	c.dict, c.hasDict = d, true
	return nil
}

func (c *chunkReader) close() {
	putBuf(c.win.buf)
	putBuf(c.scratch)
	c.win.buf, c.scratch = nil, nil
	c.pg = page{}
	c.rows = 0
}
