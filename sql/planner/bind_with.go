package planner

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

func (p *planner) bindWith(s *scope, w *ast.With) error {
	for i, c := range w.CTEs {
		for _, o := range w.CTEs[:i] {
			if o.Name.Name == c.Name.Name {
				return p.errAt(pgerr.DuplicateAlias, c.Name.Pos, "WITH query name %q specified more than once", c.Name.Name)
			}
		}
		if _, ok := c.Stmt.(*ast.Query); !ok {
			return p.errAt(pgerr.FeatureNotSupported, c.Pos, "data-modifying statements in WITH are not supported")
		}
		if c.Search != nil {
			return p.errAt(pgerr.FeatureNotSupported, c.Search.Pos, "SEARCH is not supported")
		}
		if c.Cycle != nil {
			return p.errAt(pgerr.FeatureNotSupported, c.Cycle.Pos, "CYCLE is not supported")
		}
	}
	if w.Recursive {
		for _, c := range w.CTEs {
			s.ctes = append(s.ctes, &cteDef{name: c.Name.Name, def: c, scope: s, visible: true})
		}
		for _, d := range s.ctes {
			if err := p.defineCTE(d, true); err != nil {
				return err
			}
		}
		return nil
	}
	for _, c := range w.CTEs {
		d := &cteDef{name: c.Name.Name, def: c, scope: s}
		if err := p.defineCTE(d, false); err != nil {
			return err
		}
		d.visible = true
		s.ctes = append(s.ctes, d)
	}
	return nil
}

// defineCTE binds the definition of a WITH item once.
func (p *planner) defineCTE(d *cteDef, recursive bool) error {
	if d.cte != nil {
		return nil
	}
	if d.active {
		return p.errAt(pgerr.FeatureNotSupported, d.def.Pos, "mutual recursion between WITH items is not implemented")
	}
	d.active = true
	defer func() { d.active = false }()
	q := d.def.Stmt.(*ast.Query)
	var b *bound
	var err error
	if recursive && refersTo(q, d.name) {
		b, err = p.bindRecursive(d, q)
	} else {
		b, err = p.bindQuery(q, d.scope, true)
	}
	if err != nil {
		return err
	}
	if d.cols, err = p.cteCols(d, b.cols); err != nil {
		return err
	}
	d.inline = b
	d.cte = &plan.LCTE{ID: len(p.ctes), Name: d.name, Plan: b.root,
		Always: d.def.Materialize == ast.MaterializeAlways, Never: d.def.Materialize == ast.MaterializeNever}
	p.ctes = append(p.ctes, d.cte)
	return nil
}

func (p *planner) cteCols(d *cteDef, cols []outCol) ([]outCol, error) {
	if len(d.def.Columns) > len(cols) {
		return nil, p.errAt(pgerr.InvalidColumnReference, d.def.Pos, "WITH query %q has %d columns available but %d columns specified", d.name, len(cols), len(d.def.Columns))
	}
	out := append([]outCol{}, cols...)
	for i, c := range d.def.Columns {
		out[i].name = c.Name
	}
	return out, nil
}

// refersTo reports whether a query names a relation name without schema.
func refersTo(q *ast.Query, name string) bool {
	found := false
	walkAST(q, func(n ast.Node) bool {
		if t, ok := n.(*ast.TableName); ok && len(t.Name) == 1 && t.Name[0].Name == name {
			found = true
		}
		return !found
	})
	return found
}

