package numeric

import (
	"errors"
	"math"
	"math/big"
)

// Errors of the functions that are not defined everywhere.
var (
	ErrSqrtNegative  = errors.New("cannot take square root of a negative number")
	ErrLogZero       = errors.New("cannot take logarithm of zero")
	ErrLogNegative   = errors.New("cannot take logarithm of a negative number")
	ErrPowZero       = errors.New("zero raised to a negative power is undefined")
	ErrPowNegative   = errors.New("a negative number raised to a non-integer power yields a complex result")
	minSigDigits     = int32(16)
	maxDisplayScale  = int32(1000)
	maxResultScale   = 2000.0
	log10e           = 0.434294481903252
	pointNine, oneP1 = &Dec{Scale: 1}, &Dec{Scale: 1}
)

func init() {
	pointNine.Coef.SetInt64(9)
	oneP1.Coef.SetInt64(11)
}

func clampScale(s int32) int32 { return min(max(s, 0), maxDisplayScale) }

// Sqrt returns the square root with at least 16 significant digits.
func Sqrt(d *Dec) (*Dec, error) {
	switch d.Form {
	case NaN, PosInf:
		return d, nil
	case NegInf:
		return nil, ErrSqrtNegative
	}
	if d.Coef.Sign() < 0 {
		return nil, ErrSqrtNegative
	}
	w, _ := weight4(d)
	sweight := (w+1)*4/2 - 1
	return SqrtTo(d, clampScale(max(minSigDigits-sweight, d.Scale))), nil
}

// SqrtTo returns the square root of d >= 0 rounded to s digits.
func SqrtTo(d *Dec, s int32) *Dec {
	r := &Dec{Scale: s}
	if d.Coef.Sign() == 0 {
		return r
	}
	// N = d * 10^(2s); an odd or negative exponent is cut, which cannot change
	// the rounding of the root: the root is rounded from floor(N).
	e := 2*s - d.Scale
	n := new(big.Int)
	if e >= 0 {
		n.Mul(&d.Coef, pow10(e))
	} else {
		n.Quo(&d.Coef, pow10(-e))
	}
	r.Coef.Sqrt(n)
	var sq big.Int
	sq.Mul(&r.Coef, &r.Coef)
	sq.Sub(n, &sq)
	if sq.Cmp(&r.Coef) > 0 {
		r.Coef.Add(&r.Coef, pow10Big[0])
	}
	return r
}

// Exp returns e^d.
func Exp(d *Dec) (*Dec, error) {
	switch d.Form {
	case NaN, PosInf:
		return d, nil
	case NegInf:
		return new(Dec), nil
	}
	v := d.Float64()
	lv := math.Min(math.Max(v*log10e, -maxResultScale), maxResultScale)
	s := clampScale(max(minSigDigits-int32(lv), d.Scale))
	if v >= maxResultScale*3 {
		return nil, ErrOverflow
	}
	if v <= -maxResultScale*3 {
		return &Dec{Scale: s}, nil
	}
	return expTo(d, s), nil
}

// Ln returns the natural logarithm.
func Ln(d *Dec) (*Dec, error) {
	if err := logDomain(d); err != nil {
		return nil, err
	}
	if d.Form != Finite {
		return d, nil
	}
	s := clampScale(max(minSigDigits-lnWeight(d), d.Scale))
	return lnTo(d, s), nil
}

func logDomain(d *Dec) error {
	switch {
	case d.Form == NaN || d.Form == PosInf:
		return nil
	case d.Form == NegInf || d.Coef.Sign() < 0:
		return ErrLogNegative
	case d.Coef.Sign() == 0:
		return ErrLogZero
	}
	return nil
}

// lnWeight estimates the decimal weight of ln(d) as PostgreSQL does.
func lnWeight(d *Dec) int32 {
	if d.Coef.Sign() <= 0 {
		return 0
	}
	if Cmp(d, pointNine) >= 0 && Cmp(d, oneP1) <= 0 {
		x := Sub(d, FromInt64(1))
		if x.Coef.Sign() == 0 {
			return 0
		}
		w, f := weight4(x.Abs())
		return w*4 + int32(math.Log10(float64(f)))
	}
	w, f := weight4(d)
	digits, dw := float64(f), w*4
	// The second base-10000 digit, when there is one.
	if second, ok := secondDigit(d, w); ok {
		digits = digits*10000 + float64(second)
		dw -= 4
	}
	ln := math.Log(digits) + float64(dw)*2.302585092994046
	return int32(math.Log10(math.Abs(ln)))
}

