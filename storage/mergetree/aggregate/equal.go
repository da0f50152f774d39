package aggregate

import (
	"encoding/binary"
	"math"

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
	case *array.Map, *array.List:
		offs, child := vec.ListParts(a)
		dst = binary.LittleEndian.AppendUint32(dst, uint32(offs[i+1]-offs[i]))
		for j := offs[i]; j < offs[i+1]; j++ {
			dst = appendValue(dst, child, int(j))
		}
		return dst
	}
	return dst
}

// elements numbers the values of an array that are equal: words are looked up by
// bytes, without a string made where the value is known.
type elements struct {
	ids map[string]int32
	key []byte
}

func (e *elements) reset() {
	if e.ids == nil {
		e.ids = map[string]int32{}
	}
	clear(e.ids)
}
