// Package predicate is the language in which scans say what they look for:
// comparisons of one column with constants under AND, OR and NOT. It is weaker
// than SQL expressions on purpose: statistics and indexes can answer it.
//
// A predicate is only ever used to leave out what cannot match; the executor
// evaluates the full expression on what is left. A row for which the predicate
// is NULL does not match.
package predicate

import "github.com/paimon-sql/paimon-sql/internal/types"

// Op is the operation of a Leaf.
type Op uint8

// The operations. Comparisons with NULL match nothing.
const (
	Eq Op = iota
	NotEq
	Lt
	LtEq
	Gt
	GtEq
	In
	NotIn
	IsNull
	IsNotNull
	StartsWith // Args[0] is a prefix; text only
	Between    // Args[0] <= x <= Args[1]
)

// Node is *Leaf, *MapLeaf, *And, *Or or *Not; nil means "true".
type Node interface{ node() }

// Leaf compares one column with constants.
type Leaf struct {
	Op Op
	// Col indexes the schema that the predicate was made for; FieldID is the
	// Paimon field id of the column, by which the predicate is moved to another
	// schema version; Name is for messages.
	Col     int
	FieldID int32
	Name    string
	// Type is the column's type; Args are of that type, in Datum form, not NULL.
	Type types.Type
	Args []types.Datum
	// Set, when not nil, narrows the leaf: the value must be in the set, too. Who does not
	// look at it leaves out less. A leaf with a set never stands under a NOT.
	Set Set
	// Runtime, when not 0, is 1 + the number of the runtime filter among those of the scan
	// that the leaf comes from.
	Runtime int
}

// Set holds at least the values that are looked for. Safe for concurrent use.
type Set interface {
	// Intersects reports whether a value within [lo, hi] may be in the set; true when that
	// cannot be said. lo and hi are in Datum form, of a type that compares as the column's;
	// text, CHAR included, is compared by its bytes.
	Intersects(lo, hi types.Datum) bool
}

// MapLeaf compares the value that a map column has under a key, NULL where the map is
// NULL or has no such key. Leaf's column is the map's; its type, which Args follow, is
// that of the map's values. Only file indexes know of it: to all others it is a
// condition that nothing is known of.
type MapLeaf struct {
	Leaf
	Key string
}

// And is true when all are.
type And struct{ Args []Node }

// Or is true when any is.
type Or struct{ Args []Node }

// Not negates; it is kept for leaves that have no opposite.
type Not struct{ Arg Node }

func (*Leaf) node() {}
func (*And) node()  {}
func (*Or) node()   {}
func (*Not) node()  {}

// Conj joins nodes by AND, dropping nils; nil when none is left.
func Conj(nodes ...Node) Node {
	var out []Node
	for _, n := range nodes {
		switch n := n.(type) {
		case nil:
		case *And:
			out = append(out, n.Args...)
		default:
			out = append(out, n)
		}
	}
	switch len(out) {
	case 0:
		return nil
	case 1:
		return out[0]
	}
	return &And{out}
}
