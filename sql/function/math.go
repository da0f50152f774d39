package function

import (
	"math"
	"math/big"
	"math/rand/v2"
	"sync"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

type dec = numeric.Dec

// f1 lifts a float function that cannot fail.
func f1(f func(float64) float64) Kernel {
	return fn1(func(a float64) (float64, error) { return f(a), nil })
}

func errInputRange() error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "input is out of range")
}

// trig lifts a trigonometric function: infinite arguments are errors.
func trig(f func(float64) float64) Kernel {
	return fn1(func(a float64) (float64, error) {
		if math.IsInf(a, 0) {
			return 0, errInputRange()
		}
		return f(a), nil
	})
}

// unit lifts functions defined on [-1, 1].
func onUnit(f func(float64) float64) Kernel {
	return fn1(func(a float64) (float64, error) {
		if a < -1 || a > 1 {
			return 0, errInputRange()
		}
		return f(a), nil
	})
}

// overflowing lifts a function whose result may be infinite or zero wrongly.
func overflowing(f func(float64) float64) Kernel {
	return fn1(func(a float64) (float64, error) {
		r := f(a)
		if math.IsInf(r, 0) && !math.IsInf(a, 0) {
			return 0, errFloatOverflow()
		}
		return r, nil
	})
}

// n1 lifts a numeric function.
func n1(f func(*dec) (*dec, error)) Kernel {
	return fn1(func(a *dec) (*dec, error) {
		r, err := f(a)
		return r, numericErr(err)
	})
}

func n1ok(f func(*dec) *dec) Kernel { return fn1(func(a *dec) (*dec, error) { return f(a), nil }) }

func lnFloat(a float64) (float64, error) {
	if a == 0 {
		return 0, numericErr(numeric.ErrLogZero)
	}
	if a < 0 {
		return 0, numericErr(numeric.ErrLogNegative)
	}
	return logOf(a), nil
}

// logOf is math.Log with subnormal numbers brought into the normal range first:
// the assembly of some processors does not take them.
func logOf(a float64) float64 {
	if a > 0 && a < 0x1p-1022 {
		return math.Log(a*0x1p54) - 54*math.Ln2
	}
	return math.Log(a)
}

// log10Of keeps the exponent apart, so that powers of ten are exact.
func log10Of(a float64) float64 {
	if a <= 0 || math.IsInf(a, 0) || math.IsNaN(a) {
		return math.Log10(a)
	}
	const (
		ivln10   = 4.34294481903251816668e-01
		log2hi10 = 3.01029995663611771306e-01
		log2lo10 = 3.69423907715893078616e-13
	)
	frac, exp := math.Frexp(a) // [0.5, 1)
	k := exp - 1
	x := frac * 2
	if k < 0 {
		k++
		x = frac
	}
	y := float64(k)
	return y*log2lo10 + ivln10*math.Log(x) + y*log2hi10
}

func log10Float(a float64) (float64, error) {
	if a == 0 {
		return 0, numericErr(numeric.ErrLogZero)
	}
	if a < 0 {
		return 0, numericErr(numeric.ErrLogNegative)
	}
	return log10Of(a), nil
}

const rpd = 0.0174532925199432957692 // radians per degree

// Trigonometry in degrees is exact where the result is: the ratios below are 1
// at the angles they are named after.
var (
	sin30       = math.Sin(30 * rpd)
	oneMinCos60 = 1 - math.Cos(60*rpd)
	asin05      = math.Asin(0.5)
	acos05      = math.Acos(0.5)
	atan1       = math.Atan(1)
	tan45       = sindQ1(45) / cosdQ1(45)
	cot45       = cosdQ1(45) / sindQ1(45)
)

func sind030(x float64) float64 { return (math.Sin(x*rpd) / sin30) / 2 }
func cosd060(x float64) float64 { return 1 - ((1-math.Cos(x*rpd))/oneMinCos60)/2 }

func sindQ1(x float64) float64 {
	if x <= 30 {
		return sind030(x)
	}
	return cosd060(90 - x)
}

func cosdQ1(x float64) float64 {
	if x <= 60 {
		return cosd060(x)
	}
	return sind030(90 - x)
}