// bindRecursive binds a recursive WITH item: init UNION [ALL] step.
func (p *planner) bindRecursive(d *cteDef, q *ast.Query) (*bound, error) {
	bad := func(pos ast.Pos, format string, args ...any) error {
		return p.errAt(pgerr.InvalidRecursion, pos, format, args...)
	}
	so, ok := q.Body.(*ast.SetOp)
	if !ok || so.Kind != ast.Union {
		return nil, bad(d.def.Pos, "recursive query %q does not have the form non-recursive-term UNION [ALL] recursive-term", d.name)
	}
	pos := refPos(so.Left, d.name)
	if pos >= 0 {
		return nil, bad(pos, "recursive reference to query %q must not appear within its non-recursive term", d.name)
	}
	if q.With != nil && refersTo(&ast.Query{With: q.With, Body: &ast.Values{}}, d.name) {
		return nil, bad(refPosWith(q.With, d.name), "recursive reference to query %q must not appear within a subquery", d.name)
	}
	if len(q.OrderBy) > 0 {
		return nil, p.errAt(pgerr.FeatureNotSupported, p.loc(q.OrderBy[0].Expr), "ORDER BY in a recursive query is not implemented")
	}
	if q.Offset != nil {
		return nil, p.errAt(pgerr.FeatureNotSupported, p.loc(q.Offset), "OFFSET in a recursive query is not implemented")
	}
	if q.Limit != nil {
		return nil, p.errAt(pgerr.FeatureNotSupported, p.loc(q.Limit), "LIMIT in a recursive query is not implemented")
	}
	if len(q.Locks) > 0 {
		return nil, p.errAt(pgerr.FeatureNotSupported, q.Locks[0].Pos, "FOR UPDATE/SHARE in a recursive query is not implemented")
	}
	s := &scope{parent: d.scope}
	if q.With != nil {
		if err := p.bindWith(s, q.With); err != nil {
			return nil, err
		}
	}
	init, err := p.bindBody(s, so.Left, true, false)
	if err != nil {
		return nil, err
	}
	rec := &recState{id: p.nextRec, name: d.name}
	p.nextRec++
	// The working table's columns: numerics get the form with a scale per value,
	// since each round may change it.
	casts := map[int]types.Type{}
	for i, c := range init.cols {
		t := c.t.WithNotNull(false)
		if t.Kind == types.Numeric && t.Mod == 0 && t.Prec != 0 {
			t = types.Of(types.Numeric)
			casts[i] = t
		}
		col := p.newCol(c.name, t, colInfo{kind: colOther})
		rec.cols = append(rec.cols, outCol{c.name, col.ID, t})
	}
	if rec.cols, err = p.cteCols(d, rec.cols); err != nil {
		return nil, err
	}
	d.rec = rec
	step, err := p.bindBody(s, so.Right, false, true)
	d.rec = nil
	if err != nil {
		return nil, err
	}
	if len(step.cols) != len(init.cols) {
		return nil, p.errAt(pgerr.SyntaxError, step.firstPos, "each UNION query must have the same number of columns")
	}
	r := &plan.LRecursive{ID: rec.id, Name: d.name, Distinct: !so.All}
	out := &bound{computed: true, firstPos: init.firstPos, pos: init.pos}
	for i := range init.cols {
		l, rr := &plan.Param{T: init.cols[i].t.WithNotNull(false)}, &plan.Param{T: step.cols[i].t.WithNotNull(false)}
		t, err := p.commonType("UNION", []plan.Expr{l, rr}, []ast.Pos{init.pos[i], step.pos[i]})
		if err != nil {
			return nil, err
		}
		it := init.cols[i].t
		if !sameType(t, it) || t.Kind != types.Numeric && t.PGTypmod() != it.PGTypmod() {
			return nil, p.errAt(pgerr.DatatypeMismatch, init.pos[i], "recursive query %q column %d has type %s in non-recursive term but type %s overall", d.name, i+1, it.WithNotNull(false).String(), t.String()).
				WithHint("Cast the output of the non-recursive term to the correct type.")
		}
		want := rec.cols[i].t
		if err := p.coerceOut(init, i, want); err != nil {
			return nil, err
		}
		if err := p.coerceOut(step, i, want); err != nil {
			return nil, err
		}
		if r.Distinct && !p.hashable(want) {
			return nil, p.errAt(pgerr.FeatureNotSupported, init.pos[i], "could not implement recursive UNION").
				WithDetail("All column datatypes must be hashable.")
		}
		col := p.newCol(rec.cols[i].name, want, colInfo{kind: colOther})
		r.Out = append(r.Out, col)
		out.cols = append(out.cols, outCol{rec.cols[i].name, col.ID, want})
	}
	r.Init, r.Step = p.exactCols(init), p.exactCols(step)
	out.root = r
	return out, nil
}

