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
