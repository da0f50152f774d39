package cluster

import (
	"bytes"
	"math/bits"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// A curve takes as many bits of each column in turn, so columns must differ in
// bits of the same weight: an integer below 1,000 beside one of 64 random bits
// would not count at all, nor would doubles that differ in their mantissas. Scaling
// makes the words of a column nearly uniform: a sample is cut into pieces of as
// many values, and a word becomes the number of its piece and where it lies in it.

const (
	pieceBits = 10
	pieces    = 1 << pieceBits
	fracBits  = 64 - pieceBits
	// SampleRows is about how many rows a sample should have.
	SampleRows = 32 << 10
)

// scale is a monotonous mapping of words. The zero value changes nothing.
type scale struct {
	prefix []byte          // that all values begin with
	from   []uint64        // pieces lower bounds, ascending; from[0] = 0
	factor [pieces]float64 // from a distance from the bound to the fraction
}

// Learn looks at a sample of rows, which should be spread over all of them: keys
// made before and after it cannot be compared. Without one, or where the sample
// is empty, columns count by their bits.
func (c *Codec) Learn(samples [][]arrow.Array, n []int) {
	if !c.Samples() {
		return
	}
	total := 0
	for _, k := range n {
		total += k
	}
	if total == 0 {
		return
	}
	scales := make([]scale, len(c.types))
	for i, t := range c.types {
		if variable(t) {
			scales[i].prefix = sharedPrefix(samples, n, i)
		}
	}
	c.scales = scales
	all := make([][]uint64, len(c.types))
	for s, cols := range samples {
		for i, w := range c.fill(cols, n[s]) { // nothing is scaled yet
			all[i] = append(all[i], w...)
		}
	}
	for i := range scales {
		scales[i].learn(all[i])
	}
}

// sharedPrefix is what all sampled values of a column begin with.
func sharedPrefix(samples [][]arrow.Array, n []int, col int) []byte {
	var first []byte
	some := false
	for s, cols := range samples {
		a := vec.Decode(cols[col])
		v := vec.ViewStr(a)
		for i := range n[s] {
			if v.IsNull(i) {
				continue
			}
			b := v.At(i)
			if !some {
				first, some = bytes.Clone(b), true
				continue
			}
			k := 0
			for k < len(first) && k < len(b) && first[k] == b[k] {
				k++
			}
			if first = first[:k]; k == 0 {
				return nil
			}
		}
	}
	return first
}

func (s *scale) learn(sample []uint64) {
	slices.Sort(sample)
	s.from = make([]uint64, pieces)
	for i := 1; i < pieces; i++ {
		s.from[i] = sample[i*len(sample)/pieces]
	}
	for i := range pieces {
		width := float64(^s.from[i]) // to the greatest word
		if i+1 < pieces {
			width = float64(s.from[i+1] - s.from[i])
		}
		if width > 0 {
			s.factor[i] = (1 << fracBits) / width
		}
	}
}

// apply scales words in place.
func (s *scale) apply(w []uint64) {
	if s.from == nil {
		return
	}
	from := (*[pieces]uint64)(s.from)
	for i, x := range w {
		// The last piece whose bound is not above x; from[0] is 0.
		p := uint64(0)
		for step := uint64(pieces / 2); step > 0; step /= 2 {
			_, above := bits.Sub64(x, from[(p+step)&(pieces-1)], 0)
			p += step & (above - 1) // no branch: which way it goes cannot be foretold
		}
		frac := uint64(float64(x-from[p]) * s.factor[p])
		w[i] = p<<fracBits | min(frac, 1<<fracBits-1)
	}
}
