package function

import (
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Numeric arithmetic in two forms. While both arguments are Decimal128 and every
// result fits 38 digits, + - * run on 128-bit integers; a batch in which one
// does not fit, and everything else, goes through numeric.Dec.

func decScale(a arrow.Array) int32 { return a.DataType().(*arrow.Decimal128Type).Scale }

func abs32(v int32) int32 {
	if v < 0 {
		return -v
	}
	return v
}

// numericDigits is what a value of type t needs as numeric: digits before and
// after the point; ok is false when that is not known.
func numericDigits(t types.Type) (intg, scale int, ok bool) {
	switch t.Kind {
	case types.TinyInt, types.Int2:
		return 5, 0, true
	case types.Int4:
		return 10, 0, true
	case types.Int8:
		return 19, 0, true
	case types.Numeric:
		if t.Prec > 0 {
			return int(t.Prec) - int(t.Scale), int(t.Scale), true
		}
	}
	return 0, 0, false
}

// AsNumeric is the numeric type that holds every value of t without loss: the
// Decimal128 form for integers and numerics that have one, else plain numeric.
func AsNumeric(t types.Type) types.Type {
	if t.Kind == types.Numeric {
		return t
	}
	if i, s, ok := numericDigits(t); ok {
		return types.DecimalOf(i+s, s)
	}
	return types.Of(types.Numeric)
}

func exactNumerics(args []types.Type) []types.Type {
	out := make([]types.Type, len(args))
	for i, t := range args {
		out[i] = AsNumeric(t)
	}
	return out
}

func numericSum(args []types.Type) types.Type {
	ia, sa, okA := numericDigits(args[0])
	ib, sb, okB := numericDigits(args[1])
	s := max(sa, sb)
	if !okA || !okB || s > 38 {
		return types.Of(types.Numeric)
	}
	return types.DecimalOf(min(38, max(ia, ib)+1+s), s)
}

func numericProduct(args []types.Type) types.Type {
	ia, sa, okA := numericDigits(args[0])
	ib, sb, okB := numericDigits(args[1])
	s := sa + sb
	if !okA || !okB || s > 38 {
		return types.Of(types.Numeric)
	}
	return types.DecimalOf(max(1, min(38, ia+ib+s)), s)
}

var pow10u = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return
}()

// limit38 is 10^38.
var limit38Hi, limit38Lo = func() (uint64, uint64) {
	hi, lo := bits.Mul64(pow10u[19], pow10u[19])
	return hi, lo
}()

func absDec(x decimal128.Num) (hi, lo uint64, neg bool) {
	hi, lo = uint64(x.HighBits()), x.LowBits()
	if int64(hi) < 0 {
		var c uint64
		lo, c = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, c)
		return hi, lo, true
	}
	return hi, lo, false
}

func makeDec(hi, lo uint64, neg bool) decimal128.Num {
	if neg {
		var c uint64
		lo, c = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, c)
	}
	return decimal128.New(int64(hi), lo)
}

func over38(hi, lo uint64) bool { return hi > limit38Hi || hi == limit38Hi && lo >= limit38Lo }

// mulDec multiplies; ok is false when the product has more than 38 digits.
func mulDec(x, y decimal128.Num) (r decimal128.Num, ok bool) {
	// Both in int64: one multiplication.
	xh, xl, yh, yl := x.HighBits(), int64(x.LowBits()), y.HighBits(), int64(y.LowBits())
	if xh == xl>>63 && yh == yl>>63 {
		hi, lo := bits.Mul64(uint64(xl), uint64(yl))
		// The signed product from the unsigned one.
		hi -= uint64(xl>>63)&uint64(yl) + uint64(yl>>63)&uint64(xl)
		r = decimal128.New(int64(hi), lo)
		h, l, _ := absDec(r)
		return r, !over38(h, l)
	}
	ah, al, an := absDec(x)
	bh, bl, bn := absDec(y)
	if ah != 0 && bh != 0 {
		return r, false
	}
	hi, lo := bits.Mul64(al, bl)
	c1, p1 := bits.Mul64(ah, bl)
	c2, p2 := bits.Mul64(al, bh)
	if c1 != 0 || c2 != 0 {
		return r, false
	}
	var carry uint64
	hi, carry = bits.Add64(hi, p1, 0)
	if carry != 0 {
		return r, false
	}
	hi, carry = bits.Add64(hi, p2, 0)
	if carry != 0 || over38(hi, lo) {
		return r, false
	}
	return makeDec(hi, lo, an != bn), true
}

