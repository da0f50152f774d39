package pgwire

import (
	"context"
	"crypto/tls"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/charset"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// errDone ends a connection that has nothing more to say: Terminate, or a
// request that gets no answer.
var errDone = errors.New("done")

// errClientGone is the cause of the cancellation when the client has closed.
var errClientGone = errors.New("the client closed the connection")

// conn is one connection. All of it belongs to the goroutine of serve, except
// interrupt and what a comment says.
type conn struct {
	srv *Server
	log *slog.Logger

	ncMu sync.Mutex // guards nc against interrupt while TLS replaces it
	nc   net.Conn
	in   reader
	out  writer

	// ctx ends with the connection; its cause says why.
	ctx    context.Context
	cancel context.CancelCauseFunc
	sess   Session
	start  engine.Startup
	tls    *tls.Config // of the encrypted connection

	// late: it came while the server shuts down, and is told so.
	late bool
	// waiting: no session yet; since: when it was accepted. Both are guarded by
	// Server.mu.
	waiting bool
	since   time.Time

	// skip is set after an error in the extended protocol: everything up to the
	// next Sync is thrown away.
	skip bool
	// pipeline is set between a message of the extended protocol and its Sync.
	pipeline bool
	sink     sink
	styles   styleCache
	watch    watcher // while a statement runs
	msg      bindMessage

	// reported are the values last sent by ParameterStatus, pending the names
	// whose new value waits for the next ReadyForQuery.
	reported map[string]string
	pending  []status

	// ask is set by interrupt: end with this error as soon as nothing is open
	// (soft), or at once (hard).
	ask  atomic.Pointer[pgerr.Error]
	hard atomic.Bool

	// news is set when the session has got notifications. While idle is set, which
	// idleMu guards, they interrupt the read.
	news    atomic.Bool
	idleMu  sync.Mutex
	idle    bool
	listens bool // the session listens to something

	set *charset.Set // of the client; nil = UTF-8

	socket engine.SocketOptions // as they were set last
}

type status struct{ name, value string }

func newConn(s *Server, nc net.Conn) *conn {
	c := &conn{srv: s, nc: nc, log: s.log.With("remote", addr(nc))}
	c.in = reader{nc: nc, max: s.cfg.MaxMessageBytes}
	c.out = writer{nc: nc, plain: true}
	c.ctx, c.cancel = context.WithCancelCause(context.Background())
	c.sink.c = c
	c.watch = watcher{r: &c.in, after: s.cfg.WatchDelay, gone: func() { c.cancel(errClientGone) }}
	return c
}

func addr(nc net.Conn) string {
	if a := nc.RemoteAddr(); a != nil {
		return a.String()
	}
	return ""
}

// interrupt asks the connection to end with e: a soft one when it next waits for
// a message outside a transaction, a hard one at once. From any goroutine.
func (c *conn) interrupt(e *pgerr.Error, hard bool) {
	c.ask.Store(e)
	if hard {
		c.hard.Store(true)
		c.cancel(e)
	}
	c.ncMu.Lock()
	defer c.ncMu.Unlock()
	c.nc.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed socket needs no interruption
}

// giveUp closes the socket without a word. From any goroutine.
func (c *conn) giveUp() {
	c.ncMu.Lock()
	defer c.ncMu.Unlock()
	if t, ok := c.nc.(*tls.Conn); ok {
		t.NetConn().Close() //nolint:errcheck // given up; the TLS layer would wait for its peer
		return
	}
	c.nc.Close() //nolint:errcheck // given up
}

// serve runs the connection from the first byte to the last.
func (c *conn) serve() {
	defer c.nc.Close() //nolint:errcheck // nothing can be done about it
	defer c.cancel(errDone)
	err := c.guard(c.run)
	if c.sess != nil {
		c.guard(func() error { c.sess.Close(); return nil }) //nolint:errcheck // guard has logged it
		c.srv.leave()
	}
	c.farewell(err)
}

func (c *conn) run() error {
	if err := c.startup(); err != nil {
		return err
	}
	for {
		typ, body, err := c.read()
		if err != nil {
			return err
		}
		if err := c.handle(typ, body); err != nil {
			return err
		}
		if c.out.err != nil {
			return c.out.err
		}
	}
}

// guard runs f and turns a panic into a FATAL XX000, logged with its stack.
func (c *conn) guard(f func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			c.log.Error("panic in connection", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fatal(pgerr.InternalError, "internal error: %v", p)
		}
	}()
	return f()
}

// handle answers one message. The error ends the connection.
func (c *conn) handle(typ byte, body []byte) error {
	if c.skip && typ != 'S' && typ != 'X' {
		return nil
	}
	switch typ {
	case 'Q':
		return c.query(body)
	case 'P':
		c.pipeline = true
		return c.parse(body)
	case 'B':
		c.pipeline = true
		return c.bind(body)
	case 'D':
		c.pipeline = true
		return c.describe(body)
	case 'E':
		c.pipeline = true
		return c.execute(body)
	case 'C':
		c.pipeline = true
		return c.close(body)
	case 'H':
		return c.out.flush()
	case 'S':
		return c.sync()
	case 'X':
		return errDone
	case 'F':
		// Fast-path calls name functions by oid; libpq's large objects are their
		// only users.
		_ = c.report(pgerr.New(pgerr.FeatureNotSupported, "function call messages are not supported"))
		c.sess.Fail()
		return c.ready()
	case 'd', 'c', 'f':
		return nil // left over from a COPY that has failed
	default: // 'p' outside authentication
		return fatal(pgerr.ProtocolViolation, "invalid frontend message type %d", typ)
	}
}

