package vectorized

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// distinctStage is DISTINCT ON over sorted input, or DISTINCT over any input.
type distinctStage struct {
	sc    *scope
	n     *plan.DistinctOn
	req   request
	child stage
	acc   *mem.Account
}

func newDistinct(sc *scope, n *plan.DistinctOn, req request) (stage, error) {
	need := make([]bool, len(n.Input.Schema()))
	orNeed(need, req)
	for _, k := range n.Keys {
		slots(k, need)
	}
	if n.Keys == nil {
		need = nil
	}
	child, err := build(sc, n.Input, request{need: need, ordered: true, eager: req.eager})
	return &distinctStage{sc: sc, n: n, req: req, child: child, acc: sc.rt.acc.Child("work_mem", 0)}, err
}

func (s *distinctStage) prepare(context.Context) (int, error) { return 1, nil }
func (s *distinctStage) close() {
	s.sc.rt.stats.Node(s.n.ID).peak(s.acc)
	s.child.close()
	s.acc.Close()
}

func (s *distinctStage) operator(int) (operator, error) {
	o := &distinctOp{s: s}
	for _, k := range s.n.Keys {
		e, err := compileExpr(k)
		if err != nil {
			return nil, err
		}
		o.keys = append(o.keys, e)
		o.cols = append(o.cols, vec.KeyColumn{Type: k.Type()})
	}
	return o, nil
}

type distinctOp struct {
	s       *distinctStage
	in      operator
	keys    []*evaluator
	cols    []vec.KeyColumn
	last    []arrow.Array // keys of the last row seen
	set     groupTable
	charged int64
	num     []uint32
}

func (o *distinctOp) close() {
	if o.in != nil {
		o.in.close()
	}
}

func (o *distinctOp) next(ctx context.Context) (*vec.Batch, error) {
	if o.in == nil {
		in, err := serialize(ctx, o.s.sc.rt, o.s.child)
		if err != nil {
			return nil, err
		}
		o.in = in
	}
	for {
		b, err := o.in.next(ctx)
		if err != nil || b == nil {
			return nil, err
		}
		if b.Size() == 0 {
			continue
		}
		var sel []uint16
		if o.s.n.Keys == nil {
			sel, err = o.unseen(b)
		} else {
			sel, err = o.firsts(ctx, b)
		}
		if err != nil {
			return nil, err
		}
		if len(sel) > 0 {
			out := *b
			out.Schema = o.s.n.Out
			out.Sel = sel
			return &out, nil
		}
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
	}
}

// unseen returns the rows of b that no earlier row equals.
func (o *distinctOp) unseen(b *vec.Batch) ([]uint16, error) {
	if o.set == nil {
		o.set = newGroupTable(schemaTypes(o.s.n.Input.Schema()), b.Cols, o.s.acc, false)
	}
	if cap(o.num) < b.Size() {
		o.num = make([]uint32, b.Size())
	}
	sel, err := newRows(o.set, b, b.Cols, o.num[:b.Size()])
	if err != nil {
		return nil, err
	}
	if d := o.set.size() - o.charged; d > 0 {
		if err := o.s.acc.Grow(d); err != nil {
			return nil, err
		}
		o.charged += d
	}
	return sel, nil
}

// newRows looks up the live rows of b and returns those that made a group, each
// group's first row, ascending.
func newRows(set groupTable, b *vec.Batch, cols []arrow.Array, num []uint32) ([]uint16, error) {
	base := uint32(set.len())
	if err := set.lookup(cols, b.N, b.Sel, num, false); err != nil {
		return nil, err
	}
	made := set.len() - int(base)
	if made == 0 {
		return nil, nil
	}
	seen := make([]bool, made)
	sel := make([]uint16, 0, made)
	for k, g := range num {
		if g >= base && !seen[g-base] {
			seen[g-base] = true
			r := uint16(k)
			if b.Sel != nil {
				r = b.Sel[k]
			}
			sel = append(sel, r)
		}
	}
	return sel, nil
}

func schemaTypes(s types.Schema) []types.Type { return s.Types() }

// firsts returns the rows of b whose keys differ from the row before.
func (o *distinctOp) firsts(ctx context.Context, b *vec.Batch) ([]uint16, error) {
	x := o.s.sc.eval(ctx)
	cols := make([]arrow.Array, len(o.keys))
	for i, k := range o.keys {
		var err error
		if cols[i], err = k.column(x, b); err != nil {
			return nil, err
		}
	}
	same := vec.NewRowCompare(o.cols, cols, cols)
	sel := []uint16{}
	prev := -1
	eachRow(b, func(i int) {
		switch {
		case prev >= 0:
			if same(i, prev) != 0 {
				sel = append(sel, uint16(i))
			}
		case o.last == nil || vec.NewRowCompare(o.cols, cols, o.last)(i, 0) != 0:
			sel = append(sel, uint16(i))
		}
		prev = i
	})
	o.last = make([]arrow.Array, len(cols))
	for k := range cols {
		o.last[k] = vec.Take(cols[k], []int32{int32(prev)})
	}
	return sel, nil
}
