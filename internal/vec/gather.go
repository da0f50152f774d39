package vec

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
)

// Gather builds a column row by row from several sources: row k of the result
// is row row[k] of srcs[src[k]]. len(src) == len(row). dt is the type of the
// result where the sources do not say; sources may mix dictionaries with plain
// arrays and, for numeric, Decimal128 with the binary form: the result is then
// binary. A source that no row names may be nil.
func Gather(dt arrow.DataType, srcs []arrow.Array, src []uint16, row []uint32) arrow.Array {
	n := len(src)
	row = row[:n]
	dt, srcs = unify(dt, srcs)
	if n == 0 {
		return MakeNull(Plain(dt), 0)
	}
	valid := gatherBits(srcs, src, row)
	if dt.ID() == arrow.DICTIONARY {
		if out := gatherDict(srcs, src, row, valid); out != nil {
			return out
		}
		return gatherBytes(Plain(dt), srcs, src, row, valid)
	}
	switch dt.ID() {
	case arrow.BOOL:
		out := NewBitmap(n)
		raw := make([][]byte, len(srcs))
		off := make([]int, len(srcs))
		for i, a := range srcs {
			if a != nil && a.Len() > 0 {
				raw[i], off[i] = a.Data().Buffers()[1].Bytes(), a.Data().Offset()
			}
		}
		for k, s := range src {
			j := off[s] + int(row[k])
			out[k>>3] |= (raw[s][j>>3] >> (j & 7) & 1) << (k & 7)
		}
		return makeRaw(dt, n, valid, Buf(out))
	case arrow.STRING, arrow.BINARY:
		return gatherBytes(dt, srcs, src, row, valid)
	case arrow.STRUCT:
		nf := dt.(*arrow.StructType).NumFields()
		ch := make([]arrow.Array, nf)
		sub := make([]arrow.Array, len(srcs))
		for c := range ch {
			for i, a := range srcs {
				sub[i] = nil
				if a != nil {
					sub[i] = a.(*array.Struct).Field(c)
				}
			}
			ch[c] = Gather(dt.(*arrow.StructType).Field(c).Type, sub, src, row)
		}
		return MakeStruct(structType(dt.(*arrow.StructType), ch), n, ch, valid)
	case arrow.LIST, arrow.MAP:
		return gatherList(dt, srcs, src, row, valid)
	case arrow.NULL:
		return MakeNull(dt, n)
	}
	switch w := fixedWidth(dt); w {
	case 1:
		return gatherFixed[uint8](dt, srcs, src, row, valid)
	case 2:
		return gatherFixed[uint16](dt, srcs, src, row, valid)
	case 4:
		return gatherFixed[uint32](dt, srcs, src, row, valid)
	case 8:
		return gatherFixed[uint64](dt, srcs, src, row, valid)
	case 12:
		return gatherFixed[b12](dt, srcs, src, row, valid)
	case 16:
		return gatherFixed[b16](dt, srcs, src, row, valid)
	default:
		out := make([]byte, w*n)
		for k, s := range src {
			d := srcs[s].Data()
			copy(out[k*w:(k+1)*w], d.Buffers()[1].Bytes()[(d.Offset()+int(row[k]))*w:])
		}
		return makeRaw(dt, n, valid, Buf(out))
	}
}

// structType returns t with the types that its children came out with.
func structType(t *arrow.StructType, ch []arrow.Array) arrow.DataType {
	same := true
	for i, c := range ch {
		same = same && (c.DataType() == t.Field(i).Type || c.DataType().ID() == t.Field(i).Type.ID() && arrow.TypeEqual(c.DataType(), t.Field(i).Type))
	}
	if same {
		return t
	}
	fs := make([]arrow.Field, len(ch))
	for i, c := range ch {
		fs[i] = t.Field(i)
		fs[i].Type = c.DataType()
	}
	return arrow.StructOf(fs...)
}

// listType returns list or map type t with child as its child.
func listType(t arrow.DataType, child arrow.Array) arrow.DataType {
	switch t := t.(type) {
	case *arrow.ListType:
		if t.Elem().ID() != child.DataType().ID() || !arrow.TypeEqual(t.Elem(), child.DataType()) {
			return arrow.ListOf(child.DataType())
		}
	case *arrow.MapType:
		if !arrow.TypeEqual(t.Elem(), child.DataType()) {
			s := child.DataType().(*arrow.StructType)
			return arrow.MapOf(s.Field(0).Type, s.Field(1).Type)
		}
	}
	return t
}

