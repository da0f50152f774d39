package aggregate

import (
	"bytes"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// newMinMax chooses the state of min or max by the argument's type.
func newMinMax(c *Call, max bool) State {
	switch t := argType(c, 0).SQL(); t.Kind {
	case types.Int2:
		return &fixedMinMax[int16]{max: max, t: t}
	case types.Int4, types.Date:
		return &fixedMinMax[int32]{max: max, t: t}
	case types.Int8, types.OID, types.Time, types.Timestamp, types.TimestampTZ:
		return &fixedMinMax[int64]{max: max, t: t}
	case types.Float4:
		return &floatMinMax[float32]{max: max, t: t}
	case types.Float8:
		return &floatMinMax[float64]{max: max, t: t}
	case types.Text, types.Varchar, types.Name, types.Unknown, types.Char, types.Bytea:
		return &textMinMax{max: max, t: t}
	case types.BpChar:
		return &textMinMax{max: max, t: t, blank: true}
	default:
		return &anyMinMax{max: max, t: t}
	}
}

type fixedMinMax[T int16 | int32 | int64] struct {
	v    []T
	seen []bool
	max  bool
	t    types.Type
}

func (s *fixedMinMax[T]) Grow(n int) error {
	s.v, s.seen = extend(s.v, n), extend(s.seen, n)
	return nil
}
func (s *fixedMinMax[T]) Size() int64 { return int64(cap(s.v)) * 9 }

func (s *fixedMinMax[T]) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := plain(args[0], groups, sel)
	valid, off := vec.Validity(a)
	in := vec.ViewOf[T](a).V
	v, seen, max := s.v, s.seen, s.max
	for k, g := range groups {
		i := rowAt(sel, k)
		if valid != nil && !vec.BitAt(valid, off+i) {
			continue
		}
		if x := in[i]; !seen[g] || max && x > v[g] || !max && x < v[g] {
			v[g], seen[g] = x, true
		}
	}
	return nil
}

func (s *fixedMinMax[T]) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *fixedMinMax[T]) MergePart(other State, from, to []uint32) error {
	o := other.(*fixedMinMax[T])
	for k, g := range to {
		i := source(from, k)
		if x := o.v[i]; o.seen[i] && (!s.seen[g] || s.max && x > s.v[g] || !s.max && x < s.v[g]) {
			s.v[g], s.seen[g] = x, true
		}
	}
	return nil
}

func (s *fixedMinMax[T]) Result(from, to int) (arrow.Array, error) {
	valid := validFrom(from, to, func(g int) bool { return s.seen[g] })
	return vec.Make(s.t.Arrow(), append([]T(nil), s.v[from:to]...), valid), nil
}

type floatMinMax[T float32 | float64] struct {
	v    []T
	seen []bool
	max  bool
	t    types.Type
}

func (s *floatMinMax[T]) Grow(n int) error {
	s.v, s.seen = extend(s.v, n), extend(s.seen, n)
	return nil
}
func (s *floatMinMax[T]) Size() int64 { return int64(cap(s.v)) * 9 }

func floatLess[T float32 | float64](a, b T) bool { return a < b || b != b && a == a }

func (s *floatMinMax[T]) take(g uint32, x T) {
	if !s.seen[g] || s.max && floatLess(s.v[g], x) || !s.max && floatLess(x, s.v[g]) {
		s.v[g], s.seen[g] = x, true
	}
}

func (s *floatMinMax[T]) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := plain(args[0], groups, sel)
	valid, off := vec.Validity(a)
	in := vec.ViewOf[T](a).V
	for k, g := range groups {
		i := rowAt(sel, k)
		if valid != nil && !vec.BitAt(valid, off+i) {
			continue
		}
		s.take(g, in[i])
	}
	return nil
}

func (s *floatMinMax[T]) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *floatMinMax[T]) MergePart(other State, from, to []uint32) error {
	o := other.(*floatMinMax[T])
	for k, g := range to {
		i := source(from, k)
		if o.seen[i] {
			s.take(g, o.v[i])
		}
	}
	return nil
}

func (s *floatMinMax[T]) Result(from, to int) (arrow.Array, error) {
	valid := validFrom(from, to, func(g int) bool { return s.seen[g] })
	return vec.Make(s.t.Arrow(), append([]T(nil), s.v[from:to]...), valid), nil
}

