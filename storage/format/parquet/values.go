package parquet

import (
	"encoding/binary"
	"slices"
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// How the values of a page lie in memory, once its encoding has been looked at.
type valueForm uint8

const (
	formNone  valueForm = iota // no values
	formFixed                  // w bytes each
	formBits                   // a bitmap
	formPlain                  // uint32 length and bytes each
	formOffs                   // offsets into bytes
	formDict                   // indices into the chunk's dictionary
)

// pageVals are the non-NULL values of the current page and how many of them
// have been consumed.
type pageVals struct {
	form valueForm
	b    []byte
	w    int
	n    int // values there are; of formPlain and formDict only known at the end
	pos  int // values consumed
	at   int // formPlain: byte position of value pos
	offs []int32
	idx  hybrid
	dict any // the chunk's dictionary as the sink made it
}

// skip passes over n values.
func (v *pageVals) skip(n int) error {
	if n == 0 {
		return nil
	}
	switch v.form {
	case formDict:
		if err := v.idx.skip(n); err != nil {
			return err
		}
	case formPlain:
		if err := v.pass(n); err != nil {
			return err
		}
	default:
		if n > v.n-v.pos {
			return errValues
		}
	}
	v.pos += n
	return nil
}

// pass moves at over n length-prefixed values.
func (v *pageVals) pass(n int) error {
	p := v.at
	for i := 0; i < n; i++ {
		if p+4 > len(v.b) {
			return errValues
		}
		l := binary.LittleEndian.Uint32(v.b[p:])
		p += 4
		if uint64(l) > uint64(len(v.b)-p) {
			return errNegLen
		}
		p += int(l)
	}
	v.at = p
	return nil
}

// sink builds the values of one output array. Positions count slots of the
// array; the caller deals in validity, the sink in values alone. Sinks are
// scratch: finish hands the memory on and the next begin starts afresh.
type sink interface {
	// begin starts an array; n slots are expected (0 = unknown).
	begin(n int)
	// ensure makes room for n slots in all.
	ensure(n int)
	// take consumes the next n values of v into slots pos..pos+n.
	take(v *pageVals, pos, n int) error
	// pick consumes n values of v and puts those at sel into slots pos...
	pick(v *pageVals, pos int, sel []int32, n int) error
	// spread moves ones values that lie at pos.. to the slots whose bit is set
	// among the n bits of valid from bit off on.
	spread(pos, n, ones int, valid []byte, off int)
	// dictionary converts the values of a dictionary page.
	dictionary(v *pageVals, n int) (any, error)
	finish(n int, valid []byte) arrow.Array
}

// fixed is the sink of fixed-width values.
type fixed[T int16 | int32 | int64 | dec] struct {
	dt      arrow.DataType
	conv    func(dst []T, p []byte) error
	direct  bool // file form and memory form are the same
	out     []T
	idx     []int32
	scratch []byte
}

func (s *fixed[T]) begin(n int)  { s.out = rawSlice[T](n) }
func (s *fixed[T]) ensure(n int) { s.out = grown(s.out, n) }

// vec2bytes returns the memory of v, which has no pointers and no padding.
func vec2bytes[T int16 | int32 | int64 | dec](v []T) []byte {
	if len(v) == 0 {
		return []byte{}
	}
	var z T
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(z)))
}

// grown returns v with length n at least, at amortised cost.
func grown[T any](v []T, n int) []T {
	if n <= len(v) {
		return v
	}
	return slices.Grow(v, n-len(v))[:n]
}

func (s *fixed[T]) take(v *pageVals, pos, n int) error {
	out := s.out[pos : pos+n]
	switch v.form {
	case formFixed:
		if n > v.n-v.pos {
			return errValues
		}
		if err := s.conv(out, v.b[v.pos*v.w:]); err != nil {
			return err
		}
	case formDict:
		s.idx = grown(s.idx[:0], n)
		if err := v.idx.decode(s.idx); err != nil {
			return err
		}
		if err := lookup(out, v.dict.([]T), s.idx); err != nil {
			return err
		}
	default:
		return errValues
	}
	v.pos += n
	return nil
}

// lookup writes dict[idx[i]] to out. The indices come from the file.
func lookup[T any](out, dict []T, idx []int32) error {
	out = out[:len(idx)]
	for i, x := range idx {
		if uint(x) >= uint(len(dict)) {
			return errIndex
		}
		out[i] = dict[x]
	}
	return nil
}

