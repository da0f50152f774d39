package parquet

import (
	"bytes"
	"encoding/binary"
	"strings"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/huff0"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// compressor packs pages with one codec. It serves one column at a time.
type compressor struct {
	codec int32
	level int
	zstd  *zstd.Encoder
	huff  huff0.Scratch
	lz4   lz4.Compressor
	tmp   []byte
}

// codec hands out compressors: a zstd encoder takes longer to make than a small
// file to write, and columns are packed side by side.
type codec struct {
	id   int32
	pool *sync.Pool
}

type codecKey struct {
	id    int32
	level int
}

var codecs sync.Map // codecKey -> *sync.Pool of *compressor

// newCodec takes a value of file.compression; empty is zstd.
func newCodec(name string, level int) (codec, error) {
	id, err := codecOf(name)
	if err != nil {
		return codec{}, err
	}
	if id == codecZstd && level <= 0 {
		level = 1
	}
	k := codecKey{id, level}
	p, ok := codecs.Load(k)
	if !ok {
		p, _ = codecs.LoadOrStore(k, &sync.Pool{New: func() any { return &compressor{codec: id, level: level} }})
	}
	return codec{id, p.(*sync.Pool)}, nil
}

// pack gives use the page packed; packed is only valid while it runs.
func (c codec) pack(src []byte, use func(packed []byte)) error {
	x := c.pool.Get().(*compressor)
	packed, err := x.pack(src)
	if err == nil {
		use(packed)
	}
	if cap(x.tmp) > 4<<20 {
		x.tmp = nil
	}
	c.pool.Put(x)
	return err
}

func codecOf(name string) (int32, error) {
	switch strings.ToLower(name) {
	case "", "zstd", "zstandard":
		return codecZstd, nil
	case "none", "uncompressed":
		return codecNone, nil
	case "snappy":
		return codecSnappy, nil
	case "gzip":
		return codecGzip, nil
	case "lz4":
		return codecLZ4, nil
	case "lz4_raw":
		return codecLZ4Raw, nil
	case "brotli":
		return codecBrotli, nil
	}
	return 0, &fileio.UnsupportedError{Feature: "Parquet compression " + name}
}

// pack returns src compressed, in scratch that lives until the next call.
func (c *compressor) pack(src []byte) ([]byte, error) {
	switch c.codec {
	case codecNone:
		return src, nil
	case codecZstd:
		return c.zstdPage(src)
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
