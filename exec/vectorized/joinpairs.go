package vectorized

import (
	"context"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// pairer turns pairs of a left row (of the batch at hand) and a right row (of a
// rowStore) into the output of any kind of join: hash joins and nested loops
// find the pairs, this is what becomes of them. One per worker.
type pairer struct {
	kind     plan.JoinKind
	single   bool
	residual *evaluator // nil = none; over left ++ right
	resNeed  []bool     // columns that residual uses
	req      request
	schema   types.Schema
	left     int // columns of the left side
	right    *rowStore
	rightT   types.Schema
	x        *evalContext

	b       *vec.Batch
	matched []uint8 // by row of b: bit 0 a match, bit 1 a comparison was NULL
	built   []byte  // bitmap of right rows with a match; Right and Full only
	sel     []uint16
}

func (p *pairer) start(b *vec.Batch) {
	p.b = b
	if cap(p.matched) < b.N {
		p.matched = make([]uint8, b.N)
	}
	p.matched = p.matched[:b.N]
	clear(p.matched)
}

// tracks says that the matches of rows must be known before the batch ends.
func (p *pairer) tracks() bool {
	switch p.kind {
	case plan.Inner, plan.Right:
		return p.single
	}
	return true
}

// marksOnly says that pairs give no rows themselves.
func (p *pairer) marksOnly() bool {
	switch p.kind {
	case plan.Semi, plan.Anti, plan.NullAnti, plan.Mark:
		return true
	}
	return false
}

// pairs takes pairs (l[k], r[k]) and returns the rows they give, or nil. The
// slices are scratch of the caller; they may be reordered.
func (p *pairer) pairs(ctx context.Context, l []uint16, r []int32) (*vec.Batch, error) {
	if len(l) == 0 {
		return nil, nil
	}
	if p.residual != nil {
		k, err := p.filter(ctx, l, r)
		if err != nil {
			return nil, err
		}
		l, r = l[:k], r[:k]
	}
	if p.tracks() {
		for _, i := range l {
			if p.single && p.matched[i]&1 != 0 {
				return nil, errTooManyRows()
			}
			p.matched[i] |= 1
		}
	}
	if p.built != nil {
		for _, i := range r {
			p.built[i>>3] |= 1 << (i & 7)
		}
	}
	if p.marksOnly() || len(l) == 0 {
		return nil, nil
	}
	return p.gather(l, r, false), nil
}

// filter keeps the pairs for which the residual condition is true.
func (p *pairer) filter(ctx context.Context, l []uint16, r []int32) (int, error) {
	p.x.ctx = ctx
	mid := &vec.Batch{N: len(l), Cols: make([]arrow.Array, p.left+len(p.rightT))}
	for i := range mid.Cols {
		switch {
		case !p.resNeed[i]:
		case i < p.left:
			mid.Cols[i] = vec.Take(p.b.Cols[i], l)
		default:
			mid.Cols[i] = p.right.cols[i-p.left].take(p.rightT[i-p.left].Type.Arrow(), r, false)
		}
	}
	if p.kind == plan.Mark || p.kind == plan.NullAnti {
		// The mark is NULL where the condition is, and NOT IN fails there.
		v, err := p.residual.root.eval(p.x, mid, nil)
		if err != nil {
			return 0, err
		}
		a := v.Column(mid.N).(*array.Boolean)
		k := 0
		for j := range l {
			switch {
			case a.IsNull(j):
				p.matched[l[j]] |= 2
				if p.kind == plan.NullAnti {
					p.matched[l[j]] |= 1
				}
			case a.Value(j):
				l[k], r[k] = l[j], r[j]
				k++
			}
		}
		return k, nil
	}
	sel, err := p.residual.selectRows(p.x, mid)
	if err != nil {
		return 0, err
	}
	for k, j := range sel {
		l[k], r[k] = l[j], r[j]
	}
	return len(sel), nil
}

// gather makes the output rows of pairs; with null a negative right row gives
// NULLs.
func (p *pairer) gather(l []uint16, r []int32, null bool) *vec.Batch {
	out := &vec.Batch{Schema: p.schema, Cols: make([]arrow.Array, len(p.schema)), N: len(l)}
	for i := range out.Cols {
		switch {
		case !p.req.needs(i):
		case i < p.left:
			out.Cols[i] = vec.Take(p.b.Cols[i], l)
		default:
			out.Cols[i] = p.right.cols[i-p.left].take(p.rightT[i-p.left].Type.Arrow(), r, null)
		}
	}
	return out
}

// unique is pairs for a build side without duplicates: row i of b goes with
// right row idx[i] where i is in sel. Left columns are passed on as they are
// unless few rows are left.
func (p *pairer) unique(sel []uint16, idx []int32) *vec.Batch {
	if len(sel) == 0 {
		return nil
	}
	if len(sel)*2 < p.b.N {
		r := make([]int32, len(sel))
		for k, i := range sel {
			r[k] = idx[i]
		}
		return p.gather(sel, r, false)
	}
	out := &vec.Batch{Schema: p.schema, Cols: make([]arrow.Array, len(p.schema)), N: p.b.N}
	if len(sel) < p.b.N {
		out.Sel = append([]uint16(nil), sel...)
	}
	for i := range out.Cols {
		switch {
		case !p.req.needs(i):
		case i < p.left:
			out.Cols[i] = p.b.Cols[i]
		default:
			out.Cols[i] = p.right.cols[i-p.left].take(p.rightT[i-p.left].Type.Arrow(), idx, false)
		}
	}
	return out
}

// finish ends the batch: rows without a match, or, for the kinds that only ask
// whether there is one, the rows themselves.
func (p *pairer) finish() *vec.Batch {
	n := p.b.Size()
	switch p.kind {
	case plan.Inner, plan.Right:
		return nil
	case plan.Mark:
		return p.mark()
	}
	want := uint8(0)
	if p.kind == plan.Semi {
		want = 1
	}
	p.sel = grow(p.sel, n)
	k := 0
	for j := range n {
		i := j
		if p.b.Sel != nil {
			i = int(p.b.Sel[j])
		}
		p.sel[k] = uint16(i)
		if p.matched[i]&1 == want {
			k++
		}
	}
	sel := p.sel[:k]
	if k == 0 {
		return nil
	}
	if p.kind == plan.Left || p.kind == plan.Full {
		r := make([]int32, k)
		for i := range r {
			r[i] = -1
		}
		return p.gather(sel, r, true)
	}
	out := &vec.Batch{Schema: p.schema, Cols: p.b.Cols[:p.left:p.left], N: p.b.N}
	if k < p.b.N {
		out.Sel = append([]uint16(nil), sel...)
	}
	return out
}

func (p *pairer) mark() *vec.Batch {
	state := make([]uint8, p.b.N)
	for i, m := range p.matched {
		state[i] = m & 1
		if m == 2 {
			state[i] = 2
		}
	}
	return &vec.Batch{Schema: p.schema, Cols: append(p.b.Cols[:p.left:p.left], stateArray(state)), N: p.b.N, Sel: p.b.Sel}
}

// rightOnly makes output rows of right rows without a match.
func (p *pairer) rightOnly(r []int32) *vec.Batch {
	out := &vec.Batch{Schema: p.schema, Cols: make([]arrow.Array, len(p.schema)), N: len(r)}
	for i := range out.Cols {
		switch {
		case !p.req.needs(i):
		case i < p.left:
			out.Cols[i] = vec.MakeNull(p.schema[i].Type.Arrow(), len(r))
		default:
			out.Cols[i] = p.right.cols[i-p.left].take(p.rightT[i-p.left].Type.Arrow(), r, false)
		}
	}
	return out
}
