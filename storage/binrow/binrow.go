// Package binrow reads and writes Paimon's BinaryRow family: the byte images in
// which partitions, keys and statistics are stored and bucket keys are hashed.
//
//	row:   [kind byte + null bits, ((arity+8+63)/64)*8 bytes][8 bytes per field][variable part]
//	array: [int32 size][null bits, ((size+31)/32)*4 bytes][elements][padding to 8][variable part]
//	map:   [int32 bytes of keys][key array][value array]
//
// All little-endian. The null bit of field i is bit i+8 of the header. Values of
// up to 7 bytes of text lie inline; longer ones are (offset<<32 | length).
// Source: BinaryRow.java, AbstractBinaryWriter.java.
package binrow

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"math/big"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// ErrCorrupt is wrapped by every decoding error.
var ErrCorrupt = errors.New("binary row does not fit its type")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// Row is the image of one row. Methods that decode check every offset against
// the image; a Row may alias the memory it was read from.
type Row struct {
	b      []byte
	arity  int
	header int
}

func headerBytes(arity int) int { return (arity + 63 + 8) / 64 * 8 }

// NewRow checks that b can hold a row of arity fields.
func NewRow(b []byte, arity int) (Row, error) {
	h := headerBytes(arity)
	if arity < 0 || len(b) < h+8*arity {
		return Row{}, corrupt("%d bytes for %d fields", len(b), arity)
	}
	return Row{b, arity, h}, nil
}

// IsNull reports whether field i is null.
func (r Row) IsNull(i int) bool { return r.b[(i+8)>>3]&(1<<((i+8)&7)) != 0 }

func readInt(b []byte, w int) int64 {
	switch w {
	case 1:
		return int64(int8(b[0]))
	case 2:
		return int64(int16(binary.LittleEndian.Uint16(b)))
	case 4:
		return int64(int32(binary.LittleEndian.Uint32(b)))
	}
	return int64(binary.LittleEndian.Uint64(b))
}

// varBytes resolves the slot at pos of a text-like value in image b.
func varBytes(b []byte, pos int) ([]byte, error) {
	v := binary.LittleEndian.Uint64(b[pos:])
	if v&(1<<63) != 0 {
		n := int(v >> 56 & 0x7f)
		if n > 7 {
			return nil, corrupt("inline length %d", n)
		}
		return b[pos : pos+n : pos+n], nil
	}
	return region(b, v)
}

// region returns the part of b that an (offset<<32 | length) slot names.
func region(b []byte, v uint64) ([]byte, error) {
	off, n := int64(v>>32), int64(uint32(v))
	if off+n > int64(len(b)) {
		return nil, corrupt("offset %d and length %d in %d bytes", off, n, len(b))
	}
	return b[off : off+n : off+n], nil
}

const maxDepth = 64

// Get decodes field i as a value of type t.
func (r Row) Get(i int, t types.Type) (types.Datum, error) {
	if i < 0 || i >= r.arity {
		return nil, corrupt("field %d of %d", i, r.arity)
	}
	if r.IsNull(i) {
		return nil, nil
	}
	return decode(r.b, r.header+8*i, t, 0)
}

// Decode decodes all fields of an image.
func Decode(image []byte, ts []types.Type) ([]types.Datum, error) {
	if len(ts) == 0 {
		return nil, nil
	}
	r, err := NewRow(image, len(ts))
	if err != nil {
		return nil, err
	}
	out := make([]types.Datum, len(ts))
	for i, t := range ts {
		if out[i], err = r.Get(i, t); err != nil {
			return nil, fmt.Errorf("field %d: %w", i, err)
		}
	}
	return out, nil
}

