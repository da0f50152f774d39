package vectorized

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// groupTable numbers the distinct rows of some key columns: 0, 1, 2, ... in the
// order of their first appearance. NULL equals NULL.
type groupTable interface {
	// lookup writes to groups the number of every live row (row sel[k], or k),
	// making new groups as needed; len(groups) is the number of live rows. With
	// find, rows without a group get noGroup instead.
	lookup(cols []arrow.Array, n int, sel []uint16, groups []uint32, find bool) error
	len() int
	// keys returns the key columns of groups [from, to), to-from <= vec.MaxRows.
	keys(from, to int) []arrow.Array
	size() int64
}

const noGroup = ^uint32(0)

// newGroupTable picks the table for keys of types ts; sample are the columns of
// the first batch. share says that the table is one of many that see parts of
// the same batches, where interning dictionaries would not pay.
func newGroupTable(ts []types.Type, sample []arrow.Array, acc *mem.Account, share bool) groupTable {
	if len(ts) == 0 {
		return &singleGroup{}
	}
	if p := newPacked(ts, sample, acc, share); p != nil {
		return p
	}
	g := &wideTable{ts: ts, acc: acc}
	for _, t := range ts {
		g.cols = append(g.cols, newKeyColumn(t))
	}
	return g
}

// push is append that always doubles: append grows large slices by a quarter,
// which copies everything five times over.
func push[T any](s []T, v T) []T {
	if len(s) == cap(s) {
		t := make([]T, len(s), max(64, 2*len(s)))
		copy(t, s)
		s = t
	}
	return append(s, v)
}

// singleGroup is the table without key columns.
type singleGroup struct{ any bool }

func (t *singleGroup) lookup(_ []arrow.Array, _ int, _ []uint16, groups []uint32, find bool) error {
	if find && !t.any {
		for i := range groups {
			groups[i] = noGroup
		}
		return nil
	}
	t.any = true
	clear(groups)
	return nil
}

func (t *singleGroup) len() int {
	if t.any {
		return 1
	}
	return 0
}
func (t *singleGroup) keys(int, int) []arrow.Array { return nil }
func (t *singleGroup) size() int64                 { return 0 }

// wideTable is the general table: hash column by column, compare column-wise
// only where hashes agree.
//
// A slot is 0 or the upper 32 bits of a hash and a group number plus one. A
// batch is looked up in rounds. In each round a row finds either a free slot,
// and becomes a group at once, or a slot with its 32 bits, which makes the
// group a candidate. Then the new keys are appended column by column, the
// candidates compared column by column, and rows whose candidate was wrong go
// on from the next slot. Nearly always one round is all.
type wideTable struct {
	ts     []types.Type
	cols   []keyColumn
	slots  []uint64
	mask   uint64
	hashes []uint64 // by group, for growing
	acc    *mem.Account
	held   int64 // bytes charged for slots

	h       []uint64
	pos     []uint64
	rows    []uint16 // candidates: their rows,
	idx     []uint32 // places in groups,
	cand    []uint32 // and groups
	eq      []uint8
	fresh   []uint16
	pending []uint32
}

func (t *wideTable) len() int { return len(t.hashes) }

func (t *wideTable) reserve(more int) error {
	need := uint64(len(t.hashes)+more) * 2
	if uint64(len(t.slots)) >= need {
		return nil
	}
	n := max(1024, uint64(len(t.slots)))
	for n < need {
		n *= 2
	}
	if err := t.acc.Grow(int64(n) * 8); err != nil {
		return err
	}
	t.acc.Shrink(t.held)
	t.held = int64(n) * 8
	t.slots, t.mask = make([]uint64, n), n-1
	for g, h := range t.hashes {
		p := h & t.mask
		for t.slots[p] != 0 {
			p = (p + 1) & t.mask
		}
		t.slots[p] = h&^0xffffffff | uint64(g+1)
	}
	return nil
}

