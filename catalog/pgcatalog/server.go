package pgcatalog

import (
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

func fillNamespace(f *Filler) error {
	names, err := schemas(f.Ctx, f.Src)
	if err != nil {
		return err
	}
	for _, n := range names {
		f.Row("oid", NamespaceOID(n), "nspname", n, "nspowner", f.Src.Model().Access(roles.SchemaKey(n)).Owner, "nspacl", f.acl(roles.SchemaKey(n), roles.Schema))
	}
	return nil
}

func fillDatabase(f *Filler) error {
	f.Row("oid", databaseOID, "datname", f.Src.Database(), "datdba", f.Src.Model().Access(roles.DatabaseKey).Owner, "datacl", f.acl(roles.DatabaseKey, roles.Database), "encoding", 6, "datlocprovider", "c",
		"datallowconn", true, "datconnlimit", -1, "datfrozenxid", 716, "datminmxid", 1, "dattablespace", 1663,
		"datcollate", "C", "datctype", "C")
	return nil
}

func fillTablespace(f *Filler) error {
	f.Row("oid", 1663, "spcname", "pg_default", "spcowner", superuserOID)
	f.Row("oid", 1664, "spcname", "pg_global", "spcowner", superuserOID)
	return nil
}

func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func fillSettings(f *Filler) error {
	for _, s := range f.Src.Settings() {
		var enum any
		if len(s.Enum) > 0 {
			enum = s.Enum
		}
		f.Row("name", s.Name, "setting", s.Value, "unit", orNull(s.Unit), "category", s.Category, "short_desc", orNull(s.Description),
			"context", s.Context, "vartype", s.VarType, "source", s.Source, "min_val", orNull(s.Min), "max_val", orNull(s.Max),
			"enumvals", enum, "boot_val", s.Boot, "reset_val", s.Reset, "pending_restart", s.PendingRestart)
	}
	return nil
}

// fillLocks shows locks of tables, of rows (by their table) and advisory ones.
// Nobody has a virtual transaction id.
func fillLocks(f *Filler) error {
	for _, l := range f.Src.Locks() {
		var rel, class, obj, sub, since any
		if l.Type == "advisory" {
			class, obj, sub = l.Class, l.Obj, l.Sub
		} else if schema, name, ok := strings.Cut(l.Table, "."); ok {
			name, _, _ = strings.Cut(name, "$")
			if oid, ok := ByName(f.Ctx, f.Src, schema, name); ok {
				rel = oid
			}
		}
		if !l.Since.IsZero() {
			since = l.Since
		}
		f.Row("locktype", l.Type, "database", databaseOID, "relation", rel, "classid", class, "objid", obj, "objsubid", sub,
			"pid", l.PID, "mode", l.Mode, "granted", l.Granted, "fastpath", false, "waitstart", since)
	}
	return nil
}

func fillPrepared(f *Filler) error {
	for _, p := range f.Src.Prepared() {
		params := make([]types.Datum, len(p.ParamTypes))
		for i, oid := range p.ParamTypes {
			params[i] = int64(oid)
		}
		f.Row("name", p.Name, "statement", p.Statement, "prepare_time", p.PreparedAt, "parameter_types", params, "from_sql", p.FromSQL)
	}
	return nil
}

func fillCursors(f *Filler) error {
	for _, c := range f.Src.Cursors() {
		f.Row("name", c.Name, "statement", c.Statement, "is_holdable", c.Holdable, "is_binary", c.Binary, "is_scrollable", c.Scrolled, "creation_time", c.CreatedAt)
	}
	return nil
}

// fillTimezones lists common IANA zones: Go's library has no list of all.
func fillTimezones(f *Filler) error {
	now := time.Now()
	for _, n := range []string{
		"UTC", "Europe/London", "Europe/Berlin", "Europe/Paris", "Europe/Madrid", "Europe/Moscow", "America/New_York",
		"America/Chicago", "America/Denver", "America/Los_Angeles", "America/Sao_Paulo", "Asia/Shanghai", "Asia/Tokyo", "Asia/Kolkata",
		"Asia/Singapore", "Asia/Dubai", "Australia/Sydney", "Africa/Johannesburg", "Pacific/Auckland",
	} {
		l, err := time.LoadLocation(n)
		if err != nil {
			continue
		}
		t := now.In(l)
		abbrev, _ := t.Zone()
		f.Row("name", n, "abbrev", abbrev, "is_dst", t.IsDST())
	}
	return nil
}

func fillTables(f *Filler) error {
	for i := range builtin() {
		if builtin()[i].Kind == 'r' {
			f.Row("schemaname", builtin()[i].Schema, "tablename", builtin()[i].Name, "tableowner", f.roleName(superuserOID), "hasindexes", false,
				"hasrules", false, "hastriggers", false, "rowsecurity", false)
		}
	}
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		if rel.Kind() == 'r' {
			f.Row("schemaname", rel.Schema(), "tablename", rel.Name(), "tableowner", f.roleName(f.ownerOf(rel)), "hasindexes", len(key(rel)) > 0,
				"hasrules", false, "hastriggers", false, "rowsecurity", false)
		}
		return nil
	})
}

func fillViews(f *Filler) error {
	return eachTable(f.Ctx, f.Src, func(rel catalog.Relation) error {
		if v, ok := rel.(catalog.View); ok {
			f.Row("schemaname", rel.Schema(), "viewname", rel.Name(), "viewowner", f.roleName(f.ownerOf(rel)), "definition", ViewText(f.Ctx, f.Src, v, false))
		}
		return nil
	})
}
