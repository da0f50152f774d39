package vectorized

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// applyStage runs its right plan once per row of the left side, with parameters
// from that row. Results are kept for rows with the same parameters, as long as
// the plan is not volatile and they stay small. Parts of the right plan that do
// not depend on the parameters run once.
type applyStage struct {
	sc     *scope
	n      *plan.Apply
	req    request
	left   stage
	acc    *mem.Account
	params []int
	cache  bool
	pinned map[plan.Node]*cteStore
	need   []bool // of the right side
}

// maxApplyCache bounds what an Apply keeps, in bytes.
const maxApplyCache = 16 << 20

func newApply(sc *scope, n *plan.Apply, req request) (stage, error) {
	s := &applyStage{sc: sc, n: n, req: req, acc: sc.rt.acc.Child("work_mem", 0)}
	ln, rn := joinNeeds(n.Left, n.Right, n.Cond, n.Kind, req)
	for _, b := range n.Bind {
		slots(b.Expr, ln)
		s.params = append(s.params, b.Param)
	}
	s.need = rn
	s.cache = !isVolatile(n.Right)
	s.pinned = map[plan.Node]*cteStore{}
	for n, c := range sc.pinned { // of an Apply around this one
		s.pinned[n] = c
	}
	if s.cache {
		s.pin(n.Right, s.params)
	}
	var err error
	s.left, err = build(sc, n.Left, request{need: ln, ordered: req.ordered, eager: req.eager})
	return s, err
}

// maxPinned bounds what is expected of a subplan that is kept.
const maxPinned = 64 << 20

// pin finds the largest parts of n that do not depend on the parameters and
// read something worth keeping.
func (s *applyStage) pin(n plan.Node, params []int) {
	switch n.(type) {
	case *plan.CTEScan, *plan.WorkScan, *plan.Values:
		return
	}
	if s.pinned[n] != nil {
		return
	}
	if !dependsOn(n, params) && hasScan(n) {
		if e := n.Est(); e.Rows*max(e.Width, 8) <= maxPinned {
			sc := newScope(s.sc.rt, s.sc.params)
			sc.work, sc.pinned = s.sc.work, s.sc.pinned
			s.pinned[n] = &cteStore{sc: sc, node: n, acc: s.sc.rt.acc.Child("work_mem", 0)}
			return
		}
	}
	if a, ok := n.(*plan.Apply); ok {
		s.pin(a.Left, params)
		inner := append([]int(nil), params...)
		for _, b := range a.Bind {
			inner = append(inner, b.Param)
		}
		s.pin(a.Right, inner)
		return
	}
	for _, in := range n.Inputs() {
		s.pin(in, params)
	}
}

func (s *applyStage) prepare(ctx context.Context) (int, error) { return s.left.prepare(ctx) }

func (s *applyStage) close() {
	s.left.close()
	for n, c := range s.pinned {
		if s.sc.pinned[n] == nil {
			c.close()
		}
	}
	s.sc.rt.stats.Node(s.n.ID).peak(s.acc)
	s.acc.Close()
}

func (s *applyStage) operator(w int) (operator, error) {
	in, err := s.left.operator(w)
	if err != nil {
		return nil, err
	}
	o := &applyOp{s: s, in: in, x: s.sc.eval(context.Background()), out: newCoalescer(s.sc.rt, s.req), cache: map[string][]*vec.Batch{}}
	none := &rowStore{cols: make([]colStore, len(s.n.Right.Schema()))}
	if o.p, err = newPairer(s.sc, s.n.Left, s.n.Right, s.n.Kind, s.n.Cond, s.n.Single, s.n.Out, s.req, none); err == nil {
		for _, b := range s.n.Bind {
			var e *evaluator
			if e, err = compileExpr(b.Expr); err != nil {
				break
			}
			o.bind = append(o.bind, e)
		}
	}
	if err != nil {
		in.close()
		return nil, err
	}
	return o, nil
}

type applyOp struct {
	s     *applyStage
	in    operator
	x     *evalContext
	p     *pairer
	bind  []*evaluator
	out   *coalescer
	cache map[string][]*vec.Batch
	held  int64

	b     *vec.Batch
	cols  []arrow.Array // of the bindings
	keyer *vec.Keyer
	at    int // live row of b
	run   *applyRun
	ready []*vec.Batch
	done  bool
}

// applyRun is the right side for the row at hand.
type applyRun struct {
	row  uint16
	st   stage
	op   operator
	kept []*vec.Batch // from the cache, or for it
	at   int
	hit  bool
	key  string
	size int64
	keep bool
	pend *vec.Batch // a right batch being paired
	from int
}

func (r *applyRun) close() {
	if r.op != nil {
		r.op.close()
	}
	if r.st != nil {
		r.st.close()
	}
}

func (o *applyOp) close() {
	if o.run != nil {
		o.run.close()
		o.run = nil
	}
	o.in.close()
}

