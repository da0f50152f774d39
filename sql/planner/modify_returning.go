package planner

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// bindReturning binds a RETURNING list. Columns of the target in it mean the row
// affected.
func (m *modifier) bindReturning(s *scope, list []*ast.Target) error {
	if list == nil {
		return nil
	}
	p := m.p
	m.returning = []target{}
	add := func(name string, e plan.Expr, pos ast.Pos) error {
		e, err := p.resolveUnknown(e, pos)
		if err != nil {
			return err
		}
		m.returning = append(m.returning, target{name: name, e: e, pos: pos})
		c := Column{Name: name, Type: e.Type()}
		if col, ok := e.(*plan.Col); ok {
			if i := p.colInfo(col.ID); i != nil && i.relID != nil && i.att >= 0 {
				c.TableOID, c.AttNum = i.relID.OID(), i.relID.Columns()[i.att].AttNum
			}
		}
		m.ret = append(m.ret, c)
		return nil
	}
	old := s.kind
	s.kind = inReturning
	defer func() { s.kind = old }()
	for _, t := range list {
		items, ok, err := p.starItems(s, t.Expr)
		if err != nil {
			return err
		}
		if ok {
			for _, it := range items {
				if err := add(it.name, it.e, t.Pos); err != nil {
					return err
				}
			}
			continue
		}
		x, err := p.in(s, inReturning, t.Expr)
		if err != nil {
			return err
		}
		name := t.Alias.Name
		if name == "" {
			name = figureName(t.Expr)
		}
		if err := add(name, x, p.loc(t.Expr)); err != nil {
			return err
		}
	}
	if len(m.returning) > 1664 {
		return pgerr.New(pgerr.TooManyColumns, "target lists can have at most 1664 entries")
	}
	return nil
}

// extras makes Modify.Returning. What it uses besides the target's columns
// become columns of the source: those of other FROM items, and the values of
// subqueries, which see the table as it was before the statement.
func (m *modifier) extras(mod *plan.Modify) error {
	if err := m.finishConflict(mod); err != nil {
		return err
	}
	if m.returning == nil {
		return nil
	}
	p, t := m.p, m.t
	n := len(t.cols)
	place := map[plan.ColID]int{}
	for i := range t.cols {
		place[t.id(i)] = i
	}
	affected, err := m.affectedRow()
	if err != nil {
		return err
	}
	var top *plan.LProject // over the source, for subqueries
	extra := func(id plan.ColID, slot int) {
		place[id] = n + len(mod.Extra)
		mod.Extra = append(mod.Extra, slot)
	}
	b := &builder{p: p, env: map[plan.ColID]int{}}
	mod.Returning = make([]plan.Expr, len(m.returning))
	for i := range m.returning {
		e := m.returning[i].e
		if hasSubquery(e) {
			if m.conflict != nil && !m.conflict.nothing && usesTarget(e, place, n) {
				return p.errAt(pgerr.FeatureNotSupported, m.returning[i].pos, "a subquery in RETURNING that depends on the row is not supported with ON CONFLICT DO UPDATE")
			}
			if top == nil {
				top = &plan.LProject{}
			}
			e = plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
				sub, ok := x.(*plan.Subquery)
				if !ok {
					return nil, false
				}
				c := p.newCol("subquery", sub.T, colInfo{kind: colOther})
				over := subst(sub, affected)
				m.passUsed(over)
				top.Exprs = append(top.Exprs, over)
				top.Out = append(top.Out, c)
				extra(c.ID, -len(top.Out)) // its slot is known when all columns are
				return c.Ref(), true
			})
		}
		eachCol(e, func(c *plan.Col) {
			if _, ok := place[c.ID]; ok {
				return
			}
			extra(c.ID, m.pass(plan.LCol{ID: c.ID, Name: c.Name, T: c.T}))
		})
		x, err := b.expr(p.fold(e), place)
		if err != nil {
			return err
		}
		mod.Returning[i] = x
		mod.ReturnSchema = append(mod.ReturnSchema, types.Field{ID: -1, Name: m.returning[i].name, Type: x.Type()})
	}
	if top != nil {
		m.stack(top, mod.Extra)
	}
	return nil
}

// passUsed makes the columns of the source that e uses available above the
// projection over it.
func (m *modifier) passUsed(e plan.Expr) {
	if m.pr == nil {
		return // VALUES: all of its columns are
	}
	used := usedCols(e)
	for _, c := range m.src.Cols() {
		if used[c.ID] {
			m.pass(c)
		}
	}
}

// stack puts the subqueries of RETURNING on top of the source's projection;
// extra's negative entries are their columns.
func (m *modifier) stack(top *plan.LProject, extra []int) {
	in := m.src
	if m.pr != nil {
		in = m.pr
	}
	subs := len(top.Out)
	exprs, out := top.Exprs, top.Out
	top.In, top.Exprs, top.Out = in, nil, nil
	passed := colSet{}
	for _, c := range in.Cols() {
		if !passed[c.ID] {
			passed[c.ID] = true
			top.Exprs, top.Out = append(top.Exprs, c.Ref()), append(top.Out, c)
		}
	}
	first := len(m.ids)
	for i := range subs {
		top.Exprs, top.Out = append(top.Exprs, exprs[i]), append(top.Out, out[i])
		m.ids = append(m.ids, out[i].ID)
	}
	for i, s := range extra {
		if s < 0 {
			extra[i] = first - s - 1
		}
	}
	m.pr = top
}

// usesTarget reports whether the subqueries of e use columns of the target.
func usesTarget(e plan.Expr, place map[plan.ColID]int, n int) bool {
	hit := false
	plan.Walk(e, func(x plan.Expr) bool {
		if s, ok := x.(*plan.Subquery); ok {
			for c := range usedCols(s) {
				if i, ok := place[c]; ok && i < n {
					hit = true
				}
			}
		}
		return !hit
	})
	return hit
}

// affectedRow maps the target's columns to what they are in the row affected,
// as columns of the source: for subqueries of RETURNING.
func (m *modifier) affectedRow() (map[plan.ColID]plan.Expr, error) {
	any := false
	for i := range m.returning {
		any = any || hasSubquery(m.returning[i].e)
	}
	if !any || m.new == nil && !m.plain {
		return nil, nil // the row that is there is in the source under its own IDs
	}
	out := map[plan.ColID]plan.Expr{}
	if m.plain {
		for i, c := range m.src.Cols() {
			out[m.t.id(i)] = c.Ref()
		}
		return out, nil
	}
	var isDelete plan.Expr
	if m.deletes {
		a := m.actionCol.Ref()
		eq, err := m.p.operator("=", a, &plan.Const{Value: int64(plan.ActDelete), T: types.Of(types.Int2)}, -1, -1, -1)
		if err != nil {
			return nil, err
		}
		isDelete = eq
	}
	for i := range m.t.cols {
		e := plan.Expr(&plan.Col{ID: m.newIDs[i], Name: m.t.cols[i].Name, T: m.new[i].Type()})
		if isDelete != nil {
			old := m.t.ref(i)
			if c, ok := old.(*plan.Col); ok {
				m.pass(plan.LCol{ID: c.ID, Name: c.Name, T: c.T})
			}
			e = &plan.Case{Whens: []plan.When{{Cond: isDelete, Result: old}}, Else: e, T: m.t.columnType(i)}
		}
		out[m.t.id(i)] = e
	}
	return out, nil
}
