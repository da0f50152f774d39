package rangebitmap

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/memory"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/bitslice"
	"github.com/paimon-sql/paimon-sql/index/bitslice/slicetest"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

var int4, text = types.Of(types.Int4), types.Of(types.Text)

func build(t testing.TB, typ types.Type, o index.Options, vs ...types.Datum) []byte {
	t.Helper()
	b, err := Kind{}.Create(typ, o)
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
		"00000015 01 00000005 00000003 fffffffb 00000002 00000036",
		"0000000d 01 00000001 00000004 00000019 00000000",
		"01 fffffffb 00000000 00000000 00000002 00000008 00000004 00000001 00000002",
		"0000001a 01 02 00000018 00000010 00000000 00000014 00000014 00000012",
		bitmap(0, 1, 2, 4), bitmap(0, 2), bitmap(1),
	}, "")
	want = strings.ReplaceAll(want, " ", "")
	if got := hex.EncodeToString(build(t, int4, nil, int64(1), int64(2), int64(1), nil, int64(-5))); got != want {
		t.Fatalf("\n%s\n%s", got, want)
	}
}

// TestVector: an index that Java wrote, and what it says.
func TestVector(t *testing.T) {
	b, err := os.ReadFile(slicetest.Shared(t, "fixtures/cpp/vectors/file-index/range-bitmap-int.index"))
	if err != nil {
		t.Fatal(err)
	}
	column := []types.Datum{int64(1), int64(3), int64(5), int64(7), int64(9), nil, nil, int64(10)}
	if got := build(t, int4, nil, column...); !bytes.Equal(got, b) {
		t.Errorf("\n%x\n%x", got, b)
	}
	x, err := open(&slicetest.Source{B: b}, int4)
	if err != nil {
		t.Fatal(err)
	}
	for op, want := range map[predicate.Op][]uint32{predicate.Eq: {2}, predicate.Gt: {3, 4, 7}, predicate.Lt: {0, 1}} {
		r, err := x.Test(&predicate.Leaf{Op: op, Type: int4, Args: []types.Datum{int64(5)}})
		if err != nil || !slices.Equal(r.Rows.ToArray(), want) || !r.Exact {
			t.Errorf("op %d: %v %v", op, r.Rows, err)
		}
	}
	if !bytes.Equal(again(t, b, int4), b) {
		t.Error("other bytes")
	}
}

// again makes an index anew from the values of one.
func again(t testing.TB, b []byte, typ types.Type) []byte {
	t.Helper()
	x, err := open(&slicetest.Source{B: b}, typ)
	if err != nil {
		t.Fatal(err)
	}
	w, err := Kind{}.Create(typ, nil)
	if err != nil {
		t.Fatal(err)
	}
	out := w.(*Builder)
	out.nan = math.Float64bits(math.NaN())
	if typ.Kind == types.Float8 {
		out.nan = bitslice.NaN64
	} else if typ.Kind == types.Float4 {
		out.nan = bitslice.NaN32
	}
	var keys []key
	if x.distinct > 0 {
		if err := x.dict.load(); err != nil {
			t.Fatal(err)
		}
		for i := range x.dict.chunks {
			c := &x.dict.chunks[i]
			if err := x.dict.read(c); err != nil {
				t.Fatal(err)
			}
			keys = append(keys, c.first)
			for j := range int(c.count) {
				k := key{}
				if x.codec != nil {
					k.n = x.get(c.keys[j*x.width:])
				} else {
					k.s = string(x.dict.text(c, j))
				}
				keys = append(keys, k)
			}
		}
	}
	present, sl, err := x.bitmaps(true, 0)
	if err != nil {
		t.Fatal(err)
	}
	rank := make([]int, x.rows)
	for i, s := range sl {
		s.Iterate(func(row uint32) bool { rank[row] |= 1 << i; return true })
	}
	for row, r := range rank {
		switch {
		case !present.Contains(uint32(row)):
			out.rows = append(out.rows, null)
		case x.codec != nil:
			out.rows = append(out.rows, out.ints.number(keys[r].n))
		default:
			out.rows = append(out.rows, out.strs.number(keys[r].s))
		}
	}
	two, err := out.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return two
}

func TestRandom(t *testing.T) {
	slicetest.Random(t, Kind{}, func(r *rand.Rand) index.Options {
		if r.IntN(2) == 0 {
			return nil
		}
		return index.Options{"chunk-size": []string{"0", "7 b", "100 bytes", "1kb", " 1 KB "}[r.IntN(5)]}
	}, again)
}

// TestJavaFiles: bytes that Java wrote come out again of what they say.
func TestJavaFiles(t *testing.T) {
	for name, b := range slicetest.Fixtures(t, "range_bitmap_file", "range-bitmap") {
		if !bytes.Equal(again(t, b.Bytes, b.Type), b.Bytes) {
			t.Errorf("%s: other bytes", name)
		}
	}
}