// refPos finds a reference to a WITH item, -1 when there is none.
func refPos(b ast.QueryBody, name string) ast.Pos {
	pos := ast.Pos(-1)
	walkAST(b, func(n ast.Node) bool {
		if t, ok := n.(*ast.TableName); ok && pos < 0 && len(t.Name) == 1 && t.Name[0].Name == name {
			pos = t.Pos
		}
		return pos < 0
	})
	return pos
}

func refPosWith(w *ast.With, name string) ast.Pos {
	for _, c := range w.CTEs {
		if q, ok := c.Stmt.(*ast.Query); ok {
			if pos := refPos(q, name); pos >= 0 {
				return pos
			}
		}
	}
	return -1
}

// bindCTERef is a WITH item in FROM.
func (p *planner) bindCTERef(s *scope, d *cteDef, r *ast.TableName) (plan.LNode, []*item, error) {
	it := &item{name: d.name, table: d.name}
	if d.rec != nil {
		return p.bindWorkRef(s, d, r, it)
	}
	if d.cte == nil {
		if err := p.defineCTE(d, true); err != nil {
			return nil, nil, err
		}
	}
	var node plan.LNode
	names := make([]string, len(d.cols))
	for i, c := range d.cols {
		names[i] = c.name
	}
	first := d.cte.Refs == 0 && d.useCount == 0
	d.useCount++
	if !first && (d.cte.Never || len(freeCols(d.cte.Plan)) > 0 || perRow(d.cte.Plan)) && !planVolatile(d.cte.Plan) {
		// Bound anew: each use is a subquery of its own.
		q := d.def.Stmt.(*ast.Query)
		var b *bound
		var err error
		was := p.rebinding
		p.rebinding = true
		defer func() { p.rebinding = was }()
		if refersTo(q, d.name) {
			old := d.cte
			d.cte = nil
			b, err = p.bindRecursive(d, q)
			d.cte = old
		} else {
			b, err = p.bindQuery(q, d.scope, true)
		}
		if err != nil {
			return nil, nil, err
		}
		node = p.rename(s, b, names, it)
	} else {
		d.cte.Refs++
		scan := &plan.LCTEScan{CTE: d.cte}
		for i, c := range d.cols {
			info := colInfo{scope: s, item: it}
			if old := p.colInfo(c.id); old != nil && !d.inline.computed {
				info.relID, info.att = old.relID, old.att
			}
			col := p.newCol(names[i], c.t, info)
			scan.Out = append(scan.Out, col)
			it.cols = append(it.cols, scopeCol{name: names[i], e: col.Ref()})
		}
		// The CTE's plan yields exactly its columns, in order.
		d.cte.Plan = p.exactPlan(d.cte.Plan, d.inline)
		node = scan
	}
	if err := p.applyAlias(it, r.Alias, "table"); err != nil {
		return nil, nil, err
	}
	if sc, ok := node.(*plan.LCTEScan); ok {
		sc.Alias = it.name
	}
	p.nameCols(it)
	return node, p.addItem(s, it), nil
}

// perRow reports whether a plan reads the working table of a recursion around
// it: then it has to be computed in every round.
func perRow(n plan.LNode) bool {
	own := map[int]bool{}
	reads := map[int]bool{}
	seen := map[*plan.LCTE]bool{}
	var look func(n plan.LNode)
	look = func(n plan.LNode) {
		eachNode(n, func(n plan.LNode) {
			switch n := n.(type) {
			case *plan.LRecursive:
				own[n.ID] = true
			case *plan.LWorkScan:
				reads[n.ID] = true
			case *plan.LCTEScan:
				if !seen[n.CTE] {
					seen[n.CTE] = true
					look(n.CTE.Plan)
				}
			}
		})
	}
	look(n)
	for id := range reads {
		if !own[id] {
			return true
		}
	}
	return false
}

