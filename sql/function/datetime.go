package function

import (
	"math"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// Date and time arithmetic, with PostgreSQL's ranges and errors. Timestamps are
// microseconds since 1970, dates days since 1970.

func sessionLocation(c *Call) *time.Location {
	if c.Env != nil {
		if l := c.Env.Location(); l != nil {
			return l
		}
	}
	return time.UTC
}

func sessionZone(c *Call) *pgtext.Zone { return pgtext.NewZone(sessionLocation(c)) }

func errTimestampRange() error {
	return pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp out of range")
}
func errDateRange() error     { return pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range") }
func errIntervalRange() error { return pgerr.New(pgerr.DatetimeFieldOverflow, "interval out of range") }

func tsInf(v int64) bool { return v == pgtext.TimestampInfinity || v == pgtext.TimestampNegInfinity }
func dateInf(v int64) bool {
	return v == pgtext.DateInfinity || v == pgtext.DateNegInfinity
}

func checkTS(v int64, ok bool) (int64, error) {
	if !ok || v < pgtext.MinTimestamp || v >= pgtext.EndTimestamp {
		return 0, errTimestampRange()
	}
	return v, nil
}

func add64(a, b int64) (int64, bool) {
	r := a + b
	return r, (a^r)&(b^r) >= 0
}

func sub64(a, b int64) (int64, bool) {
	r := a - b
	return r, (a^b)&(a^r) >= 0
}

// addMonthsDays adds the calendar parts of an interval to local microseconds.
func addMonthsDays(us int64, months, days int32) (int64, error) {
	d, tod := pgtext.SplitTimestamp(us)
	if months != 0 {
		y, m, day := pgtext.CivilFromDays(int(d))
		t := int64(y)*12 + int64(m-1) + int64(months)
		ny, nm := t/12, t%12
		if nm < 0 {
			nm += 12
			ny--
		}
		if ny < -5000 || ny > 300000 {
			return 0, errTimestampRange()
		}
		day = min(day, pgtext.DaysInMonth(int(ny), int(nm)+1))
		d = int64(pgtext.DaysFromCivil(int(ny), int(nm)+1, day))
	}
	d += int64(days)
	if d < pgtext.MinDate || d >= pgtext.EndTimestamp/pgtext.UsPerDay {
		return 0, errTimestampRange()
	}
	return checkTS(d*pgtext.UsPerDay+tod, true)
}

// AddInterval adds an interval to a timestamp without time zone.
func AddInterval(us int64, v pgtext.Interval) (int64, error) {
	if tsInf(us) {
		return us, nil
	}
	var err error
	if v.Months != 0 || v.Days != 0 {
		if us, err = addMonthsDays(us, v.Months, v.Days); err != nil {
			return 0, err
		}
	}
	return checkTS(add64(us, v.Micros))
}

// AddIntervalTZ adds an interval to an instant: months and days by the calendar
// of the zone.
func AddIntervalTZ(z *pgtext.Zone, us int64, v pgtext.Interval) (int64, error) {
	if tsInf(us) {
		return us, nil
	}
	if v.Months != 0 || v.Days != 0 {
		local, err := addMonthsDays(zoneToLocal(z, us), v.Months, v.Days)
		if err != nil {
			return 0, err
		}
		us = zoneToUTC(z, local)
	}
	return checkTS(add64(us, v.Micros))
}

func negInterval(v pgtext.Interval) (pgtext.Interval, error) {
	if v.Micros == math.MinInt64 || v.Days == math.MinInt32 || v.Months == math.MinInt32 {
		return v, errIntervalRange()
	}
	return pgtext.Interval{Micros: -v.Micros, Days: -v.Days, Months: -v.Months}, nil
}

func addIntervals(a, b pgtext.Interval) (pgtext.Interval, error) {
	us, ok := add64(a.Micros, b.Micros)
	d, m := int64(a.Days)+int64(b.Days), int64(a.Months)+int64(b.Months)
	if !ok || d != int64(int32(d)) || m != int64(int32(m)) {
		return a, errIntervalRange()
	}
	return pgtext.Interval{Micros: us, Days: int32(d), Months: int32(m)}, nil
}

func subIntervals(a, b pgtext.Interval) (pgtext.Interval, error) {
	us, ok := sub64(a.Micros, b.Micros)
	d, m := int64(a.Days)-int64(b.Days), int64(a.Months)-int64(b.Months)
	if !ok || d != int64(int32(d)) || m != int64(int32(m)) {
		return a, errIntervalRange()
	}
	return pgtext.Interval{Micros: us, Days: int32(d), Months: int32(m)}, nil
}

// tsRound rounds to microseconds of a unit, as PostgreSQL's TSROUND.
func tsRound(f float64) float64 { return math.RoundToEven(f*1e6) / 1e6 }

// scaleInterval multiplies an interval; what is not whole spills from months to
// days (30) and from days to time (24 h).
func scaleInterval(v pgtext.Interval, mul func(x float64) float64) (pgtext.Interval, error) {
	m, d := mul(float64(v.Months)), mul(float64(v.Days))
	if math.IsNaN(m) || m > math.MaxInt32 || m < math.MinInt32 || math.IsNaN(d) || d > math.MaxInt32 || d < math.MinInt32 {
		return v, errIntervalRange()
	}
	months, days := int32(m), int64(int32(d))
	restDays := tsRound((m - float64(months)) * 30)
	restSec := tsRound((d - float64(days) + restDays - math.Trunc(restDays)) * 86400)
	if math.Abs(restSec) >= 86400 {
		whole := math.Trunc(restSec / 86400)
		days += int64(whole)
		restSec -= whole * 86400
	}
	days += int64(restDays)
	us := math.RoundToEven(mul(float64(v.Micros)) + restSec*1e6)
	if math.IsNaN(us) || us >= math.MaxInt64 || us < math.MinInt64 || days != int64(int32(days)) {
		return v, errIntervalRange()
	}
	return pgtext.Interval{Micros: int64(us), Days: int32(days), Months: months}, nil
}

func mulInterval(v pgtext.Interval, f float64) (pgtext.Interval, error) {
	return scaleInterval(v, func(x float64) float64 { return x * f })
}

func divInterval(v pgtext.Interval, f float64) (pgtext.Interval, error) {
	if f == 0 {
		return v, errDivZero()
	}
	return scaleInterval(v, func(x float64) float64 { return x / f })
}

// justifyHours moves whole days from the time to the days.
func justifyHours(v pgtext.Interval) (pgtext.Interval, error) {
	whole := v.Micros / pgtext.UsPerDay
	d := int64(v.Days) + whole
	if d != int64(int32(d)) {
		return v, errIntervalRange()
	}
	v.Micros -= whole * pgtext.UsPerDay
	v.Days = int32(d)
	if v.Days > 0 && v.Micros < 0 {
		v.Micros += pgtext.UsPerDay
		v.Days--
	} else if v.Days < 0 && v.Micros > 0 {
		v.Micros -= pgtext.UsPerDay
		v.Days++
	}
	return v, nil
}

func justifyDays(v pgtext.Interval) (pgtext.Interval, error) {
	whole := v.Days / 30
	m := int64(v.Months) + int64(whole)
	if m != int64(int32(m)) {
		return v, errIntervalRange()
	}
	v.Days -= whole * 30
	v.Months = int32(m)
	if v.Months > 0 && v.Days < 0 {
		v.Days += 30
		v.Months--
	} else if v.Months < 0 && v.Days > 0 {
		v.Days -= 30
		v.Months++
	}
	return v, nil
}

func justifyInterval(v pgtext.Interval) (pgtext.Interval, error) {
	whole := v.Micros / pgtext.UsPerDay
	d := int64(v.Days)
	v.Micros -= whole * pgtext.UsPerDay
	d += whole
	wm := d / 30
	d -= wm * 30
	m := int64(v.Months) + wm
	if m != int64(int32(m)) {
		return v, errIntervalRange()
	}
	if m > 0 && (d < 0 || d == 0 && v.Micros < 0) {
		d += 30
		m--
	} else if m < 0 && (d > 0 || d == 0 && v.Micros > 0) {
		d -= 30
		m++
	}
	if d > 0 && v.Micros < 0 {
		v.Micros += pgtext.UsPerDay
		d--
	} else if d < 0 && v.Micros > 0 {
		v.Micros -= pgtext.UsPerDay
		d++
	}
	v.Days, v.Months = int32(d), int32(m)
	return v, nil
}

func subTimestamps(a, b int64) (pgtext.Interval, error) {
	if tsInf(a) || tsInf(b) {
		return pgtext.Interval{}, pgerr.New(pgerr.DatetimeFieldOverflow, "cannot subtract infinite timestamps")
	}
	us, ok := sub64(a, b)
	if !ok {
		return pgtext.Interval{}, errIntervalRange()
	}
	return justifyHours(pgtext.Interval{Micros: us})
}

func dateToTS(d int64) (int64, error) {
	switch d {
	case pgtext.DateInfinity:
		return pgtext.TimestampInfinity, nil
	case pgtext.DateNegInfinity:
		return pgtext.TimestampNegInfinity, nil
	}
	if d >= pgtext.EndTimestamp/pgtext.UsPerDay {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range for timestamp")
	}
	return d * pgtext.UsPerDay, nil
}

func tsToDate(us int64) int64 {
	switch us {
	case pgtext.TimestampInfinity:
		return pgtext.DateInfinity
	case pgtext.TimestampNegInfinity:
		return pgtext.DateNegInfinity
	}
	d, _ := pgtext.SplitTimestamp(us)
	return d
}

func addDays(d, n int64) (int64, error) {
	if dateInf(d) {
		return d, nil
	}
	r := d + n
	if r < pgtext.MinDate || r > pgtext.MaxDate {
		return 0, errDateRange()
	}
	return r, nil
}

func wrapDay(us int64) int64 {
	us %= pgtext.UsPerDay
	if us < 0 {
		us += pgtext.UsPerDay
	}
	return us
}

// withCall makes a kernel whose row functions know the call, for time zones.
func withCall(mk func(c *Call) Kernel) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) { return mk(c)(c, args) }
}

