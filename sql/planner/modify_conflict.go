package planner

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// boundConflict is ON CONFLICT before columns have slots.
type boundConflict struct {
	nothing, any, blind bool
	sets                []plan.Expr // by table column, over excluded and the target
	where               plan.Expr
	excluded            *item
}

// onConflict binds ON CONFLICT. In its expressions the target's columns are the
// row that is there, those of excluded the row proposed.
func (m *modifier) onConflict(s *scope, oc *ast.OnConflict) error {
	p, t := m.p, m.t
	c := &boundConflict{nothing: !oc.DoUpdate}
	m.conflict = c
	if oc.DoUpdate && oc.Target == nil && oc.Constraint.Empty() {
		return p.errAt(pgerr.SyntaxError, oc.Pos, "ON CONFLICT DO UPDATE requires inference specification or constraint name").
			WithHint("For example, ON CONFLICT (column_name).")
	}
	if err := m.arbiter(s, oc); err != nil {
		return err
	}
	need := t.it.need
	if !c.any {
		need.Modes |= roles.Select
		for i := range t.cols {
			if contains(t.rel.PrimaryKey(), t.cols[i].Name) {
				need.Selected.add(i)
			}
		}
	}
	if oc.DoUpdate {
		need.Modes |= roles.Update
	}
	if c.nothing {
		return nil
	}
	ex := &item{name: "excluded", table: "excluded", alias: true}
	for i := range t.cols {
		ct := t.cols[i].Type.SQL().WithNotNull(false)
		col := p.newCol(t.cols[i].Name, ct, colInfo{scope: s, item: ex, rel: "excluded", att: i})
		ex.cols = append(ex.cols, scopeCol{name: t.it.cols[i].name, e: col.Ref(), base: t.it.cols[i].base})
	}
	c.excluded = ex
	cs := &scope{parent: s}
	cs.items = append(p.addItem(cs, t.it), p.addItem(cs, ex)...)
	var err error
	set, _, err := m.bindSets(cs, oc.Sets, nil)
	if err != nil {
		return err
	}
	if oc.Where != nil {
		if c.where, err = p.in(cs, inWhere, oc.Where); err != nil {
			return err
		}
		if c.where, err = p.coerceBool(c.where, "WHERE", p.loc(oc.Where)); err != nil {
			return err
		}
	}
	c.sets = make([]plan.Expr, len(t.cols))
	c.blind = c.where == nil
	for i := range t.cols {
		x := set[i]
		proposed := isCol(x, ex.cols[i].e)
		switch {
		case x == nil:
			c.sets[i] = t.ref(i)
			c.blind = c.blind && t.key[i]
			continue
		case t.key[i] && !proposed:
			// The rows agree in the primary key, so excluded's is the same.
			m.keyChanged = true
		}
		c.blind = c.blind && proposed
		c.sets[i] = x
	}
	return nil
}

// isCol reports whether x is the very column c.
func isCol(x, c plan.Expr) bool {
	a, ok := x.(*plan.Col)
	if !ok {
		return false
	}
	b, ok := c.(*plan.Col)
	return ok && a.ID == b.ID
}

