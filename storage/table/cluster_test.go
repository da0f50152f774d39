package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/cluster"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

func sortBy(s cluster.Strategy, cols ...string) CompactOptions {
	return CompactOptions{Full: true, Sort: &SortOptions{Strategy: s, Columns: cols}}
}

// TestClusterAgainstModel mixes inserts, deletes, and sort or incremental clustering
// of append tables.
func TestClusterAgainstModel(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 12))
	sorted := 0
	for round := range 12 {
		opts := map[string]string{}
		maybe := func(k string, vs ...string) {
			if i := r.IntN(len(vs) + 1); i < len(vs) {
				opts[k] = vs[i]
			}
		}
		itself := r.IntN(2) == 0
		if itself {
			opts["clustering.incremental"], opts["clustering.columns"] = "true", []string{"v", "v,k", "p,k,v"}[r.IntN(3)]
			maybe("clustering.strategy", "order", "zorder")
			maybe("clustering.incremental.mode", "local-sort", "global-sort")
			maybe("num-sorted-run.compaction-trigger", "2", "3")
			maybe("num-levels", "3")
			if r.IntN(4) == 0 {
				opts["bucket"], opts["bucket-key"], opts["bucket-append-ordered"] = "2", "k", "false"
			}
		}
		if opts["bucket"] == "" {
			maybe("deletion-vectors.enabled", "true", "true")
		}
		maybe("target-file-size", "1 kb", "8 kb")
		s := tableSchema(t, opts, nil, "k BIGINT", "v STRING", "p INT")
		if r.IntN(3) == 0 {
			s.PartitionKeys = []string{"p"}
		}
		c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{WindowRows: []int{0, 7, 100}[r.IntN(3)]})
		next := int64(0)
		for step := range 25 {
			var when string
			switch n := r.IntN(6); {
			case n < 3:
				c.append(appendRows(r, c, &next, 1+r.IntN(100)))
				when = "insert"
			case n == 3:
				m, part := r.Int64N(7)+1, r.Int64N(max(next, 1))
				if err := c.deleteWhere(func(k int64) bool { return k%7 < m && k >= part && k < part+next/3 }); err != nil {
					t.Fatalf("round %d step %d %v: delete: %v", round, step, opts, err)
				}
				when = "delete"
			default:
				before := c.live()
				o := CompactOptions{Full: r.IntN(2) == 0}
				var due map[commit.BucketID]bool
				if itself && !o.Full {
					due = c.due(before)
				}
				if !itself && r.IntN(4) > 0 {
					o = sortBy(cluster.Strategy(1+r.IntN(3)), "k", "v")
				}
				if len(before) > 0 && r.IntN(4) == 0 {
					o.Partitions = [][]byte{before[0].Partition}
				}
				rep := c.compact(o)
				when = fmt.Sprintf("compact %+v: %+v", o, *rep)
				c.checkReport(when, rep, before)
				if rep.SnapshotID > 0 {
					sorted++
				}
				if o.Sort != nil && len(before) > 0 && rep.SnapshotID == 0 {
					t.Errorf("%s: nothing was sorted", when)
				}
				if due != nil && o.Partitions == nil && len(due) != rep.Buckets {
					t.Errorf("%s: %d buckets were due", when, len(due))
				}
				if itself {
					c.clusteredLevels(when, o.Full && o.Partitions == nil)
				}
			}
			c.check(fmt.Sprintf("round %d step %d %v: %s", round, step, opts, when))
			c.vectorsFit(when)
		}
		c.noStray()
		same(t, c.io, c.s)
		if t.Failed() {
			t.Fatalf("round %d of seed %d: %v", round, seed, opts)
		}
	}
	if sorted == 0 {
		t.Error("nothing was ever sorted")
	}
}

// due are the buckets that need a compaction.
func (c *compactTable) due(live []manifest.Entry) map[commit.BucketID]bool {
	c.t.Helper()
	out := map[commit.BucketID]bool{}
	for _, e := range live {
		n, err := c.s.NeedsCompaction(context.Background(), snapshot.Ref{}, e.Partition, e.Bucket)
		if err != nil {
			c.t.Fatal(err)
		}
		if n.Due {
			out[commit.BucketID{Partition: string(e.Partition), Bucket: e.Bucket}] = true
		}
	}
	return out
}

