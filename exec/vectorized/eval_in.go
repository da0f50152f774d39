package vectorized

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// inNode is x [NOT] IN (constants) by a set that is built once.
type inNode struct {
	arg     evalNode
	t       types.Type
	not     bool
	set     *valueSet
	hasNull bool
	source  evalNode // the array of = ANY(array); nil: the set stands
	sourceT types.Type
	made    *paramSet
	// Membership of the values of the last dictionary.
	dict  arrow.Array
	table []uint8
	buf   []uint16
}

func compileIn(e *plan.InList, depth int) (evalNode, error) {
	var ds []types.Datum
	for _, i := range e.Items {
		c, ok := i.(*plan.Const)
		if !ok {
			return compileInExprs(e, depth)
		}
		ds = append(ds, c.Value)
	}
	a, err := compile(e.Arg, depth)
	if err != nil {
		return nil, err
	}
	n := &inNode{arg: a, t: e.Arg.Type(), not: e.Not}
	if len(ds) > 0 {
		n.fill(vec.FromDatums(e.Items[0].Type(), ds))
	} else {
		n.set = newValueSet(n.t)
	}
	return n, nil
}

func (n *inNode) fill(vals arrow.Array) {
	n.set, n.hasNull = newValueSet(n.t), vals.NullN() > 0
	n.set.add(vals)
	n.dict = nil
}

// compileInExprs turns x IN (expressions) into equalities.
func compileInExprs(e *plan.InList, depth int) (evalNode, error) {
	var args []plan.Expr
	for _, i := range e.Items {
		args = append(args, &plan.Call{F: e.Eq, Args: []plan.Expr{e.Arg, i}, T: boolT, Pos: -1})
	}
	var or plan.Expr = &plan.Or{Args: args}
	if e.Not {
		or = &plan.Not{Arg: or}
	}
	return compile(or, depth)
}

// prepare reads the array of = ANY(array) when it is one constant.
func (n *inNode) prepare(x *evalContext) error {
	if n.source == nil || n.made == x.params {
		return nil
	}
	v, err := n.source.eval(x, oneRow, nil)
	if err != nil {
		return err
	}
	n.made = x.params
	if v.Arr.IsNull(0) {
		n.set, n.hasNull = newValueSet(n.t), true
		return nil
	}
	offs, child := vec.ListParts(v.Arr)
	n.fill(vec.Slice(child, int(offs[0]), int(offs[1])))
	return nil
}

func (n *inNode) selectRows(x *evalContext, b *vec.Batch, sel []uint16, want bool, out []uint16) (int, error) {
	if err := n.prepare(x); err != nil {
		return 0, err
	}
	v, err := n.arg.eval(x, b, sel)
	if err != nil {
		return 0, err
	}
	want = want != n.not // rows in the set are wanted
	if !want && n.hasNull {
		return 0, nil // not in it, but NULL might have been
	}
	if v.Const {
		if v.Arr.IsNull(0) {
			return 0, nil
		}
		var one [1]uint16
		in := n.set.selectIn(v.Arr, 1, nil, one[:]) == 1
		if in != want {
			return 0, nil
		}
		return copySel(b.N, sel, out), nil
	}
	if valid, off := vec.Validity(v.Arr); valid != nil {
		sel = out[:vec.SelectValid(valid, off, b.N, sel, out)]
	}
	live := liveRows(b, sel)
	if idx, dict, ok := vec.DictView(v.Arr); ok && (n.dict != nil && vec.SameDict(n.dict, v.Arr) || dict.Len() <= 2*live) {
		if n.dict == nil || !vec.SameDict(n.dict, v.Arr) {
			n.dict, n.table = v.Arr, n.set.table(dict)
		}
		k := vec.SelectTable(idx, n.table, sel, n.scratch(live))
		return n.side(b.N, sel, k, want, out), nil
	}
	k := n.set.selectIn(v.Arr, b.N, sel, n.scratch(live))
	return n.side(b.N, sel, k, want, out), nil
}

func (n *inNode) scratch(k int) []uint16 {
	n.buf = grow(n.buf, k)
	return n.buf
}

// side returns the rows in n.buf[:k], or those of sel that are not.
func (n *inNode) side(rows int, sel []uint16, k int, want bool, out []uint16) int {
	if want {
		return copy(out, n.buf[:k])
	}
	if len(sel) > 0 && len(out) > 0 && &sel[0] == &out[0] {
		sel = append([]uint16(nil), sel...)
	}
	return vec.Without(rows, sel, n.buf[:k], out)
}

