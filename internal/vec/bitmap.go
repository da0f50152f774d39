package vec

import (
	"encoding/binary"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/bitutil"
)

// NewBitmap returns n zero bits.
func NewBitmap(n int) []byte { return make([]byte, BitmapLen(n)) }

// FullBitmap returns n bits that are all set; bits past n in the last byte are
// zero, so that bytes may be compared and counted.
func FullBitmap(n int) []byte {
	b := make([]byte, BitmapLen(n))
	for i := range b {
		b[i] = 0xff
	}
	if n&7 != 0 {
		b[len(b)-1] = 1<<(n&7) - 1
	}
	return b
}

// SetBit sets bit i.
func SetBit(b []byte, i int) { b[i>>3] |= 1 << (i & 7) }

// ClearBit clears bit i.
func ClearBit(b []byte, i int) { b[i>>3] &^= 1 << (i & 7) }

// CopyBits returns bits [off, off+n) of b in fresh memory from bit 0 on; nil
// stays nil.
func CopyBits(b []byte, off, n int) []byte {
	if b == nil {
		return nil
	}
	out := make([]byte, BitmapLen(n))
	bitutil.CopyBitmap(b, off, n, out, 0)
	if n&7 != 0 {
		out[len(out)-1] &= 1<<(n&7) - 1
	}
	return out
}

// AndBits returns the intersection of two bitmaps of n bits, each from its own
// offset. nil means all set; the result is nil when both are, and otherwise
// fresh.
func AndBits(a []byte, aOff int, b []byte, bOff, n int) []byte {
	switch {
	case a == nil:
		return CopyBits(b, bOff, n)
	case b == nil:
		return CopyBits(a, aOff, n)
	}
	out := CopyBits(a, aOff, n)
	if bOff&7 == 0 {
		b = b[bOff>>3:]
		i := 0
		for ; i+8 <= len(out) && i+8 <= len(b); i += 8 {
			binary.LittleEndian.PutUint64(out[i:], binary.LittleEndian.Uint64(out[i:])&binary.LittleEndian.Uint64(b[i:]))
		}
		for ; i < len(out); i++ {
			out[i] &= b[i]
		}
		return out
	}
	t := CopyBits(b, bOff, n)
	for i := range out {
		out[i] &= t[i]
	}
	return out
}

// Validity returns the validity bitmap of a and the bit of row 0; nil when a
// holds no NULL.
func Validity(a arrow.Array) (valid []byte, off int) {
	d := a.Data()
	if b := d.Buffers()[0]; b != nil && a.NullN() != 0 {
		return b.Bytes(), d.Offset()
	}
	return nil, 0
}

// ValidCopy returns the validity of a as a fresh bitmap from bit 0, nil when
// there is no NULL.
func ValidCopy(a arrow.Array) []byte {
	v, off := Validity(a)
	return CopyBits(v, off, a.Len())
}

// AppendSet appends to out the positions i in [0,n) whose bit off+i is set.
func AppendSet(out []uint16, b []byte, off, n int) []uint16 {
	if b == nil {
		for i := range n {
			out = append(out, uint16(i))
		}
		return out
	}
	k := len(out)
	if cap(out)-k < n {
		t := make([]uint16, k, k+n)
		copy(t, out)
		out = t
	}
	out = out[:k+n]
	i := 0
	for ; i < n && (off+i)&7 != 0; i++ {
		out[k] = uint16(i)
		k += int(b[(off+i)>>3] >> ((off + i) & 7) & 1)
	}
	p := (off + i) >> 3
	for ; i+64 <= n; i += 64 {
		w := binary.LittleEndian.Uint64(b[p:])
		p += 8
		if w == ^uint64(0) {
			for j := range 64 {
				out[k+j] = uint16(i + j)
			}
			k += 64
			continue
		}
		for w != 0 {
			out[k] = uint16(i + bits.TrailingZeros64(w))
			k++
			w &= w - 1
		}
	}
	for ; i < n; i++ {
		out[k] = uint16(i)
		k += int(b[(off+i)>>3] >> ((off + i) & 7) & 1)
	}
	return out[:k]
}

// Bools unpacks n bits from off into bytes 0 and 1.
func Bools(dst []uint8, b []byte, off, n int) {
	dst = dst[:n]
	for i := range dst {
		j := off + i
		dst[i] = b[j>>3] >> (j & 7) & 1
	}
}

// PackBools packs bytes 0 and 1 into a fresh bitmap.
func PackBools(v []uint8) []byte {
	out := make([]byte, BitmapLen(len(v)))
	i := 0
	for ; i+8 <= len(v); i += 8 {
		// Eight 0/1 bytes: the multiplication moves byte j's bit to bit 56+j.
		w := binary.LittleEndian.Uint64(v[i:])
		out[i>>3] = byte(w * 0x0102040810204080 >> 56)
	}
	for ; i < len(v); i++ {
		out[i>>3] |= (v[i] & 1) << (i & 7)
	}
	return out
}
