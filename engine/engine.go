package engine

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"log/slog"
	"os"
	"path"
	"runtime/debug"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/metrics"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// Config is what an Engine is made of. The zero value of every field but
// Warehouse (or Catalog) has a sensible meaning.
type Config struct {
	// Warehouse is a path or URI.
	Warehouse string
	// FileIO, when set, is used instead of opening Warehouse.
	FileIO fileio.FileIO
	// Catalog, when set, is used instead of the one in the warehouse.
	Catalog catalog.Catalog
	// Database is a further name that clients may connect to.
	Database string
	// AnyDatabase lets clients connect to any database name (trust).
	AnyDatabase bool
	// MaxMemory bounds what all queries use together, in bytes; 0 = half of the
	// machine's.
	MaxMemory int64
	// MaxConnections is how many sessions there may be at once; 0 = 100.
	MaxConnections int
	// Slots is how many morsels are worked on at once; 0 = GOMAXPROCS.
	Slots int
	// TempDir is where queries are to spill; "" = the system's.
	TempDir string
	// Version is the product's version, without a leading v.
	Version string
	// Maintain lets tables be compacted and their snapshots expired in the
	// background, as the settings paimon.maintenance* say: a server does.
	Maintain bool
	// Settings are defaults laid over the built-in ones, by setting name.
	// FileSettings are those of a configuration file: they lose against Settings, and
	// Reload can change them.
	Settings, FileSettings map[string]string
	// ReloadConf is pg_reload_conf(): it asks for a reload and does not wait; nil =
	// there is nothing to reload.
	ReloadConf func()
	// Log takes the engine's messages; nil = none.
	Log *slog.Logger
}

// Engine is the process-wide part: the warehouse, memory and CPU, and the
// sessions. Safe for concurrent use.
type Engine struct {
	cfg     Config
	io      fileio.FileIO
	cat     catalog.Catalog
	env     *table.Env // nil when the catalog was given
	reg     *registry
	root    *mem.Account
	slots   *mem.Slots
	log     *slog.Logger
	started time.Time
	plans   *planCache
	// roleCache is the model of the roles as they were read last.
	roleCache atomic.Pointer[roleState]
	stats     *counters
	counts    statistics
	reloading sync.Mutex // one Reload at a time
	pending   atomic.Pointer[map[string]bool]
	locks     *lockManager
	notifier  notifier
	announcer announcer

	complaints sync.Map // about statistics files, by their text

	queueMu sync.Mutex // guards queues
	queues  map[tableKey]*commitQueue

	// beforeWrite, when not nil, is called before rows go to files of a table, and
	// may wait until compaction has caught up. afterCommit is called when a table has
	// a new snapshot of this server. Both are set before the first session.
	beforeWrite func(ctx context.Context, k tableKey, store table.Table) error
	afterCommit func(k tableKey, store table.Table)

	maint maintenance

	ctx    context.Context // ends when the engine closes
	cancel context.CancelCauseFunc
	bg     sync.WaitGroup // background work

	mu       sync.Mutex // guards what follows
	sessions map[int32]*Session
	lastPID  int32
	closing  bool
	local    *tempDir // see localDir; nil = not made
}

// counters are the engine's metrics.
type counters struct {
	statements   *metrics.Counter
	errors       *metrics.CounterVec
	panics       *metrics.Counter
	connections  *metrics.Counter
	refused      *metrics.Counter
	cancels      *metrics.Counter
	rows         *metrics.Counter
	duration     *metrics.Histogram
	planHits     *metrics.Counter
	planMisses   *metrics.Counter
	transactions *metrics.CounterVec
	groups       *metrics.Counter
	members      *metrics.Counter
	reruns       *metrics.Counter
}

