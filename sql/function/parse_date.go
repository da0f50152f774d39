package function

import (
	"math"
	"strings"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

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
