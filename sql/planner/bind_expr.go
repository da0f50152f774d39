package planner

import (
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

var boolT = types.Of(types.Bool)

// subplan is what a plan.Subquery's Plan holds. For AnySub, Subquery.Left is
// one condition over the outer columns and out.
type subplan struct {
	root  plan.LNode
	out   []plan.LCol
	done  bool      // its own subqueries are gone
	value plan.Expr // what stands for it, once it is joined or an InitPlan
}

// in binds e as part of clause k.
func (p *planner) in(s *scope, k exprKind, e ast.Expr) (plan.Expr, error) {
	old := s.kind
	s.kind = k
	defer func() { s.kind = old }()
	return p.expr(s, e)
}

// expr binds an expression.
func (p *planner) expr(s *scope, e ast.Expr) (plan.Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	switch e := e.(type) {
	case *ast.Number:
		return p.number(e.Text, e.Pos), nil
	case *ast.String:
		switch e.Kind {
		case ast.StringBit, ast.StringHex:
			return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "bit string literals are not supported")
		}
		return p.constAt(e.Value, types.Of(types.Unknown), e.Pos), nil
	case *ast.Bool:
		return p.constAt(e.Value, boolT, e.Pos), nil
	case *ast.Null:
		return p.constAt(nil, types.Of(types.Unknown), e.Pos), nil
	case *ast.Default:
		return nil, p.errAt(pgerr.SyntaxError, e.Pos, "DEFAULT is not allowed in this context")
	case *ast.TypedLiteral:
		return p.typedLiteral(s, e)
	case *ast.Param:
		return p.param(e)
	case *ast.ColumnRef:
		if e.Star {
			return nil, p.errAt(pgerr.SyntaxError, e.Pos, "row expansion via \"*\" is not supported here")
		}
		if s.kind == inConst && s.parent == nil && len(s.items) == 0 {
			return nil, p.noColumns(s, e)
		}
		return p.bindColumnRef(s, e)
	case *ast.FieldSelect:
		if e.Star {
			return nil, p.errAt(pgerr.SyntaxError, e.Pos, "row expansion via \"*\" is not supported here")
		}
		x, err := p.expr(s, e.Expr)
		if err != nil {
			return nil, err
		}
		return p.field(x, e.Field.Name, p.loc(e))
	case *ast.Subscript:
		return p.subscript(s, e)
	case *ast.Unary:
		return p.unary(s, e)
	case *ast.Binary:
		return p.binary(s, e)
	case *ast.AndOr:
		return p.andOr(s, e)
	case *ast.Not:
		x, err := p.expr(s, e.Expr)
		if err != nil {
			return nil, err
		}
		x, err = p.coerceBool(x, "NOT", p.loc(e.Expr))
		if err != nil {
			return nil, err
		}
		return &plan.Not{Arg: x}, nil
	case *ast.Is:
		return p.is(s, e)
	case *ast.IsDistinct:
		return p.isDistinct(s, e)
	case *ast.In:
		return p.inExpr(s, e)
	case *ast.Between:
		return p.between(s, e)
	case *ast.Like:
		return p.like(s, e)
	case *ast.Quantified:
		return p.quantified(s, e)
	case *ast.Subquery:
		return p.subqueryExpr(s, e)
	case *ast.Array:
		return p.array(s, e, nil)
	case *ast.MapLiteral:
		return p.mapLiteral(s, e)
	case *ast.Row:
		return p.row(s, e)
	case *ast.Case:
		return p.caseExpr(s, e)
	case *ast.Cast:
		return p.cast(s, e)
	case *ast.Collate:
		return p.collate(s, e)
	case *ast.AtTimeZone:
		x, err := p.expr(s, e.Expr)
		if err != nil {
			return nil, err
		}
		z, err := p.expr(s, e.Zone)
		if err != nil {
			return nil, err
		}
		return p.callNamed("timezone", []plan.Expr{z, x}, []ast.Pos{p.loc(e.Zone), p.loc(e.Expr)}, e.Pos)
	case *ast.FuncCall:
		return p.funcCall(s, e)
	case *ast.NamedArg:
		return p.expr(s, e.Value)
	case *ast.Special:
		return p.special(s, e)
	case *ast.SQLValue:
		return p.sqlValue(e)
	case *ast.GroupingSet:
		return nil, p.errAt(pgerr.SyntaxError, e.Pos, "grouping sets are not allowed here")
	case *ast.XMLExpr:
		return nil, p.errAt(pgerr.FeatureNotSupported, e.Pos, "%s is not supported", e.Func)
	}
	return nil, pgerr.New(pgerr.FeatureNotSupported, "expression %T is not supported", e)
}

