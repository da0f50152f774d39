package engine

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// feed is a client that sends what its reader yields.
type feed struct {
	texts
	in io.Reader
}

func (f *feed) CopyIn(ctx context.Context, _ bool, _ int) (io.Reader, error) {
	if b, ok := f.in.(*blocked); ok {
		b.ctx = ctx
	}
	return f.in, nil
}

func (f *feed) CopyOut(context.Context, bool, int) (io.WriteCloser, error) {
	return nil, errors.New("not here")
}

// lines yields n lines, then err.
type lines struct {
	n, at int
	err   error
}

func (l *lines) Read(p []byte) (int, error) {
	if l.at == l.n {
		return 0, l.err
	}
	l.at++
	return copy(p, fmt.Sprintf("%d\tvalue %d\n", l.at, l.at)), nil
}

// blocked waits as a connection does when the client says nothing.
type blocked struct {
	ctx     context.Context
	lines   lines
	waiting chan struct{}
}

func (b *blocked) Read(p []byte) (int, error) {
	if b.lines.at < b.lines.n {
		return b.lines.Read(p)
	}
	close(b.waiting)
	<-b.ctx.Done()
	return 0, context.Cause(b.ctx)
}

// dataFiles lists the files of a table that only a commit should leave.
func dataFiles(t *testing.T, e *Engine, table string) []string {
	t.Helper()
	var out []string
	for _, dir := range []string{"bucket-0", "snapshot", "manifest"} {
		list, err := e.io.List(t.Context(), "default.db/"+table+"/"+dir)
		if err != nil && !errors.Is(err, fileio.ErrNotExist) {
			t.Fatal(err)
		}
		for _, f := range list {
			out = append(out, fmt.Sprint(f))
		}
	}
	return out
}

// What ends a COPY before its data ends leaves nothing behind, however much was
// written to files by then.
func TestCopyLeavesNothing(t *testing.T) {
	e, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE a (id int, v text)")
	runSQL(t, s, "CREATE TABLE k (id int PRIMARY KEY, v text CHECK (v <> 'no'))")
	gaveUp := pgerr.New(pgerr.QueryCanceled, "COPY from stdin failed: enough")
	for _, table := range []string{"a", "k"} {
		for _, n := range []int{0, 10, 60_000} {
			for _, end := range []struct {
				err  error
				more string
				want string
			}{
				{gaveUp, "", "57014 COPY from stdin failed: enough"},
				{pgerr.New(pgerr.ConnectionFailure, "gone"), "", "08006 gone"},
				{io.EOF, "x\ty\n", "22P02 invalid input syntax for type integer: \"x\""},
				{io.EOF, "1\n", "22P04 missing data for column \"v\""},
			} {
				f := &feed{in: &lines{n: n, err: end.err}}
				if end.more != "" {
					f.in = io.MultiReader(&lines{n: n, err: io.EOF}, strings.NewReader(end.more))
				}
				err := s.Query(t.Context(), "COPY "+table+" FROM STDIN", f)
				var pe *pgerr.Error
				if !errors.As(err, &pe) || pe.Code.String()+" "+pe.Message != end.want {
					t.Fatalf("%s, %d rows: %v, want %s", table, n, err, end.want)
				}
				if want := fmt.Sprintf("line %d", n+1); !strings.Contains(pe.Context, want) {
					t.Errorf("context %q, want %s", pe.Context, want)
				}
				if got := dataFiles(t, e, table); len(got) > 0 {
					t.Fatalf("%s, %d rows, %s: %v stay behind", table, n, end.want, got)
				}
			}
		}
	}
	err := s.Query(t.Context(), "COPY k FROM STDIN", &feed{in: strings.NewReader("1\tyes\n2\tno\n")})
	var pe *pgerr.Error
	if !errors.As(err, &pe) || pe.Code != pgerr.CheckViolation || pe.Context != "COPY k, line 2: \"2\tno\"" {
		t.Errorf("check: %v", err)
	}
	if got := runSQL(t, s, "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM k)"); got[0] != "0|0" {
		t.Errorf("rows: %v", got)
	}
	if used := e.root.Used(); used != 0 {
		t.Errorf("%d bytes are still charged", used)
	}
}

