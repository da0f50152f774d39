package pgtext

import (
	"math"
	"strconv"
	"strings"
)

// Bits of an interval's range, as in PostgreSQL's typmod (range<<16|precision).
const (
	RangeMonth  = 1 << 1
	RangeYear   = 1 << 2
	RangeDay    = 1 << 3
	RangeHour   = 1 << 10
	RangeMinute = 1 << 11
	RangeSecond = 1 << 12
	RangeFull   = 0x7fff
)

// ivAcc adds up the parts of an interval; fields over int64 or int32 are errors.
type ivAcc struct {
	us     int64
	day    int64
	mon    int64
	year   int64
	failed bool
}

func (a *ivAcc) add(dst *int64, v, scale int64, lo, hi int64) {
	p := v * scale
	if v != 0 && (p/v != scale || v == -1 && scale == math.MinInt64) {
		a.failed = true
		return
	}
	s := *dst + p
	if p > 0 && s < *dst || p < 0 && s > *dst || s < lo || s > hi {
		a.failed = true
		return
	}
	*dst = s
}

func (a *ivAcc) fractUS(frac float64, scale int64) {
	if frac == 0 {
		return
	}
	frac *= float64(scale)
	us := int64(frac)
	frac -= float64(us)
	if frac > 0.5 {
		us++
	} else if frac < -0.5 {
		us--
	}
	a.add(&a.us, us, 1, math.MinInt64, math.MaxInt64)
}

func (a *ivAcc) fractDays(frac float64, scale int64) {
	if frac == 0 {
		return
	}
	frac *= float64(scale)
	d := int64(frac)
	a.add(&a.day, d, 1, math.MinInt32, math.MaxInt32)
	a.fractUS(frac-float64(d), UsPerDay)
}

func (a *ivAcc) fractYears(frac float64, scale int64) {
	a.add(&a.mon, int64(math.RoundToEven(frac*float64(scale)*12)), 1, math.MinInt32, math.MaxInt32)
}

// field adds v+frac of a unit and returns the mask of what it is.
func (a *ivAcc) field(unit int, v int64, frac float64) (uint32, bool) {
	us := func(scale int64) {
		a.add(&a.us, v, scale, math.MinInt64, math.MaxInt64)
		a.fractUS(frac, scale)
	}
	days := func(n int64) { a.add(&a.day, v, n, math.MinInt32, math.MaxInt32) }
	years := func(n int64) {
		a.add(&a.year, v, n, math.MinInt32, math.MaxInt32)
		a.fractYears(frac, n)
	}
	switch unit {
	case dtkMicro:
		us(1)
		return mMicro, true
	case dtkMilli:
		us(1000)
		return mMilli, true
	case dtkSecond:
		us(UsPerSecond)
		if frac != 0 {
			return mAllSecs, true
		}
		return mSecond, true
	case dtkMinute:
		us(UsPerMinute)
		return mMinute, true
	case dtkHour:
		us(UsPerHour)
		return mHour, true
	case dtkDay:
		days(1)
		a.fractUS(frac, UsPerDay)
		return mDay, true
	case dtkWeek:
		days(7)
		a.fractDays(frac, 7)
		return mWeek, true
	case dtkMonth:
		a.add(&a.mon, v, 1, math.MinInt32, math.MaxInt32)
		a.fractDays(frac, 30)
		return mMonth, true
	case dtkYear:
		years(1)
		return mYear, true
	case dtkDecade:
		years(10)
		return mDecade, true
	case dtkCentury:
		years(100)
		return mCentury, true
	case dtkMillennium:
		years(1000)
		return mMillennium, true
	}
	return 0, false
}

func (a *ivAcc) negate() {
	if a.us == math.MinInt64 {
		a.failed = true
	}
	a.us, a.day, a.mon, a.year = -a.us, -a.day, -a.mon, -a.year
}

func (a *ivAcc) result() (Interval, bool) {
	m := a.year*12 + a.mon
	if a.failed || m > math.MaxInt32 || m < math.MinInt32 || a.day > math.MaxInt32 || a.day < math.MinInt32 {
		return Interval{}, false
	}
	return Interval{Micros: a.us, Days: int32(a.day), Months: int32(m)}, true
}

