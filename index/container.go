package index

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/RoaringBitmap/roaring/v2"
)

// The container in which the file indexes of one data file lie together, as a
// file of its own (<data file>.index) or inside the manifest entry. All numbers
// are big-endian; utf is Java's modified UTF-8 behind a uint16 length:
//
//	int64 magic | int32 version = 1 | int32 head length, from byte 0
//	int32 columns
//	  per column: utf name | int32 indexes
//	    per index: utf kind | int32 start, from byte 0 (-1 = empty) | int32 length
//	int32 redundant length = 0, and as many bytes
//	the indexes, one behind the other
//
// Source: FileIndexFormat.java.
const (
	containerMagic   = 1493475289347502
	containerVersion = 1
	containerPrefix  = 16   // magic, version, head length
	containerGuess   = 1024 // bytes read at first: heads of some twenty indexes are smaller
)

// ErrCorrupt is wrapped by every error about bytes that are not what an index
// should be.
var ErrCorrupt = errors.New("file index is corrupt")

// ErrVersion is wrapped by errors about versions that are not known here.
var ErrVersion = errors.New("unknown version of file index")

// Corrupt makes an error that wraps ErrCorrupt.
func Corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// BytesSource is a Source that is in memory.
type BytesSource []byte

// Size returns the number of bytes.
func (b BytesSource) Size() int64 { return int64(len(b)) }

// ReadAt is io.ReaderAt's.
func (b BytesSource) ReadAt(p []byte, off int64) (int, error) {
	if off < 0 || off > int64(len(b)) {
		return 0, io.EOF
	}
	n := copy(p, b[off:])
	if n < len(p) {
		return n, io.EOF
	}
	return n, nil
}

// ReadBytes reads n bytes at off of a source; bytes that are not there are
// damage, noticed before anything is allocated. What a BytesSource gives is
// shared: not to be changed.
func ReadBytes(src Source, off, n int64) ([]byte, error) {
	if off < 0 || n < 0 || off > src.Size() || n > src.Size()-off {
		return nil, Corrupt("%d bytes at %d of %d", n, off, src.Size())
	}
	if b, ok := src.(BytesSource); ok {
		return b[off : off+n : off+n], nil
	}
	buf := make([]byte, n)
	if m, err := src.ReadAt(buf, off); m < len(buf) {
		if err == nil || errors.Is(err, io.EOF) {
			err = io.ErrUnexpectedEOF
		}
		return nil, fmt.Errorf("file index: %d bytes at %d: %w", n, off, err)
	}
	return buf, nil
}

// Section is one index in a container's head.
type Section struct {
	Column string // or MapColumn(column, key)
	Kind   string // any: kinds that are not known here are listed, too
	Empty  bool   // no row of the file has a value that is not NULL
	start  int64
	length int64
}

// Size is the number of bytes of the index.
func (s *Section) Size() int64 { return s.length }

// Container is an open container: its head is read, its indexes are not. Safe
// for concurrent use as far as the source is.
type Container struct {
	src      Source
	head     int64
	sections []Section
}

// OpenContainer reads the head of a container.
func OpenContainer(src Source) (*Container, error) {
	size := src.Size()
	if size < containerPrefix {
		return nil, Corrupt("container of %d bytes", size)
	}
	buf, err := ReadBytes(src, 0, min(size, containerGuess))
	if err != nil {
		return nil, err
	}
	if m := binary.BigEndian.Uint64(buf); m != containerMagic {
		return nil, Corrupt("magic %x", m)
	}
	if v := int32(binary.BigEndian.Uint32(buf[8:])); v != containerVersion {
		return nil, fmt.Errorf("%w container: %d", ErrVersion, v)
	}
	head := int64(int32(binary.BigEndian.Uint32(buf[12:])))
	if head < containerPrefix+4 || head > size {
		return nil, Corrupt("head of %d bytes in a container of %d", head, size)
	}
	if head > int64(len(buf)) {
		if buf, err = ReadBytes(src, 0, head); err != nil {
			return nil, err
		}
	}
	c := &Container{src: src, head: head}
	return c, c.parse(buf[containerPrefix:head])
}

