// Package index is what can be said about data files without reading their
// rows: verdicts on predicates and the seam for file indexes.
package index

import (
	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index/predicate"
)

// Verdict is what an index may say about a file; see predicate.Verdict.
type Verdict = predicate.Verdict

// The verdicts.
const (
	Some = predicate.Some
	None = predicate.None
	All  = predicate.All
)

// FileIndex answers leaf predicates for one column of one data file.
type FileIndex interface {
	// Test returns a verdict and, when the index knows them, the positions of all
	// candidate rows (nil = unknown). An Op it does not know is Some, never an
	// error.
	Test(p *predicate.Leaf) (Verdict, *roaring.Bitmap)
}
