package vectorized

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

type makeArrayNode struct {
	args []evalNode
	t    types.Type
}

func (n *makeArrayNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	rows := b.N
	srcs := make([]arrow.Array, len(n.args))
	consts := make([]bool, len(n.args))
	for k, a := range n.args {
		v, err := a.eval(x, b, sel)
		if err != nil {
			return vec.Vec{}, err
		}
		srcs[k], consts[k] = v.Arr, v.Const
	}
	offs := make([]int32, rows+1)
	size := liveRows(b, sel) * len(n.args)
	src, row := make([]uint16, 0, size), make([]uint32, 0, size)
	at := 0
	for i := range rows {
		if sel == nil || at < len(sel) && int(sel[at]) == i {
			at++
			for k := range srcs {
				r := uint32(i)
				if consts[k] {
					r = 0
				}
				src, row = append(src, uint16(k)), append(row, r)
			}
		}
		offs[i+1] = int32(len(src))
	}
	et := types.Of(types.Text)
	if n.t.Elem != nil {
		et = *n.t.Elem
	}
	if et.Kind == types.Array {
		if err := n.rectangular(srcs, consts, rows, sel); err != nil {
			return vec.Vec{}, err
		}
	}
	child := vec.Decode(vec.Gather(et.Arrow(), srcs, src, row))
	return vec.Vec{Arr: vec.MakeList(arrow.ListOf(child.DataType()), offs, child, nil)}, nil
}

// rectangular checks that the arrays put together are of one length, as those of
// a PostgreSQL array of several dimensions are.
func (n *makeArrayNode) rectangular(srcs []arrow.Array, consts []bool, rows int, sel []uint16) error {
	lists := make([][]int32, len(srcs))
	for k, a := range srcs {
		lists[k], _ = vec.ListParts(a)
	}
	for j := range liveN(rows, sel) {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		size := int32(-1)
		for k, a := range srcs {
			r := i
			if consts[k] {
				r = 0
			}
			m := int32(0)
			if a.IsValid(r) {
				m = lists[k][r+1] - lists[k][r]
			}
			if size >= 0 && m != size {
				return pgerr.New(pgerr.ArraySubscriptError, "multidimensional arrays must have array expressions with matching dimensions")
			}
			size = m
		}
	}
	return nil
}

type makeRowNode struct {
	args []evalNode
	t    types.Type
}

func (n *makeRowNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	ch := make([]arrow.Array, len(n.args))
	fs := make([]arrow.Field, len(n.args))
	for k, a := range n.args {
		v, err := a.eval(x, b, sel)
		if err != nil {
			return vec.Vec{}, err
		}
		ch[k] = vec.Decode(v.Column(b.N))
		fs[k] = arrow.Field{Type: ch[k].DataType(), Nullable: true}
		if k < len(n.t.Fields) {
			fs[k].Name = n.t.Fields[k].Name
		}
	}
	return vec.Vec{Arr: vec.MakeStruct(arrow.StructOf(fs...), b.N, ch, nil)}, nil
}

type fieldNode struct {
	arg   evalNode
	index int
	dt    arrow.DataType
}

func (n *fieldNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	v, err := n.arg.eval(x, b, sel)
	if err != nil {
		return v, err
	}
	s, ok := v.Arr.(*array.Struct)
	if !ok || n.index >= s.NumField() {
		return constNull(n.dt), nil
	}
	f := s.Field(n.index)
	valid, off := vec.Validity(s)
	if valid == nil {
		return vec.Vec{Arr: f, Const: v.Const}, nil
	}
	idx := make([]int32, s.Len())
	for i := range idx {
		idx[i] = int32(i)
		if !vec.BitAt(valid, off+i) {
			idx[i] = -1
		}
	}
	return vec.Vec{Arr: vec.TakeNull(f, idx), Const: v.Const}, nil
}

// subscriptNode is a[i], a[lo:hi] or map[key].
type subscriptNode struct {
	arg, index, low, high evalNode
	slice                 bool
	base                  int64 // of the first element: 1, but 0 for int2vector and oidvector
	argT                  types.Type
	dt                    arrow.DataType
}

