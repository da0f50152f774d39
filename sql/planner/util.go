package planner

import (
	"reflect"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// walkAST visits an AST node and what is below it; f false skips the rest of a
// branch.
func walkAST(n ast.Node, f func(ast.Node) bool) { ast.Walk(n, f) }

// eachCol calls f for every column an expression uses, those of subqueries
// included: their own columns too, so f must look at where a column is from.
func eachCol(e plan.Expr, f func(*plan.Col)) {
	plan.Walk(e, func(x plan.Expr) bool {
		switch x := x.(type) {
		case *plan.Col:
			f(x)
		case *plan.Subquery:
			eachPlanCol(x.Plan.(*subplan).root, f)
		case *groupingRef:
			for _, a := range x.args {
				eachCol(a, f)
			}
		}
		return true
	})
}

func eachPlanCol(n plan.LNode, f func(*plan.Col)) {
	n.EachExpr(func(e *plan.Expr) { eachCol(*e, f) })
	for _, k := range n.Kids() {
		eachPlanCol(*k, f)
	}
	if s, ok := n.(*plan.LCTEScan); ok && s.CTE.Plan != nil && s.CTE.Refs == 1 {
		eachPlanCol(s.CTE.Plan, f)
	}
}

// mapPlan rewrites every expression of a plan, subqueries included, in place.
func mapPlan(n plan.LNode, f func(plan.Expr) plan.Expr) {
	n.EachExpr(func(e *plan.Expr) { *e = f(*e) })
	for _, k := range n.Kids() {
		mapPlan(*k, f)
	}
}

// colSet is a set of columns.
type colSet map[plan.ColID]bool

func colsOf(n plan.LNode) colSet {
	s := colSet{}
	for _, c := range n.Cols() {
		s[c.ID] = true
	}
	return s
}

func (s colSet) addAll(t colSet) {
	for c := range t {
		s[c] = true
	}
}

func (s colSet) hasAny(t colSet) bool {
	for c := range t {
		if s[c] {
			return true
		}
	}
	return false
}

func (s colSet) hasAll(t colSet) bool {
	for c := range t {
		if !s[c] {
			return false
		}
	}
	return true
}

// usedCols are the columns an expression needs from around it: its own and
// those that its subqueries use but do not make.
func usedCols(e plan.Expr) colSet {
	s := colSet{}
	addUsed(e, s)
	return s
}

func addUsed(e plan.Expr, s colSet) {
	plan.Walk(e, func(x plan.Expr) bool {
		switch x := x.(type) {
		case *plan.Col:
			s[x.ID] = true
		case *plan.Subquery:
			sub := x.Plan.(*subplan)
			s.addAll(freeCols(sub.root))
			own := colsOf(sub.root)
			for _, l := range x.Left {
				for c := range usedCols(l) {
					if !own[c] {
						s[c] = true
					}
				}
			}
			return false
		case *groupingRef:
			for _, a := range x.args {
				addUsed(a, s)
			}
		}
		return true
	})
}

// freeCols are the columns a plan uses and does not make: it is correlated when
// there are any.
func freeCols(n plan.LNode) colSet { return freeColsOf(n, map[*plan.LCTE]bool{}) }

func freeColsOf(n plan.LNode, seen map[*plan.LCTE]bool) colSet {
	used, made := colSet{}, colSet{}
	gatherFree(n, used, made, seen)
	free := colSet{}
	for c := range used {
		if !made[c] {
			free[c] = true
		}
	}
	return free
}

// gatherFree looks into each CTE once: what it uses counts wherever it is read.
func gatherFree(n plan.LNode, used, made colSet, seen map[*plan.LCTE]bool) {
	n.EachExpr(func(e *plan.Expr) { addUsed(*e, used) })
	for _, c := range n.Cols() {
		made[c.ID] = true
	}
	for _, k := range n.Kids() {
		gatherFree(*k, used, made, seen)
	}
	if s, ok := n.(*plan.LCTEScan); ok && s.CTE.Plan != nil && !seen[s.CTE] {
		seen[s.CTE] = true
		used.addAll(freeColsOf(s.CTE.Plan, seen))
	}
}

// exprEqual reports whether two bound expressions are the same computation.
func exprEqual(a, b plan.Expr) bool {
	if a == b {
		return true
	}
	if a == nil || b == nil {
		return false
	}
	switch x := a.(type) {
	case *plan.Col:
		y, ok := b.(*plan.Col)
		return ok && x.ID == y.ID
	case *plan.Slot:
		y, ok := b.(*plan.Slot)
		return ok && x.Index == y.Index
	case *plan.Const:
		y, ok := b.(*plan.Const)
		return ok && sameType(x.T, y.T) && x.T.Mod == y.T.Mod && datumEqual(x.Value, y.Value)
	case *plan.Param:
		y, ok := b.(*plan.Param)
		return ok && x.Index == y.Index
	case *plan.Call:
		y, ok := b.(*plan.Call)
		return ok && x.F == y.F && x.F.Volatility != function.Volatile && exprsEqual(x.Args, y.Args)
	case *plan.Cast:
		y, ok := b.(*plan.Cast)
		// The overload of a cast is made anew at each look-up.
		return ok && (x.F == nil) == (y.F == nil) && sameType(x.T, y.T) && x.T.Mod == y.T.Mod && x.T.Prec == y.T.Prec && x.T.Scale == y.T.Scale && exprEqual(x.Arg, y.Arg)
	case *plan.And:
		y, ok := b.(*plan.And)
		return ok && exprsEqual(x.Args, y.Args)
	case *plan.Or:
		y, ok := b.(*plan.Or)
		return ok && exprsEqual(x.Args, y.Args)
	case *plan.Not:
		y, ok := b.(*plan.Not)
		return ok && exprEqual(x.Arg, y.Arg)
	case *plan.IsNull:
		y, ok := b.(*plan.IsNull)
		return ok && x.Not == y.Not && exprEqual(x.Arg, y.Arg)
	case *plan.IsBool:
		y, ok := b.(*plan.IsBool)
		return ok && x.Not == y.Not && x.Test == y.Test && exprEqual(x.Arg, y.Arg)
	case *plan.Distinct:
		y, ok := b.(*plan.Distinct)
		return ok && x.Not == y.Not && x.Eq == y.Eq && exprEqual(x.Left, y.Left) && exprEqual(x.Right, y.Right)
	case *plan.InList:
		y, ok := b.(*plan.InList)
		return ok && x.Not == y.Not && x.Eq == y.Eq && exprEqual(x.Arg, y.Arg) && exprsEqual(x.Items, y.Items)
	case *plan.AnyAll:
		y, ok := b.(*plan.AnyAll)
		return ok && x.Op == y.Op && x.All == y.All && exprEqual(x.Left, y.Left) && exprEqual(x.Array, y.Array)
	case *plan.Case:
		y, ok := b.(*plan.Case)
		if !ok || len(x.Whens) != len(y.Whens) || !sameType(x.T, y.T) {
			return false
		}
		for i := range x.Whens {
			if !exprEqual(x.Whens[i].Cond, y.Whens[i].Cond) || !exprEqual(x.Whens[i].Result, y.Whens[i].Result) {
				return false
			}
		}
		return exprEqual(x.Else, y.Else)
	case *plan.Coalesce:
		y, ok := b.(*plan.Coalesce)
		return ok && exprsEqual(x.Args, y.Args)
	case *plan.MinMax:
		y, ok := b.(*plan.MinMax)
		return ok && x.Greatest == y.Greatest && exprsEqual(x.Args, y.Args)
	case *plan.NullIf:
		y, ok := b.(*plan.NullIf)
		return ok && exprEqual(x.A, y.A) && exprEqual(x.B, y.B)
	case *plan.MakeArray:
		y, ok := b.(*plan.MakeArray)
		return ok && sameType(x.T, y.T) && exprsEqual(x.Elems, y.Elems)
	case *plan.MakeRow:
		y, ok := b.(*plan.MakeRow)
		return ok && exprsEqual(x.Elems, y.Elems)
	case *plan.Field:
		y, ok := b.(*plan.Field)
		return ok && x.Index == y.Index && exprEqual(x.Arg, y.Arg)
	case *plan.Subscript:
		y, ok := b.(*plan.Subscript)
		return ok && x.Slice == y.Slice && exprEqual(x.Arg, y.Arg) && exprEqual(x.Index, y.Index) && exprEqual(x.Low, y.Low) && exprEqual(x.High, y.High)
	case *plan.RowCompare:
		y, ok := b.(*plan.RowCompare)
		return ok && x.Op == y.Op && exprsEqual(x.Left, y.Left) && exprsEqual(x.Right, y.Right)
	case *plan.SetRef:
		y, ok := b.(*plan.SetRef)
		return ok && x.F == y.F && exprsEqual(x.Args, y.Args)
	case *groupingRef:
		y, ok := b.(*groupingRef)
		return ok && exprsEqual(x.args, y.args)
	}
	return false
}

func exprsEqual(a, b []plan.Expr) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if !exprEqual(a[i], b[i]) {
			return false
		}
	}
	return true
}

