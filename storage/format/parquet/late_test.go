package parquet

import (
	"bytes"
	"context"
	"fmt"
	"math/rand"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
)

var lateSchema = types.Schema{
	{ID: 0, Name: "a", Type: types.Of(types.Int8)},
	{ID: 1, Name: "s", Type: types.Of(types.Text)},
	{ID: 2, Name: "d", Type: types.Of(types.Text)},
	{ID: 3, Name: "l", Type: types.ArrayOf(types.Of(types.Int8))},
}

func lateValue(i int64) []types.Datum {
	var l types.Datum
	if i%7 > 0 {
		l = []types.Datum{i, nil, -i}[:i%4]
	}
	return []types.Datum{i, fmt.Sprintf("%032x", uint64(i)*0x9e3779b97f4a7c15), fmt.Sprintf("word %d", i*i%97), l}
}

// lateFile writes rows in row groups of about block bytes.
func lateFile(tb testing.TB, s types.Schema, rows, block int64, page, compression string) []byte {
	tb.Helper()
	var out bytes.Buffer
	w, err := Format{}.Create(context.Background(), &out, s, format.WriteOptions{Compression: compression, BlockSize: block, Options: map[string]string{"parquet.page.size": page}})
	if err != nil {
		tb.Fatal(err)
	}
	writeLate(tb, w, s, rows)
	return out.Bytes()
}

func writeLate(tb testing.TB, w format.Writer, s types.Schema, rows int64) {
	tb.Helper()
	for at := int64(0); at < rows; at += 10_000 {
		n := min(10_000, rows-at)
		data := make([][]types.Datum, len(s))
		for i := at; i < at+n; i++ {
			for c, v := range lateValue(i)[:len(s)] {
				data[c] = append(data[c], v)
			}
		}
		cols := make([]arrow.Array, len(s))
		for c := range s {
			cols[c] = vec.FromDatums(s[c].Type, data[c])
		}
		if err := w.Write(cols, int(n)); err != nil {
			tb.Fatal(err)
		}
	}
	if _, err := w.Close(); err != nil {
		tb.Fatal(err)
	}
}

// gapFile is a readFile that says what a request costs, and counts requests.
type gapFile struct {
	readFile
	gap   int64
	calls int
}

func (f *gapFile) Gap() int64 { return f.gap }
func (f *gapFile) ReadAt(b []byte, off int64) (int, error) {
	f.calls++
	return f.readFile.ReadAt(b, off)
}

// lateRead reads the rows that want names, window by window, and checks them. It returns
// the bytes and requests behind the footer and the page index.
func lateRead(t *testing.T, fm Format, file []byte, s types.Schema, from, to int64, gap int64, late bool, want func(i int64) bool, some func(from, to int64) bool) (int64, int) {
	t.Helper()
	ctx := context.Background()
	f := &gapFile{readFile: readFile{Reader: bytes.NewReader(file)}, gap: gap}
	rd, err := fm.Open(ctx, f, s)
	if err != nil {
		t.Fatal(err)
	}
	defer rd.Close()
	all := make([]int, len(s))
	for i := range all {
		all[i] = i
	}
	_ = rd.Cuts(all) // the page index
	head, calls := f.n, f.calls
	c, err := rd.Columns(ctx, format.RowRange{From: from, To: to}, all)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if some != nil {
		c.(format.Expecter).Expect(some, nil)
	}
	if late {
		c.(format.Expecter).Late()
	}
	for at := from; at < to; at += 8192 {
		n := min(8192, to-at)
		keep := []uint16{}
		for i := range n {
			if want(at + i) {
				keep = append(keep, uint16(i))
			}
		}
		rows := keep
		if len(keep) == int(n) {
			keep = nil
		}
		cols, err := c.Read(ctx, int(n), keep)
		if err != nil {
			t.Fatal(err)
		}
		for j, k := range rows {
			if len(rows) > 100 && j%31 > 0 {
				continue
			}
			for x, v := range lateValue(at + int64(k))[:len(s)] {
				if got := vec.DatumAt(cols[x], s[x].Type, j); fmt.Sprint(got) != fmt.Sprint(v) {
					t.Fatalf("row %d: %s is %v, not %v", at+int64(k), s[x].Name, got, v)
				}
			}
		}
	}
	return f.n - head, f.calls - calls
}

