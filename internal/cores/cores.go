// Package cores says how much of the machine work may use, and keeps a processor of
// the Go scheduler free beside that work.
package cores

import (
	"os"
	"runtime"
)

var count = runtime.GOMAXPROCS(0)

// Count is how many cores the process may use: GOMAXPROCS as it was at the start, which
// heeds affinity and the limits of a container. Whoever splits work over the cores asks
// here, not runtime.
func Count() int { return count }

// Spare gives the Go scheduler one processor more than there are cores, unless the
// environment sets GOMAXPROCS. The scheduler looks for input from the network when a
// processor has nothing to run. Where clients send as fast as they are answered, or
// scans use every core, that is seldom: sessions then wait up to 10 ms for their turn.
// With one processor to spare there is always a thread that waits for input, and the
// operating system shares the cores among the threads.
func Spare() {
	if os.Getenv("GOMAXPROCS") == "" {
		runtime.GOMAXPROCS(count + 1)
	}
}
