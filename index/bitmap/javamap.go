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

// When Java's HashMap turns bins into trees and back.
const (
	treeAt   = 8  // values of a bin
	listAt   = 6  // values that are left of a tree when the table grows
	treeBins = 64 // a table with fewer bins grows instead
)

// javaMap follows a HashMap into which values are put by computeIfAbsent.
//
// A new value comes to the head of its bin, and the table grows only when the
// function is called the next time; growing keeps the order within bins. A bin
// of eight becomes a red-black tree by hash, then value; its values stay in a
// list, too, which is what iteration follows, where the tree's root is moved to
// the front and a new value comes behind its parent.
type javaMap struct {
	hashes []int32 // spread, by value
	less   func(a, b int32) bool
	head   []int32 // of bins: 1 + the first value
	next   []int32 // of values: 1 + the next one of the bin
	trees  map[int]*tree
	size   int
}

// hashOrder returns the order of iteration of a HashMap into which values with
// these hashes came one after the other. later says that computeIfAbsent was
// called again after the last of them came in. less orders values of one hash.
func hashOrder(hashes []int32, later bool, less func(a, b int32) bool) []int32 {
	m := javaMap{less: less, head: make([]int32, 16), trees: map[int]*tree{}}
	m.hashes, m.next = make([]int32, len(hashes)), make([]int32, len(hashes))
	for i, h := range hashes {
		m.hashes[i] = int32(uint32(h) ^ uint32(h)>>16)
	}
	for i := range hashes {
		m.growIfFull()
		m.put(int32(i))
	}
	if later {
		m.growIfFull()
	}
	out := make([]int32, 0, len(hashes))
	for _, e := range m.head {
		for ; e != 0; e = m.next[e-1] {
			out = append(out, e-1)
		}
	}
	return out
}

func (m *javaMap) bin(v int32) int { return int(uint32(m.hashes[v]) & uint32(len(m.head)-1)) }

func (m *javaMap) growIfFull() {
	if m.size > len(m.head)/4*3 {
		m.grow()
	}
}

func (m *javaMap) put(v int32) {
	m.size++
	b := m.bin(v)
	if t := m.trees[b]; t != nil {
		parent := t.insert(v)
		m.next[v], m.next[parent] = m.next[parent], v+1
		m.toFront(b, t.root.v)
		return
	}
	n := 1
	for e := m.head[b]; e != 0; e = m.next[e-1] {
		n++
	}
	m.next[v], m.head[b] = m.head[b], v+1
	switch {
	case n < treeAt:
	case len(m.head) < treeBins:
		m.grow()
	default:
		m.plant(b)
	}
}

// toFront moves a value to the front of its bin.
func (m *javaMap) toFront(b int, v int32) {
	at := &m.head[b]
	for *at != v+1 {
		at = &m.next[*at-1]
	}
	*at = m.next[v]
	m.next[v], m.head[b] = m.head[b], v+1
}

// plant makes a tree of a bin.
func (m *javaMap) plant(b int) {
	t := &tree{m: m}
	for e := m.head[b]; e != 0; e = m.next[e-1] {
		t.insert(e - 1)
	}
	m.trees[b] = t
	m.toFront(b, t.root.v)
}

func (m *javaMap) grow() {
	old, trees := m.head, m.trees
	m.head, m.trees = make([]int32, 2*len(old)), map[int]*tree{}
	for b, e := range old {
		at := [2]int{b, b + len(old)}
		tail := [2]*int32{&m.head[at[0]], &m.head[at[1]]}
		var count [2]int
		for e != 0 {
			v := e - 1
			e, m.next[v] = m.next[v], 0
			side := 0
			if m.bin(v) != b {
				side = 1
			}
			*tail[side], tail[side] = v+1, &m.next[v]
			count[side]++
		}
		t := trees[b]
		if t == nil {
			continue
		}
		for side, n := range count {
			switch {
			case n <= listAt:
			case count[1-side] == 0:
				m.trees[at[side]] = t // all went one way: the tree stays as it is
			default:
				m.plant(at[side])
			}
		}
	}
}

// tree is a red-black tree over the values of a bin; only its root and the
// parents of new nodes are of interest.
type tree struct {
	m    *javaMap
	root *node
}

type node struct {
	v      int32
	red    bool
	parent *node
	child  [2]*node
}

// insert puts a value in and returns that of the node which became its parent.
func (t *tree) insert(v int32) (parent int32) {
	x := &node{v: v, red: true}
	if t.root == nil {
		x.red, t.root = false, x
		return v
	}
	var p *node
	side := 0
	for at := t.root; at != nil; at = p.child[side] {
		p = at
		a, b := t.m.hashes[v], t.m.hashes[at.v]
		if side = 0; a > b || a == b && t.m.less(at.v, v) {
			side = 1
		}
	}
	p.child[side], x.parent = x, p
	t.balance(x)
	return p.v
}

func (n *node) side() int {
	if n.parent.child[1] == n {
		return 1
	}
	return 0
}

// balance restores the colours after x came in.
func (t *tree) balance(x *node) {
	for x.parent != nil && x.parent.red {
		p := x.parent
		g := p.parent // a red node is not the root
		side := p.side()
		if u := g.child[1-side]; u != nil && u.red {
			u.red, p.red, g.red = false, false, true
			x = g
			continue
		}
		if x.side() != side {
			t.rotate(p, side)
			x, p = p, x
		}
		p.red, g.red = false, true
		t.rotate(g, 1-side)
	}
	t.root.red = false
}

// rotate moves n down to the given side; its other child takes its place.
func (t *tree) rotate(n *node, side int) {
	up := n.child[1-side]
	if n.child[1-side] = up.child[side]; up.child[side] != nil {
		up.child[side].parent = n
	}
	if up.parent = n.parent; n.parent == nil {
		t.root = up
	} else {
		n.parent.child[n.side()] = up
	}
	up.child[side], n.parent = n, up
}
