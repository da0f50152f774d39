package fileio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"gocloud.dev/blob/memblob"

	"github.com/paimon-sql/paimon-sql/internal/testkit/s3fake"
)

const testSecret = "not-a-real-secret/0123456789"

// fakeS3 starts a store and opens a warehouse in it.
func fakeS3(t testing.TB, prefix string) (*s3fake.Server, *Blob) {
	t.Helper()
	srv := s3fake.New()
	t.Cleanup(srv.Close)
	t.Setenv("AWS_ACCESS_KEY_ID", "test-id")
	t.Setenv("AWS_SECRET_ACCESS_KEY", testSecret)
	t.Setenv("AWS_CONFIG_FILE", "/nonexistent")
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", "/nonexistent")
	io, err := Open(srv.Warehouse("bucket", prefix))
	if err != nil {
		t.Fatal(err)
	}
	return srv, io.(*Blob)
}

func TestBlobContract(t *testing.T) {
	t.Run("mem", func(t *testing.T) { contract(t, NewBlob(memblob.OpenBucket(nil), "")) })
	t.Run("mem prefix", func(t *testing.T) { contract(t, NewBlob(memblob.OpenBucket(nil), "/some/where/")) })
	t.Run("s3", func(t *testing.T) {
		srv, io := fakeS3(t, "ware/house")
		srv.PageSize = 1
		contract(t, io)
		for _, k := range srv.Keys("") {
			if !strings.HasPrefix(k, "bucket/ware/house/") || strings.Contains(k, "probe") {
				t.Errorf("key %s", k)
			}
		}
	})
	t.Run("s3 root", func(t *testing.T) { _, io := fakeS3(t, ""); contract(t, io) })
}

func mustPut(t testing.TB, io FileIO, p, data string) {
	t.Helper()
	if err := io.Put(context.Background(), p, []byte(data)); err != nil {
		t.Fatal(err)
	}
}