func datetimeOps() []*Overload {
	var out []*Overload
	add := func(name string, a, b, ret types.Kind, k Kernel, doc string) *Overload {
		o := &Overload{Name: name, Args: []types.Type{types.Of(a), types.Of(b)}, Ret: types.Of(ret), Strict: true, Kernel: k, Doc: doc}
		out = append(out, o)
		return o
	}
	type iv = pgtext.Interval
	const (
		date, tim, ttz, ts, tz, ival = types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ, types.Interval
		i4, f8                       = types.Int4, types.Float8
	)
	add("+", date, i4, date, fn2(addDays), "A date some days later.")
	add("+", i4, date, date, fn2(func(n, d int64) (int64, error) { return addDays(d, n) }), "A date some days later.")
	add("-", date, i4, date, fn2(func(d, n int64) (int64, error) { return addDays(d, -n) }), "A date some days earlier.")
	add("-", date, date, i4, fn2(func(a, b int64) (int64, error) {
		if dateInf(a) || dateInf(b) {
			return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "cannot subtract infinite dates")
		}
		return a - b, nil
	}), "Days between two dates.")
	dateIv := func(d int64, v iv) (int64, error) {
		us, err := dateToTS(d)
		if err != nil {
			return 0, err
		}
		return AddInterval(us, v)
	}
	// The smallest values stay what they are; the sum is then out of range.
	minus := func(v iv, f func(iv) (int64, error)) (int64, error) {
		return f(iv{Micros: -v.Micros, Days: -v.Days, Months: -v.Months})
	}
	add("+", date, ival, ts, fn2(dateIv), "A date and an interval, as timestamp.")
	add("+", ival, date, ts, fn2(func(v iv, d int64) (int64, error) { return dateIv(d, v) }), "An interval and a date, as timestamp.")
	add("-", date, ival, ts, fn2(func(d int64, v iv) (int64, error) {
		return minus(v, func(n iv) (int64, error) { return dateIv(d, n) })
	}), "A date less an interval, as timestamp.")
	dateTime := func(d, t int64) (int64, error) {
		us, err := dateToTS(d)
		if err != nil || tsInf(us) {
			return us, err
		}
		return checkTS(us+t, true)
	}
	add("+", date, tim, ts, fn2(dateTime), "The timestamp at a date and time.")
	add("+", tim, date, ts, fn2(func(t, d int64) (int64, error) { return dateTime(d, t) }), "The timestamp at a time and date.")
	dateTimeTZ := func(d int64, t []byte) (int64, error) {
		us, west := pgtext.DecodeTimeTZ(t)
		r, err := dateTime(d, us)
		if err != nil || tsInf(r) {
			return r, err
		}
		return checkTS(r+int64(west)*pgtext.UsPerSecond, true)
	}
	add("+", date, ttz, tz, fn2(dateTimeTZ), "The instant at a date and time with time zone.")
	add("+", ttz, date, tz, fn2(func(t []byte, d int64) (int64, error) { return dateTimeTZ(d, t) }), "The instant at a time with time zone and date.")
	add("+", ts, ival, ts, fn2(AddInterval), "A timestamp later by an interval.")
	add("+", ival, ts, ts, fn2(func(v iv, t int64) (int64, error) { return AddInterval(t, v) }), "A timestamp later by an interval.")
	add("-", ts, ival, ts, fn2(func(t int64, v iv) (int64, error) {
		return minus(v, func(n iv) (int64, error) { return AddInterval(t, n) })
	}), "A timestamp earlier by an interval.")
	tzIv := func(swap, neg bool) Kernel {
		return withCall(func(c *Call) Kernel {
			z := sessionZone(c)
			f := func(t int64, v iv) (int64, error) {
				if neg {
					return minus(v, func(n iv) (int64, error) { return AddIntervalTZ(z, t, n) })
				}
				return AddIntervalTZ(z, t, v)
			}
			if swap {
				return fn2(func(v iv, t int64) (int64, error) { return f(t, v) })
			}
			return fn2(f)
		})
	}
	add("+", tz, ival, tz, tzIv(false, false), "An instant later by an interval.").Volatility = Stable
	add("+", ival, tz, tz, tzIv(true, false), "An instant later by an interval.").Volatility = Stable
	add("-", tz, ival, tz, tzIv(false, true), "An instant earlier by an interval.").Volatility = Stable
	add("-", ts, ts, ival, fn2(subTimestamps), "Time between two timestamps, in days and hours.")
	add("-", tz, tz, ival, fn2(subTimestamps), "Time between two instants, in days and hours.")
	add("+", tim, ival, tim, fn2(func(t int64, v iv) (int64, error) { return wrapDay(t + v.Micros%pgtext.UsPerDay), nil }), "A time of day later by an interval, modulo a day.")
	add("+", ival, tim, tim, fn2(func(v iv, t int64) (int64, error) { return wrapDay(t + v.Micros%pgtext.UsPerDay), nil }), "A time of day later by an interval, modulo a day.")
	add("-", tim, ival, tim, fn2(func(t int64, v iv) (int64, error) { return wrapDay(t - v.Micros%pgtext.UsPerDay), nil }), "A time of day earlier by an interval, modulo a day.")
	add("-", tim, tim, ival, fn2(func(a, b int64) (iv, error) { return iv{Micros: a - b}, nil }), "Time between two times of day.")
	ttzIv := func(sign int64) func(t []byte, v iv) ([]byte, error) {
		return func(t []byte, v iv) ([]byte, error) {
			us, west := pgtext.DecodeTimeTZ(t)
			return pgtext.EncodeTimeTZ(wrapDay(us+sign*(v.Micros%pgtext.UsPerDay)), west), nil
		}
	}
	add("+", ttz, ival, ttz, fn2(ttzIv(1)), "A time with time zone later by an interval.")
	add("+", ival, ttz, ttz, fn2(func(v iv, t []byte) ([]byte, error) { return ttzIv(1)(t, v) }), "A time with time zone later by an interval.")
	add("-", ttz, ival, ttz, fn2(ttzIv(-1)), "A time with time zone earlier by an interval.")
	add("+", ival, ival, ival, fn2(addIntervals), "Sum of two intervals.")
	add("-", ival, ival, ival, fn2(subIntervals), "Difference of two intervals.")
	add("*", ival, f8, ival, fn2(mulInterval), "An interval times a factor.")
	add("*", f8, ival, ival, fn2(func(f float64, v iv) (iv, error) { return mulInterval(v, f) }), "An interval times a factor.")
	add("/", ival, f8, ival, fn2(divInterval), "An interval divided by a number.")
	out = append(out, &Overload{Name: "-", Args: []types.Type{types.Of(ival)}, Ret: types.Of(ival), Strict: true, Kernel: fn1(negInterval), Doc: "Negation of an interval."})
	return out
}
