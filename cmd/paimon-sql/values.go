package main

import (
	"encoding/json"
	"math"
	"sort"
	"strconv"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// appendFunc appends the form of one row's value, which is not NULL.
type appendFunc func(dst []byte, row int) []byte

// oidNamer prints values of the reg* types.
type oidNamer interface {
	OIDName(k types.Kind, oid int64) (string, bool)
	TextStyle() *pgtext.Style
}

// arrowBlock shows a batch to a printer.
func arrowBlock(cols []engine.Column, b *vec.Batch, names oidNamer) block {
	texts, jsons := make([]appendFunc, len(cols)), make([]appendFunc, len(cols))
	at := func(r int) int {
		if b.Sel != nil {
			return int(b.Sel[r])
		}
		return r
	}
	return block{
		n:    b.Size(),
		null: func(c, r int) bool { return b.Cols[c].IsNull(at(r)) },
		text: func(dst []byte, c, r int) []byte {
			if texts[c] == nil {
				texts[c] = textAppender(cols[c].Type, b.Cols[c], names)
			}
			return texts[c](dst, at(r))
		},
		json: func(dst []byte, c, r int) []byte {
			if jsons[c] == nil {
				jsons[c] = jsonAppender(cols[c].Type, b.Cols[c])
			}
			return jsons[c](dst, at(r))
		},
	}
}

func textAppender(t types.Type, a arrow.Array, names oidNamer) appendFunc {
	switch t.Kind {
	case types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper:
		v := vec.ViewOf[int64](a).V
		return func(dst []byte, row int) []byte {
			if n, ok := names.OIDName(t.Kind, v[row]); ok {
				return append(dst, n...)
			}
			return strconv.AppendInt(dst, v[row], 10)
		}
	}
	return pgtext.Appender(t, a, names.TextStyle())
}

var plainStyle = &pgtext.Style{}

// jsonAppender writes values in the row format of the jsonl output: numbers and
// booleans plain, decimals as strings with their full scale, instants in UTC
// with a Z, bytes as hex, maps as lists of pairs sorted by the key's JSON text.
func jsonAppender(t types.Type, a arrow.Array) appendFunc {
	if d, ok := a.(*array.Dictionary); ok {
		inner := jsonAppender(t, d.Dictionary())
		idx := vec.ViewOf[int32](d.Indices())
		return func(dst []byte, row int) []byte { return inner(dst, int(idx.V[row])) }
	}
	switch t.Kind {
	case types.Bool:
		b := a.(*array.Boolean)
		return func(dst []byte, row int) []byte { return strconv.AppendBool(dst, b.Value(row)) }
	case types.TinyInt, types.Int2, types.Int4, types.Int8, types.OID, types.XID, types.RegClass, types.RegProc, types.RegType,
		types.RegNamespace, types.RegRole, types.RegOper:
		return appendFunc(pgtext.Appender(t, a, plainStyle))
	case types.Float4:
		v := vec.ViewOf[float32](a).V
		return func(dst []byte, row int) []byte { return appendFloat(dst, float64(v[row]), 32) }
	case types.Float8:
		v := vec.ViewOf[float64](a).V
		return func(dst []byte, row int) []byte { return appendFloat(dst, v[row], 64) }
	case types.Numeric:
		if d, ok := a.(*array.Decimal128); ok {
			v, scale := d.Values(), int(d.DataType().(*arrow.Decimal128Type).Scale)
			return func(dst []byte, row int) []byte {
				return append(numeric.Append128(append(dst, '"'), v[row], scale), '"')
			}
		}
	case types.Text, types.Varchar, types.BpChar, types.Name, types.Char, types.Unknown:
		s := vec.ViewStr(a)
		return func(dst []byte, row int) []byte { return appendJSONString(dst, s.At(row)) }
	case types.JSON, types.JSONB:
		s := vec.ViewStr(a)
		return func(dst []byte, row int) []byte {
			if v := s.At(row); json.Valid(v) {
				return append(dst, v...)
			}
			return appendJSONString(dst, s.At(row))
		}
	case types.Bytea:
		s := vec.ViewStr(a)
		return func(dst []byte, row int) []byte {
			dst = append(dst, '"')
			for _, c := range s.At(row) {
				dst = append(dst, hexDigits[c>>4], hexDigits[c&15])
			}
			return append(dst, '"')
		}
	case types.Date:
		v := vec.ViewOf[int32](a).V
		return func(dst []byte, row int) []byte {
			switch v[row] {
			case math.MaxInt32:
				return append(dst, `"infinity"`...)
			case math.MinInt32:
				return append(dst, `"-infinity"`...)
			}
			return append(appendDay(append(dst, '"'), int64(v[row])), '"')
		}
	case types.Time:
		v := vec.ViewOf[int64](a).V
		return func(dst []byte, row int) []byte {
			return append(appendClock(append(dst, '"'), v[row]/1e6, v[row]%1e6*1000), '"')
		}
	case types.Timestamp, types.TimestampTZ:
		return timestampAppender(t, a)
	case types.Array, types.Int2Vector, types.OIDVector:
		return listAppender(t, a)
	case types.Map:
		return mapAppender(t, a)
	case types.Row, types.Record:
		return rowAppender(t, a)
	case types.Variant:
		return variantAppender(t, a)
	}
	// interval, uuid, timetz, plain numeric: their PostgreSQL text
	text := pgtext.Appender(t, a, plainStyle)
	var buf []byte
	return func(dst []byte, row int) []byte {
		buf = text(buf[:0], row)
		return appendJSONString(dst, buf)
	}
}

func appendFloat(dst []byte, f float64, bits int) []byte {
	switch {
	case math.IsNaN(f):
		return append(dst, `"NaN"`...)
	case math.IsInf(f, 1):
		return append(dst, `"Infinity"`...)
	case math.IsInf(f, -1):
		return append(dst, `"-Infinity"`...)
	}
	return strconv.AppendFloat(dst, f, 'g', -1, bits)
}

func timestampAppender(t types.Type, a arrow.Array) appendFunc {
	v := vec.ViewOf[int64](a).V
	perSecond, scale := int64(1e6), int64(1000)
	if dt, ok := a.DataType().(*arrow.TimestampType); ok && dt.Unit == arrow.Nanosecond {
		perSecond, scale = 1e9, 1
	}
	zone := ""
	if t.Kind == types.TimestampTZ {
		zone = "Z"
	}
	return func(dst []byte, row int) []byte {
		switch v[row] {
		case math.MaxInt64:
			return append(dst, `"infinity"`...)
		case math.MinInt64:
			return append(dst, `"-infinity"`...)
		}
		sec, frac := v[row]/perSecond, v[row]%perSecond
		if frac < 0 {
			sec, frac = sec-1, frac+perSecond
		}
		day, clock := sec/86400, sec%86400
		if clock < 0 {
			day, clock = day-1, clock+86400
		}
		dst = append(appendDay(append(dst, '"'), day), 'T')
		dst = appendClock(dst, clock, frac*scale)
		return append(append(dst, zone...), '"')
	}
}

// appendDay writes YYYY-MM-DD of a day since 1970.
func appendDay(dst []byte, day int64) []byte {
	y, m, d := pgtext.CivilFromDays(int(day))
	if y < 0 {
		dst, y = append(dst, '-'), -y
	}
	dst = appendPadded(dst, y, 4)
	dst = appendPadded(append(dst, '-'), m, 2)
	return appendPadded(append(dst, '-'), d, 2)
}

// appendClock writes HH:MM:SS and a fraction without trailing zeros.
func appendClock(dst []byte, sec, nanos int64) []byte {
	dst = appendPadded(dst, int(sec/3600), 2)
	dst = appendPadded(append(dst, ':'), int(sec/60%60), 2)
	dst = appendPadded(append(dst, ':'), int(sec%60), 2)
	if nanos == 0 {
		return dst
	}
	dst = appendPadded(append(dst, '.'), int(nanos), 9)
	for dst[len(dst)-1] == '0' {
		dst = dst[:len(dst)-1]
	}
	return dst
}

func appendPadded(dst []byte, n, w int) []byte {
	s := strconv.Itoa(n)
	for i := len(s); i < w; i++ {
		dst = append(dst, '0')
	}
	return append(dst, s...)
}

func listAppender(t types.Type, a arrow.Array) appendFunc {
	offs, child := vec.ListParts(a)
	elem := types.Of(types.Int2)
	switch {
	case t.Elem != nil:
		elem = *t.Elem
	case t.Kind == types.OIDVector:
		elem = types.Of(types.OID)
	}
	inner := jsonAppender(elem, child)
	return func(dst []byte, row int) []byte {
		dst = append(dst, '[')
		for i := int(offs[row]); i < int(offs[row+1]); i++ {
			if i > int(offs[row]) {
				dst = append(dst, ',')
			}
			dst = appendOrNull(dst, child, inner, i)
		}
		return append(dst, ']')
	}
}

func appendOrNull(dst []byte, a arrow.Array, f appendFunc, i int) []byte {
	if a.IsNull(i) {
		return append(dst, "null"...)
	}
	return f(dst, i)
}

func mapAppender(t types.Type, a arrow.Array) appendFunc {
	offs, child := vec.ListParts(a)
	st := child.(*array.Struct)
	keys, vals := st.Field(0), st.Field(1)
	kf, vf := jsonAppender(*t.Key, keys), jsonAppender(*t.Elem, vals)
	return func(dst []byte, row int) []byte {
		type pair struct {
			key string
			at  int
		}
		var list []pair
		for i := int(offs[row]); i < int(offs[row+1]); i++ {
			list = append(list, pair{string(appendOrNull(nil, keys, kf, i)), i})
		}
		sort.Slice(list, func(i, j int) bool { return list[i].key < list[j].key })
		dst = append(dst, '[')
		for i, p := range list {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(append(append(dst, '['), p.key...), ',')
			dst = append(appendOrNull(dst, vals, vf, p.at), ']')
		}
		return append(dst, ']')
	}
}

func rowAppender(t types.Type, a arrow.Array) appendFunc {
	st := a.(*array.Struct)
	fs := make([]appendFunc, len(t.Fields))
	for i := range t.Fields {
		fs[i] = jsonAppender(t.Fields[i].Type, st.Field(i))
	}
	return func(dst []byte, row int) []byte {
		dst = append(dst, '{')
		for i, f := range t.Fields {
			if i > 0 {
				dst = append(dst, ',')
			}
			dst = append(appendJSONString(dst, []byte(f.Name)), ':')
			dst = appendOrNull(dst, st.Field(i), fs[i], row)
		}
		return append(dst, '}')
	}
}

// variantAppender prints a variant as the JSON that it stands for.
func variantAppender(t types.Type, a arrow.Array) appendFunc {
	text := pgtext.Appender(t, a, plainStyle)
	return func(dst []byte, row int) []byte {
		v := text(nil, row)
		if json.Valid(v) {
			return append(dst, v...)
		}
		return appendJSONString(dst, v)
	}
}

// textBlock shows one row of a server's text values to a printer; JSON forms are
// guessed from the types' OIDs.
func textBlock(oids []uint32, row [][]byte) block {
	return block{
		n:    1,
		null: func(c, _ int) bool { return row[c] == nil },
		text: func(dst []byte, c, _ int) []byte { return append(dst, row[c]...) },
		json: func(dst []byte, c, _ int) []byte { return appendWireJSON(dst, oids[c], row[c]) },
	}
}

func appendWireJSON(dst []byte, oid uint32, v []byte) []byte {
	switch oid {
	case 16:
		return strconv.AppendBool(dst, string(v) == "t")
	case 20, 21, 23, 26:
		return append(dst, v...)
	case 700, 701:
		bits := 64
		if oid == 700 {
			bits = 32
		}
		if f, err := strconv.ParseFloat(string(v), bits); err == nil {
			return appendFloat(dst, f, bits)
		}
	case 114, 3802:
		if json.Valid(v) {
			return append(dst, v...)
		}
	case 17:
		if len(v) > 2 && v[0] == '\\' && v[1] == 'x' {
			v = v[2:]
		} else if string(v) == `\x` {
			v = nil
		}
	case 1114:
		return appendJSONString(dst, wireTimestamp(v, ""))
	case 1184:
		return appendJSONString(dst, wireInstant(v))
	default:
		if t, ok := types.ByOID(oid); ok && t.Kind == types.Array && t.Elem != nil {
			if d, err := pgtext.Parse(t, string(v), plainStyle); err == nil {
				return jsonAppender(t, vec.FromDatums(t, []types.Datum{d}))(dst, 0)
			}
		}
	}
	return appendJSONString(dst, v)
}

// wireTimestamp turns ISO text "d t" into "dTt" and cuts trailing zeros.
func wireTimestamp(v []byte, zone string) []byte {
	out := append([]byte(nil), v...)
	for i, c := range out {
		if c == ' ' {
			out[i] = 'T'
			break
		}
	}
	return append(out, zone...)
}

func wireInstant(v []byte) []byte {
	for _, layout := range []string{"2006-01-02 15:04:05.999999999Z07", "2006-01-02 15:04:05.999999999Z07:00"} {
		if t, err := time.Parse(layout, string(v)); err == nil {
			return []byte(t.UTC().Format("2006-01-02T15:04:05.999999999Z"))
		}
	}
	return v
}
