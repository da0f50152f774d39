package engine

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// logLines is a log of JSON lines that may be read while it is written.
type logLines struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logLines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

// take returns the lines since the last call.
func (l *logLines) take(t *testing.T) []map[string]any {
	t.Helper()
	l.mu.Lock()
	defer l.mu.Unlock()
	var out []map[string]any
	for _, line := range strings.Split(strings.TrimSpace(l.b.String()), "\n") {
		if line == "" {
			continue
		}
		m := map[string]any{}
		if err := json.Unmarshal([]byte(line), &m); err != nil {
			t.Fatal(err)
		}
		out = append(out, m)
	}
	l.b.Reset()
	return out
}

func logEngine(t *testing.T, settings map[string]string) (*Engine, *logLines) {
	t.Helper()
	log := &logLines{}
	e, err := Open(context.Background(), Config{
		Warehouse: "mem://", FileIO: fileio.NewMem(), MaxMemory: 1 << 30, TempDir: t.TempDir(), Settings: settings,
		Log: slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug})),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { e.Close() })
	return e, log
}

// No password, row or parameter may come into the log, whatever is turned on.
func TestLogHasNoValues(t *testing.T) {
	e, log := logEngine(t, map[string]string{"log_statement": "all", "log_min_duration_statement": "0", "log_connections": "on", "log_disconnections": "on"})
	s := testSession(t, e)
	all := func(sql string) { _ = s.Query(t.Context(), sql, &recorder{s: s}) }
	for _, sql := range []string{
		"CREATE ROLE app LOGIN PASSWORD 'hunter2'", "ALTER ROLE app PASSWORD 'hunter2'", "CREATE/**/USER u2 ENCRYPTED PASSWORD $$hunter2$$",
		"CREATE TABLE t (id int PRIMARY KEY, v text)", "INSERT INTO t VALUES (4711, 'hunter2')", "INSERT INTO t VALUES (4711, 'hunter2') -- hunter2",
		"SELECT * FROM t WHERE v = 'hunter2' /* hunter2 */", "SELECT 'hunter2'::int", "SELECT 'hunter2", "SELECT 4711/0", "PREPARE p AS SELECT $1::text", "EXECUTE p('hunter2')",
		"CALL sys.nothing('hunter2')", "COMMENT ON TABLE t IS 'hunter2'", "SET application_name = 'x'; SELECT 4711", "ALTER ROLE app PASSWORD 'hunter2' nonsense",
		"INSERT INTO t VALUES (4711, 'hunter2', 'hunter2')", "UPDATE t SET v = E'hunter2\\n' WHERE id = 4711",
	} {
		all(sql)
	}
	s.Close()
	lines := log.take(t)
	seen := map[string]int{}
	for _, l := range lines {
		seen[l["msg"].(string)]++
		if text := fmt.Sprint(l); strings.Contains(text, "hunter2") || strings.Contains(text, "4711") {
			t.Errorf("the log says %v", l)
		}
	}
	for _, msg := range []string{"statement", "slow statement", "statement failed", "connection authorized", "disconnection"} {
		if seen[msg] == 0 {
			t.Errorf("the log has no line %q", msg)
		}
	}
}

func TestLogStatement(t *testing.T) {
	e, log := logEngine(t, nil)
	s := testSession(t, e)
	runSQL(t, s, "CREATE TABLE t (id int)")
	stmts := func() (out []string) {
		for _, l := range log.take(t) {
			if l["msg"] == "statement" {
				out = append(out, l["stmt"].(string))
			}
		}
		return out
	}
	if got := stmts(); len(got) != 0 {
		t.Errorf("log_statement = none logs %q", got)
	}
	script := []string{
		"CREATE TABLE u (id int)", "INSERT INTO t VALUES (1)", "SELECT 1", "EXPLAIN DELETE FROM t", "EXPLAIN ANALYZE DELETE FROM t", "PREPARE p AS INSERT INTO t VALUES (1)",
		"EXECUTE p", "TRUNCATE t", "DROP TABLE u", "BEGIN", "COMMIT", "DEALLOCATE p",
	}
	for _, c := range []struct{ level, want string }{
		{"ddl", "CREATE TABLE u (id int); DROP TABLE u"},
		{"mod", "CREATE TABLE u (id int); INSERT INTO t VALUES ($1); EXPLAIN ANALYZE DELETE FROM t; PREPARE p AS INSERT INTO t VALUES ($1); EXECUTE p; TRUNCATE t; DROP TABLE u"},
	} {
		runSQL(t, s, "SET log_statement = "+c.level)
		stmts()
		for _, sql := range script {
			runSQL(t, s, sql)
		}
		if got := strings.Join(stmts(), "; "); got != c.want {
			t.Errorf("log_statement = %s\n got %s\nwant %s", c.level, got, c.want)
		}
	}
}

