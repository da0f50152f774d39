package mergetree

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// Row kinds, as Java's RowKind numbers them: the lowest bit says retraction.
const (
	KindInsert       uint8 = 0 // +I
	KindUpdateBefore uint8 = 1 // -U
	KindUpdateAfter  uint8 = 2 // +U
	KindDelete       uint8 = 3 // -D
	// NoRow as a Folded kind: nothing is left of the key, not even a retraction.
	NoRow uint8 = 255
)

// Versions are all the versions of some keys, in the order in which they are to
// be merged: key, user sequence fields, sequence number, retraction before
// addition. Key i has rows Ends[i-1] to Ends[i]. Read only.
type Versions struct {
	N    int
	Ends []uint32
	// Kinds is the row kind of each version; nil = all +I.
	Kinds []uint8
	// Cols follow Engine.Reads, N rows each, in stored form (types.Type.Arrow() of
	// the field, no dictionaries).
	Cols []arrow.Array
}

// Folded is what the versions of some keys have become.
type Folded struct {
	// Cols follow the columns that the engine was made for, one row per key. Rows of
	// keys that are NoRow are there, too; what they hold does not matter.
	Cols []arrow.Array
	// Kinds of the results, one per key; nil = all +I.
	Kinds []uint8
	// Last is the version whose sequence number the result has; nil = the last of
	// each key.
	Last []uint32
}

// Engine is a merge engine: what the versions of a key become. One and the same
// is used by reads, the write buffer and compaction. It sees whole columns and
// many keys at once; it holds no state between calls but scratch memory, and is
// not safe for concurrent use.
//
// A key with a single version never comes here: it stands as it is, whatever its
// kind, as with Java (ReducerMergeFunctionWrapper).
type Engine interface {
	// Reads are the columns of the table that Fold must see, ascending, the ones
	// that the engine was made for included where their values decide anything.
	Reads() []int
	// Fold merges. An error ends the read or write: an overflow, a retraction that
	// the engine does not take (*MergeError).
	Fold(v *Versions, out *Folded) error
}

// EngineSpec is what an engine is made from.
type EngineSpec struct {
	Table   *schema.Table
	Options schema.Options // of the table, dynamic ones laid over
	// Columns of the table that the result must have, in that order.
	Columns []int
}

// EngineFactory makes an engine for a table and the columns wanted of it. What
// the options ask for and is not supported is an *fileio.UnsupportedError.
type EngineFactory struct {
	Name string // value of the option merge-engine
	New  func(s EngineSpec) (Engine, error)
}

// NewEngine makes the engine that a table's options name.
func NewEngine(s EngineSpec) (Engine, error) {
	name := s.Options.Enum("merge-engine", "deduplicate")
	for _, f := range engines {
		if f.Name == name {
			return f.New(s)
		}
	}
	return nil, &fileio.UnsupportedError{Feature: "merge engine " + name}
}

// MergeError says that versions of a key cannot be merged as the table's options
// say, for example that a retraction came to an engine that takes none.
type MergeError struct {
	Column string // "" = none in particular
	Reason string
	// Overflow: the value does not fit its type.
	Overflow bool
}

func (e *MergeError) Error() string {
	if e.Column == "" {
		return e.Reason
	}
	return "column " + e.Column + ": " + e.Reason
}
