package engine

import (
	"context"
	"errors"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// A query that looks one key up and shows columns of the row is run without the
// executor, in the call that asks for it, and its plan lives on when the table gets
// a new snapshot:
//
//	Bind   the table's state: unchanged since the last time (catalog.Watch), or
//	       resolved anew; another definition of the table makes a new plan
//	Run    parameters -> key -> Table.Get -> the batch
//
// Everything that is not as simple takes the way of all statements.

// point is such a query. Immutable but for state; shared by sessions as its plan is.
type point struct {
	n      *plan.Lookup
	cols   []int // of the table, one per column of the result
	schema types.Schema
	key    []pointKey
	dep    dep

	state atomic.Pointer[pointState]
}

// pointKey is where the value of a column of the key comes from.
type pointKey struct {
	param int // -1: value
	value types.Datum
	fit   func(types.Datum) (types.Datum, plan.KeyFit)
}

// pointState is the newest state of the table that is known.
type pointState struct {
	rel   catalog.KeyedRelation
	watch *catalog.Watch // nil: it must be resolved each time
}

// newPoint returns nil when the plan is more than one lookup.
func newPoint(pl *planned) *point {
	f := pl.frag
	if f == nil || pl.locks || pl.once || pl.owner != nil || len(f.InitPlans) > 0 || len(f.CTEs) > 0 || len(pl.deps) != 1 {
		return nil
	}
	if o := pl.deps[0].opts; o.At != (snapshot.Ref{}) || len(o.Dynamic) > 0 || o.Overlay != nil {
		return nil
	}
	p := &point{dep: pl.deps[0], schema: f.Root.Schema()}
	slots := make([]int, len(p.schema))
	for i := range slots {
		slots[i] = i
	}
	n := f.Root
	for p.n == nil {
		switch x := n.(type) {
		case *plan.Project:
			for i, s := range slots {
				c, ok := x.Exprs[s].(*plan.Slot)
				if !ok {
					return nil
				}
				slots[i] = c.Index
			}
			n = x.Input
		case *plan.Lookup:
			p.n = x
		default:
			return nil
		}
	}
	if p.n.Filter != nil || len(p.n.Sets) != 1 || p.n.Rel != p.dep.rel {
		return nil
	}
	for _, s := range slots {
		p.cols = append(p.cols, p.n.Columns[s])
	}
	for _, v := range p.n.Sets[0] {
		if v.Array != nil || len(v.Exprs) != 1 {
			return nil
		}
		k := pointKey{param: -1, fit: v.Convert}
		switch e := v.Exprs[0].(type) {
		case *plan.Const:
			k.value = e.Value
		case *plan.Param:
			if k.param = e.Index; k.param >= len(pl.params) {
				return nil
			}
		default:
			return nil
		}
		p.key = append(p.key, k)
	}
	return p
}

// pointState returns the state that pl's lookup reads now; nil when the statement
// must go the general way.
func (s *Session) pointState(ctx context.Context, pl *planned) *pointState {
	p := pl.point
	if r := s.rights(ctx); !r.super && !r.isPassed(pl) {
		return nil // the general way asks
	}
	if p == nil || s.tx.staged != nil || s.temp != nil || len(s.tx.tables) > 0 || s.pinned() || s.set.use().scanVersion != "" || !s.usable(pl) {
		return nil
	}
	old := p.state.Load()
	if old != nil && old.watch != nil && old.watch.Current() {
		return old
	}
	st := &pointState{}
	var rel catalog.Relation
	var err error
	if files, ok := s.eng.cat.(*catalog.Filesystem); ok && old != nil {
		rel, st.watch, err = s.resolveWatched(ctx, files, p)
	}
	if rel == nil && err == nil {
		rel, err = s.newResolver().Relation(ctx, p.dep.name, p.dep.opts)
	}
	if err != nil {
		return nil
	}
	var ok bool
	if st.rel, ok = rel.(catalog.KeyedRelation); !ok || !sameDefinition(p.dep.rel, rel) {
		return nil
	}
	p.state.Store(st)
	return st
}

// resolveWatched resolves p's table in the schema where it was found before, with a
// watch that earlier schemas of the path do not come into being; nil when it must be
// searched for.
func (s *Session) resolveWatched(ctx context.Context, files *catalog.Filesystem, p *point) (catalog.Relation, *catalog.Watch, error) {
	schema, name := p.dep.rel.Schema(), p.dep.rel.Name()
	var earlier []string
	switch len(p.dep.name) {
	case 1:
		if p.dep.name[0].Name != name {
			return nil, nil, nil // found by folding the case
		}
		found := false
		for _, n := range s.searchPath(true) {
			if found = n == schema; found {
				break
			}
			if n != "pg_catalog" && n != "information_schema" {
				earlier = append(earlier, n)
			}
		}
		if !found {
			return nil, nil, nil
		}
	default:
		if n := p.dep.name[len(p.dep.name)-2:]; n[0].Name != schema || n[1].Name != name {
			return nil, nil, nil
		}
	}
	rel, w, err := files.ResolveWatched(ctx, earlier, schema, name, p.dep.opts)
	if w == nil {
		return nil, nil, nil
	}
	return rel, w, err
}

// runPoint looks the key up. done is false when it cannot say whether there is a row:
// the plan must be executed.
func (p *point) run(ctx context.Context, st *pointState, args []types.Datum) (b *vec.Batch, done bool, err error) {
	keys := make([]arrow.Array, len(p.key))
	for i := range p.key {
		k := &p.key[i]
		v := k.value
		if k.param >= 0 {
			v = args[k.param]
		}
		if v == nil {
			return nil, true, nil
		}
		v, fit := k.fit(v)
		switch fit {
		case plan.KeyNever:
			return nil, true, nil
		case plan.KeyScan:
			return nil, false, nil
		}
		keys[i] = vec.FromDatums(p.n.Stored[i], []types.Datum{v})
	}
	b, _, err = st.rel.Get(ctx, table.Lookup{Keys: keys, Columns: p.cols})
	if mustScan(err) {
		return nil, false, nil
	}
	if err != nil {
		return nil, true, err
	}
	b.Schema = p.schema
	return b, true, nil
}

// mustScan reports an error of a lookup that a scan may not meet.
func mustScan(err error) bool {
	var un *fileio.UnsupportedError
	return errors.As(err, &un)
}

// executePoint runs the lookup of a portal's plan, at the state that Bind found.
func (s *Session) executePoint(ctx context.Context, q *portal) (*running, error) {
	pl := q.prep.plan
	b, done, err := pl.point.run(ctx, q.state, q.args)
	if err != nil || !done {
		return nil, err
	}
	s.tx.queried, s.tx.redo = true, nil
	q.one.list[0] = b
	q.one.batches.list = q.one.list[:0]
	var found int64
	if b != nil && b.Size() > 0 {
		q.one.batches.list = q.one.list[:1]
		found = int64(b.Size())
	}
	t := s.eng.counts.table(pl.point.n.Rel.OID())
	t.keyScans.Add(1)
	t.keyRows.Add(found)
	s.eng.counts.db.fetched.Add(found)
	q.one.running = running{cols: pl.cols, src: &q.one.batches, tag: selectTag}
	return &q.one.running, nil
}

// onePoint is what a portal of a lookup needs to run, in one piece.
type onePoint struct {
	running running
	batches batches
	list    [1]*vec.Batch
}
