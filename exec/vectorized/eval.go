package vectorized

import (
	"context"
	"errors"
	"fmt"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// Expressions are compiled once per worker into a tree of nodes that work on
// whole batches. Two rules hold everywhere:
//
//   - a node is asked about the rows in sel only (nil = all rows of the batch);
//     what it returns for other rows is arbitrary, and a kernel that can fail
//     never sees them. AND, OR, CASE and COALESCE narrow sel as they go.
//   - a constant stays one value (vec.Vec.Const) until it leaves in a batch.
//
// A condition is not computed as a boolean column where it only selects rows:
// selectRows works on positions and compares columns with constants directly.

// evalContext is what expressions of one worker see of the query.
type evalContext struct {
	ctx    context.Context
	fn     function.Env
	params *paramSet
	// maxBytes is how long a computed value may be (0 = no limit of the query),
	// setting what says so.
	maxBytes int64
	setting  string
}

// evalNode computes an expression. Not safe for concurrent use.
type evalNode interface {
	// eval returns an array of length b.N, or a constant.
	eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error)
}

// rowSelector is implemented by conditions that can name their rows without
// building a boolean column.
type rowSelector interface {
	// selectRows writes to out the rows of sel for which the condition is want
	// (true or false; never NULL) and returns their number. out is as long as
	// what is looked at, and may be sel itself.
	selectRows(x *evalContext, b *vec.Batch, sel []uint16, want bool, out []uint16) (int, error)
}

// evaluator is a compiled expression.
type evaluator struct {
	root evalNode
	t    types.Type
	out  []uint16
}

// compileExpr prepares e for one worker.
func compileExpr(e plan.Expr) (*evaluator, error) {
	n, err := compile(e, 0)
	if err != nil {
		return nil, err
	}
	return &evaluator{root: n, t: e.Type()}, nil
}