func (c *Container) parse(b []byte) error {
	r := headReader{b: b}
	columns := r.count(2 + 4)
	for range columns {
		column := r.utf()
		for range r.count(2 + 8) {
			s := Section{Column: column, Kind: r.utf(), start: int64(r.int32()), length: int64(r.int32())}
			if r.bad {
				break
			}
			if s.Empty = s.start == -1; s.Empty {
				s.length = 0
			} else if s.start < 0 || s.length < 0 || s.start+s.length > c.src.Size() {
				return Corrupt("index %q of column %q: %d bytes at %d of %d", s.Kind, column, s.length, s.start, c.src.Size())
			}
			c.sections = append(c.sections, s)
		}
		if r.bad {
			break
		}
	}
	// What follows is for versions to come; its length need not be looked at.
	if r.bad {
		return Corrupt("head of %d bytes ends early", c.head)
	}
	return nil
}

// headReader cuts a head; after an overrun it is bad and gives zeros.
type headReader struct {
	b   []byte
	bad bool
}

func (r *headReader) take(n int) []byte {
	if r.bad || n > len(r.b) {
		r.bad = true
		return nil
	}
	out := r.b[:n]
	r.b = r.b[n:]
	return out
}

func (r *headReader) int32() int32 {
	if b := r.take(4); b != nil {
		return int32(binary.BigEndian.Uint32(b))
	}
	return 0
}

// count reads a number of things that take at least size bytes each.
func (r *headReader) count(size int) int {
	n := int(r.int32())
	if n < 0 || n > len(r.b)/size {
		r.bad = true
		return 0
	}
	return n
}

func (r *headReader) utf() string {
	b := r.take(2)
	if b == nil {
		return ""
	}
	s, ok := decodeModifiedUTF8(r.take(int(binary.BigEndian.Uint16(b))))
	r.bad = r.bad || !ok
	return s
}

// Sections returns the indexes in the order of the head. Not to be changed.
func (c *Container) Sections() []Section { return c.sections }

// HeadSize is the number of bytes of the head.
func (c *Container) HeadSize() int64 { return c.head }

// Find returns the indexes of a column, in the order of the head.
func (c *Container) Find(column string) []*Section {
	var out []*Section
	for i := range c.sections {
		if c.sections[i].Column == column {
			out = append(out, &c.sections[i])
		}
	}
	return out
}

// Source returns the bytes of an index of c, nil for an empty one.
func (c *Container) Source(s *Section) Source {
	if s.Empty {
		return nil
	}
	if b, ok := c.src.(BytesSource); ok {
		return b[s.start : s.start+s.length : s.start+s.length]
	}
	return io.NewSectionReader(c.src, s.start, s.length)
}

// MapColumn is the name under which a container holds the indexes over the
// values that a map column has for a key.
func MapColumn(column, key string) string { return column + "[" + key + "]" }

// SplitMapColumn is the inverse of MapColumn; false = the name of a plain column.
func SplitMapColumn(name string) (column, key string, ok bool) {
	if !strings.HasSuffix(name, "]") {
		return name, "", false
	}
	column, key, ok = strings.Cut(name[:len(name)-1], "[")
	if !ok {
		return name, "", false
	}
	return column, key, true
}

// Index is one index to be written: Data as a Builder returned it, nil = empty.
type Index struct {
	Column, Kind string
	Data         []byte
}

// WriteContainer makes a container of indexes; those of one column must stand
// one behind the other.
func WriteContainer(indexes []Index) ([]byte, error) {
	head, body := int64(containerPrefix+4+4), int64(0)
	columns := 0
	for i, x := range indexes {
		if i == 0 || x.Column != indexes[i-1].Column {
			for _, y := range indexes[:i] {
				if y.Column == x.Column {
					return nil, fmt.Errorf("file index: the indexes of column %q are not together", x.Column)
				}
			}
			columns++
			head += 2 + int64(len(encodeModifiedUTF8(x.Column))) + 4
		}
		head += 2 + int64(len(encodeModifiedUTF8(x.Kind))) + 8
		body += int64(len(x.Data))
	}
	if head+body > math.MaxInt32 {
		return nil, fmt.Errorf("file index: %d bytes are more than a container can hold", head+body)
	}
	out := make([]byte, 0, head+body)
	out = binary.BigEndian.AppendUint64(out, containerMagic)
	out = binary.BigEndian.AppendUint32(out, containerVersion)
	out = binary.BigEndian.AppendUint32(out, uint32(head))
	out = binary.BigEndian.AppendUint32(out, uint32(columns))
	at := uint32(head)
	var err error
	for i, x := range indexes {
		if i == 0 || x.Column != indexes[i-1].Column {
			n := 1
			for i+n < len(indexes) && indexes[i+n].Column == x.Column {
				n++
			}
			if out, err = appendUTF(out, x.Column); err != nil {
				return nil, err
			}
			out = binary.BigEndian.AppendUint32(out, uint32(n))
		}
		if out, err = appendUTF(out, x.Kind); err != nil {
			return nil, err
		}
		start := at
		if x.Data == nil {
			start = math.MaxUint32 // -1
		}
		out = binary.BigEndian.AppendUint32(out, start)
		out = binary.BigEndian.AppendUint32(out, uint32(len(x.Data)))
		at += uint32(len(x.Data))
	}
	out = binary.BigEndian.AppendUint32(out, 0)
	for _, x := range indexes {
		out = append(out, x.Data...)
	}
	return out, nil
}