// read waits for the next message. While it waits the connection is idle: an
// idle limit and a soft interrupt may end it.
func (c *conn) read() (byte, []byte, error) {
	var limit *pgerr.Error
	var deadline time.Time
	if l, ok := c.sess.(IdleLimiter); ok && !c.pipeline {
		if d, e := l.IdleLimit(); d > 0 {
			limit, deadline = e, time.Now().Add(d)
		}
	}
	for {
		// The deadline first, then the question: interrupt does it the other way
		// round, so one of the two sees the other.
		if limit != nil || c.ask.Load() != nil {
			c.nc.SetReadDeadline(deadline) //nolint:errcheck // a closed socket fails at the read
		}
		if e := c.ask.Load(); e != nil && (c.hard.Load() || (!c.pipeline && c.sess.TxStatus() == 'I')) {
			return 0, nil, &fatalError{e}
		}
		if c.listens && !c.pipeline && c.sess.TxStatus() == 'I' {
			if err := c.idling(); err != nil {
				return 0, nil, err
			}
		}
		typ, body, err := c.in.message()
		if c.idle {
			c.awake()
		}
		if limit != nil {
			c.nc.SetReadDeadline(time.Time{}) //nolint:errcheck // as above
		}
		if err != nil && errors.Is(err, os.ErrDeadlineExceeded) {
			if c.ask.Load() != nil || c.news.Load() && (limit == nil || time.Now().Before(deadline)) {
				continue
			}
			if limit != nil && !time.Now().Before(deadline) {
				limit.Severity = "FATAL"
				return 0, nil, &fatalError{limit}
			}
			continue // the rest of an interruption that is over
		}
		return typ, body, err
	}
}

// notified is told of notifications, by whichever goroutine sends them. They go out
// before the next ReadyForQuery outside of a transaction, or at once when the
// connection waits for its client there.
func (c *conn) notified() {
	c.news.Store(true)
	c.idleMu.Lock()
	defer c.idleMu.Unlock()
	if c.idle {
		c.ncMu.Lock()
		defer c.ncMu.Unlock()
		c.nc.SetReadDeadline(time.Unix(1, 0)) //nolint:errcheck // a closed socket needs no interruption
	}
}

// notify appends the notifications that have come.
func (c *conn) notify() {
	l, ok := c.sess.(Listener)
	if !ok {
		return
	}
	c.news.Store(false)
	var list []engine.Notification
	list, c.listens = l.Notifications()
	for _, n := range list {
		pos := c.out.begin('A')
		c.out.buf = binary.BigEndian.AppendUint32(c.out.buf, uint32(n.PID))
		c.out.text(n.Channel)
		c.out.text(n.Payload)
		c.out.finish(pos)
	}
}

// idling says that the connection waits for its client outside of a transaction,
// where notifications may interrupt it, and sends those that have come. awake ends
// it.
func (c *conn) idling() error {
	for {
		c.idleMu.Lock()
		if !c.news.Load() {
			c.idle = true
			c.idleMu.Unlock()
			return nil
		}
		c.idleMu.Unlock()
		c.notify()
		if err := c.out.flush(); err != nil {
			return err
		}
	}
}

// awake ends idling: from now on notifications wait.
func (c *conn) awake() {
	c.idleMu.Lock()
	c.idle = false
	c.idleMu.Unlock()
	if c.ask.Load() == nil {
		c.nc.SetReadDeadline(time.Time{}) //nolint:errcheck // a closed socket fails at the read
	}
}

// running runs f, which executes a statement, and watches the client meanwhile.
func (c *conn) running(f func() error) error {
	c.watch.begin()
	defer c.ran()
	return f()
}

// ran ends what running began.
func (c *conn) ran() {
	c.in.chunk = readChunk // COPY may have enlarged it
	c.watch.end()
}

// farewell sends the last message, if err asks for one, and logs what was not an
// orderly end.
func (c *conn) farewell(err error) {
	var f *fatalError
	switch {
	case err == nil || errors.Is(err, errDone):
		return
	case errors.As(err, &f):
		c.out.appendError('E', f.e)
		c.nc.SetWriteDeadline(time.Now().Add(5 * time.Second)) //nolint:errcheck // a closed socket fails at the write
		if c.out.flush() == nil {
			c.linger()
		}
		if f.e.Code == pgerr.AdminShutdown {
			return
		}
	case errors.Is(err, io.EOF) && c.in.r == c.in.w && (c.sess == nil || c.sess.TxStatus() == 'I'):
		return // closed without Terminate: common enough to say nothing
	case c.sess == nil:
		c.log.Debug("connection ended before it became a session", "err", err)
		return
	}
	c.log.Info("connection ended", "user", c.start.User, "db", c.start.Database, "err", err)
}

// linger reads what the client still sends: closing a socket with unread bytes
// resets it, and a reset can destroy the message that was just sent.
func (c *conn) linger() {
	if cw, ok := c.nc.(interface{ CloseWrite() error }); !ok || cw.CloseWrite() != nil {
		return
	}
	c.nc.SetReadDeadline(time.Now().Add(lingerTime))              //nolint:errcheck // best effort
	io.Copy(io.Discard, io.LimitReader(c.nc, int64(lingerBytes))) //nolint:errcheck // best effort
}

// startTLS replaces the socket by an encrypted one.
func (c *conn) startTLS() error {
	c.tls = c.srv.tlsConfig()
	t := tls.Server(c.nc, c.tls)
	if err := t.HandshakeContext(c.ctx); err != nil {
		return err
	}
	c.ncMu.Lock()
	c.nc, c.in.nc, c.out.nc, c.out.plain = t, t, t, false
	c.ncMu.Unlock()
	return nil
}
