package aggregate

import (
	"math/big"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// product multiplies; NULLs do not count. A retraction divides and does nothing to
// NULL or by NULL: integers cut off, decimals round half up and are an error where
// the quotient has no end. Source: FieldProductAgg.java.
var product = Function{
	Name:  "product",
	Takes: types.Type.IsNumber,
	New:   func(s Spec) (Aggregate, error) { return newNumberFold(s, &productLoops) },
}

var productLoops = numberLoops{
	i16: productInts[int16], i32: productInts[int32], i64: productInts[int64],
	f32: productFloats[float32], f64: productFloats[float64], dec: productDecimals,
}

// mulOverflows multiplies; over says that the product is no int64.
func mulOverflows(a, b int64) (p int64, over bool) {
	hi, lo := bits.Mul64(uint64(a), uint64(b))
	// Mul64 is unsigned: correct the upper half for negative factors.
	h := int64(hi)
	if a < 0 {
		h -= b
	}
	if b < 0 {
		h -= a
	}
	p = int64(lo)
	return p, h != p>>63
}

func productInts[T integer](f *numberFold, in *Input) (arrow.Array, error) {
	v := vec.ViewOf[T](in.Col)
	out := make([]T, len(in.Ends))
	null := nulls{n: len(out)}
	lo, hi := f.lo, f.hi
	i := 0
	for k, e := range in.Ends {
		acc, some := int64(0), false
		for ; i < int(e); i++ {
			op := Add
			if in.Ops != nil {
				op = in.Ops[i]
			}
			x, ok := int64(v.V[i]), !v.IsNull(i)
			if op == Set || op == SetRetract {
				acc, some = x, ok
			}
			switch {
			case op == Skip || op == Set:
			case op == Clear:
				some = false
			case !ok:
			case op == Retract || op == SetRetract:
				if !some {
					continue
				}
				if x == 0 {
					return nil, &Error{Reason: "division by zero while retracting from a product"}
				}
				if acc == lo && x == -1 {
					return nil, overflow(f.t, acc, "/", x)
				}
				acc /= x
			case some:
				p, over := mulOverflows(acc, x)
				if over || p < lo || p > hi {
					return nil, overflow(f.t, acc, "*", x)
				}
				acc = p
			default:
				acc, some = x, true
			}
		}
		out[k] = T(acc)
		if !some {
			out[k] = 0
			null.set(k)
		}
	}
	return vec.Make(f.t.Arrow(), out, null.bits), nil
}

func productFloats[T float](f *numberFold, in *Input) (arrow.Array, error) {
	v := vec.ViewOf[T](in.Col)
	out := make([]T, len(in.Ends))
	null := nulls{n: len(out)}
	i := 0
	for k, e := range in.Ends {
		var acc T
		some := false
		for ; i < int(e); i++ {
			op := Add
			if in.Ops != nil {
				op = in.Ops[i]
			}
			x, ok := v.V[i], !v.IsNull(i)
			if op == Set || op == SetRetract {
				acc, some = x, ok
			}
			switch {
			case op == Skip || op == Set:
			case op == Clear:
				some = false
			case !ok:
			case op == Retract || op == SetRetract:
				if some {
					acc /= x
				}
			case some:
				acc *= x
			default:
				acc, some = x, true
			}
		}
		out[k] = acc
		if !some {
			out[k] = 0
			null.set(k)
		}
	}
	return vec.Make(f.t.Arrow(), out, null.bits), nil
}

func productDecimals(f *numberFold, in *Input) (arrow.Array, error) {
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
			if op == Set || op == SetRetract {
				acc, some = x, ok
			}
			switch {
			case op == Skip || op == Set:
			case op == Clear:
				some = false
			case !ok:
			case op == Retract || op == SetRetract:
				if !some {
					continue
				}
				q, fits, err := f.quotient(acc, x)
				if err != nil {
					return nil, err
				}
				acc, some = q, fits
			case some:
				acc, some = f.times(acc, x)
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

func (f *numberFold) times(a, b decimal128.Num) (decimal128.Num, bool) {
	if f.dec.compact && isCompact(a) && isCompact(b) {
		// Two words of a product over one of 10^s; what does not fit a word has more
		// than 18 digits.
		x, y := int64(a.LowBits()), int64(b.LowBits())
		hi, lo := bits.Mul64(magnitude(x), magnitude(y))
		unit := uint64(1)
		for range f.t.Scale {
			unit *= 10
		}
		if hi >= unit {
			return decimal128.Num{}, false
		}
		q, r := bits.Div64(hi, lo, unit)
		if r >= unit-r {
			q++
		}
		if q >= f.dec.limit.LowBits() {
			return decimal128.Num{}, false
		}
		if (x < 0) != (y < 0) {
			return decimal128.FromI64(-int64(q)), true
		}
		return decimal128.FromI64(int64(q)), true
	}
	return f.dec.ratio(new(big.Int).Mul(a.BigInt(), b.BigInt()), f.scale)
}

func magnitude(x int64) uint64 {
	if x < 0 {
		return uint64(-x)
	}
	return uint64(x)
}

func (f *numberFold) quotient(a, b decimal128.Num) (q decimal128.Num, fits bool, err error) {
	x, y := a.BigInt(), b.BigInt()
	if y.Sign() == 0 {
		return q, false, &Error{Reason: "division by zero while retracting from a product"}
	}
	if !terminates(x, y) {
		return q, false, &Error{Reason: "a quotient without an end while retracting from a product of decimals"}
	}
	q, fits = f.dec.ratio(new(big.Int).Mul(x, f.scale), y)
	return q, fits, nil
}

// terminates reports whether x/y has finitely many decimal digits: what is left
// of y when divided by the common divisor has no factors but 2 and 5.
func terminates(x, y *big.Int) bool {
	g := new(big.Int).GCD(nil, nil, new(big.Int).Abs(x), new(big.Int).Abs(y))
	d := new(big.Int).Quo(new(big.Int).Abs(y), g)
	d.Rsh(d, d.TrailingZeroBits())
	five, r := big.NewInt(5), new(big.Int)
	for d.Cmp(big.NewInt(1)) > 0 {
		q, _ := new(big.Int).QuoRem(d, five, r)
		if r.Sign() != 0 {
			return false
		}
		d = q
	}
	return true
}
