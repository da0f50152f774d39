package engine

import (
	"bytes"
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestDamagedStatistics: without its statistics file a table is planned and read as
// ever, the log says so once, and the next ANALYZE makes a new file.
func TestDamagedStatistics(t *testing.T) {
	dir := t.TempDir()
	var log bytes.Buffer
	open := func() (*Engine, *Session) {
		e, err := Open(context.Background(), Config{
			Warehouse: dir, AnyDatabase: true, TempDir: t.TempDir(), Log: slog.New(slog.NewTextHandler(&log, nil)),
			Settings: map[string]string{"paimon.maintenance": "off"},
		})
		if err != nil {
			t.Fatal(err)
		}
		return e, testSession(t, e)
	}
	e, s := open()
	for _, q := range []string{"CREATE TABLE t (a int, b text)", "INSERT INTO t SELECT g, 'b' || g % 3 FROM generate_series(1, 100) g", "ANALYZE t"} {
		if got := query(s, q); strings.Contains(got, "ERROR") {
			t.Fatalf("%s: %s", q, got)
		}
	}
	files, err := filepath.Glob(dir + "/default.db/t/statistics/*")
	if err != nil || len(files) != 1 {
		t.Fatal(files, err)
	}
	if err := os.WriteFile(files[0], []byte("{"), 0o600); err != nil {
		t.Fatal(err)
	}
	s.Close()
	if err := e.Close(); err != nil {
		t.Fatal(err)
	}
	e, s = open()   // what it has read is remembered no more
	defer e.Close() //nolint:errcheck // the test is over
	defer s.Close()
	for range 3 {
		if got := query(s, "SELECT count(*) FROM t WHERE b = 'b1'"); !strings.Contains(got, "34") {
			t.Fatal(got)
		}
	}
	if n := strings.Count(log.String(), "statistics are not made use of"); n != 1 {
		t.Errorf("the log says it %d times: %s", n, &log)
	}
	if got := query(s, "ANALYZE t"); strings.Contains(got, "ERROR") {
		t.Fatal(got)
	}
	if got := query(s, "SELECT n_distinct FROM pg_stats WHERE attname = 'b'"); !strings.Contains(got, "3") {
		t.Error(got)
	}
}
