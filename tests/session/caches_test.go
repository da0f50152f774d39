package session

import (
	"bytes"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/metrics"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// TestCaches: EXPLAIN (ANALYZE, BUFFERS) says what the caches had, metrics what they hold.
func TestCaches(t *testing.T) {
	s := Open(t, fileio.NewMem(), "mem")
	run := func(q string) string {
		rows, err := s.Try(t.Context(), q)
		if err != nil {
			t.Fatalf("%s: %v", q, err)
		}
		var b strings.Builder
		for _, r := range rows {
			b.WriteString(strings.Join(r, " ") + "\n")
		}
		return b.String()
	}
	run("create table t (a int, b text)")
	run("insert into t select i, 'text ' || i from generate_series(1, 10000) i")
	const explain = "explain (analyze, buffers, costs off, timing off, summary off) select sum(a), max(b) from t"
	first, second := run(explain), run(explain)
	if !strings.Contains(first, "Caches:\n") || !strings.Contains(first, "files: 0 hits 1 misses") {
		t.Errorf("first read:\n%s", first)
	}
	if !strings.Contains(second, "files: 1 hits 0 misses") || !strings.Contains(second, "manifests: ") {
		t.Errorf("second read:\n%s", second)
	}
	if out := run(strings.Replace(explain, "buffers, ", "", 1)); strings.Contains(out, "Caches") {
		t.Errorf("without BUFFERS:\n%s", out)
	}
	if out := run(strings.Replace(explain, "buffers, ", "buffers, format json, ", 1)); !strings.Contains(out, `"Caches": {`) {
		t.Errorf("JSON:\n%s", out)
	}
	var b bytes.Buffer
	metrics.Write(&b)
	for _, want := range []string{`paimon_sql_engine_cache_hits_total{cache="files"}`, `paimon_sql_engine_cache_bytes{cache="manifests"}`} {
		if !strings.Contains(b.String(), want) {
			t.Errorf("metrics lack %s", want)
		}
	}
}
