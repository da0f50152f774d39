package parquet

import (
	"encoding/binary"
	"errors"
)

// The delta encodings and BYTE_STREAM_SPLIT are turned, a page at a time, into
// what PLAIN would hold (or, for byte arrays, offsets and bytes). The loops that
// fill columns then know two forms only. Java never writes these encodings, so
// the extra pass is paid by foreign files alone.

var errDelta = errors.New("a delta-encoded block is malformed")

// deltaHead is the head of DELTA_BINARY_PACKED:
//
//	varint block size | varint miniblocks per block | varint count | zigzag first
//
// and each block: zigzag minimum delta | a bit width per miniblock | miniblocks.
type deltaHead struct {
	block, minis, count int
	first               int64
}

func readDeltaHead(b []byte) (h deltaHead, rest []byte, err error) {
	var u [3]uint64
	for i := range u {
		v, n := binary.Uvarint(b)
		if n <= 0 {
			return h, nil, errDelta
		}
		u[i], b = v, b[n:]
	}
	f, n := binary.Varint(b)
	if n <= 0 {
		return h, nil, errDelta
	}
	if u[0] == 0 || u[0] > 1<<20 || u[1] == 0 || u[1] > u[0] || u[0]%u[1] != 0 || (u[0]/u[1])%8 != 0 || u[2] > 1<<31-1 {
		return h, nil, errDelta
	}
	return deltaHead{int(u[0]), int(u[1]), int(u[2]), f}, b[n:], nil
}

// deltaInts decodes DELTA_BINARY_PACKED and returns what follows it. No more
// than limit values may be there: the page's own number of values.
func deltaInts(b []byte, limit int) (out []int64, rest []byte, err error) {
	h, b, err := readDeltaHead(b)
	if err != nil {
		return nil, nil, err
	}
	if h.count > limit || h.count > maxDeltaValues && h.count > 64*len(b) {
		return nil, nil, errDelta
	}
	if h.count == 0 {
		return nil, b, nil
	}
	v := h.first
	// Widths of 0 make values of nothing, so the list grows with the blocks.
	out = append(make([]int64, 0, min(h.count, 64+8*len(b))), v)
	per := h.block / h.minis
	for len(out) < h.count {
		d, n := binary.Varint(b)
		if n <= 0 || len(b)-n < h.minis {
			return nil, nil, errDelta
		}
		b = b[n:]
		widths := b[:h.minis]
		b = b[h.minis:]
		for _, w := range widths {
			if len(out) == h.count {
				break
			}
			if w > 64 {
				return nil, nil, errDelta
			}
			size := per * int(w) / 8
			k := min(per, h.count-len(out))
			if size > len(b) {
				if (k*int(w)+7)/8 > len(b) {
					return nil, nil, errDelta
				}
				size = len(b) // the last miniblock may be cut short
			}
			m := b[:size]
			b = b[size:]
			out, v = appendDeltas(out, v, d, m, uint(w), k)
		}
	}
	return out, b, nil
}

func appendDeltas(out []int64, v, least int64, m []byte, w uint, k int) ([]int64, int64) {
	if w == 0 {
		for i := 0; i < k; i++ {
			v += least
			out = append(out, v)
		}
		return out, v
	}
	bit := 0
	mask := ^uint64(0) >> (64 - w)
	for i := 0; i < k; i++ {
		x := tailLoad(m, bit>>3) >> (bit & 7)
		if s := bit & 7; s != 0 && uint(s)+w > 64 {
			x |= tailLoad(m, bit>>3+8) << (64 - s)
		}
		v += least + int64(x&mask)
		out = append(out, v)
		bit += int(w)
	}
	return out, v
}

// plainOfDelta makes the PLAIN form of w-byte integers.
func plainOfDelta(b []byte, w, limit int) ([]byte, int, error) {
	vs, _, err := deltaInts(b, limit)
	if err != nil {
		return nil, 0, err
	}
	out := make([]byte, len(vs)*w)
	if w == 4 {
		for i, v := range vs {
			binary.LittleEndian.PutUint32(out[4*i:], uint32(v))
		}
	} else {
		for i, v := range vs {
			binary.LittleEndian.PutUint64(out[8*i:], uint64(v))
		}
	}
	return out, len(vs), nil
}

// deltaLengths decodes DELTA_LENGTH_BYTE_ARRAY: all lengths, then all bytes.
func deltaLengths(b []byte, limit int) (offs []int32, data []byte, err error) {
	ls, rest, err := deltaInts(b, limit)
	if err != nil {
		return nil, nil, err
	}
	offs = make([]int32, len(ls)+1)
	at := int64(0)
	for i, l := range ls {
		if l < 0 || l > int64(len(rest))-at {
			return nil, nil, errNegLen
		}
		at += l
		offs[i+1] = int32(at)
	}
	return offs, rest[:at], nil
}

// deltaBytes decodes DELTA_BYTE_ARRAY: the lengths of the prefix that each value
// shares with the one before, then the suffixes as DELTA_LENGTH_BYTE_ARRAY.
func deltaBytes(b []byte, limit int) (offs []int32, data []byte, err error) {
	ps, rest, err := deltaInts(b, limit)
	if err != nil {
		return nil, nil, err
	}
	so, sd, err := deltaLengths(rest, limit)
	if err != nil {
		return nil, nil, err
	}
	if len(so)-1 != len(ps) {
		return nil, nil, errDelta
	}
	offs = make([]int32, len(ps)+1)
	last := 0 // start of the previous value
	for i, p := range ps {
		if p < 0 || p > int64(len(data)-last) {
			return nil, nil, errNegLen
		}
		suffix := sd[so[i]:so[i+1]]
		if int64(len(data))+p+int64(len(suffix)) > maxDeltaBytes {
			return nil, nil, errTooMuch
		}
		start := len(data)
		data = append(data, data[last:last+int(p)]...)
		data = append(data, suffix...)
		last = start
		offs[i+1] = int32(len(data))
	}
	return offs, data, nil
}

// Deltas of width 0 and shared prefixes take no bytes, so what one page may
// unfold to has a limit of its own: far above any writer's pages.
const (
	maxDeltaValues = 1 << 24
	maxDeltaBytes  = 1 << 28
)

// maxVarBytes is the most bytes that int32 offsets address.
const maxVarBytes = 1<<31 - 1

// unsplit undoes BYTE_STREAM_SPLIT: byte k of every value lies in stream k.
func unsplit(b []byte, w int) ([]byte, int) {
	n := len(b) / w
	out := make([]byte, n*w)
	for k := 0; k < w; k++ {
		s := b[k*n : k*n+n]
		for i, c := range s {
			out[i*w+k] = c
		}
	}
	return out, n
}