// TestLateBytes: of a row group below groupBytes, the pages are read in which the filter
// left a row, and no others; a filter that leaves rows everywhere costs few requests.
func TestLateBytes(t *testing.T) {
	const rows = 140_000
	file := lateFile(t, lateSchema, rows, 128<<20, "16 kb", "none")
	all := func(int64) bool { return true }
	scan, scans := lateRead(t, Format{}, file, lateSchema, 0, rows, 16<<10, false, all, nil)
	if scan < 6<<20 || scan > groupBytes {
		t.Fatalf("a scan reads %d bytes: not the case that is tested", scan)
	}
	for _, c := range []struct {
		name   string
		gap    int64
		want   func(i int64) bool
		bytes  float64 // share of a scan, at most
		calls  int     // at most
		before float64 // what is read when this is not known, at least, in such bytes
	}{
		{"one row", 0, func(i int64) bool { return i == 103_456 }, 0.03, 12, 20},
		{"one row at the end", 0, func(i int64) bool { return i == rows-1 }, 0.03, 12, 0},
		{"two windows", 0, func(i int64) bool { return i >= 50_000 && i < 60_000 }, 0.13, 60, 5},
		{"a row in every window", 0, func(i int64) bool { return i%8192 == 77 }, 0.25, 70, 4},
		{"a row in every page", 0, func(i int64) bool { return i%200 == 0 }, 1.02, 60, 0},
		{"all", 0, all, 1.02, 60, 0},
		{"gaps are cheap: one row", 16 << 10, func(i int64) bool { return i == 103_456 }, 0.04, 12, 20},
		{"gaps are cheap: all", 16 << 10, all, 1.02, 60, 0},
		{"a far store: every fourth page", 128 << 10, func(i int64) bool { return i/500%4 == 0 }, 1.02, 60, 0},
		{"none", 0, func(int64) bool { return false }, 0, 0, 0},
	} {
		n, calls := lateRead(t, Format{}, file, lateSchema, 0, rows, c.gap, true, c.want, nil)
		before, _ := lateRead(t, Format{}, file, lateSchema, 0, rows, c.gap, false, c.want, nil)
		t.Logf("%s: %d bytes (%.1f %%) in %d requests; not late %d; scan %d in %d", c.name, n, 100*float64(n)/float64(scan), calls, before, scan, scans)
		if float64(n) > c.bytes*float64(scan) || calls > c.calls {
			t.Errorf("%s: %d bytes in %d requests", c.name, n, calls)
		}
		if float64(before) < c.before*float64(n) {
			t.Errorf("%s: %d bytes without Late", c.name, before)
		}
	}
	// Rows that indexes rule out are not read ahead.
	half := func(from, to int64) bool { return from < 70_000 }
	n, _ := lateRead(t, Format{}, file, lateSchema, 0, rows, 0, true, func(i int64) bool { return i < 70_000 }, half)
	if float64(n) > 0.53*float64(scan) {
		t.Errorf("half of the rows: %d bytes", n)
	}
}

// TestLateRows: whatever is wanted, in files of one or many row groups, compressed or not,
// through a page cache or not, the rows are the right ones.
func TestLateRows(t *testing.T) {
	rng := rand.New(rand.NewSource(6))
	const rows = 60_000
	for _, block := range []int64{400 << 10, 128 << 20} {
		for _, compression := range []string{"none", "zstd"} {
			file := lateFile(t, lateSchema, rows, block, "16 kb", compression)
			for _, fm := range []Format{{}, {Pages: NewPageCache(1 << 20)}, {Pages: NewPageCache(64 << 20)}} {
				for range 12 {
					from := rng.Int63n(rows)
					to := from + rng.Int63n(rows-from) + 1
					share := []float64{0.0001, 0.01, 0.5, 1}[rng.Intn(4)]
					block := int64(1 + rng.Intn(20_000))
					salt := rng.Int63()
					want := func(i int64) bool {
						x := uint64(i/block*31+salt) * 0x9e3779b97f4a7c15
						return float64(x>>11)/(1<<53) < share
					}
					lateRead(t, fm, file, lateSchema, from, to, []int64{0, 16 << 10, 1 << 20}[rng.Intn(3)], true, want, nil)
				}
			}
		}
	}
}

