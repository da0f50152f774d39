package planner

import (
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// window is one distinct specification and the calls over it.
type window struct {
	partition []plan.Expr
	order     []plan.SortKey
	calls     []plan.WindowCall
	cols      []plan.LCol
}

// boundSpec is a WINDOW clause entry or OVER (...), bound.
type boundSpec struct {
	partition []plan.Expr
	order     []plan.SortKey
	frame     *plan.Frame
}

// windowCall binds a pure window function.
func (p *planner) windowCall(s *scope, e *ast.FuncCall, c *candidate, args []plan.Expr, locs []ast.Pos, filter plan.Expr) (plan.Expr, error) {
	d := c.win
	name := e.Name.Last()
	if filter != nil {
		return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "FILTER is not implemented for non-aggregate window functions")
	}
	if e.Distinct {
		return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "DISTINCT is not implemented for window functions")
	}
	if e.WithinGroup != nil {
		return nil, p.errAt(pgerr.WrongObjectType, e.Pos, "window function %s cannot have WITHIN GROUP", name)
	}
	if len(e.OrderBy) > 0 {
		return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "aggregate ORDER BY is not implemented for window functions")
	}
	if e.Star {
		return nil, p.errAt(pgerr.WrongObjectType, e.Pos, "%s(*) must be used to call a parameterless aggregate function", name)
	}
	args, ret, err := p.finishArgs(c, args, locs, nil, d.RetFn, d.Ret, "function "+name, e.Pos)
	if err != nil {
		return nil, err
	}
	switch name {
	case "row_number", "rank", "dense_rank", "percent_rank", "cume_dist", "ntile":
		ret.NotNull = name != "ntile"
	default:
		ret.NotNull = false
	}
	return p.addWindow(s, e, plan.WindowCall{Func: d, Args: args, T: ret}, name)
}

// addWindow registers a window call with the current query level.
func (p *planner) addWindow(s *scope, e *ast.FuncCall, call plan.WindowCall, name string) (plan.Expr, error) {
	bad := pgerr.WindowingError
	place := s.kind.aggPlace()
	switch s.kind {
	case inHaving:
		place = "HAVING"
	case inWindowPartition, inWindowOrder:
		place = "window definitions"
	case inConst:
		place = "this context"
	}
	if s.kind == inWindowFrameRange || s.kind == inWindowFrameRows || s.kind == inWindowFrameGroups {
		place = "window definitions"
	}
	if place != "" || s.sel == nil {
		if place == "" {
			place = "this context"
		}
		return nil, p.errAt(bad, e.Pos, "window functions are not allowed in %s", place)
	}
	nested := false
	check := func(c *plan.Col) {
		if i := p.colInfo(c.ID); i != nil && i.scope == s && i.kind == colWindow {
			nested = true
		}
	}
	if call.Agg != nil {
		p.eachAggCol(call.Agg, check)
	}
	for _, a := range call.Args {
		eachCol(a, check)
	}
	if nested {
		return nil, p.errAt(bad, p.innerAggPos(e), "window function calls cannot be nested")
	}
	spec, err := p.windowSpec(s, e.Over)
	if err != nil {
		return nil, err
	}
	call.Frame = defaultFrame(spec)
	if spec.frame != nil {
		call.Frame = *spec.frame
	}
	for _, w := range s.sel.windows {
		if !exprsEqual(w.partition, spec.partition) || !keysEqual(w.order, spec.order) {
			continue
		}
		for i := range w.calls {
			if windowEqual(&w.calls[i], &call) {
				return w.cols[i].Ref(), nil
			}
		}
	}
	col := p.newCol(name, call.T, colInfo{scope: s, kind: colWindow})
	for _, w := range s.sel.windows {
		if exprsEqual(w.partition, spec.partition) && keysEqual(w.order, spec.order) {
			w.calls = append(w.calls, call)
			w.cols = append(w.cols, col)
			return col.Ref(), nil
		}
	}
	s.sel.windows = append(s.sel.windows, &window{partition: spec.partition, order: spec.order,
		calls: []plan.WindowCall{call}, cols: []plan.LCol{col}})
	return col.Ref(), nil
}

