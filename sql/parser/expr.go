package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// prec is a level of operator precedence, from PostgreSQL's table.
type prec int

const (
	precNone prec = iota
	precOr
	precAnd
	precNot
	precIs
	precCompare
	precLike // BETWEEN, IN, LIKE, ILIKE, SIMILAR
	precOp   // every operator without a level of its own
	precAdd
	precMul
	precPower
	precAt
	precCollate
	precUnary
	precCast
)

// exprMode restricts what an expression may contain.
type exprMode uint8

const (
	modeFull exprMode = iota
	// modeTarget is the outermost level of a select list: there an operator
	// word before the end of the item is a label (SELECT 1 and FROM t).
	modeTarget
	// modeB is the grammar's b_expr: no AND, OR, NOT, IN, LIKE, BETWEEN, IS
	// NULL, COLLATE or AT, so that it can stand before such words.
	modeB
	// modeStop is the outermost level of an argument that SIMILAR may end.
	modeStop
)

// expr parses an expression (a_expr).
func (p *parser) expr() ast.Expr { return p.exprPrec(precNone, modeFull) }

// bExpr parses a restricted expression (b_expr).
func (p *parser) bExpr() ast.Expr { return p.exprPrec(precNone, modeB) }

func (p *parser) exprList() []ast.Expr { return list(p, p.expr) }

// exprPrec parses an expression of operators that bind at least as tightly as
// min. Prefix operators may begin it whatever min is: 1 + NOT a = b is
// 1 + (NOT (a = b)), as in the LALR grammar.
func (p *parser) exprPrec(min prec, mode exprMode) ast.Expr {
	if !p.enter() {
		return nil
	}
	left := p.prefix(mode)
	left = p.exprRest(left, min, mode)
	p.leave()
	return left
}

// operand is what modes nested operands have: only the outermost level of a
// select list has labels.
func (m exprMode) operand() exprMode {
	if m == modeB {
		return modeB
	}
	return modeFull
}

func (p *parser) prefix(mode exprMode) ast.Expr {
	t := p.tok()
	loc := p.loc()
	switch t.kind {
	case '+', '-':
		p.next()
		op := ast.Operator{Name: t.text, Pos: loc.Pos}
		return &ast.Unary{Loc: loc, Op: op, Expr: p.exprPrec(precUnary, mode.operand())}
	case tOp:
		p.next()
		op := ast.Operator{Name: t.text, Pos: loc.Pos}
		return &ast.Unary{Loc: loc, Op: op, Expr: p.exprPrec(precOp+1, mode.operand())}
	case tKeyword:
		switch t.text {
		case "not":
			if mode != modeB {
				p.next()
				return &ast.Not{Loc: loc, Expr: p.exprPrec(precNot, modeFull)}
			}
		case "operator":
			if p.peek(1).kind == '(' {
				op := p.operatorCall()
				return &ast.Unary{Loc: loc, Op: op, Expr: p.exprPrec(precOp+1, mode.operand())}
			}
		case "default":
			if mode != modeB && !p.atDefaultSchema() {
				p.next()
				return &ast.Default{Loc: loc}
			}
		case "unique":
			if mode != modeB {
				p.uniquePredicate()
				return nil
			}
		}
	}
	return p.primary()
}

// uniquePredicate checks UNIQUE [NULLS [NOT] DISTINCT] (query), which
// PostgreSQL knows but has not implemented.
func (p *parser) uniquePredicate() {
	pos := p.pos()
	p.next()
	p.nullsDistinct()
	if q := p.selectWithParens(); q != nil {
		p.failAt(pos, pgerr.FeatureNotSupported, "UNIQUE predicate is not yet implemented")
	}
}

// operatorCall reads OPERATOR(schema.op).
func (p *parser) operatorCall() ast.Operator {
	pos := p.pos()
	p.next()
	p.expect('(')
	op := p.anyOperator()
	p.expect(')')
	op.Pos = pos
	return op
}

// anyOperator reads an operator's name with optional schemas.
func (p *parser) anyOperator() ast.Operator {
	op := ast.Operator{Pos: p.pos()}
	for p.err == nil && p.tok().isColID() {
		op.Schema = append(op.Schema, p.colID())
		p.expect('.')
	}
	if !p.tok().isOperator() {
		p.syntaxError()
		return op
	}
	op.Name = p.tok().text
	p.next()
	return op
}

