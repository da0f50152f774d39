package vectorized

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// setOpStage is INTERSECT or EXCEPT: the right side is counted per distinct row,
// then the left side streams past and uses the counts up.
type setOpStage struct {
	sc          *scope
	n           *plan.SetOp
	left, right stage
	acc         *mem.Account
}

func newSetOp(sc *scope, n *plan.SetOp, req request) (stage, error) {
	s := &setOpStage{sc: sc, n: n, acc: sc.rt.acc.Child("work_mem", 0)}
	var err error
	if s.left, err = build(sc, n.Left, request{ordered: req.ordered}); err != nil {
		return nil, err
	}
	s.right, err = build(sc, n.Right, request{})
	return s, err
}

func (s *setOpStage) prepare(context.Context) (int, error) { return 1, nil }
func (s *setOpStage) operator(int) (operator, error)       { return &setOpOp{s: s}, nil }
func (s *setOpStage) close() {
	s.sc.rt.stats.Node(s.n.ID).peak(s.acc)
	s.left.close()
	s.right.close()
	s.acc.Close()
}

type setOpOp struct {
	s       *setOpStage
	in      operator
	set     groupTable
	count   []int64 // rows of the right side by group, less what was used up
	charged int64
	num     []uint32
}

func (o *setOpOp) close() {
	if o.in != nil {
		o.in.close()
	}
}

// lookup numbers the live rows of b and makes room in count.
func (o *setOpOp) lookup(b *vec.Batch) ([]uint32, error) {
	if o.set == nil {
		o.set = newGroupTable(schemaTypes(o.s.n.Left.Schema()), b.Cols, o.s.acc, false)
	}
	if cap(o.num) < b.Size() {
		o.num = make([]uint32, b.Size())
	}
	num := o.num[:b.Size()]
	if err := o.set.lookup(b.Cols, b.N, b.Sel, num, false); err != nil {
		return nil, err
	}
	for len(o.count) < o.set.len() {
		o.count = append(o.count, 0)
	}
	if d := o.set.size() + int64(cap(o.count))*8 - o.charged; d > 0 {
		if err := o.s.acc.Grow(d); err != nil {
			return nil, err
		}
		o.charged += d
	}
	return num, nil
}

func (o *setOpOp) start(ctx context.Context) error {
	r, err := serialize(ctx, o.s.sc.rt, o.s.right)
	if err != nil {
		return err
	}
	defer r.close()
	for {
		b, err := r.next(ctx)
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		if b.Size() == 0 {
			continue
		}
		num, err := o.lookup(b)
		if err != nil {
			return err
		}
		for _, g := range num {
			o.count[g]++
		}
	}
	o.in, err = serialize(ctx, o.s.sc.rt, o.s.left)
	return err
}

func (o *setOpOp) next(ctx context.Context) (*vec.Batch, error) {
	if o.in == nil {
		if err := o.start(ctx); err != nil {
			return nil, err
		}
	}
	n := o.s.n
	for {
		b, err := o.in.next(ctx)
		if err != nil || b == nil {
			return nil, err
		}
		if b.Size() == 0 {
			continue
		}
		num, err := o.lookup(b)
		if err != nil {
			return nil, err
		}
		sel := make([]uint16, 0, len(num))
		for k, g := range num {
			c := o.count[g]
			pass := false
			switch {
			case n.Kind == plan.Intersect && n.All:
				if pass = c > 0; pass {
					o.count[g]--
				}
			case n.Kind == plan.Intersect:
				pass = c > 0
				o.count[g] = 0
			case n.All:
				if pass = c == 0; !pass {
					o.count[g]--
				}
			default:
				pass = c == 0
				o.count[g] = 1 // once is enough
			}
			if pass {
				r := uint16(k)
				if b.Sel != nil {
					r = b.Sel[k]
				}
				sel = append(sel, r)
			}
		}
		if len(sel) > 0 {
			return &vec.Batch{Schema: n.Out, Cols: b.Cols, N: b.N, Sel: sel}, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// appendStage is UNION ALL. In order it runs its inputs one after the other;
// otherwise every worker takes part in one input after the other. An input is
// made ready when the first worker gets there.
type appendStage struct {
	sc   *scope
	n    *plan.Append
	req  request
	kids []*appendKid
}

type appendKid struct {
	st    stage
	once  sync.Once
	ready atomic.Bool
	width int
	err   error
}

func newAppend(sc *scope, n *plan.Append, req request) (stage, error) {
	s := &appendStage{sc: sc, n: n, req: req}
	for _, in := range n.Ins {
		st, err := build(sc, in, request{need: req.need, ordered: req.ordered, eager: req.eager})
		if err != nil {
			s.close()
			return nil, err
		}
		s.kids = append(s.kids, &appendKid{st: st})
	}
	return s, nil
}

func (s *appendStage) prepare(context.Context) (int, error) {
	if s.req.ordered {
		return 1, nil
	}
	return s.sc.rt.workers, nil
}

func (s *appendStage) operator(w int) (operator, error) { return &appendOp{s: s, w: w}, nil }

func (s *appendStage) close() {
	for _, k := range s.kids {
		k.st.close()
	}
}

type appendOp struct {
	s  *appendStage
	w  int
	at int
	in operator
}

func (o *appendOp) close() {
	if o.in != nil {
		o.in.close()
		o.in = nil
	}
}

func (o *appendOp) next(ctx context.Context) (*vec.Batch, error) {
	for {
		if o.in == nil {
			if o.at >= len(o.s.kids) {
				return nil, nil
			}
			k := o.s.kids[o.at]
			o.at++
			if err := o.open(ctx, k); err != nil {
				return nil, err
			}
			if o.in == nil {
				continue
			}
		}
		b, err := o.in.next(ctx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			o.close()
			continue
		}
		return &vec.Batch{Schema: o.s.n.Out, Cols: b.Cols, N: b.N, Sel: b.Sel}, nil
	}
}

func (o *appendOp) open(ctx context.Context, k *appendKid) (err error) {
	if o.s.req.ordered {
		o.in, err = serialize(ctx, o.s.sc.rt, k.st)
		return err
	}
	if !k.ready.Load() {
		// Another worker may be at it for long: wait without a slot.
		h := holderOf(ctx)
		h.release()
		k.once.Do(func() {
			if k.err = h.acquire(ctx); k.err == nil {
				k.width, k.err = k.st.prepare(ctx)
			}
			k.ready.Store(true)
		})
		if err := h.acquire(ctx); err != nil {
			return err
		}
	}
	if k.err != nil {
		return k.err
	}
	if o.w < k.width {
		o.in, err = k.st.operator(o.w)
	}
	return err
}
