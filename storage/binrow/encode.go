package binrow

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Builder writes one row image after another. The zero value must be Reset.
// Fields are set in ascending order, each exactly once: variable parts are
// appended in that order, and the hash of the image depends on it.
type Builder struct {
	b      []byte
	header int
}

// Reset starts a row of arity fields with kind +I.
func (w *Builder) Reset(arity int) {
	w.header = headerBytes(arity)
	n := w.header + 8*arity
	if cap(w.b) < n {
		w.b = make([]byte, n, n+64)
	}
	w.b = w.b[:n]
	clear(w.b)
}

func (w *Builder) slot(i int) []byte { return w.b[w.header+8*i:] }

// SetNull makes field i null. t matters: Java reserves variable space under the
// null of a long decimal and of a timestamp above milliseconds, which moves
// later offsets and thereby the hash.
func (w *Builder) SetNull(i int, t types.Type) {
	w.b[(i+8)>>3] |= 1 << ((i + 8) & 7)
	switch {
	case t.Kind == types.Numeric && t.Prec > 18:
		w.reserve(i, 16, 0)
	case (t.Kind == types.Timestamp || t.Kind == types.TimestampTZ) && t.Prec > 3:
		w.reserve(i, 8, 0)
	}
}

// reserve appends n zero bytes (a multiple of 8) and points slot i at them.
func (w *Builder) reserve(i, n int, low uint32) []byte {
	off := len(w.b)
	for range n / 8 {
		w.b = append(w.b, 0, 0, 0, 0, 0, 0, 0, 0)
	}
	binary.LittleEndian.PutUint64(w.slot(i), uint64(off)<<32|uint64(low))
	return w.b[off:]
}

// SetInt sets an integer-like field of width bytes (1, 2, 4 or 8).
func (w *Builder) SetInt(i, width int, v int64) { putInt(w.slot(i), width, v) }

func putInt(b []byte, width int, v int64) {
	switch width {
	case 1:
		b[0] = byte(v)
	case 2:
		binary.LittleEndian.PutUint16(b, uint16(v))
	case 4:
		binary.LittleEndian.PutUint32(b, uint32(v))
	default:
		binary.LittleEndian.PutUint64(b, uint64(v))
	}
}

// SetBytes sets a text or binary field.
func (w *Builder) SetBytes(i int, v []byte) {
	if len(v) <= 7 {
		s := w.slot(i)
		copy(s, v)
		s[7] = 0x80 | byte(len(v))
		return
	}
	w.setRegion(i, v)
}

func (w *Builder) setRegion(i int, v []byte) {
	copy(w.reserve(i, (len(v)+7)&^7, uint32(len(v))), v)
}

// SetTimestamp sets a timestamp of precision prec from milliseconds and the
// nanoseconds of the millisecond.
func (w *Builder) SetTimestamp(i int, prec uint8, ms int64, nano int32) {
	if prec <= 3 {
		w.SetInt(i, 8, ms)
		return
	}
	binary.LittleEndian.PutUint64(w.reserve(i, 8, uint32(nano)), uint64(ms))
}

// SetDecimalBytes sets a decimal of precision above 18 from its minimal
// big-endian two's complement form of at most 16 bytes.
func (w *Builder) SetDecimalBytes(i int, v []byte) { copy(w.reserve(i, 16, uint32(len(v))), v) }

// SplitTimestamp cuts a Datum of type t into milliseconds and nanoseconds of the
// millisecond, flooring.
func SplitTimestamp(t types.Type, v int64) (ms int64, nano int32) {
	unit, scale := int64(1000), int64(1000)
	if t.IsNanos() {
		unit, scale = 1_000_000, 1
	}
	ms = v / unit
	r := v % unit
	if r < 0 {
		ms--
		r += unit
	}
	return ms, int32(r * scale)
}

// Encode writes a row; len(ts) == len(vals).
func Encode(ts []types.Type, vals []types.Datum) ([]byte, error) {
	var w Builder
	w.Reset(len(ts))
	for i, t := range ts {
		if err := w.Set(i, t, vals[i]); err != nil {
			return nil, fmt.Errorf("field %d: %w", i, err)
		}
	}
	return w.b, nil
}

