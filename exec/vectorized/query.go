package vectorized

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"sync"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// DefaultVectorSize is how many rows a batch has where Env does not say.
const DefaultVectorSize = 2048

// Env is what a query runs in.
type Env struct {
	Fn      function.Env
	Account *mem.Account // of the query; the caller's. nil = no limit
	Slots   *mem.Slots   // CPU slots of the process; nil = none
	// Workers is how many goroutines a pipeline may use, 0 = GOMAXPROCS.
	Workers int
	// VectorSize is the rows of a batch, 0 = DefaultVectorSize; at most vec.MaxRows.
	VectorSize int
	TempDir    string
	// Relation, when not nil, says what is read in place of a relation of the
	// plan: another state of the same table, with the same columns.
	Relation func(catalog.Relation) catalog.Relation

	groups int // localGroups, for tests
}

// Query is one execution of a plan. Next and Close are not safe for concurrent
// use with each other; Stats may be called at any time.
type Query struct {
	rt     *runtimeEnv
	ctx    context.Context
	cancel context.CancelCauseFunc
	root   stage
	op     operator
	schema types.Schema
	err    error
	done   bool
	closed bool
}

// runtimeEnv is what the operators of one query share.
type runtimeEnv struct {
	fn      function.Env
	acc     *mem.Account
	slots   *mem.Slots
	workers int
	rows    int // per batch
	groups  int // localGroups
	rel     func(catalog.Relation) catalog.Relation
	stats   *Stats
	ctes    map[*plan.CTE]*cteStore
	mu      sync.Mutex // guards evals
	// evals are compiled expressions that no operator uses at the moment: a
	// recursion and an Apply build the same operators over and over.
	evals map[plan.Expr][]*evaluator
}

// relation is what is read for a relation of the plan.
func (rt *runtimeEnv) relation(r catalog.Relation) catalog.Relation {
	if rt.rel == nil {
		return r
	}
	return rt.rel(r)
}

// evaluator returns a compiled e for one worker; release takes it back.
func (rt *runtimeEnv) evaluator(e plan.Expr) (*evaluator, error) {
	rt.mu.Lock()
	if l := rt.evals[e]; len(l) > 0 {
		ev := l[len(l)-1]
		rt.evals[e] = l[:len(l)-1]
		rt.mu.Unlock()
		return ev, nil
	}
	rt.mu.Unlock()
	return compileExpr(e)
}

func (rt *runtimeEnv) release(e plan.Expr, ev *evaluator) {
	if ev == nil {
		return
	}
	rt.mu.Lock()
	defer rt.mu.Unlock()
	if l := rt.evals[e]; len(l) < 2*rt.workers {
		rt.evals[e] = append(l, ev)
	}
}

var errClosed = errors.New("query is closed")

// Start prepares f for execution; rows are pulled with Next, and nothing runs
// before the first call. params are the client's values in order. The query has
// a context of its own below ctx, because a suspended portal outlives the call
// that started it: it ends by Close, by ctx or by the context of a Next that is
// cancelled while it waits.
func Start(ctx context.Context, f *plan.Fragment, params []types.Datum, env *Env) (*Query, error) {
	if len(params) < len(f.ClientParams) {
		return nil, pgerr.New(pgerr.ProtocolViolation, "bind message supplies %d parameters, but prepared statement requires %d", len(params), len(f.ClientParams))
	}
	rt := &runtimeEnv{
		fn: env.Fn, slots: env.Slots, workers: env.Workers, rows: env.VectorSize, rel: env.Relation,
		acc: env.Account.Child("work_mem", 0), stats: newStats(),
		ctes: map[*plan.CTE]*cteStore{}, evals: map[plan.Expr][]*evaluator{},
	}
	if rt.workers <= 0 {
		rt.workers = cores.Count()
	}
	if rt.rows <= 0 {
		rt.rows = DefaultVectorSize
	}
	rt.rows = min(rt.rows, vec.MaxRows)
	if rt.groups = env.groups; rt.groups == 0 {
		rt.groups = localGroups
	}
	q := &Query{rt: rt, schema: f.Root.Schema()}
	q.ctx, q.cancel = context.WithCancelCause(ctx)
	ps := newParams(params, max(f.NumParams, len(params)))
	sc := newScope(rt, ps)
	for i := range f.InitPlans {
		ip := &f.InitPlans[i]
		for ip.Param >= len(ps.init) {
			ps.init, ps.vals = append(ps.init, nil), append(ps.vals, nil)
		}
		ps.init[ip.Param] = &initParam{plan: ip, sc: sc}
	}
	for _, c := range f.CTEs {
		rt.ctes[c] = newCTEStore(sc, c)
	}
	root, err := build(sc, f.Root, request{ordered: true, eager: true})
	if err != nil {
		q.cancel(errClosed)
		return nil, err
	}
	q.root = root
	return q, nil
}

// Schema returns the columns of the result.
func (q *Query) Schema() types.Schema { return q.schema }

