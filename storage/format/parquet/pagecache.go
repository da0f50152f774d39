package parquet

import (
	"sync"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// PageCache keeps inflated pages of data files, because inflating is half of the
// work of a scan. Data files never change and their names are never used twice
// (they hold a UUID), so a path and an offset name a page for good. Safe for
// concurrent use.
//
// While there is room every page is kept. When the cache is full, a page gets in
// only when it was asked for before and is still remembered: a scan larger than
// the cache then passes by without turning it over.
type PageCache struct {
	budget int64
	pages  *fileio.LRU[pageKey, *cachedPage]
	seen   *fileio.LRU[pageKey, struct{}]

	mu    sync.Mutex // guards files
	files map[string]map[pageKey]struct{}
}

type pageKey struct {
	path string
	size int64 // of the file
	off  int64 // of the page header
}

// cachedPage is a v1 data page: header, place of its body, inflated bytes. The
// bytes are shared and never written.
type cachedPage struct {
	hdr  pageHeader
	at   int64
	data []byte
}

// NewPageCache makes a cache of at most budget bytes.
func NewPageCache(budget int64) *PageCache {
	c := &PageCache{budget: budget, seen: fileio.NewLRU[pageKey, struct{}](budget, nil), files: map[string]map[pageKey]struct{}{}}
	c.pages = fileio.NewLRU(budget, c.left)
	return c
}

// left forgets that a page is kept. Another reader may be keeping it anew at the
// same time; then it only cannot be forgotten with its file.
func (c *PageCache) left(k pageKey, _ *cachedPage) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if of := c.files[k.path]; of != nil {
		if delete(of, k); len(of) == 0 {
			delete(c.files, k.path)
		}
	}
}

// Forget drops the pages of files that nobody is expected to read again.
func (c *PageCache) Forget(paths ...string) {
	if c == nil {
		return
	}
	for _, p := range paths {
		c.mu.Lock()
		of := c.files[p]
		delete(c.files, p)
		c.mu.Unlock()
		for k := range of {
			c.pages.Delete(k)
		}
	}
}

// Used returns the bytes held.
func (c *PageCache) Used() int64 { return c.pages.Used() }

// Stats says what the cache holds and has done.
func (c *PageCache) Stats() fileio.CacheStats {
	if c == nil {
		return fileio.CacheStats{}
	}
	return c.pages.Stats()
}

const pageOverhead = 256 // of an entry: key, header, list element

func (c *PageCache) get(k pageKey) *cachedPage {
	if c == nil {
		return nil
	}
	p, _ := c.pages.Get(k)
	return p
}

// has reports whether a page is kept, without asking for it.
func (c *PageCache) has(k pageKey) bool {
	return c != nil && c.pages.Has(k)
}

// admits reports whether a page of n bytes should be kept; the caller then
// inflates it into memory of its own and calls put.
func (c *PageCache) admits(k pageKey, n int) bool {
	if c == nil || int64(n) > c.budget/16 {
		return false
	}
	cost := int64(n) + pageOverhead
	if c.pages.Used()+cost <= c.budget {
		return true
	}
	if _, again := c.seen.Get(k); again {
		c.seen.Delete(k)
		return true
	}
	c.seen.Put(k, struct{}{}, cost)
	return false
}

func (c *PageCache) put(k pageKey, p *cachedPage) {
	c.mu.Lock()
	of := c.files[k.path]
	if of == nil {
		of = map[pageKey]struct{}{}
		c.files[k.path] = of
	}
	of[k] = struct{}{}
	c.mu.Unlock()
	c.pages.Put(k, p, int64(len(p.data))+pageOverhead)
}
