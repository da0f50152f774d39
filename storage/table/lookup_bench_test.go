package table

import (
	"context"
	"math/rand/v2"
	"os"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format/parquet"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// lookupRows is the size of the benchmarks' table: LOOKUP_ROWS, or half a million.
func lookupRows() int {
	if n, err := strconv.Atoi(os.Getenv("LOOKUP_ROWS")); err == nil {
		return n
	}
	return 500_000
}

// lookupTable is a compacted table with zeros files of level 0, of 2,000 rows each,
// on the local disk.
func lookupBench(b *testing.B, zeros int, o EnvOptions) (*FileStore, int) {
	n := lookupRows()
	s := tableSchema(b, map[string]string{"bucket": "1", "target-file-size": "1 GB"}, []string{"id"}, orderFields...)
	bt := newBuilt(b, s)
	r := rand.New(rand.NewPCG(1, 2))
	ctx := context.Background()
	seq := int64(0)
	put := func(level int32, ids []int64) {
		w, err := datafile.New(datafile.Options{IO: bt.io, Dir: bt.dir + "/bucket-0/", Format: parquet.Format{}, Schema: s, Table: schema.Options(s.Options), RollBytes: 1 << 40, Level: level})
		if err != nil {
			b.Fatal(err)
		}
		for at := 0; at < len(ids); at += 1 << 15 {
			part := ids[at:min(at+1<<15, len(ids))]
			seqs, kinds := make([]int64, len(part)), make([]int8, len(part))
			for i := range seqs {
				seqs[i] = seq
				seq++
			}
			if err := w.Write(ctx, orderColumns(r, s, part), len(part), seqs, kinds); err != nil {
				b.Fatal(err)
			}
		}
		files, err := w.Close(ctx)
		if err != nil {
			b.Fatal(err)
		}
		for _, f := range files {
			bt.entries = append(bt.entries, manifest.Entry{Partition: make([]byte, 8), TotalBuckets: 1, File: f})
		}
	}
	ids := make([]int64, n)
	for i := range ids {
		ids[i] = int64(2 * i)
	}
	put(5, ids)
	for range zeros {
		ids := make([]int64, 2000)
		for i := range ids {
			ids[i] = 2 * r.Int64N(int64(n))
		}
		slices.Sort(ids)
		put(0, slices.Compact(ids))
	}
	bt.commit(EnvOptions{})
	local := fileio.NewLocal(b.TempDir())
	for _, p := range filesBelow(b, bt.io, bt.dir) {
		raw, err := bt.io.ReadFile(ctx, p)
		if err == nil {
			err = local.Put(ctx, p, raw)
		}
		if err != nil {
			b.Fatal(err)
		}
	}
	env := NewEnv(local, o)
	b.Cleanup(env.Close)
	return Open(env, bt.dir), n
}

// BenchmarkGet looks single keys up in a table with three files of level 0: with
// everything in memory, with blocks on the local disk, and reading the data file.
func BenchmarkGet(b *testing.B) {
	ctx := context.Background()
	for _, c := range []struct {
		name string
		o    lookup.Options
		warm bool
	}{
		{"memory", lookup.Options{MemoryBytes: 4 << 30}, true},
		{"disk", lookup.Options{MemoryBytes: int64(lookupRows()) * 8, Dir: localDir(b)}, true},
		{"disk-lz4", lookup.Options{MemoryBytes: int64(lookupRows()) * 8, Dir: localDir(b), Compress: true}, true},
		{"cold", lookup.Options{MemoryBytes: 1 << 20}, false},
	} {
		t, n := lookupBench(b, 3, EnvOptions{Lookup: c.o})
		at, err := t.Resolve(ctx, Scan{}.At)
		if err != nil {
			b.Fatal(err)
		}
		l := Lookup{At: at, Columns: []int{0, 1, 2, 3, 4, 5}}
		p, err := t.lookupPlan(ctx, &l)
		if err != nil {
			b.Fatal(err)
		}
		if c.warm {
			for _, f := range p.parts[string(noPartition)].list[0].files {
				start := time.Now()
				if _, err := f.entry.Build(ctx, true); err != nil {
					b.Fatal(err)
				}
				if rows := f.entry.Rows(); rows > tinyRows {
					st := t.Env().LookupStats()
					b.Logf("%s: built %d rows in %v, %.0f ns/row, %.0f B/row in memory, %.0f on disk", c.name, rows, time.Since(start),
						float64(time.Since(start))/float64(rows), float64(st.MemoryBytes)/float64(rows), float64(st.DiskBytes)/float64(rows))
				}
			}
		}
		for _, m := range []struct {
			name string
			cols []int
			miss int64
		}{{"all", []int{0, 1, 2, 3, 4, 5}, 0}, {"one", []int{1}, 0}, {"none", []int{}, 0}, {"miss", []int{1}, 1}} {
			if !c.warm && m.name != "all" {
				continue
			}
			l.Columns = m.cols
			r := rand.New(rand.NewPCG(5, 5))
			b.Run(c.name+"/"+m.name, func(b *testing.B) {
				b.ReportAllocs()
				key := make([]types.Datum, 1)
				start := cpuTime(b)
				for b.Loop() {
					key[0] = 2*r.Int64N(int64(n)) + m.miss
					l.Keys = []arrow.Array{vec.FromDatums(types.Of(types.Int8), key)}
					x, _, err := t.Get(ctx, l)
					if err != nil || x.N != int(1-m.miss) {
						b.Fatal(x, err)
					}
				}
				b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N), "cpu-ns/op")
			})
		}
	}
}

// BenchmarkGetBatch looks up 10,000 keys at once.
func BenchmarkGetBatch(b *testing.B) {
	ctx := context.Background()
	for _, warm := range []bool{true, false} {
		o := lookup.Options{MemoryBytes: 4 << 30}
		if !warm {
			o.MemoryBytes = 1 << 20
		}
		t, n := lookupBench(b, 3, EnvOptions{Lookup: o})
		at, err := t.Resolve(ctx, Scan{}.At)
		if err != nil {
			b.Fatal(err)
		}
		l := Lookup{At: at, Columns: []int{0, 1, 2, 3, 4, 5}}
		p, err := t.lookupPlan(ctx, &l)
		if err != nil {
			b.Fatal(err)
		}
		name := "cold"
		if warm {
			name = "memory"
			for _, f := range p.parts[string(noPartition)].list[0].files {
				if _, err := f.entry.Build(ctx, true); err != nil {
					b.Fatal(err)
				}
			}
		}
		r := rand.New(rand.NewPCG(5, 5))
		const batch = 10_000
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			start := cpuTime(b)
			for b.Loop() {
				ids := make([]int64, batch)
				for i := range ids {
					ids[i] = 2 * r.Int64N(int64(n))
				}
				l.Keys = []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int64, ids, nil)}
				x, _, err := t.Get(ctx, l)
				if err != nil || x.N != batch {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(cpuTime(b)-start)/float64(b.N)/batch, "cpu-ns/key")
		})
	}
}
