package parquet

import (
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// maxSchemaDepth bounds the nesting of a file's schema.
const maxSchemaDepth = 64

// snode is a node of the file's schema tree. def and rep are the levels that a
// value has when this node is present (for a repeated node: has an element).
type snode struct {
	parent   *snode
	el       *element
	children []*snode
	def, rep int
	leaf     int // index of the column, or -1
	leaves   int // leaves at or below
}

func (n *snode) child(name string) *snode {
	for _, c := range n.children {
		if c.el.name == name {
			return c
		}
	}
	return nil
}

// buildSchema makes the tree of the flattened elements and returns its root and
// leaves in order.
func buildSchema(els []element) (*snode, []*snode, error) {
	if len(els) == 0 {
		return nil, nil, fmt.Errorf("the schema is empty")
	}
	b := schemaBuilder{els: els}
	root, err := b.node(nil, 0)
	if err != nil {
		return nil, nil, err
	}
	if b.at != len(els) {
		return nil, nil, fmt.Errorf("the schema has %d elements beyond its root", len(els)-b.at)
	}
	return root, b.leaves, nil
}

type schemaBuilder struct {
	els    []element
	at     int
	leaves []*snode
}

func (b *schemaBuilder) node(parent *snode, depth int) (*snode, error) {
	if depth > maxSchemaDepth {
		return nil, fmt.Errorf("the schema is nested deeper than %d levels", maxSchemaDepth)
	}
	if b.at >= len(b.els) {
		return nil, fmt.Errorf("the schema ends inside a group")
	}
	n := &snode{parent: parent, el: &b.els[b.at], leaf: -1}
	b.at++
	if parent != nil {
		n.def, n.rep = parent.def, parent.rep
		switch n.el.repetition {
		case repRequired:
		case repOptional:
			n.def++
		case repRepeated:
			n.def++
			n.rep++
		default:
			return nil, fmt.Errorf("field %q has repetition %d", n.el.name, n.el.repetition)
		}
	}
	if n.el.typ >= 0 && parent != nil {
		if n.el.typ > pFixed {
			return nil, fmt.Errorf("field %q has physical type %d", n.el.name, n.el.typ)
		}
		if n.el.typ == pFixed && n.el.typeLength <= 0 {
			return nil, fmt.Errorf("field %q has length %d", n.el.name, n.el.typeLength)
		}
		n.leaf, n.leaves = len(b.leaves), 1
		b.leaves = append(b.leaves, n)
		return n, nil
	}
	for i := int32(0); i < n.el.numChildren; i++ {
		c, err := b.node(n, depth+1)
		if err != nil {
			return nil, err
		}
		n.children = append(n.children, c)
		n.leaves += c.leaves
	}
	return n, nil
}

// firstLeaf is the leftmost leaf below n, or nil.
func (n *snode) firstLeaf() *snode {
	if n.leaf >= 0 {
		return n
	}
	for _, c := range n.children {
		if l := c.firstLeaf(); l != nil {
			return l
		}
	}
	return nil
}

type nodeKind uint8

const (
	kLeaf nodeKind = iota
	kList
	kMap
	kStruct
	kMissing // not in the file: NULL
)

// bnode is a Paimon type bound to the part of the file that holds it.
//
// A node's array has one slot per entry of its levels with rep <= slotRep and
// def >= slotDef: slotRep and slotDef are the levels of the innermost list
// around it (0 and 0 at the top). A slot is valid when its def >= def.
type bnode struct {
	t                types.Type
	dt               arrow.DataType
	kind             nodeKind
	def              int
	slotDef, slotRep int
	elemDef, elemRep int // of a list or map: levels at which it has an element
	children         []*bnode
	leaf             *leaf // of kLeaf; else the leaf whose levels shape the node
}

// leaf is one column of the file as a plan reads it.
type leaf struct {
	node       *snode
	col        int // index in a row group
	t          types.Type
	conv       conv
	levelsOnly bool // its values are not wanted, only its levels
}

// isFlat reports whether the node is a top-level scalar.
func (b *bnode) isFlat() bool {
	return b.kind == kLeaf && b.leaf.node.rep == 0 && b.leaf.node.def <= 1 && !b.leaf.levelsOnly
}

// walkLeaves calls fn for each distinct leaf under b.
func (b *bnode) walkLeaves(fn func(*leaf)) {
	if b.kind == kLeaf || (b.leaf != nil && b.leaf.levelsOnly) {
		fn(b.leaf)
	}
	for _, c := range b.children {
		c.walkLeaves(fn)
	}
}

// bind finds column f in the file. What the file holds is decided by f's type;
// a type that cannot be read from the column's physical type is an error.
func bind(root *snode, f types.Field) (*bnode, error) {
	n := root.child(f.Name)
	b, err := bindNode(n, f.Type, 0, 0, f.Name, 0)
	if err != nil {
		return nil, err
	}
	return b, nil
}

func bindNode(n *snode, t types.Type, slotDef, slotRep int, path string, depth int) (*bnode, error) {
	b := &bnode{t: t, dt: t.Arrow(), slotDef: slotDef, slotRep: slotRep}
	if depth > maxSchemaDepth {
		return nil, &fileio.UnsupportedError{Feature: "a type nested deeper than 64 levels"}
	}
	if n == nil {
		b.kind = kMissing
		return b, nil
	}
	b.def = n.def
	if n.el.repetition == repRepeated && t.Kind != types.Array {
		return nil, fmt.Errorf("column %s is repeated, not a single value", path)
	}
	if (t.Kind == types.Array || t.Kind == types.Map) && t.Elem == nil || t.Kind == types.Map && t.Key == nil {
		return nil, fmt.Errorf("column %s has an incomplete type", path)
	}
	switch t.Kind {
	case types.Array:
		return b, b.bindList(n, path, depth)
	case types.Map:
		return b, b.bindMap(n, path, depth)
	case types.Row:
		return b, b.bindRow(n, t.Fields, path, depth)
	case types.Variant:
		if n.child("typed_value") != nil {
			return nil, &fileio.UnsupportedError{Feature: "shredded variant"}
		}
		fs := []types.Field{{Name: "value", Type: types.Of(types.Bytea)}, {Name: "metadata", Type: types.Of(types.Bytea)}}
		return b, b.bindRow(n, fs, path, depth)
	}
	if n.leaf < 0 {
		return nil, fmt.Errorf("column %s is a group, not a %s", path, t.PlainName())
	}
	c, err := chooseConv(n.el, t)
	if err != nil {
		return nil, fmt.Errorf("column %s: %w", path, err)
	}
	b.kind = kLeaf
	b.leaf = &leaf{node: n, col: n.leaf, t: t, conv: c}
	return b, nil
}

func (b *bnode) bindList(n *snode, path string, depth int) error {
	b.kind = kList
	elem, rep := listElement(n)
	if rep == nil {
		return fmt.Errorf("column %s is not a list", path)
	}
	if n == rep { // a bare repeated field: the list itself is never NULL
		b.def = n.def - 1
	}
	b.elemDef, b.elemRep = rep.def, rep.rep
	var c *bnode
	var err error
	if elem == rep {
		c, err = bindRepeated(rep, *b.t.Elem, path+".element", depth+1)
	} else {
		c, err = bindNode(elem, *b.t.Elem, rep.def, rep.rep, path+".element", depth+1)
	}
	if err != nil {
		return err
	}
	b.children = []*bnode{c}
	return b.shape(n)
}

// bindRepeated binds a repeated node as the element of its list: two-level
// lists have no group of their own around the element.
func bindRepeated(rep *snode, t types.Type, path string, depth int) (*bnode, error) {
	el := *rep.el
	el.repetition = repRequired
	n := *rep
	n.el = &el
	return bindNode(&n, t, rep.def, rep.rep, path, depth)
}

// listElement finds the element of a list: the rules of the Parquet format for
// three-level lists and the older two-level ones, whatever the names are.
func listElement(n *snode) (elem, rep *snode) {
	if n.el.repetition == repRepeated {
		return n, n
	}
	if len(n.children) != 1 || n.children[0].el.repetition != repRepeated {
		return nil, nil
	}
	r := n.children[0]
	if r.leaf >= 0 || len(r.children) != 1 || r.el.name == "array" || r.el.name == n.el.name+"_tuple" {
		return r, r
	}
	return r.children[0], r
}

func (b *bnode) bindMap(n *snode, path string, depth int) error {
	b.kind = kMap
	if len(n.children) != 1 || n.children[0].el.repetition != repRepeated ||
		len(n.children[0].children) == 0 || len(n.children[0].children) > 2 {
		return fmt.Errorf("column %s is not a map", path)
	}
	r := n.children[0]
	b.elemDef, b.elemRep = r.def, r.rep
	k, err := bindNode(r.children[0], *b.t.Key, r.def, r.rep, path+".key", depth+1)
	if err != nil {
		return err
	}
	var vn *snode
	if len(r.children) == 2 {
		vn = r.children[1]
	}
	v, err := bindNode(vn, *b.t.Elem, r.def, r.rep, path+".value", depth+1)
	if err != nil {
		return err
	}
	b.children = []*bnode{k, v}
	return b.shape(n)
}

func (b *bnode) bindRow(n *snode, fs []types.Field, path string, depth int) error {
	b.kind = kStruct
	if n.leaf >= 0 {
		return fmt.Errorf("column %s is a single value, not a row", path)
	}
	for _, f := range fs {
		c, err := bindNode(n.child(f.Name), f.Type, b.slotDef, b.slotRep, path+"."+f.Name, depth+1)
		if err != nil {
			return err
		}
		b.children = append(b.children, c)
	}
	return b.shape(n)
}

// shape chooses the leaf whose levels tell the node's NULLs and lengths: one of
// those that are read anyway, else any below n, read for its levels alone.
func (b *bnode) shape(n *snode) error {
	for _, c := range b.children {
		if c.leaf != nil {
			b.leaf = c.leaf
			return nil
		}
	}
	l := n.firstLeaf()
	if l == nil {
		return fmt.Errorf("group %q has no columns", n.el.name)
	}
	b.leaf = &leaf{node: l, col: l.leaf, levelsOnly: true}
	return nil
}
