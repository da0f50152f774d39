package index

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// The values that Java puts into file indexes are not always those of our
// arrays: it counts TIME in milliseconds, timestamps of up to three digits in
// milliseconds and all others in microseconds. Where that is coarser than SQL's
// value, several values share one key of the index.

// Unit returns how many units of a column's values make one of the keys of an
// index over it: a value x has the key FloorDiv(x, Unit). 1 = they are the same.
func Unit(t types.Type) int64 {
	switch t.Kind {
	case types.Time: // us -> ms
		return 1000
	case types.Timestamp, types.TimestampTZ:
		if t.Prec <= 3 || t.Prec > 6 { // us -> ms, ns -> us
			return 1000
		}
	}
	return 1
}

// FloorDiv divides and rounds down; b is positive.
func FloorDiv(a, b int64) int64 {
	q := a / b
	if a%b < 0 {
		q--
	}
	return q
}

// Accepts reports whether an index over a column of type t, the file's, can judge
// a leaf: its type must give every value of the file the meaning that it had when
// it was indexed.
func Accepts(t types.Type, l *predicate.Leaf) bool {
	u := l.Type
	switch t.Kind {
	case types.TinyInt, types.Int2, types.Int4, types.Int8:
		switch u.Kind {
		case types.TinyInt, types.Int2, types.Int4, types.Int8:
			return intBytes(t.Kind) <= intBytes(u.Kind)
		}
		return false
	case types.Text, types.Varchar:
		switch u.Kind {
		case types.Text:
			return true
		case types.Varchar:
			return t.Kind == types.Varchar && t.Len <= u.Len
		}
		return false
	case types.BpChar:
		return u.Kind == t.Kind && u.Len == t.Len
	case types.Time, types.Timestamp, types.TimestampTZ:
		return u.Kind == t.Kind && u.Prec == t.Prec
	case types.Bytea:
		return u.Kind == t.Kind && u.Lake == t.Lake && u.Len == t.Len
	case types.Numeric:
		return u.Kind == t.Kind && u.Prec >= t.Prec && u.Scale == t.Scale
	}
	return u.Kind == t.Kind
}

func intBytes(k types.Kind) int {
	switch k {
	case types.TinyInt:
		return 1
	case types.Int2:
		return 2
	case types.Int4:
		return 4
	}
	return 8
}

// Canonical NaNs, as Java's floatToIntBits and doubleToLongBits make them.
const (
	nan32 = 0x7fc00000
	nan64 = 0x7ff8000000000000
)

// FloatKey returns the key of a FLOAT: its bits, sign-extended, any NaN alike.
func FloatKey(f float32) int64 {
	if f != f {
		return nan32
	}
	return int64(int32(math.Float32bits(f)))
}

// DoubleKey returns the key of a DOUBLE: its bits, any NaN alike.
func DoubleKey(f float64) int64 {
	if f != f {
		return nan64
	}
	return int64(math.Float64bits(f))
}

// Keys returns the keys of an array of a type of fixed length (not Numeric):
// false and true are 0 and 1, floats their bits (FloatKey, DoubleKey), other
// values themselves in the index's unit. The result is in buf
// if it is large enough; what stands at NULLs has no meaning.
func Keys(a arrow.Array, t types.Type, buf []int64) ([]int64, error) {
	n := a.Len()
	if cap(buf) < n {
		buf = make([]int64, n)
	}
	buf = buf[:n]
	unit := Unit(t)
	switch a := a.(type) {
	case *array.Int64:
		copy(buf, a.Int64Values())
	case *array.Int32:
		for i, v := range a.Int32Values() {
			buf[i] = int64(v)
		}
	case *array.Int16:
		for i, v := range a.Int16Values() {
			buf[i] = int64(v)
		}
	case *array.Date32:
		for i, v := range a.Date32Values() {
			buf[i] = int64(v)
		}
	case *array.Boolean:
		for i := range buf {
			buf[i] = 0
			if a.Value(i) {
				buf[i] = 1
			}
		}
	case *array.Float32:
		for i, v := range a.Float32Values() {
			buf[i] = FloatKey(v)
		}
	case *array.Float64:
		for i, v := range a.Float64Values() {
			buf[i] = DoubleKey(v)
		}
	case *array.Timestamp:
		vs := a.TimestampValues()
		if unit == 1 {
			for i, v := range vs {
				buf[i] = int64(v)
			}
			break
		}
		for i, v := range vs {
			buf[i] = FloorDiv(int64(v), 1000)
		}
	case *array.Time64:
		for i, v := range a.Time64Values() {
			buf[i] = FloorDiv(int64(v), 1000)
		}
	default:
		return nil, fmt.Errorf("file index: array of %s over a column of %s", a.DataType(), t.PlainName())
	}
	return buf, nil
}

// LeafKey returns the key of a constant of a type of fixed length (not Numeric).
// exact: values have this key only if SQL takes them as equal to the constant. ok
// is false when nothing is known. Zero is the positive one; the negative one has
// NegativeZero for a key.
func LeafKey(t types.Type, d types.Datum) (key int64, exact, ok bool) {
	switch v := d.(type) {
	case bool:
		if t.Kind != types.Bool {
			return 0, false, false
		}
		if v {
			key = 1
		}
		return key, true, true
	case float64:
		if v == 0 {
			v = 0 // not -0
		}
		switch t.Kind {
		case types.Float4:
			if f := float32(v); float64(f) == v || v != v {
				return FloatKey(f), true, true
			}
		case types.Float8:
			return DoubleKey(v), true, true
		}
	case int64:
		switch t.Kind {
		case types.TinyInt, types.Int2, types.Int4, types.Int8, types.Date:
			return v, true, true
		case types.Time:
			return FloorDiv(v, 1000), v%1000 == 0 && t.Prec <= 3, true
		case types.Timestamp, types.TimestampTZ:
			// Infinity is at the ends, where a conversion of units may have put
			// what did not fit.
			if v == math.MaxInt64 || v == math.MinInt64 {
				return 0, false, false
			}
			if Unit(t) == 1 {
				return v, true, true
			}
			return FloorDiv(v, 1000), t.Prec <= 3 && v%1000 == 0, true
		}
	}
	return 0, false, false
}

// NegativeZero returns the key of -0, which is not that of 0 though SQL takes them
// as equal; false for types that have none.
func NegativeZero(t types.Type) (int64, bool) {
	switch t.Kind {
	case types.Float4:
		return math.MinInt32, true
	case types.Float8:
		return math.MinInt64, true
	}
	return 0, false
}

// maxForms bounds the forms of one CHAR value.
const maxForms = 256

// CharForms returns the forms in which a CHAR(n) column may hold a value: without
// trailing blanks, padded to n characters, and, as Java writes what it is given,
// everything between. false = too many.
func CharForms(t types.Type, v string) ([]string, bool) {
	bare := strings.TrimRight(v, " ")
	blanks := max(int(t.Len)-utf8.RuneCountInString(bare), len(v)-len(bare), 0)
	if t.Len == 0 || blanks >= maxForms {
		return nil, false
	}
	padded := bare + strings.Repeat(" ", blanks)
	out := make([]string, 0, blanks+1)
	for n := len(bare); n <= len(padded); n++ {
		out = append(out, padded[:n])
	}
	return out, true
}
