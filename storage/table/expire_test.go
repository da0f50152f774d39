package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// allFiles lists the paths below a directory.
func allFiles(t testing.TB, io fileio.FileIO, dir string) []string {
	t.Helper()
	es, err := io.List(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, e := range es {
		if e.Dir {
			out = append(out, allFiles(t, io, dir+"/"+e.Name)...)
		} else {
			out = append(out, dir+"/"+e.Name)
		}
	}
	return out
}

// exactly makes sure that the table's directory holds every file that a snapshot
// or tag names, and no other.
func exactly(t testing.TB, io fileio.FileIO, what string) {
	t.Helper()
	used := usedFiles(t, io)
	filesExist(t, io, what)
	for _, p := range allFiles(t, io, workDir) {
		rest := strings.TrimPrefix(p, workDir+"/")
		if top, _, _ := strings.Cut(rest, "/"); top == "schema" || top == "snapshot" || top == "tag" || top == "branch" || top == "consumer" {
			continue
		}
		if !used[p] {
			t.Fatalf("%s: %s is named by nothing", what, rest)
		}
	}
}

// TestExpireRandom commits, tags and expires at random; after every step each
// state can be read whole and no other file is there.
func TestExpireRandom(t *testing.T) {
	ctx := context.Background()
	for round := range 12 {
		seed := random.Seed(t)
		rnd := rand.New(rand.NewPCG(seed, 1))
		name := func(step int) string { return fmt.Sprintf("seed %d, round %d, step %d", seed, round, step) }
		w := newWork(t, fileio.NewMem(), keyTable(t, map[string]string{"manifest.merge-min-count": "3", "manifest.full-compaction-threshold-size": "16 kb"}))
		s := w.open()
		live := map[string]manifest.Entry{}
		var tags []string
		last := int64(0)
		pins := map[int64]func(){}
		for step := range 50 {
			switch op := rnd.IntN(12); {
			case op < 7 || last == 0:
				var files []manifest.Entry
				for _, e := range live {
					switch rnd.IntN(6) {
					case 0:
						files = append(files, removal(e))
						delete(live, e.File.Name)
					case 1:
						up := atLevel(e, e.File.Level%5+1)
						files = append(files, removal(e), up)
						live[e.File.Name] = up
					}
				}
				for range rnd.IntN(3) {
					k := int64(step*10 + rnd.IntN(10))
					if e := w.fake(nil, int32(rnd.IntN(2)), k, k); !overlaps(live, e) {
						files = append(files, e)
						live[e.File.Name] = e
					} else if err := w.io.Delete(ctx, fmt.Sprintf("%s/bucket-%d/%s", workDir, e.Bucket, e.File.Name)); err != nil {
						t.Fatal(err)
					}
				}
				last = mustCommit(t, s, commit.Changes{Kind: commit.Compact, Base: last, Files: files, Force: true})
			case op == 7:
				ids, err := s.Snapshots("").IDs(ctx)
				if err != nil {
					t.Fatal(err)
				}
				n := fmt.Sprintf("t%d", step)
				if err := s.CreateTag(ctx, "", n, ids[rnd.IntN(len(ids))], 0); err != nil {
					t.Fatal(err)
				}
				tags = append(tags, n)
			case op == 8 && len(tags) > 0:
				i := rnd.IntN(len(tags))
				if err := s.DeleteTag(ctx, "", tags[i]); err != nil {
					t.Fatalf("%s: %v", name(step), err)
				}
				tags = slices.Delete(tags, i, i+1)
			case op == 9:
				if pins[last] == nil {
					pins[last] = s.Snapshots("").Pin(last)
				}
			case op == 10:
				for id, release := range pins {
					release()
					delete(pins, id)
					break
				}
			default:
				before, err := s.Snapshots("").IDs(ctx)
				if err != nil {
					t.Fatal(err)
				}
				o := ExpireOptions{RetainMax: 1 + rnd.IntN(6), RetainMin: 1, OlderThan: time.Now().Add(time.Hour), MaxDeletes: 1 + rnd.IntN(20)}
				dry := o
				dry.Dry = true
				d, err := s.Expire(ctx, dry)
				if err != nil {
					t.Fatal(err)
				}
				nfiles := len(allFiles(t, w.io, workDir))
				r, err := s.Expire(ctx, o)
				if err != nil || *r != *d {
					t.Fatalf("%s: %+v, %+v, %v", name(step), r, d, err)
				}
				after, err := s.Snapshots("").IDs(ctx)
				if err != nil {
					t.Fatal(err)
				}
				for id := range pins {
					if !slices.Contains(after, id) {
						t.Fatalf("%s: pinned snapshot %d has expired", name(step), id)
					}
				}
				if len(before)-len(after) != r.Snapshots || r.Snapshots > o.MaxDeletes || after[len(after)-1] != last {
					t.Fatalf("%s: %v before, %v after, %+v", name(step), before, after, r)
				}
				if want := min(len(before)-1, o.MaxDeletes); len(pins) == 0 && r.Snapshots != want {
					t.Fatalf("%s: %d expired, not %d", name(step), r.Snapshots, want)
				}
				removed := r.Snapshots + r.DataFiles + r.ManifestFiles + r.IndexFiles
				if now := len(allFiles(t, w.io, workDir)); now != nfiles-removed && now != nfiles-removed+1 { // EARLIEST may be new
					t.Fatalf("%s: %d files before, %d after, %+v", name(step), nfiles, now, r)
				}
				if e, _ := s.Snapshots("").EarliestID(ctx); e != after[0] {
					t.Fatalf("%s: earliest is %d", name(step), e)
				}
			}
			exactly(t, w.io, name(step))
			if rnd.IntN(10) == 0 {
				s = w.open()
				for id, release := range pins {
					release()
					delete(pins, id)
				}
			}
		}
		for _, n := range tags {
			if err := s.DeleteTag(ctx, "", n); err != nil {
				t.Fatal(err)
			}
			exactly(t, w.io, name(100))
		}
		var want []string
		for n := range live {
			want = append(want, n)
		}
		slices.Sort(want)
		if got := liveNames(t, w.io, 0); !slices.Equal(got, want) {
			t.Fatalf("%s: %v", name(100), got)
		}
	}
}

// chain commits n snapshots, each with one new file that replaces the last one.
func (w *workbench) chain(s *FileStore, n int) (files []manifest.Entry) {
	for i := range n {
		e := w.fake(nil, 0, 0, 9)
		c := commit.Changes{Kind: commit.Append, Base: int64(i), Files: entries(e)}
		if i > 0 {
			c.Files = append(c.Files, removal(files[i-1]))
		}
		mustCommit(w.t, s, c)
		files = append(files, e)
	}
	return files
}

func TestExpireRules(t *testing.T) {
	ctx := context.Background()
	far := time.Now().Add(time.Hour)
	for _, c := range []struct {
		name    string
		options map[string]string
		consume string
		o       ExpireOptions
		first   int64 // oldest snapshot afterwards, of 20
	}{
		{"defaults keep an hour", nil, "", ExpireOptions{}, 1},
		{"ten stay", map[string]string{"snapshot.time-retained": "0 ms"}, "", ExpireOptions{OlderThan: far}, 11},
		{"a limit", map[string]string{"snapshot.expire.limit": "3"}, "", ExpireOptions{OlderThan: far}, 4},
		{"at most", map[string]string{"snapshot.num-retained.max": "12"}, "", ExpireOptions{}, 9},
		{"at most, asked for", nil, "", ExpireOptions{RetainMax: 2}, 19},
		{"at least, asked for", nil, "", ExpireOptions{RetainMin: 15, OlderThan: far}, 6},
		{"consumer", nil, `{"nextSnapshot" : 5}`, ExpireOptions{OlderThan: far}, 5},
		{"dry", nil, "", ExpireOptions{RetainMax: 2, Dry: true}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWork(t, fileio.NewLocal(t.TempDir()), appendTable(t, c.options))
			s := w.open()
			w.chain(s, 20)
			if c.consume != "" {
				if err := w.io.PutIfAbsent(ctx, workDir+"/consumer/consumer-a", []byte(c.consume)); err != nil {
					t.Fatal(err)
				}
			}
			if _, err := s.Expire(ctx, c.o); err != nil {
				t.Fatal(err)
			}
			ids, err := s.Snapshots("").IDs(ctx)
			if err != nil || ids[0] != c.first || len(ids) != 21-int(c.first) {
				t.Errorf("%v, %v", ids, err)
			}
			exactly(t, w.io, c.name)
		})
	}
	w := newWork(t, fileio.NewMem(), appendTable(t, map[string]string{"changelog.num-retained.max": "100", "snapshot.num-retained.max": "50"}))
	s := w.open()
	w.chain(s, 2)
	var un *fileio.UnsupportedError
	if _, err := s.Expire(ctx, ExpireOptions{RetainMax: 1}); !errors.As(err, &un) {
		t.Errorf("decoupled changelog: %v", err)
	}
	if _, err := s.Expire(ctx, ExpireOptions{RetainMax: 1, RetainMin: 2}); err == nil {
		t.Error("at most 1 and at least 2 was accepted")
	}
}

