package planner

import (
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// rowElems takes a row value apart.
func (p *planner) rowElems(e plan.Expr) []plan.Expr {
	if r, ok := e.(*plan.MakeRow); ok {
		return r.Elems
	}
	out := make([]plan.Expr, len(e.Type().Fields))
	for i := range out {
		out[i] = p.pickField(e, i)
	}
	return out
}

// rowBinary is (a, b) op something.
func (p *planner) rowBinary(s *scope, b *ast.Binary, l *ast.Row) (plan.Expr, error) {
	le, err := p.exprs(s, l.Elems)
	if err != nil {
		return nil, err
	}
	ll := p.locs(l, len(le))
	switch r := b.Right.(type) {
	case *ast.Row:
		re, err := p.exprs(s, r.Elems)
		if err != nil {
			return nil, err
		}
		return p.rowOp(b.Op.Name, le, re, ll, p.locs(r, len(re)), b.Pos)
	case *ast.Subquery:
		if r.Kind != ast.SubqueryScalar {
			break
		}
		bq, err := p.bindQuery(r.Query, s, false)
		if err != nil {
			return nil, err
		}
		if len(bq.cols) < len(le) {
			return nil, p.errAt(pgerr.SyntaxError, b.Pos, "subquery has too few columns")
		}
		if len(bq.cols) > len(le) {
			return nil, p.errAt(pgerr.SyntaxError, b.Pos, "subquery has too many columns")
		}
		row := &plan.MakeRow{T: types.Type{Kind: types.Record}}
		for _, c := range bq.cols {
			row.Elems = append(row.Elems, c.ref())
			row.T.Fields = append(row.T.Fields, types.Field{ID: -1, Name: c.name, Type: c.t})
		}
		col := p.newCol("row", row.T, colInfo{kind: colOther})
		root := &plan.LProject{In: bq.root, Exprs: []plan.Expr{row}, Out: []plan.LCol{col}}
		sub := &plan.Subquery{Kind: plan.Scalar, Plan: &subplan{root: root, out: root.Out}, T: row.T, Pos: int32(r.Pos)}
		return p.rowOp(b.Op.Name, le, p.rowElems(sub), ll, p.locs(r, len(le)), b.Pos)
	}
	r, err := p.expr(s, b.Right)
	if err != nil {
		return nil, err
	}
	if isRow(r.Type()) {
		re := p.rowElems(r)
		return p.rowOp(b.Op.Name, le, re, ll, p.locs(b.Right, len(re)), b.Pos)
	}
	x, err := p.row(s, l)
	if err != nil {
		return nil, err
	}
	return p.operator(b.Op.Name, x, r, p.loc(l), p.loc(b.Right), b.Pos)
}

// rowOp compares rows member by member.
func (p *planner) rowOp(op string, l, r []plan.Expr, ll, rl []ast.Pos, pos ast.Pos) (plan.Expr, error) {
	if len(l) != len(r) {
		return nil, p.errAt(pgerr.SyntaxError, pos, "unequal number of entries in row expressions")
	}
	if len(l) == 0 {
		return nil, p.errAt(pgerr.FeatureNotSupported, pos, "cannot compare rows of zero length")
	}
	if len(l) == 1 {
		return p.operator(op, l[0], r[0], ll[0], rl[0], pos)
	}
	if op == "=" || op == "<>" {
		var parts []plan.Expr
		for i := range l {
			x, err := p.operator(op, l[i], r[i], ll[i], rl[i], pos)
			if err != nil {
				return nil, err
			}
			parts = append(parts, x)
		}
		if op == "=" {
			return &plan.And{Args: parts}, nil
		}
		return &plan.Or{Args: parts}, nil
	}
	rc := &plan.RowCompare{Op: op}
	for i := range l {
		eq, err := p.operator("=", l[i], r[i], ll[i], rl[i], pos)
		if err != nil {
			return nil, err
		}
		ec := eq.(*plan.Call)
		lt, err := p.operator("<", ec.Args[0], ec.Args[1], ll[i], rl[i], pos)
		if err != nil {
			return nil, err
		}
		lc := lt.(*plan.Call)
		rc.Left = append(rc.Left, lc.Args[0])
		rc.Right = append(rc.Right, lc.Args[1])
		rc.Eq = append(rc.Eq, ec.F)
		rc.Less = append(rc.Less, lc.F)
	}
	return rc, nil
}

func (p *planner) is(s *scope, e *ast.Is) (plan.Expr, error) {
	x, err := p.expr(s, e.Expr)
	if err != nil {
		return nil, err
	}
	test := func(t plan.BoolTest, name string) (plan.Expr, error) {
		if e.Not {
			name = "IS NOT " + name
		} else {
			name = "IS " + name
		}
		b, err := p.coerceBool(x, name, p.loc(e.Expr))
		if err != nil {
			return nil, err
		}
		return &plan.IsBool{Arg: b, Test: t, Not: e.Not}, nil
	}
	switch e.Kind {
	case ast.IsNull:
		if c, ok := x.(*plan.Const); ok && isUnknown(c) {
			return p.constAt((c.Value == nil) != e.Not, boolT, e.Pos), nil
		}
		if prm, ok := x.(*plan.Param); ok && isUnknown(x) {
			// Another use of the parameter gives its type, before or after this one;
			// without one it stays unknown, which checkParams refuses. PostgreSQL also
			// refuses a use after this one, but drivers write ($1 IS NULL OR b = $1).
			delete(p.pos, prm)
		} else if isUnknown(x) {
			if x, err = p.coerce(x, types.Of(types.Text), function.Implicit, p.loc(e.Expr)); err != nil {
				return nil, err
			}
		}
		return &plan.IsNull{Arg: x, Not: e.Not}, nil
	case ast.IsTrue:
		return test(plan.TestTrue, "TRUE")
	case ast.IsFalse:
		return test(plan.TestFalse, "FALSE")
	case ast.IsUnknown:
		return test(plan.TestUnknown, "UNKNOWN")
	case ast.IsNormalized:
		form := e.Form
		if form == "" {
			form = "NFC"
		}
		f := p.constAt(strings.ToUpper(form), types.Of(types.Text), e.Pos)
		n, err := p.callNamed("is_normalized", []plan.Expr{x, f}, []ast.Pos{p.loc(e.Expr), e.Pos}, e.Pos)
		if err != nil || !e.Not {
			return n, err
		}
		return &plan.Not{Arg: n}, nil
	}
	return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "IS DOCUMENT is not supported")
}