// quadrant reduces an angle to [0,90] and returns the signs of sine and cosine.
func quadrant(a float64) (x, s, c float64) {
	x = math.Mod(a, 360)
	s, c = 1, 1
	if x < 0 {
		x, s = -x, -s
	}
	if x > 180 {
		x, s = 360-x, -s
	}
	if x > 90 {
		x, c = 180-x, -c
	}
	return x, s, c
}

func sind(a float64) float64 { x, s, _ := quadrant(a); return s * sindQ1(x) }
func cosd(a float64) float64 { x, _, c := quadrant(a); return c * cosdQ1(x) }
func tand(a float64) float64 {
	x, s, c := quadrant(a)
	r := s * c * ((sindQ1(x) / cosdQ1(x)) / tan45)
	if r == 0 {
		r = 0
	}
	return r
}
func cotd(a float64) float64 {
	x, s, c := quadrant(a)
	r := s * c * ((cosdQ1(x) / sindQ1(x)) / cot45)
	if r == 0 {
		r = 0
	}
	return r
}

func asindQ1(x float64) float64 {
	if x <= 0.5 {
		return math.Asin(x) / asin05 * 30
	}
	return 90 - math.Acos(x)/acos05*60
}

func acosdQ1(x float64) float64 {
	if x <= 0.5 {
		return 90 - math.Asin(x)/asin05*30
	}
	return math.Acos(x) / acos05 * 60
}

func asind(x float64) float64 {
	if x >= 0 {
		return asindQ1(x)
	}
	return -asindQ1(-x)
}

func acosd(x float64) float64 {
	if x >= 0 {
		return acosdQ1(x)
	}
	return 90 + asindQ1(-x)
}

func signFloat(a float64) float64 {
	switch {
	case a > 0:
		return 1
	case a < 0:
		return -1
	}
	return 0
}

func gcdInt(k types.Kind) func(a, b int64) (int64, error) {
	lo := int64(math.MinInt64)
	if k == types.Int4 {
		lo = math.MinInt32
	}
	return func(a, b int64) (int64, error) {
		var g big.Int
		g.GCD(nil, nil, new(big.Int).Abs(big.NewInt(a)), new(big.Int).Abs(big.NewInt(b)))
		if !g.IsInt64() || g.Int64() == -lo && lo != math.MinInt64 {
			return 0, errIntRange(k)
		}
		return g.Int64(), nil
	}
}

func lcmInt(k types.Kind) func(a, b int64) (int64, error) {
	return func(a, b int64) (int64, error) {
		if a == 0 || b == 0 {
			return 0, nil
		}
		x, y := new(big.Int).Abs(big.NewInt(a)), new(big.Int).Abs(big.NewInt(b))
		var g big.Int
		g.GCD(nil, nil, x, y)
		x.Quo(x, &g)
		x.Mul(x, y)
		if !x.IsInt64() {
			return 0, errIntRange(k)
		}
		return checkInt(k, x.Int64(), false)
	}
}

func errBucket(text string) error {
	return pgerr.New(pgerr.InvalidArgumentForWidthBucket, "%s", text)
}

func widthBucketFloat(op, lo, hi float64, count int64) (int64, error) {
	if count <= 0 {
		return 0, errBucket("count must be greater than zero")
	}
	if math.IsNaN(op) || math.IsNaN(lo) || math.IsNaN(hi) {
		return 0, errBucket("operand, lower bound, and upper bound cannot be NaN")
	}
	if math.IsInf(lo, 0) || math.IsInf(hi, 0) {
		return 0, errBucket("lower and upper bounds must be finite")
	}
	if lo == hi {
		return 0, errBucket("lower bound cannot equal upper bound")
	}
	bucket := func(a, b float64) (int64, error) {
		q := (op - lo) / (hi - lo)
		if math.IsInf(hi-lo, 0) {
			q = (op/2 - lo/2) / (hi/2 - lo/2)
		}
		r := int64(float64(count) * q)
		if r >= count {
			r = count - 1
		}
		return r + 1, nil
	}
	if lo < hi && op < lo || lo > hi && op > lo {
		return 0, nil
	}
	if lo < hi && op >= hi || lo > hi && op <= hi {
		return checkInt(types.Int4, count+1, false)
	}
	return bucket(lo, hi)
}

