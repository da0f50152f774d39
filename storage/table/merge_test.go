package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// TestMergeAgainstMap merges random runs under random options and compares with a
// map filled in sequence order.
func TestMergeAgainstMap(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 6))
	for i := range testkit.Rounds(60) {
		one(t, r, i)
		if t.Failed() {
			t.Fatalf("round %d of seed %d", i, seed)
		}
	}
}

var keyShapes = [][]string{
	{"k INT"}, {"k BIGINT"}, {"k STRING"}, {"k BIGINT", "l INT"}, {"k STRING", "l INT"}, {"k SMALLINT", "l STRING"},
	{"k DECIMAL(20, 2)"}, {"k DATE", "l TINYINT", "m BOOLEAN"}, {"k TIMESTAMP(3)", "l BIGINT"}, {"k DOUBLE"}, {"k BYTES"}, {"k STRING", "l STRING"},
	{"k INT", "l INT", "m INT"}, {"k FLOAT", "l DECIMAL(10, 2)"},
}

func one(t *testing.T, r *rand.Rand, round int) {
	shape := keyShapes[r.IntN(len(keyShapes))]
	var pk []string
	for _, c := range shape {
		name, _, _ := strings.Cut(c, " ")
		pk = append(pk, name)
	}
	// The key is declared in another order than the columns stand.
	r.Shuffle(len(pk), func(i, j int) { pk[i], pk[j] = pk[j], pk[i] })
	opts := map[string]string{"bucket": "1"}
	useSeq, ignoreDelete, first := r.IntN(3) == 0, r.IntN(4) == 0, false
	desc := useSeq && r.IntN(2) == 0
	if useSeq {
		opts["sequence.field"] = " s0 , s1 "
		if desc {
			opts["sequence.field.sort-order"] = "descending"
		}
	} else if r.IntN(5) == 0 {
		first = true
		opts["merge-engine"] = "first-row"
	}
	if ignoreDelete {
		opts["ignore-delete"] = "true"
	}
	s := tableSchema(t, opts, pk, append(shape[:len(shape):len(shape)], "v STRING", "w INT", "s0 INT", "s1 BIGINT", "x DOUBLE")...)
	b := newBuilt(t, s)
	keyCols, _ := columnsOf(s, pk)
	var kts []types.Type
	for _, c := range keyCols {
		kts = append(kts, s.Fields[c].Type)
	}
	codec := mergetree.NewKeyCodec(kts)
	key := func(v []types.Datum) string {
		var k []types.Datum
		for _, c := range keyCols {
			k = append(k, v[c])
		}
		return string(codec.Append(nil, k))
	}
	span := []int64{5, 60, 3000}[r.IntN(3)]
	versions := map[string][]row{}
	runs := 1 + r.IntN(6)
	overlap := r.IntN(4) == 0 // concurrent writers: sequence numbers interleave
	level := int32(runs - 1)
	for run := range runs {
		n := 1 + r.IntN(400)
		rows := map[string]row{}
		for i := range n {
			v := make([]types.Datum, len(s.Fields))
			for c, f := range s.Fields {
				if r.IntN(8) == 0 && !f.Type.NotNull {
					continue
				}
				v[c] = randomDatum(r, f.Type, span)
				if f.Name == "s0" || f.Name == "s1" {
					v[c] = r.Int64N(3)
				}
			}
			x := row{seq: int64(run*1000 + i), vals: v}
			if overlap {
				x.seq = int64(i*10 + run)
			}
			if r.IntN(5) == 0 && run > 0 && !first {
				x.kind = []int8{1, 2, 3}[r.IntN(3)]
			}
			rows[key(v)] = x // a file holds a key once
		}
		var list []row
		for _, x := range rows {
			list = append(list, x)
		}
		sort.Slice(list, func(i, j int) bool { return key(list[i].vals) < key(list[j].vals) })
		// A run above level 0 may be several files.
		var files [][]row
		for lv := level; len(list) > 0; {
			k := len(list)
			if lv > 0 {
				k = 1 + r.IntN(len(list))
			}
			files, list = append(files, list[:k]), list[k:]
		}
		for _, fr := range files {
			f := b.addFile(level, 0, slices.Clone(fr), 1+r.IntN(50))
			dead := map[int64]bool{}
			if r.IntN(4) == 0 {
				for range r.IntN(len(fr) + 1) {
					dead[r.Int64N(int64(len(fr)))] = true
				}
				var ps []int64
				for p := range dead {
					ps = append(ps, p)
				}
				if len(ps) > 0 {
					b.deletePos(f, ps...)
				}
			}
			for i, x := range fr {
				if !dead[int64(i)] {
					versions[key(x.vals)] = append(versions[key(x.vals)], x)
				}
			}
		}
		level = max(0, level-int32(1+r.IntN(2)))
		if first {
			level = 0 // compaction of first-row tables leaves no key twice
		}
	}
	less := func(x, y row) bool {
		if useSeq {
			for _, name := range []string{"s0", "s1"} {
				c := s.Fields.Index(name)
				a, b := x.vals[c], y.vals[c]
				switch {
				case a == nil && b == nil || a == b:
					continue
				case a == nil || b == nil:
					return a == nil
				}
				if desc {
					return a.(int64) > b.(int64)
				}
				return a.(int64) < b.(int64)
			}
		}
		return x.seq < y.seq
	}
	var live []row
	for _, vs := range versions {
		sort.SliceStable(vs, func(i, j int) bool { return less(vs[i], vs[j]) })
		if ignoreDelete {
			vs = slices.DeleteFunc(vs, func(x row) bool { return x.kind&1 != 0 })
		}
		if len(vs) == 0 {
			continue
		}
		x := vs[len(vs)-1]
		if first {
			x = vs[0]
		}
		if x.kind&1 == 0 {
			live = append(live, x)
		}
	}
	o := EnvOptions{WindowRows: []int{1, 2, 7, 100, 0}[r.IntN(5)], MergeRows: []int64{1, 20, 500, 0}[r.IntN(4)], RangeRows: []int64{1, 30, 0}[r.IntN(3)], SplitBytes: []int64{1, 5000, 0}[r.IntN(3)]}
	tb := b.commit(o)
	scan := Scan{Limit: -1}
	ro := ReadOptions{BatchRows: []int{1, 3, 0}[r.IntN(3)]}
	var leaf *predicate.Leaf
	switch r.IntN(4) {
	case 0: // a value
		c := s.Fields.Index("w")
		leaf = &predicate.Leaf{Op: predicate.Op(r.IntN(6)), Col: c, FieldID: int32(c), Type: s.Fields[c].Type, Args: []types.Datum{randomDatum(r, s.Fields[c].Type, span)}}
	case 1: // a key column
		c := keyCols[r.IntN(len(keyCols))]
		leaf = &predicate.Leaf{Op: []predicate.Op{predicate.Eq, predicate.Lt, predicate.GtEq}[r.IntN(3)], Col: c, FieldID: int32(c), Type: s.Fields[c].Type, Args: []types.Datum{randomDatum(r, s.Fields[c].Type, span)}}
	}
	if leaf != nil {
		scan.Filter = leaf
		ro.Filter = &valueFilter{pos: leaf.Col, t: leaf.Type, leaf: leaf}
		live = slices.DeleteFunc(live, func(x row) bool {
			d := x.vals[leaf.Col]
			if d == nil {
				return true
			}
			m, _ := predicate.Matches(leaf, d)
			return !m
		})
	}
	var want []string
	for _, x := range live {
		var ps []string
		for c, f := range s.Fields {
			ps = append(ps, text(f.Type, x.vals[c]))
		}
		want = append(want, strings.Join(ps, " | "))
	}
	sort.Strings(want)
	got, _, err := readAll(context.Background(), tb, scan, ro)
	what := fmt.Sprintf("round %d: key %v as %v, options %v, %d runs, env %+v, batch %d, filter %v", round, shape, pk, opts, runs, o, ro.BatchRows, leaf)
	if err != nil {
		t.Errorf("%s: %v", what, err)
		return
	}
	if !slices.Equal(got, want) {
		t.Errorf("%s: %d rows, want %d%s", what, len(got), len(want), diff(got, want))
	}
}