// A cancelled COPY does not wait for its client.
func TestCopyCancelled(t *testing.T) {
	e, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE a (id int, v text)")
	b := &blocked{lines: lines{n: 20_000}, waiting: make(chan struct{})}
	go func() {
		<-b.waiting
		s.interrupt(errCanceled())
	}()
	err := s.Query(t.Context(), "COPY a FROM STDIN", &feed{in: b})
	if !pgerr.Is(err, pgerr.QueryCanceled) {
		t.Fatal(err)
	}
	if got := dataFiles(t, e, "a"); len(got) > 0 {
		t.Errorf("%v stay behind", got)
	}
	f := &feed{in: &lines{n: 30_000, err: io.EOF}}
	if err := s.Query(t.Context(), "COPY a FROM STDIN", f); err != nil || len(f.tags) != 1 || f.tags[0] != "COPY 30000" {
		t.Errorf("afterwards: %v %v", f.tags, err)
	}
	if got := runSQL(t, s, "SELECT count(*), sum(id), max(v) FROM a"); got[0] != "30000|450015000|value 9999" {
		t.Errorf("rows: %v", got)
	}
}

func TestCopyFromFile(t *testing.T) {
	_, off := maintained(t, nil)
	runSQL(t, off, "CREATE TABLE a (id int)")
	if err := off.Query(t.Context(), "COPY a FROM '/dev/null'", &texts{}); !pgerr.Is(err, pgerr.InsufficientPrivilege) {
		t.Errorf("files of the server are read: %v", err)
	}
	_, s := maintained(t, map[string]string{"paimon.server_files": "on"})
	runSQL(t, s, "CREATE TABLE a (id int, v text)")
	dir := t.TempDir()
	name := filepath.Join(dir, "rows.csv")
	if err := os.WriteFile(name, []byte("id,v\n1,\"a,b\"\n2,\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	runSQL(t, s, "COPY a FROM '"+name+"' (FORMAT csv, HEADER match)")
	if got := runSQL(t, s, "SELECT * FROM a ORDER BY 1"); strings.Join(got, " ") != "1|a,b 2|<nil>" {
		t.Errorf("rows: %v", got)
	}
	for _, c := range []struct{ sql, want string }{
		{"COPY a FROM '" + dir + "/none'", "58P01 could not open file \"" + dir + "/none\" for reading: No such file or directory"},
		{"COPY a FROM '" + dir + "'", "42809 \"" + dir + "\" is a directory"},
		{"COPY a FROM PROGRAM 'ls'", "0A000 COPY FROM PROGRAM is not supported"},
		{"COPY a FROM STDIN", "0A000 COPY FROM STDIN needs a client that sends a stream"},
	} {
		err := s.Query(t.Context(), c.sql, &texts{})
		var pe *pgerr.Error
		if !errors.As(err, &pe) || pe.Code.String()+" "+pe.Message != c.want {
			t.Errorf("%s: %v, want %s", c.sql, err, c.want)
		}
	}
}

// discardCopy is a client that takes what COPY TO sends.
type discardCopy struct{ feed }

func (d *discardCopy) CopyOut(context.Context, bool, int) (io.WriteCloser, error) {
	return nopWriter{}, nil
}

type nopWriter struct{}

func (nopWriter) Write(p []byte) (int, error) { return len(p), nil }
func (nopWriter) Close() error                { return nil }

// TestCopyOptions compares options and their errors with what PostgreSQL 15 says.
func TestCopyOptions(t *testing.T) {
	_, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE t (a int, b text, c numeric(5,2))")
	b, err := os.ReadFile("testdata/copy_options.txt")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(strings.TrimSpace(string(b)), "\n")
	list := strings.Split(text, "\n")
	if len(list) < 200 {
		t.Fatal(len(list), " lines")
	}
	for i := 0; i+1 < len(list); i += 2 {
		sql, want := list[i], list[i+1]
		got := "ok"
		if err := s.Query(t.Context(), sql, &discardCopy{feed{in: strings.NewReader("")}}); err != nil {
			var pe *pgerr.Error
			if !errors.As(err, &pe) {
				t.Fatal(err)
			}
			got = fmt.Sprintf("%s %s|", pe.Code, pe.Message)
			if pe.Position > 0 {
				got += fmt.Sprint(pe.Position)
			}
		}
		if got != want {
			t.Errorf("%s\n got %s\nwant %s", sql, got, want)
		}
	}
}
