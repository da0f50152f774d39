package pgtext

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Appender returns the function that appends the text form of one row of a,
// whose logical type is t. Dictionaries of t's arrays are taken too. The row
// must not be NULL; the function is not safe for concurrent use.
func Appender(t types.Type, a arrow.Array, st *Style) func(dst []byte, row int) []byte {
	st = orDefault(st)
	if d, ok := a.(*array.Dictionary); ok {
		inner := Appender(t, d.Dictionary(), st)
		idx := vec.ViewOf[int32](d.Indices())
		return func(dst []byte, row int) []byte { return inner(dst, int(idx.V[row])) }
	}
	switch t.Kind {
	case types.Bool:
		b := a.(*array.Boolean)
		return func(dst []byte, row int) []byte {
			if b.Value(row) {
				return append(dst, 't')
			}
			return append(dst, 'f')
		}
	case types.TinyInt, types.Int2:
		v := vec.ViewOf[int16](a).V
		return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, int64(v[row]), 10) }
	case types.Int4:
		v := vec.ViewOf[int32](a).V
		return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, int64(v[row]), 10) }
	case types.Int8, types.OID, types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper, types.XID:
		v := vec.ViewOf[int64](a).V
		return func(dst []byte, row int) []byte { return strconv.AppendInt(dst, v[row], 10) }
	case types.Float4:
		v := vec.ViewOf[float32](a).V
		return func(dst []byte, row int) []byte { return AppendFloat4(dst, v[row], st) }
	case types.Float8:
		v := vec.ViewOf[float64](a).V
		return func(dst []byte, row int) []byte { return AppendFloat8(dst, v[row], st) }
	case types.Numeric:
		if d, ok := a.(*array.Decimal128); ok {
			v := d.Values()
			scale := int(d.DataType().(*arrow.Decimal128Type).Scale)
			return func(dst []byte, row int) []byte { return numeric.Append128(dst, v[row], scale) }
		}
		s := vec.ViewStr(a)
		return func(dst []byte, row int) []byte { return numeric.Decode(s.At(row)).AppendText(dst) }
	case types.BpChar:
		s := vec.ViewStr(a)
		n := int(t.Mod) - 4
		return func(dst []byte, row int) []byte {
			v := s.At(row)
			dst = append(dst, v...)
			if n > len(v) || n > 0 && n > utf8.RuneCount(v) {
				for i := utf8.RuneCount(v); i < n; i++ {
					dst = append(dst, ' ')
				}
			}
			return dst
		}
	case types.Bytea:
		s := vec.ViewStr(a)
		escape := st.ByteaOutput == "escape"
		return func(dst []byte, row int) []byte { return appendBytea(dst, s.At(row), escape) }
	case types.Date:
		v := vec.ViewOf[int32](a).V
		return func(dst []byte, row int) []byte { return AppendDate(dst, int64(v[row]), st) }
	case types.Time:
		v := vec.ViewOf[int64](a).V
		return func(dst []byte, row int) []byte { return appendTOD(dst, v[row]) }
	case types.TimeTZ:
		f := a.(*array.FixedSizeBinary)
		return func(dst []byte, row int) []byte {
			us, west := DecodeTimeTZ(f.Value(row))
			return AppendTimeTZ(dst, us, west)
		}
	case types.Timestamp, types.TimestampTZ:
		v := vec.ViewOf[int64](a).V
		var z *Zone
		if t.Kind == types.TimestampTZ {
			z = NewZone(st.loc())
		}
		if isNanos(a, t) {
			return func(dst []byte, row int) []byte { return AppendTimestamp(dst, FloorMicros(v[row]), z, st) }
		}
		return func(dst []byte, row int) []byte { return AppendTimestamp(dst, v[row], z, st) }
	case types.Interval:
		f := a.(*array.FixedSizeBinary)
		return func(dst []byte, row int) []byte { return AppendInterval(dst, DecodeInterval(f.Value(row)), st) }
	case types.UUID:
		f := a.(*array.FixedSizeBinary)
		return func(dst []byte, row int) []byte { return AppendUUID(dst, f.Value(row)) }
	case types.Array, types.AnyArray:
		if t.OnWireAsJSON() {
			return JSONAppender(t, a, st)
		}
		return listAppender(t, a, st)
	case types.Int2Vector, types.OIDVector:
		l := a.(*array.List)
		elem := Appender(types.Of(vectorElem(t.Kind)), l.ListValues(), st)
		return func(dst []byte, row int) []byte {
			from, to := l.ValueOffsets(row)
			for i := from; i < to; i++ {
				if i > from {
					dst = append(dst, ' ')
				}
				dst = elem(dst, int(i))
			}
			return dst
		}
	case types.Map, types.Row, types.Variant:
		return JSONAppender(t, a, st)
	case types.Record:
		return recordAppender(t, a, st)
	}
	s := vec.ViewStr(a)
	return func(dst []byte, row int) []byte { return append(dst, s.At(row)...) }
}