func appendUTF(out []byte, s string) ([]byte, error) {
	b := encodeModifiedUTF8(s)
	if len(b) > math.MaxUint16 {
		return nil, fmt.Errorf("file index: name of %d bytes is too long", len(b))
	}
	out = binary.BigEndian.AppendUint16(out, uint16(len(b)))
	return append(out, b...), nil
}

// encodeModifiedUTF8 writes U+0000 in two bytes and characters above U+FFFF as
// two surrogates of three bytes each, as DataOutput.writeUTF does.
func encodeModifiedUTF8(s string) []byte {
	out := make([]byte, 0, len(s))
	for i, r := range s {
		switch {
		case r == 0:
			out = append(out, 0xC0, 0x80)
		case r > 0xFFFF:
			r -= 0x10000
			out = appendSurrogate(out, 0xD800+r>>10)
			out = appendSurrogate(out, 0xDC00+r&0x3FF)
		case r == utf8.RuneError && !strings.HasPrefix(s[i:], "\uFFFD"):
			out = append(out, s[i]) // a byte of a lone surrogate: as it was read
		default:
			out = utf8.AppendRune(out, r)
		}
	}
	return out
}

func appendSurrogate(out []byte, r rune) []byte {
	return append(out, byte(0xE0|r>>12), byte(0x80|r>>6&0x3F), byte(0x80|r&0x3F))
}

// decodeModifiedUTF8 is the inverse; lone surrogates stay three bytes that are
// not UTF-8, which no column's name matches.
func decodeModifiedUTF8(b []byte) (string, bool) {
	if bytes.IndexFunc(b, func(r rune) bool { return r == 0 || r >= utf8.RuneSelf }) < 0 {
		return string(b), true
	}
	out := make([]byte, 0, len(b))
	high := rune(-1) // a high surrogate that waits at the end of out
	for len(b) > 0 {
		var r rune
		n := 1
		switch c := b[0]; {
		case c < 0x80:
			r = rune(c)
		case c>>5 == 0b110 && len(b) > 1 && b[1]>>6 == 0b10:
			r, n = rune(c&0x1F)<<6|rune(b[1]&0x3F), 2
		case c>>4 == 0b1110 && len(b) > 2 && b[1]>>6 == 0b10 && b[2]>>6 == 0b10:
			r, n = rune(c&0x0F)<<12|rune(b[1]&0x3F)<<6|rune(b[2]&0x3F), 3
		default:
			return "", false
		}
		b = b[n:]
		switch {
		case r>>10 == 0xDC00>>10 && high >= 0:
			out = utf8.AppendRune(out[:len(out)-3], 0x10000+(high-0xD800)<<10+r-0xDC00)
			high = -1
			continue
		case r>>11 == 0xD800>>11:
			out = appendSurrogate(out, r)
		default:
			out = utf8.AppendRune(out, r)
		}
		if high = -1; r>>10 == 0xD800>>10 {
			high = r
		}
	}
	return string(out), true
}

// DecodeBitmap reads the portable RoaringBitmap at the start of b, which must
// hold all of it, and returns the bytes behind it. Never panics; the bitmap keeps
// no reference to b.
func DecodeBitmap(b []byte) (*roaring.Bitmap, []byte, error) {
	w := roaring.New()
	n, err := w.FromBuffer(bytes.Clone(b))
	if err != nil {
		return nil, nil, Corrupt("bitmap: %v", err)
	}
	if n < 0 || n > int64(len(b)) {
		return nil, nil, Corrupt("bitmap of %d bytes in %d", n, len(b))
	}
	if !w.IsEmpty() { // Validate takes an empty bitmap for damage
		if err := w.Validate(); err != nil {
			return nil, nil, Corrupt("bitmap: %v", err)
		}
	}
	return w, b[n:], nil
}
