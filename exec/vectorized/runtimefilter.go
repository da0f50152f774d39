package vectorized

import (
	"math"
	"slices"
	"sync/atomic"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

type arrowArray = arrow.Array

// joinFilters are what the build side of one hash join says of its keys.
type joinFilters struct{ keys []*keyFilter }

// joinFilter returns the filter of a join's key, made on the first mention.
func (s *scope) joinFilter(join, key int) *keyFilter {
	j := s.filters[join]
	if j == nil {
		j = &joinFilters{}
		s.filters[join] = j
	}
	for len(j.keys) <= key {
		j.keys = append(j.keys, &keyFilter{})
	}
	return j.keys[key]
}

// keyFilter is a set that holds at least every value of a build key. It is
// filled once, before ready is set, and only read from then on.
type keyFilter struct {
	ready     atomic.Bool
	unbounded bool // says nothing
	empty     bool // the build side has no rows
	t         types.Type
	ints      bool
	min, max  int64    // of integer-like keys
	exact     []uint64 // bitmap over min..max, when that is dense enough
	// sortedInts are all keys, ascending, when they are few and there is no bitmap.
	sortedInts []int64
	list       []types.Datum // all keys, nil = too many
	sorted     []types.Datum // all other keys in the order of compareKeys, nil = too many
	lo, hi     types.Datum   // bounds of other keys, nil = unknown
	bloom      *bloom
}

// fill makes the filter from the build side's key column.
func (k *keyFilter) fill(t types.Type, parts []arrow.Array, acc *mem.Account) {
	defer k.ready.Store(true)
	k.t = t
	rows := 0
	for _, a := range parts {
		rows += a.Len() - a.NullN()
	}
	if rows == 0 {
		k.empty = true
		return
	}
	switch {
	case t.IsInteger(), t.IsOIDLike(), t.Kind == types.Date, t.Kind == types.Timestamp, t.Kind == types.TimestampTZ, t.Kind == types.Time:
		k.fillInts(parts, rows, acc)
		return
	case t.Kind == types.JSON, rows > 50_000_000:
		k.unbounded = true
		return
	}
	bl := newBloom(rows, acc)
	if bl == nil {
		k.unbounded = true
		return
	}
	for _, a := range parts {
		h := make([]uint64, a.Len())
		vec.HashColumn(t, a, h, nil)
		valid, off := vec.Validity(a)
		for i, x := range h {
			if vec.BitAt(valid, off+i) {
				bl.add(x)
			}
		}
	}
	k.bloom = bl
	k.fillValues(parts, rows, acc)
}

func (k *keyFilter) fillInts(parts []arrow.Array, rows int, acc *mem.Account) {
	k.ints = true
	k.min, k.max = math.MaxInt64, math.MinInt64
	each := func(f func(v int64)) {
		for _, a := range parts {
			valid, off := vec.Validity(a)
			switch a := a.(type) {
			case *array.Int64, *array.Timestamp, *array.Time64:
				for i, v := range vec.ViewOf[int64](a).V {
					if vec.BitAt(valid, off+i) {
						f(v)
					}
				}
			case *array.Int32, *array.Date32:
				for i, v := range vec.ViewOf[int32](a).V {
					if vec.BitAt(valid, off+i) {
						f(int64(v))
					}
				}
			case *array.Int16:
				for i, v := range vec.ViewOf[int16](a).V {
					if vec.BitAt(valid, off+i) {
						f(int64(v))
					}
				}
			}
		}
	}
	each(func(v int64) { k.min, k.max = min(k.min, v), max(k.max, v) })
	span := uint64(k.max) - uint64(k.min)
	if span/64 < uint64(rows)*2+1024 {
		words := int64(span/64 + 1)
		if acc.Grow(words*8) == nil {
			k.exact = make([]uint64, words)
			each(func(v int64) {
				d := uint64(v) - uint64(k.min)
				k.exact[d>>6] |= 1 << (d & 63)
			})
		}
	}
	if rows <= maxFilterRows && acc.Grow(int64(rows)*8) == nil {
		all := make([]int64, 0, rows)
		each(func(v int64) { all = append(all, v) })
		slices.Sort(all)
		all = slices.Compact(all)
		if k.exact == nil {
			k.sortedInts = all
		}
		if len(all) <= maxFilterList {
			for _, v := range all {
				k.list = append(k.list, v)
			}
		}
	}
	if k.exact == nil {
		if k.bloom = newBloom(rows, acc); k.bloom != nil {
			each(func(v int64) { k.bloom.add(vec.HashU64(0, uint64(v))) })
		}
	}
}

// selects reports whether rows of a column of type t are compared with the keys: what is
// equal has to have the same hash.
func (k *keyFilter) selects(t types.Type) bool {
	return k.ints || k.empty || !isFloat(k.t) || t.Kind == k.t.Kind
}

// selectRows narrows sel to rows that may match. hashes is scratch.
func (k *keyFilter) selectRows(a arrow.Array, rows int, sel, out []uint16, hashes *[]uint64) int {
	if k.empty {
		return 0
	}
	if valid, off := vec.Validity(a); valid != nil {
		sel = out[:vec.SelectValid(valid, off, rows, sel, out)]
	}
	if k.ints {
		switch a.(type) {
		case *array.Int64, *array.Timestamp, *array.Time64:
			return filterInts(k, vec.ViewOf[int64](a).V, sel, out)
		case *array.Int32, *array.Date32:
			return filterInts(k, vec.ViewOf[int32](a).V, sel, out)
		case *array.Int16:
			return filterInts(k, vec.ViewOf[int16](a).V, sel, out)
		}
		return copySel(rows, sel, out)
	}
	if k.bloom == nil {
		return copySel(rows, sel, out)
	}
	n := liveN(rows, sel)
	if cap(*hashes) < n {
		*hashes = make([]uint64, n)
	}
	h := (*hashes)[:n]
	clear(h)
	vec.HashColumn(k.t, a, h, sel)
	j := 0
	for i, x := range h {
		r := uint16(i)
		if sel != nil {
			r = sel[i]
		}
		out[j] = r
		j += k.bloom.has(x)
	}
	return j
}

func filterInts[T int16 | int32 | int64](k *keyFilter, v []T, sel, out []uint16) int {
	n := len(v)
	if sel != nil {
		n = len(sel)
	}
	lo, span := uint64(k.min), uint64(k.max)-uint64(k.min)
	j := 0
	switch {
	case k.exact != nil:
		bits := k.exact
		for i := range n {
			r := uint16(i)
			if sel != nil {
				r = sel[i]
			}
			out[j] = r
			if d := uint64(v[r]) - lo; d <= span {
				j += int(bits[d>>6] >> (d & 63) & 1)
			}
		}
	case k.bloom != nil:
		for i := range n {
			r := uint16(i)
			if sel != nil {
				r = sel[i]
			}
			out[j] = r
			x := uint64(v[r])
			if x-lo <= span {
				j += k.bloom.has(vec.HashU64(0, x))
			}
		}
	default:
		for i := range n {
			r := uint16(i)
			if sel != nil {
				r = sel[i]
			}
			out[j] = r
			if uint64(v[r])-lo <= span {
				j++
			}
		}
	}
	return j
}

// bloom is a Bloom filter of one 64-bit word per key: four bits of it are set.
type bloom struct {
	words []uint64
	shift uint
}

// newBloom returns nil when memory is refused: a filter is only an advantage.
func newBloom(rows int, acc *mem.Account) *bloom {
	n, lg := 64, uint(6)
	for n < rows/4 {
		n, lg = n*2, lg+1
	}
	if acc.Grow(int64(n)*8) != nil {
		return nil
	}
	return &bloom{words: make([]uint64, n), shift: 64 - lg}
}

func bloomMask(h uint64) uint64 {
	return 1<<(h&63) | 1<<(h>>6&63) | 1<<(h>>12&63) | 1<<(h>>18&63)
}

func (b *bloom) add(h uint64) { b.words[h>>b.shift] |= bloomMask(h) }

func (b *bloom) has(h uint64) int {
	m := bloomMask(h)
	if b.words[h>>b.shift]&m == m {
		return 1
	}
	return 0
}
