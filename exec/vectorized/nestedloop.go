package vectorized

import (
	"context"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// nestedStage joins by any condition: the right side is collected once, and
// every left row is paired with all of it, a batch of pairs at a time.
type nestedStage struct {
	sc          *scope
	n           *plan.NestedLoop
	req         request
	left, right stage
	acc         *mem.Account
	store       *rowStore
	empty       bool
	outer       outerRows
}

func newNestedLoop(sc *scope, n *plan.NestedLoop, req request) (stage, error) {
	s := &nestedStage{sc: sc, n: n, req: req, acc: sc.rt.acc.Child("work_mem", 0)}
	ln, rn := joinNeeds(n.Left, n.Right, n.Cond, n.Kind, req)
	var err error
	if s.right, err = build(sc, n.Right, request{need: rn, ordered: req.ordered}); err != nil {
		return nil, err
	}
	s.left, err = build(sc, n.Left, request{need: ln, ordered: req.ordered, eager: req.eager})
	return s, err
}

func (s *nestedStage) prepare(ctx context.Context) (int, error) {
	_, keep := joinNeeds(s.n.Left, s.n.Right, s.n.Cond, s.n.Kind, s.req)
	c := &collector{schema: s.n.Right.Schema(), need: keep, acc: s.acc}
	if err := runSink(ctx, s.sc.rt, s.right, c); err != nil {
		return 0, err
	}
	var err error
	if s.store, err = c.store(ctx, s.sc.rt); err != nil {
		return 0, err
	}
	s.sc.rt.stats.Node(s.n.ID).peak(s.acc)
	if s.store.n == 0 {
		switch s.n.Kind {
		case plan.Inner, plan.Semi, plan.Right:
			s.empty = true
			return 1, nil
		}
	}
	w, err := s.left.prepare(ctx)
	s.outer.active = w
	return w, err
}

func (s *nestedStage) close() {
	s.left.close()
	s.right.close()
	s.store = nil
	s.acc.Close()
}

func (s *nestedStage) operator(w int) (operator, error) {
	if s.empty {
		return emptyOp{}, nil
	}
	p, err := newPairer(s.sc, s.n.Left, s.n.Right, s.n.Kind, s.n.Cond, s.n.Single, s.n.Out, s.req, s.store)
	if err != nil {
		return nil, err
	}
	in, err := s.left.operator(w)
	if err != nil {
		return nil, err
	}
	return &nestedOp{s: s, in: in, p: p}, nil
}

type nestedOp struct {
	s     *nestedStage
	in    operator
	p     *pairer
	b     *vec.Batch
	at    int // live row of b
	right int // next right row for it
	l     []uint16
	r     []int32
	done  bool
	rest  *outerRest
}

func (o *nestedOp) close() { o.in.close() }

func (o *nestedOp) next(ctx context.Context) (*vec.Batch, error) {
	limit := o.s.sc.rt.rows
	for {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		switch {
		case o.done:
			if o.rest == nil {
				return nil, nil
			}
			return o.rest.next(o.p, limit), nil
		case o.b == nil:
			b, err := o.in.next(ctx)
			if err != nil {
				return nil, err
			}
			if b == nil {
				o.done = true
				o.rest = o.s.outer.finish(o.p)
				continue
			}
			o.b, o.at, o.right = b, 0, 0
			o.p.start(b)
			continue
		}
		if cap(o.l) < limit {
			o.l, o.r = make([]uint16, limit), make([]int32, limit)
		}
		l, r := o.l[:limit], o.r[:limit]
		k, n, live := 0, o.s.store.n, o.b.Size()
		for k < limit && o.at < live {
			i := uint16(o.at)
			if o.b.Sel != nil {
				i = o.b.Sel[o.at]
			}
			if o.right >= n || o.p.marksOnly() && o.p.matched[i]&1 != 0 {
				o.at++
				o.right = 0
				continue
			}
			m := min(limit-k, n-o.right)
			for j := range m {
				l[k+j], r[k+j] = i, int32(o.right+j)
			}
			k += m
			o.right += m
		}
		var out *vec.Batch
		var err error
		if k > 0 {
			out, err = o.p.pairs(ctx, l[:k], r[:k])
		} else {
			out = o.p.finish()
			o.b = nil
		}
		if err != nil || out != nil {
			return out, err
		}
	}
}
