package schema

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// castFunc turns an array of one type into an array of another. A value that
// Paimon's cast refuses is an error; one that overflows a decimal is NULL.
type castFunc func(a arrow.Array) (arrow.Array, error)

// newCast returns the cast that Paimon applies to values written before a
// column's type was changed; nil when there is none to do. It follows Java's
// casts (wrap, truncate, saturate), not PostgreSQL's.
func newCast(from, to types.Type) (castFunc, error) {
	if sameValues(from, to) {
		return nil, nil
	}
	if f := fastCast(from, to); f != nil {
		return f, nil
	}
	one, err := datumCast(from, to)
	if err != nil {
		return nil, err
	}
	return func(a arrow.Array) (arrow.Array, error) {
		out := make([]types.Datum, a.Len())
		for i := range out {
			d := vec.DatumAt(a, from, i)
			if d == nil {
				continue
			}
			var err error
			if out[i], err = one(d); err != nil {
				return nil, err
			}
		}
		return vec.FromDatums(to, out), nil
	}, nil
}

// sameValues reports whether an array of from is an array of to as it stands.
func sameValues(from, to types.Type) bool {
	if from.Kind != to.Kind {
		// VARCHAR(n) to STRING changes the name only; CHAR keeps its blanks.
		return isText(from) && to.Kind == types.Text
	}
	switch from.Kind {
	case types.Numeric:
		return from.Prec == to.Prec && from.Scale == to.Scale
	case types.Timestamp, types.TimestampTZ:
		return from.Prec == to.Prec || from.Prec < to.Prec && from.IsNanos() == to.IsNanos()
	case types.Time:
		return from.Prec == to.Prec
	case types.Varchar:
		return from.Len <= to.Len
	case types.BpChar:
		return from.Len == to.Len
	case types.Bytea:
		return bytesLimit(to) == 0 || from.Lake == to.Lake && from.Len <= to.Len && to.Lake == types.LakeVarbinary || from.Lake == to.Lake && from.Len == to.Len
	case types.Array:
		return sameValues(*from.Elem, *to.Elem)
	case types.Map:
		return sameValues(*from.Key, *to.Key) && sameValues(*from.Elem, *to.Elem)
	case types.Row:
		if len(from.Fields) != len(to.Fields) {
			return false
		}
		for i := range from.Fields {
			if from.Fields[i].ID != to.Fields[i].ID || from.Fields[i].Name != to.Fields[i].Name || !sameValues(from.Fields[i].Type, to.Fields[i].Type) {
				return false
			}
		}
	}
	return true
}

func isText(t types.Type) bool {
	return t.Kind == types.Text || t.Kind == types.Varchar || t.Kind == types.BpChar
}

func bytesLimit(t types.Type) int32 {
	if t.Lake == types.LakeBinary || t.Lake == types.LakeVarbinary {
		return t.Len
	}
	return 0
}

// fastCast covers what real tables do often, column at a time.
func fastCast(from, to types.Type) castFunc {
	switch {
	case from.IsInteger() && to.IsInteger():
		return intCast(from.Kind, to.Kind)
	case from.IsInteger() && to.Kind == types.Float8:
		switch from.Kind {
		case types.TinyInt, types.Int2:
			return mapFixed(to, func(v int16) float64 { return float64(v) })
		case types.Int4:
			return mapFixed(to, func(v int32) float64 { return float64(v) })
		}
		return mapFixed(to, func(v int64) float64 { return float64(v) })
	case from.Kind == types.Float4 && to.Kind == types.Float8:
		return mapFixed(to, func(v float32) float64 { return float64(v) })
	case from.Kind == types.Float8 && to.Kind == types.Float4:
		return mapFixed(to, func(v float64) float32 { return float32(v) })
	case isTimestamp(from) && isTimestamp(to) && from.IsNanos() == to.IsNanos():
		unit := int64(1)
		digits := 6
		if to.IsNanos() {
			digits = 9
		}
		for range digits - int(to.Prec) {
			unit *= 10
		}
		return mapFixed(to, func(v int64) int64 { return v - mod(v, unit) })
	}
	return nil
}

func isTimestamp(t types.Type) bool { return t.Kind == types.Timestamp || t.Kind == types.TimestampTZ }

func mod(v, m int64) int64 {
	r := v % m
	if r < 0 {
		r += m
	}
	return r
}

