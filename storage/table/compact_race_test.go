package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// TestCompactBesideWriters lets writers of their own keys and compactions of both
// kinds run against each other: nothing is lost.
func TestCompactBesideWriters(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "2", "num-sorted-run.compaction-trigger": "2", "commit.max-retries": "1000"}, []string{"k"}, "k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	seed := random.Seed(t)
	var writers, compactors sync.WaitGroup
	stop := make(chan struct{})
	var published, lost int
	for i := range 2 {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		writers.Add(1)
		go func() {
			defer writers.Done()
			for range 40 {
				rows, kinds := randomChange(r, s, 1+r.IntN(50), 100)
				for j := range rows {
					rows[j][0] = rows[j][0].(int64)*2 + int64(i) // keys of this writer
				}
				if err := c.write(rows, kinds); err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				c.apply(rows, kinds)
			}
		}()
	}
	for _, full := range []bool{false, true} {
		compactors.Add(1)
		go func() {
			defer compactors.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				rep, err := c.s.Compact(ctx, CompactOptions{Full: full})
				if err != nil {
					t.Errorf("compaction, full %v: %v", full, err)
					return
				}
				c.mu.Lock()
				lost += rep.LostRaces
				if rep.SnapshotID > 0 {
					published++
				}
				c.mu.Unlock()
			}
		}()
	}
	writers.Wait()
	close(stop)
	compactors.Wait()
	t.Logf("%d compactions were published, %d units lost a race", published, lost)
	c.check("in the end")
	c.levelsAreRuns()
	c.noStray()
	c.compact(CompactOptions{Full: true})
	c.check("compacted in the end")
	if published == 0 {
		t.Error("no compaction was published")
	}
}

// TestCompactCutAtEveryCall makes each file system call of a compaction fail in
// turn. Before the snapshot is there nothing is seen of it and nothing is left of
// it; the next compaction works.
func TestCompactCutAtEveryCall(t *testing.T) {
	ctx := context.Background()
	for _, after := range []bool{false, true} {
		for nth := 1; ; nth++ {
			f := fileio.NewFault(fileio.NewMem())
			s := tableSchema(t, map[string]string{"bucket": "1", "commit.max-retries": "0"}, []string{"k"}, "k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)")
			c := newCompactTable(t, f, s, EnvOptions{})
			r := rand.New(rand.NewPCG(9, 9))
			for range 3 {
				rows, kinds := randomChange(r, s, 30, 40)
				c.mustWrite(rows, kinds)
			}
			boom := errors.New("boom")
			env := NewEnv(f, EnvOptions{})
			c.s = Open(env, workDir) // nothing is cached
			start := f.Calls()
			f.Add(fileio.Rule{Nth: nth, Err: boom, After: after})
			_, err := c.s.Compact(ctx, CompactOptions{Full: true})
			calls := f.Calls() - start
			f.Clear()
			env.Close()
			c.check(fmt.Sprintf("call %d of %d failed, after %v: %v", nth, calls, after, err))
			if !after { // what a lost reply made is an orphan
				c.noStray()
			}
			env = NewEnv(f, EnvOptions{})
			c.s = Open(env, workDir)
			c.compact(CompactOptions{Full: true})
			c.isFull(fmt.Sprintf("call %d of %d failed, after %v, and again", nth, calls, after))
			c.check("again")
			env.Close()
			if t.Failed() || nth > calls {
				break
			}
		}
	}
}

