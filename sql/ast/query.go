package ast

// Query is a SELECT, VALUES or set operation with what surrounds it. It is a
// statement, and the content of every subquery.
type Query struct {
	Span
	With    *With // nil when not given
	Body    QueryBody
	OrderBy []*OrderItem
	// Limit is nil for none and for LIMIT ALL. FETCH FIRST ROW ONLY is a
	// Limit of 1.
	Limit    Expr
	Offset   Expr
	WithTies bool // FETCH FIRST n ROWS WITH TIES
	Locks    []*Locking
}

// With is a WITH clause.
type With struct {
	Loc
	Recursive bool
	CTEs      []*CTE
}

// Materialize is a CTE's hint.
type Materialize uint8

// Hints of a CTE.
const (
	MaterializeDefault Materialize = iota
	MaterializeAlways
	MaterializeNever
)

// CTE is one common table expression. Stmt is a *Query, *Insert, *Update,
// *Delete or *Merge.
type CTE struct {
	Loc
	Name        Ident
	Columns     []Ident
	Materialize Materialize
	Stmt        Stmt
	Search      *CTESearch
	Cycle       *CTECycle
}

// CTESearch is SEARCH DEPTH|BREADTH FIRST BY columns SET column.
type CTESearch struct {
	Loc
	Breadth bool
	By      []Ident
	Set     Ident
}

// CTECycle is CYCLE columns SET mark [TO v DEFAULT d] USING path.
type CTECycle struct {
	Loc
	Columns []Ident
	Mark    Ident
	Value   Expr // nil when not given: true
	Default Expr // nil when not given: false
	Path    Ident
}

// Select is one SELECT without what follows its WINDOW clause. TABLE t is a
// Select of *.
type Select struct {
	Loc
	Hints      []*Hint
	Distinct   bool
	DistinctOn []Expr // Distinct is set too
	Targets    []*Target
	Into       *Into // nil when not given
	From       []TableRef
	Where      Expr
	GroupBy    []Expr // *GroupingSet among them
	// GroupDistinct is GROUP BY DISTINCT.
	GroupDistinct bool
	Having        Expr
	Windows       []*WindowDef
}

// Target is an output column; Alias is empty when there is none.
type Target struct {
	Loc
	Expr  Expr
	Alias Ident
}

// Into is the table SELECT INTO makes.
type Into struct {
	Loc
	Persistence Persistence
	Name        Name
}

// WindowDef is name AS (spec).
type WindowDef struct {
	Loc
	Name Ident
	Spec *WindowSpec
}

// SetOpKind is UNION, INTERSECT or EXCEPT.
type SetOpKind uint8

// Set operations.
const (
	Union SetOpKind = iota
	Intersect
	Except
)

// SetOp combines two queries. Chains lean to the left.
type SetOp struct {
	Loc
	Kind  SetOpKind
	All   bool
	Left  QueryBody
	Right QueryBody
}

// Values is VALUES (...), (...). Rows may differ in length: the binder says so.
type Values struct {
	Loc
	Rows [][]Expr
}

// NullsOrder is where NULLs sort.
type NullsOrder uint8

// Orders of NULLs; the default is last for ASC and first for DESC.
const (
	NullsDefault NullsOrder = iota
	NullsFirst
	NullsLast
)

// OrderItem is an item of ORDER BY. Using is set for USING op.
type OrderItem struct {
	Loc
	Expr  Expr
	Desc  bool
	Nulls NullsOrder
	Using *Operator
}

// LockStrength is how strongly rows are locked.
type LockStrength uint8

// Row lock strengths, weakest first.
const (
	ForKeyShare LockStrength = iota
	ForShare
	ForNoKeyUpdate
	ForUpdate
)

// LockWait is what happens when a row is already locked.
type LockWait uint8

// Policies for locked rows.
const (
	LockBlock LockWait = iota
	LockNoWait
	LockSkip
)

// Locking is FOR UPDATE and relatives. Of is empty for all tables.
type Locking struct {
	Loc
	Strength LockStrength
	Of       []Name
	Wait     LockWait
}

