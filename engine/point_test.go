package engine

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// twoEngines are two servers on one warehouse, as far as one process can be two.
func twoEngines(t *testing.T) (warehouse string, a, b *Session) {
	warehouse = t.TempDir()
	open := func() *Session {
		e, err := Open(context.Background(), Config{Warehouse: warehouse, AnyDatabase: true, MaxMemory: 1 << 28, TempDir: t.TempDir(),
			Settings: map[string]string{"paimon.maintenance": "off"}})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { e.Close() })
		return testSession(t, e)
	}
	return warehouse, open(), open()
}

// settle makes the directories of a table look as if they had been left alone.
func settle(t *testing.T, warehouse, table string, dirs ...string) {
	t.Helper()
	old := time.Now().Add(-time.Hour)
	for _, d := range dirs {
		if err := os.Chtimes(filepath.Join(warehouse, table, d), old, old); err != nil {
			t.Fatal(err)
		}
	}
}

// lookUp runs a prepared lookup from Bind to Sync.
func lookUp(t *testing.T, s *Session, p *Prepared, args ...types.Datum) string {
	t.Helper()
	got := pipelined(t, s, p, args...)
	if err := s.Sync(context.Background(), strings.Contains(got, "ERROR"), &recorder{s: s}); err != nil {
		t.Fatal(err)
	}
	return got
}