// TestPrimaryKeyOrder: keys are ordered as the key is declared (user report A04).
func TestPrimaryKeyOrder(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "1"}, []string{"ord", "customer"}, "customer INT", "ord INT", "amt INT")
	b := newBuilt(t, s)
	v := func(c, o, a int64) []types.Datum { return []types.Datum{c, o, a} }
	b.addFile(0, 0, []row{{0, 0, v(1, 40, 1)}, {1, 0, v(2, 30, 1)}, {2, 0, v(3, 20, 1)}, {3, 0, v(4, 10, 1)}}, 10)
	b.addFile(0, 0, []row{{4, 0, v(2, 30, 99)}}, 10)
	got, _, err := readAll(context.Background(), b.commit(EnvOptions{}), Scan{Limit: -1}, ReadOptions{})
	if want := []string{"1 | 40 | 1", "2 | 30 | 99", "3 | 20 | 1", "4 | 10 | 1"}; err != nil || !slices.Equal(got, want) {
		t.Errorf("%v, %v", got, err)
	}
}

// TestValueFilterKeepsNewVersion: user report A03 for deduplicate.
func TestValueFilterKeepsNewVersion(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k INT", "v STRING")
	b := newBuilt(t, s)
	b.addFile(1, 0, []row{{0, 0, []types.Datum{int64(1), "a"}}}, 10)
	b.addFile(0, 0, []row{{1, 0, []types.Datum{int64(1), "b"}}}, 10)
	tb := b.commit(EnvOptions{})
	for v, n := range map[string]int{"a": 0, "b": 1, "c": 0} {
		leaf := &predicate.Leaf{Op: predicate.Eq, Col: 1, FieldID: 1, Type: s.Fields[1].Type, Args: []types.Datum{v}}
		got, _, err := readAll(context.Background(), tb, Scan{Filter: leaf, Limit: -1}, ReadOptions{Filter: &valueFilter{pos: 1, t: leaf.Type, leaf: leaf}})
		if err != nil || len(got) != n {
			t.Errorf("v = %s: %v, %v", v, got, err)
		}
	}
}