// clusteredLevels makes sure that outputs are above level 0 and, after a full
// clustering, nothing else is left.
func (c *compactTable) clusteredLevels(when string, full bool) {
	c.t.Helper()
	for _, e := range c.live() {
		if e.File.Source == 1 && e.File.Level == 0 || full && e.File.Level == 0 {
			c.t.Errorf("%s: a file of source %d is in level %d", when, e.File.Source, e.File.Level)
		}
	}
}

// randomPoints appends n rows of random coordinates in commits of their own.
func (c *compactTable) randomPoints(r *rand.Rand, n, commits int, col func(r *rand.Rand, f types.Field) types.Datum) {
	c.t.Helper()
	ctx := context.Background()
	for range commits {
		at, err := c.s.Resolve(ctx, snapshot.Ref{})
		if err != nil {
			c.t.Fatal(err)
		}
		w, err := c.s.Write(ctx, WriteOptions{At: at})
		if err != nil {
			c.t.Fatal(err)
		}
		for left := n / commits; left > 0; left -= 8192 {
			k := min(left, 8192)
			b := &vec.Batch{Schema: c.sch.Fields, N: k}
			for _, f := range c.sch.Fields {
				vals := make([]types.Datum, k)
				for i := range vals {
					vals[i] = col(r, f)
				}
				b.Cols = append(b.Cols, vec.FromDatums(f.Type, vals))
			}
			if err := w.Write(ctx, b, nil); err != nil {
				c.t.Fatal(err)
			}
		}
		ch, err := w.Prepare(ctx)
		if err != nil {
			c.t.Fatal(err)
		}
		if _, err := c.s.Commit(ctx, ch); err != nil {
			c.t.Fatal(err)
		}
	}
}

// touched returns the share of files that are read for a box.
func (c *compactTable) touched(box predicate.Node) (files, read int64) {
	c.t.Helper()
	plan, err := c.s.Plan(context.Background(), Scan{Limit: -1, Filter: box})
	if err != nil {
		c.t.Fatal(err)
	}
	return plan.Report.Files, plan.Report.FilesRead
}

// TestClusterLocality asks for boxes of 1 % of the area of a million points, in
// columns of like and of unlike ranges and distributions: on a curve they lie in few files,
// whichever column is narrowed.
func TestClusterLocality(t *testing.T) {
	const n = 1 << 20
	for _, k := range []struct {
		name, types string
		at          func(share float64) [2]types.Datum // the values at a share of the points
		col         func(r *rand.Rand, f types.Field) types.Datum
	}{
		{"alike", "BIGINT, BIGINT", func(s float64) [2]types.Datum { return [2]types.Datum{int64(s * 1e6), int64(s * 1e6)} },
			func(r *rand.Rand, _ types.Field) types.Datum { return r.Int64N(1e6) }},
		{"unlike", "INT, BIGINT", func(s float64) [2]types.Datum { return [2]types.Datum{int64(1000 + s*5000), int64(s * s * s * 1e15)} },
			func(r *rand.Rand, f types.Field) types.Datum {
				s := r.Float64()
				if f.Name == "x" {
					return int64(1000 + s*5000)
				}
				return int64(s * s * s * 1e15)
			}},
	} {
		t.Run(k.name, func(t *testing.T) {
			r := rand.New(rand.NewPCG(21, 22))
			x, y, _ := strings.Cut(k.types, ", ")
			c := newCompactTable(t, fileio.NewMem(), tableSchema(t, map[string]string{"target-file-size": "50 kb"}, nil, "x "+x, "y "+y), EnvOptions{})
			c.randomPoints(r, n, 4, k.col)
			sum := c.checksum()
			shares := map[string]float64{}
			for _, s := range []cluster.Strategy{cluster.None, cluster.Order, cluster.ZOrder, cluster.Hilbert} {
				if s != cluster.None {
					rep := c.compact(sortBy(s, "x", "y"))
					if rep.RowsAfter != n || rep.RowsBefore != n {
						t.Fatalf("%v: %+v", s, *rep)
					}
					if got := c.checksum(); got != sum {
						t.Fatalf("%v: the rows differ", s)
					}
				}
				all, read, worst := int64(0), int64(0), 0.0
				for range 50 {
					a, b := r.Float64()*0.9, r.Float64()*0.9
					lo, hi := [2]types.Datum{k.at(a)[0], k.at(b)[1]}, [2]types.Datum{k.at(a + 0.1)[0], k.at(b + 0.1)[1]}
					var box []predicate.Node
					for i := range 2 {
						box = append(box, leafOn(c.sch.Fields, i, predicate.GtEq, lo[i]), leafOn(c.sch.Fields, i, predicate.LtEq, hi[i]))
					}
					f, rd := c.touched(predicate.Conj(box...))
					if f < 100 {
						t.Fatalf("%v: only %d files", s, f)
					}
					all, read = all+f, read+rd
					worst = max(worst, float64(rd)/float64(f))
				}
				shares[s.String()] = float64(read) / float64(all)
				t.Logf("%v: a box of 1 %% touches %.1f %% of %d files, at worst %.1f %%", s, 100*shares[s.String()], all/50, 100*worst)
			}
			if shares["zorder"] > 0.10 || shares["hilbert"] > 0.10 {
				t.Error("the curves do not keep what is near together")
			}
			if shares["none"] < 0.9 || shares["order"] < 0.09 {
				t.Error("the other layouts should be worse")
			}
		})
	}
}

