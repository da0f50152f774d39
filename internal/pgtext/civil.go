package pgtext

import (
	"math"
	"time"
)

// Infinities of dates and timestamps.
const (
	DateInfinity         = math.MaxInt32
	DateNegInfinity      = math.MinInt32
	TimestampInfinity    = math.MaxInt64
	TimestampNegInfinity = math.MinInt64
)

// The ranges of PostgreSQL's types, in days and microseconds since 1970. Its
// timestamps go on to 294276; counted from 1970 in an int64 they end in 294247.
const (
	MinDate      = -2440588             // 4713-11-24 BC
	MaxDate      = 2145031948           // 5874897-12-31
	MinTimestamp = -210866803200000000  // 4713-11-24 BC
	EndTimestamp = 106751991 * UsPerDay // 294247-01-10, not included
)

// Microseconds of the larger units.
const (
	UsPerSecond = int64(1000000)
	UsPerMinute = 60 * UsPerSecond
	UsPerHour   = 60 * UsPerMinute
	UsPerDay    = 24 * UsPerHour
)

// DaysFromCivil returns the days since 1970-01-01 of a date in the proleptic
// Gregorian calendar; year 0 is 1 BC. Months outside 1..12 are not normalised.
func DaysFromCivil(y, m, d int) int {
	if m <= 2 {
		y--
	}
	era := y / 400
	if y < 0 {
		era = (y - 399) / 400
	}
	yoe := y - era*400
	mp := (m + 9) % 12
	doy := (153*mp+2)/5 + d - 1
	doe := yoe*365 + yoe/4 - yoe/100 + doy
	return era*146097 + doe - 719468
}

// CivilFromDays is the inverse of DaysFromCivil.
func CivilFromDays(z int) (y, m, d int) {
	z += 719468
	era := z / 146097
	if z < 0 {
		era = (z - 146096) / 146097
	}
	doe := z - era*146097
	yoe := (doe - doe/1460 + doe/36524 - doe/146096) / 365
	y = yoe + era*400
	doy := doe - (365*yoe + yoe/4 - yoe/100)
	mp := (5*doy + 2) / 153
	d = doy - (153*mp+2)/5 + 1
	m = mp + 3
	if m > 12 {
		m -= 12
	}
	if m <= 2 {
		y++
	}
	return y, m, d
}

// IsLeap reports whether y is a leap year.
func IsLeap(y int) bool { return y%4 == 0 && (y%100 != 0 || y%400 == 0) }

var monthDays = [13]int{0, 31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}

// DaysInMonth returns the length of month m of year y.
func DaysInMonth(y, m int) int {
	if m == 2 && IsLeap(y) {
		return 29
	}
	return monthDays[m]
}

// SplitTimestamp divides us since 1970 into days and us of the day, flooring.
func SplitTimestamp(us int64) (days int64, tod int64) {
	days = us / UsPerDay
	tod = us - days*UsPerDay
	if tod < 0 {
		tod += UsPerDay
		days--
	}
	return days, tod
}

// FloorMicros turns nanoseconds into microseconds, keeping the infinities.
func FloorMicros(ns int64) int64 {
	if ns == TimestampInfinity || ns == TimestampNegInfinity {
		return ns
	}
	q := ns / 1000
	if ns%1000 < 0 {
		q--
	}
	return q
}

// Zone finds UTC offsets in a location and remembers the last stretch.
type Zone struct {
	loc    *time.Location
	lo, hi int64 // seconds; offset holds in [lo, hi)
	off    int
	name   string
	known  bool
}

// NewZone makes a Zone; nil is UTC.
func NewZone(loc *time.Location) *Zone {
	if loc == nil {
		loc = time.UTC
	}
	return &Zone{loc: loc}
}

// Offset returns the seconds east of UTC, and the abbreviation, at an instant
// given in seconds since 1970.
func (z *Zone) Offset(sec int64) (int, string) {
	if z.known && sec >= z.lo && sec < z.hi {
		return z.off, z.name
	}
	t := time.Unix(sec, 0).In(z.loc)
	z.name, z.off = t.Zone()
	s, e := t.ZoneBounds()
	z.lo, z.hi, z.known = math.MinInt64, math.MaxInt64, true
	if !s.IsZero() {
		z.lo = s.Unix()
	}
	if !e.IsZero() {
		z.hi = e.Unix()
	}
	return z.off, z.name
}

// ToUTC turns a local time (seconds since 1970 as if it were UTC) into the
// instant it names and its offset. In a gap the offset before it counts, in an
// overlap the one before the change too, except that PostgreSQL takes standard
// time when both are possible: it prefers the later offset's non-DST reading.
func (z *Zone) ToUTC(local int64) (sec int64, off int) {
	o1, _ := z.Offset(local - 86400)
	o2, _ := z.Offset(local + 86400)
	if o1 == o2 {
		// Either no change near, or two changes that cancel out.
		o, _ := z.Offset(local - int64(o1))
		if o == o1 {
			return local - int64(o1), o1
		}
	}
	b, _ := z.Offset(local - int64(o1))
	a, _ := z.Offset(local - int64(o2))
	okBefore, okAfter := b == o1, a == o2
	switch {
	case okBefore && !okAfter:
		return local - int64(o1), o1
	case okAfter && !okBefore:
		return local - int64(o2), o2
	case okBefore && okAfter:
		// Overlap: PostgreSQL takes standard time, which is the one with the
		// smaller offset when the clock was put back.
		if z.isDST(local-int64(o1)) && !z.isDST(local-int64(o2)) {
			return local - int64(o2), o2
		}
		if !z.isDST(local-int64(o1)) && z.isDST(local-int64(o2)) {
			return local - int64(o1), o1
		}
		return local - int64(o2), o2
	}
	// A gap: the offset in force before the change.
	return local - int64(o1), o1
}

func (z *Zone) isDST(sec int64) bool { return time.Unix(sec, 0).In(z.loc).IsDST() }
