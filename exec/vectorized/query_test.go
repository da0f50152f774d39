package vectorized

import (
	"context"
	"errors"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/function"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

func series(t *testing.T, from, to int64, est float64) *plan.TableFunc {
	for _, o := range function.Lookup("generate_series") {
		if len(o.Args) == 2 && o.Args[0].Kind == types.Int8 {
			s := schemaOf(tInt8)
			n := &plan.TableFunc{Base: base(s), Calls: []plan.SetCall{{F: o, Args: []plan.Expr{lit(tInt8, from), lit(tInt8, to)}, T: s}}}
			n.E.Rows = est
			return n
		}
	}
	t.Fatal("no generate_series(bigint, bigint)")
	return nil
}

func TestSeriesAndProjectSet(t *testing.T) {
	noLeaks(t)
	s := series(t, 1, 5, 10)
	want := []row{{int64(1)}, {int64(2)}, {int64(3)}, {int64(4)}, {int64(5)}}
	for _, c := range []config{{1, 2048, 0}, {2, 2, 0}, {8, 1, 0}} {
		expect(t, c, s, want, true, "series")
	}
	v := scanOf(relOf(schemaOf(tInt8), []row{{int64(2)}, {int64(0)}, {nil}, {int64(3)}}))
	sc := schemaOf(tInt8)
	ps := &plan.ProjectSet{Base: base(schemaOf(tInt8, tInt8)), Input: v, Sets: []plan.SetCall{{F: s.Calls[0].F, Args: []plan.Expr{lit(tInt8, int64(1)), slot(v, 0)}, T: sc}}}
	ps.Exprs = []plan.Expr{slot(v, 0), &plan.Slot{Index: 1, T: tInt8}}
	for _, c := range []config{{1, 2048, 0}, {1, 2, 0}, {2, 1, 0}} {
		expect(t, c, ps, []row{{int64(2), int64(1)}, {int64(2), int64(2)}, {int64(3), int64(1)}, {int64(3), int64(2)}, {int64(3), int64(3)}}, true, "project set")
	}
	// A shared source: every row counted once.
	big := series(t, 1, 100_000, 1e6)
	a := &plan.Aggregate{Base: base(schemaOf(tInt8)), Input: big, Plain: true, Aggs: []plan.AggCall{aggOf(t, "count")}}
	expect(t, config{8, 100, 0}, a, []row{{int64(100_000)}}, true, "count of a series")
}

// TestStreaming: a cross join far larger than memory streams.
func TestStreaming(t *testing.T) {
	noLeaks(t)
	j := &plan.NestedLoop{Base: base(schemaOf(tInt8, tInt8)), Kind: plan.Inner, Left: series(t, 1, 1<<40, 1e12), Right: series(t, 1, 100, 100)}
	acc := mem.NewRoot("max_memory", 1<<20)
	q, err := Start(context.Background(), &plan.Fragment{Root: j}, nil, &Env{Account: acc, Workers: 2})
	if err != nil {
		t.Fatal(err)
	}
	defer q.Close()
	rows := 0
	for rows < 1_000_000 {
		b, err := q.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		rows += b.Size()
	}
}

func TestRecursionAndCTE(t *testing.T) {
	noLeaks(t)
	s := schemaOf(tInt8)
	init := &plan.Values{Base: base(s), Rows: [][]plan.Expr{{lit(tInt8, int64(1))}}}
	work := &plan.WorkScan{Base: base(s), ID: 9}
	f := &plan.Filter{Base: base(s), Input: work, Cond: op(t, "<", slot(work, 0), lit(tInt8, int64(50)))}
	step := &plan.Project{Base: base(s), Input: f, Exprs: []plan.Expr{op(t, "+", slot(f, 0), lit(tInt8, int64(1)))}}
	u := &plan.RecursiveUnion{Base: base(s), ID: 9, Init: init, Step: step}
	var want []row
	for i := range 50 {
		want = append(want, row{int64(i + 1)})
	}
	for _, c := range []config{{1, 2048, 0}, {2, 1, 0}} {
		expect(t, c, u, want, true, "recursion")
	}
	// UNION stops at rows already seen: n -> n % 7 + 1.
	mod := op(t, "+", op(t, "%", slot(work, 0), lit(tInt8, int64(7))), lit(tInt8, int64(1)))
	d := &plan.RecursiveUnion{Base: base(s), ID: 9, Init: init, Step: &plan.Project{Base: base(s), Input: work, Exprs: []plan.Expr{mod}}, Distinct: true}
	expect(t, config{2, 10, 0}, d, want[:7], true, "recursion with UNION")
	// An endless one ends by its LIMIT.
	endless := &plan.RecursiveUnion{Base: base(s), ID: 9, Init: init, Step: &plan.Project{Base: base(s), Input: work, Exprs: []plan.Expr{op(t, "+", slot(work, 0), lit(tInt8, int64(1)))}}}
	l := &plan.Limit{Base: base(s), Input: endless, Count: lit(tInt8, int64(30))}
	expect(t, config{2, 10, 0}, l, want[:30], true, "endless recursion")

	rel, rows := makeRel(newRand(t), 100, 10, true, tInt8)
	cte := &plan.CTE{ID: 1, Plan: scanOf(rel)}
	scan := func() plan.Node { return &plan.CTEScan{Base: base(s), CTE: cte} }
	ap := &plan.Append{Base: base(s), Ins: []plan.Node{scan(), scan()}}
	got, err := collect(t, &plan.Fragment{Root: ap, CTEs: []*plan.CTE{cte}}, nil, config{8, 7, 0})
	if err != nil {
		t.Fatal(err)
	}
	same(t, config{8, 7, 0}, got, append(append([]row{}, rows...), rows...), false, "CTE read twice")
	if rel.closed.Load() != int64(len(rel.batches)) {
		t.Errorf("the CTE opened %d readers, want %d", rel.closed.Load(), len(rel.batches))
	}
}

func TestParamsAndInitPlans(t *testing.T) {
	noLeaks(t)
	s := schemaOf(tInt8)
	sc := scanOf(relOf(s, []row{{int64(1)}, {int64(2)}, {int64(3)}}))
	// WHERE c0 > (SELECT max(c0) - $1 ...)
	agg := &plan.Aggregate{Base: base(s), Input: sc, Plain: true, Aggs: []plan.AggCall{aggOf(t, "max", slot(sc, 0))}}
	diff := &plan.Project{Base: base(s), Input: agg, Exprs: []plan.Expr{op(t, "-", slot(agg, 0), &plan.Param{Index: 0, T: tInt8})}}
	f := &plan.Filter{Base: base(s), Input: sc, Cond: op(t, ">", slot(sc, 0), &plan.Param{Index: 1, T: tInt8})}
	frag := &plan.Fragment{Root: f, ClientParams: []types.Type{tInt8}, NumParams: 2, InitPlans: []plan.InitPlan{{Param: 1, Kind: plan.Scalar, Plan: diff, T: tInt8}}}
	for _, c := range []config{{1, 10, 0}, {2, 1, 0}} {
		got, err := collect(t, frag, []types.Datum{int64(2)}, c)
		if err != nil {
			t.Fatal(err)
		}
		same(t, c, got, []row{{int64(2)}, {int64(3)}}, true, "init plan")
	}
	frag.InitPlans[0].Plan = sc // three rows
	if _, err := collect(t, frag, []types.Datum{int64(2)}, config{1, 10, 0}); !pgerr.Is(err, pgerr.CardinalityViolation) {
		t.Fatalf("three rows of a scalar subquery: %v", err)
	}
}

func TestMemoryLimit(t *testing.T) {
	noLeaks(t)
	big := series(t, 1, 10_000_000, 1e7)
	agg := &plan.Aggregate{Base: base(schemaOf(tInt8, tInt8)), Input: big, Groups: []plan.Expr{slot(big, 0)}, Aggs: []plan.AggCall{aggOf(t, "count")}}
	sort := &plan.Sort{Base: base(big.Out), Input: big, Keys: []plan.SortKey{{Expr: slot(big, 0), Desc: true}}}
	join := &plan.HashJoin{Base: base(schemaOf(tInt8, tInt8)), Left: series(t, 1, 10, 10), Right: big, LeftKeys: []plan.Expr{slot(big, 0)}, RightKeys: []plan.Expr{slot(big, 0)}}
	for name, n := range map[string]plan.Node{"aggregate": agg, "sort": sort, "join": join, "distinct": &plan.DistinctOn{Base: base(big.Out), Input: big}} {
		for _, w := range []int{1, 4} {
			root := mem.NewRoot("max_memory", 0)
			acc := root.Child("work_mem", 4<<20)
			q, err := Start(context.Background(), &plan.Fragment{Root: n}, nil, &Env{Account: acc, Workers: w})
			if err != nil {
				t.Fatal(err)
			}
			for b, e := q.Next(context.Background()); ; b, e = q.Next(context.Background()) {
				if err = e; e != nil || b == nil {
					break
				}
			}
			var le *mem.LimitError
			if !errors.As(err, &le) || le.Setting != "work_mem" {
				t.Errorf("%s with %d workers: %v, want a memory limit", name, w, err)
			}
			if err := q.Close(); err != nil {
				t.Error(err)
			}
			if acc.Used() != 0 || root.Used() != 0 {
				t.Errorf("%s: %d bytes still charged", name, acc.Used())
			}
		}
	}
}

// TestCancel: a cancelled context ends a query wherever it is.
func TestCancel(t *testing.T) {
	noLeaks(t)
	cause := errors.New("cancelled by the user")
	endless := series(t, 1, 1<<60, 1e18)
	rel := &memRel{schema: schemaOf(tInt8)}
	for range 200 {
		rel.batches = append(rel.batches, batchOf(rel.schema, []row{{int64(1)}, {int64(2)}}))
	}
	sc := scanOf(rel)
	cross := func(n plan.Node) plan.Node { // endless below a sink
		return &plan.Aggregate{Base: base(schemaOf(tInt8)), Input: n, Plain: true, Aggs: []plan.AggCall{aggOf(t, "count")}}
	}
	nl := &plan.NestedLoop{Base: base(schemaOf(tInt8, tInt8)), Left: endless, Right: sc, Cond: op(t, "<", &plan.Slot{Index: 0, T: tInt8}, &plan.Slot{Index: 1, T: tInt8})}
	never := &plan.Filter{Base: base(endless.Out), Input: endless, Cond: op(t, "<", slot(endless, 0), lit(tInt8, int64(0)))}
	for name, n := range map[string]plan.Node{"count": cross(endless), "nested loop": nl, "filter": never, "top": &plan.Sort{Base: base(endless.Out), Input: endless, Limit: 5, Keys: []plan.SortKey{{Expr: slot(endless, 0)}}}} {
		for _, w := range []int{1, 3} {
			ctx, cancel := context.WithCancelCause(context.Background())
			q, err := Start(ctx, &plan.Fragment{Root: n}, nil, &Env{Workers: w, Account: mem.NewRoot("m", 0), Slots: mem.NewSlots(1)})
			if err != nil {
				t.Fatal(err)
			}
			done := make(chan error)
			go func() {
				for {
					b, err := q.Next(context.Background())
					if err != nil || b == nil {
						done <- err
						return
					}
				}
			}()
			cancel(cause)
			if err := <-done; !errors.Is(err, cause) {
				t.Errorf("%s with %d workers ended with %v", name, w, err)
			}
			if err := q.Close(); err != nil {
				t.Error(err)
			}
		}
	}
	// In the middle of a scan, and by the context of Next alone.
	ctx, cancel := context.WithCancelCause(context.Background())
	reads := 0
	rel.onRead = func() {
		if reads++; reads == 50 {
			cancel(cause)
		}
	}
	q, err := Start(ctx, &plan.Fragment{Root: cross(sc)}, nil, &Env{Workers: 1, Account: mem.NewRoot("m", 0)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Next(context.Background()); !errors.Is(err, cause) {
		t.Errorf("scan ended with %v", err)
	}
	if reads > 51 {
		t.Errorf("%d reads after the cancellation", reads-50)
	}
	q.Close()
	// By the context of Next alone.
	q, err = Start(context.Background(), &plan.Fragment{Root: cross(endless)}, nil, &Env{Workers: 2, Account: mem.NewRoot("m", 0)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel = context.WithCancelCause(context.Background())
	cancel(cause)
	if _, err := q.Next(ctx); !errors.Is(err, cause) {
		t.Errorf("Next ended with %v", err)
	}
	q.Close()
}

// TestLimitStops: a LIMIT closes what is below as soon as it has enough, and a
// query may be closed in the middle.
func TestLimitStops(t *testing.T) {
	noLeaks(t)
	r := newRand(t)
	rel, _ := makeRel(r, 5000, 10, false, tInt8)
	sc := scanOf(rel)
	l := &plan.Limit{Base: base(sc.Out), Input: sc, Count: lit(tInt8, int64(3))}
	got, err := collect(t, &plan.Fragment{Root: l}, nil, config{4, 10, 0})
	if err != nil || len(got) != 3 {
		t.Fatalf("%d rows, %v", len(got), err)
	}
	q, err := Start(context.Background(), &plan.Fragment{Root: sc}, nil, &Env{Workers: 4, VectorSize: 5, Account: mem.NewRoot("m", 0), Slots: mem.NewSlots(1)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := q.Next(context.Background()); err != nil {
		t.Fatal(err)
	}
	if err := q.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := q.Next(context.Background()); err == nil {
		t.Error("Next after Close works")
	}
}

func TestStats(t *testing.T) {
	r := newRand(t)
	rel, rows := makeRel(r, 500, 10, false, tInt8)
	sc := scanOf(rel)
	agg := &plan.Aggregate{Base: base(schemaOf(tInt8, tInt8)), Input: sc, Groups: []plan.Expr{slot(sc, 0)}, Aggs: []plan.AggCall{aggOf(t, "count")}}
	q, err := Start(context.Background(), &plan.Fragment{Root: agg}, nil, &Env{Workers: 2, Account: mem.NewRoot("m", 0)})
	if err != nil {
		t.Fatal(err)
	}
	out := int64(0)
	for {
		b, err := q.Next(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		if b == nil {
			break
		}
		out += int64(b.Size())
	}
	q.Close()
	st := q.Stats()
	if n := st.Node(sc.ID); n.Rows != int64(len(rows)) || n.Report == nil || n.Loops != 1 {
		t.Errorf("scan: %d rows, report %v, loops %d", n.Rows, n.Report, n.Loops)
	}
	if n := st.Node(agg.ID); n.Rows != out || n.Detail()["groups"] != out || n.MemPeak == 0 {
		t.Errorf("aggregate: %d rows of %d, detail %v, peak %d", n.Rows, out, n.Detail(), n.MemPeak)
	}
}
