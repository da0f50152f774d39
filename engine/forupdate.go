package engine

import (
	"context"
	"errors"
	"slices"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/exec/vectorized"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/sql/planner"
	"github.com/paimon-sql/paimon-sql/storage/commit"
)

// lockRows runs SELECT FOR UPDATE and its kin: it reads the rows, locks their
// keys, and reads again when others changed one of them before it was locked. The
// rows wait in memory meanwhile. What was read takes part in the checks at COMMIT.
func (s *Session) lockRows(ctx context.Context, p *prepared, pl *planned, args []types.Datum) (*running, error) {
	s.tx.queried, s.tx.redo = true, nil
	if err := s.lockRelations(ctx, pl.p.Locks, pl.p.RowLocks, pl.p.NoWait); err != nil {
		return nil, err
	}
	for try := 0; ; try++ {
		rows, err := s.lockOnce(ctx, pl, args)
		switch {
		case err == nil:
			return &running{cols: pl.cols, src: &batches{list: rows}, tag: selectTag}, nil
		case errors.Is(err, errReplan) && try <= maxReruns:
			if pl, err = s.plan(ctx, p, pl.params); err != nil {
				return nil, err
			}
		case errors.Is(err, errReadAgain) && try <= maxReruns:
		case errors.Is(err, errReadAgain), errors.Is(err, errReplan):
			return nil, errSerialize("")
		default:
			return nil, err
		}
	}
}

// lockRelations takes the locks that go before the first row: those of the tables,
// and whole tables where rows have no keys that could be told.
func (s *Session) lockRelations(ctx context.Context, locks []catalog.Relation, rows []planner.RowLock, nowait bool) error {
	byRow := map[catalog.Relation]bool{}
	for _, l := range rows {
		byRow[l.Rel] = true
		if _, err := s.lockTable(ctx, keyOf(l.Rel), l.Rel.Name(), lockIntent, l.NoWait); err != nil {
			return err
		}
	}
	for _, rel := range locks {
		t, ok := rel.(catalog.TableInfo)
		if !ok || byRow[rel] {
			continue
		}
		if len(t.PrimaryKey()) > 0 {
			if _, err := s.lockTable(ctx, keyOf(t), t.Name(), lockExclusive, nowait); err != nil {
				return err
			}
			continue
		}
		if _, err := s.lockTable(ctx, keyOf(t), t.Name(), lockIntent, nowait); err != nil {
			return err
		}
		if _, err := s.lockKeys(ctx, keyOf(t), t.Name(), []string{filesKey}, lockExclusive, nowait); err != nil {
			return err
		}
	}
	return nil
}

// rowLocker locks the rows of one relation.
type rowLocker struct {
	s    *Session
	l    planner.RowLock
	rel  catalog.TableInfo // at the state that is read
	pk   []int
	read map[commit.BucketID][][]byte
}

