package aggregate

import (
	"fmt"
	"math"
	"math/big"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/apache/arrow/go/v15/arrow/decimal128"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// What sum and product share.

type integer interface{ ~int16 | ~int32 | ~int64 }
type float interface{ ~float32 | ~float64 }

// nulls collects the rows of a result that are NULL.
type nulls struct {
	bits []byte // nil = none so far
	n    int
}

func (b *nulls) set(k int) {
	if b.bits == nil {
		b.bits = vec.FullBitmap(b.n)
	}
	vec.ClearBit(b.bits, k)
}

// bounds are the least and greatest value of an integer type.
func bounds(t types.Type) (lo, hi int64) {
	switch t.Kind {
	case types.TinyInt:
		return math.MinInt8, math.MaxInt8
	case types.Int2:
		return math.MinInt16, math.MaxInt16
	case types.Int4:
		return math.MinInt32, math.MaxInt32
	}
	return math.MinInt64, math.MaxInt64
}

func overflow(t types.Type, a int64, op string, b int64) error {
	return &Error{Overflow: true, Reason: fmt.Sprintf("%s overflow: %d %s %d", types.PaimonString(t.WithNotNull(false)), a, op, b)}
}

// decimals are the rules of a DECIMAL(p, s) column: Java's Decimal keeps up to 18
// digits in an int64, which sums may fill beyond p, and everything else within p.
// The column's cells are counted in units of its scale.
type decimals struct {
	compact bool
	limit   decimal128.Num // 10^p
	big     *big.Int       // the same
}

func newDecimals(t types.Type) decimals {
	p := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Prec)), nil)
	return decimals{compact: t.Prec <= 18, limit: decimal128.FromBigInt(p), big: p}
}

// fits reports whether |x| < 10^p.
func (d *decimals) fits(x decimal128.Num) bool {
	if x.Sign() < 0 {
		x = x.Negate()
		if x.Sign() < 0 {
			return false
		}
	}
	return x.Less(d.limit)
}

func isCompact(x decimal128.Num) bool {
	return x.HighBits() == int64(x.LowBits())>>63
}

// sum returns a+b; ok is false where it is NULL.
func (d *decimals) sum(a, b decimal128.Num) (s decimal128.Num, ok bool) {
	s = a.Add(b)
	if d.compact {
		if isCompact(s) {
			return s, true
		}
		return s, false // 19 digits are more than p
	}
	// Two cells are below 10^38 each, and their sum below 2^127.
	return s, d.fits(s)
}

// ratio returns num/den rounded half up (away from zero); ok is false where it
// has more than p digits.
func (d *decimals) ratio(num, den *big.Int) (decimal128.Num, bool) {
	q, r := new(big.Int).QuoRem(num, den, new(big.Int))
	if r.Abs(r).Lsh(r, 1).CmpAbs(den) >= 0 {
		if num.Sign()*den.Sign() < 0 {
			q.Sub(q, big.NewInt(1))
		} else {
			q.Add(q, big.NewInt(1))
		}
	}
	if q.CmpAbs(d.big) >= 0 {
		return decimal128.Num{}, false
	}
	return decimal128.FromBigInt(q), true
}

// numberFold chooses the loop for the type of the column.
type numberFold struct {
	t      types.Type
	lo, hi int64
	dec    decimals
	scale  *big.Int // 10^s
	f      *numberLoops
}

type numberLoops struct {
	i16 func(*numberFold, *Input) (arrow.Array, error)
	i32 func(*numberFold, *Input) (arrow.Array, error)
	i64 func(*numberFold, *Input) (arrow.Array, error)
	f32 func(*numberFold, *Input) (arrow.Array, error)
	f64 func(*numberFold, *Input) (arrow.Array, error)
	dec func(*numberFold, *Input) (arrow.Array, error)
}

func newNumberFold(s Spec, loops *numberLoops) (Aggregate, error) {
	t := s.Column.Type
	f := &numberFold{t: t, f: loops}
	f.lo, f.hi = bounds(t)
	if t.Kind == types.Numeric {
		if t.Prec == 0 {
			return nil, &fileio.UnsupportedError{Feature: "aggregating a decimal without a precision"}
		}
		f.dec = newDecimals(t)
		f.scale = new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(t.Scale)), nil)
	}
	return f, nil
}

func (f *numberFold) Fold(in *Input) (arrow.Array, error) {
	switch f.t.Kind {
	case types.TinyInt, types.Int2:
		return f.f.i16(f, in)
	case types.Int4:
		return f.f.i32(f, in)
	case types.Int8:
		return f.f.i64(f, in)
	case types.Float4:
		return f.f.f32(f, in)
	case types.Float8:
		return f.f.f64(f, in)
	}
	return f.f.dec(f, in)
}
