package binrow

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Column makes an array (types.Type.Arrow() of t) of field i of rows of arity
// fields: the other way of ArrowEncoder. The other fields are not looked at. The
// array does not alias the images.
func Column(t types.Type, i, arity int, images [][]byte) (arrow.Array, error) {
	if i < 0 || i >= arity {
		return nil, corrupt("field %d of %d", i, arity)
	}
	header := headerBytes(arity)
	c := column{images: images, at: header + 8*i, least: header + 8*arity, bit: i + 8}
	switch t.Kind {
	case types.Bool:
		bits := vec.NewBitmap(len(images))
		valid, err := c.each(func(r int, b []byte) error {
			if b[c.at] != 0 {
				vec.SetBit(bits, r)
			}
			return nil
		})
		if err != nil {
			return nil, err
		}
		return vec.MakeBool(len(images), bits, valid), nil
	case types.TinyInt:
		return fixed(&c, t, func(b []byte) int16 { return int16(int8(b[0])) })
	case types.Int2:
		return fixed(&c, t, func(b []byte) int16 { return int16(binary.LittleEndian.Uint16(b)) })
	case types.Int4, types.Date:
		return fixed(&c, t, func(b []byte) int32 { return int32(binary.LittleEndian.Uint32(b)) })
	case types.Int8:
		return fixed(&c, t, func(b []byte) int64 { return int64(binary.LittleEndian.Uint64(b)) })
	case types.Time:
		return fixed(&c, t, func(b []byte) int64 { return int64(int32(binary.LittleEndian.Uint32(b))) * 1000 })
	case types.Float4:
		return fixed(&c, t, func(b []byte) float32 { return math.Float32frombits(binary.LittleEndian.Uint32(b)) })
	case types.Float8:
		return fixed(&c, t, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) })
	case types.Timestamp, types.TimestampTZ:
		return c.timestamps(t)
	case types.Numeric:
		if t.Prec > 0 {
			return c.decimals(t)
		}
	case types.Bytea:
		return c.strings(t)
	case types.Array, types.Map, types.Row, types.Variant:
	default:
		if t.IsTextLike() {
			return c.strings(t)
		}
	}
	vals := make([]types.Datum, len(images))
	for r, b := range images {
		row, err := NewRow(b, arity)
		if err != nil {
			return nil, err
		}
		if vals[r], err = row.Get(i, t); err != nil {
			return nil, err
		}
	}
	return vec.FromDatums(t, vals), nil
}

// column is one field of many images.
type column struct {
	images [][]byte
	at     int // of the field's slot
	least  int // bytes that an image has
	bit    int // of the header that says NULL
}

// each calls f for the rows that are not NULL and returns the validity bitmap, nil
// when there is no NULL.
func (c *column) each(f func(r int, b []byte) error) (valid []byte, err error) {
	for r, b := range c.images {
		if len(b) < c.least {
			return nil, corrupt("%d bytes for a row of at least %d", len(b), c.least)
		}
		if b[c.bit>>3]&(1<<(c.bit&7)) != 0 {
			if valid == nil {
				valid = vec.FullBitmap(len(c.images))
			}
			vec.ClearBit(valid, r)
			continue
		}
		if err := f(r, b); err != nil {
			return nil, err
		}
	}
	return valid, nil
}

func fixed[T vec.Fixed](c *column, t types.Type, get func(b []byte) T) (arrow.Array, error) {
	v := make([]T, len(c.images))
	valid, err := c.each(func(r int, b []byte) error {
		v[r] = get(b[c.at : c.at+8])
		return nil
	})
	if err != nil {
		return nil, err
	}
	return vec.Make(t.Arrow(), v, valid), nil
}

func (c *column) timestamps(t types.Type) (arrow.Array, error) {
	v := make([]int64, len(c.images))
	valid, err := c.each(func(r int, b []byte) error {
		ms, nano := readInt(b[c.at:], 8), int64(0)
		if t.Prec > 3 {
			off := int64(uint64(ms) >> 32)
			if nano = int64(uint32(ms)); off+8 > int64(len(b)) || nano > 999_999 {
				return corrupt("timestamp at %d, nanos %d", off, nano)
			}
			ms = readInt(b[off:], 8)
		}
		d, err := timestampValue(t, ms, nano)
		v[r] = d
		return err
	})
	if err != nil {
		return nil, err
	}
	return vec.Make(t.Arrow(), v, valid), nil
}

func (c *column) decimals(t types.Type) (arrow.Array, error) {
	v := make([]decimal128.Num, len(c.images))
	valid, err := c.each(func(r int, b []byte) error {
		slot := binary.LittleEndian.Uint64(b[c.at:])
		if t.Prec <= 18 {
			v[r] = decimal128.FromI64(int64(slot))
			return nil
		}
		x, err := region(b, slot)
		if err != nil {
			return err
		}
		if len(x) > 16 {
			return corrupt("decimal of %d bytes", len(x))
		}
		v[r] = twosNum(x)
		return nil
	})
	if err != nil {
		return nil, err
	}
	return vec.MakeDec128(t.Arrow(), v, valid), nil
}

// twosNum reads big-endian two's complement of at most 16 bytes.
func twosNum(x []byte) decimal128.Num {
	hi, lo := int64(0), uint64(0)
	if len(x) > 0 && x[0] >= 0x80 {
		hi, lo = -1, math.MaxUint64
	}
	for _, d := range x {
		hi = hi<<8 | int64(lo>>56)
		lo = lo<<8 | uint64(d)
	}
	return decimal128.New(hi, lo)
}

func (c *column) strings(t types.Type) (arrow.Array, error) {
	off := make([]int32, len(c.images)+1)
	var data []byte
	last := 0 // rows with an offset
	valid, err := c.each(func(r int, b []byte) error {
		v, err := varBytes(b, c.at)
		if err != nil {
			return err
		}
		for ; last < r; last++ {
			off[last+1] = int32(len(data))
		}
		if int64(len(data))+int64(len(v)) > math.MaxInt32 {
			return corrupt("%d rows of text are too large for one array", len(c.images))
		}
		data = append(data, v...)
		last++
		off[last] = int32(len(data))
		return nil
	})
	if err != nil {
		return nil, err
	}
	for ; last < len(c.images); last++ {
		off[last+1] = int32(len(data))
	}
	return vec.MakeBytes(t.Arrow(), off, data, valid), nil
}

// Image returns the row as set so far; it is valid until the next Reset.
func (w *Builder) Image() []byte { return w.b }
