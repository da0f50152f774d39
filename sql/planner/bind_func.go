package planner

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// maxFuncArgs is PostgreSQL's FUNC_MAX_ARGS.
const maxFuncArgs = 100

func (p *planner) funcCall(s *scope, e *ast.FuncCall) (plan.Expr, error) {
	name := e.Name.Last()
	if len(e.Name) > 1 {
		schema := e.Name[len(e.Name)-2].Name
		switch schema {
		case "pg_catalog", "information_schema", "public", "sys":
		default:
			return nil, p.errAt(pgerr.InvalidSchemaName, e.Pos, "schema %q does not exist", schema)
		}
	}
	if len(e.Args) > maxFuncArgs {
		return nil, p.errAt(pgerr.TooManyArguments, e.Pos, "cannot pass more than %d arguments to a function", maxFuncArgs)
	}
	if p.mergeAction != nil && len(e.Args) == 0 && e.Name.Last() == "merge_action" {
		return mergeActionText(p, p.mergeAction)
	}
	before := p.countSets(s)
	var args []plan.Expr
	var locs []ast.Pos
	var names []string
	kind := s.kind
	for _, a := range e.Args {
		if n, ok := a.(*ast.NamedArg); ok {
			for _, o := range names {
				if o == n.Name.Name {
					return nil, p.errAt(pgerr.SyntaxError, n.Pos, "argument name %q used more than once", o)
				}
			}
			names = append(names, n.Name.Name)
		} else if len(names) > 0 {
			return nil, p.errAt(pgerr.SyntaxError, a.Position(), "positional argument cannot follow named argument")
		}
		// t.* as an argument is the row.
		if c, ok := a.(*ast.ColumnRef); ok && c.Star && len(c.Parts) > 0 {
			it, err := p.findItem(s, "", c.Parts.Last(), c.Pos)
			if err != nil {
				return nil, err
			}
			if it == nil {
				return nil, p.missingItem(s, c.Parts, c.Pos)
			}
			args, locs = append(args, p.wholeRow(it)), append(locs, c.Pos)
			continue
		}
		x, err := p.expr(s, a)
		if err != nil {
			return nil, err
		}
		args, locs = append(args, x), append(locs, p.loc(a))
	}
	s.kind = kind
	var filter plan.Expr
	if e.Filter != nil {
		f, err := p.in(s, inFilter, e.Filter)
		if err != nil {
			return nil, err
		}
		if filter, err = p.coerceBool(f, "FILTER", p.loc(e.Filter)); err != nil {
			return nil, err
		}
	}
	direct := len(args)
	for _, o := range e.WithinGroup {
		x, err := p.expr(s, o.Expr)
		if err != nil {
			return nil, err
		}
		args, locs = append(args, x), append(locs, p.loc(o.Expr))
	}
	c, castTo, args, err := p.resolveCall(name, e, args, locs, names)
	if err != nil {
		return nil, err
	}
	if castTo != nil {
		if err := p.plainOnly(e, name); err != nil {
			return nil, err
		}
		return p.mustCoerce(args[0], *castTo, function.Explicit, locs[0])
	}
	switch {
	case c.agg != nil:
		if p.countSets(s) > before && e.Over == nil {
			return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "aggregate function calls cannot contain set-returning function calls").
				WithHint("You might be able to move the set-returning function into a LATERAL FROM item.")
		}
		return p.aggregate(s, e, c, args, locs, direct, filter)
	case c.win != nil:
		if e.Over == nil {
			return nil, p.errAt(pgerr.WrongObjectType, e.Pos, "window function %s requires an OVER clause", name)
		}
		return p.windowCall(s, e, c, args, locs, filter)
	}
	if err := p.plainOnly(e, name); err != nil {
		return nil, err
	}
	if c.ov.Set != nil {
		return p.setCall(s, e, c, args, locs, before)
	}
	return p.scalarCall(c, args, locs, e.Variadic, e.Pos)
}

