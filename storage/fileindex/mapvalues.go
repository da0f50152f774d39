package fileindex

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// valuesUnder returns the values that the maps of a column have under a key, NULL where
// a map is NULL or has no such key. Of a key that stands in a map twice (no writer makes
// that) it is the first, as the executor's map[key] reads it.
func valuesUnder(a arrow.Array, key string) arrow.Array {
	m := vec.Decode(a).(*array.Map)
	at := make([]int32, m.Len())
	is := hasKey(m.Keys(), key)
	for i := range at {
		at[i] = -1
		if m.IsNull(i) {
			continue
		}
		from, to := m.ValueOffsets(i)
		for k := from; k < to; k++ {
			if is(int(k)) {
				at[i] = int32(k)
				break
			}
		}
	}
	return vec.TakeNull(m.Items(), at)
}

// hasKey returns a function that compares the keys of maps with one. Keys of type CHAR
// may have blanks at the end.
func hasKey(keys arrow.Array, key string) func(i int) bool {
	if idx, dict, ok := vec.DictView(keys); ok {
		is := hasKey(dict, key)
		hit := make([]bool, dict.Len())
		for i := range hit {
			hit[i] = is(i)
		}
		return func(i int) bool { return hit[idx[i]] }
	}
	switch k := keys.(type) {
	case *array.String:
		return func(i int) bool { return k.Value(i) == key }
	case *array.LargeString:
		return func(i int) bool { return k.Value(i) == key }
	}
	return func(int) bool { return false }
}
