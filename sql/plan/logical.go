package plan

import (
	"slices"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/function"
)

// LCol is a column of a logical node. A column keeps its ID through every node
// that passes it on unchanged.
type LCol struct {
	ID   ColID
	Name string
	T    types.Type
}

// Ref returns an expression for the column.
func (c LCol) Ref() *Col { return &Col{ID: c.ID, Name: c.Name, T: c.T} }

// LNode is a node of a logical plan. Expressions in it use Col. Nodes are
// changed in place by the planner's rules; a tree is owned by one statement and
// no node occurs in it twice.
type LNode interface {
	// Cols are the output columns, in order.
	Cols() []LCol
	// Kids returns the addresses of the inputs.
	Kids() []*LNode
	// EachExpr calls f with the address of every expression of this node.
	EachExpr(f func(*Expr))
}

// LGet reads a relation; Att[i] is the position of Out[i] in Rel.Columns().
type LGet struct {
	Rel   catalog.Relation
	Opts  catalog.ResolveOptions
	Alias string
	Out   []LCol
	Att   []int
	Conds []Expr // AND of conditions pushed to the scan
	// Nested[i], when not nil, are the member paths of Out[i] that are needed.
	Nested [][][]string
}

// LValues is VALUES; one row without columns is what SELECT without FROM reads.
type LValues struct {
	Rows [][]Expr
	Out  []LCol
}

// LTableFunc runs set-returning functions in step.
type LTableFunc struct {
	Alias      string
	Calls      []LSetCall
	Ordinality bool
	Out        []LCol
}

// LSetCall is one call of a set-returning function.
type LSetCall struct {
	F    *function.Overload
	Args []Expr
	T    types.Schema
	Pos  int32
}

// LFilter keeps rows for which all Conds are true.
type LFilter struct {
	In    LNode
	Conds []Expr
}

// LProject computes Exprs[i] as Out[i]. A column that is passed on keeps its ID.
type LProject struct {
	In    LNode
	Exprs []Expr
	Out   []LCol
}

// LProjectSet adds the results of set-returning functions to its input's
// columns.
type LProjectSet struct {
	In      LNode
	Sets    []LSetCall
	SetCols [][]LCol
}

// LJoin joins; Conds is the AND of the join condition. Right may refer to
// columns of Left when Lateral is set. MarkCol is the column of a Mark join.
type LJoin struct {
	Kind        JoinKind
	Left, Right LNode
	Conds       []Expr
	Lateral     bool
	Single      bool
	MarkCol     LCol
	// Exists says that only "true" of the mark matters, so NULL may be false.
	Exists bool
	// Pos is where the statement has the JOIN, for errors; -1 none.
	Pos int32
}

// LAggregate groups. Out is GroupCols, then GroupingID when Sets is not nil,
// then AggCols.
type LAggregate struct {
	In         LNode
	Groups     []Expr
	GroupCols  []LCol
	Aggs       []AggCall
	AggCols    []LCol
	Sets       [][]int
	GroupingID LCol
	Plain      bool
}

// LSort orders.
type LSort struct {
	In   LNode
	Keys []SortKey
	// Top, when above 0, says that only so many rows are wanted.
	Top int64
}

// LLimit cuts.
type LLimit struct {
	In            LNode
	Offset, Count Expr
	WithTies      bool
	Keys          []SortKey
}

// LDistinct removes duplicates: of all columns, or with On of these expressions
// (the input is sorted by them then).
type LDistinct struct {
	In LNode
	On []Expr
}

// LSetOp is INTERSECT or EXCEPT; columns correspond by position.
type LSetOp struct {
	Kind        SetOpKind
	All         bool
	Left, Right LNode
	Out         []LCol
}

// LUnion is UNION ALL; columns correspond by position.
type LUnion struct {
	Ins []LNode
	Out []LCol
}

// LWindow adds the results of window calls to its input's columns.
type LWindow struct {
	In          LNode
	PartitionBy []Expr
	OrderBy     []SortKey
	Calls       []WindowCall
	CallCols    []LCol
}

// LCTE is a common table expression that is computed once.
type LCTE struct {
	ID   int
	Name string
	Plan LNode
	Refs int
	// Always and Never are the MATERIALIZED hints.
	Always, Never bool
}

// LCTEScan reads a common table expression; Out[i] is the column at position
// Pick[i] of its plan (nil: in order).
type LCTEScan struct {
	CTE   *LCTE
	Alias string
	Out   []LCol
}

// LRecursive is a recursive union; LWorkScan of the same ID reads the last
// round.
type LRecursive struct {
	ID         int
	Name       string
	Init, Step LNode
	Distinct   bool
	Out        []LCol
}

// LWorkScan reads the working table of an LRecursive.
type LWorkScan struct {
	ID    int
	Name  string
	Alias string
	Out   []LCol
}

// SetRef is a call of a set-returning function inside an expression, before
// the binder has moved it into an LProjectSet. It never leaves the binder.
type SetRef struct {
	F    *function.Overload
	Args []Expr
	T    types.Type
	Out  types.Schema
	Pos  int32
}

// Type returns the type of one row of the set.
func (e *SetRef) Type() types.Type { return e.T }

