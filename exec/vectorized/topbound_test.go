package vectorized

import (
	"bytes"
	"fmt"
	"math"
	"slices"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
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
		if n == nil {
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

// TestTopBoundRows: rows are within a bound exactly when they sort at or before it, for
// every type, order and place of NULLs, dictionaries and selections included.
func TestTopBoundRows(t *testing.T) {
	num := func(s string) types.Datum {
		d, err := pgtext.Parse(types.Of(types.Numeric), s, nil)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	parsed := func(k types.Kind, list ...string) (out []types.Datum) {
		for _, s := range list {
			d, err := pgtext.Parse(types.Of(k), s, nil)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, d)
		}
		return out
	}
	for _, c := range []struct {
		t    types.Type
		vals []types.Datum
	}{
		{types.Of(types.Int2), []types.Datum{int64(-3), int64(0), int64(7), nil, int64(32767)}},
		{types.Of(types.Date), []types.Datum{int64(-3), int64(0), nil, int64(7)}},
		{types.Of(types.Float4), []types.Datum{math.NaN(), 2.5, math.Copysign(0, -1), 0.0, math.Inf(1), math.Inf(-1), nil}},
		{types.Of(types.Float8), []types.Datum{math.NaN(), 2.5, math.Copysign(0, -1), 0.0, math.Inf(1), nil}},
		{types.Of(types.Text), []types.Datum{"", "a", "A", "ab", "b", "ä", nil}},
		{types.Type{Kind: types.BpChar, Len: 4}, []types.Datum{"a   ", "ab  ", "a", "a\x01", nil, "b   "}},
		{types.Of(types.Bytea), []types.Datum{[]byte{}, []byte{0}, []byte{255}, []byte{0, 1}, nil}},
		{types.Type{Kind: types.Numeric, Prec: 9, Scale: 2}, []types.Datum{num("1.50"), num("-1.50"), num("0.00"), nil, num("99.99")}},
		{types.Of(types.Numeric), []types.Datum{num("1.5"), num("1.50"), num("-1"), num("NaN"), num("Infinity"), nil}},
		{types.Of(types.UUID), append(parsed(types.UUID, "00000000-0000-0000-0000-000000000000", "a0000000-0000-0000-0000-000000000001"), nil)},
		{types.Of(types.Interval), append(parsed(types.Interval, "1 day", "24 hours", "1 mon", "-1 day"), nil)},
		{types.Of(types.Bool), []types.Datum{true, false, nil}},
	} {
		a := vec.FromDatums(c.t, c.vals)
		forms := []arrow.Array{a}
		if c.t.Kind == types.Text {
			d := array.NewDictionaryArray(&arrow.DictionaryType{IndexType: arrow.PrimitiveTypes.Int32, ValueType: arrow.BinaryTypes.String},
				vec.FromDatums(types.Of(types.Int4), []types.Datum{int64(5), int64(1), nil, int64(0), int64(1)}),
				vec.FromDatums(c.t, []types.Datum{"", "a", "A", "ab", "b", "ä"}))
			forms = append(forms, d)
		}
		for _, a := range forms {
			for mode := range 4 {
				desc, first := mode&1 != 0, mode&2 != 0
				kr := vec.NewKeyer([]vec.KeyColumn{{Type: c.t, Desc: desc, NullsFirst: first}}, []arrow.Array{a})
				for at := range a.Len() {
					b := newTopBound(c.t, desc, first)
					b.tighten(a, at)
					for _, sel := range [][]uint16{nil, {0, 2, 3}, {1}} {
						if sel == nil && a.Len() < 4 {
							sel = []uint16{0, 1, 2}
						}
						if len(sel) == 3 && a.Len() < 4 {
							sel = []uint16{0, 1}
						}
						out := make([]uint16, a.Len())
						k := b.selectRows(a, a.Len(), sel, out)
						if a.IsNull(at) && !first {
							if k != -1 {
								t.Fatalf("%v: a NULL that comes last is no bound", c.t)
							}
							continue
						}
						var want []uint16
						for r := range a.Len() {
							if sel != nil && !slices.Contains(sel, uint16(r)) {
								continue
							}
							if bytes.Compare(kr.Append(nil, r), kr.Append(nil, at)) <= 0 {
								want = append(want, uint16(r))
							}
						}
						if k < 0 || !slices.Equal(out[:k], want) {
							t.Errorf("%v desc %v nulls first %v, bound %v, of %v: %v, want %v", c.t, desc, first, vec.DatumAt(a, c.t, at), sel, out[:max(k, 0)], want)
						}
					}
				}
			}
		}
	}
}
