package planner

import (
	"math"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// foldPlan evaluates what is constant and simplifies logic. A constant whose
// evaluation fails stays an expression: PostgreSQL reports 1/0 only when a row
// asks for it, if the plan has one.
func (p *planner) foldPlan(n plan.LNode) (plan.LNode, error) {
	var f func(n plan.LNode)
	f = func(n plan.LNode) {
		eachNode(n, func(n plan.LNode) {
			n.EachExpr(func(e *plan.Expr) {
				*e = p.fold(*e)
				plan.Walk(*e, func(x plan.Expr) bool {
					if s, ok := x.(*plan.Subquery); ok {
						f(s.Plan.(*subplan).root)
					}
					return true
				})
			})
			switch n := n.(type) {
			case *plan.LFilter:
				n.Conds = flatConds(n.Conds)
			case *plan.LJoin:
				n.Conds = flatConds(n.Conds)
			case *plan.LGet:
				n.Conds = flatConds(n.Conds)
			}
		})
	}
	f(n)
	return n, nil
}

// flatConds splits ANDs and drops what is true.
func flatConds(cs []plan.Expr) []plan.Expr {
	var out []plan.Expr
	for _, c := range cs {
		for _, x := range conjuncts(c) {
			if k, ok := x.(*plan.Const); ok && k.Value == true {
				continue
			}
			out = append(out, x)
		}
	}
	return out
}

// negators are the operators with an opposite.
var negators = map[string]string{
	"=": "<>", "<>": "=", "<": ">=", ">=": "<", ">": "<=", "<=": ">",
	"~~": "!~~", "!~~": "~~", "~~*": "!~~*", "!~~*": "~~*", "~": "!~", "!~": "~", "~*": "!~*", "!~*": "~*",
}

// commutators turn a op b into b op a.
var commutators = map[string]string{"=": "=", "<>": "<>", "<": ">", ">": "<", "<=": ">=", ">=": "<="}

func (p *planner) fold(e plan.Expr) plan.Expr { return plan.Transform(e, p.foldNode) }

func trueConst(v types.Datum) *plan.Const {
	return &plan.Const{Value: v, T: types.Of(types.Bool).WithNotNull(v != nil)}
}

func isNullConst(e plan.Expr) bool {
	c, ok := e.(*plan.Const)
	return ok && c.Value == nil
}

func (p *planner) foldNode(e plan.Expr) plan.Expr {
	switch x := e.(type) {
	case *plan.Const, *plan.Col, *plan.Slot, *plan.Param, *plan.Subquery, *plan.SetRef, *groupingRef:
		return e
	case *plan.Call:
		if x.F != nil && x.F.Strict && x.F.Set == nil && x.F.Volatility != function.Volatile {
			for _, a := range x.Args {
				if isNullConst(a) {
					return &plan.Const{T: x.T.WithNotNull(false)}
				}
			}
		}
		if d := p.foldDate(x); d != nil {
			return d
		}
		return p.tryFold(e, x.Args)
	case *plan.Cast:
		return p.tryFold(e, []plan.Expr{x.Arg})
	case *plan.And:
		return foldLogic(x.Args, false, func(a []plan.Expr) plan.Expr { return &plan.And{Args: a} })
	case *plan.Or:
		return foldLogic(x.Args, true, func(a []plan.Expr) plan.Expr { return &plan.Or{Args: a} })
	case *plan.Not:
		return p.foldNot(x)
	case *plan.IsNull:
		if !isRow(x.Arg.Type()) {
			if x.Arg.Type().NotNull {
				return trueConst(x.Not)
			}
			if c, ok := x.Arg.(*plan.Const); ok {
				return trueConst((c.Value == nil) != x.Not)
			}
		}
	case *plan.IsBool:
		if c, ok := x.Arg.(*plan.Const); ok {
			var is bool
			switch x.Test {
			case plan.TestTrue:
				is = c.Value == true
			case plan.TestFalse:
				is = c.Value == false
			default:
				is = c.Value == nil
			}
			return trueConst(is != x.Not)
		}
		if x.Arg.Type().NotNull {
			switch {
			case x.Test == plan.TestUnknown:
				return trueConst(x.Not)
			case x.Test == plan.TestTrue != x.Not:
				return x.Arg
			default:
				return p.foldNot(&plan.Not{Arg: x.Arg})
			}
		}
	case *plan.Case:
		return p.foldCase(x)
	case *plan.Coalesce:
		var args []plan.Expr
		for _, a := range x.Args {
			if isNullConst(a) {
				continue
			}
			args = append(args, a)
			if c, ok := a.(*plan.Const); ok && c.Value != nil || a.Type().NotNull {
				break
			}
		}
		switch {
		case len(args) == 0:
			return &plan.Const{T: x.T.WithNotNull(false)}
		case len(args) == 1 && args[0].Type().SamePhysical(x.T):
			return args[0]
		}
		if len(args) < len(x.Args) {
			return &plan.Coalesce{Args: args, T: x.T}
		}
	case *plan.InList:
		if isNullConst(x.Arg) {
			return trueConst(nil)
		}
		return p.tryFold(e, append([]plan.Expr{x.Arg}, x.Items...))
	case *plan.Distinct:
		return p.tryFold(e, []plan.Expr{x.Left, x.Right})
	case *plan.MinMax:
		return p.tryFold(e, x.Args)
	case *plan.MakeArray:
		return p.tryFold(e, x.Elems)
	}
	return e
}

// tryFold evaluates e when its arguments are constants.
func (p *planner) tryFold(e plan.Expr, args []plan.Expr) plan.Expr {
	for _, a := range args {
		if _, ok := a.(*plan.Const); !ok {
			return e
		}
	}
	if !p.foldable(e) {
		return e
	}
	ev := evaluator{ctx: p.ctx, env: p.o.Env, maxBytes: maxFolded}
	v, err := ev.eval(e)
	if err != nil {
		return e
	}
	t := e.Type().WithNotNull(v != nil)
	if t.Kind == types.Array && v != nil && len(args) > 1000 {
		return e
	}
	return &plan.Const{Value: v, T: t}
}

// foldLogic is AND (stop false) or OR (stop true).
func foldLogic(args []plan.Expr, stop bool, make func([]plan.Expr) plan.Expr) plan.Expr {
	var out []plan.Expr
	null := false
	for _, a := range args {
		if c, ok := a.(*plan.Const); ok {
			if c.Value == stop {
				return trueConst(stop)
			}
			if c.Value == nil {
				null = true
				out = append(out, a)
			}
			continue
		}
		switch in := a.(type) {
		case *plan.And:
			if !stop {
				out = append(out, in.Args...)
				continue
			}
		case *plan.Or:
			if stop {
				out = append(out, in.Args...)
				continue
			}
		}
		dup := false
		if len(out) < 64 {
			for _, o := range out {
				if exprEqual(o, a) {
					dup = true
					break
				}
			}
		}
		if !dup {
			out = append(out, a)
		}
	}
	_ = null
	switch len(out) {
	case 0:
		return trueConst(!stop)
	case 1:
		return out[0]
	}
	return make(out)
}

func (p *planner) foldNot(n *plan.Not) plan.Expr {
	switch x := n.Arg.(type) {
	case *plan.Const:
		if b, ok := x.Value.(bool); ok {
			return trueConst(!b)
		}
		return trueConst(nil)
	case *plan.Not:
		return x.Arg
	case *plan.And:
		var out []plan.Expr
		for _, a := range x.Args {
			out = append(out, p.foldNot(&plan.Not{Arg: a}))
		}
		return foldLogic(out, true, func(a []plan.Expr) plan.Expr { return &plan.Or{Args: a} })
	case *plan.Or:
		var out []plan.Expr
		for _, a := range x.Args {
			out = append(out, p.foldNot(&plan.Not{Arg: a}))
		}
		return foldLogic(out, false, func(a []plan.Expr) plan.Expr { return &plan.And{Args: a} })
	case *plan.IsNull:
		if !isRow(x.Arg.Type()) {
			return &plan.IsNull{Arg: x.Arg, Not: !x.Not}
		}
	case *plan.IsBool:
		return &plan.IsBool{Arg: x.Arg, Test: x.Test, Not: !x.Not}
	case *plan.Distinct:
		return &plan.Distinct{Eq: x.Eq, Left: x.Left, Right: x.Right, Not: !x.Not}
	case *plan.InList:
		return &plan.InList{Eq: x.Eq, Arg: x.Arg, Items: x.Items, Not: !x.Not}
	case *plan.Call:
		if x.F == nil || len(x.Args) != 2 {
			break
		}
		op, ok := negators[x.F.Name]
		if !ok || !isOperator(x.F) {
			break
		}
		for _, o := range function.LookupOperator(op, false) {
			if len(o.Args) == 2 && o.Args[0].Kind == x.F.Args[0].Kind && o.Args[1].Kind == x.F.Args[1].Kind && o.Ret.Kind == types.Bool {
				return &plan.Call{F: o, Args: x.Args, T: x.T, Pos: x.Pos}
			}
		}
	}
	return n
}

const microsPerDay = 86400 * 1000000

// foldDate compares a date with a constant timestamp as dates, which statistics
// and indexes of a date column can answer: d < '2024-01-02 10:00' is
// d <= '2024-01-02'.
func (p *planner) foldDate(x *plan.Call) plan.Expr {
	if x.F == nil || len(x.Args) != 2 || commutators[x.F.Name] == "" || !isOperator(x.F) {
		return nil
	}
	d, k, op := x.Args[0], x.Args[1], x.F.Name
	if d.Type().Kind == types.Timestamp {
		d, k, op = k, d, commutators[op]
	}
	// The date may have been cast for the operator.
	if c, ok := d.(*plan.Cast); ok && c.T.Kind == types.Timestamp && c.Arg.Type().Kind == types.Date {
		d = c.Arg
	}
	c, ok := k.(*plan.Const)
	if !ok || d.Type().Kind != types.Date || k.Type().Kind != types.Timestamp || k.Type().IsNanos() {
		return nil
	}
	if _, isConst := d.(*plan.Const); isConst {
		return nil
	}
	us, ok := c.Value.(int64)
	if !ok || us == math.MaxInt64 || us == math.MinInt64 {
		return nil
	}
	day := us / microsPerDay
	if us%microsPerDay != 0 {
		if us < 0 {
			day--
		}
		switch op {
		case "<", "<=":
			op = "<="
		case ">", ">=":
			op = ">"
		default:
			return nil
		}
	}
	if day <= -2440588 || day >= 106751991 {
		return nil
	}
	e, err := p.operator(op, d, &plan.Const{Value: day, T: types.Of(types.Date).WithNotNull(true)}, -1, -1, -1)
	if err != nil {
		return nil
	}
	return e
}

// isOperator tells an operator's overload from a function of that name.
func isOperator(o *function.Overload) bool {
	c := o.Name[0]
	return !(c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z')
}

func (p *planner) foldCase(c *plan.Case) plan.Expr {
	var whens []plan.When
	els := c.Else
	changed := false
	for _, w := range c.Whens {
		if k, ok := w.Cond.(*plan.Const); ok {
			changed = true
			if k.Value == true {
				els = w.Result
				break
			}
			continue
		}
		whens = append(whens, w)
	}
	if !changed {
		return c
	}
	if len(whens) == 0 {
		if els == nil {
			return &plan.Const{T: c.T.WithNotNull(false)}
		}
		return els
	}
	return &plan.Case{Whens: whens, Else: els, T: c.T}
}
