package bitslice

import (
	"math/bits"

	"github.com/RoaringBitmap/roaring/v2"
)

// Builder makes the slices of codes. The zero value is ready.
type Builder struct {
	present []uint64   // bit per row
	slices  [][]uint64 // the same; shorter ones end in zeros
	words   int        // blocks added
	or      uint64
}

// Block adds 64 rows, or the last ones: codes of those in present. Codes of
// other rows must be 0. It overwrites codes.
func (b *Builder) Block(codes *[64]uint64, present uint64) {
	w := b.words
	b.words++
	if present == 0 {
		return
	}
	b.present = put(b.present, w, present)
	or := uint64(0)
	for _, c := range codes {
		or |= c
	}
	b.or |= or
	n := bits.Len64(or)
	for len(b.slices) < n {
		b.slices = append(b.slices, nil)
	}
	if n <= 6 {
		for i := range n {
			word := uint64(0)
			for j, c := range codes {
				word |= (c >> i & 1) << j
			}
			if word != 0 {
				b.slices[i] = put(b.slices[i], w, word)
			}
		}
		return
	}
	transpose(codes)
	for i := range n {
		if codes[i] != 0 {
			b.slices[i] = put(b.slices[i], w, codes[i])
		}
	}
}

// Empty reports whether no row has a code.
func (b *Builder) Empty() bool { return len(b.present) == 0 }

// Bytes is the memory held.
func (b *Builder) Bytes() int64 {
	n := cap(b.present)
	for _, s := range b.slices {
		n += cap(s)
	}
	return int64(n) * 8
}

// Present returns the rows that have a code. It shares memory with b.
func (b *Builder) Present() *roaring.Bitmap { return roaring.FromDense(b.present, false) }

// Slice returns slice i, empty above the highest bit. It shares memory with b.
func (b *Builder) Slice(i int) *roaring.Bitmap {
	if i >= len(b.slices) {
		return roaring.New()
	}
	return roaring.FromDense(b.slices[i], false)
}

func put(s []uint64, at int, word uint64) []uint64 {
	if n := at - len(s); n > 0 {
		s = append(s, make([]uint64, n)...)
	}
	return append(s, word)
}

// transpose mirrors a 64x64 matrix of bits: bit j of word i becomes bit i of word
// j. It swaps the off-diagonal quarters of ever smaller squares.
func transpose(a *[64]uint64) {
	for j, m := 32, uint64(0x00000000ffffffff); j != 0; j, m = j>>1, m^m<<(j>>1) {
		for k := 0; k < 64; k = (k + j + 1) &^ j {
			t := (a[k]>>j ^ a[k|j]) & m
			a[k] ^= t << j
			a[k|j] ^= t
		}
	}
}
