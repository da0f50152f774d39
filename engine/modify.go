package engine

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// modifier turns the rows of one statement into changes of its target.
type modifier struct{}

func newModifier(context.Context, *Session, *planner.PlannedModify, []types.Datum) (*modifier, error) {
	return nil, pgerr.New(pgerr.FeatureNotSupported, "changing tables is not supported yet")
}

// rows takes a batch of source rows (of COPY: of plan.Modify.In) and returns
// RETURNING's rows, nil when there are none.
func (m *modifier) rows(context.Context, *vec.Batch) (*vec.Batch, error) { return nil, nil }

// finish ends the statement and returns how many rows it affected.
func (m *modifier) finish(context.Context) (int64, error) { return 0, nil }

// close drops what finish has not taken.
func (m *modifier) close() {}
