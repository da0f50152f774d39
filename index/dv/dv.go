// Package dv reads and writes deletion vectors: bitmaps of the rows of a data
// file that no longer live.
//
// An index file of type DELETION_VECTORS is
//
//	byte version = 1
//	repeated: int32 BE size | bin, size bytes | int32 BE CRC32 of bin
//
// where bin is one of
//
//	32 bit: int32 BE magic 1581511376 | portable RoaringBitmap
//	64 bit: int32 LE magic 1681511377 | int64 LE n | n times: int32 LE high word | portable RoaringBitmap
//
// The index manifest says where a vector lies: its offset is that of size; its
// length is size for 32 bit and size + 8 for 64 bit vectors.
// Source: BitmapDeletionVector.java, Bitmap64DeletionVector.java.
package dv

import (
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"math"

	"github.com/RoaringBitmap/roaring/v2"
)

const (
	magic32     = 1581511376
	magic64     = 1681511377
	fileVersion = 1
)

// ErrCorrupt is wrapped by every decoding error.
var ErrCorrupt = errors.New("deletion vector is corrupt")

func corrupt(format string, args ...any) error {
	return fmt.Errorf("%w: "+format, append([]any{ErrCorrupt}, args...)...)
}

// Vector is a set of row positions. A decoded Vector is shared between readers
// and must not be changed; Add works on one that is being built.
type Vector struct {
	words []*roaring.Bitmap // by the high 32 bits of the position
	card  int64
}

// Cardinality returns the number of positions.
func (v *Vector) Cardinality() int64 {
	if v == nil {
		return 0
	}
	return v.card
}

// Contains reports whether position pos is deleted.
func (v *Vector) Contains(pos int64) bool {
	if v == nil || pos < 0 || pos>>32 >= int64(len(v.words)) {
		return false
	}
	return v.words[pos>>32].Contains(uint32(pos))
}

// Add puts pos, at most 2^40, into the set and reports whether it is new.
func (v *Vector) Add(pos int64) bool {
	if pos < 0 || pos >= 1<<40 {
		return false
	}
	for pos>>32 >= int64(len(v.words)) {
		v.words = append(v.words, roaring.New())
	}
	if !v.words[pos>>32].CheckedAdd(uint32(pos)) {
		return false
	}
	v.card++
	return true
}

// Clone returns a vector that may be changed.
func (v *Vector) Clone() *Vector {
	out := &Vector{}
	if v != nil {
		out.card = v.card
		for _, w := range v.words {
			out.words = append(out.words, w.Clone())
		}
	}
	return out
}

// Each calls f with every position, ascending, until it returns false.
func (v *Vector) Each(f func(pos int64) bool) {
	if v == nil {
		return
	}
	for hi, w := range v.words {
		it := w.Iterator()
		for it.HasNext() {
			if !f(int64(hi)<<32 | int64(it.Next())) {
				return
			}
		}
	}
}

// Keep appends to buf[:0] the rows of [from, from+n) that are not deleted, as
// offsets from from, ascending; n is at most 65,536. none is true when no row of
// the window is deleted: then the result is nil and all rows live.
func (v *Vector) Keep(from int64, n int, buf []uint16) (keep []uint16, none bool) {
	if v == nil || v.card == 0 {
		return nil, true
	}
	keep = buf[:0]
	next := 0 // first row of the window not decided yet
	for n > 0 && next < n {
		pos := from + int64(next)
		hi := pos >> 32
		if hi >= int64(len(v.words)) {
			break
		}
		// The part of the window that lies in this 32-bit word.
		end := min(int64(n), (hi+1)<<32-from)
		it := v.words[hi].Iterator()
		it.AdvanceIfNeeded(uint32(pos))
		for it.HasNext() {
			d := hi<<32 | int64(it.Next())
			at := d - from
			if at >= end {
				break
			}
			for ; int64(next) < at; next++ {
				keep = append(keep, uint16(next))
			}
			next++
		}
		for ; int64(next) < end; next++ {
			keep = append(keep, uint16(next))
		}
	}
	for ; next < n; next++ {
		keep = append(keep, uint16(next))
	}
	if len(keep) == n {
		return nil, true
	}
	return keep, false
}

// CountIn returns how many rows of [from, to) are deleted.
func (v *Vector) CountIn(from, to int64) int64 {
	if v == nil || from >= to {
		return 0
	}
	n := int64(0)
	for hi, w := range v.words {
		lo, end := int64(hi)<<32, int64(hi+1)<<32
		a, b := max(from, lo)-lo, min(to, end)-lo
		if a >= b {
			continue
		}
		c := int64(w.Rank(uint32(b - 1)))
		if a > 0 {
			c -= int64(w.Rank(uint32(a - 1)))
		}
		n += c
	}
	return n
}

