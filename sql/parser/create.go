package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// create parses CREATE of everything there is a tree for, and leaves the rest
// to the rules.
func (p *parser) create() ast.Stmt {
	start := p.i
	p.next()
	orReplace := p.acceptKws("or replace")
	pers := p.optTemp()
	switch {
	case p.kw("table"):
		return p.createTable(pers, orReplace)
	case p.kw("view"), p.kw("recursive"):
		return p.createView(pers, orReplace)
	case orReplace && pers == ast.Permanent && (p.kw("function") || p.kw("procedure")):
		return p.createFunction(true)
	case orReplace && pers == ast.Permanent:
		p.i = start
		return p.unsupported()
	case !orReplace && p.kw("sequence"):
		return p.createSequence(pers)
	case !orReplace && p.kw("materialized") && pers != ast.Temporary:
		return p.createMatView(pers)
	case pers != ast.Permanent:
		p.syntaxError()
		return nil
	case p.kw("schema"):
		return p.createSchema()
	case p.kw("index"), p.kw("unique"):
		return p.createIndex()
	case p.kw("function"), p.kw("procedure"):
		return p.createFunction(false)
	case p.kw("role"), p.kw("group"), p.kw("user") && !p.userMapping():
		return p.createRole()
	case p.kw("database"):
		return p.createDatabase()
	}
	p.i = start
	return p.unsupported()
}

func (p *parser) createView(pers ast.Persistence, orReplace bool) ast.Stmt {
	// The grammar takes UNLOGGED; the binder refuses it.
	v := &ast.CreateView{Persistence: pers, OrReplace: orReplace}
	v.Recursive = p.acceptKw("recursive")
	p.expectKw("view")
	v.IfNotExists = p.ifNotExists()
	v.Name = p.qualifiedName()
	if v.Recursive {
		v.Columns = parens(p, p.colID)
	} else {
		v.Columns = p.optColumns()
	}
	v.Comment = p.optComment()
	if p.kw("with") {
		p.next()
		v.Options = p.options()
	}
	p.expectKw("as")
	v.Query = p.selectStmt()
	if p.kw("with") {
		pos := p.pos()
		p.next()
		v.Check = "CASCADED"
		if p.acceptKw("local") {
			v.Check = "LOCAL"
		} else {
			p.acceptKw("cascaded")
		}
		p.expectKws("check option")
		if v.Recursive && p.err == nil {
			p.failAt(pos, pgerr.FeatureNotSupported, "WITH CHECK OPTION not supported on recursive views")
		}
	}
	return v
}

func (p *parser) createMatView(pers ast.Persistence) ast.Stmt {
	c := &ast.CreateTableAs{Materialized: true, Persistence: pers}
	p.next()
	p.expectKw("view")
	c.IfNotExists = p.ifNotExists()
	c.Name = p.qualifiedName()
	c.Columns = p.optColumns()
	if p.acceptKw("using") {
		c.Using = p.colID()
	}
	if p.kw("with") {
		p.next()
		c.Options = p.options()
	}
	if p.acceptKw("tablespace") {
		c.Tablespace = p.colID()
	}
	p.expectKw("as")
	if q := p.selectStmt(); q != nil {
		c.As = q
	}
	c.NoData = p.withData()
	return c
}

func (p *parser) createSequence(pers ast.Persistence) ast.Stmt {
	s := &ast.CreateSequence{Persistence: pers}
	p.next()
	s.IfNotExists = p.ifNotExists()
	s.Name = p.qualifiedName()
	s.Options = p.seqOptions()
	return s
}

// seqOptions parses any number of sequence options.
func (p *parser) seqOptions() []*ast.SeqOption {
	var out []*ast.SeqOption
	for p.err == nil {
		o := p.seqOption()
		if o == nil {
			break
		}
		out = append(out, o)
	}
	return out
}

func (p *parser) seqOptionsInParens() []*ast.SeqOption {
	p.expect('(')
	out := p.seqOptions()
	if len(out) == 0 {
		p.syntaxError()
	}
	p.expect(')')
	return out
}

