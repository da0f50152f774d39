package function

import (
	"errors"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// truncDate truncates a calendar day to a unit of a day or more.
func truncDate(u unit, days int64) (int64, bool) {
	y, m, _ := pgtext.CivilFromDays(int(days))
	switch u {
	case uDay:
		return days, true
	case uWeek:
		return days - (int64(pgtext.Weekday(days))+6)%7, true
	case uMonth:
	case uQuarter:
		m = 3*((m-1)/3) + 1
	case uYear:
		m = 1
	case uDecade:
		m = 1
		if y > 0 {
			y = y / 10 * 10
		} else {
			y = -((8 - (y - 1)) / 10) * 10
		}
	case uCentury:
		m = 1
		if y > 0 {
			y = (y+99)/100*100 - 99
		} else {
			y = -((99-(y-1))/100)*100 + 1
		}
	case uMillennium:
		m = 1
		if y > 0 {
			y = (y+999)/1000*1000 - 999
		} else {
			y = -((999-(y-1))/1000)*1000 + 1
		}
	default:
		return 0, false
	}
	return int64(pgtext.DaysFromCivil(y, m, 1)), true
}

func truncTOD(u unit, tod int64) (int64, bool) {
	switch u {
	case uMicro:
		return tod, true
	case uMilli:
		return tod / 1000 * 1000, true
	case uSecond:
		return tod / pgtext.UsPerSecond * pgtext.UsPerSecond, true
	case uMinute:
		return tod / pgtext.UsPerMinute * pgtext.UsPerMinute, true
	case uHour:
		return tod / pgtext.UsPerHour * pgtext.UsPerHour, true
	}
	return 0, false
}

// truncTimestamp truncates local microseconds; whole is true for units of a day
// or more.
func truncTimestamp(u unit, us int64) (r int64, whole, ok bool) {
	days, tod := pgtext.SplitTimestamp(us)
	if t, ok := truncTOD(u, tod); ok {
		return days*pgtext.UsPerDay + t, false, true
	}
	d, ok := truncDate(u, days)
	return d * pgtext.UsPerDay, true, ok
}

func truncInZone(z *pgtext.Zone, u unit, us int64) (int64, bool) {
	local := zoneToLocal(z, us)
	r, whole, ok := truncTimestamp(u, local)
	if !ok {
		return 0, false
	}
	if whole {
		return zoneToUTC(z, r), true
	}
	return r - (local - us), true
}

func truncInterval(u unit, v pgtext.Interval, name string) (pgtext.Interval, error) {
	y, m := v.Months/12, v.Months%12
	switch u {
	case uMillennium:
		return pgtext.Interval{Months: y / 1000 * 1000 * 12}, nil
	case uCentury:
		return pgtext.Interval{Months: y / 100 * 100 * 12}, nil
	case uDecade:
		return pgtext.Interval{Months: y / 10 * 10 * 12}, nil
	case uYear:
		return pgtext.Interval{Months: y * 12}, nil
	case uQuarter:
		return pgtext.Interval{Months: y*12 + m/3*3}, nil
	case uMonth:
		return pgtext.Interval{Months: v.Months}, nil
	case uDay:
		return pgtext.Interval{Months: v.Months, Days: v.Days}, nil
	}
	if t, ok := truncTOD(u, v.Micros); ok {
		v.Micros = t
		return v, nil
	}
	err := errUnit(u, name, types.Interval)
	var e *pgerr.Error
	if errors.As(err, &e) && u == uWeek {
		_ = e.WithDetail("Months usually have fractional weeks.")
	}
	return v, err
}

// zoneByName finds a zone by abbreviation, name or POSIX form.
func zoneByName(name string) (*time.Location, error) {
	if off, _, ok := pgtext.AbbrevOffset(name); ok {
		return time.FixedZone(strings.ToUpper(name), off), nil
	}
	if l, ok := pgtext.LoadZone(name); ok {
		return l, nil
	}
	// A bare offset: hours east of UTC for AT TIME ZONE '-05' reads as POSIX,
	// west.
	if off, ok := bareOffset(name); ok {
		return time.FixedZone("", off), nil
	}
	return nil, pgerr.New(pgerr.InvalidParameterValue, "time zone \"%s\" not recognized", name)
}

// bareOffset reads [+-]hh[:mm[:ss]] as POSIX does: positive is west.
func bareOffset(s string) (int, bool) {
	if s == "" || strings.Trim(s, "+-0123456789:.") != "" {
		return 0, false
	}
	l, ok := pgtext.LoadZone("<X>" + s)
	if !ok {
		return 0, false
	}
	_, off := time.Unix(0, 0).In(l).Zone()
	return off, true
}

func makeDate(y, m, d int64) (int64, bool) {
	bc := y < 0
	if bc {
		y = -y
	}
	if y == 0 || y > 6000000 || m < 1 || m > 12 || d < 1 {
		return 0, false
	}
	if bc {
		y = 1 - y
	}
	if d > int64(pgtext.DaysInMonth(int(y), int(m))) {
		return 0, false
	}
	r := int64(pgtext.DaysFromCivil(int(y), int(m), int(d)))
	return r, r >= pgtext.MinDate && r <= pgtext.MaxDate
}

func errDateField(y, m, d int64) error {
	if y > 0 && y <= math.MaxInt32 && m >= 1 && m <= 12 && d >= 1 && d <= int64(pgtext.DaysInMonth(int(y), int(m))) {
		return pgerr.New(pgerr.DatetimeFieldOverflow, "date out of range: %d-%02d-%02d", y, m, d)
	}
	return pgerr.New(pgerr.DatetimeFieldOverflow, "date field value out of range: %d-%02d-%02d", y, m, d)
}

func makeTOD(h, m int64, s float64) (int64, error) {
	us := math.RoundToEven(s * 1e6)
	bad := h < 0 || m < 0 || m > 59 || math.IsNaN(s) || s < 0 || s > 60 || h > 24
	if !bad {
		t := h*pgtext.UsPerHour + m*pgtext.UsPerMinute + int64(us)
		if t <= pgtext.UsPerDay {
			return t, nil
		}
	}
	return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "time field value out of range: %d:%02d:%s", h, m, formatG(s))
}

