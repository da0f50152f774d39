package vectorized

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// merger puts a column together from pieces that were computed for different
// rows. Rows that no piece covers are NULL.
type merger struct {
	dt      arrow.DataType
	srcs    []arrow.Array // srcs[0] is NULL
	src     []uint16
	row     []uint32
	covered int
}

func newMerger(dt arrow.DataType, n int) *merger {
	return &merger{dt: dt, srcs: make([]arrow.Array, 1, 4), src: make([]uint16, n), row: make([]uint32, n)}
}

// put says that rows sel (nil = all) come from v.
func (m *merger) put(v vec.Vec, sel []uint16) {
	s := uint16(len(m.srcs))
	m.srcs = append(m.srcs, v.Arr)
	if sel == nil {
		for i := range m.src {
			m.src[i] = s
			if !v.Const {
				m.row[i] = uint32(i)
			}
		}
		m.covered = len(m.src)
		return
	}
	for _, i := range sel {
		m.src[i] = s
		if !v.Const {
			m.row[i] = uint32(i)
		}
	}
	m.covered += len(sel)
}

func (m *merger) result() vec.Vec {
	if len(m.srcs) == 1 {
		return constNull(m.dt)
	}
	if m.covered < len(m.src) {
		m.srcs[0] = vec.MakeNull(vec.Plain(m.srcs[1].DataType()), 1)
	}
	return vec.Vec{Arr: vec.Gather(m.dt, m.srcs, m.src, m.row)}
}

type caseNode struct {
	conds, results []evalNode
	other          evalNode // nil = NULL
	dt             arrow.DataType
	bufs           [3][]uint16
}

func compileCase(e *plan.Case, depth int) (evalNode, error) {
	n := &caseNode{dt: e.T.Arrow()}
	for _, w := range e.Whens {
		c, err := compile(w.Cond, depth)
		if err != nil {
			return nil, err
		}
		r, err := compile(w.Result, depth)
		if err != nil {
			return nil, err
		}
		n.conds, n.results = append(n.conds, c), append(n.results, r)
	}
	if e.Else != nil {
		var err error
		if n.other, err = compile(e.Else, depth); err != nil {
			return nil, err
		}
	}
	return n, nil
}

func (n *caseNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	size := liveRows(b, sel)
	if size == 0 {
		return constNull(n.dt), nil
	}
	for i := range n.bufs {
		n.bufs[i] = grow(n.bufs[i], size)
	}
	rest := sel
	turn := 0
	var m *merger
	for i, c := range n.conds {
		k, err := selectNode(c, x, b, rest, true, n.bufs[0][:liveRows(b, rest)])
		if err != nil {
			return vec.Vec{}, err
		}
		if k == 0 {
			continue
		}
		hit := n.bufs[0][:k]
		if m == nil && k == size {
			return n.results[i].eval(x, b, sel)
		}
		v, err := n.results[i].eval(x, b, hit)
		if err != nil {
			return vec.Vec{}, err
		}
		if m == nil {
			m = newMerger(n.dt, b.N)
		}
		m.put(v, hit)
		to := n.bufs[1+turn]
		turn ^= 1
		rest = to[:vec.Without(b.N, rest, hit, to)]
		if len(rest) == 0 {
			return m.result(), nil
		}
	}
	if m == nil {
		if n.other == nil {
			return constNull(n.dt), nil
		}
		return n.other.eval(x, b, sel)
	}
	if n.other != nil {
		v, err := n.other.eval(x, b, rest)
		if err != nil {
			return vec.Vec{}, err
		}
		m.put(v, rest)
	}
	return m.result(), nil
}

type coalesceNode struct {
	args []evalNode
	dt   arrow.DataType
	bufs [3][]uint16
}

