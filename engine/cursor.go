package engine

import (
	"context"
	"fmt"
	"math"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// fetchAll is the count of FETCH ALL.
const fetchAll = math.MaxInt64

// scrollMode says how a cursor may move.
type scrollMode uint8

const (
	scrollNever  scrollMode = iota // NO SCROLL, and every portal of the protocol
	scrollSmall                    // neither was said: as long as its rows are few
	scrollAlways                   // SCROLL
)

// smallTape is how many bytes of rows a cursor keeps that was declared without
// SCROLL. PostgreSQL lets some of those move backward, as the plan has it, and warns
// to rely on that; beyond this size they only move forward here.
const smallTape = 1 << 20

// cursor finds a portal by the name that FETCH and CLOSE use: DECLAREd cursors
// and the protocol's portals are one name space.
func (s *Session) cursor(name string) (*Portal, error) {
	if p := s.portals[name]; p != nil {
		return p, nil
	}
	return nil, pgerr.New(pgerr.InvalidCursorName, "cursor %q does not exist", name)
}

// checkDeclare refuses options that contradict each other.
func checkDeclare(st *ast.DeclareCursor) error {
	switch {
	case st.Scroll && st.NoScroll:
		return pgerr.New(pgerr.InvalidCursorDefinition, "cannot specify both %s and %s", "SCROLL", "NO SCROLL")
	case st.Asensitive && st.Insensitive:
		return pgerr.New(pgerr.InvalidCursorDefinition, "cannot specify both %s and %s", "ASENSITIVE", "INSENSITIVE")
	}
	return nil
}

// checkLocking refuses what a query with FOR UPDATE cannot be declared as.
func checkLocking(st *ast.DeclareCursor, pl *planned) error {
	if !pl.locks {
		return nil
	}
	const how = "%s ... FOR UPDATE/SHARE is not %s"
	switch {
	case st.Hold:
		return pgerr.New(pgerr.FeatureNotSupported, how, "DECLARE CURSOR WITH HOLD", "supported").WithDetail("Holdable cursors must be READ ONLY.")
	case st.Scroll:
		return pgerr.New(pgerr.FeatureNotSupported, how, "DECLARE SCROLL CURSOR", "supported").WithDetail("Scrollable cursors must be READ ONLY.")
	case st.Insensitive:
		return pgerr.New(pgerr.InvalidCursorDefinition, how, "DECLARE INSENSITIVE CURSOR", "valid").WithDetail("Insensitive cursors must be READ ONLY.")
	}
	return nil
}

// runDeclare is DECLARE CURSOR: a portal that FETCH moves. Its query starts here,
// so that it shows what there is now whatever the transaction writes later.
func (s *Session) runDeclare(ctx context.Context, p *prepared, st *ast.DeclareCursor, args []types.Datum, out ResultSink) error {
	name := st.Name.Name
	if err := checkDeclare(st); err != nil {
		return err
	}
	pl := p.plan
	impl := &prepared{stmt: st.Query, text: p.text, fixed: p.fixed, declared: p.declared}
	if pl == nil {
		var err error
		if pl, err = s.plan(ctx, impl, nil); err != nil {
			return err
		}
	}
	impl.plan = pl
	if err := checkLocking(st, pl); err != nil {
		return err
	}
	if s.tx.status != txBlock && !s.tx.multi && !st.Hold {
		return s.inBlock("DECLARE CURSOR")
	}
	if s.portals[name] != nil {
		return pgerr.New(pgerr.DuplicateCursor, "cursor %q already exists", name)
	}
	pr := &Prepared{SQL: p.text, Params: pl.params, Columns: pl.cols, impl: impl}
	var formats []int16
	if st.Binary {
		formats = make([]int16, len(pl.cols))
		for i := range formats {
			formats[i] = 1
		}
	}
	pt := s.open(name, pr, impl, args, formats)
	c := pt.impl.(*portal)
	c.cursor, c.binary, c.hold = true, st.Binary, st.Hold
	switch {
	case st.NoScroll || pl.locks:
	case st.Scroll || st.Hold: // what is held is kept whole, anyway
		c.scroll = scrollAlways
	default:
		c.scroll = scrollSmall
	}
	if c.scroll != scrollNever {
		c.tape = s.newTape(0)
	}
	if pl.locks { // at the first FETCH
		return nil
	}
	if err := s.begin(ctx, pt, out); err != nil {
		s.ClosePortal(name)
		return err
	}
	return nil
}

// begin starts a portal's statement unless it has been started.
func (s *Session) begin(ctx context.Context, pt *Portal, out ResultSink) (err error) {
	p := pt.impl.(*portal)
	if p.run != nil {
		return nil
	}
	if p.life == nil {
		p.life, p.cancel = context.WithCancelCause(s.ctx)
	}
	p.run, err = s.start(ctx, p.life, p.prep, p.args, out)
	return err
}

// keepCursors reads the cursors WITH HOLD to their ends before the commit.
func (s *Session) keepCursors(ctx context.Context) error {
	for _, pt := range s.portals {
		c := pt.impl.(*portal)
		if !c.hold || c.kept || c.dead {
			continue
		}
		if c.tape == nil {
			c.tape = s.newTape(c.row)
		}
		if err := s.begin(ctx, pt, nil); err != nil {
			return err
		}
		stop := c.interruptible(ctx)
		_, err := fill(ctx, c.tape, c.run, -1)
		stop()
		if err != nil {
			return err
		}
		c.run.close()
		c.done = true
		c.cancel(context.Canceled)
	}
	return nil
}

// interruptible cancels the portal when the call is cancelled: what a worker waits for
// must end. The function it returns ends that.
func (p *portal) interruptible(ctx context.Context) func() bool {
	return context.AfterFunc(ctx, func() { p.cancel(context.Cause(ctx)) })
}

// forward passes the next n rows of a portal on (out nil: to nobody).
func (s *Session) forward(ctx context.Context, pt *Portal, n int64, out ResultSink) (rows int64, err error) {
	p := pt.impl.(*portal)
	if p.end || n <= 0 {
		return 0, nil
	}
	if p.tape == nil {
		if n > maxInt {
			n = 0
		}
		rows, _, err = s.advance(ctx, pt, int(n), out)
		return rows, err
	}
	if !p.kept {
		if err := s.begin(ctx, pt, out); err != nil {
			return 0, err
		}
		defer p.interruptible(ctx)()
	}
	for rows < n {
		if p.row >= p.tape.Rows() {
			more, err := fill(ctx, p.tape, p.run, p.row+1)
			if err != nil {
				return rows, err
			}
			if !more {
				p.end = true
				break
			}
			if p.scroll == scrollSmall && p.tape.Held() > smallTape {
				p.scroll = scrollNever
			}
		}
		b, err := p.tape.Read(p.row+1, int(min(n-rows, vec.MaxRows)))
		if err != nil {
			return rows, err
		}
		if out != nil {
			if err := out.Batch(ctx, b); err != nil {
				return rows, err
			}
		}
		p.row += int64(b.Size())
		rows += int64(b.Size())
		if p.scroll == scrollNever {
			p.tape.Trim(p.row)
		}
	}
	return rows, nil
}

// backward passes n rows before the one the cursor stands on, the nearest first.
func (s *Session) backward(ctx context.Context, pt *Portal, n int64, out ResultSink) (rows int64, err error) {
	p := pt.impl.(*portal)
	if p.scroll == scrollNever {
		return 0, errForwardOnly()
	}
	if n <= 0 || p.row == 0 {
		return 0, nil
	}
	at := p.row
	if p.end {
		at++
	}
	for rows < n && at > 1 {
		b, err := p.tape.Back(at-1, int(min(n-rows, vec.MaxRows)))
		if err != nil {
			return rows, err
		}
		if out != nil {
			if err := out.Batch(ctx, b); err != nil {
				return rows, err
			}
		}
		at -= int64(b.Size())
		rows += int64(b.Size())
	}
	if rows < n {
		at = 0
	}
	p.row, p.end = at, false
	return rows, nil
}

// rewind puts a cursor before its first row.
func (p *portal) rewind() error {
	if p.row == 0 && !p.end {
		return nil
	}
	if p.scroll == scrollNever {
		return errForwardOnly()
	}
	p.row, p.end = 0, false
	return nil
}

func errForwardOnly() error {
	return pgerr.New(pgerr.ObjectNotInPrerequisiteState, "cursor can only scan forward").
		WithHint("Declare it with SCROLL option to enable backward scan.")
}

// step is the last of the moves that a FETCH is made of: its rows are the answer.
type step struct {
	back  bool
	count int64
	// rows, when not negative, is the answer of MOVE: the cursor has moved already.
	rows int64
}

// position makes all moves of a FETCH but the last, which it returns. The rules, and
// the errors of cursors that only move forward, are those of PostgreSQL's
// DoPortalRunFetch.
func (s *Session) position(ctx context.Context, pt *Portal, st *ast.Fetch) (step, error) {
	p := pt.impl.(*portal)
	count := st.Count
	if st.All {
		count = fetchAll
	}
	back := false
	skip := func(back bool, n int64) error {
		var err error
		if back {
			_, err = s.backward(ctx, pt, n, nil)
		} else {
			_, err = s.forward(ctx, pt, n, nil)
		}
		return err
	}
	switch st.Direction {
	case ast.FetchForward, ast.FetchBackward:
		back = (st.Direction == ast.FetchBackward) != (count < 0)
		if count < 0 {
			count = -count
		}
	case ast.FetchAbsolute:
		switch {
		case count > 0 && count-1 <= p.row/2:
			if err := p.rewind(); err != nil {
				return step{}, err
			}
			return step{count: 1, rows: -1}, skip(false, count-1)
		case count > 0:
			at := p.row
			if p.end {
				at++
			}
			var err error
			if count <= at {
				err = skip(true, at-count+1)
			} else {
				err = skip(false, count-at-1)
			}
			return step{count: 1, rows: -1}, err
		case count < 0:
			if err := skip(false, fetchAll); err != nil {
				return step{}, err
			}
			if count < -1 {
				if err := skip(true, -count-1); err != nil {
					return step{}, err
				}
			}
			return step{back: true, count: 1, rows: -1}, nil
		}
		return step{}, p.rewind()
	case ast.FetchRelative:
		if count > 0 {
			return step{count: 1, rows: -1}, skip(false, count-1)
		}
		if count < 0 {
			var err error
			if count < -1 {
				err = skip(true, -count-1)
			}
			return step{back: true, count: 1, rows: -1}, err
		}
	}
	if count == 0 {
		onRow := p.row > 0 && !p.end
		if st.Move {
			if onRow {
				return step{rows: 1}, nil
			}
			return step{}, nil
		}
		if onRow { // the row once more
			return step{count: 1, rows: -1}, skip(true, 1)
		}
		if back {
			return step{}, skip(true, 0) // for its error
		}
	}
	if back && st.Move && count == fetchAll {
		n := p.row
		if n > 0 && !p.end {
			n--
		}
		return step{rows: n}, p.rewind()
	}
	return step{back: back, count: count, rows: -1}, nil
}

// runFetch is FETCH and MOVE.
func (s *Session) runFetch(ctx context.Context, st *ast.Fetch) (_ *running, err error) {
	c, err := s.cursor(st.Cursor.Name)
	if err != nil {
		return nil, err
	}
	p := c.impl.(*portal)
	if p.dead || c == s.executing || c.Columns == nil {
		return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "portal %q cannot be run", c.Name)
	}
	defer func() {
		if err != nil {
			p.abandon()
		}
	}()
	last, err := s.position(ctx, c, st)
	if err != nil {
		return nil, err
	}
	src := &fetched{s: s, c: c, back: last.back, left: last.count}
	if st.Move {
		n := last.rows
		if n < 0 {
			if n, err = src.move(ctx, last.count, nil); err != nil {
				return nil, err
			}
		}
		return &running{tag: fixedTag(fmt.Sprintf("MOVE %d", n))}, nil
	}
	r := &running{cols: c.Columns, src: src, tag: func(n int64) string { return fmt.Sprintf("FETCH %d", n) }}
	if p.binary {
		r.formats = c.Formats
	}
	return r, nil
}

