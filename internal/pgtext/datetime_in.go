package pgtext

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// dtErr is why a date/time text was refused.
type dtErr uint8

const (
	dtOK dtErr = iota
	dtBadFormat
	dtFieldOverflow
	dtMDFieldOverflow
	dtIntervalOverflow
	dtTZDisp
	dtBadZone
)

func (e dtErr) err(s, typ, zone string) error {
	switch e {
	case dtFieldOverflow:
		return pgerr.New(pgerr.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", s)
	case dtMDFieldOverflow:
		return pgerr.New(pgerr.DatetimeFieldOverflow, "date/time field value out of range: \"%s\"", s).
			WithHint("Perhaps you need a different \"datestyle\" setting.")
	case dtIntervalOverflow:
		return pgerr.New(pgerr.IntervalFieldOverflow, "interval field value out of range: \"%s\"", s)
	case dtTZDisp:
		return pgerr.New(pgerr.InvalidTimeZoneDisplacement, "time zone displacement out of range: \"%s\"", s)
	case dtBadZone:
		return pgerr.New(pgerr.InvalidParameterValue, "time zone \"%s\" not recognized", zone)
	}
	return pgerr.New(pgerr.InvalidDatetimeFormat, "invalid input syntax for type %s: \"%s\"", typ, s)
}

// dtime is a broken-down date and time with what was learnt about its zone.
type dtime struct {
	year, mon, mday, yday int
	hour, min, sec        int
	fsec                  int64 // us
	fns                   int64 // the same fraction in ns
	kind                  int   // dtkDate, dtkEpoch, dtkLate, dtkEarly
	west                  int   // seconds west of UTC
	zone                  *Zone // a named zone, resolved with the date
	badZone               string
	mask                  uint32
	is2digits, bc, julian bool
	textMonth             bool
	mer                   int
}

func (st *Style) order() string { return st.DateOrder }

// decode understands the fields of a text. timeOnly is for time and timetz.
func decode(fields []dtField, st *Style, timeOnly bool) (d *dtime, e dtErr) {
	d = &dtime{kind: dtkDate, mer: hr24}
	ptype := 0
	n := len(fields)
	extra := uint32(0)
	if timeOnly {
		extra = mDate
	}
	for i, f := range fields {
		var tm uint32
		switch f.ft {
		case ftDate:
			tm, e = d.dateField(fields, i, &ptype, st, timeOnly)
		case ftTime:
			if ptype != 0 {
				if ptype != dtkTime {
					return d, dtBadFormat
				}
				ptype = 0
			}
			tm, e = d.time(f.s)
			if e == dtOK && !timeOnly && d.timeOverflows() {
				e = dtFieldOverflow
			}
		case ftTZ:
			d.west, e = parseOffset(f.s)
			tm = mTZ
		case ftNumber:
			if ptype != 0 {
				tm, e = d.labelled(f.s, ptype)
				ptype = 0
				break
			}
			dot := strings.IndexByte(f.s, '.')
			switch {
			case timeOnly && dot >= 0 && i == 0 && n >= 2 && fields[n-1].ft == ftDate:
				tm, e = d.date(f.s, st, d.mask)
			case timeOnly && dot >= 0 && dot > 2:
				tm, e = d.numberField(f.s, d.mask|mDate)
			case timeOnly && dot >= 0:
				e = dtBadFormat
			case timeOnly && len(f.s) > 4:
				tm, e = d.numberField(f.s, d.mask|mDate)
			case timeOnly:
				tm, e = d.number(f.s, st, d.mask|mDate)
			case dot >= 0 && d.mask&mDate == 0:
				tm, e = d.date(f.s, st, d.mask)
			case dot > 2:
				tm, e = d.numberField(f.s, d.mask)
			case len(f.s) >= 6 && (d.mask&mDate == 0 || d.mask&mTime == 0):
				tm, e = d.numberField(f.s, d.mask)
			default:
				tm, e = d.number(f.s, st, d.mask)
			}
		default:
			var skip bool
			tm, skip, e = d.word(fields, i, &ptype, st, timeOnly)
			if skip {
				continue
			}
		}
		if e != dtOK {
			return d, e
		}
		if tm&d.mask != 0 {
			return d, dtBadFormat
		}
		d.mask |= tm
	}
	_ = extra
	if e = d.validate(); e != dtOK {
		return d, e
	}
	if d.mer != hr24 && d.hour > 12 {
		return d, dtFieldOverflow
	}
	if d.mer == amHours && d.hour == 12 {
		d.hour = 0
	} else if d.mer == pmHours && d.hour != 12 {
		d.hour += 12
	}
	if timeOnly {
		return d, d.finishTime(st)
	}
	if d.kind == dtkDate {
		if d.mask&mDate != mDate {
			return d, dtBadFormat
		}
		if d.zone != nil {
			if d.mask&mDTZMod != 0 {
				return d, dtBadFormat
			}
			d.west = d.resolve(d.zone)
		}
		if d.mask&mTZ == 0 {
			if d.mask&mDTZMod != 0 {
				return d, dtBadFormat
			}
			d.west = d.resolve(NewZone(st.loc()))
		}
	}
	return d, dtOK
}

// resolve returns the seconds west of UTC that z has at the local date and time.
func (d *dtime) resolve(z *Zone) int {
	local := int64(DaysFromCivil(d.year, d.mon, d.mday))*86400 + int64(d.hour*3600+d.min*60+d.sec)
	_, off := z.ToUTC(local)
	return -off
}

func (d *dtime) finishTime(st *Style) dtErr {
	if d.timeOverflows() {
		return dtFieldOverflow
	}
	if d.mask&mTime != mTime {
		return dtBadFormat
	}
	if d.zone != nil {
		if d.mask&mDTZMod != 0 {
			return dtBadFormat
		}
		if off, fixed := d.zone.fixed(); fixed {
			d.west = -off
		} else {
			if d.mask&mDate != mDate {
				return dtBadFormat
			}
			d.west = d.resolve(d.zone)
		}
	}
	if d.mask&mTZ == 0 {
		if d.mask&mDTZMod != 0 {
			return dtBadFormat
		}
		t := *d
		switch d.mask & mDate {
		case 0:
			t.setDay(st, 0)
		case mDate:
		default:
			return dtBadFormat
		}
		d.west = t.resolve(NewZone(st.loc()))
	}
	return dtOK
}

// fixed reports whether the zone has one offset for all times.
func (z *Zone) fixed() (off int, ok bool) {
	t := time.Unix(0, 0).In(z.loc)
	s, e := t.ZoneBounds()
	_, off = t.Zone()
	return off, s.IsZero() && e.IsZero()
}

func (d *dtime) dateField(fields []dtField, i int, ptype *int, st *Style, timeOnly bool) (tm uint32, e dtErr) {
	s := fields[i].s
	n := len(fields)
	runTogether := func() (uint32, dtErr) {
		if d.mask&mTime == mTime {
			return 0, dtBadFormat
		}
		dash := strings.IndexByte(s, '-')
		if dash < 0 {
			return 0, dtBadFormat
		}
		if d.west, e = parseOffset(s[dash:]); e != dtOK {
			return 0, e
		}
		m := d.mask
		if timeOnly {
			m |= mDate
		}
		tm, e = d.numberField(s[:dash], m)
		return tm | mTZ, e
	}
	named := func() (uint32, dtErr) {
		loc, ok := LoadZone(s)
		if !ok {
			d.badZone = s
			return 0, dtBadZone
		}
		d.zone = NewZone(loc)
		return mTZ, dtOK
	}
	if timeOnly {
		if i == 0 && n >= 2 && (fields[n-1].ft == ftDate || fields[1].ft == ftTime) {
			return d.date(s, st, d.mask)
		}
		if isDigit(s[0]) {
			return runTogether()
		}
		return named()
	}
	if *ptype == dtkJulian {
		v, rest, over := num(s)
		if over || len(rest) == len(s) || v < 0 {
			return 0, dtFieldOverflow
		}
		d.year, d.mon, d.mday = CivilFromDays(v - julianEpoch)
		d.julian = true
		if d.west, e = parseOffset(rest); e != dtOK {
			return 0, e
		}
		*ptype = 0
		return mDate | mTime | mTZ, dtOK
	}
	if *ptype != 0 || d.mask&(mMonth|mDay) == mMonth|mDay {
		if isDigit(s[0]) || *ptype != 0 {
			if *ptype != 0 && *ptype != dtkTime {
				return 0, dtBadFormat
			}
			*ptype = 0
			return runTogether()
		}
		return named()
	}
	return d.date(s, st, d.mask)
}

// julianEpoch is the Julian day of 1970-01-01.
const julianEpoch = 2440588

// labelled reads a number behind a unit: y2001m02d04, J2451187, T040506.
func (d *dtime) labelled(s string, ptype int) (tm uint32, e dtErr) {
	v, rest, over := num(s)
	if over {
		return 0, dtFieldOverflow
	}
	if rest != "" && rest[0] == '.' {
		if ptype != dtkJulian && ptype != dtkTime && ptype != dtkSecond {
			return 0, dtBadFormat
		}
	} else if rest != "" {
		return 0, dtBadFormat
	}
	switch ptype {
	case dtkYear:
		d.year, tm = v, mYear
	case dtkMonth:
		if d.mask&mMonth != 0 && d.mask&mHour != 0 {
			d.min, tm = v, mMinute
		} else {
			d.mon, tm = v, mMonth
		}
	case dtkDay:
		d.mday, tm = v, mDay
	case dtkHour:
		d.hour, tm = v, mHour
	case dtkMinute:
		d.min, tm = v, mMinute
	case dtkSecond:
		d.sec, tm = v, mSecond
		if rest != "" {
			if e = d.fraction(rest); e != dtOK {
				return 0, e
			}
			tm = mAllSecs
		}
	case dtkTZ:
		d.west, e = parseOffset(s)
		return mTZ, e
	case dtkJulian:
		if v < 0 {
			return 0, dtFieldOverflow
		}
		d.year, d.mon, d.mday = CivilFromDays(v - julianEpoch)
		d.julian = true
		tm = mDate
		if rest != "" {
			f, err := strconv.ParseFloat("0"+rest, 64)
			if err != nil {
				return 0, dtBadFormat
			}
			us := int64(f * float64(UsPerDay))
			d.hour, d.min, d.sec = int(us/UsPerHour), int(us/UsPerMinute%60), int(us/UsPerSecond%60)
			d.fsec = us % UsPerSecond
			d.fns = d.fsec * 1000
			tm |= mTime
		}
	case dtkTime:
		tm, e = d.numberField(s, d.mask|mDate)
		if e == dtOK && tm != mTime {
			e = dtBadFormat
		}
	default:
		e = dtBadFormat
	}
	return tm, e
}

func (d *dtime) word(fields []dtField, i int, ptype *int, st *Style, timeOnly bool) (tm uint32, skip bool, e dtErr) {
	s := fields[i].s
	if a, ok := zoneAbbrevs[s]; ok {
		d.west = -a.off
		if a.dst {
			return mTZ | mDTZ, false, dtOK
		}
		return mTZ, false, dtOK
	}
	t, ok := lookupToken(dateTokens, s)
	if !ok {
		loc, ok := LoadZone(s)
		if !ok {
			return 0, false, dtBadFormat
		}
		d.zone = NewZone(loc)
		return mTZ, false, dtOK
	}
	switch t.t {
	case tkIgnore:
		return 0, true, dtOK
	case tkReserv:
		if timeOnly {
			switch t.val {
			case dtkNow:
				d.setNow(st, false)
				return mTime, false, dtOK
			case dtkZulu:
				d.hour, d.min, d.sec, d.west = 0, 0, 0, 0
				return mTime | mTZ, false, dtOK
			}
			return 0, false, dtBadFormat
		}
		switch t.val {
		case dtkNow:
			d.setNow(st, true)
			return mDate | mTime | mTZ, false, dtOK
		case dtkYesterday:
			d.setDay(st, -1)
			return mDate, false, dtOK
		case dtkToday:
			d.setDay(st, 0)
			return mDate, false, dtOK
		case dtkTomorrow:
			d.setDay(st, 1)
			return mDate, false, dtOK
		case dtkZulu:
			d.hour, d.min, d.sec, d.west = 0, 0, 0, 0
			return mTime | mTZ, false, dtOK
		}
		d.kind = t.val
		return mReserv, false, dtOK
	case tkMonth:
		if timeOnly {
			return 0, false, dtBadFormat
		}
		tm = mMonth
		if d.mask&mMonth != 0 && !d.textMonth && d.mask&mDay == 0 && d.mon >= 1 && d.mon <= 31 {
			d.mday = d.mon
			tm = mDay
		}
		d.textMonth = true
		d.mon = t.val
		return tm, false, dtOK
	case tkDTZMod:
		d.west -= t.val
		return mDTZMod | mDTZ, false, dtOK
	case tkAMPM:
		d.mer = t.val
		return mAMPM, false, dtOK
	case tkADBC:
		d.bc = t.val == 1
		return mADBC, false, dtOK
	case tkDOW:
		if timeOnly {
			return 0, false, dtBadFormat
		}
		return mDOW, false, dtOK
	case tkUnits:
		*ptype = t.val
		return 0, false, dtOK
	case tkISOTime:
		if !timeOnly && d.mask&mDate != mDate {
			return 0, false, dtBadFormat
		}
		if i >= len(fields)-1 || fields[i+1].ft != ftNumber && fields[i+1].ft != ftTime && fields[i+1].ft != ftDate {
			return 0, false, dtBadFormat
		}
		*ptype = t.val
		return 0, false, dtOK
	}
	return 0, false, dtBadFormat
}

func (d *dtime) validate() dtErr {
	if d.mask&mYear != 0 {
		switch {
		case d.julian:
		case d.bc:
			if d.year <= 0 {
				return dtFieldOverflow
			}
			d.year = -(d.year - 1)
		case d.is2digits:
			if d.year < 0 {
				return dtFieldOverflow
			}
			if d.year < 70 {
				d.year += 2000
			} else if d.year < 100 {
				d.year += 1900
			}
		case d.year <= 0:
			return dtFieldOverflow
		}
	}
	if d.mask&mDOY != 0 {
		d.year, d.mon, d.mday = CivilFromDays(DaysFromCivil(d.year, 1, 1) + d.yday - 1)
	}
	if d.mask&mMonth != 0 && (d.mon < 1 || d.mon > 12) {
		return dtMDFieldOverflow
	}
	if d.mask&mDay != 0 && (d.mday < 1 || d.mday > 31) {
		return dtMDFieldOverflow
	}
	if d.mask&mDate == mDate && d.mday > DaysInMonth(d.year, d.mon) {
		return dtFieldOverflow
	}
	return dtOK
}

// ParseDate reads a date as days since 1970.
func ParseDate(s string, st *Style) (int64, error) {
	st = orDefault(st)
	if days, ok := fastDate(s); ok {
		return days, nil
	}
	fields, ok := splitDateTime(s)
	e := dtBadFormat
	var d *dtime
	if ok {
		d, e = decode(fields, st, false)
	}
	if e != dtOK {
		return 0, e.err(s, "date", zoneOf(d))
	}
	switch d.kind {
	case dtkEpoch:
		return 0, nil
	case dtkLate:
		return DateInfinity, nil
	case dtkEarly:
		return DateNegInfinity, nil
	case dtkDate:
	default:
		return 0, dtBadFormat.err(s, "date", "")
	}
	days := int64(DaysFromCivil(d.year, d.mon, d.mday))
	if days < MinDate || days > MaxDate {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range: \"%s\"", s)
	}
	return days, nil
}

