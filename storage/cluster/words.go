package cluster

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

const sign = 1 << 63

// words turns the values of a fixed-width column into words that are ordered as
// the values are, NULL into 0. Equal words may stand for values that differ:
// decimals of more than 18 digits keep about 16.
func words(out []uint64, t types.Type, a arrow.Array) {
	a = vec.Decode(a)
	switch t.Kind {
	case types.Bool:
		b := a.(*array.Boolean)
		for i := range out {
			out[i] = 1 << 62
			if b.Value(i) {
				out[i] = 3 << 62
			}
		}
	case types.TinyInt:
		spreadInts(out, vec.ViewOf[int16](a).V, 56)
	case types.Int2:
		spreadInts(out, vec.ViewOf[int16](a).V, 48)
	case types.Int4, types.Date:
		spreadInts(out, vec.ViewOf[int32](a).V, 32)
	case types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
		spreadInts(out, vec.ViewOf[int64](a).V, 0)
	case types.Float4:
		for i, x := range vec.ViewOf[float32](a).V[:len(out)] {
			out[i] = uint64(orderFloat32(x)) << 32
		}
	case types.Float8:
		for i, x := range vec.ViewOf[float64](a).V[:len(out)] {
			out[i] = orderFloat(x)
		}
	case types.Numeric:
		v, _, _ := vec.ViewDec(a)
		if t.Prec <= 18 {
			for i := range out {
				out[i] = v[i].LowBits() ^ sign
			}
			break
		}
		for i := range out {
			out[i] = orderFloat(decFloat(v[i]))
		}
	}
	zeroNulls(out, a)
}

// spreadInts moves integers of 64-shift bits to the top of words.
func spreadInts[T int16 | int32 | int64](out []uint64, v []T, shift uint) {
	v = v[:len(out)]
	for i, x := range v {
		out[i] = uint64(x)<<shift ^ sign
	}
}

// zeroNulls sets the words of NULLs to 0.
func zeroNulls(out []uint64, a arrow.Array) {
	valid, off := vec.Validity(a)
	if valid == nil {
		return
	}
	for i := range out {
		if !vec.BitAt(valid, off+i) {
			out[i] = 0
		}
	}
}

// orderFloat makes the bits of a float sort as Java compares: -0 before 0, every
// NaN alike and last.
func orderFloat(f float64) uint64 {
	b := math.Float64bits(f)
	if f != f {
		b = 0x7ff8000000000000
	}
	return b ^ (uint64(int64(b)>>63) | sign)
}

func orderFloat32(f float32) uint32 {
	b := math.Float32bits(f)
	if f != f {
		b = 0x7fc00000
	}
	return b ^ (uint32(int32(b)>>31) | 1<<31)
}

// decFloat rounds a decimal to a float, never past another one.
func decFloat(d decimal128.Num) float64 {
	hi := d.HighBits()
	if hi >= 1<<52 || hi <= -1<<52 {
		return float64(hi) * (1 << 64) // the rest could only turn the rounding
	}
	return float64(hi)*(1<<64) + float64(d.LowBits())
}

// prefixWords turns the first varBytes bytes of text or binary values into words,
// zero padded: the first word, and in rest the others. What all values begin with
// is left out: values that do not begin with skip are all zeros when they are
// smaller, all ones when they are greater.
func prefixWords(first []uint64, rest [][]uint64, a arrow.Array, skip []byte, varBytes int) {
	if idx, dict, ok := vec.DictView(a); ok && dict.Len() <= len(first) {
		prefixDict(first, rest, a, idx, dict, skip, varBytes)
		return
	}
	a = vec.Decode(a)
	s := vec.ViewStr(a)
	n := len(first)
	if n == 0 {
		return
	}
	mask := lastMask(varBytes)
	for i := range n {
		b := s.Data[s.Offs[i]:s.Offs[i+1]]
		if len(skip) > 0 {
			if !bytes.HasPrefix(b, skip) {
				w := uint64(0)
				if bytes.Compare(b, skip) > 0 {
					w = math.MaxUint64
				}
				first[i] = w
				for _, r := range rest {
					r[i] = w
				}
				continue
			}
			b = b[len(skip):]
		}
		w := word(b)
		if len(rest) == 0 {
			w &= mask
		}
		first[i] = w
		for l, r := range rest {
			b = b[min(wordBytes, len(b)):]
			w := word(b)
			if l == len(rest)-1 {
				w &= mask
			}
			r[i] = w
		}
	}
	zeroNulls(first, a)
	for _, r := range rest {
		zeroNulls(r, a)
	}
}

// prefixDict does it once for each value of a dictionary.
func prefixDict(first []uint64, rest [][]uint64, a arrow.Array, idx []int32, dict arrow.Array, skip []byte, varBytes int) {
	m := dict.Len()
	table := make([]uint64, m*(1+len(rest)))
	tables := make([][]uint64, len(rest))
	for l := range rest {
		tables[l] = table[(l+1)*m : (l+2)*m]
	}
	prefixWords(table[:m], tables, dict, skip, varBytes)
	valid, off := vec.Validity(a)
	for i, x := range idx[:len(first)] {
		if !vec.BitAt(valid, off+i) || uint(x) >= uint(m) {
			first[i] = 0
			for _, r := range rest {
				r[i] = 0
			}
			continue
		}
		first[i] = table[x]
		for l, r := range rest {
			r[i] = tables[l][x]
		}
	}
}

// lastMask keeps the bytes of the last word that varBytes has.
func lastMask(varBytes int) uint64 {
	n := (varBytes-1)%wordBytes + 1
	return ^uint64(0) << (64 - 8*n)
}

// word is the first eight bytes, zero padded.
func word(b []byte) uint64 {
	if len(b) >= wordBytes {
		return binary.BigEndian.Uint64(b)
	}
	w := uint64(0)
	for i, c := range b {
		w |= uint64(c) << (56 - 8*i)
	}
	return w
}
