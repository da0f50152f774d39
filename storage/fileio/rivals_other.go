//go:build !linux

package fileio

import (
	"sync"
	"time"
)

// rivalWatch lists a directory to find the temporary files of other writers.
type rivalWatch struct {
	mu   sync.Mutex
	dead map[string]bool
}

var watch rivalWatch

// pending returns the temporary files in dir that other writers are about to rename
// to name.
func (w *rivalWatch) pending(dir, name string, patience time.Duration) (temps []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for t, n := range listRivals(dir, patience) {
		if n == name && !w.dead[t] {
			temps = append(temps, t)
		}
	}
	return temps
}

// forsake says that nobody waits for these temporary files of dir again.
func (w *rivalWatch) forsake(_ string, temps []string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.dead == nil || len(w.dead) > 1000 {
		w.dead = map[string]bool{}
	}
	for _, t := range temps {
		w.dead[t] = true
	}
}
