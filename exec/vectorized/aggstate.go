package vectorized

import (
	"bytes"
	"context"
	"sort"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// newState makes the state of one aggregate call: the aggregate's own, behind
// what DISTINCT and ORDER BY add. It is fed the columns of feedExprs.
func newState(sc *scope, a *plan.AggCall, acc *mem.Account) (aggregate.State, error) {
	c := &aggregate.Call{Ctx: context.Background(), Env: sc.rt.fn, Ret: a.T}
	for _, e := range feedExprs(a) {
		c.ArgTypes = append(c.ArgTypes, e.Type())
	}
	if !a.Def.OrderedSet {
		c.ArgTypes = c.ArgTypes[:len(a.Args)]
	}
	for _, k := range a.OrderBy {
		c.Desc, c.NullsFirst = append(c.Desc, k.Desc), append(c.NullsFirst, k.NullsFirst)
	}
	for _, d := range a.Direct {
		e, err := compileExpr(d)
		if err != nil {
			return nil, err
		}
		v, err := e.datum(sc.eval(context.Background()))
		if err != nil {
			return nil, err
		}
		c.Direct = append(c.Direct, v)
	}
	st := a.Def.New(c)
	if a.Def.OrderedSet {
		return st, nil
	}
	var sorted *sortedState
	if a.Def.OrderSensitive && (len(a.OrderBy) > 0 || a.Distinct) {
		sorted = newSortedState(st, a, acc)
		st = sorted
	}
	if a.Distinct && len(a.Args) > 0 {
		feeds := feedExprs(a)
		ts := make([]types.Type, len(a.Args)+1)
		ts[0] = types.Of(types.Int4) // the group number
		for i, e := range a.Args {
			ts[i+1] = e.Type()
		}
		st = &distinctState{inner: st, ts: ts, args: len(a.Args), feeds: len(feeds), acc: acc}
	}
	return st, nil
}

// distinctState lets every value reach the aggregate once per group. Its set
// has the group number as one more key column.
type distinctState struct {
	inner  aggregate.State
	ts     []types.Type
	args   int // columns that make a row distinct; further ones are sort keys
	feeds  int
	acc    *mem.Account
	set    groupTable
	num    []uint32
	fresh  []uint16
	groups []uint32
	// Sort keys beyond the arguments are functions of them (the binder sees to
	// that), but they must survive a merge: kept per set entry.
	extra []keyColumn
}

func (s *distinctState) Grow(n int) error { return s.inner.Grow(n) }

func (s *distinctState) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	n := rowsOf(args, sel, len(groups))
	// A column of group numbers that lines up with the arguments' rows.
	col := make([]int32, n)
	for k, g := range groups {
		if sel == nil {
			col[k] = int32(g)
		} else {
			col[sel[k]] = int32(g)
		}
	}
	cols := []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int32, col, nil)}
	for _, v := range args {
		cols = append(cols, v.Column(n))
	}
	return s.insert(groups, cols, n, sel)
}

// rowsOf is how many rows the arguments' columns have.
func rowsOf(args []vec.Vec, sel []uint16, live int) int {
	for _, v := range args {
		if !v.Const {
			return v.Arr.Len()
		}
	}
	if len(sel) > 0 {
		return int(sel[len(sel)-1]) + 1
	}
	return live
}

