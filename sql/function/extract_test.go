package function

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// TestExtractColumns: the loop over a column answers what one value does.
func TestExtractColumns(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 1))
	for _, kind := range []types.Kind{types.Date, types.Timestamp} {
		ty := types.Of(kind)
		o := find(Lookup("extract"), []types.Type{tText, ty})
		for _, withInf := range []bool{false, true} {
			ds := make([]types.Datum, 300)
			for i := range ds {
				switch {
				case r.IntN(10) == 0:
				case kind == types.Date:
					ds[i] = int64(r.IntN(4000000) - 2000000)
				default:
					ds[i] = r.Int64N(1<<57) - 1<<56
				}
			}
			if withInf {
				if kind == types.Date {
					ds[7] = int64(pgtext.DateInfinity)
				} else {
					ds[7] = int64(pgtext.TimestampNegInfinity)
				}
			}
			col := vec.FromDatums(ty, ds)
			for _, u := range []string{"year", "month", "day", "quarter", "week", "dow", "isodow", "doy", "decade", "julian"} {
				k := vec.Vec{Arr: vec.FromDatums(tText, []types.Datum{u}), Const: true}
				call := func() *Call {
					return &Call{Ctx: context.Background(), N: len(ds), ArgTypes: []types.Type{tText, ty}, Ret: tNum, State: new(any)}
				}
				a, err := o.Kernel(call(), []vec.Vec{k, {Arr: col}})
				if err != nil {
					t.Fatal(err)
				}
				for i, d := range ds {
					c := call()
					c.N = 1
					want, err := EvalDatums(o, c, []types.Datum{u, d})
					if err != nil {
						t.Fatal(err)
					}
					got := vec.DatumAt(a, tNum, i)
					if string(pgtext.AppendDatum(nil, tNum, got, nil)) != string(pgtext.AppendDatum(nil, tNum, want, nil)) {
						t.Fatalf("extract(%s) of %s: column %v, value %v", u, pgtext.AppendDatum(nil, ty, d, nil), got, want)
					}
				}
			}
		}
	}
}