func widthBucketNum(op, lo, hi *dec, count int64) (int64, error) {
	if count <= 0 {
		return 0, errBucket("count must be greater than zero")
	}
	if op.Form == numeric.NaN || lo.Form == numeric.NaN || hi.Form == numeric.NaN {
		return 0, errBucket("operand, lower bound, and upper bound cannot be NaN")
	}
	if lo.Form != numeric.Finite || hi.Form != numeric.Finite {
		return 0, errBucket("lower and upper bounds must be finite")
	}
	c := numeric.Cmp(lo, hi)
	if c == 0 {
		return 0, errBucket("lower bound cannot equal upper bound")
	}
	if c > 0 {
		op, lo, hi = op.Neg(), lo.Neg(), hi.Neg()
	}
	if numeric.Cmp(op, lo) < 0 {
		return 0, nil
	}
	if numeric.Cmp(op, hi) >= 0 {
		return checkInt(types.Int4, count+1, false)
	}
	num := numeric.Mul(numeric.Sub(op, lo), numeric.FromInt64(count))
	q, err := numeric.DivTrunc(num, numeric.Sub(hi, lo))
	if err != nil {
		return 0, numericErr(err)
	}
	v, _ := q.Int64()
	return v + 1, nil
}

// seeds are the generators of sessions that called setseed.
var seeds sync.Map

func sessionRand(c *Call) float64 {
	if c.Env != nil {
		if r, ok := seeds.Load(c.Env.BackendPID()); ok {
			l := r.(*lockedRand)
			l.mu.Lock()
			defer l.mu.Unlock()
			return l.r.Float64()
		}
	}
	return rand.Float64()
}

type lockedRand struct {
	mu sync.Mutex
	r  *rand.Rand
}

func numWhole(args []types.Type) types.Type {
	if i, _, ok := numericDigits(args[0]); ok && i+1 <= 38 {
		return types.DecimalOf(i+1, 0)
	}
	return types.Of(types.Numeric)
}

func numSame(args []types.Type) types.Type {
	t := AsNumeric(args[0])
	t.Mod = 0
	return t
}

