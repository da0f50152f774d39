package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

func (p *parser) fromList() []ast.TableRef { return list(p, p.tableRef) }

// tableRef parses an item of FROM with all its joins.
func (p *parser) tableRef() ast.TableRef {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	return p.joins(p.tablePrimary())
}

func (p *parser) joins(left ast.TableRef) ast.TableRef {
	for p.err == nil && p.atJoin() {
		left = p.join(left)
	}
	return left
}

// atJoin reports whether a join operator is next. All its words are reserved
// as aliases.
func (p *parser) atJoin() bool {
	t := p.tok()
	if t.kind != tKeyword {
		return false
	}
	switch t.text {
	case "join", "cross", "natural", "inner", "left", "right", "full":
		return true
	}
	return false
}

// join parses one join after left. The right side of a join with a condition
// extends to that condition: a JOIN b JOIN c ON x ON y nests to the right.
func (p *parser) join(left ast.TableRef) ast.TableRef {
	j := &ast.Join{Loc: p.loc(), Left: left}
	if p.acceptKw("cross") {
		p.expectKw("join")
		j.Kind = ast.JoinCross
		j.Right = p.tablePrimary()
		return j
	}
	j.Natural = p.acceptKw("natural")
	switch {
	case p.acceptKw("left"):
		j.Kind = ast.JoinLeft
		p.acceptKw("outer")
	case p.acceptKw("right"):
		j.Kind = ast.JoinRight
		p.acceptKw("outer")
	case p.acceptKw("full"):
		j.Kind = ast.JoinFull
		p.acceptKw("outer")
	default:
		p.acceptKw("inner")
	}
	p.expectKw("join")
	j.Right = p.tablePrimary()
	if j.Natural {
		return j
	}
	if !p.enter() {
		return j
	}
	for p.err == nil && p.atJoin() {
		j.Right = p.join(j.Right)
	}
	p.leave()
	switch {
	case p.acceptKw("on"):
		j.On = p.expr()
	case p.acceptKw("using"):
		j.Using = parens(p, p.colID)
		if p.acceptKw("as") {
			j.UsingAlias = p.colID()
		}
	default:
		p.syntaxError()
	}
	return j
}

// tablePrimary parses an item of FROM without joins, except parenthesised ones.
func (p *parser) tablePrimary() ast.TableRef {
	t := p.tok()
	lateral := p.acceptKw("lateral")
	switch {
	case p.is('('):
		if lateral {
			paren := p.pos()
			q := p.selectWithParens()
			return p.subqueryRef(t.pos, paren, q, true)
		}
		return p.parenTable()
	case p.kw("xmltable") && p.peek(1).kind == '(':
		return p.xmlTable(lateral)
	case p.kw("rows") && p.kwAt(1, "from"):
		return p.rowsFrom(lateral)
	case !lateral && p.kw("only"):
		return p.tableWithAlias(p.relationExpr())
	case p.kw("table") && p.peek(1).kind == '(':
		return p.tableFunction(lateral)
	}
	return p.relationOrFunction(lateral, t.pos)
}

// tableFunction parses TABLE(f(...)), the standard's spelling that Flink and
// Spark use for functions in FROM.
func (p *parser) tableFunction(lateral bool) ast.TableRef {
	f := &ast.FuncRef{Loc: p.loc(), Lateral: lateral}
	p.next()
	p.expect('(')
	f.Funcs = []*ast.FuncItem{p.funcItem()}
	p.expect(')')
	f.Alias = p.optFuncAlias()
	return f
}

// relationOrFunction parses a name, which is a call if a parenthesis follows.
func (p *parser) relationOrFunction(lateral bool, pos ast.Pos) ast.TableRef {
	t := p.tok()
	if t.kind == tKeyword {
		if e, ok := p.commonFunc(); ok {
			return p.funcRef(lateral, pos, e)
		}
	}
	schema := p.atDefaultSchema()
	if !t.isColID() && !t.isTypeFuncName() && !schema {
		p.syntaxError()
		return nil
	}
	first := ast.Ident{Name: t.text, Quoted: t.quoted, Pos: t.pos}
	p.next()
	if p.is('(') && t.isTypeFuncName() {
		return p.funcRef(lateral, pos, p.funcCall(ast.Name{first}, false))
	}
	if !t.isColID() && !schema {
		p.syntaxError()
		return nil
	}
	name := p.qualifiedRest(first)
	if p.is('(') && len(name) > 1 {
		return p.funcRef(lateral, pos, p.funcCall(name, false))
	}
	if lateral {
		p.syntaxError()
		return nil
	}
	r := &ast.TableName{Loc: ast.At(t.pos), Name: name}
	if p.is('*') {
		p.next()
	}
	return p.tableWithAlias(r)
}

