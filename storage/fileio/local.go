package fileio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strings"
	"syscall"

	"golang.org/x/sync/errgroup"
)

// Local is a FileIO over a directory of the local file system.
//
// Publishing is link(2) of a synced temporary file: it fails when the name is
// taken, in this process or another, and never shows a partial file. Renames
// are not used for it because rename(2) replaces silently.
type Local struct {
	root   string
	rivals rivals
	linked func() // for tests: called after a link, before anybody looks who came in between
}

var _ FileIO = (*Local)(nil)

// NewLocal returns a FileIO whose relative paths lie below root. The directory
// need not exist yet.
func NewLocal(root string) *Local {
	if a, err := filepath.Abs(root); err == nil {
		root = a
	}
	return &Local{root: root, rivals: rivals{patience: rivalPatience}}
}

// Root returns the directory that relative paths are below.
func (l *Local) Root() string { return l.root }

// resolve turns a warehouse path, an absolute path or a file: URI into a path of
// the operating system. Relative paths that climb out of the root are refused.
func (l *Local) resolve(p string) (string, error) {
	if scheme, rest, ok := splitScheme(p); ok {
		if !strings.EqualFold(scheme, "file") {
			return "", &UnsupportedError{Feature: "file system scheme " + strings.ToLower(scheme)}
		}
		if u, err := url.PathUnescape(rest); err == nil && strings.Contains(rest, "%") && !fileExists(rest) {
			rest = u
		}
		return filepath.Clean("/" + strings.TrimLeft(rest, "/")), nil
	}
	if path.IsAbs(p) {
		return filepath.Clean(p), nil
	}
	c := path.Clean(p)
	if c == ".." || strings.HasPrefix(c, "../") {
		return "", &UnsupportedError{Feature: fmt.Sprintf("path %q, which leaves the warehouse,", p)}
	}
	return filepath.Join(l.root, filepath.FromSlash(c)), nil
}

func fileExists(p string) bool { _, err := os.Stat(p); return err == nil }

// splitScheme cuts "scheme:rest"; a single letter is not a scheme.
func splitScheme(p string) (scheme, rest string, ok bool) {
	i := strings.IndexByte(p, ':')
	if i < 2 {
		return "", p, false
	}
	for _, c := range []byte(p[:i]) {
		if c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '+' || c == '-' || c == '.' {
			continue
		}
		return "", p, false
	}
	if i+1 >= len(p) || p[i+1] != '/' {
		return "", p, false
	}
	return p[:i], p[i+1:], true
}

// wrap adds the warehouse path and maps the errors of the operating system to
// the package's own.
func wrap(op, p string, err error) error {
	if err == nil {
		return nil
	}
	var pe *fs.PathError
	cause := err
	if errors.As(err, &pe) {
		cause = pe.Err
	}
	var le *os.LinkError
	if errors.As(err, &le) {
		cause = le.Err
	}
	switch {
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, syscall.ENOTDIR):
		return fmt.Errorf("%s %s: %w", op, p, ErrNotExist)
	case errors.Is(err, fs.ErrExist):
		return fmt.Errorf("%s %s: %w", op, p, ErrExist)
	}
	return &PathError{Op: op, Path: p, Err: cause}
}

type localFile struct {
	f    *os.File
	size int64
	path string
}

func (f *localFile) ReadAt(b []byte, off int64) (int, error) {
	n, err := f.f.ReadAt(b, off)
	if err != nil && !errors.Is(err, io.EOF) {
		err = wrap("read", f.path, err)
	}
	return n, err
}
func (f *localFile) Close() error { return f.f.Close() }
func (f *localFile) Size() int64  { return f.size }
func (f *localFile) Path() string { return f.path }

// Gap is between what a call costs when the bytes are in memory (4 KB) and when a disk
// has to be asked (100 KB), nearer to the first: what is read once stays in memory.
func (f *localFile) Gap() int64 { return 16 << 10 }

// Open opens a regular file.
func (l *Local) Open(_ context.Context, p string) (File, error) {
	q, err := l.resolve(p)
	if err != nil {
		return nil, err
	}
	f, err := os.Open(q)
	if err != nil {
		return nil, wrap("open", p, err)
	}
	st, err := f.Stat()
	if err == nil && st.IsDir() {
		err = syscall.EISDIR
	}
	if err != nil {
		_ = f.Close()
		return nil, wrap("open", p, err)
	}
	return &localFile{f, st.Size(), p}, nil
}

// ReadFile reads a file whole.
func (l *Local) ReadFile(_ context.Context, p string) ([]byte, error) {
	q, err := l.resolve(p)
	if err != nil {
		return nil, err
	}
	b, err := os.ReadFile(q)
	return b, wrap("read", p, err)
}

// localWriter writes a file under its own name; see FileIO.Create.
type localWriter struct {
	f         *os.File
	path      string
	failed    error
	completed bool
}

// Create returns a writer for a new file.
func (l *Local) Create(_ context.Context, p string) (Writer, error) {
	q, err := l.resolve(p)
	if err != nil {
		return nil, err
	}
	f, err := createNew(q)
	if err != nil {
		return nil, wrap("create", p, err)
	}
	return &localWriter{f: f, path: p}, nil
}

