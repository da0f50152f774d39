package mergetree

import (
	"bytes"
	"encoding/binary"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// AppendKey appends the byte form of key i of k.
func (c *KeyCodec) AppendKey(dst []byte, k *Keys, i int) []byte {
	if c.form == WordAndBytes {
		return append(dst, k.At(i)...)
	}
	w := 0
	for _, t := range c.types {
		w += KeyWidth(t)
	}
	at := len(dst)
	dst = binary.BigEndian.AppendUint64(dst, k.Hi[i])
	if c.form == TwoWords {
		dst = binary.BigEndian.AppendUint64(dst, k.Lo[i])
	}
	return dst[:at+w]
}

// Search returns the first of keys [from, n) that is not below b, and whether it is
// b's key.
func (c *KeyCodec) Search(k *Keys, from, n int, b *Bound) (int, bool) {
	// A batch of bounds moves forwards in small steps, or in large ones.
	lo, step := from, 1
	for lo+step < n && c.before(k, lo+step, b) {
		lo += step
		step *= 2
	}
	i := c.lowerBound(k, lo, min(lo+step+1, n), b)
	if i >= n || k.Hi[i] != b.hi {
		return i, false
	}
	switch c.form {
	case OneWord:
		return i, true
	case TwoWords:
		return i, k.Lo[i] == b.lo
	}
	return i, bytes.Equal(k.At(i), b.data)
}

// Values returns the columns of a key in byte form: numbers, dates, times and text;
// the others are nil, as are those behind a form that is damaged.
func (c *KeyCodec) Values(b []byte) []types.Datum {
	out := make([]types.Datum, len(c.types))
	for i, t := range c.types {
		w := KeyWidth(t)
		if w > 0 {
			if len(b) < w {
				return out
			}
			switch t.Kind {
			case types.TinyInt, types.Int2, types.Int4, types.Date, types.Int8, types.Time, types.Timestamp, types.TimestampTZ:
				u := uint64(0)
				for _, x := range b[:w] {
					u = u<<8 | uint64(x)
				}
				out[i] = int64((u^1<<(8*w-1))<<(64-8*w)) >> (64 - 8*w)
			}
			b = b[w:]
			continue
		}
		v := b
		if i == len(c.types)-1 {
			b = nil
		} else {
			var ok bool
			if v, b, ok = unescape(b); !ok {
				return out
			}
		}
		switch t.Kind {
		case types.Text, types.Varchar, types.BpChar:
			out[i] = string(v)
		}
	}
	return out
}

// unescape reads a value that is followed by others: 00 ff is a zero byte, 00 00
// the end.
func unescape(b []byte) (v, rest []byte, ok bool) {
	for i := 0; i+1 < len(b); i++ {
		if b[i] != 0 {
			continue
		}
		switch b[i+1] {
		case 0:
			return append(v, b[:i]...), b[i+2:], true
		case 0xff:
			v = append(append(v, b[:i]...), 0)
			b = b[i+2:]
			i = -1
		default:
			return nil, nil, false
		}
	}
	return nil, nil, false
}
