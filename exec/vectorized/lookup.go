package vectorized

import (
	"context"
	"errors"
	"slices"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
	"github.com/paimon-sql/paimon-sql/storage/table"
)

// lookupStage reads rows by primary key. The keys are known when it is prepared;
// when they are too many, or one of them cannot be told, the node's scan takes its
// place. Rows come in the order of their keys.
type lookupStage struct {
	sc    *scope
	n     *plan.Lookup
	req   request
	stats *NodeStats
	rel   catalog.KeyedRelation
	scan  stage // instead
	out   []*vec.Batch
}

func newLookup(sc *scope, n *plan.Lookup, req request) (stage, error) {
	rel, ok := sc.rt.relation(n.Rel).(catalog.KeyedRelation)
	if !ok {
		return newScan(sc, n.Scan, req)
	}
	return &lookupStage{sc: sc, n: n, req: req, rel: rel, stats: sc.rt.stats.Node(n.ID)}, nil
}

func (s *lookupStage) prepare(ctx context.Context) (int, error) {
	s.out = nil
	x := s.sc.eval(ctx)
	keys, err := lookupKeys(s.n, func(e plan.Expr) (types.Datum, error) {
		switch e := e.(type) {
		case *plan.Const:
			return e.Value, nil
		case *plan.Param:
			return x.params.get(ctx, e.Index)
		}
		ev, err := s.sc.rt.evaluator(e)
		if err != nil {
			return nil, err
		}
		defer s.sc.rt.release(e, ev)
		return ev.datum(x)
	})
	if errors.Is(err, errTooManyKeys) {
		return s.instead(ctx)
	}
	if err != nil {
		return 0, err
	}
	r := &table.PlanReport{Keys: int64(len(keys))}
	if at := s.rel.At(); at.Kind == snapshot.ID {
		r.SnapshotID = at.ID
	}
	if len(keys) > 0 {
		l := table.Lookup{Keys: keyArrays(s.n.Stored, keys), Columns: s.n.Columns, Counters: &r.Counters}
		b, which, err := s.rel.Get(ctx, l)
		var un *fileio.UnsupportedError
		if errors.As(err, &un) {
			return s.instead(ctx)
		}
		if err != nil {
			return 0, err
		}
		b.Schema = s.n.Out
		if err := s.keep(ctx, inOrder(b, which)); err != nil {
			return 0, err
		}
	}
	s.stats.setReport(r)
	return 1, nil
}

// instead scans.
func (s *lookupStage) instead(ctx context.Context) (int, error) {
	var err error
	if s.scan, err = newScan(s.sc, s.n.Scan, s.req); err != nil {
		return 0, err
	}
	return s.scan.prepare(ctx)
}

// keep filters b and cuts it into batches.
func (s *lookupStage) keep(ctx context.Context, b *vec.Batch) error {
	var cond *evaluator
	if s.n.Filter != nil {
		var err error
		if cond, err = s.sc.rt.evaluator(s.n.Filter); err != nil {
			return err
		}
		defer s.sc.rt.release(s.n.Filter, cond)
	}
	x := s.sc.eval(ctx)
	step := s.sc.rt.rows
	for from := 0; from < b.N; from += step {
		part := b
		if b.N > step {
			part = rowRange(b, from, min(from+step, b.N))
		}
		if cond != nil {
			sel, err := cond.selectRows(x, part)
			if err != nil {
				return err
			}
			if len(sel) < part.N {
				s.stats.add("removed", int64(part.N-len(sel)))
				part.Sel = append(make([]uint16, 0, len(sel)), sel...)
			}
		}
		if part.Size() > 0 {
			s.out = append(s.out, part)
		}
	}
	return nil
}

// rowRange copies a range of rows.
func rowRange(b *vec.Batch, from, to int) *vec.Batch {
	idx := make([]int32, to-from)
	for i := range idx {
		idx[i] = int32(from + i)
	}
	out := &vec.Batch{Schema: b.Schema, N: len(idx), Cols: make([]arrow.Array, len(b.Cols))}
	for i, c := range b.Cols {
		out.Cols[i] = vec.Take(c, idx)
	}
	return out
}

func (s *lookupStage) operator(w int) (operator, error) {
	if s.scan != nil {
		return s.scan.operator(w)
	}
	return &lookupOp{s: s}, nil
}

func (s *lookupStage) close() {
	if s.scan != nil {
		s.scan.close()
		s.scan = nil
	}
}

