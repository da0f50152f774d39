package aggregate

import (
	"math"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// smallSum is sum and avg of int2 and int4: the sum stays within int64.
type smallSum struct {
	sum, cnt []int64
	avg      bool
}

func (s *smallSum) Grow(n int) error { s.sum, s.cnt = extend(s.sum, n), extend(s.cnt, n); return nil }
func (s *smallSum) Size() int64      { return int64(cap(s.sum)+cap(s.cnt)) * 8 }

func (s *smallSum) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.add(groups, args, sel, 1)
	return nil
}

func (s *smallSum) Remove(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.add(groups, args, sel, -1)
	return nil
}

func (s *smallSum) add(groups []uint32, args []vec.Vec, sel []uint16, by int64) {
	a := plain(args[0], groups, sel)
	valid, off := vec.Validity(a)
	switch x := a.(type) {
	case *array.Int16:
		sumInts(s.sum, s.cnt, groups, x.Int16Values(), sel, valid, off, by)
	case *array.Int32:
		sumInts(s.sum, s.cnt, groups, x.Int32Values(), sel, valid, off, by)
	}
}

func sumInts[T int16 | int32](sum, cnt []int64, groups []uint32, v []T, sel []uint16, valid []byte, off int, by int64) {
	if valid == nil && sel == nil {
		v = v[:len(groups)]
		if len(sum) == 1 {
			var t int64
			for _, x := range v {
				t += int64(x)
			}
			sum[0] += by * t
			cnt[0] += by * int64(len(v))
			return
		}
		for k, g := range groups {
			sum[g] += by * int64(v[k])
			cnt[g] += by
		}
		return
	}
	for k, g := range groups {
		i := rowAt(sel, k)
		if valid != nil && !vec.BitAt(valid, off+i) {
			continue
		}
		sum[g] += by * int64(v[i])
		cnt[g] += by
	}
}

func (s *smallSum) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *smallSum) MergePart(other State, from, to []uint32) error {
	o := other.(*smallSum)
	pairs(from, to, func(i, g uint32) {
		s.sum[g] += o.sum[i]
		s.cnt[g] += o.cnt[i]
	})
	return nil
}

func (s *smallSum) Result(from, to int) (arrow.Array, error) {
	valid := validFrom(from, to, func(g int) bool { return s.cnt[g] > 0 })
	if !s.avg {
		return vec.Make(arrow.PrimitiveTypes.Int64, append([]int64(nil), s.sum[from:to]...), valid), nil
	}
	return decResults(types.Of(types.Numeric), from, to, valid, func(g int) (*numeric.Dec, error) {
		return numeric.Div(numeric.FromInt64(s.sum[g]), numeric.FromInt64(s.cnt[g]))
	})
}

// decResults makes a numeric column of the groups that are valid.
func decResults(t types.Type, from, to int, valid []byte, f func(g int) (*numeric.Dec, error)) (arrow.Array, error) {
	ds := make([]types.Datum, to-from)
	for g := from; g < to; g++ {
		if !vec.BitAt(valid, g-from) {
			continue
		}
		d, err := f(g)
		if err != nil {
			return nil, pgerr.New(pgerr.NumericValueOutOfRange, "%s", err.Error())
		}
		if d != nil {
			ds[g-from] = d
		}
	}
	return vec.FromDatums(t, ds), nil
}

// numSum is sum and avg of int8 and numeric. Values of one scale go into 128-bit
// accumulators; what overflows them, has another scale or comes in the binary
// form goes into big ones beside them. NaN and infinities are counted, so that
// they can be taken away again.
type numSum struct {
	hi    []int64
	lo    []uint64
	cnt   []int64
	scale int32 // of hi, lo; -1 before the first batch
	big   map[uint32]*bigSum
	avg   bool
	ret   types.Type
	bytes int64
}

type bigSum struct {
	v               *numeric.Dec
	nan, pinf, ninf int64
	scales          scaleCounts
}

// scaleCounts counts the values of each scale, so that a sum from which values
// are taken away again shows no more digits than those left.
type scaleCounts []int64

func (c *scaleCounts) add(scale int32, n int64) {
	for int(scale) >= len(*c) {
		*c = append(*c, 0)
	}
	(*c)[scale] += n
}

func (c *scaleCounts) merge(o scaleCounts) {
	for s, n := range o {
		if n != 0 {
			c.add(int32(s), n)
		}
	}
}

