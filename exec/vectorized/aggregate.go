package vectorized

import (
	"context"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// Hash aggregation. Every worker groups what it sees in a table of its own. As
// long as the tables stay small they are merged by one worker at the end. A
// worker whose table grows past localGroups hands its groups over to partitions
// that all workers share, by the upper bits of the key's hash, and from then on
// adds its rows there: a partition is locked for the few rows of a batch that
// belong to it, and nothing is merged at the end.
//
// So few groups cost no synchronisation, very many cost no second pass, and the
// partitions are what the result is read from in parallel.

// localGroups is the size up to which a worker keeps its own table: about what
// stays in its cache.
const localGroups = 1 << 15

type aggStage struct {
	sc    *scope
	n     *plan.Aggregate
	req   request
	child stage
	acc   *mem.Account
	stats *NodeStats

	keyTypes []types.Type
	// setOf, with grouping sets, says which keys each set has; the set's number
	// is one more key.
	setOf  [][]bool
	serial bool // order matters to some aggregate

	mu     sync.Mutex // guards locals, parts' creation
	locals []*aggTable
	parts  []*aggPart
	split  bool // some worker uses parts

	tables []*aggTable // the result, disjoint
	at     atomic.Int64
}

type aggPart struct {
	mu sync.Mutex // guards t
	t  *aggTable
}

// aggTable is one hash table with the states of its groups.
type aggTable struct {
	s       *aggStage
	groups  groupTable
	states  []aggregate.State
	charged int64
	sized   int
}

func newAggregate(sc *scope, n *plan.Aggregate, req request) (stage, error) {
	s := &aggStage{sc: sc, n: n, req: req, acc: sc.rt.acc.Child("work_mem", 0), stats: sc.rt.stats.Node(n.ID)}
	var es []plan.Expr
	es = append(es, n.Groups...)
	for _, g := range n.Groups {
		s.keyTypes = append(s.keyTypes, g.Type())
	}
	for i := range n.Aggs {
		a := &n.Aggs[i]
		es = append(es, a.Args...)
		es = append(es, a.Filter)
		for _, k := range a.OrderBy {
			es = append(es, k.Expr)
		}
		if a.Def.OrderSensitive && len(a.OrderBy) == 0 && !a.Distinct {
			s.serial = true
		}
	}
	if n.Sets != nil {
		for _, set := range n.Sets {
			in := make([]bool, len(n.Groups))
			for _, g := range set {
				in[g] = true
			}
			s.setOf = append(s.setOf, in)
		}
		s.keyTypes = append(s.keyTypes, types.Of(types.Int4))
	}
	var err error
	s.child, err = build(sc, n.Input, request{need: needOf(n.Input, es...), ordered: s.serial})
	return s, err
}

func (s *aggStage) newTable(sample []arrow.Array, share bool) (*aggTable, error) {
	t := &aggTable{s: s, groups: newGroupTable(s.keyTypes, sample, s.acc, share)}
	for i := range s.n.Aggs {
		st, err := newState(s.sc, &s.n.Aggs[i], s.acc)
		if err != nil {
			return nil, err
		}
		t.states = append(t.states, st)
	}
	return t, nil
}

// grown makes room in the states and charges what the table holds now.
func (t *aggTable) grown() error {
	if n := t.groups.len(); n != t.sized {
		for _, st := range t.states {
			if err := st.Grow(n); err != nil {
				return err
			}
		}
		t.sized = n
	}
	return nil
}

func (t *aggTable) charge() error {
	size := t.groups.size()
	for _, st := range t.states {
		size += st.Size()
	}
	if d := size - t.charged; d > 0 {
		if err := t.s.acc.Grow(d); err != nil {
			return err
		}
	} else {
		t.s.acc.Shrink(-d)
	}
	t.charged = size
	return nil
}

func (s *aggStage) prepare(ctx context.Context) (int, error) {
	if s.serial {
		// One worker, in the order in which rows come.
		op, err := serialize(ctx, s.sc.rt, s.child)
		if err != nil {
			return 0, err
		}
		l, err := s.local(0)
		if err != nil {
			op.close()
			return 0, err
		}
		err = drain(ctx, op, l)
		op.close()
		if err != nil {
			return 0, err
		}
	} else if err := runSink(ctx, s.sc.rt, s.child, s); err != nil {
		return 0, err
	}
	if err := s.finish(ctx); err != nil {
		return 0, err
	}
	groups := 0
	for _, t := range s.tables {
		groups += t.groups.len()
	}
	s.stats.add("groups", int64(groups))
	s.stats.peak(s.acc)
	return max(1, min(s.sc.rt.workers, len(s.tables))), nil
}

// finish brings the workers' tables together.
func (s *aggStage) finish(ctx context.Context) error {
	if s.split {
		for _, p := range s.parts {
			if p.t.groups.len() > 0 {
				s.tables = append(s.tables, p.t)
			}
		}
		return nil
	}
	if len(s.locals) == 0 {
		t, err := s.newTable(nil, true)
		if err != nil {
			return err
		}
		s.locals = append(s.locals, t)
	}
	// The largest takes the others in.
	for i, t := range s.locals {
		if t.groups.len() > s.locals[0].groups.len() {
			s.locals[0], s.locals[i] = t, s.locals[0]
		}
	}
	first := s.locals[0]
	for _, t := range s.locals[1:] {
		if err := first.take(ctx, t); err != nil {
			return err
		}
	}
	s.locals = nil
	if err := s.emptyGroups(first); err != nil {
		return err
	}
	s.tables = []*aggTable{first}
	return nil
}

// emptyGroups adds the groups that exist without any row: the one of an
// aggregate without GROUP BY, and those of empty grouping sets.
func (s *aggStage) emptyGroups(t *aggTable) error {
	switch {
	case s.setOf != nil:
		for i, set := range s.n.Sets {
			if len(set) > 0 {
				continue
			}
			var cols []arrow.Array
			for _, k := range s.keyTypes[:len(s.keyTypes)-1] {
				cols = append(cols, vec.MakeNull(k.Arrow(), 1))
			}
			cols = append(cols, vec.Make(arrow.PrimitiveTypes.Int32, []int32{int32(i)}, nil))
			if err := t.groups.lookup(cols, 1, nil, make([]uint32, 1), false); err != nil {
				return err
			}
		}
	case s.n.Plain && t.groups.len() == 0:
		if err := t.groups.lookup(nil, 1, nil, make([]uint32, 1), false); err != nil {
			return err
		}
	}
	return t.grown()
}

// take merges all groups of o.
func (t *aggTable) take(ctx context.Context, o *aggTable) error {
	n := o.groups.len()
	to := make([]uint32, n)
	for from := 0; from < n; from += vec.MaxRows {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		end := min(n, from+vec.MaxRows)
		if err := t.groups.lookup(o.groups.keys(from, end), end-from, nil, to[from:end], false); err != nil {
			return err
		}
	}
	if err := t.grown(); err != nil {
		return err
	}
	for i, st := range t.states {
		if err := st.Merge(o.states[i], to); err != nil {
			return err
		}
	}
	t.s.acc.Shrink(o.charged)
	return t.charge()
}

func (s *aggStage) close() {
	s.child.close()
	s.stats.peak(s.acc)
	s.locals, s.parts, s.tables = nil, nil, nil
	s.acc.Close()
}

func (s *aggStage) local(w int) (localSink, error) {
	l := &aggLocal{s: s, w: w, x: s.sc.eval(context.Background())}
	var err error
	if l.groups, err = compileAll(s.n.Groups); err != nil {
		return nil, err
	}
	for i := range s.n.Aggs {
		in, err := newAggInput(&s.n.Aggs[i])
		if err != nil {
			return nil, err
		}
		l.aggs = append(l.aggs, in)
	}
	return l, nil
}

// aggLocal is one worker's part of the aggregation.
type aggLocal struct {
	s      *aggStage
	w      int
	x      *evalContext
	groups []*evaluator
	aggs   []*aggInput
	t      *aggTable
	inPart bool

	num    []uint32
	hashes []uint64
	// Scratch of a batch scattered to partitions.
	count []int32
	rows  []uint16
	order []uint16
	nulls []arrow.Array
}

// aggInput evaluates what one aggregate is fed.
type aggInput struct {
	call   *plan.AggCall
	args   []*evaluator
	filter *evaluator
	vals   []vec.Vec
	pass   []uint16 // rows that pass the filter
	sub    []uint32
	subSel []uint16
}

func newAggInput(a *plan.AggCall) (*aggInput, error) {
	in := &aggInput{call: a}
	var err error
	if in.args, err = compileAll(feedExprs(a)); err != nil {
		return nil, err
	}
	if a.Filter != nil {
		if in.filter, err = compileExpr(a.Filter); err != nil {
			return nil, err
		}
	}
	in.vals = make([]vec.Vec, len(in.args))
	return in, nil
}

// feedExprs are the columns that the aggregate's state (see newState) gets.
func feedExprs(a *plan.AggCall) []plan.Expr {
	if a.Def.OrderedSet {
		var es []plan.Expr
		for _, k := range a.OrderBy {
			es = append(es, k.Expr)
		}
		if len(es) > 0 {
			return es
		}
		return a.Args
	}
	es := append([]plan.Expr(nil), a.Args...)
	if a.Def.OrderSensitive {
		for _, k := range a.OrderBy {
			es = append(es, k.Expr)
		}
	}
	return es
}

// eval computes the inputs over b.
func (in *aggInput) eval(x *evalContext, b *vec.Batch) error {
	sub := b
	if in.filter != nil {
		sel, err := in.filter.selectRows(x, b)
		if err != nil {
			return err
		}
		in.pass = sel
		sub = &vec.Batch{Schema: b.Schema, Cols: b.Cols, N: b.N, Sel: sel}
	}
	for i, a := range in.args {
		v, err := a.value(x, sub)
		if err != nil {
			return err
		}
		in.vals[i] = v
	}
	return nil
}

// feed updates st with the rows sel of the batch, whose groups are num.
func (in *aggInput) feed(st aggregate.State, num []uint32, sel []uint16) error {
	if in.filter == nil {
		return st.Update(num, in.vals, sel)
	}
	// Both lists ascend: keep what is in both.
	in.sub, in.subSel = in.sub[:0], in.subSel[:0]
	k := 0
	for j, g := range num {
		r := uint16(j)
		if sel != nil {
			r = sel[j]
		}
		for k < len(in.pass) && in.pass[k] < r {
			k++
		}
		if k < len(in.pass) && in.pass[k] == r {
			in.sub, in.subSel = append(in.sub, g), append(in.subSel, r)
		}
	}
	if len(in.sub) == 0 {
		return nil
	}
	return st.Update(in.sub, in.vals, in.subSel)
}

func (l *aggLocal) consume(ctx context.Context, b *vec.Batch) error {
	l.x.ctx = ctx
	cols := make([]arrow.Array, len(l.groups), len(l.groups)+1)
	for i, g := range l.groups {
		var err error
		if cols[i], err = g.column(l.x, b); err != nil {
			return err
		}
	}
	for _, in := range l.aggs {
		if err := in.eval(l.x, b); err != nil {
			return err
		}
	}
	if l.s.setOf == nil {
		return l.add(ctx, cols, b)
	}
	l.nulls = l.nulls[:0]
	for _, t := range l.s.keyTypes[:len(cols)] {
		l.nulls = append(l.nulls, vec.MakeNull(t.Arrow(), b.N))
	}
	for i, in := range l.s.setOf {
		keys := make([]arrow.Array, len(cols)+1)
		for c := range cols {
			keys[c] = l.nulls[c]
			if in[c] {
				keys[c] = cols[c]
			}
		}
		id := make([]int32, b.N)
		for k := range id {
			id[k] = int32(i)
		}
		keys[len(cols)] = vec.Make(arrow.PrimitiveTypes.Int32, id, nil)
		if err := l.add(ctx, keys, b); err != nil {
			return err
		}
	}
	return nil
}

// add aggregates the batch by the key columns cols.
func (l *aggLocal) add(ctx context.Context, cols []arrow.Array, b *vec.Batch) error {
	live := b.Size()
	if cap(l.num) < live {
		l.num = make([]uint32, live)
	}
	if l.inPart {
		return l.addParts(ctx, cols, b)
	}
	if l.t == nil {
		var err error
		if l.t, err = l.s.newTable(cols, false); err != nil {
			return err
		}
	}
	num := l.num[:live]
	if err := l.t.update(cols, b.N, b.Sel, num, l.aggs); err != nil {
		return err
	}
	if l.t.groups.len() > l.s.sc.rt.groups && l.s.sc.rt.workers > 1 && !l.s.serial && l.t.canSplit() {
		return l.goParts(ctx, cols)
	}
	return nil
}

// update adds the rows sel (nil = all n) of the evaluated batch to t.
func (t *aggTable) update(cols []arrow.Array, n int, sel []uint16, num []uint32, aggs []*aggInput) error {
	if err := t.groups.lookup(cols, n, sel, num, false); err != nil {
		return err
	}
	if err := t.grown(); err != nil {
		return err
	}
	for i, in := range aggs {
		if err := in.feed(t.states[i], num, sel); err != nil {
			return err
		}
	}
	return t.charge()
}

func (t *aggTable) canSplit() bool {
	for _, st := range t.states {
		if _, ok := st.(aggregate.PartMerger); !ok {
			return false
		}
	}
	return true
}

func (l *aggLocal) combine(context.Context) error {
	if l.t == nil {
		return nil
	}
	l.s.mu.Lock()
	defer l.s.mu.Unlock()
	l.s.locals = append(l.s.locals, l.t)
	if l.s.split {
		// Others went to the partitions: follow them.
		t := l.t
		l.s.locals = l.s.locals[:len(l.s.locals)-1]
		return l.spread(t)
	}
	return nil
}

// goParts hands the worker's groups over to the shared partitions.
func (l *aggLocal) goParts(ctx context.Context, sample []arrow.Array) error {
	s := l.s
	s.mu.Lock()
	if s.parts == nil {
		p := 16
		for p < s.sc.rt.workers*8 {
			p *= 2
		}
		for range p {
			t, err := s.newTable(sample, true)
			if err != nil {
				s.mu.Unlock()
				return err
			}
			s.parts = append(s.parts, &aggPart{t: t})
		}
	}
	s.split = true
	done := s.locals // of workers that have finished already
	s.locals = nil
	s.mu.Unlock()
	l.inPart = true
	t := l.t
	l.t = nil
	if err := l.spread(t); err != nil {
		return err
	}
	for _, t := range done {
		if err := l.spread(t); err != nil {
			return err
		}
	}
	return nil
}

// scatter sorts the live rows by partition: l.rows[l.count[p]:l.count[p+1]] are
// the rows of partition p, ascending, and l.order the places they had.
func (l *aggLocal) scatter(cols []arrow.Array, sel []uint16, live int) {
	if cap(l.hashes) < live {
		l.hashes, l.rows, l.order = make([]uint64, live), make([]uint16, live), make([]uint16, live)
	}
	h := l.hashes[:live]
	clear(h)
	for i, c := range cols {
		vec.HashColumn(l.s.keyTypes[i], c, h, sel)
	}
	p := len(l.s.parts)
	if len(l.count) != p+1 {
		l.count = make([]int32, p+1)
	}
	clear(l.count)
	shift := 64
	for n := p; n > 1; n >>= 1 {
		shift--
	}
	for _, x := range h {
		l.count[x>>shift+1]++
	}
	for i := 1; i <= p; i++ {
		l.count[i] += l.count[i-1]
	}
	rows, order := l.rows[:live], l.order[:live]
	var next [1 << 10]int32
	copy(next[:p], l.count)
	for k, x := range h {
		q := x >> shift
		at := next[q]
		next[q]++
		order[at] = uint16(k)
		if sel != nil {
			rows[at] = sel[k]
		} else {
			rows[at] = uint16(k)
		}
	}
}

func (l *aggLocal) addParts(ctx context.Context, cols []arrow.Array, b *vec.Batch) error {
	l.scatter(cols, b.Sel, b.Size())
	p := len(l.s.parts)
	num := l.num[:cap(l.num)]
	// Start at different partitions, and first take those that are free.
	var later [1 << 10]bool
	for round := range 2 {
		for i := range p {
			q := (i + l.w*p/max(1, l.s.sc.rt.workers)) % p
			from, to := l.count[q], l.count[q+1]
			if from == to || round == 1 && !later[q] {
				continue
			}
			part := l.s.parts[q]
			if round == 0 {
				if !part.mu.TryLock() {
					later[q] = true
					continue
				}
			} else {
				part.mu.Lock()
			}
			err := part.t.update(cols, b.N, l.rows[from:to], num[:to-from], l.aggs)
			part.mu.Unlock()
			if err != nil {
				return err
			}
		}
	}
	return nil
}

// spread merges the groups of t into the shared partitions.
func (l *aggLocal) spread(t *aggTable) error {
	n := t.groups.len()
	for from := 0; from < n; from += l.s.sc.rt.rows {
		end := min(n, from+l.s.sc.rt.rows)
		cols := t.groups.keys(from, end)
		live := end - from
		l.scatter(cols, nil, live)
		for q, part := range l.s.parts {
			a, z := l.count[q], l.count[q+1]
			if a == z {
				continue
			}
			to := make([]uint32, z-a)
			src := make([]uint32, z-a)
			for k := range src {
				src[k] = uint32(from) + uint32(l.order[int(a)+k])
			}
			if err := part.merge(t, cols, live, l.rows[a:z], src, to); err != nil {
				return err
			}
		}
	}
	l.s.acc.Shrink(t.charged)
	t.charged = 0
	return nil
}

func (p *aggPart) merge(t *aggTable, cols []arrow.Array, n int, rows []uint16, src, to []uint32) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if err := p.t.groups.lookup(cols, n, rows, to, false); err != nil {
		return err
	}
	if err := p.t.grown(); err != nil {
		return err
	}
	for i, st := range p.t.states {
		if err := st.(aggregate.PartMerger).MergePart(t.states[i], src, to); err != nil {
			return err
		}
	}
	return p.t.charge()
}

