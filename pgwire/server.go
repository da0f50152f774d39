package pgwire

import (
	"context"
	"crypto/tls"
	"errors"
	"log/slog"
	"net"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/metrics"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// Config is what a Server needs. The zero value of every field but Backend is
// usable.
type Config struct {
	Backend Backend
	// Auth decides who may connect; nil lets everybody in (trust).
	Auth Authenticator
	// TLS turns encryption on for clients that ask for it; nil answers N.
	TLS *tls.Config
	// TLSNow, when set, is asked for each connection instead of TLS, so that
	// certificates can change. It must be fast and safe for concurrent use.
	TLSNow func() *tls.Config
	// MaxConnections bounds the sessions; 0 = no bound. One too many is 53300.
	MaxConnections int
	// MaxMessageBytes bounds one message of a client; 0 = 1 GiB, PostgreSQL's.
	MaxMessageBytes int
	// MaxPending bounds the connections that are no sessions yet: while they log
	// in, or do nothing; 0 = 200. One too many is closed without a word, unless an
	// older one has had a second: then that one is.
	MaxPending int
	// StartupTimeout is the time from connect to a session; 0 = one minute.
	// StartupTimeoutNow, when set, is asked instead.
	StartupTimeout    time.Duration
	StartupTimeoutNow func() time.Duration
	// FailDelay is how long the first failed login of an address waits for its
	// answer; each further one within a minute twice as long as the one before, up to
	// five seconds. 0 = 100 ms, negative = none.
	FailDelay time.Duration
	// WatchDelay is how long a statement runs before the socket is watched for a
	// client that vanishes; 0 = 200 ms. Statements that are done by then are
	// finished although their client has gone, as in PostgreSQL.
	WatchDelay time.Duration
	Log        *slog.Logger // nil = slog.Default()
}

const (
	defaultStartupTimeout = time.Minute
	defaultMaxPending     = 200
	defaultFailDelay      = 100 * time.Millisecond
	pendingGrace          = time.Second
	defaultWatchDelay     = 200 * time.Millisecond
	defaultMaxMessage     = 1<<30 - 1
	// lingerBytes and lingerTime bound what is read after the last message of an
	// ended connection, so that a reset does not overtake the message.
	lingerBytes = 1 << 20
	lingerTime  = 500 * time.Millisecond
	keepAlive   = time.Minute
)

// ErrServerClosed is returned by Serve after Shutdown.
var ErrServerClosed = errors.New("pgwire: server closed")

// Server accepts connections and runs the protocol on each. Safe for concurrent
// use.
type Server struct {
	cfg Config
	log *slog.Logger

	mu        sync.Mutex // guards what follows
	listeners map[net.Listener]struct{}
	conns     map[*conn]struct{}
	late      map[*conn]struct{} // that came while the server shuts down
	sessions  int
	pending   int // connections that are no sessions yet
	closing   bool
	wg        sync.WaitGroup // connections being served

	guesses    guesses
	authFailed *metrics.Counter
}

// NewServer makes a Server.
func NewServer(cfg Config) *Server {
	if cfg.StartupTimeout == 0 {
		cfg.StartupTimeout = defaultStartupTimeout
	}
	if cfg.WatchDelay == 0 {
		cfg.WatchDelay = defaultWatchDelay
	}
	if cfg.MaxMessageBytes == 0 {
		cfg.MaxMessageBytes = defaultMaxMessage
	}
	if cfg.MaxPending == 0 {
		cfg.MaxPending = defaultMaxPending
	}
	if cfg.FailDelay == 0 {
		cfg.FailDelay = defaultFailDelay
	}
	if cfg.Log == nil {
		cfg.Log = slog.Default()
	}
	return &Server{
		guesses:    guesses{base: cfg.FailDelay},
		authFailed: metrics.NewCounter("paimon_sql_pgwire_auth_failures_total", "Logins that were refused."),
		cfg:        cfg, log: cfg.Log,
		listeners: map[net.Listener]struct{}{},
		conns:     map[*conn]struct{}{},
		late:      map[*conn]struct{}{},
	}
}

// Serve accepts connections on l until Shutdown (ErrServerClosed) or until l
// fails for good. It closes l.
func (s *Server) Serve(l net.Listener) error {
	defer l.Close() //nolint:errcheck // a listener has nothing to lose
	s.mu.Lock()
	if s.closing {
		s.mu.Unlock()
		return ErrServerClosed
	}
	s.listeners[l] = struct{}{}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.listeners, l)
		s.mu.Unlock()
	}()
	pause := 5 * time.Millisecond
	for {
		nc, err := l.Accept()
		if err != nil {
			s.mu.Lock()
			closing := s.closing
			s.mu.Unlock()
			if closing {
				return ErrServerClosed
			}
			var ne net.Error
			if errors.Is(err, net.ErrClosed) || !errors.As(err, &ne) {
				return err
			}
			// Out of file descriptors, or a client that left before it was
			// accepted: go on, but not in a tight loop.
			s.log.Warn("accept", "err", err)
			time.Sleep(pause)
			pause = min(2*pause, time.Second)
			continue
		}
		pause = 5 * time.Millisecond
		if t, ok := nc.(*net.TCPConn); ok {
			t.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: keepAlive, Interval: keepAlive / 4, Count: 4}) //nolint:errcheck // best effort
		}
		go s.ServeConn(nc)
	}
}

