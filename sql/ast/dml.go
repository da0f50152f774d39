package ast

// Overriding is the OVERRIDING clause of an INSERT.
type Overriding uint8

// Overriding clauses.
const (
	OverridingNone Overriding = iota
	OverridingUser
	OverridingSystem
)

// Insert is INSERT INTO, UPSERT INTO and INSERT OVERWRITE. Query is nil for
// DEFAULT VALUES. Table has no Only, AsOf or Sample.
type Insert struct {
	Span
	With       *With
	Table      *TableName
	Upsert     bool // UPSERT INTO
	Overwrite  bool // INSERT OVERWRITE
	Partition  []*PartitionValue
	Columns    []*AssignTarget
	ByName     bool // Spark's BY NAME: columns of the query match by name
	Overriding Overriding
	Query      *Query
	OnConflict *OnConflict // nil when not given
	Returning  []*Target
}

// PartitionValue is an entry of PARTITION (dt = '2024-01-01', hh); Value is
// nil for a column without value (a dynamic partition).
type PartitionValue struct {
	Loc
	Column Ident
	Value  Expr
}

// AssignTarget is a column that is assigned to, possibly a part of it:
// a, a.field, a[1].
type AssignTarget struct {
	Loc
	Column Ident
	Path   []*PathStep
}

// PathStep is one step into a column: a field, or a subscript.
type PathStep struct {
	Loc
	Field Ident // empty for a subscript
	Star  bool  // .*, which the binder refuses
	Index Expr
	Slice bool
	Low   Expr
	High  Expr
}

// OnConflict is ON CONFLICT. With neither Target nor Constraint any conflict
// counts. Sets is empty for DO NOTHING.
type OnConflict struct {
	Loc
	Target      []*IndexElem
	TargetWhere Expr
	Constraint  Ident
	DoUpdate    bool
	Sets        []*SetClause
	Where       Expr
}

// SetClause is an assignment of UPDATE: one target, or with Multi a list of
// targets to which a row or subquery is assigned, as in (a, b) = (1, 2).
type SetClause struct {
	Loc
	Targets []*AssignTarget
	Multi   bool
	Value   Expr
}

// Update is UPDATE.
type Update struct {
	Span
	With      *With
	Table     *TableName
	Sets      []*SetClause
	From      []TableRef
	Where     Expr
	CurrentOf Ident // cursor of WHERE CURRENT OF; Where is nil then
	Returning []*Target
}

// Delete is DELETE.
type Delete struct {
	Span
	With      *With
	Table     *TableName
	Using     []TableRef
	Where     Expr
	CurrentOf Ident
	Returning []*Target
}

// Merge is MERGE INTO.
type Merge struct {
	Span
	With      *With
	Table     *TableName
	Source    TableRef
	On        Expr
	Whens     []*MergeWhen
	Returning []*Target
}

// MergeMatch is which rows a branch of MERGE is for.
type MergeMatch uint8

// Kinds of rows in MERGE. NOT MATCHED alone is NOT MATCHED BY TARGET.
const (
	Matched MergeMatch = iota
	NotMatchedByTarget
	NotMatchedBySource
)

// MergeAction is what a branch of MERGE does.
type MergeAction uint8

// Actions of MERGE.
const (
	MergeNothing MergeAction = iota
	MergeUpdate
	MergeInsert
	MergeDelete
)

// MergeWhen is a branch of MERGE. Star is the lake engines' UPDATE SET * and
// INSERT *. An insert with neither Values nor Star is DEFAULT VALUES.
type MergeWhen struct {
	Loc
	Match      MergeMatch
	Cond       Expr // nil when not given
	Action     MergeAction
	Star       bool
	Sets       []*SetClause
	Columns    []*AssignTarget
	Overriding Overriding
	Values     []Expr
}

// Truncate is TRUNCATE.
type Truncate struct {
	Span
	Tables  []*TableName
	Restart bool // RESTART IDENTITY
	Cascade bool
}

// Copy is COPY, in any of its syntaxes: old-style option words are in Options
// under their new names.
type Copy struct {
	Span
	Table   Name
	Columns []Ident
	Query   Stmt // for COPY (query) TO; Table is empty then
	From    bool
	Program bool
	// File is the file or command; Std is STDIN or STDOUT, which mean the
	// client whichever is written.
	File    string
	Std     bool
	Options []*Option
	Where   Expr
}

// Option is name = value, as in WITH (...), COPY (...) and EXPLAIN (...).
//
// Name is folded to lower case when it was a word, and as written for "quoted"
// and 'literal' keys; the parts of a dotted key are joined by dots. Value is nil
// when not given, a *String for words, *Number (or Unary of it), *TypeName
// wrapped in *OptionType for a type, *OptionList for a list, or *OptionWord.
type Option struct {
	Loc
	Name  string
	Value OptionValue
}

// OptionValue is the value of an Option. Besides expressions there are
// *OptionWord, *OptionList and *OptionType.
type OptionValue interface{ Node }

// OptionWord is a value written as a bare word or operator.
type OptionWord struct {
	Loc
	Text string
}

// OptionType is a value that can only be read as a type, e.g. the setof of a
// definition list.
type OptionType struct {
	Loc
	Type *TypeName
}

// OptionList is a parenthesised list of words and strings.
type OptionList struct {
	Loc
	Items []OptionValue
}

func (*Insert) stmt()   {}
func (*Update) stmt()   {}
func (*Delete) stmt()   {}
func (*Merge) stmt()    {}
func (*Truncate) stmt() {}
func (*Copy) stmt()     {}
