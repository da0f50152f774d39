package main

import (
	"bytes"
	"context"
	"log/slog"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/scram"
	"github.com/paimon-sql/paimon-sql/pgwire"
)

// logText is a log that may be read while it is written.
type logText struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (l *logText) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.Write(p)
}

func (l *logText) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.b.String()
}

// roleServer serves a warehouse with a password for the superuser; log takes all that
// is logged.
func roleServer(t *testing.T, hba string, log *logText) string {
	t.Helper()
	l := slog.New(slog.NewTextHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	e, err := engine.Open(context.Background(), engine.Config{
		Warehouse: "mem://", Log: l, Settings: map[string]string{"log_min_duration_statement": "0"},
	})
	if err != nil {
		t.Fatal(err)
	}
	a, err := newAuth("secret", hba, false)
	if err != nil {
		t.Fatal(err)
	}
	a.rolesOf(e)
	s := pgwire.NewServer(pgwire.Config{Backend: backend{e}, Auth: a, Log: l, FailDelay: -1})
	li, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	go s.Serve(li) //nolint:errcheck // ends with the test
	t.Cleanup(func() {
		li.Close()
		e.Close()
	})
	return li.Addr().String()
}

func TestRoleLogin(t *testing.T) {
	ready, err := scram.New("elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	var log logText
	addr := roleServer(t, "", &log)
	dsn := func(user, password string) string {
		return "postgres://" + user + ":" + url.QueryEscape(password) + "@" + addr + "/paimon?sslmode=disable"
	}
	super, err := pgconn.Connect(t.Context(), dsn("paimon", "secret"))
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(t.Context())
	do := func(c *pgconn.PgConn, sql string) string {
		t.Helper()
		r, err := c.Exec(t.Context(), sql).ReadAll()
		if err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
		if n := len(r); n > 0 && len(r[n-1].Rows) > 0 {
			return string(r[n-1].Rows[0][0])
		}
		return ""
	}
	do(super, `CREATE USER app PASSWORD 'hunter2'; CREATE USER two PASSWORD 'hunter2' CONNECTION LIMIT 1;
		CREATE ROLE group1 PASSWORD 'hunter2'; CREATE USER nopass; CREATE USER old PASSWORD 'hunter2' VALID UNTIL '2020-01-01';
		CREATE USER ready PASSWORD '`+ready.String()+`'`)
	do(super, "CREATE/**/ROLE odd PASS"+"WORD 'hunter2'")
	if q := do(super, "SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()"); !strings.HasPrefix(q, "SELECT query") {
		t.Errorf("pg_stat_activity shows %q", q)
	}
	if q := do(super, "CREATE ROLE seen PASSWORD 'hunter2'; SELECT query FROM pg_stat_activity WHERE pid = pg_backend_pid()"); strings.Contains(q, "hunter2") {
		t.Errorf("pg_stat_activity shows %q", q)
	}
	try := func(user, password string) (*pgconn.PgConn, string) {
		t.Helper()
		c, err := pgconn.Connect(t.Context(), dsn(user, password))
		if err == nil {
			t.Cleanup(func() { c.Close(context.Background()) })
			return c, ""
		}
		pe := asServerError(err)
		if pe == nil {
			t.Fatalf("%s: %v", user, err)
		}
		return nil, pe.Code.String() + " " + pe.Message
	}
	for _, tt := range []struct{ user, password, want string }{
		{"app", "hunter2", ""},
		{"ready", "elsewhere", ""},
		{"app", "wrong", `28P01 password authentication failed for user "app"`},
		{"ready", ready.String(), `28P01 password authentication failed for user "ready"`},
		{"nobody", "hunter2", `28P01 password authentication failed for user "nobody"`},
		{"nopass", "", `28P01 password authentication failed for user "nopass"`},
		{"old", "hunter2", `28P01 password authentication failed for user "old"`},
		{"group1", "wrong", `28P01 password authentication failed for user "group1"`},
		{"group1", "hunter2", `28000 role "group1" is not permitted to log in`},
		{"two", "hunter2", ""},
		{"two", "hunter2", `53300 too many connections for role "two"`},
	} {
		if _, got := try(tt.user, tt.password); got != tt.want {
			t.Errorf("%s/%s: %q, want %q", tt.user, tt.password, got, tt.want)
		}
	}
	app, _ := try("app", "hunter2")
	if app == nil {
		t.Fatal("app is not let in")
	}
	if u := do(app, "SELECT current_user || ' ' || session_user || ' ' || current_setting('is_superuser')"); u != "app app off" {
		t.Errorf("app is %q", u)
	}
	if n := do(app, "SELECT count(*) FROM pg_stat_activity WHERE query <> '<insufficient privilege>' AND usename <> 'app'"); n != "0" {
		t.Errorf("app sees %s queries of others", n)
	}
	for sql, want := range map[string]string{
		"SET SESSION AUTHORIZATION paimon": "42501", "SET ROLE paimon": "42501", "SELECT set_config('role', 'paimon', false)": "42501",
		"SET SESSION AUTHORIZATION nopass": "42501", "SELECT rolpassword FROM pg_authid": "42501", "CREATE ROLE x": "42501",
		"ALTER ROLE app SUPERUSER": "42501", "GRANT paimon TO app": "42501", "ALTER ROLE paimon PASSWORD 'x'": "42501",
		"SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'paimon'": "42501",
		"CREATE TABLE t (a int); COPY t FROM '/etc/hostname'":                             "42501",
	} {
		_, err := app.Exec(t.Context(), sql).ReadAll()
		if pe := asServerError(err); pe == nil || pe.Code.String() != want {
			t.Errorf("%s: %v, want %s", sql, err, want)
		}
	}
	// What a connection asks for at its start is no way round.
	for _, p := range []string{"role=paimon", "session_authorization=paimon"} {
		if _, err := pgconn.Connect(t.Context(), dsn("app", "hunter2")+"&"+p); err == nil {
			t.Errorf("%s at the start is taken", p)
		}
	}
	do(app, "ALTER ROLE app PASSWORD 'hunter3'")
	if _, got := try("app", "hunter2"); !strings.HasPrefix(got, "28P01") {
		t.Errorf("the old password: %q", got)
	}
	if _, got := try("app", "hunter3"); got != "" {
		t.Errorf("the new password: %q", got)
	}
	do(super, "DROP ROLE app")
	if _, got := try("app", "hunter3"); !strings.HasPrefix(got, "28P01") {
		t.Errorf("a dropped role: %q", got)
	}
	if u := do(super, "SELECT left(rolpassword, 14) FROM pg_authid WHERE rolname = 'two'"); u != "SCRAM-SHA-256$" {
		t.Errorf("stored: %q", u)
	}
	for _, s := range []string{"hunter2", "hunter3", ready.String()} {
		if strings.Contains(log.String(), s) {
			t.Errorf("the log has %q:\n%s", s, log.String())
		}
	}
	if !strings.Contains(log.String(), "slow statement") {
		t.Error("nothing was logged: the test shows nothing")
	}
}

// Rules name roles and whom they have as members; who is let in without a password
// must be a role all the same, once there are any.
func TestRoleRules(t *testing.T) {
	file := filepath.Join(t.TempDir(), "hba.conf")
	if err := os.WriteFile(file, []byte("host all +staff all trust\nhost all stranger all trust\nhost all all all scram-sha-256\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	var log logText
	addr := roleServer(t, file, &log)
	super, err := pgconn.Connect(t.Context(), "postgres://paimon:secret@"+addr+"/paimon?sslmode=disable")
	if err != nil {
		t.Fatal(err)
	}
	defer super.Close(t.Context())
	if _, err := super.Exec(t.Context(), "CREATE ROLE staff; CREATE ROLE nights IN ROLE staff; CREATE USER ann IN ROLE nights; CREATE USER bob").ReadAll(); err != nil {
		t.Fatal(err)
	}
	for user, want := range map[string]string{"ann": "", "bob": "28P01", "stranger": "28000"} {
		c, err := pgconn.Connect(t.Context(), "postgres://"+user+":x@"+addr+"/paimon?sslmode=disable")
		if err == nil {
			c.Close(t.Context())
		}
		if pe := asServerError(err); (err == nil) != (want == "") || want != "" && (pe == nil || pe.Code.String() != want) {
			t.Errorf("%s: %v, want %q", user, err, want)
		}
	}
}
