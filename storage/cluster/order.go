package cluster

import (
	"bytes"
	"encoding/binary"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
)

// Keys of the strategy order are the values in full, column by column:
//
//	nullable columns: 00 and zeros for NULL, 01 before a value
//	numbers, dates, times: big-endian with the sign bit flipped, 1 to 16 bytes
//	floats: see orderFloat
//	text, bytes: 00 written as 00 ff, then 00 00; the last column bare

// orderWidth is the width of keys of these columns, 0 = variable.
func orderWidth(ts []types.Type) int {
	total := 0
	for _, t := range ts {
		w := mergetree.KeyWidth(t)
		if w == 0 {
			return 0
		}
		if !t.NotNull {
			w++
		}
		total += w
	}
	return total
}

// appendOrder fills the keys column by column; lens holds where each key has got to.
func (c *Codec) appendOrder(k *Keys, cols []arrow.Array, n int) {
	k.begin()
	plain := make([]arrow.Array, len(cols))
	for i, a := range cols {
		plain[i] = vec.Decode(a)
	}
	base := len(k.Data)
	c.lens = grow(c.lens[:0], n)
	at := c.lens
	if c.width > 0 {
		k.extend(n, c.width)
		for i := range at {
			at[i] = int32(base + i*c.width)
		}
	} else {
		clear(at)
		for i, t := range c.types {
			c.measure(at, t, plain[i], i == len(c.types)-1)
		}
		end := int32(base)
		for i, l := range at {
			at[i] = end
			end += l
			k.Off = append(k.Off, end)
		}
		k.Data = grow(k.Data, int(end)-base)
		clear(k.Data[base:])
	}
	for i, t := range c.types {
		c.place(k.Data, at, t, plain[i], i == len(c.types)-1)
	}
}

// measure adds the lengths of a column's values.
func (c *Codec) measure(lens []int32, t types.Type, a arrow.Array, last bool) {
	w := int32(mergetree.KeyWidth(t))
	if !t.NotNull {
		w++
	}
	if mergetree.KeyWidth(t) > 0 {
		for i := range lens {
			lens[i] += w
		}
		return
	}
	s := vec.ViewStr(a)
	for i := range lens {
		lens[i] += w
		if !t.NotNull && s.IsNull(i) {
			continue
		}
		b := s.Data[s.Offs[i]:s.Offs[i+1]]
		lens[i] += int32(len(b))
		if !last {
			lens[i] += int32(bytes.Count(b, zero)) + 2
		}
	}
}

var zero = []byte{0}

// place writes a column's values at at[i] and moves that on.
func (c *Codec) place(data []byte, at []int32, t types.Type, a arrow.Array, last bool) {
	w := int32(mergetree.KeyWidth(t))
	valid, off := vec.Validity(a)
	null := func(i int) bool { return valid != nil && !vec.BitAt(valid, off+i) }
	if !t.NotNull {
		for i, p := range at {
			if !null(i) {
				data[p] = 1
				at[i]++
			} else {
				// A NULL has the zeros that are there; nothing of text and bytes.
				at[i] += 1 + w
			}
		}
	}
	if w == 0 {
		s := vec.ViewStr(a)
		for i, p := range at {
			if !t.NotNull && null(i) {
				continue
			}
			b := s.Data[s.Offs[i]:s.Offs[i+1]]
			if last {
				at[i] += int32(copy(data[p:], b))
			} else {
				at[i] += int32(escape(data[p:], b))
			}
		}
		return
	}
	// Values of fixed width are written under NULLs, too, where that is not seen:
	// the position of a NULL has been moved on already.
	put := func(i int, x uint64) {
		if !t.NotNull && null(i) {
			return
		}
		p := at[i]
		for j := range w {
			data[p+j] = byte(x >> (8 * (w - 1 - j)))
		}
		at[i] = p + w
	}
	switch t.Kind {
	case types.Bool:
		b := a.(*array.Boolean)
		for i := range at {
			x := uint64(0)
			if b.Value(i) {
				x = 1
			}
			put(i, x)
		}
	case types.TinyInt:
		for i, x := range vec.ViewOf[int16](a).V[:len(at)] {
			put(i, uint64(uint8(x)^1<<7))
		}
	case types.Int2:
		for i, x := range vec.ViewOf[int16](a).V[:len(at)] {
			put(i, uint64(uint16(x)^1<<15))
		}
	case types.Int4, types.Date:
		v := vec.ViewOf[int32](a).V[:len(at)]
		for i, x := range v {
			if !t.NotNull && null(i) {
				continue
			}
			binary.BigEndian.PutUint32(data[at[i]:], uint32(x)^1<<31)
			at[i] += 4
		}
	case types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
		v := vec.ViewOf[int64](a).V[:len(at)]
		for i, x := range v {
			if !t.NotNull && null(i) {
				continue
			}
			binary.BigEndian.PutUint64(data[at[i]:], uint64(x)^sign)
			at[i] += 8
		}
	case types.Float4:
		for i, x := range vec.ViewOf[float32](a).V[:len(at)] {
			put(i, uint64(orderFloat32(x)))
		}
	case types.Float8:
		for i, x := range vec.ViewOf[float64](a).V[:len(at)] {
			put(i, orderFloat(x))
		}
	case types.Numeric:
		v, _, _ := vec.ViewDec(a)
		for i := range at {
			if !t.NotNull && null(i) {
				continue
			}
			p := at[i]
			binary.BigEndian.PutUint64(data[p:], uint64(v[i].HighBits())^sign)
			binary.BigEndian.PutUint64(data[p+8:], v[i].LowBits())
			at[i] += 16
		}
	}
}

// escape writes a value that is followed by others and returns its length.
func escape(dst, v []byte) int {
	n := 0
	for {
		i := bytes.IndexByte(v, 0)
		if i < 0 {
			break
		}
		n += copy(dst[n:], v[:i])
		dst[n], dst[n+1] = 0, 0xff
		n += 2
		v = v[i+1:]
	}
	n += copy(dst[n:], v)
	return n + 2 // 00 00 are there
}