// TestBlobRanges reads a big object by ranges of all sorts and counts requests.
func TestBlobRanges(t *testing.T) {
	ctx := context.Background()
	srv, b := fakeS3(t, "w")
	data := make([]byte, 3<<20)
	r := rand.NewChaCha8([32]byte{1})
	_, _ = r.Read(data)
	srv.Set("bucket/w/big", data)
	srv.Set("bucket/w/small", data[:1000])
	srv.Set("bucket/w/empty", nil)
	f, err := b.Open(ctx, "big")
	if err != nil || f.Size() != int64(len(data)) {
		t.Fatal(err)
	}
	check := func(off int64, n int) {
		t.Helper()
		p := make([]byte, n)
		k, err := f.ReadAt(p, off)
		want := data[min(off, int64(len(data))):min(off+int64(n), int64(len(data)))]
		if !bytes.Equal(p[:k], want) || errors.Is(err, io.EOF) != (len(want) < n) || err != nil && !errors.Is(err, io.EOF) {
			t.Fatalf("read %d at %d: %d bytes, %v", n, off, k, err)
		}
	}
	rnd := rand.New(r)
	for range 200 {
		check(rnd.Int64N(int64(len(data)+10)), 1+rnd.IntN(1<<uint(rnd.IntN(20))))
	}
	srv.Counts()
	for off := int64(1 << 20); off < 2<<20; off += 1000 { // small reads side by side
		check(off, 1000)
	}
	if n := srv.Counts()["GET"]; n > 1+(1<<20)/(readAhead-1000) {
		t.Errorf("%d requests for a megabyte in small reads", n)
	}
	srv.Break(s3fake.Fault{Op: "GET", Key: "big", Cut: 70000, Times: 3}) // answers that break off
	check(1<<20+5, 1<<20)
	srv.Break(s3fake.Fault{Op: "GET", Key: "big", Cut: 10000, Times: 2})
	if got, err := b.ReadFile(ctx, "big"); err != nil || !bytes.Equal(got, data) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	srv.Counts()
	if f, err = b.Open(ctx, "small"); err != nil {
		t.Fatal(err)
	}
	data = data[:1000]
	check(0, 10)
	check(990, 10)
	check(0, 1000)
	if c := srv.Counts(); c["GET"] != 1 || len(c) != 1 {
		t.Errorf("a small file takes %v", c)
	}
	if f, err = b.Open(ctx, "empty"); err != nil || f.Size() != 0 {
		t.Fatal(err)
	}
	if n, err := f.ReadAt(make([]byte, 1), 0); n != 0 || !errors.Is(err, io.EOF) {
		t.Errorf("read of nothing: %d, %v", n, err)
	}
	if got, err := b.ReadFile(ctx, "empty"); err != nil || len(got) != 0 {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// TestBlobWriter writes files below and above the size that streams.
func TestBlobWriter(t *testing.T) {
	ctx := context.Background()
	srv, b := fakeS3(t, "w")
	t.Run("s3", func(t *testing.T) { writers(t, b) })
	t.Run("mem", func(t *testing.T) { writers(t, NewBlob(memblob.OpenBucket(nil), "w")) })
	if n := srv.Uploads(); n != 0 {
		t.Errorf("%d uploads are left open", n)
	}
	srv.Break(s3fake.Fault{Op: "PUT", Key: "denied", Status: 403, Code: "AccessDenied"})
	w, _ := b.Create(ctx, "denied")
	_, _ = w.Write([]byte("x"))
	var pe *PathError
	if err := w.Close(); !errors.As(err, &pe) || pe.Path != "denied" {
		t.Errorf("denied: %v", err)
	}
	srv.Break(s3fake.Fault{Op: "PART", Key: "broken", Status: 403, Code: "AccessDenied"})
	w, _ = b.Create(ctx, "broken")
	var werr error
	for i := 0; i < 600 && werr == nil; i++ {
		_, werr = w.Write(make([]byte, 1<<16))
	}
	if err := w.Close(); !errors.As(err, &pe) || pe.Path != "broken" || srv.Uploads() != 0 || len(srv.Keys("bucket/w/broken")) != 0 {
		t.Errorf("broken: %v; %d uploads are open", err, srv.Uploads())
	}
}

func writers(t *testing.T, b FileIO) {
	ctx := context.Background()
	chunk := bytes.Repeat([]byte("0123456789abcdef"), 4096)
	for _, size := range []int{0, 1, len(chunk), streamFrom - 1, streamFrom, 20 << 20} {
		for _, abort := range []bool{false, true} {
			p := fmt.Sprintf("f-%d-%v", size, abort)
			w, err := b.Create(ctx, p)
			if err != nil {
				t.Fatal(err)
			}
			for left := size; left > 0; {
				n, err := w.Write(chunk[:min(left, len(chunk))])
				if err != nil {
					t.Fatal(err)
				}
				left -= n
			}
			if _, err := b.Stat(ctx, p); !errors.Is(err, ErrNotExist) {
				t.Errorf("%s is there before it is closed: %v", p, err)
			}
			if abort {
				err = w.Abort()
			} else {
				err = w.Close()
			}
			if err != nil {
				t.Fatal(p, err)
			}
			e, err := b.Stat(ctx, p)
			if abort != errors.Is(err, ErrNotExist) || !abort && e.Size != int64(size) {
				t.Errorf("%s: %d bytes, %v", p, e.Size, err)
			}
			if _, err := w.Write(chunk); err == nil {
				t.Error("write after the end")
			}
		}
	}
	cctx, cancel := context.WithCancel(ctx)
	w, _ := b.Create(cctx, "cancelled")
	for range 300 {
		if _, err := w.Write(chunk); err != nil {
			t.Fatal(err)
		}
	}
	cancel() // of the context that opened it: others may go on
	if err := w.Close(); err != nil {
		t.Errorf("close after the opener's end: %v", err)
	}
	if e, err := b.Stat(ctx, "cancelled"); err != nil || e.Size != int64(300*len(chunk)) {
		t.Errorf("cancelled: %d bytes, %v", e.Size, err)
	}
}

// TestBlobPutIfAbsent: of many writers exactly one wins, whatever the answers do.
func TestBlobPutIfAbsent(t *testing.T) {
	ctx := context.Background()
	srv, one := fakeS3(t, "w")
	io2, err := Open(srv.Warehouse("bucket", "w"))
	if err != nil {
		t.Fatal(err)
	}
	mem := memblob.OpenBucket(nil)
	for name, ios := range map[string][2]FileIO{"s3": {one, io2}, "mem": {NewBlob(mem, "w"), NewBlob(mem, "w")}} {
		for i := range 3 {
			p := fmt.Sprintf("snapshot/snapshot-%d", i)
			if name == "s3" && i > 0 {
				srv.Break(s3fake.Fault{Op: "PUT", Key: p, Times: i, Lost: true})
			}
			var wins atomic.Int32
			var wg sync.WaitGroup
			for w := range 8 {
				wg.Go(func() {
					switch err := ios[w%2].PutIfAbsent(ctx, p, []byte(fmt.Sprint(w))); {
					case err == nil:
						wins.Add(1)
						if b, err := ios[w%2].ReadFile(ctx, p); err != nil || string(b) != fmt.Sprint(w) {
							t.Errorf("%s: %d won, there is %q: %v", name, w, b, err)
						}
					case !errors.Is(err, ErrExist):
						t.Error(err)
					}
				})
			}
			wg.Wait()
			if wins.Load() != 1 {
				t.Errorf("%s %s: %d writers won", name, p, wins.Load())
			}
			srv.Repair()
		}
	}
}

func TestBlobPutIfAbsentAnswers(t *testing.T) {
	ctx := context.Background()
	srv, b := fakeS3(t, "w")
	mustPut(t, b, "there", "x")
	var un *UnsupportedError
	var pe *PathError
	var uncertain *UncertainError
	for i, c := range []struct {
		name string
		f    s3fake.Fault
		key  string
		ok   func(error) bool
		left bool
	}{
		{"taken", s3fake.Fault{}, "there", func(err error) bool { return errors.Is(err, ErrExist) }, true},
		{"conflict, then free", s3fake.Fault{Times: 2, Status: 409, Code: "ConditionalRequestConflict"}, "", func(err error) bool { return err == nil }, true},
		{"busy, then free", s3fake.Fault{Times: 1, Status: 503, Code: "SlowDown"}, "", func(err error) bool { return err == nil }, true},
		{"lost answer", s3fake.Fault{Times: 1, Lost: true}, "", func(err error) bool { return err == nil }, true},
		{"denied", s3fake.Fault{Status: 403, Code: "AccessDenied"}, "", func(err error) bool {
			return errors.As(err, &pe) && strings.Contains(err.Error(), "AccessDenied") && !errors.As(err, &uncertain)
		}, false},
		{"not implemented", s3fake.Fault{Status: 501, Code: "NotImplemented"}, "", func(err error) bool { return errors.As(err, &un) }, false},
	} {
		key := c.key
		if key == "" {
			key = fmt.Sprintf("case-%d", i)
		}
		c.f.Op, c.f.Key = "PUT", key
		if c.name != "taken" {
			srv.Break(c.f)
		}
		if err := b.PutIfAbsent(ctx, key, []byte("data")); !c.ok(err) {
			t.Errorf("%s: %v", c.name, err)
		}
		srv.Repair()
		if _, err := b.Stat(ctx, key); (err == nil) != c.left {
			t.Errorf("%s: stat says %v", c.name, err)
		}
	}
	// A statement that is cancelled while its commit is under way hears the outcome.
	cctx, cancel := context.WithCancel(ctx)
	srv.Break(s3fake.Fault{Op: "PUT", Key: "cancelled", Times: 1, Then: cancel})
	if err := b.PutIfAbsent(cctx, "cancelled", nil); err != nil {
		t.Errorf("cancelled while under way: %v", err)
	}
	if err := b.PutIfAbsent(cctx, "later", nil); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled before: %v", err)
	}
}

// TestBlobUncertain: without any answer nobody may say that nothing was stored.
func TestBlobUncertain(t *testing.T) {
	t.Setenv("AWS_MAX_ATTEMPTS", "1")
	srv, b := fakeS3(t, "w")
	if err := b.PutIfAbsent(context.Background(), "first", nil); err != nil {
		t.Fatal(err)
	}
	srv.CloseClientConnections()
	srv.Close()
	var uncertain *UncertainError
	if err := b.PutIfAbsent(context.Background(), "next", nil); !errors.As(err, &uncertain) || errors.Is(err, ErrNotExist) || errors.Is(err, ErrExist) {
		t.Errorf("no answer: %v", err)
	}
}

// TestBlobUnconditional: a store that ignores If-None-Match is found out before
// anything is published on it.
func TestBlobUnconditional(t *testing.T) {
	srv, b := fakeS3(t, "w")
	srv.Unconditional = true
	var un *UnsupportedError
	for range 2 {
		if err := b.PutIfAbsent(context.Background(), "snapshot/snapshot-1", []byte("x")); !errors.As(err, &un) {
			t.Errorf("%v", err)
		}
	}
	if k := srv.Keys(""); len(k) != 0 {
		t.Errorf("left: %v", k)
	}
}

func TestBlobDirs(t *testing.T) {
	ctx := context.Background()
	srv, b := fakeS3(t, "w")
	srv.PageSize = 3
	for _, p := range []string{"d.db/t/schema/schema-0", "d.db/t/snapshot/snapshot-1", "d.db/t/bucket-0/f", "d.db/t2/schema/schema-0"} {
		mustPut(t, b, p, p)
	}
	srv.Set("bucket/w/e.db/", nil) // a directory's mark, as consoles make them
	srv.Set("bucket/wx/other", nil)
	if e, err := b.Stat(ctx, "."); err != nil || !e.Dir {
		t.Errorf("root: %v", err)
	}
	if e, err := b.Stat(ctx, "d.db/t"); err != nil || !e.Dir || e.Name != "t" {
		t.Errorf("directory: %+v, %v", e, err)
	}
	if es, err := b.List(ctx, ""); err != nil || len(es) != 2 || es[1].Name != "e.db" || !es[1].Dir {
		t.Errorf("list: %v, %v", es, err)
	}
	if es, err := b.List(ctx, "e.db"); err != nil || len(es) != 0 {
		t.Errorf("list: %v, %v", es, err)
	}
	if err := b.RenameDir(ctx, "d.db/t", "d.db/t2"); !errors.Is(err, ErrExist) {
		t.Errorf("rename to a taken name: %v", err)
	}
	if err := b.RenameDir(ctx, "d.db/none", "d.db/t9"); !errors.Is(err, ErrNotExist) {
		t.Errorf("rename of nothing: %v", err)
	}
	// What a writer adds meanwhile comes along.
	srv.Break(s3fake.Fault{Op: "COPY", Key: "w/d.db/u/bucket-0", Times: 1, Then: func() { srv.Set("bucket/w/d.db/t/snapshot/snapshot-2", []byte("late")) }})
	if err := b.RenameDir(ctx, "d.db/t", "d.db/u"); err != nil {
		t.Fatal(err)
	}
	if got := strings.Join(srv.Keys("bucket/w/d.db/"), " "); strings.ReplaceAll(got, "bucket/w/d.db/", "") != "t2/schema/schema-0 u/bucket-0/f u/schema/schema-0 u/snapshot/snapshot-1 u/snapshot/snapshot-2" {
		t.Errorf("after rename: %s", got)
	}
	srv.Break(s3fake.Fault{Op: "COPY", Key: "snapshot-2", Status: 403, Code: "AccessDenied"})
	if err := b.RenameDir(ctx, "d.db/u", "d.db/v"); err == nil {
		t.Error("rename without permission")
	}
	if k := srv.Keys("bucket/w/d.db/v"); len(k) != 0 {
		t.Errorf("half a rename: %v", k)
	}
	for _, p := range []string{"", "."} {
		if err := b.DeleteDir(ctx, p); err == nil {
			t.Error("the warehouse is deleted")
		}
	}
	if err := errors.Join(b.DeleteDir(ctx, "d.db"), b.DeleteDir(ctx, "d.db")); err != nil {
		t.Error(err)
	}
	if got := strings.Join(srv.Keys(""), " "); got != "bucket/w/e.db/ bucket/wx/other" {
		t.Errorf("after delete: %s", got)
	}
}

func TestBlobURIs(t *testing.T) {
	ctx := context.Background()
	srv, b := fakeS3(t, "w")
	srv.Set("other/x/y", []byte("external"))
	srv.Set("bucket/z", []byte("same bucket"))
	for p, want := range map[string]string{"s3://other/x/y": "external", "s3a://other/x/y": "external", "s3://bucket/z": "same bucket"} {
		if got, err := b.ReadFile(ctx, p); err != nil || string(got) != want {
			t.Errorf("%s: %q, %v", p, got, err)
		}
	}
	var un *UnsupportedError
	for _, p := range []string{"/etc/passwd", "file:///etc/passwd", "hdfs://x/y"} {
		if _, err := b.ReadFile(ctx, p); !errors.As(err, &un) {
			t.Errorf("%s: %v", p, err)
		}
	}
	if _, err := b.ReadFile(ctx, "../z"); err == nil || errors.Is(err, ErrNotExist) {
		t.Errorf("climbing out: %v", err)
	}
	for uri, want := range map[string]string{
		"s3:///prefix":                         "names no bucket",
		"s3://b/p?region=x&secret-key=hush":    "taken from the environment",
		"s3://id:hush@b/p":                     "taken from the environment",
		"s3://b/p?region=x&colour=red":         `unknown option "colour"`,
		"s3://b/p?region=x&path-style=perhaps": "neither true nor false",
	} {
		if _, err := Open(uri); err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "hush") {
			t.Errorf("%s: %v", uri, err)
		}
	}
	// Nothing of the credentials in errors, even if a store repeats them.
	srv.Break(s3fake.Fault{Op: "GET", Key: "echo", Status: 403, Code: "Denied" + testSecret})
	var pe *PathError
	if _, err := b.ReadFile(ctx, "echo"); !errors.As(err, &pe) || pe.Path != "echo" || strings.Contains(err.Error(), testSecret) || strings.Contains(err.Error(), srv.URL) {
		t.Errorf("%v", err)
	}
}
