package vec

import (
	"bytes"
	"cmp"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Compare orders row i of one array and row j of another, neither NULL: below,
// equal to or above zero. The order is that of normalised keys (key.go).
type Compare func(i, j int) int

// NewCompare returns the comparison of rows of a and b, which are of logical
// type t and may have different physical forms. It is chosen once per pair of
// arrays; a call costs a closure, so hot loops use normalised keys instead.
func NewCompare(t types.Type, a, b arrow.Array) Compare {
	switch t.Kind {
	case types.Numeric:
		return compareNumeric(a, b)
	case types.JSONB, types.Interval, types.TimeTZ, types.Array, types.Map, types.Row, types.Record, types.Variant, types.Int2Vector, types.OIDVector:
		x, y := newKeyer(t, a), newKeyer(t, b)
		var p, q []byte
		return func(i, j int) int {
			p, q = x.append(p[:0], i), y.append(q[:0], j)
			return bytes.Compare(p, q)
		}
	case types.BpChar:
		x, y := newStrSource(a), newStrSource(b)
		return func(i, j int) int { return bytes.Compare(TrimBlanks(x.at(uint32(i))), TrimBlanks(y.at(uint32(j)))) }
	}
	switch Plain(a.DataType()).ID() {
	case arrow.STRING, arrow.BINARY:
		x, y := newStrSource(a), newStrSource(b)
		return func(i, j int) int { return bytes.Compare(x.at(uint32(i)), y.at(uint32(j))) }
	case arrow.BOOL:
		x, y := a.(*array.Boolean), b.(*array.Boolean)
		return func(i, j int) int {
			switch p, q := x.Value(i), y.Value(j); {
			case p == q:
				return 0
			case q:
				return -1
			}
			return 1
		}
	case arrow.INT16:
		return compareFixed(rawFixed[int16](a), rawFixed[int16](b))
	case arrow.INT32, arrow.DATE32:
		return compareFixed(rawFixed[int32](a), rawFixed[int32](b))
	case arrow.INT64, arrow.TIME64, arrow.TIMESTAMP:
		return compareFixed(rawFixed[int64](a), rawFixed[int64](b))
	case arrow.FLOAT32:
		x, y := rawFixed[float32](a), rawFixed[float32](b)
		return func(i, j int) int { return cmp.Compare(orderFloat32(x[i]), orderFloat32(y[j])) }
	case arrow.FLOAT64:
		x, y := rawFixed[float64](a), rawFixed[float64](b)
		return func(i, j int) int { return cmp.Compare(orderFloat(x[i]), orderFloat(y[j])) }
	}
	x, y := newKeyer(t, a), newKeyer(t, b)
	return func(i, j int) int { return bytes.Compare(x.append(nil, i), y.append(nil, j)) }
}

func compareFixed[T int16 | int32 | int64](x, y []T) Compare {
	return func(i, j int) int { return cmp.Compare(x[i], y[j]) }
}

func newStrSource(a arrow.Array) *strSource {
	if idx, dict, ok := DictView(a); ok {
		return &strSource{ViewStr(dict), idx}
	}
	return &strSource{ViewStr(Decode(a)), nil}
}

func compareNumeric(a, b arrow.Array) Compare {
	x, okA := a.(*array.Decimal128)
	y, okB := b.(*array.Decimal128)
	if okA && okB && decScale(a) == decScale(b) {
		p, q := x.Values(), y.Values()
		return func(i, j int) int { return CmpDec128(p[i], q[j]) }
	}
	get := func(a arrow.Array) func(i int) *numeric.Dec {
		if d, ok := a.(*array.Decimal128); ok {
			v, s := d.Values(), decScale(a)
			return func(i int) *numeric.Dec { return numeric.From128(v[i], s) }
		}
		s := ViewStr(a)
		return func(i int) *numeric.Dec { return numeric.Decode(s.At(i)) }
	}
	p, q := get(a), get(b)
	return func(i, j int) int { return numeric.Cmp(p(i), q(j)) }
}

func decScale(a arrow.Array) int32 { return a.DataType().(*arrow.Decimal128Type).Scale }

// CmpDec128 compares two coefficients of equal scale.
func CmpDec128(a, b decimal128.Num) int {
	if c := cmp.Compare(a.HighBits(), b.HighBits()); c != 0 {
		return c
	}
	return cmp.Compare(a.LowBits(), b.LowBits())
}

// NewEqual returns equality of rows as GROUP BY sees it: NULL equals NULL.
func NewEqual(t types.Type, a, b arrow.Array) func(i, j int) bool {
	c := NewCompare(t, a, b)
	av, ao := Validity(a)
	bv, bo := Validity(b)
	if av == nil && bv == nil {
		return func(i, j int) bool { return c(i, j) == 0 }
	}
	return func(i, j int) bool {
		p, q := BitAt(av, ao+i), BitAt(bv, bo+j)
		if !p || !q {
			return p == q
		}
		return c(i, j) == 0
	}
}

// NewRowCompare returns the comparison of rows by several sort keys, with their
// directions and places of NULL.
func NewRowCompare(cols []KeyColumn, a, b []arrow.Array) Compare {
	type one struct {
		c      Compare
		av, bv []byte
		ao, bo int
		null   int // sign of (NULL, value)
		sign   int
	}
	cs := make([]one, len(cols))
	for i, k := range cols {
		o := one{c: NewCompare(k.Type, a[i], b[i]), null: 1, sign: 1}
		o.av, o.ao = Validity(a[i])
		o.bv, o.bo = Validity(b[i])
		if k.NullsFirst {
			o.null = -1
		}
		if k.Desc {
			o.sign = -1
		}
		cs[i] = o
	}
	return func(i, j int) int {
		for n := range cs {
			o := &cs[n]
			p, q := BitAt(o.av, o.ao+i), BitAt(o.bv, o.bo+j)
			switch {
			case p && q:
				if c := o.c(i, j); c != 0 {
					return c * o.sign
				}
			case p != q:
				if p {
					return -o.null
				}
				return o.null
			}
		}
		return 0
	}
}