// checksum adds the hashes of all rows.
func (c *compactTable) checksum() uint64 {
	c.t.Helper()
	ctx := context.Background()
	sc := Scan{Limit: -1}
	plan, err := c.s.Plan(ctx, sc)
	if err != nil {
		c.t.Fatal(err)
	}
	sum := uint64(0)
	for _, sp := range plan.Splits {
		rd, err := c.s.Read(ctx, sc, sp, ReadOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		for {
			b, err := rd.Next(ctx)
			if err != nil {
				c.t.Fatal(err)
			}
			if b == nil {
				break
			}
			h := make([]uint64, b.N)
			for i, a := range b.Cols {
				vec.HashColumn(b.Schema[i].Type, a, h, nil)
			}
			for _, x := range h {
				sum += vec.Mix(x, 0x9e3779b97f4a7c15)
			}
		}
		_ = rd.Close()
	}
	return sum
}

// TestClusterDisjoint makes sure that the files of a sorted table follow each other.
func TestClusterDisjoint(t *testing.T) {
	r := rand.New(rand.NewPCG(23, 24))
	c := newCompactTable(t, fileio.NewMem(), tableSchema(t, map[string]string{"target-file-size": "20 kb", "write-buffer-size": "1 mb"}, nil, "x BIGINT", "s STRING"), EnvOptions{})
	c.randomPoints(r, 200_000, 3, func(r *rand.Rand, f types.Field) types.Datum {
		if f.Name == "x" {
			if r.IntN(50) == 0 {
				return nil
			}
			return r.Int64N(1e9)
		}
		return fmt.Sprint("s", r.IntN(100))
	})
	sum := c.checksum()
	c.compact(sortBy(cluster.Order, "x"))
	if c.checksum() != sum {
		t.Error("the rows differ")
	}
	type span struct{ lo, hi int64 }
	var spans []span
	for _, e := range c.live() {
		sc := Scan{Columns: []int{0}, Limit: -1}
		lo, hi := int64(1<<62), int64(-1)
		p, err := c.s.Plan(context.Background(), sc)
		if err != nil {
			t.Fatal(err)
		}
		for _, sp := range p.Splits {
			for _, f := range sp.Files {
				if f.Meta.Name != e.File.Name {
					continue
				}
				sp := sp
				sp.Files, sp.Range = []File{f}, nil
				rd, err := c.s.Read(context.Background(), sc, sp, ReadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				for {
					b, err := rd.Next(context.Background())
					if err != nil {
						t.Fatal(err)
					}
					if b == nil {
						break
					}
					for i := range b.N {
						if v, ok := vec.DatumAt(b.Cols[0], types.Of(types.Int8), i).(int64); ok {
							if v < hi {
								t.Fatalf("%s: %d after %d", e.File.Name, v, hi)
							}
							lo, hi = min(lo, v), max(hi, v)
						}
					}
				}
				_ = rd.Close()
			}
		}
		spans = append(spans, span{lo, hi})
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo - b.lo) })
	for i := 1; i < len(spans); i++ {
		if spans[i].lo < spans[i-1].hi {
			t.Errorf("files overlap: %v, %v", spans[i-1], spans[i])
		}
	}
	if len(spans) < 10 {
		t.Errorf("only %d files", len(spans))
	}
}

