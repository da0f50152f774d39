package engine

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// BenchmarkUpsert measures single-row upserts of many sessions at once, each a
// prepared statement and a commit of its own, on the local disk. ns/op is per row.
func BenchmarkUpsert(b *testing.B) {
	for _, sessions := range []int{1, 8, 32, 128} {
		for _, m := range []string{"on", "off"} {
			b.Run(fmt.Sprintf("sessions=%d/maintenance=%s", sessions, m), func(b *testing.B) { benchUpsert(b, sessions, m) })
		}
	}
}

func benchUpsert(b *testing.B, sessions int, maintenance string) {
	ctx := context.Background()
	e, err := Open(ctx, Config{Warehouse: b.TempDir(), AnyDatabase: true, MaxMemory: 1 << 30, TempDir: b.TempDir(), MaxConnections: sessions + 8,
		Settings: map[string]string{"paimon.maintenance": maintenance}})
	if err != nil {
		b.Fatal(err)
	}
	defer e.Close()
	keyTable(b, testSession(b, e), "t")
	var id atomic.Int64
	var wg sync.WaitGroup
	b.ResetTimer()
	for range sessions {
		s := testSession(b, e)
		p, err := s.Prepare(ctx, "p", "INSERT INTO t VALUES ($1, $2, $3) ON CONFLICT (id) DO UPDATE SET v = excluded.v, s = excluded.s", nil)
		if err != nil {
			b.Fatal(err)
		}
		if err := s.Sync(ctx, false, discard{}); err != nil {
			b.Fatal(err)
		}
		wg.Go(func() {
			for {
				n := id.Add(1)
				if n > int64(b.N) {
					return
				}
				if err := runPrepared(ctx, s, p, n, n*7, "some text"); err != nil {
					b.Error(err)
					return
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64(b.N)/b.Elapsed().Seconds(), "rows/s")
	b.ReportMetric(float64(e.stats.members.Value())/float64(max(e.stats.groups.Value(), 1)), "rows/commit")
}

// runPrepared is Bind, Execute and Sync.
func runPrepared(ctx context.Context, s *Session, p *Prepared, args ...types.Datum) error {
	pt, err := s.Bind(ctx, "", p, args, nil)
	if err == nil {
		_, err = s.Run(ctx, pt, 0, discard{})
	}
	if serr := s.Sync(ctx, err != nil, discard{}); err == nil {
		err = serr
	}
	return err
}

// BenchmarkChange measures one session's prepared statements on a table of 10,000
// rows in a block that is never committed: what a statement costs without commits.
func BenchmarkChange(b *testing.B) {
	ctx := context.Background()
	for _, x := range []struct{ name, sql string }{
		{"upsert", "INSERT INTO t VALUES ($1, $2, 'x') ON CONFLICT (id) DO UPDATE SET v = excluded.v, s = excluded.s"},
		{"update", "UPDATE t SET v = v + $2 WHERE id = $1"},
		{"do update", "INSERT INTO t VALUES ($1, $2, 'x') ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v"},
		{"delete", "DELETE FROM t WHERE id = $1 AND v <> $2"},
	} {
		b.Run(x.name, func(b *testing.B) {
			e := writeEngine(b, nil)
			s := testSession(b, e)
			keyTable(b, s, "t")
			query(s, "INSERT INTO t SELECT g, g, 'x' FROM generate_series(1, 10000) AS g")
			p, err := s.Prepare(ctx, "p", x.sql, []types.Type{types.Of(types.Int8), types.Of(types.Int8)})
			if err != nil {
				b.Fatal(err)
			}
			if err := s.Sync(ctx, false, discard{}); err != nil {
				b.Fatal(err)
			}
			n := int64(0)
			b.ReportAllocs()
			for b.Loop() {
				n++
				if n%16 == 1 { // a short block: what it has written is looked through
					query(s, "ROLLBACK")
					query(s, "BEGIN")
				}
				pt, err := s.Bind(ctx, "", p, []types.Datum{n % 10000, n}, nil)
				if err == nil {
					_, err = s.Run(ctx, pt, 0, discard{})
				}
				if err != nil {
					b.Fatal(err)
				}
			}
			query(s, "ROLLBACK")
		})
	}
}
