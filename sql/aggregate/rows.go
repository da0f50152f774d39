package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// arg returns argument i of an Update as a plain array.
func arg(args []vec.Vec, i int, groups []uint32, sel []uint16) arrow.Array {
	return plain(args[i], groups, sel)
}

// row is the row of the i-th live row.
func row(sel []uint16, i int) int {
	if sel == nil {
		return i
	}
	return int(sel[i])
}

// pairs calls f for group from[i] (or i) of the other state and to[i] here.
func pairs(from, to []uint32, f func(from, to uint32)) {
	for i, t := range to {
		s := uint32(i)
		if from != nil {
			s = from[i]
		}
		f(s, t)
	}
}

// source is the group of the other state that goes with to[k].
func source(from []uint32, k int) uint32 {
	if from != nil {
		return from[k]
	}
	return uint32(k)
}

// byteRows makes a text or bytea column; nil is NULL.
func byteRows(dt arrow.DataType, v [][]byte) arrow.Array {
	off := make([]int32, 1, len(v)+1)
	var data []byte
	for _, b := range v {
		data = append(data, b...)
		off = append(off, int32(len(data)))
	}
	return vec.MakeBytes(dt, off, data, validFrom(0, len(v), func(i int) bool { return v[i] != nil }))
}

func fixed(k types.Kind) types.Type { return types.Of(k) }

func one(t types.Type) []types.Type { return []types.Type{t} }

var (
	tInt2, tInt4, tInt8 = fixed(types.Int2), fixed(types.Int4), fixed(types.Int8)
	tFloat4, tFloat8    = fixed(types.Float4), fixed(types.Float8)
	tNumeric            = fixed(types.Numeric)
	tText, tBytea       = fixed(types.Text), fixed(types.Bytea)
	tBool               = fixed(types.Bool)
	tInterval           = fixed(types.Interval)
	tAny                = fixed(types.Any)
	tAnyElement         = fixed(types.AnyElement)
	tAnyArray           = fixed(types.AnyArray)
)
