package planner

import (
	"errors"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

func isUnknown(e plan.Expr) bool { return e.Type().Kind == types.Unknown }

// sameType reports whether t and u are one type to PostgreSQL.
func sameType(t, u types.Type) bool {
	if t.Kind == types.Record && u.Kind == types.Record {
		return true
	}
	return t.SameKind(u)
}

// isPoly reports whether t is a polymorphic pseudo-type.
func isPoly(t types.Type) bool {
	switch t.Kind {
	case types.AnyElement, types.AnyArray, types.AnyNonArray, types.AnyCompatible, types.AnyCompatibleArray:
		return true
	}
	return false
}

// canCoerce is can_coerce_type for one pair.
func canCoerce(from, to types.Type, ctx function.CastContext) bool {
	if sameType(from, to) {
		return true
	}
	switch to.Kind {
	case types.Any, types.AnyElement, types.AnyCompatible:
		return true
	case types.AnyNonArray:
		return from.Kind != types.Array && from.Kind != types.Int2Vector && from.Kind != types.OIDVector
	case types.AnyArray, types.AnyCompatibleArray:
		return from.Kind == types.Unknown || arrayElem(from) != nil
	}
	if from.Kind == types.Unknown {
		return true
	}
	if from.Kind == types.Record && to.Kind == types.Row {
		return len(from.Fields) == len(to.Fields) && ctx >= function.Implicit
	}
	_, c, ok := function.Cast(from, to)
	return ok && c <= ctx
}

// arrayElem returns the element type of arrays and vectors, nil for others.
func arrayElem(t types.Type) *types.Type {
	switch t.Kind {
	case types.Array:
		return t.Elem
	case types.Int2Vector:
		e := types.Of(types.Int2)
		return &e
	case types.OIDVector:
		e := types.Of(types.OID)
		return &e
	}
	return nil
}

// sameMods reports whether a value of type from already satisfies the
// modifiers of to.
func sameMods(from, to types.Type) bool {
	if to.Kind == types.Array && to.Elem != nil && from.Elem != nil {
		return sameMods(*from.Elem, *to.Elem)
	}
	if to.Mod == 0 {
		if to.Kind == types.Numeric && to.Prec > 0 {
			return from.Prec == to.Prec && from.Scale == to.Scale
		}
		if (to.Kind == types.Timestamp || to.Kind == types.TimestampTZ) && to.IsNanos() != from.IsNanos() {
			return to.Prec == 0 || !to.IsNanos() && from.IsNanos() && to.Prec == 6 && to.Mod == 0 && false
		}
		return true
	}
	if from.Mod != to.Mod {
		return false
	}
	if to.Kind == types.Numeric {
		return from.Prec == to.Prec && from.Scale == to.Scale
	}
	return true
}

// coerce turns e into type to, as coerce_to_target_type does; a nil result
// without error means there is no such conversion in that context. pos is where
// errors of evaluating a literal point when the literal's place is not known.
func (p *planner) coerce(e plan.Expr, to types.Type, ctx function.CastContext, pos ast.Pos) (plan.Expr, error) {
	from := e.Type()
	if from.Kind == types.Unknown {
		return p.coerceUnknown(e, to, ctx, pos)
	}
	switch to.Kind {
	case types.Any, types.AnyElement, types.AnyCompatible, types.AnyNonArray, types.AnyArray, types.AnyCompatibleArray:
		return e, nil
	case types.Unknown:
		return nil, nil
	}
	if c, ok := e.(*plan.Call); ok && p.maps[c] && to.Kind == types.Map && c.T.Multiset == to.Multiset {
		return p.coerceMap(c, to, ctx, pos)
	}
	if sameType(from, to) {
		if to.Kind == types.Record || sameMods(from, to) {
			return e, nil
		}
		if c, ok := e.(*plan.Const); ok && c.Value == nil {
			return p.constAt(nil, to, p.pos[e]), nil
		}
		return p.castCall(e, to, ctx == function.Explicit, pos)
	}
	if r, ok := e.(*plan.MakeRow); ok && to.Kind == types.Row {
		return p.coerceRow(r, to, ctx, pos)
	}
	o, c, ok := function.Cast(from, to)
	if !ok || c > ctx {
		return nil, nil
	}
	if cst, isConst := e.(*plan.Const); isConst && cst.Value == nil {
		return p.constAt(nil, to, p.pos[e]), nil
	}
	_ = o
	return p.castCall(e, to, ctx == function.Explicit, pos)
}

// castCall makes the Cast node from e's type to to; both are castable.
func (p *planner) castCall(e plan.Expr, to types.Type, explicit bool, pos ast.Pos) (plan.Expr, error) {
	o, _, ok := function.Cast(e.Type(), to)
	if !ok {
		if !sameType(e.Type(), to) {
			return nil, nil
		}
		o = nil
	}
	if o != nil && o.Kernel == nil {
		o = nil
	}
	if o != nil && o.Volatility == function.Volatile {
		p.volatile = true
	}
	if !explicit {
		p.recording().cast(e, to)
	}
	t := to.WithNotNull(e.Type().NotNull && o == nil)
	if o != nil && o.Strict && e.Type().NotNull {
		t.NotNull = notNullCast(e.Type(), to)
	}
	if t.Kind == types.Numeric && t.Prec == 0 && t.Mod == 0 && e.Type().IsInteger() {
		t = intAsDecimal(e.Type()).WithNotNull(t.NotNull)
		o, _, _ = function.Cast(e.Type(), t)
		if o != nil && o.Kernel == nil {
			o = nil
		}
	}
	return &plan.Cast{F: o, Arg: e, T: t, Explicit: explicit, Pos: int32(pos)}, nil
}

// notNullCast says which casts never make NULL of a value: those between
// numbers, text and times.
func notNullCast(from, to types.Type) bool {
	return from.IsNumber() && to.IsNumber() || from.IsTextLike() && to.IsTextLike()
}

// intAsDecimal is the Decimal128 form that holds every value of an integer type.
func intAsDecimal(t types.Type) types.Type {
	switch t.Kind {
	case types.TinyInt, types.Int2:
		return types.DecimalOf(5, 0)
	case types.Int4:
		return types.DecimalOf(10, 0)
	}
	return types.DecimalOf(19, 0)
}

func (p *planner) coerceRow(r *plan.MakeRow, to types.Type, ctx function.CastContext, pos ast.Pos) (plan.Expr, error) {
	if len(r.Elems) != len(to.Fields) {
		return nil, p.errAt(pgerr.CannotCoerce, pos, "cannot cast type record to %s", typeName(to)).
			WithDetail("Input has %s columns.", map[bool]string{true: "too few", false: "too many"}[len(r.Elems) < len(to.Fields)])
	}
	out := &plan.MakeRow{T: to}
	for i, e := range r.Elems {
		c, err := p.coerce(e, to.Fields[i].Type.SQL(), ctx, pos)
		if err != nil {
			return nil, err
		}
		if c == nil {
			return nil, p.errAt(pgerr.CannotCoerce, pos, "cannot cast type record to %s", typeName(to)).
				WithDetail("Cannot cast type %s to %s in column %d.", typeName(e.Type()), typeName(to.Fields[i].Type), i+1)
		}
		out.Elems = append(out.Elems, c)
	}
	return out, nil
}

// coerceUnknown gives an untyped literal, NULL or parameter its type.
func (p *planner) coerceUnknown(e plan.Expr, to types.Type, ctx function.CastContext, pos ast.Pos) (plan.Expr, error) {
	if lp, ok := p.pos[e]; ok {
		pos = lp
	}
	switch to.Kind {
	case types.Any, types.AnyElement, types.AnyCompatible, types.AnyNonArray:
		return e, nil
	case types.Unknown:
		return e, nil
	}
	switch e := e.(type) {
	case *plan.Param:
		return p.setParam(e, to, ctx, pos)
	case *plan.Const:
		if e.Value == nil {
			p.recording().literal(pos, to)
			return p.constAt(nil, to, pos), nil
		}
		p.recording().literal(pos, to)
		return p.literal(e.Value.(string), to, ctx == function.Explicit, pos)
	}
	// An unknown column of a subquery: PostgreSQL has made it text by now.
	return p.castCall(e, to, ctx == function.Explicit, pos)
}

// constAt makes a constant and remembers where it stands.
func (p *planner) constAt(v types.Datum, t types.Type, pos ast.Pos) *plan.Const {
	c := &plan.Const{Value: v, T: t.WithNotNull(v != nil)}
	p.pos[c] = pos
	return c
}

// literal reads text as a value of type to: the type's input function.
func (p *planner) literal(s string, to types.Type, explicit bool, pos ast.Pos) (plan.Expr, error) {
	if to.IsTextLike() && to.Mod == 0 && to.Kind != types.JSON && to.Kind != types.JSONB && to.Kind != types.Name && to.Kind != types.Char {
		return p.constAt(s, to, pos), nil
	}
	if base, ok := withoutLength(to); ok {
		// Read without the length, then fitted to it: what does not fit is an error
		// of the run, without a place.
		x, err := p.literal(s, base, explicit, pos)
		if x == nil || err != nil {
			return nil, err
		}
		c, err := p.castCall(x, to, explicit, pos)
		if c == nil || err != nil {
			return c, err
		}
		if v, err := p.evalConst(c); err == nil {
			return p.constAt(v, tighten(to, v), pos), nil
		}
		return c, nil
	}
	src := &plan.Const{Value: s, T: types.Of(types.Unknown)}
	p.pos[src] = pos
	o, _, ok := function.Cast(src.T, to)
	if !ok {
		src.T = types.Of(types.Text)
		if o, _, ok = function.Cast(src.T, to); !ok {
			return nil, nil
		}
	}
	if o != nil && o.Kernel == nil {
		o = nil
	}
	if o == nil {
		return p.constAt(s, to, pos), nil
	}
	c := &plan.Cast{F: o, Arg: src, T: to, Explicit: explicit, Pos: int32(pos)}
	// Stable input functions (timestamptz, regclass) depend on settings that a
	// cached plan is keyed by, so they are read now, as PostgreSQL does for
	// literals.
	v, err := p.evalConst(c)
	if err != nil {
		if errors.Is(err, errCannotEval) {
			return c, nil
		}
		return nil, p.at(err, pos)
	}
	return p.constAt(v, tighten(to, v), pos), nil
}

// withoutLength drops the modifier of types whose input PostgreSQL reads without
// it; ok is false when there is none.
func withoutLength(t types.Type) (types.Type, bool) {
	switch t.Kind {
	case types.Array:
		if t.Elem == nil {
			return t, false
		}
		elem, ok := withoutLength(*t.Elem)
		return types.ArrayOf(elem), ok
	case types.Varchar, types.BpChar, types.Numeric, types.Time, types.TimeTZ:
	case types.Timestamp, types.TimestampTZ:
		if t.IsNanos() {
			return t, false
		}
	default:
		return t, false
	}
	return types.Of(t.Kind), t.Mod != 0
}

// setParam deduces a parameter's type.
func (p *planner) setParam(e *plan.Param, to types.Type, ctx function.CastContext, pos ast.Pos) (plan.Expr, error) {
	i := e.Index
	if p.params[i].Kind == types.Unknown {
		if to.Kind == types.Numeric && to.Mod == 0 {
			to = types.Of(types.Numeric)
		}
		t := to.WithNotNull(false)
		t.Mod = 0
		if t.Kind == types.Numeric {
			t.Prec, t.Scale = 0, 0
		}
		if t.Kind == types.Varchar || t.Kind == types.BpChar {
			t.Len = 0
		}
		base, cut := withoutLength(to)
		if cut = cut && to.Kind == types.Array; cut {
			t = base
		}
		p.params[i] = t
		e.T = t
		if to.Mod != 0 || cut {
			return p.coerce(e, to, ctx, pos)
		}
		return e, nil
	}
	if !sameType(p.params[i], to) {
		return nil, p.errAt(pgerr.AmbiguousParameter, pos, "inconsistent types deduced for parameter $%d", i+1).
			WithDetail("%s versus %s", typeName(p.params[i]), typeName(to))
	}
	e.T = p.params[i]
	return e, nil
}

// mustCoerce is coerce with the error for "no such conversion".
func (p *planner) mustCoerce(e plan.Expr, to types.Type, ctx function.CastContext, pos ast.Pos) (plan.Expr, error) {
	c, err := p.coerce(e, to, ctx, pos)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, p.errAt(pgerr.CannotCoerce, pos, "cannot cast type %s to %s", typeName(e.Type()), typeName(to))
	}
	return c, nil
}

