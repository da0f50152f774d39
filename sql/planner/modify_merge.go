package planner

import (
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

var smallint = types.Of(types.Int2)

// merge binds MERGE. The plan is
//
//	Project  action = CASE which ..., new columns = CASE which ...
//	  Project  which = CASE <kind of row> CASE WHEN <condition> THEN <clause> ...
//	    Join     of source and target, outer where a clause wants rows without
//	             a match
//
// which is the number of the WHEN clause that a row takes, the first whose
// condition holds. A clause's expressions are evaluated for its own rows only, so
// what would fail elsewhere does not.
func (m *modifier) merge(st *ast.Merge) error {
	p := m.p
	m.op = plan.MergeOp
	s := &scope{}
	if st.With != nil {
		if err := p.bindWith(s, st.With); err != nil {
			return err
		}
	}
	var always [3]bool // by ast.MergeMatch: a clause without a condition was there
	for _, w := range st.Whens {
		if always[w.Match] {
			return pgerr.New(pgerr.SyntaxError, "unreachable WHEN clause specified after unconditional WHEN clause")
		}
		always[w.Match] = w.Cond == nil
	}
	if err := m.bindTarget(s, st.Table, "merge into"); err != nil {
		return err
	}
	m.reads = true
	tgt := m.t.it
	g := &merging{m: m, s: s, target: []*item{tgt}}
	var err error
	if g.srcNode, g.source, err = p.bindRef(s, st.Source); err != nil {
		return err
	}
	for _, it := range g.source {
		if it.relVisible && it.name == tgt.name {
			return pgerr.New(pgerr.DuplicateAlias, "name %q specified more than once", tgt.name).
				WithDetail("The name is used both as MERGE target table and data source.")
		}
	}
	setLateral(g.source, false, true)
	s.items = append([]*item{tgt}, g.source...)
	on, err := p.in(s, inJoinOn, st.On)
	if err != nil {
		return err
	}
	if on, err = p.coerceBool(on, "JOIN/ON", p.loc(st.On)); err != nil {
		return err
	}
	g.plan(st, conjuncts(on))
	if err := g.clauses(st); err != nil {
		return err
	}
	// * is the source's columns, then the target's.
	action := p.newCol("action", smallint, colInfo{kind: colOther})
	m.actionCol = &action
	s.items = append(append([]*item{}, g.source...), tgt)
	p.mergeAction = m.actionCol
	err = m.bindReturning(s, st.Returning)
	p.mergeAction = nil
	return err
}

// merging is a MERGE while it is bound.
type merging struct {
	m              *modifier
	s              *scope
	target, source []*item
	srcNode        plan.LNode
	node           plan.LNode
	// has says which kinds of rows the join yields. noTarget and noSource are
	// conditions that tell the kinds apart; nil where they cannot occur.
	has                [3]bool
	noTarget, noSource plan.Expr
	on                 []plan.Expr
	which              plan.LCol
	is                 []plan.Expr // which = i
}

// plan joins source and target so that every row a clause may take is there.
func (g *merging) plan(st *ast.Merge, on []plan.Expr) {
	p, t := g.m.p, g.m.t
	for _, w := range st.Whens {
		if w.Action != ast.MergeNothing {
			g.has[w.Match] = true
		}
	}
	matched, byTarget, bySource := g.has[ast.Matched], g.has[ast.NotMatchedByTarget], g.has[ast.NotMatchedBySource]
	var tnode plan.LNode = t.get
	if !t.keyed() {
		// What is passed on through the join must be there before it is made.
		p.pseudoColumn(t.it, "_FILE")
		p.pseudoColumn(t.it, "_POS")
		if tracksRows(t.rel) {
			p.pseudoColumn(t.it, rowID)
		}
	}
	g.on = on
	switch {
	case byTarget && !matched && !bySource:
		// Rows of the source without a match, and nothing of the target.
		g.node = p.join(plan.Anti, g.srcNode, tnode, on, -1)
		g.m.reads = false
		return
	case bySource && !matched && !byTarget:
		g.node = p.join(plan.Anti, tnode, g.srcNode, on, -1)
		return
	}
	kind, l, r := plan.Inner, tnode, g.srcNode
	if byTarget {
		mark := t.it.cols[0].e
		for i := range t.cols {
			if t.key[i] && (t.cols[i].NotNull || t.cols[i].Type.NotNull) && contains(t.rel.PrimaryKey(), t.cols[i].Name) {
				mark = t.ref(i)
				break
			}
		}
		if !t.keyed() {
			mark = p.pseudoColumn(t.it, "_POS").e
		}
		g.noTarget = &plan.IsNull{Arg: nullable(mark)}
		kind, l, r = plan.Left, g.srcNode, tnode
	}
	if bySource {
		pr := &plan.LProject{In: g.srcNode}
		for _, c := range g.srcNode.Cols() {
			pr.Exprs, pr.Out = append(pr.Exprs, c.Ref()), append(pr.Out, c)
		}
		c := p.newCol("source", boolT, colInfo{kind: colOther})
		pr.Exprs, pr.Out = append(pr.Exprs, &plan.Const{Value: true, T: boolT}), append(pr.Out, c)
		g.noSource = &plan.IsNull{Arg: c.Ref()}
		if byTarget {
			kind, l = plan.Full, pr
		} else {
			kind, l, r = plan.Left, tnode, pr
		}
	}
	g.node = p.join(kind, l, r, on, -1)
	if byTarget {
		p.makeNullable(g.target)
	}
	if bySource {
		p.makeNullable(g.source)
	}
}

// clause is a WHEN clause bound.
type clause struct {
	when *ast.MergeWhen
	cond plan.Expr   // nil = always
	row  []plan.Expr // the new row by table column; nil for DELETE and DO NOTHING
}

// clauses binds the WHEN clauses and makes the projections above the join.
func (g *merging) clauses(st *ast.Merge) error {
	p, m := g.m.p, g.m
	cs := make([]clause, len(st.Whens))
	// The number is known to the clauses before its expression is.
	g.which = p.newCol("which", smallint, colInfo{kind: colOther})
	pr := &plan.LProject{In: g.node}
	seen := colSet{}
	for _, c := range g.node.Cols() {
		if !seen[c.ID] {
			seen[c.ID] = true
			c.T.NotNull = false // the join may be an outer one
			pr.Exprs, pr.Out = append(pr.Exprs, c.Ref()), append(pr.Out, c)
		}
	}
	m.src = pr
	g.is = make([]plan.Expr, len(st.Whens))
	for i, w := range st.Whens {
		is, err := p.operator("=", g.which.Ref(), &plan.Const{Value: int64(i), T: smallint}, -1, -1, -1)
		if err != nil {
			return err
		}
		g.is[i] = is
		cs[i].when = w
		switch w.Match {
		case ast.Matched:
			g.s.items = append(append([]*item{}, g.target...), g.source...)
		case ast.NotMatchedByTarget:
			g.s.items = g.source
		default:
			g.s.items = g.target
		}
		if w.Cond != nil {
			x, err := p.in(g.s, inMergeWhen, w.Cond)
			if err != nil {
				return err
			}
			if cs[i].cond, err = p.coerceBool(x, "WHEN", p.loc(w.Cond)); err != nil {
				return err
			}
		}
		switch w.Action {
		case ast.MergeUpdate:
			m.t.it.need.Modes |= roles.Update
			cs[i].row, err = g.updateRow(w, g.is[i])
		case ast.MergeInsert:
			m.t.it.need.Modes |= roles.Insert
			cs[i].row, err = g.insertRow(w)
		case ast.MergeDelete:
			m.t.it.need.Modes |= roles.Delete
			m.deletes = true
		}
		if err != nil {
			return err
		}
	}
	pr.Exprs, pr.Out = append(pr.Exprs, g.whichExpr(cs)), append(pr.Out, g.which)
	action := &plan.Case{T: smallint, Else: &plan.Const{Value: int64(plan.ActNothing), T: smallint}}
	for i, c := range cs {
		var a plan.Action
		switch c.when.Action {
		case ast.MergeInsert:
			a = plan.ActInsert
		case ast.MergeUpdate:
			a = plan.ActUpdate
		case ast.MergeDelete:
			a = plan.ActDelete
		default:
			continue
		}
		action.Whens = append(action.Whens, plan.When{Cond: g.is[i], Result: &plan.Const{Value: int64(a), T: smallint}})
	}
	m.action = action
	if len(action.Whens) == 0 {
		m.action = action.Else
	}
	for j := range m.t.cols {
		x := &plan.Case{T: m.t.columnType(j)}
		for i, c := range cs {
			if c.row != nil {
				x.Whens = append(x.Whens, plan.When{Cond: g.is[i], Result: c.row[j]})
			}
		}
		if len(x.Whens) == 0 {
			m.new = nil
			break
		}
		m.new = append(m.new, x)
	}
	return nil
}

// whichExpr is the number of the clause that a row takes, -1 for none.
func (g *merging) whichExpr(cs []clause) plan.Expr {
	none := &plan.Const{Value: int64(-1), T: smallint}
	one := func(k ast.MergeMatch) plan.Expr {
		c := &plan.Case{T: smallint, Else: none}
		for i := range cs {
			if cs[i].when.Match != k {
				continue
			}
			n := &plan.Const{Value: int64(i), T: smallint}
			if cs[i].cond == nil {
				c.Else = n
				break
			}
			c.Whens = append(c.Whens, plan.When{Cond: cs[i].cond, Result: n})
		}
		if len(c.Whens) == 0 {
			return c.Else
		}
		return c
	}
	if g.anti() {
		if g.has[ast.NotMatchedByTarget] {
			return one(ast.NotMatchedByTarget)
		}
		return one(ast.NotMatchedBySource)
	}
	out := one(ast.Matched)
	var c plan.Case
	c.T = smallint
	if g.noTarget != nil {
		c.Whens = append(c.Whens, plan.When{Cond: g.noTarget, Result: one(ast.NotMatchedByTarget)})
	}
	if g.noSource != nil {
		c.Whens = append(c.Whens, plan.When{Cond: g.noSource, Result: one(ast.NotMatchedBySource)})
	}
	if len(c.Whens) == 0 {
		return out
	}
	c.Else = out
	return &c
}

// anti reports whether the join yields rows without a match only.
func (g *merging) anti() bool {
	j, ok := g.node.(*plan.LJoin)
	return ok && j.Kind == plan.Anti
}

// updateRow binds UPDATE SET.
func (g *merging) updateRow(w *ast.MergeWhen, is plan.Expr) ([]plan.Expr, error) {
	m := g.m
	if w.Star {
		set, err := g.byName(w)
		if err != nil {
			return nil, err
		}
		return m.updated(set, g.on), nil
	}
	set, node, err := m.bindSetsIf(g.s, w.Sets, m.src, is)
	if err != nil {
		return nil, err
	}
	m.src = node
	return m.updated(set, g.on), nil
}

// insertRow binds INSERT VALUES.
func (g *merging) insertRow(w *ast.MergeWhen) ([]plan.Expr, error) {
	p, m := g.m.p, g.m
	if w.Star {
		return g.byName(w)
	}
	cols, err := m.insertColumns(w.Columns)
	if err != nil {
		return nil, err
	}
	var vals []plan.Expr
	var locs []ast.Pos
	for i, a := range w.Values {
		if d, ok := a.(*ast.Default); ok && i < len(cols) {
			x, err := m.defaultOf(cols[i])
			if err != nil {
				return nil, err
			}
			vals, locs = append(vals, x), append(locs, d.Pos)
			continue
		}
		old := g.s.kind
		g.s.kind = inValues
		items, ok, err := p.starItems(g.s, a)
		g.s.kind = old
		if err != nil {
			return nil, err
		}
		if ok {
			for _, it := range items {
				vals, locs = append(vals, it.e), append(locs, a.Position())
			}
			continue
		}
		x, err := p.in(g.s, inValues, a)
		if err != nil {
			return nil, err
		}
		vals, locs = append(vals, x), append(locs, p.loc(a))
	}
	if w.Values == nil {
		return m.fullRow(nil, nil, nil)
	}
	if err := m.checkCount(len(vals), cols, w.Columns, func(i int) ast.Pos { return locs[i] }, false); err != nil {
		return nil, err
	}
	m.overriding = w.Overriding
	for i, x := range vals {
		if vals[i], err = m.assignTo(x, cols[i], locs[i]); err != nil {
			return nil, err
		}
		if i < len(w.Values) && len(w.Values) == len(vals) {
			if _, ok := w.Values[i].(*ast.Default); ok {
				continue
			}
		}
		if vals[i], err = m.identityValue(vals[i], cols[i]); err != nil {
			return nil, err
		}
	}
	return m.fullRow(vals, cols, nil)
}

// byName is the star form of UPDATE SET * and INSERT *: every column takes the
// source's column of its name.
func (g *merging) byName(w *ast.MergeWhen) ([]plan.Expr, error) {
	p, m := g.m.p, g.m
	if w.Match == ast.NotMatchedBySource {
		return nil, p.errAt(pgerr.SyntaxError, w.Pos, "UPDATE SET * needs a source row, which WHEN NOT MATCHED BY SOURCE has none of")
	}
	old := g.s.items
	g.s.items = g.source
	defer func() { g.s.items = old }()
	row := make([]plan.Expr, len(m.t.cols))
	for i := range m.t.cols {
		name := m.t.cols[i].Name
		x, err := p.findColumn(&scope{items: g.source, all: g.source}, name, w.Pos)
		if err != nil {
			return nil, err
		}
		if x == nil {
			return nil, p.errAt(pgerr.UndefinedColumn, w.Pos, "the source of MERGE has no column %q", name)
		}
		p.reads(x)
		if row[i], err = m.assignTo(x, i, w.Pos); err != nil {
			return nil, err
		}
		if w.Action == ast.MergeUpdate {
			m.t.it.need.Updated.add(i)
		} else {
			m.t.it.need.Inserted.add(i)
		}
	}
	return row, nil
}

// mergeActionText is merge_action(): what was done to the row.
func mergeActionText(p *planner, c *plan.LCol) (plan.Expr, error) {
	text := types.Of(types.Text)
	x := &plan.Case{T: text}
	for _, a := range []struct {
		a    plan.Action
		name string
	}{{plan.ActInsert, "INSERT"}, {plan.ActUpdate, "UPDATE"}, {plan.ActDelete, "DELETE"}} {
		eq, err := p.operator("=", c.Ref(), &plan.Const{Value: int64(a.a), T: smallint}, -1, -1, -1)
		if err != nil {
			return nil, err
		}
		x.Whens = append(x.Whens, plan.When{Cond: eq, Result: &plan.Const{Value: a.name, T: text}})
	}
	return x, nil
}
