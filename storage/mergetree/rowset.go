package mergetree

import (
	"math/bits"
	"sync/atomic"
	"unsafe"
)

// blockRows are the rows of a block of a RowSet: 512 bytes unless all or none of
// them are in it.
const blockRows = 4096

const blockWords = blockRows / 64

// all is the block that holds every row.
var all = func() []uint64 {
	b := make([]uint64, blockWords)
	for i := range b {
		b[i] = ^uint64(0)
	}
	return b
}()

// RowSet is a set of rows of one file, by physical row number. It is immutable and
// safe for concurrent use. A row costs one bit; stretches of rows that are all in it,
// or none, next to nothing.
type RowSet struct {
	blocks [][]uint64 // nil = no row of it, all = every row of it
	rows   int64      // of the file
	count  int64
}

// Count returns the number of rows in the set.
func (s *RowSet) Count() int64 { return s.count }

// Bytes returns about how much memory the set takes.
func (s *RowSet) Bytes() int64 {
	n := int64(24*len(s.blocks)) + 64
	for _, b := range s.blocks {
		if b != nil && &b[0] != &all[0] {
			n += blockRows / 8
		}
	}
	return n
}

// Keep appends to buf[:0] the rows of [from, from+n) that are in the set, as offsets
// from from, ascending; n is at most 65,536. It returns nil, and whole, when all of
// them are.
func (s *RowSet) Keep(from int64, n int, buf []uint16) (keep []uint16, whole bool) {
	if cap(buf) < n {
		buf = make([]uint16, 0, n)
	}
	keep = buf[:0]
	for at := 0; at < n; {
		pos := from + int64(at)
		off := int(pos % blockRows)
		m := min(n-at, blockRows-off)
		switch b := s.block(pos); {
		case b == nil:
		case &b[0] == &all[0]:
			k := len(keep)
			keep = keep[:k+m]
			for i := range keep[k:] {
				keep[k+i] = uint16(at + i)
			}
		default:
			keep = keepWords(b, off, m, at, keep)
		}
		at += m
	}
	if len(keep) == n {
		return nil, true
	}
	return keep, false
}

func (s *RowSet) block(pos int64) []uint64 {
	if i := pos / blockRows; pos >= 0 && i < int64(len(s.blocks)) {
		return s.blocks[i]
	}
	return nil
}

// setOf are the positions of the bits that are set in a byte, four in a word, in the
// order of memory; behind them are zeros.
var setOf = func() (t [256][2]uint64) {
	for x := range t {
		p := (*[8]uint16)(unsafe.Pointer(&t[x]))
		k := 0
		for i := range 8 {
			if x>>i&1 != 0 {
				p[k] = uint16(i)
				k++
			}
		}
	}
	return t
}()

// keepWords appends the set bits of [off, off+n) of a block, counted from off and
// moved by at. out has room for n more.
//
// Eight rows are written at a time, and what is too much is overwritten by the next
// ones: rows that are deleted here and there make no branch that is hard to foresee.
func keepWords(b []uint64, off, n, at int, out []uint16) []uint16 {
	k := len(out)
	out = out[:cap(out)]
	for w := off / 64; w*64 < off+n; w++ {
		x := word(b, int64(w), int64(off), int64(n))
		base := at + w*64 - off
		if base < at { // the first word begins before off
			x >>= at - base
			base = at
		}
		if x == ^uint64(0) {
			o := out[k : k+64]
			for i := range o {
				o[i] = uint16(base + i)
			}
			k += 64
			continue
		}
		for ; x != 0 && k+8 <= len(out); x >>= 8 {
			// No sum passes 65,535, so that none runs into its neighbour.
			t, o, four := &setOf[byte(x)], (*[2]uint64)(unsafe.Pointer(&out[k])), uint64(base)*0x0001_0001_0001_0001
			o[0], o[1] = t[0]+four, t[1]+four
			k += bits.OnesCount8(byte(x))
			base += 8
		}
		for ; x != 0; x &= x - 1 {
			out[k] = uint16(base + bits.TrailingZeros64(x))
			k++
		}
	}
	return out[:k]
}