// seqOption parses one sequence option, and returns nil when none is next.
func (p *parser) seqOption() *ast.SeqOption {
	o := &ast.SeqOption{Loc: p.loc()}
	t := p.tok()
	if t.kind != tKeyword {
		return nil
	}
	switch t.text {
	case "as":
		p.next()
		o.Kind, o.Type = "AS", p.simpleType()
	case "cache", "maxvalue", "minvalue":
		p.next()
		o.Kind, o.Value = upper(t.text), p.numericOnly()
	case "cycle":
		p.next()
		o.Kind = "CYCLE"
	case "no":
		p.next()
		if !p.kw("cycle") && !p.kw("maxvalue") && !p.kw("minvalue") {
			p.syntaxError()
			return nil
		}
		o.Kind = "NO " + upper(p.tok().text)
		p.next()
	case "increment":
		p.next()
		p.acceptKw("by")
		o.Kind, o.Value = "INCREMENT", p.numericOnly()
	case "start":
		p.next()
		p.acceptKw("with")
		o.Kind, o.Value = "START", p.numericOnly()
	case "restart":
		p.next()
		o.Kind = "RESTART"
		if p.acceptKw("with") || p.is(tInt) || p.is(tFloat) || p.is('-') || p.is('+') {
			o.Value = p.numericOnly()
		}
	case "owned":
		p.next()
		p.expectKw("by")
		o.Kind, o.Name = "OWNED BY", p.anyName()
	case "sequence":
		p.next()
		p.expectKw("name")
		o.Kind, o.Name = "SEQUENCE NAME", p.anyName()
	default:
		return nil
	}
	return o
}

// createIndex parses CREATE [UNIQUE] INDEX.
func (p *parser) createIndex() ast.Stmt {
	x := &ast.CreateIndex{Unique: p.acceptKw("unique")}
	p.expectKw("index")
	x.Concurrently = p.acceptKw("concurrently")
	x.IfNotExists = p.ifNotExists()
	if x.IfNotExists || !p.kw("on") {
		x.Name = p.colID()
	}
	p.expectKw("on")
	x.Table = p.relationExpr()
	if p.acceptKw("using") {
		x.Method = p.colID()
	}
	x.Elems = parens(p, p.indexElem)
	if p.acceptKw("include") {
		x.Include = parens(p, p.indexElem)
	}
	x.NullsNotDistinct = p.nullsDistinct()
	if p.kw("with") {
		p.next()
		x.Options = p.options()
	}
	if p.acceptKw("tablespace") {
		x.Tablespace = p.colID()
	}
	if p.acceptKw("where") {
		x.Where = p.expr()
	}
	return x
}

func (p *parser) createSchema() ast.Stmt {
	s := &ast.CreateSchema{}
	p.next()
	s.IfNotExists = p.ifNotExists()
	elements := true
	if !p.kw("authorization") {
		s.Path = p.qualifiedName()
		s.Name = s.Path[len(s.Path)-1]
	}
	if p.acceptKw("authorization") {
		s.Authorization = p.roleSpec()
	}
	s.Comment = p.optComment()
	if p.kw("with") || p.word("dbproperties") {
		p.next()
		p.acceptWord("dbproperties")
		s.Options = p.options()
		elements = false
	}
	pos := p.pos()
	for p.err == nil && elements {
		e := p.schemaElement()
		if e == nil {
			break
		}
		s.Stmts = append(s.Stmts, e)
	}
	if s.IfNotExists && len(s.Stmts) > 0 && p.err == nil {
		p.failAt(pos, pgerr.FeatureNotSupported, "CREATE SCHEMA IF NOT EXISTS cannot include schema elements")
	}
	return s
}

// schemaElement parses a statement inside CREATE SCHEMA, or returns nil.
func (p *parser) schemaElement() ast.Stmt {
	start := p.i
	switch {
	case p.kw("grant"):
		return p.grant()
	case !p.kw("create"):
		return nil
	}
	p.inSchemaElem = true
	s := p.create()
	p.inSchemaElem = false
	if p.err != nil {
		return nil
	}
	switch s := s.(type) {
	case *ast.CreateTable, *ast.CreateIndex, *ast.CreateSequence, *ast.CreateView:
		return s
	case *ast.Unsupported:
		if s.Kind == "CREATE TRIGGER" {
			p.setSpan(s, start)
			return s
		}
	}
	p.i = start + 1
	p.syntaxError()
	return nil
}

