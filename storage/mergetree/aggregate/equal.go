package aggregate

import (
	"bytes"
	"encoding/binary"
	"math"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// appendValue appends bytes that are equal for two values of a column exactly when
// the values are equal for Java: floats by their bits, every NaN the same. NULL is
// 0, values begin with 1.
func appendValue(dst []byte, a arrow.Array, i int) []byte {
	if a.IsNull(i) {
		return append(dst, 0)
	}
	dst = append(dst, 1)
	switch x := a.(type) {
	case *array.Boolean:
		if x.Value(i) {
			return append(dst, 1)
		}
		return append(dst, 0)
	case *array.Int16:
		return binary.LittleEndian.AppendUint16(dst, uint16(x.Value(i)))
	case *array.Int32:
		return binary.LittleEndian.AppendUint32(dst, uint32(x.Value(i)))
	case *array.Int64:
		return binary.LittleEndian.AppendUint64(dst, uint64(x.Value(i)))
	case *array.Date32:
		return binary.LittleEndian.AppendUint32(dst, uint32(x.Value(i)))
	case *array.Time64:
		return binary.LittleEndian.AppendUint64(dst, uint64(x.Value(i)))
	case *array.Timestamp:
		return binary.LittleEndian.AppendUint64(dst, uint64(x.Value(i)))
	case *array.Float32:
		f := x.Value(i)
		if f != f {
			f = float32(math.NaN())
		}
		return binary.LittleEndian.AppendUint32(dst, math.Float32bits(f))
	case *array.Float64:
		f := x.Value(i)
		if f != f {
			f = math.NaN()
		}
		return binary.LittleEndian.AppendUint64(dst, math.Float64bits(f))
	case *array.Decimal128:
		n := x.Value(i)
		dst = binary.LittleEndian.AppendUint64(dst, n.LowBits())
		return binary.LittleEndian.AppendUint64(dst, uint64(n.HighBits()))
	case *array.String:
		s := x.Value(i)
		return append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
	case *array.Binary:
		s := x.Value(i)
		return append(binary.LittleEndian.AppendUint32(dst, uint32(len(s))), s...)
	case *array.FixedSizeBinary:
		return append(dst, x.Value(i)...)
	case *array.Struct:
		for f := range x.NumField() {
			dst = appendValue(dst, x.Field(f), i)
		}
		return dst
	case *array.Map:
		return appendMap(dst, x, i)
	case *array.List:
		offs, child := vec.ListParts(a)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(offs[i+1]-offs[i]))
		for j := offs[i]; j < offs[i+1]; j++ {
			dst = appendValue(dst, child, int(j))
		}
		return dst
	}
	return dst
}

// appendMap appends the entries of a map in the order of their bytes: two maps are
// equal when they have the same entries, whatever the order in which they were
// written. Source: ScalarOperatorGens.scala, generateMapComparison.
func appendMap(dst []byte, a *array.Map, i int) []byte {
	offs, child := vec.ListParts(a)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(offs[i+1]-offs[i]))
	if offs[i+1]-offs[i] < 2 {
		for j := offs[i]; j < offs[i+1]; j++ {
			dst = appendValue(dst, child, int(j))
		}
		return dst
	}
	entries := make([][]byte, 0, offs[i+1]-offs[i])
	for j := offs[i]; j < offs[i+1]; j++ {
		entries = append(entries, appendValue(nil, child, int(j)))
	}
	slices.SortFunc(entries, bytes.Compare)
	for _, e := range entries {
		dst = append(dst, e...)
	}
	return dst
}

// elements is a map from values, by their bytes, to numbers. It is emptied and
// filled again without allocating: keys lie in one piece of memory, and few of them
// are compared one by one. The key of all methods is in key.
type elements struct {
	key    []byte
	data   []byte
	ends   []int32
	hashes []uint64
	vals   []int32
	slots  []int32 // entry+1, by hash; used for more than linear entries
}

// linear is how many entries are searched one by one.
const linear = 8

func (e *elements) reset() {
	e.data, e.ends, e.hashes, e.vals = e.data[:0], e.ends[:0], e.hashes[:0], e.vals[:0]
}

func (e *elements) len() int { return len(e.ends) }

func (e *elements) at(i int) []byte {
	from := int32(0)
	if i > 0 {
		from = e.ends[i-1]
	}
	return e.data[from:e.ends[i]]
}

// find returns the number of the key, nil when it is not there; it may be changed
// until the next put.
func (e *elements) find() *int32 {
	h := vec.HashBytes(e.key)
	if len(e.ends) <= linear {
		for i, x := range e.hashes {
			if x == h && bytes.Equal(e.at(i), e.key) {
				return &e.vals[i]
			}
		}
		return nil
	}
	mask := uint64(len(e.slots) - 1)
	for s := h & mask; e.slots[s] != 0; s = (s + 1) & mask {
		if i := int(e.slots[s] - 1); e.hashes[i] == h && bytes.Equal(e.at(i), e.key) {
			return &e.vals[i]
		}
	}
	return nil
}

// put adds the key, which is not there.
func (e *elements) put(val int32) {
	h := vec.HashBytes(e.key)
	e.data = append(e.data, e.key...)
	e.ends = append(e.ends, int32(len(e.data)))
	e.hashes = append(e.hashes, h)
	e.vals = append(e.vals, val)
	n := len(e.ends)
	switch {
	case n <= linear:
	case n == linear+1 || 2*n > len(e.slots):
		size := 4 * linear
		for size < 4*n {
			size *= 2
		}
		e.slots = grow(e.slots, size)
		clear(e.slots)
		for i, x := range e.hashes {
			e.slot(x, i)
		}
	default:
		e.slot(h, n-1)
	}
}

func (e *elements) slot(h uint64, i int) {
	mask := uint64(len(e.slots) - 1)
	s := h & mask
	for e.slots[s] != 0 {
		s = (s + 1) & mask
	}
	e.slots[s] = int32(i + 1)
}