// windowEqual reports whether two calls over one window are the same.
func windowEqual(a, b *plan.WindowCall) bool {
	if a.Func != b.Func || (a.Agg == nil) != (b.Agg == nil) || !exprsEqual(a.Args, b.Args) || hasVolatile(a.Args...) {
		return false
	}
	if a.Agg != nil && !aggEqual(a.Agg, b.Agg) {
		return false
	}
	f, g := a.Frame, b.Frame
	return f.Mode == g.Mode && f.Start == g.Start && f.End == g.End && f.Exclude == g.Exclude &&
		exprEqual(f.StartOffset, g.StartOffset) && exprEqual(f.EndOffset, g.EndOffset)
}

func defaultFrame(*boundSpec) plan.Frame {
	return plan.Frame{Mode: plan.Range, Start: plan.UnboundedPreceding, End: plan.CurrentRow}
}

// windowSpec binds what follows OVER.
func (p *planner) windowSpec(s *scope, w *ast.WindowSpec) (*boundSpec, error) {
	out := &boundSpec{}
	var base *boundSpec
	if !w.Ref.Empty() {
		b, err := p.namedWindow(s, w.Ref)
		if err != nil {
			return nil, err
		}
		if w.Bare {
			return b, nil
		}
		base = b
		if len(w.PartitionBy) > 0 {
			return nil, p.errAt(pgerr.WindowingError, w.Pos, "cannot override PARTITION BY clause of window %q", w.Ref.Name)
		}
		if len(w.OrderBy) > 0 && len(base.order) > 0 {
			return nil, p.errAt(pgerr.WindowingError, w.Pos, "cannot override ORDER BY clause of window %q", w.Ref.Name)
		}
		if base.frame != nil {
			e := p.errAt(pgerr.WindowingError, w.Pos, "cannot copy window %q because it has a frame clause", w.Ref.Name)
			if len(w.OrderBy) == 0 && w.Frame == nil {
				return nil, e.WithHint("Omit the parentheses in this OVER clause.")
			}
			return nil, e
		}
		out.partition, out.order = base.partition, base.order
	}
	for _, e := range w.PartitionBy {
		x, err := p.orderExpr(s, e, inWindowPartition, "PARTITION BY")
		if err != nil {
			return nil, err
		}
		if !p.hashable(x.Type()) {
			return nil, p.errAt(pgerr.UndefinedFunction, p.loc(e), "could not identify an equality operator for type %s", typeName(x.Type()))
		}
		out.partition = append(out.partition, x)
	}
	for _, o := range w.OrderBy {
		x, err := p.orderExpr(s, o.Expr, inWindowOrder, "ORDER BY")
		if err != nil {
			return nil, err
		}
		k, err := p.sortKeyFor(o, x, p.loc(o.Expr))
		if err != nil {
			return nil, err
		}
		out.order = append(out.order, k)
	}
	if w.Frame != nil {
		f, err := p.frame(s, w.Frame, out, w.Pos)
		if err != nil {
			return nil, err
		}
		out.frame = f
	}
	return out, nil
}

// orderExpr binds an expression of a window's lists, where a constant integer
// is a constant.
func (p *planner) orderExpr(s *scope, e ast.Expr, k exprKind, _ string) (plan.Expr, error) {
	x, err := p.in(s, k, e)
	if err != nil {
		return nil, err
	}
	if isUnknown(x) {
		return p.coerce(x, types.Of(types.Text), function.Implicit, p.loc(e))
	}
	return x, nil
}

// namedWindow finds a window of the WINDOW clause and binds it when first used.
func (p *planner) namedWindow(s *scope, id ast.Ident) (*boundSpec, error) {
	if s.sel != nil {
		if b, ok := s.sel.named[id.Name]; ok {
			return b, nil
		}
	}
	return nil, p.errAt(pgerr.UndefinedObject, id.Pos, "window %q does not exist", id.Name)
}

// bindWindowClause binds the WINDOW clause in order: an entry may copy an
// earlier one.
func (p *planner) bindWindowClause(s *scope, defs []*ast.WindowDef) error {
	for _, d := range defs {
		if s.sel.named == nil {
			s.sel.named = map[string]*boundSpec{}
		}
		if _, dup := s.sel.named[d.Name.Name]; dup {
			return p.errAt(pgerr.WindowingError, d.Pos, "window %q is already defined", d.Name.Name)
		}
		b, err := p.windowSpec(s, d.Spec)
		if err != nil {
			return err
		}
		s.sel.named[d.Name.Name] = b
	}
	return nil
}

