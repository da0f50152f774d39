package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/pprof"
	"os"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/demo"
	"github.com/paimon-sql/paimon-sql/internal/metrics"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/pgwire"
)

// backend gives connections their sessions.
type backend struct{ e *engine.Engine }

var (
	_ pgwire.Backend     = backend{}
	_ pgwire.Session     = (*engine.Session)(nil)
	_ pgwire.IdleLimiter = (*engine.Session)(nil)
	_ pgwire.Terminable  = (*engine.Session)(nil)
	_ pgwire.Styler      = (*engine.Session)(nil)
	_ pgwire.OIDNamer    = (*engine.Session)(nil)
	_ roleSource         = (*engine.Engine)(nil)
)

func (b backend) Open(ctx context.Context, s engine.Startup) (pgwire.Session, error) {
	x, err := b.e.OpenSession(ctx, s)
	if err != nil {
		return nil, err
	}
	return x, nil
}

func (b backend) Cancel(pid int32, secret uint32) { b.e.Cancel(pid, secret) }

func (a *app) serve(ctx context.Context, args []string) error {
	fs := newFlags(a, "serve")
	fs.String("warehouse", "", "path or URI of the warehouse")
	fs.String("listen", "127.0.0.1:5432", "address for PostgreSQL clients")
	fs.String("http-listen", "", "address for /metrics, /healthz and /readyz; empty = none")
	fs.Bool("http-pprof", false, "also serve /debug/pprof on --http-listen")
	fs.String("config", "", "YAML file of these flags and of settings")
	fs.String("memory", "", "memory that all queries may use, such as 4GB; empty = half of the machine's")
	fs.Int("max-connections", 100, "connections at once")
	fs.Int("cpus", 0, "CPU slots of queries; 0 = all")
	fs.String("temp-dir", "", "where temporary files are put; empty = the system's")
	fs.String("database", "", "a database name besides paimon; without a password every name will do")
	fs.String("tls-cert", "", "PEM file of the certificate")
	fs.String("tls-key", "", "PEM file of the certificate's key")
	fs.Bool("tls-required", false, "refuse clients that do not encrypt")
	fs.String("tls-min-version", "1.2", "oldest version of TLS: 1.2 or 1.3")
	fs.String("tls-client-ca", "", "PEM file of the authorities that sign clients' certificates")
	fs.String("hba-file", "", "file of access rules in the format of pg_hba.conf")
	fs.String("password-file", "", "file that holds the password of the user paimon")
	fs.Duration("grace-period", 30*time.Second, "how long a shutdown waits for statements")
	fs.Bool("next-free-port", false, "take the next free port when the one of --listen is in use")
	fs.Bool("hints", false, "print how to connect, and queries to try on the demo tables")
	fs.String("log-level", "info", "debug, info, warn or error")
	fs.String("log-format", "text", "text or json")
	set := pairs{}
	fs.Var(set, "set", "default of a setting, name=value; may be repeated")
	if err := fs.parse(args); err != nil {
		return err
	}
	if fs.value("warehouse") == "" {
		return usagef("--warehouse is missing")
	}
	log, err := logger(a.err, fs.value("log-level"), fs.value("log-format"))
	if err != nil {
		return err
	}
	password, err := a.password(fs)
	if err != nil {
		return err
	}
	access, err := newAuth(password, fs.value("hba-file"), fs.on("tls-required"))
	if err != nil {
		return usagef("--hba-file: %v", err)
	}
	if err := checkAddress(fs.value("listen")); err != nil {
		return usagef("--listen: %v", err)
	}
	if access.open() {
		if ok, host := loopback(fs.value("listen")); !ok {
			return usagef("refusing to listen on %s without a password: every user name would be let in; "+
				"set PAIMON_SQL_PASSWORD or PAIMON_SQL_PASSWORD_FILE, or listen on 127.0.0.1, or give rules with --hba-file", host)
		}
	}
	cfg := pgwire.Config{Log: log, Auth: access}
	certs, err := newTLSFiles(fs, log)
	if err != nil {
		return err
	}
	if certs != nil {
		cfg.TLSNow = certs.config
	}
	if fs.on("tls-required") && certs == nil {
		return usagef("--tls-required needs --tls-cert and --tls-key")
	}
	ec, err := engineConfig(fs, set, log)
	if err != nil {
		return err
	}
	ec.AnyDatabase = access.open()
	ec.Maintain = true
	if err := checkWarehouse(ctx, ec.Warehouse, log); err != nil {
		return err
	}

	l, err := listen(fs.value("listen"), fs.on("next-free-port"))
	if errors.Is(err, syscall.EADDRINUSE) {
		return fmt.Errorf("%s is in use; choose another port with --listen, or give --next-free-port", fs.value("listen"))
	}
	if err != nil {
		return err
	}
	host, port, _ := net.SplitHostPort(l.Addr().String())
	ec.Settings["listen_addresses"], ec.Settings["port"] = host, port
	if certs != nil {
		ec.Settings["ssl"] = "on"
	}
	cores.Spare()
	ctx, stop := untilSignal(ctx)
	defer stop()
	e, err := engine.Open(ctx, ec)
	if err != nil {
		l.Close() //nolint:errcheck // nothing was served
		return err
	}
	defer e.Close() //nolint:errcheck // nothing is left to lose
	cfg.Backend = backend{e}
	access.rolesOf(e)
	defer a.onHangup(func() {
		reload := func(what string, f func() error) {
			if err := f(); err != nil {
				log.Error("reload: the old ones stay", "what", what, "err", err)
			} else {
				log.Info("reloaded", "what", what)
			}
		}
		if access.file != "" {
			reload("access rules", access.reload)
		}
		if certs != nil {
			reload("TLS files", certs.reload)
		}
	})()
	srv := pgwire.NewServer(cfg)

	var ready atomic.Bool
	if addr := fs.value("http-listen"); addr != "" {
		hs, err := serveHTTP(addr, &ready, fs.on("http-pprof"), log)
		if err != nil {
			l.Close() //nolint:errcheck // nothing was served
			return err
		}
		defer hs.Close() //nolint:errcheck // the process ends
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	ready.Store(true)
	fmt.Fprintf(a.out, "paimon-sql %s: listening on %s, warehouse %s\n", version, l.Addr(), ec.Warehouse)
	if fs.on("hints") {
		user := "paimon"
		fmt.Fprintf(a.out, "\n  psql -h %s -p %s -U %s paimon\n\n", hostForClients(host), port, user)
		for _, q := range demo.Queries[:3] {
			fmt.Fprintf(a.out, "  %s;\n", q)
		}
		fmt.Fprintln(a.out)
	}
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	stop() // a second signal ends the process at once
	ready.Store(false)
	log.Info("shutting down")
	grace, err := time.ParseDuration(fs.value("grace-period"))
	if err != nil {
		return err
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := srv.Shutdown(sctx); err != nil {
		log.Warn("statements were cancelled at shutdown", "err", err)
	}
	return nil
}

// engineConfig turns flags into what an engine is made of.
func engineConfig(fs *flags, set pairs, log *slog.Logger) (engine.Config, error) {
	c := engine.Config{Warehouse: fs.value("warehouse"), Version: strings.TrimPrefix(version, "v"), Log: log, Settings: map[string]string{}}
	m, err := fs.settings()
	if err != nil {
		return c, err
	}
	for _, src := range []map[string]string{m, set} {
		for k, v := range src {
			c.Settings[k] = v
		}
	}
	if v := fs.value("memory"); v != "" {
		n, err := sizeValue(v)
		if err != nil {
			return c, usagef("--memory: %v", err)
		}
		if n > 0 && n < 16<<20 {
			return c, usagef("--memory: %s is less than 16MB", v)
		}
		c.MaxMemory = n
	}
	for _, name := range []string{"max-connections", "cpus"} {
		if f := fs.Lookup(name); f != nil && strings.HasPrefix(f.Value.String(), "-") {
			return c, usagef("--%s: %s is negative", name, f.Value)
		}
	}
	if err := checkTempDir(fs.value("temp-dir")); err != nil {
		return c, usagef("--temp-dir: %v", err)
	}
	if fs.Lookup("max-connections") != nil {
		c.MaxConnections, _ = strconv.Atoi(fs.value("max-connections"))
		c.Database = fs.value("database")
	}
	if fs.Lookup("cpus") != nil {
		c.Slots, _ = strconv.Atoi(fs.value("cpus"))
	}
	c.TempDir = fs.value("temp-dir")
	return c, nil
}

// checkAddress says what is wrong with an address to listen on.
func checkAddress(addr string) error {
	_, port, err := net.SplitHostPort(addr)
	if err != nil {
		return fmt.Errorf("%q is not host:port, such as 127.0.0.1:5432", addr)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return fmt.Errorf("%q is not a port", port)
	}
	return nil
}

// checkTempDir says why a directory cannot be used; "" can.
func checkTempDir(name string) error {
	if name == "" {
		return nil
	}
	st, err := os.Stat(name)
	if err != nil {
		return err
	}
	if !st.IsDir() {
		return fmt.Errorf("%s is not a directory", name)
	}
	return nil
}

// password is the superuser's: of the environment, or of a file.
func (a *app) password(fs *flags) (string, error) {
	if p := a.env("PAIMON_SQL_PASSWORD"); p != "" {
		return p, nil
	}
	name := fs.value("password-file")
	if name == "" {
		return "", nil
	}
	b, err := os.ReadFile(name)
	if err != nil {
		return "", usagef("password file: %v", err)
	}
	p := string(bytes.TrimRight(b, "\r\n"))
	if p == "" {
		return "", usagef("password file %s is empty", name)
	}
	return p, nil
}

// loopback reports whether only this machine can reach an address.
func loopback(addr string) (bool, string) {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return true, addr // listen says what is wrong with it
	}
	if host == "localhost" {
		return true, addr
	}
	ip := net.ParseIP(strings.Trim(host, "[]"))
	return ip != nil && ip.IsLoopback(), addr
}

func hostForClients(host string) string {
	if ip := net.ParseIP(host); ip != nil && ip.IsUnspecified() {
		return "127.0.0.1"
	}
	return host
}

// listen listens on addr, or on one of the next hundred ports.
func listen(addr string, next bool) (net.Listener, error) {
	l, err := net.Listen("tcp", addr)
	if err == nil || !next || !errors.Is(err, syscall.EADDRINUSE) {
		return l, err
	}
	host, port, serr := net.SplitHostPort(addr)
	n, aerr := strconv.Atoi(port)
	if serr != nil || aerr != nil {
		return nil, err
	}
	for i := 1; i <= 100 && n+i < 1<<16; i++ {
		if l, e := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(n+i))); e == nil {
			return l, nil
		}
	}
	return nil, err
}

