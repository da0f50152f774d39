package engine

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/charset"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/sql/ast"
)

func unknownSetting(name string) *pgerr.Error {
	return pgerr.New(pgerr.UndefinedObject, "unrecognized configuration parameter %q", name)
}

func invalidSetting(name, value string) *pgerr.Error {
	return pgerr.New(pgerr.InvalidParameterValue, "invalid value for parameter %q: %q", name, value)
}

// normalise checks a value and returns it in the form that SHOW prints.
func (s *Setting) normalise(v string) (string, error) { return s.normaliseAs(s.Name, v) }

// normaliseAs is normalise, with the name that errors give the setting: PostgreSQL
// takes that of the statement.
func (s *Setting) normaliseAs(name, v string) (string, error) {
	switch s.Kind {
	case KindBool:
		b, ok := parseBool(v)
		if !ok {
			return "", pgerr.New(pgerr.InvalidParameterValue, "parameter %q requires a Boolean value", name)
		}
		v = "off"
		if b {
			v = "on"
		}
	case KindInt:
		n, err := s.parseInt(name, v)
		if err != nil {
			return "", err
		}
		v = s.format(n)
	case KindReal:
		f, err := s.parseNumber(name, v)
		if err != nil {
			return "", err
		}
		if s.MinReal != s.MaxReal && (f < s.MinReal || f > s.MaxReal) {
			return "", s.outside(name, f, shortFloat(s.MinReal), shortFloat(s.MaxReal))
		}
		v = s.formatReal(f)
	case KindEnum:
		found := false
		for _, list := range [][]string{s.Enum, s.Hidden} {
			for _, e := range list {
				word, kept, ok := strings.Cut(e, "=")
				if !ok {
					kept = word
				}
				if !found && strings.EqualFold(word, v) {
					v, found = kept, true
				}
			}
		}
		if !found {
			if b, ok := parseBool(v); ok && !strings.EqualFold(v, "0") {
				for _, e := range s.Enum {
					if e == "on" && b || e == "off" && !b {
						return e, nil
					}
				}
			}
			return "", invalidSetting(name, v).WithHint("Available values: %s.", strings.Join(s.Enum, ", "))
		}
	}
	if s.check != nil {
		w, err := s.check(v)
		if err != nil {
			var pe *pgerr.Error
			if asPG(err, &pe) {
				return "", pe
			}
			return "", invalidSetting(s.Name, v).WithDetail("%s.", upperFirst(err.Error()))
		}
		v = w
	}
	return v, nil
}

// parseBool takes what PostgreSQL's parse_bool takes: unique prefixes of true,
// false, yes, no, on and off, and 1 and 0.
func parseBool(v string) (value, ok bool) {
	v = strings.ToLower(v)
	if v == "" {
		return false, false
	}
	switch {
	case v == "1", strings.HasPrefix("true", v), strings.HasPrefix("yes", v), v == "on":
		return true, true
	case v == "0", strings.HasPrefix("false", v), strings.HasPrefix("no", v), len(v) >= 2 && strings.HasPrefix("off", v):
		return false, true
	}
	return false, false
}

type unit struct {
	name string
	size float64 // in the smallest unit of its family
}

var (
	timeUnits = []unit{{"d", 86400e6}, {"h", 3600e6}, {"min", 60e6}, {"s", 1e6}, {"ms", 1e3}, {"us", 1}}
	memUnits  = []unit{{"TB", 1 << 40}, {"GB", 1 << 30}, {"MB", 1 << 20}, {"kB", 1 << 10}, {"B", 1}}
)

// family returns the units that may follow a number, and the size of the
// setting's own unit among them; nil when it has none.
func (s *Setting) family() ([]unit, float64) {
	switch s.Unit {
	case "ms":
		return timeUnits, 1e3
	case "s":
		return timeUnits, 1e6
	case "min":
		return timeUnits, 60e6
	case "MB":
		return memUnits, 1 << 20
	case "B":
		return memUnits, 1
	case "kB":
		return memUnits, 1 << 10
	case "8kB":
		return memUnits, 8 << 10
	}
	return nil, 1
}