// plainOnly refuses what only aggregates may have.
func (p *planner) plainOnly(e *ast.FuncCall, name string) error {
	bad := func(format string) error { return p.errAt(pgerr.WrongObjectType, e.Pos, format, name) }
	switch {
	case e.Star:
		return p.errAt(pgerr.WrongObjectType, e.Pos, "%s(*) specified, but %s is not an aggregate function", name, name)
	case e.Distinct:
		return bad("DISTINCT specified, but %s is not an aggregate function")
	case e.WithinGroup != nil:
		return bad("WITHIN GROUP specified, but %s is not an aggregate function")
	case e.OrderBy != nil:
		return bad("ORDER BY specified, but %s is not an aggregate function")
	case e.Filter != nil:
		return bad("FILTER specified, but %s is not an aggregate function")
	case e.Over != nil:
		return bad("OVER specified, but %s is not a window function nor an aggregate function")
	}
	return nil
}

// resolveCall is resolveFunc, but functions of jsonb also take what clients are shown
// as jsonb.
func (p *planner) resolveCall(name string, e *ast.FuncCall, args []plan.Expr, locs []ast.Pos, names []string) (*candidate, *types.Type, []plan.Expr, error) {
	c, castTo, err := p.resolveFunc(name, e, args, names)
	if err != nil && strings.HasPrefix(name, "jsonb_") {
		if as, ok := p.asJSONB(args, locs); ok {
			if c, castTo, err2 := p.resolveFunc(name, e, as, names); err2 == nil {
				return c, castTo, as, nil
			}
		}
	}
	return c, castTo, args, err
}

// resolveFunc finds what a call means: a candidate, or the type of a cast
// written as a function.
func (p *planner) resolveFunc(name string, e *ast.FuncCall, args []plan.Expr, names []string) (*candidate, *types.Type, error) {
	ts := argTypes(args)
	n := len(args)
	cands := candidatesFor(name, n, names, e.Variadic)
	if e.Star || n == 0 && hasAgg(name) {
		// count(*): the aggregate without arguments.
		for _, d := range aggregate.Lookup(name) {
			if len(d.Args) == 0 {
				if !e.Star && e.Over == nil {
					return nil, nil, p.errAt(pgerr.WrongObjectType, e.Pos, "%s(*) must be used to call a parameterless aggregate function", name)
				}
				return &candidate{agg: d}, nil, nil
			}
		}
	}
	// A single argument and the name of a type: a cast, unless a function fits
	// exactly.
	if n == 1 && len(names) == 0 && !e.Variadic && !exactFit(cands, ts) {
		if t, ok := castName(name); ok {
			from := ts[0]
			_, _, castable := function.Cast(from, t)
			viaText := (from.IsTextLike() || t.IsTextLike()) && !relabel(from, t)
			if from.Kind == types.Unknown || castable && (relabel(from, t) || viaText && !from.IsTextLike() && t.IsTextLike() || len(cands) == 0) {
				return nil, &t, nil
			}
		}
	}
	best := choose(cands, ts)
	switch {
	case len(best) == 1:
		c := best[0]
		if c.agg != nil && c.agg.OrderedSet != (e.WithinGroup != nil) {
			if c.agg.OrderedSet {
				return nil, nil, p.errAt(pgerr.WrongObjectType, e.Pos, "WITHIN GROUP is required for ordered-set aggregate %s", name)
			}
			return nil, nil, p.errAt(pgerr.WrongObjectType, e.Pos, "%s is not an ordered-set aggregate, so it cannot have WITHIN GROUP", name)
		}
		return &c, nil, nil
	case len(best) > 1:
		return nil, nil, p.errAt(pgerr.AmbiguousFunction, e.Pos, "function %s(%s) is not unique", e.Name.String(), typeList(ts, names)).
			WithHint("Could not choose a best candidate function. You might need to add explicit type casts.")
	}
	if n == 1 && e.Star {
		return nil, nil, p.errAt(pgerr.UndefinedFunction, e.Pos, "function %s() does not exist", e.Name.String())
	}
	err := p.errAt(pgerr.UndefinedFunction, e.Pos, "function %s(%s) does not exist", e.Name.String(), typeList(ts, names))
	if len(e.OrderBy) > 0 && len(cands) == 0 && hasAgg(name) {
		return nil, nil, err.WithHint("No aggregate function matches the given name and argument types. Perhaps you misplaced ORDER BY; ORDER BY must appear after all regular arguments of the aggregate.")
	}
	return nil, nil, err.WithHint("No function matches the given name and argument types. You might need to add explicit type casts.")
}

