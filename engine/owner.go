package engine

import (
	"context"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// ownerToBe finds the role that OWNER TO and AUTHORIZATION name.
func (s *Session) ownerToBe(ctx context.Context, spec *ast.RoleSpec) (*roles.Role, error) {
	return s.roleBySpec(ctx, spec)
}

// mustBeMember checks that the current user may act for a role.
func (s *Session) mustBeMember(ctx context.Context, role uint32) error {
	r := s.rights(ctx)
	if r.super || r.m.IsMember(r.role, role) {
		return nil
	}
	name := ""
	if x := r.m.ByOID(role); x != nil {
		name = x.Name
	}
	return denied("must be member of role %q", name)
}

// giveRelation is ALTER ... OWNER TO of a table, view or sequence that the current
// user owns. The sequences of a table's columns go with it.
func (s *Session) giveRelation(ctx context.Context, rel catalog.Relation, spec *ast.RoleSpec) error {
	to, err := s.ownerToBe(ctx, spec)
	if err != nil {
		return err
	}
	k, _ := relationAccess(rel)
	if free(k.Schema) || s.roles(ctx).Access(k).Owner == to.OID {
		return nil
	}
	if seq, ok := rel.(*catalog.SequenceRelation); ok && seq.Definition().Table != "" {
		return pgerr.New(pgerr.FeatureNotSupported, "cannot change owner of sequence %q", seq.Name()).
			WithDetail("Sequence %q is linked to table %q.", seq.Name(), seq.Definition().Table)
	}
	if !s.rights(ctx).super {
		if err := s.mustBeMember(ctx, to.OID); err != nil {
			return err
		}
		if rightsOf(s.roles(ctx), to).mask(roles.SchemaKey(k.Schema), roles.Schema, roles.Create, false) == 0 {
			return denied("permission denied for schema %s", k.Schema)
		}
	}
	return s.give(ctx, k, to.OID)
}

// give makes a role the owner of an object, and of what belongs to it.
func (s *Session) give(ctx context.Context, k roles.Key, to uint32) error {
	old := s.roles(ctx).Access(k)
	a := &roles.Access{Owner: to, ACL: old.ACL.Owned(old.Owner, to)}
	if old.Columns != nil {
		a.Columns = map[string]roles.ACL{}
		for c, l := range old.Columns {
			a.Columns[c] = l.Owned(old.Owner, to)
		}
	}
	if err := s.putAccess(ctx, k, a); err != nil || k.Class != roles.Relation {
		return err
	}
	seqs, err := s.sequencesOf(ctx, k.Schema, k.Name, "")
	if err != nil {
		return err
	}
	for _, q := range seqs {
		if sk, _ := relationAccess(q); sk != k {
			if err := s.give(ctx, sk, to); err != nil {
				return err
			}
		}
	}
	return nil
}

// runAlterOwner is ALTER SCHEMA and DATABASE ... OWNER TO.
func (s *Session) runAlterOwner(ctx context.Context, st *ast.AlterOwner) error {
	name := st.Object.Name.Last()
	switch st.Object.Kind {
	case "SCHEMA":
		to, err := s.ownerToBe(ctx, st.Owner)
		if err != nil {
			return err
		}
		n, ok := s.schemaExists(ctx, name)
		if !ok {
			return pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", name)
		}
		k := roles.SchemaKey(n)
		if s.roles(ctx).Access(k).Owner == to.OID {
			return nil
		}
		if err := s.mustOwnSchema(ctx, n); err != nil {
			return err
		}
		if systemSchema(n) {
			return pgerr.New(pgerr.FeatureNotSupported, "privileges on system catalogs cannot be changed")
		}
		if err := s.mustBeMember(ctx, to.OID); err != nil {
			return err
		}
		if err := s.mayInDatabase(ctx, roles.Create); err != nil {
			return err
		}
		return s.give(ctx, k, to.OID)
	case "DATABASE":
		to, err := s.ownerToBe(ctx, st.Owner)
		if err != nil {
			return err
		}
		if err := s.thisDatabase(name); err != nil {
			return err
		}
		if s.roles(ctx).Access(roles.DatabaseKey).Owner == to.OID {
			return nil
		}
		if err := s.mustOwnDatabase(ctx); err != nil {
			return err
		}
		if err := s.mustBeMember(ctx, to.OID); err != nil {
			return err
		}
		if r := s.rights(ctx); !r.super {
			if me := r.m.ByOID(r.role); me == nil || !me.CreateDB {
				return denied("permission denied to change owner of database")
			}
		}
		return s.give(ctx, roles.DatabaseKey, to.OID)
	}
	return pgerr.New(pgerr.FeatureNotSupported, "ALTER %s ... OWNER TO is not supported yet", st.Object.Kind)
}

// renamedColumn lets the privileges on a column follow its name; to is "" when it is
// dropped.
func (s *Session) renamedColumn(ctx context.Context, rel catalog.Relation, from, to string) error {
	k, _ := relationAccess(rel)
	old := s.roles(ctx).Access(k)
	acl, ok := old.Columns[from]
	if !ok {
		return nil
	}
	a := *old
	a.Columns = map[string]roles.ACL{}
	for c, l := range old.Columns {
		if c != from {
			a.Columns[c] = l
		}
	}
	if to != "" {
		a.Columns[to] = acl
	}
	return s.putAccess(ctx, k, &a)
}

// objectText is how messages call an object that somebody owns or has privileges on.
func (s *Session) objectText(ctx context.Context, k roles.Key) string {
	switch k.Class {
	case roles.Database:
		return "database " + s.database
	case roles.Schema:
		return "schema " + ast.QuoteIdent(k.Name)
	}
	kind := byte('r')
	if st := s.storedState(ctx); st != nil {
		switch {
		case st.Get(objects.View, k.Schema, k.Name) != nil:
			kind = 'v'
		case st.Get(objects.Sequence, k.Schema, k.Name) != nil:
			kind = 'S'
		}
	}
	return s.described(ctx, kind, k.Schema, k.Name)
}

// storedState is what is stored for the warehouse, as the transaction sees it.
func (s *Session) storedState(ctx context.Context) *objects.State {
	states, err := s.states(ctx)
	if err != nil || len(states) == 0 {
		return nil
	}
	return states[0]
}

// exists reports whether what privileges are stored for is still there: other engines
// drop tables without a word.
func (s *Session) exists(ctx context.Context, k roles.Key) bool {
	switch k.Class {
	case roles.Database:
		return true
	case roles.Schema:
		_, ok := s.schemaExists(ctx, k.Name)
		return ok
	}
	ok, err := s.relationExists(ctx, k.Schema, k.Name)
	return ok || err != nil
}

// dependsOnRole lists what keeps a role from being dropped, as PostgreSQL's detail
// says it.
func (s *Session) dependsOnRole(ctx context.Context, m *roles.Model, role uint32) []string {
	var out []string
	m.Accesses(func(k roles.Key, a *roles.Access) {
		owner, named := a.Owner == role, a.ACL.Names(role, a.Owner)
		var cols []string
		for c, l := range a.Columns {
			if l.Names(role, a.Owner) {
				cols = append(cols, c)
			}
		}
		if !owner && !named && cols == nil || !s.exists(ctx, k) {
			return
		}
		what := s.objectText(ctx, k)
		slices.Sort(cols)
		for _, c := range cols {
			out = append(out, "privileges for column "+ast.QuoteIdent(c)+" of "+what)
		}
		if named {
			out = append(out, "privileges for "+what)
		}
		if owner {
			out = append(out, "owner of "+what)
		}
	})
	for _, d := range m.Defaults() {
		what := "default privileges on new " + defaultNoun(d.Class) + " belonging to role "
		if r := m.ByOID(d.Role); r != nil {
			what += ast.QuoteIdent(r.Name)
		}
		if d.Schema != "" {
			what += " in schema " + ast.QuoteIdent(d.Schema)
		}
		if m.DefaultFor(d).Names(role, d.Role) {
			out = append(out, "privileges for "+what)
		}
		if d.Role == role {
			out = append(out, "owner of "+what)
		}
	}
	return out
}

func defaultNoun(c roles.Class) string {
	return map[roles.Class]string{roles.Relation: "relations", roles.Sequences: "sequences", roles.Functions: "functions", roles.Types: "types", roles.Schema: "schemas"}[c]
}

// rolesNamed finds the roles of REASSIGN OWNED and DROP OWNED.
func (s *Session) rolesNamed(ctx context.Context, specs []*ast.RoleSpec, what string) ([]uint32, error) {
	var out []uint32
	for _, spec := range specs {
		r, err := s.roleBySpec(ctx, spec)
		if err != nil {
			return nil, err
		}
		out = append(out, r.OID)
	}
	for _, oid := range out {
		if r := s.rights(ctx); !r.super && !r.has[oid] {
			return nil, denied("permission denied to %s objects", what)
		}
	}
	return out, nil
}

// runReassignOwned is REASSIGN OWNED.
func (s *Session) runReassignOwned(ctx context.Context, st *ast.ReassignOwned) error {
	from, err := s.rolesNamed(ctx, st.Roles, "reassign")
	if err != nil {
		return err
	}
	to, err := s.roleBySpec(ctx, st.To)
	if err != nil {
		return err
	}
	if r := s.rights(ctx); !r.super && !r.has[to.OID] {
		return denied("permission denied to reassign objects")
	}
	if err := s.pinnedOwner(ctx, from, "reassign ownership of"); err != nil {
		return err
	}
	var owned []roles.Key
	s.roles(ctx).Accesses(func(k roles.Key, a *roles.Access) {
		if slices.Contains(from, a.Owner) {
			owned = append(owned, k)
		}
	})
	for _, k := range owned {
		if s.roles(ctx).Access(k).Owner == to.OID { // it went with its table
			continue
		}
		if err := s.give(ctx, k, to.OID); err != nil {
			return err
		}
	}
	return nil
}

// pinnedOwner refuses the roles whose objects the system needs.
func (s *Session) pinnedOwner(ctx context.Context, list []uint32, what string) error {
	for _, oid := range list {
		if oid < roles.FirstOID {
			name := ""
			if r := s.roles(ctx).ByOID(oid); r != nil {
				name = r.Name
			}
			return pgerr.New(pgerr.DependentObjectsStillExist, "cannot %s objects owned by role %s because they are required by the database system", what, ast.QuoteIdent(name))
		}
	}
	return nil
}

// runDropOwned is DROP OWNED: privileges of the roles go, then what they own.
func (s *Session) runDropOwned(ctx context.Context, text string, st *ast.DropOwned, out ResultSink) error {
	list, err := s.rolesNamed(ctx, st.Roles, "drop")
	if err != nil {
		return err
	}
	if err := s.pinnedOwner(ctx, list, "drop"); err != nil {
		return err
	}
	m := s.roles(ctx)
	var rels []catalog.Relation
	var schemas []ast.Name
	changed := map[roles.Key]*roles.Access{}
	m.Accesses(func(k roles.Key, a *roles.Access) {
		if slices.Contains(list, a.Owner) {
			switch k.Class {
			case roles.Schema:
				if _, ok := s.schemaExists(ctx, k.Name); ok && k.Name != catalog.PublicSchema {
					schemas = append(schemas, ast.Name{{Name: k.Name, Quoted: true}})
				}
			case roles.Relation:
				rel, err := s.catalog().Resolve(ctx, k.Schema, k.Name, catalog.ResolveOptions{})
				if seq, ok := rel.(*catalog.SequenceRelation); err == nil && (!ok || seq.Definition().Table == "") {
					rels = append(rels, rel)
				}
			}
			return
		}
		b := *a
		b.Columns = map[string]roles.ACL{}
		hit := false
		for _, role := range list {
			hit = hit || a.ACL.Names(role, a.Owner)
			b.ACL = b.ACL.Without(m, a.Owner, role)
		}
		for c, l := range a.Columns {
			for _, role := range list {
				hit = hit || l.Names(role, a.Owner)
				l = l.Without(m, a.Owner, role)
			}
			if len(l) > 0 {
				b.Columns[c] = l
			}
		}
		if hit {
			changed[k] = &b
		}
	})
	for k, a := range changed {
		if err := s.putAccess(ctx, k, a); err != nil {
			return err
		}
	}
	for _, d := range m.Defaults() {
		acl := d.Base() // of those that are owned nothing stays
		if !slices.Contains(list, d.Role) {
			acl = m.DefaultFor(d)
			for _, role := range list {
				acl = acl.Without(m, d.Role, role)
			}
		}
		if err := s.putDefault(ctx, d, acl); err != nil {
			return err
		}
	}
	// Tables are locked as by DROP TABLE.
	for i, rel := range rels {
		if _, ok := rel.(catalog.TableInfo); ok {
			n := ast.Name{{Name: rel.Schema(), Quoted: true}, {Name: rel.Name(), Quoted: true}}
			if rels[i], err = s.lockedTable(ctx, text, n, lockExclusive, s.mustOwnToDrop); err != nil {
				return err
			}
		}
	}
	if err := s.removeRelations(ctx, text, rels, st.Cascade, out); err != nil {
		return err
	}
	if schemas == nil {
		return nil
	}
	return s.dropSchemas(ctx, &ast.Drop{Kind: "SCHEMA", Names: schemas, Cascade: st.Cascade}, out)
}

// cannotDropRole is the error of DROP ROLE while something depends on the role.
func cannotDropRole(name string, deps []string) error {
	const most = 100
	e := pgerr.New(pgerr.DependentObjectsStillExist, "role %q cannot be dropped because some objects depend on it", name)
	return e.WithDetail("%s", strings.Join(deps[:min(len(deps), most)], "\n"))
}
