package pgwire

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"
	"sync"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// fakeBackend opens fakeSessions: enough of a session to show every state of the
// protocol, and no SQL. Statements are words:
//
//	rows N      N rows of an int4        echo T...  one row of its parameters
//	insert N    no rows, tag INSERT 0 N  begin, commit, rollback
//	error CODE  fails                    notice     warns
//	set N V     reports a setting        sleep      waits until cancelled
//	panic       panics                   big N      N rows of 1,000 bytes
//	copyin      COPY FROM STDIN          copyout N  COPY TO STDOUT of N rows
type fakeBackend struct {
	mu       sync.Mutex
	sessions map[int32]*fakeSession
	next     int32
	openErr  error
	startups []engine.Startup
}

func (b *fakeBackend) Open(_ context.Context, s engine.Startup) (Session, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.startups = append(b.startups, s)
	if b.openErr != nil {
		return nil, b.openErr
	}
	if b.sessions == nil {
		b.sessions = map[int32]*fakeSession{}
	}
	b.next++
	f := &fakeSession{
		b: b, pid: b.next, tx: 'I', start: s,
		stmts: map[string]*engine.Prepared{}, portals: map[string]*fakePortal{},
		running: make(chan struct{}, 16), ended: make(chan error, 16),
	}
	b.sessions[f.pid] = f
	return f, nil
}

