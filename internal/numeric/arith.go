package numeric

import (
	"errors"
	"math"
	"math/big"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow/decimal128"
)

// ErrDivZero is the error of Div, Mod and DivTrunc by zero.
var ErrDivZero = errors.New("division by zero")

// ErrOverflow says that a result has too many digits for numeric.
var ErrOverflow = ErrRange

type u128 struct{ hi, lo uint64 }

func div128(hi, lo, d uint64) (q u128, r uint64) {
	q.hi, r = bits.Div64(0, hi, d)
	q.lo, r = bits.Div64(r, lo, d)
	return q, r
}

var pow10Big [64]*big.Int

func init() {
	t := big.NewInt(1)
	for i := range pow10Big {
		pow10Big[i] = new(big.Int).Set(t)
		t.Mul(t, big.NewInt(10))
	}
}

// pow10 is Pow10 without an allocation for small n; the result is shared.
func pow10(n int32) *big.Int {
	if int(n) < len(pow10Big) {
		return pow10Big[n]
	}
	return Pow10(n)
}

// IsZero reports whether d is a finite zero.
func (d *Dec) IsZero() bool { return d.Form == Finite && d.Coef.Sign() == 0 }

// Sign returns -1, 0 or 1; 0 for NaN.
func (d *Dec) Sign() int {
	switch d.Form {
	case PosInf:
		return 1
	case NegInf:
		return -1
	case NaN:
		return 0
	}
	return d.Coef.Sign()
}

// Neg returns -d.
func (d *Dec) Neg() *Dec {
	r := &Dec{Form: d.Form, Scale: d.Scale}
	switch d.Form {
	case PosInf:
		r.Form = NegInf
	case NegInf:
		r.Form = PosInf
	case Finite:
		r.Coef.Neg(&d.Coef)
	}
	return r
}

// Abs returns |d|.
func (d *Dec) Abs() *Dec {
	if d.Sign() < 0 {
		return d.Neg()
	}
	return d
}

// align returns both coefficients at the larger of the two scales.
func align(a, b *Dec) (x, y *big.Int, scale int32) {
	switch {
	case a.Scale == b.Scale:
		return &a.Coef, &b.Coef, a.Scale
	case a.Scale < b.Scale:
		return new(big.Int).Mul(&a.Coef, pow10(b.Scale-a.Scale)), &b.Coef, b.Scale
	}
	return &a.Coef, new(big.Int).Mul(&b.Coef, pow10(a.Scale-b.Scale)), a.Scale
}

// Add returns a+b at the larger scale.
func Add(a, b *Dec) *Dec {
	if a.Form != Finite || b.Form != Finite {
		switch {
		case a.Form == NaN || b.Form == NaN:
			return &Dec{Form: NaN}
		case a.Form == Finite:
			return &Dec{Form: b.Form}
		case b.Form == Finite || a.Form == b.Form:
			return &Dec{Form: a.Form}
		}
		return &Dec{Form: NaN}
	}
	x, y, s := align(a, b)
	r := &Dec{Scale: s}
	r.Coef.Add(x, y)
	return r
}

// Sub returns a-b at the larger scale.
func Sub(a, b *Dec) *Dec {
	if a.Form != Finite || b.Form != Finite {
		return Add(a, b.Neg())
	}
	x, y, s := align(a, b)
	r := &Dec{Scale: s}
	r.Coef.Sub(x, y)
	return r
}

func mulSign(a, b *Dec) *Dec {
	switch a.Sign() * b.Sign() {
	case 1:
		return &Dec{Form: PosInf}
	case -1:
		return &Dec{Form: NegInf}
	}
	return &Dec{Form: NaN}
}

// Mul returns a*b exactly, scale the sum of the scales (cut by rounding at
// MaxScale).
func Mul(a, b *Dec) *Dec {
	if a.Form != Finite || b.Form != Finite {
		if a.Form == NaN || b.Form == NaN {
			return &Dec{Form: NaN}
		}
		return mulSign(a, b)
	}
	r := &Dec{Scale: a.Scale + b.Scale}
	r.Coef.Mul(&a.Coef, &b.Coef)
	if r.Scale > MaxScale {
		return r.Round(MaxScale)
	}
	return r
}