// formatG is printf's %02g with PostgreSQL's words for what is not finite.
func formatG(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	s := strconv.FormatFloat(f, 'g', 6, 64)
	if len(s) < 2 {
		s = "0" + s
	}
	return s
}

func makeTimestamp(y, mo, d, h, mi int64, s float64) (int64, error) {
	days, ok := makeDate(y, mo, d)
	if !ok {
		return 0, errDateField(y, mo, d)
	}
	tod, err := makeTOD(h, mi, s)
	if err != nil {
		return 0, err
	}
	if days >= pgtext.EndTimestamp/pgtext.UsPerDay {
		return 0, errTimestampRange()
	}
	return checkTS(days*pgtext.UsPerDay+tod, true)
}

// age is the difference of two timestamps in calendar units.
func age(a, b int64) (pgtext.Interval, error) {
	if tsInf(a) || tsInf(b) {
		return pgtext.Interval{}, errTimestampRange()
	}
	neg := a < b
	ad, at := pgtext.SplitTimestamp(a)
	bd, bt := pgtext.SplitTimestamp(b)
	ay, am, aday := pgtext.CivilFromDays(int(ad))
	by, bm, bday := pgtext.CivilFromDays(int(bd))
	y, m, d, t := ay-by, am-bm, aday-bday, at-bt
	if neg {
		y, m, d, t = -y, -m, -d, -t
	}
	for t < 0 {
		t += pgtext.UsPerDay
		d--
	}
	for d < 0 {
		if neg {
			d += pgtext.DaysInMonth(ay, am)
		} else {
			d += pgtext.DaysInMonth(by, bm)
		}
		m--
	}
	for m < 0 {
		m += 12
		y--
	}
	v := pgtext.Interval{Months: int32(y*12 + m), Days: int32(d), Micros: t}
	if neg {
		return negInterval(v)
	}
	return v, nil
}

