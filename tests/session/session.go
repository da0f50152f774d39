// Package session runs SQL in an engine of the test's own process and gives results
// as text: random tests run thousands of statements, which a connection would slow
// down.
package session

import (
	"context"
	"fmt"
	"log/slog"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// Null is how NULL is shown.
const Null = "-"

// Session is one session of an engine.
type Session struct {
	*engine.Session
	Engine *engine.Engine
	once   sync.Once
}

// Shut closes the session and its engine.
func (s *Session) Shut() {
	s.once.Do(func() {
		s.Close()
		s.Engine.Close() //nolint:errcheck // the test is over
	})
}

// Open opens an engine over a warehouse, and a session whose search path is the new
// schema d. Both close with the test. A nil io is the local file system.
func Open(t testing.TB, io fileio.FileIO, dir string) *Session {
	t.Helper()
	return open(t, io, dir, "create schema d")
}

// Reopen is Open where the schema may be there already.
func Reopen(t testing.TB, io fileio.FileIO, dir string) *Session {
	t.Helper()
	return open(t, io, dir, "create schema if not exists d")
}

func open(t testing.TB, io fileio.FileIO, dir, schema string) *Session {
	t.Helper()
	e, err := engine.Open(t.Context(), engine.Config{Warehouse: dir, FileIO: io, AnyDatabase: true, Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	s, err := e.OpenSession(t.Context(), engine.Startup{User: "tester", Database: "paimon"})
	if err != nil {
		t.Fatal(err)
	}
	x := &Session{Session: s, Engine: e}
	t.Cleanup(x.Shut)
	for _, q := range []string{schema, "set search_path = d"} {
		if _, err := x.Try(t.Context(), q); err != nil {
			t.Fatal(err)
		}
	}
	return x
}

// Try runs statements and returns the rows of the last one that has any.
func (s *Session) Try(ctx context.Context, q string) ([][]string, error) {
	c := &rows{}
	err := s.Query(ctx, q, c)
	return c.out, err
}

// rows collects a result as text.
type rows struct {
	cols []engine.Column
	out  [][]string
}

func (c *rows) Columns(cols []engine.Column) error { c.cols, c.out = cols, nil; return nil }

func (c *rows) Batch(_ context.Context, b *vec.Batch) error {
	b = vec.Compact(b)
	for i := range b.N {
		r := make([]string, len(c.cols))
		for k := range r {
			switch d := vec.DatumAt(b.Cols[k], c.cols[k].Type, i).(type) {
			case nil:
				r[k] = Null
			default:
				r[k] = fmt.Sprint(d)
			}
		}
		c.out = append(c.out, r)
	}
	return nil
}
func (c *rows) Complete(string) error       { return nil }
func (c *rows) Empty() error                { return nil }
func (c *rows) Notice(*pgerr.Error)         {}
func (c *rows) ParameterStatus(_, _ string) {}
