package vectorized

import (
	"context"
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// joinTable finds the build rows of a key. Rows of one key form a chain: head
// gives the first, next[row] the one after, -1 ends it.
//
// A single integer-like key whose values lie close together (surrogate keys) is
// an index into an array: no hashing and no comparison. Other integers stand in
// the slots of an open table. Everything else is numbered by a groupTable.
type joinTable struct {
	next   []int32 // nil: no key occurs twice
	direct []int32 // row plus one, by key - min; 0 = none
	min    int64
	slots  []int32 // row plus one, by hash; 0 = free
	keys   []int64 // of the build rows, for slots
	shift  uint
	groups groupTable
	heads  []int32 // by group
	rows   int
}

func intKey(t types.Type) bool {
	return t.IsInteger() || t.IsOIDLike() || t.Kind == types.Date || t.Kind == types.Time || t.Kind == types.Timestamp || t.Kind == types.TimestampTZ
}

// intsOf returns the values of an integer-like column as int64, converting
// narrower ones.
func intsOf(a arrow.Array, buf []int64) []int64 {
	switch a.(type) {
	case *array.Int64, *array.Timestamp, *array.Time64:
		return vec.ViewOf[int64](a).V
	case *array.Int32, *array.Date32:
		return widen(vec.ViewOf[int32](a).V, buf)
	}
	return widen(vec.ViewOf[int16](a).V, buf)
}

func widen[T int16 | int32](v []T, buf []int64) []int64 {
	if cap(buf) < len(v) {
		buf = make([]int64, len(v))
	}
	buf = buf[:len(v)]
	for i, x := range v {
		buf[i] = int64(x)
	}
	return buf
}

// buildJoinTable indexes n rows by their key columns. Rows with a NULL in a key
// that does not take NULL as a value are left out.
func buildJoinTable(ctx context.Context, rt *runtimeEnv, acc *mem.Account, ts []types.Type, keys []colStore, n int, nullEq []bool) (*joinTable, error) {
	t := &joinTable{rows: n}
	if err := acc.Grow(int64(n) * 4); err != nil { // next
		return nil, err
	}
	if len(ts) == 1 && intKey(ts[0]) && (len(nullEq) == 0 || !nullEq[0]) && len(keys[0].parts) == 1 {
		return t, t.buildInts(ctx, rt, acc, keys[0].parts[0])
	}
	t.next = make([]int32, n)
	t.groups = newGroupTable(ts, nil, acc, true)
	grown := int64(0)
	num := make([]uint32, min(n, rt.rows))
	dup := false
	for from := 0; from < n; from += rt.rows {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		to := min(n, from+rt.rows)
		cols := make([]arrow.Array, len(keys))
		for i := range keys {
			cols[i] = keys[i].slice(ts[i].Arrow(), from, to)
		}
		sel := notNull(cols, to-from, nil, nullEq, nil)
		live := to - from
		if sel != nil {
			live = len(sel)
		}
		if live == 0 {
			continue
		}
		num := num[:live]
		if err := t.groups.lookup(cols, to-from, sel, num, false); err != nil {
			return nil, err
		}
		if size := t.groups.size() + int64(cap(t.heads))*4; size > grown {
			if err := acc.Grow(size - grown); err != nil {
				return nil, err
			}
			grown = size
		}
		for len(t.heads) < t.groups.len() {
			t.heads = append(t.heads, -1)
		}
		for k, g := range num {
			r := int32(from + k)
			if sel != nil {
				r = int32(from + int(sel[k]))
			}
			t.next[r] = t.heads[g]
			dup = dup || t.heads[g] >= 0
			t.heads[g] = r
		}
	}
	if !dup {
		t.next = nil
	} else {
		t.reverse()
	}
	return t, nil
}

// reverse turns the chains, which grew at their heads, into the order of rows.
func (t *joinTable) reverse() {
	for g, r := range t.heads {
		prev := int32(-1)
		for r >= 0 {
			n := t.next[r]
			t.next[r] = prev
			prev, r = r, n
		}
		t.heads[g] = prev
	}
}

// notNull narrows sel to rows without a NULL in keys that do not take it as a
// value. buf is scratch; the result may be sel.
func notNull(cols []arrow.Array, n int, sel []uint16, nullEq []bool, buf []uint16) []uint16 {
	for i, c := range cols {
		if i < len(nullEq) && nullEq[i] {
			continue
		}
		if valid, off := vec.Validity(c); valid != nil {
			buf = grow(buf, liveN(n, sel))
			sel = buf[:vec.SelectValid(valid, off, n, sel, buf)]
		}
	}
	return sel
}

func (t *joinTable) buildInts(ctx context.Context, rt *runtimeEnv, acc *mem.Account, a arrow.Array) error {
	n := a.Len()
	var buf []int64
	if id := a.DataType().ID(); id == arrow.INT16 || id == arrow.INT32 || id == arrow.DATE32 {
		if err := acc.Grow(int64(n) * 8); err != nil {
			return err
		}
	}
	v := intsOf(a, buf)
	valid, off := vec.Validity(a)
	lo, hi := int64(math.MaxInt64), int64(math.MinInt64)
	for i, x := range v {
		if valid == nil || vec.BitAt(valid, off+i) {
			lo, hi = min(lo, x), max(hi, x)
		}
	}
	if lo > hi { // no keys at all
		t.direct = []int32{}
		return nil
	}
	t.min = lo
	span := uint64(hi) - uint64(lo)
	workers := 1
	if n >= 1<<17 {
		workers = rt.workers
	}
	t.next = make([]int32, n)
	dup := make([]bool, workers)
	if span < uint64(n)*8+1024 && span < 1<<31 {
		if err := acc.Grow(int64(span+1) * 4); err != nil {
			return err
		}
		t.direct = make([]int32, span+1)
		// Each worker takes a stretch of keys and reads all rows, from the last
		// to the first, so that chains are in the order of rows.
		err := parallel(ctx, rt, workers, func(ctx context.Context, w int) error {
			from := uint64(w) * (span + 1) / uint64(workers)
			to := uint64(w+1) * (span + 1) / uint64(workers)
			for i := n - 1; i >= 0; i-- {
				if i&0xffff == 0 && ctx.Err() != nil {
					return context.Cause(ctx)
				}
				d := uint64(v[i]) - uint64(lo)
				if d-from >= to-from || valid != nil && !vec.BitAt(valid, off+i) {
					continue
				}
				h := t.direct[d]
				t.next[i] = h - 1
				if h != 0 {
					dup[w] = true
				}
				t.direct[d] = int32(i + 1)
			}
			return nil
		})
		return t.dropNext(dup, err)
	}
	size, lg := uint64(64), uint(6)
	for size < uint64(n)*2 {
		size, lg = size*2, lg+1
	}
	if err := acc.Grow(int64(size) * 4); err != nil {
		return err
	}
	t.slots, t.keys, t.shift = make([]int32, size), v, 64-lg
	err := t.fillSlots(ctx, rt, workers, v, valid, off, dup)
	return t.dropNext(dup, err)
}

func (t *joinTable) dropNext(dup []bool, err error) error {
	for _, d := range dup {
		if d {
			return err
		}
	}
	t.next = nil
	return err
}

// fillSlots inserts the keys. Workers own stretches of slots; a key whose place
// lies in one stretch but that runs over into the next is left to the end.
func (t *joinTable) fillSlots(ctx context.Context, rt *runtimeEnv, workers int, v []int64, valid []byte, off int, dup []bool) error {
	size := uint64(len(t.slots))
	over := make([][]int32, workers)
	err := parallel(ctx, rt, workers, func(ctx context.Context, w int) error {
		from := uint64(w) * size / uint64(workers)
		to := uint64(w+1) * size / uint64(workers)
		for i := len(v) - 1; i >= 0; i-- {
			if i&0xffff == 0 && ctx.Err() != nil {
				return context.Cause(ctx)
			}
			p := hashInt(v[i]) >> t.shift
			if p-from >= to-from || valid != nil && !vec.BitAt(valid, off+i) {
				continue
			}
			for {
				s := &t.slots[p]
				if *s == 0 {
					*s, t.next[i] = int32(i+1), -1
					break
				}
				if v[*s-1] == v[i] {
					t.next[i], *s = *s-1, int32(i+1)
					dup[w] = true
					break
				}
				if p++; p == to {
					over[w] = append(over[w], int32(i))
					break
				}
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	for w, rows := range over {
		for _, i := range rows {
			p := (uint64(w+1) * size / uint64(workers)) & (size - 1)
			for {
				s := &t.slots[p]
				if *s == 0 {
					*s, t.next[i] = i+1, -1
					break
				}
				if v[*s-1] == v[i] {
					t.next[i], *s = *s-1, i+1
					dup[w] = true
					break
				}
				p = (p + 1) & (size - 1)
			}
		}
	}
	return nil
}

func hashInt(x int64) uint64 { return vec.Mix(uint64(x)^0x9e3779b97f4a7c15, 0xe7037ed1a0b428db) }

// joinProbe is a joinTable as one worker uses it.
type joinProbe struct {
	*joinTable
	groups groupTable
	num    []uint32
	wide   []int64
	slow   []uint16
}

func (t *joinTable) probe() *joinProbe {
	p := &joinProbe{joinTable: t}
	switch g := t.groups.(type) {
	case *wideTable:
		c := *g
		c.h, c.pos, c.rows, c.idx, c.cand, c.eq, c.fresh, c.pending = nil, nil, nil, nil, nil, nil, nil, nil
		p.groups = &c
	case *packedTable:
		c := *g
		c.ka, c.kb, c.kn, c.slow, c.runs, c.short = nil, nil, nil, nil, nil, nil
		p.groups = &c
	default:
		p.groups = g
	}
	return p
}

// lookup writes to head[i], for the rows i of sel (nil = all n, none NULL where
// NULL is no value), the first build row of its key, or -1.
func (p *joinProbe) lookup(cols []arrow.Array, n int, sel []uint16, head []int32) error {
	t := p.joinTable
	switch {
	case t.direct != nil:
		switch cols[0].(type) {
		case *array.Int64, *array.Timestamp, *array.Time64:
			probeDirect(t, vec.ViewOf[int64](cols[0]).V, sel, head)
		case *array.Int32, *array.Date32:
			probeDirect(t, vec.ViewOf[int32](cols[0]).V, sel, head)
		default:
			probeDirect(t, vec.ViewOf[int16](cols[0]).V, sel, head)
		}
		return nil
	case t.slots != nil:
		p.wide = intsOf(cols[0], p.wide)
		p.probeSlots(p.wide, sel, head)
		return nil
	}
	live := liveN(n, sel)
	if cap(p.num) < live {
		p.num = make([]uint32, live)
	}
	num := p.num[:live]
	if err := p.groups.lookup(cols, n, sel, num, true); err != nil {
		return err
	}
	for k, g := range num {
		i := k
		if sel != nil {
			i = int(sel[k])
		}
		head[i] = -1
		if g != noGroup {
			head[i] = t.heads[g]
		}
	}
	return nil
}

func probeDirect[T int16 | int32 | int64](t *joinTable, v []T, sel []uint16, head []int32) {
	d, lo := t.direct, uint64(t.min)
	size := uint64(len(d))
	if sel == nil {
		v = v[:len(head)]
		for i, x := range v {
			h := int32(-1)
			if k := uint64(x) - lo; k < size {
				h = d[k] - 1
			}
			head[i] = h
		}
		return
	}
	for _, i := range sel {
		h := int32(-1)
		if k := uint64(v[i]) - lo; k < size {
			h = d[k] - 1
		}
		head[i] = h
	}
}

// probeSlots reads the slots of all rows, then the keys that they name: the
// loads of a pass do not depend on each other, so their cache misses overlap.
// Rows whose first slot has another key are few and go on one by one.
func (p *joinProbe) probeSlots(v []int64, sel []uint16, head []int32) {
	slots, keys, shift := p.slots, p.keys, p.shift
	mask := uint64(len(slots) - 1)
	slow := p.slow[:0]
	if sel == nil {
		v = v[:len(head)]
		for i, x := range v {
			head[i] = slots[hashInt(x)>>shift&mask] - 1
		}
		for i, x := range v {
			if h := head[i]; h >= 0 && keys[h] != x {
				slow = append(slow, uint16(i))
			}
		}
	} else {
		for _, i := range sel {
			head[i] = slots[hashInt(v[i])>>shift&mask] - 1
		}
		for _, i := range sel {
			if h := head[i]; h >= 0 && keys[h] != v[i] {
				slow = append(slow, i)
			}
		}
	}
	for _, i := range slow {
		x := v[i]
		at := hashInt(x)>>shift + 1
		for {
			h := slots[at&mask] - 1
			if h < 0 || keys[h] == x {
				head[i] = h
				break
			}
			at++
		}
	}
	p.slow = slow
}
