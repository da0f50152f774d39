package parquet

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// compressor packs pages with one codec. It belongs to one writer.
type compressor struct {
	codec int32
	level int
	zstd  *zstd.Encoder
	lz4   lz4.Compressor
	tmp   []byte
}

// newCompressor takes a value of file.compression; empty is zstd.
func newCompressor(name string, level int) (*compressor, error) {
	c := &compressor{level: level}
	switch strings.ToLower(name) {
	case "", "zstd", "zstandard":
		c.codec = codecZstd
		if level <= 0 {
			level = 1
		}
		e, err := zstd.NewWriter(nil, zstd.WithEncoderLevel(zstd.EncoderLevelFromZstd(level)), zstd.WithEncoderConcurrency(1), zstd.WithEncoderCRC(false))
		if err != nil {
			return nil, fmt.Errorf("start zstd: %w", err)
		}
		c.zstd = e
	case "none", "uncompressed":
		c.codec = codecNone
	case "snappy":
		c.codec = codecSnappy
	case "gzip":
		c.codec = codecGzip
	case "lz4":
		c.codec = codecLZ4
	case "lz4_raw":
		c.codec = codecLZ4Raw
	case "brotli":
		c.codec = codecBrotli
	default:
		return nil, &fileio.UnsupportedError{Feature: "Parquet compression " + name}
	}
	return c, nil
}

// pack returns src compressed, in scratch that lives until the next call.
func (c *compressor) pack(src []byte) ([]byte, error) {
	switch c.codec {
	case codecNone:
		return src, nil
	case codecZstd:
		c.tmp = c.zstd.EncodeAll(src, c.tmp[:0])
	case codecSnappy:
		c.tmp = snappy.Encode(c.tmp[:cap(c.tmp)], src)
	case codecGzip:
		b := bytes.NewBuffer(c.tmp[:0])
		z := gzip.NewWriter(b)
		if _, err := z.Write(src); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		c.tmp = b.Bytes()
	case codecBrotli:
		b := bytes.NewBuffer(c.tmp[:0])
		z := brotli.NewWriterLevel(b, brotli.DefaultCompression)
		if _, err := z.Write(src); err != nil {
			return nil, err
		}
		if err := z.Close(); err != nil {
			return nil, err
		}
		c.tmp = b.Bytes()
	case codecLZ4Raw, codecLZ4:
		head := 0
		if c.codec == codecLZ4 {
			head = 8
		}
		c.tmp = grown(c.tmp[:0], head+lz4.CompressBlockBound(len(src)))
		n, err := c.lz4.CompressBlock(src, c.tmp[head:])
		if err != nil {
			return nil, err
		}
		if n == 0 { // the library refuses to grow data: one literal run then
			c.tmp = lz4Literals(c.tmp[:head], src)
			n = len(c.tmp) - head
		}
		c.tmp = c.tmp[:head+n]
		if head > 0 {
			binary.BigEndian.PutUint32(c.tmp, uint32(len(src)))
			binary.BigEndian.PutUint32(c.tmp[4:], uint32(n))
		}
	}
	return c.tmp, nil
}

// lz4Literals appends src as an LZ4 block of literals alone.
func lz4Literals(dst, src []byte) []byte {
	n := len(src)
	if n < 15 {
		return append(append(dst, byte(n)<<4), src...)
	}
	dst = append(dst, 0xf0)
	for n -= 15; n >= 255; n -= 255 {
		dst = append(dst, 255)
	}
	return append(append(dst, byte(n)), src...)
}

func (c *compressor) close() {
	if c.zstd != nil {
		_ = c.zstd.Close() // nothing is buffered in it
	}
}
