package vectorized

import (
	"fmt"
	"math"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// TestTopBound: what a bound says to storage, as rows tighten it.
func TestTopBound(t *testing.T) {
	for _, c := range []struct {
		t                types.Type
		desc, nullsFirst bool
		offers           []types.Datum
		pass, fail       []types.Datum
	}{
		{tInt4, false, false, []types.Datum{int64(9), int64(5), int64(7)}, []types.Datum{int64(5), int64(-1)}, []types.Datum{int64(6), nil}},
		{tInt4, true, false, []types.Datum{int64(5), int64(9)}, []types.Datum{int64(9), int64(10)}, []types.Datum{int64(8), nil}},
		{tInt8, false, true, []types.Datum{int64(5)}, []types.Datum{int64(5), nil}, []types.Datum{int64(6)}},
		{tInt8, false, true, []types.Datum{int64(5), nil}, []types.Datum{nil}, []types.Datum{int64(5)}},
		{tInt8, false, false, []types.Datum{nil}, []types.Datum{int64(5), nil}, nil},
		{tText, false, false, []types.Datum{"m", "c", "x"}, []types.Datum{"c", "a"}, []types.Datum{"ca", nil}},
		{tText, true, true, []types.Datum{"m"}, []types.Datum{"m", "z", nil}, []types.Datum{"l"}},
		{tFloat, false, false, []types.Datum{math.NaN(), 2.5}, []types.Datum{2.5, -1.0}, []types.Datum{3.0}},
		{tFloat, false, false, []types.Datum{math.NaN()}, []types.Datum{3.0, nil}, nil},
	} {
		b := newTopBound(c.t, c.desc, c.nullsFirst)
		for _, d := range c.offers {
			b.tighten(vec.FromDatums(c.t, []types.Datum{d}), 0)
		}
		n := b.predicate(predicate.Leaf{Type: c.t})
		says := func(d types.Datum) predicate.Verdict {
			if n == nil {
				return predicate.All
			}
			return predicate.Eval(n, predicate.SourceFunc(func(*predicate.Leaf) (predicate.ColumnStats, bool) { return predicate.One(d), true }))
		}
		name := fmt.Sprintf("%v desc %v nulls first %v after %v", c.t.Kind, c.desc, c.nullsFirst, c.offers)
		for _, d := range c.pass {
			if v := says(d); v == predicate.None {
				t.Errorf("%s: %v is left out", name, d)
			}
		}
		for _, d := range c.fail {
			if v := says(d); v != predicate.None {
				t.Errorf("%s: %v: %s", name, d, v)
			}
		}
		if !b.selects() || n == nil {
			continue
		}
		all := append(append([]types.Datum{}, c.pass...), c.fail...)
		out := make([]uint16, len(all))
		if k := b.selectRows(vec.FromDatums(c.t, all), len(all), nil, out); k != len(c.pass) {
			t.Errorf("%s: %d rows are within, want %d", name, k, len(c.pass))
		}
	}
	if newTopBound(types.Type{Kind: types.BpChar, Len: 3}, false, false).usable {
		t.Error("blanks do not count in CHAR: its bounds are not those of what is stored")
	}
}
