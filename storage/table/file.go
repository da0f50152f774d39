package table

import (
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// File is one data file of a split with its deletion vector.
type File struct {
	Meta *manifest.DataFile
	DV   *manifest.DeletionVectorRef // nil = none
	// only, when not nil, are the rows that are read, by a verdict; DV is part of it.
	only *mergetree.RowSet
	// found is what indexes said of the file when it was planned; nil = they were not asked.
	found *candidates
	ends  *fileEnds // nil = nothing is known of Scan.Order's column
}
