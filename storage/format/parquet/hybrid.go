package parquet

import (
	"encoding/binary"
	"errors"
	"math/bits"
)

var (
	errLevels     = errors.New("levels or indices end early")
	errRun        = errors.New("a run of levels or indices has no valid length")
	errWidth      = errors.New("a bit width is out of range")
	errValues     = errors.New("values end early")
	errIndex      = errors.New("a dictionary index is out of range")
	errNegLen     = errors.New("a value has an impossible length")
	errTooMuch    = errors.New("one batch would hold more than 2 GiB of variable-length values")
	errLevelRange = errors.New("a level is out of range")
	errRecord     = errors.New("a page begins within a row")
	errShape      = errors.New("the levels of its parts do not fit together")
	errNullKey    = errors.New("a key of a map is null")
)

// hybrid reads the RLE/bit-packed hybrid of levels and dictionary indices:
//
//	run:    varint n<<1     | value in ceil(width/8) bytes, LE    n times the value
//	packed: varint n<<1 | 1 | n groups of 8 values, LSB first, width bytes each
//
// It streams: nothing is allocated for the number of values a page claims.
type hybrid struct {
	b      []byte // not yet read
	width  uint
	left   int    // values left in the current run
	packed bool   //
	val    uint32 // of an RLE run
	bits   []byte // of a packed run
	bit    int    // next bit in bits
}

func (h *hybrid) init(b []byte, width uint) { *h = hybrid{b: b, width: width} }

// initPacked reads n values that are all one packed run without a head.
func (h *hybrid) initPacked(b []byte, width uint, n int) {
	*h = hybrid{width: width, left: n, packed: true, bits: b}
}

// next opens the next run; left is above 0 afterwards. An error sticks.
func (h *hybrid) next() error {
	err := h.run()
	if err != nil {
		h.b, h.left = nil, 0
	}
	return err
}

func (h *hybrid) run() error {
	if h.width == 0 {
		h.left, h.packed, h.val = 1<<30, false, 0
		return nil
	}
	for {
		u, n := binary.Uvarint(h.b)
		if n <= 0 {
			return errLevels
		}
		h.b = h.b[n:]
		if u>>1 > 1<<31 {
			return errRun
		}
		if u&1 == 0 {
			w := int(h.width+7) / 8
			if len(h.b) < w {
				return errLevels
			}
			v := uint32(0)
			for i := 0; i < w; i++ {
				v |= uint32(h.b[i]) << (8 * i)
			}
			if h.width < 32 && v>>h.width != 0 {
				return errIndex
			}
			h.b = h.b[w:]
			h.left, h.packed, h.val = int(u>>1), false, v
		} else {
			n := int(u >> 1)
			size := n * int(h.width)
			if size > len(h.b) { // the last group may be cut short
				size = len(h.b)
				n = size / int(h.width)
				if r := size % int(h.width); r != 0 {
					h.left = n*8 + r*8/int(h.width)
				} else {
					h.left = n * 8
				}
			} else {
				h.left = n * 8
			}
			h.packed, h.bits, h.bit = true, h.b[:size], 0
			h.b = h.b[size:]
		}
		if h.left > 0 {
			return nil
		}
	}
}

// decode reads len(dst) values.
func (h *hybrid) decode(dst []int32) error {
	for len(dst) > 0 {
		if h.left == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		n := min(h.left, len(dst))
		if h.packed {
			unpack(dst[:n], h.bits, h.bit, h.width)
			h.bit += n * int(h.width)
		} else {
			v, d := int32(h.val), dst[:n]
			for i := range d {
				d[i] = v
			}
		}
		h.left -= n
		dst = dst[n:]
	}
	return nil
}

// levels reads len(dst) values of a width of at most 8 bits.
func (h *hybrid) levels(dst []uint8) error {
	for len(dst) > 0 {
		if h.left == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		n := min(h.left, len(dst))
		if h.packed {
			unpackBytes(dst[:n], h.bits, h.bit, h.width)
			h.bit += n * int(h.width)
		} else {
			v, d := uint8(h.val), dst[:n]
			for i := range d {
				d[i] = v
			}
		}
		h.left -= n
		dst = dst[n:]
	}
	return nil
}

// skip passes over n values.
func (h *hybrid) skip(n int) error {
	for n > 0 {
		if h.left == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		k := min(h.left, n)
		if h.packed {
			h.bit += k * int(h.width)
		}
		h.left -= k
		n -= k
	}
	return nil
}

