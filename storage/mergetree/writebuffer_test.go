package mergetree

import (
	"bytes"
	"fmt"
	"math/big"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// randomKeys makes n values of a type; few makes them collide.
func randomKeys(r *rand.Rand, t types.Type, n int, span int64) (arrow.Array, []types.Datum) {
	ds := make([]types.Datum, n)
	prefix := strings.Repeat("customer#", r.IntN(3))
	for i := range ds {
		v := r.Int64N(span) - span/2
		switch t.Kind {
		case types.Text:
			switch r.IntN(4) {
			case 0:
				ds[i] = prefix + strings.Repeat("\x00", int(uint64(v)%12))
			default:
				ds[i] = prefix + fmt.Sprintf("%0*d", 1+int(uint64(v)%20), v)
			}
		case types.Bytea:
			ds[i] = []byte(fmt.Sprint(v))
		case types.Bool:
			ds[i] = v&1 == 0
		case types.Float8:
			ds[i] = float64(v) / 3
		case types.Numeric:
			d := &numeric.Dec{Scale: int32(t.Scale)}
			d.Coef.Mul(big.NewInt(v), big.NewInt(1<<40))
			ds[i] = d
		default:
			ds[i] = v
		}
	}
	return vec.FromDatums(t, ds), ds
}

// TestLatest compares sorting and choosing with a slow way of doing so.
func TestLatest(t *testing.T) {
	kinds := []types.Type{types.Of(types.Int4), types.Of(types.Int8), types.Of(types.Text), types.Of(types.Bytea), types.Of(types.Bool), types.Of(types.Float8), types.NumericOf(30, 2), types.Of(types.Date)}
	for run := range 200 {
		seed := random.Seed(t)
		r := rand.New(rand.NewPCG(seed, uint64(run)))
		n := []int{0, 1, 10, 100, 3000}[r.IntN(5)]
		span := []int64{2, 50, 1 << 40}[r.IntN(3)]
		var ts []types.Type
		var cols []arrow.Array
		rows := make([][]types.Datum, n)
		for range 1 + r.IntN(3) {
			ty := kinds[r.IntN(len(kinds))]
			if ty.Kind == types.Int4 || ty.Kind == types.Date {
				span = min(span, 1<<30)
			}
			a, ds := randomKeys(r, ty, n, span)
			ts, cols = append(ts, ty), append(cols, a)
			for i := range rows {
				rows[i] = append(rows[i], ds[i])
			}
		}
		c := NewKeyCodec(ts)
		images := make([][]byte, n)
		order := make([]int, n)
		for i := range rows {
			images[i], order[i] = c.Append(nil, rows[i]), i
		}
		for i, b := range c.Bytes(cols, n) {
			if !bytes.Equal(b, images[i]) {
				t.Fatalf("seed %d: key %v is %x, want %x", seed, rows[i], b, images[i])
			}
		}
		var user *SequenceKeys
		useq := make([]types.Datum, n)
		desc := r.IntN(2) == 0
		if r.IntN(2) == 0 {
			uts, ucols := []types.Type{types.Of(types.Int8)}, []arrow.Array{}
			for i := range useq {
				if r.IntN(4) > 0 {
					useq[i] = r.Int64N(5)
				}
			}
			ucols = append(ucols, vec.FromDatums(uts[0], useq))
			if r.IntN(2) == 0 { // a second field that never decides
				uts = append(uts, types.Of(types.Text))
				ucols = append(ucols, vec.MakeNull(arrow.BinaryTypes.String, n))
			}
			user = NewSequenceKeys(uts, ucols, n, desc)
		}
		rank := func(d types.Datum) int64 {
			switch {
			case d == nil:
				return -100
			case desc:
				return -d.(int64)
			}
			return d.(int64)
		}
		slices.SortStableFunc(order, func(a, b int) int {
			if x := bytes.Compare(images[a], images[b]); x != 0 {
				return x
			}
			return int(rank(useq[a]) - rank(useq[b]))
		})
		var want []uint32
		for i, o := range order {
			if i+1 == n || !bytes.Equal(images[o], images[order[i+1]]) {
				want = append(want, uint32(o))
			}
		}
		var k Keys
		c.Fill(&k, cols, n)
		if got := c.Latest(&k, n, user); !slices.Equal(got, want) {
			t.Fatalf("seed %d: %d rows of %v, sequence %v: %d winners, want %d", seed, n, ts, user != nil, len(got), len(want))
		}
	}
}

// BenchmarkLatest sorts a million keys of which half are different.
func BenchmarkLatest(b *testing.B) {
	const n = 1_000_000
	r := rand.New(rand.NewPCG(1, 2))
	ids, offs, text := make([]int64, n), make([]int32, n+1), []byte{}
	for i := range ids {
		ids[i] = r.Int64N(n / 2)
		text = fmt.Appendf(text, "customer#%09d", ids[i])
		offs[i+1] = int32(len(text))
	}
	for _, c := range []struct {
		name string
		ts   []types.Type
		cols []arrow.Array
	}{
		{"bigint", []types.Type{types.Of(types.Int8)}, []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int64, ids, nil)}},
		{"two bigints", []types.Type{types.Of(types.Int8), types.Of(types.Int8)}, []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int64, ids, nil), vec.Make(arrow.PrimitiveTypes.Int64, ids, nil)}},
		{"text", []types.Type{types.Of(types.Text)}, []arrow.Array{vec.MakeBytes(arrow.BinaryTypes.String, offs, text, nil)}},
	} {
		b.Run(c.name, func(b *testing.B) {
			codec := NewKeyCodec(c.ts)
			for b.Loop() {
				var k Keys
				codec.Fill(&k, c.cols, n)
				codec.Latest(&k, n, nil)
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/n, "ns/row")
		})
	}
}