// CountIn returns how many rows of [from, to) are in the set.
func (s *RowSet) CountIn(from, to int64) int64 {
	n := int64(0)
	for from < to {
		off := from % blockRows
		m := min(to-from, blockRows-off)
		switch b := s.block(from); {
		case b == nil:
		case &b[0] == &all[0]:
			n += m
		default:
			for w := off / 64; w*64 < off+m; w++ {
				n += int64(bits.OnesCount64(word(b, w, off, m)))
			}
		}
		from += m
	}
	return n
}

// A stretch of rows that are all in a set, or none, is worth a look at it for itself
// when it has wholeRows, or noneRows.
const (
	wholeRows = 1024
	noneRows  = 1024
)

// Stretch returns how many of the n rows from from on, at least one and at most all, can
// be dealt with together: long stretches of rows that are all in the set, or none, come
// by themselves. count is how many of them are in the set.
func (s *RowSet) Stretch(from int64, n int) (m int, count int) {
	const (
		none = iota
		whole
		mixed
	)
	worth := [...]int{none: noneRows, whole: wholeRows, mixed: n + 1}
	kind, start, of := -1, 0, 0 // the present stretch, and how many rows of it are in the set
	for at := 0; at < n; {
		pos := from + int64(at)
		off := int(pos % blockRows)
		k, c := min(n-at, blockRows-off), 0
		switch b := s.block(pos); {
		case b == nil:
		case &b[0] == &all[0]:
			c = k
		default:
			k = min(k, 64-off%64)
			c = bits.OnesCount64(word(b, int64(off/64), int64(off), int64(k)))
		}
		is := mixed
		switch c {
		case 0:
			is = none
		case k:
			is = whole
		}
		if is != kind {
			if kind >= 0 && at-start >= worth[kind] {
				break // the stretch is over
			}
			kind, start, of = is, at, 0
		}
		at += k
		of += c
		count += c
		m = at
	}
	if kind >= 0 && start > 0 && m-start >= worth[kind] {
		return start, count - of // what lies before it comes first
	}
	return m, count
}

// Marks collects rows of one file for a RowSet. Several goroutines may mark at once.
type Marks struct {
	words []uint64
	rows  int64
}

// NewMarks makes an empty set for a file of rows rows; it takes an eighth byte a row.
func NewMarks(rows int64) *Marks {
	// One word more: what is marked together begins at a whole word.
	return &Marks{words: make([]uint64, (rows+63)/64+1), rows: rows}
}

// or adds the bits of words, the first of which stands for rows from from on, a
// multiple of 64.
func (m *Marks) or(from int64, words []uint64) {
	at := int(from / 64)
	for i, w := range words {
		if w != 0 && at+i < len(m.words) {
			atomic.OrUint64(&m.words[at+i], w)
		}
	}
}

// RowsWithout returns the set of a file's rows but those that each names.
func RowsWithout(rows int64, each func(f func(pos int64) bool)) *RowSet {
	m := NewMarks(rows)
	for i := range m.words {
		m.words[i] = ^uint64(0)
	}
	if n := rows % 64; n > 0 {
		m.words[rows/64] = 1<<n - 1
	}
	each(func(pos int64) bool {
		if pos < rows {
			m.words[pos/64] &^= 1 << (pos % 64)
		}
		return true
	})
	return m.Set()
}

// Set returns what was marked; nobody may be marking any more.
func (m *Marks) Set() *RowSet {
	s := &RowSet{rows: m.rows, blocks: make([][]uint64, (m.rows+blockRows-1)/blockRows)}
	for i := range s.blocks {
		from := int64(i) * blockRows
		n := min(blockRows, m.rows-from)
		words := m.words[from/64 : (from+n+63)/64]
		count := int64(0)
		for _, w := range words {
			count += int64(bits.OnesCount64(w))
		}
		s.count += count
		switch {
		case count == n:
			s.blocks[i] = all
		case count > 0:
			b := make([]uint64, blockWords)
			copy(b, words)
			s.blocks[i] = b
		}
	}
	return s
}

