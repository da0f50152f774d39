// Package mergetree holds the LSM nouns of a primary-key table: levels, sorted
// runs, sections, merge on read and the merge engines.
package mergetree

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Pick is one row of one source.
type Pick struct {
	Src uint16
	Row uint32
}

// Engine decides what the versions of a key become. It sees many keys at once:
// picks are in (key, sequence) order and ends[i] is where key i's versions end.
type Engine interface {
	// Reads are the value columns Fold must see; none for deduplicate, first-row.
	Reads() []int
	// Fold merges. src are the batches touched: sequence, kind, then Reads().
	// One key never spans two calls.
	Fold(src []*vec.Batch, picks []Pick, ends []uint32, out *Folded) error
}

// Folded is a recipe; the merge reader turns it into a Batch by gathering.
type Folded struct {
	Rows  []Pick              // one per surviving key: where its columns come from
	Kinds []uint8             // row kind of each result; nil = the pick's own
	Cols  map[int][]Pick      // columns taken from other versions (partial-update)
	Built map[int]arrow.Array // columns that are computed (aggregation)
}
