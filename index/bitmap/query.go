package bitmap

import (
	"cmp"
	"slices"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// span is a range of keys, both ends in it unless they are open or missing.
type span[K cmp.Ordered] struct {
	lo, hi         K
	noLo, noHi     bool
	openLo, openHi bool
}

func point[K cmp.Ordered](k K) span[K] { return span[K]{lo: k, hi: k} }

// below reports whether k lies before the span, above whether it lies behind.
func (s *span[K]) below(k K) bool { return !s.noLo && (k < s.lo || s.openLo && k == s.lo) }
func (s *span[K]) above(k K) bool { return !s.noHi && (k > s.hi || s.openHi && k == s.hi) }

// query is a leaf in terms of keys: the rows whose keys lie in the spans, or, if
// not, those whose keys do not.
type query[K cmp.Ordered] struct {
	spans  []span[K] // ascending and apart
	points bool      // every span is one key
	not    bool
	// exact: a value matches exactly when its key does. A query that is not exact
	// finds more values than match, and cannot be turned round.
	exact bool
}

// tidy sorts points and drops those that are there twice.
func tidy[K cmp.Ordered](ks []K) []span[K] {
	slices.Sort(ks)
	ks = slices.Compact(ks)
	out := make([]span[K], len(ks))
	for i, k := range ks {
		out[i] = point(k)
	}
	return out
}

// arity reports whether a leaf has as many constants as its operation takes.
func arity(l *predicate.Leaf) bool {
	switch l.Op {
	case predicate.In, predicate.NotIn:
		return true
	case predicate.Between:
		return len(l.Args) == 2
	}
	return len(l.Args) == 1
}

// stringQuery: text in byte order, CHAR in all forms that a value may have.
func stringQuery(t types.Type, l *predicate.Leaf) (query[string], bool) {
	q := query[string]{exact: true}
	if !arity(l) {
		return q, false
	}
	args := make([]string, len(l.Args))
	for i, a := range l.Args {
		var ok bool
		if args[i], ok = a.(string); !ok {
			return q, false
		}
	}
	switch l.Op {
	case predicate.NotEq, predicate.NotIn:
		q.not = true
		fallthrough
	case predicate.Eq, predicate.In:
		if q.points = true; t.Kind == types.BpChar {
			var forms []string
			for _, a := range args {
				f, ok := index.CharForms(t, a)
				if !ok {
					return q, false
				}
				forms = append(forms, f...)
			}
			args = forms
		}
		q.spans = tidy(args)
		return q, true
	}
	if t.Kind == types.BpChar {
		return q, false // the order of what is stored is not SQL's
	}
	var s span[string]
	switch l.Op {
	case predicate.Lt:
		s = span[string]{noLo: true, hi: args[0], openHi: true}
	case predicate.LtEq:
		s = span[string]{noLo: true, hi: args[0]}
	case predicate.Gt:
		s = span[string]{lo: args[0], openLo: true, noHi: true}
	case predicate.GtEq:
		s = span[string]{lo: args[0], noHi: true}
	case predicate.Between:
		if s = (span[string]{lo: args[0], hi: args[1]}); s.lo > s.hi {
			return q, true
		}
	case predicate.StartsWith:
		s = span[string]{lo: args[0], openHi: true}
		// The first string behind all that have the prefix.
		n := len(args[0])
		for n > 0 && args[0][n-1] == 0xff {
			n--
		}
		if s.noHi = n == 0; !s.noHi {
			s.hi = args[0][:n-1] + string([]byte{args[0][n-1] + 1})
		}
	default:
		return q, false
	}
	q.spans = []span[string]{s}
	return q, true
}

// fixedQuery: everything else, in ordered keys.
func fixedQuery(t types.Type, l *predicate.Leaf) (query[int64], bool) {
	q := query[int64]{exact: true}
	if !arity(l) {
		return q, false
	}
	negZero, signed := index.NegativeZero(t)
	negZero = ordered(t, negZero)
	type arg struct {
		key   int64
		exact bool // values of this key are equal to the constant
	}
	args := make([]arg, len(l.Args))
	for i, a := range l.Args {
		k, exact, ok := index.LeafKey(t, a)
		if !ok {
			return q, false
		}
		args[i] = arg{ordered(t, k), exact}
	}
	switch l.Op {
	case predicate.NotEq, predicate.NotIn:
		q.not = true
		fallthrough
	case predicate.Eq, predicate.In:
		q.points = true
		var keys []int64
		for _, a := range args {
			keys = append(keys, a.key)
			if signed && a.key == 0 {
				keys = append(keys, negZero)
			}
			q.exact = q.exact && a.exact
		}
		q.spans = tidy(keys)
		return q, true
	case predicate.StartsWith:
		return q, false
	}
	// Where one key stands for several values, those of the constant's own key are
	// on either side of it: its rows are candidates.
	lower := func(a arg, open bool) span[int64] {
		s := span[int64]{lo: a.key, openLo: open, noHi: true}
		if !a.exact {
			s.openLo, q.exact = false, false
		}
		if signed && a.key == 0 && !open {
			s.lo = negZero
		}
		return s
	}
	upper := func(a arg, open bool) span[int64] {
		s := span[int64]{hi: a.key, openHi: open, noLo: true}
		if !a.exact {
			s.openHi, q.exact = false, false
		}
		if signed && a.key == 0 && open {
			s.hi = negZero
		}
		return s
	}
	var s span[int64]
	switch l.Op {
	case predicate.Lt:
		s = upper(args[0], true)
	case predicate.LtEq:
		s = upper(args[0], false)
	case predicate.Gt:
		s = lower(args[0], true)
	case predicate.GtEq:
		s = lower(args[0], false)
	case predicate.Between:
		s = lower(args[0], false)
		u := upper(args[1], false)
		if s.hi, s.noHi = u.hi, false; s.lo > s.hi {
			return query[int64]{exact: true}, true
		}
	default:
		return q, false
	}
	q.spans = []span[int64]{s}
	return q, true
}
