package engine

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/exec/vectorized"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// maxReruns is how often a statement is run again because others changed what it
// read.
const maxReruns = 10

// errReplan: a table has another definition than the plan was made for.
var errReplan = errors.New("plan again")

// binding says which states of a plan's relations one run reads.
type binding map[catalog.Relation]catalog.Relation

// relation is what is read for a relation of the plan.
func (b binding) relation(r catalog.Relation) catalog.Relation {
	if x, ok := b[r]; ok {
		return x
	}
	return r
}

// bind resolves the relations of a plan anew, at the states that a statement
// reads that starts now, the session's own writes laid over them. unread is a
// target whose rows the statement does not look at: it gets none.
func (s *Session) bind(ctx context.Context, deps []dep, unread catalog.Relation) (binding, error) {
	out := make(binding, len(deps))
	r := s.newResolver()
	for _, d := range deps {
		rel, err := r.Relation(ctx, d.name, d.opts)
		if err != nil {
			return nil, err
		}
		if !sameDefinition(d.rel, rel) {
			return nil, errReplan
		}
		if t, ok := rel.(catalog.TableInfo); ok && d.rel != unread && s.newest(d.opts) {
			if rel, err = s.overlaid(ctx, t); err != nil {
				return nil, err
			}
		}
		if t, ok := rel.(catalog.Derived); ok && s.newest(d.opts) {
			base, err := s.overlaid(ctx, t.Base())
			if err != nil {
				return nil, err
			}
			if b, ok := base.(*catalog.TableRelation); ok {
				rel = t.Over(b)
			}
		}
		out[d.rel] = rel
	}
	return out, nil
}

// recentTarget remembers the target of a statement that reads no table. Such a
// statement needs the table's definition only, and may use one that another process
// has just replaced, as every writer of Paimon does; what this process changes is
// seen by the catalog's version.
type recentTarget struct {
	mu      sync.Mutex // guards what follows
	rel     catalog.Relation
	version uint64
	until   time.Time
}

// targetAge is how long the definition of a table is trusted.
const targetAge = 100 * time.Millisecond

// bindTarget is bind for a data-changing plan.
func (s *Session) bindTarget(ctx context.Context, pl *planned, unread catalog.Relation) (binding, error) {
	if pl.target == nil || unread == nil || pl.mod.Modify.Overwrite != nil || s.tx.staged != nil || s.pinned() || !s.newest(pl.deps[0].opts) {
		return s.bind(ctx, pl.deps, unread)
	}
	t, now, version := pl.target, time.Now(), s.eng.cat.Version()
	t.mu.Lock()
	rel := t.rel
	if t.version != version || now.After(t.until) {
		rel = nil
	}
	t.mu.Unlock()
	if rel != nil {
		return binding{pl.deps[0].rel: rel}, nil
	}
	rels, err := s.bind(ctx, pl.deps, unread)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.rel, t.version, t.until = rels.relation(pl.deps[0].rel), version, now.Add(targetAge)
	t.mu.Unlock()
	return rels, nil
}

// newest reports whether a reference is to the present of a table.
func (s *Session) newest(o catalog.ResolveOptions) bool {
	return o.At.Kind == snapshot.Latest && o.At.ID == 0 && !o.HintsState() && s.set.use().scanVersion == ""
}

// sameDefinition reports whether a plan over a may read b in its place: another
// state of the same table, with the same schema.
func sameDefinition(a, b catalog.Relation) bool {
	x, ok := a.(catalog.TableInfo)
	if !ok {
		return sameRelation(a, b)
	}
	y, ok := b.(catalog.TableInfo)
	return ok && sameSchema(x, y) && x.OID() == y.OID() && x.Name() == y.Name() && x.Schema() == y.Schema() && sameSchema(x, y) && keyOf(x) == keyOf(y)
}

// readsTarget reports whether a plan scans its own target: it has asked for it
// more than once.
func readsTarget(m *plan.Modify, deps []dep) bool {
	n := 0
	for _, d := range deps {
		if d.rel == catalog.Relation(m.Target) {
			n++
		}
	}
	return n != 1
}

// outcome is what a data-changing statement has done.
type outcome struct {
	count int64
	rows  []*vec.Batch // RETURNING's
}

// same reports whether a client that was told of a may keep believing it.
func (o *outcome) same(p *outcome) bool {
	if o.count != p.count || len(o.rows) != len(p.rows) {
		return false
	}
	for i, a := range o.rows {
		b := p.rows[i]
		if a.N != b.N || len(a.Cols) != len(b.Cols) {
			return false
		}
		for c := range a.Cols {
			for r := range a.N {
				t := a.Schema[c].Type
				if fmt.Sprint(vec.DatumAt(a.Cols[c], t, r)) != fmt.Sprint(vec.DatumAt(b.Cols[c], t, r)) {
					return false
				}
			}
		}
	}
	return true
}

