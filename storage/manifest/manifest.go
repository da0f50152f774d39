// Package manifest reads and writes Paimon's manifest lists, manifests and index
// manifests (Avro object containers).
package manifest

// Kind of an entry.
const (
	Add    int8 = 0
	Delete int8 = 1
)

// Entry is one change of the set of data files.
type Entry struct {
	Kind         int8
	Partition    []byte // BinaryRow image without the arity prefix
	Bucket       int32
	TotalBuckets int32
	File         *DataFile
}

// Stats are min and max rows (BinaryRow images without the arity prefix) and
// null counts over some row type. NullCounts[i] is -1 where unknown.
type Stats struct {
	Min, Max   []byte
	NullCounts []int64
}

// DataFile describes one data file; the fields are those of Java's DataFileMeta.
// It is immutable once read, so it may be shared.
type DataFile struct {
	Name                 string
	Size                 int64
	Rows                 int64 // physical rows, deletes included
	MinKey, MaxKey       []byte
	KeyStats, ValueStats Stats
	MinSequence          int64
	MaxSequence          int64
	SchemaID             int64
	Level                int32
	ExtraFiles           []string
	CreationMillis       int64 // wall clock of the writer as if UTC; 0 = unknown
	DeleteRows           int64 // -1 = unknown
	EmbeddedIndex        []byte
	Source               int8 // 0 APPEND, 1 COMPACT, -1 unknown
	ValueStatsCols       []string
	HasValueStatsCols    bool // false: stats cover every column
	ExternalPath         string
	FirstRowID           int64 // -1 = none
	WriteCols            []string
	HasWriteCols         bool
	WriteColsSequences   []int64 // the highest sequence number per column of WriteCols; nil = none
}

// IndexEntry is one live index file of a snapshot.
type IndexEntry struct {
	Kind         int8
	Partition    []byte
	Bucket       int32
	Type         string // HASH, DELETION_VECTORS, ...
	Name         string
	Size         int64
	Rows         int64
	DVs          []DeletionVectorMeta
	ExternalPath string
	Global       *GlobalIndex
}

// DeletionVectorMeta says where in an index file the vector of one data file is.
type DeletionVectorMeta struct {
	DataFile       string
	Offset, Length int32
	Cardinality    int64 // -1 = unknown
}

// GlobalIndex is the _GLOBAL_INDEX member of an index entry.
type GlobalIndex struct {
	RowRangeStart, RowRangeEnd int64
	FieldID                    int32
	ExtraFieldIDs              []int32
	Meta                       []byte
	SourceMeta                 []byte
}

// DeletionVectorRef is a deletion vector in its index file.
type DeletionVectorRef struct {
	Path string // of the index file, relative to the warehouse
	DeletionVectorMeta
}