func (p *parser) createDatabase() ast.Stmt {
	p.next()
	if p.lakeDatabase() {
		// The lake engines' database is a schema here.
		p.i--
		return p.createSchema()
	}
	s := &ast.CreateDatabase{IfNotExists: p.ifNotExists()}
	s.Name = p.colID()
	s.Options = p.databaseOptions()
	return s
}

// lakeDatabase reports whether options only the lake engines know follow
// CREATE DATABASE [IF NOT EXISTS] name.
func (p *parser) lakeDatabase() bool {
	n := 0
	if p.kw("if") && p.kwAt(1, "not") {
		n = 3
	}
	for p.peek(n).isLabel() && p.peek(n+1).kind == '.' {
		n += 2
	}
	if n > 3 || n == 2 {
		return true
	}
	t := p.peek(n + 1)
	return t.isKw("comment") || t.isWord("dbproperties") || t.isKw("with") && p.peek(n+2).kind == '('
}

// databaseOptions parses [WITH] name [=] value ...
func (p *parser) databaseOptions() []*ast.Option {
	if p.kw("with") {
		p.next()
	}
	var out []*ast.Option
	for p.err == nil {
		o := &ast.Option{Loc: p.loc()}
		t := p.tok()
		switch {
		case t.kind == tIdent, t.isKw("encoding"), t.isKw("location"), t.isKw("owner"), t.isKw("tablespace"), t.isKw("template"):
			o.Name = t.text
			p.next()
		case t.isKw("connection"):
			p.next()
			p.expectKw("limit")
			o.Name = "connection_limit"
		default:
			return out
		}
		p.accept('=')
		if !p.acceptKw("default") {
			o.Value = p.wordOrNumber()
		}
		out = append(out, o)
	}
	return out
}

// createFunction parses CREATE FUNCTION or PROCEDURE.
func (p *parser) createFunction(orReplace bool) ast.Stmt {
	f := &ast.CreateFunction{OrReplace: orReplace, Procedure: p.kw("procedure")}
	p.next()
	f.IfNotExists = p.ifNotExists()
	f.Name = p.funcName()
	p.expect('(')
	if !p.is(')') {
		f.Params = list(p, p.paramWithDefault)
	}
	p.expect(')')
	if !f.Procedure && p.acceptKw("returns") {
		if p.kw("table") {
			p.next()
			f.ReturnsTable = parens(p, func() *ast.FuncParam {
				return &ast.FuncParam{Loc: p.loc(), Name: p.typeFuncName(), Type: p.funcType()}
			})
		} else {
			f.Returns = p.funcType()
		}
	}
	for p.err == nil {
		o := p.funcOption(true)
		if o == nil {
			break
		}
		f.Options = append(f.Options, o)
	}
	p.routineBody(f)
	return f
}

func (p *parser) routineBody(f *ast.CreateFunction) {
	switch {
	case p.acceptKw("return"):
		if p.kw("select") { // Spark
			loc := p.loc()
			f.Return = &ast.Subquery{Loc: loc, Query: p.selectNoParens()}
			return
		}
		f.Return = p.expr()
	case p.acceptKw("begin"):
		p.expectKw("atomic")
		f.IsAtomic = true
		for p.err == nil && !p.kw("end") {
			start := p.i
			var s ast.Stmt
			if p.kw("return") {
				s = p.returnStmt()
			} else if !p.is(';') {
				s = p.statement()
			}
			if s != nil && p.err == nil {
				p.setSpan(s, start)
				f.Atomic = append(f.Atomic, s)
			}
			p.expect(';')
		}
		p.expectKw("end")
	}
}

// returnStmt parses RETURN expr as the query it means.
func (p *parser) returnStmt() ast.Stmt {
	loc := p.loc()
	p.next()
	sel := &ast.Select{Loc: loc}
	sel.Targets = []*ast.Target{{Loc: p.loc(), Expr: p.expr()}}
	q := &ast.Query{Body: sel}
	q.Loc = loc
	return q
}

func (p *parser) paramWithDefault() *ast.FuncParam {
	f := p.funcParam()
	if p.acceptKw("default") || p.accept('=') {
		f.Default = p.expr()
	}
	return f
}

