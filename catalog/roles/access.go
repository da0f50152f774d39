package roles

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog/objects"
)

// Key names an object that has an owner and privileges. Schema is "" but for
// relations and sequences; Class Relation and Sequences mean the same key, as both
// are relations.
type Key struct {
	Class  Class
	Schema string
	Name   string
}

// RelationKey is the key of a table, a view or a sequence.
func RelationKey(schema, name string) Key { return Key{Relation, schema, name} }

// SchemaKey is the key of a schema.
func SchemaKey(name string) Key { return Key{Class: Schema, Name: name} }

// DatabaseKey is the key of the database: a warehouse is one, whatever it is called.
var DatabaseKey = Key{Class: Database, Name: "database"}

// kind is the kind of stored object that holds a key's access.
func (k Key) kind() objects.Kind {
	switch k.Class {
	case Schema:
		return objects.SchemaGrant
	case Database:
		return objects.DatabaseGrant
	}
	return objects.Grant
}

// Access is who owns an object and who may do what with it. Immutable.
type Access struct {
	Owner uint32 `json:"owner"`
	// ACL nil is DefaultACL.
	ACL ACL `json:"acl"`
	// Columns are the privileges on single columns, by name.
	Columns map[string]ACL `json:"columns,omitempty"`
}

// PublicSchema is the schema that every warehouse has; everybody may use it, and the
// owner of the database may create in it, as in PostgreSQL 15.
const PublicSchema = "public"

// standard is the access of objects for which nothing is stored: of what other
// engines made, and of what the superuser made and never granted.
func standard(k Key) *Access {
	a := &Access{Owner: Superuser}
	switch {
	case k.Class == Schema && k.Name == PublicSchema:
		a.Owner = DatabaseOwner
		a.ACL = append(DefaultACL(Schema, DatabaseOwner), Item{Grantee: Public, Grantor: DatabaseOwner, Privs: Usage})
	case k.Class == Schema && system[k.Name]:
		a.ACL = append(DefaultACL(Schema, Superuser), Item{Grantee: Public, Grantor: Superuser, Privs: Usage})
	case k.Class == Relation && system[k.Schema] && !unreadable[k.Name]:
		a.ACL = append(DefaultACL(Relation, Superuser), Item{Grantee: Public, Grantor: Superuser, Privs: Select})
	}
	return a
}

// system are the schemas of catalogs, which everybody may read.
var system = map[string]bool{"pg_catalog": true, "information_schema": true, "sys": true}

// unreadable are the relations of PostgreSQL's catalogs that only superusers may read.
var unreadable = map[string]bool{
	"_pg_foreign_data_wrappers": true, "_pg_foreign_servers": true, "_pg_foreign_table_columns": true, "_pg_foreign_tables": true,
	"_pg_user_mappings": true, "pg_authid": true, "pg_backend_memory_contexts": true, "pg_config": true, "pg_file_settings": true,
	"pg_hba_file_rules": true, "pg_ident_file_mappings": true, "pg_largeobject": true, "pg_replication_origin_status": true, "pg_shadow": true,
	"pg_shmem_allocations": true, "pg_statistic": true, "pg_statistic_ext_data": true, "pg_subscription": true, "pg_user_mapping": true,
	"sql_parts": true, "transforms": true,
}

// Access returns the owner and privileges of an object.
func (m *Model) Access(k Key) *Access {
	if k.Class == Sequences {
		k.Class = Relation
	}
	if a, ok := m.access.Load(k); ok {
		return a.(*Access)
	}
	a := standard(k)
	if m.state != nil {
		if o := m.state.Get(k.kind(), k.Schema, k.Name); o != nil {
			var b Access
			if o.Decode(&b) == nil {
				a = &b
			} else {
				a = &Access{Owner: Superuser} // nobody else may, until it is mended
			}
		}
	}
	m.access.Store(k, a)
	return a
}

// Accesses calls f for all objects for which something is stored.
func (m *Model) Accesses(f func(Key, *Access)) {
	if m.state == nil {
		return
	}
	for _, c := range []Class{Database, Schema, Relation} {
		for _, o := range m.state.List(Key{Class: c}.kind()) {
			k := Key{c, o.Schema, o.Name}
			f(k, m.Access(k))
		}
	}
}

// Object is what is stored of an access.
func (a *Access) Object(k Key) (objects.Object, error) {
	b, err := json.Marshal(a)
	return objects.Object{Kind: k.kind(), Schema: k.Schema, Name: k.Name, Body: b}, err
}

// IsStandard reports whether an access need not be stored.
func (a *Access) IsStandard(k Key) bool {
	s := standard(k)
	return a.Owner == s.Owner && (a.ACL == nil) == (s.ACL == nil) && a.ACL.same(s.ACL) && len(a.Columns) == 0
}