// pick consumes n values and writes those at positions sel, ascending and below
// n, to dst. A packed run is entered only at the wanted bits.
func (h *hybrid) pick(dst []int32, sel []int32, n int) error {
	at, j := 0, 0
	for j < len(sel) {
		if h.left == 0 {
			if err := h.next(); err != nil {
				return err
			}
		}
		k := min(h.left, n-at)
		end := int32(at + k)
		if h.packed {
			w := h.width
			mask := uint64(1)<<w - 1
			base := h.bit - at*int(w)
			safe := len(h.bits) - 8
			for j < len(sel) && sel[j] < end {
				b := base + int(sel[j])*int(w)
				var x uint64
				if b>>3 <= safe {
					x = binary.LittleEndian.Uint64(h.bits[b>>3:])
				} else {
					x = tailLoad(h.bits, b>>3)
				}
				dst[j] = int32(x >> (b & 7) & mask)
				j++
			}
			h.bit += k * int(w)
		} else {
			v := int32(h.val)
			for j < len(sel) && sel[j] < end {
				dst[j] = v
				j++
			}
		}
		h.left -= k
		at += k
	}
	return h.skip(n - at)
}

// allOnes consumes n values and reports true if they are known to be all 1
// without a look at single bits; otherwise it consumes nothing.
func (h *hybrid) allOnes(n int) bool {
	if h.left == 0 {
		if h.next() != nil {
			return false // the error shows up again in ones
		}
	}
	if h.packed || h.val != 1 || h.left < n {
		return false
	}
	h.left -= n
	return true
}

// ones reads n values of width 1 into the bitmap dst from bit off on, whose bits
// are 0 before, and returns how many are 1.
func (h *hybrid) ones(dst []byte, off, n int) (int, error) {
	total := 0
	for n > 0 {
		if h.left == 0 {
			if err := h.next(); err != nil {
				return total, err
			}
		}
		k := min(h.left, n)
		switch {
		case h.packed:
			total += orBits(dst, off, h.bits, h.bit, k)
			h.bit += k
		case h.val != 0:
			setBits(dst, off, k)
			total += k
		}
		h.left -= k
		off += k
		n -= k
	}
	return total, nil
}

// countOnes passes over n values of width 1 and returns how many were 1.
func (h *hybrid) countOnes(n int) (int, error) {
	total := 0
	for n > 0 {
		if h.left == 0 {
			if err := h.next(); err != nil {
				return total, err
			}
		}
		k := min(h.left, n)
		if h.packed {
			total += countBits(h.bits, h.bit, k)
			h.bit += k
		} else if h.val != 0 {
			total += k
		}
		h.left -= k
		n -= k
	}
	return total, nil
}

// tailLoad is a little-endian load of up to eight bytes at i, zero beyond b.
func tailLoad(b []byte, i int) uint64 {
	if i >= len(b) {
		return 0
	}
	if i+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[i:])
	}
	x := uint64(0)
	for j := len(b) - 1; j >= i; j-- {
		x = x<<8 | uint64(b[j])
	}
	return x
}

// unpack reads len(dst) values of w <= 32 bits from bit of b on, LSB first. Bits
// beyond b read as 0.
//
// A 64-bit load at the byte of the first bit holds at least 57 useful bits:
// eight values up to width 7, and so on; loads that would pass the end of b are
// assembled byte by byte.
func unpack(dst []int32, b []byte, bit int, w uint) {
	i := 0
	mask := uint32(uint64(1)<<w - 1)
	wi := int(w)
	if bit&7 != 0 { // on to the start of a group of eight, which is a whole byte
		for k := min(len(dst), 8-bit/wi&7); i < k; i++ {
			dst[i] = int32(uint32(tailLoad(b, bit>>3)>>(bit&7)) & mask)
			bit += wi
		}
		dst, i = dst[i:], 0
	}
	if bit&7 == 0 {
		switch {
		case w == 8:
			s := b[bit>>3:]
			n := min(len(s), len(dst))
			for i := range dst[:n] {
				dst[i] = int32(s[i])
			}
			clear(dst[n:])
			return
		case w == 16:
			s := b[bit>>3:]
			for ; i < len(dst) && 2*i+2 <= len(s); i++ {
				dst[i] = int32(binary.LittleEndian.Uint16(s[2*i:]))
			}
			clear(dst[i:])
			return
		case w <= 8:
			s := b[bit>>3:]
			for ; i+8 <= len(dst) && len(s) >= 8; i += 8 {
				x := binary.LittleEndian.Uint64(s)
				d := dst[i : i+8 : i+8]
				d[0] = int32(uint32(x) & mask)
				d[1] = int32(uint32(x>>w) & mask)
				d[2] = int32(uint32(x>>(2*w)) & mask)
				d[3] = int32(uint32(x>>(3*w)) & mask)
				d[4] = int32(uint32(x>>(4*w)) & mask)
				d[5] = int32(uint32(x>>(5*w)) & mask)
				d[6] = int32(uint32(x>>(6*w)) & mask)
				d[7] = int32(uint32(x>>(7*w)) & mask)
				s = s[w:]
			}
		case w < 16:
			// Four values take 4*w <= 60 bits and start at bit 0 or 4 of a byte.
			s := b[bit>>3:]
			half, sh := 4*w>>3, 4*w&7
			for ; i+8 <= len(dst) && uint(len(s)) >= half+8; i += 8 {
				x := binary.LittleEndian.Uint64(s)
				y := binary.LittleEndian.Uint64(s[half:]) >> sh
				d := dst[i : i+8 : i+8]
				d[0] = int32(uint32(x) & mask)
				d[1] = int32(uint32(x>>w) & mask)
				d[2] = int32(uint32(x>>(2*w)) & mask)
				d[3] = int32(uint32(x>>(3*w)) & mask)
				d[4] = int32(uint32(y) & mask)
				d[5] = int32(uint32(y>>w) & mask)
				d[6] = int32(uint32(y>>(2*w)) & mask)
				d[7] = int32(uint32(y>>(3*w)) & mask)
				s = s[w:]
			}
		}
		bit += i * wi
	}
	for ; i < len(dst) && bit>>3+8 <= len(b); i++ {
		x := binary.LittleEndian.Uint64(b[bit>>3:])
		dst[i] = int32(uint32(x>>(bit&7)) & mask)
		bit += wi
	}
	for ; i < len(dst); i++ {
		dst[i] = int32(uint32(tailLoad(b, bit>>3)>>(bit&7)) & mask)
		bit += wi
	}
}

