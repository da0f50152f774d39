package table

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

func entries(es ...manifest.Entry) []manifest.Entry { return es }

func TestConflictRemoved(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewMem(), appendTable(t, nil))
	s := w.open()
	a, b, c, d := w.fake(nil, 0, 0, 9), w.fake(nil, 0, 0, 9), w.fake(nil, 0, 0, 9), w.fake(nil, 0, 0, 9)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(a, b)})
	id := mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 1, Files: entries(removal(a), c)})
	if sn, _ := s.Snapshots("").Get(ctx, id); sn.CommitKind != "OVERWRITE" {
		t.Errorf("a commit that removes files is %s", sn.CommitKind)
	}
	for _, kind := range []commit.Kind{commit.Append, commit.Overwrite, commit.Compact} {
		_, err := s.Commit(ctx, commit.Changes{Kind: kind, Base: 1, Files: entries(removal(a), d)})
		wantConflict(t, err, "removed by another commit")
	}
	// The same file again is wrong too, and what a commit says of itself.
	_, err := s.Commit(ctx, commit.Changes{Kind: commit.Compact, Base: 2, Files: entries(removal(b), c)})
	wantConflict(t, err, "added already")
	if _, err = s.Commit(ctx, commit.Changes{Kind: commit.Compact, Base: 2, Files: entries(removal(b), b)}); err == nil || !strings.Contains(err.Error(), "adds and removes") {
		t.Errorf("adding and removing one file: %v", err)
	}
	if got := liveNames(t, w.io, 0); !slices.Equal(got, namesOf(b, c)) {
		t.Errorf("live: %v", got)
	}
	// A compaction of what is there, after an append by another.
	mustCommit(t, w.open(), commit.Changes{Kind: commit.Append, Files: entries(d)})
	e := w.fake(nil, 0, 0, 19)
	mustCommit(t, s, commit.Changes{Kind: commit.Compact, Base: 2, Files: entries(removal(b), removal(c), e)})
	if got := liveNames(t, w.io, 0); !slices.Equal(got, namesOf(d, e)) {
		t.Errorf("live: %v", got)
	}
	same(t, w.io, s)
	noOrphans(t, w.io)
}

func TestConflictBuckets(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewMem(), keyTable(t, nil))
	s := w.open()
	two := w.fake(nil, 0, 1, 2)
	four := w.fake(nil, 0, 3, 4)
	four.TotalBuckets = 4
	both := w.fake(nil, 1, 3, 4)
	if _, err := s.Commit(ctx, commit.Changes{Kind: commit.Append, Files: entries(four, both)}); err == nil || !strings.Contains(err.Error(), "buckets") {
		t.Errorf("two bucket counts in one commit: %v", err)
	}
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(two)})
	_, err := s.Commit(ctx, commit.Changes{Kind: commit.Append, Base: 0, Files: entries(four)})
	wantConflict(t, err, "buckets")
	_, err = s.Commit(ctx, commit.Changes{Kind: commit.Compact, Base: 1, Files: entries(four)})
	wantConflict(t, err, "buckets")
	mustCommit(t, s, commit.Changes{Base: 1, Files: entries(four), Overwrite: &commit.Replacement{}})
	if got := liveNames(t, w.io, 0); !slices.Equal(got, namesOf(four)) {
		t.Errorf("live: %v", got)
	}
	_, err = s.Commit(ctx, commit.Changes{Kind: commit.Append, Base: 1, Files: entries(both)})
	wantConflict(t, err, "buckets")
}

func TestConflictLevels(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewMem(), keyTable(t, nil))
	s := w.open()
	a, b, c, d := w.fake(nil, 0, 1, 10), w.fake(nil, 0, 5, 20), w.fake(nil, 0, 30, 40), w.fake(nil, 1, 1, 99)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(a, b, c, d)})
	up := func(e manifest.Entry, level int32) []manifest.Entry { return entries(removal(e), atLevel(e, level)) }
	mustCommit(t, s, commit.Changes{Kind: commit.Compact, Base: 1, Files: up(a, 5)})
	_, err := s.Commit(ctx, commit.Changes{Kind: commit.Compact, Base: 1, Files: up(b, 5)})
	wantConflict(t, err, "overlap")
	mustCommit(t, s, commit.Changes{Kind: commit.Compact, Base: 1, Files: up(b, 4)})
	mustCommit(t, s, commit.Changes{Kind: commit.Compact, Base: 1, Files: slices.Concat(up(c, 5), up(d, 5))})
	if got := liveNames(t, w.io, 0); !slices.Equal(got, namesOf(a, b, c, d)) {
		t.Errorf("live: %v", got)
	}
	same(t, w.io, s)
}