// ServeConn runs one connection to its end and closes it.
func (s *Server) ServeConn(nc net.Conn) {
	c := newConn(s, nc)
	s.mu.Lock()
	if s.pending >= s.cfg.MaxPending && !s.evict() {
		s.mu.Unlock()
		s.log.Debug("too many connections are logging in", "remote", addr(nc))
		nc.Close() //nolint:errcheck // nothing was said on it
		return
	}
	s.pending++
	c.waiting, c.since = true, time.Now()
	c.late = s.closing
	if c.late {
		s.late[c] = struct{}{}
	} else {
		s.conns[c] = struct{}{}
		s.wg.Add(1) // the server does not wait for those that are late
	}
	s.mu.Unlock()
	defer func() {
		s.mu.Lock()
		delete(s.conns, c)
		delete(s.late, c)
		s.mu.Unlock()
		s.settled(c)
		if !c.late {
			s.wg.Done()
		}
	}()
	c.serve()
}

// settled takes a connection from those that are no sessions yet.
func (s *Server) settled(c *conn) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if c.waiting {
		c.waiting = false
		s.pending--
	}
}

// evict closes the connection that has been logging in for longest, if it has had
// its time: who is slow must not keep out who is not. s.mu is held.
func (s *Server) evict() bool {
	var oldest *conn
	for c := range s.conns {
		if c.waiting && (oldest == nil || c.since.Before(oldest.since)) {
			oldest = c
		}
	}
	if oldest == nil || time.Since(oldest.since) < pendingGrace {
		return false
	}
	oldest.waiting = false
	s.pending--
	oldest.cancel(errDone)
	oldest.giveUp()
	return true
}

// tlsConfig returns what a connection that begins now encrypts with.
func (s *Server) tlsConfig() *tls.Config {
	if s.cfg.TLSNow != nil {
		return s.cfg.TLSNow()
	}
	return s.cfg.TLS
}

func (s *Server) startupTimeout() time.Duration {
	if f := s.cfg.StartupTimeoutNow; f != nil {
		if d := f(); d > 0 {
			return d
		}
	}
	return s.cfg.StartupTimeout
}

// Pending returns the number of connections that are no sessions yet.
func (s *Server) Pending() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pending
}

// admit counts a session against MaxConnections.
func (s *Server) admit() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closing {
		return fatal(pgerr.CannotConnectNow, "the database system is shutting down")
	}
	if s.cfg.MaxConnections > 0 && s.sessions >= s.cfg.MaxConnections {
		return fatal(pgerr.TooManyConnections, "sorry, too many clients already")
	}
	s.sessions++
	return nil
}

func (s *Server) leave() {
	s.mu.Lock()
	s.sessions--
	s.mu.Unlock()
}

// Sessions returns the number of sessions now open.
func (s *Server) Sessions() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sessions
}

func shuttingDown() *pgerr.Error {
	return &pgerr.Error{Code: pgerr.AdminShutdown, Severity: "FATAL",
		Message: "terminating connection due to administrator command"}
}

// Shutdown ends idle sessions with 57P01 and waits until the others have finished
// their statement or transaction. When ctx is done they are cancelled, too. Who
// connects meanwhile is told 57P03. It returns when no connection is left, with ctx's
// error if some had to be cancelled.
func (s *Server) Shutdown(ctx context.Context) error {
	s.mu.Lock()
	s.closing = true
	s.interruptAll(false)
	s.mu.Unlock()
	defer s.closeListeners()

	gone := make(chan struct{})
	go func() {
		s.wg.Wait()
		close(gone)
	}()
	select {
	case <-gone:
		return nil
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.interruptAll(true)
	s.mu.Unlock()
	select {
	case <-gone:
	case <-time.After(5 * time.Second):
		// Cancelled statements answer within a batch; what is left waits for a
		// client that does not read.
		s.mu.Lock()
		for c := range s.conns {
			c.giveUp()
		}
		s.mu.Unlock()
		<-gone
	}
	return ctx.Err()
}

// closeListeners ends Serve, and the connections that came too late.
func (s *Server) closeListeners() {
	s.mu.Lock()
	defer s.mu.Unlock()
	for l := range s.listeners {
		l.Close() //nolint:errcheck // a listener has nothing to lose
	}
	for c := range s.late {
		c.giveUp()
	}
}

func (s *Server) interruptAll(hard bool) {
	for c := range s.conns {
		c.interrupt(shuttingDown(), hard)
	}
}
