// Package roles is who a warehouse knows and what each may do: roles and their
// memberships, owners and privileges, as PostgreSQL 15 has them, read from
// catalog/objects. Who asks, and what an error says, is the engine's.
//
// Roles are known by OID, so that a role's name may change. Relations and schemas are
// known by their names, under which the privileges follow renames and drops made
// here (catalog.Staged).
package roles

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"

	"github.com/paimon-sql/paimon-sql/catalog/objects"
	"github.com/paimon-sql/paimon-sql/internal/scram"
)

// Superuser is the OID of the role that every warehouse has, SuperuserName its name.
const (
	Superuser     uint32 = 10
	SuperuserName        = "paimon"
)

// Attrs are the attributes of a role, the body of an object of kind Role.
type Attrs struct {
	Super       bool `json:"super,omitempty"`
	Inherit     bool `json:"inherit,omitempty"`
	CreateRole  bool `json:"createRole,omitempty"`
	CreateDB    bool `json:"createDb,omitempty"`
	Login       bool `json:"login,omitempty"`
	Replication bool `json:"replication,omitempty"`
	BypassRLS   bool `json:"bypassRls,omitempty"`
	ConnLimit   int  `json:"connLimit"` // sessions at once, -1 = any number
	// Password is a SCRAM-SHA-256 verifier in PostgreSQL's text form, "" = none.
	Password string `json:"password,omitempty"`
	// ValidUntil is when the password ends to be valid, in microseconds since 1970;
	// nil = never.
	ValidUntil *int64 `json:"validUntil,omitempty"`
	// MemberOf are the roles that it is a member of.
	MemberOf []Membership `json:"memberOf,omitempty"`
}

// Membership is one role's in another.
type Membership struct {
	Role  uint32 `json:"role"`
	Admin bool   `json:"admin,omitempty"` // may make others members
	By    uint32 `json:"by"`              // who granted it
}

// Role is a role with its attributes. Immutable.
type Role struct {
	Attrs
	OID  uint32
	Name string
}

// In finds the role's own membership in another; ok is false when there is none.
func (r *Role) In(role uint32) (m Membership, ok bool) {
	i := slices.IndexFunc(r.MemberOf, func(m Membership) bool { return m.Role == role })
	if i < 0 {
		return Membership{}, false
	}
	return r.MemberOf[i], true
}

// Model is all roles, as of one state. Immutable and safe for concurrent use.
type Model struct {
	byName map[string]*Role
	byOID  map[uint32]*Role
	// Stored reports whether roles were ever made: without, there is the superuser
	// only, and whoever is let in is one.
	Stored bool
	// Secret makes the salts of users that do not exist; nil = none was made.
	Secret []byte

	state  *objects.State
	access sync.Map // Key -> *Access, decoded when first asked for
}

// FirstOID is where OIDs of roles that were made begin.
const FirstOID = 16384

// The predefined roles that mean something here, with PostgreSQL's OIDs. The others
// exist, and may be granted.
const (
	DatabaseOwner uint32 = 6171
	ReadAllData   uint32 = 6181
	WriteAllData  uint32 = 6182
	Monitor       uint32 = 3373
	ReadAllStats  uint32 = 3375
	SignalBackend uint32 = 4200
	ReadFiles     uint32 = 4569
)

// predefined are the roles that every warehouse has besides the superuser.
func predefined() []*Role {
	var out []*Role
	for _, r := range []struct {
		oid  uint32
		name string
		of   []uint32
	}{
		{DatabaseOwner, "pg_database_owner", nil}, {ReadAllData, "pg_read_all_data", nil}, {WriteAllData, "pg_write_all_data", nil},
		{Monitor, "pg_monitor", []uint32{3374, ReadAllStats, 3377}}, {3374, "pg_read_all_settings", nil}, {ReadAllStats, "pg_read_all_stats", nil},
		{3377, "pg_stat_scan_tables", nil}, {ReadFiles, "pg_read_server_files", nil}, {4570, "pg_write_server_files", nil},
		{4571, "pg_execute_server_program", nil}, {SignalBackend, "pg_signal_backend", nil}, {4544, "pg_checkpoint", nil},
	} {
		x := &Role{OID: r.oid, Name: r.name, Attrs: Attrs{Inherit: true, ConnLimit: -1}}
		for _, of := range r.of {
			x.MemberOf = append(x.MemberOf, Membership{Role: of, By: Superuser})
		}
		out = append(out, x)
	}
	return out
}

