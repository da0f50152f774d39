package engine

import (
	"context"
	"crypto/rand"
	"slices"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/scram"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// roleState is the model of one state of the store, so that it is read once.
type roleState struct {
	of    *objects.State
	model *roles.Model
}

// roles returns the roles of the warehouse, as a look within the last second found them.
func (e *Engine) roles(ctx context.Context) *roles.Model {
	fs, ok := e.cat.(*catalog.Filesystem)
	if !ok {
		return e.model(nil)
	}
	st, err := fs.Objects().State(ctx, false)
	if err != nil {
		e.log.Error("roles cannot be read", "err", err)
		// What was read before still holds. With nothing read nobody but the superuser
		// is known.
		if old := e.roleCache.Load(); old != nil {
			return old.model
		}
		m := roles.New(nil)
		m.Stored = true
		return m
	}
	return e.model(st)
}

// model is the model of a state that was published.
func (e *Engine) model(st *objects.State) *roles.Model {
	if old := e.roleCache.Load(); old != nil && old.of == st {
		return old.model
	}
	x := &roleState{st, roles.New(st)}
	e.roleCache.Store(x)
	return x.model
}

// Verifier is what a role's password is checked with; false when there is no such
// role, or it has no password, or the password has expired.
func (e *Engine) Verifier(ctx context.Context, user string) (scram.Verifier, bool) {
	return e.roles(ctx).Verifier(user, time.Now().UnixMicro())
}

// IsMember reports whether a role is a member of another, also by way of others.
func (e *Engine) IsMember(ctx context.Context, user, role string) bool {
	m := e.roles(ctx)
	a, b := m.Role(user), m.Role(role)
	return a != nil && b != nil && m.IsMember(a.OID, b.OID)
}

// LoginSecret makes the salts of users that do not exist. It is the same for every
// server of the warehouse; nil = none was made.
func (e *Engine) LoginSecret(ctx context.Context) []byte { return e.roles(ctx).Secret }

// mayOpen checks that a role may begin a session. As long as no roles are stored,
// whoever was let in is a superuser.
func (s *Session) mayOpen(m *roles.Model) error {
	r := m.Role(s.user)
	switch {
	case r == nil && m.Stored:
		return pgerr.New(pgerr.InvalidAuthorizationSpecification, "role %q does not exist", s.user)
	case r == nil:
		s.unlisted = true
	case !r.Login:
		return pgerr.New(pgerr.InvalidAuthorizationSpecification, "role %q is not permitted to log in", s.user)
	}
	return nil
}

// underLimit checks CONNECTION LIMIT; e.mu is held.
func (e *Engine) underLimit(m *roles.Model, user string) error {
	r := m.Role(user)
	if r == nil || r.ConnLimit < 0 || r.Super {
		return nil
	}
	n := 0
	for _, s := range e.sessions {
		if s.user == user {
			n++
		}
	}
	if n >= r.ConnLimit {
		return pgerr.New(pgerr.TooManyConnections, "too many connections for role %q", user)
	}
	return nil
}

// roles returns the roles as the session's transaction sees them.
func (s *Session) roles(ctx context.Context) *roles.Model {
	base := s.eng.roles(ctx)
	st := s.tx.staged
	if st == nil {
		return base
	}
	edits := st.Edits()
	if o := s.own.Load(); o != nil && o.staged == st && o.base == base && o.edits == edits {
		return o.model
	}
	now, err := st.State(ctx)
	if err != nil {
		return base
	}
	o := &ownRoles{st, base, edits, roles.New(now)}
	s.own.Store(o)
	return o.model
}

// ownRoles are the roles as a transaction sees them that has changed something.
type ownRoles struct {
	staged *catalog.Staged
	base   *roles.Model
	edits  uint64
	model  *roles.Model
}

// superName reports whether a user of this session is a superuser.
func (s *Session) superName(m *roles.Model, user string) bool {
	if r := m.Role(user); r != nil {
		return r.Super
	}
	return s.unlisted && user == s.user
}

// sessionUser is session_user.
func (s *Session) sessionUser() string {
	u, _ := s.set.get("session_authorization")
	return u
}

// mayBecome checks SET ROLE and SET SESSION AUTHORIZATION.
func (s *Session) mayBecome(key, name string) error {
	if key == "role" && name == "none" {
		return nil
	}
	m := s.roles(s.ctx)
	to := m.Role(name)
	if to == nil && (!s.unlisted || name != s.user) {
		return pgerr.New(pgerr.InvalidParameterValue, "role %q does not exist", name)
	}
	if to == nil && (key != "role" || s.sessionUser() == s.user) { // the session's own name
		return nil
	}
	if key == "session_authorization" {
		if name != s.user && !s.superName(m, s.user) {
			return pgerr.New(pgerr.InsufficientPrivilege, "permission denied to set session authorization")
		}
		return nil
	}
	from := s.sessionUser()
	if r := m.Role(from); !s.superName(m, from) && (r == nil || to == nil || !m.IsMember(r.OID, to.OID)) {
		return pgerr.New(pgerr.InsufficientPrivilege, "permission denied to set role %q", name)
	}
	return nil
}

// roleEdit is a statement that changes roles: the model as it has come to be, and on
// whose behalf.
type roleEdit struct {
	s      *Session
	ctx    context.Context
	ed     catalog.ObjectEditor
	m      *roles.Model
	me     *roles.Role // nil: an unlisted superuser
	super  bool
	create bool // may make roles
	out    ResultSink
}

func (s *Session) editRoles(ctx context.Context, out ResultSink) (*roleEdit, error) {
	ed, err := s.objectEditor(ctx, "")
	if err != nil {
		return nil, err
	}
	e := &roleEdit{s: s, ctx: ctx, ed: ed, out: out}
	if err := e.read(); err != nil {
		return nil, err
	}
	user := s.userName()
	e.me = e.m.Role(user)
	e.super = s.superName(e.m, user)
	e.create = e.super || e.me != nil && e.me.CreateRole
	return e, nil
}

func (e *roleEdit) read() error {
	st, err := e.ed.State(e.ctx)
	if err == nil {
		e.m = roles.New(st)
	}
	return err
}

func (e *roleEdit) put(r *roles.Role) error {
	o, err := r.Object()
	if err != nil {
		return err
	}
	if _, err := e.ed.PutObject(e.ctx, o); err != nil {
		return err
	}
	return e.read()
}

func denied(format string, args ...any) error {
	return pgerr.New(pgerr.InsufficientPrivilege, format, args...)
}

func noRole(name string) error {
	return pgerr.New(pgerr.UndefinedObject, "role %q does not exist", name)
}

// find returns the role that a specification names.
func (e *roleEdit) find(spec *ast.RoleSpec) (*roles.Role, error) {
	name := e.s.roleName(spec)
	if r := e.m.Role(name); r != nil {
		return r, nil
	}
	return nil, noRole(name)
}

// roleName is the name that a specification means.
func (s *Session) roleName(spec *ast.RoleSpec) string {
	switch spec.Kind {
	case ast.RolePublic:
		return "public"
	case ast.RoleCurrentRole, ast.RoleCurrentUser:
		return s.userName()
	case ast.RoleSessionUser:
		return s.sessionUser()
	}
	return spec.Name.Name
}

func checkRoleName(name string) error {
	if strings.HasPrefix(name, "pg_") {
		return pgerr.New(pgerr.ReservedName, "role name %q is reserved", name).
			WithDetail("Role names starting with \"pg_\" are reserved.")
	}
	return nil
}

// roleOptions are the options of CREATE and ALTER ROLE, each at most once.
type roleOptions struct {
	flags                map[string]bool // by attribute
	password, validUntil *ast.RoleOption
	limit                *ast.RoleOption
	inRole, members      []*ast.RoleSpec
	admins               []*ast.RoleSpec
	sysid                bool
}

func readRoleOptions(text string, list []*ast.RoleOption) (*roleOptions, error) {
	o := &roleOptions{flags: map[string]bool{}}
	seen := map[string]bool{}
	for _, x := range list {
		key := x.Name
		switch key {
		case "password":
			o.password = x
		case "valid until":
			o.validUntil = x
		case "connection limit":
			o.limit = x
		case "in role":
			o.inRole = x.Roles
		case "role", "user", "add", "drop":
			key = "role"
			o.members = x.Roles
		case "admin":
			o.admins = x.Roles
		case "sysid":
			o.sysid = true
		default:
			key = strings.TrimPrefix(key, "no")
			o.flags[key] = key == x.Name
		}
		if seen[key] {
			return nil, errAt(text, x.Pos, pgerr.SyntaxError, "conflicting or redundant options")
		}
		seen[key] = true
	}
	if o.limit != nil && o.limit.Number < -1 {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid connection limit: %d", o.limit.Number)
	}
	return o, nil
}

// apply lays options over attributes.
func (e *roleEdit) apply(o *roleOptions, a *roles.Attrs) error {
	for name, to := range map[string]*bool{
		"superuser": &a.Super, "inherit": &a.Inherit, "createrole": &a.CreateRole, "createdb": &a.CreateDB, "login": &a.Login,
		"replication": &a.Replication, "bypassrls": &a.BypassRLS,
	} {
		if v, ok := o.flags[name]; ok {
			*to = v
		}
	}
	if o.limit != nil {
		a.ConnLimit = o.limit.Number
	}
	if o.validUntil != nil {
		v, err := e.s.evaluate(e.ctx, []ast.Expr{&ast.String{Value: *o.validUntil.String}}, []types.Type{types.Of(types.TimestampTZ)}, "")
		if err != nil {
			var pe *pgerr.Error
			if asPG(err, &pe) {
				c := *pe
				return c.WithPosition(0)
			}
			return err
		}
		at, _ := v[0].(int64)
		a.ValidUntil = &at
	}
	if o.password != nil {
		return e.setPassword(a, o.password.String)
	}
	return nil
}

// setPassword keeps the verifier of a password, or one that was made elsewhere.
func (e *roleEdit) setPassword(a *roles.Attrs, p *string) error {
	a.Password = ""
	if p == nil {
		return nil
	}
	if _, ok := scram.Parse(*p); ok {
		a.Password = *p
	} else {
		if isMD5(*p) {
			return pgerr.New(pgerr.FeatureNotSupported, "passwords hashed with MD5 are not supported")
		}
		v, err := scram.New(*p)
		if err != nil {
			return err
		}
		if *p == "" || v.Check("") {
			e.s.notice(e.out, "NOTICE", pgerr.SuccessfulCompletion, "empty string is not a valid password, clearing password")
			return nil
		}
		a.Password = v.String()
	}
	if e.m.Secret != nil {
		return nil
	}
	var b [32]byte
	rand.Read(b[:]) //nolint:errcheck // never fails
	o, err := roles.SecretObject(b[:])
	if err != nil {
		return err
	}
	_, err = e.ed.PutObject(e.ctx, o)
	return err
}

func isMD5(p string) bool {
	return len(p) == 35 && strings.HasPrefix(p, "md5") && strings.Trim(p[3:], "0123456789abcdef") == ""
}

// runCreateRole is CREATE ROLE, USER or GROUP.
func (s *Session) runCreateRole(ctx context.Context, text string, st *ast.CreateRole, out ResultSink) error {
	e, err := s.editRoles(ctx, out)
	if err != nil {
		return err
	}
	o, err := readRoleOptions(text, st.Options)
	if err != nil {
		return err
	}
	if o.sysid {
		s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "SYSID can no longer be specified")
	}
	switch {
	case o.flags["superuser"] && !e.super:
		return denied("must be superuser to create superusers")
	case o.flags["replication"] && !e.super:
		return denied("must be superuser to create replication users")
	case o.flags["bypassrls"] && !e.super:
		return denied("must be superuser to create bypassrls users")
	case !e.create:
		return denied("permission denied to create role")
	}
	r := &roles.Role{Name: st.Name.Name.Name, Attrs: roles.Attrs{Inherit: true, Login: st.Kind == "USER", ConnLimit: -1}}
	if err := checkRoleName(r.Name); err != nil {
		return err
	}
	if e.m.Role(r.Name) != nil {
		return pgerr.New(pgerr.DuplicateObject, "role %q already exists", r.Name)
	}
	if err := e.apply(o, &r.Attrs); err != nil {
		return err
	}
	if err := e.put(r); err != nil {
		return err
	}
	made := e.m.Role(r.Name)
	for _, spec := range o.inRole {
		in, err := e.find(spec)
		if err != nil {
			return err
		}
		if err := e.grant(in, made, false, nil); err != nil {
			return err
		}
	}
	for i, list := range [][]*ast.RoleSpec{o.members, o.admins} {
		for _, spec := range list {
			member, err := e.find(spec)
			if err != nil {
				return err
			}
			if err := e.grant(made, member, i == 1, nil); err != nil {
				return err
			}
		}
	}
	return nil
}

