// Package pgbin is PostgreSQL's binary form of every type, both ways: results and
// parameters of the wire protocol and COPY BINARY agree by it. Layouts: the
// *_send and *_recv functions of PostgreSQL; all integers are big-endian.
package pgbin

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// PostgreSQL counts from 2000-01-01.
const (
	epochDays   = 10957
	epochMicros = epochDays * 86400 * 1000000
)

// Encoder makes the functions that write values. Style shapes the text inside
// jsonb values. Err is what a value that cannot be sent (a date beyond
// PostgreSQL's range) left; whoever writes rows looks at it.
type Encoder struct {
	Style *pgtext.Style
	Err   error
}

// Appender returns the function that appends the binary form of a row of a that
// is not NULL. a is an array of t, or a dictionary of one; what is not is XX000.
func (e *Encoder) Appender(t types.Type, a arrow.Array) (func(dst []byte, row int) []byte, error) {
	if t.Kind == types.Unknown {
		t = types.Of(types.Text)
	}
	if d, ok := a.(*array.Dictionary); ok {
		inner, err := e.Appender(t, d.Dictionary())
		if err != nil {
			return nil, err
		}
		idx := vec.ViewOf[int32](d.Indices()).V
		return func(dst []byte, row int) []byte { return inner(dst, int(idx[row])) }, nil
	}
	if !Holds(t, a) {
		return nil, Mismatch(t, a)
	}
	be := binary.BigEndian
	switch t.Kind {
	case types.Bool:
		b := a.(*array.Boolean)
		return func(dst []byte, row int) []byte {
			if b.Value(row) {
				return append(dst, 1)
			}
			return append(dst, 0)
		}, nil
	case types.TinyInt, types.Int2:
		v := vec.ViewOf[int16](a).V
		return func(dst []byte, row int) []byte { return be.AppendUint16(dst, uint16(v[row])) }, nil
	case types.Int4:
		v := vec.ViewOf[int32](a).V
		return func(dst []byte, row int) []byte { return be.AppendUint32(dst, uint32(v[row])) }, nil
	case types.Int8:
		v := vec.ViewOf[int64](a).V
		return func(dst []byte, row int) []byte { return be.AppendUint64(dst, uint64(v[row])) }, nil
	case types.OID, types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper, types.XID:
		v := vec.ViewOf[int64](a).V
		return func(dst []byte, row int) []byte { return be.AppendUint32(dst, uint32(v[row])) }, nil
	case types.Float4:
		v := vec.ViewOf[float32](a).V
		return func(dst []byte, row int) []byte { return be.AppendUint32(dst, math.Float32bits(v[row])) }, nil
	case types.Float8:
		v := vec.ViewOf[float64](a).V
		return func(dst []byte, row int) []byte { return be.AppendUint64(dst, math.Float64bits(v[row])) }, nil
	case types.Numeric:
		return numericAppender(a), nil
	case types.Date:
		v := vec.ViewOf[int32](a).V
		return func(dst []byte, row int) []byte {
			d := v[row]
			switch {
			case d == pgtext.DateInfinity || d == pgtext.DateNegInfinity:
			case d < pgtext.MinDate || d > pgtext.MaxDate:
				e.outOfRange("date")
			default:
				d -= epochDays
			}
			return be.AppendUint32(dst, uint32(d))
		}, nil
	case types.Inet, types.TID, types.PgLSN:
		v := vec.ViewStr(a)
		return func(dst []byte, row int) []byte { return appendSystem(dst, t.Kind, string(v.At(row))) }, nil
	case types.Time:
		v := vec.ViewOf[int64](a).V
		return func(dst []byte, row int) []byte { return be.AppendUint64(dst, uint64(v[row])) }, nil
	case types.TimeTZ:
		f := a.(*array.FixedSizeBinary)
		return func(dst []byte, row int) []byte {
			b := f.Value(row)
			dst = be.AppendUint64(dst, binary.LittleEndian.Uint64(b))
			return be.AppendUint32(dst, binary.LittleEndian.Uint32(b[8:]))
		}, nil
	case types.Timestamp, types.TimestampTZ:
		v := vec.ViewOf[int64](a).V
		nanos := a.DataType().(*arrow.TimestampType).Unit == arrow.Nanosecond
		return func(dst []byte, row int) []byte {
			us := v[row]
			if nanos {
				us = pgtext.FloorMicros(us)
			}
			switch {
			case us == pgtext.TimestampInfinity || us == pgtext.TimestampNegInfinity:
			case us < pgtext.MinTimestamp: // the upper end lies beyond what int64 holds from 1970 on
				e.outOfRange("timestamp")
			default:
				us -= epochMicros
			}
			return be.AppendUint64(dst, uint64(us))
		}, nil
	case types.Interval:
		f := a.(*array.FixedSizeBinary)
		return func(dst []byte, row int) []byte {
			b := f.Value(row)
			dst = be.AppendUint64(dst, binary.LittleEndian.Uint64(b))
			dst = be.AppendUint32(dst, binary.LittleEndian.Uint32(b[8:]))
			return be.AppendUint32(dst, binary.LittleEndian.Uint32(b[12:]))
		}, nil
	case types.UUID:
		f := a.(*array.FixedSizeBinary)
		return func(dst []byte, row int) []byte { return append(dst, f.Value(row)...) }, nil
	case types.BpChar:
		str := vec.ViewStr(a)
		n := int(t.Mod) - 4
		return func(dst []byte, row int) []byte {
			v := str.At(row)
			dst = append(dst, v...)
			if n > 0 {
				for k := utf8.RuneCount(v); k < n; k++ {
					dst = append(dst, ' ')
				}
			}
			return dst
		}, nil
	case types.JSONB:
		str := vec.ViewStr(a)
		return func(dst []byte, row int) []byte { return append(append(dst, 1), str.At(row)...) }, nil
	case types.Char:
		str := vec.ViewStr(a)
		return CharAppender(str, nil), nil
	case types.Map, types.Row, types.Variant:
		return e.jsonbAppender(t, a), nil
	case types.Array:
		if t.OnWireAsJSON() {
			return e.jsonbAppender(t, a), nil
		}
		return e.arrayAppender(t, a, 1)
	case types.AnyArray:
		if t.Elem == nil {
			elem := types.Of(types.Text)
			t.Elem = &elem
		}
		return e.arrayAppender(t, a, 1)
	case types.Int2Vector:
		elem := types.Of(types.Int2)
		t.Elem = &elem
		return e.arrayAppender(t, a, 0)
	case types.OIDVector:
		elem := types.Of(types.OID)
		t.Elem = &elem
		return e.arrayAppender(t, a, 0)
	case types.Record:
		return e.recordAppender(t, a)
	}
	str := vec.ViewStr(a)
	return func(dst []byte, row int) []byte { return append(dst, str.At(row)...) }, nil
}

