package engine

import (
	"context"
	"time"

	"github.com/paimon-sql/paimon-sql/exec/vectorized"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// portal is the engine's half of a Portal. It owns what it runs: a context that
// ends with it, and so the workers, memory and files behind its rows.
type portal struct {
	prep  *prepared // with the plan that Bind chose
	args  []types.Datum
	run   *running // nil before the first Run
	depth int      // savepoints that were open when it was made
	done  bool     // every row has been sent, or a utility statement has run
	dead  bool     // its transaction failed
	hold  bool     // a cursor WITH HOLD; then kept says that its transaction is over
	kept  bool
	at    time.Time
	// cursor: made by DECLARE. scroll says whether it may move backward, binary that
	// FETCH answers in binary.
	cursor, binary bool
	scroll         scrollMode
	// row is the number of the row it stands on, 0 before the first; end: it stands
	// behind row, which is the last.
	row  int64
	end  bool
	tape *vectorized.Tape // rows that were read; nil: they pass through
	// state is what a lookup reads; nil: the plan is executed.
	state *pointState
	one   *onePoint

	life   context.Context // nil before the first Run
	cancel context.CancelCauseFunc
}

// abandon stops the portal and frees what it holds; it cannot run any more.
func (p *portal) abandon() {
	p.dead = true
	if p.cancel != nil {
		p.cancel(context.Canceled)
	}
	p.run.close()
	p.tape.Close()
}

// Bind makes a portal of a prepared statement. The plan is checked against the
// tables as they are now, and made again when they have changed.
func (s *Session) Bind(ctx context.Context, name string, p *Prepared, args []types.Datum, formats []int16) (_ *Portal, err error) {
	ctx, done := s.work(ctx, p.SQL)
	defer done()
	defer func() {
		s.finish(ctx, recover(), &err, p.SQL, time.Time{})
		if err != nil {
			s.failed(err)
		}
	}()
	impl := p.impl.(*prepared)
	if impl.stmt != nil {
		if err := s.admit(impl.stmt); err != nil {
			return nil, err
		}
	}
	if name != "" && s.portals[name] != nil {
		return nil, pgerr.New(pgerr.DuplicateCursor, "cursor %q already exists", name)
	}
	if len(args) != len(p.Params) {
		return nil, pgerr.New(pgerr.ProtocolViolation, "bind message supplies %d parameters, but prepared statement %q requires %d", len(args), p.Name, len(p.Params))
	}
	s.enter()
	if impl.plan != nil && isQuery(impl.stmt) {
		if st := s.pointState(ctx, impl.plan); st != nil {
			pt := s.open(name, p, impl, args, formats)
			q := pt.impl.(*portal)
			q.state, q.one = st, &onePoint{}
			s.brief()
			return pt, nil
		}
	}
	fresh, err := s.refresh(ctx, impl, p)
	if err != nil {
		return nil, err
	}
	return s.open(name, p, fresh, args, formats), nil
}

// open makes a portal under a name, replacing the unnamed one.
func (s *Session) open(name string, p *Prepared, impl *prepared, args []types.Datum, formats []int16) *Portal {
	s.ClosePortal(name)
	q := &portal{prep: impl, args: args, depth: len(s.tx.saves), at: time.Now()}
	out := &Portal{Name: name, Prepared: p, Columns: p.Columns, Formats: formats, impl: q}
	s.portals[name] = out
	return out
}

// Portal finds a portal.
func (s *Session) Portal(name string) (*Portal, error) {
	if p := s.portals[name]; p != nil {
		return p, nil
	}
	return nil, pgerr.New(pgerr.InvalidCursorName, "portal %q does not exist", name)
}

// ClosePortal forgets a portal and frees what it holds; unknown names are fine.
func (s *Session) ClosePortal(name string) {
	if p := s.portals[name]; p != nil {
		p.impl.(*portal).abandon()
		delete(s.portals, name)
	}
}

// Run continues a portal for up to maxRows rows (0 = all).
func (s *Session) Run(ctx context.Context, pt *Portal, maxRows int, out ResultSink) (tag string, err error) {
	ctx, done := s.work(ctx, pt.Prepared.SQL)
	defer done()
	began := time.Now()
	p := pt.impl.(*portal)
	var rows int64
	defer func() {
		q := recover()
		s.finish(ctx, q, &err, pt.Prepared.SQL, began)
		s.ended(ctx, p.prep.stmt, pt.Prepared.SQL, time.Since(began), max(rows, tagRows(tag)), err)
		if err != nil {
			tag = ""
			p.abandon()
			s.failed(err)
		}
	}()
	if p.prep.stmt == nil {
		return "", out.Empty()
	}
	if p.run == nil {
		s.began(ctx, p.prep.stmt, pt.Prepared.SQL)
	}
	if err := s.admit(p.prep.stmt); err != nil {
		return "", err
	}
	if p.dead {
		return "", pgerr.New(pgerr.ObjectNotInPrerequisiteState, "portal %q cannot be run", pt.Name)
	}
	s.enter()
	if maxRows < 0 {
		maxRows = 0
	}
	s.executing = pt
	defer func() { s.executing = nil }()
	n := int64(maxRows)
	if n == 0 {
		n = fetchAll
	}
	suspended := false
	if p.cursor {
		rows, err = s.forward(ctx, pt, n, out)
		suspended = rows == n
	} else {
		rows, suspended, err = s.advance(ctx, pt, maxRows, out)
	}
	s.eng.stats.rows.Add(rows)
	if err != nil || suspended {
		return "", err
	}
	return p.run.tag(rows), nil
}

// advance sends rows of a portal. A utility statement runs whole the first time.
func (s *Session) advance(ctx context.Context, pt *Portal, maxRows int, out ResultSink) (rows int64, suspended bool, err error) {
	p := pt.impl.(*portal)
	if p.done {
		if p.run.utility && p.run.cols == nil {
			return 0, false, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "portal %q cannot be run", pt.Name)
		}
		return 0, false, nil
	}
	if p.run == nil && p.state != nil {
		if p.run, err = s.executePoint(ctx, p); err != nil {
			return 0, false, err
		}
		if p.run != nil {
			s.brief()
		}
	}
	if p.run == nil && p.life == nil {
		p.life, p.cancel = context.WithCancelCause(s.ctx)
	}
	if p.life != nil {
		// A cancelled call cancels the portal: what a worker waits for must end.
		stop := context.AfterFunc(ctx, func() { p.cancel(context.Cause(ctx)) })
		defer stop()
	}
	if p.run == nil {
		r, err := s.start(ctx, p.life, p.prep, p.args, out)
		if err != nil {
			return 0, false, err
		}
		p.run = r
	}
	rows, suspended, err = p.run.send(ctx, maxRows, out)
	s.passLaters(out)
	p.row += rows
	p.end = err == nil && !suspended
	if err != nil || suspended {
		return rows, suspended, err
	}
	p.done = true
	p.run.close()
	return rows, false, nil
}
