package parser

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

func upper(s string) string { return strings.ToUpper(s) }

// primary parses an operand without operators (c_expr).
func (p *parser) primary() ast.Expr {
	t := p.tok()
	loc := p.loc()
	switch t.kind {
	case tInt, tFloat:
		return p.number()
	case tString, tBits, tHex:
		p.next()
		return &ast.String{Loc: loc, Value: t.text, Kind: t.str}
	case tParam:
		p.next()
		n := paramNumber(t.text)
		if n == 0 {
			p.failAt(t.pos, pgerr.UndefinedParameter, "there is no parameter $%s", t.text)
		}
		return p.indirection(&ast.Param{Loc: loc, N: n})
	case '(':
		q, items := p.parenContents(false)
		if p.err != nil {
			return nil
		}
		return p.parenExpr(loc, q, items)
	case tIdent:
		return p.nameExpr()
	case tKeyword:
		if t.la {
			p.syntaxError()
			return nil
		}
		if e, ok := p.keywordExpr(); ok {
			return e
		}
		if t.class == kwReserved && !p.atDefaultSchema() {
			p.syntaxError()
			return nil
		}
		return p.nameExpr()
	}
	p.syntaxError()
	return nil
}

// keywordExpr parses an operand that a keyword begins. It returns false when
// the keyword is a name here.
func (p *parser) keywordExpr() (ast.Expr, bool) {
	t := p.tok()
	loc := p.loc()
	switch t.text {
	case "null":
		p.next()
		return &ast.Null{Loc: loc}, true
	case "true", "false":
		p.next()
		return &ast.Bool{Loc: loc, Value: t.text == "true"}, true
	case "case":
		return p.caseExpr(), true
	case "array":
		return p.arrayExpr(), true
	case "exists":
		if p.peek(1).kind != '(' {
			return nil, false
		}
		p.next()
		return &ast.Subquery{Loc: loc, Kind: ast.SubqueryExists, Query: p.selectWithParens()}, true
	case "row":
		if p.peek(1).kind != '(' {
			return nil, false
		}
		p.next()
		return p.overlaps(&ast.Row{Loc: loc, Explicit: true, Elems: p.rowElems()}), true
	case "grouping":
		if p.peek(1).kind != '(' {
			return nil, false
		}
		p.next()
		return &ast.Special{Loc: loc, Kind: ast.Grouping, Args: parens(p, p.expr)}, true
	}
	if p.atTypeConst() {
		return p.typeConst(), true
	}
	return p.commonFunc()
}

// caseExpr parses CASE.
func (p *parser) caseExpr() ast.Expr {
	c := &ast.Case{Loc: p.loc()}
	p.next()
	if !p.kw("when") {
		c.Operand = p.expr()
	}
	for {
		w := &ast.When{Loc: p.loc()}
		p.expectKw("when")
		w.Cond = p.expr()
		p.expectKw("then")
		w.Result = p.expr()
		c.Whens = append(c.Whens, w)
		if p.err != nil || !p.kw("when") {
			break
		}
	}
	if p.acceptKw("else") {
		c.Else = p.expr()
	}
	p.expectKw("end")
	return c
}

// arrayExpr parses ARRAY(query) and ARRAY[...].
func (p *parser) arrayExpr() ast.Expr {
	loc := p.loc()
	p.next()
	if p.is('(') {
		if !p.parenQuery() && !p.kwAt(1, "values") && p.peek(1).kind != ')' {
			// Spark's array(a, b) is ARRAY[a, b].
			return &ast.Array{Loc: loc, Elems: parens(p, p.expr)}
		}
		return &ast.Subquery{Loc: loc, Kind: ast.SubqueryArray, Query: p.selectWithParens()}
	}
	a := p.arrayBrackets()
	if a != nil {
		a.Loc = loc
	}
	return a
}

// arrayBrackets parses [expr, ...] or [[...], [...]].
func (p *parser) arrayBrackets() *ast.Array {
	a := &ast.Array{Loc: p.loc()}
	if !p.enter() {
		return a
	}
	defer p.leave()
	p.expect('[')
	if p.accept(']') {
		return a
	}
	if p.is('[') {
		a.Elems = list(p, func() ast.Expr { return p.arrayBrackets() })
	} else {
		a.Elems = p.exprList()
	}
	p.expect(']')
	return a
}