// coerceBool is coerce_to_boolean for the construct named.
func (p *planner) coerceBool(e plan.Expr, construct string, pos ast.Pos) (plan.Expr, error) {
	if e.Type().Kind == types.Bool {
		return e, nil
	}
	c, err := p.coerce(e, types.Of(types.Bool), function.Assignment, pos)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, p.errAt(pgerr.DatatypeMismatch, pos, "argument of %s must be type boolean, not type %s", construct, typeName(e.Type()))
	}
	return c, nil
}

// coerceTo is coerce_to_specific_type: implicit, by assignment.
func (p *planner) coerceTo(e plan.Expr, to types.Type, construct string, pos ast.Pos) (plan.Expr, error) {
	c, err := p.coerce(e, to, function.Assignment, pos)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, p.errAt(pgerr.DatatypeMismatch, pos, "argument of %s must be type %s, not type %s", construct, typeName(to), typeName(e.Type()))
	}
	return c, nil
}

// commonType is select_common_type: the type that all of es are coerced to.
// construct names what asks ("UNION", "CASE"); locs are the places of es.
func (p *planner) commonType(construct string, es []plan.Expr, locs []ast.Pos) (types.Type, error) {
	t, bad, err := selectCommon(es)
	if errors.Is(err, errNoCast) {
		return t, p.errAt(pgerr.CannotCoerce, locs[bad], "%s could not convert type %s to %s", construct, typeName(es[bad].Type()), typeName(t))
	}
	if err != nil {
		return t, p.errAt(pgerr.DatatypeMismatch, locs[bad], "%s types %s and %s cannot be matched", construct, typeName(t), typeName(es[bad].Type()))
	}
	return t, nil
}

