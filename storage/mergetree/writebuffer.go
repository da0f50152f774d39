package mergetree

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"math"
	"math/bits"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Writing a sorted run takes rows in order of arrival, sorts their numbers by
// key and keeps one row of each key. Only words are moved while sorting: the
// columns stay where they are until the winners are gathered.

// Latest returns the rows that win among n rows in order of arrival, in key
// order: of the rows of one key that with the greatest user sequence (nil: none),
// and among equal ones the one that arrived last. k are the rows' keys.
// Source: SortBufferWriteBuffer.java, DeduplicateMergeFunction.java.
func (c *KeyCodec) Latest(k *Keys, n int, user *SequenceKeys) []uint32 {
	order := c.sort(k, n)
	out := order[:0]
	for i := 0; i < n; {
		best := order[i]
		j := i + 1
		for ; j < n && c.equal(k, int(best), int(order[j])); j++ {
			if user == nil || user.compare(int(order[j]), int(best)) >= 0 {
				best = order[j]
			}
		}
		out = append(out, best) // never overtakes i: one winner per key
		i = j
	}
	return out
}

// Equal reports whether rows i and j have the same key.
func (c *KeyCodec) Equal(k *Keys, i, j int) bool { return c.equal(k, i, j) }

func (c *KeyCodec) equal(k *Keys, i, j int) bool {
	if k.Hi[i] != k.Hi[j] {
		return false
	}
	switch c.form {
	case TwoWords:
		return k.Lo[i] == k.Lo[j]
	case WordAndBytes:
		return bytes.Equal(k.At(i), k.At(j))
	}
	return true
}

// less compares rows i and j, i before j in order of arrival.
func (c *KeyCodec) less(k *Keys, i, j int) bool {
	if k.Hi[i] != k.Hi[j] {
		return k.Hi[i] < k.Hi[j]
	}
	switch c.form {
	case TwoWords:
		return k.Lo[i] <= k.Lo[j]
	case WordAndBytes:
		return bytes.Compare(k.At(i), k.At(j)) <= 0
	}
	return true
}

// sort returns the row numbers in key order; rows of one key stay in order of
// arrival.
func (c *KeyCodec) sort(k *Keys, n int) []uint32 {
	order := make([]uint32, n)
	for i := range order {
		order[i] = uint32(i)
	}
	sorted := true
	for i := 1; i < n && sorted; i++ {
		sorted = c.less(k, i-1, i)
	}
	if sorted {
		return order
	}
	s := sorter{words: make([]uint64, n), words2: make([]uint64, n), order2: make([]uint32, n)}
	switch c.form {
	case OneWord:
		copy(s.words, k.Hi)
		return s.radix(order)
	case TwoWords:
		copy(s.words, k.Lo)
		order = s.radix(order)
		for i, r := range order {
			s.words[i] = k.Hi[r]
		}
		return s.radix(order)
	}
	s.bytes(k, order, commonPrefix(k, order))
	return order
}

// sorter sorts row numbers by words, stably.
type sorter struct {
	words, words2 []uint64
	order2        []uint32
}

const digit = 11 // bits of a radix pass: 2,048 counters stay in the first cache

// radix sorts order by s.words[:len(order)], which go with it, from the least
// digit that differs to the greatest: keys of one table often differ in few bits.
// The result is order or s.order2; the words are in s.words.
func (s *sorter) radix(order []uint32) []uint32 {
	n := len(order)
	w, w2, o2 := s.words[:n], s.words2[:n], s.order2[:n]
	differ := uint64(0)
	for _, x := range w {
		differ |= x ^ w[0]
	}
	if differ == 0 {
		return order
	}
	if n <= 64 {
		insertion(w, order)
		return order
	}
	for shift := bits.TrailingZeros64(differ); shift < 64-bits.LeadingZeros64(differ); shift += digit {
		if differ>>shift&(1<<digit-1) == 0 {
			continue
		}
		var count [1 << digit]uint32
		for _, x := range w {
			count[x>>shift&(1<<digit-1)]++
		}
		sum := uint32(0)
		for i, c := range count {
			count[i] = sum
			sum += c
		}
		for i, x := range w {
			d := x >> shift & (1<<digit - 1)
			p := count[d]
			count[d]++
			w2[p], o2[p] = x, order[i]
		}
		w, w2, order, o2 = w2, w, o2, order
	}
	s.words, s.words2, s.order2 = w[:cap(w)], w2[:cap(w2)], o2[:cap(o2)]
	return order
}

func insertion(w []uint64, order []uint32) {
	for i := 1; i < len(w); i++ {
		x, r := w[i], order[i]
		j := i
		for ; j > 0 && w[j-1] > x; j-- {
			w[j], order[j] = w[j-1], order[j-1]
		}
		w[j], order[j] = x, r
	}
}

