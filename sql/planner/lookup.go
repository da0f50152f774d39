package planner

import (
	"math"
	"math/big"
	"strings"

	"github.com/paimon-sql/paimon-sql/catalog"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/sql/plan"
)

// A scan whose conditions give every column of the primary key its values becomes
// a lookup. The conditions that do are
//
//	column = value    column IN (values)    column = ANY (array)
//
// and an OR whose branches each give what the rest of the key needs. Values have
// no columns of this relation; parameters, those of an enclosing Apply included,
// are known when the lookup starts. All other conditions stay as a filter.

// Cost of a lookup of one key, in PostgreSQL's unit: two random pages.
const (
	lookupStartup = 0.29
	lookupCost    = 8.02
)

// How many keys are looked up: always fewKeys, and beyond that one for every
// keyRows rows of the table. A scan reads that many rows in the time of a lookup.
const (
	fewKeys  = 64
	keyRows  = 200
	mostKeys = 10000 // keys of one lookup are all in memory
)

// lookup turns the scan s of g into a lookup, nil when it cannot be one.
func (b *builder) lookup(g *plan.LGet, s *plan.Scan) *plan.Lookup {
	rel, ok := g.Rel.(catalog.KeyedRelation)
	if !ok || b.p.off("lookup") || len(g.Conds) == 0 || s.Spec.Incremental != nil || s.Spec.KeepDeletes {
		return nil
	}
	pk, stored := rel.LookupKey()
	if len(pk) == 0 {
		return nil
	}
	for _, c := range s.Spec.Columns {
		if c < 0 {
			return nil // what only a scan knows: the file, the position
		}
	}
	m := &keyMatcher{rel: rel, key: map[int]int{}, stored: stored, uuid: make([]bool, len(pk))}
	for k, c := range pk {
		m.uuid[k] = rel.Columns()[c].Type.Kind == types.UUID
	}
	for slot, att := range s.Spec.Columns {
		for k, c := range pk {
			if c == att {
				m.key[slot] = k
			}
		}
	}
	at := slots(idsOf(g.Out))
	conds := make([]plan.Expr, len(g.Conds))
	for i, c := range g.Conds {
		x, err := b.expr(c, at)
		if err != nil {
			return nil
		}
		conds[i] = x
	}
	n := &plan.Lookup{Base: s.Base, Rel: g.Rel, Alias: g.Alias, Columns: s.Spec.Columns, Stored: stored, Scan: s}
	used := m.choose(conds, len(pk), n)
	if used == nil {
		return nil
	}
	var index, rest []plan.Expr
	for i, c := range conds {
		if used[i] != condUnused {
			index = append(index, c)
		}
		if used[i] != condWhole {
			rest = append(rest, c)
		}
	}
	n.Cond = conj(index)
	if len(rest) > 0 {
		n.Filter = conj(rest)
	}
	rows := 0.0
	if st := b.p.relStats(g); st != nil {
		rows = float64(st.Rows)
	}
	n.MaxKeys = int(math.Min(math.Max(fewKeys, rows/keyRows), mostKeys))
	keys := keysIn(n)
	if keys > n.MaxKeys {
		return nil
	}
	if cost := lookupStartup + lookupCost*float64(max(keys, 1)); n.E.Total > cost {
		n.E.Startup, n.E.Total = lookupStartup, cost
	}
	return n
}

// keysIn counts the keys that are known without parameters; an array that is not
// counts as one.
func keysIn(n *plan.Lookup) int {
	total := 0
	for _, set := range n.Sets {
		k := 1
		for _, v := range set {
			switch a := v.Array.(type) {
			case nil:
				k *= len(v.Exprs)
			case *plan.Const:
				l, _ := a.Value.([]types.Datum)
				k *= len(l)
			}
			k = min(k, 1<<30)
		}
		total = min(total+k, 1<<30)
	}
	return total
}

