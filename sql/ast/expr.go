package ast

// Number is a numeric literal. Text is as written, without sign. Integer says
// it has neither point nor exponent; it may still be too large for any integer
// type, in which case PostgreSQL makes it numeric.
type Number struct {
	Loc
	Text    string
	Integer bool
}

// StringKind says how a string literal was written.
type StringKind uint8

// String literal forms. B and X literals have type bit, the others unknown.
const (
	StringNormal  StringKind = iota // '...' or $tag$...$tag$
	StringEscape                    // E'...'
	StringUnicode                   // U&'...'
	StringBit                       // B'0101'
	StringHex                       // X'1F'
)

// String is a string literal; Value has escapes resolved and continuation
// lines joined. The digits of B and X literals are not checked here.
type String struct {
	Loc
	Value string
	Kind  StringKind
}

// Bool is TRUE or FALSE.
type Bool struct {
	Loc
	Value bool
}

// Null is NULL.
type Null struct{ Loc }

// Default is DEFAULT in place of a value. The grammar takes it anywhere an
// expression may stand; the binder refuses it outside INSERT, UPDATE and MERGE.
type Default struct{ Loc }

// TypedLiteral is type 'text': DATE '2024-01-01', INTERVAL '1' DAY,
// numeric(3,1) '1.5'.
type TypedLiteral struct {
	Loc
	Type  *TypeName
	Value string
}

// Param is $1, $2, ... N starts at 1.
type Param struct {
	Loc
	N int
}

// ColumnRef is a, t.a, s.t.a or, with Star, *, t.*, s.t.*. Which part is
// schema, table, column or row field is the binder's business. Indexed names
// are a Subscript around a ColumnRef, and what follows it a FieldSelect.
type ColumnRef struct {
	Loc
	Parts Name
	Star  bool
}

// FieldSelect is (row).field, or (row).* with Star.
type FieldSelect struct {
	Loc
	Expr  Expr
	Field Ident
	Star  bool
}

// Subscript is a[i], or a[lo:hi] when Slice; either bound may be nil then.
type Subscript struct {
	Loc
	Expr  Expr
	Index Expr
	Slice bool
	Low   Expr
	High  Expr
}

// Operator is an operator's name; Schema is set for OPERATOR(s.+) only. !=
// is already <>.
type Operator struct {
	Schema Name
	Name   string
	Pos    Pos
}

// Unary is a prefix operator: + - or any other PostgreSQL knows.
// A negative number is Unary{-} of a Number; the parser folds nothing.
type Unary struct {
	Loc
	Op   Operator
	Expr Expr
}

// Binary is an infix operator, comparisons included.
type Binary struct {
	Loc
	Op    Operator
	Left  Expr
	Right Expr
}

// AndOr is a chain of AND (or of OR, when Or is set). Args has at least two
// entries and its first one is never an AndOr of the same kind: a AND b AND c
// is one node, so chains of any length are one level deep.
type AndOr struct {
	Loc
	Or   bool
	Args []Expr
}

// Not is NOT x.
type Not struct {
	Loc
	Expr Expr
}

// IsKind is what IS tests for.
type IsKind uint8

// Tests of IS.
const (
	IsNull IsKind = iota
	IsTrue
	IsFalse
	IsUnknown
	IsDocument
	IsNormalized
)

// Is is x IS [NOT] NULL, TRUE, ... ISNULL and NOTNULL too. Form is the Unicode
// normal form, NFC when not given, of IS NORMALIZED.
type Is struct {
	Loc
	Expr Expr
	Kind IsKind
	Not  bool
	Form string
}

// IsDistinct is l IS [NOT] DISTINCT FROM r.
type IsDistinct struct {
	Loc
	Left  Expr
	Right Expr
	Not   bool
}

// In is x [NOT] IN (...), with either List or Query.
type In struct {
	Loc
	Expr  Expr
	Not   bool
	List  []Expr
	Query *Query
}

// Between is x [NOT] BETWEEN [SYMMETRIC] lo AND hi.
type Between struct {
	Loc
	Expr      Expr
	Low       Expr
	High      Expr
	Not       bool
	Symmetric bool
}

// LikeKind is the pattern language of a Like.
type LikeKind uint8

// Pattern languages.
const (
	LikePlain LikeKind = iota
	LikeInsensitive
	LikeSimilar
)

// Like is x [NOT] LIKE, ILIKE or SIMILAR TO pattern [ESCAPE e].
type Like struct {
	Loc
	Kind    LikeKind
	Not     bool
	Expr    Expr
	Pattern Expr
	Escape  Expr // nil when not given
}

