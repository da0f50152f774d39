package table

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2/vfs"
)

// keyFiles is the file system below the indexes of keys: tables of the database are
// on the local disk, what little else it has is in memory, as nothing of it outlives
// the process. Nothing is synced for the same reason.
//
// The database waits for room for ever, without a pause, with its writers blocked, and
// ends the process when it cannot write its manifest. So that a full disk is an error
// of statements and nothing else, a table that is flushed goes to memory when the disk
// does not take it; flushes then end, and writers are refused (see room) until the
// disk takes what is in memory. What is held so is the memtables that there were, at
// most.
type keyFiles struct {
	vfs.FS        // in memory
	disk   vfs.FS // of tables
	dir    string // of the disk

	bad  atomic.Pointer[error] // why the disk takes nothing, nil = it does
	done chan struct{}         // closed when the database is being closed

	mu   sync.Mutex      // guards held
	held map[string]bool // tables in memory that should be on the disk: whether they are whole
}

// keyFlush is what the database calls writing a memtable.
const keyFlush vfs.DiskWriteCategory = "pebble-memtable-flush"

// keyPause is how long a compaction waits on a disk that takes nothing.
const keyPause = time.Second

func newKeyFiles(disk vfs.FS, dir string) *keyFiles {
	return &keyFiles{FS: vfs.NewMem(), disk: disk, dir: dir, done: make(chan struct{}), held: map[string]bool{}}
}

// onDisk says where a table is on the disk; false: the file is in memory.
func (k *keyFiles) onDisk(name string) (string, bool) {
	if filepath.Ext(name) != ".sst" {
		return "", false
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	_, held := k.held[name]
	return filepath.Join(k.dir, filepath.Base(name)), !held
}

// failed remembers why the disk takes nothing.
func (k *keyFiles) failed(err error) { k.bad.Store(&err) }

// room reports an error while the disk takes nothing: it tries again.
func (k *keyFiles) room() error {
	bad := k.bad.Load()
	if bad == nil {
		return nil
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	for name, whole := range k.held {
		if !whole {
			return *bad // it is being written
		}
		f, err := k.FS.Open(name)
		if err != nil {
			return err
		}
		raw := make([]byte, fileSize(f))
		_, err = f.ReadAt(raw, 0)
		if err = errors.Join(err, f.Close()); err == nil {
			err = k.put(filepath.Base(name), raw)
		}
		if err != nil {
			k.failed(err)
			return err
		}
		delete(k.held, name)
		_ = k.FS.Remove(name) // whoever reads it has it open
	}
	err := k.put("probe", make([]byte, 64<<10))
	if err == nil {
		err = k.disk.Remove(filepath.Join(k.dir, "probe"))
	}
	if err != nil {
		k.failed(err)
		return err
	}
	k.bad.Store(nil)
	return nil
}

func fileSize(f vfs.File) int64 {
	st, err := f.Stat()
	if err != nil {
		return 0
	}
	return st.Size()
}

// put writes a file to the disk, or leaves none.
func (k *keyFiles) put(base string, raw []byte) error {
	path := filepath.Join(k.dir, base)
	f, err := k.disk.Create(path, keyFlush)
	if err != nil {
		return err
	}
	_, err = f.Write(raw)
	if err = errors.Join(err, f.Close()); err != nil {
		_ = k.disk.Remove(path)
	}
	return err
}

// Create makes a table on the disk, or another file in memory.
func (k *keyFiles) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	path, disk := k.onDisk(name)
	if !disk {
		return k.FS.Create(name, why)
	}
	if k.bad.Load() != nil && why != keyFlush {
		t := time.NewTimer(keyPause)
		defer t.Stop()
		select {
		case <-t.C:
		case <-k.done:
			return nil, fmt.Errorf("key index: %w", os.ErrClosed)
		}
	}
	f := &keyFile{k: k, name: name, path: path, flush: why == keyFlush}
	var err error
	if f.File, err = k.disk.Create(path, why); err != nil {
		if err = f.toMemory(err); err != nil {
			return nil, err
		}
	}
	return f, nil
}

// Open opens a file.
func (k *keyFiles) Open(name string, opts ...vfs.OpenOption) (vfs.File, error) {
	if path, disk := k.onDisk(name); disk {
		return k.disk.Open(path, opts...)
	}
	return k.FS.Open(name, opts...)
}

// Remove removes a file.
func (k *keyFiles) Remove(name string) error {
	if path, disk := k.onDisk(name); disk {
		return k.disk.Remove(path)
	}
	k.mu.Lock()
	delete(k.held, name)
	k.mu.Unlock()
	return k.FS.Remove(name)
}

// Stat describes a file.
func (k *keyFiles) Stat(name string) (vfs.FileInfo, error) {
	if path, disk := k.onDisk(name); disk {
		return k.disk.Stat(path)
	}
	return k.FS.Stat(name)
}

// keyFile is a table that is being written.
type keyFile struct {
	vfs.File
	k          *keyFiles
	name, path string
	flush      bool
	memory     bool
	n          int64 // bytes that are in it
}

// toMemory goes on in memory after an error of the disk, if the table is flushed.
func (f *keyFile) toMemory(why error) error {
	f.k.failed(why)
	if !f.flush || f.memory {
		return why
	}
	var raw []byte
	if f.File != nil {
		raw = make([]byte, f.n)
		r, err := f.k.disk.Open(f.path)
		if err != nil {
			return errors.Join(why, err)
		}
		if f.n > 0 {
			_, err = r.ReadAt(raw, 0)
		}
		if err := errors.Join(err, r.Close()); err != nil {
			return errors.Join(why, err)
		}
		_ = f.File.Close() // it has failed already, or nobody wants it
	}
	_ = f.k.disk.Remove(f.path)
	m, err := f.k.FS.Create(f.name, keyFlush)
	if err == nil {
		_, err = m.Write(raw)
	}
	if err != nil {
		return errors.Join(why, err)
	}
	f.File, f.memory = m, true
	f.k.mu.Lock()
	f.k.held[f.name] = false
	f.k.mu.Unlock()
	return nil
}

// Write appends.
func (f *keyFile) Write(b []byte) (int, error) {
	n, err := f.File.Write(b)
	if err != nil {
		if err = f.toMemory(err); err != nil {
			return n, err
		}
		n, err = f.File.Write(b)
	}
	f.n += int64(n)
	return n, err
}

// Close ends writing. A file whose bytes did not all get to the disk is written again.
func (f *keyFile) Close() error {
	err := f.File.Close()
	if err != nil && !f.memory {
		if err = f.toMemory(err); err == nil {
			err = f.File.Close()
		}
	}
	if err == nil && f.memory {
		f.k.mu.Lock()
		if _, ok := f.k.held[f.name]; ok { // not removed meanwhile
			f.k.held[f.name] = true
		}
		f.k.mu.Unlock()
	}
	return err
}

// Sync does nothing, as do the others of its kind.
func (f *keyFile) Sync() error { return nil }

// SyncData does nothing.
func (f *keyFile) SyncData() error { return nil }

// SyncTo does nothing.
func (f *keyFile) SyncTo(int64) (bool, error) { return false, nil }

// Preallocate does nothing.
func (f *keyFile) Preallocate(int64, int64) error { return nil }
