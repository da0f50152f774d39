package engine

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path"
	"path/filepath"
	"strings"
	"sync/atomic"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Temporary tables are Paimon tables of a warehouse that the session has for
// itself, a directory among the server's temporary files. It holds one schema,
// pg_temp_N, which stands first in the search path. Everything else - statements,
// transactions, savepoints - is as with other tables. Nothing is synced: what a
// crash leaves is garbage.

// tempPrefix begins the names of schemas of temporary tables.
const tempPrefix = "pg_temp_"

var tempCounter atomic.Uint64

// tempSpace is the private warehouse of a session.
type tempSpace struct {
	cat    *catalog.Filesystem
	schema string
	dir    *tempDir
	// onCommit is what becomes of tables when a transaction commits, by name.
	onCommit map[string]ast.OnCommit
}

// tempSchema is the schema of the session's temporary tables; "" = it has none.
func (s *Session) tempSchema() string {
	if s.temp == nil {
		return ""
	}
	return s.temp.schema
}

// openTemp makes the session's private warehouse if there is none yet.
func (s *Session) openTemp(ctx context.Context) (*tempSpace, error) {
	if s.temp != nil {
		return s.temp, nil
	}
	dir, err := newTempDir(s.eng.cfg.TempDir)
	if err != nil {
		return nil, err
	}
	env := table.NewEnv(&tempIO{fileio.NewLocal(dir.path)}, table.EnvOptions{
		ManifestCacheBytes: 4 << 20, PageCacheBytes: 16 << 20, VectorCacheBytes: 1 << 20, OpenFiles: 32,
	})
	t := &tempSpace{
		cat: catalog.NewFilesystem(env, dir.path), schema: fmt.Sprintf("%s%d", tempPrefix, tempCounter.Add(1)), dir: dir,
		onCommit: map[string]ast.OnCommit{},
	}
	if err := t.cat.CreateSchema(ctx, t.schema, nil); err != nil {
		_ = dir.remove()
		return nil, err
	}
	s.temp = t
	return t, nil
}

// dropTemp drops the session's temporary tables, as a part of its transaction.
func (s *Session) dropTemp(ctx context.Context) error {
	if s.temp == nil {
		return nil
	}
	names, err := s.tempCatalog().Tables(ctx, s.temp.schema)
	if err != nil {
		return err
	}
	for _, name := range names {
		rel, err := s.tempCatalog().Resolve(ctx, s.temp.schema, name, catalog.ResolveOptions{})
		if missing(err) {
			continue // owned by one that is gone
		}
		if err != nil {
			return err
		}
		if err := s.dropRelation(ctx, rel); err != nil {
			return err
		}
	}
	return nil
}

// closeTemp drops the private warehouse when the session ends.
func (s *Session) closeTemp() {
	if s.temp == nil {
		return
	}
	if err := s.temp.dir.remove(); err != nil {
		s.eng.log.Warn("files of temporary tables stay behind", "err", err)
	}
	s.temp = nil
}

// tempCatalog is the view of the temporary tables that the transaction has.
func (s *Session) tempCatalog() catalog.Catalog {
	if s.tx.temp != nil {
		return s.tx.temp
	}
	return s.temp.cat
}

// withTemp lays the session's temporary tables beside the warehouse.
func (s *Session) withTemp(main catalog.Catalog) catalog.Catalog {
	if s.temp == nil {
		return main
	}
	return &sessionCatalog{main: main, temp: s.tempCatalog(), schema: s.temp.schema}
}

// editorOf is the editor of a schema: the session's own for temporary tables.
func (s *Session) editorOf(ctx context.Context, schemaName string) (catalog.Editor, error) {
	if s.temp == nil || schemaName != s.temp.schema {
		return s.editor(ctx)
	}
	if s.tx.temp == nil {
		s.tx.temp = catalog.NewStaged(s.temp.cat)
		s.tx.temp.Written = func(dir string) bool {
			for _, t := range s.tx.tables {
				if t.key.dir == dir && t.writes() {
					return true
				}
			}
			return false
		}
	}
	if base, ok := s.eng.cat.(*catalog.Filesystem); ok {
		base.Changed() // definitions that this session remembers
	}
	return &lockingEditor{s, s.tx.temp}, nil
}

// endTemp does what ON COMMIT says, before the transaction is published.
func (s *Session) endTemp(ctx context.Context) error {
	if s.temp == nil {
		return nil
	}
	for _, name := range sortedKeys(s.temp.onCommit) {
		rel, err := s.tempCatalog().Resolve(ctx, s.temp.schema, name, catalog.ResolveOptions{})
		if missing(err) {
			delete(s.temp.onCommit, name) // dropped, or its making was rolled back
			continue
		}
		if err != nil {
			return err
		}
		if s.temp.onCommit[name] == ast.OnCommitDrop {
			r, err := s.newRemoval(ctx)
			if err != nil {
				return err
			}
			r.follow(ctx, s.temp.schema, name, "", "")
			if err := r.drop(ctx, nil); err != nil {
				return err
			}
			if err := s.dropRelation(ctx, rel); err != nil {
				return err
			}
		}
		// Rows are never kept beyond the transaction: what it wrote is not
		// published at all.
		if t, ok := rel.(catalog.TableInfo); ok {
			if tt := s.touched(keyOf(t)); tt != nil {
				tt.over, tt.reads = commit.Changes{}, nil
				tt.pending, tt.size, tt.rows = nil, 0, 0
			}
		}
	}
	return nil
}

