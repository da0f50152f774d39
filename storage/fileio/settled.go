package fileio

import "time"

// Settled reports whether what was read at a time, of a file or directory that was
// last modified at mod, stays true as long as the modification time does. A clock
// may tick so slowly that a change just after the reading shows the same time;
// so only what had been left alone for a while counts. Without a modification time,
// as object stores give none for directories, nothing does.
func Settled(mod, read time.Time) bool { return !mod.IsZero() && read.Sub(mod) > 2*time.Second }
