package vectorized

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// limitStage returns rows [offset, offset+count) and then stops what is below.
type limitStage struct {
	sc    *scope
	n     *plan.Limit
	req   request
	child stage
}

func newLimit(sc *scope, n *plan.Limit, req request) (stage, error) {
	need := make([]bool, len(n.Input.Schema()))
	orNeed(need, req)
	for _, k := range n.Keys {
		slots(k.Expr, need)
	}
	child, err := build(sc, n.Input, request{need: need, ordered: true, eager: true})
	return &limitStage{sc: sc, n: n, req: req, child: child}, err
}

func (s *limitStage) prepare(context.Context) (int, error) { return 1, nil }
func (s *limitStage) operator(int) (operator, error)       { return &limitOp{s: s}, nil }
func (s *limitStage) close()                               { s.child.close() }

type limitOp struct {
	s       *limitStage
	in      operator
	skip    int64
	left    int64 // rows still to give; -1 = all
	started bool
	done    bool
	// WITH TIES: the keys of the last row given.
	keys []*evaluator
	last []arrow.Array
}

func (o *limitOp) close() {
	if o.in != nil {
		o.in.close()
		o.in = nil
	}
}

func (o *limitOp) start(ctx context.Context) error {
	x := o.s.sc.eval(ctx)
	o.left = -1
	n := o.s.n
	for i, e := range []plan.Expr{n.Offset, n.Count} {
		if e == nil {
			continue
		}
		ev, err := compileExpr(e)
		if err != nil {
			return err
		}
		d, err := ev.datum(x)
		if err != nil {
			return err
		}
		if d == nil {
			continue
		}
		v, ok := d.(int64)
		switch {
		case !ok:
			return internalf("LIMIT is %T", d)
		case i == 0 && v < 0:
			return pgerr.New(pgerr.InvalidRowCountInOffset, "OFFSET must not be negative")
		case i == 0:
			o.skip = v
		case v < 0:
			return pgerr.New(pgerr.InvalidRowCountInLimit, "LIMIT must not be negative")
		default:
			o.left = v
		}
	}
	if n.WithTies {
		for _, k := range n.Keys {
			e, err := compileExpr(k.Expr)
			if err != nil {
				return err
			}
			o.keys = append(o.keys, e)
		}
	}
	o.started = true
	if o.left == 0 {
		o.done = true
		return nil
	}
	var err error
	o.in, err = serialize(ctx, o.s.sc.rt, o.s.child)
	return err
}

func (o *limitOp) next(ctx context.Context) (*vec.Batch, error) {
	if !o.started {
		if err := o.start(ctx); err != nil {
			return nil, err
		}
	}
	for !o.done {
		b, err := o.in.next(ctx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			o.done = true
			break
		}
		n := int64(b.Size())
		if n <= o.skip {
			o.skip -= n
			if ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
			continue
		}
		from, to := o.skip, n
		o.skip = 0
		if o.left == 0 { // only ties are wanted now
			b, err := o.ties(ctx, b, from)
			if b != nil || err != nil {
				return b, err
			}
			break
		}
		if o.left >= 0 {
			to = min(n, from+o.left)
			o.left -= to - from
		}
		out := cut(b, int(from), int(to))
		out.Schema = o.s.n.Out
		if o.left == 0 {
			if o.keys == nil {
				o.finish()
				return out, nil
			}
			if err := o.remember(ctx, out); err != nil {
				return nil, err
			}
			if to < n {
				more, err := o.ties(ctx, b, to)
				if err != nil {
					return nil, err
				}
				if more != nil {
					out = cut(b, int(from), int(to)+more.Size())
					out.Schema = o.s.n.Out
				}
			}
		}
		return out, nil
	}
	o.finish()
	return nil, nil
}

// finish stops what is below, so that it does no work for nobody.
func (o *limitOp) finish() {
	o.done = true
	o.close()
}

// cut returns live rows [from, to) of b.
func cut(b *vec.Batch, from, to int) *vec.Batch {
	out := *b
	if from == 0 && to == b.Size() {
		return &out
	}
	if b.Sel != nil {
		out.Sel = b.Sel[from:to:to]
		return &out
	}
	out.Cols = make([]arrow.Array, len(b.Cols))
	for i, c := range b.Cols {
		if c != nil {
			out.Cols[i] = vec.Slice(c, from, to)
		}
	}
	out.N = to - from
	return &out
}

func (o *limitOp) keyCols(ctx context.Context, b *vec.Batch) ([]arrow.Array, error) {
	x := o.s.sc.eval(ctx)
	out := make([]arrow.Array, len(o.keys))
	for i, k := range o.keys {
		var err error
		if out[i], err = k.column(x, b); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func (o *limitOp) remember(ctx context.Context, b *vec.Batch) error {
	cols, err := o.keyCols(ctx, b)
	if err != nil {
		return err
	}
	i := b.N - 1
	if b.Sel != nil {
		i = int(b.Sel[len(b.Sel)-1])
	}
	for k := range cols {
		cols[k] = vec.Take(cols[k], []int32{int32(i)})
	}
	o.last = cols
	return nil
}

// ties returns the rows of b from live row from on that tie with the last row
// given; fewer than all ends the result.
func (o *limitOp) ties(ctx context.Context, b *vec.Batch, from int64) (*vec.Batch, error) {
	cols, err := o.keyCols(ctx, b)
	if err != nil {
		return nil, err
	}
	cmp := vec.NewRowCompare(keyColumns(o.s.n.Keys), cols, o.last)
	n := int64(b.Size())
	to := from
	for to < n {
		i := int(to)
		if b.Sel != nil {
			i = int(b.Sel[to])
		}
		if cmp(i, 0) != 0 {
			break
		}
		to++
	}
	if to < n {
		o.finish()
	}
	if to == from {
		return nil, nil
	}
	out := cut(b, int(from), int(to))
	out.Schema = o.s.n.Out
	return out, nil
}
