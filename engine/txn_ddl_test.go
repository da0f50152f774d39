package engine

import "testing"

// Data definition and data change in one transaction.
func TestDefineAndChange(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	for _, step := range [][2]string{
		{"BEGIN", "BEGIN T"},
		{"CREATE TABLE t (id bigint PRIMARY KEY, v bigint)", "CREATE TABLE T"},
		{"INSERT INTO t VALUES (1, 10), (2, 20)", "INSERT 0 2 T"},
		{"UPDATE t SET v = v + 1 WHERE id = 1", "UPDATE 1 T"},
		{"SELECT * FROM t ORDER BY id", "(1, 11) (2, 20) SELECT 2 T"},
		{"SAVEPOINT s", "SAVEPOINT T"},
		{"CREATE TABLE u AS SELECT id, v * 2 AS w FROM t", "SELECT 2 T"},
		{"SELECT * FROM u ORDER BY id", "(1, 22) (2, 40) SELECT 2 T"},
		{"ROLLBACK TO s", "ROLLBACK T"},
		{"INSERT INTO t VALUES (3, 30)", "INSERT 0 1 T"},
		{"ALTER TABLE t ADD COLUMN w text DEFAULT 'x'", "ALTER TABLE T"},
		{"INSERT INTO t VALUES (4, 40, 'y')", "INSERT 0 1 T"},
		{"SELECT * FROM t ORDER BY id", "(1, 11, x) (2, 20, x) (3, 30, x) (4, 40, y) SELECT 4 T"},
	} {
		expect(t, a, step[0], step[1])
	}
	expect(t, b, "SELECT * FROM t", `ERROR 42P01 relation "t" does not exist I`)
	expect(t, a, "COMMIT", "COMMIT I")
	expect(t, b, "SELECT * FROM t ORDER BY id", "(1, 11, x) (2, 20, x) (3, 30, x) (4, 40, y) SELECT 4 I")
	expect(t, b, "SELECT * FROM u", `ERROR 42P01 relation "u" does not exist I`)
	expect(t, a, "BEGIN; CREATE TABLE u AS SELECT * FROM t; DROP TABLE t; ROLLBACK", "BEGIN SELECT 4 DROP TABLE ROLLBACK I")
	expect(t, b, "SELECT count(*) FROM t", "(4) SELECT 1 I")
	// DDL waits for who writes, and the other way round.
	expect(t, a, "BEGIN; INSERT INTO t VALUES (5, 50)", "BEGIN INSERT 0 1 T")
	done := async(b, "ALTER TABLE t DROP COLUMN v")
	waiting(t, e, 1)
	expect(t, a, "COMMIT", "COMMIT I")
	if got := <-done; got != "ALTER TABLE\nI" {
		t.Error(got)
	}
	expect(t, b, "SELECT * FROM t WHERE id = 5", "(5, x) SELECT 1 I")
	expect(t, b, "CREATE TABLE c AS SELECT id FROM t WHERE id < 3", "SELECT 2 I")
	expect(t, a, "SELECT count(*) FROM c", "(2) SELECT 1 I")
}

// What a transaction's own data definition changes is seen at every isolation level,
// and behind savepoints that go back over it.
func TestDefinitionIsCurrent(t *testing.T) {
	e := writeEngine(t, nil)
	s := testSession(t, e)
	for _, step := range [][2]string{
		{"CREATE TABLE q (id int, v int)", "CREATE TABLE I"},
		// Cached plans are over the columns of the table that had the name.
		{"SELECT * FROM q", "SELECT 0 I"},
		{"INSERT INTO q VALUES (7, 7)", "INSERT 0 1 I"},
		{"DROP TABLE q", "DROP TABLE I"},
		{"CREATE TABLE q (id bigint, v text)", "CREATE TABLE I"},
		{"SELECT * FROM q", "SELECT 0 I"},
		{"INSERT INTO q VALUES (7, 7)", "INSERT 0 1 I"},
		{"SELECT v || '!' FROM q", "(7!) SELECT 1 I"},
		{"TRUNCATE q", "TRUNCATE TABLE I"},
		// Rows of the old definition are waiting when rows of the new one come.
		{"BEGIN", "BEGIN T"},
		{"INSERT INTO q VALUES (3, 'c')", "INSERT 0 1 T"},
		{"ALTER TABLE q ADD COLUMN z int", "ALTER TABLE T"},
		{"INSERT INTO q VALUES (1, 'a', 3)", "INSERT 0 1 T"},
		{"SELECT * FROM q ORDER BY id", "(1, a, 3) (3, c, NULL) SELECT 2 T"},
		{"ROLLBACK", "ROLLBACK I"},
		{"BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN T"},
		{"SELECT * FROM q", "SELECT 0 T"},
		{"SAVEPOINT s", "SAVEPOINT T"},
		{"ALTER TABLE q ADD COLUMN z int NOT NULL DEFAULT 5", "ALTER TABLE T"},
		{"INSERT INTO q (id) VALUES (1)", "INSERT 0 1 T"},
		{"SELECT * FROM q", "(1, NULL, 5) SELECT 1 T"},
		{"ROLLBACK TO s", "ROLLBACK T"},
		{"SELECT * FROM q", "SELECT 0 T"},
		{"INSERT INTO q VALUES (2, 'b')", "INSERT 0 1 T"},
		{"COMMIT", "COMMIT I"},
		{"SELECT * FROM q", "(2, b) SELECT 1 I"},
	} {
		expect(t, s, step[0], step[1])
	}
	expect(t, s, "SET paimon.scan_version = '1'", "SET I")
	for _, sql := range []string{"INSERT INTO q VALUES (1, 'x')", "UPDATE q SET v = 'x'", "DELETE FROM q", "TRUNCATE q", "INSERT OVERWRITE q SELECT 1, 'x'"} {
		expect(t, s, sql, `ERROR 55000 cannot change table "q" while paimon.scan_version is set I`)
	}
}