func (t *wideTable) lookup(cols []arrow.Array, n int, sel []uint16, groups []uint32, find bool) error {
	live := len(groups)
	if cap(t.h) < live {
		t.h, t.pos = make([]uint64, live), make([]uint64, live)
		t.eq, t.pending = make([]uint8, live), make([]uint32, live)
	}
	if find && len(t.slots) == 0 {
		for i := range groups {
			groups[i] = noGroup
		}
		return nil
	}
	h := t.h[:live]
	clear(h)
	for i, a := range cols {
		vec.HashColumn(t.ts[i], a, h, sel)
	}
	if !find {
		if err := t.reserve(live); err != nil {
			return err
		}
	}
	pos := t.pos[:live]
	pending := t.pending[:live]
	for k := range pending {
		pending[k] = uint32(k)
		pos[k] = h[k]
	}
	for len(pending) > 0 {
		m := t.candidates(pending, sel, groups, find)
		if len(t.fresh) > 0 {
			for i, c := range t.cols {
				c.append(cols[i], t.fresh)
			}
		}
		eq := t.eq[:m]
		for k := range eq {
			eq[k] = 1
		}
		for i, c := range t.cols {
			c.equal(cols[i], t.rows[:m], t.cand[:m], eq)
		}
		// A row that is pending again has its place in pos already.
		next := pending[:0]
		idx, cand := t.idx[:m], t.cand[:m]
		for k, ok := range eq {
			if ok == 1 {
				groups[idx[k]] = cand[k]
			} else {
				next = append(next, idx[k])
			}
		}
		pending = next
	}
	return nil
}

// candidates walks the rows of pending along the slots until each has become a
// group, is without one (find), or has a candidate; it returns the number of
// candidates, which are in t.rows, t.idx and t.cand.
func (t *wideTable) candidates(pending []uint32, sel []uint16, groups []uint32, find bool) int {
	live := len(groups)
	if cap(t.rows) < live {
		t.rows, t.idx, t.cand = make([]uint16, live), make([]uint32, live), make([]uint32, live)
	}
	rows, idx, cand := t.rows[:live], t.idx[:live], t.cand[:live]
	h, pos := t.h[:live], t.pos[:live]
	slots, mask := t.slots, t.mask
	t.fresh = t.fresh[:0]
	m := 0
	for _, k := range pending {
		hk := h[k]
		p := pos[k]
		row := uint16(k)
		if sel != nil {
			row = sel[k]
		}
		for {
			s := slots[p&mask]
			if s>>32 == hk>>32 && s != 0 {
				rows[m], idx[m], cand[m] = row, k, uint32(s)-1
				m++
				pos[k] = p + 1
				break
			}
			if s == 0 {
				if find {
					groups[k] = noGroup
					break
				}
				g := uint32(len(t.hashes))
				slots[p&mask] = hk&^0xffffffff | uint64(g+1)
				t.hashes = push(t.hashes, hk)
				t.fresh = append(t.fresh, row)
				groups[k] = g
				break
			}
			p++
		}
	}
	return m
}

func (t *wideTable) keys(from, to int) []arrow.Array {
	out := make([]arrow.Array, len(t.cols))
	for i, c := range t.cols {
		out[i] = c.slice(from, to)
	}
	return out
}

// size leaves out the slots, which are charged when they grow.
func (t *wideTable) size() int64 {
	n := int64(cap(t.hashes)) * 8
	for _, c := range t.cols {
		n += c.size()
	}
	return n
}

// packedTable is for keys that fit two words: integers, dates, booleans, and
// text by the number of its value (interned). Slots hold group numbers only, so
// that the table of a million groups is 8 MB; keys stand by group number.
//
// A batch is looked up in passes: first the slots of all rows are read, then
// the keys of the groups found are compared. The loads of a pass do not depend
// on each other, so their cache misses overlap. Rows that need a second slot or
// a new group are done one by one at the end, in order.
type packedTable struct {
	ts    []types.Type
	parts []packedPart
	two   bool // the second word is used
	acc   *mem.Account
	held  int64

	slots []uint32 // group plus one; 0 = free
	mask  uint64
	a, b  []uint64 // keys by group
	nulls []uint32 // by group: bit i = column i is NULL; nil = none anywhere

	ka, kb []uint64 // keys of the batch
	kn     []uint32
	slow   []uint32
	runs   []uint32 // where stretches of equal keys begin
	short  []uint32 // the groups of the stretches
}

