package planner

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// update binds UPDATE.
func (m *modifier) update(st *ast.Update) error {
	m.op = plan.UpdateOp
	s, err := m.rows(st.With, st.Table, "update", st.From, st.Where, st.CurrentOf)
	if err != nil {
		return err
	}
	// RETURNING comes before SET, as in PostgreSQL: the first use of a parameter
	// gives it its type.
	if err := m.bindReturning(s, st.Returning); err != nil {
		return err
	}
	set, node, err := m.bindSets(s, st.Sets, m.src)
	if err != nil {
		return err
	}
	m.src = node
	m.new = m.updated(set, m.conds)
	return nil
}

// updated is the row that is there with some columns set. conds hold for the
// rows that are changed.
func (m *modifier) updated(set, conds []plan.Expr) []plan.Expr {
	out := make([]plan.Expr, len(m.t.cols))
	for i := range out {
		if out[i] = set[i]; set[i] == nil {
			out[i] = m.t.ref(i)
			continue
		}
		m.keyChanged = m.keyChanged || m.t.key[i] && !m.keeps(i, set[i], conds)
	}
	return out
}

// keeps reports whether x is the value that column i has already, because the
// rows were joined by it: MERGE ... ON t.id = s.id ... SET id = s.id.
func (m *modifier) keeps(i int, x plan.Expr, conds []plan.Expr) bool {
	switch t := m.t.cols[i].Type; t.Kind {
	case types.Bool, types.TinyInt, types.Int2, types.Int4, types.Int8, types.Text, types.Date, types.Timestamp, types.TimestampTZ, types.UUID:
		// Equal values of these are the same value.
		if isCol(x, m.t.ref(i)) {
			return true
		}
		for _, c := range conds {
			eq, ok := c.(*plan.Call)
			if !ok || eq.F == nil || eq.F.Name != "=" || len(eq.Args) != 2 || !sameType(eq.Args[0].Type(), t) || !sameType(eq.Args[1].Type(), t) {
				continue
			}
			a, b := eq.Args[0], eq.Args[1]
			if isCol(a, m.t.ref(i)) && exprEqual(b, x) || isCol(b, m.t.ref(i)) && exprEqual(a, x) {
				return true
			}
		}
	}
	return false
}

// delete binds DELETE.
func (m *modifier) delete(st *ast.Delete) error {
	m.op, m.deletes = plan.DeleteOp, true
	s, err := m.rows(st.With, st.Table, "delete from", st.Using, st.Where, st.CurrentOf)
	if err != nil {
		return err
	}
	return m.bindReturning(s, st.Returning)
}

// rows binds the rows that UPDATE and DELETE change: the target joined with the
// other FROM items.
func (m *modifier) rows(with *ast.With, table *ast.TableName, verb string, from []ast.TableRef, where ast.Expr, cursor ast.Ident) (*scope, error) {
	p := m.p
	s := &scope{}
	if with != nil {
		if err := p.bindWith(s, with); err != nil {
			return nil, err
		}
	}
	if err := m.bindTarget(s, table, verb); err != nil {
		return nil, err
	}
	m.reads = true
	if !cursor.Empty() {
		return nil, p.errAt(pgerr.FeatureNotSupported, cursor.Pos, "WHERE CURRENT OF is not supported")
	}
	it := m.t.it
	s.items = []*item{it}
	// Subqueries among the other items cannot refer to the target.
	setLateral(s.items, true, false)
	it.target = true
	var node plan.LNode = m.t.get
	if len(from) > 0 {
		other, err := p.bindFrom(s, from)
		if err != nil {
			return nil, err
		}
		node = p.join(plan.Inner, node, other, nil, -1)
	}
	setLateral(s.items, false, true)
	it.target = false
	if where != nil {
		conds, err := p.condition(s, where, inWhere, "WHERE")
		if err != nil {
			return nil, err
		}
		m.conds = conds
		node = &plan.LFilter{In: node, Conds: conds}
	}
	m.src = node
	return s, nil
}
