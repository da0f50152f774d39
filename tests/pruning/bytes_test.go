package pruning

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/testkit/proof"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/format/parquet"
	"github.com/paimon-sql/paimon-sql/tests/session"
)

// meter counts the bytes that are read through a FileIO.
type meter struct {
	fileio.FileIO
	read, calls atomic.Int64
}

func (m *meter) Open(ctx context.Context, path string) (fileio.File, error) {
	f, err := m.FileIO.Open(ctx, path)
	if err != nil {
		return nil, err
	}
	return &metered{f, m}, nil
}

func (m *meter) ReadFile(ctx context.Context, path string) ([]byte, error) {
	b, err := m.FileIO.ReadFile(ctx, path)
	m.read.Add(int64(len(b)))
	m.calls.Add(1)
	return b, err
}

type metered struct {
	fileio.File
	m *meter
}

func (f *metered) ReadAt(p []byte, off int64) (int, error) {
	n, err := f.File.ReadAt(p, off)
	f.m.read.Add(int64(n))
	f.m.calls.Add(1)
	return n, err
}

// full says that the tables are as big as those of make bench-pruning.
var full = os.Getenv("PAIMON_SQL_BENCH_PRUNING") != ""

func scale(small, big int) int {
	if full {
		return big
	}
	return small
}

// warehouse is a directory whose reads are metered. Each query is asked of an engine
// that has read nothing before.
type warehouse struct {
	t   *testing.T
	dir string
}

func newWarehouse(t *testing.T) *warehouse {
	dir := t.TempDir()
	if d := os.Getenv("PAIMON_SQL_BENCH_DIR"); d != "" {
		var err error
		if dir, err = os.MkdirTemp(d, "pruning"); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { os.RemoveAll(dir) })
	}
	return &warehouse{t, filepath.Join(dir, "wh")}
}

// open opens an engine over the warehouse.
func (w *warehouse) open() (*session.Session, *meter) {
	if err := os.MkdirAll(w.dir, 0o755); err != nil {
		w.t.Fatal(err)
	}
	m := &meter{FileIO: fileio.NewLocal(w.dir)}
	return session.Reopen(w.t, m, w.dir), m
}

func (w *warehouse) run(s *session.Session, qs ...string) {
	w.t.Helper()
	for _, q := range qs {
		if _, err := s.Try(w.t.Context(), q); err != nil {
			w.t.Fatalf("%.200s: %v", q, err)
		}
	}
}

// asked is an answer with what it took.
type asked struct {
	answer string
	bytes  int64
	took   time.Duration
}

// ask asks a query, cold.
func (w *warehouse) ask(q string) asked {
	w.t.Helper()
	s, m := w.open()
	defer s.Shut()
	m.read.Store(0)
	began := time.Now()
	rows, err := s.Try(w.t.Context(), q)
	if err != nil {
		w.t.Fatalf("%s: %v", q, err)
	}
	return asked{fmt.Sprint(rows), m.read.Load(), time.Since(began)}
}

// prove adds a line of figures: got of all bytes, which must keep a limit, none = "".
func (w *warehouse) prove(what string, got, all asked, limit string, kept func(percent float64) bool) {
	w.t.Helper()
	share := percent(got.bytes, all.bytes)
	proof.Add(w.t, proof.Line{
		What: what, Got: size(got.bytes), Of: size(all.bytes), Share: fmt.Sprintf("%.2f %%", share),
		Took: got.took.Round(time.Millisecond / 10).String(), Limit: limit, Kept: limit == "" || kept(share),
	})
}

func percent(a, b int64) float64 { return 100 * float64(a) / float64(b) }

func size(n int64) string {
	switch {
	case n >= 10<<20:
		return strconv.FormatInt(n>>20, 10) + " MB"
	case n >= 10<<10:
		return strconv.FormatInt(n>>10, 10) + " KB"
	}
	return strconv.FormatInt(n, 10) + " B"
}

// unindexed is a query of a table without its file indexes.
func unindexed(q, table string) string {
	return strings.Replace(q, table+" where", table+" /*+ OPTIONS('file-index.read.enabled'='false') */ where", 1)
}

