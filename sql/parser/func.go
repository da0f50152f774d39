package parser

import "github.com/paimon-sql/paimon-sql/sql/ast"

var sqlValues = map[string]ast.SQLValueKind{
	"current_date": ast.CurrentDate, "current_time": ast.CurrentTime,
	"current_timestamp": ast.CurrentTimestamp, "localtime": ast.LocalTime,
	"localtimestamp": ast.LocalTimestamp, "current_role": ast.CurrentRole,
	"current_user": ast.CurrentUser, "session_user": ast.SessionUser, "user": ast.User,
	"current_catalog": ast.CurrentCatalog, "current_schema": ast.CurrentSchema,
}

// commonFunc parses the functions with a notation of their own
// (func_expr_common_subexpr). It returns false when the current token begins
// none: most of their words are names unless a parenthesis follows.
func (p *parser) commonFunc() (ast.Expr, bool) {
	t := p.tok()
	loc := p.loc()
	if t.kind != tKeyword {
		return nil, false
	}
	if kind, ok := sqlValues[t.text]; ok {
		// current_schema is a function's name too: current_schema() is a call.
		if kind == ast.CurrentSchema && p.peek(1).kind == '(' {
			return nil, false
		}
		return p.sqlValue(kind), true
	}
	if t.text == "collation" && p.kwAt(1, "for") {
		p.next()
		p.next()
		p.expect('(')
		arg := p.expr()
		p.expect(')')
		return special(loc, "pg_collation_for", ast.FuncCollationFor, arg), true
	}
	if p.peek(1).kind != '(' {
		if t.text == "cast" || t.text == "grouping" && t.class == kwReserved {
			p.next()
			p.syntaxError()
			return nil, true
		}
		return nil, false
	}
	switch t.text {
	case "cast", "treat":
		style := ast.CastCall
		if t.text == "treat" {
			style = ast.CastTreat
		}
		return p.castCall(style), true
	case "coalesce", "greatest", "least", "nullif":
		return p.special(), true
	case "extract", "normalize", "overlay", "position", "substring", "trim":
		p.next()
		p.next()
		var e ast.Expr
		switch t.text {
		case "extract":
			e = p.extract(loc)
		case "normalize":
			e = p.normalize(loc)
		case "overlay":
			e = p.overlay(loc)
		case "position":
			e = p.position(loc)
		case "substring":
			e = p.substring(loc)
		default:
			e = p.trim(loc)
		}
		p.expect(')')
		return e, true
	case "xmlconcat", "xmlelement", "xmlexists", "xmlforest", "xmlparse", "xmlpi", "xmlroot", "xmlserialize":
		return p.xmlFunc(), true
	}
	return nil, false
}

func special(loc ast.Loc, name string, syntax ast.FuncSyntax, args ...ast.Expr) *ast.FuncCall {
	return &ast.FuncCall{Loc: loc, Name: ast.Name{{Name: name, Pos: loc.Pos}}, Syntax: syntax, Args: args}
}

func (p *parser) sqlValue(kind ast.SQLValueKind) ast.Expr {
	v := &ast.SQLValue{Loc: p.loc(), Kind: kind, Precision: -1}
	p.next()
	switch kind {
	case ast.CurrentTime, ast.CurrentTimestamp, ast.LocalTime, ast.LocalTimestamp:
		if p.accept('(') {
			v.Precision = p.intConst()
			p.expect(')')
		}
	}
	return v
}

// castCall parses CAST(x AS t) from its word.
func (p *parser) castCall(style ast.CastStyle) ast.Expr {
	c := &ast.Cast{Loc: p.loc(), Style: style}
	p.next()
	p.expect('(')
	c.Expr = p.expr()
	p.expectKw("as")
	c.Type = p.typeName()
	p.expect(')')
	return c
}

func (p *parser) special() ast.Expr {
	s := &ast.Special{Loc: p.loc()}
	word := p.tok().text
	p.next()
	switch word {
	case "nullif":
		s.Kind = ast.NullIf
		p.expect('(')
		s.Args = append(s.Args, p.expr())
		p.expect(',')
		s.Args = append(s.Args, p.expr())
		p.expect(')')
		return s
	case "greatest":
		s.Kind = ast.Greatest
	case "least":
		s.Kind = ast.Least
	}
	s.Args = parens(p, p.expr)
	return s
}

