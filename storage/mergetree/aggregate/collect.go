package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// collect joins arrays; with distinct, elements once, in the order of their first
// appearance (in Java the order is not defined). A retraction removes one element
// for each of its own. Late input goes to the end, too, but with ignore-retract to
// the front: Java's FieldIgnoreRetractAgg has no aggReversed of its own. Maps with
// NULL among their values are equal here; to Java's generated comparison they are
// not. Source: FieldCollectAgg.java.
var collect = Function{
	Name:  "collect",
	Takes: isArray,
	New: func(s Spec) (Aggregate, error) {
		rules := &collectRules{distinct: s.Flag("distinct", false), rare: constructed(*s.Column.Type.Elem)}
		return &listFold{rules: rules, sameReversed: !s.Flag("ignore-retract", false)}, nil
	},
}

func isArray(t types.Type) bool { return t.Kind == types.Array && t.Fixed == 0 && t.Elem != nil }

// constructed are the element types for which Java does not look for doubles in
// what has been collected so far: it took care of them before.
func constructed(t types.Type) bool {
	switch t.Kind {
	case types.Array, types.Map, types.Row, types.Bytea:
		return true
	}
	return false
}

type collectRules struct {
	distinct bool
	rare     bool
	child    arrow.Array
	seen     elements
}

func (c *collectRules) begin(child arrow.Array) { c.child = child }

func (c *collectRules) merge(dst, acc, x []int32, accNull, xNull bool) ([]int32, bool, error) {
	if accNull && xNull {
		return dst, false, nil
	}
	if !c.distinct {
		return append(append(dst, acc...), x...), true, nil
	}
	c.seen.reset()
	for _, j := range acc {
		if c.isNew(j) || c.rare {
			dst = append(dst, j)
		}
	}
	for _, j := range x {
		if c.isNew(j) {
			dst = append(dst, j)
		}
	}
	return dst, true, nil
}

func (c *collectRules) isNew(j int32) bool {
	e := &c.seen
	e.key = appendValue(e.key[:0], c.child, int(j))
	if e.find() != nil {
		return false
	}
	e.put(j)
	return true
}

func (c *collectRules) retract(dst, acc, x []int32, accNull, xNull bool) ([]int32, bool, error) {
	if accNull || xNull || len(x) == 0 {
		return append(dst, acc...), !accNull, nil
	}
	e := &c.seen // how many of each are to go
	e.reset()
	for _, j := range x {
		e.key = appendValue(e.key[:0], c.child, int(j))
		if n := e.find(); n != nil {
			*n++
		} else {
			e.put(1)
		}
	}
	for _, j := range acc {
		e.key = appendValue(e.key[:0], c.child, int(j))
		if n := e.find(); n != nil && *n > 0 {
			*n--
			continue
		}
		dst = append(dst, j)
	}
	return dst, true, nil
}
