package planner

import (
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// sumCase rewrites sum(CASE WHEN c THEN x ELSE 0 END) over numerics as
//
//	coalesce(sum(x) FILTER (WHERE c), CASE WHEN count(*) FILTER (WHERE c IS NOT TRUE) > 0 THEN 0 END)
//
// The CASE has a scale per value (PostgreSQL prints 0 and 1.50 as they are), so
// it would be summed in the slow form; x alone has one scale. A branch never
// taken gives 0 without decimals, as in PostgreSQL.
func (p *planner) sumCase(n plan.LNode) (plan.LNode, error) {
	return p.rewriteUp(n, func(n plan.LNode) (plan.LNode, error) {
		a, ok := n.(*plan.LAggregate)
		if !ok {
			return n, nil
		}
		repl := map[plan.ColID]plan.Expr{}
		out := a.Cols()
		count := len(a.Aggs)
		for i := 0; i < count; i++ {
			x, zero, cond := sumCaseArg(&a.Aggs[i])
			if cond == nil {
				continue
			}
			id := a.AggCols[i].ID // splitSum puts another column there
			if e := p.splitSum(a, i, x, zero, cond); e != nil {
				repl[id] = e
			}
		}
		if len(repl) == 0 {
			return n, nil
		}
		pr := &plan.LProject{In: a}
		for _, c := range out {
			e, ok := repl[c.ID]
			if !ok {
				e = c.Ref()
			}
			pr.Exprs, pr.Out = append(pr.Exprs, e), append(pr.Out, c)
		}
		return pr, nil
	})
}

func sumCaseArg(a *plan.AggCall) (x, zero, cond plan.Expr) {
	if a.Def.Name != "sum" || a.Distinct || a.Filter != nil || len(a.Args) != 1 {
		return nil, nil, nil
	}
	c, ok := a.Args[0].(*plan.Case)
	if !ok || len(c.Whens) != 1 || c.Else == nil || c.T.Kind != types.Numeric || c.T.Prec != 0 {
		return nil, nil, nil
	}
	k, ok := stripAnyCast(c.Else).(*plan.Const)
	if !ok || k.Value == nil || !isZero(k.Value) {
		return nil, nil, nil
	}
	x = stripNumericCast(c.Whens[0].Result)
	if x.Type().Kind != types.Numeric || x.Type().Prec == 0 || hasVolatile(c) || hasSubquery(c) {
		return nil, nil, nil
	}
	return x, c.Else, c.Whens[0].Cond
}

func isZero(v types.Datum) bool {
	switch v := v.(type) {
	case int64:
		return v == 0
	case *numeric.Dec:
		return v.Scale == 0 && v.IsZero()
	}
	return false
}

func stripAnyCast(e plan.Expr) plan.Expr {
	for {
		c, ok := e.(*plan.Cast)
		if !ok {
			return e
		}
		e = c.Arg
	}
}

// stripNumericCast removes a cast that only changes the form of a numeric.
func stripNumericCast(e plan.Expr) plan.Expr {
	if c, ok := e.(*plan.Cast); ok && c.T.Kind == types.Numeric && c.T.Mod == 0 && c.Arg.Type().Kind == types.Numeric {
		return c.Arg
	}
	return e
}

func (p *planner) splitSum(a *plan.LAggregate, i int, x, zero, cond plan.Expr) plan.Expr {
	sumDef := a.Aggs[i].Def
	var countDef *aggregate.Def
	for _, d := range aggregate.Lookup("count") {
		if len(d.Args) == 0 {
			countDef = d
		}
	}
	if countDef == nil {
		return nil
	}
	// sum's result for the exact form of x.
	args, ret := []plan.Expr{x}, sumDef.Ret
	if sumDef.ExactArgs != nil {
		want := sumDef.ExactArgs([]types.Type{x.Type()})
		if len(want) != 1 || !want[0].SamePhysical(x.Type()) {
			return nil
		}
	}
	if sumDef.RetFn != nil {
		ret = sumDef.RetFn([]types.Type{x.Type()})
	}
	ret.NotNull = false
	want := a.AggCols[i].T.WithNotNull(false)
	col := p.newCol("sum", ret, colInfo{kind: colAgg})
	cnt := p.newCol("count", types.Of(types.Int8).WithNotNull(true), colInfo{kind: colAgg})
	gt, err := p.operator(">", cnt.Ref(), &plan.Const{Value: int64(0), T: types.Of(types.Int8).WithNotNull(true)}, -1, -1, -1)
	if err != nil {
		return nil
	}
	z, err := p.castCall(stripAnyCast(zero), want, false, -1)
	if err != nil || z == nil {
		return nil
	}
	sum, err := p.castCall(col.Ref(), want, false, -1)
	if err != nil || sum == nil {
		return nil
	}
	a.Aggs[i] = plan.AggCall{Def: sumDef, Args: args, Filter: cond, T: ret}
	a.AggCols[i] = col
	a.Aggs = append(a.Aggs, plan.AggCall{Def: countDef, Filter: &plan.IsBool{Arg: cond, Test: plan.TestTrue, Not: true}, T: cnt.T})
	a.AggCols = append(a.AggCols, cnt)
	return &plan.Coalesce{T: want, Args: []plan.Expr{sum, &plan.Case{Whens: []plan.When{{Cond: gt, Result: p.fold(z)}}, T: want}}}
}