// Reading the result: an operator takes one table after the other.

func (s *aggStage) operator(int) (operator, error) { return &aggOp{s: s}, nil }

type aggOp struct {
	s    *aggStage
	t    *aggTable
	from int
}

func (o *aggOp) close() {}

func (o *aggOp) next(ctx context.Context) (*vec.Batch, error) {
	s := o.s
	for o.t == nil || o.from >= o.t.groups.len() {
		i := int(s.at.Add(1)) - 1
		if i >= len(s.tables) {
			return nil, nil
		}
		o.t, o.from = s.tables[i], 0
	}
	to := min(o.t.groups.len(), o.from+s.sc.rt.rows)
	out := newBatch(s.n.Out, to-o.from)
	keys := o.t.groups.keys(o.from, to)
	if s.setOf != nil {
		last := len(keys) - 1
		keys[last] = s.groupingIDs(keys[last])
	}
	out.Cols = append(out.Cols, keys...)
	for i, st := range o.t.states {
		if !s.req.needs(len(out.Cols)) {
			out.Cols = append(out.Cols, nil)
			continue
		}
		a, err := st.Result(o.from, to)
		if err != nil {
			return nil, err
		}
		if a.Len() != out.N {
			return nil, internalf("aggregate %s returned %d rows for %d", s.n.Aggs[i].Def.Name, a.Len(), out.N)
		}
		out.Cols = append(out.Cols, a)
	}
	o.from = to
	return out, nil
}

// groupingIDs turns set numbers into bit masks: bit i is set when the group
// column i from the right is not in the set.
func (s *aggStage) groupingIDs(sets arrow.Array) arrow.Array {
	ids := make([]int64, len(s.setOf))
	for i, in := range s.setOf {
		for g, is := range in {
			if !is {
				ids[i] |= 1 << (len(in) - 1 - g)
			}
		}
	}
	out := make([]int64, sets.Len())
	for k, v := range vec.ViewOf[int32](sets).V {
		out[k] = ids[v]
	}
	return vec.Make(arrow.PrimitiveTypes.Int64, out, nil)
}
