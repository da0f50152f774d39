package aggregate

import (
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

func errOverflow() error {
	return pgerr.New(pgerr.NumericValueOutOfRange, "value out of range: overflow")
}

// floats returns a float column as float64.
func floats(a arrow.Array) []float64 {
	if f, ok := a.(*array.Float32); ok {
		v := f.Float32Values()
		out := make([]float64, len(v))
		for i, x := range v {
			out[i] = float64(x)
		}
		return out
	}
	return vec.ViewOf[float64](a).V
}

// floatSum is sum of floats, in input order as in PostgreSQL; real sums are
// rounded to real after each row.
type floatSum struct {
	sum  []float64
	seen []bool
	real bool
}

func (s *floatSum) Grow(n int) error {
	s.sum, s.seen = extend(s.sum, n), extend(s.seen, n)
	return nil
}
func (s *floatSum) Size() int64 { return int64(cap(s.sum)) * 9 }

func (s *floatSum) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := plain(args[0], groups, sel)
	valid, off := vec.Validity(a)
	v := floats(a)
	over := false
	for k, g := range groups {
		i := rowAt(sel, k)
		if valid != nil && !vec.BitAt(valid, off+i) {
			continue
		}
		x, old := v[i], s.sum[g]
		r := x
		if s.seen[g] {
			r = old + x
			if s.real {
				r = float64(float32(r))
			}
			if r-r != 0 && math.IsInf(r, 0) && !math.IsInf(x, 0) && !math.IsInf(old, 0) {
				over = true
			}
		}
		s.sum[g] = r
		s.seen[g] = true
	}
	if over {
		return errOverflow()
	}
	return nil
}

func (s *floatSum) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *floatSum) MergePart(other State, from, to []uint32) error {
	o := other.(*floatSum)
	for k, g := range to {
		i := source(from, k)
		if !o.seen[i] {
			continue
		}
		if !s.seen[g] {
			s.sum[g], s.seen[g] = o.sum[i], true
			continue
		}
		r := s.sum[g] + o.sum[i]
		if s.real {
			r = float64(float32(r))
		}
		if math.IsInf(r, 0) && !math.IsInf(s.sum[g], 0) && !math.IsInf(o.sum[i], 0) {
			return errOverflow()
		}
		s.sum[g] = r
	}
	return nil
}

func (s *floatSum) Result(from, to int) (arrow.Array, error) {
	valid := validFrom(from, to, func(g int) bool { return s.seen[g] })
	return makeFloats(s.real, s.sum[from:to], valid), nil
}

func makeFloats(real bool, v []float64, valid []byte) arrow.Array {
	if real {
		out := make([]float32, len(v))
		for i, x := range v {
			out[i] = float32(x)
		}
		return vec.Make(arrow.PrimitiveTypes.Float32, out, valid)
	}
	return vec.Make(arrow.PrimitiveTypes.Float64, append([]float64(nil), v...), valid)
}

// moments are N, sum and sum of squared differences of floats, updated as
// Youngs and Cramer do, which is what PostgreSQL computes.
type moments struct {
	n, sx, sxx []float64
	fin        func(n, sx, sxx float64) (float64, bool)
}

func (s *moments) Grow(n int) error {
	s.n, s.sx, s.sxx = extend(s.n, n), extend(s.sx, n), extend(s.sxx, n)
	return nil
}
func (s *moments) Size() int64 { return int64(cap(s.n)) * 24 }

func (s *moments) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := plain(args[0], groups, sel)
	valid, off := vec.Validity(a)
	v := floats(a)
	for k, g := range groups {
		i := rowAt(sel, k)
		if valid != nil && !vec.BitAt(valid, off+i) {
			continue
		}
		x := v[i]
		old, oldSx := s.n[g], s.sx[g]
		n := old + 1
		sx := oldSx + x
		sxx := s.sxx[g]
		if old > 0 {
			t := x*n - sx
			sxx += t * t / (n * old)
			if math.IsInf(sx, 0) || math.IsInf(sxx, 0) {
				if !math.IsInf(oldSx, 0) && !math.IsInf(x, 0) {
					return errOverflow()
				}
				sxx = math.NaN()
			}
		} else if x-x != 0 {
			sxx = math.NaN()
		}
		s.n[g], s.sx[g], s.sxx[g] = n, sx, sxx
	}
	return nil
}

