package predicate

import (
	"bytes"
	"cmp"
	"math"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Verdict is what statistics or an index say about a set of rows without
// reading them.
type Verdict uint8

// The verdicts. The zero value is always safe.
const (
	Some Verdict = iota // read them
	None                // no row matches: skip
	All                 // every row matches
)

func (v Verdict) String() string { return [...]string{"some", "none", "all"}[v] }

// ColumnStats are bounds of one column over a set of rows, in the type of the
// leaf that asks. They need not be values that occur: Paimon cuts long strings.
type ColumnStats struct {
	Min, Max  types.Datum // nil = unknown
	NullCount int64       // -1 = unknown
	Rows      int64       // -1 = unknown
	// Single says that the rows hold exactly the one value Min (or NULL when
	// NullCount is not 0), as partition columns do.
	Single bool
}

// One makes the stats of a single known value.
func One(v types.Datum) ColumnStats {
	s := ColumnStats{Min: v, Max: v, Rows: 1, Single: true}
	if v == nil {
		s.NullCount = 1
	}
	return s
}

// Source gives the statistics of a leaf's column; false = nothing is known.
type Source interface {
	Stats(l *Leaf) (ColumnStats, bool)
}

// SourceFunc is a Source made of a function.
type SourceFunc func(l *Leaf) (ColumnStats, bool)

// Stats calls f.
func (f SourceFunc) Stats(l *Leaf) (ColumnStats, bool) { return f(l) }

// Eval says whether rows with these statistics can make n true. It errs towards
// Some: unknown statistics, operations and types never skip anything.
func Eval(n Node, s Source) Verdict {
	switch n := n.(type) {
	case nil:
		return All
	case *Leaf:
		st, ok := s.Stats(n)
		if !ok {
			return Some
		}
		return evalLeaf(n, &st)
	case *And:
		v := All
		for _, a := range n.Args {
			switch Eval(a, s) {
			case None:
				return None
			case Some:
				v = Some
			}
		}
		return v
	case *Or:
		v := None
		for _, a := range n.Args {
			switch Eval(a, s) {
			case All:
				return All
			case Some:
				v = Some
			}
		}
		return v
	case *Not:
		// All implies that no row is NULL under the argument; None does not.
		if Eval(n.Arg, s) == All {
			return None
		}
	}
	return Some
}

func evalLeaf(l *Leaf, s *ColumnStats) Verdict {
	v := evalOp(l, s)
	if l.Set == nil || v == None {
		return v
	}
	// All of the operation is not all of the set.
	if lo, hi, ok := setBounds(l, s); ok && !l.Set.Intersects(lo, hi) {
		return None
	}
	return Some
}

// setBounds returns bounds of the values that a set is asked about.
func setBounds(l *Leaf, s *ColumnStats) (lo, hi types.Datum, ok bool) {
	if s.Min == nil || s.Max == nil {
		return nil, nil, false
	}
	switch l.Type.Kind {
	case types.Float4, types.Float8: // NaN may be above
		a, ok1 := s.Min.(float64)
		b, ok2 := s.Max.(float64)
		if !ok1 || !ok2 || math.IsNaN(a) || math.IsNaN(b) {
			return nil, nil, false
		}
	case types.BpChar: // a value x is stored as x followed by blanks, see evalChar
		a, ok1 := s.Min.(string)
		if _, ok2 := s.Max.(string); !ok1 || !ok2 {
			return nil, nil, false
		}
		if i := strings.IndexFunc(a, func(r rune) bool { return r <= ' ' }); i >= 0 {
			a = a[:i]
		}
		return a, s.Max, true
	}
	return s.Min, s.Max, true
}

func evalOp(l *Leaf, s *ColumnStats) Verdict {
	if s.Rows == 0 {
		return None
	}
	allNull := s.Rows > 0 && s.NullCount == s.Rows
	noNull := s.NullCount == 0
	switch l.Op {
	case IsNull:
		return pick(noNull, allNull)
	case IsNotNull:
		return pick(allNull, noNull)
	}
	if allNull {
		return None
	}
	if s.Min == nil || s.Max == nil {
		return Some
	}
	if s.Single {
		return evalSingle(l, s.Min)
	}
	switch {
	case l.Type.Kind == types.BpChar:
		return evalChar(l, s)
	case l.Type.Kind == types.Float4 || l.Type.Kind == types.Float8:
		return evalFloat(l, s)
	}
	return evalRange(l, s, noNull)
}

// pick turns "no row matches" and "every row matches" into a verdict.
func pick(none, all bool) Verdict {
	switch {
	case none:
		return None
	case all:
		return All
	}
	return Some
}

// evalSingle compares one known value as SQL does.
func evalSingle(l *Leaf, v types.Datum) Verdict {
	match, known := Matches(l, v)
	if !known {
		return Some
	}
	return pick(!match, match)
}

// Matches evaluates a leaf on one value that is not NULL; known is false when
// the operation or type has no rule here.
func Matches(l *Leaf, v types.Datum) (match, known bool) {
	at := func(i int) (int, bool) {
		if i >= len(l.Args) {
			return 0, false
		}
		return Compare(l.Type, v, l.Args[i])
	}
	switch l.Op {
	case IsNull:
		return false, true
	case IsNotNull:
		return true, true
	case In, NotIn:
		for i := range l.Args {
			c, ok := at(i)
			if !ok {
				return false, false
			}
			if c == 0 {
				return l.Op == In, true
			}
		}
		return l.Op == NotIn, true
	case StartsWith:
		a, ok1 := v.(string)
		p, ok2 := l.Args[0].(string)
		return strings.HasPrefix(a, p), ok1 && ok2 && l.Type.Kind != types.BpChar
	case Between:
		lo, ok1 := at(0)
		hi, ok2 := at(1)
		return lo >= 0 && hi <= 0, ok1 && ok2
	}
	c, ok := at(0)
	switch l.Op {
	case Eq:
		return c == 0, ok
	case NotEq:
		return c != 0, ok
	case Lt:
		return c < 0, ok
	case LtEq:
		return c <= 0, ok
	case Gt:
		return c > 0, ok
	case GtEq:
		return c >= 0, ok
	}
	return false, false
}

// evalRange judges types whose stored order is that of SQL.
func evalRange(l *Leaf, s *ColumnStats, noNull bool) Verdict {
	if l.Op == In || l.Op == NotIn {
		return evalList(l, s)
	}
	if len(l.Args) == 0 {
		return Some
	}
	if l.Op == StartsWith {
		p, ok1 := l.Args[0].(string)
		lo, ok2 := s.Min.(string)
		hi, ok3 := s.Max.(string)
		if !ok1 || !ok2 || !ok3 {
			return Some
		}
		return pick(hi < p || lo > p && !strings.HasPrefix(lo, p), false)
	}
	lo, ok1 := Compare(l.Type, s.Min, l.Args[0]) // min ? x
	hi, ok2 := Compare(l.Type, s.Max, l.Args[0]) // max ? x
	if !ok1 || !ok2 {
		return Some
	}
	switch l.Op {
	case Eq:
		return pick(lo > 0 || hi < 0, noNull && lo == 0 && hi == 0)
	case NotEq:
		return pick(lo == 0 && hi == 0, noNull && (lo > 0 || hi < 0))
	case Lt:
		return pick(lo >= 0, noNull && hi < 0)
	case LtEq:
		return pick(lo > 0, noNull && hi <= 0)
	case Gt:
		return pick(hi <= 0, noNull && lo > 0)
	case GtEq:
		return pick(hi < 0, noNull && lo >= 0)
	case Between:
		if len(l.Args) < 2 {
			return Some
		}
		lo2, ok1 := Compare(l.Type, s.Min, l.Args[1])
		hi2, ok2 := Compare(l.Type, s.Max, l.Args[1])
		if !ok1 || !ok2 {
			return Some
		}
		return pick(hi < 0 || lo2 > 0, noNull && lo >= 0 && hi2 <= 0)
	}
	return Some
}

func evalList(l *Leaf, s *ColumnStats) Verdict {
	single, ok := Compare(l.Type, s.Min, s.Max)
	if !ok {
		return Some
	}
	outside := true
	for _, x := range l.Args {
		lo, ok1 := Compare(l.Type, s.Min, x)
		hi, ok2 := Compare(l.Type, s.Max, x)
		if !ok1 || !ok2 {
			return Some
		}
		if lo <= 0 && hi >= 0 {
			outside = false
			if single == 0 && l.Op == NotIn {
				return None // every value is x
			}
		}
	}
	return pick(l.Op == In && outside, false)
}

// evalFloat judges floats. A file may hold NaN, which SQL puts above every
// number, although no bound shows it: writers leave NaN out of the bounds or
// drop the bounds. So the upper bound only serves operations that NaN fails.
func evalFloat(l *Leaf, s *ColumnStats) Verdict {
	lo, ok1 := s.Min.(float64)
	hi, ok2 := s.Max.(float64)
	if !ok1 || !ok2 || math.IsNaN(lo) || math.IsNaN(hi) {
		return Some
	}
	x := func(i int) (float64, bool) {
		if i >= len(l.Args) {
			return 0, false
		}
		f, ok := l.Args[i].(float64)
		return f, ok && !math.IsNaN(f)
	}
	a, ok := x(0)
	if !ok && l.Op != In {
		return Some
	}
	switch l.Op {
	case Eq:
		return pick(a < lo || a > hi, false)
	case Lt:
		return pick(lo >= a, false)
	case LtEq:
		return pick(lo > a, false)
	case Between:
		b, ok := x(1)
		return pick(ok && (b < lo || a > hi), false)
	case In:
		for i := range l.Args {
			if f, ok := x(i); !ok || f >= lo && f <= hi {
				return Some
			}
		}
		return None
	}
	return Some
}

// evalChar judges CHAR(n). Values may be stored with or without trailing blanks,
// SQL ignores them, and the bounds are in byte order of what is stored; so only
// equality is judged: a stored value equal to x is x followed by blanks.
func evalChar(l *Leaf, s *ColumnStats) Verdict {
	lo, ok1 := s.Min.(string)
	hi, ok2 := s.Max.(string)
	if !ok1 || !ok2 || l.Op != Eq && l.Op != In {
		return Some
	}
	for _, arg := range l.Args {
		x, ok := arg.(string)
		if !ok {
			return Some
		}
		x = strings.TrimRight(x, " ")
		if hi < x || lo > x && !blankTail(lo, x) {
			continue
		}
		return Some
	}
	return None
}

// blankTail reports whether lo may be at or below x followed by any blanks.
func blankTail(lo, x string) bool {
	rest, ok := strings.CutPrefix(lo, x)
	if !ok {
		return false
	}
	rest = strings.TrimLeft(rest, " ")
	return rest == "" || rest[0] < ' '
}

// Compare orders two values of type t as SQL does; false when there is no rule.
func Compare(t types.Type, a, b types.Datum) (int, bool) {
	switch x := a.(type) {
	case int64:
		if y, ok := b.(int64); ok {
			return cmp.Compare(x, y), true
		}
	case string:
		y, ok := b.(string)
		if !ok || t.Kind == types.JSON || t.Kind == types.JSONB {
			return 0, false
		}
		if t.Kind == types.BpChar {
			x, y = strings.TrimRight(x, " "), strings.TrimRight(y, " ")
		}
		return strings.Compare(x, y), true
	case float64:
		if y, ok := b.(float64); ok {
			xn, yn := math.IsNaN(x), math.IsNaN(y)
			switch {
			case xn && yn:
				return 0, true
			case xn:
				return 1, true
			case yn:
				return -1, true
			case x < y:
				return -1, true
			case x > y:
				return 1, true
			}
			return 0, true
		}
	case bool:
		if y, ok := b.(bool); ok {
			switch {
			case x == y:
				return 0, true
			case y:
				return -1, true
			}
			return 1, true
		}
	case []byte:
		if y, ok := b.([]byte); ok && t.Kind == types.Bytea {
			return bytes.Compare(x, y), true
		}
	case *numeric.Dec:
		if y, ok := b.(*numeric.Dec); ok {
			return numeric.Cmp(x, y), true
		}
	}
	return 0, false
}
