package vectorized

import (
	"context"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// valuesStage yields rows of expressions without columns.
type valuesStage struct {
	sc *scope
	n  *plan.Values
}

func newValues(sc *scope, n *plan.Values, _ request) (stage, error) { return &valuesStage{sc, n}, nil }

func (s *valuesStage) prepare(context.Context) (int, error) { return 1, nil }
func (s *valuesStage) close()                               {}
func (s *valuesStage) operator(int) (operator, error)       { return &valuesOp{s: s}, nil }

type valuesOp struct {
	s  *valuesStage
	at int
}

func (o *valuesOp) close() {}

func (o *valuesOp) next(ctx context.Context) (*vec.Batch, error) {
	rows := o.s.n.Rows
	if o.at >= len(rows) {
		return nil, nil
	}
	rows = rows[o.at:min(len(rows), o.at+o.s.sc.rt.rows)]
	o.at += len(rows)
	out := newBatch(o.s.n.Out, len(rows))
	x := o.s.sc.eval(ctx)
	for c, f := range o.s.n.Out {
		ds := make([]types.Datum, len(rows))
		for r, row := range rows {
			if k, ok := row[c].(*plan.Const); ok {
				ds[r] = k.Value
				continue
			}
			e, err := compileExpr(row[c])
			if err != nil {
				return nil, err
			}
			if ds[r], err = e.datum(x); err != nil {
				return nil, err
			}
		}
		out.Cols = append(out.Cols, vec.FromDatums(f.Type, ds))
	}
	return out, nil
}

// tableFuncStage runs set-returning functions in step. Unless somebody depends
// on the order of rows, several workers share the one source: what is done with
// the rows costs more than making them.
type tableFuncStage struct {
	sc    *scope
	n     *plan.TableFunc
	req   request
	width int
	src   *setSource
	mu    sync.Mutex // guards src
}

func newTableFunc(sc *scope, n *plan.TableFunc, req request) (stage, error) {
	return &tableFuncStage{sc: sc, n: n, req: req}, nil
}

// manyRows is the estimate from which on workers share a source.
const manyRows = 50_000

func (s *tableFuncStage) prepare(context.Context) (int, error) {
	s.width = 1
	if !s.req.ordered && s.n.E.Rows >= manyRows {
		s.width = s.sc.rt.workers
	}
	s.src = &setSource{sc: s.sc, calls: s.n.Calls}
	return s.width, nil
}

func (s *tableFuncStage) operator(int) (operator, error) { return &tableFuncOp{s: s}, nil }

func (s *tableFuncStage) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.src != nil {
		s.src.close()
	}
}

type tableFuncOp struct{ s *tableFuncStage }

func (o *tableFuncOp) close() {}

func (o *tableFuncOp) next(ctx context.Context) (*vec.Batch, error) {
	s := o.s
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.src.open {
		args := make([][]types.Datum, len(s.n.Calls))
		x := s.sc.eval(ctx)
		for i, c := range s.n.Calls {
			for _, a := range c.Args {
				e, err := compileExpr(a)
				if err != nil {
					return nil, err
				}
				d, err := e.datum(x)
				if err != nil {
					return nil, err
				}
				args[i] = append(args[i], d)
			}
		}
		if err := s.src.start(ctx, args); err != nil {
			return nil, err
		}
	}
	from := s.src.done
	cols, n, err := s.src.next(ctx, s.sc.rt.rows)
	if err != nil || n == 0 {
		return nil, err
	}
	out := newBatch(s.n.Out, n)
	out.Cols = cols
	if s.n.Ordinality {
		v := make([]int64, n)
		for i := range v {
			v[i] = from + int64(i) + 1
		}
		out.Cols = append(out.Cols, vec.Make(arrow.PrimitiveTypes.Int64, v, nil))
	}
	return out, nil
}

// setSource runs set-returning functions in step for one row of arguments: rows
// go on until the longest ends, the others give NULL.
type setSource struct {
	sc    *scope
	calls []plan.SetCall
	rd    []setReader
	state []any
	open  bool
	done  int64 // rows given
}

type setReader struct {
	r    function.SetReader
	cols []arrow.Array // not given yet
	n    int
	end  bool
}

func (s *setSource) start(ctx context.Context, args [][]types.Datum) error {
	if s.state == nil {
		s.state = make([]any, len(s.calls))
	}
	s.rd = make([]setReader, len(s.calls))
	s.open, s.done = true, 0
	for i, c := range s.calls {
		fc := &function.Call{Ctx: ctx, Env: s.sc.rt.fn, N: 1, State: &s.state[i]}
		if len(c.T) > 0 {
			fc.Ret = c.T[0].Type
		}
		if len(c.T) > 1 {
			fc.Ret = types.Type{Kind: types.Record, Fields: c.T}
		}
		for _, a := range c.Args {
			fc.ArgTypes = append(fc.ArgTypes, a.Type())
		}
		if c.F == nil || c.F.Set == nil {
			return internalf("function %s returns no set", callName(c.F))
		}
		r, err := c.F.Set(fc, args[i])
		if err != nil {
			return err
		}
		s.rd[i].r = r
		s.rd[i].end = r == nil
	}
	return nil
}

