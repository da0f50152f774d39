package planner

import (
	"strconv"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
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

// plainType drops modifiers.
func plainType(t types.Type) types.Type {
	n := types.Of(t.Kind)
	n.Elem, n.Key, n.Fields, n.Multiset = t.Elem, t.Key, t.Fields, t.Multiset
	return n
}

// loc is PostgreSQL's exprLocation: the leftmost place of an expression.
func (p *planner) loc(e ast.Expr) ast.Pos {
	if e == nil {
		return -1
	}
	start := func(e ast.Expr) ast.Pos {
		if t, ok := e.(*ast.TypedLiteral); ok {
			return p.literalPos(t) // the cast has no place of its own
		}
		return e.Position()
	}
	pos := start(e)
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
		if q := start(next); q < pos {
			pos = q
		}
		e = next
	}
	return pos
}
