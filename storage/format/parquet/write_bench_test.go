package parquet

import (
	"fmt"
	"io"
	"math/rand"
	"syscall"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// orders is a table as applications write it: a key, a number of few bits, an
// amount, a status of four words, a sentence, a time.
func orders(rows int) (types.Schema, []arrow.Array) {
	r := rand.New(rand.NewSource(7))
	words := []string{"carefully", "final", "deposits", "nag", "blithely", "about", "the", "furiously", "ironic", "packages", "among", "quick", "accounts", "sleep"}
	status := []string{"OPEN", "PAID", "SHIPPED", "RETURNED"}
	s := types.Schema{
		{ID: 0, Name: "id", Type: types.Of(types.Int8).WithNotNull(true)}, {ID: 1, Name: "customer", Type: types.Of(types.Int4)},
		{ID: 2, Name: "amount", Type: types.NumericOf(15, 2)}, {ID: 3, Name: "status", Type: types.Of(types.Text)},
		{ID: 4, Name: "note", Type: types.Of(types.Text)}, {ID: 5, Name: "updated", Type: types.Of(types.Timestamp)},
	}
	id, cust, amount, updated := make([]int64, rows), make([]int32, rows), make([]decimal128.Num, rows), make([]int64, rows)
	text := func(fn func(b []byte) []byte) arrow.Array {
		offs, data := make([]int32, 1, rows+1), []byte{}
		for range rows {
			data = fn(data)
			offs = append(offs, int32(len(data)))
		}
		return vec.MakeBytes(arrow.BinaryTypes.String, offs, data, nil)
	}
	for i := range rows {
		id[i], cust[i] = int64(i), int32(r.Intn(150000))
		amount[i] = decimal128.FromI64(int64(100 + r.Intn(10_000_000)))
		updated[i] = 1_767_225_600_000_000 + r.Int63n(1e12)
	}
	return s, []arrow.Array{
		vec.Make(arrow.PrimitiveTypes.Int64, id, nil), vec.Make(arrow.PrimitiveTypes.Int32, cust, nil),
		vec.MakeDec128(s[2].Type.Arrow(), amount, nil),
		text(func(b []byte) []byte { return append(b, status[r.Intn(4)]...) }),
		text(func(b []byte) []byte {
			for k := range 6 {
				if k > 0 {
					b = append(b, ' ')
				}
				b = append(b, words[r.Intn(len(words))]...)
			}
			return b
		}),
		vec.Make(types.ArrowTimestampUS, updated, nil),
	}
}

// BenchmarkWrite writes a file of half a million rows in batches of 8,192.
func BenchmarkWrite(b *testing.B) {
	const rows, step = 500_000, 8192
	s, cols := orders(rows)
	run := func(b *testing.B, s types.Schema, cols []arrow.Array, codec string) {
		var size int64
		cpu := cpuTime()
		for b.Loop() {
			size = writeAll(b, s, cols, rows, step, codec)
		}
		b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/rows, "cpu-ns/row")
		b.ReportMetric(float64(size)/rows, "B/row")
	}
	for _, codec := range []string{"none", "zstd", "snappy", "lz4"} {
		b.Run(codec, func(b *testing.B) { run(b, s, cols, codec) })
	}
	for i, f := range s {
		b.Run(f.Name, func(b *testing.B) { run(b, s[i:i+1], cols[i:i+1], "zstd") })
	}
}

