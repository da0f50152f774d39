package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"slices"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// deleteWhere deletes rows of an append table that f chooses by their first
// column, and from the model.
func (c *compactTable) deleteWhere(f func(k int64) bool) error {
	ctx := context.Background()
	at, err := c.s.Resolve(ctx, snapshot.Ref{})
	if err != nil {
		return err
	}
	sc := Scan{At: at, Columns: []int{0, PseudoFile, PseudoPos}, Limit: -1}
	plan, err := c.s.Plan(ctx, sc)
	if err != nil {
		return err
	}
	w, err := c.s.Write(ctx, WriteOptions{At: at})
	if err != nil {
		return err
	}
	var gone []string
	var read []string
	for _, sp := range plan.Splits {
		rd, err := c.s.Read(ctx, sc, sp, ReadOptions{})
		if err != nil {
			return err
		}
		for {
			b, err := rd.Next(ctx)
			if err != nil {
				return err
			}
			if b == nil {
				break
			}
			for r := range b.N {
				k, _ := vec.DatumAt(b.Cols[0], b.Schema[0].Type, r).(int64)
				if !f(k) {
					continue
				}
				file := vec.DatumAt(b.Cols[1], b.Schema[1].Type, r).(string)
				pos := vec.DatumAt(b.Cols[2], b.Schema[2].Type, r).(int64)
				if err := w.Delete(ctx, file, []int64{pos}); err != nil {
					return err
				}
				gone = append(gone, fmt.Sprint(k))
				read = append(read, path.Base(file))
			}
		}
		if err := rd.Close(); err != nil {
			return err
		}
	}
	ch, err := w.Prepare(ctx)
	if err != nil {
		return err
	}
	slices.Sort(read)
	ch.Reads = &commit.ReadSet{Files: slices.Compact(read)}
	if _, err := c.s.Commit(ctx, ch); err != nil {
		return errors.Join(err, c.s.Discard(ctx, ch))
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, k := range gone {
		delete(c.rows, k)
	}
	return nil
}

// appendRows makes rows with new keys from *next on.
func appendRows(r *rand.Rand, c *compactTable, next *int64, n int) [][]types.Datum {
	var rows [][]types.Datum
	for range n {
		row := []types.Datum{*next, randomDatum(r, c.sch.Fields[1].Type, 1000)}
		if len(c.sch.Fields) > 2 {
			row = append(row, r.Int64N(2))
		}
		rows = append(rows, row)
		*next++
	}
	return rows
}

func (c *compactTable) append(rows [][]types.Datum) {
	c.t.Helper()
	if err := c.write(rows, nil); err != nil {
		c.t.Fatal(err)
	}
	c.model(rows)
}

// model notes rows by their first column.
func (c *compactTable) model(rows [][]types.Datum) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, row := range rows {
		_, all := c.text(row)
		c.rows[fmt.Sprint(row[0])] = all
	}
}

// TestCompactAppendAgainstModel mixes inserts, deletes (copy on write, and by
// deletion vectors) and compactions of append tables.
func TestCompactAppendAgainstModel(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 12))
	for round := range 12 {
		opts := map[string]string{}
		ordered := r.IntN(3) == 0
		if ordered {
			opts["bucket"], opts["bucket-key"] = "2", "k"
		}
		maybe := func(k string, vs ...string) {
			if i := r.IntN(len(vs) + 1); i < len(vs) {
				opts[k] = vs[i]
			}
		}
		maybe("deletion-vectors.enabled", "true", "true")
		maybe("deletion-vectors.bitmap64", "true")
		maybe("target-file-size", "1 kb", "8 kb")
		maybe("compaction.min.file-num", "2", "3")
		maybe("compaction.delete-ratio-threshold", "0", "0.9")
		maybe("compaction.force-rewrite-all-files", "true")
		maybe("source.split.open-file-cost", "1 b")
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
				rep := c.compact(o)
				when = fmt.Sprintf("compact %+v: %+v", o, *rep)
				c.checkReport(when, rep, before)
			}
			c.check(fmt.Sprintf("round %d step %d %v: %s", round, step, opts, when))
			c.vectorsFit(when)
			if ordered {
				c.inOrder(when)
			}
		}
		c.noStray()
		same(t, c.io, c.s)
		if t.Failed() {
			t.Fatalf("round %d of seed %d: %v", round, seed, opts)
		}
	}
}

// vectorsFit makes sure that every deletion vector is that of a live file, once.
func (c *compactTable) vectorsFit(when string) {
	c.t.Helper()
	ctx := context.Background()
	snap, err := c.s.Snapshots("").Latest(ctx)
	if err != nil || snap == nil || snap.IndexManifest == "" {
		return
	}
	live := map[string]bool{}
	for _, e := range c.live() {
		live[e.File.Name] = true
	}
	es, err := c.s.env.Manifests.Index(ctx, c.io, workDir+"/manifest/"+snap.IndexManifest)
	if err != nil {
		c.t.Fatal(err)
	}
	seen := map[string]bool{}
	for _, e := range es {
		if int64(len(e.DVs)) != e.Rows { // Java's may be empty
			c.t.Errorf("%s: index file %s has %d vectors, %d rows", when, e.Name, len(e.DVs), e.Rows)
		}
		for _, v := range e.DVs {
			if !live[v.DataFile] || seen[v.DataFile] {
				c.t.Errorf("%s: vector of %s, which is live %v, seen %v", when, v.DataFile, live[v.DataFile], seen[v.DataFile])
			}
			seen[v.DataFile] = true
		}
	}
}