func (p *planner) isDistinct(s *scope, e *ast.IsDistinct) (plan.Expr, error) {
	l, err := p.expr(s, e.Left)
	if err != nil {
		return nil, err
	}
	r, err := p.expr(s, e.Right)
	if err != nil {
		return nil, err
	}
	// NULL on one side is a NULL test.
	if c, ok := r.(*plan.Const); ok && c.Value == nil && isUnknown(c) && !isUnknown(l) {
		return &plan.IsNull{Arg: l, Not: !e.Not}, nil
	}
	if c, ok := l.(*plan.Const); ok && c.Value == nil && isUnknown(c) && !isUnknown(r) {
		return &plan.IsNull{Arg: r, Not: !e.Not}, nil
	}
	if isRow(l.Type()) && isRow(r.Type()) {
		le, re := p.rowElems(l), p.rowElems(r)
		if len(le) != len(re) {
			return nil, p.errAt(pgerr.SyntaxError, e.Pos, "unequal number of entries in row expressions")
		}
		var parts []plan.Expr
		for i := range le {
			d, err := p.distinct(le[i], re[i], p.loc(e.Left), p.loc(e.Right), e.Pos, e.Not)
			if err != nil {
				return nil, err
			}
			parts = append(parts, d)
		}
		if e.Not {
			return &plan.And{Args: parts}, nil
		}
		return &plan.Or{Args: parts}, nil
	}
	return p.distinct(l, r, p.loc(e.Left), p.loc(e.Right), e.Pos, e.Not)
}

func (p *planner) distinct(l, r plan.Expr, lp, rp, pos ast.Pos, not bool) (plan.Expr, error) {
	x, err := p.operator("=", l, r, lp, rp, pos)
	if err != nil {
		return nil, err
	}
	c := x.(*plan.Call)
	return &plan.Distinct{Eq: c.F, Left: c.Args[0], Right: c.Args[1], Not: not}, nil
}