func intCast(from, to types.Kind) castFunc {
	t := types.Of(to)
	wide := func(a arrow.Array) []int64 {
		out := make([]int64, a.Len())
		switch from {
		case types.TinyInt, types.Int2:
			for i, v := range vec.ViewOf[int16](a).V {
				out[i] = int64(v)
			}
		case types.Int4:
			for i, v := range vec.ViewOf[int32](a).V {
				out[i] = int64(v)
			}
		default:
			copy(out, vec.ViewOf[int64](a).V)
		}
		return out
	}
	return func(a arrow.Array) (arrow.Array, error) {
		w, valid := wide(a), validity(a)
		switch to {
		case types.TinyInt:
			out := make([]int16, len(w))
			for i, v := range w {
				out[i] = int16(int8(v))
			}
			return vec.Make(t.Arrow(), out, valid), nil
		case types.Int2:
			out := make([]int16, len(w))
			for i, v := range w {
				out[i] = int16(v)
			}
			return vec.Make(t.Arrow(), out, valid), nil
		case types.Int4:
			out := make([]int32, len(w))
			for i, v := range w {
				out[i] = int32(v)
			}
			return vec.Make(t.Arrow(), out, valid), nil
		}
		return vec.Make(t.Arrow(), w, valid), nil
	}
}

// validity returns a copy of a's null bitmap from row 0 on, nil without NULLs.
func validity(a arrow.Array) []byte {
	v, off := vec.Validity(a)
	return vec.CopyBits(v, off, a.Len())
}

func mapFixed[A, B vec.Fixed](to types.Type, f func(A) B) castFunc {
	return func(a arrow.Array) (arrow.Array, error) {
		in := vec.ViewOf[A](a).V
		out := make([]B, a.Len())
		for i, v := range in {
			out[i] = f(v)
		}
		return vec.Make(to.Arrow(), out, validity(a)), nil
	}
}

// datumCast casts one value that is not NULL; nil results are NULL.
func datumCast(from, to types.Type) (func(types.Datum) (types.Datum, error), error) {
	bad := fmt.Errorf("values of type %s cannot be read as %s", types.PaimonString(from), types.PaimonString(to))
	switch {
	case isText(to):
		return func(d types.Datum) (types.Datum, error) {
			s, err := ToText(from, d)
			return fitText(to, s), err
		}, nil
	case to.Kind == types.Bytea:
		switch {
		case isText(from):
			return func(d types.Datum) (types.Datum, error) { return fitBytes(to, []byte(d.(string))), nil }, nil
		case from.Kind == types.Bytea:
			return func(d types.Datum) (types.Datum, error) { return fitBytes(to, d.([]byte)), nil }, nil
		}
	case isText(from):
		return textCast(to, bad)
	case to.Kind == types.Bool && from.IsInteger():
		return func(d types.Datum) (types.Datum, error) { return d.(int64) != 0, nil }, nil
	case to.Kind == types.Numeric:
		return func(d types.Datum) (types.Datum, error) {
			x, err := toDecimal(from, d)
			if err != nil {
				return nil, bad
			}
			return fitDecimal(to, x), nil
		}, numberOr(from, bad)
	case to.IsInteger():
		return func(d types.Datum) (types.Datum, error) { return toInteger(from, to, d) }, integerOr(from, to, bad)
	case to.Kind == types.Float4 || to.Kind == types.Float8:
		return func(d types.Datum) (types.Datum, error) { return toFloat(to, d), nil }, numberOr(from, bad)
	case to.Kind == types.Date && isTimestamp(from):
		return func(d types.Datum) (types.Datum, error) {
			return floorDiv(micros(from, d.(int64)), 86_400_000_000), nil
		}, nil
	case to.Kind == types.Time && isTimestamp(from):
		return func(d types.Datum) (types.Datum, error) {
			return mod(micros(from, d.(int64)), 86_400_000_000) / 1000 * 1000, nil
		}, nil
	case to.Kind == types.Time && from.Kind == types.Time:
		return func(d types.Datum) (types.Datum, error) { return truncTime(to, d.(int64)), nil }, nil
	case isTimestamp(to):
		return timestampCast(from, to, bad)
	case to.Kind == types.Array && from.Kind == types.Array, to.Kind == types.Map && from.Kind == types.Map, to.Kind == types.Row && from.Kind == types.Row:
		return nestedCast(from, to)
	}
	return nil, bad
}

func numberOr(from types.Type, bad error) error {
	if from.IsNumber() || from.Kind == types.Bool {
		return nil
	}
	return bad
}

func integerOr(from, to types.Type, bad error) error {
	if isTimestamp(from) && (to.Kind == types.Int4 || to.Kind == types.Int8) {
		return nil
	}
	return numberOr(from, bad)
}

