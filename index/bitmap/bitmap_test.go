package bitmap

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/RoaringBitmap/roaring/v2"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/indextest"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

func build(t testing.TB, typ types.Type, o index.Options, data ...types.Datum) []byte {
	t.Helper()
	b, err := Kind.Create(typ, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Append(indextest.Array(typ, data, false)); err != nil {
		t.Fatal(err)
	}
	out, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	return out
}

// TestBytes: an index that Java made of the same rows.
func TestBytes(t *testing.T) {
	got := build(t, types.Of(types.Int4), nil, int64(1), int64(2), int64(1), nil, int64(-5))
	want := "02 00000005 00000003 01 fffffffc 00000012 | 00000001 fffffffb 00000000 00000028 | " +
		"00000003 (fffffffb fffffffb ffffffff)(00000001 00000000 00000014)(00000002 fffffffe ffffffff) | 3a300000 01000000 0000 0100 10000000 0000 0200"
	want = string(bytes.Map(func(r rune) rune {
		if bytes.ContainsRune([]byte(" |()"), r) {
			return -1
		}
		return r
	}, []byte(want)))
	if hex.EncodeToString(got) != want {
		t.Errorf("got  %x\nwant %s", got, want)
	}
}

func shared(t *testing.T, path string) string {
	t.Helper()
	root := os.Getenv("PAIMON_SQL_SHARED")
	if root == "" {
		root = "../../../shared"
	}
	root = filepath.Join(root, path)
	if _, err := os.Stat(root); err != nil {
		t.Skip("needs ../shared/" + path)
	}
	return root
}

// TestVectors: indexes of 100,000 rows that Java wrote, found again and, from the
// rows they speak of, written again.
func TestVectors(t *testing.T) {
	dir := shared(t, "fixtures/cpp/vectors/file-index")
	text := types.Of(types.Text)
	for version, name := range map[int]string{1: "bitmap-v1-string-high-cardinality.index", 2: "bitmap-v2-string-high-cardinality.index"} {
		raw, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			t.Fatal(err)
		}
		src := &indextest.Reader{Data: raw}
		x, err := Kind.Open(src, text)
		if err != nil {
			t.Fatal(err)
		}
		for v, want := range map[string][]uint32{
			"asdfghjkl123_2500": {3127, 18654, 23615, 43768, 62555, 63261, 66284, 74708, 99268},
			"asdfghjkl123_5000": {2269, 21292, 23667, 35066, 42377, 46085, 64811, 79062, 96161},
			"asdfghjkl123_7500": {14856, 50768, 60230, 68792, 72208, 73800, 78261, 81346, 86520, 87420, 88501, 95131, 99401},
		} {
			r, err := x.Test(&predicate.Leaf{Op: predicate.Eq, Type: text, Args: []types.Datum{v}})
			if err != nil || !r.Exact || !slices.Equal(r.Rows.ToArray(), want) {
				t.Errorf("version %d, %s: %v, %v, want %v", version, v, r, err, want)
			}
		}
		t.Logf("version %d: %d of %d bytes in %d reads for three values", version, src.Bytes, len(raw), src.Reads)
		if version == 2 && src.Bytes > int64(len(raw))/3 {
			t.Errorf("%d of %d bytes were read", src.Bytes, len(raw))
		}

		// Again from its rows.
		rd := x.(*reader[string])
		data := make([]types.Datum, rd.rows)
		eachValue(t, rd, func(k string, rows []uint32) {
			for _, row := range rows {
				data[row] = k
			}
		})
		got := build(t, text, index.Options{"version": fmt.Sprint(version)}, data...)
		if !bytes.Equal(got, raw) {
			t.Errorf("version %d: %d bytes written anew differ from the %d of Java, first at %d", version, len(got), len(raw), firstDiff(got, raw))
		}
	}
}

func firstDiff(a, b []byte) int {
	for i := range min(len(a), len(b)) {
		if a[i] != b[i] {
			return i
		}
	}
	return min(len(a), len(b))
}