func benchTable(b *testing.B, keys []string, runs, rowsPerRun int, disjoint bool) (*FileStore, int) {
	s := tableSchema(b, map[string]string{"bucket": "1"}, []string{"k"}, append(keys, "a BIGINT", "b INT", "c DOUBLE", "d STRING")...)
	if len(keys) > 1 {
		s.PrimaryKeys = []string{"k", "l"}
		s.Fields[1].Type.NotNull = true
	}
	bt := newBuilt(b, s)
	r := rand.New(rand.NewPCG(1, 1))
	seq := int64(0)
	for run := range runs {
		rows := make([]row, 0, rowsPerRun)
		seen := map[int64]bool{}
		for len(rows) < rowsPerRun {
			k := r.Int64N(int64(2 * rowsPerRun))
			if disjoint {
				k = int64(run*rowsPerRun + len(rows))
			}
			if seen[k] {
				continue
			}
			seen[k] = true
			v := []types.Datum{k}
			if len(keys) > 1 {
				v = append(v, k%7)
			}
			rows = append(rows, row{seq, 0, append(v, k*3, k%1000, float64(k)/3, fmt.Sprintf("value-%d", k%5000))})
			seq++
		}
		bt.addFile(int32(runs-1-run), 0, rows, 20000)
	}
	return bt.commit(EnvOptions{}), runs * rowsPerRun
}

// BenchmarkMerge merges five runs of a table with four value columns.
func BenchmarkMerge(b *testing.B) {
	for _, c := range []struct {
		name string
		keys []string
	}{{"int", []string{"k BIGINT"}}, {"bigint-int", []string{"k BIGINT", "l INT"}}} {
		tb, rows := benchTable(b, c.keys, 5, 200_000, false)
		for _, cols := range [][]int{nil, {1}} {
			b.Run(fmt.Sprintf("%s/columns=%d", c.name, len(cols)), func(b *testing.B) {
				benchRead(b, tb, Scan{Columns: cols, Limit: -1}, rows)
			})
		}
	}
}

// BenchmarkRaw reads one file.
func BenchmarkRaw(b *testing.B) {
	tb, rows := benchTable(b, []string{"k BIGINT"}, 1, 1_000_000, true)
	benchRead(b, tb, Scan{Limit: -1}, rows)
}

func benchRead(b *testing.B, tb Table, s Scan, rows int) {
	ctx := context.Background()
	b.ReportAllocs()
	for b.Loop() {
		plan, err := tb.Plan(ctx, s)
		if err != nil {
			b.Fatal(err)
		}
		for _, sp := range plan.Splits {
			rd, err := tb.Read(ctx, s, sp, ReadOptions{})
			if err != nil {
				b.Fatal(err)
			}
			for {
				x, err := rd.Next(ctx)
				if err != nil {
					b.Fatal(err)
				}
				if x == nil {
					break
				}
			}
			_ = rd.Close()
		}
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(rows), "ns/row")
}

