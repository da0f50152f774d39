package parser

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// typeName parses a type (Typename).
func (p *parser) typeName() *ast.TypeName {
	if !p.enter() {
		return nil
	}
	defer p.leave()
	loc := p.loc()
	setOf := p.acceptKw("setof")
	t := p.simpleType()
	if t == nil || p.err != nil {
		return t
	}
	t.Loc, t.SetOf = loc, setOf
	if p.acceptKw("array") {
		t.Bounds = []int{-1}
		if p.accept('[') {
			t.Bounds[0] = p.intConst()
			p.expect(']')
		}
		return t
	}
	for p.err == nil && p.accept('[') {
		n := -1
		if !p.is(']') {
			n = p.intConst()
		}
		p.expect(']')
		t.Bounds = append(t.Bounds, n)
	}
	return t
}

// funcType parses a type of a function's signature, which may be
// [SETOF] table.column%TYPE.
func (p *parser) funcType() *ast.TypeName {
	save := p.i
	loc := p.loc()
	setOf := p.acceptKw("setof")
	if p.tok().isTypeFuncName() && p.peek(1).kind == '.' {
		name := ast.Name{p.typeFuncName()}
		for p.err == nil && p.accept('.') {
			name = append(name, p.colLabel())
		}
		if p.is('%') {
			p.next()
			p.expectKw("type")
			return &ast.TypeName{Loc: loc, Name: name, SetOf: setOf, PctType: true}
		}
		if p.err != nil {
			return nil
		}
		p.i = save
		return p.typeName()
	}
	p.i = save
	return p.typeName()
}

// simpleType parses a type without SETOF and array bounds.
func (p *parser) simpleType() *ast.TypeName {
	t := p.tok()
	if t.kind == tKeyword {
		if ty, ok := p.keywordType(); ok {
			return ty
		}
	}
	if ty := p.nestedType(); ty != nil {
		return ty
	}
	if !t.isTypeFuncName() {
		p.syntaxError()
		return nil
	}
	ty := &ast.TypeName{Loc: p.loc(), Name: ast.Name{p.typeFuncName()}}
	for p.err == nil && p.accept('.') {
		ty.Name = append(ty.Name, p.colLabel())
	}
	if p.is('(') {
		ty.Mods = parens(p, p.expr)
	}
	return ty
}

func systemType(loc ast.Loc, name string, mods ...ast.Expr) *ast.TypeName {
	return &ast.TypeName{Loc: loc, Name: ast.Name{{Name: name, Pos: loc.Pos}}, System: true, Mods: mods}
}

// keywordType parses the types that have a grammar of their own.
func (p *parser) keywordType() (*ast.TypeName, bool) {
	loc := p.loc()
	word := p.tok().text
	switch word {
	case "int", "integer":
		p.next()
		return systemType(loc, "int4"), true
	case "smallint":
		p.next()
		return systemType(loc, "int2"), true
	case "bigint":
		p.next()
		return systemType(loc, "int8"), true
	case "real":
		p.next()
		return systemType(loc, "float4"), true
	case "boolean":
		p.next()
		return systemType(loc, "bool"), true
	case "float":
		p.next()
		return p.floatType(loc), true
	case "double":
		if !p.kwAt(1, "precision") {
			return nil, false
		}
		p.next()
		p.next()
		return systemType(loc, "float8"), true
	case "decimal", "dec", "numeric":
		p.next()
		ty := systemType(loc, "numeric")
		if p.is('(') {
			ty.Mods = parens(p, p.expr)
		}
		return ty, true
	case "bit":
		p.next()
		ty := systemType(loc, "bit")
		if p.acceptKw("varying") {
			ty = systemType(loc, "varbit")
		}
		if p.is('(') {
			ty.Mods = parens(p, p.expr)
		} else if ty.Name[0].Name == "bit" {
			ty.Mods = []ast.Expr{&ast.Number{Loc: loc, Text: "1", Integer: true}}
		}
		return ty, true
	case "character", "char", "varchar", "nchar", "national":
		return p.charType(loc), true
	case "timestamp", "time":
		return p.timeType(loc), true
	case "interval":
		p.next()
		ty := systemType(loc, "interval")
		if p.accept('(') {
			ty.Mods = []ast.Expr{p.precision()}
			p.expect(')')
			return ty, true
		}
		p.intervalFields(ty)
		return ty, true
	}
	return nil, false
}

