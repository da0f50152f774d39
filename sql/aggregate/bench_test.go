package aggregate

import (
	"context"
	"math/rand/v2"
	"testing"

	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

const benchRows = 1 << 20

// BenchmarkUpdate feeds a million rows in batches of 2,048 to 1 and to 1,000
// groups.
func BenchmarkUpdate(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	i4 := make([]int32, benchRows)
	f8 := make([]float64, benchRows)
	dec := make([]decimal128.Num, benchRows)
	for i := range i4 {
		i4[i] = int32(r.IntN(1 << 20))
		f8[i] = r.Float64()
		dec[i] = decimal128.FromI64(r.Int64N(1 << 40))
	}
	dt := types.DecimalOf(15, 2)
	for _, c := range []struct {
		name, agg string
		t         types.Type
	}{
		{"count", "count", tInt4}, {"sum_int4", "sum", tInt4}, {"sum_decimal", "sum", dt}, {"avg_decimal", "avg", dt},
		{"sum_float8", "sum", tFloat8}, {"max_int4", "max", tInt4}, {"min_decimal", "min", dt}, {"stddev_float8", "stddev", tFloat8},
	} {
		for _, groups := range []int{1, 1000} {
			b.Run(c.name+map[int]string{1: "/1", 1000: "/1000"}[groups], func(b *testing.B) {
				var def *Def
				for _, d := range Lookup(c.agg) {
					if len(d.Args) == 1 && (d.Args[0].Kind == c.t.Kind || d.Args[0].Kind == types.Any) {
						def = d
					}
				}
				call := &Call{Ctx: context.Background(), ArgTypes: []types.Type{c.t}, Ret: def.Ret}
				if def.RetFn != nil {
					call.Ret = def.RetFn(call.ArgTypes)
				}
				const batch = 2048
				var in []vec.Vec
				g := make([]uint32, benchRows)
				for i := range g {
					g[i] = uint32(r.IntN(groups))
				}
				for at := 0; at < benchRows; at += batch {
					switch c.t.Kind {
					case types.Int4:
						in = append(in, vec.Vec{Arr: vec.Make(tInt4.Arrow(), i4[at:at+batch], nil)})
					case types.Float8:
						in = append(in, vec.Vec{Arr: vec.Make(tFloat8.Arrow(), f8[at:at+batch], nil)})
					default:
						in = append(in, vec.Vec{Arr: vec.MakeDec128(dt.Arrow(), dec[at:at+batch], nil)})
					}
				}
				s := def.New(call)
				if err := s.Grow(groups); err != nil {
					b.Fatal(err)
				}
				args := make([]vec.Vec, 1)
				for b.Loop() {
					for k, v := range in {
						args[0] = v
						if err := s.Update(g[k*batch:(k+1)*batch], args, nil); err != nil {
							b.Fatal(err)
						}
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/benchRows, "ns/row")
			})
		}
	}
}
