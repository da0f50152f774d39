package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"syscall"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestCommitCrash stops the machine at every call of a commit, before and after
// the call's work, and looks at what is left: the snapshot with every file that
// it names, or nothing of it; and the next commit works.
func TestCommitCrash(t *testing.T) {
	ctx := context.Background()
	const seed = 7
	rnd := rand.New(rand.NewPCG(seed, 0))
	for _, files := range []int{1, 3} {
		for _, merging := range []bool{false, true} {
			if files > 1 && merging {
				continue // says nothing new
			}
			for _, after := range []bool{false, true} {
				for chance := range 3 { // 0: nothing unsynced survives
					crashes := 0
					for n := 1; ; n++ {
						name := fmt.Sprintf("seed %d, %d files, merging %v, after %v, call %d, chance %d", seed, files, merging, after, n, chance)
						o := map[string]string{}
						if merging {
							o["manifest.merge-min-count"] = "2"
						}
						disk := fileio.NewCrash()
						w := newWork(t, disk, appendTable(t, o))
						s := w.open()
						old := w.fake(nil, 0, 0, 9)
						mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(old)})
						kept := w.fake(nil, 0, 0, 9)
						mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 1, Files: entries(kept)})
						ch := commit.Changes{Kind: commit.Append, Base: 2, Files: entries(removal(old))}
						var want []manifest.Entry
						for range files {
							e := w.fake([]byte(nil), 0, 0, 9)
							ch.Files = append(ch.Files, e)
							want = append(want, e)
						}
						want = append(want, kept)
						disk.At(n, after)
						id, err := s.Commit(ctx, ch)
						if !disk.Crashed() {
							if err != nil || id != 3 {
								t.Fatalf("%s: no crash, and snapshot %d, %v", name, id, err)
							}
							break
						}
						crashes++
						var r *rand.Rand
						if chance > 0 {
							r = rnd
						}
						w.io = disk.Reopen(r)
						var unknown *commit.UnknownOutcomeError
						published := err == nil
						latest, lerr := snapshot.NewManager(w.io, workDir).Latest(ctx)
						if lerr != nil {
							t.Fatalf("%s: %s: %v", name, disk.Last(), lerr)
						}
						switch {
						case published && latest.ID != 3:
							t.Fatalf("%s: %s: the commit was acknowledged and is not there", name, disk.Last())
						case !published && latest.ID == 3 && !errors.As(err, &unknown):
							t.Fatalf("%s: %s: the commit failed with %v and is there", name, disk.Last(), err)
						case latest.ID == 3:
							if got := liveNames(t, w.io, 3); !slices.Equal(got, namesOf(want...)) {
								t.Fatalf("%s: %s: %v", name, disk.Last(), got)
							}
						default:
							if got := liveNames(t, w.io, 0); !slices.Equal(got, namesOf(old, kept)) {
								t.Fatalf("%s: %s: %v", name, disk.Last(), got)
							}
						}
						filesExist(t, w.io, name)
						s = w.open()
						next := w.fake(nil, 0, 0, 9)
						if id := mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: latest.ID, Files: entries(next)}); id != latest.ID+1 {
							t.Fatalf("%s: the next commit is snapshot %d after %d", name, id, latest.ID)
						}
						filesExist(t, w.io, name)
					}
					if crashes < 12 {
						t.Errorf("a commit makes only %d calls", crashes)
					}
				}
			}
		}
	}
}

// filesExist makes sure that every file that a snapshot or tag names is there.
func filesExist(t testing.TB, io fileio.FileIO, what string) {
	t.Helper()
	for p := range usedFiles(t, io) {
		if _, err := io.Stat(context.Background(), p); err != nil {
			t.Fatalf("%s: %v", what, err)
		}
	}
}

