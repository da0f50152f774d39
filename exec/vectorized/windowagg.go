package vectorized

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

var zeroNumeric = numeric.FromInt64(0)

// aggregate computes an aggregate over frames, by the cheapest way that the
// frames allow:
//
//	the same frame for a whole partition: one group per partition
//	frames that only grow: add rows, read the result after each step
//	frames that move, and a state that can remove rows: add and remove
//	anything else: one group per row, fed with the rows of its frame
func (w *windowRows) aggregate(ctx context.Context, c *plan.WindowCall, args []vec.Vec, ts []types.Type, filter arrow.Array, f *frame) (arrow.Array, error) {
	whole, growing, moving := true, true, true
	for p := range len(w.parts) - 1 {
		from, to := w.parts[p], w.parts[p+1]
		for r := from; r < to; r++ {
			whole = whole && f.start[r] == from && f.end[r] == to
			growing = growing && f.start[r] == from && (r == from || f.end[r] >= f.end[r-1])
			moving = moving && (r == from || f.start[r] >= f.start[r-1] && f.end[r] >= f.end[r-1])
		}
	}
	a := &windowAgg{w: w, c: c, args: args, filter: filter, f: f, base: -1}
	a.call = &aggregate.Call{Ctx: ctx, Env: w.s.sc.rt.fn, ArgTypes: ts, Ret: c.T}
	for _, d := range c.Agg.Direct {
		e, err := compileExpr(d)
		if err != nil {
			return nil, err
		}
		v, err := e.datum(w.s.sc.eval(ctx))
		if err != nil {
			return nil, err
		}
		a.call.Direct = append(a.call.Direct, v)
	}
	if c.Frame.Exclude != plan.ExcludeNoOthers {
		return a.perRow(ctx)
	}
	if whole {
		return a.perPartition(ctx)
	}
	_, remover := c.Agg.Def.New(a.call).(aggregate.Remover)
	if growing || moving && remover {
		if _, ok := c.Agg.Def.New(a.call).(aggregate.PartMerger); ok && plainState[c.Agg.Def.Name] {
			return a.stepping(ctx)
		}
		return a.sliding(ctx)
	}
	return a.perRow(ctx)
}

// plainState names the aggregates whose states are values: merging a group
// elsewhere leaves it as it was, so it can be looked at after every step.
var plainState = map[string]bool{"sum": true, "count": true, "avg": true, "min": true, "max": true, "bool_and": true, "bool_or": true, "every": true}

type windowAgg struct {
	w      *windowRows
	c      *plan.WindowCall
	call   *aggregate.Call
	args   []vec.Vec
	filter arrow.Array
	f      *frame
	vs     []vec.Vec
	base   int // first row of vs, for step
	groups []uint32
	sel    []uint16
}

// feed calls f with rows [from, to) of the arguments that pass the filter, in
// pieces; group gives the group of a row.
func (a *windowAgg) feed(ctx context.Context, from, to int, group func(r int) uint32, f func(groups []uint32, args []vec.Vec, sel []uint16) error) error {
	for from < to {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		end := min(to, from+vec.MaxRows/2)
		a.vs = a.vs[:0]
		for _, v := range a.args {
			if !v.Const {
				v.Arr = vec.Slice(v.Arr, from, end)
			}
			a.vs = append(a.vs, v)
		}
		var sel []uint16
		a.groups = a.groups[:0]
		if a.filter != nil {
			b := a.filter.(*array.Boolean)
			a.sel = a.sel[:0]
			for r := from; r < end; r++ {
				if b.IsValid(r) && b.Value(r) {
					a.sel = append(a.sel, uint16(r-from))
					a.groups = append(a.groups, group(r))
				}
			}
			sel = a.sel
			if sel == nil {
				sel = []uint16{}
			}
		} else {
			for r := from; r < end; r++ {
				a.groups = append(a.groups, group(r))
			}
		}
		if len(a.groups) > 0 {
			if err := f(a.groups, a.vs, sel); err != nil {
				return err
			}
		}
		from = end
	}
	return nil
}