func (p *planner) noColumns(s *scope, e *ast.ColumnRef) error {
	if len(e.Parts) == 1 {
		return p.errAt(pgerr.UndefinedColumn, e.Pos, "column %q does not exist", e.Parts[0].Name)
	}
	return p.missingItem(s, e.Parts[:len(e.Parts)-1], e.Pos)
}

// number types a numeric literal: int4, int8 or numeric, whichever holds it.
func (p *planner) number(text string, pos ast.Pos) plan.Expr {
	if !strings.ContainsAny(text, ".eE") {
		if v, err := strconv.ParseInt(text, 10, 64); err == nil {
			if v >= -1<<31 && v < 1<<31 {
				return p.constAt(v, types.Of(types.Int4), pos)
			}
			return p.constAt(v, types.Of(types.Int8), pos)
		}
	}
	d, err := numeric.Parse(text)
	if err != nil {
		d = numeric.FromInt64(0)
	}
	return p.constAt(d, decType(types.Of(types.Numeric), d), pos)
}

func (p *planner) typedLiteral(s *scope, e *ast.TypedLiteral) (plan.Expr, error) {
	t, err := p.sqlType(e.Type)
	if err != nil {
		return nil, err
	}
	pos := p.literalPos(e)
	x, err := p.literal(e.Value, t, true, pos)
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, p.errAt(pgerr.CannotCoerce, pos, "cannot cast type unknown to %s", typeName(t))
	}
	return x, nil
}

// literalPos is where the string of type 'string' begins: that is where
// PostgreSQL points when it cannot be read.
func (p *planner) literalPos(e *ast.TypedLiteral) ast.Pos {
	if int(e.Pos) < len(p.text) && p.views == 0 {
		if i := strings.IndexByte(p.text[e.Pos:], '\''); i >= 0 {
			q := e.Pos + ast.Pos(i)
			if q > e.Pos && (p.text[q-1] == 'E' || p.text[q-1] == 'e') && (q-1 == e.Pos || p.text[q-2] == ' ') {
				q--
			}
			return q
		}
	}
	return e.Pos
}

func (p *planner) param(e *ast.Param) (plan.Expr, error) {
	if e.N < 1 || p.o.FixedParams && e.N > len(p.o.ParamTypes) || e.N > 65535 {
		return nil, p.errAt(pgerr.UndefinedParameter, e.Pos, "there is no parameter $%d", e.N)
	}
	for len(p.params) < e.N {
		p.params = append(p.params, types.Type{})
	}
	i := e.N - 1
	n := &plan.Param{Index: i, T: p.params[i]}
	if n.T.Kind == types.Unknown {
		p.paramNodes[i] = append(p.paramNodes[i], n)
	}
	p.pos[n] = e.Pos
	return n, nil
}

func (p *planner) subscript(s *scope, e *ast.Subscript) (plan.Expr, error) {
	var chain []*ast.Subscript
	base := ast.Expr(e)
	for {
		sub, ok := base.(*ast.Subscript)
		if !ok {
			break
		}
		chain = append(chain, sub)
		base = sub.Expr
	}
	x, err := p.expr(s, base)
	if err != nil {
		return nil, err
	}
	flat := false
	for i := len(chain) - 1; i >= 0; i-- {
		sub := chain[i]
		if flat { // more subscripts than dimensions
			x = p.constAt(nil, x.Type(), sub.Pos)
			continue
		}
		wasArray := x.Type().Kind == types.Array
		if x, err = p.subscriptOne(s, x, sub, p.loc(base)); err != nil {
			return nil, err
		}
		flat = wasArray && !sub.Slice && x.Type().Kind != types.Array && x.Type().Kind != types.Map && x.Type().Kind != types.JSONB
	}
	return x, nil
}