func keysEqual(a, b []plan.SortKey) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Desc != b[i].Desc || a[i].NullsFirst != b[i].NullsFirst || !exprEqual(a[i].Expr, b[i].Expr) {
			return false
		}
	}
	return true
}

func aggEqual(a, b *plan.AggCall) bool {
	return a.Def == b.Def && a.Distinct == b.Distinct && exprsEqual(a.Args, b.Args) && exprsEqual(a.Direct, b.Direct) &&
		keysEqual(a.OrderBy, b.OrderBy) && (a.Filter == nil) == (b.Filter == nil) && (a.Filter == nil || exprEqual(a.Filter, b.Filter)) &&
		!hasVolatile(a.Args...)
}

func datumEqual(a, b types.Datum) bool {
	if x, ok := a.(*numeric.Dec); ok {
		y, ok := b.(*numeric.Dec)
		return ok && x.Scale == y.Scale && numeric.Cmp(x, y) == 0
	}
	switch a.(type) {
	case nil, bool, int64, float64, string:
		return a == b
	}
	return reflect.DeepEqual(a, b)
}

// hasVolatile reports whether any expression calls a volatile function.
func hasVolatile(es ...plan.Expr) bool {
	found := false
	for _, e := range es {
		plan.Walk(e, func(x plan.Expr) bool {
			switch x := x.(type) {
			case *plan.Call:
				found = found || x.F != nil && x.F.Volatility == function.Volatile
			case *plan.Cast:
				found = found || x.F != nil && x.F.Volatility == function.Volatile
			case *plan.SetRef:
				found = found || x.F.Volatility == function.Volatile
			case *plan.Subquery:
				found = found || planVolatile(x.Plan.(*subplan).root)
			}
			return !found
		})
	}
	return found
}

