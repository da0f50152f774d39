package function

import (
	"math"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/array"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// roundTo rounds microseconds to the digits of a time type.
func roundTo(t types.Type, us int64) int64 {
	if t.Mod > 0 && t.Mod <= 6 {
		return pgtext.RoundMicros(us, int(t.Mod)-1)
	}
	return us
}

func intToInt(to types.Kind) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		a := args[0].Arr
		n := a.Len()
		if args[0].Const && n > 0 {
			n = 1
		}
		v := wideInts(vec.Vec{Arr: a}, new([]int64))
		valid := vec.ValidCopy(a)
		var lo, hi int64 = math.MinInt64, math.MaxInt64
		switch to {
		case types.Int2:
			lo, hi = math.MinInt16, math.MaxInt16
		case types.Int4:
			lo, hi = math.MinInt32, math.MaxInt32
		}
		if lo != math.MinInt64 {
			bad := false
			for _, x := range v[:n] {
				bad = bad || x < lo || x > hi
			}
			if bad {
				var err error
				rowsLoop(n, selOf(c, args), valid, func(i int) {
					if v[i] < lo || v[i] > hi {
						err = errIntRange(to)
					}
				})
				if err != nil {
					return nil, err
				}
			}
		}
		dt := types.Of(to).Arrow()
		switch to {
		case types.Int2:
			out := make([]int16, n)
			for i := range out {
				out[i] = int16(v[i])
			}
			return vec.Make(dt, out, valid), nil
		case types.Int4:
			out := make([]int32, n)
			for i := range out {
				out[i] = int32(v[i])
			}
			return vec.Make(dt, out, valid), nil
		}
		return vec.Make(dt, append([]int64(nil), v[:n]...), valid), nil
	}
}

func intToFloat(c *Call, args []vec.Vec) (arrow.Array, error) {
	v := wideInts(args[0], new([]int64))
	valid := vec.ValidCopy(args[0].Arr)
	if c.Ret.Kind == types.Float4 {
		out := make([]float32, len(v))
		for i, x := range v {
			out[i] = float32(x)
		}
		return vec.Make(arrow.PrimitiveTypes.Float32, out, valid), nil
	}
	out := make([]float64, len(v))
	for i, x := range v {
		out[i] = float64(x)
	}
	return vec.Make(arrow.PrimitiveTypes.Float64, out, valid), nil
}

func intToNumeric(c *Call, args []vec.Vec) (arrow.Array, error) {
	v := wideInts(args[0], new([]int64))
	valid := vec.ValidCopy(args[0].Arr)
	t := c.Ret
	p, s, hasMod := pgtext.NumericMod(t)
	if t.Prec > 0 && !(hasMod && s < 0) {
		scale := int(t.Scale)
		limit := int64(math.MaxInt64)
		digits := int(t.Prec) - scale
		if digits < 19 {
			limit = int64(pow10u[max(digits, 0)])
		}
		out := make([]decimal128.Num, len(v))
		if scale <= 18 {
			mul := pow10u[scale]
			ok := true
			for i, x := range v {
				hi, lo := mulS64(x, int64(mul))
				out[i] = decimal128.New(hi, lo)
				ok = ok && x < limit && x > -limit
			}
			if ok || limit == math.MaxInt64 {
				return vec.MakeDec128(t.Arrow(), out, valid), nil
			}
			var err error
			rowsLoop(len(v), selOf(c, args), valid, func(i int) {
				if v[i] >= limit || v[i] <= -limit {
					err = pgtext.NumericOverflow(int(t.Prec), scale)
				}
			})
			if err != nil {
				return nil, err
			}
			return vec.MakeDec128(t.Arrow(), out, valid), nil
		}
	}
	_ = p
	return fn1(func(x int64) (*numeric.Dec, error) { return pgtext.FitNumeric(numeric.FromInt64(x), t) })(c, args)
}

// mulS64 is the 128-bit product of two int64.
func mulS64(x, y int64) (int64, uint64) {
	r, _ := mulDec(decimal128.FromI64(x), decimal128.FromI64(y))
	return r.HighBits(), r.LowBits()
}

func floatToInt(to types.Kind) Kernel {
	lo, hi := -0x1p63, 0x1p63
	switch to {
	case types.Int2:
		lo, hi = math.MinInt16, math.MaxInt16+1
	case types.Int4:
		lo, hi = math.MinInt32, math.MaxInt32+1
	}
	return fn1(func(f float64) (int64, error) {
		r := math.RoundToEven(f)
		if !(r >= lo && r < hi) {
			return 0, errIntRange(to)
		}
		return int64(r), nil
	})
}

