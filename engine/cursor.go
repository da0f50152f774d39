package engine

import (
	"context"
	"fmt"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

// cursor finds a portal by the name that FETCH and CLOSE use: DECLAREd cursors
// and the protocol's portals are one name space.
func (s *Session) cursor(name string) (*Portal, error) {
	if p := s.portals[name]; p != nil {
		return p, nil
	}
	return nil, pgerr.New(pgerr.InvalidCursorName, "cursor %q does not exist", name)
}

// runDeclare is DECLARE CURSOR: a portal that FETCH moves forward.
func (s *Session) runDeclare(ctx context.Context, p *prepared, st *ast.DeclareCursor) error {
	name := st.Name.Name
	if st.Hold {
		return pgerr.New(pgerr.FeatureNotSupported, "DECLARE CURSOR WITH HOLD is not supported yet")
	}
	if st.Scroll {
		return pgerr.New(pgerr.FeatureNotSupported, "DECLARE SCROLL CURSOR is not supported yet")
	}
	if s.tx.status != txBlock && !s.tx.multi {
		return s.inBlock("DECLARE CURSOR")
	}
	if s.portals[name] != nil {
		return pgerr.New(pgerr.DuplicateCursor, "cursor %q already exists", name)
	}
	impl := &prepared{stmt: st.Query, text: p.text, fixed: p.fixed}
	pl, err := s.plan(ctx, impl, nil)
	if err != nil {
		return err
	}
	impl.plan = pl
	pr := &Prepared{SQL: st.Range().Text, Params: pl.params, Columns: pl.cols, impl: impl}
	var formats []int16
	if st.Binary {
		formats = make([]int16, len(pl.cols))
		for i := range formats {
			formats[i] = 1
		}
	}
	c := s.open(name, pr, impl, nil, formats).impl.(*portal)
	c.cursor = true
	return nil
}

// runFetch is FETCH and MOVE.
func (s *Session) runFetch(ctx context.Context, st *ast.Fetch) (*running, error) {
	c, err := s.cursor(st.Cursor.Name)
	if err != nil {
		return nil, err
	}
	word := "FETCH"
	if st.Move {
		word = "MOVE"
	}
	tag := func(n int64) string { return fmt.Sprintf("%s %d", word, n) }
	if st.Direction != ast.FetchForward || st.Count < 0 {
		return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "cursor can only scan forward").
			WithHint("Declare it with SCROLL option to enable backward scan.")
	}
	if st.Count == 0 && !st.All {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "%s 0 is not supported yet", word)
	}
	p := c.impl.(*portal)
	if p.dead {
		return nil, pgerr.New(pgerr.ObjectNotInPrerequisiteState, "portal %q cannot be run", c.Name)
	}
	limit := int(min(st.Count, maxInt))
	if st.All {
		limit = 0
	}
	if st.Move {
		n, _, err := s.advance(ctx, c, limit, nil)
		return &running{tag: func(int64) string { return tag(n) }}, err
	}
	return &running{cols: c.Columns, src: &fetched{s: s, c: c, left: limit, all: st.All}, tag: tag}, nil
}

// fetched is a rowSource that takes rows from a portal.
type fetched struct {
	s     *Session
	c     *Portal
	left  int
	all   bool
	over  bool
	ready []*vec.Batch
}

func (f *fetched) Next(ctx context.Context) (*vec.Batch, error) {
	for len(f.ready) == 0 {
		if f.over || !f.all && f.left == 0 {
			return nil, nil
		}
		limit := 2048
		if !f.all {
			limit = min(limit, f.left)
		}
		var got batchSink
		n, more, err := f.s.advance(ctx, f.c, limit, &got)
		if err != nil {
			return nil, err
		}
		f.over = !more
		f.left -= int(n)
		f.ready = got.list
	}
	b := f.ready[0]
	f.ready = f.ready[1:]
	return b, nil
}

func (f *fetched) Close() error { return nil }

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