// parseInt reads an integer with an optional unit; fractions are rounded in
// the setting's own unit, as in PostgreSQL.
func (s *Setting) parseInt(name, text string) (int64, error) {
	f, err := s.parseNumber(name, text)
	if err != nil {
		return 0, err
	}
	f = math.RoundToEven(f)
	if s.Max <= maxInt && (f > maxInt || f < -maxInt-1) {
		return 0, invalidSetting(name, text).WithHint("Value exceeds integer range.")
	}
	if f < float64(s.Min) || f > float64(s.Max) || math.IsNaN(f) {
		return 0, s.outside(name, f, strconv.FormatInt(s.Min, 10), strconv.FormatInt(s.Max, 10))
	}
	return int64(f), nil
}

// outside is the error of a number beyond the bounds.
func (s *Setting) outside(name string, f float64, lo, hi string) error {
	u := s.Unit
	if u != "" {
		u = " " + u
	}
	text := strconv.FormatFloat(f, 'f', -1, 64)
	if s.Kind == KindReal {
		text = shortFloat(f)
	}
	return pgerr.New(pgerr.InvalidParameterValue, "%s%s is outside the valid range for parameter %q (%s .. %s)", text, u, name, lo, hi)
}

// shortFloat is C's %g.
func shortFloat(f float64) string { return strconv.FormatFloat(f, 'g', 6, 64) }

// formatReal prints f with the largest unit that divides it.
func (s *Setting) formatReal(f float64) string {
	units, own := s.family()
	if units == nil || f <= 0 {
		return shortFloat(f)
	}
	total := f * own
	for i, u := range units {
		q := total / u.size
		if i == len(units)-1 || q >= 1 && math.Abs(math.Round(q)-q) <= 1e-8*q {
			return shortFloat(q) + u.name
		}
	}
	return shortFloat(f)
}

// parseNumber reads a number with an optional unit, in the setting's own.
func (s *Setting) parseNumber(name, text string) (float64, error) {
	v := strings.TrimSpace(text)
	i := 0
	for i < len(v) && (v[i] >= '0' && v[i] <= '9' || v[i] == '.' || (v[i] == '-' || v[i] == '+') && i == 0 ||
		(v[i] == 'x' || v[i] == 'X') && i > 0 && v[i-1] == '0') {
		if v[i] == 'x' || v[i] == 'X' {
			i++
			for i < len(v) && strings.IndexByte("0123456789abcdefABCDEF", v[i]) >= 0 {
				i++
			}
			break
		}
		i++
	}
	if i < len(v) && (v[i] == 'e' || v[i] == 'E') {
		j := i + 1
		if j < len(v) && (v[j] == '-' || v[j] == '+') {
			j++
		}
		if j < len(v) && v[j] >= '0' && v[j] <= '9' {
			for j < len(v) && v[j] >= '0' && v[j] <= '9' {
				j++
			}
			i = j
		}
	}
	num, suffix := v[:i], strings.TrimSpace(v[i:])
	var f float64
	if n, err := strconv.ParseInt(num, 0, 64); err == nil {
		f = float64(n)
	} else if g, err := strconv.ParseFloat(num, 64); err == nil {
		f = g
	} else {
		return 0, invalidSetting(name, text)
	}
	if suffix != "" {
		units, own := s.family()
		found := false
		for _, u := range units {
			if u.name == suffix {
				f = f * u.size / own
				found = true
			}
		}
		if !found {
			e := invalidSetting(name, text)
			switch {
			case units == nil:
			case units[0].name == "d":
				e.WithHint(`Valid units for this parameter are "us", "ms", "s", "min", "h", and "d".`)
			default:
				e.WithHint(`Valid units for this parameter are "B", "kB", "MB", "GB", and "TB".`)
			}
			return 0, e
		}
	}
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return 0, invalidSetting(name, text)
	}
	return f, nil
}

// format prints n with the largest unit that divides it, as SHOW does.
func (s *Setting) format(n int64) string {
	units, own := s.family()
	if units == nil || n <= 0 {
		return strconv.FormatInt(n, 10)
	}
	total := float64(n) * own
	for _, u := range units {
		if q := total / u.size; q >= 1 && q == math.Trunc(q) {
			return strconv.FormatInt(int64(q), 10) + u.name
		}
	}
	return strconv.FormatInt(n, 10)
}

// number returns the value of an integer setting in its own unit.
func (s *Setting) number(v string) int64 {
	n, err := s.parseInt(s.Name, v)
	if err != nil {
		return 0
	}
	return n
}