func numericToInt(to types.Kind) Kernel {
	return fn1(func(d *numeric.Dec) (int64, error) {
		if d.Form == numeric.NaN {
			return 0, pgerr.New(pgerr.FeatureNotSupported, "cannot convert NaN to %s", intName(to))
		}
		if d.Form != numeric.Finite {
			return 0, pgerr.New(pgerr.FeatureNotSupported, "cannot convert infinity to %s", intName(to))
		}
		v, ok := d.Int64()
		return checkInt(to, v, !ok)
	})
}

// intToOID: int4 wraps as PostgreSQL's label-only cast does, int8 is checked.
var intToOID = withCall(func(c *Call) Kernel {
	wide := argType(c, 0).Kind == types.Int8
	return fn1(func(v int64) (int64, error) {
		if wide && (v > math.MaxUint32 || v < 0) {
			return 0, pgerr.New(pgerr.NumericValueOutOfRange, "OID out of range")
		}
		return int64(uint32(v)), nil
	})
})

var oidToInt4 = fn1(func(v int64) (int64, error) { return int64(int32(v)), nil })

var floatToFloat = withCall(func(c *Call) Kernel {
	if c.Ret.Kind == types.Float8 {
		return fn1(func(f float64) (float64, error) { return f, nil })
	}
	return fn1(func(f float64) (float64, error) {
		g := float64(float32(f))
		if math.IsInf(g, 0) && !math.IsInf(f, 0) {
			return 0, errFloatOverflow()
		}
		if g == 0 && f != 0 {
			return 0, errFloatUnderflow()
		}
		return g, nil
	})
})

var floatToNumeric = withCall(func(c *Call) Kernel {
	conv := numeric.FromFloat64
	if argType(c, 0).Kind == types.Float4 {
		conv = func(f float64) *numeric.Dec { return numeric.FromFloat32(float32(f)) }
	}
	return fn1(func(f float64) (*numeric.Dec, error) { return pgtext.FitNumeric(conv(f), c.Ret) })
})

var numericToFloat = withCall(func(c *Call) Kernel {
	name := "double precision"
	if c.Ret.Kind == types.Float4 {
		name = "real"
	}
	return fn1(func(d *numeric.Dec) (float64, error) {
		f := d.Float64()
		if c.Ret.Kind == types.Float4 {
			f = float64(float32(f))
		}
		if d.Form == numeric.Finite && (math.IsInf(f, 0) || f == 0 && d.Coef.Sign() != 0) {
			return 0, pgerr.New(pgerr.NumericValueOutOfRange, "\"%s\" is out of range for type %s", d.String(), name)
		}
		return f, nil
	})
})

// numericToNumeric applies a typmod, or changes the physical form.
func numericToNumeric(c *Call, args []vec.Vec) (arrow.Array, error) {
	t := c.Ret
	a, ok := args[0].Arr.(*array.Decimal128)
	_, s, hasMod := pgtext.NumericMod(t)
	if ok && t.Prec > 0 && (!hasMod || s == int(t.Scale)) {
		from := decScale(a)
		if from == int32(t.Scale) {
			// Same scale: only the digits can be too many.
			src := a.Values()
			limit := decimal128.FromBigInt(numeric.Pow10(int32(t.Prec)))
			neg := limit.Negate()
			bad := false
			for _, x := range src {
				bad = bad || vec.CmpDec128(x, limit) >= 0 || vec.CmpDec128(x, neg) <= 0
			}
			if !bad {
				return vec.MakeDec128(t.Arrow(), append([]decimal128.Num(nil), src...), vec.ValidCopy(a)), nil
			}
		} else if from < int32(t.Scale) && int(t.Prec)-int(t.Scale) >= int(a.DataType().(*arrow.Decimal128Type).Precision)-int(from) {
			var buf []decimal128.Num
			if up, ok := scaleUp(a.Values(), int32(t.Scale)-from, &buf); ok {
				return vec.MakeDec128(t.Arrow(), up, vec.ValidCopy(a)), nil
			}
		}
	}
	return fn1(func(d *numeric.Dec) (*numeric.Dec, error) {
		r, err := pgtext.FitNumeric(d, t)
		if err == nil && !hasMod && t.Prec > 0 && r.Form == numeric.Finite && r.Scale < int32(t.Scale) {
			return r, nil
		}
		return r, err
	})(c, args)
}
