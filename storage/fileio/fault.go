package fileio

import (
	"context"
	"strings"
	"sync"
)

// Fault wraps a FileIO and makes chosen calls fail, so that tests can cut an
// operation at every one of its file system calls.
type Fault struct {
	FileIO
	mu    sync.Mutex // guards rules and calls
	rules []*Rule
	calls int
	hits  int
}

// Rule is one injected fault.
type Rule struct {
	// Op is open, read, readat, create, write, close, put-if-absent, put, list, stat,
	// delete, sync or rename; "" = any; "store" = any that needs room on the disk.
	// Publish counts as sync of its needs, if it has some, and as put-if-absent.
	Op   string
	Path string // substring of the path; "" = any
	Nth  int    // 1-based count of matching calls; 0 = every one
	On   bool   // the calls after the Nth fail too
	Err  error  // the error to return; nil with Truncate >= 0 shortens reads instead
	// Truncate cuts what read and readat see to so many bytes of the file.
	// Ignored when Err is set.
	Truncate int64
	// After makes the call happen and its reply be lost: the work is done and Err
	// is returned all the same.
	After bool
	seen  int
}

// NewFault wraps io.
func NewFault(io FileIO) *Fault { return &Fault{FileIO: io} }

// Add arms a rule.
func (f *Fault) Add(r Rule) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = append(f.rules, &r)
}

// Clear disarms every rule.
func (f *Fault) Clear() {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.rules = nil
}

// Calls returns how many calls were made so far.
func (f *Fault) Calls() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.calls
}

// Hits returns how many calls a rule changed.
func (f *Fault) Hits() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.hits
}

// storing are the operations that fail when a disk is full.
var storing = map[string]bool{"create": true, "write": true, "close": true, "put-if-absent": true, "put": true, "sync": true, "rename": true}

// hit returns the rule that fires for this call, if any.
func (f *Fault) hit(op, path string) *Rule {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.calls++
	for _, r := range f.rules {
		if r.Op != "" && r.Op != op && (r.Op != "store" || !storing[op]) || r.Path != "" && !strings.Contains(path, r.Path) {
			continue
		}
		r.seen++
		if r.Nth == 0 || r.Nth == r.seen || r.On && r.seen > r.Nth {
			f.hits++
			return r
		}
	}
	return nil
}

func (f *Fault) do(op, path string, work func() error) error {
	r := f.hit(op, path)
	if r == nil || r.Err == nil {
		return work()
	}
	if r.After {
		if err := work(); err != nil {
			return err
		}
	}
	return r.Err
}

type faultFile struct {
	File
	f *Fault
}

func (ff *faultFile) ReadAt(b []byte, off int64) (int, error) {
	r := ff.f.hit("readat", ff.Path())
	if r != nil && r.Err != nil {
		return 0, r.Err
	}
	n, err := ff.File.ReadAt(b, off)
	if r != nil && off+int64(n) > r.Truncate {
		n = int(max(0, r.Truncate-off))
		if err == nil {
			err = errShort
		}
	}
	return n, err
}

var errShort = &CorruptionError{Offset: -1, Reason: "short read"}

// Open opens a file whose reads are watched.
func (f *Fault) Open(ctx context.Context, path string) (File, error) {
	var file File
	err := f.do("open", path, func() (err error) { file, err = f.FileIO.Open(ctx, path); return err })
	if err != nil {
		return nil, err
	}
	return &faultFile{file, f}, nil
}

// ReadFile reads a file, cut short when a rule says so.
func (f *Fault) ReadFile(ctx context.Context, path string) ([]byte, error) {
	r := f.hit("read", path)
	if r != nil && r.Err != nil {
		return nil, r.Err
	}
	b, err := f.FileIO.ReadFile(ctx, path)
	if r != nil && int64(len(b)) > r.Truncate {
		b = b[:r.Truncate]
	}
	return b, err
}

// Create opens a writer whose calls are watched.
func (f *Fault) Create(ctx context.Context, path string) (w Writer, err error) {
	err = f.do("create", path, func() (err error) { w, err = f.FileIO.Create(ctx, path); return err })
	if err != nil {
		return nil, err
	}
	return &faultWriter{w, f, path}, nil
}

type faultWriter struct {
	Writer
	f    *Fault
	path string
}

func (w *faultWriter) Write(b []byte) (n int, err error) {
	err = w.f.do("write", w.path, func() (err error) { n, err = w.Writer.Write(b); return err })
	return n, err
}

// Close finishes the file; when a rule says that it fails, nothing is left.
func (w *faultWriter) Close() error {
	err := w.f.do("close", w.path, w.Writer.Close)
	if err != nil {
		_ = w.Writer.Abort()
	}
	return err
}

// Publish is the sync of needs and then PutIfAbsent.
func (f *Fault) Publish(ctx context.Context, path string, data []byte, needs ...string) error {
	if len(needs) > 0 {
		if err := f.Sync(ctx, needs...); err != nil {
			return err
		}
	}
	return f.PutIfAbsent(ctx, path, data)
}

// PutIfAbsent publishes.
func (f *Fault) PutIfAbsent(ctx context.Context, path string, data []byte) error {
	return f.do("put-if-absent", path, func() error { return f.FileIO.PutIfAbsent(ctx, path, data) })
}

// Put replaces.
func (f *Fault) Put(ctx context.Context, path string, data []byte) error {
	return f.do("put", path, func() error { return f.FileIO.Put(ctx, path, data) })
}

// PutHint replaces, too.
func (f *Fault) PutHint(ctx context.Context, path string, data []byte) error {
	return f.do("put", path, func() error { return f.FileIO.PutHint(ctx, path, data) })
}

// List lists.
func (f *Fault) List(ctx context.Context, dir string) (es []Entry, err error) {
	err = f.do("list", dir, func() (err error) { es, err = f.FileIO.List(ctx, dir); return err })
	return es, err
}

// Stat describes.
func (f *Fault) Stat(ctx context.Context, path string) (e Entry, err error) {
	err = f.do("stat", path, func() (err error) { e, err = f.FileIO.Stat(ctx, path); return err })
	return e, err
}

// Delete removes.
func (f *Fault) Delete(ctx context.Context, paths ...string) error {
	return f.do("delete", strings.Join(paths, " "), func() error { return f.FileIO.Delete(ctx, paths...) })
}

// Sync makes files durable.
func (f *Fault) Sync(ctx context.Context, paths ...string) error {
	return f.do("sync", strings.Join(paths, " "), func() error { return f.FileIO.Sync(ctx, paths...) })
}

// DeleteDir removes a directory.
func (f *Fault) DeleteDir(ctx context.Context, dir string) error {
	return f.do("delete", dir, func() error { return f.FileIO.DeleteDir(ctx, dir) })
}

// RenameDir moves a directory.
func (f *Fault) RenameDir(ctx context.Context, from, to string) error {
	return f.do("rename", from+" "+to, func() error { return f.FileIO.RenameDir(ctx, from, to) })
}
