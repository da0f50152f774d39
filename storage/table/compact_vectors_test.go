package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestCompactVectorsBesideWriters lets writers of their own keys run against
// compactions of two processes, which know nothing of each other: no row is lost,
// doubled or back again, and the changelog tells of every change once.
func TestCompactVectorsBesideWriters(t *testing.T) {
	seed := random.Seed(t)
	for _, e := range engineKinds {
		for _, vectors := range []bool{false, true} {
			if e.name == "first-row" && vectors {
				continue
			}
			t.Run(fmt.Sprint(e.name, " ", vectors), func(t *testing.T) { besideWriters(t, seed, e.name, vectors) })
		}
	}
}

func besideWriters(t *testing.T, seed uint64, engine string, vectors bool) {
	ctx := context.Background()
	l := newLookupTable(t, fileio.NewMem(), engine, map[string]string{
		"changelog-producer": "lookup", "deletion-vectors.enabled": fmt.Sprint(vectors), "num-sorted-run.compaction-trigger": "3",
		"commit.max-retries": "1000", "target-file-size": "1 kb", "compaction.size-ratio": "0",
	})
	var writers, compactors sync.WaitGroup
	stop := make(chan struct{})
	published, lost := 0, 0
	for i := range int64(2) {
		r := rand.New(rand.NewPCG(seed, uint64(i)))
		writers.Add(1)
		go func() {
			defer writers.Done()
			for range 25 {
				rows, kinds := l.random(r, 1+r.IntN(30), 40)
				for j := range rows {
					rows[j][0] = rows[j][0].(int64)*2 + i
				}
				if err := l.write(rows, kinds); err != nil {
					t.Errorf("writer %d: %v", i, err)
					return
				}
				l.mu.Lock()
				l.model(rows, kinds)
				l.mu.Unlock()
			}
		}()
	}
	for i, o := range []CompactOptions{{Level0: true}, {Full: true}, {}} {
		env := NewEnv(l.io, EnvOptions{VerdictRows: 1})
		defer env.Close()
		s := Open(env, workDir)
		compactors.Add(1)
		go func() {
			defer compactors.Done()
			for {
				select {
				case <-stop:
					return
				default:
				}
				rep, err := s.Compact(ctx, o)
				if err != nil {
					t.Errorf("compactor %d: %v", i, err)
					return
				}
				l.mu.Lock()
				lost += rep.LostRaces
				if rep.SnapshotID > 0 {
					published++
				}
				l.mu.Unlock()
			}
		}()
	}
	writers.Wait()
	close(stop)
	compactors.Wait()
	t.Logf("%d compactions were published, %d units lost a race", published, lost)
	l.check("in the end")
	l.levelsAreRuns()
	l.compact(CompactOptions{Level0: true})
	l.check("level 0 taken up")
	l.toldAll("level 0 taken up")
	l.compacted("level 0 taken up")
	l.noStray()
	l.compact(CompactOptions{Full: true})
	l.check("compacted in the end")
	if published == 0 {
		t.Error("no compaction was published")
	}
}

// TestCompactVectorsLoseRace lets another compaction be published between planning
// and commit, in each of the ways in which a deletion vector could get lost.
func TestCompactVectorsLoseRace(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		name          string
		first, second CompactOptions
	}{
		{"both mark rows", CompactOptions{Level0: true}, CompactOptions{Level0: true}},
		{"an input is marked", CompactOptions{Level0: true}, CompactOptions{Full: true}},
		{"a marked file is rewritten", CompactOptions{Full: true}, CompactOptions{Level0: true}},
		{"vectors are dropped", CompactOptions{DropVectors: true}, CompactOptions{Level0: true}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLookupTable(t, fileio.NewMem(), "deduplicate", map[string]string{"deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "100", "compaction.size-ratio": "0"})
			r := rand.New(rand.NewPCG(3, 3))
			rows, kinds := l.random(r, 400, 500)
			l.put(rows, kinds)
			l.compact(CompactOptions{Full: true})
			rows, kinds = l.random(r, 20, 500)
			l.put(rows, kinds)
			l.compact(CompactOptions{Level0: true}) // vectors on the highest level
			if c.name == "an input is marked" {
				// The second one is planned without level 0: only what is marked tells.
				rows, kinds = l.random(r, 3, 500)
			} else {
				rows, kinds = l.random(r, 20, 500)
				l.put(rows, kinds)
				rows = nil
			}
			two, err := l.s.newCompaction(ctx, c.second)
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := two.jobs(ctx, everything(t, l.s))
			if err != nil || len(jobs) != 1 {
				t.Fatal(len(jobs), err)
			}
			out, err := two.do(ctx, jobs[0])
			if err != nil {
				t.Fatal(err)
			}
			if rows != nil {
				l.put(rows, kinds)
			}
			if rep := l.compact(c.first); rep.SnapshotID == 0 {
				t.Fatalf("%+v", rep)
			}
			if _, err := two.commit(ctx, []*outcome{out}); err != nil || two.report.LostRaces != 1 {
				t.Fatalf("%v, %+v", err, two.report)
			}
			l.check("after the race")
			l.compact(CompactOptions{Level0: true})
			l.compacted("after the race")
			l.noStray()
		})
	}
}

