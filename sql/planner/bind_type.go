package planner

import (
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
)

// typesByName are the types by PostgreSQL's internal name and by the names the
// lake engines use.
var typesByName = map[string]types.Type{
	"bool": types.Of(types.Bool), "boolean": types.Of(types.Bool),
	"tinyint": types.Of(types.TinyInt), "int1": types.Of(types.TinyInt), "byte": types.Of(types.TinyInt),
	"int2": types.Of(types.Int2), "smallint": types.Of(types.Int2), "short": types.Of(types.Int2),
	"int4": types.Of(types.Int4), "int": types.Of(types.Int4), "integer": types.Of(types.Int4),
	"int8": types.Of(types.Int8), "bigint": types.Of(types.Int8), "long": types.Of(types.Int8),
	"float4": types.Of(types.Float4), "real": types.Of(types.Float4),
	"float8": types.Of(types.Float8), "double": types.Of(types.Float8), "float": types.Of(types.Float8),
	"numeric": types.Of(types.Numeric), "decimal": types.Of(types.Numeric), "dec": types.Of(types.Numeric),
	"text": types.Of(types.Text), "string": types.Of(types.Text),
	"varchar": types.Of(types.Varchar), "bpchar": types.Of(types.BpChar), "char": types.Of(types.Char),
	"name": types.Of(types.Name), "cstring": types.Of(types.Text),
	"bytea": types.Of(types.Bytea), "bytes": types.Of(types.Bytea),
	"binary": {Kind: types.Bytea, Lake: types.LakeBinary}, "varbinary": {Kind: types.Bytea, Lake: types.LakeVarbinary},
	"blob": {Kind: types.Bytea, Lake: types.LakeBlob},
	"date": types.Of(types.Date), "time": types.Of(types.Time), "timetz": types.Of(types.TimeTZ),
	"timestamp": types.Of(types.Timestamp), "timestamptz": types.Of(types.TimestampTZ),
	"timestamp_ltz": types.Of(types.TimestampTZ), "timestamp_ntz": types.Of(types.Timestamp), "datetime": types.Of(types.Timestamp),
	"interval": types.Of(types.Interval), "uuid": types.Of(types.UUID),
	"json": types.Of(types.JSON), "jsonb": types.Of(types.JSONB),
	"oid": types.Of(types.OID), "regclass": types.Of(types.RegClass), "regproc": types.Of(types.RegProc),
	"regprocedure": types.Of(types.RegProc), "regtype": types.Of(types.RegType),
	"regnamespace": types.Of(types.RegNamespace), "regrole": types.Of(types.RegRole),
	"regoper": types.Of(types.RegOper), "regoperator": types.Of(types.RegOper), "xid": types.Of(types.XID),
	"void": types.Of(types.Void), "record": types.Of(types.Record), "variant": types.Of(types.Variant),
	"unknown":    types.Of(types.Unknown),
	"int2vector": types.Of(types.Int2Vector), "oidvector": types.Of(types.OIDVector),
	"anyelement": types.Of(types.AnyElement), "anyarray": types.Of(types.AnyArray), "any": types.Of(types.Any),
}

// ResolveType turns a type as written into a type, keeping Paimon's own kinds
// (tinyint): what a column definition means. text is for error positions.
func ResolveType(tn *ast.TypeName, text string) (types.Type, error) {
	p := newPlanner(nil, text, Options{}) //nolint:staticcheck // nothing here waits
	return p.resolveType(tn)
}

// sqlType is the type of an expression cast to tn.
func (p *planner) sqlType(tn *ast.TypeName) (types.Type, error) {
	t, err := p.resolveType(tn)
	return t.SQL(), err
}

func (p *planner) resolveType(tn *ast.TypeName) (types.Type, error) {
	if err := p.enter(); err != nil {
		return types.Type{}, err
	}
	defer p.leave()
	t, err := p.scalarType(tn)
	if err != nil {
		return t, err
	}
	if tn.NotNull {
		t.NotNull = true
	}
	if len(tn.Bounds) > 0 {
		// PostgreSQL takes int[][] for int[], whose values may have any number of
		// dimensions; here an array of arrays is a type of its own.
		for range tn.Bounds {
			t = types.ArrayOf(t)
		}
	}
	return t, nil
}

