package vectorized

import (
	"fmt"
	"sort"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

func TestAggregate(t *testing.T) {
	noLeaks(t)
	r := newRand(t)
	keyTypes := []types.Type{tInt8, tInt4, tText, tNum, tFloat, tDate, types.Of(types.Bool), types.Of(types.UUID)}
	for range 120 {
		nk := r.IntN(4)
		ts := []types.Type{tInt4, tText} // arguments
		for range nk {
			ts = append(ts, keyTypes[r.IntN(len(keyTypes))])
		}
		rel, rows := makeRel(r, r.IntN(600), 1+r.IntN(60), r.IntN(2) == 0, ts...)
		sc := scanOf(rel)
		a := &plan.Aggregate{Input: sc, Plain: nk == 0}
		var out []types.Type
		for k := range nk {
			a.Groups = append(a.Groups, slot(sc, 2+k))
			out = append(out, ts[2+k])
		}
		filter := op(t, ">", slot(sc, 0), lit(tInt4, int64(3)))
		distinct := aggOf(t, "count", slot(sc, 1))
		distinct.Distinct = true
		filtered := aggOf(t, "sum", slot(sc, 0))
		filtered.Filter = filter
		sorted := aggOf(t, "array_agg", slot(sc, 0))
		sorted.OrderBy = []plan.SortKey{{Expr: slot(sc, 0), Desc: true}}
		dsorted := aggOf(t, "array_agg", slot(sc, 1))
		dsorted.Distinct = true
		a.Aggs = []plan.AggCall{aggOf(t, "count"), aggOf(t, "sum", slot(sc, 0)), aggOf(t, "min", slot(sc, 1)), distinct, filtered}
		heavy := r.IntN(3) == 0
		if heavy {
			a.Aggs = append(a.Aggs, sorted, dsorted)
		}
		for _, c := range a.Aggs {
			out = append(out, c.T)
		}
		a.Base = base(schemaOf(out...))
		// The oracle: a map of groups.
		groups := map[string][]row{}
		keys := map[string]row{}
		for _, rw := range rows {
			k := rowText(rw[2:])
			groups[k] = append(groups[k], rw)
			keys[k] = rw[2:]
		}
		if nk == 0 && len(groups) == 0 {
			groups[""], keys[""] = nil, row{}
		}
		var want []row
		for k, rs := range groups {
			w := append(row{}, keys[k]...)
			var sum, fsum, mn types.Datum
			distinct := map[string]bool{}
			var vals, texts []types.Datum
			for _, x := range rs {
				if x[0] != nil {
					sum = addTo(sum, x[0])
					if x[0].(int64) > 3 {
						fsum = addTo(fsum, x[0])
					}
				}
				if x[1] != nil {
					distinct[x[1].(string)] = true
					if mn == nil || less(x[1], mn) < 0 {
						mn = x[1]
					}
				}
				vals = append(vals, x[0])
				seen := false
				for _, y := range texts {
					seen = seen || less(y, x[1]) == 0
				}
				if !seen {
					texts = append(texts, x[1])
				}
			}
			w = append(w, int64(len(rs)), sum, mn, int64(len(distinct)), fsum)
			if heavy {
				// DESC, NullsFirst false: NULL last.
				sort.SliceStable(vals, func(i, j int) bool {
					if vals[i] == nil || vals[j] == nil {
						return vals[j] == nil && vals[i] != nil
					}
					return less(vals[i], vals[j]) > 0
				})
				sort.SliceStable(texts, func(i, j int) bool { return less(texts[i], texts[j]) < 0 })
				w = append(w, list(vals), list(texts))
			}
			want = append(want, w)
		}
		for _, c := range configs(r) {
			expect(t, c, a, want, false, fmt.Sprintf("aggregate by %v", ts[2:]))
		}
	}
}

func list(v []types.Datum) types.Datum {
	if v == nil {
		return nil
	}
	return v
}

func addTo(s, x types.Datum) types.Datum {
	if s == nil {
		return x
	}
	return s.(int64) + x.(int64)
}

func TestGroupingSets(t *testing.T) {
	r := newRand(t)
	for range 30 {
		rel, rows := makeRel(r, r.IntN(100), 5, true, tInt8, tText)
		sc := scanOf(rel)
		a := &plan.Aggregate{Base: base(schemaOf(tInt8, tText, tInt8, tInt8)), Input: sc, Groups: []plan.Expr{slot(sc, 0), slot(sc, 1)},
			Sets: [][]int{{0, 1}, {0}, {}, {0}}, Aggs: []plan.AggCall{aggOf(t, "count")}}
		var want []row
		for _, set := range a.Sets {
			in := [2]bool{}
			for _, g := range set {
				in[g] = true
			}
			id := int64(0)
			if !in[0] {
				id |= 2
			}
			if !in[1] {
				id |= 1
			}
			count := map[string]int64{}
			keys := map[string]row{}
			if len(set) == 0 {
				count["NULL|NULL"], keys["NULL|NULL"] = 0, row{nil, nil}
			}
			for _, x := range rows {
				k := row{nil, nil}
				for i := range 2 {
					if in[i] {
						k[i] = x[i]
					}
				}
				count[rowText(k)]++
				keys[rowText(k)] = k
			}
			for k, n := range count {
				want = append(want, append(append(row{}, keys[k]...), id, n))
			}
		}
		for _, c := range configs(r) {
			expect(t, c, a, want, false, "grouping sets")
		}
	}
}

func TestDistinctAndSetOps(t *testing.T) {
	noLeaks(t)
	r := newRand(t)
	for range 60 {
		lrel, lrows := makeRel(r, r.IntN(80), 6, true, tInt8, tText)
		rrel, rrows := makeRel(r, r.IntN(80), 6, true, tInt8, tText)
		l, rt := scanOf(lrel), scanOf(rrel)
		seen := map[string]bool{}
		var want []row
		for _, x := range lrows {
			if !seen[rowText(x)] {
				seen[rowText(x)] = true
				want = append(want, x)
			}
		}
		for _, c := range configs(r) {
			expect(t, c, &plan.DistinctOn{Base: base(l.Out), Input: l}, want, false, "distinct")
		}
		kind, all := plan.SetOpKind(r.IntN(2)), r.IntN(2) == 0
		right := map[string]int{}
		for _, x := range rrows {
			right[rowText(x)]++
		}
		want = nil
		done := map[string]bool{}
		for _, x := range lrows {
			k := rowText(x)
			switch {
			case all && kind == plan.Intersect:
				if right[k] > 0 {
					right[k]--
					want = append(want, x)
				}
			case all:
				if right[k] > 0 {
					right[k]--
				} else {
					want = append(want, x)
				}
			case !done[k] && (right[k] > 0) == (kind == plan.Intersect):
				done[k] = true
				want = append(want, x)
			}
		}
		s := &plan.SetOp{Base: base(l.Out), Kind: kind, All: all, Left: l, Right: rt}
		for _, c := range configs(r) {
			expect(t, c, s, want, false, fmt.Sprintf("set operation %d all=%v", kind, all))
		}
		ap := &plan.Append{Base: base(l.Out), Ins: []plan.Node{l, rt, l}}
		want = append(append(append([]row{}, lrows...), rrows...), lrows...)
		for _, c := range configs(r) {
			expect(t, c, ap, want, false, "append")
			// Below an aggregate the inputs run in parallel.
			a := &plan.Aggregate{Base: base(schemaOf(tInt8)), Input: ap, Plain: true, Aggs: []plan.AggCall{aggOf(t, "count")}}
			expect(t, c, a, []row{{int64(len(want))}}, false, "count over append")
		}
	}
}