// Effective is the ACL as an object of a class has it, never nil.
func (a *Access) Effective(c Class) ACL {
	if a.ACL == nil {
		return DefaultACL(c, a.Owner)
	}
	return a.ACL
}

// Default are the privileges that objects get which a role makes, in one schema or,
// with Schema "", in every one.
type Default struct {
	Role   uint32
	Schema string
	Class  Class
}

func (d Default) name() string {
	return strconv.FormatUint(uint64(d.Role), 10) + "/" + string(rune(d.Class)) + "/" + d.Schema
}

// Defaults lists the stored default privileges.
func (m *Model) Defaults() []Default {
	var out []Default
	if m.state == nil {
		return nil
	}
	for _, o := range m.state.List(objects.DefaultGrant) {
		role, rest, _ := strings.Cut(o.Name, "/")
		n, err := strconv.ParseUint(role, 10, 32)
		class, schema, ok := strings.Cut(rest, "/")
		if err == nil && ok && len(class) == 1 {
			out = append(out, Default{uint32(n), schema, Class(class[0])})
		}
	}
	return out
}

// DefaultOID is the OID of stored default privileges, 0 = there are none.
func (m *Model) DefaultOID(d Default) uint32 {
	if m.state == nil {
		return 0
	}
	if o := m.state.Get(objects.DefaultGrant, "", d.name()); o != nil {
		return o.OID
	}
	return 0
}

// DefaultFor returns stored default privileges, nil when there are none.
func (m *Model) DefaultFor(d Default) ACL {
	if m.state == nil {
		return nil
	}
	o := m.state.Get(objects.DefaultGrant, "", d.name())
	if o == nil {
		return nil
	}
	a := ACL{}
	if o.Decode(&a) != nil {
		return nil
	}
	return a
}

// Base is what default privileges start from: the hard-wired ones, or with a schema
// nothing, as those of a schema are added.
func (d Default) Base() ACL {
	if d.Schema != "" {
		return ACL{}
	}
	return DefaultACL(d.Class, d.Role)
}

// Object is what is stored of default privileges; ok is false when they are as they
// would be anyway, and need not be.
func (d Default) Object(a ACL) (o objects.Object, ok bool, err error) {
	b, err := json.Marshal(a)
	return objects.Object{Kind: objects.DefaultGrant, Name: d.name(), Body: b}, !a.same(d.Base()), err
}

// NewACL is the ACL of an object that a role makes: nil unless default privileges say
// otherwise.
func (m *Model) NewACL(c Class, owner uint32, schema string) ACL {
	global, local := m.DefaultFor(Default{owner, "", c}), ACL(nil)
	if schema != "" {
		local = m.DefaultFor(Default{owner, schema, c})
	}
	if global == nil && local == nil {
		return nil
	}
	base := DefaultACL(c, owner)
	if global == nil {
		global = base
	}
	out := global.merged(local)
	if out.same(base) {
		return nil
	}
	return out
}

// Settings are what ALTER ROLE and ALTER DATABASE ... SET keep: of a role (0 = every
// one) in a database ("" = every one).
type Settings struct {
	Role     uint32
	Database string
}

func (s Settings) name() string {
	return strconv.FormatUint(uint64(s.Role), 10) + "/" + s.Database
}

// Setting is a setting with its value.
type Setting struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// SettingsOf returns what is kept, in the order in which it was first set.
func (m *Model) SettingsOf(s Settings) []Setting {
	if m.state == nil {
		return nil
	}
	var out []Setting
	if o := m.state.Get(objects.RoleSetting, "", s.name()); o == nil || o.Decode(&out) != nil {
		return nil
	}
	return out
}

// AllSettings lists whom settings are kept for.
func (m *Model) AllSettings() []Settings {
	if m.state == nil {
		return nil
	}
	var out []Settings
	for _, o := range m.state.List(objects.RoleSetting) {
		role, database, ok := strings.Cut(o.Name, "/")
		if n, err := strconv.ParseUint(role, 10, 32); ok && err == nil {
			out = append(out, Settings{uint32(n), database})
		}
	}
	return out
}

// With returns settings with one changed; value nil takes it away.
func With(list []Setting, name string, value *string) []Setting {
	i := slices.IndexFunc(list, func(x Setting) bool { return strings.EqualFold(x.Name, name) })
	out := slices.Clone(list)
	switch {
	case value == nil && i >= 0:
		out = slices.Delete(out, i, i+1)
	case value == nil:
	case i >= 0:
		out[i].Value = *value
	default:
		out = append(out, Setting{name, *value})
	}
	return out
}

// Object is what is stored of settings.
func (s Settings) Object(list []Setting) (objects.Object, error) {
	b, err := json.Marshal(list)
	return objects.Object{Kind: objects.RoleSetting, Name: s.name(), Body: b}, err
}
