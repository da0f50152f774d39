package function

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// reader returns the function that reads row i of an argument as T:
//
//	bool, int64 (ints, oids, dates, times, timestamps in us), float64,
//	[]byte (text and bytea, aliasing the column), *numeric.Dec,
//	pgtext.Interval, arr (arrays), fixed bytes as []byte (uuid, timetz)
func reader[T any](v vec.Vec, t types.Type) func(i int) T {
	a := vec.Decode(v.Arr)
	f := any(rawReader(*new(T), a, t)).(func(int) T)
	if v.Const {
		if a.IsNull(0) {
			return f
		}
		x := f(0)
		return func(int) T { return x }
	}
	return f
}

func rawReader(zero any, a arrow.Array, t types.Type) any {
	switch zero.(type) {
	case bool:
		b := a.(*array.Boolean)
		return func(i int) bool { return b.Value(i) }
	case int64:
		switch x := a.(type) {
		case *array.Int16:
			v := x.Int16Values()
			return func(i int) int64 { return int64(v[i]) }
		case *array.Int32:
			v := x.Int32Values()
			return func(i int) int64 { return int64(v[i]) }
		case *array.Date32:
			v := vec.ViewOf[int32](a).V
			return func(i int) int64 { return int64(v[i]) }
		}
		v := vec.ViewOf[int64](a).V
		if ts, ok := a.DataType().(*arrow.TimestampType); ok && ts.Unit == arrow.Nanosecond {
			return func(i int) int64 { return pgtext.FloorMicros(v[i]) }
		}
		return func(i int) int64 { return v[i] }
	case float64:
		if x, ok := a.(*array.Float32); ok {
			v := x.Float32Values()
			return func(i int) float64 { return float64(v[i]) }
		}
		v := vec.ViewOf[float64](a).V
		return func(i int) float64 { return v[i] }
	case []byte:
		if x, ok := a.(*array.FixedSizeBinary); ok {
			return x.Value
		}
		s := vec.ViewStr(a)
		if t.Kind == types.BpChar {
			// bpchar as text: blanks at the end do not count.
			return func(i int) []byte { return vec.TrimBlanks(s.At(i)) }
		}
		return func(i int) []byte { return s.At(i) }
	case string:
		s := vec.ViewStr(a)
		if t.Kind == types.BpChar {
			return func(i int) string { return string(vec.TrimBlanks(s.At(i))) }
		}
		return func(i int) string { return string(s.At(i)) }
	case *numeric.Dec:
		return decReader(a)
	case pgtext.Interval:
		x := a.(*array.FixedSizeBinary)
		return func(i int) pgtext.Interval { return pgtext.DecodeInterval(x.Value(i)) }
	case []types.Datum:
		return func(i int) []types.Datum {
			d, _ := vec.DatumAt(a, t, i).([]types.Datum)
			return d
		}
	}
	return func(i int) types.Datum { return vec.DatumAt(a, t, i) }
}

func decReader(a arrow.Array) func(i int) *numeric.Dec {
	if d, ok := a.(*array.Decimal128); ok {
		v := d.Values()
		scale := d.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) *numeric.Dec { return numeric.From128(v[i], scale) }
	}
	s := vec.ViewStr(a)
	return func(i int) *numeric.Dec { return numeric.Decode(s.At(i)) }
}

// writer collects a column of T; rows are set in ascending order.
type writer[T any] interface {
	set(i int, v T) error
	done(valid []byte) arrow.Array
}

func newWriter[T any](c *Call, n int) writer[T] {
	t := c.Ret
	var w any
	switch any(*new(T)).(type) {
	case bool:
		w = &boolWriter{v: make([]uint8, n)}
	case int64:
		switch t.Kind {
		case types.TinyInt, types.Int2:
			w = &intWriter[int16]{t, make([]int16, n)}
		case types.Int4, types.Date:
			w = &intWriter[int32]{t, make([]int32, n)}
		default:
			if t.IsNanos() {
				w = &nanoWriter{intWriter[int64]{t, make([]int64, n)}}
			} else {
				w = &intWriter[int64]{t, make([]int64, n)}
			}
		}
	case float64:
		if t.Kind == types.Float4 {
			w = &floatWriter[float32]{t, make([]float32, n)}
		} else {
			w = &floatWriter[float64]{t, make([]float64, n)}
		}
	case []byte:
		if fw, ok := t.Arrow().(*arrow.FixedSizeBinaryType); ok {
			w = &fixedWriter{t: t, n: n, w: fw.ByteWidth, b: make([]byte, n*fw.ByteWidth)}
		} else {
			w = &bytesWriter{c: c, dt: t.Arrow(), off: make([]int32, 1, n+1), n: n}
		}
	case string:
		w = &stringWriter{bytesWriter{c: c, dt: t.Arrow(), off: make([]int32, 1, n+1), n: n}}
	case *numeric.Dec:
		w = &decWriter{t: t, v: make([]*numeric.Dec, n)}
	case pgtext.Interval:
		w = &intervalWriter{n: n, b: make([]byte, n*16)}
	default:
		w = &datumWriter{t: t, v: make([]types.Datum, n)}
	}
	return w.(writer[T])
}

