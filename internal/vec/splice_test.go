package vec_test

import (
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// TestSplice compares with Gather, over random spans and patches.
func TestSplice(t *testing.T) {
	kinds := []types.Type{
		types.Of(types.Int2), types.Of(types.Int4), types.Of(types.Int8), types.Of(types.Float8), types.Of(types.Bool), types.Of(types.Text), types.Of(types.Bytea),
		{Kind: types.Row, Fields: types.Schema{{Name: "x", Type: types.Of(types.Int4)}, {Name: "y", Type: types.Of(types.Text)}}},
	}
	r := rand.New(rand.NewPCG(2, 2))
	var value func(typ types.Type) types.Datum
	value = func(typ types.Type) types.Datum {
		n := r.Int64N(30)
		switch typ.Kind {
		case types.Bool:
			return n%2 == 0
		case types.Float8:
			return float64(n)
		case types.Text:
			return "abcdefghijklmnopqrstuvwxyzabcdefgh"[:n]
		case types.Bytea:
			return []byte("abcdefghijklmnopqrstuvwxyzabcdefgh"[:n])
		case types.Row:
			return []types.Datum{value(typ.Fields[0].Type), value(typ.Fields[1].Type)}
		}
		return n
	}
	for round := range 400 {
		typ := kinds[round%len(kinds)]
		srcs := make([]arrow.Array, 1+r.IntN(4))
		nulls := r.IntN(2) == 0
		for i := range srcs {
			ds := make([]types.Datum, 1+r.IntN(60))
			for k := range ds {
				if !nulls || r.IntN(5) > 0 {
					ds[k] = value(typ)
				}
			}
			srcs[i] = vec.Slice(vec.FromDatums(typ, ds), r.IntN(2)%len(ds), len(ds))
			if typ.Kind == types.Text && round%3 != 0 && (round%3 == 1 || r.IntN(2) == 0) {
				srcs[i] = asDict(srcs[i], typ)
			}
		}
		var spans []vec.Span
		var src, psrc []uint16
		var row, prow, pos []uint32
		for range r.IntN(6) {
			s := r.IntN(len(srcs))
			from := r.IntN(srcs[s].Len())
			x := vec.Span{Src: int32(s), From: int32(from), N: int32(r.IntN(srcs[s].Len() - from + 1))}
			holes := r.IntN(5) == 0
			if holes {
				x.Src = -1
			}
			for i := range x.N {
				src, row = append(src, uint16(s)), append(row, uint32(x.From+i))
				if holes || r.IntN(4) == 0 {
					k := r.IntN(len(srcs))
					at := uint32(r.IntN(srcs[k].Len()))
					src[len(src)-1], row[len(row)-1] = uint16(k), at
					pos, psrc, prow = append(pos, uint32(len(src)-1)), append(psrc, uint16(k)), append(prow, at)
				}
			}
			spans = append(spans, x)
		}
		got := vec.Splice(typ.Arrow(), srcs, spans, len(src), pos, psrc, prow)
		want := vec.Gather(typ.Arrow(), srcs, src, row)
		if got.Len() != want.Len() || got.NullN() != want.NullN() {
			t.Fatalf("round %d: %d rows, %d NULLs, want %d, %d", round, got.Len(), got.NullN(), want.Len(), want.NullN())
		}
		for i := range got.Len() {
			g, w := vec.DatumAt(got, typ, i), vec.DatumAt(want, typ, i)
			if !equalDatum(g, w) {
				t.Fatalf("round %d, %v, row %d: %v, want %v", round, typ.Kind, i, g, w)
			}
		}
	}
}

func equalDatum(a, b types.Datum) bool {
	switch x := a.(type) {
	case []byte:
		y, ok := b.([]byte)
		return ok && string(x) == string(y)
	case []types.Datum:
		y, ok := b.([]types.Datum)
		if !ok || len(x) != len(y) {
			return false
		}
		for i := range x {
			if !equalDatum(x[i], y[i]) {
				return false
			}
		}
		return true
	}
	return a == b
}

// asDict makes a dictionary of an array of text.
func asDict(a arrow.Array, typ types.Type) arrow.Array {
	var values []types.Datum
	at := map[types.Datum]int32{}
	idx := make([]int32, a.Len())
	valid := vec.NewBitmap(a.Len())
	for i := range a.Len() {
		d := vec.DatumAt(a, typ, i)
		if d == nil {
			idx[i] = 1 << 20 // never looked at
			continue
		}
		if _, ok := at[d]; !ok {
			at[d] = int32(len(values))
			values = append(values, d)
		}
		idx[i] = at[d]
		vec.SetBit(valid, i)
	}
	return vec.MakeDict(idx, valid, vec.FromDatums(typ, values))
}
