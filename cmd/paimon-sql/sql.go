package main

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"os/user"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
	"github.com/paimon-sql/paimon-sql/sql/parser"
)

// client runs SQL: in process, or over the wire.
type client interface {
	// Exec runs a text of any number of statements and hands results to p.
	Exec(ctx context.Context, sql string, p *results) error
	Close()
}

// results passes what a client receives on to a printer.
type results struct {
	p     printer
	out   *bufio.Writer
	err   io.Writer
	quiet bool // no notices
	rows  int64
	began func() // called before the first rows; may be nil
}

func (r *results) started() {
	if r.began != nil {
		r.began()
	}
}

func (r *results) notice(severity, message, hint string) {
	if r.quiet {
		return
	}
	fmt.Fprintf(r.err, "%s:  %s\n", severity, message)
	if hint != "" {
		fmt.Fprintf(r.err, "HINT:  %s\n", hint)
	}
}

func (a *app) sql(ctx context.Context, args []string) error {
	fs := newFlags(a, "sql")
	fs.String("warehouse", "", "path or URI of the warehouse, opened in this process")
	fs.String("dsn", "", "a server instead: postgres://user@host:port/database")
	var commands, files list
	fs.Var(&commands, "c", "SQL, or a command of the shell such as '\\d orders'; may be repeated")
	fs.Var(&files, "f", "file of SQL to run (- is standard input); may be repeated")
	set := pairs{}
	fs.Var(set, "set", "a setting, name=value; may be repeated")
	fs.String("format", "table", "table, csv, json, jsonl or markdown")
	fs.String("memory", "", "memory that all queries may use, such as 4GB; empty = half of the machine's")
	fs.String("temp-dir", "", "where temporary files are put; empty = the system's")
	fs.String("log-level", "warn", "debug, info, warn or error")
	if err := fs.parse(args); err != nil {
		return err
	}
	if fs.set["warehouse"] && fs.set["dsn"] {
		return usagef("--warehouse and --dsn exclude each other")
	}
	if fs.value("warehouse") == "" && fs.value("dsn") == "" {
		return usagef("--warehouse or --dsn is missing")
	}
	overWire := fs.value("dsn") != "" && !fs.set["warehouse"]
	if _, err := newPrinter(fs.value("format"), io.Discard); err != nil {
		return err
	}
	var texts []string
	for _, f := range files {
		b, err := a.readFile(f)
		if err != nil {
			return usagef("%v", err)
		}
		texts = append(texts, b)
	}
	var c client
	var err error
	if overWire {
		c, err = dial(ctx, fs.value("dsn"), set)
	} else {
		log, lerr := logger(a.err, fs.value("log-level"), "text")
		if lerr != nil {
			return lerr
		}
		ec, cerr := engineConfig(fs, nil, log)
		if cerr != nil {
			return cerr
		}
		if err := checkWarehouse(ctx, ec.Warehouse, log); err != nil {
			return err
		}
		ec.Settings["paimon.server_files"] = "on" // the files of whoever runs this
		c, err = openLocal(ctx, ec, set)
	}
	if err != nil {
		return err
	}
	defer c.Close()
	if len(commands) == 0 && len(files) == 0 {
		return a.shell(ctx, c, fs.value("format"), overWire)
	}
	ctx, stop := signal.NotifyContext(ctx, os.Interrupt)
	defer stop()
	out := bufio.NewWriterSize(a.out, 64<<10)
	defer out.Flush() //nolint:errcheck // checked below where it matters
	p, err := newPrinter(fs.value("format"), out)
	if err != nil {
		return err
	}
	r := &results{p: p, out: out, err: a.err}
	s := &sh{a: a, c: c, ctx: ctx, out: out, format: fs.value("format")}
	for _, sql := range commands {
		if cmd := strings.TrimSpace(sql); strings.HasPrefix(cmd, `\`) {
			if s.meta(cmd); s.failed {
				return errReported
			}
			if t, ok := p.(*tablePrinter); ok {
				t.expanded = s.expanded
			}
			continue
		}
		if err := a.runText(ctx, c, sql, r); err != nil {
			return err
		}
	}
	for _, text := range texts {
		for _, st := range splitStatements(text) {
			if err := a.runText(ctx, c, st, r); err != nil {
				return err
			}
		}
	}
	if err := p.close(); err != nil {
		return err
	}
	return out.Flush()
}

func (a *app) readFile(name string) (string, error) {
	if name == "-" {
		b, err := io.ReadAll(a.in)
		return string(b), err
	}
	b, err := os.ReadFile(name)
	return string(b), err
}

// runText runs one text and reports its error on stderr.
func (a *app) runText(ctx context.Context, c client, sql string, r *results) error {
	err := c.Exec(ctx, sql, r)
	if ferr := r.out.Flush(); err == nil && ferr != nil {
		return ferr
	}
	if err != nil {
		a.printError(err, sql)
		return errReported
	}
	return nil
}

// printError prints an error as psql does, with the line it points at.
func (a *app) printError(err error, sql string) {
	pe := asServerError(err)
	if pe == nil {
		fmt.Fprintf(a.err, "ERROR:  %s\n", err)
		return
	}
	sev := pe.Severity
	if sev == "" {
		sev = "ERROR"
	}
	fmt.Fprintf(a.err, "%s:  %s: %s\n", sev, pe.Code, pe.Message)
	if line, col, n := position(sql, pe.Position); n > 0 {
		prefix := fmt.Sprintf("LINE %d: ", n)
		fmt.Fprintf(a.err, "%s%s\n%s^\n", prefix, line, strings.Repeat(" ", len(prefix)+col))
	}
	for _, f := range [][2]string{{"DETAIL", pe.Detail}, {"HINT", pe.Hint}, {"CONTEXT", pe.Context}} {
		if f[1] != "" {
			fmt.Fprintf(a.err, "%s:  %s\n", f[0], f[1])
		}
	}
}

// position finds the line of a character position from 1; n is its number.
func position(sql string, pos int) (line string, col, n int) {
	if pos <= 0 {
		return "", 0, 0
	}
	runes := []rune(sql)
	if pos > len(runes)+1 {
		return "", 0, 0
	}
	pos--
	start := pos
	for start > 0 && runes[start-1] != '\n' {
		start--
	}
	end := pos
	for end < len(runes) && runes[end] != '\n' {
		end++
	}
	n = 1
	for _, r := range runes[:start] {
		if r == '\n' {
			n++
		}
	}
	return strings.ReplaceAll(string(runes[start:end]), "\t", " "), pos - start, n
}

func asServerError(err error) *pgerr.Error {
	var pe *pgerr.Error
	if errors.As(err, &pe) {
		return pe
	}
	var ge *pgconn.PgError
	if errors.As(err, &ge) {
		return &pgerr.Error{
			Code: pgerr.MakeCode(ge.Code), Message: ge.Message, Detail: ge.Detail, Hint: ge.Hint, Position: int(ge.Position),
			Context: ge.Where, Severity: ge.Severity,
		}
	}
	return nil
}

// local is a client of an engine in this process.
type local struct {
	e *engine.Engine
	s *engine.Session
}

func openLocal(ctx context.Context, cfg engine.Config, set pairs) (*local, error) {
	cfg.AnyDatabase = true
	e, err := engine.Open(ctx, cfg)
	if err != nil {
		return nil, err
	}
	name := superuser
	if u, err := user.Current(); err == nil && u.Username != "" && u.Username != "root" {
		name = u.Username
	}
	s, err := e.OpenSession(ctx, engine.Startup{User: name, Database: "paimon", Params: set, Remote: "local"})
	if pgerr.Is(err, pgerr.InvalidAuthorizationSpecification) { // who has the files is no less than the superuser
		s, err = e.OpenSession(ctx, engine.Startup{User: superuser, Database: "paimon", Params: set, Remote: "local"})
	}
	if err != nil {
		e.Close() //nolint:errcheck // nothing was done
		return nil, err
	}
	s.ParameterStatuses() // nobody is told of them
	return &local{e, s}, nil
}

func (l *local) Close() {
	l.s.Close()
	l.e.Close() //nolint:errcheck // the process ends
}

// Exec cancels the statement, not the process, when ctx ends.
func (l *local) Exec(ctx context.Context, sql string, r *results) error {
	pid, secret := l.s.Key()
	stop := context.AfterFunc(ctx, func() { l.e.Cancel(pid, secret) })
	defer stop()
	return l.s.Query(context.WithoutCancel(ctx), sql, &localSink{r: r, s: l.s})
}

// localSink prints what an engine yields.
type localSink struct {
	r    *results
	s    *engine.Session
	rows int64
	cols []engine.Column
}

func (k *localSink) Columns(cols []engine.Column) error {
	k.cols, k.rows = cols, 0
	out := make([]column, len(cols))
	for i, c := range cols {
		out[i] = column{name: c.Name, right: c.Type.IsNumber() || c.Type.IsOIDLike()}
	}
	return k.r.p.begin(out)
}

func (k *localSink) Batch(_ context.Context, b *vec.Batch) error {
	k.r.started()
	k.rows += int64(b.Size())
	return k.r.p.block(arrowBlock(k.cols, b, k.s))
}

func (k *localSink) Complete(tag string) error {
	rows := k.cols != nil
	k.cols = nil
	k.r.rows = k.rows
	return k.r.p.end(tag, rows)
}

// CopyOut writes the data to the output as it comes.
func (k *localSink) CopyOut(context.Context, bool, int) (io.WriteCloser, error) {
	k.r.started()
	return copyOut{k.r.out}, nil
}

// CopyIn has no stream to read: statements come from flags and files.
func (k *localSink) CopyIn(context.Context, bool, int) (io.Reader, error) {
	return nil, noCopyIn()
}

func noCopyIn() error {
	return pgerr.New(pgerr.FeatureNotSupported, "COPY FROM STDIN is not supported here").
		WithHint("COPY ... FROM 'file' reads a file; psql's \\copy sends one to a server.")
}

// stdCopy returns the COPY FROM STDIN or TO STDOUT of a text, nil when there is none,
// and whether it is the text's only statement.
func stdCopy(sql string) (c *ast.Copy, alone bool) {
	stmts, err := parser.Parse(sql)
	if err != nil {
		return nil, false // the server says what is wrong
	}
	for _, st := range stmts {
		if c, ok := st.(*ast.Copy); ok && c.Std {
			return c, len(stmts) == 1
		}
	}
	return nil, false
}

type copyOut struct{ *bufio.Writer }

func (c copyOut) Close() error { return c.Flush() }

func (k *localSink) Empty() error                   { return nil }
func (k *localSink) ParameterStatus(string, string) {}

func (k *localSink) Notice(e *pgerr.Error) { k.r.notice(e.Severity, e.Message, e.Hint) }

// remote is a client of a server.
type remote struct{ c *pgconn.PgConn }

func dial(ctx context.Context, dsn string, set pairs) (*remote, error) {
	cfg, err := pgconn.ParseConfig(dsn)
	if err != nil {
		return nil, usagef("--dsn: %v", err)
	}
	for k, v := range set {
		cfg.RuntimeParams[k] = v
	}
	r := &remote{}
	if cfg.RuntimeParams["application_name"] == "" {
		cfg.RuntimeParams["application_name"] = "paimon-sql"
	}
	cctx, cancel := context.WithTimeout(ctx, 30*time.Second)
	defer cancel()
	if r.c, err = pgconn.ConnectConfig(cctx, cfg); err != nil {
		return nil, err
	}
	return r, nil
}

func (w *remote) Close() {
	ctx, cancel := context.WithTimeout(context.Background(), time.Second)
	defer cancel()
	w.c.Close(ctx) //nolint:errcheck // the process ends
}

func (w *remote) Exec(ctx context.Context, sql string, r *results) error {
	stop := context.AfterFunc(ctx, func() {
		cctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
		defer cancel()
		w.c.CancelRequest(cctx) //nolint:errcheck // best effort
	})
	defer stop()
	if c, alone := stdCopy(sql); c != nil {
		switch {
		case c.From:
			return noCopyIn()
		case !alone:
			return pgerr.New(pgerr.FeatureNotSupported, "COPY TO STDOUT beside other statements is not supported here")
		}
		r.started()
		tag, err := w.c.CopyTo(context.WithoutCancel(ctx), r.out, sql)
		if err != nil {
			return err
		}
		return r.p.end(tag.String(), false)
	}
	m := w.c.Exec(context.WithoutCancel(ctx), sql)
	for m.NextResult() {
		rr := m.ResultReader()
		fields := rr.FieldDescriptions()
		cols := make([]column, len(fields))
		oids := make([]uint32, len(fields))
		for i, f := range fields {
			oids[i] = f.DataTypeOID
			cols[i] = column{name: f.Name, right: rightAligned(f.DataTypeOID)}
		}
		if fields != nil {
			if err := r.p.begin(cols); err != nil {
				return err
			}
		}
		r.rows = 0
		for rr.NextRow() {
			r.started()
			r.rows++
			if err := r.p.block(textBlock(oids, rr.Values())); err != nil {
				return err
			}
		}
		tag, err := rr.Close()
		if err != nil {
			m.Close() //nolint:errcheck // the same error again
			return err
		}
		if err := r.p.end(tag.String(), fields != nil); err != nil {
			return err
		}
	}
	return m.Close()
}

func rightAligned(oid uint32) bool {
	switch oid {
	case 20, 21, 23, 26, 700, 701, 1700:
		return true
	}
	return false
}