// TestDiskFull lets every call that needs room fail once, and from some call on
// for good: no snapshot is half written, the table can be read, and when there is
// room again, it can be written.
func TestDiskFull(t *testing.T) {
	ctx := context.Background()
	for _, forGood := range []bool{false, true} {
		fails := 0
		for n := 1; ; n++ {
			f := fileio.NewFault(fileio.NewMem())
			w := newWork(t, f, appendTable(t, map[string]string{"manifest.merge-min-count": "2"}))
			s := w.open()
			a := w.fake(nil, 0, 0, 9)
			mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(a)})
			f.Add(fileio.Rule{Op: "store", Nth: n, On: forGood, Err: syscall.ENOSPC})
			e, err := w.tryFake(nil, 0, 0, 9)
			id := int64(0)
			if err == nil {
				id, err = s.Commit(ctx, commit.Changes{Kind: commit.Append, Base: 1, Files: entries(e)})
			}
			hits := f.Hits()
			f.Clear()
			name := fmt.Sprintf("for good %v, call %d", forGood, n)
			switch {
			case err != nil && !errors.Is(err, syscall.ENOSPC):
				t.Fatalf("%s: %v", name, err)
			case err != nil && len(liveNames(t, f, 0)) != 1:
				t.Fatalf("%s: failed, and is there", name)
			case err == nil && (id != 2 || len(liveNames(t, f, 0)) != 2):
				t.Fatalf("%s: snapshot %d", name, id)
			}
			filesExist(t, f, name)
			noOrphans(t, f)
			same(t, f, s)
			if id2 := mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: max(id, 1), Files: entries(w.fake(nil, 0, 0, 9))}); id2 != max(id, 1)+1 {
				t.Fatalf("%s: next is %d", name, id2)
			}
			if hits == 0 {
				break
			}
			fails++
		}
		if fails < 12 {
			t.Errorf("a commit makes only %d calls that need room", fails)
		}
	}
}

// TestManifestMerging commits at random, with small limits, and compares the live
// files with those of a model after every commit.
func TestManifestMerging(t *testing.T) {
	seed := random.Seed(t)
	rnd := rand.New(rand.NewPCG(seed, 1))
	for _, o := range []map[string]string{
		{"manifest.merge-min-count": "3"},
		{"manifest.merge-min-count": "5", "manifest.target-file-size": "4 kb"},
		{"manifest.merge-min-count": "4", "manifest.target-file-size": "3 kb", "manifest.full-compaction-threshold-size": "9 kb"},
		{"manifest.merge-min-count": "1000", "manifest.full-compaction-threshold-size": "20 kb", "manifest.compression": "none"},
	} {
		w := newWork(t, fileio.NewMem(), keyTable(t, o))
		s := w.open()
		live := map[string]manifest.Entry{}
		most := 0
		for step := range 60 {
			var files []manifest.Entry
			for _, e := range live {
				switch rnd.IntN(8) {
				case 0: // rewritten
					files = append(files, removal(e))
					delete(live, e.File.Name)
				case 1: // another level, one key range for each
					up := atLevel(e, e.File.Level%5+1)
					files = append(files, removal(e), up)
					live[e.File.Name] = up
				}
				if len(files) > 6 {
					break
				}
			}
			for range rnd.IntN(4) {
				k := int64(step*10 + rnd.IntN(10))
				e := w.fake(nil, int32(rnd.IntN(2)), k, k)
				if _, ok := live[e.File.Name]; !ok && !overlaps(live, e) {
					files = append(files, e)
					live[e.File.Name] = e
				}
			}
			c := commit.Changes{Kind: commit.Compact, Base: int64(step), Files: files, Force: true}
			mustCommit(t, s, c)
			var want []string
			for n := range live {
				want = append(want, n)
			}
			slices.Sort(want)
			if got := liveNames(t, w.io, 0); !slices.Equal(got, want) {
				t.Fatalf("seed %d, step %d, %v: %d files live, not %d", seed, step, o, len(got), len(want))
			}
			sn, err := s.Snapshots("").Latest(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			l, err := s.Env().Manifests.List(context.Background(), w.io, workDir+"/manifest/"+sn.BaseManifestList)
			if err != nil {
				t.Fatal(err)
			}
			most = max(most, len(l))
			if step%20 == 0 {
				same(t, w.io, s)
			}
		}
		if o["manifest.merge-min-count"] == "3" && most > 6 {
			t.Errorf("%v: a base list has %d manifests", o, most)
		}
		noOrphans(t, w.io)
	}
}

func overlaps(live map[string]manifest.Entry, e manifest.Entry) bool {
	for _, x := range live {
		if x.Bucket == e.Bucket && string(x.File.MinKey) == string(e.File.MinKey) {
			return true
		}
	}
	return false
}