func TestExpireDirectories(t *testing.T) {
	ctx := context.Background()
	sch := tableSchema(t, map[string]string{"snapshot.clean-empty-directories": "true"}, nil, "p STRING", "q INT", "v INT")
	sch.PartitionKeys = []string{"p", "q"}
	w := newWork(t, fileio.NewLocal(t.TempDir()), sch)
	s := w.open()
	img := func(p string, q int64) []byte {
		return newBuilt(t, sch).image([]types.Type{sch.Fields[0].Type, sch.Fields[1].Type}, []types.Datum{p, q})
	}
	a, b := w.fake(img("x", 1), 0, 0, 9), w.fake(img("y", 1), 0, 0, 9)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(a, b)})
	mustCommit(t, s, commit.Changes{Base: 1, Overwrite: &commit.Replacement{Partitions: [][]byte{img("x", 1)}}})
	if _, err := s.Expire(ctx, ExpireOptions{RetainMax: 1, RetainMin: 1}); err != nil {
		t.Fatal(err)
	}
	es, err := w.io.List(ctx, workDir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, e := range es {
		names = append(names, e.Name)
	}
	if slices.Contains(names, "p=x") || !slices.Contains(names, "p=y") {
		t.Errorf("%v", names)
	}
	exactly(t, w.io, "directories")
}