// TestVectorsConflict names the wrong index file, or none, for a bucket's vectors.
func TestVectorsConflict(t *testing.T) {
	ctx := context.Background()
	l := newLookupTable(t, fileio.NewMem(), "deduplicate", map[string]string{"deletion-vectors.enabled": "true", "num-sorted-run.compaction-trigger": "100", "compaction.size-ratio": "0"})
	r := rand.New(rand.NewPCG(3, 3))
	for _, n := range []int{400, 20} {
		rows, kinds := l.random(r, n, 500)
		l.put(rows, kinds)
		l.compact(CompactOptions{Level0: true})
	}
	st, err := l.s.state(ctx, snapshot.Ref{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	dvs, err := l.s.vectorsOf(ctx, st, nil)
	if err != nil || len(dvs) == 0 {
		t.Fatal(len(dvs), err)
	}
	for _, v := range dvs {
		e := *v.entry
		e.Name = "index-other-0"
		gone := e
		gone.Kind = manifest.Delete
		other := e // of a file that has no vector yet
		other.DVs = []manifest.DeletionVectorMeta{{DataFile: "data-other-0.parquet", Offset: 1, Length: 1, Cardinality: 1}}
		for _, es := range [][]manifest.IndexEntry{{e}, {gone, e}, {other}} {
			var lost *commit.ConflictError
			if _, err := l.s.Commit(ctx, commit.Changes{Kind: commit.Compact, Base: st.snap.ID, Indexes: es}); !errors.As(err, &lost) {
				t.Errorf("%v", err)
			}
		}
	}
	l.compacted("in the end")
}

// TestSettled switches deletion vectors, and looking up, on and off.
func TestSettled(t *testing.T) {
	ctx := context.Background()
	for _, c := range []struct {
		engine   string
		was, to  map[string]string
		at, full bool // whether the state is one to go on from: as it is, after compaction
	}{
		{"deduplicate", nil, map[string]string{"deletion-vectors.enabled": "true"}, false, true},
		{"deduplicate", map[string]string{"deletion-vectors.enabled": "true"}, map[string]string{"deletion-vectors.enabled": "false"}, false, true},
		{"deduplicate", nil, map[string]string{"changelog-producer": "lookup"}, true, true},
		{"aggregation", nil, map[string]string{"changelog-producer": "lookup"}, false, true},
		{"aggregation", map[string]string{"changelog-producer": "lookup"}, map[string]string{"changelog-producer": "none"}, false, true},
		{"aggregation", nil, map[string]string{"write-only": "true"}, true, true},
	} {
		t.Run(fmt.Sprint(c.engine, c.was, c.to), func(t *testing.T) {
			o := map[string]string{"num-sorted-run.compaction-trigger": "100", "compaction.size-ratio": "0", "compaction.force-up-level-0": "true"}
			for k, v := range c.was {
				o[k] = v
			}
			l := newLookupTable(t, fileio.NewMem(), c.engine, o)
			r := rand.New(rand.NewPCG(3, 3))
			for range 2 {
				rows, kinds := l.random(r, 400, 500)
				l.put(rows, kinds)
				l.compact(CompactOptions{})
				rows, kinds = l.random(r, 10, 500)
				l.put(rows, kinds)
			}
			l.compact(CompactOptions{})
			to := map[string]string{}
			for k, v := range l.sch.Options {
				to[k] = v
			}
			for k, v := range c.to {
				to[k] = v
			}
			if ok, err := l.s.Settled(ctx, "", to); err != nil || ok != c.at {
				t.Fatalf("before: %v, %v", ok, err)
			}
			l.compact(CompactOptions{DropVectors: true})
			if ok, err := l.s.Settled(ctx, "", to); err != nil || ok != c.full {
				t.Fatalf("after: %v, %v", ok, err)
			}
			// The table goes on under the new options, and a compaction planned under the
			// old ones is thrown away.
			rows, kinds := l.random(r, 30, 500)
			l.put(rows, kinds)
			old, err := l.s.newCompaction(ctx, CompactOptions{Full: true})
			if err != nil {
				t.Fatal(err)
			}
			jobs, err := old.jobs(ctx, everything(t, l.s))
			if err != nil || len(jobs) != 1 {
				t.Fatal(len(jobs), err)
			}
			out, err := old.do(ctx, jobs[0])
			if err != nil {
				t.Fatal(err)
			}
			next := *l.sch
			next.ID, next.Options = 1, to
			putSchema(t, l.io, &next)
			if _, err := old.commit(ctx, []*outcome{out}); err != nil || len(c.to) > 0 && to["write-only"] == "" && old.report.LostRaces != 1 {
				t.Fatalf("%v, %+v", err, old.report)
			}
			l.sch = &next
			env := NewEnv(l.io, EnvOptions{VerdictRows: 1})
			defer env.Close()
			l.s = Open(env, workDir)
			for range 3 {
				rows, kinds = l.random(r, 30, 500)
				l.put(rows, kinds)
				l.compact(CompactOptions{Level0: true})
				l.check("under the new options")
				if to["deletion-vectors.enabled"] == "true" {
					l.compacted("under the new options")
				}
			}
		})
	}
}

func putSchema(t testing.TB, io fileio.FileIO, s *schema.Table) {
	t.Helper()
	raw, err := schema.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := io.Put(context.Background(), fmt.Sprintf("%s/schema/schema-%d", workDir, s.ID), raw); err != nil {
		t.Fatal(err)
	}
}
