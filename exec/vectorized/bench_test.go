package vectorized

import (
	"context"
	"fmt"
	"math/rand/v2"
	"syscall"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// benchRel makes n rows of int8 columns with the given numbers of distinct
// values, in splits of 64k rows.
func benchRel(n int, distinct ...int64) *memRel {
	r := rand.New(rand.NewPCG(1, 2))
	ts := make([]types.Type, len(distinct))
	for i := range ts {
		ts[i] = tInt8
	}
	rel := &memRel{schema: schemaOf(ts...)}
	for from := 0; from < n; from += 1 << 16 {
		k := min(n-from, 1<<16)
		b := &vec.Batch{Schema: rel.schema, N: k}
		for _, d := range distinct {
			v := make([]int64, k)
			for i := range v {
				v[i] = r.Int64N(d)
			}
			b.Cols = append(b.Cols, vec.Make(arrow.PrimitiveTypes.Int64, v, nil))
		}
		rel.batches = append(rel.batches, b)
	}
	return rel
}

// addColumn puts a column made from row numbers behind those of rel.
func addColumn(rel *memRel, t types.Type, f func(n int, r *rand.Rand) arrow.Array) {
	r := rand.New(rand.NewPCG(3, 4))
	rel.schema = append(rel.schema, types.Field{Name: fmt.Sprintf("c%d", len(rel.schema)), Type: t})
	for _, b := range rel.batches {
		b.Schema = rel.schema
		b.Cols = append(b.Cols, f(b.N, r))
	}
}

func runBench(b *testing.B, n plan.Node, rows, workers int) {
	b.ReportAllocs()
	start := cpuNanos()
	for b.Loop() {
		drainBench(b, n, workers)
	}
	b.ReportMetric(float64(cpuNanos()-start)/float64(b.N)/float64(rows), "cpu-ns/row")
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}

// cpuNanos is the CPU time of the process: on a busy machine the clock on the
// wall says little.
func cpuNanos() int64 {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return u.Utime.Nano() + u.Stime.Nano()
}

func drainBench(b *testing.B, n plan.Node, workers int) {
	q, err := Start(context.Background(), &plan.Fragment{Root: n}, nil, &Env{Workers: workers, Account: mem.NewRoot("m", 0)})
	if err != nil {
		b.Fatal(err)
	}
	for {
		out, err := q.Next(context.Background())
		if err != nil {
			b.Fatal(err)
		}
		if out == nil {
			break
		}
	}
	q.Close()
}

func countOf(b testing.TB, n plan.Node) *plan.Aggregate {
	return &plan.Aggregate{Base: base(schemaOf(tInt8)), Input: n, Plain: true, Aggs: []plan.AggCall{aggOf(b, "count")}}
}

func BenchmarkFilter(b *testing.B) {
	const rows = 4 << 20
	rel := benchRel(rows, 1000, 1000)
	addColumn(rel, tNum, func(n int, r *rand.Rand) arrow.Array {
		v := make([]decimal128.Num, n)
		for i := range v {
			v[i] = decimal128.FromI64(r.Int64N(1000))
		}
		return vec.MakeDec128(tNum.Arrow(), v, nil)
	})
	for _, c := range []struct {
		name string
		cond func(s plan.Node) plan.Expr
	}{
		{"int", func(s plan.Node) plan.Expr { return op(b, "<", slot(s, 0), lit(tInt8, int64(500))) }},
		{"int-rare", func(s plan.Node) plan.Expr { return op(b, "<", slot(s, 0), lit(tInt8, int64(10))) }},
		{"and", func(s plan.Node) plan.Expr {
			return &plan.And{Args: []plan.Expr{op(b, "<", slot(s, 0), lit(tInt8, int64(500))), op(b, ">", slot(s, 1), lit(tInt8, int64(900)))}}
		}},
		{"numeric", func(s plan.Node) plan.Expr {
			return op(b, "<", slot(s, 2), lit(tNum, vec.DatumAt(rel.batches[0].Cols[2], tNum, 0)))
		}},
	} {
		b.Run(c.name, func(b *testing.B) {
			s := scanOf(rel)
			f := &plan.Filter{Base: base(s.Out), Input: s, Cond: c.cond(s)}
			runBench(b, countOf(b, f), rows, 1)
		})
	}
}

func BenchmarkAggregate(b *testing.B) {
	const rows = 4 << 20
	for _, groups := range []int64{1, 1000, 1_000_000} {
		rel := benchRel(rows, groups, 1000)
		s := scanOf(rel)
		a := &plan.Aggregate{Base: base(schemaOf(tInt8, tInt8, tInt8)), Input: s, Groups: []plan.Expr{slot(s, 0)}, Aggs: []plan.AggCall{aggOf(b, "count")}}
		for _, w := range []int{1, 2} {
			b.Run(fmt.Sprintf("int/groups=%d/workers=%d", groups, w), func(b *testing.B) { runBench(b, a, rows, w) })
		}
	}
	rel := benchRel(rows, 1000)
	words := []string{"A", "N", "R", "O", "F"}
	dict := vec.FromDatums(tText, []types.Datum{words[0], words[1], words[2], words[3], words[4]})
	addColumn(rel, tText, func(n int, r *rand.Rand) arrow.Array {
		v := make([]int32, n)
		for i := range v {
			v[i] = int32(r.IntN(5))
		}
		return vec.MakeDict(v, nil, dict)
	})
	addColumn(rel, tText, func(n int, r *rand.Rand) arrow.Array {
		ds := make([]types.Datum, n)
		for i := range ds {
			ds[i] = words[r.IntN(5)]
		}
		return vec.FromDatums(tText, ds)
	})
	s := scanOf(rel)
	for name, g := range map[string][]plan.Expr{"dict": {slot(s, 1)}, "dict+text": {slot(s, 1), slot(s, 2)}, "text": {slot(s, 2)}, "none": nil} {
		b.Run(name, func(b *testing.B) {
			a := &plan.Aggregate{Input: s, Groups: g, Plain: g == nil, Aggs: []plan.AggCall{aggOf(b, "count")}}
			var ts []types.Type
			for _, e := range g {
				ts = append(ts, e.Type())
			}
			a.Base = base(schemaOf(append(ts, tInt8)...))
			runBench(b, a, rows, 1)
		})
	}
}

func BenchmarkHashJoin(b *testing.B) {
	const rows = 4 << 20
	for _, build := range []int64{100_000, 1_000_000} {
		probe := benchRel(rows, build, 1000)
		for _, kind := range []string{"dense", "sparse"} {
			rel := &memRel{schema: schemaOf(tInt8, tInt8)}
			step := int64(1)
			if kind == "sparse" {
				step = 1 << 20
			}
			for from := int64(0); from < build; from += 1 << 16 {
				k := min(build-from, 1<<16)
				key, pay := make([]int64, k), make([]int64, k)
				for i := range key {
					key[i], pay[i] = (from+int64(i))*step, int64(i)
				}
				rel.batches = append(rel.batches, &vec.Batch{Schema: rel.schema, N: int(k), Cols: []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int64, key, nil), vec.Make(arrow.PrimitiveTypes.Int64, pay, nil)}})
			}
			p := probe
			if kind == "sparse" {
				p = &memRel{schema: probe.schema}
				for _, x := range probe.batches {
					v := append([]int64(nil), vec.ViewOf[int64](x.Cols[0]).V...)
					for i := range v {
						v[i] *= step
					}
					p.batches = append(p.batches, &vec.Batch{Schema: x.Schema, N: x.N, Cols: []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int64, v, nil), x.Cols[1]}})
				}
			}
			l, r := scanOf(p), scanOf(rel)
			j := &plan.HashJoin{Base: base(joinOut(plan.Inner, l, r)), Left: l, Right: r, LeftKeys: []plan.Expr{slot(l, 0)}, RightKeys: []plan.Expr{slot(r, 0)}}
			// The payload of the build side is used, so that it is gathered.
			a := &plan.Aggregate{Base: base(schemaOf(tInt8)), Input: j, Plain: true, Aggs: []plan.AggCall{aggOf(b, "max", slot(j, 3))}}
			for _, w := range []int{1, 2} {
				b.Run(fmt.Sprintf("%s/build=%d/workers=%d", kind, build, w), func(b *testing.B) { runBench(b, a, rows, w) })
			}
		}
	}
}

