package aggregate

import (
	"bytes"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// max and min keep the greatest or least value that is not NULL. The order is
// Java's: floats with -0 < +0 and NaN greatest, text and bytes unsigned. Source:
// FieldMaxAgg.java, InternalRowUtils.compare.
var (
	maximum = Function{Name: "max", Takes: isComparable, New: newExtreme(true)}
	minimum = Function{Name: "min", Takes: isComparable, New: newExtreme(false)}
)

// isComparable reports whether Java compares values of a type.
func isComparable(t types.Type) bool {
	switch t.Kind {
	case types.Map, types.Array, types.Row, types.Variant:
		return false
	}
	return t.Lake != types.LakeBlob && t.Lake != types.LakeGeometry && t.Lake != types.LakeGeography
}

// extremeFold chooses rows by words in the order wanted: the greatest wins, so min
// has inverted ones.
type extremeFold struct {
	name string
	t    types.Type
	max  bool
	flip int64 // all ones for min
	keys []int64
	rows []int32
}

func newExtreme(greatest bool) func(Spec) (Aggregate, error) {
	return func(s Spec) (Aggregate, error) {
		f := &extremeFold{name: "max", t: s.Column.Type, max: greatest}
		if !greatest {
			f.name, f.flip = "min", -1
		}
		return f, nil
	}
}

func (f *extremeFold) Fold(in *Input) (arrow.Array, error) {
	if in.Ops == nil {
		switch f.t.Kind {
		case types.TinyInt, types.Int2:
			return extremeInts[int16](f, in), nil
		case types.Int4, types.Date:
			return extremeInts[int32](f, in), nil
		case types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
			return extremeInts[int64](f, in), nil
		case types.Float4:
			return extremeFloats[float32](f, in), nil
		case types.Float8:
			return extremeFloats[float64](f, in), nil
		}
	}
	for _, op := range in.Ops {
		if op == Retract || op == SetRetract {
			return nil, noRetract(f.name)
		}
	}
	f.rows = grow(f.rows, len(in.Ends))
	switch f.t.Kind {
	case types.TinyInt, types.Int2:
		intKeys[int16](f, in)
	case types.Int4, types.Date:
		intKeys[int32](f, in)
	case types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
		intKeys[int64](f, in)
	case types.Float4:
		f.keys = grow(f.keys, in.Col.Len())
		for i, x := range vec.ViewOf[float32](in.Col).V {
			f.keys[i] = f.flip ^ orderBits(float64(x))
		}
	case types.Float8:
		f.keys = grow(f.keys, in.Col.Len())
		for i, x := range vec.ViewOf[float64](in.Col).V {
			f.keys[i] = f.flip ^ orderBits(x)
		}
	case types.Bool:
		f.keys = grow(f.keys, in.Col.Len())
		bits, off := boolBits(in.Col)
		for i := range f.keys {
			j := off + i
			f.keys[i] = f.flip ^ int64(bits[j>>3]>>(j&7)&1)
		}
	case types.Numeric:
		f.pickDecimals(in)
		return vec.TakeNull(in.Col, f.rows), nil
	default:
		f.pickBytes(in)
		return vec.TakeNull(in.Col, f.rows), nil
	}
	f.pickWords(in)
	return vec.TakeNull(in.Col, f.rows), nil
}

// orderBits makes floats sort as Java's compare does; every NaN is the same. A
// float32 sorts as the float64 that it is equal to.
func orderBits(x float64) int64 {
	b := int64(math.Float64bits(x))
	if x != x {
		b = 0x7ff8000000000000
	}
	return b ^ int64(uint64(b>>63)>>1)
}

// fromOrderBits is the float of orderBits.
func fromOrderBits(b int64) float64 {
	return math.Float64frombits(uint64(b ^ int64(uint64(b>>63)>>1)))
}

// extremeInts folds the values themselves: NULLs count as the value that never
// wins, without a branch that random ones would take at random.
func extremeInts[T integer](f *extremeFold, in *Input) arrow.Array {
	v := vec.ViewOf[T](in.Col)
	out := make([]T, len(in.Ends))
	null := nulls{n: len(out)}
	i := 0
	for k, e := range in.Ends {
		if v.Valid == nil {
			acc := v.V[i]
			if f.max {
				for _, x := range v.V[i+1 : e] {
					acc = max(acc, x)
				}
			} else {
				for _, x := range v.V[i+1 : e] {
					acc = min(acc, x)
				}
			}
			out[k] = acc
			i = int(e)
			continue
		}
		acc, any := int64(math.MinInt64), int64(0)
		for ; i < int(e); i++ {
			at := v.Off + i
			ok := int64(v.Valid[at>>3] >> (at & 7) & 1)
			x := f.flip ^ int64(v.V[i])
			acc = max(acc, x&-ok|math.MinInt64&(ok-1))
			any |= ok
		}
		if any == 0 {
			null.set(k)
			acc = f.flip
		}
		out[k] = T(f.flip ^ acc)
	}
	return vec.Make(f.t.Arrow(), out, null.bits)
}

// extremeFloats folds the words that sort as the floats do.
func extremeFloats[T float](f *extremeFold, in *Input) arrow.Array {
	v := vec.ViewOf[T](in.Col)
	out := make([]T, len(in.Ends))
	null := nulls{n: len(out)}
	i := 0
	for k, e := range in.Ends {
		acc, any := int64(math.MinInt64), int64(0)
		for ; i < int(e); i++ {
			ok := int64(1)
			if v.Valid != nil {
				at := v.Off + i
				ok = int64(v.Valid[at>>3] >> (at & 7) & 1)
			}
			x := f.flip ^ orderBits(float64(v.V[i]))
			acc = max(acc, x&-ok|math.MinInt64&(ok-1))
			any |= ok
		}
		if any == 0 {
			null.set(k)
			continue
		}
		out[k] = T(fromOrderBits(f.flip ^ acc))
	}
	return vec.Make(f.t.Arrow(), out, null.bits)
}

func intKeys[T integer](f *extremeFold, in *Input) {
	f.keys = grow(f.keys, in.Col.Len())
	for i, x := range vec.ViewOf[T](in.Col).V {
		f.keys[i] = f.flip ^ int64(x)
	}
}

func (f *extremeFold) pickWords(in *Input) {
	valid, off := vec.Validity(in.Col)
	i := 0
	for k, e := range in.Ends {
		best := int32(-1)
		for ; i < int(e); i++ {
			if in.Ops != nil && in.Ops[i] != Add && in.Ops[i] != AddReversed {
				best = replaced(in.Ops[i], valid, off, i, best)
				continue
			}
			if vec.BitAt(valid, off+i) && (best < 0 || f.keys[best] < f.keys[i]) {
				best = int32(i)
			}
		}
		f.rows[k] = best
	}
}

// replaced is the row chosen after an operation that does not compare.
func replaced(op Op, valid []byte, off, i int, was int32) int32 {
	switch op {
	case Set:
		return orNull(valid, off, i)
	case Clear:
		return -1
	}
	return was
}

func (f *extremeFold) pickDecimals(in *Input) {
	v, valid, off := vec.ViewDec(in.Col)
	i := 0
	for k, e := range in.Ends {
		best := int32(-1)
		for ; i < int(e); i++ {
			if in.Ops != nil && in.Ops[i] != Add && in.Ops[i] != AddReversed {
				best = replaced(in.Ops[i], valid, off, i, best)
				continue
			}
			if vec.BitAt(valid, off+i) && (best < 0 || f.max && less(v[best], v[i]) || !f.max && less(v[i], v[best])) {
				best = int32(i)
			}
		}
		f.rows[k] = best
	}
}

func less(a, b decimal128.Num) bool {
	return a.HighBits() < b.HighBits() || a.HighBits() == b.HighBits() && a.LowBits() < b.LowBits()
}

func (f *extremeFold) pickBytes(in *Input) {
	s := vec.ViewStr(in.Col)
	i := 0
	for k, e := range in.Ends {
		best := int32(-1)
		for ; i < int(e); i++ {
			if in.Ops != nil && in.Ops[i] != Add && in.Ops[i] != AddReversed {
				best = replaced(in.Ops[i], s.Valid, s.Off, i, best)
				continue
			}
			if s.IsNull(i) {
				continue
			}
			if best < 0 {
				best = int32(i)
				continue
			}
			if c := bytes.Compare(s.At(int(best)), s.At(i)); c < 0 == f.max && c != 0 {
				best = int32(i)
			}
		}
		f.rows[k] = best
	}
}
