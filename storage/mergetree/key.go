package mergetree

import (
	"bytes"
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Keys are compared in the order in which files are sorted, which is Java's:
// column by column, numbers signed, text and bytes unsigned, floats with
// -0 < +0 and NaN greatest. Every key has a byte form whose bytes.Compare is that
// order:
//
//	integers, dates, times: big-endian with the sign bit flipped, 1 to 8 bytes
//	floats: big-endian, negative ones inverted, others with the sign bit set
//	decimal: 16 bytes big-endian with the sign bit flipped
//	boolean: one byte
//	text, bytes: 0x00 written as 00 ff, then 00 00; the last column bare
//
// While merging, a key is two words and, when it does not fit them, the bytes:
// most comparisons end at the first word.

// Form is how the keys of a table are held while merging.
type Form uint8

// The forms: fixed-width keys of up to 8 or 16 bytes, and all others.
const (
	OneWord Form = iota
	TwoWords
	WordAndBytes
)

// KeyCodec makes comparable keys of key columns. Immutable.
type KeyCodec struct {
	types []types.Type
	form  Form
}

// NewKeyCodec returns the codec for key columns of these types.
func NewKeyCodec(ts []types.Type) *KeyCodec {
	c := &KeyCodec{types: ts}
	total := 0
	for _, t := range ts {
		w := KeyWidth(t)
		if w == 0 {
			c.form = WordAndBytes
			return c
		}
		total += w
	}
	switch {
	case total > 16:
		c.form = WordAndBytes
	case total > 8:
		c.form = TwoWords
	}
	return c
}

// Form returns how keys are held.
func (c *KeyCodec) Form() Form { return c.form }

// Types returns the types of the key columns.
func (c *KeyCodec) Types() []types.Type { return c.types }

// KeyWidth is the fixed width of a type in the byte form, 0 = variable.
func KeyWidth(t types.Type) int {
	switch t.Kind {
	case types.Bool, types.TinyInt:
		return 1
	case types.Int2:
		return 2
	case types.Int4, types.Date, types.Float4:
		return 4
	case types.Int8, types.Time, types.Timestamp, types.TimestampTZ, types.Float8:
		return 8
	case types.Numeric:
		return 16
	}
	return 0
}

// Append appends the byte form of one key. NULL, which keys do not hold, sorts
// as the smallest fixed-width value.
func (c *KeyCodec) Append(dst []byte, key []types.Datum) []byte {
	for i, t := range c.types {
		dst = appendDatum(dst, t, key[i], i == len(c.types)-1)
	}
	return dst
}

func appendDatum(dst []byte, t types.Type, d types.Datum, last bool) []byte {
	switch v := d.(type) {
	case bool:
		if v {
			return append(dst, 1)
		}
		return append(dst, 0)
	case int64:
		w := KeyWidth(t)
		u := uint64(v) ^ 1<<(8*w-1)
		for i := w - 1; i >= 0; i-- {
			dst = append(dst, byte(u>>(8*i)))
		}
		return dst
	case float64:
		if t.Kind == types.Float4 {
			return binary.BigEndian.AppendUint32(dst, order32(math.Float32bits(float32(v))))
		}
		return binary.BigEndian.AppendUint64(dst, order64(math.Float64bits(v)))
	case string:
		return appendEscaped(dst, []byte(v), last)
	case []byte:
		return appendEscaped(dst, v, last)
	case *numeric.Dec:
		n := decimal128.FromBigInt(&v.Coef)
		return appendDec(dst, n)
	}
	return append(dst, make([]byte, KeyWidth(t))...)
}

// order32 and order64 make float bits sort as Java's compare; every NaN counts
// as the canonical one.
func order32(b uint32) uint32 {
	if b&0x7fffffff > 0x7f800000 {
		b = 0x7fc00000
	}
	if b>>31 != 0 {
		return ^b
	}
	return b | 1<<31
}

func order64(b uint64) uint64 {
	if b&(1<<63-1) > 0x7ff0000000000000 {
		b = 0x7ff8000000000000
	}
	if b>>63 != 0 {
		return ^b
	}
	return b | 1<<63
}

func appendDec(dst []byte, n decimal128.Num) []byte {
	dst = binary.BigEndian.AppendUint64(dst, uint64(n.HighBits())^1<<63)
	return binary.BigEndian.AppendUint64(dst, n.LowBits())
}

func appendEscaped(dst, v []byte, last bool) []byte {
	if last {
		return append(dst, v...)
	}
	for {
		i := bytes.IndexByte(v, 0)
		if i < 0 {
			break
		}
		dst = append(append(dst, v[:i]...), 0, 0xff)
		v = v[i+1:]
	}
	return append(append(dst, v...), 0, 0)
}

// Keys are the keys of a window of rows. Lo is used by TwoWords, Off and Data by
// WordAndBytes.
type Keys struct {
	Hi, Lo []uint64
	Off    []int32
	Data   []byte
}

// Len returns the number of keys.
func (k *Keys) Len() int { return len(k.Hi) }

// At returns the bytes of key i (WordAndBytes).
func (k *Keys) At(i int) []byte { return k.Data[k.Off[i]:k.Off[i+1]] }

// appendKey appends the byte form of key i.
func (c *KeyCodec) appendKey(dst []byte, k *Keys, i int) []byte {
	switch c.form {
	case OneWord:
		return c.appendWords(dst, k.Hi[i], 0, nil)
	case TwoWords:
		return c.appendWords(dst, k.Hi[i], k.Lo[i], nil)
	}
	return append(dst, k.At(i)...)
}

// appendWords appends the byte form of a key that is held as words, or as bytes
// where the form is WordAndBytes.
func (c *KeyCodec) appendWords(dst []byte, hi, lo uint64, data []byte) []byte {
	if c.form == WordAndBytes {
		return append(dst, data...)
	}
	at := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, hi)
	if c.form == TwoWords {
		dst = binary.BigEndian.AppendUint64(dst, lo)
	}
	w := 0
	for _, t := range c.types {
		w += KeyWidth(t)
	}
	return dst[:at+w]
}