// TestCompactCancelled cancels in the middle of the rewriting: the table's
// directory is as it was.
func TestCompactCancelled(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "2", "target-file-size": "4 kb"}, []string{"k"}, "k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{WindowRows: 50})
	r := rand.New(rand.NewPCG(9, 9))
	for range 4 {
		rows, kinds := randomChange(r, s, 1000, 2000)
		c.mustWrite(rows, kinds)
	}
	before := filesBelow(t, c.io, workDir)
	for _, at := range []int{1, 5, 20} {
		ctx, cancel := context.WithCancelCause(context.Background())
		why := errors.New("enough")
		n := 0
		var mu sync.Mutex
		_, err := c.s.Compact(ctx, CompactOptions{Full: true, Progress: func(done, total int64) {
			mu.Lock()
			defer mu.Unlock()
			if n++; n == at {
				cancel(why)
			}
			if done > total {
				t.Errorf("%d of %d rows are done", done, total)
			}
		}})
		if !errors.Is(err, why) {
			t.Errorf("cancelled at %d: %v", at, err)
		}
		if now := filesBelow(t, c.io, workDir); !slices.Equal(before, now) {
			t.Errorf("cancelled at %d: %v were there, now %v", at, before, now)
		}
		cancel(nil)
	}
	// A throttle that fails and memory that is refused are the same.
	why := errors.New("no")
	if _, err := c.s.Compact(context.Background(), CompactOptions{Full: true, Throttle: func(context.Context, int64) error { return why }}); !errors.Is(err, why) {
		t.Error(err)
	}
	if _, err := c.s.Compact(context.Background(), CompactOptions{Full: true, Account: mem.NewRoot("test", 100)}); !errors.Is(err, mem.ErrLimit) {
		t.Error(err)
	}
	if now := filesBelow(t, c.io, workDir); !slices.Equal(before, now) {
		t.Errorf("%v were there, now %v", before, now)
	}
	root := mem.NewRoot("test", 1<<30)
	if _, err := c.s.Compact(context.Background(), CompactOptions{Full: true, Account: root}); err != nil || root.Used() != 0 || root.Peak() == 0 {
		t.Errorf("%v, %d bytes are left, %d at most", err, root.Used(), root.Peak())
	}
	c.check("in the end")
}

// everything names all buckets, as if they were claimed.
func everything(tb testing.TB, s *FileStore) map[commit.BucketID]bool {
	ids, err := s.bucketsNamed(context.Background(), CompactOptions{})
	if err != nil {
		tb.Fatal(err)
	}
	out := map[commit.BucketID]bool{}
	for _, id := range ids {
		out[id] = true
	}
	return out
}

// TestCompactLosesRace removes an input between planning and commit: the work is
// thrown away and counted, and other buckets are not.
func TestCompactLosesRace(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "2"}, []string{"k"}, "k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	r := rand.New(rand.NewPCG(9, 9))
	for range 3 {
		rows, kinds := randomChange(r, s, 100, 80)
		c.mustWrite(rows, kinds)
	}
	comp, err := c.s.newCompaction(ctx, CompactOptions{Full: true})
	if err != nil {
		t.Fatal(err)
	}
	jobs, err := comp.jobs(ctx, everything(t, c.s))
	if err != nil || len(jobs) != 2 {
		t.Fatalf("%d jobs: %v", len(jobs), err)
	}
	c.compact(CompactOptions{Full: true, Buckets: []int32{1}}) // somebody else
	if err := comp.run(ctx, jobs); err != nil {
		t.Fatal(err)
	}
	if rep := comp.report; rep.LostRaces != 1 || rep.Buckets != 1 || rep.SnapshotID == 0 {
		t.Errorf("%+v", rep)
	}
	c.check("one lost")
	c.noStray()

	// The inputs are gone from the disk, too.
	for range 2 {
		rows, kinds := randomChange(r, s, 100, 80)
		c.mustWrite(rows, kinds)
	}
	if comp, err = c.s.newCompaction(ctx, CompactOptions{Full: true}); err != nil {
		t.Fatal(err)
	}
	if jobs, err = comp.jobs(ctx, everything(t, c.s)); err != nil {
		t.Fatal(err)
	}
	c.compact(CompactOptions{Full: true})
	for _, j := range jobs {
		for _, in := range j.inputs {
			if err := c.io.Delete(ctx, j.dir+"/"+in.File.Name); err != nil {
				t.Fatal(err)
			}
		}
	}
	c.s.env.readers.close()
	if err := comp.run(ctx, jobs); err != nil {
		t.Fatal(err)
	}
	if rep := comp.report; rep.LostRaces != len(jobs) || rep.SnapshotID != 0 {
		t.Errorf("%+v", rep)
	}
	c.check("inputs gone")
	// A file that live metadata names and that is not there is no lost race.
	for _, e := range c.live() {
		if err := c.io.Delete(ctx, fmt.Sprintf("%s/bucket-%d/%s", workDir, e.Bucket, e.File.Name)); err != nil {
			t.Fatal(err)
		}
	}
	c.s.env.readers.close()
	var missing *fileio.MissingError
	rows, kinds := randomChange(r, s, 100, 80)
	if err := c.write(rows, kinds); err != nil {
		t.Fatal(err)
	}
	if _, err := c.s.Compact(ctx, CompactOptions{Full: true}); !errors.As(err, &missing) {
		t.Errorf("missing files: %v", err)
	}
}

