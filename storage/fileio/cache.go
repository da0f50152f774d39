package fileio

import (
	"container/list"
	"sync"
)

// LRU is a cache with a budget in bytes. Values are shared and must not be
// changed by anyone. Safe for concurrent use.
type LRU[K comparable, V any] struct {
	mu     sync.Mutex // guards all below
	budget int64
	used   int64
	byKey  map[K]*list.Element
	order  *list.List // front = newest
	evict  func(K, V)

	hits, misses int64 // of Get
}

// CacheStats say what a cache holds and how often it had what it was asked for.
// Entries, Bytes and Budget are of now, Hits and Misses since it was made.
type CacheStats struct {
	Entries, Bytes, Budget int64
	Hits, Misses           int64
}

// Add adds what another cache holds and did.
func (s *CacheStats) Add(o CacheStats) {
	s.Entries += o.Entries
	s.Bytes += o.Bytes
	s.Budget += o.Budget
	s.Hits += o.Hits
	s.Misses += o.Misses
}

type lruItem[K comparable, V any] struct {
	key  K
	val  V
	cost int64
}

// NewLRU returns a cache that holds values of at most budget bytes in sum. evict
// (may be nil) is called, without the lock, for each value that leaves.
func NewLRU[K comparable, V any](budget int64, evict func(K, V)) *LRU[K, V] {
	return &LRU[K, V]{budget: budget, byKey: map[K]*list.Element{}, order: list.New(), evict: evict}
}

// Get returns the value of k and makes it the newest.
func (c *LRU[K, V]) Get(k K) (v V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	e, ok := c.byKey[k]
	if !ok {
		c.misses++
		return v, false
	}
	c.hits++
	c.order.MoveToFront(e)
	return e.Value.(*lruItem[K, V]).val, true
}

// Has reports whether k is kept. It counts as no use of it.
func (c *LRU[K, V]) Has(k K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.byKey[k]
	return ok
}

// Put stores v under k at a cost in bytes, and drops the oldest values that no
// longer fit. A value dearer than the whole budget is not kept.
func (c *LRU[K, V]) Put(k K, v V, cost int64) {
	var gone []*lruItem[K, V]
	c.mu.Lock()
	if e, ok := c.byKey[k]; ok {
		gone = append(gone, c.remove(e))
	}
	it := &lruItem[K, V]{k, v, cost}
	if cost > c.budget {
		gone = append(gone, it)
	} else {
		c.byKey[k] = c.order.PushFront(it)
		c.used += cost
		for c.used > c.budget {
			gone = append(gone, c.remove(c.order.Back()))
		}
	}
	c.mu.Unlock()
	if c.evict != nil {
		for _, it := range gone {
			c.evict(it.key, it.val)
		}
	}
}

func (c *LRU[K, V]) remove(e *list.Element) *lruItem[K, V] {
	it := c.order.Remove(e).(*lruItem[K, V])
	delete(c.byKey, it.key)
	c.used -= it.cost
	return it
}

// Delete drops k.
func (c *LRU[K, V]) Delete(k K) {
	c.mu.Lock()
	e, ok := c.byKey[k]
	var it *lruItem[K, V]
	if ok {
		it = c.remove(e)
	}
	c.mu.Unlock()
	if ok && c.evict != nil {
		c.evict(it.key, it.val)
	}
}

// Used returns the bytes held.
func (c *LRU[K, V]) Used() int64 {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.used
}

// Stats says what the cache holds and has done.
func (c *LRU[K, V]) Stats() CacheStats {
	c.mu.Lock()
	defer c.mu.Unlock()
	return CacheStats{Entries: int64(len(c.byKey)), Bytes: c.used, Budget: c.budget, Hits: c.hits, Misses: c.misses}
}