// Set writes field i in Datum form.
func (w *Builder) Set(i int, t types.Type, d types.Datum) error {
	if d == nil {
		w.SetNull(i, t)
		return nil
	}
	switch v := d.(type) {
	case bool:
		if v {
			w.slot(i)[0] = 1
		}
		return nil
	case int64:
		switch t.Kind {
		case types.TinyInt, types.Int2, types.Int4, types.Date, types.Int8:
			w.SetInt(i, elemWidth(t), v)
			return nil
		case types.Time:
			w.SetInt(i, 4, v/1000)
			return nil
		case types.Timestamp, types.TimestampTZ:
			ms, nano := SplitTimestamp(t, v)
			w.SetTimestamp(i, t.Prec, ms, nano)
			return nil
		}
	case float64:
		if t.Kind == types.Float4 {
			w.SetInt(i, 4, int64(math.Float32bits(float32(v))))
			return nil
		}
		w.SetInt(i, 8, int64(math.Float64bits(v)))
		return nil
	case string:
		w.SetBytes(i, []byte(v))
		return nil
	case []byte:
		w.SetBytes(i, v)
		return nil
	case *numeric.Dec:
		c := rescale(v, int32(t.Scale))
		if c == nil {
			return fmt.Errorf("decimal does not fit %s", t)
		}
		if t.Prec <= 18 {
			if !c.IsInt64() {
				return fmt.Errorf("decimal does not fit %s", t)
			}
			w.SetInt(i, 8, c.Int64())
			return nil
		}
		b := twos(c)
		if len(b) > 16 {
			return fmt.Errorf("decimal does not fit %s", t)
		}
		w.SetDecimalBytes(i, b)
		return nil
	case []types.Datum, []types.KV:
		b, err := encodeNested(t, d)
		if err != nil {
			return err
		}
		w.setRegion(i, b)
		return nil
	}
	return fmt.Errorf("value of type %T for %s", d, t)
}

func encodeNested(t types.Type, d types.Datum) ([]byte, error) {
	switch v := d.(type) {
	case []types.KV:
		ks, vs := make([]types.Datum, len(v)), make([]types.Datum, len(v))
		for i, kv := range v {
			ks[i], vs[i] = kv.K, kv.V
		}
		kb, err := encodeArray(*t.Key, ks)
		if err != nil {
			return nil, err
		}
		vb, err := encodeArray(*t.Elem, vs)
		if err != nil {
			return nil, err
		}
		out := binary.LittleEndian.AppendUint32(nil, uint32(len(kb)))
		return append(append(out, kb...), vb...), nil
	case []types.Datum:
		switch {
		case t.Kind == types.Row:
			return Encode(types.Schema(t.Fields).Types(), v)
		case t.Kind == types.Variant && len(v) == 2:
			val, ok1 := v[0].([]byte)
			meta, ok2 := v[1].([]byte)
			if !ok1 || !ok2 {
				return nil, fmt.Errorf("variant of %T and %T", v[0], v[1])
			}
			out := binary.LittleEndian.AppendUint32(nil, uint32(len(val)))
			return append(append(out, val...), meta...), nil
		case t.Kind == types.Array && t.Fixed > 0:
			w := elemWidth(*t.Elem)
			out := make([]byte, 4+w*len(v))
			binary.LittleEndian.PutUint32(out, uint32(len(v)))
			for i, e := range v {
				if err := putFixed(out[4+w*i:], *t.Elem, e); err != nil {
					return nil, err
				}
			}
			return out, nil
		case t.Kind == types.Array:
			return encodeArray(*t.Elem, v)
		}
	}
	return nil, fmt.Errorf("value of type %T for %s", d, t)
}

// putFixed writes a value whose slot holds all of it.
func putFixed(b []byte, t types.Type, d types.Datum) error {
	switch v := d.(type) {
	case bool:
		b[0] = 0
		if v {
			b[0] = 1
		}
	case int64:
		if t.Kind == types.Time {
			v /= 1000
		}
		putInt(b, elemWidth(t), v)
	case float64:
		if t.Kind == types.Float4 {
			putInt(b, 4, int64(math.Float32bits(float32(v))))
		} else {
			putInt(b, 8, int64(math.Float64bits(v)))
		}
	default:
		return fmt.Errorf("value of type %T for %s", d, t)
	}
	return nil
}

// encodeArray writes a BinaryArray. Variable parts are written through a row
// Builder whose slots stand where the elements of 8 bytes are, so offsets count
// from the start of the array.
func encodeArray(t types.Type, vals []types.Datum) ([]byte, error) {
	n, width := len(vals), elemWidth(t)
	head := 4 + (n+31)/32*4
	size := (head + n*width + 7) &^ 7
	w := Builder{b: make([]byte, size, size+32), header: head}
	binary.LittleEndian.PutUint32(w.b, uint32(n))
	for i, d := range vals {
		if d == nil {
			w.b[4+i>>3] |= 1 << (i & 7)
			continue
		}
		if width < 8 {
			if err := putFixed(w.b[head+i*width:], t, d); err != nil {
				return nil, err
			}
			continue
		}
		if err := w.Set(i, t, d); err != nil {
			return nil, err
		}
	}
	return w.b, nil
}
