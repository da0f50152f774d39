package vectorized

import (
	"math"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// boundRequest asks a scan to use what a top-N knows of its first sort key.
type boundRequest struct {
	col int
	b   *topBound
	// rows, when not 0, is how many rows the top-N keeps of those that the node gives it:
	// none of them is dropped on the way.
	rows int64
}

// topBound is the worst first sort key that a top-N still keeps: rows beyond it
// need not be read. It only ever gets tighter.
type topBound struct {
	usable     bool // storage understands bounds of the type
	desc       bool
	nullsFirst bool
	t          types.Type
	ints       bool       // rows are compared one by one, too
	mu         sync.Mutex // guards the writing side
	set        atomic.Bool
	v          atomic.Int64                // integer-like keys
	d          atomic.Pointer[types.Datum] // the others; a nil Datum is NULL, as is nulls
	nulls      atomic.Bool                 // with NULLs first, nothing but NULLs is wanted any more
}

func newTopBound(t types.Type, desc, nullsFirst bool) *topBound {
	b := &topBound{t: t, desc: desc, nullsFirst: nullsFirst}
	b.ints = t.IsInteger() || t.Kind == types.Date || t.Kind == types.Timestamp || t.Kind == types.TimestampTZ || t.Kind == types.Time
	switch t.Kind {
	case types.Text, types.Varchar, types.Bytea, types.Numeric, types.Float4, types.Float8:
		b.usable = true
	default:
		b.usable = b.ints
	}
	return b
}

// selects reports whether single rows are compared with the bound.
func (b *topBound) selects() bool { return b.usable && b.ints }

// tighten offers row i of a key column.
func (b *topBound) tighten(a arrow.Array, i int) {
	if !b.usable {
		return
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	switch {
	case a.IsNull(i):
		if b.nullsFirst {
			b.nulls.Store(true)
		}
	case b.ints:
		v := intAt(a, i)
		if !b.set.Load() || !b.desc && v < b.v.Load() || b.desc && v > b.v.Load() {
			b.v.Store(v)
			b.set.Store(true)
		}
	default:
		d := vec.DatumAt(a, b.t, i)
		if f, ok := d.(float64); ok && math.IsNaN(f) {
			return // above all numbers, which statistics do not know
		}
		if old := b.d.Load(); old != nil {
			c, ok := predicate.Compare(b.t, d, *old)
			if !ok || !b.desc && c >= 0 || b.desc && c <= 0 {
				return
			}
		}
		b.d.Store(&d)
	}
}

// predicate says in storage's language what the column may be; nil = anything.
func (b *topBound) predicate(leaf predicate.Leaf) predicate.Node {
	if !b.usable || leaf.Type.Kind != b.t.Kind || leaf.Type.IsNanos() != b.t.IsNanos() {
		return nil
	}
	null := leaf
	null.Op, null.Args = predicate.IsNull, nil
	if b.nulls.Load() {
		return &null
	}
	leaf.Op = predicate.LtEq
	if b.desc {
		leaf.Op = predicate.GtEq
	}
	switch d := b.d.Load(); {
	case b.set.Load():
		leaf.Args = []types.Datum{b.v.Load()}
	case d != nil:
		leaf.Args = []types.Datum{*d}
	default:
		return nil
	}
	if b.nullsFirst {
		return &predicate.Or{Args: []predicate.Node{&leaf, &null}}
	}
	return &leaf
}

// selectRows narrows sel to rows within the bound; -1 when there is none yet.
func (b *topBound) selectRows(a arrow.Array, rows int, sel, out []uint16) int {
	if b.nullsFirst {
		return b.selectNulls(a, rows, sel, out)
	}
	if !b.set.Load() {
		return -1
	}
	if valid, off := vec.Validity(a); valid != nil {
		sel = out[:vec.SelectValid(valid, off, rows, sel, out)]
	}
	op := vec.OpLe
	if b.desc {
		op = vec.OpGe
	}
	c := b.v.Load()
	switch a.(type) {
	case *array.Int16:
		return selInt(op, vec.ViewOf[int16](a).V, c, math.MinInt16, math.MaxInt16, sel, out)
	case *array.Int32, *array.Date32:
		return selInt(op, vec.ViewOf[int32](a).V, c, math.MinInt32, math.MaxInt32, sel, out)
	}
	return vec.SelectConst(op, vec.ViewOf[int64](a).V, c, sel, out)
}

// selectNulls is selectRows where NULLs come first.
func (b *topBound) selectNulls(a arrow.Array, rows int, sel, out []uint16) int {
	only, set := b.nulls.Load(), b.set.Load()
	if !only && !set {
		return -1
	}
	c, valid, off := b.v.Load(), []byte(nil), 0
	valid, off = vec.Validity(a)
	n, k := liveN(rows, sel), 0
	for i := range n {
		r := uint16(i)
		if sel != nil {
			r = sel[i]
		}
		pass := valid != nil && !vec.BitAt(valid, off+int(r))
		if !pass && !only {
			v := intAt(a, int(r))
			pass = !b.desc && v <= c || b.desc && v >= c
		}
		out[k] = r
		if pass {
			k++
		}
	}
	return k
}
