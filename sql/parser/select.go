package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// atSelect reports whether a query without parentheses begins here. VALUES may
// also be a column.
func (p *parser) atSelect() bool {
	t := p.tok()
	if t.kind != tKeyword {
		return false
	}
	switch t.text {
	case "select", "with", "table":
		return true
	case "values":
		return p.peek(1).kind == '('
	}
	return false
}

// atSelectRest reports whether the current token goes on with a query after a
// parenthesised one: a set operation or a clause. All of these are reserved.
func (p *parser) atSelectRest() bool {
	t := p.tok()
	if t.kind != tKeyword {
		return false
	}
	switch t.text {
	case "union", "intersect", "except", "order", "limit", "offset", "fetch", "for":
		return true
	}
	return false
}

// selectStmt parses a query, parenthesised or not.
func (p *parser) selectStmt() *ast.Query {
	if !p.is('(') {
		return p.selectNoParens()
	}
	q := p.selectWithParens()
	if p.err == nil && p.atSelectRest() {
		q = p.selectRest(q)
	}
	return q
}

// selectWithParens parses a query in parentheses.
func (p *parser) selectWithParens() *ast.Query {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	p.expect('(')
	var q *ast.Query
	switch {
	case p.err != nil:
		return nil
	case p.is('('):
		q = p.selectWithParens()
		if p.err == nil && p.atSelectRest() {
			q = p.selectRest(q)
		}
	case p.atSelect():
		q = p.selectNoParens()
	case p.kw("values"):
		p.next()
		p.syntaxError()
	default:
		p.syntaxError()
	}
	p.expect(')')
	return q
}

// selectNoParens parses a query that does not begin with a parenthesis, or
// only after its WITH.
func (p *parser) selectNoParens() *ast.Query {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	loc := p.loc()
	with := p.optWith()
	q := p.selectClauses(p.setOps(p.selectOperand(), 1), loc)
	if q == nil {
		return nil
	}
	p.setWith(q, with)
	return q
}

func (p *parser) setWith(q *ast.Query, with *ast.With) {
	if with == nil {
		return
	}
	if q.With != nil && p.err == nil {
		p.failAt(with.Pos, pgerr.SyntaxError, "multiple WITH clauses not allowed")
	}
	q.With = with
	q.Pos = with.Pos
}

// selectRest goes on after a parenthesised query.
func (p *parser) selectRest(left *ast.Query) *ast.Query {
	if left == nil {
		return nil
	}
	return p.selectClauses(p.setOps(left, 1), ast.At(left.Pos))
}

// selectOperand parses one operand of a set operation.
func (p *parser) selectOperand() ast.QueryBody {
	switch {
	case p.is('('):
		if q := p.selectWithParens(); q != nil {
			return q
		}
		return nil
	case p.kw("select"):
		return p.selectCore()
	case p.kw("values"):
		return p.values()
	case p.kw("table"):
		return p.tableCommand()
	}
	p.syntaxError()
	return nil
}

// setOps parses the set operations after left; level 2 is INTERSECT only,
// which binds tighter than UNION and EXCEPT. A parenthesised operand without
// clauses of its own is its body.
func (p *parser) setOps(left ast.QueryBody, level int) ast.QueryBody {
	for p.err == nil {
		op := &ast.SetOp{Loc: p.loc()}
		own := 1
		switch {
		case p.kw("union"):
		case p.kw("except"):
			op.Kind = ast.Except
		case p.kw("intersect"):
			op.Kind = ast.Intersect
			own = 2
		default:
			return left
		}
		if own < level {
			return left
		}
		p.next()
		if p.acceptKw("all") {
			op.All = true
		} else {
			p.acceptKw("distinct")
		}
		op.Left = unwrap(left)
		op.Right = unwrap(p.setOps(p.selectOperand(), own+1))
		left = op
	}
	return left
}