// textMinMax keeps one value a group, in one arena that is rewritten when more
// than half of it is garbage.
type textMinMax struct {
	off, n []int32
	seen   []bool
	data   []byte
	live   int
	max    bool
	blank  bool
	t      types.Type
}

func (s *textMinMax) Grow(n int) error {
	s.off, s.n, s.seen = extend(s.off, n), extend(s.n, n), extend(s.seen, n)
	return nil
}
func (s *textMinMax) Size() int64 { return int64(cap(s.off))*9 + int64(cap(s.data)) }

func (s *textMinMax) at(g uint32) []byte { return s.data[s.off[g] : s.off[g]+s.n[g]] }

func (s *textMinMax) take(g uint32, x []byte) {
	if s.seen[g] {
		var c int
		if s.blank {
			c = bytes.Compare(vec.TrimBlanks(x), vec.TrimBlanks(s.at(g)))
		} else {
			c = bytes.Compare(x, s.at(g))
		}
		if s.max && c <= 0 || !s.max && c >= 0 {
			return
		}
	}
	s.live += len(x) - int(s.n[g])
	if len(x) <= int(s.n[g]) {
		copy(s.data[s.off[g]:], x)
	} else {
		if len(s.data) > 1<<16 && s.live < len(s.data)/2 {
			s.compact()
		}
		s.off[g] = int32(len(s.data))
		s.data = append(s.data, x...)
	}
	s.n[g] = int32(len(x))
	s.seen[g] = true
}

func (s *textMinMax) compact() {
	data := make([]byte, 0, 2*s.live)
	for g := range s.off {
		if s.seen[g] {
			v := s.at(uint32(g))
			s.off[g] = int32(len(data))
			data = append(data, v...)
		}
	}
	s.data = data
}

func (s *textMinMax) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := column(args[0], groups, sel)
	valid, off := vec.Validity(a)
	if idx, dict, ok := vec.DictView(a); ok {
		v := vec.ViewStr(dict)
		for k, g := range groups {
			i := rowAt(sel, k)
			if valid != nil && !vec.BitAt(valid, off+i) {
				continue
			}
			s.take(g, v.At(int(idx[i])))
		}
		return nil
	}
	v := vec.ViewStr(vec.Decode(a))
	for k, g := range groups {
		i := rowAt(sel, k)
		if valid != nil && !vec.BitAt(valid, off+i) {
			continue
		}
		s.take(g, v.At(i))
	}
	return nil
}

func (s *textMinMax) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *textMinMax) MergePart(other State, from, to []uint32) error {
	o := other.(*textMinMax)
	for k, g := range to {
		i := source(from, k)
		if o.seen[i] {
			s.take(g, o.at(i))
		}
	}
	return nil
}

func (s *textMinMax) Result(from, to int) (arrow.Array, error) {
	valid := validFrom(from, to, func(g int) bool { return s.seen[g] })
	off := make([]int32, 1, to-from+1)
	var data []byte
	for g := from; g < to; g++ {
		if s.seen[g] {
			data = append(data, s.at(uint32(g))...)
		}
		off = append(off, int32(len(data)))
	}
	return vec.MakeBytes(s.t.Arrow(), off, data, valid), nil
}

// anyMinMax is for types without a loop of their own: it keeps one-row arrays'
// worth of winners per batch and compares with the type's order. Decimal128 has
// a fast path.
type anyMinMax struct {
	dec   []decimal128.Num
	scale int32
	isDec bool
	best  []arrow.Array // length 1, nil = none
	n     int
	max   bool
	t     types.Type
	seen  []bool
	bytes int64
}

func (s *anyMinMax) Grow(n int) error {
	s.n = n
	s.best, s.dec, s.seen = extend(s.best, n), extend(s.dec, n), extend(s.seen, n)
	return nil
}
func (s *anyMinMax) Size() int64 { return int64(cap(s.best))*25 + s.bytes }

// box moves the Decimal128 winners to arrays.
func (s *anyMinMax) box() {
	if !s.isDec {
		return
	}
	s.isDec = false
	for g, ok := range s.seen {
		if ok && s.best[g] == nil {
			s.best[g] = vec.MakeDec128(&arrow.Decimal128Type{Precision: 38, Scale: s.scale}, []decimal128.Num{s.dec[g]}, nil)
		}
	}
}

