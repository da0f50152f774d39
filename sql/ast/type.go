package ast

// TypeName is a type as written, before look-up.
//
// Types that are keywords of the grammar have System set and PostgreSQL's
// internal name: integer is int4, double precision float8, decimal numeric,
// char bpchar (with modifier 1 when none is given), timestamp with time zone
// timestamptz, bit varying varbit. All other names, the lake engines' tinyint,
// string, bytes and so on among them, are in Name as written.
type TypeName struct {
	Loc
	Name   Name
	System bool
	// Mods are the modifiers: precision and scale, length. For interval and
	// the time types, the one precision.
	Mods []Expr
	// Interval holds an interval's fields in upper case, e.g. DAY TO SECOND.
	Interval string
	// Bounds has an entry per array dimension, -1 for one without a bound.
	// PostgreSQL ignores both number and bounds: int[] and int[3][4] are one type.
	Bounds  []int
	SetOf   bool
	PctType bool // Name is table.column%TYPE

	// Args are the type arguments of array<T>, map<K, V> and multiset<T>,
	// Fields those of row<...> and struct<...>. Name is array, map, multiset,
	// row or struct then.
	Args   []*TypeName
	Fields []*TypeField
	// NotNull is the lake engines' nested NOT NULL: array<int NOT NULL>.
	NotNull bool
}

// TypeField is a field of a row type.
type TypeField struct {
	Loc
	Name    Ident
	Type    *TypeName
	Comment string
}