func gatherBits(srcs []arrow.Array, src []uint16, row []uint32) []byte {
	any := false
	v := make([][]byte, len(srcs))
	off := make([]int, len(srcs))
	for i, a := range srcs {
		if a != nil {
			v[i], off[i] = Validity(a)
			any = any || v[i] != nil
		}
	}
	if !any {
		return nil
	}
	out := NewBitmap(len(src))
	for k, s := range src {
		b := v[s]
		if b == nil {
			SetBit(out, k)
			continue
		}
		j := off[s] + int(row[k])
		out[k>>3] |= (b[j>>3] >> (j & 7) & 1) << (k & 7)
	}
	return out
}

func gatherFixed[T any](dt arrow.DataType, srcs []arrow.Array, src []uint16, row []uint32, valid []byte) arrow.Array {
	raw := make([][]T, len(srcs))
	for i, a := range srcs {
		if a != nil {
			raw[i] = rawFixed[T](a)
		}
	}
	out := make([]T, len(src))
	row = row[:len(src)]
	if len(raw) == 1 {
		one := raw[0]
		for k, r := range row {
			out[k] = one[r]
		}
	} else {
		for k, s := range src {
			out[k] = raw[s][row[k]]
		}
	}
	return makeRaw(dt, len(src), valid, Buf(anyBytes(out)))
}

func gatherDict(srcs []arrow.Array, src []uint16, row []uint32, valid []byte) arrow.Array {
	var first arrow.Array
	raw := make([][]int32, len(srcs))
	for i, a := range srcs {
		if a == nil {
			continue
		}
		d, ok := a.(*array.Dictionary)
		if !ok {
			return nil
		}
		if first == nil {
			first = a
		} else if !SameDict(first, a) {
			return nil
		}
		if raw[i], ok = dictIndex(d); !ok {
			return nil
		}
	}
	out := make([]int32, len(src))
	for k, s := range src {
		out[k] = raw[s][row[k]]
	}
	return MakeDict(out, valid, first.(*array.Dictionary).Dictionary())
}

// strSource is a source of strings: plain, or through a dictionary.
type strSource struct {
	StrView
	idx []int32
}

func (s *strSource) at(i uint32) []byte {
	if s.idx != nil {
		i = uint32(s.idx[i])
	}
	return s.Data[s.Offs[i]:s.Offs[i+1]]
}

func gatherBytes(dt arrow.DataType, srcs []arrow.Array, src []uint16, row []uint32, valid []byte) arrow.Array {
	ss := make([]strSource, len(srcs))
	for i, a := range srcs {
		if a == nil || a.Len() == 0 {
			continue
		}
		if idx, dict, ok := DictView(a); ok {
			ss[i] = strSource{ViewStr(dict), idx}
		} else {
			ss[i] = strSource{ViewStr(Decode(a)), nil}
		}
	}
	n := len(src)
	offs := make([]int32, n+1)
	total := 0
	for k, s := range src {
		if valid == nil || valid[k>>3]&(1<<(k&7)) != 0 {
			total += len(ss[s].at(row[k]))
		}
		offs[k+1] = int32(total)
	}
	data := make([]byte, total)
	for k, s := range src {
		if offs[k+1] > offs[k] {
			copy(data[offs[k]:offs[k+1]], ss[s].at(row[k]))
		}
	}
	return MakeBytes(dt, offs, data, valid)
}

func gatherList(dt arrow.DataType, srcs []arrow.Array, src []uint16, row []uint32, valid []byte) arrow.Array {
	offs := make([][]int32, len(srcs))
	child := make([]arrow.Array, len(srcs))
	var elem arrow.DataType
	switch t := dt.(type) {
	case *arrow.MapType:
		elem = t.Elem()
	case *arrow.ListType:
		elem = t.Elem()
	}
	for i, a := range srcs {
		if a != nil {
			offs[i], child[i] = ListParts(a)
		}
	}
	out := make([]int32, len(src)+1)
	total := 0
	for k, s := range src {
		if BitAt(valid, k) {
			o := offs[s]
			total += int(o[row[k]+1] - o[row[k]])
		}
		out[k+1] = int32(total)
	}
	csrc, crow := make([]uint16, 0, total), make([]uint32, 0, total)
	for k, s := range src {
		if BitAt(valid, k) {
			o := offs[s]
			for j := o[row[k]]; j < o[row[k]+1]; j++ {
				csrc = append(csrc, s)
				crow = append(crow, uint32(j))
			}
		}
	}
	c := Gather(elem, child, csrc, crow)
	return MakeList(listType(dt, c), out, c, valid)
}

