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
	Needs      []*Need // the privileges that it takes to run the plan
	// Locks are the relations that FOR UPDATE and its kin name in the statement's
	// queries. The rows are not told: whoever runs the plan locks more.
	Locks []catalog.Relation
	// NoWait: one of them asks not to wait.
	NoWait bool
}

// PlanModify plans an *ast.Insert, *ast.Update, *ast.Delete or *ast.Merge.
// CHECK constraints and defaults come from the target's options (see
// catalog.Constraints).
//
// A row of the target is changed once however many rows of FROM, USING or the
// source of MERGE it meets; the plan yields it once per match, and it is for
// whoever runs the plan to keep the first (or to refuse, in MERGE).
func PlanModify(ctx context.Context, stmt ast.Stmt, text string, o Options) (*PlannedModify, error) {
	p := newPlanner(ctx, text, o)
	m := &modifier{p: p}
	var err error
	switch s := stmt.(type) {
	case *ast.Insert:
		err = m.insert(s)
	case *ast.Update:
		err = m.update(s)
	case *ast.Delete:
		err = m.delete(s)
	case *ast.Merge:
		err = m.merge(s)
	default:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "%s does not change a table", stmtName(stmt))
	}
	if err != nil {
		return nil, err
	}
	return m.finish()
}

// modifier gathers what a data-changing statement is made of:
//
//	bind   target, source, new row, RETURNING as logical expressions
//	finish one projection over the source yields every column that Modify names;
//	       it is optimized and built like a query
//
// The columns of the target have one ID each, those of its item: in the source
// they are the row that is there, in RETURNING the row affected.
type modifier struct {
	p   *planner
	t   *modTarget
	op  plan.ModifyOp
	src plan.LNode // makes the rows
	// conds hold for every row of src: the WHERE of UPDATE.
	conds []plan.Expr
	// plain: src needs no optimizer: VALUES without subqueries.
	plain bool

	// new is the new row by table column, over src; nil when no row is written.
	// A column that is not changed is the target's own.
	new []plan.Expr
	// action is over src; nil: every row does what op says.
	action plan.Expr
	// reads says that src has the columns of the row that is there.
	reads bool
	// deletes says that RETURNING may be about the row that is there.
	deletes    bool
	keyChanged bool

	returning []target // nil = none
	ret       []Column
	// actionCol is what merge_action() reads; its ID is made before RETURNING is
	// bound.
	actionCol *plan.LCol

	// overriding is the clause about identity columns.
	overriding ast.Overriding

	conflict  *boundConflict
	overwrite *plan.OverwriteSpec
	upsert    bool

	ids []plan.ColID // columns of the source, in order
	// newIDs are the source's columns that are the new row.
	newIDs []plan.ColID
	at     map[plan.ColID]int
	pr     *plan.LProject
}

// modTarget is the table that a statement changes.
type modTarget struct {
	rel  catalog.TableInfo
	cols []catalog.Column
	it   *item
	get  *plan.LGet
	// key marks the columns of the primary key and of the partition.
	key     []bool
	options map[string]string
	// defaults are bound when they are first asked for.
	defaults []plan.Expr
}

// keyed reports whether the target has a primary key.
func (t *modTarget) keyed() bool { return len(t.rel.PrimaryKey()) > 0 }

// columnType is the type that values of column i are given.
func (t *modTarget) columnType(i int) types.Type { return t.cols[i].Type.SQL().WithNotNull(false) }

// id is the column's ID in the source and in RETURNING.
func (t *modTarget) id(i int) plan.ColID { return t.get.Out[i].ID }

// ref is a reference to the column as the namespace has it.
func (t *modTarget) ref(i int) plan.Expr { return t.it.cols[i].e }

// column finds a column by name as itemColumn does; -1 when there is none.
func (m *modifier) column(name string, pos ast.Pos) (int, error) {
	c, err := m.p.itemColumn(&item{cols: m.t.plainCols()}, name, pos)
	if c == nil || err != nil {
		return -1, err
	}
	id := c.e.(*plan.Col).ID
	for i := range m.t.cols {
		if m.t.id(i) == id {
			return i, nil
		}
	}
	return -1, nil
}

// plainCols are the columns under the table's own names: what is assigned to is
// never called by an alias.
func (t *modTarget) plainCols() []scopeCol {
	out := make([]scopeCol, len(t.cols))
	for i := range out {
		out[i] = scopeCol{name: t.cols[i].Name, e: t.get.Out[i].Ref(), base: true}
	}
	return out
}

