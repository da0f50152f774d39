package table

import (
	"context"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/commit"
)

// newVectorsBench makes a table of rows keys at the highest level whose upserts came by
// four commits, each of the keys that hit names, and its twin that was compacted.
func newVectorsBench(b *testing.B, rows int, hit func(round, key int) bool) *engineBench {
	ctx := context.Background()
	s := tableSchema(b, map[string]string{"bucket": "1", "deletion-vectors.enabled": "true", "write-buffer-size": "1 gb"}, []string{"k"},
		"k BIGINT", "a DECIMAL(15, 2)", "b INT", "c DATE", "d STRING", "e STRING", "g BIGINT")
	e := &engineBench{merged: newWritten(b, s), compacted: newWritten(b, s), rows: rows}
	for _, w := range []*written{e.merged, e.compacted} {
		for round := range 5 {
			var keys []int64
			for k := range rows {
				if round == 0 || hit(round, k) {
					keys = append(keys, 3*int64(k))
				}
			}
			wr := w.open(nil)
			for at := 0; at < len(keys); at += 1 << 15 {
				part := keys[at:min(at+1<<15, len(keys))]
				if err := wr.Write(ctx, benchBatch(w, part, int64(round)), nil); err != nil {
					b.Fatal(err)
				}
			}
			w.done(wr)
			w.publish()
			w.over = commit.Changes{}
			if _, err := w.store.Compact(ctx, CompactOptions{Full: round == 0 || w == e.compacted && round == 4, Level0: true}); err != nil {
				b.Fatal(err)
			}
		}
	}
	return e
}

// BenchmarkVectors reads a table whose upserted rows are marked in deletion vectors
// beside its compacted twin: the ratio is that of CPU time, best of one over best of
// the other. rows/row is how many rows lie in the files for each that lives, which is
// what the ratio would be if a deleted row cost as much as another. ENGINE_BENCH_ROWS
// sets the number of keys.
func BenchmarkVectors(b *testing.B) {
	rows := 500_000
	if n, err := strconv.Atoi(os.Getenv("ENGINE_BENCH_ROWS")); err == nil {
		rows = n
	}
	r := rand.New(rand.NewPCG(1, 1))
	for _, shape := range []struct {
		name string
		hit  func(round, key int) bool
	}{
		{"scattered 20", func(int, int) bool { return r.IntN(20) == 0 }},
		{"scattered 1", func(int, int) bool { return r.IntN(400) == 0 }},
		{"scattered 60", func(int, int) bool { return r.IntN(5) == 0 }},
		{"ranges 20", func(round, k int) bool { return k>>10%20 == round }},
	} {
		var e *engineBench
		for _, c := range []struct {
			name string
			cols []int
		}{{"all", nil}, {"sql", []int{1, 4, 5, 6}}, {"int", []int{2}}, {"text", []int{5}}} {
			b.Run(shape.name+"/"+c.name, func(b *testing.B) {
				if e == nil {
					e = newVectorsBench(b, rows, shape.hit)
				}
				best := [2]time.Duration{1 << 62, 1 << 62}
				b.ResetTimer()
				for b.Loop() {
					for i, w := range []*written{e.merged, e.compacted} {
						best[i] = min(best[i], w.readTime(b, c.cols))
					}
				}
				b.ReportMetric(float64(e.merged.stored(b))/float64(rows), "rows/row")
				b.ReportMetric(float64(best[0])/float64(best[1]), "ratio")
				b.ReportMetric(float64(best[0].Nanoseconds())/float64(e.rows), "vectors-ns/key")
				b.ReportMetric(float64(best[1].Nanoseconds())/float64(e.rows), "compacted-ns/key")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}

// stored counts the rows of the files that a read opens.
func (w *written) stored(b *testing.B) int64 {
	plan, err := w.store.Plan(context.Background(), Scan{Limit: -1})
	if err != nil {
		b.Fatal(err)
	}
	files := map[string]int64{}
	for _, sp := range plan.Splits {
		for _, f := range sp.Files {
			files[f.Meta.Name] = f.Meta.Rows
		}
	}
	n := int64(0)
	for _, r := range files {
		n += r
	}
	return n
}