// isOperator reports whether t is the name of an operator (all_Op).
func (t *token) isOperator() bool {
	switch t.kind {
	case tOp, '+', '-', '*', '/', '%', '^', '<', '>', '=', tLessEquals, tGreaterEquals, tNotEquals:
		return true
	}
	return false
}

// infix returns the level of the operator the current token begins, and
// precNone if it begins none.
func (p *parser) infix(mode exprMode) prec {
	t := p.tok()
	switch t.kind {
	case tTypecast:
		return precCast
	case '^':
		return precPower
	case '*', '/', '%':
		return precMul
	case '+', '-':
		return precAdd
	case tOp:
		return precOp
	case '<', '>', '=', tLessEquals, tGreaterEquals, tNotEquals:
		return precCompare
	case tKeyword:
	default:
		return precNone
	}
	var level prec
	switch t.text {
	case "operator":
		if mode == modeTarget && endsTarget(p.peek(1)) {
			return precNone
		}
		return precOp
	case "is":
		// In a b_expr only IS DISTINCT FROM and IS DOCUMENT exist, but nothing
		// else begins with IS after one, so isTest reports the error.
		if mode == modeB {
			return precIs
		}
		level = precIs
	case "and":
		level = precAnd
	case "or":
		level = precOr
	case "isnull", "notnull":
		level = precIs
	case "in", "like", "ilike", "between", "similar":
		level = precLike
	case "not":
		if !t.la {
			return precNone
		}
		level = precLike
	case "at":
		level = precAt
	case "collate":
		level = precCollate
	default:
		return precNone
	}
	if mode == modeB {
		return precNone
	}
	if mode == modeStop && t.text == "similar" && !p.kwAt(1, "to") {
		return precNone
	}
	if mode == modeTarget && t.bare && endsTarget(p.peek(1)) {
		return precNone
	}
	return level
}

// endsTarget reports whether t may follow a complete item of a select list.
// None of these can begin an operand, so the word before it is a label.
func endsTarget(t *token) bool {
	switch t.kind {
	case ',', ')', ';', tEOF:
		return true
	case tKeyword:
		switch t.text {
		case "from", "into", "where", "group", "having", "window", "union", "intersect",
			"except", "order", "limit", "offset", "fetch", "for", "on", "returning":
			return true
		}
	}
	return false
}

// exprRest parses the operators after left that bind at least as tightly as
// min.
func (p *parser) exprRest(left ast.Expr, min prec, mode exprMode) ast.Expr {
	// nonassoc is the level of the last operator that cannot be chained:
	// a = b = c is an error at the second =. Operators that end in something
	// else than an operand, such as IS NULL, can.
	nonassoc := precNone
	for p.err == nil {
		level := p.infix(mode)
		if level == precNone || level < min {
			break
		}
		if level == nonassoc {
			p.syntaxError()
			break
		}
		nonassoc = precNone
		loc := p.loc()
		t := p.tok()
		switch level {
		case precCast:
			p.next()
			left = &ast.Cast{Loc: loc, Expr: left, Type: p.typeName(), Style: ast.CastColons}
		case precCollate:
			p.next()
			left = &ast.Collate{Loc: loc, Expr: left, Collation: p.anyName()}
		case precAt:
			p.next()
			p.expectKws("time zone")
			left = &ast.AtTimeZone{Loc: loc, Expr: left, Zone: p.exprPrec(precAt+1, modeFull)}
		case precOr, precAnd:
			left = p.andOr(left, level, mode)
		case precIs:
			left, nonassoc = p.isTest(left, mode)
		case precLike:
			left, nonassoc = p.like(left)
		default:
			var op ast.Operator
			if t.kind == tKeyword {
				op = p.operatorCall()
			} else {
				p.next()
				op = ast.Operator{Name: t.text, Pos: t.pos}
			}
			if mode != modeB && p.atQuantifier() {
				left = p.quantified(left, op, loc)
				continue
			}
			left = &ast.Binary{Loc: loc, Op: op, Left: left, Right: p.exprPrec(level+1, mode.operand())}
			if level == precCompare {
				nonassoc = precCompare
			}
		}
	}
	return left
}