// unwrap drops the Query around a body that has nothing of its own.
func unwrap(b ast.QueryBody) ast.QueryBody {
	q, ok := b.(*ast.Query)
	if ok && q != nil && q.With == nil && q.OrderBy == nil && q.Limit == nil && q.Offset == nil && q.Locks == nil {
		return q.Body
	}
	return b
}

// selectClauses parses ORDER BY, LIMIT and so on after body. When body is a
// parenthesised query the clauses are its own: (SELECT 1 LIMIT 1) ORDER BY 1
// is one query, and a clause given twice an error.
func (p *parser) selectClauses(body ast.QueryBody, loc ast.Loc) *ast.Query {
	if p.err != nil || body == nil {
		return nil
	}
	q, ok := body.(*ast.Query)
	if !ok {
		q = &ast.Query{Body: body}
		q.Loc = loc
	}
	if p.kw("order") {
		pos := p.peek(2).pos
		items := p.sortClause()
		if q.OrderBy != nil && p.err == nil {
			p.failAt(pos, pgerr.SyntaxError, "multiple ORDER BY clauses not allowed")
		}
		q.OrderBy = items
	}
	limits, locks := false, false
	for p.err == nil {
		switch {
		case !limits && (p.kw("limit") || p.kw("offset") || p.kw("fetch")):
			limits = true
			p.limitClauses(q)
			continue
		case !locks && p.kw("for"):
			locks = true
			p.lockClauses(q)
			continue
		}
		break
	}
	return q
}

// limits collects LIMIT, OFFSET and FETCH before they are put into a query.
type limits struct {
	count, offset       ast.Expr
	countPos, offsetPos ast.Pos
	hasCount, hasOffset bool
	ties                bool
}

// limitClauses parses a limit and an offset, in either order, each at most once.
func (p *parser) limitClauses(q *ast.Query) {
	var l limits
	for p.err == nil {
		switch {
		case !l.hasCount && (p.kw("limit") || p.kw("fetch")):
			l.hasCount = true
			if p.kw("limit") {
				p.limit(&l)
			} else {
				p.fetchFirst(&l)
			}
			continue
		case !l.hasOffset && p.kw("offset"):
			l.hasOffset = true
			p.next()
			l.offsetPos = p.pos()
			l.offset = p.offsetValue()
			continue
		}
		break
	}
	if p.err != nil {
		return
	}
	switch {
	case l.offset != nil && q.Offset != nil:
		p.failAt(l.offsetPos, pgerr.SyntaxError, "multiple OFFSET clauses not allowed")
	case l.count != nil && q.Limit != nil:
		p.failAt(l.countPos, pgerr.SyntaxError, "multiple LIMIT clauses not allowed")
	case l.ties && q.OrderBy == nil:
		p.fail(pgerr.New(pgerr.SyntaxError, "WITH TIES cannot be specified without ORDER BY clause"))
	}
	if l.offset != nil {
		q.Offset = l.offset
	}
	if l.count != nil {
		q.Limit = l.count
	}
	q.WithTies = q.WithTies || l.ties
	p.tiesWithSkip(q)
}

func (p *parser) limit(l *limits) {
	pos := p.pos()
	p.next()
	l.countPos = p.pos()
	if !p.acceptKw("all") {
		l.count = p.expr()
	}
	if p.accept(',') {
		p.expr()
		if p.err == nil {
			p.fail(p.errorAt(pos, pgerr.SyntaxError, "LIMIT #,# syntax is not supported").
				WithHint("Use separate LIMIT and OFFSET clauses."))
		}
	}
}

func (p *parser) fetchFirst(l *limits) {
	p.next()
	if !p.acceptKw("first") {
		p.expectKw("next")
	}
	l.countPos = p.pos()
	if p.kw("row") && p.peek(1).kind != '(' || p.kw("rows") && (p.kwAt(1, "only") || p.kwAt(1, "with")) {
		l.count = &ast.Number{Loc: p.loc(), Text: "1", Integer: true}
	} else {
		l.count = p.fetchValue()
	}
	p.rowOrRows()
	if p.acceptKw("with") {
		p.expectKw("ties")
		l.ties = true
		return
	}
	p.expectKw("only")
}