// createNew makes a file that must not exist, and its directory.
func createNew(path string) (*os.File, error) {
	f, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	if errors.Is(err, fs.ErrNotExist) {
		if err = mkdirAllSynced(filepath.Dir(path)); err != nil {
			return nil, err
		}
		f, err = os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o644)
	}
	return f, err
}

// mkdirAllSynced makes dir and its missing parents and syncs the parent of each
// one made, so that a crash cannot lose the path to a published file.
func mkdirAllSynced(dir string) error {
	if st, err := os.Stat(dir); err == nil {
		if st.IsDir() {
			return nil
		}
		return &fs.PathError{Op: "mkdir", Path: dir, Err: syscall.ENOTDIR}
	}
	parent := filepath.Dir(dir)
	if parent != dir {
		if err := mkdirAllSynced(parent); err != nil {
			return err
		}
	}
	if err := os.Mkdir(dir, 0o755); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return syncDir(parent)
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	err = d.Sync()
	if e := d.Close(); err == nil {
		err = e
	}
	if errors.Is(err, syscall.EINVAL) { // file systems that cannot sync directories
		return nil
	}
	return err
}

func (w *localWriter) Write(b []byte) (int, error) {
	if w.completed {
		return 0, fmt.Errorf("write %s: %w", w.path, fs.ErrClosed)
	}
	n, err := w.f.Write(b)
	if err != nil && w.failed == nil {
		w.failed = wrap("write", w.path, err)
	}
	return n, err
}

func (w *localWriter) Close() error {
	if w.completed {
		return w.failed
	}
	if w.failed != nil {
		_ = w.Abort()
		return w.failed
	}
	w.completed = true
	startWriteback(w.f)
	if err := w.f.Close(); err != nil {
		_ = os.Remove(w.f.Name())
		w.failed = wrap("close", w.path, err)
	}
	return w.failed
}

func (w *localWriter) Abort() error {
	if w.completed {
		return nil
	}
	w.completed = true
	_ = w.f.Close()
	return wrap("remove", w.path, os.Remove(w.f.Name()))
}

// writeTemp writes data to a temporary file beside target.
func writeTemp(target string, data []byte) (tmp string, err error) {
	f, err := createNew(tempName(target))
	if err != nil {
		return "", err
	}
	_, err = f.Write(data)
	startWriteback(f)
	if e := f.Close(); err == nil {
		err = e
	}
	if err != nil {
		_ = os.Remove(f.Name())
		return "", err
	}
	return f.Name(), nil
}

// PutIfAbsent publishes data with link(2). After a nil error the file and its
// name are on stable storage.
func (l *Local) PutIfAbsent(ctx context.Context, p string, data []byte) error {
	return l.Publish(ctx, p, data)
}

// Publish syncs the temporary file of data together with needs and then links it.
// Writers that publish by rename, as Java does, are waited for: see rivals.
func (l *Local) Publish(ctx context.Context, p string, data []byte, needs ...string) error {
	q, err := l.resolve(p)
	if err != nil {
		return err
	}
	tmp, err := writeTemp(q, data)
	if err != nil {
		return wrap("put", p, err)
	}
	steps, err := l.syncs(needs)
	if err == nil {
		err = steps.run(ctx, syncStep{tmp, p})
	}
	if err == nil {
		l.rivals.wait(ctx, q)
		err = wrap("put", p, os.Link(tmp, q))
	}
	if err == nil {
		if l.linked != nil {
			l.linked()
		}
		err = wrap("sync directory of", p, syncDir(filepath.Dir(q)))
	}
	if err == nil {
		l.rivals.wait(ctx, q)
		if overtaken(tmp, q) {
			err = fmt.Errorf("put %s: %w", p, ErrOvertaken)
		}
	}
	_ = os.Remove(tmp) // after the link, a second name that stays does no harm
	return err
}

// overtaken reports whether another file than tmp has the name q, which tmp was
// linked to. Where that cannot be known, it was not.
func overtaken(tmp, q string) bool {
	ours, err := os.Stat(tmp)
	if err != nil {
		return false
	}
	there, err := os.Stat(q)
	return err == nil && !os.SameFile(ours, there)
}

// Put replaces the file at p by rename, without syncing anything.
func (l *Local) Put(_ context.Context, p string, data []byte) error {
	q, err := l.resolve(p)
	if err != nil {
		return err
	}
	tmp, err := writeTemp(q, data)
	if err != nil {
		return wrap("put", p, err)
	}
	if err := os.Rename(tmp, q); err != nil {
		_ = os.Remove(tmp)
		return wrap("put", p, err)
	}
	return nil
}

