package vectorized

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// windowStage collects its input, sorts it by partition and order, and computes
// every call column-wise over all partitions. Rows come out in that order, as in
// PostgreSQL.
type windowStage struct {
	sc    *scope
	n     *plan.Window
	req   request
	child stage
	acc   *mem.Account

	store   *rowStore // input columns, keys, arguments, in input order
	order   []uint32
	results []arrow.Array // one per call, in window order
	argAt   []int         // first argument column of call i
}

func newWindow(sc *scope, n *plan.Window, req request) (stage, error) {
	s := &windowStage{sc: sc, n: n, req: req, acc: sc.rt.acc.Child("work_mem", 0)}
	need := make([]bool, len(n.Input.Schema()))
	orNeed(need, req)
	for _, e := range s.extra() {
		slots(e, need)
	}
	var err error
	s.child, err = build(sc, n.Input, request{need: need, ordered: true})
	return s, err
}

// extra are the expressions computed behind the input's columns: partition keys,
// order keys, then per call its arguments and filter.
func (s *windowStage) extra() []plan.Expr {
	var es []plan.Expr
	es = append(es, s.n.PartitionBy...)
	for _, k := range s.n.OrderBy {
		es = append(es, k.Expr)
	}
	at := len(s.n.Input.Schema()) + len(es)
	s.argAt = s.argAt[:0]
	for i := range s.n.Calls {
		c := &s.n.Calls[i]
		s.argAt = append(s.argAt, at)
		args := callArgs(c)
		es = append(es, args...)
		at += len(args)
		if c.Agg != nil && c.Agg.Filter != nil {
			es = append(es, c.Agg.Filter)
			at++
		}
	}
	return es
}

func callArgs(c *plan.WindowCall) []plan.Expr {
	if c.Agg != nil {
		return c.Agg.Args
	}
	return c.Args
}

func (s *windowStage) prepare(ctx context.Context) (int, error) {
	width := len(s.n.Input.Schema())
	need := make([]bool, width)
	orNeed(need, s.req)
	es := s.extra()
	keys := make([]plan.SortKey, len(es))
	for i, e := range es {
		keys[i] = plan.SortKey{Expr: e}
	}
	c := &collector{schema: s.n.Input.Schema(), need: need, acc: s.acc}
	c.onBatch = func(int) (func(context.Context, *vec.Batch) (*vec.Batch, error), error) {
		return appendKeys(s.sc, keys, width)
	}
	if err := runSink(ctx, s.sc.rt, s.child, c); err != nil {
		return 0, err
	}
	var err error
	if s.store, err = c.store(ctx, s.sc.rt); err != nil || s.store.n == 0 {
		return 1, err
	}
	n := s.store.n
	var cols []vec.KeyColumn
	for _, p := range s.n.PartitionBy {
		cols = append(cols, vec.KeyColumn{Type: p.Type()})
	}
	cols = append(cols, keyColumns(s.n.OrderBy)...)
	if len(cols) > 0 {
		if s.order, _, err = sortOrder(ctx, s.sc.rt, s.acc, cols, s.store.cols[width:], n); err != nil {
			return 0, err
		}
	} else {
		if err := s.acc.Grow(int64(n) * 4); err != nil {
			return 0, err
		}
		s.order = make([]uint32, n)
		for i := range s.order {
			s.order[i] = uint32(i)
		}
	}
	if err := s.compute(ctx, width); err != nil {
		return 0, err
	}
	s.sc.rt.stats.Node(s.n.ID).peak(s.acc)
	return 1, nil
}

// sorted returns column i of the store in window order.
func (s *windowStage) sorted(i int, t types.Type, idx []int32) arrow.Array {
	return vec.Decode(s.store.cols[i].take(t.Arrow(), idx, false))
}