func micros(t types.Type, v int64) int64 {
	if t.IsNanos() {
		return floorDiv(v, 1000)
	}
	return v
}

func floorDiv(v, m int64) int64 { return (v - mod(v, m)) / m }

func truncTime(to types.Type, us int64) int64 {
	unit := int64(1_000_000)
	for range min(int(to.Prec), 6) {
		unit /= 10
	}
	return us - mod(us, unit)
}

func timestampCast(from, to types.Type, bad error) (func(types.Datum) (types.Datum, error), error) {
	scale := int64(1)
	if to.IsNanos() {
		scale = 1000
	}
	up := func(us int64) (types.Datum, error) {
		if v := us * scale; v/scale == us {
			return v, nil
		}
		return nil, fmt.Errorf("timestamp is out of the range of %s", to)
	}
	switch {
	case isTimestamp(from) && from.IsNanos():
		unit := int64(1)
		for range 6 - int(to.Prec) {
			unit *= 10
		}
		return func(d types.Datum) (types.Datum, error) {
			us := floorDiv(d.(int64), 1000)
			return us - mod(us, unit), nil
		}, nil
	case isTimestamp(from):
		return func(d types.Datum) (types.Datum, error) { return up(d.(int64)) }, nil
	case from.Kind == types.Date:
		return func(d types.Datum) (types.Datum, error) {
			v := d.(int64)
			if v > math.MaxInt64/86_400_000_000 || v < math.MinInt64/86_400_000_000 {
				return nil, fmt.Errorf("date is out of the range of %s", to)
			}
			return up(v * 86_400_000_000)
		}, nil
	case from.Kind == types.Time:
		return func(d types.Datum) (types.Datum, error) { return up(d.(int64)) }, nil
	case from.IsInteger(): // seconds
		return func(d types.Datum) (types.Datum, error) {
			v := d.(int64)
			if v > math.MaxInt64/1_000_000 || v < math.MinInt64/1_000_000 {
				return nil, fmt.Errorf("timestamp is out of the range of %s", to)
			}
			return up(v * 1_000_000)
		}, nil
	}
	return nil, bad
}

func nestedCast(from, to types.Type) (func(types.Datum) (types.Datum, error), error) {
	child := func(f, t types.Type) (func(types.Datum) (types.Datum, error), error) {
		if sameValues(f, t) {
			return func(d types.Datum) (types.Datum, error) { return d, nil }, nil
		}
		c, err := datumCast(f, t)
		if err != nil && f.IsInteger() && t.IsInteger() {
			return func(d types.Datum) (types.Datum, error) { return toInteger(f, t, d) }, nil
		}
		return c, err
	}
	switch to.Kind {
	case types.Array:
		c, err := child(*from.Elem, *to.Elem)
		if err != nil {
			return nil, err
		}
		return func(d types.Datum) (types.Datum, error) {
			in := d.([]types.Datum)
			out := make([]types.Datum, len(in))
			for i, v := range in {
				if v == nil {
					continue
				}
				var err error
				if out[i], err = c(v); err != nil {
					return nil, err
				}
			}
			return out, nil
		}, nil
	case types.Map:
		kc, err := child(*from.Key, *to.Key)
		if err != nil {
			return nil, err
		}
		vc, err := child(*from.Elem, *to.Elem)
		if err != nil {
			return nil, err
		}
		return func(d types.Datum) (types.Datum, error) {
			in := d.([]types.KV)
			out := make([]types.KV, len(in))
			for i, kv := range in {
				var err error
				if kv.K != nil {
					if out[i].K, err = kc(kv.K); err != nil {
						return nil, err
					}
				}
				if kv.V != nil {
					if out[i].V, err = vc(kv.V); err != nil {
						return nil, err
					}
				}
			}
			return out, nil
		}, nil
	}
	return rowCast(from, to, child)
}

func rowCast(from, to types.Type, child func(f, t types.Type) (func(types.Datum) (types.Datum, error), error)) (func(types.Datum) (types.Datum, error), error) {
	src := make([]int, len(to.Fields))
	casts := make([]func(types.Datum) (types.Datum, error), len(to.Fields))
	for i, f := range to.Fields {
		src[i] = -1
		for j, g := range from.Fields {
			if g.ID == f.ID {
				c, err := child(g.Type, f.Type)
				if err != nil {
					return nil, err
				}
				src[i], casts[i] = j, c
			}
		}
	}
	return func(d types.Datum) (types.Datum, error) {
		in := d.([]types.Datum)
		out := make([]types.Datum, len(src))
		for i, j := range src {
			if j < 0 || in[j] == nil {
				continue
			}
			var err error
			if out[i], err = casts[i](in[j]); err != nil {
				return nil, err
			}
		}
		return out, nil
	}, nil
}