var (
	errNoCommon = errors.New("no common type")
	errNoCast   = errors.New("no cast to the common type")
)

// selectCommon chooses among the types of es; on failure it returns the type
// chosen so far and which of es does not fit.
func selectCommon(es []plan.Expr) (types.Type, int, error) {
	first := es[0].Type()
	if first.Kind != types.Unknown {
		same := true
		for _, e := range es[1:] {
			if !sameType(e.Type(), first) {
				same = false
				break
			}
		}
		if same {
			return commonMods(first, es), 0, nil
		}
	}
	cur := first
	for i, e := range es[1:] {
		t := e.Type()
		if t.Kind == types.Unknown || sameType(t, cur) {
			continue
		}
		if cur.Kind == types.Unknown {
			cur = t
			continue
		}
		ci, ti := cur.Info(), t.Info()
		if ci.Category != ti.Category {
			return cur, i + 1, errNoCommon
		}
		if ci.Preferred {
			continue
		}
		if canCoerce(cur, t, function.Implicit) && !canCoerce(t, cur, function.Implicit) {
			cur = t
		}
	}
	if cur.Kind == types.Unknown {
		return types.Of(types.Text), 0, nil
	}
	for i, e := range es {
		if !canCoerce(e.Type(), cur, function.Implicit) {
			return cur, i, errNoCast
		}
	}
	return commonMods(cur, es), 0, nil
}

