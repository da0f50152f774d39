package types

// PGInfo is what PostgreSQL's catalog says of a type.
type PGInfo struct {
	OID, ArrayOID uint32
	Len           int16  // typlen: -1 variable, -2 cstring
	Name          string // pg_type.typname
	SQLName       string // format_type without modifiers
	Category      byte   // typcategory
	Preferred     bool
	Align         byte
	ByVal         bool
}

var pgInfo = map[Kind]PGInfo{
	Unknown:            {705, 0, -2, "unknown", "unknown", 'X', false, 'c', false},
	Bool:               {16, 1000, 1, "bool", "boolean", 'B', true, 'c', true},
	TinyInt:            {21, 1005, 2, "int2", "smallint", 'N', false, 's', true},
	Int2:               {21, 1005, 2, "int2", "smallint", 'N', false, 's', true},
	Int4:               {23, 1007, 4, "int4", "integer", 'N', false, 'i', true},
	Int8:               {20, 1016, 8, "int8", "bigint", 'N', false, 'd', true},
	Float4:             {700, 1021, 4, "float4", "real", 'N', false, 'i', true},
	Float8:             {701, 1022, 8, "float8", "double precision", 'N', true, 'd', true},
	Numeric:            {1700, 1231, -1, "numeric", "numeric", 'N', false, 'i', false},
	Text:               {25, 1009, -1, "text", "text", 'S', true, 'i', false},
	Varchar:            {1043, 1015, -1, "varchar", "character varying", 'S', false, 'i', false},
	BpChar:             {1042, 1014, -1, "bpchar", "character", 'S', false, 'i', false},
	Name:               {19, 1003, 64, "name", "name", 'S', false, 'c', false},
	Char:               {18, 1002, 1, "char", `"char"`, 'Z', false, 'c', true},
	Bytea:              {17, 1001, -1, "bytea", "bytea", 'U', false, 'i', false},
	Date:               {1082, 1182, 4, "date", "date", 'D', false, 'i', true},
	Time:               {1083, 1183, 8, "time", "time without time zone", 'D', false, 'd', true},
	TimeTZ:             {1266, 1270, 12, "timetz", "time with time zone", 'D', false, 'd', false},
	Timestamp:          {1114, 1115, 8, "timestamp", "timestamp without time zone", 'D', false, 'd', true},
	TimestampTZ:        {1184, 1185, 8, "timestamptz", "timestamp with time zone", 'D', true, 'd', true},
	Interval:           {1186, 1187, 16, "interval", "interval", 'T', true, 'd', false},
	UUID:               {2950, 2951, 16, "uuid", "uuid", 'U', false, 'c', false},
	JSON:               {114, 199, -1, "json", "json", 'U', false, 'i', false},
	JSONB:              {3802, 3807, -1, "jsonb", "jsonb", 'U', false, 'i', false},
	OID:                {26, 1028, 4, "oid", "oid", 'N', true, 'i', true},
	RegClass:           {2205, 2210, 4, "regclass", "regclass", 'N', false, 'i', true},
	RegProc:            {24, 1008, 4, "regproc", "regproc", 'N', false, 'i', true},
	RegType:            {2206, 2211, 4, "regtype", "regtype", 'N', false, 'i', true},
	RegNamespace:       {4089, 4090, 4, "regnamespace", "regnamespace", 'N', false, 'i', true},
	RegRole:            {4096, 4097, 4, "regrole", "regrole", 'N', false, 'i', true},
	RegOper:            {2203, 2208, 4, "regoper", "regoper", 'N', false, 'i', true},
	XID:                {28, 1011, 4, "xid", "xid", 'U', false, 'i', true},
	Void:               {2278, 0, 4, "void", "void", 'P', false, 'i', true},
	Record:             {2249, 2287, -1, "record", "record", 'P', false, 'd', false},
	Int2Vector:         {22, 1006, -1, "int2vector", "int2vector", 'A', false, 'i', false},
	OIDVector:          {30, 1013, -1, "oidvector", "oidvector", 'A', false, 'i', false},
	AclItem:            {1033, 1034, 12, "aclitem", "aclitem", 'U', false, 'i', false},
	NodeTree:           {194, 0, -1, "pg_node_tree", "pg_node_tree", 'Z', false, 'i', false},
	Inet:               {869, 1041, -1, "inet", "inet", 'I', true, 'i', false},
	PgLSN:              {3220, 3221, 8, "pg_lsn", "pg_lsn", 'U', false, 'd', true},
	TID:                {27, 1010, 6, "tid", "tid", 'U', false, 's', false},
	Any:                {2276, 0, 4, "any", `"any"`, 'P', false, 'i', true},
	AnyElement:         {2283, 0, 4, "anyelement", "anyelement", 'P', false, 'i', true},
	AnyArray:           {2277, 0, -1, "anyarray", "anyarray", 'P', false, 'd', false},
	AnyNonArray:        {2776, 0, 4, "anynonarray", "anynonarray", 'P', false, 'i', true},
	AnyCompatible:      {5077, 0, 4, "anycompatible", "anycompatible", 'P', false, 'i', true},
	AnyCompatibleArray: {5078, 0, -1, "anycompatiblearray", "anycompatiblearray", 'P', false, 'd', false},
	Internal:           {2281, 0, 8, "internal", "internal", 'P', false, 'd', true},
}