func hasAgg(name string) bool { return len(aggregate.Lookup(name)) > 0 }

func exactFit(cands []candidate, ts []types.Type) bool {
	for _, c := range cands {
		ok := true
		for i := range ts {
			if ts[i].Kind == types.Unknown || !sameType(c.args[i], ts[i]) || c.args[i].Kind == types.Any || isPoly(c.args[i]) {
				ok = false
			}
		}
		if ok {
			return true
		}
	}
	return false
}

// castName finds the type that a function-style cast names.
func castName(name string) (types.Type, bool) {
	t, ok := typesByName[name]
	if !ok || isPoly(t) || t.Kind == types.Any || t.Kind == types.Unknown || t.Kind == types.Record || name == "map" || name == "row" {
		return t, false
	}
	return t.SQL(), true
}

func relabel(from, to types.Type) bool {
	return from.IsTextLike() && to.IsTextLike() || from.IsOIDLike() && (to.IsOIDLike() || to.IsInteger()) || from.IsInteger() && to.IsOIDLike()
}

// scalarCall builds a call of an ordinary function.
func (p *planner) scalarCall(c *candidate, args []plan.Expr, locs []ast.Pos, variadic bool, pos ast.Pos) (plan.Expr, error) {
	o := c.ov
	args, t, err := p.finishArgs(c, args, locs, o.ExactArgs, o.RetFn, o.Ret, "function "+o.Name, pos)
	if err != nil {
		return nil, err
	}
	if c.order != nil {
		args = reorder(args, c.order, len(o.Args)-c.ndefault, o.Args)
	}
	if variadic && len(o.Args) > 0 && o.Args[len(o.Args)-1].Kind == types.Any {
		x, ok, err := p.spreadVariadic(o, args, locs, pos)
		if err != nil {
			return nil, err
		}
		if !ok {
			return x, nil
		}
		args = x.(*plan.MakeRow).Elems
	}
	if o.Volatility == function.Volatile {
		p.volatile = true
	}
	t.NotNull = false
	return &plan.Call{F: o, Args: args, T: t, Pos: int32(pos)}, nil
}

// spreadVariadic handles VARIADIC array for functions of any arguments, whose
// kernels take them one by one: ok says that the result is a row of arguments,
// else it is an expression that means the call.
func (p *planner) spreadVariadic(o *function.Overload, args []plan.Expr, locs []ast.Pos, pos ast.Pos) (plan.Expr, bool, error) {
	last := args[len(args)-1]
	if arrayElem(last.Type()) == nil {
		return nil, false, p.errAt(pgerr.DatatypeMismatch, locs[len(locs)-1], "VARIADIC argument must be an array")
	}
	lit := stripCast(last)
	if m, ok := lit.(*plan.MakeArray); ok {
		return &plan.MakeRow{Elems: append(append([]plan.Expr{}, args[:len(args)-1]...), m.Elems...)}, true, nil
	}
	sep := plan.Expr(p.constAt("", types.Of(types.Text), pos))
	switch {
	case o.Name == "concat" && len(args) == 1:
	case o.Name == "concat_ws" && len(args) == 2:
		sep = args[0]
	default:
		return nil, false, p.errAt(pgerr.FeatureNotSupported, pos, "VARIADIC with an array that is no constructor is not supported for function %s", o.Name)
	}
	e, err := p.callNamed("array_to_string", []plan.Expr{last, sep}, []ast.Pos{pos, pos}, pos)
	return e, false, err
}

