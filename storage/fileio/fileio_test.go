package fileio

import (
	"context"
	"errors"
	"fmt"
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
		"local": local, "mem": NewMem(), "fault": NewFault(NewMem()), "cached": NewCached(NewMem(), 1<<20), "crash": NewCrash(),
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
	if _, err := Open("s3://bucket/warehouse"); !errors.As(err, &un) {
		t.Errorf("open s3: %v", err)
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
