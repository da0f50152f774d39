package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"os"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/demo"
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

// serveFlags are the flags of serve; set takes the values of --set.
func serveFlags(a *app) (fs *flags, set pairs) {
	fs = newFlags(a, "serve")
	fs.String("warehouse", "", "path or URI of the warehouse")
	fs.String("listen", "127.0.0.1:5432", "address for PostgreSQL clients")
	fs.String("http-listen", "", "address for /metrics, /healthz and /readyz; empty = none")
	fs.Bool("http-pprof", false, "also serve /debug/pprof on --http-listen")
	fs.String("config", "", "file of these flags and of settings: YAML, or as postgresql.conf when its name ends in .conf")
	fs.Bool("check-config", false, "say what is wrong with flags and configuration file, and end")
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
	fs.Duration("grace-period", 30*time.Second, "how long a shutdown waits for statements and transactions")
	fs.Duration("shutdown-delay", 0, "how long a shutdown still lets clients in after /readyz has begun to fail")
	fs.Bool("next-free-port", false, "take the next free port when the one of --listen is in use")
	fs.Bool("hints", false, "print how to connect, and queries to try on the demo tables")
	fs.String("log-level", "info", "debug, info, warn or error")
	fs.String("log-format", "text", "text or json")
	set = pairs{}
	fs.Var(set, "set", "default of a setting, name=value; may be repeated")
	return fs, set
}

// serving is a server that runs, as far as a reload concerns it.
type serving struct {
	a      *app
	args   []string
	fs     *flags // as they were read last
	log    *slog.Logger
	level  *slog.LevelVar
	access *auth
	certs  *tlsFiles // nil: no TLS
	e      *engine.Engine
	ready  readiness

	mu           sync.Mutex // guards grace and delay
	grace, delay time.Duration
}

