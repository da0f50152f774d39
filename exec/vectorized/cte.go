package vectorized

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// cteStore is a plan whose rows are kept for several readers; it runs once, when
// the first of them starts.
type cteStore struct {
	sc    *scope
	node  plan.Node
	acc   *mem.Account
	mu    sync.Mutex // held while the plan runs
	store *rowStore
	err   error
	done  bool
}

func newCTEStore(sc *scope, c *plan.CTE) *cteStore {
	return &cteStore{sc: sc, node: c.Plan, acc: sc.rt.acc.Child("work_mem", 0)}
}

func (c *cteStore) rows(ctx context.Context) (*rowStore, error) {
	if !c.mu.TryLock() {
		h := holderOf(ctx)
		h.release()
		c.mu.Lock()
		if err := h.acquire(ctx); err != nil {
			c.mu.Unlock()
			return nil, err
		}
	}
	defer c.mu.Unlock()
	if c.done {
		return c.store, c.err
	}
	c.store, c.err = c.run(ctx)
	c.done = true
	return c.store, c.err
}

func (c *cteStore) run(ctx context.Context) (*rowStore, error) {
	sc := newScope(c.sc.rt, c.sc.params)
	sc.work, sc.pinned, sc.pinning = c.sc.work, c.sc.pinned, c
	st, err := build(sc, c.node, request{ordered: true})
	if err != nil {
		return nil, err
	}
	defer st.close()
	col := &collector{schema: c.node.Schema(), acc: c.acc}
	if err := runSink(ctx, c.sc.rt, st, col); err != nil {
		return nil, err
	}
	return col.store(ctx, c.sc.rt)
}

func (c *cteStore) close() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.store = nil
	c.acc.Close()
}

// storeScan reads a rowStore, by several workers when order does not matter.
type storeScan struct {
	sc     *scope
	schema types.Schema
	req    request
	get    func(ctx context.Context) (*rowStore, error)
	store  *rowStore
	at     atomic.Int64
	free   func()
}

func newCTEScan(sc *scope, n *plan.CTEScan, req request) (stage, error) {
	c := sc.rt.ctes[n.CTE]
	if c == nil {
		return nil, internalf("CTE %d is not part of the plan", n.CTE.ID)
	}
	return &storeScan{sc: sc, schema: n.Out, req: req, get: c.rows}, nil
}

func (s *storeScan) prepare(ctx context.Context) (int, error) {
	var err error
	if s.store, err = s.get(ctx); err != nil {
		return 0, err
	}
	if s.req.ordered {
		return 1, nil
	}
	return max(1, min(s.sc.rt.workers, s.store.n/manyRows)), nil
}

func (s *storeScan) operator(int) (operator, error) { return &storeOp{s}, nil }

func (s *storeScan) close() {
	if s.free != nil {
		s.free()
	}
}

type storeOp struct{ s *storeScan }

func (o *storeOp) close() {}

func (o *storeOp) next(context.Context) (*vec.Batch, error) {
	rows := int64(o.s.sc.rt.rows)
	from := o.s.at.Add(rows) - rows
	if n := int64(o.s.store.n); from >= n {
		return nil, nil
	} else if from+rows > n {
		rows = n - from
	}
	b := o.s.store.batch(int(from), int(from+rows))
	b.Schema = o.s.schema
	b.Cols = b.Cols[:len(o.s.schema)]
	return b, nil
}

// workTable is what the last round of a recursion added.
type workTable struct{ store *rowStore }

func newWorkScan(sc *scope, n *plan.WorkScan, req request) (stage, error) {
	w := sc.work[n.ID]
	if w == nil {
		return nil, internalf("work table %d is read outside of its recursion", n.ID)
	}
	return &storeScan{sc: sc, schema: n.Out, req: request{need: req.need, ordered: true}, get: func(context.Context) (*rowStore, error) { return w.store, nil }}, nil
}

// recursiveStage runs Init once, then Step over the rows of the last round until
// a round adds none. Rows are given out round by round, so a LIMIT above ends an
// endless recursion.
type recursiveStage struct {
	sc  *scope
	n   *plan.RecursiveUnion
	acc *mem.Account
}

func newRecursive(sc *scope, n *plan.RecursiveUnion, _ request) (stage, error) {
	return &recursiveStage{sc: sc, n: n, acc: sc.rt.acc.Child("work_mem", 0)}, nil
}

func (s *recursiveStage) prepare(context.Context) (int, error) { return 1, nil }
func (s *recursiveStage) operator(int) (operator, error)       { return &recursiveOp{s: s}, nil }
func (s *recursiveStage) close()                               { s.acc.Close() }

type recursiveOp struct {
	s       *recursiveStage
	set     groupTable // UNION: every row so far
	charged int64
	num     []uint32
	work    *workTable
	at      int // rows of the round given out
	round   int
}

func (o *recursiveOp) close() {}

func (o *recursiveOp) next(ctx context.Context) (*vec.Batch, error) {
	for {
		if o.work != nil && o.at < o.work.store.n {
			to := min(o.work.store.n, o.at+o.s.sc.rt.rows)
			b := o.work.store.batch(o.at, to)
			b.Schema = o.s.n.Out
			o.at = to
			return b, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if o.work != nil && o.work.store.n == 0 {
			return nil, nil
		}
		if err := o.run(ctx); err != nil {
			return nil, err
		}
	}
}

// run computes one round.
func (o *recursiveOp) run(ctx context.Context) error {
	s := o.s
	node := s.n.Init
	sc := newScope(s.sc.rt, s.sc.params)
	sc.work = map[int]*workTable{}
	for id, w := range s.sc.work {
		sc.work[id] = w
	}
	if o.work != nil {
		node = s.n.Step
		sc.work[s.n.ID] = o.work
	}
	st, err := build(sc, node, request{ordered: true})
	if err != nil {
		return err
	}
	defer st.close()
	c := &collector{schema: node.Schema(), acc: s.acc}
	op, err := serialize(ctx, s.sc.rt, st)
	if err != nil {
		return err
	}
	defer op.close()
	l, err := c.local(0)
	if err != nil {
		return err
	}
	for {
		b, err := op.next(ctx)
		if err != nil {
			return err
		}
		if b == nil {
			break
		}
		if b.Size() == 0 {
			continue
		}
		if s.n.Distinct {
			if b, err = o.unseen(b); err != nil {
				return err
			}
			if b == nil {
				continue
			}
		}
		if err := l.consume(ctx, b); err != nil {
			return err
		}
	}
	if err := l.combine(ctx); err != nil {
		return err
	}
	store, err := c.store(ctx, s.sc.rt)
	if err != nil {
		return err
	}
	if o.work != nil {
		o.work.store.free()
	}
	o.work, o.at = &workTable{store: store}, 0
	o.round++
	return nil
}

func (o *recursiveOp) unseen(b *vec.Batch) (*vec.Batch, error) {
	if o.set == nil {
		o.set = newGroupTable(schemaTypes(o.s.n.Out), b.Cols, o.s.acc, false)
	}
	if cap(o.num) < b.Size() {
		o.num = make([]uint32, b.Size())
	}
	sel, err := newRows(o.set, b, b.Cols, o.num[:b.Size()])
	if err != nil {
		return nil, err
	}
	if d := o.set.size() - o.charged; d > 0 {
		if err := o.s.acc.Grow(d); err != nil {
			return nil, err
		}
		o.charged += d
	}
	if len(sel) == 0 {
		return nil, nil
	}
	out := *b
	out.Sel = sel
	return &out, nil
}
