// Package objectstore tests the whole product over a warehouse in an object store.
package objectstore

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5"

	"github.com/paimon-sql/paimon-sql/internal/testkit/s3fake"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// start runs a store, and n servers over one warehouse in it.
func start(t *testing.T, n int) (*s3fake.Server, []*testserver.Server) {
	t.Helper()
	t.Setenv("AWS_ACCESS_KEY_ID", "test-id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", "not-a-real-secret")
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	store := s3fake.New()
	t.Cleanup(store.Close)
	out := make([]*testserver.Server, n)
	for i := range out {
		out[i] = testserver.Serve(t, store.Warehouse("lake", "ware/house"), nil)
	}
	return store, out
}

func connect(t *testing.T, s *testserver.Server) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), s.DSN)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

func run(t *testing.T, c *pgx.Conn, stmts ...string) {
	t.Helper()
	for _, q := range stmts {
		if _, err := c.Exec(context.Background(), q); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// ask returns rows as text, columns joined by |, rows by blanks.
func ask(t *testing.T, c *pgx.Conn, sql string) string {
	t.Helper()
	res, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var rows []string
	for _, r := range res[len(res)-1].Rows {
		var f []string
		for _, v := range r {
			f = append(f, string(v))
		}
		rows = append(rows, strings.Join(f, "|"))
	}
	return strings.Join(rows, " ")
}

func want(t *testing.T, c *pgx.Conn, sql, rows string) {
	t.Helper()
	if got := ask(t, c, sql); got != rows {
		t.Errorf("%s\ngot:  %s\nwant: %s", sql, got, rows)
	}
}

// TestConcurrentCommits: eight connections over two servers insert single rows into
// one table. Every row whose INSERT was answered is there, and no snapshot is
// missing between the first and the last.
func TestConcurrentCommits(t *testing.T) {
	const clients, each = 8, 25
	store, servers := start(t, 2)
	c := connect(t, servers[0])
	run(t, c, "CREATE TABLE a (id int, who text)", "CREATE TABLE k (id int PRIMARY KEY, who text) WITH ('bucket' = '2')")
	for _, table := range []string{"a", "k"} {
		var wg sync.WaitGroup
		for i := range clients {
			conn := connect(t, servers[i%len(servers)])
			wg.Go(func() {
				for n := range each {
					if _, err := conn.Exec(context.Background(), fmt.Sprintf("INSERT INTO %s VALUES (%d, 'client %d')", table, i*each+n, i)); err != nil {
						t.Errorf("%s: %v", table, err)
						return
					}
				}
			})
		}
		wg.Wait()
		for _, s := range servers {
			want(t, connect(t, s), "SELECT count(*), count(DISTINCT id), min(id), max(id) FROM "+table, "200|200|0|199")
		}
		want(t, c, fmt.Sprintf("SELECT max(snapshot_id) - min(snapshot_id) + 1 = count(*), min(snapshot_id), sum(delta_record_count) FROM %s$snapshots", table), "t|1|200")
		counts := store.Counts()
		t.Logf("%s: %s snapshots, requests %v", table, ask(t, c, "SELECT count(*) FROM "+table+"$snapshots"), counts)
	}
}

// TestLife takes tables through what maintenance and DDL do to files.
func TestLife(t *testing.T) {
	store, servers := start(t, 1)
	c := connect(t, servers[0])
	run(t, c, "CREATE SCHEMA s", "CREATE TABLE s.t (id int PRIMARY KEY, v text)", "CREATE TABLE s.big (id int, v text)")
	want(t, c, "SELECT count(*) FROM pg_tables WHERE schemaname = 's'", "2")
	for i := range 6 {
		run(t, c, fmt.Sprintf("INSERT INTO s.t SELECT g, 'round %d' FROM generate_series(1, 1000) g", i))
	}
	run(t, c, "UPDATE s.t SET v = 'changed' WHERE id <= 10", "DELETE FROM s.t WHERE id > 990", "CALL sys.compact('s.t')")
	state := "SELECT count(*), count(*) FILTER (WHERE v = 'changed'), sum(id) FROM s.t"
	want(t, c, state, "990|10|490545")
	before := len(store.Keys("lake/ware/house/s.db/t/"))
	run(t, c, "CALL sys.expire_snapshots('s.t', retain_max => 1)")
	if after := len(store.Keys("lake/ware/house/s.db/t/")); after >= before {
		t.Errorf("%d objects before expiry, %d after", before, after)
	}
	want(t, c, "SELECT count(*) FROM s.t$snapshots", "1")
	want(t, c, state, "990|10|490545")
	// A file beyond what one request brings, and beyond what one PUT takes.
	run(t, c, "INSERT INTO s.big SELECT g, md5(g::text) FROM generate_series(1, 300000) g")
	want(t, c, "SELECT count(*), count(DISTINCT v), sum(id) FROM s.big", "300000|300000|45000150000")
	want(t, c, "SELECT v = md5('77777') FROM s.big WHERE id = 77777", "t")
	run(t, c, "BEGIN", "CREATE TABLE s.u AS SELECT id FROM s.t", "INSERT INTO s.t VALUES (5000, 'new')", "COMMIT")
	run(t, c, "BEGIN", "DELETE FROM s.t", "ROLLBACK")
	want(t, c, "SELECT (SELECT count(*) FROM s.u), (SELECT count(*) FROM s.t)", "990|991")
	run(t, c, "ALTER TABLE s.t RENAME TO renamed", "ALTER TABLE s.renamed ADD COLUMN n int")
	want(t, c, "SELECT count(*), count(n) FROM s.renamed", "991|0")
	// A second server sees all of it.
	other := connect(t, testserver.Serve(t, store.Warehouse("lake", "ware/house"), nil))
	want(t, other, "SELECT count(*), count(n) FROM s.renamed", "991|0")
	run(t, other, "TRUNCATE s.u", "DROP TABLE s.renamed", "DROP TABLE s.big")
	want(t, c, "SELECT count(*) FROM s.u", "0")
	run(t, c, "DROP SCHEMA s CASCADE")
	for _, k := range store.Keys("") {
		if strings.Contains(k, "/s.db/") || strings.Contains(k, "bucket-") {
			t.Errorf("left: %s", k)
		}
	}
	if n := store.Uploads(); n != 0 {
		t.Errorf("%d uploads are left open", n)
	}
}

// TestLostAnswers: the store carries commits out and loses its answers.
func TestLostAnswers(t *testing.T) {
	store, servers := start(t, 1)
	c := connect(t, servers[0])
	run(t, c, "CREATE TABLE a (id int)", "INSERT INTO a VALUES (0)")
	store.Break(s3fake.Fault{Op: "PUT", Key: "snapshot/snapshot-", Times: 1, Lost: true})
	run(t, c, "INSERT INTO a VALUES (1)")
	store.Break(s3fake.Fault{Op: "PUT", Key: "snapshot/snapshot-", Times: 1, Status: 503, Code: "SlowDown"})
	run(t, c, "INSERT INTO a VALUES (2)")
	want(t, c, "SELECT count(*), sum(id) FROM a", "3|3")
	want(t, c, "SELECT string_agg(snapshot_id::text, ' ' ORDER BY snapshot_id) FROM a$snapshots", "1 2 3")
	store.Break(s3fake.Fault{Op: "PUT", Key: "/bucket-", Status: 403, Code: "AccessDenied"})
	_, err := c.Exec(context.Background(), "INSERT INTO a VALUES (3)")
	if err == nil || !strings.Contains(err.Error(), "58030") || !strings.Contains(err.Error(), "AccessDenied") || strings.Contains(err.Error(), store.URL) {
		t.Errorf("a store that refuses: %v", err)
	}
	store.Repair()
	want(t, c, "SELECT count(*), sum(id) FROM a", "3|3")
}