// PutHint overwrites a file of the same length in place, which changes no
// directory. With another length a reader might put the end of the new bytes
// behind the old ones, so then it is Put.
func (l *Local) PutHint(ctx context.Context, p string, data []byte) error {
	q, err := l.resolve(p)
	if err != nil {
		return err
	}
	f, err := os.OpenFile(q, os.O_WRONLY, 0)
	if err != nil {
		return l.Put(ctx, p, data)
	}
	if st, e := f.Stat(); e != nil || st.Size() != int64(len(data)) {
		_ = f.Close()
		return l.Put(ctx, p, data)
	}
	_, err = f.Write(data)
	if e := f.Close(); err == nil {
		err = e
	}
	return wrap("put", p, err)
}

// List returns the entries of dir in name order.
func (l *Local) List(_ context.Context, dir string) ([]Entry, error) {
	q, err := l.resolve(dir)
	if err != nil {
		return nil, err
	}
	des, err := os.ReadDir(q)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, wrap("list", dir, err)
	}
	out := make([]Entry, 0, len(des))
	for _, de := range des {
		e := Entry{Name: de.Name(), Dir: de.IsDir()}
		st, err := de.Info()
		if err != nil {
			if errors.Is(err, fs.ErrNotExist) {
				continue // gone since
			}
			return nil, wrap("list", dir, err)
		}
		if de.Type()&fs.ModeSymlink != 0 {
			if st2, err := os.Stat(filepath.Join(q, de.Name())); err == nil {
				st, e.Dir = st2, st2.IsDir()
			}
		}
		e.Size, e.ModTime = st.Size(), st.ModTime()
		out = append(out, e)
	}
	return out, nil
}

// Stat describes one file or directory.
func (l *Local) Stat(_ context.Context, p string) (Entry, error) {
	q, err := l.resolve(p)
	if err != nil {
		return Entry{}, err
	}
	st, err := os.Stat(q)
	if err != nil {
		return Entry{}, wrap("stat", p, err)
	}
	return Entry{Name: path.Base(p), Size: st.Size(), ModTime: st.ModTime(), Dir: st.IsDir()}, nil
}

// Delete removes files and empty directories; what is absent is fine.
func (l *Local) Delete(_ context.Context, paths ...string) error {
	var first error
	for _, p := range paths {
		q, err := l.resolve(p)
		if err == nil {
			err = os.Remove(q)
			if errors.Is(err, fs.ErrNotExist) {
				err = nil
			}
		}
		if err != nil && first == nil {
			first = wrap("delete", p, err)
		}
	}
	return first
}

// Sync syncs files and the directories that hold them, several at a time: the
// file system joins what is synced together.
func (l *Local) Sync(ctx context.Context, paths ...string) error {
	steps, err := l.syncs(paths)
	if err != nil {
		return err
	}
	return steps.run(ctx)
}

// syncStep is one file or directory to be synced, and its name for errors.
type syncStep struct{ file, name string }

type syncSteps []syncStep

// syncs lists what has to be synced for paths: files, then directories.
func (l *Local) syncs(paths []string) (syncSteps, error) {
	steps := make(syncSteps, 0, 2*len(paths))
	for _, p := range paths {
		q, err := l.resolve(p)
		if err != nil {
			return nil, err
		}
		steps = append(steps, syncStep{q, p})
	}
	seen := map[string]bool{}
	for i := range paths {
		if d := filepath.Dir(steps[i].file); !seen[d] {
			seen[d] = true
			steps = append(steps, syncStep{d, l.relative(d)})
		}
	}
	return steps, nil
}

func (s syncSteps) run(ctx context.Context, more ...syncStep) error {
	s = append(s, more...)
	if len(s) == 1 {
		return wrap("sync", s[0].name, syncDir(s[0].file))
	}
	g, _ := errgroup.WithContext(ctx)
	g.SetLimit(16)
	for _, x := range s {
		g.Go(func() error { return wrap("sync", x.name, syncDir(x.file)) })
	}
	return g.Wait()
}

// relative is the inverse of resolve, for messages.
func (l *Local) relative(q string) string {
	if r, err := filepath.Rel(l.root, q); err == nil && !strings.HasPrefix(r, "..") {
		return filepath.ToSlash(r)
	}
	return q
}

// DeleteDir removes a directory and what is below it.
func (l *Local) DeleteDir(_ context.Context, dir string) error {
	q, err := l.resolve(dir)
	if err != nil {
		return err
	}
	if q == l.root {
		return fmt.Errorf("path %q is the warehouse itself", dir)
	}
	return wrap("delete", dir, os.RemoveAll(q))
}

// RenameDir moves a directory. rename(2) onto an empty directory would succeed,
// so the new name is looked at first.
func (l *Local) RenameDir(_ context.Context, from, to string) error {
	q, err := l.resolve(from)
	if err != nil {
		return err
	}
	r, err := l.resolve(to)
	if err != nil {
		return err
	}
	if _, err := os.Lstat(r); err == nil {
		return fmt.Errorf("rename %s to %s: %w", from, to, ErrExist)
	}
	if err := os.Rename(q, r); err != nil {
		return wrap("rename", from, err)
	}
	if err := syncDir(filepath.Dir(r)); err != nil {
		return wrap("sync directory of", to, err)
	}
	return wrap("sync directory of", from, syncDir(filepath.Dir(q)))
}