// reorder puts named arguments into the places of their parameters. Parameters
// between that were left to their default get it.
func reorder(args []plan.Expr, order []int, n int, params []types.Type) []plan.Expr {
	last := 0
	for _, j := range order {
		last = max(last, j+1)
	}
	out := make([]plan.Expr, max(last, n))
	for i, j := range order {
		out[j] = args[i]
	}
	for len(out) > 0 && out[len(out)-1] == nil {
		out = out[:len(out)-1]
	}
	for i, e := range out {
		if e != nil {
			continue
		}
		// The defaults of the functions here are zero, false and NULL.
		k := &plan.Const{T: params[i]}
		switch {
		case params[i].IsInteger():
			k.Value = int64(0)
		case params[i].Kind == types.Float4 || params[i].Kind == types.Float8:
			k.Value = float64(0)
		case params[i].Kind == types.Bool:
			k.Value = false
		}
		k.T.NotNull = k.Value != nil
		out[i] = k
	}
	return out
}

// callNamed calls a function that the grammar implies.
func (p *planner) callNamed(name string, args []plan.Expr, locs []ast.Pos, pos ast.Pos) (plan.Expr, error) {
	call := &ast.FuncCall{Loc: ast.At(pos), Name: ast.Name{{Name: name, Pos: pos}}}
	c, castTo, err := p.resolveFunc(name, call, args, nil)
	if err != nil {
		return nil, err
	}
	if castTo != nil {
		return p.mustCoerce(args[0], *castTo, function.Explicit, locs[0])
	}
	if c.ov == nil || c.ov.Set != nil {
		return nil, p.errAt(pgerr.UndefinedFunction, pos, "function %s(%s) does not exist", name, typeList(argTypes(args), nil))
	}
	return p.scalarCall(c, args, locs, false, pos)
}

// setResult is the row a set-returning function yields.
func setResult(o *function.Overload, ts []types.Type, ret types.Type) (types.Schema, types.Type) {
	if o.SetColumns != nil {
		sch := o.SetColumns(ts)
		if len(sch) == 1 {
			return sch, sch[0].Type
		}
		return sch, types.Type{Kind: types.Record, Fields: sch}
	}
	return types.Schema{{ID: -1, Name: o.Name, Type: ret}}, ret
}

// setCall binds a set-returning function outside FROM.
func (p *planner) setCall(s *scope, e *ast.FuncCall, c *candidate, args []plan.Expr, locs []ast.Pos, before int) (plan.Expr, error) {
	place := ""
	switch s.kind {
	case inTarget, inOrderBy, inGroupBy, inDistinctOn, inOneRow:
	case inFromFunc:
		return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "set-returning functions must appear at top level of FROM")
	case inValues:
		place = "VALUES"
	case inHaving:
		place = "HAVING"
	case inWindowPartition, inWindowOrder:
		place = "window definitions"
	case inConst, inNone:
		place = "this context"
	default:
		place = s.kind.aggPlace()
	}
	if s.sel == nil && place == "" {
		place = "this context"
	}
	if place != "" {
		return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "set-returning functions are not allowed in %s", place)
	}
	args, t, err := p.finishArgs(c, args, locs, c.ov.ExactArgs, c.ov.RetFn, c.ov.Ret, "function "+c.ov.Name, e.Pos)
	if err != nil {
		return nil, err
	}
	if c.order != nil {
		args = reorder(args, c.order, len(c.ov.Args)-c.ndefault, c.ov.Args)
	}
	out, rt := setResult(c.ov, argTypes(args), t.WithNotNull(false))
	if c.ov.Volatility == function.Volatile {
		p.volatile = true
	}
	s.sel.sets++
	_ = before
	return &plan.SetRef{F: c.ov, Args: args, T: rt, Out: out, Pos: int32(e.Pos)}, nil
}

