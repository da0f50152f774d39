// Package lookup is the lookup store: per data file of a primary-key table a
// sorted table of its keys, in blocks with a bloom filter, made from the data
// file when it is worth it, kept in memory, then on the local disk, and made anew
// from the data file when it has been dropped. Data files never change, so
// neither do these; their name is the file's path and the schema in which its
// rows are given.
//
// It serves point lookups (Table.Get) and the compactions that ask which older
// version of a key there is, and where.
package lookup

import "context"

// File is a data file whose keys are looked up.
type File struct {
	// ID names the file and the form of its rows, unique in the process.
	ID   string
	Rows int64
	// Build reads the whole file in key order into b. It is called at most once at a
	// time per ID.
	Build func(ctx context.Context, b *Builder) error
}

// Found is a version of a key in a file.
type Found struct {
	Key  int32 // number of the key asked for
	Pos  int64 // physical row in the data file
	Seq  int64
	Kind uint8 // Java's RowKind
	// Row is the BinaryRow image of the row as Build gave it; nil when no rows were
	// asked for. Read only, valid as long as it is held.
	Row []byte
}