type packedPart struct {
	word   int
	shift  uint
	width  int // bytes
	intern *interner
	bool_  bool
}

func newPacked(ts []types.Type, sample []arrow.Array, acc *mem.Account, share bool) *packedTable {
	if len(ts) > 16 {
		return nil
	}
	t := &packedTable{ts: ts, acc: acc}
	var used [2]int
	for i, k := range ts {
		p := packedPart{}
		switch {
		case k.Kind == types.Bool:
			p.width, p.bool_ = 1, true
		case k.Kind == types.Int2 || k.Kind == types.TinyInt:
			p.width = 2
		case k.Kind == types.Int4 || k.Kind == types.Date:
			p.width = 4
		case k.Kind == types.Int8, k.IsOIDLike(), k.Kind == types.Time, k.Kind == types.Timestamp, k.Kind == types.TimestampTZ:
			p.width = 8
		case plainText(k.Kind) && !share && sample != nil && vec.IsDict(sample[i]):
			p.width, p.intern = 4, newInterner(acc)
		default:
			return nil
		}
		w := 0
		if used[0]+p.width > 8 {
			w = 1
		}
		if used[w]+p.width > 8 {
			return nil
		}
		p.word, p.shift = w, uint(used[w])*8
		used[w] += p.width
		t.parts = append(t.parts, p)
	}
	t.two = used[1] > 0
	return t
}

func (t *packedTable) len() int { return len(t.a) }

func (t *packedTable) reserve(more int) error {
	need := (len(t.a) + more) * 3
	if len(t.slots) >= need {
		return nil
	}
	n := max(1024, len(t.slots))
	for n < need {
		n *= 2
	}
	if err := t.acc.Grow(int64(n) * 4); err != nil {
		return err
	}
	t.acc.Shrink(t.held)
	t.held = int64(n) * 4
	t.slots, t.mask = make([]uint32, n), uint64(n-1)
	slots, mask := t.slots, t.mask
	for g, a := range t.a {
		var b uint64
		var nl uint32
		if t.two {
			b = t.b[g]
		}
		if t.nulls != nil {
			nl = t.nulls[g]
		}
		p := packedHash(a, b, nl) & mask
		for slots[p&mask] != 0 {
			p++
		}
		slots[p&mask] = uint32(g + 1)
	}
	return nil
}

func packedHash(a, b uint64, nulls uint32) uint64 {
	return vec.Mix(a^0x9e3779b97f4a7c15^uint64(nulls), (b+0xe7037ed1a0b428db)|1)
}

func (t *packedTable) lookup(cols []arrow.Array, n int, sel []uint16, groups []uint32, find bool) error {
	live := len(groups)
	hasNull, err := t.pack(cols, sel, live)
	if err != nil {
		return err
	}
	if len(t.slots) == 0 {
		if find {
			for i := range groups {
				groups[i] = noGroup
			}
			return nil
		}
		if err := t.reserve(1); err != nil {
			return err
		}
	}
	// Data lies clustered more often than not: look each stretch of equal keys
	// up once.
	if t.stretches(live, hasNull) {
		n := len(t.runs)
		for r, k := range t.runs {
			t.ka[r] = t.ka[k]
			if t.two {
				t.kb[r] = t.kb[k]
			}
			if hasNull {
				t.kn[r] = t.kn[k]
			}
		}
		if cap(t.short) < n {
			t.short = make([]uint32, live)
		}
		short := t.short[:n]
		if err := t.lookupKeys(short, hasNull, find); err != nil {
			return err
		}
		for r, k := range t.runs {
			end := live
			if r+1 < n {
				end = int(t.runs[r+1])
			}
			g := short[r]
			for ; int(k) < end; k++ {
				groups[k] = g
			}
		}
		return nil
	}
	return t.lookupKeys(groups, hasNull, find)
}

// stretches finds where the keys of the batch change, and reports whether that
// is seldom.
func (t *packedTable) stretches(live int, hasNull bool) bool {
	if live < 64 {
		return false
	}
	limit := live / 2
	runs := t.runs[:0]
	if cap(runs) < limit+1 {
		runs = make([]uint32, 0, live)
	}
	ka := t.ka[:live]
	prev := ^ka[0]
	for k, a := range ka {
		if a != prev || t.two && t.kb[k] != t.kb[k-1] || hasNull && t.kn[k] != t.kn[k-1] {
			if len(runs) == limit {
				t.runs = runs
				return false
			}
			runs = append(runs, uint32(k))
			prev = a
		}
	}
	t.runs = runs
	return true
}

