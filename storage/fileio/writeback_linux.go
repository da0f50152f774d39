package fileio

import (
	"os"
	"syscall"
)

// startWriteback asks the kernel to begin writing what f holds, without waiting:
// the sync that follows in a moment then finds less to do. It promises nothing,
// so its error means nothing.
func startWriteback(f *os.File) {
	const write = 2 // SYNC_FILE_RANGE_WRITE
	_ = syscall.SyncFileRange(int(f.Fd()), 0, 0, write)
}