// countSets and noSets refuse set-returning functions inside constructs that
// evaluate their arguments conditionally.
func (p *planner) countSets(s *scope) int {
	if s.sel == nil {
		return 0
	}
	return s.sel.sets
}

func (p *planner) noSets(s *scope, before int, construct string) error {
	if p.countSets(s) > before {
		return p.errAt(pgerr.FeatureNotSupported, -1, "set-returning functions are not allowed in %s", construct).
			WithHint("You might be able to move the set-returning function into a LATERAL FROM item.")
	}
	return nil
}

// aggregate binds a call of an aggregate, plain or over a window.
func (p *planner) aggregate(s *scope, e *ast.FuncCall, c *candidate, args []plan.Expr, locs []ast.Pos, direct int, filter plan.Expr) (plan.Expr, error) {
	d := c.agg
	name := e.Name.Last()
	if e.Over != nil && d.OrderedSet {
		return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "OVER is not supported for ordered-set aggregate %s", name)
	}
	var err error
	ret := d.Ret
	if len(args) > 0 {
		args, ret, err = p.finishArgs(c, args, locs, d.ExactArgs, d.RetFn, d.Ret, "function "+name, e.Pos)
		if err != nil {
			return nil, err
		}
	} else if d.RetFn != nil {
		ret = d.RetFn(nil)
	}
	a := plan.AggCall{Def: d, Args: args, Filter: filter, Distinct: e.Distinct, T: ret}
	a.T.NotNull = name == "count"
	if e.Distinct {
		if len(args) == 0 {
			return nil, p.errAt(pgerr.WrongObjectType, e.Pos, "DISTINCT specified, but %s has no arguments", name)
		}
		if d.OrderedSet {
			return nil, p.errAt(pgerr.SyntaxError, e.Pos, "cannot use DISTINCT with WITHIN GROUP")
		}
		for i, x := range args {
			if p.opFor("=", x.Type(), x.Type()) == nil && !isRow(x.Type()) && x.Type().Kind != types.Array {
				return nil, p.errAt(pgerr.UndefinedFunction, locs[i], "could not identify an equality operator for type %s", typeName(x.Type()))
			}
		}
	}
	if d.OrderedSet {
		a.Direct, a.Args = args[:direct:direct], args[direct:]
		if d.Hypothetical && len(a.Direct) != len(a.Args) {
			return nil, p.errAt(pgerr.UndefinedFunction, e.Pos, "function %s(%s) does not exist", name, typeList(argTypes(args), nil)).
				WithHint("To use the hypothetical-set aggregate %s, the number of hypothetical direct arguments (here %d) must match the number of ordering columns (here %d).", name, len(a.Direct), len(a.Args))
		}
		for i, x := range a.Direct {
			if len(usedCols(x)) > 0 {
				return nil, p.errAt(pgerr.FeatureNotSupported, locs[i], "direct arguments of %s that depend on rows are not supported", name)
			}
		}
		for i, o := range e.WithinGroup {
			k, err := p.sortKeyFor(o, a.Args[i], p.loc(o.Expr))
			if err != nil {
				return nil, err
			}
			a.OrderBy = append(a.OrderBy, k)
		}
	}
	for _, o := range e.OrderBy {
		x, err := p.expr(s, o.Expr)
		if err != nil {
			return nil, err
		}
		if isUnknown(x) {
			if x, err = p.coerce(x, types.Of(types.Text), function.Implicit, p.loc(o.Expr)); err != nil {
				return nil, err
			}
		}
		// The same expression as an argument orders by the argument as cast.
		k, err := p.sortKeyFor(o, x, p.loc(o.Expr))
		if err != nil {
			return nil, err
		}
		if e.Distinct {
			found := false
			for _, arg := range a.Args {
				if exprEqual(arg, x) || exprEqual(stripCast(arg), stripCast(x)) {
					k.Expr, found = arg, true
					break
				}
			}
			if !found {
				return nil, p.errAt(pgerr.InvalidColumnReference, p.loc(o.Expr), "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument list")
			}
		}
		a.OrderBy = append(a.OrderBy, k)
	}
	if e.Over != nil {
		if e.Distinct {
			return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "DISTINCT is not implemented for window functions")
		}
		if len(e.OrderBy) > 0 {
			return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "aggregate ORDER BY is not implemented for window functions")
		}
		return p.addWindow(s, e, plan.WindowCall{Agg: &a, T: a.T}, name)
	}
	return p.addAggregate(s, e, a, name)
}

