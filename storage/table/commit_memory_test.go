package table

import (
	"context"
	"runtime"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// TestCommitsAreForgotten commits and expires for long: what a commit took must not
// stay in memory once its snapshot is gone.
func TestCommitsAreForgotten(t *testing.T) {
	w := newWork(t, fileio.NewLocal(t.TempDir()), appendTable(t, nil))
	s := w.open()
	ctx := context.Background()
	var prev *manifest.Entry
	base := int64(0)
	var heap [3]uint64
	for round := range heap {
		for range 300 {
			e := w.fake(make([]byte, 8), 0, 0, 9)
			c := commit.Changes{Kind: commit.Compact, Base: base, Files: []manifest.Entry{e}}
			if prev != nil {
				d := *prev
				d.Kind = manifest.Delete
				c.Files = append(c.Files, d)
			}
			var err error
			if base, err = s.Commit(ctx, c); err != nil {
				t.Fatal(err)
			}
			prev = &e
		}
		if _, err := s.Expire(ctx, ExpireOptions{RetainMax: 5, RetainMin: 1, OlderThan: time.Now(), MaxDeletes: 1000}); err != nil {
			t.Fatal(err)
		}
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		heap[round] = m.HeapAlloc
	}
	if grown := int64(heap[2]) - int64(heap[0]); grown > 2<<20 {
		t.Errorf("600 commits grew the heap by %d bytes: %v", grown, heap)
	}
	if n := s.env.Manifests.Used(); n > 1<<20 {
		t.Errorf("%d bytes of manifests are cached for %d snapshots", n, 5)
	}
}
