// Package lookup is the lookup store: per data file of a primary-key table a
// sorted table of its keys, in blocks with a bloom filter, made from the data
// file when it is worth it, kept in memory, then on the local disk, and made anew
// from the data file when it has been dropped. Data files never change, so
// neither do these; their name is the file's path and the schema in which its
// rows are given.
//
// It serves point lookups (Table.Get) and the compactions that ask which older
// version of a key there is, and where.
//
// A table has two forms: keys with sequence number, kind and position only, and
// the same with the rows. Either is made when it is asked for; the second
// answers for the first.
//
//	blocks      in memory, or in a file of the local disk, each found by its
//	            first key; see block.go for their bytes
//	first keys  always in memory, with the bloom filter, and each block's place,
//	            length and checksum: what the local disk gives back is checked
//
// Memory is bounded: what has not been used for a while is written to disk, or
// dropped. So is the disk. A budget that is too small makes lookups slower, never
// wrong: a table that finds no room is ErrNoRoom, and the caller reads the file.
package lookup

import (
	"context"
	"errors"
)

// File is a data file whose keys are looked up.
type File struct {
	// ID names the file and the form of its rows, unique in the process. What comes
	// before its first 0 byte, the file's path, is what Forget takes.
	ID   string
	Rows int64
	// Build reads the whole file in key order into b. It is called at most once at a
	// time per ID and form.
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

// ErrNoRoom says that neither memory nor disk have room for a table: the data file
// must be read instead.
var ErrNoRoom = errors.New("the lookup store has no room for the file")

// ErrUseless is matched by the errors of a File's Build after which there is no use
// in trying again.
var ErrUseless = errors.New("no lookup table can be made of the file")

// ErrClosed says that the store has been closed.
var ErrClosed = errors.New("the lookup store is closed")

// Options are the budgets of a store; zero values mean the defaults in parentheses.
type Options struct {
	MemoryBytes int64 // blocks, first keys and bloom filters (256 MB); below 0 = next to nothing
	// Dir names a directory for this process alone; it is asked when the first table
	// leaves memory. What is in it when the process is gone is for others to remove.
	// nil = no disk.
	Dir       func() (string, error)
	DiskBytes int64 // (8 GB)
	// FalsePositive is the bloom filters' rate (0.05).
	FalsePositive float64
	// Compress makes blocks smaller on disk (LZ4).
	Compress bool
	// BlockBytes is about the size of a block (8 KB).
	BlockBytes int
	// Builders is how many tables are made at once in the background (1).
	Builders int
}

// Stats are what a store holds and has done.
type Stats struct {
	Tables                        int   // tables that answer
	MemoryBytes, DiskBytes        int64 // held
	Lookups                       int64 // keys looked for in tables
	DiskReads                     int64 // blocks read from disk
	Builds, BuildRows, BuildNanos int64
	BuildFailures                 int64
	Spilled                       int64 // tables written to disk
	Dropped                       int64 // tables dropped for want of room
	Damaged                       int64 // tables dropped because the disk gave back other bytes
}