func dateBin(stride pgtext.Interval, ts, origin int64) (int64, error) {
	if tsInf(ts) {
		return ts, nil
	}
	if tsInf(origin) {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "origin out of range")
	}
	if stride.Months != 0 {
		return 0, pgerr.New(pgerr.FeatureNotSupported, "timestamps cannot be binned into intervals containing months or years")
	}
	day, ok := mul64(int64(stride.Days), pgtext.UsPerDay)
	step, ok2 := add64(day, stride.Micros)
	if !ok || !ok2 {
		return 0, errIntervalRange()
	}
	if step <= 0 {
		return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "stride must be greater than zero")
	}
	diff, ok := sub64(ts, origin)
	if !ok {
		return 0, errIntervalRange()
	}
	mod := diff % step
	r := ts - mod
	if mod < 0 {
		r -= step
	}
	return checkTS(r, true)
}

// clock makes the functions of the current time.
func clock(name string, ret types.Type, v Volatility, f func(c *Call) types.Datum, doc string) []*Overload {
	k := constFn(func(c *Call) (types.Datum, error) { return f(c), nil })
	if v == Volatile {
		k = volatileFn(func(c *Call, _ []types.Datum) (types.Datum, error) { return f(c), nil })
	}
	return []*Overload{{Name: name, Ret: ret, Volatility: v, Kernel: k, Doc: doc}}
}

func envNow(c *Call) time.Time {
	if c.Env == nil {
		return time.Now()
	}
	return c.Env.Now()
}

func localMicros(c *Call, t time.Time) int64 { return zoneToLocal(sessionZone(c), t.UnixMicro()) }

