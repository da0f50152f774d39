package plan

import (
	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Node is one operator of a physical plan. Every node has an output schema;
// expressions in it refer to its inputs by Slot.
type Node interface {
	Schema() types.Schema
	// Est returns the planner's estimates, for EXPLAIN and for sizing.
	Est() *Estimate
	Inputs() []Node
}

// Estimate is what the planner believed.
type Estimate struct {
	Rows    float64
	Width   float64 // bytes per row
	Startup float64 // cost to the first row, in PostgreSQL's unit
	Total   float64
}

// Base is embedded by every node. ID is unique in a plan and keys the runtime
// counters that EXPLAIN ANALYZE prints.
type Base struct {
	ID  int
	Out types.Schema
	E   Estimate
}

// Schema returns the output columns.
func (b *Base) Schema() types.Schema { return b.Out }

// NodeID returns ID.
func (b *Base) NodeID() int { return b.ID }

// Est returns the estimates.
func (b *Base) Est() *Estimate { return &b.E }

// Scan reads a relation. Out follows Spec.Columns.
type Scan struct {
	Base
	Rel   catalog.Relation
	Alias string
	Spec  table.Scan
	// Filter is the full condition over Out, evaluated exactly (AND of the
	// conjuncts that were pushed to this scan); nil = none.
	Filter Expr
	// Params says that Filter contains Params whose values the executor folds into
	// the storage predicate when it starts; FilterParams are their indexes.
	Params       bool
	FilterParams []int
	// StorageFilter makes the storage predicate from Filter once parameters are
	// known; set when Params. Nil = Spec.Filter stands.
	StorageFilter func(params []types.Datum) (f any, err error)
	// ExactFilter says whether what StorageFilter returns is all of Filter, as Spec.Exact
	// says of a filter without parameters; nil = it is not.
	ExactFilter func(params []types.Datum) bool
	// Partitions is what Filter asks of partition columns, beyond what a storage predicate
	// can say; nil = nothing. It is over the relation's partition keys: Slot i is key
	// PartitionKeys[i].
	Partitions Expr
	// LateIn are runtime filters: filled by the hash joins named.
	LateIn []RuntimeFilter
}

// RuntimeFilter connects a hash join's build side to a scan: the values of
// build key Key bound what Column of the scan may be.
type RuntimeFilter struct {
	JoinID int // Base.ID of the HashJoin
	Key    int // index in its keys
	Column int // position in Out of the scan
}

// Values yields constant rows (VALUES, and one empty row for SELECT without
// FROM: Rows = {{}} ).
type Values struct {
	Base
	Rows [][]Expr
}

// TableFunc runs set-returning functions in FROM (ROWS FROM runs them in step).
// Its arguments may use Params (LATERAL becomes an Apply).
type TableFunc struct {
	Base
	Alias      string // range name, for EXPLAIN
	Calls      []SetCall
	Ordinality bool
}

// SetCall is one call of a set-returning function.
type SetCall struct {
	F    *function.Overload
	Args []Expr
	T    types.Schema
}

// Filter keeps the rows for which Cond is true.
type Filter struct {
	Base
	Input Node
	Cond  Expr
}

// Project computes expressions.
type Project struct {
	Base
	Input Node
	Exprs []Expr
}

// ProjectSet is Project with set-returning functions: Sets run in step for each
// input row; their results are columns after the input's, which Exprs use
// (Slots from len(input) on).
type ProjectSet struct {
	Base
	Input Node
	Sets  []SetCall
	Exprs []Expr
}

// JoinKind is the kind of a join.
type JoinKind uint8

// The kinds. Semi and Anti output the left columns only. NullAnti is NOT IN:
// any NULL makes the row not pass. Mark adds a boolean column (true, false or
// NULL: whether the left row has a match) after the left columns.
const (
	Inner JoinKind = iota
	Left
	Right
	Full
	Semi
	Anti
	NullAnti
	Mark
)

// HashJoin builds on Right and probes with Left. Keys are of equal types pair by
// pair. Residual is over left++right columns and decides matches. A Project of
// Slots above tells which columns are wanted: the executor need not gather the
// others.
type HashJoin struct {
	Base
	Kind                JoinKind
	Left, Right         Node
	LeftKeys, RightKeys []Expr // over the side's own columns
	NullEq              []bool // key i matches NULL with NULL (IS NOT DISTINCT FROM); nil = none
	Residual            Expr
	// Single: more than one match for a left row is 21000 (scalar subqueries).
	Single bool
	// HasRuntimeFilters says that scans want the bounds of the build keys.
	HasRuntimeFilters bool
	// BuildLeft is a hint for Semi and Anti joins: the left side is expected to be
	// much smaller, so building on it and marking matches while the right side
	// streams by is cheaper. The result is the same either way. No runtime
	// filters are attached to such a join.
	BuildLeft bool
}

// NestedLoop joins by a condition over left++right; the right side is
// materialised once.
type NestedLoop struct {
	Base
	Kind        JoinKind
	Left, Right Node
	Cond        Expr // nil = cross
	Single      bool
}

// Apply runs Right once per row of Left with Params set from it: LATERAL and
// subqueries that could not be decorrelated. Kind is Inner, Left, Semi, Anti or
// Mark; Single as above.
type Apply struct {
	Base
	Kind        JoinKind
	Left, Right Node
	Bind        []ParamBinding
	Cond        Expr // over left++right, for Left joins LATERAL ... ON
	Single      bool
}

// ParamBinding sets parameter Param from an expression over the left row.
type ParamBinding struct {
	Param int
	Expr  Expr
}

// Aggregate groups by hashing. Out is the group columns, then, with grouping
// sets, one int4 column per GROUPING mask asked for (see Sets), then Aggs.
type Aggregate struct {
	Base
	Input  Node
	Groups []Expr
	Aggs   []AggCall
	// Sets are the grouping sets as indexes into Groups; nil = one set of all.
	// With Sets, an extra int8 column "grouping id" (bit i set = Groups[i] is
	// not in the set, bit 0 = the last group) follows the group columns.
	Sets [][]int
	// Plain: no GROUP BY at all, so one row even for no input.
	Plain bool
}

// Sort orders all rows; Limit > 0 makes it a top-N of Limit rows (the Limit node
// above still applies offset and count).
type Sort struct {
	Base
	Input Node
	Keys  []SortKey
	Limit int64
}

// Limit returns rows [Offset, Offset+Count). Expressions have no columns; nil
// Count = all. WithTies needs Keys of the Sort below.
type Limit struct {
	Base
	Input         Node
	Offset, Count Expr
	WithTies      bool
	Keys          []SortKey
}

// DistinctOn keeps the first row of each group of equal Keys of sorted input.
// Keys nil: all columns (then the input need not be sorted).
type DistinctOn struct {
	Base
	Input Node
	Keys  []Expr
}

// SetOpKind is INTERSECT or EXCEPT.
type SetOpKind uint8

// The set operations besides UNION, which is Append (with Aggregate above it
// for UNION DISTINCT).
const (
	Intersect SetOpKind = iota
	Except
)

// SetOp is INTERSECT [ALL] or EXCEPT [ALL].
type SetOp struct {
	Base
	Kind        SetOpKind
	All         bool
	Left, Right Node
}

// Append concatenates inputs of equal physical schemas.
type Append struct {
	Base
	Ins []Node
}

// Window computes window calls that share PARTITION BY and ORDER BY. Its input
// need not be sorted. Out is the input's columns, then one per call.
type Window struct {
	Base
	Input       Node
	PartitionBy []Expr
	OrderBy     []SortKey
	Calls       []WindowCall
}

// WindowCall is one function over a window: exactly one of Agg and Func is set.
type WindowCall struct {
	Agg   *AggCall
	Func  *aggregate.WindowDef
	Args  []Expr
	Frame Frame
	T     types.Type
}

// FrameMode is ROWS, RANGE or GROUPS.
type FrameMode uint8

// The modes.
const (
	Rows FrameMode = iota
	Range
	Groups
)

// BoundKind is one end of a frame.
type BoundKind uint8

// The bounds.
const (
	UnboundedPreceding BoundKind = iota
	Preceding
	CurrentRow
	Following
	UnboundedFollowing
)

// Exclude is the frame exclusion.
type Exclude uint8

// The exclusions.
const (
	ExcludeNoOthers Exclude = iota
	ExcludeCurrentRow
	ExcludeGroup
	ExcludeTies
)

// Frame is a window frame with defaults filled in. Offsets have no columns. For
// RANGE offsets, StartCmp/EndCmp are functions in_range-like: Add and Sub of the
// order column's type.
type Frame struct {
	Mode                   FrameMode
	Start, End             BoundKind
	StartOffset, EndOffset Expr
	RangeAdd, RangeSub     *function.Overload // order type, offset type -> order type
	Exclude                Exclude
}

// CTE is the definition of a materialised common table expression, run at most
// once and shared by its CTEScans.
type CTE struct {
	ID   int
	Name string // for EXPLAIN
	Plan Node
}

// CTEScan reads a materialised CTE.
type CTEScan struct {
	Base
	CTE   *CTE
	Alias string // range name, for EXPLAIN
}

// RecursiveUnion is WITH RECURSIVE: Init once, then Step, whose WorkScan of the
// same ID reads the rows of the last round, until a round adds none.
type RecursiveUnion struct {
	Base
	ID         int
	Init, Step Node
	Distinct   bool
}

// WorkScan reads the working table of a RecursiveUnion.
type WorkScan struct {
	Base
	ID          int
	Name, Alias string // of the WITH item and of its use, for EXPLAIN
}

// InitPlan computes parameter Param from a subplan that runs at most once,
// lazily, when the parameter is first needed.
type InitPlan struct {
	Param int
	Kind  SubqueryKind // Scalar (more than one row: 21000), Exists, ArraySub
	Plan  Node
	T     types.Type
}

// Fragment is a whole executable plan.
type Fragment struct {
	Root      Node
	InitPlans []InitPlan
	CTEs      []*CTE
	// ClientParams are the types of $1.. ; executor parameters follow.
	ClientParams []types.Type
	NumParams    int
}

func (n *Scan) Inputs() []Node           { return nil }
func (n *Values) Inputs() []Node         { return nil }
func (n *TableFunc) Inputs() []Node      { return nil }
func (n *Filter) Inputs() []Node         { return []Node{n.Input} }
func (n *Project) Inputs() []Node        { return []Node{n.Input} }
func (n *ProjectSet) Inputs() []Node     { return []Node{n.Input} }
func (n *HashJoin) Inputs() []Node       { return []Node{n.Left, n.Right} }
func (n *NestedLoop) Inputs() []Node     { return []Node{n.Left, n.Right} }
func (n *Apply) Inputs() []Node          { return []Node{n.Left, n.Right} }
func (n *Aggregate) Inputs() []Node      { return []Node{n.Input} }
func (n *Sort) Inputs() []Node           { return []Node{n.Input} }
func (n *Limit) Inputs() []Node          { return []Node{n.Input} }
func (n *DistinctOn) Inputs() []Node     { return []Node{n.Input} }
func (n *SetOp) Inputs() []Node          { return []Node{n.Left, n.Right} }
func (n *Append) Inputs() []Node         { return n.Ins }
func (n *Window) Inputs() []Node         { return []Node{n.Input} }
func (n *CTEScan) Inputs() []Node        { return nil }
func (n *RecursiveUnion) Inputs() []Node { return []Node{n.Init, n.Step} }
func (n *WorkScan) Inputs() []Node       { return nil }
