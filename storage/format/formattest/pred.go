package formattest

import (
	"bytes"
	"math/rand"
	"strings"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Truth is the outcome of a predicate for one row.
type Truth int8

// The outcomes.
const (
	Unknown Truth = iota
	True
	False
)

func truth(b bool) Truth {
	if b {
		return True
	}
	return False
}

// Eval is what SQL says of n for a row whose column c has value row(c): slow and
// obvious, the oracle of Prune.
func Eval(n predicate.Node, row func(col int) types.Datum) Truth {
	switch n := n.(type) {
	case *predicate.And:
		out := True
		for _, a := range n.Args {
			switch Eval(a, row) {
			case False:
				return False
			case Unknown:
				out = Unknown
			}
		}
		return out
	case *predicate.Or:
		out := False
		for _, a := range n.Args {
			switch Eval(a, row) {
			case True:
				return True
			case Unknown:
				out = Unknown
			}
		}
		return out
	case *predicate.Not:
		switch Eval(n.Arg, row) {
		case True:
			return False
		case False:
			return True
		}
		return Unknown
	case *predicate.Leaf:
		return evalLeaf(n, row(n.Col))
	}
	return True
}

func evalLeaf(l *predicate.Leaf, x types.Datum) Truth {
	switch l.Op {
	case predicate.IsNull:
		return truth(x == nil)
	case predicate.IsNotNull:
		return truth(x != nil)
	}
	if x == nil {
		return Unknown
	}
	c := func(i int) int { return cmp(l.Type, x, l.Args[i]) }
	in := func() bool {
		for i := range l.Args {
			if c(i) == 0 {
				return true
			}
		}
		return false
	}
	switch l.Op {
	case predicate.Eq:
		return truth(c(0) == 0)
	case predicate.NotEq:
		return truth(c(0) != 0)
	case predicate.Lt:
		return truth(c(0) < 0)
	case predicate.LtEq:
		return truth(c(0) <= 0)
	case predicate.Gt:
		return truth(c(0) > 0)
	case predicate.GtEq:
		return truth(c(0) >= 0)
	case predicate.In:
		return truth(in())
	case predicate.NotIn:
		return truth(!in())
	case predicate.Between:
		return truth(c(0) >= 0 && c(1) <= 0)
	case predicate.StartsWith:
		return truth(strings.HasPrefix(x.(string), l.Args[0].(string)))
	}
	return Unknown
}

func cmp(t types.Type, a, b types.Datum) int {
	switch a := a.(type) {
	case int64:
		b := b.(int64)
		switch {
		case a < b:
			return -1
		case a > b:
			return 1
		}
		return 0
	case float64:
		b := b.(float64)
		switch {
		case a < b || b != b && a == a:
			return -1
		case a > b || a != a && b == b:
			return 1
		}
		return 0
	case string:
		b := b.(string)
		if t.Kind == types.BpChar {
			a, b = strings.TrimRight(a, " "), strings.TrimRight(b, " ")
		}
		return strings.Compare(a, b)
	case []byte:
		return bytes.Compare(a, b.([]byte))
	case bool:
		switch {
		case a == b.(bool):
			return 0
		case a:
			return 1
		}
		return -1
	case *numeric.Dec:
		return numeric.Cmp(a, b.(*numeric.Dec))
	}
	panic("no order")
}

// RandomPredicate makes a predicate over scalar columns of s; values(col) yields
// a constant for a column, never NULL.
func RandomPredicate(rng *rand.Rand, s types.Schema, depth int, values func(col int) types.Datum) predicate.Node {
	if depth > 0 && rng.Intn(2) == 0 {
		args := []predicate.Node{}
		for n := 1 + rng.Intn(3); n > 0; n-- {
			args = append(args, RandomPredicate(rng, s, depth-1, values))
		}
		switch rng.Intn(3) {
		case 0:
			return &predicate.And{Args: args}
		case 1:
			return &predicate.Or{Args: args}
		}
		return &predicate.Not{Arg: args[0]}
	}
	for {
		c := rng.Intn(len(s))
		if !Scalar(s[c].Type) {
			continue
		}
		l := &predicate.Leaf{Op: predicate.Op(rng.Intn(int(predicate.Between) + 1)), Col: c, FieldID: s[c].ID, Name: s[c].Name, Type: s[c].Type}
		switch l.Op {
		case predicate.IsNull, predicate.IsNotNull:
			return l
		case predicate.In, predicate.NotIn:
			for n := rng.Intn(4); n > 0; n-- {
				l.Args = append(l.Args, values(c))
			}
		case predicate.StartsWith:
			if !s[c].Type.IsTextLike() || s[c].Type.Kind == types.BpChar {
				continue
			}
			v := []rune(values(c).(string))
			l.Args = []types.Datum{string(v[:rng.Intn(len(v)+1)])}
		case predicate.Between:
			l.Args = []types.Datum{values(c), values(c)}
		default:
			l.Args = []types.Datum{values(c)}
		}
		return l
	}
}

// Scalar reports whether predicates can compare values of t.
func Scalar(t types.Type) bool {
	switch t.Kind {
	case types.Array, types.Map, types.Row, types.Variant:
		return false
	}
	return true
}
