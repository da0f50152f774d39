package table

import (
	"bytes"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// sameValues clears same[k] where row ia[k] of a is another stored value than row
// ib[k] of b: by bits, so that 0 and -0 differ, but for NaN, of which there is one,
// and for the order of entries of maps, which counts.
func sameValues(a, b arrow.Array, ia, ib []uint32, same []bool) {
	if a == b { // one dictionary or constant column for both
		for k := range same {
			if same[k] && ia[k] != ib[k] {
				same[k] = sameAt(a, int(ia[k]), b, int(ib[k]))
			}
		}
		return
	}
	a, b = vec.Decode(a), vec.Decode(b)
	av, ao := vec.Validity(a)
	bv, bo := vec.Validity(b)
	for k := range same {
		if !same[k] {
			continue
		}
		if p, q := vec.BitAt(av, ao+int(ia[k])), vec.BitAt(bv, bo+int(ib[k])); !p || !q {
			// NULLs are settled here: same stays for two of them, and what is below
			// must not look at them.
			same[k] = p == q
		}
	}
	null := func(k int) bool { return av != nil && !vec.BitAt(av, ao+int(ia[k])) }
	switch a.DataType().ID() {
	case arrow.INT8:
		sameFixed(vec.ViewOf[int8](a).V, vec.ViewOf[int8](b).V, ia, ib, same, null)
	case arrow.INT16:
		sameFixed(vec.ViewOf[int16](a).V, vec.ViewOf[int16](b).V, ia, ib, same, null)
	case arrow.INT32, arrow.DATE32:
		sameFixed(vec.ViewOf[int32](a).V, vec.ViewOf[int32](b).V, ia, ib, same, null)
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		sameFixed(vec.ViewOf[int64](a).V, vec.ViewOf[int64](b).V, ia, ib, same, null)
	case arrow.STRING, arrow.BINARY:
		x, y := vec.ViewStr(a), vec.ViewStr(b)
		for k := range same {
			if same[k] && !null(k) {
				same[k] = bytes.Equal(x.At(int(ia[k])), y.At(int(ib[k])))
			}
		}
	default:
		for k := range same {
			if same[k] && !null(k) {
				same[k] = sameAt(a, int(ia[k]), b, int(ib[k]))
			}
		}
	}
}

func sameFixed[T vec.Fixed](x, y []T, ia, ib []uint32, same []bool, null func(int) bool) {
	for k := range same {
		if x[ia[k]] != y[ib[k]] && same[k] && !null(k) {
			same[k] = false
		}
	}
}

// sameAt compares one value of a with one of b, of the same type.
func sameAt(a arrow.Array, i int, b arrow.Array, j int) bool {
	if a.IsNull(i) || b.IsNull(j) {
		return a.IsNull(i) && b.IsNull(j)
	}
	switch x := a.(type) {
	case *array.Boolean:
		return x.Value(i) == b.(*array.Boolean).Value(j)
	case *array.Int8:
		return x.Value(i) == b.(*array.Int8).Value(j)
	case *array.Int16:
		return x.Value(i) == b.(*array.Int16).Value(j)
	case *array.Int32:
		return x.Value(i) == b.(*array.Int32).Value(j)
	case *array.Int64:
		return x.Value(i) == b.(*array.Int64).Value(j)
	case *array.Date32:
		return x.Value(i) == b.(*array.Date32).Value(j)
	case *array.Time64:
		return x.Value(i) == b.(*array.Time64).Value(j)
	case *array.Timestamp:
		return x.Value(i) == b.(*array.Timestamp).Value(j)
	case *array.Float32:
		p, q := x.Value(i), b.(*array.Float32).Value(j)
		return math.Float32bits(p) == math.Float32bits(q) || p != p && q != q
	case *array.Float64:
		p, q := x.Value(i), b.(*array.Float64).Value(j)
		return math.Float64bits(p) == math.Float64bits(q) || p != p && q != q
	case *array.Decimal128:
		return x.Value(i) == b.(*array.Decimal128).Value(j)
	case *array.FixedSizeBinary:
		return bytes.Equal(x.Value(i), b.(*array.FixedSizeBinary).Value(j))
	case *array.String:
		return x.Value(i) == b.(*array.String).Value(j)
	case *array.Binary:
		return bytes.Equal(x.Value(i), b.(*array.Binary).Value(j))
	case *array.Dictionary:
		return sameAt(vec.Decode(a), i, vec.Decode(b), j)
	case *array.Struct:
		y := b.(*array.Struct)
		for f := range x.NumField() {
			if !sameAt(x.Field(f), i, y.Field(f), j) {
				return false
			}
		}
		return true
	case array.ListLike:
		y := b.(array.ListLike)
		p, q := x.ValueOffsets(i)
		r, s := y.ValueOffsets(j)
		if q-p != s-r {
			return false
		}
		for k := range q - p {
			if !sameAt(x.ListValues(), int(p+k), y.ListValues(), int(r+k)) {
				return false
			}
		}
		return true
	}
	return array.SliceEqual(a, int64(i), int64(i)+1, b, int64(j), int64(j)+1)
}