func (e *Encoder) outOfRange(what string) {
	if e.Err == nil {
		e.Err = pgerr.New(pgerr.DatetimeFieldOverflow, "%s out of range", what)
	}
}

// jsonbAppender writes jsonb: its version, then its text.
func (e *Encoder) jsonbAppender(t types.Type, a arrow.Array) func([]byte, int) []byte {
	app := pgtext.Appender(t, a, e.Style)
	return func(dst []byte, row int) []byte { return app(append(dst, 1), row) }
}

// CharAppender writes "char": one byte, zero for the empty string. idx, when not
// nil, says which value of str a row has.
func CharAppender(str vec.StrView, idx []int32) func([]byte, int) []byte {
	return func(dst []byte, row int) []byte {
		if idx != nil {
			row = int(idx[row])
		}
		v := str.At(row)
		if len(v) == 0 {
			return append(dst, 0)
		}
		return append(dst, v[0])
	}
}

// arrayAppender writes a one-dimensional array:
//
//	int32 dimensions | int32 has NULLs | oid of the element
//	per dimension: int32 length, int32 lower bound
//	per element: int32 length (-1 = NULL), bytes
//
// An empty array has no dimension, save the vectors of pg_catalog, whose lower
// bound is 0.
func (e *Encoder) arrayAppender(t types.Type, a arrow.Array, lower uint32) (func([]byte, int) []byte, error) {
	offs, child, ok := listOf(a)
	if !ok {
		return nil, Mismatch(t, a)
	}
	elem := wire(*t.Elem)
	app, err := e.Appender(elem, child)
	if err != nil {
		return nil, err
	}
	valid, off := Validity(child)
	oid := elem.OID()
	be := binary.BigEndian
	return func(dst []byte, row int) []byte {
		from, to := offs(row)
		if from == to && lower == 1 {
			dst = be.AppendUint32(dst, 0)
			dst = be.AppendUint32(dst, 0)
			return be.AppendUint32(dst, oid)
		}
		dst = be.AppendUint32(dst, 1)
		flag := len(dst) + 3
		dst = be.AppendUint32(dst, 0)
		dst = be.AppendUint32(dst, oid)
		dst = be.AppendUint32(dst, uint32(to-from))
		dst = be.AppendUint32(dst, lower)
		for i := from; i < to; i++ {
			if !vec.BitAt(valid, i+off) {
				dst[flag] = 1
				dst = be.AppendUint32(dst, math.MaxUint32)
				continue
			}
			p := len(dst)
			dst = app(be.AppendUint32(dst, 0), i)
			be.PutUint32(dst[p:], uint32(len(dst)-p-4))
		}
		return dst
	}, nil
}

