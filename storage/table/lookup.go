package table

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
)

// levelLookup finds the newest version of keys in sorted runs of one bucket.
type levelLookup struct {
	plan *readPlan
	dir  string
	runs [][]File // newest first
}

// levelHit is what was found of a key; File is nil when nothing was.
type levelHit struct {
	File *File
	lookup.Found
}

// newLevelLookup looks into runs, newest first, of the bucket in dir.
func (r *readPlan) newLevelLookup(dir string, runs [][]File) *levelLookup {
	return &levelLookup{plan: r, dir: dir, runs: runs}
}

// find returns for each key (byte forms, ascending, no duplicates) the hit in the
// first run that has it; rows that a deletion vector has taken away are no hits.
// rows asks for the rows' images.
func (l *levelLookup) find(ctx context.Context, keys [][]byte, rows bool) ([]levelHit, error) {
	return nil, &fileio.UnsupportedError{Feature: "lookups"}
}

// columns makes the columns cols of hits (found with rows), one row per hit.
func (l *levelLookup) columns(hits []levelHit, cols []int) ([]arrow.Array, error) {
	return nil, &fileio.UnsupportedError{Feature: "lookups"}
}