func vectorElem(k types.Kind) types.Kind {
	if k == types.Int2Vector {
		return types.Int2
	}
	return types.OID
}

// isNanos trusts the array before the type.
func isNanos(a arrow.Array, t types.Type) bool {
	if ts, ok := a.DataType().(*arrow.TimestampType); ok {
		return ts.Unit == arrow.Nanosecond
	}
	return t.IsNanos()
}

// AppendDatum appends the text form of a value; nil appends nothing.
func AppendDatum(dst []byte, t types.Type, d types.Datum, st *Style) []byte {
	if d == nil {
		return dst
	}
	st = orDefault(st)
	switch t.Kind {
	case types.Bool:
		if d.(bool) {
			return append(dst, 't')
		}
		return append(dst, 'f')
	case types.TinyInt, types.Int2, types.Int4, types.Int8, types.OID, types.RegClass, types.RegProc, types.RegType,
		types.RegNamespace, types.RegRole, types.RegOper, types.XID:
		return strconv.AppendInt(dst, d.(int64), 10)
	case types.Float4:
		return AppendFloat4(dst, float32(d.(float64)), st)
	case types.Float8:
		return AppendFloat8(dst, d.(float64), st)
	case types.Numeric:
		return d.(*numeric.Dec).AppendText(dst)
	case types.Bytea:
		return appendBytea(dst, d.([]byte), st.ByteaOutput == "escape")
	case types.Date:
		return AppendDate(dst, d.(int64), st)
	case types.Time:
		return appendTOD(dst, d.(int64))
	case types.Timestamp, types.TimestampTZ:
		us := d.(int64)
		if t.IsNanos() {
			us = FloorMicros(us)
		}
		var z *Zone
		if t.Kind == types.TimestampTZ {
			z = NewZone(st.loc())
		}
		return AppendTimestamp(dst, us, z, st)
	case types.Interval:
		return AppendInterval(dst, DecodeInterval(d.([]byte)), st)
	case types.UUID:
		return AppendUUID(dst, d.([]byte))
	case types.TimeTZ:
		us, west := DecodeTimeTZ(d.([]byte))
		return AppendTimeTZ(dst, us, west)
	}
	if s, ok := d.(string); ok && t.Kind != types.BpChar {
		return append(dst, s...)
	}
	a := vec.FromDatums(t, []types.Datum{d})
	return Appender(t, a, st)(dst, 0)
}

// AppendFloat8 appends a double precision value.
func AppendFloat8(dst []byte, f float64, st *Style) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, "NaN"...)
	case math.IsInf(f, 1):
		return append(dst, "Infinity"...)
	case math.IsInf(f, -1):
		return append(dst, "-Infinity"...)
	}
	if st != nil && st.RoundFloats {
		return strconv.AppendFloat(dst, f, 'g', max(15+st.ExtraFloatDigits, 1), 64)
	}
	if a := math.Abs(f); a < 1e15 && a >= 1e-4 || a == 0 {
		return strconv.AppendFloat(dst, f, 'f', -1, 64)
	}
	return strconv.AppendFloat(dst, f, 'e', -1, 64)
}

// AppendFloat4 appends a real value.
func AppendFloat4(dst []byte, f float32, st *Style) []byte {
	d := float64(f)
	if math.IsNaN(d) || math.IsInf(d, 0) {
		return AppendFloat8(dst, d, st)
	}
	if st != nil && st.RoundFloats {
		return strconv.AppendFloat(dst, d, 'g', max(6+st.ExtraFloatDigits, 1), 32)
	}
	// 'g' switches to an exponent where PostgreSQL does for real.
	return strconv.AppendFloat(dst, d, 'g', -1, 32)
}

const hexDigits = "0123456789abcdef"