func (s *fixed[T]) pick(v *pageVals, pos int, sel []int32, n int) error {
	out := s.out[pos : pos+len(sel)]
	switch v.form {
	case formFixed:
		if n > v.n-v.pos {
			return errValues
		}
		if err := s.pickFixed(out, v.b[v.pos*v.w:], v.w, sel); err != nil {
			return err
		}
	case formDict:
		s.idx = grown(s.idx[:0], len(sel))
		if err := v.idx.pick(s.idx[:len(sel)], sel, n); err != nil {
			return err
		}
		if err := lookup(out, v.dict.([]T), s.idx[:len(sel)]); err != nil {
			return err
		}
	default:
		return errValues
	}
	v.pos += n
	return nil
}

func (s *fixed[T]) pickFixed(out []T, b []byte, w int, sel []int32) error {
	if s.direct {
		pickRaw(vec2bytes(out), b, w, sel)
		return nil
	}
	s.scratch = grown(s.scratch[:0], len(sel)*w)
	pickRaw(s.scratch[:len(sel)*w], b, w, sel)
	return s.conv(out, s.scratch)
}

// pickRaw copies the w-byte values at sel. sel is ascending and its last entry
// is known to lie within b, so the loops need no check of their own.
func pickRaw(out, b []byte, w int, sel []int32) {
	switch w {
	case 4:
		for i, x := range sel {
			binary.LittleEndian.PutUint32(out[4*i:], binary.LittleEndian.Uint32(b[4*int(x):]))
		}
	case 8:
		for i, x := range sel {
			binary.LittleEndian.PutUint64(out[8*i:], binary.LittleEndian.Uint64(b[8*int(x):]))
		}
	default:
		for i, x := range sel {
			copy(out[w*i:w*i+w], b[w*int(x):w*int(x)+w])
		}
	}
}

func (s *fixed[T]) spread(pos, n, ones int, valid []byte, off int) {
	spread(s.out[pos:pos+n], ones, valid, off)
}

// spread moves v[:ones] to the places whose bit is set, from the end, so that it
// can be done in place. It always stores and steps by the bit: no branch.
func spread[T any](v []T, ones int, valid []byte, off int) {
	j := ones - 1
	for i := len(v) - 1; i > j && j >= 0; i-- {
		v[i] = v[j]
		k := off + i
		j -= int(valid[k>>3] >> (k & 7) & 1)
	}
}

func (s *fixed[T]) dictionary(v *pageVals, n int) (any, error) {
	if v.form != formFixed || v.n < n {
		return nil, errValues
	}
	d := make([]T, n)
	if err := s.conv(d, v.b); err != nil {
		return nil, err
	}
	return d, nil
}

func (s *fixed[T]) finish(n int, valid []byte) arrow.Array {
	out := s.out[:n]
	s.out = nil
	return vec.MakeFixedBytes(s.dt, n, vec2bytes(out), valid)
}

// boolSink builds bitmaps.
type boolSink struct {
	out []byte
	tmp []byte
}

func (s *boolSink) begin(n int) { s.out = make([]byte, vec.BitmapLen(n)) }

func (s *boolSink) ensure(n int) { s.out = grown(s.out, vec.BitmapLen(n)) }

func (s *boolSink) take(v *pageVals, pos, n int) error {
	if v.form != formBits || n > v.n-v.pos {
		return errValues
	}
	orBits(s.out, pos, v.b, v.pos, n)
	v.pos += n
	return nil
}

func (s *boolSink) pick(v *pageVals, pos int, sel []int32, n int) error {
	if v.form != formBits || n > v.n-v.pos {
		return errValues
	}
	for i, x := range sel {
		k := v.pos + int(x)
		s.out[(pos+i)>>3] |= v.b[k>>3] >> (k & 7) & 1 << ((pos + i) & 7)
	}
	v.pos += n
	return nil
}

func (s *boolSink) spread(pos, n, ones int, valid []byte, off int) {
	s.tmp = grown(s.tmp[:0], vec.BitmapLen(ones))
	clear(s.tmp)
	orBits(s.tmp, 0, s.out, pos, ones)
	j := 0
	for i := 0; i < n; i++ {
		k, p := off+i, pos+i
		is := valid[k>>3] >> (k & 7) & 1
		bit := byte(0)
		if j < ones {
			bit = s.tmp[j>>3] >> (j & 7) & is
		}
		s.out[p>>3] = s.out[p>>3]&^(1<<(p&7)) | bit<<(p&7)
		j += int(is)
	}
}

func (s *boolSink) dictionary(*pageVals, int) (any, error) { return nil, errValues }

func (s *boolSink) finish(n int, valid []byte) arrow.Array {
	out := s.out[:vec.BitmapLen(n)]
	s.out = nil
	return vec.MakeBool(n, out, valid)
}

