package engine

import (
	"context"
	"strings"
	"sync"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/planner"
)

// Who may do what is asked here and nowhere else:
//
//	permit        a plan may run: the planner's list of needs, as ExecCheckRTPerms
//	mayUse, mayCreateIn, mustOwn...   utility statements, names in schemas
//
// The answers come from rights: what one role may do by one state of the stored
// objects (catalog/roles). The rights of the current user are made anew when that
// state or the user changes. Of a superuser nothing more is asked; of others each
// plan is asked about once per state.

// rights are what a role may do. Safe for concurrent use.
type rights struct {
	m    *roles.Model
	name string
	set  *derived // the settings that name was read from
	role uint32
	// super: nothing need be asked.
	super bool
	has   map[uint32]bool // whose privileges it has

	mu      sync.Mutex // guards what follows
	passed  map[*planned]struct{}
	schemas map[string]bool    // that it may use
	others  map[uint32]*rights // of owners of views
}

// rights returns those of the current user, as the transaction sees them.
func (s *Session) rights(ctx context.Context) *rights {
	m, set := s.roles(ctx), s.set.use()
	if r := s.mine.Load(); r != nil && r.m == m && r.set == set {
		return r
	}
	name := s.userName()
	if r := s.mine.Load(); r != nil && r.m == m && r.name == name {
		c := &rights{m: m, name: name, set: set, role: r.role, super: r.super, has: r.has}
		s.mine.Store(c)
		return c
	}
	r := rightsOf(m, m.Role(name))
	r.name, r.set = name, set
	r.super = s.superName(m, name)
	if r.role == 0 && r.super {
		r.role = roles.Superuser // an unlisted one
	}
	s.mine.Store(r)
	return r
}

// rightsOf are the rights of a role; of nil they are everybody's.
func rightsOf(m *roles.Model, role *roles.Role) *rights {
	r := &rights{m: m, has: map[uint32]bool{}}
	if role == nil {
		return r
	}
	r.role, r.super, r.name = role.OID, role.Super, role.Name
	for _, x := range m.Roles() {
		if m.Has(role.OID, x.OID) {
			r.has[x.OID] = true
		}
	}
	return r
}

// of are the rights of another role, by the same state.
func (r *rights) of(oid uint32) *rights {
	if oid == r.role {
		return r
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if x := r.others[oid]; x != nil {
		return x
	}
	if r.others == nil {
		r.others = map[uint32]*rights{}
	}
	x := rightsOf(r.m, r.m.ByOID(oid))
	if oid == roles.Superuser {
		x.super = true
	}
	r.others[oid] = x
	return x
}

// mask are the privileges of want that the role has on an object, or with options
// may grant on.
func (r *rights) mask(k roles.Key, c roles.Class, want roles.Mode, options bool) roles.Mode {
	if r.super {
		return want
	}
	a := r.m.Access(k)
	got := a.Effective(c).Mask(r.role, r.has[a.Owner], r.in, want, options)
	if options {
		return got
	}
	switch c {
	case roles.Relation, roles.Sequences:
		if want&roles.Select&^got != 0 && r.has[roles.ReadAllData] {
			got |= roles.Select
		}
		if write := want & (roles.Insert | roles.Update | roles.Delete) &^ got; write != 0 && r.has[roles.WriteAllData] {
			got |= write
		}
	case roles.Schema:
		if want&roles.Usage&^got != 0 && (r.has[roles.ReadAllData] || r.has[roles.WriteAllData]) {
			got |= roles.Usage
		}
	}
	return got
}

func (r *rights) in(role uint32) bool { return r.has[role] }

// column are the privileges of want that the role was given on a single column.
func (r *rights) column(a *roles.Access, name string, want roles.Mode, options bool) roles.Mode {
	if r.super {
		return want
	}
	return a.Columns[name].Mask(r.role, r.has[a.Owner], r.in, want, options)
}

// owns reports whether the role has the privileges of an object's owner.
func (r *rights) owns(k roles.Key) bool { return r.super || r.has[r.m.Access(k).Owner] }

// usable reports whether the role may look names up in a schema.
func (r *rights) usable(schema string) bool {
	if r.super {
		return true
	}
	r.mu.Lock()
	ok, known := r.schemas[schema]
	r.mu.Unlock()
	if known {
		return ok
	}
	ok = free(schema) || r.mask(roles.SchemaKey(schema), roles.Schema, roles.Usage, false) != 0
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.schemas == nil {
		r.schemas = map[string]bool{}
	}
	r.schemas[schema] = ok
	return ok
}

// free reports whether what is in a schema is its session's own: temporary tables.
func free(schema string) bool { return strings.HasPrefix(schema, "pg_temp_") }

// relationAccess is the key and class of a relation, a system table or a branch being
// part of its table.
func relationAccess(rel catalog.Relation) (roles.Key, roles.Class) {
	name, _, _ := strings.Cut(rel.Name(), "$")
	if rel.Kind() == 'S' {
		return roles.RelationKey(rel.Schema(), name), roles.Sequences
	}
	return roles.RelationKey(rel.Schema(), name), roles.Relation
}

// relationKind is what messages call a relation.
func relationKind(rel catalog.Relation) string {
	switch rel.Kind() {
	case 'v':
		return "view"
	case 'S':
		return "sequence"
	}
	return "table"
}

// refused is the error of a relation that may not be used in some way.
func refused(rel catalog.Relation) error {
	k, _ := relationAccess(rel)
	return denied("permission denied for %s %s", relationKind(rel), k.Name)
}

// permit checks that the current user may run a plan.
func (s *Session) permit(ctx context.Context, pl *planned) error {
	r := s.rights(ctx)
	if r.super || r.isPassed(pl) {
		return nil
	}
	if err := r.grants(pl.needs()); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.passed == nil || len(r.passed) > 1000 {
		r.passed = map[*planned]struct{}{}
	}
	r.passed[pl] = struct{}{}
	return nil
}

func (r *rights) isPassed(pl *planned) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, ok := r.passed[pl]
	return ok
}

