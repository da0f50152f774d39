package engine

import (
	"context"
	"errors"
	"fmt"
	"path"
	"runtime/debug"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/internal/metrics"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Maintenance in the background. A commit of this server puts its table on a list,
// once, however many commits follow; a worker takes the table off and
//
//	looks at the buckets that the new snapshots touched (metadata only),
//	compacts those that are due,
//	expires snapshots, not more often than expireEvery,
//
// and puts it back when the commits went on meanwhile, after a pause of paceFactor
// times what the compaction took: many small commits are compacted together, or
// compactions would take as much of the disk as the commits themselves. A bucket
// that is above num-sorted-run.stop-trigger and has more than paceRuns sorted runs
// is compacted without a pause; one that has so many even then, or while the
// compaction runs, makes the table's writers wait until it has been compacted, or
// its compaction has failed: that is the back-pressure.
// Tables of the setting paimon.maintenance_tables are looked at without commits, too.
//
// What a job does is published by it or not at all, so it may be cancelled at any
// time: a shutdown does.
const (
	// expireEvery is how often a table's snapshots are expired at most.
	expireEvery = 10 * time.Second
	// expireRounds bounds one expiry: each removes snapshot.expire.limit.
	expireRounds = 200
	// lookBack is over how many snapshots touched buckets are looked for; beyond
	// that all are.
	lookBack = 64
	// pollEvery is how often listed tables are looked at.
	pollEvery = time.Minute
	// retryAfter is how long a table whose maintenance failed is left alone, doubled
	// up to retryMost.
	retryAfter = time.Second
	retryMost  = 5 * time.Minute
	// paceFactor and paceMost are the pause between two compactions of a table, in
	// times of the first and at most.
	paceFactor = 10
	paceMost   = time.Second
	// An append table is left alone until it has been quiet for appendQuiet or has
	// appendMost new snapshots: joining its small files is not urgent, and takes from
	// a load that is under way.
	appendQuiet = time.Second
	appendMost  = 32
	// paceRuns is how many sorted runs a bucket may gather in a pause, even above its
	// stop trigger: they are small, and joining many at once is what the pause is for.
	paceRuns = 32
)

// maintenance is the engine's background work on tables. Its zero value tracks
// compactions and does nothing by itself.
type maintenance struct {
	e       *Engine
	tables  []string // patterns of listed tables
	stats   maintenanceStats
	limiter *byteLimiter // nil = no limit
	wake    chan struct{}
	waits   compactWaits

	mu    sync.Mutex // guards what follows
	on    bool
	jobs  map[tableKey]*tableJob
	ready []*tableJob
	next  int64
	shown map[int64]*compaction
}

type maintenanceStats struct {
	compactions, compacted, expired, failures, stalls *metrics.Counter
	stalled                                           *metrics.Histogram
}

// tableJob is what is known of a table that is maintained.
type tableJob struct {
	key   tableKey
	store *table.FileStore
	// queued, running, paused: it is on the list, a worker has it, it waits for its
	// pace. again: it is to go on the list once more after that.
	queued, running, paused, again bool
	seen                           int64 // buckets touched up to this snapshot have been looked at
	expired                        time.Time
	index                          bool // existing files are to be given indexes
	failures                       int
	pace                           time.Duration // the pause before it is looked at again
	over                           bool          // it had too many runs when last looked at
	stop                           chan struct{} // not nil: writers wait until it is closed
	// While a worker has it: how many commits have come, since a writer last looked
	// whether they are too many, and up to which snapshot that one looked.
	commits int
	looked  int64
}

// compaction is a row of pg_stat_progress_compact.
type compaction struct {
	pid         int32
	table       string
	oid         uint32
	started     time.Time
	phase       string
	done, total int64 // rows
	written     int64 // bytes
}

// startMaintenance starts the workers, unless the settings say otherwise.
func (e *Engine) startMaintenance() {
	m := &e.maint
	on, _ := e.Setting("paimon.maintenance")
	if on != "on" {
		return
	}
	workers := 1
	if v, ok := e.Setting("paimon.maintenance_workers"); ok {
		workers, _ = strconv.Atoi(v) // the list of settings has checked it
	}
	if d := e.reg.find("paimon.maintenance_rate"); d != nil {
		if n := d.number(e.reg.def(d)); n > 0 {
			m.limiter = &byteLimiter{rate: float64(n) * 1024}
		}
	}
	if v, ok := e.Setting("paimon.maintenance_tables"); ok {
		for _, t := range strings.Split(v, ",") {
			if t = strings.TrimSpace(t); t != "" {
				m.tables = append(m.tables, t)
			}
		}
	}
	m.on = true
	m.jobs = map[tableKey]*tableJob{}
	m.wake = make(chan struct{}, 1)
	m.stats = maintenanceStats{
		compactions: metrics.NewCounter("paimon_sql_engine_compactions_total", "Compactions that published a snapshot."),
		compacted:   metrics.NewCounter("paimon_sql_engine_compaction_written_bytes_total", "Bytes that compactions wrote."),
		expired:     metrics.NewCounter("paimon_sql_engine_expired_snapshots_total", "Snapshots expired in the background."),
		failures:    metrics.NewCounter("paimon_sql_engine_maintenance_failures_total", "Background jobs that failed."),
		stalls:      metrics.NewCounter("paimon_sql_engine_write_stalls_total", "Writers that had to wait for compaction."),
		stalled:     metrics.NewHistogram("paimon_sql_engine_write_stall_seconds", "How long writers waited for compaction.", metrics.DurationBuckets),
	}
	e.afterCommit = m.committed
	e.beforeWrite = m.admit
	for i := range workers {
		e.Background(fmt.Sprintf("maintenance %d", i), m.work)
	}
	if len(m.tables) > 0 {
		e.Background("maintenance of listed tables", m.poll)
	}
}

// committed notes that a table has a new snapshot.
func (m *maintenance) committed(k tableKey, store table.Table) {
	if s, ok := store.(*table.FileStore); ok {
		m.mark(k, s)
	}
}

func (m *maintenance) mark(k tableKey, s *table.FileStore) { m.note(k, s, false) }

// index has existing files of a table given the indexes that its options ask for.
func (m *maintenance) index(k tableKey, s *table.FileStore) {
	if m.working() {
		m.note(k, s, true)
	}
}

// working reports whether there are workers.
func (m *maintenance) working() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.on
}