// byteDict is the dictionary of a byte array column; arr is what the dictionary
// arrays of all its batches share.
type byteDict struct {
	offs []int32
	data []byte
	arr  arrow.Array
}

func (d *byteDict) len() int { return len(d.offs) - 1 }

// bytesSink builds String and Binary arrays, or dictionary arrays as long as all
// values of the array come from one dictionary.
type bytesSink struct {
	dt       arrow.DataType
	wantDict bool
	cur      *byteDict // not nil: so far the array is indices into cur
	started  bool      // some value has been stored
	filled   int       // slots that have been written, for toPlain
	idx      []int32
	tmp      []int32
	offs     []int32
	data     []byte
	size     int
}

func (s *bytesSink) begin(n int) {
	s.cur, s.started, s.filled, s.size = nil, false, 0, n
	s.idx, s.offs, s.data = nil, nil, nil
}

func (s *bytesSink) ensure(n int) {
	s.size = max(s.size, n)
	if s.offs != nil {
		s.offs = grown(s.offs, n+1)
	}
}

// mode gets the sink ready for values of v.
func (s *bytesSink) mode(v *pageVals) (*byteDict, error) {
	var d *byteDict
	if v.form == formDict {
		var ok bool
		if d, ok = v.dict.(*byteDict); !ok {
			return nil, errIndex
		}
	}
	if s.started && s.cur == d && d != nil {
		return d, nil
	}
	if !s.started && d != nil && s.wantDict && d.len() > 0 {
		s.started, s.cur = true, d
		s.idx = make([]int32, s.size)
		return d, nil
	}
	if s.cur != nil {
		if err := s.toPlain(); err != nil {
			return nil, err
		}
	}
	if s.offs == nil {
		s.offs = make([]int32, s.size+1)
	}
	s.started = true
	return d, nil
}

// toPlain turns the indices so far into plain values: the batch has come to the
// pages after its dictionary got full, or to another row group.
func (s *bytesSink) toPlain() error {
	d, idx := s.cur, s.idx
	s.cur, s.idx = nil, nil
	s.offs = make([]int32, s.size+1)
	return s.appendDict(d, idx[:s.filled], 0)
}

func (s *bytesSink) take(v *pageVals, pos, n int) error {
	d, err := s.mode(v)
	if err != nil {
		return err
	}
	switch v.form {
	case formDict:
		dst := s.dictDst(pos, n)
		if err := v.idx.decode(dst); err != nil {
			return err
		}
		err = s.putDict(d, dst, pos)
	case formPlain:
		err = s.takePlain(v, pos, n)
	case formOffs:
		if n > v.n-v.pos {
			return errValues
		}
		err = s.takeRange(v, pos, n)
	case formFixed:
		if n > v.n-v.pos {
			return errValues
		}
		if err = s.room(n * v.w); err != nil {
			return err
		}
		s.data = append(s.data, v.b[v.pos*v.w:(v.pos+n)*v.w]...)
		o := s.offs[pos]
		for i := 1; i <= n; i++ {
			s.offs[pos+i] = o + int32(i*v.w)
		}
	default:
		return errValues
	}
	if err != nil {
		return err
	}
	v.pos += n
	s.filled = pos + n
	return nil
}

// dictDst is where n indices go: into the array itself, or into scratch.
func (s *bytesSink) dictDst(pos, n int) []int32 {
	if s.cur != nil {
		return s.idx[pos : pos+n]
	}
	s.tmp = grown(s.tmp[:0], n)
	return s.tmp
}

func (s *bytesSink) putDict(d *byteDict, idx []int32, pos int) error {
	if s.cur == nil {
		return s.appendDict(d, idx, pos)
	}
	m := uint32(0)
	for _, x := range idx {
		m = max(m, uint32(x))
	}
	if int(m) >= d.len() {
		return errIndex
	}
	return nil
}

// room checks that n more bytes can be addressed.
func (s *bytesSink) room(n int) error {
	if n > maxVarBytes-len(s.data) {
		return errTooMuch
	}
	return nil
}

// appendDict appends the values of indices as slots pos and up.
func (s *bytesSink) appendDict(d *byteDict, idx []int32, pos int) error {
	total := 0
	nd := d.len()
	if nd == 0 && len(idx) > 0 {
		return errIndex
	}
	o := s.offs[pos]
	offs := s.offs[pos+1 : pos+1+len(idx)]
	for i, x := range idx {
		if uint(x) >= uint(nd) {
			return errIndex
		}
		total += int(d.offs[x+1] - d.offs[x])
		offs[i] = o + int32(total)
	}
	if err := s.room(total); err != nil {
		return err
	}
	s.data = growBytes(s.data, total+copySlack)
	at := len(s.data)
	dst := s.data[:cap(s.data)]
	for _, x := range idx {
		a, b := int(d.offs[x]), int(d.offs[x+1])
		at = copyShort(dst, at, d.data, a, b-a)
	}
	s.data = dst[:at]
	return nil
}