// exactPlan puts a projection on top when the node's columns are not exactly
// the result's.
func (p *planner) exactPlan(n plan.LNode, b *bound) plan.LNode {
	cols := n.Cols()
	same := len(cols) == len(b.cols)
	for i := 0; same && i < len(cols); i++ {
		same = cols[i].ID == b.cols[i].id
	}
	if same {
		return n
	}
	pr := &plan.LProject{In: n}
	for _, c := range b.cols {
		pr.Exprs = append(pr.Exprs, c.ref())
		pr.Out = append(pr.Out, plan.LCol{ID: c.id, Name: c.name, T: c.t})
	}
	return pr
}

func (p *planner) exactCols(b *bound) plan.LNode { return p.exactPlan(b.root, b) }

func (p *planner) bindWorkRef(s *scope, d *cteDef, r *ast.TableName, it *item) (plan.LNode, []*item, error) {
	rec := d.rec
	if rec.forbidden != "" {
		return nil, nil, p.errAt(pgerr.InvalidRecursion, r.Pos, "recursive reference to query %q must not appear within %s", d.name, rec.forbidden)
	}
	depth := 0
	for l := s; l != nil && l != d.scope; l = l.parent {
		if l.kind != inNone && l.kind != inFromSub {
			return nil, nil, p.errAt(pgerr.InvalidRecursion, r.Pos, "recursive reference to query %q must not appear within a subquery", d.name)
		}
		depth++
	}
	if !p.rebinding {
		rec.refs++
	}
	if rec.refs > 1 {
		return nil, nil, p.errAt(pgerr.InvalidRecursion, r.Pos, "recursive reference to query %q must not appear more than once", d.name)
	}
	w := &plan.LWorkScan{ID: rec.id, Name: d.name}
	for _, c := range rec.cols {
		col := p.newCol(c.name, c.t, colInfo{scope: s, item: it})
		w.Out = append(w.Out, col)
		it.cols = append(it.cols, scopeCol{name: c.name, e: col.Ref()})
	}
	if err := p.applyAlias(it, r.Alias, "table"); err != nil {
		return nil, nil, err
	}
	w.Alias = it.name
	p.nameCols(it)
	return w, p.addItem(s, it), nil
}

// setRecOuter forbids recursive references in the nullable side of an outer
// join while it is bound.
func (p *planner) setRecOuter(s *scope, outer bool) []*recState {
	if !outer {
		return nil
	}
	var changed []*recState
	for l := s; l != nil; l = l.parent {
		for _, d := range l.ctes {
			if d.rec != nil && d.rec.forbidden == "" {
				d.rec.forbidden = "an outer join"
				changed = append(changed, d.rec)
			}
		}
	}
	return changed
}

func (p *planner) restoreRec(changed []*recState) {
	for _, r := range changed {
		r.forbidden = ""
	}
}

func (p *planner) recForbid(bool, ast.TableRef) error { return nil }

// bindBody binds one side of a set operation.
func (p *planner) bindBody(s *scope, b ast.QueryBody, resolve, step bool) (*bound, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	empty := &ast.Query{Body: b}
	switch b := b.(type) {
	case *ast.Select:
		return p.bindSelect(&scope{parent: s}, b, empty, resolve, step)
	case *ast.Values:
		return p.bindValues(&scope{parent: s}, b, empty, resolve)
	case *ast.SetOp:
		return p.bindSetOp(s, b, step)
	case *ast.Query:
		return p.bindQueryOpt(b, s, resolve, step)
	}
	return nil, pgerr.New(pgerr.FeatureNotSupported, "query %T is not supported", b)
}

