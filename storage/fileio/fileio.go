// Package fileio is all that the engine asks of a file system or object store.
package fileio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"
)

// Errors that implementations wrap; compare with errors.Is.
var (
	ErrNotExist = errors.New("file does not exist")
	ErrExist    = errors.New("file already exists")
	// ErrOvertaken is an ErrExist too: the file was published, others may have seen
	// it, and then a writer that publishes by rename put its own over it.
	ErrOvertaken = fmt.Errorf("%w: another writer replaced it", ErrExist)
)

// FileIO reads and writes files of one warehouse. Paths are slash-separated and
// relative to the warehouse root; an absolute path or URI names a file outside
// it (Paimon's external paths). Safe for concurrent use.
type FileIO interface {
	// Open opens a file for reading. The caller closes it.
	Open(ctx context.Context, path string) (File, error)
	// ReadFile reads a small file whole.
	ReadFile(ctx context.Context, path string) ([]byte, error)
	// Create returns a writer of a new file, whose name must not be in use: names
	// hold a UUID, so nobody looks at the file before its writer tells. Closing
	// after a failed write, or Abort, leaves nothing. What must survive a crash is
	// named to Sync before a snapshot refers to it.
	Create(ctx context.Context, path string) (Writer, error)
	// PutIfAbsent publishes data at path, durably, and only if path is free;
	// otherwise ErrExist. Commits rest on this one call.
	PutIfAbsent(ctx context.Context, path string, data []byte) error
	// Publish is Sync of needs, then PutIfAbsent, in fewer steps: path appears only
	// when what it names is on stable storage.
	Publish(ctx context.Context, path string, data []byte, needs ...string) error
	// Put replaces the file at path atomically: readers see the old bytes or the
	// new. It is not synced, so a crash may bring the old ones back; name the path to
	// Sync where that is not right.
	Put(ctx context.Context, path string, data []byte) error
	// PutHint overwrites the file at path as cheaply as can be: advice that readers
	// check, and that they may find half-written or old.
	PutHint(ctx context.Context, path string, data []byte) error
	// List returns the entries directly in dir, in name order; an absent dir is
	// empty.
	List(ctx context.Context, dir string) ([]Entry, error)
	Stat(ctx context.Context, path string) (Entry, error)
	// Delete removes files; absent ones are fine.
	Delete(ctx context.Context, paths ...string) error
	// Sync puts files that Create made, and the directory entries that lead to
	// them, on stable storage. A writer's Close does not: many files are synced
	// together, side by side. Object stores have nothing to do.
	Sync(ctx context.Context, paths ...string) error
	// DeleteDir removes a directory with everything below it; an absent one is
	// fine.
	DeleteDir(ctx context.Context, dir string) error
	// RenameDir moves a directory to a free name, durably; ErrExist when it is
	// taken. Object stores copy and delete, which is not atomic.
	RenameDir(ctx context.Context, from, to string) error
}

// File is an open file.
type File interface {
	io.ReaderAt
	io.Closer
	Size() int64
	Path() string // as given to Open
}

// Gapper is a File that knows what a request costs.
type Gapper interface {
	// Gap returns how many bytes that nobody wants are read in about the time of
	// another request.
	Gap() int64
}

// Writer is a file being written.
type Writer interface {
	io.WriteCloser
	Abort() error
}

// Entry is one file or directory.
type Entry struct {
	Name    string // base name
	Size    int64
	ModTime time.Time
	Dir     bool
}

// PathError is a failed operation of the file system (permissions, a directory
// in place of a file, a broken disk). engine maps it to 58030; Path is relative
// to the warehouse.
type PathError struct {
	Op   string
	Path string
	Err  error
}

func (e *PathError) Error() string { return e.Op + " " + e.Path + ": " + e.Err.Error() }

// Unwrap returns the cause, a syscall.Errno as a rule.
func (e *PathError) Unwrap() error { return e.Err }

// CorruptionError says that the bytes of a file are not what its format asks
// for. engine maps it to XX001; Path is relative to the warehouse.
type CorruptionError struct {
	Path   string
	Offset int64 // -1 when unknown
	Reason string
	Err    error
}

func (e *CorruptionError) Error() string {
	s := "file " + e.Path + " is corrupt: " + e.Reason
	if e.Err != nil {
		s += ": " + e.Err.Error()
	}
	return s
}

// Unwrap returns the cause.
func (e *CorruptionError) Unwrap() error { return e.Err }

// MissingError says that a file which live metadata names is not there. engine
// maps it to XX001, or 58P01 when the snapshot that named it has expired.
type MissingError struct {
	Path string
	Err  error
}

func (e *MissingError) Error() string { return "file " + e.Path + " is missing" }

// Unwrap returns the cause.
func (e *MissingError) Unwrap() error { return e.Err }

// UnsupportedError says that a file or table uses a feature that is not honoured
// yet. engine maps it to 0A000; Feature is its name.
type UnsupportedError struct {
	Feature string
	// Table is the table that was read, as schema.name; empty when it is not known.
	Table string
}

func (e *UnsupportedError) Error() string { return e.Feature + " is not supported" }
