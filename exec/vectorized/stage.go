package vectorized

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// A plan runs as pipelines. A stage is one plan node of a running query; its
// operators are what workers pull batches from, one operator per worker, each
// used by one goroutine at a time. Nodes that need all of an input before they
// have a row (hash build, aggregate, sort) run that input to its end in prepare,
// with as many workers as it allows, and are sources from then on.
//
//	scan -> filter -> probe -> [aggregate] -> project -> client
//	        one chain per worker      |         another pipeline
//	                                sink
//
// Preparing is recursive and sequential, so no pipeline waits for another in a
// circle: a join prepares its build side, publishes what its keys may be, and
// only then prepares the probe side, whose scan already plans with it.

// stage is one node of the running plan.
type stage interface {
	// prepare makes the stage ready and returns how many operators may be used
	// (at least 1). A width of 1 keeps the order that the node promises.
	prepare(ctx context.Context) (width int, err error)
	// operator makes the operator of worker w < width, after prepare. Each w is
	// asked for at most once.
	operator(w int) (operator, error)
	// close frees what the stage holds; after its operators are closed, or
	// without any.
	close()
}

// operator produces batches for one worker.
type operator interface {
	// next returns the next batch, nil at the end; it may have no live rows.
	// After the end or an error it is not called again.
	next(ctx context.Context) (*vec.Batch, error)
	close()
}

// sink takes what a pipeline produces.
type sink interface {
	// local is called before any batch flows, for every worker.
	local(w int) (localSink, error)
}

type localSink interface {
	consume(ctx context.Context, b *vec.Batch) error
	// combine hands the worker's part over; called once, by the worker.
	combine(ctx context.Context) error
}

// scope is what a plan, or a subplan, is built in.
type scope struct {
	rt     *runtimeEnv
	params *paramSet
	work   map[int]*workTable
	// filters are what hash joins know of their keys, by the join's ID. A scope
	// is used by one goroutine while stages are built and prepared.
	filters map[int]*joinFilters
	// pinned are parts of the plan below an Apply that run once for all of its
	// rows.
	pinned  map[plan.Node]*cteStore
	pinning *cteStore // the one that is being made
}

func newScope(rt *runtimeEnv, ps *paramSet) *scope {
	return &scope{rt: rt, params: ps, filters: map[int]*joinFilters{}}
}

func (s *scope) eval(ctx context.Context) *evalContext {
	x := &evalContext{ctx: ctx, fn: s.rt.fn, params: s.params}
	x.setting, x.maxBytes = s.rt.acc.Limit()
	return x
}

// request is what the consumer of a node wants from it.
type request struct {
	// need marks the output columns that are used; nil = all. Others may be nil
	// in the batches.
	need []bool
	// ordered: the consumer shows or depends on the order of rows that come
	// from VALUES, functions and UNION ALL.
	ordered bool
	// eager: rows are wanted as soon as there are any (a client or a LIMIT
	// reads them); otherwise small batches are put together first.
	eager bool
	// bound, when not nil, is what a top-N above knows of column bound.col.
	bound *boundRequest
	// late are filters that the consumer will fill before the node is prepared:
	// rows that fail them are not wanted.
	late []lateRequest
}

// lateRequest is a runtime filter on an output column.
type lateRequest struct {
	col int
	f   *keyFilter
}

func (r request) needs(i int) bool { return r.need == nil || r.need[i] }

// slotHolder is a worker's hold on a CPU slot.
type slotHolder struct {
	slots *mem.Slots
	held  bool
}

func (h *slotHolder) acquire(ctx context.Context) error {
	if h == nil || h.slots == nil || h.held {
		return nil
	}
	if err := h.slots.Acquire(ctx); err != nil {
		return err
	}
	h.held = true
	return nil
}

func (h *slotHolder) release() {
	if h != nil && h.held {
		h.slots.Release()
		h.held = false
	}
}

type holderKey struct{}

func withHolder(ctx context.Context, h *slotHolder) context.Context {
	return context.WithValue(ctx, holderKey{}, h)
}

func holderOf(ctx context.Context) *slotHolder {
	h, _ := ctx.Value(holderKey{}).(*slotHolder)
	return h
}

// runSink prepares st and runs it into s, with a goroutine per worker when
// there are several. The caller's slot is given back while it waits for them.
func runSink(ctx context.Context, rt *runtimeEnv, st stage, s sink) error {
	width, err := st.prepare(ctx)
	if err != nil {
		return err
	}
	locals := make([]localSink, width)
	ops := make([]operator, width)
	closeAll := func() {
		for _, o := range ops {
			if o != nil {
				o.close()
			}
		}
	}
	for w := range width {
		if locals[w], err = s.local(w); err == nil {
			ops[w], err = st.operator(w)
		}
		if err != nil {
			closeAll()
			return err
		}
	}
	if width == 1 {
		defer closeAll()
		return drain(ctx, ops[0], locals[0])
	}
	return parallel(ctx, rt, width, func(ctx context.Context, w int) error {
		defer ops[w].close()
		return drain(ctx, ops[w], locals[w])
	})
}

func drain(ctx context.Context, op operator, l localSink) error {
	h := holderOf(ctx)
	for {
		if err := ctx.Err(); err != nil {
			return context.Cause(ctx)
		}
		b, err := op.next(ctx)
		if err != nil {
			return err
		}
		if b == nil {
			return l.combine(ctx)
		}
		if b.Size() == 0 {
			continue
		}
		if err := l.consume(ctx, b); err != nil {
			return err
		}
		// Let others have the slot between morsels.
		if h != nil && h.held {
			h.release()
			if err := h.acquire(ctx); err != nil {
				return err
			}
		}
	}
}