// keyMatcher finds conditions that say what a key is. Its expressions are over the
// slots of a scan.
type keyMatcher struct {
	rel    catalog.KeyedRelation
	key    map[int]int // slot -> column of the key
	stored []types.Type
	uuid   []bool // by column of the key: its stored text is shown as uuid
}

// What a lookup takes of a condition.
const (
	condUnused uint8 = iota
	condPart         // it must still be evaluated
	condWhole
)

// choose fills in the sets of n and says which conditions they come from; nil when
// the key is not bound.
func (m *keyMatcher) choose(conds []plan.Expr, nkey int, n *plan.Lookup) []uint8 {
	used := make([]uint8, len(conds))
	set := make(plan.KeySet, nkey)
	bound := 0
	for i, c := range conds {
		if k, v, ok := m.term(c); ok && set[k].Convert == nil {
			set[k], used[i] = v, condWhole
			bound++
		}
	}
	if bound == nkey {
		n.Sets = []plan.KeySet{set}
		return used
	}
	for i, c := range conds {
		or, ok := c.(*plan.Or)
		if !ok {
			continue
		}
		if sets, whole := m.branches(or, set, nkey); sets != nil {
			n.Sets = sets
			if used[i] = condPart; whole {
				used[i] = condWhole
			}
			return used
		}
	}
	return nil
}

// branches binds what base leaves open by the branches of an OR. whole says that
// nothing else is in them.
func (m *keyMatcher) branches(or *plan.Or, base plan.KeySet, nkey int) (sets []plan.KeySet, whole bool) {
	whole = true
	for _, arg := range or.Args {
		set := append(plan.KeySet{}, base...)
		for _, c := range conjuncts(arg) {
			k, v, ok := m.term(c)
			if !ok || set[k].Convert != nil {
				whole = false
				continue
			}
			set[k] = v
		}
		for k := range nkey {
			if set[k].Convert == nil {
				return nil, false
			}
		}
		sets = append(sets, set)
	}
	return sets, whole
}

// term reads a condition as values of column k of the key.
func (m *keyMatcher) term(c plan.Expr) (k int, v plan.KeyValues, ok bool) {
	switch x := c.(type) {
	case *plan.Slot:
		return m.flag(x, true)
	case *plan.Not:
		return m.flag(x.Arg, false)
	case *plan.Call:
		if x.F == nil || len(x.Args) != 2 || x.F.Name != "=" {
			return 0, v, false
		}
		for i := range x.Args {
			if k, ok = m.column(x.Args[i]); !ok {
				continue
			}
			other := x.Args[1-i]
			if v.Convert = m.convert(k, other.Type()); v.Convert == nil || !known(other) {
				continue
			}
			v.Exprs = []plan.Expr{other}
			return k, v, true
		}
	case *plan.InList:
		if k, ok = m.column(x.Arg); !ok || x.Not || x.Eq == nil || x.Eq.Name != "=" || len(x.Items) == 0 {
			return 0, v, false
		}
		for _, it := range x.Items {
			if !sameKind(it.Type(), x.Items[0].Type()) || !known(it) {
				return 0, v, false
			}
		}
		v.Exprs, v.Convert = x.Items, m.convert(k, x.Items[0].Type())
		return k, v, v.Convert != nil
	case *plan.AnyAll:
		if k, ok = m.column(x.Left); !ok || x.All || x.Op == nil || x.Op.Name != "=" || !known(x.Array) {
			return 0, v, false
		}
		t := x.Array.Type()
		if t.Kind != types.Array || t.Elem == nil {
			return 0, v, false
		}
		v.Array, v.Convert = x.Array, m.convert(k, *t.Elem)
		return k, v, v.Convert != nil
	}
	return 0, v, false
}

// flag reads a boolean that stands for itself, or negated, as a condition.
func (m *keyMatcher) flag(e plan.Expr, value bool) (k int, v plan.KeyValues, ok bool) {
	s, isSlot := e.(*plan.Slot)
	if !isSlot || s.T.Kind != types.Bool {
		return 0, v, false
	}
	if k, ok = m.key[s.Index]; !ok || m.stored[k].Kind != types.Bool {
		return 0, v, false
	}
	return k, plan.KeyValues{Exprs: []plan.Expr{&plan.Const{Value: value, T: types.Of(types.Bool)}}, Convert: asIs}, true
}

