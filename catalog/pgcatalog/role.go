package pgcatalog

import (
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

func fillRoles(f *Filler) error {
	for _, r := range f.Src.Roles() {
		f.Row("rolname", r.Name, "rolsuper", r.Super, "rolinherit", r.Inherit, "rolcreaterole", r.CreateRole, "rolcreatedb", r.CreateDB,
			"rolcanlogin", r.Login, "rolreplication", r.Repl, "rolconnlimit", r.ConnLimit, "rolpassword", "********",
			"rolvaliduntil", r.validUntil(), "rolbypassrls", r.BypassRLS, "oid", r.OID, "rolconfig", f.settings(roles.Settings{Role: r.OID}))
	}
	return nil
}

func fillAuthid(f *Filler) error {
	for _, r := range f.Src.Roles() {
		f.Row("oid", r.OID, "rolname", r.Name, "rolsuper", r.Super, "rolinherit", r.Inherit, "rolcreaterole", r.CreateRole, "rolcreatedb", r.CreateDB,
			"rolcanlogin", r.Login, "rolreplication", r.Repl, "rolconnlimit", r.ConnLimit, "rolbypassrls", r.BypassRLS,
			"rolpassword", orNull(r.Password), "rolvaliduntil", r.validUntil())
	}
	return nil
}

func (r *Role) validUntil() types.Datum {
	if r.ValidUntil == nil {
		return nil
	}
	return *r.ValidUntil
}

func fillUser(f *Filler) error { return fillLogins(f, func(*Role) any { return "********" }) }

func fillShadow(f *Filler) error {
	return fillLogins(f, func(r *Role) any { return orNull(r.Password) })
}

// fillLogins adds the roles that may log in.
func fillLogins(f *Filler, password func(*Role) any) error {
	for _, r := range f.Src.Roles() {
		if r.Login {
			f.Row("usename", r.Name, "usesysid", r.OID, "usecreatedb", r.CreateDB, "usesuper", r.Super, "userepl", r.Repl,
				"usebypassrls", r.BypassRLS, "passwd", password(&r), "valuntil", r.validUntil(), "useconfig", f.settings(roles.Settings{Role: r.OID}))
		}
	}
	return nil
}

// fillGroup adds the roles that may not log in.
func fillGroup(f *Filler) error {
	list := f.Src.Roles()
	for _, g := range list {
		if g.Login {
			continue
		}
		members := []types.Datum{}
		for _, r := range list {
			for _, m := range r.MemberOf {
				if m.Role == g.OID {
					members = append(members, int64(r.OID))
				}
			}
		}
		f.Row("groname", g.Name, "grosysid", g.OID, "grolist", members)
	}
	return nil
}

func fillAuthMembers(f *Filler) error {
	for _, r := range f.Src.Roles() {
		for _, m := range r.MemberOf {
			f.Row("roleid", m.Role, "member", r.OID, "grantor", m.By, "admin_option", m.Admin)
		}
	}
	return nil
}

func fillISEnabledRoles(f *Filler) error {
	for _, r := range f.Src.Roles() {
		if f.Src.EnabledRole(r.OID) || r.Name == f.Src.User() {
			f.Row("role_name", r.Name)
		}
	}
	return nil
}

func fillISApplicableRoles(f *Filler) error { return fillISMemberships(f, false) }

func fillISAdministrableRoles(f *Filler) error { return fillISMemberships(f, true) }

// fillISMemberships lists what roles of the current user are members of.
func fillISMemberships(f *Filler, adminOnly bool) error {
	list := f.Src.Roles()
	names := map[uint32]string{}
	for _, r := range list {
		names[r.OID] = r.Name
	}
	for _, r := range list {
		if !f.Src.EnabledRole(r.OID) && r.Name != f.Src.User() {
			continue
		}
		for _, m := range r.MemberOf {
			grantable := "NO"
			if adminOnly && !m.Admin {
				continue
			}
			if m.Admin {
				grantable = "YES"
			}
			f.Row("grantee", r.Name, "role_name", names[m.Role], "is_grantable", grantable)
		}
	}
	return nil
}

// roleOID finds a role by name; that of the superuser when there is none.
func roleOID(src Sources, name string) uint32 {
	for _, r := range src.Roles() {
		if r.Name == name {
			return r.OID
		}
	}
	return superuserOID
}