// Next returns the next batch of the result, or nil at the end. ctx bounds this
// call: when it is cancelled, so is the query.
func (q *Query) Next(ctx context.Context) (b *vec.Batch, err error) {
	switch {
	case q.err != nil:
		return nil, q.err
	case q.closed:
		return nil, errClosed
	case q.done:
		return nil, nil
	}
	if ctx.Done() != nil {
		stop := context.AfterFunc(ctx, func() { q.cancel(context.Cause(ctx)) })
		defer stop()
	}
	defer func() {
		if r := recover(); r != nil {
			err = panicError(r)
		}
		if err != nil {
			b, q.err = nil, rootCause(q.ctx, err)
			err = q.err
			q.cancel(err)
		}
	}()
	if q.ctx.Err() != nil {
		return nil, context.Cause(q.ctx)
	}
	h := &slotHolder{slots: q.rt.slots}
	if err := h.acquire(q.ctx); err != nil {
		return nil, err
	}
	defer h.release()
	qctx := withHolder(q.ctx, h)
	if q.op == nil {
		if q.op, err = serialize(qctx, q.rt, q.root); err != nil {
			return nil, err
		}
	}
	b, err = nextLive(qctx, q.op)
	if err != nil {
		return nil, err
	}
	if b == nil {
		q.done = true
	}
	return b, nil
}

// nextLive skips batches without rows.
func nextLive(ctx context.Context, op operator) (*vec.Batch, error) {
	for {
		b, err := op.next(ctx)
		if err != nil || b == nil || b.Size() > 0 {
			return b, err
		}
		if err := ctx.Err(); err != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// Close ends the query: workers stop, files are closed, memory is given back.
// It may be called at any time and more than once.
func (q *Query) Close() error {
	if q.closed {
		return nil
	}
	q.closed = true
	q.cancel(errClosed)
	if q.op != nil {
		q.op.close()
	}
	q.root.close()
	for _, c := range q.rt.ctes {
		c.close()
	}
	q.rt.acc.Close()
	return nil
}

// rootCause prefers the reason of a cancellation to "context canceled".
func rootCause(ctx context.Context, err error) error {
	if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
		if c := context.Cause(ctx); c != nil {
			return c
		}
	}
	return err
}

// panicError turns a recovered panic into an error; it is a bug.
func panicError(r any) error {
	if e, ok := r.(error); ok {
		return pgerr.Wrap(fmt.Errorf("%w\n%s", e, debug.Stack()), pgerr.InternalError, "internal error: %v", e)
	}
	return pgerr.Wrap(fmt.Errorf("%v\n%s", r, debug.Stack()), pgerr.InternalError, "internal error: %v", r)
}

// initParam is a parameter that a subplan computes when it is first needed.
type initParam struct {
	plan *plan.InitPlan
	sc   *scope
	mu   sync.Mutex // held while the subplan runs
	done bool
	val  types.Datum
}

func (p *initParam) value(ctx context.Context) (types.Datum, error) {
	// The lock may be held by a worker that runs the subplan for long: give the
	// CPU slot back while waiting.
	if !p.mu.TryLock() {
		h := holderOf(ctx)
		h.release()
		p.mu.Lock()
		if err := h.acquire(ctx); err != nil {
			p.mu.Unlock()
			return nil, err
		}
	}
	defer p.mu.Unlock()
	if p.done {
		return p.val, nil
	}
	v, err := subqueryValue(ctx, p.sc, p.plan.Plan, p.plan.Kind, p.plan.T)
	if err != nil {
		return nil, err
	}
	p.val, p.done = v, true
	return v, nil
}

// subqueryValue runs a plan and folds its rows to a value.
func subqueryValue(ctx context.Context, sc *scope, n plan.Node, kind plan.SubqueryKind, t types.Type) (types.Datum, error) {
	req := request{ordered: true, eager: true}
	if kind == plan.Exists {
		req.need = make([]bool, len(n.Schema()))
	}
	st, err := build(sc, n, req)
	if err != nil {
		return nil, err
	}
	defer st.close()
	op, err := serialize(ctx, sc.rt, st)
	if err != nil {
		return nil, err
	}
	defer op.close()
	var list []types.Datum
	var val types.Datum
	rows := 0
	for {
		b, err := nextLive(ctx, op)
		if err != nil {
			return nil, err
		}
		if b == nil {
			break
		}
		switch kind {
		case plan.Exists:
			return true, nil
		case plan.ArraySub:
			et := n.Schema()[0].Type
			eachRow(b, func(i int) { list = append(list, vec.DatumAt(b.Cols[0], et, i)) })
		default:
			if rows += b.Size(); rows > 1 {
				return nil, errTooManyRows()
			}
			eachRow(b, func(i int) { val = vec.DatumAt(b.Cols[0], n.Schema()[0].Type, i) })
		}
	}
	switch kind {
	case plan.Exists:
		return false, nil
	case plan.ArraySub:
		if list == nil {
			list = []types.Datum{}
		}
		return list, nil
	}
	return val, nil
}

func errTooManyRows() error {
	return pgerr.New(pgerr.CardinalityViolation, "more than one row returned by a subquery used as an expression")
}

func eachRow(b *vec.Batch, f func(i int)) {
	if b.Sel == nil {
		for i := range b.N {
			f(i)
		}
		return
	}
	for _, i := range b.Sel {
		f(int(i))
	}
}
