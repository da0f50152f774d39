package fileio

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// TestContract runs the same story on every implementation.
func TestContract(t *testing.T) {
	local := NewLocal(t.TempDir())
	for name, io := range map[string]FileIO{
		"local": local, "mem": NewMem(), "fault": NewFault(NewMem()), "crash": NewCrash(),
	} {
		t.Run(name, func(t *testing.T) { contract(t, io) })
	}
}

func contract(t *testing.T, io FileIO) {
	ctx := context.Background()
	if _, err := io.Open(ctx, "a/b"); !errors.Is(err, ErrNotExist) {
		t.Errorf("open of nothing: %v", err)
	}
	if _, err := io.ReadFile(ctx, "a/b"); !errors.Is(err, ErrNotExist) {
		t.Errorf("read of nothing: %v", err)
	}
	if _, err := io.Stat(ctx, "a/b"); !errors.Is(err, ErrNotExist) {
		t.Errorf("stat of nothing: %v", err)
	}
	if es, err := io.List(ctx, "a"); err != nil || len(es) != 0 {
		t.Errorf("list of nothing: %v, %v", es, err)
	}
	if err := io.PutIfAbsent(ctx, "a/b/snapshot-1", []byte("one")); err != nil {
		t.Fatal(err)
	}
	if err := io.PutIfAbsent(ctx, "a/b/snapshot-1", []byte("two")); !errors.Is(err, ErrExist) {
		t.Errorf("second put: %v", err)
	}
	if b, err := io.ReadFile(ctx, "a/b/snapshot-1"); err != nil || string(b) != "one" {
		t.Errorf("read %q, %v", b, err)
	}
	for _, v := range []string{"1", "2"} {
		if err := io.Put(ctx, "a/b/LATEST", []byte(v)); err != nil {
			t.Fatal(err)
		}
	}
	w, err := io.Create(ctx, "a/x/data-1")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "hello")
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	w, err = io.Create(ctx, "a/x/data-2")
	if err != nil {
		t.Fatal(err)
	}
	fmt.Fprint(w, "never")
	if err := w.Abort(); err != nil {
		t.Fatal(err)
	}
	f, err := io.Open(ctx, "a/x/data-1")
	if err != nil {
		t.Fatal(err)
	}
	b := make([]byte, 3)
	if n, err := f.ReadAt(b, 2); n != 3 || err != nil || string(b) != "llo" || f.Size() != 5 || f.Path() != "a/x/data-1" {
		t.Errorf("read %q of %d, %v", b, f.Size(), err)
	}
	_ = f.Close()
	names := func(dir string) string {
		es, err := io.List(ctx, dir)
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range es {
			n := e.Name
			if e.Dir {
				n += "/"
			}
			out = append(out, n)
		}
		return strings.Join(out, " ")
	}
	if got := names("a"); got != "b/ x/" {
		t.Errorf("list: %s", got)
	}
	if got := names("a/b"); got != "LATEST snapshot-1" {
		t.Errorf("list: %s", got)
	}
	if got := names("a/x"); got != "data-1" {
		t.Errorf("list: %s", got)
	}
	if err := io.Delete(ctx, "a/x/data-1", "a/x/none"); err != nil {
		t.Error(err)
	}
	if got := names("a/x"); got != "" {
		t.Errorf("list after delete: %s", got)
	}
}

