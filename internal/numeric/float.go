package numeric

import (
	"math"
	"strconv"
)

func parseFloat(s string) float64 {
	f, _ := strconv.ParseFloat(s, 64) // out of range gives an infinity
	return f
}

// FromFloat64 converts as PostgreSQL does: through 15 significant digits.
func FromFloat64(f float64) *Dec { return fromFloat(f, 15) }

// FromFloat32 converts through 6 significant digits.
func FromFloat32(f float32) *Dec { return fromFloat(float64(f), 6) }

func fromFloat(f float64, prec int) *Dec {
	switch {
	case math.IsNaN(f):
		return &Dec{Form: NaN}
	case math.IsInf(f, 1):
		return &Dec{Form: PosInf}
	case math.IsInf(f, -1):
		return &Dec{Form: NegInf}
	}
	d, err := Parse(strconv.FormatFloat(f, 'g', prec, 64))
	if err != nil {
		return new(Dec)
	}
	return d
}
