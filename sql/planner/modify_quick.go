package planner

import (
	"math"
	"strconv"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// quickLiteral reads a literal that fits column i of the target as it is: what
// most rows of VALUES are made of. Nil for everything that needs a conversion,
// depends on a setting or may be an error.
func (m *modifier) quickLiteral(a ast.Expr, i int) plan.Expr {
	ct := &m.t.cols[i].Type
	var v types.Datum
	ok := false
	switch a := a.(type) {
	case *ast.Number:
		v, ok = quickNumber(a.Text, ct, false)
	case *ast.Unary:
		if n, is := a.Expr.(*ast.Number); is && a.Op.Name == "-" && len(a.Op.Schema) == 0 {
			v, ok = quickNumber(n.Text, ct, true)
		}
	case *ast.String:
		if a.Kind != ast.StringBit && a.Kind != ast.StringHex {
			v, ok = quickString(a.Value, ct)
		}
	case *ast.Bool:
		v, ok = a.Value, ct.Kind == types.Bool
	case *ast.Null:
		ok = true
	}
	if !ok {
		return nil
	}
	return &plan.Const{Value: v, T: m.t.columnType(i)}
}

func quickNumber(text string, ct *types.Type, minus bool) (types.Datum, bool) {
	lo, hi := int64(math.MinInt64), int64(math.MaxInt64)
	switch ct.Kind {
	case types.TinyInt, types.Int2:
		lo, hi = math.MinInt16, math.MaxInt16
	case types.Int4:
		lo, hi = math.MinInt32, math.MaxInt32
	case types.Int8, types.Float8:
	case types.Numeric:
		return quickDecimal(text, ct, minus)
	default:
		return nil, false
	}
	if len(text) > 18 {
		return nil, false
	}
	v, err := strconv.ParseInt(text, 10, 64)
	if err != nil {
		return nil, false
	}
	if minus {
		v = -v
	}
	if ct.Kind == types.Float8 {
		return float64(v), !minus || v != 0
	}
	return v, v >= lo && v <= hi
}

// quickDecimal reads digits with at most as many decimals as the column has.
func quickDecimal(text string, ct *types.Type, minus bool) (types.Datum, bool) {
	if ct.Prec == 0 || len(text) > 38 {
		return nil, false
	}
	for i := range len(text) {
		if c := text[i]; c != '.' && (c < '0' || c > '9') {
			return nil, false
		}
	}
	d, err := numeric.Parse(text)
	if err != nil || d.Scale > int32(ct.Scale) {
		return nil, false
	}
	if d = d.Round(int32(ct.Scale)); d.Digits() > int(ct.Prec) {
		return nil, false
	}
	if minus {
		d = d.Neg()
	}
	return d, true
}

func quickString(s string, ct *types.Type) (types.Datum, bool) {
	switch ct.Kind {
	case types.Text:
		return s, ct.Mod == 0
	case types.Date:
		// yyyy-mm-dd means the same under every DateStyle.
		if !shaped(s, "dddd-dd-dd") {
			return nil, false
		}
		v, err := pgtext.ParseDate(s, nil)
		return v, err == nil
	case types.Timestamp:
		const whole = len("dddd-dd-dd dd:dd:dd")
		frac := 0
		if len(s) > whole+1 {
			frac = len(s) - whole - 1
		}
		if frac > 9 || frac > int(ct.Prec) || !shaped(s, "dddd-dd-dd dd:dd:dd.ddddddddd"[:min(len(s), whole+10)]) || len(s) < whole || len(s) == whole+1 {
			return nil, false
		}
		v, err := pgtext.ParseTimestamp(s, false, ct.IsNanos(), nil)
		return v, err == nil
	}
	return nil, false
}

// shaped reports whether s is shape with a digit for every d.
func shaped(s, shape string) bool {
	if len(s) != len(shape) {
		return false
	}
	for i := range len(s) {
		if shape[i] == 'd' {
			if s[i] < '0' || s[i] > '9' {
				return false
			}
		} else if s[i] != shape[i] {
			return false
		}
	}
	return true
}

// optimizeSimple does for rows of one table with plain conditions what the rules
// would: it puts the conditions into the scan. ok is false for other plans.
func (p *planner) optimizeSimple(root plan.LNode) (plan.LNode, bool) {
	pr, ok := root.(*plan.LProject)
	if !ok || len(p.o.Disabled) > 0 {
		return nil, false
	}
	f, filtered := pr.In.(*plan.LFilter)
	in := pr.In
	if filtered {
		in = f.In
	}
	g, ok := in.(*plan.LGet)
	if !ok {
		return nil, false
	}
	simple := func(e plan.Expr) bool {
		ok := true
		plan.Walk(e, func(x plan.Expr) bool {
			switch x.(type) {
			case *plan.Subquery, *plan.Or, *plan.SetRef, *groupingRef:
				ok = false
			}
			return ok
		})
		return ok
	}
	for _, e := range pr.Exprs {
		if !simple(e) {
			return nil, false
		}
	}
	if filtered {
		if hasVolatile(f.Conds...) {
			return nil, false
		}
		for _, c := range f.Conds {
			if !simple(c) {
				return nil, false
			}
		}
	}
	for i := range pr.Exprs {
		pr.Exprs[i] = p.fold(pr.Exprs[i])
	}
	if filtered {
		for i := range f.Conds {
			f.Conds[i] = p.fold(f.Conds[i])
			if c, ok := f.Conds[i].(*plan.Const); ok && c.Value != true {
				return nil, false // no rows: the rules know what to do
			}
		}
		g.Conds = flatConds(f.Conds)
		pr.In = g
	}
	if p.prune(pr, colsOf(pr)) != nil {
		return nil, false
	}
	root, err := p.nestedPrune(pr)
	return root, err == nil
}