func (s *distinctState) insert(groups []uint32, cols []arrow.Array, n int, sel []uint16) error {
	keys := cols[:1+s.args]
	if s.set == nil {
		s.set = newGroupTable(s.ts, keys, s.acc, false)
	}
	live := len(groups)
	if cap(s.num) < live {
		s.num = make([]uint32, live)
	}
	num := s.num[:live]
	base := s.set.len()
	if err := s.set.lookup(keys, n, sel, num, false); err != nil {
		return err
	}
	// New entries have the numbers from base on, though not always in the order
	// of the rows: entry base+i first came with row fresh[i].
	made := s.set.len() - base
	s.fresh, s.groups = s.fresh[:0], s.groups[:0]
	for range made {
		s.fresh, s.groups = append(s.fresh, 0), append(s.groups, noGroup)
	}
	for k, e := range num {
		if i := int(e) - base; i >= 0 && s.groups[i] == noGroup {
			r := uint16(k)
			if sel != nil {
				r = sel[k]
			}
			s.fresh[i], s.groups[i] = r, groups[k]
		}
	}
	if len(s.fresh) == 0 {
		return nil
	}
	if s.feeds > s.args {
		for i := s.args; i < s.feeds; i++ {
			c := cols[1+i]
			if len(s.extra) < s.feeds-s.args {
				s.extra = append(s.extra, &canonKeys{})
			}
			s.extra[i-s.args].(*canonKeys).keep(c, s.fresh)
		}
	}
	vs := make([]vec.Vec, s.feeds)
	for i := range vs {
		vs[i] = vec.Vec{Arr: cols[1+i]}
	}
	return s.inner.Update(s.groups, vs, s.fresh)
}

// keep stores rows to be given back by slice, without keys.
func (c *canonKeys) keep(a arrow.Array, rows []uint16) {
	at := 0
	if k := len(c.parts); k > 0 {
		at = c.starts[k-1] + c.parts[k-1].Len()
	}
	p := vec.Take(a, rows)
	c.starts, c.parts = append(c.starts, at), append(c.parts, p)
	c.bytes += vec.Size(p) + 100
}

func (s *distinctState) Merge(other aggregate.State, to []uint32) error {
	return s.mergeMapped(other.(*distinctState), func(g uint32) uint32 { return to[g] })
}

// MergePart implements aggregate.PartMerger.
func (s *distinctState) MergePart(other aggregate.State, from, to []uint32) error {
	m := make(map[uint32]uint32, len(from))
	for i, g := range from {
		m[g] = to[i]
	}
	return s.mergeMapped(other.(*distinctState), func(g uint32) uint32 {
		if t, ok := m[g]; ok {
			return t
		}
		return noGroup
	})
}

func (s *distinctState) mergeMapped(o *distinctState, to func(uint32) uint32) error {
	if o.set == nil {
		return nil
	}
	for from := 0; from < o.set.len(); from += DefaultVectorSize {
		end := min(o.set.len(), from+DefaultVectorSize)
		cols := o.set.keys(from, end)
		for _, c := range o.extra {
			cols = append(cols, c.slice(from, end))
		}
		n := end - from
		old := vec.ViewOf[int32](cols[0]).V
		num := make([]int32, n)
		var sel []uint16
		var groups []uint32
		for k, g := range old {
			if t := to(uint32(g)); t != noGroup {
				num[k] = int32(t)
				sel, groups = append(sel, uint16(k)), append(groups, t)
			}
		}
		if len(sel) == 0 {
			continue
		}
		cols[0] = vec.Make(arrow.PrimitiveTypes.Int32, num, nil)
		if err := s.insert(groups, cols, n, sel); err != nil {
			return err
		}
	}
	return nil
}

func (s *distinctState) Result(from, to int) (arrow.Array, error) { return s.inner.Result(from, to) }

func (s *distinctState) Size() int64 {
	n := s.inner.Size()
	if s.set != nil {
		n += s.set.size()
	}
	for _, e := range s.extra {
		n += e.size()
	}
	return n
}

// sortedState buffers the rows of an aggregate that must see them in order and
// feeds them when the result is asked for.
type sortedState struct {
	inner aggregate.State
	call  *plan.AggCall
	cols  []vec.KeyColumn
	parts []sortedPart
	bytes int64
	fed   bool
	acc   *mem.Account
}

type sortedPart struct {
	groups []uint32
	cols   []arrow.Array
}

func newSortedState(inner aggregate.State, a *plan.AggCall, acc *mem.Account) *sortedState {
	s := &sortedState{inner: inner, call: a, acc: acc}
	for _, k := range a.OrderBy {
		s.cols = append(s.cols, vec.KeyColumn{Type: k.Expr.Type(), Desc: k.Desc, NullsFirst: k.NullsFirst})
	}
	return s
}

