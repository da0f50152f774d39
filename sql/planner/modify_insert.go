package planner

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// insert binds INSERT, UPSERT and INSERT OVERWRITE.
func (m *modifier) insert(st *ast.Insert) error {
	p := m.p
	m.op, m.upsert, m.overriding = plan.InsertOp, st.Upsert, st.Overriding
	// The target is known at this level and below, for hints, but cannot be
	// referred to.
	s := &scope{}
	if st.With != nil {
		if err := p.bindWith(s, st.With); err != nil {
			return err
		}
	}
	verb := "insert into"
	if st.Overwrite {
		verb = "overwrite"
	}
	if err := m.bindTarget(s, st.Table, verb); err != nil {
		return err
	}
	if st.OnConflict != nil && (st.Upsert || st.Overwrite) {
		what := "UPSERT INTO"
		if st.Overwrite {
			what = "INSERT OVERWRITE"
		}
		return p.errAt(pgerr.SyntaxError, st.OnConflict.Pos, "ON CONFLICT is not allowed with %s", what)
	}
	cols, err := m.insertColumns(st.Columns)
	if err != nil {
		return err
	}
	switch need := m.t.it.need; {
	case st.Upsert:
		need.Modes |= roles.Update
	case st.Overwrite:
		need.Modes |= roles.Delete
	}
	static, cols, err := m.partitionClause(st, cols)
	if err != nil {
		return err
	}
	switch {
	case st.Query == nil:
		err = m.insertRow(s, nil, nil, nil, static)
	case st.ByName:
		err = m.insertByName(s, st, static)
	default:
		if v, ok := plainValues(st.Query); ok {
			err = m.insertValues(s, v, cols, st.Columns, static)
		} else {
			err = m.insertQuery(s, st.Query, cols, st.Columns, static)
		}
	}
	if err != nil {
		return err
	}
	if st.Upsert {
		m.t.it.need.Updated = m.t.it.need.Inserted
	}
	s.all = nil
	if st.OnConflict != nil {
		if err := m.onConflict(s, st.OnConflict); err != nil {
			return err
		}
	}
	// RETURNING sees the target only.
	rs := &scope{parent: s, items: []*item{m.t.it}, all: []*item{m.t.it}}
	return m.bindReturning(rs, st.Returning)
}

// plainValues returns the rows of a query that is VALUES and nothing else.
func plainValues(q *ast.Query) (*ast.Values, bool) {
	v, ok := q.Body.(*ast.Values)
	return v, ok && q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil && len(q.Locks) == 0
}

// insertRow makes the source of one row: DEFAULT VALUES.
func (m *modifier) insertRow(s *scope, vals []plan.Expr, cols []int, list []*ast.AssignTarget, static map[int]plan.Expr) error {
	row, err := m.fullRow(vals, cols, static)
	if err != nil {
		return err
	}
	m.valuesSource([][]plan.Expr{row})
	return nil
}

// fullRow puts values for cols in their places among the table's columns; the
// others get the value of PARTITION or their default.
func (m *modifier) fullRow(vals []plan.Expr, cols []int, static map[int]plan.Expr) ([]plan.Expr, error) {
	row := make([]plan.Expr, len(m.t.cols))
	need := m.t.it.need
	for i, c := range cols[:len(vals)] {
		row[c] = vals[i]
		need.Inserted.add(c)
	}
	for c := range static {
		need.Inserted.add(c)
	}
	for i := range row {
		if row[i] != nil {
			continue
		}
		if x, ok := static[i]; ok {
			row[i] = x
			continue
		}
		d, err := m.defaultOf(i)
		if err != nil {
			return nil, err
		}
		row[i] = d
	}
	return row, nil
}

// valuesSource makes rows of the whole table the source.
func (m *modifier) valuesSource(rows [][]plan.Expr) {
	v := &plan.LValues{Rows: rows, Out: make([]plan.LCol, len(m.t.cols))}
	for i := range m.t.cols {
		v.Out[i] = m.p.newCol(m.t.cols[i].Name, m.t.columnType(i), colInfo{kind: colOther})
	}
	m.src, m.plain = v, true
	for _, r := range rows {
		for _, e := range r {
			if _, ok := e.(*plan.Const); !ok && hasSubquery(e) {
				m.plain = false
			}
		}
	}
	if !m.plain {
		m.takeRow(v.Out)
	}
}

// takeRow says that the columns of the source are the new row.
func (m *modifier) takeRow(cols []plan.LCol) {
	m.new = make([]plan.Expr, len(cols))
	for i, c := range cols {
		m.new[i] = c.Ref()
	}
}