// secondDigit returns the base-10000 digit behind the first one; ok is false
// when the value ends before it.
func secondDigit(d *Dec, w int32) (int32, bool) {
	// d = first*10^(4w) + second*10^(4(w-1)) + ...
	e := 4 * (w - 1) // exponent of the second digit's unit
	var t, q big.Int
	t.Abs(&d.Coef)
	shift := d.Scale + e
	if shift >= 0 {
		q.Quo(&t, pow10(shift))
	} else {
		q.Mul(&t, pow10(-shift))
	}
	q.Rem(&q, big.NewInt(10000))
	rest := d.TrimScale()
	// Does anything stand behind the first digit?
	if int32(rest.Scale) <= -4*w {
		var r big.Int
		if rest.Scale == 0 && w > 0 {
			r.Rem(&rest.Coef, pow10(4*w))
			if r.Sign() == 0 {
				return 0, false
			}
		} else {
			return 0, false
		}
	}
	return int32(q.Int64()), true
}

// Log returns the logarithm of num to base.
func Log(base, num *Dec) (*Dec, error) {
	if base.Form == NaN || num.Form == NaN {
		return &Dec{Form: NaN}, nil
	}
	if err := logDomain(base); err != nil {
		return nil, err
	}
	if err := logDomain(num); err != nil {
		return nil, err
	}
	if base.Form == PosInf {
		if num.Form == PosInf {
			return &Dec{Form: NaN}, nil
		}
		return new(Dec), nil
	}
	if num.Form == PosInf {
		return num, nil
	}
	wb, wn := lnWeight(base), lnWeight(num)
	rw := wn - wb
	s := clampScale(max(minSigDigits-rw, base.Scale, num.Scale))
	lb := lnTo(base, max(s+rw-wb+8, 0)+8)
	ln := lnTo(num, max(s+rw-wn+8, 0)+8)
	if lb.Coef.Sign() == 0 {
		return nil, ErrDivZero
	}
	return DivTo(ln, lb, s), nil
}

// IsInt reports whether d is a whole number.
func (d *Dec) IsInt() bool { return d.Form == Finite && d.MinScale() == 0 }

// Power returns base^exp.
func Power(base, exp *Dec) (*Dec, error) {
	if base.Form != Finite || exp.Form != Finite {
		return powerSpecial(base, exp)
	}
	if base.Coef.Sign() == 0 && exp.Coef.Sign() < 0 {
		return nil, ErrPowZero
	}
	if base.Coef.Sign() < 0 && !exp.IsInt() {
		return nil, ErrPowNegative
	}
	if exp.IsInt() {
		e := exp.Trunc(0)
		if e.Coef.IsInt64() && e.Coef.Int64() == int64(int32(e.Coef.Int64())) {
			return powInt(base, e.Coef.Int64())
		}
	}
	if base.Coef.Sign() == 0 {
		return &Dec{Scale: minSigDigits}, nil
	}
	neg := false
	if base.Coef.Sign() < 0 {
		e := exp.Trunc(0)
		neg = e.Coef.Bit(0) == 1
		base = base.Neg()
	}
	lw := lnWeight(base)
	// To about 8 digits: what PostgreSQL chooses the result's scale by.
	low := max(8-lw, 0)
	v := Mul(lnTo(base, low), exp).Round(low).Float64()
	if math.Abs(v) > maxResultScale*3.01 {
		if v > 0 {
			return nil, ErrOverflow
		}
		return &Dec{Scale: maxDisplayScale}, nil
	}
	v *= log10e
	s := clampScale(max(minSigDigits-int32(v), base.Scale, exp.Scale))
	// exp(exp*ln base) to s digits: the logarithm needs as many more as the
	// result and the exponent have before their points.
	sig := s + int32(math.Max(v, 0)) + int32(max(exp.Digits()-int(exp.Scale), 0)) + 16
	r := expTo(Mul(lnTo(base, sig), exp), s)
	if neg {
		r = r.Neg()
	}
	return r, nil
}

func powerSpecial(base, exp *Dec) (*Dec, error) {
	one := FromInt64(1)
	isOne := func(d *Dec) bool { return d.Form == Finite && Cmp(d, one) == 0 }
	if base.Form == NaN {
		if exp.IsZero() {
			return one, nil
		}
		return base, nil
	}
	if exp.Form == NaN {
		if isOne(base) {
			return one, nil
		}
		return exp, nil
	}
	if base.IsZero() && exp.Sign() < 0 {
		return nil, ErrPowZero
	}
	if base.Sign() < 0 && exp.Form == Finite && !exp.IsInt() {
		return nil, ErrPowNegative
	}
	if isOne(base) || exp.IsZero() {
		return one, nil
	}
	if base.IsZero() {
		return new(Dec), nil
	}
	if exp.Form != Finite {
		a := Cmp(base.Abs(), one)
		if base.Form != Finite {
			a = 1
		}
		if a == 0 {
			return one, nil
		}
		if (a > 0) == (exp.Form == PosInf) {
			return &Dec{Form: PosInf}, nil
		}
		return new(Dec), nil
	}
	if exp.Sign() < 0 {
		return new(Dec), nil
	}
	if base.Form == NegInf && exp.Trunc(0).Coef.Bit(0) == 1 {
		return base, nil
	}
	return &Dec{Form: PosInf}, nil
}