func (n *inNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	if err := n.prepare(x); err != nil {
		return vec.Vec{}, err
	}
	v, err := n.arg.eval(x, b, sel)
	if err != nil {
		return v, err
	}
	rows := v.Arr.Len()
	state := make([]uint8, rows)
	var live []uint16
	if !v.Const && sel != nil {
		live = sel
	}
	valid, off := vec.Validity(v.Arr)
	if valid != nil {
		t := make([]uint16, liveN(rows, live))
		live = t[:vec.SelectValid(valid, off, rows, live, t)]
	}
	miss := uint8(0)
	if n.not {
		miss = 1
	}
	if n.hasNull {
		miss = 2
	}
	for i := range state {
		state[i] = miss
		if valid != nil && !vec.BitAt(valid, off+i) && (n.set.count > 0 || n.hasNull) {
			state[i] = 2
		}
	}
	buf := make([]uint16, liveN(rows, live))
	for _, i := range buf[:n.set.selectIn(v.Arr, rows, live, buf)] {
		state[i] = 1
		if n.not {
			state[i] = 0
		}
	}
	return vec.Vec{Arr: stateArray(state), Const: v.Const}, nil
}

// valueSet is a set of values of one type.
type valueSet struct {
	t     types.Type
	count int
	ints  map[int64]struct{}
	small []int64 // instead of ints while there are few
	strs  map[string]struct{}
	mode  uint8 // 0 ints, 1 bytes, 2 canonical bytes
	key   []byte
}

func newValueSet(t types.Type) *valueSet {
	s := &valueSet{t: t, mode: 2}
	switch {
	case t.IsInteger(), t.IsOIDLike(), t.Kind == types.Date, t.Kind == types.Time, t.Kind == types.Timestamp, t.Kind == types.TimestampTZ:
		s.mode = 0
	case plainText(t.Kind), t.Kind == types.Bytea:
		s.mode = 1
	}
	return s
}

func (s *valueSet) add(a arrow.Array) {
	a = vec.Decode(a)
	if s.mode == 0 {
		for i := range a.Len() {
			if a.IsValid(i) {
				s.small = append(s.small, intAt(a, i))
				s.count++
			}
		}
		if len(s.small) > 8 {
			s.ints = make(map[int64]struct{}, len(s.small))
			for _, v := range s.small {
				s.ints[v] = struct{}{}
			}
		}
		return
	}
	s.strs = make(map[string]struct{}, a.Len())
	k := vec.NewKeyer([]vec.KeyColumn{{Type: s.t}}, []arrow.Array{a})
	for i := range a.Len() {
		if a.IsNull(i) {
			continue
		}
		s.count++
		if s.mode == 1 {
			sv := vec.ViewStr(a)
			s.strs[string(sv.At(i))] = struct{}{}
		} else {
			s.strs[string(k.Append(nil, i))] = struct{}{}
		}
	}
}

func intAt(a arrow.Array, i int) int64 {
	switch a := a.(type) {
	case *array.Int16:
		return int64(a.Value(i))
	case *array.Int32:
		return int64(a.Value(i))
	case *array.Date32:
		return int64(a.Value(i))
	case *array.Int64:
		return a.Value(i)
	case *array.Time64:
		return int64(a.Value(i))
	case *array.Timestamp:
		return int64(a.Value(i))
	}
	return 0
}

// selectIn selects the rows of sel (nil = all, none NULL) whose value is in s.
func (s *valueSet) selectIn(a arrow.Array, rows int, sel, out []uint16) int {
	if s.count == 0 {
		return 0
	}
	switch s.mode {
	case 0:
		switch a.(type) {
		case *array.Int16:
			return inInts(s, vec.ViewOf[int16](a).V, sel, out)
		case *array.Int32, *array.Date32:
			return inInts(s, vec.ViewOf[int32](a).V, sel, out)
		default:
			return inInts(s, vec.ViewOf[int64](a).V, sel, out)
		}
	case 1:
		v := vec.ViewStr(vec.Decode(a))
		k := 0
		for j := range liveN(rows, sel) {
			i := j
			if sel != nil {
				i = int(sel[j])
			}
			out[k] = uint16(i)
			if _, ok := s.strs[string(v.At(i))]; ok {
				k++
			}
		}
		return k
	}
	kr := vec.NewKeyer([]vec.KeyColumn{{Type: s.t}}, []arrow.Array{a})
	k := 0
	for j := range liveN(rows, sel) {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		s.key = kr.Append(s.key[:0], i)
		out[k] = uint16(i)
		if _, ok := s.strs[string(s.key)]; ok {
			k++
		}
	}
	return k
}

func inInts[T int16 | int32 | int64](s *valueSet, v []T, sel, out []uint16) int {
	k := 0
	n := len(v)
	if sel != nil {
		n = len(sel)
	}
	for j := range n {
		i := uint16(j)
		if sel != nil {
			i = sel[j]
		}
		x := int64(v[i])
		out[k] = i
		if s.ints != nil {
			if _, ok := s.ints[x]; ok {
				k++
			}
			continue
		}
		hit := 0
		for _, c := range s.small {
			if x == c {
				hit = 1
			}
		}
		k += hit
	}
	return k
}

