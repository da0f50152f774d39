package engine

import "testing"

// A compaction of an append table waits with its commit for the transaction that
// changes rows of the files, which would fail otherwise.
func TestCompactionWaits(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	expect(t, a, "CREATE TABLE t (id bigint, v bigint)", "CREATE TABLE I")
	for range 3 {
		expect(t, a, "INSERT INTO t VALUES (1, 1), (2, 2)", "INSERT 0 2 I")
	}
	expect(t, a, "BEGIN; UPDATE t SET v = v + 1 WHERE id = 1", "BEGIN UPDATE 3 T")
	done := async(b, "CALL sys.compact('public.t', compact_strategy => 'full')")
	waiting(t, e, 1)
	expect(t, a, "UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE 3 T")
	expect(t, a, "COMMIT", "COMMIT I")
	<-done
	expect(t, a, "SELECT v, count(*) FROM t GROUP BY v ORDER BY v", "(2, 3) (3, 3) SELECT 2 I")
	expect(t, a, "UPDATE t SET v = 0", "UPDATE 6 I")
}

// A session that holds a table's share lock and writes has both, as in PostgreSQL.
func TestShareAndWrite(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	expect(t, a, "CREATE TABLE t (id bigint PRIMARY KEY)", "CREATE TABLE I")
	expect(t, a, "BEGIN; LOCK t IN SHARE MODE", "BEGIN LOCK TABLE T")
	expect(t, b, "BEGIN; LOCK t IN SHARE MODE", "BEGIN LOCK TABLE T")
	done := async(a, "INSERT INTO t VALUES (1)")
	waiting(t, e, 1)
	expect(t, b, "SELECT wait_event_type, wait_event FROM pg_stat_activity WHERE wait_event IS NOT NULL", "(Lock, relation) SELECT 1 T")
	expect(t, b, "INSERT INTO t VALUES (2)", "ERROR 40P01 deadlock detected E")
	expect(t, b, "ROLLBACK", "ROLLBACK I")
	if got := <-done; got != "INSERT 0 1\nT" {
		t.Error(got)
	}
	expect(t, b, "BEGIN; SET LOCAL lock_timeout = 1; LOCK t IN SHARE MODE", "BEGIN SET ERROR 55P03 canceling statement due to lock timeout E")
	expect(t, b, "ROLLBACK", "ROLLBACK I")
	expect(t, a, "COMMIT", "COMMIT I")
}

// Whoever drops a table and a compaction that publishes wait for one another.
func TestCompactionWaitsForDefinition(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	expect(t, a, "CREATE TABLE t (id bigint PRIMARY KEY, v bigint)", "CREATE TABLE I")
	expect(t, a, "INSERT INTO t VALUES (1, 1)", "INSERT 0 1 I")
	expect(t, a, "INSERT INTO t VALUES (1, 2)", "INSERT 0 1 I")
	done, err := e.lockFiles(t.Context(), tableKey{dir: "default.db/t"})
	if err != nil {
		t.Fatal(err)
	}
	dropped := async(a, "DROP TABLE t")
	waiting(t, e, 1)
	done()
	if got := <-dropped; got != "DROP TABLE\nI" {
		t.Error(got)
	}
	expect(t, a, "CREATE TABLE t (id bigint PRIMARY KEY, v bigint)", "CREATE TABLE I")
	expect(t, a, "INSERT INTO t VALUES (1, 1); INSERT INTO t VALUES (1, 2)", "INSERT 0 1 INSERT 0 1 I")
	expect(t, a, "BEGIN; ALTER TABLE t ADD COLUMN w int", "BEGIN ALTER TABLE T")
	compacted := async(b, "CALL sys.compact('public.t', compact_strategy => 'full')")
	waiting(t, e, 1)
	expect(t, a, "COMMIT", "COMMIT I")
	<-compacted
	expect(t, a, "SELECT * FROM t", "(1, 2, NULL) SELECT 1 I")
}