// TestBloomBytes asks for one of many random strings, in files whose ranges all overlap:
// of a table of little else, where a scan is what the index saves, and of one with a
// payload, which is not read without a match even where there is no index.
func TestBloomBytes(t *testing.T) {
	for _, payload := range []bool{false, true} {
		files, rows := scale(40, 1000), scale(2000, 20_000)
		if payload {
			files, rows = scale(20, 200), scale(2000, 10_000)
		}
		w := newWarehouse(t)
		s, _ := w.open()
		w.run(s, fmt.Sprintf(`create table ids (id text, payload text, n int) with ('bucket' = '-1', 'write-only' = 'true',
			'file-index.bloom-filter.columns' = 'id', 'file-index.bloom-filter.id.items' = '%d', 'file-index.bloom-filter.id.fpp' = '0.001')`, rows))
		what, text := "without a payload", "null"
		if payload {
			what, text = "with a payload", "md5('p%[1]d/' || i) || md5('q%[1]d/' || i) || md5('r%[1]d/' || i) || md5('s%[1]d/' || i)"
		}
		for f := range files {
			w.run(s, fmt.Sprintf("insert into ids select md5('%[1]d/' || i), "+text+", i %% 100 from generate_series(1, %[2]d) i", f, rows))
		}
		s.Shut()
		what = fmt.Sprintf("one of %d random strings in %d files, %s: ", files*rows, files, what)
		point := fmt.Sprintf("select n, payload from ids where id = md5('%d/77')", files/2)
		scan := w.ask("select count(n), max(payload), min(id) from ids")
		column := w.ask("select min(id) from ids")
		with, without := w.ask(point), w.ask(unindexed(point, "ids"))
		if with.answer != without.answer || with.answer == "[]" {
			t.Errorf("with the index %s, without %s", with.answer, without.answer)
		}
		w.prove(what+"a scan", scan, scan, "", nil)
		w.prove(what+"a scan of the strings", column, scan, "", nil)
		most, least := 1.0, 90.0
		if !full {
			most, least = 15, 60 // manifests and heads of indexes weigh more beside small files
		}
		w.prove(what+"a point query, bloom", with, scan, fmt.Sprintf("<= %v %%", most), func(p float64) bool { return p <= most })
		if payload {
			w.prove(what+"file-index.read.enabled = false", without, scan, "", nil)
			continue
		}
		w.prove(what+"file-index.read.enabled = false", without, scan, fmt.Sprintf("> %v %%", least), func(p float64) bool { return p > least })
	}
}

// TestBoxBytes asks for a box of 1 % of the area: of a table as written, sorted by one
// column, and along a curve.
func TestBoxBytes(t *testing.T) {
	rows, files := scale(400_000, 10_000_000), scale(40, 200)
	w := newWarehouse(t)
	s, _ := w.open()
	target := rows * 6 / files / 1024 // about 8 bytes make a row
	orders := []string{"written", "order", "zorder", "hilbert"}
	many := map[string]int{}
	for _, o := range orders {
		w.run(s, fmt.Sprintf("create table b_%s (x int, y int, v bigint, note text) with ('bucket' = '-1', 'write-only' = 'true', 'target-file-size' = '%d kb')", o, target))
		w.run(s, fmt.Sprintf("insert into b_%s select (i::bigint * 7919) %% 1000000, (i::bigint * 104729 + i / 1000) %% 1000003, i, 'n' || i %% 97 from generate_series(1, %d) i", o, rows))
		if o != "written" {
			by := "x,y"
			if o == "order" {
				by = "x"
			}
			w.run(s, fmt.Sprintf("call sys.compact('d.b_%s', order_strategy => '%s', order_by => '%s')", o, o, by))
		}
		n, err := s.Try(t.Context(), fmt.Sprintf(`select count(*) from "b_%s$files"`, o))
		if err != nil {
			t.Fatal(err)
		}
		if many[o], err = strconv.Atoi(n[0][0]); err != nil {
			t.Fatal(err)
		}
	}
	s.Shut()
	answer := ""
	for _, o := range orders {
		scan := w.ask("select count(x), sum(v), max(y) from b_" + o)
		got := w.ask(fmt.Sprintf("select count(*), sum(v), min(x), max(y) from b_%s where x between 450000 and 549999 and y between 450000 and 549999", o))
		if answer == "" {
			answer = got.answer
		}
		if got.answer != answer {
			t.Errorf("%s: %s, as written %s", o, got.answer, answer)
		}
		limit, most := "", 0.0
		if o == "zorder" || o == "hilbert" {
			most = map[bool]float64{true: 10, false: 40}[full]
			limit = fmt.Sprintf("<= %v %%", most)
		}
		if full && many[o] < 200 {
			t.Errorf("%s: %d files are too few", o, many[o])
		}
		how := map[string]string{"written": "as written", "order": "sorted by x"}[o]
		if how == "" {
			how = o + " of x, y"
		}
		w.prove(fmt.Sprintf("a box of 1 %% of the area, %d rows in %d files, %s", rows, many[o], how), got, scan, limit, func(p float64) bool { return p <= most })
	}
}