func powInt(base *Dec, exp int64) (*Dec, error) {
	s := clampScale(max(minSigDigits, base.Scale))
	switch exp {
	case 0:
		return FromInt64(1).Round(s), nil
	case 1:
		return base.Round(s), nil
	case -1:
		if base.Coef.Sign() == 0 {
			return nil, ErrDivZero
		}
		return DivTo(FromInt64(1), base, s), nil
	case 2:
		return Mul(base, base).Round(s), nil
	}
	if base.Coef.Sign() == 0 {
		if exp < 0 {
			return nil, ErrDivZero
		}
		return &Dec{Scale: s}, nil
	}
	f := float64(exp) * (log10Abs(&base.Coef) - float64(base.Scale))
	if f > 3*math.MaxInt16*4 {
		return nil, ErrOverflow
	}
	if f+1 < -float64(s) || f+1 < -float64(maxDisplayScale) {
		return &Dec{Scale: s}, nil
	}
	n := exp
	if n < 0 {
		n = -n
	}
	sig := int(math.Max(math.Abs(f), 1)) + int(s) + int(math.Log10(float64(n))) + 24
	r := FromInt64(1)
	b := base
	for m := n; m > 0; m >>= 1 {
		if m&1 == 1 {
			r = cutDigits(mulExact(r, b), sig)
		}
		if m > 1 {
			b = cutDigits(mulExact(b, b), sig)
		}
	}
	if exp < 0 {
		r = divDigits(FromInt64(1), r, s)
	} else {
		r = scaleTo(r, s)
	}
	if r.Digits()-int(r.Scale) > MaxIntDigits {
		return nil, ErrOverflow
	}
	return r, nil
}

// mulExact multiplies without the limit on the scale; negative scales may
// appear in between.
func mulExact(a, b *Dec) *Dec {
	r := &Dec{Scale: a.Scale + b.Scale}
	r.Coef.Mul(&a.Coef, &b.Coef)
	return r
}

// cutDigits rounds to at most n significant digits; the scale may become
// negative.
func cutDigits(d *Dec, n int) *Dec {
	k := digitsOf(&d.Coef) - n
	if k <= 0 {
		return d
	}
	r := &Dec{Scale: d.Scale - int32(k)}
	divRound(&r.Coef, &d.Coef, pow10(int32(k)))
	return r
}

// scaleTo rounds to scale s >= 0 from any scale, negative ones too.
func scaleTo(d *Dec, s int32) *Dec {
	r := &Dec{Scale: s}
	if d.Scale <= s {
		r.Coef.Mul(&d.Coef, pow10(s-d.Scale))
	} else {
		divRound(&r.Coef, &d.Coef, pow10(d.Scale-s))
	}
	return r
}

func divDigits(a, b *Dec, s int32) *Dec {
	r := &Dec{Scale: s}
	e := s - a.Scale + b.Scale
	num, den := new(big.Int).Set(&a.Coef), new(big.Int).Set(&b.Coef)
	if e >= 0 {
		num.Mul(num, pow10(e))
	} else {
		den.Mul(den, pow10(-e))
	}
	divRound(&r.Coef, num, den)
	return r
}

func log10Abs(v *big.Int) float64 {
	n := v.BitLen()
	if n == 0 {
		return 0
	}
	var t big.Int
	t.Abs(v)
	shift := 0
	if n > 60 {
		shift = n - 60
		t.Rsh(&t, uint(shift))
	}
	return math.Log10(float64(t.Int64())) + float64(shift)*0.30102999566398120
}

// Fixed-point logarithm and exponential: values are integers scaled by 2^prec.

func toFixed(d *Dec, prec uint) *big.Int {
	n := new(big.Int).Lsh(&d.Coef, prec)
	return n.Quo(n, pow10(d.Scale))
}

func fromFixed(v *big.Int, prec uint, scale int32) *Dec {
	r := &Dec{Scale: scale}
	n := new(big.Int).Mul(v, pow10(scale))
	divRound(&r.Coef, n, new(big.Int).Lsh(pow10Big[0], prec))
	return r
}

// fixedLn2 is ln 2 = 18 atanh(1/26) - 2 atanh(1/4801) + 8 atanh(1/8749).
func fixedLn2(prec uint) *big.Int {
	term := func(k, x int64) *big.Int {
		t := new(big.Int).Lsh(big.NewInt(1), prec+16)
		t.Quo(t, big.NewInt(x))
		sum := new(big.Int).Set(t)
		xx := big.NewInt(x * x)
		for n := int64(3); t.Sign() != 0; n += 2 {
			t.Quo(t, xx)
			sum.Add(sum, new(big.Int).Quo(t, big.NewInt(n)))
		}
		return sum.Mul(sum, big.NewInt(k))
	}
	v := term(18, 26)
	v.Sub(v, term(2, 4801))
	v.Add(v, term(8, 8749))
	return v.Rsh(v, 16)
}