func BenchmarkSort(b *testing.B) {
	const rows = 1 << 20
	rel := benchRel(rows, 1<<62, 1000)
	addColumn(rel, tText, func(n int, r *rand.Rand) arrow.Array {
		ds := make([]types.Datum, n)
		for i := range ds {
			ds[i] = fmt.Sprintf("Customer#%09d", r.IntN(1<<20))
		}
		return vec.FromDatums(tText, ds)
	})
	s := scanOf(rel)
	for _, c := range []struct {
		name string
		keys []int
	}{{"int8", []int{0}}, {"int8+int8", []int{1, 0}}, {"text", []int{2}}} {
		n := &plan.Sort{Base: base(s.Out), Input: s}
		for _, k := range c.keys {
			n.Keys = append(n.Keys, plan.SortKey{Expr: slot(s, k)})
		}
		for _, w := range []int{1, 2} {
			b.Run(fmt.Sprintf("%s/workers=%d", c.name, w), func(b *testing.B) { runBench(b, n, rows, w) })
		}
	}
	top := &plan.Sort{Base: base(s.Out), Input: s, Keys: []plan.SortKey{{Expr: slot(s, 0)}}, Limit: 10}
	b.Run("top10", func(b *testing.B) { runBench(b, top, rows, 1) })
}

// BenchmarkSmall is what a query costs before it does anything.
func BenchmarkSmall(b *testing.B) {
	s := schemaOf(tInt8)
	v := &plan.Values{Base: base(s), Rows: [][]plan.Expr{{lit(tInt8, int64(1))}}}
	p := &plan.Project{Base: base(s), Input: v, Exprs: []plan.Expr{op(b, "+", slot(v, 0), lit(tInt8, int64(1)))}}
	b.Run("select", func(b *testing.B) { runBench(b, p, 1, 2) })
	work := &plan.WorkScan{Base: base(s), ID: 1}
	f := &plan.Filter{Base: base(s), Input: work, Cond: op(b, "<", slot(work, 0), lit(tInt8, int64(1000)))}
	u := &plan.RecursiveUnion{Base: base(s), ID: 1, Init: v, Step: &plan.Project{Base: base(s), Input: f, Exprs: []plan.Expr{op(b, "+", slot(f, 0), lit(tInt8, int64(1)))}}}
	b.Run("recursion", func(b *testing.B) { runBench(b, u, 1000, 2) })
}