func TestStatStatements(t *testing.T) {
	e, _ := logEngine(t, map[string]string{"pg_stat_statements.max": "100"})
	s := testSession(t, e)
	runSQL(t, s, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	runSQL(t, s, "SELECT pg_stat_statements_reset()")
	for i := range 3 {
		runSQL(t, s, fmt.Sprintf("INSERT INTO t VALUES (%d, 'x'), (%d, 'y')", i, i+10))
		runSQL(t, s, fmt.Sprintf("SELECT v  FROM t WHERE id = %d", i))
	}
	p, err := s.Prepare(t.Context(), "", "select v from T where id = 7", nil)
	if err != nil {
		t.Fatal(err)
	}
	pt, err := s.Bind(t.Context(), "", p, nil, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := s.Run(t.Context(), pt, 0, &recorder{s: s}); err != nil {
		t.Fatal(err)
	}
	if err := s.Sync(t.Context(), false, &recorder{s: s}); err != nil {
		t.Fatal(err)
	}
	_ = s.Query(t.Context(), "SELECT 1/0", &recorder{s: s}) // failures are not counted
	got := runSQL(t, s, `SELECT query, calls, rows, total_exec_time > 0 AND min_exec_time <= mean_exec_time AND mean_exec_time <= max_exec_time, toplevel, queryid <> 0
		FROM pg_stat_statements WHERE query NOT LIKE '%reset%' ORDER BY query`)
	want := "INSERT INTO t VALUES ($1, $2), ($3, $4)|3|6|true|true|true\nSELECT v  FROM t WHERE id = $1|4|3|true|true|true"
	if strings.Join(got, "\n") != want {
		t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), want)
	}
	if got := runSQL(t, s, "SELECT a.query_id = s.queryid FROM pg_stat_activity a, pg_stat_statements s WHERE s.query LIKE 'SELECT query, calls%'"); len(got) != 1 || got[0] != "false" {
		t.Errorf("query_id: %v", got)
	}
	runSQL(t, s, "SET pg_stat_statements.track_utility = off")
	runSQL(t, s, "SHOW work_mem")
	if got := runSQL(t, s, "SELECT count(*) FROM pg_stat_statements WHERE query = 'SHOW work_mem'"); got[0] != "0" {
		t.Error("a utility statement is counted")
	}
	for i := range 300 { // names differ: these are all different statements
		runSQL(t, s, fmt.Sprintf("SELECT 1 AS c%d", i))
	}
	if got := runSQL(t, s, "SELECT count(*) <= 100, (SELECT dealloc > 0 FROM pg_stat_statements_info) FROM pg_stat_statements"); got[0] != "true|true" {
		t.Errorf("bound: %v", got)
	}
	runSQL(t, s, "SELECT pg_stat_statements_reset()")
	if got := runSQL(t, s, "SELECT count(*) FROM pg_stat_statements"); got[0] != "1" {
		t.Errorf("after a reset: %v", got)
	}
}

