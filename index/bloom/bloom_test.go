package bloom

import (
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/indextest"
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