// told is a changelog of updates: rows come in pairs, old and new.
func told(rows int) (types.Schema, []arrow.Array) {
	s := types.Schema{
		{ID: 0, Name: "_KEY_k", Type: types.Of(types.Int8).WithNotNull(true)},
		{ID: 1, Name: "_SEQ", Type: types.Of(types.Int8).WithNotNull(true)},
		{ID: 2, Name: "_KIND", Type: types.Of(types.TinyInt).WithNotNull(true)},
		{ID: 3, Name: "k", Type: types.Of(types.Int8).WithNotNull(true)},
		{ID: 4, Name: "n", Type: types.Of(types.Int8)},
		{ID: 5, Name: "amount", Type: types.NumericOf(15, 2)},
		{ID: 6, Name: "status", Type: types.Of(types.Text)}, {ID: 7, Name: "note", Type: types.Of(types.Text)},
	}
	k, seq, kind, n, am := make([]int64, rows), make([]int64, rows), make([]int16, rows), make([]int64, rows), make([]decimal128.Num, rows)
	st, note := []byte{}, []byte{}
	so, no := make([]int32, 1), make([]int32, 1)
	x := uint64(1)
	for i := range rows {
		key := int64(1)
		if i&1 == 1 {
			key = k[i-1]
		} else {
			x = x*6364136223846793005 + 1442695040888963407
			if i > 0 {
				key = k[i-1] + 7*int64(1+(x>>61))
			}
		}
		k[i], kind[i] = key, int16(1+i&1)
		seq[i] = key
		if i&1 == 1 {
			seq[i] = int64(3000000 + i/2)
		}
		n[i] = key * 7 % 1000
		am[i] = decimal128.FromI64(key % 100000 * 100)
		st = fmt.Appendf(st, "S%d", key%5)
		note = fmt.Appendf(note, "note of row %d round %d", key, i&1*3)
		so, no = append(so, int32(len(st))), append(no, int32(len(note)))
	}
	return s, []arrow.Array{
		vec.Make(arrow.PrimitiveTypes.Int64, k, nil), vec.Make(arrow.PrimitiveTypes.Int64, seq, nil), vec.Make(arrow.PrimitiveTypes.Int16, kind, nil),
		vec.Make(arrow.PrimitiveTypes.Int64, k, nil), vec.Make(arrow.PrimitiveTypes.Int64, n, nil), vec.MakeDec128(s[5].Type.Arrow(), am, nil),
		vec.MakeBytes(arrow.BinaryTypes.String, so, st, nil), vec.MakeBytes(arrow.BinaryTypes.String, no, note, nil),
	}
}

// BenchmarkWriteChangelog writes a changelog of updates.
func BenchmarkWriteChangelog(b *testing.B) {
	const rows, step = 214_000, 8192
	s, cols := told(rows)
	run := func(b *testing.B, s types.Schema, cols []arrow.Array) {
		var size int64
		cpu := cpuTime()
		for b.Loop() {
			size = writeAll(b, s, cols, rows, step, "zstd")
		}
		b.ReportMetric(float64(cpuTime()-cpu)/float64(b.N)/rows, "cpu-ns/row")
		b.ReportMetric(float64(size)/rows, "B/row")
	}
	b.Run("all", func(b *testing.B) { run(b, s, cols) })
	for i, f := range s {
		b.Run(f.Name, func(b *testing.B) { run(b, s[i:i+1], cols[i:i+1]) })
	}
}

func writeAll(tb testing.TB, s types.Schema, cols []arrow.Array, rows, step int, codec string) int64 {
	c := &countWriter{}
	w, err := create(c, s, format.WriteOptions{Compression: codec, Level: 1})
	if err != nil {
		tb.Fatal(err)
	}
	part := make([]arrow.Array, len(cols))
	for at := 0; at < rows; at += step {
		n := min(step, rows-at)
		for i := range cols {
			part[i] = vec.Slice(cols[i], at, at+n)
		}
		if err := w.Write(part, n); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		tb.Fatal(err)
	}
	return c.n
}

// BenchmarkWriteSmall writes files of a few rows, as single statements make them.
func BenchmarkWriteSmall(b *testing.B) {
	s, cols := orders(100)
	for _, rows := range []int{1, 100} {
		b.Run(fmt.Sprint(rows), func(b *testing.B) {
			for b.Loop() {
				writeAll(b, s, cols, rows, rows, "zstd")
			}
		})
	}
}

type countWriter struct{ n int64 }

func (c *countWriter) Write(p []byte) (int, error) { c.n += int64(len(p)); return io.Discard.Write(p) }

// cpuTime is what the process has used of the cores: what others do on the
// machine does not count.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
