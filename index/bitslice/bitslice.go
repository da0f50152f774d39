// Package bitslice compares rows with constants by bit slices: slice i is the
// set of the rows whose code has bit i. It is what the indexes bsi and
// range-bitmap have in common: the slices, made and asked, and the order-keeping
// integers that stand for values.
package bitslice

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index"
)

// ErrCorrupt is wrapped by every decoding error of these indexes.
var ErrCorrupt = errors.New("file index is corrupt")

// Corrupt makes an error that wraps ErrCorrupt.
func Corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// ReadBitmap decodes the portable RoaringBitmap at the start of b, a set of
// positions below rows, and returns the number of its bytes. The bitmap refers to
// b, which must not change any more, and copies before it writes.
func ReadBitmap(b []byte, rows uint32) (*roaring.Bitmap, int, error) {
	w := roaring.New()
	n, err := w.FromBuffer(b)
	if err != nil {
		return nil, 0, Corrupt("bitmap: %v", err)
	}
	if n < 0 || n > int64(len(b)) {
		return nil, 0, Corrupt("bitmap of %d bytes in %d", n, len(b))
	}
	if w.IsEmpty() {
		return w, int(n), nil
	}
	if err := w.Validate(); err != nil {
		return nil, 0, Corrupt("bitmap: %v", err)
	}
	if m := w.Maximum(); m >= rows {
		return nil, 0, Corrupt("row %d of %d", m, rows)
	}
	return w, int(n), nil
}

// AppendBitmap appends w in the portable form with runs where they are shorter,
// as Java's RoaringBitmap32 serializes. w is changed in form.
func AppendBitmap(dst []byte, w *roaring.Bitmap) ([]byte, error) {
	w.RunOptimize()
	b, err := w.ToBytes()
	return append(dst, b...), err
}

// Result makes the answer from candidates; rows is the number of rows of the file.
func Result(m *roaring.Bitmap, rows uint32, exact bool) index.Result {
	r := index.Result{Rows: m, Exact: exact}
	switch n := m.GetCardinality(); {
	case n == 0:
		r.Verdict, r.Exact = index.None, true
	case exact && n == uint64(rows):
		r.Verdict = index.All
	}
	return r
}

// Above returns the rows whose code is above c. sl[i] may be nil below
// LowestAbove(c). The result is the caller's.
//
// From the lowest bit up: a row is above c by its bits 0..i if bit i decides, or
// else if the bits below do. A run of ones at the bottom of c decides nothing.
func Above(c uint64, sl []*roaring.Bitmap) *roaring.Bitmap {
	out := roaring.New()
	first := true
	for i := LowestAbove(c); i < len(sl); i++ {
		switch {
		case first:
			// Bit i of c is 0.
			out, first = sl[i].Clone(), false
		case c>>i&1 == 1:
			out.And(sl[i])
		default:
			out.Or(sl[i])
		}
	}
	if len(sl) < 64 && c>>len(sl) != 0 {
		return roaring.New()
	}
	return out
}

// LowestAbove is the first slice that Above(c) looks at.
func LowestAbove(c uint64) int {
	i := 0
	for c&1 == 1 {
		c >>= 1
		i++
	}
	return i
}

// Equal returns the rows of present whose code is c. The result is the caller's.
func Equal(c uint64, present *roaring.Bitmap, sl []*roaring.Bitmap) *roaring.Bitmap {
	if len(sl) < 64 && c>>len(sl) != 0 {
		return roaring.New()
	}
	// The set bits first: their slices are subsets, and the smaller the set, the
	// less the rest costs.
	var out *roaring.Bitmap
	for i, s := range sl {
		switch {
		case c>>i&1 == 0:
		case out == nil:
			out = s.Clone()
		default:
			out.And(s)
		}
	}
	if out == nil {
		out = present.Clone()
	}
	for i, s := range sl {
		if c>>i&1 == 0 {
			if out.IsEmpty() {
				break
			}
			out.AndNot(s)
		}
	}
	return out
}

// Codes is a closed interval of codes.
type Codes struct{ Lo, Hi uint64 }