// inOrder makes sure that the rows of each bucket come in the order in which they
// were written: keys ascend.
func (c *compactTable) inOrder(when string) {
	c.t.Helper()
	ctx := context.Background()
	sc := Scan{Columns: []int{0}, Limit: -1}
	plan, err := c.s.Plan(ctx, sc)
	if err != nil {
		c.t.Fatal(err)
	}
	last := map[string]int64{}
	for _, sp := range plan.Splits {
		rd, err := c.s.Read(ctx, sc, sp, ReadOptions{})
		if err != nil {
			c.t.Fatal(err)
		}
		at := fmt.Sprint(sp.Partition, sp.Bucket)
		for {
			b, err := rd.Next(ctx)
			if err != nil {
				c.t.Fatal(err)
			}
			if b == nil {
				break
			}
			for r := range b.N {
				k := vec.DatumAt(b.Cols[0], b.Schema[0].Type, r).(int64)
				if l, ok := last[at]; ok && k <= l {
					c.t.Fatalf("%s: %d after %d in bucket %s", when, k, l, at)
				}
				last[at] = k
			}
		}
		if err := rd.Close(); err != nil {
			c.t.Fatal(err)
		}
	}
}

// TestCompactAppendTrigger makes sure that small files are left alone until there
// are enough of them in one partition.
func TestCompactAppendTrigger(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, nil, nil, "k BIGINT", "v STRING", "p INT")
	s.PartitionKeys = []string{"p"}
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	for i := range int64(5) {
		c.append([][]types.Datum{{i, "a", int64(0)}})
		if i < 3 {
			c.append([][]types.Datum{{i + 100, "a", int64(1)}})
		}
		parts := map[string]manifest.Entry{}
		for _, e := range c.live() {
			parts[string(e.Partition)] = e
		}
		for _, e := range parts {
			need, err := c.s.NeedsCompaction(ctx, snapshot.Ref{}, e.Partition, 0)
			if err != nil || need.Due != (need.Files == 5) || need.Stop || need.Runs != 0 {
				t.Errorf("step %d: %+v, %v", i, need, err)
			}
		}
		if rep := c.compact(CompactOptions{}); (rep.SnapshotID != 0) != (i == 4) {
			t.Errorf("step %d: %+v", i, *rep)
		}
	}
	if n := len(c.live()); n != 4 {
		t.Errorf("%d files", n)
	}
	c.compact(CompactOptions{Full: true})
	if n := len(c.live()); n != 2 {
		t.Errorf("%d files", n)
	}
	c.check("full")
	for _, e := range c.live() {
		if e.TotalBuckets != -1 || e.Bucket != 0 || e.File.Level != 0 || e.File.Source != 1 || e.File.MaxSequence-e.File.MinSequence+1 != e.File.Rows {
			t.Errorf("%+v %+v", e, *e.File)
		}
	}
}

// TestCompactAppendBesideDeletes runs inserts, deletes by vector and compactions
// against each other: a file that gets a vector while it is rewritten wins.
func TestCompactAppendBesideDeletes(t *testing.T) {
	ctx := context.Background()
	seed := random.Seed(t)
	s := tableSchema(t, map[string]string{"deletion-vectors.enabled": "true", "commit.max-retries": "1000", "compaction.min.file-num": "2"}, nil, "k BIGINT", "v STRING")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	var others, writers sync.WaitGroup
	stop := make(chan struct{})
	next := int64(0)
	writers.Add(2)
	go func() {
		defer writers.Done()
		r := rand.New(rand.NewPCG(seed, 1))
		for range 40 {
			rows := appendRows(r, c, &next, 30)
			c.model(rows) // before they can be deleted
			if err := c.write(rows, nil); err != nil {
				t.Error(err)
				return
			}
		}
	}()
	conflicts := 0
	go func() {
		defer writers.Done()
		r := rand.New(rand.NewPCG(seed, 2))
		for range 40 {
			m := r.Int64N(50)
			for {
				err := c.deleteWhere(func(k int64) bool { return k%50 == m })
				var lost *commit.ConflictError
				var missing *fileio.MissingError
				if errors.As(err, &lost) || errors.As(err, &missing) {
					conflicts++
					continue // as a statement runs again
				}
				if err != nil {
					t.Error(err)
					return
				}
				break
			}
		}
	}()
	var lost, published int
	others.Add(1)
	go func() {
		defer others.Done()
		for full := false; ; full = !full {
			select {
			case <-stop:
				return
			default:
			}
			rep, err := c.s.Compact(ctx, CompactOptions{Full: full})
			if err != nil {
				t.Error(err)
				return
			}
			lost += rep.LostRaces
			if rep.SnapshotID > 0 {
				published++
			}
		}
	}()
	writers.Wait()
	close(stop)
	others.Wait()
	t.Logf("%d compactions were published, %d units lost a race, %d deletes ran again", published, lost, conflicts)
	c.check("in the end")
	c.vectorsFit("in the end")
	c.noStray()
	if published == 0 {
		t.Error("no compaction was published")
	}
}
