package binrow

import (
	"encoding/binary"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// ArrowEncoder writes the rows of Arrow columns as BinaryRows: partitions,
// bucket keys and file keys of a batch. Not safe for concurrent use.
type ArrowEncoder struct {
	w    Builder
	cols []encodeCol
}

type encodeCol struct {
	t     types.Type
	arr   arrow.Array
	i16   []int16
	i32   []int32
	i64   []int64
	f32   []float32
	f64   []float64
	str   vec.StrView
	dict  []int32 // indices into str, when the column is a dictionary
	dec   []decimal128.Num
	nulls bool
	datum bool // nested: goes through Datum
}

// NewArrowEncoder prepares columns of the given types. Arrays are as vec.Batch
// holds them.
func NewArrowEncoder(ts []types.Type, arrs []arrow.Array) *ArrowEncoder {
	e := &ArrowEncoder{cols: make([]encodeCol, len(ts))}
	for i, t := range ts {
		c := &e.cols[i]
		c.t, c.arr, c.nulls = t, arrs[i], arrs[i].NullN() > 0
		switch a := arrs[i].(type) {
		case *array.Int16:
			c.i16 = a.Int16Values()
		case *array.Int32:
			c.i32 = a.Int32Values()
		case *array.Date32:
			c.i32 = vec.ViewOf[int32](a).V
		case *array.Int64:
			c.i64 = a.Int64Values()
		case *array.Time64, *array.Timestamp:
			c.i64 = vec.ViewOf[int64](a).V
		case *array.Float32:
			c.f32 = a.Float32Values()
		case *array.Float64:
			c.f64 = a.Float64Values()
		case *array.String, *array.Binary:
			c.str = vec.ViewStr(a)
		case *array.Dictionary:
			c.dict = vec.ViewOf[int32](a.Indices()).V
			c.str = vec.ViewStr(a.Dictionary())
		case *array.Decimal128:
			c.dec = a.Values()
		case *array.Boolean:
		default:
			c.datum = true
		}
		if c.t.Kind == types.Numeric && c.dec == nil && arrs[i].Len() > 0 {
			c.datum = true
		}
	}
	return e
}

// Row returns the image of row i; it is valid until the next call.
func (e *ArrowEncoder) Row(i int) ([]byte, error) {
	e.w.Reset(len(e.cols))
	for k := range e.cols {
		c := &e.cols[k]
		if c.nulls && c.arr.IsNull(i) {
			e.w.SetNull(k, c.t)
			continue
		}
		switch {
		case c.datum:
			if err := e.w.Set(k, c.t, vec.DatumAt(c.arr, c.t, i)); err != nil {
				return nil, err
			}
		case c.i16 != nil:
			e.w.SetInt(k, elemWidth(c.t), int64(c.i16[i]))
		case c.i32 != nil:
			e.w.SetInt(k, 4, int64(c.i32[i]))
		case c.i64 != nil:
			switch c.t.Kind {
			case types.Time:
				e.w.SetInt(k, 4, c.i64[i]/1000)
			case types.Timestamp, types.TimestampTZ:
				ms, nano := SplitTimestamp(c.t, c.i64[i])
				e.w.SetTimestamp(k, c.t.Prec, ms, nano)
			default:
				e.w.SetInt(k, 8, c.i64[i])
			}
		case c.f32 != nil:
			e.w.SetInt(k, 4, int64(math.Float32bits(c.f32[i])))
		case c.f64 != nil:
			e.w.SetInt(k, 8, int64(math.Float64bits(c.f64[i])))
		case c.dec != nil:
			if c.t.Prec <= 18 {
				e.w.SetInt(k, 8, int64(c.dec[i].LowBits()))
			} else {
				var b [16]byte
				e.w.SetDecimalBytes(k, twos128(&b, c.dec[i]))
			}
		case c.dict != nil:
			e.w.SetBytes(k, c.str.At(int(c.dict[i])))
		case c.str.Offs != nil:
			e.w.SetBytes(k, c.str.At(i))
		default:
			if a, ok := c.arr.(*array.Boolean); ok && a.Value(i) {
				e.w.SetInt(k, 1, 1)
			}
		}
	}
	return e.w.b, nil
}

// twos128 writes v as minimal big-endian two's complement.
func twos128(b *[16]byte, v decimal128.Num) []byte {
	binary.BigEndian.PutUint64(b[:8], uint64(v.HighBits()))
	binary.BigEndian.PutUint64(b[8:], v.LowBits())
	i := 0
	for i < 15 && (b[i] == 0 && b[i+1] < 0x80 || b[i] == 0xff && b[i+1] >= 0x80) {
		i++
	}
	return b[i:]
}
