package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// sum adds; NULLs do not count. Integers that do not fit their type are an error
// at the step at which they do not, decimals become NULL. A retraction subtracts,
// from nothing: the negative value. Source: FieldSumAgg.java, DecimalUtils.java.
var sum = Function{
	Name:  "sum",
	Takes: types.Type.IsNumber,
	New:   func(s Spec) (Aggregate, error) { return newNumberFold(s, &sumLoops) },
}

var sumLoops = numberLoops{
	i16: sumInts[int16], i32: sumInts[int32], i64: sumInts[int64],
	f32: sumFloats[float32], f64: sumFloats[float64], dec: sumDecimals,
}

func sumInts[T integer](f *numberFold, in *Input) (arrow.Array, error) {
	v := vec.ViewOf[T](in.Col)
	out := make([]T, len(in.Ends))
	null := nulls{n: len(out)}
	lo, hi := f.lo, f.hi
	i := 0
	for k, e := range in.Ends {
		end := int(e)
		acc, some := int64(0), false
		switch {
		case in.Ops == nil && v.Valid == nil:
			acc, some = int64(v.V[i]), true
			for _, x := range v.V[i+1 : end] {
				s := acc + int64(x)
				if (acc^s)&(int64(x)^s) < 0 || s < lo || s > hi {
					return nil, overflow(f.t, acc, "+", int64(x))
				}
				acc = s
			}
		case in.Ops == nil:
			// NULLs count as 0, without a branch that random ones would take at random.
			any := int64(0)
			for j := i; j < end; j++ {
				at := v.Off + j
				ok := int64(v.Valid[at>>3] >> (at & 7) & 1)
				x := int64(v.V[j]) & -ok
				s := acc + x
				if (acc^s)&(x^s) < 0 || s < lo || s > hi {
					return nil, overflow(f.t, acc, "+", x)
				}
				acc = s
				any |= ok
			}
			some = any != 0
		default:
			for j := i; j < end; j++ {
				op, x, ok := in.Ops[j], int64(v.V[j]), !v.IsNull(j)
				switch op {
				case Clear:
					acc, some = 0, false
					continue
				case Set:
					acc, some = 0, ok
					if ok {
						acc = x
					}
					continue
				case SetRetract: // x - x
					acc, some = 0, ok
					continue
				case Skip:
					continue
				}
				if !ok {
					continue
				}
				s, sign := acc+x, "+"
				over := (acc^s)&(x^s) < 0
				if op == Retract {
					s, sign = acc-x, "-"
					over = (acc^x)&(acc^s) < 0
				}
				if over || s < lo || s > hi {
					return nil, overflow(f.t, acc, sign, x)
				}
				acc, some = s, true
			}
		}
		out[k] = T(acc)
		if !some {
			null.set(k)
		}
		i = end
	}
	return vec.Make(f.t.Arrow(), out, null.bits), nil
}

func sumFloats[T float](f *numberFold, in *Input) (arrow.Array, error) {
	v := vec.ViewOf[T](in.Col)
	out := make([]T, len(in.Ends))
	null := nulls{n: len(out)}
	i := 0
	for k, e := range in.Ends {
		end := int(e)
		var acc T
		some := false
		switch {
		case in.Ops == nil && v.Valid == nil:
			acc, some = v.V[i], true
			for _, x := range v.V[i+1 : end] {
				acc += x
			}
		case in.Ops == nil:
			for j := i; j < end; j++ {
				if at := v.Off + j; v.Valid[at>>3]&(1<<(at&7)) == 0 {
					continue
				}
				if some {
					acc += v.V[j]
				} else { // not 0+x, which makes +0 of -0
					acc, some = v.V[j], true
				}
			}
		default:
			for j := i; j < end; j++ {
				op := Add
				if in.Ops != nil {
					op = in.Ops[j]
				}
				x, ok := v.V[j], !v.IsNull(j)
				switch {
				case op == Skip:
				case op == Clear:
					some = false
				case op == Set:
					acc, some = x, ok
				case op == SetRetract:
					acc, some = x-x, ok
				case !ok:
				case op == Retract && some:
					acc -= x
				case op == Retract:
					acc, some = -x, true
				case some:
					acc += x
				default:
					acc, some = x, true
				}
			}
		}
		out[k] = acc
		if !some {
			out[k] = 0
			null.set(k)
		}
		i = end
	}
	return vec.Make(f.t.Arrow(), out, null.bits), nil
}

// sumCompact is the sum of decimals that are int64 all of them; ok is false when
// one is not.
func sumCompact(f *numberFold, in *Input) (a arrow.Array, ok bool) {
	v, valid, off := vec.ViewDec(in.Col)
	out := make([]decimal128.Num, len(in.Ends))
	null := nulls{n: len(out)}
	i := 0
	for k, e := range in.Ends {
		acc, some := int64(0), false
		for ; i < int(e); i++ {
			if valid != nil && valid[(off+i)>>3]&(1<<((off+i)&7)) == 0 {
				continue
			}
			if !isCompact(v[i]) {
				return nil, false
			}
			x := int64(v[i].LowBits())
			if s := acc + x; some && (acc^s)&(x^s) < 0 {
				acc, some = 0, false // NULL, and what follows begins anew
			} else {
				acc, some = s, true
			}
		}
		out[k] = decimal128.FromI64(acc)
		if !some {
			null.set(k)
		}
	}
	return vec.MakeDec128(f.t.Arrow(), out, null.bits), true
}

func sumDecimals(f *numberFold, in *Input) (arrow.Array, error) {
	if f.dec.compact && in.Ops == nil {
		if a, ok := sumCompact(f, in); ok {
			return a, nil
		}
	}
	v, valid, off := vec.ViewDec(in.Col)
	out := make([]decimal128.Num, len(in.Ends))
	null := nulls{n: len(out)}
	i := 0
	for k, e := range in.Ends {
		acc, some := decimal128.Num{}, false
		for ; i < int(e); i++ {
			op := Add
			if in.Ops != nil {
				op = in.Ops[i]
			}
			x, ok := v[i], vec.BitAt(valid, off+i)
			switch {
			case op == Skip:
			case op == Clear:
				some = false
			case op == Set:
				acc, some = x, ok
			case op == SetRetract:
				acc, some = decimal128.Num{}, ok
			case !ok:
			case op == Retract && some:
				acc, some = f.dec.sum(acc, x.Negate())
			case op == Retract:
				// Java checks the digits of a negated value, but not those of a sum.
				acc, some = x.Negate(), f.dec.fits(x)
			case some:
				acc, some = f.dec.sum(acc, x)
			default:
				acc, some = x, true
			}
		}
		if !some {
			acc = decimal128.Num{}
			null.set(k)
		}
		out[k] = acc
	}
	return vec.MakeDec128(f.t.Arrow(), out, null.bits), nil
}