// precision reads the integer of a parenthesised precision.
func (p *parser) precision() ast.Expr {
	if !p.is(tInt) {
		p.syntaxError()
		return nil
	}
	return p.number()
}

func (p *parser) floatType(loc ast.Loc) *ast.TypeName {
	if !p.accept('(') {
		return systemType(loc, "float8")
	}
	pos := p.pos()
	n := p.intConst()
	p.expect(')')
	switch {
	case p.err != nil:
	case n < 1:
		p.failAt(pos, pgerr.InvalidParameterValue, "precision for type float must be at least 1 bit")
	case n <= 24:
		return systemType(loc, "float4")
	case n > 53:
		p.failAt(pos, pgerr.InvalidParameterValue, "precision for type float must be less than 54 bits")
	}
	return systemType(loc, "float8")
}

func (p *parser) charType(loc ast.Loc) *ast.TypeName {
	name := "bpchar"
	switch {
	case p.acceptKw("varchar"):
		name = "varchar"
	default:
		if p.acceptKw("national") && !p.kw("character") && !p.kw("char") {
			p.syntaxError()
			return nil
		}
		p.next()
		if p.acceptKw("varying") {
			name = "varchar"
		}
	}
	ty := systemType(loc, name)
	if p.accept('(') {
		ty.Mods = []ast.Expr{p.precision()}
		p.expect(')')
	} else if name == "bpchar" {
		ty.Mods = []ast.Expr{&ast.Number{Loc: loc, Text: "1", Integer: true}}
	}
	return ty
}

// timeType parses TIME and TIMESTAMP. WITH LOCAL TIME ZONE is Flink's name for
// what PostgreSQL calls WITH TIME ZONE.
func (p *parser) timeType(loc ast.Loc) *ast.TypeName {
	name := p.tok().text
	p.next()
	ty := systemType(loc, name)
	if p.accept('(') {
		ty.Mods = []ast.Expr{p.precision()}
		p.expect(')')
	}
	switch {
	case p.kw("with") && p.kwAt(1, "time"):
		p.next()
		p.expectKws("time zone")
		ty.Name[0].Name = name + "tz"
	case p.kw("with") && p.kwAt(1, "local") && p.kwAt(2, "time"):
		p.next()
		p.next()
		p.expectKws("time zone")
		ty.Name[0].Name = name + "tz"
	case p.acceptKw("without"):
		p.expectKws("time zone")
	}
	return ty
}

// intervalFields parses the optional YEAR TO MONTH and so on of an interval.
func (p *parser) intervalFields(ty *ast.TypeName) {
	rank := func(t *token) int {
		if t.kind == tKeyword {
			switch t.text {
			case "year":
				return 1
			case "month":
				return 2
			case "day":
				return 3
			case "hour":
				return 4
			case "minute":
				return 5
			case "second":
				return 6
			}
		}
		return 0
	}
	from := rank(p.tok())
	if from == 0 {
		return
	}
	ty.Interval = upper(p.tok().text)
	p.next()
	if from == 6 {
		p.secondPrecision(ty)
		return
	}
	if from == 2 || !p.kw("to") {
		return
	}
	p.next()
	to := rank(p.tok())
	if to <= from || from == 1 && to != 2 || from > 1 && to < 4 {
		p.syntaxError()
		return
	}
	ty.Interval += " TO " + upper(p.tok().text)
	p.next()
	if to == 6 {
		p.secondPrecision(ty)
	}
}

func (p *parser) secondPrecision(ty *ast.TypeName) {
	if p.accept('(') {
		ty.Mods = []ast.Expr{p.precision()}
		p.expect(')')
	}
}