// next returns up to limit rows of all calls' columns; n is 0 at the end.
func (s *setSource) next(ctx context.Context, limit int) (cols []arrow.Array, n int, err error) {
	n = 0
	for i := range s.rd {
		rd := &s.rd[i]
		for rd.n == 0 && !rd.end {
			c, err := rd.r.Next(ctx, limit)
			if err != nil {
				return nil, 0, err
			}
			if c == nil {
				rd.end = true
				break
			}
			rd.cols = c
			if len(c) > 0 {
				rd.n = c[0].Len()
			}
			if rd.n == 0 && ctx.Err() != nil {
				return nil, 0, context.Cause(ctx)
			}
		}
	}
	// As many rows as the shortest that goes on, all of the last.
	for i := range s.rd {
		if k := s.rd[i].n; k > 0 && (n == 0 || k < n) {
			n = k
		}
	}
	n = min(n, limit)
	if n == 0 {
		return nil, 0, nil
	}
	for i := range s.rd {
		rd := &s.rd[i]
		if rd.n == 0 {
			for _, f := range s.calls[i].T {
				cols = append(cols, vec.MakeNull(f.Type.Arrow(), n))
			}
			continue
		}
		for k, c := range rd.cols {
			cols = append(cols, vec.Slice(c, 0, n))
			rd.cols[k] = vec.Slice(c, n, rd.n)
		}
		rd.n -= n
	}
	s.done += int64(n)
	return cols, n, nil
}

func (s *setSource) close() {
	for i := range s.rd {
		if s.rd[i].r != nil {
			_ = s.rd[i].r.Close() // readers: nothing to lose
		}
	}
	s.rd = nil
	s.open = false
}

// projectSetStage is Project with set-returning functions.
type projectSetStage struct {
	sc    *scope
	n     *plan.ProjectSet
	child stage
	req   request
}

func newProjectSet(sc *scope, n *plan.ProjectSet, req request) (stage, error) {
	in := len(n.Input.Schema())
	total := in
	for _, c := range n.Sets {
		total += len(c.T)
	}
	all := make([]bool, total)
	for i, e := range n.Exprs {
		if req.needs(i) {
			slots(e, all)
		}
	}
	for _, c := range n.Sets {
		for _, a := range c.Args {
			slots(a, all[:in])
		}
	}
	child, err := build(sc, n.Input, request{need: all[:in], ordered: req.ordered, eager: req.eager})
	if err != nil {
		return nil, err
	}
	return &projectSetStage{sc: sc, n: n, child: child, req: req}, nil
}

func (s *projectSetStage) prepare(ctx context.Context) (int, error) { return s.child.prepare(ctx) }
func (s *projectSetStage) close()                                   { s.child.close() }

func (s *projectSetStage) operator(w int) (operator, error) {
	in, err := s.child.operator(w)
	if err != nil {
		return nil, err
	}
	o := &projectSetOp{s: s, in: in, x: s.sc.eval(context.Background()), src: &setSource{sc: s.sc, calls: s.n.Sets}}
	for _, c := range s.n.Sets {
		es, err := compileAll(c.Args)
		if err != nil {
			in.close()
			return nil, err
		}
		o.args = append(o.args, es)
	}
	if o.es, err = compileAll(s.n.Exprs); err != nil {
		in.close()
		return nil, err
	}
	return o, nil
}

type projectSetOp struct {
	s    *projectSetStage
	in   operator
	x    *evalContext
	args [][]*evaluator
	es   []*evaluator
	src  *setSource
	b    *vec.Batch
	vals [][]vec.Vec // arguments over b
	live int         // live rows of b that are done
}

func (o *projectSetOp) close() {
	o.src.close()
	o.in.close()
}

func (o *projectSetOp) next(ctx context.Context) (*vec.Batch, error) {
	o.x.ctx = ctx
	limit := o.s.sc.rt.rows
	var rows []int32
	var parts [][]arrow.Array
	var from *vec.Batch
	for len(rows) < limit {
		if o.src.open {
			cols, n, err := o.src.next(ctx, limit-len(rows))
			if err != nil {
				return nil, err
			}
			if n > 0 {
				i := int32(o.live - 1)
				if o.b.Sel != nil {
					i = int32(o.b.Sel[o.live-1])
				}
				for range n {
					rows = append(rows, i)
				}
				parts = append(parts, cols)
				from = o.b
				continue
			}
			o.src.close()
		}
		if o.b == nil || o.live == o.b.Size() {
			if from != nil {
				break // rows of one input batch only
			}
			b, err := o.in.next(ctx)
			if err != nil {
				return nil, err
			}
			if b == nil {
				return nil, nil
			}
			o.b, o.live = b, 0
			o.vals = o.vals[:0]
			for _, es := range o.args {
				vs := make([]vec.Vec, len(es))
				for k, e := range es {
					if vs[k], err = e.value(o.x, b); err != nil {
						return nil, err
					}
				}
				o.vals = append(o.vals, vs)
			}
			continue
		}
		i := o.live
		if o.b.Sel != nil {
			i = int(o.b.Sel[i])
		}
		o.live++
		args := make([][]types.Datum, len(o.vals))
		for c, vs := range o.vals {
			for k, v := range vs {
				args[c] = append(args[c], vec.DatumAt(v.Arr, o.args[c][k].t, at(v, i)))
			}
		}
		if err := o.src.start(ctx, args); err != nil {
			return nil, err
		}
	}
	mid := &vec.Batch{N: len(rows)}
	for _, c := range from.Cols {
		if c == nil {
			mid.Cols = append(mid.Cols, nil)
		} else {
			mid.Cols = append(mid.Cols, vec.Take(c, rows))
		}
	}
	for k := range parts[0] {
		sub := make([]arrow.Array, len(parts))
		for p := range parts {
			sub[p] = parts[p][k]
		}
		mid.Cols = append(mid.Cols, vec.Concat(sub[0].DataType(), sub))
	}
	out := &vec.Batch{Schema: o.s.n.Out, N: mid.N, Cols: make([]arrow.Array, len(o.es))}
	for i, e := range o.es {
		if !o.s.req.needs(i) {
			continue
		}
		var err error
		if out.Cols[i], err = e.column(o.x, mid); err != nil {
			return nil, err
		}
	}
	return out, nil
}
