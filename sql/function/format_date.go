package function

import (
	"math"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// to_char, to_date and to_timestamp: templates such as YYYY-MM-DD HH24:MI:SS. A
// template becomes a list of nodes: fields, separators, other characters.

type fmtKind uint8

const (
	fmtField fmtKind = iota
	fmtSeparator
	fmtSpace
	fmtChar
)

type fmtNode struct {
	kind   fmtKind
	key    string // the field in upper case
	text   string // as written: case decides the output's; or the character
	fill   bool   // FM: no padding
	tm     bool   // TM: names of the locale, which are not padded
	th, TH bool
	digit  bool
}

// dateKeys are the fields, longer ones before their prefixes.
var dateKeys = []string{
	"A.D.", "A.M.", "AD", "AM", "B.C.", "BC", "CC", "DAY", "DDD", "DD", "DY", "D",
	"FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "FX", "HH24", "HH12", "HH", "IDDD", "ID", "IW", "IYYY", "IYY", "IY", "I",
	"J", "MI", "MM", "MONTH", "MON", "MS", "OF", "P.M.", "PM", "Q", "RM", "SSSSS", "SSSS", "SS", "TZH", "TZM", "TZ",
	"US", "WW", "W", "Y,YYY", "YYYY", "YYY", "YY", "Y",
}

// textKeys are the fields that are not digits.
var textKeys = map[string]bool{
	"A.D.": true, "A.M.": true, "AD": true, "AM": true, "B.C.": true, "BC": true, "DAY": true, "DY": true, "FX": true,
	"MONTH": true, "MON": true, "OF": true, "P.M.": true, "PM": true, "RM": true, "TZH": true, "TZM": true, "TZ": true,
}

func isSeparatorChar(c byte) bool {
	return c > 0x20 && c < 0x7f && !isAlnumASCII(c)
}

// matchCase reports whether text has a case in which key exists: fields of
// letters know upper, lower and, for names, capitalised.
func matchKey(s string) (string, bool) {
	for _, k := range dateKeys {
		if len(s) < len(k) || !strings.EqualFold(s[:len(k)], k) {
			continue
		}
		w := s[:len(k)]
		switch {
		case w == k, w == strings.ToLower(k):
			return k, true
		case (k == "DAY" || k == "DY" || k == "MONTH" || k == "MON") && w == k[:1]+strings.ToLower(k[1:]):
			return k, true
		}
	}
	return "", false
}

func parseDateFormat(f string) []fmtNode {
	var out []fmtNode
	for i := 0; i < len(f); {
		n := fmtNode{}
		// Prefixes.
		for {
			if strings.HasPrefix(f[i:], "FM") || strings.HasPrefix(f[i:], "fm") {
				n.fill = true
				i += 2
				continue
			}
			if strings.HasPrefix(f[i:], "TM") || strings.HasPrefix(f[i:], "tm") {
				n.tm = true
				i += 2
				continue
			}
			break
		}
		if i >= len(f) {
			break
		}
		if k, ok := matchKey(f[i:]); ok {
			n.kind, n.key, n.text = fmtField, k, f[i:i+len(k)]
			n.digit = !textKeys[k]
			i += len(k)
			for {
				switch {
				case strings.HasPrefix(f[i:], "TH"):
					n.TH = true
				case strings.HasPrefix(f[i:], "th"):
					n.th = true
				case strings.HasPrefix(f[i:], "SP"):
				default:
					goto done
				}
				i += 2
			}
		done:
			out = append(out, n)
			continue
		}
		if f[i] == '"' {
			i++
			for i < len(f) && f[i] != '"' {
				if f[i] == '\\' && i+1 < len(f) {
					i++
				}
				_, w := utf8.DecodeRuneInString(f[i:])
				out = append(out, fmtNode{kind: fmtChar, text: f[i : i+w]})
				i += w
			}
			i++
			continue
		}
		if f[i] == '\\' && i+1 < len(f) && f[i+1] == '"' {
			i++
		}
		_, w := utf8.DecodeRuneInString(f[i:])
		kind := fmtChar
		if c := f[i]; w == 1 {
			if isSeparatorChar(c) {
				kind = fmtSeparator
			} else if c == ' ' || c >= 9 && c <= 13 {
				kind = fmtSpace
			}
		}
		out = append(out, fmtNode{kind: kind, text: f[i : i+w]})
		i += w
	}
	return out
}

// dateValue is what a template prints.
type dateValue struct {
	year, mon, day, yday, wday int
	hour, min, sec, fsec       int64
	interval                   bool
	days                       int64
	off                        int
	zone                       string
	hasZone                    bool
}

func dateValueOf(us int64, z *pgtext.Zone) dateValue {
	v := dateValue{}
	if z != nil {
		days, tod := pgtext.SplitTimestamp(us)
		v.off, v.zone = z.Offset(days*86400 + tod/pgtext.UsPerSecond)
		v.hasZone = true
		us += int64(v.off) * pgtext.UsPerSecond
	}
	days, tod := pgtext.SplitTimestamp(us)
	v.days = days
	v.year, v.mon, v.day = pgtext.CivilFromDays(int(days))
	v.yday = int(days) - pgtext.DaysFromCivil(v.year, 1, 1) + 1
	v.wday = pgtext.Weekday(days)
	v.setTOD(tod)
	return v
}

func (v *dateValue) setTOD(t int64) {
	v.hour = t / pgtext.UsPerHour
	t -= v.hour * pgtext.UsPerHour
	v.min = t / pgtext.UsPerMinute
	t -= v.min * pgtext.UsPerMinute
	v.sec = t / pgtext.UsPerSecond
	v.fsec = t - v.sec*pgtext.UsPerSecond
}

func intervalValue(i pgtext.Interval) dateValue {
	v := dateValue{interval: true, year: int(i.Months / 12), mon: int(i.Months % 12), day: int(i.Days)}
	v.setTOD(i.Micros)
	v.yday = int(i.Months)*30 + int(i.Days)
	v.wday = (v.day%7 + 7) % 7
	// PostgreSQL's date2j of the fields as they are.
	y, m := v.year+4799, v.mon+13
	if v.mon > 2 {
		y, m = v.year+4800, v.mon+1
	}
	v.days = int64(y*365-32167+y/4-y/100+y/400+7834*m/256+v.day) - 2440588
	return v
}

var (
	fullMonths = [13]string{"", "January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November", "December"}
	fullDays   = [7]string{"Sunday", "Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday"}
	romans     = [13]string{"", "I", "II", "III", "IV", "V", "VI", "VII", "VIII", "IX", "X", "XI", "XII"}
)

func ordinal(digits string, upper bool) string {
	s := "th"
	n := len(digits)
	if n > 0 {
		if !(n > 1 && digits[n-2] == '1') {
			switch digits[n-1] {
			case '1':
				s = "st"
			case '2':
				s = "nd"
			case '3':
				s = "rd"
			}
		}
	}
	if upper {
		return strings.ToUpper(s)
	}
	return s
}

// caseLike writes name in the case of the field as it was written.
func caseLike(name, text string) string {
	switch {
	case text == strings.ToUpper(text):
		return strings.ToUpper(name)
	case text == strings.ToLower(text):
		return strings.ToLower(name)
	}
	return name
}

func adjustYear(y int, interval bool) int {
	if !interval && y <= 0 {
		return 1 - y
	}
	return y
}

func errInterval() error {
	return pgerr.New(pgerr.InvalidDatetimeFormat, "invalid format specification for an interval value").
		WithHint("Intervals are not tied to specific calendar dates.")
}

func formatDate(dst []byte, nodes []fmtNode, v dateValue) ([]byte, error) {
	for k := range nodes {
		n := &nodes[k]
		if n.kind != fmtField {
			dst = append(dst, n.text...)
			continue
		}
		at := len(dst)
		// num prints x in width characters, the sign among them.
		num := func(x int64, width int) {
			if n.fill {
				width = 0
			}
			s := strconv.FormatInt(x, 10)
			if x < 0 {
				dst = append(dst, '-')
				s = s[1:]
				width--
			}
			for i := len(s); i < width; i++ {
				dst = append(dst, '0')
			}
			dst = append(dst, s...)
			if n.TH || n.th {
				dst = append(dst, ordinal(string(dst[at:]), n.TH)...)
			}
		}
		// wide is width, one more when the field that ref stands for is negative.
		wide := func(width int, ref int64) int {
			if ref < 0 {
				return width + 1
			}
			return width
		}
		padded := func(s string, width int) {
			dst = append(dst, s...)
			if !n.fill && !n.tm {
				for i := len(s); i < width; i++ {
					dst = append(dst, ' ')
				}
			}
		}
		switch n.key {
		case "AM", "PM", "A.M.", "P.M.":
			s := "AM"
			if h := v.hour % 24; h >= 12 {
				s = "PM"
			}
			if len(n.key) == 4 {
				s = s[:1] + ".M."
			}
			dst = append(dst, caseLike(s, n.text)...)
		case "HH", "HH12":
			h := v.hour % 12
			if h == 0 {
				h = 12
			}
			num(h, wide(2, v.hour))
		case "HH24":
			num(v.hour, wide(2, v.hour))
		case "MI":
			num(v.min, wide(2, v.min))
		case "SS":
			num(v.sec, wide(2, v.sec))
		case "FF1", "FF2", "FF3", "FF4", "FF5", "FF6", "MS", "US":
			d := 6
			switch n.key {
			case "MS":
				d = 3
			case "US":
			default:
				d = int(n.key[2] - '0')
			}
			x := v.fsec
			for i := d; i < 6; i++ {
				x /= 10
			}
			fill := n.fill
			n.fill = false
			num(x, wide(d, x))
			n.fill = fill
		case "SSSS", "SSSSS":
			num(v.hour*3600+v.min*60+v.sec, 0)
		case "TZ":
			if v.interval {
				return nil, errInterval()
			}
			if v.hasZone {
				dst = append(dst, caseLike(v.zone, n.text)...)
			}
		case "TZH":
			if v.interval {
				return nil, errInterval()
			}
			sign, o := byte('+'), v.off
			if o < 0 {
				sign, o = '-', -o
			}
			dst = append(dst, sign)
			dst = append(dst, byte('0'+o/36000), byte('0'+o/3600%10))
		case "TZM":
			if v.interval {
				return nil, errInterval()
			}
			o := int(math.Abs(float64(v.off))) / 60 % 60
			dst = append(dst, byte('0'+o/10), byte('0'+o%10))
		case "OF":
			if v.interval {
				return nil, errInterval()
			}
			sign, o := byte('+'), v.off
			if o < 0 {
				sign, o = '-', -o
			}
			dst = append(dst, sign)
			if !n.fill || o/3600 >= 10 {
				dst = append(dst, byte('0'+o/36000))
			}
			dst = append(dst, byte('0'+o/3600%10))
			if o%3600 != 0 {
				dst = append(dst, ':', byte('0'+o/60%60/10), byte('0'+o/60%10))
				if o%60 != 0 {
					dst = append(dst, ':', byte('0'+o%60/10), byte('0'+o%10))
				}
			}
		case "AD", "BC", "A.D.", "B.C.":
			if v.interval {
				return nil, errInterval()
			}
			s := "AD"
			if v.year <= 0 {
				s = "BC"
			}
			if len(n.key) == 4 {
				s = s[:1] + "." + s[1:] + "."
			}
			dst = append(dst, caseLike(s, n.text)...)
		case "MONTH", "MON":
			if v.interval && v.mon == 0 {
				continue
			}
			if v.interval {
				return nil, errInterval()
			}
			name := fullMonths[v.mon]
			if n.key == "MON" {
				dst = append(dst, caseLike(name[:3], n.text)...)
			} else {
				padded(caseLike(name, n.text), 9)
			}
		case "MM":
			num(int64(v.mon), wide(2, int64(v.mon)))
		case "DAY", "DY":
			if v.interval {
				return nil, errInterval()
			}
			name := fullDays[v.wday]
			if n.key == "DY" {
				dst = append(dst, caseLike(name[:3], n.text)...)
			} else {
				padded(caseLike(name, n.text), 9)
			}
		case "DDD":
			num(int64(v.yday), 3)
		case "IDDD":
			num(int64(isoDayOfYear(v.days)), 3)
		case "DD":
			num(int64(v.day), 2)
		case "D":
			if v.interval {
				return nil, errInterval()
			}
			num(int64(v.wday)+1, 0)
		case "ID":
			if v.interval {
				return nil, errInterval()
			}
			w := int64(v.wday)
			if w == 0 {
				w = 7
			}
			num(w, 0)
		case "WW":
			num(int64((v.yday-1)/7+1), 2)
		case "IW":
			_, w := isoWeek(v.days)
			num(int64(w), 2)
		case "Q":
			if v.mon == 0 {
				continue
			}
			num(int64((v.mon-1)/3+1), 0)
		case "CC":
			c := 0
			switch {
			case v.interval:
				c = v.year / 100
			case v.year > 0:
				c = (v.year-1)/100 + 1
			default:
				c = v.year/100 - 1
			}
			num(int64(c), wide(2, int64(c)))
		case "Y,YYY":
			y := adjustYear(v.year, v.interval)
			dst = strconv.AppendInt(dst, int64(y/1000), 10)
			dst = append(dst, ',')
			r := int(math.Abs(float64(y % 1000)))
			dst = append(dst, byte('0'+r/100), byte('0'+r/10%10), byte('0'+r%10))
			if n.TH || n.th {
				dst = append(dst, ordinal(string(dst[at:]), n.TH)...)
			}
		case "YYYY", "YYY", "YY", "Y":
			y := int64(adjustYear(v.year, v.interval))
			ref := y
			switch n.key {
			case "YYY":
				y %= 1000
			case "YY":
				y %= 100
			case "Y":
				y %= 10
			}
			num(y, wide(len(n.key), ref))
		case "IYYY", "IYY", "IY", "I":
			iy, _ := isoWeek(v.days)
			y := int64(adjustYear(iy, v.interval))
			ref := int64(adjustYear(v.year, v.interval))
			switch n.key {
			case "IYY":
				y %= 1000
			case "IY":
				y %= 100
			case "I":
				y %= 10
			}
			num(y, wide(len(n.key), ref))
		case "RM":
			m := v.mon
			if v.interval {
				switch {
				case v.mon == 0 && v.year == 0:
					continue
				case v.mon == 0 && v.year > 0:
					m = 12
				case v.mon == 0:
					m = 1
				case v.mon < 0:
					m += 13
				}
			}
			padded(caseLike(romans[m], n.text), 4)
		case "W":
			num(int64((v.day-1)/7+1), 0)
		case "J":
			num(v.days+2440588, 0)
		case "FX":
		}
	}
	return dst, nil
}

// isoDayOfYear is the day of the ISO year, from 1.
func isoDayOfYear(days int64) int {
	y, _ := isoWeek(days)
	return int(days-isoYearStart(y)) + 1
}

// isoYearStart is the Monday of the first ISO week of a year.
func isoYearStart(y int) int64 {
	d := int64(pgtext.DaysFromCivil(y, 1, 4))
	return d - (int64(pgtext.Weekday(d))+6)%7
}

// dateFields is what a template read.
type dateFields struct {
	hh, mi, ss, ssss, d, dd, ddd, mm, ms, us, year, cc, j, w, ww, yysz int
	bc, pm, clock12                                                    bool
	iso, gregorian                                                     bool
	tzsign, tzh, tzm                                                   int
}

func errFormat(detail, format string, args ...any) error {
	e := pgerr.New(pgerr.InvalidDatetimeFormat, format, args...)
	if detail != "" {
		_ = e.WithDetail("%s", detail)
	}
	return e
}

// nextIsSeparator reports whether no digit can follow field k.
func nextIsSeparator(nodes []fmtNode, k int) bool {
	if nodes[k].TH || nodes[k].th {
		return true
	}
	k++
	if k >= len(nodes) {
		return true
	}
	n := &nodes[k]
	if n.kind == fmtField {
		return !n.digit
	}
	return !(len(n.text) == 1 && n.text[0] >= '0' && n.text[0] <= '9')
}

func isBlank(c byte) bool { return c == ' ' || c >= 9 && c <= 13 }

func strtol(s string) (v, used int, overflow bool) {
	i := 0
	for i < len(s) && isBlank(s[i]) {
		i++
	}
	neg := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	from := i
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		if v <= math.MaxInt32 {
			v = v*10 + int(s[i]-'0')
		}
		i++
	}
	if i == from {
		return 0, 0, false
	}
	if neg {
		v = -v
	}
	return v, i, v > math.MaxInt32 || v < math.MinInt32
}