// atTypeConst reports whether the current keyword begins a literal such as
// TIMESTAMP '...', CHAR(3) '...' or INTERVAL '...' rather than a name.
func (p *parser) atTypeConst() bool {
	n := p.peek(1)
	switch p.tok().text {
	case "int", "integer", "smallint", "bigint", "real", "boolean":
		return n.kind == tString
	case "float", "decimal", "dec", "numeric", "varchar":
		return n.kind == tString || n.kind == '('
	case "interval":
		return n.kind == tString || n.kind == '('
	case "bit", "char", "character", "nchar":
		return n.kind == tString || n.kind == '(' || n.isKw("varying")
	case "national":
		return n.isKw("char") || n.isKw("character")
	case "double":
		return n.isKw("precision")
	case "time", "timestamp":
		return n.kind == tString || n.kind == '(' || n.isKw("without") || n.isKw("with") && p.kwAt(2, "time")
	}
	return false
}

// typeConst parses such a literal.
func (p *parser) typeConst() ast.Expr {
	loc := p.loc()
	if !p.kw("interval") {
		ty, _ := p.keywordType()
		return p.typedLiteral(loc, ty)
	}
	p.next()
	ty := systemType(loc, "interval")
	if p.accept('(') {
		ty.Mods = []ast.Expr{p.precision()}
		p.expect(')')
		return p.typedLiteral(loc, ty)
	}
	lit := &ast.TypedLiteral{Loc: loc, Type: ty, Value: p.stringConst()}
	p.intervalFields(ty)
	return lit
}

// nestedType parses the lake engines' array<T>, map<K, V>, multiset<T>,
// row<...> and struct<...>, and Flink's row(...). It returns nil when there is
// none: PostgreSQL has no type after which < or, for row, ( could follow.
func (p *parser) nestedType() *ast.TypeName {
	t, open := p.tok(), p.peek(1).kind
	if t.quoted || t.kind != tIdent && t.kind != tKeyword {
		return nil
	}
	ty := &ast.TypeName{Loc: p.loc(), Name: ast.Name{{Name: t.text, Pos: t.pos}}}
	switch t.text {
	case "array", "map", "multiset":
		if open != '<' {
			return nil
		}
		p.next()
		p.next()
		ty.Args = list(p, p.elementType)
		p.closeAngle()
		if want := map[string]int{"array": 1, "map": 2, "multiset": 1}[t.text]; p.err == nil && len(ty.Args) != want {
			p.failAt(t.pos, pgerr.SyntaxError, "type %s takes %d type arguments", t.text, want)
		}
		return ty
	case "row", "struct":
		if open == tNotEquals && p.peek(1).text == "<>" {
			p.next()
			p.next()
			return ty
		}
		if open != '<' && (open != '(' || t.text != "row") {
			return nil
		}
		p.next()
		p.next()
		ty.Fields = list(p, p.typeField)
		if open == '(' {
			p.expect(')')
		} else {
			p.closeAngle()
		}
		return ty
	}
	return nil
}

// elementType parses a type argument, which may be NOT NULL or NULL.
func (p *parser) elementType() *ast.TypeName {
	ty := p.typeName()
	if ty == nil || p.err != nil {
		return ty
	}
	if p.acceptKws("not null") {
		ty.NotNull = true
	} else {
		p.acceptKw("null")
	}
	return ty
}

func (p *parser) typeField() *ast.TypeField {
	f := &ast.TypeField{Loc: p.loc(), Name: p.colLabel()}
	p.accept(':')
	f.Type = p.elementType()
	switch {
	case p.acceptKw("comment"):
		f.Comment = p.stringConst()
	case p.is(tString): // Flink: the bare string is a comment
		f.Comment = p.stringConst()
	}
	return f
}

// closeAngle takes one >, cutting it off an operator such as >> if need be.
func (p *parser) closeAngle() {
	t := p.tok()
	if t.kind == '>' {
		p.next()
		return
	}
	if t.kind != tOp && t.kind != tGreaterEquals || !strings.HasPrefix(t.text, ">") {
		p.syntaxError()
		return
	}
	t.text = t.text[1:]
	t.pos++
	t.kind = tOp
	if t.text == ">" || t.text == "=" {
		t.kind = tokKind(t.text[0])
	}
}
