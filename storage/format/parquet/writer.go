package parquet

import (
	"context"
	"io"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// Create starts a Parquet file.
func (Format) Create(ctx context.Context, w io.Writer, s types.Schema, o format.WriteOptions) (format.Writer, error) {
	return nil, &fileio.UnsupportedError{Feature: "writing Parquet"}
}
