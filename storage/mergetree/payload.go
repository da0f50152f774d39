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

// gather reads cols for the winners of every segment and puts them in key order.
func (m *Reader) gather(ctx context.Context, phase int, cols, pos []int) ([]arrow.Array, error) {
	if len(cols) == 0 {
		return nil, nil
	}
	parts := make([][]arrow.Array, len(cols)) // by column, by segment
	for i := range parts {
		parts[i] = make([]arrow.Array, len(m.segs))
	}
	for s := range m.segs {
		if len(m.segs[s].keep) == 0 {
			continue
		}
		got, err := m.readSegment(ctx, &m.segs[s], phase, cols)
		if err != nil {
			return nil, err
		}
		for i := range cols {
			parts[i][s] = got[i]
		}
	}
	out := make([]arrow.Array, len(cols))
	for i := range cols {
		dt := m.o.Types[pos[i]].Arrow()
		if len(m.segs) == 1 {
			out[i] = parts[i][0] // in order already
			continue
		}
		out[i] = vec.Gather(dt, parts[i], m.src, m.row)
	}
	return out, nil
}

// maxRead is the most rows that a format's reader takes at once.
const maxRead = 1 << 16

// readSegment reads the winners of a segment, moving the run's lane forwards.
func (m *Reader) readSegment(ctx context.Context, s *segment, phase int, cols []int) ([]arrow.Array, error) {
	l := &s.run.lanes[phase]
	in := &s.run.inputs[s.in]
	if l.cols == nil || l.in != s.in || l.rg != s.rg {
		if l.cols != nil {
			_ = l.cols.Close()
			l.cols = nil
		}
		rg := in.Ranges[s.rg]
		// Rows before the first winner are not even opened.
		rg.From = s.from + int64(s.keep[0])
		c, err := in.Open(ctx, rg, cols)
		if err != nil {
			return nil, err
		}
		l.cols, l.in, l.rg, l.pos = c, s.in, s.rg, rg.From
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
		last := l.pos
		for at < len(s.keep) {
			row := s.from + int64(s.keep[at])
			if row-l.pos >= maxRead {
				break
			}
			keep = append(keep, uint16(row-l.pos))
			last = row
			at++
		}
		n := int(last - l.pos + 1)
		k := keep
		if len(keep) == n {
			k = nil
		}
		got, err := l.cols.Read(ctx, n, k)
		if err != nil {
			return nil, err
		}
		l.pos += int64(n)
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