// nameExpr parses what begins with a name: a column, a call, or a literal of a
// named type. What the name may be is decided by what follows it, as the
// grammar's ColId, type_function_name and func_name overlap.
func (p *parser) nameExpr() ast.Expr {
	t := p.tok()
	loc := p.loc()
	if p.word("try_cast") && p.peek(1).kind == '(' {
		return p.tryCast()
	}
	first := ast.Ident{Name: t.text, Quoted: t.quoted, Pos: t.pos}
	p.next()
	if t.isTypeFuncName() {
		switch {
		case p.is('('):
			return p.funcCall(ast.Name{first}, true)
		case p.is(tString) && p.tok().str <= ast.StringUnicode:
			return p.typedLiteral(loc, &ast.TypeName{Loc: loc, Name: ast.Name{first}})
		case !t.isColID():
			// A type_func_name keyword is nothing else.
			p.syntaxError()
			return nil
		}
	}
	name := ast.Name{first}
	for p.err == nil && p.is('.') {
		p.next()
		if p.is('*') {
			p.next()
			p.noIndirection()
			return &ast.ColumnRef{Loc: loc, Parts: name, Star: true}
		}
		name = append(name, p.colLabel())
	}
	if len(name) > 1 {
		switch {
		case p.is('('):
			return p.funcCall(name, true)
		case p.is(tString):
			return p.typedLiteral(loc, &ast.TypeName{Loc: loc, Name: name})
		}
	}
	ref := &ast.ColumnRef{Loc: loc, Parts: name}
	if p.is('[') && len(name) == 1 && !first.Quoted && (first.Name == "map" || first.Name == "multiset") {
		return p.mapOrSubscript(ref)
	}
	return p.indirection(ref)
}

// tryCast parses TRY_CAST(x AS t), or the call of a function of that name.
func (p *parser) tryCast() ast.Expr {
	loc := p.loc()
	f := &ast.FuncCall{Loc: loc, Name: ast.Name{p.colID()}}
	if n := p.peek(1); n.kind == ')' || n.kind == '*' || n.isKw("distinct") || n.isKw("all") || n.isKw("variadic") {
		return p.funcCall(f.Name, true)
	}
	p.expect('(')
	arg := p.funcArg()
	if _, named := arg.(*ast.NamedArg); !named && p.acceptKw("as") {
		c := &ast.Cast{Loc: loc, Expr: arg, Type: p.typeName(), Style: ast.CastTry}
		p.expect(')')
		return c
	}
	f.Args = append(f.Args, arg)
	if p.accept(',') {
		p.funcArgs(f, true)
	}
	if p.kw("order") {
		f.OrderBy = p.sortClause()
	}
	p.expect(')')
	p.aggClauses(f)
	return f
}

// noIndirection reports what may not follow a star.
func (p *parser) noIndirection() {
	bad := false
	for p.err == nil && (p.is('.') || p.is('[')) {
		bad = true
		if p.accept('.') {
			if !p.accept('*') {
				p.colLabel()
			}
			continue
		}
		p.subscript()
	}
	if bad {
		p.errorNear("improper use of \"*\"")
	}
}

// mapOrSubscript parses map[k, v, ...] or multiset[a, b, ...], or a subscript of
// a column of that name: only a comma or nothing between the brackets tells,
// and PostgreSQL has a use for neither.
func (p *parser) mapOrSubscript(ref *ast.ColumnRef) ast.Expr {
	m := &ast.MapLiteral{Loc: ref.Loc, Multiset: ref.Parts[0].Name == "multiset"}
	if p.peek(1).kind == ']' {
		p.next()
		p.next()
		return m
	}
	if p.peek(1).kind == ':' {
		return p.indirection(ref)
	}
	p.next()
	first := p.expr()
	if !p.is(',') {
		s := p.subscriptRest(&ast.Subscript{Loc: ref.Loc, Index: first})
		s.Expr = ref
		return p.indirection(s)
	}
	m.Elems = []ast.Expr{first}
	for p.err == nil && p.accept(',') {
		m.Elems = append(m.Elems, p.expr())
	}
	p.expect(']')
	return m
}

// indirection parses .field, .* and [subscripts] after e. Dots directly after
// a column name have been read by then.
func (p *parser) indirection(e ast.Expr) ast.Expr {
	n := 0
	for p.err == nil {
		loc := ast.At(e.Position())
		switch {
		case p.accept('.'):
			if p.accept('*') {
				p.noIndirection()
				return &ast.FieldSelect{Loc: loc, Expr: e, Star: true}
			}
			e = &ast.FieldSelect{Loc: loc, Expr: e, Field: p.colLabel()}
		case p.is('['):
			s := p.subscript()
			s.Loc, s.Expr = loc, e
			e = s
		default:
			return e
		}
		if n++; n > maxDepth {
			p.tooDeep()
		}
	}
	return e
}

