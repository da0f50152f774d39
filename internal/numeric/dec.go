// Package numeric holds decimal values of any precision as PostgreSQL's numeric
// knows them: a scale per value, NaN and the infinities. It also defines the
// byte form of such values in Binary columns (see types.Type.Prec).
package numeric

import (
	"encoding/binary"
	"math/big"

	"github.com/apache/arrow/go/v15/arrow/decimal128"
)

// Form tells finite values from the special ones. The order is that of
// comparison: -Infinity < finite < Infinity < NaN.
type Form uint8

// The forms.
const (
	Finite Form = iota
	NaN
	PosInf
	NegInf
)

// Dec is Coef * 10^-Scale when Form is Finite. Scale is PostgreSQL's display
// scale and never negative. A Dec that has been handed on is not changed.
type Dec struct {
	Form  Form
	Scale int32
	Coef  big.Int
}

// FromInt64 returns v with scale 0.
func FromInt64(v int64) *Dec { d := new(Dec); d.Coef.SetInt64(v); return d }

// From128 returns the value of one cell of a Decimal128 column.
func From128(n decimal128.Num, scale int32) *Dec {
	d := &Dec{Scale: scale}
	d.Coef.Set(n.BigInt())
	return d
}

// AppendEncoded appends the byte form of d:
//
//	byte form | uint32 LE scale | coefficient as big-endian two's complement
func AppendEncoded(dst []byte, d *Dec) []byte {
	dst = append(dst, byte(d.Form))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(d.Scale))
	if d.Form != Finite || d.Coef.Sign() == 0 {
		return dst
	}
	if d.Coef.Sign() > 0 {
		b := d.Coef.Bytes()
		if b[0]&0x80 != 0 {
			dst = append(dst, 0)
		}
		return append(dst, b...)
	}
	// The fewest bytes: -128 is one. Two forms of a value would be two values to
	// whoever compares bytes.
	var t big.Int
	n := t.Not(&d.Coef).BitLen()/8 + 1
	t.Lsh(big.NewInt(1), uint(8*n))
	t.Add(&t, &d.Coef)
	b := t.Bytes()
	for len(b) < n {
		b = append([]byte{0}, b...)
	}
	return append(dst, b...)
}

// Decode reads the byte form.
func Decode(b []byte) *Dec {
	d := new(Dec)
	if len(b) < 5 {
		return d
	}
	d.Form = Form(b[0])
	d.Scale = int32(binary.LittleEndian.Uint32(b[1:]))
	b = b[5:]
	if len(b) == 0 {
		return d
	}
	d.Coef.SetBytes(b)
	if b[0]&0x80 != 0 {
		var t big.Int
		t.Lsh(big.NewInt(1), uint(8*len(b)))
		d.Coef.Sub(&d.Coef, &t)
	}
	return d
}

func rank(f Form) int {
	switch f {
	case NegInf:
		return 0
	case PosInf:
		return 2
	case NaN:
		return 3
	}
	return 1
}

// Pow10 returns 10^n for n >= 0.
func Pow10(n int32) *big.Int {
	return new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(n)), nil)
}

// Cmp compares a and b by value in PostgreSQL's order; NaN equals NaN and is
// greatest.
func Cmp(a, b *Dec) int {
	if ra, rb := rank(a.Form), rank(b.Form); ra != rb || a.Form != Finite {
		return ra - rb
	}
	if a.Scale == b.Scale {
		return a.Coef.Cmp(&b.Coef)
	}
	if a.Scale < b.Scale {
		t := new(big.Int).Mul(&a.Coef, Pow10(b.Scale-a.Scale))
		return t.Cmp(&b.Coef)
	}
	t := new(big.Int).Mul(&b.Coef, Pow10(a.Scale-b.Scale))
	return a.Coef.Cmp(t)
}

// AppendInt64 appends the byte form of v * 10^-scale.
func AppendInt64(dst []byte, v int64, scale int32) []byte {
	dst = append(dst, byte(Finite))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(scale))
	if v == 0 {
		return dst
	}
	n := 1
	for x := v; x > 127 || x < -128; x >>= 8 {
		n++
	}
	for n--; n >= 0; n-- {
		dst = append(dst, byte(v>>(8*n)))
	}
	return dst
}