func (p *planner) subscriptOne(s *scope, x plan.Expr, e *ast.Subscript, pos ast.Pos) (plan.Expr, error) {
	t := x.Type()
	sub := func(a ast.Expr) (plan.Expr, error) {
		if a == nil {
			return nil, nil
		}
		i, err := p.expr(s, a)
		if err != nil {
			return nil, err
		}
		c, err := p.coerce(i, types.Of(types.Int4), function.Assignment, p.loc(a))
		if err == nil && c == nil {
			err = p.errAt(pgerr.DatatypeMismatch, p.loc(a), "array subscript must have type integer")
		}
		return c, err
	}
	switch {
	case arrayElem(t) != nil:
		if e.Slice {
			lo, err := sub(e.Low)
			if err != nil {
				return nil, err
			}
			hi, err := sub(e.High)
			if err != nil {
				return nil, err
			}
			rt := t
			if t.Kind != types.Array {
				rt = types.ArrayOf(*arrayElem(t))
			}
			return &plan.Subscript{Arg: x, Slice: true, Low: lo, High: hi, T: rt.WithNotNull(false)}, nil
		}
		i, err := sub(e.Index)
		if err != nil {
			return nil, err
		}
		return &plan.Subscript{Arg: x, Index: i, T: arrayElem(t).SQL().WithNotNull(false)}, nil
	case t.Kind == types.Map && !e.Slice:
		k, err := p.expr(s, e.Index)
		if err != nil {
			return nil, err
		}
		k, err = p.mustCoerce(k, t.Key.SQL().WithNotNull(false), function.Implicit, p.loc(e.Index))
		if err != nil {
			return nil, err
		}
		return &plan.Subscript{Arg: x, Index: k, T: t.Elem.SQL().WithNotNull(false)}, nil
	case t.Kind == types.JSONB && !e.Slice:
		k, err := p.expr(s, e.Index)
		if err != nil {
			return nil, err
		}
		want := types.Of(types.Text)
		if k.Type().IsInteger() {
			want = types.Of(types.Int4)
		}
		if k, err = p.mustCoerce(k, want, function.Assignment, p.loc(e.Index)); err != nil {
			return nil, err
		}
		return p.operator("->", x, k, pos, p.loc(e.Index), e.Pos)
	case t.Kind == types.JSONB:
		return nil, p.errAt(pgerr.DatatypeMismatch, pos, "jsonb subscript does not support slices")
	}
	return nil, p.errAt(pgerr.DatatypeMismatch, pos, "cannot subscript type %s because it does not support subscripting", typeName(t))
}

func (p *planner) unary(s *scope, e *ast.Unary) (plan.Expr, error) {
	if n, ok := e.Expr.(*ast.Number); ok && e.Op.Name == "-" {
		return p.number("-"+n.Text, e.Pos), nil
	}
	x, err := p.expr(s, e.Expr)
	if err != nil {
		return nil, err
	}
	return p.operator(e.Op.Name, nil, x, 0, p.loc(e.Expr), e.Pos)
}

var comparison = map[string]bool{"=": true, "<>": true, "<": true, "<=": true, ">": true, ">=": true}

func (p *planner) binary(s *scope, e *ast.Binary) (plan.Expr, error) {
	// Chains lean to the left: walk down without recursion.
	var chain []*ast.Binary
	left := ast.Expr(e)
	for {
		b, ok := left.(*ast.Binary)
		if !ok {
			break
		}
		chain = append(chain, b)
		left = b.Left
	}
	b := chain[len(chain)-1]
	if comparison[b.Op.Name] {
		if l, ok := left.(*ast.Row); ok {
			x, err := p.rowBinary(s, b, l)
			if err != nil {
				return nil, err
			}
			return p.climb(s, chain[:len(chain)-1], x)
		}
	}
	x, err := p.expr(s, left)
	if err != nil {
		return nil, err
	}
	return p.climb(s, chain, x)
}

