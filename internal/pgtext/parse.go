package pgtext

import (
	"encoding/hex"
	"errors"
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// Parse is the input function of type t: it turns text into a Datum, applying
// t's modifiers as an assignment does (22001 when a string is too long, rounding
// of numbers and times). Errors are *pgerr.Error with PostgreSQL's code and
// words. The reg* kinds take numbers only: names need a catalog, see
// sql/function.
func Parse(t types.Type, s string, st *Style) (types.Datum, error) {
	st = orDefault(st)
	switch t.Kind {
	case types.Bool:
		v, err := ParseBool(s)
		return v, err
	case types.TinyInt:
		return parseInt(s, 8, "smallint")
	case types.Int2:
		return parseInt(s, 16, "smallint")
	case types.Int4:
		return parseInt(s, 32, "integer")
	case types.Int8:
		return parseInt(s, 64, "bigint")
	case types.Float4:
		return parseFloat(s, 32, "real")
	case types.Float8:
		return parseFloat(s, 64, "double precision")
	case types.Numeric:
		d, err := ParseNumeric(s)
		if err != nil {
			return nil, err
		}
		d, err = FitNumeric(d, t)
		if err != nil {
			return nil, err
		}
		return d, nil
	case types.Varchar:
		if n := int(t.Mod) - 4; n > 0 && len(s) > n {
			v, ok := CutText(s, n)
			if !ok {
				return nil, pgerr.New(pgerr.StringDataRightTruncation, "value too long for type character varying(%d)", n)
			}
			return v, nil
		}
		return s, nil
	case types.BpChar:
		if n := int(t.Mod) - 4; n > 0 {
			v, ok := CutText(s, n)
			if !ok {
				return nil, pgerr.New(pgerr.StringDataRightTruncation, "value too long for type character(%d)", n)
			}
			return PadText(v, n), nil
		}
		return s, nil
	case types.Name:
		return TruncateName(s), nil
	case types.Char:
		if s == "" {
			return "", nil
		}
		if s[0] >= 0x80 {
			_, n := utf8.DecodeRuneInString(s)
			return s[:n], nil
		}
		return s[:1], nil
	case types.Bytea:
		b, err := ParseBytea(s)
		if err != nil {
			return nil, err
		}
		return b, nil
	case types.Date:
		v, err := ParseDate(s, st)
		if err != nil {
			return nil, err
		}
		return v, nil
	case types.Time:
		v, err := ParseTime(s, st)
		if err != nil {
			return nil, err
		}
		return RoundMicros(v, timePrec(t)), nil
	case types.TimeTZ:
		v, west, err := ParseTimeTZ(s, st)
		if err != nil {
			return nil, err
		}
		return EncodeTimeTZ(RoundMicros(v, timePrec(t)), west), nil
	case types.Timestamp, types.TimestampTZ:
		v, err := ParseTimestamp(s, t.Kind == types.TimestampTZ, t.IsNanos(), st)
		if err != nil {
			return nil, err
		}
		if t.IsNanos() {
			return RoundNanos(v, timePrec(t)), nil
		}
		return RoundMicros(v, timePrec(t)), nil
	case types.Interval:
		rng, prec := IntervalMod(t)
		v, err := ParseInterval(s, rng, st)
		if err != nil {
			return nil, err
		}
		return TrimInterval(v, rng, prec).Bytes(), nil
	case types.UUID:
		b, err := ParseUUID(s)
		if err != nil {
			return nil, err
		}
		return b, nil
	case types.JSON:
		if err := CheckJSON(s); err != nil {
			return nil, err
		}
		return s, nil
	case types.JSONB:
		v, err := NormalizeJSONB(s)
		if err != nil {
			return nil, err
		}
		return v, nil
	case types.OID, types.XID:
		return parseOID(s, t.Info().SQLName)
	case types.RegClass, types.RegProc, types.RegType, types.RegNamespace, types.RegRole, types.RegOper:
		if s == "-" {
			return int64(0), nil
		}
		if v, err := parseOID(s, "oid"); err == nil {
			return v, nil
		}
		return nil, pgerr.New(pgerr.FeatureNotSupported, "names of type %s cannot be read here", t.Info().SQLName)
	case types.Array:
		return parseArrayDatum(t, s, st)
	case types.Int2Vector, types.OIDVector:
		et := types.Of(vectorElem(t.Kind))
		out := []types.Datum{}
		for _, f := range strings.Fields(s) {
			v, err := Parse(et, f, st)
			if err != nil {
				return nil, err
			}
			out = append(out, v)
		}
		return out, nil
	case types.Record:
		return parseRecord(t, s, st)
	case types.Row:
		if b := strings.TrimLeft(s, " \t\r\n"); b != "" && b[0] == '(' {
			return parseRecord(t, s, st)
		}
		return FromJSON(t, s, st)
	case types.Map, types.Variant:
		return FromJSON(t, s, st)
	case types.Any, types.AnyElement, types.AnyArray, types.AnyNonArray, types.AnyCompatible, types.AnyCompatibleArray, types.Internal:
		return nil, pgerr.New(pgerr.FeatureNotSupported, "cannot accept a value of type %s", t.Info().Name)
	}
	return s, nil
}

// IntervalMod returns the range and precision of an interval type.
func IntervalMod(t types.Type) (rng, prec int) {
	if t.Mod == 0 {
		return RangeFull, 0xffff
	}
	return int(t.Mod>>16) & RangeFull, int(t.Mod & 0xffff)
}

// timePrec is the number of digits that a time type keeps.
func timePrec(t types.Type) int {
	if t.Mod > 0 {
		return int(t.Mod) - 1
	}
	if t.IsNanos() {
		return int(t.Prec)
	}
	return 6
}

// RoundNanos rounds half away from zero to prec digits of a second.
func RoundNanos(ns int64, prec int) int64 {
	if prec >= 9 || ns == TimestampInfinity || ns == TimestampNegInfinity {
		return ns
	}
	p := int64(1)
	for i := prec; i < 9; i++ {
		p *= 10
	}
	if ns >= 0 {
		return (ns + p/2) / p * p
	}
	return -((-ns + p/2) / p * p)
}

func badSyntax(typ, s string) error {
	return pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type %s: \"%s\"", typ, s)
}