// listOf returns the bounds of a row in a list's child.
func listOf(a arrow.Array) (func(row int) (from, to int), arrow.Array, bool) {
	switch l := a.(type) {
	case *array.List:
		return func(row int) (int, int) { f, t := l.ValueOffsets(row); return int(f), int(t) }, l.ListValues(), true
	case *array.FixedSizeList:
		return func(row int) (int, int) { f, t := l.ValueOffsets(row); return int(f), int(t) }, l.ListValues(), true
	}
	return nil, nil, false
}

// recordAppender writes a row value: int32 fields, per field its oid, int32
// length, bytes.
func (e *Encoder) recordAppender(t types.Type, a arrow.Array) (func([]byte, int) []byte, error) {
	st := a.(*array.Struct)
	if st.NumField() != len(t.Fields) {
		return nil, Mismatch(t, a)
	}
	type field struct {
		oid   uint32
		valid []byte
		off   int
		app   func([]byte, int) []byte
	}
	fs := make([]field, len(t.Fields))
	for i := range fs {
		ft := t.Fields[i].Type
		child := st.Field(i)
		fs[i].oid = ft.OID() // here PostgreSQL shows unknown as it is
		fs[i].valid, fs[i].off = Validity(child)
		if child.NullN() == child.Len() {
			continue // app stays nil
		}
		var err error
		if fs[i].app, err = e.Appender(ft, child); err != nil {
			return nil, err
		}
	}
	be := binary.BigEndian
	return func(dst []byte, row int) []byte {
		dst = be.AppendUint32(dst, uint32(len(fs)))
		for i := range fs {
			f := &fs[i]
			dst = be.AppendUint32(dst, f.oid)
			if f.app == nil || !vec.BitAt(f.valid, row+f.off) {
				dst = be.AppendUint32(dst, math.MaxUint32)
				continue
			}
			p := len(dst)
			dst = f.app(be.AppendUint32(dst, 0), row)
			be.PutUint32(dst[p:], uint32(len(dst)-p-4))
		}
		return dst
	}, nil
}

// wire is the type that a client is told: an undetermined one is text.
func wire(t types.Type) types.Type {
	if t.Kind == types.Unknown {
		return types.Of(types.Text)
	}
	return t
}

// Holds checks that an array is what its type says: an operator's mistake must
// not become a panic or wrong bytes at a client.
func Holds(t types.Type, a arrow.Array) bool {
	if d, ok := a.(*array.Dictionary); ok {
		return Holds(t, d.Dictionary())
	}
	switch t.Kind {
	case types.Numeric:
		id := a.DataType().ID()
		return id == arrow.DECIMAL128 || id == arrow.BINARY
	case types.AnyArray, types.Array, types.Map, types.Row, types.Record, types.Variant, types.Int2Vector, types.OIDVector:
		return a.DataType().ID() == t.Arrow().ID()
	case types.Timestamp, types.TimestampTZ:
		return a.DataType().ID() == arrow.TIMESTAMP
	}
	want := t.Arrow()
	if want.ID() != a.DataType().ID() {
		return false
	}
	if f, ok := want.(*arrow.FixedSizeBinaryType); ok {
		return f.ByteWidth == a.DataType().(*arrow.FixedSizeBinaryType).ByteWidth
	}
	return true
}

// Mismatch is the error of an array that Holds refuses.
func Mismatch(t types.Type, a arrow.Array) error {
	return pgerr.New(pgerr.InternalError, "column of type %s is held as %s", t, a.DataType())
}

// Validity returns an array's bitmap, nil without NULLs, and the bit of row 0.
func Validity(a arrow.Array) ([]byte, int) {
	if d, ok := a.(*array.Dictionary); ok {
		a = d.Indices()
	}
	d := a.Data()
	if len(d.Buffers()) == 0 || d.Buffers()[0] == nil || a.NullN() == 0 {
		return nil, 0
	}
	return d.Buffers()[0].Bytes(), d.Offset()
}