func (p *planner) climb(s *scope, chain []*ast.Binary, x plan.Expr) (plan.Expr, error) {
	for i := len(chain) - 1; i >= 0; i-- {
		b := chain[i]
		if len(b.Op.Schema) > 0 && b.Op.Schema.Last() != "pg_catalog" {
			return nil, p.errAt(pgerr.UndefinedFunction, b.Pos, "operator does not exist: %s.%s", b.Op.Schema, b.Op.Name)
		}
		r, err := p.expr(s, b.Right)
		if err != nil {
			return nil, err
		}
		if comparison[b.Op.Name] && isRow(x.Type()) && isRow(r.Type()) {
			x, err = p.rowOp(b.Op.Name, p.rowElems(x), p.rowElems(r), p.locs(b.Left, len(p.rowElems(x))), p.locs(b.Right, len(p.rowElems(r))), b.Pos)
		} else {
			x, err = p.operator(b.Op.Name, x, r, p.loc(b.Left), p.loc(b.Right), b.Pos)
		}
		if err != nil {
			return nil, err
		}
	}
	return x, nil
}

func (p *planner) locs(e ast.Expr, n int) []ast.Pos {
	out := make([]ast.Pos, n)
	row, ok := e.(*ast.Row)
	for i := range out {
		out[i] = p.loc(e)
		if ok && i < len(row.Elems) {
			out[i] = p.loc(row.Elems[i])
		}
	}
	return out
}

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

func (p *planner) exprs(s *scope, es []ast.Expr) ([]plan.Expr, error) {
	out := make([]plan.Expr, len(es))
	for i, e := range es {
		x, err := p.expr(s, e)
		if err != nil {
			return nil, err
		}
		out[i] = x
	}
	return out, nil
}