func (o *applyOp) next(ctx context.Context) (*vec.Batch, error) {
	for {
		switch {
		case len(o.ready) > 0:
			b := o.ready[0]
			o.ready = o.ready[1:]
			return b, nil
		case o.done:
			return nil, nil
		case o.b == nil:
			b, err := o.in.next(ctx)
			if err != nil {
				return nil, err
			}
			if b == nil {
				o.done = true
				return o.out.flush(), nil
			}
			if b.Size() == 0 {
				continue
			}
			if err := o.start(ctx, b); err != nil {
				return nil, err
			}
			continue
		case o.run != nil:
			b, err := o.step(ctx)
			if err != nil {
				return nil, err
			}
			if b != nil {
				o.emit(b)
			}
			continue
		case o.at < o.b.Size():
			if err := o.open(ctx); err != nil {
				return nil, err
			}
			continue
		}
		if b := o.p.finish(); b != nil {
			o.emit(b)
		}
		o.b = nil
	}
}

func (o *applyOp) emit(b *vec.Batch) {
	if o.out.eager || b.Size()*4 >= o.s.sc.rt.rows {
		if f := o.out.flush(); f != nil {
			o.ready = append(o.ready, f)
		}
		o.ready = append(o.ready, b)
		return
	}
	sel := b.Sel
	if sel == nil {
		sel = make([]uint16, b.N)
		copySel(b.N, nil, sel)
	}
	if f := o.out.keepSmall(b, sel); f != nil {
		o.ready = append(o.ready, f)
	}
}

func (o *applyOp) start(ctx context.Context, b *vec.Batch) error {
	o.x.ctx = ctx
	o.b, o.at = b, 0
	o.p.start(b)
	o.cols = o.cols[:0]
	kc := make([]vec.KeyColumn, len(o.bind))
	for i, e := range o.bind {
		a, err := e.column(o.x, b)
		if err != nil {
			return err
		}
		o.cols = append(o.cols, a)
		kc[i] = vec.KeyColumn{Type: e.t}
	}
	o.keyer = vec.NewKeyer(kc, o.cols)
	return nil
}

// open starts the right side for the next left row.
func (o *applyOp) open(ctx context.Context) error {
	i := o.at
	if o.b.Sel != nil {
		i = int(o.b.Sel[i])
	}
	o.at++
	r := &applyRun{row: uint16(i), keep: o.s.cache}
	o.run = r
	if o.s.cache {
		r.key = string(o.keyer.Append(nil, i))
		if kept, ok := o.cache[r.key]; ok {
			r.kept, r.hit = kept, true
			return nil
		}
	}
	ds := make([]types.Datum, len(o.bind))
	for k, e := range o.bind {
		ds[k] = vec.DatumAt(o.cols[k], e.t, i)
	}
	sc := newScope(o.s.sc.rt, o.s.sc.params.with(o.s.params, ds))
	sc.work = o.s.sc.work
	sc.pinned = o.s.pinned
	var err error
	if r.st, err = build(sc, o.s.n.Right, request{need: o.s.need, ordered: true, eager: true}); err != nil {
		return err
	}
	r.op, err = serialize(ctx, o.s.sc.rt, r.st)
	return err
}

// step pairs some right rows with the left row at hand, or ends the run.
func (o *applyOp) step(ctx context.Context) (*vec.Batch, error) {
	r := o.run
	if r.pend != nil {
		return o.pair(ctx)
	}
	done := o.p.marksOnly() && o.p.matched[r.row]&1 != 0 && !r.keep
	var b *vec.Batch
	switch {
	case done:
	case r.hit:
		if r.at < len(r.kept) {
			b = r.kept[r.at]
			r.at++
		}
	default:
		var err error
		if b, err = nextLive(ctx, r.op); err != nil {
			return nil, err
		}
		if b != nil {
			b = vec.Compact(b)
			o.remember(b)
		}
	}
	if b != nil {
		r.pend, r.from = b, 0
		return nil, nil
	}
	if r.keep && !r.hit && !done {
		o.cache[r.key] = r.kept
	}
	r.close()
	o.run = nil
	return nil, nil
}

// remember keeps a right batch for other rows, unless there is too much.
func (o *applyOp) remember(b *vec.Batch) {
	r := o.run
	if !r.keep {
		return
	}
	size := int64(len(r.key)) + 100
	for _, c := range b.Cols {
		size += vec.Size(c)
	}
	if o.held+size > maxApplyCache || o.s.acc.Grow(size) != nil {
		r.keep = false
		o.s.acc.Shrink(r.size)
		o.held -= r.size
		r.kept = nil
		return
	}
	o.held += size
	r.size += size
	r.kept = append(r.kept, b)
}

