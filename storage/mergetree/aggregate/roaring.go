package aggregate

import (
	"encoding/binary"
	"math/bits"
)

// Bitmaps are unions of containers, each a set of the 65,536 values that share
// their upper bits. On disk a container is, all words little-endian:
//
//	array   cardinality uint16 values, ascending
//	bitmap  1,024 uint64
//	runs    number of runs uint16, then (first value, values behind it) uint16 each
//
// Java writes an array up to 4,096 values and a bitmap above, unless runs are
// smaller. In memory a container is a list of runs, or a bitmap where those would
// be many: what is read never grows beyond a small multiple of its bytes. The
// module's roaring library does not read Java's 64-bit form and gives no such
// promise about damaged bytes.
//
// Source: RoaringFormatSpec, RoaringBitmap 1.2.1 (ArrayContainer.java,
// BitmapContainer.java, RunContainer.java, Containers.java).

// container is a set of uint16.
type container struct {
	runs   []uint32 // first<<16 | last, ascending, not touching each other
	bitmap *[1024]uint64
	// asRuns: there were runs among what was read, which Java keeps where an array
	// would be about as small.
	asRuns bool
}

// Forms of a container, as Java's Containers numbers them.
const (
	formRuns = iota
	formBitmap
	formArray
)

const (
	maxArray  = 4096
	maxRuns   = 2047 // more take more than a bitmap
	bitmapLen = 8192
)

// bytesReader reads little-endian words; short is set when there are not enough.
type bytesReader struct {
	b     []byte
	short bool
}

func (r *bytesReader) next(n int) []byte {
	if n < 0 || n > len(r.b) {
		r.short = true
		r.b = nil
		return nil
	}
	x := r.b[:n]
	r.b = r.b[n:]
	return x
}

func (r *bytesReader) u8() byte {
	if b := r.next(1); b != nil {
		return b[0]
	}
	return 0
}

func (r *bytesReader) u16() uint16 {
	if b := r.next(2); b != nil {
		return binary.LittleEndian.Uint16(b)
	}
	return 0
}

func (r *bytesReader) u32() uint32 {
	if b := r.next(4); b != nil {
		return binary.LittleEndian.Uint32(b)
	}
	return 0
}

func (r *bytesReader) u64() uint64 {
	if b := r.next(8); b != nil {
		return binary.LittleEndian.Uint64(b)
	}
	return 0
}

// damaged says that a value of a column cannot be what its function reads.
func damaged(what string) error { return &Error{Reason: "damaged value: not a " + what} }

// readContainer reads a container; ok is false when it is damaged.
func readContainer(r *bytesReader, form int, card int) (c container, ok bool) {
	switch form {
	case formArray:
		b := r.next(2 * card)
		if r.short {
			return c, false
		}
		last := -1
		for ; len(b) > 0; b = b[2:] {
			x := int(binary.LittleEndian.Uint16(b))
			if x <= last {
				return c, false
			}
			c.add(uint32(x), uint32(x))
			last = x
		}
	case formBitmap:
		b := r.next(bitmapLen)
		if r.short {
			return c, false
		}
		c.bitmap = new([1024]uint64)
		for i := range c.bitmap {
			c.bitmap[i] = binary.LittleEndian.Uint64(b[8*i:])
		}
	case formRuns:
		b := r.next(4 * int(r.u16()))
		if r.short {
			return c, false
		}
		c.asRuns = true
		next := uint32(0)
		for ; len(b) > 0; b = b[4:] {
			x := uint32(binary.LittleEndian.Uint16(b))
			last := x + uint32(binary.LittleEndian.Uint16(b[2:]))
			if x < next || last > 0xffff {
				return c, false
			}
			c.add(x, last)
			next = last + 1
		}
	default:
		return c, false
	}
	return c, true
}

// add puts in [first, last], which begins behind everything there is.
func (c *container) add(first, last uint32) {
	if c.bitmap != nil {
		c.fill(first, last)
		return
	}
	if n := len(c.runs); n > 0 && c.runs[n-1]&0xffff+1 >= first {
		c.runs[n-1] = c.runs[n-1]&^0xffff | max(last, c.runs[n-1]&0xffff)
		return
	}
	if len(c.runs) == maxRuns {
		c.toBitmap()
		c.fill(first, last)
		return
	}
	c.runs = append(c.runs, first<<16|last)
}