// weight4 returns what PostgreSQL's base-10000 form has as weight and first
// digit of |d|; 0, 0 for zero.
func weight4(d *Dec) (weight, first int32) {
	if d.Coef.Sign() == 0 {
		return 0, 0
	}
	n := int32(digitsOf(&d.Coef)) - d.Scale // digits before the point, may be <= 0
	w := n - 1                              // decimal exponent of the first digit
	weight = floorDiv(w, 4)
	// The first base-10000 digit holds the (w - 4*weight + 1) leading digits.
	lead := w - 4*weight + 1
	total := int32(digitsOf(&d.Coef))
	var t big.Int
	t.Abs(&d.Coef)
	if total > lead {
		t.Quo(&t, pow10(total-lead))
		return weight, int32(t.Int64())
	}
	v := t.Int64()
	for ; total < lead; total++ {
		v *= 10
	}
	return weight, int32(v)
}

func floorDiv(a, b int32) int32 {
	q := a / b
	if a%b != 0 && (a < 0) != (b < 0) {
		q--
	}
	return q
}

// digitsOf returns the number of decimal digits of |v|, 0 for zero.
func digitsOf(v *big.Int) int {
	n := v.BitLen()
	if n == 0 {
		return 0
	}
	// n bits: between floor((n-1)*log10 2)+1 and floor(n*log10 2)+1 digits.
	lo := int(float64(n-1)*0.30102999566398120) + 1
	if v.CmpAbs(pow10(int32(lo))) >= 0 {
		return lo + 1
	}
	if lo > 1 && v.CmpAbs(pow10(int32(lo-1))) < 0 {
		return lo - 1
	}
	return lo
}

// Digits returns the number of digits of the coefficient.
func (d *Dec) Digits() int { return digitsOf(&d.Coef) }

// DivScale is PostgreSQL's choice of the scale of a quotient: at least 16
// significant digits, and no less than either input has.
func DivScale(a, b *Dec) int32 {
	wa, fa := weight4(a)
	wb, fb := weight4(b)
	q := wa - wb
	if fa <= fb {
		q--
	}
	s := int32(16) - q*4
	s = max(s, a.Scale, b.Scale, 0)
	return min(s, 1000)
}

// Div returns a/b with PostgreSQL's result scale, rounded half away from zero.
func Div(a, b *Dec) (*Dec, error) {
	if a.Form != Finite || b.Form != Finite {
		switch {
		case a.Form == NaN || b.Form == NaN:
			return &Dec{Form: NaN}, nil
		case a.Form == Finite:
			return &Dec{}, nil
		case b.Form != Finite:
			return &Dec{Form: NaN}, nil
		case b.Coef.Sign() == 0:
			return nil, ErrDivZero
		}
		return mulSign(a, b), nil
	}
	if b.Coef.Sign() == 0 {
		return nil, ErrDivZero
	}
	return DivTo(a, b, DivScale(a, b)), nil
}

// DivTo returns a/b rounded half away from zero to scale digits; both finite, b
// not zero.
func DivTo(a, b *Dec, scale int32) *Dec {
	r := &Dec{Scale: scale}
	e := scale - a.Scale + b.Scale
	num, den := &a.Coef, &b.Coef
	if e >= 0 {
		num = new(big.Int).Mul(num, pow10(e))
	} else {
		den = new(big.Int).Mul(den, pow10(-e))
	}
	divRound(&r.Coef, num, den)
	return r
}

// divRound sets z = num/den rounded half away from zero.
func divRound(z, num, den *big.Int) {
	var rem big.Int
	z.QuoRem(num, den, &rem)
	rem.Lsh(&rem, 1)
	if rem.CmpAbs(den) >= 0 {
		if num.Sign()*den.Sign() < 0 {
			z.Sub(z, pow10Big[0])
		} else {
			z.Add(z, pow10Big[0])
		}
	}
}

// DivTrunc is SQL's div(a, b): the quotient without its fraction.
func DivTrunc(a, b *Dec) (*Dec, error) {
	if a.Form != Finite || b.Form != Finite || b.Coef.Sign() == 0 {
		r, err := Div(a, b)
		return r, err
	}
	x, y, _ := align(a, b)
	r := new(Dec)
	r.Coef.Quo(x, y)
	return r, nil
}

// Mod returns the remainder of a/b with a's sign, at the larger scale.
func Mod(a, b *Dec) (*Dec, error) {
	if a.Form != Finite || b.Form != Finite {
		switch {
		case a.Form == NaN || b.Form == NaN:
			return &Dec{Form: NaN}, nil
		case a.Form != Finite:
			if b.IsZero() {
				return nil, ErrDivZero
			}
			return &Dec{Form: NaN}, nil
		}
		return a, nil
	}
	if b.Coef.Sign() == 0 {
		return nil, ErrDivZero
	}
	x, y, s := align(a, b)
	r := &Dec{Scale: s}
	r.Coef.Rem(x, y)
	return r, nil
}

