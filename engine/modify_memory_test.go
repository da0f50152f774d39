package engine

import (
	"fmt"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// What a statement remembers about the rows that it changes does not grow with
// them, as far as its source gives each once.
func TestChangeManyRowsInLittleMemory(t *testing.T) {
	const rows = 300_000 // at 132 bytes each they did not fit
	for name, with := range map[string]string{
		"files":   "(k bigint, v int)",
		"vectors": "(k bigint, v int) WITH ('deletion-vectors.enabled' = 'true')",
		"key":     "(k bigint PRIMARY KEY, v int)",
	} {
		t.Run(name, func(t *testing.T) {
			e := writeEngine(t, nil)
			e.locks.maxKeys = 1000
			a := testSession(t, e)
			expect(t, a, "SET work_mem = '12MB'", "SET I")
			expect(t, a, "CREATE TABLE t "+with, "CREATE TABLE I")
			expect(t, a, fmt.Sprintf("INSERT INTO t SELECT g, 0 FROM generate_series(1, %d) AS g", rows), fmt.Sprintf("INSERT 0 %d I", rows))
			expect(t, a, "UPDATE t SET v = v + 1 WHERE k > 10", fmt.Sprintf("UPDATE %d I", rows-10))
			expect(t, a, "SELECT count(*), sum(v) FROM t", fmt.Sprintf("(%d, %d) SELECT 1 I", rows, rows-10))
			expect(t, a, "DELETE FROM t WHERE k IN (SELECT g FROM generate_series(1, 100000) AS g) OR v = 5", "DELETE 100000 I")
			expect(t, a, "DELETE FROM t WHERE k > 20", fmt.Sprintf("DELETE %d I", rows-100_000))
			expect(t, a, "SELECT count(*) FROM t", "(0) SELECT 1 I")
		})
	}
}

// A row of the target that the source has twice is changed once.
func TestSourceRowsTwice(t *testing.T) {
	for _, with := range []string{"", " WITH ('deletion-vectors.enabled' = 'true')"} {
		e := writeEngine(t, nil)
		a := testSession(t, e)
		expect(t, a, "CREATE TABLE t (k bigint, v int)"+with, "CREATE TABLE I")
		expect(t, a, "INSERT INTO t VALUES (1, 0), (2, 0), (3, 0)", "INSERT 0 3 I")
		expect(t, a, "UPDATE t SET v = v + 1 FROM (VALUES (1), (1), (2)) AS s(k) WHERE t.k = s.k", "UPDATE 2 I")
		expect(t, a, "DELETE FROM t USING (VALUES (1), (1), (3)) AS s(k) WHERE t.k = s.k", "DELETE 2 I")
		expect(t, a, "SELECT k, v FROM t", "(2, 1) SELECT 1 I")
		expect(t, a, "MERGE INTO t USING (VALUES (2), (2)) AS s(k) ON t.k = s.k WHEN MATCHED THEN DELETE",
			"ERROR 21000 MERGE command cannot affect row a second time I")
	}
}

// Rows that come from another branch cannot be changed through the table.
func TestChangeRowsOfFallback(t *testing.T) {
	io := fileio.NewMem()
	e := writeEngine(t, io)
	a := testSession(t, e)
	expect(t, a, "CREATE TABLE t (k bigint, p int) PARTITIONED BY (p)", "CREATE TABLE I")
	def, err := io.ReadFile(t.Context(), "default.db/t/schema/schema-0")
	if err == nil {
		err = io.PutIfAbsent(t.Context(), "default.db/t/branch/branch-b/schema/schema-0", def)
	}
	if err != nil {
		t.Fatal(err)
	}
	expect(t, a, "ALTER TABLE t SET ('scan.fallback-branch' = 'b')", "ALTER TABLE I")
	expect(t, a, "INSERT INTO t$branch_b VALUES (1, 1), (2, 1)", "INSERT 0 2 I")
	expect(t, a, "SELECT count(*) FROM t", "(2) SELECT 1 I")
	refused := `ERROR 0A000 changing rows of "t", which has a scan.fallback-branch, is not supported I`
	expect(t, a, "DELETE FROM t WHERE k = 1", refused)
	expect(t, a, "UPDATE t SET k = 5 WHERE k = 1", refused)
	expect(t, a, "DELETE FROM t$branch_b WHERE k = 1", "DELETE 1 I")
	expect(t, a, "INSERT INTO t VALUES (3, 3)", "INSERT 0 1 I")
	expect(t, a, "SELECT k FROM t ORDER BY k", "(2) (3) SELECT 2 I")
}
