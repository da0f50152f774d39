package bsi

import (
	"bytes"
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/paimon-sql/paimon-sql/index/bitslice"
	"github.com/paimon-sql/paimon-sql/index/bitslice/slicetest"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

var int4 = types.Of(types.Int4)

func build(t testing.TB, typ types.Type, vs ...types.Datum) []byte {
	t.Helper()
	b, err := Kind{}.Create(typ, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Append(slicetest.Array(typ, vs)); err != nil {
		t.Fatal(err)
	}
	out, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBytes: the worked example, 1, 2, 1, NULL, -5, byte by byte.
func TestBytes(t *testing.T) {
	bitmap := func(rows ...uint32) string {
		b, err := bitslice.AppendBitmap(nil, roaring.BitmapOf(rows...))
		if err != nil {
			t.Fatal(err)
		}
		return hex.EncodeToString(b)
	}
	want := strings.Join([]string{
		"01", "00000005",
		"01", "01", "0000000000000000", "0000000000000002", bitmap(0, 1, 2), "00000002", bitmap(0, 2), bitmap(1),
		"01", "01", "0000000000000000", "0000000000000005", bitmap(4), "00000003", bitmap(4), bitmap(), bitmap(4),
	}, "")
	got := build(t, int4, int64(1), int64(2), int64(1), nil, int64(-5))
	if hex.EncodeToString(got) != want {
		t.Fatalf("\n%x\n%s", got, want)
	}
	if got := hex.EncodeToString(build(t, int4, nil, nil)); got != "01000000020000" {
		t.Fatalf("all NULL: %s", got)
	}
	// 0 alone needs no slice.
	if got, want := hex.EncodeToString(build(t, int4, int64(0))), "01"+"00000001"+"01"+"01"+strings.Repeat("0", 32)+bitmap(0)+"00000000"+"00"; got != want {
		t.Fatalf("0:\n%s\n%s", got, want)
	}
}

func TestLimits(t *testing.T) {
	int8t := types.Of(types.Int8)
	b, _ := Kind{}.Create(int8t, nil)
	a := slicetest.Array(int8t, []types.Datum{int64(math.MinInt64)})
	if err := b.Append(a); err == nil {
		t.Error("-2^63 cannot be stored")
	}
	if out, err := (&Builder{}).Finish(); out != nil || err != nil {
		t.Errorf("no rows: %x %v", out, err)
	}
	if _, err := (Kind{}).Create(int8t, map[string]string{"x": "1"}); err == nil {
		t.Error("no error for an option that is not known")
	}
	if _, err := (Kind{}).Create(types.Of(types.Text), nil); err == nil {
		t.Error("no error for a type that is not supported")
	}
	edge := []types.Datum{int64(math.MaxInt64), int64(-math.MaxInt64), int64(0), int64(-1), nil}
	x, err := Kind{}.Open(&slicetest.Source{B: build(t, int8t, edge...)}, int8t)
	if err != nil {
		t.Fatal(err)
	}
	for op := predicate.Eq; op <= predicate.Between; op++ {
		for _, a := range []int64{math.MinInt64, math.MinInt64 + 1, -1, 0, math.MaxInt64 - 1, math.MaxInt64} {
			for _, b := range []int64{math.MinInt64, -1, 0, math.MaxInt64} {
				slicetest.Check(t, x, &predicate.Leaf{Op: op, Type: int8t, Args: []types.Datum{a, b}[:args(op)]}, edge)
			}
		}
	}
}

func args(op predicate.Op) int { return []int{1, 1, 1, 1, 1, 1, 2, 2, 0, 0, 1, 2}[op] }

// again makes an index anew from the values of one.
func again(t testing.TB, b []byte, typ types.Type) []byte {
	t.Helper()
	x, err := Kind{}.Open(&slicetest.Source{B: b}, typ)
	if err != nil {
		t.Fatal(err)
	}
	out := &Builder{}
	for row := range x.(*Index).rows {
		v, ok := x.(*Index).value(row)
		out.rows++
		if !ok {
			out.step()
		} else if err := out.add(v); err != nil {
			t.Fatal(err)
		}
	}
	two, err := out.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return two
}

// value returns the integer of a row.
func (x *Index) value(row uint32) (int64, bool) {
	sign := int64(1)
	for _, g := range []*group{&x.pos, &x.neg} {
		if g.present.Contains(row) {
			v := g.min
			for i, s := range g.slices {
				if s.Contains(row) {
					v += 1 << i
				}
			}
			return sign * int64(v), true
		}
		sign = -1
	}
	return 0, false
}

func TestRandom(t *testing.T) { slicetest.Random(t, Kind{}, nil, again) }

// TestJavaFiles: bytes that Java wrote come out again of what they say.
func TestJavaFiles(t *testing.T) {
	for name, b := range slicetest.Fixtures(t, "bsi_file", "bsi") {
		if !bytes.Equal(again(t, b.Bytes, b.Type), b.Bytes) {
			t.Errorf("%s: other bytes", name)
		}
	}
}

func TestJava(t *testing.T) { slicetest.Java(t, Kind{}, nil) }

func FuzzOpen(f *testing.F) {
	f.Add(build(f, int4, int64(1), int64(2), int64(1), nil, int64(-5)))
	f.Add(build(f, int4, nil))
	long := make([]types.Datum, 9000)
	for i := range long {
		long[i] = int64(i & 1)
	}
	f.Add(build(f, int4, long...))
	f.Fuzz(func(t *testing.T, b []byte) {
		x, err := Kind{}.Open(&slicetest.Source{B: b}, int4)
		if err != nil {
			return
		}
		slicetest.Ask(t, x, int4, int64(1), int64(-5), int64(3))
	})
}

func BenchmarkBuild(b *testing.B) {
	for _, c := range []struct {
		name string
		max  int64
	}{{"8bits", 200}, {"20bits", 1 << 20}, {"50bits", 1 << 50}} {
		b.Run(c.name, func(b *testing.B) {
			a := bigints(1<<20, c.max)
			b.SetBytes(8 << 20)
			var size int
			start := slicetest.CPU()
			for b.Loop() {
				w, _ := Kind{}.Create(types.Of(types.Int8), nil)
				if err := w.Append(a); err != nil {
					b.Fatal(err)
				}
				out, err := w.Finish()
				if err != nil {
					b.Fatal(err)
				}
				size = len(out)
			}
			b.ReportMetric(float64(slicetest.CPU()-start)/float64(b.N)/(1<<20), "cpu-ns/row")
			b.ReportMetric(float64(size)/(1<<20), "B/row")
		})
	}
}

func bigints(n int, limit int64) arrow.Array {
	v := make([]int64, n)
	x := uint64(1)
	for i := range v {
		x = x*6364136223846793005 + 1442695040888963407
		v[i] = int64(x>>1) % limit
	}
	w := array.NewInt64Builder(memory.DefaultAllocator)
	defer w.Release()
	w.AppendValues(v, nil)
	return w.NewArray()
}

func BenchmarkTest(b *testing.B) {
	w, _ := Kind{}.Create(types.Of(types.Int8), nil)
	if err := w.Append(bigints(1<<20, 1<<20)); err != nil {
		b.Fatal(err)
	}
	out, _ := w.Finish()
	slicetest.Bench(b, Kind{}, out, types.Of(types.Int8), int64(1000), int64(11000))
}

func TestDamage(t *testing.T) { slicetest.Damage(t, Kind{}, nil) }
