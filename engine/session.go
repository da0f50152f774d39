package engine

import (
	"context"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/function"
)

// Session is one connection's state: settings, transaction, prepared statements
// and portals. Its methods are called one at a time, by one goroutine; only
// interrupt, terminate and activity may be called from others.
type Session struct {
	eng      *Engine
	pid      int32
	secret   uint32
	user     string
	database string
	remote   string
	tls      *TLS
	started  time.Time
	// unlisted: the user is no role, and was let in as a superuser because no roles
	// were stored.
	unlisted bool

	set     *settings
	tx      transaction
	stmts   map[string]*Prepared
	portals map[string]*Portal
	// executing is the portal that Execute runs: CLOSE ALL leaves it.
	executing *Portal
	temp      *tempSpace // temporary tables; nil = none were made

	out ResultSink // of the statement that runs, for notices from below

	ctx    context.Context // of portals; ends with the session
	cancel context.CancelCauseFunc
	call   call
	named  meant // see meaning
	mine   atomic.Pointer[rights]
	making string // the schema that CREATE SCHEMA fills: names are looked for there first
	own    atomic.Pointer[ownRoles]

	notes notes // of the transaction; messages are guarded by mu
	ears  ears  // guarded by the engine's notifier
	adv   advisory
	party lockParty

	mu      sync.Mutex // guards what follows
	running context.CancelCauseFunc
	act     activity
	end     func() // ends the connection: see OnTerminate
	closed  bool
	told    map[Notification]struct{} // what notes holds; nil = to be made
	laters  []*pgerr.Error            // see later
	// sequences is what nextval gave this session.
	sequences sequenceValues
	listing   statementListing

	// prints are statements without their constants; see fingerprint.
	prints map[string]*fingerprint
	gone   chan struct{} // closed when the session is
	logOff bool          // log_disconnections

	copying atomic.Pointer[copyProgress] // nil = no COPY runs
}

// activity is what pg_stat_activity shows.
type activity struct {
	query                          string
	state                          string
	xactStart, queryStart, changed time.Time
}

func newSession(e *Engine, st Startup, secret uint32) *Session {
	s := &Session{
		eng: e, secret: secret, user: st.User, database: st.Database, remote: st.Remote, tls: st.TLS, started: time.Now(),
		gone: make(chan struct{}), set: newSettings(e.reg), stmts: map[string]*Prepared{}, portals: map[string]*Portal{},
	}
	s.act = activity{state: "idle", changed: s.started}
	s.ctx, s.cancel = context.WithCancelCause(e.ctx)
	s.set.fixed["session_authorization"] = st.User
	s.set.isSuper = func(user string) bool { return s.superName(s.roles(s.ctx), user) }
	return s
}