func (p *planner) inExpr(s *scope, e *ast.In) (plan.Expr, error) {
	if e.Query != nil {
		sub, err := p.anySubquery(s, e.Expr, "=", e.Query, false, e.Pos)
		if err != nil {
			return nil, err
		}
		if e.Not {
			return &plan.Not{Arg: sub}, nil
		}
		return sub, nil
	}
	l, err := p.expr(s, e.Expr)
	if err != nil {
		return nil, err
	}
	items, err := p.exprs(s, e.List)
	if err != nil {
		return nil, err
	}
	op := "="
	if e.Not {
		op = "<>"
	}
	if isRow(l.Type()) {
		return p.inOps(e, l, items, e.List, op)
	}
	// As in PostgreSQL, only what reads no column makes a list of one type; the rest
	// is compared item by item.
	var fixed, read []plan.Expr
	var readList []ast.Expr
	locs := []ast.Pos{p.loc(e.Expr)}
	for i, it := range items {
		if readsColumn(it) {
			read, readList = append(read, it), append(readList, e.List[i])
			continue
		}
		fixed = append(fixed, it)
		locs = append(locs, p.loc(e.List[i]))
	}
	if len(fixed) > 1 {
		t, _, cerr := selectCommon(append([]plan.Expr{l}, fixed...))
		if cerr == nil && t.Kind != types.Record {
			list, err := p.inList(l, fixed, locs, t, e)
			if err != nil {
				return nil, err
			}
			if list != nil {
				if len(read) == 0 {
					return list, nil
				}
				rest, err := p.inOps(e, l, read, readList, op)
				if err != nil {
					return nil, err
				}
				if e.Not {
					return &plan.And{Args: []plan.Expr{list, rest}}, nil
				}
				return &plan.Or{Args: []plan.Expr{list, rest}}, nil
			}
		}
	}
	return p.inOps(e, l, items, e.List, op)
}

// readsColumn reports whether an expression refers to a column.
func readsColumn(e plan.Expr) bool {
	found := false
	plan.Walk(e, func(x plan.Expr) bool {
		if _, ok := x.(*plan.Col); ok {
			found = true
		}
		return !found
	})
	return found
}

// inList builds an InList when every item compares by the same operator in the
// same physical form; nil when they do not.
func (p *planner) inList(l plan.Expr, items []plan.Expr, locs []ast.Pos, t types.Type, e *ast.In) (plan.Expr, error) {
	conv := make([]plan.Expr, len(items))
	for i, it := range items {
		x, err := p.coerce(it, t, function.Implicit, locs[i+1])
		if err != nil {
			return nil, err
		}
		if x == nil {
			return nil, nil
		}
		conv[i] = x
	}
	if k := l.Type().Kind; t.Kind == types.Float4 && k != types.Float4 && k != types.Unknown {
		// The list is of real, the comparison of double precision: no operator takes
		// another number and a real.
		t = types.Of(types.Float8)
		for i, it := range conv {
			x, err := p.coerce(it, t, function.Implicit, locs[i+1])
			if err != nil || x == nil {
				return nil, err
			}
			conv[i] = x
		}
	}
	lc, err := p.coerce(l, t, function.Implicit, locs[0])
	if err != nil || lc == nil {
		return nil, err
	}
	if t.Kind == types.Numeric {
		lc, conv = p.alignNumeric(l, lc, conv)
	}
	out := &plan.InList{Not: e.Not}
	for i, it := range conv {
		o, c, err := p.findOperator("=", []plan.Expr{lc, it}, e.Pos)
		if err != nil {
			return nil, err
		}
		args, _, err := p.finishArgs(c, []plan.Expr{lc, it}, []ast.Pos{locs[0], locs[i+1]}, o.ExactArgs, o.RetFn, o.Ret, "=", e.Pos)
		if err != nil {
			return nil, err
		}
		if out.Eq == nil {
			out.Eq, out.Arg = o, args[0]
		}
		if o != out.Eq || !args[1].Type().SamePhysical(out.Arg.Type()) {
			return nil, nil
		}
		out.Items = append(out.Items, p.foldNow(args[1]))
	}
	return out, nil
}

// alignNumeric brings the constants of an IN list over a numeric column to the
// column's scale when that is exact, so that the column needs no cast.
func (p *planner) alignNumeric(l, cast plan.Expr, items []plan.Expr) (plan.Expr, []plan.Expr) {
	lt := l.Type()
	if lt.Kind != types.Numeric || lt.Prec == 0 {
		return cast, items
	}
	out := make([]plan.Expr, len(items))
	for i, it := range items {
		c, ok := p.foldNow(it).(*plan.Const)
		if !ok {
			return cast, items
		}
		if c.Value == nil {
			out[i] = p.constAt(nil, lt, p.pos[it])
			continue
		}
		d, ok := c.Value.(*numeric.Dec)
		if !ok || d.Form != numeric.Finite || d.MinScale() > int32(lt.Scale) {
			return cast, items
		}
		t := types.DecimalOf(38, int(lt.Scale))
		t.Prec = lt.Prec
		r := d.Round(int32(lt.Scale))
		if r.Digits() > int(lt.Prec) {
			return cast, items
		}
		out[i] = p.constAt(r, t, p.pos[it])
	}
	return l, out
}