// Round rounds half away from zero to scale digits; a negative scale rounds
// before the point and leaves scale 0. The result has exactly max(scale, 0)
// digits.
func (d *Dec) Round(scale int32) *Dec { return d.rescale(scale, true) }

// Trunc is Round toward zero.
func (d *Dec) Trunc(scale int32) *Dec { return d.rescale(scale, false) }

func (d *Dec) rescale(scale int32, round bool) *Dec {
	if d.Form != Finite || scale == d.Scale {
		return d
	}
	r := &Dec{Scale: max(scale, 0)}
	if scale > d.Scale {
		r.Coef.Mul(&d.Coef, pow10(scale-d.Scale))
		return r
	}
	drop := d.Scale - scale
	if int(drop) > digitsOf(&d.Coef)+1 {
		return r
	}
	if round {
		divRound(&r.Coef, &d.Coef, pow10(drop))
	} else {
		r.Coef.Quo(&d.Coef, pow10(drop))
	}
	if scale < 0 {
		r.Coef.Mul(&r.Coef, pow10(-scale))
	}
	return r
}

// Floor returns the largest whole number not above d, with scale 0.
func (d *Dec) Floor() *Dec {
	if d.Form != Finite {
		return d
	}
	t := d.Trunc(0)
	if d.Coef.Sign() < 0 && Cmp(t, d) != 0 {
		return Sub(t, FromInt64(1))
	}
	return t
}

// Ceil returns the smallest whole number not below d, with scale 0.
func (d *Dec) Ceil() *Dec {
	if d.Form != Finite {
		return d
	}
	t := d.Trunc(0)
	if d.Coef.Sign() > 0 && Cmp(t, d) != 0 {
		return Add(t, FromInt64(1))
	}
	return t
}

// MinScale returns the digits after the point that are needed.
func (d *Dec) MinScale() int32 {
	if d.Form != Finite || d.Coef.Sign() == 0 {
		return 0
	}
	var q, r big.Int
	q.Set(&d.Coef)
	s := d.Scale
	for s > 0 {
		var t big.Int
		t.QuoRem(&q, pow10Big[1], &r)
		if r.Sign() != 0 {
			break
		}
		q.Set(&t)
		s--
	}
	return s
}

// TrimScale drops zeros at the end of the fraction.
func (d *Dec) TrimScale() *Dec { return d.Trunc(d.MinScale()) }

// Int64 rounds half away from zero; ok is false when the result does not fit or
// d is not finite.
func (d *Dec) Int64() (v int64, ok bool) {
	if d.Form != Finite {
		return 0, false
	}
	r := d.Round(0)
	if !r.Coef.IsInt64() {
		return 0, false
	}
	return r.Coef.Int64(), true
}

// Float64 returns the nearest float64, infinite when out of range.
func (d *Dec) Float64() float64 {
	switch d.Form {
	case NaN:
		return math.NaN()
	case PosInf:
		return math.Inf(1)
	case NegInf:
		return math.Inf(-1)
	}
	if d.Coef.IsInt64() {
		v := d.Coef.Int64()
		if d.Scale == 0 {
			return float64(v)
		}
		// Exact: both numbers are, and division rounds once.
		if d.Scale <= 22 && v < 1<<53 && v > -1<<53 {
			return float64(v) / exact10[d.Scale]
		}
	}
	return parseFloat(d.String())
}

var exact10 = [...]float64{1e0, 1e1, 1e2, 1e3, 1e4, 1e5, 1e6, 1e7, 1e8, 1e9, 1e10, 1e11,
	1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22}

// To128 returns d at the given scale as a Decimal128 cell; ok is false when
// digits would be lost or there are more than 38.
func (d *Dec) To128(scale int32) (n decimal128.Num, ok bool) {
	if d.Form != Finite {
		return n, false
	}
	c := &d.Coef
	if d.Scale != scale {
		if d.Scale > scale {
			var q, r big.Int
			q.QuoRem(c, pow10(d.Scale-scale), &r)
			if r.Sign() != 0 {
				return n, false
			}
			c = &q
		} else {
			c = new(big.Int).Mul(c, pow10(scale-d.Scale))
		}
	}
	if c.CmpAbs(pow10Big[38]) >= 0 {
		return n, false
	}
	return decimal128.FromBigInt(c), true
}

// Overflows reports whether d has more digits than PostgreSQL's numeric holds.
func (d *Dec) Overflows() bool {
	return d.Form == Finite && d.Coef.BitLen() > 400000 && digitsOf(&d.Coef)-int(d.Scale) > MaxIntDigits
}
