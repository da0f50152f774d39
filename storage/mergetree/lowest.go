package mergetree

// lowest leaves out those versions of the pending key that Options.OneHigh does.
func (m *Reader) lowest() {
	tag := func(v *version) int32 {
		g := &m.segs[v.seg]
		return g.run.inputs[g.in].Tag
	}
	best, high := int32(0), 0
	for i := range m.pendVers {
		if t := tag(&m.pendVers[i]); t > 0 {
			if high++; best == 0 || t < best {
				best = t
			}
		}
	}
	if high < 2 {
		return
	}
	keep := m.pendVers[:0]
	for _, v := range m.pendVers {
		if t := tag(&v); t <= 0 || t == best {
			keep = append(keep, v)
		}
	}
	m.pendVers = keep
	last := &keep[len(keep)-1]
	m.pendSeg, m.pendRow, m.pendDelete = last.seg, last.row, last.kind&1 != 0
}