func dateFunctions() []*Overload {
	var out []*Overload
	tDate, tTime, tTTZ := types.Of(types.Date), types.Of(types.Time), types.Of(types.TimeTZ)
	tTS, tTZ, tIV := types.Of(types.Timestamp), types.Of(types.TimestampTZ), types.Of(types.Interval)
	add := func(name string, ret types.Type, k Kernel, doc string, args ...types.Type) *Overload {
		o := def(name, ret, k, doc, args...)
		out = append(out, o)
		return o
	}
	stable := func(o *Overload) *Overload { o.Volatility = Stable; return o }
	// The current time.
	now := func(c *Call) types.Datum { return envNow(c).UnixMicro() }
	for _, n := range []string{"now", "transaction_timestamp", "current_timestamp"} {
		out = append(out, clock(n, tTZ, Stable, now, "The start of the transaction.")...)
	}
	out = append(out, clock("statement_timestamp", tTZ, Stable, func(c *Call) types.Datum {
		if c.Env == nil {
			return time.Now().UnixMicro()
		}
		return c.Env.StatementTime().UnixMicro()
	}, "The start of the statement.")...)
	out = append(out, clock("clock_timestamp", tTZ, Volatile, func(*Call) types.Datum { return time.Now().UnixMicro() }, "The time now.")...)
	out = append(out, clock("timeofday", tText, Volatile, func(c *Call) types.Datum {
		return time.Now().In(sessionLocation(c)).Format("Mon Jan 02 15:04:05.000000 2006 MST")
	}, "The time now, as text.")...)
	tod := func(c *Call) int64 { _, t := pgtext.SplitTimestamp(localMicros(c, envNow(c))); return t }
	todTZ := func(c *Call, us int64) types.Datum {
		sec := envNow(c).Unix()
		off, _ := sessionZone(c).Offset(sec)
		return pgtext.EncodeTimeTZ(us, int32(-off))
	}
	out = append(out, clock("current_date", tDate, Stable, func(c *Call) types.Datum {
		d, _ := pgtext.SplitTimestamp(localMicros(c, envNow(c)))
		return d
	}, "The date at the start of the transaction.")...)
	out = append(out, clock("current_time", tTTZ, Stable, func(c *Call) types.Datum { return todTZ(c, tod(c)) }, "The time of day at the start of the transaction.")...)
	out = append(out, clock("localtime", tTime, Stable, func(c *Call) types.Datum { return tod(c) }, "The time of day at the start of the transaction.")...)
	out = append(out, clock("localtimestamp", tTS, Stable, func(c *Call) types.Datum { return localMicros(c, envNow(c)) }, "The start of the transaction in local time.")...)
	prec := func(name string, ret types.Type, f func(c *Call, p int) types.Datum) {
		out = append(out, &Overload{Name: name, Args: []types.Type{tInt4}, Ret: ret, Strict: true, Volatility: Stable, Doc: "The start of the transaction, with some digits of the second.",
			Kernel: strictRowFn(func(c *Call, a []types.Datum) (types.Datum, error) { return f(c, int(a[0].(int64))), nil })})
	}
	prec("current_timestamp", tTZ, func(c *Call, p int) types.Datum { return pgtext.RoundMicros(envNow(c).UnixMicro(), p) })
	prec("localtimestamp", tTS, func(c *Call, p int) types.Datum { return pgtext.RoundMicros(localMicros(c, envNow(c)), p) })
	prec("current_time", tTTZ, func(c *Call, p int) types.Datum { return todTZ(c, pgtext.RoundMicros(tod(c), p)) })
	prec("localtime", tTime, func(c *Call, p int) types.Datum { return pgtext.RoundMicros(tod(c), p) })
	// date_trunc.
	unitErr := func(u unit, name string, k types.Kind) error { return errUnit(u, name, k) }
	add("date_trunc", tTS, truncKernel(types.Timestamp), "The timestamp cut to a unit.", tText, tTS)
	stable(add("date_trunc", tTZ, truncKernel(types.TimestampTZ), "The instant cut to a unit, in the session's zone.", tText, tTZ))
	stable(add("date_trunc", tTZ, fn3(func(name string, us int64, zone string) (int64, error) {
		if tsInf(us) {
			return us, nil
		}
		l, err := zoneByName(zone)
		if err != nil {
			return 0, err
		}
		u := truncUnit(name)
		r, ok := truncInZone(pgtext.NewZone(l), u, us)
		if !ok {
			return 0, unitErr(u, name, types.TimestampTZ)
		}
		return r, nil
	}), "The instant cut to a unit, in a zone.", tText, tTZ, tText))
	add("date_trunc", tIV, fn2(func(name string, v pgtext.Interval) (pgtext.Interval, error) {
		return truncInterval(truncUnit(name), v, name)
	}), "The interval cut to a unit.", tText, tIV)
	add("date_bin", tTS, fn3(dateBin), "The start of the bin, of equal width, that a timestamp falls into.", tIV, tTS, tTS)
	add("date_bin", tTZ, fn3(dateBin), "The start of the bin, of equal width, that an instant falls into.", tIV, tTZ, tTZ)
	// age.
	add("age", tIV, fn2(age), "Difference of two timestamps in years, months and days.", tTS, tTS)
	zoned2 := func(f func(a, b int64) (pgtext.Interval, error)) Kernel {
		return withCall(func(c *Call) Kernel {
			z := sessionZone(c)
			return fn2(func(a, b int64) (pgtext.Interval, error) {
				if tsInf(a) || tsInf(b) {
					return f(a, b)
				}
				return f(zoneToLocal(z, a), zoneToLocal(z, b))
			})
		})
	}
	stable(add("age", tIV, zoned2(age), "Difference of two instants in years, months and days.", tTZ, tTZ))
	today := func(c *Call) int64 {
		d, _ := pgtext.SplitTimestamp(localMicros(c, envNow(c)))
		return d * pgtext.UsPerDay
	}
	stable(add("age", tIV, withCall(func(c *Call) Kernel {
		t := today(c)
		return fn1(func(b int64) (pgtext.Interval, error) { return age(t, b) })
	}), "Difference of today and a timestamp.", tTS))
	stable(add("age", tIV, withCall(func(c *Call) Kernel {
		t, z := today(c), sessionZone(c)
		return fn1(func(b int64) (pgtext.Interval, error) { return age(t, zoneToLocal(z, b)) })
	}), "Difference of today and an instant.", tTZ))
	// Making values.
	named := func(o *Overload, names string, defaults int) *Overload {
		o.ArgNames, o.Defaults = strings.Fields(names), defaults
		return o
	}
	named(add("make_date", tDate, fn3(func(y, m, d int64) (int64, error) {
		r, ok := makeDate(y, m, d)
		if !ok {
			if y < 0 && y != math.MinInt32 {
				y++ // as PostgreSQL prints years before Christ here
			}
			return 0, errDateField(y, m, d)
		}
		return r, nil
	}), "A date from year, month and day.", tInt4, tInt4, tInt4), "year month day", 0)
	named(add("make_time", tTime, fn3(func(h, m int64, s float64) (int64, error) { return makeTOD(h, m, s) }), "A time from hour, minute and second.", tInt4, tInt4, tF8), "hour min sec", 0)
	six := []types.Type{tInt4, tInt4, tInt4, tInt4, tInt4, tF8}
	ymd := func(a []types.Datum) (int64, error) {
		return makeTimestamp(a[0].(int64), a[1].(int64), a[2].(int64), a[3].(int64), a[4].(int64), a[5].(float64))
	}
	datum := func(v int64, err error) (types.Datum, error) {
		if err != nil {
			return nil, err
		}
		return v, nil
	}
	named(add("make_timestamp", tTS, strictRowFn(func(_ *Call, a []types.Datum) (types.Datum, error) { return datum(ymd(a)) }), "A timestamp from its fields.", six...), "year month mday hour min sec", 0)
	named(stable(add("make_timestamptz", tTZ, strictRowFn(func(c *Call, a []types.Datum) (types.Datum, error) {
		v, err := ymd(a)
		if err != nil {
			return nil, err
		}
		return zoneToUTC(sessionZone(c), v), nil
	}), "An instant from its fields in the session's zone.", six...)), "year month mday hour min sec", 0)
	named(stable(add("make_timestamptz", tTZ, strictRowFn(func(_ *Call, a []types.Datum) (types.Datum, error) {
		v, err := ymd(a)
		if err != nil {
			return nil, err
		}
		l, err := zoneByName(a[6].(string))
		if err != nil {
			return nil, err
		}
		return zoneToUTC(pgtext.NewZone(l), v), nil
	}), "An instant from its fields in a zone.", append(append([]types.Type{}, six...), tText)...)), "year month mday hour min sec timezone", 0)
	named(add("make_interval", tIV, strictRowFn(makeInterval), "An interval from its parts.", tInt4, tInt4, tInt4, tInt4, tInt4, tInt4, tF8), "years months weeks days hours mins secs", 7)
	add("justify_hours", tIV, fn1(justifyHours), "The interval with 24 hours as a day.", tIV)
	add("justify_days", tIV, fn1(justifyDays), "The interval with 30 days as a month.", tIV)
	add("justify_interval", tIV, fn1(justifyInterval), "The interval with hours as days and days as months.", tIV)
	add("to_timestamp", tTZ, fn1(func(f float64) (int64, error) {
		switch {
		case math.IsNaN(f):
			return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp cannot be NaN")
		case math.IsInf(f, 1):
			return pgtext.TimestampInfinity, nil
		case math.IsInf(f, -1):
			return pgtext.TimestampNegInfinity, nil
		}
		us := math.RoundToEven(f * 1e6)
		if us < pgtext.MinTimestamp || us >= float64(pgtext.EndTimestamp) {
			return 0, pgerr.New(pgerr.DatetimeFieldOverflow, "timestamp out of range: \"%g\"", f)
		}
		return int64(us), nil
	}), "The instant so many seconds behind 1970.", tF8)
	// Zones.
	add("timezone", tTZ, zoneKernel(func(z *pgtext.Zone, us int64) int64 { return zoneToUTC(z, us) }), "The instant of a local time in a zone.", tText, tTS)
	add("timezone", tTS, zoneKernel(func(z *pgtext.Zone, us int64) int64 { return zoneToLocal(z, us) }), "The local time of an instant in a zone.", tText, tTZ)
	ivZone := func(f func(z *pgtext.Zone, us int64) int64) Kernel {
		return fn2(func(v pgtext.Interval, us int64) (int64, error) {
			if tsInf(us) {
				return us, nil
			}
			z, err := intervalZone(v)
			if err != nil {
				return 0, err
			}
			return checkTS(f(z, us), true)
		})
	}
	add("timezone", tTZ, ivZone(zoneToUTC), "The instant of a local time at an offset.", tIV, tTS)
	add("timezone", tTS, ivZone(zoneToLocal), "The local time of an instant at an offset.", tIV, tTZ)
	stable(add("timezone", tTTZ, withCall(func(c *Call) Kernel {
		sec := envNow(c).Unix()
		return fn2(func(name string, t []byte) ([]byte, error) {
			l, err := zoneByName(name)
			if err != nil {
				return nil, err
			}
			off, _ := pgtext.NewZone(l).Offset(sec)
			us, west := pgtext.DecodeTimeTZ(t)
			return pgtext.EncodeTimeTZ(wrapDay(us+int64(west+int32(off))*pgtext.UsPerSecond), int32(-off)), nil
		})
	}), "A time with time zone moved to a zone.", tText, tTTZ))
	add("timezone", tTTZ, fn2(func(v pgtext.Interval, t []byte) ([]byte, error) {
		z, err := intervalZone(v)
		if err != nil {
			return nil, err
		}
		off, _ := z.Offset(0)
		us, west := pgtext.DecodeTimeTZ(t)
		return pgtext.EncodeTimeTZ(wrapDay(us+int64(west+int32(off))*pgtext.UsPerSecond), int32(-off)), nil
	}), "A time with time zone moved to an offset.", tIV, tTTZ)
	finite := fn1(func(us int64) (bool, error) { return !tsInf(us), nil })
	add("isfinite", tBool, finite, "Whether a timestamp is not infinite.", tTS)
	add("isfinite", tBool, finite, "Whether an instant is not infinite.", tTZ)
	add("isfinite", tBool, fn1(func(d int64) (bool, error) { return !dateInf(d), nil }), "Whether a date is not infinite.", tDate)
	add("isfinite", tBool, fn1(func(pgtext.Interval) (bool, error) { return true, nil }), "Whether an interval is not infinite.", tIV)
	// overlaps.
	type addFn func(c *Call, v int64, i pgtext.Interval) (int64, error)
	over := func(t types.Type, plus addFn, v Volatility) {
		for m := 0; m < 4; m++ {
			if m > 0 && plus == nil {
				break
			}
			args := []types.Type{t, t, t, t}
			if m&1 != 0 {
				args[1] = tIV
			}
			if m&2 != 0 {
				args[3] = tIV
			}
			out = append(out, &Overload{Name: "overlaps", Args: args, Ret: tBool, Volatility: v, Doc: "Whether two periods overlap.",
				Kernel: rowFn(func(c *Call, a []types.Datum) (types.Datum, error) { return overlapsRow(c, a, plus) })})
		}
	}
	over(tTS, func(_ *Call, v int64, i pgtext.Interval) (int64, error) { return AddInterval(v, i) }, Immutable)
	over(tTZ, func(c *Call, v int64, i pgtext.Interval) (int64, error) { return AddIntervalTZ(sessionZone(c), v, i) }, Stable)
	over(tTime, func(_ *Call, v int64, i pgtext.Interval) (int64, error) { return wrapDay(v + i.Micros), nil }, Immutable)
	return out
}

