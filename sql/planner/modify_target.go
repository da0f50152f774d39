package planner

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// bindTarget opens the table that a statement changes. verb is what the
// statement does, for messages about relations that cannot be changed.
func (m *modifier) bindTarget(s *scope, r *ast.TableName, verb string) error {
	p := m.p
	switch {
	case r.AsOf != nil:
		return p.errAt(pgerr.FeatureNotSupported, r.AsOf.Pos, "cannot %s a past version of table %q", verb, r.Name.Last())
	case r.Sample != nil:
		return p.errAt(pgerr.FeatureNotSupported, r.Sample.Pos, "TABLESAMPLE is not supported")
	}
	for _, h := range r.Hints {
		for _, o := range h.Options {
			if k := strings.ToLower(o.Name); strings.HasPrefix(k, "scan.") || strings.HasPrefix(k, "incremental-") {
				return p.errAt(pgerr.FeatureNotSupported, r.Pos, "cannot %s a past version of table %q", verb, r.Name.Last())
			}
		}
	}
	// What is changed is read as it is, whatever queries are shown.
	fresh := p.o.FreshReads
	p.o.FreshReads = true
	rel, opts, err := p.resolveTable(s, r)
	p.o.FreshReads = fresh
	if err != nil {
		return err
	}
	ti, err := p.changeable(rel, r, verb)
	if err != nil {
		return err
	}
	n := len(rel.Columns())
	t := &modTarget{rel: ti, cols: rel.Columns(), options: ti.Options(), key: make([]bool, n), defaults: make([]plan.Expr, n)}
	it := &item{name: rel.Name(), table: rel.Name(), schema: rel.Schema(), rel: rel, cols: make([]scopeCol, n)}
	if l := r.Name.Last(); strings.EqualFold(l, rel.Name()) {
		it.name, it.table = l, l
	}
	it.need = p.need(rel, map[plan.ModifyOp]roles.Mode{plan.InsertOp: roles.Insert, plan.UpdateOp: roles.Update, plan.DeleteOp: roles.Delete}[m.op])
	t.it, t.get = it, &plan.LGet{Rel: rel, Opts: opts, Out: make([]plan.LCol, n), Att: make([]int, n)}
	it.get = t.get
	infos, refs := make([]colInfo, n), make([]plan.Col, n)
	for i := range t.cols {
		c := &t.cols[i]
		ct := c.Type.SQL()
		ct.NotNull = c.NotNull || c.Type.NotNull
		infos[i] = colInfo{scope: s, relID: rel, att: i, item: it, name: c.Name, t: ct, rel: it.name}
		id := plan.ColID(len(p.info))
		p.info = append(p.info, &infos[i])
		t.get.Out[i] = plan.LCol{ID: id, Name: c.Name, T: ct}
		t.get.Att[i] = i
		refs[i] = plan.Col{ID: id, Name: c.Name, T: ct}
		it.cols[i] = scopeCol{name: c.Name, e: &refs[i], base: true}
		t.key[i] = contains(ti.PrimaryKey(), c.Name) || contains(ti.PartitionKeys(), c.Name)
	}
	if r.Alias != nil {
		if err := p.applyAlias(it, r.Alias, "table"); err != nil {
			return err
		}
		p.nameCols(it)
	}
	t.get.Alias = it.name
	m.t = t
	p.addItem(s, it)
	return nil
}

func contains(s []string, x string) bool {
	for _, y := range s {
		if x == y {
			return true
		}
	}
	return false
}

// changeable refuses relations that are no tables.
func (p *planner) changeable(rel catalog.Relation, r *ast.TableName, verb string) (catalog.TableInfo, error) {
	name := rel.Name()
	merge := verb == "merge into"
	view := func() error {
		if merge {
			return pgerr.New(pgerr.FeatureNotSupported, "cannot execute MERGE on relation %q", name).
				WithDetail("This operation is not supported for views.")
		}
		return pgerr.New(pgerr.FeatureNotSupported, "cannot %s view %q", verb, name).
			WithDetail("Views are not automatically updatable.")
	}
	switch {
	case rel.Kind() == 'v':
		return nil, view()
	case rel.Schema() == "pg_catalog" || rel.Schema() == "information_schema":
		return nil, pgerr.New(pgerr.InsufficientPrivilege, "permission denied: %q is a system catalog", name)
	}
	ti, ok := rel.(catalog.TableInfo)
	_, suffix, _ := strings.Cut(name, "$")
	if rest, branch := strings.CutPrefix(suffix, "branch_"); branch {
		_, suffix, _ = strings.Cut(rest, "$")
	}
	if !ok || suffix != "" || rel.Schema() == "sys" {
		if merge {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "cannot execute MERGE on relation %q", name).
				WithDetail("This operation is not supported for system tables.")
		}
		return nil, p.errAt(pgerr.WrongObjectType, r.Pos, "cannot %s system table %q", verb, name)
	}
	return ti, nil
}