// unify brings the sources of one column to one Arrow type. Only numeric has
// more than one (Decimal128 of several scales, binary) besides dictionaries.
func unify(dt arrow.DataType, srcs []arrow.Array) (arrow.DataType, []arrow.Array) {
	var first arrow.DataType
	dec, bin, scales, dict, plain := false, false, false, false, false
	for _, a := range srcs {
		if a == nil {
			continue
		}
		t := a.DataType()
		if first == nil {
			first = t
		}
		switch t.ID() {
		case arrow.DECIMAL128:
			d := t.(*arrow.Decimal128Type)
			if f, ok := first.(*arrow.Decimal128Type); ok {
				scales = scales || f.Scale != d.Scale
				if d.Precision > f.Precision {
					first = t
				}
			}
			dec = true
		case arrow.BINARY:
			bin = true
		case arrow.DICTIONARY:
			dict = true
		default:
			plain = true
		}
	}
	switch {
	case first == nil:
		return dt, srcs
	case dec && (bin || scales):
		out := make([]arrow.Array, len(srcs))
		for i, a := range srcs {
			if a != nil {
				out[i] = DecBinary(a)
			}
		}
		return arrow.BinaryTypes.Binary, out
	case dict && (plain || bin):
		return &arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: Plain(first)}, srcs
	}
	return first, srcs
}

// DecBinary returns a numeric column in its binary form.
func DecBinary(a arrow.Array) arrow.Array {
	dt, ok := a.DataType().(*arrow.Decimal128Type)
	if !ok {
		return a
	}
	v, valid, off := ViewDec(a)
	offs := make([]int32, len(v)+1)
	var data []byte
	for i, x := range v {
		if BitAt(valid, off+i) {
			data = AppendDec128(data, x, dt.Scale)
		}
		offs[i+1] = int32(len(data))
	}
	return MakeBytes(arrow.BinaryTypes.Binary, offs, data, CopyBits(valid, off, len(v)))
}

// AppendDec128 appends the binary form (numeric.AppendEncoded) of one cell.
func AppendDec128(dst []byte, x decimal128.Num, scale int32) []byte {
	return numeric.AppendEncoded(dst, numeric.From128(x, scale))
}