// TestLateJump: a column without an offset index is read through a window of its own;
// pages that are passed over are not read.
func TestLateJump(t *testing.T) {
	const rows = 200_000
	s := lateSchema[:2]
	file := lateFile(t, s, rows, 128<<20, "256 kb", "none")
	rd, err := open(context.Background(), &gapFile{readFile: readFile{Reader: bytes.NewReader(file)}}, s)
	if err != nil {
		t.Fatal(err)
	}
	for g := range rd.meta.groups {
		for c := range rd.meta.groups[g].cols {
			rd.meta.groups[g].cols[c].offsetIndexLen = 0
		}
	}
	head := rd.Bytes()
	c, err := rd.Columns(context.Background(), format.RowRange{To: rows}, []int{1})
	if err != nil {
		t.Fatal(err)
	}
	c.(format.Expecter).Late()
	for at := int64(0); at < rows; at += 8000 {
		keep := []uint16{}
		if at == 160_000 {
			keep = append(keep, 5)
		}
		cols, err := c.Read(context.Background(), 8000, keep)
		if err != nil {
			t.Fatal(err)
		}
		if len(keep) > 0 && vec.DatumAt(cols[0], s[1].Type, 0) != lateValue(160_005)[1] {
			t.Fatal("a wrong row")
		}
	}
	if n := rd.Bytes() - head; n > int64(len(file))/4 {
		t.Errorf("%d of %d bytes are read", n, len(file))
	}
	_ = c.Close()
}

// BenchmarkLate reads a payload for what a filter leaves of a file on the local disk.
func BenchmarkLate(b *testing.B) {
	ctx := context.Background()
	const rows = 1 << 20
	s := lateSchema[:3]
	for _, compression := range []string{"none", "zstd"} {
		for _, block := range []int64{4 << 20, 128 << 20} {
			fs := fileio.NewLocal(b.TempDir())
			fw, err := fs.Create(ctx, "f.parquet")
			if err != nil {
				b.Fatal(err)
			}
			w, err := Format{}.Create(ctx, fw, s, format.WriteOptions{Compression: compression, BlockSize: block})
			if err != nil {
				b.Fatal(err)
			}
			writeLate(b, w, s, rows)
			if err := fw.Close(); err != nil {
				b.Fatal(err)
			}
			for _, m := range []struct {
				name string
				keep func(window int, i int) bool
			}{
				{"all", func(int, int) bool { return true }},
				{"half", func(_, i int) bool { return i%2 == 0 }},
				{"1in128", func(_, i int) bool { return i%128 == 0 }},
				{"windows1in2", func(w, i int) bool { return w*0x9e37>>4%2 == 0 && i%16 == 0 }},
				{"windows1in10", func(w, i int) bool { return w%10 == 3 && i%16 == 0 }},
				{"one", func(w, i int) bool { return w == 77 && i == 5 }},
			} {
				keeps := make([][]uint16, rows/8192)
				for w := range keeps {
					keeps[w] = []uint16{}
					for i := range 8192 {
						if m.keep(w, i) {
							keeps[w] = append(keeps[w], uint16(i))
						}
					}
					if len(keeps[w]) == 8192 {
						keeps[w] = nil
					}
				}
				for _, late := range []bool{false, true} {
					b.Run(fmt.Sprintf("%s/%dMB/%s/late=%v", compression, block>>20, m.name, late), func(b *testing.B) {
						var read int64
						for b.Loop() {
							n, err := benchLate(fs, s, keeps, late)
							if err != nil {
								b.Fatal(err)
							}
							read = n
						}
						b.ReportMetric(float64(read)/1024, "KB/read")
					})
				}
			}
		}
	}
}

func benchLate(fs fileio.FileIO, s types.Schema, keeps [][]uint16, late bool) (int64, error) {
	ctx := context.Background()
	f, err := fs.Open(ctx, "f.parquet")
	if err != nil {
		return 0, err
	}
	rd, err := Format{}.Open(ctx, f, s)
	if err != nil {
		return 0, err
	}
	defer rd.Close()
	c, err := rd.Columns(ctx, format.RowRange{To: rd.Rows()}, []int{0, 1, 2})
	if err != nil {
		return 0, err
	}
	defer c.Close()
	if late {
		c.(format.Expecter).Late()
	}
	for _, k := range keeps {
		if _, err := c.Read(ctx, 8192, k); err != nil {
			return 0, err
		}
	}
	return rd.Bytes(), nil
}
