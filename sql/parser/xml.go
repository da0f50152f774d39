package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// xmlFunc parses one of the SQL/XML functions. They are kept only to be
// printed and refused.
func (p *parser) xmlFunc() ast.Expr {
	x := &ast.XMLExpr{Loc: p.loc(), Func: upper(p.tok().text)}
	p.next()
	p.expect('(')
	switch x.Func {
	case "XMLCONCAT":
		x.Args = p.exprList()
	case "XMLELEMENT":
		p.xmlElement(x)
	case "XMLPI":
		p.expectKw("name")
		x.Label = p.colLabel()
		if p.accept(',') {
			x.Args = append(x.Args, p.expr())
		}
	case "XMLEXISTS":
		x.Args = append(x.Args, p.primary())
		x.Args = append(x.Args, p.xmlPassing())
	case "XMLFOREST":
		x.Attrs = list(p, p.xmlAttr)
	case "XMLPARSE", "XMLSERIALIZE":
		p.xmlDocument(x)
		x.Args = append(x.Args, p.expr())
		if x.Func == "XMLSERIALIZE" {
			p.expectKw("as")
			x.Type = p.simpleType()
		} else if p.kw("preserve") || p.kw("strip") {
			x.Words = append(x.Words, upper(p.tok().text)+" WHITESPACE")
			p.next()
			p.expectKw("whitespace")
		}
	case "XMLROOT":
		p.xmlRoot(x)
	}
	p.expect(')')
	return x
}

func (p *parser) xmlElement(x *ast.XMLExpr) {
	p.expectKw("name")
	x.Label = p.colLabel()
	if !p.accept(',') {
		return
	}
	if p.kw("xmlattributes") && p.peek(1).kind == '(' {
		p.next()
		x.Attrs = parens(p, p.xmlAttr)
		if !p.accept(',') {
			return
		}
	}
	x.Args = p.exprList()
}

func (p *parser) xmlAttr() *ast.XMLAttr {
	a := &ast.XMLAttr{Loc: p.loc(), Expr: p.expr()}
	if p.acceptKw("as") {
		a.Name = p.colLabel()
	}
	return a
}

func (p *parser) xmlDocument(x *ast.XMLExpr) {
	if !p.kw("document") && !p.kw("content") {
		p.syntaxError()
		return
	}
	x.Words = append(x.Words, upper(p.tok().text))
	p.next()
}

func (p *parser) xmlRoot(x *ast.XMLExpr) {
	x.Args = append(x.Args, p.expr())
	p.expect(',')
	p.expectKw("version")
	if p.acceptKws("no value") {
		x.Words = append(x.Words, "VERSION NO VALUE")
	} else {
		x.Args = append(x.Args, p.expr())
	}
	if p.accept(',') {
		p.expectKw("standalone")
		switch {
		case p.acceptKws("no value"):
			x.Words = append(x.Words, "STANDALONE NO VALUE")
		case p.acceptKw("no"):
			x.Words = append(x.Words, "STANDALONE NO")
		default:
			p.expectKw("yes")
			x.Words = append(x.Words, "STANDALONE YES")
		}
	}
}

// xmlPassing parses PASSING [BY REF|VALUE] x [BY REF|VALUE].
func (p *parser) xmlPassing() ast.Expr {
	p.expectKw("passing")
	p.xmlMechanism()
	e := p.primary()
	p.xmlMechanism()
	return e
}

func (p *parser) xmlMechanism() {
	if p.kw("by") && (p.kwAt(1, "ref") || p.kwAt(1, "value")) {
		p.next()
		p.next()
	}
}

// xmlTable parses XMLTABLE(...).
func (p *parser) xmlTable(lateral bool) ast.TableRef {
	x := &ast.XMLTable{Loc: p.loc(), Lateral: lateral}
	p.next()
	p.expect('(')
	if p.kw("xmlnamespaces") && p.peek(1).kind == '(' {
		p.next()
		x.Namespaces = parens(p, p.xmlNamespace)
		p.expect(',')
	}
	x.Row = p.primary()
	x.Document = p.xmlPassing()
	p.expectKw("columns")
	x.Columns = list(p, p.xmlColumn)
	p.expect(')')
	x.Alias = p.optAlias()
	return x
}

func (p *parser) xmlNamespace() *ast.XMLAttr {
	a := &ast.XMLAttr{Loc: p.loc()}
	if p.acceptKw("default") {
		a.Expr = p.bExpr()
		return a
	}
	a.Expr = p.bExpr()
	p.expectKw("as")
	a.Name = p.colLabel()
	return a
}

func (p *parser) xmlColumn() *ast.XMLColumn {
	c := &ast.XMLColumn{Loc: p.loc(), Name: p.colID()}
	if p.acceptKw("for") {
		p.expectKw("ordinality")
		return c
	}
	c.Type = p.typeName()
	seen := map[string]bool{}
	for p.err == nil && !p.is(',') && !p.is(')') {
		o := &ast.XMLColumnOption{Loc: p.loc()}
		switch {
		case p.acceptKws("not null"):
			o.Name = "not null"
		case p.acceptKw("null"):
			o.Name = "null"
		case p.acceptKw("default"):
			o.Name, o.Value = "default", p.bExpr()
		case p.is(tIdent):
			o.Name = p.tok().text
			p.next()
			o.Value = p.bExpr()
			if o.Name != "path" && p.err == nil {
				p.failAt(o.Pos, pgerr.SyntaxError, "unrecognized column option \"%s\"", o.Name)
			}
		default:
			p.syntaxError()
		}
		p.xmlColumnRepeated(c, o, seen)
		c.Options = append(c.Options, o)
	}
	return c
}

func (p *parser) xmlColumnRepeated(c *ast.XMLColumn, o *ast.XMLColumnOption, seen map[string]bool) {
	kind := o.Name
	if kind == "not null" {
		kind = "null"
	}
	if seen[kind] && p.err == nil {
		switch kind {
		case "default":
			p.failAt(o.Pos, pgerr.SyntaxError, "only one DEFAULT value is allowed")
		case "path":
			p.failAt(o.Pos, pgerr.SyntaxError, "only one PATH value per column is allowed")
		default:
			p.failAt(o.Pos, pgerr.SyntaxError, "conflicting or redundant NULL / NOT NULL declarations for column \"%s\"", c.Name.Name)
		}
	}
	seen[kind] = true
}