// commonPrefix is the number of first bytes that all the keys share.
func commonPrefix(k *Keys, order []uint32) int {
	first := k.At(int(order[0]))
	n := len(first)
	for _, r := range order[1:] {
		b := k.At(int(r))
		n = min(n, len(b))
		i := 0
		for i < n && b[i] == first[i] {
			i++
		}
		if n = i; n == 0 {
			break
		}
	}
	return n
}

// bytes sorts order in place by what follows the first depth bytes of the keys,
// which they share: by the next eight bytes, then each stretch of equal ones by
// those behind.
func (s *sorter) bytes(k *Keys, order []uint32, depth int) {
	if len(order) <= 32 {
		slices.SortFunc(order, func(a, b uint32) int {
			if x := bytes.Compare(k.At(int(a))[depth:], k.At(int(b))[depth:]); x != 0 {
				return x
			}
			return cmp.Compare(a, b)
		})
		return
	}
	for i, r := range order {
		s.words[i] = prefix(k.At(int(r))[depth:])
	}
	sorted := s.radix(order)
	if len(order) > 0 && &sorted[0] != &order[0] {
		copy(order, sorted)
		s.order2 = sorted[:cap(sorted)]
	}
	// The words are used again below: the stretches are found before.
	var ends []int
	words := s.words[:len(order)]
	for i := 0; i < len(order); {
		j := i + 1
		for j < len(order) && words[j] == words[i] {
			j++
		}
		if j-i > 1 {
			ends = append(ends, i, j)
		}
		i = j
	}
	for i := 0; i < len(ends); i += 2 {
		s.tied(k, order[ends[i]:ends[i+1]], depth)
	}
}

// tied sorts keys whose eight bytes behind depth, padded with zeros, are equal.
func (s *sorter) tied(k *Keys, order []uint32, depth int) {
	short, long := math.MaxInt, 0
	for _, r := range order {
		n := len(k.At(int(r)))
		short, long = min(short, n), max(long, n)
	}
	switch {
	case long <= depth+8 && short == long:
		// All the same key: the radix passes kept the order of arrival.
	case short >= depth+8:
		s.bytes(k, order, depth+8)
	default: // keys that end where others have zeros
		slices.SortFunc(order, func(a, b uint32) int {
			if x := bytes.Compare(k.At(int(a)), k.At(int(b))); x != 0 {
				return x
			}
			return cmp.Compare(a, b)
		})
	}
}

// SequenceKeys order rows by user sequence fields.
type SequenceKeys struct {
	hi    []uint64
	valid []byte // of hi; nil = no NULLs
	off   int
	k     Keys // several fields, or wide ones
}

// NewSequenceKeys makes the ordering of n rows by their user sequence fields;
// NULL is smallest in either direction.
func NewSequenceKeys(ts []types.Type, cols []arrow.Array, n int, desc bool) *SequenceKeys {
	s := &SequenceKeys{}
	if w := KeyWidth(ts[0]); len(ts) == 1 && w > 0 && w <= 8 {
		c := NewKeyCodec(ts)
		c.Fill(&s.k, cols, n)
		s.hi = s.k.Hi
		if desc {
			for i := range s.hi {
				s.hi[i] = ^s.hi[i]
			}
		}
		s.valid, s.off = vec.Validity(cols[0])
		return s
	}
	fillUser(&s.k, ts, cols, n, desc)
	return s
}

func (s *SequenceKeys) compare(i, j int) int {
	if s.hi == nil {
		return bytes.Compare(s.k.At(i), s.k.At(j))
	}
	if s.valid != nil {
		a, b := vec.BitAt(s.valid, s.off+i), vec.BitAt(s.valid, s.off+j)
		switch {
		case !a && !b:
			return 0
		case !a:
			return -1
		case !b:
			return 1
		}
	}
	return cmp.Compare(s.hi[i], s.hi[j])
}

// Bytes returns the byte form of every key, in memory of its own.
func (c *KeyCodec) Bytes(cols []arrow.Array, n int) [][]byte {
	var k Keys
	c.Fill(&k, cols, n)
	out := make([][]byte, n)
	if c.form == WordAndBytes {
		data := make([]byte, 0, k.Off[n]-k.Off[0])
		for i := range n {
			at := len(data)
			data = append(data, k.At(i)...)
			out[i] = data[at:len(data):len(data)]
		}
		return out
	}
	w := 0
	for _, t := range c.types {
		w += KeyWidth(t)
	}
	data := make([]byte, 0, n*16)
	for i := range n {
		at := len(data)
		data = binary.BigEndian.AppendUint64(data, k.Hi[i])
		if c.form == TwoWords {
			data = binary.BigEndian.AppendUint64(data, k.Lo[i])
		}
		data = data[:at+w]
		out[i] = data[at : at+w : at+w]
	}
	return out
}
