package engine

import (
	"bytes"
	"context"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// What UPDATE, DELETE and MERGE do to rows that are there.

// givesOnce reports whether the source of a statement has each row of the target
// once at most: it scans the target and nothing multiplies its rows.
func givesOnce(m *plan.Modify) bool {
	if m.Op != plan.UpdateOp && m.Op != plan.DeleteOp || m.Source == nil {
		return false
	}
	n := m.Source.Root
	for {
		switch x := n.(type) {
		case *plan.Scan, *plan.Lookup:
			return true
		case *plan.Filter:
			n = x.Input
		case *plan.Project:
			n = x.Input
		case *plan.HashJoin:
			if !filters(x.Kind) {
				return false
			}
			n = x.Left
		case *plan.NestedLoop:
			if !filters(x.Kind) {
				return false
			}
			n = x.Left
		default:
			return false
		}
	}
}

// filters reports whether a join gives each left row once at most, and nothing
// else.
func filters(k plan.JoinKind) bool {
	return k == plan.Semi || k == plan.Anti || k == plan.NullAnti || k == plan.Mark
}

// again is a source row for a row of the target that the statement has affected:
// it counts for nothing, but in MERGE it is an error.
func (m *modifier) again() error {
	if m.m.Op != plan.MergeOp {
		return nil
	}
	return pgerr.New(pgerr.CardinalityViolation, "MERGE command cannot affect row a second time").
		WithHint("Ensure that not more than one source row matches any one target row.")
}

// affect returns which of keys the statement has not affected yet.
func (m *modifier) affect(keys []string) ([]int32, error) {
	if m.once {
		return everyRow(len(keys)), nil
	}
	if m.seen == nil {
		m.seen = map[string]struct{}{}
	}
	out := make([]int32, 0, len(keys))
	for k, key := range keys {
		if _, twice := m.seen[key]; twice {
			if err := m.again(); err != nil {
				return nil, err
			}
			continue
		}
		if err := m.affected(key); err != nil {
			return nil, err
		}
		out = append(out, int32(k))
	}
	return out, nil
}

// everyRow are the numbers of all rows of b.
func everyRow(n int) []int32 {
	out := make([]int32, n)
	for i := range out {
		out[i] = int32(i)
	}
	return out
}

// update changes the rows that the source rows idx (nil = all) name.
func (m *modifier) update(ctx context.Context, b *vec.Batch, idx []int32) (*vec.Batch, error) {
	if idx == nil {
		idx = everyRow(b.N)
	}
	if m.pk == nil {
		idx, err := m.takeOut(b, idx)
		if err != nil || len(idx) == 0 {
			return nil, err
		}
		rows := m.newRows(b, idx)
		if err := m.check(ctx, rows); err != nil {
			return nil, err
		}
		var ids arrow.Array
		if m.m.RowID >= 0 {
			ids = vec.Take(vec.Decode(b.Cols[m.m.RowID]), idx)
		}
		if err := m.put(ctx, rows, ids); err != nil {
			return nil, err
		}
		m.count += int64(rows.N)
		return m.returned(ctx, rows, b, idx)
	}
	idx, old, at, err := m.existing(ctx, b, idx)
	if err != nil || len(idx) == 0 {
		return nil, err
	}
	rows := m.newRows(b, idx)
	if err := m.check(ctx, rows); err != nil {
		return nil, err
	}
	stored, err := toStored(m.rel, rows)
	if err != nil {
		return nil, err
	}
	if m.m.KeyChanged {
		err = m.move(ctx, old, at, rows, stored)
	} else if stored, err = m.updates(ctx, old, stored, m.textOf(rows)); err == nil {
		if err = m.before(ctx, old); err == nil {
			err = m.sink.add(ctx, stored, constKinds(kindUpdate, stored.N))
		}
	}
	if err != nil {
		return nil, err
	}
	m.count += int64(rows.N)
	return m.returned(ctx, rows, b, idx)
}

// textOf shows rows in messages.
func (m *modifier) textOf(rows *vec.Batch) func(i int) string {
	return func(i int) string { return m.rowText(rows, i) }
}

// existing locks the rows that are there for the source rows idx, and returns
// those that the statement has not affected, in stored form with their keys.
func (m *modifier) existing(ctx context.Context, b *vec.Batch, idx []int32) ([]int32, *vec.Batch, *claimed, error) {
	old, err := toStored(m.rel, m.oldRows(b, idx))
	if err != nil {
		return nil, nil, nil, err
	}
	at, err := m.claim(ctx, old)
	if err != nil {
		return nil, nil, nil, err
	}
	if at.waited {
		if err := m.unchanged(ctx); err != nil {
			return nil, nil, nil, err
		}
	}
	keep, err := m.affect(at.keys) // positions in old
	if err != nil {
		return nil, nil, nil, err
	}
	if len(keep) == len(idx) {
		return idx, old, at, nil
	}
	out := make([]int32, 0, len(keep))
	sub := &claimed{loc: &table.Located{Buckets: at.loc.Buckets}}
	for _, p := range keep {
		out = append(out, idx[p])
		sub.keys = append(sub.keys, at.keys[p])
		sub.loc.Bucket, sub.loc.Keys = append(sub.loc.Bucket, at.loc.Bucket[p]), append(sub.loc.Keys, at.loc.Keys[p])
	}
	return out, take(old, keep), sub, nil
}

// take returns rows idx of a batch.
func take(b *vec.Batch, idx []int32) *vec.Batch {
	out := &vec.Batch{Schema: b.Schema, N: len(idx), Cols: make([]arrow.Array, len(b.Cols))}
	for i, c := range b.Cols {
		out.Cols[i] = vec.Take(c, idx)
	}
	return out
}

// move updates rows whose keys may change: old and new rows in stored form, and
// new ones (rows) in SQL form.
func (m *modifier) move(ctx context.Context, old *vec.Batch, at *claimed, rows, stored *vec.Batch) error {
	to, err := m.locate(ctx, stored)
	if err != nil {
		return err
	}
	if m.gone == nil {
		m.gone, m.come = map[string]struct{}{}, map[string]comer{}
	}
	var stay, leave []int32
	for i := range stored.N {
		if to.keys[i] == at.keys[i] {
			stay = append(stay, int32(i))
			continue
		}
		leave = append(leave, int32(i))
		m.gone[at.keys[i]] = struct{}{}
		if _, twice := m.come[to.keys[i]]; twice {
			return m.duplicate(rows, i)
		}
		m.come[to.keys[i]] = comer{rows, i, to.loc.Buckets[to.loc.Bucket[i]], to.loc.Keys[i]}
	}
	text := func(idx []int32) func(i int) string {
		return func(i int) string { return m.rowText(rows, int(idx[i])) }
	}
	if len(stay) > 0 {
		was := take(old, stay)
		w, err := m.updates(ctx, was, take(stored, stay), text(stay))
		if err != nil {
			return err
		}
		if err := m.before(ctx, was); err != nil {
			return err
		}
		if err := m.sink.add(ctx, w, constKinds(kindUpdate, len(stay))); err != nil {
			return err
		}
	}
	if len(leave) == 0 {
		return nil
	}
	gone, err := m.deletes(ctx, take(old, leave), text(leave))
	if err != nil {
		return err
	}
	if err := m.sink.add(ctx, gone, constKinds(kindDelete, len(leave))); err != nil {
		return err
	}
	part := take(stored, leave)
	if err := m.acc.Grow(rowsPart{b: part}.bytes()); err != nil {
		return err
	}
	m.moved = append(m.moved, part)
	return nil
}

// arrive writes the rows whose keys changed, behind every delete: a key that one
// row leaves another may take.
func (m *modifier) arrive(ctx context.Context) error {
	if len(m.moved) == 0 {
		return nil
	}
	// Keys that nobody gave up must be free.
	var rows []comer
	for k, c := range m.come {
		if _, freed := m.gone[k]; !freed {
			rows = append(rows, c)
		}
	}
	for len(rows) > 0 {
		n := min(len(rows), 1024)
		if err := m.mustBeFree(ctx, rows[:n]); err != nil {
			return err
		}
		rows = rows[n:]
	}
	for _, p := range m.moved {
		if err := m.sink.add(ctx, p, nil); err != nil {
			return err
		}
	}
	m.moved = nil
	return nil
}

// mustBeFree locks keys and refuses those that exist.
func (m *modifier) mustBeFree(ctx context.Context, cs []comer) error {
	var srcs []*vec.Batch
	num := map[*vec.Batch]uint16{}
	src, row := make([]uint16, len(cs)), make([]uint32, len(cs))
	for i, c := range cs {
		n, ok := num[c.b]
		if !ok {
			n = uint16(len(srcs))
			num[c.b], srcs = n, append(srcs, c.b)
		}
		src[i], row[i] = n, uint32(c.row)
	}
	rows := &vec.Batch{Schema: m.schema(), N: len(cs), Cols: make([]arrow.Array, len(m.cols))}
	for c := range m.cols {
		arrs := make([]arrow.Array, len(srcs))
		for i, b := range srcs {
			arrs[i] = b.Cols[c]
		}
		rows.Cols[c] = vec.Gather(m.cols[c].Type.Arrow(), arrs, src, row)
	}
	stored, err := toStored(m.rel, rows)
	if err != nil {
		return err
	}
	if _, err := m.claim(ctx, stored); err != nil {
		return err
	}
	_, which, err := m.lookup(ctx, rows)
	if err != nil {
		return err
	}
	for i, w := range which {
		if w >= 0 {
			return m.duplicate(rows, i)
		}
	}
	return nil
}

// remove deletes the rows that the source rows idx (nil = all) name.
func (m *modifier) remove(ctx context.Context, b *vec.Batch, idx []int32) (*vec.Batch, error) {
	if idx == nil {
		idx = everyRow(b.N)
	}
	var err error
	if m.pk == nil {
		idx, err = m.takeOut(b, idx)
	} else {
		var old *vec.Batch
		var at *claimed
		if idx, old, at, err = m.existing(ctx, b, idx); err == nil && len(idx) > 0 {
			if m.m.KeyChanged {
				if m.gone == nil {
					m.gone, m.come = map[string]struct{}{}, map[string]comer{}
				}
				for _, k := range at.keys {
					m.gone[k] = struct{}{}
				}
			}
			if old, err = m.deletes(ctx, old, func(i int) string { return m.rowText(m.oldRows(b, idx), i) }); err == nil {
				err = m.sink.add(ctx, old, constKinds(kindDelete, old.N))
			}
		}
	}
	if err != nil || len(idx) == 0 {
		return nil, err
	}
	m.count += int64(len(idx))
	if m.returning == nil {
		return nil, nil
	}
	return m.returned(ctx, m.oldRows(b, idx), b, idx)
}

// takeOut notes rows of an append table's files as gone.
func (m *modifier) takeOut(b *vec.Batch, idx []int32) ([]int32, error) {
	if m.m.File < 0 || m.m.Pos < 0 {
		return nil, errors.New("a plan that changes rows of files does not say which")
	}
	file := vec.Decode(b.Cols[m.m.File])
	names, pos := vec.ViewStr(file), vec.ViewOf[int64](b.Cols[m.m.Pos])
	if m.files == nil {
		m.files = map[string]*dv.Vector{}
	}
	if err := m.acc.Grow(rowBytes * int64(len(idx))); err != nil {
		return nil, err
	}
	out := make([]int32, 0, len(idx))
	var rows *dv.Vector // of the file that the row before was in
	var name []byte
	for _, i := range idx {
		if n := names.At(int(i)); rows == nil || !bytes.Equal(n, name) {
			name = append(name[:0], n...)
			if rows = m.files[string(n)]; rows == nil {
				if err := m.acc.Grow(int64(len(n)) + fileBytes); err != nil {
					return nil, err
				}
				rows = &dv.Vector{}
				m.files[string(n)] = rows
			}
		}
		if rows.Add(pos.V[i]) {
			out = append(out, i)
		} else if err := m.again(); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// What a row taken out of a file is charged, and a file: a set of positions has 2
// bytes for each of few, a bit for each of many.
const (
	rowBytes  = 2
	fileBytes = 256
)

// merge does what each row's action says.
func (m *modifier) merge(ctx context.Context, b *vec.Batch) (*vec.Batch, error) {
	if m.m.Action < 0 {
		return nil, errors.New("a plan of MERGE has no action")
	}
	act := vec.ViewOf[int16](b.Cols[m.m.Action])
	var by [4][]int32
	for i := range b.N {
		if a := act.V[i]; !act.IsNull(i) && a > int16(plan.ActNothing) && a <= int16(plan.ActDelete) {
			by[a] = append(by[a], int32(i))
		}
	}
	var parts []*vec.Batch
	add := func(r *vec.Batch, err error) error {
		if r != nil {
			parts = append(parts, r)
		}
		return err
	}
	// Rows that go and change first: what is inserted lies above them.
	if x := by[plan.ActDelete]; x != nil {
		if err := add(m.remove(ctx, b, x)); err != nil {
			return nil, err
		}
	}
	if x := by[plan.ActUpdate]; x != nil {
		if err := add(m.update(ctx, b, x)); err != nil {
			return nil, err
		}
	}
	if x := by[plan.ActInsert]; x != nil {
		if err := add(m.insert(ctx, m.newRows(b, x), b, x)); err != nil {
			return nil, err
		}
	}
	return joined(m.m.ReturnSchema, parts), nil
}
