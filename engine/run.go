package engine

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime/debug"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// rowSource yields the rows of a statement. Next returns nil at the end.
type rowSource interface {
	Next(ctx context.Context) (*vec.Batch, error)
	Close() error
}

// running is a started statement: rows still to come, if any, and its tag.
type running struct {
	cols []Column
	// formats are those of a binary cursor's rows in a simple query; nil = text.
	formats []int16
	src     rowSource // nil: no rows
	cur     *vec.Batch
	off     int // live rows of cur already sent
	tag     func(rows int64) string
	onStop  func()
	retag   func(*outcome) func(int64) string // of a data-changing statement
	// before is called before rows are passed on; nil = nothing.
	before func(ResultSink)
	// utility statements cannot be continued or run again.
	utility bool
}

// fixedTag is the tag of a statement without rows.
func fixedTag(s string) func(int64) string { return func(int64) string { return s } }

func selectTag(n int64) string { return fmt.Sprintf("SELECT %d", n) }

// changed puts a new run's outcome in place of the one that has not been sent.
func (r *running) changed(o *outcome) {
	if r.src != nil {
		r.src = &batches{list: o.rows}
	}
	if r.retag != nil {
		r.tag = r.retag(o)
	}
}

func (r *running) close() {
	if r == nil {
		return
	}
	if r.src != nil {
		_ = r.src.Close() // a reader: what it read is what counts
		r.src = nil
	}
	if r.onStop != nil {
		r.onStop()
		r.onStop = nil
	}
	r.cur = nil
}

// send passes up to limit rows on (0 = all). more is true when limit rows were
// sent, even if none is left: PostgreSQL suspends then, too.
func (r *running) send(ctx context.Context, limit int, out ResultSink) (rows int64, more bool, err error) {
	for r.src != nil {
		if r.cur == nil {
			if limit > 0 && rows == int64(limit) {
				return rows, true, nil
			}
			b, err := r.src.Next(ctx)
			if err != nil {
				return rows, false, err
			}
			if b == nil {
				return rows, false, nil
			}
			if b.Size() == 0 {
				continue
			}
			r.cur, r.off = b, 0
		}
		b := r.cur
		n := b.Size() - r.off
		if limit > 0 && int64(n) > int64(limit)-rows {
			n = int(int64(limit) - rows)
		}
		if n == 0 {
			return rows, true, nil
		}
		if r.before != nil {
			r.before(out)
		}
		if out != nil {
			if err := out.Batch(ctx, vec.Part(b, r.off, n)); err != nil {
				return rows, false, err
			}
		}
		rows += int64(n)
		if r.off += n; r.off == b.Size() {
			r.cur = nil
		}
	}
	return rows, false, nil
}

// start makes a statement run. ctx is that of the call, life the one in which
// its rows are made: a suspended portal outlives the call. out takes notices.
func (s *Session) start(ctx, life context.Context, p *prepared, args []types.Datum, out ResultSink) (*running, error) {
	if p.stmt == nil {
		return &running{tag: fixedTag("")}, nil
	}
	s.out = out
	switch st := p.stmt.(type) {
	case *ast.Query:
		pl := p.plan
		if pl == nil {
			var err error
			if pl, err = s.plan(ctx, p, nil); err != nil {
				return nil, err
			}
		}
		if err := s.permit(ctx, pl); err != nil {
			return nil, err
		}
		if pl.locks {
			return s.lockRows(ctx, p, pl, args)
		}
		return s.execute(life, pl, args, selectTag)
	case *ast.Insert, *ast.Update, *ast.Delete, *ast.Merge:
		return s.runModify(ctx, p, args)
	case *ast.Transaction:
		tag, err := s.transact(ctx, st, out)
		return &running{tag: fixedTag(tag), utility: true}, err
	}
	r, err := s.utility(ctx, life, p, args, out)
	if err != nil {
		return nil, err
	}
	r.utility = true
	return r, nil
}

