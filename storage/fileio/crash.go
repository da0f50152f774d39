package fileio

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"path"
	"strings"
	"sync"
)

// errCrashed is what every call answers after the crash of a Crash.
var errCrashed = errors.New("the machine has crashed")

// Crash is a FileIO in memory that knows what is on stable storage, so that a
// test can stop a machine at each of its calls and look at what is left.
//
// What is seen and what would survive are two states of every name. Create, Put,
// PutHint and Delete change what is seen; Sync and Publish make names survive,
// with their bytes. At the crash a name that was changed and not synced has its
// old state again, or, if the caller wants chance, the old or the new one: a
// file system may have written it in time.
type Crash struct {
	mu      sync.Mutex // guards all below
	seen    map[string][]byte
	durable map[string][]byte
	calls   int
	at      int  // call that crashes, 0 = none
	after   bool // it takes effect before
	crashed bool
	log     []string
}

var _ FileIO = (*Crash)(nil)

// NewCrash returns an empty file system that does not crash.
func NewCrash() *Crash { return &Crash{seen: map[string][]byte{}, durable: map[string][]byte{}} }

// At arms the crash: it comes at the n-th call from now, counted from 1, before
// the call does anything or, with after, when its work is done and its reply is
// lost.
func (c *Crash) At(n int, after bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.calls, c.at, c.after, c.log = 0, n, after, nil
}

// Calls returns the number of calls since At.
func (c *Crash) Calls() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.calls
}

// Crashed reports whether the crash has come.
func (c *Crash) Crashed() bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.crashed
}

// Last names the call that crashed.
func (c *Crash) Last() string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if len(c.log) == 0 {
		return ""
	}
	return c.log[len(c.log)-1]
}

// Reopen returns the file system as it is found after the crash. r, if not nil,
// decides for every name that was not synced whether the change made it.
func (c *Crash) Reopen(r *rand.Rand) *Crash {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := NewCrash()
	for p, b := range c.durable {
		out.durable[p] = b
	}
	if r != nil {
		for p, b := range c.seen {
			if old, ok := c.durable[p]; (!ok || !bytes.Equal(old, b)) && r.IntN(2) == 0 {
				out.durable[p] = b
			}
		}
		for p := range c.durable {
			if _, ok := c.seen[p]; !ok && r.IntN(2) == 0 {
				delete(out.durable, p)
			}
		}
	}
	for p, b := range out.durable {
		out.seen[p] = b
	}
	return out
}

// do runs one call, or the crash in its place.
func (c *Crash) do(op, p string, work func() error) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.crashed {
		return fmt.Errorf("%s %s: %w", op, p, errCrashed)
	}
	c.calls++
	c.log = append(c.log, op+" "+p)
	hit := c.at > 0 && c.calls == c.at
	if hit && !c.after {
		c.crashed = true
		return fmt.Errorf("%s %s: %w", op, p, errCrashed)
	}
	err := work()
	if hit {
		c.crashed = true
		return fmt.Errorf("%s %s: %w", op, p, errCrashed)
	}
	return err
}

