package index

import (
	"github.com/paimon-sql/paimon-sql/index/predicate"
)

// Finder gives the indexes of one data file.
type Finder interface {
	// Indexes returns the indexes over a leaf's column, cheapest first. empty says
	// that an index shows the column to hold no value that is not NULL.
	Indexes(l *predicate.Leaf) (ix []FileIndex, empty bool, err error)
}