func TestLocalPaths(t *testing.T) {
	ctx := context.Background()
	root := t.TempDir()
	l := NewLocal(root)
	if _, err := l.ReadFile(ctx, "../secret"); err == nil || errors.Is(err, ErrNotExist) {
		t.Errorf("climbing out: %v", err)
	}
	var un *UnsupportedError
	if _, err := l.Open(ctx, "s3://bucket/x"); !errors.As(err, &un) {
		t.Errorf("s3: %v", err)
	}
	out := filepath.Join(t.TempDir(), "a b")
	if err := os.WriteFile(out, []byte("x"), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, p := range []string{out, "file:" + out, "FILE://" + out, "file:" + strings.ReplaceAll(out, " ", "%20")} {
		if b, err := l.ReadFile(ctx, p); err != nil || string(b) != "x" {
			t.Errorf("%s: %q, %v", p, b, err)
		}
	}
	if err := os.WriteFile(filepath.Join(root, "plain"), nil, 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := l.Open(ctx, "plain/below"); !errors.Is(err, ErrNotExist) {
		t.Errorf("below a file: %v", err)
	}
	if _, err := Open("hdfs://bucket/warehouse"); !errors.As(err, &un) {
		t.Errorf("open hdfs: %v", err)
	}
}

// TestPutIfAbsentRace: of many writers of one name exactly one wins, and readers
// see whole files only.
func TestPutIfAbsentRace(t *testing.T) {
	ctx := context.Background()
	l := NewLocal(t.TempDir())
	for i := range 20 {
		path := fmt.Sprintf("snapshot/snapshot-%d", i)
		var wins atomic.Int32
		var wg sync.WaitGroup
		for w := range 8 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				data := strings.Repeat(fmt.Sprint(w), 10000)
				switch err := l.PutIfAbsent(ctx, path, []byte(data)); {
				case err == nil:
					wins.Add(1)
				case !errors.Is(err, ErrExist):
					t.Error(err)
				}
				b, err := l.ReadFile(ctx, path)
				if err != nil || len(b) != 10000 || strings.Trim(string(b), string(b[:1])) != "" {
					t.Errorf("a reader sees %d bytes: %v", len(b), err)
				}
			}()
		}
		wg.Wait()
		if wins.Load() != 1 {
			t.Errorf("%d writers won", wins.Load())
		}
	}
	if es, _ := l.List(ctx, "snapshot"); len(es) != 20 {
		t.Errorf("%d files left", len(es))
	}
}

func TestFault(t *testing.T) {
	ctx := context.Background()
	f := NewFault(NewMem())
	_ = f.Put(ctx, "a", []byte("0123456789"))
	boom := errors.New("boom")
	f.Add(Rule{Op: "put-if-absent", Nth: 2, Err: boom, After: true})
	f.Add(Rule{Op: "read", Path: "a", Nth: 2, Truncate: 4})
	if err := f.PutIfAbsent(ctx, "x", nil); err != nil {
		t.Error(err)
	}
	if err := f.PutIfAbsent(ctx, "y", nil); !errors.Is(err, boom) {
		t.Error(err)
	}
	if _, err := f.Stat(ctx, "y"); err != nil {
		t.Errorf("the reply was lost, not the write: %v", err)
	}
	for _, want := range []string{"0123456789", "0123", "0123456789"} {
		if b, err := f.ReadFile(ctx, "a"); err != nil || string(b) != want {
			t.Errorf("%q, %v", b, err)
		}
	}
}

func TestLRU(t *testing.T) {
	var gone []string
	c := NewLRU(100, func(k string, _ int) { gone = append(gone, k) })
	c.Put("a", 1, 40)
	c.Put("b", 2, 40)
	c.Get("a")
	c.Put("c", 3, 40)
	c.Put("huge", 4, 1000)
	if got := strings.Join(gone, " "); got != "b huge" || c.Used() != 80 {
		t.Errorf("gone %s, used %d", got, c.Used())
	}
	if _, ok := c.Get("b"); ok {
		t.Error("b is still there")
	}
	c.Delete("a")
	if c.Used() != 40 {
		t.Errorf("used %d", c.Used())
	}
}