// In returns the rows of present whose code lies in one of ivs, which are
// ascending and apart. The result may be present itself: it is not to be changed.
//
// Only what Needs names is looked at; the rest may be nil.
func In(ivs []Codes, present *roaring.Bitmap, sl []*roaring.Bitmap) *roaring.Bitmap {
	top := ^uint64(0)
	if len(sl) < 64 {
		top = 1<<len(sl) - 1
	}
	if len(ivs) > 0 && ivs[len(ivs)-1].Hi > top {
		ivs = clip(ivs, top)
	}
	switch {
	case len(ivs) == 0:
		return roaring.New()
	case len(ivs) > 1:
		return descend(present, ivs, len(sl)-1, 0, sl)
	case ivs[0].Lo == ivs[0].Hi:
		return Equal(ivs[0].Lo, present, sl)
	case ivs[0].Lo == 0 && ivs[0].Hi >= top:
		return present
	case ivs[0].Lo == 0:
		return roaring.AndNot(present, Above(ivs[0].Hi, sl))
	}
	out := Above(ivs[0].Lo-1, sl)
	if ivs[0].Hi < top {
		out.AndNot(Above(ivs[0].Hi, sl))
	}
	return out
}

func clip(ivs []Codes, top uint64) []Codes {
	out := make([]Codes, 0, len(ivs))
	for _, v := range ivs {
		if v.Lo <= top {
			out = append(out, Codes{v.Lo, min(v.Hi, top)})
		}
	}
	return out
}

// Needs says what In looks at, given n slices: present or not, and the slices
// from lowest on.
func Needs(ivs []Codes, n int) (present bool, lowest int) {
	if len(ivs) != 1 {
		return true, 0
	}
	lo, hi := ivs[0].Lo, ivs[0].Hi
	switch {
	case lo == hi:
		return lo == 0, 0
	case lo == 0:
		return true, min(LowestAbove(hi), n)
	}
	return false, min(LowestAbove(lo-1), LowestAbove(hi), n)
}

// descend splits the codes base .. base+2^(bit+1)-1 of the rows of set by their
// highest bit, down to what lies inside or outside of the intervals as a whole.
func descend(set *roaring.Bitmap, ivs []Codes, bit int, base uint64, sl []*roaring.Bitmap) *roaring.Bitmap {
	last := base
	if bit >= 0 {
		last = base + (uint64(1)<<bit-1)<<1 + 1
	}
	for len(ivs) > 0 && ivs[0].Hi < base {
		ivs = ivs[1:]
	}
	for len(ivs) > 0 && ivs[len(ivs)-1].Lo > last {
		ivs = ivs[:len(ivs)-1]
	}
	if len(ivs) == 0 || set.IsEmpty() {
		return roaring.New()
	}
	if ivs[0].Lo <= base && ivs[0].Hi >= last {
		return set
	}
	mid := base + uint64(1)<<bit
	var lo, hi *roaring.Bitmap
	if ivs[0].Lo < mid {
		lo = descend(roaring.AndNot(set, sl[bit]), ivs, bit-1, base, sl)
	}
	if ivs[len(ivs)-1].Hi >= mid {
		hi = descend(roaring.And(set, sl[bit]), ivs, bit-1, mid, sl)
	}
	switch {
	case lo == nil:
		return hi
	case hi == nil:
		return lo
	}
	lo.Or(hi) // made here: set was returned whole by neither or by one alone
	return lo
}

// Top returns the rows of set with the n highest (or lowest) codes, and all that
// tie with the last of them. The result may be set itself.
//
// From the highest bit down: sure are rows that belong to the answer, open are
// those that agree so far with the code of the n-th.
func Top(n uint64, highest bool, set *roaring.Bitmap, sl []*roaring.Bitmap) *roaring.Bitmap {
	if n == 0 {
		return roaring.New()
	}
	left := set.GetCardinality() // of open
	if left <= n {
		return set
	}
	sure, open := roaring.New(), set
	for i := len(sl) - 1; i >= 0 && left > n; i-- {
		var better *roaring.Bitmap
		if highest {
			better = roaring.And(open, sl[i])
		} else {
			better = roaring.AndNot(open, sl[i])
		}
		if k := better.GetCardinality(); k >= n {
			open, left = better, k
		} else {
			sure.Or(better)
			n -= k
			open, left = roaring.AndNot(open, better), left-k
		}
	}
	sure.Or(open)
	return sure
}

// Merge sorts intervals and joins those that overlap or touch, in place.
func Merge(ivs []Codes) []Codes {
	if len(ivs) < 2 {
		return ivs
	}
	slices.SortFunc(ivs, func(a, b Codes) int { return cmp.Compare(a.Lo, b.Lo) })
	out := ivs[:1]
	for _, v := range ivs[1:] {
		last := &out[len(out)-1]
		if v.Lo <= last.Hi || v.Lo-1 == last.Hi {
			last.Hi = max(last.Hi, v.Hi)
		} else {
			out = append(out, v)
		}
	}
	return out
}