func (s *moments) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *moments) MergePart(other State, from, to []uint32) error {
	o := other.(*moments)
	for k, g := range to {
		i := source(from, k)
		n1, n2 := s.n[g], o.n[i]
		switch {
		case n2 == 0:
		case n1 == 0:
			s.n[g], s.sx[g], s.sxx[g] = n2, o.sx[i], o.sxx[i]
		default:
			n, sx := n1+n2, s.sx[g]+o.sx[i]
			if math.IsInf(sx, 0) && !math.IsInf(s.sx[g], 0) && !math.IsInf(o.sx[i], 0) {
				return errOverflow()
			}
			t := s.sx[g]/n1 - o.sx[i]/n2
			sxx := s.sxx[g] + o.sxx[i] + n1*n2*t*t/n
			if math.IsInf(sxx, 0) && !math.IsInf(s.sxx[g], 0) && !math.IsInf(o.sxx[i], 0) {
				return errOverflow()
			}
			s.n[g], s.sx[g], s.sxx[g] = n, sx, sxx
		}
	}
	return nil
}

func (s *moments) Result(from, to int) (arrow.Array, error) {
	out := make([]float64, to-from)
	valid := vec.FullBitmap(to - from)
	for g := from; g < to; g++ {
		r, ok := s.fin(s.n[g], s.sx[g], s.sxx[g])
		if !ok {
			vec.ClearBit(valid, g-from)
		}
		out[g-from] = r
	}
	return vec.Make(arrow.PrimitiveTypes.Float64, out, valid), nil
}

func finAvg(n, sx, _ float64) (float64, bool)     { return sx / n, n > 0 }
func finVarPop(n, _, sxx float64) (float64, bool) { return sxx / n, n > 0 }
func finVarSamp(n, _, sxx float64) (float64, bool) {
	return sxx / (n - 1), n > 1
}
func finStdPop(n, _, sxx float64) (float64, bool)  { return math.Sqrt(sxx / n), n > 0 }
func finStdSamp(n, _, sxx float64) (float64, bool) { return math.Sqrt(sxx / (n - 1)), n > 1 }

// regression is the state of corr, covar_* and regr_*: the first argument is Y.
type regression struct {
	v     [][6]float64 // N, Sx, Sxx, Sy, Syy, Sxy
	fin   func(v *[6]float64) (float64, bool)
	count bool
}

func (s *regression) Grow(n int) error { s.v = extend(s.v, n); return nil }
func (s *regression) Size() int64      { return int64(cap(s.v)) * 48 }

func (s *regression) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	ya, xa := plain(args[0], groups, sel), plain(args[1], groups, sel)
	ys, xs := floats(ya), floats(xa)
	for k, g := range groups {
		i := rowAt(sel, k)
		if ya.IsNull(i) || xa.IsNull(i) {
			continue
		}
		x, y := xs[i], ys[i]
		t := &s.v[g]
		old := *t
		t[0]++
		if s.count {
			continue
		}
		t[1] += x
		t[3] += y
		if old[0] > 0 {
			tx, ty := x*t[0]-t[1], y*t[0]-t[3]
			scale := 1 / (t[0] * old[0])
			t[2] += tx * tx * scale
			t[4] += ty * ty * scale
			t[5] += tx * ty * scale
			if math.IsInf(t[1], 0) || math.IsInf(t[2], 0) || math.IsInf(t[3], 0) || math.IsInf(t[4], 0) || math.IsInf(t[5], 0) {
				xf, yf := !math.IsInf(old[1], 0) && !math.IsInf(x, 0), !math.IsInf(old[3], 0) && !math.IsInf(y, 0)
				if (math.IsInf(t[1], 0) || math.IsInf(t[2], 0)) && xf || (math.IsInf(t[3], 0) || math.IsInf(t[4], 0)) && yf || math.IsInf(t[5], 0) && xf && yf {
					return errOverflow()
				}
				for _, j := range []int{2, 4, 5} {
					if math.IsInf(t[j], 0) {
						t[j] = math.NaN()
					}
				}
			}
		} else {
			if x-x != 0 {
				t[2], t[5] = math.NaN(), math.NaN()
			}
			if y-y != 0 {
				t[4], t[5] = math.NaN(), math.NaN()
			}
		}
	}
	return nil
}

