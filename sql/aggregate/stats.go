package aggregate

import (
	"math/big"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

func statDefs() []Def {
	var out []Def
	for _, v := range []struct {
		name, doc    string
		sample, root bool
		fin          func(n, sx, sxx float64) (float64, bool)
	}{
		{"var_pop", "population variance", false, false, finVarPop}, {"var_samp", "sample variance", true, false, finVarSamp},
		{"variance", "sample variance", true, false, finVarSamp}, {"stddev_pop", "population standard deviation", false, true, finStdPop},
		{"stddev_samp", "sample standard deviation", true, true, finStdSamp}, {"stddev", "sample standard deviation", true, true, finStdSamp},
	} {
		for _, t := range []types.Type{tInt2, tInt4, tInt8, tNumeric} {
			out = append(out, Def{Name: v.name, Args: one(t), Ret: tNumeric, IgnoresNulls: true, Doc: v.doc,
				New: func(c *Call) State { return &varNumeric{t: c.ArgTypes[0], sample: v.sample, root: v.root} }})
		}
		for _, t := range []types.Type{tFloat4, tFloat8} {
			out = append(out, Def{Name: v.name, Args: one(t), Ret: tFloat8, IgnoresNulls: true, Doc: v.doc,
				New: func(*Call) State { return &moments{fin: v.fin} }})
		}
	}
	two := []types.Type{tFloat8, tFloat8}
	for _, r := range regressions {
		out = append(out, Def{Name: r.name, Args: two, Ret: tFloat8, IgnoresNulls: true, Doc: r.doc, New: func(*Call) State { return &regression{fin: r.fin} }})
	}
	return append(out, Def{Name: "regr_count", Args: two, Ret: tInt8, IgnoresNulls: true, Doc: "number of pairs without nulls", New: func(*Call) State { return &regression{count: true} }})
}

// varNumeric keeps count, sum and sum of squares exactly, as numeric_accum does.
type varNumeric struct {
	t            types.Type
	sample, root bool
	n            []int64
	sum, sq      []*numeric.Dec
	nan          []bool
}

func (s *varNumeric) Grow(n int) error {
	s.n, s.sum, s.sq, s.nan = extend(s.n, n), extend(s.sum, n), extend(s.sq, n), extend(s.nan, n)
	return nil
}

func (s *varNumeric) Update(groups []uint32, args []vec.Vec, sel []uint16) error {
	a := arg(args, 0, groups, sel)
	eachValid(a, groups, sel, func(g uint32, r int) {
		var d *numeric.Dec
		switch v := vec.DatumAt(a, s.t, r).(type) {
		case int64:
			d = numeric.FromInt64(v)
		case *numeric.Dec:
			d = v
		}
		if d.Form != numeric.Finite {
			s.nan[g] = true
			s.n[g]++
			return
		}
		if s.sum[g] == nil {
			s.sum[g], s.sq[g] = new(numeric.Dec), new(numeric.Dec)
		}
		s.n[g]++
		s.sum[g] = numeric.Add(s.sum[g], d)
		sq := &numeric.Dec{Scale: 2 * d.Scale}
		sq.Coef.Mul(&d.Coef, &d.Coef)
		s.sq[g] = numeric.Add(s.sq[g], sq)
	})
	return nil
}

func (s *varNumeric) Merge(o State, to []uint32) error { return s.MergePart(o, nil, to) }

func (s *varNumeric) MergePart(o State, from, to []uint32) error {
	x := o.(*varNumeric)
	pairs(from, to, func(f, t uint32) {
		s.n[t] += x.n[f]
		s.nan[t] = s.nan[t] || x.nan[f]
		if x.sum[f] == nil {
			return
		}
		if s.sum[t] == nil {
			s.sum[t], s.sq[t] = new(numeric.Dec), new(numeric.Dec)
		}
		s.sum[t], s.sq[t] = numeric.Add(s.sum[t], x.sum[f]), numeric.Add(s.sq[t], x.sq[f])
	})
	return nil
}

func (s *varNumeric) Result(from, to int) (arrow.Array, error) {
	return decs(from, to, func(i int) *numeric.Dec {
		n := s.n[i]
		if n == 0 || s.sample && n == 1 {
			return nil
		}
		if s.nan[i] {
			return &numeric.Dec{Form: numeric.NaN}
		}
		nd := numeric.FromInt64(n)
		// (N * sum of squares - square of sum) / (N * (N or N-1)), as
		// numeric_stddev_internal has it.
		a := numeric.Mul(nd, s.sq[i])
		num := numeric.Sub(a, numeric.Mul(s.sum[i], s.sum[i]))
		if num.Sign() <= 0 {
			return new(numeric.Dec)
		}
		den := nd
		if s.sample {
			den = numeric.FromInt64(n - 1)
		}
		q, err := numeric.Div(num, numeric.Mul(nd, den))
		if err != nil {
			return nil
		}
		if s.root {
			return rootTo(q)
		}
		return q
	}), nil
}

// rootTo is the square root at the scale of d, rounded half up.
func rootTo(d *numeric.Dec) *numeric.Dec {
	x := new(big.Int).Mul(&d.Coef, numeric.Pow10(d.Scale+2)) // one digit more
	x.Sqrt(x)
	q, r := new(big.Int).QuoRem(x, big.NewInt(10), new(big.Int))
	if r.Int64() >= 5 {
		q.Add(q, big.NewInt(1))
	}
	out := &numeric.Dec{Scale: d.Scale}
	out.Coef.Set(q)
	return out
}

func (s *varNumeric) Size() int64 { return int64(cap(s.n)) * 200 }
