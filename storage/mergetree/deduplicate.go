package mergetree

import (
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Deduplicate is the engine of the last version: whatever its kind, the newest
// row of a key is the result; a retraction means that the key is absent. The
// reader has this rule built in (Options.IgnoreDelete); Fold serves those who
// merge batches in memory.
type Deduplicate struct {
	IgnoreDelete bool
}

var _ Engine = Deduplicate{}

// Reads is empty: only kinds matter.
func (Deduplicate) Reads() []int { return nil }

// Fold picks the last version of each key. Keys of which every version is
// ignored yield no row.
func (d Deduplicate) Fold(src []*vec.Batch, picks []Pick, ends []uint32, out *Folded) error {
	var kinds [][]int16
	if d.IgnoreDelete {
		for _, b := range src {
			kinds = append(kinds, vec.ViewOf[int16](b.Cols[1]).V)
		}
	}
	from := uint32(0)
	for _, end := range ends {
		for i := end; i > from; i-- {
			p := picks[i-1]
			if d.IgnoreDelete && kinds[p.Src][p.Row]&1 != 0 {
				continue
			}
			out.Rows = append(out.Rows, p)
			break
		}
		from = end
	}
	return nil
}
