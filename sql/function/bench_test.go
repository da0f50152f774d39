package function

import (
	"context"
	"math/rand/v2"
	"strconv"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

const benchBatch, benchBatches = 2048, 256

// BenchmarkKernel runs hot kernels over half a million rows of random data in
// batches of 2,048.
func BenchmarkKernel(b *testing.B) {
	r := rand.New(rand.NewPCG(1, 2))
	dt := types.DecimalOf(15, 2)
	one := func(t types.Type, d types.Datum) vec.Vec {
		return vec.Vec{Arr: vec.FromDatums(t, []types.Datum{d}), Const: true}
	}
	i4col := func() (out []vec.Vec) {
		for range benchBatches {
			v := make([]int32, benchBatch)
			for i := range v {
				v[i] = int32(r.IntN(1 << 20))
			}
			out = append(out, vec.Vec{Arr: vec.Make(arrow.PrimitiveTypes.Int32, v, nil)})
		}
		return out
	}
	f8col := func() (out []vec.Vec) {
		for range benchBatches {
			v := make([]float64, benchBatch)
			for i := range v {
				v[i] = r.Float64()
			}
			out = append(out, vec.Vec{Arr: vec.Make(arrow.PrimitiveTypes.Float64, v, nil)})
		}
		return out
	}
	decCol := func() (out []vec.Vec) {
		for range benchBatches {
			v := make([]decimal128.Num, benchBatch)
			for i := range v {
				v[i] = decimal128.FromI64(r.Int64N(1 << 30))
			}
			out = append(out, vec.Vec{Arr: vec.MakeDec128(dt.Arrow(), v, nil)})
		}
		return out
	}
	words := []string{"carefully", "final", "special", "requests", "packages", "sleep", "furiously", "PROMO", "deposits"}
	textCol := func() (out []vec.Vec) {
		for range benchBatches {
			ds := make([]types.Datum, benchBatch)
			for i := range ds {
				s := ""
				for range 5 {
					s += words[r.IntN(len(words))] + " "
				}
				ds[i] = s
			}
			out = append(out, vec.Vec{Arr: vec.FromDatums(tText, ds)})
		}
		return out
	}
	dateCol := func() (out []vec.Vec) {
		for range benchBatches {
			v := make([]int32, benchBatch)
			for i := range v {
				v[i] = int32(8000 + r.IntN(2500))
			}
			out = append(out, vec.Vec{Arr: vec.Make(arrow.FixedWidthTypes.Date32, v, nil)})
		}
		return out
	}
	numText := func() (out []vec.Vec) {
		for range benchBatches {
			ds := make([]types.Datum, benchBatch)
			for i := range ds {
				ds[i] = strconv.Itoa(r.IntN(1 << 20))
			}
			out = append(out, vec.Vec{Arr: vec.FromDatums(tText, ds)})
		}
		return out
	}
	i4, f8 := types.Of(types.Int4), tF8
	op := func(name string, ts ...types.Type) *Overload { return find(LookupOperator(name, false), ts) }
	fn := func(name string, ts ...types.Type) *Overload { return find(Lookup(name), ts) }
	cast := func(from, to types.Type) *Overload { o, _, _ := Cast(from, to); return o }
	date := types.Of(types.Date)
	for _, c := range []struct {
		name string
		o    *Overload
		ts   []types.Type
		cols []func() []vec.Vec
		k    *vec.Vec
	}{
		{"int4<const", op("<", i4, i4), []types.Type{i4, i4}, []func() []vec.Vec{i4col}, ptr(one(i4, int64(500000)))},
		{"int4+int4", op("+", i4, i4), []types.Type{i4, i4}, []func() []vec.Vec{i4col, i4col}, nil},
		{"float8*float8", op("*", f8, f8), []types.Type{f8, f8}, []func() []vec.Vec{f8col, f8col}, nil},
		{"decimal<const", op("<", tNum, tNum), []types.Type{dt, dt}, []func() []vec.Vec{decCol}, ptr(one(dt, decimal("5000000.00")))},
		{"decimal+decimal", op("+", tNum, tNum), []types.Type{dt, dt}, []func() []vec.Vec{decCol, decCol}, nil},
		{"decimal*decimal", op("*", tNum, tNum), []types.Type{dt, dt}, []func() []vec.Vec{decCol, decCol}, nil},
		{"decimal/decimal", op("/", tNum, tNum), []types.Type{dt, dt}, []func() []vec.Vec{decCol, decCol}, nil},
		{"text=const", op("=", tText, tText), []types.Type{tText, tText}, []func() []vec.Vec{textCol}, ptr(one(tText, "final special "))},
		{"like_contains", op("~~", tText, tText), []types.Type{tText, tText}, []func() []vec.Vec{textCol}, ptr(one(tText, "%special%requests%"))},
		{"like_prefix", op("~~", tText, tText), []types.Type{tText, tText}, []func() []vec.Vec{textCol}, ptr(one(tText, "PROMO%"))},
		{"regex", op("~", tText, tText), []types.Type{tText, tText}, []func() []vec.Vec{textCol}, ptr(one(tText, "special.*requests"))},
		{"text||text", op("||", tText, tText), []types.Type{tText, tText}, []func() []vec.Vec{textCol, textCol}, nil},
		{"upper", fn("upper", tText), []types.Type{tText}, []func() []vec.Vec{textCol}, nil},
		{"extract_year", fn("extract", tText, date), []types.Type{tText, date}, []func() []vec.Vec{nil, dateCol}, ptr(one(tText, "year"))},
		{"int4_to_text", cast(i4, tText), []types.Type{i4}, []func() []vec.Vec{i4col}, nil},
		{"text_to_int4", cast(tText, i4), []types.Type{tText}, []func() []vec.Vec{numText}, nil},
		{"int4_to_numeric", cast(i4, types.DecimalOf(10, 0)), []types.Type{i4}, []func() []vec.Vec{i4col}, nil},
	} {
		if c.o == nil {
			b.Fatalf("%s: no overload", c.name)
		}
		b.Run(c.name, func(b *testing.B) {
			ret := c.o.Ret
			if c.o.RetFn != nil {
				ret = c.o.RetFn(c.ts)
			}
			args := make([][]vec.Vec, benchBatches)
			for _, mk := range c.cols {
				var col []vec.Vec
				if mk != nil {
					col = mk()
				}
				for i := range args {
					if col == nil {
						args[i] = append(args[i], *c.k)
					} else {
						args[i] = append(args[i], col[i])
					}
				}
			}
			if c.k != nil && len(c.cols) == 1 {
				for i := range args {
					args[i] = append(args[i], *c.k)
				}
			}
			call := &Call{Ctx: context.Background(), ArgTypes: c.ts, Ret: ret, N: benchBatch, State: new(any)}
			b.ReportAllocs()
			for b.Loop() {
				for i := range args {
					if _, err := c.o.Kernel(call, args[i]); err != nil {
						b.Fatal(err)
					}
				}
			}
			b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(benchBatch*benchBatches), "ns/row")
		})
	}
}

func ptr[T any](v T) *T { return &v }

func decimal(s string) types.Datum {
	d, err := pgtext.ParseNumeric(s)
	if err != nil {
		panic(err)
	}
	return d
}

// BenchmarkSeries counts to a million in batches of 2,048.
func BenchmarkSeries(b *testing.B) {
	o := find(Lookup("generate_series"), []types.Type{tInt8, tInt8})
	for b.Loop() {
		r, err := o.Set(&Call{Ctx: context.Background()}, []types.Datum{int64(1), int64(1 << 20)})
		if err != nil {
			b.Fatal(err)
		}
		for {
			cols, err := r.Next(context.Background(), benchBatch)
			if err != nil {
				b.Fatal(err)
			}
			if cols == nil {
				break
			}
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/(1<<20), "ns/row")
}
