package vec

import (
	"unsafe"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"
)

// Index are the types of row numbers that Take accepts.
type Index interface{ ~uint16 | ~int32 | ~uint32 }

type b16 struct{ a, b uint64 }
type b12 struct{ a, b, c uint32 }

// castAny reinterprets bytes as a slice of T, which holds no pointers. Sound as
// Cast is; x86 and arm64 allow unaligned words where a foreign buffer is not
// aligned.
func castAny[T any](b []byte) []T {
	var z T
	if len(b) < int(unsafe.Sizeof(z)) {
		return nil
	}
	return unsafe.Slice((*T)(unsafe.Pointer(&b[0])), len(b)/int(unsafe.Sizeof(z)))
}

func anyBytes[T any](v []T) []byte {
	if len(v) == 0 {
		return []byte{}
	}
	return unsafe.Slice((*byte)(unsafe.Pointer(&v[0])), len(v)*int(unsafe.Sizeof(v[0])))
}

// fixedWidth returns the bytes of a fixed-width type, 0 for others (booleans
// too).
func fixedWidth(dt arrow.DataType) int {
	if dt.ID() == arrow.BOOL || dt.ID() == arrow.DICTIONARY || dt.ID() == arrow.FIXED_SIZE_LIST {
		return 0
	}
	if f, ok := dt.(arrow.FixedWidthDataType); ok {
		return f.BitWidth() / 8
	}
	return 0
}

func rawFixed[T any](a arrow.Array) []T {
	d := a.Data()
	if d.Len() == 0 || d.Buffers()[1] == nil {
		return nil
	}
	return castAny[T](d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+d.Len()]
}

func makeRaw(dt arrow.DataType, n int, valid []byte, bufs ...*memory.Buffer) arrow.Array {
	return array.MakeFromData(array.NewData(dt, n, append([]*memory.Buffer{Buf(valid)}, bufs...), nil, nulls(valid, n), 0))
}

// Take returns rows idx of a as a fresh array; every index must be in range. A
// dictionary keeps its dictionary.
func Take[I Index](a arrow.Array, idx []I) arrow.Array {
	v, off := Validity(a)
	return takeWith(a, idx, takeBits(v, off, idx))
}

// TakeNull is Take where a negative index makes a NULL row: the missing side of
// an outer join.
func TakeNull(a arrow.Array, idx []int32) arrow.Array {
	if a.Len() == 0 {
		return MakeNull(Plain(a.DataType()), len(idx))
	}
	v, off := Validity(a)
	neg := false
	for _, i := range idx {
		neg = neg || i < 0
	}
	if !neg {
		return takeWith(a, idx, takeBits(v, off, idx))
	}
	valid := make([]byte, BitmapLen(len(idx)))
	safe := make([]int32, len(idx))
	for k, i := range idx {
		if i < 0 {
			continue
		}
		safe[k] = i
		if BitAt(v, off+int(i)) {
			SetBit(valid, k)
		}
	}
	return takeWith(a, safe, valid)
}

func takeBits[I Index](v []byte, off int, idx []I) []byte {
	if v == nil {
		return nil
	}
	out := make([]byte, BitmapLen(len(idx)))
	for k, i := range idx {
		j := off + int(i)
		out[k>>3] |= (v[j>>3] >> (j & 7) & 1) << (k & 7)
	}
	return out
}

func takeFixed[T any, I Index](dt arrow.DataType, a arrow.Array, idx []I, valid []byte) arrow.Array {
	src := rawFixed[T](a)
	out := make([]T, len(idx))
	if len(src) > 0 {
		for k, i := range idx {
			out[k] = src[i]
		}
	}
	return makeRaw(dt, len(idx), valid, Buf(anyBytes(out)))
}