func grow[T any](s []T, n int) []T {
	if cap(s) < n {
		return make([]T, n)
	}
	return s[:n]
}

// Fill computes the keys of n rows; cols are the key columns in order. The
// memory of k is used again; Data may alias a column.
func (c *KeyCodec) Fill(k *Keys, cols []arrow.Array, n int) {
	k.Hi = grow(k.Hi, n)
	if c.form != WordAndBytes {
		clear(k.Hi)
		if c.form == TwoWords {
			k.Lo = grow(k.Lo, n)
			clear(k.Lo)
		}
		at := 0 // bits
		for i, t := range c.types {
			w := 8 * KeyWidth(t)
			c.place(k, cols[i], t, at, w, n)
			at += w
		}
		return
	}
	if len(c.types) == 1 && KeyWidth(c.types[0]) == 0 {
		s := vec.ViewStr(vec.Decode(cols[0]))
		k.Off, k.Data = s.Offs, s.Data
		if n == 0 {
			k.Off = []int32{0}
		}
	} else {
		c.concat(k, cols, n)
	}
	for i := range k.Hi {
		k.Hi[i] = prefix(k.At(i))
	}
}

// prefix is the first 8 bytes, zero padded.
func prefix(b []byte) uint64 {
	if len(b) >= 8 {
		return binary.BigEndian.Uint64(b)
	}
	u := uint64(0)
	for i, c := range b {
		u |= uint64(c) << (56 - 8*i)
	}
	return u
}

// place puts the words of a fixed-width column at bit offset at of the keys.
func (c *KeyCodec) place(k *Keys, a arrow.Array, t types.Type, at, w, n int) {
	put := func(i int, u uint64) {
		switch {
		case at+w <= 64:
			k.Hi[i] |= u << (64 - at - w)
		case at >= 64:
			k.Lo[i] |= u << (128 - at - w)
		default:
			k.Hi[i] |= u >> (at + w - 64)
			k.Lo[i] |= u << (128 - at - w)
		}
	}
	switch t.Kind {
	case types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
		v := vec.ViewOf[int64](a).V
		switch {
		case at == 0: // the common first column
			hi := k.Hi[:len(v)]
			for i, x := range v {
				hi[i] = uint64(x) ^ 1<<63
			}
		case at == 64:
			lo := k.Lo[:len(v)]
			for i, x := range v {
				lo[i] = uint64(x) ^ 1<<63
			}
		default:
			for i, x := range v {
				put(i, uint64(x)^1<<63)
			}
		}
	case types.Int4, types.Date:
		v := vec.ViewOf[int32](a).V
		dst, shift := k.Hi, 64-at-32
		if at >= 64 {
			dst, shift = k.Lo, 128-at-32
		}
		if at+w <= 64 || at >= 64 {
			dst = dst[:len(v)]
			for i, x := range v {
				dst[i] |= uint64(uint32(x)^1<<31) << shift
			}
			return
		}
		for i, x := range v {
			put(i, uint64(uint32(x)^1<<31))
		}
	case types.Int2:
		for i, x := range vec.ViewOf[int16](a).V {
			put(i, uint64(uint16(x)^1<<15))
		}
	case types.TinyInt:
		for i, x := range vec.ViewOf[int16](a).V {
			put(i, uint64(uint8(x)^1<<7))
		}
	case types.Float4:
		for i, x := range vec.ViewOf[float32](a).V {
			put(i, uint64(order32(math.Float32bits(x))))
		}
	case types.Float8:
		for i, x := range vec.ViewOf[float64](a).V {
			put(i, order64(math.Float64bits(x)))
		}
	case types.Bool:
		b := a.(*array.Boolean)
		for i := range n {
			if b.Value(i) {
				put(i, 1)
			}
		}
	case types.Numeric: // 16 bytes: alone in its key
		v, _, _ := vec.ViewDec(a)
		for i, x := range v {
			k.Hi[i], k.Lo[i] = uint64(x.HighBits())^1<<63, x.LowBits()
		}
	}
}

