// Package datafile writes the data files of one bucket and describes them as
// manifests do: rolling, key and value statistics, file names, file indexes.
package datafile

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// Options say what files to write.
type Options struct {
	IO     fileio.FileIO
	Dir    string // of the bucket, relative to the warehouse, with a slash at the end
	Format format.Format
	Schema *schema.Table
	// Table are the table's options, dynamic ones laid over.
	Table   schema.Options
	Level   int32
	Source  int8 // 0 APPEND, 1 COMPACT
	Account *mem.Account
	// FirstSequence numbers the rows of an append table; ignored with a key.
	FirstSequence int64
	// Prefix of the names: "data-" or "changelog-".
	Prefix string
	// RollBytes is where a file ends and the next begins; 0 = target-file-size.
	RollBytes int64
	// RowIDs says that rows of a table with row tracking come with two more columns
	// of bigints, as they keep their ids: _ROW_ID, and _SEQUENCE_NUMBER, NULL where the
	// commit is to give it.
	RowIDs bool
	// NoIndexes leaves out the file indexes that the table's options ask for: of files
	// that no query with a condition reads, as changelog files.
	NoIndexes bool
}

// Writer writes rows into files. In a primary-key table rows come in (key,
// sequence) order. Not safe for concurrent use.
type Writer interface {
	// Write appends n rows; cols follow Schema.Fields in stored form. seq and kinds
	// belong to primary-key tables and are nil for append tables.
	Write(ctx context.Context, cols []arrow.Array, n int, seq []int64, kinds []int8) error
	// Written returns the bytes written so far, finished files and the open one.
	Written() int64
	// Close finishes the last file and describes all of them, in order. The files
	// are not synced, nor are their side files (DataFile.ExtraFiles, in the same
	// directory).
	Close(ctx context.Context) ([]*manifest.DataFile, error)
	// Abort deletes every file written, side files too.
	Abort(ctx context.Context) error
}