func (p *parser) funcRef(lateral bool, pos ast.Pos, call ast.Expr) ast.TableRef {
	f := &ast.FuncRef{Loc: ast.At(pos), Lateral: lateral}
	f.Funcs = []*ast.FuncItem{{Loc: ast.At(pos), Call: call}}
	f.Ordinality = p.ordinality()
	f.Alias = p.optFuncAlias()
	return f
}

func (p *parser) ordinality() bool {
	if p.kw("with") && p.kwAt(1, "ordinality") {
		p.next()
		p.next()
		return true
	}
	return false
}

// rowsFrom parses ROWS FROM (f(...) [AS (...)], ...).
func (p *parser) rowsFrom(lateral bool) ast.TableRef {
	f := &ast.FuncRef{Loc: p.loc(), Lateral: lateral, RowsFrom: true}
	p.next()
	p.next()
	f.Funcs = parens(p, func() *ast.FuncItem {
		i := p.funcItem()
		if p.acceptKw("as") {
			i.ColDefs = parens(p, p.colDef)
		}
		return i
	})
	f.Ordinality = p.ordinality()
	f.Alias = p.optFuncAlias()
	return f
}

// funcItem parses a call without the clauses of aggregates
// (func_expr_windowless).
func (p *parser) funcItem() *ast.FuncItem {
	return &ast.FuncItem{Loc: p.loc(), Call: p.windowlessFunc()}
}

func (p *parser) windowlessFunc() ast.Expr {
	if p.tok().kind == tKeyword {
		if e, ok := p.commonFunc(); ok {
			return e
		}
	}
	return p.funcCall(p.funcName(), false)
}

// funcName reads a function's name: a function identifier, or a qualified name.
func (p *parser) funcName() ast.Name {
	t := p.tok()
	if !t.isColID() && !t.isTypeFuncName() {
		p.syntaxError()
		return nil
	}
	first := ast.Ident{Name: t.text, Quoted: t.quoted, Pos: t.pos}
	p.next()
	name := ast.Name{first}
	if t.isColID() {
		for p.err == nil && p.accept('.') {
			name = append(name, p.colLabel())
		}
	}
	if len(name) == 1 && !t.isTypeFuncName() {
		p.syntaxError()
	}
	return name
}

// relationExpr parses [ONLY] t [*].
func (p *parser) relationExpr() *ast.TableName {
	r := &ast.TableName{Loc: p.loc()}
	if p.acceptKw("only") {
		r.Only = true
		if p.accept('(') {
			r.Name = p.qualifiedName()
			p.expect(')')
		} else {
			r.Name = p.qualifiedName()
		}
		return r
	}
	r.Name = p.qualifiedName()
	if p.is('*') {
		p.next()
	}
	return r
}

// tableWithAlias parses what may follow a table in FROM: hints, time travel,
// alias, sampling.
func (p *parser) tableWithAlias(r *ast.TableName) ast.TableRef {
	r.Hints = p.takeHints()
	r.AsOf = p.asOf()
	r.Hints = append(r.Hints, p.takeHints()...)
	r.Alias = p.optAlias()
	r.Hints = append(r.Hints, p.takeHints()...)
	if p.kw("tablesample") {
		r.Sample = p.tableSample()
	}
	return r
}

// asOf parses FOR VERSION|TIMESTAMP|SYSTEM_TIME|SYSTEM_VERSION AS OF value, or
// Spark's spelling without FOR. None of these can go on after a table in
// PostgreSQL: its FOR is followed by UPDATE, SHARE, NO, KEY or READ.
func (p *parser) asOf() *ast.AsOf {
	n := 0
	if p.kw("for") {
		n = 1
	}
	t := p.peek(n)
	a := &ast.AsOf{Loc: p.loc()}
	switch {
	case t.isWord("version"), n == 1 && t.isWord("system_version"):
	case t.isWord("timestamp"), n == 1 && t.isWord("system_time"):
		a.Kind = ast.AsOfTimestamp
	default:
		return nil
	}
	if !p.kwAt(n+1, "as") || !p.kwAt(n+2, "of") {
		return nil
	}
	p.i += n + 3
	a.Value = p.expr()
	return a
}