func compileSubscript(e *plan.Subscript, depth int) (evalNode, error) {
	n := &subscriptNode{slice: e.Slice, base: 1, argT: e.Arg.Type(), dt: e.T.Arrow()}
	if k := n.argT.Kind; k == types.Int2Vector || k == types.OIDVector {
		n.base = 0
	}
	var err error
	for _, p := range []struct {
		e  plan.Expr
		to *evalNode
	}{{e.Arg, &n.arg}, {e.Index, &n.index}, {e.Low, &n.low}, {e.High, &n.high}} {
		if p.e == nil {
			continue
		}
		if *p.to, err = compile(p.e, depth); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *subscriptNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	if liveRows(b, sel) == 0 {
		return constNull(n.dt), nil
	}
	v, err := n.arg.eval(x, b, sel)
	if err != nil {
		return v, err
	}
	if n.slice {
		return n.evalSlice(x, b, sel, v)
	}
	i, err := n.index.eval(x, b, sel)
	if err != nil {
		return v, err
	}
	if n.argT.Kind == types.Map {
		return n.lookup(b, sel, v, i)
	}
	offs, child := vec.ListParts(v.Arr)
	idx := make([]int32, b.N)
	for k := range idx {
		idx[k] = -1
	}
	for j := range liveRows(b, sel) {
		r := j
		if sel != nil {
			r = int(sel[j])
		}
		ar, ir := at(v, r), at(i, r)
		if v.Arr.IsNull(ar) || i.Arr.IsNull(ir) {
			continue
		}
		k := intAt(i.Arr, ir) - n.base
		if k >= 0 && k < int64(offs[ar+1]-offs[ar]) {
			idx[r] = offs[ar] + int32(k)
		}
	}
	return vec.Vec{Arr: vec.TakeNull(child, idx)}, nil
}

func at(v vec.Vec, i int) int {
	if v.Const {
		return 0
	}
	return i
}

func (n *subscriptNode) lookup(b *vec.Batch, sel []uint16, v, key vec.Vec) (vec.Vec, error) {
	offs, child := vec.ListParts(v.Arr)
	entries := child.(*array.Struct)
	idx := make([]int32, b.N)
	for k := range idx {
		idx[k] = -1
	}
	eq := vec.NewEqual(*n.argT.Key, entries.Field(0), key.Arr)
	for j := range liveRows(b, sel) {
		r := j
		if sel != nil {
			r = int(sel[j])
		}
		mr, kr := at(v, r), at(key, r)
		if v.Arr.IsNull(mr) || key.Arr.IsNull(kr) {
			continue
		}
		for e := offs[mr]; e < offs[mr+1]; e++ {
			if eq(int(e), kr) {
				idx[r] = e
				break
			}
		}
	}
	return vec.Vec{Arr: vec.TakeNull(entries.Field(1), idx)}, nil
}

func (n *subscriptNode) evalSlice(x *evalContext, b *vec.Batch, sel []uint16, v vec.Vec) (vec.Vec, error) {
	var lo, hi vec.Vec
	var err error
	if n.low != nil {
		if lo, err = n.low.eval(x, b, sel); err != nil {
			return v, err
		}
	}
	if n.high != nil {
		if hi, err = n.high.eval(x, b, sel); err != nil {
			return v, err
		}
	}
	offs, child := vec.ListParts(v.Arr)
	out := make([]int32, b.N+1)
	valid := vec.NewBitmap(b.N)
	var rows []int32
	next := 0
	for r := range b.N {
		out[r+1] = int32(len(rows))
		if sel != nil {
			if next >= len(sel) || int(sel[next]) != r {
				continue
			}
			next++
		}
		ar := at(v, r)
		if v.Arr.IsNull(ar) || lo.Arr != nil && lo.Arr.IsNull(at(lo, r)) || hi.Arr != nil && hi.Arr.IsNull(at(hi, r)) {
			continue
		}
		vec.SetBit(valid, r)
		size := int64(offs[ar+1] - offs[ar])
		from, to := int64(0), size
		if lo.Arr != nil {
			from = max(0, intAt(lo.Arr, at(lo, r))-n.base)
		}
		if hi.Arr != nil {
			to = min(size, intAt(hi.Arr, at(hi, r))-n.base+1)
		}
		for k := from; k < to; k++ {
			rows = append(rows, offs[ar]+int32(k))
		}
		out[r+1] = int32(len(rows))
	}
	c := vec.Take(child, rows)
	return vec.Vec{Arr: vec.MakeList(arrow.ListOf(c.DataType()), out, c, valid)}, nil
}
