// Package testserver runs the whole product, engine and protocol, in process and
// on a loopback port: what the suites under tests/ talk to.
package testserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/pgwire"
)

// backend adapts the engine to the protocol.
type backend struct{ e *engine.Engine }

func (b backend) Open(ctx context.Context, s engine.Startup) (pgwire.Session, error) {
	sess, err := b.e.OpenSession(ctx, s)
	if err != nil {
		return nil, err // not a nil *Session in an interface
	}
	return sess, nil
}

func (b backend) Cancel(pid int32, secret uint32) { b.e.Cancel(pid, secret) }

// Server is a running server.
type Server struct {
	Engine *engine.Engine
	Addr   string // host:port
	DSN    string // the address as clients want it
	stop   func()
}

// Open runs a server over the warehouse in cfg. Close ends it.
func Open(ctx context.Context, cfg engine.Config) (*Server, error) {
	cfg.AnyDatabase = true
	if cfg.Log == nil {
		level := slog.LevelError
		if os.Getenv("PAIMON_SQL_TEST_LOG") != "" {
			level = slog.LevelDebug
		}
		cfg.Log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level}))
	}
	e, err := engine.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	p := pgwire.NewServer(pgwire.Config{Backend: backend{e}, Log: cfg.Log})
	done := make(chan error, 1)
	go func() { done <- p.Serve(l) }()
	dsn := fmt.Sprintf("postgres://tester@%s/paimon?sslmode=disable", l.Addr())
	return &Server{Engine: e, Addr: l.Addr().String(), DSN: dsn, stop: func() {
		ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
		defer cancel()
		p.Shutdown(ctx) //nolint:errcheck // a connection left open by a test is cancelled
		if err := <-done; !errors.Is(err, pgwire.ErrServerClosed) {
			slog.Error("serve", "err", err)
		}
		e.Close() //nolint:errcheck // the process ends with the test
	}}, nil
}

// Close stops the server and its engine.
func (s *Server) Close() { s.stop() }

// Start runs a server for a test, over a copy of a warehouse, with defaults for
// settings. It ends with the test.
func Start(t testing.TB, warehouse string, settings map[string]string) *Server {
	t.Helper()
	dir := t.TempDir()
	if err := os.CopyFS(dir, os.DirFS(warehouse)); err != nil {
		t.Fatal("copy the warehouse: ", err)
	}
	return Serve(t, dir, settings)
}

// Serve is Start over the warehouse itself.
func Serve(t testing.TB, dir string, settings map[string]string) *Server {
	t.Helper()
	s, err := Open(context.Background(), engine.Config{Warehouse: dir, Settings: settings})
	if err != nil {
		t.Fatal("start: ", err)
	}
	t.Cleanup(s.Close)
	return s
}

// Shared returns the folder of material that lies beside a full checkout, or
// skips the test, naming what it needs.
func Shared(t testing.TB, part string) string {
	t.Helper()
	dir := os.Getenv("PAIMON_SQL_SHARED")
	if dir == "" {
		root, err := Root()
		if err != nil {
			t.Fatal(err)
		}
		dir = filepath.Join(root, "..", "shared")
	}
	p := filepath.Join(dir, part)
	if _, err := os.Stat(p); errors.Is(err, fs.ErrNotExist) {
		t.Skipf("needs ../shared/%s", part)
	}
	return p
}

// Root returns the repository's root: the folder above that holds go.mod.
func Root() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", err
	}
	for {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir, nil
		}
		up := filepath.Dir(dir)
		if up == dir {
			return "", errors.New("no go.mod above the working directory")
		}
		dir = up
	}
}