// Open opens the warehouse and makes an Engine over it.
func Open(ctx context.Context, cfg Config) (*Engine, error) {
	if cfg.Version == "" {
		cfg.Version = "dev"
	}
	if cfg.MaxConnections == 0 {
		cfg.MaxConnections = 100
	}
	if cfg.Slots == 0 {
		cfg.Slots = cores.Count()
	}
	if cfg.MaxMemory == 0 {
		cfg.MaxMemory = machineMemory() / 2
	}
	if cfg.TempDir == "" {
		cfg.TempDir = os.TempDir()
	}
	e := &Engine{
		cfg: cfg, io: cfg.FileIO, cat: cfg.Catalog, reg: newRegistry(), log: cfg.Log,
		root: mem.NewRoot("max_memory", cfg.MaxMemory), slots: mem.NewSlots(cfg.Slots),
		started: time.Now(), plans: newPlanCache(512), locks: newLockManager(), sessions: map[int32]*Session{},
	}
	if e.log == nil {
		e.log = slog.New(slog.DiscardHandler)
	}
	if err := e.openWarehouse(ctx); err != nil {
		return nil, err
	}
	for name, value := range map[string]string{
		"max_memory":      strconv.FormatInt(cfg.MaxMemory, 10),
		"max_connections": strconv.Itoa(cfg.MaxConnections),
		"server_version":  "15.0 (paimon-sql " + cfg.Version + ")",
		"paimon.version":  cfg.Version,
		"work_mem":        strconv.FormatInt(min(max(cfg.MaxMemory/4>>10, 64<<10), maxInt), 10),
		// The address of a warehouse may hold secrets in its query.
		"paimon.warehouse": strings.SplitN(cfg.Warehouse, "?", 2)[0],
	} {
		if err := e.reg.setDefault(name, value); err != nil {
			return nil, err
		}
	}
	line, err := e.reg.normal(cfg.Settings)
	if err != nil {
		return nil, err
	}
	file, err := e.reg.normal(cfg.FileSettings)
	if err != nil {
		return nil, err
	}
	e.reg.lay(file, line)
	e.counts.statements.max = int(e.reg.number("pg_stat_statements.max"))
	e.counts.statements.since = time.Now()
	// The heap may hold what accounts do not see: batches in flight, caches.
	debug.SetMemoryLimit(cfg.MaxMemory + cfg.MaxMemory/4 + 256<<20)
	e.ctx, e.cancel = context.WithCancelCause(context.WithoutCancel(ctx))
	e.register()
	e.maint.e = e
	e.announcer.e = e
	e.notifier.changed = e.announcer.listening
	if cfg.Maintain {
		e.Background("sweep", e.sweep)
		e.startMaintenance()
	}
	return e, nil
}

func (e *Engine) register() {
	m := &counters{
		statements:   metrics.NewCounter("paimon_sql_engine_statements_total", "Statements begun."),
		errors:       metrics.NewCounterVec("paimon_sql_engine_errors_total", "Statements that failed, by SQLSTATE class.", "class"),
		panics:       metrics.NewCounter("paimon_sql_engine_panics_total", "Panics recovered: each is a bug."),
		connections:  metrics.NewCounter("paimon_sql_engine_connections_total", "Sessions opened."),
		refused:      metrics.NewCounter("paimon_sql_engine_connections_refused_total", "Sessions refused."),
		cancels:      metrics.NewCounter("paimon_sql_engine_cancel_requests_total", "Cancel requests that reached a statement."),
		rows:         metrics.NewCounter("paimon_sql_engine_rows_total", "Rows sent."),
		duration:     metrics.NewHistogram("paimon_sql_engine_statement_duration_seconds", "Time from a statement's start to its last row.", metrics.DurationBuckets),
		planHits:     metrics.NewCounter("paimon_sql_engine_plan_cache_hits_total", "Plans taken from the cache."),
		planMisses:   metrics.NewCounter("paimon_sql_engine_plan_cache_misses_total", "Statements planned."),
		transactions: metrics.NewCounterVec("paimon_sql_engine_transactions_total", "Transactions ended, by outcome.", "outcome"),
		groups:       metrics.NewCounter("paimon_sql_engine_commit_groups_total", "Groups of commits to one table."),
		members:      metrics.NewCounter("paimon_sql_engine_commits_total", "Commits to one table, before they are grouped."),
		reruns:       metrics.NewCounter("paimon_sql_engine_reruns_total", "Statements run again because others changed what they read."),
	}
	e.stats = m
	metrics.NewGaugeFunc("paimon_sql_engine_sessions_count", "Sessions open now.", func() float64 {
		e.mu.Lock()
		defer e.mu.Unlock()
		return float64(len(e.sessions))
	})
	metrics.NewGaugeFunc("paimon_sql_engine_active_count", "Sessions that run a statement now.", func() float64 {
		n := 0
		for _, s := range e.list() {
			s.mu.Lock()
			if s.running != nil {
				n++
			}
			s.mu.Unlock()
		}
		return float64(n)
	})
	metrics.NewCounterFunc("paimon_sql_engine_deadlocks_total", "Deadlocks that were found.", func() float64 { return float64(e.locks.deadlocks.Load()) })
	metrics.NewGaugeFunc("paimon_sql_engine_memory_bytes", "Memory charged by queries now.", func() float64 { return float64(e.root.Used()) })
	metrics.NewGaugeFunc("paimon_sql_engine_memory_peak_bytes", "The most memory that was ever charged.", func() float64 { return float64(e.root.Peak()) })
	metrics.NewGaugeFunc("paimon_sql_engine_memory_limit_bytes", "The setting max_memory.", func() float64 { return float64(e.cfg.MaxMemory) })
}