// concat builds the byte form row by row.
func (c *KeyCodec) concat(k *Keys, cols []arrow.Array, n int) {
	type col struct {
		t   types.Type
		str vec.StrView
		i16 []int16
		i32 []int32
		i64 []int64
		f32 []float32
		f64 []float64
		dec []decimal128.Num
		b   *array.Boolean
	}
	cs := make([]col, len(cols))
	for i, a := range cols {
		cs[i].t = c.types[i]
		switch cs[i].t.Kind {
		case types.TinyInt, types.Int2:
			cs[i].i16 = vec.ViewOf[int16](a).V
		case types.Int4, types.Date:
			cs[i].i32 = vec.ViewOf[int32](a).V
		case types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
			cs[i].i64 = vec.ViewOf[int64](a).V
		case types.Float4:
			cs[i].f32 = vec.ViewOf[float32](a).V
		case types.Float8:
			cs[i].f64 = vec.ViewOf[float64](a).V
		case types.Numeric:
			cs[i].dec, _, _ = vec.ViewDec(a)
		case types.Bool:
			cs[i].b = a.(*array.Boolean)
		default:
			cs[i].str = vec.ViewStr(vec.Decode(a))
		}
	}
	k.Off = grow(k.Off, n+1)
	k.Off[0] = 0
	data := k.Data[:0]
	for r := range n {
		for i := range cs {
			x := &cs[i]
			switch x.t.Kind {
			case types.TinyInt:
				data = append(data, uint8(x.i16[r])^1<<7)
			case types.Int2:
				data = binary.BigEndian.AppendUint16(data, uint16(x.i16[r])^1<<15)
			case types.Int4, types.Date:
				data = binary.BigEndian.AppendUint32(data, uint32(x.i32[r])^1<<31)
			case types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
				data = binary.BigEndian.AppendUint64(data, uint64(x.i64[r])^1<<63)
			case types.Float4:
				data = binary.BigEndian.AppendUint32(data, order32(math.Float32bits(x.f32[r])))
			case types.Float8:
				data = binary.BigEndian.AppendUint64(data, order64(math.Float64bits(x.f64[r])))
			case types.Numeric:
				data = appendDec(data, x.dec[r])
			case types.Bool:
				b := byte(0)
				if x.b.Value(r) {
					b = 1
				}
				data = append(data, b)
			default:
				data = appendEscaped(data, x.str.At(r), i == len(cs)-1)
			}
		}
		k.Off[r+1] = int32(len(data))
	}
	k.Data = data
}

// Bound is a key that rows are compared with: the start or end of a key range.
type Bound struct {
	hi, lo uint64
	data   []byte
}

// NewBound makes a bound of the byte form of a key.
func NewBound(b []byte) *Bound {
	x := &Bound{hi: prefix(b), data: b}
	if len(b) > 8 {
		x.lo = prefix(b[8:])
	}
	return x
}

// before reports whether key i of k is smaller than b.
func (c *KeyCodec) before(k *Keys, i int, b *Bound) bool {
	if k.Hi[i] != b.hi {
		return k.Hi[i] < b.hi
	}
	switch c.form {
	case OneWord:
		return false
	case TwoWords:
		return k.Lo[i] < b.lo
	}
	return bytes.Compare(k.At(i), b.data) < 0
}

// lowerBound returns the first of keys [from, n) that is not before b.
func (c *KeyCodec) lowerBound(k *Keys, from, n int, b *Bound) int {
	for from < n {
		mid := int(uint(from+n) >> 1)
		if c.before(k, mid, b) {
			from = mid + 1
		} else {
			n = mid
		}
	}
	return from
}

// First returns the first column of a key in byte form, when that is of a type
// whose order under SQL is the files'.
func (c *KeyCodec) First(b []byte) (types.Datum, bool) {
	t := c.types[0]
	w := KeyWidth(t)
	switch t.Kind {
	case types.TinyInt, types.Int2, types.Int4, types.Date, types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
		if len(b) < w {
			return nil, false
		}
		u := uint64(0)
		for _, x := range b[:w] {
			u = u<<8 | uint64(x)
		}
		// Flip the sign bit back and extend it.
		return int64((u^1<<(8*w-1))<<(64-8*w)) >> (64 - 8*w), true
	case types.Text, types.Varchar:
		if len(c.types) == 1 {
			return string(b), true
		}
		var out []byte
		for i := 0; i+1 < len(b); i++ {
			if b[i] != 0 {
				out = append(out, b[i])
				continue
			}
			if b[i+1] == 0 {
				return string(out), true
			}
			out = append(out, 0)
			i++
		}
	}
	return nil, false
}