// Quantified is x op ANY|ALL (array or query); SOME is ANY. LIKE ANY has the
// operators ~~, !~~, ~~* and !~~*, as in PostgreSQL.
type Quantified struct {
	Loc
	Expr  Expr
	Op    Operator
	All   bool
	Array Expr
	Query *Query
}

// SubqueryKind is what a subquery is used as.
type SubqueryKind uint8

// Uses of a subquery in an expression.
const (
	SubqueryScalar SubqueryKind = iota
	SubqueryExists
	SubqueryArray // ARRAY(SELECT ...)
)

// Subquery is a query as a value: scalar, EXISTS or ARRAY.
type Subquery struct {
	Loc
	Kind  SubqueryKind
	Query *Query
}

// Array is ARRAY[...]; the inner brackets of a nested one are Arrays too.
type Array struct {
	Loc
	Elems []Expr
}

// MapLiteral is MAP[k1, v1, k2, v2, ...] (Flink's spelling), or with Multiset
// MULTISET[a, b].
type MapLiteral struct {
	Loc
	Multiset bool
	Elems    []Expr
}

// Row is ROW(...) or, when not Explicit, (a, b).
type Row struct {
	Loc
	Explicit bool
	Elems    []Expr
}

// Case is CASE [operand] WHEN ... END.
type Case struct {
	Loc
	Operand Expr // nil for the searched form
	Whens   []*When
	Else    Expr // nil when not given
}

// When is one branch of a Case.
type When struct {
	Loc
	Cond   Expr
	Result Expr
}

// CastStyle is how a cast was written.
type CastStyle uint8

// Forms of a cast. TRY_CAST is the lake engines' cast that yields NULL.
const (
	CastCall   CastStyle = iota // CAST(x AS t)
	CastColons                  // x::t
	CastTreat                   // TREAT(x AS t)
	CastTry                     // TRY_CAST(x AS t)
)

// Cast converts explicitly. Pos of x::t is the double colon.
type Cast struct {
	Loc
	Expr  Expr
	Type  *TypeName
	Style CastStyle
}

// Collate is x COLLATE name.
type Collate struct {
	Loc
	Expr      Expr
	Collation Name
}

// AtTimeZone is x AT TIME ZONE zone.
type AtTimeZone struct {
	Loc
	Expr Expr
	Zone Expr
}

// FuncSyntax is the special notation a call was written in.
type FuncSyntax uint8

// Call notations. The arguments of the special ones are in the order of the
// function PostgreSQL calls for them, so the binder may ignore the notation.
const (
	FuncNormal       FuncSyntax = iota
	FuncExtract                 // extract('field', x)
	FuncOverlay                 // overlay(s, placing, from [, for])
	FuncPosition                // position(string, substring): swapped
	FuncSubstring               // substring(s, from [, for]); FOR alone has from 1
	FuncSimilar                 // substring(s, pattern, escape)
	FuncTrim                    // btrim, ltrim, rtrim (s [, chars])
	FuncCollationFor            // pg_collation_for(x)
	FuncNormalize               // normalize(s [, 'NFC'])
	FuncOverlaps                // overlaps(a, b, c, d)
)

// FuncCall is a call of a function, aggregate or window function.
type FuncCall struct {
	Loc
	Name     Name
	Syntax   FuncSyntax
	Args     []Expr // *NamedArg for name => value
	Star     bool   // count(*)
	Variadic bool   // the last argument is VARIADIC
	Distinct bool
	OrderBy  []*OrderItem // inside the parentheses
	// WithinGroup is the ORDER BY of WITHIN GROUP; nil when not given.
	WithinGroup []*OrderItem
	Filter      Expr        // nil when not given
	Over        *WindowSpec // nil when not a window call
}

// NamedArg is name => value among a call's arguments.
type NamedArg struct {
	Loc
	Name  Ident
	Value Expr
}

// SpecialKind names an expression with function-like syntax that is no function.
type SpecialKind uint8

// Kinds of Special.
const (
	Coalesce SpecialKind = iota
	NullIf               // two arguments
	Greatest
	Least
	Grouping
)

// Special is COALESCE(...), NULLIF(a, b), GREATEST, LEAST or GROUPING.
type Special struct {
	Loc
	Kind SpecialKind
	Args []Expr
}

// SQLValueKind names a parameterless value function.
type SQLValueKind uint8

