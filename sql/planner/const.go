package planner

import (
	"context"
	"errors"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// errCannotEval says that an expression is not a constant the planner can
// compute; it is left to the executor.
var errCannotEval = errors.New("not a constant")

// evaluator computes expressions without columns, one value at a time. params
// are the values of parameters, when they are known.
type evaluator struct {
	ctx    context.Context
	env    function.Env
	params []types.Datum
	depth  int
	// maxBytes is how long a computed value may be; 0 = as long as any value.
	maxBytes int64
}

// maxFolded is how long a computed constant of a plan may be. Longer ones are
// left to the executor, which accounts for them.
const maxFolded = 1 << 20

func (p *planner) evalConst(e plan.Expr) (types.Datum, error) {
	ev := evaluator{ctx: p.ctx, env: p.o.Env}
	return ev.eval(e)
}

const maxEvalDepth = 5000

func (ev *evaluator) eval(e plan.Expr) (types.Datum, error) {
	ev.depth++
	defer func() { ev.depth-- }()
	if ev.depth > maxEvalDepth {
		return nil, errCannotEval
	}
	switch e := e.(type) {
	case *plan.Const:
		return e.Value, nil
	case *plan.Param:
		if e.Index < len(ev.params) {
			return ev.params[e.Index], nil
		}
		return nil, errCannotEval
	case *plan.Call:
		if e.F == nil || e.F.Kernel == nil || e.F.Set != nil {
			return nil, errCannotEval
		}
		return ev.call(e.F, e.Args, e.T)
	case *plan.Cast:
		if e.F == nil {
			return ev.eval(e.Arg)
		}
		if e.F.Kernel == nil {
			return nil, errCannotEval
		}
		v, err := ev.eval(e.Arg)
		if err != nil {
			return nil, err
		}
		return ev.run(e.F, []types.Datum{v}, []types.Type{e.Arg.Type()}, e.T, e.Explicit)
	case *plan.And:
		return ev.logic(e.Args, false)
	case *plan.Or:
		return ev.logic(e.Args, true)
	case *plan.Not:
		v, err := ev.eval(e.Arg)
		if b, ok := v.(bool); ok {
			return !b, err
		}
		return nil, err
	case *plan.IsNull:
		v, err := ev.eval(e.Arg)
		if err != nil || isRow(e.Arg.Type()) {
			return nil, errors.Join(err, errCannotEvalIf(isRow(e.Arg.Type())))
		}
		return (v == nil) != e.Not, nil
	case *plan.IsBool:
		v, err := ev.eval(e.Arg)
		if err != nil {
			return nil, err
		}
		var is bool
		switch e.Test {
		case plan.TestTrue:
			is = v == true
		case plan.TestFalse:
			is = v == false
		case plan.TestUnknown:
			is = v == nil
		}
		return is != e.Not, nil
	case *plan.Case:
		for _, w := range e.Whens {
			c, err := ev.eval(w.Cond)
			if err != nil {
				return nil, err
			}
			if c == true {
				return ev.eval(w.Result)
			}
		}
		if e.Else == nil {
			return nil, nil
		}
		return ev.eval(e.Else)
	case *plan.Coalesce:
		for _, a := range e.Args {
			v, err := ev.eval(a)
			if v != nil || err != nil {
				return v, err
			}
		}
		return nil, nil
	case *plan.MinMax:
		return ev.minMax(e)
	case *plan.MakeArray:
		if len(e.Elems) > 0 && e.T.Elem != nil && e.Elems[0].Type().Kind == types.Array && e.T.Elem.Kind != types.Array {
			return nil, errCannotEval
		}
		return ev.list(e.Elems)
	case *plan.MakeRow:
		return ev.list(e.Elems)
	case *plan.InList:
		return ev.inList(e)
	case *plan.Distinct:
		l, err := ev.eval(e.Left)
		if err != nil {
			return nil, err
		}
		r, err := ev.eval(e.Right)
		if err != nil {
			return nil, err
		}
		if l == nil || r == nil {
			return (l == nil) == (r == nil) == e.Not, nil
		}
		eq, err := ev.callDatums(e.Eq, []types.Datum{l, r}, []types.Type{e.Left.Type(), e.Right.Type()}, types.Of(types.Bool))
		if err != nil {
			return nil, err
		}
		return (eq == true) == e.Not, nil
	}
	return nil, errCannotEval
}

func errCannotEvalIf(b bool) error {
	if b {
		return errCannotEval
	}
	return nil
}

// logic is AND (stop = false) or OR (stop = true).
func (ev *evaluator) logic(args []plan.Expr, stop bool) (types.Datum, error) {
	null := false
	for _, a := range args {
		v, err := ev.eval(a)
		if err != nil {
			return nil, err
		}
		if v == nil {
			null = true
		} else if v == stop {
			return stop, nil
		}
	}
	if null {
		return nil, nil
	}
	return !stop, nil
}

func (ev *evaluator) list(es []plan.Expr) (types.Datum, error) {
	out := make([]types.Datum, len(es))
	for i, e := range es {
		v, err := ev.eval(e)
		if err != nil {
			return nil, err
		}
		out[i] = v
	}
	return out, nil
}

func (ev *evaluator) minMax(e *plan.MinMax) (types.Datum, error) {
	var best types.Datum
	var bt types.Type
	for _, a := range e.Args {
		v, err := ev.eval(a)
		if err != nil {
			return nil, err
		}
		if v == nil {
			continue
		}
		if best == nil {
			best, bt = v, a.Type()
			continue
		}
		x, y, xt, yt := v, best, a.Type(), bt
		if e.Greatest {
			x, y, xt, yt = y, x, yt, xt
		}
		less, err := ev.callDatums(e.Less, []types.Datum{x, y}, []types.Type{xt, yt}, types.Of(types.Bool))
		if err != nil {
			return nil, err
		}
		if less == true {
			best, bt = v, a.Type()
		}
	}
	return best, nil
}

func (ev *evaluator) inList(e *plan.InList) (types.Datum, error) {
	x, err := ev.eval(e.Arg)
	if err != nil {
		return nil, err
	}
	null := x == nil
	for _, it := range e.Items {
		v, err := ev.eval(it)
		if err != nil {
			return nil, err
		}
		if v == nil || x == nil {
			null = true
			continue
		}
		eq, err := ev.callDatums(e.Eq, []types.Datum{x, v}, []types.Type{e.Arg.Type(), it.Type()}, types.Of(types.Bool))
		if err != nil {
			return nil, err
		}
		if eq == true {
			return !e.Not, nil
		}
	}
	if null && len(e.Items) > 0 {
		return nil, nil
	}
	return e.Not, nil
}

func (ev *evaluator) call(f *function.Overload, args []plan.Expr, ret types.Type) (types.Datum, error) {
	ds := make([]types.Datum, len(args))
	ts := make([]types.Type, len(args))
	for i, a := range args {
		v, err := ev.eval(a)
		if err != nil {
			return nil, err
		}
		ds[i], ts[i] = v, a.Type()
	}
	return ev.callDatums(f, ds, ts, ret)
}

// callDatums runs a kernel over one row of constants.
func (ev *evaluator) callDatums(f *function.Overload, ds []types.Datum, ts []types.Type, ret types.Type) (types.Datum, error) {
	return ev.run(f, ds, ts, ret, false)
}

func (ev *evaluator) run(f *function.Overload, ds []types.Datum, ts []types.Type, ret types.Type, explicit bool) (types.Datum, error) {
	if f == nil || f.Kernel == nil {
		return nil, errCannotEval
	}
	vs := make([]vec.Vec, len(ds))
	for i, d := range ds {
		if d == nil && f.Strict {
			return nil, nil
		}
		vs[i] = vec.Vec{Arr: vec.FromDatums(ts[i], []types.Datum{d}), Const: true}
	}
	ctx := ev.ctx
	if ctx == nil {
		ctx = context.Background()
	}
	var state any
	a, err := f.Kernel(&function.Call{Ctx: ctx, Env: ev.env, N: 1, Ret: ret, ArgTypes: ts, State: &state, Explicit: explicit, MaxBytes: ev.maxBytes, MaxSetting: "work_mem"}, vs)
	if err != nil {
		return nil, err
	}
	if a == nil || a.Len() < 1 {
		return nil, errCannotEval
	}
	if vec.IsDict(a) {
		a = vec.Decode(a)
	}
	return vec.DatumAt(a, ret, 0), nil
}

// tighten gives a numeric constant the Decimal128 form that holds it.
func tighten(t types.Type, v types.Datum) types.Type {
	d, ok := v.(*numeric.Dec)
	if !ok || t.Kind != types.Numeric || t.Prec > 0 {
		return t
	}
	return decType(t, d)
}

func decType(t types.Type, d *numeric.Dec) types.Type {
	if d.Form != numeric.Finite || d.Scale > 37 || d.Scale < 0 {
		return t
	}
	digits := max(d.Digits(), int(d.Scale)+1, 1)
	if digits > 38 {
		return t
	}
	t.Prec, t.Scale = uint8(digits), uint8(d.Scale)
	return t
}
