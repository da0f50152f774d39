package aggregate

import (
	"bytes"
	"encoding/binary"
	"slices"
)

// rbm64 unites bitmaps of 64-bit numbers in the form of Java's Roaring64Bitmap,
// which is not RoaringBitmap's portable one. Words are little-endian:
//
//	0, or 1 | number of keys int64 | tree | containers
//
// A key is the upper 48 bits of a number, big-endian. The tree is an adaptive radix
// tree over the keys' bytes in depth-first order, children by ascending byte:
//
//	node: kind uint8 | children uint16 | prefix length uint8 | prefix | body
//	kind 0, up to 4 children: their bytes, the first in the highest byte of a uint32
//	kind 1, up to 16:  the same in two uint64
//	kind 2, up to 48:  for each of 256 bytes the slot of the child, 255 = none, eight
//	                   to a uint64, the first in the highest byte
//	kind 3:            256 bits in four uint64
//	kind 4, a leaf:    key, 6 bytes | number of the container uint64
//
// Containers are numbered in the order in which they were put in, with room behind
// them, in arrays of which there is but one below 2^31 containers:
//
//	arrays uint32; per array: 0xfe | length uint32
//	   per place: 0, or 1 | form uint8 | cardinality uint32 | container
//	containers int64 | last array int32 | last place int32
//
// Source: RoaringBitmap 1.2.1 (HighLowContainer.java, Art.java, Containers.java);
// FieldRoaringBitmap64Agg.java.
var rbm64 = Function{Name: "rbm64", Takes: varbinary, New: newUnion("rbm64", unionBitmap64)}

type bitmap64 struct {
	root   *artNode
	keys   int
	places []*container // nil = an empty place
	last   int          // place of the newest container, -1 = none yet
}

// artNode is an inner node or a leaf.
type artNode struct {
	leaf   bool
	key    [6]byte // of a leaf
	place  int
	kind   uint8
	prefix []byte
	bytes  []byte // of the children, ascending
	kids   []*artNode
	slots  []uint8 // of the children, kind 2
}

const leafKind = 4

// kindRoom is how many children a kind of node has.
var kindRoom = [4]int{4, 16, 48, 256}

func unionBitmap64(acc, x []byte) ([]byte, error) {
	a, ok := readBitmap64(acc)
	if !ok {
		return nil, damaged("roaring bitmap of 64-bit numbers")
	}
	b, ok := readBitmap64(x)
	if !ok {
		return nil, damaged("roaring bitmap of 64-bit numbers")
	}
	a.or(b)
	return a.append(nil), nil
}

// or puts in the numbers of x, whose containers may be changed by it.
func (m *bitmap64) or(x *bitmap64) {
	x.root.walk(func(l *artNode) {
		if at := m.root.find(l.key[:]); at != nil {
			m.places[at.place].or(x.places[l.place])
			return
		}
		m.root = m.root.insert(l.key, 0, m.room())
		m.places[m.last] = x.places[l.place]
		m.keys++
	})
}

// room finds a place for a container; the array grows as Java's.
func (m *bitmap64) room() int {
	m.last++
	if need := m.last + 1; need > len(m.places) {
		n := max(len(m.places)+len(m.places)>>1, need)
		m.places = append(m.places, make([]*container, n-len(m.places))...)
	}
	return m.last
}

// walk calls f for the leaves, by ascending keys.
func (t *artNode) walk(f func(*artNode)) {
	switch {
	case t == nil:
	case t.leaf:
		f(t)
	default:
		for _, k := range t.kids {
			k.walk(f)
		}
	}
}

// find returns the leaf of a key.
func (t *artNode) find(key []byte) *artNode {
	rest := key
	for t != nil && !t.leaf {
		if !bytes.HasPrefix(rest, t.prefix) || len(rest) == len(t.prefix) {
			return nil
		}
		i, ok := slices.BinarySearch(t.bytes, rest[len(t.prefix)])
		if !ok {
			return nil
		}
		rest, t = rest[len(t.prefix)+1:], t.kids[i]
	}
	if t == nil || !bytes.Equal(t.key[:], key) {
		return nil
	}
	return t
}

