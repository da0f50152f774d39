package vectorized

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// semiBuildStage is a semi or anti join that builds on its left side, because
// that is much the smaller one: the right side streams past and marks the left
// rows that have a match. Scans of the right side read only what may match.
type semiBuildStage struct {
	sc          *scope
	n           *plan.HashJoin
	req         request
	left, right stage
	acc         *mem.Account
	stats       *NodeStats
	filters     []*keyFilter

	store    *rowStore // left columns, then the key columns
	table    *joinTable
	keyTypes []types.Type
	need     []bool // columns of left ++ right that the condition uses

	mu      sync.Mutex // guards matched
	matched []byte
	rows    []int32 // the result
	at      atomic.Int64
}

func newSemiBuild(sc *scope, n *plan.HashJoin, req request) (stage, error) {
	s := &semiBuildStage{sc: sc, n: n, req: req, acc: sc.rt.acc.Child("work_mem", 0), stats: sc.rt.stats.Node(n.ID)}
	nl, nr := len(n.Left.Schema()), len(n.Right.Schema())
	s.need = make([]bool, nl+nr)
	if n.Residual != nil {
		slots(n.Residual, s.need)
	}
	ln := append([]bool(nil), s.need[:nl]...)
	orNeed(ln, req)
	rn := append([]bool(nil), s.need[nl:]...)
	sub := request{need: rn}
	for i := range n.LeftKeys {
		slots(n.LeftKeys[i], ln)
		slots(n.RightKeys[i], rn)
		s.keyTypes = append(s.keyTypes, n.LeftKeys[i].Type())
		f := &keyFilter{}
		s.filters = append(s.filters, f)
		if e := plan.Unchanged(n.RightKeys[i]); e != nil && !s.nullEq(i) {
			sub.late = append(sub.late, lateRequest{col: e.Index, f: f})
		}
	}
	var err error
	if s.left, err = build(sc, n.Left, request{need: ln}); err != nil {
		return nil, err
	}
	s.right, err = build(sc, n.Right, sub)
	return s, err
}

func (s *semiBuildStage) nullEq(i int) bool { return i < len(s.n.NullEq) && s.n.NullEq[i] }

func (s *semiBuildStage) prepare(ctx context.Context) (int, error) {
	n := s.n
	nl := len(n.Left.Schema())
	keep := append([]bool(nil), s.need[:nl]...)
	orNeed(keep, s.req)
	keys := make([]plan.SortKey, len(n.LeftKeys))
	for i, k := range n.LeftKeys {
		keys[i].Expr = k
	}
	c := &collector{schema: n.Left.Schema(), need: keep, acc: s.acc}
	c.onBatch = func(int) (func(context.Context, *vec.Batch) (*vec.Batch, error), error) {
		return appendKeys(s.sc, keys, nl)
	}
	if err := runSink(ctx, s.sc.rt, s.left, c); err != nil {
		return 0, err
	}
	var err error
	if s.store, err = c.store(ctx, s.sc.rt); err != nil {
		return 0, err
	}
	s.stats.add("build rows", int64(s.store.n))
	if s.store.n == 0 {
		return 1, nil
	}
	kc := s.store.cols[nl:]
	if s.table, err = buildJoinTable(ctx, s.sc.rt, s.acc, s.keyTypes, kc, s.store.n, n.NullEq); err != nil {
		return 0, err
	}
	for i, f := range s.filters {
		if !s.nullEq(i) {
			f.fill(s.keyTypes[i], kc[i].parts, s.acc)
		}
	}
	s.matched = vec.NewBitmap(s.store.n)
	if err := runSink(ctx, s.sc.rt, s.right, s); err != nil {
		return 0, err
	}
	s.stats.peak(s.acc)
	want := n.Kind == plan.Semi
	if err := s.acc.Grow(int64(s.store.n) * 4); err != nil {
		return 0, err
	}
	s.rows = make([]int32, 0, s.store.n)
	for r := range s.store.n {
		if vec.BitAt(s.matched, r) == want {
			s.rows = append(s.rows, int32(r))
		}
	}
	return max(1, min(s.sc.rt.workers, len(s.rows)/manyRows)), nil
}

func (s *semiBuildStage) close() {
	s.left.close()
	s.right.close()
	s.store, s.table = nil, nil
	s.acc.Close()
}

