package parquet

import (
	"encoding/binary"
	"math/bits"
)

// appendHybrid appends v in the RLE/bit-packed hybrid: runs of eight or more
// equal values as RLE, what is between them packed in groups of eight.
func appendHybrid[T uint8 | uint32](dst []byte, v []T, width uint) []byte {
	if width == 0 {
		return binary.AppendUvarint(dst, uint64(len(v))<<1)
	}
	pend := 0 // start of what is not written yet
	for i := 0; i < len(v); {
		j := i + 1
		for j < len(v) && v[j] == v[i] {
			j++
		}
		// A packed stretch consists of whole groups, so a run first fills up
		// the group before it.
		fill := 0
		if r := (i - pend) & 7; r != 0 {
			fill = 8 - r
		}
		if j-i-fill < 8 {
			i = j
			continue
		}
		dst = appendPacked(dst, v[pend:i+fill], width)
		n := j - i - fill
		dst = binary.AppendUvarint(dst, uint64(n)<<1)
		for k, x := uint(0), uint32(v[i]); k < width; k += 8 {
			dst = append(dst, byte(x>>k))
		}
		i, pend = j, j
	}
	return appendPacked(dst, v[pend:], width)
}

// appendPacked appends one packed run; the last group is filled with zeros.
func appendPacked[T uint8 | uint32](dst []byte, v []T, width uint) []byte {
	if len(v) == 0 {
		return dst
	}
	groups := (len(v) + 7) / 8
	dst = binary.AppendUvarint(dst, uint64(groups)<<1|1)
	acc, n := uint64(0), uint(0)
	for _, x := range v {
		acc |= uint64(x) << n
		n += width
		for n >= 32 {
			dst = binary.LittleEndian.AppendUint32(dst, uint32(acc))
			acc >>= 32
			n -= 32
		}
	}
	pad := uint(groups*8-len(v)) * width
	for n > 0 || pad > 0 {
		if n < 8 { // padding bits are zeros already
			k := min(8-n, pad)
			n += k
			pad -= k
		}
		dst = append(dst, byte(acc))
		acc >>= 8
		n -= min(n, 8)
	}
	return dst
}

// dictionary index width for n values.
func indexWidth(n int) uint {
	if n <= 1 {
		return 0
	}
	return uint(bits.Len(uint(n - 1)))
}
