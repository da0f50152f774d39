package snapshot

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

func put(t *testing.T, io fileio.FileIO, path, text string) {
	t.Helper()
	if err := io.Put(context.Background(), path, []byte(text)); err != nil {
		t.Fatal(err)
	}
}

func body(id int, millis int64, extra string) string {
	return fmt.Sprintf(`{ "version" : 3, "id" : %d, "schemaId" : 0, "baseManifestList" : "manifest-list-a-0", "deltaManifestList" : "manifest-list-a-1",
	"changelogManifestList" : null, "commitUser" : "u", "commitIdentifier" : 9223372036854775807, "commitKind" : "APPEND", "timeMillis" : %d, "logOffsets" : {}%s }`, id, millis, extra)
}

func TestManager(t *testing.T) {
	ctx := context.Background()
	io := fileio.NewMem()
	m := NewManager(io, "t")
	if s, err := m.Latest(ctx); s != nil || err != nil {
		t.Errorf("empty table: %v, %v", s, err)
	}
	var nf *NotFoundError
	if _, err := m.Get(ctx, 1); !errors.As(err, &nf) || nf.Latest != 0 {
		t.Errorf("empty table: %v", err)
	}
	for id := 3; id <= 7; id++ {
		put(t, io, m.Path(int64(id)), body(id, int64(id*1000), ""))
	}
	put(t, io, "t/snapshot/LATEST", "5") // stale
	put(t, io, "t/snapshot/EARLIEST", "1")
	if id, err := m.LatestID(ctx); id != 7 || err != nil {
		t.Errorf("latest %d, %v", id, err)
	}
	if id, err := m.EarliestID(ctx); id != 3 || err != nil {
		t.Errorf("earliest %d, %v", id, err)
	}
	put(t, io, "t/snapshot/LATEST", "9") // ahead of a rollback
	if s, err := m.Latest(ctx); err != nil || s.ID != 7 {
		t.Errorf("latest %v, %v", s, err)
	}
	put(t, io, "t/snapshot/LATEST", "x")
	if id, err := m.LatestID(ctx); id != 7 || err != nil {
		t.Errorf("latest %d, %v", id, err)
	}
	for ms, want := range map[int64]int64{3000: 3, 3999: 3, 5500: 5, 99999: 7} {
		if s, err := m.AtTime(ctx, ms); err != nil || s.ID != want {
			t.Errorf("at %d: %v, %v", ms, s, err)
		}
	}
	if _, err := m.AtTime(ctx, 2999); !errors.Is(err, ErrNotFound) {
		t.Errorf("before all: %v", err)
	}
	if _, err := m.Get(ctx, 2); !errors.As(err, &nf) || !nf.Expired || nf.Earliest != 3 || nf.Latest != 7 {
		t.Errorf("expired: %v", err)
	}
	if _, err := m.Get(ctx, 8); !errors.As(err, &nf) || nf.Expired {
		t.Errorf("future: %v", err)
	}
	// A rollback makes ids be used again.
	if s, _ := m.Get(ctx, 7); s.TimeMillis != 7000 {
		t.Error(s)
	}
	put(t, io, m.Path(7), body(7, 7777, ""))
	if s, err := m.Get(ctx, 7); err != nil || s.TimeMillis != 7777 {
		t.Errorf("after a rollback: %v, %v", s, err)
	}
}

func TestTags(t *testing.T) {
	ctx := context.Background()
	io := fileio.NewMem()
	m := NewManager(io, BranchRoot("t", "b1"))
	put(t, io, "t/branch/branch-b1/tag/tag-3", body(2, 1, `, "tagCreateTime" : [2026, 11, 30, 4, 56, 11, 28287772], "tagTimeRetained" : 129600.000000000`))
	put(t, io, "t/branch/branch-b1/tag/tag-old", body(1, 1, `, "unknown" : {"a":[1]}, "watermark" : -9223372036854775808`))
	put(t, io, m.Path(3), body(3, 1, `, "watermark" : 50`))
	s, err := m.Version(ctx, "3") // the tag shadows the snapshot
	if err != nil || s.ID != 2 {
		t.Fatal(s, err)
	}
	if at, ok := s.CreateTime(); !ok || !at.Equal(time.Date(2026, 11, 30, 4, 56, 11, 28287772, time.UTC)) {
		t.Error(at, ok)
	}
	if d, ok := s.Retained(); !ok || d != 36*time.Hour {
		t.Error(d, ok)
	}
	if s, err := m.Version(ctx, "watermark-40"); err != nil || s.ID != 3 {
		t.Error(s, err)
	}
	if s, err := m.Tag(ctx, "old"); err != nil || s.ID != 1 {
		t.Error(s, err)
	}
	for _, bad := range []string{"none", "", "../tag-old", "a/b"} {
		if _, err := m.Tag(ctx, bad); !errors.Is(err, ErrNotFound) {
			t.Errorf("tag %q: %v", bad, err)
		}
		if _, err := m.Version(ctx, bad); !errors.Is(err, ErrNotFound) {
			t.Errorf("version %q: %v", bad, err)
		}
	}
	if names, err := m.Tags(ctx); err != nil || fmt.Sprint(names) != "[3 old]" {
		t.Error(names, err)
	}
	if bs, err := Branches(ctx, io, "t"); err != nil || fmt.Sprint(bs) != "[b1]" {
		t.Error(bs, err)
	}
}

// TestPartialFile: a file that is filled after it was created is read again.
func TestPartialFile(t *testing.T) {
	ctx := context.Background()
	io := fileio.NewFault(fileio.NewMem())
	m := NewManager(io, "t")
	put(t, io, m.Path(1), body(1, 1, ""))
	io.Add(fileio.Rule{Op: "read", Path: "snapshot-1", Nth: 1, Truncate: 20})
	if s, err := m.Get(ctx, 1); err != nil || s.ID != 1 {
		t.Errorf("%v, %v", s, err)
	}
	io.Clear()
	put(t, io, m.Path(2), `{"version":3,"id":`)
	var ce *fileio.CorruptionError
	if _, err := m.Get(ctx, 2); !errors.As(err, &ce) || ce.Path != "t/snapshot/snapshot-2" {
		t.Errorf("a cut snapshot: %v", err)
	}
	put(t, io, m.Path(3), `{"version":4,"id":3,"baseManifestList":"a","deltaManifestList":"b"}`)
	var un *fileio.UnsupportedError
	if _, err := m.Get(ctx, 3); !errors.As(err, &un) {
		t.Errorf("a future version: %v", err)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(body(1, 1, "")))
	f.Add([]byte(body(1, 1, `, "tagCreateTime" : [1,2,3], "tagTimeRetained" : 1.5`)))
	f.Fuzz(func(t *testing.T, b []byte) {
		s, err := Parse(b)
		if err != nil {
			return
		}
		s.CreateTime()
		s.Retained()
		raw, err := Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(raw); err != nil {
			t.Fatalf("%s: %v", raw, err)
		}
	})
}