// max is the largest scale that is there.
func (c scaleCounts) max() int32 {
	for s := len(c) - 1; s > 0; s-- {
		if c[s] > 0 {
			return int32(s)
		}
	}
	return 0
}

func newNumSum(c *Call, avg bool) *numSum { return &numSum{scale: -1, avg: avg, ret: c.Ret} }

func (s *numSum) Grow(n int) error {
	s.hi, s.lo, s.cnt = extend(s.hi, n), extend(s.lo, n), extend(s.cnt, n)
	return nil
}

func (s *numSum) Size() int64 { return int64(cap(s.hi))*24 + s.bytes }

func (s *numSum) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	return s.add(groups, args, sel, false)
}

func (s *numSum) Remove(groups []uint32, args []vec.Vec, sel []uint16) error {
	return s.add(groups, args, sel, true)
}

func (s *numSum) add(groups []uint32, args []vec.Vec, sel []uint16, neg bool) error {
	a := plain(args[0], groups, sel)
	valid, off := vec.Validity(a)
	switch x := a.(type) {
	case *array.Int64:
		if s.scale < 0 {
			s.scale = 0
		}
		s.addInt64(groups, x.Int64Values(), sel, valid, off, neg)
		return nil
	case *array.Decimal128:
		scale := x.DataType().(*arrow.Decimal128Type).Scale
		if s.scale < 0 {
			s.scale = scale
		}
		if s.scale == scale {
			s.addDec(groups, x.Values(), sel, valid, off, neg)
			return nil
		}
		v := x.Values()
		eachValid(a, groups, sel, func(g uint32, i int) { s.addBig(g, numeric.From128(v[i], scale), neg) })
		return nil
	}
	str := vec.ViewStr(a)
	eachValid(a, groups, sel, func(g uint32, i int) { s.addBig(g, numeric.Decode(str.At(i)), neg) })
	return nil
}

func (s *numSum) addInt64(groups []uint32, v []int64, sel []uint16, valid []byte, off int, neg bool) {
	for k, g := range groups {
		i := rowAt(sel, k)
		if valid != nil && !vec.BitAt(valid, off+i) {
			continue
		}
		x := v[i]
		if neg {
			// -MinInt64 needs the 128 bits.
			lo, b := bits.Sub64(s.lo[g], uint64(x), 0)
			s.lo[g] = lo
			s.hi[g] -= x>>63 + int64(b)
			s.cnt[g]--
			continue
		}
		lo, c := bits.Add64(s.lo[g], uint64(x), 0)
		s.lo[g] = lo
		s.hi[g] += x>>63 + int64(c)
		s.cnt[g]++
	}
}

// spillAt is where an accumulator is moved to the big ones: far below the 2^127
// that one more 38-digit value could push it over.
const spillAt = math.MaxInt64 / 4

func (s *numSum) addDec(groups []uint32, v []decimal128.Num, sel []uint16, valid []byte, off int, neg bool) {
	if len(s.hi) == 1 && valid == nil && sel == nil && !neg {
		hi, lo := s.hi[0], s.lo[0]
		for _, x := range v[:len(groups)] {
			l, c := bits.Add64(lo, x.LowBits(), 0)
			lo = l
			hi += x.HighBits() + int64(c)
			if hi > spillAt || hi < -spillAt {
				s.hi[0], s.lo[0] = hi, lo
				s.spill(0)
				hi, lo = 0, 0
			}
		}
		s.hi[0], s.lo[0] = hi, lo
		s.cnt[0] += int64(len(groups))
		return
	}
	for k, g := range groups {
		i := rowAt(sel, k)
		if valid != nil && !vec.BitAt(valid, off+i) {
			continue
		}
		x := v[i]
		if neg {
			x = x.Negate()
			s.cnt[g] -= 2
		}
		lo, c := bits.Add64(s.lo[g], x.LowBits(), 0)
		s.lo[g] = lo
		hi := s.hi[g] + x.HighBits() + int64(c)
		s.hi[g] = hi
		s.cnt[g]++
		if hi > spillAt || hi < -spillAt {
			s.spill(g)
		}
	}
}

func (s *numSum) bigAt(g uint32) *bigSum {
	if s.big == nil {
		s.big = map[uint32]*bigSum{}
	}
	b := s.big[g]
	if b == nil {
		b = &bigSum{v: new(numeric.Dec)}
		s.big[g] = b
		s.bytes += 160
	}
	return b
}

