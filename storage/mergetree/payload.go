package mergetree

import (
	"context"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// The phases in which columns of winners are read: the filter's first.
const (
	phaseFilter = iota
	phaseRest
)

// phase is what is read together: the filter's columns, and the others.
type phase struct {
	out  []int // positions in Options.Columns
	read []int // columns that are read: those of out, then what only the engine needs
	// Of keys that are folded, out[i] is column fold[i] of what the engine made, or
	// the last version's own value (ownValue), or its kind (ownKind).
	fold   []int
	engine Engine
	sees   []int // places in read of Engine.Reads
	types  []arrow.DataType
}

const (
	ownValue = -1
	ownKind  = -2
)

// gatherScratch is memory that rounds use again.
type gatherScratch struct {
	at       []uint32 // of keys, see layout
	src, own []uint16
	row      []uint32
	ownRow   []uint32
	live     []uint16
}

// preparePhases finds what each phase reads and makes its engine.
func (m *Reader) preparePhases() error {
	if m.phases[phaseRest].read != nil {
		return nil
	}
	of := [2][]int{}
	for i := range m.o.Columns {
		ph := phaseRest
		if m.o.Filter != nil && slices.Contains(m.o.FilterPos, i) {
			continue
		}
		of[ph] = append(of[ph], i)
	}
	if m.o.Filter != nil {
		of[phaseFilter] = m.o.FilterPos
	}
	first := m.firstPhase()
	for ph := range m.phases {
		p := &m.phases[ph]
		p.out, p.read = of[ph], []int{}
		var made []int
		for _, pos := range p.out {
			c := m.o.Columns[pos]
			at := ownValue
			switch {
			case c == Kind:
				at = ownKind
			case c >= 0 && !slices.Contains(m.o.KeyCols, c):
				if at = slices.Index(made, c); at < 0 {
					at, made = len(made), append(made, c)
				}
			}
			p.fold = append(p.fold, at)
			p.read = append(p.read, c)
			p.types = append(p.types, m.o.Types[pos].Arrow())
		}
		if !m.folds() || m.all || len(made) == 0 && ph != first {
			continue
		}
		var err error
		if p.engine, err = m.o.Engine(made); err != nil {
			return err
		}
		for _, c := range p.engine.Reads() {
			at := slices.Index(p.read, c)
			if at < 0 {
				at, p.read = len(p.read), append(p.read, c)
				p.types = append(p.types, nil)
			}
			p.sees = append(p.sees, at)
		}
	}
	return nil
}

// firstPhase is the one that is read for every key of a round.
func (m *Reader) firstPhase() int {
	if m.o.Filter != nil {
		return phaseFilter
	}
	return phaseRest
}

// payload reads the columns of the round's keys and gathers them in order.
func (m *Reader) payload(ctx context.Context) ([]arrow.Array, int, error) {
	n := m.out.n
	out := make([]arrow.Array, len(m.o.Columns))
	if m.o.Filter != nil {
		got, live, err := m.gather(ctx, phaseFilter)
		if err != nil {
			return nil, 0, err
		}
		if live != nil {
			n = len(live)
		}
		var sel []uint16
		if n > 0 {
			if sel, err = m.o.Filter(ctx, got, n); err != nil {
				return nil, 0, err
			}
		}
		if sel != nil && len(sel) == n {
			sel = nil
		}
		for i, p := range m.o.FilterPos {
			out[p] = vec.FilterSel(got[i], sel)
		}
		switch {
		case sel != nil && live != nil:
			for i, s := range sel {
				live[i] = live[s]
			}
			live = live[:len(sel)]
		case sel != nil:
			live = sel
		}
		if live != nil {
			m.narrow(live)
			n = len(live)
		}
	}
	if n == 0 {
		// The rest's readers catch up in a later round.
		return nil, 0, nil
	}
	got, live, err := m.gather(ctx, phaseRest)
	if err != nil {
		return nil, 0, err
	}
	if live != nil {
		n = len(live)
	}
	for i, p := range m.phases[phaseRest].out {
		out[p] = got[i]
	}
	return out, n, nil
}

// narrow keeps the keys sel; what the segments have to read is found anew.
func (m *Reader) narrow(sel []uint16) {
	o, v := &m.out, &m.vers
	o.flatten()
	for i := range m.segs {
		m.segs[i].need = 0
	}
	keys, rows := 0, 0
	for i, s := range sel {
		src, row := o.src[s], o.row[s]
		o.src[i] = src
		if src != folded {
			o.row[i] = row
			m.segs[src].want(row, 1)
			continue
		}
		from := uint32(0)
		if row > 0 {
			from = v.ends[row-1]
		}
		// The lists only get shorter: what is moved was read before.
		end := v.ends[row]
		if v.last != nil {
			v.last[keys] = v.last[row] - from + uint32(rows)
		}
		if v.result != nil {
			v.result[keys] = v.result[row]
		}
		for j := from; j < end; j++ {
			v.src[rows], v.row[rows], v.kinds[rows] = v.src[j], v.row[j], v.kinds[j]
			m.segs[v.src[rows]].want(v.row[rows], 1)
			rows++
		}
		o.row[i] = uint32(keys)
		v.ends[keys] = uint32(rows)
		keys++
	}
	v.ends, v.src, v.row, v.kinds = v.ends[:keys], v.src[:rows], v.row[:rows], v.kinds[:rows]
	if v.last != nil {
		v.last = v.last[:keys]
	}
	if v.result != nil {
		v.result = v.result[:keys]
	}
	o.n = len(sel)
	o.src, o.row = o.src[:o.n], o.row[:o.n]
}

// denseShare is the share of wanted rows, in percent, from which on a stretch of a
// file is decoded whole: dropping the others while decoding costs a second copy of
// the wanted ones.
const denseShare = 60

// layout decides how each segment is read, and finds where each wanted row will lie
// in what is: at its row, or where few are wanted at its ordinal among them.
// m.vers.at says so and, unless it is nil, the result, for keys of a flat output.
func (m *Reader) layout(ph int) (at []uint32) {
	o, v := &m.out, &m.vers
	sparse := false
	for i := range m.segs {
		s := &m.segs[i]
		s.keep = s.keep[:0]
		l := &s.run.lanes[ph]
		here := l.cols != nil && l.in == s.in && l.rg == s.rg
		switch {
		case s.need == 0 || here && l.arrs != nil && l.window == s.from:
			s.sparse = false
		case here && l.pos > s.from:
			s.sparse = true // some of the window was read before
		default:
			s.sparse = s.need*100 < (s.last-s.first+1)*denseShare
		}
		sparse = sparse || s.sparse
	}
	if !sparse {
		v.at = v.row
		return nil
	}
	place := func(src uint16, row uint32) uint32 {
		s := &m.segs[src]
		if s.sparse {
			s.keep = append(s.keep, row)
			return uint32(len(s.keep) - 1)
		}
		return row
	}
	m.scratch.row = grow(m.scratch.row, len(v.row))
	v.at = m.scratch.row
	if m.all {
		for i, src := range v.src {
			v.at[i] = place(src, v.row[i])
		}
		return nil
	}
	o.flatten()
	m.scratch.at = grow(m.scratch.at, o.n)
	at = m.scratch.at
	j := uint32(0)
	for i, src := range o.src {
		if src != folded {
			at[i] = place(src, o.row[i])
			continue
		}
		at[i] = o.row[i]
		for end := v.ends[o.row[i]]; j < end; j++ {
			v.at[j] = place(v.src[j], v.row[j])
		}
	}
	return at
}

// readParts reads a phase's columns of every segment: by column, by segment, with
// room for one more source.
func (m *Reader) readParts(ctx context.Context, ph int) (parts [][]arrow.Array, err error) {
	cols := m.phases[ph].read
	parts = make([][]arrow.Array, len(cols))
	if len(cols) == 0 {
		return parts, nil
	}
	for i := range parts {
		parts[i] = make([]arrow.Array, len(m.segs)+1)
	}
	for s := range m.segs {
		g := &m.segs[s]
		if g.need == 0 {
			continue
		}
		got, err := m.readSegment(ctx, g, ph, cols)
		if err != nil {
			return nil, err
		}
		for i := range cols {
			parts[i][s] = got[i]
		}
	}
	return parts, nil
}

// gather reads a phase's columns for the keys of the round and puts them in key
// order. live are the keys that are left, nil = all: the first phase leaves out
// those that were folded into nothing. It may be changed by the caller.
func (m *Reader) gather(ctx context.Context, ph int) (out []arrow.Array, live []uint16, err error) {
	p, o, v := &m.phases[ph], &m.out, &m.vers
	out = make([]arrow.Array, len(p.out))
	if len(p.out) == 0 && len(v.ends) == 0 {
		return out, nil, nil
	}
	at := m.layout(ph)
	parts, err := m.readParts(ctx, ph)
	if err != nil {
		return nil, nil, err
	}
	if live, err = m.foldPhase(ph, parts); err != nil {
		return nil, nil, err
	}
	if !o.flat && len(o.spans)*4 > o.n {
		o.flatten()
	}
	switch {
	case !o.flat:
		m.splice(p, parts, out)
	case live != nil && len(live) == 0:
		for i := range out {
			out[i] = vec.MakeNull(vec.Plain(p.types[i]), 0)
		}
	default:
		if at == nil {
			at = o.row
		}
		m.gatherFlat(p, parts, at, live, out)
	}
	return out, live, nil
}

// splice puts a round's columns together from spans and patches.
func (m *Reader) splice(p *phase, parts [][]arrow.Array, out []arrow.Array) {
	o, v, s := &m.out, &m.vers, &m.scratch
	if len(o.spans) == 1 && len(o.pos) == 0 {
		sp := o.spans[0]
		for i := range out {
			out[i] = vec.Slice(parts[i][sp.seg], int(sp.row), int(sp.row+sp.n))
		}
		return
	}
	psrc := o.psrc
	ownSrc, ownRow := o.psrc, o.prow
	if len(v.ends) > 0 {
		s.src, s.own, s.ownRow = grow(s.src, len(psrc)), grow(s.own, len(psrc)), grow(s.ownRow, len(psrc))
		for i, src := range o.psrc {
			s.src[i], s.own[i], s.ownRow[i] = src, src, o.prow[i]
			if src == folded {
				x := v.ownVersion(o.prow[i])
				s.src[i] = uint16(len(m.segs))
				s.own[i], s.ownRow[i] = v.src[x], v.at[x]
			}
		}
		psrc, ownSrc, ownRow = s.src, s.own, s.ownRow
	}
	for i := range out {
		src, row := psrc, o.prow
		if p.fold[i] == ownValue {
			src, row = ownSrc, ownRow
		}
		out[i] = spliceColumn(p.types[i], parts[i], o, src, row)
	}
}

// gatherFlat gathers a round's columns row by row, of the keys live (nil: all).
func (m *Reader) gatherFlat(p *phase, parts [][]arrow.Array, at []uint32, live []uint16, out []arrow.Array) {
	o, v, s := &m.out, &m.vers, &m.scratch
	src, row := o.src, at
	ownSrc, ownRow := src, row
	if len(v.ends) > 0 {
		n := o.n
		if live != nil {
			n = len(live)
		}
		s.src, s.own, s.ownRow = grow(s.src, n), grow(s.own, n), grow(s.ownRow, n)
		rows := make([]uint32, n)
		for i := range n {
			k := i
			if live != nil {
				k = int(live[i])
			}
			s.src[i], rows[i] = src[k], row[k]
			s.own[i], s.ownRow[i] = src[k], row[k]
			if src[k] == folded {
				x := v.ownVersion(row[k])
				s.src[i] = uint16(len(m.segs))
				s.own[i], s.ownRow[i] = v.src[x], v.at[x]
			}
		}
		src, row, ownSrc, ownRow = s.src, rows, s.own, s.ownRow
	}
	for i := range out {
		if p.fold[i] == ownValue {
			out[i] = vec.Gather(p.types[i], parts[i][:len(m.segs)], ownSrc, ownRow)
		} else {
			out[i] = vec.Gather(p.types[i], parts[i], src, row)
		}
	}
}

// maxRead is the most rows that a format's reader takes at once.
const maxRead = 1 << 16

// aheadBytes is how much of a window is read before a round needs it: rounds take
// few rows of small runs, and reading a few costs nearly what reading many does.
const aheadBytes = 4 << 20

// readSegment reads the wanted rows of a segment, moving the run's lane forwards:
// those of a sparse one by its keep list, of others all up to the last or, unless
// rows are wide, the whole window, which later rounds find there.
func (m *Reader) readSegment(ctx context.Context, s *segment, phase int, cols []int) ([]arrow.Array, error) {
	l := &s.run.lanes[phase]
	in := &s.run.inputs[s.in]
	start := s.from
	if s.sparse {
		start += int64(s.keep[0])
	}
	if l.cols == nil || l.in != s.in || l.rg != s.rg {
		if l.cols != nil {
			_ = l.cols.Close()
			l.cols = nil
		}
		rg := in.Ranges[s.rg]
		rg.From = start // rows before are not even opened
		c, err := in.Open(ctx, rg, cols)
		if err != nil {
			return nil, err
		}
		*l = lane{cols: c, in: s.in, rg: s.rg, pos: start}
	}
	if l.arrs != nil && l.window == s.from {
		return l.arrs, nil
	}
	l.arrs = nil
	for l.pos < start {
		n := min(start-l.pos, maxRead)
		if _, err := l.cols.Read(ctx, int(n), []uint16{}); err != nil {
			return nil, err
		}
		l.pos += n
	}
	if !s.sparse {
		n := int(s.last) + 1
		per := &s.run.perRow[phase]
		ahead := *per > 0 && *per*int64(s.run.size) <= aheadBytes
		if ahead {
			n = s.run.size
		}
		arrs, err := l.cols.Read(ctx, n, nil)
		if err != nil {
			return nil, err
		}
		l.pos += int64(n)
		if ahead || n == s.run.size {
			l.arrs, l.window = arrs, s.from
		}
		size := int64(1)
		for _, a := range arrs {
			size += vec.Size(a)
		}
		*per = max(size/int64(n), 1)
		return arrs, nil
	}
	keep := make([]uint16, len(s.keep))
	for i, row := range s.keep {
		keep[i] = uint16(row - s.keep[0])
	}
	n := s.keep[len(s.keep)-1] - s.keep[0] + 1
	l.pos += int64(n)
	return l.cols.Read(ctx, int(n), keep)
}
