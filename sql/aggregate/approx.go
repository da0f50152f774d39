package aggregate

import (
	"math"
	"math/bits"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// hllBits gives 4,096 registers: a standard error of 1.6 %.
const hllBits = 12

// distinctSketch is approx_count_distinct: HyperLogLog with exact hashes while
// there are few.
type distinctSketch struct {
	t     types.Type
	small []map[uint64]struct{}
	regs  [][]uint8
	buf   []uint64
	bytes int64
}

const hllSmall = 256

func (s *distinctSketch) Grow(n int) error {
	s.small, s.regs = extend(s.small, n), extend(s.regs, n)
	return nil
}
func (s *distinctSketch) Size() int64 { return int64(cap(s.regs))*32 + s.bytes }

func (s *distinctSketch) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := column(args[0], groups, sel)
	n := a.Len()
	s.buf = extend(s.buf[:0], n)
	clear(s.buf)
	vec.HashColumn(s.t, a, s.buf, nil)
	eachValid(a, groups, sel, func(g uint32, i int) { s.put(g, s.buf[i]) })
	return nil
}

func (s *distinctSketch) put(g uint32, h uint64) {
	if r := s.regs[g]; r != nil {
		putReg(r, h)
		return
	}
	m := s.small[g]
	if m == nil {
		m = map[uint64]struct{}{}
		s.small[g] = m
	}
	if _, ok := m[h]; !ok {
		s.bytes += 24
		m[h] = struct{}{}
	}
	if len(m) > hllSmall {
		s.dense(g)
	}
}

func (s *distinctSketch) dense(g uint32) {
	if s.regs[g] != nil {
		return
	}
	r := make([]uint8, 1<<hllBits)
	s.bytes += 1<<hllBits - int64(len(s.small[g]))*24
	for h := range s.small[g] {
		putReg(r, h)
	}
	s.small[g], s.regs[g] = nil, r
}

func putReg(r []uint8, h uint64) {
	i := h >> (64 - hllBits)
	n := uint8(bits.LeadingZeros64(h<<hllBits|1<<(hllBits-1))) + 1
	r[i] = max(r[i], n)
}

func (s *distinctSketch) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *distinctSketch) MergePart(other State, from, to []uint32) error {
	o := other.(*distinctSketch)
	pairs(from, to, func(i, g uint32) {
		if r := o.regs[i]; r != nil {
			s.dense(g)
			for k, n := range r {
				s.regs[g][k] = max(s.regs[g][k], n)
			}
			return
		}
		for h := range o.small[i] {
			s.put(g, h)
		}
	})
	return nil
}

func (s *distinctSketch) Result(from, to int) (arrow.Array, error) {
	out := make([]int64, to-from)
	for g := from; g < to; g++ {
		r := s.regs[g]
		if r == nil {
			out[g-from] = int64(len(s.small[g]))
			continue
		}
		sum, zeros := 0.0, 0
		for _, n := range r {
			sum += math.Ldexp(1, -int(n))
			if n == 0 {
				zeros++
			}
		}
		m := float64(len(r))
		e := 0.7213 / (1 + 1.079/m) * m * m / sum
		if e <= 2.5*m && zeros > 0 {
			e = m * math.Log(m/float64(zeros))
		}
		out[g-from] = int64(e + 0.5)
	}
	return vec.Make(arrow.PrimitiveTypes.Int64, out, nil), nil
}

// anyValue keeps the first value that is not NULL.
type anyValue struct {
	v []types.Datum
	t types.Type
}

func (s *anyValue) Grow(n int) error { s.v = extend(s.v, n); return nil }
func (s *anyValue) Size() int64      { return int64(cap(s.v)) * 40 }

func (s *anyValue) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := plain(args[0], groups, sel)
	eachValid(a, groups, sel, func(g uint32, i int) {
		if s.v[g] == nil {
			s.v[g] = vec.DatumAt(a, s.t, i)
		}
	})
	return nil
}

func (s *anyValue) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *anyValue) MergePart(other State, from, to []uint32) error {
	o := other.(*anyValue)
	pairs(from, to, func(i, g uint32) {
		if s.v[g] == nil {
			s.v[g] = o.v[i]
		}
	})
	return nil
}

func (s *anyValue) Result(from, to int) (arrow.Array, error) {
	return vec.FromDatums(s.t, s.v[from:to]), nil
}

func extraDefs() []Def {
	return []Def{
		{Name: "approx_count_distinct", Args: one(tAny), Ret: tInt8, IgnoresNulls: true, Doc: "estimated number of distinct values",
			New: func(c *Call) State { return &distinctSketch{t: argType(c, 0)} }},
		{Name: "any_value", Args: one(tAnyElement), Ret: tAnyElement, RetFn: firstArg, IgnoresNulls: true, Doc: "some value that is not null",
			New: func(c *Call) State { return &anyValue{t: argType(c, 0)} }},
		{Name: "sum", Args: one(tInterval), Ret: tInterval, IgnoresNulls: true, Doc: "sum", New: func(*Call) State { return &intervalSum{} }},
		{Name: "avg", Args: one(tInterval), Ret: tInterval, IgnoresNulls: true, Doc: "average", New: func(*Call) State { return &intervalSum{avg: true} }},
	}
}
