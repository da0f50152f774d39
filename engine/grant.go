package engine

import (
	"context"
	"math/bits"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// runGrant is GRANT and REVOKE, of roles and of privileges on objects.
func (s *Session) runGrant(ctx context.Context, text string, st *ast.Grant, out ResultSink) error {
	if st.Kind == "" {
		return s.grantRoles(ctx, st, out)
	}
	if st.GrantedBy != nil {
		by, err := s.roleBySpec(ctx, st.GrantedBy)
		if err != nil {
			return err
		}
		if by.OID != s.rights(ctx).role {
			return pgerr.New(pgerr.FeatureNotSupported, "grantor must be current user")
		}
	}
	g := &granting{s: s, ctx: ctx, out: out, st: st}
	objects, err := g.objects()
	if err != nil {
		return err
	}
	if err := g.readGrantees(st.Grantees); err != nil {
		return err
	}
	if err := g.readPrivileges(); err != nil {
		return err
	}
	for _, o := range objects {
		if err := g.change(o); err != nil {
			return err
		}
	}
	return nil
}

// granting is a GRANT or REVOKE of privileges.
type granting struct {
	s        *Session
	ctx      context.Context
	out      ResultSink
	st       *ast.Grant
	class    roles.Class // of st.Kind
	grantees []uint32
	all      bool // ALL PRIVILEGES
	privs    roles.Mode
	columns  []*ast.Privilege // those with column names
}

// grantObject is one object of the statement.
type grantObject struct {
	key   roles.Key
	class roles.Class
	name  string           // as messages say it
	rel   catalog.Relation // nil: none
}

// noun is what messages call an object of the class; GRANT calls views tables.
func (o *grantObject) noun() string {
	switch o.class {
	case roles.Schema:
		return "schema"
	case roles.Database:
		return "database"
	case roles.Sequences:
		return "sequence"
	}
	return "table"
}

// objects finds what the statement names.
func (g *granting) objects() ([]*grantObject, error) {
	s, ctx := g.s, g.ctx
	var out []*grantObject
	switch kind := g.st.Kind; kind {
	case "TABLE", "SEQUENCE":
		g.class = map[string]roles.Class{"TABLE": roles.Relation, "SEQUENCE": roles.Sequences}[kind]
		for _, n := range g.st.Objects {
			rel, err := s.newResolver().Relation(ctx, n, resolveDefaults(s))
			if err != nil {
				return nil, withoutPosition(err)
			}
			out = append(out, relationObject(rel))
		}
	case "ALL TABLES IN SCHEMA", "ALL SEQUENCES IN SCHEMA":
		g.class = map[string]roles.Class{"ALL TABLES IN SCHEMA": roles.Relation, "ALL SEQUENCES IN SCHEMA": roles.Sequences}[kind]
		for _, n := range g.st.Objects {
			schemaName, ok := s.schemaExists(ctx, n.Last())
			if !ok {
				return nil, pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", n.Last())
			}
			if err := s.mayUseSchema(ctx, schemaName); err != nil {
				return nil, err
			}
			if systemSchema(schemaName) {
				continue
			}
			names, err := s.catalog().Tables(ctx, schemaName)
			if err != nil {
				return nil, s.ddlError(err, schemaName, schemaName)
			}
			for _, t := range names {
				rel, err := s.catalog().Resolve(ctx, schemaName, t, catalog.ResolveOptions{})
				if err != nil {
					if cause := context.Cause(ctx); cause != nil {
						return nil, cause
					}
					continue // it is gone, or cannot be read by anybody
				}
				if o := relationObject(rel); o.class == g.class {
					out = append(out, o)
				}
			}
		}
	case "SCHEMA":
		g.class = roles.Schema
		for _, n := range g.st.Objects {
			name, ok := s.schemaExists(ctx, n.Last())
			if !ok {
				return nil, pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", n.Last())
			}
			out = append(out, &grantObject{key: roles.SchemaKey(name), class: roles.Schema, name: name})
		}
	case "DATABASE":
		g.class = roles.Database
		for _, n := range g.st.Objects {
			if err := s.thisDatabase(n.Last()); err != nil {
				return nil, err
			}
			out = append(out, &grantObject{key: roles.DatabaseKey, class: roles.Database, name: n.Last()})
		}
	default:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "%s ON %s is not supported yet", commandName(g.st), kind)
	}
	return out, nil
}

func relationObject(rel catalog.Relation) *grantObject {
	k, c := relationAccess(rel)
	return &grantObject{key: k, class: c, name: k.Name, rel: rel}
}