// lookupKeys looks up the first len(groups) keys of the batch.
func (t *packedTable) lookupKeys(groups []uint32, hasNull, find bool) error {
	live := len(groups)
	simple := !t.two && !hasNull && t.nulls == nil
	if cap(t.slow) < live {
		t.slow = make([]uint32, live)
	}
	slow := t.slow[:live]
	ka := t.ka[:live]
	slots, mask := t.slots, t.mask
	if simple {
		for k, a := range ka {
			groups[k] = slots[packedHash(a, 0, 0)&mask]
		}
		m := 0
		keys := t.a
		for k, g := range groups {
			slow[m] = uint32(k)
			miss := 1
			if g--; uint64(g) < uint64(len(keys)) && keys[g] == ka[k] {
				miss = 0
			}
			groups[k] = g
			m += miss
		}
		return t.lookupSlow(slow[:m], groups, false, find)
	}
	for k, a := range ka {
		var b uint64
		var nl uint32
		if t.two {
			b = t.kb[k]
		}
		if hasNull {
			nl = t.kn[k]
		}
		groups[k] = slots[packedHash(a, b, nl)&mask]
	}
	m := 0
	for k, g := range groups {
		if g == 0 || !t.is(g-1, k, hasNull) {
			slow[m] = uint32(k)
			m++
			continue
		}
		groups[k] = g - 1
	}
	return t.lookupSlow(slow[:m], groups, hasNull, find)
}

// is reports whether group g has the key of row k of the batch.
func (t *packedTable) is(g uint32, k int, hasNull bool) bool {
	if t.a[g] != t.ka[k] || t.two && t.b[g] != t.kb[k] {
		return false
	}
	var x, y uint32
	if t.nulls != nil {
		x = t.nulls[g]
	}
	if hasNull {
		y = t.kn[k]
	}
	return x == y
}

// lookupSlow finds or makes the groups of rows ks, one by one.
func (t *packedTable) lookupSlow(ks []uint32, groups []uint32, hasNull, find bool) error {
	for _, k := range ks {
		a := t.ka[k]
		var b uint64
		var nl uint32
		if t.two {
			b = t.kb[k]
		}
		if hasNull {
			nl = t.kn[k]
		}
		p := packedHash(a, b, nl)
		for {
			g := t.slots[p&t.mask]
			if g == 0 {
				if find {
					groups[k] = noGroup
					break
				}
				if (len(t.a)+1)*3 > len(t.slots) {
					if err := t.reserve(1); err != nil {
						return err
					}
					p = packedHash(a, b, nl)
					continue
				}
				t.a = push(t.a, a)
				if t.two {
					t.b = push(t.b, b)
				}
				if nl != 0 && t.nulls == nil {
					t.nulls = make([]uint32, len(t.a)-1, cap(t.a))
				}
				if t.nulls != nil {
					t.nulls = append(t.nulls, nl)
				}
				t.slots[p&t.mask] = uint32(len(t.a))
				groups[k] = uint32(len(t.a) - 1)
				break
			}
			if t.is(g-1, int(k), hasNull) {
				groups[k] = g - 1
				break
			}
			p++
		}
	}
	return nil
}

