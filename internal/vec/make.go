package vec

import (
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Buf wraps b, which the array then owns. nil stays nil.
func Buf(b []byte) *memory.Buffer {
	if b == nil {
		return nil
	}
	return memory.NewBufferBytes(b)
}

// Bytes returns the memory of v as bytes. Sound because Fixed types have no
// pointers and no padding.
func Bytes[T Fixed](v []T) []byte {
	if len(v) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

// Cast reinterprets bytes as a slice of T; len(b) must be a multiple of T's size
// and b must be aligned, which Arrow buffers made by this package are.
func Cast[T Fixed](b []byte) []T {
	if len(b) == 0 {
		return nil
	}
	var z T
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(z)))
}

func nulls(valid []byte, n int) int {
	if valid == nil {
		return 0
	}
	return n - bitutil.CountSetBits(valid, 0, n)
}

// Make wraps values and a validity bitmap (nil = no NULLs) as an array of the
// fixed-width Arrow type dt. The array owns v and valid from now on.
func Make[T Fixed](dt arrow.DataType, v []T, valid []byte) arrow.Array {
	return array.MakeFromData(array.NewData(dt, len(v), []*memory.Buffer{Buf(valid), Buf(Bytes(v))}, nil, nulls(valid, len(v)), 0))
}

// MakeFixedBytes wraps n values of w bytes each (Decimal128, FixedSizeBinary).
func MakeFixedBytes(dt arrow.DataType, n int, v []byte, valid []byte) arrow.Array {
	if v == nil {
		v = []byte{}
	}
	return array.MakeFromData(array.NewData(dt, n, []*memory.Buffer{Buf(valid), Buf(v)}, nil, nulls(valid, n), 0))
}

// MakeBool wraps a bitmap of n booleans.
func MakeBool(n int, bits, valid []byte) arrow.Array {
	if bits == nil {
		bits = []byte{}
	}
	return array.MakeFromData(array.NewData(arrow.FixedWidthTypes.Boolean, n, []*memory.Buffer{Buf(valid), Buf(bits)}, nil, nulls(valid, n), 0))
}

// MakeBytes wraps len(off)-1 variable-length values; dt is String or Binary.
// off must start at 0 or above and be ascending.
func MakeBytes(dt arrow.DataType, off []int32, data, valid []byte) arrow.Array {
	n := len(off) - 1
	if data == nil {
		data = []byte{}
	}
	return array.MakeFromData(array.NewData(dt, n, []*memory.Buffer{Buf(valid), Buf(Bytes(off)), Buf(data)}, nil, nulls(valid, n), 0))
}

// MakeDict wraps int32 indices into a dictionary of strings. A NULL row is
// NULL in valid; the dictionary holds no NULL.
func MakeDict(idx []int32, valid []byte, dict arrow.Array) arrow.Array {
	dt := &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: dict.DataType()}
	ix := array.NewData(arrow.PrimitiveTypes.Int32, len(idx), []*memory.Buffer{Buf(valid), Buf(Bytes(idx))}, nil, nulls(valid, len(idx)), 0)
	return array.NewDictionaryArray(dt, array.MakeFromData(ix), dict)
}

// MakeList wraps a list or map array: off has one more entry than there are
// rows. For a map, child is a struct array of key and value.
func MakeList(dt arrow.DataType, off []int32, child arrow.Array, valid []byte) arrow.Array {
	n := len(off) - 1
	return array.MakeFromData(array.NewData(dt, n, []*memory.Buffer{Buf(valid), Buf(Bytes(off))}, []arrow.ArrayData{child.Data()}, nulls(valid, n), 0))
}

// MakeStruct wraps children of equal length n.
func MakeStruct(dt arrow.DataType, n int, children []arrow.Array, valid []byte) arrow.Array {
	cd := make([]arrow.ArrayData, len(children))
	for i, c := range children {
		cd[i] = c.Data()
	}
	return array.MakeFromData(array.NewData(dt, n, []*memory.Buffer{Buf(valid)}, cd, nulls(valid, n), 0))
}

// MakeNull makes n NULLs of any Arrow type.
func MakeNull(dt arrow.DataType, n int) arrow.Array {
	return array.MakeArrayOfNull(memory.DefaultAllocator, dt, n)
}

// ViewOf returns the values of a fixed-width array whose elements are T. The
// caller has chosen T from the array's type.
func ViewOf[T Fixed](a arrow.Array) View[T] {
	d := a.Data()
	o, n := d.Offset(), d.Len()
	v := View[T]{Off: o}
	if b := d.Buffers()[1]; b != nil {
		v.V = Cast[T](b.Bytes())[o : o+n : o+n]
	}
	if b := d.Buffers()[0]; b != nil && d.NullN() != 0 {
		v.Valid = b.Bytes()
	}
	return v
}

// ViewDec returns the cells of a Decimal128 array.
func ViewDec(a arrow.Array) (v []decimal128.Num, valid []byte, off int) {
	d := a.Data()
	v = a.(*array.Decimal128).Values()
	if b := d.Buffers()[0]; b != nil && d.NullN() != 0 {
		valid = b.Bytes()
	}
	return v, valid, d.Offset()
}

// StrView is a String or Binary column: value i is Data[Off[i]:Off[i+1]].
type StrView struct {
	Offs  []int32
	Data  []byte
	Valid []byte // nil = no NULLs
	Off   int    // bit in Valid of row 0
}

// At returns value i, aliasing the column.
func (s *StrView) At(i int) []byte { return s.Data[s.Offs[i]:s.Offs[i+1]] }

// IsNull reports whether row i is NULL.
func (s *StrView) IsNull(i int) bool {
	if s.Valid == nil {
		return false
	}
	i += s.Off
	return s.Valid[i>>3]&(1<<(i&7)) == 0
}

// ViewStr returns the values of a String or Binary array (not of a dictionary:
// see Decode).
func ViewStr(a arrow.Array) StrView {
	d := a.Data()
	o, n := d.Offset(), d.Len()
	s := StrView{Off: o}
	if n > 0 {
		s.Offs = Cast[int32](d.Buffers()[1].Bytes())[o : o+n+1]
		if d.Buffers()[2] != nil {
			s.Data = d.Buffers()[2].Bytes()
		}
	}
	if b := d.Buffers()[0]; b != nil && d.NullN() != 0 {
		s.Valid = b.Bytes()
	}
	return s
}

// BitAt reports bit i of an LSB-first bitmap; nil means all set.
func BitAt(b []byte, i int) bool { return b == nil || b[i>>3]&(1<<(i&7)) != 0 }

// BitmapLen returns the bytes that n bits need.
func BitmapLen(n int) int { return (n + 7) >> 3 }