// TestClusterRefuses names what cannot be sorted.
func TestClusterRefuses(t *testing.T) {
	cols := []string{"k BIGINT", "v STRING", "p INT", "a ARRAY<INT>"}
	for _, k := range []struct {
		opts   map[string]string
		pk     []string
		sort   *SortOptions
		want   string
		unsupp bool
		col    string
	}{
		{pk: []string{"k"}, sort: &SortOptions{cluster.ZOrder, []string{"v"}}, want: "primary key", unsupp: true},
		{opts: map[string]string{"bucket": "2", "bucket-key": "k"}, sort: &SortOptions{cluster.Order, []string{"v"}}, want: "bucket = -1", unsupp: true},
		{sort: &SortOptions{cluster.Order, []string{"v", "zz"}}, want: "does not exist", col: "zz"},
		{sort: &SortOptions{cluster.Order, []string{"p"}}, want: "partition column"},
		{sort: &SortOptions{cluster.Hilbert, []string{"k"}}, want: "two columns"},
		{sort: &SortOptions{cluster.Hilbert, []string{"k", "k"}}, want: "two columns"},
		{sort: &SortOptions{cluster.Order, nil}, want: "no columns"},
		{sort: &SortOptions{cluster.Order, []string{"k", "a"}}, want: "column \"a\"", unsupp: true},
		{opts: map[string]string{"clustering.incremental": "true", "clustering.columns": "k"}, sort: &SortOptions{cluster.Order, []string{"k"}}, want: "incremental clustering"},
		{opts: map[string]string{"clustering.incremental": "true"}, want: "clustering.columns"},
		{opts: map[string]string{"clustering.incremental": "true", "clustering.columns": "zz"}, want: "does not exist", col: "zz"},
		{opts: map[string]string{"clustering.incremental": "true", "clustering.columns": "k", "clustering.strategy": "peano"}, want: "peano"},
		{opts: map[string]string{"zorder.var-length-contribution": "0"}, sort: &SortOptions{cluster.ZOrder, []string{"v"}}, want: "var-length"},
	} {
		s := tableSchema(t, k.opts, k.pk, cols...)
		if k.pk == nil {
			s.PartitionKeys = []string{"p"}
		}
		c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
		_, err := c.s.Compact(context.Background(), CompactOptions{Full: true, Sort: k.sort})
		var e *ClusterError
		if !errors.As(err, &e) || !strings.Contains(e.Error(), k.want) || e.Unsupported != k.unsupp || e.Column != k.col {
			t.Errorf("%v %v %+v: %v", k.opts, k.pk, k.sort, err)
		}
	}
}

// TestClusterBesideWriters lets writers append, rewrite and delete while their table
// is sorted: nothing is lost, and what lost a race is told.
func TestClusterBesideWriters(t *testing.T) {
	for _, opts := range []map[string]string{
		{"deletion-vectors.enabled": "true"},
		{"clustering.incremental": "true", "clustering.columns": "v,k", "num-sorted-run.compaction-trigger": "2"},
	} {
		opts["commit.max-retries"], opts["target-file-size"] = "1000", "2 kb"
		s := tableSchema(t, opts, nil, "k BIGINT", "v STRING")
		c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
		r := rand.New(rand.NewPCG(random.Seed(t), 1))
		next := int64(0)
		c.append(appendRows(r, c, &next, 500))
		var sorters sync.WaitGroup
		stop := make(chan struct{})
		published, lost := 0, 0
		sorters.Add(1)
		go func() {
			defer sorters.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				o := CompactOptions{Full: true}
				if opts["clustering.incremental"] == "" {
					o = sortBy(cluster.ZOrder, "v", "k")
				}
				rep, err := c.s.Compact(context.Background(), o)
				if err != nil {
					t.Errorf("sorting: %v", err)
					return
				}
				lost += rep.LostRaces
				if rep.SnapshotID > 0 {
					published++
				}
			}
		}()
		for i := range 60 {
			if i%4 == 3 {
				m := r.Int64N(11)
				err := c.deleteWhere(func(k int64) bool { return k%11 == m })
				var conflict *commit.ConflictError
				if err != nil && !errors.As(err, &conflict) {
					t.Fatal(err)
				}
				continue
			}
			c.append(appendRows(r, c, &next, 1+r.IntN(30)))
		}
		close(stop)
		sorters.Wait()
		c.check("in the end")
		c.vectorsFit("in the end")
		c.noStray()
		t.Logf("%v: %d sorted, %d lost", opts, published, lost)
	}
}

