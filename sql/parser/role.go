package parser

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// userMapping reports whether USER begins USER MAPPING FOR rather than naming a
// role called mapping.
func (p *parser) userMapping() bool {
	return p.kwAt(1, "mapping") && (p.kwAt(2, "for") || p.kwAt(2, "if"))
}

func (p *parser) createRole() ast.Stmt {
	r := &ast.CreateRole{Kind: upper(p.tok().text)}
	p.next()
	r.Name = p.roleID()
	if p.kw("with") {
		p.next()
	}
	r.Options = p.roleOptions(true)
	return r
}

// roleFlags are the options that are single words and no keywords.
var roleFlags = map[string]bool{
	"superuser": true, "nosuperuser": true, "createrole": true, "nocreaterole": true, "replication": true,
	"noreplication": true, "createdb": true, "nocreatedb": true, "login": true, "nologin": true,
	"bypassrls": true, "nobypassrls": true, "noinherit": true,
}

// roleOptions parses any number of options; create allows those of CREATE ROLE
// only.
func (p *parser) roleOptions(create bool) []*ast.RoleOption {
	var out []*ast.RoleOption
	for p.err == nil {
		o := p.roleOption(create)
		if o == nil {
			break
		}
		out = append(out, o)
	}
	return out
}

func (p *parser) roleOption(create bool) *ast.RoleOption {
	o := &ast.RoleOption{Loc: p.loc()}
	t := p.tok()
	switch {
	case t.kind == tIdent:
		p.next()
		o.Name = t.text
		if !roleFlags[o.Name] {
			p.failAt(t.pos, pgerr.SyntaxError, "unrecognized role option \"%s\"", o.Name)
		}
		return o
	case t.kind != tKeyword:
		return nil
	}
	switch t.text {
	case "password", "encrypted":
		p.next()
		if t.text == "encrypted" {
			p.expectKw("password")
		}
		o.Name = "password"
		if t.text == "password" && p.acceptKw("null") {
			return o
		}
		s := p.stringConst()
		o.String = &s
	case "unencrypted":
		p.next()
		p.expectKw("password")
		p.stringConst()
		if p.err == nil {
			p.fail(p.errorAt(t.pos, pgerr.FeatureNotSupported, "UNENCRYPTED PASSWORD is no longer supported").
				WithHint("Remove UNENCRYPTED to store the password in encrypted form instead."))
		}
	case "inherit":
		p.next()
		o.Name = "inherit"
	case "connection":
		p.next()
		p.expectKw("limit")
		o.Name, o.Number = "connection limit", p.signedInt()
	case "valid":
		p.next()
		p.expectKw("until")
		s := p.stringConst()
		o.Name, o.String = "valid until", &s
	case "user":
		p.next()
		o.Name, o.Roles = "user", p.roleList()
	default:
		if !create {
			return nil
		}
		switch t.text {
		case "sysid":
			p.next()
			o.Name, o.Number = "sysid", p.intConst()
		case "admin", "role":
			p.next()
			o.Name, o.Roles = t.text, p.roleList()
		case "in":
			p.next()
			if !p.acceptKw("role") {
				p.expectKw("group")
			}
			o.Name, o.Roles = "in role", p.roleList()
		default:
			return nil
		}
	}
	return o
}

func (p *parser) alterRole() ast.Stmt {
	kind := upper(p.tok().text)
	p.next()
	if p.kw("all") && kind != "GROUP" {
		p.next()
		return p.alterRoleSet(kind, nil)
	}
	loc := p.loc()
	role := p.roleSpec()
	if p.kw("rename") {
		p.checkRoleID(role)
		p.next()
		p.expectKw("to")
		to := p.roleID()
		ref := &ast.ObjectRef{Loc: loc, Kind: "ROLE", Name: ast.Name{role.Name}}
		return &ast.Rename{Object: ref, NewName: to.Name, NewPath: ast.Name{to.Name}}
	}
	if kind == "GROUP" {
		o := &ast.RoleOption{Loc: p.loc(), Name: "add"}
		if !p.acceptKw("add") {
			p.expectKw("drop")
			o.Name = "drop"
		}
		p.expectKw("user")
		o.Roles = p.roleList()
		return &ast.AlterRole{Kind: kind, Role: role, Options: []*ast.RoleOption{o}}
	}
	if p.kw("set") || p.kw("reset") || p.kw("in") {
		return p.alterRoleSet(kind, role)
	}
	if p.kw("with") {
		p.next()
	}
	return &ast.AlterRole{Kind: kind, Role: role, Options: p.roleOptions(false)}
}