func (m *maintenance) note(k tableKey, s *table.FileStore, index bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j := m.jobs[k]
	if j == nil {
		j = &tableJob{key: k, expired: time.Now()}
		m.jobs[k] = j
	}
	j.store = s
	j.index = j.index || index
	if j.running {
		j.commits++
	}
	m.push(j)
}

// push puts a table on the list. m.mu is held.
func (m *maintenance) push(j *tableJob) {
	switch {
	case j.running, j.paused:
		j.again = true
	case !j.queued:
		j.queued = true
		m.ready = append(m.ready, j)
	}
	select {
	case m.wake <- struct{}{}:
	default:
	}
}

// pop takes a table off the list, nil when there is none.
func (m *maintenance) pop() *tableJob {
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(m.ready) == 0 {
		return nil
	}
	j := m.ready[0]
	m.ready = slices.Delete(m.ready, 0, 1)
	j.queued, j.running = false, true
	j.commits, j.looked = 0, 0
	if len(m.ready) > 0 {
		select {
		case m.wake <- struct{}{}:
		default:
		}
	}
	return j
}

// work is one worker.
func (m *maintenance) work(ctx context.Context) {
	for {
		j := m.pop()
		if j == nil {
			select {
			case <-m.wake:
				continue
			case <-ctx.Done():
				return
			}
		}
		later, err := m.safely(ctx, j)
		m.ended(ctx, j, later, err)
	}
}

// safely runs a job; a panic in it is its error.
func (m *maintenance) safely(ctx context.Context, j *tableJob) (later time.Duration, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = m.e.panicked(p, debug.Stack())
			m.e.log.Error("background work panicked", "work", "maintenance", "table", j.key.String(), "err", p, "stack", string(debug.Stack()))
		}
	}()
	return m.maintain(ctx, j)
}

