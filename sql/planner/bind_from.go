package planner

import (
	"errors"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// bindFrom binds a FROM list into one node and fills the scope's namespace. A
// nil node is "no FROM".
func (p *planner) bindFrom(s *scope, refs []ast.TableRef) (plan.LNode, error) {
	var node plan.LNode
	for _, r := range refs {
		n, items, err := p.bindRef(s, r)
		if err != nil {
			return nil, err
		}
		if err := p.checkConflicts(s.items, items); err != nil {
			return nil, err
		}
		setLateral(items, true, true)
		s.items = append(s.items, items...)
		if node == nil {
			node = n
			continue
		}
		node = p.join(plan.Inner, node, n, nil, -1)
	}
	setLateral(s.items, false, true)
	return node, nil
}

func setLateral(items []*item, only, ok bool) {
	for _, it := range items {
		it.lateralOnly, it.lateralOK = only, ok
	}
}

// join makes a join; it is lateral when the right side uses the left's columns.
func (p *planner) join(k plan.JoinKind, l, r plan.LNode, conds []plan.Expr, pos ast.Pos) *plan.LJoin {
	return &plan.LJoin{Kind: k, Left: l, Right: r, Conds: conds, Lateral: freeCols(r).hasAny(colsOf(l)), Pos: int32(pos)}
}

// checkConflicts is checkNameSpaceConflicts: PostgreSQL gives it no position.
func (p *planner) checkConflicts(a, b []*item) error {
	for _, x := range a {
		if !x.relVisible || x.name == "" {
			continue
		}
		for _, y := range b {
			if !y.relVisible || x.name != y.name {
				continue
			}
			if x.rel != nil && !x.alias && y.rel != nil && !y.alias && x.rel.OID() != y.rel.OID() {
				continue // the same name in two schemas
			}
			return pgerr.New(pgerr.DuplicateAlias, "table name %q specified more than once", x.name)
		}
	}
	return nil
}

func (p *planner) bindRef(s *scope, r ast.TableRef) (plan.LNode, []*item, error) {
	if err := p.enter(); err != nil {
		return nil, nil, err
	}
	defer p.leave()
	switch r := r.(type) {
	case *ast.TableName:
		return p.bindTable(s, r)
	case *ast.SubqueryRef:
		return p.bindSubqueryRef(s, r)
	case *ast.FuncRef:
		return p.bindFuncRef(s, r)
	case *ast.Join:
		return p.bindJoin(s, r)
	}
	return nil, nil, p.errAt(pgerr.FeatureNotSupported, r.Position(), "XMLTABLE is not supported")
}

func (p *planner) addItem(s *scope, it *item) []*item {
	it.relVisible, it.colVisible = true, true
	it.lateralOK = true
	s.all = append(s.all, it)
	return []*item{it}
}

func (p *planner) bindTable(s *scope, r *ast.TableName) (plan.LNode, []*item, error) {
	if r.Sample != nil {
		return nil, nil, p.errAt(pgerr.FeatureNotSupported, r.Sample.Pos, "TABLESAMPLE is not supported")
	}
	if len(r.Name) == 1 {
		for l := s; l != nil; l = l.parent {
			for i := len(l.ctes) - 1; i >= 0; i-- {
				if d := l.ctes[i]; d.name == r.Name[0].Name && d.visible {
					return p.bindCTERef(s, d, r)
				}
			}
		}
	}
	rel, opts, err := p.resolveTable(s, r)
	if err != nil {
		return nil, nil, err
	}
	it := &item{name: rel.Name(), table: rel.Name(), schema: rel.Schema(), rel: rel}
	if n := r.Name.Last(); strings.EqualFold(n, rel.Name()) || strings.Contains(n, "$") {
		it.name, it.table = n, n
	}
	it.need = p.need(rel, roles.Select)
	p.recording().table(r, it)
	if v, ok := rel.(catalog.View); ok && rel.Kind() == 'v' && v.Query() != "" {
		return p.bindView(s, r, v, it)
	}
	get := &plan.LGet{Rel: rel, Opts: opts}
	if _, stored := rel.(catalog.TableInfo); stored {
		it.get = get
	}
	for i, c := range rel.Columns() {
		t := c.Type.SQL()
		t.NotNull = c.NotNull || c.Type.NotNull
		col := p.newCol(c.Name, t, colInfo{scope: s, relID: rel, att: i, item: it})
		get.Out = append(get.Out, col)
		get.Att = append(get.Att, i)
		it.cols = append(it.cols, scopeCol{name: c.Name, e: col.Ref(), base: true})
	}
	if err := p.applyAlias(it, r.Alias, "table"); err != nil {
		return nil, nil, err
	}
	get.Alias = it.name
	p.nameCols(it)
	return get, p.addItem(s, it), nil
}

// nameCols records the range name in the columns' info, for messages.
func (p *planner) nameCols(it *item) {
	for i := range it.cols {
		if c, ok := it.cols[i].e.(*plan.Col); ok {
			p.info[c.ID].rel, p.info[c.ID].name = it.name, it.cols[i].name
			p.info[c.ID].item = it
		}
	}
}

// applyAlias renames an item and its columns.
func (p *planner) applyAlias(it *item, a *ast.Alias, what string) error {
	if a == nil {
		return nil
	}
	if !a.Name.Empty() {
		it.name, it.alias = a.Name.Name, true
	}
	if len(a.Columns) > len(it.cols) {
		if what == "join" {
			return p.errAt(pgerr.InvalidColumnReference, -1, "join expression %q has %d columns available but %d columns specified", it.name, len(it.cols), len(a.Columns))
		}
		return p.errAt(pgerr.InvalidColumnReference, -1, "table %q has %d columns available but %d columns specified", it.name, len(it.cols), len(a.Columns))
	}
	for i, c := range a.Columns {
		it.cols[i].name = c.Name
		it.cols[i].base = false
		if col, ok := it.cols[i].e.(*plan.Col); ok {
			n := *col
			n.Name = c.Name
			it.cols[i].e = &n
		}
	}
	return nil
}

// resolveTable asks the resolver, with what stands behind the name.
func (p *planner) resolveTable(s *scope, r *ast.TableName) (catalog.Relation, catalog.ResolveOptions, error) {
	o := catalog.ResolveOptions{FreshReads: p.o.FreshReads, InView: p.views > 0}
	if r.AsOf != nil {
		ref, err := p.asOf(r.AsOf)
		if err != nil {
			return nil, o, err
		}
		o.At = ref
	}
	for _, h := range r.Hints {
		for _, opt := range h.Options {
			v, err := p.optionText(opt.Value)
			if err != nil {
				return nil, o, err
			}
			if o.Dynamic == nil {
				o.Dynamic = map[string]string{}
			}
			o.Dynamic[opt.Name] = v
		}
	}
	return p.relation(r.Name, r.Pos, o)
}

func (p *planner) relation(name ast.Name, pos ast.Pos, o catalog.ResolveOptions) (catalog.Relation, catalog.ResolveOptions, error) {
	if p.o.Resolver == nil {
		return nil, o, p.errAt(pgerr.UndefinedTable, pos, "relation %q does not exist", name.String())
	}
	rel, err := p.o.Resolver.Relation(p.ctx, name, o)
	switch {
	case errors.Is(err, catalog.ErrNoRelation), errors.Is(err, catalog.ErrNoSchema):
		if _, ok := pgerr.CodeOf(err); !ok {
			return nil, o, p.errAt(pgerr.UndefinedTable, pos, "relation %q does not exist", name.String())
		}
		return nil, o, p.at(err, pos)
	case err != nil:
		return nil, o, p.at(err, pos)
	}
	p.relations = append(p.relations, rel)
	return rel, o, nil
}

// asOf evaluates a time travel clause.
func (p *planner) asOf(a *ast.AsOf) (snapshot.Ref, error) {
	if a.Kind == ast.AsOfVersion {
		switch v := a.Value.(type) {
		case *ast.Number:
			id, err := strconv.ParseInt(v.Text, 10, 64)
			if err != nil {
				return snapshot.Ref{}, p.errAt(pgerr.InvalidParameterValue, v.Pos, "snapshot id must be an integer")
			}
			return snapshot.Ref{Kind: snapshot.ID, ID: id}, nil
		case *ast.String:
			return snapshot.Ref{Kind: snapshot.Version, Name: v.Value}, nil
		}
	}
	x, err := p.in(&scope{}, inConst, a.Value)
	if err != nil {
		return snapshot.Ref{}, err
	}
	pos := p.loc(a.Value)
	if a.Kind == ast.AsOfVersion {
		v, err := p.evalStable(x)
		switch v := v.(type) {
		case int64:
			return snapshot.Ref{Kind: snapshot.ID, ID: v}, err
		case string:
			return snapshot.Ref{Kind: snapshot.Version, Name: v}, err
		}
		return snapshot.Ref{}, p.errAt(pgerr.InvalidParameterValue, pos, "a version must be a snapshot id or a tag")
	}
	if x.Type().IsNumber() {
		v, err := p.evalStable(x)
		n, ok := v.(int64)
		if err != nil || !ok {
			return snapshot.Ref{}, p.errAt(pgerr.InvalidParameterValue, pos, "a timestamp must be a constant")
		}
		if n < 100_000_000_000 { // seconds since 1970, as Spark takes them
			n *= 1000
		}
		return snapshot.Ref{Kind: snapshot.AtTimestamp, Millis: n}, nil
	}
	c, err := p.mustCoerce(x, types.Of(types.TimestampTZ), function.Explicit, pos)
	if err != nil {
		return snapshot.Ref{}, err
	}
	v, err := p.evalStable(c)
	if err != nil {
		return snapshot.Ref{}, p.at(err, pos)
	}
	us, ok := v.(int64)
	if !ok {
		return snapshot.Ref{}, p.errAt(pgerr.InvalidParameterValue, pos, "a timestamp must be a constant")
	}
	ms := us / 1000
	if us < 0 && us%1000 != 0 {
		ms--
	}
	return snapshot.Ref{Kind: snapshot.AtTimestamp, Millis: ms}, nil
}

// evalStable evaluates an expression without columns or parameters, stable
// functions included.
func (p *planner) evalStable(e plan.Expr) (types.Datum, error) {
	if !isConstExpr(e, function.Volatile) {
		return nil, errCannotEval
	}
	return p.evalConst(e)
}

// optionText reads an option's value as text.
func (p *planner) optionText(e ast.Node) (string, error) {
	switch v := e.(type) {
	case *ast.String:
		return v.Value, nil
	case *ast.Number:
		return v.Text, nil
	case *ast.Bool:
		return strconv.FormatBool(v.Value), nil
	case *ast.ColumnRef:
		return v.Parts.String(), nil
	}
	return "", p.errAt(pgerr.SyntaxError, e.Position(), "an option must be a literal")
}

// maxViewDepth bounds views of views.
const maxViewDepth = 100

func (p *planner) bindView(s *scope, r *ast.TableName, v catalog.View, it *item) (plan.LNode, []*item, error) {
	stmts, err := parser.Parse(v.Query())
	if err != nil {
		return nil, nil, pgerr.Wrap(err, pgerr.InvalidObjectDefinition, "view %q cannot be read", v.Name())
	}
	q, ok := firstQuery(stmts)
	if !ok {
		return nil, nil, pgerr.New(pgerr.InvalidObjectDefinition, "view %q is not a query", v.Name())
	}
	if p.views >= maxViewDepth {
		return nil, nil, pgerr.New(pgerr.InvalidRecursion, "infinite recursion detected in rules for relation %q", v.Name())
	}
	via := p.via
	if p.via = v; invokes(v) {
		p.via = nil
	}
	p.views++
	before, needs := len(p.relations), len(p.needs)
	b, err := p.bindQuery(q, nil, true)
	p.views--
	p.via = via
	if err != nil {
		return nil, nil, err
	}
	it.inner = p.relations[before:len(p.relations):len(p.relations)]
	it.within = p.needs[needs:len(p.needs):len(p.needs)]
	names := make([]string, len(b.cols))
	cols := v.Columns()
	for i := range b.cols {
		names[i] = b.cols[i].name
		if i < len(cols) {
			names[i] = cols[i].Name
		}
	}
	node := p.rename(s, b, names, it)
	for i := range it.cols {
		it.cols[i].base = true
		if c, ok := it.cols[i].e.(*plan.Col); ok {
			p.info[c.ID].relID, p.info[c.ID].att = nil, 0
			if i < len(cols) {
				p.info[c.ID].relID, p.info[c.ID].att = v, i
			}
		}
	}
	if err := p.applyAlias(it, r.Alias, "table"); err != nil {
		return nil, nil, err
	}
	p.nameCols(it)
	return node, p.addItem(s, it), nil
}

// invokes reports whether a view reads with the rights of who reads it.
func invokes(v catalog.View) bool {
	s, ok := v.(*catalog.ViewRelation)
	return ok && s.Definition().Options["security_invoker"] == "true"
}

func firstQuery(stmts []ast.Stmt) (*ast.Query, bool) {
	if len(stmts) != 1 {
		return nil, false
	}
	q, ok := stmts[0].(*ast.Query)
	return q, ok
}

// rename gives the columns of a subquery fresh IDs at this level, and fills the
// item with them.
func (p *planner) rename(s *scope, b *bound, names []string, it *item) plan.LNode {
	pr := &plan.LProject{In: b.root}
	for i, c := range b.cols {
		info := colInfo{scope: s, item: it}
		if old := p.colInfo(c.id); old != nil && !b.computed {
			info.relID, info.att = old.relID, old.att
		}
		col := p.newCol(names[i], c.t, info)
		pr.Exprs = append(pr.Exprs, c.ref())
		pr.Out = append(pr.Out, col)
		it.cols = append(it.cols, scopeCol{name: names[i], e: col.Ref()})
	}
	return pr
}

func (p *planner) bindSubqueryRef(s *scope, r *ast.SubqueryRef) (plan.LNode, []*item, error) {
	if r.Alias == nil {
		what := "subquery"
		if _, ok := r.Query.Body.(*ast.Values); ok {
			what = "VALUES"
		}
		e := p.errAt(pgerr.SyntaxError, r.Pos, "%s in FROM must have an alias", what)
		if what == "VALUES" {
			return nil, nil, e.WithHint("For example, FROM (VALUES ...) [AS] foo.")
		}
		return nil, nil, e.WithHint("For example, FROM (SELECT ...) [AS] foo.")
	}
	old, oldKind := s.lateral, s.kind
	s.lateral, s.kind = 0, inFromSub
	if r.Lateral {
		s.lateral = 1
	}
	before, needs := len(p.relations), len(p.needs)
	b, err := p.bindQuery(r.Query, s, true)
	s.lateral, s.kind = old, oldKind
	if err != nil {
		return nil, nil, err
	}
	it := &item{inner: p.relations[before:len(p.relations):len(p.relations)], within: p.needs[needs:len(p.needs):len(p.needs)]}
	names := make([]string, len(b.cols))
	for i, c := range b.cols {
		names[i] = c.name
	}
	node := p.rename(s, b, names, it)
	if err := p.applyAlias(it, r.Alias, "table"); err != nil {
		return nil, nil, err
	}
	p.nameCols(it)
	return node, p.addItem(s, it), nil
}

func (p *planner) bindJoin(s *scope, j *ast.Join) (plan.LNode, []*item, error) {
	// A chain of joins leans to the left and can be long.
	l, litems, err := p.bindRef(s, j.Left)
	if err != nil {
		return nil, nil, err
	}
	kind := map[ast.JoinKind]plan.JoinKind{ast.JoinInner: plan.Inner, ast.JoinLeft: plan.Left, ast.JoinRight: plan.Right, ast.JoinFull: plan.Full, ast.JoinCross: plan.Inner}[j.Kind]
	lateralOK := kind == plan.Inner || kind == plan.Left
	save := len(s.items)
	s.items = append(s.items, litems...)
	setLateral(litems, true, lateralOK)
	if err := p.recForbid(kind == plan.Right || kind == plan.Full, j.Left); err != nil {
		return nil, nil, err
	}
	oldRec := p.setRecOuter(s, kind == plan.Left || kind == plan.Full)
	r, ritems, err := p.bindRef(s, j.Right)
	p.restoreRec(oldRec)
	s.items = s.items[:save:save]
	if err != nil {
		return nil, nil, err
	}
	if err := p.checkConflicts(litems, ritems); err != nil {
		return nil, nil, err
	}
	items := append(append([]*item{}, litems...), ritems...)

	lcols, rcols := visibleCols(litems), visibleCols(ritems)
	using := j.Using
	if j.Natural {
		using = nil
		for _, lc := range lcols {
			n := 0
			for _, rc := range rcols {
				if rc.name == lc.name {
					n++
				}
			}
			if n > 0 {
				dup := false
				for _, u := range using {
					dup = dup || u.Name == lc.name
				}
				if !dup {
					using = append(using, ast.Ident{Name: lc.name, Pos: j.Pos})
				}
			}
		}
	}
	var conds []plan.Expr
	var merged []scopeCol
	usedL, usedR := map[int]bool{}, map[int]bool{}
	for i, u := range using {
		for _, o := range using[:i] {
			if o.Name == u.Name {
				return nil, nil, p.errAt(pgerr.DuplicateColumn, -1, "column name %q appears more than once in USING clause", u.Name)
			}
		}
		li, err := p.usingCol(lcols, u, "left", j)
		if err != nil {
			return nil, nil, err
		}
		ri, err := p.usingCol(rcols, u, "right", j)
		if err != nil {
			return nil, nil, err
		}
		usedL[li], usedR[ri] = true, true
		le, re := lcols[li].e, rcols[ri].e
		eq, err := p.operator("=", le, re, u.Pos, u.Pos, -1)
		if err != nil {
			return nil, nil, err
		}
		conds = append(conds, eq)
		m, err := p.mergedCol(kind, le, re, u.Pos)
		if err != nil {
			return nil, nil, err
		}
		merged = append(merged, scopeCol{name: u.Name, e: m})
	}
	if j.Natural || len(using) > 0 {
		var ls, rs []scopeCol
		for i := range lcols {
			if usedL[i] {
				ls = append(ls, lcols[i])
			}
		}
		for i := range rcols {
			if usedR[i] {
				rs = append(rs, rcols[i])
			}
		}
		for i := range ls {
			p.reads(ls[i].e)
			p.reads(rs[i].e)
		}
		p.recording().join(j, using, ls, rs)
	}
	// Outer joins make the other side's columns nullable.
	if kind == plan.Left || kind == plan.Full {
		p.makeNullable(ritems)
		rcols = visibleCols(ritems)
	}
	if kind == plan.Right || kind == plan.Full {
		p.makeNullable(litems)
		lcols = visibleCols(litems)
	}
	for i := range merged {
		merged[i].e = denull(merged[i].e, kind)
	}
	node := p.join(kind, l, r, conds, j.Pos)
	if node.Lateral && !lateralOK {
		return nil, nil, p.errAt(pgerr.InvalidColumnReference, j.Pos, "invalid reference to FROM-clause entry in a %s JOIN", map[plan.JoinKind]string{plan.Right: "RIGHT", plan.Full: "FULL"}[kind]).
			WithDetail("The combining JOIN type must be INNER or LEFT for a LATERAL reference.")
	}
	if j.On != nil {
		saved := s.items
		s.items = items
		setLateral(items, false, true)
		on, err := p.in(s, inJoinOn, j.On)
		s.items = saved
		if err != nil {
			return nil, nil, err
		}
		if on, err = p.coerceBool(on, "JOIN/ON", p.loc(j.On)); err != nil {
			return nil, nil, err
		}
		node.Conds = append(node.Conds, conjuncts(on)...)
	}
	// The join's own item: merged columns, then the rest of either side.
	it := &item{join: true}
	it.cols = append(it.cols, merged...)
	for i, c := range lcols {
		if !usedL[i] {
			it.cols = append(it.cols, c)
		}
	}
	for i, c := range rcols {
		if !usedR[i] {
			it.cols = append(it.cols, c)
		}
	}
	s.all = append(s.all, it)
	if j.Alias != nil {
		if err := p.applyAlias(it, j.Alias, "join"); err != nil {
			return nil, nil, err
		}
		it.relVisible, it.colVisible, it.lateralOK = true, true, true
		for _, x := range items {
			x.relVisible, x.colVisible = false, false
		}
		return node, []*item{it}, nil
	}
	if len(using) == 0 {
		return node, items, nil
	}
	for _, x := range items {
		x.colVisible = false
	}
	it.colVisible, it.lateralOK = true, true
	items = append(items, it)
	if !j.UsingAlias.Empty() {
		ua := &item{name: j.UsingAlias.Name, alias: true, cols: merged, relVisible: true, lateralOK: true}
		items = append(items, ua)
		s.all = append(s.all, ua)
	}
	return node, items, nil
}

// visibleCols are the columns that * of these items means.
func visibleCols(items []*item) []scopeCol {
	var out []scopeCol
	for _, it := range items {
		if it.colVisible {
			out = append(out, it.cols...)
		}
	}
	return out
}

func (p *planner) usingCol(cols []scopeCol, u ast.Ident, side string, j *ast.Join) (int, error) {
	at := -1
	for i, c := range cols {
		if c.name == u.Name {
			if at >= 0 {
				return 0, p.errAt(pgerr.AmbiguousColumn, -1, "common column name %q appears more than once in %s table", u.Name, side)
			}
			at = i
		}
	}
	if at < 0 {
		return 0, p.errAt(pgerr.UndefinedColumn, -1, "column %q specified in USING clause does not exist in %s table", u.Name, side)
	}
	return at, nil
}

// mergedCol is what a USING column means outside of the join.
func (p *planner) mergedCol(k plan.JoinKind, l, r plan.Expr, pos ast.Pos) (plan.Expr, error) {
	out, t, err := p.coerceCommon("JOIN/USING", []plan.Expr{l, r}, []ast.Pos{pos, pos})
	if err != nil {
		return nil, err
	}
	switch k {
	case plan.Right:
		return out[1], nil
	case plan.Full:
		return &plan.Coalesce{Args: out, T: t.WithNotNull(false)}, nil
	}
	return out[0], nil
}

// denull drops NOT NULL of a merged column of a full join.
func denull(e plan.Expr, k plan.JoinKind) plan.Expr {
	if k != plan.Full {
		return e
	}
	return plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
		if c, ok := x.(*plan.Col); ok && c.T.NotNull {
			n := *c
			n.T.NotNull = false
			return &n, true
		}
		return nil, false
	})
}

// makeNullable drops NOT NULL from the columns of the inner side of an outer
// join.
func (p *planner) makeNullable(items []*item) {
	for _, it := range items {
		for i := range it.cols {
			it.cols[i].e = nullable(it.cols[i].e)
		}
	}
}

func nullable(e plan.Expr) plan.Expr {
	return plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
		if c, ok := x.(*plan.Col); ok && c.T.NotNull {
			n := *c
			n.T.NotNull = false
			return &n, true
		}
		return nil, false
	})
}

// incremental are the table functions that read changes between two states, and
// the table option each stands for.
var incremental = map[string]string{
	"paimon_incremental_query":             "incremental-between",
	"paimon_incremental_between_timestamp": "incremental-between-timestamp",
	"paimon_incremental_to_auto_tag":       "incremental-to-auto-tag",
}
