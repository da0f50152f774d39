package vectorized

import (
	"context"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// joinStage is a hash join: the right side is collected and indexed, then the
// left side streams past it, every worker on its own. Output columns of the
// right side are gathered from the store only where somebody needs them.
type joinStage struct {
	sc          *scope
	n           *plan.HashJoin
	req         request
	left, right stage
	acc         *mem.Account
	stats       *NodeStats

	store    *rowStore // right columns, then the key columns
	table    *joinTable
	keyTypes []types.Type
	nullRows []int32 // build rows with a NULL key (Mark, NullAnti)
	empty    bool    // nothing can come out: the left side is not run

	outer outerRows
}

// outerRows collects which right rows found a match, over all workers; the last
// worker to finish emits the others.
type outerRows struct {
	mu      sync.Mutex // guards the rest
	matched []byte
	active  int
}

func newHashJoin(sc *scope, n *plan.HashJoin, req request) (stage, error) {
	if n.BuildLeft && (n.Kind == plan.Semi || n.Kind == plan.Anti) {
		return newSemiBuild(sc, n, req)
	}
	s := &joinStage{sc: sc, n: n, req: req, acc: sc.rt.acc.Child("work_mem", 0), stats: sc.rt.stats.Node(n.ID)}
	if n.Kind == plan.NullAnti && (n.Residual != nil || len(n.LeftKeys) != 1) {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "NOT IN over several columns or with further conditions is not supported as a hash join")
	}
	for _, k := range n.RightKeys {
		s.keyTypes = append(s.keyTypes, k.Type())
	}
	ln, rn := joinNeeds(n.Left, n.Right, n.Residual, n.Kind, req)
	for _, k := range n.LeftKeys {
		slots(k, ln)
	}
	rreq := append([]bool(nil), rn...)
	for _, k := range n.RightKeys {
		slots(k, rreq)
	}
	var err error
	if s.right, err = build(sc, n.Right, request{need: rreq}); err != nil {
		return nil, err
	}
	sub := request{need: ln, eager: req.eager}
	for _, l := range req.late {
		// A left row that the consumer does not want may go before the join,
		// unless its absence would make a right row appear.
		if l.col < len(ln) && n.Kind != plan.Right && n.Kind != plan.Full {
			sub.late = append(sub.late, l)
			ln[l.col] = true
		}
	}
	if b := req.bound; b != nil && b.col < len(ln) && n.Kind != plan.Right && n.Kind != plan.Full {
		// The same holds for a left row that a top-N has no place for.
		sub.bound = &boundRequest{col: b.col, b: b.b}
		ln[b.col] = true
	}
	s.left, err = build(sc, n.Left, sub)
	return s, err
}

// joinNeeds are the columns of both sides that the output and the condition use.
func joinNeeds(l, r plan.Node, cond plan.Expr, kind plan.JoinKind, req request) (ln, rn []bool) {
	nl, nr := len(l.Schema()), len(r.Schema())
	all := make([]bool, nl+nr)
	if cond != nil {
		slots(cond, all)
	}
	for i := range all {
		switch kind {
		case plan.Semi, plan.Anti, plan.NullAnti, plan.Mark:
			if i < nl && req.needs(i) {
				all[i] = true
			}
		default:
			if req.needs(i) {
				all[i] = true
			}
		}
	}
	return all[:nl:nl], all[nl:]
}

func (s *joinStage) prepare(ctx context.Context) (int, error) {
	n := s.n
	nr := len(n.Right.Schema())
	_, keep := joinNeeds(n.Left, n.Right, n.Residual, n.Kind, s.req)
	c := &collector{schema: n.Right.Schema(), need: keep, acc: s.acc}
	c.onBatch = func(int) (func(context.Context, *vec.Batch) (*vec.Batch, error), error) {
		keys, err := compileAll(n.RightKeys)
		if err != nil {
			return nil, err
		}
		x := s.sc.eval(context.Background())
		return func(ctx context.Context, b *vec.Batch) (*vec.Batch, error) {
			x.ctx = ctx
			out := *b
			out.Cols = append([]arrow.Array(nil), b.Cols[:nr]...)
			for _, k := range keys {
				a, err := k.column(x, b)
				if err != nil {
					return nil, err
				}
				out.Cols = append(out.Cols, a)
			}
			return &out, nil
		}, nil
	}
	if err := runSink(ctx, s.sc.rt, s.right, c); err != nil {
		return 0, err
	}
	store, err := c.store(ctx, s.sc.rt)
	if err != nil {
		return 0, err
	}
	s.store = store
	if len(store.cols) < nr+len(n.RightKeys) { // no batch at all
		store.cols = make([]colStore, nr+len(n.RightKeys))
	}
	s.stats.add("build rows", int64(store.n))
	keys := store.cols[nr:]
	if s.table, err = buildJoinTable(ctx, s.sc.rt, s.acc, s.keyTypes, keys, store.n, n.NullEq); err != nil {
		return 0, err
	}
	s.findNulls(keys)
	s.publish(keys)
	s.stats.peak(s.acc)
	if store.n == 0 {
		switch n.Kind {
		case plan.Inner, plan.Semi, plan.Right:
			s.empty = true
			return 1, nil
		}
	}
	w, err := s.left.prepare(ctx)
	if err != nil {
		return 0, err
	}
	s.outer.active = w
	return w, nil
}

