package bloom

import (
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/indextest"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// TestHash: values of Java's FastHash.
func TestHash(t *testing.T) {
	for k, want := range map[int64]int64{1: 6614235796240398542, 2: -5218261022256003468, -5: -3822160321977914683} {
		if got := int64(hashKey(k)); got != want {
			t.Errorf("hash of %d is %d, want %d", k, got, want)
		}
	}
}

// TestBytes: filters that Java made of the same values.
func TestBytes(t *testing.T) {
	ints := array.NewInt32Builder(memory.DefaultAllocator)
	ints.AppendValues([]int32{1, 2, -5}, nil)
	texts := array.NewStringBuilder(memory.DefaultAllocator)
	texts.AppendValues([]string{"a", "b", "hello world"}, nil)
	for _, c := range []struct {
		t    types.Type
		o    index.Options
		a    array.Builder
		want string
	}{
		{types.Of(types.Int4), index.Options{"items": "10", "fpp": "0.01"}, ints, "000000070020070c1084a80021646004"},
		{types.Of(types.Text), index.Options{"items": "10"}, texts, "00000003092008700208"},
	} {
		b, err := Kind.Create(c.t, c.o)
		if err != nil {
			t.Fatal(err)
		}
		if err := b.Append(c.a.NewArray()); err != nil {
			t.Fatal(err)
		}
		got, err := b.Finish()
		if err != nil || hex.EncodeToString(got) != c.want {
			t.Errorf("got %x, %v, want %s", got, err, c.want)
		}
	}
}

// TestSize: the library's number of bits is Java's after rounding, for all sizes.
func TestSize(t *testing.T) {
	for _, fpp := range []float64{0.5, 0.3, 0.2, 0.1, 0.05, 0.03, 0.02, 0.01, 0.005, 0.001, 1e-4, 1e-6, 1e-12} {
		for items := int64(1); items < 20_000_000; items += 1 + items/700 {
			nb := int64(-float64(items) * math.Log(fpp) / (math.Log(2) * math.Log(2)))
			want := nb + 8 - nb%8
			if got, _, err := size(items, fpp); want <= math.MaxInt32 && (err != nil || got != want) {
				t.Fatalf("%d items at %v: %d bits, %v, want %d", items, fpp, got, err, want)
			}
		}
	}
	for _, bad := range []index.Options{{"items": "0"}, {"items": "x"}, {"fpp": "0"}, {"fpp": "1"}, {"fpp": "NaN"}, {"size": "1"}, {"items": "2147483647"}} {
		if _, err := Kind.Create(types.Of(types.Int4), bad); err == nil {
			t.Errorf("options %v are taken", bad)
		}
	}
}

// TestAgainstScan: every type, filters of all sizes, also too small ones.
func TestAgainstScan(t *testing.T) {
	indextest.Fuzz(t, Kind, 60, func(r *rand.Rand) index.Options {
		return index.Options{"items": []string{"1", "50", "400", "20000"}[r.IntN(4)], "fpp": []string{"0.5", "0.1", "0.001"}[r.IntN(3)]}
	})
}

func FuzzOpen(f *testing.F) {
	f.Add(uint8(3), []byte("\x00\x00\x00\x07\x00\x20\x07\x0c\x10\x84\xa8\x00\x21\x64\x60\x04"))
	f.Fuzz(func(t *testing.T, n uint8, b []byte) {
		typ := indextest.Types[int(n)%len(indextest.Types)]
		if !Kind.Supports(typ) {
			return
		}
		x, err := Kind.Open(&indextest.Reader{Data: b}, typ)
		if err != nil {
			return
		}
		r := rand.New(rand.NewPCG(uint64(n), 2))
		for range 20 {
			if _, err := x.Test(indextest.Leaf(r, typ, nil)); err != nil {
				t.Fatal(err) // no bytes of a filter are damage but the first four
			}
		}
	})
}

// TestReads: a test of a large filter reads a few bytes of it.
func TestReads(t *testing.T) {
	int8s := types.Of(types.Int8)
	b, err := Kind.Create(int8s, nil)
	if err != nil {
		t.Fatal(err)
	}
	data := make([]types.Datum, 100_000)
	for i := range data {
		data[i] = int64(i)
	}
	if err := b.Append(indextest.Array(int8s, data, false)); err != nil {
		t.Fatal(err)
	}
	raw, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	src := &indextest.Reader{Data: raw}
	x, err := Kind.Open(src, int8s)
	if err != nil {
		t.Fatal(err)
	}
	absent := 0
	for i := range 1000 {
		r, err := x.Test(&predicate.Leaf{Op: predicate.Eq, Type: int8s, Args: []types.Datum{int64(200_000 + i)}})
		if err != nil {
			t.Fatal(err)
		}
		if r.Verdict == index.None {
			absent++
		}
	}
	t.Logf("%d of 1000 absent values noticed, %d bytes of %d read", absent, src.Bytes, len(raw))
	if absent < 950 || src.Bytes > 4000 {
		t.Error("a filter that is a tenth full should notice more, or read less")
	}
}

// BenchmarkBuild is per row, at the default size.
func BenchmarkBuild(b *testing.B) {
	const rows = 1 << 16
	for _, c := range []struct {
		name     string
		t        types.Type
		distinct int
		dict     bool
	}{
		{"int8", types.Of(types.Int8), 1 << 40, false}, {"text16", types.Of(types.Text), 1 << 40, false},
		{"dictionary/1000", types.Of(types.Text), 1000, true},
	} {
		r := rand.New(rand.NewPCG(1, 1))
		data := make([]types.Datum, rows)
		for i := range data {
			n := r.Int64N(int64(c.distinct))
			if data[i] = n; c.t.Kind == types.Text {
				data[i] = fmt.Sprintf("%016x", n)
			}
		}
		a := indextest.Array(c.t, data, c.dict)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			x, _ := Kind.Create(c.t, nil)
			for range b.N {
				if err := x.Append(a); err != nil {
					b.Fatal(err)
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/rows, "ns/row")
		})
	}
}

// BenchmarkTest is per absent value, filter in memory and not.
func BenchmarkTest(b *testing.B) {
	text := types.Of(types.Text)
	x, _ := Kind.Create(text, nil)
	data := make([]types.Datum, 1_000_000)
	for i := range data {
		data[i] = fmt.Sprintf("%032x", i)
	}
	if err := x.Append(indextest.Array(text, data, false)); err != nil {
		b.Fatal(err)
	}
	raw, _ := x.Finish()
	for name, src := range map[string]index.Source{"memory": index.BytesSource(raw), "file": &indextest.Reader{Data: raw}} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			f, err := Kind.Open(src, text)
			if err != nil {
				b.Fatal(err)
			}
			l := &predicate.Leaf{Op: predicate.Eq, Type: text, Args: []types.Datum{"absent"}}
			for range b.N {
				if _, err := f.Test(l); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