// Concat joins arrays of one logical type end to end; dt is the type when there
// are none. Mixed forms behave as in Gather. More than 2^31 bytes of text do
// not fit one array: the caller bounds what it joins.
func Concat(dt arrow.DataType, arrs []arrow.Array) arrow.Array {
	if len(arrs) == 1 {
		return arrs[0]
	}
	dt, arrs = unify(dt, arrs)
	n := 0
	anyNull := false
	for _, a := range arrs {
		n += a.Len()
		anyNull = anyNull || a.NullN() != 0
	}
	if n == 0 {
		return MakeNull(Plain(dt), 0)
	}
	var valid []byte
	if anyNull {
		valid = NewBitmap(n)
		at := 0
		for _, a := range arrs {
			if v, off := Validity(a); v != nil {
				bitutil.CopyBitmap(v, off, a.Len(), valid, at)
			} else {
				bitutil.SetBitsTo(valid, int64(at), int64(a.Len()), true)
			}
			at += a.Len()
		}
	}
	switch dt.ID() {
	case arrow.DICTIONARY:
		return concatDict(Plain(dt), arrs, n, valid)
	case arrow.BOOL:
		out := NewBitmap(n)
		at := 0
		for _, a := range arrs {
			if a.Len() > 0 {
				bitutil.CopyBitmap(a.Data().Buffers()[1].Bytes(), a.Data().Offset(), a.Len(), out, at)
				at += a.Len()
			}
		}
		return makeRaw(dt, n, valid, Buf(out))
	case arrow.STRING, arrow.BINARY:
		return concatBytes(dt, arrs, n, valid)
	case arrow.STRUCT:
		t := dt.(*arrow.StructType)
		ch := make([]arrow.Array, t.NumFields())
		sub := make([]arrow.Array, len(arrs))
		for c := range ch {
			for i, a := range arrs {
				sub[i] = a.(*array.Struct).Field(c)
			}
			ch[c] = Concat(t.Field(c).Type, sub)
		}
		return MakeStruct(structType(t, ch), n, ch, valid)
	case arrow.LIST, arrow.MAP:
		offs := make([]int32, 1, n+1)
		sub := make([]arrow.Array, len(arrs))
		var elem arrow.DataType
		for i, a := range arrs {
			o, child := ListParts(a)
			base, at := o[0], offs[len(offs)-1]
			for _, x := range o[1:] {
				offs = append(offs, at+x-base)
			}
			sub[i] = Slice(child, int(o[0]), int(o[len(o)-1]))
			elem = child.DataType()
		}
		c := Concat(elem, sub)
		return MakeList(listType(dt, c), offs, c, valid)
	case arrow.NULL:
		return MakeNull(dt, n)
	}
	w := fixedWidth(dt)
	out := make([]byte, 0, w*n)
	for _, a := range arrs {
		if a.Len() > 0 {
			d := a.Data()
			out = append(out, d.Buffers()[1].Bytes()[d.Offset()*w:(d.Offset()+d.Len())*w]...)
		}
	}
	return makeRaw(dt, n, valid, Buf(out))
}

func concatDict(value arrow.DataType, arrs []arrow.Array, n int, valid []byte) arrow.Array {
	same := true
	for _, a := range arrs {
		_, _, ok := DictView(a)
		same = same && ok && (a == arrs[0] || SameDict(a, arrs[0]))
	}
	if !same {
		out := make([]arrow.Array, len(arrs))
		for i, a := range arrs {
			out[i] = Decode(a)
		}
		return concatBytes(value, out, n, valid)
	}
	idx := make([]int32, 0, n)
	for _, a := range arrs {
		x, _, _ := DictView(a)
		idx = append(idx, x...)
	}
	return MakeDict(idx, valid, arrs[0].(*array.Dictionary).Dictionary())
}

func concatBytes(dt arrow.DataType, arrs []arrow.Array, n int, valid []byte) arrow.Array {
	size := 0
	vs := make([]StrView, len(arrs))
	for i, a := range arrs {
		vs[i] = ViewStr(a)
		if o := vs[i].Offs; len(o) > 0 {
			size += int(o[len(o)-1] - o[0])
		}
	}
	offs := make([]int32, 1, n+1)
	data := make([]byte, 0, size)
	for _, v := range vs {
		if len(v.Offs) == 0 {
			continue
		}
		base, at := v.Offs[0], int32(len(data))
		for _, x := range v.Offs[1:] {
			offs = append(offs, at+x-base)
		}
		data = append(data, v.Data[base:v.Offs[len(v.Offs)-1]]...)
	}
	return MakeBytes(dt, offs, data, valid)
}

// Size returns the bytes that a's rows hold in memory; a dictionary counts its
// indices and a share of its values no larger than they would be.
func Size(a arrow.Array) int64 {
	if a == nil {
		return 0
	}
	d := a.Data()
	n := int64(d.Len())
	size := (n + 7) / 8
	switch d.DataType().ID() {
	case arrow.BOOL:
		return 2 * size
	case arrow.STRING, arrow.BINARY:
		v := ViewStr(a)
		if len(v.Offs) > 0 {
			size += int64(v.Offs[len(v.Offs)-1] - v.Offs[0])
		}
		return size + 4*n
	case arrow.DICTIONARY:
		return size + 4*n
	case arrow.STRUCT:
		for i := range a.(*array.Struct).NumField() {
			size += Size(a.(*array.Struct).Field(i))
		}
		return size
	case arrow.LIST, arrow.MAP:
		o, child := ListParts(a)
		if n > 0 {
			size += Size(Slice(child, int(o[0]), int(o[n])))
		}
		return size + 4*n
	}
	return size + n*int64(fixedWidth(d.DataType()))
}
