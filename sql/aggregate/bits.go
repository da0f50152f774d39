package aggregate

import (
	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// boolState is bool_and (want true) and bool_or (want false): v holds the value
// unless the other one was seen.
type boolState struct {
	t, f []int64 // how many of each
	and  bool
}

func (s *boolState) Grow(n int) error { s.t, s.f = extend(s.t, n), extend(s.f, n); return nil }
func (s *boolState) Size() int64      { return int64(cap(s.t)) * 16 }

func (s *boolState) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.add(groups, args, sel, 1)
	return nil
}

func (s *boolState) Remove(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.add(groups, args, sel, -1)
	return nil
}

func (s *boolState) add(groups []uint32, args []vec.Vec, sel []uint16, by int64) {
	a := plain(args[0], groups, sel).(*array.Boolean)
	eachValid(a, groups, sel, func(g uint32, i int) {
		if a.Value(i) {
			s.t[g] += by
		} else {
			s.f[g] += by
		}
	})
}

func (s *boolState) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *boolState) MergePart(other State, from, to []uint32) error {
	o := other.(*boolState)
	for k, g := range to {
		i := source(from, k)
		s.t[g] += o.t[i]
		s.f[g] += o.f[i]
	}
	return nil
}

func (s *boolState) Result(from, to int) (arrow.Array, error) {
	valid := validFrom(from, to, func(g int) bool { return s.t[g]+s.f[g] > 0 })
	bits := vec.NewBitmap(to - from)
	for g := from; g < to; g++ {
		if s.and && s.f[g] == 0 || !s.and && s.t[g] > 0 {
			vec.SetBit(bits, g-from)
		}
	}
	return vec.MakeBool(to-from, bits, valid), nil
}

// bitState is bit_and, bit_or and bit_xor of integers.
type bitState struct {
	v    []int64
	seen []bool
	op   byte
	t    types.Type
}

func (s *bitState) Grow(n int) error { s.v, s.seen = extend(s.v, n), extend(s.seen, n); return nil }
func (s *bitState) Size() int64      { return int64(cap(s.v)) * 9 }

func (s *bitState) take(g uint32, x int64) {
	if !s.seen[g] {
		s.v[g], s.seen[g] = x, true
		return
	}
	switch s.op {
	case '&':
		s.v[g] &= x
	case '|':
		s.v[g] |= x
	default:
		s.v[g] ^= x
	}
}

func (s *bitState) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := plain(args[0], groups, sel)
	read := intReader(a)
	eachValid(a, groups, sel, func(g uint32, i int) { s.take(g, read(i)) })
	return nil
}

// intReader reads any integer column as int64.
func intReader(a arrow.Array) func(i int) int64 {
	switch x := a.(type) {
	case *array.Int16:
		v := x.Int16Values()
		return func(i int) int64 { return int64(v[i]) }
	case *array.Int32, *array.Date32:
		v := vec.ViewOf[int32](x).V
		return func(i int) int64 { return int64(v[i]) }
	}
	v := vec.ViewOf[int64](a).V
	return func(i int) int64 { return v[i] }
}

func (s *bitState) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *bitState) MergePart(other State, from, to []uint32) error {
	o := other.(*bitState)
	for k, g := range to {
		i := source(from, k)
		if o.seen[i] {
			s.take(g, o.v[i])
		}
	}
	return nil
}

func (s *bitState) Result(from, to int) (arrow.Array, error) {
	ds := make([]types.Datum, to-from)
	for g := from; g < to; g++ {
		if s.seen[g] {
			ds[g-from] = s.v[g]
		}
	}
	return vec.FromDatums(s.t, ds), nil
}

func bitDefs() []Def {
	var out []Def
	for _, b := range []struct {
		name string
		and  bool
		doc  string
	}{{"bool_and", true, "whether every value is true"}, {"every", true, "whether every value is true"}, {"bool_or", false, "whether a value is true"}} {
		out = append(out, Def{Name: b.name, Args: one(tBool), Ret: tBool, IgnoresNulls: true, Doc: b.doc, New: func(*Call) State { return &boolState{and: b.and} }})
	}
	for _, b := range []struct {
		name string
		op   byte
		doc  string
	}{{"bit_and", '&', "bitwise AND of all values"}, {"bit_or", '|', "bitwise OR of all values"}, {"bit_xor", '#', "bitwise exclusive OR of all values"}} {
		for _, t := range []types.Type{tInt2, tInt4, tInt8} {
			out = append(out, Def{Name: b.name, Args: one(t), Ret: t, IgnoresNulls: true, Doc: b.doc, New: func(*Call) State { return &bitState{op: b.op, t: t} }})
		}
	}
	return out
}