// dvEntry is an index file with the deletion vectors of some data files.
func (w *workbench) dvEntry(name string, files ...manifest.Entry) manifest.IndexEntry {
	e := manifest.IndexEntry{Partition: make([]byte, 8), Type: "DELETION_VECTORS", Name: name, Size: 7, Rows: int64(len(files))}
	for i, f := range files {
		e.DVs = append(e.DVs, manifest.DeletionVectorMeta{DataFile: f.File.Name, Offset: int32(1 + 30*i), Length: 22, Cardinality: int64(i + 1)})
	}
	if err := w.io.Put(context.Background(), workDir+"/index/"+name, []byte("content")); err != nil {
		w.t.Fatal(err)
	}
	return e
}

func gone(e manifest.IndexEntry) manifest.IndexEntry { e.Kind = manifest.Delete; return e }

func TestConflictVectors(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewMem(), appendTable(t, map[string]string{"deletion-vectors.enabled": "true"}))
	s := w.open()
	a, b := w.fake(nil, 0, 0, 9), w.fake(nil, 0, 0, 9)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(a, b)})
	v1 := w.dvEntry("index-1", a)
	id := mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 1, Indexes: []manifest.IndexEntry{v1}})
	if sn, _ := s.Snapshots("").Get(ctx, id); sn.CommitKind != "OVERWRITE" || sn.IndexManifest == "" {
		t.Errorf("a commit of deletion vectors: %+v", sn)
	}
	c := w.fake(nil, 0, 0, 18)
	for name, ch := range map[string]commit.Changes{
		"another vector for the file":    {Kind: commit.Append, Indexes: []manifest.IndexEntry{w.dvEntry("index-2", a)}},
		"a rewrite that knows no vector": {Kind: commit.Compact, Files: entries(removal(a), removal(b), c)},
		"a rewrite of a lost vector":     {Kind: commit.Compact, Files: entries(removal(a), c), Indexes: []manifest.IndexEntry{gone(w.dvEntry("index-0", a))}},
	} {
		ch.Base = 1
		_, err := s.Commit(ctx, ch)
		var x *commit.ConflictError
		if !errors.As(err, &x) {
			t.Errorf("%s: %v", name, err)
		}
	}
	v2 := w.dvEntry("index-3", b, a)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 2, Indexes: []manifest.IndexEntry{gone(v1), v2}})
	// Plain appends carry the index manifest on.
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 3, Files: entries(w.fake(nil, 0, 0, 0))})
	v3 := w.dvEntry("index-4", b)
	mustCommit(t, s, commit.Changes{Kind: commit.Compact, Base: 4, Files: entries(removal(a), c), Indexes: []manifest.IndexEntry{gone(v2), v3}})
	sn, err := w.open().Snapshots("").Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	es, err := s.Env().Manifests.Index(ctx, w.io, workDir+"/manifest/"+sn.IndexManifest)
	if err != nil || len(es) != 1 || es[0].Name != "index-4" {
		t.Errorf("%+v, %v", es, err)
	}
	mustCommit(t, s, commit.Changes{Kind: commit.Overwrite, Base: 5, Overwrite: &commit.Replacement{}})
	if sn, _ := w.open().Snapshots("").Latest(ctx); sn.IndexManifest != "" || *sn.TotalRecordCount != 0 {
		t.Errorf("%+v", sn)
	}
}