func (p *planner) andOr(s *scope, e *ast.AndOr) (plan.Expr, error) {
	name := "AND"
	if e.Or {
		name = "OR"
	}
	var args []plan.Expr
	for _, a := range e.Args {
		x, err := p.expr(s, a)
		if err != nil {
			return nil, err
		}
		if x, err = p.coerceBool(x, name, p.loc(a)); err != nil {
			return nil, err
		}
		if in, ok := x.(*plan.And); ok && !e.Or {
			args = append(args, in.Args...)
			continue
		}
		if in, ok := x.(*plan.Or); ok && e.Or {
			args = append(args, in.Args...)
			continue
		}
		args = append(args, x)
	}
	if e.Or {
		return &plan.Or{Args: args}, nil
	}
	return &plan.And{Args: args}, nil
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
		if isUnknown(x) {
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
		return p.inOps(e, l, items, op)
	}
	if len(items) > 1 {
		locs := []ast.Pos{p.loc(e.Expr)}
		for _, it := range e.List {
			locs = append(locs, p.loc(it))
		}
		all := append([]plan.Expr{l}, items...)
		t, _, cerr := selectCommon(all)
		if cerr == nil && t.Kind != types.Record {
			x, err := p.inList(l, items, locs, t, e)
			if x != nil || err != nil {
				return x, err
			}
		}
	}
	return p.inOps(e, l, items, op)
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

// foldNow evaluates an expression of constants; what fails stays.
func (p *planner) foldNow(e plan.Expr) plan.Expr {
	if _, ok := e.(*plan.Const); ok || !p.foldable(e) {
		return e
	}
	v, err := p.evalConst(e)
	if err != nil {
		return e
	}
	return p.constAt(v, tighten(e.Type(), v), p.pos[e])
}

// inOps is IN as a chain of comparisons.
func (p *planner) inOps(e *ast.In, l plan.Expr, items []plan.Expr, op string) (plan.Expr, error) {
	var parts []plan.Expr
	for i, it := range items {
		var x plan.Expr
		var err error
		if isRow(l.Type()) {
			if !isRow(it.Type()) {
				return nil, p.errAt(pgerr.UndefinedFunction, e.Pos, "operator does not exist: record %s %s", op, typeName(it.Type()))
			}
			le, re := p.rowElems(l), p.rowElems(it)
			x, err = p.rowOp(op, le, re, p.locs(e.Expr, len(le)), p.locs(e.List[i], len(re)), e.Pos)
		} else {
			x, err = p.operator(op, l, it, p.loc(e.Expr), p.loc(e.List[i]), e.Pos)
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

// plainType drops modifiers.
func plainType(t types.Type) types.Type {
	n := types.Of(t.Kind)
	n.Elem, n.Key, n.Fields, n.Multiset = t.Elem, t.Key, t.Fields, t.Multiset
	return n
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

// array binds ARRAY[...]; want, when not nil, is the type of a cast around it.
func (p *planner) array(s *scope, e *ast.Array, want *types.Type) (plan.Expr, error) {
	if err := p.enter(); err != nil {
		return nil, err
	}
	defer p.leave()
	var elemWant *types.Type
	if want != nil {
		elemWant = want.Elem
	}
	var es []plan.Expr
	var locs []ast.Pos
	nested := false
	for _, x := range e.Elems {
		var b plan.Expr
		var err error
		if in, ok := x.(*ast.Array); ok {
			w := elemWant
			if w != nil && w.Kind != types.Array {
				w = want // int[] is also the type of each row of int[][]
			}
			b, err = p.array(s, in, w)
			nested = true
		} else {
			b, err = p.expr(s, x)
		}
		if err != nil {
			return nil, err
		}
		es, locs = append(es, b), append(locs, p.loc(x))
	}
	if len(es) == 0 {
		if want == nil {
			return nil, p.errAt(pgerr.IndeterminateDatatype, e.Pos, "cannot determine type of empty array").
				WithHint("Explicitly cast to the desired type, for example ARRAY[]::integer[].")
		}
		return &plan.MakeArray{T: want.WithNotNull(true)}, nil
	}
	if elemWant != nil && !nested {
		for i, x := range es {
			c, err := p.mustCoerce(x, *elemWant, function.Explicit, locs[i])
			if err != nil {
				return nil, err
			}
			es[i] = c
		}
		return &plan.MakeArray{Elems: es, T: want.WithNotNull(true)}, nil
	}
	out, t, err := p.coerceCommon("ARRAY", es, locs)
	if err != nil {
		return nil, err
	}
	return &plan.MakeArray{Elems: out, T: types.ArrayOf(t.WithNotNull(false)).WithNotNull(true)}, nil
}

func (p *planner) mapLiteral(s *scope, e *ast.MapLiteral) (plan.Expr, error) {
	es, err := p.exprs(s, e.Elems)
	if err != nil {
		return nil, err
	}
	var locs []ast.Pos
	for _, x := range e.Elems {
		locs = append(locs, p.loc(x))
	}
	name := "map"
	if e.Multiset {
		name = "multiset"
	}
	if !e.Multiset && len(es) > 0 && len(es)%2 == 0 {
		var ks, vs []plan.Expr
		var kl, vl []ast.Pos
		for i := 0; i < len(es); i += 2 {
			ks, vs = append(ks, es[i]), append(vs, es[i+1])
			kl, vl = append(kl, locs[i]), append(vl, locs[i+1])
		}
		if ks, _, err = p.coerceCommon("MAP", ks, kl); err != nil {
			return nil, err
		}
		if vs, _, err = p.coerceCommon("MAP", vs, vl); err != nil {
			return nil, err
		}
		for i := range ks {
			es[2*i], es[2*i+1] = ks[i], vs[i]
		}
	} else if e.Multiset && len(es) > 0 {
		if es, _, err = p.coerceCommon("MULTISET", es, locs); err != nil {
			return nil, err
		}
	}
	return p.callNamed(name, es, locs, e.Pos)
}

func (p *planner) row(s *scope, e *ast.Row) (plan.Expr, error) {
	r := &plan.MakeRow{T: types.Type{Kind: types.Record, NotNull: true}}
	for _, x := range e.Elems {
		var es []plan.Expr
		if items, ok, err := p.starItems(s, x); err != nil {
			return nil, err
		} else if ok {
			for _, it := range items {
				es = append(es, it.e)
			}
		} else {
			b, err := p.expr(s, x)
			if err != nil {
				return nil, err
			}
			es = []plan.Expr{b}
		}
		for _, b := range es {
			r.Elems = append(r.Elems, b)
			r.T.Fields = append(r.T.Fields, types.Field{ID: -1, Name: "f" + strconv.Itoa(len(r.Elems)), Type: b.Type()})
		}
	}
	return r, nil
}

// resolveRow gives unknown members of a row type text, once nothing else will.
func (p *planner) resolveUnknown(e plan.Expr, pos ast.Pos) (plan.Expr, error) {
	switch x := e.(type) {
	case *plan.MakeRow:
		out := plan.Clone(x).(*plan.MakeRow)
		out.T.Fields = append([]types.Field(nil), x.T.Fields...)
		for i, m := range out.Elems {
			m, err := p.resolveUnknown(m, pos)
			if err != nil {
				return nil, err
			}
			out.Elems[i] = m
			if out.T.Kind == types.Record {
				out.T.Fields[i].Type = m.Type()
			}
		}
		return out, nil
	}
	if isUnknown(e) {
		return p.coerce(e, types.Of(types.Text), function.Implicit, pos)
	}
	return e, nil
}

func (p *planner) caseExpr(s *scope, e *ast.Case) (plan.Expr, error) {
	before := p.countSets(s)
	var operand plan.Expr
	var err error
	if e.Operand != nil {
		if operand, err = p.expr(s, e.Operand); err != nil {
			return nil, err
		}
		if isUnknown(operand) {
			if operand, err = p.coerce(operand, types.Of(types.Text), function.Implicit, p.loc(e.Operand)); err != nil {
				return nil, err
			}
		}
	}
	c := &plan.Case{}
	var results []plan.Expr
	var locs []ast.Pos
	for _, w := range e.Whens {
		cond, err := p.expr(s, w.Cond)
		if err != nil {
			return nil, err
		}
		if operand != nil {
			if cond, err = p.operator("=", operand, cond, p.loc(e.Operand), p.loc(w.Cond), p.loc(w.Cond)); err != nil {
				return nil, err
			}
		}
		if cond, err = p.coerceBool(cond, "CASE/WHEN", p.loc(w.Cond)); err != nil {
			return nil, err
		}
		r, err := p.expr(s, w.Result)
		if err != nil {
			return nil, err
		}
		c.Whens = append(c.Whens, plan.When{Cond: cond})
		results = append(results, r)
		locs = append(locs, p.loc(w.Result))
	}
	// PostgreSQL resolves with the ELSE branch first.
	els := plan.Expr(p.constAt(nil, types.Of(types.Unknown), e.Pos))
	elsePos := e.Pos
	if e.Else != nil {
		if els, err = p.expr(s, e.Else); err != nil {
			return nil, err
		}
		elsePos = p.loc(e.Else)
	}
	if err := p.noSets(s, before, "CASE"); err != nil {
		return nil, err
	}
	all, t, err := p.coerceCommon("CASE", append([]plan.Expr{els}, results...), append([]ast.Pos{elsePos}, locs...))
	if err != nil {
		return nil, err
	}
	notNull := true
	for i := range c.Whens {
		c.Whens[i].Result = all[i+1]
		notNull = notNull && all[i+1].Type().NotNull
	}
	if e.Else != nil {
		c.Else = all[0]
		notNull = notNull && all[0].Type().NotNull
	} else {
		notNull = false
	}
	c.T = t.WithNotNull(notNull)
	return c, nil
}

func (p *planner) cast(s *scope, e *ast.Cast) (plan.Expr, error) {
	t, err := p.sqlType(e.Type)
	if err != nil {
		return nil, err
	}
	var x plan.Expr
	if b, ok := e.Expr.(*ast.String); ok && t.IsInteger() && (b.Kind == ast.StringBit || b.Kind == ast.StringHex) {
		base := 2
		if b.Kind == ast.StringHex {
			base = 16
		}
		v, err := strconv.ParseUint(b.Value, base, 64)
		if err != nil {
			return nil, p.errAt(pgerr.InvalidTextRepresentation, b.Pos, "%q is not a valid binary digit", b.Value)
		}
		lo, hi := intRange(t.Kind)
		if n := len(b.Value) * map[int]int{2: 1, 16: 4}[base]; t.Kind == types.Int4 && n == 32 {
			v = uint64(int64(int32(uint32(v))))
		}
		if i := int64(v); i < lo || i > hi {
			return nil, pgerr.New(pgerr.NumericValueOutOfRange, "%s out of range", typeName(t))
		}
		return p.constAt(int64(v), t, b.Pos), nil
	}
	if a, ok := e.Expr.(*ast.Array); ok && t.Kind == types.Array {
		if x, err = p.array(s, a, &t); err != nil {
			return nil, err
		}
	} else if x, err = p.expr(s, e.Expr); err != nil {
		return nil, err
	}
	pos := p.loc(e)
	if e.Style == ast.CastTry {
		return p.tryCast(x, t, pos)
	}
	c, err := p.coerce(x, t, function.Explicit, pos)
	if err != nil {
		return nil, err
	}
	if c == nil {
		at := e.Pos
		if e.Style == ast.CastCall {
			at = e.Pos
		}
		return nil, p.errAt(pgerr.CannotCoerce, at, "cannot cast type %s to %s", typeName(x.Type()), typeName(t))
	}
	if lit, ok := c.(*plan.Const); ok {
		p.pos[lit] = pos
	}
	return c, nil
}

// tryCast is TRY_CAST: NULL where the cast fails. A literal is tried now; other
// values need the function try_cast of the registry, which is not there.
func (p *planner) tryCast(x plan.Expr, t types.Type, pos ast.Pos) (plan.Expr, error) {
	if p.foldable(x) {
		c, err := p.coerce(x, t, function.Explicit, pos)
		if err == nil && c != nil {
			v, err := p.evalConst(c)
			if err == nil {
				return p.constAt(v, t, pos), nil
			}
		}
		if c != nil || err != nil {
			return p.constAt(nil, t, pos), nil
		}
	}
	return nil, p.errAt(pgerr.FeatureNotSupported, pos, "TRY_CAST of a column is not supported")
}

func (p *planner) collate(s *scope, e *ast.Collate) (plan.Expr, error) {
	x, err := p.expr(s, e.Expr)
	if err != nil {
		return nil, err
	}
	switch e.Collation.Last() {
	case "C", "default", "POSIX", "ucs_basic", "en_US.utf8", "C.UTF-8", "C.utf8":
	default:
		return nil, p.errAt(pgerr.UndefinedObject, e.Pos, "collation %q for encoding \"UTF8\" does not exist", e.Collation.String())
	}
	t := x.Type()
	if isUnknown(x) {
		return p.coerce(x, types.Of(types.Text), function.Implicit, p.loc(e.Expr))
	}
	if !t.IsTextLike() && !(t.Kind == types.Array && t.Elem != nil && t.Elem.IsTextLike()) || t.Kind == types.JSON || t.Kind == types.JSONB {
		return nil, p.errAt(pgerr.DatatypeMismatch, e.Pos, "collations are not supported by type %s", typeName(t))
	}
	return x, nil
}

func (p *planner) special(s *scope, e *ast.Special) (plan.Expr, error) {
	if e.Kind == ast.Grouping {
		return p.grouping(s, e)
	}
	before := p.countSets(s)
	es, err := p.exprs(s, e.Args)
	if err != nil {
		return nil, err
	}
	var locs []ast.Pos
	for _, a := range e.Args {
		locs = append(locs, p.loc(a))
	}
	switch e.Kind {
	case ast.Coalesce:
		if err := p.noSets(s, before, "COALESCE"); err != nil {
			return nil, err
		}
		out, t, err := p.coerceCommon("COALESCE", es, locs)
		if err != nil {
			return nil, err
		}
		nn := false
		for _, x := range out {
			nn = nn || x.Type().NotNull
		}
		return &plan.Coalesce{Args: out, T: t.WithNotNull(nn)}, nil
	case ast.NullIf:
		x, err := p.operator("=", es[0], es[1], locs[0], locs[1], e.Pos)
		if err != nil {
			return nil, err
		}
		c := x.(*plan.Call)
		if c.F.Ret.Kind != types.Bool {
			return nil, p.errAt(pgerr.DatatypeMismatch, e.Pos, "NULLIF requires = operator to yield boolean")
		}
		n := &plan.NullIf{Eq: c.F, A: c.Args[0], CmpA: c.Args[0], B: c.Args[1]}
		if sameType(es[0].Type(), c.Args[0].Type()) {
			n.A = es[0]
		}
		if n.A.Type().NotNull {
			n.A = &plan.Cast{Arg: n.A, T: n.A.Type().WithNotNull(false), Pos: -1}
		}
		return n, nil
	}
	name := "GREATEST"
	if e.Kind == ast.Least {
		name = "LEAST"
	}
	out, t, err := p.coerceCommon(name, es, locs)
	if err != nil {
		return nil, err
	}
	less := p.opFor("<", t, t)
	if less == nil {
		return nil, p.errAt(pgerr.UndefinedFunction, e.Pos, "could not identify a comparison function for type %s", typeName(t))
	}
	nn := false
	for _, x := range out {
		nn = nn || x.Type().NotNull
	}
	return &plan.MinMax{Less: less, Args: out, Greatest: e.Kind == ast.Greatest, T: t.WithNotNull(nn)}, nil
}

func (p *planner) sqlValue(e *ast.SQLValue) (plan.Expr, error) {
	at := func(t types.Type) (plan.Expr, error) {
		now, err := p.callNamed("now", nil, nil, e.Pos)
		if err != nil {
			return nil, err
		}
		if e.Precision >= 0 {
			n := min(e.Precision, 6)
			t.Prec, t.Mod = uint8(n), int32(n)+1
		}
		return p.mustCoerce(now, t, function.Explicit, e.Pos)
	}
	name := e.Kind.String()
	switch e.Kind {
	case ast.CurrentDate:
		return at(types.Of(types.Date))
	case ast.CurrentTime:
		return at(types.Of(types.TimeTZ))
	case ast.CurrentTimestamp:
		return at(types.Of(types.TimestampTZ))
	case ast.LocalTime:
		return at(types.Of(types.Time))
	case ast.LocalTimestamp:
		return at(types.Of(types.Timestamp))
	case ast.CurrentCatalog:
		name = "current_database"
	case ast.User, ast.CurrentRole:
		name = "current_user"
	}
	return p.callNamed(name, nil, nil, e.Pos)
}

// loc is PostgreSQL's exprLocation: the leftmost place of an expression.
func (p *planner) loc(e ast.Expr) ast.Pos {
	if e == nil {
		return -1
	}
	pos := e.Position()
	for depth := 0; e != nil && depth < p.maxDepth; depth++ {
		var next ast.Expr
		switch x := e.(type) {
		case *ast.Binary:
			next = x.Left
		case *ast.AndOr:
			next = x.Args[0]
		case *ast.Is:
			next = x.Expr
		case *ast.IsDistinct:
			next = x.Left
		case *ast.In:
			next = x.Expr
		case *ast.Between:
			next = x.Expr
		case *ast.Like:
			next = x.Expr
		case *ast.Quantified:
			next = x.Expr
		case *ast.Cast:
			if x.Style == ast.CastColons {
				next = x.Expr
			}
		case *ast.Collate:
			next = x.Expr
		case *ast.AtTimeZone:
			next = x.Expr
		case *ast.Subscript:
			next = x.Expr
		case *ast.FieldSelect:
			next = x.Expr
		}
		if next == nil {
			break
		}
		if q := next.Position(); q < pos {
			pos = q
		}
		e = next
	}
	return pos
}
