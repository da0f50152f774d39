package table

import (
	"context"
	"math/rand"
	"runtime"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// saleBatches are rows as applications write them: a key, a number of few bits,
// an amount, a status of four words, a sentence, a time.
func saleBatches(s *schema.Table, rows, step int, key func(i int) int64) []*vec.Batch {
	r := rand.New(rand.NewSource(7))
	words := []string{"carefully", "final", "deposits", "nag", "blithely", "about", "the", "furiously", "ironic", "packages", "among", "quick", "accounts", "sleep"}
	status := []string{"OPEN", "PAID", "SHIPPED", "RETURNED"}
	var out []*vec.Batch
	for at := 0; at < rows; at += step {
		n := min(step, rows-at)
		id, cust, amount, updated := make([]int64, n), make([]int32, n), make([]decimal128.Num, n), make([]int64, n)
		so, no := make([]int32, n+1), make([]int32, n+1)
		var sd, nd []byte
		for i := range n {
			id[i], cust[i] = key(at+i), int32(r.Intn(150000))
			amount[i] = decimal128.FromI64(int64(100 + r.Intn(10_000_000)))
			updated[i] = 1_767_225_600_000_000 + r.Int63n(1e12)
			sd = append(sd, status[r.Intn(4)]...)
			for k := range 6 {
				if k > 0 {
					nd = append(nd, ' ')
				}
				nd = append(nd, words[r.Intn(len(words))]...)
			}
			so[i+1], no[i+1] = int32(len(sd)), int32(len(nd))
		}
		out = append(out, &vec.Batch{Schema: s.Fields, N: n, Cols: []arrow.Array{
			vec.Make(arrow.PrimitiveTypes.Int64, id, nil), vec.Make(arrow.PrimitiveTypes.Int32, cust, nil),
			vec.MakeDec128(s.Fields[2].Type.Arrow(), amount, nil), vec.MakeBytes(arrow.BinaryTypes.String, so, sd, nil),
			vec.MakeBytes(arrow.BinaryTypes.String, no, nd, nil), vec.Make(types.ArrowTimestampUS, updated, nil),
		}})
	}
	return out
}

var saleColumns = []string{"id BIGINT", "customer INT", "amount DECIMAL(15,2)", "status STRING", "note STRING", "updated TIMESTAMP(6)"}

// BenchmarkTableWrite writes a million rows through one writer: upserts of random
// keys and rows of growing ones, into a key table, and rows into an append table.
func BenchmarkTableWrite(b *testing.B) {
	const rows = 1_000_000
	r := rand.New(rand.NewSource(3))
	grow := func(i int) int64 { return int64(i) }
	for _, c := range []struct {
		name string
		pk   []string
		opts map[string]string
		key  func(i int) int64
		step int
	}{
		{"upsert", []string{"id"}, map[string]string{"bucket": "4"}, func(int) int64 { return 1 + r.Int63n(500_000) }, 8192},
		{"upsert one bucket", []string{"id"}, map[string]string{"bucket": "1"}, func(int) int64 { return 1 + r.Int63n(500_000) }, 8192},
		{"upsert thin", []string{"id"}, map[string]string{"bucket": "4", "data-file.thin-mode": "true"}, func(int) int64 { return 1 + r.Int63n(500_000) }, 8192},
		{"growing keys", []string{"id"}, map[string]string{"bucket": "4"}, grow, 8192},
		{"append", nil, nil, grow, 8192},
		{"append buckets", nil, map[string]string{"bucket": "4", "bucket-key": "customer"}, grow, 8192},
	} {
		s := tableSchema(b, c.opts, c.pk, saleColumns...)
		batches := saleBatches(s, rows, c.step, c.key)
		b.Run(c.name, func(b *testing.B) {
			raw, err := schema.Encode(s)
			if err != nil {
				b.Fatal(err)
			}
			io := fileio.NewLocal(b.TempDir())
			if err := io.Put(context.Background(), "db.db/t/schema/schema-0", raw); err != nil {
				b.Fatal(err)
			}
			env := NewEnv(io, EnvOptions{})
			defer env.Close()
			store := Open(env, "db.db/t")
			var size int64
			runtime.GC()
			cpu := cpuTime(b)
			for b.Loop() {
				size = writeBatches(b, store, batches)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
			b.ReportMetric(float64(cpuTime(b)-cpu)/float64(b.N)/rows, "cpu-ns/row")
			b.ReportMetric(float64(size)/rows, "B/row")
		})
	}
}

func writeBatches(b *testing.B, store *FileStore, batches []*vec.Batch) (size int64) {
	ctx := context.Background()
	w, err := store.Write(ctx, WriteOptions{})
	if err != nil {
		b.Fatal(err)
	}
	for _, x := range batches {
		if err := w.Write(ctx, x, nil); err != nil {
			b.Fatal(err)
		}
	}
	c, err := w.Prepare(ctx)
	if err != nil {
		b.Fatal(err)
	}
	for _, e := range c.Files {
		size += e.File.Size
	}
	b.StopTimer()
	if err := store.Discard(ctx, c); err != nil {
		b.Fatal(err)
	}
	b.StartTimer()
	return size
}

// BenchmarkTableWriteSmall writes a few rows per writer, as single statements do.
func BenchmarkTableWriteSmall(b *testing.B) {
	for _, pk := range [][]string{nil, {"id"}} {
		name, opts := "append", map[string]string{}
		if pk != nil {
			name, opts["bucket"] = "key", "4"
		}
		w := newWritten(b, tableSchema(b, opts, pk, saleColumns...))
		batches := saleBatches(w.sch, 10, 10, func(i int) int64 { return int64(i) })
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				writeBatches(b, w.store, batches)
			}
		})
	}
}
