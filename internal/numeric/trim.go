package numeric

import (
	"encoding/binary"
	"math/bits"
)

// powers of ten that are taken off a number, each as often as it divides.
var trimPowers = [...]struct {
	digits int32
	power  uint64
}{{16, 1e16}, {16, 1e16}, {8, 1e8}, {4, 1e4}, {2, 1e2}, {1, 10}}

// AppendTrimmed appends the byte form (see AppendEncoded) of the number whose 128 bits
// are hi and lo, in two's complement, at a scale, without the zeros at its end that
// stand behind the point.
func AppendTrimmed(dst []byte, hi int64, lo uint64, scale int32) []byte {
	dst = append(dst, byte(Finite))
	if hi == 0 && lo == 0 {
		return binary.LittleEndian.AppendUint32(dst, uint32(min(scale, 0)))
	}
	negative := hi < 0
	h := uint64(hi)
	if negative {
		var carry uint64
		lo, carry = bits.Add64(^lo, 1, 0)
		h = ^h + carry
	}
	for _, p := range trimPowers {
		if scale < p.digits {
			continue
		}
		if h == 0 {
			if q := lo / p.power; q*p.power == lo {
				lo, scale = q, scale-p.digits
			}
			continue
		}
		qh := h / p.power
		ql, r := bits.Div64(h%p.power, lo, p.power)
		if r == 0 {
			h, lo, scale = qh, ql, scale-p.digits
		}
	}
	if negative {
		var carry uint64
		lo, carry = bits.Add64(^lo, 1, 0)
		h = ^h + carry
	}
	dst = binary.LittleEndian.AppendUint32(dst, uint32(scale))
	var b [16]byte
	binary.BigEndian.PutUint64(b[:], h)
	binary.BigEndian.PutUint64(b[8:], lo)
	from := 0 // the fewest bytes that keep the sign
	for from < 15 && (b[from] == 0 && b[from+1] < 0x80 || b[from] == 0xff && b[from+1] >= 0x80) {
		from++
	}
	return append(dst, b[from:]...)
}
