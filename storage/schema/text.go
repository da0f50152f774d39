package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// ToText writes a value as Paimon's cast to STRING does: what schema evolution
// to a string type yields, and what system tables show.
func ToText(t types.Type, d types.Datum) (string, error) {
	switch v := d.(type) {
	case nil:
		return "null", nil
	case bool:
		return strconv.FormatBool(v), nil
	case string:
		return v, nil
	case []byte:
		return string(v), nil
	case *numeric.Dec:
		return DecimalText(v), nil
	case float64:
		if t.Kind == types.Float4 {
			return JavaFloat(v, 32), nil
		}
		return JavaFloat(v, 64), nil
	case int64:
		switch t.Kind {
		case types.Date:
			return time.Unix(v*86400, 0).UTC().Format("2006-01-02"), nil
		case types.Time:
			return timeText(t, v), nil
		case types.Timestamp, types.TimestampTZ:
			return timestampText(t, v), nil
		}
		return strconv.FormatInt(v, 10), nil
	case []types.Datum:
		return listText(t, v)
	case []types.KV:
		parts := make([]string, len(v))
		for i, kv := range v {
			k, err := ToText(*t.Key, kv.K)
			if err != nil {
				return "", err
			}
			e, err := ToText(*t.Elem, kv.V)
			if err != nil {
				return "", err
			}
			parts[i] = k + " -> " + e
		}
		return "{" + strings.Join(parts, ", ") + "}", nil
	}
	return "", fmt.Errorf("value of type %T has no text", d)
}

func listText(t types.Type, v []types.Datum) (string, error) {
	parts := make([]string, len(v))
	for i, e := range v {
		var et types.Type
		switch {
		case t.Kind == types.Row && i < len(t.Fields):
			et = t.Fields[i].Type
		case t.Elem != nil:
			et = *t.Elem
		}
		var err error
		if parts[i], err = ToText(et, e); err != nil {
			return "", err
		}
	}
	s := strings.Join(parts, ", ")
	if t.Kind == types.Row {
		return "{" + s + "}", nil
	}
	return "[" + s + "]", nil
}

// DecimalText is BigDecimal.toPlainString: all digits of the scale, no exponent.
func DecimalText(d *numeric.Dec) string {
	s := d.Coef.String()
	if d.Scale <= 0 {
		return s
	}
	neg := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	if n := int(d.Scale) + 1 - len(s); n > 0 {
		s = strings.Repeat("0", n) + s
	}
	s = s[:len(s)-int(d.Scale)] + "." + s[len(s)-int(d.Scale):]
	if neg {
		s = "-" + s
	}
	return s
}

// JavaFloat is Double.toString or Float.toString: plain from 1e-3 to below 1e7,
// otherwise with an exponent, and always with a digit behind the point.
func JavaFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	if a := math.Abs(f); a == 0 || a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, bits)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	mant, exp, _ := strings.Cut(strconv.FormatFloat(f, 'e', -1, bits), "e")
	if !strings.Contains(mant, ".") {
		mant += ".0"
	}
	n, _ := strconv.Atoi(exp) // FormatFloat wrote it
	return mant + "E" + strconv.Itoa(n)
}

// timeText prints HH:mm:ss and, when the type has a precision, the fraction
// without trailing zeros but with at least one digit.
func timeText(t types.Type, us int64) string {
	s := time.Unix(0, us*1000).UTC().Format("15:04:05")
	if t.Prec == 0 {
		return s
	}
	frac := fmt.Sprintf("%03d", us/1000%1000)
	frac = strings.TrimRight(frac[:min(int(t.Prec), 3)], "0")
	if frac == "" {
		frac = "0"
	}
	return s + "." + frac
}

// timestampText prints yyyy-MM-dd HH:mm:ss and as many digits as the precision.
func timestampText(t types.Type, v int64) string {
	var at time.Time
	if t.IsNanos() {
		at = time.Unix(floorDiv(v, 1e9), mod(v, 1e9)).UTC()
	} else {
		at = time.UnixMicro(v).UTC()
	}
	s := at.Format("2006-01-02 15:04:05")
	if t.Prec > 0 {
		s += "." + fmt.Sprintf("%09d", at.Nanosecond())[:min(int(t.Prec), 9)]
	}
	return s
}
