package pgbin

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// numeric on the wire:
//
//	int16 digits | int16 weight | int16 sign | int16 dscale | digits, int16 each
//
// in base 10000: the value is the sum of digit i times 10000^(weight-i).
// Leading and trailing zero digits are left out; dscale keeps the zeros that are
// shown. Signs: 0 plus, 0x4000 minus, 0xC000 NaN, 0xD000 and 0xF000 infinities.
const (
	numPos    = 0x0000
	numNeg    = 0x4000
	numNaN    = 0xC000
	numPosInf = 0xD000
	numNegInf = 0xF000
	// infScale is the dscale of infinities: bits of the on-disk form that
	// numeric_send lets through.
	infScale = 0x20
)

var pow10 = [...]uint64{1, 10, 100, 1000, 10000}

// numericAppender writes either physical form of numeric.
func numericAppender(a arrow.Array) func([]byte, int) []byte {
	if d, ok := a.(*array.Decimal128); ok {
		v := d.Values()
		scale := int(d.DataType().(*arrow.Decimal128Type).Scale)
		return func(dst []byte, row int) []byte {
			n := v[row]
			hi, lo := uint64(n.HighBits()), n.LowBits()
			return AppendNumeric128(dst, hi, lo, scale)
		}
	}
	s := vec.ViewStr(a)
	return func(dst []byte, row int) []byte { return AppendNumeric(dst, s.At(row)) }
}

func appendNumericHead(dst []byte, ndigits, weight int, sign uint16, dscale int) []byte {
	be := binary.BigEndian
	dst = be.AppendUint16(dst, uint16(ndigits))
	dst = be.AppendUint16(dst, uint16(int16(weight)))
	dst = be.AppendUint16(dst, sign)
	return be.AppendUint16(dst, uint16(dscale))
}

// AppendNumeric128 writes a two's complement 128-bit coefficient times
// 10^-scale.
func AppendNumeric128(dst []byte, hi, lo uint64, scale int) []byte {
	sign := uint16(numPos)
	if int64(hi) < 0 {
		sign = numNeg
		var borrow uint64
		lo, borrow = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, borrow)
	}
	// Digits from the lowest up. A scale that is not a multiple of four makes the
	// lowest digit of the fraction a partial one.
	var d [12]uint16
	n := 0
	div := func(by uint64) uint64 {
		var r uint64
		if hi != 0 {
			q := hi / by
			r = hi % by
			lo, r = bits.Div64(r, lo, by)
			hi = q
			return r
		}
		r = lo % by
		lo /= by
		return r
	}
	if k := scale & 3; k != 0 {
		d[0] = uint16(div(pow10[k]) * pow10[4-k])
		n = 1
	}
	for hi|lo != 0 {
		d[n] = uint16(div(10000))
		n++
	}
	frac := (scale + 3) / 4 // digits behind the point
	low := 0
	for low < n && d[low] == 0 {
		low++
	}
	if low == n {
		return appendNumericHead(dst, 0, 0, numPos, scale)
	}
	for d[n-1] == 0 {
		n--
	}
	dst = appendNumericHead(dst, n-low, n-frac-1, sign, scale)
	for i := n - 1; i >= low; i-- {
		dst = append(dst, byte(d[i]>>8), byte(d[i]))
	}
	return dst
}

// AppendNumeric writes the byte form of internal/numeric. Coefficients up
// to 16 bytes, all but a few, need no big integer.
func AppendNumeric(dst, b []byte) []byte {
	if len(b) < 5 {
		return appendNumericHead(dst, 0, 0, numPos, 0)
	}
	switch numeric.Form(b[0]) {
	case numeric.NaN:
		return appendNumericHead(dst, 0, 0, numNaN, 0)
	case numeric.PosInf:
		return appendNumericHead(dst, 0, 0, numPosInf, infScale)
	case numeric.NegInf:
		return appendNumericHead(dst, 0, 0, numNegInf, infScale)
	}
	scale := int(int32(binary.LittleEndian.Uint32(b[1:])))
	c := b[5:]
	if len(c) <= 16 {
		var hi, lo uint64
		if len(c) > 0 && c[0]&0x80 != 0 {
			hi, lo = ^uint64(0), ^uint64(0)
		}
		for _, x := range c {
			hi = hi<<8 | lo>>56
			lo = lo<<8 | uint64(x)
		}
		return AppendNumeric128(dst, hi, lo, scale)
	}
	return appendNumericDec(dst, numeric.Decode(b))
}

// appendNumericDec writes any finite value, through its decimal digits.
func appendNumericDec(dst []byte, v *numeric.Dec) []byte {
	sign := uint16(numPos)
	s := v.Coef.Append(nil, 10)
	if s[0] == '-' {
		sign, s = numNeg, s[1:]
	}
	scale := int(v.Scale)
	// Zeros on both sides, so that the point lies between two base-10000 digits.
	whole := len(s) - scale
	front := 0
	if whole <= 0 {
		front = 4 - whole
	}
	front += (4 - (whole+front)%4) % 4
	whole += front
	back := (4 - (len(s)+front)%4) % 4
	padded := make([]byte, 0, front+len(s)+back)
	padded = append(padded, zeros(front)...)
	padded = append(padded, s...)
	s = append(padded, zeros(back)...)
	weight := whole/4 - 1
	var d []uint16
	for ; len(s) > 0; s = s[4:] {
		d = append(d, uint16(s[0]-'0')*1000+uint16(s[1]-'0')*100+uint16(s[2]-'0')*10+uint16(s[3]-'0'))
	}
	for len(d) > 0 && d[0] == 0 {
		d = d[1:]
		weight--
	}
	for len(d) > 0 && d[len(d)-1] == 0 {
		d = d[:len(d)-1]
	}
	if len(d) == 0 {
		return appendNumericHead(dst, 0, 0, numPos, scale)
	}
	dst = appendNumericHead(dst, len(d), weight, sign, scale)
	for _, x := range d {
		dst = append(dst, byte(x>>8), byte(x))
	}
	return dst
}

func zeros(n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = '0'
	}
	return b
}
