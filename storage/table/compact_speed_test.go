package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestCompactSpeed merges five runs into the highest level, ours and Java's, in
// turns on copies of one table. It runs when PAIMON_SQL_COMPACT_MB says how many
// megabytes a run has, and prints what it measures: nothing is asserted of time.
func TestCompactSpeed(t *testing.T) {
	mb, _ := strconv.Atoi(os.Getenv("PAIMON_SQL_COMPACT_MB"))
	if mb == 0 {
		t.Skip("needs PAIMON_SQL_COMPACT_MB, megabytes of each of the five runs")
	}
	ctx := context.Background()
	dir := t.TempDir()
	java := oracle.Maybe(t, dir)
	bytes := int64(0)
	paths := map[string]string{}
	rows := mb << 20 / 25
	io := fileio.NewLocal(dir)
	s := tableSchema(t, map[string]string{"bucket": "1", "num-sorted-run.compaction-trigger": "100"}, []string{"id"}, orderFields...)
	bt := newBuilt(t, s)
	bytes = orderRuns(t, bt, 5, rows)
	bt.commit(EnvOptions{})
	for _, name := range []string{"ours", "java"} {
		for _, p := range filesBelow(t, bt.io, bt.dir) {
			raw, err := bt.io.ReadFile(ctx, p)
			if err == nil {
				err = io.Put(ctx, "db.db/"+name+p[len(bt.dir):], raw)
			}
			if err != nil {
				t.Fatal(err)
			}
		}
		paths[name] = "db.db/" + name
	}
	bt.io = nil
	if java != nil { // what it compiles on first use is not measured
		java.Do(t, map[string]any{"cmd": "read", "table": "db.java", "limit": 1})
	}
	env := NewEnv(io, EnvOptions{})
	defer env.Close()
	start, used := time.Now(), cpuTime(t)
	rep, err := Open(env, paths["ours"]).Compact(ctx, CompactOptions{Full: true})
	if err != nil {
		t.Fatal(err)
	}
	wall, cpu := time.Since(start), cpuTime(t)-used
	t.Logf("ours: %d MB in %.1f s, %.1f s of CPU: %.1f MB/s; %d -> %d rows", bytes>>20, wall.Seconds(), cpu.Seconds(), float64(bytes)/wall.Seconds()/1e6, rep.RowsBefore, rep.RowsAfter)
	if java == nil {
		return
	}
	start = time.Now()
	java.Do(t, map[string]any{"cmd": "compact", "table": "db.java", "mode": "full"})
	theirs := time.Since(start)
	t.Logf("Java: %.1f s: %.1f MB/s; ours is %.2f times as fast", theirs.Seconds(), float64(bytes)/theirs.Seconds()/1e6, theirs.Seconds()/wall.Seconds())
}

// TestLookupChangelogSpeed upserts a table with and without changelog-producer =
// lookup, each commit followed by what the table's options make of it. It runs when
// PAIMON_SQL_COMPACT_MB is set.
func TestLookupChangelogSpeed(t *testing.T) {
	if os.Getenv("PAIMON_SQL_COMPACT_MB") == "" {
		t.Skip("needs PAIMON_SQL_COMPACT_MB")
	}
	ctx := context.Background()
	for _, o := range []map[string]string{
		{"changelog-producer": "none"}, {"changelog-producer": "lookup"}, {"deletion-vectors.enabled": "true"},
		{"deletion-vectors.enabled": "true", "changelog-producer": "lookup"},
	} {
		t.Run(fmt.Sprint(o), func(t *testing.T) {
			const rows, upserts, commits = 2_000_000, 50_000, 10
			o["bucket"] = "1"
			io := fileio.NewLocal(t.TempDir())
			s := tableSchema(t, o, []string{"id"}, orderFields...)
			c := newCompactTable(t, io, s, EnvOptions{})
			r := rand.New(rand.NewPCG(1, 2))
			write := func(ids []int64) {
				at, err := c.s.Resolve(ctx, snapshot.Ref{})
				if err != nil {
					t.Fatal(err)
				}
				w, err := c.s.Write(ctx, WriteOptions{At: at})
				if err != nil {
					t.Fatal(err)
				}
				for at := 0; at < len(ids); at += 50_000 {
					part := ids[at:min(at+50_000, len(ids))]
					b := batchOf(s.Fields, nil)
					b.N, b.Cols = len(part), orderColumns(r, s, part)
					if err := w.Write(ctx, b, nil); err != nil {
						t.Fatal(err)
					}
				}
				ch, err := w.Prepare(ctx)
				if err == nil {
					_, err = c.s.Commit(ctx, ch)
				}
				if err != nil {
					t.Fatal(err)
				}
			}
			ids := make([]int64, rows)
			for i := range ids {
				ids[i] = int64(i)
			}
			write(ids)
			c.compact(CompactOptions{Full: true})
			step := func() {
				part := make([]int64, upserts)
				for i := range part {
					part[i] = r.Int64N(rows)
				}
				slices.Sort(part)
				write(slices.Compact(part))
				if o["changelog-producer"] == "none" && o["deletion-vectors.enabled"] == "" {
					c.compact(CompactOptions{}) // what is due
				} else {
					c.compact(CompactOptions{Level0: true})
				}
			}
			step() // fills caches
			start, used := time.Now(), cpuTime(t)
			for range commits {
				step()
			}
			t.Logf("%.0f rows/s, %.2f s of CPU", float64(upserts*commits)/time.Since(start).Seconds(), (cpuTime(t) - used).Seconds())
		})
	}
}