// TestClusterRaces lets others come first: rows that were appended stay, and where a
// row of a file was deleted the work is thrown away and told.
func TestClusterRaces(t *testing.T) {
	for _, dvs := range []string{"true", "false"} {
		c := newCompactTable(t, fileio.NewMem(), tableSchema(t, map[string]string{"deletion-vectors.enabled": dvs}, nil, "k BIGINT", "v STRING"), EnvOptions{})
		r := rand.New(rand.NewPCG(61, 62))
		next := int64(0)
		c.append(appendRows(r, c, &next, 200))
		c.append(appendRows(r, c, &next, 100))
		before := func(f func()) CompactOptions {
			o := sortBy(cluster.ZOrder, "k", "v")
			o.Publish = func(context.Context) (func(), error) { f(); return func() {}, nil }
			return o
		}
		rep := c.compact(before(func() { c.append(appendRows(r, c, &next, 50)) }))
		if rep.LostRaces != 0 || rep.SnapshotID != 4 || rep.RowsAfter != 300 || rep.FilesBefore != 2 || rep.FilesAfter != 1 {
			t.Errorf("beside an append: %+v", *rep)
		}
		c.check("beside an append")
		live := c.live()
		rep = c.compact(before(func() {
			if err := c.deleteWhere(func(k int64) bool { return k < 10 }); err != nil {
				t.Fatal(err)
			}
		}))
		if rep.LostRaces != 1 || rep.SnapshotID != 0 || rep.FilesAfter != 0 || len(live) != 2 {
			t.Errorf("beside a delete: %+v", *rep)
		}
		c.check("beside a delete")
		c.noStray()
		if rep = c.compact(sortBy(cluster.Order, "k")); rep.RowsAfter != 340 {
			t.Errorf("afterwards: %+v", *rep)
		}
		c.check("afterwards")
	}
}

// clusteredTable is a table with vectors and several files of random rows.
func clusteredTable(t *testing.T, io fileio.FileIO, opts map[string]string) *compactTable {
	o := map[string]string{"target-file-size": "1 kb", "commit.max-retries": "0", "deletion-vectors.enabled": "true"}
	for k, v := range opts {
		o[k] = v
	}
	c := newCompactTable(t, io, tableSchema(t, o, nil, "k BIGINT", "v STRING"), EnvOptions{})
	r := rand.New(rand.NewPCG(31, 32))
	next := int64(0)
	for range 3 {
		c.append(appendRows(r, c, &next, 60))
	}
	if err := c.deleteWhere(func(k int64) bool { return k%5 == 0 && k < 120 }); err != nil {
		t.Fatal(err)
	}
	return c
}

// clusterCrash are the ways of clustering that are cut short.
var clusterCrash = []struct {
	opts map[string]string
	o    CompactOptions
}{
	{nil, sortBy(cluster.Hilbert, "k", "v")},
	{map[string]string{"clustering.incremental": "true", "clustering.columns": "v", "num-sorted-run.compaction-trigger": "2"}, CompactOptions{Full: true}},
}