func (p *planner) scalarType(tn *ast.TypeName) (types.Type, error) {
	name := tn.Name.Last()
	if tn.PctType {
		return types.Type{}, p.errAt(pgerr.FeatureNotSupported, tn.Pos, "%s%%TYPE is not supported", tn.Name)
	}
	unknown := func() (types.Type, error) {
		return types.Type{}, p.errAt(pgerr.UndefinedObject, tn.Pos, "type %q does not exist", tn.Name.String())
	}
	if len(tn.Name) > 1 {
		switch tn.Name[len(tn.Name)-2].Name {
		case "pg_catalog", "information_schema":
		default:
			return unknown()
		}
	}
	arg := func(a *ast.TypeName) (*types.Type, error) {
		t, err := p.resolveType(a)
		return &t, err
	}
	switch lower := strings.ToLower(name); {
	case lower == "array" && len(tn.Args) == 1:
		e, err := arg(tn.Args[0])
		return types.Type{Kind: types.Array, Elem: e}, err
	case lower == "multiset" && len(tn.Args) == 1:
		k, err := arg(tn.Args[0])
		v := types.Of(types.Int4).WithNotNull(true)
		return types.Type{Kind: types.Map, Key: k, Elem: &v, Multiset: true}, err
	case lower == "map" && len(tn.Args) == 2:
		k, err := arg(tn.Args[0])
		if err != nil {
			return types.Type{}, err
		}
		v, err := arg(tn.Args[1])
		return types.Type{Kind: types.Map, Key: k, Elem: v}, err
	case (lower == "row" || lower == "struct") && len(tn.Fields) > 0:
		t := types.Type{Kind: types.Row}
		for _, f := range tn.Fields {
			ft, err := p.resolveType(f.Type)
			if err != nil {
				return t, err
			}
			t.Fields = append(t.Fields, types.Field{ID: -1, Name: f.Name.Name, Type: ft, Description: f.Comment})
		}
		return t, nil
	}
	t, ok := typesByName[name]
	if !ok && !tn.System {
		t, ok = typesByName[strings.ToLower(name)]
	}
	if !ok && strings.HasPrefix(name, "_") {
		if e, isElem := typesByName[name[1:]]; isElem {
			return types.ArrayOf(e), nil
		}
	}
	if !ok {
		if i := infoSchemaType(name); i.Kind != types.Unknown {
			return i, nil
		}
		if _, known := function.TypeByName(ast.QuoteIdent(name)); known || function.IsOtherType(name) {
			return t, p.errAt(pgerr.FeatureNotSupported, tn.Pos, "type %s is not supported", tn.Name.String())
		}
		return unknown()
	}
	if tn.System && name == "char" {
		t = types.Of(types.BpChar)
	}
	return p.typeMods(tn, t)
}

// infoSchemaType are the domains of information_schema.
func infoSchemaType(name string) types.Type {
	switch name {
	case "sql_identifier":
		return types.Of(types.Name)
	case "cardinal_number":
		return types.Of(types.Int4)
	case "character_data", "yes_or_no":
		return types.Of(types.Varchar)
	case "time_stamp":
		return types.Of(types.TimestampTZ)
	}
	return types.Type{}
}

// Interval field bits of PostgreSQL's interval typmod (utils/datetime.h).
var intervalFields = map[string]int32{
	"YEAR": 1 << 2, "MONTH": 1 << 1, "DAY": 1 << 3, "HOUR": 1 << 10, "MINUTE": 1 << 11, "SECOND": 1 << 12,
	"YEAR TO MONTH": 1<<2 | 1<<1, "DAY TO HOUR": 1<<3 | 1<<10, "DAY TO MINUTE": 1<<3 | 1<<10 | 1<<11,
	"DAY TO SECOND": 1<<3 | 1<<10 | 1<<11 | 1<<12, "HOUR TO MINUTE": 1<<10 | 1<<11,
	"HOUR TO SECOND": 1<<10 | 1<<11 | 1<<12, "MINUTE TO SECOND": 1<<11 | 1<<12,
}