// Read decodes the vector that lies at offset in an index file. length is what
// the index manifest says, 0 when it is not known.
func Read(file []byte, offset, length int64) (*Vector, error) {
	if len(file) == 0 || file[0] != fileVersion {
		return nil, corrupt("file version")
	}
	if offset < 1 || offset+4 > int64(len(file)) {
		return nil, corrupt("offset %d in a file of %d bytes", offset, len(file))
	}
	size := int64(int32(binary.BigEndian.Uint32(file[offset:])))
	if size < 4 || offset+4+size+4 > int64(len(file)) {
		return nil, corrupt("size %d at offset %d in a file of %d bytes", size, offset, len(file))
	}
	bin := file[offset+4 : offset+4+size]
	sum := binary.BigEndian.Uint32(file[offset+4+size:])
	if crc32.ChecksumIEEE(bin) != sum {
		return nil, corrupt("checksum at offset %d", offset)
	}
	if length != 0 && length != size && length != size+8 {
		return nil, corrupt("length %d, the index manifest says %d", size, length)
	}
	return Decode(bin)
}

// Decode reads one vector without size and checksum, of either form.
func Decode(bin []byte) (*Vector, error) {
	if len(bin) < 4 {
		return nil, corrupt("%d bytes", len(bin))
	}
	v := &Vector{}
	switch {
	case binary.BigEndian.Uint32(bin) == magic32:
		w, rest, err := decodeBitmap(bin[4:])
		if err != nil {
			return nil, err
		}
		if len(rest) != 0 {
			return nil, corrupt("%d bytes too many", len(rest))
		}
		v.words = []*roaring.Bitmap{w}
	case binary.LittleEndian.Uint32(bin) == magic64:
		if len(bin) < 12 {
			return nil, corrupt("%d bytes", len(bin))
		}
		n, rest := binary.LittleEndian.Uint64(bin[4:]), bin[12:]
		if n > uint64(len(rest)/12) { // key and an empty bitmap
			return nil, corrupt("%d bitmaps in %d bytes", n, len(bin))
		}
		for range n {
			if len(rest) < 4 {
				return nil, corrupt("bitmap is cut short")
			}
			key := binary.LittleEndian.Uint32(rest)
			w, r, err := decodeBitmap(rest[4:])
			if err != nil {
				return nil, err
			}
			// Java writes one bitmap per word from 0 on; others may leave gaps.
			if key > 1<<8 || int(key) < len(v.words) {
				return nil, corrupt("high word %d", key)
			}
			for int(key) > len(v.words) {
				v.words = append(v.words, roaring.New())
			}
			v.words, rest = append(v.words, w), r
		}
		if len(rest) != 0 {
			return nil, corrupt("%d bytes too many", len(rest))
		}
	default:
		return nil, corrupt("magic %x", bin[:4])
	}
	for _, w := range v.words {
		v.card += int64(w.GetCardinality())
	}
	return v, nil
}

func decodeBitmap(b []byte) (*roaring.Bitmap, []byte, error) {
	w := roaring.New()
	n, err := w.FromBuffer(append([]byte(nil), b...))
	if err != nil {
		return nil, nil, corrupt("bitmap: %v", err)
	}
	if n < 0 || n > int64(len(b)) {
		return nil, nil, corrupt("bitmap of %d bytes", n)
	}
	if n > 8 || w.GetCardinality() > 0 {
		if err := w.Validate(); err != nil {
			return nil, nil, corrupt("bitmap: %v", err)
		}
	}
	return w, b[n:], nil
}

// Encode writes one vector without size and checksum. wide chooses the 64-bit
// form, which positions above 2^32 need.
func (v *Vector) Encode(wide bool) ([]byte, error) {
	words := v.words
	if len(words) == 0 {
		words = []*roaring.Bitmap{roaring.New()}
	}
	if !wide {
		if len(words) > 1 {
			return nil, fmt.Errorf("deletion vector holds positions above 2^32 and needs the 64-bit form")
		}
		b, err := optimised(words[0])
		return append(binary.BigEndian.AppendUint32(nil, magic32), b...), err
	}
	out := binary.LittleEndian.AppendUint32(nil, magic64)
	out = binary.LittleEndian.AppendUint64(out, uint64(len(words)))
	for key, w := range words {
		b, err := optimised(w)
		if err != nil {
			return nil, err
		}
		out = append(binary.LittleEndian.AppendUint32(out, uint32(key)), b...)
	}
	return out, nil
}

func optimised(w *roaring.Bitmap) ([]byte, error) {
	w = w.Clone()
	w.RunOptimize()
	return w.ToBytes()
}

// File builds an index file of vectors. The zero value is ready.
type File struct{ b []byte }

// Append adds a vector and returns what the index manifest says of it.
func (f *File) Append(v *Vector, wide bool) (offset, length int32, err error) {
	bin, err := v.Encode(wide)
	if err != nil {
		return 0, 0, err
	}
	if len(f.b) == 0 {
		f.b = append(f.b, fileVersion)
	}
	if len(f.b)+len(bin)+8 > math.MaxInt32 {
		return 0, 0, fmt.Errorf("deletion vector file is larger than 2 GB")
	}
	offset, length = int32(len(f.b)), int32(len(bin))
	if wide {
		length += 8
	}
	f.b = binary.BigEndian.AppendUint32(f.b, uint32(len(bin)))
	f.b = append(f.b, bin...)
	f.b = binary.BigEndian.AppendUint32(f.b, crc32.ChecksumIEEE(bin))
	return offset, length, nil
}

// Bytes returns the file; its size without vectors is one byte.
func (f *File) Bytes() []byte {
	if len(f.b) == 0 {
		f.b = append(f.b, fileVersion)
	}
	return f.b
}