// decode reads the value whose slot is at pos of image b. The slot of an array
// element may be narrower than 8 bytes; widths are checked by the caller.
func decode(b []byte, pos int, t types.Type, depth int) (types.Datum, error) {
	if depth > maxDepth {
		return nil, corrupt("nested deeper than %d", maxDepth)
	}
	switch t.Kind {
	case types.Bool:
		return b[pos] != 0, nil
	case types.TinyInt:
		return int64(int8(b[pos])), nil
	case types.Int2:
		return readInt(b[pos:], 2), nil
	case types.Int4, types.Date:
		return readInt(b[pos:], 4), nil
	case types.Time:
		return readInt(b[pos:], 4) * 1000, nil // ms of day to us
	case types.Int8:
		return readInt(b[pos:], 8), nil
	case types.Float4:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b[pos:]))), nil
	case types.Float8:
		return math.Float64frombits(binary.LittleEndian.Uint64(b[pos:])), nil
	case types.Numeric:
		d := &numeric.Dec{Scale: int32(t.Scale)}
		if t.Prec <= 18 {
			d.Coef.SetInt64(readInt(b[pos:], 8))
			return d, nil
		}
		v, err := region(b, binary.LittleEndian.Uint64(b[pos:]))
		if err != nil {
			return nil, err
		}
		if len(v) > 16 {
			return nil, corrupt("decimal of %d bytes", len(v))
		}
		setTwos(&d.Coef, v)
		return d, nil
	case types.Timestamp, types.TimestampTZ:
		ms, nano := readInt(b[pos:], 8), int64(0)
		if t.Prec > 3 {
			v := uint64(ms)
			off := int64(v >> 32)
			if nano = int64(uint32(v)); off+8 > int64(len(b)) || nano > 999_999 {
				return nil, corrupt("timestamp at %d, nanos %d", off, nano)
			}
			ms = readInt(b[off:], 8)
		}
		return timestampValue(t, ms, nano)
	case types.Array, types.Map, types.Row, types.Variant:
		v, err := region(b, binary.LittleEndian.Uint64(b[pos:]))
		if err != nil {
			return nil, err
		}
		return decodeNested(v, t, depth+1)
	case types.Bytea:
		v, err := varBytes(b, pos)
		if err != nil {
			return nil, err
		}
		return append([]byte{}, v...), nil
	}
	if t.IsTextLike() {
		v, err := varBytes(b, pos)
		return string(v), err
	}
	return nil, corrupt("type %s", t)
}

// timestampValue joins milliseconds and nanoseconds of a millisecond in the unit
// of t's Datum.
func timestampValue(t types.Type, ms, nano int64) (int64, error) {
	unit := int64(1000)
	part := nano / 1000
	if t.IsNanos() {
		unit, part = 1_000_000, nano
	}
	if ms < 0 { // from above, or the least value of all overflows on the way
		ms, part = ms+1, part-unit
	}
	v := ms * unit
	if v/unit != ms || v > 0 && v+part < v || v < 0 && v+part > 0 {
		return 0, corrupt("timestamp of %d ms is out of range", ms)
	}
	return v + part, nil
}

func decodeNested(b []byte, t types.Type, depth int) (types.Datum, error) {
	switch t.Kind {
	case types.Row:
		r, err := NewRow(b, len(t.Fields))
		if err != nil {
			return nil, err
		}
		out := make([]types.Datum, len(t.Fields))
		for i, f := range t.Fields {
			if r.IsNull(i) {
				continue
			}
			if out[i], err = decode(b, r.header+8*i, f.Type, depth); err != nil {
				return nil, err
			}
		}
		return out, nil
	case types.Map:
		if len(b) < 4 {
			return nil, corrupt("map of %d bytes", len(b))
		}
		n := int64(int32(binary.LittleEndian.Uint32(b)))
		if n < 0 || n+4 > int64(len(b)) {
			return nil, corrupt("map keys of %d bytes in %d", n, len(b))
		}
		ks, err := decodeArray(b[4:4+n], *t.Key, depth)
		if err != nil {
			return nil, err
		}
		vs, err := decodeArray(b[4+n:], *t.Elem, depth)
		if err != nil {
			return nil, err
		}
		if len(ks) != len(vs) {
			return nil, corrupt("%d keys and %d values", len(ks), len(vs))
		}
		out := make([]types.KV, len(ks))
		for i := range ks {
			out[i] = types.KV{K: ks[i], V: vs[i]}
		}
		return out, nil
	case types.Variant:
		if len(b) < 4 {
			return nil, corrupt("variant of %d bytes", len(b))
		}
		n := int64(int32(binary.LittleEndian.Uint32(b)))
		if n < 0 || n+4 > int64(len(b)) {
			return nil, corrupt("variant value of %d bytes in %d", n, len(b))
		}
		return []types.Datum{append([]byte{}, b[4:4+n]...), append([]byte{}, b[4+n:]...)}, nil
	}
	if t.Fixed > 0 {
		return decodeVector(b, t)
	}
	return decodeArray(b, *t.Elem, depth)
}