func (s *windowStage) compute(ctx context.Context, width int) error {
	n := s.store.n
	if err := s.acc.Grow(int64(n) * (4 + 16 + 16)); err != nil {
		return err
	}
	idx := make([]int32, n)
	for i, r := range s.order {
		idx[i] = int32(r)
	}
	w := &windowRows{s: s, n: n}
	np := len(s.n.PartitionBy)
	partNew := make([]bool, n)
	peerNew := make([]bool, n)
	for i := range np + len(s.n.OrderBy) {
		var t types.Type
		if i < np {
			t = s.n.PartitionBy[i].Type()
		} else {
			t = s.n.OrderBy[i-np].Expr.Type()
		}
		col := s.sorted(width+i, t, idx)
		if i >= np {
			w.orderCols = append(w.orderCols, col)
		}
		eq := vec.NewEqual(t, col, col)
		for r := 1; r < n; r++ {
			if r&0xffff == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			if !peerNew[r] && !eq(r, r-1) {
				peerNew[r] = true
				partNew[r] = partNew[r] || i < np
			}
		}
	}
	w.layout(partNew, peerNew)
	for i := range s.n.Calls {
		c := &s.n.Calls[i]
		var args []vec.Vec
		var ts []types.Type
		at := s.argAt[i]
		for k, e := range callArgs(c) {
			if lit, ok := e.(*plan.Const); ok {
				args = append(args, vec.Vec{Arr: vec.FromDatums(lit.T, []types.Datum{lit.Value}), Const: true})
			} else {
				args = append(args, vec.Vec{Arr: s.sorted(at+k, e.Type(), idx)})
			}
			ts = append(ts, e.Type())
		}
		at += len(callArgs(c))
		var filter arrow.Array
		if c.Agg != nil && c.Agg.Filter != nil {
			filter = s.sorted(at, boolT, idx)
		}
		out, err := w.call(ctx, c, args, ts, filter)
		if err != nil {
			return err
		}
		if out.Len() != n {
			return internalf("window function returned %d rows for %d", out.Len(), n)
		}
		if err := s.acc.Grow(vec.Size(out)); err != nil {
			return err
		}
		s.results = append(s.results, out)
	}
	return nil
}

func (s *windowStage) close() {
	s.child.close()
	s.store, s.order, s.results = nil, nil, nil
	s.acc.Close()
}

func (s *windowStage) operator(int) (operator, error) {
	width := len(s.n.Input.Schema())
	if s.store.n == 0 {
		return emptyOp{}, nil
	}
	in := &orderedOp{rows: s.sc.rt.rows, store: s.store, order: s.order, schema: s.n.Input.Schema(), req: s.req}
	return &windowOp{s: s, in: in, width: width}, nil
}

type windowOp struct {
	s     *windowStage
	in    *orderedOp
	width int
	at    int
}

func (o *windowOp) close() {}

func (o *windowOp) next(ctx context.Context) (*vec.Batch, error) {
	b, err := o.in.next(ctx)
	if err != nil || b == nil {
		return nil, err
	}
	out := &vec.Batch{Schema: o.s.n.Out, Cols: b.Cols[:o.width:o.width], N: b.N}
	for _, r := range o.s.results {
		out.Cols = append(out.Cols, vec.Slice(r, o.at, o.at+b.N))
	}
	o.at += b.N
	return out, nil
}

// windowRows is the sorted input with its partitions and peer groups. All row
// numbers are positions in window order.
type windowRows struct {
	s              *windowStage
	n              int
	orderCols      []arrow.Array
	parts          []int32 // first row of each partition, then n
	partOf         []int32 // by row
	peers, peerEnd []int32 // by row: first row of its peers, row after the last
}

func (w *windowRows) layout(partNew, peerNew []bool) {
	n := w.n
	w.partOf = make([]int32, n)
	w.peers, w.peerEnd = make([]int32, n), make([]int32, n)
	for r := range n {
		if r == 0 || partNew[r] {
			w.parts = append(w.parts, int32(r))
		}
		w.partOf[r] = int32(len(w.parts) - 1)
		if r > 0 && !peerNew[r] {
			w.peers[r] = w.peers[r-1]
		} else {
			w.peers[r] = int32(r)
		}
	}
	w.parts = append(w.parts, int32(n))
	end := int32(n)
	for r := n - 1; r >= 0; r-- {
		w.peerEnd[r] = end
		if w.peers[r] == int32(r) {
			end = int32(r)
		}
	}
}

// call computes one window call for all rows.
func (w *windowRows) call(ctx context.Context, c *plan.WindowCall, args []vec.Vec, ts []types.Type, filter arrow.Array) (arrow.Array, error) {
	f, err := w.frames(ctx, c)
	if err != nil {
		return nil, err
	}
	if c.Agg != nil {
		return w.aggregate(ctx, c, args, ts, filter, f)
	}
	if a := w.ranking(c); a != nil {
		return a, nil
	}
	var out []arrow.Array
	var scratch [4][]int32
	for p := range len(w.parts) - 1 {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		lo, hi := w.parts[p], w.parts[p+1]
		part := &aggregate.Partition{Ctx: ctx, N: int(hi - lo), ArgTypes: ts, Ret: c.T}
		for _, a := range args {
			if !a.Const {
				a.Arr = vec.Slice(a.Arr, int(lo), int(hi))
			}
			part.Args = append(part.Args, a)
		}
		for i, v := range [][]int32{w.peers, w.peerEnd, f.start, f.end} {
			scratch[i] = shift(scratch[i], v[lo:hi], lo)
		}
		part.Peers, part.PeerEnd, part.FrameStart, part.FrameEnd = scratch[0], scratch[1], scratch[2], scratch[3]
		if c.Frame.Exclude != plan.ExcludeNoOthers {
			part.Excluded = func(row, j int) bool { return w.excluded(c.Frame.Exclude, row+int(lo), j+int(lo)) }
		}
		a, err := c.Func.Compute(part)
		if err != nil {
			return nil, err
		}
		if a.Len() != part.N {
			return nil, internalf("window function %s returned %d rows for %d", c.Func.Name, a.Len(), part.N)
		}
		out = append(out, a)
	}
	return vec.Concat(c.T.Arrow(), out), nil
}