// Open opens a file.
func (c *Crash) Open(_ context.Context, p string) (f File, err error) {
	err = c.do("open", p, func() error {
		b, ok := c.seen[path.Clean(p)]
		if !ok {
			return fmt.Errorf("open %s: %w", p, ErrNotExist)
		}
		f = &memFile{bytes.NewReader(b), int64(len(b)), p}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return f, nil
}

// ReadFile returns a copy of a file's bytes.
func (c *Crash) ReadFile(_ context.Context, p string) (out []byte, err error) {
	err = c.do("read", p, func() error {
		b, ok := c.seen[path.Clean(p)]
		if !ok {
			return fmt.Errorf("read %s: %w", p, ErrNotExist)
		}
		out = bytes.Clone(b)
		return nil
	})
	return out, err
}

type crashWriter struct {
	c    *Crash
	path string
	buf  bytes.Buffer
	done bool
}

func (w *crashWriter) Write(b []byte) (int, error) {
	err := w.c.do("write", w.path, func() error { w.buf.Write(b); return nil })
	if err != nil {
		return 0, err
	}
	return len(b), nil
}

func (w *crashWriter) Close() error {
	if w.done {
		return nil
	}
	w.done = true
	return w.c.do("close", w.path, func() error { w.c.seen[path.Clean(w.path)] = w.buf.Bytes(); return nil })
}

func (w *crashWriter) Abort() error { w.done = true; return nil }

// Create returns a writer for a new file.
func (c *Crash) Create(_ context.Context, p string) (w Writer, err error) {
	err = c.do("create", p, func() error {
		if _, ok := c.seen[path.Clean(p)]; ok {
			return fmt.Errorf("create %s: %w", p, ErrExist)
		}
		w = &crashWriter{c: c, path: p}
		return nil
	})
	return w, err
}

// PutIfAbsent stores data durably unless p is taken.
func (c *Crash) PutIfAbsent(_ context.Context, p string, data []byte) error {
	return c.do("put-if-absent", p, func() error {
		if _, ok := c.seen[path.Clean(p)]; ok {
			return fmt.Errorf("put %s: %w", p, ErrExist)
		}
		b := bytes.Clone(data)
		c.seen[path.Clean(p)], c.durable[path.Clean(p)] = b, b
		return nil
	})
}

// Publish is Sync and then PutIfAbsent, two calls.
func (c *Crash) Publish(ctx context.Context, p string, data []byte, needs ...string) error {
	if err := c.Sync(ctx, needs...); err != nil {
		return err
	}
	return c.PutIfAbsent(ctx, p, data)
}

// Put stores data, not durably.
func (c *Crash) Put(_ context.Context, p string, data []byte) error {
	return c.do("put", p, func() error { c.seen[path.Clean(p)] = bytes.Clone(data); return nil })
}

// PutHint stores data, not durably.
func (c *Crash) PutHint(ctx context.Context, p string, data []byte) error { return c.Put(ctx, p, data) }

// view is what is seen as a Mem, for the calls that only look.
func (c *Crash) view() *Mem {
	m := NewMem()
	for p, b := range c.seen {
		m.files[p] = memEntry{data: b}
	}
	return m
}

// List returns the entries directly in dir.
func (c *Crash) List(ctx context.Context, dir string) (es []Entry, err error) {
	err = c.do("list", dir, func() (err error) { es, err = c.view().List(ctx, dir); return err })
	return es, err
}

// Stat describes a file or directory.
func (c *Crash) Stat(ctx context.Context, p string) (e Entry, err error) {
	err = c.do("stat", p, func() (err error) {
		if b, ok := c.seen[path.Clean(p)]; ok {
			e = Entry{Name: path.Base(p), Size: int64(len(b))}
			return nil
		}
		e, err = c.view().Stat(ctx, p)
		return err
	})
	return e, err
}

// Delete removes files, not durably: after a crash they may be there again.
func (c *Crash) Delete(_ context.Context, paths ...string) error {
	for _, p := range paths {
		if err := c.do("delete", p, func() error { delete(c.seen, path.Clean(p)); return nil }); err != nil {
			return err
		}
	}
	return nil
}

// Sync makes names and bytes survive.
func (c *Crash) Sync(_ context.Context, paths ...string) error {
	if len(paths) == 0 {
		return nil
	}
	return c.do("sync", strings.Join(paths, " "), func() error {
		for _, p := range paths {
			b, ok := c.seen[path.Clean(p)]
			if !ok {
				return fmt.Errorf("sync %s: %w", p, ErrNotExist)
			}
			c.durable[path.Clean(p)] = b
		}
		return nil
	})
}

// DeleteDir removes every file below dir, durably.
func (c *Crash) DeleteDir(_ context.Context, dir string) error {
	return c.do("delete", dir, func() error {
		for _, m := range []map[string][]byte{c.seen, c.durable} {
			for p := range m {
				if strings.HasPrefix(p, path.Clean(dir)+"/") {
					delete(m, p)
				}
			}
		}
		return nil
	})
}

// RenameDir moves a directory durably, with what is durable in it.
func (c *Crash) RenameDir(_ context.Context, from, to string) error {
	return c.do("rename", from+" "+to, func() error {
		a, b := path.Clean(from)+"/", path.Clean(to)+"/"
		found := false
		for p := range c.seen {
			if strings.HasPrefix(p, b) {
				return fmt.Errorf("rename %s to %s: %w", from, to, ErrExist)
			}
			found = found || strings.HasPrefix(p, a)
		}
		if !found {
			return fmt.Errorf("rename %s: %w", from, ErrNotExist)
		}
		for _, m := range []map[string][]byte{c.seen, c.durable} {
			moved := map[string][]byte{}
			for p, data := range m {
				if rest, ok := strings.CutPrefix(p, a); ok {
					moved[b+rest] = data
					delete(m, p)
				}
			}
			for p, data := range moved {
				m[p] = data
			}
		}
		return nil
	})
}
