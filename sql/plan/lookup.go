package plan

import (
	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Lookup reads rows of a relation by primary key. Out follows Columns.
type Lookup struct {
	Base
	Rel     catalog.Relation // a catalog.KeyedRelation
	Alias   string
	Columns []int // of Rel.Columns(), none negative
	// Stored are the types of the key's columns as Get wants them.
	Stored []types.Type
	// Sets say which keys are wanted: those of each set. A key may occur in several.
	Sets []KeySet
	// Cond is what the keys stand for, over Out; Filter is what else a row must
	// satisfy, nil = nothing.
	Cond, Filter Expr
	// MaxKeys is from how many keys on the scan is cheaper, 0 = never.
	MaxKeys int
	// Scan yields the same rows; it stands in when there are too many keys, or a
	// value of one cannot be turned into a key.
	Scan *Scan
}

// KeySet is the cross product of the values that each column of the key, in order,
// may have.
type KeySet []KeyValues

// KeyValues are the values that one column of a key may have. A value of NULL
// matches nothing.
type KeyValues struct {
	// Exprs have no columns: constants, parameters, and what is computed of them.
	Exprs []Expr
	// Array, when not nil, is an expression for an array of values instead.
	Array Expr
	// Convert turns a value of the expressions' type into the one stored value that
	// is equal to it.
	Convert func(v types.Datum) (types.Datum, KeyFit)
}

// KeyFit says whether a value can be turned into a stored one.
type KeyFit uint8

// The outcomes.
const (
	KeyFits  KeyFit = iota // it is the stored value
	KeyNever               // no stored value is equal to it
	KeyScan                // it cannot be told: the rows must be scanned
)

// Inputs implements Node.
func (n *Lookup) Inputs() []Node { return nil }

// Spec is what a scan of the columns would ask for.
func (n *Lookup) Spec() *table.Scan { return &n.Scan.Spec }

// KeyExprs calls f with every expression that the keys are made of.
func (n *Lookup) KeyExprs(f func(Expr)) {
	for _, s := range n.Sets {
		for _, v := range s {
			for _, e := range v.Exprs {
				f(e)
			}
			if v.Array != nil {
				f(v.Array)
			}
		}
	}
}