// TestClusterCutAtEveryCall makes each file system call of a clustering fail in
// turn: nothing is seen or left of it, or all of it is there.
func TestClusterCutAtEveryCall(t *testing.T) {
	ctx := context.Background()
	for _, k := range clusterCrash {
		for _, after := range []bool{false, true} {
			for nth := 1; ; nth++ {
				f := fileio.NewFault(fileio.NewMem())
				c := clusteredTable(t, f, k.opts)
				env := NewEnv(f, EnvOptions{})
				c.s = Open(env, workDir) // nothing is cached
				boom := errors.New("boom")
				start := f.Calls()
				f.Add(fileio.Rule{Nth: nth, Err: boom, After: after})
				_, err := c.s.Compact(ctx, k.o)
				calls := f.Calls() - start
				f.Clear()
				env.Close()
				when := fmt.Sprintf("%v: call %d of %d failed, after %v: %v", k.opts, nth, calls, after, err)
				c.check(when)
				if !after { // what a lost reply made is an orphan
					c.noStray()
				}
				env = NewEnv(f, EnvOptions{})
				c.s = Open(env, workDir)
				c.compact(k.o)
				c.check(when + ", and again")
				c.vectorsFit(when)
				env.Close()
				if t.Failed() || nth > calls {
					break
				}
			}
		}
	}
}

// TestClusterCrash stops the machine at every call of a clustering: what is left
// holds the old state or the new, with every file that it names.
func TestClusterCrash(t *testing.T) {
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(7, 0))
	for _, k := range clusterCrash {
		for _, after := range []bool{false, true} {
			for chance := range 2 { // 0: nothing unsynced survives
				crashes := 0
				for n := 1; ; n++ {
					disk := fileio.NewCrash()
					c := clusteredTable(t, disk, k.opts)
					before, err := c.s.Snapshots("").LatestID(ctx)
					if err != nil {
						t.Fatal(err)
					}
					env := NewEnv(disk, EnvOptions{})
					c.s = Open(env, workDir)
					disk.At(n, after)
					rep, err := c.s.Compact(ctx, k.o)
					env.Close()
					when := fmt.Sprintf("%v, after %v, call %d, chance %d: %v", k.opts, after, n, chance, err)
					if !disk.Crashed() {
						if err != nil || rep.SnapshotID == 0 {
							t.Fatalf("%s: %+v", when, rep)
						}
						break
					}
					crashes++
					var r *rand.Rand
					if chance > 0 {
						r = rnd
					}
					c.io = disk.Reopen(r)
					env = NewEnv(c.io, EnvOptions{})
					c.s = Open(env, workDir)
					var unknown *commit.UnknownOutcomeError
					latest, lerr := c.s.Snapshots("").LatestID(ctx)
					switch {
					case lerr != nil:
						t.Fatalf("%s: %v", when, lerr)
					case err == nil && rep.SnapshotID > 0 && latest == before:
						t.Fatalf("%s: it was acknowledged and is not there", when)
					case err != nil && latest > before && !errors.As(err, &unknown):
						t.Fatalf("%s: it failed and is there", when)
					}
					filesExist(t, c.io, when)
					c.check(when)
					c.compact(k.o)
					c.check(when + ", and again")
					filesExist(t, c.io, when+", and again")
					env.Close()
				}
				if crashes < 15 {
					t.Errorf("a clustering makes only %d calls", crashes)
				}
			}
		}
	}
}

// TestClusterMemory sorts more than the account has: through temporary files, which
// are gone afterwards.
func TestClusterMemory(t *testing.T) {
	r := rand.New(rand.NewPCG(41, 42))
	dir := t.TempDir()
	c := newCompactTable(t, fileio.NewMem(), tableSchema(t, nil, nil, "x BIGINT", "y DOUBLE", "s STRING"), EnvOptions{KeyDir: func() (string, error) { return dir, nil }})
	c.randomPoints(r, 399_999, 3, func(r *rand.Rand, f types.Field) types.Datum {
		switch f.Name {
		case "x":
			return r.Int64()
		case "y":
			return r.NormFloat64()
		}
		return fmt.Sprint("some text ", r.Int64())
	})
	sum := c.checksum()
	account := mem.NewRoot("limit", 32<<20)
	o := sortBy(cluster.ZOrder, "x", "y")
	o.Account = account
	done, half := int64(0), false
	o.Progress = func(now, total int64) {
		if now < done || total != 399_999 {
			t.Errorf("%d rows of %d are done after %d", now, total, done)
		}
		done, half = now, half || now > total/4 && now < total/2
	}
	rep := c.compact(o)
	if done != 399_999 || !half {
		t.Errorf("%d rows are told, half way %v", done, half)
	}
	if rep.RowsAfter != 399_999 || c.checksum() != sum {
		t.Errorf("the rows differ: %+v", *rep)
	}
	if account.Used() != 0 {
		t.Errorf("%d bytes are still charged", account.Used())
	}
	t.Logf("%d bytes at most", account.Peak())
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("temporary files are left: %v %v", left, err)
	}
}