func TestStatTables(t *testing.T) {
	e, _ := logEngine(t, nil)
	s := testSession(t, e)
	runSQL(t, s, "CREATE TABLE t (id int PRIMARY KEY, v text)")
	runSQL(t, s, "INSERT INTO t VALUES (1, 'a'), (2, 'b'), (3, 'c')")
	runSQL(t, s, "UPDATE t SET v = 'z' WHERE id = 1")
	runSQL(t, s, "DELETE FROM t WHERE v = 'b'")
	runSQL(t, s, "SELECT * FROM t")
	runSQL(t, s, "SELECT * FROM t WHERE id = 3")
	runSQL(t, s, "ANALYZE t")
	got := runSQL(t, s, `SELECT relname, seq_scan > 0, seq_tup_read > 0, idx_scan > 0, n_tup_ins, n_tup_upd, n_tup_del, n_live_tup >= 2, n_mod_since_analyze,
		last_analyze IS NOT NULL, analyze_count, last_vacuum IS NULL FROM pg_stat_user_tables`)
	if strings.Join(got, "\n") != "t|true|true|true|3|1|1|true|0|true|1|true" {
		t.Errorf("pg_stat_user_tables: %q", got)
	}
	runSQL(t, s, "VACUUM FULL t")
	got = runSQL(t, s, `SELECT relname, snapshot_id > 3, snapshot_time IS NOT NULL, files, rows, sorted_runs, level0_files, buckets, partitions, compact_time IS NOT NULL FROM paimon_stat_tables`)
	if strings.Join(got, "\n") != "t|true|true|1|2|1|0|1|1|true" {
		t.Errorf("paimon_stat_tables: %q", got)
	}
	got = runSQL(t, s, "SELECT numbackends, xact_commit > 5, tup_inserted, tup_updated, tup_deleted, sessions, active_time > 0 FROM pg_stat_database")
	if strings.Join(got, "\n") != "1|true|3|1|1|1|true" {
		t.Errorf("pg_stat_database: %q", got)
	}
	runSQL(t, s, "SELECT pg_stat_reset()")
	if got = runSQL(t, s, "SELECT seq_scan, n_tup_ins FROM pg_stat_all_tables WHERE relname = 't'"); got[0] != "0|0" {
		t.Errorf("after pg_stat_reset: %q", got)
	}
}

func TestReload(t *testing.T) {
	e, _ := logEngine(t, map[string]string{"statement_timeout": "7s"})
	s := testSession(t, e)
	show := func(name string) string { return runSQL(t, s, "SHOW "+name)[0] }
	wait, err := e.Reload(map[string]string{"work_mem": "8MB", "statement_timeout": "1s", "max_connections": "7", "TimeZone": "Europe/Berlin"})
	if err != nil || strings.Join(wait, ",") != "max_connections" {
		t.Fatal(wait, err)
	}
	for name, want := range map[string]string{"work_mem": "8MB", "statement_timeout": "7s", "max_connections": "100", "TimeZone": "Europe/Berlin"} {
		if got := show(name); got != want {
			t.Errorf("%s is %s, not %s", name, got, want)
		}
	}
	if got := runSQL(t, s, "SELECT name, source, pending_restart FROM pg_settings WHERE name IN ('work_mem', 'max_connections', 'statement_timeout') ORDER BY 1"); strings.Join(got, " ") !=
		"max_connections|default|true statement_timeout|command line|false work_mem|configuration file|false" {
		t.Errorf("pg_settings: %q", got)
	}
	runSQL(t, s, "SET work_mem = '9MB'")
	if _, err := e.Reload(map[string]string{"work_mem": "10MB"}); err != nil {
		t.Fatal(err)
	}
	if show("work_mem") != "9MB" {
		t.Error("what a session has set was changed")
	}
	runSQL(t, s, "RESET work_mem")
	if show("work_mem") != "10MB" || show("TimeZone") != "UTC" {
		t.Error("RESET does not know the new value")
	}
	for _, bad := range []map[string]string{{"nothing": "1"}, {"work_mem": "many"}} {
		if _, err := e.Reload(bad); err == nil {
			t.Errorf("%v is accepted", bad)
		}
	}
	if show("work_mem") != "10MB" {
		t.Error("a wrong file changed settings")
	}
}