// TestBitmapBytes asks for the rows where three indexed columns agree: every value of
// each column is everywhere, but all three only meet in 1,000 rows, which stand in 20
// places. Only the pages with one of them are decoded, and that once, but for those of
// a, b and c in which two splits meet: splits begin where pages of the payload do.
func TestBitmapBytes(t *testing.T) {
	rows := scale(200_000, 10_000_000)
	clump, every := scale(5, 50), scale(200, 1000) // matches in a place, candidates from place to place
	w := newWarehouse(t)
	s, _ := w.open()
	w.run(s, `create table bm (a int, b int, c int, payload text) with ('bucket' = '-1', 'write-only' = 'true', 'file-index.bitmap.columns' = 'a,b,c')`)
	w.run(s, fmt.Sprintf(`insert into bm select i %% 20, i / 20 %% 25,
		case when i %% 20 <> 7 or i / 20 %% 25 <> 11 then i / 500 %% 20 when i / 500 %% %d < %d then 13 else 14 end,
		md5(i::text) || md5('x' || i) from generate_series(0, %d) i`, every, clump, rows-1))
	s.Shut()
	const q = "select payload from bm where a = 7 and b = 11 and c = 13"
	scan := w.ask("select count(a), sum(b), max(c), max(payload) from bm")
	with, without := w.ask(q), w.ask(unindexed(q, "bm"))
	matches, pages, all := w.matchPages()
	if want := rows / 500 / every * clump; matches != want || strings.Count(with.answer, "] [")+1 != want {
		t.Errorf("%d matches, %d are found, want %d", matches, strings.Count(with.answer, "] [")+1, want)
	}
	sorted := func(a string) []string { // splits are read at once: rows come in any order
		f := strings.Fields(strings.NewReplacer("[", "", "]", "").Replace(a))
		slices.Sort(f)
		return f
	}
	if !slices.Equal(sorted(with.answer), sorted(without.answer)) {
		t.Error("with the indexes there are other rows than without")
	}
	what := fmt.Sprintf("AND of three bitmap columns, %d matches in %d rows: ", matches, rows)
	most := scale(25, 15) // a small file is read in bigger parts
	w.prove(what+"bytes", with, scan, fmt.Sprintf("<= %d %%", most), func(p float64) bool { return p <= float64(most) })
	w.prove(what+"bytes, file-index.read.enabled = false", without, scan, "", nil)
	for _, question := range []struct{ what, q string }{{"pages decoded", q}, {"pages decoded, file-index.read.enabled = false", unindexed(q, "bm")}} {
		n := w.decoded(question.q)
		l := proof.Line{What: what + question.what, Got: strconv.Itoa(n), Of: fmt.Sprintf("%d, %d with matches", all, pages), Share: fmt.Sprintf("%.2f %%", percent(int64(n), int64(all)))}
		if question.q == q {
			meet := 3 * matches / clump
			l.Limit, l.Kept = fmt.Sprintf("<= %d + %d where splits meet", pages, meet), n <= pages+meet && n > 0
		}
		proof.Add(t, l)
	}
}