// Alias names a FROM item and, when given, its columns. ColDefs is the column
// definition list a function returning record needs; Columns is empty then.
type Alias struct {
	Loc
	Name    Ident // empty for AS (a int, b text)
	Columns []Ident
	ColDefs []*ColDef
}

// ColDef is a column of a column definition list.
type ColDef struct {
	Loc
	Name      Ident
	Type      *TypeName
	Collation Name
}

// TableName is a table, view or CTE in FROM, or the target of a statement.
type TableName struct {
	Loc
	Name   Name
	Only   bool
	AsOf   *AsOf // nil when reading the present
	Hints  []*Hint
	Alias  *Alias
	Sample *TableSample
}

// AsOfKind is what a time travel clause counts in.
type AsOfKind uint8

// Units of time travel.
const (
	AsOfVersion   AsOfKind = iota // FOR VERSION AS OF: snapshot id or tag
	AsOfTimestamp                 // FOR TIMESTAMP AS OF, FOR SYSTEM_TIME AS OF
)

// AsOf selects a version of a table.
type AsOf struct {
	Loc
	Kind  AsOfKind
	Value Expr
}

// Hint is a hint of a /*+ ... */ comment: OPTIONS('k' = 'v') after a table has
// Options; the arguments of any other are not interpreted and kept in Text.
type Hint struct {
	Loc
	Name    string // upper case
	Options []*Option
	Text    string
}

// TableSample is TABLESAMPLE method (args) [REPEATABLE (seed)].
type TableSample struct {
	Loc
	Method     Name
	Args       []Expr
	Repeatable Expr
}

// SubqueryRef is a query in FROM. Alias may be nil, which PostgreSQL 15 refuses
// when it binds.
type SubqueryRef struct {
	Loc
	Lateral bool
	Query   *Query
	Alias   *Alias
}

// FuncRef is one function in FROM, or several with RowsFrom.
type FuncRef struct {
	Loc
	Lateral    bool
	RowsFrom   bool
	Funcs      []*FuncItem
	Ordinality bool
	Alias      *Alias
}

// FuncItem is a function of a FuncRef. Call is a *FuncCall, or an expression
// with function syntax such as *Special or *SQLValue.
type FuncItem struct {
	Loc
	Call    Expr
	ColDefs []*ColDef
}

// JoinKind is the kind of a join.
type JoinKind uint8

// Joins. A JoinCross has neither On nor Using.
const (
	JoinInner JoinKind = iota
	JoinLeft
	JoinRight
	JoinFull
	JoinCross
)

// Join combines two FROM items. Exactly one of Natural, Using and On is set,
// unless it is a JoinCross. Alias is that of a parenthesised join, UsingAlias
// that of USING (...) AS x.
type Join struct {
	Loc
	Kind       JoinKind
	Natural    bool
	Left       TableRef
	Right      TableRef
	On         Expr
	Using      []Ident
	UsingAlias Ident
	Alias      *Alias
}

// XMLTable is XMLTABLE(...), kept so that it can be printed and refused.
type XMLTable struct {
	Loc
	Lateral    bool
	Namespaces []*XMLAttr // an empty name is DEFAULT
	Row        Expr
	Document   Expr
	Columns    []*XMLColumn
	Alias      *Alias
}

// XMLColumn is a column of an XMLTable; a nil Type is FOR ORDINALITY.
type XMLColumn struct {
	Loc
	Name    Ident
	Type    *TypeName
	Options []*XMLColumnOption
}

// XMLColumnOption is PATH expr, DEFAULT expr, NOT NULL or NULL. Name is the
// word in lower case ("not null", "null").
type XMLColumnOption struct {
	Loc
	Name  string
	Value Expr
}

func (*Query) stmt()           {}
func (*Query) queryBody()      {}
func (*Select) queryBody()     {}
func (*SetOp) queryBody()      {}
func (*Values) queryBody()     {}
func (*TableName) tableRef()   {}
func (*SubqueryRef) tableRef() {}
func (*FuncRef) tableRef()     {}
func (*Join) tableRef()        {}
func (*XMLTable) tableRef()    {}