// insertValues binds VALUES straight into the columns' types, DEFAULT included.
func (m *modifier) insertValues(s *scope, v *ast.Values, cols []int, list []*ast.AssignTarget, static map[int]plan.Expr) error {
	p := m.p
	vs := &scope{parent: s, kind: inValues}
	if len(v.Rows) == 1 {
		// One row may have set-returning functions, as a SELECT without FROM.
		vs.sel, vs.kind = &selectState{}, inOneRow
	}
	rows := make([][]plan.Expr, 0, len(v.Rows))
	width := -1
	for _, r := range v.Rows {
		vals := make([]plan.Expr, 0, len(r))
		locs := make([]ast.Pos, 0, len(r))
		for i, a := range r {
			if d, ok := a.(*ast.Default); ok {
				if i >= len(cols) {
					return p.errAt(pgerr.SyntaxError, d.Pos, "INSERT has more expressions than target columns")
				}
				x, err := m.defaultOf(cols[i])
				if err != nil {
					return err
				}
				vals, locs = append(vals, x), append(locs, d.Pos)
				continue
			}
			if i < len(cols) {
				if x := m.quickLiteral(a, cols[i]); x != nil {
					vals, locs = append(vals, x), append(locs, a.Position())
					continue
				}
			}
			if items, ok, err := p.starItems(vs, a); err != nil {
				return err
			} else if ok {
				for _, it := range items {
					vals, locs = append(vals, it.e), append(locs, a.Position())
				}
				continue
			}
			x, err := p.expr(vs, a)
			if err != nil {
				return err
			}
			vals, locs = append(vals, x), append(locs, p.loc(a))
		}
		if width < 0 {
			width = len(vals)
		}
		if len(vals) != width {
			pos := v.Pos
			if len(locs) > 0 {
				pos = locs[0]
			}
			return p.errAt(pgerr.SyntaxError, pos, "VALUES lists must all be the same length")
		}
		wide := false
		if len(r) == 1 {
			row, ok := r[0].(*ast.Row)
			wide = ok && len(row.Elems) == len(cols)
		}
		if err := m.checkCount(len(vals), cols, list, func(i int) ast.Pos { return locs[i] }, wide); err != nil {
			return err
		}
		for i := range vals {
			if i < len(r) && len(r) == len(vals) {
				if _, ok := r[i].(*ast.Default); ok {
					continue
				}
			}
			x, err := m.identityValue(vals[i], cols[i])
			if err != nil {
				return err
			}
			vals[i] = x
		}
		for i, x := range vals {
			if k, ok := x.(*plan.Const); ok && k.T.Kind != types.Unknown {
				if _, known := p.pos[k]; !known {
					continue // a default or a literal read already
				}
			}
			x, err := m.assignTo(x, cols[i], locs[i])
			if err != nil {
				return err
			}
			if _, ok := x.(*plan.Const); !ok {
				x = p.fold(x)
			}
			vals[i] = x
		}
		row, err := m.fullRow(vals, cols, static)
		if err != nil {
			return err
		}
		rows = append(rows, row)
	}
	if vs.sel != nil && vs.sel.sets > 0 {
		return m.insertSets(vs, rows[0])
	}
	m.valuesSource(rows)
	return nil
}

// insertSets is VALUES of one row with set-returning functions.
func (m *modifier) insertSets(s *scope, row []plan.Expr) error {
	es := make([]*plan.Expr, len(row))
	for i := range row {
		es[i] = &row[i]
	}
	var err error
	m.src, err = m.p.extractSets(s, &plan.LValues{Rows: [][]plan.Expr{{}}}, es)
	m.new = row
	return err
}

// insertQuery binds INSERT ... SELECT.
func (m *modifier) insertQuery(s *scope, q *ast.Query, cols []int, list []*ast.AssignTarget, static map[int]plan.Expr) error {
	b, err := m.p.bindQueryOpt(q, s, false, false)
	if err != nil {
		return err
	}
	return m.fromQuery(b, cols, list, static, func(i int) ast.Pos { return b.pos[i] })
}

// fromQuery makes the new row of a bound query's columns.
func (m *modifier) fromQuery(b *bound, cols []int, list []*ast.AssignTarget, static map[int]plan.Expr, pos func(i int) ast.Pos) error {
	p := m.p
	wide := len(b.cols) == 1 && isRow(b.cols[0].t) && len(b.cols[0].t.Fields) == len(cols)
	if err := m.checkCount(len(b.cols), cols, list, pos, wide); err != nil {
		return err
	}
	b.root = p.exactCols(b)
	vals := make([]plan.Expr, len(b.cols))
	for i := range b.cols {
		if b.proj != nil && i < len(b.proj.Exprs) && m.literal(b.proj.Exprs[i], cols[i]) {
			// A literal or parameter of the select list takes the column's type.
			x, err := p.assign(b.proj.Exprs[i], Target{Name: m.t.cols[cols[i]].Name, Type: m.t.cols[cols[i]].Type}, pos(i))
			if err != nil {
				return err
			}
			b.proj.Exprs[i] = x
			b.proj.Out[i].T, b.cols[i].t = x.Type(), x.Type()
			refreshTypes(b.root, b.cols[i].id, x.Type())
		}
		x, err := m.assignTo(b.cols[i].ref(), cols[i], pos(i))
		if err != nil {
			return err
		}
		if vals[i], err = m.identityValue(x, cols[i]); err != nil {
			return err
		}
	}
	row, err := m.fullRow(vals, cols, static)
	m.src, m.new = b.root, row
	return err
}