// cacheMetrics shows what the caches of the warehouse hold and do.
func (e *Engine) cacheMetrics() {
	env := e.env
	each := func(of func(c *table.CacheStats) int64) func() map[string]float64 {
		return func() map[string]float64 {
			out := map[string]float64{}
			for _, c := range env.CacheStats() {
				out[strings.ReplaceAll(c.Name, " ", "_")] = float64(of(&c))
			}
			return out
		}
	}
	metrics.NewFuncVec("paimon_sql_engine_cache_hits_total", "What caches had when they were asked for it, by cache.", "counter", "cache",
		each(func(c *table.CacheStats) int64 { return c.Hits }))
	metrics.NewFuncVec("paimon_sql_engine_cache_misses_total", "What caches did not have, by cache.", "counter", "cache",
		each(func(c *table.CacheStats) int64 { return c.Misses }))
	metrics.NewFuncVec("paimon_sql_engine_cache_bytes", "Memory of caches now, by cache.", "gauge", "cache",
		each(func(c *table.CacheStats) int64 { return c.Bytes }))
	metrics.NewFuncVec("paimon_sql_engine_cache_entries_count", "Entries of caches now, by cache.", "gauge", "cache",
		each(func(c *table.CacheStats) int64 { return c.Entries }))
}

// machineMemory returns the memory of the machine, or of its control group
// when that is smaller; 4 GiB when nobody tells.
func machineMemory() int64 {
	total := int64(4 << 30)
	if b, err := os.ReadFile("/proc/meminfo"); err == nil {
		for _, l := range strings.Split(string(b), "\n") {
			if f := strings.Fields(l); len(f) >= 2 && f[0] == "MemTotal:" {
				if kb, err := strconv.ParseInt(f[1], 10, 64); err == nil {
					total = kb << 10
				}
			}
		}
	}
	for _, p := range []string{"/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"} {
		if b, err := os.ReadFile(p); err == nil {
			if n, err := strconv.ParseInt(strings.TrimSpace(string(b)), 10, 64); err == nil && n > 0 && n < total {
				total = n
			}
		}
	}
	return total
}

// Catalog returns the warehouse's catalog.
func (e *Engine) Catalog() catalog.Catalog { return e.cat }

// FileIO returns the files of the warehouse.
func (e *Engine) FileIO() fileio.FileIO { return e.io }

// Version returns the product's version.
func (e *Engine) Version() string { return e.cfg.Version }

// Setting returns the server's default of a setting.
func (e *Engine) Setting(name string) (string, bool) {
	if s := e.reg.find(name); s != nil {
		return e.reg.def(s), true
	}
	return "", false
}

// warehouseName is the last path element of the warehouse, without .db or a
// query, as a database name.
func (e *Engine) warehouseName() string {
	w := strings.SplitN(e.cfg.Warehouse, "?", 2)[0]
	return path.Base(strings.TrimRight(strings.ReplaceAll(w, "\\", "/"), "/"))
}

// acceptsDatabase reports whether clients may connect to name.
func (e *Engine) acceptsDatabase(name string) bool {
	switch name {
	case "paimon", "postgres", e.cfg.Database, e.warehouseName():
		return true
	}
	return e.cfg.AnyDatabase
}