func takeWith[I Index](a arrow.Array, idx []I, valid []byte) arrow.Array {
	dt := a.DataType()
	n := len(idx)
	switch dt.ID() {
	case arrow.BOOL:
		d := a.Data()
		if n == 0 || d.Len() == 0 {
			return MakeNull(dt, n)
		}
		return makeRaw(dt, n, valid, Buf(takeBits(d.Buffers()[1].Bytes(), d.Offset(), idx)))
	case arrow.STRING, arrow.BINARY:
		return takeBytes(dt, a, idx, valid)
	case arrow.DICTIONARY:
		dd := a.(*array.Dictionary)
		src, ok := dictIndex(dd)
		if !ok {
			return takeWith(Decode(a), idx, valid)
		}
		out := make([]int32, n)
		if len(src) > 0 {
			for k, i := range idx {
				out[k] = src[i]
			}
		}
		return MakeDict(out, valid, dd.Dictionary())
	case arrow.STRUCT:
		s := a.(*array.Struct)
		ch := make([]arrow.Array, s.NumField())
		for c := range ch {
			ch[c] = Take(s.Field(c), idx)
		}
		return MakeStruct(dt, n, ch, valid)
	case arrow.LIST, arrow.MAP:
		offs, child := ListParts(a)
		out := make([]int32, n+1)
		total := 0
		for k, i := range idx {
			if valid == nil || BitAt(valid, k) {
				total += int(offs[int(i)+1] - offs[i])
			}
			out[k+1] = int32(total)
		}
		rows := make([]int32, 0, total)
		for k, i := range idx {
			if valid == nil || BitAt(valid, k) {
				for j := offs[i]; j < offs[int(i)+1]; j++ {
					rows = append(rows, j)
				}
			}
		}
		return MakeList(dt, out, Take(child, rows), valid)
	case arrow.NULL:
		return MakeNull(dt, n)
	}
	switch w := fixedWidth(dt); w {
	case 1:
		return takeFixed[uint8](dt, a, idx, valid)
	case 2:
		return takeFixed[uint16](dt, a, idx, valid)
	case 4:
		return takeFixed[uint32](dt, a, idx, valid)
	case 8:
		return takeFixed[uint64](dt, a, idx, valid)
	case 12:
		return takeFixed[b12](dt, a, idx, valid)
	case 16:
		return takeFixed[b16](dt, a, idx, valid)
	default:
		return takeWide(dt, w, a, idx, valid)
	}
}

// takeWide copies fixed-size values of an uncommon width.
func takeWide[I Index](dt arrow.DataType, w int, a arrow.Array, idx []I, valid []byte) arrow.Array {
	out := make([]byte, w*len(idx))
	if w > 0 && a.Len() > 0 {
		d := a.Data()
		src := d.Buffers()[1].Bytes()[d.Offset()*w:]
		for k, i := range idx {
			copy(out[k*w:(k+1)*w], src[int(i)*w:])
		}
	}
	return makeRaw(dt, len(idx), valid, Buf(out))
}

func takeBytes[I Index](dt arrow.DataType, a arrow.Array, idx []I, valid []byte) arrow.Array {
	s := ViewStr(a)
	offs := make([]int32, len(idx)+1)
	total := int32(0)
	for k, i := range idx {
		if valid == nil || valid[k>>3]&(1<<(k&7)) != 0 {
			total += s.Offs[int(i)+1] - s.Offs[i]
		}
		offs[k+1] = total
	}
	data := make([]byte, total)
	for k, i := range idx {
		copy(data[offs[k]:offs[k+1]], s.Data[s.Offs[i]:])
	}
	return MakeBytes(dt, offs, data, valid)
}

// ListParts returns the offsets (one more than rows, absolute in child) and the
// child of a list or map array; the child of a map is a struct of key and value.
func ListParts(a arrow.Array) (offs []int32, child arrow.Array) {
	d := a.Data()
	if d.Len() > 0 && d.Buffers()[1] != nil {
		offs = Cast[int32](d.Buffers()[1].Bytes())[d.Offset() : d.Offset()+d.Len()+1]
	} else {
		offs = []int32{0}
	}
	switch l := a.(type) {
	case *array.Map:
		return offs, l.ListValues()
	case *array.List:
		return offs, l.ListValues()
	}
	return offs, array.MakeFromData(d.Children()[0])
}

// Slice returns rows [from, to) without copying; they keep the memory of a.
func Slice(a arrow.Array, from, to int) arrow.Array {
	if from == 0 && to == a.Len() {
		return a
	}
	return array.NewSlice(a, int64(from), int64(to))
}

// FilterSel returns the rows sel of a; a itself when sel is nil.
func FilterSel(a arrow.Array, sel []uint16) arrow.Array {
	if sel == nil {
		return a
	}
	return Take(a, sel)
}

// Compact returns b without its selection: the live rows, copied if need be.
func Compact(b *Batch) *Batch {
	if b.Sel == nil {
		return b
	}
	out := &Batch{Schema: b.Schema, Cols: make([]arrow.Array, len(b.Cols)), N: len(b.Sel)}
	for i, c := range b.Cols {
		if c != nil {
			out.Cols[i] = Take(c, b.Sel)
		}
	}
	return out
}

// Expand makes n rows of the one row of a constant.
func Expand(a arrow.Array, n int) arrow.Array {
	if a.Len() == n {
		return a
	}
	if a.IsNull(0) {
		return MakeNull(Plain(a.DataType()), n)
	}
	return Take(a, make([]int32, n))
}

// Column returns v as an array of n rows.
func (v Vec) Column(n int) arrow.Array {
	if v.Const {
		return Expand(v.Arr, n)
	}
	return v.Arr
}