func (pl *planned) needs() []*planner.Need {
	switch {
	case pl.p != nil:
		return pl.p.Needs
	case pl.mod != nil:
		return pl.mod.Needs
	}
	return nil
}

// grants checks what a statement does with the relations that it names.
func (r *rights) grants(needs []*planner.Need) error {
	if r.super {
		return nil
	}
	for _, n := range needs {
		who := r
		if n.Via != nil && !free(n.Via.Schema()) {
			k, _ := relationAccess(n.Via)
			who = r.of(r.m.Access(k).Owner)
		}
		if !who.fulfils(n) {
			return refused(n.Rel)
		}
	}
	return nil
}

func (r *rights) fulfils(n *planner.Need) bool {
	if r.super || n.Modes == 0 || free(n.Rel.Schema()) {
		return true
	}
	k, c := relationAccess(n.Rel)
	left := n.Modes &^ r.mask(k, c, n.Modes, false)
	if left == 0 {
		return true
	}
	a := r.m.Access(k)
	if left&^(roles.Select|roles.Insert|roles.Update) != 0 || len(a.Columns) == 0 || n.Whole || k.Name != n.Rel.Name() {
		return false
	}
	for _, x := range []struct {
		mode roles.Mode
		cols planner.ColumnSet
	}{{roles.Select, n.Selected}, {roles.Insert, n.Inserted}, {roles.Update, n.Updated}} {
		if left&x.mode == 0 {
			continue
		}
		every, some := true, false
		for i, col := range n.Rel.Columns() {
			ok := r.column(a, col.Name, x.mode, false) != 0
			some = some || ok
			every = every && (ok || !x.cols.Has(i))
		}
		if !every || x.cols.Empty() && !some {
			return false
		}
	}
	return true
}

// mayUse checks that the current user has any of some privileges on a relation.
func (s *Session) mayUse(ctx context.Context, rel catalog.Relation, any roles.Mode) error {
	r := s.rights(ctx)
	if r.super || free(rel.Schema()) {
		return nil
	}
	if k, c := relationAccess(rel); r.mask(k, c, any, false) == 0 {
		return refused(rel)
	}
	return nil
}

// mustOwn checks that the current user owns a relation.
func (s *Session) mustOwn(ctx context.Context, rel catalog.Relation) error {
	if k, _ := relationAccess(rel); !free(rel.Schema()) && !s.rights(ctx).owns(k) {
		return denied("must be owner of %s %s", relationKind(rel), k.Name)
	}
	return nil
}