// bindSetQuery binds a set operation with its ORDER BY and LIMIT.
func (p *planner) bindSetQuery(s *scope, so *ast.SetOp, q *ast.Query) (*bound, error) {
	for _, l := range q.Locks {
		return nil, p.errAt(pgerr.FeatureNotSupported, l.Pos, "FOR UPDATE is not allowed with UNION/INTERSECT/EXCEPT")
	}
	b, err := p.bindSetOp(s, so, false)
	if err != nil {
		return nil, err
	}
	if q.OrderBy == nil && q.Limit == nil && q.Offset == nil {
		return b, nil
	}
	inner := &scope{parent: s.parent}
	it := &item{colVisible: true}
	var targets []target
	for _, c := range b.cols {
		it.cols = append(it.cols, scopeCol{name: c.name, e: c.ref()})
		targets = append(targets, target{name: c.name, e: c.ref()})
	}
	inner.items = []*item{it}
	keys, ts, err := p.bindOrderBy(inner, q.OrderBy, targets)
	if err != nil {
		return nil, err
	}
	if len(ts) > len(targets) {
		return nil, p.errAt(pgerr.FeatureNotSupported, ts[len(targets)].pos, "invalid UNION/INTERSECT/EXCEPT ORDER BY clause").
			WithDetail("Only result column names can be used, not expressions or functions.").
			WithHint("Add the expression/function to every SELECT, or move the UNION into a FROM clause.")
	}
	return p.sortAndCut(s, b, q, keys, ts)
}

var setOpNames = map[ast.SetOpKind]string{ast.Union: "UNION", ast.Intersect: "INTERSECT", ast.Except: "EXCEPT"}

func (p *planner) bindSetOp(s *scope, so *ast.SetOp, step bool) (*bound, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	name := setOpNames[so.Kind]
	var forbidden []*recState
	if so.Kind == ast.Except {
		forbidden = nil
	}
	l, err := p.bindBody(s, so.Left, false, step)
	if err != nil {
		return nil, err
	}
	if so.Kind == ast.Except {
		forbidden = p.setRecExcept(s)
	}
	r, err := p.bindBody(s, so.Right, false, step)
	p.restoreRec(forbidden)
	if err != nil {
		return nil, err
	}
	if len(l.cols) != len(r.cols) {
		return nil, p.errAt(pgerr.SyntaxError, r.firstPos, "each %s query must have the same number of columns", name)
	}
	out := &bound{computed: true, firstPos: l.firstPos, pos: l.pos}
	var cols []plan.LCol
	for i := range l.cols {
		le, re := p.outExpr(l, i), p.outExpr(r, i)
		t, err := p.commonType(name, []plan.Expr{le, re}, []ast.Pos{l.pos[i], r.pos[i]})
		if err != nil {
			return nil, err
		}
		if err := p.coerceOut(l, i, t); err != nil {
			return nil, err
		}
		if err := p.coerceOut(r, i, t); err != nil {
			return nil, err
		}
		if !so.All && !p.hashable(t) {
			return nil, p.errAt(pgerr.UndefinedFunction, l.pos[i], "could not identify an equality operator for type %s", typeName(t))
		}
		nn := l.cols[i].t.NotNull && (r.cols[i].t.NotNull || so.Kind != ast.Union)
		col := p.newCol(l.cols[i].name, t.WithNotNull(nn), colInfo{kind: colOther})
		cols = append(cols, col)
		out.cols = append(out.cols, outCol{l.cols[i].name, col.ID, col.T})
	}
	ln, rn := p.exactCols(l), p.exactCols(r)
	switch so.Kind {
	case ast.Union:
		u := &plan.LUnion{Out: cols}
		// A chain of the same kind is one node.
		if lu, ok := ln.(*plan.LUnion); ok && so.All {
			u.Ins = append(u.Ins, lu.Ins...)
		} else if ld, ok := ln.(*plan.LDistinct); ok && !so.All && ld.On == nil {
			if lu, ok := ld.In.(*plan.LUnion); ok {
				u.Ins = append(u.Ins, lu.Ins...)
			} else {
				u.Ins = append(u.Ins, ln)
			}
		} else {
			u.Ins = append(u.Ins, ln)
		}
		u.Ins = append(u.Ins, rn)
		out.root = u
		if !so.All {
			out.root = &plan.LDistinct{In: u}
		}
	case ast.Intersect:
		out.root = &plan.LSetOp{Kind: plan.Intersect, All: so.All, Left: ln, Right: rn, Out: cols}
	default:
		out.root = &plan.LSetOp{Kind: plan.Except, All: so.All, Left: ln, Right: rn, Out: cols}
	}
	return out, nil
}