// extract parses field FROM x.
func (p *parser) extract(loc ast.Loc) ast.Expr {
	field := &ast.String{Loc: p.loc(), Value: p.tok().text}
	switch t := p.tok(); t.kind {
	case tIdent, tString:
		p.next()
	case tKeyword:
		switch t.text {
		case "year", "month", "day", "hour", "minute", "second":
			p.next()
		default:
			p.syntaxError()
		}
	default:
		p.syntaxError()
	}
	p.expectKw("from")
	return special(loc, "extract", ast.FuncExtract, field, p.expr())
}

func (p *parser) normalize(loc ast.Loc) ast.Expr {
	f := special(loc, "normalize", ast.FuncNormalize, p.expr())
	if p.accept(',') {
		f.Args = append(f.Args, &ast.String{Loc: p.loc(), Value: p.normalForm()})
	}
	return f
}

func (p *parser) overlay(loc ast.Loc) ast.Expr {
	f := special(loc, "overlay", ast.FuncNormal)
	if p.is(')') {
		return f
	}
	f.Args = append(f.Args, p.funcArg())
	if _, named := f.Args[0].(*ast.NamedArg); !named && p.acceptKw("placing") {
		f.Syntax = ast.FuncOverlay
		f.Args = append(f.Args, p.expr())
		p.expectKw("from")
		f.Args = append(f.Args, p.expr())
		if p.acceptKw("for") {
			f.Args = append(f.Args, p.expr())
		}
		return f
	}
	p.moreArgs(f)
	return f
}

func (p *parser) moreArgs(f *ast.FuncCall) {
	for p.err == nil && p.accept(',') {
		f.Args = append(f.Args, p.funcArg())
	}
}

// position parses sub IN s; the function has them the other way round.
func (p *parser) position(loc ast.Loc) ast.Expr {
	sub := p.bExpr()
	p.expectKw("in")
	return special(loc, "position", ast.FuncPosition, p.bExpr(), sub)
}

func (p *parser) substring(loc ast.Loc) ast.Expr {
	f := special(loc, "substring", ast.FuncNormal)
	if p.is(')') {
		return f
	}
	var arg ast.Expr
	if n := p.peek(1); n.kind == tArrow || n.kind == tColonEquals {
		arg = p.funcArg()
	} else {
		arg = p.exprPrec(precNone, modeStop)
	}
	f.Args = append(f.Args, arg)
	if _, named := arg.(*ast.NamedArg); named {
		p.moreArgs(f)
		return f
	}
	switch {
	case p.acceptKw("from"):
		f.Syntax = ast.FuncSubstring
		f.Args = append(f.Args, p.expr())
		if p.acceptKw("for") {
			f.Args = append(f.Args, p.expr())
		}
	case p.acceptKw("for"):
		// A lone FOR has only the integer form, so PostgreSQL casts.
		f.Syntax = ast.FuncSubstring
		n := p.expr()
		if p.acceptKw("from") {
			f.Args = append(f.Args, p.expr(), n)
			return f
		}
		int4 := &ast.TypeName{Loc: loc, Name: ast.Name{{Name: "int4", Pos: loc.Pos}}, System: true}
		f.Args = append(f.Args, &ast.Number{Loc: loc, Text: "1", Integer: true},
			&ast.Cast{Loc: loc, Expr: n, Type: int4})
	case p.acceptKw("similar"):
		f.Syntax = ast.FuncSimilar
		f.Args = append(f.Args, p.expr())
		p.expectKw("escape")
		f.Args = append(f.Args, p.expr())
	default:
		p.moreArgs(f)
	}
	return f
}

func (p *parser) trim(loc ast.Loc) ast.Expr {
	f := special(loc, "btrim", ast.FuncTrim)
	switch {
	case p.acceptKw("leading"):
		f.Name[0].Name = "ltrim"
	case p.acceptKw("trailing"):
		f.Name[0].Name = "rtrim"
	default:
		p.acceptKw("both")
	}
	if p.acceptKw("from") {
		f.Args = p.exprList()
		return f
	}
	first := p.expr()
	if p.acceptKw("from") {
		f.Args = append(p.exprList(), first)
		return f
	}
	f.Args = append(f.Args, first)
	for p.err == nil && p.accept(',') {
		f.Args = append(f.Args, p.expr())
	}
	return f
}