func TestJava(t *testing.T) {
	for _, size := range []string{"", "0 b", "60 b"} {
		t.Run(size, func(t *testing.T) {
			var o index.Options
			if size != "" {
				o = index.Options{"chunk-size": size}
			}
			slicetest.Java(t, Kind{}, o)
		})
	}
}

// TestLazy: a question about one value reads one chunk of a big dictionary, one
// about a range from a high rank on only the upper slices.
func TestLazy(t *testing.T) {
	vs := make([]types.Datum, 200000)
	for i := range vs {
		vs[i] = fmt.Sprintf("%032x", uint64(i)*0x9e3779b97f4a7c15)
	}
	b := build(t, text, nil, vs...)
	for _, c := range []struct {
		l     predicate.Leaf
		bytes int64
		reads int64
	}{
		{predicate.Leaf{Op: predicate.Eq, Args: []types.Datum{"zz"}}, 4096, 1},
		{predicate.Leaf{Op: predicate.Eq, Args: []types.Datum{"0000"}}, 4096, 1},
		{predicate.Leaf{Op: predicate.Eq, Args: []types.Datum{strings.Repeat("0", 31) + "1"}}, 100 << 10, 4},
		{predicate.Leaf{Op: predicate.Eq, Args: vs[777:778]}, 600 << 10, 8},
		{predicate.Leaf{Op: predicate.IsNull}, 8 << 10, 5},
	} {
		src := &slicetest.Source{B: b}
		x, err := open(src, text)
		if err != nil {
			t.Fatal(err)
		}
		c.l.Type = text
		slicetest.Check(t, x, &c.l, vs)
		t.Logf("%s: %d reads, %d of %d bytes", slicetest.Text(&c.l), src.Reads, src.Bytes, len(b))
		if src.Bytes > c.bytes || src.Reads > c.reads {
			t.Errorf("%s: %d reads, %d of %d bytes", slicetest.Text(&c.l), src.Reads, src.Bytes, len(b))
		}
	}
}

func TestOptions(t *testing.T) {
	for text, want := range map[string]int{"16kb": 16384, "0b": 0, "5": 5, "1 mb": 1 << 20, "1 gibibytes": 1 << 30, "2gb": -1, "x": -1, "-1": -1, "1 tb": -1, "": -1} {
		n, err := parseSize(text)
		if err == nil && n != want || err != nil && want >= 0 {
			t.Errorf("%q: %d %v", text, n, err)
		}
	}
	if _, err := (Kind{}).Create(int4, index.Options{"chunk": "1"}); err == nil {
		t.Error("no error for an option that is not known")
	}
	for paimon, want := range map[string]bool{"DECIMAL(19,0)": false, "TIMESTAMP(7)": false, "BYTES": false, "CHAR(3)": true, "TINYINT": true} {
		typ, _ := types.ParsePaimonText(paimon)
		if (Kind{}).Supports(typ) != want {
			t.Errorf("%s: %v", paimon, !want)
		}
	}
	if out, err := build2(int4); out != nil || err != nil {
		t.Errorf("no rows: %x %v", out, err)
	}
}

func build2(typ types.Type) ([]byte, error) {
	b, err := Kind{}.Create(typ, nil)
	if err != nil {
		return nil, err
	}
	return b.Finish()
}

// TestNaN: Java keeps the bits of the first NaN; all are one value.
func TestNaN(t *testing.T) {
	f8 := types.Of(types.Float8)
	odd := math.Float64frombits(0xfff8000000000123)
	column := []types.Datum{1.5, odd, math.NaN(), math.Copysign(0, -1), 0.0}
	b := build(t, f8, nil, column...)
	if !bytes.Contains(b, []byte{0xff, 0xf8, 0, 0, 0, 0, 1, 0x23}) || bytes.Contains(b, []byte{0x7f, 0xf8, 0, 0}) {
		t.Errorf("%x", b)
	}
	x, err := open(&slicetest.Source{B: b}, f8)
	if err != nil {
		t.Fatal(err)
	}
	for op := predicate.Eq; op <= predicate.GtEq; op++ {
		for _, v := range []float64{math.NaN(), odd, 0, math.Copysign(0, -1), 1.5, math.Inf(1)} {
			slicetest.Check(t, x, &predicate.Leaf{Op: op, Type: f8, Args: []types.Datum{v}}, column)
		}
	}
}

