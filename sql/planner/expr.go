package planner

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// PlanExpr binds an expression without columns: an argument of EXECUTE, CALL or
// SET, a DEFAULT. want is the type it is assigned to; Unknown leaves its own
// (text for an untyped literal). Subqueries, aggregates and set-returning
// functions are refused.
func PlanExpr(ctx context.Context, e ast.Expr, text string, want types.Type, o Options) (plan.Expr, error) {
	return PlanExprOver(ctx, e, text, nil, "", want, o)
}

// PlanExprOver binds an expression over the columns of one row: a CHECK, a
// generated column. In the result column i is Slot i; alias is the name that may
// qualify columns.
func PlanExprOver(ctx context.Context, e ast.Expr, text string, cols types.Schema, alias string, want types.Type, o Options) (plan.Expr, error) {
	p := newPlanner(ctx, text, o)
	s := &scope{kind: inConst}
	at := map[plan.ColID]int{}
	if cols != nil {
		it := &item{name: alias, relVisible: alias != "", colVisible: true, lateralOK: true}
		for i, c := range cols {
			col := p.newCol(c.Name, c.Type.SQL(), colInfo{scope: s, item: it, rel: alias})
			at[col.ID] = i
			it.cols = append(it.cols, scopeCol{name: c.Name, e: col.Ref(), base: true})
		}
		s.items, s.all, s.kind = []*item{it}, []*item{it}, inCheck
	}
	x, err := p.expr(s, e)
	if err != nil {
		return nil, err
	}
	pos := p.loc(e)
	if want.Kind == types.Unknown {
		x, err = p.resolveUnknown(x, pos)
	} else {
		var c plan.Expr
		if c, err = p.coerce(x, want.SQL().WithNotNull(false), function.Assignment, pos); err == nil && c == nil {
			err = p.errAt(pgerr.DatatypeMismatch, pos, "expression is of type %s but type %s is needed", typeName(x.Type()), typeName(want)).
				WithHint("You will need to rewrite or cast the expression.")
		}
		x = c
	}
	if err != nil {
		return nil, err
	}
	if err := p.checkParams(); err != nil {
		return nil, err
	}
	if hasSubquery(x) || hasSet(x) {
		return nil, p.errAt(pgerr.FeatureNotSupported, pos, "cannot use subquery in this context")
	}
	b := &builder{p: p, env: map[plan.ColID]int{}}
	return b.expr(p.fold(x), at)
}

// EvalExpr computes an expression without columns now, stable and volatile
// functions included, and returns its value and type.
func EvalExpr(ctx context.Context, e ast.Expr, text string, want types.Type, o Options) (types.Datum, types.Type, error) {
	x, err := PlanExpr(ctx, e, text, want, o)
	if err != nil {
		return nil, want, err
	}
	ev := evaluator{ctx: ctx, env: o.Env}
	v, err := ev.eval(x)
	if err == errCannotEval { //nolint:errorlint // made here, never wrapped
		return nil, want, pgerr.New(pgerr.FeatureNotSupported, "this expression is not supported here")
	}
	return v, x.Type(), err
}