func (a *app) serve(ctx context.Context, args []string) error {
	fs, set := serveFlags(a)
	if err := fs.parse(args); err != nil {
		return err
	}
	if fs.value("warehouse") == "" {
		return usagef("--warehouse is missing")
	}
	v := &serving{a: a, args: args, fs: fs, level: &slog.LevelVar{}}
	var err error
	if v.log, err = levelLogger(a.err, v.level, fs.value("log-level"), fs.value("log-format")); err != nil {
		return err
	}
	log := v.log
	if err := v.times(fs); err != nil {
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
	v.access = access
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
	v.certs = certs
	if fs.on("tls-required") && certs == nil {
		return usagef("--tls-required needs --tls-cert and --tls-key")
	}
	ec, err := engineConfig(fs, set, log)
	if err != nil {
		return err
	}
	if err := engine.CheckSettings(ec.FileSettings, ec.Settings); err != nil {
		return usagef("%s", errorText(err))
	}
	if fs.on("check-config") {
		fmt.Fprintln(a.out, "the configuration is right")
		return nil
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
	reloads := make(chan struct{}, 1)
	ec.ReloadConf = func() {
		select {
		case reloads <- struct{}{}:
		default: // one is waiting already
		}
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
	v.e = e
	v.ready.probe = func(ctx context.Context) error { return reachable(ctx, e) }
	cfg.Backend = backend{e}
	cfg.StartupTimeoutNow = e.AuthenticationTimeout
	access.rolesOf(e)
	defer a.onHangup(reloads, v.reload)()
	srv := pgwire.NewServer(cfg)
	serveMetrics(&v.ready, srv)

	if addr := fs.value("http-listen"); addr != "" {
		if ok, _ := loopback(addr); !ok && fs.on("http-pprof") {
			log.Warn("profiles are open to everybody who reaches --http-listen, and show what is in memory", "addr", addr)
		}
		hs, err := serveHTTP(addr, &v.ready, fs.on("http-pprof"), log)
		if err != nil {
			l.Close() //nolint:errcheck // nothing was served
			return err
		}
		defer hs.Close() //nolint:errcheck // the process ends
	}
	failed := make(chan error, 1)
	go func() { failed <- srv.Serve(l) }()
	v.ready.on.Store(true)
	fmt.Fprintf(a.out, "paimon-sql %s: listening on %s, warehouse %s\n", version, l.Addr(), ec.Warehouse)
	v.a.notify("READY=1", log)
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
	v.ready.on.Store(false)
	v.mu.Lock()
	grace, delay := v.grace, v.delay
	v.mu.Unlock()
	v.a.notify("STOPPING=1", log)
	log.Info("shutting down", "sessions", srv.Sessions(), "delay", delay.String(), "grace", grace.String())
	if delay > 0 {
		time.Sleep(delay) // whoever asks /readyz is to see it before clients are refused
	}
	sctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), grace)
	defer cancel()
	if err := srv.Shutdown(sctx); err != nil {
		log.Warn("statements were cancelled at shutdown", "err", err)
	}
	return nil
}

// times reads the durations of a shutdown.
func (v *serving) times(fs *flags) error {
	v.mu.Lock()
	defer v.mu.Unlock()
	var err error
	if v.grace, err = time.ParseDuration(fs.value("grace-period")); err != nil {
		return err
	}
	v.delay, err = time.ParseDuration(fs.value("shutdown-delay"))
	return err
}

// reloadable are the flags that a reload changes, settings apart.
var reloadable = map[string]bool{"log-level": true, "grace-period": true, "shutdown-delay": true}

// reload is what SIGHUP and pg_reload_conf() do: the configuration file, the access
// rules and the TLS files are read again. What is wrong stays as it was, part by
// part; what cannot change without a restart is named in the log.
func (v *serving) reload() {
	v.a.notify("RELOADING=1", v.log)
	defer v.a.notify("READY=1", v.log)
	part := func(what string, f func() error) {
		if err := f(); err != nil {
			v.log.Error("reload: the old ones stay", "what", what, "err", err)
		} else {
			v.log.Info("reloaded", "what", what)
		}
	}
	if v.fs.value("config") != "" {
		part("configuration file", v.reloadFile)
	}
	if v.access.file != "" {
		part("access rules", v.access.reload)
	}
	if v.certs != nil {
		part("TLS files", v.certs.reload)
	}
}

func (v *serving) reloadFile() error {
	fs, _ := serveFlags(v.a)
	if err := fs.parse(v.args); err != nil {
		return err
	}
	var level slog.Level
	if err := level.UnmarshalText([]byte(fs.value("log-level"))); err != nil {
		return fmt.Errorf("log-level: %q is none of debug, info, warn, error", fs.value("log-level"))
	}
	file, err := fs.settings()
	if err != nil {
		return err
	}
	waiting, err := v.e.Reload(file)
	if err != nil {
		return err
	}
	for _, name := range changedFlags(v.fs, fs) {
		if !reloadable[name] && name != "set" {
			waiting = append(waiting, name)
		}
	}
	if len(waiting) > 0 {
		v.log.Warn("some values of the configuration file need a restart", "names", strings.Join(waiting, ", "))
	}
	v.level.Set(level)
	return v.times(fs)
}

// engineConfig turns flags into what an engine is made of.
func engineConfig(fs *flags, set pairs, log *slog.Logger) (engine.Config, error) {
	c := engine.Config{Warehouse: fs.value("warehouse"), Version: strings.TrimPrefix(version, "v"), Log: log, Settings: map[string]string{}}
	var err error
	if c.FileSettings, err = fs.settings(); err != nil {
		return c, err
	}
	for k, v := range set {
		c.Settings[k] = v
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

func logger(w io.Writer, level, format string) (*slog.Logger, error) {
	return levelLogger(w, &slog.LevelVar{}, level, format)
}

// levelLogger is a logger whose level can change.
func levelLogger(w io.Writer, now *slog.LevelVar, level, format string) (*slog.Logger, error) {
	var l slog.Level
	if err := l.UnmarshalText([]byte(level)); err != nil {
		return nil, usagef("--log-level: %q is none of debug, info, warn, error", level)
	}
	now.Set(l)
	o := &slog.HandlerOptions{Level: now}
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
