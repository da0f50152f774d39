package metrics

import (
	"os"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"time"
)

// Process registers what Prometheus' own clients say of a process, under their names,
// and the product's version.
func Process(version string) {
	NewFuncVec("paimon_sql_build_info", "1; the label is the version.", "gauge", "version", func() map[string]float64 {
		return map[string]float64{version: 1}
	})
	NewGaugeFunc("go_goroutines", "Goroutines now.", func() float64 { return float64(runtime.NumGoroutine()) })
	NewGaugeFunc("go_memstats_heap_alloc_bytes", "Memory of the heap now, dead objects included.", func() float64 {
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return float64(m.HeapAlloc)
	})
	NewCounterFunc("process_cpu_seconds_total", "CPU time of the process.", func() float64 {
		var u syscall.Rusage
		if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
			return 0
		}
		return time.Duration(u.Utime.Nano() + u.Stime.Nano()).Seconds()
	})
	NewGaugeFunc("process_resident_memory_bytes", "Memory of the process that is in RAM.", func() float64 {
		f := procFields("/proc/self/statm")
		if len(f) < 2 {
			return 0
		}
		pages, _ := strconv.ParseFloat(f[1], 64) // 0 when the kernel says nonsense
		return pages * float64(os.Getpagesize())
	})
	NewGaugeFunc("process_open_fds", "Open file descriptors.", func() float64 {
		d, err := os.ReadDir("/proc/self/fd")
		if err != nil {
			return 0
		}
		return float64(len(d))
	})
	began := float64(time.Now().UnixNano()) / 1e9
	NewGaugeFunc("process_start_time_seconds", "When the process began, in seconds since 1970.", func() float64 { return began })
}

func procFields(name string) []string {
	b, err := os.ReadFile(name)
	if err != nil {
		return nil
	}
	return strings.Fields(string(b))
}