// table marks the values of a dictionary that are in s.
func (s *valueSet) table(dict arrow.Array) []uint8 {
	n := dict.Len()
	t := make([]uint8, n)
	for from := 0; from < n; from += vec.MaxRows {
		to := min(n, from+vec.MaxRows)
		out := make([]uint16, to-from)
		for _, i := range out[:s.selectIn(vec.Slice(dict, from, to), to-from, nil, out)] {
			t[from+int(i)] = 1
		}
	}
	return t
}

// anyAllNode is x op ANY|ALL (array) in general: the arrays are laid out flat
// and compared in one go, a limited number of elements at a time.
type anyAllNode struct {
	op    *callNode // its args are left and array; vs are set here
	left  evalNode
	array evalNode
	all   bool
}

func compileAnyAll(e *plan.AnyAll, depth int) (evalNode, error) {
	l, err := compile(e.Left, depth)
	if err != nil {
		return nil, err
	}
	a, err := compile(e.Array, depth)
	if err != nil {
		return nil, err
	}
	at := e.Array.Type()
	et := types.Of(types.Text)
	switch {
	case at.Elem != nil:
		et = *at.Elem
	case at.Kind == types.Int2Vector:
		et = types.Of(types.Int2)
	case at.Kind == types.OIDVector:
		et = types.Of(types.OID)
	}
	if isStable(e.Array) && (e.Op.Name == "=" && !e.All || e.Op.Name == "<>" && e.All) && inComparable(e.Left.Type(), et) {
		return &inNode{arg: l, t: e.Left.Type(), not: e.All, source: a, sourceT: at, set: newValueSet(e.Left.Type())}, nil
	}
	c := &callNode{f: e.Op, vs: make([]vec.Vec, 2), dt: arrowBool}
	c.call.Ret, c.call.State, c.call.ArgTypes = boolT, &c.state, []types.Type{e.Left.Type(), et}
	return &anyAllNode{op: c, left: l, array: a, all: e.All}, nil
}

// inComparable says that equality of l and r is equality of the values a set of
// l's type holds.
func inComparable(l, r types.Type) bool {
	if l.IsInteger() && r.IsInteger() || l.IsOIDLike() && r.IsOIDLike() || plainText(l.Kind) && plainText(r.Kind) {
		return true
	}
	return l.Kind == r.Kind && l.Kind != types.JSON && l.IsNanos() == r.IsNanos()
}

func (n *anyAllNode) eval(x *evalContext, b *vec.Batch, sel []uint16) (vec.Vec, error) {
	if liveRows(b, sel) == 0 {
		return constNull(arrowBool), nil
	}
	l, err := n.left.eval(x, b, sel)
	if err != nil {
		return vec.Vec{}, err
	}
	a, err := n.array.eval(x, b, sel)
	if err != nil {
		return vec.Vec{}, err
	}
	offs, child := vec.ListParts(a.Arr)
	start := uint8(0)
	if n.all {
		start = 1
	}
	state := make([]uint8, b.N)
	var rowIdx, elem []int32
	flush := func() error {
		if len(rowIdx) == 0 {
			return nil
		}
		lv := l
		if !l.Const {
			lv = vec.Vec{Arr: vec.Take(l.Arr, rowIdx)}
		}
		n.op.vs[0], n.op.vs[1] = lv, vec.Vec{Arr: vec.Take(child, elem)}
		consts := 0
		if lv.Const {
			consts = 1
		}
		v, err := n.op.apply(x, len(rowIdx), nil, consts)
		if err != nil {
			return err
		}
		r := v.Column(len(rowIdx)).(*array.Boolean)
		for k, i := range rowIdx {
			switch {
			case state[i] != start && state[i] != 2: // decided
			case r.IsNull(k):
				state[i] = 2
			case r.Value(k) != n.all:
				state[i] = 1 - start
			}
		}
		rowIdx, elem = rowIdx[:0], elem[:0]
		return nil
	}
	for j := range liveRows(b, sel) {
		i := j
		if sel != nil {
			i = int(sel[j])
		}
		state[i] = start
		r := i
		if a.Const {
			r = 0
		}
		if a.Arr.IsNull(r) {
			state[i] = 2
			continue
		}
		for k := offs[r]; k < offs[r+1]; k++ {
			rowIdx, elem = append(rowIdx, int32(i)), append(elem, k)
			if len(rowIdx) == vec.MaxRows/2 {
				if err := flush(); err != nil {
					return vec.Vec{}, err
				}
			}
		}
	}
	if err := flush(); err != nil {
		return vec.Vec{}, err
	}
	return vec.Vec{Arr: stateArray(state)}, nil
}
