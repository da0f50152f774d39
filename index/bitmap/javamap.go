package bitmap

import (
	"encoding/binary"
	"math/bits"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Java lays the bitmaps out in the order in which its HashMap holds the values.
// No reader depends on it; it is followed here so that the same rows give the
// same bytes whoever writes them.

// hashFixed is hashCode of the boxed value.
func hashFixed(t types.Type, k int64) int32 {
	k = ordered(t, k)
	switch width(t) {
	case 8:
		return int32(k ^ int64(uint64(k)>>32))
	case 1:
		if t.Kind == types.Bool {
			if k != 0 {
				return 1231
			}
			return 1237
		}
	}
	return int32(k)
}

// hashString is BinaryString.hashCode: Murmur3 with seed 42 over words, then over
// the bytes that remain, sign-extended, each as a word.
func hashString(s string) int32 {
	h := uint32(42)
	mix := func(k uint32) {
		k *= 0xcc9e2d51
		k = bits.RotateLeft32(k, 15) * 0x1b873593
		h = bits.RotateLeft32(h^k, 13)*5 + 0xe6546b64
	}
	i := 0
	for ; i+4 <= len(s); i += 4 {
		mix(binary.LittleEndian.Uint32([]byte(s[i : i+4])))
	}
	for ; i < len(s); i++ {
		mix(uint32(int32(int8(s[i]))))
	}
	h ^= uint32(len(s))
	h = (h ^ h>>16) * 0x85ebca6b
	h = (h ^ h>>13) * 0xc2b2ae35
	return int32(h ^ h>>16)
}

// hashOrder returns the order of iteration of a HashMap into which values with
// these hashes were put one after the other by computeIfAbsent. later says that
// it was called again after the last of them came in.
//
// computeIfAbsent puts a value at the head of its bin, and lets the table grow
// only when it is called the next time. Growing keeps the order within bins. A
// bin of eight makes a table below 64 bins grow as well; in a larger one Java
// turns the bin into a tree, whose order is not followed here.
func hashOrder(hashes []int32, later bool) []int32 {
	head := make([]int32, 16) // 1 + index of the first value of the bin
	next := make([]int32, len(hashes))
	grow := func() {
		old := head
		head = make([]int32, 2*len(old))
		for b, e := range old {
			var tail [2]*int32
			tail[0], tail[1] = &head[b], &head[b+len(old)]
			for e != 0 {
				i := e - 1
				e, next[i] = next[i], 0
				side := 0
				if spread(hashes[i])&uint32(len(old)) != 0 {
					side = 1
				}
				*tail[side] = i + 1
				tail[side] = &next[i]
			}
		}
	}
	for i, h := range hashes {
		if i > len(head)/4*3 {
			grow()
		}
		b := spread(h) & uint32(len(head)-1)
		n := 0
		for e := head[b]; e != 0 && n < 7; e = next[e-1] {
			n++
		}
		head[b], next[i] = int32(i)+1, head[b]
		if n >= 7 && len(head) < 64 {
			grow()
		}
	}
	if later && len(hashes) > len(head)/4*3 {
		grow()
	}
	out := make([]int32, 0, len(hashes))
	for _, e := range head {
		for ; e != 0; e = next[e-1] {
			out = append(out, e-1)
		}
	}
	return out
}

func spread(h int32) uint32 { return uint32(h) ^ uint32(h)>>16 }