func prepare(t *testing.T, s *Session, name, sql string) *Prepared {
	t.Helper()
	p, err := s.Prepare(context.Background(), name, sql, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(context.Background(), false, &recorder{s: s}); err != nil {
		t.Fatal(err)
	}
	return p
}

// TestPointSeesOthers looks one key up again and again while another server changes
// the table in every way: a kept plan and a kept state must never show.
func TestPointSeesOthers(t *testing.T) {
	for _, mode := range []string{"directories", "files", "nothing"} {
		t.Run(mode, func(t *testing.T) {
			warehouse, s, o := twoEngines(t)
			expect(t, o, "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, s text)", "CREATE TABLE I")
			expect(t, o, "INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')", "INSERT 0 2 I")
			p := prepare(t, s, "p", "SELECT id, v, s FROM t WHERE id = $1")
			all := prepare(t, s, "all", "SELECT * FROM t WHERE id = $1")
			calm := func() {
				switch mode {
				case "directories":
					settle(t, warehouse, "default.db/t", "schema", "snapshot")
				case "files":
					settle(t, warehouse, "default.db/t", "schema")
				}
			}
			// Twice: the first may make the watch that the second relies on.
			check := func(want string) {
				t.Helper()
				for range 3 {
					if got := lookUp(t, s, p, int64(1)); got != want {
						t.Fatalf("got %q, want %q", got, want)
					}
				}
			}
			calm()
			check("(1, 10, a)\nSELECT 1")
			if st := p.impl.(*prepared).plan.point.state.Load(); mode != "nothing" && st.watch == nil {
				t.Fatal("the table is not watched")
			}
			expect(t, o, "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1 I")
			check("(1, 11, a)\nSELECT 1")
			calm()
			check("(1, 11, a)\nSELECT 1")
			expect(t, o, "DELETE FROM t WHERE id = 1", "DELETE 1 I")
			check("SELECT 0")
			calm()
			check("SELECT 0")
			// An id of a snapshot that is given anew.
			if got := query(o, "CALL sys.rollback_to('t', snapshot_id => 2)"); strings.Contains(got, "ERROR") {
				t.Fatal(got)
			}
			check("(1, 11, a)\nSELECT 1")
			calm()
			expect(t, o, "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1 I")
			check("(1, 12, a)\nSELECT 1")
			// Another definition.
			calm()
			expect(t, o, "ALTER TABLE t ADD COLUMN w int DEFAULT 7", "ALTER TABLE I")
			check("(1, 12, a)\nSELECT 1")
			if got := lookUp(t, s, all, int64(1)); got != "ERROR 0A000 cached plan must not change result type" {
				t.Fatal(got)
			}
			calm()
			expect(t, o, "ALTER TABLE t RENAME COLUMN v TO x", "ALTER TABLE I")
			check(`ERROR 42703 column "v" does not exist`)
			expect(t, o, "ALTER TABLE t RENAME COLUMN x TO v", "ALTER TABLE I")
			check("(1, 12, a)\nSELECT 1")
			// Another table of the name, in the same place and in an earlier schema.
			calm()
			expect(t, o, "DROP TABLE t", "DROP TABLE I")
			check(`ERROR 42P01 relation "t" does not exist`)
			expect(t, o, "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, s text)", "CREATE TABLE I")
			check("SELECT 0")
			expect(t, o, "INSERT INTO t VALUES (1, 1, 'new')", "INSERT 0 1 I")
			check("(1, 1, new)\nSELECT 1")
			calm()
			check("(1, 1, new)\nSELECT 1")
			expect(t, o, "CREATE SCHEMA tester", "CREATE SCHEMA I")
			check("(1, 1, new)\nSELECT 1")
			expect(t, o, "CREATE TABLE tester.t (id bigint PRIMARY KEY, v bigint, s text)", "CREATE TABLE I")
			expect(t, o, "INSERT INTO tester.t VALUES (1, 1, 'mine')", "INSERT 0 1 I")
			check("(1, 1, mine)\nSELECT 1")
			expect(t, s, "SET search_path = public", "SET I")
			check("(1, 1, new)\nSELECT 1")
			calm()
			check("(1, 1, new)\nSELECT 1")
			expect(t, o, "ALTER TABLE public.t RENAME TO u", "ALTER TABLE I")
			check(`ERROR 42P01 relation "t" does not exist`)
		})
	}
}

// TestPointInTransactions: a lookup shows the transaction's own writes, and one
// snapshot where the isolation level asks for it.
func TestPointInTransactions(t *testing.T) {
	_, s, o := twoEngines(t)
	expect(t, s, "CREATE TABLE t (id bigint PRIMARY KEY, v bigint, s text)", "CREATE TABLE I")
	expect(t, s, "INSERT INTO t VALUES (1, 10, 'a')", "INSERT 0 1 I")
	p := prepare(t, s, "p", "SELECT id, v, s FROM t WHERE id = $1")
	run := func(want string) {
		t.Helper()
		if got := lookUp(t, s, p, int64(1)); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	run("(1, 10, a)\nSELECT 1")
	expect(t, s, "BEGIN", "BEGIN T")
	run("(1, 10, a)\nSELECT 1")
	expect(t, s, "UPDATE t SET v = 11 WHERE id = 1", "UPDATE 1 T")
	run("(1, 11, a)\nSELECT 1")
	expect(t, s, "DELETE FROM t WHERE id = 1", "DELETE 1 T")
	run("SELECT 0")
	expect(t, s, "ROLLBACK", "ROLLBACK I")
	run("(1, 10, a)\nSELECT 1")
	expect(t, s, "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN T")
	run("(1, 10, a)\nSELECT 1")
	expect(t, o, "UPDATE t SET v = 12 WHERE id = 1", "UPDATE 1 I")
	run("(1, 10, a)\nSELECT 1")
	expect(t, s, "COMMIT", "COMMIT I")
	run("(1, 12, a)\nSELECT 1")
	expect(t, s, "BEGIN", "BEGIN T")
	run("(1, 12, a)\nSELECT 1")
	expect(t, o, "UPDATE t SET v = 13 WHERE id = 1", "UPDATE 1 I")
	run("(1, 13, a)\nSELECT 1")
	expect(t, s, "ALTER TABLE t DROP COLUMN s", "ALTER TABLE T")
	run(`ERROR 42703 column "s" does not exist`)
	expect(t, s, "ROLLBACK", "ROLLBACK I")
	run("(1, 13, a)\nSELECT 1")
	// NULL is no key, and a portal with a limit stops after its rows.
	if got := lookUp(t, s, p, nil); got != "SELECT 0" {
		t.Fatal(got)
	}
	ctx := context.Background()
	pt, err := s.Bind(ctx, "", p, []types.Datum{int64(1)}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i, want := range []string{"", "SELECT 0"} {
		if tag, err := s.Run(ctx, pt, 1, discard{}); err != nil || tag != want {
			t.Fatalf("run %d: %q %v", i, tag, err)
		}
	}
	if err := s.Sync(ctx, false, discard{}); err != nil {
		t.Fatal(err)
	}
	expect(t, s, "SET paimon.scan_version = '1'", "SET I")
	run("(1, 10, a)\nSELECT 1")
	expect(t, s, "RESET paimon.scan_version", "RESET I")
	run("(1, 13, a)\nSELECT 1")
}

// TestLookupAnalyzed: EXPLAIN ANALYZE says what was looked up.
func TestLookupAnalyzed(t *testing.T) {
	_, s, _ := twoEngines(t)
	expect(t, s, "CREATE TABLE t (id bigint PRIMARY KEY, v bigint)", "CREATE TABLE I")
	expect(t, s, "INSERT INTO t SELECT g, g FROM generate_series(1, 500) g", "INSERT 0 500 I")
	got := query(s, "EXPLAIN (ANALYZE, COSTS off, TIMING off) SELECT v FROM t WHERE id IN (5, 5, 9, 1000) AND v < 9")
	for _, l := range []string{
		"Index Scan using t_pkey on t (actual rows=1 loops=1)", "  Index Cond: (id = ANY ('{5,5,9,1000}'::bigint[]))", "  Filter: (v < 9)",
		"  Keys: 3", "  Rows Removed by Filter: 1",
	} {
		if !strings.Contains(got, "("+l+")") {
			t.Errorf("%s\nlacks %s", got, l)
		}
	}
}