// subscript parses [i] or [lo:hi].
func (p *parser) subscript() *ast.Subscript {
	s := &ast.Subscript{Loc: p.loc()}
	p.expect('[')
	if !p.is(':') {
		s.Index = p.expr()
	}
	return p.subscriptRest(s)
}

// subscriptRest goes on after the first expression, if there is one.
func (p *parser) subscriptRest(s *ast.Subscript) *ast.Subscript {
	if s.Index != nil {
		if p.accept(']') {
			return s
		}
		s.Low, s.Index = s.Index, nil
	}
	s.Slice = true
	p.expect(':')
	if !p.is(']') {
		s.High = p.expr()
	}
	p.expect(']')
	return s
}

func (p *parser) typedLiteral(loc ast.Loc, t *ast.TypeName) ast.Expr {
	return &ast.TypedLiteral{Loc: loc, Type: t, Value: p.stringConst()}
}

// funcCall parses a call from its opening parenthesis. With clauses, what may
// follow an aggregate is parsed too; FROM and index definitions have calls
// without it.
func (p *parser) funcCall(name ast.Name, clauses bool) ast.Expr {
	f := &ast.FuncCall{Loc: ast.At(name.Pos()), Name: name}
	p.expect('(')
	var orderPos ast.Pos
	plain := true // the arguments might be the modifiers of a type
	switch {
	case p.accept(')'):
		plain = false
	case p.accept('*'):
		p.expect(')')
		f.Star = true
		plain = false
	default:
		switch {
		case p.acceptKw("distinct"):
			f.Distinct, plain = true, false
		case p.acceptKw("all"):
			plain = false
		}
		p.funcArgs(f, plain)
		orderPos = p.pos()
		if p.kw("order") {
			f.OrderBy = p.sortClause()
		}
		p.expect(')')
	}
	if !clauses {
		return f
	}
	if plain && !f.Variadic && p.is(tString) {
		return p.typeModLiteral(f, orderPos)
	}
	p.aggClauses(f)
	return f
}

// funcArgs parses the arguments; VARIADIC may stand before the last one, but
// not after DISTINCT or ALL.
func (p *parser) funcArgs(f *ast.FuncCall, variadic bool) {
	for p.err == nil {
		if variadic && p.acceptKw("variadic") {
			f.Variadic = true
			f.Args = append(f.Args, p.funcArg())
			return
		}
		f.Args = append(f.Args, p.funcArg())
		if !p.accept(',') {
			return
		}
	}
}

// funcArg parses an argument, possibly named. In CALL the names may be reserved
// words, because those of Paimon's procedures are (table => 't').
func (p *parser) funcArg() ast.Expr {
	t, n := p.tok(), p.peek(1)
	if n.kind == tArrow && (t.isTypeFuncName() || p.inCall && t.isLabel()) || n.kind == tColonEquals && t.isTypeFuncName() {
		a := &ast.NamedArg{Loc: p.loc(), Name: p.colLabel()}
		p.next()
		a.Value = p.expr()
		return a
	}
	return p.expr()
}

// typeModLiteral turns name(args) 'text' into a literal of type name(args).
func (p *parser) typeModLiteral(f *ast.FuncCall, orderPos ast.Pos) ast.Expr {
	for _, a := range f.Args {
		if n, ok := a.(*ast.NamedArg); ok {
			p.failAt(n.Pos, pgerr.SyntaxError, "type modifier cannot have parameter name")
		}
	}
	if f.OrderBy != nil {
		p.failAt(orderPos, pgerr.SyntaxError, "type modifier cannot have ORDER BY")
	}
	return p.typedLiteral(f.Loc, &ast.TypeName{Loc: f.Loc, Name: f.Name, Mods: f.Args})
}

// aggClauses parses WITHIN GROUP, FILTER and OVER. Their words cannot be
// labels without AS, so each is what it seems.
func (p *parser) aggClauses(f *ast.FuncCall) {
	if p.kw("within") {
		pos := p.pos()
		p.next()
		p.expectKw("group")
		p.expect('(')
		f.WithinGroup = p.sortClause()
		p.expect(')')
		switch {
		case p.err != nil:
		case f.OrderBy != nil:
			p.failAt(pos, pgerr.SyntaxError, "cannot use multiple ORDER BY clauses with WITHIN GROUP")
		case f.Distinct:
			p.failAt(pos, pgerr.SyntaxError, "cannot use DISTINCT with WITHIN GROUP")
		case f.Variadic:
			p.failAt(pos, pgerr.SyntaxError, "cannot use VARIADIC with WITHIN GROUP")
		}
	}
	if p.acceptKw("filter") {
		p.expect('(')
		p.expectKw("where")
		f.Filter = p.expr()
		p.expect(')')
	}
	if p.kw("over") {
		loc := p.loc()
		p.next()
		if p.is('(') {
			f.Over = p.windowSpec()
			return
		}
		f.Over = &ast.WindowSpec{Loc: loc, Ref: p.colID(), Bare: true}
	}
}

