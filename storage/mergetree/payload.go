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
	place, vplace []uint32 // of keys, of versions
	src, ownSrc   []uint16
	row, ownRow   []uint32
	live          []uint16
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
	n := len(m.src)
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

// narrow keeps the keys sel and renumbers their rows within the segments.
func (m *Reader) narrow(sel []uint16) {
	kept := make([][]uint32, len(m.segs))
	take := func(src uint16, row uint32) uint32 {
		kept[src] = append(kept[src], m.segs[src].keep[row])
		return uint32(len(kept[src]) - 1)
	}
	v := &m.vers
	keys, rows := 0, 0
	for i, s := range sel {
		src, row := m.src[s], m.row[s]
		m.src[i] = src
		if src != folded {
			m.row[i] = take(src, row)
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
			v.src[rows], v.row[rows], v.kinds[rows] = v.src[j], take(v.src[j], v.row[j]), v.kinds[j]
			rows++
		}
		m.row[i] = uint32(keys)
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
	m.src, m.row = m.src[:len(sel)], m.row[:len(sel)]
	for i := range m.segs {
		m.segs[i].keep = kept[i]
	}
}

// denseShare is the share of winners, in percent, from which on a stretch of a
// file is decoded whole and the losers are left out by the gather: dropping them
// while decoding costs a second copy of the winners.
const denseShare = 60

// readParts reads a phase's columns of every segment: by column, by segment, with
// room for one more source. whole says that a segment was read with rows that are
// not wanted, see segment.base.
func (m *Reader) readParts(ctx context.Context, ph int) (parts [][]arrow.Array, whole bool, err error) {
	cols := m.phases[ph].read
	parts = make([][]arrow.Array, len(cols))
	if len(cols) == 0 {
		return parts, false, nil
	}
	for i := range parts {
		parts[i] = make([]arrow.Array, len(m.segs)+1)
	}
	for s := range m.segs {
		g := &m.segs[s]
		g.base = -1
		if len(g.keep) == 0 {
			continue
		}
		got, err := m.readSegment(ctx, g, ph, cols)
		if err != nil {
			return nil, false, err
		}
		whole = whole || g.base >= 0
		for i := range cols {
			parts[i][s] = got[i]
		}
	}
	return parts, whole, nil
}

// gather reads a phase's columns for the keys of the round and puts them in key
// order. live are the keys that are left, nil = all: the first phase leaves out
// those that were folded into nothing. It may be changed by the caller.
func (m *Reader) gather(ctx context.Context, ph int) (out []arrow.Array, live []uint16, err error) {
	p := &m.phases[ph]
	out = make([]arrow.Array, len(p.out))
	if len(p.out) == 0 && len(m.vers.ends) == 0 {
		return out, nil, nil
	}
	parts, whole, err := m.readParts(ctx, ph)
	if err != nil {
		return nil, nil, err
	}
	if len(m.vers.ends) > 0 {
		return m.gatherFolded(ph, parts, whole, out)
	}
	if len(m.segs) == 1 && (!whole || parts[0][0].Len() == len(m.src)) {
		for i := range out {
			out[i] = parts[i][0] // in order already
		}
		return out, nil, nil
	}
	rows := m.row
	if whole {
		rows = m.places(&m.scratch.place, m.src, m.row)
	}
	for i := range out {
		out[i] = vec.Gather(p.types[i], parts[i][:len(m.segs)], m.src, rows)
	}
	return out, nil, nil
}

// places returns where rows of the segments' keep lists lie in what the segments
// were read as: the same ordinal, or the row counted from the first one read.
func (m *Reader) places(into *[]uint32, src []uint16, row []uint32) []uint32 {
	*into = grow(*into, len(row))
	out := *into
	for i, r := range row {
		if s := src[i]; s != folded {
			if g := &m.segs[s]; g.base >= 0 {
				r = uint32(int64(g.keep[r]) + g.from - g.base)
			}
		}
		out[i] = r
	}
	return out
}

// maxRead is the most rows that a format's reader takes at once.
const maxRead = 1 << 16

// readSegment reads the winners of a segment, moving the run's lane forwards.
// Where most rows win all are read, and base is set to the first of them.
func (m *Reader) readSegment(ctx context.Context, s *segment, phase int, cols []int) ([]arrow.Array, error) {
	l := &s.run.lanes[phase]
	in := &s.run.inputs[s.in]
	first, last := s.from+int64(s.keep[0]), s.from+int64(s.keep[len(s.keep)-1])
	if l.cols == nil || l.in != s.in || l.rg != s.rg {
		if l.cols != nil {
			_ = l.cols.Close()
			l.cols = nil
		}
		rg := in.Ranges[s.rg]
		rg.From = first // rows before the first winner are not even opened
		c, err := in.Open(ctx, rg, cols)
		if err != nil {
			return nil, err
		}
		l.cols, l.in, l.rg, l.pos = c, s.in, s.rg, rg.From
	}
	if span := last - l.pos + 1; span <= maxRead && int64(len(s.keep))*100 >= span*denseShare {
		s.base = l.pos
		l.pos = last + 1
		return l.cols.Read(ctx, int(span), nil)
	}
	var parts [][]arrow.Array
	keep := make([]uint16, 0, min(len(s.keep), maxRead))
	for at := 0; at < len(s.keep); {
		first := s.from + int64(s.keep[at])
		for first-l.pos >= maxRead { // nothing wanted in between
			if _, err := l.cols.Read(ctx, maxRead, []uint16{}); err != nil {
				return nil, err
			}
			l.pos += maxRead
		}
		keep = keep[:0]
		end := l.pos
		for at < len(s.keep) {
			row := s.from + int64(s.keep[at])
			if row-l.pos >= maxRead {
				break
			}
			keep = append(keep, uint16(row-l.pos))
			end = row
			at++
		}
		got, err := l.cols.Read(ctx, int(end-l.pos+1), keep)
		if err != nil {
			return nil, err
		}
		l.pos = end + 1
		parts = append(parts, got)
	}
	if len(parts) == 1 {
		return parts[0], nil
	}
	out := make([]arrow.Array, len(cols))
	for i := range cols {
		one := make([]arrow.Array, len(parts))
		for j := range parts {
			one[j] = parts[j][i]
		}
		out[i] = vec.Concat(vec.Plain(one[0].DataType()), one)
	}
	return out, nil
}