func (p *planner) frame(s *scope, f *ast.Frame, spec *boundSpec, wpos ast.Pos) (*plan.Frame, error) {
	out := &plan.Frame{
		Mode:  map[ast.FrameMode]plan.FrameMode{ast.FrameRange: plan.Range, ast.FrameRows: plan.Rows, ast.FrameGroups: plan.Groups}[f.Mode],
		Start: plan.BoundKind(f.Start.Kind), End: plan.BoundKind(f.End.Kind), Exclude: plan.Exclude(f.Exclude),
	}
	hasOffset := f.Start.Offset != nil || f.End.Offset != nil
	if out.Mode == plan.Range && hasOffset && len(spec.order) != 1 {
		return nil, p.errAt(pgerr.WindowingError, wpos, "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column")
	}
	if out.Mode == plan.Groups && len(spec.order) == 0 {
		return nil, p.errAt(pgerr.WindowingError, wpos, "GROUPS mode requires an ORDER BY clause")
	}
	offset := func(e ast.Expr) (plan.Expr, error) {
		if e == nil {
			return nil, nil
		}
		kind, name := inWindowFrameRows, "ROWS"
		switch out.Mode {
		case plan.Range:
			kind, name = inWindowFrameRange, "RANGE"
		case plan.Groups:
			kind, name = inWindowFrameGroups, "GROUPS"
		}
		x, err := p.in(s, kind, e)
		if err != nil {
			return nil, err
		}
		own := false
		eachCol(x, func(c *plan.Col) {
			if i := p.colInfo(c.ID); i != nil && i.scope == s {
				own = true
			}
		})
		if own {
			return nil, p.errAt(pgerr.InvalidColumnReference, p.loc(e), "argument of %s must not contain variables", name)
		}
		if out.Mode == plan.Range {
			return p.rangeOffset(out, spec, x, p.loc(e))
		}
		return p.coerceTo(x, types.Of(types.Int8), name, p.loc(e))
	}
	var err error
	if out.StartOffset, err = offset(f.Start.Offset); err != nil {
		return nil, err
	}
	if out.EndOffset, err = offset(f.End.Offset); err != nil {
		return nil, err
	}
	return out, nil
}

// rangeOffset finds + and - for RANGE with an offset: PostgreSQL's in_range
// support functions, one pair of types each.
func (p *planner) rangeOffset(f *plan.Frame, spec *boundSpec, x plan.Expr, pos ast.Pos) (plan.Expr, error) {
	key := spec.order[0]
	kt := key.Expr.Type()
	var want types.Type
	switch kt.Kind {
	case types.Int2, types.TinyInt, types.Int4, types.Int8:
		want = types.Of(types.Int8)
		if key.Expr, _ = p.coerce(key.Expr, want, function.Implicit, pos); key.Expr != nil {
			spec.order = []plan.SortKey{key}
			kt = want
		}
	case types.Float4, types.Float8:
		want = types.Of(types.Float8)
		if key.Expr, _ = p.coerce(key.Expr, want, function.Implicit, pos); key.Expr != nil {
			spec.order = []plan.SortKey{key}
			kt = want
		}
	case types.Numeric:
		want = types.Of(types.Numeric)
	case types.Date:
		want = types.Of(types.Interval)
		ts := types.Of(types.Timestamp)
		if e, _ := p.coerce(key.Expr, ts, function.Implicit, pos); e != nil {
			key.Expr = e
			spec.order = []plan.SortKey{key}
			kt = ts
		}
	case types.Timestamp, types.TimestampTZ, types.Time, types.TimeTZ, types.Interval:
		want = types.Of(types.Interval)
	default:
		return nil, p.errAt(pgerr.FeatureNotSupported, pos, "RANGE with offset PRECEDING/FOLLOWING is not supported for column type %s", typeName(kt))
	}
	c, err := p.coerce(x, want, function.Implicit, pos)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, p.errAt(pgerr.FeatureNotSupported, pos, "RANGE with offset PRECEDING/FOLLOWING is not supported for column type %s and offset type %s", typeName(kt), typeName(x.Type())).
			WithHint("Cast the offset value to an appropriate type.")
	}
	f.RangeAdd, f.RangeSub = p.opFor("+", kt, want), p.opFor("-", kt, want)
	if f.RangeAdd == nil || f.RangeSub == nil {
		return nil, p.errAt(pgerr.FeatureNotSupported, pos, "RANGE with offset PRECEDING/FOLLOWING is not supported for column type %s", typeName(kt))
	}
	return c, nil
}
