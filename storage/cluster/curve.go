package cluster

import (
	"encoding/binary"
	"math/bits"
)

// interleave writes the bits of the words in turn, from the highest: bit 63 of
// every word in order, bit 62, and so on, of the first nbytes bytes of each. Row i
// goes to out[i*stride:].
func interleave(out []byte, stride int, words [][]uint64, nbytes, n int) {
	if n == 0 {
		return
	}
	switch d := len(words); {
	case d == 1:
		for i, w := range words[0][:n] {
			put(out[i*stride:], w, nbytes)
		}
	case d == 2:
		interleave2(out, stride, words[0][:n], words[1][:n], nbytes)
	case d <= 8:
		interleaveTable(out, stride, words, nbytes, n)
	default:
		interleaveBits(out, stride, words, nbytes, n)
	}
}

// put writes the first nbytes bytes of a word.
func put(out []byte, w uint64, nbytes int) {
	if nbytes == wordBytes {
		binary.BigEndian.PutUint64(out, w)
		return
	}
	for j := range nbytes {
		out[j] = byte(w >> (56 - 8*j))
	}
}

// spread puts a zero before every bit of the low half of x.
func spread(x uint64) uint64 {
	x &= 0xffffffff
	x = (x | x<<16) & 0x0000ffff0000ffff
	x = (x | x<<8) & 0x00ff00ff00ff00ff
	x = (x | x<<4) & 0x0f0f0f0f0f0f0f0f
	x = (x | x<<2) & 0x3333333333333333
	return (x | x<<1) & 0x5555555555555555
}

func interleave2(out []byte, stride int, a, b []uint64, nbytes int) {
	b = b[:len(a)]
	for i, x := range a {
		o := out[i*stride : i*stride+2*nbytes]
		y := b[i]
		binary.BigEndian.PutUint64(o, spread(x>>32)<<1|spread(y>>32))
		if nbytes == wordBytes {
			binary.BigEndian.PutUint64(o[8:], spread(x)<<1|spread(y))
		}
	}
}

// spreads[d] maps a byte to its bits with d-1 zeros before each.
var spreads = func() (t [9][256]uint64) {
	for d := 1; d <= 8; d++ {
		for b := range 256 {
			for bit := range 8 {
				t[d][b] |= uint64(b>>bit&1) << (bit * d)
			}
		}
	}
	return t
}()

func interleaveTable(out []byte, stride int, words [][]uint64, nbytes, n int) {
	d := len(words)
	t := &spreads[d]
	var row [8]uint64
	for i := range n {
		for c, w := range words {
			row[c] = w[i]
		}
		o := out[i*stride : i*stride+d*nbytes]
		for j := range nbytes {
			shift := 56 - 8*j
			z := uint64(0)
			for _, w := range row[:d] {
				z = z<<1 | t[byte(w>>shift)]
			}
			z <<= 64 - 8*d
			for k := range d {
				o[j*d+k] = byte(z >> (56 - 8*k))
			}
		}
	}
}

func interleaveBits(out []byte, stride int, words [][]uint64, nbytes, n int) {
	for i := range n {
		o := out[i*stride:]
		at := 0
		for bit := 63; bit >= 64-8*nbytes; bit-- {
			for _, w := range words {
				o[at>>3] |= byte(w[i]>>bit&1) << (7 - at&7)
				at++
			}
		}
	}
}

// hilbert turns the coordinates of n points, of b bits each, into their place on
// the Hilbert curve, whose bits are those of the words in turn (see interleave).
// The transformation is J. Skilling's, "Programming the Hilbert curve" (2004).
func hilbert(words [][]uint64, n, b int) {
	if n == 0 {
		return
	}
	if len(words) == 2 {
		hilbert2(words[0][:n], words[1][:n], b)
		return
	}
	d := len(words)
	row := make([]uint64, d)
	for i := range n {
		for c, w := range words {
			row[c] = w[i]
		}
		x0 := row[0]
		for k := b - 1; k > 0; k-- {
			low := uint64(1)<<k - 1
			x0 ^= low & -(x0 >> k & 1)
			for c := 1; c < d; c++ {
				x := row[c]
				set := -(x >> k & 1)
				t := (x0 ^ x) & low &^ set
				x0 ^= t | low&set
				row[c] = x ^ t
			}
		}
		row[0] = x0
		for c := 1; c < d; c++ {
			row[c] ^= row[c-1]
		}
		t := below(row[d-1])
		for c, w := range words {
			w[i] = row[c] ^ t
		}
	}
}

func hilbert2(xs, ys []uint64, b int) {
	ys = ys[:len(xs)]
	for i, x := range xs {
		y := ys[i]
		for k := b - 1; k > 0; k-- {
			low := uint64(1)<<k - 1
			x ^= low & -(x >> k & 1)
			set := -(y >> k & 1)
			t := (x ^ y) & low &^ set
			x ^= t | low&set
			y ^= t
		}
		y ^= x
		t := below(y)
		xs[i], ys[i] = x^t, y^t
	}
}

// below returns a word whose bit j is the parity of the bits above j in x.
func below(x uint64) uint64 {
	for s := 1; s < bits.UintSize; s <<= 1 {
		x ^= x >> s
	}
	return x >> 1
}
