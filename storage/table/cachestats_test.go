package table

import (
	"context"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// TestCacheStats: a second read of the same finds everything.
func TestCacheStats(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "-1"}, nil, "a INT", "b STRING")
	b := newBuilt(t, s)
	var rows []row
	for i := range int64(1000) {
		rows = append(rows, row{i, 0, []types.Datum{i, "some text that is stored more than once"}})
	}
	f := b.addFile(0, 0, rows, 100)
	b.deletePos(f, 3, 5)
	tb := b.commit(EnvOptions{})
	use := func() map[string]CacheStats {
		before := tb.env.CacheStats()
		if _, _, err := readAll(ctx, tb, Scan{Limit: -1}, ReadOptions{}); err != nil {
			t.Fatal(err)
		}
		out := map[string]CacheStats{}
		for _, c := range CacheUse(before, tb.env.CacheStats()) {
			out[c.Name] = c
		}
		return out
	}
	first := use()
	for _, name := range []string{"manifests", "files", "deletion vectors"} {
		if c := first[name]; c.Misses == 0 || c.Entries == 0 {
			t.Errorf("first read, %s: %+v", name, c)
		}
	}
	for name, c := range use() {
		if c.Misses > 0 || c.Hits == 0 {
			t.Errorf("second read, %s: %+v", name, c)
		}
	}
	for _, c := range tb.env.CacheStats() {
		if c.Bytes > c.Budget && c.Budget > 0 || c.Bytes < 0 || c.Entries < 0 {
			t.Errorf("%+v", c)
		}
	}
}