// funcParam parses [mode] [name] [mode] type. Whether a word is the name or
// the type shows in what follows it.
func (p *parser) funcParam() *ast.FuncParam {
	f := &ast.FuncParam{Loc: p.loc()}
	f.Mode = p.paramMode()
	if p.tok().isTypeFuncName() && p.nameThenType(p.peek(1)) && !p.typeContinues() {
		f.Name = p.typeFuncName()
		if f.Mode == "" {
			f.Mode = p.paramMode()
		}
	}
	f.Type = p.funcType()
	return f
}

// nameThenType reports whether t, after a word, shows the word to be a
// parameter's name: a type or a mode begins there.
func (p *parser) nameThenType(t *token) bool {
	if t.isKw("in") || t.isKw("out") || t.isKw("inout") || t.isKw("variadic") {
		return true
	}
	if t.isKw("default") || t.isKw("array") && p.peek(2).kind != '<' || t.isKw("order") {
		return false
	}
	return t.isTypeFuncName() || t.kind == tKeyword && t.class == kwColName
}

// typeContinues reports whether the word and the next are one type of two
// words, DOUBLE PRECISION.
func (p *parser) typeContinues() bool { return p.kw2("double", "precision") }

func (p *parser) paramMode() string {
	switch {
	case p.acceptKw("in"):
		if p.acceptKw("out") {
			return "INOUT"
		}
		return "IN"
	case p.kw("out") || p.kw("inout") || p.kw("variadic"):
		m := upper(p.tok().text)
		p.next()
		return m
	}
	return ""
}

// funcOption parses an option of CREATE FUNCTION or ALTER FUNCTION, and returns
// nil when none is next.
func (p *parser) funcOption(create bool) *ast.FuncOption {
	o := &ast.FuncOption{Loc: p.loc()}
	t := p.tok()
	if t.kind != tKeyword {
		return nil
	}
	switch t.text {
	case "called":
		p.next()
		p.expectKws("on null input")
		o.Name = "CALLED"
	case "returns":
		p.next()
		p.expectKws("null on null input")
		o.Name = "STRICT"
	case "strict", "immutable", "stable", "volatile", "leakproof":
		p.next()
		o.Name = upper(t.text)
	case "not":
		p.next()
		p.expectKw("leakproof")
		o.Name = "NOT LEAKPROOF"
	case "external", "security":
		if p.acceptKw("external") && !p.kw("security") {
			p.syntaxError()
			return nil
		}
		p.next()
		if p.acceptKw("definer") {
			o.Name = "SECURITY DEFINER"
		} else {
			p.expectKw("invoker")
			o.Name = "SECURITY INVOKER"
		}
	case "cost", "rows":
		p.next()
		o.Name, o.Number = upper(t.text), p.numericOnly()
	case "support":
		p.next()
		o.Name, o.Values = "SUPPORT", []string{ast.FormatName(p.anyName())}
	case "parallel":
		p.next()
		o.Name, o.Values = "PARALLEL", []string{p.colID().Name}
	case "set":
		o.Name = "SET"
		p.next()
		set := &ast.Set{}
		set.Loc = o.Loc
		o.Set = p.setRestMore(set)
	case "reset":
		o.Name = "RESET"
		o.Set = p.reset()
	default:
		if !create {
			return nil
		}
		return p.createFuncOption(o)
	}
	return o
}

func (p *parser) createFuncOption(o *ast.FuncOption) *ast.FuncOption {
	switch p.tok().text {
	case "as":
		p.next()
		o.Name = "AS"
		o.Values = []string{p.stringConst()}
		if p.accept(',') {
			o.Values = append(o.Values, p.stringConst())
		}
	case "language":
		p.next()
		o.Name = "LANGUAGE"
		o.Values = []string{p.wordOrString()}
	case "window":
		p.next()
		o.Name = "WINDOW"
	case "transform":
		p.next()
		o.Name = "TRANSFORM"
		o.Types = list(p, func() *ast.TypeName {
			p.expectKws("for type")
			return p.typeName()
		})
	default:
		return nil
	}
	return o
}

// wordOrString parses NonReservedWord_or_Sconst.
func (p *parser) wordOrString() string {
	if p.is(tString) {
		return p.stringConst()
	}
	return p.nonReservedWord().Name
}