func compileAll(es []plan.Expr) ([]*evaluator, error) {
	out := make([]*evaluator, len(es))
	for i, e := range es {
		var err error
		if out[i], err = compileExpr(e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// column evaluates to an array of length b.N.
func (e *evaluator) column(x *evalContext, b *vec.Batch) (arrow.Array, error) {
	v, err := e.value(x, b)
	if err != nil {
		return nil, err
	}
	return v.Column(b.N), nil
}

// value evaluates to a column or a constant.
func (e *evaluator) value(x *evalContext, b *vec.Batch) (vec.Vec, error) {
	v, err := e.root.eval(x, b, b.Sel)
	if errors.Is(err, function.ErrBatchBytes) {
		m := newMerger(e.t.Arrow(), b.N)
		size := int64(0)
		if err = e.parts(x, b, liveSel(b), m, &size); err == nil {
			v = m.result()
		}
	}
	return v, err
}

// maxJoined is how many bytes the results of a batch may have that were computed
// in parts.
const maxJoined = 1<<30 - 1

// parts evaluates a batch whose intermediate results are too long together a few
// rows at a time.
func (e *evaluator) parts(x *evalContext, b *vec.Batch, sel []uint16, m *merger, size *int64) error {
	v, err := e.root.eval(x, b, sel)
	if errors.Is(err, function.ErrBatchBytes) && len(sel) > 1 {
		h := len(sel) / 2
		if err := e.parts(x, b, sel[:h], m, size); err != nil {
			return err
		}
		return e.parts(x, b, sel[h:], m, size)
	}
	if err != nil {
		return err
	}
	if *size += vec.Size(v.Arr); *size > maxJoined {
		return pgerr.New(pgerr.ProgramLimitExceeded, "requested length too large")
	}
	m.put(v, sel)
	return nil
}

// datum evaluates an expression without columns.
func (e *evaluator) datum(x *evalContext) (types.Datum, error) {
	v, err := e.root.eval(x, oneRow, nil)
	if err != nil {
		return nil, err
	}
	return vec.DatumAt(v.Arr, e.t, 0), nil
}

var oneRow = &vec.Batch{N: 1}

// selectRows returns the live rows of b for which the condition is true. The
// result is valid until the next call.
func (e *evaluator) selectRows(x *evalContext, b *vec.Batch) ([]uint16, error) {
	n := b.Size()
	if cap(e.out) < n {
		e.out = make([]uint16, n)
	}
	k, err := selectNode(e.root, x, b, b.Sel, true, e.out[:n])
	if errors.Is(err, function.ErrBatchBytes) {
		var out []uint16
		out, err = e.selectParts(x, b, liveSel(b), nil)
		k = copy(e.out[:n], out)
	}
	return e.out[:k], err
}

// selectParts is selectRows a few rows at a time.
func (e *evaluator) selectParts(x *evalContext, b *vec.Batch, sel, out []uint16) ([]uint16, error) {
	buf := make([]uint16, len(sel))
	k, err := selectNode(e.root, x, b, sel, true, buf)
	if errors.Is(err, function.ErrBatchBytes) && len(sel) > 1 {
		h := len(sel) / 2
		if out, err = e.selectParts(x, b, sel[:h], out); err != nil {
			return nil, err
		}
		return e.selectParts(x, b, sel[h:], out)
	}
	return append(out, buf[:k]...), err
}

// selectNode selects with n's own method or by its boolean column.
func selectNode(n evalNode, x *evalContext, b *vec.Batch, sel []uint16, want bool, out []uint16) (int, error) {
	if sel != nil && len(sel) == 0 || b.N == 0 {
		return 0, nil
	}
	if s, ok := n.(rowSelector); ok {
		return s.selectRows(x, b, sel, want, out)
	}
	v, err := n.eval(x, b, sel)
	if err != nil {
		return 0, err
	}
	return selectBool(v, b.N, sel, want, out), nil
}

// selectBool selects the rows of a boolean column that are want.
func selectBool(v vec.Vec, n int, sel []uint16, want bool, out []uint16) int {
	if v.Const {
		if v.Arr.IsNull(0) || v.Arr.(*array.Boolean).Value(0) != want {
			return 0
		}
		return copySel(n, sel, out)
	}
	d := v.Arr.Data()
	bits, off := d.Buffers()[1].Bytes(), d.Offset()
	valid, _ := vec.Validity(v.Arr)
	flip := byte(0)
	if !want {
		flip = 1
	}
	k := 0
	if sel == nil {
		out = out[:n]
		for i := range n {
			j := off + i
			hit := bits[j>>3]>>(j&7)&1 ^ flip
			if valid != nil {
				hit &= valid[j>>3] >> (j & 7)
			}
			out[k] = uint16(i)
			k += int(hit & 1)
		}
		return k
	}
	for _, i := range sel {
		j := off + int(i)
		hit := bits[j>>3]>>(j&7)&1 ^ flip
		if valid != nil {
			hit &= valid[j>>3] >> (j & 7)
		}
		out[k] = i
		k += int(hit & 1)
	}
	return k
}

// copySel writes sel, or 0..n-1, to out.
func copySel(n int, sel, out []uint16) int {
	if sel != nil {
		return copy(out, sel)
	}
	out = out[:n]
	for i := range out {
		out[i] = uint16(i)
	}
	return n
}

// grow returns a scratch selection of n entries, reusing buf.
func grow(buf []uint16, n int) []uint16 {
	if cap(buf) < n {
		return make([]uint16, n)
	}
	return buf[:n]
}

// liveSel lists the live rows of a batch.
func liveSel(b *vec.Batch) []uint16 {
	if b.Sel != nil {
		return b.Sel
	}
	sel := make([]uint16, b.N)
	for i := range sel {
		sel[i] = uint16(i)
	}
	return sel
}

func liveRows(b *vec.Batch, sel []uint16) int {
	if sel != nil {
		return len(sel)
	}
	return b.N
}

func constNull(dt arrow.DataType) vec.Vec { return vec.Vec{Arr: vec.MakeNull(dt, 1), Const: true} }

// maxExprDepth bounds the recursion over an expression.
const maxExprDepth = 10000

func compile(e plan.Expr, depth int) (evalNode, error) {
	if depth > maxExprDepth {
		return nil, pgerr.New(pgerr.StatementTooComplex, "stack depth limit exceeded")
	}
	n, err := compileNode(e, depth+1)
	if err != nil {
		return nil, err
	}
	switch e.(type) {
	case *plan.Const, *plan.Slot:
		return n, nil
	}
	if isStable(e) {
		return &cachedNode{arg: n, dt: e.Type().Arrow()}, nil
	}
	return n, nil
}

func compileList(es []plan.Expr, depth int) ([]evalNode, error) {
	out := make([]evalNode, len(es))
	for i, e := range es {
		var err error
		if out[i], err = compile(e, depth); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func compileNode(e plan.Expr, depth int) (evalNode, error) {
	switch e := e.(type) {
	case *plan.Slot:
		return &slotNode{e.Index}, nil
	case *plan.Const:
		return &constNode{vec.Vec{Arr: vec.FromDatums(e.T, []types.Datum{e.Value}), Const: true}}, nil
	case *plan.Param:
		return &paramNode{index: e.Index, t: e.T}, nil
	case *plan.Call:
		return compileCall(e, depth)
	case *plan.Cast:
		if e.F == nil || e.F.Kernel == nil {
			return compile(e.Arg, depth)
		}
		n, err := newCall(e.F, []plan.Expr{e.Arg}, e.T, depth)
		if err != nil {
			return nil, err
		}
		n.call.Explicit = e.Explicit
		return n, nil
	case *plan.And:
		return compileLogic(e.Args, false, depth)
	case *plan.Or:
		return compileLogic(e.Args, true, depth)
	case *plan.Not:
		a, err := compile(e.Arg, depth)
		return &notNode{a}, err
	case *plan.IsNull:
		a, err := compile(e.Arg, depth)
		k := e.Arg.Type().Kind
		return &isNullNode{arg: a, not: e.Not, row: k == types.Row || k == types.Record}, err
	case *plan.IsBool:
		a, err := compile(e.Arg, depth)
		return &isBoolNode{arg: a, test: e.Test, not: e.Not}, err
	case *plan.Distinct:
		return compileDistinct(e, depth)
	case *plan.InList:
		return compileIn(e, depth)
	case *plan.AnyAll:
		return compileAnyAll(e, depth)
	case *plan.Case:
		return compileCase(e, depth)
	case *plan.Coalesce:
		as, err := compileList(e.Args, depth)
		return &coalesceNode{args: as, dt: e.T.Arrow()}, err
	case *plan.MinMax:
		return compileMinMax(e, depth)
	case *plan.NullIf:
		return compileNullIf(e, depth)
	case *plan.MakeArray:
		as, err := compileList(e.Elems, depth)
		return &makeArrayNode{args: as, t: e.T}, err
	case *plan.MakeRow:
		as, err := compileList(e.Elems, depth)
		return &makeRowNode{args: as, t: e.T}, err
	case *plan.Field:
		a, err := compile(e.Arg, depth)
		return &fieldNode{arg: a, index: e.Index, dt: e.T.Arrow()}, err
	case *plan.Subscript:
		return compileSubscript(e, depth)
	case *plan.RowCompare:
		return compileRowCompare(e, depth)
	}
	return nil, pgerr.New(pgerr.InternalError, "expression %T cannot be executed", e)
}

// isStable reports whether e has one value during the query: no columns and no
// volatile calls.
func isStable(e plan.Expr) bool {
	ok := true
	plan.Walk(e, func(e plan.Expr) bool {
		switch e := e.(type) {
		case *plan.Slot, *plan.Col, *plan.Subquery:
			ok = false
		case *plan.Call:
			ok = ok && e.F.Volatility != function.Volatile && e.F.Set == nil
		case *plan.Cast:
			ok = ok && (e.F == nil || e.F.Volatility != function.Volatile)
		}
		return ok
	})
	return ok
}

// slotNode is a column of the input.
type slotNode struct{ index int }

func (n *slotNode) eval(_ *evalContext, b *vec.Batch, _ []uint16) (vec.Vec, error) {
	a := b.Cols[n.index]
	if a == nil {
		return vec.Vec{}, pgerr.New(pgerr.InternalError, "column %d was not computed by the operator below", n.index)
	}
	return vec.Vec{Arr: a}, nil
}

type constNode struct{ v vec.Vec }

func (n *constNode) eval(*evalContext, *vec.Batch, []uint16) (vec.Vec, error) { return n.v, nil }

// paramNode is a client's parameter or one that an Apply or InitPlan sets.
type paramNode struct {
	index int
	t     types.Type
	v     vec.Vec
	of    *paramSet
}

func (n *paramNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	if n.of == x.params && n.v.Arr != nil {
		return n.v, nil
	}
	d, err := x.params.get(x.ctx, n.index)
	if err != nil {
		return vec.Vec{}, err
	}
	n.v, n.of = vec.Vec{Arr: vec.FromDatums(n.t, []types.Datum{d}), Const: true}, x.params
	return n.v, nil
}

// cachedNode computes an expression without columns once, when rows first need
// it.
type cachedNode struct {
	arg evalNode
	dt  arrow.DataType
	v   vec.Vec
	of  *paramSet
}

func (n *cachedNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	if n.v.Arr != nil && n.of == x.params {
		return n.v, nil
	}
	if liveRows(b, sel) == 0 {
		return constNull(n.dt), nil
	}
	v, err := n.arg.eval(x, oneRow, nil)
	if err != nil {
		return vec.Vec{}, err
	}
	n.v, n.of = vec.Vec{Arr: vec.Decode(v.Arr), Const: true}, x.params
	return n.v, nil
}

// callNode runs a kernel.
type callNode struct {
	f     *function.Overload
	args  []evalNode
	call  function.Call
	state any
	vs    []vec.Vec
	dt    arrow.DataType
	// The results over the values of the last dictionary seen.
	dict   arrow.Array // the argument that carried the dictionary
	onDict arrow.Array // result per dictionary value
	table  []uint8     // for booleans: 1 where true
	tableF []uint8     // 1 where false
	fails  bool        // the kernel failed on a value of it: take the slow road
}

func compileCall(e *plan.Call, depth int) (evalNode, error) {
	if e.F == nil || e.F.Kernel == nil {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "function %q cannot be evaluated here", callName(e.F))
	}
	n, err := newCall(e.F, e.Args, e.T, depth)
	if err != nil {
		return nil, err
	}
	if c := newCompare(n, e); c != nil {
		return c, nil
	}
	return n, nil
}

func callName(f *function.Overload) string {
	if f == nil {
		return ""
	}
	return f.Name
}

func newCall(f *function.Overload, args []plan.Expr, t types.Type, depth int) (*callNode, error) {
	as, err := compileList(args, depth)
	if err != nil {
		return nil, err
	}
	n := &callNode{f: f, args: as, vs: make([]vec.Vec, len(args)), dt: t.Arrow()}
	n.call.Ret = t
	n.call.State = &n.state
	for _, a := range args {
		n.call.ArgTypes = append(n.call.ArgTypes, a.Type())
	}
	return n, nil
}

// evalArgs fills n.vs. null says that the result is NULL for every row: a strict
// function has a NULL constant. consts is how many are constants.
func (n *callNode) evalArgs(x *evalContext, b *vec.Batch, sel []uint16) (consts int, null bool, err error) {
	for i, a := range n.args {
		v, err := a.eval(x, b, sel)
		if err != nil {
			return 0, false, err
		}
		n.vs[i] = v
		if v.Const {
			consts++
			if n.f.Strict && v.Arr.IsNull(0) {
				null = true
			}
		}
	}
	return consts, null, nil
}

func (n *callNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	if liveRows(b, sel) == 0 {
		return constNull(n.dt), nil
	}
	consts, null, err := n.evalArgs(x, b, sel)
	if err != nil {
		return vec.Vec{}, err
	}
	if null && n.f.Volatility != function.Volatile {
		return constNull(n.dt), nil
	}
	return n.apply(x, b.N, sel, consts)
}

// apply runs the kernel on n.vs.
func (n *callNode) apply(x *evalContext, rows int, sel []uint16, consts int) (vec.Vec, error) {
	if consts == len(n.vs) {
		if n.f.Volatility != function.Volatile {
			a, err := n.run(x, 1, nil)
			return vec.Vec{Arr: a, Const: true}, err
		}
		for i := range n.vs {
			n.vs[i] = vec.Vec{Arr: n.vs[i].Column(rows)}
		}
	} else if consts == len(n.vs)-1 {
		if d := n.dictArg(liveN(rows, sel)); d >= 0 && n.overDict(x, d) {
			v, err := n.mapDict(d)
			return v, err
		}
	}
	a, err := n.run(x, rows, sel)
	return vec.Vec{Arr: a}, err
}

func liveN(rows int, sel []uint16) int {
	if sel != nil {
		return len(sel)
	}
	return rows
}

func (n *callNode) run(x *evalContext, rows int, sel []uint16) (arrow.Array, error) {
	c := &n.call
	c.Ctx, c.Env, c.N, c.Sel = x.ctx, x.fn, rows, sel
	c.MaxBytes, c.MaxSetting = x.maxBytes, x.setting
	a, err := n.f.Kernel(c, n.vs)
	if err != nil {
		return nil, err
	}
	if a.Len() != rows {
		return nil, pgerr.New(pgerr.InternalError, "function %s returned %d rows for %d", n.f.Name, a.Len(), rows)
	}
	return a, nil
}

// dictArg returns the argument that is a dictionary over which the function may
// be computed value by value, or -1.
func (n *callNode) dictArg(live int) int {
	if !n.f.Strict || n.f.Volatility == function.Volatile {
		return -1
	}
	for i, v := range n.vs {
		if v.Const {
			continue
		}
		if !vec.IsDict(v.Arr) {
			return -1
		}
		if n.dict != nil && vec.SameDict(n.dict, v.Arr) {
			return i
		}
		if _, dict, ok := vec.DictView(v.Arr); ok && dict.Len() <= 2*live && dict.Len() <= vec.MaxRows {
			return i
		}
		return -1
	}
	return -1
}

// overDict makes n.onDict the results over the dictionary of argument d; false
// when the kernel failed on some value, which perhaps no row has.
func (n *callNode) overDict(x *evalContext, d int) bool {
	a := n.vs[d].Arr
	if n.dict != nil && vec.SameDict(n.dict, a) {
		return !n.fails
	}
	_, dict, _ := vec.DictView(a)
	n.dict, n.table, n.tableF = a, nil, nil
	keep := n.vs[d]
	n.vs[d] = vec.Vec{Arr: dict}
	out, err := n.run(x, dict.Len(), nil)
	n.vs[d] = keep
	n.onDict, n.fails = out, err != nil
	return !n.fails
}

// mapDict maps the results over the dictionary to rows.
func (n *callNode) mapDict(d int) (vec.Vec, error) {
	a := n.vs[d].Arr
	idx, _, _ := vec.DictView(a)
	valid, off := vec.Validity(a)
	if valid == nil {
		return vec.Vec{Arr: vec.Take(n.onDict, idx)}, nil
	}
	safe := make([]int32, len(idx))
	for i, x := range idx {
		safe[i] = -1
		if vec.BitAt(valid, off+i) {
			safe[i] = x
		}
	}
	return vec.Vec{Arr: vec.TakeNull(n.onDict, safe)}, nil
}

func (n *callNode) selectRows(x *evalContext, b *vec.Batch, sel []uint16, want bool, out []uint16) (int, error) {
	consts, null, err := n.evalArgs(x, b, sel)
	if err != nil || null && n.f.Volatility != function.Volatile {
		return 0, err
	}
	if consts == len(n.vs)-1 && consts < len(n.vs) {
		if d := n.dictArg(liveRows(b, sel)); d >= 0 && n.overDict(x, d) {
			return n.selectDict(d, b.N, sel, want, out), nil
		}
	}
	v, err := n.apply(x, b.N, sel, consts)
	if err != nil {
		return 0, err
	}
	return selectBool(v, b.N, sel, want, out), nil
}

func (n *callNode) selectDict(d, rows int, sel []uint16, want bool, out []uint16) int {
	a := n.vs[d].Arr
	idx, _, _ := vec.DictView(a)
	if n.table == nil {
		n.table, n.tableF = make([]uint8, n.onDict.Len()), make([]uint8, n.onDict.Len())
		b := n.onDict.(*array.Boolean)
		for i := range n.table {
			if b.IsValid(i) {
				if b.Value(i) {
					n.table[i] = 1
				} else {
					n.tableF[i] = 1
				}
			}
		}
	}
	if valid, off := vec.Validity(a); valid != nil {
		k := vec.SelectValid(valid, off, rows, sel, out)
		sel = out[:k]
	}
	if want {
		return vec.SelectTable(idx, n.table, sel, out)
	}
	return vec.SelectTable(idx, n.tableF, sel, out)
}

// EvalConst computes an expression without columns.
func EvalConst(ctx context.Context, e plan.Expr, params []types.Datum, env function.Env) (types.Datum, error) {
	ev, err := compileExpr(e)
	if err != nil {
		return nil, err
	}
	return ev.datum(&evalContext{ctx: ctx, fn: env, params: newParams(params, len(params))})
}

// paramSet holds the values of parameters: the client's, then those that Apply
// and InitPlan set. A set is not changed once expressions see it.
type paramSet struct {
	vals []types.Datum
	init []*initParam // nil entries: plain values
}

func newParams(client []types.Datum, n int) *paramSet {
	n = max(n, len(client))
	p := &paramSet{vals: make([]types.Datum, n), init: make([]*initParam, n)}
	copy(p.vals, client)
	return p
}

func (p *paramSet) get(ctx context.Context, i int) (types.Datum, error) {
	if i >= len(p.vals) {
		return nil, pgerr.New(pgerr.UndefinedParameter, "there is no parameter $%d", i+1)
	}
	if in := p.init[i]; in != nil {
		return in.value(ctx)
	}
	return p.vals[i], nil
}

// with returns a set in which the parameters idx have the values ds.
func (p *paramSet) with(idx []int, ds []types.Datum) *paramSet {
	out := &paramSet{vals: append([]types.Datum(nil), p.vals...), init: p.init}
	for k, i := range idx {
		for i >= len(out.vals) {
			out.vals = append(out.vals, nil)
			out.init = append(append([]*initParam(nil), out.init...), nil)
		}
		out.vals[i] = ds[k]
	}
	return out
}

// slots adds the input columns that e uses to need.
func slots(e plan.Expr, need []bool) {
	plan.Walk(e, func(e plan.Expr) bool {
		if s, ok := e.(*plan.Slot); ok && s.Index < len(need) {
			need[s.Index] = true
		}
		return true
	})
}

func internalf(format string, args ...any) error {
	return pgerr.New(pgerr.InternalError, "%s", fmt.Sprintf(format, args...))
}