func (s *sortedState) Grow(n int) error { return s.inner.Grow(n) }

func (s *sortedState) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	n := rowsOf(args, sel, len(groups))
	p := sortedPart{groups: append([]uint32(nil), groups...)}
	s.bytes += int64(len(groups)) * 4
	for _, v := range args {
		c := vec.FilterSel(v.Column(n), sel)
		if c.Len() > len(groups) {
			c = vec.Slice(c, 0, len(groups))
		}
		s.bytes += vec.Size(c) + 100
		p.cols = append(p.cols, c)
	}
	s.parts = append(s.parts, p)
	return nil
}

func (s *sortedState) Merge(other aggregate.State, to []uint32) error {
	o := other.(*sortedState)
	for _, p := range o.parts {
		for k, g := range p.groups {
			p.groups[k] = to[g]
		}
		s.parts = append(s.parts, p)
	}
	s.bytes += o.bytes
	return nil
}

// feed sorts what was buffered by group and order and hands it on.
func (s *sortedState) feed() error {
	if s.fed {
		return nil
	}
	s.fed = true
	args := len(s.call.Args)
	cols := s.cols
	if len(cols) == 0 { // DISTINCT alone: in the order of the values
		for _, a := range s.call.Args {
			cols = append(cols, vec.KeyColumn{Type: a.Type()})
		}
	}
	type ref struct {
		group     uint32
		part, row uint32
		from, to  int
	}
	var refs []ref
	var keys []byte
	rows := 0
	for _, p := range s.parts {
		rows += len(p.groups)
	}
	scratch := int64(rows)*40 + s.bytes
	if err := s.acc.Grow(scratch); err != nil {
		return err
	}
	defer s.acc.Shrink(scratch)
	for pi, p := range s.parts {
		kc := p.cols[args:]
		if len(s.cols) == 0 {
			kc = p.cols[:args]
		}
		k := vec.NewKeyer(cols, kc)
		for i, g := range p.groups {
			from := len(keys)
			keys = k.Append(keys, i)
			refs = append(refs, ref{g, uint32(pi), uint32(i), from, len(keys)})
		}
	}
	sort.SliceStable(refs, func(i, j int) bool {
		a, b := &refs[i], &refs[j]
		if a.group != b.group {
			return a.group < b.group
		}
		return bytes.Compare(keys[a.from:a.to], keys[b.from:b.to]) < 0
	})
	srcs := make([]arrow.Array, len(s.parts))
	// Gather takes up to 65,536 sources; there may be more parts.
	for from := 0; from < len(refs); {
		local := map[uint32]uint16{}
		var src []uint16
		var row, groups []uint32
		order := []uint32{}
		to := from
		for to < len(refs) && to-from < DefaultVectorSize {
			r := refs[to]
			id, ok := local[r.part]
			if !ok {
				id = uint16(len(order))
				local[r.part] = id
				order = append(order, r.part)
			}
			src, row, groups = append(src, id), append(row, r.row), append(groups, r.group)
			to++
		}
		vs := make([]vec.Vec, args)
		for c := range vs {
			srcs = srcs[:0]
			for _, p := range order {
				srcs = append(srcs, s.parts[p].cols[c])
			}
			vs[c] = vec.Vec{Arr: vec.Gather(s.call.Args[c].Type().Arrow(), srcs, src, row)}
		}
		if err := s.inner.Update(groups, vs, nil); err != nil {
			return err
		}
		from = to
	}
	s.parts, s.bytes = nil, 0
	return nil
}

func (s *sortedState) Result(from, to int) (arrow.Array, error) {
	if err := s.feed(); err != nil {
		return nil, err
	}
	return s.inner.Result(from, to)
}

func (s *sortedState) Size() int64 { return s.bytes + s.inner.Size() }