// sameKind: values of two types have datums of one form.
func sameKind(a, b types.Type) bool {
	return a.Kind == b.Kind && a.IsNanos() == b.IsNanos()
}

// column returns which column of the key an expression is, through casts that
// change only the label, such as varchar to text, or the width of a number: what is
// equal after them was equal before.
func (m *keyMatcher) column(e plan.Expr) (int, bool) {
	for {
		switch x := e.(type) {
		case *plan.Slot:
			k, ok := m.key[x.Index]
			return k, ok
		case *plan.Cast:
			from := x.Arg.Type().Kind
			if from == types.BpChar && x.T.Kind != types.BpChar || x.F != nil && !widens(from, x.T.Kind) {
				return 0, false
			}
			e = x.Arg
		default:
			return 0, false
		}
	}
}

// widens reports whether every value of a kind is one of the other.
func widens(from, to types.Kind) bool {
	switch from {
	case types.TinyInt, types.Int2:
		return to == types.Int2 || to == types.Int4 || to == types.Int8
	case types.Int4:
		return to == types.Int8
	case types.Float4:
		return to == types.Float8
	}
	return false
}

// known reports whether an expression has a value before any row is read, always
// the same one.
func known(e plan.Expr) bool {
	ok := !hasVolatile(e)
	plan.Walk(e, func(e plan.Expr) bool {
		switch e.(type) {
		case *plan.Slot, *plan.Col, *plan.Subquery, *plan.SetRef:
			ok = false
		}
		return ok
	})
	return ok
}

// convert makes the function that turns values of type from, which the column is
// compared with, into stored ones; nil when the comparison is not equality of
// stored values.
func (m *keyMatcher) convert(k int, from types.Type) func(types.Datum) (types.Datum, plan.KeyFit) {
	to := m.stored[k]
	switch to.Kind {
	case types.Bool:
		if from.Kind == types.Bool {
			return asIs
		}
	case types.TinyInt, types.Int2, types.Int4, types.Int8:
		switch from.Kind {
		case types.TinyInt, types.Int2, types.Int4, types.Int8:
		default:
			return nil
		}
		if to.Kind == types.Int8 {
			return asIs
		}
		lo, hi := intRange(to.Kind)
		return func(d types.Datum) (types.Datum, plan.KeyFit) {
			if v, ok := d.(int64); !ok || v < lo || v > hi {
				return nil, plan.KeyNever
			}
			return d, plan.KeyFits
		}
	case types.Float4, types.Float8:
		switch from.Kind {
		case types.Float4:
			return floatKey(false)
		case types.Float8:
			return floatKey(to.Kind == types.Float4)
		}
	case types.BpChar:
		switch from.Kind {
		case types.BpChar, types.Unknown:
			return charKey
		}
	case types.Text, types.Varchar:
		if m.uuid[k] || from.Kind == types.UUID {
			if m.uuid[k] && from.Kind == types.UUID {
				return uuidKey
			}
			return nil
		}
		switch from.Kind {
		case types.Text, types.Varchar, types.Name, types.Unknown:
			return asIs // too long for the column: no key is
		}
	case types.Bytea:
		if from.Kind == types.Bytea {
			return asIs
		}
	case types.Date:
		if from.Kind == types.Date {
			return func(d types.Datum) (types.Datum, plan.KeyFit) {
				if v, ok := d.(int64); !ok || v == math.MaxInt32 || v == math.MinInt32 {
					return nil, plan.KeyScan
				}
				return d, plan.KeyFits
			}
		}
	case types.Time:
		if from.Kind == types.Time {
			return timeKey
		}
	case types.Timestamp, types.TimestampTZ:
		if from.Kind == to.Kind {
			return timestampKey(from, to)
		}
	case types.Numeric:
		if from.Kind == types.Numeric && to.Prec > 0 {
			return func(d types.Datum) (types.Datum, plan.KeyFit) { return decimalKey(d, to) }
		}
	}
	return nil
}

