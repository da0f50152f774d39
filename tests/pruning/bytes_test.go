package pruning

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
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

// ask returns the answer of a query and the bytes that it reads, cold.
func (w *warehouse) ask(q string, before ...string) (answer string, bytes int64, took time.Duration) {
	w.t.Helper()
	s, m := w.open()
	defer s.Shut()
	w.run(s, before...)
	m.read.Store(0)
	began := time.Now()
	rows, err := s.Try(w.t.Context(), q)
	if err != nil {
		w.t.Fatalf("%s: %v", q, err)
	}
	return fmt.Sprint(rows), m.read.Load(), time.Since(began)
}

// TestBloomBytes asks for one of many random strings, in files whose ranges all overlap.
func TestBloomBytes(t *testing.T) {
	files, rows := scale(40, 1000), scale(2000, 10000)
	w := newWarehouse(t)
	s, _ := w.open()
	w.run(s, fmt.Sprintf(`create table ids (id text, payload text, n bigint) with ('bucket' = '-1', 'write-only' = 'true',
		'file-index.bloom-filter.columns' = 'id', 'file-index.bloom-filter.id.items' = '%d', 'file-index.bloom-filter.id.fpp' = '0.001')`, rows))
	for f := range files {
		w.run(s, fmt.Sprintf("insert into ids select md5('%d/' || i), md5('p%[1]d/' || i) || md5('q%[1]d/' || i) || md5('r%[1]d/' || i) || md5('s%[1]d/' || i), i from generate_series(1, %d) i", f, rows))
	}
	s.Shut()
	point := fmt.Sprintf("select n, payload from ids where id = md5('%d/77')", files/2)
	_, scanned, whole := w.ask("select count(n), max(payload), min(id) from ids")
	got, bytes, took := w.ask(point)
	off, bytesOff, tookOff := w.ask(strings.Replace(point, "ids where", "ids /*+ OPTIONS('file-index.read.enabled'='false') */ where", 1))
	if got != off {
		t.Errorf("with the index %s, without %s", got, off)
	}
	t.Logf("bloom point query, %d files of %d rows: scan %s in %v; with the index %s (%.2f %%) in %v; without it %s (%.0f %%) in %v",
		files, rows, size(scanned), whole, size(bytes), percent(bytes, scanned), took, size(bytesOff), percent(bytesOff, scanned), tookOff)
	limit := 1.0
	if !full {
		limit = 6 // manifests weigh more beside small files
	}
	if percent(bytes, scanned) > limit {
		t.Errorf("the point query reads %.2f %% of a scan, more than %v %%", percent(bytes, scanned), limit)
	}
	if got == "[]" {
		t.Error("the row was not found")
	}
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

// TestBoxBytes asks for a box of 1 % of the area: of a table as written, sorted by one
// column, and along a curve.
func TestBoxBytes(t *testing.T) {
	rows, files := scale(400_000, 10_000_000), scale(64, 220)
	w := newWarehouse(t)
	s, _ := w.open()
	target := rows * 26 / files / 1024
	bytes := map[string]int64{}
	answers := map[string]string{}
	box := "select count(*), sum(v), min(x), max(y) from %s where x between 450000 and 549999 and y between 450000 and 549999"
	orders := []string{"written", "order", "zorder", "hilbert"}
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
		t.Logf("%s: %s files", o, n[0][0])
	}
	s.Shut()
	_, scanned, _ := w.ask("select count(x), sum(v), max(y) from b_written")
	for _, o := range orders {
		var took time.Duration
		answers[o], bytes[o], took = w.ask(fmt.Sprintf(box, "b_"+o))
		t.Logf("box of 1 %% of the area, %d rows, %s: %s of %s (%.1f %%) in %v", rows, o, size(bytes[o]), size(scanned), percent(bytes[o], scanned), took)
		if answers[o] != answers["written"] {
			t.Errorf("%s: %s, as written %s", o, answers[o], answers["written"])
		}
	}
	for _, o := range []string{"zorder", "hilbert"} {
		if limit := map[bool]float64{true: 10, false: 40}[full]; percent(bytes[o], scanned) > limit {
			t.Errorf("%s: the box reads %.1f %% of the table, more than %v %%", o, percent(bytes[o], scanned), limit)
		}
	}
}

// TestBitmapBytes asks for the rows where three indexed columns agree.
func TestBitmapBytes(t *testing.T) {
	rows := scale(200_000, 10_000_000)
	w := newWarehouse(t)
	s, _ := w.open()
	w.run(s, `create table bm (a int, b int, c int, payload text) with ('bucket' = '-1', 'write-only' = 'true', 'file-index.bitmap.columns' = 'a,b,c')`)
	// Every value of each column is everywhere; all three agree on one row of 10,000, in a
	// tenth of the table.
	w.run(s, fmt.Sprintf(`insert into bm select i %% 20, i / 20 %% 25, case when i %% 20 = 7 and i / 20 %% 25 = 11 and i / %d <> 3 then 14 else i / 500 %% 20 end,
		md5(i::text) || md5('x' || i) from generate_series(1, %d) i`, rows/10, rows))
	s.Shut()
	q := "select count(*), min(payload), max(payload) from bm where a = 7 and b = 11 and c = 13"
	_, scanned, whole := w.ask("select count(a), sum(b), max(c), max(payload) from bm")
	got, bytes, took := w.ask(q)
	off, bytesOff, tookOff := w.ask(strings.Replace(q, "bm where", "bm /*+ OPTIONS('file-index.read.enabled'='false') */ where", 1))
	if got != off {
		t.Errorf("with the indexes %s, without %s", got, off)
	}
	t.Logf("AND of three bitmaps, %d rows, answer %.30s...: scan %s in %v; with the indexes %s (%.1f %%) in %v; without %s (%.1f %%) in %v",
		rows, got, size(scanned), whole, size(bytes), percent(bytes, scanned), took, size(bytesOff), percent(bytesOff, scanned), tookOff)
	if bytes > bytesOff/2 {
		t.Errorf("with the indexes %d bytes are read, without them %d: matches stand in a tenth of the table", bytes, bytesOff)
	}
}
