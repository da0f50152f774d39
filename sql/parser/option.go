package parser

import "github.com/paimon-sql/paimon-sql/sql/ast"

// options parses a parenthesised list of name [= value] (reloptions). Lake
// keys may be dotted, have dashes, or be strings.
func (p *parser) options() []*ast.Option { return parens(p, p.lakeOption) }

// optionsOrEmpty also takes an empty list, which Flink writes.
func (p *parser) optionsOrEmpty() []*ast.Option {
	if p.is('(') && p.peek(1).kind == ')' {
		p.next()
		p.next()
		return nil
	}
	return p.options()
}

func (p *parser) lakeOption() *ast.Option {
	o := &ast.Option{Loc: p.loc(), Name: p.optionKey()}
	if p.accept('=') {
		o.Value = p.defArg()
	}
	return o
}

// optionKey reads a key: a string, or words joined by dots and dashes.
func (p *parser) optionKey() string {
	if p.is(tString) {
		return p.stringConst()
	}
	key := p.colLabel().Name
	for p.err == nil {
		switch {
		case p.accept('.'):
			key += "." + p.colLabel().Name
		case p.is('-') && (p.peek(1).isLabel() || p.peek(1).kind == tInt):
			p.next()
			key += "-" + p.tok().text
			p.next()
		default:
			return key
		}
	}
	return key
}

// defArg parses the value of an option (def_arg): a number, a string, an
// operator, a reserved word, or what can be read as a type.
func (p *parser) defArg() ast.OptionValue {
	loc := p.loc()
	t := p.tok()
	switch {
	case t.kind == tString:
		p.next()
		return &ast.String{Loc: loc, Value: t.text, Kind: t.str}
	case t.kind == tInt, t.kind == tFloat,
		(t.kind == '-' || t.kind == '+') && (p.peek(1).kind == tInt || p.peek(1).kind == tFloat):
		return p.numericOnly()
	case t.kind == tKeyword && t.text == "operator" && p.peek(1).kind == '(':
		op := p.operatorCall()
		text := "OPERATOR("
		for _, s := range op.Schema {
			text += s.String() + "."
		}
		return &ast.OptionWord{Loc: loc, Text: text + op.Name + ")"}
	case t.isKw("array") && p.peek(1).kind == '[':
		return p.arrayExpr() // Trino
	case t.isOperator():
		p.next()
		return &ast.OptionWord{Loc: loc, Text: t.text}
	case t.kind == tKeyword && (t.class == kwReserved || t.text == "none"):
		p.next()
		return &ast.OptionWord{Loc: loc, Text: t.text}
	case t.kind == tIdent && t.quoted && !(p.peek(1).kind == '.' || p.peek(1).kind == '('):
		// "quoted" values of the lake dialects are text.
		p.next()
		return &ast.String{Loc: loc, Value: t.text}
	}
	ty := p.funcType()
	if ty == nil || p.err != nil {
		return nil
	}
	if len(ty.Name) == 1 && !ty.System && !ty.SetOf && !ty.PctType && ty.Mods == nil && ty.Bounds == nil &&
		ty.Args == nil && ty.Fields == nil {
		return &ast.OptionWord{Loc: loc, Text: ty.Name[0].Name}
	}
	return &ast.OptionType{Loc: loc, Type: ty}
}

// definition parses ( label [= value], ... ).
func (p *parser) definition() []*ast.Option {
	return parens(p, func() *ast.Option {
		o := &ast.Option{Loc: p.loc(), Name: p.colLabel().Name}
		if p.accept('=') {
			o.Value = p.defArg()
		}
		return o
	})
}

// utilityOptions parses the options of EXPLAIN, VACUUM and so on: words
// with an optional word or number.
func (p *parser) utilityOptions() []*ast.Option {
	return parens(p, func() *ast.Option {
		o := &ast.Option{Loc: p.loc()}
		switch {
		case p.acceptKw("analyze"), p.acceptKw("analyse"):
			o.Name = "analyze"
		default:
			o.Name = p.nonReservedWord().Name
		}
		if !p.is(',') && !p.is(')') {
			o.Value = p.wordOrNumber()
		}
		return o
	})
}

// foreignOptions parses OPTIONS (name 'value', ...).
func (p *parser) foreignOptions() []*ast.Option {
	return parens(p, func() *ast.Option {
		o := &ast.Option{Loc: p.loc()}
		if p.is(tString) {
			o.Name = p.stringConst() // Spark
		} else {
			o.Name = p.optionKey()
		}
		p.accept('=')
		s := &ast.String{Loc: p.loc()}
		s.Value = p.stringConst()
		o.Value = s
		return o
	})
}

// optComment parses COMMENT 'text' of the lake dialects.
func (p *parser) optComment() *string {
	if !p.kw("comment") || p.peek(1).kind != tString && p.peek(1).kind != '=' {
		return nil
	}
	p.next()
	p.accept('=')
	s := p.stringConst()
	return &s
}