// inOps is IN as a chain of comparisons with items, which list spells.
func (p *planner) inOps(e *ast.In, l plan.Expr, items []plan.Expr, list []ast.Expr, op string) (plan.Expr, error) {
	var parts []plan.Expr
	for i, it := range items {
		var x plan.Expr
		var err error
		if isRow(l.Type()) {
			if !isRow(it.Type()) {
				return nil, p.errAt(pgerr.UndefinedFunction, e.Pos, "operator does not exist: record %s %s", op, typeName(it.Type()))
			}
			le, re := p.rowElems(l), p.rowElems(it)
			x, err = p.rowOp(op, le, re, p.locs(e.Expr, len(le)), p.locs(list[i], len(re)), e.Pos)
		} else {
			x, err = p.operator(op, l, it, p.loc(e.Expr), p.loc(list[i]), e.Pos)
		}
		if err != nil {
			return nil, err
		}
		parts = append(parts, x)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	if e.Not {
		return &plan.And{Args: parts}, nil
	}
	return &plan.Or{Args: parts}, nil
}

func (p *planner) between(s *scope, e *ast.Between) (plan.Expr, error) {
	x, err := p.expr(s, e.Expr)
	if err != nil {
		return nil, err
	}
	lo, err := p.expr(s, e.Low)
	if err != nil {
		return nil, err
	}
	hi, err := p.expr(s, e.High)
	if err != nil {
		return nil, err
	}
	cmp := func(op string, l, r plan.Expr, rl ast.Pos) (plan.Expr, error) {
		if isRow(l.Type()) && isRow(r.Type()) {
			le, re := p.rowElems(l), p.rowElems(r)
			return p.rowOp(op, le, re, p.locs(e.Expr, len(le)), p.locs(nil, len(re)), e.Pos)
		}
		return p.operator(op, l, r, p.loc(e.Expr), rl, e.Pos)
	}
	one := func(lo, hi plan.Expr, ll, hl ast.Pos) (plan.Expr, error) {
		a, b := ">=", "<="
		if e.Not {
			a, b = "<", ">"
		}
		l, err := cmp(a, x, lo, ll)
		if err != nil {
			return nil, err
		}
		h, err := cmp(b, x, hi, hl)
		if err != nil {
			return nil, err
		}
		if e.Not {
			return &plan.Or{Args: []plan.Expr{l, h}}, nil
		}
		return &plan.And{Args: []plan.Expr{l, h}}, nil
	}
	ll, hl := p.loc(e.Low), p.loc(e.High)
	r, err := one(lo, hi, ll, hl)
	if err != nil || !e.Symmetric {
		return r, err
	}
	r2, err := one(hi, lo, hl, ll)
	if err != nil {
		return nil, err
	}
	if e.Not {
		return &plan.And{Args: []plan.Expr{r, r2}}, nil
	}
	return &plan.Or{Args: []plan.Expr{r, r2}}, nil
}

func (p *planner) like(s *scope, e *ast.Like) (plan.Expr, error) {
	x, err := p.expr(s, e.Expr)
	if err != nil {
		return nil, err
	}
	pat, err := p.expr(s, e.Pattern)
	if err != nil {
		return nil, err
	}
	args, locs := []plan.Expr{pat}, []ast.Pos{p.loc(e.Pattern)}
	if e.Escape != nil {
		esc, err := p.expr(s, e.Escape)
		if err != nil {
			return nil, err
		}
		args, locs = append(args, esc), append(locs, p.loc(e.Escape))
	}
	op := map[ast.LikeKind]string{ast.LikePlain: "~~", ast.LikeInsensitive: "~~*", ast.LikeSimilar: "~"}[e.Kind]
	switch {
	case e.Kind == ast.LikeSimilar:
		if pat, err = p.callNamed("similar_to_escape", args, locs, e.Pos); err != nil {
			return nil, err
		}
	case e.Escape != nil:
		if pat, err = p.callNamed("like_escape", args, locs, e.Pos); err != nil {
			return nil, err
		}
	}
	if e.Not {
		op = "!" + op
	}
	return p.operator(op, x, pat, p.loc(e.Expr), p.loc(e.Pattern), e.Pos)
}

func (p *planner) quantified(s *scope, e *ast.Quantified) (plan.Expr, error) {
	if e.Query != nil {
		return p.anySubquery(s, e.Expr, e.Op.Name, e.Query, e.All, e.Pos)
	}
	l, err := p.expr(s, e.Expr)
	if err != nil {
		return nil, err
	}
	a, err := p.expr(s, e.Array)
	if err != nil {
		return nil, err
	}
	return p.anyAll(l, a, e.Op.Name, e.All, p.loc(e.Expr), p.loc(e.Array), e.Pos)
}

func (p *planner) anyAll(l, a plan.Expr, op string, all bool, lpos, apos, pos ast.Pos) (plan.Expr, error) {
	var err error
	if isUnknown(a) {
		lt := l.Type()
		if lt.Kind == types.Unknown {
			lt = types.Of(types.Text)
		}
		if a, err = p.mustCoerce(a, types.ArrayOf(plainType(lt)), function.Implicit, apos); err != nil {
			return nil, err
		}
	}
	el := arrayElem(a.Type())
	if el == nil {
		return nil, p.errAt(pgerr.WrongObjectType, pos, "op ANY/ALL (array) requires array on right side")
	}
	ref := &plan.Slot{T: el.SQL().WithNotNull(false)}
	o, c, err := p.findOperator(op, []plan.Expr{l, ref}, pos)
	if err != nil {
		return nil, err
	}
	if o.Ret.Kind != types.Bool {
		return nil, p.errAt(pgerr.WrongObjectType, pos, "op ANY/ALL (array) requires operator to yield boolean")
	}
	args, _, err := p.finishArgs(c, []plan.Expr{l, ref}, []ast.Pos{lpos, apos}, o.ExactArgs, o.RetFn, o.Ret, op, pos)
	if err != nil {
		return nil, err
	}
	if want := args[1].Type(); args[1] != plan.Expr(ref) {
		if a, err = p.mustCoerce(a, types.ArrayOf(want.WithNotNull(false)), function.Implicit, apos); err != nil {
			return nil, err
		}
	}
	return &plan.AnyAll{Op: o, Left: args[0], Array: a, All: all}, nil
}

// anySubquery is left op ANY|ALL (query), IN among them.
func (p *planner) anySubquery(s *scope, left ast.Expr, op string, q *ast.Query, all bool, pos ast.Pos) (plan.Expr, error) {
	b, err := p.bindQuery(q, s, false)
	if err != nil {
		return nil, err
	}
	var le []plan.Expr
	if r, ok := left.(*ast.Row); ok {
		if le, err = p.exprs(s, r.Elems); err != nil {
			return nil, err
		}
	} else {
		l, err := p.expr(s, left)
		if err != nil {
			return nil, err
		}
		le = []plan.Expr{l}
		if isRow(l.Type()) && len(b.cols) > 1 {
			le = p.rowElems(l)
		}
	}
	if len(b.cols) < len(le) {
		return nil, p.errAt(pgerr.SyntaxError, pos, "subquery has too few columns")
	}
	if len(b.cols) > len(le) {
		return nil, p.errAt(pgerr.SyntaxError, pos, "subquery has too many columns")
	}
	re := make([]plan.Expr, len(le))
	for i, c := range b.cols {
		re[i] = c.ref()
	}
	ll := p.locs(left, len(le))
	cond, err := p.rowOp(op, le, re, ll, ll, pos)
	if err != nil {
		return nil, err
	}
	if cond.Type().Kind != types.Bool {
		return nil, p.errAt(pgerr.DatatypeMismatch, pos, "row comparison operator must yield type boolean, not type %s", typeName(cond.Type()))
	}
	return &plan.Subquery{Kind: plan.AnySub, Plan: &subplan{root: b.root, out: b.lcols()}, Left: []plan.Expr{cond}, All: all, T: boolT, Pos: int32(pos)}, nil
}

func (p *planner) subqueryExpr(s *scope, e *ast.Subquery) (plan.Expr, error) {
	b, err := p.bindQuery(e.Query, s, false)
	if err != nil {
		return nil, err
	}
	sub := &plan.Subquery{Plan: &subplan{root: b.root, out: b.lcols()}, Pos: int32(e.Pos)}
	switch e.Kind {
	case ast.SubqueryExists:
		sub.Kind, sub.T = plan.Exists, boolT.WithNotNull(true)
		return sub, nil
	case ast.SubqueryArray:
		sub.Kind = plan.ArraySub
	}
	if len(b.cols) != 1 {
		return nil, p.errAt(pgerr.SyntaxError, e.Pos, "subquery must return only one column")
	}
	sub.T = b.cols[0].t.WithNotNull(false)
	if e.Kind == ast.SubqueryArray {
		sub.T = types.ArrayOf(sub.T)
	}
	return sub, nil
}