// tempName is the schema and name of a temporary table that is made; temp is false
// when the statement makes another kind of table.
func (s *Session) tempName(ctx context.Context, text string, n ast.Name, p ast.Persistence) (schemaName, name string, temp bool, err error) {
	qualified := len(n) > 1
	own := qualified && (n[len(n)-2].Name == "pg_temp" || s.temp != nil && n[len(n)-2].Name == s.temp.schema)
	if p != ast.Temporary && !own {
		return "", "", false, nil
	}
	if qualified && !own {
		return "", "", false, errAt(text, n.Pos(), pgerr.InvalidTableDefinition, "cannot create temporary relation in non-temporary schema")
	}
	if strings.Contains(n.Last(), "$") {
		return "", "", false, errAt(text, n.Pos(), pgerr.InvalidName, "the name %q may not contain \"$\"", n.Last())
	}
	if err := s.mayInDatabase(ctx, roles.Temporary); err != nil {
		return "", "", false, err
	}
	t, err := s.openTemp(ctx)
	if err != nil {
		return "", "", false, err
	}
	return t.schema, n.Last(), true, nil
}

// keepTemp notes what becomes of a temporary table at commit.
func (s *Session) keepTemp(name string, on ast.OnCommit) {
	delete(s.temp.onCommit, name)
	if on == ast.OnCommitDrop || on == ast.OnCommitDelete {
		s.temp.onCommit[name] = on
	}
}

// sessionCatalog is the warehouse with a session's temporary tables.
type sessionCatalog struct {
	main, temp catalog.Catalog
	schema     string
}

var _ catalog.Lister = (*sessionCatalog)(nil)

func (c *sessionCatalog) of(schemaName string) catalog.Catalog {
	if schemaName == c.schema {
		return c.temp
	}
	return c.main
}

// Resolve asks the warehouse that the schema belongs to.
func (c *sessionCatalog) Resolve(ctx context.Context, schemaName, name string, o catalog.ResolveOptions) (catalog.Relation, error) {
	return c.of(schemaName).Resolve(ctx, schemaName, name, o)
}

// Schemas lists the schema of temporary tables last.
func (c *sessionCatalog) Schemas(ctx context.Context) ([]string, error) {
	out, err := c.main.Schemas(ctx)
	return append(append([]string(nil), out...), c.schema), err
}

// Tables lists the tables of a schema.
func (c *sessionCatalog) Tables(ctx context.Context, schemaName string) ([]string, error) {
	return c.of(schemaName).Tables(ctx, schemaName)
}

// List lists both.
func (c *sessionCatalog) List(ctx context.Context, namesOnly bool) (*catalog.Listing, error) {
	main, err := catalog.List(ctx, c.main, namesOnly)
	if err != nil {
		return nil, err
	}
	temp, err := catalog.List(ctx, c.temp, namesOnly)
	if err != nil {
		return nil, err
	}
	return main.Beside(temp), nil
}

// Version changes when either part changed.
func (c *sessionCatalog) Version() uint64 { return c.main.Version() + c.temp.Version() }

// tempIO is a local directory whose files need not survive a crash.
type tempIO struct{ *fileio.Local }

var _ fileio.FileIO = (*tempIO)(nil)

// Sync does nothing.
func (t *tempIO) Sync(context.Context, ...string) error { return nil }

// Publish is PutIfAbsent: nothing needs to be on stable storage.
func (t *tempIO) Publish(ctx context.Context, p string, data []byte, _ ...string) error {
	return t.PutIfAbsent(ctx, p, data)
}

// PutIfAbsent makes a file. The session is the only one who looks, so that it may
// be seen while it is written.
func (t *tempIO) PutIfAbsent(_ context.Context, p string, data []byte) error {
	fail := func(err error) error { return &fileio.PathError{Op: "create", Path: p, Err: err} }
	if path.IsAbs(p) || strings.Contains(p, "..") || strings.Contains(p, "://") {
		return fail(errors.New("not a path of temporary tables"))
	}
	full := filepath.Join(t.Root(), filepath.FromSlash(p))
	open := func() (*os.File, error) { return os.OpenFile(full, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600) }
	f, err := open()
	if errors.Is(err, os.ErrNotExist) {
		if err = os.MkdirAll(filepath.Dir(full), 0o700); err == nil {
			f, err = open()
		}
	}
	if errors.Is(err, os.ErrExist) {
		return fmt.Errorf("%s: %w", p, fileio.ErrExist)
	}
	if err != nil {
		return fail(err)
	}
	if _, err := f.Write(data); err != nil {
		_ = f.Close()
		_ = os.Remove(full)
		return fail(err)
	}
	if err := f.Close(); err != nil {
		return fail(err)
	}
	return nil
}
