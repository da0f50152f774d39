package table

import (
	"io/fs"
	"os"
	"path/filepath"
	"syscall"
	"testing"
)

// dropCached has the system forget what it keeps in memory of the files below dir:
// what is read next comes from the disk.
func dropCached(t testing.TB, dir string) bool {
	t.Helper()
	const dontNeed = 4 // POSIX_FADV_DONTNEED
	err := filepath.WalkDir(dir, func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		f, err := os.Open(p)
		if err != nil {
			return err
		}
		defer f.Close()
		if err := f.Sync(); err != nil { // dirty pages are not dropped
			return err
		}
		if _, _, e := syscall.Syscall6(syscall.SYS_FADVISE64, f.Fd(), 0, 0, dontNeed, 0, 0); e != 0 {
			return e
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	return true
}
