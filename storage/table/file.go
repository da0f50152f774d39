package table

import (
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// File is one data file of a split with its deletion vector.
type File struct {
	Meta *manifest.DataFile
	DV   *manifest.DeletionVectorRef // nil = none
}