// thisDatabase refuses names that the warehouse does not answer to.
func (s *Session) thisDatabase(name string) error {
	if name == s.database || s.eng.acceptsDatabase(name) {
		return nil
	}
	return pgerr.New(pgerr.InvalidCatalogName, "database %q does not exist", name)
}

// roleBySpec finds the role that a specification names.
func (s *Session) roleBySpec(ctx context.Context, spec *ast.RoleSpec) (*roles.Role, error) {
	m, name := s.roles(ctx), s.roleName(spec)
	if r := m.Role(name); r != nil {
		return r, nil
	}
	if s.superName(m, name) { // this session's own, which is not stored
		return m.ByOID(roles.Superuser), nil
	}
	return nil, noRole(name)
}

func (g *granting) readGrantees(list []*ast.RoleSpec) error {
	for _, spec := range list {
		if spec.Kind == ast.RolePublic {
			g.grantees = append(g.grantees, roles.Public)
			continue
		}
		r, err := g.s.roleBySpec(g.ctx, spec)
		if err != nil {
			return err
		}
		g.grantees = append(g.grantees, r.OID)
	}
	return nil
}

// allowed are the privileges that the kind of object knows; TABLE may be a sequence.
func (g *granting) allowed() (roles.Mode, string) {
	switch g.class {
	case roles.Relation:
		return roles.Relation.All() | roles.Sequences.All(), "relation"
	case roles.Sequences:
		return roles.Sequences.All(), "sequence"
	case roles.Schema:
		return roles.Schema.All(), "schema"
	case roles.Database:
		return roles.Database.All(), "database"
	case roles.Functions:
		return roles.Functions.All(), "function"
	case roles.Types:
		return roles.Types.All(), "type"
	}
	return 0, ""
}

func (g *granting) readPrivileges() error {
	all, what := g.allowed()
	for _, p := range g.st.Privileges {
		if len(p.Columns) > 0 {
			if g.class != roles.Relation {
				return pgerr.New(pgerr.InvalidGrantOperation, "column privileges are only valid for relations")
			}
			g.columns = append(g.columns, p)
			continue
		}
		if p.Name == "all" {
			g.all = true
			continue
		}
		m, err := g.mode(p.Name, all, what)
		if err != nil {
			return err
		}
		g.privs |= m
	}
	return nil
}

// mode reads the name of a privilege.
func (g *granting) mode(name string, all roles.Mode, what string) (roles.Mode, error) {
	m, ok := roles.ParseMode(name)
	if !ok {
		return 0, pgerr.New(pgerr.SyntaxError, "unrecognized privilege type %q", name)
	}
	if m&^all != 0 {
		return 0, pgerr.New(pgerr.InvalidGrantOperation, "invalid privilege type %s for %s", m.Words()[0], what)
	}
	return m, nil
}

// change is the statement on one object.
func (g *granting) change(o *grantObject) error {
	if g.class == roles.Sequences && o.class != roles.Sequences {
		return pgerr.New(pgerr.WrongObjectType, "%q is not a sequence", o.name)
	}
	if o.rel != nil && free(o.rel.Schema()) {
		return nil // its session's own, and nobody else can see it
	}
	if o.rel != nil && systemSchema(o.rel.Schema()) || o.class == roles.Schema && systemSchema(o.key.Name) {
		if g.s.rights(g.ctx).super {
			return pgerr.New(pgerr.FeatureNotSupported, "privileges on system catalogs cannot be changed")
		}
		return denied("permission denied for %s %s", o.noun(), o.name)
	}
	privs := g.privs
	if g.all {
		privs |= o.class.All()
	}
	if extra := privs &^ o.class.All(); extra != 0 {
		if o.class != roles.Sequences {
			return pgerr.New(pgerr.InvalidGrantOperation, "invalid privilege type %s for table", "USAGE")
		}
		g.s.warn(g.out, pgerr.InvalidGrantOperation, "sequence %q only supports USAGE, SELECT, and UPDATE privileges", o.name)
		privs &= o.class.All()
	}
	a := *g.s.roles(g.ctx).Access(o.key)
	if privs != 0 {
		acl, err := g.edit(a.Effective(o.class), a.Owner, privs, g.all, o.noun(), o.name, "")
		if err != nil {
			return err
		}
		a.ACL = acl
	}
	if err := g.changeColumns(o, &a, privs); err != nil {
		return err
	}
	return g.s.putAccess(g.ctx, o.key, &a)
}