func FuzzOpen(f *testing.F) {
	kinds := []types.Type{int4, text, types.Of(types.Float8), types.Of(types.Bool)}
	f.Add(byte(0), build(f, int4, nil, int64(1), int64(2), int64(1), nil, int64(-5)))
	f.Add(byte(1), build(f, text, index.Options{"chunk-size": "20"}, "a", "bb", nil, "a", "ccc", "dddd", "e", "ff"))
	f.Add(byte(0), build(f, int4, nil, nil))
	long := make([]types.Datum, 9000)
	for i := range long {
		long[i] = float64(i & 1)
	}
	f.Add(byte(2), build(f, kinds[2], nil, long...))
	f.Add(byte(3), build(f, kinds[3], nil, true, false))
	f.Fuzz(func(t *testing.T, k byte, b []byte) {
		typ := kinds[k&3]
		x, err := open(&slicetest.Source{B: b}, typ)
		if err != nil {
			return
		}
		slicetest.Ask(t, x, typ, []types.Datum{int64(1), "bb", 1.0, true}[k&3], []types.Datum{int64(2), "d", math.NaN(), false}[k&3])
	})
}

func BenchmarkBuild(b *testing.B) {
	const n = 1 << 20
	for _, distinct := range []uint64{10, 1000, n} {
		nums, strs := columns(n, distinct)
		for _, c := range []struct {
			name string
			t    types.Type
			a    arrow.Array
		}{{"bigint", types.Of(types.Int8), nums}, {"string", text, strs}} {
			b.Run(fmt.Sprintf("%s/%d", c.name, distinct), func(b *testing.B) {
				var size int
				start := slicetest.CPU()
				var held int64
				for b.Loop() {
					w, _ := Kind{}.Create(c.t, nil)
					if err := w.Append(c.a); err != nil {
						b.Fatal(err)
					}
					held = w.Bytes()
					out, err := w.Finish()
					if err != nil {
						b.Fatal(err)
					}
					size = len(out)
				}
				b.ReportMetric(float64(slicetest.CPU()-start)/float64(b.N)/n, "cpu-ns/row")
				b.ReportMetric(float64(size)/n, "B/row")
				b.ReportMetric(float64(held)/n, "held-B/row")
			})
		}
	}
}

func columns(n int, distinct uint64) (nums, strs arrow.Array) {
	in, is := array.NewInt64Builder(memory.DefaultAllocator), array.NewStringBuilder(memory.DefaultAllocator)
	defer in.Release()
	defer is.Release()
	x := uint64(1)
	for range n {
		x = x*6364136223846793005 + 1442695040888963407
		v := (x >> 20) % distinct
		in.Append(int64(v) * 1000)
		is.Append(fmt.Sprintf("value-%016x", v*0x9e3779b97f4a7c15))
	}
	return in.NewArray(), is.NewArray()
}

func BenchmarkTest(b *testing.B) {
	nums, _ := columns(1<<20, 1<<20)
	w, _ := Kind{}.Create(types.Of(types.Int8), nil)
	if err := w.Append(nums); err != nil {
		b.Fatal(err)
	}
	out, _ := w.Finish()
	slicetest.Bench(b, Kind{}, out, types.Of(types.Int8), int64(1000000), int64(11000000))
}

// TestConcurrent asks one index many things at once; each answer must be that of
// an index that was asked alone.
func TestConcurrent(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	column := slicetest.Column(r, text, 5000, 700, 10)
	b := build(t, text, index.Options{"chunk-size": "1 kb"}, column...)
	leaves := make([]*predicate.Leaf, 200)
	want := make([]index.Result, len(leaves))
	for i := range leaves {
		leaves[i] = slicetest.Leaf(r, text, column, 700)
		x, err := open(&slicetest.Source{B: b}, text)
		if err != nil {
			t.Fatal(err)
		}
		if want[i], err = x.Test(leaves[i]); err != nil {
			t.Fatal(err)
		}
	}
	x, err := open(bytesSource{bytes.NewReader(b)}, text)
	if err != nil {
		t.Fatal(err)
	}
	var wg sync.WaitGroup
	for from := range 4 {
		wg.Go(func() {
			for i := from; i < len(leaves); i += 2 {
				got, err := x.Test(leaves[i])
				if err != nil || got.Verdict != want[i].Verdict || !got.Rows.Equals(want[i].Rows) {
					t.Errorf("%s: %v %v", slicetest.Text(leaves[i]), got.Verdict, err)
				}
				if _, err := x.Top(i, i&1 == 0, i&2 == 0, got.Rows); err != nil {
					t.Error(err)
				}
			}
		})
	}
	wg.Wait()
}

type bytesSource struct{ *bytes.Reader }

func (s bytesSource) Size() int64 { return s.Reader.Size() }

func TestDamage(t *testing.T) {
	slicetest.Damage(t, Kind{}, nil)
	slicetest.Damage(t, Kind{}, index.Options{"chunk-size": "50"})
}