var byOID = func() map[uint32]Type {
	m := map[uint32]Type{}
	for k, i := range pgInfo {
		if k == TinyInt {
			continue
		}
		m[i.OID] = Of(k)
	}
	for k, i := range pgInfo {
		if k != TinyInt && i.ArrayOID != 0 {
			m[i.ArrayOID] = ArrayOf(Of(k))
		}
	}
	return m
}()

// Info returns PostgreSQL's description of the type itself. For arrays of
// scalars it is that of the array type; maps, rows, variants and arrays that
// PostgreSQL has no type for are jsonb, as the wire shows them.
func (t Type) Info() PGInfo {
	switch t.Kind {
	case Array:
		if t.Elem != nil && t.OnWireAsJSON() {
			return pgInfo[JSONB]
		}
		if t.Elem == nil {
			return pgInfo[AnyArray]
		}
		e := pgInfo[t.Elem.Kind]
		return PGInfo{OID: e.ArrayOID, Len: -1, Name: "_" + e.Name, SQLName: e.SQLName + "[]", Category: 'A', Align: 'i'}
	case Map, Row, Variant:
		return pgInfo[JSONB]
	}
	return pgInfo[t.Kind]
}

// OnWireAsJSON reports whether clients see values of t as jsonb although the
// engine holds them otherwise: maps, rows, variants, and arrays of them or of
// arrays.
func (t Type) OnWireAsJSON() bool {
	switch t.Kind {
	case Map, Row, Variant:
		return true
	case Array:
		return t.Elem != nil && (t.Elem.Kind == Array || t.Elem.Kind == Map || t.Elem.Kind == Row || t.Elem.Kind == Variant)
	}
	return false
}

// OID returns the OID that clients see for t.
func (t Type) OID() uint32 { return t.Info().OID }

// PGTypmod returns the typmod for the wire: -1 when there is none.
func (t Type) PGTypmod() int32 {
	if t.Kind == Array && t.Elem != nil {
		return t.Elem.PGTypmod()
	}
	if t.Mod == 0 {
		return -1
	}
	switch t.Kind {
	case Time, TimeTZ, Timestamp, TimestampTZ:
		return t.Mod - 1
	}
	return t.Mod
}

// ByOID returns the type with a PostgreSQL OID, and whether there is one here.
func ByOID(oid uint32) (Type, bool) {
	t, ok := byOID[oid]
	return t, ok
}

// InfoOf returns PostgreSQL's description of a kind.
func InfoOf(k Kind) PGInfo { return pgInfo[k] }

// Kinds returns every kind that PostgreSQL's pg_type lists, in a fixed order.
func Kinds() []Kind {
	var out []Kind
	for k := Unknown; k <= Internal; k++ {
		if _, ok := pgInfo[k]; ok && k != TinyInt {
			out = append(out, k)
		}
	}
	return out
}

// String returns PostgreSQL's name of the type with its modifiers, as
// format_type prints it; in error messages this is the spelling to use.
func (t Type) String() string {
	switch t.Kind {
	case Array:
		if t.Elem != nil && !t.OnWireAsJSON() {
			return t.Elem.String() + "[]"
		}
	}
	return formatType(t)
}
