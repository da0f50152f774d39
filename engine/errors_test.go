package engine

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestErrorTableComplete reads the sources of the layers below and fails when an
// exported error value or type has no rule.
func TestErrorTableComplete(t *testing.T) {
	known := map[string]bool{}
	for _, r := range errorTable {
		known[r.name] = true
	}
	// What never reaches a statement, with the reason.
	for _, n := range []string{
		"lookup.ErrNoRoom", "lookup.ErrUseless", "lookup.ErrClosed", "lookup.OrderError", // the files are read without the store then
		"table.ErrNoBucketCount", // sys.rescale says it in its own words
	} {
		known[n] = true
	}
	found := 0
	for _, root := range []string{"../storage", "../index", "../catalog", "../internal/mem"} {
		err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
			if err != nil || d.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go") {
				return err
			}
			f, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.SkipObjectResolution)
			if err != nil {
				return nil //nolint:nilerr // the compiler says so elsewhere
			}
			check := func(name string) {
				found++
				if full := f.Name.Name + "." + name; !known[full] {
					t.Errorf("%s: %s has no rule in errors.go", path, full)
				}
			}
			for _, decl := range f.Decls {
				g, ok := decl.(*ast.GenDecl)
				if !ok {
					continue
				}
				for _, spec := range g.Specs {
					switch s := spec.(type) {
					case *ast.ValueSpec:
						for _, n := range s.Names {
							if g.Tok == token.VAR && n.IsExported() && strings.HasPrefix(n.Name, "Err") {
								check(n.Name)
							}
						}
					case *ast.TypeSpec:
						if s.Name.IsExported() && strings.HasSuffix(s.Name.Name, "Error") {
							check(s.Name.Name)
						}
					}
				}
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
	}
	if found < 8 {
		t.Fatalf("only %d errors found: the walk is broken", found)
	}
}

func TestToPG(t *testing.T) {
	e := testEngine(t, nil)
	canceled, cancel := context.WithCancelCause(context.Background())
	cancel(errStatementTimeout())
	bg := context.Background()
	wrap := func(err error) error { return fmt.Errorf("read split: %w", err) }
	for _, tt := range []struct {
		ctx           context.Context
		err           error
		code, message string
		hint          string
	}{
		{bg, wrap(&fileio.CorruptionError{Path: "default.db/t/manifest/m", Offset: 7, Reason: "bad magic"}), "XX001", `file "default.db/t/manifest/m" is corrupt`, ""},
		{bg, wrap(&fileio.MissingError{Path: "default.db/t/bucket-0/f"}), "XX001", `file "default.db/t/bucket-0/f" is missing`, ""},
		{bg, wrap(&snapshot.NotFoundError{Ref: snapshot.Ref{Kind: snapshot.ID, ID: 1}, Earliest: 5, Latest: 9, Expired: true}), "58P01", "snapshot 1 has expired", "The oldest snapshot that can be read is 5."},
		{bg, wrap(&snapshot.NotFoundError{Ref: snapshot.Ref{Kind: snapshot.Tag, Name: "x"}}), "42704", `tag "x" does not exist`, ""},
		{bg, wrap(&fileio.UnsupportedError{Feature: "codec lzo"}), "0A000", "codec lzo is not supported", ""},
		{bg, wrap(&fileio.UnsupportedError{Feature: "codec lzo", Table: "s.t"}), "0A000", "codec lzo is not supported", ""},
		{bg, wrap(&mem.LimitError{Setting: "work_mem", Limit: 1 << 20, Asked: 5}), "53200", "out of memory", `Raise "work_mem" (SET work_mem = '...').`},
		{bg, wrap(&commit.ConflictError{SnapshotID: 3, Reason: "key changed"}), "40001", "could not serialize access due to concurrent update", "The transaction might succeed if retried."},
		{bg, wrap(syscall.ENOSPC), "53100", "could not write to file: no space left on device", "Free space in the warehouse or in the directory for temporary files."},
		{bg, wrap(&fileio.PathError{Op: "open", Path: "d.db/t/x", Err: syscall.EISDIR}), "58030", `could not open file "d.db/t/x": is a directory`, ""},
		{bg, wrap(&fs.PathError{Op: "open", Path: "/x", Err: syscall.EACCES}), "58030", "could not open file: permission denied", ""},
		{bg, wrap(catalog.ErrNoRelation), "42P01", "read split: relation does not exist", ""},
		{bg, wrap(pgerr.New(pgerr.DivisionByZero, "division by zero")), "22012", "division by zero", ""},
		{canceled, wrap(context.Canceled), "57014", "canceling statement due to statement timeout", ""},
		{canceled, wrap(errors.New("file already closed")), "57014", "canceling statement due to statement timeout", ""},
		{bg, wrap(context.Canceled), "57014", "canceling statement due to user request", ""},
	} {
		got := e.toPG(tt.ctx, tt.err, "")
		var un *fileio.UnsupportedError
		if errors.As(tt.err, &un) && un.Table != "" && got.Detail != "The table is "+un.Table+"." {
			t.Errorf("%v: detail %q", tt.err, got.Detail)
		}
		if got.Code.String() != tt.code || got.Message != tt.message || got.Hint != tt.hint {
			t.Errorf("%v: got %s %q hint %q, want %s %q hint %q", tt.err, got.Code, got.Message, got.Hint, tt.code, tt.message, tt.hint)
		}
	}
	if got := e.toPG(bg, errors.New("odd"), ""); got.Code != pgerr.InternalError || !strings.HasPrefix(got.Message, "internal error ") {
		t.Errorf("unknown error: %s %q", got.Code, got.Message)
	}
	// A bug must not hide behind a cancellation.
	if got := e.toPG(canceled, e.panicked("boom", nil), ""); got.Code != pgerr.InternalError {
		t.Errorf("panic: %s", got.Code)
	}
}