// shift makes row numbers relative to a partition that starts at by.
func shift(out, v []int32, by int32) []int32 {
	if cap(out) < len(v) {
		out = make([]int32, len(v))
	}
	out = out[:len(v)]
	for i, x := range v {
		out[i] = x - by
	}
	return out
}

// ranking computes row_number, rank and dense_rank over all partitions at once:
// they are asked for over many small ones as a rule. nil for other functions.
func (w *windowRows) ranking(c *plan.WindowCall) arrow.Array {
	if c.T.Kind != types.Int8 || len(c.Args) > 0 {
		return nil
	}
	v := make([]int64, w.n)
	switch c.Func.Name {
	case "row_number":
		for r := range v {
			v[r] = int64(int32(r)-w.parts[w.partOf[r]]) + 1
		}
	case "rank":
		for r := range v {
			v[r] = int64(w.peers[r]-w.parts[w.partOf[r]]) + 1
		}
	case "dense_rank":
		for r := range v {
			switch {
			case int32(r) == w.parts[w.partOf[r]]:
				v[r] = 1
			case w.peers[r] == int32(r):
				v[r] = v[r-1] + 1
			default:
				v[r] = v[r-1]
			}
		}
	default:
		return nil
	}
	return vec.Make(arrow.PrimitiveTypes.Int64, v, nil)
}

// excluded reports whether row j is taken out of the frame of row r.
func (w *windowRows) excluded(x plan.Exclude, r, j int) bool {
	switch x {
	case plan.ExcludeCurrentRow:
		return r == j
	case plan.ExcludeGroup:
		return w.peers[r] == w.peers[j]
	case plan.ExcludeTies:
		return r != j && w.peers[r] == w.peers[j]
	}
	return false
}

// frame is the half-open range of rows of each row's frame, before exclusion.
type frame struct{ start, end []int32 }

func (w *windowRows) frames(ctx context.Context, c *plan.WindowCall) (*frame, error) {
	fr := &c.Frame
	if err := w.s.acc.Grow(int64(w.n) * 8); err != nil {
		return nil, err
	}
	f := &frame{make([]int32, w.n), make([]int32, w.n)}
	lo, err := w.bound(ctx, fr, fr.Start, fr.StartOffset, true)
	if err != nil {
		return nil, err
	}
	hi, err := w.bound(ctx, fr, fr.End, fr.EndOffset, false)
	if err != nil {
		return nil, err
	}
	for p := range len(w.parts) - 1 {
		from, to := w.parts[p], w.parts[p+1]
		for r := from; r < to; r++ {
			s := min(max(lo(int(r)), from), to)
			e := min(max(hi(int(r)), from), to)
			f.start[r], f.end[r] = s, max(s, e)
		}
	}
	return f, nil
}

// bound returns the function from a row to one end of its frame; the start is
// the first row, the end the row after the last.
func (w *windowRows) bound(ctx context.Context, fr *plan.Frame, k plan.BoundKind, offset plan.Expr, start bool) (func(r int) int32, error) {
	switch k {
	case plan.UnboundedPreceding:
		return func(r int) int32 { return w.parts[w.partOf[r]] }, nil
	case plan.UnboundedFollowing:
		return func(r int) int32 { return w.parts[w.partOf[r]+1] }, nil
	case plan.CurrentRow:
		switch {
		case fr.Mode == plan.Rows && start:
			return func(r int) int32 { return int32(r) }, nil
		case fr.Mode == plan.Rows:
			return func(r int) int32 { return int32(r) + 1 }, nil
		case start:
			return func(r int) int32 { return w.peers[r] }, nil
		}
		return func(r int) int32 { return w.peerEnd[r] }, nil
	}
	e, err := compileExpr(offset)
	if err != nil {
		return nil, err
	}
	d, err := e.datum(w.s.sc.eval(ctx))
	if err != nil {
		return nil, err
	}
	name := "ending"
	if start {
		name = "starting"
	}
	if d == nil {
		return nil, pgerr.New(pgerr.NullValueNotAllowed, "frame %s offset must not be null", name)
	}
	if fr.Mode == plan.Range {
		return w.rangeBound(ctx, fr, k, e.t, d, start)
	}
	off, ok := d.(int64)
	if !ok {
		return nil, internalf("frame offset is %T", d)
	}
	if off < 0 {
		return nil, pgerr.New(pgerr.InvalidPrecedingOrFollowingSize, "frame %s offset must not be negative", name)
	}
	off = min(off, int64(w.n)+1)
	if k == plan.Preceding {
		off = -off
	}
	if fr.Mode == plan.Rows {
		if !start {
			off++
		}
		return func(r int) int32 { return int32(int64(r) + off) }, nil
	}
	// GROUPS: peer groups are numbered through.
	groupOf := make([]int32, w.n)
	var first []int32
	for r := range w.n {
		if w.peers[r] == int32(r) {
			first = append(first, int32(r))
		}
		groupOf[r] = int32(len(first) - 1)
	}
	first = append(first, int32(w.n))
	if !start {
		off++
	}
	return func(r int) int32 {
		g := int64(groupOf[r]) + off
		p := w.partOf[r]
		switch {
		case g < int64(groupOf[w.parts[p]]):
			return w.parts[p]
		case g >= int64(len(first)):
			return int32(w.n)
		}
		return first[g]
	}, nil
}

