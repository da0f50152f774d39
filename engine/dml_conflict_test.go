package engine

import (
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

func TestOnConflict(t *testing.T) {
	s := testSession(t, writeEngine(t, nil))
	keyTable(t, s, "t")
	for _, step := range [][2]string{
		{"INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b')", "INSERT 0 2 I"},
		// Plain INSERT merges; the last of one statement wins.
		{"INSERT INTO t VALUES (1, 11, 'a2'), (1, 12, 'a3')", "INSERT 0 2 I"},
		{"SELECT * FROM t ORDER BY id", "(1, 12, a3) (2, 20, b) SELECT 2 I"},
		{"INSERT INTO t VALUES (1, 0, 'x'), (3, 30, 'c'), (3, 31, 'd') ON CONFLICT DO NOTHING RETURNING *", "(3, 30, c) INSERT 0 1 I"},
		{"INSERT INTO t VALUES (3, 1, 'y') ON CONFLICT (id) DO NOTHING", "INSERT 0 0 I"},
		{"INSERT INTO t VALUES (1, 1, 'p'), (4, 40, 'e') ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v RETURNING id, v, s", "(1, 13, a3) (4, 40, e) INSERT 0 2 I"},
		{"INSERT INTO t VALUES (1, 1, 'q') ON CONFLICT (id) DO UPDATE SET v = 0 WHERE t.v > 100 RETURNING *", "INSERT 0 0 I"},
		{"INSERT INTO t VALUES (5, 1, 'q'), (5, 2, 'q') ON CONFLICT (id) DO UPDATE SET v = t.v + 1",
			"ERROR 21000 ON CONFLICT DO UPDATE command cannot affect row a second time I"},
		{"INSERT INTO t VALUES (5, 1, 'q'), (5, 2, 'q') ON CONFLICT (id) DO UPDATE SET v = excluded.v, s = excluded.s",
			"ERROR 21000 ON CONFLICT DO UPDATE command cannot affect row a second time I"},
		{"INSERT INTO t VALUES (2, 21, 'b2'), (6, 60, 'f') ON CONFLICT (id) DO UPDATE SET v = excluded.v, s = excluded.s RETURNING id", "(2) (6) INSERT 0 2 I"},
		{"SELECT * FROM t ORDER BY id", "(1, 13, a3) (2, 21, b2) (3, 30, c) (4, 40, e) (6, 60, f) SELECT 5 I"},
		{"UPSERT INTO t VALUES (6, 61, 'g')", "INSERT 0 1 I"},
		{"SET paimon.insert_mode = 'strict'", "SET I"},
		{"INSERT INTO t VALUES (7, 1, 'h'), (6, 0, 'x')", `ERROR 23505 duplicate key value violates unique constraint "t_pkey" I`},
		{"INSERT INTO t VALUES (7, 1, 'h'), (7, 0, 'x')", `ERROR 23505 duplicate key value violates unique constraint "t_pkey" I`},
		{"INSERT INTO t VALUES (7, 1, 'h')", "INSERT 0 1 I"},
		{"UPSERT INTO t VALUES (7, 2, 'h')", "INSERT 0 1 I"},
		{"INSERT INTO t VALUES (7, 3, 'h') ON CONFLICT (id) DO UPDATE SET v = excluded.v, s = t.s", "INSERT 0 1 I"},
		{"SELECT * FROM t WHERE id > 5 ORDER BY id", "(6, 61, g) (7, 3, h) SELECT 2 I"},
		// Inside a block, its own rows are met too.
		{"BEGIN", "BEGIN T"},
		{"INSERT INTO t VALUES (8, 1, 'i')", "INSERT 0 1 T"},
		{"INSERT INTO t VALUES (8, 2, 'j') ON CONFLICT (id) DO UPDATE SET v = t.v + excluded.v RETURNING *", "(8, 3, i) INSERT 0 1 T"},
		{"INSERT INTO t VALUES (8, 9, 'j')", `ERROR 23505 duplicate key value violates unique constraint "t_pkey" E`},
		{"ROLLBACK", "ROLLBACK I"},
		{"SELECT count(*) FROM t WHERE id = 8", "(0) SELECT 1 I"},
	} {
		expect(t, s, step[0], step[1])
	}
}

func TestKeyChange(t *testing.T) {
	s := testSession(t, writeEngine(t, nil))
	keyTable(t, s, "t")
	for _, step := range [][2]string{
		{"INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')", "INSERT 0 3 I"},
		{"UPDATE t SET id = id + 1", "UPDATE 3 I"},
		{"SELECT * FROM t ORDER BY id", "(2, 10, a) (3, 20, b) (4, 30, c) SELECT 3 I"},
		{"UPDATE t SET id = 4 WHERE id = 2", `ERROR 23505 duplicate key value violates unique constraint "t_pkey" I`},
		{"UPDATE t SET id = 9", `ERROR 23505 duplicate key value violates unique constraint "t_pkey" I`},
		{"UPDATE t SET id = NULL WHERE id = 2", `ERROR 23502 null value in column "id" of relation "t" violates not-null constraint I`},
		{"SELECT * FROM t ORDER BY id", "(2, 10, a) (3, 20, b) (4, 30, c) SELECT 3 I"},
		// One row for several matches: the row is changed once.
		{"UPDATE t SET v = x.n FROM (VALUES (2, 5), (2, 5), (3, 6)) AS x (k, n) WHERE t.id = x.k RETURNING t.id, v", "(2, 5) (3, 6) UPDATE 2 I"},
		{"DELETE FROM t USING (VALUES (2), (2)) AS x (k) WHERE t.id = x.k", "DELETE 1 I"},
		{"SELECT * FROM t ORDER BY id", "(3, 6, b) (4, 30, c) SELECT 2 I"},
	} {
		expect(t, s, step[0], step[1])
	}
}

func TestMerge(t *testing.T) {
	for _, mk := range []func(testing.TB, *Session, string){keyTable, appendTable} {
		s := testSession(t, writeEngine(t, nil))
		mk(t, s, "t")
		for _, step := range [][2]string{
			{"INSERT INTO t VALUES (1, 10, 'a'), (2, 20, 'b'), (3, 30, 'c')", "INSERT 0 3 I"},
			{`MERGE INTO t USING (VALUES (1, 1), (2, 0), (5, 50)) AS x (k, n) ON t.id = x.k
				WHEN MATCHED AND x.n = 0 THEN DELETE WHEN MATCHED THEN UPDATE SET v = t.v + x.n
				WHEN NOT MATCHED THEN INSERT VALUES (x.k, x.n, 'new')`, "MERGE 3 I"},
			{"SELECT * FROM t ORDER BY id", "(1, 11, a) (3, 30, c) (5, 50, new) SELECT 3 I"},
			{"MERGE INTO t USING (VALUES (1), (1)) AS x (k) ON t.id = x.k WHEN MATCHED THEN UPDATE SET v = 0",
				"ERROR 21000 MERGE command cannot affect row a second time I"},
			{"SELECT * FROM t ORDER BY id", "(1, 11, a) (3, 30, c) (5, 50, new) SELECT 3 I"},
		} {
			expect(t, s, step[0], step[1])
		}
		s.Close()
	}
}

func TestConstraints(t *testing.T) {
	s := testSession(t, writeEngine(t, nil))
	id := intField("id")
	id.Type.NotNull = true
	w := textField("w")
	w.Type.NotNull = true
	makeTable(t, s, "t", []string{"id"}, nil, map[string]string{
		"pg-constraint.t_v_check": `{"kind":"check","expr":"v > 0"}`,
	}, id, intField("v"), w, types.Field{Name: "n", Type: types.NumericOf(5, 2)})
	got := query(s, "INSERT INTO t VALUES (1, 1, NULL, 1)")
	if want := "ERROR 23502 null value in column \"w\" of relation \"t\" violates not-null constraint\nI"; got != want {
		t.Errorf("got %s", got)
	}
	expect(t, s, "INSERT INTO t VALUES (1, 1, 'x', 1), (2, 0, 'y', 2)", `ERROR 23514 new row for relation "t" violates check constraint "t_v_check" I`)
	expect(t, s, "INSERT INTO t VALUES (1, 1, 'x', 1), (2, NULL, 'y', 2)", "INSERT 0 2 I")
	expect(t, s, "UPDATE t SET v = v - 1", `ERROR 23514 new row for relation "t" violates check constraint "t_v_check" I`)
	expect(t, s, "INSERT INTO t VALUES (3, 1, 'x', 1234.5)", "ERROR 22003 numeric field overflow I")
	expect(t, s, "SELECT id, v, n FROM t ORDER BY id", "(1, 1, 1.00) (2, NULL, 2.00) SELECT 2 I")
}

func TestOverwrite(t *testing.T) {
	s := testSession(t, writeEngine(t, nil))
	for _, keyed := range []bool{false, true} {
		var keys []string
		id, dt := intField("id"), textField("dt")
		if keyed {
			keys = []string{"dt", "id"}
			id.Type.NotNull, dt.Type.NotNull = true, true
		}
		n := map[bool]string{false: "a", true: "k"}[keyed]
		makeTable(t, s, n, keys, []string{"dt"}, nil, id, dt, intField("v"))
		for _, step := range [][2]string{
			{"INSERT INTO " + n + " VALUES (1, 'x', 1), (2, 'y', 2), (3, 'z', 3)", "INSERT 0 3 I"},
			{"INSERT OVERWRITE " + n + " PARTITION (dt = 'x') SELECT 9, 90", "INSERT 0 1 I"},
			{"SELECT * FROM " + n + " ORDER BY dt, id", "(9, x, 90) (2, y, 2) (3, z, 3) SELECT 3 I"},
			{"BEGIN", "BEGIN T"},
			{"INSERT INTO " + n + " VALUES (4, 'y', 4), (5, 'w', 5)", "INSERT 0 2 T"},
			{"INSERT OVERWRITE " + n + " PARTITION (dt = 'y') SELECT 7, 70", "INSERT 0 1 T"},
			{"INSERT INTO " + n + " VALUES (8, 'y', 8)", "INSERT 0 1 T"},
			{"SELECT * FROM " + n + " ORDER BY dt, id", "(5, w, 5) (9, x, 90) (7, y, 70) (8, y, 8) (3, z, 3) SELECT 5 T"},
			{"COMMIT", "COMMIT I"},
			{"SELECT * FROM " + n + " ORDER BY dt, id", "(5, w, 5) (9, x, 90) (7, y, 70) (8, y, 8) (3, z, 3) SELECT 5 I"},
			{"BEGIN", "BEGIN T"},
			{"INSERT INTO " + n + " VALUES (1, 'x', 1)", "INSERT 0 1 T"},
			{"TRUNCATE " + n, "TRUNCATE TABLE T"},
			{"INSERT INTO " + n + " VALUES (2, 'x', 2)", "INSERT 0 1 T"},
			{"SELECT * FROM " + n, "(2, x, 2) SELECT 1 T"},
			{"SAVEPOINT s", "SAVEPOINT T"},
			{"TRUNCATE " + n, "TRUNCATE TABLE T"},
			{"SELECT count(*) FROM " + n, "(0) SELECT 1 T"},
			{"ROLLBACK TO s", "ROLLBACK T"},
			{"SELECT * FROM " + n, "(2, x, 2) SELECT 1 T"},
			{"COMMIT", "COMMIT I"},
			{"SELECT * FROM " + n, "(2, x, 2) SELECT 1 I"},
		} {
			expect(t, s, step[0], step[1])
		}
	}
}
