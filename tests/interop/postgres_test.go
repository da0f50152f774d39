package interop

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// postgresBin returns the directory of PostgreSQL's programs, or skips the test.
func postgresBin(t *testing.T) string {
	t.Helper()
	dirs, _ := filepath.Glob("/usr/lib/postgresql/*/bin") // the pattern is right
	for _, d := range dirs {
		if _, err := os.Stat(filepath.Join(d, "initdb")); err == nil {
			return d
		}
	}
	t.Skip("needs PostgreSQL's server programs below /usr/lib/postgresql")
	return ""
}

// asNobody runs a program as a user that is not root: PostgreSQL and pgbouncer refuse
// to be root.
func asNobody(t *testing.T, names []string, cmd *exec.Cmd, dirs ...string) *exec.Cmd {
	t.Helper()
	if os.Geteuid() != 0 {
		return cmd
	}
	for _, n := range names {
		u, err := user.Lookup(n)
		if err != nil {
			continue
		}
		uid, _ := strconv.Atoi(u.Uid) // numbers, on every Unix
		gid, _ := strconv.Atoi(u.Gid)
		for _, d := range dirs {
			if err := os.Chown(d, uid, gid); err != nil {
				t.Fatal(err)
			}
		}
		cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: uint32(uid), Gid: uint32(gid)}}
		return cmd
	}
	t.Skipf("root needs one of the users %q", names)
	return nil
}

// workDir is a directory that other users may enter, unlike t.TempDir.
func workDir(t *testing.T) string {
	t.Helper()
	dir, err := os.MkdirTemp("", "paimon-sql-interop")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return dir
}

func freePort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was only asked for its port
	_, port, _ := net.SplitHostPort(l.Addr().String())
	return port
}

// startPostgres runs a PostgreSQL server for the test.
func startPostgres(t *testing.T) *pgx.Conn {
	t.Helper()
	bin, dir, port := postgresBin(t), workDir(t), freePort(t)
	users := []string{"postgres", "nobody"}
	data := filepath.Join(dir, "data")
	if out, err := asNobody(t, users, exec.Command(filepath.Join(bin, "initdb"), "-D", data, "-A", "trust", "-U", "postgres", "--no-sync"), dir).CombinedOutput(); err != nil {
		t.Fatalf("initdb: %v: %s", err, out)
	}
	log := &strings.Builder{}
	cmd := asNobody(t, users, exec.Command(filepath.Join(bin, "postgres"), "-D", data, "-p", port, "-h", "127.0.0.1", "-k", "", "-F"))
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGINT) // a fast shutdown
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	return connectWithin(t, "postgres://postgres@127.0.0.1:"+port+"/postgres?sslmode=disable")
}

// connectWithin connects to a server that has just been started.
func connectWithin(t *testing.T, dsn string) *pgx.Conn {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); ; time.Sleep(20 * time.Millisecond) {
		c, err := pgx.Connect(context.Background(), dsn)
		if err == nil {
			t.Cleanup(func() { _ = c.Close(context.Background()) })
			return c
		}
		if time.Now().After(end) {
			t.Fatal(err)
		}
	}
}

// answer runs statements and returns the rows of the last as text.
func answer(t *testing.T, c *pgx.Conn, sql string) string {
	t.Helper()
	rs, err := c.PgConn().Exec(context.Background(), sql).ReadAll()
	if err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	var out []string
	for _, r := range rs[len(rs)-1].Rows {
		f := make([]string, len(r))
		for i, v := range r {
			f[i] = string(v)
		}
		out = append(out, strings.Join(f, "|"))
	}
	return strings.Join(out, "\n")
}

