package parquet

import (
	"strings"
	"unsafe"
)

// rawMin is the least size for which memory that is not cleared is worth it; it
// is also above what Go's allocator packs together unaligned.
const rawMin = 1 << 10

// rawSlice makes a slice of n elements whose content is arbitrary. Clearing
// memory that is overwritten at once was a sixth of the time to decode plain
// integers.
//
// strings.Builder is the one door to memory that Go does not clear. The builder
// is dropped here, so nobody else has the bytes; a string of one byte is written
// so that its pointer is defined; and an allocation of this size is aligned to
// eight bytes at least. T has no pointers.
func rawSlice[T int16 | int32 | int64 | dec | byte](n int) []T {
	var z T
	size := n * int(unsafe.Sizeof(z))
	if size < rawMin {
		return make([]T, n)
	}
	var b strings.Builder
	b.Grow(size)
	b.WriteByte(0)
	return unsafe.Slice((*T)(unsafe.Pointer(unsafe.StringData(b.String()))), n)
}

// growBytes is slices.Grow without clearing.
func growBytes(v []byte, n int) []byte {
	if cap(v)-len(v) >= n {
		return v
	}
	out := rawSlice[byte](max(len(v)+n, 2*len(v)))
	return out[:copy(out, v)]
}