func (n *coalesceNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	size := liveRows(b, sel)
	if size == 0 {
		return constNull(n.dt), nil
	}
	for i := range n.bufs {
		n.bufs[i] = grow(n.bufs[i], size)
	}
	rest := sel
	turn := 0
	var m *merger
	for i, a := range n.args {
		v, err := a.eval(x, b, rest)
		if err != nil {
			return vec.Vec{}, err
		}
		valid, off := vec.Validity(v.Arr)
		last := i == len(n.args)-1
		if m == nil && (v.Const && v.Arr.IsValid(0) || !v.Const && valid == nil || last) {
			return v, nil
		}
		if v.Const && v.Arr.IsNull(0) {
			continue
		}
		if m == nil {
			m = newMerger(n.dt, b.N)
		}
		if v.Const || valid == nil {
			m.put(v, rest)
			break
		}
		// Rows of v that are not NULL are done; hit may not be rest itself.
		hit := n.bufs[0]
		hit = hit[:vec.SelectValid(valid, off, b.N, rest, hit[:liveRows(b, rest)])]
		m.put(v, hit)
		to := n.bufs[1+turn]
		turn ^= 1
		rest = to[:vec.Without(b.N, rest, hit, to)]
		if len(rest) == 0 {
			break
		}
	}
	if m == nil {
		return constNull(n.dt), nil
	}
	return m.result(), nil
}

// minMaxNode is GREATEST or LEAST, which ignore NULLs.
type minMaxNode struct {
	args     []evalNode
	less     *callNode
	greatest bool
	dt       arrow.DataType
}

func compileMinMax(e *plan.MinMax, depth int) (evalNode, error) {
	as, err := compileList(e.Args, depth)
	if err != nil {
		return nil, err
	}
	c := &callNode{f: e.Less, vs: make([]vec.Vec, 2), dt: arrowBool}
	c.call.Ret, c.call.State, c.call.ArgTypes = boolT, &c.state, []types.Type{e.T, e.T}
	return &minMaxNode{args: as, less: c, greatest: e.Greatest, dt: e.T.Arrow()}, nil
}

func (n *minMaxNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	if liveRows(b, sel) == 0 {
		return constNull(n.dt), nil
	}
	var cur arrow.Array
	for _, a := range n.args {
		v, err := a.eval(x, b, sel)
		if err != nil {
			return vec.Vec{}, err
		}
		next := vec.Decode(v.Column(b.N))
		if cur == nil {
			cur = next
			continue
		}
		var both, take []uint16
		for j := range liveRows(b, sel) {
			i := j
			if sel != nil {
				i = int(sel[j])
			}
			p, q := cur.IsValid(i), next.IsValid(i)
			switch {
			case p && q:
				both = append(both, uint16(i))
			case q:
				take = append(take, uint16(i))
			}
		}
		if len(both) > 0 {
			n.less.vs[0], n.less.vs[1] = vec.Vec{Arr: next}, vec.Vec{Arr: cur}
			if n.greatest {
				n.less.vs[0], n.less.vs[1] = n.less.vs[1], n.less.vs[0]
			}
			v, err := n.less.apply(x, b.N, both, 0)
			if err != nil {
				return vec.Vec{}, err
			}
			k := selectBool(v, b.N, both, true, both)
			t := make([]uint16, len(take)+k)
			take = t[:vec.Union(take, both[:k], t)]
		}
		if len(take) > 0 {
			m := newMerger(n.dt, b.N)
			m.put(vec.Vec{Arr: cur}, nil)
			m.put(vec.Vec{Arr: next}, take)
			m.covered = b.N
			cur = m.result().Arr
		}
	}
	return vec.Vec{Arr: cur}, nil
}

type nullIfNode struct {
	a  evalNode
	eq *callNode
	dt arrow.DataType
}

func compileNullIf(e *plan.NullIf, depth int) (evalNode, error) {
	a, err := compile(e.A, depth)
	if err != nil {
		return nil, err
	}
	cmp := e.CmpA
	if cmp == nil {
		cmp = e.A
	}
	c, err := newCall(e.Eq, []plan.Expr{cmp, e.B}, boolT, depth)
	return &nullIfNode{a: a, eq: c, dt: e.A.Type().Arrow()}, err
}