// eachValue walks the dictionary.
func eachValue[K int64 | string](t *testing.T, r *reader[K], f func(k K, rows []uint32)) {
	var all []K
	if r.version == 1 {
		w := &window{src: r.src, at: r.dict}
		for range r.values {
			k, err := value(w, r.next)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := w.int32(); err != nil {
				t.Fatal(err)
			}
			all = append(all, k)
		}
	} else {
		for b := range r.first {
			buf, _ := index.ReadBytes(r.src, r.offsets[b], r.ends[b]-r.offsets[b])
			es, err := r.parse(&window{src: index.BytesSource(buf), buf: buf}, nil)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range es {
				all = append(all, e.key)
			}
		}
	}
	// The refs of version 1 come in the order of the dictionary, which is all's.
	refs, body, err := r.find(&query[K]{points: true, spans: tidy(slices.Clone(all))}, false)
	if err != nil || len(refs) != len(all) {
		t.Fatalf("%d of %d values, %v", len(refs), len(all), err)
	}
	for i, k := range all {
		rows, err := r.union(refs[i:i+1], body)
		if err != nil {
			t.Fatal(err)
		}
		f(k, rows.ToArray())
	}
}

// TestAgainstScan: every type and predicate, both versions, blocks of all sizes.
func TestAgainstScan(t *testing.T) {
	indextest.Fuzz(t, Kind, 60, func(r *rand.Rand) index.Options {
		o := index.Options{"version": fmt.Sprint(1 + r.IntN(2))}
		if r.IntN(2) == 0 {
			o["index-block-size"] = []string{"100", "64b", "1 kb", "1"}[r.IntN(4)]
		}
		return o
	})
}

func FuzzOpen(f *testing.F) {
	for i, typ := range indextest.Types {
		if !Kind.Supports(typ) {
			continue
		}
		r := rand.New(rand.NewPCG(uint64(i), 1))
		_, data := indextest.Column(r, typ, 60)
		for _, o := range []index.Options{{"version": "1"}, {"index-block-size": "64"}} {
			f.Add(uint8(i), build(f, typ, o, data...))
		}
	}
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
		rows := x.(index.RowCounter).RowCount()
		for op := range predicate.Between + 1 {
			l := indextest.Leaf(r, typ, nil)
			for l.Op != op && (op != predicate.StartsWith || width(typ) == 0 && typ.Kind != types.BpChar) {
				l = indextest.Leaf(r, typ, nil)
			}
			res, err := x.Test(l)
			if err == nil && res.Rows != nil && !res.Rows.IsEmpty() && int64(res.Rows.Maximum()) >= rows {
				t.Fatalf("row %d of %d", res.Rows.Maximum(), rows)
			}
		}
	})
}

// BenchmarkBuild is per row.
func BenchmarkBuild(b *testing.B) {
	const rows = 1 << 16
	for _, c := range []struct {
		name     string
		t        types.Type
		distinct int
		dict     bool
	}{
		{"int4/10", types.Of(types.Int4), 10, false}, {"int4/10000", types.Of(types.Int4), 10000, false},
		{"int8/unique", types.Of(types.Int8), rows, false},
		{"text/10", types.Of(types.Text), 10, false}, {"text/10000", types.Of(types.Text), 10000, false},
		{"dictionary/10", types.Of(types.Text), 10, true},
	} {
		r := rand.New(rand.NewPCG(1, 1))
		data := make([]types.Datum, rows)
		for i := range data {
			n := r.IntN(c.distinct)
			if data[i] = int64(n); width(c.t) == 0 {
				data[i] = fmt.Sprintf("value %d", n)
			}
		}
		a := indextest.Array(c.t, data, c.dict)
		b.Run(c.name, func(b *testing.B) {
			b.ReportAllocs()
			size := 0
			for range b.N {
				x, _ := Kind.Create(c.t, nil)
				for range 4 { // 262,144 rows
					if err := x.Append(a); err != nil {
						b.Fatal(err)
					}
				}
				out, err := x.Finish()
				if err != nil {
					b.Fatal(err)
				}
				size = len(out)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(4*rows), "ns/row")
			b.ReportMetric(float64(size)/(4*rows), "B/row")
		})
	}
}