// scanInt reads an integer of at most n characters (or as many as there are when
// no digit can follow).
func scanInt(s string, nodes []fmtNode, k, n int) (v, used int, err error) {
	node := &nodes[k]
	skip := 0
	for skip < len(s) && isBlank(s[skip]) {
		skip++
	}
	in := s[skip:]
	over := false
	if node.fill || nextIsSeparator(nodes, k) {
		v, used, over = strtol(in)
	} else {
		c := in[:min(n, len(in))]
		const hint = "If your source string is not fixed-width, try using the \"FM\" modifier."
		if len(c) < n {
			e := pgerr.New(pgerr.InvalidDatetimeFormat, "source string too short for \"%s\" formatting field", node.text).
				WithDetail("Field requires %d characters, but only %d remain.", n, len(c)).WithHint(hint)
			return 0, 0, e
		}
		v, used, over = strtol(c)
		if used > 0 && used < n {
			return 0, 0, pgerr.New(pgerr.InvalidDatetimeFormat, "invalid value \"%s\" for \"%s\"", c, node.text).
				WithDetail("Field requires %d characters, but only %d could be parsed.", n, used).WithHint(hint)
		}
	}
	if used == 0 {
		c := in[:min(n, len(in))]
		return 0, 0, errFormat("Value must be an integer.", "invalid value \"%s\" for \"%s\"", c, node.text)
	}
	if over {
		return 0, 0, pgerr.New(pgerr.DatetimeFieldOverflow, "value for \"%s\" in source string is out of range", node.text).
			WithDetail("Value must be in the range %d to %d.", math.MinInt32, math.MaxInt32)
	}
	return v, skip + used, nil
}

