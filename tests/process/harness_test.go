// Package process tests the built binary: several server processes on one
// warehouse, processes killed at random, hours of writing in miniature.
//
// Sizes grow with PAIMON_SQL_SOAK (a factor, default 1): `make soak` runs the
// long forms.
package process

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
)

var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "paimon-sql-bin")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "paimon-sql")
	cmd := exec.Command("go", "build", "-o", bin, "github.com/paimon-sql/paimon-sql/cmd/paimon-sql")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return bin, nil
})

func TestMain(m *testing.M) {
	code := m.Run()
	if bin, err := binary(); err == nil {
		_ = os.RemoveAll(filepath.Dir(bin))
	}
	os.Exit(code)
}

func bin(t testing.TB) string {
	t.Helper()
	b, err := binary()
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// server is a running process.
type server struct {
	cmd  *exec.Cmd
	dsn  string
	log  *bytes.Buffer
	done chan struct{}
}

// serve starts a server over a warehouse and waits until it answers.
func serve(t testing.TB, warehouse string, args ...string) *server {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	addr := l.Addr().String()
	if err := l.Close(); err != nil {
		t.Fatal(err)
	}
	s := &server{dsn: "postgres://tester@" + addr + "/paimon?sslmode=disable", log: &bytes.Buffer{}, done: make(chan struct{})}
	s.cmd = exec.Command(bin(t), append([]string{"serve", "--warehouse", warehouse, "--listen", addr}, args...)...)
	out, w, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	s.cmd.Stdout, s.cmd.Stderr = w, w
	if err := s.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	_ = w.Close() // the process has its own
	ready := make(chan struct{})
	go func() {
		defer close(s.done)
		sc := bufio.NewScanner(out)
		told := false
		for sc.Scan() {
			s.log.WriteString(sc.Text() + "\n")
			if !told && strings.Contains(sc.Text(), "listening") {
				told = true
				close(ready)
			}
		}
		_ = out.Close()
		_ = s.cmd.Wait()
	}()
	select {
	case <-ready:
	case <-s.done:
		t.Fatalf("server ended: %s", s.log)
	case <-time.After(20 * time.Second):
		t.Fatalf("server does not answer: %s", s.log)
	}
	t.Cleanup(s.kill)
	return s
}

// kill is kill -9.
func (s *server) kill() {
	_ = s.cmd.Process.Kill()
	<-s.done
}

// stop is SIGTERM.
func (s *server) stop(t testing.TB) {
	t.Helper()
	if err := s.cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case <-s.done:
	case <-time.After(40 * time.Second):
		t.Fatalf("server does not stop: %s", s.log)
	}
	if strings.Contains(s.log.String(), "panic") {
		t.Errorf("panic in the log: %s", s.log)
	}
}

// rss is the process's memory in MB.
func (s *server) rss() int {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", s.cmd.Process.Pid))
	if err != nil {
		return 0
	}
	for _, l := range strings.Split(string(b), "\n") {
		if f := strings.Fields(l); len(f) > 1 && f[0] == "VmRSS:" {
			kb, _ := strconv.Atoi(f[1]) // 0 when the kernel says nonsense
			return kb / 1024
		}
	}
	return 0
}

func (s *server) connect(t testing.TB) *pgx.Conn {
	t.Helper()
	c, err := pgx.Connect(context.Background(), s.dsn)
	if err != nil {
		t.Fatalf("%v: %s", err, s.log)
	}
	t.Cleanup(func() { _ = c.Close(context.Background()) })
	return c
}

// run runs statements that must succeed.
func run(t testing.TB, c *pgx.Conn, sql ...string) {
	t.Helper()
	for _, q := range sql {
		if _, err := c.PgConn().Exec(context.Background(), q).ReadAll(); err != nil {
			t.Fatalf("%s: %v", q, err)
		}
	}
}

// rows runs a query and returns its rows as text.
func rows(t testing.TB, c *pgx.Conn, sql string) []string {
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
	return out
}

func one(t testing.TB, c *pgx.Conn, sql string) string {
	t.Helper()
	r := rows(t, c, sql)
	if len(r) != 1 {
		t.Fatalf("%s: %d rows", sql, len(r))
	}
	return r[0]
}

// code is an error's SQLSTATE; "" for an error of the connection.
func code(err error) string {
	var pe *pgconn.PgError
	if errors.As(err, &pe) {
		return pe.Code
	}
	return ""
}
