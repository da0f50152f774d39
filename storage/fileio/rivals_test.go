package fileio

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/google/uuid"
)

// renamer publishes as Java's LocalFileIO does, in steps.
type renamer struct{ tmp, target string }

func beginRename(t testing.TB, dir, name string) renamer {
	t.Helper()
	r := renamer{filepath.Join(dir, "."+name+"."+uuid.NewString()+".tmp"), filepath.Join(dir, name)}
	if err := os.WriteFile(r.tmp, []byte("theirs"), 0o644); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r renamer) taken() bool { _, err := os.Stat(r.target); return err == nil }

func (r renamer) rename(t testing.TB) {
	t.Helper()
	if err := os.Rename(r.tmp, r.target); err != nil {
		t.Fatal(err)
	}
}

func content(t testing.TB, path string) string {
	t.Helper()
	b, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// TestRenamerGoesFirst: who has its temporary file there already is waited for.
func TestRenamerGoesFirst(t *testing.T) {
	for _, known := range []bool{false, true} { // the directory is watched already
		dir := t.TempDir()
		l := NewLocal(dir)
		if known {
			if err := l.PutIfAbsent(context.Background(), "snapshot-1", nil); err != nil {
				t.Fatal(err)
			}
		}
		r := beginRename(t, dir, "snapshot-2")
		if r.taken() {
			t.Fatal("there")
		}
		beginRename(t, dir, "snapshot-3") // of no concern
		waits := 0
		l.rivals.waiting = func() { waits++; r.rename(t) }
		if err := l.PutIfAbsent(context.Background(), "snapshot-2", []byte("ours")); !errors.Is(err, ErrExist) || errors.Is(err, ErrOvertaken) {
			t.Errorf("%v", err)
		}
		if got := content(t, r.target); got != "theirs" || waits != 1 {
			t.Errorf("%s there after %d waits", got, waits)
		}
	}
}

// TestRenamerOvertakes: one that came in between is waited for too, and noticed.
func TestRenamerOvertakes(t *testing.T) {
	dir := t.TempDir()
	l := NewLocal(dir)
	var r renamer
	l.linked = func() { r = beginRename(t, dir, "snapshot-1") } // looked before the link, as it were
	l.rivals.waiting = func() { r.rename(t) }
	if err := l.PutIfAbsent(context.Background(), "snapshot-1", []byte("ours")); !errors.Is(err, ErrOvertaken) || !errors.Is(err, ErrExist) {
		t.Errorf("%v", err)
	}
	// One that was faster than the look.
	l.linked = func() { beginRename(t, dir, "snapshot-2").rename(t) }
	l.rivals.waiting = func() { t.Error("nobody to wait for") }
	if err := l.PutIfAbsent(context.Background(), "snapshot-2", []byte("ours")); !errors.Is(err, ErrOvertaken) {
		t.Errorf("%v", err)
	}
	// One that sees that the name is taken.
	l.linked = func() { r = beginRename(t, dir, "snapshot-3") }
	l.rivals.waiting = func() {
		if !r.taken() {
			t.Error("free")
		}
		if err := os.Remove(r.tmp); err != nil {
			t.Error(err)
		}
	}
	if err := l.PutIfAbsent(context.Background(), "snapshot-3", []byte("ours")); err != nil || content(t, r.target) != "ours" {
		t.Errorf("%v", err)
	}
}

// TestRenamerIsGone: the temporary file of a process that is gone is waited for
// once, a cancelled commit waits for nobody, and processes that link for none.
func TestRenamerIsGone(t *testing.T) {
	dir := t.TempDir()
	l := NewLocal(dir)
	waits := 0
	l.rivals.patience = 20 * time.Millisecond
	l.rivals.waiting = func() { waits++ }
	if err := l.PutIfAbsent(context.Background(), "x", nil); err != nil {
		t.Fatal(err)
	}
	beginRename(t, dir, "snapshot-1")
	if err := l.PutIfAbsent(context.Background(), "snapshot-1", []byte("ours")); err != nil || waits != 1 {
		t.Errorf("%v after %d waits", err, waits)
	}
	if err := l.PutIfAbsent(context.Background(), "snapshot-1", []byte("ours")); !errors.Is(err, ErrExist) || waits != 1 {
		t.Errorf("%v after %d waits", err, waits)
	}
	l.rivals.patience = time.Hour
	ctx, cancel := context.WithCancel(context.Background())
	l.rivals.waiting = func() { waits++; cancel() }
	beginRename(t, dir, "snapshot-2")
	if err := l.PutIfAbsent(ctx, "snapshot-2", nil); err != nil && !errors.Is(err, context.Canceled) || waits < 2 {
		t.Errorf("%v after %d waits", err, waits)
	}
	l.rivals.waiting = func() { t.Error("waits for a process that links") }
	if _, err := writeTemp(filepath.Join(dir, "snapshot-3"), nil); err != nil {
		t.Fatal(err)
	}
	if err := l.PutIfAbsent(context.Background(), "snapshot-3", nil); err != nil {
		t.Error(err)
	}
}

// TestRivalsFollowDirectories: a directory that takes the place of another is looked
// at anew, and more of them than are watched at a time do no harm.
func TestRivalsFollowDirectories(t *testing.T) {
	root := t.TempDir()
	l := NewLocal(root)
	ctx := context.Background()
	for i := range 520 { // more than are watched at a time
		if err := l.PutIfAbsent(ctx, fmt.Sprintf("t%d/snapshot-1", i), nil); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"t0", "t519"} {
		if err := os.Rename(filepath.Join(root, dir), filepath.Join(root, "old"+dir)); err != nil {
			t.Fatal(err)
		}
		if err := os.Mkdir(filepath.Join(root, dir), 0o755); err != nil {
			t.Fatal(err)
		}
		for _, d := range []string{dir, "old" + dir} {
			r := beginRename(t, filepath.Join(root, d), "snapshot-2")
			l.rivals.waiting = func() { r.rename(t) }
			if err := l.PutIfAbsent(ctx, d+"/snapshot-2", nil); !errors.Is(err, ErrExist) {
				t.Errorf("%s: %v", d, err)
			}
		}
	}
}

// TestRenamersRace publishes names against a writer that looks and renames just when
// our temporary file is there: no name that we were told is ours is another's.
func TestRenamersRace(t *testing.T) {
	l := NewLocal(t.TempDir())
	ours, overtaken := 0, 0
	for i := range 300 {
		dir := filepath.Join(l.Root(), fmt.Sprint(i))
		if err := os.Mkdir(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		wg.Go(func() {
			for {
				if names, err := os.ReadDir(dir); err != nil || len(names) > 0 {
					break
				}
				runtime.Gosched()
			}
			for range i * 1000 % 50000 { // now earlier, now later
				runtime.Gosched()
			}
			r := beginRename(t, dir, "snapshot-1")
			if r.taken() {
				_ = os.Remove(r.tmp)
				return
			}
			for range i % 7 {
				runtime.Gosched()
			}
			r.rename(t)
		})
		err := l.PutIfAbsent(context.Background(), fmt.Sprint(i, "/snapshot-1"), []byte("ours"))
		wg.Wait()
		switch got := content(t, filepath.Join(dir, "snapshot-1")); {
		case err == nil && got != "ours":
			t.Errorf("%d is said to be ours and holds %s", i, got)
		case err == nil:
			ours++
		case errors.Is(err, ErrOvertaken):
			overtaken++
			fallthrough
		case errors.Is(err, ErrExist):
			if got != "theirs" {
				t.Errorf("%d is said to be theirs and holds %s", i, got)
			}
		default:
			t.Error(err)
		}
	}
	t.Logf("%d ours, %d overtaken", ours, overtaken)
}

// BenchmarkPublish publishes into a directory that holds many names.
func BenchmarkPublish(b *testing.B) {
	dir := b.TempDir()
	for i := range 20000 {
		if err := os.WriteFile(filepath.Join(dir, fmt.Sprintf("snapshot-%d", i)), nil, 0o644); err != nil {
			b.Fatal(err)
		}
	}
	l := NewLocal(dir)
	for i := 0; b.Loop(); i++ {
		if err := l.PutIfAbsent(context.Background(), fmt.Sprintf("snapshot-%d", 20000+i), []byte("x")); err != nil {
			b.Fatal(err)
		}
	}
}
