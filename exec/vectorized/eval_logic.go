package vectorized

import (
	"sort"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

var arrowBool = arrow.FixedWidthTypes.Boolean

// logicNode is AND (absorbing false) or OR (absorbing true): one argument with
// the absorbing value decides, and the next arguments are asked only about the
// rows that are still open.
type logicNode struct {
	args      []evalNode
	absorbing bool
	// Arguments that cannot fail come first and are reordered as the data
	// suggests: an argument that drops many rows cheaply goes to the front. The
	// others stay behind them in the order written, so a guard stays a guard.
	safe     int
	cost     []float64
	in, kept []int64
	calls    int
	bufs     [5][]uint16
	state    []uint8
}

func compileLogic(es []plan.Expr, absorbing bool, depth int) (evalNode, error) {
	n := &logicNode{absorbing: absorbing}
	var unsafe []evalNode
	for _, e := range es {
		a, err := compile(e, depth)
		if err != nil {
			return nil, err
		}
		if c, ok := costOf(a); ok {
			n.args = append(n.args, a)
			n.cost = append(n.cost, c)
		} else {
			unsafe = append(unsafe, a)
		}
	}
	n.safe = len(n.args)
	n.args = append(n.args, unsafe...)
	n.in, n.kept = make([]int64, len(n.args)), make([]int64, len(n.args))
	return n, nil
}

// costOf returns a rough cost per row of a condition that cannot fail.
func costOf(n evalNode) (float64, bool) {
	switch n := n.(type) {
	case *cmpNode:
		return n.cost, n.plain
	case *isNullNode:
		_, ok := n.arg.(*slotNode)
		return 1, ok
	case *inNode:
		_, ok := n.arg.(*slotNode)
		return 4, ok
	case *slotNode, *constNode:
		return 1, true
	case *logicNode:
		if n.safe < len(n.args) {
			return 0, false
		}
		sum := 1.0
		for _, c := range n.cost {
			sum += c
		}
		return sum, true
	case *notNode:
		return costOf(n.arg)
	}
	return 0, false
}

// reorder sorts the safe arguments by cost per row dropped.
func (n *logicNode) reorder() {
	idx := make([]int, n.safe)
	rank := make([]float64, n.safe)
	for i := range idx {
		idx[i] = i
		dropped := 0.5
		if n.in[i] > 0 {
			dropped = 1 - float64(n.kept[i])/float64(n.in[i])
		}
		rank[i] = n.cost[i] / (dropped + 0.001)
	}
	sort.SliceStable(idx, func(a, b int) bool { return rank[idx[a]] < rank[idx[b]] })
	args, cost := append([]evalNode(nil), n.args...), append([]float64(nil), n.cost...)
	in, kept := append([]int64(nil), n.in...), append([]int64(nil), n.kept...)
	for to, from := range idx {
		n.args[to], n.cost[to], n.in[to], n.kept[to] = args[from], cost[from], in[from]/2, kept[from]/2
	}
}

func (n *logicNode) selectRows(x *evalContext, b *vec.Batch, sel []uint16, want bool, out []uint16) (int, error) {
	if want == n.absorbing {
		return n.selectAny(x, b, sel, out)
	}
	if n.safe > 1 {
		if n.calls++; n.calls&31 == 8 {
			n.reorder()
		}
	}
	k := liveRows(b, sel)
	for i, a := range n.args {
		got, err := selectNode(a, x, b, sel, want, out)
		if err != nil {
			return 0, err
		}
		n.in[i] += int64(k)
		n.kept[i] += int64(got)
		k = got
		sel = out[:k]
		if k == 0 {
			return 0, nil
		}
	}
	if sel == nil {
		return copySel(b.N, nil, out), nil
	}
	return k, nil
}

// selectAny selects rows for which some argument has the absorbing value.
func (n *logicNode) selectAny(x *evalContext, b *vec.Batch, sel []uint16, out []uint16) (int, error) {
	size := liveRows(b, sel)
	for i := range n.bufs {
		n.bufs[i] = grow(n.bufs[i], size)
	}
	// out may share memory with sel, so it is written last. What is still open
	// and what was found alternate between two buffers each.
	rest, hit := sel, n.bufs[0]
	acc := n.bufs[1][:0]
	turn, accTurn := 0, 0
	for _, a := range n.args {
		k, err := selectNode(a, x, b, rest, n.absorbing, hit[:liveRows(b, rest)])
		if err != nil {
			return 0, err
		}
		if k == 0 {
			continue
		}
		if len(acc) == 0 {
			acc = n.bufs[1+accTurn][:copy(n.bufs[1+accTurn], hit[:k])]
		} else {
			accTurn ^= 1
			to := n.bufs[1+accTurn]
			acc = to[:vec.Union(acc, hit[:k], to)]
		}
		to := n.bufs[3+turn]
		turn ^= 1
		rest = to[:vec.Without(b.N, rest, hit[:k], to)]
		if len(rest) == 0 {
			break
		}
	}
	return copy(out, acc), nil
}

func (n *logicNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	size := liveRows(b, sel)
	if cap(n.state) < b.N {
		n.state = make([]uint8, b.N)
	}
	// 0 false, 1 true, 2 NULL
	state := n.state[:b.N]
	start, stop := uint8(1), uint8(0)
	if n.absorbing {
		start, stop = 0, 1
	}
	for i := range state {
		state[i] = start
	}
	buf := grow(n.bufs[0], size)
	n.bufs[0] = buf
	open := sel
	for _, a := range n.args {
		if open != nil && len(open) == 0 {
			break
		}
		v, err := a.eval(x, b, open)
		if err != nil {
			return vec.Vec{}, err
		}
		if v.Const {
			switch {
			case v.Arr.IsNull(0):
				setState(state, open, 2)
			case v.Arr.(*array.Boolean).Value(0) == n.absorbing:
				setState(state, open, stop)
				open = buf[:0]
			}
			continue
		}
		d := v.Arr.Data()
		bits, off := d.Buffers()[1].Bytes(), d.Offset()
		valid, _ := vec.Validity(v.Arr)
		k := 0
		for j := range liveRows(b, open) {
			i := j
			if open != nil {
				i = int(open[j])
			}
			p := off + i
			buf[k] = uint16(i)
			switch {
			case valid != nil && valid[p>>3]&(1<<(p&7)) == 0:
				state[i] = 2
				k++
			case bits[p>>3]>>(p&7)&1 == stop:
				state[i] = stop
			default:
				k++
			}
		}
		open = buf[:k]
	}
	return vec.Vec{Arr: stateArray(state)}, nil
}

func setState(state []uint8, rows []uint16, s uint8) {
	if rows == nil {
		for i := range state {
			state[i] = s
		}
		return
	}
	for _, i := range rows {
		state[i] = s
	}
}

// stateArray makes a boolean column of 0 false, 1 true, 2 NULL.
func stateArray(state []uint8) arrow.Array {
	n := len(state)
	bits := vec.NewBitmap(n)
	var valid []byte
	for i, s := range state {
		bits[i>>3] |= (s & 1) << (i & 7)
		if s == 2 {
			if valid == nil {
				valid = vec.FullBitmap(n)
			}
			vec.ClearBit(valid, i)
		}
	}
	return vec.MakeBool(n, bits, valid)
}

type notNode struct{ arg evalNode }

func (n *notNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	v, err := n.arg.eval(x, b, sel)
	if err != nil {
		return v, err
	}
	d := v.Arr.Data()
	rows := d.Len()
	bits := vec.NewBitmap(rows)
	if rows > 0 && d.Buffers()[1] != nil {
		bits = vec.CopyBits(d.Buffers()[1].Bytes(), d.Offset(), rows)
	}
	for i := range bits {
		bits[i] = ^bits[i]
	}
	return vec.Vec{Arr: vec.MakeBool(rows, bits, vec.ValidCopy(v.Arr)), Const: v.Const}, nil
}

func (n *notNode) selectRows(x *evalContext, b *vec.Batch, sel []uint16, want bool, out []uint16) (int, error) {
	return selectNode(n.arg, x, b, sel, !want, out)
}

type isNullNode struct {
	arg evalNode
	not bool
	row bool
}

func (n *isNullNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	v, err := n.arg.eval(x, b, sel)
	if err != nil {
		return v, err
	}
	rows := v.Arr.Len()
	state := make([]uint8, rows)
	if n.row {
		rowNulls(v.Arr, n.not, state)
	} else {
		valid, off := vec.Validity(v.Arr)
		for i := range state {
			if vec.BitAt(valid, off+i) == n.not {
				state[i] = 1
			}
		}
	}
	return vec.Vec{Arr: vec.MakeBool(rows, vec.PackBools(state), nil), Const: v.Const}, nil
}

// rowNulls applies PostgreSQL's rule: a row IS NULL when it is, or all members
// are; it IS NOT NULL when no member is.
func rowNulls(a arrow.Array, not bool, state []uint8) {
	s, ok := a.(*array.Struct)
	if !ok {
		return
	}
	for i := range state {
		if s.IsNull(i) {
			if !not {
				state[i] = 1
			}
			continue
		}
		hit := true
		for f := range s.NumField() {
			if s.Field(f).IsNull(i) == not {
				hit = false
				break
			}
		}
		if hit {
			state[i] = 1
		}
	}
}

func (n *isNullNode) selectRows(x *evalContext, b *vec.Batch, sel []uint16, want bool, out []uint16) (int, error) {
	if n.row {
		v, err := n.eval(x, b, sel)
		if err != nil {
			return 0, err
		}
		return selectBool(v, b.N, sel, want, out), nil
	}
	v, err := n.arg.eval(x, b, sel)
	if err != nil {
		return 0, err
	}
	null := n.not != want // NULL rows are wanted
	if v.Const {
		if v.Arr.IsNull(0) == null {
			return copySel(b.N, sel, out), nil
		}
		return 0, nil
	}
	valid, off := vec.Validity(v.Arr)
	switch {
	case valid == nil && null:
		return 0, nil
	case valid == nil:
		return copySel(b.N, sel, out), nil
	case null:
		return vec.SelectNull(valid, off, b.N, sel, out), nil
	}
	return vec.SelectValid(valid, off, b.N, sel, out), nil
}

type isBoolNode struct {
	arg  evalNode
	test plan.BoolTest
	not  bool
}

func (n *isBoolNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	v, err := n.arg.eval(x, b, sel)
	if err != nil {
		return v, err
	}
	a := v.Arr.(*array.Boolean)
	state := make([]uint8, a.Len())
	for i := range state {
		var hit bool
		switch n.test {
		case plan.TestTrue:
			hit = a.IsValid(i) && a.Value(i)
		case plan.TestFalse:
			hit = a.IsValid(i) && !a.Value(i)
		default:
			hit = a.IsNull(i)
		}
		if hit != n.not {
			state[i] = 1
		}
	}
	return vec.Vec{Arr: vec.MakeBool(a.Len(), vec.PackBools(state), nil), Const: v.Const}, nil
}

// distinctNode is IS [NOT] DISTINCT FROM: equality to which NULL is a value.
type distinctNode struct {
	eq   *callNode
	not  bool
	both []uint16
}

func compileDistinct(e *plan.Distinct, depth int) (evalNode, error) {
	c, err := newCall(e.Eq, []plan.Expr{e.Left, e.Right}, boolT, depth)
	return &distinctNode{eq: c, not: e.Not}, err
}

func (n *distinctNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	if liveRows(b, sel) == 0 {
		return constNull(arrowBool), nil
	}
	if _, _, err := n.eq.evalArgs(x, b, sel); err != nil {
		return vec.Vec{}, err
	}
	l, r := n.eq.vs[0], n.eq.vs[1]
	isConst := l.Const && r.Const
	rows := b.N
	if isConst {
		rows, sel = 1, nil
	}
	state := make([]uint8, rows) // 1 = distinct
	n.both = n.both[:0]
	for j := range liveN(rows, sel) {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		p, q := validAt(l, i), validAt(r, i)
		switch {
		case p && q:
			n.both = append(n.both, uint16(i))
		case p != q:
			state[i] = 1
		}
	}
	if len(n.both) > 0 {
		v, err := n.eq.apply(x, rows, n.both, 0)
		if isConst {
			n.eq.vs[0].Const, n.eq.vs[1].Const = true, true
			v, err = n.eq.apply(x, 1, nil, 2)
		}
		if err != nil {
			return vec.Vec{}, err
		}
		a := v.Arr.(*array.Boolean)
		for _, i := range n.both {
			if !a.Value(int(i)) {
				state[i] = 1
			}
		}
	}
	if n.not {
		for i := range state {
			state[i] ^= 1
		}
	}
	return vec.Vec{Arr: vec.MakeBool(rows, vec.PackBools(state), nil), Const: isConst}, nil
}

func validAt(v vec.Vec, i int) bool {
	if v.Const {
		i = 0
	}
	return v.Arr.IsValid(i)
}
