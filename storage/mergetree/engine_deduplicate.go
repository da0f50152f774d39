package mergetree

// deduplicate keeps the last version of a key, whatever its kind; with
// ignore-delete the last that is no retraction. Source:
// DeduplicateMergeFunction.java.
type deduplicate struct {
	cols         *columnSet
	at           []int
	ignoreDelete bool
	rows         []int32
}

func newDeduplicate(s EngineSpec) (Engine, error) {
	c := newColumnSet(s.Table, s.Columns)
	return &deduplicate{cols: c, at: c.positions(s.Columns), ignoreDelete: ignoresDelete(s.Options)}, nil
}

func (d *deduplicate) Reads() []int { return d.cols.reads }

func (d *deduplicate) Fold(v *Versions, out *Folded) error {
	d.rows = grow(d.rows, len(v.Ends))
	if d.ignoreDelete && anyRetract(v.Kinds) {
		from := 0
		for k, e := range v.Ends {
			i := int(e) - 1
			for i >= from && isRetract(v.Kinds[i]) {
				i--
			}
			if i < from {
				i = -1
			}
			d.rows[k] = int32(i)
			from = int(e)
		}
		pickWhole(v, d.at, d.rows, out)
		return nil
	}
	for k, e := range v.Ends {
		d.rows[k] = int32(e) - 1
	}
	out.Cols = take(v, d.at, d.rows)
	out.Last = nil
	out.Kinds = kindsOf(v, d.rows, out.Kinds)
	return nil
}

// kindsOf returns the kinds of rows, in the memory of dst.
func kindsOf(v *Versions, rows []int32, dst []uint8) []uint8 {
	if v.Kinds == nil {
		return nil
	}
	dst = grow(dst, len(rows))
	for k, r := range rows {
		dst[k] = v.Kinds[r]
	}
	return dst
}

// pickWhole makes the results of rows picked whole, -1 for no row.
func pickWhole(v *Versions, at []int, rows []int32, out *Folded) {
	out.Kinds = grow(out.Kinds, len(rows))
	out.Last = grow(out.Last, len(rows))
	for k, r := range rows {
		out.Kinds[k] = NoRow
		if r >= 0 {
			out.Kinds[k] = KindInsert
			if v.Kinds != nil {
				out.Kinds[k] = v.Kinds[r]
			}
		} else {
			r = int32(v.Ends[k]) - 1 // any row will do
			rows[k] = r
		}
		out.Last[k] = uint32(r)
	}
	out.Cols = take(v, at, rows)
}