// The value functions, which are keywords.
const (
	CurrentDate SQLValueKind = iota
	CurrentTime
	CurrentTimestamp
	LocalTime
	LocalTimestamp
	CurrentRole
	CurrentUser
	SessionUser
	User
	CurrentCatalog
	CurrentSchema
)

var sqlValueNames = [...]string{
	"current_date", "current_time", "current_timestamp", "localtime", "localtimestamp",
	"current_role", "current_user", "session_user", "user", "current_catalog", "current_schema",
}

// String returns the keyword in lower case, which is also the column's name.
func (k SQLValueKind) String() string { return sqlValueNames[k] }

// SQLValue is CURRENT_DATE, CURRENT_TIMESTAMP(3), CURRENT_USER, ... Precision
// is -1 when not given.
type SQLValue struct {
	Loc
	Kind      SQLValueKind
	Precision int
}

// WindowSpec is what follows OVER, or an entry of a WINDOW clause.
//
// OVER w has Ref and nothing else with Bare set; OVER (w ...) copies w and may
// add an ordering and a frame.
type WindowSpec struct {
	Loc
	Ref         Ident // existing window, or empty
	Bare        bool
	PartitionBy []Expr
	OrderBy     []*OrderItem
	Frame       *Frame // nil: the default frame
}

// FrameMode is the unit of a window frame.
type FrameMode uint8

// Frame units.
const (
	FrameRange FrameMode = iota
	FrameRows
	FrameGroups
)

// BoundKind is where a frame begins or ends.
type BoundKind uint8

// Frame bounds, in the order of the partition.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// FrameBound is one end of a frame; Offset belongs to Preceding and Following.
type FrameBound struct {
	Loc
	Kind   BoundKind
	Offset Expr
}

// FrameExclude is what a frame leaves out.
type FrameExclude uint8

// Exclusions. EXCLUDE NO OTHERS is the same as none.
const (
	ExcludeNone FrameExclude = iota
	ExcludeCurrentRow
	ExcludeGroup
	ExcludeTies
)

// Frame is a window frame. Without BETWEEN, End is CurrentRow.
type Frame struct {
	Loc
	Mode    FrameMode
	Start   FrameBound
	End     FrameBound
	Exclude FrameExclude
}

// GroupingKind is the kind of a GroupingSet.
type GroupingKind uint8

// Kinds of grouping sets.
const (
	GroupingEmpty GroupingKind = iota // ()
	GroupingRollup
	GroupingCube
	GroupingSets
)

// GroupingSet is an item of GROUP BY that stands for several groupings. In a
// ROLLUP or CUBE an item (a, b) is a Row.
type GroupingSet struct {
	Loc
	Kind  GroupingKind
	Items []Expr
}

// XMLExpr is one of the SQL/XML functions, kept so that it can be printed and
// refused by name. Func is the keyword in upper case.
type XMLExpr struct {
	Loc
	Func  string
	Label Ident      // NAME label
	Attrs []*XMLAttr // XMLATTRIBUTES or XMLFOREST
	Args  []Expr
	Words []string // option words, in order, e.g. DOCUMENT, STRIP WHITESPACE
	Type  *TypeName
}

// XMLAttr is expr [AS name].
type XMLAttr struct {
	Loc
	Expr Expr
	Name Ident
}

func (*Number) expr()       {}
func (*String) expr()       {}
func (*Bool) expr()         {}
func (*Null) expr()         {}
func (*Default) expr()      {}
func (*TypedLiteral) expr() {}
func (*Param) expr()        {}
func (*ColumnRef) expr()    {}
func (*FieldSelect) expr()  {}
func (*Subscript) expr()    {}
func (*Unary) expr()        {}
func (*Binary) expr()       {}
func (*AndOr) expr()        {}
func (*Not) expr()          {}
func (*Is) expr()           {}
func (*IsDistinct) expr()   {}
func (*In) expr()           {}
func (*Between) expr()      {}
func (*Like) expr()         {}
func (*Quantified) expr()   {}
func (*Subquery) expr()     {}
func (*Array) expr()        {}
func (*MapLiteral) expr()   {}
func (*Row) expr()          {}
func (*Case) expr()         {}
func (*Cast) expr()         {}
func (*Collate) expr()      {}
func (*AtTimeZone) expr()   {}
func (*FuncCall) expr()     {}
func (*NamedArg) expr()     {}
func (*Special) expr()      {}
func (*SQLValue) expr()     {}
func (*GroupingSet) expr()  {}
func (*XMLExpr) expr()      {}