// changeColumns changes the privileges on columns. REVOKE of a privilege on a table
// revokes it on its columns too.
func (g *granting) changeColumns(o *grantObject, a *roles.Access, table roles.Mode) error {
	if o.rel == nil {
		return nil
	}
	want := map[string]roles.Mode{}
	for _, p := range g.columns {
		m := roles.ColumnOf.All()
		if p.Name != "all" {
			var err error
			if m, err = g.mode(p.Name, m, "column"); err != nil {
				return err
			}
		}
		for _, c := range p.Columns {
			if !slices.ContainsFunc(o.rel.Columns(), func(x catalog.Column) bool { return x.Name == c.Name }) {
				return pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", c.Name, o.name)
			}
			want[c.Name] |= m
		}
	}
	if revoked := table & roles.ColumnOf.All(); g.st.Revoke && revoked != 0 {
		for c := range a.Columns {
			want[c] |= revoked
		}
	}
	if len(want) == 0 {
		return nil
	}
	cols := map[string]roles.ACL{}
	for c, l := range a.Columns {
		cols[c] = l
	}
	for _, col := range o.rel.Columns() {
		m := want[col.Name]
		if m == 0 || len(cols[col.Name]) == 0 && g.st.Revoke && !slices.ContainsFunc(g.columns, func(p *ast.Privilege) bool {
			return slices.ContainsFunc(p.Columns, func(i ast.Ident) bool { return i.Name == col.Name })
		}) {
			continue
		}
		old := cols[col.Name]
		// Who has grant options on the table has them on its columns.
		options := append(slices.Clone(a.Effective(o.class)), old...)
		acl, err := g.editBy(old, options, a.Owner, m, m == roles.ColumnOf.All(), o.noun(), o.name, col.Name)
		if err != nil {
			return err
		}
		if cols[col.Name] = acl; len(acl) == 0 {
			delete(cols, col.Name)
		}
	}
	a.Columns = cols
	return nil
}

func (g *granting) edit(acl roles.ACL, owner uint32, privs roles.Mode, all bool, noun, name, column string) (roles.ACL, error) {
	return g.editBy(acl, acl, owner, privs, all, noun, name, column)
}

// editBy grants or revokes; options is where the grantor's grant options come from.
func (g *granting) editBy(acl, options roles.ACL, owner uint32, privs roles.Mode, all bool, noun, name, column string) (roles.ACL, error) {
	grantor, may := g.s.rights(g.ctx).grantor(options, owner, privs)
	if may == 0 {
		// Without grant options: an error unless there is some privilege at all.
		if !g.hasAny(options, owner) {
			if column != "" {
				return nil, denied("permission denied for column %q of relation %q", column, name)
			}
			return nil, denied("permission denied for %s %s", noun, name)
		}
	}
	now := privs & may
	code, what := pgerr.PrivilegeNotGranted, "were granted"
	if g.st.Revoke {
		code, what = pgerr.PrivilegeNotRevoked, "could be revoked"
	}
	of := `"` + name + `"`
	if column != "" {
		of = `column "` + column + `" of relation "` + name + `"`
	}
	switch {
	case now == 0:
		g.s.warn(g.out, code, "no privileges %s for %s", what, of)
	case !all && now != privs:
		g.s.warn(g.out, code, "not all privileges %s for %s", what, of)
	}
	return g.merge(acl, owner, grantor, now)
}

// hasAny reports whether the current user has any privilege of an ACL.
func (g *granting) hasAny(acl roles.ACL, owner uint32) bool {
	r := g.s.rights(g.ctx)
	return acl.Mask(r.role, r.has[owner], r.in, ^roles.Mode(0), false) != 0
}

// merge is merge_acl_with_grant.
func (g *granting) merge(acl roles.ACL, owner, grantor uint32, privs roles.Mode) (roles.ACL, error) {
	m := g.s.roles(g.ctx)
	if privs == 0 {
		return acl, nil
	}
	for _, to := range g.grantees {
		var err error
		switch {
		case !g.st.Revoke && g.st.WithOption && to == roles.Public:
			return nil, pgerr.New(pgerr.InvalidGrantOperation, "grant options can only be granted to roles")
		case !g.st.Revoke:
			acl, err = acl.Grant(m, owner, to, grantor, privs, g.st.WithOption)
		default:
			acl, err = acl.Revoke(m, owner, to, grantor, privs, g.st.OptionOnly, g.st.Cascade)
		}
		if err != nil {
			return nil, err
		}
	}
	return acl, nil
}