// PostgreSQL reads and writes our tables as foreign tables.
func TestPostgresFDW(t *testing.T) {
	if os.Getenv("PAIMON_SQL_INTEROP") == "" {
		t.Skip("make interop runs it")
	}
	pg := startPostgres(t)
	if _, err := pg.Exec(t.Context(), "CREATE EXTENSION postgres_fdw"); err != nil {
		t.Skip("needs postgres_fdw: ", err)
	}
	ours := testserver.Serve(t, t.TempDir(), nil)
	host, port, _ := net.SplitHostPort(ours.Addr)
	own := connectWithin(t, ours.DSN)
	answer(t, own, `CREATE TABLE orders (id bigint PRIMARY KEY, name text, total numeric(10,2), day date, at timestamptz, ok boolean, tags text[]);
		INSERT INTO orders SELECT g, 'n' || g, g * 1.5, date '2024-01-01' + (g % 30)::int, timestamptz '2024-01-01 00:00:00+00' + g * interval '1 hour', g % 2 = 0, array['a', 'b']
		FROM generate_series(1, 1000) g; CREATE TABLE plain (a int, b text)`)
	answer(t, pg, fmt.Sprintf(`CREATE SERVER p FOREIGN DATA WRAPPER postgres_fdw OPTIONS (host '%s', port '%s', dbname 'paimon', use_remote_estimate 'true');
		CREATE USER MAPPING FOR postgres SERVER p OPTIONS (user 'tester', password_required 'false'); CREATE SCHEMA f; SET timezone = 'UTC'`, host, port))
	answer(t, pg, "IMPORT FOREIGN SCHEMA public FROM SERVER p INTO f")
	for _, c := range [][2]string{
		{"SELECT string_agg(attname || ' ' || format_type(atttypid, atttypmod) || CASE WHEN attnotnull THEN ' not null' ELSE '' END, ', ' ORDER BY attnum) FROM pg_attribute WHERE attrelid = 'f.orders'::regclass AND attnum > 0",
			"id bigint not null, name text, total numeric(10,2), day date, at timestamp with time zone, ok boolean, tags text[]"},
		{"SELECT count(*), sum(total) FROM f.orders", "1000|750750.00"},
		{"SELECT * FROM f.orders WHERE id = 42", "42|n42|63.00|2024-01-13|2024-01-02 18:00:00+00|t|{a,b}"},
		{"SELECT name FROM f.orders WHERE id < 10 AND name LIKE 'n%' ORDER BY id LIMIT 2", "n1\nn2"},
		{"INSERT INTO f.orders VALUES (2000, 'new', 9.99, '2024-05-05', '2024-05-05 12:00:00+02', true, '{x,y}') RETURNING id, total, at", "2000|9.99|2024-05-05 10:00:00+00"},
		{"INSERT INTO f.plain SELECT g, 'x' FROM generate_series(1, 500) g; SELECT count(*), sum(a) FROM f.plain", "500|125250"},
		{"BEGIN; INSERT INTO f.plain VALUES (1, 'gone'); ROLLBACK; SELECT count(*) FROM f.plain", "500"},
		{"BEGIN; SAVEPOINT a; INSERT INTO f.plain VALUES (1, 'gone'); ROLLBACK TO a; INSERT INTO f.plain VALUES (501, 'stays'); COMMIT; SELECT count(*) FROM f.plain", "501"},
		{"ANALYZE f.orders; SELECT reltuples FROM pg_class WHERE oid = 'f.orders'::regclass", "1001"},
		{"SELECT o.name, p.b FROM f.orders o JOIN f.plain p ON p.a = o.id WHERE o.id IN (10, 11) ORDER BY 1", "n10|x\nn11|x"},
		{"SELECT day, count(*) FROM f.orders GROUP BY day ORDER BY day LIMIT 2", "2024-01-01|33\n2024-01-02|34"},
		// Before it plans UPDATE and DELETE postgres_fdw asks for the cost of reading ctid,
		// unless it estimates by itself; what it can push down then needs no ctid.
		{"ALTER SERVER p OPTIONS (SET use_remote_estimate 'false'); UPDATE f.orders SET name = 'changed', total = total + 1 WHERE id BETWEEN 1999 AND 2000 RETURNING id, name, total", "2000|changed|10.99"},
		{"BEGIN; UPDATE f.orders SET name = 'z' WHERE id = 1; ROLLBACK; SELECT name FROM f.orders WHERE id = 1", "n1"},
		{"DELETE FROM f.orders WHERE id = 2000; SELECT count(*) FROM f.orders", "1000"},
		{"UPDATE f.plain SET b = 'y' WHERE a < 3; DELETE FROM f.plain WHERE a > 499; SELECT count(*), count(*) FILTER (WHERE b = 'y') FROM f.plain", "499|2"},
		{"TRUNCATE f.plain; SELECT count(*) FROM f.plain", "0"},
	} {
		if got := answer(t, pg, c[0]); got != c[1] {
			t.Errorf("%s\n got %s\nwant %s", c[0], got, c[1])
		}
	}
	answer(t, pg, "ALTER SERVER p OPTIONS (SET use_remote_estimate 'true')")
	plan := answer(t, pg, "EXPLAIN (VERBOSE) SELECT name FROM f.orders WHERE id < 10 AND name LIKE 'n%' ORDER BY id LIMIT 2")
	for _, want := range []string{"Remote SQL: SELECT", "WHERE ((id < 10)) AND ((name ~~ 'n%')) ORDER BY id ASC NULLS LAST"} {
		if !strings.Contains(plan, want) {
			t.Errorf("not pushed down: %q in\n%s", want, plan)
		}
	}
	if got := answer(t, own, "SELECT count(*) FROM orders"); got != "1000" {
		t.Errorf("our own answer: %s", got)
	}
}

