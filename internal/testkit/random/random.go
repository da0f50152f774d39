// Package random gives tests their seeds.
package random

import (
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
)

var (
	mu    sync.Mutex
	calls = map[string]uint64{} // by test: how many seeds it had
)

// Seed is a seed of a test's own, printed for the log of a failure: one of chance, or
// PAIMON_SQL_SEED, with which a run is repeated. A test that asks more often gets
// numbers that follow PAIMON_SQL_SEED. It fails the test when the variable is no
// number.
func Seed(t testing.TB) uint64 {
	t.Helper()
	seed := rand.Uint64() >> 1
	if s := os.Getenv("PAIMON_SQL_SEED"); s != "" {
		n, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("PAIMON_SQL_SEED: %v", err)
		}
		mu.Lock()
		seed = n + calls[t.Name()]
		calls[t.Name()]++
		mu.Unlock()
	}
	t.Logf("PAIMON_SQL_SEED=%d", seed)
	return seed
}
