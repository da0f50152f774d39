package mergetree

import "context"

// Fate is where Reader.Mark notes what becomes of the rows of one file. A row that
// is in neither set is not seen by anybody: an older version, a retraction that
// nothing is left of, a row of the deletion vector.
type Fate struct {
	// Live are the rows that stand as they are: the newest (or first) version of a key,
	// or the only one.
	Live *Marks
	// Folded are the versions that an Engine makes the row of a key of; nil where
	// there is none.
	Folded *Marks
}

// Mark merges keys only and notes in each input's Fate what becomes of its rows. It
// returns how many rows the merge would return. Columns must be empty and Filter nil;
// KeepDeletes is not allowed. A reader is used with Next, NextVersions or Mark, one of
// them.
func (m *Reader) Mark(ctx context.Context) (rows int64, err error) {
	var local [][]uint64
	for {
		if !m.open {
			if len(m.sections) == 0 {
				return rows, nil
			}
			if err := m.start(m.sections[0]); err != nil {
				return 0, err
			}
			m.sections = m.sections[1:]
		}
		if err := m.round(ctx); err != nil {
			return 0, err
		}
		if m.ended {
			m.closeRuns()
			continue
		}
		local = m.markRound(local)
		n := m.out.n
		if len(m.vers.ends) > 0 {
			_, live, err := m.gather(ctx, phaseRest)
			if err != nil {
				return 0, err
			}
			if live != nil {
				n = len(live)
			}
		}
		rows += int64(n)
	}
}

// markRound notes the fate of a round's rows: per segment bits are set in memory of its
// own, local, and then added to the file's.
func (m *Reader) markRound(local [][]uint64) [][]uint64 {
	for len(local) < 2*len(m.segs) {
		local = append(local, nil)
	}
	live, fold := local[:len(m.segs)], local[len(m.segs):2*len(m.segs)]
	skew := make([]uint32, len(m.segs)) // of row 0 in the segment's first word
	for i := range m.segs {
		g := &m.segs[i]
		skew[i] = uint32(g.from & 63)
		n := (int(skew[i]) + g.run.size + 63) / 64
		live[i], fold[i] = grow(live[i], n), grow(fold[i], n)
		clear(live[i])
		clear(fold[i])
	}
	o, v := &m.out, &m.vers
	set := func(seg uint16, row uint32) {
		row += skew[seg]
		live[seg][row>>6] |= 1 << (row & 63)
	}
	at, p := uint32(0), 0 // first output row of the span, next patch
	for _, s := range o.spans {
		if s.seg != hole {
			setBits(live[s.seg], s.row+skew[s.seg], s.n)
		}
		for ; p < len(o.pos) && o.pos[p] < at+s.n; p++ {
			if s.seg != hole {
				row := s.row + o.pos[p] - at + skew[s.seg]
				live[s.seg][row>>6] &^= 1 << (row & 63)
			}
		}
		at += s.n
	}
	for i, src := range o.psrc {
		if src != folded {
			set(src, o.prow[i])
		}
	}
	for i, seg := range v.src {
		row := v.row[i] + skew[seg]
		fold[seg][row>>6] |= 1 << (row & 63)
	}
	for i := range m.segs {
		g := &m.segs[i]
		f := g.run.inputs[g.in].Fate
		f.Live.or(g.from&^63, live[i])
		if f.Folded != nil {
			f.Folded.or(g.from&^63, fold[i])
		}
	}
	return local
}

// setBits sets n bits from bit from on.
func setBits(b []uint64, from, n uint32) {
	for n > 0 {
		off := from & 63
		m := min(n, 64-off)
		b[from>>6] |= (^uint64(0) >> (64 - m)) << off
		from, n = from+m, n-m
	}
}