// TestCompactClaims makes sure that compactions of one process do not do each
// other's work: an ordinary one passes over a claimed bucket, a full one waits.
func TestCompactClaims(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "2"}, []string{"k"}, "k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	r := rand.New(rand.NewPCG(9, 9))
	for range 6 {
		rows, kinds := randomChange(r, s, 100, 80)
		c.mustWrite(rows, kinds)
	}
	zero := commit.BucketID{Partition: string(make([]byte, 8))}
	_, give, err := c.s.claims.take(ctx, "", []commit.BucketID{zero}, false)
	if err != nil {
		t.Fatal(err)
	}
	if rep := c.compact(CompactOptions{}); rep.Buckets != 1 {
		t.Errorf("one bucket of two is free: %+v", *rep)
	}
	short, cancel := context.WithCancelCause(ctx)
	why := errors.New("enough")
	cancel(why)
	one := commit.BucketID{Partition: zero.Partition, Bucket: 1}
	if _, _, err := c.s.claims.take(short, "", []commit.BucketID{zero, one}, true); !errors.Is(err, why) {
		t.Error(err)
	}
	done := make(chan *CompactReport)
	go func() {
		rep, err := c.s.Compact(ctx, CompactOptions{Full: true})
		if err != nil {
			t.Error(err)
		}
		done <- rep
	}()
	give()
	if rep := <-done; rep.Buckets != 1 || rep.LostRaces != 0 {
		t.Errorf("%+v", *rep)
	}
	if len(c.s.claims.by) != 0 {
		t.Errorf("%d claims are left", len(c.s.claims.by))
	}
	c.check("in the end")
}

// TestCompactInBatches publishes each bucket on its own, as big ones are, while one
// of them loses its race.
func TestCompactInBatches(t *testing.T) {
	ctx := context.Background()
	s := tableSchema(t, map[string]string{"bucket": "6"}, []string{"k"}, "k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)")
	c := newCompactTable(t, fileio.NewMem(), s, EnvOptions{})
	r := rand.New(rand.NewPCG(9, 9))
	for range 3 {
		rows, kinds := randomChange(r, s, 200, 150)
		c.mustWrite(rows, kinds)
	}
	comp, err := c.s.newCompaction(ctx, CompactOptions{Full: true})
	if err != nil {
		t.Fatal(err)
	}
	comp.batch = 1
	jobs, err := comp.jobs(ctx, everything(t, c.s))
	if err != nil || len(jobs) != 6 {
		t.Fatalf("%d jobs: %v", len(jobs), err)
	}
	from := c.compact(CompactOptions{Full: true, Buckets: []int32{3}}).SnapshotID
	if err := comp.run(ctx, jobs); err != nil {
		t.Fatal(err)
	}
	if rep := comp.report; rep.LostRaces != 1 || rep.Buckets != 5 || rep.SnapshotID <= from+1 {
		t.Errorf("from snapshot %d: %+v", from, rep)
	}
	c.check("in batches")
	c.isFull("in batches")
	c.noStray()
}