// arbiter checks that the conflict target is the primary key: nothing else is
// unique in a table.
func (m *modifier) arbiter(s *scope, oc *ast.OnConflict) error {
	p, t := m.p, m.t
	none := func() error {
		return pgerr.New(pgerr.InvalidColumnReference, "there is no unique or exclusion constraint matching the ON CONFLICT specification")
	}
	pk := t.rel.PrimaryKey()
	if !oc.Constraint.Empty() {
		name := oc.Constraint.Name
		if len(pk) > 0 && name == t.rel.Name()+"_pkey" {
			return nil
		}
		for _, c := range catalog.Constraints(t.options) {
			if c.Name != name {
				continue
			}
			if c.Kind == catalog.UniqueConstraint {
				return pgerr.New(pgerr.FeatureNotSupported, "ON CONFLICT cannot use constraint %q, which is not enforced", name)
			}
			return pgerr.New(pgerr.WrongObjectType, "constraint in ON CONFLICT clause has no associated index")
		}
		return pgerr.New(pgerr.UndefinedObject, "constraint %q for table %q does not exist", name, t.rel.Name())
	}
	if oc.Target == nil {
		m.conflict.any = true
		return nil
	}
	ts := &scope{parent: s, kind: inIndex}
	ts.items = p.addItem(ts, t.it)
	// PostgreSQL points at the parenthesis.
	open := oc.Target[0].Pos
	if i := int(open); i <= len(p.text) {
		open = ast.Pos(strings.LastIndexByte(p.text[:i], '('))
	}
	hit := make([]bool, len(t.cols))
	bad := false
	for _, e := range oc.Target {
		if e.Expr != nil {
			if _, err := p.expr(ts, e.Expr); err != nil {
				return err
			}
			bad = true
			continue
		}
		c, err := p.itemColumn(t.it, e.Column.Name, e.Pos)
		if err != nil {
			return err
		}
		if c == nil {
			return p.missingColumn(ts, "", e.Column.Name, open)
		}
		for i := range t.cols {
			if isCol(c.e, t.ref(i)) {
				hit[i] = true
			}
		}
	}
	if oc.TargetWhere != nil {
		x, err := p.in(ts, inIndex, oc.TargetWhere)
		if err != nil {
			return err
		}
		if _, err := p.coerceBool(x, "WHERE", p.loc(oc.TargetWhere)); err != nil {
			return err
		}
	}
	if bad || len(pk) == 0 {
		return none()
	}
	for i := range t.cols {
		if hit[i] != contains(pk, t.cols[i].Name) {
			return none()
		}
	}
	return nil
}

// finishConflict gives the columns of ON CONFLICT their slots: the row proposed,
// then the row that is there, then columns of the source.
func (m *modifier) finishConflict(mod *plan.Modify) error {
	c := m.conflict
	if c == nil {
		return nil
	}
	out := &plan.OnConflict{DoNothing: c.nothing, Blind: c.blind, Any: c.any}
	mod.Conflict = out
	if c.nothing {
		return nil
	}
	n := len(m.t.cols)
	at := map[plan.ColID]int{}
	for i := range m.t.cols {
		at[c.excluded.cols[i].e.(*plan.Col).ID] = i
		at[m.t.id(i)] = n + i
	}
	b := &builder{p: m.p, env: map[plan.ColID]int{}}
	one := func(e plan.Expr) (plan.Expr, error) {
		if hasSubquery(e) {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "subqueries in ON CONFLICT DO UPDATE are not supported")
		}
		return b.expr(m.p.fold(e), at)
	}
	var err error
	out.Sets = make([]plan.Expr, n)
	for i, e := range c.sets {
		if out.Sets[i], err = one(e); err != nil {
			return err
		}
	}
	if c.where != nil {
		out.Where, err = one(c.where)
	}
	return err
}

// bindSets binds the assignments of UPDATE, of MERGE's UPDATE and of ON CONFLICT
// DO UPDATE: the value of every column that is set, nil for the others. Several
// columns set by one subquery are joined to node, which is returned; with a nil
// node they are refused.
func (m *modifier) bindSets(s *scope, sets []*ast.SetClause, node plan.LNode) ([]plan.Expr, plan.LNode, error) {
	return m.bindSetsIf(s, sets, node, nil)
}

// setValue is a value that is assigned, before its column is known.
type setValue struct {
	target *ast.AssignTarget
	e      plan.Expr // nil = DEFAULT
	pos    ast.Pos
}