func TestOverwrite(t *testing.T) {
	ctx := context.Background()
	sch := tableSchema(t, nil, nil, "p STRING", "v INT")
	sch.PartitionKeys = []string{"p"}
	w := newWork(t, fileio.NewMem(), sch)
	s := w.open()
	pt := []types.Type{sch.Fields[0].Type}
	img := func(v types.Datum) []byte { return newBuilt(t, sch).image(pt, []types.Datum{v}) }
	x, y, z := img("x"), img("a long partition name"), img(nil)
	a, b, c := w.fake(x, 0, 0, 9), w.fake(y, 0, 0, 9), w.fake(z, 0, 0, 9)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(a, b, c)})
	late := w.fake(x, 0, 0, 9)
	mustCommit(t, w.open(), commit.Changes{Kind: commit.Append, Files: entries(late)}) // seen at commit only
	d := w.fake(x, 0, 0, 9)
	id := mustCommit(t, s, commit.Changes{Base: 1, Files: entries(d), Overwrite: &commit.Replacement{Dynamic: true}})
	if got := liveNames(t, w.io, 0); id != 3 || !slices.Equal(got, namesOf(b, c, d)) {
		t.Errorf("dynamic: snapshot %d, %v", id, got)
	}
	if id := mustCommit(t, s, commit.Changes{Base: 3, Overwrite: &commit.Replacement{Dynamic: true}}); id != 3 {
		t.Errorf("dynamic with nothing published snapshot %d", id)
	}
	e := w.fake(z, 0, 0, 3)
	mustCommit(t, s, commit.Changes{Base: 3, Files: entries(e), Overwrite: &commit.Replacement{Partitions: [][]byte{y, z}}})
	if got := liveNames(t, w.io, 0); !slices.Equal(got, namesOf(d, e)) {
		t.Errorf("static: %v", got)
	}
	// A transaction that rewrote a file and then replaced its partition.
	ch, dropped := commit.Merge(
		commit.Changes{Kind: commit.Append, Base: 4, Files: entries(removal(d), w.fake(x, 0, 0, 1), w.fake(y, 0, 0, 1))},
		commit.Changes{Kind: commit.Overwrite, Base: 4, Files: entries(a), Overwrite: &commit.Replacement{Partitions: [][]byte{x}}})
	if len(dropped) != 1 || len(ch.Files) != 2 {
		t.Fatalf("merged: %d files, %d dropped", len(ch.Files), len(dropped))
	}
	mustCommit(t, s, ch)
	if got := liveNames(t, w.io, 0); !slices.Equal(got, namesOf(a, e, ch.Files[0])) {
		t.Errorf("merged: %v", got)
	}
	mustCommit(t, s, commit.Changes{Base: 5, Overwrite: &commit.Replacement{}, Operation: "TRUNCATE"})
	sn, _ := w.open().Snapshots("").Latest(ctx)
	if got := liveNames(t, w.io, 0); len(got) > 0 || sn.CommitKind != "OVERWRITE" || sn.Operation != "TRUNCATE" {
		t.Errorf("truncated: %v, %+v", got, sn)
	}
	same(t, w.io, s)
	noOrphans(t, w.io)
}

