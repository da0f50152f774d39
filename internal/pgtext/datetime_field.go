package pgtext

import (
	"math"
	"strconv"
	"strings"
)

// num reads leading digits as C's strtol does. ok is false without digits or out
// of int32.
func num(s string) (v int, rest string, overflow bool) {
	i := 0
	neg := false
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		neg = s[i] == '-'
		i++
	}
	from := i
	for i < len(s) && isDigit(s[i]) {
		if v <= math.MaxInt32 {
			v = v*10 + int(s[i]-'0')
		}
		i++
	}
	if i == from {
		return 0, s, false
	}
	if neg {
		v = -v
	}
	return v, s[i:], v > math.MaxInt32 || v < math.MinInt32
}

// fraction reads ".ddd" to the end of s.
func (d *dtime) fraction(s string) dtErr {
	d.fsec, d.fns = 0, 0
	if s == "." {
		return dtOK
	}
	for _, c := range []byte(s[1:]) {
		if !isDigit(c) {
			return dtBadFormat
		}
	}
	f, err := strconv.ParseFloat("0"+s, 64)
	if err != nil {
		return dtBadFormat
	}
	d.fsec = int64(math.RoundToEven(f * 1e6))
	d.fns = int64(math.RoundToEven(f * 1e9))
	return dtOK
}

func (d *dtime) number(s string, st *Style, mask uint32) (uint32, dtErr) {
	v, rest, over := num(s)
	if over {
		return 0, dtFieldOverflow
	}
	if len(rest) == len(s) {
		return 0, dtBadFormat
	}
	if rest != "" && rest[0] == '.' {
		if len(s)-len(rest) > 2 {
			return d.numberField(s, mask|mDate)
		}
		if e := d.fraction(rest); e != dtOK {
			return 0, e
		}
	} else if rest != "" {
		return 0, dtBadFormat
	}
	n := len(s)
	if n == 3 && mask&mDate == mYear && v >= 1 && v <= 366 {
		d.yday = v
		return mDOY | mMonth | mDay, dtOK
	}
	var tm uint32
	switch mask & mDate {
	case 0:
		switch {
		case n >= 3 || st.order() == "YMD":
			tm, d.year = mYear, v
		case st.order() == "DMY":
			tm, d.mday = mDay, v
		default:
			tm, d.mon = mMonth, v
		}
	case mYear:
		tm, d.mon = mMonth, v
	case mMonth:
		if d.textMonth && (n >= 3 || st.order() == "YMD") {
			tm, d.year = mYear, v
		} else {
			tm, d.mday = mDay, v
		}
	case mYear | mMonth:
		if d.textMonth && n >= 3 && d.is2digits {
			// The first number was the day after all: DD-MON-YYYY in YMD order.
			tm, d.mday, d.year, d.is2digits = mDay, d.year, v, false
		} else {
			tm, d.mday = mDay, v
		}
	case mDay:
		tm, d.mon = mMonth, v
	case mMonth | mDay:
		tm, d.year = mYear, v
	case mDate:
		return d.numberField(s, mask)
	default:
		return 0, dtBadFormat
	}
	if tm == mYear {
		d.is2digits = n <= 2
	}
	return tm, dtOK
}

// numberField reads run-together dates and times: yyyymmdd, hhmmss, hhmm.
func (d *dtime) numberField(s string, mask uint32) (uint32, dtErr) {
	if dot := strings.IndexByte(s, '.'); dot >= 0 {
		if e := d.fraction(s[dot:]); e != dtOK {
			return 0, e
		}
		s = s[:dot]
	} else if mask&mDate != mDate && len(s) >= 6 {
		n := len(s)
		var over bool
		if d.mday, _, over = num(s[n-2:]); over {
			return 0, dtBadFormat
		}
		d.mon, _, _ = num(s[n-4 : n-2])
		if d.year, _, over = num(s[:n-4]); over {
			return 0, dtFieldOverflow
		}
		if n-4 == 2 {
			d.is2digits = true
		}
		return mDate, dtOK
	}
	if mask&mTime != mTime {
		switch len(s) {
		case 6:
			d.hour, _, _ = num(s[:2])
			d.min, _, _ = num(s[2:4])
			d.sec, _, _ = num(s[4:])
			return mTime, dtOK
		case 4:
			d.hour, _, _ = num(s[:2])
			d.min, _, _ = num(s[2:])
			d.sec = 0
			return mTime, dtOK
		}
	}
	return 0, dtBadFormat
}

