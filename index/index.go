// Package index is what can be said about data files without reading their
// rows: verdicts on predicates, the seam for file indexes, and the container
// in which data files carry them.
package index

import (
	"errors"
	"io"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Verdict is what an index may say about a file; see predicate.Verdict.
type Verdict = predicate.Verdict

// The verdicts.
const (
	Some = predicate.Some
	None = predicate.None
	All  = predicate.All
)

// Result is what an index, or several, say of a predicate and one data file.
type Result struct {
	Verdict Verdict
	// Rows are the positions of candidates: every row for which the predicate is
	// true is among them. nil = not known. Shared: never changed by who gets it.
	Rows *roaring.Bitmap
	// Exact says that the predicate is true for every one of Rows, too.
	Exact bool
}

// FileIndex answers leaf predicates for one column of one data file. Safe for
// concurrent use.
type FileIndex interface {
	// Test judges a leaf. What the index cannot judge (an operation, an argument, a
	// type) is the zero Result, never an error; an error is damaged bytes, or bytes
	// that could not be read.
	//
	// The answer is SQL's, not that of the encoding: floats count NaN as equal to NaN
	// and above every number, -0 as equal to 0; CHAR ignores trailing blanks; a row
	// whose value is NULL matches IS NULL only. Where an encoding loses that (a
	// bitmap that keeps -0 and 0 apart, timestamps cut to microseconds), the index
	// asks for all values that SQL takes as equal, or answers Some.
	Test(l *predicate.Leaf) (Result, error)
}

// Sorter is a FileIndex that knows the order of the values.
type Sorter interface {
	FileIndex
	// Top returns positions of rows among which, counting ties, the first n of those
	// in live (nil = all rows) stand in the order given. nil = not known.
	Top(n int, descending, nullsFirst bool, live *roaring.Bitmap) (*roaring.Bitmap, error)
}

// ErrCannotHold is wrapped by errors of a Builder about rows that its encoding has
// no place for: a value, or more of them than it can count. The file can still be
// written, without this index.
var ErrCannotHold = errors.New("an index cannot hold the rows")

// Source is the bytes of one index of one file. They are read as they are needed.
type Source interface {
	io.ReaderAt
	Size() int64
}

// Options are a column's options of one kind: those below
// file-index.<kind>.<column>, by their last part ("items", "fpp").
type Options map[string]string

// Kind is one kind of file index.
type Kind interface {
	// Name is the kind's name in options and in containers: "bloom-filter".
	Name() string
	// Supports reports whether columns of a type can be indexed. Source of the lists:
	// the FileIndexer of each kind in Java.
	Supports(t types.Type) bool
	// Open reads the head of an index over a column of type t, the file's type.
	// Damage is an error.
	Open(src Source, t types.Type) (FileIndex, error)
	// Create starts an index over a column of type t. Options that it does not
	// understand are an error.
	Create(t types.Type, o Options) (Builder, error)
}

// Builder makes one index of one file. Not safe for concurrent use.
type Builder interface {
	// Append adds the values of the next rows, in order and without gaps: an array of
	// types.Type.Arrow(), or a dictionary of it. After an error the Builder is of no use.
	Append(a arrow.Array) error
	// Bytes is the memory held.
	Bytes() int64
	// Finish returns the index as it stands in a container; nil = the index is empty
	// (the file has no value that is not NULL).
	Finish() ([]byte, error)
}