// rangeBound finds the rows whose order value lies within an offset of the
// row's own, by binary search among the partition's rows that are not NULL. The
// frame of a NULL row is its peers.
func (w *windowRows) rangeBound(ctx context.Context, fr *plan.Frame, k plan.BoundKind, t types.Type, off types.Datum, start bool) (func(r int) int32, error) {
	if len(w.orderCols) != 1 {
		return nil, internalf("RANGE with offset over %d order columns", len(w.orderCols))
	}
	col := w.orderCols[0]
	key := w.s.n.OrderBy[0]
	if negative(t, off) {
		return nil, pgerr.New(pgerr.InvalidPrecedingOrFollowingSize, "invalid preceding or following size in window function")
	}
	// Preceding means smaller values, unless the order is descending.
	fn := fr.RangeAdd
	if (k == plan.Preceding) != key.Desc {
		fn = fr.RangeSub
	}
	c := &callNode{f: fn, vs: make([]vec.Vec, 2), dt: key.Expr.Type().Arrow()}
	c.call.Ret, c.call.State, c.call.ArgTypes = key.Expr.Type(), &c.state, []types.Type{key.Expr.Type(), t}
	o := vec.Vec{Arr: vec.FromDatums(t, []types.Datum{off}), Const: true}
	x := w.s.sc.eval(ctx)
	var parts []arrow.Array
	for from := 0; from < w.n; from += vec.MaxRows / 2 {
		to := min(w.n, from+vec.MaxRows/2)
		part := vec.Slice(col, from, to)
		valid, voff := vec.Validity(part)
		sel := vec.AppendSet(nil, valid, voff, to-from)
		if valid == nil {
			sel = nil
		}
		c.vs[0], c.vs[1] = vec.Vec{Arr: part}, o
		v, err := c.apply(x, to-from, sel, 1)
		if err != nil {
			return nil, err
		}
		parts = append(parts, vec.Decode(v.Column(to-from)))
	}
	limit := vec.Concat(col.DataType(), parts)
	cmp := vec.NewCompare(key.Expr.Type(), col, limit)
	// The rows of each partition that are not NULL.
	np := len(w.parts) - 1
	nnFrom, nnTo := make([]int32, np), make([]int32, np)
	for p := range np {
		lo, hi := w.parts[p], w.parts[p+1]
		for lo < hi && col.IsNull(int(lo)) {
			lo++
		}
		for hi > lo && col.IsNull(int(hi-1)) {
			hi--
		}
		nnFrom[p], nnTo[p] = lo, hi
	}
	return func(r int) int32 {
		if col.IsNull(r) {
			if start {
				return w.peers[r]
			}
			return w.peerEnd[r]
		}
		p := w.partOf[r]
		lo, hi := nnFrom[p], nnTo[p]
		// The first row at or behind the limit; for an end, behind it.
		for lo < hi {
			m := (lo + hi) / 2
			d := cmp(int(m), r)
			if key.Desc {
				d = -d
			}
			if d < 0 || !start && d == 0 {
				lo = m + 1
			} else {
				hi = m
			}
		}
		return lo
	}, nil
}

// negative reports whether a RANGE offset is below zero.
func negative(t types.Type, d types.Datum) bool {
	z := vec.FromDatums(t, []types.Datum{d})
	switch v := d.(type) {
	case int64:
		return v < 0
	case float64:
		return v < 0 || v != v
	case []byte:
		if t.Kind == types.Interval && len(v) == 16 {
			hi, _ := vec.IntervalLength(v)
			return hi < 0
		}
	}
	if t.Kind == types.Numeric {
		zero := vec.FromDatums(types.Of(types.Numeric), []types.Datum{zeroNumeric})
		return vec.NewCompare(t, z, zero)(0, 0) < 0
	}
	return false
}