// BenchmarkTest is per test of an open index of a million rows and 10,000 values.
func BenchmarkTest(b *testing.B) {
	text := types.Of(types.Text)
	data := make([]types.Datum, 1_000_000)
	r := rand.New(rand.NewPCG(1, 1))
	for i := range data {
		data[i] = fmt.Sprintf("value %05d", r.IntN(10000))
	}
	for _, version := range []string{"1", "2"} {
		raw := build(b, text, index.Options{"version": version}, data...)
		for _, l := range []predicate.Leaf{
			{Op: predicate.Eq, Args: []types.Datum{"value 00500"}},
			{Op: predicate.In, Args: []types.Datum{"value 00500", "value 07500", "value 07501", "none"}},
			{Op: predicate.NotEq, Args: []types.Datum{"value 00500"}},
			{Op: predicate.StartsWith, Args: []types.Datum{"value 0123"}},
		} {
			l.Type = text
			b.Run(fmt.Sprintf("v%s/%d", version, l.Op), func(b *testing.B) {
				b.ReportAllocs()
				src := &indextest.Reader{Data: raw}
				for range b.N {
					x, err := Kind.Open(src, text)
					if err != nil {
						b.Fatal(err)
					}
					if _, err := x.Test(&l); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(src.Bytes)/float64(b.N), "readB/test")
			})
		}
	}
}

// TestRoaring: the bitmaps are those that the library makes and optimises.
func TestRoaring(t *testing.T) {
	r := indextest.Rand(t)
	for range 300 {
		var rows []uint32
		at, step := uint32(r.IntN(100_000)), 1+r.IntN(40)
		for range 1 + r.IntN(30_000) {
			rows = append(rows, at)
			if at++; r.IntN(20) == 0 || step > 30 {
				at += uint32(r.IntN(step))
			}
			if r.IntN(5000) == 0 {
				at += 1 << 17
			}
		}
		bm := roaring.BitmapOf(rows...)
		bm.RunOptimize()
		want, err := bm.ToBytes()
		if err != nil {
			t.Fatal(err)
		}
		if got := appendRoaring([]byte("before"), rows); !bytes.Equal(got[6:], want) {
			t.Fatalf("%d rows from %d: %d bytes, want %d, first difference at %d", len(rows), rows[0], len(got)-6, len(want), firstDiff(got[6:], want))
		}
	}
}

// TestOtherType: an index says nothing of a column that is read as another type,
// which may turn values into others, or into NULL.
func TestOtherType(t *testing.T) {
	x, err := Kind.Open(index.BytesSource(build(t, types.Of(types.Text), nil, "1", "x")), types.Of(types.Text))
	if err != nil {
		t.Fatal(err)
	}
	for _, l := range []predicate.Leaf{
		{Op: predicate.IsNull}, {Op: predicate.IsNotNull}, {Op: predicate.Eq, Args: []types.Datum{int64(2)}},
	} {
		l.Type = types.Of(types.Int4)
		if r, err := x.Test(&l); r != (index.Result{}) || err != nil {
			t.Errorf("operation %d: %+v, %v", l.Op, r, err)
		}
	}
}

// TestPrefixOfReplacement: what follows a prefix that ends in U+FFFD is not all that
// begins with what stands before it.
func TestPrefixOfReplacement(t *testing.T) {
	text := types.Of(types.Text)
	b, err := Kind.Create(text, index.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := b.Append(vec.FromDatums(text, []types.Datum{"a\uFFFD", "a\U0001F600", "a\uFFFDb"})); err != nil {
		t.Fatal(err)
	}
	raw, err := b.Finish()
	if err != nil {
		t.Fatal(err)
	}
	x, err := Kind.Open(index.BytesSource(raw), text)
	if err != nil {
		t.Fatal(err)
	}
	r, err := x.Test(&predicate.Leaf{Op: predicate.StartsWith, Type: text, Args: []types.Datum{"a\uFFFD"}})
	if err != nil || r.Rows == nil || fmt.Sprint(r.Rows.ToArray()) != "[0 2]" {
		t.Errorf("%v, %v", r, err)
	}
}
