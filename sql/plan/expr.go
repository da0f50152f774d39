// Package plan holds logical and physical plans and bound expressions: pure
// data between the planner, which makes them, and the executor, which runs them.
package plan

import (
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/function"
)

// Expr is a bound, typed expression. Physical plans refer to input columns by
// Slot only; Col appears in logical plans.
type Expr interface {
	Type() types.Type
}

// ColID names a column within one statement's logical plan.
type ColID int32

// Col is a column by id (logical plans).
type Col struct {
	ID   ColID
	Name string
	T    types.Type
}

// Slot is column Index of the operator's input (physical plans). For joins the
// left input's columns come first.
type Slot struct {
	Index int
	T     types.Type
}

// Const is a constant in Datum form; nil Value is NULL.
type Const struct {
	Value types.Datum
	T     types.Type
}

// Param is a value known when execution starts or when an Apply or InitPlan
// sets it: client parameters ($n) come first (0-based), then executor
// parameters.
type Param struct {
	Index int
	T     types.Type
}

// Call evaluates a function, operator or cast kernel on its arguments, which
// already have the types the kernel wants.
type Call struct {
	F    *function.Overload
	Args []Expr
	T    types.Type
	Pos  int32 // byte offset in the statement for error positions; -1 none
}

// Cast converts by a function.Cast kernel; nil F only changes the type label.
type Cast struct {
	F        *function.Overload
	Arg      Expr
	T        types.Type
	Explicit bool
	Pos      int32
}

// Unchanged returns the column that e is but for casts that leave every value what it is:
// of one whole number to a wider one, of VARCHAR(n) to TEXT, of NUMERIC(p, s) to NUMERIC,
// of REAL to DOUBLE PRECISION. Values of the column and of e that are equal are the same;
// nil = e is more than that.
func Unchanged(e Expr) *Slot {
	for {
		switch x := e.(type) {
		case *Slot:
			return x
		case *Cast:
			if !widens(x.Arg.Type(), x.T) {
				return nil
			}
			e = x.Arg
		default:
			return nil
		}
	}
}

func widens(from, to types.Type) bool {
	text := func(t types.Type) bool { return t.Kind == types.Text || t.Kind == types.Varchar }
	size := func(t types.Type) int {
		switch t.Kind {
		case types.TinyInt:
			return 1
		case types.Int2:
			return 2
		case types.Int4:
			return 4
		case types.Int8:
			return 8
		}
		return 0
	}
	switch {
	case size(from) > 0:
		return size(to) >= size(from)
	case text(from):
		return text(to) && to.Len <= 0
	case from.Kind == types.BpChar:
		return to.Kind == types.BpChar && to.Len <= 0
	case from.Kind == types.Numeric:
		return to.Kind == types.Numeric && to.Prec == 0
	case from.Kind == types.Float4:
		return to.Kind == types.Float8
	}
	return false
}

// And, Or are flat; Not negates: three-valued logic. Evaluation narrows the
// selection from argument to argument, so guards protect what follows.
type And struct{ Args []Expr }

// Or is true when any argument is.
type Or struct{ Args []Expr }

// Not is NOT x.
type Not struct{ Arg Expr }

// IsNull is x IS [NOT] NULL. On a row value it follows PostgreSQL's rule for
// composites.
type IsNull struct {
	Arg Expr
	Not bool
}

// IsBool is x IS [NOT] TRUE/FALSE/UNKNOWN.
type IsBool struct {
	Arg  Expr
	Test BoolTest
	Not  bool
}

// BoolTest is what IsBool tests for.
type BoolTest uint8

// The tests.
const (
	TestTrue BoolTest = iota
	TestFalse
	TestUnknown
)

// Distinct is l IS [NOT] DISTINCT FROM r; Eq is the equality operator of their
// common type.
type Distinct struct {
	Eq          *function.Overload
	Left, Right Expr
	Not         bool
}

// InList is x [NOT] IN (constants or expressions of x's type). Consts, when all
// Items are Const, lets the evaluator build a hash set once.
type InList struct {
	Eq    *function.Overload
	Arg   Expr
	Items []Expr
	Not   bool
}

// AnyAll is x op ANY|ALL (array).
type AnyAll struct {
	Op    *function.Overload // result boolean
	Left  Expr
	Array Expr
	All   bool
}