// copySlack is how far copyShort may write beyond what it copies.
const copySlack = 32

// copyShort copies n bytes from src[a:] to dst[at:] and returns at+n. Most
// values are short: those are moved as two or four words, with the rest
// overwritten by the next value, because a call of memmove costs more than they
// do.
func copyShort(dst []byte, at int, src []byte, a, n int) int {
	if n <= 32 && a+32 <= len(src) && at+32 <= len(dst) {
		s, d := src[a:a+32], dst[at:at+32]
		le := binary.LittleEndian
		le.PutUint64(d, le.Uint64(s))
		le.PutUint64(d[8:], le.Uint64(s[8:]))
		if n > 16 {
			le.PutUint64(d[16:], le.Uint64(s[16:]))
			le.PutUint64(d[24:], le.Uint64(s[24:]))
		}
		return at + n
	}
	copy(dst[at:at+n], src[a:a+n])
	return at + n
}

// shortBytes is up to where a value is moved as a whole, with what follows it, which
// the next value overwrites: a call of memmove costs more.
const shortBytes = 32

// takePlain copies n length-prefixed values in one pass: while the length of a value is
// waited for, the one before it is moved.
func (s *bytesSink) takePlain(v *pageVals, pos, n int) error {
	b, p := v.b, v.at
	offs := s.offs[pos+1 : pos+1+n]
	dst := s.plainRoom(v, pos, n)
	at := len(s.data)
	o := int(s.offs[pos]) - at
	for i := range offs {
		if p+4 > len(b) {
			return errValues
		}
		l := int(binary.LittleEndian.Uint32(b[p:]))
		p += 4
		if l <= shortBytes && p+shortBytes <= len(b) && at+shortBytes <= len(dst) {
			*(*[shortBytes]byte)(dst[at:]) = *(*[shortBytes]byte)(b[p:])
		} else {
			if l > len(b)-p {
				return errNegLen
			}
			if l > maxVarBytes-at {
				return errTooMuch
			}
			if at+l > len(dst) {
				s.data = growBytes(dst[:at], l+copySlack)
				dst = s.data[:cap(s.data)]
			}
			copy(dst[at:at+l], b[p:p+l])
		}
		p += l
		at += l
		offs[i] = int32(o + at)
	}
	if at > maxVarBytes {
		return errTooMuch
	}
	s.data, v.at = dst[:at], p
	return nil
}

// plainRoom makes room for the next n values of v, and what else the array may get, by
// the mean length of the page's values. It returns the memory up to its end.
func (s *bytesSink) plainRoom(v *pageVals, pos, n int) []byte {
	left := len(v.b) - v.at
	mean := max(left-4*(v.n-v.pos), 0)/max(v.n-v.pos, 1) + 1
	// No more than the bytes that are there, and as many again for other pages.
	room := min(n*mean, left) + min((s.size-pos-n)*mean, len(v.b))
	s.data = growBytes(s.data, min(room+room/16, 2*len(v.b))+copySlack)
	return s.data[:cap(s.data)]
}

func (s *bytesSink) takeRange(v *pageVals, pos, n int) error {
	a, b := v.offs[v.pos], v.offs[v.pos+n]
	if err := s.room(int(b - a)); err != nil {
		return err
	}
	d := s.offs[pos] - a
	for i := 1; i <= n; i++ {
		s.offs[pos+i] = v.offs[v.pos+i] + d
	}
	s.data = append(s.data, v.b[a:b]...)
	return nil
}

func (s *bytesSink) pick(v *pageVals, pos int, sel []int32, n int) error {
	d, err := s.mode(v)
	if err != nil {
		return err
	}
	switch v.form {
	case formDict:
		dst := s.dictDst(pos, len(sel))
		if err := v.idx.pick(dst, sel, n); err != nil {
			return err
		}
		err = s.putDict(d, dst, pos)
	case formPlain:
		err = s.pickPlain(v, pos, sel, n)
	case formOffs, formFixed:
		if n > v.n-v.pos {
			return errValues
		}
		for i, x := range sel {
			k := v.pos + int(x)
			a, b := k*v.w, (k+1)*v.w
			if v.form == formOffs {
				a, b = int(v.offs[k]), int(v.offs[k+1])
			}
			if err := s.room(b - a); err != nil {
				return err
			}
			s.data = append(s.data, v.b[a:b]...)
			s.offs[pos+i+1] = int32(len(s.data))
		}
	default:
		return errValues
	}
	if err != nil {
		return err
	}
	v.pos += n
	s.filled = pos + len(sel)
	return nil
}

