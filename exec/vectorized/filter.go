package vectorized

import (
	"context"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// filterStage keeps rows for which a condition is true: a new selection over the
// same arrays. Where few rows are left they are copied together, so that what
// follows does not work on holes.
type filterStage struct {
	sc    *scope
	n     *plan.Filter
	child stage
	req   request
}

func newFilter(sc *scope, n *plan.Filter, req request) (stage, error) {
	need := needOf(n.Input, n.Cond)
	orNeed(need, req)
	for _, l := range req.late {
		need[l.col] = true
	}
	sub := req
	if b := req.bound; b != nil {
		sub.bound = &boundRequest{col: b.col, b: b.b} // of what is left here
	}
	sub.need = need
	child, err := build(sc, n.Input, sub)
	if err != nil {
		return nil, err
	}
	return &filterStage{sc: sc, n: n, child: child, req: req}, nil
}

func (s *filterStage) prepare(ctx context.Context) (int, error) { return s.child.prepare(ctx) }

func (s *filterStage) operator(w int) (operator, error) {
	in, err := s.child.operator(w)
	if err != nil {
		return nil, err
	}
	e, err := s.sc.rt.evaluator(s.n.Cond)
	if err != nil {
		in.close()
		return nil, err
	}
	return &filterOp{s: s, in: in, cond: e, x: s.sc.eval(context.Background()), out: newCoalescer(s.sc.rt, s.req)}, nil
}

func (s *filterStage) close() { s.child.close() }

type filterOp struct {
	s    *filterStage
	in   operator
	cond *evaluator
	x    *evalContext
	out  *coalescer
	end  bool
}

func (o *filterOp) next(ctx context.Context) (*vec.Batch, error) {
	if o.end {
		return nil, nil
	}
	o.x.ctx = ctx
	for {
		b, err := o.in.next(ctx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			o.end = true
			return o.out.flush(), nil
		}
		sel, err := o.cond.selectRows(o.x, b)
		if err != nil {
			return nil, err
		}
		if out := o.out.add(b, sel); out != nil {
			if len(out.Sel) > 0 {
				o.cond.out = nil // given away with the batch
			}
			return out, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

func (o *filterOp) close() {
	o.in.close()
	o.s.sc.rt.release(o.s.n.Cond, o.cond)
	o.cond = nil
}

// coalescer puts the survivors of selective operators together into batches
// worth working on.
type coalescer struct {
	rows  int
	eager bool
	req   request
	parts [][]arrow.Array
	size  int
	like  *vec.Batch
}

func newCoalescer(rt *runtimeEnv, req request) *coalescer {
	return &coalescer{rows: rt.rows, eager: req.eager, req: req}
}

// add takes the rows sel of b and returns a batch when one is due; sel belongs to
// that batch if it has a selection.
func (c *coalescer) add(b *vec.Batch, sel []uint16) *vec.Batch {
	switch {
	case len(sel) == 0:
		return nil
	case len(sel) == b.N && c.size == 0:
		return &vec.Batch{Schema: b.Schema, Cols: b.Cols, N: b.N}
	case len(sel)*4 >= b.N && len(sel)*4 >= c.rows && c.size == 0, c.eager && len(sel)*4 >= b.N:
		return &vec.Batch{Schema: b.Schema, Cols: b.Cols, N: b.N, Sel: sel}
	}
	cols := make([]arrow.Array, len(b.Cols))
	for i, a := range b.Cols {
		if a != nil && c.req.needs(i) {
			cols[i] = vec.Take(a, sel)
		}
	}
	if c.eager {
		return &vec.Batch{Schema: b.Schema, Cols: cols, N: len(sel)}
	}
	if c.size+len(sel) > c.rows {
		out := c.flush()
		c.keep(b, cols, len(sel))
		return out
	}
	c.keep(b, cols, len(sel))
	if c.size*2 >= c.rows {
		return c.flush()
	}
	return nil
}

func (c *coalescer) keep(b *vec.Batch, cols []arrow.Array, n int) {
	c.like = b
	c.parts = append(c.parts, cols)
	c.size += n
}

// flush returns what is kept, or nil.
func (c *coalescer) flush() *vec.Batch {
	if c.size == 0 {
		return nil
	}
	out := &vec.Batch{Schema: c.like.Schema, Cols: make([]arrow.Array, len(c.like.Cols)), N: c.size}
	sub := make([]arrow.Array, len(c.parts))
	for i := range out.Cols {
		if c.parts[0][i] == nil {
			continue
		}
		for k := range sub {
			sub[k] = c.parts[k][i]
		}
		out.Cols[i] = vec.Concat(sub[0].DataType(), sub)
	}
	c.parts, c.size = c.parts[:0], 0
	return out
}

// projectStage computes expressions.
type projectStage struct {
	sc    *scope
	n     *plan.Project
	child stage
	req   request
}

func newProject(sc *scope, n *plan.Project, req request) (stage, error) {
	need := make([]bool, len(n.Input.Schema()))
	for i, e := range n.Exprs {
		if req.needs(i) {
			slots(e, need)
		}
	}
	sub := req
	sub.need = need
	if b := req.bound; b != nil {
		sub.bound = nil
		if s, ok := n.Exprs[b.col].(*plan.Slot); ok {
			sub.bound = &boundRequest{col: s.Index, b: b.b, rows: b.rows}
		}
	}
	sub.late = nil
	for _, l := range req.late {
		if s, ok := n.Exprs[l.col].(*plan.Slot); ok {
			sub.late = append(sub.late, lateRequest{col: s.Index, f: l.f})
			need[s.Index] = true
		}
	}
	child, err := build(sc, n.Input, sub)
	if err != nil {
		return nil, err
	}
	return &projectStage{sc: sc, n: n, child: child, req: req}, nil
}

func (s *projectStage) prepare(ctx context.Context) (int, error) { return s.child.prepare(ctx) }

func (s *projectStage) operator(w int) (operator, error) {
	in, err := s.child.operator(w)
	if err != nil {
		return nil, err
	}
	o := &projectOp{s: s, in: in, x: s.sc.eval(context.Background()), schema: s.n.Out, es: make([]*evaluator, len(s.n.Exprs))}
	for i, e := range s.n.Exprs {
		if s.req.needs(i) {
			if o.es[i], err = s.sc.rt.evaluator(e); err != nil {
				in.close()
				return nil, err
			}
		}
	}
	return o, nil
}

func (s *projectStage) close() { s.child.close() }

type projectOp struct {
	s      *projectStage
	in     operator
	x      *evalContext
	es     []*evaluator // nil: not needed
	schema types.Schema
	rest   []*vec.Batch // parts of a batch whose results are too long together
}

func (o *projectOp) next(ctx context.Context) (*vec.Batch, error) {
	o.x.ctx = ctx
	for {
		var b *vec.Batch
		var err error
		if k := len(o.rest); k > 0 {
			b, o.rest = o.rest[k-1], o.rest[:k-1]
		} else if b, err = o.in.next(ctx); err != nil || b == nil {
			return nil, err
		}
		out, err := o.project(b)
		if live := b.Size(); errors.Is(err, function.ErrBatchBytes) && live > 1 {
			sel := liveSel(b)
			low, high := *b, *b
			low.Sel, high.Sel = sel[:live/2], sel[live/2:]
			o.rest = append(o.rest, &high, &low)
			continue
		}
		return out, err
	}
}

func (o *projectOp) project(b *vec.Batch) (*vec.Batch, error) {
	out := &vec.Batch{Schema: o.schema, Cols: make([]arrow.Array, len(o.es)), N: b.N, Sel: b.Sel}
	for i, e := range o.es {
		if e == nil {
			continue
		}
		v, err := e.root.eval(o.x, b, b.Sel)
		if err != nil {
			return nil, err
		}
		out.Cols[i] = v.Column(b.N)
	}
	return out, nil
}

func (o *projectOp) close() {
	o.in.close()
	for i, e := range o.es {
		o.s.sc.rt.release(o.s.n.Exprs[i], e)
		o.es[i] = nil
	}
}
