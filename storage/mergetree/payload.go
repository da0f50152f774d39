package mergetree

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// The phases in which columns of winners are read: the filter's first.
const (
	phaseFilter = iota
	phaseRest
)

// payload reads the columns of the round's winners and gathers them in order.
func (m *Reader) payload(ctx context.Context) ([]arrow.Array, int, error) {
	n := len(m.src)
	out := make([]arrow.Array, len(m.o.Columns))
	var sel []uint16
	isFilter := make([]bool, len(m.o.Columns))
	if m.o.Filter != nil {
		cols := make([]int, len(m.o.FilterPos))
		for i, p := range m.o.FilterPos {
			cols[i] = m.o.Columns[p]
			isFilter[p] = true
		}
		got, err := m.gather(ctx, phaseFilter, cols, m.o.FilterPos)
		if err != nil {
			return nil, 0, err
		}
		if sel, err = m.o.Filter(ctx, got, n); err != nil {
			return nil, 0, err
		}
		if sel != nil && len(sel) == n {
			sel = nil
		}
		if sel != nil {
			m.narrow(sel)
			n = len(sel)
		}
		for i, p := range m.o.FilterPos {
			out[p] = vec.FilterSel(got[i], sel)
		}
	}
	var cols, pos []int
	for i, c := range m.o.Columns {
		if !isFilter[i] {
			cols, pos = append(cols, c), append(pos, i)
		}
	}
	if n == 0 {
		// The rest's readers catch up in a later round.
		return nil, 0, nil
	}
	got, err := m.gather(ctx, phaseRest, cols, pos)
	if err != nil {
		return nil, 0, err
	}
	for i, p := range pos {
		out[p] = got[i]
	}
	return out, n, nil
}

// narrow keeps the winners sel and renumbers them within their segments.
func (m *Reader) narrow(sel []uint16) {
	kept := make([][]uint32, len(m.segs))
	for i, s := range sel {
		src, row := m.src[s], m.row[s]
		m.src[i] = src
		m.row[i] = uint32(len(kept[src]))
		kept[src] = append(kept[src], m.segs[src].keep[row])
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

// gather reads cols for the winners of every segment and puts them in key order.
func (m *Reader) gather(ctx context.Context, phase int, cols, pos []int) ([]arrow.Array, error) {
	if len(cols) == 0 {
		return nil, nil
	}
	parts := make([][]arrow.Array, len(cols)) // by column, by segment
	for i := range parts {
		parts[i] = make([]arrow.Array, len(m.segs))
	}
	whole := false // a segment was read with its losers
	for s := range m.segs {
		g := &m.segs[s]
		g.base = -1
		if len(g.keep) == 0 {
			continue
		}
		got, err := m.readSegment(ctx, g, phase, cols)
		if err != nil {
			return nil, err
		}
		whole = whole || g.base >= 0
		for i := range cols {
			parts[i][s] = got[i]
		}
	}
	if len(m.segs) == 1 && (!whole || parts[0][0].Len() == len(m.src)) {
		out := make([]arrow.Array, len(cols)) // in order already
		for i := range cols {
			out[i] = parts[i][0]
		}
		return out, nil
	}
	rows := m.row
	if whole {
		rows = m.places()
	}
	out := make([]arrow.Array, len(cols))
	for i := range cols {
		out[i] = vec.Gather(m.o.Types[pos[i]].Arrow(), parts[i], m.src, rows)
	}
	return out, nil
}

// places returns where each winner lies in what its segment was read as: its
// ordinal, or its row counted from the first one read.
func (m *Reader) places() []uint32 {
	m.place = grow(m.place, len(m.row))
	for i, r := range m.row {
		g := &m.segs[m.src[i]]
		if g.base >= 0 {
			r = uint32(int64(g.keep[r]) + g.from - g.base)
		}
		m.place[i] = r
	}
	return m.place
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
