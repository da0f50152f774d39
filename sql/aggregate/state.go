package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// column is the argument of an Update as a plain array: constants spread out,
// dictionaries decoded unless the caller wants them.
func column(v vec.Vec, groups []uint32, sel []uint16) arrow.Array {
	if !v.Const {
		return v.Arr
	}
	n := len(groups)
	if len(sel) > 0 {
		n = int(sel[len(sel)-1]) + 1
	}
	return v.Column(max(n, 1))
}

func plain(v vec.Vec, groups []uint32, sel []uint16) arrow.Array {
	return vec.Decode(column(v, groups, sel))
}

// extend grows s to n elements, new ones zero.
func extend[T any](s []T, n int) []T {
	if n <= len(s) {
		return s
	}
	if n <= cap(s) {
		t := s[:n]
		clear(t[len(s):])
		return t
	}
	t := make([]T, n, max(n, 2*cap(s)))
	copy(t, s)
	return t
}

// rowAt is row k of the live rows.
func rowAt(sel []uint16, k int) int {
	if sel != nil {
		return int(sel[k])
	}
	return k
}

// eachValid calls f for live rows that are not NULL; for aggregates that are not
// hot.
func eachValid(a arrow.Array, groups []uint32, sel []uint16, f func(g uint32, i int)) {
	valid, off := vec.Validity(a)
	for k, g := range groups {
		i := rowAt(sel, k)
		if valid != nil && !vec.BitAt(valid, off+i) {
			continue
		}
		f(g, i)
	}
}

// validFrom makes a validity bitmap for groups [from, to) from a predicate; nil
// when all are valid.
func validFrom(from, to int, ok func(g int) bool) []byte {
	var valid []byte
	for g := from; g < to; g++ {
		if !ok(g) {
			if valid == nil {
				valid = vec.FullBitmap(to - from)
			}
			vec.ClearBit(valid, g-from)
		}
	}
	return valid
}

func argType(c *Call, i int) types.Type {
	if i < len(c.ArgTypes) {
		return c.ArgTypes[i]
	}
	return types.Type{}
}