// checkEncoding returns PostgreSQL's name of a client's encoding; UNICODE stays what
// it is, as there, for old versions of pgjdbc.
func checkEncoding(v string) (string, error) {
	name, ok := charset.Canonical(v)
	switch {
	case !ok:
		return "", invalidSetting("client_encoding", v)
	case !charset.Known(name):
		return "", pgerr.New(pgerr.FeatureNotSupported, "client_encoding %q is not supported", name)
	case v == "UNICODE":
		return v, nil
	}
	return name, nil
}

// checkDateStyle lays the words of v over the style cur, both "STYLE, ORDER".
func checkDateStyle(cur, v string) (string, error) {
	style, order := "ISO", "MDY"
	if a, b, ok := strings.Cut(cur, ","); ok {
		style, order = strings.TrimSpace(a), strings.TrimSpace(b)
	}
	haveStyle, haveOrder := "", ""
	set := func(p *string, v string) bool {
		if *p != "" && *p != v {
			return false
		}
		*p = v
		return true
	}
	for _, w := range strings.Split(v, ",") {
		ok := true
		switch w := strings.ToLower(strings.TrimSpace(w)); {
		case w == "iso":
			ok = set(&haveStyle, "ISO")
		case w == "sql":
			ok = set(&haveStyle, "SQL")
		case strings.HasPrefix(w, "postgres"):
			ok = set(&haveStyle, "Postgres")
		case w == "german":
			ok = set(&haveStyle, "German")
			if haveOrder == "" {
				order = "DMY"
			}
		case w == "ymd":
			ok = set(&haveOrder, "YMD")
		case w == "dmy" || strings.HasPrefix(w, "euro"):
			ok = set(&haveOrder, "DMY")
		case w == "mdy" || strings.HasPrefix(w, "us") || strings.HasPrefix(w, "noneuro"):
			ok = set(&haveOrder, "MDY")
		case w == "default":
			haveStyle, haveOrder = "ISO", "MDY"
		default:
			e := invalidSetting("DateStyle", v)
			e.WithDetail("Unrecognized key word: %q.", w)
			return "", e
		}
		if !ok {
			return "", invalidSetting("DateStyle", v).WithDetail(`Conflicting "datestyle" specifications.`)
		}
	}
	if haveStyle != "" {
		style = haveStyle
	}
	if haveOrder != "" {
		order = haveOrder
	}
	return style + ", " + order, nil
}

// checkTimeZone accepts IANA names, UTC offsets and POSIX specifications, and
// returns the name as SHOW prints it.
func checkTimeZone(v string) (string, error) {
	name, _, err := zone(v)
	if err != nil {
		return "", invalidSetting("TimeZone", v)
	}
	return name, nil
}

// zone finds a time zone. A bare number is hours east of Greenwich, shown the
// POSIX way: <+02>-02.
func zone(v string) (string, *time.Location, error) {
	v = strings.TrimSpace(v)
	if f, err := strconv.ParseFloat(v, 64); err == nil && math.Abs(f) <= 168 {
		return posixName(int(math.Round(f * 3600)))
	}
	switch strings.ToLower(v) {
	case "", "local", "posixrules":
		return "", nil, errZone
	case "utc", "z", "zulu", "universal", "uct":
		return "UTC", time.UTC, nil
	case "gmt":
		return "GMT", time.FixedZone("GMT", 0), nil
	case "default":
		return "UTC", time.UTC, nil
	}
	if loc, err := time.LoadLocation(v); err == nil && !strings.Contains(v, "..") {
		return loc.String(), loc, nil
	}
	if n, ok := zoneByFold(v); ok {
		if loc, err := time.LoadLocation(n); err == nil {
			return n, loc, nil
		}
	}
	if name, sec, ok := posixZone(v); ok {
		return v, time.FixedZone(name, sec), nil
	}
	return "", nil, errZone
}

var errZone = pgerr.New(pgerr.InvalidParameterValue, "time zone is not recognized")

