package bitslice

import (
	"fmt"
	"math"
	"math/big"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Codec maps the values of a type to integers in the same order, as Paimon's
// indexes do:
//
//	BOOLEAN                        0, 1
//	TINYINT .. BIGINT, DATE        the value
//	TIME, TIMESTAMP(_LTZ) p <= 3   milliseconds
//	TIMESTAMP(_LTZ) p > 3          microseconds, cut when p > 6
//	DECIMAL                        the unscaled value
//	FLOAT, DOUBLE                  the bits, turned round below 0; one NaN, on top; -0 is one below 0
type Codec struct {
	t     types.Type
	unit  int64 // units of the array in one of the integers
	cut   bool  // the file's values are finer than the integers
	float bool
}

// CodecOf returns the codec of a type; false when it has none.
func CodecOf(t types.Type) (*Codec, bool) {
	c := &Codec{t: t, unit: 1}
	switch t.Kind {
	case types.Bool, types.TinyInt, types.Int2, types.Int4, types.Int8, types.Date:
	case types.Time:
		c.unit = 1000
	case types.Timestamp, types.TimestampTZ:
		if t.Prec <= 3 {
			c.unit = 1000
		} else if t.Prec > 6 {
			c.unit, c.cut = 1000, true
		}
	case types.Numeric:
		if t.Prec == 0 {
			return nil, false
		}
	case types.Float4, types.Float8:
		c.float = true
	default:
		return nil, false
	}
	return c, true
}

// Encode writes the integers of a[from:from+len(dst)] to dst; what it writes for
// NULL means nothing. An error is a value that has none, or another array than
// the type's.
func (c *Codec) Encode(dst []int64, a arrow.Array, from int) error {
	to := from + len(dst)
	switch a := a.(type) {
	case *array.Boolean:
		for i := range dst {
			dst[i] = 0
			if a.Value(from + i) {
				dst[i] = 1
			}
		}
	case *array.Int16:
		widen(dst, a.Int16Values()[from:to])
	case *array.Int32:
		widen(dst, a.Int32Values()[from:to])
	case *array.Date32:
		widen(dst, a.Date32Values()[from:to])
	case *array.Int64:
		copy(dst, a.Int64Values()[from:to])
	case *array.Time64:
		scale(dst, a.Time64Values()[from:to], c.unit)
	case *array.Timestamp:
		scale(dst, a.TimestampValues()[from:to], c.unit)
	case *array.Float32:
		for i, v := range a.Float32Values()[from:to] {
			dst[i] = Order32(v)
		}
	case *array.Float64:
		for i, v := range a.Float64Values()[from:to] {
			dst[i] = Order64(v)
		}
	case *array.Decimal128:
		for i, v := range a.Values()[from:to] {
			dst[i] = int64(v.LowBits())
			if v.HighBits() != dst[i]>>63 && a.IsValid(from+i) {
				return fmt.Errorf("%w: %s of a DECIMAL, whose unscaled value has more than 64 bits", index.ErrCannotHold, v.ToString(int32(c.t.Scale)))
			}
		}
	default:
		return fmt.Errorf("index of %v cannot take an array of %s", c.t, a.DataType())
	}
	return nil
}

func widen[T ~int16 | ~int32](dst []int64, v []T) {
	for i, x := range v {
		dst[i] = int64(x)
	}
}

func scale[T ~int64](dst []int64, v []T, unit int64) {
	if unit == 1 {
		for i, x := range v {
			dst[i] = int64(x)
		}
		return
	}
	for i, x := range v {
		dst[i] = floorDiv(int64(x), unit)
	}
}

func floorDiv(x, d int64) int64 {
	q := x / d
	if x%d < 0 {
		q--
	}
	return q
}

// NaN32 and NaN64 are the integers of NaN.
const (
	NaN32 = 0x7fc00000
	NaN64 = 0x7ff8000000000000
)

// Order64 is the integer of a double.
func Order64(f float64) int64 {
	if f != f {
		return NaN64
	}
	b := int64(math.Float64bits(f))
	return b ^ b>>63&math.MaxInt64
}

// Order32 is the integer of a float.
func Order32(f float32) int64 {
	if f != f {
		return NaN32
	}
	b := int32(math.Float32bits(f))
	return int64(b ^ b>>31&math.MaxInt32)
}

// Range is a closed interval of integers.
type Range struct{ Lo, Hi int64 }

// Selection is a leaf in terms of a codec's integers.
type Selection struct {
	// Ranges are not ordered and may overlap. A row may match if its integer is in
	// one of them; with Not, if it is in none.
	Ranges []Range
	Not    bool
	// Exact: it does match.
	Exact bool
}

// Select translates a leaf other than IS [NOT] NULL; false: it cannot be judged.
func (c *Codec) Select(l *predicate.Leaf) (Selection, bool) {
	s := Selection{Exact: true}
	if !l.Type.SameKind(c.t) || l.Type.IsNanos() != c.t.IsNanos() {
		return s, false
	}
	need := 1
	switch l.Op {
	case predicate.NotEq, predicate.NotIn:
		s.Not = true
	case predicate.Between:
		need = 2
	case predicate.Eq, predicate.In, predicate.Lt, predicate.LtEq, predicate.Gt, predicate.GtEq:
	default:
		return s, false
	}
	if len(l.Args) < need && l.Op != predicate.In && l.Op != predicate.NotIn {
		return s, false
	}
	ps := make([]point, len(l.Args))
	for i, a := range l.Args {
		p, ok := c.point(a)
		if !ok {
			return s, false
		}
		ps[i] = p
	}
	switch l.Op {
	case predicate.Eq, predicate.NotEq:
		ps = ps[:1]
		fallthrough
	case predicate.In, predicate.NotIn:
		if c.cut {
			if s.Exact = false; s.Not {
				return s, true // a whole microsecond may not be left out
			}
		}
		for _, p := range ps {
			if p.first <= p.last && !p.above && !p.below {
				s.Ranges = append(s.Ranges, Range{p.first, p.last})
			}
		}
		return s, true
	case predicate.Between:
		lo, ok1, exact1 := ps[0].from(false)
		hi, ok2, exact2 := ps[1].to(false)
		s.add(lo, hi, ok1 && ok2, exact1 && exact2)
	case predicate.Lt, predicate.LtEq:
		hi, ok, exact := ps[0].to(l.Op == predicate.Lt)
		s.add(math.MinInt64, hi, ok, exact)
	default:
		lo, ok, exact := ps[0].from(l.Op == predicate.Gt)
		s.add(lo, math.MaxInt64, ok, exact)
	}
	return s, true
}

func (s *Selection) add(lo, hi int64, ok, exact bool) {
	if ok && lo <= hi {
		s.Ranges = append(s.Ranges, Range{lo, hi})
		s.Exact = exact
	}
}

// point is where a constant stands among the integers: first is the first of
// them not below it, last the last not above it. When no integer equals it, first
// is last+1.
type point struct {
	first, last int64
	above       bool // no integer is at or above it: first is void
	below       bool // no integer is at or below it: last is void
	// Of values that were cut: how far the constant stands into its integer, which
	// is both first and last.
	rest, unit int64
}

// from returns the integers at or above the point, or strictly above, as a lower
// bound; ok is false when there are none.
func (p point) from(strict bool) (lo int64, ok, exact bool) {
	switch {
	case p.unit > 0 && strict:
		if p.rest == p.unit-1 {
			return p.last + 1, p.last != math.MaxInt64, true
		}
		return p.first, true, false
	case p.unit > 0:
		return p.first, true, p.rest == 0
	case p.above:
		return 0, false, true
	case p.below:
		return math.MinInt64, true, true
	case strict:
		return p.last + 1, p.last != math.MaxInt64, true
	}
	return p.first, true, true
}

// to is from for the integers at or below the point.
func (p point) to(strict bool) (hi int64, ok, exact bool) {
	switch {
	case p.unit > 0 && strict:
		if p.rest == 0 {
			return p.first - 1, p.first != math.MinInt64, true
		}
		return p.last, true, false
	case p.unit > 0:
		return p.last, true, p.rest == p.unit-1
	case p.below:
		return 0, false, true
	case p.above:
		return math.MaxInt64, true, true
	case strict:
		return p.first - 1, p.first != math.MinInt64, true
	}
	return p.last, true, true
}

func at(v int64) point { return point{first: v, last: v} }

func (c *Codec) point(d types.Datum) (point, bool) {
	switch c.t.Kind {
	case types.Bool:
		b, ok := d.(bool)
		if b {
			return at(1), ok
		}
		return at(0), ok
	case types.Float4, types.Float8:
		f, ok := d.(float64)
		return c.floatPoint(f), ok
	case types.Numeric:
		n, ok := d.(*numeric.Dec)
		if !ok || n == nil {
			return point{}, false
		}
		return decPoint(n, int32(c.t.Scale)), true
	}
	v, ok := d.(int64)
	if c.unit == 1 {
		return at(v), ok
	}
	q := floorDiv(v, c.unit)
	p := at(q)
	if rest := v - q*c.unit; c.cut {
		p.rest, p.unit = rest, c.unit
	} else if rest != 0 {
		p.first++
	}
	return p, ok
}

func (c *Codec) floatPoint(f float64) point {
	if c.t.Kind == types.Float8 {
		if f == 0 {
			return point{first: -1, last: 0}
		}
		return at(Order64(f))
	}
	g := float32(f)
	switch v := Order32(g); {
	case f != f:
		return at(v)
	case f == 0:
		return point{first: -1, last: 0}
	case float64(g) < f:
		return point{first: v + 1, last: v}
	case float64(g) > f:
		return point{first: v, last: v - 1}
	default:
		return at(v)
	}
}

func decPoint(n *numeric.Dec, scale int32) point {
	switch n.Form {
	case numeric.NegInf:
		return point{first: math.MinInt64, below: true}
	case numeric.Finite:
	default:
		return point{last: math.MaxInt64, above: true}
	}
	q, rest := new(big.Int), new(big.Int)
	if n.Scale <= scale {
		q.Mul(&n.Coef, numeric.Pow10(scale-n.Scale))
	} else {
		q.DivMod(&n.Coef, numeric.Pow10(n.Scale-scale), rest) // towards minus infinity
	}
	inexact := rest.Sign() != 0
	switch {
	case !q.IsInt64() && q.Sign() > 0, inexact && q.IsInt64() && q.Int64() == math.MaxInt64:
		return point{last: math.MaxInt64, above: true}
	case !q.IsInt64():
		return point{first: math.MinInt64, below: true}
	}
	p := at(q.Int64())
	if inexact {
		p.first++
	}
	return p
}