func zoneOf(d *dtime) string {
	if d == nil {
		return ""
	}
	return d.badZone
}

// fastDate reads exactly yyyy-mm-dd.
func fastDate(s string) (int64, bool) {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return 0, false
	}
	var v [3]int
	for i, p := range [3][2]int{{0, 4}, {5, 7}, {8, 10}} {
		for k := p[0]; k < p[1]; k++ {
			if !isDigit(s[k]) {
				return 0, false
			}
			v[i] = v[i]*10 + int(s[k]-'0')
		}
	}
	if v[0] == 0 || v[1] < 1 || v[1] > 12 || v[2] < 1 || v[2] > DaysInMonth(v[0], v[1]) {
		return 0, false
	}
	return int64(DaysFromCivil(v[0], v[1], v[2])), true
}

// ParseTimestamp reads a timestamp (tz: with time zone) in microseconds since
// 1970, or nanoseconds when nanos is set.
func ParseTimestamp(s string, tz, nanos bool, st *Style) (int64, error) {
	st = orDefault(st)
	name := "timestamp"
	if tz {
		name = "timestamp with time zone"
	}
	fields, ok := splitDateTime(s)
	e := dtBadFormat
	var d *dtime
	if ok {
		d, e = decode(fields, st, false)
	}
	if e != dtOK {
		return 0, e.err(s, name, zoneOf(d))
	}
	switch d.kind {
	case dtkEpoch:
		return 0, nil
	case dtkLate:
		return TimestampInfinity, nil
	case dtkEarly:
		return TimestampNegInfinity, nil
	case dtkDate:
	default:
		return 0, dtBadFormat.err(s, name, "")
	}
	outOfRange := func() (int64, error) {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp out of range: \"%s\"", s)
	}
	days := int64(DaysFromCivil(d.year, d.mon, d.mday))
	if days < MinDate || days >= EndTimestamp/UsPerDay {
		return outOfRange()
	}
	us := days*UsPerDay + d.tod()
	if tz {
		us += int64(d.west) * UsPerSecond
	}
	if us < MinTimestamp || us >= EndTimestamp {
		return outOfRange()
	}
	if nanos {
		if us > math.MaxInt64/1000-1 || us < math.MinInt64/1000+1 {
			return outOfRange()
		}
		return (us-d.fsec)*1000 + d.fns, nil
	}
	return us, nil
}

// ParseTime reads a time of day in microseconds.
func ParseTime(s string, st *Style) (int64, error) {
	us, _, err := parseTime(s, "time", st)
	return us, err
}

// ParseTimeTZ reads a time with time zone: microseconds and seconds west of UTC.
func ParseTimeTZ(s string, st *Style) (us int64, west int32, err error) {
	return parseTime(s, "time with time zone", st)
}

func parseTime(s, name string, st *Style) (int64, int32, error) {
	st = orDefault(st)
	fields, ok := splitDateTime(s)
	e := dtBadFormat
	var d *dtime
	if ok {
		d, e = decode(fields, st, true)
	}
	if e != dtOK {
		return 0, 0, e.err(s, name, zoneOf(d))
	}
	return d.tod(), int32(d.west), nil
}
