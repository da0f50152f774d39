package aggregate

import (
	"encoding/binary"
	"math"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// theta_sketch unites theta sketches of Apache DataSketches: the hashes below a
// threshold, theta, of what was counted. Words are little-endian:
//
//	words of preamble uint8 (6 bits) | version 3 | family uint8 | lg of nominal
//	  entries uint8 | lg of slots uint8 | flags uint8 | hash of the seed uint16
//	with 2 words or more: entries uint32 | sampling float32
//	with 3: theta int64, else 2^63-1
//	hashes int64: entries, ascending where the flag says so, or a hash table of
//	  slots
//
// One word is an empty sketch, or with a hash behind it one of a single entry. The
// result is compact and ordered and holds at most 4,096 entries. The table that
// Java collects in is emulated as far as it shows: it takes 7,680 entries, then
// theta becomes the 4,097th of them.
//
// Source: UnionImpl.java, HeapQuickSelectSketch.java, CompactOperations.java of
// DataSketches 4.2; ThetaSketch.java.
var thetaSketch = Function{Name: "theta_sketch", Takes: varbinary, New: newUnion("theta_sketch", unionTheta)}

const (
	thetaEntries = 4096
	thetaFull    = 7680 // 15/16 of the table of twice the entries
	thetaSeed    = 0x93cc
	thetaMax     = math.MaxInt64

	thetaReadOnly = 2
	thetaEmpty    = 4
	thetaCompact  = 8
	thetaOrdered  = 16
	thetaSingle   = 32
)

// thetaUnion is a union in the making.
type thetaUnion struct {
	slots []int64 // hash table, 0 = free
	count int
	theta int64 // of the table
	least int64 // of the sketches
	empty bool
}

func unionTheta(acc, x []byte) ([]byte, error) {
	size := 32
	for size < 2*(len(acc)+len(x))/8 && size < 4*thetaEntries {
		size *= 2
	}
	u := &thetaUnion{slots: make([]int64, size), theta: thetaMax, least: thetaMax, empty: true}
	for _, b := range [2][]byte{acc, x} {
		if err := u.add(b); err != nil {
			return nil, err
		}
	}
	return u.result(), nil
}

func (u *thetaUnion) add(b []byte) error {
	bad := damaged("theta sketch")
	if len(b) < 16 { // an empty one
		return nil
	}
	words, version, family, lg, flags := int(b[0]&63), b[1], b[2], b[4], b[5]
	if version == 1 || version == 2 || version == 4 {
		return &fileio.UnsupportedError{Feature: "theta sketches of an old or a compressed version"}
	}
	if version != 3 || family < 1 || family > 3 || flags&1 != 0 {
		return bad
	}
	if words == 1 {
		// The flag of a single entry was not always written.
		if flags&0x1f == thetaReadOnly|thetaCompact|thetaOrdered && family == 3 || flags&thetaSingle != 0 {
			return u.update(int64(binary.LittleEndian.Uint64(b[8:])))
		}
		return nil
	}
	if words > 3 || binary.LittleEndian.Uint16(b[6:]) != thetaSeed {
		return bad
	}
	n, theta := int(binary.LittleEndian.Uint32(b[8:])), int64(thetaMax)
	if words == 2 && n == 0 {
		return nil
	}
	b = b[16:]
	if words == 3 {
		if len(b) < 8 {
			return bad
		}
		theta = int64(binary.LittleEndian.Uint64(b))
		b = b[8:]
	}
	u.least, u.empty = min(u.least, theta, u.theta), false
	ordered := flags&thetaOrdered != 0
	if !ordered && flags&thetaCompact == 0 {
		n = 1 << min(lg, 31)
	}
	if n > len(b)/8 {
		return bad
	}
	for ; n > 0; n-- {
		h := int64(binary.LittleEndian.Uint64(b))
		b = b[8:]
		if h >= u.least || h <= 0 && !ordered {
			if ordered {
				break
			}
			continue
		}
		if err := u.update(h); err != nil {
			return err
		}
	}
	u.least = min(u.least, u.theta)
	return nil
}

// update puts a hash in.
func (u *thetaUnion) update(h int64) error {
	if h <= 0 {
		return damaged("theta sketch")
	}
	u.empty = false
	if h >= u.theta || !u.insert(h) {
		return nil
	}
	u.count++
	if u.count > thetaFull {
		u.cut(thetaEntries)
	}
	return nil
}

func (u *thetaUnion) insert(h int64) bool {
	mask := len(u.slots) - 1
	for i := int(h) & mask; ; i = (i + 1) & mask {
		switch u.slots[i] {
		case h:
			return false
		case 0:
			u.slots[i] = h
			return true
		}
	}
}

// sorted returns the hashes, ascending.
func (u *thetaUnion) sorted() []int64 {
	out := make([]int64, 0, u.count)
	for _, h := range u.slots {
		if h != 0 {
			out = append(out, h)
		}
	}
	slices.Sort(out)
	return out
}

// cut keeps the n smallest hashes; theta becomes the next.
func (u *thetaUnion) cut(n int) {
	all := u.sorted()
	u.theta = all[n]
	clear(u.slots)
	u.count = 0
	for _, h := range all[:n] {
		u.insert(h)
		u.count++
	}
}

func (u *thetaUnion) result() []byte {
	all := u.sorted()
	theta := min(u.theta, u.least)
	if len(all) > thetaEntries {
		theta = min(theta, all[thetaEntries])
	}
	n, _ := slices.BinarySearch(all, theta)
	all = all[:n]
	if u.empty || n == 0 && theta == thetaMax {
		return []byte{1, 3, 3, 0, 0, thetaReadOnly | thetaEmpty | thetaCompact | thetaOrdered, 0, 0}
	}
	out := []byte{2, 3, 3, 0, 0, thetaReadOnly | thetaCompact | thetaOrdered, thetaSeed & 0xff, thetaSeed >> 8}
	switch {
	case theta < thetaMax:
		out[0] = 3
	case n == 1:
		out[0] = 1
		out[5] |= thetaSingle
	}
	if out[0] > 1 {
		out = binary.LittleEndian.AppendUint32(out, uint32(n))
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(1))
	}
	if out[0] > 2 {
		out = binary.LittleEndian.AppendUint64(out, uint64(theta))
	}
	for _, h := range all {
		out = binary.LittleEndian.AppendUint64(out, uint64(h))
	}
	return out
}
