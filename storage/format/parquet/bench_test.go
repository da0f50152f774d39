package parquet

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	pq "github.com/parquet-go/parquet-go"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

// benchRows is enough that a column does not fit the caches.
const benchRows = 1 << 20

// benchColumn makes a column as TPC-H's lineitem has it.
type benchColumn struct {
	name string
	t    types.Type
	opts map[string]string
	make func(rng *rand.Rand, n int) arrow.Array
}

var plainOnly = map[string]string{"parquet.enable.dictionary": "false"}

func benchColumns() []benchColumn {
	nn := func(t types.Type) types.Type { return t.WithNotNull(true) }
	ints := func(t types.Type, fn func(rng *rand.Rand, i int) int64) func(*rand.Rand, int) arrow.Array {
		return func(rng *rand.Rand, n int) arrow.Array {
			v := make([]int64, n)
			for i := range v {
				v[i] = fn(rng, i)
			}
			return vec.Make(t.Arrow(), v, nil)
		}
	}
	int32s := func(t types.Type, fn func(rng *rand.Rand, i int) int32) func(*rand.Rand, int) arrow.Array {
		return func(rng *rand.Rand, n int) arrow.Array {
			v := make([]int32, n)
			for i := range v {
				v[i] = fn(rng, i)
			}
			return vec.Make(t.Arrow(), v, nil)
		}
	}
	strs := func(fn func(rng *rand.Rand, out []byte) []byte) func(*rand.Rand, int) arrow.Array {
		return func(rng *rand.Rand, n int) arrow.Array {
			off, data := make([]int32, n+1), []byte{}
			for i := 0; i < n; i++ {
				data = fn(rng, data)
				off[i+1] = int32(len(data))
			}
			return vec.MakeBytes(arrow.BinaryTypes.String, off, data, nil)
		}
	}
	words := []string{"carefully", "final", "deposits", "quickly", "ironic", "accounts", "sleep", "furiously", "express", "requests", "bold"}
	ts := types.Type{Kind: types.Timestamp, Prec: 6}
	dec := types.NumericOf(15, 2)
	return []benchColumn{
		{"int32plain", nn(types.Of(types.Int4)), plainOnly, int32s(types.Of(types.Int4), func(r *rand.Rand, i int) int32 { return r.Int31n(200000) })},
		{"int64plain", nn(types.Of(types.Int8)), plainOnly, ints(types.Of(types.Int8), func(r *rand.Rand, i int) int64 { return r.Int63n(1 << 40) })},
		{"int64nullable", types.Of(types.Int8), plainOnly, func(r *rand.Rand, n int) arrow.Array {
			v := make([]int64, n)
			valid := make([]byte, vec.BitmapLen(n))
			for i := range v {
				v[i] = r.Int63n(1 << 40)
				if r.Intn(10) > 0 {
					valid[i>>3] |= 1 << (i & 7)
				}
			}
			return vec.Make(arrow.PrimitiveTypes.Int64, v, valid)
		}},
		{"int64dict", nn(types.Of(types.Int8)), nil, ints(types.Of(types.Int8), func(r *rand.Rand, i int) int64 { return r.Int63n(10000) })},
		{"decimal15_2", nn(dec), plainOnly, func(r *rand.Rand, n int) arrow.Array {
			v := make([]int64, 2*n)
			for i := 0; i < n; i++ {
				v[2*i] = 90000 + r.Int63n(10400000)
			}
			return vec.MakeFixedBytes(dec.Arrow(), n, vec.Bytes(v), nil)
		}},
		{"double", nn(types.Of(types.Float8)), plainOnly, func(r *rand.Rand, n int) arrow.Array {
			v := make([]float64, n)
			for i := range v {
				v[i] = r.Float64() * 1e5
			}
			return vec.Make(arrow.PrimitiveTypes.Float64, v, nil)
		}},
		{"stringdict", nn(types.Of(types.Text)), nil, strs(func(r *rand.Rand, out []byte) []byte {
			return append(out, []string{"AIR", "FOB", "MAIL", "RAIL", "REG AIR", "SHIP", "TRUCK"}[r.Intn(7)]...)
		})},
		{"stringplain", nn(types.Of(types.Text)), plainOnly, strs(func(r *rand.Rand, out []byte) []byte {
			for k := 2 + r.Intn(4); k > 0; k-- {
				out = append(append(out, words[r.Intn(len(words))]...), ' ')
			}
			return out
		})},
		{"stringshort", nn(types.Of(types.Text)), plainOnly, strs(func(r *rand.Rand, out []byte) []byte {
			return fmt.Appendf(out, "Clerk#%06d", r.Intn(100000))
		})},
		{"date", nn(types.Of(types.Date)), nil, int32s(types.Of(types.Date), func(r *rand.Rand, i int) int32 { return 8000 + r.Int31n(2500) })},
		{"timestamp", nn(ts), plainOnly, ints(ts, func(r *rand.Rand, i int) int64 { return 1_600_000_000_000_000 + int64(i)*1000 + r.Int63n(1000) })},
		{"list", nn(types.ArrayOf(types.Of(types.Int8))), plainOnly, func(r *rand.Rand, n int) arrow.Array {
			off := make([]int32, n+1)
			var v []int64
			for i := 0; i < n; i++ {
				for k := r.Intn(4); k > 0; k-- {
					v = append(v, r.Int63n(1<<30))
				}
				off[i+1] = int32(len(v))
			}
			return vec.MakeList(arrow.ListOf(arrow.PrimitiveTypes.Int64), off, vec.Make(arrow.PrimitiveTypes.Int64, v, nil), nil)
		}},
	}
}

