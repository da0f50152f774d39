package parquet

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"sync"

	"github.com/andybalholm/brotli"
	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/snappy"
	"github.com/klauspost/compress/zstd"
	"github.com/pierrec/lz4/v4"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// One zstd decoder serves all goroutines: DecodeAll takes a free decoder of its
// pool and has no state of its own.
var zstdDecoder = sync.OnceValue(func() *zstd.Decoder {
	d, err := zstd.NewReader(nil, zstd.WithDecoderConcurrency(0), zstd.WithDecoderLowmem(false), zstd.WithDecoderMaxMemory(1<<31))
	if err != nil {
		panic(err) // wrong options: a bug
	}
	return d
})

var gzipPool = sync.Pool{New: func() any { return new(gzip.Reader) }}

var errSize = errors.New("a page does not have the size that its header says")

// eagerBytes is what may be allocated on the word of a page header alone. Above
// it a decoder grows its output as bytes really come out.
const eagerBytes = 4 << 20

// decompress appends nothing to dst: it returns the n bytes that src unpacks to,
// in dst's memory when that is big enough. n comes from the file.
func decompress(dst, src []byte, codec int32, n int) ([]byte, error) {
	if n > eagerBytes && n > 256*len(src) && codec != codecZstd && codec != codecGzip && codec != codecBrotli {
		return nil, errSize // beyond what LZ4 and Snappy can do
	}
	if cap(dst) < n && (n <= eagerBytes || n <= 64*len(src)) {
		dst = make([]byte, 0, n)
	}
	dst = dst[:0]
	var err error
	switch codec {
	case codecZstd:
		dst, err = zstdDecoder().DecodeAll(src, dst)
	case codecSnappy:
		if k, err := snappy.DecodedLen(src); err != nil || k != n {
			return nil, errSize
		}
		dst, err = snappy.Decode(grow(dst, n), src)
	case codecGzip:
		dst, err = gunzip(dst, src, n)
	case codecBrotli:
		dst, err = readUpTo(dst, brotli.NewReader(bytes.NewReader(src)), n)
	case codecLZ4Raw:
		dst, err = lz4Block(grow(dst, n), src)
	case codecLZ4:
		dst, err = lz4Hadoop(grow(dst, n), src)
	default:
		return nil, &fileio.UnsupportedError{Feature: "Parquet compression codec " + codecName(codec)}
	}
	if err != nil {
		return nil, err
	}
	if len(dst) != n {
		return nil, errSize
	}
	return dst, nil
}

func codecName(c int32) string {
	n := [...]string{"UNCOMPRESSED", "SNAPPY", "GZIP", "LZO", "BROTLI", "LZ4", "ZSTD", "LZ4_RAW"}
	if c >= 0 && int(c) < len(n) {
		return n[c]
	}
	return fmt.Sprint(c)
}

func grow(dst []byte, n int) []byte {
	if cap(dst) < n {
		return make([]byte, n)
	}
	return dst[:n]
}

func gunzip(dst, src []byte, n int) ([]byte, error) {
	z := gzipPool.Get().(*gzip.Reader)
	defer gzipPool.Put(z)
	if err := z.Reset(bytes.NewReader(src)); err != nil {
		return nil, err
	}
	return readUpTo(dst, z, n)
}

// readUpTo reads r to its end, which must come after n bytes.
func readUpTo(dst []byte, r io.Reader, n int) ([]byte, error) {
	for {
		if len(dst) == cap(dst) {
			dst = append(dst, 0)[:len(dst)]
		}
		k, err := r.Read(dst[len(dst):cap(dst)])
		dst = dst[:len(dst)+k]
		if len(dst) > n {
			return nil, errSize
		}
		if err == io.EOF {
			return dst, nil
		}
		if err != nil {
			return nil, err
		}
	}
}

func lz4Block(dst, src []byte) ([]byte, error) {
	if len(dst) == 0 {
		return dst, nil
	}
	k, err := lz4.UncompressBlock(src, dst)
	if err != nil {
		return nil, err
	}
	return dst[:k], nil
}

// lz4Hadoop reads the framing of Hadoop's LZ4 codec, which Java writes under
// codec 5: any number of
//
//	uint32 BE uncompressed | (uint32 BE compressed | LZ4 block)...
//
// with blocks until the uncompressed bytes are there. Early C++ writers put a
// bare block under the same number, so that is tried when the frame does not fit.
func lz4Hadoop(dst, src []byte) ([]byte, error) {
	if out, ok := lz4Frames(dst, src); ok {
		return out, nil
	}
	return lz4Block(dst, src)
}

func lz4Frames(dst, src []byte) ([]byte, bool) {
	at := 0
	for len(src) > 0 {
		if len(src) < 4 {
			return nil, false
		}
		n := int(binary.BigEndian.Uint32(src))
		src = src[4:]
		if n > len(dst)-at {
			return nil, false
		}
		for n > 0 {
			if len(src) < 4 {
				return nil, false
			}
			c := int(binary.BigEndian.Uint32(src))
			src = src[4:]
			if c > len(src) {
				return nil, false
			}
			k, err := lz4.UncompressBlock(src[:c], dst[at:at+n])
			if err != nil || k == 0 {
				return nil, false
			}
			src = src[c:]
			at += k
			n -= k
		}
	}
	return dst[:at], at == len(dst)
}