func num64(s string) (v int64, rest string, over bool) {
	i := 0
	if i < len(s) && (s[i] == '-' || s[i] == '+') {
		i++
	}
	from := i
	for i < len(s) && isDigit(s[i]) {
		i++
	}
	if i == from {
		return 0, s, false
	}
	v, err := strconv.ParseInt(s[:i], 10, 64)
	return v, s[i:], err != nil
}

// timeUS reads h:m[:s[.f]], of which h may be large. Without seconds the range
// MINUTE TO SECOND makes it m:s.
func timeUS(s string, rng int) (us int64, e dtErr) {
	h, rest, over := num64(s)
	if over {
		return 0, dtFieldOverflow
	}
	if rest == "" || rest[0] != ':' {
		return 0, dtBadFormat
	}
	var d dtime
	m, rest, over := num64(rest[1:])
	if over {
		return 0, dtFieldOverflow
	}
	sec := int64(0)
	switch {
	case rest == "":
		if rng == RangeMinute|RangeSecond {
			sec, m, h = m, h, 0
		}
	case rest[0] == '.':
		if e := d.fraction(rest); e != dtOK {
			return 0, e
		}
		sec, m, h = m, h, 0
	case rest[0] == ':':
		if sec, rest, over = num64(rest[1:]); over {
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
	default:
		return 0, dtBadFormat
	}
	if h < 0 || m < 0 || m > 59 || sec < 0 || sec > 60 {
		return 0, dtFieldOverflow
	}
	if h > math.MaxInt64/UsPerHour-1 {
		return 0, dtFieldOverflow
	}
	return h*UsPerHour + m*UsPerMinute + sec*UsPerSecond + d.fsec, dtOK
}

func decodeInterval(fields []dtField, rng int, sqlStandard bool) (v Interval, kind int, e dtErr) {
	var a ivAcc
	var mask uint32
	unit := dtkNone // none yet
	haveUnit := false
	before := false
	for i := len(fields) - 1; i >= 0; i-- {
		f := fields[i]
		var tm uint32
		switch f.ft {
		case ftTime, ftTZ, ftDate, ftNumber:
			if f.ft == ftTime || f.ft == ftTZ && strings.IndexByte(f.s[1:], ':') >= 0 {
				s, neg := f.s, false
				if f.ft == ftTZ {
					s, neg = f.s[1:], f.s[0] == '-'
				}
				us, e := timeUS(s, rng)
				if e == dtOK {
					if neg {
						us = -us
					}
					a.add(&a.us, us, 1, math.MinInt64, math.MaxInt64)
					tm, unit, haveUnit = mTime, dtkDay, true
					break
				}
				if f.ft == ftTime {
					return v, 0, e
				}
			}
			if !haveUnit {
				unit, haveUnit = rangeUnit(rng), true
			}
			val, rest, over := num64(f.s)
			if over {
				return v, 0, dtFieldOverflow
			}
			if len(rest) == len(f.s) && (rest == "" || rest[0] != '.') {
				// A sign or nothing before a point reads as zero.
				if len(rest) > 1 && (rest[0] == '-' || rest[0] == '+') && rest[1] == '.' {
					rest = rest[1:]
				} else {
					return v, 0, dtBadFormat
				}
			}
			frac := 0.0
			switch {
			case rest == "":
			case rest[0] == '-':
				m, r, over := num(rest[1:])
				if over || m < 0 || m >= 12 {
					return v, 0, dtFieldOverflow
				}
				if r != "" || len(rest) == 1 {
					return v, 0, dtBadFormat
				}
				unit = dtkMonth
				if f.s[0] == '-' {
					m = -m
				}
				if val > math.MaxInt32 || val < math.MinInt32 {
					return v, 0, dtFieldOverflow
				}
				val = val*12 + int64(m)
			case rest[0] == '.':
				var err error
				if rest == "." {
					break
				}
				if frac, err = strconv.ParseFloat("0"+rest, 64); err != nil {
					return v, 0, dtBadFormat
				}
				if f.s[0] == '-' {
					frac = -frac
				}
			default:
				return v, 0, dtBadFormat
			}
			var ok bool
			if tm, ok = a.field(unit, val, frac); !ok {
				return v, 0, dtBadFormat
			}
			if a.failed {
				return v, 0, dtFieldOverflow
			}
		default:
			t, ok := lookupToken(deltaTokens, f.s)
			if !ok {
				if t, ok = lookupToken(dateTokens, f.s); !ok {
					return v, 0, dtBadFormat
				}
			}
			switch t.t {
			case tkIgnore:
				continue
			case tkUnits:
				unit, haveUnit = t.val, true
			case tkAgo:
				before, unit, haveUnit = true, t.val, true
			case tkReserv:
				tm = mDate | mTime
				kind = t.val
				unit, haveUnit = dtkNone, true
			default:
				return v, 0, dtBadFormat
			}
		}
		if tm&mask != 0 {
			return v, 0, dtBadFormat
		}
		mask |= tm
	}
	if mask == 0 {
		return v, 0, dtBadFormat
	}
	if sqlStandard && len(fields) > 0 && fields[0].s[0] == '-' {
		more := false
		for _, f := range fields[1:] {
			more = more || f.s != "" && (f.s[0] == '-' || f.s[0] == '+')
		}
		if !more {
			a.us, a.day, a.mon, a.year = -abs64(a.us), -abs64(a.day), -abs64(a.mon), -abs64(a.year)
		}
	}
	if before {
		a.negate()
	}
	v, ok := a.result()
	if !ok {
		return v, 0, dtFieldOverflow
	}
	return v, kind, dtOK
}

func rangeUnit(rng int) int {
	switch rng {
	case RangeYear:
		return dtkYear
	case RangeMonth, RangeYear | RangeMonth:
		return dtkMonth
	case RangeDay:
		return dtkDay
	case RangeHour, RangeDay | RangeHour:
		return dtkHour
	case RangeMinute, RangeHour | RangeMinute, RangeDay | RangeHour | RangeMinute:
		return dtkMinute
	}
	return dtkSecond
}

// isoNumber reads [-]digits[.digits] of an ISO 8601 duration.
func isoNumber(s string) (v int64, frac float64, rest string, e dtErr) {
	if s == "" || !(isDigit(s[0]) || s[0] == '-' || s[0] == '.') {
		return 0, 0, s, dtBadFormat
	}
	i := 0
	if s[0] == '-' {
		i++
	}
	from := i
	for i < len(s) && (isDigit(s[i]) || s[i] == '.') {
		i++
	}
	if i == from {
		return 0, 0, s, dtBadFormat
	}
	if i < len(s) && s[i]|0x20 == 'e' {
		return 0, 0, s, dtBadFormat
	}
	f, err := strconv.ParseFloat(s[:i], 64)
	if err != nil {
		return 0, 0, s, dtBadFormat
	}
	if f < -1e15 || f > 1e15 {
		return 0, 0, s, dtFieldOverflow
	}
	v = int64(f)
	return v, f - float64(v), s[i:], dtOK
}

// decodeISOInterval reads P1Y2M3DT4H5M6S, P0001-02-03T04:05:06 and their kin.
func decodeISOInterval(s string) (v Interval, e dtErr) {
	if len(s) < 2 || s[0] != 'P' {
		return v, dtBadFormat
	}
	s = s[1:]
	var a ivAcc
	datePart, field := true, false
	for s != "" {
		if s[0] == 'T' {
			datePart, field = false, false
			s = s[1:]
			continue
		}
		start := s
		val, frac, rest, e := isoNumber(s)
		if e != dtOK {
			return v, e
		}
		width := len(start) - len(rest)
		if start[0] == '-' {
			width--
		}
		unit := byte(0)
		s = rest
		if s != "" {
			unit = s[0]
			s = s[1:]
		}
		if datePart {
			switch unit {
			case 'Y':
				a.field(dtkYear, val, frac)
			case 'M':
				a.field(dtkMonth, val, frac)
			case 'W':
				a.field(dtkWeek, val, frac)
			case 'D':
				a.field(dtkDay, val, frac)
			case 'T', 0:
				if width == 8 && !field {
					a.add(&a.year, val/10000, 1, math.MinInt32, math.MaxInt32)
					a.add(&a.mon, val/100%100, 1, math.MinInt32, math.MaxInt32)
					a.add(&a.day, val%100, 1, math.MinInt32, math.MaxInt32)
					a.fractUS(frac, UsPerDay)
					if unit == 0 {
						goto done
					}
					datePart, field = false, false
					continue
				}
				fallthrough
			case '-':
				if field {
					return v, dtBadFormat
				}
				a.field(dtkYear, val, frac)
				if unit == 0 {
					goto done
				}
				if unit == 'T' {
					datePart, field = false, false
					continue
				}
				if val, frac, s, e = isoNumber(s); e != dtOK {
					return v, e
				}
				a.field(dtkMonth, val, frac)
				if s == "" {
					goto done
				}
				if s[0] == 'T' {
					datePart, field = false, false
					continue
				}
				if s[0] != '-' {
					return v, dtBadFormat
				}
				if val, frac, s, e = isoNumber(s[1:]); e != dtOK {
					return v, e
				}
				a.field(dtkDay, val, frac)
				if s == "" {
					goto done
				}
				if s[0] == 'T' {
					datePart, field = false, false
					continue
				}
				return v, dtBadFormat
			default:
				return v, dtBadFormat
			}
		} else {
			switch unit {
			case 'H':
				a.field(dtkHour, val, frac)
			case 'M':
				a.field(dtkMinute, val, frac)
			case 'S':
				a.field(dtkSecond, val, frac)
			case 0:
				if width == 6 && !field {
					a.field(dtkHour, val/10000, 0)
					a.field(dtkMinute, val/100%100, 0)
					a.field(dtkSecond, val%100, 0)
					a.fractUS(frac, 1)
					goto done
				}
				fallthrough
			case ':':
				if field {
					return v, dtBadFormat
				}
				a.field(dtkHour, val, frac)
				if unit == 0 {
					goto done
				}
				if val, frac, s, e = isoNumber(s); e != dtOK {
					return v, e
				}
				a.field(dtkMinute, val, frac)
				if s == "" {
					goto done
				}
				if s[0] != ':' {
					return v, dtBadFormat
				}
				if val, frac, s, e = isoNumber(s[1:]); e != dtOK {
					return v, e
				}
				a.field(dtkSecond, val, frac)
				if s == "" {
					goto done
				}
				return v, dtBadFormat
			default:
				return v, dtBadFormat
			}
		}
		if a.failed {
			return v, dtFieldOverflow
		}
		field = true
	}
done:
	v, ok := a.result()
	if !ok {
		return v, dtFieldOverflow
	}
	return v, dtOK
}

// ParseInterval reads an interval in any of PostgreSQL's styles. rng is the bits
// of its fields (INTERVAL ... YEAR TO MONTH), RangeFull or 0 for all: it says
// what a number without a unit means; cut with TrimInterval.
func ParseInterval(s string, rng int, st *Style) (Interval, error) {
	st = orDefault(st)
	if rng == 0 {
		rng = RangeFull
	}
	var v Interval
	kind := 0
	e := dtBadFormat
	if fields, ok := splitDateTime(s); ok {
		v, kind, e = decodeInterval(fields, rng, st.IntervalStyle == "sql_standard")
	}
	if e == dtBadFormat {
		v, e = decodeISOInterval(s)
		kind = 0
	}
	if e == dtFieldOverflow {
		e = dtIntervalOverflow
	}
	if e != dtOK {
		return v, e.err(s, "interval", "")
	}
	if kind != 0 {
		return v, dtBadFormat.err(s, "interval", "")
	}
	return v, nil
}

// TrimInterval cuts v to the fields of rng and rounds seconds to prec digits
// (prec above 6 = all).
func TrimInterval(v Interval, rng, prec int) Interval {
	switch rng {
	case RangeYear:
		v.Months = v.Months / 12 * 12
		v.Days, v.Micros = 0, 0
	case RangeMonth, RangeYear | RangeMonth:
		v.Days, v.Micros = 0, 0
	case RangeDay:
		v.Micros = 0
	case RangeHour, RangeDay | RangeHour:
		v.Micros = v.Micros / UsPerHour * UsPerHour
	case RangeMinute, RangeHour | RangeMinute, RangeDay | RangeHour | RangeMinute:
		v.Micros = v.Micros / UsPerMinute * UsPerMinute
	}
	if prec < 6 {
		v.Micros = RoundMicros(v.Micros, prec)
	}
	return v
}

// RoundMicros rounds us half away from zero to prec digits of a second.
func RoundMicros(us int64, prec int) int64 {
	if prec >= 6 || prec < 0 || us == TimestampInfinity || us == TimestampNegInfinity {
		return us
	}
	p := int64(1)
	for i := prec; i < 6; i++ {
		p *= 10
	}
	if us >= 0 {
		return (us + p/2) / p * p
	}
	return -((-us + p/2) / p * p)
}