// scaleUp multiplies every value by 10^k. Values under NULL do not count as
// failures only if they are small; callers fall back to the slow way.
func scaleUp(v []decimal128.Num, k int32, buf *[]decimal128.Num) ([]decimal128.Num, bool) {
	if k > 38 {
		return nil, false
	}
	out := grow(buf, len(v))
	if k <= 18 {
		p := pow10u[k]
		for i, x := range v {
			lo := int64(x.LowBits())
			if x.HighBits() == lo>>63 {
				hi, l := bits.Mul64(uint64(lo), p)
				hi -= uint64(lo>>63) & p
				out[i] = decimal128.New(int64(hi), l)
				continue
			}
			r, ok := mulDec(x, decimal128.FromU64(p))
			if !ok {
				return nil, false
			}
			out[i] = r
		}
		return out, true
	}
	p := decimal128.FromBigInt(numeric.Pow10(k))
	for i, x := range v {
		r, ok := mulDec(x, p)
		if !ok {
			return nil, false
		}
		out[i] = r
	}
	return out, true
}

// addDecs writes a[i] ± b[i*step] to out and reports whether all fit.
func addDecs(out, a, b []decimal128.Num, aConst, bConst, sub bool) bool {
	// Two values under 10^38 add up without leaving 128 bits; what has more
	// than 38 digits then shows in the high word. A cheap test first: both
	// halves far from the limit.
	bad := false
	const lim = int64(0x4b3b4ca85a86c47a) >> 1 // half of 10^38's high word
	for i := range out {
		x, y := a[0], b[0]
		if !aConst {
			x = a[i]
		}
		if !bConst {
			y = b[i]
		}
		var lo, c uint64
		var hi int64
		if sub {
			lo, c = bits.Sub64(x.LowBits(), y.LowBits(), 0)
			hi = x.HighBits() - y.HighBits() - int64(c)
		} else {
			lo, c = bits.Add64(x.LowBits(), y.LowBits(), 0)
			hi = x.HighBits() + y.HighBits() + int64(c)
		}
		r := decimal128.New(hi, lo)
		out[i] = r
		if hi >= lim || hi < -lim {
			h, l, _ := absDec(r)
			if over38(h, l) || hi < -2*lim || hi > 2*lim {
				bad = true
			}
		}
	}
	return !bad
}

func slowDecs(f func(a, b *numeric.Dec) (*numeric.Dec, error)) Kernel {
	return fn2(func(a, b *numeric.Dec) (*numeric.Dec, error) {
		r, err := f(a, b)
		if err != nil {
			return nil, numericErr(err)
		}
		if r.Overflows() {
			return nil, numericErr(numeric.ErrOverflow)
		}
		return r, nil
	})
}