func setField(dst *int, v int, n *fmtNode) error {
	if *dst != 0 && *dst != v {
		return errFormat("This value contradicts a previous setting for the same field type.", "conflicting values for \"%s\" field in formatting string", n.text)
	}
	*dst = v
	return nil
}

// scanName finds one of the names at the start of s, in any case, longest match.
func scanName(s string, names []string, n *fmtNode) (idx, used int, err error) {
	best := -1
	for i, w := range names {
		if w != "" && len(s) >= len(w) && strings.EqualFold(s[:len(w)], w) && (best < 0 || len(w) > len(names[best])) {
			best = i
		}
	}
	if best < 0 {
		word := s
		if i := strings.IndexFunc(s, func(r rune) bool { return r == ' ' || r >= 9 && r <= 13 }); i >= 0 {
			word = s[:i]
		}
		return 0, 0, errFormat("The given value did not match any of the allowed values for this field.", "invalid value \"%s\" for \"%s\"", word, n.text)
	}
	return best, len(names[best]), nil
}

func fullYear(y int) int {
	switch {
	case y < 70:
		return y + 2000
	case y < 100:
		return y + 1900
	case y < 520:
		return y + 2000
	case y < 1000:
		return y + 1000
	}
	return y
}

func scanDate(s string, nodes []fmtNode) (f dateFields, err error) {
	fx := false
	extra := 0
	for k := 0; k < len(nodes) && s != ""; k++ {
		n := &nodes[k]
		if !fx && (n.kind != fmtField || n.key != "FX") && (n.kind == fmtField || k == 0) {
			for s != "" && isBlank(s[0]) {
				s = s[1:]
				extra++
			}
		}
		if s == "" {
			break
		}
		switch n.kind {
		case fmtSpace, fmtSeparator:
			if fx {
				s = s[charLen([]byte(s)):]
				continue
			}
			extra--
			if isBlank(s[0]) || isSeparatorChar(s[0]) {
				s = s[1:]
				extra++
			}
			continue
		case fmtChar:
			if !fx && extra > 0 {
				extra--
			} else {
				s = s[charLen([]byte(s)):]
			}
			continue
		}
		mode := func(iso bool) error {
			if iso && f.gregorian || !iso && f.iso {
				return pgerr.New(pgerr.InvalidDatetimeFormat, "invalid combination of date conventions").
					WithHint("Do not mix Gregorian and ISO week date conventions in a formatting template.")
			}
			f.iso, f.gregorian = f.iso || iso, f.gregorian || !iso
			return nil
		}
		switch n.key {
		case "IYYY", "IYY", "IY", "I", "IW", "IDDD", "ID":
			err = mode(true)
		case "YYYY", "YYY", "YY", "Y", "Y,YYY", "WW", "W", "DDD", "DD", "D", "MM", "MON", "MONTH", "DAY", "DY", "RM":
			if n.key != "DAY" && n.key != "DY" {
				err = mode(false)
			}
		}
		if err != nil {
			return f, err
		}
		v, used := 0, 0
		num := func(dst *int, width int) error {
			if v, used, err = scanInt(s, nodes, k, width); err != nil {
				return err
			}
			return setField(dst, v, n)
		}
		switch n.key {
		case "FX":
			fx = true
		case "A.M.", "P.M.", "AM", "PM":
			names := []string{"a.m.", "p.m."}
			if len(n.key) == 2 {
				names = []string{"am", "pm"}
			}
			if v, used, err = scanName(s, names, n); err == nil {
				f.pm, f.clock12 = v == 1, true
			}
		case "HH", "HH12":
			err = num(&f.hh, 2)
			f.clock12 = true
		case "HH24":
			err = num(&f.hh, 2)
		case "MI":
			err = num(&f.mi, 2)
		case "SS":
			err = num(&f.ss, 2)
		case "MS":
			before := s
			if err = num(&f.ms, 3); err == nil {
				switch digitsIn(before, used) {
				case 1:
					f.ms *= 100
				case 2:
					f.ms *= 10
				}
			}
		case "US", "FF1", "FF2", "FF3", "FF4", "FF5", "FF6":
			width := 6
			if n.key != "US" {
				width = int(n.key[2] - '0')
			}
			before := s
			if err = num(&f.us, width); err == nil {
				for i := digitsIn(before, used); i < 6; i++ {
					f.us *= 10
				}
			}
		case "SSSS", "SSSSS":
			err = num(&f.ssss, len(n.key))
		case "TZ", "OF":
			return f, pgerr.New(pgerr.FeatureNotSupported, "formatting field \"%s\" is only supported in to_char", n.text)
		case "TZH":
			sign := 1
			if s[0] == '+' || s[0] == '-' || s[0] == ' ' {
				if s[0] == '-' {
					sign = -1
				}
				s = s[1:]
			} else if extra > 0 {
				sign = 1
			}
			f.tzsign = sign
			err = num(&f.tzh, 2)
		case "TZM":
			if f.tzsign == 0 {
				f.tzsign = 1
			}
			err = num(&f.tzm, 2)
		case "A.D.", "B.C.", "AD", "BC":
			names := []string{"a.d.", "b.c."}
			if len(n.key) == 2 {
				names = []string{"ad", "bc"}
			}
			if v, used, err = scanName(s, names, n); err == nil {
				f.bc = v == 1
			}
		case "MONTH":
			if v, used, err = scanName(s, fullMonths[:], n); err == nil {
				err = setField(&f.mm, v, n)
			}
		case "MON":
			if v, used, err = scanName(s, pgtext.MonthNames[:], n); err == nil {
				err = setField(&f.mm, v, n)
			}
		case "MM":
			err = num(&f.mm, 2)
		case "DAY", "DY":
			names := fullDays[:]
			if n.key == "DY" {
				names = pgtext.DayNames[:]
			}
			if v, used, err = scanName(s, names, n); err == nil {
				err = setField(&f.d, v+1, n)
			}
		case "DDD", "IDDD":
			err = num(&f.ddd, 3)
		case "DD":
			err = num(&f.dd, 2)
		case "D":
			err = num(&f.d, 1)
		case "ID":
			if err = num(&f.d, 1); err == nil {
				// Monday 1 .. Sunday 7, kept as Sunday 1 .. Saturday 7.
				if f.d++; f.d > 7 {
					f.d = 1
				}
			}
		case "WW", "IW":
			err = num(&f.ww, 2)
		case "Q":
			v, used, err = scanInt(s, nodes, k, 1)
		case "CC":
			err = num(&f.cc, 2)
		case "Y,YYY":
			a, rest, ok := strings.Cut(s, ",")
			m, u1, _ := strtol(a)
			y, u2, _ := strtol(rest[:min(3, len(rest))])
			if !ok || u1 == 0 || u2 == 0 {
				return f, pgerr.New(pgerr.InvalidDatetimeFormat, "invalid input string for \"Y,YYY\"")
			}
			used = len(a) + 1 + u2
			err = setField(&f.year, m*1000+y, n)
			f.yysz = 4
		case "YYYY", "IYYY":
			err = num(&f.year, 4)
			f.yysz = 4
		case "YYY", "IYY", "YY", "IY", "Y", "I":
			width := len(strings.TrimPrefix(n.key, "I"))
			if n.key[0] == 'I' {
				width = len(n.key)
			}
			if v, used, err = scanInt(s, nodes, k, width); err == nil {
				if digitsIn(s, used) < 4 {
					v = fullYear(v)
				}
				err = setField(&f.year, v, n)
			}
			f.yysz = width
		case "RM":
			if v, used, err = scanName(s, romans[:], n); err == nil {
				err = setField(&f.mm, v, n)
			}
		case "W":
			err = num(&f.w, 1)
		case "J":
			err = num(&f.j, len(n.key))
		}
		if err != nil {
			return f, err
		}
		s = s[used:]
		if (n.TH || n.th) && len(s) >= 2 {
			s = s[2:]
		}
		if !fx {
			extra = 0
			for s != "" && isBlank(s[0]) {
				s = s[1:]
				extra++
			}
		}
	}
	return f, nil
}

