package engine

import (
	"context"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// catalog is the session's view of the warehouse: what its transaction has
// changed and not published is laid over the engine's catalog. Everything that
// looks names up for the session goes through it.
func (s *Session) catalog() catalog.Catalog {
	if s.tx.staged != nil {
		return s.withTemp(s.tx.staged)
	}
	return s.withTemp(s.eng.cat)
}

// editor takes the session's data definition. What it is told is seen by the
// session at once, published in order when the transaction commits and dropped
// when it rolls back. Tables that are altered or dropped are locked until then.
func (s *Session) editor(context.Context) (catalog.Editor, error) {
	base, ok := s.eng.cat.(*catalog.Filesystem)
	if !ok {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "this catalog cannot be changed")
	}
	if s.tx.staged == nil {
		s.tx.staged = catalog.NewStaged(base)
		s.tx.staged.Written = func(dir string) bool {
			for _, t := range s.tx.tables {
				if t.key.dir == dir && t.writes() {
					return true
				}
			}
			return false
		}
	}
	return &lockingEditor{s, s.tx.staged}, nil
}

// lockingEditor locks what it changes until the transaction ends.
type lockingEditor struct {
	s *Session
	*catalog.Staged
}

// lock takes a table from everybody else. Its name may carry a branch.
func (e *lockingEditor) lock(ctx context.Context, sqlSchema, name string) error {
	base, _, _ := strings.Cut(name, "$")
	dir := catalog.DatabaseDir(catalog.DatabaseOf(sqlSchema)) + "/" + base
	if _, err := e.s.lockTable(ctx, tableKey{dir: dir}, name, lockExclusive, false); err != nil {
		return err
	}
	return e.s.lockDefinition(ctx, tableKey{dir: dir}, name)
}

// DropSchema locks the schema's tables.
func (e *lockingEditor) DropSchema(ctx context.Context, name string, cascade bool) error {
	if cascade {
		tables, err := e.Tables(ctx, name)
		if err != nil {
			return err
		}
		for _, t := range tables {
			if err := e.lock(ctx, name, t); err != nil {
				return err
			}
		}
	}
	return e.Staged.DropSchema(ctx, name, cascade)
}

// AlterTable locks the table.
func (e *lockingEditor) AlterTable(ctx context.Context, sqlSchema, name string, changes []schema.Change) error {
	if err := e.lock(ctx, sqlSchema, name); err != nil {
		return err
	}
	return e.Staged.AlterTable(ctx, sqlSchema, name, changes)
}

// RenameTable locks the table.
func (e *lockingEditor) RenameTable(ctx context.Context, sqlSchema, name, newSchema, newName string) error {
	if err := e.lock(ctx, sqlSchema, name); err != nil {
		return err
	}
	return e.Staged.RenameTable(ctx, sqlSchema, name, newSchema, newName)
}

// DropTable locks the table.
func (e *lockingEditor) DropTable(ctx context.Context, sqlSchema, name string) error {
	if err := e.lock(ctx, sqlSchema, name); err != nil {
		return err
	}
	return e.Staged.DropTable(ctx, sqlSchema, name)
}

// newModifier opens a statement that changes pm's target. Use:
//
//	m, err := s.newModifier(ctx, pm, args)
//	if err != nil { ... }
//	defer m.close()                       // drops what finish has not taken
//	for each batch: ret, err := m.rows(ctx, b)
//	n, err := m.finish(ctx)               // rows affected
//
// The rows become part of the session's transaction by finish, and are published
// when it commits. args are the statement's parameters.
func (s *Session) newModifier(ctx context.Context, pm *planner.PlannedModify, args []types.Datum) (*modifier, error) {
	return newModifier(ctx, s, pm, args)
}
