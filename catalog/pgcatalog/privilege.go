package pgcatalog

import (
	"context"
	"slices"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Relations are all relations by OID, those of the catalogs included.
func Relations(ctx context.Context, src Sources) map[uint32]catalog.Relation {
	out := map[uint32]catalog.Relation{}
	for i := range builtin() {
		d := &builtin()[i]
		out[d.RelOID()] = d.relation(src)
	}
	_ = eachTable(ctx, src, func(rel catalog.Relation) error {
		out[rel.OID()] = rel
		return nil
	})
	return out
}

// relKey is the key and class of a relation of the warehouse.
func relKey(rel catalog.Relation) (roles.Key, roles.Class) {
	if rel.Kind() == 'S' {
		return roles.RelationKey(rel.Schema(), rel.Name()), roles.Sequences
	}
	return roles.RelationKey(rel.Schema(), rel.Name()), roles.Relation
}

// ownerOf is the OID of a relation's owner; temporary tables are the current user's.
func (f *Filler) ownerOf(rel catalog.Relation) uint32 {
	if strings.HasPrefix(rel.Schema(), "pg_temp_") {
		return roleOID(f.Src, f.Src.User())
	}
	k, _ := relKey(rel)
	return f.Src.Model().Access(k).Owner
}

// roleName names a role; one that is gone by its OID.
func (f *Filler) roleName(oid uint32) string {
	if oid == roles.Public {
		return "PUBLIC"
	}
	if r := f.Src.Model().ByOID(oid); r != nil {
		return r.Name
	}
	for _, r := range f.Src.Roles() {
		if r.OID == oid {
			return r.Name
		}
	}
	return strconv.FormatUint(uint64(oid), 10)
}

func (f *Filler) aclText(a roles.ACL) types.Datum {
	if a == nil {
		return nil
	}
	out := []types.Datum{}
	for _, t := range a.Text(f.roleName) {
		out = append(out, t)
	}
	return out
}

// acl is an object's privileges as a column shows them: NULL where nobody said
// anything.
func (f *Filler) acl(k roles.Key, _ roles.Class) types.Datum {
	return f.aclText(f.Src.Model().Access(k).ACL)
}

func (f *Filler) relACL(rel catalog.Relation) types.Datum {
	k, c := relKey(rel)
	return f.acl(k, c)
}

func (f *Filler) columnACL(rel catalog.Relation, column string) types.Datum {
	k, _ := relKey(rel)
	return f.aclText(f.Src.Model().Access(k).Columns[column])
}

// shows reports whether information_schema shows a relation to the current user.
func (f *Filler) shows(rel catalog.Relation) bool {
	k, c := relKey(rel)
	if f.Src.EnabledRole(f.ownerOf(rel)) || f.Src.May(k, c, c.All()) {
		return true
	}
	for col := range f.Src.Model().Access(k).Columns {
		if f.Src.MayColumn(k, col, roles.ColumnOf.All()) {
			return true
		}
	}
	return false
}

func (f *Filler) showsColumn(rel catalog.Relation, column string) bool {
	k, c := relKey(rel)
	return f.Src.EnabledRole(f.ownerOf(rel)) || f.Src.May(k, c, roles.ColumnOf.All()) || f.Src.MayColumn(k, column, roles.ColumnOf.All())
}

// reads reports whether the current user may SELECT a column.
func (f *Filler) reads(rel catalog.Relation, column string) bool {
	if strings.HasPrefix(rel.Schema(), "pg_temp_") {
		return true
	}
	k, c := relKey(rel)
	return f.Src.May(k, c, roles.Select) || f.Src.MayColumn(k, column, roles.Select)
}

func fillDefaultACL(f *Filler) error {
	m := f.Src.Model()
	for _, d := range m.Defaults() {
		class := d.Class
		if class == roles.Sequences {
			class = 'S' // as pg_default_acl says it
		}
		ns := uint32(0)
		if d.Schema != "" {
			ns = NamespaceOID(d.Schema)
		}
		f.Row("oid", m.DefaultOID(d), "defaclrole", d.Role, "defaclnamespace", ns, "defaclobjtype", byte(class), "defaclacl", f.aclText(m.DefaultFor(d)))
	}
	return nil
}

// settings are stored settings as name=value; nil when there are none.
func (f *Filler) settings(of roles.Settings) any {
	list := f.Src.Model().SettingsOf(of)
	if len(list) == 0 {
		return nil
	}
	out := make([]string, len(list))
	for i, x := range list {
		out[i] = x.Name + "=" + x.Value
	}
	return out
}

func fillDbRoleSetting(f *Filler) error {
	list := f.Src.Model().AllSettings()
	slices.SortFunc(list, func(a, b roles.Settings) int {
		if a.Database != b.Database {
			return strings.Compare(a.Database, b.Database)
		}
		return int(int64(a.Role) - int64(b.Role))
	})
	for _, of := range list {
		db := 0
		if of.Database != "" {
			if of.Database != f.Src.Database() {
				continue // another name of the warehouse, which has no row in pg_database
			}
			db = databaseOID
		}
		f.Row("setdatabase", db, "setrole", of.Role, "setconfig", f.settings(of))
	}
	return nil
}

// granted is a privilege as information_schema lists it.
type granted struct {
	rel              catalog.Relation
	column           string
	grantor, grantee uint32
	priv             roles.Mode
	grantable        bool
}

// eachGrant calls add for every privilege on relations that the current user may know
// of. Roles leaves those out that PUBLIC was granted.
func (f *Filler) eachGrant(columns, enabledOnly bool, add func(g granted)) error {
	m := f.Src.Model()
	enabled := func(oid uint32) bool { return oid != roles.Public && f.Src.EnabledRole(oid) }
	items := func(rel catalog.Relation, column string, owner uint32, acl roles.ACL, of roles.Mode) {
		for _, x := range acl {
			if !enabled(x.Grantor) && !enabled(x.Grantee) && (x.Grantee != roles.Public || enabledOnly) {
				continue
			}
			for _, w := range (x.Privs & of).Words() {
				p, _ := roles.ParseMode(w)
				g := granted{rel: rel, column: column, grantor: x.Grantor, grantee: x.Grantee, priv: p, grantable: x.Options&p != 0}
				g.grantable = g.grantable || x.Grantee != roles.Public && m.Has(x.Grantee, owner)
				add(g)
			}
		}
	}
	one := func(rel catalog.Relation) error {
		k, c := relKey(rel)
		if c != roles.Relation {
			return nil
		}
		a := m.Access(k)
		if !columns {
			items(rel, "", a.Owner, a.Effective(c), c.All())
			return nil
		}
		for _, col := range rel.Columns() {
			items(rel, col.Name, a.Owner, append(slices.Clone(a.Effective(c)), a.Columns[col.Name]...), roles.ColumnOf.All())
		}
		return nil
	}
	for i := range builtin() {
		if err := one(builtin()[i].relation(f.Src)); err != nil {
			return err
		}
	}
	return eachTable(f.Ctx, f.Src, one)
}

func fillISTablePrivileges(f *Filler) error { return f.tableGrants(false) }

func fillISRoleTableGrants(f *Filler) error { return f.tableGrants(true) }

func (f *Filler) tableGrants(enabledOnly bool) error {
	return f.eachGrant(false, enabledOnly, func(g granted) {
		hierarchy := "NO"
		if g.priv == roles.Select {
			hierarchy = "YES"
		}
		f.Row("grantor", f.roleName(g.grantor), "grantee", f.roleName(g.grantee), "table_catalog", f.Src.Database(), "table_schema", g.rel.Schema(),
			"table_name", g.rel.Name(), "privilege_type", g.priv.Words()[0], "is_grantable", yesNo(g.grantable), "with_hierarchy", hierarchy)
	})
}

func fillISColumnPrivileges(f *Filler) error { return f.columnGrants(false) }

func fillISRoleColumnGrants(f *Filler) error { return f.columnGrants(true) }

func (f *Filler) columnGrants(enabledOnly bool) error {
	seen := map[granted]bool{} // one privilege may be the table's and the column's
	return f.eachGrant(true, enabledOnly, func(g granted) {
		if seen[g] {
			return
		}
		seen[g] = true
		f.Row("grantor", f.roleName(g.grantor), "grantee", f.roleName(g.grantee), "table_catalog", f.Src.Database(), "table_schema", g.rel.Schema(),
			"table_name", g.rel.Name(), "column_name", g.column, "privilege_type", g.priv.Words()[0], "is_grantable", yesNo(g.grantable))
	})
}

func fillISUsagePrivileges(f *Filler) error { return f.usageGrants(false) }

func fillISRoleUsageGrants(f *Filler) error { return f.usageGrants(true) }

// usageGrants lists who may use sequences, and collations, which everybody may.
func (f *Filler) usageGrants(enabledOnly bool) error {
	if !enabledOnly {
		for _, c := range collations {
			f.Row("grantor", f.roleName(superuserOID), "grantee", "PUBLIC", "object_catalog", f.Src.Database(), "object_schema", "pg_catalog",
				"object_name", c.name, "object_type", "COLLATION", "privilege_type", "USAGE", "is_grantable", "NO")
		}
	}
	m := f.Src.Model()
	enabled := func(oid uint32) bool { return oid != roles.Public && f.Src.EnabledRole(oid) }
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		k, c := relKey(rel)
		if c != roles.Sequences {
			return nil
		}
		a := m.Access(k)
		for _, x := range a.Effective(c) {
			if x.Privs&roles.Usage == 0 || !enabled(x.Grantor) && !enabled(x.Grantee) && (x.Grantee != roles.Public || enabledOnly) {
				continue
			}
			grantable := x.Options&roles.Usage != 0 || x.Grantee != roles.Public && m.Has(x.Grantee, a.Owner)
			f.Row("grantor", f.roleName(x.Grantor), "grantee", f.roleName(x.Grantee), "object_catalog", f.Src.Database(), "object_schema", rel.Schema(),
				"object_name", rel.Name(), "object_type", "SEQUENCE", "privilege_type", "USAGE", "is_grantable", yesNo(grantable))
		}
		return nil
	})
}