func (p *parser) tableSample() *ast.TableSample {
	s := &ast.TableSample{Loc: p.loc()}
	p.next()
	s.Method = p.funcName()
	s.Args = parens(p, p.expr)
	if p.acceptKw("repeatable") {
		p.expect('(')
		s.Repeatable = p.expr()
		p.expect(')')
	}
	return s
}

// subqueryRef parses what follows a subquery in FROM. PostgreSQL reports a
// missing alias at the parenthesis, which for LATERAL is not where it begins.
func (p *parser) subqueryRef(pos, paren ast.Pos, q *ast.Query, lateral bool) ast.TableRef {
	s := &ast.SubqueryRef{Loc: ast.At(pos), Lateral: lateral, Query: q}
	s.Alias = p.optAlias()
	if s.Alias == nil && p.err == nil {
		word := "subquery"
		hint := "For example, FROM (SELECT ...) [AS] foo."
		if _, ok := q.Body.(*ast.Values); ok {
			word, hint = "VALUES", "For example, FROM (VALUES ...) [AS] foo."
		}
		p.fail(p.errorAt(paren, pgerr.SyntaxError, "%s in FROM must have an alias", word).WithHint("%s", hint))
	}
	return s
}

// parenTable parses a parenthesis in FROM: a subquery or a join. As in
// parenContents, inner parentheses may have to be read first.
func (p *parser) parenTable() ast.TableRef {
	pos := p.pos()
	q, ref := p.parenTableContents()
	if p.err != nil {
		return ref
	}
	if q != nil {
		return p.subqueryRef(pos, pos, q, false)
	}
	p.joinAlias(ref)
	return ref
}

// joinAlias parses the alias a parenthesised join may have.
func (p *parser) joinAlias(ref ast.TableRef) {
	if j, ok := ref.(*ast.Join); ok && j.Alias == nil {
		j.Alias = p.optAlias()
	}
}

func (p *parser) parenTableContents() (*ast.Query, ast.TableRef) {
	if !p.enter() {
		return nil, nil
	}
	defer p.leave()
	p.expect('(')
	if p.atSelect() {
		q := p.selectNoParens()
		p.expect(')')
		return q, nil
	}
	var ref ast.TableRef
	joined := false
	if p.is('(') {
		pos := p.pos()
		q, inner := p.parenTableContents()
		switch {
		case p.err != nil:
			return nil, nil
		case q != nil && p.accept(')'):
			return q, nil
		case q != nil && p.atSelectRest():
			q = p.selectRest(q)
			p.expect(')')
			return q, nil
		case q != nil && !p.atJoin() && !p.kw("as") && !p.tok().isColID():
			p.syntaxError()
			return nil, nil
		case q != nil:
			ref = p.subqueryRef(pos, pos, q, false)
		default:
			// ((a JOIN b ON x)) is a join; with an alias it is a table and
			// must be joined again.
			ref = inner
			joined = !p.tok().isColID() && !p.kw("as")
			p.joinAlias(ref)
		}
	} else {
		ref = p.tablePrimary()
	}
	if p.err == nil && !p.atJoin() && !joined {
		p.syntaxError()
		return nil, nil
	}
	ref = p.joins(ref)
	p.expect(')')
	return nil, ref
}

// optAlias parses [AS] name [(columns)].
func (p *parser) optAlias() *ast.Alias {
	a := &ast.Alias{Loc: p.loc()}
	if p.acceptKw("as") {
		a.Name = p.colID()
	} else if p.tok().isColID() {
		a.Name = p.colID()
	} else {
		return nil
	}
	a.Columns = p.optColumns()
	return a
}

// optFuncAlias also takes a column definition list.
func (p *parser) optFuncAlias() *ast.Alias {
	a := &ast.Alias{Loc: p.loc()}
	if p.acceptKw("as") {
		if p.is('(') {
			a.ColDefs = parens(p, p.colDef)
			return a
		}
		a.Name = p.colID()
	} else if p.tok().isColID() {
		a.Name = p.colID()
	} else {
		return nil
	}
	if !p.is('(') {
		return a
	}
	if p.peek(1).isColID() && p.peek(2).kind != ',' && p.peek(2).kind != ')' {
		a.ColDefs = parens(p, p.colDef)
		return a
	}
	a.Columns = p.optColumns()
	return a
}

// colDef parses name type [COLLATE c].
func (p *parser) colDef() *ast.ColDef {
	c := &ast.ColDef{Loc: p.loc(), Name: p.colID(), Type: p.typeName()}
	if p.acceptKw("collate") {
		c.Collation = p.anyName()
	}
	return c
}
