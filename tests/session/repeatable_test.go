package session

import (
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// TestSystemTablesOfSnapshot: in REPEATABLE READ a table's system tables show the state
// that the table is read at, whichever of them is asked first.
func TestSystemTablesOfSnapshot(t *testing.T) {
	for _, first := range []string{"t", `"t$files"`, `"t$audit_log"`, `"t$ro"`} {
		io := fileio.NewMem()
		a, b := Open(t, io, "mem"), Reopen(t, io, "mem")
		run := func(s *Session, q string) string {
			t.Helper()
			rows, err := s.Try(t.Context(), q)
			if err != nil {
				t.Fatalf("%s: %v", q, err)
			}
			var out []string
			for _, r := range rows {
				out = append(out, strings.Join(r, " "))
			}
			return strings.Join(out, "\n")
		}
		run(a, "create table t (k int primary key, v int)")
		run(a, "insert into t values (1, 1)")
		run(a, "begin isolation level repeatable read")
		run(a, "select count(*) from "+first)
		run(b, "insert into t values (2, 2)")
		run(b, "insert into t values (3, 3)")
		for q, want := range map[string]string{
			"select count(*) from t":                               "1",
			`select sum(record_count) from "t$files"`:              "1",
			`select count(*) from "t$audit_log"`:                   "1",
			`select count(*) from "t$ro"`:                          "0",
			`select count(*), max(snapshot_id) from "t$snapshots"`: "1 1",
			`select sum(record_count) from "t$partitions"`:         "1",
		} {
			if got := run(a, q); got != want {
				t.Errorf("after %s, %s: %s, want %s", first, q, got, want)
			}
		}
		run(a, "commit")
		if got := run(a, `select count(*) from "t$snapshots"`); got != "3" {
			t.Errorf("after COMMIT there are %s snapshots", got)
		}
	}
}