func TestTags(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewLocal(t.TempDir()), appendTable(t, nil))
	s := w.open()
	var none *snapshot.NotFoundError
	if err := s.CreateTag(ctx, "", "t", 0, 0); !errors.As(err, &none) {
		t.Errorf("tag of nothing: %v", err)
	}
	files := w.chain(s, 4)
	for _, bad := range []string{"", " ", "a/b", ".."} {
		if err := s.CreateTag(ctx, "", bad, 0, 0); err == nil {
			t.Errorf("tag %q was made", bad)
		}
	}
	if err := s.CreateTag(ctx, "", "t", 9, 0); !errors.As(err, &none) {
		t.Errorf("tag of no snapshot: %v", err)
	}
	if err := s.CreateTag(ctx, "", "old", 1, 0); err != nil {
		t.Fatal(err)
	}
	if err := s.CreateTag(ctx, "", "old", 2, 0); !errors.Is(err, fileio.ErrExist) {
		t.Errorf("a second tag: %v", err)
	}
	if err := s.CreateTag(ctx, "", "short", 0, 90*time.Second+5); err != nil {
		t.Fatal(err)
	}
	sn, err := w.open().Snapshots("").Tag(ctx, "short")
	if err != nil {
		t.Fatal(err)
	}
	made, ok := sn.CreateTime()
	kept, ok2 := sn.Retained()
	if wall := time.Now(); !ok || !ok2 || kept != 90*time.Second+5 || made.Day() != wall.Day() && made.Hour() != 23 {
		t.Errorf("%v %v", made, kept)
	}
	// As in Java: the tag outlives its snapshot with its file, deleting it removes
	// that file, the manifest and the lists.
	if _, err := s.Expire(ctx, ExpireOptions{RetainMax: 1, RetainMin: 1}); err != nil {
		t.Fatal(err)
	}
	exactly(t, w.io, "expired")
	tag, err := w.open().Snapshots("").Tag(ctx, "old")
	if err != nil || !slices.Equal(liveOf(t, w.io, tag), namesOf(files[0])) {
		t.Errorf("%v", err)
	}
	before := len(allFiles(t, w.io, workDir))
	if err := s.DeleteTag(ctx, "", "old"); err != nil {
		t.Fatal(err)
	}
	exactly(t, w.io, "deleted")
	if n := before - len(allFiles(t, w.io, workDir)); n < 4 {
		t.Errorf("deleting the tag removed %d files", n)
	}
	if err := s.DeleteTag(ctx, "", "old"); !errors.As(err, &none) {
		t.Errorf("deleting it again: %v", err)
	}
	if gone, err := s.ExpireTags(ctx, "", time.Now()); err != nil || len(gone) > 0 {
		t.Errorf("%v, %v", gone, err)
	}
	if gone, err := s.ExpireTags(ctx, "", time.Now().Add(2*time.Minute)); err != nil || !slices.Equal(gone, []string{"short"}) {
		t.Errorf("%v, %v", gone, err)
	}
	exactly(t, w.io, "tags expired")
}