func appendBytea(dst, v []byte, escape bool) []byte {
	if !escape {
		dst = append(dst, '\\', 'x')
		for _, c := range v {
			dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
		}
		return dst
	}
	for _, c := range v {
		switch {
		case c == '\\':
			dst = append(dst, '\\', '\\')
		case c < 0x20 || c > 0x7e:
			dst = append(dst, '\\', '0'+c>>6, '0'+c>>3&7, '0'+c&7)
		default:
			dst = append(dst, c)
		}
	}
	return dst
}

// AppendUUID appends the 36 characters of a UUID.
func AppendUUID(dst, v []byte) []byte {
	for i, c := range v {
		if i == 4 || i == 6 || i == 8 || i == 10 {
			dst = append(dst, '-')
		}
		dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
	}
	return dst
}

// lists gives the offsets of list-like arrays.
func lists(a arrow.Array) (values arrow.Array, bounds func(row int) (int64, int64)) {
	switch l := a.(type) {
	case *array.List:
		return l.ListValues(), l.ValueOffsets
	case *array.FixedSizeList:
		return l.ListValues(), l.ValueOffsets
	case *array.LargeList:
		return l.ListValues(), l.ValueOffsets
	case *array.Map:
		return l.ListValues(), l.ValueOffsets
	}
	return nil, nil
}

func listAppender(t types.Type, a arrow.Array, st *Style) func(dst []byte, row int) []byte {
	values, bounds := lists(a)
	et := types.Of(types.Text)
	if t.Elem != nil {
		et = *t.Elem
	}
	elem := Appender(et, values, st)
	quote := mayNeedQuotes(et)
	return func(dst []byte, row int) []byte {
		from, to := bounds(row)
		dst = append(dst, '{')
		for i := from; i < to; i++ {
			if i > from {
				dst = append(dst, ',')
			}
			if values.IsNull(int(i)) {
				dst = append(dst, "NULL"...)
				continue
			}
			at := len(dst)
			dst = elem(dst, int(i))
			if quote {
				dst = quoteElem(dst, at)
			}
		}
		return append(dst, '}')
	}
}

func mayNeedQuotes(t types.Type) bool {
	switch t.Kind {
	case types.Bool, types.TinyInt, types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Numeric, types.OID, types.UUID, types.XID:
		return false
	}
	return true
}

// quoteElem puts dst[at:] in quotes when an array literal needs it.
func quoteElem(dst []byte, at int) []byte {
	v := dst[at:]
	need := len(v) == 0 || len(v) == 4 && strings.EqualFold(string(v), "null")
	extra := 0
	for _, c := range v {
		switch c {
		case '"', '\\':
			need = true
			extra++
		case '{', '}', ',', ' ', '\t', '\n', '\r', '\v', '\f':
			need = true
		}
	}
	if !need {
		return dst
	}
	s := string(v)
	dst = append(dst[:at], '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, '\\')
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}

func recordAppender(t types.Type, a arrow.Array, st *Style) func(dst []byte, row int) []byte {
	s := a.(*array.Struct)
	elems := make([]func([]byte, int) []byte, s.NumField())
	for i := range elems {
		ft := types.Of(types.Text)
		if i < len(t.Fields) {
			ft = t.Fields[i].Type
		}
		elems[i] = Appender(ft, s.Field(i), st)
	}
	return func(dst []byte, row int) []byte {
		dst = append(dst, '(')
		for i, f := range elems {
			if i > 0 {
				dst = append(dst, ',')
			}
			if s.Field(i).IsNull(row) {
				continue
			}
			at := len(dst)
			dst = quoteMember(f(dst, row), at)
		}
		return append(dst, ')')
	}
}

// quoteMember puts dst[at:] in quotes when a record literal needs it.
func quoteMember(dst []byte, at int) []byte {
	v := dst[at:]
	need := len(v) == 0
	for _, c := range v {
		switch c {
		case '"', '\\', '(', ')', ',', ' ', '\t', '\n', '\r', '\v', '\f':
			need = true
		}
	}
	if !need {
		return dst
	}
	s := string(v)
	dst = append(dst[:at], '"')
	for i := 0; i < len(s); i++ {
		if s[i] == '"' || s[i] == '\\' {
			dst = append(dst, s[i])
		}
		dst = append(dst, s[i])
	}
	return append(dst, '"')
}
