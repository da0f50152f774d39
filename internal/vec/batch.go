// Package vec holds columns and the loops over them: batches, typed views,
// gathering, hashing and comparing, all without knowledge of storage or SQL.
package vec

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// MaxRows is the most rows a batch may have: selections are uint16.
const MaxRows = 1 << 16

// Batch is up to N rows, one array per field, all of length N. A Batch that has
// been handed on is immutable, so it may be shared and kept.
type Batch struct {
	Schema types.Schema // logical types; an array may be a dictionary of its type
	Cols   []arrow.Array
	N      int      // rows in the arrays
	Sel    []uint16 // rows that are live, ascending; nil = all N
}

// Size returns the number of live rows.
func (b *Batch) Size() int {
	if b.Sel != nil {
		return len(b.Sel)
	}
	return b.N
}

// Fixed are the element types of fixed-width columns.
type Fixed interface {
	~int8 | ~int16 | ~int32 | ~int64 | ~float32 | ~float64 | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

// View is a column as a kernel sees it: no interface, no offset arithmetic.
type View[T Fixed] struct {
	V     []T    // V[i] is arbitrary where row i is NULL
	Valid []byte // LSB-first bitmap, nil = no NULLs
	Off   int    // bit in Valid that belongs to row 0
}

// IsNull reports whether row i is NULL; loops test Valid==nil once instead.
func (v View[T]) IsNull(i int) bool {
	if v.Valid == nil {
		return false
	}
	i += v.Off
	return v.Valid[i>>3]&(1<<(i&7)) == 0
}

// Vec is one argument of a kernel: a column of the batch, or a constant, whose
// array has length 1 and stands for every row.
type Vec struct {
	Arr   arrow.Array
	Const bool
}

// Part is n live rows of b from the off-th on: a new header over the same
// arrays.
func Part(b *Batch, off, n int) *Batch {
	if off == 0 && n == b.Size() {
		return b
	}
	c := *b
	if b.Sel != nil {
		c.Sel = b.Sel[off : off+n : off+n]
		return &c
	}
	c.Sel = make([]uint16, n)
	for i := range c.Sel {
		c.Sel[i] = uint16(off + i)
	}
	return &c
}
