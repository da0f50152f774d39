package planner

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// PlanCopyFrom plans what COPY t (columns) FROM ... WHERE does with its rows.
// columns empty = all.
func PlanCopyFrom(ctx context.Context, name ast.Name, columns []ast.Ident, where ast.Expr, text string, o Options) (*PlannedModify, error) {
	p := newPlanner(ctx, text, o)
	m := &modifier{p: p, op: plan.InsertOp, plain: true}
	s := &scope{}
	r := &ast.TableName{Name: name, Loc: ast.At(-1)}
	if len(name) > 0 {
		r.Loc = ast.At(name[0].Pos)
	}
	if err := m.bindTarget(s, r, "copy to"); err != nil {
		return nil, err
	}
	t := m.t
	mod := &plan.Modify{Op: plan.InsertOp, Target: t.rel, Alias: t.it.name, Action: -1, File: -1, Pos: -1, RowID: -1}
	place := map[plan.ColID]int{}
	given := make([]bool, len(t.cols))
	add := func(i int) {
		place[t.id(i)] = len(mod.In)
		given[i] = true
		t.it.need.Inserted.add(i)
		mod.In = append(mod.In, types.Field{ID: t.cols[i].ID, Name: t.cols[i].Name, Type: t.columnType(i)})
	}
	if len(columns) == 0 {
		for i := range t.cols {
			add(i)
		}
	}
	for _, c := range columns {
		i, err := m.column(c.Name, -1)
		switch {
		case err != nil:
			return nil, err
		case i < 0:
			return nil, pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", c.Name, t.rel.Name())
		case given[i]:
			return nil, pgerr.New(pgerr.DuplicateColumn, "column %q specified more than once", c.Name)
		}
		add(i)
	}
	b := &builder{p: p, env: map[plan.ColID]int{}}
	missing := map[plan.ColID]plan.Expr{}
	mod.Fill = make([]plan.Expr, len(t.cols))
	for i := range t.cols {
		if given[i] {
			mod.Fill[i] = &plan.Slot{Index: place[t.id(i)], T: t.columnType(i)}
			continue
		}
		d, err := m.defaultOf(i)
		if err != nil {
			return nil, err
		}
		missing[t.id(i)] = d
		if mod.Fill[i], err = b.expr(d, place); err != nil {
			return nil, err
		}
	}
	if where != nil {
		// WHERE sees the whole row, defaults filled in.
		ws := &scope{items: []*item{t.it}, all: []*item{t.it}}
		p.makeNullable(ws.items)
		x, err := p.in(ws, inCopyWhere, where)
		if err != nil {
			return nil, err
		}
		if x, err = p.coerceBool(x, "WHERE", p.loc(where)); err != nil {
			return nil, err
		}
		if hasSubquery(x) {
			return nil, p.errAt(pgerr.FeatureNotSupported, p.loc(where), "cannot use subquery in COPY FROM WHERE condition")
		}
		if mod.Where, err = b.expr(p.fold(subst(x, missing)), place); err != nil {
			return nil, err
		}
	}
	var err error
	if mod.Checks, err = m.checks(); err != nil {
		return nil, err
	}
	if err := p.checkParams(); err != nil {
		return nil, err
	}
	return &PlannedModify{Modify: mod, ParamTypes: p.params, Volatile: p.volatile, Relations: p.relations, Needs: p.needs}, nil
}
