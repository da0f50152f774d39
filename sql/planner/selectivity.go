package planner

import (
	"math"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// bounds reads a condition as a range of one column.
func (p *planner) bounds(c plan.Expr) (id plan.ColID, lo, hi float64, ok bool) {
	col, op, k := p.colOpConst(c)
	if col == nil {
		return 0, 0, 0, false
	}
	v, isNum := num(k.Value)
	if !isNum {
		return 0, 0, 0, false
	}
	lo, hi = math.Inf(-1), math.Inf(1)
	switch op {
	case "=":
		lo, hi = v, v
	case "<", "<=":
		hi = v
	case ">", ">=":
		lo = v
	default:
		return 0, 0, 0, false
	}
	return col.ID, lo, hi, true
}

// colOpConst recognises column op constant, either way round, through label
// casts of the column.
func (p *planner) colOpConst(c plan.Expr) (*plan.Col, string, *plan.Const) {
	call, ok := c.(*plan.Call)
	if !ok || call.F == nil || len(call.Args) != 2 {
		return nil, "", nil
	}
	op := call.F.Name
	l, r := call.Args[0], call.Args[1]
	if k, ok := l.(*plan.Const); ok {
		if col, ok := bareCol(r); ok && commutators[op] != "" {
			return col, commutators[op], k
		}
	}
	if k, ok := r.(*plan.Const); ok {
		if col, ok := bareCol(l); ok {
			return col, op, k
		}
	}
	return nil, "", nil
}

func bareCol(e plan.Expr) (*plan.Col, bool) {
	for {
		switch x := e.(type) {
		case *plan.Col:
			return x, true
		case *plan.Cast:
			e = x.Arg
		default:
			return nil, false
		}
	}
}

// selectivity is the share of rows that pass all conds.
func (p *planner) selectivity(conds []plan.Expr, in *est) float64 {
	s := 1.0
	type window struct{ lo, hi float64 }
	ranges := map[plan.ColID]*window{}
	unknown := map[plan.ColID]int{} // bit 0 lower, bit 1 upper, by parameters
	for _, c := range conds {
		if p.derived[c] {
			continue
		}
		if id, lo, hi, ok := p.bounds(c); ok && lo != hi {
			if st := in.cols[id]; st != nil && st.ranged && st.hi > st.lo {
				w := ranges[id]
				if w == nil {
					w = &window{st.lo, st.hi}
					ranges[id] = w
				}
				w.lo, w.hi = math.Max(w.lo, lo), math.Min(w.hi, hi)
				continue
			}
		}
		if id, side := paramBound(c); side != 0 {
			unknown[id] |= side
			continue
		}
		s *= p.sel(c, in)
	}
	for id, w := range ranges {
		st := in.cols[id]
		f := (w.hi - w.lo) / (st.hi - st.lo)
		if !(f > 0) {
			f = 1 / math.Max(in.rows, 1)
		}
		s *= math.Min(1, f) * (1 - st.nullFrac)
	}
	for _, sides := range unknown {
		if sides == 3 {
			s *= rangeSel
		} else {
			s *= ineqSel
		}
	}
	return math.Max(s, 1e-12)
}

// paramBound recognises a range bound that is not known yet.
func paramBound(c plan.Expr) (plan.ColID, int) {
	call, ok := c.(*plan.Call)
	if !ok || call.F == nil || len(call.Args) != 2 || commutators[call.F.Name] == "" {
		return 0, 0
	}
	op := call.F.Name
	col, ok := bareCol(call.Args[0])
	other := call.Args[1]
	if !ok {
		if col, ok = bareCol(call.Args[1]); !ok {
			return 0, 0
		}
		other, op = call.Args[0], commutators[op]
	}
	if len(usedCols(other)) > 0 {
		return 0, 0
	}
	if _, isConst := other.(*plan.Const); isConst {
		return 0, 0
	}
	switch op {
	case ">", ">=":
		return col.ID, 1
	case "<", "<=":
		return col.ID, 2
	}
	return 0, 0
}

func (p *planner) sel(c plan.Expr, in *est) float64 {
	switch x := c.(type) {
	case *plan.Const:
		if x.Value == true {
			return 1
		}
		return 1 / math.Max(in.rows, 1)
	case *plan.And:
		return p.selectivity(x.Args, in)
	case *plan.Or:
		s := 0.0
		for _, a := range x.Args {
			q := p.sel(a, in)
			s += q - s*q
		}
		return math.Min(s, 1)
	case *plan.Not:
		return math.Max(0, 1-p.sel(x.Arg, in))
	case *plan.Col:
		return 0.5
	case *plan.IsNull:
		f := 0.005
		if st := p.exprStat(x.Arg, in); st != nil {
			f = st.nullFrac
		}
		if x.Arg.Type().NotNull {
			f = 0
		}
		if x.Not {
			return 1 - f
		}
		return math.Max(f, 1/math.Max(in.rows, 1))
	case *plan.IsBool:
		s := p.sel(x.Arg, in)
		if x.Test == plan.TestFalse {
			s = 1 - s
		}
		if x.Test == plan.TestUnknown {
			s = 0.005
		}
		if x.Not {
			s = 1 - s
		}
		return s
	case *plan.InList:
		s := math.Min(1, float64(len(x.Items))*p.eqSelOf(x.Arg, in))
		if x.Not {
			return 1 - s
		}
		return s
	case *plan.AnyAll:
		n := 10.0
		if a, ok := x.Array.(*plan.Const); ok {
			if l, ok := a.Value.([]types.Datum); ok {
				n = float64(len(l))
			}
		}
		if x.All {
			return math.Max(0, 1-math.Min(1, n*p.eqSelOf(x.Left, in)))
		}
		return math.Min(1, n*p.eqSelOf(x.Left, in))
	case *plan.Distinct:
		s := p.eqSelOf(x.Left, in)
		if x.Not {
			return s
		}
		return 1 - s
	case *plan.Call:
		return p.selCall(x, in)
	}
	return ineqSel
}

func (p *planner) eqSelOf(e plan.Expr, in *est) float64 {
	if st := p.exprStat(e, in); st != nil && st.distinct > 0 {
		return (1 - st.nullFrac) / st.distinct
	}
	return eqSel
}

func (p *planner) selCall(x *plan.Call, in *est) float64 {
	if x.F == nil || len(x.Args) != 2 {
		return ineqSel
	}
	switch x.F.Name {
	case "=", "<>":
		s := math.Min(p.eqSelOf(x.Args[0], in), p.eqSelOf(x.Args[1], in))
		_, lc := x.Args[0].(*plan.Const)
		_, rc := x.Args[1].(*plan.Const)
		switch {
		case rc || isParamExpr(x.Args[1]):
			s = p.eqSelOf(x.Args[0], in)
		case lc || isParamExpr(x.Args[0]):
			s = p.eqSelOf(x.Args[1], in)
		}
		if col, _, k := p.colOpConst(x); col != nil {
			if st := in.cols[col.ID]; st != nil && st.ranged {
				if v, ok := num(k.Value); ok && (v < st.lo || v > st.hi) {
					s = 1 / math.Max(in.rows, 1)
				}
			}
		}
		if x.F.Name == "<>" {
			return 1 - s
		}
		return s
	case "<", "<=", ">", ">=":
		col, op, k := p.colOpConst(x)
		if col != nil {
			if st := in.cols[col.ID]; st != nil && st.ranged && st.hi > st.lo {
				if v, ok := num(k.Value); ok {
					f := (v - st.lo) / (st.hi - st.lo)
					if op == ">" || op == ">=" {
						f = 1 - f
					}
					return math.Max(1/math.Max(in.rows, 1), math.Min(1, f)) * (1 - st.nullFrac)
				}
			}
		}
		return ineqSel
	case "~~", "~~*", "~", "~*":
		return p.likeSel(x.Args[1])
	case "!~~", "!~~*", "!~", "!~*":
		return 1 - p.likeSel(x.Args[1])
	}
	return ineqSel
}

func isParamExpr(e plan.Expr) bool {
	_, ok := stripAnyCast(e).(*plan.Param)
	return ok
}

// likeSel guesses a pattern's share: a prefix selects more sharply the longer
// it is, but never below 1 in 1,000.
func (p *planner) likeSel(pat plan.Expr) float64 {
	k, ok := pat.(*plan.Const)
	if !ok {
		return matchSel
	}
	s, ok := k.Value.(string)
	if !ok {
		return matchSel
	}
	fixed := strings.Trim(s, "%")
	if len(fixed) == len(s) && !strings.ContainsAny(s, "%_") {
		return eqSel
	}
	if len(fixed) == 0 {
		return 1
	}
	return math.Max(0.001, matchSel*math.Pow(0.9, float64(min(len(fixed), 20))))
}

// exprStat is what is known of an expression's values.
func (p *planner) exprStat(e plan.Expr, in *est) *colStat {
	switch x := e.(type) {
	case *plan.Col:
		if in.cols == nil {
			return nil
		}
		return in.cols[x.ID]
	case *plan.Const:
		return &colStat{distinct: 1, width: typeWidth(x.T)}
	case *plan.Cast:
		if s := p.exprStat(x.Arg, in); s != nil {
			k := *s
			if x.Arg.Type().Kind != x.T.Kind && !(x.Arg.Type().IsNumber() && x.T.IsNumber()) {
				k.ranged = false
			}
			return &k
		}
	case *plan.Call:
		// A function of columns has at most as many values.
		d := 1.0
		any := false
		for _, a := range x.Args {
			if s := p.exprStat(a, in); s != nil {
				d *= math.Max(1, s.distinct)
				any = true
			} else {
				return nil
			}
		}
		if any {
			if len(x.Args) > 0 && (x.F.Name == "date_part" || x.F.Name == "extract") {
				d = math.Min(d, 50)
			}
			return &colStat{distinct: math.Min(d, in.rows), width: typeWidth(x.T)}
		}
	}
	return nil
}
