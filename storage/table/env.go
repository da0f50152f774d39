package table

import (
	"context"
	"errors"
	"path"
	"strings"
	"sync"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// EnvOptions are the budgets of the caches that the tables of a warehouse share.
// Zero values mean the defaults in parentheses.
type EnvOptions struct {
	ManifestCacheBytes int64 // decoded manifests (256 MB)
	VectorCacheBytes   int64 // decoded deletion vectors (64 MB)
	PageCacheBytes     int64 // inflated pages of data files (256 MB); below 0 = none
	IndexCacheBytes    int64 // heads and bitmaps of file indexes (64 MB)
	OpenFiles          int   // data files kept open with their footers (256)
	VerdictBytes       int64 // what merges come to, see verdict (64 MB); below 0 = none
	// VerdictRows is how many rows files that are merged must have, for what they come
	// to being remembered (65,536): rows of less work keep the order of their keys.
	VerdictRows int64
	HashBytes   int64 // hash indexes of dynamic buckets (256 MB); a bigger one is charged to its writer
	FoldedBytes int64 // what engines fold keys of several versions into (128 MB); below 0 = none
	// Lookup are the budgets of the tables for lookups by key; KeyDir is their
	// directory where it names none.
	Lookup lookup.Options
	// KeyDir names the directory, of this process alone, where indexes of
	// cross-partition keys are put; it is called when the first is needed. nil = they
	// are in memory.
	KeyDir func() (string, error)
	Events Events
	// SplitBytes is the size of a split of small files and of a row range of a big
	// one (4 MB); RangeRows and MergeRows are the least rows of a row range (65,536)
	// and of a key range (131,072). WindowRows is how many rows of a file are
	// looked at together (8,192, at most 65,536): one decision per window, and
	// little enough to stay in the CPU's cache between filter and payload.
	SplitBytes, RangeRows, MergeRows int64
	WindowRows                       int
}

// Events are told what storage does, for logs and metrics; nil funcs are skipped.
type Events struct {
	PlanDone func(dir string, r *PlanReport)
	// IndexDamaged is called once for each file whose indexes cannot be used.
	IndexDamaged func(path string, err error)
}

// Env is what the tables of one warehouse share: files, formats and caches. Safe
// for concurrent use.
type Env struct {
	IO        fileio.FileIO
	Manifests *manifest.Cache
	events    Events
	sizes     sizes
	formats   map[string]format.Format
	readers   *readerCache
	vectors   *fileio.LRU[vectorKey, *dv.Vector]
	living    *fileio.LRU[vectorKey, *mergetree.RowSet] // what vectors leave of their files
	indexes   *fileio.LRU[string, *indexFile]           // by path
	// badIndexes are those of which Events have been told.
	badIndexes *fileio.LRU[string, struct{}]
	lookups    *lookup.Store
	samples    *fileio.LRU[sampleKey, []byte]     // keys at row numbers, for cutting sections
	restores   *fileio.LRU[string, *restoreCache] // by table and branch: what writers go on from
	hashParts  *fileio.LRU[string, *hashPart]     // by table, branch and partition: indexes of dynamic buckets
	hashAdds   *fileio.LRU[string, hashDelta]     // by hash index file that was written here
	keys       *keyStore
	verdicts   *verdicts
	folded     *fileio.LRU[foldedKey, *foldedColumn] // nil = none
	// foldedBytes is the budget of folded.
	foldedBytes int64
	hashBytes   int64 // of hashParts
}

// sizes are how scans are cut; see EnvOptions.
type sizes struct {
	split, rangeRows, mergeRows int64
	window                      int
}

type vectorKey struct {
	path   string
	offset int32
}

// NewEnv makes the environment of a warehouse.
func NewEnv(io fileio.FileIO, o EnvOptions) *Env {
	def := func(v, d int64) int64 {
		if v == 0 {
			return d
		}
		return v
	}
	e := &Env{
		IO:        io,
		Manifests: manifest.NewCache(def(o.ManifestCacheBytes, 256<<20)),
		events:    o.Events,
		sizes: sizes{
			split: def(o.SplitBytes, 4<<20), rangeRows: def(o.RangeRows, 65_536), mergeRows: def(o.MergeRows, 131_072),
			window: int(min(def(int64(o.WindowRows), 8192), 1<<16)),
		},
		formats:   map[string]format.Format{},
		readers:   newReaderCache(int(def(int64(o.OpenFiles), 256))),
		samples:   fileio.NewLRU[sampleKey, []byte](8<<20, nil),
		restores:  fileio.NewLRU[string, *restoreCache](1024, nil), // of branches, not bytes
		hashBytes: def(o.HashBytes, 256<<20),
		keys:      &keyStore{dir: o.KeyDir},
		vectors:   fileio.NewLRU[vectorKey, *dv.Vector](def(o.VectorCacheBytes, 64<<20), nil),
		living:    fileio.NewLRU[vectorKey, *mergetree.RowSet](def(o.VectorCacheBytes, 64<<20), nil),
	}
	e.indexes = fileio.NewLRU[string, *indexFile](def(o.IndexCacheBytes, 64<<20), nil)
	e.badIndexes = fileio.NewLRU[string, struct{}](10_000, nil) // of paths
	e.hashParts = fileio.NewLRU[string, *hashPart](e.hashBytes, nil)
	e.hashAdds = fileio.NewLRU[string, hashDelta](e.hashBytes/16, nil)
	e.verdicts = newVerdicts(def(o.VerdictBytes, 64<<20), def(o.VerdictRows, 65_536))
	if e.foldedBytes = def(o.FoldedBytes, 128<<20); e.foldedBytes > 0 {
		e.folded = fileio.NewLRU[foldedKey, *foldedColumn](e.foldedBytes, nil)
	}
	if o.Lookup.Dir == nil {
		o.Lookup.Dir = o.KeyDir
	}
	e.lookups = lookup.New(o.Lookup)
	for _, f := range formats(def(o.PageCacheBytes, 256<<20)) {
		e.formats[f.Name()] = f
	}
	return e
}

// Close closes every open data file that nobody reads, and removes the tables for
// lookups and the indexes of keys.
func (e *Env) Close() {
	e.lookups.Close()
	e.readers.close()
	e.keys.close()
}

// LookupStats says what the tables for lookups hold and have done.
func (e *Env) LookupStats() lookup.Stats { return e.lookups.Stats() }

// forget closes the readers of data files that have left the table, once nobody
// uses them, and drops what is cached of them. Whoever reads an older snapshot
// opens them again.
func (e *Env) forget(paths []string) {
	e.readers.drop(paths)
	e.lookups.Forget(paths...)
	for _, p := range paths {
		e.forgetIndex(p)
	}
	for _, f := range e.formats {
		if f, ok := f.(format.Forgetter); ok {
			f.Forget(paths...)
		}
	}
}

// compressions are the extensions that may stand behind or before the format's.
var compressions = map[string]bool{"gz": true, "bz2": true, "deflate": true, "snappy": true, "lz4": true, "zst": true, "zstd": true, "none": true}

// FormatOf returns the name of a data file's format: its last extension that is
// not one of a compression.
func FormatOf(file string) string {
	parts := strings.Split(path.Base(file), ".")
	for i := len(parts) - 1; i > 0; i-- {
		if p := strings.ToLower(parts[i]); !compressions[p] {
			return strings.TrimPrefix(p, "cc-")
		}
	}
	return ""
}

// formatOf returns the Format of a data file, or an *fileio.UnsupportedError.
func (e *Env) formatOf(file string) (format.Format, error) {
	name := FormatOf(file)
	if f, ok := e.formats[name]; ok {
		return f, nil
	}
	switch name {
	case "orc", "avro", "csv", "json":
		name = strings.ToUpper(name)
	case "blob":
		return nil, &fileio.UnsupportedError{Feature: "blob files"}
	}
	return nil, &fileio.UnsupportedError{Feature: "data file format " + name}
}

// vector returns the deletion vector that ref names, decoded.
func (e *Env) vector(ctx context.Context, ref *manifest.DeletionVectorRef) (*dv.Vector, error) {
	k := vectorKey{ref.Path, ref.Offset}
	if v, ok := e.vectors.Get(k); ok {
		return v, nil
	}
	raw, err := e.IO.ReadFile(ctx, ref.Path)
	if errors.Is(err, fileio.ErrNotExist) {
		return nil, &fileio.MissingError{Path: ref.Path, Err: err}
	}
	if err != nil {
		return nil, err
	}
	v, err := dv.Read(raw, int64(ref.Offset), int64(ref.Length))
	if err != nil {
		return nil, &fileio.CorruptionError{Path: ref.Path, Offset: int64(ref.Offset), Reason: "deletion vector", Err: err}
	}
	if ref.Cardinality >= 0 && ref.Cardinality != v.Cardinality() {
		return nil, &fileio.CorruptionError{Path: ref.Path, Offset: int64(ref.Offset), Reason: "deletion vector has another cardinality than the index manifest says"}
	}
	e.vectors.Put(k, v, int64(ref.Length)*4+256)
	return v, nil
}

// alive returns the rows of a file that v, its vector by ref, leaves: windows of
// them are found a word at a time.
func (e *Env) alive(ref *manifest.DeletionVectorRef, v *dv.Vector, rows int64) *mergetree.RowSet {
	k := vectorKey{ref.Path, ref.Offset}
	if s, ok := e.living.Get(k); ok {
		return s
	}
	s := mergetree.RowsWithout(rows, v.Each)
	e.living.Put(k, s, s.Bytes()+64)
	return s
}

// readerCache keeps data files open, with footer, page index and dictionaries
// decoded. A reader may be used by many at once; it is closed when it has left
// the cache and its last user is done.
type readerCache struct {
	mu   sync.Mutex // guards all below
	max  int
	open map[string]*cachedReader
	// hits and misses are of get.
	hits, misses int64
	head         cachedReader // ring of all readers, newest first
}

type cachedReader struct {
	format.Reader
	key        string
	refs       int
	gone       bool // not in the cache any more
	next, prev *cachedReader
}

func newReaderCache(limit int) *readerCache {
	c := &readerCache{max: limit, open: map[string]*cachedReader{}}
	c.head.next, c.head.prev = &c.head, &c.head
	return c
}

func (c *readerCache) unlink(r *cachedReader) { r.prev.next, r.next.prev = r.next, r.prev }

func (c *readerCache) front(r *cachedReader) {
	r.next, r.prev = c.head.next, &c.head
	r.next.prev, c.head.next = r, r
}

// get returns a reader and takes a reference, opening the file by open if need
// be. Two callers may open one file at the same time; one result is dropped.
func (c *readerCache) get(key string, open func() (format.Reader, error)) (*cachedReader, error) {
	c.mu.Lock()
	if r, ok := c.open[key]; ok {
		r.refs++
		c.hits++
		c.unlink(r)
		c.front(r)
		c.mu.Unlock()
		return r, nil
	}
	c.misses++
	c.mu.Unlock()
	rd, err := open()
	if err != nil {
		return nil, err
	}
	c.mu.Lock()
	if r, ok := c.open[key]; ok {
		r.refs++
		c.mu.Unlock()
		_ = rd.Close()
		return r, nil
	}
	r := &cachedReader{Reader: rd, key: key, refs: 1}
	c.open[key] = r
	c.front(r)
	var idle []*cachedReader
	for len(c.open) > c.max {
		old := c.head.prev
		c.unlink(old)
		delete(c.open, old.key)
		if old.gone = true; old.refs == 0 {
			idle = append(idle, old)
		}
	}
	c.mu.Unlock()
	for _, r := range idle {
		_ = r.Close()
	}
	return r, nil
}

// put gives a reference back.
func (c *readerCache) put(r *cachedReader) {
	c.mu.Lock()
	r.refs--
	last := r.gone && r.refs == 0
	c.mu.Unlock()
	if last {
		_ = r.Close()
	}
}

func (c *readerCache) close() {
	c.mu.Lock()
	var idle []*cachedReader
	for k, r := range c.open {
		delete(c.open, k)
		c.unlink(r)
		if r.gone = true; r.refs == 0 {
			idle = append(idle, r)
		}
	}
	c.mu.Unlock()
	for _, r := range idle {
		_ = r.Close()
	}
}

// Names and types of the physical columns that stand before a primary-key
// table's own in its data files.
var (
	sequenceField = types.Field{ID: 2147483646, Name: "_SEQUENCE_NUMBER", Type: types.Of(types.Int8).WithNotNull(true)}
	kindField     = types.Field{ID: 2147483645, Name: "_VALUE_KIND", Type: types.Of(types.TinyInt).WithNotNull(true)}
)