func TestReadConflicts(t *testing.T) {
	ctx := context.Background()
	for _, k := range []string{"BIGINT", "INT", "STRING"} {
		t.Run(k, func(t *testing.T) {
			sch := tableSchema(t, map[string]string{"bucket": "2"}, []string{"k"}, "k "+k, "v STRING")
			w := newWork(t, fileio.NewMem(), sch)
			s := w.open()
			key := func(n int64) types.Datum {
				if k == "STRING" {
					return "a key with number " + string(rune('a'+n%26)) + string(rune('a'+n/26))
				}
				return n
			}
			r := func(seq, n int64) row { return row{seq, 0, []types.Datum{key(n), "v"}} }
			codec := mergetree.NewKeyCodec([]types.Type{sch.Fields[0].Type})
			reads := func(bucket int32, ns ...int64) *commit.ReadSet {
				set := &commit.ReadSet{Keys: map[commit.BucketID][][]byte{}}
				id := commit.BucketID{Partition: string(make([]byte, 8)), Bucket: bucket}
				for _, n := range ns {
					set.Keys[id] = append(set.Keys[id], codec.Append(nil, []types.Datum{key(n)}))
				}
				slices.SortFunc(set.Keys[id], slices.Compare)
				return set
			}
			mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(w.real(0, 0, r(0, 1), r(1, 5), r(2, 9)))})
			f := w.real(0, 0, r(3, 2), r(4, 5), r(5, 20))
			mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 1, Files: entries(f)})
			check := func(base int64, set *commit.ReadSet) error {
				id, err := w.open().CheckReads(ctx, "", base, set)
				if err == nil && id < 2 {
					t.Errorf("newest is %d", id)
				}
				return err
			}
			for _, c := range []struct {
				set *commit.ReadSet
				hit bool
			}{
				{reads(0, 5), true}, {reads(0, 2), true}, {reads(0, 20), true}, {reads(0, 0, 1, 3, 5, 19), true},
				{reads(0, 0, 1, 3, 4, 6, 19, 21, 25), false}, {reads(0, 21), false}, {reads(1, 5), false}, {reads(0), false},
				{&commit.ReadSet{All: true}, true}, {nil, false},
			} {
				if err := check(1, c.set); (err != nil) != c.hit {
					t.Errorf("%+v: %v", c.set, err)
				} else if err != nil {
					wantConflict(t, err, "")
				}
			}
			if err := check(2, &commit.ReadSet{All: true}); err != nil {
				t.Error(err)
			}
			// A compaction touches no key; what it removes was read, though.
			mustCommit(t, s, commit.Changes{Kind: commit.Compact, Base: 2, Files: entries(removal(f), w.real(1, 0, r(3, 2), r(4, 5), r(5, 20)))})
			if err := check(2, reads(0, 5)); err != nil {
				t.Error(err)
			}
			if err := check(2, &commit.ReadSet{All: true}); err != nil {
				t.Error(err)
			}
			wantConflict(t, check(2, &commit.ReadSet{Files: []string{"bucket-0/" + f.File.Name}}), "rewritten")
			// The check is part of the commit, and an overwrite takes keys away.
			_, err := s.Commit(ctx, commit.Changes{Kind: commit.Append, Base: 1, Files: entries(w.real(0, 0, r(6, 5))), Reads: reads(0, 5)})
			wantConflict(t, err, "changed")
			mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 3, Files: entries(w.real(0, 0, r(6, 7))), Reads: reads(0, 5)})
			mustCommit(t, s, commit.Changes{Base: 4, Overwrite: &commit.Replacement{}})
			wantConflict(t, check(4, reads(0, 20)), "changed")
			if err := check(4, reads(0, 21)); err != nil {
				t.Error(err)
			}
			wantConflict(t, check(99, reads(0, 21)), "gone")
			// What is not known is a conflict.
			if err := w.io.Delete(ctx, workDir+"/snapshot/snapshot-2"); err != nil {
				t.Fatal(err)
			}
			wantConflict(t, check(1, reads(0, 100)), "expired")
		})
	}
}

func TestReadVectors(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewMem(), appendTable(t, map[string]string{"deletion-vectors.enabled": "true"}))
	s := w.open()
	a, b := w.fake(nil, 0, 0, 9), w.fake(nil, 0, 0, 9)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(a, b)})
	v := w.dvEntry("index-1", a)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 1, Indexes: []manifest.IndexEntry{v}})
	_, err := s.CheckReads(ctx, "", 1, &commit.ReadSet{Files: []string{a.File.Name}})
	wantConflict(t, err, "deleted")
	if _, err := s.CheckReads(ctx, "", 1, &commit.ReadSet{Files: []string{b.File.Name}}); err != nil {
		t.Error(err)
	}
	// The vector of a moves to another index file, with its rows.
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 2, Indexes: []manifest.IndexEntry{gone(v), w.dvEntry("index-2", a, b)}})
	if _, err := s.CheckReads(ctx, "", 2, &commit.ReadSet{Files: []string{a.File.Name}}); err != nil {
		t.Error(err)
	}
	_, err = s.CheckReads(ctx, "", 2, &commit.ReadSet{Files: []string{b.File.Name}})
	wantConflict(t, err, "deleted")
}