// pair pairs the left row with rows of the pending right batch.
func (o *applyOp) pair(ctx context.Context) (*vec.Batch, error) {
	r := o.run
	b := r.pend
	n := min(b.N-r.from, o.s.sc.rt.rows)
	l, idx := make([]uint16, n), make([]int32, n)
	for k := range n {
		l[k], idx[k] = r.row, int32(r.from+k)
	}
	if r.from += n; r.from >= b.N {
		r.pend = nil
	}
	store := &rowStore{schema: b.Schema, n: b.N, cols: make([]colStore, len(b.Cols))}
	for i, a := range b.Cols {
		if a != nil {
			store.cols[i] = colStore{parts: []arrow.Array{a}, starts: []int32{0}}
		}
	}
	o.p.right = store
	return o.p.pairs(ctx, l, idx)
}

// exprsOf returns the expressions of one plan node.
func exprsOf(n plan.Node) []plan.Expr {
	var es []plan.Expr
	sets := func(cs []plan.SetCall) {
		for _, c := range cs {
			es = append(es, c.Args...)
		}
	}
	keys := func(ks []plan.SortKey) {
		for _, k := range ks {
			es = append(es, k.Expr)
		}
	}
	agg := func(a *plan.AggCall) {
		es = append(es, a.Args...)
		es = append(es, a.Direct...)
		es = append(es, a.Filter)
		keys(a.OrderBy)
	}
	switch n := n.(type) {
	case *plan.Scan:
		es = append(es, n.Filter)
	case *plan.Lookup:
		es = append(es, n.Cond, n.Filter)
	case *plan.Values:
		for _, r := range n.Rows {
			es = append(es, r...)
		}
	case *plan.TableFunc:
		sets(n.Calls)
	case *plan.Filter:
		es = append(es, n.Cond)
	case *plan.Project:
		es = append(es, n.Exprs...)
	case *plan.ProjectSet:
		es = append(es, n.Exprs...)
		sets(n.Sets)
	case *plan.HashJoin:
		es = append(append(append(es, n.LeftKeys...), n.RightKeys...), n.Residual)
	case *plan.NestedLoop:
		es = append(es, n.Cond)
	case *plan.Apply:
		es = append(es, n.Cond)
		for _, b := range n.Bind {
			es = append(es, b.Expr)
		}
	case *plan.Aggregate:
		es = append(es, n.Groups...)
		for i := range n.Aggs {
			agg(&n.Aggs[i])
		}
	case *plan.Sort:
		keys(n.Keys)
	case *plan.Limit:
		es = append(es, n.Offset, n.Count)
		keys(n.Keys)
	case *plan.DistinctOn:
		es = append(es, n.Keys...)
	case *plan.Window:
		es = append(es, n.PartitionBy...)
		keys(n.OrderBy)
		for i := range n.Calls {
			c := &n.Calls[i]
			es = append(es, c.Args...)
			es = append(es, c.Frame.StartOffset, c.Frame.EndOffset)
			if c.Agg != nil {
				agg(c.Agg)
			}
		}
	}
	return es
}

// eachNode calls f for n and what is below it.
func eachNode(n plan.Node, f func(plan.Node)) {
	f(n)
	for _, in := range n.Inputs() {
		eachNode(in, f)
	}
}

// isVolatile reports whether running the plan twice may give different rows.
func isVolatile(n plan.Node) bool {
	found := false
	eachNode(n, func(n plan.Node) {
		if t, ok := n.(*plan.TableFunc); ok {
			for _, c := range t.Calls {
				found = found || c.F.Volatility == function.Volatile
			}
		}
		if t, ok := n.(*plan.ProjectSet); ok {
			for _, c := range t.Sets {
				found = found || c.F.Volatility == function.Volatile
			}
		}
		for _, e := range exprsOf(n) {
			plan.Walk(e, func(e plan.Expr) bool {
				switch e := e.(type) {
				case *plan.Call:
					found = found || e.F.Volatility == function.Volatile
				case *plan.Cast:
					found = found || e.F != nil && e.F.Volatility == function.Volatile
				}
				return !found
			})
		}
	})
	return found
}

// dependsOn reports whether the plan uses one of the parameters, or a work
// table, which changes too.
func dependsOn(n plan.Node, params []int) bool {
	found := false
	eachNode(n, func(n plan.Node) {
		switch n := n.(type) {
		case *plan.WorkScan:
			found = true
		case *plan.Scan:
			found = found || n.Params
		}
		for _, e := range exprsOf(n) {
			plan.Walk(e, func(e plan.Expr) bool {
				if p, ok := e.(*plan.Param); ok {
					for _, i := range params {
						found = found || p.Index == i
					}
				}
				return !found
			})
		}
	})
	return found
}

func hasScan(n plan.Node) bool {
	found := false
	eachNode(n, func(n plan.Node) {
		switch n.(type) {
		case *plan.Scan, *plan.Lookup:
			found = true
		}
	})
	return found
}