func (p *parser) atQuantifier() bool {
	return p.kw("any") || p.kw("some") || p.kw("all")
}

// quantified parses ANY|SOME|ALL (array or query) after an operator.
func (p *parser) quantified(left ast.Expr, op ast.Operator, loc ast.Loc) ast.Expr {
	q := &ast.Quantified{Loc: loc, Expr: left, Op: op, All: p.kw("all")}
	p.next()
	if !p.is('(') {
		p.syntaxError()
		return q
	}
	query, items := p.parenContents(true)
	if query == nil && len(items) == 1 {
		q.Array = items[0]
	}
	q.Query = query
	return q
}

// andOr collects a chain of ANDs or ORs into one node. A parenthesised chain on
// the left is taken in too, as PostgreSQL does.
func (p *parser) andOr(left ast.Expr, level prec, mode exprMode) ast.Expr {
	word, or := "and", false
	if level == precOr {
		word, or = "or", true
	}
	chain, ok := left.(*ast.AndOr)
	if !ok || chain.Or != or {
		chain = &ast.AndOr{Loc: p.loc(), Or: or, Args: []ast.Expr{left}}
	}
	p.next()
	chain.Args = append(chain.Args, p.exprPrec(level+1, modeFull))
	for p.err == nil && p.kw(word) && !(mode == modeTarget && endsTarget(p.peek(1))) {
		p.next()
		chain.Args = append(chain.Args, p.exprPrec(level+1, modeFull))
	}
	return chain
}

// isTest parses IS ..., ISNULL and NOTNULL. It returns precIs for the one form
// that ends in an operand.
func (p *parser) isTest(left ast.Expr, mode exprMode) (ast.Expr, prec) {
	is := &ast.Is{Loc: p.loc(), Expr: left}
	switch {
	case p.acceptKw("isnull"):
		return is, precNone
	case p.acceptKw("notnull"):
		is.Not = true
		return is, precNone
	}
	p.next()
	is.Not = p.acceptKw("not")
	if p.acceptKws("distinct from") {
		right := p.exprPrec(precIs+1, mode.operand())
		return &ast.IsDistinct{Loc: is.Loc, Left: left, Right: right, Not: is.Not}, precIs
	}
	if p.acceptKw("distinct") {
		p.syntaxError()
	}
	if p.acceptKw("document") {
		is.Kind = ast.IsDocument
		return is, precNone
	}
	if mode == modeB {
		p.syntaxError()
		return is, precNone
	}
	switch {
	case p.acceptKw("null"):
		is.Kind = ast.IsNull
	case p.acceptKw("true"):
		is.Kind = ast.IsTrue
	case p.acceptKw("false"):
		is.Kind = ast.IsFalse
	case p.acceptKw("unknown"):
		is.Kind = ast.IsUnknown
	case p.acceptKw("normalized"):
		is.Kind = ast.IsNormalized
	default:
		is.Kind = ast.IsNormalized
		is.Form = p.normalForm()
		p.expectKw("normalized")
	}
	return is, precNone
}

// normalForm reads NFC, NFD, NFKC or NFKD and returns it in upper case.
func (p *parser) normalForm() string {
	for _, f := range [...]string{"nfc", "nfd", "nfkc", "nfkd"} {
		if p.acceptKw(f) {
			return upper(f)
		}
	}
	p.syntaxError()
	return ""
}