// fitText cuts s to a VARCHAR's length in characters, and pads a CHAR to it.
func fitText(to types.Type, s string) string {
	if to.Kind == types.Text || to.Len <= 0 {
		return s
	}
	n := utf8.RuneCountInString(s)
	switch limit := int(to.Len); {
	case n > limit:
		for i := range s {
			if limit == 0 {
				return s[:i]
			}
			limit--
		}
	case to.Kind == types.BpChar && n < limit:
		return s + strings.Repeat(" ", limit-n)
	}
	return s
}

func fitBytes(to types.Type, b []byte) []byte {
	n := int(bytesLimit(to))
	switch {
	case n == 0:
	case len(b) > n:
		return b[:n]
	case to.Lake == types.LakeBinary && len(b) < n:
		return append(append(make([]byte, 0, n), b...), make([]byte, n-len(b))...)
	}
	return b
}

func toDecimal(from types.Type, d types.Datum) (*numeric.Dec, error) {
	switch v := d.(type) {
	case int64:
		return numeric.FromInt64(v), nil
	case bool:
		if v {
			return numeric.FromInt64(1), nil
		}
		return numeric.FromInt64(0), nil
	case *numeric.Dec:
		return v, nil
	case float64:
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return nil, fmt.Errorf("not a number")
		}
		if from.Kind == types.Float4 {
			v = float64(float32(v))
		}
		return parseDecimal(strconv.FormatFloat(v, 'e', -1, 64))
	}
	return nil, fmt.Errorf("not a number")
}

// parseDecimal reads digits with an optional fraction and exponent.
func parseDecimal(s string) (*numeric.Dec, error) {
	mant, exp := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		var err error
		if exp, err = strconv.Atoi(s[i+1:]); err != nil || exp > 1000 || exp < -1000 {
			return nil, fmt.Errorf("number %q", s)
		}
		mant = s[:i]
	}
	whole, frac, _ := strings.Cut(mant, ".")
	if len(whole)+len(frac) > 1000 || strings.ContainsAny(frac, "+-_") || strings.Contains(whole, "_") {
		return nil, fmt.Errorf("number %q", s)
	}
	d := &numeric.Dec{Scale: int32(len(frac) - exp)}
	if _, ok := d.Coef.SetString(whole+frac, 10); !ok {
		return nil, fmt.Errorf("number %q", s)
	}
	if d.Scale < 0 {
		d.Coef.Mul(&d.Coef, numeric.Pow10(-d.Scale))
		d.Scale = 0
	}
	return d, nil
}

// fitDecimal rounds half up to the scale; what exceeds the precision is NULL.
func fitDecimal(to types.Type, d *numeric.Dec) types.Datum {
	out := &numeric.Dec{Scale: int32(to.Scale)}
	if d.Scale <= out.Scale {
		out.Coef.Mul(&d.Coef, numeric.Pow10(out.Scale-d.Scale))
	} else {
		div := numeric.Pow10(d.Scale - out.Scale)
		var r big.Int
		out.Coef.QuoRem(&d.Coef, div, &r)
		if r.Abs(&r).Lsh(&r, 1).Cmp(div) >= 0 {
			out.Coef.Add(&out.Coef, big.NewInt(int64(d.Coef.Sign())))
		}
	}
	if new(big.Int).Abs(&out.Coef).Cmp(numeric.Pow10(int32(to.Prec))) >= 0 {
		return nil
	}
	return out
}

func wrap(to types.Type, v int64) int64 {
	switch to.Kind {
	case types.TinyInt:
		return int64(int8(v))
	case types.Int2:
		return int64(int16(v))
	case types.Int4:
		return int64(int32(v))
	}
	return v
}

func toInteger(from, to types.Type, d types.Datum) (types.Datum, error) {
	switch v := d.(type) {
	case bool:
		if v {
			return int64(1), nil
		}
		return int64(0), nil
	case int64:
		if isTimestamp(from) { // seconds, towards zero
			v = micros(from, v)
			return wrap(to, floorDiv(v, 1000)/1000), nil
		}
		return wrap(to, v), nil
	case float64:
		// Java: to int or long with saturation, narrower ones through int.
		if to.Kind == types.Int8 {
			return saturate(v, math.MinInt64, math.MaxInt64), nil
		}
		return wrap(to, saturate(v, math.MinInt32, math.MaxInt32)), nil
	case *numeric.Dec:
		q := new(big.Int).Quo(&v.Coef, numeric.Pow10(v.Scale))
		low := new(big.Int).And(q, new(big.Int).SetUint64(math.MaxUint64))
		return wrap(to, int64(low.Uint64())), nil
	}
	return nil, fmt.Errorf("value of type %T is not a number", d)
}

