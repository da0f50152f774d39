package engine

import (
	"context"
	"errors"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// mergedRow is row i of a batch in stored form.
type mergedRow struct {
	b *vec.Batch
	i int
}

// insertMerged inserts rows that the table's merge engine merges with those that
// are there, and returns RETURNING over what is there then. rows are in SQL form
// and have passed the constraints.
//
// The keys are locked and looked up, which an INSERT without RETURNING does not do.
// A key that stands twice in a batch is taken in rounds: the second row is merged
// with what the first has made.
func (m *modifier) insertMerged(ctx context.Context, rows, src *vec.Batch, idx []int32) (*vec.Batch, error) {
	r := m.rule
	if r.kindCol >= 0 {
		return nil, pgerr.New(pgerr.FeatureNotSupported, "INSERT ... RETURNING is not supported for a table with rowkind.field").
			WithHint("Leave RETURNING out, and read the rows.")
	}
	stored, err := toStored(m.rel, rows)
	if err != nil {
		return nil, err
	}
	at, err := m.claim(ctx, stored)
	if err != nil {
		return nil, err
	}
	if err := m.renew(ctx); err != nil {
		return nil, err
	}
	found, which, err := m.lookup(ctx, rows)
	if err != nil {
		return nil, err
	}
	if found != nil {
		if found, err = toStored(m.rel, found); err != nil {
			return nil, err
		}
	}
	if m.merged == nil {
		m.merged, m.seen = map[string]mergedRow{}, map[string]struct{}{}
	}
	left := everyRow(rows.N)
	for len(left) > 0 {
		round := map[string]struct{}{}
		var now, later []int32
		for _, i := range left {
			if _, twice := round[at.keys[i]]; twice {
				later = append(later, i)
				continue
			}
			round[at.keys[i]] = struct{}{}
			now = append(now, i)
		}
		if err := m.mergeRound(stored, found, at.keys, which, now); err != nil {
			return nil, err
		}
		left = later
	}
	if err := m.sink.add(ctx, stored, nil); err != nil {
		return nil, err
	}
	m.count += int64(rows.N)
	res := m.gatherMerged(stored, at.keys)
	fs, ok := m.rel.(interface {
		FromStored(b *vec.Batch) (*vec.Batch, error)
	})
	if !ok {
		return nil, errors.New("rows of this relation have no SQL form")
	}
	if res, err = fs.FromStored(res); err != nil {
		return nil, err
	}
	return m.returned(ctx, res, src, idx)
}

// mergeRound merges rows now, no two of one key, into m.merged.
func (m *modifier) mergeRound(stored, found *vec.Batch, keys []string, which, now []int32) error {
	var olds []mergedRow
	var merge []int32
	for _, i := range now {
		if err := m.affected(keys[i]); err != nil {
			return err
		}
		old, ok := m.merged[keys[i]]
		if !ok && which[i] >= 0 {
			old, ok = mergedRow{found, int(which[i])}, true
		}
		if !ok {
			m.merged[keys[i]] = mergedRow{stored, int(i)}
			continue
		}
		if m.rule.engine == "first-row" {
			m.merged[keys[i]] = old
			continue
		}
		olds, merge = append(olds, old), append(merge, i)
	}
	if len(merge) == 0 {
		return nil
	}
	old, new := gatherRows(stored, olds), take(stored, merge)
	out := &vec.Batch{Schema: stored.Schema, N: len(merge)}
	if m.rule.engine == "deduplicate" {
		cmp := m.rule.compare(old, new)
		src, row := make([]uint16, len(merge)), make([]uint32, len(merge))
		for k := range merge {
			row[k] = uint32(k)
			if cmp == nil || cmp(k) >= 0 {
				src[k] = 1
			}
		}
		for c := range new.Cols {
			out.Cols = append(out.Cols, vec.Gather(m.rule.sch.Fields[c].Type.Arrow(), []arrow.Array{vec.Decode(old.Cols[c]), vec.Decode(new.Cols[c])}, src, row))
		}
	} else {
		var err error
		if out.Cols, _, err = m.rule.merge(old, new, kindInsert); err != nil {
			return m.unmerged(err)
		}
	}
	if err := m.acc.Grow(rowsPart{b: out}.bytes()); err != nil {
		return err
	}
	for k, i := range merge {
		m.merged[keys[i]] = mergedRow{out, k}
	}
	return nil
}

// gatherMerged are the rows that keys have now.
func (m *modifier) gatherMerged(like *vec.Batch, keys []string) *vec.Batch {
	rows := make([]mergedRow, len(keys))
	for i, k := range keys {
		rows[i] = m.merged[k]
	}
	return gatherRows(like, rows)
}

// gatherRows makes one batch, of the form of like, of rows of several.
func gatherRows(like *vec.Batch, rows []mergedRow) *vec.Batch {
	var srcs []*vec.Batch
	num := map[*vec.Batch]uint16{}
	src, row := make([]uint16, len(rows)), make([]uint32, len(rows))
	for i, r := range rows {
		n, ok := num[r.b]
		if !ok {
			n = uint16(len(srcs))
			num[r.b], srcs = n, append(srcs, r.b)
		}
		src[i], row[i] = n, uint32(r.i)
	}
	out := &vec.Batch{Schema: like.Schema, N: len(rows), Cols: make([]arrow.Array, len(like.Cols))}
	for c := range out.Cols {
		arrs := make([]arrow.Array, len(srcs))
		for i, b := range srcs {
			arrs[i] = vec.Decode(b.Cols[c])
		}
		out.Cols[c] = vec.Gather(arrs[0].DataType(), arrs, src, row)
	}
	return out
}