func (p *parser) rowOrRows() {
	if !p.acceptKw("row") {
		p.expectKw("rows")
	}
}

// fetchValue parses an operand, or a signed number.
func (p *parser) fetchValue() ast.Expr {
	if p.is('+') || p.is('-') {
		loc := p.loc()
		op := ast.Operator{Name: p.tok().text, Pos: loc.Pos}
		p.next()
		if !p.is(tInt) && !p.is(tFloat) {
			p.syntaxError()
			return nil
		}
		return &ast.Unary{Loc: loc, Op: op, Expr: p.number()}
	}
	return p.primary()
}

// offsetValue parses an expression, or an operand followed by ROW or ROWS.
func (p *parser) offsetValue() ast.Expr {
	signed := p.is('+') || p.is('-')
	if signed && (p.peek(1).kind == tInt || p.peek(1).kind == tFloat) && (p.kwAt(2, "row") || p.kwAt(2, "rows")) {
		e := p.fetchValue()
		p.rowOrRows()
		return e
	}
	if signed || p.is(tOp) || p.kw("not") || p.kw("operator") || p.kw("default") || p.kw("unique") {
		return p.expr()
	}
	e := p.primary()
	if p.kw("row") || p.kw("rows") {
		p.next()
		return e
	}
	return p.exprRest(e, precNone, modeFull)
}

// lockClauses parses FOR UPDATE and so on; FOR READ ONLY means nothing.
func (p *parser) lockClauses(q *ast.Query) {
	if p.kwAt(1, "read") {
		p.next()
		p.next()
		p.expectKw("only")
		return
	}
	for p.err == nil && p.kw("for") {
		l := &ast.Locking{Loc: p.loc()}
		p.next()
		switch {
		case p.acceptKw("update"):
			l.Strength = ast.ForUpdate
		case p.acceptKw("share"):
			l.Strength = ast.ForShare
		case p.acceptKw("no"):
			p.expectKws("key update")
			l.Strength = ast.ForNoKeyUpdate
		case p.acceptKw("key"):
			p.expectKw("share")
			l.Strength = ast.ForKeyShare
		default:
			p.syntaxError()
		}
		if p.acceptKw("of") {
			l.Of = list(p, p.qualifiedName)
		}
		switch {
		case p.acceptKw("nowait"):
			l.Wait = ast.LockNoWait
		case p.acceptKw("skip"):
			p.expectKw("locked")
			l.Wait = ast.LockSkip
		}
		q.Locks = append(q.Locks, l)
	}
	p.tiesWithSkip(q)
}

func (p *parser) tiesWithSkip(q *ast.Query) {
	if !q.WithTies || p.err != nil {
		return
	}
	for _, l := range q.Locks {
		if l.Wait == ast.LockSkip {
			p.fail(pgerr.New(pgerr.SyntaxError, "SKIP LOCKED and WITH TIES options cannot be used together"))
			return
		}
	}
}

// sortClause parses ORDER BY.
func (p *parser) sortClause() []*ast.OrderItem {
	p.expectKw("order")
	p.expectKw("by")
	return list(p, p.sortItem)
}

func (p *parser) sortItem() *ast.OrderItem {
	o := &ast.OrderItem{Loc: p.loc(), Expr: p.expr()}
	switch {
	case p.acceptKw("using"):
		var op ast.Operator
		switch {
		case p.kw("operator") && p.peek(1).kind == '(':
			op = p.operatorCall()
		case p.tok().isOperator():
			op = ast.Operator{Name: p.tok().text, Pos: p.pos()}
			p.next()
		default:
			p.syntaxError()
		}
		o.Using = &op
	case p.acceptKw("desc"):
		o.Desc = true
	default:
		p.acceptKw("asc")
	}
	o.Nulls = p.nullsOrder()
	return o
}

