package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// reopened is w's table in another environment.
func (w *written) reopened(o EnvOptions) *FileStore {
	env := NewEnv(w.io, o)
	w.t.Cleanup(env.Close)
	return Open(env, w.store.dir)
}

func atLeast(col int, t types.Type, d types.Datum) *predicate.Leaf {
	return &predicate.Leaf{Op: predicate.GtEq, Col: col, Type: t, Args: []types.Datum{d}}
}

// TestVerdictAndValueFilter: once it is known which rows of merged files are final, a
// filter on values rules files out one by one, and neither brings an old version back
// nor loses a new one.
func TestVerdictAndValueFilter(t *testing.T) {
	ctx := context.Background()
	w := newWritten(t, tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k INT", "v INT"))
	rows := func(n int, v int64) (out [][]types.Datum) {
		for i := range n {
			out = append(out, []types.Datum{int64(i), v})
		}
		return out
	}
	w.write(rows(100, 1), nil)
	w.publish()
	w.write(rows(10, 50), nil)
	w.publish()
	s := w.reopened(EnvOptions{VerdictRows: 1})
	v := w.sch.Fields[1].Type
	low := &predicate.Leaf{Op: predicate.Lt, Col: 1, Type: v, Args: []types.Datum{int64(10)}}
	for _, c := range []struct {
		leaf    *predicate.Leaf
		rows    int
		skipped int64
	}{{low, 90, 1}, {atLeast(1, v, int64(10)), 10, 1}, {atLeast(1, v, int64(1)), 100, 0}, {atLeast(1, v, int64(51)), 0, 2}} {
		scan := Scan{Limit: -1, Filter: c.leaf}
		for i := range 3 {
			got, _, err := readOnce(ctx, s, scan, ReadOptions{Filter: &valueFilter{pos: 1, t: v, leaf: c.leaf}})
			if err != nil || len(got) != c.rows {
				t.Errorf("v op%d %v, read %d: %d rows, want %d, %v", c.leaf.Op, c.leaf.Args, i, len(got), c.rows, err)
			}
		}
		p, err := s.Plan(ctx, scan)
		if err != nil || p.Report.Remembered != 1 || p.Report.MergeSplits != 0 || p.Report.Skipped["stats"] != c.skipped {
			t.Errorf("v op%d %v: %+v, %v", c.leaf.Op, c.leaf.Args, p.Report, err)
		}
	}
	if p, err := s.Plan(ctx, Scan{Columns: []int{}, Limit: -1}); err != nil || len(p.Splits) != 1 || p.Splits[0].Rows != 100 || p.Report.FilesRead != 0 {
		t.Errorf("a count of rows: %+v, %v", p.Report, err)
	}
}

// TestVerdictHistory plays random histories of tables and reads each state, a
// transaction's own included, from an environment that remembers what merges come to
// and one that does not.
func TestVerdictHistory(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 11))
	cases := engineCases()
	for _, extra := range []map[string]string{
		{"bucket": "1", "merge-engine": "deduplicate", "deletion-vectors.enabled": "true"},
		{"bucket": "1", "merge-engine": "partial-update", "changelog-producer": "lookup"},
		{"bucket": "1", "merge-engine": "aggregation", "fields.a.aggregate-function": "sum", "force-lookup": "true"},
	} {
		cases = append(cases, engineCase{fmt.Sprint(extra), nil, extra})
	}
	remembered := int64(0)
	var derived atomic.Int64
	for i := range testkit.Rounds(2) {
		for _, c := range cases {
			remembered += verdictRound(t, r, c, &derived)
			if t.Failed() {
				t.Fatalf("%s, round %d of seed %d", c.name, i, seed)
			}
		}
	}
	if remembered == 0 || derived.Load() == 0 {
		t.Errorf("%d remembered, %d derived", remembered, derived.Load())
	}
	t.Logf("%d remembered, %d derived", remembered, derived.Load())
}

// verdictDiff says in what a differs from b.
func verdictDiff(a, b *verdict) string {
	if a.rows != b.rows {
		return fmt.Sprintf("%d rows, not %d", a.rows, b.rows)
	}
	for i, x := range []map[string]*mergetree.RowSet{a.live, a.folded} {
		y := []map[string]*mergetree.RowSet{b.live, b.folded}[i]
		if len(x) != len(y) {
			return fmt.Sprintf("set %d: %d files, not %d", i, len(x), len(y))
		}
		for name, s := range x {
			z := y[name]
			if z == nil || s.Count() != z.Count() {
				return fmt.Sprintf("set %d: file %s", i, name)
			}
			for from := int64(0); s.Count() > 0 && from < 1<<20; from += 4096 {
				k, all := s.Keep(from, 4096, nil)
				l, ally := z.Keep(from, 4096, nil)
				if all != ally || !slices.Equal(k, l) {
					return fmt.Sprintf("set %d: file %s, rows from %d", i, name, from)
				}
			}
		}
	}
	return ""
}

