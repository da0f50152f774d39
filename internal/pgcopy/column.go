package pgcopy

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// colKind says how a column's values are held and which loop reads them.
type colKind uint8

const (
	colAny colKind = iota // boxed values, by package pgtext
	colBool
	colInt16
	colInt32
	colInt64
	colFloat32
	colFloat64
	colDecimal
	colDate
	colTime
	colTimestamp
	colText  // bytes as they are
	colInput // text that pgtext checks or changes: char(n), varchar(n), json, ...
	colBytea
)

// column is one array under construction. What it holds is fresh for each batch.
type column struct {
	typ                     types.Type
	kind                    colKind
	forceNotNull, forceNull bool

	i16   []int16
	i32   []int32
	i64   []int64
	f32   []float32
	f64   []float64
	dec   []decimal128.Num
	bits  []byte
	off   []int32
	data  []byte
	any   []types.Datum
	valid []byte // nil = no NULL yet
	rows  int    // room
	hint  int    // bytes of the batch before
}

func newColumn(f types.Field, o *Options) column {
	c := column{typ: f.Type.SQL(), hint: 1 << 10}
	switch t := c.typ; t.Kind {
	case types.Bool:
		c.kind = colBool
	case types.Int2:
		c.kind = colInt16
	case types.Int4:
		c.kind = colInt32
	case types.Int8:
		c.kind = colInt64
	case types.Float4:
		c.kind = colFloat32
	case types.Float8:
		c.kind = colFloat64
	case types.Numeric:
		if t.Prec > 0 {
			c.kind = colDecimal
		}
	case types.Date:
		c.kind = colDate
	case types.Time:
		c.kind = colTime
	case types.Timestamp, types.TimestampTZ:
		c.kind = colTimestamp
	case types.Bytea:
		c.kind = colBytea
	case types.Text, types.Unknown, types.Varchar, types.BpChar:
		c.kind = colText
		if t.Mod > 4 {
			c.kind = colInput
		}
	case types.JSON, types.JSONB, types.Name, types.Char:
		c.kind = colInput
	}
	for _, n := range o.ForceNotNull {
		c.forceNotNull = c.forceNotNull || n == f.Name
	}
	for _, n := range o.ForceNull {
		c.forceNull = c.forceNull || n == f.Name
	}
	return c
}

// start makes room for up to rows values.
func (c *column) start(rows int) {
	c.valid, c.rows = nil, rows
	switch c.kind {
	case colBool:
		c.bits = vec.NewBitmap(rows)
	case colInt16:
		c.i16 = make([]int16, rows)
	case colInt32, colDate:
		c.i32 = make([]int32, rows)
	case colInt64, colTime, colTimestamp:
		c.i64 = make([]int64, rows)
	case colFloat32:
		c.f32 = make([]float32, rows)
	case colFloat64:
		c.f64 = make([]float64, rows)
	case colDecimal:
		c.dec = make([]decimal128.Num, rows)
	case colText, colInput, colBytea:
		c.off = make([]int32, rows+1)
		c.data = make([]byte, 0, c.hint+c.hint/8)
	default:
		c.any = make([]types.Datum, rows)
	}
}

func (c *column) null(i int) {
	if c.valid == nil {
		c.valid = vec.FullBitmap(c.rows)
	}
	vec.ClearBit(c.valid, i)
	if c.off != nil {
		c.off[i+1] = int32(len(c.data))
	}
}

// finish wraps the first n values.
func (c *column) finish(n int) arrow.Array {
	valid := c.valid
	if valid != nil && n < c.rows {
		valid = vec.CopyBits(valid, 0, n)
	}
	dt := c.typ.Arrow()
	switch c.kind {
	case colBool:
		return vec.MakeBool(n, vec.CopyBits(c.bits, 0, n), valid)
	case colInt16:
		return vec.Make(dt, c.i16[:n], valid)
	case colInt32, colDate:
		return vec.Make(dt, c.i32[:n], valid)
	case colInt64, colTime, colTimestamp:
		return vec.Make(dt, c.i64[:n], valid)
	case colFloat32:
		return vec.Make(dt, c.f32[:n], valid)
	case colFloat64:
		return vec.Make(dt, c.f64[:n], valid)
	case colDecimal:
		return vec.MakeDec128(dt, c.dec[:n], valid)
	case colText, colInput, colBytea:
		c.hint = max(len(c.data), 1<<10)
		return vec.MakeBytes(dt, c.off[:n+1], c.data, valid)
	}
	return vec.FromDatums(c.typ, c.any[:n])
}

// set stores a boxed value, which is not NULL.
func (c *column) set(i int, v types.Datum) error {
	switch c.kind {
	case colBool:
		if v.(bool) {
			vec.SetBit(c.bits, i)
		}
	case colInt16:
		c.i16[i] = int16(v.(int64))
	case colInt32, colDate:
		c.i32[i] = int32(v.(int64))
	case colInt64, colTime, colTimestamp:
		c.i64[i] = v.(int64)
	case colFloat32:
		c.f32[i] = float32(v.(float64))
	case colFloat64:
		c.f64[i] = v.(float64)
	case colDecimal:
		d := v.(*numeric.Dec)
		n, ok := d.To128(int32(c.typ.Scale))
		if !ok {
			// NaN: numeric(p,s) has it, DECIMAL has not.
			return pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
				WithDetail("A column of type %s cannot hold %s.", c.typ, d)
		}
		c.dec[i] = n
	case colText, colInput:
		return c.bytes(i, v.(string))
	case colBytea:
		return c.bytes(i, string(v.([]byte)))
	default:
		c.any[i] = v
	}
	return nil
}

// bytes appends a value of a string column.
func (c *column) bytes(i int, v string) error {
	if len(c.data)+len(v) > maxLine {
		return errColumnFull()
	}
	c.data = append(c.data, v...)
	c.off[i+1] = int32(len(c.data))
	return nil
}

func errColumnFull() error {
	return pgerr.New(pgerr.ProgramLimitExceeded, "out of memory").
		WithDetail("A batch of rows is larger than %d bytes.", maxLine)
}