func (c *container) toBitmap() {
	c.bitmap = new([1024]uint64)
	for _, r := range c.runs {
		c.fill(r>>16, r&0xffff)
	}
	c.runs = nil
}

// fill sets the bits of [first, last].
func (c *container) fill(first, last uint32) {
	a, b := first>>6, last>>6
	lo, hi := ^uint64(0)<<(first&63), ^uint64(0)>>(63-last&63)
	if a == b {
		c.bitmap[a] |= lo & hi
		return
	}
	c.bitmap[a] |= lo
	for i := a + 1; i < b; i++ {
		c.bitmap[i] = ^uint64(0)
	}
	c.bitmap[b] |= hi
}

// or puts the values of x in.
func (c *container) or(x *container) {
	switch {
	case c.bitmap == nil && x.bitmap == nil:
		u := container{asRuns: c.asRuns || x.asRuns}
		a, b := c.runs, x.runs
		for len(a) > 0 || len(b) > 0 {
			if len(b) == 0 || len(a) > 0 && a[0] < b[0] {
				u.add(a[0]>>16, a[0]&0xffff)
				a = a[1:]
			} else {
				u.add(b[0]>>16, b[0]&0xffff)
				b = b[1:]
			}
		}
		*c = u
	default:
		if c.bitmap == nil {
			c.toBitmap()
		}
		if x.bitmap == nil {
			for _, r := range x.runs {
				c.fill(r>>16, r&0xffff)
			}
			return
		}
		for i, w := range x.bitmap {
			c.bitmap[i] |= w
		}
	}
}

// size returns the number of values and runs.
func (c *container) size() (card, runs int) {
	if c.bitmap == nil {
		for _, r := range c.runs {
			card += int(r&0xffff) - int(r>>16) + 1
		}
		return card, len(c.runs)
	}
	carry := uint64(0)
	for _, w := range c.bitmap {
		card += bits.OnesCount64(w)
		runs += bits.OnesCount64(w &^ (w<<1 | carry)) // bits where a run begins
		carry = w >> 63
	}
	return card, runs
}

// form returns how Java writes the container after runOptimize.
func (c *container) form() (form, card, runs int) {
	card, runs = c.size()
	form, plain := formArray, 2*card
	if card > maxArray {
		form, plain = formBitmap, bitmapLen
	}
	// Java counts the length of an array only where it makes one of runs.
	if runSize := 2 + 4*runs; plain > runSize || c.asRuns && runSize <= min(2*card+2, bitmapLen) {
		form = formRuns
	}
	return form, card, runs
}

// each calls f for every run.
func (c *container) each(f func(first, last uint32)) {
	if c.bitmap == nil {
		for _, r := range c.runs {
			f(r>>16, r&0xffff)
		}
		return
	}
	for at := 0; at < 1<<16; {
		first := nextBit(c.bitmap, at, 0)
		if first == 1<<16 {
			return
		}
		at = nextBit(c.bitmap, first, ^uint64(0))
		f(uint32(first), uint32(at-1))
	}
}

// nextBit returns the first bit from at on that is set, when flip inverts the
// bits; 65,536 if there is none.
func nextBit(b *[1024]uint64, at int, flip uint64) int {
	w := (b[at>>6] ^ flip) >> (at & 63) << (at & 63)
	for i := at >> 6; ; {
		if w != 0 {
			return i<<6 + bits.TrailingZeros64(w)
		}
		if i++; i == 1024 {
			return 1 << 16
		}
		w = b[i] ^ flip
	}
}

// append writes the container in a form.
func (c *container) append(dst []byte, form, runs int) []byte {
	switch form {
	case formRuns:
		dst = binary.LittleEndian.AppendUint16(dst, uint16(runs))
		c.each(func(first, last uint32) {
			dst = binary.LittleEndian.AppendUint16(dst, uint16(first))
			dst = binary.LittleEndian.AppendUint16(dst, uint16(last-first))
		})
	case formBitmap:
		x := *c
		if x.bitmap == nil {
			x.toBitmap()
		}
		for _, w := range x.bitmap {
			dst = binary.LittleEndian.AppendUint64(dst, w)
		}
	default:
		c.each(func(first, last uint32) {
			for v := first; v <= last; v++ {
				dst = binary.LittleEndian.AppendUint16(dst, uint16(v))
			}
		})
	}
	return dst
}
