package table

import (
	"bytes"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// keyRange returns the range of keys, in the byte form of the key codec, outside
// of which no row passes a filter: from inclusive, to exclusive, nil = open. It
// follows the key columns as long as conjuncts say that they equal a constant,
// and takes one range after them. A merge that knows it looks at the rows of a
// lookup, not at all those of the pages that they are in.
func keyRange(filter predicate.Node, keyCols []int, fields types.Schema) (from, to []byte) {
	var leaves []*predicate.Leaf
	switch n := filter.(type) {
	case *predicate.Leaf:
		leaves = append(leaves, n)
	case *predicate.And:
		for _, a := range n.Args {
			if l, ok := a.(*predicate.Leaf); ok {
				leaves = append(leaves, l)
			}
		}
	}
	if len(leaves) == 0 {
		return nil, nil
	}
	var prefix []byte // of the columns that equal a constant, fixed of them
	fixed := 0
	for i, c := range keyCols {
		t := fields[c].Type
		if !keyOrdered(t) {
			break
		}
		last := i == len(keyCols)-1
		lo, hi := span(leaves, c, t)
		if lo == nil && hi == nil {
			break
		}
		// The codec of one column, or of one that is followed by another, gives the
		// form that it has inside of the whole key.
		one := mergetree.NewKeyCodec([]types.Type{t})
		if !last {
			one = mergetree.NewKeyCodec([]types.Type{t, types.Of(types.Int4)})
		}
		form := func(d types.Datum) []byte {
			if last {
				return one.Append(bytes.Clone(prefix), []types.Datum{d})
			}
			b := one.Append(bytes.Clone(prefix), []types.Datum{d, int64(0)})
			return b[:len(b)-4]
		}
		if lo != nil && hi != nil {
			if v, ok := predicate.Compare(t, lo, hi); ok && v == 0 {
				prefix = form(lo)
				fixed++
				continue
			}
		}
		if lo != nil {
			from = form(lo)
		} else if fixed > 0 {
			from = prefix
		}
		if hi != nil {
			to = after(form(hi), t, last)
		} else if fixed > 0 {
			to = increment(prefix)
		}
		return from, to
	}
	switch {
	case fixed == 0:
		return nil, nil
	case fixed == len(keyCols):
		return prefix, after(prefix, fields[keyCols[fixed-1]].Type, true)
	}
	return prefix, increment(prefix)
}

// keyOrdered reports whether values that are equal or ordered under SQL are so in
// the byte form, too.
func keyOrdered(t types.Type) bool {
	switch t.Kind {
	case types.TinyInt, types.Int2, types.Int4, types.Int8, types.Date, types.Time, types.Timestamp, types.TimestampTZ, types.Text, types.Varchar:
		return !t.IsNanos()
	}
	return false
}

// span returns the bounds, both inclusive, that leaves set to column c.
func span(leaves []*predicate.Leaf, c int, t types.Type) (lo, hi types.Datum) {
	raise := func(d types.Datum) {
		if v, ok := predicate.Compare(t, d, lo); lo == nil || ok && v > 0 {
			lo = d
		}
	}
	lower := func(d types.Datum) {
		if v, ok := predicate.Compare(t, d, hi); hi == nil || ok && v < 0 {
			hi = d
		}
	}
	for _, l := range leaves {
		if l.Col != c || len(l.Args) == 0 {
			continue
		}
		switch l.Op {
		case predicate.Eq:
			raise(l.Args[0])
			lower(l.Args[0])
		case predicate.Gt, predicate.GtEq:
			raise(l.Args[0])
		case predicate.Lt, predicate.LtEq:
			lower(l.Args[0])
		case predicate.Between:
			raise(l.Args[0])
			lower(l.Args[1])
		case predicate.In:
			least, most := l.Args[0], l.Args[0]
			for _, a := range l.Args[1:] {
				if v, ok := predicate.Compare(t, a, least); !ok {
					return nil, nil
				} else if v < 0 {
					least = a
				}
				if v, ok := predicate.Compare(t, a, most); !ok {
					return nil, nil
				} else if v > 0 {
					most = a
				}
			}
			raise(least)
			lower(most)
		}
	}
	return lo, hi
}

// after returns the smallest form above every key that begins with b, whose last
// column is of type t. Text at the end of a key has no terminator, so a longer one
// follows it; everywhere else equal columns have equal bytes.
func after(b []byte, t types.Type, last bool) []byte {
	if last && (t.Kind == types.Text || t.Kind == types.Varchar) {
		return append(bytes.Clone(b), 0)
	}
	return increment(b)
}

// increment returns the smallest bytes above everything that begins with b; nil =
// there is none.
func increment(b []byte) []byte {
	out := bytes.Clone(b)
	for i := len(out) - 1; i >= 0; i-- {
		if out[i]++; out[i] != 0 {
			return out[:i+1]
		}
	}
	return nil
}