type boolWriter struct{ v []uint8 }

func (w *boolWriter) set(i int, v bool) error {
	if v {
		w.v[i] = 1
	}
	return nil
}
func (w *boolWriter) done(valid []byte) arrow.Array {
	return vec.MakeBool(len(w.v), vec.PackBools(w.v), valid)
}

type intWriter[T int16 | int32 | int64] struct {
	t types.Type
	v []T
}

func (w *intWriter[T]) set(i int, v int64) error      { w.v[i] = T(v); return nil }
func (w *intWriter[T]) done(valid []byte) arrow.Array { return vec.Make(w.t.Arrow(), w.v, valid) }

type nanoWriter struct{ intWriter[int64] }

func (w *nanoWriter) set(i int, v int64) error {
	if v != pgtext.TimestampInfinity && v != pgtext.TimestampNegInfinity {
		v *= 1000
	}
	w.v[i] = v
	return nil
}

type floatWriter[T float32 | float64] struct {
	t types.Type
	v []T
}

func (w *floatWriter[T]) set(i int, v float64) error    { w.v[i] = T(v); return nil }
func (w *floatWriter[T]) done(valid []byte) arrow.Array { return vec.Make(w.t.Arrow(), w.v, valid) }

type fixedWriter struct {
	t    types.Type
	n, w int
	b    []byte
}

func (w *fixedWriter) set(i int, v []byte) error { copy(w.b[i*w.w:(i+1)*w.w], v); return nil }
func (w *fixedWriter) done(valid []byte) arrow.Array {
	return vec.MakeFixedBytes(w.t.Arrow(), w.n, w.b, valid)
}

type bytesWriter struct {
	c    *Call
	dt   arrow.DataType
	off  []int32
	data []byte
	n    int
}

// pad closes rows that were not set, up to row i.
func (w *bytesWriter) pad(i int) {
	for len(w.off) <= i {
		w.off = append(w.off, w.off[len(w.off)-1])
	}
}
func (w *bytesWriter) end() { w.off = append(w.off, int32(len(w.data))) }
func (w *bytesWriter) set(i int, v []byte) error {
	w.pad(i)
	if err := w.c.fits(len(w.data), len(w.data)+len(v)); err != nil {
		return err
	}
	w.data = append(w.data, v...)
	w.end()
	return nil
}
func (w *bytesWriter) done(valid []byte) arrow.Array {
	w.pad(w.n)
	return vec.MakeBytes(w.dt, w.off, w.data, valid)
}

type stringWriter struct{ bytesWriter }

func (w *stringWriter) set(i int, v string) error {
	w.pad(i)
	if err := w.c.fits(len(w.data), len(w.data)+len(v)); err != nil {
		return err
	}
	w.data = append(w.data, v...)
	w.end()
	return nil
}

type decWriter struct {
	t types.Type
	v []*numeric.Dec
}

func (w *decWriter) set(i int, v *numeric.Dec) error { w.v[i] = v; return nil }
func (w *decWriter) done(valid []byte) arrow.Array {
	return makeDecs(w.t, w.v, valid)
}

// makeDecs makes a numeric column in t's Decimal128 form when every value fits
// it, else in the binary form. nil values are written as zero.
func makeDecs(t types.Type, v []*numeric.Dec, valid []byte) arrow.Array {
	if t.Prec > 0 {
		out := make([]decimal128.Num, len(v))
		fits := true
		for i, d := range v {
			if d != nil {
				if out[i], fits = d.To128(int32(t.Scale)); !fits {
					break
				}
			}
		}
		if fits {
			return vec.MakeDec128(t.Arrow(), out, valid)
		}
	}
	off := make([]int32, len(v)+1)
	data := make([]byte, 0, len(v)*12)
	for i, d := range v {
		if d != nil {
			data = numeric.AppendEncoded(data, d)
		}
		off[i+1] = int32(len(data))
	}
	return vec.MakeBytes(arrow.BinaryTypes.Binary, off, data, valid)
}

type intervalWriter struct {
	n int
	b []byte
}

func (w *intervalWriter) set(i int, v pgtext.Interval) error {
	v.AppendEncoded(w.b[i*16 : i*16 : i*16+16])
	return nil
}
func (w *intervalWriter) done(valid []byte) arrow.Array {
	return vec.MakeFixedBytes(types.ArrowFixed16, w.n, w.b, valid)
}

type datumWriter struct {
	t types.Type
	v []types.Datum
}

func (w *datumWriter) set(i int, v types.Datum) error { w.v[i] = v; return nil }
func (w *datumWriter) done(valid []byte) arrow.Array {
	return vec.FromDatums(w.t, maskNull(w.v, valid))
}

// maskNull makes rows that are not valid nil.
func maskNull(v []types.Datum, valid []byte) []types.Datum {
	if valid != nil {
		for i := range v {
			if !vec.BitAt(valid, i) {
				v[i] = nil
			}
		}
	}
	return v
}
