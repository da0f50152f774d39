package numeric

import (
	"bytes"
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// TestAppendTrimmed compares with big integers, digit by digit.
func TestAppendTrimmed(t *testing.T) {
	r := rand.New(rand.NewPCG(random.Seed(t), 1))
	ten := big.NewInt(10)
	for range 200_000 {
		x := new(big.Int).SetUint64(r.Uint64() >> r.IntN(64))
		x.Lsh(x, uint(r.IntN(62)))
		x.Mul(x, new(big.Int).Exp(ten, big.NewInt(int64(r.IntN(39))), nil))
		x.Rsh(x, uint(max(0, x.BitLen()-126)))
		if r.IntN(3) == 0 { // many zeros
			x.SetInt64(r.Int64N(1000))
			x.Mul(x, new(big.Int).Exp(ten, big.NewInt(int64(r.IntN(35))), nil))
		}
		if r.IntN(2) == 0 {
			x.Neg(x)
		}
		scale := int32(r.IntN(39))
		two := new(big.Int).Set(x)
		if x.Sign() < 0 {
			two.Add(two, new(big.Int).Lsh(big.NewInt(1), 128))
		}
		lo := new(big.Int).And(two, new(big.Int).SetUint64(1<<64-1)).Uint64()
		hi := new(big.Int).Rsh(two, 64).Uint64()
		want := &Dec{Scale: scale}
		want.Coef.Set(x)
		var q, rem big.Int
		for want.Scale > 0 {
			if q.QuoRem(&want.Coef, ten, &rem); rem.Sign() != 0 {
				break
			}
			want.Coef.Set(&q)
			want.Scale--
		}
		if got, exp := AppendTrimmed(nil, int64(hi), lo, scale), AppendEncoded(nil, want); !bytes.Equal(got, exp) {
			t.Fatalf("%s at scale %d: %x, want %x", x, scale, got, exp)
		}
	}
}
