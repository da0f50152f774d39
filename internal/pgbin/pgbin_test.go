package pgbin

import (
	"math/big"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/decimal128"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
)

// Random coefficients in all three code paths of numeric agree with pgx.
func TestNumericRandom(t *testing.T) {
	seed := random.Seed(t)
	t.Log("seed ", seed)
	rnd := rand.New(rand.NewPCG(seed, 1))
	m := pgtype.NewMap()
	for range 5000 {
		digits := rnd.IntN(60) + 1
		s := make([]byte, digits)
		for i := range s {
			s[i] = byte('0' + rnd.IntN(10)*rnd.IntN(2))
		}
		d := &numeric.Dec{Scale: int32(rnd.IntN(40))}
		d.Coef.SetString(string(s), 10)
		if rnd.IntN(2) == 0 {
			d.Coef.Neg(&d.Coef)
		}
		forms := [][]byte{AppendNumeric(nil, numeric.AppendEncoded(nil, d)), appendNumericDec(nil, d)}
		if d.Coef.BitLen() < 127 {
			n := decimal128.FromBigInt(&d.Coef)
			forms = append(forms, AppendNumeric128(nil, uint64(n.HighBits()), n.LowBits(), int(d.Scale)))
		}
		for i, b := range forms {
			if string(b) != string(forms[0]) {
				t.Fatalf("%s scale %d: path %d gives %x, path 0 %x", &d.Coef, d.Scale, i, b, forms[0])
			}
		}
		v, err := pgtype.NumericCodec{}.DecodeValue(m, pgtype.NumericOID, 1, forms[0])
		if err != nil {
			t.Fatal(err)
		}
		n, ok := v.(pgtype.Numeric)
		if !ok || rat(n.Int, n.Exp).Cmp(rat(&d.Coef, -d.Scale)) != 0 {
			t.Fatalf("%s scale %d: pgx reads %v from %x", &d.Coef, d.Scale, v, forms[0])
		}
		dd := Decoder{}
		back, err := dd.numeric(forms[0])
		if err != nil || numeric.Cmp(back.(*numeric.Dec), d) != 0 || back.(*numeric.Dec).Scale != d.Scale {
			t.Fatalf("%s scale %d: back %v, %v", &d.Coef, d.Scale, back, err)
		}
	}
}

func rat(c *big.Int, exp int32) *big.Rat {
	r := new(big.Rat).SetInt(c)
	p := new(big.Rat).SetInt(new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(exp, -exp))), nil))
	if exp < 0 {
		return r.Quo(r, p)
	}
	return r.Mul(r, p)
}
