package fileindex

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// valuesUnder returns the values that the maps of a column have under a key, NULL where
// a map is NULL or has no such key. Of a key that stands in a map twice it is the last.
func valuesUnder(a arrow.Array, key string, t types.Type) arrow.Array {
	m := a.(*array.Map)
	out := make([]types.Datum, m.Len())
	keys, items := m.Keys(), m.Items()
	for i := range out {
		if m.IsNull(i) {
			continue
		}
		from, to := m.ValueOffsets(i)
		for k := from; k < to; k++ {
			if vec.DatumAt(keys, types.Of(types.Text), int(k)) == key {
				out[i] = vec.DatumAt(items, t, int(k))
			}
		}
	}
	return vec.FromDatums(t, out)
}
