package table

import (
	"context"

	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// Commit is not honoured yet.
func (t *FileStore) Commit(context.Context, commit.Changes) (int64, error) {
	return 0, &fileio.UnsupportedError{Feature: "writing to Paimon tables"}
}

// CheckReads is not honoured yet.
func (t *FileStore) CheckReads(context.Context, string, int64, *commit.ReadSet) (int64, error) {
	return 0, &fileio.UnsupportedError{Feature: "writing to Paimon tables"}
}