// ended puts a job aside. later, when not 0, is when it is due again.
func (m *maintenance) ended(ctx context.Context, j *tableJob, later time.Duration, err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.running = false
	if err != nil && ctx.Err() == nil {
		m.stats.failures.Add(1)
		later = min(retryAfter<<min(j.failures, 16), retryMost)
		j.failures++
		m.e.log.Error("maintenance failed", "table", j.key.String(), "err", err, "retry_ms", later.Milliseconds())
		m.free(j) // nobody waits for what does not work
		j.again = false
	} else if err == nil {
		j.failures = 0
	}
	if ctx.Err() != nil {
		m.free(j)
		return
	}
	if j.again {
		j.again = false
		if j.pace == 0 || j.over {
			m.push(j)
			return
		}
		j.paused, later = true, j.pace
	}
	if later > 0 {
		time.AfterFunc(later, func() {
			if ctx.Err() != nil {
				return
			}
			m.mu.Lock()
			defer m.mu.Unlock()
			j.paused, j.again = false, false
			m.push(j)
		})
	}
}

// free lets waiting writers go on. m.mu is held.
func (m *maintenance) free(j *tableJob) {
	if j.stop != nil {
		close(j.stop)
		j.stop = nil
	}
}

// maintain does what is due for a table.
func (m *maintenance) maintain(ctx context.Context, j *tableJob) (later time.Duration, err error) {
	m.mu.Lock()
	store, seen := j.store, j.seen
	m.mu.Unlock()
	at := snapshot.Ref{Branch: j.key.branch}
	latest, err := store.Snapshots(j.key.branch).Latest(ctx)
	if errors.Is(err, snapshot.ErrNotFound) || errors.Is(err, schema.ErrNotFound) || err == nil && latest == nil {
		return 0, m.forget(j) // dropped, or empty
	}
	if err != nil {
		return 0, err
	}
	sch, err := store.Schema(ctx, at)
	if err != nil {
		if errors.Is(err, schema.ErrNotFound) {
			return 0, m.forget(j)
		}
		return 0, err
	}
	if err := m.indexFiles(ctx, j, store); err != nil {
		return 0, err
	}
	if schema.Options(sch.Options).Flag("write-only", false) {
		m.done(j, latest.ID)
		return 0, nil
	}
	// A table whose commits wait for their compactions is left to those as well.
	left := len(sch.PrimaryKeys) == 0 || waitsForCompaction(sch.Options, true)
	if left && latest.ID-seen < appendMost && time.Since(time.UnixMilli(latest.TimeMillis)) < appendQuiet {
		m.mu.Lock()
		j.again, j.pace = true, appendQuiet
		m.mu.Unlock()
		return m.expire(ctx, j, store)
	}
	if seen != latest.ID {
		due, err := m.due(ctx, j, store, seen, latest)
		if err != nil {
			return 0, err
		}
		if due != nil {
			began := time.Now()
			if m.limiter != nil {
				due.Throttle = m.limiter.wait
			}
			if _, err := m.run(ctx, m.e, j.key, store, due); err != nil {
				return 0, err
			}
			// What the compaction made, and others meanwhile, may be due again.
			m.mu.Lock()
			j.seen, j.again = latest.ID, true
			j.pace = min(paceFactor*time.Since(began), paceMost)
			m.mu.Unlock()
			return m.expire(ctx, j, store)
		}
	}
	m.done(j, latest.ID)
	return m.expire(ctx, j, store)
}

// indexFiles gives existing files their indexes, when that was asked for.
func (m *maintenance) indexFiles(ctx context.Context, j *tableJob, store *table.FileStore) error {
	m.mu.Lock()
	wanted := j.index
	j.index = false
	m.mu.Unlock()
	if !wanted {
		return nil
	}
	acc := m.e.root.Child("max_memory", 0)
	defer acc.Close()
	p := m.track(0, j.key.shown(), 0)
	defer p.end()
	o := table.IndexOptions{Branch: j.key.branch, Account: acc, Progress: p.progress, Throttle: p.throttle(nil)}
	if m.limiter != nil {
		o.Throttle = p.throttle(m.limiter.wait)
	}
	o.Publish = func(ctx context.Context) (func(), error) { return p.publishing(m.e.lockFiles(ctx, j.key)) }
	r, err := store.RewriteIndexes(ctx, o)
	if err == nil && r.LostRaces > 0 {
		m.mu.Lock() // others may have written without the indexes meanwhile
		j.index, j.again = true, true
		m.mu.Unlock()
	}
	if err != nil {
		m.mu.Lock()
		j.index = true
		m.mu.Unlock()
		return fmt.Errorf("index files: %w", err)
	}
	if r.SnapshotID > 0 {
		m.e.log.Debug("indexed", "table", j.key.String(), "snapshot", r.SnapshotID, "files", r.Files, "rows", r.Rows, "bytes", r.Bytes)
	}
	return nil
}