func (b *fakeBackend) Cancel(pid int32, secret uint32) {
	b.mu.Lock()
	f := b.sessions[pid]
	b.mu.Unlock()
	if f == nil || secret != 7777 {
		return
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.cancel != nil {
		f.cancel(pgerr.New(pgerr.QueryCanceled, "canceling statement due to user request"))
	}
}

type fakePortal struct {
	*engine.Portal
	words []string
	args  []types.Datum
	done  int // rows sent
}

type fakeSession struct {
	b       *fakeBackend
	pid     int32
	start   engine.Startup
	tx      byte
	stmts   map[string]*engine.Prepared
	portals map[string]*fakePortal
	closed  bool
	running chan struct{} // gets a value when sleep begins
	ended   chan error    // and when it has ended

	mu     sync.Mutex
	cancel context.CancelCauseFunc
}

var _ Session = (*fakeSession)(nil)

func (f *fakeSession) columns(words []string) []engine.Column {
	if len(words) == 0 {
		return nil
	}
	switch words[0] {
	case "rows":
		return []engine.Column{{Name: "n", Type: types.Of(types.Int4), TableOID: 16384, AttNum: 1}}
	case "big":
		return []engine.Column{{Name: "t", Type: types.Of(types.Text)}}
	case "echo":
		var out []engine.Column
		for _, w := range words[1:] {
			out = append(out, engine.Column{Name: w, Type: typeOf(w)})
		}
		return out
	}
	return nil
}

func typeOf(word string) types.Type {
	if word == "varchar9" {
		return types.Type{Kind: types.Varchar, Mod: 13}
	}
	for _, k := range types.Kinds() {
		if types.InfoOf(k).Name == word {
			return types.Of(k)
		}
	}
	if e, ok := strings.CutSuffix(word, "[]"); ok {
		return types.ArrayOf(typeOf(e))
	}
	return types.Type{}
}

func (f *fakeSession) exec(ctx context.Context, p *fakePortal, maxRows int, out engine.ResultSink) (string, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	f.mu.Lock()
	f.cancel = cancel
	f.mu.Unlock()
	defer func() {
		f.mu.Lock()
		f.cancel = nil
		f.mu.Unlock()
		cancel(nil)
	}()
	w := p.words
	arg := 0
	if len(w) > 1 {
		arg, _ = strconv.Atoi(w[1])
	}
	if len(w) == 0 {
		return "", out.Empty()
	}
	switch w[0] {
	case "rows", "big":
		n := 0
		for p.done < arg && (maxRows == 0 || n < maxRows) {
			step := min(arg-p.done, 1000)
			if maxRows > 0 {
				step = min(step, maxRows-n)
			}
			var b *vec.Batch
			if w[0] == "rows" {
				v := make([]int32, step)
				for i := range v {
					v[i] = int32(p.done + i + 1)
				}
				b = &vec.Batch{Cols: arrays(vec.Make(types.Of(types.Int4).Arrow(), v, nil)), N: step}
			} else {
				s := make([]types.Datum, step)
				for i := range s {
					s[i] = strings.Repeat("x", 1000)
				}
				b = &vec.Batch{Cols: arrays(vec.FromDatums(types.Of(types.Text), s)), N: step}
			}
			if err := out.Batch(ctx, b); err != nil {
				if c := context.Cause(ctx); c != nil {
					err = c
				}
				return "", err
			}
			p.done += step
			n += step
		}
		if maxRows > 0 && n == maxRows {
			return "", nil
		}
		return "SELECT " + strconv.Itoa(n), nil
	case "echo":
		b := &vec.Batch{N: 1}
		for i, c := range p.Columns {
			var d types.Datum
			if i < len(p.args) {
				d = p.args[i]
			}
			b.Cols = append(b.Cols, vec.FromDatums(c.Type, []types.Datum{d}))
		}
		return "SELECT 1", out.Batch(ctx, b)
	case "insert":
		return "INSERT 0 " + w[1], nil
	case "begin":
		f.tx = 'T'
		return "BEGIN", nil
	case "commit", "rollback":
		tag := strings.ToUpper(w[0])
		if f.tx == 'E' {
			tag = "ROLLBACK"
		}
		f.tx = 'I'
		f.portals = map[string]*fakePortal{}
		return tag, nil
	case "error":
		e := pgerr.New(pgerr.MakeCode(w[1]), "error %s", w[1]).WithPosition(3).WithHint("A hint.").WithDetail("A detail.")
		e.Schema, e.Table, e.Column, e.Constraint, e.DataType, e.Context = "s", "t", "c", "n", "d", "W"
		return "", e
	case "notice":
		e := pgerr.New(pgerr.ActiveSQLTransaction, "there is already a transaction in progress")
		e.Severity = "WARNING"
		out.Notice(e)
		return "BEGIN", nil
	case "set":
		out.ParameterStatus(w[1], w[2])
		return "SET", nil
	case "sleep":
		f.running <- struct{}{}
		<-ctx.Done()
		f.ended <- context.Cause(ctx)
		return "", context.Cause(ctx)
	case "copyin":
		r, err := out.(engine.CopySink).CopyIn(ctx, len(w) > 1, 2)
		if err != nil {
			return "", err
		}
		b, err := io.ReadAll(r)
		if err != nil {
			return "", err
		}
		if strings.Contains(string(b), "bad") {
			return "", pgerr.New(pgerr.BadCopyFileFormat, "extra data after last expected column")
		}
		return "COPY " + strconv.Itoa(strings.Count(string(b), "\n")), nil
	case "copyout":
		cw, err := out.(engine.CopySink).CopyOut(ctx, false, 1)
		if err != nil {
			return "", err
		}
		for i := range arg {
			if _, err := fmt.Fprintf(cw, "%d\n", i); err != nil {
				return "", err
			}
		}
		return "COPY " + w[1], cw.Close()
	case "panic":
		panic("told to")
	}
	return "", pgerr.New(pgerr.SyntaxError, "syntax error at or near \"%s\"", w[0]).WithPosition(1)
}

// guard is what every statement meets first.
func (f *fakeSession) guard(words []string) error {
	if f.tx == 'E' && (len(words) == 0 || words[0] != "commit" && words[0] != "rollback") {
		return pgerr.New(pgerr.InFailedSQLTransaction, "current transaction is aborted, commands ignored until end of transaction block")
	}
	return nil
}

func (f *fakeSession) Query(ctx context.Context, sql string, out engine.ResultSink) error {
	if strings.TrimSpace(sql) == "" {
		return out.Empty()
	}
	for _, s := range strings.Split(sql, ";") {
		w := strings.Fields(s)
		if len(w) == 0 {
			continue
		}
		if err := f.guard(w); err != nil {
			return err
		}
		cols := f.columns(w)
		if cols != nil {
			if err := out.Columns(cols); err != nil {
				return err
			}
		}
		p := &fakePortal{Portal: &engine.Portal{Columns: cols}, words: w}
		tag, err := f.exec(ctx, p, 0, out)
		if err != nil {
			f.Fail()
			return err
		}
		if err := out.Complete(tag); err != nil {
			return err
		}
	}
	return nil
}

func (f *fakeSession) Prepare(_ context.Context, name, sql string, params []types.Type) (*engine.Prepared, error) {
	if strings.Contains(sql, ";") {
		return nil, pgerr.New(pgerr.SyntaxError, "cannot insert multiple commands into a prepared statement")
	}
	w := strings.Fields(sql)
	if err := f.guard(w); err != nil {
		return nil, err
	}
	if name != "" && f.stmts[name] != nil {
		return nil, pgerr.New(pgerr.DuplicatePreparedStatement, "prepared statement \"%s\" already exists", name)
	}
	p := &engine.Prepared{Name: name, SQL: sql, Columns: f.columns(w)}
	if len(w) > 0 && w[0] == "echo" {
		for i, word := range w[1:] {
			t := typeOf(word)
			if i < len(params) && params[i].Kind != types.Unknown {
				t = params[i]
			}
			p.Params = append(p.Params, t)
		}
	}
	f.stmts[name] = p
	return p, nil
}

func (f *fakeSession) Statement(name string) (*engine.Prepared, error) {
	if p := f.stmts[name]; p != nil {
		return p, nil
	}
	if name == "" {
		return nil, pgerr.New(pgerr.InvalidSQLStatementName, "unnamed prepared statement does not exist")
	}
	return nil, pgerr.New(pgerr.InvalidSQLStatementName, "prepared statement \"%s\" does not exist", name)
}

func (f *fakeSession) Bind(_ context.Context, portal string, p *engine.Prepared, args []types.Datum, formats []int16) (*engine.Portal, error) {
	w := strings.Fields(p.SQL)
	if err := f.guard(w); err != nil {
		return nil, err
	}
	if portal != "" && f.portals[portal] != nil {
		return nil, pgerr.New(pgerr.DuplicateCursor, "cursor \"%s\" already exists", portal)
	}
	q := &engine.Portal{Name: portal, Prepared: p, Columns: p.Columns, Formats: formats}
	f.portals[portal] = &fakePortal{Portal: q, words: w, args: args}
	return q, nil
}

func (f *fakeSession) Portal(name string) (*engine.Portal, error) {
	if p := f.portals[name]; p != nil {
		return p.Portal, nil
	}
	return nil, pgerr.New(pgerr.InvalidCursorName, "portal \"%s\" does not exist", name)
}

func (f *fakeSession) Run(ctx context.Context, p *engine.Portal, maxRows int, out engine.ResultSink) (string, error) {
	return f.exec(ctx, f.portals[p.Name], maxRows, out)
}

func (f *fakeSession) CloseStatement(name string) { delete(f.stmts, name) }
func (f *fakeSession) ClosePortal(name string)    { delete(f.portals, name) }

func (f *fakeSession) Sync(context.Context, bool, engine.ResultSink) error {
	if f.tx == 'I' {
		f.portals = map[string]*fakePortal{}
	}
	return nil
}

func (f *fakeSession) Fail() {
	if f.tx == 'T' {
		f.tx = 'E'
	}
}

func (f *fakeSession) TxStatus() byte { return f.tx }
func (f *fakeSession) ParameterStatuses() [][2]string {
	return [][2]string{{"TimeZone", "UTC"}, {"server_version", "15.0"}}
}
func (f *fakeSession) Key() (int32, uint32) { return f.pid, 7777 }
func (f *fakeSession) TextSettings() engine.TextSettings {
	return engine.TextSettings{TimeZone: "UTC", DateStyle: "ISO, MDY", IntervalStyle: "postgres", ByteaOutput: "hex", ExtraFloatDigits: 1}
}
func (f *fakeSession) Close() { f.closed = true }