// pack lays the key columns of the batch into words.
func (t *packedTable) pack(cols []arrow.Array, sel []uint16, live int) (hasNull bool, err error) {
	if cap(t.ka) < live {
		t.ka = make([]uint64, live)
	}
	t.ka = t.ka[:live]
	if t.two {
		if cap(t.kb) < live {
			t.kb = make([]uint64, live)
		}
		t.kb = t.kb[:live]
		clear(t.kb)
	}
	for _, a := range cols {
		if a.NullN() != 0 {
			hasNull = true
			if cap(t.kn) < live {
				t.kn = make([]uint32, live)
			}
			t.kn = t.kn[:live]
			clear(t.kn)
		}
	}
	first := true
	for i, a := range cols {
		p := &t.parts[i]
		out := t.ka
		if p.word == 1 {
			out = t.kb
		}
		set := p.word == 0 && first // overwrite what the last batch left
		if p.word == 0 {
			first = false
		}
		valid, off := vec.Validity(a)
		switch {
		case p.intern != nil:
			if err := p.intern.codes(a, sel, live, out, p.shift, set); err != nil {
				return false, err
			}
		case p.bool_:
			b := a.(*array.Boolean)
			for k := range out {
				r := k
				if sel != nil {
					r = int(sel[k])
				}
				x := uint64(0)
				if b.IsValid(r) && b.Value(r) {
					x = 1
				}
				if set {
					out[k] = x << p.shift
				} else {
					out[k] |= x << p.shift
				}
			}
		case p.width == 2:
			packInts(vec.ViewOf[int16](a).V, sel, out, p.shift, 0xffff, set)
		case p.width == 4:
			packInts(vec.ViewOf[int32](a).V, sel, out, p.shift, 0xffffffff, set)
		default:
			packInts(vec.ViewOf[int64](a).V, sel, out, p.shift, ^uint64(0), set)
		}
		if valid != nil {
			mask := ^uint64(0)
			if p.width < 8 {
				mask = 1<<(p.width*8) - 1
			}
			for k := range out {
				r := k
				if sel != nil {
					r = int(sel[k])
				}
				if !vec.BitAt(valid, off+r) {
					out[k] &^= mask << p.shift
					t.kn[k] |= 1 << i
				}
			}
		}
	}
	return hasNull, nil
}

func packInts[T int16 | int32 | int64](v []T, sel []uint16, out []uint64, shift uint, mask uint64, set bool) {
	switch {
	case set && sel == nil:
		v = v[:len(out)]
		for k := range out {
			out[k] = uint64(v[k]) & mask << shift
		}
	case set:
		sel = sel[:len(out)]
		for k := range out {
			out[k] = uint64(v[sel[k]]) & mask << shift
		}
	case sel == nil:
		v = v[:len(out)]
		for k := range out {
			out[k] |= uint64(v[k]) & mask << shift
		}
	default:
		sel = sel[:len(out)]
		for k := range out {
			out[k] |= uint64(v[sel[k]]) & mask << shift
		}
	}
}

func (t *packedTable) keys(from, to int) []arrow.Array {
	n := to - from
	out := make([]arrow.Array, len(t.parts))
	for i, p := range t.parts {
		src := t.a[from:to]
		if p.word == 1 {
			src = t.b[from:to]
		}
		var valid []byte
		if t.nulls != nil {
			for k, nl := range t.nulls[from:to] {
				if nl>>i&1 == 1 {
					if valid == nil {
						valid = vec.FullBitmap(n)
					}
					vec.ClearBit(valid, k)
				}
			}
		}
		dt := t.ts[i].Arrow()
		switch {
		case p.intern != nil:
			idx := make([]int32, n)
			for k, w := range src {
				idx[k] = int32(w >> p.shift & 0xffffffff)
			}
			out[i] = p.intern.strings(idx, valid)
		case p.bool_:
			v := make([]uint8, n)
			for k, w := range src {
				v[k] = uint8(w >> p.shift & 1)
			}
			out[i] = vec.MakeBool(n, vec.PackBools(v), valid)
		case p.width == 2:
			v := make([]int16, n)
			for k, w := range src {
				v[k] = int16(w >> p.shift)
			}
			out[i] = vec.Make(dt, v, valid)
		case p.width == 4:
			v := make([]int32, n)
			for k, w := range src {
				v[k] = int32(w >> p.shift)
			}
			out[i] = vec.Make(dt, v, valid)
		default:
			v := make([]int64, n)
			for k, w := range src {
				v[k] = int64(w)
			}
			out[i] = vec.Make(dt, v, valid)
		}
	}
	return out
}

func (t *packedTable) size() int64 {
	n := int64(cap(t.a)+cap(t.b))*8 + int64(cap(t.nulls))*4
	for _, p := range t.parts {
		if p.intern != nil {
			n += p.intern.size()
		}
	}
	return n
}