// TestNothingLeft makes writes fail and looks for what they leave behind.
func TestNothingLeft(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	io := NewLocal(dir)
	left := func(what string, want ...string) {
		t.Helper()
		var got []string
		if err := filepath.WalkDir(dir, func(p string, d os.DirEntry, err error) error {
			if err == nil && !d.IsDir() {
				got = append(got, strings.TrimPrefix(p, dir+"/"))
			}
			return err
		}); err != nil {
			t.Fatal(err)
		}
		if strings.Join(got, " ") != strings.Join(want, " ") {
			t.Errorf("%s: %q", what, got)
		}
	}
	for _, d := range []string{"a/put", "a/hint", "a/link"} { // directories where a file is to be
		if err := os.MkdirAll(filepath.Join(dir, d), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if err := io.Put(ctx, "a/put", []byte("x")); err == nil {
		t.Error("put over a directory")
	}
	if err := io.PutHint(ctx, "a/hint", []byte("x")); err == nil {
		t.Error("hint over a directory")
	}
	if err := io.PutIfAbsent(ctx, "a/link", []byte("x")); !errors.Is(err, ErrExist) {
		t.Errorf("publish over a directory: %v", err)
	}
	if err := io.Publish(ctx, "a/new", []byte("x"), "a/missing"); !errors.Is(err, ErrNotExist) {
		t.Errorf("publish of what names a missing file: %v", err)
	}
	left("failed")
	w, err := io.Create(ctx, "a/w")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Create(ctx, "a/w"); !errors.Is(err, ErrExist) {
		t.Errorf("a second writer of one name: %v", err)
	}
	_ = w.(*localWriter).f.Close() // the disk is gone
	if _, err := w.Write([]byte("x")); err == nil {
		t.Error("write to a closed file")
	}
	if err := w.Close(); err == nil {
		t.Error("close after a failed write")
	}
	left("failed write")
	for _, v := range []string{"9", "8", "10", "9"} {
		if err := io.PutHint(ctx, "a/LATEST", []byte(v)); err != nil {
			t.Fatal(err)
		}
		if b, err := io.ReadFile(ctx, "a/LATEST"); err != nil || string(b) != v {
			t.Errorf("hint is %q, not %q: %v", b, v, err)
		}
	}
	if err := io.Publish(ctx, "a/new", []byte("x"), "a/LATEST"); err != nil {
		t.Error(err)
	}
	left("done", "a/LATEST", "a/new")
}

// TestCrash looks at what survives.
func TestCrash(t *testing.T) {
	ctx := context.Background()
	c := NewCrash()
	put := func(p, v string) {
		t.Helper()
		w, err := c.Create(ctx, p)
		if err != nil {
			t.Fatal(err)
		}
		fmt.Fprint(w, v)
		if err := w.Close(); err != nil {
			t.Fatal(err)
		}
	}
	put("d/synced", "1")
	put("d/lost", "2")
	put("d/deleted", "3")
	if err := c.Sync(ctx, "d/synced", "d/deleted"); err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(c.Put(ctx, "d/synced", []byte("new")), c.Delete(ctx, "d/deleted"), c.Publish(ctx, "d/snapshot", []byte("4"))); err != nil {
		t.Fatal(err)
	}
	c.At(2, true)
	if err := c.PutHint(ctx, "d/hint", nil); err != nil {
		t.Fatal(err)
	}
	if err := c.PutIfAbsent(ctx, "d/next", nil); !errors.Is(err, errCrashed) || !c.Crashed() {
		t.Fatal(err)
	}
	if _, err := c.List(ctx, "d"); !errors.Is(err, errCrashed) {
		t.Errorf("after the crash: %v", err)
	}
	show := func(c *Crash) string {
		es, err := c.List(ctx, "d")
		if err != nil {
			t.Fatal(err)
		}
		var out []string
		for _, e := range es {
			b, err := c.ReadFile(ctx, "d/"+e.Name)
			if err != nil {
				t.Fatal(err)
			}
			out = append(out, e.Name+"="+string(b))
		}
		return strings.Join(out, " ")
	}
	if got, want := show(c.Reopen(nil)), "deleted=3 next= snapshot=4 synced=1"; got != want {
		t.Errorf("left: %s, want %s", got, want)
	}
	seen := map[string]bool{}
	for i := range 200 {
		seen[show(c.Reopen(rand.New(rand.NewPCG(uint64(i), 0))))] = true
	}
	if len(seen) != 16 { // synced, lost, deleted, hint: old or new
		t.Errorf("%d outcomes: %v", len(seen), seen)
	}
}