func (p *parser) alterRoleSet(kind string, role *ast.RoleSpec) ast.Stmt {
	s := &ast.AlterSettings{Kind: kind, Role: role}
	if p.acceptKw("in") {
		p.expectKw("database")
		s.Database = p.colID()
	}
	s.Set = p.setReset()
	return s
}

// grant parses GRANT and REVOKE, of privileges on objects and of roles. Which
// it is shows only after the list: ON, or TO and FROM.
func (p *parser) grant() ast.Stmt {
	g := &ast.Grant{Revoke: p.kw("revoke")}
	g.Loc = p.loc()
	p.next()
	adminOption := false
	if g.Revoke {
		switch {
		case p.acceptKw("grant"):
			p.expectKws("option for")
			g.OptionOnly = true
		case p.kw2("admin", "option"):
			p.next()
			p.expectKws("option for")
			g.OptionOnly, adminOption = true, true
		}
	}
	all := p.kw("all")
	g.Privileges = p.privileges()
	switch {
	case !adminOption && p.acceptKw("on"):
		p.privilegeTarget(g)
	case all || g.OptionOnly && !adminOption:
		p.expectKw("on")
	}
	if g.Revoke {
		p.expectKw("from")
	} else {
		p.expectKw("to")
	}
	g.Grantees = list(p, func() *ast.RoleSpec {
		if g.Kind != "" {
			p.acceptKw("group")
		}
		return p.roleSpec()
	})
	if !g.Revoke && p.kw("with") {
		p.next()
		if g.Kind != "" {
			p.expectKw("grant")
		} else {
			p.expectKw("admin")
		}
		p.expectKw("option")
		g.WithOption = true
	}
	if p.acceptKw("granted") {
		p.expectKw("by")
		g.GrantedBy = p.roleSpec()
	}
	if g.Revoke {
		g.Cascade, _ = p.dropBehavior()
	}
	return g
}

func (p *parser) privileges() []*ast.Privilege {
	if p.kw("all") {
		a := &ast.Privilege{Loc: p.loc(), Name: "all"}
		p.next()
		p.acceptKw("privileges")
		a.Columns = p.optColumns()
		return []*ast.Privilege{a}
	}
	return list(p, func() *ast.Privilege {
		v := &ast.Privilege{Loc: p.loc()}
		switch {
		case p.kw("select"), p.kw("references"), p.kw("create"):
			v.Name = p.tok().text
			p.next()
		case p.kw2("alter", "system"):
			p.next()
			p.next()
			v.Name = "alter system"
			return v
		default:
			v.Name = p.colID().Name
		}
		v.Columns = p.optColumns()
		return v
	})
}

