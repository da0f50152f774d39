package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"sync"
	"sync/atomic"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/metrics"
	"github.com/paimon-sql/paimon-sql/pgwire"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// serveMetrics registers what only a server has.
func serveMetrics(ready *readiness, srv *pgwire.Server) {
	metrics.Process(version)
	metrics.NewGaugeFunc("paimon_sql_ready", "1 while the server takes connections, 0 while it starts or shuts down.", func() float64 {
		if ready.on.Load() {
			return 1
		}
		return 0
	})
	metrics.NewGaugeFunc("paimon_sql_pgwire_pending_count", "Connections that are not logged in yet.", func() float64 { return float64(srv.Pending()) })
}

// serveHTTP serves metrics and health.
func serveHTTP(addr string, ready *readiness, prof bool, log *slog.Logger) (*http.Server, error) {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("/metrics", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
		metrics.Write(w)
	})
	mux.HandleFunc("/healthz", func(w http.ResponseWriter, _ *http.Request) { fmt.Fprintln(w, "ok") })
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, r *http.Request) {
		if err := ready.check(r.Context()); err != nil {
			http.Error(w, "not ready: "+err.Error(), http.StatusServiceUnavailable)
			return
		}
		fmt.Fprintln(w, "ready")
	})
	if prof {
		mux.HandleFunc("/debug/pprof/", pprof.Index)
		mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
		mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
		mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	}
	s := &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() {
		if err := s.Serve(l); err != nil && !errors.Is(err, http.ErrServerClosed) {
			log.Error("http", "err", err)
		}
	}()
	return s, nil
}

// probeTimeout is how long the warehouse may take to answer /readyz, probeAge how
// long an answer is good for.
const (
	probeTimeout = 5 * time.Second
	probeAge     = time.Second
)

// readiness says whether clients should be sent here: the server takes connections,
// and its warehouse answers.
type readiness struct {
	on    atomic.Bool
	probe func(ctx context.Context) error // nil = nothing to ask

	mu     sync.Mutex    // guards what follows
	asking chan struct{} // closed when the probe that runs has ended; nil = none runs
	asked  time.Time     // when the last one ended
	last   error
}

// check returns nil, or why the server is not ready. However many ask, the warehouse
// is asked by one at a time: a store that hangs must not gather goroutines.
func (r *readiness) check(ctx context.Context) error {
	if !r.on.Load() {
		return errors.New("the server is starting or shutting down")
	}
	if r.probe == nil {
		return nil
	}
	r.mu.Lock()
	if time.Since(r.asked) < probeAge {
		defer r.mu.Unlock()
		return r.last
	}
	if r.asking == nil {
		done := make(chan struct{})
		r.asking = done
		go func() {
			pctx, cancel := context.WithTimeout(context.Background(), probeTimeout)
			defer cancel()
			err := r.probe(pctx)
			r.mu.Lock()
			r.last, r.asked, r.asking = err, time.Now(), nil
			r.mu.Unlock()
			close(done)
		}()
	}
	done := r.asking
	r.mu.Unlock()
	t := time.NewTimer(probeTimeout)
	defer t.Stop()
	select {
	case <-done:
		r.mu.Lock()
		defer r.mu.Unlock()
		return r.last
	case <-t.C:
		return errors.New("the warehouse does not answer")
	case <-ctx.Done():
		return ctx.Err()
	}
}

// reachable asks the warehouse for something small. The error does not name the
// warehouse: its address may hold secrets.
func reachable(ctx context.Context, e *engine.Engine) error {
	if _, err := e.FileIO().List(ctx, "default.db"); err != nil && !errors.Is(err, fileio.ErrNotExist) {
		return errors.New("the warehouse cannot be read")
	}
	return nil
}
