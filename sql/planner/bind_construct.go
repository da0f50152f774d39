package planner

import (
	"strconv"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

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

// mapLiteral binds MAP[k, v, ...] and MULTISET[e, ...]: keys are brought to one
// type, values to another.
func (p *planner) mapLiteral(s *scope, e *ast.MapLiteral) (plan.Expr, error) {
	es, err := p.exprs(s, e.Elems)
	if err != nil {
		return nil, err
	}
	if !e.Multiset && len(es)%2 != 0 {
		return nil, p.errAt(pgerr.SyntaxError, e.Pos, "a map needs a value for every key")
	}
	var ks, vs []plan.Expr
	var kl, vl []ast.Pos
	for i, x := range es {
		if e.Multiset || i%2 == 0 {
			ks, kl = append(ks, x), append(kl, p.loc(e.Elems[i]))
		} else {
			vs, vl = append(vs, x), append(vl, p.loc(e.Elems[i]))
		}
	}
	t := types.MapOf(types.Of(types.Text), types.Of(types.Text))
	if e.Multiset {
		*t.Elem, t.Multiset = types.Of(types.Int4), true
	}
	if len(ks) > 0 {
		if ks, *t.Key, err = p.coerceCommon("MAP", ks, kl); err != nil {
			return nil, err
		}
	}
	if len(vs) > 0 {
		if vs, *t.Elem, err = p.coerceCommon("MAP", vs, vl); err != nil {
			return nil, err
		}
	}
	return p.makeMap(t, ks, vs), nil
}

// makeMap calls the function that makes a map of type t.
func (p *planner) makeMap(t types.Type, ks, vs []plan.Expr) plan.Expr {
	var args []plan.Expr
	for i := range ks {
		args = append(args, ks[i])
		if !t.Multiset {
			args = append(args, vs[i])
		}
	}
	c := &plan.Call{F: function.MakeMap(t, len(args)), Args: args, T: t, Pos: -1}
	if p.maps == nil {
		p.maps = map[*plan.Call]bool{}
	}
	p.maps[c] = true
	return c
}

// coerceMap brings the members of a map literal to the types of a map that is
// wanted; nil when they cannot be.
func (p *planner) coerceMap(c *plan.Call, to types.Type, ctx function.CastContext, pos ast.Pos) (plan.Expr, error) {
	var ks, vs []plan.Expr
	for i, a := range c.Args {
		want := to.Key.SQL().WithNotNull(false)
		if !to.Multiset && i%2 == 1 {
			want = to.Elem.SQL().WithNotNull(false)
		}
		x, err := p.coerce(a, want, ctx, pos)
		if x == nil || err != nil {
			return nil, err
		}
		if x, err = p.oneForm(x, want); err != nil {
			return nil, err
		}
		if !to.Multiset && i%2 == 1 {
			vs = append(vs, x)
		} else {
			ks = append(ks, x)
		}
	}
	return p.makeMap(to, ks, vs), nil
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
