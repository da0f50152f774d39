package planner

import (
	"context"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// PlannedModify is a data-changing statement ready to run. Immutable.
type PlannedModify struct {
	Modify     *plan.Modify
	Columns    []Column // of RETURNING; nil without
	ParamTypes []types.Type
	Volatile   bool
	Relations  []catalog.Relation
}

// PlanModify plans an *ast.Insert, *ast.Update, *ast.Delete or *ast.Merge.
// CHECK constraints and defaults come from the target's options (see
// catalog.Constraints).
func PlanModify(_ context.Context, stmt ast.Stmt, _ string, _ Options) (*PlannedModify, error) {
	return nil, pgerr.New(pgerr.FeatureNotSupported, "%s is not supported yet", stmtName(stmt))
}

// PlanCopyFrom plans what COPY t (columns) FROM ... WHERE does with its rows.
// columns empty = all.
func PlanCopyFrom(_ context.Context, _ ast.Name, _ []ast.Ident, _ ast.Expr, _ string, _ Options) (*PlannedModify, error) {
	return nil, pgerr.New(pgerr.FeatureNotSupported, "COPY FROM is not supported yet")
}