// execute starts a plan on the executor.
func (s *Session) execute(life context.Context, pl *planned, args []types.Datum, tag func(int64) string) (*running, error) {
	s.tx.queried, s.tx.redo = true, nil // its client sees what was written
	if pl.locks {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "locking rows is not supported in this statement")
	}
	q, stop, err := s.startQuery(life, pl, args)
	if err != nil {
		return nil, err
	}
	return &running{cols: pl.cols, src: q, tag: tag, onStop: stop, before: s.passLaters}, nil
}

// rowsOf makes a running statement of rows that are there already.
func rowsOf(cols []Column, tag func(int64) string, rows [][]types.Datum) *running {
	schema := make(types.Schema, len(cols))
	for i, c := range cols {
		schema[i] = types.Field{ID: -1, Name: c.Name, Type: c.Type}
	}
	const step = 2048
	src := &batches{}
	for from := 0; from < len(rows); from += step {
		part := rows[from:min(from+step, len(rows))]
		b := &vec.Batch{Schema: schema, N: len(part)}
		for i := range cols {
			col := make([]types.Datum, len(part))
			for j := range part {
				col[j] = part[j][i]
			}
			b.Cols = append(b.Cols, vec.FromDatums(cols[i].Type, col))
		}
		src.list = append(src.list, b)
	}
	return &running{cols: cols, src: src, tag: tag}
}

// batches is a rowSource of batches in memory.
type batches struct{ list []*vec.Batch }

func (b *batches) Next(context.Context) (*vec.Batch, error) {
	if len(b.list) == 0 {
		return nil, nil
	}
	x := b.list[0]
	b.list = b.list[1:]
	return x, nil
}

func (b *batches) Close() error { b.list = nil; return nil }

// textCols makes columns of type text.
func textCols(names ...string) []Column {
	out := make([]Column, len(names))
	for i, n := range names {
		out[i] = Column{Name: n, Type: types.Of(types.Text)}
	}
	return out
}

// finish is deferred around everything that runs for a client: it recovers
// panics, turns errors into *pgerr.Error, counts and logs. began zero: not a
// statement of its own. p is what recover returned: it must be called by the
// deferred function itself.
func (s *Session) finish(ctx context.Context, p any, err *error, sql string, began time.Time) {
	if p != nil {
		*err = s.eng.panicked(p, debug.Stack())
	}
	if !began.IsZero() {
		d := time.Since(began)
		s.eng.stats.statements.Add(1)
		s.eng.stats.duration.Observe(d.Seconds())
	}
	if *err == nil {
		return
	}
	pe := s.eng.toPG(ctx, *err, sql)
	if sql != "" && s.eng.log.Enabled(ctx, slog.LevelDebug) {
		// Without the message: it may quote values.
		s.eng.log.LogAttrs(ctx, slog.LevelDebug, "statement failed", append(s.logAttrs(), slog.String("code", pe.Code.String()), slog.String("stmt", s.fingerprint(sql).text))...)
	}
	s.eng.stats.errors.With(pe.Code.String()[:2]).Add(1)
	*err = pe
}

// panicked makes an error of a panic: a bug. The stack goes to the log.
func (e *Engine) panicked(p any, stack []byte) error {
	e.stats.panics.Add(1)
	err, ok := p.(error)
	if !ok {
		err = fmt.Errorf("%v", p)
	}
	return &panicError{err: err, stack: stack}
}

// panicError carries a recovered panic to the log.
type panicError struct {
	err   error
	stack []byte
}

func (e *panicError) Error() string { return "panic: " + e.err.Error() }
func (e *panicError) Unwrap() error { return e.err }

// stackOf returns the stack of a panic in err's chain.
func stackOf(err error) string {
	var p *panicError
	if errors.As(err, &p) {
		return string(p.stack)
	}
	var s interface{ Stack() []byte }
	if errors.As(err, &s) {
		return string(s.Stack())
	}
	return ""
}

// stack is the stack of the goroutine, for a recovered panic.
func stack() []byte { return debug.Stack() }
