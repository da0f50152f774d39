package vec

import (
	"encoding/binary"
	"math"
	"sort"
	"strconv"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Normalised keys: byte strings whose order under bytes.Compare is the SQL
// order of the values they stand for, and which are equal exactly when the
// values are. A value's bytes end by themselves, so keys of several columns are
// laid one behind the other.
//
//	bool                 1 byte
//	int2..int8, dates    big-endian, sign bit flipped
//	floats               as IEEE bits; negative ones all flipped; NaN greatest
//	numeric              class | exponent | digit pairs | 0      (AppendDecKey)
//	text, bytea          bytes, 00 as 00 FF, then 00 00          (bpchar trimmed)
//	interval             months, days and time as one 128-bit length
//	timetz               UTC time, then zone
//	jsonb                see AppendJSONKey
//	array, record        per element 01 value, or 02 for NULL; then 00

// KeyColumn describes one column of a sort key.
type KeyColumn struct {
	Type       types.Type
	Desc       bool
	NullsFirst bool
}

const signBit = 1 << 63

// keyer appends the normalised bytes of one column's values.
type keyer struct {
	t     types.Type
	a     arrow.Array
	width int // of fixed-width types
	str   StrView
	idx   []int32 // of a dictionary
	i16   []int16
	i32   []int32
	i64   []int64
	f32   []float32
	f64   []float64
	dec   []decimal128.Num
	scale int32
	raw   []byte
	offs  []int32
	subs  []*keyer
	valid []byte
	off   int
}

func newKeyer(t types.Type, a arrow.Array) *keyer {
	k := &keyer{t: t, a: a}
	k.valid, k.off = Validity(a)
	if idx, dict, ok := DictView(a); ok {
		k.idx, k.str = idx, ViewStr(dict)
		return k
	}
	a = Decode(a)
	switch x := a.(type) {
	case *array.String, *array.Binary:
		k.str = ViewStr(a)
	case *array.Int16:
		k.i16, k.width = rawFixed[int16](a), 2
	case *array.Int32, *array.Date32:
		k.i32, k.width = rawFixed[int32](a), 4
	case *array.Int64, *array.Time64, *array.Timestamp:
		k.i64, k.width = rawFixed[int64](a), 8
	case *array.Float32:
		k.f32, k.width = rawFixed[float32](a), 4
	case *array.Float64:
		k.f64, k.width = rawFixed[float64](a), 8
	case *array.Boolean:
		k.width = 1
	case *array.Decimal128:
		k.dec, k.scale = x.Values(), x.DataType().(*arrow.Decimal128Type).Scale
	case *array.FixedSizeBinary:
		d := a.Data()
		w := fixedWidth(a.DataType())
		if d.Len() > 0 {
			k.raw = d.Buffers()[1].Bytes()[d.Offset()*w:]
		}
		k.width = w
	case *array.Struct:
		for i := range x.NumField() {
			k.subs = append(k.subs, newKeyer(fieldType(t, i), x.Field(i)))
		}
	case *array.List, *array.Map:
		offs, child := ListParts(a)
		k.offs = offs
		if t.Kind == types.Map && t.Key != nil {
			s := child.(*array.Struct)
			k.subs = []*keyer{newKeyer(*t.Key, s.Field(0)), newKeyer(*t.Elem, s.Field(1))}
		} else {
			k.subs = []*keyer{newKeyer(elemType(t), child)}
		}
	}
	return k
}

func fieldType(t types.Type, i int) types.Type {
	if i < len(t.Fields) {
		return t.Fields[i].Type
	}
	return types.Of(types.Bytea) // members of a variant
}

func elemType(t types.Type) types.Type {
	switch t.Kind {
	case types.Int2Vector:
		return types.Of(types.Int2)
	case types.OIDVector:
		return types.Of(types.OID)
	}
	if t.Elem != nil {
		return *t.Elem
	}
	return types.Of(types.Text)
}

func (k *keyer) isNull(i int) bool { return !BitAt(k.valid, k.off+i) }

// append appends the key of row i, which is not NULL.
func (k *keyer) append(dst []byte, i int) []byte {
	switch {
	case k.str.Offs != nil:
		j := i
		if k.idx != nil {
			j = int(k.idx[i])
		}
		b := k.str.At(j)
		switch k.t.Kind {
		case types.Numeric:
			if c, scale, ok := smallDec(b); ok {
				return appendIntKey(dst, c, scale)
			}
			return AppendDecKey(dst, numeric.Decode(b))
		case types.BpChar:
			b = TrimBlanks(b)
		case types.JSONB:
			return AppendJSONKey(dst, b)
		}
		return appendEscaped(dst, b)
	case k.i64 != nil:
		return binary.BigEndian.AppendUint64(dst, uint64(k.i64[i])^signBit)
	case k.i32 != nil:
		return binary.BigEndian.AppendUint32(dst, uint32(k.i32[i])^1<<31)
	case k.i16 != nil:
		return binary.BigEndian.AppendUint16(dst, uint16(k.i16[i])^1<<15)
	case k.f64 != nil:
		return binary.BigEndian.AppendUint64(dst, orderFloat(k.f64[i]))
	case k.f32 != nil:
		return binary.BigEndian.AppendUint32(dst, orderFloat32(k.f32[i]))
	case k.dec != nil:
		return appendDec128Key(dst, k.dec[i], k.scale)
	case k.raw != nil:
		return k.appendRaw(dst, i)
	case k.offs != nil:
		return k.appendList(dst, i)
	case k.subs != nil:
		for _, s := range k.subs {
			dst = s.appendMember(dst, i)
		}
		return append(dst, 0)
	}
	if b, ok := k.a.(*array.Boolean); ok && b.Value(i) {
		return append(dst, 1)
	}
	return append(dst, 0)
}

func (k *keyer) appendMember(dst []byte, i int) []byte {
	if k.isNull(i) {
		return append(dst, 2)
	}
	return k.append(append(dst, 1), i)
}

func (k *keyer) appendList(dst []byte, i int) []byte {
	from, to := int(k.offs[i]), int(k.offs[i+1])
	if len(k.subs) == 2 {
		// A map is a set of entries: order them, so that equal maps are equal.
		var es [][]byte
		for j := from; j < to; j++ {
			es = append(es, k.subs[1].appendMember(k.subs[0].appendMember(nil, j), j))
		}
		sort.Slice(es, func(a, b int) bool { return string(es[a]) < string(es[b]) })
		for _, e := range es {
			dst = append(dst, e...)
		}
		return append(dst, 0)
	}
	for j := from; j < to; j++ {
		dst = k.subs[0].appendMember(dst, j)
	}
	return append(dst, 0)
}

func (k *keyer) appendRaw(dst []byte, i int) []byte {
	b := k.raw[i*k.width : (i+1)*k.width]
	switch k.t.Kind {
	case types.Interval:
		hi, lo := IntervalLength(b)
		dst = binary.BigEndian.AppendUint64(dst, uint64(hi)^signBit)
		return binary.BigEndian.AppendUint64(dst, lo)
	case types.TimeTZ:
		us, zone := int64(binary.LittleEndian.Uint64(b)), int32(binary.LittleEndian.Uint32(b[8:]))
		dst = binary.BigEndian.AppendUint64(dst, uint64(us+int64(zone)*1e6)^signBit)
		return binary.BigEndian.AppendUint32(dst, uint32(zone)^1<<31)
	}
	return append(dst, b...)
}

// IntervalLength returns the length by which intervals are compared, in
// microseconds as a 128-bit number: months count 30 days, days 24 hours.
func IntervalLength(b []byte) (hi int64, lo uint64) {
	us := int64(binary.LittleEndian.Uint64(b))
	days := int64(int32(binary.LittleEndian.Uint32(b[8:])))
	months := int64(int32(binary.LittleEndian.Uint32(b[12:])))
	d := decimal128.FromI64(days + months*30).Mul(decimal128.FromI64(86400e6)).Add(decimal128.FromI64(us))
	return d.HighBits(), d.LowBits()
}

func orderFloat(f float64) uint64 {
	if f != f {
		return math.MaxUint64
	}
	b := math.Float64bits(f)
	if f == 0 {
		b = 0
	}
	if b&signBit != 0 {
		return ^b
	}
	return b | signBit
}

func orderFloat32(f float32) uint32 {
	if f != f {
		return math.MaxUint32
	}
	b := math.Float32bits(f)
	if f == 0 {
		b = 0
	}
	if b&(1<<31) != 0 {
		return ^b
	}
	return b | 1<<31
}

func appendEscaped(dst, b []byte) []byte {
	for {
		z := -1
		for i, c := range b {
			if c == 0 {
				z = i
				break
			}
		}
		if z < 0 {
			dst = append(dst, b...)
			return append(dst, 0, 0)
		}
		dst = append(dst, b[:z]...)
		dst = append(dst, 0, 0xff)
		b = b[z+1:]
	}
}

// AppendDecKey appends the normalised key of a numeric:
//
//	class: 1 -Infinity, 2 negative, 3 zero, 4 positive, 5 Infinity, 6 NaN
//	4 bytes big-endian: e of the value 0.d1d2d3... * 10^e, biased by 2^31
//	digits d in pairs, each byte 10*d1+d2+1, trailing zeros left out; 0 ends them
//
// Negative values have everything behind the class complemented.
func AppendDecKey(dst []byte, d *numeric.Dec) []byte {
	switch d.Form {
	case numeric.NegInf:
		return append(dst, 1)
	case numeric.PosInf:
		return append(dst, 5)
	case numeric.NaN:
		return append(dst, 6)
	}
	if d.Coef.Sign() == 0 {
		return append(dst, 3)
	}
	var buf [64]byte
	digits := d.Coef.Append(buf[:0], 10)
	return appendDigits(dst, digits, d.Scale)
}

func appendDec128Key(dst []byte, x decimal128.Num, scale int32) []byte {
	hi, lo := x.HighBits(), x.LowBits()
	if hi == 0 && lo == 0 {
		return append(dst, 3)
	}
	if hi == int64(lo)>>63 {
		return appendIntKey(dst, int64(lo), scale)
	}
	var buf [48]byte
	return appendDigits(dst, x.BigInt().Append(buf[:0], 10), scale)
}

// smallDec reads the binary form of a finite numeric whose coefficient has up to
// eight bytes.
func smallDec(b []byte) (coef int64, scale int32, ok bool) {
	if len(b) < 5 || len(b) > 13 || b[0] != 0 {
		return 0, 0, false
	}
	scale = int32(binary.LittleEndian.Uint32(b[1:]))
	if b = b[5:]; len(b) > 0 && b[0]&0x80 != 0 {
		coef = -1
	}
	for _, c := range b {
		coef = coef<<8 | int64(c)
	}
	return coef, scale, true
}

func appendIntKey(dst []byte, coef int64, scale int32) []byte {
	if coef == 0 {
		return append(dst, 3)
	}
	var buf [24]byte
	return appendDigits(dst, strconv.AppendInt(buf[:0], coef, 10), scale)
}

func appendDigits(dst, digits []byte, scale int32) []byte {
	neg := digits[0] == '-'
	if neg {
		digits = digits[1:]
	}
	exp := int32(len(digits)) - scale
	for len(digits) > 0 && digits[len(digits)-1] == '0' {
		digits = digits[:len(digits)-1]
	}
	at := len(dst) + 1
	if neg {
		dst = append(dst, 2)
	} else {
		dst = append(dst, 4)
	}
	dst = binary.BigEndian.AppendUint32(dst, uint32(exp)^1<<31)
	for i := 0; i < len(digits); i += 2 {
		c := (digits[i] - '0') * 10
		if i+1 < len(digits) {
			c += digits[i+1] - '0'
		}
		dst = append(dst, c+1)
	}
	dst = append(dst, 0)
	if neg {
		for i := at; i < len(dst); i++ {
			dst[i] = ^dst[i]
		}
	}
	return dst
}

// Keyer makes normalised keys of the rows of some columns.
type Keyer struct {
	cols []KeyColumn
	ks   []*keyer
}

// NewKeyer prepares keys over arrs, one per column of cols.
func NewKeyer(cols []KeyColumn, arrs []arrow.Array) *Keyer {
	k := &Keyer{cols: cols, ks: make([]*keyer, len(cols))}
	for i, c := range cols {
		k.ks[i] = newKeyer(c.Type, arrs[i])
	}
	return k
}

// Append appends the key of row i. A NULL is 0 before and 2 behind values,
// which start with 1; a descending column is complemented.
func (k *Keyer) Append(dst []byte, i int) []byte {
	for c, s := range k.ks {
		col := &k.cols[c]
		if s.isNull(i) {
			if col.NullsFirst {
				dst = append(dst, 0)
			} else {
				dst = append(dst, 2)
			}
			continue
		}
		dst = append(dst, 1)
		at := len(dst)
		dst = s.append(dst, i)
		if col.Desc {
			for j := at; j < len(dst); j++ {
				dst[j] = ^dst[j]
			}
		}
	}
	return dst
}

// AppendCanon appends bytes that are equal for two rows exactly when the rows
// are equal as GROUP BY sees it (NULLs equal); NewKeyer with plain columns.
func AppendCanon(dst []byte, k *Keyer, i int) []byte { return k.Append(dst, i) }
