package planner

import (
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// candidate is one function, aggregate or window function that a call may mean.
type candidate struct {
	ov  *function.Overload
	agg *aggregate.Def
	win *aggregate.WindowDef

	args     []types.Type // one per actual argument, variadic ones expanded
	order    []int        // actual argument i goes to parameter order[i]; nil = in order
	ndefault int          // parameters at the end that take their default
	expanded bool         // a variadic parameter was expanded
}

// expand fits a signature to n actual arguments; ok is false when it cannot be.
// names are the names of the last len(names) arguments.
func expand(params []types.Type, variadic bool, defaults int, argNames []string, n int, names []string, callVariadic bool) (c candidate, ok bool) {
	np := len(params)
	if len(names) > 0 {
		if variadic || len(argNames) != np || n > np {
			return c, false
		}
		used := make([]bool, np)
		pos := n - len(names)
		for i := 0; i < pos; i++ {
			c.order = append(c.order, i)
			used[i] = true
		}
		for _, nm := range names {
			at := -1
			for j, a := range argNames {
				if a == nm {
					at = j
				}
			}
			if at < 0 || used[at] {
				return c, false
			}
			used[at] = true
			c.order = append(c.order, at)
		}
		for j := range used {
			if !used[j] && j < np-defaults {
				return c, false
			}
		}
		for _, j := range c.order {
			c.args = append(c.args, params[j])
		}
		c.ndefault = np - n
		return c, true
	}
	if variadic && np > 0 {
		last := params[np-1]
		if callVariadic {
			if n != np {
				return c, false
			}
			c.args = append(c.args, params[:np-1]...)
			if last.Kind == types.Any {
				c.args = append(c.args, last)
			} else {
				c.args = append(c.args, variadicArray(last))
			}
			return c, true
		}
		if n < np {
			if n == np-1 && last.Kind == types.Any {
				c.args = append(c.args, params[:np-1]...)
				c.expanded = true
				return c, true
			}
			return c, false
		}
		c.args = append(c.args, params[:np-1]...)
		for i := np - 1; i < n; i++ {
			c.args = append(c.args, last)
		}
		c.expanded = true
		return c, true
	}
	if callVariadic || n > np || n < np-defaults {
		return c, false
	}
	c.args = params[:n]
	c.ndefault = np - n
	return c, true
}

func variadicArray(e types.Type) types.Type {
	switch e.Kind {
	case types.AnyElement:
		return types.Of(types.AnyArray)
	case types.AnyCompatible:
		return types.Of(types.AnyCompatibleArray)
	}
	return types.ArrayOf(e)
}

// candidatesFor lists what a function name may mean for n arguments.
func candidatesFor(name string, n int, names []string, callVariadic bool) []candidate {
	var out []candidate
	add := func(c candidate, ok bool) {
		if ok {
			out = append(out, c)
		}
	}
	for _, o := range function.Lookup(name) {
		c, ok := expand(o.Args, o.Variadic, o.Defaults, o.ArgNames, n, names, callVariadic)
		c.ov = o
		if ok && c.expanded && n < len(o.Args) && name != "format" && !strings.HasPrefix(name, "json") {
			continue // concat() needs an argument; those named have forms without
		}
		add(c, ok)
	}
	if len(names) == 0 {
		for _, d := range aggregate.Lookup(name) {
			c, ok := expand(d.Args, d.Variadic, 0, nil, n, nil, callVariadic)
			c.agg = d
			add(c, ok)
		}
		for _, d := range aggregate.LookupWindow(name) {
			c, ok := expand(d.Args, false, d.Defaults, nil, n, nil, callVariadic)
			c.win = d
			add(c, ok)
		}
	}
	// A signature that fits without expanding a variadic or using a default
	// hides others with the same argument types.
	kept := out[:0:0]
	for i := range out {
		hidden := false
		for j := range out {
			if i != j && sameArgs(out[i].args, out[j].args) && better(&out[j], &out[i], j < i) {
				hidden = true
				break
			}
		}
		if !hidden {
			kept = append(kept, out[i])
		}
	}
	return kept
}

func better(a, b *candidate, earlier bool) bool {
	if a.expanded != b.expanded {
		return !a.expanded
	}
	if a.ndefault != b.ndefault {
		return a.ndefault < b.ndefault
	}
	return earlier
}

func sameArgs(a, b []types.Type) bool {
	if len(a) != len(b) {
		return false
	}
	for i := range a {
		if a[i].Kind != b[i].Kind || !sameType(a[i], b[i]) {
			return false
		}
	}
	return true
}

// choose is func_match_argtypes and func_select_candidate. It returns the
// matches left: one is the answer, none is "does not exist", more "not unique".
func choose(cands []candidate, args []types.Type) []candidate {
	// Exact match.
	for _, c := range cands {
		exact := len(c.args) == len(args)
		for i := range args {
			if !exact || args[i].Kind == types.Unknown && c.args[i].Kind != types.Unknown || isPoly(c.args[i]) || c.args[i].Kind == types.Any || !sameType(args[i], c.args[i]) {
				exact = false
				break
			}
		}
		if exact {
			return []candidate{c}
		}
	}
	var ok []candidate
	for _, c := range cands {
		if fits(c.args, args) {
			ok = append(ok, c)
		}
	}
	if len(ok) <= 1 {
		return ok
	}
	return selectCandidate(ok, args)
}

// fits reports whether every argument can be coerced implicitly, polymorphic
// ones consistently.
func fits(params, args []types.Type) bool {
	for i, t := range args {
		if !canCoerce(t, params[i], function.Implicit) {
			return false
		}
	}
	_, ok := solvePoly(params, args)
	return ok
}

func selectCandidate(cands []candidate, args []types.Type) []candidate {
	n := len(args)
	unknowns := 0
	for _, t := range args {
		if t.Kind == types.Unknown {
			unknowns++
		}
	}
	keepBest := func(score func(c *candidate) int) {
		best, kept := -1, cands[:0:0]
		for i := range cands {
			s := score(&cands[i])
			if s > best {
				best, kept = s, append(cands[:0:0], cands[i])
			} else if s == best {
				kept = append(kept, cands[i])
			}
		}
		if len(kept) > 0 {
			cands = kept
		}
	}
	// Most exact matches.
	keepBest(func(c *candidate) int {
		s := 0
		for i := 0; i < n; i++ {
			if args[i].Kind != types.Unknown && sameType(c.args[i], args[i]) && c.args[i].Kind == args[i].SQL().Kind {
				s++
			}
		}
		return s
	})
	if len(cands) == 1 {
		return cands
	}
	// Exact or preferred types.
	keepBest(func(c *candidate) int {
		s := 0
		for i := 0; i < n; i++ {
			if args[i].Kind == types.Unknown {
				continue
			}
			if sameType(c.args[i], args[i]) && !isPoly(c.args[i]) || preferred(args[i], c.args[i]) {
				s++
			}
		}
		return s
	})
	if len(cands) == 1 {
		return cands
	}
	if unknowns == 0 {
		return cands
	}
	// Unknown literals: string if any candidate takes it, else the one category
	// they agree on.
	cats := make([]byte, n)
	prefer := make([]bool, n)
	resolved := true
	for i := 0; i < n && resolved; i++ {
		if args[i].Kind != types.Unknown {
			continue
		}
		conflict := false
		for k := range cands {
			cat, pref := category(cands[k].args[i])
			switch {
			case k == 0:
				cats[i], prefer[i] = cat, pref
			case cats[i] == cat:
				prefer[i] = prefer[i] || pref
			case cat == 'S':
				cats[i], prefer[i] = cat, pref
			case cats[i] != 'S':
				conflict = true
			}
			if cats[i] == 'S' && cat == 'S' && pref {
				prefer[i] = true
			}
		}
		if conflict && cats[i] != 'S' {
			resolved = false
		}
	}
	if resolved {
		var kept []candidate
		for _, c := range cands {
			keep := true
			for i := 0; i < n && keep; i++ {
				if args[i].Kind != types.Unknown {
					continue
				}
				cat, pref := category(c.args[i])
				if cat != cats[i] || prefer[i] && !pref {
					keep = false
				}
			}
			if keep {
				kept = append(kept, c)
			}
		}
		if len(kept) > 0 {
			cands = kept
		}
		if len(cands) == 1 {
			return cands
		}
	}
	// Known arguments all of one type: assume the unknowns are of it too.
	if unknowns < n {
		var known types.Type
		for _, t := range args {
			if t.Kind == types.Unknown {
				continue
			}
			if known.Kind == types.Unknown {
				known = t
			} else if !sameType(known, t) {
				known = types.Type{}
				break
			}
		}
		if known.Kind != types.Unknown {
			var kept []candidate
			same := make([]types.Type, n)
			for i := range same {
				same[i] = known
			}
			for _, c := range cands {
				if fits(c.args, same) {
					kept = append(kept, c)
				}
			}
			if len(kept) == 1 {
				return kept
			}
		}
	}
	return cands
}

// category is TypeCategory with whether the type is its preferred one.
func category(t types.Type) (byte, bool) {
	i := t.Info()
	if isPoly(t) || t.Kind == types.Any {
		return 'P', false
	}
	return i.Category, i.Preferred
}

// preferred is IsPreferredType: to is the preferred type of from's category.
func preferred(from, to types.Type) bool {
	fc, _ := category(from)
	tc, pref := category(to)
	return pref && (fc == tc)
}

// polyTypes are the types that polymorphic parameters stand for in one call.
type polyTypes struct {
	elem       types.Type // anyelement
	compatible types.Type // anycompatible
	hasElem    bool
	hasCompat  bool
}

// solvePoly checks polymorphic parameters against the argument types and finds
// what they stand for.
func solvePoly(params, args []types.Type) (polyTypes, bool) {
	var p polyTypes
	var compat []plan.Expr
	for i, t := range args {
		if i >= len(params) {
			break
		}
		var e types.Type
		switch params[i].Kind {
		case types.AnyElement, types.AnyNonArray:
			e = t
		case types.AnyArray:
			if el := arrayElem(t); el != nil {
				e = *el
			} else if t.Kind != types.Unknown {
				return p, false
			}
		case types.AnyCompatible:
			if t.Kind != types.Unknown {
				compat = append(compat, &plan.Param{T: t})
			}
			p.hasCompat = true
			continue
		case types.AnyCompatibleArray:
			if el := arrayElem(t); el != nil {
				compat = append(compat, &plan.Param{T: *el})
			} else if t.Kind != types.Unknown {
				return p, false
			}
			p.hasCompat = true
			continue
		default:
			continue
		}
		p.hasElem = true
		if e.Kind == types.Unknown {
			continue
		}
		if p.elem.Kind == types.Unknown {
			p.elem = e
		} else if !sameType(p.elem, e) {
			return p, false
		}
	}
	if len(compat) > 0 {
		t, _, err := selectCommon(compat)
		if err != nil {
			return p, false
		}
		p.compatible = t
		for i, a := range args {
			if i < len(params) && params[i].Kind == types.AnyCompatibleArray && a.Kind != types.Unknown {
				if el := arrayElem(a); el != nil && !sameType(*el, t) && !canCoerce(a, types.ArrayOf(t), function.Implicit) {
					return p, false
				}
			}
		}
	} else if p.hasCompat {
		p.compatible = types.Of(types.Text)
	}
	return p, true
}

// concrete replaces a polymorphic type by what it stands for.
func (p *polyTypes) concrete(t types.Type) types.Type {
	switch t.Kind {
	case types.AnyElement, types.AnyNonArray:
		return p.elem
	case types.AnyArray:
		return types.ArrayOf(p.elem)
	case types.AnyCompatible:
		return p.compatible
	case types.AnyCompatibleArray:
		return types.ArrayOf(p.compatible)
	case types.Array:
		if t.Elem != nil && isPoly(*t.Elem) {
			return types.ArrayOf(p.concrete(*t.Elem))
		}
	}
	return t
}

func argTypes(args []plan.Expr) []types.Type {
	out := make([]types.Type, len(args))
	for i, a := range args {
		out[i] = a.Type()
	}
	return out
}

// typeList prints argument types for "function f(...) does not exist".
func typeList(args []types.Type, names []string) string {
	var sb strings.Builder
	for i, t := range args {
		if i > 0 {
			sb.WriteString(", ")
		}
		if j := i - (len(args) - len(names)); j >= 0 {
			sb.WriteString(names[j] + " => ")
		}
		sb.WriteString(typeName(t))
	}
	return sb.String()
}

// finishArgs casts arguments to what the candidate's signature asks for and
// returns the result type.
func (p *planner) finishArgs(c *candidate, args []plan.Expr, locs []ast.Pos,
	exact func([]types.Type) []types.Type, retFn func([]types.Type) types.Type, ret types.Type, what string, pos ast.Pos) ([]plan.Expr, types.Type, error) {
	poly, ok := solvePoly(c.args, argTypes(args))
	if !ok {
		return nil, ret, p.errAt(pgerr.DatatypeMismatch, pos, "arguments of %s are not of compatible types", what)
	}
	usesPoly := poly.hasElem || poly.hasCompat
	if poly.hasElem && poly.elem.Kind == types.Unknown {
		poly.elem = types.Of(types.Text)
		for i := range args {
			if i < len(c.args) && c.args[i].Kind == types.AnyArray {
				return nil, ret, p.errAt(pgerr.DatatypeMismatch, pos, "could not determine polymorphic type because input has type %s", "unknown")
			}
		}
	}
	// First the kinds, so that unknown literals get a type and a value.
	out := make([]plan.Expr, len(args))
	for i, a := range args {
		want := c.args[i]
		if want.Kind == types.Any {
			if isUnknown(a) && !(c.ov != nil && c.ov.Name == "pg_typeof") {
				want = types.Of(types.Text)
			} else {
				out[i] = a
				continue
			}
		}
		want = poly.concrete(want)
		if !isUnknown(a) && sameType(a.Type(), want) {
			out[i] = a
			continue
		}
		if isUnknown(a) || exact == nil {
			x, err := p.coerce(a, want, function.Implicit, locs[i])
			if err != nil {
				return nil, ret, err
			}
			if x == nil {
				return nil, ret, p.errAt(pgerr.CannotCoerce, locs[i], "cannot cast type %s to %s", typeName(a.Type()), typeName(want))
			}
			out[i] = x
			continue
		}
		out[i] = a
	}
	ts := argTypes(out)
	if exact != nil {
		want := exact(ts)
		for i := range out {
			if i >= len(want) {
				break
			}
			w := poly.concrete(want[i])
			if sameType(ts[i], w) && ts[i].SamePhysical(w) || w.Kind == types.Any || w.Kind == types.Unknown {
				continue
			}
			x, err := p.coerceExact(out[i], w, locs[i])
			if err != nil {
				return nil, ret, err
			}
			out[i] = x
		}
		ts = argTypes(out)
	}
	t := poly.concrete(ret)
	if retFn != nil {
		t = retFn(ts)
		if isPoly(t) {
			t = poly.concrete(t)
		}
	} else if usesPoly && t.Kind == types.Numeric {
		// anyelement of numeric: the form of the arguments, when they agree.
		t = commonMods(t, out)
		t.Mod = 0
	}
	return out, t, nil
}

// coerceExact casts to the precise physical form an overload asks for.
func (p *planner) coerceExact(e plan.Expr, to types.Type, pos ast.Pos) (plan.Expr, error) {
	if c, ok := e.(*plan.Const); ok && c.Value == nil {
		return p.constAt(nil, to, p.pos[e]), nil
	}
	x, err := p.castCall(e, to, false, pos)
	if err != nil {
		return nil, err
	}
	if x == nil {
		return nil, p.errAt(pgerr.CannotCoerce, pos, "cannot cast type %s to %s", typeName(e.Type()), typeName(to))
	}
	return x, nil
}

// argsNotNull reports whether no argument can be NULL.
func argsNotNull(args []plan.Expr) bool {
	for _, a := range args {
		if !a.Type().NotNull {
			return false
		}
	}
	return true
}

// neverNull are operators that give NULL only for NULL.
var neverNull = map[string]bool{
	"+": true, "-": true, "*": true, "/": true, "%": true, "=": true, "<>": true, "<": true, "<=": true,
	">": true, ">=": true, "~~": true, "!~~": true, "~~*": true, "!~~*": true, "~": true, "!~": true, "~*": true, "!~*": true, "||": true,
}

// operator resolves and builds l op r; l nil is a prefix operator.
func (p *planner) operator(op string, l, r plan.Expr, lpos, rpos, pos ast.Pos) (plan.Expr, error) {
	args, locs := []plan.Expr{r}, []ast.Pos{rpos}
	if l != nil {
		args, locs = []plan.Expr{l, r}, []ast.Pos{lpos, rpos}
	}
	o, c, err := p.findOperator(op, args, pos)
	if err != nil && jsonOps[op] {
		if as, ok := p.asJSONB(args, locs); ok {
			if o2, c2, err2 := p.findOperator(op, as, pos); err2 == nil {
				o, c, args, err = o2, c2, as, nil
			}
		}
	}
	if err != nil {
		return nil, err
	}
	out, t, err := p.finishArgs(c, args, locs, o.ExactArgs, o.RetFn, o.Ret, op, pos)
	if err != nil {
		return nil, err
	}
	if o.Volatility == function.Volatile {
		p.volatile = true
	}
	t.NotNull = neverNull[op] && o.Strict && argsNotNull(out)
	return &plan.Call{F: o, Args: out, T: t, Pos: int32(pos)}, nil
}

// jsonOps are the operators of jsonb that other types lack.
var jsonOps = map[string]bool{"->": true, "->>": true, "#>": true, "#>>": true, "@>": true, "<@": true, "?": true, "?|": true, "?&": true, "@?": true, "@@": true, "#-": true}

// asJSONB casts those arguments to jsonb that clients are shown as jsonb: rows, maps,
// multisets and arrays of them. ok is false when there are none.
func (p *planner) asJSONB(args []plan.Expr, locs []ast.Pos) (out []plan.Expr, ok bool) {
	to := types.Of(types.JSONB)
	out = slices.Clone(args)
	for i, a := range args {
		t := a.Type()
		switch t.Kind {
		case types.Row, types.Map, types.Array, types.Variant:
		default:
			continue
		}
		if t.OID() != to.OID() {
			continue
		}
		x, err := p.castCall(a, to, true, locs[i])
		if err != nil || x == nil {
			return nil, false
		}
		out[i], ok = x, true
	}
	return out, ok
}

func (p *planner) findOperator(op string, args []plan.Expr, pos ast.Pos) (*function.Overload, *candidate, error) {
	ts := argTypes(args)
	all := function.LookupOperator(op, len(args) == 1)
	if len(args) == 2 {
		// An unknown beside a known type is first taken to be of that type.
		l, r := ts[0], ts[1]
		if l.Kind == types.Unknown && r.Kind != types.Unknown {
			l = r
		} else if r.Kind == types.Unknown && l.Kind != types.Unknown {
			r = l
		}
		if l.Kind != types.Unknown {
			lk, rk := l.SQL().Kind, r.SQL().Kind
			for _, o := range all {
				if len(o.Args) != 2 || o.Args[0].Kind != lk || o.Args[1].Kind != rk {
					continue
				}
				if sameType(o.Args[0], l) && sameType(o.Args[1], r) && !isPoly(o.Args[0]) && !isPoly(o.Args[1]) {
					return o, &candidate{ov: o, args: o.Args}, nil
				}
			}
		}
	}
	match := ts
	cands := make([]candidate, 0, len(all))
	for _, o := range all {
		if len(o.Args) == len(args) {
			cands = append(cands, candidate{ov: o, args: o.Args})
		}
	}
	best := choose(cands, match)
	if len(best) == 1 {
		return best[0].ov, &best[0], nil
	}
	var name string
	if len(args) == 2 {
		name = typeName(ts[0]) + " " + op + " " + typeName(ts[1])
	} else {
		name = op + " " + typeName(ts[0])
	}
	if len(best) > 1 {
		return nil, nil, p.errAt(pgerr.AmbiguousFunction, pos, "operator is not unique: %s", name).
			WithHint("Could not choose a best candidate operator. You might need to add explicit type casts.")
	}
	e := p.errAt(pgerr.UndefinedFunction, pos, "operator does not exist: %s", name)
	if len(args) == 1 {
		return nil, nil, e.WithHint("No operator matches the given name and argument type. You might need to add an explicit type cast.")
	}
	return nil, nil, e.WithHint("No operator matches the given name and argument types. You might need to add explicit type casts.")
}

// compareOps finds an operator between two types for internal use (IN lists,
// merges, DISTINCT): no error position is needed because it exists.
func (p *planner) opFor(op string, l, r types.Type) *function.Overload {
	a := []plan.Expr{&plan.Slot{T: l}, &plan.Slot{T: r}}
	o, _, err := p.findOperator(op, a, -1)
	if err != nil {
		return nil
	}
	return o
}
