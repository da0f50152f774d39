package engine

import (
	"context"
	"os"
	"path/filepath"
	"syscall"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// BenchmarkLookup is one prepared lookup by primary key, Bind to Sync, without the
// protocol.
func BenchmarkLookup(b *testing.B) {
	ctx := context.Background()
	warehouse := b.TempDir()
	e, err := Open(ctx, Config{Warehouse: warehouse, AnyDatabase: true, MaxMemory: 1 << 30, TempDir: b.TempDir()})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	s := testSession(b, e)
	for _, sql := range []string{
		"CREATE TABLE t (id bigint PRIMARY KEY, v bigint, s text) WITH (bucket = 1)",
		"INSERT INTO t SELECT g, g * 2, 'row ' || g FROM generate_series(1, 1000) g",
		"CALL sys.compact('t')",
	} {
		if err := s.Query(ctx, sql, discard{}); err != nil {
			b.Fatal(err)
		}
	}
	// As if it had been left alone for an hour: see catalog.Watch.
	old := time.Now().Add(-time.Hour)
	for _, dir := range []string{"schema", "snapshot"} {
		if err := os.Chtimes(filepath.Join(warehouse, "default.db", "t", dir), old, old); err != nil {
			b.Fatal(err)
		}
	}
	for _, sql := range []string{"SELECT 1", "SELECT id, v, s FROM t WHERE id = $1", "UPDATE t SET v = v + 1 WHERE id = $1"} {
		b.Run(sql, func(b *testing.B) {
			p, err := s.Prepare(ctx, "", sql, nil)
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Sync(ctx, false, discard{}); err != nil {
				b.Fatal(err)
			}
			b.ReportAllocs()
			began := cpuTime(b)
			n := int64(0)
			var args []types.Datum
			for b.Loop() {
				if n++; len(p.Params) > 0 {
					args = []types.Datum{n%1000 + 1}
				}
				if err := runPrepared(ctx, s, p, args...); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-began)/float64(b.N), "cpu-ns/op")
		})
	}
}

// cpuTime is what the process has used of the processors: on a busy machine it says
// more than the clock.
func cpuTime(b *testing.B) time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		b.Fatal(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