// Case is CASE WHEN ... in searched form; the binder turns the simple form into
// equality conditions over a Let.
type Case struct {
	Whens []When
	Else  Expr // nil = NULL
	T     types.Type
}

// When is one branch.
type When struct{ Cond, Result Expr }

// Coalesce evaluates lazily from left to right.
type Coalesce struct {
	Args []Expr
	T    types.Type
}

// MinMax is GREATEST or LEAST; Less is the < operator of the common type.
type MinMax struct {
	Less     *function.Overload
	Args     []Expr
	Greatest bool
	T        types.Type
}

// NullIf is NULLIF(a, b): a unless Eq(casted a, b).
type NullIf struct {
	Eq   *function.Overload
	A, B Expr // B and CmpA are of Eq's types; A is the result
	CmpA Expr
}

// MakeArray is ARRAY[...]; elements have the element type (or, for a nested
// array, the array type itself).
type MakeArray struct {
	Elems []Expr
	T     types.Type
}

// MakeRow is ROW(...).
type MakeRow struct {
	Elems []Expr
	T     types.Type // Record with Fields
}

// Field is (row).member; Index within Fields of the argument's type.
type Field struct {
	Arg   Expr
	Index int
	T     types.Type
}

// Subscript is array[i], a slice, or map['k'].
type Subscript struct {
	Arg       Expr
	Index     Expr // nil for slices
	Slice     bool
	Low, High Expr
	T         types.Type
}

// RowCompare compares row values member by member: =, <>, <, <=, >, >=.
type RowCompare struct {
	Op          string
	Left, Right []Expr
	Eq, Less    []*function.Overload // per member
}

// Subquery is an uncorrelated or correlated subplan as a value, before the
// planner has turned it into a join, an Apply or an InitPlan. It never reaches
// the executor.
type Subquery struct {
	Kind  SubqueryKind
	Plan  any // *planner's logical node
	Left  []Expr
	Op    *function.Overload
	Ops   []*function.Overload
	All   bool
	Not   bool
	T     types.Type
	Outer []ColID // columns of outer queries that Plan refers to
	Pos   int32
}

// SubqueryKind tells what a subquery's rows become.
type SubqueryKind uint8

// The kinds of Subquery.
const (
	Scalar SubqueryKind = iota
	Exists
	AnySub // Left op ANY (query)
	ArraySub
)

// AggCall is one aggregate of an Aggregate or Window node.
type AggCall struct {
	Def      *aggregate.Def
	Args     []Expr
	Direct   []Expr // ordered-set aggregates
	Distinct bool
	OrderBy  []SortKey
	Filter   Expr
	T        types.Type
}

// SortKey orders by an expression. NullsFirst is explicit here: the binder has
// applied PostgreSQL's defaults (ASC: last, DESC: first).
type SortKey struct {
	Expr       Expr
	Desc       bool
	NullsFirst bool
}

func (e *Col) Type() types.Type        { return e.T }
func (e *Slot) Type() types.Type       { return e.T }
func (e *Const) Type() types.Type      { return e.T }
func (e *Param) Type() types.Type      { return e.T }
func (e *Call) Type() types.Type       { return e.T }
func (e *Cast) Type() types.Type       { return e.T }
func (e *And) Type() types.Type        { return boolType }
func (e *Or) Type() types.Type         { return boolType }
func (e *Not) Type() types.Type        { return boolType }
func (e *IsNull) Type() types.Type     { return boolType }
func (e *IsBool) Type() types.Type     { return boolType }
func (e *Distinct) Type() types.Type   { return boolType }
func (e *InList) Type() types.Type     { return boolType }
func (e *AnyAll) Type() types.Type     { return boolType }
func (e *Case) Type() types.Type       { return e.T }
func (e *Coalesce) Type() types.Type   { return e.T }
func (e *MinMax) Type() types.Type     { return e.T }
func (e *NullIf) Type() types.Type     { return e.A.Type().WithNotNull(false) }
func (e *MakeArray) Type() types.Type  { return e.T }
func (e *MakeRow) Type() types.Type    { return e.T }
func (e *Field) Type() types.Type      { return e.T }
func (e *Subscript) Type() types.Type  { return e.T }
func (e *RowCompare) Type() types.Type { return boolType }
func (e *Subquery) Type() types.Type   { return e.T }

var boolType = types.Of(types.Bool)