// defaultOf is what a column gets that nobody gives a value: its DEFAULT, or
// NULL. The expression may stand in several rows of VALUES.
func (m *modifier) defaultOf(i int) (plan.Expr, error) {
	t := m.t
	if t.defaults[i] != nil {
		return t.defaults[i], nil
	}
	e, err := m.p.bindDefault(t.cols[i], t.options)
	if err != nil {
		return nil, err
	}
	t.defaults[i] = e
	return e, nil
}

// identityValue is what a column gets that an INSERT gives a value other than DEFAULT,
// by the column's identity and OVERRIDING.
func (m *modifier) identityValue(x plan.Expr, i int) (plan.Expr, error) {
	id := catalog.IdentityOf(m.t.cols[i].Name, m.t.options)
	switch {
	case id != "" && m.overriding == ast.OverridingUser:
		return m.defaultOf(i)
	case id == "a" && m.overriding == ast.OverridingNone:
		return nil, alwaysIdentity("cannot insert a non-DEFAULT value into column %q", m.t.cols[i].Name).
			WithHint("Use OVERRIDING SYSTEM VALUE to override.")
	}
	return x, nil
}

// alwaysIdentity is the error of giving a GENERATED ALWAYS column a value.
func alwaysIdentity(format, column string) *pgerr.Error {
	return pgerr.New(pgerr.GeneratedAlways, format, column).WithDetail("Column %q is an identity column defined as GENERATED ALWAYS.", column)
}

func (p *planner) bindDefault(c catalog.Column, options map[string]string) (plan.Expr, error) {
	want := c.Type.SQL().WithNotNull(false)
	text, constant, ok := catalog.DefaultOf(c.Field, options)
	if !ok {
		return &plan.Const{T: want}, nil
	}
	// The text has no place in the statement.
	p.views++
	defer func() { p.views-- }()
	var x plan.Expr
	if constant {
		x = p.constAt(text, types.Of(types.Unknown), -1)
	} else {
		e, err := parser.ParseExpr(text)
		if err != nil {
			return nil, pgerr.Wrap(err, pgerr.InvalidColumnDefinition, "default of column %q cannot be read", c.Name)
		}
		if x, err = p.in(&scope{}, inDefault, e); err != nil {
			return nil, err
		}
		if hasSubquery(x) {
			return nil, pgerr.New(pgerr.FeatureNotSupported, "cannot use subquery in DEFAULT expression")
		}
	}
	y, err := p.assign(x, Target{Name: c.Name, Type: c.Type}, -1)
	if err != nil {
		return nil, err
	}
	return p.oneForm(p.fold(y), want)
}

// assignTo coerces a value to column i of the target, to the very form that the
// column's arrays have.
func (m *modifier) assignTo(x plan.Expr, i int, pos ast.Pos) (plan.Expr, error) {
	c := &m.t.cols[i]
	y, err := m.p.assign(x, Target{Name: c.Name, Type: c.Type}, pos)
	if err != nil {
		return nil, err
	}
	return m.p.oneForm(y, c.Type.SQL().WithNotNull(false))
}

// oneForm casts between physical forms of one type: numerics and timestamps
// have several.
func (p *planner) oneForm(x plan.Expr, want types.Type) (plan.Expr, error) {
	t := x.Type()
	if t.Kind == want.Kind {
		switch t.Kind {
		case types.Numeric, types.Timestamp, types.TimestampTZ, types.Array, types.Map, types.Row:
		default:
			return x, nil
		}
	}
	if t.SamePhysical(want) {
		return x, nil
	}
	if c, ok := x.(*plan.Const); ok {
		if c.Value == nil || t.Kind == types.Numeric && want.Kind == types.Numeric && want.Prec == 0 {
			return &plan.Const{Value: c.Value, T: want}, nil
		}
	}
	y, err := p.castCall(x, want, false, -1)
	if err != nil || y == nil {
		return x, err
	}
	return y, nil
}

