// Package types is the one type system of the product: what a column of a
// Paimon table, an expression and a value on the wire are made of, and how each
// is spelled in Paimon's schema files (paimon.go), in Arrow (arrow.go) and in
// PostgreSQL's catalog (pg.go).
package types

// Kind names a family of types. The comment behind each kind is the Arrow array
// that holds its values in a vec.Batch; nothing else may appear there, save a
// dictionary (int32 indices) of it for Text-like kinds.
type Kind uint8

// The kinds. Text-like kinds (Text, Varchar, BpChar, Name, JSON, JSONB, Unknown
// and the reg* kinds' text form) all share array.String.
const (
	Unknown      Kind = iota // String: an untyped literal or NULL
	Bool                     // Boolean
	TinyInt                  // Int16: Paimon's TINYINT; SQL sees int2
	Int2                     // Int16
	Int4                     // Int32
	Int8                     // Int64
	Float4                   // Float32
	Float8                   // Float64
	Numeric                  // Decimal128(Prec,Scale) or Binary in the form of internal/numeric; see Type.Prec
	Text                     // String
	Varchar                  // String; Mod is n+4
	BpChar                   // String, as stored (padded or not); Mod is n+4
	Name                     // String
	Char                     // String: PostgreSQL's one-byte "char"
	Bytea                    // Binary; Paimon's BINARY(n), VARBINARY(n), BYTES
	Date                     // Date32: days since 1970-01-01; math.MaxInt32/MinInt32 are infinity
	Time                     // Time64(us)
	TimeTZ                   // FixedSizeBinary(12): int64 LE us, int32 LE seconds west of UTC
	Timestamp                // Timestamp(us) for Prec<=6, Timestamp(ns) above, both without zone; MaxInt64/MinInt64 are infinity
	TimestampTZ              // the same, the instant in UTC
	Interval                 // FixedSizeBinary(16): int64 LE us, int32 LE days, int32 LE months
	UUID                     // FixedSizeBinary(16)
	JSON                     // String, the text as given
	JSONB                    // String, PostgreSQL's text form of the jsonb value
	OID                      // Int64, 0..2^32-1
	RegClass                 // Int64, as OID
	RegProc                  // Int64
	RegType                  // Int64
	RegNamespace             // Int64
	RegRole                  // Int64
	RegOper                  // Int64 (regoper, regoperator)
	XID                      // Int64
	Void                     // String, always NULL
	Array                    // List of Elem
	Map                      // Map(Key, Elem); Multiset is Map(T, int4)
	Row                      // Struct of Fields
	Record                   // Struct of Fields: an anonymous row value
	Variant                  // Struct{value Binary, metadata Binary}
	Int2Vector               // List of Int16
	OIDVector                // List of Int64
	AclItem                  // String: these five are columns of pg_catalog only
	NodeTree                 // String (pg_node_tree)
	Inet                     // String
	PgLSN                    // String
	TID                      // String
	// Pseudo-types: only in signatures of functions.
	Any
	AnyElement
	AnyArray
	AnyNonArray
	AnyCompatible
	AnyCompatibleArray
	Internal
)

// Type is a type with its modifiers. The zero value is Unknown.
type Type struct {
	Kind Kind
	// NotNull is part of Paimon's types. In expressions true means the value is
	// proven not null; false is always safe.
	NotNull bool
	// Prec and Scale: for Numeric the precision and scale of the Decimal128
	// form, chosen statically (columns, their + - * and constants); Prec 0 is
	// the binary form with a scale per value, which any batch may also fall
	// back to when a result does not fit 38 digits, so kernels take both.
	// For Time, Timestamp, TimestampTZ Prec is the number of stored digits.
	Prec, Scale uint8
	// Mod is PostgreSQL's typmod as clients see it, or 0 for none (PostgreSQL's
	// -1): n+4 for char and varchar, ((p<<16)|s)+4 for numeric, p+1 for time
	// and timestamp. Use PGTypmod for the wire.
	Mod int32
	// Elem is the element of Array and the value of Map; Key is the key of Map.
	Elem, Key *Type
	// Fields are the members of Row and Record.
	Fields []Field
	// Multiset marks a Map that Paimon calls MULTISET; Fixed is the length of a
	// Paimon VECTOR; Lake is the Paimon name where several share a kind
	// (BINARY, VARBINARY, BLOB with Len).
	Multiset bool
	Fixed    int32
	Lake     Lake
	Len      int32 // n of BINARY(n), VARBINARY(n), CHAR(n), VARCHAR(n)
}

// Lake tells Paimon types apart that share a Kind.
type Lake uint8