// fetched is a rowSource that takes rows from a portal.
type fetched struct {
	s     *Session
	c     *Portal
	back  bool
	left  int64
	over  bool
	ready []*vec.Batch
}

func (f *fetched) move(ctx context.Context, n int64, out ResultSink) (int64, error) {
	if f.back {
		return f.s.backward(ctx, f.c, n, out)
	}
	return f.s.forward(ctx, f.c, n, out)
}

func (f *fetched) Next(ctx context.Context) (*vec.Batch, error) {
	for len(f.ready) == 0 {
		if f.over || f.left == 0 {
			return nil, nil
		}
		n := min(2048, f.left)
		var got batchSink
		rows, err := f.move(ctx, n, &got)
		if err != nil {
			f.c.impl.(*portal).abandon()
			return nil, err
		}
		f.over = rows < n
		f.left -= rows
		f.ready = got.list
	}
	b := f.ready[0]
	f.ready = f.ready[1:]
	return b, nil
}

func (f *fetched) Close() error { return nil }

// announce tells a sink of the columns of a statement.
func announce(out ResultSink, r *running) error {
	if f, ok := out.(FormatSink); ok && r.formats != nil {
		return f.ColumnsIn(r.cols, r.formats)
	}
	return out.Columns(r.cols)
}

// batchSink keeps batches.
type batchSink struct {
	discard
	list []*vec.Batch
}

func (b *batchSink) Batch(_ context.Context, x *vec.Batch) error {
	b.list = append(b.list, x)
	return nil
}

// discard is a ResultSink that drops everything.
type discard struct{}

func (discard) Columns([]Column) error                  { return nil }
func (discard) Batch(context.Context, *vec.Batch) error { return nil }
func (discard) Complete(string) error                   { return nil }
func (discard) Empty() error                            { return nil }
func (discard) Notice(*pgerr.Error)                     {}
func (discard) ParameterStatus(string, string)          {}
