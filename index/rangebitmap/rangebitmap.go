// Package rangebitmap is Paimon's range bitmap index: the distinct values of a
// column in order, and bit slices of every row's rank among them. All integers
// are big-endian:
//
//	int32 length of the head, without these four bytes
//	head: byte version = 1 | int32 rows | int32 distinct values
//	      | least value | greatest value (when there are any) | int32 length of the dictionary
//	dictionary, see dictionary.go
//	int32 length of the head | byte version = 1 | byte n
//	      | int32 length of the bitmap of the rows that are not NULL
//	      | int32 8n | n times: int32 offset behind that bitmap, int32 length
//	bitmap of the rows that are not NULL | n slices
//
// A value is a byte (BOOLEAN, TINYINT), a big-endian integer of its width, the
// bits of a FLOAT or DOUBLE, an int64 for DECIMAL (unscaled) and TIMESTAMP
// (milliseconds up to precision 3, else microseconds), an int32 for TIME
// (milliseconds) and DATE, and for strings an int32 length with the bytes.
// Slice i holds the rows whose rank has bit i; n is the bits of the highest rank,
// at least 1, and 64 when all rows are NULL. Source: RangeBitmap.java,
// BitSliceIndexBitmap.java, KeyFactory.java.
package rangebitmap

import (
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strings"
	"sync"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/bitslice"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

const version = 1

// Kind is the kind "range-bitmap".
type Kind struct{}

var (
	_ index.Kind   = Kind{}
	_ index.Sorter = (*Index)(nil)
)

// Name returns "range-bitmap".
func (Kind) Name() string { return "range-bitmap" }

// Supports reports whether t is a CHAR, VARCHAR, STRING, BOOLEAN, integer, FLOAT,
// DOUBLE, DATE or TIME type, a DECIMAL of at most 18 or a TIMESTAMP of at most 6
// digits.
func (Kind) Supports(t types.Type) bool { _, ok := valueOf(t); return ok }

// value is how values of a type are held.
type value struct {
	t     types.Type
	codec *bitslice.Codec // nil: strings
	width int             // bytes; 0: strings
}

func valueOf(t types.Type) (value, bool) {
	v := value{t: t}
	switch t.Kind {
	case types.Text, types.Varchar, types.BpChar:
		return v, true
	case types.Bool, types.TinyInt:
		v.width = 1
	case types.Int2:
		v.width = 2
	case types.Int4, types.Float4, types.Date, types.Time:
		v.width = 4
	case types.Int8, types.Float8:
		v.width = 8
	case types.Numeric:
		if t.Prec > 18 {
			return v, false
		}
		v.width = 8
	case types.Timestamp, types.TimestampTZ:
		if t.Prec > 6 {
			return v, false
		}
		v.width = 8
	default:
		return v, false
	}
	var ok bool
	v.codec, ok = bitslice.CodecOf(t)
	return v, ok
}

// get decodes the bytes of one value of fixed width to its integer.
func (v *value) get(b []byte) int64 {
	switch v.t.Kind {
	case types.Bool:
		if b[0] == 1 {
			return 1
		}
		return 0
	case types.TinyInt:
		return int64(int8(b[0]))
	case types.Int2:
		return int64(int16(binary.BigEndian.Uint16(b)))
	case types.Float4:
		return bitslice.Order32(math.Float32frombits(binary.BigEndian.Uint32(b)))
	case types.Float8:
		return bitslice.Order64(math.Float64frombits(binary.BigEndian.Uint64(b)))
	}
	if v.width == 4 {
		return int64(int32(binary.BigEndian.Uint32(b)))
	}
	return int64(binary.BigEndian.Uint64(b))
}

// cut takes one value off b: its integer, or its string, which is a copy.
func (v *value) cut(b []byte) (n int64, s string, rest []byte, err error) {
	if v.codec != nil {
		if len(b) < v.width {
			return 0, "", nil, bitslice.Corrupt("value is cut short")
		}
		return v.get(b), "", b[v.width:], nil
	}
	if len(b) < 4 {
		return 0, "", nil, bitslice.Corrupt("string is cut short")
	}
	l := binary.BigEndian.Uint32(b)
	if b = b[4:]; uint64(l) > uint64(len(b)) {
		return 0, "", nil, bitslice.Corrupt("string of %d bytes in %d", l, len(b))
	}
	return 0, string(b[:l]), b[l:], nil
}

// Index is an open index. Only what a question needs is read, once. Safe for
// concurrent use.
type Index struct {
	value
	src      *window
	rows     uint32
	distinct uint32
	min, max key

	dict dictionary

	mu     sync.Mutex
	bsiAt  int64
	loaded bool              // of the slices' head
	parts  []part            // 0 is the bitmap of rows that are not NULL, then the slices
	maps   []*roaring.Bitmap // of parts; nil = not read
}

type part struct{ off, size int64 }

// key is one value: the integer, or the string.
type key struct {
	n int64
	s string
}

// Open reads the head.
func (Kind) Open(src index.Source, t types.Type) (index.FileIndex, error) {
	return open(src, t)
}

func open(src index.Source, t types.Type) (*Index, error) {
	v, ok := valueOf(t)
	if !ok {
		return nil, bitslice.Corrupt("range-bitmap over %v", t)
	}
	w, err := newWindow(src)
	if err != nil {
		return nil, err
	}
	x := &Index{value: v, src: w}
	head, at, err := w.head(0)
	if err != nil {
		return nil, err
	}
	if len(head) < 13 || head[0] != version {
		return nil, bitslice.Corrupt("range-bitmap head of %d bytes, version %d is known", len(head), version)
	}
	rows, distinct := int32(binary.BigEndian.Uint32(head[1:])), int32(binary.BigEndian.Uint32(head[5:]))
	if rows < 0 || distinct < 0 || distinct > rows {
		return nil, bitslice.Corrupt("%d values in %d rows", distinct, rows)
	}
	x.rows, x.distinct = uint32(rows), uint32(distinct)
	head = head[9:]
	if distinct > 0 {
		for _, k := range []*key{&x.min, &x.max} {
			if k.n, k.s, head, err = v.cut(head); err != nil {
				return nil, err
			}
		}
		if x.min.n > x.max.n || x.min.s > x.max.s {
			return nil, bitslice.Corrupt("least value above the greatest")
		}
	}
	if len(head) < 4 {
		return nil, bitslice.Corrupt("range-bitmap head is cut short")
	}
	size := int64(int32(binary.BigEndian.Uint32(head)))
	if size < 0 || at+size > w.size {
		return nil, bitslice.Corrupt("dictionary of %d bytes at %d of %d", size, at, w.size)
	}
	x.dict = dictionary{value: v, src: w, at: at, end: at + size, distinct: x.distinct}
	x.bsiAt = at + size
	return x, nil
}

// rank returns how many distinct values are below k.
func (x *Index) rank(k key) (uint32, error) {
	switch {
	case x.distinct == 0 || k.n <= x.min.n && k.s <= x.min.s:
		return 0, nil
	case k.n > x.max.n || k.s > x.max.s:
		return x.distinct, nil
	}
	return x.dict.rank(k)
}

// bitmaps returns the bitmap of rows that are not NULL, if asked for, and the
// slices from lowest on (the lower ones may be nil), reading what was not read.
func (x *Index) bitmaps(present bool, lowest int) (*roaring.Bitmap, []*roaring.Bitmap, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if err := x.loadHead(); err != nil {
		return nil, nil, err
	}
	want := func(i int) bool {
		if i == 0 {
			return present && x.maps[0] == nil
		}
		return i > lowest && x.maps[i] == nil
	}
	for i := 0; i < len(x.parts); i++ {
		if !want(i) {
			continue
		}
		// Neighbours are read in one go.
		j, end := i+1, x.parts[i].off+x.parts[i].size
		for j < len(x.parts) && want(j) && x.parts[j].off == end {
			end += x.parts[j].size
			j++
		}
		b, err := x.src.bytes(x.parts[i].off, end-x.parts[i].off)
		if err != nil {
			return nil, nil, err
		}
		for ; i < j; i++ {
			// The full slice expression: what follows is another bitmap's.
			n := int(x.parts[i].size)
			m, used, err := bitslice.ReadBitmap(b[:n:n], x.rows)
			if err != nil {
				return nil, nil, err
			}
			if used != n {
				return nil, nil, bitslice.Corrupt("bitmap of %d bytes in %d", used, n)
			}
			x.maps[i], b = m, b[n:]
		}
		i--
	}
	// The caller gets a copy: others may fill in what is missing meanwhile.
	return x.maps[0], append([]*roaring.Bitmap(nil), x.maps[1:]...), nil
}

func (x *Index) loadHead() error {
	if x.loaded {
		return nil
	}
	head, at, err := x.src.head(x.bsiAt)
	if err != nil {
		return err
	}
	if len(head) < 10 || head[0] != version {
		return bitslice.Corrupt("head of slices of %d bytes, version %d is known", len(head), version)
	}
	n, ebm, size := int(head[1]), int64(int32(binary.BigEndian.Uint32(head[2:]))), binary.BigEndian.Uint32(head[6:])
	if n > 64 || size != uint32(8*n) || len(head) < 10+8*n || ebm < 0 || at+ebm > x.src.size {
		return bitslice.Corrupt("head of %d slices", n)
	}
	if n < 64 && x.distinct > 0 && uint64(x.distinct-1)>>n != 0 {
		return bitslice.Corrupt("%d slices for %d values", n, x.distinct)
	}
	parts := make([]part, n+1)
	parts[0] = part{at, ebm}
	at += ebm
	total := ebm
	for i := range n {
		off := int64(int32(binary.BigEndian.Uint32(head[10+8*i:])))
		l := int64(int32(binary.BigEndian.Uint32(head[14+8*i:])))
		if total += l; off < 0 || l < 0 || at+off+l > x.src.size || total > x.src.size {
			return bitslice.Corrupt("slice of %d bytes at %d", l, off)
		}
		parts[i+1] = part{at + off, l}
	}
	x.parts, x.maps, x.loaded = parts, make([]*roaring.Bitmap, n+1), true
	return nil
}

// present returns the rows that are not NULL; not to be changed.
func (x *Index) present() (*roaring.Bitmap, error) {
	if x.distinct == 0 {
		return roaring.New(), nil
	}
	m, _, err := x.bitmaps(true, 64)
	return m, err
}

// in returns the rows whose rank is in one of the intervals.
func (x *Index) in(ivs []bitslice.Codes) (*roaring.Bitmap, error) {
	ivs = bitslice.Merge(ivs)
	switch {
	case len(ivs) == 0:
		return roaring.New(), nil
	case ivs[0].Lo == 0 && ivs[0].Hi >= uint64(x.distinct)-1:
		return x.present()
	}
	n, err := x.sliceCount()
	if err != nil {
		return nil, err
	}
	// Ranks end at distinct-1: up to there is up to any end.
	if last := &ivs[len(ivs)-1]; last.Hi >= uint64(x.distinct)-1 && n < 64 {
		last.Hi = max(last.Hi, 1<<n-1)
	}
	present, lowest := bitslice.Needs(ivs, n)
	p, sl, err := x.bitmaps(present, lowest)
	if err != nil {
		return nil, err
	}
	return bitslice.In(ivs, p, sl), nil
}

func (x *Index) sliceCount() (int, error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	err := x.loadHead()
	return len(x.parts) - 1, err
}

// Test judges comparisons, IN, BETWEEN, prefixes and IS [NOT] NULL.
func (x *Index) Test(l *predicate.Leaf) (index.Result, error) {
	var s selection
	var err error
	switch l.Op {
	case predicate.IsNull:
		p, err := x.present()
		if err != nil {
			return index.Result{}, err
		}
		return bitslice.Result(roaring.Flip(p, 0, uint64(x.rows)), x.rows, true), nil
	case predicate.IsNotNull:
		s = selection{not: true, exact: true}
	default:
		if x.codec != nil {
			s, err = x.numbers(l)
		} else {
			s, err = x.strings(l)
		}
		if err != nil || s.unknown {
			return index.Result{}, err
		}
	}
	m, err := x.in(s.ivs)
	if err != nil {
		return index.Result{}, err
	}
	if s.not {
		p, err := x.present()
		if err != nil {
			return index.Result{}, err
		}
		if m.IsEmpty() {
			m = p
		} else {
			m = roaring.AndNot(p, m)
		}
	}
	return bitslice.Result(m, x.rows, s.exact), nil
}

// selection is a leaf in ranks.
type selection struct {
	ivs     []bitslice.Codes
	not     bool
	exact   bool
	unknown bool
}

func (s *selection) add(from, to uint32) {
	if from < to {
		s.ivs = append(s.ivs, bitslice.Codes{Lo: uint64(from), Hi: uint64(to) - 1})
	}
}

func (x *Index) numbers(l *predicate.Leaf) (selection, error) {
	sel, ok := x.codec.Select(l)
	s := selection{not: sel.Not, exact: sel.Exact, unknown: !ok}
	for _, r := range sel.Ranges {
		from, err := x.rank(key{n: r.Lo})
		if err != nil {
			return s, err
		}
		to := x.distinct
		if r.Hi != math.MaxInt64 {
			if to, err = x.rank(key{n: r.Hi + 1}); err != nil {
				return s, err
			}
		}
		s.add(from, to)
	}
	return s, nil
}

// strings translates a leaf over strings. Each comparison becomes an interval
// from one string up to, not including, another.
//
// CHAR ignores trailing blanks, stored or not, and the index is in the order of
// the stored bytes. Let x be a constant without its trailing blanks. If no byte of
// it is below a blank, then v < x in SQL's sense just when it is in bytes; and
// what equals x in SQL's sense lies from x to x followed by '!', among others such
// as x and a tab.
func (x *Index) strings(l *predicate.Leaf) (selection, error) {
	s := selection{exact: true, unknown: true}
	char := l.Type.Kind == types.BpChar
	if char != (x.t.Kind == types.BpChar) || !char && l.Type.Kind != types.Text && l.Type.Kind != types.Varchar {
		return s, nil
	}
	args := make([]string, len(l.Args))
	for i, a := range l.Args {
		v, ok := a.(string)
		if !ok {
			return s, nil
		}
		if char {
			v = strings.TrimRight(v, " ")
			for j := range len(v) {
				if v[j] < ' ' {
					return s, nil
				}
			}
		}
		args[i] = v
	}
	need := 1
	switch l.Op {
	case predicate.Between:
		need = 2
	case predicate.In, predicate.NotIn:
		need = 0
	}
	if len(args) < need {
		return s, nil
	}
	after := func(v string) string { return v + "\x00" } // the next string
	if char {
		after = func(v string) string { return v + "!" }
	}
	var err error
	between := func(lo, hi string, open bool) {
		var from, to uint32
		if err == nil {
			from, err = x.rank(key{s: lo})
		}
		if to = x.distinct; err == nil && !open {
			to, err = x.rank(key{s: hi})
		}
		s.add(from, to)
	}
	s.unknown = false
	switch l.Op {
	case predicate.Eq, predicate.NotEq, predicate.In, predicate.NotIn:
		if l.Op == predicate.Eq || l.Op == predicate.NotEq {
			args = args[:1]
		}
		s.not = l.Op == predicate.NotEq || l.Op == predicate.NotIn
		if s.exact = !char; char && s.not {
			break
		}
		for _, a := range args {
			between(a, after(a), false)
		}
	case predicate.Lt:
		between("", args[0], false)
	case predicate.LtEq:
		between("", after(args[0]), false)
		s.exact = !char
	case predicate.Gt:
		lo := after(args[0])
		if char {
			lo = args[0]
		}
		between(lo, "", true)
		s.exact = !char
	case predicate.GtEq:
		between(args[0], "", true)
	case predicate.Between:
		between(args[0], after(args[1]), false)
		s.exact = !char
	case predicate.StartsWith:
		if char {
			s.unknown = true
			break
		}
		end, ok := successor(args[0])
		between(args[0], end, !ok)
	default:
		s.unknown = true
	}
	return s, err
}

// successor returns the least string above all that begin with p; false: none.
func successor(p string) (string, bool) {
	for len(p) > 0 && p[len(p)-1] == 0xff {
		p = p[:len(p)-1]
	}
	if p == "" {
		return "", false
	}
	return p[:len(p)-1] + string([]byte{p[len(p)-1] + 1}), true
}

// Top returns the rows of live that come first; see index.Sorter. Of CHAR columns
// it knows nothing.
func (x *Index) Top(n int, descending, nullsFirst bool, live *roaring.Bitmap) (*roaring.Bitmap, error) {
	if x.t.Kind == types.BpChar {
		return nil, nil
	}
	if n <= 0 {
		return roaring.New(), nil
	}
	present, err := x.present()
	if err != nil {
		return nil, err
	}
	nulls := func() *roaring.Bitmap {
		m := roaring.Flip(present, 0, uint64(x.rows))
		if live != nil {
			m.And(live)
		}
		return m
	}
	left := uint64(n)
	out := roaring.New()
	if nullsFirst {
		out = nulls()
		if k := out.GetCardinality(); k >= left {
			return out, nil
		} else {
			left -= k
		}
	}
	if live != nil {
		present = roaring.And(present, live)
	}
	if have := present.GetCardinality(); have > left {
		_, sl, err := x.bitmaps(false, 0)
		if err != nil {
			return nil, err
		}
		top := bitslice.Top(left, descending, present, sl)
		if top, err = x.zeros(top, present); err != nil {
			return nil, err
		}
		out.Or(top)
		return out, nil
	} else {
		out.Or(present)
		left -= have
	}
	if !nullsFirst && left > 0 {
		out.Or(nulls())
	}
	return out, nil
}

// zeros adds the rows that hold 0 to top when one of them is in it: -0 and 0 tie,
// and are two values here.
func (x *Index) zeros(top, present *roaring.Bitmap) (*roaring.Bitmap, error) {
	if x.t.Kind != types.Float4 && x.t.Kind != types.Float8 {
		return top, nil
	}
	from, err := x.rank(key{n: -1})
	if err != nil {
		return nil, err
	}
	to, err := x.rank(key{n: 1})
	if err != nil || to-from < 2 {
		return top, err
	}
	m, err := x.in([]bitslice.Codes{{Lo: uint64(from), Hi: uint64(to) - 1}})
	if err != nil {
		return nil, err
	}
	if m = roaring.And(m, present); m.Intersects(top) {
		return roaring.Or(top, m), nil
	}
	return top, nil
}

// window reads a source; its first bytes are kept, which hold the heads, or all of
// a small index.
type window struct {
	src   index.Source
	size  int64
	first []byte
}

const windowBytes = 4096

func newWindow(src index.Source) (*window, error) {
	w := &window{src: src, size: src.Size()}
	if w.size > math.MaxInt32 {
		return nil, bitslice.Corrupt("range-bitmap of %d bytes", w.size)
	}
	var err error
	w.first, err = w.bytes(0, min(w.size, windowBytes))
	return w, err
}

// bytes returns n bytes at off, which lie inside; they are not to be changed.
func (w *window) bytes(off, n int64) ([]byte, error) {
	if end := off + n; end <= int64(len(w.first)) {
		return w.first[off:end:end], nil
	}
	b := make([]byte, n)
	if k, err := w.src.ReadAt(b, off); k < len(b) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, err
	}
	return b, nil
}

// head returns a head that begins with its length, and where it ends.
func (w *window) head(at int64) ([]byte, int64, error) {
	if at+4 > w.size {
		return nil, 0, bitslice.Corrupt("head at %d of %d bytes", at, w.size)
	}
	b, err := w.bytes(at, 4)
	if err != nil {
		return nil, 0, err
	}
	n := int64(int32(binary.BigEndian.Uint32(b)))
	if at += 4; n < 0 || at+n > w.size {
		return nil, 0, bitslice.Corrupt("head of %d bytes at %d of %d", n, at, w.size)
	}
	b, err = w.bytes(at, n)
	return b, at + n, err
}
