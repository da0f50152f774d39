package vectorized

import (
	"bytes"
	"cmp"
	"math"
	"slices"
	"sort"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// What a keyFilter tells storage: few values by their names, more of them as a set
// that is asked about the bounds of a file, and without that their own bounds.

// maxFilterList is up to how many values a filter names them one by one.
const maxFilterList = 64

// maxFilterRows is up to how many rows are looked at one by one for lists and sets.
const maxFilterRows = 1 << 16

// maxProbes is up to how many whole numbers between two bounds a set without order is
// asked about one by one.
const maxProbes = 64

// keySet is the set of build keys as storage asks about it.
type keySet keyFilter

var _ predicate.Set = (*keySet)(nil)

// Intersects implements predicate.Set.
func (s *keySet) Intersects(lo, hi types.Datum) bool {
	k := (*keyFilter)(s)
	if k.ints {
		a, ok1 := lo.(int64)
		b, ok2 := hi.(int64)
		return !ok1 || !ok2 || k.someInt(a, b)
	}
	if k.sorted != nil {
		from, ok := 0, true
		from = sort.Search(len(k.sorted), func(i int) bool {
			c, known := compareKeys(k.sorted[i], lo)
			ok = ok && known
			return c >= 0
		})
		if !ok || from == len(k.sorted) {
			return !ok
		}
		c, known := compareKeys(k.sorted[from], hi)
		return !known || c <= 0
	}
	if k.lo != nil {
		x, ok1 := compareKeys(k.hi, lo)
		y, ok2 := compareKeys(k.lo, hi)
		if ok1 && x < 0 || ok2 && y > 0 {
			return false
		}
	}
	// One value, as partitions and files sorted by the key have it: the Bloom filter.
	if k.bloom == nil || !hashable(lo) {
		return true
	}
	if c, ok := compareKeys(lo, hi); !ok || c != 0 {
		return true
	}
	t, h := k.t, make([]uint64, 1)
	if t.Kind == types.Numeric {
		t = types.Of(types.Numeric) // of any scale
	}
	vec.HashColumn(t, vec.FromDatums(t, []types.Datum{lo}), h, nil)
	return k.bloom.has(h[0]) != 0
}

// hashable reports whether a value that statistics name has the form of a key's type:
// bounds of text may be cut, but then they are not equal.
func hashable(d types.Datum) bool {
	switch d.(type) {
	case string, []byte, float64, *numeric.Dec, bool:
		return true
	}
	return false
}

// someInt reports whether a key within [lo, hi] may be there.
func (k *keyFilter) someInt(lo, hi int64) bool {
	if lo, hi = max(lo, k.min), min(hi, k.max); lo > hi {
		return false
	}
	switch {
	case k.exact != nil:
		return anyBit(k.exact, uint64(lo)-uint64(k.min), uint64(hi)-uint64(k.min))
	case k.sortedInts != nil:
		i, found := slices.BinarySearch(k.sortedInts, lo)
		return found || i < len(k.sortedInts) && k.sortedInts[i] <= hi
	case k.bloom != nil && uint64(hi)-uint64(lo) < maxProbes:
		for v := lo; ; v++ {
			if k.bloom.has(vec.HashU64(0, uint64(v))) != 0 {
				return true
			}
			if v == hi {
				return false
			}
		}
	}
	return true
}

// anyBit reports whether one of bits from to to, inclusive, is set.
func anyBit(words []uint64, from, to uint64) bool {
	first, last := from>>6, to>>6
	head, tail := ^uint64(0)<<(from&63), ^uint64(0)>>(63-to&63)
	if first == last {
		return words[first]&head&tail != 0
	}
	if words[first]&head != 0 || words[last]&tail != 0 {
		return true
	}
	for _, w := range words[first+1 : last] {
		if w != 0 {
			return true
		}
	}
	return false
}

// compareKeys orders keys as statistics do: text by its bytes, whatever its type.
func compareKeys(a, b types.Datum) (int, bool) {
	switch x := a.(type) {
	case string:
		if y, ok := b.(string); ok {
			return strings.Compare(x, y), true
		}
	case []byte:
		if y, ok := b.([]byte); ok {
			return bytes.Compare(x, y), true
		}
	case float64:
		if y, ok := b.(float64); ok && x == x && y == y {
			return cmp.Compare(x, y), true
		}
	case *numeric.Dec:
		if y, ok := b.(*numeric.Dec); ok {
			return numeric.Cmp(x, y), true
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
	}
	return 0, false
}

// fillValues finds the values, when they are few, and their bounds. Keys with a value
// that storage has no order for have neither.
func (k *keyFilter) fillValues(parts []arrow.Array, rows int, acc *mem.Account) {
	switch {
	case plainText(k.t.Kind), k.t.Kind == types.Bytea, k.t.Kind == types.Numeric, k.t.Kind == types.Float4, k.t.Kind == types.Float8,
		k.t.Kind == types.BpChar, k.t.Kind == types.Bool, k.t.Kind == types.UUID:
	default:
		return
	}
	if rows > maxFilterRows {
		k.fillBounds(parts)
		return
	}
	const each = 64 // bytes of a value, about
	if acc.Grow(int64(rows)*each) != nil {
		return
	}
	all := make([]types.Datum, 0, rows)
	for _, a := range parts {
		valid, off := vec.Validity(a)
		for i := range a.Len() {
			if !vec.BitAt(valid, off+i) {
				continue
			}
			d, ok := setValue(vec.DatumAt(a, k.t, i), k.t)
			if !ok {
				return
			}
			all = append(all, d)
		}
	}
	slices.SortFunc(all, func(a, b types.Datum) int { c, _ := compareKeys(a, b); return c })
	all = slices.CompactFunc(all, func(a, b types.Datum) bool { c, _ := compareKeys(a, b); return c == 0 })
	k.sorted, k.lo, k.hi = all, all[0], all[len(all)-1]
	if len(all) <= maxFilterList {
		k.list = all
	}
}

// setValue is the form of a key in a set; false when no set can hold it.
func setValue(d types.Datum, t types.Type) (types.Datum, bool) {
	switch v := d.(type) {
	case float64:
		if v == 0 {
			return 0.0, true // not -0
		}
		return v, !math.IsNaN(v) // what is greatest of all has no bounds on disk
	case string:
		if t.Kind == types.BpChar {
			return strings.TrimRight(v, " "), true
		}
	case *numeric.Dec:
		return v, v.Form == numeric.Finite
	case []byte, bool:
	default:
		return nil, false
	}
	return d, true
}

// fillBounds finds the least and the greatest of many values.
func (k *keyFilter) fillBounds(parts []arrow.Array) {
	if k.t.Kind == types.BpChar || k.t.Kind == types.Numeric && k.t.Prec == 0 {
		return // not ordered by the bytes
	}
	var lo, hi types.Datum
	for _, a := range parts {
		least, greatest := bounds(vec.Decode(a))
		if least < 0 {
			if a.NullN() == a.Len() {
				continue
			}
			return
		}
		for _, i := range []int{least, greatest} {
			d, ok := setValue(vec.DatumAt(vec.Decode(a), k.t, i), k.t)
			if !ok {
				return
			}
			if lo == nil {
				lo, hi = d, d
			}
			x, ok1 := compareKeys(d, lo)
			y, ok2 := compareKeys(d, hi)
			if !ok1 || !ok2 {
				return
			}
			if x < 0 {
				lo = d
			}
			if y > 0 {
				hi = d
			}
		}
	}
	k.lo, k.hi = lo, hi
}

// bounds returns the rows of the least and the greatest value of an array, -1 when there
// is none or its type has no order here. NaN is greatest.
func bounds(a arrow.Array) (least, greatest int) {
	valid, off := vec.Validity(a)
	least, greatest = -1, -1
	each := func(n int, less func(i, j int) bool) (int, int) {
		for i := range n {
			switch {
			case !vec.BitAt(valid, off+i):
			case least < 0:
				least, greatest = i, i
			case less(i, least):
				least = i
			case less(greatest, i):
				greatest = i
			}
		}
		return least, greatest
	}
	switch x := a.(type) {
	case *array.String, *array.Binary:
		s := vec.ViewStr(a)
		return each(a.Len(), func(i, j int) bool { return bytes.Compare(s.At(i), s.At(j)) < 0 })
	case *array.FixedSizeBinary:
		return each(a.Len(), func(i, j int) bool { return bytes.Compare(x.Value(i), x.Value(j)) < 0 })
	case *array.Float64:
		v := x.Float64Values()
		return each(len(v), func(i, j int) bool { return v[i] < v[j] || v[j] != v[j] && v[i] == v[i] })
	case *array.Float32:
		v := x.Float32Values()
		return each(len(v), func(i, j int) bool { return v[i] < v[j] || v[j] != v[j] && v[i] == v[i] })
	case *array.Decimal128:
		v := x.Values()
		return each(len(v), func(i, j int) bool { return v[i].Less(v[j]) })
	}
	return -1, -1
}

// predicate says in storage's language what the column may be; nil = nothing.
func (k *keyFilter) predicate(leaf predicate.Leaf) predicate.Node {
	if k.unbounded || k.empty || leaf.Col < 0 || !k.compares(leaf.Type) {
		return nil
	}
	if k.ints {
		lo, hi := intRange(leaf.Type)
		if k.max < lo || k.min > hi {
			return nil // no value of the column; rows say so
		}
		if len(k.list) > 0 && k.min >= lo && k.max <= hi {
			leaf.Op, leaf.Args = predicate.In, k.list
			return &leaf
		}
		leaf.Op, leaf.Args, leaf.Set = predicate.Between, []types.Datum{max(k.min, lo), min(k.max, hi)}, (*keySet)(k)
		return &leaf
	}
	if k.sorted == nil && k.lo == nil && k.bloom == nil {
		return nil
	}
	leaf.Set = (*keySet)(k)
	switch {
	case !k.sameForm(leaf.Type), k.t.Kind == types.UUID:
		leaf.Op = predicate.IsNotNull
	case len(k.list) > 0:
		leaf.Op, leaf.Args, leaf.Set = predicate.In, k.list, nil
	case k.t.Kind == types.BpChar, k.lo == nil:
		// Of CHAR equality is all that others know.
		leaf.Op = predicate.IsNotNull
	default:
		leaf.Op, leaf.Args = predicate.Between, []types.Datum{k.lo, k.hi}
	}
	return &leaf
}

// compares reports whether values of a column of type t can be compared with the keys as
// they are.
func (k *keyFilter) compares(t types.Type) bool {
	if t.IsNanos() != k.t.IsNanos() {
		return false
	}
	switch {
	case t.Kind == k.t.Kind:
		return true
	case t.IsInteger() && k.t.IsInteger(), plainText(t.Kind) && plainText(k.t.Kind):
		return true
	}
	return isFloat(t) && isFloat(k.t)
}

func isFloat(t types.Type) bool { return t.Kind == types.Float4 || t.Kind == types.Float8 }

// sameForm reports whether keys are constants of a column's type t.
func (k *keyFilter) sameForm(t types.Type) bool {
	switch {
	case k.t.Kind == types.Numeric:
		if t.Scale != k.t.Scale || t.Prec < k.t.Prec || k.t.Prec == 0 {
			return false
		}
		for _, d := range k.list {
			if x, ok := d.(*numeric.Dec); !ok || x.Scale != int32(k.t.Scale) {
				return false
			}
		}
	case isFloat(k.t):
		return t.Kind == k.t.Kind
	}
	return true
}

// intRange are the values of an integer-like type.
func intRange(t types.Type) (lo, hi int64) {
	switch t.Kind {
	case types.TinyInt:
		return math.MinInt8, math.MaxInt8
	case types.Int2:
		return math.MinInt16, math.MaxInt16
	case types.Int4, types.Date:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}
