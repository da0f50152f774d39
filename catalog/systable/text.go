package systable

import (
	"fmt"
	"math"
	"math/big"
	"sort"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// javaDouble prints a float as Double.toString or Float.toString do.
func javaDouble(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	case f == 0:
		if math.Signbit(f) {
			return "-0.0"
		}
		return "0.0"
	}
	if a := math.Abs(f); a >= 1e-3 && a < 1e7 {
		s := strconv.FormatFloat(f, 'f', -1, bits)
		if !strings.Contains(s, ".") {
			s += ".0"
		}
		return s
	}
	s := strconv.FormatFloat(f, 'e', -1, bits)
	m, e, _ := strings.Cut(s, "e")
	if !strings.Contains(m, ".") {
		m += ".0"
	}
	n, _ := strconv.Atoi(e)
	return m + "E" + strconv.Itoa(n)
}

func decimalText(d *numeric.Dec) string {
	neg := d.Coef.Sign() < 0
	s := new(big.Int).Abs(&d.Coef).String()
	if d.Scale > 0 {
		for len(s) <= int(d.Scale) {
			s = "0" + s
		}
		s = s[:len(s)-int(d.Scale)] + "." + s[len(s)-int(d.Scale):]
	}
	if neg {
		s = "-" + s
	}
	return s
}

// instant splits a timestamp datum into seconds and nanoseconds.
func instant(t types.Type, v int64) time.Time {
	if t.IsNanos() {
		return time.Unix(v/1e9, v%1e9).UTC()
	}
	return time.UnixMicro(v).UTC()
}

// internalText prints a value as the toString of Java's internal object: what
// the stats columns show. A date is its day number, a time its milliseconds.
func internalText(t types.Type, d types.Datum) string {
	switch v := d.(type) {
	case nil:
		return "null"
	case bool:
		return strconv.FormatBool(v)
	case float64:
		if t.Kind == types.Float4 {
			return javaDouble(v, 32)
		}
		return javaDouble(v, 64)
	case *numeric.Dec:
		return decimalText(v)
	case string:
		return v
	case []byte:
		return string(v)
	case int64:
		switch t.Kind {
		case types.Time:
			return strconv.FormatInt(v/1000, 10)
		case types.Timestamp, types.TimestampTZ:
			return isoLocal(instant(t, v))
		}
		return strconv.FormatInt(v, 10)
	}
	return fmt.Sprint(d)
}

// isoLocal is java.time.LocalDateTime.toString: seconds are left out when zero,
// the fraction has 3, 6 or 9 digits.
func isoLocal(t time.Time) string {
	s := t.Format("2006-01-02T15:04")
	if t.Second() == 0 && t.Nanosecond() == 0 {
		return s
	}
	s += t.Format(":05")
	switch n := t.Nanosecond(); {
	case n == 0:
	case n%1e6 == 0:
		s += fmt.Sprintf(".%03d", n/1e6)
	case n%1e3 == 0:
		s += fmt.Sprintf(".%06d", n/1e3)
	default:
		s += fmt.Sprintf(".%09d", n)
	}
	return s
}

// castText prints a value as Paimon's cast to STRING does: what partition and
// key columns show.
func castText(t types.Type, d types.Datum) string {
	v, ok := d.(int64)
	if !ok {
		return internalText(t, d)
	}
	switch t.Kind {
	case types.Date:
		return time.Unix(v*86400, 0).UTC().Format("2006-01-02")
	case types.Time:
		s := time.UnixMicro(v).UTC().Format("15:04:05")
		if t.Prec == 0 {
			return s
		}
		frac := strings.TrimRight(fmt.Sprintf("%03d", v/1000%1000), "0")
		if frac == "" {
			frac = "0"
		}
		return s + "." + frac
	case types.Timestamp, types.TimestampTZ:
		x := instant(t, v)
		s := x.Format("2006-01-02 15:04:05")
		if t.Prec == 0 {
			return s
		}
		return s + "." + fmt.Sprintf("%09d", x.Nanosecond())[:t.Prec]
	}
	return internalText(t, d)
}

// rowText prints a partition: {a, b}.
func rowText(ts []types.Type, ds []types.Datum, left, right string) string {
	out := make([]string, len(ds))
	for i := range ds {
		// Bytes of a BYTES column need not be text.
		out[i] = printable(castText(ts[i], ds[i]))
	}
	return left + strings.Join(out, ", ") + right
}

// printable makes text of bytes that no client could be sent as text.
func printable(s string) string {
	return strings.ReplaceAll(strings.ToValidUTF8(s, "\uFFFD"), "\x00", "\uFFFD")
}

// mapText prints name=value pairs sorted by name: {a=1, b=2}.
func mapText(m map[string]string) string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	var b strings.Builder
	b.WriteByte('{')
	for i, k := range keys {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(k + "=" + printable(m[k]))
	}
	b.WriteByte('}')
	return b.String()
}