// truncUnit is the unit that date_trunc knows by a name: those of intervals.
func truncUnit(name string) unit {
	switch u := unitOf(name); u {
	case uEpoch, uJulian, uISODOW, uISOYear, uDOW, uDOY:
		return uNone
	default:
		return u
	}
}

func truncKernel(k types.Kind) Kernel {
	return withCall(func(c *Call) Kernel {
		z := sessionZone(c)
		return fn2(func(name string, us int64) (int64, error) {
			if tsInf(us) {
				return us, nil
			}
			u := truncUnit(name)
			var r int64
			var ok bool
			if k == types.TimestampTZ {
				r, ok = truncInZone(z, u, us)
			} else {
				r, _, ok = truncTimestamp(u, us)
			}
			if !ok {
				return 0, errUnit(u, name, k)
			}
			return r, nil
		})
	})
}

// zoneKernel is timezone(text, x): the zone is looked up once when constant.
func zoneKernel(f func(z *pgtext.Zone, us int64) int64) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		var z *pgtext.Zone
		last := ""
		return fn2(func(name string, us int64) (int64, error) {
			if tsInf(us) {
				return us, nil
			}
			if z == nil || name != last {
				l, err := zoneByName(name)
				if err != nil {
					return 0, err
				}
				z, last = pgtext.NewZone(l), name
			}
			return checkTS(f(z, us), true)
		})(c, args)
	}
}