// TestClusterSamples makes sure that every row is sampled of small tables, and that
// samples of big ones come from all files.
func TestClusterSamples(t *testing.T) {
	ctx := context.Background()
	c := newCompactTable(t, fileio.NewMem(), tableSchema(t, map[string]string{"target-file-size": "60 kb"}, nil, "x BIGINT", "y BIGINT"), EnvOptions{})
	n := int64(0)
	c.randomPoints(rand.New(rand.NewPCG(1, 1)), 200_000, 2, func(*rand.Rand, types.Field) types.Datum { n++; return n })
	k, err := c.s.newCompaction(ctx, sortBy(cluster.ZOrder, "x"))
	if err != nil {
		t.Fatal(err)
	}
	es := c.live()
	var files []*manifest.DataFile
	split := Split{Raw: true}
	for _, e := range es {
		files = append(files, e.File)
		split.Files = append(split.Files, File{Meta: e.File})
	}
	part, err := k.p.partitionOf(es[0].Partition)
	if err != nil {
		t.Fatal(err)
	}
	j := &job{part: part, dir: k.p.bucketDir(part, es[0].Bucket)}
	codec, err := k.cluster.codec()
	if err != nil {
		t.Fatal(err)
	}
	if err := k.sample(ctx, j, split, codec); err != nil {
		t.Fatal(err)
	}
	// All values differ and go up evenly: with samples from everywhere the keys of
	// quarters share the range of words evenly.
	var keys cluster.Keys
	vals := make([]int64, 5)
	for i := range vals {
		vals[i] = int64(i) * n / 4
	}
	codec.Append(&keys, []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int64, vals, nil)}, len(vals))
	for i := 1; i < 4; i++ {
		if b := keys.At(i); bytes.Compare(b, []byte{byte(64*i - 16)}) < 0 || bytes.Compare(b, []byte{byte(64*i + 16)}) > 0 {
			t.Errorf("quarter %d of %d files has the key %x", i, len(files), b)
		}
	}
}

// TestClusterHistory finds the partitions that have been idle for long and are not
// sorted as a whole.
func TestClusterHistory(t *testing.T) {
	s := tableSchema(t, map[string]string{"clustering.incremental": "true", "clustering.columns": "k", "clustering.history-partition.limit": "2"}, nil, "k BIGINT", "v STRING", "p INT")
	s.PartitionKeys = []string{"p"}
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	var parts [][]byte
	for p := range int64(4) {
		c.append([][]types.Datum{{p, "a", p}, {p + 10, "b", p}})
		for _, e := range c.live() {
			if !slices.ContainsFunc(parts, func(b []byte) bool { return bytes.Equal(b, e.Partition) }) {
				parts = append(parts, e.Partition)
			}
		}
	}
	find := func(idle string, chosen ...[]byte) [][]byte {
		o := CompactOptions{Partitions: chosen}
		if idle != "" {
			o.Options = map[string]string{"clustering.history-partition.idle-to-full-sort": idle}
		}
		got, err := c.s.historyPartitions(context.Background(), o, time.Now().Add(time.Hour))
		if err != nil {
			t.Fatal(err)
		}
		return got
	}
	if got := find("", parts[3]); got != nil {
		t.Errorf("without the option: %d partitions", len(got))
	}
	if got := find("1 d", parts[3]); got != nil {
		t.Errorf("nothing is a day old: %d partitions", len(got))
	}
	if got := find("1 min"); got != nil {
		t.Errorf("no partitions were chosen: %d", len(got))
	}
	if got := find("1 min", parts[0]); len(got) != 2 || !bytes.Equal(got[0], parts[1]) || !bytes.Equal(got[1], parts[2]) {
		t.Errorf("%d partitions", len(got))
	}
	c.compact(CompactOptions{Full: true, Partitions: [][]byte{parts[1]}})
	if got := find("1 min", parts[0]); len(got) != 2 || !bytes.Equal(got[0], parts[2]) {
		t.Errorf("a sorted partition is found again: %d", len(got))
	}
	c.check("in the end")
}