func (p *planner) typeMods(tn *ast.TypeName, t types.Type) (types.Type, error) {
	mods := make([]int64, 0, len(tn.Mods))
	for _, m := range tn.Mods {
		n, ok := intLiteral(m)
		if num, isNum := m.(*ast.Number); !ok && isNum {
			return t, p.errAt(pgerr.InvalidTextRepresentation, tn.Pos, "invalid input syntax for type integer: %q", num.Text)
		}
		if !ok {
			return t, p.errAt(pgerr.SyntaxError, tn.Pos, "type modifiers must be simple constants or identifiers")
		}
		mods = append(mods, n)
	}
	bad := func(format string, args ...any) (types.Type, error) {
		return t, p.errAt(pgerr.InvalidParameterValue, tn.Pos, format, args...)
	}
	one := func() error {
		if len(mods) > 1 {
			return p.errAt(pgerr.InvalidParameterValue, tn.Pos, "invalid type modifier")
		}
		return nil
	}
	if t.Kind == types.Interval {
		if tn.Interval == "" && len(mods) == 0 {
			return t, nil
		}
		rng, prec := int32(0x7fff), int32(0xffff)
		if tn.Interval != "" {
			rng = intervalFields[tn.Interval]
		}
		if len(mods) > 0 {
			if mods[0] < 0 {
				return bad("INTERVAL(%d) precision must not be negative", mods[0])
			}
			prec = int32(min(mods[0], 6))
		}
		t.Mod = rng<<16 | prec
		return t, nil
	}
	if len(mods) == 0 {
		return t, nil
	}
	switch t.Kind {
	case types.Varchar, types.BpChar:
		if err := one(); err != nil {
			return t, err
		}
		name := "varchar"
		if t.Kind == types.BpChar {
			name = "char"
		}
		if mods[0] < 1 {
			return bad("length for type %s must be at least 1", name)
		}
		if mods[0] > 10485760 && mods[0] != 2147483647 {
			return bad("length for type %s cannot exceed 10485760", name)
		}
		if mods[0] == 2147483647 { // Paimon's VARCHAR(MAX)
			return types.Of(types.Text), nil
		}
		t.Mod, t.Len = int32(mods[0])+4, int32(mods[0])
	case types.Bytea:
		if err := one(); err != nil {
			return t, err
		}
		if t.Lake == types.LakeDefault || mods[0] < 1 {
			return bad("type modifier is not allowed for type %q", typeName(t))
		}
		t.Len = int32(min(mods[0], 2147483647))
	case types.Numeric:
		prec, scale := mods[0], int64(0)
		if len(mods) == 2 {
			scale = mods[1]
		} else if len(mods) > 2 {
			return bad("invalid NUMERIC type modifier")
		}
		if prec < 1 || prec > 1000 {
			return bad("NUMERIC precision %d must be between 1 and 1000", prec)
		}
		if scale < -1000 || scale > 1000 {
			return bad("NUMERIC scale %d must be between -1000 and 1000", scale)
		}
		t.Mod = int32(prec<<16|(scale&0x7ff)) + 4
		if prec <= 38 && scale >= 0 && scale <= prec {
			t.Prec, t.Scale = uint8(prec), uint8(scale)
		}
	case types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ:
		if err := one(); err != nil {
			return t, err
		}
		if mods[0] < 0 {
			return bad("%s(%d)%s precision must not be negative", strings.ToUpper(baseTime(t.Kind)), mods[0], zoneWords(t.Kind))
		}
		limit := int64(6)
		if t.Kind == types.Timestamp || t.Kind == types.TimestampTZ {
			limit = 9 // Paimon's; PostgreSQL cuts to 6
		}
		n := min(mods[0], limit)
		t.Mod, t.Prec = int32(n)+1, uint8(n)
	case types.Float8:
		// FLOAT(n) of the lake engines; PostgreSQL's own is resolved by the parser.
		if mods[0] < 1 {
			return bad("precision for type float must be at least 1 bit")
		}
		if mods[0] > 53 {
			return bad("precision for type float must be less than 54 bits")
		}
		if mods[0] <= 24 {
			return types.Of(types.Float4), nil
		}
	default:
		return t, p.errAt(pgerr.SyntaxError, tn.Pos, "type modifier is not allowed for type %q", typeName(t))
	}
	return t, nil
}

func baseTime(k types.Kind) string {
	if k == types.Time || k == types.TimeTZ {
		return "time"
	}
	return "timestamp"
}

func zoneWords(k types.Kind) string {
	if k == types.TimeTZ || k == types.TimestampTZ {
		return " WITH TIME ZONE"
	}
	return ""
}

// intLiteral reads an integer literal, possibly negated.
func intLiteral(e ast.Expr) (int64, bool) {
	neg := false
	if u, ok := e.(*ast.Unary); ok && u.Op.Name == "-" {
		neg, e = true, u.Expr
	}
	n, ok := e.(*ast.Number)
	if !ok || !n.Integer {
		return 0, false
	}
	v, err := strconv.ParseInt(n.Text, 10, 64)
	if err != nil {
		return 0, false
	}
	if neg {
		v = -v
	}
	return v, true
}