func TestRollback(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewLocal(t.TempDir()), appendTable(t, nil))
	s := w.open()
	files := w.chain(s, 6)
	for n, id := range map[string]int64{"one": 1, "four": 4, "six": 6} {
		if err := s.CreateTag(ctx, "", n, id, time.Hour); err != nil {
			t.Fatal(err)
		}
	}
	state := func(want ...manifest.Entry) {
		t.Helper()
		for _, st := range []*FileStore{s, w.open()} {
			p, err := st.Plan(ctx, Scan{Limit: -1})
			if err != nil {
				t.Fatal(err)
			}
			var got []string
			for _, sp := range p.Splits {
				for _, f := range sp.Files {
					got = append(got, f.Meta.Name)
				}
			}
			slices.Sort(got)
			if !slices.Equal(got, namesOf(want...)) {
				t.Errorf("state is %v, not %v", got, namesOf(want...))
			}
		}
		filesExist(t, w.io, "rollback")
	}
	if err := s.RollbackTo(ctx, "", snapshot.Ref{Kind: snapshot.ID, ID: 5}); err != nil {
		t.Fatal(err)
	}
	state(files[4])
	if tags, _ := s.Snapshots("").Tags(ctx); !slices.Equal(tags, []string{"four", "one"}) {
		t.Errorf("tags %v", tags)
	}
	if b, _ := w.io.ReadFile(ctx, workDir+"/snapshot/LATEST"); string(b) != "5" {
		t.Errorf("LATEST is %q", b)
	}
	// The id is used again, for another state.
	e := w.fake(nil, 0, 0, 9)
	if id := mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 5, Files: entries(e)}); id != 6 {
		t.Errorf("snapshot %d", id)
	}
	state(files[4], e)
	if err := s.RollbackTo(ctx, "", snapshot.Ref{Kind: snapshot.Tag, Name: "four"}); err != nil {
		t.Fatal(err)
	}
	state(files[3])
	// A tag whose snapshot has expired brings it back.
	if _, err := s.Expire(ctx, ExpireOptions{RetainMax: 1, RetainMin: 1}); err != nil {
		t.Fatal(err)
	}
	if err := s.RollbackTo(ctx, "", snapshot.Ref{Kind: snapshot.Tag, Name: "one"}); err != nil {
		t.Fatal(err)
	}
	state(files[0])
	if sn, err := s.Snapshots("").Get(ctx, 1); err != nil || sn.TagTimeRetained != nil {
		t.Errorf("%+v, %v", sn, err)
	}
	if e, _ := w.open().Snapshots("").EarliestID(ctx); e != 1 {
		t.Errorf("earliest is %d", e)
	}
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 1, Files: entries(w.fake(nil, 0, 0, 9))})
	var none *snapshot.NotFoundError
	if err := s.RollbackTo(ctx, "", snapshot.Ref{Kind: snapshot.ID, ID: 17}); !errors.As(err, &none) {
		t.Errorf("%v", err)
	}
	if _, err := s.RollbackToTime(ctx, "", time.Now().Add(-time.Hour)); !errors.As(err, &none) {
		t.Errorf("%v", err)
	}
	if id, err := s.RollbackToTime(ctx, "", time.Now().Add(time.Hour)); err != nil || id != 2 {
		t.Errorf("%d, %v", id, err)
	}
}

