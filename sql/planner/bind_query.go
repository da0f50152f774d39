package planner

import (
	"slices"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// outCol is a result column of a query.
type outCol struct {
	name string
	id   plan.ColID
	t    types.Type
}

func (c outCol) ref() *plan.Col { return &plan.Col{ID: c.id, Name: c.name, T: c.t} }

// bound is a bound query.
type bound struct {
	root plan.LNode
	cols []outCol
	// computed: the columns are not those of tables though their IDs may be
	// (the result of a set operation).
	computed bool
	// proj makes the columns, when they come straight from a select list: a
	// literal of unknown type there may still be given one.
	proj *plan.LProject
	// firstPos is where the select list begins, pos[i] where column i does.
	firstPos ast.Pos
	pos      []ast.Pos
	// hidden are columns of the result that are not shown.
	hidden []outCol
}

func (b *bound) lcols() []plan.LCol {
	out := make([]plan.LCol, len(b.cols))
	for i, c := range b.cols {
		out[i] = plan.LCol{ID: c.id, Name: c.name, T: c.t}
	}
	return out
}

func (b *bound) outIDs() []plan.ColID {
	out := make([]plan.ColID, len(b.cols))
	for i, c := range b.cols {
		out[i] = c.id
	}
	return out
}

// target is a column of a select list; junk ones exist for ORDER BY.
type target struct {
	name string
	e    plan.Expr
	pos  ast.Pos
	src  ast.Expr
	junk bool
	lock bool // a key column of a row to lock: not shown, but in the result
	id   plan.ColID
}

// selectState is what one SELECT gathers while its clauses are bound.
type selectState struct {
	aggs          []plan.AggCall
	aggCols       []plan.LCol
	aggPos        []ast.Pos
	hasAgg        bool
	windows       []*window
	named         map[string]*boundSpec
	sets          int
	recursiveStep bool
}

// bindQuery binds a query below parent. top asks for text where a column's type
// stays unknown, as everywhere but in a branch of a set operation.
func (p *planner) bindQuery(q *ast.Query, parent *scope, top bool) (*bound, error) {
	return p.bindQueryOpt(q, parent, true, false)
}

func (p *planner) bindQueryOpt(q *ast.Query, parent *scope, resolve, recursiveStep bool) (*bound, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	s := &scope{parent: parent}
	if q.With != nil {
		if err := p.bindWith(s, q.With); err != nil {
			return nil, err
		}
	}
	switch body := q.Body.(type) {
	case *ast.Select:
		return p.bindSelect(s, body, q, resolve, recursiveStep)
	case *ast.Values:
		if len(q.Locks) > 0 {
			return nil, p.errAt(pgerr.FeatureNotSupported, q.Locks[0].Pos, "%s cannot be applied to VALUES", lockNames[q.Locks[0].Strength])
		}
		return p.bindValues(s, body, q, resolve)
	case *ast.SetOp:
		return p.bindSetQuery(s, body, q)
	case *ast.Query:
		if len(q.Locks) > 0 { // what stands behind parentheses is of the query in them
			in := *body
			in.Locks = append(slices.Clip(in.Locks), q.Locks...)
			body = &in
		}
		inner, err := p.bindQueryOpt(body, s, resolve, recursiveStep)
		if err != nil {
			return nil, err
		}
		if q.OrderBy == nil && q.Limit == nil && q.Offset == nil {
			return inner, nil
		}
		return p.orderByNames(s, inner, q)
	}
	return nil, pgerr.New(pgerr.FeatureNotSupported, "query %T is not supported", q.Body)
}

func (p *planner) bindSelect(s *scope, sel *ast.Select, q *ast.Query, resolve, recursiveStep bool) (*bound, error) {
	if sel.Into != nil {
		return nil, p.errAt(pgerr.FeatureNotSupported, sel.Into.Pos, "SELECT INTO is not supported here")
	}
	s.sel = &selectState{recursiveStep: recursiveStep}
	node, err := p.bindFrom(s, sel.From)
	if err != nil {
		return nil, err
	}
	if node == nil {
		node = &plan.LValues{Rows: [][]plan.Expr{{}}}
	}
	if err := p.bindWindowClause(s, sel.Windows); err != nil {
		return nil, err
	}
	targets, err := p.bindTargets(s, sel)
	if err != nil {
		return nil, err
	}
	var where []plan.Expr
	if sel.Where != nil {
		if where, err = p.condition(s, sel.Where, inWhere, "WHERE"); err != nil {
			return nil, err
		}
	}
	var having []plan.Expr
	if sel.Having != nil {
		if having, err = p.condition(s, sel.Having, inHaving, "HAVING"); err != nil {
			return nil, err
		}
	}
	var keys []orderKey
	if keys, targets, err = p.bindOrderBy(s, q.OrderBy, targets); err != nil {
		return nil, err
	}
	groups, sets, err := p.bindGroupBy(s, sel, targets)
	if err != nil {
		return nil, err
	}
	for i := range targets {
		if resolve || targets[i].junk {
			if targets[i].e, err = p.resolveUnknown(targets[i].e, targets[i].pos); err != nil {
				return nil, err
			}
		}
	}
	var on []int
	if sel.DistinctOn != nil {
		if on, targets, err = p.bindDistinctOn(s, sel, targets, keys); err != nil {
			return nil, err
		}
	}
	offset, count, err := p.bindLimit(s, q)
	if err != nil {
		return nil, err
	}
	if targets, err = p.bindLocks(s, sel, q, node, targets); err != nil {
		return nil, err
	}
	if len(where) > 0 {
		node = &plan.LFilter{In: node, Conds: where}
	}
	grouped := s.sel.hasAgg || len(groups) > 0 || sets != nil || sel.Having != nil
	if grouped {
		if recursiveStep && len(groups) > 0 && s.sel.hasAgg {
			return nil, p.errAt(pgerr.InvalidRecursion, sel.Pos, "aggregate functions are not allowed in a recursive query's recursive term")
		}
		if node, having, err = p.buildAggregate(s, node, groups, sets, targets, having); err != nil {
			return nil, err
		}
	}
	if len(having) > 0 {
		node = &plan.LFilter{In: node, Conds: having}
	}
	node = p.buildWindows(s, node)
	if node, err = p.buildSets(s, node, targets); err != nil {
		return nil, err
	}
	// The select list; a column used once keeps its ID.
	pr := &plan.LProject{In: node}
	seen := colSet{}
	local := colsOf(node) // a column of an outer query gets an ID of its own here
	b := &bound{proj: pr, firstPos: -1}
	for i := range targets {
		t := &targets[i]
		var col plan.LCol
		if c, ok := t.e.(*plan.Col); ok && !seen[c.ID] && local[c.ID] {
			col = plan.LCol{ID: c.ID, Name: t.name, T: c.T}
		} else {
			info := colInfo{kind: colOther}
			if c, ok := t.e.(*plan.Col); ok {
				if old := p.colInfo(c.ID); old != nil {
					info.relID, info.att = old.relID, old.att
				}
			}
			col = p.newCol(t.name, t.e.Type(), info)
		}
		seen[col.ID] = true
		t.id = col.ID
		pr.Exprs = append(pr.Exprs, t.e)
		pr.Out = append(pr.Out, col)
		if t.lock {
			b.hidden = append(b.hidden, outCol{t.name, col.ID, col.T})
		}
		if !t.junk {
			b.cols = append(b.cols, outCol{t.name, col.ID, col.T})
			b.pos = append(b.pos, t.pos)
			if b.firstPos < 0 {
				b.firstPos = t.pos
			}
		}
	}
	b.root = pr
	sortKeys := make([]plan.SortKey, len(keys))
	for i, k := range keys {
		t := targets[k.target]
		sortKeys[i] = plan.SortKey{Expr: &plan.Col{ID: t.id, Name: t.name, T: t.e.Type()}, Desc: k.desc, NullsFirst: k.nullsFirst}
	}
	if sel.Distinct && sel.DistinctOn == nil {
		for i, k := range keys {
			if targets[k.target].junk {
				return nil, p.errAt(pgerr.InvalidColumnReference, p.loc(q.OrderBy[i].Expr), "for SELECT DISTINCT, ORDER BY expressions must appear in select list")
			}
		}
		for _, t := range targets {
			if !p.hashable(t.e.Type()) {
				return nil, p.errAt(pgerr.UndefinedFunction, t.pos, "could not identify an equality operator for type %s", typeName(t.e.Type()))
			}
		}
		b.root = &plan.LDistinct{In: b.root}
	}
	if len(on) > 0 {
		// Rows of equal keys must be neighbours: sort by the ORDER BY, whose
		// first keys are the ON expressions, then by the others.
		have := map[int]bool{}
		for _, k := range keys {
			have[k.target] = true
		}
		d := &plan.LDistinct{}
		for _, o := range on {
			t := targets[o]
			c := &plan.Col{ID: t.id, Name: t.name, T: t.e.Type()}
			d.On = append(d.On, c)
			if !have[o] {
				sortKeys = append(sortKeys, plan.SortKey{Expr: c})
				have[o] = true
			}
		}
		d.In = &plan.LSort{In: b.root, Keys: sortKeys}
		b.root = d
	} else if len(sortKeys) > 0 {
		b.root = &plan.LSort{In: b.root, Keys: sortKeys}
	}
	if offset != nil || count != nil {
		b.root = &plan.LLimit{In: b.root, Offset: offset, Count: count, WithTies: q.WithTies, Keys: sortKeys}
	}
	if len(b.cols) < len(targets) {
		cut := &plan.LProject{In: b.root}
		for _, c := range append(b.cols[:len(b.cols):len(b.cols)], b.hidden...) {
			cut.Exprs = append(cut.Exprs, c.ref())
			cut.Out = append(cut.Out, plan.LCol{ID: c.id, Name: c.name, T: c.t})
		}
		b.root = cut
	}
	return b, nil
}

// condition binds WHERE or HAVING into conjuncts.
func (p *planner) condition(s *scope, e ast.Expr, k exprKind, name string) ([]plan.Expr, error) {
	x, err := p.in(s, k, e)
	if err != nil {
		return nil, err
	}
	if x, err = p.coerceBool(x, name, p.loc(e)); err != nil {
		return nil, err
	}
	return conjuncts(x), nil
}

// starItem is one column that a star stands for.
type starItem struct {
	name string
	e    plan.Expr
}

// starItems expands *, t.* and (r).*; ok is false for other expressions.
func (p *planner) starItems(s *scope, e ast.Expr) ([]starItem, bool, error) {
	out, ok, err := p.expandStar(s, e)
	for i := range out {
		p.reads(out[i].e)
	}
	return out, ok, err
}

func (p *planner) expandStar(s *scope, e ast.Expr) ([]starItem, bool, error) {
	var out []starItem
	switch e := e.(type) {
	case *ast.ColumnRef:
		if !e.Star {
			return nil, false, nil
		}
		if len(e.Parts) == 0 {
			n := 0
			for _, it := range s.items {
				if it.colVisible && !it.lateralOnly {
					for _, c := range it.cols {
						out = append(out, starItem{c.name, p.copyCol(c.e, e.Pos)})
					}
				}
				n++
			}
			if n == 0 {
				return nil, true, p.errAt(pgerr.SyntaxError, e.Pos, "SELECT * with no tables specified is not valid")
			}
			return out, true, nil
		}
		schema := ""
		if len(e.Parts) > 1 {
			schema = schemaAlias(e.Parts[len(e.Parts)-2].Name)
		}
		it, err := p.findItem(s, schema, e.Parts.Last(), e.Pos)
		if err != nil {
			return nil, true, err
		}
		if it == nil && len(e.Parts) == 1 {
			if c, err := p.findColumn(s, e.Parts[0].Name, e.Pos); err != nil || c != nil && isRow(c.Type()) {
				if err != nil {
					return nil, true, err
				}
				return p.expandRow(c), true, nil
			}
		}
		if it == nil {
			return nil, true, p.missingItem(s, e.Parts, e.Pos)
		}
		for _, c := range it.cols {
			out = append(out, starItem{c.name, p.copyCol(c.e, e.Pos)})
		}
		return out, true, nil
	case *ast.FieldSelect:
		if !e.Star {
			return nil, false, nil
		}
		x, err := p.expr(s, e.Expr)
		if err != nil {
			return nil, true, err
		}
		if !isRow(x.Type()) {
			return nil, true, p.errAt(pgerr.WrongObjectType, p.loc(e), "type %s is not composite", typeName(x.Type()))
		}
		return p.expandRow(x), true, nil
	}
	return nil, false, nil
}

func (p *planner) expandRow(x plan.Expr) []starItem {
	var out []starItem
	for i, f := range x.Type().Fields {
		out = append(out, starItem{f.Name, p.pickField(x, i)})
	}
	return out
}

// copyCol gives a reference its own node, so that it has a place of its own.
func (p *planner) copyCol(e plan.Expr, pos ast.Pos) plan.Expr {
	if c, ok := e.(*plan.Col); ok {
		n := *c
		p.pos[&n] = pos
		return &n
	}
	return e
}

func (p *planner) bindTargets(s *scope, sel *ast.Select) ([]target, error) {
	var out []target
	for _, t := range sel.Targets {
		old := s.kind
		s.kind = inTarget
		items, ok, err := p.starItems(s, t.Expr)
		s.kind = old
		if err != nil {
			return nil, err
		}
		if ok {
			srcs := p.recording().star(s, t, items)
			for i, it := range items {
				out = append(out, target{name: it.name, e: it.e, pos: t.Pos, src: srcs[i]})
			}
			continue
		}
		x, err := p.in(s, inTarget, t.Expr)
		if err != nil {
			return nil, err
		}
		name := t.Alias.Name
		if name == "" {
			name = figureName(t.Expr)
		}
		out = append(out, target{name: name, e: x, pos: p.loc(t.Expr), src: t.Expr})
	}
	if len(out) > 1664 {
		return nil, pgerr.New(pgerr.TooManyColumns, "target lists can have at most 1664 entries")
	}
	return out, nil
}

// orderKey sorts by a target.
type orderKey struct {
	target           int
	desc, nullsFirst bool
}

// buildWindows stacks a window node per specification.
func (p *planner) buildWindows(s *scope, node plan.LNode) plan.LNode {
	for _, w := range s.sel.windows {
		node = &plan.LWindow{In: node, PartitionBy: w.partition, OrderBy: w.order, Calls: w.calls, CallCols: w.cols}
	}
	return node
}

// buildSets moves set-returning functions of the select list below it, those
// that are arguments of others first. All of one level run in step.
func (p *planner) buildSets(s *scope, node plan.LNode, targets []target) (plan.LNode, error) {
	if s.sel.sets == 0 {
		return node, nil
	}
	es := make([]*plan.Expr, len(targets))
	for i := range targets {
		es[i] = &targets[i].e
	}
	return p.extractSets(s, node, es)
}

func (p *planner) extractSets(s *scope, node plan.LNode, es []*plan.Expr) (plan.LNode, error) {
	for {
		ps := &plan.LProjectSet{In: node}
		var made []*plan.SetRef
		var repl []plan.Expr
		take := func(e plan.Expr) plan.Expr {
			return plan.Transform(e, func(x plan.Expr) plan.Expr {
				r, ok := x.(*plan.SetRef)
				if !ok {
					return x
				}
				for _, a := range r.Args {
					if hasSet(a) {
						return x
					}
				}
				for i, m := range made {
					if m == r || exprEqual(m, r) && r.F.Volatility != function.Volatile {
						return repl[i]
					}
				}
				var cols []plan.LCol
				for _, f := range r.Out {
					cols = append(cols, p.newCol(f.Name, f.Type.WithNotNull(false), colInfo{scope: s, kind: colSRF}))
				}
				ps.Sets = append(ps.Sets, plan.LSetCall{F: r.F, Args: r.Args, T: r.Out, Pos: r.Pos})
				ps.SetCols = append(ps.SetCols, cols)
				var out plan.Expr = cols[0].Ref()
				if len(cols) > 1 {
					row := &plan.MakeRow{T: r.T}
					for _, c := range cols {
						row.Elems = append(row.Elems, c.Ref())
					}
					out = row
				}
				made = append(made, r)
				repl = append(repl, out)
				return out
			})
		}
		for _, e := range es {
			// One level at a time: what this pass replaced is not looked into again.
			if hasSet(*e) {
				*e = take(*e)
			}
		}
		if len(ps.Sets) == 0 {
			return node, nil
		}
		node = ps
	}
}

func hasSet(e plan.Expr) bool {
	found := false
	plan.Walk(e, func(x plan.Expr) bool {
		if _, ok := x.(*plan.SetRef); ok {
			found = true
		}
		return !found
	})
	return found
}

func (p *planner) bindValues(s *scope, v *ast.Values, q *ast.Query, resolve bool) (*bound, error) {
	n := -1
	var rows [][]plan.Expr
	locs := make([][]ast.Pos, 0, len(v.Rows))
	for _, r := range v.Rows {
		if n < 0 {
			n = len(r)
		}
		if len(r) != n {
			pos := v.Pos
			if len(r) > 0 {
				pos = p.loc(r[0])
			}
			return nil, p.errAt(pgerr.SyntaxError, pos, "VALUES lists must all be the same length")
		}
		old := s.kind
		s.kind = inValues
		var row []plan.Expr
		var ls []ast.Pos
		for _, a := range r {
			if items, ok, err := p.starItems(s, a); err != nil {
				return nil, err
			} else if ok {
				for _, it := range items {
					row, ls = append(row, it.e), append(ls, a.Position())
				}
				continue
			}
			x, err := p.expr(s, a)
			if err != nil {
				return nil, err
			}
			row, ls = append(row, x), append(ls, p.loc(a))
		}
		s.kind = old
		rows, locs = append(rows, row), append(locs, ls)
	}
	b := &bound{firstPos: -1, computed: true}
	lv := &plan.LValues{Rows: rows}
	if len(rows) > 0 && len(locs[0]) > 0 {
		b.firstPos = locs[0][0]
		n = len(rows[0])
	}
	for c := 0; c < n; c++ {
		es, ls := make([]plan.Expr, len(rows)), make([]ast.Pos, len(rows))
		unknown := true
		for i := range rows {
			es[i], ls[i] = rows[i][c], locs[i][c]
			unknown = unknown && isUnknown(es[i])
		}
		var t types.Type
		if unknown && !resolve {
			t = types.Of(types.Unknown)
		} else {
			var err error
			if es, t, err = p.coerceCommon("VALUES", es, ls); err != nil {
				return nil, err
			}
		}
		nn := true
		for i := range rows {
			rows[i][c] = es[i]
			nn = nn && es[i].Type().NotNull
		}
		name := columnName(c)
		col := p.newCol(name, t.WithNotNull(nn), colInfo{kind: colOther})
		lv.Out = append(lv.Out, col)
		b.cols = append(b.cols, outCol{name, col.ID, col.T})
		b.pos = append(b.pos, ls[0])
	}
	b.root = lv
	if q.OrderBy == nil && q.Limit == nil && q.Offset == nil {
		return b, nil
	}
	return p.orderByNames(s, b, q)
}
