package table

import (
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// forgetMerges empties what is remembered of merges.
func (e *Env) forgetMerges() {
	e.verdicts = newVerdicts(e.verdicts.budget, e.verdicts.least)
	e.folded = fileio.NewLRU[foldedKey, *foldedColumn](e.foldedBytes, nil)
}

// BenchmarkFirstRead reads tables of which nothing is remembered beside compacted ones:
// the ratio is that of CPU time, best of one over best of the other.
func BenchmarkFirstRead(b *testing.B) {
	rows := 500_000
	if n, err := strconv.Atoi(os.Getenv("ENGINE_BENCH_ROWS")); err == nil {
		rows = n
	}
	for _, engine := range []string{"deduplicate", "partial-update", "aggregation", "first-row"} {
		var e *engineBench
		for _, c := range []struct {
			name string
			cols []int
		}{{"all", nil}, {"two", []int{1, 2}}, {"count", []int{}}} {
			b.Run(engine+"/"+c.name, func(b *testing.B) {
				if e == nil {
					e = newEngineBench(b, engine, rows, 5, 0.05)
				}
				best := [3]time.Duration{1 << 62, 1 << 62, 1 << 62}
				b.ResetTimer()
				for b.Loop() {
					e.merged.store.env.forgetMerges()
					best[0] = min(best[0], e.merged.readTime(b, c.cols))
					e.merged.readTime(b, c.cols)
					best[1] = min(best[1], e.merged.readTime(b, c.cols))
					best[2] = min(best[2], e.compacted.readTime(b, c.cols))
				}
				flat := float64(best[2])
				b.ReportMetric(float64(best[0])/flat, "first/flat")
				b.ReportMetric(float64(best[1])/flat, "warm/flat")
				b.ReportMetric(flat/float64(e.rows), "flat-ns/key")
				b.ReportMetric(0, "ns/op")
			})
		}
	}
}
