package mergetree

import (
	"bytes"
	"cmp"
	"context"
	"slices"
)

// A round merges what is certain of the windows of all runs: the rows up to the
// smallest last key of a window whose run goes on. No run can have a version of
// those keys that is not in a window, so nothing is pending between rounds, and a
// round consumes from one window, and so one range of one file, of each run.
//
// The run with the most rows is the base. The others are merged with each other
// pair by pair, on the first words of the keys alone and without branches; rows
// whose first words are equal are put in order afterwards. What came of that, few
// rows in most tables, is laid over the base:
//
//	base      10 11 12 13 14 15 16
//	others          12    14       17
//	spans     [10 ........... 16]  [17]
//	patches         ^     ^
//
// Rows of the base between two others are never looked at. A key that the base
// has and that another run overwrites stays in the span and is patched: copying a
// stretch and overwriting a fifth of it costs half of gathering row by row.

// span is rows of one segment that follow each other, seg hole for rows that are
// patched all.
type span struct {
	seg    uint16
	row, n uint32
}

const hole = 1<<16 - 1

// output is what a round settled, in key order.
type output struct {
	n     int // keys
	spans []span
	// Row pos[i] is row prow[i] of psrc[i] instead; psrc is folded for keys that
	// are folded, prow their number then.
	pos  []uint32
	psrc []uint16
	prow []uint32
	// Once flat, row i is row[i] of src[i].
	flat bool
	src  []uint16
	row  []uint32
}

func (o *output) reset() {
	o.n, o.flat = 0, false
	o.spans, o.pos, o.psrc, o.prow = o.spans[:0], o.pos[:0], o.psrc[:0], o.prow[:0]
}

// flatten says for every key where it is.
func (o *output) flatten() {
	if o.flat {
		return
	}
	o.flat = true
	o.src, o.row = grow(o.src, o.n), grow(o.row, o.n)
	at := 0
	for _, s := range o.spans {
		src, row := o.src[at:at+int(s.n)], o.row[at:at+int(s.n)]
		for i := range src {
			src[i] = s.seg
		}
		for i := range row {
			row[i] = s.row + uint32(i)
		}
		at += int(s.n)
	}
	for i, p := range o.pos {
		o.src[p], o.row[p] = o.psrc[i], o.prow[i]
	}
}

// list is rows of several runs in order of the first words of their keys.
type list struct {
	hi  []uint64
	ref []uint32 // run in the upper half, row of its window in the lower
}

func (m *Reader) at(ref uint32) (*run, int) { return m.runs[ref>>16], int(ref & 0xffff) }

// round settles the next keys; m.ended is set when there are none.
func (m *Reader) round(ctx context.Context) error {
	m.segs, m.ended = m.segs[:0], false
	m.out.reset()
	m.vers.reset()
	var limit, base *run
	for _, r := range m.runs {
		if !r.done && r.p >= r.n {
			if err := r.load(ctx); err != nil {
				return err
			}
		}
		if !r.done && r.more() && (limit == nil || m.compareKeys(r, r.n-1, limit, limit.n-1) < 0) {
			limit = r
		}
	}
	for _, r := range m.runs {
		r.q = r.p
		if r.done {
			continue
		}
		r.q = r.n
		if limit != nil && r != limit {
			r.q = m.upTo(r, limit, limit.n-1)
		}
		if base == nil || r.q-r.p > base.q-base.p {
			base = r
		}
	}
	if base == nil {
		m.ended = true
		return nil
	}
	for _, r := range m.runs {
		if r.q > r.p {
			r.seg = uint16(len(m.segs))
			m.segs = append(m.segs, segment{run: r, in: r.in, rg: r.rg - 1, from: r.start})
			r.odd = false
			if r.kinds != nil {
				for _, k := range r.kinds[r.p:r.q] {
					r.odd = r.odd || k&1 != 0
				}
			}
		}
	}
	if m.form == WordAndBytes {
		m.reword()
	}
	m.overlay(base, m.mergeOthers(base))
	for _, r := range m.runs {
		r.p = r.q
	}
	return nil
}

// more reports whether the run may have rows behind its window.
func (r *run) more() bool {
	return !r.last && (r.pos < r.end || r.rg < len(r.inputs[r.in].Ranges) || r.in+1 < len(r.inputs))
}

// compareKeys compares keys of two windows.
func (m *Reader) compareKeys(a *run, i int, b *run, j int) int {
	if x := cmp.Compare(a.keys.Hi[i], b.keys.Hi[j]); x != 0 {
		return x
	}
	return m.compareRest(a, i, b, j)
}