func intervalZone(v pgtext.Interval) (*pgtext.Zone, error) {
	if v.Months != 0 || v.Days != 0 {
		return nil, pgerr.New(pgerr.InvalidParameterValue, "interval time zone \"%s\" must not include months or days", pgtext.AppendInterval(nil, v, nil))
	}
	return pgtext.NewZone(time.FixedZone("", int(v.Micros/pgtext.UsPerSecond))), nil
}

func makeInterval(_ *Call, a []types.Datum) (types.Datum, error) {
	years, months, weeks, days := intArg(a, 0, 0), intArg(a, 1, 0), intArg(a, 2, 0), intArg(a, 3, 0)
	hours, mins := intArg(a, 4, 0), intArg(a, 5, 0)
	secs := 0.0
	if len(a) > 6 {
		secs = a[6].(float64)
	}
	if math.IsInf(secs, 0) || math.IsNaN(secs) {
		return nil, errIntervalRange()
	}
	// Months and days wrap, as in PostgreSQL 15.
	m, d := int32(years*12+months), int32(weeks*7+days)
	us := math.RoundToEven(secs * 1e6)
	t := hours*pgtext.UsPerHour + mins*pgtext.UsPerMinute
	if math.Abs(us) >= math.MaxInt64 {
		return nil, errIntervalRange()
	}
	t, ok := add64(t, int64(us))
	if !ok {
		return nil, errIntervalRange()
	}
	return pgtext.Interval{Micros: t, Days: d, Months: m}.Bytes(), nil
}

