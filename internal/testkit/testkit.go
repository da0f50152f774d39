// Package testkit says how long random tests run.
package testkit

import (
	"os"
	"strconv"
)

// Factor is PAIMON_SQL_SOAK: by how much the long forms of tests, which `make
// soak` runs, are longer; 1 when it is not set.
func Factor() int {
	if n, err := strconv.Atoi(os.Getenv("PAIMON_SQL_SOAK")); err == nil && n > 0 {
		return n
	}
	return 1
}

// Rounds is n times the factor: how often a random test that costs seconds tries.
func Rounds(n int) int { return n * Factor() }
