package reports

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
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