// compareRest compares keys whose first words are equal.
func (m *Reader) compareRest(a *run, i int, b *run, j int) int {
	switch m.form {
	case TwoWords:
		return cmp.Compare(a.keys.Lo[i], b.keys.Lo[j])
	case WordAndBytes:
		return bytes.Compare(a.keys.At(i), b.keys.At(j))
	}
	return 0
}

// upTo returns the end of r's rows that are not above key i of l.
func (m *Reader) upTo(r, l *run, i int) int {
	from, n := r.p, r.n
	for from < n {
		mid := int(uint(from+n) >> 1)
		if m.compareKeys(r, mid, l, i) <= 0 {
			from = mid + 1
		} else {
			n = mid
		}
	}
	return from
}

// reword makes the first words of the round's keys from the bytes behind those
// that all of them share.
func (m *Reader) reword() {
	var lo, hi []byte
	for _, r := range m.runs {
		if r.q == r.p {
			continue
		}
		first, last := r.keys.At(r.p), r.keys.At(r.q-1)
		if lo == nil || bytes.Compare(first, lo) < 0 {
			lo = first
		}
		if hi == nil || bytes.Compare(last, hi) > 0 {
			hi = last
		}
	}
	n := 0
	for n < len(lo) && n < len(hi) && lo[n] == hi[n] {
		n++
	}
	if n < 2 {
		return // the words tell enough
	}
	for _, r := range m.runs {
		for i := r.p; i < r.q; i++ {
			r.keys.Hi[i] = prefix(r.keys.At(i)[n:])
		}
	}
}

// mergeOthers merges the runs besides the base, and puts rows of one key into
// merge order.
func (m *Reader) mergeOthers(base *run) list {
	free := m.spare
	take := func(n int) list {
		var l list
		if k := len(free) - 1; k >= 0 {
			l, free = free[k], free[:k]
		}
		return list{grow(l.hi, n), grow(l.ref, n)}
	}
	var lists []list
	for i, r := range m.runs {
		if r == base || r.q == r.p {
			continue
		}
		l := take(r.q - r.p)
		copy(l.hi, r.keys.Hi[r.p:r.q])
		for k := range l.ref {
			l.ref[k] = uint32(i)<<16 | uint32(r.p+k)
		}
		lists = append(lists, l)
	}
	for len(lists) > 1 {
		slices.SortFunc(lists, func(a, b list) int { return len(b.hi) - len(a.hi) })
		a, b := lists[len(lists)-1], lists[len(lists)-2]
		out := take(len(a.hi) + len(b.hi))
		mergeLists(a, b, out)
		free = append(free, a, b)
		lists = append(lists[:len(lists)-2], out)
	}
	m.spare = free
	if len(lists) == 0 {
		return list{}
	}
	m.spare = append(m.spare, lists[0]) // used until the next round only
	m.settle(lists[0])
	return lists[0]
}

// mergeLists merges by the first words; of equal ones a's come first.
//
// Which list is next is a coin's toss where two runs interleave: the loop selects
// and advances without a branch on it.
func mergeLists(a, b, out list) {
	i, j, k := 0, 0, 0
	na, nb := len(a.hi), len(b.hi)
	for i < na && j < nb {
		x, y := a.hi[i], b.hi[j]
		ref := b.ref[j]
		if x <= y {
			ref = a.ref[i]
		}
		t := 0
		if x <= y {
			t = 1
		}
		out.hi[k] = min(x, y)
		out.ref[k] = ref
		i += t
		j += 1 - t
		k++
	}
	copy(out.hi[k:], a.hi[i:])
	copy(out.ref[k:], a.ref[i:])
	k += na - i
	copy(out.hi[k:], b.hi[j:])
	copy(out.ref[k:], b.ref[j:])
}

// settle puts rows whose first words are equal into order: rest of the key, then
// that of versions.
func (m *Reader) settle(l list) {
	hi := l.hi
	for i := 1; i < len(hi); i++ {
		if hi[i] != hi[i-1] {
			continue
		}
		j := i + 1
		for j < len(hi) && hi[j] == hi[i] {
			j++
		}
		part := l.ref[i-1 : j]
		if len(part) > 32 {
			slices.SortStableFunc(part, m.compareRefs)
		} else {
			m.insert(part)
		}
		i = j
	}
}