// applyStartup sets what the connection asked for, as the values that RESET
// goes back to.
func (s *Session) applyStartup(params map[string]string) error {
	s.set.starting = true
	defer func() { s.set.starting = false }()
	for name, value := range params {
		switch key := strings.ToLower(name); key {
		case "user", "database", "options":
			continue
		case "replication":
			if on, ok := parseBool(value); !ok || on {
				return pgerr.New(pgerr.FeatureNotSupported, "replication connections are not supported")
			}
			continue
		default:
			if strings.HasPrefix(key, "_pq_.") {
				continue
			}
			if key == "datestyle" {
				v, err := checkDateStyle("ISO, MDY", value)
				if err != nil {
					return err
				}
				value = v
			}
			if err := s.startWith(name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// Key identifies the session for a cancel request.
func (s *Session) Key() (pid int32, secret uint32) { return s.pid, s.secret }

// User returns the name that the session was opened with.
func (s *Session) User() string { return s.user }

// TextStyle is the style of values in text form.
func (s *Session) TextStyle() *pgtext.Style { return s.set.use().style }

// OIDName returns the text form of an oid as a value of a reg* kind; ok is false
// when there is no such object.
func (s *Session) OIDName(k types.Kind, oid int64) (string, bool) {
	return s.env().oidName(s.ctx, k, oid)
}

// OIDNames is OIDName for many values: it walks the warehouse once.
func (s *Session) OIDNames() func(k types.Kind, oid int64) (string, bool) {
	e := s.env()
	return func(k types.Kind, oid int64) (string, bool) { return e.oidName(s.ctx, k, oid) }
}

// NamedOID finds the object that text names as a value of a reg* kind.
func (s *Session) NamedOID(k types.Kind, name string) (int64, error) {
	return function.RegOID(s.ctx, s.env(), k, name)
}

// SocketOptions are the settings that the connection obeys.
func (s *Session) SocketOptions() SocketOptions { return s.set.use().socket }

// TextSettings are the settings that shape values in text form.
func (s *Session) TextSettings() TextSettings { return s.set.use().text }

// ParameterStatuses are the settings to report at start, in order.
func (s *Session) ParameterStatuses() [][2]string { return s.set.changes() }

// report tells the client of settings that have changed.
func (s *Session) report(out ResultSink) {
	if out == nil {
		return
	}
	for _, c := range s.set.changes() {
		out.ParameterStatus(c[0], c[1])
	}
}

// notice passes a notice on when client_min_messages lets it through.
func (s *Session) notice(out ResultSink, severity string, c pgerr.Code, format string, args ...any) {
	if out == nil {
		return
	}
	level := 6
	if severity == "WARNING" {
		level = 7
	}
	if level < s.set.use().minMessages {
		return
	}
	e := pgerr.New(c, format, args...)
	e.Severity = severity
	out.Notice(e)
}

func (s *Session) warn(out ResultSink, c pgerr.Code, format string, args ...any) {
	s.notice(out, "WARNING", c, format, args...)
}

// call is the context of the session's calls, one after the other. Making one costs
// more than a lookup, so it lives on after a call that has left nothing behind which
// waits for its end (see brief).
type call struct {
	parent, ctx context.Context // ctx nil: to be made
	cancel      context.CancelCauseFunc
	stop        func() bool
	timer       *time.Timer // of statement_timeout
	brief       bool
	done        func() // of the session, made once
}

// work makes the context of one call: it ends by a cancel request, by
// statement_timeout and with the session. done must be called.
func (s *Session) work(ctx context.Context, sql string) (context.Context, func()) {
	c := &s.call
	if c.ctx == nil || c.parent != ctx {
		c.drop()
		inner, cancel := context.WithCancelCause(context.WithValue(ctx, sessionKey{}, s))
		c.ctx, c.cancel = inner, cancel
		c.stop = context.AfterFunc(s.ctx, func() { cancel(context.Cause(s.ctx)) })
		if c.parent = nil; reflect.TypeOf(ctx).Comparable() {
			c.parent = ctx
		}
	}
	c.brief = false
	now := time.Now()
	s.mu.Lock()
	s.running = c.cancel
	s.eng.counts.db.spent(&s.act, now)
	s.act.state, s.act.changed = "active", now
	if s.act.xactStart.IsZero() {
		s.act.xactStart = now
	}
	if sql != "" {
		s.act.query, s.act.queryStart = hidePassword(sql), now
	}
	s.mu.Unlock()
	if d := s.set.use().statementTimeout; d > 0 {
		cancel := c.cancel
		c.timer = time.AfterFunc(d, func() { cancel(errStatementTimeout()) })
	}
	if c.done == nil {
		c.done = s.worked
	}
	return c.ctx, c.done
}

// worked ends a call.
func (s *Session) worked() {
	s.mu.Lock()
	s.running = nil
	s.mu.Unlock()
	c := &s.call
	if !c.brief || c.timer != nil || c.parent == nil || c.ctx.Err() != nil {
		c.drop()
	}
}

// brief says that nothing of the running call waits for the end of its context.
func (s *Session) brief() { s.call.brief = true }

func (c *call) drop() {
	if c.timer != nil {
		c.timer.Stop()
	}
	if c.ctx != nil {
		c.stop()
		c.cancel(nil)
	}
	c.timer, c.ctx, c.parent = nil, nil, nil
}

// rest marks the session as waiting for its client: Query and Sync end so.
func (s *Session) rest() {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	s.eng.counts.db.spent(&s.act, now)
	s.act.changed = now
	s.act.xactStart = time.Time{}
	switch s.tx.status {
	case txBlock:
		s.act.state = "idle in transaction"
	case txFailed:
		s.act.state = "idle in transaction (aborted)"
	default:
		s.act.state = "idle"
	}
	if s.tx.status == txBlock || s.tx.status == txFailed {
		s.act.xactStart = s.tx.started
	}
}

// IdleLimit says how long the client may keep the session waiting (0 = for
// ever), and with what error the connection ends then.
func (s *Session) IdleLimit() (time.Duration, *pgerr.Error) {
	d := s.set.use()
	if d.idleTimeout <= 0 && d.idleTxTimeout <= 0 {
		return 0, nil
	}
	e := pgerr.New(pgerr.IdleSessionTimeout, "terminating connection due to idle-session timeout")
	wait := d.idleTimeout
	if s.tx.status == txBlock || s.tx.status == txFailed {
		e = pgerr.New(pgerr.IdleInTransactionSessionTimeout, "terminating connection due to idle-in-transaction timeout")
		wait = d.idleTxTimeout
	}
	e.Severity = "FATAL"
	return wait, e
}

// interrupt cancels what the session runs now; nothing when it is idle.
func (s *Session) interrupt(cause *pgerr.Error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.running != nil {
		s.eng.stats.cancels.Add(1)
		s.running(cause)
	}
}

// terminate ends the session: what runs is cancelled with cause, and so is the
// connection, if it has told how.
func (s *Session) terminate(cause *pgerr.Error) {
	s.cancel(cause)
	s.mu.Lock()
	end := s.end
	s.mu.Unlock()
	if end != nil {
		end()
	}
}

// OnTerminate takes the function that ends the connection with 57P01.
func (s *Session) OnTerminate(end func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.end = end
}

// Close rolls back what is open and frees everything. Idempotent.
func (s *Session) Close() {
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return
	}
	s.closed = true
	s.mu.Unlock()
	defer s.closeTemp() // whatever goes wrong before
	s.cancel(context.Canceled)
	s.call.drop()
	if s.tx.status != txIdle {
		s.endTx(false)
	}
	for name := range s.portals {
		s.ClosePortal(name)
	}
	s.unlistenAll()
	s.endAdvisory(0)
	s.unlockAll()
	s.eng.forget(s)
	s.left()
	close(s.gone)
}

// TxStatus is 'I', 'T' or 'E', for ReadyForQuery.
func (s *Session) TxStatus() byte {
	switch s.tx.status {
	case txBlock:
		return 'T'
	case txFailed:
		return 'E'
	}
	return 'I'
}

// Query runs a text of any number of statements as one implicit transaction.
func (s *Session) Query(ctx context.Context, sql string, out ResultSink) (err error) {
	defer s.rest()
	defer s.report(out)
	s.CloseStatement("")
	s.ClosePortal("")
	stmts, err := parse(sql)
	if err != nil {
		s.failed(err)
		return s.eng.toPG(ctx, err, "")
	}
	if len(stmts) == 0 {
		return out.Empty()
	}
	for i, st := range stmts {
		if err := s.queryOne(ctx, st, sql, len(stmts) > 1, i == len(stmts)-1, out); err != nil {
			s.failed(err)
			if s.tx.status == txImplicit {
				s.endTx(false)
			}
			return err
		}
	}
	return nil
}

// queryOne runs one statement of a simple query.
func (s *Session) queryOne(ctx context.Context, st ast.Stmt, sql string, multi, last bool, out ResultSink) (err error) {
	text := st.Range().Text
	ctx, done := s.work(ctx, text)
	defer done()
	began := time.Now()
	var rows int64
	defer func() {
		p := recover()
		s.finish(ctx, p, &err, text, began)
		s.ended(ctx, st, text, time.Since(began), rows, err)
	}()
	s.began(ctx, st, text)
	if err := s.admit(st); err != nil {
		return err
	}
	s.enter()
	s.tx.multi = multi
	r, err := s.start(ctx, s.ctx, &prepared{stmt: st, text: sql, fixed: true}, nil, out)
	if err != nil {
		return err
	}
	defer r.close()
	if last && !multi && s.tx.status == txImplicit && s.tx.redo != nil {
		// Its rows wait in memory: nothing is sent before the commit stands.
		err := s.commitRetrying(ctx, func(o *outcome) error {
			r.changed(o)
			return nil
		})
		if err != nil {
			return err
		}
	}
	if r.cols != nil {
		if err := announce(out, r); err != nil {
			return err
		}
	}
	sent, _, err := r.send(ctx, 0, out)
	if err != nil {
		return err
	}
	s.passLaters(out)
	tag := r.tag(sent)
	rows = tagRows(tag)
	s.eng.stats.rows.Add(sent)
	r.close()
	if s.tx.status == txImplicit && last {
		if err := s.commit(ctx); err != nil {
			return err
		}
	}
	return out.Complete(tag)
}

// Sync ends the implicit transaction of a pipeline.
func (s *Session) Sync(ctx context.Context, failed bool, out ResultSink) (err error) {
	defer s.rest()
	defer s.report(out)
	if s.tx.status != txImplicit {
		return nil
	}
	ctx, done := s.work(ctx, "")
	defer done()
	if len(s.tx.tables) == 0 && s.tx.staged == nil && s.tx.temp == nil {
		s.brief()
	}
	defer func() { s.finish(ctx, recover(), &err, "", time.Time{}) }()
	if failed || s.tx.implicitFailed {
		s.endTx(false)
		return nil
	}
	told := s.tx.told
	return s.commitRetrying(ctx, func(o *outcome) error {
		if told != nil && !told.same(o) {
			return errSerialize("The statement was run again, and its outcome is not what the client was told.")
		}
		return nil
	})
}

// Fail tells the session that a message failed before reaching it.
func (s *Session) Fail() { s.failed(nil) }

// Prepare parses and plans one statement under a name.
func (s *Session) Prepare(ctx context.Context, name, sql string, params []types.Type) (p *Prepared, err error) {
	ctx, done := s.work(ctx, sql)
	defer done()
	defer func() {
		s.finish(ctx, recover(), &err, sql, time.Time{})
		if err != nil {
			p = nil
			s.failed(err)
		}
	}()
	stmts, err := parse(sql)
	if err != nil {
		return nil, err
	}
	if len(stmts) > 1 {
		return nil, pgerr.New(pgerr.SyntaxError, "cannot insert multiple commands into a prepared statement")
	}
	impl := &prepared{text: sql, declared: params, at: time.Now()}
	if len(stmts) == 1 {
		impl.stmt = stmts[0]
		if err := s.admit(impl.stmt); err != nil {
			return nil, err
		}
	}
	if name != "" && s.stmts[name] != nil {
		return nil, pgerr.New(pgerr.DuplicatePreparedStatement, "prepared statement %q already exists", name)
	}
	s.enter()
	return s.define(ctx, name, impl)
}

// define analyses a statement and keeps it under its name.
func (s *Session) define(ctx context.Context, name string, impl *prepared) (*Prepared, error) {
	p := &Prepared{Name: name, SQL: impl.text, impl: impl}
	if err := s.analyse(ctx, impl, p); err != nil {
		return nil, err
	}
	s.stmts[name] = p
	return p, nil
}

// Statement finds a prepared statement.
func (s *Session) Statement(name string) (*Prepared, error) {
	if p := s.stmts[name]; p != nil {
		return p, nil
	}
	if name == "" {
		return nil, pgerr.New(pgerr.InvalidSQLStatementName, "unnamed prepared statement does not exist")
	}
	return nil, pgerr.New(pgerr.InvalidSQLStatementName, "prepared statement %q does not exist", name)
}

// CloseStatement forgets a prepared statement; unknown names are fine.
func (s *Session) CloseStatement(name string) { delete(s.stmts, name) }
