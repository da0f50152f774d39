package parquet

import (
	"bytes"
	"encoding/binary"
	"hash/crc32"
	"hash/maphash"
	"math"
	"math/bits"
	"sync"
	"unicode/utf8"

	"github.com/cespare/xxhash/v2"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// leafWriter collects one column of the row group being written: levels and
// values of the page being filled, and finished pages.
type leafWriter struct {
	l   *leaf
	o   *writeOptions
	c   codec
	w   int // width of a PLAIN value, 0 = byte array or boolean
	cmp func(a, b []byte) int

	copyOf *leafWriter // the column whose bytes are this one's, which writes nothing itself

	// The page being filled.
	ones       int // entries that are present, before those in defs; only without NULLs so far
	defs, reps []uint8
	entries    int
	rows       int
	nulls      int64
	raw        int    // bytes its values take in PLAIN
	vals       []byte // PLAIN values, while there is no dictionary
	nbits      int    // booleans in vals
	idx        []uint32
	lo, hi     []byte
	loAt, hiAt uint64 // the first 8 bytes of lo and hi, for byte arrays
	bounded    bool
	nan        bool

	dict    *dictBuilder // nil: values are written plain
	useDict bool         // dictionaries are wanted at all

	// The chunk.
	out          []byte // finished pages
	pages        []pageInfo
	chunkRows    int64
	chunkVals    int64
	uncompressed int64
	chunkNulls   int64
	clo, chi     []byte
	cbounded     bool
	cnan         bool
	kept         *dictBuilder // the dictionary of pages that are finished
	keptN        int          // and how many of its entries they use
	bloom        []byte

	// The file.
	fileNulls int64
	flo, fhi  []byte
	fbounded  bool
	fnan      bool
	nanos     [2]int64 // least and greatest INT96, which has no statistics
	hasNanos  bool

	body    []byte
	head    twrite
	trans   []int32 // of the dictionary array below: its index -> ours, -1 = not yet
	transOf any
}

// pageInfo is what the indexes say of a finished page.
type pageInfo struct {
	off    int64 // in out
	size   int32
	first  int64
	nulls  int64
	null   bool // NULLs only
	lo, hi []byte
	enc    int32
}

// dictBuilder numbers distinct values in order of appearance.
type dictBuilder struct {
	plain []byte // the values in PLAIN
	offs  []int32
	n     int
	ints  intTable // width 4 and 8, and byte arrays of a few bytes
	strs  strTable // the rest

	known  bool   // there is a last one
	last   uint64 // the integer that was numbered last
	lastAt uint32 // and its number
	runs   int    // how often an integer differed from the one before it
}

// leafBuffers are the big slices of a leafWriter, kept from file to file.
type leafBuffers struct {
	defs, reps      []uint8
	vals, out, body []byte
	idx             []uint32
}

var leafPool = sync.Pool{New: func() any { return new(leafBuffers) }}

// maxPooled bytes of a slice are kept.
const maxPooled = 8 << 20

func (w *leafWriter) release() {
	b := &leafBuffers{defs: w.defs, reps: w.reps, idx: w.idx}
	for _, x := range []struct{ to, from *[]byte }{{&b.vals, &w.vals}, {&b.out, &w.out}, {&b.body, &w.body}} {
		if cap(*x.from) <= maxPooled {
			*x.to = *x.from
		}
	}
	w.defs, w.reps, w.vals, w.out, w.body, w.idx = nil, nil, nil, nil, nil, nil
	leafPool.Put(b)
}

func newLeafWriter(l *leaf, o *writeOptions, c codec) *leafWriter {
	b := leafPool.Get().(*leafBuffers)
	w := &leafWriter{
		l: l, o: o, c: c, w: l.conv.width(l.node.el), cmp: plainCompare(l),
		defs: b.defs[:0], reps: b.reps[:0], vals: b.vals[:0], out: b.out[:0], body: b.body[:0], idx: b.idx[:0],
	}
	w.useDict = o.dictionary(l) && l.node.el.typ != pBool
	w.startChunk()
	return w
}

func (w *leafWriter) startChunk() {
	w.out, w.pages = w.out[:0], nil
	w.chunkRows, w.chunkVals, w.uncompressed, w.chunkNulls = 0, 0, 0, 0
	w.clo, w.chi, w.cbounded, w.cnan = nil, nil, false, false
	w.kept, w.keptN = nil, 0
	w.trans, w.transOf = nil, nil
	w.dict = nil
	if w.useDict {
		w.dict = &dictBuilder{offs: []int32{0}}
	}
	w.bloom = nil
	if n := w.o.bloomBytes(w.l); n > 0 {
		w.bloom = make([]byte, n)
	}
}

// plainCompare orders PLAIN values (without length) as the type does; nil when
// there is no such order.
func plainCompare(l *leaf) func(a, b []byte) int {
	switch l.node.el.typ {
	case pBool:
		return bytes.Compare
	case pInt32:
		return func(a, b []byte) int { return cmpInt(int64(int32(le32(a))), int64(int32(le32(b)))) }
	case pInt64:
		return func(a, b []byte) int { return cmpInt(int64(le64(a)), int64(le64(b))) }
	case pFloat:
		return func(a, b []byte) int { return cmpFloat(float32bits(int32(le32(a))), float32bits(int32(le32(b)))) }
	case pDouble:
		return func(a, b []byte) int { return cmpFloat(float64bits(int64(le64(a))), float64bits(int64(le64(b)))) }
	case pBytes:
		return bytes.Compare
	case pFixed:
		return func(a, b []byte) int { // two's complement: the first byte is signed
			if a[0] != b[0] {
				return int(int8(a[0])) - int(int8(b[0]))
			}
			return bytes.Compare(a, b)
		}
	}
	return nil
}

func cmpInt(a, b int64) int {
	switch {
	case a < b:
		return -1
	case a > b:
		return 1
	}
	return 0
}

// bound widens the page's bounds by v, which is copied if kept.
func (w *leafWriter) bound(v []byte) {
	if !w.bounded {
		w.lo, w.hi, w.bounded = append(w.lo[:0], v...), append(w.hi[:0], v...), true
		return
	}
	if w.cmp(v, w.lo) < 0 {
		w.lo = append(w.lo[:0], v...)
	} else if w.cmp(v, w.hi) > 0 {
		w.hi = append(w.hi[:0], v...)
	}
}

// putFixed appends values of w.w bytes each.
func (w *leafWriter) putFixed(p []byte) {
	if len(p) == 0 {
		return
	}
	w.raw += len(p)
	w.boundFixed(p)
	if w.bloom != nil {
		for q := p; len(q) > 0; q = q[w.w:] {
			bloomInsert(w.bloom, xxhash.Sum64(q[:w.w]))
		}
	}
	if w.dict == nil {
		w.vals = append(w.vals, p...)
		return
	}
	d := w.dict
	switch w.w {
	case 4:
		for ; len(p) > 0; p = p[4:] {
			w.idx = append(w.idx, d.int(uint64(le32(p)), p[:4]))
		}
	case 8:
		for ; len(p) > 0; p = p[8:] {
			w.idx = append(w.idx, d.int(le64(p), p[:8]))
		}
	default:
		for ; len(p) > 0; p = p[w.w:] {
			w.idx = append(w.idx, d.str(p[:w.w], false))
		}
	}
}

// boundFixed finds the least and greatest of the values and then widens the
// bounds once.
func (w *leafWriter) boundFixed(p []byte) {
	if w.cmp == nil {
		return
	}
	switch w.l.node.el.typ {
	case pInt32:
		lo, hi := int32(le32(p)), int32(le32(p))
		for i := 4; i < len(p); i += 4 {
			v := int32(le32(p[i:]))
			lo, hi = min(lo, v), max(hi, v)
		}
		w.bound(binary.LittleEndian.AppendUint32(nil, uint32(lo)))
		w.bound(binary.LittleEndian.AppendUint32(nil, uint32(hi)))
	case pInt64:
		lo, hi := int64(le64(p)), int64(le64(p))
		for i := 8; i < len(p); i += 8 {
			v := int64(le64(p[i:]))
			lo, hi = min(lo, v), max(hi, v)
		}
		w.bound(binary.LittleEndian.AppendUint64(nil, uint64(lo)))
		w.bound(binary.LittleEndian.AppendUint64(nil, uint64(hi)))
	case pFloat, pDouble:
		for i := 0; i < len(p); i += w.w {
			v := p[i : i+w.w]
			var f float64
			if w.w == 4 {
				f = float32bits(int32(le32(v)))
			} else {
				f = float64bits(int64(le64(v)))
			}
			if math.IsNaN(f) {
				w.nan = true
				continue
			}
			w.bound(v)
		}
	default:
		for i := 0; i < len(p); i += w.w {
			w.bound(p[i : i+w.w])
		}
	}
}

// boundBytes is bound for byte arrays: the first eight bytes decide most often.
func (w *leafWriter) boundBytes(v []byte) {
	p := uint64(0)
	if len(v) >= 8 {
		p = binary.BigEndian.Uint64(v)
	} else {
		for i, c := range v {
			p |= uint64(c) << (56 - 8*i)
		}
	}
	if w.bounded && p > w.loAt && p < w.hiAt {
		return
	}
	w.bound(v)
	w.loAt, w.hiAt = head8(w.lo), head8(w.hi)
}

// head8 is the first eight bytes of b as a number, padded with zeros.
func head8(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	p := uint64(0)
	for i, c := range b {
		p |= uint64(c) << (56 - 8*i)
	}
	return p
}

// putAll appends byte arrays from..to of v, none of them NULL.
func (w *leafWriter) putAll(v *vec.StrView, from, to int) {
	if w.dict != nil || w.bloom != nil {
		for i := from; i < to; i++ {
			w.putBytes(v.At(i))
		}
		return
	}
	offs := v.Offs[from : to+1]
	total := int(offs[len(offs)-1]-offs[0]) + 4*(to-from)
	w.raw += total
	at := len(w.vals)
	w.vals = grown(w.vals, at+total)
	out := w.vals[at:]
	a := offs[0]
	for _, b := range offs[1:] {
		x := v.Data[a:b]
		w.boundBytes(x)
		binary.LittleEndian.PutUint32(out, uint32(len(x)))
		out = out[4+copy(out[4:], x):]
		a = b
	}
}

// putBytes appends one byte array.
func (w *leafWriter) putBytes(v []byte) {
	w.raw += 4 + len(v)
	w.boundBytes(v)
	if w.bloom != nil {
		bloomInsert(w.bloom, xxhash.Sum64(v))
	}
	if w.dict != nil {
		w.idx = append(w.idx, w.dict.str(v, true))
		return
	}
	w.vals = binary.LittleEndian.AppendUint32(w.vals, uint32(len(v)))
	w.vals = append(w.vals, v...)
}

// putIndexed appends value v, which is entry k of a dictionary array.
func (w *leafWriter) putIndexed(k int32, v []byte) {
	t := w.trans[k]
	if w.dict == nil || t < 0 {
		n := len(w.idx)
		w.putBytes(v)
		if w.dict != nil {
			w.trans[k] = int32(w.idx[n])
		}
		return
	}
	w.raw += 4 + len(v)
	w.boundBytes(v)
	w.idx = append(w.idx, uint32(t))
}

func (w *leafWriter) putBool(v bool) {
	b := byte(0)
	if v {
		b = 1
	}
	w.bound([]byte{b})
	if w.nbits&7 == 0 {
		w.vals = append(w.vals, 0)
	}
	w.vals[w.nbits>>3] |= b << (w.nbits & 7)
	w.nbits++
	w.raw = len(w.vals)
}

// str numbers a value that is not 4 or 8 bytes wide.
func (d *dictBuilder) str(v []byte, prefix bool) uint32 {
	var i uint32
	var fresh bool
	if prefix && len(v) < 8 {
		x := uint64(len(v)) << 56 // its bytes and their number
		for k, c := range v {
			x |= uint64(c) << (8 * k)
		}
		if d.known && x == d.last {
			return d.lastAt
		}
		i, fresh = d.ints.number(x, uint32(d.n))
		d.known, d.last, d.lastAt = true, x, i
	} else {
		i, fresh = d.strs.number(v, d, prefix)
	}
	if !fresh {
		return i
	}
	d.n++
	if prefix {
		d.plain = binary.LittleEndian.AppendUint32(d.plain, uint32(len(v)))
	}
	d.plain = append(d.plain, v...)
	d.offs = append(d.offs, int32(len(d.plain)))
	return i
}

func (d *dictBuilder) int(x uint64, v []byte) uint32 {
	if d.known && x == d.last {
		return d.lastAt // a changelog has most values twice in a row
	}
	d.runs++
	i, fresh := d.ints.number(x, uint32(d.n))
	d.known, d.last, d.lastAt = true, x, i
	if fresh {
		d.n++
		d.plain = append(d.plain, v...)
		d.offs = append(d.offs, int32(len(d.plain)))
	}
	return i
}

// at returns value i without its length.
func (d *dictBuilder) at(i uint32, prefix bool) []byte {
	b := d.plain[d.offs[i]:d.offs[i+1]]
	if prefix {
		b = b[4:]
	}
	return b
}

// strTable maps byte strings to their numbers in a dictionary by open addressing;
// slots hold number+1. The seed keeps values that someone chose from meeting in
// one slot.
type strTable struct {
	hashes []uint64
	nums   []uint32
	used   int
	seed   maphash.Seed
}

// number returns v's number in d, which is the next one when v is new.
func (t *strTable) number(v []byte, d *dictBuilder, prefix bool) (uint32, bool) {
	if 2*t.used >= len(t.nums) {
		t.grow()
	}
	h := maphash.Bytes(t.seed, v)
	mask := uint64(len(t.nums) - 1)
	for i := h & mask; ; i = (i + 1) & mask {
		n := t.nums[i]
		if n == 0 {
			t.hashes[i], t.nums[i] = h, uint32(d.n+1)
			t.used++
			return uint32(d.n), true
		}
		if t.hashes[i] == h && bytes.Equal(d.at(n-1, prefix), v) {
			return n - 1, false
		}
	}
}

func (t *strTable) grow() {
	if len(t.nums) == 0 {
		t.seed = maphash.MakeSeed()
	}
	old := *t
	n := max(2*len(old.nums), 64)
	t.hashes, t.nums = make([]uint64, n), make([]uint32, n)
	mask := uint64(n - 1)
	for j, num := range old.nums {
		if num == 0 {
			continue
		}
		i := old.hashes[j] & mask
		for t.nums[i] != 0 {
			i = (i + 1) & mask
		}
		t.hashes[i], t.nums[i] = old.hashes[j], num
	}
}

// intTable maps integers to numbers by open addressing; slots hold number+1.
type intTable struct {
	keys  []uint64
	nums  []uint32
	used  int
	shift uint
}

// number returns x's number, which is next when x is new.
func (t *intTable) number(x uint64, next uint32) (uint32, bool) {
	if 2*t.used >= len(t.keys) {
		t.grow()
	}
	mask := uint64(len(t.keys) - 1)
	for i := x * 0x9e3779b97f4a7c15 >> t.shift; ; i = (i + 1) & mask {
		switch {
		case t.nums[i] == 0:
			t.keys[i], t.nums[i] = x, next+1
			t.used++
			return next, true
		case t.keys[i] == x:
			return t.nums[i] - 1, false
		}
	}
}

func (t *intTable) grow() {
	old := *t
	n := max(2*len(old.keys), 32)
	t.keys, t.nums = make([]uint64, n), make([]uint32, n)
	t.shift = 65 - uint(bits.Len(uint(n)))
	mask := uint64(n - 1)
	for j, num := range old.nums {
		if num == 0 {
			continue
		}
		i := old.keys[j] * 0x9e3779b97f4a7c15 >> t.shift
		for t.nums[i] != 0 {
			i = (i + 1) & mask
		}
		t.keys[i], t.nums[i] = old.keys[j], num
	}
}

// pageBytes is about what the page being filled takes before compression.
func (w *leafWriter) pageBytes() int {
	n := len(w.vals)
	if w.dict != nil {
		n = len(w.idx) * int(indexWidth(w.dict.n)) / 8
	}
	return n + (len(w.defs)+len(w.reps))/8
}

// judge gives a dictionary up that is too big, or that most likely does not pay:
// in the first page, nearly every value of thousands is new. Of integers those in a
// row count as one when the rows are few, as in a changelog, which has a row before
// and after: zstd says in less what is the same, and no table grows beyond the
// processor's caches.
func (w *leafWriter) judge() {
	d := w.dict
	if d == nil {
		return
	}
	seen := len(w.idx)
	if seen < 4096 || len(w.pages) > 0 {
		seen = math.MaxInt
	} else if w.w > 0 && d.runs > seen/3 {
		seen = d.runs
	}
	if len(d.plain) > w.o.dictBytes || d.n > seen/20*19 {
		w.undict()
	}
}

// full reports whether the page should end here.
func (w *leafWriter) full() bool {
	return w.rows >= w.o.pageRows || w.pageBytes() >= w.o.pageBytes || w.raw >= 64*w.o.pageBytes
}

// undict writes plain values from the page being filled on: the dictionary got
// too big or does not pay. Pages that are finished keep the entries they use.
func (w *leafWriter) undict() {
	d := w.dict
	w.dict = nil
	w.vals = w.vals[:0]
	for _, i := range w.idx {
		w.vals = append(w.vals, d.plain[d.offs[i]:d.offs[i+1]]...)
	}
	w.idx = w.idx[:0]
}

// flushPage ends the page being filled, if it holds anything.
func (w *leafWriter) flushPage() error {
	if w.rows == 0 {
		return nil
	}
	b := w.body[:0]
	if w.l.node.rep > 0 {
		b = appendLevels(b, w.reps, w.l.node.rep)
	}
	if w.l.node.def > 0 {
		if len(w.defs) == 0 {
			b = appendOnes(b, w.ones, w.l.node.def)
		} else {
			b = appendLevels(b, w.defs, w.l.node.def)
		}
	}
	levels := len(b)
	if w.dict != nil {
		b = append(b, byte(indexWidth(w.dict.n)))
		b = appendHybrid(b, w.idx, indexWidth(w.dict.n))
		if len(w.pages) == 0 && len(b)-levels+len(w.dict.plain) >= w.raw {
			w.undict()
			b = b[:levels]
		}
	}
	enc := int32(encPlain)
	if w.dict != nil {
		enc = encPlainDict
		w.kept, w.keptN = w.dict, w.dict.n
	} else {
		b = append(b, w.vals...)
	}
	w.body = b
	p := pageInfo{off: int64(len(w.out)), first: w.chunkRows, nulls: w.nulls, null: w.nulls == int64(w.entries), enc: enc}
	if w.bounded {
		p.lo, p.hi = bytes.Clone(w.lo), bytes.Clone(w.hi)
	}
	if err := w.c.pack(b, func(packed []byte) {
		w.header(pageData, int32(w.entries), enc, b, packed)
		w.out = append(append(w.out, w.head.b...), packed...)
	}); err != nil {
		return err
	}
	p.size = int32(int64(len(w.out)) - p.off)
	w.uncompressed += int64(len(w.head.b) + len(b))
	w.pages = append(w.pages, p)
	w.endPage()
	return nil
}

// endPage adds the page's sums to the chunk's and starts the next.
func (w *leafWriter) endPage() {
	w.chunkRows += int64(w.rows)
	w.chunkVals += int64(w.entries)
	w.chunkNulls += w.nulls
	w.cnan = w.cnan || w.nan
	if w.bounded {
		w.clo, w.chi, w.cbounded = widen(w.cmp, w.cbounded, w.clo, w.chi, w.lo, w.hi)
	}
	w.defs, w.reps, w.vals, w.idx = w.defs[:0], w.reps[:0], w.vals[:0], w.idx[:0]
	w.entries, w.rows, w.nulls, w.raw, w.nbits, w.ones = 0, 0, 0, 0, 0, 0
	w.bounded, w.nan = false, false
}

func widen(cmp func(a, b []byte) int, have bool, lo, hi, lo2, hi2 []byte) ([]byte, []byte, bool) {
	if !have || cmp(lo2, lo) < 0 {
		lo = bytes.Clone(lo2)
	}
	if !have || cmp(hi2, hi) > 0 {
		hi = bytes.Clone(hi2)
	}
	return lo, hi, true
}

func appendLevels(b []byte, v []uint8, max int) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = appendHybrid(b, v, levelWidth(max))
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// appendOnes is appendLevels for n entries at level 1, which is present where a
// column is flat.
func appendOnes(b []byte, n, max int) []byte {
	at := len(b)
	b = append(b, 0, 0, 0, 0)
	b = binary.AppendUvarint(b, uint64(n)<<1)
	b = append(b, byte(max))
	binary.LittleEndian.PutUint32(b[at:], uint32(len(b)-at-4))
	return b
}

// header makes a page header in w.head.
func (w *leafWriter) header(typ, entries, enc int32, body, packed []byte) {
	h := &w.head
	*h = twrite{b: h.b[:0]}
	h.open(0)
	h.i32(1, typ)
	h.i32(2, int32(len(body)))
	h.i32(3, int32(len(packed)))
	if w.o.checksum {
		h.i32(4, int32(crc32.ChecksumIEEE(packed)))
	}
	if typ == pageDict {
		h.open(7)
		h.i32(1, entries)
		h.i32(2, enc)
		h.close()
	} else {
		h.open(5)
		h.i32(1, entries)
		h.i32(2, enc)
		h.i32(3, encRLE)
		h.i32(4, encRLE)
		h.close()
	}
	h.close()
}

// finishChunk ends the column chunk, whose first byte is at off of the file. It
// returns the chunk's bytes, valid until the next chunk, and its metadata.
func (w *leafWriter) finishChunk(off int64) ([][]byte, *writtenChunk, error) {
	if err := w.flushPage(); err != nil {
		return nil, nil, err
	}
	c := &writtenChunk{l: w.l, dataOff: off, values: w.chunkVals, nulls: w.chunkNulls, pages: w.pages, bloom: w.bloom}
	var parts [][]byte
	if w.kept != nil {
		body := w.kept.plain[:w.kept.offs[w.keptN]]
		var d []byte
		if err := w.c.pack(body, func(packed []byte) {
			w.header(pageDict, int32(w.keptN), encPlainDict, body, packed)
			d = append(bytes.Clone(w.head.b), packed...)
		}); err != nil {
			return nil, nil, err
		}
		parts = append(parts, d)
		w.uncompressed += int64(len(w.head.b) + len(body))
		c.dictOff, c.dataOff = off, off+int64(len(d))
	}
	parts = append(parts, w.out)
	c.compressed = c.dataOff - off + int64(len(w.out))
	c.uncompressed = w.uncompressed
	c.nan = w.cnan
	if w.cbounded {
		c.lo, c.hi, c.bounded = w.clo, w.chi, true
		w.flo, w.fhi, w.fbounded = widen(w.cmp, w.fbounded, w.flo, w.fhi, w.clo, w.chi)
	}
	c.cmp = w.cmp
	w.fnan = w.fnan || w.cnan
	w.fileNulls += w.chunkNulls
	return parts, c, nil
}

// stats are the column's statistics over the file.
func (w *leafWriter) stats() (lo, hi types.Datum) {
	if w.hasNanos {
		return w.nanos[0], w.nanos[1]
	}
	if !w.fbounded || w.fnan {
		return nil, nil
	}
	d := statReader{l: w.l, float: w.l.node.el.typ == pFloat || w.l.node.el.typ == pDouble}
	lo, _ = d.decode(w.flo)
	hi, _ = d.decode(w.fhi)
	return lo, hi
}

// truncated shortens a bound of a byte array to n bytes: the lower by cutting,
// the upper by cutting and adding one. Text stays valid UTF-8, as parquet-mr
// does it.
func truncated(v []byte, n int, upper, text bool) []byte {
	if n <= 0 || len(v) <= n {
		return v
	}
	if text && utf8.Valid(v) {
		for n > 0 && !utf8.RuneStart(v[n]) {
			n--
		}
		if !upper {
			return v[:n]
		}
		for n > 0 {
			r, size := utf8.DecodeLastRune(v[:n])
			n -= size
			if r++; r == 0xd800 {
				r = 0xe000
			}
			if r <= utf8.MaxRune && utf8.RuneLen(r) == size {
				return utf8.AppendRune(bytes.Clone(v[:n]), r)
			}
		}
		return v
	}
	if !upper {
		return v[:n]
	}
	out := bytes.Clone(v[:n])
	for i := n - 1; i >= 0; i-- {
		if out[i]++; out[i] != 0 {
			return out[:i+1]
		}
	}
	return v
}

// bloomInsert adds a hash to a split block bloom filter.
func bloomInsert(b []byte, h uint64) {
	at := (h >> 32) * uint64(len(b)/bloomBlock) >> 32 * bloomBlock
	for i, s := range bloomSalt {
		p := b[at+uint64(4*i):]
		binary.LittleEndian.PutUint32(p, le32(p)|1<<(uint32(h)*s>>27))
	}
}
