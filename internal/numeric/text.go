package numeric

import (
	"errors"
	"math/big"
	"strconv"
	"strings"

	"github.com/apache/arrow/go/v15/arrow/decimal128"
)

// Errors of Parse.
var (
	// ErrSyntax says that a text is no number.
	ErrSyntax = errors.New("not a number")
	// ErrRange says that a value does not fit PostgreSQL's numeric format.
	ErrRange = errors.New("value overflows numeric format")
)

// The limits of PostgreSQL's numeric: digits before the decimal point, digits
// after it.
const (
	MaxIntDigits = 131072
	MaxScale     = 16383
)

func isSpace(c byte) bool { return c == ' ' || c >= 9 && c <= 13 }

// Parse reads PostgreSQL's text form: blanks around, sign, digits, fraction,
// exponent, or NaN and [+-]Inf[inity] in any case. The scale is the number of
// digits after the point, less the exponent.
func Parse(s string) (*Dec, error) {
	for len(s) > 0 && isSpace(s[0]) {
		s = s[1:]
	}
	for len(s) > 0 && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	neg := false
	body := s
	if body != "" && (body[0] == '-' || body[0] == '+') {
		neg = body[0] == '-'
		body = body[1:]
	}
	if body == "" {
		return nil, ErrSyntax
	}
	if c := body[0] | 0x20; c == 'n' || c == 'i' {
		switch strings.ToLower(body) {
		case "nan":
			if len(body) != len(s) {
				return nil, ErrSyntax
			}
			return &Dec{Form: NaN}, nil
		case "inf", "infinity":
			if neg {
				return &Dec{Form: NegInf}, nil
			}
			return &Dec{Form: PosInf}, nil
		}
		return nil, ErrSyntax
	}
	i, digits, frac := 0, 0, 0
	for i < len(body) && body[i] >= '0' && body[i] <= '9' {
		i++
	}
	digits = i
	text := body[:i]
	if i < len(body) && body[i] == '.' {
		i++
		from := i
		for i < len(body) && body[i] >= '0' && body[i] <= '9' {
			i++
		}
		frac = i - from
		digits += frac
		if frac > 0 {
			text += body[from:i]
		}
	}
	if digits == 0 {
		return nil, ErrSyntax
	}
	exp := 0
	if i < len(body) && body[i]|0x20 == 'e' {
		e, err := strconv.ParseInt(body[i+1:], 10, 64)
		if err != nil || strings.ContainsRune(body[i+1:], '_') {
			if errors.Is(err, strconv.ErrRange) {
				return nil, ErrRange
			}
			return nil, ErrSyntax
		}
		if e > 1<<30 || e < -(1<<30) {
			return nil, ErrRange
		}
		exp = int(e)
		i = len(body)
	}
	if i != len(body) {
		return nil, ErrSyntax
	}
	scale := frac - exp
	d := new(Dec)
	text = strings.TrimLeft(text, "0")
	if text != "" && len(text)-scale > MaxIntDigits {
		return nil, ErrRange
	}
	if scale > MaxScale {
		return nil, ErrRange
	}
	if len(text) <= 18 {
		v, _ := strconv.ParseInt("0"+text, 10, 64)
		d.Coef.SetInt64(v)
	} else if _, ok := d.Coef.SetString(text, 10); !ok {
		return nil, ErrSyntax
	}
	if scale < 0 {
		if d.Coef.Sign() != 0 {
			d.Coef.Mul(&d.Coef, Pow10(int32(-scale)))
		}
		scale = 0
	}
	if neg {
		d.Coef.Neg(&d.Coef)
	}
	d.Scale = int32(scale)
	return d, nil
}

// AppendText appends PostgreSQL's text form of d: all Scale digits, no exponent.
func (d *Dec) AppendText(dst []byte) []byte {
	switch d.Form {
	case NaN:
		return append(dst, "NaN"...)
	case PosInf:
		return append(dst, "Infinity"...)
	case NegInf:
		return append(dst, "-Infinity"...)
	}
	if d.Coef.IsInt64() {
		return AppendScaled(dst, d.Coef.Int64(), int(d.Scale))
	}
	if d.Coef.Sign() < 0 {
		dst = append(dst, '-')
	}
	from := len(dst)
	var t big.Int
	dst = t.Abs(&d.Coef).Append(dst, 10)
	return point(dst, from, int(d.Scale))
}

// String is AppendText as a string.
func (d *Dec) String() string { return string(d.AppendText(nil)) }

// point puts the decimal point into the digits dst[from:], scale from the end.
func point(dst []byte, from, scale int) []byte {
	if scale == 0 {
		return dst
	}
	n := len(dst) - from
	if n <= scale {
		pad := scale - n + 1
		for i := 0; i < pad; i++ {
			dst = append(dst, '0')
		}
		copy(dst[from+pad:], dst[from:from+n])
		for i := 0; i < pad; i++ {
			dst[from+i] = '0'
		}
		n += pad
	}
	dst = append(dst, 0)
	at := from + n - scale
	copy(dst[at+1:], dst[at:len(dst)-1])
	dst[at] = '.'
	return dst
}

// AppendScaled appends v * 10^-scale with all scale digits.
func AppendScaled(dst []byte, v int64, scale int) []byte {
	if scale == 0 {
		return strconv.AppendInt(dst, v, 10)
	}
	u := uint64(v)
	if v < 0 {
		dst = append(dst, '-')
		u = -u
	}
	from := len(dst)
	dst = strconv.AppendUint(dst, u, 10)
	return point(dst, from, scale)
}

// Append128 appends the text of a Decimal128 cell with the given scale.
func Append128(dst []byte, n decimal128.Num, scale int) []byte {
	hi, lo := n.HighBits(), n.LowBits()
	if hi == 0 && lo < 1<<63 || hi == -1 && lo >= 1<<63 {
		return AppendScaled(dst, int64(lo), scale)
	}
	if hi < 0 {
		dst = append(dst, '-')
		n = n.Negate()
		hi, lo = n.HighBits(), n.LowBits()
	}
	from := len(dst)
	// 128 bits by 10^19, twice: at most 39 digits.
	q1, r := div128(uint64(hi), lo, 1e19)
	if q1.hi == 0 && q1.lo == 0 {
		return point(strconv.AppendUint(dst, r, 10), from, scale)
	}
	if q1.hi == 0 {
		dst = strconv.AppendUint(dst, q1.lo, 10)
	} else {
		q2, r2 := div128(q1.hi, q1.lo, 1e19)
		dst = strconv.AppendUint(dst, q2.lo, 10)
		dst = appendPadded(dst, r2, 19)
	}
	dst = appendPadded(dst, r, 19)
	return point(dst, from, scale)
}

func appendPadded(dst []byte, v uint64, width int) []byte {
	n := len(dst)
	for i := 0; i < width; i++ {
		dst = append(dst, '0')
	}
	for i := n + width - 1; v > 0; i-- {
		dst[i] = byte('0' + v%10)
		v /= 10
	}
	return dst
}