type lookupOp struct{ s *lookupStage }

func (o *lookupOp) next(context.Context) (*vec.Batch, error) {
	if len(o.s.out) == 0 {
		return nil, nil
	}
	b := o.s.out[0]
	o.s.out = o.s.out[1:]
	return b, nil
}

func (o *lookupOp) close() {}

// errTooManyKeys: the rows are scanned.
var errTooManyKeys = errors.New("too many keys for a lookup")

// lookupKeys are the keys that a lookup asks for, ascending, without duplicates.
// value evaluates an expression. It is errTooManyKeys when a scan is better.
func lookupKeys(n *plan.Lookup, value func(plan.Expr) (types.Datum, error)) ([][]types.Datum, error) {
	var keys [][]types.Datum
	for _, set := range n.Sets {
		cols := make([][]types.Datum, len(set))
		total := 1
		for k := range set {
			var err error
			if cols[k], err = keyValues(&set[k], value); err != nil {
				return nil, err
			}
			total *= len(cols[k])
			if n.MaxKeys > 0 && (total > n.MaxKeys*16 || total+len(keys) > n.MaxKeys*16) {
				// Far too many even if most of them are the same.
				return nil, errTooManyKeys
			}
		}
		for i := range total {
			key := make([]types.Datum, len(cols))
			for k := len(cols) - 1; k >= 0; k-- {
				key[k] = cols[k][i%len(cols[k])]
				i /= len(cols[k])
			}
			keys = append(keys, key)
		}
	}
	if len(keys) > 1 {
		keys = distinctKeys(n.Stored, keys)
	}
	if n.MaxKeys > 0 && len(keys) > n.MaxKeys {
		return nil, errTooManyKeys
	}
	return keys, nil
}

// keyValues are the stored values that one column of the key may have.
func keyValues(v *plan.KeyValues, value func(plan.Expr) (types.Datum, error)) ([]types.Datum, error) {
	var out []types.Datum
	add := func(d types.Datum) error {
		if d == nil {
			return nil // equal to nothing
		}
		d, fit := v.Convert(d)
		switch fit {
		case plan.KeyScan:
			return errTooManyKeys
		case plan.KeyFits:
			out = append(out, d)
		}
		return nil
	}
	if v.Array != nil {
		d, err := value(v.Array)
		if err != nil {
			return nil, err
		}
		return out, eachElement(d, add)
	}
	for _, e := range v.Exprs {
		d, err := value(e)
		if err != nil {
			return nil, err
		}
		if err := add(d); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// eachElement calls f for the elements of an array, those of its inner arrays when
// it has several dimensions, as = ANY does.
func eachElement(d types.Datum, f func(types.Datum) error) error {
	list, _ := d.([]types.Datum)
	for _, x := range list {
		if inner, ok := x.([]types.Datum); ok {
			if err := eachElement(inner, f); err != nil {
				return err
			}
			continue
		}
		if err := f(x); err != nil {
			return err
		}
	}
	return nil
}

func distinctKeys(ts []types.Type, keys [][]types.Datum) [][]types.Datum {
	compare := func(a, b []types.Datum) int {
		for k := range a {
			if c, _ := predicate.Compare(ts[k], a[k], b[k]); c != 0 {
				return c
			}
		}
		return 0
	}
	slices.SortFunc(keys, compare)
	return slices.CompactFunc(keys, func(a, b []types.Datum) bool { return compare(a, b) == 0 })
}

// keyArrays turns keys into one array per column.
func keyArrays(ts []types.Type, keys [][]types.Datum) []arrow.Array {
	out := make([]arrow.Array, len(ts))
	col := make([]types.Datum, len(keys))
	for k, t := range ts {
		for i := range keys {
			col[i] = keys[i][k]
		}
		out[k] = vec.FromDatums(t, col)
	}
	return out
}

// inOrder puts the rows of b into the order of the keys that they belong to.
func inOrder(b *vec.Batch, which []int32) *vec.Batch {
	if slices.IsSorted(which) {
		return b
	}
	idx := make([]int32, len(which))
	for i := range idx {
		idx[i] = int32(i)
	}
	slices.SortStableFunc(idx, func(x, y int32) int { return int(which[x]) - int(which[y]) })
	out := &vec.Batch{Schema: b.Schema, N: len(idx), Cols: make([]arrow.Array, len(b.Cols))}
	for i, c := range b.Cols {
		out.Cols[i] = vec.Take(c, idx)
	}
	return out
}