// targetColumn finds the column that an INSERT's list or a SET names.
func (m *modifier) targetColumn(a *ast.AssignTarget) (int, error) {
	p := m.p
	name := a.Column.Name
	i, err := m.column(name, a.Pos)
	if err != nil {
		return 0, err
	}
	if i < 0 {
		return 0, p.errAt(pgerr.UndefinedColumn, a.Pos, "column %q of relation %q does not exist", name, m.t.rel.Name())
	}
	if len(a.Path) > 0 {
		st := a.Path[0]
		ct := m.t.cols[i].Type
		switch {
		case st.Field.Name == "" && !st.Star && ct.Kind != types.Array && ct.Kind != types.Map:
			pos := a.Pos
			if m.op == plan.InsertOp {
				pos = -1 // as PostgreSQL has it
			}
			return 0, p.errAt(pgerr.DatatypeMismatch, pos, "cannot subscript type %s because it does not support subscripting", typeName(ct))
		case st.Field.Name != "" && !isRow(ct):
			return 0, p.errAt(pgerr.DatatypeMismatch, a.Pos, "cannot assign to field %q of column %q because its type %s is not a composite type", st.Field.Name, name, typeName(ct))
		}
		return 0, p.errAt(pgerr.FeatureNotSupported, a.Pos, "assigning to a part of column %q is not supported", name)
	}
	return i, nil
}

// insertColumns is checkInsertTargets: which columns an INSERT's list names, in
// order; all of them when there is none.
func (m *modifier) insertColumns(list []*ast.AssignTarget) ([]int, error) {
	if list == nil {
		out := make([]int, len(m.t.cols))
		for i := range out {
			out[i] = i
		}
		return out, nil
	}
	out := make([]int, 0, len(list))
	seen := make([]bool, len(m.t.cols))
	for _, a := range list {
		i, err := m.targetColumn(a)
		if err != nil {
			return nil, err
		}
		if seen[i] {
			return nil, m.p.errAt(pgerr.DuplicateColumn, a.Pos, "column %q specified more than once", a.Column.Name)
		}
		seen[i] = true
		out = append(out, i)
	}
	return out, nil
}

// checkCount compares the number of values with the number of columns. pos says
// where value i is.
func (m *modifier) checkCount(n int, cols []int, list []*ast.AssignTarget, pos func(i int) ast.Pos, row bool) error {
	switch {
	case n > len(cols):
		return m.p.errAt(pgerr.SyntaxError, pos(len(cols)), "INSERT has more expressions than target columns")
	case n < len(cols) && list != nil:
		e := m.p.errAt(pgerr.SyntaxError, list[n].Pos, "INSERT has more target columns than expressions")
		if row {
			e = e.WithHint("The insertion source is a row expression containing the same number of columns expected by the INSERT. Did you accidentally use extra parentheses?")
		}
		return e
	}
	return nil
}

// checks binds the CHECK constraints when rows are written.
func (m *modifier) checks() ([]plan.Check, error) {
	if m.new == nil && !m.plain {
		return nil, nil
	}
	var out []plan.Check
	for _, c := range catalog.Constraints(m.t.options) {
		if c.Kind != catalog.CheckConstraint {
			continue
		}
		e, err := parser.ParseExpr(c.Expr)
		if err != nil {
			return nil, pgerr.Wrap(err, pgerr.InvalidObjectDefinition, "check constraint %q cannot be read", c.Name)
		}
		o := m.p.o
		o.ParamTypes, o.FixedParams, o.Targets, o.PseudoColumns = nil, true, nil, false
		x, err := PlanExprOver(m.p.ctx, e, "", m.t.schema(), m.t.rel.Name(), types.Of(types.Bool), o)
		if err != nil {
			return nil, err
		}
		out = append(out, plan.Check{Name: c.Name, Cond: x})
	}
	return out, nil
}

// schema is the table's columns as a schema.
func (t *modTarget) schema() types.Schema {
	out := make(types.Schema, len(t.cols))
	for i, c := range t.cols {
		out[i] = c.Field
	}
	return out
}