// TestExpireBranch expires main while a branch still reads what it was made from.
func TestExpireBranch(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewMem(), appendTable(t, nil))
	s := w.open()
	files := w.chain(s, 5)
	for _, f := range []string{"schema/schema-0", "snapshot/snapshot-2"} {
		raw, err := w.io.ReadFile(ctx, workDir+"/"+f)
		if err != nil {
			t.Fatal(err)
		}
		if err := w.io.PutIfAbsent(ctx, workDir+"/branch/branch-b/"+f, raw); err != nil {
			t.Fatal(err)
		}
	}
	own := w.fake(nil, 0, 0, 9)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Branch: "b", Base: 2, Files: entries(own)})
	if _, err := s.Expire(ctx, ExpireOptions{RetainMax: 1, RetainMin: 1}); err != nil {
		t.Fatal(err)
	}
	filesExist(t, w.io, "main")
	for id, want := range map[int64][]string{2: namesOf(files[1]), 3: namesOf(files[1], own)} {
		sn, err := w.open().Snapshots("b").Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		if got := liveOf(t, w.io, sn); !slices.Equal(got, want) {
			t.Errorf("branch at %d: %v", id, got)
		}
		for _, e := range liveEntriesOf(t, w.io, sn) {
			if _, err := w.io.Stat(ctx, workDir+"/bucket-0/"+e.File.Name); err != nil {
				t.Error(err)
			}
		}
	}
	// And the branch main.
	mustCommit(t, s, commit.Changes{Branch: "b", Base: 3, Overwrite: &commit.Replacement{}})
	if _, err := s.Expire(ctx, ExpireOptions{Branch: "b", RetainMax: 1, RetainMin: 1}); err != nil {
		t.Fatal(err)
	}
	filesExist(t, w.io, "main after the branch")
	if got := liveNames(t, w.io, 0); !slices.Equal(got, namesOf(files[4])) {
		t.Errorf("main: %v", got)
	}
}

// TestExpireCrash cuts expiry at every call: what is kept can be read, and another
// run removes what is left.
func TestExpireCrash(t *testing.T) {
	ctx := context.Background()
	for n := 1; ; n++ {
		disk := fileio.NewCrash()
		w := newWork(t, disk, appendTable(t, map[string]string{"manifest.merge-min-count": "2"}))
		s := w.open()
		w.chain(s, 6)
		if err := s.CreateTag(ctx, "", "two", 2, 0); err != nil {
			t.Fatal(err)
		}
		s = w.open()
		disk.At(n, n%2 == 0)
		o := ExpireOptions{RetainMax: 2, RetainMin: 1}
		_, err := s.Expire(ctx, o)
		if !disk.Crashed() {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		w.io = disk.Reopen(rand.New(rand.NewPCG(uint64(n), 0)))
		s = w.open()
		what := fmt.Sprintf("call %d: %s", n, disk.Last())
		for range 2 {
			m := s.Snapshots("")
			for _, id := range []int64{5, 6} {
				sn, err := m.Get(ctx, id)
				if err != nil {
					t.Fatalf("%s: %v", what, err)
				}
				liveOf(t, w.io, sn)
				for _, e := range liveEntriesOf(t, w.io, sn) {
					if _, err := w.io.Stat(ctx, workDir+"/bucket-0/"+e.File.Name); err != nil {
						t.Fatalf("%s: %v", what, err)
					}
				}
			}
			if _, err := s.Expire(ctx, o); err != nil {
				t.Fatalf("%s: again: %v", what, err)
			}
		}
		if ids, _ := s.Snapshots("").IDs(ctx); !slices.Equal(ids, []int64{5, 6}) {
			t.Fatalf("%s: snapshots %v", what, ids)
		}
		filesExist(t, w.io, what)
	}
}