// insert adds a leaf for a key that is not there below t, whose path has depth
// bytes.
func (t *artNode) insert(key [6]byte, depth, place int) *artNode {
	l := &artNode{leaf: true, key: key, place: place}
	if t == nil {
		return l
	}
	have := t.prefix
	if t.leaf {
		have = t.key[depth:]
	}
	same := 0
	for same < len(have) && depth+same < 5 && have[same] == key[depth+same] {
		same++
	}
	switch {
	case t.leaf:
		n := &artNode{prefix: bytes.Clone(key[depth : depth+same])}
		n.adopt(t, have[same])
		n.adopt(l, key[depth+same])
		return n
	case same < len(t.prefix):
		n := &artNode{prefix: bytes.Clone(t.prefix[:same])}
		n.adopt(t, t.prefix[same])
		t.prefix = t.prefix[same+1:]
		n.adopt(l, key[depth+same])
		return n
	}
	depth += len(t.prefix)
	if i, ok := slices.BinarySearch(t.bytes, key[depth]); ok {
		t.kids[i] = t.kids[i].insert(key, depth+1, place)
	} else {
		t.adopt(l, key[depth])
	}
	return t
}

// adopt makes c the child for byte b, in a bigger node where there is no room.
func (t *artNode) adopt(c *artNode, b byte) {
	if len(t.kids) == kindRoom[t.kind] {
		t.kind++
		if t.kind == 2 {
			for i := range t.kids {
				t.slots = append(t.slots, uint8(i))
			}
		}
	}
	i, _ := slices.BinarySearch(t.bytes, b)
	if t.kind == 2 {
		// The slot behind the others, or else the first free one.
		slot := uint8(len(t.kids))
		if slices.Contains(t.slots, slot) {
			for slot = 0; slices.Contains(t.slots, slot); {
				slot++
			}
		}
		t.slots = slices.Insert(t.slots, i, slot)
	}
	t.bytes = slices.Insert(t.bytes, i, b)
	t.kids = slices.Insert(t.kids, i, c)
}

func readBitmap64(b []byte) (m *bitmap64, ok bool) {
	r := &bytesReader{b: b}
	m = &bitmap64{last: -1}
	if tag := r.u8(); tag != 1 {
		return m, tag == 0 && !r.short
	}
	r.u64()
	if m.root, ok = readArt(r, make([]byte, 0, 6)); !ok {
		return m, false
	}
	arrays := r.u32()
	if r.short || arrays > 1 {
		return m, false
	}
	if arrays == 1 {
		r.u8()
		n := int(r.u32())
		if r.short || n > len(r.b) { // a place takes a byte at least
			return m, false
		}
		m.places = make([]*container, n)
		for i := range m.places {
			switch r.u8() {
			case 0:
			case 1:
				form, card := int(r.u8()), int(r.u32())
				if card > 1<<16 {
					return m, false
				}
				c, ok := readContainer(r, form, card)
				if !ok {
					return m, false
				}
				m.places[i] = &c
			default:
				return m, false
			}
		}
	}
	r.u64()
	if first := r.u32(); first > 0 && first != 0xffffffff {
		return m, false
	}
	m.last = int(r.u32())
	if r.short || m.last < 0 || m.last >= len(m.places) {
		return m, false
	}
	// Every key has a container of its own.
	used := make([]bool, len(m.places))
	m.root.walk(func(l *artNode) {
		if ok = ok && l.place >= 0 && l.place <= m.last && m.places[l.place] != nil && !used[l.place]; ok {
			used[l.place] = true
			m.keys++
		}
	})
	return m, ok
}

