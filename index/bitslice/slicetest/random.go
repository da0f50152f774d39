package slicetest

import (
	"bytes"
	"math/rand/v2"
	"testing"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Random builds indexes over random columns of every type of a kind and compares
// what they say with the rows. again reads an index and makes it anew from what
// it says; the bytes must be the same.
func Random(t *testing.T, kind index.Kind, options func(r *rand.Rand) index.Options, again func(t testing.TB, b []byte, typ types.Type) []byte) {
	seed := random.Seed(t)
	for _, typ := range Types {
		if !kind.Supports(typ.Type) {
			continue
		}
		t.Run(typ.Paimon, func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 6))
			for round := range testkit.Rounds(8) {
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

// Damage changes, cuts and mixes the bytes of indexes of every type of a kind:
// what opens them may fail and may answer anything, but must not panic.
func Damage(t *testing.T, kind index.Kind, o index.Options) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 8))
	opened := 0
	for _, typ := range Types {
		if !kind.Supports(typ.Type) {
			continue
		}
		b, err := kind.Create(typ.Type, o)
		if err != nil {
			t.Fatal(err)
		}
		column := Column(r, typ.Type, 6000, 40, 10)
		Append(t, r, b, typ.Type, column)
		good, err := b.Finish()
		if err != nil {
			t.Fatal(err)
		}
		for range testkit.Rounds(40) {
			bad := bytes.Clone(good)
			for range 1 + r.IntN(3) {
				at := r.IntN(len(bad))
				if r.IntN(2) == 0 {
					at = r.IntN(min(len(bad), 150)) // the heads
				}
				switch r.IntN(4) {
				case 0:
					bad[at] = byte(r.Uint32())
				case 1:
					bad[at] ^= 1 << r.IntN(8)
				case 2:
					bad = bad[:max(at, 1)]
				case 3:
					bad[at] = []byte{0, 0x7f, 0x80, 0xff}[r.IntN(4)]
				}
			}
			x, err := kind.Open(&Source{B: bad}, typ.Type)
			if err != nil {
				continue
			}
			opened++
			Ask(t, x, typ.Type, Value(r, typ.Type, 40), Value(r, typ.Type, 40), Value(r, typ.Type, 40))
		}
	}
	if opened == 0 {
		t.Error("none was opened")
	}
}