// New reads a model from a state, nil = nothing is stored. A role that does not
// parse is left out: it cannot log in.
func New(s *objects.State) *Model {
	m := &Model{byName: map[string]*Role{}, byOID: map[uint32]*Role{}, state: s}
	add := func(r *Role) { m.byName[r.Name], m.byOID[r.OID] = r, r }
	add(&Role{OID: Superuser, Name: SuperuserName, Attrs: Attrs{
		Super: true, Inherit: true, CreateRole: true, CreateDB: true, Login: true, Replication: true, BypassRLS: true, ConnLimit: -1,
	}})
	for _, r := range predefined() {
		add(r)
	}
	if s == nil {
		return m
	}
	for _, o := range s.List(objects.Role) {
		r := &Role{OID: o.OID, Name: o.Name}
		if o.Decode(&r.Attrs) != nil {
			continue
		}
		switch old := m.byOID[o.OID]; {
		case o.OID == Superuser: // it stays what it is, whatever was stored
			r.Name, r.Super, r.Login = SuperuserName, true, true
		case old != nil && o.OID < FirstOID: // only its memberships can change
			r.Name, r.Attrs = old.Name, Attrs{Inherit: true, ConnLimit: -1, MemberOf: r.MemberOf}
		default:
			m.Stored = true
		}
		add(r)
	}
	if o := s.Get(objects.Setting, "", secretName); o != nil {
		var b secret
		if o.Decode(&b) == nil {
			m.Secret = b.Secret
		}
	}
	return m
}

const secretName = "login_secret"

type secret struct{ Secret []byte }

// Object is what is stored of a role; OID 0 makes a new one.
func (r *Role) Object() (objects.Object, error) {
	b, err := json.Marshal(r.Attrs)
	return objects.Object{Kind: objects.Role, Name: r.Name, OID: r.OID, Body: b}, err
}

// SecretObject is what is stored of Model.Secret.
func SecretObject(value []byte) (objects.Object, error) {
	b, err := json.Marshal(secret{value})
	return objects.Object{Kind: objects.Setting, Name: secretName, Body: b}, err
}

// Role finds a role by name, nil when there is none.
func (m *Model) Role(name string) *Role { return m.byName[name] }

// ByOID finds a role by OID, nil when there is none.
func (m *Model) ByOID(oid uint32) *Role { return m.byOID[oid] }

// Roles lists all roles by OID.
func (m *Model) Roles() []*Role {
	out := make([]*Role, 0, len(m.byOID))
	for _, r := range m.byOID {
		out = append(out, r)
	}
	slices.SortFunc(out, func(a, b *Role) int { return strings.Compare(a.Name, b.Name) })
	return out
}

// IsMember reports whether role is of or a member of it, by way of others too.
// Superusers are not members of everything here. The owner of the database is a
// member of pg_database_owner.
func (m *Model) IsMember(role, of uint32) bool { return m.reaches(role, of, false) }

// Has reports whether role has the privileges of another: it is it, or inherits
// from it, or is a superuser.
func (m *Model) Has(role, of uint32) bool {
	if r := m.byOID[role]; r != nil && r.Super {
		return true
	}
	return m.reaches(role, of, true)
}

// reaches walks memberships; inherit stops at roles that do not inherit.
func (m *Model) reaches(role, of uint32, inherit bool) bool {
	if role == of {
		return true
	}
	if of == DatabaseOwner {
		owner := m.Access(DatabaseKey).Owner
		return owner != DatabaseOwner && m.reaches(role, owner, inherit)
	}
	seen := map[uint32]bool{role: true}
	for todo := []uint32{role}; len(todo) > 0; {
		r := m.byOID[todo[0]]
		todo = todo[1:]
		if r == nil || inherit && !r.Inherit {
			continue
		}
		for _, x := range r.MemberOf {
			if x.Role == of {
				return true
			}
			if !seen[x.Role] {
				seen[x.Role] = true
				todo = append(todo, x.Role)
			}
		}
	}
	return false
}

// IsAdmin reports whether role may grant membership in another. No role is its own
// admin, save for superusers.
func (m *Model) IsAdmin(role, of uint32) bool {
	r := m.byOID[role]
	if r == nil {
		return false
	}
	if r.Super {
		return true
	}
	for _, x := range m.byOID {
		if in, ok := x.In(of); ok && in.Admin && m.IsMember(role, x.OID) {
			return true
		}
	}
	return false
}

// noPassword is parsed where there is nothing to parse.
const noPassword = "SCRAM-SHA-256$4096:AAAAAAAAAAAAAAAAAAAAAA==$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA="

// Verifier is what a role's password is checked with at a time in microseconds since
// 1970; ok is false when there is no such role, or it has no password, or that has
// expired. It does as much for roles that do not exist as for others.
func (m *Model) Verifier(name string, now int64) (v scram.Verifier, ok bool) {
	text := noPassword
	if r := m.byName[name]; r != nil && r.Password != "" && (r.ValidUntil == nil || now < *r.ValidUntil) {
		text, ok = r.Password, true
	}
	v, parsed := scram.Parse(text)
	return v, ok && parsed
}