// finish plans what was bound.
func (m *modifier) finish() (*PlannedModify, error) {
	p, t := m.p, m.t
	mod := &plan.Modify{Op: m.op, Target: t.rel, Alias: t.it.name, Action: -1, File: -1, Pos: -1, RowID: -1,
		KeyChanged: m.keyChanged, Overwrite: m.overwrite, Upsert: m.upsert}
	checks, err := m.checks()
	if err != nil {
		return nil, err
	}
	mod.Checks = checks
	if err := p.checkParams(); err != nil {
		return nil, err
	}
	m.at = map[plan.ColID]int{}
	if v, ok := m.src.(*plan.LValues); ok && m.plain {
		// The rows are the new rows already.
		for _, c := range v.Out {
			m.at[c.ID] = len(m.ids)
			mod.New = append(mod.New, len(m.ids))
			m.ids = append(m.ids, c.ID)
		}
	} else {
		m.pr = &plan.LProject{In: m.src}
		m.slots(mod)
	}
	if err := m.extras(mod); err != nil {
		return nil, err
	}
	root := m.src
	if m.pr != nil {
		root = m.pr
	}
	if !m.plain || m.pr != nil {
		if quick, ok := p.optimizeSimple(root); ok {
			root = quick
		} else if root, err = p.optimize(root); err != nil {
			return nil, err
		}
	}
	if mod.Source, err = p.physical(root, m.ids); err != nil {
		return nil, err
	}
	return &PlannedModify{Modify: mod, Columns: m.ret, ParamTypes: p.params, Volatile: p.volatile, Relations: p.relations, Needs: p.needs, Locks: p.locks, NoWait: p.noWait}, nil
}

// pass makes a column of the source available and returns its slot.
func (m *modifier) pass(c plan.LCol) int {
	if i, ok := m.at[c.ID]; ok {
		return i
	}
	return m.compute(c, c.Ref())
}

// compute adds a column to the projection over the source.
func (m *modifier) compute(c plan.LCol, e plan.Expr) int {
	i := len(m.ids)
	m.at[c.ID] = i
	m.ids = append(m.ids, c.ID)
	m.pr.Exprs, m.pr.Out = append(m.pr.Exprs, e), append(m.pr.Out, c)
	return i
}

// slots fills the projection with the new row, the row that is there, and where
// that is.
func (m *modifier) slots(mod *plan.Modify) {
	t := m.t
	if m.action != nil {
		c := m.actionCol
		if c == nil {
			n := m.p.newCol("action", types.Of(types.Int2), colInfo{kind: colOther})
			c = &n
		}
		mod.Action = m.compute(*c, m.action)
	}
	own := colSet{}
	if m.reads {
		for i := range t.cols {
			own[t.id(i)] = true
		}
	}
	for i, e := range m.new {
		if c, ok := e.(*plan.Col); ok && own[c.ID] && c.ID == t.id(i) {
			mod.New = append(mod.New, m.pass(plan.LCol{ID: c.ID, Name: c.Name, T: c.T}))
			m.newIDs = append(m.newIDs, c.ID)
			continue
		}
		c := m.p.newCol(t.cols[i].Name, e.Type(), colInfo{kind: colOther})
		mod.New = append(mod.New, m.compute(c, e))
		m.newIDs = append(m.newIDs, c.ID)
	}
	if !m.reads {
		return
	}
	need := colSet{}
	if m.deletes {
		for i := range m.returning {
			need.addAll(usedCols(m.returning[i].e))
		}
	}
	mod.Old = make([]int, len(t.cols))
	for i := range t.cols {
		mod.Old[i] = -1
		if t.keyed() || need[t.id(i)] {
			c := t.ref(i).(*plan.Col)
			mod.Old[i] = m.pass(plan.LCol{ID: c.ID, Name: c.Name, T: c.T})
		}
	}
	if !t.keyed() {
		mod.File, mod.Pos = m.pseudo("_FILE"), m.pseudo("_POS")
		if tracksRows(t.rel) && mod.New != nil {
			mod.RowID = m.pseudo(rowID)
		}
	}
}

// pseudo passes a pseudo-column of the target on.
func (m *modifier) pseudo(name string) int {
	c := m.p.pseudoColumn(m.t.it, name).e.(*plan.Col)
	return m.pass(plan.LCol{ID: c.ID, Name: c.Name, T: c.T.WithNotNull(false)})
}
