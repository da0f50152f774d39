package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
)

// engineBench are tables of one content: read by merging runs, and as one run.
type engineBench struct {
	merged, compacted *written
	rows              int
}

var engineBenchOptions = map[string]map[string]string{
	"deduplicate": {},
	"partial-update": {
		"fields.g.sequence-group": "a,b",
	},
	"aggregation": {
		"fields.a.aggregate-function": "sum", "fields.b.aggregate-function": "max", "fields.e.aggregate-function": "last_value",
	},
	"first-row": {},
}

// newEngineBench makes a table of rows keys in a base run and runs newer ones of
// share of the keys each.
func newEngineBench(b *testing.B, engine string, rows, runs int, share float64) *engineBench {
	opts := map[string]string{"bucket": "1", "merge-engine": engine, "write-buffer-size": "1 gb"}
	for k, v := range engineBenchOptions[engine] {
		opts[k] = v
	}
	s := tableSchema(b, opts, []string{"k"}, "k BIGINT", "a DECIMAL(15, 2)", "b INT", "c DATE", "d STRING", "e STRING", "g BIGINT")
	e := &engineBench{merged: newWritten(b, s), compacted: newWritten(b, s), rows: rows}
	r := rand.New(rand.NewPCG(1, 1))
	for run := range runs {
		var keys []int64
		for k := range int64(rows) {
			if run == 0 && share < 1 || r.Float64() < share {
				keys = append(keys, 3*k)
			}
		}
		wr := e.merged.open(nil)
		for at := 0; at < len(keys); at += 1 << 15 {
			part := keys[at:min(at+1<<15, len(keys))]
			if err := wr.Write(context.Background(), benchBatch(e.merged, part, int64(run)), nil); err != nil {
				b.Fatal(err)
			}
		}
		e.merged.done(wr)
		e.merged.publish()
		e.merged.over = commit.Changes{}
	}
	wr := e.compacted.open(nil)
	e.merged.each(b, nil, func(x *vec.Batch) {
		if err := wr.Write(context.Background(), vec.Compact(x), nil); err != nil {
			b.Fatal(err)
		}
	})
	e.compacted.done(wr)
	e.compacted.publish()
	return e
}

func benchBatch(w *written, keys []int64, run int64) *vec.Batch {
	n := len(keys)
	dec := make([]types.Datum, n)
	d := make([]types.Datum, n)
	text := make([]types.Datum, n)
	b, c, g := make([]int32, n), make([]int32, n), make([]int64, n)
	for i, k := range keys {
		dec[i] = decimalOf(nil, fmt.Sprintf("%d.%02d", k%100000, run))
		b[i], c[i], g[i] = int32(k%50), int32(8000+k%2500), run
		d[i] = [3]string{"A", "N", "R"}[k%3]
		text[i] = fmt.Sprintf("comment %d of row %d", run, k)
	}
	f := w.sch.Fields
	return &vec.Batch{Schema: f, N: n, Cols: []arrow.Array{
		vec.Make(arrow.PrimitiveTypes.Int64, keys, nil), vec.FromDatums(f[1].Type, dec), vec.Make(arrow.PrimitiveTypes.Int32, b, nil),
		vec.Make(f[3].Type.Arrow(), c, nil), vec.FromDatums(f[4].Type, d), vec.FromDatums(f[5].Type, text), vec.Make(arrow.PrimitiveTypes.Int64, g, nil),
	}}
}

// each reads a table by one reader after the other.
func (w *written) each(b testing.TB, cols []int, f func(*vec.Batch)) {
	ctx := context.Background()
	s := Scan{Columns: cols, Limit: -1}
	plan, err := w.store.Plan(ctx, s)
	if err != nil {
		b.Fatal(err)
	}
	for _, sp := range plan.Splits {
		rd, err := w.store.Read(ctx, s, sp, ReadOptions{Selections: true})
		if err != nil {
			b.Fatal(err)
		}
		for {
			x, err := rd.Next(ctx)
			if err != nil {
				b.Fatal(err)
			}
			if x == nil {
				break
			}
			f(x)
		}
		_ = rd.Close()
	}
}

func (w *written) readTime(b testing.TB, cols []int) time.Duration {
	start := cpuOf(b)
	w.each(b, cols, func(*vec.Batch) {})
	return cpuOf(b) - start
}

// cpuOf is what the process has computed so far: others on the machine do not
// change the ratio of two of them.
func cpuOf(b testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		b.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// BenchmarkEngines compares merging reads with reads of the compacted table, side by
// side, for every engine: the ratio is the best time of one over the best of the
// other. ENGINE_BENCH_ROWS sets the number of keys.
func BenchmarkEngines(b *testing.B) {
	rows := 200_000
	if n, err := strconv.Atoi(os.Getenv("ENGINE_BENCH_ROWS")); err == nil {
		rows = n
	}
	for _, shape := range []struct {
		name  string
		share float64
	}{{"1+4x5%", 0.05}, {"5 equal", 1}} {
		for _, engine := range []string{"deduplicate", "partial-update", "aggregation", "first-row"} {
			var e *engineBench
			for _, c := range []struct {
				name string
				cols []int
			}{{"all", nil}, {"two", []int{1, 2}}, {"count", []int{}}} {
				b.Run(shape.name+"/"+engine+"/"+c.name, func(b *testing.B) {
					if e == nil {
						e = newEngineBench(b, engine, rows, 5, shape.share)
					}
					best := [2]time.Duration{1 << 62, 1 << 62}
					b.ResetTimer()
					for b.Loop() {
						for i, w := range []*written{e.merged, e.compacted} {
							best[i] = min(best[i], w.readTime(b, c.cols))
						}
					}
					b.ReportMetric(float64(best[0])/float64(best[1]), "ratio")
					b.ReportMetric(float64(best[0].Nanoseconds())/float64(e.rows), "merged-ns/key")
					b.ReportMetric(float64(best[1].Nanoseconds())/float64(e.rows), "compacted-ns/key")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}