func (m *maintenance) done(j *tableJob, seen int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	j.seen, j.pace, j.over = seen, 0, false
	m.free(j)
}

func (m *maintenance) forget(j *tableJob) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.free(j)
	if !j.again {
		delete(m.jobs, j.key)
	}
	return nil
}

// due returns what of the table is to be compacted, nil for nothing; writers are
// held up when a bucket has too many runs.
func (m *maintenance) due(ctx context.Context, j *tableJob, store *table.FileStore, seen int64, latest *snapshot.Snapshot) (*table.CompactOptions, error) {
	if seen == 0 {
		seen = -1 // not looked at before
	}
	touched, whole, err := touchedBuckets(ctx, j.key.branch, store, seen, latest)
	if err != nil {
		return nil, err
	}
	if whole {
		// Not looked at before, or long ago: the compaction itself finds what is due.
		return &table.CompactOptions{Branch: j.key.branch}, nil
	}
	o := &table.CompactOptions{Branch: j.key.branch, Partitions: [][]byte{}, Buckets: []int32{}}
	stop := false
	at := snapshot.Ref{Branch: j.key.branch}
	for id := range touched {
		n, err := store.NeedsCompaction(ctx, at, []byte(id.Partition), id.Bucket)
		if err != nil {
			return nil, err
		}
		stop = stop || n.Stop && n.Runs > paceRuns
		if !n.Due {
			continue
		}
		if !slices.ContainsFunc(o.Partitions, func(p []byte) bool { return string(p) == id.Partition }) {
			o.Partitions = append(o.Partitions, []byte(id.Partition))
		}
		if !slices.Contains(o.Buckets, id.Bucket) {
			o.Buckets = append(o.Buckets, id.Bucket)
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if len(o.Buckets) == 0 {
		m.free(j)
		return nil, nil
	}
	if stop && j.over && j.stop == nil {
		j.stop = make(chan struct{})
	} else if !stop {
		m.free(j)
	}
	j.over = stop
	return o, nil
}

// run runs a compaction, shown in pg_stat_progress_compact.
func (m *maintenance) run(ctx context.Context, e *Engine, k tableKey, store *table.FileStore, o *table.CompactOptions) (*table.CompactReport, error) {
	acc := e.root.Child("max_memory", 0)
	defer acc.Close()
	o.Account = acc
	p := m.track(0, k.shown(), 0)
	defer p.end()
	o.Progress = p.progress
	o.Throttle = p.throttle(o.Throttle)
	o.Publish = func(ctx context.Context) (func(), error) { return p.publishing(e.lockFiles(ctx, k)) }
	began := time.Now()
	r, err := store.Compact(ctx, *o)
	if err != nil {
		return r, fmt.Errorf("compact: %w", err)
	}
	if r.SnapshotID > 0 {
		e.announcer.committed(k, store, r.SnapshotID)
		if m.on {
			m.stats.compactions.Add(1)
			m.stats.compacted.Add(r.BytesWritten)
			schema, name, _ := strings.Cut(k.shown(), ".")
			t := e.counts.table(catalog.OIDOf('r', schema, name))
			t.compactions.Add(1)
			t.lastCompaction.Store(time.Now().UnixMicro())
		}
		e.log.Debug("compacted", "table", k.String(), "snapshot", r.SnapshotID, "files_before", r.FilesBefore, "files_after", r.FilesAfter,
			"rows", r.RowsAfter, "bytes", r.BytesWritten, "dur_ms", time.Since(began).Milliseconds())
	}
	return r, nil
}

// expire expires snapshots when it is time; later is when that will be.
func (m *maintenance) expire(ctx context.Context, j *tableJob, store *table.FileStore) (later time.Duration, err error) {
	m.mu.Lock()
	wait := expireEvery - time.Since(j.expired)
	m.mu.Unlock()
	if wait > 0 {
		return wait, nil
	}
	for range expireRounds {
		r, err := store.Expire(ctx, table.ExpireOptions{Branch: j.key.branch})
		if err != nil {
			return 0, fmt.Errorf("expire snapshots: %w", err)
		}
		m.stats.expired.Add(int64(r.Snapshots))
		if r.Snapshots == 0 {
			break
		}
	}
	m.mu.Lock()
	j.expired = time.Now()
	m.mu.Unlock()
	return 0, nil
}

// admit makes a writer wait while its table has too many sorted runs.
func (m *maintenance) admit(ctx context.Context, k tableKey, _ table.Table) error {
	m.mu.Lock()
	j := m.jobs[k]
	if j == nil || j.stop == nil && j.commits <= paceRuns {
		m.mu.Unlock()
		return nil
	}
	stop := j.stop
	m.mu.Unlock()
	if stop == nil {
		if stop = m.crowded(ctx, j); stop == nil {
			return nil
		}
	}
	m.stats.stalls.Add(1)
	began := time.Now()
	defer func() { m.stats.stalled.Observe(time.Since(began).Seconds()) }()
	m.e.log.Info("a writer waits for compaction", "table", k.String())
	if s, ok := ctx.Value(sessionKey{}).(*Session); ok {
		s.notice(s.out, "NOTICE", pgerr.SuccessfulCompletion, "waiting until compaction of %s has caught up", k.shown())
	}
	select {
	case <-stop:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// crowded looks, on behalf of a writer, whether a bucket has got too many sorted runs
// while a worker is busy with the table, and returns what writers are to wait for
// then. What it cannot find out is left to the worker's next look.
func (m *maintenance) crowded(ctx context.Context, j *tableJob) chan struct{} {
	m.mu.Lock()
	store, from := j.store, max(j.seen, j.looked)
	if j.stop != nil || !j.running || j.commits <= paceRuns {
		defer m.mu.Unlock()
		return j.stop
	}
	j.commits = 0 // nobody else looks at the same commits
	m.mu.Unlock()
	latest, err := store.Snapshots(j.key.branch).Latest(ctx)
	if err != nil || latest == nil {
		return nil
	}
	touched, whole, err := touchedBuckets(ctx, j.key.branch, store, from, latest)
	if err != nil {
		return nil
	}
	stop := false
	if !whole {
		for id := range touched {
			n, err := store.NeedsCompaction(ctx, snapshot.Ref{Branch: j.key.branch}, []byte(id.Partition), id.Bucket)
			if err != nil {
				return nil
			}
			if stop = n.Stop && n.Runs > paceRuns; stop {
				break
			}
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	j.looked = latest.ID
	if stop && j.running && j.stop == nil {
		// The worker looks again at once when it is done, and frees them or not.
		j.stop, j.over, j.again = make(chan struct{}), true, true
	}
	return j.stop
}

// sessionKey finds the session that a context belongs to.
type sessionKey struct{}

// poll looks at the listed tables from time to time.
func (m *maintenance) poll(ctx context.Context) {
	t := time.NewTicker(pollEvery)
	defer t.Stop()
	for {
		if err := m.markListed(ctx); err != nil && ctx.Err() == nil {
			m.stats.failures.Add(1)
			m.e.log.Error("maintenance cannot list the tables", "err", err)
		}
		select {
		case <-t.C:
		case <-ctx.Done():
			return
		}
	}
}

func (m *maintenance) markListed(ctx context.Context) error {
	schemas, err := m.e.cat.Schemas(ctx)
	if err != nil {
		return err
	}
	for _, sc := range schemas {
		if !slices.ContainsFunc(m.tables, func(p string) bool { return p == "*" || listed(p, sc, "") }) {
			continue
		}
		tables, err := m.e.cat.Tables(ctx, sc)
		if err != nil {
			return err
		}
		for _, t := range tables {
			if !slices.ContainsFunc(m.tables, func(p string) bool { return p == "*" || listed(p, sc, t) }) {
				continue
			}
			rel, err := m.e.cat.Resolve(ctx, sc, t, catalog.ResolveOptions{})
			if err != nil {
				m.e.log.Warn("maintenance passes over a table", "table", sc+"."+t, "err", err)
				continue
			}
			if info, ok := rel.(catalog.TableInfo); ok {
				if s, ok := info.Table().(*table.FileStore); ok {
					m.mark(keyOf(info), s)
				}
			}
		}
	}
	return nil
}

// listed reports whether a pattern, schema.table with * and ?, means a table; an
// empty name asks for the schema alone.
func listed(pattern, schemaName, name string) bool {
	ps, pt, ok := strings.Cut(pattern, ".")
	if !ok {
		ps, pt = "public", pattern
	}
	if ps == "default" {
		ps = "public"
	}
	if ok, err := path.Match(ps, schemaName); err != nil || !ok {
		return false
	}
	if name == "" {
		return true
	}
	ok, err := path.Match(pt, name)
	return err == nil && ok
}

// track shows a compaction until its end is called. pid is 0 in the background.
func (m *maintenance) track(pid int32, name string, oid uint32) *tracked {
	c := &compaction{pid: pid, table: name, oid: oid, started: time.Now(), phase: "planning"}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.next++
	if m.shown == nil {
		m.shown = map[int64]*compaction{}
	}
	m.shown[m.next] = c
	return &tracked{m, c, m.next}
}

// tracked is a compaction that is shown.
type tracked struct {
	m  *maintenance
	c  *compaction
	id int64
}

func (t *tracked) end() {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	delete(t.m.shown, t.id)
}

func (t *tracked) phase(p string) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.c.phase = p
}

// progress is table.CompactOptions.Progress.
func (t *tracked) progress(done, total int64) {
	t.m.mu.Lock()
	defer t.m.mu.Unlock()
	t.c.done, t.c.total = done, total
	if t.c.phase == "planning" {
		t.c.phase = "rewriting"
	}
}

// throttle counts bytes on their way to limit, nil = none.
func (t *tracked) throttle(limit func(context.Context, int64) error) func(context.Context, int64) error {
	return func(ctx context.Context, n int64) error {
		t.m.mu.Lock()
		t.c.written += n
		t.m.mu.Unlock()
		if limit == nil {
			return nil
		}
		return limit(ctx, n)
	}
}

// publishing shows the phase of a commit; its arguments are the results of locking
// the table's files.
func (t *tracked) publishing(unlock func(), err error) (func(), error) {
	if err != nil {
		return nil, err
	}
	t.phase("publishing")
	return func() {
		unlock()
		t.phase("rewriting")
	}, nil
}

// compactionsNow are the compactions that run, oldest first.
func (m *maintenance) compactionsNow() []compaction {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make([]compaction, 0, len(m.shown))
	for _, c := range m.shown {
		out = append(out, *c)
	}
	slices.SortFunc(out, func(a, b compaction) int { return a.started.Compare(b.started) })
	return out
}

// Compactions implements pgcatalog.Compactor.
func (x *sources) Compactions() []pgcatalog.Compaction { return x.s.eng.Compactions() }

// Compactions are those that run now, the oldest first.
func (e *Engine) Compactions() []pgcatalog.Compaction {
	var out []pgcatalog.Compaction
	for _, c := range e.maint.compactionsNow() {
		out = append(out, pgcatalog.Compaction{PID: c.pid, OID: c.oid, Table: c.table, Started: c.started, Phase: c.phase, Written: c.written, Done: c.done, Total: c.total})
	}
	return out
}

// byteLimiter spreads writes to so many bytes per second.
type byteLimiter struct {
	rate float64
	mu   sync.Mutex // guards next
	next time.Time  // when the bytes so far are paid for
}

func (l *byteLimiter) wait(ctx context.Context, n int64) error {
	l.mu.Lock()
	now := time.Now()
	if l.next.Before(now) {
		l.next = now
	}
	at := l.next
	l.next = l.next.Add(time.Duration(float64(n) / l.rate * float64(time.Second)))
	l.mu.Unlock()
	if !at.After(now) {
		return nil
	}
	t := time.NewTimer(at.Sub(now))
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