// MarksOf returns marks of what is in s; nil are all of rows rows.
func MarksOf(s *RowSet, rows int64) *Marks {
	m := NewMarks(rows)
	if s == nil {
		for i := range m.words {
			m.words[i] = ^uint64(0)
		}
		m.words[len(m.words)-1] = 0
		if n := rows % 64; n > 0 {
			m.words[rows/64] = 1<<n - 1
		}
		return m
	}
	for i, b := range s.blocks {
		if b != nil && i*blockWords < len(m.words) {
			copy(m.words[i*blockWords:], b)
		}
	}
	if n := rows % 64; n > 0 { // blocks of all rows end where the file does not
		m.words[rows/64] &= 1<<n - 1
	}
	clear(m.words[(rows+63)/64:])
	return m
}

// Add marks a row of the file, and reports whether it was not marked.
func (m *Marks) Add(row int64) bool {
	bit := uint64(1) << (row & 63)
	return atomic.OrUint64(&m.words[row>>6], bit)&bit == 0
}

// Remove takes a mark away, and reports whether it was there.
func (m *Marks) Remove(row int64) bool {
	bit := uint64(1) << (row & 63)
	return atomic.AndUint64(&m.words[row>>6], ^bit)&bit != 0
}

// Has reports whether a row of the file is marked.
func (m *Marks) Has(row int64) bool {
	return atomic.LoadUint64(&m.words[row>>6])>>(row&63)&1 != 0
}

// RowsOf returns the rows whose bits are set in words, which it may change, and that
// are in s, nil = all rows of a file of rows rows.
func RowsOf(words []uint64, rows int64, s *RowSet) *RowSet {
	m := &Marks{words: words, rows: rows}
	if n := int((rows+63)/64) + 1; len(words) < n {
		m.words = append(words, make([]uint64, n-len(words))...)
	}
	if n := rows % 64; n > 0 {
		m.words[rows/64] &= 1<<n - 1
	}
	clear(m.words[(rows+63)/64:])
	if s != nil {
		for i := 0; i*blockWords < len(m.words); i++ {
			part := m.words[i*blockWords : min((i+1)*blockWords, len(m.words))]
			if i >= len(s.blocks) || s.blocks[i] == nil {
				clear(part)
				continue
			}
			for k := range part {
				part[k] &= s.blocks[i][k]
			}
		}
	}
	return m.Set()
}

// Some reports whether one of rows [from, to) is in the set.
func (s *RowSet) Some(from, to int64) bool {
	for from < to {
		off := from % blockRows
		m := min(to-from, blockRows-off)
		switch b := s.block(from); {
		case b == nil:
		case &b[0] == &all[0]:
			return true
		default:
			for w := off / 64; w*64 < off+m; w++ {
				if word(b, w, off, m) != 0 {
					return true
				}
			}
		}
		from += m
	}
	return false
}

// word returns word w of a block with only the bits of [off, off+n) of the block.
func word(b []uint64, w, off, n int64) uint64 {
	x := b[w]
	if w*64 < off {
		x &= ^uint64(0) << (off - w*64)
	}
	if end := off + n - w*64; end < 64 {
		x &= 1<<end - 1
	}
	return x
}

// Spans calls f with stretches of [from, to) that hold all its rows that are in the
// set, in order: each begins and ends with such a row, and between two lie at least gap
// rows that are not.
func (s *RowSet) Spans(from, to, gap int64, f func(from, to int64)) {
	lo, hi := int64(-1), int64(-1)
	put := func(a, b int64) {
		if lo >= 0 && a-hi < gap {
			hi = b
			return
		}
		if lo >= 0 {
			f(lo, hi)
		}
		lo, hi = a, b
	}
	for from < to {
		off := from % blockRows
		m := min(to-from, blockRows-off)
		switch b := s.block(from); {
		case b == nil:
		case &b[0] == &all[0]:
			put(from, from+m)
		default:
			for w := off / 64; w*64 < off+m; w++ {
				if x := word(b, w, off, m); x != 0 {
					base := from - off + w*64
					put(base+int64(bits.TrailingZeros64(x)), base+64-int64(bits.LeadingZeros64(x)))
				}
			}
		}
		from += m
	}
	if lo >= 0 {
		f(lo, hi)
	}
}
