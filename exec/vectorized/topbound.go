package vectorized

import (
	"bytes"
	"math"
	"sync"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

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
// need not be read. It only ever gets tighter. Rows are compared with it whatever the
// type is; storage is told of it where statistics have the order of SQL.
type topBound struct {
	usable     bool // storage understands bounds of the type
	desc       bool
	nullsFirst bool
	t          types.Type
	ints       bool
	mu         sync.Mutex // guards the writing side
	at         atomic.Pointer[boundValue]
	nulls      atomic.Bool // with NULLs first, nothing but NULLs is wanted any more
}

// boundValue is a bound in the forms in which arrays are compared with it. It does not
// change.
type boundValue struct {
	key   []byte // normalised, without NULLs and ascending
	d     types.Datum
	i     int64
	f     float64
	s     []byte
	dec   decimal128.Num
	scale int32 // of dec, -1 = there is none
}

func newTopBound(t types.Type, desc, nullsFirst bool) *topBound {
	b := &topBound{t: t, desc: desc, nullsFirst: nullsFirst}
	b.ints = t.IsInteger() || t.Kind == types.Date || t.Kind == types.Timestamp || t.Kind == types.TimestampTZ || t.Kind == types.Time
	switch t.Kind {
	case types.Text, types.Varchar, types.Bytea, types.Numeric, types.Float4, types.Float8, types.Bool:
		b.usable = true
	default:
		b.usable = b.ints
	}
	return b
}

// cheap reports whether comparing a row costs less than making its sort key.
func (b *topBound) cheap() bool {
	switch b.t.Kind {
	case types.Text, types.Varchar, types.Bytea, types.Float4, types.Float8:
		return true
	case types.Numeric:
		return b.t.Prec > 0
	}
	return b.ints
}

func (b *topBound) keyer(a arrow.Array) *vec.Keyer {
	return vec.NewKeyer([]vec.KeyColumn{{Type: b.t}}, []arrow.Array{a})
}

// tighten offers row i of a key column.
func (b *topBound) tighten(a arrow.Array, i int) {
	if a.IsNull(i) {
		if b.nullsFirst {
			b.nulls.Store(true)
		}
		return
	}
	key := b.keyer(a).Append(nil, i)
	b.mu.Lock()
	defer b.mu.Unlock()
	if old := b.at.Load(); old != nil {
		if c := bytes.Compare(key, old.key); !b.desc && c >= 0 || b.desc && c <= 0 {
			return
		}
	}
	v := &boundValue{key: key, d: vec.DatumAt(a, b.t, i), scale: -1}
	switch d := v.d.(type) {
	case int64:
		v.i = d
	case float64:
		v.f = d
	case string:
		v.s = []byte(d)
	case []byte:
		v.s = d
	}
	if x, ok := a.(*array.Decimal128); ok {
		v.dec, v.scale = x.Value(i), x.DataType().(*arrow.Decimal128Type).Scale
	}
	b.at.Store(v)
}

// predicate says in storage's language what the column may be; nil = anything.
func (b *topBound) predicate(leaf predicate.Leaf) predicate.Node {
	same := leaf.Type.Kind == b.t.Kind || plainText(leaf.Type.Kind) && plainText(b.t.Kind)
	if !b.usable || !same || leaf.Type.IsNanos() != b.t.IsNanos() {
		return nil
	}
	null := leaf
	null.Op, null.Args = predicate.IsNull, nil
	if b.nulls.Load() {
		return &null
	}
	v := b.at.Load()
	if v == nil {
		return nil
	}
	if f, ok := v.d.(float64); ok && math.IsNaN(f) {
		return nil // above all numbers, which statistics do not know
	}
	leaf.Op, leaf.Args = predicate.LtEq, []types.Datum{v.d}
	if b.desc {
		leaf.Op = predicate.GtEq
	}
	if b.nullsFirst {
		return &predicate.Or{Args: []predicate.Node{&leaf, &null}}
	}
	return &leaf
}

// selectRows narrows sel to rows within the bound; -1 when there is none yet.
func (b *topBound) selectRows(a arrow.Array, rows int, sel, out []uint16) int {
	only, v := b.nulls.Load(), b.at.Load()
	if !only && v == nil {
		return -1
	}
	valid, off := vec.Validity(a)
	if !b.nullsFirst {
		if valid != nil {
			sel = out[:vec.SelectValid(valid, off, rows, sel, out)]
		}
		return b.selectValues(v, a, rows, sel, out)
	}
	if valid == nil {
		if only {
			return 0
		}
		return b.selectValues(v, a, rows, sel, out)
	}
	nulls := make([]uint16, liveN(rows, sel))
	nulls = nulls[:vec.SelectNull(valid, off, rows, sel, nulls)]
	if only {
		return copy(out, nulls)
	}
	values := make([]uint16, liveN(rows, sel))
	values = values[:vec.SelectValid(valid, off, rows, sel, values)]
	values = values[:b.selectValues(v, a, rows, values, values)]
	return vec.Union(nulls, values, out)
}

// selectValues narrows rows that are not NULL to those within v.
func (b *topBound) selectValues(v *boundValue, a arrow.Array, rows int, sel, out []uint16) int {
	op := vec.OpLe
	if b.desc {
		op = vec.OpGe
	}
	if b.t.Kind == types.BpChar || !b.cheap() {
		return b.selectKeys(op, v, a, rows, sel, out)
	}
	switch x := a.(type) {
	case *array.Int16:
		return selInt(op, vec.ViewOf[int16](a).V, v.i, math.MinInt16, math.MaxInt16, sel, out)
	case *array.Int32, *array.Date32:
		return selInt(op, vec.ViewOf[int32](a).V, v.i, math.MinInt32, math.MaxInt32, sel, out)
	case *array.Int64, *array.Timestamp, *array.Time64:
		return vec.SelectConst(op, vec.ViewOf[int64](a).V, v.i, sel, out)
	case *array.Float32:
		return vec.SelectFloat(op, x.Float32Values(), float32(v.f), sel, out)
	case *array.Float64:
		return vec.SelectFloat(op, x.Float64Values(), v.f, sel, out)
	case *array.Decimal128:
		if v.scale == x.DataType().(*arrow.Decimal128Type).Scale {
			return vec.SelectDec(op, x.Values(), v.dec, sel, out)
		}
	case *array.String, *array.Binary:
		if b.t.Kind != types.Numeric {
			s := vec.ViewStr(a)
			return vec.SelectStr(op, &s, v.s, sel, out)
		}
	case *array.Dictionary:
		if idx, dict, ok := vec.DictView(a); ok && b.t.Kind != types.Numeric {
			return selectDict(op, idx, vec.ViewStr(dict), v.s, rows, sel, out)
		}
	}
	return b.selectKeys(op, v, a, rows, sel, out)
}

// selectDict is vec.SelectStr for a dictionary: each of its values is compared once.
func selectDict(op vec.CmpOp, idx []int32, s vec.StrView, c []byte, rows int, sel, out []uint16) int {
	n, k := liveN(rows, sel), 0
	known := make([]int8, len(s.Offs)) // 1 = passes, -1 = fails
	for i := range n {
		r := uint16(i)
		if sel != nil {
			r = sel[i]
		}
		j := idx[r]
		if known[j] == 0 {
			if known[j] = -1; op.Holds(bytes.Compare(s.At(int(j)), c)) {
				known[j] = 1
			}
		}
		out[k] = r
		if known[j] > 0 {
			k++
		}
	}
	return k
}

// selectKeys compares normalised keys, which all types have.
func (b *topBound) selectKeys(op vec.CmpOp, v *boundValue, a arrow.Array, rows int, sel, out []uint16) int {
	n, k := liveN(rows, sel), 0
	kr := b.keyer(a)
	var buf []byte
	for i := range n {
		r := uint16(i)
		if sel != nil {
			r = sel[i]
		}
		buf = kr.Append(buf[:0], int(r))
		out[k] = r
		if op.Holds(bytes.Compare(buf, v.key)) {
			k++
		}
	}
	return k
}