// lockOnce reads and locks at one state.
func (s *Session) lockOnce(ctx context.Context, pl *planned, args []types.Datum) (_ []*vec.Batch, err error) {
	rels, err := s.bind(ctx, pl.deps, nil)
	if err != nil {
		return nil, err
	}
	var lockers []*rowLocker
	skips := false
	for _, l := range pl.p.RowLocks {
		k := &rowLocker{s: s, l: l, read: map[commit.BucketID][][]byte{}}
		var ok bool
		if k.rel, ok = rels.relation(l.Rel).(catalog.TableInfo); !ok {
			return nil, errReplan
		}
		for _, n := range l.Rel.PrimaryKey() {
			k.pk = append(k.pk, columnNamed(k.rel.Columns(), n))
		}
		lockers, skips = append(lockers, k), skips || l.SkipLocked
	}
	acc := s.eng.root.Child("work_mem", s.set.use().workMem)
	defer acc.Close()
	frag, limit, offset := pl.frag, int64(-1), int64(0)
	if skips { // rows that are skipped do not count
		if frag, limit, offset, err = s.withoutLimit(ctx, frag, args); err != nil {
			return nil, err
		}
	}
	q, stop, err := s.startFragment(ctx, frag, args, rels)
	if err != nil {
		return nil, err
	}
	defer stop()
	defer q.Close() //nolint:errcheck // a reader: what it read is what counts
	var out []*vec.Batch
	for limit != 0 {
		b, err := q.Next(ctx)
		if err != nil {
			return nil, err
		}
		if b == nil {
			break
		}
		b = vec.Compact(b)
		if offset > 0 {
			n := min(offset, int64(b.N))
			offset -= n
			if b = take(b, everyRow(b.N)[n:]); b.N == 0 {
				continue
			}
		}
		for _, k := range lockers {
			if b, err = k.lock(ctx, b, limit, acc); err != nil {
				return nil, err
			}
		}
		if b.N == 0 {
			continue
		}
		if limit > 0 {
			if int64(b.N) > limit {
				b = take(b, everyRow(int(limit)))
			}
			limit -= int64(b.N)
		}
		if err := acc.Grow(rowsPart{b: b}.bytes()); err != nil {
			return nil, err
		}
		out = append(out, &vec.Batch{Schema: b.Schema[:len(pl.cols)], Cols: b.Cols[:len(pl.cols)], N: b.N})
	}
	for _, k := range lockers {
		if err := k.done(ctx); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// lock locks the rows of a batch and returns those that it got. limit is how many
// rows may be locked, -1 = all.
func (k *rowLocker) lock(ctx context.Context, b *vec.Batch, limit int64, acc *mem.Account) (*vec.Batch, error) {
	if b.N == 0 {
		return b, nil
	}
	cols := k.rel.Columns()
	rows := &vec.Batch{N: b.N}
	for _, c := range cols {
		rows.Schema = append(rows.Schema, c.Field)
		rows.Cols = append(rows.Cols, nil)
	}
	for i, c := range k.pk {
		rows.Cols[c] = b.Cols[k.l.Key[i]]
	}
	for i, c := range cols {
		if rows.Cols[i] == nil {
			rows.Cols[i] = vec.MakeNull(c.Type.Arrow(), b.N)
		}
	}
	stored, err := toStored(k.rel, rows)
	if err != nil {
		return nil, err
	}
	loc, err := k.rel.Table().Locate(ctx, k.rel.At(), columnsOf(stored, k.pk), b.N)
	if err != nil {
		return nil, err
	}
	mode := lockExclusive
	if k.l.Shared {
		mode = lockShared
	}
	key := keyOf(k.rel)
	keys := make([]string, b.N)
	keep := make([]int32, 0, b.N)
	for i := range keys {
		id := loc.Buckets[loc.Bucket[i]]
		keys[i] = lockKey(id, loc.Keys[i])
		if k.l.SkipLocked {
			if limit >= 0 && int64(len(keep)) == limit {
				break
			}
			if !k.s.eng.locks.tryKey(k.s.lockOwner(), lockTarget{table: key.String(), key: keys[i]}, mode) {
				continue
			}
		}
		if err := acc.Grow(int64(len(loc.Keys[i])) + 32); err != nil {
			return nil, err
		}
		k.read[id] = append(k.read[id], loc.Keys[i])
		keep = append(keep, int32(i))
	}
	if k.l.SkipLocked {
		if len(keep) == b.N {
			return b, nil
		}
		return take(b, keep), nil
	}
	waited, err := k.s.lockKeys(ctx, key, k.rel.Name(), slices.Clone(keys), mode, k.l.NoWait)
	if err == nil && waited {
		err = k.unchanged(ctx)
	}
	return b, err
}

func (k *rowLocker) reads() *commit.ReadSet {
	return unionReads(&commit.ReadSet{Keys: k.read}, &commit.ReadSet{})
}

// unchanged reports errReadAgain when a row was changed after it was read.
func (k *rowLocker) unchanged(ctx context.Context) error {
	_, err := k.rel.Table().CheckReads(ctx, k.rel.At().Branch, snapshotID(k.rel.At()), k.reads())
	if conflicted(err) && !k.s.pinned() {
		return errReadAgain
	}
	return err
}

// done notes what was read.
func (k *rowLocker) done(ctx context.Context) error {
	if len(k.read) == 0 {
		return nil
	}
	if err := k.unchanged(ctx); err != nil {
		return err
	}
	if k.s.tx.status == txBlock {
		t := k.s.touch(k.rel)
		t.pk = k.pk
		t.reads = unionReads(t.reads, k.reads())
	}
	return nil
}

// withoutLimit takes the LIMIT off the top of a plan: rows that another session
// has locked are left out before they are counted.
func (s *Session) withoutLimit(ctx context.Context, f *plan.Fragment, args []types.Datum) (out *plan.Fragment, limit, offset int64, err error) {
	limit = -1
	var cut func(n plan.Node) plan.Node
	cut = func(n plan.Node) plan.Node {
		switch x := n.(type) {
		case *plan.Project:
			c := *x
			c.Input = cut(x.Input)
			return &c
		case *plan.Limit:
			var d types.Datum
			if x.Count != nil {
				if d, err = vectorized.EvalConst(ctx, x.Count, args, s.env()); err != nil {
					return n
				}
				if v, ok := d.(int64); ok {
					limit = v
				}
			}
			if x.Offset != nil {
				if d, err = vectorized.EvalConst(ctx, x.Offset, args, s.env()); err != nil {
					return n
				}
				if v, ok := d.(int64); ok {
					offset = v
				}
			}
			if limit < -1 || offset < 0 {
				err = pgerr.New(pgerr.InvalidRowCountInLimit, "LIMIT must not be negative")
			}
			return unbounded(x.Input)
		}
		return n
	}
	c := *f
	c.Root = cut(f.Root)
	return &c, limit, offset, err
}

// unbounded takes off what a LIMIT put into the nodes below it.
func unbounded(n plan.Node) plan.Node {
	switch x := n.(type) {
	case *plan.Project:
		c := *x
		c.Input = unbounded(x.Input)
		return &c
	case *plan.Filter:
		c := *x
		c.Input = unbounded(x.Input)
		return &c
	case *plan.Sort:
		c := *x
		c.Limit = 0
		return &c
	case *plan.Scan:
		c := *x
		c.Spec.Limit = -1
		return &c
	}
	return n
}