func (p *parser) nullsOrder() ast.NullsOrder {
	if !p.tok().la || p.tok().text != "nulls" {
		return ast.NullsDefault
	}
	p.next()
	if p.acceptKw("first") {
		return ast.NullsFirst
	}
	p.next()
	return ast.NullsLast
}

// optWith parses WITH if it is next.
func (p *parser) optWith() *ast.With {
	if !p.kw("with") {
		return nil
	}
	w := &ast.With{Loc: p.loc()}
	p.next()
	// RECURSIVE may be a CTE's name, which only what follows it tells.
	if n := p.peek(1); p.kw("recursive") && n.kind != '(' && !n.isKw("as") {
		p.next()
		w.Recursive = true
	}
	w.CTEs = list(p, p.cte)
	return w
}

func (p *parser) cte() *ast.CTE {
	c := &ast.CTE{Loc: p.loc(), Name: p.colID()}
	c.Columns = p.optColumns()
	p.expectKw("as")
	switch {
	case p.acceptKw("materialized"):
		c.Materialize = ast.MaterializeAlways
	case p.acceptKw("not"):
		p.expectKw("materialized")
		c.Materialize = ast.MaterializeNever
	}
	p.expect('(')
	c.Stmt = p.preparable()
	p.expect(')')
	if p.kw("search") {
		c.Search = p.cteSearch()
	}
	if p.kw("cycle") {
		c.Cycle = p.cteCycle()
	}
	return c
}

func (p *parser) cteSearch() *ast.CTESearch {
	s := &ast.CTESearch{Loc: p.loc()}
	p.next()
	if p.acceptKw("breadth") {
		s.Breadth = true
	} else {
		p.expectKw("depth")
	}
	p.expectKws("first by")
	s.By = p.nameList()
	p.expectKw("set")
	s.Set = p.colID()
	return s
}

func (p *parser) cteCycle() *ast.CTECycle {
	c := &ast.CTECycle{Loc: p.loc()}
	p.next()
	c.Columns = p.nameList()
	p.expectKw("set")
	c.Mark = p.colID()
	if p.acceptKw("to") {
		c.Value = p.constant()
		p.expectKw("default")
		c.Default = p.constant()
	}
	p.expectKw("using")
	c.Path = p.colID()
	return c
}

// constant parses a literal (AexprConst): no operators, no names.
func (p *parser) constant() ast.Expr {
	start := p.tok()
	e := p.primary()
	switch e.(type) {
	case *ast.Number, *ast.String, *ast.Bool, *ast.Null, *ast.TypedLiteral:
		if start.kind != '(' {
			return e
		}
	}
	p.syntaxError()
	return e
}

// preparable parses a query or data-changing statement (PreparableStmt).
func (p *parser) preparable() ast.Stmt {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	loc := p.loc()
	with := p.optWith()
	var s ast.Stmt
	switch t := p.tok(); {
	case t.kind == tKeyword && (t.text == "insert" || t.text == "update" || t.text == "delete" || t.text == "merge") || p.atUpsert():
		s = p.dml(with, loc)
	case with != nil:
		q := p.selectClauses(p.setOps(p.selectOperand(), 1), loc)
		if q == nil {
			return nil
		}
		p.setWith(q, with)
		s = q
	default:
		q := p.selectStmt()
		if q == nil {
			return nil
		}
		s = q
	}
	return s
}

// values parses VALUES (...), (...).
func (p *parser) values() *ast.Values {
	v := &ast.Values{Loc: p.loc()}
	p.next()
	v.Rows = list(p, func() []ast.Expr { return parens(p, p.expr) })
	return v
}