// privilegeTarget parses the objects of GRANT ... ON.
func (p *parser) privilegeTarget(g *ast.Grant) {
	names := func() { g.Objects = list(p, func() ast.Name { return ast.Name{p.colID()} }) }
	switch {
	case p.acceptKw("table"):
		g.Kind, g.Objects = "TABLE", list(p, p.qualifiedName)
	case p.kw("sequence") && p.peek(1).isColID():
		p.next()
		g.Kind, g.Objects = "SEQUENCE", list(p, p.qualifiedName)
	case p.acceptKws("foreign data"):
		p.expectKw("wrapper")
		g.Kind = "FOREIGN DATA WRAPPER"
		names()
	case p.acceptKw("foreign"):
		p.expectKw("server")
		g.Kind = "FOREIGN SERVER"
		names()
	case (p.kw("function") || p.kw("procedure") || p.kw("routine")) && p.peek(1).isLabel():
		g.Kind = upper(p.tok().text)
		p.next()
		g.Functions = list(p, func() string {
			name, args := p.funcSignature()
			return ast.FormatName(name) + args
		})
	case (p.kw("database") || p.kw("language") || p.kw("schema") || p.kw("tablespace")) && p.peek(1).isColID():
		g.Kind = upper(p.tok().text)
		p.next()
		names()
	case (p.kw("domain") || p.kw("type")) && p.peek(1).isColID():
		g.Kind = upper(p.tok().text)
		p.next()
		g.Objects = list(p, p.anyName)
	case p.kw("parameter") && p.peek(1).isColID():
		p.next()
		g.Kind, g.Objects = "PARAMETER", list(p, p.anyName)
	case p.kw2("large", "object"):
		p.next()
		p.next()
		g.Kind = "LARGE OBJECT"
		g.Functions = list(p, func() string { return ast.Format(p.numericOnly()) })
	case p.acceptKw("all"):
		switch {
		case p.kw("tables"), p.kw("sequences"), p.kw("functions"), p.kw("procedures"), p.kw("routines"):
			g.Kind = "ALL " + upper(p.tok().text) + " IN SCHEMA"
			p.next()
		default:
			p.syntaxError()
		}
		p.expectKws("in schema")
		names()
	default:
		g.Kind, g.Objects = "TABLE", list(p, p.qualifiedName)
	}
}

// defaultPrivileges parses ALTER DEFAULT PRIVILEGES from its second word on.
func (p *parser) defaultPrivileges() ast.Stmt {
	p.next()
	p.next()
	d := &ast.AlterDefaultPrivileges{}
	for p.err == nil {
		pos := p.pos()
		switch {
		case p.kw("for"):
			p.next()
			if !p.acceptKw("role") {
				p.expectKw("user")
			}
			if d.Roles != nil {
				p.failAt(pos, pgerr.SyntaxError, "conflicting or redundant options")
			}
			d.Roles = p.roleList()
			continue
		case p.kw("in"):
			p.next()
			p.expectKw("schema")
			if d.Schemas != nil {
				p.failAt(pos, pgerr.SyntaxError, "conflicting or redundant options")
			}
			d.Schemas = list(p, p.colID)
			continue
		}
		break
	}
	g := &ast.Grant{Revoke: p.kw("revoke")}
	d.Grant = g
	g.Loc = p.loc()
	if !g.Revoke && !p.kw("grant") {
		p.syntaxError()
		return nil
	}
	p.next()
	if g.Revoke && p.acceptKw("grant") {
		p.expectKws("option for")
		g.OptionOnly = true
	}
	g.Privileges = p.privileges()
	p.expectKw("on")
	switch {
	case p.kw("tables"), p.kw("sequences"), p.kw("functions"), p.kw("routines"), p.kw("types"), p.kw("schemas"):
		g.Kind = upper(p.tok().text)
		p.next()
	default:
		p.syntaxError()
		return nil
	}
	if g.Revoke {
		p.expectKw("from")
	} else {
		p.expectKw("to")
	}
	g.Grantees = list(p, func() *ast.RoleSpec {
		p.acceptKw("group")
		return p.roleSpec()
	})
	if g.Revoke {
		g.Cascade, _ = p.dropBehavior()
	} else if p.acceptKw("with") {
		p.expectKws("grant option")
		g.WithOption = true
	}
	return d
}

// reassignOwned parses REASSIGN OWNED.
func (p *parser) reassignOwned() ast.Stmt {
	p.next()
	p.expectKws("owned by")
	r := &ast.ReassignOwned{Roles: p.roleList()}
	p.expectKw("to")
	r.To = p.roleSpec()
	return r
}

// dropOwned parses DROP OWNED from its second word on.
func (p *parser) dropOwned() ast.Stmt {
	p.next()
	p.expectKw("by")
	d := &ast.DropOwned{Roles: p.roleList()}
	d.Cascade, _ = p.dropBehavior()
	return d
}