func (d *dtime) date(s string, st *Style, mask uint32) (uint32, dtErr) {
	var parts []string
	for i := 0; i < len(s); {
		for i < len(s) && !isAlnum(s[i]) {
			i++
		}
		if i >= len(s) {
			return 0, dtBadFormat
		}
		from := i
		if isDigit(s[i]) {
			for i < len(s) && isDigit(s[i]) {
				i++
			}
		} else {
			for i < len(s) && isAlpha(s[i]) {
				i++
			}
		}
		parts = append(parts, s[from:i])
		if i < len(s) {
			i++
		}
		if len(parts) > maxFields {
			return 0, dtBadFormat
		}
	}
	var tm uint32
	text := false
	for i, p := range parts {
		if !isAlpha(p[0]) {
			continue
		}
		t, _ := lookupToken(dateTokens, p)
		if t.t == tkIgnore {
			continue
		}
		if t.t != tkMonth {
			return 0, dtBadFormat
		}
		d.mon, text = t.val, true
		if mask&mMonth != 0 {
			return 0, dtBadFormat
		}
		mask |= mMonth
		tm |= mMonth
		parts[i] = ""
	}
	save := d.textMonth
	d.textMonth = text
	defer func() { d.textMonth = save || text }()
	for _, p := range parts {
		if p == "" {
			continue
		}
		dm, e := d.number(p, st, mask)
		if e != dtOK {
			return 0, e
		}
		if mask&dm != 0 {
			return 0, dtBadFormat
		}
		mask |= dm
		tm |= dm
	}
	if mask&^(mDOY|mTZ) != mDate {
		return 0, dtBadFormat
	}
	return tm, dtOK
}

func (d *dtime) time(s string) (uint32, dtErr) {
	h, rest, over := num(s)
	if over {
		return 0, dtFieldOverflow
	}
	if rest == "" || rest[0] != ':' {
		return 0, dtBadFormat
	}
	m, rest, over := num(rest[1:])
	if over {
		return 0, dtFieldOverflow
	}
	d.fsec, d.fns = 0, 0
	switch {
	case rest == "":
		d.hour, d.min, d.sec = h, m, 0
	case rest[0] == '.':
		if e := d.fraction(rest); e != dtOK {
			return 0, e
		}
		d.hour, d.min, d.sec = 0, h, m
	case rest[0] == ':':
		var sec int
		if sec, rest, over = num(rest[1:]); over {
			return 0, dtFieldOverflow
		}
		if rest != "" {
			if rest[0] != '.' {
				return 0, dtBadFormat
			}
			if e := d.fraction(rest); e != dtOK {
				return 0, e
			}
		}
		d.hour, d.min, d.sec = h, m, sec
	default:
		return 0, dtBadFormat
	}
	if d.hour < 0 || d.min < 0 || d.min > 59 || d.sec < 0 || d.sec > 60 {
		return 0, dtFieldOverflow
	}
	return mTime, dtOK
}

func (d *dtime) timeOverflows() bool {
	if d.hour < 0 || d.hour > 24 || d.min < 0 || d.min > 59 || d.sec < 0 || d.sec > 60 {
		return true
	}
	return d.tod() > UsPerDay
}

func (d *dtime) tod() int64 {
	return int64(d.hour)*UsPerHour + int64(d.min)*UsPerMinute + int64(d.sec)*UsPerSecond + d.fsec
}

// parseOffset reads +hh[:mm[:ss]] or +hhmm and returns seconds west of UTC.
func parseOffset(s string) (west int, e dtErr) {
	if s == "" || s[0] != '+' && s[0] != '-' {
		return 0, dtBadFormat
	}
	h, rest, over := num(s[1:])
	if over {
		return 0, dtTZDisp
	}
	m, sec := 0, 0
	switch {
	case rest != "" && rest[0] == ':':
		if m, rest, over = num(rest[1:]); over {
			return 0, dtTZDisp
		}
		if rest != "" && rest[0] == ':' {
			if sec, rest, over = num(rest[1:]); over {
				return 0, dtTZDisp
			}
		}
	case rest == "" && len(s) > 3:
		m = h % 100
		h /= 100
	}
	if h < 0 || h > 15 || m < 0 || m >= 60 || sec < 0 || sec >= 60 {
		return 0, dtTZDisp
	}
	west = (h*60+m)*60 + sec
	if s[0] == '+' {
		west = -west
	}
	if rest != "" {
		return 0, dtBadFormat
	}
	return west, dtOK
}

func (d *dtime) setNow(st *Style, withDate bool) {
	t := st.now().In(st.loc())
	if withDate {
		d.year, d.mon, d.mday = t.Year(), int(t.Month()), t.Day()
	}
	d.hour, d.min, d.sec = t.Hour(), t.Minute(), t.Second()
	d.fsec = int64(t.Nanosecond() / 1000)
	d.fns = d.fsec * 1000
	_, off := t.Zone()
	d.west = -off
}

func (d *dtime) setDay(st *Style, add int) {
	t := st.now().In(st.loc())
	d.year, d.mon, d.mday = CivilFromDays(DaysFromCivil(t.Year(), int(t.Month()), t.Day()) + add)
}
