package cores

import (
	"runtime"
	"testing"
)

func TestSpare(t *testing.T) {
	before := runtime.GOMAXPROCS(0)
	defer runtime.GOMAXPROCS(before)
	n := Count()
	t.Setenv("GOMAXPROCS", "5")
	if Spare(); runtime.GOMAXPROCS(0) != before {
		t.Errorf("GOMAXPROCS is set and yet became %d", runtime.GOMAXPROCS(0))
	}
	t.Setenv("GOMAXPROCS", "")
	if Spare(); runtime.GOMAXPROCS(0) != n+1 || Count() != n {
		t.Errorf("%d processors and %d cores, want %d and %d", runtime.GOMAXPROCS(0), Count(), n+1, n)
	}
}
