package vec

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
)

// Plain returns the value type of a dictionary type, and any other type as it
// is.
func Plain(dt arrow.DataType) arrow.DataType {
	if d, ok := dt.(*arrow.DictionaryType); ok {
		return d.ValueType
	}
	return dt
}

// IsDict reports whether a is a dictionary.
func IsDict(a arrow.Array) bool { return a.DataType().ID() == arrow.DICTIONARY }

// Decode returns a dictionary as a plain array, and any other array as it is.
func Decode(a arrow.Array) arrow.Array {
	d, ok := a.(*array.Dictionary)
	if !ok {
		return a
	}
	dict := d.Dictionary()
	idx, ok := dictIndex(d)
	if !ok {
		idx = make([]int32, d.Len())
		for i := range idx {
			if d.IsValid(i) {
				idx[i] = int32(d.GetValueIndex(i))
			}
		}
	}
	v, off := Validity(a)
	if dict.Len() == 0 {
		return MakeNull(dict.DataType(), d.Len())
	}
	if v == nil && dict.NullN() == 0 {
		return takeWith(dict, idx, nil)
	}
	// Indices under NULL may be garbage.
	valid := make([]byte, BitmapLen(len(idx)))
	safe := make([]int32, len(idx))
	for i, x := range idx {
		if BitAt(v, off+i) && dict.IsValid(int(x)) {
			safe[i] = x
			SetBit(valid, i)
		}
	}
	return takeWith(dict, safe, valid)
}

// dictIndex returns the int32 indices of d; ok is false for other index types.
func dictIndex(d *array.Dictionary) (idx []int32, ok bool) {
	if d.DataType().(*arrow.DictionaryType).IndexType.ID() != arrow.INT32 {
		return nil, false
	}
	return rawFixed[int32](d), true
}

// DictView returns the int32 indices (arbitrary where NULL) and the values of a
// dictionary array; ok is false when a is none, or has other indices.
func DictView(a arrow.Array) (idx []int32, dict arrow.Array, ok bool) {
	d, is := a.(*array.Dictionary)
	if !is {
		return nil, nil, false
	}
	idx, ok = dictIndex(d)
	if !ok {
		return nil, nil, false
	}
	return idx, d.Dictionary(), true
}

// SameDict reports whether two dictionary arrays share one dictionary in memory.
func SameDict(a, b arrow.Array) bool {
	if !IsDict(a) || !IsDict(b) {
		return false
	}
	x, y := a.Data().Dictionary(), b.Data().Dictionary()
	if x == y {
		return true
	}
	if x.Len() != y.Len() || x.Offset() != y.Offset() || len(x.Buffers()) != len(y.Buffers()) || len(x.Buffers()) < 3 {
		return false
	}
	for i := 1; i < 3; i++ {
		p, q := x.Buffers()[i], y.Buffers()[i]
		if p == q {
			continue
		}
		if p == nil || q == nil || p.Len() != q.Len() || p.Len() > 0 && &p.Bytes()[0] != &q.Bytes()[0] {
			return false
		}
	}
	return true
}