func (n *nullIfNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	if liveRows(b, sel) == 0 {
		return constNull(n.dt), nil
	}
	v, err := n.a.eval(x, b, sel)
	if err != nil {
		return vec.Vec{}, err
	}
	e, err := n.eq.eval(x, b, sel)
	if err != nil {
		return vec.Vec{}, err
	}
	if e.Const {
		if e.Arr.IsValid(0) && e.Arr.(*array.Boolean).Value(0) {
			return constNull(n.dt), nil
		}
		return v, nil
	}
	hit := make([]uint16, liveRows(b, sel))
	hit = hit[:selectBool(e, b.N, sel, true, hit)]
	if len(hit) == 0 {
		return v, nil
	}
	idx := make([]int32, b.N)
	for i := range idx {
		if !v.Const {
			idx[i] = int32(i)
		}
	}
	for _, i := range hit {
		idx[i] = -1
	}
	return vec.Vec{Arr: vec.TakeNull(v.Arr, idx)}, nil
}

// rowCompareNode compares row values member by member and stops at the first
// that decides.
type rowCompareNode struct {
	op       string
	eq, less []*callNode // less[i] compares (l, r) or, for > and >=, (r, l)
}

func compileRowCompare(e *plan.RowCompare, depth int) (evalNode, error) {
	n := &rowCompareNode{op: e.Op}
	for i := range e.Left {
		l, r := e.Left[i], e.Right[i]
		c, err := newCall(e.Eq[i], []plan.Expr{l, r}, boolT, depth)
		if err != nil {
			return nil, err
		}
		n.eq = append(n.eq, c)
		if e.Op == "=" || e.Op == "<>" {
			continue
		}
		if e.Op == ">" || e.Op == ">=" {
			l, r = r, l
		}
		c, err = newCall(e.Less[i], []plan.Expr{l, r}, boolT, depth)
		if err != nil {
			return nil, err
		}
		n.less = append(n.less, c)
	}
	return n, nil
}

func (n *rowCompareNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	state := make([]uint8, b.N)
	open := make([]uint16, liveRows(b, sel))
	copySel(b.N, sel, open)
	ordered := n.op != "=" && n.op != "<>"
	for i, eq := range n.eq {
		if len(open) == 0 {
			break
		}
		v, err := eq.eval(x, b, open)
		if err != nil {
			return vec.Vec{}, err
		}
		a := v.Column(b.N).(*array.Boolean)
		next, differ := open[:0:0], []uint16(nil)
		for _, r := range open {
			switch {
			case a.IsNull(int(r)):
				// = is false all the same if a later member differs.
				state[r] = 2
				if !ordered {
					next = append(next, r)
				}
			case a.Value(int(r)):
				next = append(next, r)
			default:
				differ = append(differ, r)
			}
		}
		if !ordered {
			for _, r := range differ {
				state[r] = 3
			}
		} else if len(differ) > 0 {
			v, err := n.less[i].eval(x, b, differ)
			if err != nil {
				return vec.Vec{}, err
			}
			l := v.Column(b.N).(*array.Boolean)
			for _, r := range differ {
				switch {
				case l.IsNull(int(r)):
					state[r] = 2
				case l.Value(int(r)):
					state[r] = 1
				default:
					state[r] = 3
				}
			}
		}
		open = next
	}
	for _, r := range open {
		if state[r] != 2 {
			state[r] = 3
			if n.op == "=" || n.op == "<=" || n.op == ">=" {
				state[r] = 1
			}
			if n.op == "<>" {
				state[r] = 0
			}
		}
	}
	for i, s := range state {
		if s == 3 { // decided: not so
			state[i] = 0
			if n.op == "<>" {
				state[i] = 1
			}
		}
	}
	return vec.Vec{Arr: stateArray(state)}, nil
}