func (p *planner) setRecExcept(s *scope) []*recState {
	var changed []*recState
	for l := s; l != nil; l = l.parent {
		for _, d := range l.ctes {
			if d.rec != nil && d.rec.forbidden == "" {
				d.rec.forbidden = "EXCEPT"
				changed = append(changed, d.rec)
			}
		}
	}
	return changed
}

// outExpr is what column i of a branch is for type resolution: a literal stays
// one.
func (p *planner) outExpr(b *bound, i int) plan.Expr {
	if b.proj != nil && i < len(b.proj.Exprs) && isUnknown(b.proj.Exprs[i]) {
		return b.proj.Exprs[i]
	}
	return b.cols[i].ref()
}

// coerceOut gives column i of a branch type t.
func (p *planner) coerceOut(b *bound, i int, t types.Type) error {
	c := &b.cols[i]
	if b.proj != nil && i < len(b.proj.Exprs) && isUnknown(b.proj.Exprs[i]) {
		x, err := p.coerce(b.proj.Exprs[i], t, function.Implicit, b.pos[i])
		if err != nil {
			return err
		}
		if x != nil {
			b.proj.Exprs[i] = x
			b.proj.Out[i].T = x.Type()
			c.t = x.Type()
		}
	}
	if lv, ok := b.root.(*plan.LValues); ok && c.t.Kind == types.Unknown {
		for _, row := range lv.Rows {
			x, err := p.coerce(row[i], t, function.Implicit, b.pos[i])
			if err != nil {
				return err
			}
			row[i] = x
		}
		lv.Out[i].T = t.WithNotNull(false)
		c.t = lv.Out[i].T
	}
	if sameType(c.t, t) && sameMods(c.t, t) && c.t.SamePhysical(t) {
		return nil
	}
	x, err := p.coerce(c.ref(), t, function.Implicit, b.pos[i])
	if err != nil {
		return err
	}
	if x == nil {
		return p.errAt(pgerr.CannotCoerce, b.pos[i], "cannot cast type %s to %s", typeName(c.t), typeName(t))
	}
	if _, same := x.(*plan.Col); same && !c.t.SamePhysical(t) {
		if x, err = p.castCall(c.ref(), t, false, b.pos[i]); err != nil || x == nil {
			return err
		}
	}
	// A projection that is this branch's own casts in place of another on top.
	pr := &plan.LProject{In: b.root}
	for j := range b.cols {
		o := &b.cols[j]
		if j == i {
			col := p.newCol(o.name, x.Type(), colInfo{kind: colOther})
			pr.Exprs, pr.Out = append(pr.Exprs, x), append(pr.Out, col)
			o.id, o.t = col.ID, col.T
			continue
		}
		pr.Exprs = append(pr.Exprs, o.ref())
		pr.Out = append(pr.Out, plan.LCol{ID: o.id, Name: o.name, T: o.t})
	}
	b.root = pr
	return nil
}

// bindForTargets binds the source of an INSERT.
func (p *planner) bindForTargets(q *ast.Query) (*bound, error) {
	targets := p.o.Targets
	if v, ok := q.Body.(*ast.Values); ok && q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil {
		return p.bindInsertValues(v, targets)
	}
	b, err := p.bindQueryOpt(q, nil, false, false)
	if err != nil {
		return nil, err
	}
	if len(b.cols) > len(targets) {
		return nil, p.errAt(pgerr.SyntaxError, b.pos[len(targets)], "INSERT has more expressions than target columns")
	}
	b.root = p.exactCols(b)
	pr := &plan.LProject{In: b.root}
	out := &bound{proj: pr, computed: true, firstPos: b.firstPos, pos: b.pos}
	for i := range b.cols {
		t := targets[i]
		if b.proj != nil && i < len(b.proj.Exprs) && isUnknown(b.proj.Exprs[i]) {
			x, err := p.assign(b.proj.Exprs[i], t, b.pos[i])
			if err != nil {
				return nil, err
			}
			b.proj.Exprs[i] = x
			b.proj.Out[i].T, b.cols[i].t = x.Type(), x.Type()
			refreshTypes(b.root, b.cols[i].id, x.Type())
		}
		x, err := p.assign(b.cols[i].ref(), t, b.pos[i])
		if err != nil {
			return nil, err
		}
		col := p.newCol(t.Name, x.Type(), colInfo{kind: colOther})
		pr.Exprs, pr.Out = append(pr.Exprs, x), append(pr.Out, col)
		out.cols = append(out.cols, outCol{t.Name, col.ID, col.T})
	}
	out.root = pr
	return out, nil
}