// divDecs divides Decimal128 columns of up to 18 digits in 128 bits; rows that
// are longer, and everything else, go through numeric.Dec.
var divDecs = func() Kernel {
	slow := slowDecs(numeric.Div)
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		a, okA := args[0].Arr.(*array.Decimal128)
		b, okB := args[1].Arr.(*array.Decimal128)
		if !okA || !okB || c.Ret.Prec != 0 {
			return slow(c, args)
		}
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return nullResult(c, n)
		}
		av, bv := a.Values(), b.Values()
		sa, sb := decScale(a), decScale(b)
		w := &bytesWriter{dt: arrow.BinaryTypes.Binary, off: make([]int32, 1, n+1), n: n, data: make([]byte, 0, 16*n)}
		var err error
		rowsLoop(n, selOf(c, args), valid, func(i int) {
			x, y := av[0], bv[0]
			if !args[0].Const {
				x = av[i]
			}
			if !args[1].Const {
				y = bv[i]
			}
			w.pad(i)
			xl, yl := int64(x.LowBits()), int64(y.LowBits())
			if x.HighBits() == xl>>63 && y.HighBits() == yl>>63 {
				var ok bool
				if w.data, ok = numeric.AppendQuotient(w.data, xl, sa, yl, sb); ok {
					w.end()
					return
				}
			}
			q, e := numeric.Div(numeric.From128(x, sa), numeric.From128(y, sb))
			if e != nil {
				err = numericErr(e)
				q = new(numeric.Dec)
			}
			w.data = numeric.AppendEncoded(w.data, q)
			w.end()
		})
		if err != nil {
			return nil, err
		}
		return w.done(valid), nil
	}
}()

func decArith(op byte) Kernel {
	slow := slowDecs(map[byte]func(a, b *numeric.Dec) (*numeric.Dec, error){
		'+': func(a, b *numeric.Dec) (*numeric.Dec, error) { return numeric.Add(a, b), nil },
		'-': func(a, b *numeric.Dec) (*numeric.Dec, error) { return numeric.Sub(a, b), nil },
		'*': func(a, b *numeric.Dec) (*numeric.Dec, error) { return numeric.Mul(a, b), nil },
	}[op])
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		a, okA := args[0].Arr.(*array.Decimal128)
		b, okB := args[1].Arr.(*array.Decimal128)
		if !okA || !okB || c.Ret.Prec == 0 {
			return slow(c, args)
		}
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return nullResult(c, n)
		}
		av, bv := a.Values(), b.Values()
		sa, sb := decScale(a), decScale(b)
		out := make([]decimal128.Num, n)
		ok := true
		if op == '*' {
			if int32(c.Ret.Scale) != sa+sb {
				return slow(c, args)
			}
			ok = mulDecs(out, av, bv, args[0].Const, args[1].Const)
		} else {
			s := scratchOf(c)
			if int32(c.Ret.Scale) != max(sa, sb) {
				return slow(c, args)
			}
			if sa < sb {
				av, ok = scaleUp(av, sb-sa, &s.dec[0])
			} else if sb < sa {
				bv, ok = scaleUp(bv, sa-sb, &s.dec[1])
			}
			if !ok {
				return slow(c, args)
			}
			ok = addDecs(out, av, bv, args[0].Const, args[1].Const, op == '-')
		}
		if !ok {
			return slow(c, args)
		}
		return vec.MakeDec128(c.Ret.Arrow(), out, valid), nil
	}
}

func mulDecs(out, a, b []decimal128.Num, aConst, bConst bool) bool {
	ok := true
	if aConst && !bConst {
		a, b, aConst, bConst = b, a, false, true
	}
	if bConst && !aConst {
		y := b[0]
		yl := int64(y.LowBits())
		if y.HighBits() == yl>>63 {
			// By far the most frequent: column times a small constant.
			for i := range out {
				x := a[i]
				xl := int64(x.LowBits())
				if x.HighBits() != xl>>63 {
					r, fits := mulDec(x, y)
					out[i] = r
					ok = ok && fits
					continue
				}
				hi, lo := bits.Mul64(uint64(xl), uint64(yl))
				hi -= uint64(xl>>63)&uint64(yl) + uint64(yl>>63)&uint64(xl)
				out[i] = decimal128.New(int64(hi), lo)
			}
			// A product of two int64 is below 2^126 < 10^38.
			return ok
		}
	}
	for i := range out {
		x, y := a[0], b[0]
		if !aConst {
			x = a[i]
		}
		if !bConst {
			y = b[i]
		}
		xl, yl := int64(x.LowBits()), int64(y.LowBits())
		if x.HighBits() == xl>>63 && y.HighBits() == yl>>63 {
			hi, lo := bits.Mul64(uint64(xl), uint64(yl))
			hi -= uint64(xl>>63)&uint64(yl) + uint64(yl>>63)&uint64(xl)
			out[i] = decimal128.New(int64(hi), lo)
			continue
		}
		r, fits := mulDec(x, y)
		out[i] = r
		ok = ok && fits
	}
	return ok
}