// grantor is select_best_grantor: on whose behalf the role grants or revokes, and
// which of the privileges that one may grant.
func (r *rights) grantor(acl roles.ACL, owner uint32, privs roles.Mode) (uint32, roles.Mode) {
	if r.super || r.role == owner {
		return owner, privs
	}
	direct := func(role uint32) roles.Mode {
		return acl.Mask(role, role == owner, func(uint32) bool { return false }, privs, true)
	}
	best, may := r.role, direct(r.role)
	if may == privs {
		return best, may
	}
	var list []uint32
	for x := range r.has {
		list = append(list, x)
	}
	slices.Sort(list)
	for _, x := range list {
		got := direct(x)
		if got == privs {
			return x, got
		}
		if bits.OnesCount16(uint16(got)) > bits.OnesCount16(uint16(may)) {
			best, may = x, got
		}
	}
	return best, may
}

// runAlterDefaultPrivileges is ALTER DEFAULT PRIVILEGES.
func (s *Session) runAlterDefaultPrivileges(ctx context.Context, st *ast.AlterDefaultPrivileges, out ResultSink) error {
	g := &granting{s: s, ctx: ctx, out: out, st: st.Grant}
	g.class = map[string]roles.Class{
		"TABLES": roles.Relation, "SEQUENCES": roles.Sequences, "FUNCTIONS": roles.Functions, "ROUTINES": roles.Functions, "TYPES": roles.Types,
		"SCHEMAS": roles.Schema,
	}[st.Grant.Kind]
	if err := g.readGrantees(st.Grant.Grantees); err != nil {
		return err
	}
	for _, p := range st.Grant.Privileges {
		if len(p.Columns) > 0 {
			return pgerr.New(pgerr.InvalidGrantOperation, "default privileges cannot be set for columns")
		}
	}
	if err := g.readPrivileges(); err != nil {
		return err
	}
	if g.class == roles.Relation {
		if x := g.privs &^ roles.Relation.All(); x != 0 {
			return pgerr.New(pgerr.InvalidGrantOperation, "invalid privilege type %s for relation", x.Words()[0])
		}
	}
	var owners []uint32
	for _, spec := range st.Roles {
		r, err := s.roleBySpec(ctx, spec)
		if err != nil {
			return err
		}
		if err := s.mustBeMember(ctx, r.OID); err != nil {
			return err
		}
		owners = append(owners, r.OID)
	}
	if st.Roles == nil {
		owners = []uint32{s.rights(ctx).role}
	}
	schemas := []string{""}
	if st.Schemas != nil {
		schemas = nil
		if g.class == roles.Schema {
			return pgerr.New(pgerr.InvalidGrantOperation, "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS")
		}
		for _, n := range st.Schemas {
			name, ok := s.schemaExists(ctx, n.Name)
			if !ok {
				return pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", n.Name)
			}
			schemas = append(schemas, name)
		}
	}
	privs := g.privs
	if g.all {
		privs |= g.class.All()
	}
	for _, owner := range owners {
		for _, schema := range schemas {
			d := roles.Default{Role: owner, Schema: schema, Class: g.class}
			acl := s.roles(ctx).DefaultFor(d)
			if acl == nil {
				acl = d.Base()
			}
			acl, err := g.merge(acl, owner, owner, privs)
			if err != nil {
				return err
			}
			if err := s.putDefault(ctx, d, acl); err != nil {
				return err
			}
		}
	}
	return nil
}

// putDefault stores default privileges, unless they are as they would be anyway.
func (s *Session) putDefault(ctx context.Context, d roles.Default, acl roles.ACL) error {
	ed, err := s.objectEditor(ctx, "")
	if err != nil {
		return err
	}
	o, keep, err := d.Object(acl)
	if err != nil {
		return err
	}
	if !keep {
		return ed.DeleteObject(ctx, o.Kind, o.Schema, o.Name)
	}
	_, err = ed.PutObject(ctx, o)
	return err
}

// privilegeList reads the privileges that an argument of has_table_privilege and its
// kin asks for: any of them will do. known are those that the function knows.
func privilegeList(text string, known roles.Mode) (plain, options roles.Mode, err error) {
	for _, p := range strings.Split(text, ",") {
		word := strings.TrimSpace(p)
		w := strings.ToUpper(word)
		base, option := strings.CutSuffix(w, " WITH GRANT OPTION")
		m, ok := roles.ParseMode(base)
		if !ok || m&^known != 0 {
			return 0, 0, pgerr.New(pgerr.InvalidParameterValue, "unrecognized privilege type: %q", word)
		}
		if option {
			options |= m
		} else {
			plain |= m
		}
	}
	return plain, options, nil
}