func saturate(f float64, lo, hi int64) int64 {
	switch {
	case math.IsNaN(f):
		return 0
	case f >= float64(hi):
		return hi
	case f <= float64(lo):
		return lo
	}
	return int64(f)
}

func toFloat(to types.Type, d types.Datum) types.Datum {
	var f float64
	switch v := d.(type) {
	case bool:
		if v {
			f = 1
		}
	case int64:
		if to.Kind == types.Float4 {
			return float64(float32(v))
		}
		f = float64(v)
	case float64:
		f = v
	case *numeric.Dec:
		f, _ = strconv.ParseFloat(DecimalText(v), 64) // digits always parse
	}
	if to.Kind == types.Float4 {
		f = float64(float32(f))
	}
	return f
}

// textCast parses strings as Paimon does.
func textCast(to types.Type, bad error) (func(types.Datum) (types.Datum, error), error) {
	fail := func(s string) error { return fmt.Errorf("%q cannot be read as %s", s, types.PaimonString(to)) }
	switch {
	case to.Kind == types.Bool:
		return func(d types.Datum) (types.Datum, error) {
			switch strings.ToLower(d.(string)) {
			case "t", "true", "y", "yes", "1":
				return true, nil
			case "f", "false", "n", "no", "0":
				return false, nil
			}
			return nil, fail(d.(string))
		}, nil
	case to.IsInteger():
		return func(d types.Datum) (types.Datum, error) {
			whole, frac, dot := strings.Cut(d.(string), ".")
			v, err := strconv.ParseInt(whole, 10, 64)
			if err != nil || wrap(to, v) != v || dot && strings.Trim(frac, "0123456789") != "" {
				return nil, fail(d.(string))
			}
			return v, nil
		}, nil
	case to.Kind == types.Float4 || to.Kind == types.Float8:
		return func(d types.Datum) (types.Datum, error) {
			f, err := strconv.ParseFloat(strings.TrimSpace(d.(string)), 64)
			if err != nil && !math.IsInf(f, 0) {
				return nil, fail(d.(string))
			}
			return toFloat(to, f), nil
		}, nil
	case to.Kind == types.Numeric:
		return func(d types.Datum) (types.Datum, error) {
			x, err := parseDecimal(strings.TrimSpace(d.(string)))
			if err != nil {
				return nil, fail(d.(string))
			}
			return fitDecimal(to, x), nil
		}, nil
	case to.Kind == types.Date:
		return func(d types.Datum) (types.Datum, error) {
			v, ok := javaDate(d.(string))
			if !ok {
				return nil, fail(d.(string))
			}
			return v, nil
		}, nil
	case to.Kind == types.Time:
		return func(d types.Datum) (types.Datum, error) {
			ms, ok := javaTime(d.(string))
			if !ok {
				return nil, fail(d.(string))
			}
			return truncTime(to, ms*1000), nil
		}, nil
	case isTimestamp(to):
		return func(d types.Datum) (types.Datum, error) {
			if s := d.(string); to.Kind == types.Timestamp && digitsOnly(s) {
				if v, ok := epochOf(to, s); ok {
					return v, nil
				}
				return nil, fail(s)
			}
			t, ok := parseTime(d.(string), "2006-1-2 15:4:5", "2006-1-2")
			if !ok {
				return nil, fail(d.(string))
			}
			if to.IsNanos() {
				if t.Year() < 1678 || t.Year() > 2261 {
					return nil, fail(d.(string))
				}
				unit := int64(1)
				for range 9 - int(to.Prec) {
					unit *= 10
				}
				v := t.UnixNano()
				return v - mod(v, unit), nil
			}
			unit := int64(1)
			for range 6 - int(to.Prec) {
				unit *= 10
			}
			v := t.UnixMicro()
			return v - mod(v, unit), nil
		}, nil
	}
	return nil, bad
}

func parseTime(s string, layouts ...string) (time.Time, bool) {
	for _, l := range layouts {
		if t, err := time.Parse(l, s); err == nil { // a fraction behind seconds is taken too
			return t, true
		}
	}
	return time.Time{}, false
}
