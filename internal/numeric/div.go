package numeric

import (
	"encoding/binary"
	"math/bits"
)

var pow10u64 = func() (p [20]uint64) {
	p[0] = 1
	for i := 1; i < len(p); i++ {
		p[i] = p[i-1] * 10
	}
	return
}()

// digits64 is the number of decimal digits of v, 0 for zero.
func digits64(v uint64) int32 {
	if v == 0 {
		return 0
	}
	n := int32(bits.Len64(v)) * 1233 >> 12
	if v >= pow10u64[n] {
		n++
	}
	return n
}

// weight64 is weight4 of v * 10^-scale.
func weight64(v uint64, scale int32) (weight, first int32) {
	if v == 0 {
		return 0, 0
	}
	total := digits64(v)
	w := total - scale - 1
	weight = floorDiv(w, 4)
	lead := w - 4*weight + 1
	if total > lead {
		return weight, int32(v / pow10u64[total-lead])
	}
	return weight, int32(v * pow10u64[lead-total])
}

func abs64(v int64) uint64 {
	if v < 0 {
		return -uint64(v)
	}
	return uint64(v)
}

// AppendQuotient appends the byte form of (a*10^-sa) / (b*10^-sb), as Div
// computes it. ok is false when b is zero or the numbers are too long for 128
// bits; then dst is as it was.
func AppendQuotient(dst []byte, a int64, sa int32, b int64, sb int32) (out []byte, ok bool) {
	if b == 0 {
		return dst, false
	}
	ua, ub := abs64(a), abs64(b)
	wa, fa := weight64(ua, sa)
	wb, fb := weight64(ub, sb)
	q := wa - wb
	if fa <= fb {
		q--
	}
	scale := min(max(16-q*4, sa, sb, 0), maxDisplayScale)
	if ua == 0 {
		return AppendInt64(dst, 0, scale), true
	}
	e := scale - sa + sb
	if e < 0 || e > 38 {
		return dst, false
	}
	hi, lo := bits.Mul64(ua, pow10u64[min(e, 19)])
	if e > 19 {
		p := pow10u64[e-19]
		over, top := bits.Mul64(hi, p)
		mid, low := bits.Mul64(lo, p)
		var c uint64
		hi, c = bits.Add64(top, mid, 0)
		if over != 0 || c != 0 {
			return dst, false
		}
		lo = low
	}
	if hi>>63 != 0 {
		return dst, false
	}
	quo, rem := div128(hi, lo, ub)
	if rem >= ub-rem {
		var c uint64
		quo.lo, c = bits.Add64(quo.lo, 1, 0)
		quo.hi += c
	}
	return appendCoef(dst, quo.hi, quo.lo, (a < 0) != (b < 0), scale), true
}

// appendCoef appends the byte form of ±(hi,lo) * 10^-scale; hi is below 2^63.
func appendCoef(dst []byte, hi, lo uint64, neg bool, scale int32) []byte {
	dst = append(dst, byte(Finite))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(scale))
	if hi == 0 && lo == 0 {
		return dst
	}
	if neg {
		var c uint64
		lo, c = bits.Sub64(0, lo, 0)
		hi, _ = bits.Sub64(0, hi, c)
	}
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], hi)
	binary.BigEndian.PutUint64(b[8:], lo)
	// Bytes that only repeat the sign are left out.
	i := 0
	for i < 15 && (b[i] == 0 && b[i+1] < 0x80 || b[i] == 0xff && b[i+1] >= 0x80) {
		i++
	}
	return append(dst, b[i:]...)
}