// refreshTypes corrects the type of a column in the projections above the one
// that makes it.
func refreshTypes(n plan.LNode, id plan.ColID, t types.Type) {
	if pr, ok := n.(*plan.LProject); ok {
		for i := range pr.Out {
			if pr.Out[i].ID == id {
				pr.Out[i].T = t
				if c, ok := pr.Exprs[i].(*plan.Col); ok && c.ID == id {
					c.T = t
				}
			}
		}
	}
	n.EachExpr(func(e *plan.Expr) {
		eachCol(*e, func(c *plan.Col) {
			if c.ID == id {
				c.T = t
			}
		})
	})
	for _, k := range n.Kids() {
		refreshTypes(*k, id, t)
	}
}

// assign coerces to a target column.
func (p *planner) assign(e plan.Expr, t Target, pos ast.Pos) (plan.Expr, error) {
	x, err := p.coerce(e, t.Type.SQL().WithNotNull(false), function.Assignment, pos)
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, p.errAt(pgerr.DatatypeMismatch, pos, "column %q is of type %s but expression is of type %s", t.Name, typeName(t.Type), typeName(e.Type())).
			WithHint("You will need to rewrite or cast the expression.")
	}
	return x, nil
}

// bindInsertValues binds VALUES straight into the target types, DEFAULT
// included.
func (p *planner) bindInsertValues(v *ast.Values, targets []Target) (*bound, error) {
	s := &scope{}
	b := &bound{computed: true, firstPos: v.Pos}
	lv := &plan.LValues{}
	n := len(v.Rows[0])
	for _, r := range v.Rows {
		if len(r) != n {
			pos := v.Pos
			if len(r) > 0 {
				pos = p.loc(r[0])
			}
			return nil, p.errAt(pgerr.SyntaxError, pos, "VALUES lists must all be the same length")
		}
		if len(r) > len(targets) {
			return nil, p.errAt(pgerr.SyntaxError, p.loc(r[len(targets)]), "INSERT has more expressions than target columns")
		}
		var row []plan.Expr
		for i, a := range r {
			if _, ok := a.(*ast.Default); ok {
				if targets[i].Default == nil {
					row = append(row, p.constAt(nil, targets[i].Type.SQL(), a.Position()))
					continue
				}
				a = targets[i].Default
			}
			x, err := p.in(s, inValues, a)
			if err != nil {
				return nil, err
			}
			if x, err = p.assign(x, targets[i], p.loc(a)); err != nil {
				return nil, err
			}
			row = append(row, x)
		}
		lv.Rows = append(lv.Rows, row)
	}
	for i := 0; i < n; i++ {
		t := targets[i].Type.SQL().WithNotNull(false)
		for _, row := range lv.Rows { // one physical form per column
			if !row[i].Type().SamePhysical(t) {
				x, err := p.castCall(row[i], t, false, -1)
				if err != nil {
					return nil, err
				}
				if x != nil {
					row[i] = x
				}
			}
		}
		col := p.newCol(targets[i].Name, t, colInfo{kind: colOther})
		lv.Out = append(lv.Out, col)
		b.cols = append(b.cols, outCol{targets[i].Name, col.ID, t})
		b.pos = append(b.pos, v.Pos)
	}
	b.root = lv
	return b, nil
}