func digitsIn(s string, used int) int {
	n := 0
	for _, c := range []byte(s[:used]) {
		if !isBlank(c) {
			n++
		}
	}
	return n
}

func errFieldRange(s string) error {
	return pgerr.New(pgerr.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", s)
}

// assemble makes local microseconds of the fields; west is set with a zone.
func (f dateFields) assemble(text string) (days, tod int64, west *int, err error) {
	y, m, d := 0, 1, 1
	var hour, min, sec int
	if f.ssss != 0 {
		hour, min, sec = f.ssss/3600, f.ssss/60%60, f.ssss%60
	}
	if f.ss != 0 {
		sec = f.ss
	}
	if f.mi != 0 {
		min = f.mi
	}
	if f.hh != 0 {
		hour = f.hh
	}
	if f.clock12 {
		if hour < 1 || hour > 12 {
			return 0, 0, nil, pgerr.New(pgerr.InvalidDatetimeFormat, "hour \"%d\" is invalid for the 12-hour clock", hour).
				WithHint("Use the 24-hour clock, or give an hour between 1 and 12.")
		}
		if f.pm && hour < 12 {
			hour += 12
		} else if !f.pm && hour == 12 {
			hour = 0
		}
	}
	var hasYear, hasMonth, hasDay bool
	cc := f.cc
	if f.bc {
		cc = -cc
	}
	if f.year != 0 {
		if f.cc != 0 && f.yysz <= 2 {
			y = f.year % 100
			if y != 0 {
				if cc > 0 {
					y += (cc - 1) * 100
				} else {
					y = (cc+1)*100 - y + 1
				}
			} else if cc >= 0 {
				y = cc * 100
			} else {
				y = cc*100 + 1
			}
		} else {
			y = f.year
			if f.bc {
				y = -y
			}
			if y < 0 {
				y++
			}
		}
		hasYear = true
	} else if f.cc != 0 {
		if cc >= 0 {
			y = (cc-1)*100 + 1
		} else {
			y = cc*100 + 1
		}
		hasYear = true
	}
	setDays := func(n int64) {
		y, m, d = pgtext.CivilFromDays(int(n))
		hasYear, hasMonth, hasDay = true, true, true
	}
	if f.j != 0 {
		setDays(int64(f.j) - 2440588)
	}
	ddd, dd := f.ddd, f.dd
	if f.ww != 0 {
		if f.iso {
			n := isoYearStart(y) + int64(f.ww-1)*7
			if f.d != 0 {
				// Sunday is the last day of the week.
				n += int64((f.d + 5) % 7)
			}
			setDays(n)
		} else {
			ddd = (f.ww-1)*7 + 1
		}
	}
	if f.w != 0 {
		dd = (f.w-1)*7 + 1
	}
	if dd != 0 {
		d, hasDay = dd, true
	}
	if f.mm != 0 {
		m, hasMonth = f.mm, true
	}
	if ddd != 0 && (m <= 1 || d <= 1) {
		if y == 0 && !f.bc {
			return 0, 0, nil, pgerr.New(pgerr.InvalidDatetimeFormat, "cannot calculate day of year without year information")
		}
		if f.iso {
			setDays(isoYearStart(y) + int64(ddd) - 1)
		} else {
			i, rest := 1, ddd
			for ; i <= 12 && rest > pgtext.DaysInMonth(y, i); i++ {
				rest -= pgtext.DaysInMonth(y, i)
			}
			if m <= 1 {
				m = i
			}
			if d <= 1 {
				d = rest
			}
			hasMonth, hasDay = true, true
		}
	}
	fsec := f.ms*1000 + f.us
	if hasYear || hasMonth || hasDay {
		if hasMonth && (m < 1 || m > 12) || hasDay && (d < 1 || d > 31) {
			return 0, 0, nil, errFieldRange(text)
		}
		if hasYear && hasMonth && hasDay && d > pgtext.DaysInMonth(y, m) {
			return 0, 0, nil, errFieldRange(text)
		}
	}
	if hour < 0 || hour >= 24 || min < 0 || min >= 60 || sec < 0 || sec >= 60 || fsec < 0 || fsec >= 1000000 {
		return 0, 0, nil, errFieldRange(text)
	}
	if f.tzsign != 0 {
		if f.tzh < 0 || f.tzh > 15 || f.tzm < 0 || f.tzm >= 60 {
			return 0, 0, nil, pgerr.New(pgerr.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", text)
		}
		w := -f.tzsign * (f.tzh*3600 + f.tzm*60)
		west = &w
	}
	if y < -5000 || y > 6000000 {
		return 0, 0, nil, errFieldRange(text)
	}
	days = int64(pgtext.DaysFromCivil(y, m, d))
	return days, int64(hour)*pgtext.UsPerHour + int64(min)*pgtext.UsPerMinute + int64(sec)*pgtext.UsPerSecond + int64(fsec), west, nil
}

// templates keeps the last template that a call used.
type templates struct {
	text  string
	nodes []fmtNode
}

func (t *templates) of(f string) []fmtNode {
	if t.nodes == nil || t.text != f {
		t.text, t.nodes = f, parseDateFormat(f)
		if t.nodes == nil {
			t.nodes = []fmtNode{}
		}
	}
	return t.nodes
}

func formatFunctions() []*Overload {
	tTS, tTZ, tIV, tDate := types.Of(types.Timestamp), types.Of(types.TimestampTZ), types.Of(types.Interval), types.Of(types.Date)
	var out []*Overload
	add := func(name string, ret types.Type, k Kernel, doc string, args ...types.Type) *Overload {
		o := def(name, ret, k, doc, args...)
		out = append(out, o)
		return o
	}
	tsChar := func(zoned bool) Kernel {
		return withCall(func(c *Call) Kernel {
			var z *pgtext.Zone
			if zoned {
				z = sessionZone(c)
			}
			var t templates
			return sfn2(func(dst []byte, us int64, f string) ([]byte, error) {
				if f == "" || tsInf(us) {
					return dst, errNull
				}
				return formatDate(dst, t.of(f), dateValueOf(us, z))
			})
		})
	}
	add("to_char", tText, tsChar(false), "A timestamp as text, by a template.", tTS, tText).Volatility = Stable
	add("to_char", tText, tsChar(true), "An instant as text in the session's zone, by a template.", tTZ, tText).Volatility = Stable
	add("to_char", tText, withCall(func(*Call) Kernel {
		var t templates
		return sfn2(func(dst []byte, v pgtext.Interval, f string) ([]byte, error) {
			if f == "" {
				return dst, errNull
			}
			return formatDate(dst, t.of(f), intervalValue(v))
		})
	}), "An interval as text, by a template.", tIV, tText).Volatility = Stable
	add("to_date", tDate, withCall(func(*Call) Kernel {
		var t templates
		return fn2(func(s, f string) (int64, error) {
			x, err := scanDate(s, t.of(f))
			if err != nil {
				return 0, err
			}
			days, _, _, err := x.assemble(s)
			if err == nil && (days < pgtext.MinDate || days > pgtext.MaxDate) {
				err = pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range: \"%s\"", s)
			}
			return days, err
		})
	}), "A date read by a template.", tText, tText).Volatility = Stable
	add("to_timestamp", tTZ, withCall(func(c *Call) Kernel {
		var t templates
		z := sessionZone(c)
		return fn2(func(s, f string) (int64, error) {
			x, err := scanDate(s, t.of(f))
			if err != nil {
				return 0, err
			}
			days, tod, west, err := x.assemble(s)
			if err != nil {
				return 0, err
			}
			if days < pgtext.MinDate || days >= pgtext.EndTimestamp/pgtext.UsPerDay {
				return 0, errTimestampRange()
			}
			us := days*pgtext.UsPerDay + tod
			if west != nil {
				return checkTS(us+int64(*west)*pgtext.UsPerSecond, true)
			}
			return checkTS(zoneToUTC(z, us), true)
		})
	}), "An instant read by a template.", tText, tText).Volatility = Stable
	return append(out, numberFormats()...)
}