// modifyTag is the command tag of a data-changing statement.
func modifyTag(op plan.ModifyOp, n int64) string {
	switch op {
	case plan.InsertOp:
		return fmt.Sprintf("INSERT 0 %d", n)
	case plan.UpdateOp:
		return fmt.Sprintf("UPDATE %d", n)
	case plan.DeleteOp:
		return fmt.Sprintf("DELETE %d", n)
	}
	return fmt.Sprintf("MERGE %d", n)
}

// runModify runs INSERT, UPDATE, DELETE or MERGE to its end. Its changes are part
// of the transaction then, its rows wait in memory: nothing may be sent before it
// is known that the statement stands.
func (s *Session) runModify(ctx context.Context, p *prepared, args []types.Datum) (*running, error) {
	pl := p.plan
	if pl == nil {
		var err error
		if pl, err = s.plan(ctx, p, nil); err != nil {
			return nil, err
		}
	}
	// Temporary tables may be written always.
	if s.readOnly() && (s.temp == nil || pl.mod.Modify.Target.Schema() != s.temp.schema) {
		return nil, errReadOnly(commandName(p.stmt))
	}
	if err := s.permit(ctx, pl); err != nil {
		return nil, err
	}
	first := !s.tx.queried && s.tx.staged == nil
	out, err := s.modify(ctx, p, pl, args, nil)
	if err != nil {
		return nil, err
	}
	r := &running{utility: true}
	r.retag = func(o *outcome) func(int64) string {
		if pl.cols != nil { // of the last Execute, where the rows come in several
			return func(rows int64) string { return modifyTag(pl.mod.Modify.Op, rows) }
		}
		return fixedTag(modifyTag(pl.mod.Modify.Op, o.count))
	}
	r.tag = r.retag(out)
	if pl.cols != nil {
		r.cols = pl.cols
		r.src = &batches{list: out.rows}
		r.utility = false
	}
	// Alone in its transaction, it may be run again when its commit meets a
	// conflict.
	if s.tx.status == txImplicit {
		if s.tx.writes++; s.tx.writes == 1 && !s.tx.multi && first {
			s.tx.redo = func(ctx context.Context) (*outcome, error) { return s.modify(ctx, p, pl, args, nil) }
			s.tx.told = out
		} else {
			s.tx.redo = nil
		}
	}
	return r, nil
}

// modify runs a data-changing plan. observe, when not nil, is told of the run.
func (s *Session) modify(ctx context.Context, p *prepared, pl *planned, args []types.Datum, observe func(*vectorized.Stats)) (*outcome, error) {
	for try := 0; ; try++ {
		out, err := s.modifyOnce(ctx, pl, args, observe)
		switch {
		case err == nil:
			return out, nil
		case errors.Is(err, errReplan):
			if try > maxReruns {
				return nil, errSerialize("The table's definition keeps changing.")
			}
			sub := *p
			if pl, err = s.plan(ctx, &sub, pl.params); err != nil {
				return nil, err
			}
		case errors.Is(err, errReadAgain):
			if try > maxReruns {
				return nil, errSerialize("")
			}
		default:
			return nil, err
		}
	}
}

// modifyOnce runs the plan on the newest state.
func (s *Session) modifyOnce(ctx context.Context, pl *planned, args []types.Datum, observe func(*vectorized.Stats)) (_ *outcome, err error) {
	mod := pl.mod.Modify
	s.tx.queried = true
	// The larger locks first: they may be on the target.
	if err := s.lockRelations(ctx, pl.mod.Locks, nil, pl.mod.NoWait); err != nil {
		return nil, err
	}
	if err := s.lockTarget(ctx, mod); err != nil {
		return nil, err
	}
	var unread catalog.Relation
	if !pl.reads && !readsExisting(s, mod) {
		unread = mod.Target
	}
	rels, err := s.bindTarget(ctx, pl, unread)
	if err != nil {
		return nil, err
	}
	target, ok := rels.relation(mod.Target).(catalog.TableInfo)
	if !ok {
		return nil, pgerr.New(pgerr.WrongObjectType, "%q is not a table", mod.Target.Name())
	}
	m, err := s.modifierOn(target, pl.mod, args)
	if err != nil {
		return nil, err
	}
	defer m.close()
	q, stop, err := s.startFragment(ctx, pl.frag, args, rels)
	if err != nil {
		return nil, err
	}
	defer stop()
	defer q.Close() //nolint:errcheck // a reader: what it read is what counts
	out := &outcome{}
	for {
		b, err := q.Next(ctx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			break
		}
		ret, err := m.rows(ctx, b)
		if err != nil {
			return nil, err
		}
		if ret != nil && ret.N > 0 {
			if err := m.acc.Grow(rowsPart{b: ret}.bytes()); err != nil {
				return nil, err
			}
			out.rows = append(out.rows, ret)
		}
	}
	if observe != nil {
		observe(q.Stats())
	}
	if out.count, err = m.finish(ctx); err != nil {
		return nil, err
	}
	s.eng.counts.changed(mod.Target.OID(), mod.Op, out.count)
	return out, nil
}
