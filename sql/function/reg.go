package function

import (
	"context"
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// The oid aliases: names in, names out.

func isReg(k types.Kind) bool {
	switch k {
	case types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper:
		return true
	}
	return false
}

func catalogOf(env Env) CatalogEnv {
	if env == nil {
		return nil
	}
	return env.Catalog()
}

// RegName is the text form of an oid alias: the object's name, or the number
// when there is none; 0 is "-".
func RegName(ctx context.Context, env Env, k types.Kind, oid uint32) string {
	if oid == 0 {
		return "-"
	}
	if ctx == nil {
		ctx = context.Background()
	}
	cat := catalogOf(env)
	switch k {
	case types.RegClass:
		if cat != nil {
			if n, ok := cat.RelationName(ctx, oid); ok {
				return n
			}
		}
	case types.RegNamespace:
		if cat != nil {
			if n, ok := cat.NamespaceName(ctx, oid); ok {
				return QuoteIdent(n)
			}
		}
	case types.RegType:
		return RegTypeName(ctx, env, oid, strconv.FormatUint(uint64(oid), 10))
	case types.RegProc:
		if n, ok := procName(oid); ok {
			return n
		}
		if cat != nil {
			if s, err := cat.Text(ctx, "regprocout", []types.Datum{int64(oid)}); err == nil && s != nil {
				return *s
			}
		}
	case types.RegRole:
		if cat != nil {
			if s, err := cat.Text(ctx, "pg_get_userbyid", []types.Datum{int64(oid)}); err == nil && s != nil && !strings.HasPrefix(*s, "unknown (OID=") {
				return QuoteIdent(*s)
			}
		}
	}
	return strconv.FormatUint(uint64(oid), 10)
}

// RegTypeName is the name of a type without modifiers, that of a table for its row
// type, and unknown where there is none.
func RegTypeName(ctx context.Context, env Env, oid uint32, unknown string) string {
	if t, ok := types.ByOID(oid); ok {
		return t.PlainName()
	}
	if n, ok := otherTypes[oid]; ok {
		return n
	}
	if cat := catalogOf(env); cat != nil {
		if ctx == nil {
			ctx = context.Background()
		}
		if s, err := cat.Text(ctx, "rowtypename", []types.Datum{int64(oid)}); err == nil && s != nil {
			return *s
		}
	}
	return unknown
}

// IsOtherType reports whether a name is that of a type of PostgreSQL that no value
// here has.
func IsOtherType(name string) bool {
	_, ok := otherTypeByName(name)
	return ok
}

// otherTypeByName finds such a type as TypeByName finds the others.
func otherTypeByName(s string) (uint32, bool) {
	s = strings.Join(strings.Fields(s), " ")
	if parts := splitQualified(s); len(parts) == 2 && unquoteIdent(parts[0]) == "pg_catalog" {
		s = parts[1]
	}
	base, array := strings.CutSuffix(s, "[]")
	if i := strings.IndexByte(base, '('); i >= 0 && strings.HasSuffix(base, ")") {
		base = strings.TrimSpace(base[:i]) // modifiers are dropped
	}
	name := unquoteIdent(base)
	if array {
		if oid, ok := otherTypeOIDs[name+"[]"]; ok {
			return oid, true
		}
		name = "_" + name
	}
	oid, ok := otherTypeOIDs[name]
	return oid, ok
}

// extraProcs are functions that pg_proc refers to beyond those callable here:
// the input and output functions of types.
func procName(oid uint32) (string, bool) {
	for _, o := range all {
		if o.OID == oid {
			return o.Name, true
		}
	}
	if n, ok := typeProcs[oid]; ok {
		return n, true
	}
	return "", false
}

// RegOID is the input function of a reg* type outside of expressions, such as for
// a parameter.
func RegOID(ctx context.Context, env Env, k types.Kind, s string) (int64, error) {
	return parseReg(&Call{Ctx: ctx, Env: env}, k, s)
}

func parseReg(c *Call, k types.Kind, s string) (int64, error) {
	s = strings.TrimSpace(s)
	if s == "-" {
		return 0, nil
	}
	if n, err := strconv.ParseUint(s, 10, 32); err == nil {
		return int64(n), nil
	}
	ctx := c.Ctx
	if ctx == nil {
		ctx = context.Background()
	}
	cat := catalogOf(c.Env)
	switch k {
	case types.RegClass:
		if cat != nil {
			oid, ok, err := cat.RelationOID(ctx, s)
			if err != nil {
				return 0, err
			}
			if ok {
				return int64(oid), nil
			}
		}
		parts := splitQualified(s)
		for i := range parts {
			parts[i] = unquoteIdent(parts[i])
		}
		return 0, pgerr.New(pgerr.UndefinedTable, "relation \"%s\" does not exist", strings.Join(parts, "."))
	case types.RegNamespace:
		name := unquoteIdent(s)
		if cat != nil {
			if oid, ok := cat.NamespaceOID(ctx, name); ok {
				return int64(oid), nil
			}
		}
		return 0, pgerr.New(pgerr.InvalidSchemaName, "schema \"%s\" does not exist", name)
	case types.RegType:
		if t, ok := TypeByName(s); ok {
			return int64(t.OID()), nil
		}
		if oid, ok := otherTypeByName(s); ok {
			return int64(oid), nil
		}
		if cat != nil {
			// The row type of a relation has its name.
			if oid, ok, err := cat.RelationOID(ctx, s); err == nil && ok {
				if t, err := cat.Text(ctx, "reltype", []types.Datum{int64(oid)}); err == nil && t != nil {
					if n, err := strconv.ParseUint(*t, 10, 32); err == nil {
						return int64(n), nil
					}
				}
			}
		}
		return 0, pgerr.New(pgerr.UndefinedObject, "type \"%s\" does not exist", unquoteIdent(lastPart(s)))
	case types.RegProc:
		name := unquoteIdent(lastPart(s))
		if i := strings.IndexByte(name, '('); i >= 0 {
			name = name[:i]
		}
		if l := byName[name]; len(l) > 0 {
			return int64(l[0].OID), nil
		}
		for oid, n := range typeProcs {
			if n == name {
				return int64(oid), nil
			}
		}
		if cat != nil {
			if t, err := cat.Text(ctx, "to_regproc", []types.Datum{name}); err == nil && t != nil {
				if n, err := strconv.ParseUint(*t, 10, 32); err == nil {
					return int64(n), nil
				}
			}
		}
		return 0, pgerr.New(pgerr.UndefinedFunction, "function \"%s\" does not exist", s)
	case types.RegRole:
		name := unquoteIdent(s)
		if cat != nil {
			if t, err := cat.Text(ctx, "to_regrole", []types.Datum{name}); err == nil && t != nil {
				if n, err := strconv.ParseUint(*t, 10, 32); err == nil {
					return int64(n), nil
				}
			}
		}
		return 0, pgerr.New(pgerr.UndefinedObject, "role \"%s\" does not exist", name)
	}
	return 0, pgerr.New(pgerr.UndefinedFunction, "operator does not exist: %s", s)
}

// lastPart is the last part of a qualified name.
func lastPart(s string) string {
	parts := splitQualified(s)
	if len(parts) == 0 {
		return s
	}
	return parts[len(parts)-1]
}

// splitQualified cuts a.b."c.d" at its dots; quotes stay.
func splitQualified(s string) []string {
	var out []string
	from, quoted := 0, false
	for i := 0; i < len(s); i++ {
		switch s[i] {
		case '"':
			quoted = !quoted
		case '.':
			if !quoted {
				out = append(out, s[from:i])
				from = i + 1
			}
		}
	}
	return append(out, s[from:])
}

func unquoteIdent(s string) string {
	s = strings.TrimSpace(s)
	if len(s) >= 2 && s[0] == '"' && s[len(s)-1] == '"' {
		return strings.ReplaceAll(s[1:len(s)-1], `""`, `"`)
	}
	return strings.ToLower(s)
}

var typeNames = func() map[string]types.Type {
	m := map[string]types.Type{}
	for _, k := range types.Kinds() {
		t := types.Of(k)
		i := types.InfoOf(k)
		m[i.Name] = t
		m[i.SQLName] = t
		if i.ArrayOID != 0 {
			m["_"+i.Name] = types.ArrayOf(t)
		}
	}
	for n, k := range map[string]types.Kind{
		"int": types.Int4, "decimal": types.Numeric, "float": types.Float8, "timestamp": types.Timestamp, "timestamptz": types.TimestampTZ,
		"time": types.Time, "timetz": types.TimeTZ, "character varying": types.Varchar, "char": types.BpChar, "character": types.BpChar,
		"bool": types.Bool, "double precision": types.Float8, "dec": types.Numeric, "string": types.Text, "bytes": types.Bytea, "tinyint": types.Int2,
		"regprocedure": types.RegProc, "regoperator": types.RegOper, "serial": types.Int4, "bigserial": types.Int8, "smallserial": types.Int2,
	} {
		m[n] = types.Of(k)
	}
	return m
}()

// TypeByName finds a type by any of PostgreSQL's spellings, with pg_catalog. in
// front, [] behind, and modifiers, which are dropped.
func TypeByName(s string) (types.Type, bool) {
	s = strings.TrimSpace(s)
	dims := 0
	for strings.HasSuffix(s, "]") {
		i := strings.LastIndexByte(s, '[')
		if i < 0 {
			return types.Type{}, false
		}
		s = strings.TrimSpace(s[:i])
		dims++
	}
	if parts := splitQualified(s); len(parts) == 2 && unquoteIdent(parts[0]) == "pg_catalog" {
		s = parts[1]
	}
	quoted := strings.HasPrefix(s, `"`)
	name := strings.Join(strings.Fields(unquoteIdent(s)), " ")
	if i := strings.IndexByte(name, '('); i >= 0 {
		j := strings.IndexByte(name, ')')
		if j < i {
			return types.Type{}, false
		}
		name = strings.TrimSpace(name[:i]) + name[j+1:]
	}
	if quoted && name == "char" {
		name = `"char"`
	}
	t, ok := typeNames[name]
	if !ok {
		return t, false
	}
	for ; dims > 0; dims-- {
		if t.Kind == types.Array {
			break // PostgreSQL does not tell dimensions apart
		}
		t = types.ArrayOf(t)
	}
	return t, true
}

// SplitDateStyle cuts a DateStyle setting into style and order.
func SplitDateStyle(v string) (style, order string) {
	for _, p := range strings.Split(v, ",") {
		switch p = strings.TrimSpace(p); strings.ToUpper(p) {
		case "ISO", "SQL", "GERMAN", "POSTGRES":
			style = map[string]string{"ISO": "ISO", "SQL": "SQL", "GERMAN": "German", "POSTGRES": "Postgres"}[strings.ToUpper(p)]
		case "MDY", "US", "NONEURO", "NONEUROPEAN":
			order = "MDY"
		case "DMY", "EURO", "EUROPEAN":
			order = "DMY"
		case "YMD":
			order = "YMD"
		}
	}
	return style, order
}
