package process

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
)

// freeAddr is an address that nobody listens on now.
func freeAddr(t testing.TB) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // it was only asked for its port
	return l.Addr().String()
}

// status is the answer's code of a page.
func status(t testing.TB, url string) (int, string) {
	t.Helper()
	r, err := http.Get(url)
	if err != nil {
		return 0, err.Error()
	}
	defer r.Body.Close() //nolint:errcheck // a reader
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, string(b)
}

// until polls for what must become true.
func until(t testing.TB, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(30 * time.Second); !f(); time.Sleep(5 * time.Millisecond) {
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

func (s *server) signal(t testing.TB, sig os.Signal) {
	t.Helper()
	if err := s.cmd.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
}

// A shutdown is seen at /readyz first; what runs goes on to its end, what is idle and
// who comes late are told.
func TestDrain(t *testing.T) {
	web := freeAddr(t)
	dir := t.TempDir()
	s := serve(t, dir, "--http-listen", web)
	until(t, "ready", func() bool { c, _ := status(t, "http://"+web+"/readyz"); return c == 200 })
	idle, tx, cp, cur := s.connect(t), s.connect(t), s.connect(t), s.connect(t)
	run(t, tx, "CREATE TABLE t (id int PRIMARY KEY, v text)", "BEGIN", "INSERT INTO t VALUES (1, 'a')")
	run(t, cur, "CREATE TABLE n (id int)", "INSERT INTO n SELECT * FROM generate_series(1, 5000)", "BEGIN", "DECLARE c CURSOR FOR SELECT id FROM n ORDER BY id", "FETCH 10 FROM c")
	run(t, cp, "CREATE TABLE l (id int)")
	r, w := io.Pipe()
	copied := make(chan error, 1)
	go func() {
		_, err := cp.PgConn().CopyFrom(context.Background(), r, "COPY l FROM STDIN")
		copied <- err
	}()
	if _, err := io.WriteString(w, "1\n2\n"); err != nil {
		t.Fatal(err)
	}
	until(t, "COPY runs", func() bool {
		return one(t, idle, "SELECT count(*) FROM pg_stat_progress_copy WHERE type = 'PIPE'") == "1"
	})
	s.signal(t, syscall.SIGTERM)
	until(t, "/readyz fails", func() bool { c, _ := status(t, "http://"+web+"/readyz"); return c == 503 })
	if c, _ := status(t, "http://"+web+"/healthz"); c != 200 {
		t.Errorf("/healthz: %d", c)
	}
	until(t, "late ones are refused", func() bool {
		c, err := pgx.Connect(context.Background(), s.dsn)
		if err == nil {
			_ = c.Close(context.Background())
			return false
		}
		if code(err) != "57P03" {
			t.Fatalf("a late connection: %v", err)
		}
		return true
	})
	if err := idle.Ping(context.Background()); code(err) != "57P01" {
		t.Errorf("an idle connection: %v", err)
	}
	if got := rows(t, cur, "FETCH 2 FROM c"); strings.Join(got, " ") != "11 12" {
		t.Errorf("a cursor: %v", got)
	}
	run(t, cur, "COMMIT")
	run(t, tx, "INSERT INTO t VALUES (2, 'b')", "COMMIT")
	if _, err := io.WriteString(w, "3\n"); err != nil {
		t.Fatal(err)
	}
	_ = w.Close()
	if err := <-copied; err != nil {
		t.Errorf("COPY: %v", err)
	}
	select {
	case <-s.done:
	case <-time.After(30 * time.Second):
		t.Fatalf("the server does not end: %s", s.log)
	}
	if c := s.cmd.ProcessState.ExitCode(); c != 0 {
		t.Errorf("exit code %d: %s", c, s.log)
	}
	again := serve(t, dir).connect(t)
	if got := one(t, again, "SELECT (SELECT count(*) FROM t), (SELECT count(*) FROM l)"); got != "2|3" {
		t.Errorf("rows: %s", got)
	}
}

// When the grace period is over statements end with 57P01; a second signal ends all.
func TestShutdownNow(t *testing.T) {
	s := serve(t, t.TempDir(), "--grace-period", "50ms")
	c := s.connect(t)
	watch := s.connect(t)
	failed := make(chan error, 1)
	go func() { _, err := c.Exec(context.Background(), "SELECT pg_sleep(600)"); failed <- err }()
	until(t, "the statement runs", func() bool {
		return one(t, watch, "SELECT count(*) FROM pg_stat_activity WHERE query LIKE 'SELECT pg_sleep%' AND state = 'active'") == "1"
	})
	s.signal(t, syscall.SIGINT)
	if err := <-failed; code(err) != "57P01" {
		t.Errorf("a running statement: %v", err)
	}
	<-s.done

	s = serve(t, t.TempDir(), "--grace-period", "10m")
	c = s.connect(t)
	run(t, c, "BEGIN")
	s.signal(t, syscall.SIGTERM)
	late := func() bool { _, err := pgx.Connect(context.Background(), s.dsn); return code(err) == "57P03" }
	until(t, "it shuts down", late)
	s.signal(t, syscall.SIGTERM)
	select {
	case <-s.done:
	case <-time.After(30 * time.Second):
		t.Fatal("a second signal does not end the server")
	}
	if st, ok := s.cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !st.Signaled() {
		t.Errorf("the server ended by itself: %v", s.cmd.ProcessState)
	}
}

// SIGHUP and pg_reload_conf() read the configuration file and the access rules again.
func TestReloadFiles(t *testing.T) {
	dir := t.TempDir()
	conf, hba := filepath.Join(dir, "paimon-sql.conf"), filepath.Join(dir, "pg_hba.conf")
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(conf, "hba_file = '"+hba+"'\nwork_mem = 8MB  # for the test\nlog_level = info\nmax_connections = 20\n")
	write(hba, "host all all 127.0.0.1/32 trust\n")
	s := serve(t, filepath.Join(dir, "w"), "--config", conf)
	c := s.connect(t)
	show := func(name string) string { return one(t, c, "SHOW "+name) }
	if show("work_mem") != "8MB" || show("max_connections") != "20" {
		t.Errorf("the file is not read: %s %s", show("work_mem"), show("max_connections"))
	}
	write(conf, "hba_file = '"+hba+"'\nwork_mem = '16MB'\nTimeZone 'Asia/Tokyo'\nmax_connections = 30\n")
	s.signal(t, syscall.SIGHUP)
	until(t, "the new value", func() bool { return show("work_mem") == "16MB" })
	if show("TimeZone") != "Asia/Tokyo" || show("max_connections") != "20" {
		t.Errorf("%s %s", show("TimeZone"), show("max_connections"))
	}
	write(conf, "hba_file = '"+hba+"'\nwork_mem = lots\n")
	write(hba, "host all nobody 127.0.0.1/32 trust\n")
	if one(t, c, "SELECT pg_reload_conf()") != "t" {
		t.Error("pg_reload_conf() is false")
	}
	until(t, "the new rules", func() bool {
		x, err := pgx.Connect(context.Background(), s.dsn)
		if err == nil {
			_ = x.Close(context.Background())
		}
		return code(err) == "28000"
	})
	if show("work_mem") != "16MB" {
		t.Error("a wrong file changed a setting")
	}
	_ = c.Close(context.Background())
	s.stop(t)
	for _, want := range []string{`need a restart" names=max-connections`, `what="configuration file"`, `invalid value for parameter`, `reloaded what="access rules"`} {
		if !strings.Contains(strings.ReplaceAll(s.log.String(), `\"`, `"`), want) {
			t.Errorf("the log does not say %s:\n%s", want, s.log)
		}
	}
}

func TestCheckConfig(t *testing.T) {
	dir := t.TempDir()
	conf := filepath.Join(dir, "a.conf")
	check := func(text string, args ...string) (string, int) {
		t.Helper()
		if err := os.WriteFile(conf, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		cmd := exec.Command(bin(t), append([]string{"serve", "--check-config", "--config", conf}, args...)...)
		cmd.Env = []string{"PATH=" + os.Getenv("PATH")}
		out, err := cmd.CombinedOutput()
		var ee *exec.ExitError
		if err != nil && !errors.As(err, &ee) {
			t.Fatal(err)
		}
		return strings.TrimSpace(string(out)), cmd.ProcessState.ExitCode()
	}
	head := "warehouse = '" + dir + "'\n"
	if out, c := check(head + "# nothing else\n"); c != 0 || out != "the configuration is right" {
		t.Errorf("%d %s", c, out)
	}
	example, err := os.ReadFile("../../contrib/paimon-sql.conf")
	if err != nil {
		t.Fatal(err)
	}
	if out, c := check(string(example)); c != 0 {
		t.Errorf("contrib/paimon-sql.conf: %s", out)
	}
	for text, want := range map[string]string{
		"listen_addresses = '*'\nport = 15432\n": "refusing to listen on 0.0.0.0:15432 without a password",
		"listen = ':5432'\n":                     "refusing to listen on :5432 without a password",
		"listen = '[::]:5432'\n":                 "refusing to listen on [::]:5432 without a password",
		"some_mem = 1MB\n":                       `line 2: unrecognized configuration parameter "some_mem"`,
		"work_mem = 'x\n":                        "line 2: a quoted value does not end",
		"work_mem\n":                             "line 2: a value is missing",
		"work_mem = 1 MB\n":                      `line 2: syntax error near "MB"`,
		"statement_timeout = never\n":            `invalid value for parameter "statement_timeout": "never"`,
		"hba_file = /nowhere\n":                  "no such file",
		"ssl = on\n":                             "do not go together",
		"log_level = loud\n":                     "is none of debug, info, warn, error",
		"grace_period = soon\n":                  "grace-period in the configuration file",
	} {
		if out, c := check(head + text); c != 2 || !strings.Contains(out, want) {
			t.Errorf("%q: %d %s", text, c, out)
		}
	}
	if out, c := check("", "--listen", "127.0.0.1:1"); c != 2 || !strings.Contains(out, "--warehouse is missing") {
		t.Errorf("%d %s", c, out)
	}
}

// systemd is told when the server is ready and when it stops: Type=notify.
func TestNotify(t *testing.T) {
	sock := filepath.Join(t.TempDir(), "n")
	l, err := net.ListenUnixgram("unixgram", &net.UnixAddr{Name: sock, Net: "unixgram"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close() //nolint:errcheck // the test is over
	t.Setenv("NOTIFY_SOCKET", sock)
	s := serve(t, t.TempDir())
	next := func() string {
		b := make([]byte, 200)
		_ = l.SetReadDeadline(time.Now().Add(20 * time.Second))
		n, err := l.Read(b)
		return fmt.Sprint(string(b[:n]), err)
	}
	if got := next(); got != "READY=1<nil>" {
		t.Error(got)
	}
	s.signal(t, syscall.SIGTERM)
	if got := next(); got != "STOPPING=1<nil>" {
		t.Error(got)
	}
	<-s.done
}