// negDec is unary minus of numerics.
func negDec(c *Call, args []vec.Vec) (arrow.Array, error) {
	if a, ok := args[0].Arr.(*array.Decimal128); ok && c.Ret.Prec > 0 {
		n := rowsOf(c, args)
		out := make([]decimal128.Num, n)
		for i, x := range a.Values()[:n] {
			out[i] = x.Negate()
		}
		return vec.MakeDec128(c.Ret.Arrow(), out, vec.ValidCopy(a)), nil
	}
	return fn1(func(a *numeric.Dec) (*numeric.Dec, error) { return a.Neg(), nil })(c, args)
}

func absDecK(c *Call, args []vec.Vec) (arrow.Array, error) {
	if a, ok := args[0].Arr.(*array.Decimal128); ok && c.Ret.Prec > 0 {
		n := rowsOf(c, args)
		out := make([]decimal128.Num, n)
		for i, x := range a.Values()[:n] {
			out[i] = x
			if x.HighBits() < 0 {
				out[i] = x.Negate()
			}
		}
		return vec.MakeDec128(c.Ret.Arrow(), out, vec.ValidCopy(a)), nil
	}
	return fn1(func(a *numeric.Dec) (*numeric.Dec, error) { return a.Abs(), nil })(c, args)
}

func numericOps() []*Overload {
	num := types.Of(types.Numeric)
	two := []types.Type{num, num}
	sameType := func(args []types.Type) types.Type { t := AsNumeric(args[0]); t.Mod = 0; return t }
	plain := func([]types.Type) types.Type { return num }
	return []*Overload{
		{Name: "+", Args: two, Ret: num, RetFn: numericSum, ExactArgs: exactNumerics, Strict: true, Kernel: decArith('+'), Doc: "Sum of two numerics at the larger scale."},
		{Name: "-", Args: two, Ret: num, RetFn: numericSum, ExactArgs: exactNumerics, Strict: true, Kernel: decArith('-'), Doc: "Difference of two numerics at the larger scale."},
		{Name: "*", Args: two, Ret: num, RetFn: numericProduct, ExactArgs: exactNumerics, Strict: true, Kernel: decArith('*'), Doc: "Product of two numerics, exact."},
		{Name: "/", Args: two, Ret: num, RetFn: plain, ExactArgs: exactNumerics, Strict: true, Kernel: divDecs, Doc: "Quotient of two numerics with at least 16 significant digits."},
		{Name: "%", Args: two, Ret: num, RetFn: plain, ExactArgs: exactNumerics, Strict: true, Kernel: slowDecs(numeric.Mod), Doc: "Remainder of a division of numerics, with the sign of the dividend."},
		{Name: "^", Args: two, Ret: num, RetFn: plain, ExactArgs: exactNumerics, Strict: true, Kernel: slowDecs(numeric.Power), Doc: "Power of numerics."},
		{Name: "-", Args: two[:1], Ret: num, RetFn: sameType, ExactArgs: exactNumerics, Strict: true, Kernel: negDec, Doc: "Negation of a numeric."},
		{Name: "+", Args: two[:1], Ret: num, RetFn: sameType, ExactArgs: exactNumerics, Strict: true, Kernel: identity, Doc: "A numeric as it is."},
		{Name: "@", Args: two[:1], Ret: num, RetFn: sameType, ExactArgs: exactNumerics, Strict: true, Kernel: absDecK, Doc: "Absolute value of a numeric."},
	}
}

// identity returns its argument.
func identity(c *Call, args []vec.Vec) (arrow.Array, error) {
	if args[0].Const {
		return args[0].Arr, nil
	}
	return args[0].Arr, nil
}
