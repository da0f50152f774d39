package pgwire

import (
	"errors"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// watcher notices a client that vanishes while a statement runs: when it has run for
// a while, the socket is read. What arrives are pipelined messages, which stay in the
// buffer for later.
//
// Most statements end long before. So that they pay two visits to a mutex and no
// timer of their own, a timer that is set for one statement stays set when that has
// ended; it finds out whether the statement that runs when it fires is the one that
// ran when it was set, and else is set once more.
type watcher struct {
	r     *reader
	after time.Duration
	gone  func() // called, from another goroutine, when the client closes

	mu      sync.Mutex // guards all below
	timer   *time.Timer
	set     bool   // the timer will fire
	running bool   // a statement runs
	number  uint64 // of the statement that runs, or ran last
	seen    uint64 // number when the timer was set
	reading *watch // nil: nobody but the connection uses the reader
}

// begin says that a statement runs. Until end has returned nobody may hold bytes of
// the reader's buffer: messages are copied where needed.
func (w *watcher) begin() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = true
	w.number++
	if w.set {
		return
	}
	w.set, w.seen = true, w.number
	if w.timer == nil {
		w.timer = time.AfterFunc(w.after, w.fire)
	} else {
		w.timer.Reset(w.after)
	}
}

// every sets how long a statement runs before the socket is watched.
func (w *watcher) every(d time.Duration) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.after = d
}

func (w *watcher) fire() {
	w.mu.Lock()
	w.set = false
	if !w.running || w.reading != nil {
		w.mu.Unlock()
		return
	}
	if w.seen != w.number {
		w.set, w.seen = true, w.number
		w.timer.Reset(w.after)
		w.mu.Unlock()
		return
	}
	x := &watch{r: w.r, done: make(chan struct{}), gone: w.gone}
	w.reading = x
	w.mu.Unlock()
	x.run()
}

// end says that the statement has ended, and waits until the reader is the
// connection's again. It may be called more than once.
func (w *watcher) end() {
	w.mu.Lock()
	w.running = false
	x := w.reading
	w.reading = nil
	w.mu.Unlock()
	if x != nil {
		x.end()
	}
}

// watch reads for a watcher.
type watch struct {
	r    *reader
	stop atomic.Bool
	done chan struct{}
	gone func()
}

func (w *watch) run() {
	defer close(w.done)
	r := w.r
	for r.w-r.r < maxAhead && !w.stop.Load() {
		r.room(r.w - r.r + 1)
		n, err := r.nc.Read(r.buf[r.w:])
		r.w += n
		if err == nil {
			continue
		}
		if errors.Is(err, os.ErrDeadlineExceeded) {
			return // end interrupted us, or the server shuts down
		}
		r.err = err
		w.gone()
		return
	}
}

// end stops the watch and waits for its goroutine. The read deadline is cleared:
// a request to interrupt is found by its flag.
func (w *watch) end() {
	w.stop.Store(true)
	w.r.nc.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed socket ends the read as well
	<-w.done
	w.r.nc.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
}
