package plan

import (
	"time"

	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Counters are what one node of a plan did while it ran, over all workers and
// loops.
type Counters struct {
	Loops   int64 // times it was started; rows and times below are sums
	Rows    int64
	Batches int64
	// First is when the first row came, Total the time spent in the node and
	// below it, both from the start of the query's execution or summed per loop.
	First, Total time.Duration
	// RowsRemoved are rows that a filter or join condition threw away.
	RowsRemoved int64
	Memory      int64 // peak bytes accounted
	Spilled     int64 // bytes written to disk
	Groups      int64 // of hash tables
	Workers     int
}

// StatsSource yields runtime counters by Base.ID, for EXPLAIN ANALYZE.
type StatsSource interface {
	Node(id int) (Counters, bool)
	// Scan is what planning and reading a scan saw and skipped; nil = not run.
	Scan(id int) *table.PlanReport
	// Times are the durations of planning and of execution; 0 = unknown.
	Times() (planning, execution time.Duration)
}
