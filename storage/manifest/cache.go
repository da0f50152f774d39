package manifest

import (
	"context"
	"errors"
	"unsafe"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// Cache holds decoded manifests, lists and index manifests by path. Their names
// hold a UUID, so an entry never goes stale. Safe for concurrent use; what it
// returns is shared and must not be changed.
type Cache struct {
	entries *fileio.LRU[string, []Entry]
	lists   *fileio.LRU[string, []FileMeta]
	indexes *fileio.LRU[string, []IndexEntry]
}

// NewCache makes a cache of about budget bytes.
func NewCache(budget int64) *Cache {
	return &Cache{
		entries: fileio.NewLRU[string, []Entry](budget/8*6, nil),
		lists:   fileio.NewLRU[string, []FileMeta](budget/8, nil),
		indexes: fileio.NewLRU[string, []IndexEntry](budget/8, nil),
	}
}

func load[T any](ctx context.Context, io fileio.FileIO, c *fileio.LRU[string, []T], path string, each int, decode func(string, []byte) ([]T, error)) ([]T, error) {
	if v, ok := c.Get(path); ok {
		return v, nil
	}
	if err := context.Cause(ctx); err != nil {
		return nil, err
	}
	raw, err := io.ReadFile(ctx, path)
	if errors.Is(err, fileio.ErrNotExist) {
		return nil, &fileio.MissingError{Path: path, Err: err}
	}
	if err != nil {
		return nil, err
	}
	v, err := decode(path, raw)
	if err != nil {
		return nil, err
	}
	// Decoded rows refer to the decompressed blocks, about four times the file.
	c.Put(path, v, int64(len(v)*each+4*len(raw)+256))
	return v, nil
}

// Entries returns the entries of a manifest.
func (c *Cache) Entries(ctx context.Context, io fileio.FileIO, path string) ([]Entry, error) {
	return load(ctx, io, c.entries, path, int(unsafe.Sizeof(Entry{})+unsafe.Sizeof(DataFile{}))+64, DecodeEntries)
}

// List returns the manifests of a manifest list.
func (c *Cache) List(ctx context.Context, io fileio.FileIO, path string) ([]FileMeta, error) {
	return load(ctx, io, c.lists, path, int(unsafe.Sizeof(FileMeta{}))+64, DecodeList)
}

// Index returns the entries of an index manifest.
func (c *Cache) Index(ctx context.Context, io fileio.FileIO, path string) ([]IndexEntry, error) {
	return load(ctx, io, c.indexes, path, int(unsafe.Sizeof(IndexEntry{}))+64, DecodeIndex)
}

// PutEntries keeps the entries of a manifest that was just written as size bytes,
// so that the next plan does not read it. They must be Normal and are shared.
func (c *Cache) PutEntries(path string, es []Entry, size int) {
	c.entries.Put(path, es, int64(len(es)*(int(unsafe.Sizeof(Entry{})+unsafe.Sizeof(DataFile{}))+64)+4*size+256))
}

// PutList keeps a manifest list that was just written.
func (c *Cache) PutList(path string, ms []FileMeta, size int) {
	c.lists.Put(path, ms, int64(len(ms)*(int(unsafe.Sizeof(FileMeta{}))+64)+4*size+256))
}

// PutIndex keeps an index manifest that was just written.
func (c *Cache) PutIndex(path string, es []IndexEntry, size int) {
	c.indexes.Put(path, es, int64(len(es)*(int(unsafe.Sizeof(IndexEntry{}))+64)+4*size+256))
}

// Used returns the bytes held.
func (c *Cache) Used() int64 { return c.entries.Used() + c.lists.Used() + c.indexes.Used() }

// Stats says what is held of manifests, of their lists and of index manifests.
func (c *Cache) Stats() (entries, lists, indexes fileio.CacheStats) {
	return c.entries.Stats(), c.lists.Stats(), c.indexes.Stats()
}

// Forget drops what is kept of files that were deleted.
func (c *Cache) Forget(paths ...string) {
	for _, p := range paths {
		c.entries.Delete(p)
		c.lists.Delete(p)
		c.indexes.Delete(p)
	}
}
