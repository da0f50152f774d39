package pgtext

import (
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// JSONAppender returns the function that appends one value of a as jsonb text:
// what to_jsonb makes of it, members in the order they have. The row must not
// be NULL. Maps become objects (a NULL key is "null"), rows objects, arrays
// arrays, variants what they hold.
func JSONAppender(t types.Type, a arrow.Array, st *Style) func(dst []byte, row int) []byte {
	return jsonWriter{st: orDefault(st), comma: ", ", colon: ": "}.appender(t, a)
}

// CompactJSONAppender is JSONAppender without blanks, as to_json and
// row_to_json print.
func CompactJSONAppender(t types.Type, a arrow.Array, st *Style) func(dst []byte, row int) []byte {
	return jsonWriter{st: orDefault(st), comma: ",", colon: ":"}.appender(t, a)
}

type jsonWriter struct {
	st           *Style
	comma, colon string
}

var isoStyle = Style{}

func (w jsonWriter) appender(t types.Type, a arrow.Array) func(dst []byte, row int) []byte {
	if d, ok := a.(*array.Dictionary); ok {
		inner := w.appender(t, d.Dictionary())
		idx := vec.ViewOf[int32](d.Indices())
		return func(dst []byte, row int) []byte { return inner(dst, int(idx.V[row])) }
	}
	switch t.Kind {
	case types.Bool:
		b := a.(*array.Boolean)
		return func(dst []byte, row int) []byte {
			if b.Value(row) {
				return append(dst, "true"...)
			}
			return append(dst, "false"...)
		}
	case types.TinyInt, types.Int2, types.Int4, types.Int8:
		return Appender(t, a, w.st)
	case types.Float4, types.Float8:
		text := Appender(t, a, w.st)
		return func(dst []byte, row int) []byte {
			at := len(dst)
			dst = text(dst, row)
			if c := dst[len(dst)-1]; c == 'N' || c == 'y' {
				return quoteJSON(dst, at)
			}
			return dst
		}
	case types.Numeric:
		if _, ok := a.(*array.Decimal128); ok {
			return Appender(t, a, w.st)
		}
		s := vec.ViewStr(a)
		return func(dst []byte, row int) []byte {
			d := numeric.Decode(s.At(row))
			at := len(dst)
			dst = d.AppendText(dst)
			if d.Form != numeric.Finite {
				return quoteJSON(dst, at)
			}
			return dst
		}
	case types.JSON, types.JSONB:
		s := vec.ViewStr(a)
		return func(dst []byte, row int) []byte { return append(dst, s.At(row)...) }
	case types.Date:
		v := vec.ViewOf[int32](a).V
		return func(dst []byte, row int) []byte {
			dst = append(dst, '"')
			return append(AppendDate(dst, int64(v[row]), &isoStyle), '"')
		}
	case types.Timestamp, types.TimestampTZ:
		v := vec.ViewOf[int64](a).V
		nanos := isNanos(a, t)
		var z *Zone
		if t.Kind == types.TimestampTZ {
			z = NewZone(w.st.loc())
		}
		return func(dst []byte, row int) []byte {
			us := v[row]
			if nanos {
				us = FloorMicros(us)
			}
			return AppendJSONTimestamp(dst, us, z)
		}
	case types.Array, types.AnyArray, types.Int2Vector, types.OIDVector:
		values, bounds := lists(a)
		et := types.Of(types.Text)
		if t.Kind == types.Int2Vector || t.Kind == types.OIDVector {
			et = types.Of(types.Int8)
			if t.Kind == types.Int2Vector {
				et = types.Of(types.Int2)
			}
		} else if t.Elem != nil {
			et = *t.Elem
		}
		elem := w.appender(et, values)
		return func(dst []byte, row int) []byte {
			from, to := bounds(row)
			dst = append(dst, '[')
			for i := from; i < to; i++ {
				if i > from {
					dst = append(dst, w.comma...)
				}
				if values.IsNull(int(i)) {
					dst = append(dst, "null"...)
				} else {
					dst = elem(dst, int(i))
				}
			}
			return append(dst, ']')
		}
	case types.Map:
		m := a.(*array.Map)
		keys, items := m.Keys(), m.Items()
		key := Appender(*t.Key, keys, w.st)
		item := w.appender(*t.Elem, items)
		return func(dst []byte, row int) []byte {
			from, to := m.ValueOffsets(row)
			dst = append(dst, '{')
			for i := from; i < to; i++ {
				if i > from {
					dst = append(dst, w.comma...)
				}
				if keys.IsNull(int(i)) {
					dst = append(dst, `"null"`...)
				} else {
					at := len(dst)
					dst = quoteJSON(key(dst, int(i)), at)
				}
				dst = append(dst, w.colon...)
				if items.IsNull(int(i)) {
					dst = append(dst, "null"...)
				} else {
					dst = item(dst, int(i))
				}
			}
			return append(dst, '}')
		}
	case types.Row, types.Record:
		s := a.(*array.Struct)
		names := make([][]byte, s.NumField())
		elems := make([]func([]byte, int) []byte, s.NumField())
		for i := range elems {
			ft, name := types.Of(types.Text), ""
			if i < len(t.Fields) {
				ft, name = t.Fields[i].Type, t.Fields[i].Name
			}
			names[i] = append(AppendJSONString(nil, []byte(name)), w.colon...)
			elems[i] = w.appender(ft, s.Field(i))
		}
		return func(dst []byte, row int) []byte {
			dst = append(dst, '{')
			for i, f := range elems {
				if i > 0 {
					dst = append(dst, w.comma...)
				}
				dst = append(dst, names[i]...)
				if s.Field(i).IsNull(row) {
					dst = append(dst, "null"...)
				} else {
					dst = f(dst, row)
				}
			}
			return append(dst, '}')
		}
	case types.Variant:
		s := a.(*array.Struct)
		v, m := vec.ViewStr(s.Field(0)), vec.ViewStr(s.Field(1))
		return func(dst []byte, row int) []byte {
			at := len(dst)
			out, err := appendVariant(dst, v.At(row), m.At(row), w, 0)
			if err != nil {
				return append(dst[:at], "null"...)
			}
			return out
		}
	}
	text := Appender(t, a, w.st)
	return func(dst []byte, row int) []byte {
		at := len(dst)
		return quoteJSON(text(dst, row), at)
	}
}

// AppendJSONTimestamp appends a timestamp as to_json does: in quotes, with a T.
func AppendJSONTimestamp(dst []byte, us int64, z *Zone) []byte {
	dst = append(dst, '"')
	at := len(dst)
	dst = AppendTimestamp(dst, us, z, &isoStyle)
	if n := len(dst); z != nil && n-at > 3 && (dst[n-3] == '+' || dst[n-3] == '-') && us != TimestampInfinity && us != TimestampNegInfinity {
		dst = append(dst, ":00"...) // XSD always has the minutes of an offset
	} else if z != nil && n-at > 6 && dst[n-1] == 'C' && (dst[n-6] == '+' || dst[n-6] == '-') {
		dst = append(dst[:n-3], ":00 BC"...)
	}
	for i := at; i < len(dst); i++ {
		if dst[i] == ' ' {
			dst[i] = 'T'
			break
		}
	}
	return append(dst, '"')
}

// quoteJSON turns dst[at:] into a JSON string.
func quoteJSON(dst []byte, at int) []byte {
	plain := true
	for _, c := range dst[at:] {
		if c < 0x20 || c == '"' || c == '\\' {
			plain = false
			break
		}
	}
	if plain {
		dst = append(dst, 0)
		copy(dst[at+1:], dst[at:len(dst)-1])
		dst[at] = '"'
		return append(dst, '"')
	}
	s := append([]byte(nil), dst[at:]...)
	return AppendJSONString(dst[:at], s)
}

func jsonFloat(dst []byte, f float64, st *Style) []byte {
	at := len(dst)
	dst = AppendFloat8(dst, f, st)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return quoteJSON(dst, at)
	}
	return dst
}