func TestLostReply(t *testing.T) {
	ctx := context.Background()
	broken := errors.New("connection lost")
	for _, c := range []struct {
		name  string
		rules []fileio.Rule
		want  func(error) bool
		files int // that live afterwards
		ids   int
	}{
		{"done, reply lost", []fileio.Rule{{Op: "put-if-absent", Err: broken, After: true, Nth: 1}}, func(err error) bool { return err == nil }, 1, 1},
		{"not done", []fileio.Rule{{Op: "put-if-absent", Err: broken, Nth: 1}}, func(err error) bool { return errors.Is(err, broken) }, 0, 0},
		{"not known", []fileio.Rule{{Op: "put-if-absent", Err: broken, After: true, Nth: 1}, {Op: "read", Path: "snapshot-1", Err: broken}}, func(err error) bool {
			var u *commit.UnknownOutcomeError
			return errors.As(err, &u) && u.SnapshotID == 1 && errors.Is(err, broken)
		}, 1, 1},
		{"sync fails", []fileio.Rule{{Op: "sync", Err: syscall.EIO, Nth: 1}}, func(err error) bool { return errors.Is(err, syscall.EIO) }, 0, 0},
		{"hint fails", []fileio.Rule{{Op: "put", Path: "LATEST", Err: broken}}, func(err error) bool { return err == nil }, 1, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := fileio.NewFault(fileio.NewMem())
			w := newWork(t, f, appendTable(t, nil))
			e := w.fake(nil, 0, 0, 9)
			s := w.open()
			for _, r := range c.rules {
				f.Add(r)
			}
			_, err := s.Commit(ctx, commit.Changes{Kind: commit.Append, Files: entries(e)})
			if !c.want(err) {
				t.Fatalf("%v", err)
			}
			f.Clear()
			if ids, _ := w.open().Snapshots("").IDs(ctx); len(ids) != c.ids || len(liveNames(t, f, 0)) != c.files {
				t.Errorf("%d snapshots, %d files", len(ids), len(liveNames(t, f, 0)))
			}
			noOrphans(t, f)
			if id := mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(w.fake(nil, 0, 0, 9))}); id != int64(c.ids)+1 {
				t.Errorf("next is %d", id)
			}
		})
	}
}

// TestStolenID lets another writer take the id between our look and our link, and
// answers with an error instead of ErrExist.
func TestStolenID(t *testing.T) {
	mem := fileio.NewMem()
	w := newWork(t, mem, appendTable(t, nil))
	a, b := w.fake(nil, 0, 0, 9), w.fake(nil, 0, 0, 9)
	other := w.open()
	th := &thief{FileIO: mem, act: func() { mustCommit(t, other, commit.Changes{Kind: commit.Append, Files: entries(b)}) }}
	env := NewEnv(th, EnvOptions{VerdictRows: 1})
	t.Cleanup(env.Close)
	if id := mustCommit(t, Open(env, workDir), commit.Changes{Kind: commit.Append, Files: entries(a)}); id != 2 {
		t.Errorf("snapshot %d", id)
	}
	if got := liveNames(t, mem, 0); !slices.Equal(got, namesOf(a, b)) {
		t.Errorf("%v", got)
	}
	noOrphans(t, mem)
}

// thief runs act before the first Publish, which then fails.
type thief struct {
	fileio.FileIO
	act func()
}

func (f *thief) Publish(ctx context.Context, p string, data []byte, needs ...string) error {
	if act := f.act; act != nil {
		f.act = nil
		act()
		return errors.New("connection lost")
	}
	return f.FileIO.Publish(ctx, p, data, needs...)
}

// late is an object store that gives no answer and has stored nothing so far.
type late struct{ fileio.FileIO }

func (f late) Publish(_ context.Context, p string, _ []byte, _ ...string) error {
	return &fileio.UncertainError{Path: p, Err: errors.New("connection lost")}
}

// TestCommitMayStillLand: where the snapshot may appear later, what it names stays
// and nobody says that the commit failed.
func TestCommitMayStillLand(t *testing.T) {
	ctx := context.Background()
	mem := fileio.NewMem()
	w := newWork(t, mem, appendTable(t, nil))
	w.io = late{mem}
	_, err := w.open().Commit(ctx, commit.Changes{Kind: commit.Append, Files: entries(w.fake(nil, 0, 1, 1))})
	var u *commit.UnknownOutcomeError
	if !errors.As(err, &u) || u.SnapshotID != 1 {
		t.Errorf("%v", err)
	}
	if es, err := mem.List(ctx, workDir+"/manifest"); err != nil || len(es) != 3 {
		t.Errorf("%d metadata files are left: %v", len(es), err)
	}
}