func (s *anyMinMax) empty() bool {
	for _, ok := range s.seen {
		if ok {
			return false
		}
	}
	return true
}

func (s *anyMinMax) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := plain(args[0], groups, sel)
	if d, ok := a.(*array.Decimal128); ok {
		scale := d.DataType().(*arrow.Decimal128Type).Scale
		if !s.isDec && s.empty() {
			s.isDec, s.scale = true, scale
		}
		if s.isDec && scale == s.scale {
			v := d.Values()
			valid, off := vec.Validity(a)
			for k, g := range groups {
				i := rowAt(sel, k)
				if valid != nil && !vec.BitAt(valid, off+i) {
					continue
				}
				if c := vec.CmpDec128(v[i], s.dec[g]); !s.seen[g] || s.max && c > 0 || !s.max && c < 0 {
					s.dec[g], s.seen[g] = v[i], true
				}
			}
			return nil
		}
	}
	s.box()
	// The winner of each group within the batch first, then against the best.
	win := map[uint32]int{}
	cmp := vec.NewCompare(s.t, a, a)
	eachValid(a, groups, sel, func(g uint32, i int) {
		j, ok := win[g]
		if !ok {
			win[g] = i
			return
		}
		if c := cmp(i, j); s.max && c > 0 || !s.max && c < 0 {
			win[g] = i
		}
	})
	for g, i := range win {
		s.take(g, a, i)
	}
	return nil
}

func (s *anyMinMax) take(g uint32, a arrow.Array, i int) {
	if s.seen[g] {
		c := vec.NewCompare(s.t, a, s.best[g])(i, 0)
		if s.max && c <= 0 || !s.max && c >= 0 {
			return
		}
	}
	s.best[g] = vec.Take(a, []int32{int32(i)})
	s.seen[g] = true
	s.bytes += 256
}

func (s *anyMinMax) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *anyMinMax) MergePart(other State, from, to []uint32) error {
	o := other.(*anyMinMax)
	if o.isDec && !s.isDec && s.empty() {
		s.isDec, s.scale = true, o.scale
	}
	if s.isDec && o.isDec && s.scale == o.scale {
		for k, g := range to {
			i := source(from, k)
			if c := vec.CmpDec128(o.dec[i], s.dec[g]); o.seen[i] && (!s.seen[g] || s.max && c > 0 || !s.max && c < 0) {
				s.dec[g], s.seen[g] = o.dec[i], true
			}
		}
		return nil
	}
	s.box()
	for k, g := range to {
		if i := source(from, k); o.seen[i] {
			s.take(g, o.boxed(i), 0)
		}
	}
	return nil
}

// boxed is the winner of group g as an array of one row.
func (s *anyMinMax) boxed(g uint32) arrow.Array {
	if s.isDec {
		return vec.MakeDec128(&arrow.Decimal128Type{Precision: 38, Scale: s.scale}, []decimal128.Num{s.dec[g]}, nil)
	}
	return s.best[g]
}

func (s *anyMinMax) Result(from, to int) (arrow.Array, error) {
	valid := validFrom(from, to, func(g int) bool { return s.seen[g] })
	if s.isDec && int32(s.t.Scale) == s.scale && s.t.Prec > 0 {
		return vec.MakeDec128(s.t.Arrow(), append([]decimal128.Num(nil), s.dec[from:to]...), valid), nil
	}
	s.box()
	ds := make([]types.Datum, to-from)
	for g := from; g < to; g++ {
		if s.seen[g] {
			ds[g-from] = vec.DatumAt(s.best[g], s.t, 0)
		}
	}
	return vec.FromDatums(s.t, ds), nil
}

func minMaxDefs() []Def {
	var out []Def
	for _, k := range []types.Kind{types.Int2, types.Int4, types.Int8, types.Float4, types.Float8, types.Numeric, types.Text, types.BpChar,
		types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ, types.Interval, types.OID, types.AnyArray} {
		for _, m := range []struct {
			name string
			max  bool
			doc  string
		}{{"min", false, "smallest value"}, {"max", true, "largest value"}} {
			out = append(out, Def{Name: m.name, Args: one(fixed(k)), Ret: fixed(k), RetFn: firstArg, IgnoresNulls: true, Doc: m.doc,
				New: func(c *Call) State { return newMinMax(c, m.max) }})
		}
	}
	return out
}