func planVolatile(n plan.LNode) bool {
	found := false
	n.EachExpr(func(e *plan.Expr) { found = found || hasVolatile(*e) })
	for _, c := range setCalls(n) {
		found = found || c.F.Volatility == function.Volatile
	}
	for _, k := range n.Kids() {
		found = found || planVolatile(*k)
	}
	return found
}

func setCalls(n plan.LNode) []plan.LSetCall {
	switch n := n.(type) {
	case *plan.LTableFunc:
		return n.Calls
	case *plan.LProjectSet:
		return n.Sets
	}
	return nil
}

// hasSubquery reports whether e contains a subquery.
func hasSubquery(e plan.Expr) bool {
	found := false
	plan.Walk(e, func(x plan.Expr) bool {
		if _, ok := x.(*plan.Subquery); ok {
			found = true
		}
		return !found
	})
	return found
}

// conjuncts splits e at AND.
func conjuncts(e plan.Expr) []plan.Expr {
	if a, ok := e.(*plan.And); ok {
		var out []plan.Expr
		for _, x := range a.Args {
			out = append(out, conjuncts(x)...)
		}
		return out
	}
	return []plan.Expr{e}
}

// conj joins conditions; nil for none.
func conj(es []plan.Expr) plan.Expr {
	switch len(es) {
	case 0:
		return nil
	case 1:
		return es[0]
	}
	return &plan.And{Args: es}
}

// foldable reports whether e has no columns, parameters, subqueries, sets and
// calls nothing but immutable functions.
func (p *planner) foldable(e plan.Expr) bool { return isConstExpr(e, function.Immutable) }

func isConstExpr(e plan.Expr, limit function.Volatility) bool {
	ok := true
	plan.Walk(e, func(x plan.Expr) bool {
		switch x := x.(type) {
		case *plan.Col, *plan.Slot, *plan.Param, *plan.Subquery, *plan.SetRef, *groupingRef:
			ok = false
		case *plan.Call:
			ok = ok && x.F != nil && x.F.Volatility <= limit && !x.F.Internal
		case *plan.Cast:
			ok = ok && (x.F == nil || x.F.Volatility <= limit)
		}
		return ok
	})
	return ok
}

// subst replaces columns by expressions.
func subst(e plan.Expr, m map[plan.ColID]plan.Expr) plan.Expr {
	if len(m) == 0 {
		return e
	}
	return plan.Replace(e, func(x plan.Expr) (plan.Expr, bool) {
		switch x := x.(type) {
		case *plan.Col:
			if r, ok := m[x.ID]; ok {
				return r, true
			}
		case *plan.Subquery:
			substSub(x, m)
		}
		return nil, false
	})
}

// substSub replaces columns inside a subquery's plan.
func substSub(x *plan.Subquery, m map[plan.ColID]plan.Expr) {
	substPlan(x.Plan.(*subplan).root, m)
}

func substPlan(n plan.LNode, m map[plan.ColID]plan.Expr) {
	n.EachExpr(func(e *plan.Expr) { *e = subst(*e, m) })
	for _, k := range n.Kids() {
		substPlan(*k, m)
	}
}