// insert sorts few rows; the key's versions of most tables are in order by the run
// that they are in.
func (m *Reader) insert(part []uint32) {
	if m.form == OneWord && !m.bySequence && len(m.o.SequenceCols) == 0 {
		for i := 1; i < len(part); i++ {
			x := part[i]
			order := m.runs[x>>16].order
			j := i
			for ; j > 0 && m.runs[part[j-1]>>16].order > order; j-- {
				part[j] = part[j-1]
			}
			part[j] = x
		}
		return
	}
	for i := 1; i < len(part); i++ {
		x := part[i]
		j := i
		for ; j > 0 && m.compareRefs(part[j-1], x) > 0; j-- {
			part[j] = part[j-1]
		}
		part[j] = x
	}
}

// compareRefs orders rows whose keys' first words are equal.
func (m *Reader) compareRefs(x, y uint32) int {
	a, i := m.at(x)
	b, j := m.at(y)
	if m.form != OneWord {
		if c := m.compareRest(a, i, b, j); c != 0 {
			return c
		}
	}
	if c := m.compareVersions(a, i, b, j); c != 0 {
		return c
	}
	return cmp.Compare(a.index, b.index)
}

// follows reports whether row i of a, of the same key, comes after row j of b.
func (m *Reader) follows(a *run, i int, b *run, j int) bool {
	c := m.compareVersions(a, i, b, j)
	return c > 0 || c == 0 && a.index > b.index
}

// compareVersions orders versions of one key: user sequence, sequence, retraction
// before addition.
func (m *Reader) compareVersions(a *run, i int, b *run, j int) int {
	if len(m.o.SequenceCols) > 0 {
		if c := bytes.Compare(a.user.At(i), b.user.At(j)); c != 0 {
			return c
		}
	}
	if a.order != b.order {
		return cmp.Compare(a.order, b.order)
	}
	if m.bySequence {
		if c := cmp.Compare(a.seq[i], b.seq[j]); c != 0 {
			return c
		}
	}
	ra, rb := a.retract(i), b.retract(j)
	switch {
	case ra == rb:
		return 0
	case ra:
		return -1
	}
	return 1
}

// far is how many rows of the base are passed one by one before it is galloped.
const far = 16

// overlay lays the rows of others over those of the base.
func (m *Reader) overlay(base *run, others list) {
	hi := base.keys.Hi
	i, end := base.p, base.q
	whole := m.form == OneWord
	for g := 0; g < len(others.hi); {
		key, ref := others.hi[g], others.ref[g]
		j, near := i, min(end, i+far)
		for j < near && hi[j] < key {
			j++
		}
		if j == near && j < end && hi[j] < key {
			j = gallop(hi, j, end, key)
		}
		r, row := m.at(ref)
		if !whole {
			for j < end && hi[j] == key && m.compareRest(base, j, r, row) < 0 {
				j++
			}
		}
		if j > i {
			m.stretch(base, i, j)
			i = j
		}
		e := g + 1
		for e < len(others.hi) && others.hi[e] == key && (whole || m.sameRest(ref, others.ref[e])) {
			e++
		}
		at := -1
		if j < end && hi[j] == key && (whole || m.compareRest(base, j, r, row) == 0) {
			at = j
			i++
		}
		m.key(base, at, others.ref[g:e])
		g = e
	}
	if i < end {
		m.stretch(base, i, end)
	}
}

func (m *Reader) sameRest(x, y uint32) bool {
	a, i := m.at(x)
	b, j := m.at(y)
	return m.compareRest(a, i, b, j) == 0
}

// gallop returns the first of hi[from:end] that is not below key.
func gallop(hi []uint64, from, end int, key uint64) int {
	step := 1
	for from+step < end && hi[from+step] < key {
		from += step
		step *= 2
	}
	n := min(from+step, end)
	for from < n {
		mid := int(uint(from+n) >> 1)
		if hi[mid] < key {
			from = mid + 1
		} else {
			n = mid
		}
	}
	return from
}

// add appends rows of a segment to the output.
func (m *Reader) add(seg uint16, row, n uint32) {
	o := &m.out
	if k := len(o.spans) - 1; k >= 0 && o.spans[k].seg == seg && (o.spans[k].row+o.spans[k].n == row || seg == hole) {
		o.spans[k].n += n
	} else {
		o.spans = append(o.spans, span{seg, row, n})
	}
	o.n += int(n)
}

// want notes that rows of a segment are read.
func (s *segment) want(row, n uint32) {
	if s.need == 0 {
		s.first = row
	}
	s.need += n
	s.last = row + n - 1
}