// commonMods gives the common type t the modifiers that all of es share.
// Numerics whose scales differ get the form with a scale per value, since
// PostgreSQL prints each with its own.
func commonMods(t types.Type, es []plan.Expr) types.Type {
	base := types.Of(t.Kind)
	base.Elem, base.Key, base.Fields, base.Multiset = t.Elem, t.Key, t.Fields, t.Multiset
	base.Lake, base.Fixed = t.Lake, t.Fixed
	if t.Kind == types.Numeric {
		prec, scale, ok, mod := 0, -1, true, int32(-1)
		for _, e := range es {
			et := e.Type()
			switch {
			case et.IsInteger():
				et = intAsDecimal(et)
			case et.Kind != types.Numeric:
				if c, isConst := e.(*plan.Const); isConst && c.Value == nil {
					continue
				}
				ok = false
			}
			if c, isConst := e.(*plan.Const); isConst && c.Value == nil {
				continue
			}
			if et.Prec == 0 || scale >= 0 && scale != int(et.Scale) {
				ok = false
			}
			scale = int(et.Scale)
			prec = max(prec, int(et.Prec))
			if mod == -1 {
				mod = e.Type().Mod
			} else if mod != e.Type().Mod {
				mod = 0
			}
		}
		if ok && scale >= 0 {
			base.Prec, base.Scale = uint8(prec), uint8(scale)
			base.Mod = max(mod, 0)
		}
		return base
	}
	if t.Kind == types.Timestamp || t.Kind == types.TimestampTZ || t.Kind == types.Time {
		for _, e := range es {
			if et := e.Type(); et.Kind == types.Timestamp || et.Kind == types.TimestampTZ {
				base.Prec = max(base.Prec, et.Prec)
			}
		}
	}
	same := true
	for _, e := range es {
		et := e.Type()
		if c, ok := e.(*plan.Const); ok && c.Value == nil {
			continue
		}
		if et.Kind != t.Kind || et.Mod != t.Mod {
			same = false
		}
	}
	if same && t.Mod != 0 {
		base.Mod, base.Len, base.Prec = t.Mod, t.Len, t.Prec
	}
	return base
}

// coerceCommon casts es to their common type.
func (p *planner) coerceCommon(construct string, es []plan.Expr, locs []ast.Pos) ([]plan.Expr, types.Type, error) {
	t, err := p.commonType(construct, es, locs)
	if err != nil {
		return nil, t, err
	}
	out := make([]plan.Expr, len(es))
	for i, e := range es {
		c, err := p.coerce(e, t, function.Implicit, locs[i])
		if err != nil {
			return nil, t, err
		}
		if c == nil {
			return nil, t, p.errAt(pgerr.CannotCoerce, locs[i], "%s could not convert type %s to %s", construct, typeName(e.Type()), typeName(t))
		}
		out[i] = c
	}
	return out, t, nil
}
