package vectorized

import (
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

var boolT = types.Of(types.Bool)

// cmpNode is a comparison whose rows can be selected without a boolean column.
// As a value it is its kernel; so it is for forms that selectRows does not know.
type cmpNode struct {
	*callNode
	op    vec.CmpOp
	cost  float64
	plain bool // over columns and constants only: cannot fail
	// The constant side, unpacked once.
	kArr arrow.Array
	k    constant
}

// constant is a constant in the forms that loops compare with.
type constant struct {
	i   int64
	f   float64
	s   []byte
	dec *numeric.Dec
	// d is dec at scale; dOp replaces the operation when it had to be rounded.
	scale int32
	d     decimal128.Num
	fit   int8 // 0 not tried, 1 exact, 2 rounded down, -1 does not fit
}

var cmpOps = map[string]vec.CmpOp{"=": vec.OpEq, "<>": vec.OpNe, "!=": vec.OpNe, "<": vec.OpLt, "<=": vec.OpLe, ">": vec.OpGt, ">=": vec.OpGe}

// newCompare returns nil when the call is no comparison that it knows.
func newCompare(n *callNode, e *plan.Call) evalNode {
	op, ok := cmpOps[e.F.Name]
	if !ok || len(e.Args) != 2 {
		return nil
	}
	a, b := e.Args[0].Type(), e.Args[1].Type()
	c := &cmpNode{callNode: n, op: op, cost: 1}
	switch {
	case (a.IsInteger() || a.IsOIDLike()) && (b.IsInteger() || b.IsOIDLike()):
	case a.Kind != b.Kind && !(plainText(a.Kind) && plainText(b.Kind)):
		return nil
	case a.Kind == types.Date || a.Kind == types.Time:
	case a.Kind == types.Timestamp || a.Kind == types.TimestampTZ:
		if a.IsNanos() != b.IsNanos() {
			return nil
		}
	case a.Kind == types.Float4 || a.Kind == types.Float8:
	case a.Kind == types.Numeric:
		c.cost = 2
	case plainText(a.Kind) || a.Kind == types.Bytea:
		c.cost = 5
	default:
		return nil
	}
	c.plain = true
	for _, arg := range n.args {
		switch arg.(type) {
		case *slotNode, *constNode, *paramNode, *cachedNode:
		default:
			c.plain = false
			c.cost = 20
		}
	}
	return c
}

// plainText are the kinds of text that compare bytewise.
func plainText(k types.Kind) bool {
	switch k {
	case types.Text, types.Varchar, types.Name, types.Unknown:
		return true
	}
	return false
}

func (n *cmpNode) selectRows(x *evalContext, b *vec.Batch, sel []uint16, want bool, out []uint16) (int, error) {
	consts, null, err := n.evalArgs(x, b, sel)
	if err != nil || null {
		return 0, err
	}
	l, r, op := n.vs[0], n.vs[1], n.op
	if l.Const {
		l, r, op = r, l, op.Swap()
	}
	if !want {
		op = op.Negate()
	}
	k := -1
	switch {
	case consts == 1:
		k = n.withConst(x, op, l.Arr, r.Arr, b.N, sel, want, out)
	case consts == 0:
		k = pair(op, l.Arr, r.Arr, b.N, sel, out)
	}
	if k >= 0 {
		return k, nil
	}
	v, err := n.apply(x, b.N, sel, consts)
	if err != nil {
		return 0, err
	}
	return selectBool(v, b.N, sel, want, out), nil
}

// withConst selects a op k; -1 when the forms are not known here.
func (n *cmpNode) withConst(x *evalContext, op vec.CmpOp, a, k arrow.Array, rows int, sel []uint16, want bool, out []uint16) int {
	if n.kArr != k {
		n.kArr, n.k = k, unpack(k, n.call.ArgTypes[0])
	}
	if vec.IsDict(a) {
		d := 0
		if n.vs[0].Const {
			d = 1
		}
		if n.dictArg(liveN(rows, sel)) >= 0 && n.overDict(x, d) {
			return n.selectDict(d, rows, sel, want, out)
		}
		a = vec.Decode(a)
	}
	// Forms first: once sel is narrowed there is no way back.
	switch a.(type) {
	case *array.Int16, *array.Int32, *array.Int64, *array.Date32, *array.Time64, *array.Timestamp, *array.Float32, *array.Float64, *array.String:
	case *array.Binary:
		if n.call.ArgTypes[0].Kind == types.Numeric {
			return -1
		}
	case *array.Decimal128:
		if n.k.dec == nil {
			return -1
		}
		dt := a.DataType().(*arrow.Decimal128Type)
		if op = n.k.at(dt.Scale, op); n.k.fit < 0 {
			return -1
		}
	default:
		return -1
	}
	if valid, off := vec.Validity(a); valid != nil {
		sel = out[:vec.SelectValid(valid, off, rows, sel, out)]
	}
	switch a := a.(type) {
	case *array.Int16:
		return selInt(op, vec.ViewOf[int16](a).V, n.k.i, math.MinInt16, math.MaxInt16, sel, out)
	case *array.Int32, *array.Date32:
		return selInt(op, vec.ViewOf[int32](a).V, n.k.i, math.MinInt32, math.MaxInt32, sel, out)
	case *array.Int64, *array.Time64, *array.Timestamp:
		return vec.SelectConst(op, vec.ViewOf[int64](a).V, n.k.i, sel, out)
	case *array.Float32:
		return vec.SelectFloat(op, vec.ViewOf[float32](a).V, float32(n.k.f), sel, out)
	case *array.Float64:
		return vec.SelectFloat(op, vec.ViewOf[float64](a).V, n.k.f, sel, out)
	case *array.Decimal128:
		if n.k.fit == 2 && (op == vec.OpEq || op == vec.OpNe) {
			if op == vec.OpEq {
				return 0
			}
			return copySel(rows, sel, out)
		}
		return vec.SelectDec(op, a.Values(), n.k.d, sel, out)
	}
	s := vec.ViewStr(a)
	return vec.SelectStr(op, &s, n.k.s, sel, out)
}

func selInt[T int16 | int32](op vec.CmpOp, v []T, c, lo, hi int64, sel, out []uint16) int {
	if c < lo || c > hi {
		all := op == vec.OpNe
		if c > hi {
			all = all || op == vec.OpLt || op == vec.OpLe
		} else {
			all = all || op == vec.OpGt || op == vec.OpGe
		}
		if all {
			return copySel(len(v), sel, out)
		}
		return 0
	}
	return vec.SelectConst(op, v, T(c), sel, out)
}

// unpack reads a constant of type t (or of an integer type beside it).
func unpack(a arrow.Array, t types.Type) constant {
	var k constant
	switch a := vec.Decode(a).(type) {
	case *array.Int16:
		k.i = int64(a.Value(0))
	case *array.Int32:
		k.i = int64(a.Value(0))
	case *array.Date32:
		k.i = int64(a.Value(0))
	case *array.Int64:
		k.i = a.Value(0)
	case *array.Time64:
		k.i = int64(a.Value(0))
	case *array.Timestamp:
		k.i = int64(a.Value(0))
	case *array.Float32:
		k.f = float64(a.Value(0))
	case *array.Float64:
		k.f = a.Value(0)
	case *array.String:
		k.s = []byte(a.Value(0))
	case *array.Binary:
		k.s = a.Value(0)
		if t.Kind == types.Numeric {
			k.dec = numeric.Decode(k.s)
		}
	case *array.Decimal128:
		k.dec = numeric.From128(a.Value(0), a.DataType().(*arrow.Decimal128Type).Scale)
	}
	return k
}

// at brings the numeric constant to scale and returns the operation that then
// gives the same rows: x < 0.055 is x <= 0.05 for x with two digits.
func (k *constant) at(scale int32, op vec.CmpOp) vec.CmpOp {
	if k.fit == 0 || k.scale != scale {
		k.scale, k.fit = scale, -1
		if k.dec.Form == numeric.Finite {
			d, fit := k.dec, int8(1)
			if d.Scale > scale {
				t := d.Trunc(scale)
				if numeric.Cmp(t, d) != 0 {
					fit = 2
					if d.Coef.Sign() < 0 {
						t = numeric.Sub(t, &numeric.Dec{Scale: scale, Coef: *numeric.Pow10(0)})
					}
				}
				d = t
			}
			if n, ok := d.To128(scale); ok {
				k.d, k.fit = n, fit
			}
		}
	}
	if k.fit == 2 {
		switch op {
		case vec.OpLt:
			return vec.OpLe
		case vec.OpGe:
			return vec.OpGt
		}
	}
	return op
}

// pair selects a op b, column against column; -1 when the forms are not known.
func pair(op vec.CmpOp, a, b arrow.Array, rows int, sel, out []uint16) int {
	if a.DataType().ID() != b.DataType().ID() {
		return -1
	}
	switch a.(type) {
	case *array.Int16, *array.Int32, *array.Int64, *array.Date32, *array.Time64, *array.Timestamp:
	case *array.Decimal128:
		if a.DataType().(*arrow.Decimal128Type).Scale != b.DataType().(*arrow.Decimal128Type).Scale {
			return -1
		}
	default:
		return -1
	}
	for _, c := range []arrow.Array{a, b} {
		if valid, off := vec.Validity(c); valid != nil {
			sel = out[:vec.SelectValid(valid, off, rows, sel, out)]
		}
	}
	switch a.(type) {
	case *array.Int16:
		return vec.SelectPair(op, vec.ViewOf[int16](a).V, vec.ViewOf[int16](b).V, sel, out)
	case *array.Int32, *array.Date32:
		return vec.SelectPair(op, vec.ViewOf[int32](a).V, vec.ViewOf[int32](b).V, sel, out)
	case *array.Decimal128:
		p, _, _ := vec.ViewDec(a)
		q, _, _ := vec.ViewDec(b)
		return vec.SelectDecPair(op, p, q, sel, out)
	}
	return vec.SelectPair(op, vec.ViewOf[int64](a).V, vec.ViewOf[int64](b).V, sel, out)
}