// The Paimon spellings of Bytea.
const (
	LakeDefault Lake = iota
	LakeBinary
	LakeVarbinary
	LakeBlob
)

// Field is a named member of a row: a column, or a member of a ROW type.
type Field struct {
	ID          int32 // Paimon's field id; -1 where there is none
	Name        string
	Type        Type
	Description string
	Default     string // Paimon's defaultValue: a literal that is cast to the type; "" = none
	HasDefault  bool
}

// Schema is an ordered list of fields.
type Schema []Field

// Index returns the position of the field named name, or -1.
func (s Schema) Index(name string) int {
	for i := range s {
		if s[i].Name == name {
			return i
		}
	}
	return -1
}

// Types returns the types of the fields in order.
func (s Schema) Types() []Type {
	out := make([]Type, len(s))
	for i := range s {
		out[i] = s[i].Type
	}
	return out
}

// Of makes a Type of kind k without modifiers.
func Of(k Kind) Type {
	switch k {
	case Time, Timestamp, TimestampTZ:
		return Type{Kind: k, Prec: 6}
	}
	return Type{Kind: k}
}

// ArrayOf makes the array type of elem.
func ArrayOf(elem Type) Type { return Type{Kind: Array, Elem: &elem} }

// MapOf makes a map type.
func MapOf(key, elem Type) Type { return Type{Kind: Map, Key: &key, Elem: &elem} }

// NumericOf makes numeric(p,s) with its typmod; 1 <= p <= 38.
func NumericOf(p, s int) Type {
	return Type{Kind: Numeric, Prec: uint8(p), Scale: uint8(s), Mod: int32(p<<16|s) + 4}
}

// DecimalOf is the Decimal128 form of numeric without a typmod: what the sum or
// product of columns has.
func DecimalOf(p, s int) Type { return Type{Kind: Numeric, Prec: uint8(p), Scale: uint8(s)} }

// WithNotNull returns t with NotNull set to v.
func (t Type) WithNotNull(v bool) Type { t.NotNull = v; return t }

// SQL returns t as the SQL layers see it: TinyInt is int2. The arrays are the
// same, so this is a change of label only.
func (t Type) SQL() Type {
	if t.Kind == TinyInt {
		t.Kind = Int2
	}
	if t.Elem != nil && t.Elem.Kind == TinyInt {
		e := t.Elem.SQL()
		t.Elem = &e
	}
	return t
}

// IsTextLike reports whether values are array.String holding plain text.
func (t Type) IsTextLike() bool {
	switch t.Kind {
	case Unknown, Text, Varchar, BpChar, Name, Char, JSON, JSONB, Void, AclItem, NodeTree, Inet, PgLSN, TID:
		return true
	}
	return false
}

// IsInteger reports whether t is an integer type.
func (t Type) IsInteger() bool {
	switch t.Kind {
	case TinyInt, Int2, Int4, Int8:
		return true
	}
	return false
}

// IsNumber reports whether t is an integer, float or numeric type.
func (t Type) IsNumber() bool {
	return t.IsInteger() || t.Kind == Float4 || t.Kind == Float8 || t.Kind == Numeric
}

// IsOIDLike reports whether t is oid or one of its reg* aliases.
func (t Type) IsOIDLike() bool {
	switch t.Kind {
	case OID, RegClass, RegProc, RegType, RegNamespace, RegRole, RegOper, XID:
		return true
	}
	return false
}

// SameKind reports whether t and u are the same SQL type without regard to
// modifiers and nullability: same kind, and the same inside arrays and maps.
func (t Type) SameKind(u Type) bool {
	t, u = t.SQL(), u.SQL()
	if t.Kind != u.Kind {
		return false
	}
	if t.Elem != nil && u.Elem != nil && !t.Elem.SameKind(*u.Elem) {
		return false
	}
	if t.Key != nil && u.Key != nil && !t.Key.SameKind(*u.Key) {
		return false
	}
	if t.Kind == Row {
		if len(t.Fields) != len(u.Fields) {
			return false
		}
		for i := range t.Fields {
			if !t.Fields[i].Type.SameKind(u.Fields[i].Type) {
				return false
			}
		}
	}
	return true
}

// SamePhysical reports whether arrays of t and u have the same Arrow type, so
// that one may stand for the other without a conversion.
func (t Type) SamePhysical(u Type) bool {
	a, b := t.Arrow(), u.Arrow()
	return a.ID() == b.ID() && a.Fingerprint() == b.Fingerprint()
}

// IsNanos reports whether a timestamp type is held in nanoseconds.
func (t Type) IsNanos() bool {
	return (t.Kind == Timestamp || t.Kind == TimestampTZ) && t.Prec > 6
}