func asIs(d types.Datum) (types.Datum, plan.KeyFit) { return d, plan.KeyFits }

// floatKey: 0 stands for -0, too, and one NaN for all. narrow says that the column
// is real and the value is not: only what a real can be is equal to one.
func floatKey(narrow bool) func(types.Datum) (types.Datum, plan.KeyFit) {
	return func(d types.Datum) (types.Datum, plan.KeyFit) {
		v, ok := d.(float64)
		switch {
		case !ok:
			return nil, plan.KeyScan
		case v == 0:
			v = 0 // not -0
		case math.IsNaN(v):
			v = math.NaN()
		case narrow && float64(float32(v)) != v:
			return nil, plan.KeyNever
		}
		return v, plan.KeyFits
	}
}

// charKey: blanks at the end do not count.
func charKey(d types.Datum) (types.Datum, plan.KeyFit) {
	s, ok := d.(string)
	if !ok {
		return nil, plan.KeyScan
	}
	return strings.TrimRight(s, " "), plan.KeyFits
}

// uuidKey: a uuid is stored as its text.
func uuidKey(d types.Datum) (types.Datum, plan.KeyFit) {
	b, ok := d.([]byte)
	if !ok || len(b) != 16 {
		return nil, plan.KeyScan
	}
	return string(pgtext.AppendUUID(nil, b)), plan.KeyFits
}

// timeKey: a time is stored in milliseconds.
func timeKey(d types.Datum) (types.Datum, plan.KeyFit) {
	v, ok := d.(int64)
	switch {
	case !ok:
		return nil, plan.KeyScan
	case v%1000 != 0:
		return nil, plan.KeyNever
	}
	return v, plan.KeyFits
}

// timestampKey brings a time to the unit of the stored type, whose digits beyond
// its precision are zero.
func timestampKey(from, to types.Type) func(types.Datum) (types.Datum, plan.KeyFit) {
	unit := int64(1) // what a stored value is a multiple of
	digits := 6
	if to.IsNanos() {
		digits = 9
	}
	for p := to.Prec; int(p) < digits; p++ {
		unit *= 10
	}
	return func(d types.Datum) (types.Datum, plan.KeyFit) {
		v, ok := d.(int64)
		if !ok || v == math.MaxInt64 || v == math.MinInt64 {
			return nil, plan.KeyScan
		}
		switch {
		case from.IsNanos() == to.IsNanos():
		case to.IsNanos():
			if v > math.MaxInt64/1000 || v < math.MinInt64/1000 {
				return nil, plan.KeyScan
			}
			v *= 1000
		default:
			if v%1000 != 0 {
				return nil, plan.KeyNever
			}
			v /= 1000
		}
		if v%unit != 0 {
			return nil, plan.KeyNever
		}
		return v, plan.KeyFits
	}
}

// decimalKey brings a numeric to the scale of the stored type.
func decimalKey(d types.Datum, to types.Type) (types.Datum, plan.KeyFit) {
	x, ok := d.(*numeric.Dec)
	if !ok || x.Form != numeric.Finite {
		return nil, plan.KeyNever
	}
	y := &numeric.Dec{Scale: int32(to.Scale)}
	if n := y.Scale - x.Scale; n >= 0 {
		y.Coef.Mul(&x.Coef, numeric.Pow10(n))
	} else {
		var r big.Int
		if y.Coef.QuoRem(&x.Coef, numeric.Pow10(-n), &r); r.Sign() != 0 {
			return nil, plan.KeyNever
		}
	}
	if y.Coef.CmpAbs(numeric.Pow10(int32(to.Prec))) >= 0 {
		return nil, plan.KeyNever
	}
	return y, plan.KeyFits
}