// tableCommand parses TABLE t, which is SELECT * FROM t.
func (p *parser) tableCommand() *ast.Select {
	s := &ast.Select{Loc: p.loc()}
	p.next()
	t := p.relationExpr()
	star := &ast.ColumnRef{Loc: s.Loc, Star: true}
	s.Targets = []*ast.Target{{Loc: s.Loc, Expr: star}}
	s.From = []ast.TableRef{t}
	return s
}

// selectCore parses SELECT up to its WINDOW clause.
func (p *parser) selectCore() *ast.Select {
	s := &ast.Select{Loc: p.loc()}
	p.next()
	s.Hints = p.takeHints()
	needTargets := false
	switch {
	case p.acceptKw("distinct"):
		s.Distinct, needTargets = true, true
		if p.acceptKw("on") {
			s.DistinctOn = parens(p, p.expr)
		}
	default:
		p.acceptKw("all")
	}
	if needTargets || !p.endsEmptyTargets() {
		s.Targets = p.targetList()
	}
	if p.acceptKw("into") {
		s.Into = p.into()
	}
	if p.acceptKw("from") {
		s.From = p.fromList()
	}
	if p.acceptKw("where") {
		s.Where = p.expr()
	}
	if p.acceptKw("group") {
		p.expectKw("by")
		if p.acceptKw("distinct") {
			s.GroupDistinct = true
		} else {
			p.acceptKw("all")
		}
		s.GroupBy = list(p, p.groupItem)
	}
	if p.acceptKw("having") {
		s.Having = p.expr()
	}
	if p.acceptKw("window") {
		s.Windows = list(p, p.windowDef)
	}
	return s
}

// endsEmptyTargets reports whether a select list is empty: what follows cannot
// begin an expression.
func (p *parser) endsEmptyTargets() bool {
	return !p.is(',') && (endsTarget(p.tok()) || p.kw("with"))
}

func (p *parser) targetList() []*ast.Target { return list(p, p.target) }

func (p *parser) target() *ast.Target {
	t := &ast.Target{Loc: p.loc()}
	if p.is('*') {
		p.next()
		t.Expr = &ast.ColumnRef{Loc: t.Loc, Star: true}
		return t
	}
	t.Expr = p.exprPrec(precNone, modeTarget)
	switch {
	case p.acceptKw("as"):
		t.Alias = p.colLabel()
	case p.tok().isBareLabel():
		t.Alias = p.colLabel()
	}
	return t
}

func (p *parser) into() *ast.Into {
	i := &ast.Into{Loc: p.loc()}
	switch {
	case p.kw("local") || p.kw("global"):
		p.next()
		if !p.acceptKw("temp") {
			p.expectKw("temporary")
		}
		i.Persistence = ast.Temporary
	case p.acceptKw("temporary"), p.acceptKw("temp"):
		i.Persistence = ast.Temporary
	case p.acceptKw("unlogged"):
		i.Persistence = ast.Unlogged
	}
	p.acceptKw("table")
	i.Name = p.qualifiedName()
	return i
}

// groupItem parses an item of GROUP BY.
func (p *parser) groupItem() ast.Expr {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	g := &ast.GroupingSet{Loc: p.loc()}
	switch {
	case p.is('(') && p.peek(1).kind == ')':
		p.next()
		p.next()
		return g
	case p.kw("rollup") && p.peek(1).kind == '(':
		g.Kind = ast.GroupingRollup
		p.next()
		g.Items = parens(p, p.expr)
		return g
	case p.kw("cube") && p.peek(1).kind == '(':
		g.Kind = ast.GroupingCube
		p.next()
		g.Items = parens(p, p.expr)
		return g
	case p.kw("grouping") && p.kwAt(1, "sets"):
		g.Kind = ast.GroupingSets
		p.next()
		p.next()
		g.Items = parens(p, p.groupItem)
		return g
	}
	return p.expr()
}

func (p *parser) windowDef() *ast.WindowDef {
	w := &ast.WindowDef{Loc: p.loc(), Name: p.colID()}
	p.expectKw("as")
	w.Spec = p.windowSpec()
	return w
}
