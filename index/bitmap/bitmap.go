// Package bitmap reads and writes Paimon's bitmap index: for each value of a
// column the rows that have it. All numbers are big-endian; a value is int32
// length and bytes (CHAR, VARCHAR), one byte (BOOLEAN, TINYINT), two (SMALLINT),
// four (INT, DATE, TIME, FLOAT) or eight (BIGINT, DOUBLE, timestamps in
// milliseconds up to three digits, else microseconds); bitmaps are portable
// RoaringBitmaps.
//
//	byte version | int32 rows | int32 values | byte has NULL | NULL entry if it has
//	version 1: int32 offset in the NULL entry
//	           values times: value | int32 offset         in no order
//	           bitmaps
//	version 2: int32 offset | int32 length in the NULL entry
//	           int32 blocks | blocks times: first value | int32 offset of the block
//	           int32 size of all blocks
//	           blocks: int32 n | n times: value | int32 offset | int32 length   ascending
//	           bitmaps
//
// An offset is counted from the first bitmap; a negative one is -1 - row: the one
// row of the value, which needs no bitmap. Source: BitmapFileIndex.java,
// BitmapFileIndexMeta.java, BitmapFileIndexMetaV2.java.
package bitmap

import (
	"encoding/binary"
	"fmt"
	"math"
	"strconv"
	"strings"
	"unsafe"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Defaults of the options "version" and "index-block-size".
const (
	DefaultVersion   = 2
	DefaultBlockSize = 16 << 10
)

// Kind is the kind "bitmap".
var Kind index.Kind = kind{}

type kind struct{}

func (kind) Name() string { return "bitmap" }

// Supports: all but BINARY, DECIMAL, VARIANT, BLOB and nested types.
func (kind) Supports(t types.Type) bool { return width(t) >= 0 }

// width is the length of a value of type t; 0 = strings; -1 = not supported.
func width(t types.Type) int {
	switch t.Kind {
	case types.Text, types.Varchar, types.BpChar:
		return 0
	case types.Bool, types.TinyInt:
		return 1
	case types.Int2:
		return 2
	case types.Int4, types.Date, types.Time, types.Float4:
		return 4
	case types.Int8, types.Timestamp, types.TimestampTZ, types.Float8:
		return 8
	}
	return -1
}

func unsupported(t types.Type) error {
	return fmt.Errorf("bitmap index does not support columns of type %s", t.PlainName())
}

// Keys of fixed length are held as numbers that are ordered as Java orders the
// values: floats by their bits, the negative ones turned round, so that -0 is -1,
// next to 0, and NaN is above all.

// ordered turns a key of index.Keys into that form, and back.
func ordered(t types.Type, k int64) int64 {
	switch t.Kind {
	case types.Float4:
		if k < 0 {
			return k ^ math.MaxInt32
		}
	case types.Float8:
		if k < 0 {
			return k ^ math.MaxInt64
		}
	}
	return k
}

// codec reads and writes the values of a dictionary.
type codec[K int64 | string] struct {
	min    int // bytes that a value takes at least
	append func(out []byte, k K) []byte
	// next cuts a value from b. need is how many bytes it takes if there are not
	// enough, -1 if that is damage.
	next func(b []byte) (k K, n, need int)
}

func fixedCodec(t types.Type) codec[int64] {
	w := width(t)
	c := codec[int64]{min: w}
	c.append = func(out []byte, k int64) []byte {
		k = ordered(t, k)
		switch w {
		case 1:
			return append(out, byte(k))
		case 2:
			return binary.BigEndian.AppendUint16(out, uint16(k))
		case 4:
			return binary.BigEndian.AppendUint32(out, uint32(k))
		}
		return binary.BigEndian.AppendUint64(out, uint64(k))
	}
	c.next = func(b []byte) (int64, int, int) {
		if len(b) < w {
			return 0, 0, w
		}
		switch w {
		case 1:
			if t.Kind == types.Bool {
				if b[0] != 0 {
					return 1, 1, 0
				}
				return 0, 1, 0
			}
			return int64(int8(b[0])), 1, 0
		case 2:
			return int64(int16(binary.BigEndian.Uint16(b))), 2, 0
		case 4:
			return ordered(t, int64(int32(binary.BigEndian.Uint32(b)))), 4, 0
		}
		return ordered(t, int64(binary.BigEndian.Uint64(b))), 8, 0
	}
	return c
}

var stringCodec = codec[string]{
	min: 4,
	append: func(out []byte, s string) []byte {
		return append(binary.BigEndian.AppendUint32(out, uint32(len(s))), s...)
	},
	next: func(b []byte) (string, int, int) {
		if len(b) < 4 {
			return "", 0, 4
		}
		n := int64(int32(binary.BigEndian.Uint32(b)))
		if n < 0 {
			return "", 0, -1
		}
		if int64(len(b)) < 4+n {
			return "", 0, int(4 + n)
		}
		// Not a copy for each value: what is read of an index is never changed.
		return unsafe.String(unsafe.SliceData(b[4:]), n), int(4 + n), 0
	},
}

// Create starts an index.
func (kind) Create(t types.Type, o index.Options) (index.Builder, error) {
	w := width(t)
	if w < 0 {
		return nil, unsupported(t)
	}
	b := &builder{t: t, width: w, version: DefaultVersion, blockSize: DefaultBlockSize}
	for name, text := range o {
		var err error
		switch name {
		case "version":
			b.version, err = strconv.Atoi(strings.TrimSpace(text))
			if err == nil && b.version != 1 && b.version != 2 {
				err = fmt.Errorf("1 and 2 are known")
			}
		case "index-block-size":
			b.blockSize, err = memorySize(text)
		default:
			return nil, fmt.Errorf("bitmap index has no option %q", name)
		}
		if err != nil {
			return nil, fmt.Errorf("option %s of a bitmap index: %q: %w", name, text, err)
		}
	}
	return b, nil
}

// memorySize reads sizes as Paimon's options spell them: "16kb", "1 mb", "100".
func memorySize(s string) (int64, error) {
	s = strings.TrimSpace(s)
	digits := 0
	for digits < len(s) && s[digits] >= '0' && s[digits] <= '9' {
		digits++
	}
	n, err := strconv.ParseInt(s[:digits], 10, 64)
	if err != nil {
		return 0, fmt.Errorf("not a size")
	}
	shift := 0
	switch strings.ToLower(strings.TrimSpace(s[digits:])) {
	case "", "b", "bytes":
	case "k", "kb", "kibibytes":
		shift = 10
	case "m", "mb", "mebibytes":
		shift = 20
	case "g", "gb", "gibibytes":
		shift = 30
	case "t", "tb", "tebibytes":
		shift = 40
	default:
		return 0, fmt.Errorf("not a size")
	}
	if n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("too large")
	}
	return n << shift, nil
}

// Open reads the head.
func (kind) Open(src index.Source, t types.Type) (index.FileIndex, error) {
	switch w := width(t); {
	case w < 0:
		return nil, unsupported(t)
	case w == 0:
		return open(src, t, stringCodec, stringQuery)
	default:
		return open(src, t, fixedCodec(t), fixedQuery)
	}
}
