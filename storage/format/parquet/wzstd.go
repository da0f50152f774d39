package parquet

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/zstd"
)

// Looking for matches is most of what packing a page costs, and numbers have
// few: the gain lies in their zeros and common bytes, which entropy coding alone
// takes. A part of the page is tried both ways, and where Huffman codes are about
// as good (within a sixth) the page is made of blocks of literals without
// sequences, in a fifth of the time; it is read faster, too. Random values get
// smaller than by zstd's fast level, which leaves them as they are.

const (
	zstdWindow = 1 << 20 // about a page
	zstdSample = 16 << 10
	zstdBlock  = 128 << 10 // the most a block holds
)

func (c *compressor) zstdPage(src []byte) ([]byte, error) {
	if c.zstd == nil {
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(c.level)), zstd.WithEncoderConcurrency(1),
			zstd.WithEncoderCRC(false), zstd.WithWindowSize(zstdWindow))
		if err != nil {
			return nil, fmt.Errorf("start zstd: %w", err)
		}
		c.zstd = e
	}
	if len(src) >= 4*zstdSample {
		part := src[len(src)/2 : len(src)/2+zstdSample]
		c.tmp = c.zstd.EncodeAll(part, c.tmp[:0])
		matched := len(c.tmp)
		if c.tmp = c.literals(c.tmp[:0], part); len(c.tmp) <= matched+matched/6 {
			c.tmp = c.literals(c.tmp[:0], src)
			return c.tmp, nil
		}
	}
	c.tmp = c.zstd.EncodeAll(src, c.tmp[:0])
	return c.tmp, nil
}

// literals appends src as a zstd frame of blocks without sequences.
//
//	magic FD2FB528 LE | descriptor: single segment, 4-byte content size | size LE
//	block: 3 bytes LE: last | type << 1 | size << 3
//	type 0: the bytes; 1: one byte, size times; 2:
//	  5 bytes LE: 2 (Huffman) | 3 (4 streams, 18-bit sizes) << 2 | size << 4 | packed size << 22
//	  Huffman table and streams, packed size in all | 0: no sequences
//
// Source: RFC 8878, 3.1.1.
func (c *compressor) literals(dst, src []byte) []byte {
	dst = binary.LittleEndian.AppendUint32(dst, 0xfd2fb528)
	dst = append(dst, 0b1010_0000)
	dst = binary.LittleEndian.AppendUint32(dst, uint32(len(src)))
	for {
		b := src[:min(len(src), zstdBlock)]
		src = src[len(b):]
		last := uint32(0)
		if len(src) == 0 {
			last = 1
		}
		head := func(typ, size int) {
			h := last | uint32(typ)<<1 | uint32(size)<<3
			dst = append(dst, byte(h), byte(h>>8), byte(h>>16))
		}
		out, err := []byte(nil), huff0.ErrIncompressible
		if len(b) >= 1024 {
			c.huff.Reuse = huff0.ReusePolicyNone
			out, _, err = huff0.Compress4X(b, &c.huff)
		}
		switch {
		case errors.Is(err, huff0.ErrUseRLE):
			head(1, len(b))
			dst = append(dst, b[0])
		case err != nil || len(out)+6 >= len(b):
			head(0, len(b))
			dst = append(dst, b...)
		default:
			head(2, len(out)+6)
			h := 2 | 3<<2 | uint64(len(b))<<4 | uint64(len(out))<<22
			dst = append(dst, byte(h), byte(h>>8), byte(h>>16), byte(h>>24), byte(h>>32))
			dst = append(append(dst, out...), 0)
		}
		if last != 0 {
			return dst
		}
	}
}