// parallel runs f for every worker and waits for all; the first error cancels
// the others.
func parallel(ctx context.Context, rt *runtimeEnv, width int, f func(ctx context.Context, w int) error) error {
	if width == 1 {
		return f(ctx, 0)
	}
	own := holderOf(ctx)
	own.release()
	ctx2, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	var wg sync.WaitGroup
	var once sync.Once
	var first error
	for w := range width {
		wg.Add(1)
		go func() {
			defer wg.Done()
			err := worker(ctx2, rt, func(ctx context.Context) error { return f(ctx, w) })
			if err != nil {
				once.Do(func() {
					first = rootCause(ctx, err)
					cancel(err)
				})
			}
		}()
	}
	wg.Wait()
	if first != nil {
		return first
	}
	return own.acquire(ctx)
}

// worker runs f with a slot and turns a panic into an error.
func worker(ctx context.Context, rt *runtimeEnv, f func(ctx context.Context) error) (err error) {
	h := &slotHolder{slots: rt.slots}
	defer func() {
		if r := recover(); r != nil {
			err = panicError(r)
		}
		h.release()
	}()
	if err := h.acquire(ctx); err != nil {
		return err
	}
	return f(withHolder(ctx, h))
}

// serialize prepares st and returns one operator with all of its rows.
func serialize(ctx context.Context, rt *runtimeEnv, st stage) (operator, error) {
	width, err := st.prepare(ctx)
	if err != nil {
		return nil, err
	}
	if width == 1 {
		return st.operator(0)
	}
	return newGather(ctx, rt, st, width)
}

// gatherOp brings the rows of several workers to one consumer through a bounded
// channel: a consumer that does not pull stops them, without their slots.
type gatherOp struct {
	rt     *runtimeEnv
	ops    []operator
	c      chan *vec.Batch
	cancel context.CancelCauseFunc
	wg     sync.WaitGroup
	mu     sync.Mutex // guards err
	err    error
	ctx    context.Context
	on     bool
	shut   bool
}

func newGather(ctx context.Context, rt *runtimeEnv, st stage, width int) (*gatherOp, error) {
	g := &gatherOp{rt: rt, c: make(chan *vec.Batch, width)}
	for w := range width {
		op, err := st.operator(w)
		if err != nil {
			g.close()
			return nil, err
		}
		g.ops = append(g.ops, op)
	}
	return g, nil
}

func (g *gatherOp) start(ctx context.Context) {
	g.on = true
	// The workers outlive this call, and so must their context: that of the
	// query, of which ctx is only a decoration.
	g.ctx, g.cancel = context.WithCancelCause(withHolder(ctx, nil))
	for _, op := range g.ops {
		g.wg.Add(1)
		go func() {
			defer g.wg.Done()
			err := worker(g.ctx, g.rt, func(ctx context.Context) error { return g.produce(ctx, op) })
			if err != nil {
				g.mu.Lock()
				if g.err == nil {
					g.err = rootCause(ctx, err)
				}
				g.mu.Unlock()
				g.cancel(err)
			}
		}()
	}
	go func() {
		g.wg.Wait()
		close(g.c)
	}()
}

func (g *gatherOp) produce(ctx context.Context, op operator) error {
	h := holderOf(ctx)
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		b, err := op.next(ctx)
		if err != nil {
			return err
		}
		if b == nil {
			return nil
		}
		if b.Size() == 0 {
			continue
		}
		h.release()
		select {
		case g.c <- b:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
		if err := h.acquire(ctx); err != nil {
			return err
		}
	}
}

func (g *gatherOp) next(ctx context.Context) (*vec.Batch, error) {
	if !g.on {
		g.start(ctx)
	}
	h := holderOf(ctx)
	h.release()
	var b *vec.Batch
	select {
	case b = <-g.c:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if b == nil {
		g.mu.Lock()
		err := g.err
		g.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	if err := h.acquire(ctx); err != nil {
		return nil, err
	}
	return b, nil
}

func (g *gatherOp) close() {
	if g.shut {
		return
	}
	g.shut = true
	if g.on {
		g.cancel(errClosed)
		for range g.c { // until the workers are gone
		}
	}
	for _, op := range g.ops {
		op.close()
	}
}

// timed wraps the stage of a node with its counters.
type timed struct {
	stage
	s *NodeStats
}

func (t *timed) prepare(ctx context.Context) (int, error) {
	start := time.Now()
	w, err := t.stage.prepare(ctx)
	atomic.AddInt64(&t.s.BusyNanos, int64(time.Since(start)))
	atomic.AddInt64(&t.s.Loops, 1)
	return w, err
}

func (t *timed) operator(w int) (operator, error) {
	op, err := t.stage.operator(w)
	if err != nil {
		return nil, err
	}
	return check(&timedOp{op: op, s: t.s}), nil
}

type timedOp struct {
	op   operator
	s    *NodeStats
	shut bool
}

func (t *timedOp) next(ctx context.Context) (*vec.Batch, error) {
	start := time.Now()
	b, err := t.op.next(ctx)
	atomic.AddInt64(&t.s.BusyNanos, int64(time.Since(start)))
	if b != nil {
		atomic.AddInt64(&t.s.Batches, 1)
		atomic.AddInt64(&t.s.Rows, int64(b.Size()))
	}
	return b, err
}

func (t *timedOp) close() {
	if !t.shut {
		t.shut = true
		t.op.close()
	}
}

// batchOf makes a batch of a node's schema.
func newBatch(schema types.Schema, n int) *vec.Batch {
	return &vec.Batch{Schema: schema, N: n}
}
