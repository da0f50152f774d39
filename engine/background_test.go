package engine

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// until polls for a condition.
func until(t *testing.T, what string, f func() bool) {
	t.Helper()
	for end := time.Now().Add(time.Minute); ; time.Sleep(10 * time.Millisecond) {
		if f() {
			return
		}
		if time.Now().After(end) {
			t.Fatal("never: ", what)
		}
	}
}

func maintained(t *testing.T, settings map[string]string) (*Engine, *Session) {
	t.Helper()
	e, err := Open(t.Context(), Config{FileIO: fileio.NewMem(), Warehouse: "mem://", Maintain: true, Settings: settings})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = e.Close() })
	s, err := e.OpenSession(t.Context(), Startup{User: "u", Database: "paimon"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	return e, s
}

// texts collects what a query yields, values divided by |.
type texts struct {
	rows    []string
	notices []string
	tags    []string
}

func (x *texts) Columns([]Column) error { return nil }
func (x *texts) Batch(_ context.Context, b *vec.Batch) error {
	b = vec.Compact(b)
	for i := range b.N {
		var vs []string
		for c := range b.Cols {
			vs = append(vs, fmt.Sprint(vec.DatumAt(b.Cols[c], b.Schema[c].Type, i)))
		}
		x.rows = append(x.rows, strings.Join(vs, "|"))
	}
	return nil
}
func (x *texts) Complete(tag string) error   { x.tags = append(x.tags, tag); return nil }
func (x *texts) Notice(e *pgerr.Error)       { x.notices = append(x.notices, e.Message) }
func (x *texts) Empty() error                { return nil }
func (x *texts) ParameterStatus(_, _ string) {}

func runSQL(t *testing.T, s *Session, sql string) []string {
	t.Helper()
	x := &texts{}
	if err := s.Query(t.Context(), sql, x); err != nil {
		t.Fatalf("%s: %v", sql, err)
	}
	return x.rows
}

func TestBackgroundCompaction(t *testing.T) {
	_, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE k (id int PRIMARY KEY, v int)")
	for i := range 8 {
		runSQL(t, s, fmt.Sprintf("INSERT INTO k SELECT g, %d FROM generate_series(1, 100) g", i))
	}
	until(t, "a compaction of k", func() bool {
		return runSQL(t, s, "SELECT count(*) FROM k$snapshots WHERE commit_kind = 'COMPACT'")[0] != "0"
	})
	if got := runSQL(t, s, "SELECT count(*), min(v), max(v) FROM k"); got[0] != "100|7|7" {
		t.Errorf("k holds %v", got)
	}
	// A write-only table is left to its own job.
	runSQL(t, s, "CREATE TABLE w (id int PRIMARY KEY, v int) WITH ('write-only' = 'true')")
	for i := range 12 {
		runSQL(t, s, fmt.Sprintf("INSERT INTO w VALUES (1, %d)", i))
	}
	runSQL(t, s, "INSERT INTO k VALUES (0, 0)") // behind w on the list
	until(t, "a look at k", func() bool {
		s.eng.maint.mu.Lock()
		defer s.eng.maint.mu.Unlock()
		for _, j := range s.eng.maint.jobs {
			if j.queued || j.running {
				return false
			}
		}
		return true
	})
	if got := runSQL(t, s, "SELECT count(*) FROM w$snapshots WHERE commit_kind = 'COMPACT'"); got[0] != "0" {
		t.Error("a write-only table was compacted")
	}
	if got := runSQL(t, s, "CALL sys.compact('w')"); !strings.HasPrefix(got[0], "true|13|1|12|1|") {
		t.Errorf("sys.compact says %v", got)
	}
}

// A table whose runs are above the stop trigger makes writers wait, and tells them.
func TestWritersWait(t *testing.T) {
	e, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE k (id int PRIMARY KEY, v int)")
	runSQL(t, s, "INSERT INTO k VALUES (1, 1)")
	var j *tableJob
	until(t, "the job", func() bool {
		e.maint.mu.Lock()
		defer e.maint.mu.Unlock()
		for _, x := range e.maint.jobs {
			j = x
		}
		if j == nil || j.queued || j.running || j.seen == 0 {
			return false
		}
		j.stop, j.running = make(chan struct{}), true // no worker may free it
		return true
	})
	before := e.maint.stats.stalls.Value()
	x := &texts{}
	done := make(chan error)
	go func() { done <- s.Query(t.Context(), "INSERT INTO k VALUES (2, 2)", x) }()
	until(t, "a stall", func() bool { return e.maint.stats.stalls.Value() > before })
	select {
	case err := <-done:
		t.Fatal("it did not wait: ", err)
	default:
	}
	e.maint.mu.Lock()
	e.maint.free(j)
	j.running = false
	e.maint.mu.Unlock()
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(x.notices) != 1 || !strings.Contains(x.notices[0], "compaction") {
		t.Errorf("notices: %v", x.notices)
	}
}

func TestCompactionProgress(t *testing.T) {
	e, s := maintained(t, nil)
	c := e.maint.track(0, "public.k", 7)
	show := func(want string) {
		t.Helper()
		got := runSQL(t, s, "SELECT pid, relid, relname, phase, rows_done, rows_total, bytes_written FROM pg_stat_progress_compact")
		if len(got) != 1 || got[0] != want {
			t.Errorf("rows: %v", got)
		}
	}
	show("<nil>|7|public.k|planning|0|0|0")
	c.progress(3, 10)
	if err := c.throttle(nil)(t.Context(), 100); err != nil {
		t.Fatal(err)
	}
	show("<nil>|7|public.k|rewriting|3|10|100")
	done, err := c.publishing(func() {}, nil)
	if err != nil {
		t.Fatal(err)
	}
	show("<nil>|7|public.k|publishing|3|10|100")
	done()
	c.end()
	if got := runSQL(t, s, "SELECT * FROM pg_stat_progress_compact"); len(got) != 0 {
		t.Errorf("rows: %v", got)
	}
}

// A panic in a job is logged; the next commit is maintained.
func TestMaintenancePanic(t *testing.T) {
	e, s := maintained(t, nil)
	e.maint.mark(tableKey{dir: "no.db/such"}, nil) // a nil store panics
	until(t, "the panic", func() bool { return e.maint.stats.failures.Value() > 0 })
	runSQL(t, s, "CREATE TABLE k (id int PRIMARY KEY, v int)")
	for i := range 8 {
		runSQL(t, s, fmt.Sprintf("INSERT INTO k VALUES (1, %d)", i))
	}
	until(t, "a compaction after the panic", func() bool {
		return runSQL(t, s, "SELECT count(*) FROM k$snapshots WHERE commit_kind = 'COMPACT'")[0] != "0"
	})
}

func TestMaintenanceOff(t *testing.T) {
	e, s := maintained(t, map[string]string{"paimon.maintenance": "off"})
	runSQL(t, s, "CREATE TABLE k (id int PRIMARY KEY, v int)")
	runSQL(t, s, "INSERT INTO k VALUES (1, 1)")
	if e.afterCommit != nil || e.beforeWrite != nil || e.maint.on {
		t.Error("maintenance is on")
	}
}

func TestListed(t *testing.T) {
	for _, c := range []struct {
		pattern, schema, table string
		want                   bool
	}{
		{"sales.*", "sales", "t", true}, {"sales.*", "sale", "t", false}, {"default.t", "public", "t", true}, {"t", "public", "t", true},
		{"t", "sales", "t", false}, {"*.a?", "x", "ab", true}, {"*.a?", "x", "abc", false}, {"[", "public", "t", false},
	} {
		if got := listed(c.pattern, c.schema, c.table); got != c.want {
			t.Errorf("%s means %s.%s: %v", c.pattern, c.schema, c.table, got)
		}
	}
}

// While a worker is busy with a table, its writers look themselves whether a bucket
// gets too many runs.
func TestWritersWaitForBusyWorker(t *testing.T) {
	e, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE k (id int PRIMARY KEY, v int)")
	runSQL(t, s, "INSERT INTO k VALUES (1, 1)")
	var j *tableJob
	until(t, "the job", func() bool {
		e.maint.mu.Lock()
		defer e.maint.mu.Unlock()
		for _, x := range e.maint.jobs {
			j = x
		}
		if j == nil || j.queued || j.running || j.seen == 0 {
			return false
		}
		j.running = true // as if a long compaction had begun
		return true
	})
	before := e.maint.stats.stalls.Value() // of all tests
	for i := range paceRuns + 1 {
		runSQL(t, s, fmt.Sprintf("INSERT INTO k VALUES (%d, 1)", i))
	}
	if e.maint.stats.stalls.Value() != before {
		t.Error("a writer waited too early")
	}
	x := &texts{}
	done := make(chan error)
	go func() { done <- s.Query(t.Context(), "INSERT INTO k VALUES (2, 2)", x) }()
	until(t, "a stall", func() bool { return e.maint.stats.stalls.Value() > before })
	select {
	case err := <-done:
		t.Fatal("it did not wait: ", err)
	default:
	}
	// The worker is done and takes the table again: it was told to.
	e.maint.ended(t.Context(), j, 0, nil)
	if err := <-done; err != nil {
		t.Fatal(err)
	}
	if len(x.notices) != 1 || !strings.Contains(x.notices[0], "public.k") {
		t.Errorf("notices: %v", x.notices)
	}
	if got := runSQL(t, s, "SELECT count(*) > 0 FROM k$snapshots WHERE commit_kind = 'COMPACT'"); got[0] != "true" {
		t.Error("nothing was compacted")
	}
}
