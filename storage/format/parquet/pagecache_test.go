package parquet

import "testing"

// TestPageCacheForget drops a file's pages and keeps the others'.
func TestPageCacheForget(t *testing.T) {
	c := NewPageCache(1 << 20)
	page := &cachedPage{data: make([]byte, 100)}
	for _, f := range []string{"a", "b"} {
		for off := range int64(5) {
			c.put(pageKey{f, 1, off}, page)
		}
	}
	c.Forget("a", "absent")
	if c.get(pageKey{"a", 1, 3}) != nil || c.get(pageKey{"b", 1, 3}) == nil {
		t.Error("the wrong pages are gone")
	}
	if want := int64(5 * (100 + pageOverhead)); c.Used() != want {
		t.Errorf("%d bytes used, want %d", c.Used(), want)
	}
	for off := range int64(10_000) { // those of b are pushed out
		c.put(pageKey{"c", 1, off}, page)
	}
	if len(c.files) != 1 {
		t.Errorf("%d files remembered", len(c.files))
	}
	c.Forget("b", "c")
	if c.Used() != 0 || len(c.files) != 0 {
		t.Errorf("%d bytes, %d files left", c.Used(), len(c.files))
	}
}