// literal reports whether an expression takes its type from column i of the
// target: literals and parameters without one, and row and map literals.
func (m *modifier) literal(e plan.Expr, i int) bool {
	switch x := e.(type) {
	case *plan.MakeRow:
		return m.t.cols[i].Type.Kind == types.Row
	case *plan.Call:
		return m.p.maps[x]
	}
	return isUnknown(e)
}

// insertByName binds INSERT BY NAME: the query's columns say where they go.
func (m *modifier) insertByName(s *scope, st *ast.Insert, static map[int]plan.Expr) error {
	p := m.p
	b, err := p.bindQueryOpt(st.Query, s, false, false)
	if err != nil {
		return err
	}
	cols := make([]int, 0, len(b.cols))
	seen := make([]bool, len(m.t.cols))
	for i, c := range b.cols {
		at, err := m.column(c.name, b.pos[i])
		if err != nil {
			return err
		}
		switch {
		case at < 0:
			return p.errAt(pgerr.UndefinedColumn, b.pos[i], "column %q of relation %q does not exist", c.name, m.t.rel.Name())
		case seen[at]:
			return p.errAt(pgerr.DuplicateColumn, b.pos[i], "column %q specified more than once", c.name)
		}
		if _, ok := static[at]; ok {
			return p.errAt(pgerr.DuplicateColumn, b.pos[i], "column %q has a value in PARTITION already", c.name)
		}
		seen[at] = true
		cols = append(cols, at)
	}
	return m.fromQuery(b, cols, nil, static, func(i int) ast.Pos { return b.pos[i] })
}

// partitionClause reads PARTITION (dt = '2024-01-01', hh): the columns with a
// value take it in every row, those without come last in the query. cols are the
// columns named, or all; the result are those that the query has to give.
func (m *modifier) partitionClause(st *ast.Insert, cols []int) (map[int]plan.Expr, []int, error) {
	p, t := m.p, m.t
	keys := t.rel.PartitionKeys()
	if st.Overwrite {
		m.overwrite = &plan.OverwriteSpec{}
	}
	if len(st.Partition) == 0 {
		if m.overwrite != nil {
			m.overwrite.Dynamic = len(keys) > 0 && dynamicOverwrite(t.options)
		}
		return nil, cols, nil
	}
	static := map[int]plan.Expr{}
	var last []int
	named := make([]bool, len(t.cols))
	for _, v := range st.Partition {
		at, err := m.column(v.Column.Name, v.Pos)
		if err != nil {
			return nil, nil, err
		}
		switch {
		case at < 0:
			return nil, nil, p.errAt(pgerr.UndefinedColumn, v.Pos, "column %q of relation %q does not exist", v.Column.Name, t.rel.Name())
		case !contains(keys, t.cols[at].Name):
			return nil, nil, p.errAt(pgerr.InvalidColumnReference, v.Pos, "column %q is not a partition column of table %q", v.Column.Name, t.rel.Name())
		case named[at]:
			return nil, nil, p.errAt(pgerr.DuplicateColumn, v.Pos, "column %q specified more than once", v.Column.Name)
		}
		named[at] = true
		if v.Value == nil {
			last = append(last, at)
			continue
		}
		x, err := p.in(&scope{}, inConst, v.Value)
		if err != nil {
			return nil, nil, err
		}
		if x, err = m.assignTo(x, at, p.loc(v.Value)); err != nil {
			return nil, nil, err
		}
		if hasSubquery(x) {
			return nil, nil, p.errAt(pgerr.FeatureNotSupported, v.Pos, "cannot use subquery in PARTITION")
		}
		static[at] = p.fold(x)
	}
	rest := make([]int, 0, len(cols))
	for i, c := range cols {
		if !named[c] {
			rest = append(rest, c)
			continue
		}
		if st.Columns != nil {
			if _, ok := static[c]; ok {
				return nil, nil, p.errAt(pgerr.DuplicateColumn, st.Columns[i].Pos, "column %q has a value in PARTITION already", t.cols[c].Name)
			}
			// Named in its own place: it is not last then.
			rest = append(rest, c)
			for j, l := range last {
				if l == c {
					last = append(last[:j:j], last[j+1:]...)
					break
				}
			}
		}
	}
	if st.Columns == nil || len(last) > 0 {
		rest = append(rest, last...)
	}
	if m.overwrite != nil {
		m.overwrite.Dynamic = len(static) < len(keys) && dynamicOverwrite(t.options)
		if len(static) > 0 {
			m.overwrite.Static = map[string]plan.Expr{}
			for at, x := range static {
				m.overwrite.Static[t.cols[at].Name] = x
			}
		}
	}
	return static, rest, nil
}

// dynamicOverwrite reads Paimon's option; true is its default.
func dynamicOverwrite(options map[string]string) bool {
	return !strings.EqualFold(options["dynamic-partition-overwrite"], "false")
}