func (a *windowAgg) perPartition(ctx context.Context) (arrow.Array, error) {
	w := a.w
	st := a.c.Agg.Def.New(a.call)
	np := len(w.parts) - 1
	if err := st.Grow(np); err != nil {
		return nil, err
	}
	if err := a.feed(ctx, 0, w.n, func(r int) uint32 { return uint32(w.partOf[r]) }, st.Update); err != nil {
		return nil, err
	}
	res, err := st.Result(0, np)
	if err != nil {
		return nil, err
	}
	return vec.Take(res, w.partOf), nil
}

// sliding keeps one group per partition and moves its frame along.
func (a *windowAgg) sliding(ctx context.Context) (arrow.Array, error) {
	w := a.w
	var out []arrow.Array
	var one []arrow.Array
	idx := make([]int32, w.n) // result of row r
	results := int32(0)
	flush := func() {
		if len(one) > 0 {
			out = append(out, vec.Concat(a.c.T.Arrow(), one))
			one = one[:0]
		}
	}
	zero := func(int) uint32 { return 0 }
	for p := range len(w.parts) - 1 {
		st := a.c.Agg.Def.New(a.call)
		if err := st.Grow(1); err != nil {
			return nil, err
		}
		rm, _ := st.(aggregate.Remover)
		from, to := w.parts[p], w.parts[p+1]
		lo, hi := from, from // the frame that the state holds
		for r := from; r < to; r++ {
			s, e := a.f.start[r], a.f.end[r]
			if r > from && s == a.f.start[r-1] && e == a.f.end[r-1] {
				idx[r] = results - 1
				continue
			}
			if s >= hi && s > lo {
				// Nothing in common with the last frame: start anew.
				st = a.c.Agg.Def.New(a.call)
				if err := st.Grow(1); err != nil {
					return nil, err
				}
				rm, _ = st.(aggregate.Remover)
				lo, hi = s, s
			}
			if e > hi {
				if err := a.feed(ctx, int(hi), int(e), zero, st.Update); err != nil {
					return nil, err
				}
				hi = e
			}
			if s > lo {
				if err := a.feed(ctx, int(lo), int(s), zero, rm.Remove); err != nil {
					return nil, err
				}
				lo = s
			}
			v, err := st.Result(0, 1)
			if err != nil {
				return nil, err
			}
			one = append(one, v)
			idx[r] = results
			results++
			if len(one) == 4096 {
				flush()
			}
			if results&0xfff == 0 && ctx.Err() != nil {
				return nil, context.Cause(ctx)
			}
		}
	}
	flush()
	return vec.Take(vec.Concat(a.c.T.Arrow(), out), idx), nil
}

// stepping is sliding for plain states: the frame's state moves along in one
// group, and after each step is merged into the group of the row, so that all
// results are read at once.
func (a *windowAgg) stepping(ctx context.Context) (arrow.Array, error) {
	w := a.w
	run := a.c.Agg.Def.New(a.call)
	rm, _ := run.(aggregate.Remover)
	out := a.c.Agg.Def.New(a.call)
	outs := out.(aggregate.PartMerger)
	var results []arrow.Array
	idx := make([]int32, w.n)
	group, made, done := uint32(0), 0, int32(0)
	used := 0 // groups of run
	fresh := func() error {
		group = uint32(used)
		if used++; used > made {
			made = max(64, 2*used)
			return run.Grow(made)
		}
		return nil
	}
	const chunk = 1 << 14
	flush := func(n int) error {
		if n == 0 {
			return nil
		}
		res, err := out.Result(0, n)
		if err != nil {
			return err
		}
		results = append(results, res)
		out = a.c.Agg.Def.New(a.call)
		outs = out.(aggregate.PartMerger)
		return nil
	}
	one, at := []uint32{0}, []uint32{0}
	filled := 0
	for p := range len(w.parts) - 1 {
		from, to := w.parts[p], w.parts[p+1]
		if err := fresh(); err != nil {
			return nil, err
		}
		lo, hi := from, from
		for r := from; r < to; r++ {
			s, e := a.f.start[r], a.f.end[r]
			if r > from && s == a.f.start[r-1] && e == a.f.end[r-1] {
				idx[r] = done - 1
				continue
			}
			if s >= hi && s > lo {
				if err := fresh(); err != nil {
					return nil, err
				}
				lo, hi = s, s
			}
			if e > hi {
				if err := a.step(ctx, int(hi), int(e), group, run.Update); err != nil {
					return nil, err
				}
				hi = e
			}
			if s > lo {
				if err := a.step(ctx, int(lo), int(s), group, rm.Remove); err != nil {
					return nil, err
				}
				lo = s
			}
			if filled == 0 {
				if err := out.Grow(chunk); err != nil {
					return nil, err
				}
			}
			one[0], at[0] = group, uint32(filled)
			if err := outs.MergePart(run, one, at); err != nil {
				return nil, err
			}
			filled++
			idx[r] = done
			done++
			if filled == chunk {
				if ctx.Err() != nil {
					return nil, context.Cause(ctx)
				}
				if err := flush(filled); err != nil {
					return nil, err
				}
				filled = 0
			}
		}
	}
	if err := flush(filled); err != nil {
		return nil, err
	}
	return vec.Take(vec.Concat(a.c.T.Arrow(), results), idx), nil
}

