package vectorized

import (
	"fmt"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/aggregate"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

type sortSpec struct {
	col         int
	desc, first bool
}

func sortRows(rows []row, specs []sortSpec) []row {
	out := slices.Clone(rows)
	slices.SortStableFunc(out, func(a, b row) int { return cmpRows(a, b, specs) })
	return out
}

func cmpRows(a, b row, specs []sortSpec) int {
	for _, s := range specs {
		x, y := a[s.col], b[s.col]
		if x == nil || y == nil {
			if (x == nil) != (y == nil) {
				if (x == nil) == s.first {
					return -1
				}
				return 1
			}
			continue
		}
		if c := less(x, y); c != 0 {
			if s.desc {
				return -c
			}
			return c
		}
	}
	return 0
}

func TestSort(t *testing.T) {
	noLeaks(t)
	r := newRand(t)
	all := []types.Type{tInt8, tInt4, types.Of(types.Int2), tText, tNum, tFloat, tDate, types.Of(types.UUID), types.Of(types.Bool)}
	for range testkit.Rounds(40) {
		n := r.IntN(400)
		if r.IntN(20) == 0 {
			n = 40_000 // several runs
		}
		nk := 1 + r.IntN(3)
		var ts []types.Type
		for range nk {
			ts = append(ts, all[r.IntN(len(all))])
		}
		rel, rows := makeRel(r, n, 1+r.IntN(200), r.IntN(2) == 0, ts...)
		sc := scanOf(rel)
		s := &plan.Sort{Base: base(sc.Out), Input: sc}
		var specs []sortSpec
		for i := range nk {
			sp := sortSpec{i, r.IntN(2) == 0, r.IntN(2) == 0}
			specs = append(specs, sp)
			s.Keys = append(s.Keys, plan.SortKey{Expr: slot(sc, i), Desc: sp.desc, NullsFirst: sp.first})
		}
		want := sortRows(rows, specs)
		for _, c := range configs(r) {
			if n > 1000 && c.rows < 100 {
				continue
			}
			expect(t, c, s, want, true, fmt.Sprintf("sort %v %+v", ts, specs))
			// A limit keeps the best rows.
			top := *s
			top.Base = base(sc.Out)
			top.Limit = int64(1 + r.IntN(20))
			k := min(int(top.Limit), len(want))
			l := &plan.Limit{Base: base(sc.Out), Input: &top, Count: lit(tInt8, top.Limit)}
			expect(t, c, l, want[:k], true, fmt.Sprintf("top %d of %v %+v", top.Limit, ts, specs))
			if r.IntN(2) == 0 {
				off, cnt := int64(r.IntN(30)), int64(r.IntN(30))
				l := &plan.Limit{Base: base(sc.Out), Input: s, Offset: lit(tInt8, off), Count: lit(tInt8, cnt)}
				expect(t, c, l, want[min(int(off), len(want)):min(int(off+cnt), len(want))], true, "limit with offset")
				l.WithTies, l.Keys = true, s.Keys[:1]
				end := min(int(off+cnt), len(want))
				if cnt > 0 && end > int(off) {
					for end < len(want) && cmpRows(want[end], want[end-1], specs[:1]) == 0 {
						end++
					}
				}
				expect(t, c, l, want[min(int(off), len(want)):end], true, "limit with ties")
			}
			d := &plan.DistinctOn{Base: base(sc.Out), Input: s, Keys: []plan.Expr{slot(sc, 0)}}
			var firsts []row
			for i, w := range want {
				if i == 0 || cmpRows(w, want[i-1], specs[:1]) != 0 {
					firsts = append(firsts, w)
				}
			}
			expect(t, c, d, firsts, true, "distinct on")
		}
	}
}

func TestWindow(t *testing.T) {
	noLeaks(t)
	r := newRand(t)
	for range 120 {
		rel, rows := makeRel(r, r.IntN(120), 8, true, tInt4, tInt8, tInt4)
		sc := scanOf(rel)
		w := &plan.Window{Input: sc}
		parts := r.IntN(3) > 0
		specs := []sortSpec{}
		if parts {
			w.PartitionBy = []plan.Expr{slot(sc, 0)}
			specs = append(specs, sortSpec{0, false, false})
		}
		ord := sortSpec{1, r.IntN(2) == 0, r.IntN(2) == 0}
		w.OrderBy = []plan.SortKey{{Expr: slot(sc, 1), Desc: ord.desc, NullsFirst: ord.first}}
		// The last column makes the order total for the comparison.
		w.OrderBy = append(w.OrderBy, plan.SortKey{Expr: slot(sc, 2)}, plan.SortKey{Expr: slot(sc, 0)})
		specs = append(specs, ord, sortSpec{2, false, false}, sortSpec{0, false, false})
		f := plan.Frame{Mode: plan.FrameMode(r.IntN(3)), Exclude: plan.Exclude(r.IntN(4))}
		if r.IntN(2) == 0 {
			f.Exclude = plan.ExcludeNoOthers
		}
		if f.Mode == plan.Range {
			w.OrderBy = w.OrderBy[:1]
			f.RangeAdd, f.RangeSub = operator_(t, "+", tInt8, tInt8), operator_(t, "-", tInt8, tInt8)
		}
		offs := [2]int64{int64(r.IntN(4)), int64(r.IntN(4))}
		f.Start, f.End = plan.BoundKind(r.IntN(4)), plan.BoundKind(1+r.IntN(4))
		if f.Start > f.End {
			f.Start, f.End = f.End, f.Start
		}
		if f.Start == plan.UnboundedFollowing || f.End == plan.UnboundedPreceding {
			continue
		}
		f.StartOffset, f.EndOffset = lit(tInt8, offs[0]), lit(tInt8, offs[1])
		sum, cnt := aggOf(t, "sum", slot(sc, 2)), aggOf(t, "count", slot(sc, 2))
		arr := aggOf(t, "array_agg", slot(sc, 2))
		mx := aggOf(t, "max", slot(sc, 2))
		cnt.Filter = op(t, ">", slot(sc, 2), lit(tInt4, int64(1)))
		w.Calls = []plan.WindowCall{{Agg: &sum, Frame: f, T: sum.T}, {Agg: &cnt, Frame: f, T: cnt.T}, {Agg: &mx, Frame: f, T: mx.T}}
		if f.Mode == plan.Rows {
			w.Calls = append(w.Calls, plan.WindowCall{Agg: &arr, Frame: f, T: arr.T})
		}
		ts := []types.Type{tInt4, tInt8, tInt4}
		for _, c := range w.Calls {
			ts = append(ts, c.T)
		}
		w.Base = base(schemaOf(ts...))
		want := oracleWindow(sortRows(rows, specs), parts, ord, f, offs, len(w.Calls) == 4, len(w.OrderBy))
		for _, c := range configs(r) {
			expect(t, c, w, want, false, fmt.Sprintf("window %+v parts=%v offs=%v ord=%+v", f, parts, offs, ord))
		}
	}
}

func TestRanking(t *testing.T) {
	r := newRand(t)
	rel, rows := makeRel(r, 200, 9, true, tInt4, tInt8)
	sc := scanOf(rel)
	w := &plan.Window{Base: base(schemaOf(tInt4, tInt8, tInt8, tInt8, tInt8)), Input: sc, PartitionBy: []plan.Expr{slot(sc, 0)}, OrderBy: []plan.SortKey{{Expr: slot(sc, 1)}}}
	for _, name := range []string{"row_number", "rank", "dense_rank"} {
		w.Calls = append(w.Calls, plan.WindowCall{Func: aggregate.LookupWindow(name)[0], T: tInt8, Frame: plan.Frame{Mode: plan.Range, End: plan.CurrentRow}})
	}
	var want []row
	n, rank, dense := int64(0), int64(0), int64(0)
	sorted := sortRows(rows, []sortSpec{{0, false, false}, {1, false, false}})
	for i, x := range sorted {
		n++
		switch {
		case i == 0 || less(x[0], sorted[i-1][0]) != 0:
			n, rank, dense = 1, 1, 1
		case less(x[1], sorted[i-1][1]) != 0:
			rank = n
			dense++
		}
		want = append(want, row{x[0], x[1], n, rank, dense})
	}
	for _, c := range configs(r) {
		expect(t, c, w, want, true, "ranking")
	}
}

// oracleWindow computes frames by definition, a row at a time.
func oracleWindow(rows []row, parts bool, ord sortSpec, f plan.Frame, offs [2]int64, arr bool, keys int) []row {
	var out []row
	specs := []sortSpec{ord, {2, false, false}, {0, false, false}}[:keys]
	for from := 0; from < len(rows); {
		to := from + 1
		for to < len(rows) && (!parts || less(rows[to][0], rows[from][0]) == 0) {
			to++
		}
		p := rows[from:to]
		group := make([]int, len(p))
		for i := 1; i < len(p); i++ {
			group[i] = group[i-1]
			if cmpRows(p[i], p[i-1], specs) != 0 {
				group[i]++
			}
		}
		in := func(i, j int, b plan.BoundKind, off int64, start bool) bool {
			d := 0 // how far j is behind i, in the unit of the mode; sign matters
			switch b {
			case plan.UnboundedPreceding, plan.UnboundedFollowing:
				return true
			}
			if b == plan.CurrentRow {
				off = 0
			}
			if b == plan.Preceding {
				off = -off
			}
			switch f.Mode {
			case plan.Rows:
				d = j - i
			case plan.Groups:
				d = group[j] - group[i]
			default:
				if b == plan.CurrentRow {
					d = group[j] - group[i]
					break
				}
				x, y := p[i][1], p[j][1]
				if x == nil || y == nil {
					if (x == nil) != (y == nil) {
						// A NULL row's frame is its peers; NULLs are in no other.
						if x == nil {
							return start == (j > i)
						}
						return start == (j > i)
					}
					return true
				}
				d = int(y.(int64) - x.(int64))
				if ord.desc {
					d = -d
				}
			}
			if start {
				return int64(d) >= off
			}
			return int64(d) <= off
		}
		for i := range p {
			var sum, mx types.Datum
			n := int64(0)
			var vals []types.Datum
			for j := range p {
				if !in(i, j, f.Start, offs[0], true) || !in(i, j, f.End, offs[1], false) {
					continue
				}
				peer := group[i] == group[j]
				switch f.Exclude {
				case plan.ExcludeCurrentRow:
					if i == j {
						continue
					}
				case plan.ExcludeGroup:
					if peer {
						continue
					}
				case plan.ExcludeTies:
					if peer && i != j {
						continue
					}
				}
				v := p[j][2]
				vals = append(vals, v)
				if v == nil {
					continue
				}
				sum = addTo(sum, v)
				if mx == nil || less(v, mx) > 0 {
					mx = v
				}
				if v.(int64) > 1 {
					n++
				}
			}
			w := append(append(row{}, p[i]...), sum, n, mx)
			if arr {
				w = append(w, list(vals))
			}
			out = append(out, w)
		}
		from = to
	}
	return out
}
