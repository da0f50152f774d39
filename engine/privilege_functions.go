package engine

import (
	"context"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/catalog/roles"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// knownModes are the privileges that the functions know, by the words between has_
// and _privilege.
var knownModes = map[string]roles.Mode{
	"table": roles.Relation.All(), "any_column": roles.ColumnOf.All(), "column": roles.ColumnOf.All(), "sequence": roles.Sequences.All(),
	"schema": roles.Schema.All(), "database": roles.Database.All(), "function": roles.Execute, "language": roles.Usage, "tablespace": roles.Create,
	"type": roles.Usage, "server": roles.Usage, "foreign_data_wrapper": roles.Usage, "parameter": roles.Set | roles.AlterSystem,
}

// hasPrivilege is has_table_privilege and its kin: [role,] object[, column],
// privileges. NULL when an object that is given by OID or number does not exist.
func (e *stmtEnv) hasPrivilege(ctx context.Context, fn string, args []types.Datum) (types.Datum, error) {
	what := strings.TrimSuffix(strings.TrimPrefix(fn, "has_"), "_privilege")
	n := 2
	if what == "column" {
		n = 3
	}
	r := e.s.rights(ctx)
	if len(args) > n {
		var err error
		if r, err = e.rightsArg(ctx, args[0]); err != nil {
			return nil, err
		}
		args = args[1:]
	}
	text, _ := args[n-1].(string)
	switch what {
	case "table", "any_column", "column", "sequence":
		rel, err := e.relationArg(ctx, args[0])
		if err != nil {
			return nil, err
		}
		return e.onRelation(r, what, rel, args, text)
	case "schema":
		name, ok := args[0].(string)
		if ok {
			if _, exists := e.s.schemaExists(ctx, name); !exists {
				return nil, pgerr.New(pgerr.InvalidSchemaName, "schema %q does not exist", name)
			}
			if name == "default" {
				name = catalog.PublicSchema
			}
		} else {
			oid, _ := args[0].(int64)
			if name, ok = e.NamespaceName(ctx, uint32(oid)); !ok {
				name = ""
			}
		}
		plain, options, err := privilegeList(text, knownModes[what])
		if err != nil || name == "" {
			return nil, err
		}
		if free(name) {
			return true, nil
		}
		k := roles.SchemaKey(name)
		return r.mask(k, roles.Schema, plain, false) != 0 || r.mask(k, roles.Schema, options, true) != 0, nil
	case "database":
		if name, ok := args[0].(string); ok {
			if err := e.s.thisDatabase(name); err != nil {
				return nil, err
			}
		} else if oid, _ := args[0].(int64); uint32(oid) != pgcatalog.DatabaseOID {
			return nil, nil
		}
		plain, options, err := privilegeList(text, knownModes[what])
		if err != nil {
			return nil, err
		}
		return r.mask(roles.DatabaseKey, roles.Database, plain, false) != 0 || r.mask(roles.DatabaseKey, roles.Database, options, true) != 0, nil
	}
	// Of other kinds of objects there are only PostgreSQL's own, which everybody may
	// use and nobody but superusers may grant.
	plain, _, err := privilegeList(text, knownModes[what])
	if err != nil {
		return nil, err
	}
	switch what {
	case "function", "language", "type":
		return r.super || plain != 0, nil
	}
	return r.super, nil
}

// rightsArg are the rights of the role that an argument names; public is everybody.
func (e *stmtEnv) rightsArg(ctx context.Context, arg types.Datum) (*rights, error) {
	m := e.s.roles(ctx)
	if name, ok := arg.(string); ok {
		switch role := m.Role(name); {
		case name == "public":
			return rightsOf(m, nil), nil
		case role != nil:
			return e.s.rights(ctx).of(role.OID), nil
		case e.s.superName(m, name):
			return e.s.rights(ctx).of(roles.Superuser), nil
		}
		return nil, noRole(name)
	}
	oid, _ := arg.(int64)
	if oid == 0 {
		return rightsOf(m, nil), nil
	}
	return e.s.rights(ctx).of(uint32(oid)), nil
}

// relationArg finds the relation that an argument names; nil: its OID is none.
func (e *stmtEnv) relationArg(ctx context.Context, arg types.Datum) (catalog.Relation, error) {
	if oid, ok := arg.(int64); ok {
		return e.byOID(ctx)[uint32(oid)], nil
	}
	text, _ := arg.(string)
	n, err := parseName(text)
	if err != nil {
		return nil, err
	}
	// Schemas that the user may not use are looked in, too, when they are named.
	r := &resolver{s: e.s, path: e.path(), pins: map[pinKey]catalog.Relation{}}
	rel, err := r.find(ctx, n, catalog.ResolveOptions{})
	if pgerr.Is(err, pgerr.UndefinedTable) {
		return nil, pgerr.New(pgerr.UndefinedTable, "relation %q does not exist", n.String())
	}
	return rel, err
}

// onRelation is hasPrivilege of a relation.
func (e *stmtEnv) onRelation(r *rights, what string, rel catalog.Relation, args []types.Datum, text string) (types.Datum, error) {
	var col *catalog.Column
	if what == "column" {
		var err error
		if col, err = columnArg(rel, args[1]); err != nil {
			return nil, err
		}
	}
	if what == "sequence" && rel != nil && rel.Kind() != 'S' {
		return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a sequence", rel.Name())
	}
	plain, options, err := privilegeList(text, knownModes[what])
	if err != nil || rel == nil || what == "column" && col == nil {
		return nil, err
	}
	if free(rel.Schema()) {
		return true, nil
	}
	k, c := relationAccess(rel)
	if r.mask(k, c, plain, false) != 0 || r.mask(k, c, options, true) != 0 {
		return true, nil
	}
	a := r.m.Access(k)
	on := func(name string) bool {
		return r.column(a, name, plain, false) != 0 || r.column(a, name, options, true) != 0
	}
	switch what {
	case "column":
		return on(col.Name), nil
	case "any_column":
		for _, x := range rel.Columns() {
			if on(x.Name) {
				return true, nil
			}
		}
	}
	return false, nil
}

// byOID are all relations by OID, looked up once in a statement: catalog queries ask
// about each of them.
func (e *stmtEnv) byOID(ctx context.Context) map[uint32]catalog.Relation {
	e.relationsOnce.Do(func() { e.relations = pgcatalog.Relations(ctx, e.s.sources()) })
	return e.relations
}

// columnArg finds the column that an argument names; nil: its number is none.
func columnArg(rel catalog.Relation, arg types.Datum) (*catalog.Column, error) {
	if rel == nil {
		return nil, nil
	}
	cols := rel.Columns()
	num, isNum := arg.(int64)
	name, _ := arg.(string)
	for i := range cols {
		if isNum && int64(cols[i].AttNum) == num || !isNum && cols[i].Name == name {
			return &cols[i], nil
		}
	}
	if isNum {
		return nil, nil
	}
	return nil, pgerr.New(pgerr.UndefinedColumn, "column %q of relation %q does not exist", name, rel.Name())
}

// aclOf reads an argument of type aclitem[].
func (e *stmtEnv) aclOf(ctx context.Context, arg types.Datum) (roles.ACL, error) {
	list, _ := arg.([]types.Datum)
	m := e.s.roles(ctx)
	out := roles.ACL{}
	for _, d := range list {
		text, _ := d.(string)
		x, err := roles.ParseItem(text, func(name string) (uint32, bool) {
			if r := m.Role(name); r != nil {
				return r.OID, true
			}
			return 0, false
		})
		if err != nil {
			return nil, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s: %q", "aclitem", text)
		}
		out = append(out, x)
	}
	return out, nil
}

// roleNames names roles as aclitem does: one that is gone by its OID.
func roleNames(m *roles.Model) func(uint32) string {
	return func(oid uint32) string {
		if r := m.ByOID(oid); r != nil {
			return r.Name
		}
		return formatInt(int64(oid))
	}
}

// aclDatum is an ACL as a value of type aclitem[].
func aclDatum(m *roles.Model, a roles.ACL) types.Datum {
	out := []types.Datum{}
	for _, t := range a.Text(roleNames(m)) {
		out = append(out, t)
	}
	return out
}

// aclFunction runs acldefault, aclexplode and makeaclitem.
func (e *stmtEnv) aclFunction(ctx context.Context, fn string, args []types.Datum) (types.Datum, error) {
	m := e.s.roles(ctx)
	switch fn {
	case "acldefault":
		kind, _ := args[0].(string)
		oid, _ := args[1].(int64)
		if len(kind) != 1 || !strings.Contains("cCrsdfpltFSTLn", kind) { //nolint:gocritic // the letters of acldefault
			return nil, pgerr.New(pgerr.InternalError, "unrecognized objtype abbreviation: %s", kind)
		}
		return aclDatum(m, roles.DefaultACL(roles.Class(kind[0]), uint32(oid))), nil
	case "makeaclitem":
		to, _ := args[0].(int64)
		by, _ := args[1].(int64)
		text, _ := args[2].(string)
		option, _ := args[3].(bool)
		x := roles.Item{Grantee: uint32(to), Grantor: uint32(by)}
		mode, ok := roles.ParseMode(strings.TrimSpace(text))
		if !ok {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "unrecognized privilege type: %q", strings.TrimSpace(text))
		}
		if x.Privs = mode; option {
			x.Options = mode
		}
		return roles.ACL{x}.Text(roleNames(m))[0], nil
	}
	acl, err := e.aclOf(ctx, args[0])
	if err != nil {
		return nil, err
	}
	rows := []types.Datum{}
	for _, x := range acl {
		for _, w := range x.Privs.Words() {
			mode, _ := roles.ParseMode(w)
			rows = append(rows, []types.Datum{int64(x.Grantor), int64(x.Grantee), w, x.Options&mode != 0})
		}
	}
	return rows, nil
}
