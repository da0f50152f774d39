package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// crashTables are tables whose compactions write data, changelog and index files.
var crashTables = []struct {
	engine string
	opts   map[string]string
	full   bool
}{
	{"deduplicate", map[string]string{"changelog-producer": "lookup", "deletion-vectors.enabled": "true"}, false},
	{"deduplicate", map[string]string{"changelog-producer": "lookup", "deletion-vectors.enabled": "true"}, true},
	{"aggregation", map[string]string{"changelog-producer": "full-compaction"}, true},
}

// preparedTable is such a table with vectors on its highest level and two files in level
// 0.
func preparedTable(t *testing.T, io fileio.FileIO, engine string, opts map[string]string) *lookupTable {
	o := map[string]string{"num-sorted-run.compaction-trigger": "100", "compaction.size-ratio": "0", "commit.max-retries": "0"}
	for k, v := range opts {
		o[k] = v
	}
	l := newLookupTable(t, io, engine, o)
	r := rand.New(rand.NewPCG(9, 9))
	for i, n := range []int{200, 10, 8, 8} {
		rows, kinds := l.random(r, n, 250)
		l.put(rows, kinds)
		if i < 2 {
			l.compact(CompactOptions{Full: i == 0 || opts["changelog-producer"] == "full-compaction", Level0: true})
		}
	}
	l.follow("prepared")
	return l
}

// on copies the table to another store.
func (l *lookupTable) on(io fileio.FileIO) *lookupTable {
	l.t.Helper()
	for _, p := range filesBelow(l.t, l.io, workDir) {
		raw, err := l.io.ReadFile(context.Background(), p)
		if err == nil {
			err = io.PutIfAbsent(context.Background(), p, raw) // durable, too
		}
		if err != nil {
			l.t.Fatal(err)
		}
	}
	c := &lookupTable{
		compactTable: &compactTable{t: l.t, io: io, sch: l.sch, key: l.key, rows: maps.Clone(l.rows), seqs: l.seqs},
		engine:       l.engine, now: l.now, told: maps.Clone(l.told), seen: l.seen,
	}
	return c
}

// TestCompactChangelogCutAtEveryCall makes each file system call of a compaction
// fail in turn: nothing is seen or left of it, or all of it is there.
func TestCompactChangelogCutAtEveryCall(t *testing.T) {
	ctx := context.Background()
	for _, k := range crashTables {
		base := preparedTable(t, fileio.NewMem(), k.engine, k.opts)
		for _, after := range []bool{false, true} {
			for nth := 1; ; nth++ {
				f := fileio.NewFault(fileio.NewMem())
				l := base.on(f)
				env := NewEnv(f, EnvOptions{})
				l.s = Open(env, workDir) // nothing is cached
				boom := errors.New("boom")
				start := f.Calls()
				f.Add(fileio.Rule{Nth: nth, Err: boom, After: after})
				_, err := l.s.Compact(ctx, CompactOptions{Full: k.full, Level0: !k.full})
				calls := f.Calls() - start
				f.Clear()
				env.Close()
				when := fmt.Sprintf("%v: call %d of %d failed, after %v: %v", k, nth, calls, after, err)
				l.check(when)
				l.follow(when)
				if !after { // what a lost reply made is an orphan
					l.noStray()
				}
				env = NewEnv(f, EnvOptions{})
				l.s = Open(env, workDir)
				l.compact(CompactOptions{Full: k.full, Level0: !k.full})
				l.check(when + ", and again")
				l.toldAll(when + ", and again")
				l.compacted(when + ", and again")
				env.Close()
				if t.Failed() || nth > calls {
					break
				}
			}
		}
	}
}

// TestCompactChangelogCrash stops the machine at every call of a compaction: what
// is left can be read, holds the snapshot with every file that it names or nothing
// of it, and can be compacted.
func TestCompactChangelogCrash(t *testing.T) {
	ctx := context.Background()
	rnd := rand.New(rand.NewPCG(7, 0))
	for _, k := range crashTables {
		base := preparedTable(t, fileio.NewMem(), k.engine, k.opts)
		for _, after := range []bool{false, true} {
			for chance := range 2 { // 0: nothing unsynced survives
				if after && chance > 0 && testkit.Factor() == 1 {
					continue
				}
				crashes := 0
				for n := 1; ; n++ {
					disk := fileio.NewCrash()
					l := base.on(disk)
					env := NewEnv(disk, EnvOptions{})
					l.s = Open(env, workDir)
					disk.At(n, after)
					rep, err := l.s.Compact(ctx, CompactOptions{Full: k.full, Level0: !k.full})
					env.Close()
					when := fmt.Sprintf("%v, after %v, call %d, chance %d: %v", k, after, n, chance, err)
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
					l.io = disk.Reopen(r)
					env = NewEnv(l.io, EnvOptions{})
					l.s = Open(env, workDir)
					var unknown *commit.UnknownOutcomeError
					before := l.seen
					latest, lerr := l.s.Snapshots("").LatestID(ctx)
					switch {
					case lerr != nil:
						t.Fatalf("%s: %v", when, lerr)
					case err == nil && rep.SnapshotID > 0 && latest == before:
						t.Fatalf("%s: it was acknowledged and is not there", when)
					case err != nil && latest > before && !errors.As(err, &unknown):
						t.Fatalf("%s: it failed and is there", when)
					}
					filesExist(t, l.io, when)
					l.check(when)
					l.follow(when)
					l.compact(CompactOptions{Full: k.full, Level0: !k.full})
					l.check(when + ", and again")
					l.toldAll(when + ", and again")
					l.compacted(when + ", and again")
					filesExist(t, l.io, when+", and again")
					env.Close()
				}
				if crashes < 15 {
					t.Errorf("a compaction makes only %d calls", crashes)
				}
			}
		}
	}
}