func trim(s string) string {
	for s != "" && isSpace(s[0]) {
		s = s[1:]
	}
	for s != "" && isSpace(s[len(s)-1]) {
		s = s[:len(s)-1]
	}
	return s
}

// ParseBool reads a boolean: any prefix of true, false, yes, no, on, off (not
// just o), 1 and 0, in any case, with blanks around.
func ParseBool(s string) (bool, error) {
	v := strings.ToLower(trim(s))
	if v != "" {
		switch {
		case strings.HasPrefix("true", v), strings.HasPrefix("yes", v), v == "on", v == "1":
			return true, nil
		case strings.HasPrefix("false", v), strings.HasPrefix("no", v), v == "of", v == "off", v == "0":
			return false, nil
		}
	}
	return false, badSyntax("boolean", s)
}

// QuickInt reads a plain decimal integer of up to 18 digits; ok is false for
// everything else, which Parse decides on.
func QuickInt(s []byte) (v int64, ok bool) {
	neg := false
	if len(s) > 0 && s[0] == '-' {
		neg, s = true, s[1:]
	}
	if len(s) == 0 || len(s) > 18 {
		return 0, false
	}
	for _, c := range s {
		if c < '0' || c > '9' {
			return 0, false
		}
		v = v*10 + int64(c-'0')
	}
	if neg {
		v = -v
	}
	return v, true
}