func (s *semiBuildStage) local(int) (localSink, error) {
	l := &semiMark{s: s, x: s.sc.eval(context.Background()), probe: s.table.probe(), matched: vec.NewBitmap(s.store.n)}
	var err error
	if l.keys, err = compileAll(s.n.RightKeys); err != nil {
		return nil, err
	}
	if s.n.Residual != nil {
		l.cond, err = compileExpr(s.n.Residual)
	}
	return l, err
}

// semiMark probes with right rows for one worker.
type semiMark struct {
	s       *semiBuildStage
	x       *evalContext
	keys    []*evaluator
	cond    *evaluator
	probe   *joinProbe
	matched []byte // by left row
	sel     []uint16
	head    []int32
	l       []int32
	r       []uint16
}

func (m *semiMark) combine(context.Context) error {
	m.s.mu.Lock()
	defer m.s.mu.Unlock()
	for i, b := range m.matched {
		m.s.matched[i] |= b
	}
	return nil
}

func (m *semiMark) consume(ctx context.Context, b *vec.Batch) error {
	m.x.ctx = ctx
	cols := make([]arrow.Array, len(m.keys))
	for i, k := range m.keys {
		var err error
		if cols[i], err = k.column(m.x, b); err != nil {
			return err
		}
	}
	m.sel = grow(m.sel, b.N)
	sel := notNull(cols, b.N, b.Sel, m.s.n.NullEq, m.sel)
	if cap(m.head) < b.N {
		m.head = make([]int32, b.N)
	}
	head := m.head[:b.N]
	if err := m.probe.lookup(cols, b.N, sel, head); err != nil {
		return err
	}
	next := m.probe.next
	m.l, m.r = m.l[:0], m.r[:0]
	for j := range liveN(b.N, sel) {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		for r := head[i]; r >= 0; {
			if m.matched[r>>3]&(1<<(r&7)) == 0 {
				if m.cond == nil {
					m.matched[r>>3] |= 1 << (r & 7)
				} else {
					m.l, m.r = append(m.l, r), append(m.r, uint16(i))
					if len(m.l) >= m.s.sc.rt.rows {
						if err := m.check(b); err != nil {
							return err
						}
						if ctx.Err() != nil {
							return context.Cause(ctx)
						}
					}
				}
			} else if m.cond == nil {
				break // the rows of one key are marked together
			}
			if next == nil {
				break
			}
			r = next[r]
		}
	}
	return m.check(b)
}

// check marks the left rows of the pairs for which the condition holds.
func (m *semiMark) check(b *vec.Batch) error {
	if len(m.l) == 0 {
		return nil
	}
	nl := len(m.s.n.Left.Schema())
	mid := &vec.Batch{N: len(m.l), Cols: make([]arrow.Array, len(m.s.need))}
	for i, need := range m.s.need {
		switch {
		case !need:
		case i < nl:
			mid.Cols[i] = m.s.store.cols[i].take(m.s.n.Left.Schema()[i].Type.Arrow(), m.l, false)
		default:
			mid.Cols[i] = vec.Take(b.Cols[i-nl], m.r)
		}
	}
	sel, err := m.cond.selectRows(m.x, mid)
	if err != nil {
		return err
	}
	for _, k := range sel {
		r := m.l[k]
		m.matched[r>>3] |= 1 << (r & 7)
	}
	m.l, m.r = m.l[:0], m.r[:0]
	return nil
}

func (s *semiBuildStage) operator(int) (operator, error) { return &semiBuildOp{s: s}, nil }

type semiBuildOp struct{ s *semiBuildStage }

func (o *semiBuildOp) close() {}

func (o *semiBuildOp) next(context.Context) (*vec.Batch, error) {
	s := o.s
	size := int64(s.sc.rt.rows)
	from := s.at.Add(size) - size
	if from >= int64(len(s.rows)) {
		return nil, nil
	}
	part := s.rows[from:min(int64(len(s.rows)), from+size)]
	out := &vec.Batch{Schema: s.n.Out, Cols: make([]arrow.Array, len(s.n.Out)), N: len(part)}
	for i := range out.Cols {
		if s.req.needs(i) {
			out.Cols[i] = s.store.cols[i].take(s.n.Out[i].Type.Arrow(), part, false)
		}
	}
	return out, nil
}
