package fileio

import (
	"encoding/binary"
	"maps"
	"os"
	"path/filepath"
	"sync"
	"syscall"
	"time"
)

// rivalWatch keeps the temporary files of other writers by inotify(7), because a
// snapshot directory may hold too many names to list it for every commit. What was
// created before a call of pending is seen by it: the kernel queues an event before
// the call that made it returns. Writers on other hosts of a network file system
// are not seen.
type rivalWatch struct {
	mu   sync.Mutex
	fd   int
	up   bool
	dirs map[string]*rivalDir
	byWD map[int32]*rivalDir
	uses int64
	buf  [16 << 10]byte
}

// rivalDir is a directory that is watched.
type rivalDir struct {
	path  string
	ident os.FileInfo
	wd    int32
	used  int64
	temps map[string]string // name of the temporary file to the one it is for
	dead  map[string]bool   // temporary files that nobody will rename any more
}

// watchedDirs bounds the directories that are watched at a time.
const watchedDirs = 512

var watch rivalWatch

// pending returns the temporary files in dir that other writers are about to rename
// to name.
func (w *rivalWatch) pending(dir, name string, patience time.Duration) (temps []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	d := w.open(dir, patience)
	if d == nil { // no watch to be had
		for t, n := range listRivals(dir, patience) {
			if n == name {
				temps = append(temps, t)
			}
		}
		return temps
	}
	for t, n := range d.temps {
		if n != name || d.dead[t] {
			continue
		}
		// An event that was lost must not hold anybody up.
		if _, err := os.Lstat(filepath.Join(dir, t)); err != nil {
			delete(d.temps, t)
			continue
		}
		temps = append(temps, t)
	}
	return temps
}

// forsake says that nobody waits for these temporary files of dir again.
func (w *rivalWatch) forsake(dir string, temps []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if d := w.dirs[dir]; d != nil {
		for _, t := range temps {
			d.dead[t] = true
		}
	}
}

// open returns the state of dir as of now; nil where it cannot be watched.
func (w *rivalWatch) open(dir string, patience time.Duration) *rivalDir {
	st, err := os.Stat(dir)
	if err != nil {
		return nil
	}
	if !w.up {
		fd, err := syscall.InotifyInit1(syscall.IN_NONBLOCK | syscall.IN_CLOEXEC)
		if err != nil {
			return nil
		}
		w.fd, w.up, w.dirs, w.byWD = fd, true, map[string]*rivalDir{}, map[int32]*rivalDir{}
	}
	w.drain()
	w.uses++
	d := w.dirs[dir]
	if d != nil && !os.SameFile(d.ident, st) { // another directory has the name now
		w.drop(d)
		d = nil
	}
	if d == nil {
		if len(w.dirs) >= watchedDirs {
			w.dropOldest()
		}
		wd, err := syscall.InotifyAddWatch(w.fd, dir, syscall.IN_CREATE|syscall.IN_MOVED_TO|syscall.IN_MOVED_FROM|syscall.IN_DELETE|syscall.IN_ONLYDIR)
		if err != nil {
			return nil
		}
		if old := w.byWD[int32(wd)]; old != nil { // the same directory under another path
			delete(w.dirs, old.path)
		}
		// The list comes after the watch, so that nothing falls between them.
		d = &rivalDir{path: dir, ident: st, wd: int32(wd), temps: map[string]string{}, dead: map[string]bool{}}
		maps.Copy(d.temps, listRivals(dir, patience))
		w.dirs[dir], w.byWD[d.wd] = d, d
		w.drain()
	}
	d.used = w.uses
	return d
}

func (w *rivalWatch) drop(d *rivalDir) {
	_, _ = syscall.InotifyRmWatch(w.fd, uint32(d.wd)) // gone already when the directory is
	w.forget(d)
}

func (w *rivalWatch) forget(d *rivalDir) {
	if w.dirs[d.path] == d {
		delete(w.dirs, d.path)
	}
	if w.byWD[d.wd] == d {
		delete(w.byWD, d.wd)
	}
}

func (w *rivalWatch) dropOldest() {
	var oldest *rivalDir
	for _, d := range w.dirs {
		if oldest == nil || d.used < oldest.used {
			oldest = d
		}
	}
	w.drop(oldest)
}

// drain takes the events that there are.
func (w *rivalWatch) drain() {
	for {
		n, err := syscall.Read(w.fd, w.buf[:])
		if err == syscall.EINTR {
			continue
		}
		if n <= 0 || err != nil {
			return
		}
		for b := w.buf[:n]; len(b) >= syscall.SizeofInotifyEvent; {
			wd, mask := int32(binary.NativeEndian.Uint32(b)), binary.NativeEndian.Uint32(b[4:])
			end := syscall.SizeofInotifyEvent + int(binary.NativeEndian.Uint32(b[12:]))
			name := b[syscall.SizeofInotifyEvent:end]
			b = b[end:]
			if mask&syscall.IN_Q_OVERFLOW != 0 { // all is made anew
				for _, d := range w.dirs {
					w.drop(d)
				}
				continue
			}
			d := w.byWD[wd]
			if d == nil {
				continue
			}
			if mask&syscall.IN_IGNORED != 0 {
				w.forget(d)
				continue
			}
			if len(name) == 0 || name[0] != '.' {
				continue
			}
			for len(name) > 0 && name[len(name)-1] == 0 {
				name = name[:len(name)-1]
			}
			if mask&(syscall.IN_CREATE|syscall.IN_MOVED_TO) == 0 {
				delete(d.temps, string(name))
				delete(d.dead, string(name))
			} else if target, ok := rivalOf(string(name)); ok {
				d.temps[string(name)] = target
			}
		}
	}
}
