// Package roles is who a warehouse knows: roles and their memberships, as
// PostgreSQL 15 has them, read from catalog/objects. Who asks, and what an error
// says, is the engine's.
//
// Roles are known by OID, so that a role's name may change.
package roles

import (
	"encoding/json"
	"slices"
	"strings"

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
}

// New reads a model from a state, nil = nothing is stored. A role that does not
// parse is left out: it cannot log in.
func New(s *objects.State) *Model {
	m := &Model{byName: map[string]*Role{}, byOID: map[uint32]*Role{}}
	add := func(r *Role) { m.byName[r.Name], m.byOID[r.OID] = r, r }
	add(&Role{OID: Superuser, Name: SuperuserName, Attrs: Attrs{
		Super: true, Inherit: true, CreateRole: true, CreateDB: true, Login: true, Replication: true, BypassRLS: true, ConnLimit: -1,
	}})
	if s == nil {
		return m
	}
	for _, o := range s.List(objects.Role) {
		r := &Role{OID: o.OID, Name: o.Name}
		if o.Decode(&r.Attrs) != nil {
			continue
		}
		if o.OID == Superuser { // it stays what it is, whatever was stored
			r.Name, r.Super, r.Login = SuperuserName, true, true
		} else {
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
// Superusers are not members of everything here.
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