// pickPlain is takePlain for those of n values that sel names.
func (s *bytesSink) pickPlain(v *pageVals, pos int, sel []int32, n int) error {
	if len(sel)*8 < n {
		return s.pickFew(v, pos, sel, n)
	}
	b, p := v.b, v.at
	offs := s.offs[pos+1 : pos+1+len(sel)]
	dst := s.plainRoom(v, pos, len(sel))
	at := len(s.data)
	o := int(s.offs[pos]) - at
	k := 0
	row := 0
	for ; k < len(sel); row++ {
		if p+4 > len(b) {
			return errValues
		}
		l := int(binary.LittleEndian.Uint32(b[p:]))
		p += 4
		is := 0
		if int(sel[k]) == row {
			is = 1
		}
		if l <= shortBytes && p+shortBytes <= len(b) && at+shortBytes <= len(dst) {
			// A value that is not wanted is moved, too, and overwritten: no branch.
			*(*[shortBytes]byte)(dst[at:]) = *(*[shortBytes]byte)(b[p:])
		} else {
			if l > len(b)-p {
				return errNegLen
			}
			if is != 0 {
				if l > maxVarBytes-at {
					return errTooMuch
				}
				if at+l > len(dst) {
					s.data = growBytes(dst[:at], l+copySlack)
					dst = s.data[:cap(s.data)]
				}
				copy(dst[at:at+l], b[p:p+l])
			}
		}
		p += l
		at += l & -is
		offs[k] = int32(o + at)
		k += is
	}
	if at > maxVarBytes {
		return errTooMuch
	}
	s.data, v.at = dst[:at], p
	return v.pass(n - row)
}

// pickFew is pickPlain for a few values among many.
func (s *bytesSink) pickFew(v *pageVals, pos int, sel []int32, n int) error {
	dst := s.plainRoom(v, pos, len(sel))
	at := len(s.data)
	row := 0
	for i, x := range sel {
		if err := v.pass(int(x) - row); err != nil {
			return err
		}
		row = int(x) + 1
		b, p := v.b, v.at
		if p+4 > len(b) {
			return errValues
		}
		l := int(binary.LittleEndian.Uint32(b[p:]))
		p += 4
		if l > len(b)-p {
			return errNegLen
		}
		if l > maxVarBytes-at {
			return errTooMuch
		}
		if at+l > len(dst) {
			s.data = growBytes(dst[:at], l+copySlack)
			dst = s.data[:cap(s.data)]
		}
		at = copyShort(dst, at, b, p, l)
		v.at = p + l
		s.offs[pos+i+1] = s.offs[pos+i] + int32(l)
	}
	s.data = dst[:at]
	return v.pass(n - row)
}

func (s *bytesSink) spread(pos, n, ones int, valid []byte, off int) {
	if s.cur != nil {
		spread(s.idx[pos:pos+n], ones, valid, off)
		// Slots under NULL must still be indices of the dictionary, which the
		// leftovers are; those before the first value are old ones or 0.
	} else {
		if s.offs == nil {
			s.offs = make([]int32, s.size+1)
		}
		o := s.offs[pos : pos+n+1]
		j := ones
		for i := n; i > 0; i-- {
			o[i] = o[j]
			k := off + i - 1
			j -= int(valid[k>>3] >> (k & 7) & 1)
		}
	}
	s.filled = pos + n
}

func (s *bytesSink) dictionary(v *pageVals, n int) (any, error) {
	if v.form == formFixed && v.n < n || v.form == formPlain && len(v.b)/4 < n {
		return nil, errValues
	}
	t := &bytesSink{dt: s.dt}
	t.begin(n)
	if err := t.take(v, 0, n); err != nil {
		return nil, err
	}
	d := &byteDict{offs: t.offs, data: t.data}
	d.arr = vec.MakeBytes(s.dt, d.offs, d.data, nil)
	return d, nil
}

func (s *bytesSink) finish(n int, valid []byte) arrow.Array {
	if s.cur != nil {
		a := vec.MakeDict(s.idx[:n:n], valid, s.cur.arr)
		s.idx, s.cur = nil, nil
		return a
	}
	if s.offs == nil {
		s.offs = make([]int32, n+1)
	}
	a := vec.MakeBytes(s.dt, s.offs[:n+1:n+1], s.data, valid)
	s.offs, s.data = nil, nil
	return a
}
