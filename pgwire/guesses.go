package pgwire

import (
	"sync"
	"time"
)

const (
	maxFailDelay  = 5 * time.Second
	guessesMemory = time.Minute // without a failure, an address starts anew
	maxGuessers   = 4096        // addresses that are remembered
)

// guesses remembers which addresses have failed to log in. It knows no user
// names: a delay must not tell whether one exists. Safe for concurrent use; its
// size is bounded.
type guesses struct {
	base time.Duration // negative = off
	mu   sync.Mutex
	m    map[string]guesser
}

type guesser struct {
	n    int
	last time.Time
}

// failed counts a failure and returns how long its answer is to wait.
func (g *guesses) failed(host string) time.Duration {
	if g.base <= 0 {
		return 0
	}
	now := time.Now()
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.m == nil {
		g.m = map[string]guesser{}
	}
	x := g.m[host]
	if now.Sub(x.last) > guessesMemory {
		x.n = 0
	}
	if len(g.m) >= maxGuessers && x.n == 0 {
		for h, y := range g.m {
			if now.Sub(y.last) > guessesMemory {
				delete(g.m, h)
			}
		}
		if len(g.m) >= maxGuessers { // a crowd: everybody starts anew
			clear(g.m)
		}
	}
	d := maxFailDelay
	if x.n < 16 {
		d = min(d, g.base<<x.n)
	}
	x.n++
	x.last = now
	g.m[host] = x
	return d
}
