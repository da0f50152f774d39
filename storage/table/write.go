package table

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Write is not honoured yet.
func (t *FileStore) Write(context.Context, WriteOptions) (Writer, error) {
	return nil, &fileio.UnsupportedError{Feature: "writing to Paimon tables"}
}

// Locate is not honoured yet.
func (t *FileStore) Locate(context.Context, snapshot.Ref, []arrow.Array, int) (*Located, error) {
	return nil, &fileio.UnsupportedError{Feature: "writing to Paimon tables"}
}

// Fold is not honoured yet.
func (t *FileStore) Fold(context.Context, commit.Changes, snapshot.Ref, *mem.Account) (out commit.Changes, dropped []manifest.Entry, err error) {
	return out, nil, &fileio.UnsupportedError{Feature: "writing to Paimon tables"}
}

// Discard is not honoured yet.
func (t *FileStore) Discard(context.Context, commit.Changes) error {
	return &fileio.UnsupportedError{Feature: "writing to Paimon tables"}
}
