package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/datafile"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format/parquet"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

var benchWords = []string{"carefully", "final", "deposits", "nag", "blithely", "about", "the", "furiously", "ironic", "packages", "among", "quick", "accounts", "sleep"}

// orderColumns makes n rows of the orders table for ascending ids.
func orderColumns(r *rand.Rand, s *schema.Table, ids []int64) []arrow.Array {
	n := len(ids)
	customer, amount, updated := make([]int32, n), make([]int64, 2*n), make([]int64, n)
	status := []string{"OPEN", "PAID", "SHIPPED", "RETURNED"}
	var sOff, nOff = make([]int32, n+1), make([]int32, n+1)
	var sData, nData []byte
	for i := range n {
		customer[i], updated[i] = int32(r.IntN(150_000)), r.Int64N(1_000_000_000_000)
		amount[2*i] = r.Int64N(10_000_000)
		sData = append(sData, status[r.IntN(4)]...)
		sOff[i+1] = int32(len(sData))
		for w := range 6 {
			if w > 0 {
				nData = append(nData, ' ')
			}
			nData = append(nData, benchWords[r.IntN(len(benchWords))]...)
		}
		nOff[i+1] = int32(len(nData))
	}
	t := func(c int) arrow.DataType { return s.Fields[c].Type.Arrow() }
	return []arrow.Array{
		vec.Make(t(0), ids, nil), vec.Make(t(1), customer, nil), vec.MakeFixedBytes(t(2), n, vec.Bytes(amount), nil),
		vec.MakeBytes(t(3), sOff, sData, nil), vec.MakeBytes(t(4), nOff, nData, nil), vec.Make(t(5), updated, nil),
	}
}

var orderFields = []string{"id BIGINT", "customer INT", "amount DECIMAL(15, 2)", "status STRING", "note STRING", "updated TIMESTAMP(6)"}

// orderRuns writes level-0 runs of random keys into b.
func orderRuns(tb testing.TB, b *built, runs, rows int) (bytes int64) {
	r := rand.New(rand.NewPCG(1, 2))
	ctx := context.Background()
	seq := int64(0)
	for range runs {
		ids := make([]int64, rows)
		for i := range ids {
			ids[i] = 1 + r.Int64N(int64(runs*rows)/2)
		}
		slices.Sort(ids)
		ids = slices.Compact(ids)
		w, err := datafile.New(datafile.Options{IO: b.io, Dir: b.dir + "/bucket-0/", Format: parquet.Format{}, Schema: b.sch, Table: schema.Options(b.sch.Options), RollBytes: 1 << 40})
		if err != nil {
			tb.Fatal(err)
		}
		for at := 0; at < len(ids); at += 1 << 15 {
			part := ids[at:min(at+1<<15, len(ids))]
			seqs, kinds := make([]int64, len(part)), make([]int8, len(part))
			for i := range seqs {
				seqs[i] = seq
				seq++
			}
			if err := w.Write(ctx, orderColumns(r, b.sch, part), len(part), seqs, kinds); err != nil {
				tb.Fatal(err)
			}
		}
		files, err := w.Close(ctx)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range files {
			b.entries = append(b.entries, manifest.Entry{Partition: make([]byte, 8), TotalBuckets: 1, File: f})
			bytes += f.Size
		}
	}
	return bytes
}

// BenchmarkCompactFull merges five overlapping runs of half updates into the
// highest level: reading, merging and writing on one core. The rate is of rows
// read.
func BenchmarkCompactFull(b *testing.B) {
	for _, c := range []struct {
		name  string
		codec string
	}{{"zstd", "zstd"}, {"none", "none"}} {
		b.Run(c.name, func(b *testing.B) {
			s := tableSchema(b, map[string]string{"bucket": "1", "file.compression": c.codec}, []string{"id"}, orderFields...)
			bt := newBuilt(b, s)
			bytes := orderRuns(b, bt, 5, 1_000_000)
			bt.commit(EnvOptions{})
			ctx := context.Background()
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
			env := NewEnv(local, EnvOptions{})
			defer env.Close()
			t := Open(env, bt.dir)
			b.SetBytes(bytes)
			var in int64
			start := cpuTime(b)
			for b.Loop() {
				in = compactOnce(b, ctx, t)
			}
			used := cpuTime(b) - start
			b.ReportMetric(float64(in)*float64(b.N)/b.Elapsed().Seconds()/1e6, "Mrow/s")
			b.ReportMetric(float64(in)*float64(b.N)/used.Seconds()/1e6, "Mrow/s-core")
			b.ReportMetric(float64(used.Nanoseconds())/float64(in)/float64(b.N), "cpu-ns/row")
		})
	}
}

// cpuTime is what the process has used of its cores: other processes' load does
// not count.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}

// compactOnce does all jobs of a full compaction one after the other without
// publishing, and returns the rows read.
func compactOnce(tb testing.TB, ctx context.Context, t *FileStore) (rows int64) {
	c, err := t.newCompaction(ctx, CompactOptions{Full: true})
	if err != nil {
		tb.Fatal(err)
	}
	jobs, err := c.jobs(ctx, everything(tb, t))
	if err != nil || len(jobs) == 0 {
		tb.Fatal(fmt.Sprint(len(jobs), " jobs: "), err)
	}
	for _, j := range jobs {
		out, err := c.do(ctx, j)
		if err != nil {
			tb.Fatal(err)
		}
		rows += out.rowsIn
		c.remove(ctx, out)
	}
	return rows
}

// BenchmarkNeedsCompaction asks about a bucket after each of many commits to a
// table with many files: what a server does after every commit.
func BenchmarkNeedsCompaction(b *testing.B) {
	for _, files := range []int{100, 20_000} {
		b.Run(fmt.Sprint(files, "files"), func(b *testing.B) {
			ctx := context.Background()
			w := newWork(b, fileio.NewMem(), tableSchema(b, map[string]string{"bucket": "64"}, []string{"k"}, "k BIGINT", "v STRING"))
			s := w.open()
			ch := commit.Changes{Kind: commit.Append}
			for i := range files {
				e := w.fake(make([]byte, 8), int32(i%64), int64(i), int64(i))
				e.TotalBuckets, e.File.Level = 64, 0
				ch.Files = append(ch.Files, e)
			}
			mustCommit(b, s, ch)
			if _, err := s.NeedsCompaction(ctx, snapshot.Ref{}, make([]byte, 8), 1); err != nil {
				b.Fatal(err)
			}
			n := int64(0)
			for b.Loop() {
				b.StopTimer()
				e := w.fake(make([]byte, 8), 1, int64(files)+n, int64(files)+n)
				e.TotalBuckets = 64
				mustCommit(b, s, commit.Changes{Kind: commit.Append, Files: []manifest.Entry{e}})
				n++
				at, err := s.Resolve(ctx, snapshot.Ref{}) // its listings are not what is timed
				if err != nil {
					b.Fatal(err)
				}
				b.StartTimer()
				if _, err := s.NeedsCompaction(ctx, at, make([]byte, 8), 1); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
