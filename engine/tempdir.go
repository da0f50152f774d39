package engine

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
)

// Directories for temporary files hold a lock as long as their process lives: a
// killed one leaves them, and the next that starts removes those that nobody holds.

// tempDirPrefix begins their names.
const tempDirPrefix = "paimon-sql-temp-"

// tempDir is a private directory of this process.
type tempDir struct {
	path string
	lock *os.File // the directory itself, open
}

// newTempDir makes a directory below parent.
func newTempDir(parent string) (*tempDir, error) {
	for {
		dir, err := os.MkdirTemp(parent, tempDirPrefix)
		if err != nil {
			return nil, err
		}
		f, err := os.Open(dir)
		if errors.Is(err, os.ErrNotExist) {
			continue // swept before it was locked
		}
		if err != nil {
			_ = os.Remove(dir)
			return nil, err
		}
		err = syscall.Flock(int(f.Fd()), syscall.LOCK_SH|syscall.LOCK_NB)
		if errors.Is(err, syscall.EWOULDBLOCK) || err == nil && !sameDir(f, dir) {
			_ = f.Close()
			continue // being swept, or swept
		}
		// Where directories cannot be locked they are not swept, either.
		return &tempDir{path: dir, lock: f}, nil
	}
}

func sameDir(f *os.File, dir string) bool {
	a, err := f.Stat()
	if err != nil {
		return false
	}
	b, err := os.Lstat(dir)
	return err == nil && os.SameFile(a, b)
}

// remove deletes the directory and what is in it.
func (t *tempDir) remove() error {
	err := os.RemoveAll(t.path)
	return errors.Join(err, t.lock.Close())
}

// sweepTempDirs deletes the directories below parent whose process is gone and
// returns how many. Those of other users, and what only looks like one, stay.
func sweepTempDirs(parent string) int {
	es, err := os.ReadDir(parent)
	if err != nil {
		return 0
	}
	n := 0
	for _, e := range es {
		if !e.IsDir() || !strings.HasPrefix(e.Name(), tempDirPrefix) {
			continue
		}
		dir := filepath.Join(parent, e.Name())
		f, err := os.OpenFile(dir, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
		if err != nil {
			continue
		}
		if syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB) == nil && os.RemoveAll(dir) == nil {
			n++
		}
		_ = f.Close()
	}
	return n
}