func (s *regression) Merge(other State, to []uint32) error { return s.MergePart(other, nil, to) }

func (s *regression) MergePart(other State, from, to []uint32) error {
	o := other.(*regression)
	for k, g := range to {
		i := source(from, k)
		a, b := &s.v[g], &o.v[i]
		switch {
		case b[0] == 0:
		case a[0] == 0:
			*a = *b
		default:
			n1, n2 := a[0], b[0]
			n := n1 + n2
			tx, ty := a[1]/n1-b[1]/n2, a[3]/n1-b[3]/n2
			*a = [6]float64{n, a[1] + b[1], a[2] + b[2] + n1*n2*tx*tx/n, a[3] + b[3], a[4] + b[4] + n1*n2*ty*ty/n, a[5] + b[5] + n1*n2*tx*ty/n}
		}
	}
	return nil
}

func (s *regression) Result(from, to int) (arrow.Array, error) {
	if s.count {
		out := make([]int64, to-from)
		for g := from; g < to; g++ {
			out[g-from] = int64(s.v[g][0])
		}
		return vec.Make(arrow.PrimitiveTypes.Int64, out, nil), nil
	}
	out := make([]float64, to-from)
	valid := vec.FullBitmap(to - from)
	for g := from; g < to; g++ {
		r, ok := s.fin(&s.v[g])
		if !ok {
			vec.ClearBit(valid, g-from)
			continue
		}
		out[g-from] = r
	}
	return vec.Make(arrow.PrimitiveTypes.Float64, out, valid), nil
}

var regressions = []struct {
	name, doc string
	fin       func(v *[6]float64) (float64, bool)
}{
	{"corr", "Correlation coefficient.", func(v *[6]float64) (float64, bool) {
		return v[5] / math.Sqrt(v[2]*v[4]), v[0] >= 1 && v[2] != 0 && v[4] != 0
	}},
	{"covar_pop", "Population covariance.", func(v *[6]float64) (float64, bool) { return v[5] / v[0], v[0] >= 1 }},
	{"covar_samp", "Sample covariance.", func(v *[6]float64) (float64, bool) { return v[5] / (v[0] - 1), v[0] >= 2 }},
	{"regr_avgx", "Average of the independent variable.", func(v *[6]float64) (float64, bool) { return v[1] / v[0], v[0] >= 1 }},
	{"regr_avgy", "Average of the dependent variable.", func(v *[6]float64) (float64, bool) { return v[3] / v[0], v[0] >= 1 }},
	{"regr_intercept", "Intercept of the least-squares line.", func(v *[6]float64) (float64, bool) {
		return (v[3] - v[1]*v[5]/v[2]) / v[0], v[0] >= 1 && v[2] != 0
	}},
	{"regr_slope", "Slope of the least-squares line.", func(v *[6]float64) (float64, bool) { return v[5] / v[2], v[0] >= 1 && v[2] != 0 }},
	{"regr_r2", "Square of the correlation coefficient.", func(v *[6]float64) (float64, bool) {
		if v[0] >= 1 && v[2] != 0 && v[4] == 0 {
			return 1, true
		}
		return v[5] * v[5] / (v[2] * v[4]), v[0] >= 1 && v[2] != 0
	}},
	{"regr_sxx", "Sum of squares of the independent variable.", func(v *[6]float64) (float64, bool) { return v[2], v[0] >= 1 }},
	{"regr_syy", "Sum of squares of the dependent variable.", func(v *[6]float64) (float64, bool) { return v[4], v[0] >= 1 }},
	{"regr_sxy", "Sum of products of the variables.", func(v *[6]float64) (float64, bool) { return v[5], v[0] >= 1 }},
}

var _ = types.Float8
