package engine

import (
	"context"
	"io"
	"log/slog"
	"math"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/catalog/pgcatalog"
	"github.com/paimon-sql/paimon-sql/exec/vectorized"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/parser"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// statistics are the engine's cumulative statistics, as PostgreSQL's views show
// them. They live in memory and begin anew with the process.
type statistics struct {
	statements statementStats
	tables     sync.Map // OID -> *tableStats
	db         databaseStats
}

// databaseStats is the row of pg_stat_database.
type databaseStats struct {
	since                                         atomic.Int64 // µs since 1970, of the last reset; 0 = none
	commits, rollbacks                            atomic.Int64
	returned, fetched, inserted, updated, deleted atomic.Int64
	tempFiles, tempBytes                          atomic.Int64
	sessions, abandoned, fatal, killed            atomic.Int64
	sessionNanos, activeNanos, idleTxNanos        atomic.Int64
}

func (d *databaseStats) reset() {
	for _, c := range []*atomic.Int64{&d.commits, &d.rollbacks, &d.returned, &d.fetched, &d.inserted, &d.updated, &d.deleted, &d.tempFiles, &d.tempBytes,
		&d.sessions, &d.abandoned, &d.fatal, &d.killed, &d.sessionNanos, &d.activeNanos, &d.idleTxNanos} {
		c.Store(0)
	}
	d.since.Store(time.Now().UnixMicro())
}

// spent adds the time that a session was in its state until now. The session's
// mutex is held.
func (d *databaseStats) spent(a *activity, now time.Time) {
	n := int64(now.Sub(a.changed))
	switch {
	case a.state == "active":
		d.activeNanos.Add(n)
	case strings.HasPrefix(a.state, "idle in transaction"):
		d.idleTxNanos.Add(n)
	}
}

// tableStats are the counters of one table.
type tableStats struct {
	seqScans, seqRows, keyScans, keyRows atomic.Int64
	inserted, updated, deleted           atomic.Int64
	// changed are the rows changed since the last ANALYZE here.
	changed                                 atomic.Int64
	vacuums, compactions, analyzes          atomic.Int64
	lastVacuum, lastCompaction, lastAnalyze atomic.Int64 // µs since 1970; 0 = never
}

// table returns the counters of a table.
func (s *statistics) table(oid uint32) *tableStats {
	if t, ok := s.tables.Load(oid); ok {
		return t.(*tableStats)
	}
	t, _ := s.tables.LoadOrStore(oid, &tableStats{})
	return t.(*tableStats)
}

// read counts what the scans of a fragment read, when it has ended.
func (s *statistics) read(f *plan.Fragment, st *vectorized.Stats) {
	var walk func(n plan.Node)
	walk = func(n plan.Node) {
		switch x := n.(type) {
		case *plan.Scan:
			s.scanned(x.Rel, st.Node(x.ID), false)
		case *plan.Lookup:
			s.scanned(x.Rel, st.Node(x.ID), true)
			return
		}
		for _, in := range n.Inputs() {
			if in != nil {
				walk(in)
			}
		}
	}
	for _, p := range f.InitPlans {
		if p.Plan != nil {
			walk(p.Plan)
		}
	}
	for _, c := range f.CTEs {
		if c.Plan != nil {
			walk(c.Plan)
		}
	}
	if f.Root != nil {
		walk(f.Root)
	}
}

func (s *statistics) scanned(rel catalog.Relation, n *vectorized.NodeStats, byKey bool) {
	if _, ok := rel.(catalog.TableInfo); !ok || n.Loops == 0 && n.Rows == 0 {
		return
	}
	t := s.table(rel.OID())
	if byKey {
		t.keyScans.Add(max(n.Loops, 1))
		t.keyRows.Add(n.Rows)
		s.db.fetched.Add(n.Rows)
		return
	}
	rows := n.Rows + n.Detail()["removed"]
	t.seqScans.Add(max(n.Loops, 1))
	t.seqRows.Add(rows)
	s.db.returned.Add(rows)
}

// changed counts rows that a statement changed. MERGE's are updates here: it does
// not say what it did to each.
func (s *statistics) changed(oid uint32, op plan.ModifyOp, n int64) {
	t := s.table(oid)
	t.changed.Add(n)
	switch op {
	case plan.InsertOp:
		t.inserted.Add(n)
		s.db.inserted.Add(n)
	case plan.DeleteOp:
		t.deleted.Add(n)
		s.db.deleted.Add(n)
	default:
		t.updated.Add(n)
		s.db.updated.Add(n)
	}
}

// fingerprint is a statement as it may be logged and counted.
type fingerprint struct {
	text string // without constants
	id   int64
}

// maxStatementText is how much of a statement's text is kept, in bytes.
const maxStatementText = 4 << 10

// maxFingerprints is how many texts a session remembers.
const maxFingerprints = 64

// fingerprint normalises a statement. Called by the session's goroutine only.
func (s *Session) fingerprint(sql string) *fingerprint {
	if f := s.prints[sql]; f != nil {
		return f
	}
	text, id := parser.Normalize(sql)
	if len(text) > maxStatementText {
		text = strings.ToValidUTF8(text[:maxStatementText], "") + "..."
	}
	f := &fingerprint{text, id}
	if len(sql) > 1<<12 {
		return f
	}
	if s.prints == nil || len(s.prints) >= maxFingerprints {
		s.prints = map[string]*fingerprint{}
	}
	s.prints[sql] = f
	return f
}

// logLevel is the least log_statement that logs a statement: 1 ddl, 2 mod, 3 all.
// Source: GetCommandLogLevel of PostgreSQL.
func (s *Session) logLevel(st ast.Stmt) int {
	switch st := st.(type) {
	case *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge, *ast.Truncate:
		return 2
	case *ast.Copy:
		if st.From {
			return 2
		}
		return 3
	case *ast.Query, *ast.Transaction, *ast.Set, *ast.Reset, *ast.Show, *ast.Fetch, *ast.CloseCursor, *ast.DeclareCursor, *ast.Deallocate:
		return 3
	case *ast.Prepare:
		return s.logLevel(st.Stmt)
	case *ast.Execute:
		if p := s.stmts[st.Name.Name]; p != nil {
			if impl, ok := p.impl.(*prepared); ok && impl.stmt != nil {
				return s.logLevel(impl.stmt)
			}
		}
		return 3
	case *ast.Explain:
		for _, o := range st.Options {
			if strings.EqualFold(o.Name, "analyze") {
				return s.logLevel(st.Stmt)
			}
		}
		return 3
	case *ast.CreateRole, *ast.AlterRole, *ast.Grant:
		return 1
	case nil:
		return 3
	}
	if isDefinition(st) {
		return 1
	}
	return 3
}

// began logs a statement that begins, as log_statement says.
func (s *Session) began(ctx context.Context, st ast.Stmt, sql string) {
	level := s.set.use().logStatement
	if level == 0 || s.logLevel(st) > level {
		return
	}
	f := s.fingerprint(sql)
	s.eng.log.LogAttrs(ctx, slog.LevelInfo, "statement", append(s.logAttrs(), slog.String("stmt", f.text), slog.Int64("query_id", f.id))...)
}

// arrived logs and counts a session that was let in.
func (s *Session) arrived() {
	s.eng.counts.db.sessions.Add(1)
	on := func(name string) bool { v, _ := s.set.get(name); return v == "on" }
	s.logOff = on("log_disconnections")
	if on("log_connections") {
		attrs := s.logAttrs()
		if t := s.tls; t != nil {
			attrs = append(attrs, slog.String("tls", t.Version), slog.String("cipher", t.Cipher))
		}
		s.eng.log.LogAttrs(s.ctx, slog.LevelInfo, "connection authorized", attrs...)
	}
}

// left logs and counts a session that has ended.
func (s *Session) left() {
	d := time.Since(s.started)
	s.eng.counts.db.sessionNanos.Add(int64(d))
	if s.logOff {
		s.eng.log.LogAttrs(s.ctx, slog.LevelInfo, "disconnection", append(s.logAttrs(), slog.Float64("session_ms", millisOf(d)))...)
	}
}

// logAttrs say which session a line of the log is about.
func (s *Session) logAttrs() []slog.Attr {
	app, _ := s.set.get("application_name")
	return []slog.Attr{
		slog.Int("pid", int(s.pid)), slog.String("user", s.user), slog.String("db", s.database), slog.String("app", app), slog.String("remote", s.remote),
	}
}

// ended logs and counts a statement that has run for d.
func (s *Session) ended(ctx context.Context, st ast.Stmt, sql string, d time.Duration, rows int64, err error) {
	set := s.set.use()
	if slow := set.slowStatement; slow >= 0 && d >= slow {
		f := s.fingerprint(sql)
		s.eng.log.LogAttrs(ctx, slog.LevelInfo, "slow statement",
			append(s.logAttrs(), slog.Float64("dur_ms", millisOf(d)), slog.Int64("rows", rows), slog.Bool("failed", err != nil), slog.String("stmt", f.text), slog.Int64("query_id", f.id))...)
	}
	if err != nil || set.trackNone || st == nil {
		return
	}
	if !set.trackUtility && !isQuery(st) && !changesData(st) {
		return
	}
	s.eng.counts.statements.add(statementKey{user: s.userName(), id: s.fingerprint(sql).id}, s.fingerprint(sql).text, d, rows)
}

func millisOf(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// tagRows is the number of rows that a command tag ends with; 0 where it has none.
func tagRows(tag string) int64 {
	i := strings.LastIndexByte(tag, ' ')
	if i < 0 {
		return 0
	}
	n, err := strconv.ParseInt(tag[i+1:], 10, 64)
	if err != nil {
		return 0
	}
	return n
}

// statementKey tells the entries of pg_stat_statements apart.
type statementKey struct {
	user string
	id   int64
}

// statementStats is pg_stat_statements: at most max entries with texts of at most
// maxStatementText bytes.
type statementStats struct {
	mu      sync.Mutex // guards what follows
	max     int
	m       map[statementKey]*statementStat
	dealloc int64
	since   time.Time
}

// statementStat is one entry. Times are in milliseconds.
type statementStat struct {
	text               string
	calls, rows        int64
	total, min, max    float64
	mean, sumOfSquares float64 // of the differences from the mean: Welford's method
	usage              float64 // what is thrown away first has least
}

// add counts a call. When there is no room the twentieth that was used least goes,
// and what all others count for becomes less, as in PostgreSQL (pgss_store,
// entry_dealloc).
func (x *statementStats) add(k statementKey, text string, d time.Duration, rows int64) {
	ms := millisOf(d)
	x.mu.Lock()
	defer x.mu.Unlock()
	e := x.m[k]
	if e == nil {
		if x.m == nil {
			x.m = map[statementKey]*statementStat{}
		}
		if len(x.m) >= x.max {
			x.evict()
		}
		e = &statementStat{text: text, min: math.Inf(1), usage: 1}
		x.m[k] = e
	}
	e.calls++
	e.rows += rows
	e.total += ms
	e.min, e.max = min(e.min, ms), max(e.max, ms)
	diff := ms - e.mean
	e.mean += diff / float64(e.calls)
	e.sumOfSquares += diff * (ms - e.mean)
	e.usage += ms
}

func (x *statementStats) evict() {
	keys := make([]statementKey, 0, len(x.m))
	for k, e := range x.m {
		keys = append(keys, k)
		e.usage *= 0.99
	}
	slices.SortFunc(keys, func(a, b statementKey) int {
		switch p, q := x.m[a].usage, x.m[b].usage; {
		case p < q:
			return -1
		case p > q:
			return 1
		}
		return 0
	})
	for _, k := range keys[:min(len(keys), max(10, len(keys)/20))] {
		delete(x.m, k)
	}
	x.dealloc++
}

// reset drops the entries of a user, a statement, or all: "" and 0 stand for any.
func (x *statementStats) reset(user string, id int64) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if user == "" && id == 0 {
		x.m, x.dealloc, x.since = nil, 0, time.Now()
		return
	}
	for k := range x.m {
		if (user == "" || k.user == user) && (id == 0 || k.id == id) {
			delete(x.m, k)
		}
	}
}

// Statements feeds pg_stat_statements.
func (x *sources) Statements() []pgcatalog.Statement {
	m := x.s.roles(x.s.ctx)
	st := &x.s.eng.counts.statements
	st.mu.Lock()
	defer st.mu.Unlock()
	out := make([]pgcatalog.Statement, 0, len(st.m))
	for k, e := range st.m {
		r := pgcatalog.Statement{
			User: k.user, ID: k.id, Text: e.text, Calls: e.calls, Rows: e.rows, Total: e.total, Min: e.min, Max: e.max, Mean: e.mean,
			Stddev: math.Sqrt(e.sumOfSquares / float64(e.calls)), Hidden: !x.s.seesWork(m, k.user),
		}
		out = append(out, r)
	}
	return out
}

// StatementsInfo feeds pg_stat_statements_info.
func (x *sources) StatementsInfo() (dealloc int64, since time.Time) {
	st := &x.s.eng.counts.statements
	st.mu.Lock()
	defer st.mu.Unlock()
	return st.dealloc, st.since
}

// TableStats feeds pg_stat_all_tables.
func (x *sources) TableStats(oid uint32) pgcatalog.TableStats {
	v, ok := x.s.eng.counts.tables.Load(oid)
	if !ok {
		return pgcatalog.TableStats{}
	}
	t := v.(*tableStats)
	at := func(a *atomic.Int64) time.Time {
		if us := a.Load(); us != 0 {
			return time.UnixMicro(us)
		}
		return time.Time{}
	}
	return pgcatalog.TableStats{
		SeqScans: t.seqScans.Load(), SeqRows: t.seqRows.Load(), KeyScans: t.keyScans.Load(), KeyRows: t.keyRows.Load(),
		Inserted: t.inserted.Load(), Updated: t.updated.Load(), Deleted: t.deleted.Load(), Changed: t.changed.Load(),
		Vacuums: t.vacuums.Load(), Compactions: t.compactions.Load(), Analyzes: t.analyzes.Load(),
		LastVacuum: at(&t.lastVacuum), LastCompaction: at(&t.lastCompaction), LastAnalyze: at(&t.lastAnalyze),
	}
}

// copyProgress is a COPY that runs: a row of pg_stat_progress_copy.
type copyProgress struct {
	oid         uint32
	from        bool
	typ         string // PIPE or FILE
	total       int64
	bytes, rows atomic.Int64
}

// countingReader counts what is read.
type countingReader struct {
	io.Reader
	n *atomic.Int64
}

func (r countingReader) Read(b []byte) (int, error) {
	n, err := r.Reader.Read(b)
	r.n.Add(int64(n))
	return n, err
}

// Copies feeds pg_stat_progress_copy.
func (x *sources) Copies() []pgcatalog.CopyProgress {
	var out []pgcatalog.CopyProgress
	m := x.s.roles(x.s.ctx)
	for _, s := range x.s.eng.list() {
		c := s.copying.Load()
		if c == nil {
			continue
		}
		r := pgcatalog.CopyProgress{PID: s.pid, Hidden: true}
		if x.s.seesWork(m, s.user) {
			r = pgcatalog.CopyProgress{PID: s.pid, OID: c.oid, From: c.from, Type: c.typ, Bytes: c.bytes.Load(), Total: c.total, Rows: c.rows.Load()}
		}
		out = append(out, r)
	}
	return out
}

// DatabaseStats feeds pg_stat_database.
func (x *sources) DatabaseStats() pgcatalog.DatabaseStats {
	e := x.s.eng
	d := &e.counts.db
	ms := func(a *atomic.Int64) float64 { return millisOf(time.Duration(a.Load())) }
	out := pgcatalog.DatabaseStats{
		Commits: d.commits.Load(), Rollbacks: d.rollbacks.Load(), Returned: d.returned.Load(), Fetched: d.fetched.Load(),
		Inserted: d.inserted.Load(), Updated: d.updated.Load(), Deleted: d.deleted.Load(), TempFiles: d.tempFiles.Load(), TempBytes: d.tempBytes.Load(),
		Deadlocks: e.locks.deadlocks.Load(), Sessions: d.sessions.Load(), Abandoned: d.abandoned.Load(), Fatal: d.fatal.Load(), Killed: d.killed.Load(),
		SessionTime: ms(&d.sessionNanos), ActiveTime: ms(&d.activeNanos), IdleInTxTime: ms(&d.idleTxNanos),
	}
	if us := d.since.Load(); us != 0 {
		out.Reset = time.UnixMicro(us)
	}
	list := e.list()
	out.Backends = len(list)
	if e.env != nil {
		for _, c := range e.env.CacheStats() {
			if c.Name == "pages" {
				out.Hits, out.Misses = c.Hits, c.Misses
			}
		}
	}
	return out
}

// resetStats performs the functions that reset statistics: superusers' own.
func (s *Session) resetStats(ctx context.Context, fn string, args []types.Datum) (types.Datum, error) {
	if fn == "pg_stat_clear_snapshot" { // statistics are never a snapshot
		return nil, nil
	}
	if !s.rights(ctx).super {
		return nil, denied("permission denied for function %s", fn)
	}
	num := func(i int) int64 {
		if i < len(args) {
			n, _ := args[i].(int64)
			return n
		}
		return 0
	}
	c := &s.eng.counts
	switch fn {
	case "pg_stat_statements_reset":
		user := ""
		if oid := num(0); oid != 0 {
			user = "\x00" // a role that is not there has no entries
			for _, r := range s.sources().Roles() {
				if int64(r.OID) == oid {
					user = r.Name
				}
			}
		}
		if db := num(1); db == 0 || db == pgcatalog.DatabaseOID {
			c.statements.reset(user, num(2))
		}
	case "pg_stat_reset":
		c.tables.Clear()
		c.db.reset()
		s.eng.locks.deadlocks.Store(0)
	case "pg_stat_reset_single_table_counters":
		c.tables.Delete(uint32(num(0)))
	}
	return nil, nil
}