// OpenSession starts a session. The error, if any, is FATAL to the connection:
// 53300 too many connections, 3D000 no such database, 57P03 shutting down, or
// what was wrong with a start-up parameter.
func (e *Engine) OpenSession(ctx context.Context, st Startup) (*Session, error) {
	s, err := e.openSession(st)
	if err != nil {
		e.stats.refused.Add(1)
		pe := e.toPG(ctx, err, "")
		fatal := *pe
		fatal.Severity = "FATAL"
		return nil, &fatal
	}
	e.stats.connections.Add(1)
	s.arrived()
	return s, nil
}

func (e *Engine) openSession(st Startup) (*Session, error) {
	if st.User == "" {
		return nil, pgerr.New(pgerr.InvalidAuthorizationSpecification, "no PostgreSQL user name specified in startup packet")
	}
	if st.Database == "" {
		st.Database = st.User
	}
	var b [4]byte
	if _, err := rand.Read(b[:]); err != nil {
		return nil, err
	}
	s := newSession(e, st, binary.BigEndian.Uint32(b[:]))
	if !e.acceptsDatabase(st.Database) {
		return nil, pgerr.New(pgerr.InvalidCatalogName, "database %q does not exist", st.Database).
			WithHint("The warehouse answers to the name %q.", "paimon")
	}
	m := e.roles(e.ctx)
	if err := s.mayOpen(m); err != nil {
		return nil, err
	}
	if err := s.mayConnect(e.ctx); err != nil {
		return nil, err
	}
	s.applyStored(e.ctx)
	if err := s.applyStartup(st.Params); err != nil {
		return nil, err
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.closing {
		return nil, pgerr.New(pgerr.CannotConnectNow, "the database system is shutting down")
	}
	if len(e.sessions) >= e.cfg.MaxConnections {
		return nil, pgerr.New(pgerr.TooManyConnections, "sorry, too many clients already")
	}
	if err := e.underLimit(m, st.User); err != nil {
		return nil, err
	}
	for {
		if e.lastPID++; e.lastPID <= 0 {
			e.lastPID = 1
		}
		if _, taken := e.sessions[e.lastPID]; !taken {
			break
		}
	}
	s.pid = e.lastPID
	e.sessions[s.pid] = s
	return s, nil
}

func (e *Engine) forget(s *Session) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.sessions, s.pid)
}

// Cancel cancels what the session pid runs now, if the secret fits; a wrong one
// is ignored.
func (e *Engine) Cancel(pid int32, secret uint32) {
	e.mu.Lock()
	s := e.sessions[pid]
	e.mu.Unlock()
	if s != nil && s.secret == secret {
		s.interrupt(errCanceled())
	}
}

// list returns the sessions by pid.
func (e *Engine) list() []*Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	out := make([]*Session, 0, len(e.sessions))
	for _, s := range e.sessions {
		out = append(out, s)
	}
	sort.Slice(out, func(i, j int) bool { return out[i].pid < out[j].pid })
	return out
}

func (e *Engine) session(pid int32) *Session {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.sessions[pid]
}

// Background runs f until the engine closes: f must return when its context
// ends. A panic in f is logged and ends f only.
func (e *Engine) Background(name string, f func(ctx context.Context)) {
	e.bg.Add(1)
	go func() {
		defer e.bg.Done()
		defer func() {
			if p := recover(); p != nil {
				e.stats.panics.Add(1)
				e.log.Error("background work panicked", "work", name, "err", p, "stack", string(debug.Stack()))
			}
		}()
		f(e.ctx)
	}()
}

// Close ends every session and background work at once. Connections are drained
// by their server before.
func (e *Engine) Close() error {
	e.mu.Lock()
	e.closing = true
	e.mu.Unlock()
	for _, s := range e.list() {
		s.terminate(errShutdown())
	}
	e.cancel(errShutdown())
	e.bg.Wait()
	if e.env != nil {
		e.env.Close()
	}
	e.removeLocal()
	return nil
}

// nextID numbers internal errors within the process, so that a client's report
// finds its log line.
var nextID atomic.Uint64

func errCanceled() *pgerr.Error {
	return pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request")
}

func errStatementTimeout() *pgerr.Error {
	return pgerr.New(pgerr.QueryCanceled, "canceling statement due to statement timeout")
}

func errShutdown() *pgerr.Error {
	e := pgerr.New(pgerr.AdminShutdown, "terminating connection due to administrator command")
	e.Severity = "FATAL"
	return e
}