func mathFunctions() []*Overload {
	var out []*Overload
	add := func(name string, ret types.Type, k Kernel, doc string, args ...types.Type) *Overload {
		o := def(name, ret, k, doc, args...)
		out = append(out, o)
		return o
	}
	num := func(name string, k Kernel, doc string, args ...types.Type) *Overload {
		o := add(name, tNum, k, doc, args...)
		o.ExactArgs = func(ts []types.Type) []types.Type {
			r := append([]types.Type(nil), ts...)
			for i := range r {
				if i < len(args) && args[i].Kind == types.Numeric {
					r[i] = AsNumeric(r[i])
				} else if i < len(args) {
					r[i] = args[i]
				}
			}
			return r
		}
		o.RetFn = func([]types.Type) types.Type { return tNum }
		return o
	}
	for _, k := range []types.Kind{types.Int2, types.Int4, types.Int8} {
		t := types.Of(k)
		add("abs", t, fn1(absInt(k)), "Absolute value.", t)
		_, div := intKernels(k)
		add("mod", t, div(true), "Remainder of a division.", t, t)
		if k != types.Int2 {
			add("gcd", t, fn2(gcdInt(k)), "Greatest common divisor.", t, t)
			add("lcm", t, fn2(lcmInt(k)), "Least common multiple.", t, t)
		}
	}
	add("abs", types.Of(types.Float4), f1(math.Abs), "Absolute value.", types.Of(types.Float4))
	add("abs", tF8, f1(math.Abs), "Absolute value.", tF8)
	num("abs", absDecK, "Absolute value.", tNum).RetFn = numSame
	for _, n := range []string{"ceil", "ceiling"} {
		add(n, tF8, f1(math.Ceil), "Nearest integer not below.", tF8)
		num(n, n1ok((*dec).Ceil), "Nearest integer not below.", tNum).RetFn = numWhole
	}
	add("floor", tF8, f1(math.Floor), "Nearest integer not above.", tF8)
	num("floor", n1ok((*dec).Floor), "Nearest integer not above.", tNum).RetFn = numWhole
	add("round", tF8, f1(math.RoundToEven), "Nearest integer, halves to even.", tF8)
	num("round", n1ok(func(d *dec) *dec { return d.Round(0) }), "Nearest integer, halves away from zero.", tNum).RetFn = numWhole
	clampDigits := func(n int64) int32 { return int32(min(max(n, -2000), 2000)) }
	num("round", fn2(func(d *dec, n int64) (*dec, error) { return d.Round(clampDigits(n)), nil }), "Rounds to a number of digits, halves away from zero.", tNum, tInt4)
	add("trunc", tF8, f1(math.Trunc), "Integer toward zero.", tF8)
	num("trunc", n1ok(func(d *dec) *dec { return d.Trunc(0) }), "Integer toward zero.", tNum).RetFn = numWhole
	num("trunc", fn2(func(d *dec, n int64) (*dec, error) { return d.Trunc(clampDigits(n)), nil }), "Cuts to a number of digits.", tNum, tInt4)
	num("mod", slowDecs(numeric.Mod), "Remainder of a division.", tNum, tNum)
	num("div", slowDecs(numeric.DivTrunc), "Integer quotient, cut toward zero.", tNum, tNum)
	num("gcd", slowDecs(func(a, b *dec) (*dec, error) { return numeric.GCD(a, b), nil }), "Greatest common divisor.", tNum, tNum)
	num("lcm", slowDecs(func(a, b *dec) (*dec, error) { return numeric.LCM(a, b), nil }), "Least common multiple.", tNum, tNum)
	for _, n := range []string{"power", "pow"} {
		add(n, tF8, fn2(powFloat), "Power.", tF8, tF8)
		num(n, slowDecs(numeric.Power), "Power.", tNum, tNum)
	}
	add("sqrt", tF8, fn1(sqrtFloat), "Square root.", tF8)
	num("sqrt", n1(numeric.Sqrt), "Square root.", tNum)
	add("cbrt", tF8, f1(math.Cbrt), "Cube root.", tF8)
	add("exp", tF8, fn1(func(a float64) (float64, error) {
		r := math.Exp(a)
		if math.IsInf(r, 0) && !math.IsInf(a, 0) {
			return 0, errFloatOverflow()
		}
		if r == 0 && !math.IsInf(a, 0) {
			return 0, errFloatUnderflow()
		}
		return r, nil
	}), "Power of e.", tF8)
	num("exp", n1(numeric.Exp), "Power of e.", tNum)
	add("ln", tF8, fn1(lnFloat), "Natural logarithm.", tF8)
	num("ln", n1(numeric.Ln), "Natural logarithm.", tNum)
	ten := numeric.FromInt64(10)
	for _, n := range []string{"log", "log10"} {
		add(n, tF8, fn1(log10Float), "Logarithm to base 10.", tF8)
		num(n, n1(func(d *dec) (*dec, error) { return numeric.Log(ten, d) }), "Logarithm to base 10.", tNum)
	}
	num("log", slowDecs(numeric.Log), "Logarithm of the second argument to the base of the first.", tNum, tNum)
	add("sign", tF8, f1(signFloat), "-1, 0 or 1.", tF8)
	num("sign", n1ok(func(d *dec) *dec {
		if d.Form == numeric.NaN {
			return d
		}
		return numeric.FromInt64(int64(d.Sign()))
	}), "-1, 0 or 1.", tNum)
	out = append(out, &Overload{Name: "pi", Ret: tF8, Strict: true, Kernel: constFn(func(*Call) (types.Datum, error) { return math.Pi, nil }), Doc: "The number pi."})
	add("degrees", tF8, overflowing(func(a float64) float64 { return a / rpd }), "Radians to degrees.", tF8)
	add("radians", tF8, overflowing(func(a float64) float64 { return a * rpd }), "Degrees to radians.", tF8)
	for _, t := range []struct {
		name string
		f    func(float64) float64
	}{{"sin", math.Sin}, {"cos", math.Cos}, {"tan", math.Tan}, {"cot", func(a float64) float64 { return 1 / math.Tan(a) }},
		{"sind", sind}, {"cosd", cosd}, {"tand", tand}, {"cotd", cotd}} {
		doc := "Trigonometric function, in radians."
		if t.name[len(t.name)-1] == 'd' {
			doc = "Trigonometric function, in degrees."
		}
		add(t.name, tF8, trig(t.f), doc, tF8)
	}
	add("asin", tF8, onUnit(math.Asin), "Inverse sine, in radians.", tF8)
	add("acos", tF8, onUnit(math.Acos), "Inverse cosine, in radians.", tF8)
	add("asind", tF8, onUnit(asind), "Inverse sine, in degrees.", tF8)
	add("acosd", tF8, onUnit(acosd), "Inverse cosine, in degrees.", tF8)
	add("atan", tF8, f1(math.Atan), "Inverse tangent, in radians.", tF8)
	add("atand", tF8, f1(func(a float64) float64 { return math.Atan(a) / atan1 * 45 }), "Inverse tangent, in degrees.", tF8)
	add("atan2", tF8, fn2(func(y, x float64) (float64, error) { return math.Atan2(y, x), nil }), "Inverse tangent of a quotient, in radians.", tF8, tF8)
	add("atan2d", tF8, fn2(func(y, x float64) (float64, error) { return math.Atan2(y, x) / atan1 * 45, nil }), "Inverse tangent of a quotient, in degrees.", tF8, tF8)
	add("sinh", tF8, f1(math.Sinh), "Hyperbolic sine.", tF8)
	add("cosh", tF8, f1(math.Cosh), "Hyperbolic cosine.", tF8)
	add("tanh", tF8, f1(math.Tanh), "Hyperbolic tangent.", tF8)
	add("asinh", tF8, f1(math.Asinh), "Inverse hyperbolic sine.", tF8)
	add("acosh", tF8, fn1(func(a float64) (float64, error) {
		if a < 1 {
			return 0, errInputRange()
		}
		return math.Acosh(a), nil
	}), "Inverse hyperbolic cosine.", tF8)
	add("atanh", tF8, onUnit(math.Atanh), "Inverse hyperbolic tangent.", tF8)
	add("factorial", tNum, fn1(func(n int64) (*dec, error) {
		if n < 0 {
			return nil, pgerr.New(pgerr.NumericValueOutOfRange, "factorial of a negative number is undefined")
		}
		d, err := numeric.Factorial(n)
		return d, numericErr(err)
	}), "Factorial.", tInt8)
	scaleFn := func(f func(*dec) int64) Kernel {
		return fn1(func(d *dec) (int64, error) {
			if d.Form != numeric.Finite {
				return 0, errNull
			}
			return f(d), nil
		})
	}
	add("scale", tInt4, scaleFn(func(d *dec) int64 { return int64(d.Scale) }), "Digits after the decimal point.", tNum).ExactArgs = exactNumerics
	add("min_scale", tInt4, scaleFn(func(d *dec) int64 { return int64(d.MinScale()) }), "Digits after the decimal point that are needed.", tNum).ExactArgs = exactNumerics
	num("trim_scale", n1ok((*dec).TrimScale), "The number without zeros at the end of its fraction.", tNum)
	add("width_bucket", tInt4, fn4(widthBucketFloat), "Number of the bucket, of equal width, that a value falls into.", tF8, tF8, tF8, tInt4)
	add("width_bucket", tInt4, fn4(widthBucketNum), "Number of the bucket, of equal width, that a value falls into.", tNum, tNum, tNum, tInt4)
	out = append(out,
		&Overload{Name: "random", Ret: tF8, Strict: true, Volatility: Volatile, Doc: "A random number in [0, 1).",
			Kernel: volatileFn(func(c *Call, _ []types.Datum) (types.Datum, error) { return sessionRand(c), nil })},
		&Overload{Name: "setseed", Args: []types.Type{tF8}, Ret: types.Of(types.Void), Strict: true, Volatility: Volatile, Doc: "Sets the seed of random().",
			Kernel: volatileFn(func(c *Call, a []types.Datum) (types.Datum, error) {
				if a[0] == nil {
					return nil, nil
				}
				s := a[0].(float64)
				if !(s >= -1 && s <= 1) {
					return nil, pgerr.New(pgerr.InvalidParameterValue, "setseed parameter %g is out of allowed range [-1,1]", s)
				}
				if c.Env != nil {
					seeds.Store(c.Env.BackendPID(), &lockedRand{r: rand.New(rand.NewPCG(math.Float64bits(s), 1))})
				}
				return "", nil
			})},
	)
	return out
}
