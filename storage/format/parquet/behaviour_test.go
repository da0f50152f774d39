package parquet

import (
	"bytes"
	"context"
	"math"
	"math/rand"
	"os"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/formattest"
)

// writeInts writes n ascending integers and a text column with few values.
func writeInts(t testing.TB, n int, o format.WriteOptions) (types.Schema, []byte) {
	s := types.Schema{{ID: 0, Name: "i", Type: types.Of(types.Int8).WithNotNull(true)}, {ID: 1, Name: "s", Type: types.Of(types.Text)},
		{ID: 2, Name: "f", Type: types.Of(types.Float8)}, {ID: 3, Name: "a", Type: types.ArrayOf(types.Of(types.Int4))}}
	v, f, off, a := make([]int64, n), make([]float64, n), make([]int32, n+1), make([]int32, n)
	so, sd := make([]int32, n+1), []byte{}
	for i := range v {
		v[i], f[i], a[i], off[i+1] = int64(i)*2, float64(i), int32(i), int32(i+1)
		sd = append(sd, "word "...)
		sd = append(sd, byte('a'+i/1000%26))
		so[i+1] = int32(len(sd))
	}
	cols := []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int64, v, nil), vec.MakeBytes(arrow.BinaryTypes.String, so, sd, nil),
		vec.Make(arrow.PrimitiveTypes.Float64, f, nil),
		vec.MakeList(arrow.ListOf(arrow.PrimitiveTypes.Int32), off, vec.Make(arrow.PrimitiveTypes.Int32, a, nil), nil)}
	var b bytes.Buffer
	w, err := create(&b, s, o)
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write(cols, n); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return s, b.Bytes()
}

// TestUnwantedPagesStayClosed damages every page but those with kept rows: they
// must be read all the same.
func TestUnwantedPagesStayClosed(t *testing.T) {
	s, b := writeInts(t, 10000, format.WriteOptions{Compression: "zstd", Options: map[string]string{"parquet.page.row.count.limit": "1000", "parquet.enable.dictionary": "false"}})
	ctx := context.Background()
	probe, err := open(ctx, newMemFile("f", b), s)
	if err != nil {
		t.Fatal(err)
	}
	for col := range s {
		leaf := probe.leavesOf([]int{col})[0].col
		locs, err := probe.offsetIndex(ctx, 0, leaf)
		if err != nil || len(locs) != 10 {
			t.Fatalf("column %d has %d pages: %v", col, len(locs), err)
		}
		bad := bytes.Clone(b)
		for i, l := range locs {
			if i != 3 && i != 7 {
				for k := l.off; k < l.off+int64(l.size); k++ {
					bad[k] ^= 0x5a
				}
			}
		}
		r, err := open(ctx, newMemFile("f", bad), s)
		if err != nil {
			t.Fatal(err)
		}
		cr, err := r.Columns(ctx, format.RowRange{From: 500, To: 10000}, []int{col})
		if err != nil {
			t.Fatal(err)
		}
		got := 0
		for at := 500; at < 10000; at += 500 {
			keep := []uint16{}
			if p := at / 1000; p == 3 || p == 7 {
				keep = []uint16{0, 17, 499}
			}
			cols, err := cr.Read(ctx, 500, keep)
			if err != nil {
				t.Fatalf("column %d rows %d: %v", col, at, err)
			}
			if cols[0].Len() != len(keep) {
				t.Fatalf("%d rows, want %d", cols[0].Len(), len(keep))
			}
			if a, ok := cols[0].(*array.Int64); ok && len(keep) > 0 && a.Value(1) != int64(at+17)*2 {
				t.Fatalf("row %d is %d", at+17, a.Value(1))
			}
			got += len(keep)
		}
		if got != 12 {
			t.Fatalf("%d rows kept, want 12", got)
		}
		if _, err := r.Columns(ctx, format.RowRange{To: 10000}, []int{col}); err != nil {
			t.Fatal(err)
		}
		cr, _ = r.Columns(ctx, format.RowRange{To: 1000}, []int{col})
		if _, err := cr.Read(ctx, 1000, nil); !expected(err) || err == nil {
			t.Fatalf("reading a damaged page: %v", err)
		}
	}
}