// lnTo returns ln d rounded to scale digits; d > 0.
func lnTo(d *Dec, scale int32) *Dec {
	prec := uint(float64(scale)*3.3219281) + 96
	// d = m * 2^k with 3/4 <= m < 3/2.
	k := d.Coef.BitLen() - int(float64(d.Scale)*3.3219281)
	x := new(big.Int).Lsh(&d.Coef, prec)
	den := new(big.Int).Set(pow10(d.Scale))
	if k >= 0 {
		den.Lsh(den, uint(k))
	} else {
		x.Lsh(x, uint(-k))
	}
	x.Quo(x, den)
	one := new(big.Int).Lsh(big.NewInt(1), prec)
	hi := new(big.Int).Rsh(new(big.Int).Mul(one, big.NewInt(3)), 1)
	lo := new(big.Int).Rsh(new(big.Int).Mul(one, big.NewInt(3)), 2)
	for x.Cmp(hi) >= 0 {
		x.Rsh(x, 1)
		k++
	}
	for x.Cmp(lo) < 0 {
		x.Lsh(x, 1)
		k--
	}
	// ln m = 2 atanh((m-1)/(m+1))
	num := new(big.Int).Sub(x, one)
	y := new(big.Int).Quo(new(big.Int).Lsh(num, prec), new(big.Int).Add(x, one))
	yy := new(big.Int).Mul(y, y)
	yy.Rsh(yy, prec)
	sum := new(big.Int).Set(y)
	t := new(big.Int).Set(y)
	for n := int64(3); t.Sign() != 0 && t.BitLen() > 1; n += 2 {
		t.Mul(t, yy)
		t.Rsh(t, prec)
		sum.Add(sum, new(big.Int).Quo(t, big.NewInt(n)))
	}
	sum.Lsh(sum, 1)
	if k != 0 {
		sum.Add(sum, new(big.Int).Mul(fixedLn2(prec), big.NewInt(int64(k))))
	}
	return fromFixed(sum, prec, scale)
}

// expTo returns e^d rounded to scale digits; |d| is at most a few thousand.
func expTo(d *Dec, scale int32) *Dec {
	v := d.Float64()
	prec := uint(float64(scale)*3.3219281) + uint(math.Max(v*1.4427, 0)) + 128
	x := toFixed(d, prec)
	ln2 := fixedLn2(prec)
	k := new(big.Int).Div(x, ln2) // floor
	x.Sub(x, new(big.Int).Mul(k, ln2))
	const halvings = 8
	x.Rsh(x, halvings)
	sum := new(big.Int).Lsh(big.NewInt(1), prec)
	t := new(big.Int).Set(sum)
	for n := int64(1); ; n++ {
		t.Mul(t, x)
		t.Rsh(t, prec)
		t.Quo(t, big.NewInt(n))
		if t.Sign() == 0 {
			break
		}
		sum.Add(sum, t)
	}
	for i := 0; i < halvings; i++ {
		sum.Mul(sum, sum)
		sum.Rsh(sum, prec)
	}
	e := k.Int64()
	if e >= 0 {
		sum.Lsh(sum, uint(e))
	} else {
		sum.Rsh(sum, uint(-e))
	}
	return fromFixed(sum, prec, scale)
}

// Factorial returns n!.
func Factorial(n int64) (*Dec, error) {
	if n > 32177 {
		return nil, ErrOverflow
	}
	d := new(Dec)
	d.Coef.MulRange(1, max(n, 1))
	return d, nil
}

// GCD returns the greatest common divisor at the larger scale.
func GCD(a, b *Dec) *Dec {
	if a.Form != Finite || b.Form != Finite {
		return &Dec{Form: NaN}
	}
	x, y, s := align(a, b)
	r := &Dec{Scale: s}
	r.Coef.GCD(nil, nil, new(big.Int).Abs(x), new(big.Int).Abs(y))
	return r
}

// LCM returns the least common multiple at the larger scale.
func LCM(a, b *Dec) *Dec {
	if a.Form != Finite || b.Form != Finite {
		return &Dec{Form: NaN}
	}
	x, y, s := align(a, b)
	r := &Dec{Scale: s}
	if x.Sign() == 0 || y.Sign() == 0 {
		return r
	}
	var g big.Int
	g.GCD(nil, nil, new(big.Int).Abs(x), new(big.Int).Abs(y))
	r.Coef.Quo(x, &g)
	r.Coef.Mul(&r.Coef, y)
	r.Coef.Abs(&r.Coef)
	return r
}