func (m *modifier) bindSetsIf(s *scope, sets []*ast.SetClause, node plan.LNode, when plan.Expr) ([]plan.Expr, plan.LNode, error) {
	p := m.p
	var vals []setValue
	// All values first, then the columns: PostgreSQL's order of errors.
	for _, c := range sets {
		if !c.Multi {
			v := setValue{target: c.Targets[0], pos: p.loc(c.Value)}
			if _, ok := c.Value.(*ast.Default); !ok {
				x, err := p.in(s, inUpdate, c.Value)
				if err != nil {
					return nil, nil, err
				}
				v.e = x
			}
			vals = append(vals, v)
			continue
		}
		var err error
		if vals, node, err = m.multiSet(s, c, node, when, vals); err != nil {
			return nil, nil, err
		}
	}
	out := make([]plan.Expr, len(m.t.cols))
	var twice *ast.AssignTarget
	for _, v := range vals {
		i, err := m.setColumn(v.target)
		if err != nil {
			return nil, nil, err
		}
		x := v.e
		if x != nil && catalog.IdentityOf(m.t.cols[i].Name, m.t.options) == "a" {
			return nil, nil, alwaysIdentity("column %q can only be updated to DEFAULT", m.t.cols[i].Name)
		}
		if x == nil {
			if x, err = m.defaultOf(i); err != nil {
				return nil, nil, err
			}
		} else if x, err = m.assignTo(x, i, v.pos); err != nil {
			return nil, nil, err
		}
		if out[i] != nil && twice == nil {
			twice = v.target
		}
		out[i] = x
		m.t.it.need.Updated.add(i)
	}
	if twice != nil {
		return nil, nil, pgerr.New(pgerr.SyntaxError, "multiple assignments to same column %q", twice.Column.Name)
	}
	return out, node, nil
}

// systemColumns cannot be assigned to in PostgreSQL.
var systemColumns = []string{"ctid", "xmin", "cmin", "xmax", "cmax", "tableoid"}

func (m *modifier) setColumn(a *ast.AssignTarget) (int, error) {
	if contains(systemColumns, a.Column.Name) {
		if i, err := m.column(a.Column.Name, a.Pos); i < 0 || err != nil {
			return 0, m.p.errAt(pgerr.FeatureNotSupported, a.Pos, "cannot assign to system column %q", a.Column.Name)
		}
	}
	return m.targetColumn(a)
}

// multiSet binds (a, b) = (1, 2), = ROW(1, 2) and = (SELECT ...).
func (m *modifier) multiSet(s *scope, c *ast.SetClause, node plan.LNode, when plan.Expr, vals []setValue) ([]setValue, plan.LNode, error) {
	p := m.p
	count := func(n int) error {
		if n != len(c.Targets) {
			return p.errAt(pgerr.SyntaxError, c.Value.Position(), "number of columns does not match number of values")
		}
		return nil
	}
	switch v := c.Value.(type) {
	case *ast.Row:
		if err := count(len(v.Elems)); err != nil {
			return nil, nil, err
		}
		for i, e := range v.Elems {
			sv := setValue{target: c.Targets[i], pos: p.loc(e)}
			if _, ok := e.(*ast.Default); !ok {
				x, err := p.in(s, inUpdate, e)
				if err != nil {
					return nil, nil, err
				}
				sv.e = x
			}
			vals = append(vals, sv)
		}
		return vals, node, nil
	case *ast.Subquery:
		if v.Kind != ast.SubqueryScalar {
			break
		}
		kind := s.kind
		s.kind = inUpdate
		b, err := p.bindQuery(v.Query, s, true)
		s.kind = kind
		if err != nil {
			return nil, nil, err
		}
		if err := count(len(b.cols)); err != nil {
			return nil, nil, err
		}
		if node == nil {
			return nil, nil, p.errAt(pgerr.FeatureNotSupported, v.Pos, "subqueries in ON CONFLICT DO UPDATE are not supported")
		}
		// The subquery's row stands beside the row that is changed; more than one
		// is an error, none is NULLs.
		it := &item{}
		names := make([]string, len(b.cols))
		for i := range b.cols {
			names[i] = b.cols[i].name
		}
		right := p.rename(s, b, names, it)
		var conds []plan.Expr
		if when != nil {
			conds = []plan.Expr{when}
		}
		j := p.join(plan.Left, node, right, conds, v.Pos)
		j.Single = true
		for i := range b.cols {
			vals = append(vals, setValue{target: c.Targets[i], e: nullable(it.cols[i].e), pos: b.pos[i]})
		}
		return vals, j, nil
	}
	return nil, nil, p.errAt(pgerr.FeatureNotSupported, p.loc(c.Value), "source for a multiple-column UPDATE item must be a sub-SELECT or ROW() expression")
}