// pgbouncer in transaction mode stands before us: statements of many clients share few
// sessions.
func TestPgbouncer(t *testing.T) {
	if os.Getenv("PAIMON_SQL_INTEROP") == "" {
		t.Skip("make interop runs it")
	}
	bin, err := exec.LookPath("pgbouncer")
	if err != nil {
		if bin, err = exec.LookPath("/usr/sbin/pgbouncer"); err != nil {
			t.Skip("needs pgbouncer")
		}
	}
	ours := testserver.Serve(t, t.TempDir(), nil)
	host, port, _ := net.SplitHostPort(ours.Addr)
	dir, listen := workDir(t), freePort(t)
	conf := filepath.Join(dir, "pgbouncer.ini")
	if err := os.WriteFile(conf, []byte(fmt.Sprintf(`[databases]
paimon = host=%s port=%s dbname=paimon user=tester
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = %s
unix_socket_dir =
auth_type = any
pool_mode = transaction
default_pool_size = 3
max_client_conn = 100
ignore_startup_parameters = extra_float_digits
`, host, port, listen)), 0o644); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	log := &strings.Builder{}
	cmd := asNobody(t, []string{"postgres", "nobody"}, exec.Command(bin, conf))
	cmd.Stderr = log
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Signal(syscall.SIGTERM)
		_ = cmd.Wait()
		if t.Failed() {
			t.Log(log)
		}
	})
	dsn := "postgres://tester@127.0.0.1:" + listen + "/paimon?sslmode=disable"
	// Prepared statements of the protocol need a session of their own; a description
	// cache does not.
	first := connectWithin(t, dsn+"&default_query_exec_mode=exec")
	answer(t, first, "CREATE TABLE c (id int PRIMARY KEY, n int); INSERT INTO c VALUES (1, 0)")
	const clients, each = 12, 5
	failed := make(chan error, clients)
	for range clients {
		go func() {
			failed <- func() error {
				c, err := pgx.Connect(context.Background(), dsn+"&default_query_exec_mode=exec")
				if err != nil {
					return err
				}
				defer c.Close(context.Background()) //nolint:errcheck // the test is over
				for range each {
					tx, err := c.Begin(context.Background())
					if err != nil {
						return err
					}
					if _, err := tx.Exec(context.Background(), "UPDATE c SET n = n + $1 WHERE id = $2", 1, 1); err != nil {
						return err
					}
					var n int
					if err := tx.QueryRow(context.Background(), "SELECT n FROM c WHERE id = $1", 1).Scan(&n); err != nil {
						return err
					}
					if err := tx.Commit(context.Background()); err != nil {
						return err
					}
				}
				return nil
			}()
		}()
	}
	for range clients {
		if err := <-failed; err != nil {
			t.Error(err)
		}
	}
	if got := answer(t, first, "SELECT n FROM c"); got != fmt.Sprint(clients*each) {
		t.Errorf("%s updates of %d are there", got, clients*each)
	}
	own := connectWithin(t, ours.DSN)
	if got := answer(t, own, "SELECT count(*) <= 3 FROM pg_stat_activity WHERE pid <> pg_backend_pid()"); got != "t" {
		t.Error("pgbouncer opened more sessions than its pool has")
	}
}