// findNulls lists the build rows with a NULL key where that matters.
func (s *joinStage) findNulls(keys []colStore) {
	if s.n.Kind != plan.Mark && s.n.Kind != plan.NullAnti {
		return
	}
	for r := range s.store.n {
		for i := range keys {
			if i < len(s.n.NullEq) && s.n.NullEq[i] {
				continue
			}
			if keys[i].isNull(r) {
				s.nullRows = append(s.nullRows, int32(r))
				break
			}
		}
	}
}

func (c *colStore) isNull(r int) bool {
	p := len(c.starts) - 1
	for int(c.starts[p]) > r {
		p--
	}
	return c.parts[p].IsNull(r - int(c.starts[p]))
}

// publish tells scans of the left side what the build keys are.
func (s *joinStage) publish(keys []colStore) {
	switch s.n.Kind {
	case plan.Inner, plan.Semi, plan.Right:
	default:
		return
	}
	f := s.sc.filters[s.n.ID]
	if f == nil {
		return
	}
	for i, k := range f.keys {
		if i >= len(keys) || i < len(s.n.NullEq) && s.n.NullEq[i] {
			continue
		}
		k.fill(s.keyTypes[i], keys[i].parts, s.acc)
	}
}

func (s *joinStage) close() {
	s.left.close()
	s.right.close()
	s.stats.peak(s.acc)
	s.store, s.table = nil, nil
	s.acc.Close()
}

func (s *joinStage) operator(w int) (operator, error) {
	if s.empty {
		return emptyOp{}, nil
	}
	keys, err := compileAll(s.n.LeftKeys)
	if err != nil {
		return nil, err
	}
	p, err := newPairer(s.sc, s.n.Left, s.n.Right, s.n.Kind, s.n.Residual, s.n.Single, s.n.Out, s.req, s.store)
	if err != nil {
		return nil, err
	}
	in, err := s.left.operator(w)
	if err != nil {
		return nil, err
	}
	return &joinOp{s: s, in: in, keys: keys, x: s.sc.eval(context.Background()), p: p, probe: s.table.probe(), out: newCoalescer(s.sc.rt, s.req)}, nil
}

func newPairer(sc *scope, l, r plan.Node, kind plan.JoinKind, cond plan.Expr, single bool, out types.Schema, req request, store *rowStore) (*pairer, error) {
	p := &pairer{kind: kind, single: single, req: req, schema: out, left: len(l.Schema()), rightT: r.Schema(), right: store, x: sc.eval(context.Background())}
	if cond != nil {
		var err error
		if p.residual, err = compileExpr(cond); err != nil {
			return nil, err
		}
		p.resNeed = make([]bool, len(l.Schema())+len(r.Schema()))
		slots(cond, p.resNeed)
	}
	if kind == plan.Right || kind == plan.Full {
		p.built = vec.NewBitmap(store.n)
	}
	return p, nil
}

type emptyOp struct{}

func (emptyOp) next(context.Context) (*vec.Batch, error) { return nil, nil }
func (emptyOp) close()                                   {}

// joinOp probes for one worker.
type joinOp struct {
	s     *joinStage
	in    operator
	keys  []*evaluator
	x     *evalContext
	p     *pairer
	probe *joinProbe
	out   *coalescer

	b      *vec.Batch
	sel    []uint16 // rows of b that can match
	selBuf []uint16
	head   []int32
	at     int   // position in sel
	chain  int32 // next build row of the row at, or -1
	lbuf   []uint16
	rbuf   []int32
	ready  []*vec.Batch
	done   bool // input has ended
	rest   *outerRest
}

func (o *joinOp) close() { o.in.close() }