// serveHTTP serves metrics and health.
func serveHTTP(addr string, ready *atomic.Bool, prof bool, log *slog.Logger) (*http.Server, error) {
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
	mux.HandleFunc("/readyz", func(w http.ResponseWriter, _ *http.Request) {
		if !ready.Load() {
			http.Error(w, "not ready", http.StatusServiceUnavailable)
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

func logger(w io.Writer, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level: %q is none of debug, info, warn, error", level)
	}
	o := &slog.HandlerOptions{Level: l}
	switch format {
	case "text":
		return slog.New(slog.NewTextHandler(w, o)), nil
	case "json":
		return slog.New(slog.NewJSONHandler(w, o)), nil
	}
	return nil, usagef("--log-format: %q is neither text nor json", format)
}

// errorText is an error as the shell prints it: message, detail, hint, code.
func errorText(err error) string {
	var pe *pgerr.Error
	if !errors.As(err, &pe) {
		return err.Error()
	}
	s := pe.Message
	if pe.Detail != "" {
		s += "\nDETAIL:  " + pe.Detail
	}
	if pe.Hint != "" {
		s += "\nHINT:  " + pe.Hint
	}
	if pe.Context != "" {
		s += "\nCONTEXT:  " + pe.Context
	}
	return s + "\nSQLSTATE:  " + pe.Code.String()
}
