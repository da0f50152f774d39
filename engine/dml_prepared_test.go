package engine

import (
	"context"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// pipelined runs a prepared statement without Sync.
func pipelined(t testing.TB, s *Session, p *Prepared, args ...types.Datum) string {
	t.Helper()
	r := &recorder{s: s}
	pt, err := s.Bind(context.Background(), "", p, args, nil)
	if err == nil {
		var tag string
		if tag, err = s.Run(context.Background(), pt, 0, r); err == nil {
			r.WriteString(tag)
		}
	}
	if err != nil {
		r.WriteString(errLine(err))
	}
	return strings.TrimSpace(r.String())
}

func sync1(s *Session) string {
	if err := s.Sync(context.Background(), false, discard{}); err != nil {
		return errLine(err)
	}
	return "ok"
}

func TestPreparedChanges(t *testing.T) {
	ctx := context.Background()
	e := writeEngine(t, nil)
	s, b := testSession(t, e), testSession(t, e)
	keyTable(t, s, "t")
	ins, err := s.Prepare(ctx, "ins", "INSERT INTO t VALUES ($1, $2, 'x') RETURNING id, v + 1 AS n", nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(ins.Params) != 2 || ins.Params[0].Kind != types.Int8 || len(ins.Columns) != 2 || ins.Columns[1].Name != "n" {
		t.Fatalf("params %v, columns %v", ins.Params, ins.Columns)
	}
	upd, err := s.Prepare(ctx, "upd", "UPDATE t SET v = v + $1 WHERE id = $2", nil)
	if err != nil {
		t.Fatal(err)
	}
	if upd.Columns != nil {
		t.Fatal("UPDATE without RETURNING has columns")
	}
	// A pipeline is one transaction, and a statement sees those before it.
	if got := pipelined(t, s, ins, int64(1), int64(10)); got != "(1, 11)\nINSERT 0 1" {
		t.Error(got)
	}
	if got := pipelined(t, s, upd, int64(5), int64(1)); got != "UPDATE 1" {
		t.Error(got)
	}
	expect(t, b, "SELECT count(*) FROM t", "(0) SELECT 1 I")
	if got := sync1(s); got != "ok" {
		t.Error(got)
	}
	expect(t, b, "SELECT * FROM t", "(1, 15, x) SELECT 1 I")
	expect(t, b, "SELECT count(*) FROM t$snapshots", "(1) SELECT 1 I")
	// A conflict at Sync: the statement is run again, and its tag still holds.
	if got := pipelined(t, s, upd, int64(1), int64(1)); got != "UPDATE 1" {
		t.Error(got)
	}
	expect(t, b, "INSERT INTO t VALUES (1, 100, 'b')", "INSERT 0 1 I")
	if got := sync1(s); got != "ok" {
		t.Error(got)
	}
	expect(t, b, "SELECT v FROM t", "(101) SELECT 1 I")
	// With an outcome that the client was not told, it fails.
	del, err := s.Prepare(ctx, "del", "DELETE FROM t WHERE v = $1 RETURNING s", nil)
	if err != nil {
		t.Fatal(err)
	}
	if got := pipelined(t, s, del, int64(101)); got != "(b)\nDELETE 1" {
		t.Error(got)
	}
	expect(t, b, "INSERT INTO t VALUES (1, 7, 'c')", "INSERT 0 1 I")
	if got := sync1(s); got != "ERROR 40001 could not serialize access due to concurrent update\n" {
		t.Error(got)
	}
	expect(t, b, "SELECT v FROM t", "(7) SELECT 1 I")
	// The plan follows the table's definition.
	expect(t, b, "ALTER TABLE t ADD COLUMN w int", "ALTER TABLE I")
	if got := pipelined(t, s, ins, int64(2), int64(20)); got != "(2, 21)\nINSERT 0 1" {
		t.Error(got)
	}
	if got := sync1(s); got != "ok" {
		t.Error(got)
	}
	expect(t, b, "SELECT * FROM t ORDER BY id", "(1, 7, c, NULL) (2, 20, x, NULL) SELECT 2 I")
	expect(t, s, "EXECUTE upd(1, 2)", "UPDATE 1 I")
	if got := query(s, "EXPLAIN (COSTS off) UPDATE t SET v = 0 WHERE id = 2"); !strings.Contains(got, "(Update on t)\n(  ->  Index Scan using t_pkey on t)") {
		t.Error(got)
	}
	// A table made again under the name is another table.
	expect(t, b, "CREATE TABLE r (a bigint, b text)", "CREATE TABLE I")
	expect(t, s, "PREPARE w AS INSERT INTO r VALUES ($1, $2)", "PREPARE I")
	expect(t, s, "PREPARE r AS SELECT * FROM r", "PREPARE I")
	expect(t, s, "EXECUTE w(1, 'x')", "INSERT 0 1 I")
	expect(t, b, "DROP TABLE r; CREATE TABLE r (b text, a bigint)", "DROP TABLE CREATE TABLE I")
	expect(t, s, "EXECUTE w(1, '2')", `ERROR 42804 column "a" is of type bigint but expression is of type text I`)
	expect(t, s, "EXECUTE r", "ERROR 0A000 cached plan must not change result type I")
	if got := query(s, "EXPLAIN (ANALYZE, COSTS off, TIMING off, SUMMARY off) DELETE FROM t WHERE id = 1"); !strings.Contains(got, "Delete on t (actual rows=0 loops=1)") {
		t.Error(got)
	}
	expect(t, b, "SELECT id, v FROM t ORDER BY id", "(2, 21) SELECT 1 I")
}
