package function

import (
	"errors"
	"math"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// numericErr gives an error of package numeric its SQLSTATE.
func numericErr(err error) error {
	switch {
	case errors.Is(err, numeric.ErrDivZero):
		return errDivZero()
	case errors.Is(err, numeric.ErrOverflow):
		return pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
	case errors.Is(err, numeric.ErrLogZero), errors.Is(err, numeric.ErrLogNegative):
		return pgerr.New(pgerr.InvalidArgumentForLogarithm, "%s", err.Error())
	case errors.Is(err, numeric.ErrSqrtNegative), errors.Is(err, numeric.ErrPowZero), errors.Is(err, numeric.ErrPowNegative):
		return pgerr.New(pgerr.InvalidArgumentForPowerFunction, "%s", err.Error())
	}
	return err
}

func sqrtFloat(a float64) (float64, error) {
	if a < 0 {
		return 0, numericErr(numeric.ErrSqrtNegative)
	}
	return math.Sqrt(a), nil
}

func powFloat(x, y float64) (float64, error) {
	if math.IsNaN(x) {
		if y == 0 {
			return 1, nil
		}
		return x, nil
	}
	if math.IsNaN(y) {
		if x == 1 {
			return 1, nil
		}
		return y, nil
	}
	if x == 0 && y < 0 {
		return 0, numericErr(numeric.ErrPowZero)
	}
	if x < 0 && y != math.Floor(y) && !math.IsInf(y, 0) {
		return 0, numericErr(numeric.ErrPowNegative)
	}
	r := math.Pow(x, y)
	if math.IsInf(r, 0) && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return 0, errFloatOverflow()
	}
	if r == 0 && x != 0 && !math.IsInf(x, 0) && !math.IsInf(y, 0) {
		return 0, errFloatUnderflow()
	}
	return r, nil
}
