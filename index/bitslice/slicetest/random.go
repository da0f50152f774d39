package slicetest

import (
	"bytes"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Random builds indexes over random columns of every type of a kind and compares
// what they say with the rows. again reads an index and makes it anew from what
// it says; the bytes must be the same.
func Random(t *testing.T, kind index.Kind, options func(r *rand.Rand) index.Options, again func(t testing.TB, b []byte, typ types.Type) []byte) {
	seed := uint64(time.Now().UnixNano())
	t.Logf("seed %d", seed)
	for _, typ := range Types {
		if !kind.Supports(typ.Type) {
			continue
		}
		t.Run(typ.Paimon, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 6))
			for round := range testkit.Rounds(12) {
				rows := []int{1, 2, 70, 500, 3000}[r.IntN(5)]
				if round == 0 {
					rows = 70000
				}
				distinct := []int{1, 2, 5, 60, 5000}[r.IntN(5)]
				nulls := []int{0, 0, 10, 50, 99, 100}[r.IntN(6)]
				column := Column(r, typ.Type, rows, distinct, nulls)
				var o index.Options
				if options != nil {
					o = options(r)
				}
				b, err := kind.Create(typ.Type, o)
				if err != nil {
					t.Fatal(err)
				}
				Append(t, r, b, typ.Type, column)
				out, err := b.Finish()
				if err != nil {
					t.Fatal(err)
				}
				if again != nil {
					if two := again(t, out, typ.Type); o == nil && !bytes.Equal(out, two) {
						t.Fatal("an index made of what an index says is another")
					}
				}
				x, err := kind.Open(&Source{B: out}, typ.Type)
				if err != nil {
					t.Fatal(err)
				}
				for range 50 {
					Check(t, x, Leaf(r, typ.Type, column, distinct), column)
				}
				if s, ok := x.(index.Sorter); ok {
					for range 5 {
						CheckTop(t, r, s, typ.Type, column)
					}
				}
			}
		})
	}
}
