package engine

import (
	"context"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// stagedCatalog is the data definition that a transaction has made and not
// published: catalog.Staged. It shows the warehouse as its own session sees it.
type stagedCatalog interface {
	catalog.Catalog
	catalog.Editor
}

// catalog is the session's view of the warehouse: what its transaction has
// changed and not published is laid over the engine's catalog. Everything that
// looks names up for the session goes through it.
func (s *Session) catalog() catalog.Catalog {
	if s.tx.staged != nil {
		return s.tx.staged
	}
	return s.eng.cat
}

// editor takes the session's data definition. What it is told is seen by the
// session at once, published in order when the transaction commits and dropped
// when it rolls back. Tables that are altered or dropped are locked until then.
func (s *Session) editor(ctx context.Context) (catalog.Editor, error) {
	return nil, pgerr.New(pgerr.FeatureNotSupported, "changing the warehouse is not supported yet")
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
