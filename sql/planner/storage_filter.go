package planner

import (
	"math"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// predMaker turns conditions of a scan into storage predicates. What it cannot
// say it leaves out: the executor evaluates the whole condition anyway.
type predMaker struct {
	p    *planner
	cols []catalog.Column
	att  map[plan.ColID]int
	// lossy: something was left out, so that rows may pass the predicate that fail the
	// condition.
	lossy bool
}

func newPredMaker(p *planner, g *plan.LGet) *predMaker {
	m := &predMaker{p: p, cols: g.Rel.Columns(), att: map[plan.ColID]int{}}
	for i, c := range g.Out {
		if g.Att[i] >= 0 {
			m.att[c.ID] = g.Att[i]
		}
	}
	return m
}

// bind puts the values of parameters into a condition.
func (m *predMaker) bind(c plan.Expr, vals []types.Datum) plan.Expr {
	return m.p.fold(plan.Replace(c, func(x plan.Expr) (plan.Expr, bool) {
		if pr, ok := x.(*plan.Param); ok && pr.Index < len(vals) {
			v := vals[pr.Index]
			return &plan.Const{Value: v, T: pr.T.WithNotNull(v != nil)}, true
		}
		return nil, false
	}))
}

func (m *predMaker) conj(conds []plan.Expr) predicate.Node {
	var out []predicate.Node
	for _, c := range conds {
		if n := m.node(c, 0); n != nil {
			out = append(out, n)
		} else {
			m.lossy = true
		}
	}
	return predicate.Conj(out...)
}

const maxPredDepth = 100

// node is the predicate of a condition, nil when there is none.
func (m *predMaker) node(c plan.Expr, depth int) predicate.Node {
	if depth > maxPredDepth {
		return nil
	}
	switch x := c.(type) {
	case *plan.And:
		var out []predicate.Node
		for _, a := range x.Args {
			if n := m.node(a, depth+1); n != nil {
				out = append(out, n)
			} else {
				m.lossy = true
			}
		}
		return predicate.Conj(out...)
	case *plan.Or:
		var out []predicate.Node
		for _, a := range x.Args {
			n := m.node(a, depth+1)
			if n == nil {
				return nil // this branch may match anything
			}
			out = append(out, n)
		}
		if len(out) == 0 {
			return nil
		}
		return &predicate.Or{Args: out}
	case *plan.Col:
		return m.bare(x, predicate.Eq, true)
	case *plan.Not:
		return m.bare(x.Arg, predicate.Eq, false)
	case *plan.IsNull:
		op := predicate.IsNull
		if x.Not {
			op = predicate.IsNotNull
		}
		if t, ok := m.target(x.Arg); ok {
			return m.leaf(t, op)
		}
	case *plan.IsBool:
		if !x.Not {
			switch x.Test {
			case plan.TestTrue:
				return m.bare(x.Arg, predicate.Eq, true)
			case plan.TestFalse:
				return m.bare(x.Arg, predicate.Eq, false)
			default:
				return m.bare(x.Arg, predicate.IsNull)
			}
		}
	case *plan.InList:
		col, ok := m.target(x.Arg)
		if !ok {
			return nil
		}
		var vals []types.Datum
		for _, it := range x.Items {
			k, ok := it.(*plan.Const)
			if !ok {
				return nil
			}
			if k.Value == nil {
				if x.Not {
					return nil // never true; the executor knows
				}
				continue
			}
			v, ok := m.value(col, k)
			if !ok {
				return nil
			}
			vals = append(vals, v)
		}
		if len(vals) == 0 {
			return nil
		}
		if x.Not {
			return m.leaf(col, predicate.NotIn, vals...)
		}
		return m.leaf(col, predicate.In, vals...)
	case *plan.AnyAll:
		return m.anyAll(x)
	case *plan.Call:
		return m.call(x)
	}
	return nil
}

var predOps = map[string]predicate.Op{
	"=": predicate.Eq, "<>": predicate.NotEq, "<": predicate.Lt, "<=": predicate.LtEq, ">": predicate.Gt, ">=": predicate.GtEq,
}

func (m *predMaker) call(x *plan.Call) predicate.Node {
	if x.F == nil || len(x.Args) != 2 || !isOperator(x.F) {
		return nil
	}
	op := x.F.Name
	col, k, ok := m.targetConst(x.Args[0], x.Args[1])
	if !ok {
		if col, k, ok = m.targetConst(x.Args[1], x.Args[0]); !ok {
			return nil
		}
		if op = commutators[op]; op == "" {
			return nil
		}
	}
	if k.Value == nil {
		return nil
	}
	if op == "~~" {
		return m.like(col, k)
	}
	o, ok := predOps[op]
	if !ok {
		return nil
	}
	v, ok := m.value(col, k)
	if !ok {
		return nil
	}
	return m.leaf(col, o, v)
}

// predTarget is what a leaf of a predicate compares: a column, or the value that a map
// column has under a key.
type predTarget struct {
	col   int // of the relation
	t     types.Type
	key   string
	keyed bool
}

// target returns what an expression names, through casts that change only the label.
func (m *predMaker) target(e plan.Expr) (predTarget, bool) {
	e = unlabelled(e)
	if s, ok := e.(*plan.Subscript); ok && !s.Slice {
		col, ok := s.Arg.(*plan.Col)
		if !ok {
			return predTarget{}, false
		}
		k, ok := s.Index.(*plan.Const)
		i, known := m.att[col.ID]
		if !ok || !known {
			return predTarget{}, false
		}
		t := m.cols[i].Type
		key, ok := k.Value.(string)
		if !ok || t.Kind != types.Map || !plainText(*t.Key) {
			return predTarget{}, false
		}
		return predTarget{col: i, t: *t.Elem, key: key, keyed: true}, true
	}
	col, ok := e.(*plan.Col)
	if !ok {
		return predTarget{}, false
	}
	i, ok := m.att[col.ID]
	if !ok {
		return predTarget{}, false
	}
	return predTarget{col: i, t: m.cols[i].Type}, true
}

func (m *predMaker) targetConst(a, b plan.Expr) (predTarget, *plan.Const, bool) {
	t, ok := m.target(a)
	if !ok {
		return t, nil, false
	}
	k, ok := b.(*plan.Const)
	return t, k, ok
}

// unlabelled looks through casts that change only the label, such as varchar to
// text.
func unlabelled(e plan.Expr) plan.Expr {
	for {
		x, ok := e.(*plan.Cast)
		if !ok || x.F != nil || x.Arg.Type().Kind == types.BpChar {
			return e
		}
		e = x.Arg
	}
}

func (m *predMaker) anyAll(x *plan.AnyAll) predicate.Node {
	col, ok := m.target(x.Left)
	if !ok || x.Op == nil {
		return nil
	}
	a, ok := x.Array.(*plan.Const)
	if !ok || a.T.Elem == nil {
		return nil
	}
	l, ok := a.Value.([]types.Datum)
	if !ok {
		return nil
	}
	var vals []types.Datum
	for _, d := range l {
		if d == nil {
			if x.All {
				return nil
			}
			continue
		}
		v, ok := m.value(col, &plan.Const{Value: d, T: *a.T.Elem})
		if !ok {
			return nil
		}
		vals = append(vals, v)
	}
	switch {
	case len(vals) == 0:
		return nil
	case x.Op.Name == "=" && !x.All:
		return m.leaf(col, predicate.In, vals...)
	case x.Op.Name == "<>" && x.All:
		return m.leaf(col, predicate.NotIn, vals...)
	}
	return nil
}

// like takes the fixed beginning of a pattern.
func (m *predMaker) like(col predTarget, k *plan.Const) predicate.Node {
	s, ok := k.Value.(string)
	if !ok || !plainText(col.t) {
		return nil
	}
	var prefix strings.Builder
	exact := true
	for i := 0; i < len(s); i++ {
		c := s[i]
		if c == '%' || c == '_' {
			exact = false
			break
		}
		if c == '\\' {
			i++
			if i >= len(s) {
				return nil
			}
			c = s[i]
		}
		prefix.WriteByte(c)
	}
	if exact {
		return m.leaf(col, predicate.Eq, prefix.String())
	}
	if prefix.Len() == 0 {
		return nil
	}
	m.lossy = true
	return m.leaf(col, predicate.StartsWith, prefix.String())
}

func plainText(t types.Type) bool {
	return t.Kind == types.Text || t.Kind == types.Varchar || t.Kind == types.Name
}

func (m *predMaker) leaf(c predTarget, op predicate.Op, args ...types.Datum) predicate.Node {
	f := m.cols[c.col]
	l := predicate.Leaf{Op: op, Col: c.col, FieldID: f.ID, Name: f.Name, Type: c.t, Args: args}
	if c.keyed {
		return &predicate.MapLeaf{Leaf: l, Key: c.key}
	}
	return &l
}

// bare is leaf of an expression that must be a column.
func (m *predMaker) bare(e plan.Expr, op predicate.Op, args ...types.Datum) predicate.Node {
	if col, ok := e.(*plan.Col); ok {
		if t, ok := m.target(col); ok {
			return m.leaf(t, op, args...)
		}
	}
	return nil
}

// value turns a constant into a datum of the column's type, when that keeps the
// meaning of comparing with it.
func (m *predMaker) value(c predTarget, k *plan.Const) (types.Datum, bool) {
	if k.Value == nil {
		return nil, false
	}
	ct, kt := c.t, k.T
	switch ct.Kind {
	case types.Bool:
		b, ok := k.Value.(bool)
		return b, ok
	case types.TinyInt, types.Int2, types.Int4, types.Int8:
		v, ok := k.Value.(int64)
		if !ok || !kt.IsInteger() {
			return nil, false
		}
		lo, hi := intRange(ct.Kind)
		return v, v >= lo && v <= hi
	case types.OID:
		v, ok := k.Value.(int64)
		return v, ok
	case types.Float4:
		v, ok := k.Value.(float64)
		if !ok || v != float64(float32(v)) { // NaN too
			return nil, false
		}
		return v, true
	case types.Float8:
		v, ok := k.Value.(float64)
		return v, ok && !math.IsNaN(v)
	case types.Numeric:
		d, ok := k.Value.(*numeric.Dec)
		return d, ok && d.Form == numeric.Finite
	case types.Text, types.Varchar, types.Name, types.Char:
		s, ok := k.Value.(string)
		return s, ok && kt.Kind != types.BpChar
	case types.Bytea:
		b, ok := k.Value.([]byte)
		return b, ok && kt.Kind == types.Bytea
	case types.Date, types.Time:
		v, ok := k.Value.(int64)
		return v, ok && kt.Kind == ct.Kind && v != math.MaxInt32 && v != math.MinInt32
	case types.Timestamp, types.TimestampTZ:
		v, ok := k.Value.(int64)
		if !ok || kt.Kind != ct.Kind || v == math.MaxInt64 || v == math.MinInt64 {
			return nil, false
		}
		switch {
		case ct.IsNanos() == kt.IsNanos():
			return v, true
		case ct.IsNanos():
			if v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
				return nil, false
			}
			return v * 1000, true
		default:
			return v / 1000, v%1000 == 0
		}
	}
	return nil, false
}

func intRange(k types.Kind) (lo, hi int64) {
	switch k {
	case types.TinyInt:
		return math.MinInt8, math.MaxInt8
	case types.Int2:
		return math.MinInt16, math.MaxInt16
	case types.Int4:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}
