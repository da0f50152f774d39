package table

import (
	"bytes"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// columnSketch gathers the statistics of one column from batches. Each worker of an
// ANALYZE has its own, which are merged in the end. Its memory is bounded by that of
// distinctCount, whatever the column holds, and a dictionary's counts.
//
// Of a dictionary only the indices are looked at per row: values are once it is done
// with, which is when a batch comes with another one.
type columnSketch struct {
	f     types.Field
	width int64 // of the type, 0 = it varies
	deep  bool  // nested: only NULLs and bytes are counted

	rows, nulls   int64
	bytes, maxLen int64 // of values of varying width
	distinct      distinctCount
	lo, hi        types.Datum

	of     arrow.Array // of the dictionary whose values counts has
	dict   arrow.Array
	counts []int64
	hashes []uint64
}

// analyzable reports whether a column is looked at unless asked for by name: blobs,
// which lie in files of their own, are not.
func analyzable(t types.Type) bool { return t.Lake != types.LakeBlob }

func newColumnSketch(f types.Field) *columnSketch {
	c := &columnSketch{f: f}
	switch f.Type.Kind {
	case types.Bool, types.TinyInt:
		c.width = 1
	case types.Int2:
		c.width = 2
	case types.Int4, types.Float4, types.Date, types.Time:
		c.width = 4
	case types.Int8, types.Float8, types.Timestamp, types.TimestampTZ:
		c.width = 8
	case types.Numeric:
		if c.width = 8; f.Type.Prec > 18 {
			c.width = 16
		}
	case types.Text, types.Varchar, types.BpChar, types.Bytea:
	default:
		c.deep = true
	}
	return c
}

// add takes the n rows of a in.
func (c *columnSketch) add(a arrow.Array, n int) {
	c.rows += int64(n)
	if c.deep {
		c.nulls += int64(a.NullN())
		if n > 0 {
			size := vec.Size(a)
			c.bytes += size
			c.maxLen = max(c.maxLen, size/int64(n))
		}
		return
	}
	if idx, dict, ok := vec.DictView(a); ok && dict.Len() <= 4*distinctExact {
		c.addIndices(a, idx, dict)
		return
	}
	a = vec.Decode(a)
	valid, off := vec.Validity(a)
	if valid != nil {
		c.nulls += int64(a.NullN())
	}
	if a.NullN() == n {
		return
	}
	if c.width == 0 {
		s := vec.ViewStr(a)
		for i := range n {
			if !s.IsNull(i) {
				size := int64(s.Offs[i+1] - s.Offs[i])
				c.bytes += size
				c.maxLen = max(c.maxLen, size)
			}
		}
	}
	c.values(a, valid, off)
}

// addIndices counts how often each value of a dictionary is there.
func (c *columnSketch) addIndices(a arrow.Array, idx []int32, dict arrow.Array) {
	if c.dict == nil || !vec.SameDict(c.of, a) {
		c.flush()
		c.of, c.dict, c.counts = a, dict, append(c.counts[:0], make([]int64, dict.Len())...)
	}
	valid, off := vec.Validity(a)
	if valid == nil {
		for _, x := range idx {
			c.counts[x]++
		}
		return
	}
	for i, x := range idx {
		if vec.BitAt(valid, off+i) {
			c.counts[x]++
		} else {
			c.nulls++
		}
	}
}

// flush takes the values of the dictionary in that occurred.
func (c *columnSketch) flush() {
	dict := c.dict
	if dict == nil {
		return
	}
	c.of, c.dict = nil, nil
	n := dict.Len()
	valid := vec.NewBitmap(n)
	used := false
	var s vec.StrView
	if c.width == 0 {
		s = vec.ViewStr(dict)
	}
	for i, k := range c.counts {
		switch {
		case k == 0:
		case dict.IsNull(i):
			c.nulls += k
		default:
			vec.SetBit(valid, i)
			used = true
			if c.width == 0 {
				size := int64(s.Offs[i+1] - s.Offs[i])
				c.bytes += k * size
				c.maxLen = max(c.maxLen, size)
			}
		}
	}
	if used {
		c.values(dict, valid, 0)
	}
}

// values counts the distinct ones of a and widens the bounds.
func (c *columnSketch) values(a arrow.Array, valid []byte, off int) {
	n := a.Len()
	if cap(c.hashes) < n {
		c.hashes = make([]uint64, n)
	}
	h := c.hashes[:n]
	clear(h)
	vec.HashColumn(c.f.Type, a, h, nil)
	c.distinct.addAll(h, valid, off)
	lo, hi := extremes(a, valid, off)
	if lo < 0 {
		return
	}
	c.bound(vec.DatumAt(a, c.f.Type, lo))
	c.bound(vec.DatumAt(a, c.f.Type, hi))
}

// bound widens the bounds to d.
func (c *columnSketch) bound(d types.Datum) {
	if d == nil || c.f.Type.Kind == types.Bytea {
		return
	}
	if x, ok := predicate.Compare(c.f.Type, d, c.lo); c.lo == nil || ok && x < 0 {
		c.lo = d
	}
	if x, ok := predicate.Compare(c.f.Type, d, c.hi); c.hi == nil || ok && x > 0 {
		c.hi = d
	}
}

// extremes returns the rows of the least and the greatest value, -1 when there is
// none that is valid. NaN is greater than all else.
func extremes(a arrow.Array, valid []byte, off int) (lo, hi int) {
	switch a.DataType().ID() {
	case arrow.INT16:
		return extremesOf(vec.ViewOf[int16](a).V, valid, off)
	case arrow.INT32, arrow.DATE32:
		return extremesOf(vec.ViewOf[int32](a).V, valid, off)
	case arrow.INT64, arrow.TIMESTAMP, arrow.TIME64:
		return extremesOf(vec.ViewOf[int64](a).V, valid, off)
	case arrow.FLOAT32:
		return extremesOf(vec.ViewOf[float32](a).V, valid, off)
	case arrow.FLOAT64:
		return extremesOf(vec.ViewOf[float64](a).V, valid, off)
	}
	less := func(i, j int) bool { return false }
	switch a.DataType().ID() {
	case arrow.STRING, arrow.BINARY:
		s := vec.ViewStr(a)
		less = func(i, j int) bool { return bytes.Compare(s.At(i), s.At(j)) < 0 }
	case arrow.DECIMAL128:
		v, _, _ := vec.ViewDec(a)
		less = func(i, j int) bool { return vec.CmpDec128(v[i], v[j]) < 0 }
	case arrow.BOOL:
		b, o := a.Data().Buffers()[1].Bytes(), a.Data().Offset()
		less = func(i, j int) bool { return !vec.BitAt(b, o+i) && vec.BitAt(b, o+j) }
	}
	lo, hi = -1, -1
	for i := range a.Len() {
		switch {
		case !vec.BitAt(valid, off+i):
		case lo < 0:
			lo, hi = i, i
		case less(i, lo):
			lo = i
		case less(hi, i):
			hi = i
		}
	}
	return lo, hi
}

func extremesOf[T int16 | int32 | int64 | float32 | float64](v []T, valid []byte, off int) (lo, hi int) {
	lo, hi = -1, -1
	for i, x := range v {
		switch {
		case !vec.BitAt(valid, off+i):
		case lo < 0:
			lo, hi = i, i
		default:
			if x < v[lo] || v[lo] != v[lo] && x == x { //nolint:staticcheck // NaN
				lo = i
			}
			if x > v[hi] || x != x { //nolint:staticcheck // NaN
				hi = i
			}
		}
	}
	return lo, hi
}

// merge takes what o has gathered in; both have been flushed.
func (c *columnSketch) merge(o *columnSketch) {
	c.rows, c.nulls, c.bytes, c.maxLen = c.rows+o.rows, c.nulls+o.nulls, c.bytes+o.bytes, max(c.maxLen, o.maxLen)
	c.distinct.merge(&o.distinct)
	c.bound(o.lo)
	c.bound(o.hi)
}

// memory is what c takes.
func (c *columnSketch) memory() int64 {
	return c.distinct.bytes() + int64(8*len(c.counts)+8*cap(c.hashes))
}

// result is what was found, as the file has it. unique says that no value occurs
// twice.
func (c *columnSketch) result(unique bool) *ColumnStatistics {
	n := func(v int64) *int64 { return &v }
	out := &ColumnStatistics{ID: c.f.ID, Nulls: n(c.nulls)}
	values := c.rows - c.nulls
	if c.width > 0 {
		out.AvgLen, out.MaxLen = n(c.width), n(c.width)
	} else if values > 0 {
		out.AvgLen = n((c.bytes + values - 1) / values)
		if !c.deep { // of a nested one only the mean is known
			out.MaxLen = n(c.maxLen)
		}
	}
	if c.deep {
		return out
	}
	d := min(c.distinct.count(), values)
	if lo, ok := c.lo.(int64); ok {
		hi, _ := c.hi.(int64)
		if span := hi - lo; span >= 0 && span < d {
			d = span + 1
		}
	}
	if unique {
		d = values
	}
	if values > 0 {
		d = max(d, 1)
	}
	out.Distinct = n(d)
	if c.lo != nil && c.hi != nil {
		lo, ok1 := statText(c.f.Type, c.lo)
		hi, ok2 := statText(c.f.Type, c.hi)
		if ok1 && ok2 {
			out.Min, out.Max = &lo, &hi
		}
	}
	return out
}
