package vectorized

import (
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Stats are the counters of a query by plan node ID, for EXPLAIN ANALYZE. They
// grow while the query runs.
type Stats struct {
	mu    sync.Mutex // guards nodes
	nodes map[int]*NodeStats
}

// NodeStats are the counters of one plan node, over all workers and loops.
// Fields are read with Snapshot or after the query ended.
type NodeStats struct {
	Rows, Batches int64
	Loops         int64 // times the node was started: more than 1 below an Apply
	// BusyNanos is the time spent in the node and the nodes below it, summed
	// over its workers; waiting of a consumer is not in it.
	BusyNanos int64
	// MemPeak is the most bytes the node held at once.
	MemPeak int64
	// Detail are counters that only some operators have: groups, build rows,
	// rows that runtime filters dropped.
	mu     sync.Mutex // guards detail and Report
	detail map[string]int64
	Report *table.PlanReport // scans only
}

func newStats() *Stats { return &Stats{nodes: map[int]*NodeStats{}} }

// Node returns the counters of a plan node, which exist from the first call on.
func (s *Stats) Node(id int) *NodeStats {
	s.mu.Lock()
	defer s.mu.Unlock()
	n := s.nodes[id]
	if n == nil {
		n = &NodeStats{}
		s.nodes[id] = n
	}
	return n
}

// Busy returns BusyNanos as a duration.
func (n *NodeStats) Busy() time.Duration { return time.Duration(atomic.LoadInt64(&n.BusyNanos)) }

// Detail returns a copy of the counters that only some operators have.
func (n *NodeStats) Detail() map[string]int64 {
	n.mu.Lock()
	defer n.mu.Unlock()
	out := make(map[string]int64, len(n.detail))
	for k, v := range n.detail {
		out[k] = v
	}
	return out
}

func (n *NodeStats) add(name string, v int64) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.detail == nil {
		n.detail = map[string]int64{}
	}
	n.detail[name] += v
}

func (n *NodeStats) peak(a *mem.Account) {
	for p, m := a.Peak(), atomic.LoadInt64(&n.MemPeak); p > m; m = atomic.LoadInt64(&n.MemPeak) {
		if atomic.CompareAndSwapInt64(&n.MemPeak, m, p) {
			return
		}
	}
}

// Stats returns the counters of the query.
func (q *Query) Stats() *Stats { return q.rt.stats }

// MemPeak returns the most bytes that the query held at once.
func (q *Query) MemPeak() int64 { return q.rt.acc.Peak() }

func (n *NodeStats) setReport(r *table.PlanReport) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.Report = r
}
