// Package table is the front door of a Paimon table: what it holds at a
// snapshot, how a scan of it splits into independent pieces, and how they are
// read, looked up and written.
package table

import (
	"context"
	"fmt"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Scan says what to read. Storage may return rows that fail Filter, it never
// drops rows that pass it; the executor filters again.
type Scan struct {
	At snapshot.Ref
	// Columns index the fields of the schema that At names; nil = all.
	// Pseudo-columns are negative: see PseudoFile and friends.
	Columns []int
	// Nested, when not nil, has one entry per column: the paths inside a ROW
	// that are needed; nil = the whole column. Unneeded members read as NULL.
	Nested [][]NestedPath
	// Filter's leaves index the schema's fields.
	Filter predicate.Node
	// Late are runtime filters (join builds, top-N); polled before each row range.
	Late LateFilter
	// Limit is the number of rows wanted, -1 = all. Planning may stop early only
	// on rows proven live and passing.
	Limit int64
	// SkipLevel0 is Java's batch view of deletion-vector and first-row tables.
	SkipLevel0 bool
	// Overlay is a transaction's own writes.
	Overlay *commit.Changes
	// Incremental reads changes instead of a state; At is the newer end's state then,
	// whose schema the columns index.
	Incremental *Incremental
	// KeepDeletes returns rows whose newest version is a retraction, too, with their
	// kind in PseudoKind ($audit_log).
	KeepDeletes bool
	// ReadOptimized reads only files of the highest level of a key table, which need no
	// merge ($ro).
	ReadOptimized bool
	// Without are the ways of pruning that the scan does without.
	Without Pruning
	// Exact says that Filter is all that the reader's filter asks: a row that passes the one
	// passes the other.
	Exact bool
	// Extremes, when not nil, says that only extremes of columns are taken from the rows.
	Extremes *Extremes
	// Partitions, when not nil, are conditions on partition columns only: rows of partitions
	// that fail them are not wanted. Its columns are positions among the schema's partition
	// keys. It is only asked while Plan runs.
	Partitions RowFilter
	// Order, when not nil, says which rows a top-N, whose bound is Late, wants first.
	Order *Order
	// Options are dynamic table options, laid over the schema's.
	Options map[string]string
}

// Incremental says which changes to read: those of snapshots after From up to To.
// Source: IncrementalStartingScanner.java, IncrementalDeltaStartingScanner.java,
// IncrementalDiffStartingScanner.java.
type Incremental struct {
	From, To int64 // snapshot ids; From 0 = from the beginning
	// FromTag and ToTag are the tags whose states From and To are, when tags were named.
	FromTag, ToTag string
	Mode           IncrementalMode
	// InOrder asks for splits that give the rows of a file together and in its order,
	// retractions included: $binlog pairs a row's before and after.
	InOrder bool
	// from and to are the states that Diff compares; a from of nil is the empty table.
	from, to *snapshot.Snapshot
}

// IncrementalMode is the option incremental-between-scan-mode.
type IncrementalMode uint8

// The modes. Auto is Changelog where the table has a changelog producer, else
// Delta.
const (
	IncrementalAuto IncrementalMode = iota
	IncrementalDelta
	IncrementalChangelog
	IncrementalDiff
)

// NestedPath is a chain of member names below a column.
type NestedPath []string

// Pseudo-columns for writers and system tables, in Scan.Columns.
const (
	PseudoFile     = -1 // _FILE text
	PseudoPos      = -2 // _POS bigint, 0-based physical row number
	PseudoKind     = -3 // _KIND int2, the row kind; asks for deleted rows too
	PseudoSequence = -4 // _SEQ bigint
	PseudoBucket   = -5 // __paimon_bucket int, as Spark names it
	PseudoRowID    = -6 // _ROW_ID bigint, of tables with row tracking; see rowtracking.go
	PseudoVersion  = -7 // _SEQUENCE_NUMBER bigint, of tables with row tracking
)

// LateFilter yields a predicate that becomes known while a query runs.
type LateFilter interface {
	// Poll returns the newest predicate, or nil. It is cheap.
	Poll() predicate.Node
}

// RowFilter is the executor's exact filter, handed to readers so that payload
// columns are decoded only for rows that pass.
type RowFilter interface {
	// Columns are positions within Scan.Columns that Select needs.
	Columns() []int
	// Select returns the rows of b (whose Cols are exactly Columns(), in that
	// order, b.Sel nil) that pass, ascending; the result is valid until the next
	// call. Not safe for concurrent use: each reader gets its own.
	Select(ctx context.Context, b *vec.Batch) ([]uint16, error)
}

// ReadOptions belong to one reader of one split.
type ReadOptions struct {
	Filter    RowFilter // nil = none; rows it drops must not be returned
	Account   *mem.Account
	BatchRows int // rows wanted per batch; 0 = 2,048
	// Selections lets batches have a Sel: where most rows of a file live, naming them
	// is cheaper than copying them.
	Selections bool
	Counters   *format.Counters
}

// Split is the unit of parallel reading: files of one bucket that must be merged
// together, one file, or a row range of one file. Plain data; its fields are
// storage's own business.
type Split struct {
	Partition []types.Datum
	Bucket    int32
	Raw       bool  // no merge
	Rows      int64 // upper bound of rows
	Bytes     int64 // bytes of the files, a measure of the work
	Files     []File
	Sections  [][][]File // merge: sections of sorted runs of files, in key order
	Range     *format.RowRange
	Impl      any
	ends      *fileEnds // nil = nothing is known of Scan.Order's column
}

// PlanReport says what planning saw and skipped, for EXPLAIN ANALYZE. Skipped
// counts files by reason: partition, bucket, stats, bloom, bitmap, bsi,
// range-bitmap.
type PlanReport struct {
	SnapshotID                 int64 // 0 = no snapshot yet
	Manifests, ManifestsRead   int64
	Partitions, PartitionsRead int64
	Buckets, BucketsRead       int64
	Files, FilesRead           int64
	Level0Files                int64 // level-0 files that a fresh read adds to Java's batch view
	RawSplits, MergeSplits     int64
	DeletionVectors            int64
	Keys                       int64 // looked up by primary key
	// Remembered are merges of which it was known what they come to, Judged those of
	// them for which this plan found out.
	Remembered, Judged int64
	Skipped            map[string]int64
	Counters           format.Counters // filled while reading
	// Runtime is what runtime filters left out, by Leaf.Runtime - 1; shorter where the
	// last ones left out nothing.
	Runtime []RuntimeUse
	// TopN counts rows that the bound of a top-N dropped before the columns that no filter
	// asks for were read; the scan's owner does.
	TopN int64
}

// Plan is the outcome of Table.Plan.
type Plan struct {
	Splits []Split
	Report *PlanReport
	Schema *schema.Table // the schema that the scan's columns index
}

// SplitReader reads one split. Next returns nil at the end; a batch has at least
// one live row and its Cols follow Scan.Columns.
type SplitReader interface {
	Next(ctx context.Context) (*vec.Batch, error)
	Close() error
}

// Stats are what planning knows of a table without reading data.
type Stats struct {
	Rows  int64 // estimate of live rows
	Bytes int64
	// Columns by field id: min, max, null fraction where known.
	Columns map[int32]ColumnStats
	// Problem is why the state's statistics file is not made use of; nil = it is, or
	// there is none.
	Problem error
}

// ColumnStats are estimates for one column.
type ColumnStats struct {
	Min, Max     types.Datum
	NullCount    int64
	Distinct     int64 // 0 = unknown
	AverageBytes float64
	// Analyzed says that the statistics file has the column.
	Analyzed bool
}

// Table is one Paimon table. Safe for concurrent use.
type Table interface {
	// Schema returns the schema of the state that at names.
	Schema(ctx context.Context, at snapshot.Ref) (*schema.Table, error)
	// Resolve turns at into a snapshot id reference once, so that every use in a
	// statement reads one state. Latest on an empty table stays Latest.
	Resolve(ctx context.Context, at snapshot.Ref) (snapshot.Ref, error)
	Plan(ctx context.Context, s Scan) (*Plan, error)
	Read(ctx context.Context, s Scan, p Split, o ReadOptions) (SplitReader, error)
	// Get looks keys up without a scan: the batch holds the live rows found with
	// l.Columns, in no order, and which key each belongs to. Every merge engine,
	// level 0 and the overlay are taken account of.
	Get(ctx context.Context, l Lookup) (*vec.Batch, []int32, error)
	Stats(ctx context.Context, at snapshot.Ref) (*Stats, error)
	// Write opens a writer.
	Write(ctx context.Context, o WriteOptions) (Writer, error)
	// Locate computes bucket and key of rows of a primary-key table. keys holds one
	// array of n rows per primary-key column, in declared order, in stored form.
	Locate(ctx context.Context, at snapshot.Ref, keys []arrow.Array, n int) (*Located, error)
	// Fold prepares a transaction's changes for their commit on top of state at:
	// the level-0 files that they add to one bucket become one sorted file, and
	// sequence numbers are given anew where they are not above those of at. Files
	// that are not needed any more are returned for deletion.
	Fold(ctx context.Context, c commit.Changes, at snapshot.Ref, m *mem.Account) (out commit.Changes, dropped []manifest.Entry, err error)
	// Discard deletes the data and index files that c adds and that were never
	// committed. Errors are of no consequence to the caller: what stays is an
	// orphan.
	Discard(ctx context.Context, c commit.Changes) error
	commit.Committer
}

// Lookup asks for rows by primary key.
type Lookup struct {
	At snapshot.Ref
	// Keys holds one array per primary-key column, in declared order, in stored form,
	// one row per key. A key with a NULL is not found.
	Keys []arrow.Array
	// Columns index the fields of the schema that At names.
	Columns []int
	// Overlay is a transaction's own writes.
	Overlay *commit.Changes
	Options map[string]string
	// SkipLevel0 is Java's batch view of deletion-vector and first-row tables.
	SkipLevel0 bool
	Counters   *format.Counters
}

// WriteOptions belong to one writer.
type WriteOptions struct {
	// At is the state that the writer goes on from: its branch, its schema, and
	// the files whose sequence numbers the new rows come after.
	At snapshot.Ref
	// Overlay is what the transaction wrote before; its rows are older, too.
	Overlay *commit.Changes
	Account *mem.Account      // buffers are charged to it
	Options map[string]string // dynamic table options
	// Overwrite lets a changed bucket count pass: the bucket is rewritten whole.
	// OverwriteAll says that it is every partition that is replaced.
	Overwrite, OverwriteAll bool
}

// Located says where rows of a primary-key table live. Row i is in Buckets[Bucket[i]]
// under the encoded key Keys[i] (see commit.ReadSet).
type Located struct {
	Buckets []commit.BucketID
	Bucket  []int32
	Keys    [][]byte
}

// Writer turns batches into files. Not safe for concurrent use.
type Writer interface {
	// Write appends the live rows of b, whose Cols follow the table's stored schema
	// (types.Type.Arrow() of each field, or a dictionary of it). kinds holds a row
	// kind (types of Java's RowKind: 0 +I, 1 -U, 2 +U, 3 -D) per live row; nil = all
	// +I. The batch may be kept. NULL in a NOT NULL column is a *NullError.
	//
	// In a table with row tracking there may be one column more: the ids of rows that
	// are there already and are changed, NULL for new rows.
	Write(ctx context.Context, b *vec.Batch, kinds []uint8) error
	// Delete removes rows of a data file of an append table, by their physical
	// positions: the file is rewritten without them, or they go into its deletion
	// vector where the table has those enabled. file is what PseudoFile shows.
	Delete(ctx context.Context, file string, rows []int64) error
	// Buffered returns the bytes and rows that are not in files yet.
	Buffered() (bytes, rows int64)
	// Prepare flushes and returns what was written, ready for Commit. The writer
	// cannot be used afterwards. Base, Kind and Files are set; Overwrite, too, where
	// it is not the partitions of Files that a dynamic overwrite replaces.
	Prepare(ctx context.Context) (commit.Changes, error)
	// Abort deletes every file written.
	Abort(ctx context.Context) error
}

// NullError says that a row has NULL in a NOT NULL column.
type NullError struct{ Column string }

func (e *NullError) Error() string {
	return "null value in column " + e.Column + " that is not nullable"
}

// BucketCountError says that a partition's files were written with another
// number of buckets: it must be rescaled first (Java's writers refuse, too).
type BucketCountError struct {
	Dir        string // of the table, relative to the warehouse
	Partition  string // "" = the table has none
	Want, Have int32
}

func (e *BucketCountError) Error() string {
	if e.Partition == "" {
		return fmt.Sprintf("the table has %d buckets, but its files were written with %d", e.Want, e.Have)
	}
	return fmt.Sprintf("the table has %d buckets, but the files of partition %s were written with %d", e.Want, e.Partition, e.Have)
}

// Maintenance is what keeps a table readable and small.
type Maintenance interface {
	// Compact picks and rewrites files of the buckets named and publishes the
	// result. Work that lost a race is thrown away and reported, not an error.
	Compact(ctx context.Context, o CompactOptions) (*CompactReport, error)
	// Settled reports whether the newest state of a branch is one that the options to,
	// laid over the table's, may assume. Options that change what compactions have left behind for readers,
	// such as deletion-vectors.enabled, may be set once it is true; a full compaction
	// with DropVectors makes it so.
	Settled(ctx context.Context, branch string, to map[string]string) (bool, error)
	// Expire removes snapshots that the table's retention options, laid under o,
	// do not keep, with the files that nothing else needs.
	Expire(ctx context.Context, o ExpireOptions) (*ExpireReport, error)
	// CreateTag names a snapshot (0 = the newest); retained 0 = for ever.
	CreateTag(ctx context.Context, branch, name string, snapshotID int64, retained time.Duration) error
	// DeleteTag removes a tag and what only it kept.
	DeleteTag(ctx context.Context, branch, name string) error
	// RollbackTo makes a snapshot or tag the newest state again.
	RollbackTo(ctx context.Context, branch string, to snapshot.Ref) error
}

// CompactOptions say what to compact.
type CompactOptions struct {
	Branch string
	Full   bool // everything to the highest level, or into few files
	// Level0 takes level 0 up, whether it is due or not: for whoever waits for the
	// changelog or the deletion vectors of a commit. It is tried again when a race was
	// lost, until the files are taken up that are there now.
	Level0 bool
	// DropVectors is a full compaction that leaves no deletion vectors, see Settled.
	DropVectors bool
	// Partitions are BinaryRow images; nil = all.
	Partitions [][]byte
	// Buckets narrows it further; nil = all.
	Buckets []int32
	// Sort, when not nil, sorts all rows of each partition of an append table. What
	// cannot be sorted is a *ClusterError.
	Sort *SortOptions
	// Options are dynamic table options, laid over the schema's.
	Options map[string]string
	Account *mem.Account
	// Progress, when not nil, is called as work is done.
	Progress func(done, total int64)
	// Throttle, when not nil, is called with the bytes about to be written and may
	// wait.
	Throttle func(ctx context.Context, bytes int64) error
	// Publish, when not nil, is called before each commit: it may wait for those who
	// are about to change rows of the files, or to drop the table; done is called when
	// the commit is through.
	Publish func(ctx context.Context) (done func(), err error)
}

// CompactReport says what a compaction did.
type CompactReport struct {
	SnapshotID                       int64 // 0 = nothing published
	Buckets, FilesBefore, FilesAfter int
	RowsBefore, RowsAfter            int64
	BytesRead, BytesWritten          int64
	Upgraded                         int // files moved to a level without rewriting
	ChangelogFiles                   int
	ChangelogRows                    int64
	LostRaces                        int // units thrown away
}

// ExpireOptions override the table's snapshot.* options; zero values leave them.
type ExpireOptions struct {
	Branch               string
	RetainMax, RetainMin int
	OlderThan            time.Time // expire only what is older
	MaxDeletes           int
	// Dry only counts.
	Dry bool
}

// ExpireReport says what was removed.
type ExpireReport struct {
	Snapshots, DataFiles, ManifestFiles, IndexFiles int
}
