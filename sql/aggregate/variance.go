package aggregate

import (
	"math/big"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// numMoments is variance and stddev of integers and numerics: exact sums of
// values and squares at the largest scale seen.
type numMoments struct {
	g            []*numMoment
	sample, sqrt bool
	bytes        int64
}

type numMoment struct {
	n, nan, inf int64
	scale       int32
	sx, sxx     big.Int // scaled by 10^scale and 10^(2*scale)
	scales      scaleCounts
}

func (s *numMoments) Grow(n int) error {
	s.g = extend(s.g, n)
	return nil
}
func (s *numMoments) Size() int64 { return int64(cap(s.g))*8 + s.bytes }

func (s *numMoments) at(g uint32) *numMoment {
	if s.g[g] == nil {
		s.g[g] = new(numMoment)
		s.bytes += 160
	}
	return s.g[g]
}

func (m *numMoment) rescale(scale int32) {
	if scale <= m.scale {
		return
	}
	p := numeric.Pow10(scale - m.scale)
	m.sx.Mul(&m.sx, p)
	m.sxx.Mul(&m.sxx, p)
	m.sxx.Mul(&m.sxx, p)
	m.scale = scale
}

func (m *numMoment) add(d *numeric.Dec, by int64) {
	m.n += by
	switch d.Form {
	case numeric.NaN:
		m.nan += by
		return
	case numeric.Finite:
	default:
		m.inf += by
		return
	}
	m.rescale(d.Scale)
	m.scales.add(d.Scale, by)
	x := &d.Coef
	if d.Scale < m.scale {
		x = new(big.Int).Mul(x, numeric.Pow10(m.scale-d.Scale))
	}
	sq := new(big.Int).Mul(x, x)
	if by > 0 {
		m.sx.Add(&m.sx, x)
		m.sxx.Add(&m.sxx, sq)
	} else {
		m.sx.Sub(&m.sx, x)
		m.sxx.Sub(&m.sxx, sq)
	}
}

func (s *numMoments) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.update(groups, args, sel, 1)
	return nil
}

func (s *numMoments) Remove(groups []uint32, args []vec.Vec, sel []uint16) error {
	s.update(groups, args, sel, -1)
	return nil
}

func (s *numMoments) update(groups []uint32, args []vec.Vec, sel []uint16, by int64) {
	a := plain(args[0], groups, sel)
	read := decReader(a)
	eachValid(a, groups, sel, func(g uint32, i int) { s.at(g).add(read(i), by) })
}

// decReader reads integers and numerics as Dec.
func decReader(a arrow.Array) func(i int) *numeric.Dec {
	switch x := a.(type) {
	case *array.Int16:
		v := x.Int16Values()
		return func(i int) *numeric.Dec { return numeric.FromInt64(int64(v[i])) }
	case *array.Int32:
		v := x.Int32Values()
		return func(i int) *numeric.Dec { return numeric.FromInt64(int64(v[i])) }
	case *array.Int64:
		v := x.Int64Values()
		return func(i int) *numeric.Dec { return numeric.FromInt64(v[i]) }
	case *array.Decimal128:
		v := x.Values()
		scale := x.DataType().(*arrow.Decimal128Type).Scale
		return func(i int) *numeric.Dec { return numeric.From128(v[i], scale) }
	}
	s := vec.ViewStr(a)
	return func(i int) *numeric.Dec { return numeric.Decode(s.At(i)) }
}

func (s *numMoments) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *numMoments) MergePart(other State, from, to []uint32) error {
	x := other.(*numMoments)
	pairs(from, to, func(i, g uint32) {
		o := x.g[i]
		if o == nil {
			return
		}
		m := s.at(g)
		m.rescale(o.scale)
		o.rescale(m.scale)
		m.n += o.n
		m.nan += o.nan
		m.inf += o.inf
		m.scales.merge(o.scales)
		m.sx.Add(&m.sx, &o.sx)
		m.sxx.Add(&m.sxx, &o.sxx)
	})
	return nil
}

func (s *numMoments) Result(from, to int) (arrow.Array, error) {
	least := int64(1)
	if s.sample {
		least = 2
	}
	valid := validFrom(from, to, func(g int) bool { return s.g[g] != nil && s.g[g].n >= least })
	return decResults(types.Of(types.Numeric), from, to, valid, func(g int) (*numeric.Dec, error) {
		m := s.g[g]
		if m.nan > 0 || m.inf > 0 {
			return &numeric.Dec{Form: numeric.NaN}, nil
		}
		n := big.NewInt(m.n)
		if k := m.scales.max(); k < m.scale {
			// The values with more digits were taken away again.
			p := numeric.Pow10(m.scale - k)
			m.sx.Quo(&m.sx, p)
			m.sxx.Quo(&m.sxx, p)
			m.sxx.Quo(&m.sxx, p)
			m.scale = k
		}
		num := &numeric.Dec{Scale: 2 * m.scale}
		num.Coef.Mul(n, &m.sxx)
		num.Coef.Sub(&num.Coef, new(big.Int).Mul(&m.sx, &m.sx))
		if num.Coef.Sign() <= 0 {
			return new(numeric.Dec), nil
		}
		den := numeric.FromInt64(m.n)
		if s.sample {
			den.Coef.Mul(&den.Coef, big.NewInt(m.n-1))
		} else {
			den.Coef.Mul(&den.Coef, &den.Coef)
		}
		scale := numeric.DivScale(num, den)
		v := numeric.DivTo(num, den, scale)
		if s.sqrt {
			v = numeric.SqrtTo(v, scale)
		}
		return v, nil
	})
}