func (n *LGet) Cols() []LCol       { return n.Out }
func (n *LValues) Cols() []LCol    { return n.Out }
func (n *LTableFunc) Cols() []LCol { return n.Out }
func (n *LFilter) Cols() []LCol    { return n.In.Cols() }
func (n *LProject) Cols() []LCol   { return n.Out }
func (n *LProjectSet) Cols() []LCol {
	out := slices.Clone(n.In.Cols())
	for _, c := range n.SetCols {
		out = append(out, c...)
	}
	return out
}
func (n *LJoin) Cols() []LCol {
	switch n.Kind {
	case Semi, Anti, NullAnti:
		return n.Left.Cols()
	case Mark:
		return append(slices.Clone(n.Left.Cols()), n.MarkCol)
	}
	return append(slices.Clone(n.Left.Cols()), n.Right.Cols()...)
}
func (n *LAggregate) Cols() []LCol {
	out := slices.Clone(n.GroupCols)
	if n.Sets != nil {
		out = append(out, n.GroupingID)
	}
	return append(out, n.AggCols...)
}
func (n *LSort) Cols() []LCol      { return n.In.Cols() }
func (n *LLimit) Cols() []LCol     { return n.In.Cols() }
func (n *LDistinct) Cols() []LCol  { return n.In.Cols() }
func (n *LSetOp) Cols() []LCol     { return n.Out }
func (n *LUnion) Cols() []LCol     { return n.Out }
func (n *LWindow) Cols() []LCol    { return append(slices.Clone(n.In.Cols()), n.CallCols...) }
func (n *LCTEScan) Cols() []LCol   { return n.Out }
func (n *LRecursive) Cols() []LCol { return n.Out }
func (n *LWorkScan) Cols() []LCol  { return n.Out }

func (n *LGet) Kids() []*LNode        { return nil }
func (n *LValues) Kids() []*LNode     { return nil }
func (n *LTableFunc) Kids() []*LNode  { return nil }
func (n *LFilter) Kids() []*LNode     { return []*LNode{&n.In} }
func (n *LProject) Kids() []*LNode    { return []*LNode{&n.In} }
func (n *LProjectSet) Kids() []*LNode { return []*LNode{&n.In} }
func (n *LJoin) Kids() []*LNode       { return []*LNode{&n.Left, &n.Right} }
func (n *LAggregate) Kids() []*LNode  { return []*LNode{&n.In} }
func (n *LSort) Kids() []*LNode       { return []*LNode{&n.In} }
func (n *LLimit) Kids() []*LNode      { return []*LNode{&n.In} }
func (n *LDistinct) Kids() []*LNode   { return []*LNode{&n.In} }
func (n *LSetOp) Kids() []*LNode      { return []*LNode{&n.Left, &n.Right} }
func (n *LUnion) Kids() []*LNode {
	out := make([]*LNode, len(n.Ins))
	for i := range n.Ins {
		out[i] = &n.Ins[i]
	}
	return out
}
func (n *LWindow) Kids() []*LNode    { return []*LNode{&n.In} }
func (n *LCTEScan) Kids() []*LNode   { return nil }
func (n *LRecursive) Kids() []*LNode { return []*LNode{&n.Init, &n.Step} }
func (n *LWorkScan) Kids() []*LNode  { return nil }

func each(s []Expr, f func(*Expr)) {
	for i := range s {
		f(&s[i])
	}
}

func eachKey(s []SortKey, f func(*Expr)) {
	for i := range s {
		f(&s[i].Expr)
	}
}

func eachOpt(p *Expr, f func(*Expr)) {
	if *p != nil {
		f(p)
	}
}

func eachAgg(a *AggCall, f func(*Expr)) {
	each(a.Args, f)
	each(a.Direct, f)
	eachKey(a.OrderBy, f)
	eachOpt(&a.Filter, f)
}

func eachSet(s []LSetCall, f func(*Expr)) {
	for i := range s {
		each(s[i].Args, f)
	}
}

func (n *LGet) EachExpr(f func(*Expr)) { each(n.Conds, f) }
func (n *LValues) EachExpr(f func(*Expr)) {
	for _, r := range n.Rows {
		each(r, f)
	}
}
func (n *LTableFunc) EachExpr(f func(*Expr))  { eachSet(n.Calls, f) }
func (n *LFilter) EachExpr(f func(*Expr))     { each(n.Conds, f) }
func (n *LProject) EachExpr(f func(*Expr))    { each(n.Exprs, f) }
func (n *LProjectSet) EachExpr(f func(*Expr)) { eachSet(n.Sets, f) }
func (n *LJoin) EachExpr(f func(*Expr))       { each(n.Conds, f) }
func (n *LAggregate) EachExpr(f func(*Expr)) {
	each(n.Groups, f)
	for i := range n.Aggs {
		eachAgg(&n.Aggs[i], f)
	}
}
func (n *LSort) EachExpr(f func(*Expr)) { eachKey(n.Keys, f) }
func (n *LLimit) EachExpr(f func(*Expr)) {
	eachOpt(&n.Offset, f)
	eachOpt(&n.Count, f)
	eachKey(n.Keys, f)
}
func (n *LDistinct) EachExpr(f func(*Expr)) { each(n.On, f) }
func (n *LSetOp) EachExpr(func(*Expr))      {}
func (n *LUnion) EachExpr(func(*Expr))      {}
func (n *LWindow) EachExpr(f func(*Expr)) {
	each(n.PartitionBy, f)
	eachKey(n.OrderBy, f)
	for i := range n.Calls {
		c := &n.Calls[i]
		if c.Agg != nil {
			eachAgg(c.Agg, f)
		}
		each(c.Args, f)
		eachOpt(&c.Frame.StartOffset, f)
		eachOpt(&c.Frame.EndOffset, f)
	}
}
func (n *LCTEScan) EachExpr(func(*Expr))   {}
func (n *LRecursive) EachExpr(func(*Expr)) {}
func (n *LWorkScan) EachExpr(func(*Expr))  {}