// mayMaintain reports whether the current user may VACUUM and ANALYZE a table.
func (s *Session) mayMaintain(ctx context.Context, rel catalog.Relation) bool {
	return s.mustOwn(ctx, rel) == nil || s.rights(ctx).owns(roles.DatabaseKey)
}

// mustOwnToDrop checks that the current user owns a relation or its schema.
func (s *Session) mustOwnToDrop(ctx context.Context, rel catalog.Relation) error {
	err := s.mustOwn(ctx, rel)
	if err != nil && s.rights(ctx).owns(roles.SchemaKey(rel.Schema())) {
		return nil
	}
	return err
}

// mustOwnSchema checks that the current user owns a schema.
func (s *Session) mustOwnSchema(ctx context.Context, name string) error {
	if free(name) || s.rights(ctx).owns(roles.SchemaKey(name)) {
		return nil
	}
	return denied("must be owner of schema %s", name)
}

// mustOwnDatabase checks that the current user owns the database.
func (s *Session) mustOwnDatabase(ctx context.Context) error {
	if s.rights(ctx).owns(roles.DatabaseKey) {
		return nil
	}
	return denied("must be owner of database %s", s.database)
}

// mayUseSchema checks that names may be looked up in a schema.
func (s *Session) mayUseSchema(ctx context.Context, name string) error {
	if s.rights(ctx).usable(name) {
		return nil
	}
	return denied("permission denied for schema %s", name)
}

// mayCreateIn checks that the current user may make things in a schema.
func (s *Session) mayCreateIn(ctx context.Context, name string) error {
	if free(name) || s.rights(ctx).mask(roles.SchemaKey(name), roles.Schema, roles.Create, false) != 0 {
		return nil
	}
	return denied("permission denied for schema %s", name)
}

// mayInDatabase checks a privilege on the database.
func (s *Session) mayInDatabase(ctx context.Context, want roles.Mode) error {
	if s.rights(ctx).mask(roles.DatabaseKey, roles.Database, want, false) != 0 {
		return nil
	}
	if want == roles.Temporary {
		return denied("permission denied to create temporary tables in database %q", s.database)
	}
	return denied("permission denied for database %s", s.database)
}

// mayConnect checks that who was let in may use the database.
func (s *Session) mayConnect(ctx context.Context) error {
	if s.mayInDatabase(ctx, roles.Connect) == nil {
		return nil
	}
	return pgerr.New(pgerr.InsufficientPrivilege, "permission denied for database %q", s.database).WithDetail("User does not have CONNECT privilege.")
}

// born gives an object that was just made its owner, the current user, and the
// privileges that default privileges say. schema is where a relation is.
func (s *Session) born(ctx context.Context, k roles.Key, c roles.Class) error {
	return s.bornTo(ctx, k, c, s.rights(ctx).role)
}

// bornTo is born with another owner.
func (s *Session) bornTo(ctx context.Context, k roles.Key, c roles.Class, owner uint32) error {
	if free(k.Schema) {
		return nil
	}
	if ed, err := s.editorOf(ctx, ""); err != nil {
		return err
	} else if _, ok := ed.(catalog.ObjectEditor); !ok {
		return nil // a catalog without roles
	}
	return s.putAccess(ctx, k, &roles.Access{Owner: owner, ACL: s.roles(ctx).NewACL(c, owner, k.Schema)})
}

// putAccess stores who owns an object and who may use it.
func (s *Session) putAccess(ctx context.Context, k roles.Key, a *roles.Access) error {
	ed, err := s.objectEditor(ctx, "")
	if err != nil {
		return err
	}
	o, err := a.Object(k)
	if err != nil {
		return err
	}
	if a.IsStandard(k) {
		return ed.DeleteObject(ctx, o.Kind, o.Schema, o.Name)
	}
	_, err = ed.PutObject(ctx, o)
	return err
}

// usablePath leaves the schemas out of a search path that may not be used.
func (s *Session) usablePath(ctx context.Context, path []string) []string {
	r := s.rights(ctx)
	if r.super {
		return path
	}
	out := make([]string, 0, len(path))
	for _, n := range path {
		if r.usable(n) {
			out = append(out, n)
		}
	}
	return out
}