// rel is row i of a window counted from the start of its segment.
func (r *run) rel(i int) uint32 {
	if r.rows == nil {
		return uint32(i)
	}
	return uint32(r.rows[i])
}

// stretch takes rows [i, j) of r, keys of which no other run has a version.
func (m *Reader) stretch(r *run, i, j int) {
	switch {
	case m.all:
		m.noteStretch(r, i, j)
	case r.odd && !m.keepsRetractions():
		for ; i < j; i++ {
			if r.kinds[i]&1 == 0 {
				m.one(r, i)
			}
		}
	case r.rows != nil:
		for ; i < j; i++ {
			m.one(r, i)
		}
	default:
		row, n := r.rel(i), uint32(j-i)
		m.add(r.seg, row, n)
		m.segs[r.seg].want(row, n)
	}
}

// keepsRetractions reports whether a key of one version that is a retraction is
// returned.
func (m *Reader) keepsRetractions() bool {
	return m.o.KeepDeletes && (!m.o.IgnoreDelete || m.o.Engine != nil)
}

// one returns row i of r as it is.
func (m *Reader) one(r *run, i int) {
	row := r.rel(i)
	m.add(r.seg, row, 1)
	m.segs[r.seg].want(row, 1)
}

// key settles a key that runs besides the base have: its versions there, in merge
// order, and the base's row at, if not -1.
func (m *Reader) key(base *run, at int, refs []uint32) {
	if m.folds() {
		m.keyVersions(base, at, refs)
		return
	}
	var win *run
	row := 0
	better := func(r *run, i int) bool { // than the best so far
		if m.o.IgnoreDelete && r.retract(i) {
			return false
		}
		return win == nil || m.follows(r, i, win, row) != m.o.KeepFirst
	}
	if len(refs) == 1 && !m.o.IgnoreDelete {
		win, row = m.at(refs[0])
	} else {
		for _, x := range refs {
			if r, i := m.at(x); win == nil || !m.o.KeepFirst {
				if !m.o.IgnoreDelete || !r.retract(i) {
					win, row = r, i
				}
			}
		}
	}
	if at >= 0 && better(base, at) {
		win, row = base, at
	}
	switch {
	case win == nil || win.retract(row) && !m.o.KeepDeletes:
	case win == base || at < 0:
		m.one(win, row)
	default:
		// The base's row stays where it is and is written over.
		rel := win.rel(row)
		m.patch(base, at, win.seg, rel)
		m.segs[win.seg].want(rel, 1)
	}
}

// patch puts a row over one of the base's, or over nothing (at -1).
func (m *Reader) patch(base *run, at int, src uint16, row uint32) {
	if at >= 0 {
		rel := base.rel(at)
		m.add(base.seg, rel, 1)
		if g := &m.segs[base.seg]; g.need > 0 {
			g.last = rel // what is copied and written over has to be read
		}
	} else {
		m.add(hole, 0, 1)
	}
	o := &m.out
	o.pos = append(o.pos, uint32(o.n-1))
	o.psrc = append(o.psrc, src)
	o.prow = append(o.prow, row)
}

// keyVersions is key where versions are noted.
func (m *Reader) keyVersions(base *run, at int, refs []uint32) {
	vs := m.pendVers[:0]
	put := func(r *run, i int) {
		v := version{seg: r.seg, row: r.rel(i)}
		if r.kinds != nil {
			v.kind = uint8(r.kinds[i])
		}
		if m.readSeq {
			v.seq = r.seq[i]
		}
		vs = append(vs, v)
	}
	open := at >= 0 // the base's row is not among vs yet
	for _, x := range refs {
		r, i := m.at(x)
		if open && !m.follows(base, at, r, i) {
			put(base, at)
			open = false
		}
		put(r, i)
	}
	if open {
		put(base, at)
	}
	m.pendVers = vs
	if m.o.OneHigh && !m.all && len(vs) > 1 {
		m.lowest()
		vs = m.pendVers
	}
	if m.all {
		r, i := m.at(refs[0])
		m.note(vs, r, i)
		return
	}
	if len(vs) > 1 {
		m.patch(base, at, folded, uint32(len(m.vers.ends)))
		m.note(vs, nil, 0)
		return
	}
	v := &vs[0]
	if v.kind&1 != 0 && !m.keepsRetractions() {
		return
	}
	m.segs[v.seg].want(v.row, 1)
	if v.seg == base.seg || at < 0 {
		m.add(v.seg, v.row, 1)
		return
	}
	m.patch(base, at, v.seg, v.row)
}
