package table

import (
	"context"
	"errors"
	"reflect"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// TestRowIDsRace: a commit that lost a race counts its rows anew from where the winner
// left off, partition by partition.
func TestRowIDsRace(t *testing.T) {
	ctx := context.Background()
	sch := appendTable(t, map[string]string{"row-tracking.enabled": "true"})
	w := newWork(t, fileio.NewMem(), sch)
	file := func(rows int64) manifest.Entry {
		e := w.fake(nil, 0, 0, rows-1)
		e.File.MinSequence, e.File.MaxSequence = 0, 0
		return e
	}
	a, b, c := file(4), file(3), file(2)
	other := w.open()
	env := NewEnv(&thief{FileIO: w.io, act: func() { mustCommit(t, other, commit.Changes{Kind: commit.Append, Files: entries(a)}) }}, EnvOptions{})
	t.Cleanup(env.Close)
	mustCommit(t, Open(env, workDir), commit.Changes{Kind: commit.Append, Files: entries(b, c)})
	sn, err := w.open().Snapshots("").Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if sn.ID != 2 || *sn.NextRowID != 9 {
		t.Errorf("snapshot %d, next row id %d", sn.ID, *sn.NextRowID)
	}
	got := map[string][3]int64{}
	for _, e := range liveEntriesOf(t, w.io, sn) {
		got[e.File.Name] = [3]int64{e.File.FirstRowID, e.File.MinSequence, e.File.MaxSequence}
	}
	want := map[string][3]int64{a.File.Name: {0, 1, 1}, b.File.Name: {4, 2, 2}, c.File.Name: {7, 2, 2}}
	if !reflect.DeepEqual(got, want) {
		t.Errorf("first row ids and sequence numbers %v, want %v", got, want)
	}
}

// TestGlobalIndexStays: a global index entry lives through every commit that leaves its
// rows alone, byte by byte, and none else is made.
func TestGlobalIndexStays(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewMem(), appendTable(t, map[string]string{"row-tracking.enabled": "true", "deletion-vectors.enabled": "true"}))
	s := w.open()
	a := w.fake(nil, 0, 0, 9)
	a.File.MinSequence, a.File.MaxSequence = 0, 0
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(a)})
	entry := manifest.IndexEntry{
		Type: "btree", Name: "btree-global-index-1.index", Size: 3, Rows: 10,
		Global: &manifest.GlobalIndex{RowRangeStart: 0, RowRangeEnd: 9, FieldID: 0, ExtraFieldIDs: []int32{1}, Meta: []byte{1, 2}, SourceMeta: []byte{3}},
	}
	if err := w.io.Put(ctx, workDir+"/index/"+entry.Name, []byte("abc")); err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 1, Indexes: []manifest.IndexEntry{entry}})
	index := func() []manifest.IndexEntry {
		t.Helper()
		sn, err := w.open().Snapshots("").Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if sn.IndexManifest == "" {
			return nil
		}
		env := NewEnv(w.io, EnvOptions{})
		defer env.Close()
		es, err := env.Manifests.Index(ctx, w.io, workDir+"/manifest/"+sn.IndexManifest)
		if err != nil {
			t.Fatal(err)
		}
		return es
	}
	same := func(what string) {
		t.Helper()
		es := index()
		if len(es) != 1 || es[0].Name != entry.Name || !reflect.DeepEqual(es[0].Global, entry.Global) || es[0].Size != 3 || es[0].Rows != 10 {
			t.Fatalf("%s: index entries %+v", what, es)
		}
	}
	same("index")
	b := w.fake(nil, 0, 0, 4)
	mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 2, Files: entries(b)})
	same("append")
	// Rewriting, compacting and deleting by vectors are refused by name, whoever asks.
	live := liveEntry(t, w, a.File.Name)
	del := live
	del.Kind = manifest.Delete
	for what, c := range map[string]commit.Changes{
		"rewrite": {Kind: commit.Overwrite, Files: entries(del, w.fake(nil, 0, 0, 8))},
		"compact": {Kind: commit.Compact, Files: entries(del, w.fake(nil, 0, 0, 9))},
		"vectors": {Kind: commit.Overwrite, Indexes: []manifest.IndexEntry{w.dvEntry("index-dv", live)}},
	} {
		c.Base = 3
		_, err := w.open().Commit(ctx, c)
		var un *fileio.UnsupportedError
		if !errors.As(err, &un) {
			t.Errorf("%s: %v", what, err)
		}
	}
	same("refused")
	if _, err := s.Expire(ctx, ExpireOptions{RetainMax: 1, RetainMin: 1, OlderThan: time.Now().Add(time.Hour)}); err != nil {
		t.Fatal(err)
	}
	same("expire")
	if _, err := w.io.Stat(ctx, workDir+"/index/"+entry.Name); err != nil {
		t.Errorf("the index file is gone: %v", err)
	}
	// With all of its rows an index goes.
	mustCommit(t, s, commit.Changes{Kind: commit.Overwrite, Base: 3, Files: entries(w.fake(nil, 0, 0, 1)), Overwrite: &commit.Replacement{}})
	if es := index(); len(es) != 0 {
		t.Errorf("index entries after all rows were replaced: %+v", es)
	}
}

// liveEntry is the entry of a live file.
func liveEntry(t *testing.T, w *workbench, name string) manifest.Entry {
	t.Helper()
	sn, err := w.open().Snapshots("").Latest(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range liveEntriesOf(t, w.io, sn) {
		if e.File.Name == name {
			return e
		}
	}
	t.Fatalf("no file %s", name)
	return manifest.Entry{}
}