// step feeds rows [from, to), few as a rule, to f as members of group.
func (a *windowAgg) step(ctx context.Context, from, to int, group uint32, f func(groups []uint32, args []vec.Vec, sel []uint16) error) error {
	const size = vec.MaxRows / 2
	for from < to {
		base := from / size * size
		end := min(to, base+size)
		if len(a.vs) != len(a.args) || a.base != base {
			a.base = base
			a.vs = a.vs[:0]
			for _, v := range a.args {
				if !v.Const {
					v.Arr = vec.Slice(v.Arr, base, min(a.w.n, base+size))
				}
				a.vs = append(a.vs, v)
			}
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
		}
		a.sel, a.groups = a.sel[:0], a.groups[:0]
		for r := from; r < end; r++ {
			if a.filter != nil {
				if b := a.filter.(*array.Boolean); b.IsNull(r) || !b.Value(r) {
					continue
				}
			}
			a.sel, a.groups = append(a.sel, uint16(r-base)), append(a.groups, group)
		}
		if len(a.sel) > 0 {
			if err := f(a.groups, a.vs, a.sel); err != nil {
				return err
			}
		}
		from = end
	}
	return nil
}

// perRow makes a group of every row and feeds it with its frame.
func (a *windowAgg) perRow(ctx context.Context) (arrow.Array, error) {
	w := a.w
	x := a.c.Frame.Exclude
	var out []arrow.Array
	const chunk = 4096
	var rows []int32
	var groups []uint32
	for from := 0; from < w.n; from += chunk {
		to := min(w.n, from+chunk)
		st := a.c.Agg.Def.New(a.call)
		if err := st.Grow(to - from); err != nil {
			return nil, err
		}
		flush := func() error {
			if len(rows) == 0 {
				return nil
			}
			vs := make([]vec.Vec, len(a.args))
			for i, v := range a.args {
				vs[i] = v
				if !v.Const {
					vs[i] = vec.Vec{Arr: vec.Take(v.Arr, rows)}
				}
			}
			err := st.Update(groups, vs, nil)
			rows, groups = rows[:0], groups[:0]
			return err
		}
		for r := from; r < to; r++ {
			for j := a.f.start[r]; j < a.f.end[r]; j++ {
				if x != plan.ExcludeNoOthers && w.excluded(x, r, int(j)) {
					continue
				}
				if a.filter != nil {
					if b := a.filter.(*array.Boolean); b.IsNull(int(j)) || !b.Value(int(j)) {
						continue
					}
				}
				rows, groups = append(rows, j), append(groups, uint32(r-from))
				if len(rows) == vec.MaxRows/2 {
					if ctx.Err() != nil {
						return nil, context.Cause(ctx)
					}
					if err := flush(); err != nil {
						return nil, err
					}
				}
			}
		}
		if err := flush(); err != nil {
			return nil, err
		}
		res, err := st.Result(0, to-from)
		if err != nil {
			return nil, err
		}
		out = append(out, res)
	}
	return vec.Concat(a.c.T.Arrow(), out), nil
}