func TestExactlyOnce(t *testing.T) {
	w := newWork(t, fileio.NewMem(), keyTable(t, nil))
	s := w.open()
	ch := func(id int64, kind commit.Kind) commit.Changes {
		return commit.Changes{Kind: kind, User: "u", Identifier: id, Files: entries(w.fake(nil, 0, id, id))}
	}
	for i, c := range []struct {
		ch   commit.Changes
		want int64
	}{
		{ch(1, commit.Append), 1},
		{ch(1, commit.Append), 1}, // replayed
		{ch(1, commit.Compact), 2},
		{ch(2, commit.Append), 3},
		{commit.Changes{Kind: commit.Append, Files: entries(w.fake(nil, 0, 1, 1))}, 4},
		{ch(1, commit.Compact), 2},
		{ch(2, commit.Append), 3},
		{ch(3, commit.Append), 5},
		{commit.Changes{Kind: commit.Append, User: "batch", Identifier: math.MaxInt64, Files: entries(w.fake(nil, 0, 1, 1))}, 6},
		{commit.Changes{Kind: commit.Append, User: "batch", Identifier: math.MaxInt64, Files: entries(w.fake(nil, 0, 1, 1))}, 7},
	} {
		st := s
		if i%2 == 1 {
			st = w.open()
		}
		if got := mustCommit(t, st, c.ch); got != c.want {
			t.Errorf("commit %d is snapshot %d, not %d", i, got, c.want)
		}
	}
	noOrphans(t, w.io)
}

func TestSnapshotFields(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewMem(), appendTable(t, map[string]string{"row-tracking.enabled": "true"}))
	s := w.open()
	mark := func(n int64) *int64 { return &n }
	file := func(rows int64) manifest.Entry {
		e := w.fake(nil, 0, 0, rows-1)
		e.File.MinSequence, e.File.MaxSequence = 0, 0
		return e
	}
	a, b := file(10), file(3)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(a, b), Watermark: mark(100), Properties: map[string]string{"k": "v"}})
	c := file(5)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 1, Files: entries(c), Watermark: mark(50)})
	if err := w.io.Put(ctx, workDir+"/statistics/stat-1", []byte(`{"snapshotId":2,"schemaId":0}`)); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, commit.Changes{Kind: commit.Analyze, Base: 2, Statistics: "stat-1"})
	mustCommit(t, w.open(), commit.Changes{Kind: commit.Append, Base: 3, Force: true})
	sn, err := w.open().Snapshots("").Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if sn.ID != 4 || *sn.Watermark != 100 || sn.Statistics != "stat-1" || *sn.NextRowID != 18 || *sn.TotalRecordCount != 18 || sn.Properties != nil {
		t.Errorf("%+v", sn)
	}
	first := map[string][2]int64{}
	for _, e := range liveEntriesOf(t, w.io, sn) {
		first[e.File.Name] = [2]int64{e.File.FirstRowID, e.File.MinSequence}
	}
	if first[a.File.Name] != [2]int64{0, 1} || first[b.File.Name] != [2]int64{10, 1} || first[c.File.Name] != [2]int64{13, 2} {
		t.Errorf("row ids and sequence numbers %v", first)
	}
	// Statistics of an older schema are not inherited.
	n := *w.sch
	n.ID, n.Fields = 1, slices.Clone(n.Fields)
	w.putSchema(&n)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 4, Files: entries(file(1))})
	if sn, _ := w.open().Snapshots("").Latest(ctx); sn.SchemaID != 1 || sn.Statistics != "" {
		t.Errorf("%+v", sn)
	}
	for k, v := range map[string]string{"manifest.format": "orc", "data-evolution.enabled": "true", "write.sequence-number-init-mode": "snapshot"} {
		w := newWork(t, fileio.NewMem(), appendTable(t, map[string]string{k: v}))
		_, err := w.open().Commit(ctx, commit.Changes{Kind: commit.Append, Files: entries(w.fake(nil, 0, 0, 0))})
		var un *fileio.UnsupportedError
		if !errors.As(err, &un) {
			t.Errorf("%s: %v", k, err)
		}
	}
}