func stripCast(e plan.Expr) plan.Expr {
	for {
		c, ok := e.(*plan.Cast)
		if !ok || c.F != nil {
			return e
		}
		e = c.Arg
	}
}

// addAggregate registers an aggregate with the query level it belongs to: the
// innermost one whose columns its arguments use.
func (p *planner) addAggregate(s *scope, e *ast.FuncCall, a plan.AggCall, name string) (plan.Expr, error) {
	owner := p.aggOwner(s, &a)
	bad := pgerr.GroupingError
	var nested, window bool
	p.eachAggCol(&a, func(c *plan.Col) {
		i := p.colInfo(c.ID)
		if i == nil || i.scope != owner {
			return
		}
		nested = nested || i.kind == colAgg
		window = window || i.kind == colWindow
	})
	for _, x := range a.Args {
		plan.Walk(x, func(y plan.Expr) bool {
			if _, ok := y.(*groupingRef); ok {
				nested = true
			}
			return !nested
		})
	}
	if nested {
		return nil, p.errAt(bad, p.innerAggPos(e), "aggregate function calls cannot be nested")
	}
	if window {
		return nil, p.errAt(bad, p.innerAggPos(e), "aggregate function calls cannot contain window function calls")
	}
	if place := owner.kind.aggPlace(); place != "" {
		return nil, p.errAt(bad, e.Pos, "aggregate functions are not allowed in %s", place)
	}
	if owner.kind == inFromSub || owner.kind == inNone && owner.sel != nil {
		return nil, p.errAt(bad, e.Pos, "aggregate functions are not allowed in FROM clause of their own query level")
	}
	if owner.sel == nil {
		if owner.kind == inConst {
			return nil, p.errAt(bad, e.Pos, "aggregate functions are not allowed in this context")
		}
		return nil, p.errAt(bad, e.Pos, "aggregate functions are not allowed here")
	}
	sel := owner.sel
	if sel.recursiveStep {
		return nil, p.errAt(pgerr.InvalidRecursion, e.Pos, "aggregate functions are not allowed in a recursive query's recursive term")
	}
	sel.hasAgg = true
	for i := range sel.aggs {
		if aggEqual(&sel.aggs[i], &a) {
			return sel.aggCols[i].Ref(), nil
		}
	}
	col := p.newCol(name, a.T, colInfo{scope: owner, kind: colAgg})
	sel.aggs = append(sel.aggs, a)
	sel.aggCols = append(sel.aggCols, col)
	sel.aggPos = append(sel.aggPos, e.Pos)
	return col.Ref(), nil
}

// innerAggPos finds the place of an aggregate or window call among the
// arguments of e.
func (p *planner) innerAggPos(e *ast.FuncCall) ast.Pos {
	pos := e.Pos
	found := false
	var look func(n ast.Node) bool
	look = func(n ast.Node) bool {
		if f, ok := n.(*ast.FuncCall); ok && f != e && !found && (hasAgg(f.Name.Last()) || f.Over != nil) {
			pos, found = f.Pos, true
		}
		return !found
	}
	for _, a := range e.Args {
		walkAST(a, look)
	}
	if !found && e.Filter != nil {
		walkAST(e.Filter, look)
	}
	for _, o := range e.OrderBy {
		walkAST(o.Expr, look)
	}
	return pos
}

