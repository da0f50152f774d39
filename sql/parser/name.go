package parser

import (
	"strconv"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// isColID reports whether t can name a column or table.
func (t *token) isColID() bool {
	return t.kind == tIdent || t.kind == tKeyword && !t.la && (t.class == kwUnreserved || t.class == kwColName)
}

// isTypeFuncName reports whether t can name a function or type.
func (t *token) isTypeFuncName() bool {
	return t.kind == tIdent || t.kind == tKeyword && !t.la && (t.class == kwUnreserved || t.class == kwTypeFunc)
}

// isNonReserved reports whether t is a word that is not reserved.
func (t *token) isNonReserved() bool {
	return t.kind == tIdent || t.kind == tKeyword && !t.la && t.class != kwReserved
}

// isLabel reports whether t can stand after AS or a dot.
func (t *token) isLabel() bool { return t.kind == tIdent || t.kind == tKeyword && !t.la }

// isBareLabel reports whether t can label a column without AS.
func (t *token) isBareLabel() bool {
	return t.kind == tIdent || t.kind == tKeyword && !t.la && t.bare
}

func (p *parser) takeIdent(ok bool) ast.Ident {
	if !ok {
		p.syntaxError()
		return ast.Ident{}
	}
	t := p.tok()
	id := ast.Ident{Name: t.text, Quoted: t.quoted, Pos: t.pos}
	p.next()
	return id
}

func (p *parser) colID() ast.Ident { return p.takeIdent(p.tok().isColID()) }

func (p *parser) colLabel() ast.Ident { return p.takeIdent(p.tok().isLabel()) }

func (p *parser) typeFuncName() ast.Ident { return p.takeIdent(p.tok().isTypeFuncName()) }

func (p *parser) nonReservedWord() ast.Ident { return p.takeIdent(p.tok().isNonReserved()) }

// anyName reads a dotted name whose first part is a column identifier.
func (p *parser) anyName() ast.Name {
	n := ast.Name{p.firstPart()}
	for p.err == nil && p.accept('.') {
		n = append(n, p.colLabel())
	}
	return n
}

// qualifiedName reads the name of a relation: at most three parts. The grammar
// takes any indirection and refuses subscripts and stars afterwards, at the
// token it has reached by then.
func (p *parser) qualifiedName() ast.Name {
	return p.qualifiedRest(p.firstPart())
}

// firstPart reads the first part of a relation's name. DEFAULT before a dot is
// Paimon's database of that name.
func (p *parser) firstPart() ast.Ident {
	return p.takeIdent(p.tok().isColID() || p.atDefaultSchema())
}

func (p *parser) atDefaultSchema() bool {
	return p.kw("default") && p.peek(1).kind == '.' && p.peek(2).isLabel()
}

func (p *parser) qualifiedRest(first ast.Ident) ast.Name {
	n := ast.Name{first}
	bad := false
	for p.err == nil {
		switch {
		case p.accept('.'):
			if p.accept('*') {
				bad = true
				continue
			}
			n = append(n, p.colLabel())
			continue
		case p.is('['):
			p.subscript()
			bad = true
			continue
		}
		break
	}
	if bad {
		p.syntaxError()
	}
	if len(n) > 3 && p.err == nil {
		p.failAt(first.Pos, pgerr.SyntaxError, "improper qualified name (too many dotted names): %s", n.String())
	}
	return n
}

func list[T any](p *parser, item func() T) []T {
	out := []T{item()}
	for p.err == nil && p.accept(',') {
		out = append(out, item())
	}
	return out
}

// parens reads ( item, ... ).
func parens[T any](p *parser, item func() T) []T {
	p.expect('(')
	out := list(p, item)
	p.expect(')')
	return out
}

func (p *parser) nameList() []ast.Ident { return list(p, p.colID) }

// optColumns reads an optional (a, b, ...).
func (p *parser) optColumns() []ast.Ident {
	if !p.is('(') {
		return nil
	}
	return parens(p, p.colID)
}

// stringConst reads a string literal other than B and X ones.
func (p *parser) stringConst() string {
	if !p.is(tString) {
		p.syntaxError()
		return ""
	}
	s := p.tok().text
	p.next()
	return s
}

// intConst reads an unsigned integer of at most 31 bits.
func (p *parser) intConst() int {
	if !p.is(tInt) {
		p.syntaxError()
		return 0
	}
	n, _ := strconv.Atoi(p.tok().text)
	p.next()
	return n
}

func (p *parser) signedInt() int {
	switch {
	case p.accept('-'):
		return -p.intConst()
	case p.accept('+'):
	}
	return p.intConst()
}

// numericOnly reads a number with an optional sign.
func (p *parser) numericOnly() ast.Expr {
	loc := p.loc()
	neg := p.is('-')
	if neg || p.is('+') {
		p.next()
	}
	if !p.is(tInt) && !p.is(tFloat) {
		p.syntaxError()
		return nil
	}
	num := p.number()
	if neg {
		return &ast.Unary{Loc: loc, Op: ast.Operator{Name: "-", Pos: loc.Pos}, Expr: num}
	}
	return num
}

func (p *parser) number() *ast.Number {
	t := p.tok()
	n := &ast.Number{Loc: p.loc(), Text: t.text, Integer: isInteger(t.text)}
	p.next()
	return n
}

func isInteger(s string) bool {
	for i := 0; i < len(s); i++ {
		if !isDigit(s[i]) {
			return false
		}
	}
	return true
}

// roleSpec reads a role. Only where public is allowed does it mean everybody;
// elsewhere the words that cannot name a role are refused.
func (p *parser) roleSpec() *ast.RoleSpec {
	r := &ast.RoleSpec{Loc: p.loc()}
	t := p.tok()
	switch {
	case p.acceptKw("current_role"):
		r.Kind = ast.RoleCurrentRole
	case p.acceptKw("current_user"):
		r.Kind = ast.RoleCurrentUser
	case p.acceptKw("session_user"):
		r.Kind = ast.RoleSessionUser
	default:
		r.Name = p.nonReservedWord()
		switch r.Name.Name {
		case "public":
			r.Kind = ast.RolePublic
		case "none":
			p.failAt(t.pos, pgerr.ReservedName, "role name \"none\" is reserved")
		}
	}
	return r
}

// roleID reads a role that is made or renamed: a plain name.
func (p *parser) roleID() *ast.RoleSpec {
	r := p.roleSpec()
	p.checkRoleID(r)
	return r
}

func (p *parser) checkRoleID(r *ast.RoleSpec) {
	switch r.Kind {
	case ast.RolePublic:
		p.failAt(r.Pos, pgerr.ReservedName, "role name \"public\" is reserved")
	case ast.RoleCurrentRole, ast.RoleCurrentUser, ast.RoleSessionUser:
		word := [...]string{"CURRENT_ROLE", "CURRENT_USER", "SESSION_USER"}[r.Kind-ast.RoleCurrentRole]
		p.failAt(r.Pos, pgerr.ReservedName, "%s cannot be used as a role name here", word)
	}
}

func (p *parser) roleList() []*ast.RoleSpec { return list(p, p.roleSpec) }