// runAlterRole is ALTER ROLE and ALTER GROUP.
func (s *Session) runAlterRole(ctx context.Context, text string, st *ast.AlterRole, out ResultSink) error {
	e, err := s.editRoles(ctx, out)
	if err != nil {
		return err
	}
	o, err := readRoleOptions(text, st.Options)
	if err != nil {
		return err
	}
	if st.Role.Kind == ast.RoleName && strings.HasPrefix(st.Role.Name.Name, "pg_") {
		return pgerr.New(pgerr.ReservedName, "role name %q is reserved", st.Role.Name.Name).WithDetail("Cannot alter reserved roles.")
	}
	old, err := e.find(st.Role)
	if err != nil {
		return err
	}
	_, super := o.flags["superuser"]
	_, repl := o.flags["replication"]
	_, bypass := o.flags["bypassrls"]
	self := e.me != nil && e.me.OID == old.OID
	switch {
	case (super || old.Super) && !e.super:
		return denied("must be superuser to alter superuser roles or change superuser attribute")
	case (repl || old.Replication) && !e.super:
		return denied("must be superuser to alter replication roles or change replication attribute")
	case bypass && !e.super:
		return denied("must be superuser to change bypassrls attribute")
	case !e.create && (!self || o.password == nil || len(st.Options) > 1):
		return denied("permission denied")
	}
	r := *old
	if err := e.apply(o, &r.Attrs); err != nil {
		return err
	}
	if r.OID == roles.Superuser && (!r.Super || !r.Login) {
		return pgerr.New(pgerr.FeatureNotSupported, "role %q stays a superuser that may log in", r.Name)
	}
	if len(st.Options) > 0 && o.members == nil {
		if err := e.put(&r); err != nil {
			return err
		}
	}
	for _, spec := range o.members {
		member, err := e.find(spec)
		if err != nil {
			return err
		}
		if st.Options[0].Name == "drop" {
			err = e.revoke(old, member, false)
		} else {
			err = e.grant(old, member, false, nil)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// renameRole is ALTER ROLE ... RENAME TO.
func (s *Session) renameRole(ctx context.Context, st *ast.Rename, out ResultSink) error {
	e, err := s.editRoles(ctx, out)
	if err != nil {
		return err
	}
	from, to := st.Object.Name.Last(), st.NewName.Name
	if err := checkRoleName(from); err != nil {
		return err
	}
	old := e.m.Role(from)
	switch {
	case old == nil:
		return noRole(from)
	case from == s.sessionUser():
		return pgerr.New(pgerr.FeatureNotSupported, "session user cannot be renamed")
	case from == s.userName():
		return pgerr.New(pgerr.FeatureNotSupported, "current user cannot be renamed")
	}
	if err := checkRoleName(to); err != nil {
		return err
	}
	switch {
	case e.m.Role(to) != nil:
		return pgerr.New(pgerr.DuplicateObject, "role %q already exists", to)
	case old.Super && !e.super:
		return denied("must be superuser to rename superusers")
	case !e.create:
		return denied("permission denied to rename role")
	case old.OID == roles.Superuser:
		return pgerr.New(pgerr.FeatureNotSupported, "role %q cannot be renamed", from)
	}
	if err := e.ed.DeleteObject(ctx, objects.Role, "", from); err != nil {
		return err
	}
	r := *old
	r.Name = to
	return e.put(&r)
}

// runDropRole is DROP ROLE, USER or GROUP.
func (s *Session) runDropRole(ctx context.Context, st *ast.Drop, out ResultSink) error {
	e, err := s.editRoles(ctx, out)
	if err != nil {
		return err
	}
	if !e.create {
		return denied("permission denied to drop role")
	}
	for _, spec := range st.Roles {
		if spec.Kind != ast.RoleName {
			return pgerr.New(pgerr.InvalidParameterValue, "cannot use special role specifier in DROP ROLE")
		}
		name := spec.Name.Name
		r := e.m.Role(name)
		switch {
		case r == nil && st.IfExists:
			s.notice(out, "NOTICE", pgerr.SuccessfulCompletion, "role %q does not exist, skipping", name)
			continue
		case r == nil:
			return noRole(name)
		case name == s.userName():
			return pgerr.New(pgerr.ObjectInUse, "current user cannot be dropped")
		case name == s.sessionUser():
			return pgerr.New(pgerr.ObjectInUse, "session user cannot be dropped")
		case r.Super && !e.super:
			return denied("must be superuser to drop superusers")
		case r.OID < roles.FirstOID:
			return pgerr.New(pgerr.DependentObjectsStillExist, "cannot drop role %s because it is required by the database system", name)
		}
		if deps := s.dependsOnRole(ctx, e.m, r.OID); deps != nil {
			return cannotDropRole(name, deps)
		}
		for _, x := range e.m.AllSettings() {
			if x.Role == r.OID {
				if err := s.putSettings(ctx, x, nil); err != nil {
					return err
				}
			}
		}
		if err := e.ed.DeleteObject(ctx, objects.Role, "", name); err != nil {
			return err
		}
		for _, x := range e.m.Roles() {
			if _, ok := x.In(r.OID); !ok {
				continue
			}
			c := *x
			c.MemberOf = slices.DeleteFunc(slices.Clone(x.MemberOf), func(m roles.Membership) bool { return m.Role == r.OID })
			if err := e.put(&c); err != nil {
				return err
			}
		}
		if err := e.read(); err != nil {
			return err
		}
	}
	return nil
}

// mayGrant checks that the current user may change who is a member of a role.
func (e *roleEdit) mayGrant(role *roles.Role) error {
	switch {
	case role.Super && !e.super:
		return denied("must be superuser to alter superusers")
	case !e.create && (e.me == nil || !e.m.IsAdmin(e.me.OID, role.OID)):
		return denied("must have admin option on role %q", role.Name)
	}
	return nil
}

// grant makes one role a member of another; by nil is the current user.
func (e *roleEdit) grant(role, member *roles.Role, admin bool, by *roles.Role) error {
	if err := e.mayGrant(role); err != nil {
		return err
	}
	role, member = e.m.ByOID(role.OID), e.m.ByOID(member.OID) // as they are now
	if role.OID == roles.DatabaseOwner {
		return pgerr.New(pgerr.InvalidGrantOperation, "role %q cannot have explicit members", role.Name)
	}
	if member.OID == roles.DatabaseOwner {
		return pgerr.New(pgerr.InvalidGrantOperation, "role %q cannot be a member of any role", member.Name)
	}
	if e.m.IsMember(role.OID, member.OID) {
		return pgerr.New(pgerr.InvalidGrantOperation, "role %q is a member of role %q", role.Name, member.Name)
	}
	old, is := member.In(role.OID)
	if is && (!admin || old.Admin) {
		e.s.notice(e.out, "NOTICE", pgerr.SuccessfulCompletion, "role %q is already a member of role %q", member.Name, role.Name)
		return nil
	}
	if by == nil {
		by = e.me
	}
	in := roles.Membership{Role: role.OID, Admin: admin, By: roles.Superuser}
	if by != nil {
		in.By = by.OID
	}
	c := *member
	c.MemberOf = slices.DeleteFunc(slices.Clone(member.MemberOf), func(m roles.Membership) bool { return m.Role == role.OID })
	c.MemberOf = append(c.MemberOf, in)
	return e.put(&c)
}

// revoke ends a membership, or with adminOnly the right to grant it on.
func (e *roleEdit) revoke(role, member *roles.Role, adminOnly bool) error {
	if err := e.mayGrant(role); err != nil {
		return err
	}
	member = e.m.ByOID(member.OID)
	old, is := member.In(role.OID)
	if !is {
		e.s.warn(e.out, pgerr.Warning, "role %q is not a member of role %q", member.Name, role.Name)
		return nil
	}
	c := *member
	c.MemberOf = slices.DeleteFunc(slices.Clone(member.MemberOf), func(m roles.Membership) bool { return m.Role == role.OID })
	if adminOnly {
		old.Admin = false
		c.MemberOf = append(c.MemberOf, old)
	}
	return e.put(&c)
}

// grantRoles is GRANT and REVOKE of roles.
func (s *Session) grantRoles(ctx context.Context, st *ast.Grant, out ResultSink) error {
	e, err := s.editRoles(ctx, out)
	if err != nil {
		return err
	}
	var by *roles.Role
	if st.GrantedBy != nil {
		if by, err = e.find(st.GrantedBy); err != nil {
			return err
		}
	}
	var members []*roles.Role
	for _, spec := range st.Grantees {
		r, err := e.find(spec)
		if err != nil {
			return err
		}
		members = append(members, r)
	}
	for _, p := range st.Privileges {
		if len(p.Columns) > 0 {
			return pgerr.New(pgerr.InvalidGrantOperation, "column names cannot be included in GRANT/REVOKE ROLE")
		}
		role := e.m.Role(p.Name)
		if role == nil {
			return noRole(p.Name)
		}
		if by != nil && (e.me == nil || by.OID != e.me.OID) && !e.super {
			if err := e.mayGrant(role); err != nil {
				return err
			}
			return denied("must be superuser to set grantor")
		}
		for _, m := range members {
			if st.Revoke {
				err = e.revoke(role, m, st.OptionOnly)
			} else {
				err = e.grant(role, m, st.WithOption, by)
			}
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// hasRole is pg_has_role.
func (s *Session) hasRole(ctx context.Context, args []types.Datum) (types.Datum, error) {
	m := s.roles(ctx)
	find := func(v types.Datum) (*roles.Role, error) {
		if name, ok := v.(string); ok {
			if r := m.Role(name); r != nil {
				return r, nil
			}
			if s.superName(m, name) { // this session's own, which is not stored
				return &roles.Role{Name: name, Attrs: roles.Attrs{Super: true}}, nil
			}
			return nil, noRole(name)
		}
		oid, _ := v.(int64)
		return m.ByOID(uint32(oid)), nil
	}
	if len(args) == 2 {
		args = append([]types.Datum{s.userName()}, args...)
	}
	who, err := find(args[0])
	if err != nil {
		return nil, err
	}
	role, err := find(args[1])
	if err != nil {
		return nil, err
	}
	privs, _ := args[2].(string)
	yes := false
	for _, p := range strings.Split(privs, ",") {
		word := strings.ToUpper(strings.TrimSpace(p))
		kind, option, _ := strings.Cut(word, " ")
		if kind != "MEMBER" && kind != "USAGE" || option != "" && option != "WITH GRANT OPTION" && option != "WITH ADMIN OPTION" {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "unrecognized privilege type: %q", strings.TrimSpace(p))
		}
		switch {
		case who == nil || role == nil:
		case who.Super:
			yes = true
		case option != "":
			yes = yes || m.IsAdmin(who.OID, role.OID)
		case kind == "MEMBER":
			yes = yes || m.IsMember(who.OID, role.OID)
		default:
			yes = yes || m.Has(who.OID, role.OID)
		}
	}
	return yes, nil
}

// Roles are the stored ones and, where none were made, whoever is connected.
func (x *sources) Roles() []pgcatalog.Role {
	m := x.s.roles(x.s.ctx)
	var out []pgcatalog.Role
	for _, r := range m.Roles() {
		p := pgcatalog.Role{
			OID: r.OID, Name: r.Name, Super: r.Super, Inherit: r.Inherit, CreateDB: r.CreateDB, CreateRole: r.CreateRole, Login: r.Login, Repl: r.Replication,
			BypassRLS: r.BypassRLS, ConnLimit: r.ConnLimit, Password: r.Password, ValidUntil: r.ValidUntil,
		}
		for _, in := range r.MemberOf {
			p.MemberOf = append(p.MemberOf, pgcatalog.Membership{Role: in.Role, By: in.By, Admin: in.Admin})
		}
		out = append(out, p)
	}
	if x.s.unlisted && m.Role(x.s.user) == nil {
		out = append(out, pgcatalog.Role{OID: catalog.OIDOf('u', "", x.s.user), Name: x.s.user, Super: true, Inherit: true, CreateDB: true, CreateRole: true, Login: true, Repl: true, BypassRLS: true, ConnLimit: -1})
	}
	return out
}

// EnabledRole reports whether the current user has a role's privileges.
func (x *sources) EnabledRole(oid uint32) bool {
	r := x.s.rights(x.s.ctx)
	return r.super || r.has[oid]
}

// Model is what is known of owners and privileges.
func (x *sources) Model() *roles.Model { return x.s.roles(x.s.ctx) }

// May reports whether the current user has any of some privileges on an object.
func (x *sources) May(k roles.Key, c roles.Class, any roles.Mode) bool {
	return free(k.Schema) || x.s.rights(x.s.ctx).mask(k, c, any, false) != 0
}

// MayColumn is May of a column's own privileges.
func (x *sources) MayColumn(k roles.Key, column string, any roles.Mode) bool {
	r := x.s.rights(x.s.ctx)
	return r.column(r.m.Access(k), column, any, false) != 0
}

// seesWork reports whether the current user may see what a session of another user
// does, and end it.
func (s *Session) seesWork(m *roles.Model, other string) bool {
	user := s.userName()
	if user == other || s.superName(m, user) {
		return true
	}
	a, b := m.Role(user), m.Role(other)
	return a != nil && (m.Has(a.OID, roles.ReadAllStats) || b != nil && m.Has(a.OID, b.OID))
}

// mayStop checks pg_cancel_backend and pg_terminate_backend.
func (s *Session) mayStop(ctx context.Context, other *Session, terminate bool) error {
	m := s.roles(ctx)
	if s.superName(m, s.userName()) {
		return nil
	}
	if other.superName(m, other.user) {
		if terminate {
			return denied("must be a superuser to terminate superuser process")
		}
		return denied("must be a superuser to cancel superuser query")
	}
	if me, it := m.Role(s.userName()), m.Role(other.user); me != nil && (m.Has(me.OID, roles.SignalBackend) || it != nil && m.Has(me.OID, it.OID)) {
		return nil
	}
	if terminate {
		return denied("must be a member of the role whose process is being terminated or member of pg_signal_backend")
	}
	return denied("must be a member of the role whose query is being canceled or member of pg_signal_backend")
}

// hidePassword cuts a text before the password that it may hold: what is shown to
// others and logged must not have one.
func hidePassword(text string) string {
	at := foldIndex(text, "password")
	if at < 0 {
		return text
	}
	has := func(words ...string) bool {
		return slices.ContainsFunc(words, func(w string) bool { return foldIndex(text, w) >= 0 })
	}
	if !has("create", "alter") || !has("role", "user", "group") {
		return text
	}
	return text[:at] + "PASSWORD <hidden>"
}

// foldIndex is strings.Index for a word in lower case, in a text of any case.
func foldIndex(text, word string) int {
	for i := 0; i+len(word) <= len(text); i++ {
		if text[i]|0x20 == word[0] && strings.EqualFold(text[i:i+len(word)], word) {
			return i
		}
	}
	return -1
}
