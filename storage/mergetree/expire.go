package mergetree

import (
	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Expire is record-level expiry: rows whose time column is before a moment are
// left out when files are rewritten. Reads show them as long as they are there, as
// Java's do. Source: RecordLevelExpire.java, which only KeyValueFileStoreWrite
// makes use of.
type Expire struct {
	Column int // of the table
	Type   types.Type
	Before int64 // Unix seconds
}

// millisFrom is from where on a BIGINT counts as milliseconds.
const millisFrom = 1_000_000_000_000

// Keeps appends the rows of a that are not expired: NULL, and those that are not
// before the moment.
func (e *Expire) Keeps(a arrow.Array, out []uint16) []uint16 {
	valid, off := vec.Validity(a)
	keep := func(i int, seconds int64) {
		if seconds >= e.Before || !vec.BitAt(valid, off+i) {
			out = append(out, uint16(i))
		}
	}
	if e.Type.Kind == types.Int4 {
		for i, x := range vec.ViewOf[int32](a).V {
			keep(i, int64(x))
		}
		return out
	}
	unit := int64(1)
	switch {
	case e.Type.IsNanos():
		unit = 1_000_000_000
	case e.Type.Kind == types.Timestamp || e.Type.Kind == types.TimestampTZ:
		unit = 1_000_000
	}
	for i, x := range vec.ViewOf[int64](a).V {
		if unit == 1 && x >= millisFrom {
			x /= 1000
		}
		keep(i, x/unit)
	}
	return out
}

// Seconds returns what Java makes of one value of the time column; ok is false for
// NULL.
func (e *Expire) Seconds(d types.Datum) (seconds int64, ok bool) {
	x, ok := d.(int64)
	switch {
	case !ok:
		return 0, false
	case e.Type.IsNanos():
		x /= 1_000_000_000
	case e.Type.Kind == types.Timestamp || e.Type.Kind == types.TimestampTZ:
		x /= 1_000_000
	case e.Type.Kind != types.Int4 && x >= millisFrom:
		x /= 1000
	}
	return x, true
}

// expire leaves the expired rows of a window out; the time column is the last of
// arrs.
func (r *run) expire(e *Expire, arrs []arrow.Array) []arrow.Array {
	last := len(arrs) - 1
	live := e.Keeps(arrs[last], make([]uint16, 0, r.n))
	if len(live) < r.n {
		out := make([]arrow.Array, last)
		for i, a := range arrs[:last] {
			out[i] = vec.FilterSel(a, live)
		}
		arrs = out
		if r.rows == nil {
			r.rows, r.n = live, len(live)
			return arrs
		}
		for i, x := range live {
			live[i] = r.rows[x]
		}
		r.rows, r.n = live, len(live)
	}
	return arrs[:last]
}
