package reports

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// fresh serves an empty warehouse.
func fresh(t *testing.T) (dir string, s *testserver.Server, c *pgx.Conn) {
	t.Helper()
	dir = filepath.Join(t.TempDir(), "warehouse")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	s = testserver.Serve(t, dir, nil)
	return dir, s, dial(t, s)
}

func dial(t *testing.T, s *testserver.Server) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func do(t *testing.T, c *pgx.Conn, sql ...string) {
	t.Helper()
	for _, q := range sql {
		if _, err := c.PgConn().Exec(context.Background(), q).ReadAll(); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

func want(t *testing.T, c *pgx.Conn, sql string, rows ...string) {
	t.Helper()
	if got := text(t, c, sql); !reflect.DeepEqual(got, append([]string{}, rows...)) {
		t.Errorf("%s: %q, want %q", sql, got, rows)
	}
}

func sqlstate(err error) string {
	var e *pgconn.PgError
	if errors.As(err, &e) {
		return e.Code
	}
	return fmt.Sprint(err)
}

// A09: a decimal is stored at the column's scale, by text, binary parameter and
// COPY; one that does not fit stores nothing.
func TestA09WrittenDecimals(t *testing.T) {
	dir, _, c := fresh(t)
	ctx := context.Background()
	do(t, c, "create table t (k int, d numeric(10,4), e numeric(38,10), primary key (k))",
		"insert into t values (1,1.23,1.5),(2,1.234,-0.0000000001),(3,999999.9999,9999999999999999999999999999.9999999999)")
	num := func(s string) pgtype.Numeric {
		var n pgtype.Numeric
		if err := n.Scan(s); err != nil {
			t.Fatal(err)
		}
		return n
	}
	if _, err := c.Exec(ctx, "insert into t values ($1, $2, $3)", 11, num("1.23"), num("1.5")); err != nil {
		t.Fatal(err)
	}
	if _, err := c.CopyFrom(ctx, pgx.Identifier{"t"}, []string{"k", "d", "e"}, pgx.CopyFromRows([][]any{{int32(12), num("1.234"), num("-0.0000000001")}})); err != nil {
		t.Fatal(err)
	}
	if _, err := c.PgConn().CopyFrom(ctx, strings.NewReader("13\t999999.9999\t9999999999999999999999999999.9999999999\n"), "copy t from stdin"); err != nil {
		t.Fatal(err)
	}
	for _, q := range []string{"insert into t values (5, 1, 1), (4, 1234567.0, 0)", "insert into t values (4, 0, 99999999999999999999999999999)"} {
		if _, err := c.Exec(ctx, q); sqlstate(err) != "22003" {
			t.Errorf("%s: %v", q, err)
		}
	}
	if _, err := c.PgConn().CopyFrom(ctx, strings.NewReader("5\t1\t1\n4\t1234567.0\t0\n"), "copy t from stdin"); sqlstate(err) != "22003" {
		t.Errorf("copy: %v", err)
	}
	var rows []string
	for _, k := range []string{"", "1"} {
		rows = append(rows, k+"1\t1.2300\t1.5000000000", k+"2\t1.2340\t-0.0000000001", k+"3\t999999.9999\t9999999999999999999999999999.9999999999")
	}
	want(t, c, "select * from t order by k", rows...)
	j := oracle.Maybe(t, dir)
	if j == nil {
		return
	}
	if got := j.Rows(t, "default.t", nil); len(got) != 6 || !strings.Contains(string(got[0]), `"1.2300"`) {
		t.Errorf("java reads %s", got)
	}
	j.Check(t, "default.t")
}

// A10: concurrent commits never overwrite each other's snapshot.
func TestA10ConcurrentCommits(t *testing.T) {
	dir, s, c := fresh(t)
	do(t, c, "create table a (w int, n int)", "create table p (w int, n int, primary key (w, n)) with ('bucket' = '8')")
	var wg sync.WaitGroup
	const rows = 10
	for w := range 8 {
		c := dial(t, s)
		wg.Add(1)
		go func() {
			defer wg.Done()
			for n := range rows {
				for _, tab := range []string{"a", "p"} {
					if _, err := c.Exec(context.Background(), "insert into "+tab+" values ($1, $2)", w, n); err != nil {
						t.Error(err)
					}
				}
			}
		}()
	}
	wg.Wait()
	for _, tab := range []string{"a", "p"} {
		want(t, c, "select count(*), count(distinct (w, n)) from "+tab, fmt.Sprintf("%d\t%d", 8*rows, 8*rows))
		ids := text(t, c, `select snapshot_id from "`+tab+`$snapshots" order by 1`)
		first, _ := strconv.Atoi(ids[0])
		for i, id := range ids {
			if id != strconv.Itoa(first+i) {
				t.Fatalf("snapshots of %s: %v", tab, ids)
			}
		}
	}
	j := oracle.Maybe(t, dir)
	j.Check(t, "default.a")
	j.Check(t, "default.p")
}

// A12: LIMIT stops on live rows only.
func TestA12Limit(t *testing.T) {
	_, _, c := fresh(t)
	do(t, c, "create table v (c1 int, c2 int) with ('deletion-vectors.enabled' = 'true', 'source.split.target-size' = '1 b', 'source.split.open-file-cost' = '1 b', 'write-only' = 'true')",
		"create table p (k int primary key, x int) with ('write-only' = 'true')")
	for i := 1; i <= 3; i++ {
		do(t, c, fmt.Sprintf("insert into v values (%d, 0)", i))
	}
	for i := range 6 {
		do(t, c, fmt.Sprintf("insert into p values (%d, %d)", i%3, i))
	}
	do(t, c, "delete from v where c1 = 1", "delete from p where k = 0")
	for q, n := range map[string]int{
		"select * from v limit 2": 2, "select * from v limit 3": 2, "select * from v where c1 = 3 limit 1": 1, "select * from v where c1 = 1 limit 1": 0,
		"select * from p limit 2": 2, "select * from p limit 5": 2, "select * from p where x = 5 limit 1": 1, "select * from p where x = 1 limit 1": 0,
	} {
		if got := text(t, c, q); len(got) != n {
			t.Errorf("%s: %v", q, got)
		}
	}
}

// A14: DELETE removes the rows for which the condition is true, no others.
func TestA14ThreeValuedDelete(t *testing.T) {
	_, _, c := fresh(t)
	for i, clause := range []string{
		"(id int, name text)", "(id int, name text) with ('deletion-vectors.enabled' = 'true')",
		"(id int, name text) partitioned by (name)", "(id int, name text, primary key (id))",
	} {
		tab := fmt.Sprintf("t%d", i)
		do(t, c, "create table "+tab+" "+clause, "insert into "+tab+" values (1,'a'),(2,'b'),(3,NULL),(4,'a'),(5,NULL),(6,'c')")
		tag, err := c.Exec(context.Background(), "delete from "+tab+" where name = 'a'")
		if err != nil || tag.String() != "DELETE 2" {
			t.Errorf("%s: %v, %v", clause, tag, err)
		}
		want(t, c, "select id from "+tab+" order by id", "2", "3", "5", "6")
		want(t, c, "select id from "+tab+" where not (name is not distinct from 'b') order by id", "3", "5", "6")
		tag, err = c.Exec(context.Background(), "update "+tab+" set id = id + 10 where not (name = 'b')")
		if err != nil || tag.String() != "UPDATE 1" {
			t.Errorf("%s: %v, %v", clause, tag, err)
		}
		want(t, c, "select id from "+tab+" order by id", "2", "3", "5", "16")
	}
}

// A15: a tag outlives its snapshot.
func TestA15TagOutlivesSnapshot(t *testing.T) {
	_, _, c := fresh(t)
	do(t, c, "create table t (id int, name text, primary key (id)) with ('snapshot.num-retained.min' = '1', 'snapshot.num-retained.max' = '1')",
		"insert into t values (1,'1'),(2,'2')", "call sys.create_tag('t', 'x')", "insert into t values (3,'3'),(4,'4')",
		"insert into t values (5,'5')", "call sys.expire_snapshots('t', retain_max => 1)")
	want(t, c, "select * from t for version as of 'x' order by id", "1\t1", "2\t2")
	want(t, c, "select count(*) from t", "5")
	_, err := c.Exec(context.Background(), "select * from t for version as of 1")
	if sqlstate(err) != "58P01" {
		t.Errorf("expired snapshot: %v", err)
	}
	do(t, c, "call sys.compact('t')", "call sys.delete_tag('t', 'x')")
	want(t, c, "select count(*) from t", "5")
}

// A16: after a rollback a snapshot id means another state, in every session.
func TestA16RollbackAndCaches(t *testing.T) {
	_, s, c := fresh(t)
	other := dial(t, s)
	for i, clause := range []string{"(id int)", "(id int primary key)", "(id int) with ('deletion-vectors.enabled' = 'true')"} {
		tab := fmt.Sprintf("t%d", i)
		for _, second := range []*pgx.Conn{c, other} {
			do(t, c, "drop table if exists "+tab, "create table "+tab+" "+clause, "insert into "+tab+" values (1),(2),(3),(4)", "delete from "+tab+" where id = 1")
			want(t, second, "select * from "+tab+" order by id", "2", "3", "4")
			do(t, second, fmt.Sprintf("call sys.rollback_to('%s', 1)", tab))
			want(t, c, "select * from "+tab+" order by id", "1", "2", "3", "4")
			do(t, second, "delete from "+tab+" where id = 2")
			want(t, c, "select * from "+tab+" order by id", "1", "3", "4")
			want(t, other, "select * from "+tab+" order by id", "1", "3", "4")
		}
	}
	do(t, c, "drop table t0", "create table t0 (id int, name text)", "insert into t0 values (9, 'n')")
	want(t, c, "select * from t0", "9\tn")
	want(t, other, "select * from t0", "9\tn")
}

// threeTimes checks queries before and after a compaction, and that Java agrees the
// table is whole.
func threeTimes(t *testing.T, c *pgx.Conn, dir, table string, queries map[string][]string) {
	t.Helper()
	for _, compacted := range []bool{false, true} {
		if compacted {
			do(t, c, "call sys.compact('"+table+"')")
		}
		for q, rows := range queries {
			want(t, c, q, rows...)
		}
	}
	j := oracle.Maybe(t, dir)
	if j == nil {
		return
	}
	j.Check(t, "default."+table)
	var java []string
	for _, row := range j.Rows(t, "default."+table, nil) {
		java = append(java, rowText(t, row))
	}
	ours := text(t, c, "select * from "+table)
	slices.Sort(java)
	slices.Sort(ours)
	if !slices.Equal(java, ours) {
		t.Errorf("%s: java reads %q, we read %q", table, java, ours)
	}
}

// rowText is a row of the oracle, flat, as text shows ours.
func rowText(t *testing.T, row json.RawMessage) string {
	t.Helper()
	d := json.NewDecoder(bytes.NewReader(row))
	d.UseNumber()
	var out []string
	for n := 0; d.More() || n == 0; n++ {
		tok, err := d.Token()
		if err != nil {
			t.Fatalf("%s: %v", row, err)
		}
		if n == 0 || n%2 == 1 {
			continue // the brace, a name
		}
		if tok == nil {
			tok = "NULL"
		}
		out = append(out, fmt.Sprint(tok))
	}
	return strings.Join(out, "\t")
}

// A03: a condition on a value column prunes nothing before rows are merged.
func TestA03FilterBeforeMerge(t *testing.T) {
	dir, _, c := fresh(t)
	do(t, c, "create table s (k int primary key, v int) with ('merge-engine' = 'aggregation', 'fields.v.aggregate-function' = 'sum', 'write-only' = 'true')",
		"insert into s values (1,1),(2,1)", "insert into s values (1,2)",
		"create table d (k int primary key, v text) with ('write-only' = 'true')", "insert into d values (1,'a')", "insert into d values (1,'b')",
		"create table p (k int primary key, v int, w int) with ('merge-engine' = 'partial-update', 'write-only' = 'true')",
		"insert into p values (1,1,NULL),(2,1,NULL)", "insert into p values (1,NULL,7)", "insert into p values (1,2,NULL)",
		"create table f (k int primary key, v int) with ('merge-engine' = 'first-row', 'write-only' = 'true')",
		"insert into f values (1,1),(2,5)", "insert into f values (1,2)",
		"create table x (k int primary key, v int) with ('deletion-vectors.enabled' = 'true', 'write-only' = 'true')",
		"insert into x values (1,1),(2,1)", "insert into x values (1,3)")
	threeTimes(t, c, dir, "s", map[string][]string{
		"select * from s where v = 3": {"1\t3"}, "select * from s where v = 1": {"2\t1"}, "select * from s where v = 2": nil, "select count(*) from s where v < 3": {"1"},
	})
	threeTimes(t, c, dir, "d", map[string][]string{"select * from d where v = 'a'": nil, "select * from d where v = 'b'": {"1\tb"}})
	threeTimes(t, c, dir, "p", map[string][]string{
		"select * from p where v = 1": {"2\t1\tNULL"}, "select * from p where w = 7": {"1\t2\t7"}, "select * from p where w is null": {"2\t1\tNULL"},
		"select k from p where v = 2 and w = 7": {"1"},
	})
	threeTimes(t, c, dir, "f", map[string][]string{"select * from f where v = 2": nil, "select * from f where v = 1": {"1\t1"}})
	threeTimes(t, c, dir, "x", map[string][]string{"select * from x where v = 1": {"2\t1"}, "select * from x where v = 3": {"1\t3"}})
}

// A11: with deletion vectors a row that came later and is older by sequence.field
// does not take the newer one away.
func TestA11LateRowsAndVectors(t *testing.T) {
	dir, _, c := fresh(t)
	for i, with := range []string{"", ", 'write-only' = 'true'", ", 'changelog-producer' = 'lookup'", ", 'deletion-vectors.bitmap64' = 'true'", ", 'sequence.field.sort-order' = 'descending'"} {
		tab := fmt.Sprintf("t%d", i)
		do(t, c, "create table "+tab+" (id int, seq int, name text, primary key (id)) with ('deletion-vectors.enabled' = 'true', 'sequence.field' = 'seq', 'bucket' = '1'"+with+")")
		rows := []string{"1\t3\t1_2", "2\t2\t2_1", "3\t1\t3"}
		for _, q := range []string{"(1,1,'1'),(2,1,'2'),(3,1,'3')", "(1,2,'1_1'),(2,2,'2_1'),(3,NULL,'3_1')", "(1,3,'1_2'),(2,1,'2_2')"} {
			if strings.Contains(with, "descending") {
				q = strings.NewReplacer("(1,1,", "(1,3,", "(1,3,", "(1,1,", "(2,1,", "(2,2,", "(2,2,", "(2,1,").Replace(q)
				rows = []string{"1\t1\t1_2", "2\t1\t2_1", "3\t1\t3"}
			}
			do(t, c, "insert into "+tab+" values "+q)
		}
		threeTimes(t, c, dir, tab, map[string][]string{"select * from " + tab + " order by id": rows, "select count(*) from " + tab: {"3"}})
		// A delete by SQL takes the row as it is.
		do(t, c, "delete from "+tab+" where id = 1", "update "+tab+" set name = 'u' where id = 2")
		threeTimes(t, c, dir, tab, map[string][]string{"select id, name from " + tab + " order by id": {"2\tu", "3\t3"}})
	}
}

// A13: several sequence fields, NULL first; they are no aggregates themselves.
func TestA13SequenceFields(t *testing.T) {
	dir, _, c := fresh(t)
	do(t, c, "create table t (pk int, v text, s0 int, s1 int, primary key (pk)) with ('merge-engine' = 'aggregation', 'sequence.field' = ' s0 , s1 ', 'write-only' = 'true')",
		"insert into t values (1,'A1',NULL,1),(1,'A2',1,NULL)")
	want(t, c, "select * from t", "1\tA2\t1\tNULL")
	do(t, c, "insert into t values (1,'A3',1,0)", "insert into t values (1,'A0',0,9)")
	threeTimes(t, c, dir, "t", map[string][]string{"select * from t": {"1\tA3\t1\t0"}})
	do(t, c, "create table q (pk int, seq int, v int, primary key (pk)) with ('merge-engine' = 'partial-update', 'fields.seq.sequence-group' = 'v', 'fields.default-aggregate-function' = 'sum', 'write-only' = 'true')",
		"insert into q values (0,1,1)", "insert into q values (0,2,2)")
	threeTimes(t, c, dir, "q", map[string][]string{"select * from q": {"0\t2\t3"}})
	do(t, c, "create table d (pk int, v text, s0 int, s1 int, primary key (pk)) with ('sequence.field' = 's0,s1', 'deletion-vectors.enabled' = 'true')",
		"insert into d values (1,'A1',NULL,1),(1,'A2',1,NULL)", "insert into d values (1,'A3',1,0)", "insert into d values (1,'A4',NULL,5)")
	threeTimes(t, c, dir, "d", map[string][]string{"select * from d": {"1\tA3\t1\t0"}})
}

// A15 with deletion vectors: the tag of a snapshot that was not compacted can be
// read, and that of one whose vectors have been replaced since.
func TestA15TagWithVectors(t *testing.T) {
	for _, writeOnly := range []string{"true", "false"} {
		dir, _, c := fresh(t)
		do(t, c, "create table t (id int, name text, primary key (id)) with ('snapshot.num-retained.min' = '1', 'snapshot.num-retained.max' = '1', 'deletion-vectors.enabled' = 'true', 'write-only' = '"+writeOnly+"')",
			"insert into t values (1,'1'),(2,'2')", "call sys.create_tag('t', 'x')", "insert into t values (3,'3'),(4,'4')", "update t set name = 'new' where id = 1",
			"call sys.create_tag('t', 'y')", "delete from t where id = 2", "call sys.compact('t')", "call sys.expire_snapshots('t', retain_max => 1)")
		want(t, c, "select * from t for version as of 'x' order by id", "1\t1", "2\t2")
		want(t, c, "select * from t for version as of 'y' order by id", "1\tnew", "2\t2", "3\t3", "4\t4")
		want(t, c, "select * from t order by id", "1\tnew", "3\t3", "4\t4")
		_, err := c.Exec(context.Background(), "select * from t for version as of 1")
		if sqlstate(err) != "58P01" {
			t.Errorf("expired snapshot: %v", err)
		}
		oracle.Maybe(t, dir).Check(t, "default.t")
	}
}
