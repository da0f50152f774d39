package mergetree

// firstRow keeps the first version of a key. Retractions are refused or, with
// ignore-delete, left out. Source: FirstRowMergeFunction.java.
type firstRow struct {
	cols         *columnSet
	at           []int
	ignoreDelete bool
	rows         []int32
}

func newFirstRow(s EngineSpec) (Engine, error) {
	c := newColumnSet(s.Table, s.Columns)
	return &firstRow{cols: c, at: c.positions(s.Columns), ignoreDelete: ignoresDelete(s.Options)}, nil
}

func (f *firstRow) Reads() []int { return f.cols.reads }

func (f *firstRow) Fold(v *Versions, out *Folded) error {
	f.rows = grow(f.rows, len(v.Ends))
	retract := anyRetract(v.Kinds)
	if retract && !f.ignoreDelete {
		return &MergeError{Reason: "merge engine first-row takes no deletions; set option ignore-delete to leave them out"}
	}
	from := 0
	for k, e := range v.Ends {
		i := from
		if retract {
			for i < int(e) && isRetract(v.Kinds[i]) {
				i++
			}
			if i == int(e) {
				i = -1
			}
		}
		f.rows[k] = int32(i)
		from = int(e)
	}
	pickWhole(v, f.at, f.rows, out)
	return nil
}