// unpackBytes is unpack for widths up to 8.
func unpackBytes(dst []uint8, b []byte, bit int, w uint) {
	mask := uint8(uint(1)<<w - 1)
	i := 0
	if bit&7 == 0 {
		s := b[bit>>3:]
		for ; i+8 <= len(dst) && len(s) >= 8; i += 8 {
			x := binary.LittleEndian.Uint64(s)
			d := dst[i : i+8 : i+8]
			d[0] = uint8(x) & mask
			d[1] = uint8(x>>w) & mask
			d[2] = uint8(x>>(2*w)) & mask
			d[3] = uint8(x>>(3*w)) & mask
			d[4] = uint8(x>>(4*w)) & mask
			d[5] = uint8(x>>(5*w)) & mask
			d[6] = uint8(x>>(6*w)) & mask
			d[7] = uint8(x>>(7*w)) & mask
			s = s[w:]
		}
		bit += i * int(w)
	}
	for ; i < len(dst); i++ {
		dst[i] = uint8(tailLoad(b, bit>>3)>>(bit&7)) & mask
		bit += int(w)
	}
}

// setBits sets n bits of b from bit off on.
func setBits(b []byte, off, n int) {
	for n > 0 && off&7 != 0 {
		b[off>>3] |= 1 << (off & 7)
		off++
		n--
	}
	if k := n >> 3; k > 0 {
		s := b[off>>3 : off>>3+k]
		for i := range s {
			s[i] = 0xff
		}
		off += k << 3
		n &= 7
	}
	if n > 0 {
		b[off>>3] |= byte(1<<n - 1)
	}
}

// bits57 returns at least 57 bits of b from bit off on; beyond b they are 0.
func bits57(b []byte, off int) uint64 {
	if i := off >> 3; i+8 <= len(b) {
		return binary.LittleEndian.Uint64(b[i:]) >> (off & 7)
	}
	return tailLoad(b, off>>3) >> (off & 7)
}

// orBits copies n bits of src from bit so on into dst from bit do on, whose bits
// are 0 before, and returns how many are 1.
func orBits(dst []byte, do int, src []byte, so, n int) int {
	total := 0
	if do&7 == 0 && so&7 == 0 && n >= 8 {
		k := n >> 3
		total += countBits(src, so, k<<3)
		copy(dst[do>>3:do>>3+k], src[so>>3:])
		do, so, n = do+k<<3, so+k<<3, n&7
	}
	for n > 0 {
		k := min(n, 48)
		x := bits57(src, so) & (1<<k - 1)
		total += bits.OnesCount64(x)
		y := x << (do & 7) // 55 bits
		for i := do >> 3; y != 0; i++ {
			dst[i] |= byte(y)
			y >>= 8
		}
		do += k
		so += k
		n -= k
	}
	return total
}

// countBits counts the ones among n bits of b from bit off on.
func countBits(b []byte, off, n int) int {
	total := 0
	for n > 0 {
		k := min(n, 56)
		if off&7 == 0 && n >= 64 && off>>3+8 <= len(b) {
			k = 64
			total += bits.OnesCount64(binary.LittleEndian.Uint64(b[off>>3:]))
		} else {
			total += bits.OnesCount64(bits57(b, off) & (1<<k - 1))
		}
		off += k
		n -= k
	}
	return total
}

// lsbFirst turns n values of width w <= 8 that are packed MSB first (the
// deprecated BIT_PACKED levels) into the order that hybrid reads.
func lsbFirst(b []byte, w uint, n int) []byte {
	out := make([]byte, (n*int(w)+7)/8)
	for i := 0; i < n; i++ {
		v := uint(0)
		for k := uint(0); k < w; k++ {
			bit := i*int(w) + int(k)
			v = v<<1 | uint(b[bit>>3]>>(7-bit&7))&1
		}
		bit := i * int(w)
		x := v << (bit & 7)
		out[bit>>3] |= byte(x)
		if x > 0xff {
			out[bit>>3+1] |= byte(x >> 8)
		}
	}
	return out
}
