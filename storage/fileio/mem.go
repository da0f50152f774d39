package fileio

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path"
	"sort"
	"strings"
	"sync"
	"time"
)

// Mem is a FileIO in memory, for tests and temporary warehouses. Directories
// exist while they hold a file.
type Mem struct {
	mu    sync.RWMutex // guards files
	files map[string]memEntry
}

type memEntry struct {
	data []byte // never written after it is stored
	mod  time.Time
}

var _ FileIO = (*Mem)(nil)

// NewMem returns an empty file system.
func NewMem() *Mem { return &Mem{files: map[string]memEntry{}} }

type memFile struct {
	*bytes.Reader
	size int64
	path string
}

func (f *memFile) Close() error { return nil }
func (f *memFile) Size() int64  { return f.size }
func (f *memFile) Path() string { return f.path }

func (m *Mem) get(p string) (memEntry, bool) {
	m.mu.RLock()
	defer m.mu.RUnlock()
	e, ok := m.files[path.Clean(p)]
	return e, ok
}

// Open opens a file.
func (m *Mem) Open(_ context.Context, p string) (File, error) {
	e, ok := m.get(p)
	if !ok {
		return nil, fmt.Errorf("open %s: %w", p, ErrNotExist)
	}
	return &memFile{bytes.NewReader(e.data), int64(len(e.data)), p}, nil
}

// ReadFile returns a copy of a file's bytes.
func (m *Mem) ReadFile(_ context.Context, p string) ([]byte, error) {
	e, ok := m.get(p)
	if !ok {
		return nil, fmt.Errorf("read %s: %w", p, ErrNotExist)
	}
	return bytes.Clone(e.data), nil
}

type memWriter struct {
	m    *Mem
	path string
	buf  bytes.Buffer
	done bool
}

func (w *memWriter) Write(b []byte) (int, error) {
	if w.done {
		return 0, fmt.Errorf("write %s: %w", w.path, io.ErrClosedPipe)
	}
	return w.buf.Write(b)
}

func (w *memWriter) Close() error {
	if !w.done {
		w.done = true
		return w.m.Put(context.Background(), w.path, w.buf.Bytes())
	}
	return nil
}

func (w *memWriter) Abort() error { w.done = true; return nil }

// Create returns a writer for a new file.
func (m *Mem) Create(_ context.Context, p string) (Writer, error) {
	return &memWriter{m: m, path: p}, nil
}

// PutIfAbsent stores data unless p is taken.
func (m *Mem) PutIfAbsent(_ context.Context, p string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	if _, ok := m.files[path.Clean(p)]; ok {
		return fmt.Errorf("put %s: %w", p, ErrExist)
	}
	m.files[path.Clean(p)] = memEntry{bytes.Clone(data), time.Now()}
	return nil
}

// Publish stores data unless p is taken.
func (m *Mem) Publish(ctx context.Context, p string, data []byte, _ ...string) error {
	return m.PutIfAbsent(ctx, p, data)
}

// Put stores data.
func (m *Mem) Put(_ context.Context, p string, data []byte) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.files[path.Clean(p)] = memEntry{bytes.Clone(data), time.Now()}
	return nil
}

// PutHint stores data.
func (m *Mem) PutHint(ctx context.Context, p string, data []byte) error { return m.Put(ctx, p, data) }

// List returns the entries directly in dir.
func (m *Mem) List(_ context.Context, dir string) ([]Entry, error) {
	prefix := path.Clean(dir) + "/"
	if path.Clean(dir) == "." {
		prefix = ""
	}
	seen := map[string]Entry{}
	m.mu.RLock()
	for p, e := range m.files {
		rest, ok := strings.CutPrefix(p, prefix)
		if !ok || rest == "" {
			continue
		}
		name, _, deeper := strings.Cut(rest, "/")
		if deeper {
			seen[name] = Entry{Name: name, Dir: true, ModTime: e.mod}
		} else {
			seen[name] = Entry{Name: name, Size: int64(len(e.data)), ModTime: e.mod}
		}
	}
	m.mu.RUnlock()
	out := make([]Entry, 0, len(seen))
	for _, e := range seen {
		out = append(out, e)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// Stat describes a file or directory.
func (m *Mem) Stat(ctx context.Context, p string) (Entry, error) {
	if e, ok := m.get(p); ok {
		return Entry{Name: path.Base(p), Size: int64(len(e.data)), ModTime: e.mod}, nil
	}
	if l, _ := m.List(ctx, p); len(l) > 0 {
		return Entry{Name: path.Base(p), Dir: true}, nil
	}
	return Entry{}, fmt.Errorf("stat %s: %w", p, ErrNotExist)
}

// Delete removes files.
func (m *Mem) Delete(_ context.Context, paths ...string) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, p := range paths {
		delete(m.files, path.Clean(p))
	}
	return nil
}

// Sync has nothing to do.
func (m *Mem) Sync(context.Context, ...string) error { return nil }

// DeleteDir removes every file below dir.
func (m *Mem) DeleteDir(_ context.Context, dir string) error {
	prefix := path.Clean(dir) + "/"
	m.mu.Lock()
	defer m.mu.Unlock()
	for p := range m.files {
		if strings.HasPrefix(p, prefix) {
			delete(m.files, p)
		}
	}
	return nil
}

// RenameDir moves every file below from.
func (m *Mem) RenameDir(_ context.Context, from, to string) error {
	a, b := path.Clean(from)+"/", path.Clean(to)+"/"
	m.mu.Lock()
	defer m.mu.Unlock()
	var moved []string
	for p := range m.files {
		if strings.HasPrefix(p, b) {
			return fmt.Errorf("rename %s to %s: %w", from, to, ErrExist)
		}
		if strings.HasPrefix(p, a) {
			moved = append(moved, p)
		}
	}
	if len(moved) == 0 {
		return fmt.Errorf("rename %s: %w", from, ErrNotExist)
	}
	for _, p := range moved {
		m.files[b+strings.TrimPrefix(p, a)] = m.files[p]
		delete(m.files, p)
	}
	return nil
}