// overlapsRow is SQL's OVERLAPS, with its rule for NULL ends.
func overlapsRow(c *Call, a []types.Datum, plus func(c *Call, v int64, i pgtext.Interval) (int64, error)) (types.Datum, error) {
	v := [4]*int64{}
	for i := 0; i < 4; i++ {
		switch x := a[i].(type) {
		case int64:
			y := x
			if argType(c, i).IsNanos() {
				y = pgtext.FloorMicros(y)
			}
			v[i] = &y
		case []byte:
			if v[i-1] != nil {
				y, err := plus(c, *v[i-1], pgtext.DecodeInterval(x))
				if err != nil {
					return nil, err
				}
				v[i] = &y
			}
		}
	}
	order := func(s, e *int64) (*int64, *int64, bool) {
		if s == nil {
			if e == nil {
				return nil, nil, false
			}
			return e, nil, true
		}
		if e != nil && *s > *e {
			return e, s, true
		}
		return s, e, true
	}
	ts1, te1, ok1 := order(v[0], v[1])
	ts2, te2, ok2 := order(v[2], v[3])
	if !ok1 || !ok2 {
		return nil, nil
	}
	switch {
	case *ts1 > *ts2:
		if te2 == nil {
			return nil, nil
		}
		if *ts1 < *te2 {
			return true, nil
		}
		if te1 == nil {
			return nil, nil
		}
		return false, nil
	case *ts1 < *ts2:
		if te1 == nil {
			return nil, nil
		}
		if *ts2 < *te1 {
			return true, nil
		}
		if te2 == nil {
			return nil, nil
		}
		return false, nil
	}
	if te1 == nil || te2 == nil {
		return nil, nil
	}
	return true, nil
}