func (p *planner) eachAggCol(a *plan.AggCall, f func(*plan.Col)) {
	visit := func(e plan.Expr) { eachCol(e, f) }
	for _, x := range a.Args {
		visit(x)
	}
	for _, x := range a.Direct {
		visit(x)
	}
	for _, k := range a.OrderBy {
		visit(k.Expr)
	}
	if a.Filter != nil {
		visit(a.Filter)
	}
}

func (p *planner) aggOwner(s *scope, a *plan.AggCall) *scope {
	var owner *scope
	p.eachAggCol(a, func(c *plan.Col) {
		i := p.colInfo(c.ID)
		if i == nil || i.scope == nil {
			return
		}
		if !isAncestor(i.scope, s) {
			return // a column inside a subquery of the arguments
		}
		if owner == nil || isAncestor(owner, i.scope) {
			owner = i.scope
		}
	})
	if owner == nil {
		return s
	}
	return owner
}

// isAncestor reports whether a is s or encloses it.
func isAncestor(a, s *scope) bool {
	for ; s != nil; s = s.parent {
		if s == a {
			return true
		}
	}
	return false
}

// grouping binds GROUPING(...): resolved when the groups are known.
func (p *planner) grouping(s *scope, e *ast.Special) (plan.Expr, error) {
	if place := s.kind.aggPlace(); place != "" {
		return nil, p.errAt(pgerr.GroupingError, e.Pos, "grouping operations are not allowed in %s", place)
	}
	if s.sel == nil {
		return nil, p.errAt(pgerr.GroupingError, e.Pos, "grouping operations are not allowed here")
	}
	if len(e.Args) > 31 {
		return nil, p.errAt(pgerr.TooManyArguments, e.Pos, "GROUPING must have fewer than 32 arguments")
	}
	args, err := p.exprs(s, e.Args)
	if err != nil {
		return nil, err
	}
	g := &groupingRef{args: args, pos: e.Pos}
	for _, a := range e.Args {
		g.locs = append(g.locs, p.loc(a))
	}
	s.sel.hasAgg = true
	return g, nil
}

// groupingRef is GROUPING(...) until the select's groups are known.
type groupingRef struct {
	args []plan.Expr
	locs []ast.Pos
	pos  ast.Pos
}

// Type is int4.
func (*groupingRef) Type() types.Type { return types.Of(types.Int4).WithNotNull(true) }

// sortKeyFor applies PostgreSQL's defaults for NULLs, and checks that the type
// can be ordered.
func (p *planner) sortKeyFor(o *ast.OrderItem, e plan.Expr, pos ast.Pos) (plan.SortKey, error) {
	k := plan.SortKey{Expr: e, Desc: o.Desc}
	if o.Using != nil {
		switch o.Using.Name {
		case "<":
		case ">":
			k.Desc = true
		default:
			return k, p.errAt(pgerr.WrongObjectType, o.Using.Pos, "operator %s is not a valid ordering operator", o.Using.Name).
				WithHint("Ordering operators must be \"<\" or \">\" members of btree operator families.")
		}
	}
	switch o.Nulls {
	case ast.NullsFirst:
		k.NullsFirst = true
	case ast.NullsLast:
	default:
		k.NullsFirst = k.Desc
	}
	if !p.orderable(e.Type()) {
		return k, p.errAt(pgerr.UndefinedFunction, pos, "could not identify an ordering operator for type %s", typeName(e.Type())).
			WithHint("Use an explicit ordering operator or modify the query.")
	}
	return k, nil
}

func (p *planner) orderable(t types.Type) bool {
	switch t.Kind {
	case types.JSON, types.Map, types.Variant, types.XID, types.Void:
		return false
	case types.Array:
		return t.Elem == nil || p.orderable(*t.Elem)
	case types.Row, types.Record:
		for _, f := range t.Fields {
			if !p.orderable(f.Type) {
				return false
			}
		}
	}
	return true
}

// hashable reports whether values can be compared for equality.
func (p *planner) hashable(t types.Type) bool {
	if t.Kind == types.XID {
		return true
	}
	return p.orderable(t)
}