func parseInt(s string, bits int, typ string) (types.Datum, error) {
	b := trim(s)
	digits := strings.TrimLeft(b, "+-")
	if len(b)-len(digits) > 1 || digits == "" {
		return nil, badSyntax(typ, s)
	}
	v, err := strconv.ParseInt(b, 10, bits)
	if err == nil {
		return v, nil
	}
	if errors.Is(err, strconv.ErrRange) {
		return nil, pgerr.New(pgerr.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", s, typ)
	}
	// PostgreSQL notices the overflow before the junk behind it.
	n := 0
	for n < len(digits) && isDigit(digits[n]) {
		n++
	}
	if n > 0 {
		if _, err := strconv.ParseInt(b[:len(b)-len(digits)+n], 10, bits); err != nil {
			return nil, pgerr.New(pgerr.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", s, typ)
		}
	}
	return nil, badSyntax(typ, s)
}

func parseOID(s, typ string) (types.Datum, error) {
	b := trim(s)
	v, err := strconv.ParseInt(b, 10, 64)
	if errors.Is(err, strconv.ErrRange) || err == nil && (v > math.MaxUint32 || v < math.MinInt32) {
		return nil, pgerr.New(pgerr.NumericValueOutOfRange, "value \"%s\" is out of range for type %s", s, typ)
	}
	if err != nil {
		return nil, badSyntax(typ, s)
	}
	return int64(uint32(v)), nil
}

func parseFloat(s string, bits int, typ string) (types.Datum, error) {
	b := trim(s)
	switch strings.ToLower(strings.TrimLeft(b, "+-")) {
	case "nan":
		if len(b) <= 4 {
			return math.NaN(), nil
		}
		return nil, badSyntax(typ, s)
	case "inf", "infinity":
	default:
		if h := strings.ToLower(strings.TrimLeft(b, "+-")); strings.HasPrefix(h, "0x") {
			// C's strtod reads hexadecimal floats; there the exponent may be missing.
			if strings.IndexByte(h, 'p') < 0 {
				b += "p0"
			}
			f, err := strconv.ParseFloat(b, bits)
			if err != nil || strings.IndexByte(b, '_') >= 0 {
				return nil, badSyntax(typ, s)
			}
			return f, nil
		}
		for _, c := range []byte(b) {
			if !isDigit(c) && c != '.' && c != '+' && c != '-' && c|0x20 != 'e' {
				return nil, badSyntax(typ, s)
			}
		}
	}
	f, err := strconv.ParseFloat(b, bits)
	if errors.Is(err, strconv.ErrRange) || err == nil && f == 0 && hasNonZeroMantissa(b) {
		return nil, pgerr.New(pgerr.NumericValueOutOfRange, "\"%s\" is out of range for type %s", b, typ)
	}
	if err != nil {
		return nil, badSyntax(typ, s)
	}
	return f, nil
}

func hasNonZeroMantissa(s string) bool {
	for _, c := range []byte(s) {
		if c|0x20 == 'e' {
			return false
		}
		if c >= '1' && c <= '9' {
			return true
		}
	}
	return false
}

// ParseNumeric reads a numeric of any precision.
func ParseNumeric(s string) (*numeric.Dec, error) {
	d, err := numeric.Parse(s)
	if errors.Is(err, numeric.ErrRange) {
		return nil, pgerr.New(pgerr.NumericValueOutOfRange, "value overflows numeric format")
	}
	if err != nil {
		return nil, badSyntax("numeric", s)
	}
	return d, nil
}

// NumericMod returns the precision and scale of a numeric type; ok is false
// when it has none. The scale may be negative.
func NumericMod(t types.Type) (p, s int, ok bool) {
	if t.Mod >= 4 {
		m := int(t.Mod) - 4
		return m >> 16 & 0xffff, (m&0x7ff ^ 1024) - 1024, true
	}
	return 0, 0, false
}

// FitNumeric rounds d to the typmod of t; too many digits are 22003.
func FitNumeric(d *numeric.Dec, t types.Type) (*numeric.Dec, error) {
	p, s, ok := NumericMod(t)
	if !ok || d.Form == numeric.NaN {
		return d, nil
	}
	if d.Form != numeric.Finite {
		return nil, pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
			WithDetail("A field with precision %d, scale %d cannot hold an infinite value.", p, s)
	}
	r := d.Round(int32(s))
	if r.Coef.Sign() != 0 && r.Digits()-int(r.Scale) > p-s {
		return nil, NumericOverflow(p, s)
	}
	return r, nil
}

// NumericOverflow is the error for too many digits before the point.
func NumericOverflow(p, s int) error {
	limit := "1"
	if p != s {
		limit = "10^" + strconv.Itoa(p-s)
	}
	return pgerr.New(pgerr.NumericValueOutOfRange, "numeric field overflow").
		WithDetail("A field with precision %d, scale %d must round to an absolute value less than %s.", p, s, limit)
}

// CutText cuts s to n characters. ok is false when something other than blanks
// would be lost.
func CutText(s string, n int) (string, bool) {
	if len(s) <= n {
		return s, true
	}
	i := 0
	for k := 0; k < n && i < len(s); k++ {
		_, w := utf8.DecodeRuneInString(s[i:])
		i += w
	}
	for _, c := range []byte(s[i:]) {
		if c != ' ' {
			return s[:i], false
		}
	}
	return s[:i], true
}

// PadText pads s with blanks to n characters.
func PadText(s string, n int) string {
	if len(s) >= n {
		if k := utf8.RuneCountInString(s); k >= n {
			return s
		}
	}
	return s + strings.Repeat(" ", max(0, n-utf8.RuneCountInString(s)))
}

// TruncateName cuts an identifier to 63 bytes, at a character.
func TruncateName(s string) string {
	if len(s) <= 63 {
		return s
	}
	i := 63
	for i > 0 && !utf8.RuneStart(s[i]) {
		i--
	}
	return s[:i]
}

// ParseBytea reads hex (\x...) and escape forms.
func ParseBytea(s string) ([]byte, error) {
	if strings.HasPrefix(s, "\\x") {
		return ParseHex(s[2:])
	}
	out := make([]byte, 0, len(s))
	for i := 0; i < len(s); i++ {
		if s[i] != '\\' {
			out = append(out, s[i])
			continue
		}
		if i+1 < len(s) && s[i+1] == '\\' {
			out = append(out, '\\')
			i++
			continue
		}
		if i+3 < len(s) && s[i+1] >= '0' && s[i+1] <= '3' && s[i+2] >= '0' && s[i+2] <= '7' && s[i+3] >= '0' && s[i+3] <= '7' {
			out = append(out, (s[i+1]-'0')<<6|(s[i+2]-'0')<<3|(s[i+3]-'0'))
			i += 3
			continue
		}
		return nil, pgerr.New(pgerr.InvalidTextRepresentation, "invalid input syntax for type bytea")
	}
	return out, nil
}

// ParseHex reads hexadecimal digits, blanks between pairs allowed.
func ParseHex(s string) ([]byte, error) {
	if len(s)%2 == 0 {
		if b, err := hex.DecodeString(s); err == nil {
			return b, nil
		}
	}
	out := make([]byte, 0, len(s)/2)
	for i := 0; i < len(s); {
		if c := s[i]; c == ' ' || c == '\n' || c == '\t' || c == '\r' {
			i++
			continue
		}
		h, err := hexDigit(s[i:])
		if err != nil {
			return nil, err
		}
		i++
		if i >= len(s) {
			return nil, pgerr.New(pgerr.InvalidParameterValue, "invalid hexadecimal data: odd number of digits")
		}
		l, err := hexDigit(s[i:])
		if err != nil {
			return nil, err
		}
		i++
		out = append(out, byte(h<<4|l))
	}
	return out, nil
}

func hexDigit(s string) (int, error) {
	if v := unhex(s[0]); v >= 0 {
		return v, nil
	}
	_, n := utf8.DecodeRuneInString(s)
	return 0, pgerr.New(pgerr.InvalidParameterValue, "invalid hexadecimal digit: \"%s\"", s[:n])
}

// ParseUUID reads the forms PostgreSQL takes: 32 digits, hyphens allowed behind
// each four, braces around.
func ParseUUID(s string) ([]byte, error) {
	b := s
	brace := b != "" && b[0] == '{'
	if brace {
		b = b[1:]
	}
	out := make([]byte, 16)
	for i := 0; i < 16; i++ {
		if len(b) < 2 {
			return nil, badSyntax("uuid", s)
		}
		h, l := unhex(b[0]), unhex(b[1])
		if h < 0 || l < 0 {
			return nil, badSyntax("uuid", s)
		}
		out[i] = byte(h<<4 | l)
		b = b[2:]
		if b != "" && b[0] == '-' && i%2 == 1 && i < 15 {
			b = b[1:]
		}
	}
	if brace {
		if b == "" || b[0] != '}' {
			return nil, badSyntax("uuid", s)
		}
		b = b[1:]
	}
	if b != "" {
		return nil, badSyntax("uuid", s)
	}
	return out, nil
}
