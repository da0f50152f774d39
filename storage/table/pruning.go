package table

// Pruning is a set of the ways in which a scan leaves out what cannot matter.
type Pruning uint16

// The ways. Each can be left out of a scan by Scan.Without, to find out what it is worth
// or whether it is to blame.
const (
	PrunePartitions Pruning = 1 << iota // partitions, and manifests by their partitions
	PruneBuckets                        // buckets of the keys that are asked for
	PruneStats                          // files, by statistics of keys and values
	PruneIndexes                        // files and rows, by file indexes
	PrunePages                          // row groups, pages and rows, by what data files say of themselves
	PruneMetadata                       // rows that metadata count or bound

	// PruneAll is every way.
	PruneAll Pruning = 1<<iota - 1
)

// PruningNames are the names of the ways, in the order of their bits.
var PruningNames = []string{"partitions", "buckets", "stats", "indexes", "pages", "metadata"}

// prunes reports whether the scan makes use of a way.
func (s *Scan) prunes(w Pruning) bool { return s.Without&w == 0 }