func verdictRound(t *testing.T, r *rand.Rand, c engineCase, derived *atomic.Int64) (remembered int64) {
	ctx := context.Background()
	s := tableSchema(t, c.opts, []string{"k"}, append([]string{"k INT", "l STRING"}, engineColumns...)...)
	rowColumn(s)
	w := newWritten(t, s)
	o := EnvOptions{VerdictRows: 1, MergeRows: []int64{1, 20, 0}[r.IntN(3)], RangeRows: []int64{1, 30, 0}[r.IntN(3)], WindowRows: []int{3, 50, 0}[r.IntN(3)]}
	if r.IntN(3) == 0 {
		o.FoldedBytes = 1 << 12 // too little
	}
	with := w.reopened(o)
	with.env.verdicts.derived = func(j *judging, v *verdict) {
		want, err := j.merge(ctx)
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			return
		}
		if d := verdictDiff(v, want); d != "" {
			t.Errorf("%s: a derived verdict differs: %s", c.name, d)
		}
		derived.Add(1)
	}
	without := w.reopened(EnvOptions{VerdictBytes: -1})
	span := []int64{5, 60, 400}[r.IntN(3)]
	for range 9 {
		switch r.IntN(6) {
		case 0:
			w.publish()
			if _, err := w.store.Compact(ctx, CompactOptions{Full: r.IntN(2) == 0}); err != nil {
				t.Errorf("compact: %v", err)
				return 0
			}
		case 1:
			w.publish()
		default:
			var rows [][]types.Datum
			var kinds []uint8
			for range 1 + r.IntN(120) {
				var x []types.Datum
				for _, f := range s.Fields {
					x = append(x, engineDatum(r, f, span))
				}
				kind := uint8(0)
				if len(c.kinds) > 0 && r.IntN(4) == 0 {
					kind = uint8(c.kinds[r.IntN(len(c.kinds))])
				}
				rows, kinds = append(rows, x), append(kinds, kind)
			}
			w.write(rows, kinds)
		}
		for range 4 {
			scan := Scan{Limit: -1, SkipLevel0: r.IntN(4) == 0, KeepDeletes: r.IntN(8) == 0}
			if r.IntN(3) > 0 {
				scan.Overlay = &w.over
			}
			var ro ReadOptions
			ro.Selections = r.IntN(2) == 0
			all := r.Perm(len(s.Fields))
			scan.Columns = all[:r.IntN(len(all)+1)]
			if len(scan.Columns) > 0 && r.IntN(2) == 0 {
				if f := s.Fields[scan.Columns[0]]; f.Type.Kind != types.Row && f.Type.Kind != types.Array {
					leaf := &predicate.Leaf{Op: predicate.Op(r.IntN(6)), Col: scan.Columns[0], FieldID: f.ID, Type: f.Type, Args: []types.Datum{engineDatum(r, types.Field{Name: f.Name, Type: notNull(f.Type)}, span)}}
					scan.Filter, ro.Filter = leaf, &valueFilter{t: f.Type, leaf: leaf}
				}
			}
			want, _, err := readOnce(ctx, without, scan, ro)
			if err != nil {
				t.Errorf("%s: %v", c.name, err)
				return 0
			}
			for i := range 3 {
				got, _, err := readOnce(ctx, with, scan, ro)
				if err != nil || !slices.Equal(got, want) {
					t.Errorf("%s: env %+v, scan %+v, filter %+v, read %d: %d rows, want %d, %v%s", c.name, o, scan, scan.Filter, i, len(got), len(want), err, diff(got, want))
					return 0
				}
			}
			p, err := with.Plan(ctx, scan)
			if err != nil {
				t.Error(err)
				return 0
			}
			remembered += p.Report.Remembered
		}
	}
	return remembered
}

// TestVerdictOnce: of many who plan at once one finds out what the merge comes to; a
// planner that gives up leaves the work to the next.
func TestVerdictOnce(t *testing.T) {
	ctx := context.Background()
	w := newWritten(t, tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k INT", "v STRING"))
	for run := range 3 {
		var rows [][]types.Datum
		for i := range 2000 {
			rows = append(rows, []types.Datum{int64(i * (run + 1)), fmt.Sprint(run)})
		}
		w.write(rows, nil)
		w.publish()
		w.over = commit.Changes{}
	}
	s := w.reopened(EnvOptions{VerdictRows: 1, MergeRows: 500, RangeRows: 100})
	want, _, err := readOnce(ctx, s, Scan{Limit: -1}, ReadOptions{})
	if err != nil {
		t.Fatal(err)
	}
	s.env.forgetMerges()
	gone, cancel := context.WithCancelCause(ctx)
	cancel(errors.New("enough"))
	if _, err := s.Plan(gone, Scan{Limit: -1}); err == nil {
		t.Error("a cancelled plan went on")
	}
	var wg sync.WaitGroup
	var mu sync.Mutex
	judged, remembered := int64(0), int64(0)
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			p, err := s.Plan(ctx, Scan{Limit: -1})
			if err != nil {
				t.Error(err)
				return
			}
			mu.Lock()
			judged += p.Report.Judged
			remembered += p.Report.Remembered
			mu.Unlock()
			got, _, err := readOnce(ctx, s, Scan{Limit: -1}, ReadOptions{Selections: true})
			if err != nil || !slices.Equal(got, want) {
				t.Errorf("%d rows, want %d, %v", len(got), len(want), err)
			}
		}()
	}
	wg.Wait()
	if remembered != 8 || judged > 1 {
		t.Errorf("%d plans went by a verdict, %d found it", remembered, judged)
	}
}

// TestVerdictBudget: what does not fit is merged as ever.
func TestVerdictBudget(t *testing.T) {
	ctx := context.Background()
	w := newWritten(t, tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k INT", "v INT"))
	for range 2 {
		var rows [][]types.Datum
		for i := range 5000 {
			rows = append(rows, []types.Datum{int64(i), int64(i)})
		}
		w.write(rows, nil)
		w.publish()
	}
	s := w.reopened(EnvOptions{VerdictRows: 1, VerdictBytes: 2000})
	for range 3 {
		p, err := s.Plan(ctx, Scan{Limit: -1})
		if err != nil || p.Report.Remembered != 0 || p.Report.MergeSplits == 0 {
			t.Fatalf("%+v, %v", p.Report, err)
		}
	}
}