// BenchmarkMergeOnRead reads a compacted run with two small newer ones over it:
// the usual state of a table between compactions.
func BenchmarkMergeOnRead(b *testing.B) {
	s := tableSchema(b, map[string]string{"bucket": "1"}, []string{"k", "l"}, "k BIGINT", "l INT", "a DECIMAL(15, 2)", "b INT", "c DATE", "d STRING", "e STRING")
	bt := newBuilt(b, s)
	r := rand.New(rand.NewPCG(1, 1))
	seq := int64(0)
	make1 := func(k, l int64) row {
		seq++
		d := decimalOf(b, fmt.Sprintf("%d.%02d", k%100000, l))
		return row{seq, 0, []types.Datum{k, l, d, k % 50, 8000 + k%2500, []string{"A", "N", "R"}[k%3], fmt.Sprintf("comment of row %d-%d", k, l)}}
	}
	const base = 400_000
	var rows []row
	for i := range int64(base) {
		rows = append(rows, make1(i/4, i%4))
	}
	bt.addFile(5, 0, rows, 20000)
	total := base
	for range 2 {
		var up []row
		seen := map[int64]bool{}
		for len(up) < base/20 {
			i := r.Int64N(base)
			if !seen[i] {
				seen[i] = true
				up = append(up, make1(i/4, i%4))
			}
		}
		total += len(up)
		bt.addFile(0, 0, up, 20000)
	}
	tb := bt.commit(EnvOptions{})
	for _, cols := range [][]int{{2, 3}, {2, 3, 4, 5}, nil} {
		b.Run(fmt.Sprintf("columns=%d", len(cols)), func(b *testing.B) { benchRead(b, tb, Scan{Columns: cols, Limit: -1}, total) })
	}
}

// TestParallelReaders reads all splits at once, several times over, through a
// cache of open files that is too small: the rows are those of one reader.
func TestParallelReaders(t *testing.T) {
	o := EnvOptions{OpenFiles: 2, MergeRows: 500, RangeRows: 300, SplitBytes: 1 << 14, WindowRows: 64}
	t.Run("remembered", func(t *testing.T) { parallelReaders(t, o) })
	o.VerdictBytes = -1
	t.Run("merging", func(t *testing.T) { parallelReaders(t, o) })
}

func parallelReaders(t *testing.T, o EnvOptions) {
	ctx := context.Background()
	r := rand.New(rand.NewPCG(3, 3))
	s := tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k INT", "v STRING")
	b := newBuilt(t, s)
	for run := range 4 {
		rows := map[int64]row{}
		for i := range 3000 {
			k := r.Int64N(5000)
			rows[k] = row{int64(run*10000 + i), 0, []types.Datum{k, fmt.Sprint(run)}}
		}
		var list []row
		for _, x := range rows {
			list = append(list, x)
		}
		b.addFile(int32(3-run), 0, list, 100)
	}
	tb := b.commit(o)
	want, _, err := readAll(ctx, tb, Scan{Limit: -1}, ReadOptions{})
	if err != nil || len(want) == 0 {
		t.Fatal(err)
	}
	plan, err := tb.Plan(ctx, Scan{Limit: -1})
	if err != nil || len(plan.Splits) < 4 || (plan.Report.Remembered > 0) != (o.VerdictBytes == 0) {
		t.Fatalf("%d splits, %v", len(plan.Splits), err)
	}
	for range 5 {
		got := make(chan []string, len(plan.Splits))
		errs := make(chan error, len(plan.Splits))
		for _, sp := range plan.Splits {
			go func() {
				rows, err := readSplit(ctx, tb, sp)
				got <- rows
				errs <- err
			}()
		}
		var all []string
		for range plan.Splits {
			all = append(all, <-got...)
			if err := <-errs; err != nil {
				t.Fatal(err)
			}
		}
		sort.Strings(all)
		if !slices.Equal(all, want) {
			t.Fatalf("%d rows, want %d%s", len(all), len(want), diff(all, want))
		}
	}
	cancelled, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := readSplit(cancelled, tb, plan.Splits[0]); err == nil {
		t.Error("a cancelled reader went on")
	}
}

func readSplit(ctx context.Context, tb Table, sp Split) ([]string, error) {
	rd, err := tb.Read(ctx, Scan{Limit: -1}, sp, ReadOptions{})
	if err != nil {
		return nil, err
	}
	defer rd.Close() //nolint:errcheck // a reader
	var out []string
	for {
		b, err := rd.Next(ctx)
		if b == nil || err != nil {
			return out, err
		}
		for i := range b.N {
			var ps []string
			for c := range b.Cols {
				ps = append(ps, text(b.Schema[c].Type, vec.DatumAt(b.Cols[c], b.Schema[c].Type, i)))
			}
			out = append(out, strings.Join(ps, " | "))
		}
	}
}