// windowSpec parses ( [name] [PARTITION BY ...] [ORDER BY ...] [frame] ).
func (p *parser) windowSpec() *ast.WindowSpec {
	w := &ast.WindowSpec{Loc: p.loc()}
	p.expect('(')
	// PARTITION, RANGE, ROWS and GROUPS are unreserved, but begin their
	// clause here, as the grammar's precedences have it.
	if p.tok().isColID() && !p.kw("partition") && !p.kw("range") && !p.kw("rows") && !p.kw("groups") {
		w.Ref = p.colID()
	}
	if p.acceptKw("partition") {
		p.expectKw("by")
		w.PartitionBy = p.exprList()
	}
	if p.kw("order") {
		w.OrderBy = p.sortClause()
	}
	if p.kw("range") || p.kw("rows") || p.kw("groups") {
		w.Frame = p.frame()
	}
	p.expect(')')
	return w
}

func (p *parser) frame() *ast.Frame {
	f := &ast.Frame{Loc: p.loc()}
	switch p.tok().text {
	case "rows":
		f.Mode = ast.FrameRows
	case "groups":
		f.Mode = ast.FrameGroups
	}
	p.next()
	f.End.Kind = ast.CurrentRow
	if p.acceptKw("between") {
		f.Start = p.frameBound()
		p.expectKw("and")
		f.End = p.frameBound()
		p.checkFrame(f, true)
	} else {
		f.Start = p.frameBound()
		p.checkFrame(f, false)
	}
	if p.acceptKw("exclude") {
		switch {
		case p.acceptKws("current row"):
			f.Exclude = ast.ExcludeCurrentRow
		case p.acceptKw("group"):
			f.Exclude = ast.ExcludeGroup
		case p.acceptKw("ties"):
			f.Exclude = ast.ExcludeTies
		case p.acceptKw("no"):
			p.expectKw("others")
		case p.acceptKw("current"):
			p.expectKw("row")
		default:
			p.syntaxError()
		}
	}
	return f
}

func (p *parser) frameBound() ast.FrameBound {
	b := ast.FrameBound{Loc: p.loc()}
	switch {
	case p.kw("unbounded") && (p.kwAt(1, "preceding") || p.kwAt(1, "following")):
		p.next()
		b.Kind = ast.UnboundedPreceding
		if p.kw("following") {
			b.Kind = ast.UnboundedFollowing
		}
		p.next()
		return b
	case p.kw("current") && p.kwAt(1, "row"):
		p.next()
		p.next()
		b.Kind = ast.CurrentRow
		return b
	}
	b.Offset = p.expr()
	switch {
	case p.acceptKw("preceding"):
		b.Kind = ast.Preceding
	case p.acceptKw("following"):
		b.Kind = ast.Following
	default:
		p.syntaxError()
	}
	return b
}

// checkFrame refuses frames that cannot have rows, where PostgreSQL's grammar
// does.
func (p *parser) checkFrame(f *ast.Frame, between bool) {
	bad := func(pos ast.Pos, msg string) {
		if p.err == nil {
			p.failAt(pos, pgerr.WindowingError, "%s", msg)
		}
	}
	switch {
	case f.Start.Kind == ast.UnboundedFollowing:
		bad(f.Start.Pos, "frame start cannot be UNBOUNDED FOLLOWING")
	case !between && f.Start.Kind == ast.Following:
		bad(f.Start.Pos, "frame starting from following row cannot end with current row")
	case !between:
	case f.End.Kind == ast.UnboundedPreceding:
		bad(f.End.Pos, "frame end cannot be UNBOUNDED PRECEDING")
	case f.Start.Kind == ast.CurrentRow && f.End.Kind == ast.Preceding:
		bad(f.End.Pos, "frame starting from current row cannot have preceding rows")
	case f.Start.Kind == ast.Following && (f.End.Kind == ast.Preceding || f.End.Kind == ast.CurrentRow):
		bad(f.End.Pos, "frame starting from following row cannot have preceding rows")
	}
}