// readArt reads a node, whose path of bytes from the root is given.
func readArt(r *bytesReader, path []byte) (*artNode, bool) {
	t := &artNode{kind: r.u8()}
	n := int(r.u16())
	prefix := r.next(int(r.u8()))
	if r.short {
		return nil, false
	}
	if t.kind == leafKind {
		t.leaf = true
		copy(t.key[:], r.next(6))
		t.place = int(r.u64())
		return t, !r.short && bytes.HasPrefix(t.key[:], path)
	}
	if t.kind > leafKind || n == 0 || n > kindRoom[t.kind] || len(path)+len(prefix) > 5 {
		return nil, false
	}
	t.prefix = bytes.Clone(prefix)
	path = append(path, prefix...)
	switch t.kind {
	case 0:
		b := binary.BigEndian.AppendUint32(nil, r.u32())
		t.bytes = b[:n]
	case 1:
		b := binary.BigEndian.AppendUint64(nil, r.u64())
		b = binary.BigEndian.AppendUint64(b, r.u64())
		t.bytes = b[:n]
	case 2:
		for i := range 32 {
			w := r.u64()
			for j := range 8 {
				if s := uint8(w >> (56 - 8*j)); s != 0xff {
					t.bytes, t.slots = append(t.bytes, byte(8*i+j)), append(t.slots, s)
				}
			}
		}
	case 3:
		for i := range 4 {
			w := r.u64()
			for j := range 64 {
				if w>>j&1 != 0 {
					t.bytes = append(t.bytes, byte(64*i+j))
				}
			}
		}
	}
	if r.short || len(t.bytes) != n {
		return nil, false
	}
	for i, b := range t.bytes {
		if i > 0 && t.bytes[i-1] >= b {
			return nil, false
		}
		if t.kind == 2 && (t.slots[i] >= 48 || slices.Contains(t.slots[:i], t.slots[i])) {
			return nil, false
		}
		kid, ok := readArt(r, append(path, b))
		if !ok {
			return nil, false
		}
		t.kids = append(t.kids, kid)
	}
	return t, true
}

func (m *bitmap64) append(dst []byte) []byte {
	if m.root == nil {
		return append(dst, 0)
	}
	dst = binary.LittleEndian.AppendUint64(append(dst, 1), uint64(m.keys))
	dst = m.root.append(dst)
	dst = binary.LittleEndian.AppendUint32(dst, 1)
	dst = binary.LittleEndian.AppendUint32(append(dst, 0xfe), uint32(len(m.places)))
	held := 0
	for _, c := range m.places {
		if c == nil {
			dst = append(dst, 0)
			continue
		}
		held++
		form, card, runs := c.form()
		dst = binary.LittleEndian.AppendUint32(append(dst, 1, uint8(form)), uint32(card))
		dst = c.append(dst, form, runs)
	}
	dst = binary.LittleEndian.AppendUint64(dst, uint64(held))
	dst = binary.LittleEndian.AppendUint32(dst, 0)
	return binary.LittleEndian.AppendUint32(dst, uint32(m.last))
}

func (t *artNode) append(dst []byte) []byte {
	if t.leaf {
		dst = append(append(dst, leafKind, 0, 0, 0), t.key[:]...)
		return binary.LittleEndian.AppendUint64(dst, uint64(t.place))
	}
	dst = binary.LittleEndian.AppendUint16(append(dst, t.kind), uint16(len(t.kids)))
	dst = append(append(dst, uint8(len(t.prefix))), t.prefix...)
	switch t.kind {
	case 0:
		var b [4]byte
		copy(b[:], t.bytes)
		dst = binary.LittleEndian.AppendUint32(dst, binary.BigEndian.Uint32(b[:]))
	case 1:
		var b [16]byte
		copy(b[:], t.bytes)
		dst = binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(b[:]))
		dst = binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(b[8:]))
	case 2:
		b := bytes.Repeat([]byte{0xff}, 256)
		for i, c := range t.bytes {
			b[c] = t.slots[i]
		}
		for ; len(b) > 0; b = b[8:] {
			dst = binary.LittleEndian.AppendUint64(dst, binary.BigEndian.Uint64(b))
		}
	case 3:
		var w [4]uint64
		for _, c := range t.bytes {
			w[c>>6] |= 1 << (c & 63)
		}
		for _, x := range w {
			dst = binary.LittleEndian.AppendUint64(dst, x)
		}
	}
	for _, k := range t.kids {
		dst = k.append(dst)
	}
	return dst
}