func (o *joinOp) next(ctx context.Context) (*vec.Batch, error) {
	for {
		if len(o.ready) > 0 {
			b := o.ready[0]
			o.ready = o.ready[1:]
			return b, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		if o.done {
			if o.rest == nil {
				return nil, nil
			}
			return o.rest.next(o.p, o.s.sc.rt.rows), nil
		}
		if o.b == nil {
			b, err := o.in.next(ctx)
			if err != nil {
				return nil, err
			}
			if b == nil {
				o.done = true
				o.rest = o.s.outer.finish(o.p)
				if b := o.out.flush(); b != nil {
					return b, nil
				}
				continue
			}
			if b.Size() == 0 {
				continue
			}
			if err := o.start(ctx, b); err != nil {
				return nil, err
			}
			continue
		}
		b, err := o.step(ctx)
		if err != nil {
			return nil, err
		}
		if b != nil {
			o.emit(b)
		}
	}
}

// emit hands a batch on, small ones together.
func (o *joinOp) emit(b *vec.Batch) {
	if b.Size()*4 >= o.s.sc.rt.rows || o.out.eager {
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

// keepSmall is add without the shortcut for batches that are complete.
func (c *coalescer) keepSmall(b *vec.Batch, sel []uint16) *vec.Batch {
	cols := make([]arrow.Array, len(b.Cols))
	for i, a := range b.Cols {
		if a != nil && c.req.needs(i) {
			if b.Sel == nil {
				cols[i] = a
			} else {
				cols[i] = vec.Take(a, sel)
			}
		}
	}
	var out *vec.Batch
	if c.size+len(sel) > c.rows {
		out = c.flush()
	}
	c.keep(b, cols, len(sel))
	if out == nil && c.size*2 >= c.rows {
		out = c.flush()
	}
	return out
}

// start looks up the keys of a batch.
func (o *joinOp) start(ctx context.Context, b *vec.Batch) error {
	o.x.ctx = ctx
	cols := make([]arrow.Array, len(o.keys))
	for i, k := range o.keys {
		var err error
		if cols[i], err = k.column(o.x, b); err != nil {
			return err
		}
	}
	o.selBuf = grow(o.selBuf, b.N)
	sel := notNull(cols, b.N, b.Sel, o.s.n.NullEq, o.selBuf)
	if cap(o.head) < b.N {
		o.head = make([]int32, b.N)
	}
	o.head = o.head[:b.N]
	if err := o.probe.lookup(cols, b.N, sel, o.head); err != nil {
		return err
	}
	o.p.start(b)
	o.b, o.at, o.chain = b, 0, -1
	// Keep the rows that found something.
	k := 0
	buf := o.selBuf
	if sel == nil {
		for i, h := range o.head {
			buf[k] = uint16(i)
			if h >= 0 {
				k++
			}
		}
	} else {
		for _, i := range sel {
			buf[k] = i
			if o.head[i] >= 0 {
				k++
			}
		}
	}
	o.sel = buf[:k]
	if o.s.n.Kind == plan.Mark || o.s.n.Kind == plan.NullAnti {
		return o.nulls(ctx, cols)
	}
	return nil
}

// step makes some output of the batch at hand, or ends it.
func (o *joinOp) step(ctx context.Context) (*vec.Batch, error) {
	p := o.p
	if p.residual == nil {
		switch {
		case p.marksOnly():
			for _, i := range o.sel {
				p.matched[i] |= 1
			}
			return o.end(), nil
		case o.probe.next == nil && o.at == 0:
			// At most one match per row.
			if p.tracks() {
				for _, i := range o.sel {
					p.matched[i] |= 1
				}
			}
			if p.built != nil {
				for _, i := range o.sel {
					r := o.head[i]
					p.built[r>>3] |= 1 << (r & 7)
				}
			}
			if o.at = len(o.sel); o.at > 0 {
				if b := p.unique(o.sel, o.safeHeads()); b != nil {
					return b, nil
				}
			}
		}
	}
	limit := o.s.sc.rt.rows
	if cap(o.lbuf) < limit {
		o.lbuf, o.rbuf = make([]uint16, limit), make([]int32, limit)
	}
	l, r := o.lbuf[:limit], o.rbuf[:limit]
	k := 0
	next := o.probe.next
	for k < limit {
		if o.chain < 0 {
			if o.at >= len(o.sel) {
				break
			}
			o.chain = o.head[o.sel[o.at]]
		}
		i := o.sel[o.at]
		if p.marksOnly() && p.matched[i]&1 != 0 {
			o.chain = -1 // one match is enough
			o.at++
			continue
		}
		l[k], r[k] = i, o.chain
		k++
		if next == nil {
			o.chain = -1
		} else {
			o.chain = next[o.chain]
		}
		if o.chain < 0 {
			o.at++
		}
	}
	if k > 0 {
		return p.pairs(ctx, l[:k], r[:k])
	}
	return o.end(), nil
}

// safeHeads makes every head a valid row, for gathering at full length.
func (o *joinOp) safeHeads() []int32 {
	if len(o.sel)*2 < o.b.N {
		return o.head
	}
	at := 0
	for i := range o.head {
		if at < len(o.sel) && int(o.sel[at]) == i {
			at++
			continue
		}
		o.head[i] = 0
	}
	return o.head
}

func (o *joinOp) end() *vec.Batch {
	b := o.p.finish()
	o.b = nil
	return b
}

// nulls applies what NULL means to IN: a row without a match is unknown, not
// unmatched, when its key or some build key is NULL.
func (o *joinOp) nulls(ctx context.Context, cols []arrow.Array) error {
	n := o.s.n
	if o.s.store.n == 0 {
		return nil
	}
	if len(cols) == 1 && n.Residual == nil {
		valid, off := vec.Validity(cols[0])
		eachRow(o.b, func(i int) {
			if len(o.s.nullRows) > 0 || !vec.BitAt(valid, off+i) {
				if !(len(n.NullEq) > 0 && n.NullEq[0]) {
					o.p.matched[i] |= 2
				}
			}
		})
		if n.Kind == plan.NullAnti {
			// Unknown rows do not pass: count them as matched.
			for i, m := range o.p.matched {
				if m&2 != 0 {
					o.p.matched[i] |= 1
				}
			}
		}
		return nil
	}
	return o.nullPairs(ctx, cols)
}

// nullPairs compares pairs of which one side has a NULL key: unless some member
// differs or the rest of the condition is false, the row is unknown.
func (o *joinOp) nullPairs(ctx context.Context, cols []arrow.Array) error {
	nr := len(o.s.n.Right.Schema())
	keys := o.s.store.cols[nr:]
	eqs := make([]func(i, j int) bool, len(cols))
	right := make([]arrow.Array, len(cols))
	for i, c := range cols {
		if len(keys[i].parts) != 1 {
			right[i] = keys[i].slice(o.s.keyTypes[i].Arrow(), 0, o.s.store.n)
		} else {
			right[i] = keys[i].parts[0]
		}
		eqs[i] = vec.NewEqual(o.s.keyTypes[i], c, right[i])
	}
	may := func(i, r int) bool {
		for k := range cols {
			nullEq := k < len(o.s.n.NullEq) && o.s.n.NullEq[k]
			if !nullEq && (cols[k].IsNull(i) || right[k].IsNull(r)) {
				continue
			}
			if !eqs[k](i, r) {
				return false
			}
		}
		return true
	}
	var l []uint16
	var rr []int32
	flush := func() error {
		if len(l) == 0 {
			return nil
		}
		if o.p.residual == nil {
			for _, i := range l {
				o.p.matched[i] |= 2
			}
		} else {
			k, err := o.p.filter(ctx, l, rr) // marks NULL itself
			if err != nil {
				return err
			}
			for _, i := range l[:k] {
				o.p.matched[i] |= 2
			}
		}
		l, rr = l[:0], rr[:0]
		return nil
	}
	for j := range o.b.Size() {
		i := j
		if o.b.Sel != nil {
			i = int(o.b.Sel[j])
		}
		null := false
		for k, c := range cols {
			if !(k < len(o.s.n.NullEq) && o.s.n.NullEq[k]) && c.IsNull(i) {
				null = true
			}
		}
		rows := o.s.nullRows
		count := len(rows)
		if null {
			count = o.s.store.n
		}
		for k := range count {
			if k&0xffff == 0xffff && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			r := k
			if !null {
				r = int(rows[k])
			}
			if may(i, r) {
				l, rr = append(l, uint16(i)), append(rr, int32(r))
				if len(l) == o.s.sc.rt.rows {
					if err := flush(); err != nil {
						return err
					}
				}
				if o.p.residual == nil {
					break
				}
			}
		}
	}
	return flush()
}

// outerRest emits the right rows without a match.
type outerRest struct {
	matched []byte
	n, at   int
}

// finish takes a worker's matches; for the last worker it returns what is left.
func (o *outerRows) finish(p *pairer) *outerRest {
	if p.built == nil {
		return nil
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.matched == nil {
		o.matched = p.built
	} else {
		for i, b := range p.built {
			o.matched[i] |= b
		}
	}
	if o.active--; o.active > 0 {
		return nil
	}
	return &outerRest{matched: o.matched, n: p.right.n}
}

func (r *outerRest) next(p *pairer, limit int) *vec.Batch {
	var rows []int32
	for r.at < r.n && len(rows) < limit {
		if !vec.BitAt(r.matched, r.at) {
			rows = append(rows, int32(r.at))
		}
		r.at++
	}
	if len(rows) == 0 {
		return nil
	}
	return p.rightOnly(rows)
}
