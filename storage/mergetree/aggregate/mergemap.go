package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// merge_map puts the entries of maps together, the last of a key wins. A
// retraction removes keys, whatever their values. Source: FieldMergeMapAgg.java.
var mergeMap = Function{
	Name:  "merge_map",
	Takes: isMap,
	New:   func(s Spec) (Aggregate, error) { return &listFold{rules: &mapRules{}}, nil },
}

func isMap(t types.Type) bool {
	return t.Kind == types.Map && !t.Multiset && t.Key != nil && t.Elem != nil
}

type mapRules struct {
	keys arrow.Array
	seen elements // key: place in dst
}

func (m *mapRules) begin(child arrow.Array) { m.keys, _ = mapParts(child) }

func (m *mapRules) merge(dst, acc, x []int32, accNull, xNull bool) ([]int32, bool, error) {
	if accNull || xNull {
		dst, ok := either(dst, acc, x, accNull, xNull)
		return dst, ok, nil
	}
	m.seen.reset()
	for _, from := range [2][]int32{acc, x} {
		for _, j := range from {
			dst = m.put(dst, j)
		}
	}
	return dst, true, nil
}

// put adds an entry or replaces the one with its key.
func (m *mapRules) put(dst []int32, j int32) []int32 {
	e := &m.seen
	e.key = appendValue(e.key[:0], m.keys, int(j))
	if at := e.find(); at != nil {
		dst[*at] = j
		return dst
	}
	e.put(int32(len(dst)))
	return append(dst, j)
}

func (m *mapRules) retract(dst, acc, x []int32, accNull, xNull bool) ([]int32, bool, error) {
	if accNull || xNull || len(x) == 0 {
		return append(dst, acc...), !accNull, nil
	}
	e := &m.seen
	e.reset()
	for _, j := range x {
		e.key = appendValue(e.key[:0], m.keys, int(j))
		if e.find() == nil {
			e.put(0)
		}
	}
	for _, j := range acc {
		e.key = appendValue(e.key[:0], m.keys, int(j))
		if e.find() == nil {
			dst = append(dst, j)
		}
	}
	return dst, true, nil
}