// spill moves group g's 128-bit sum to its big one.
func (s *numSum) spill(g uint32) {
	b := s.bigAt(g)
	b.v = numeric.Add(b.v, numeric.From128(decimal128.New(s.hi[g], s.lo[g]), s.scale))
	b.scales.add(max(s.scale, 0), 1)
	s.hi[g], s.lo[g] = 0, 0
}

func (s *numSum) addBig(g uint32, d *numeric.Dec, neg bool) {
	n := int64(1)
	if neg {
		n = -1
	}
	s.cnt[g] += n
	b := s.bigAt(g)
	switch d.Form {
	case numeric.NaN:
		b.nan += n
	case numeric.PosInf:
		b.pinf += n
	case numeric.NegInf:
		b.ninf += n
	default:
		b.scales.add(d.Scale, n)
		if neg {
			d = d.Neg()
		}
		if b.v.Scale == d.Scale {
			b.v.Coef.Add(&b.v.Coef, &d.Coef)
		} else {
			b.v = numeric.Add(b.v, d)
		}
	}
}

func (s *numSum) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *numSum) MergePart(other State, from, to []uint32) error {
	o := other.(*numSum)
	if s.scale < 0 {
		s.scale = o.scale
	}
	pairs(from, to, func(i, g uint32) {
		s.cnt[g] += o.cnt[i]
		switch {
		case o.hi[i] == 0 && o.lo[i] == 0:
		case o.scale != s.scale:
			b := s.bigAt(g)
			b.v = numeric.Add(b.v, numeric.From128(decimal128.New(o.hi[i], o.lo[i]), o.scale))
			b.scales.add(max(o.scale, 0), 1)
		default:
			lo, c := bits.Add64(s.lo[g], o.lo[i], 0)
			s.lo[g] = lo
			s.hi[g] += o.hi[i] + int64(c)
			if s.hi[g] > spillAt || s.hi[g] < -spillAt {
				s.spill(g)
			}
		}
		if ob := o.big[i]; ob != nil {
			b := s.bigAt(g)
			b.v = numeric.Add(b.v, ob.v)
			b.scales.merge(ob.scales)
			b.nan += ob.nan
			b.pinf += ob.pinf
			b.ninf += ob.ninf
		}
	})
	return nil
}

// total is the sum of group g.
func (s *numSum) total(g int) *numeric.Dec {
	d := numeric.From128(decimal128.New(s.hi[g], s.lo[g]), max(s.scale, 0))
	b := s.big[uint32(g)]
	if b == nil {
		return d
	}
	switch {
	case b.nan > 0 || b.pinf > 0 && b.ninf > 0:
		return &numeric.Dec{Form: numeric.NaN}
	case b.pinf > 0:
		return &numeric.Dec{Form: numeric.PosInf}
	case b.ninf > 0:
		return &numeric.Dec{Form: numeric.NegInf}
	}
	v := b.v
	if k := b.scales.max(); k < v.Scale {
		v = v.Trunc(k)
	}
	if s.scale < 0 || s.hi[g] == 0 && s.lo[g] == 0 && v.Scale >= s.scale {
		return v
	}
	return numeric.Add(d, v)
}

func (s *numSum) Result(from, to int) (arrow.Array, error) {
	valid := validFrom(from, to, func(g int) bool { return s.cnt[g] > 0 })
	if s.avg {
		return decResults(types.Of(types.Numeric), from, to, valid, func(g int) (*numeric.Dec, error) {
			return numeric.Div(s.total(g), numeric.FromInt64(s.cnt[g]))
		})
	}
	if s.ret.Prec > 0 && len(s.big) == 0 && (s.scale == int32(s.ret.Scale) || s.scale < 0) {
		out := make([]decimal128.Num, to-from)
		fits := true
		for g := from; g < to; g++ {
			h := s.hi[g]
			if h > 0x4b3b4ca85a86c479 || h < -0x4b3b4ca85a86c479 {
				fits = false
				break
			}
			out[g-from] = decimal128.New(h, s.lo[g])
		}
		if fits {
			return vec.MakeDec128(s.ret.Arrow(), out, valid), nil
		}
	}
	return decResults(s.ret, from, to, valid, func(g int) (*numeric.Dec, error) { return s.total(g), nil })
}