// like parses [NOT] BETWEEN, IN, LIKE, ILIKE and SIMILAR TO. It returns
// precLike when the form ends in an operand.
func (p *parser) like(left ast.Expr) (ast.Expr, prec) {
	loc := p.loc()
	not := p.tok().la // NOT
	if not {
		p.next()
	}
	switch {
	case p.acceptKw("between"):
		b := &ast.Between{Loc: loc, Expr: left, Not: not}
		if p.acceptKw("symmetric") {
			b.Symmetric = true
		} else {
			p.acceptKw("asymmetric")
		}
		b.Low = p.bExpr()
		p.expectKw("and")
		b.High = p.exprPrec(precLike+1, modeFull)
		return b, precLike
	case p.acceptKw("in"):
		in := &ast.In{Loc: loc, Expr: left, Not: not}
		if !p.is('(') {
			p.syntaxError()
			return in, precNone
		}
		in.Query, in.List = p.parenContents(false)
		return in, precNone
	}
	l := &ast.Like{Loc: loc, Expr: left, Not: not}
	opName := "~~"
	switch {
	case p.acceptKw("similar"):
		l.Kind = ast.LikeSimilar
		p.expectKw("to")
	case p.acceptKw("ilike"):
		l.Kind = ast.LikeInsensitive
		opName = "~~*"
	default:
		p.expectKw("like")
	}
	if l.Kind != ast.LikeSimilar && p.atQuantifier() {
		if not {
			opName = "!" + opName
		}
		return p.quantified(left, ast.Operator{Name: opName, Pos: loc.Pos}, loc), precNone
	}
	l.Pattern = p.exprPrec(precLike+1, modeFull)
	if p.acceptKw("escape") {
		l.Escape = p.exprPrec(precLike+1, modeFull)
	}
	return l, precLike
}

// parenContents parses what stands in the parentheses at the current token: a
// query, or a list of expressions (one expression only, if single). Which of
// the two it is may be known only after any number of inner parentheses:
// ((SELECT 1) UNION SELECT 2) is a query, ((SELECT 1) + 2) is not.
func (p *parser) parenContents(single bool) (*ast.Query, []ast.Expr) {
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
	var first ast.Expr
	if p.is('(') {
		loc := p.loc()
		q, items := p.parenContents(false)
		switch {
		case p.err != nil:
			return nil, nil
		case q != nil && p.accept(')'):
			return q, nil
		case q != nil && p.atSelectRest():
			q = p.selectRest(q)
			p.expect(')')
			return q, nil
		}
		first = p.exprRest(p.parenExpr(loc, q, items), precNone, modeFull)
	} else {
		first = p.expr()
	}
	items := []ast.Expr{first}
	for !single && p.err == nil && p.accept(',') {
		items = append(items, p.expr())
	}
	p.expect(')')
	return nil, items
}

// parenExpr makes the expression of parentheses that have been read, with what
// may follow them directly: indirection, or OVERLAPS after a row.
func (p *parser) parenExpr(loc ast.Loc, q *ast.Query, items []ast.Expr) ast.Expr {
	switch {
	case q != nil:
		return p.indirection(&ast.Subquery{Loc: loc, Query: q})
	case len(items) == 1:
		return p.indirection(items[0])
	}
	return p.overlaps(&ast.Row{Loc: loc, Elems: items})
}

// overlaps parses OVERLAPS row if it follows row.
func (p *parser) overlaps(row *ast.Row) ast.Expr {
	if !p.kw("overlaps") || endsTarget(p.peek(1)) {
		return row
	}
	loc := p.loc()
	p.next()
	rightLoc := p.loc()
	var right []ast.Expr
	if p.acceptKw("row") {
		right = p.rowElems()
	} else if !p.is('(') {
		p.syntaxError()
	} else {
		var q *ast.Query
		q, right = p.parenContents(false)
		if q != nil || len(right) == 1 {
			p.syntaxError()
		}
	}
	if len(row.Elems) != 2 {
		p.failAt(row.Pos, pgerr.SyntaxError, "wrong number of parameters on left side of OVERLAPS expression")
	}
	if len(right) != 2 {
		p.failAt(rightLoc.Pos, pgerr.SyntaxError, "wrong number of parameters on right side of OVERLAPS expression")
	}
	return &ast.FuncCall{
		Loc: loc, Name: ast.Name{{Name: "overlaps", Pos: loc.Pos}}, Syntax: ast.FuncOverlaps,
		Args: append(append([]ast.Expr(nil), row.Elems...), right...),
	}
}

// rowElems reads ( [expr, ...] ) after ROW.
func (p *parser) rowElems() []ast.Expr {
	p.expect('(')
	if p.accept(')') {
		return nil
	}
	items := p.exprList()
	p.expect(')')
	return items
}
