package vectorized

import (
	"bytes"
	"context"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// maxTopN is up to how many rows a sort with a limit keeps only the best.
const maxTopN = 100_000

func keyColumns(keys []plan.SortKey) []vec.KeyColumn {
	out := make([]vec.KeyColumn, len(keys))
	for i, k := range keys {
		out[i] = vec.KeyColumn{Type: k.Expr.Type(), Desc: k.Desc, NullsFirst: k.NullsFirst}
	}
	return out
}

// sortStage collects all rows, sorts their numbers by normalised keys and
// gathers them in that order. With a limit it is a top-N: workers keep the best
// rows they saw and tell the scan what is already beaten.
type sortStage struct {
	sc    *scope
	n     *plan.Sort
	req   request
	child stage
	acc   *mem.Account
	cols  []vec.KeyColumn
	top   bool
	bound *topBound

	store *rowStore
	order []uint32

	mu   sync.Mutex // guards best
	best []*topLocal
}

func newSort(sc *scope, n *plan.Sort, req request) (stage, error) {
	s := &sortStage{sc: sc, n: n, req: req, acc: sc.rt.acc.Child("work_mem", 0), cols: keyColumns(n.Keys)}
	need := make([]bool, len(n.Input.Schema()))
	orNeed(need, req)
	for _, k := range n.Keys {
		slots(k.Expr, need)
	}
	sub := request{need: need}
	if s.top = n.Limit > 0 && n.Limit <= maxTopN; s.top && len(n.Keys) > 0 {
		s.bound = newTopBound(n.Keys[0].Expr.Type(), n.Keys[0].Desc, n.Keys[0].NullsFirst)
		// A cast from one type of text to another leaves order and bytes as they are.
		if e := plan.Unchanged(n.Keys[0].Expr); e != nil && (e == n.Keys[0].Expr || plainText(e.T.Kind) && plainText(n.Keys[0].Expr.Type().Kind)) {
			sub.bound = &boundRequest{col: e.Index, b: s.bound, rows: n.Limit}
		}
	}
	var err error
	s.child, err = build(sc, n.Input, sub)
	return s, err
}

func (s *sortStage) prepare(ctx context.Context) (int, error) {
	if s.top {
		return 1, s.prepareTop(ctx)
	}
	width := len(s.n.Input.Schema())
	need := make([]bool, width)
	orNeed(need, s.req)
	c := &collector{schema: s.n.Input.Schema(), need: need, acc: s.acc}
	c.onBatch = func(int) (func(context.Context, *vec.Batch) (*vec.Batch, error), error) {
		return appendKeys(s.sc, s.n.Keys, width)
	}
	if err := runSink(ctx, s.sc.rt, s.child, c); err != nil {
		return 0, err
	}
	var err error
	if s.store, err = c.store(ctx, s.sc.rt); err != nil {
		return 0, err
	}
	if s.store.n > 0 {
		s.order, _, err = sortOrder(ctx, s.sc.rt, s.acc, s.cols, s.store.cols[width:], s.store.n)
	}
	s.sc.rt.stats.Node(s.n.ID).peak(s.acc)
	return 1, err
}

// appendKeys makes the function that puts key columns behind a batch's.
func appendKeys(sc *scope, keys []plan.SortKey, width int) (func(context.Context, *vec.Batch) (*vec.Batch, error), error) {
	es := make([]*evaluator, len(keys))
	for i, k := range keys {
		var err error
		if es[i], err = compileExpr(k.Expr); err != nil {
			return nil, err
		}
	}
	x := sc.eval(context.Background())
	return func(ctx context.Context, b *vec.Batch) (*vec.Batch, error) {
		x.ctx = ctx
		out := *b
		out.Cols = append([]arrow.Array(nil), b.Cols[:width]...)
		for _, e := range es {
			a, err := e.column(x, b)
			if err != nil {
				return nil, err
			}
			out.Cols = append(out.Cols, a)
		}
		return &out, nil
	}, nil
}

func (s *sortStage) close() {
	s.child.close()
	s.store, s.order, s.best = nil, nil, nil
	s.acc.Close()
}

func (s *sortStage) operator(int) (operator, error) {
	return &orderedOp{rows: s.sc.rt.rows, store: s.store, order: s.order, schema: s.n.Out, req: s.req}, nil
}

// orderedOp gathers the rows of a store in an order.
type orderedOp struct {
	rows   int
	store  *rowStore
	order  []uint32
	schema types.Schema
	req    request
	at     int
	idx    []int32
}

func (o *orderedOp) close() {}

func (o *orderedOp) next(context.Context) (*vec.Batch, error) {
	if o.at >= len(o.order) {
		return nil, nil
	}
	part := o.order[o.at:min(len(o.order), o.at+o.rows)]
	o.at += len(part)
	o.idx = o.idx[:0]
	for _, r := range part {
		o.idx = append(o.idx, int32(r))
	}
	out := &vec.Batch{Schema: o.schema, Cols: make([]arrow.Array, len(o.schema)), N: len(part)}
	for i := range out.Cols {
		if o.req.needs(i) {
			out.Cols[i] = o.store.cols[i].take(o.schema[i].Type.Arrow(), o.idx, false)
		}
	}
	return out, nil
}

// Top-N. A worker appends rows that beat its worst to a buffer; when that holds
// twice the limit, the best are kept and the rest is dropped. Most rows never
// get there: they fail a comparison with the bound on the first key.

type topLocal struct {
	s     *sortStage
	keys  func(context.Context, *vec.Batch) (*vec.Batch, error)
	width int
	parts []*vec.Batch // rows, with key columns
	ents  []topEntry
	data  []byte
	worst []byte // nil until limit rows are kept
	held  int64
	sel   []uint16
}

type topEntry struct {
	from, to  int // in data
	part, row uint32
}

func (s *sortStage) prepareTop(ctx context.Context) error {
	if err := runSink(ctx, s.sc.rt, s.child, (*topSink)(s)); err != nil {
		return err
	}
	var all *topLocal
	for _, l := range s.best {
		if all == nil {
			all = l
			continue
		}
		base, shift := len(all.data), uint32(len(all.parts))
		all.data = append(all.data, l.data...)
		for _, e := range l.ents {
			all.ents = append(all.ents, topEntry{e.from + base, e.to + base, e.part + shift, e.row})
		}
		all.parts = append(all.parts, l.parts...)
	}
	s.best = nil
	if all == nil {
		return nil
	}
	if err := all.shrink(); err != nil {
		return err
	}
	s.sc.rt.stats.Node(s.n.ID).peak(s.acc)
	if len(all.parts) == 0 {
		return nil
	}
	b := all.parts[0]
	s.store = &rowStore{schema: b.Schema, n: b.N, cols: make([]colStore, len(b.Cols)), acc: s.acc}
	for i, a := range b.Cols {
		if a != nil {
			s.store.cols[i] = colStore{parts: []arrow.Array{a}, starts: []int32{0}}
		}
	}
	s.order = make([]uint32, b.N)
	for i := range s.order {
		s.order[i] = uint32(i)
	}
	return nil
}

type topSink sortStage

func (t *topSink) local(int) (localSink, error) {
	s := (*sortStage)(t)
	width := len(s.n.Input.Schema())
	k, err := appendKeys(s.sc, s.n.Keys, width)
	return &topLocal{s: s, keys: k, width: width}, err
}

func (l *topLocal) combine(context.Context) error {
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.best = append(l.s.best, l)
	return nil
}

func (l *topLocal) consume(ctx context.Context, b *vec.Batch) error {
	b, err := l.keys(ctx, b)
	if err != nil {
		return err
	}
	l.sel = grow(l.sel, b.Size())
	sel := b.Sel
	if l.s.bound != nil && l.s.bound.cheap() {
		if k := l.s.bound.selectRows(b.Cols[l.width], b.N, sel, l.sel); k >= 0 {
			sel = l.sel[:k]
		}
	}
	if sel != nil && len(sel) == 0 {
		return nil
	}
	kr := vec.NewKeyer(l.s.cols, b.Cols[l.width:])
	part := uint32(len(l.parts))
	kept := make([]uint16, 0, liveN(b.N, sel))
	for j := range liveN(b.N, sel) {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		from := len(l.data)
		l.data = kr.Append(l.data, i)
		if l.worst != nil && bytes.Compare(l.data[from:], l.worst) >= 0 {
			l.data = l.data[:from]
			continue
		}
		l.ents = append(l.ents, topEntry{from, len(l.data), part, uint32(len(kept))})
		kept = append(kept, uint16(i))
	}
	if len(kept) == 0 {
		return nil
	}
	out := &vec.Batch{Schema: b.Schema, Cols: make([]arrow.Array, len(b.Cols)), N: len(kept)}
	size := int64(len(kept)) * 64
	for i, a := range b.Cols {
		if a != nil && (i >= l.width || l.s.req.needs(i)) {
			out.Cols[i] = vec.Take(a, kept)
			size += vec.Size(out.Cols[i])
		}
	}
	if err := l.s.acc.Grow(size); err != nil {
		return err
	}
	l.held += size
	l.parts = append(l.parts, out)
	limit := int(l.s.n.Limit)
	if len(l.ents) >= 2*limit+min(l.s.sc.rt.rows, 256) || len(l.parts) > 1000 || l.worst == nil && len(l.ents) >= limit {
		return l.shrink()
	}
	return nil
}

// shrink keeps the best rows, in order, as one part.
func (l *topLocal) shrink() error {
	limit := int(l.s.n.Limit)
	slices.SortFunc(l.ents, func(a, b topEntry) int { return bytes.Compare(l.data[a.from:a.to], l.data[b.from:b.to]) })
	if len(l.ents) > limit {
		l.ents = l.ents[:limit]
	}
	if len(l.ents) == 0 {
		return nil
	}
	src, row := make([]uint16, len(l.ents)), make([]uint32, len(l.ents))
	var data []byte
	for i := range l.ents {
		e := &l.ents[i]
		src[i], row[i] = uint16(e.part), e.row
		from := len(data)
		data = append(data, l.data[e.from:e.to]...)
		*e = topEntry{from, len(data), 0, uint32(i)}
	}
	l.data = data
	like := l.parts[0]
	out := &vec.Batch{Schema: like.Schema, Cols: make([]arrow.Array, len(like.Cols)), N: len(src)}
	srcs := make([]arrow.Array, len(l.parts))
	size := int64(len(src)) * 64
	for c := range out.Cols {
		if like.Cols[c] == nil {
			continue
		}
		for p := range srcs {
			srcs[p] = l.parts[p].Cols[c]
		}
		out.Cols[c] = vec.Gather(like.Cols[c].DataType(), srcs, src, row)
		size += vec.Size(out.Cols[c])
	}
	l.parts = append(l.parts[:0], out)
	l.s.acc.Shrink(l.held)
	l.held = size
	if err := l.s.acc.Grow(size); err != nil {
		l.held = 0
		return err
	}
	if len(l.ents) == limit {
		e := l.ents[limit-1]
		l.worst = append(l.worst[:0], l.data[e.from:e.to]...)
		if b := l.s.bound; b != nil {
			b.tighten(out.Cols[l.width], out.N-1)
		}
	}
	return nil
}
