package engine

import (
	"context"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// cutTables are tables (p, k, n, s) whose rows' places a formula does not give, or
// no longer gives.
var cutTables = []struct{ name, ddl, alter string }{
	{"cross", "CREATE TABLE t (p int, k int PRIMARY KEY, n int, s text) PARTITIONED BY (p) WITH ('bucket'='-1','dynamic-bucket.target-row-num'='2')", ""},
	{"cross vectors", "CREATE TABLE t (p int, k int PRIMARY KEY, n int, s text) PARTITIONED BY (p) WITH ('bucket'='-1','dynamic-bucket.target-row-num'='2','deletion-vectors.enabled'='true')", ""},
	{"cross partial-update", "CREATE TABLE t (p int, k int PRIMARY KEY, n int, s text) PARTITIONED BY (p) WITH ('bucket'='-1','merge-engine'='partial-update','partial-update.remove-record-on-delete'='true')", ""},
	{"dynamic vectors", "CREATE TABLE t (p int, k int, n int, s text, PRIMARY KEY (p, k)) PARTITIONED BY (p) WITH ('bucket'='-1','dynamic-bucket.target-row-num'='2','deletion-vectors.enabled'='true')", ""},
	{"fixed vectors", "CREATE TABLE t (p int, k int, n int, s text, PRIMARY KEY (p, k)) PARTITIONED BY (p) WITH ('bucket'='2','deletion-vectors.enabled'='true')", ""},
	{"another number of buckets", "CREATE TABLE t (p int, k int, n int, s text, PRIMARY KEY (p, k)) PARTITIONED BY (p) WITH ('bucket'='2')", "ALTER TABLE t SET ('bucket'='3')"},
}

// cutStatements are cut at their calls. A statement of which a table has no use is an
// error there when nothing is cut, and left out.
var cutStatements = []string{
	"UPDATE t SET n = n + 1, s = 'updated' WHERE k IN (1, 3, 5)",
	"UPDATE t SET p = 2 - p, n = n + 1 WHERE k < 6",
	"DELETE FROM t WHERE k IN (0, 1, 4)",
	"MERGE INTO t USING (VALUES (1, 0, 50), (0, 1, 51), (2, 2, 52), (1, 40, 53)) x (p, k, n) ON t.k = x.k AND t.p = x.p WHEN MATCHED AND x.n = 51 THEN DELETE WHEN MATCHED THEN UPDATE SET n = x.n WHEN NOT MATCHED THEN INSERT (p, k, n, s) VALUES (x.p, x.k, x.n, 'merged')",
	"MERGE INTO t USING (VALUES (1, 0, 50), (0, 1, 51), (2, 2, 52), (1, 40, 53)) x (p, k, n) ON t.k = x.k WHEN MATCHED AND x.n = 51 THEN DELETE WHEN MATCHED THEN UPDATE SET n = x.n, p = x.p WHEN NOT MATCHED THEN INSERT (p, k, n, s) VALUES (x.p, x.k, x.n, 'merged')",
	"INSERT INTO t VALUES (2, 0, 9, 'i'), (1, 1, 9, 'i'), (2, 30, 9, 'i') ON CONFLICT DO NOTHING",
	"BEGIN; UPDATE t SET n = 100 WHERE k < 3; DELETE FROM t WHERE k = 1; INSERT INTO t VALUES (2, 1, 5, 'again'), (0, 31, 6, 'new'); COMMIT",
	"INSERT OVERWRITE t PARTITION (p = 0) SELECT k, n + 1, 'over' FROM t WHERE p = 0",
	"CALL sys.rescale('t', 3)",
	"CALL sys.compact('t')",
}

// cutTable makes the table in a warehouse.
func cutTable(t *testing.T, ddl, alter string) fileio.FileIO {
	io := fileio.NewMem()
	e := writeEngine(t, io)
	s := testSession(t, e)
	defer s.Close()
	for _, q := range []string{
		ddl,
		"INSERT INTO t SELECT g % 2, g, g, 'old' FROM generate_series(0, 9) g",
		"CALL sys.compact('t')",
		"INSERT INTO t VALUES (2, 20, 1, 'x'), (1, 1, 11, 'y'), (0, 2, 12, 'y')",
		alter,
	} {
		if got := query(s, q); strings.Contains(got, "ERROR") {
			t.Fatalf("%s: %s", q, got)
		}
	}
	return io
}

// copyWarehouse copies all files, durably.
func copyWarehouse(t *testing.T, from, to fileio.FileIO, dir string) {
	t.Helper()
	ctx := context.Background()
	es, err := from.List(ctx, dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		p := path.Join(dir, e.Name)
		if e.Dir {
			copyWarehouse(t, from, to, p)
			continue
		}
		raw, err := from.ReadFile(ctx, p)
		if err == nil {
			err = to.PutIfAbsent(ctx, p, raw)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
}

// TestStatementCuts cuts statements that look rows up and move them at every file
// system call (every 19th, but in the long form): by a crash of the machine, a call
// that fails, a reply that is lost, and a store that is gone from then on. The table
// has the rows from before or those from after, those if the client was told so, each
// key once; and the same server or another one goes on.
func TestStatementCuts(t *testing.T) {
	stride := max(1, 41/testkit.Factor())
	for _, ct := range cutTables {
		t.Run(ct.name, func(t *testing.T) {
			base := cutTable(t, ct.ddl, ct.alter)
			points, statements := 0, 0
			for i, sql := range cutStatements {
				// What comes out when nothing is cut, of one and of two goes.
				io := fileio.NewMem()
				copyWarehouse(t, base, io, ".")
				old := cutRows(t, io)
				e := writeEngine(t, io)
				s := testSession(t, e)
				if got := query(s, sql); strings.Contains(got, "ERROR 0A000") || strings.Contains(got, "ERROR 55000") {
					t.Logf("left out: %s: %s", sql, got)
					continue
				} else if strings.Contains(got, "ERROR") {
					t.Fatalf("%s: %s", sql, got)
				}
				statements++
				now := cutRows(t, io)
				after := map[string]string{}
				next := []string{"UPDATE t SET n = n + 1000, s = 'next' WHERE k IN (1, 2, 20, 40)"}
				if strings.Contains(sql, "rescale") || ct.alter != "" { // the table writes what it says
					next = append([]string{"ALTER TABLE t SET ('bucket'='3')", "CALL sys.rescale('t')"}, next...)
				}
				goOn := func(s *Session, when string) {
					t.Helper()
					for _, sql := range next {
						if got := query(s, sql); strings.Contains(got, "ERROR") {
							t.Fatalf("%s, and then %s: %s", when, sql, got)
						}
					}
				}
				for state, warehouse := range map[string]fileio.FileIO{now: io, old: base} {
					io := fileio.NewMem()
					copyWarehouse(t, warehouse, io, ".")
					goOn(testSession(t, writeEngine(t, io)), "undisturbed")
					after[state] = cutRows(t, io)
				}
				for mode, how := range []string{"crash", "crash after", "error", "lost reply", "errors from then on"} {
					for n := 1 + i%stride; ; n += stride {
						when := fmt.Sprintf("%s, %s at call %d", sql, how, n)
						var disk *fileio.Crash
						var fault *fileio.Fault
						var io fileio.FileIO
						if mode < 2 {
							disk = fileio.NewCrash()
							io = disk
						} else {
							fault = fileio.NewFault(fileio.NewMem())
							io = fault
						}
						copyWarehouse(t, base, io, ".")
						e := writeEngine(t, io)
						s := testSession(t, e)
						var got string
						var hit bool
						if mode < 2 {
							disk.At(n, mode == 1)
							got, hit = query(s, sql), disk.Crashed()
						} else {
							fault.Add(fileio.Rule{Nth: n, After: mode == 3, On: mode == 4, Err: syscall.EIO, Truncate: -1})
							got, hit = query(s, sql), fault.Hits() > 0
							fault.Clear()
						}
						when += ": " + strings.TrimSpace(got)
						if !hit {
							s.Close()
							_ = e.Close()
							if strings.Contains(got, "ERROR") {
								t.Fatal(when)
							}
							break
						}
						points++
						failed := strings.Contains(got, "ERROR")
						if mode >= 2 && failed && (strings.Contains(got, "ERROR XX000") || strings.Contains(got, "ERROR?")) {
							t.Errorf("%s: no code of its own", when)
						}
						if got := query(s, "ROLLBACK"); mode >= 2 && strings.Contains(got, "ERROR") {
							t.Errorf("%s: %s", when, got)
						}
						if mode < 2 {
							s.Close()
							_ = e.Close()
							io = disk.Reopen(nil)
							e = writeEngine(t, io)
							s = testSession(t, e)
						}
						state := cutRows(t, io)
						switch {
						case state != old && state != now:
							t.Fatalf("%s: neither the old rows nor the new ones:\n%s\nold\n%s\nnew\n%s", when, state, old, now)
						case !failed && state != now:
							t.Fatalf("%s: it was acknowledged and is not there", when)
						case failed && old != now && state == now && !strings.Contains(got, "ERROR 40003"):
							t.Fatalf("%s: it failed and is there", when)
						}
						goOn(s, when)
						if got := cutRows(t, io); got != after[state] {
							t.Fatalf("%s, and then\n%s\nwant\n%s", when, got, after[state])
						}
						s.Close()
						_ = e.Close()
					}
				}
			}
			t.Logf("%d statements, %d points", statements, points)
			if statements < 3 || points < 150*statements/stride {
				t.Errorf("only %d statements and %d points", statements, points)
			}
		})
	}
}

// cutRows are the table's rows as a server that has just started reads them; each key
// must be there once.
func cutRows(t *testing.T, io fileio.FileIO) string {
	t.Helper()
	e := writeEngine(t, io)
	s := testSession(t, e)
	defer func() { s.Close(); _ = e.Close() }()
	key := "k"
	if strings.Contains(query(s, "SELECT p, count(*) FROM t GROUP BY p"), "ERROR") {
		t.Fatal("the table cannot be read")
	}
	if strings.Contains(query(s, "SELECT conname FROM pg_constraint WHERE contype = 'p' AND array_length(conkey, 1) = 2"), "SELECT 1") {
		key = "p, k"
	}
	if got := query(s, "SELECT "+key+" FROM t GROUP BY "+key+" HAVING count(*) > 1"); !strings.Contains(got, "SELECT 0") {
		t.Fatalf("keys that are there twice: %s", got)
	}
	return query(s, "SELECT * FROM t ORDER BY p, k")
}