func benchFile(b *testing.B, c benchColumn, compression string) (types.Schema, []byte) {
	s := types.Schema{{ID: 1, Name: "c", Type: c.t}}
	var out bytes.Buffer
	w, err := create(&out, s, format.WriteOptions{Compression: compression, BlockSize: 1 << 40, Options: c.opts})
	if err != nil {
		b.Fatal(err)
	}
	if err := w.Write([]arrow.Array{c.make(rand.New(rand.NewSource(1)), benchRows)}, benchRows); err != nil {
		b.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		b.Fatal(err)
	}
	return s, out.Bytes()
}

// readAll reads every row in batches of 8,192, as the executor does.
func readAll(s types.Schema, f []byte, keep []uint16) error {
	ctx := context.Background()
	r, err := open(ctx, &bytesFile{newMemFile("f", f), f}, s)
	if err != nil {
		return err
	}
	cr, err := r.Columns(ctx, format.RowRange{To: r.Rows()}, []int{0})
	if err != nil {
		return err
	}
	for at := int64(0); at < r.Rows(); at += 8192 {
		if _, err := cr.Read(ctx, int(min(8192, r.Rows()-at)), keep); err != nil {
			return err
		}
	}
	return cr.Close()
}

func readLibrary(f []byte) error {
	file, err := pq.OpenFile(bytes.NewReader(f), int64(len(f)))
	if err != nil {
		return err
	}
	buf := make([]pq.Row, 1024)
	for _, g := range file.RowGroups() {
		rows := g.Rows()
		for {
			_, err := rows.ReadRows(buf)
			if errors.Is(err, io.EOF) {
				break
			}
			if err != nil {
				return err
			}
		}
		rows.Close()
	}
	return nil
}

// BenchmarkDecode: ours on stored pages is decoding alone; the difference to
// zstd is decompression; library is parquet-go's row reader on the zstd file.
func BenchmarkDecode(b *testing.B) {
	for _, c := range benchColumns() {
		run := func(name, compression string, read func(types.Schema, []byte) error) {
			b.Run(c.name+"/"+name, func(b *testing.B) {
				s, f := benchFile(b, c, compression)
				b.SetBytes(int64(len(f)))
				b.ReportAllocs()
				for b.Loop() {
					if err := read(s, f); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/value")
			})
		}
		all := func(s types.Schema, f []byte) error { return readAll(s, f, nil) }
		var sparse, half []uint16
		for i := 0; i < 8192; i += 2 {
			half = append(half, uint16(i))
			if i%128 == 0 {
				sparse = append(sparse, uint16(i))
			}
		}
		run("stored", "none", all)
		run("zstd", "zstd", all)
		run("storedkeep1in2", "none", func(s types.Schema, f []byte) error { return readAll(s, f, half) })
		run("storedkeep1in128", "none", func(s types.Schema, f []byte) error { return readAll(s, f, sparse) })
		run("library", "zstd", func(_ types.Schema, f []byte) error { return readLibrary(f) })
	}
}