// TestLateBytes asks for the rows of a filter that neither statistics nor an index know,
// in files whose row groups are small: of the other columns the pages of those rows are
// read, and not the rest.
func TestLateBytes(t *testing.T) {
	w := newWarehouse(t)
	s, _ := w.open()
	const rows = 60_000
	w.run(s, "create table lm (n int, payload text, more text) with ('bucket' = '-1', 'write-only' = 'true', 'parquet.page.size' = '64 kb', 'metadata.stats-mode' = 'none')")
	// 7919 has no factor in common with the rows: every page holds small and great numbers.
	w.run(s, fmt.Sprintf("insert into lm select (i::bigint * 7919) %% %d, md5('a' || i) || md5('b' || i), md5('c' || i) || md5('d' || i) from generate_series(1, %[1]d) i", rows))
	s.Shut()
	scanned := w.ask("select count(n), max(payload), max(more) from lm").bytes
	filter := w.ask("select sum(n) from lm").bytes
	everywhere := w.ask("select count(n), max(payload), max(more) from lm where n % 3 = 1").bytes
	t.Logf("scan %s, filter's column %s, a third of the rows %s", size(scanned), size(filter), size(everywhere))
	if float64(everywhere) > 1.05*float64(scanned) {
		t.Errorf("a filter that leaves a third of the rows makes more be read: %s", size(everywhere))
	}
	if scanned > 8<<20 {
		t.Fatalf("a row group of %s is not what is tested", size(scanned))
	}
	for _, c := range []struct {
		where string
		share float64 // of what is not the filter's column, at most
	}{
		{"n % 60000 = 4321", 8},
		{"n % 20000 = 4321", 20},
		{"n % 60000 = -1", 1},
	} {
		got := w.ask("select payload, more from lm where " + c.where)
		want := w.ask("select payload, more from (select n + 0 as n, payload, more from lm offset 0) x where " + c.where)
		if got.answer != want.answer {
			t.Errorf("%s: %s, not %s", c.where, got.answer, want.answer)
		}
		share := percent(max(got.bytes-filter, 0), scanned-filter)
		t.Logf("%s: %s, %.1f %% of the other columns", c.where, size(got.bytes), share)
		if share > c.share {
			t.Errorf("%s: %.1f %% of the other columns are read, more than %v %%", c.where, share, c.share)
		}
	}
}

// decoded returns how many pages a query decodes.
func (w *warehouse) decoded(q string) int {
	w.t.Helper()
	s, _ := w.open()
	defer s.Shut()
	rows, err := s.Try(w.t.Context(), "explain (analyze, buffers, costs off, timing off, summary off) "+q)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, r := range rows {
		if _, n, ok := strings.Cut(r[0], "Pages Decoded: "); ok {
			k, err := strconv.Atoi(n)
			if err != nil {
				w.t.Fatal(err)
			}
			return k
		}
	}
	w.t.Fatalf("no word about pages in %v", rows)
	return 0
}

// matchPages looks into the data files of bm itself: how many rows are matches, how many
// pages of its columns hold one, and how many pages there are.
func (w *warehouse) matchPages() (matches, pages, all int) {
	w.t.Helper()
	ctx := w.t.Context()
	io := fileio.NewLocal(w.dir)
	names, err := filepath.Glob(filepath.Join(w.dir, "d.db", "bm", "bucket-0", "*.parquet"))
	if err != nil || len(names) == 0 {
		w.t.Fatal(names, err)
	}
	row := types.Schema{{ID: 0, Name: "a", Type: types.Of(types.Int4)}, {ID: 1, Name: "b", Type: types.Of(types.Int4)}, {ID: 2, Name: "c", Type: types.Of(types.Int4)}, {ID: 3, Name: "payload", Type: types.Of(types.Text)}}
	for _, name := range names {
		rel, err := filepath.Rel(w.dir, name)
		if err != nil {
			w.t.Fatal(err)
		}
		f, err := io.Open(ctx, filepath.ToSlash(rel))
		if err != nil {
			w.t.Fatal(err)
		}
		r, err := parquet.Format{}.Open(ctx, f, row)
		if err != nil {
			w.t.Fatal(err)
		}
		var at []int64
		cols, err := r.Columns(ctx, format.RowRange{From: 0, To: r.Rows()}, []int{0, 1, 2})
		if err != nil {
			w.t.Fatal(err)
		}
		for pos := int64(0); pos < r.Rows(); {
			n := int(min(r.Rows()-pos, 1<<16))
			got, err := cols.Read(ctx, n, nil)
			if err != nil {
				w.t.Fatal(err)
			}
			a, b, c := vec.ViewOf[int32](got[0]).V, vec.ViewOf[int32](got[1]).V, vec.ViewOf[int32](got[2]).V
			for i := range n {
				if a[i] == 7 && b[i] == 11 && c[i] == 13 {
					at = append(at, pos+int64(i))
				}
			}
			pos += int64(n)
		}
		matches += len(at)
		for c := range row {
			starts := r.Cuts([]int{c})
			all += len(starts) + 1
			last := -1
			for _, p := range at {
				page, found := slices.BinarySearch(starts, p)
				if found {
					page++
				}
				if page != last {
					pages, last = pages+1, page
				}
			}
		}
		_ = cols.Close()
		_ = r.Close()
	}
	return matches, pages, all
}