// TestPruneSkips: what statistics can rule out is ruled out.
func TestPruneSkips(t *testing.T) {
	s, b := writeInts(t, 10000, format.WriteOptions{BlockSize: 1 << 30, Options: map[string]string{"parquet.page.row.count.limit": "1000", "parquet.bloom.filter.enabled#i": "true", "parquet.enable.dictionary#i": "false"}})
	r, err := open(context.Background(), newMemFile("f", b), s)
	if err != nil {
		t.Fatal(err)
	}
	leaf := func(col int, op predicate.Op, args ...types.Datum) predicate.Node {
		return &predicate.Leaf{Op: op, Col: col, Type: s[col].Type, Args: args}
	}
	for _, c := range []struct {
		name string
		p    predicate.Node
		want []format.RowRange
	}{
		{"all", nil, []format.RowRange{{From: 0, To: 10000}}},
		{"range", leaf(0, predicate.Between, int64(2500), int64(4100)), []format.RowRange{{From: 1000, To: 3000}}},
		{"negated range", &predicate.Not{Arg: leaf(0, predicate.GtEq, int64(2000))}, []format.RowRange{{From: 0, To: 1000}}},
		{"two ends", &predicate.Or{Args: []predicate.Node{leaf(0, predicate.Lt, int64(10)), leaf(0, predicate.Gt, int64(19990))}},
			[]format.RowRange{{From: 0, To: 1000}, {From: 9000, To: 10000}}},
		{"absent in bounds, by bloom filter", leaf(0, predicate.Eq, int64(2501)), nil},
		{"present", leaf(0, predicate.Eq, int64(2500)), []format.RowRange{{From: 1000, To: 2000}}},
		{"no NULLs", leaf(0, predicate.IsNull), nil},
		{"prefix", leaf(1, predicate.StartsWith, "word c"), []format.RowRange{{From: 2000, To: 3000}}},
		{"absent in bounds, by dictionary", leaf(1, predicate.In, "word cc", "word dd"), nil},
		{"floats of a trusted writer", leaf(2, predicate.Gt, 9000.5), []format.RowRange{{From: 9000, To: 10000}}},
		{"NaN", leaf(2, predicate.Eq, math.NaN()), nil},
		{"nested", leaf(3, predicate.IsNull), []format.RowRange{{From: 0, To: 10000}}},
		{"and", &predicate.And{Args: []predicate.Node{leaf(0, predicate.Lt, int64(6000)), leaf(1, predicate.GtEq, "word c")}}, []format.RowRange{{From: 2000, To: 3000}}},
	} {
		var n format.Counters
		got, err := r.Prune(context.Background(), c.p, &n)
		if err != nil {
			t.Fatal(err)
		}
		same := len(got) == len(c.want)
		for i := range got {
			same = same && got[i] == c.want[i]
		}
		if !same {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
		if len(c.want) == 0 && n.RowGroupsSkipped != 1 {
			t.Errorf("%s: counters %+v", c.name, n)
		}
	}
}

// TestFixturePruning: on files of Java's, nothing that matches is pruned.
func TestFixturePruning(t *testing.T) {
	seed := int64(random.Seed(t))
	rng := rand.New(rand.NewSource(seed))
	ctx := context.Background()
	skipped := int64(0)
	for i, p := range parquetFiles(t) {
		if i%3 != int(seed&0xffff)%3 {
			continue
		}
		b, err := os.ReadFile(p)
		if err != nil {
			t.Fatal(err)
		}
		probe, err := open(ctx, newMemFile(p, b), nil)
		if err != nil {
			t.Fatal(err)
		}
		s := schemaOfFile(probe.root)
		scalars := false
		want := make([]int, len(s))
		for i := range s {
			want[i] = i
			scalars = scalars || formattest.Scalar(s[i].Type)
		}
		r, err := open(ctx, newMemFile(p, b), s)
		if err != nil {
			t.Fatal(err)
		}
		if !scalars || r.Rows() == 0 || r.Rows() > 5000 {
			continue
		}
		cr, err := r.Columns(ctx, format.RowRange{To: r.Rows()}, want)
		if err != nil {
			t.Fatal(err)
		}
		cols, err := cr.Read(ctx, int(r.Rows()), nil)
		if err != nil {
			t.Fatal(err)
		}
		tab := &formattest.Table{Schema: s, Cols: cols, N: int(r.Rows())}
		if err := formattest.CheckPrune(rng, r, tab, s, 0, 20); err != nil {
			t.Errorf("%s: %v", p, err)
		}
		var c format.Counters
		if _, err := r.Prune(ctx, &predicate.Leaf{Op: predicate.IsNull, Col: 0, Type: s[0].Type}, &c); err != nil {
			t.Fatal(err)
		}
		skipped += c.RowsSkipped
	}
	if skipped == 0 {
		t.Error("nothing was ever pruned")
	}
}

// TestFewReads: neighbouring chunks come in one read, wide files in windows.
func TestFewReads(t *testing.T) {
	s, b := writeInts(t, 200000, format.WriteOptions{Compression: "none", BlockSize: 1 << 30})
	f := newMemFile("f", b)
	ctx := context.Background()
	r, err := open(ctx, f, s)
	if err != nil {
		t.Fatal(err)
	}
	f.reads = 0
	read := func(rr format.RowRange, want []int) {
		cr, err := r.Columns(ctx, rr, want)
		if err != nil {
			t.Fatal(err)
		}
		for at := rr.From; at < rr.To; at += 8192 {
			if _, err := cr.Read(ctx, int(min(8192, rr.To-at)), nil); err != nil {
				t.Fatal(err)
			}
		}
		cr.Close()
	}
	read(format.RowRange{To: r.Rows()}, []int{0, 1, 2, 3})
	if f.reads > 3 {
		t.Errorf("%d reads for neighbouring chunks of %d bytes", f.reads, len(b))
	}
	if n := r.Bytes(); n > int64(len(b))+tailBytes {
		t.Errorf("%d bytes read of %d", n, len(b))
	}
	// A part of one column takes its pages only.
	before := r.Bytes()
	read(format.RowRange{From: 100000, To: 120000}, []int{0})
	if n := r.Bytes() - before; n > 4*20000*8 {
		t.Errorf("%d bytes read for 20,000 integers", n)
	}
}

// TestBigWindows reads a row group that is too big for one run: every column
// through a window of its own, from any row.
func TestBigWindows(t *testing.T) {
	const n = 700000
	s, b := writeInts(t, n, format.WriteOptions{Compression: "none", BlockSize: 1 << 30, Options: map[string]string{"parquet.enable.dictionary": "false"}})
	if len(b) < 2*groupBytes {
		t.Fatalf("the file has %d bytes only", len(b))
	}
	ctx := context.Background()
	for _, from := range []int64{0, 123457, n - 5} {
		r, err := open(ctx, newMemFile("f", b), s)
		if err != nil {
			t.Fatal(err)
		}
		cr, err := r.Columns(ctx, format.RowRange{From: from, To: n}, []int{3, 0, 1})
		if err != nil {
			t.Fatal(err)
		}
		for at := from; at < n; at += 60000 {
			cols, err := cr.Read(ctx, int(min(60000, n-at)), nil)
			if err != nil {
				t.Fatal(err)
			}
			l, v := cols[0].(*array.List), cols[1].(*array.Int64)
			e := l.ListValues().(*array.Int32)
			for i := 0; i < v.Len(); i++ {
				x, _ := l.ValueOffsets(i)
				if v.Value(i) != 2*(at+int64(i)) || int64(e.Value(int(x))) != at+int64(i) {
					t.Fatalf("row %d is %d and %d", at+int64(i), v.Value(i), e.Value(int(x)))
				}
			}
		}
		cr.Close()
	}
}

// TestInt96 covers Java's form of instants before 1970 and the range of Arrow.
func TestInt96(t *testing.T) {
	put := func(days int32, nanos int64) []byte {
		var b [12]byte
		for i := 0; i < 8; i++ {
			b[i] = byte(nanos >> (8 * i))
		}
		for i := 0; i < 4; i++ {
			b[8+i] = byte((days + julianEpoch) >> (8 * i))
		}
		return b[:]
	}
	for _, c := range []struct {
		days  int32
		nanos int64
		want  int64
		bad   bool
	}{
		{0, 0, 0, false},
		{0, -1, -1, false},
		{-1, nanosPerDay - 1, -1, false},
		{19000, 12345, 19000*nanosPerDay + 12345, false},
		{106751, 85636854775807, math.MaxInt64, false},
		{106751, 85636854775808, 0, true},
		{-106752, 763145224192, math.MinInt64, false},
		{-106752, 763145224191, 0, true},
		{math.MaxInt32 - julianEpoch, 0, 0, true},
	} {
		var got [1]int64
		err := convI96ns(got[:], put(c.days, c.nanos))
		if (err != nil) != c.bad || err == nil && got[0] != c.want {
			t.Errorf("%d days %d ns: got %d, %v", c.days, c.nanos, got[0], err)
		}
	}
}

// TestHybridPieces reads one stream of runs in pieces of every kind.
func TestHybridPieces(t *testing.T) {
	seed := int64(random.Seed(t))
	rng := rand.New(rand.NewSource(seed))
	for i := 0; i < 2000; i++ {
		w := uint(rng.Intn(33))
		n := rng.Intn(3000)
		v := make([]uint32, n)
		for i := 0; i < n; {
			x := uint32(rng.Uint64() & (1<<w - 1))
			k := 1
			if rng.Intn(3) == 0 {
				k = 1 + rng.Intn(40)
			}
			for ; k > 0 && i < n; k-- {
				v[i] = x
				i++
			}
		}
		var h hybrid
		h.init(appendHybrid(nil, v, w), w)
		for at := 0; at < n; {
			k := min(1+rng.Intn(300), n-at)
			got := make([]int32, k)
			var err error
			switch rng.Intn(3) {
			case 0:
				err = h.decode(got)
				for j, x := range got {
					if uint32(x) != v[at+j] {
						t.Fatalf("width %d value %d: got %d, want %d", w, at+j, x, v[at+j])
					}
				}
			case 1:
				err = h.skip(k)
			default:
				var sel []int32
				for j := 0; j < k; j++ {
					if rng.Intn(4) == 0 {
						sel = append(sel, int32(j))
					}
				}
				err = h.pick(got, sel, k)
				for j, x := range sel {
					if uint32(got[j]) != v[at+int(x)] {
						t.Fatalf("width %d picked %d: got %d, want %d", w, at+int(x), got[j], v[at+int(x)])
					}
				}
			}
			if err != nil {
				t.Fatalf("width %d of %d at %d: %v", w, n, at, err)
			}
			at += k
		}
	}
}

// TestWideNumericsPlain: numerics of more than 18 digits, which are of fixed length, have
// neither a dictionary nor a bloom filter, in which Java 1.4 would look for other bytes.
func TestWideNumericsPlain(t *testing.T) {
	s := types.Schema{{ID: 0, Name: "w", Type: types.NumericOf(30, 4)}, {ID: 1, Name: "n", Type: types.NumericOf(18, 4)}}
	const rows = 1000
	wide := make([]types.Datum, rows)
	narrow := make([]types.Datum, rows)
	for i := range rows {
		d := &numeric.Dec{Scale: 4}
		d.Coef.SetInt64(int64(i % 5))
		wide[i], narrow[i] = d, d
	}
	var b bytes.Buffer
	w, err := Format{}.Create(context.Background(), &b, s, format.WriteOptions{Options: map[string]string{"parquet.bloom.filter.enabled": "true"}})
	if err != nil {
		t.Fatal(err)
	}
	if err := w.Write([]arrow.Array{vec.FromDatums(s[0].Type, wide), vec.FromDatums(s[1].Type, narrow)}, rows); err != nil {
		t.Fatal(err)
	}
	if _, err := w.Close(); err != nil {
		t.Fatal(err)
	}
	r, err := open(context.Background(), newMemFile("f", b.Bytes()), s)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []bool{false, true} {
		c := r.meta.groups[0].cols[i]
		if c.dictOff > 0 != want || c.bloomOff > 0 != want {
			t.Errorf("column %d: dictionary at %d, bloom filter at %d", i, c.dictOff, c.bloomOff)
		}
	}
}
