// Package format is the seam for data files: a Format opens and creates files,
// a Reader walks columns of row ranges.
package format

import (
	"context"
	"io"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// Format is one data file format; Name is its value in the option file.format.
type Format interface {
	Name() string
	// Open reads the footer. row is the Paimon schema the file was written with
	// (physical columns, by name): INT96, TIME and DECIMAL are decided by it,
	// not by the file's own annotations. A column absent from the file reads as
	// NULL. The Reader owns f and closes it.
	Open(ctx context.Context, f fileio.File, row types.Schema) (Reader, error)
	Create(ctx context.Context, w io.Writer, s types.Schema, o WriteOptions) (Writer, error)
}

// Forgetter is implemented by formats that keep parts of files in memory.
type Forgetter interface {
	// Forget drops what is kept of files that are gone, or soon will be.
	Forget(paths ...string)
}

// RowRange is rows [From, To) of a file.
type RowRange struct{ From, To int64 }

// Reader reads one open file. Row ranges may be read concurrently.
type Reader interface {
	Rows() int64
	// Cuts returns the row numbers, ascending and without 0 and Rows(), at which
	// reading may begin at no extra cost for the wanted columns: row group
	// starts and page starts (Java writes one row group per file, so big files
	// are shared out here). want indexes the schema given to Open.
	Cuts(want []int) []int64
	// Prune returns the row ranges that may hold a row for which p is true,
	// ascending and disjoint, from row group statistics, page index,
	// dictionaries and bloom filters. nil p: all rows. Columns of p index the
	// schema given to Open. It counts what it skipped in c.
	Prune(ctx context.Context, p predicate.Node, c *Counters) ([]RowRange, error)
	// Columns walks the wanted columns over rows r, any cut. want indexes the
	// schema given to Open; project[i], when not nil, names the sub-fields of a
	// nested column that are needed (nil = all).
	Columns(ctx context.Context, r RowRange, want []int) (ColumnReader, error)
	// Bytes returns the bytes read from storage so far.
	Bytes() int64
	Close() error
}

// ColumnReader walks some columns of one row range in step.
type ColumnReader interface {
	// Read consumes the next n <= 65,536 rows and returns one array per wanted
	// column (Arrow type types.Type.Arrow(), or a dictionary of it), compacted
	// to keep: positions within the n rows, ascending; nil = all. An empty
	// non-nil keep skips without decoding. The arrays are the caller's.
	Read(ctx context.Context, n int, keep []uint16) ([]arrow.Array, error)
	Close() error
}

// Expecter is a ColumnReader that reads only the pages in which rows are wanted, when
// it is told beforehand which they are.
type Expecter interface {
	// Expect is called before the first Read: some reports whether one of rows [from, to)
	// of the file will be in a keep. without is told how many pages are therefore not
	// read.
	Expect(some func(from, to int64) bool, without func(pages int64))
	// Late is called before the first Read when the keep of a Read is all that is known
	// of the rows that are wanted: a page is then read when one of its rows is.
	Late()
}

// PageCounter is a ColumnReader that knows how many pages of data it has decompressed and
// decoded, each time that it did.
type PageCounter interface {
	PagesDecoded() int64
}

// Counters are what a scan saw and skipped, for EXPLAIN ANALYZE and metrics.
type Counters struct {
	RowGroups, RowGroupsSkipped int64
	Pages, PagesSkipped         int64
	Rows, RowsSkipped           int64
	PagesDecoded                int64 // see PageCounter
	BytesRead                   int64

	// What file indexes did while files were read: bytes read of them, files that they
	// ruled out by kind, rows that they left out of files that are read, pages of wanted
	// columns in which they left no row, and files that are read without them, because
	// they are missing or damaged.
	IndexBytes   int64
	IndexFiles   map[string]int64
	IndexRows    int64
	IndexPages   int64
	IndexDamaged int64
	// RuntimeFiles counts the files of IndexFiles that were ruled out by a runtime filter
	// (predicate.Leaf.Runtime).
	RuntimeFiles map[int]int64
}

// Add adds what another reader counted.
func (c *Counters) Add(o *Counters) {
	c.RowGroups += o.RowGroups
	c.RowGroupsSkipped += o.RowGroupsSkipped
	c.Pages += o.Pages
	c.PagesSkipped += o.PagesSkipped
	c.Rows += o.Rows
	c.RowsSkipped += o.RowsSkipped
	c.PagesDecoded += o.PagesDecoded
	c.BytesRead += o.BytesRead
	c.IndexBytes += o.IndexBytes
	for k, n := range o.IndexFiles {
		c.SkipFile(k, n)
	}
	c.IndexRows += o.IndexRows
	c.IndexPages += o.IndexPages
	c.IndexDamaged += o.IndexDamaged
	for k, n := range o.RuntimeFiles {
		c.SkipRuntime(k, n)
	}
}

// SkipRuntime counts files that a runtime filter ruled out; 0 = none did.
func (c *Counters) SkipRuntime(filter int, n int64) {
	if filter <= 0 {
		return
	}
	if c.RuntimeFiles == nil {
		c.RuntimeFiles = map[int]int64{}
	}
	c.RuntimeFiles[filter] += n
}

// SkipFile counts files that an index of a kind ruled out.
func (c *Counters) SkipFile(kind string, n int64) {
	if c.IndexFiles == nil {
		c.IndexFiles = map[string]int64{}
	}
	c.IndexFiles[kind] += n
}

// WriteOptions are the file.* and parquet.* options of a table.
type WriteOptions struct {
	Compression string // "zstd", "none", ...
	Level       int
	BlockSize   int64
	Options     map[string]string // every table option, for format-specific keys
	// CopyOf, when not nil, names for each column the column before it that has the
	// same array in every Write, -1 = none. A format may do the work once.
	CopyOf []int
}

// Writer writes one file.
type Writer interface {
	// Write appends rows; cols are as ColumnReader.Read returns them.
	Write(cols []arrow.Array, n int) error
	// EstimatedSize is what the file would have if closed now.
	EstimatedSize() int64
	// Close finishes the file and returns its statistics, one per column of the
	// schema given to Create.
	Close() ([]ColumnStats, error)
}

// ColumnStats are one column's statistics over one file. Min and Max nil: unknown.
type ColumnStats struct {
	Min, Max  types.Datum
	NullCount int64 // -1 = unknown
}