// elemWidth is the width of an array element's slot.
func elemWidth(t types.Type) int {
	switch t.Kind {
	case types.Bool, types.TinyInt:
		return 1
	case types.Int2:
		return 2
	case types.Int4, types.Float4, types.Date, types.Time:
		return 4
	}
	return 8
}

func decodeArray(b []byte, t types.Type, depth int) ([]types.Datum, error) {
	if len(b) < 4 {
		return nil, corrupt("array of %d bytes", len(b))
	}
	n := int64(int32(binary.LittleEndian.Uint32(b)))
	w := int64(elemWidth(t))
	head := 4 + (n+31)/32*4
	if n < 0 || head+n*w > int64(len(b)) {
		return nil, corrupt("%d elements in %d bytes", n, len(b))
	}
	out := make([]types.Datum, n)
	for i := range out {
		if b[4+i>>3]&(1<<(i&7)) != 0 {
			continue
		}
		var err error
		if out[i], err = decode(b, int(head)+i*int(w), t, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// decodeVector reads int32 count and the raw elements.
func decodeVector(b []byte, t types.Type) (types.Datum, error) {
	if len(b) < 4 {
		return nil, corrupt("vector of %d bytes", len(b))
	}
	n, w := int64(int32(binary.LittleEndian.Uint32(b))), int64(elemWidth(*t.Elem))
	if n < 0 || 4+n*w > int64(len(b)) || w == 8 && t.Elem.Kind != types.Int8 && t.Elem.Kind != types.Float8 {
		return nil, corrupt("vector of %d elements in %d bytes", n, len(b))
	}
	out := make([]types.Datum, n)
	for i := range out {
		out[i], _ = decode(b, 4+i*int(w), *t.Elem, maxDepth)
	}
	return out, nil
}

// setTwos sets z to the big-endian two's complement value b.
func setTwos(z *big.Int, b []byte) {
	z.SetBytes(b)
	if len(b) > 0 && b[0]&0x80 != 0 {
		var m big.Int
		m.Lsh(big.NewInt(1), uint(8*len(b)))
		z.Sub(z, &m)
	}
}

// twos returns z as minimal big-endian two's complement, as Java's
// BigInteger.toByteArray.
func twos(z *big.Int) []byte {
	if z.Sign() >= 0 {
		b := z.Bytes()
		if len(b) == 0 || b[0]&0x80 != 0 {
			b = append([]byte{0}, b...)
		}
		return b
	}
	n := new(big.Int).Not(z).BitLen()/8 + 1
	var m big.Int
	m.Lsh(big.NewInt(1), uint(8*n))
	m.Add(&m, z)
	b := m.Bytes()
	for len(b) < n {
		b = append([]byte{0xff}, b...)
	}
	return b
}

// rescale returns d's coefficient at a scale, or nil when that loses digits or d
// is not finite.
func rescale(d *numeric.Dec, scale int32) *big.Int {
	if d.Form != numeric.Finite {
		return nil
	}
	c := new(big.Int).Set(&d.Coef)
	switch {
	case d.Scale < scale:
		c.Mul(c, numeric.Pow10(scale-d.Scale))
	case d.Scale > scale:
		var r big.Int
		c.QuoRem(c, numeric.Pow10(d.Scale-scale), &r)
		if r.Sign() != 0 {
			return nil
		}
	}
	return c
}
