package engine

import "testing"

// A hint that only says how rows are read changes no answer: not in a transaction that
// has written, not beside the transaction's snapshot, and not where the session reads
// another version.
func TestTuningHintReadsTheSame(t *testing.T) {
	e := writeEngine(t, nil)
	a, b := testSession(t, e), testSession(t, e)
	const hint = " /*+ OPTIONS('file-index.read.enabled' = 'false', 'read.batch-size' = '10') */"
	for i, mk := range []func(testing.TB, *Session, string){keyTable, appendTable} {
		n := []string{"hk", "ha"}[i]
		mk(t, a, n)
		expect(t, a, "INSERT INTO "+n+" VALUES (1, 10, 'a')", "INSERT 0 1 I")
		for _, level := range []string{"READ COMMITTED", "REPEATABLE READ"} {
			expect(t, a, "BEGIN ISOLATION LEVEL "+level, "BEGIN T")
			expect(t, a, "INSERT INTO "+n+" VALUES (2, 20, 'b')", "INSERT 0 1 T")
			for _, from := range []string{n, n + hint, n + hint + " x", n + "$audit_log" + hint} {
				expect(t, a, "SELECT id FROM "+from+" ORDER BY id", "(1) (2) SELECT 2 T")
			}
			// What the hint names stays without the transaction's rows.
			expect(t, a, "SELECT id FROM "+n+" /*+ OPTIONS('scan.snapshot-id' = '1') */", "(1) SELECT 1 T")
			expect(t, a, "ROLLBACK", "ROLLBACK I")
		}
		expect(t, a, "BEGIN ISOLATION LEVEL REPEATABLE READ", "BEGIN T")
		expect(t, a, "SELECT id FROM "+n, "(1) SELECT 1 T")
		expect(t, b, "INSERT INTO "+n+" VALUES (3, 30, 'c')", "INSERT 0 1 I")
		expect(t, a, "SELECT id FROM "+n+hint, "(1) SELECT 1 T")
		expect(t, a, "ROLLBACK", "ROLLBACK I")
		expect(t, a, "SELECT id FROM "+n+hint+" ORDER BY id", "(1) (3) SELECT 2 I")
		expect(t, a, "SET paimon.scan_version = '1'", "SET I")
		expect(t, a, "SELECT id FROM "+n+hint, "(1) SELECT 1 I")
		expect(t, a, "RESET paimon.scan_version", "RESET I")
	}
}