func posixName(sec int) (string, *time.Location, error) {
	digits := func(s int) string {
		if s < 0 {
			s = -s
		}
		out := pad2(s / 3600)
		if s%3600 != 0 {
			out += ":" + pad2(s/60%60)
		}
		if s%60 != 0 {
			out += ":" + pad2(s%60)
		}
		return out
	}
	east, west := "+", "-"
	if sec < 0 {
		east, west = "-", "+"
	}
	abbr := east + digits(sec)
	return "<" + abbr + ">" + west + digits(sec), time.FixedZone(abbr, sec), nil
}

func pad2(n int) string {
	if n < 10 {
		return "0" + strconv.Itoa(n)
	}
	return strconv.Itoa(n)
}

// posixZone reads NAME+hh[:mm[:ss]] and <NAME>-hh: POSIX counts west as plus.
// Daylight rules are not read: such a text is no zone here.
func posixZone(v string) (abbr string, east int, ok bool) {
	rest := v
	if strings.HasPrefix(v, "<") {
		end := strings.IndexByte(v, '>')
		if end < 0 {
			return "", 0, false
		}
		abbr, rest = v[1:end], v[end+1:]
	} else {
		i := 0
		for i < len(v) && (v[i] >= 'A' && v[i] <= 'Z' || v[i] >= 'a' && v[i] <= 'z') {
			i++
		}
		abbr, rest = v[:i], v[i:]
	}
	if rest == "" || abbr == "" && rest[0] != '+' && rest[0] != '-' {
		return "", 0, false
	}
	sign := -1
	if rest[0] == '-' {
		sign, rest = 1, rest[1:]
	} else if rest[0] == '+' {
		rest = rest[1:]
	}
	sec, mult := 0, 3600
	for k, p := range strings.Split(rest, ":") {
		n, err := strconv.Atoi(p)
		if err != nil || n < 0 || k > 2 || k == 0 && n > 167 || k > 0 && n > 59 {
			return "", 0, false
		}
		sec += n * mult
		mult /= 60
	}
	if abbr == "" {
		abbr = v
	}
	return abbr, sign * sec, true
}

// zoneByFold finds a zone without regard to case: Area/City with each part
// capitalised, which covers what clients write.
func zoneByFold(v string) (string, bool) {
	parts := strings.Split(strings.ToLower(v), "/")
	for i, p := range parts {
		words := strings.FieldsFunc(p, func(r rune) bool { return r == '_' })
		for j, w := range words {
			if w != "of" && w != "es" {
				words[j] = upperFirst(w)
			}
		}
		parts[i] = strings.Join(words, "_")
	}
	for _, n := range []string{strings.Join(parts, "/"), strings.ToUpper(v)} {
		if _, err := time.LoadLocation(n); err == nil {
			return n, true
		}
	}
	return "", false
}

func upperFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToUpper(s[:1]) + s[1:]
}

// joinList flattens the values of SET for a list setting, as PostgreSQL does:
// each an identifier in search_path, plain text elsewhere.
func (s *Setting) joinList(values []string) string {
	out := make([]string, len(values))
	for i, v := range values {
		if s.quote {
			v = ast.QuoteIdent(v)
		}
		out[i] = v
	}
	return strings.Join(out, ", ")
}

// splitNames takes a list of identifiers apart: unquoted ones fold to lower
// case, "quoted" ones stay. ok is false when the syntax is wrong.
func splitNames(v string) (names []string, ok bool) {
	v = strings.TrimSpace(v)
	if v == "" {
		return nil, true
	}
	for {
		v = strings.TrimLeft(v, " \t\n\r")
		var name string
		if strings.HasPrefix(v, `"`) {
			v = v[1:]
			var b strings.Builder
			for {
				i := strings.IndexByte(v, '"')
				if i < 0 {
					return nil, false
				}
				b.WriteString(v[:i])
				v = v[i+1:]
				if !strings.HasPrefix(v, `"`) {
					break
				}
				b.WriteByte('"')
				v = v[1:]
			}
			name = b.String()
		} else {
			i := strings.IndexAny(v, ", \t\n\r")
			if i < 0 {
				i = len(v)
			}
			if i == 0 {
				return nil, false
			}
			name, v = strings.ToLower(v[:i]), v[i:]
		}
		names = append(names, name)
		v = strings.TrimLeft(v, " \t\n\r")
		if v == "" {
			return names, true
		}
		if v[0] != ',' {
			return nil, false
		}
		v = v[1:]
	}
}
