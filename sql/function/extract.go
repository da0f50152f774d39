package function

import (
	"math"
	"strings"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/pgerr"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
)

// extract and date_part. A part is a scaled integer: extract makes a numeric of
// it, date_part a float8. Parts of infinite values are NULL or infinite.

type part struct {
	v     int64
	scale int32
	inf   int // -1, 1: infinite
	null  bool
	dec   *numeric.Dec // julian, big epochs
}

type unit uint8

const (
	uNone unit = iota
	uMicro
	uMilli
	uSecond
	uMinute
	uHour
	uDay
	uWeek
	uMonth
	uQuarter
	uYear
	uDecade
	uCentury
	uMillennium
	uJulian
	uISOYear
	uDOW
	uISODOW
	uDOY
	uEpoch
	uTZ
	uTZHour
	uTZMinute
)

var units = map[string]unit{
	"us": uMicro, "usec": uMicro, "usecs": uMicro, "useconds": uMicro, "microsecon": uMicro,
	"ms": uMilli, "msec": uMilli, "msecs": uMilli, "mseconds": uMilli, "millisecon": uMilli,
	"s": uSecond, "sec": uSecond, "secs": uSecond, "second": uSecond, "seconds": uSecond,
	"m": uMinute, "min": uMinute, "mins": uMinute, "minute": uMinute, "minutes": uMinute,
	"h": uHour, "hr": uHour, "hrs": uHour, "hour": uHour, "hours": uHour,
	"d": uDay, "day": uDay, "days": uDay, "w": uWeek, "week": uWeek, "weeks": uWeek,
	"mon": uMonth, "mons": uMonth, "month": uMonth, "months": uMonth, "qtr": uQuarter, "quarter": uQuarter,
	"y": uYear, "yr": uYear, "yrs": uYear, "year": uYear, "years": uYear,
	"dec": uDecade, "decs": uDecade, "decade": uDecade, "decades": uDecade,
	"c": uCentury, "cent": uCentury, "century": uCentury, "centuries": uCentury,
	"mil": uMillennium, "mils": uMillennium, "millennium": uMillennium, "millennia": uMillennium,
	"j": uJulian, "jd": uJulian, "julian": uJulian, "isoyear": uISOYear, "dow": uDOW, "isodow": uISODOW, "doy": uDOY, "epoch": uEpoch,
	"timezone": uTZ, "timezone_h": uTZHour, "timezone_m": uTZMinute,
}

func unitOf(s string) unit {
	s = strings.ToLower(s)
	if len(s) > 10 {
		s = s[:10]
	}
	return units[s]
}

func errUnit(u unit, name string, t types.Kind) error {
	if u == uNone {
		return pgerr.New(pgerr.InvalidParameterValue, "unit \"%s\" not recognized for type %s", strings.ToLower(name), types.InfoOf(t).SQLName)
	}
	return pgerr.New(pgerr.FeatureNotSupported, "unit \"%s\" not supported for type %s", strings.ToLower(name), types.InfoOf(t).SQLName)
}

// isoWeek returns the ISO year and week of a day.
func isoWeek(days int64) (year, week int) {
	// The Thursday of the same week decides.
	wd := (int64(pgtext.Weekday(days)) + 6) % 7 // Monday 0
	th := days - wd + 3
	y, _, _ := pgtext.CivilFromDays(int(th))
	jan1 := int64(pgtext.DaysFromCivil(y, 1, 1))
	return y, int((th-jan1)/7) + 1
}

// infinitePart is the part of an infinite date or timestamp.
func infinitePart(u unit, sign int) part {
	switch u {
	case uYear, uDecade, uCentury, uMillennium, uJulian, uISOYear, uEpoch:
		return part{inf: sign}
	}
	return part{null: true}
}

// datePart is the part of a calendar day; ok is false for units of time.
func datePart(u unit, days int64) (p part, ok bool) {
	y, m, d := pgtext.CivilFromDays(int(days))
	v := 0
	switch u {
	case uDay:
		v = d
	case uMonth:
		v = m
	case uQuarter:
		v = (m-1)/3 + 1
	case uWeek:
		_, v = isoWeek(days)
	case uYear:
		v = y
		if y <= 0 {
			v = y - 1
		}
	case uISOYear:
		if v, _ = isoWeek(days); v <= 0 {
			v--
		}
	case uDecade:
		if y >= 0 {
			v = y / 10
		} else {
			v = -((8 - (y - 1)) / 10)
		}
	case uCentury:
		if y > 0 {
			v = (y + 99) / 100
		} else {
			v = -((99 - (y - 1)) / 100)
		}
	case uMillennium:
		if y > 0 {
			v = (y + 999) / 1000
		} else {
			v = -((999 - (y - 1)) / 1000)
		}
	case uDOW:
		v = pgtext.Weekday(days)
	case uISODOW:
		if v = pgtext.Weekday(days); v == 0 {
			v = 7
		}
	case uDOY:
		v = int(days) - pgtext.DaysFromCivil(y, 1, 1) + 1
	case uJulian:
		v = int(days) + 2440588
	default:
		return part{}, false
	}
	return part{v: int64(v)}, true
}

// todPart is the part of a time of day in microseconds.
func todPart(u unit, us int64) (p part, ok bool) {
	switch u {
	case uMicro:
		return part{v: us % pgtext.UsPerMinute}, true
	case uMilli:
		return part{v: us % pgtext.UsPerMinute, scale: 3}, true
	case uSecond:
		return part{v: us % pgtext.UsPerMinute, scale: 6}, true
	case uMinute:
		return part{v: us / pgtext.UsPerMinute % 60}, true
	case uHour:
		return part{v: us / pgtext.UsPerHour}, true
	}
	return part{}, false
}

func zonePart(u unit, off int) (p part, ok bool) {
	switch u {
	case uTZ:
		return part{v: int64(off)}, true
	case uTZHour:
		return part{v: int64(off / 3600)}, true
	case uTZMinute:
		return part{v: int64(off / 60 % 60)}, true
	}
	return part{}, false
}

func timestampPart(u unit, us int64) (p part, ok bool) {
	days, tod := pgtext.SplitTimestamp(us)
	if p, ok = todPart(u, tod); ok {
		return p, ok
	}
	switch u {
	case uEpoch:
		return part{v: us, scale: 6}, true
	case uJulian:
		q, _ := numeric.Div(numeric.FromInt64(tod), numeric.FromInt64(pgtext.UsPerDay))
		return part{dec: numeric.Add(numeric.FromInt64(days+2440588), q)}, true
	}
	return datePart(u, days)
}

func intervalPart(u unit, v pgtext.Interval) (p part, ok bool) {
	y, m := v.Months/12, v.Months%12
	switch u {
	case uMicro, uMilli, uSecond, uMinute:
		return todPart(u, v.Micros%pgtext.UsPerHour)
	case uHour:
		return part{v: v.Micros / pgtext.UsPerHour}, true
	case uDay:
		return part{v: int64(v.Days)}, true
	case uMonth:
		return part{v: int64(m)}, true
	case uQuarter:
		return part{v: int64(m/3) + 1}, true
	case uYear:
		return part{v: int64(y)}, true
	case uDecade:
		return part{v: int64(y / 10)}, true
	case uCentury:
		return part{v: int64(y / 100)}, true
	case uMillennium:
		return part{v: int64(y / 1000)}, true
	case uEpoch:
		sec := (int64(y)*1461 + int64(m)*120 + int64(v.Days)*4) * 21600
		d := numeric.FromInt64(sec)
		us := numeric.FromInt64(v.Micros)
		us.Scale = 6
		return part{dec: numeric.Add(d, us)}, true
	}
	return part{}, false
}

// partsOf returns the function that finds a part of row i.
func partsOf(c *Call, name string, v vec.Vec, t types.Type) (func(i int) (part, error), error) {
	u := unitOf(name)
	if u == uNone {
		// extract(year from x) and date_part('year', x) take any case.
		return nil, errUnit(u, name, t.Kind)
	}
	fail := errUnit(u, name, t.Kind)
	wrap := func(p part, ok bool) (part, error) {
		if !ok {
			return p, fail
		}
		return p, nil
	}
	switch t.Kind {
	case types.Date:
		r := reader[int64](v, t)
		return func(i int) (part, error) {
			d := r(i)
			switch u {
			case uMicro, uMilli, uSecond, uMinute, uHour, uTZ, uTZHour, uTZMinute:
				return part{}, fail
			}
			if dateInf(d) {
				return infinitePart(u, sign64(d)), nil
			}
			if u == uEpoch {
				return part{v: d * 86400}, nil
			}
			return wrap(datePart(u, d))
		}, nil
	case types.Time:
		r := reader[int64](v, t)
		return func(i int) (part, error) {
			if u == uEpoch {
				return part{v: r(i), scale: 6}, nil
			}
			return wrap(todPart(u, r(i)))
		}, nil
	case types.TimeTZ:
		r := reader[[]byte](v, t)
		return func(i int) (part, error) {
			us, west := pgtext.DecodeTimeTZ(r(i))
			if u == uEpoch {
				return part{v: us + int64(west)*pgtext.UsPerSecond, scale: 6}, nil
			}
			if p, ok := zonePart(u, -int(west)); ok {
				return p, nil
			}
			return wrap(todPart(u, us))
		}, nil
	case types.Timestamp:
		r := reader[int64](v, t)
		return func(i int) (part, error) {
			us := r(i)
			if tsInf(us) {
				return infinitePart(u, sign64(us)), nil
			}
			return wrap(timestampPart(u, us))
		}, nil
	case types.TimestampTZ:
		r := reader[int64](v, t)
		z := sessionZone(c)
		return func(i int) (part, error) {
			us := r(i)
			if tsInf(us) {
				return infinitePart(u, sign64(us)), nil
			}
			if u == uEpoch {
				return part{v: us, scale: 6}, nil
			}
			local := zoneToLocal(z, us)
			if p, ok := zonePart(u, int((local-us)/pgtext.UsPerSecond)); ok {
				return p, nil
			}
			return wrap(timestampPart(u, local))
		}, nil
	case types.Interval:
		r := reader[pgtext.Interval](v, t)
		return func(i int) (part, error) { return wrap(intervalPart(u, r(i))) }, nil
	}
	return nil, fail
}

func sign64(v int64) int {
	if v < 0 {
		return -1
	}
	return 1
}

func (p part) decimal() *numeric.Dec {
	switch {
	case p.dec != nil:
		return p.dec
	case p.inf > 0:
		return &numeric.Dec{Form: numeric.PosInf}
	case p.inf < 0:
		return &numeric.Dec{Form: numeric.NegInf}
	}
	d := numeric.FromInt64(p.v)
	d.Scale = p.scale
	return d
}

func (p part) float() float64 {
	switch {
	case p.inf != 0:
		return math.Inf(p.inf)
	case p.dec != nil:
		return p.dec.Float64()
	case p.scale == 0:
		return float64(p.v)
	case p.scale == 3:
		return float64(p.v) / 1e3
	}
	return float64(p.v) / 1e6
}

// partKernel evaluates extract (numeric) or date_part (float8).
func partKernel(asFloat bool) Kernel {
	return func(c *Call, args []vec.Vec) (arrow.Array, error) {
		if !asFloat && args[0].Const && !args[1].Const && !args[0].Arr.IsNull(0) {
			if a := calendarParts(c, args); a != nil {
				return a, nil
			}
		}
		if asFloat && argType(c, 1).Kind == types.Date {
			// date_part of a date is that of the timestamp.
			sub := *c
			sub.Ret, sub.ArgTypes, sub.State = types.Of(types.Timestamp), argTypesOf(c)[1:], nil
			ts, err := castTable[castKey{types.Date, types.Timestamp}].kernel(&sub, args[1:])
			if err != nil {
				return nil, err
			}
			d := *c
			d.ArgTypes = []types.Type{argType(c, 0), sub.Ret}
			return partKernel(true)(&d, []vec.Vec{args[0], {Arr: ts, Const: args[1].Const}})
		}
		n := rowsOf(c, args)
		valid, none := strictValid(n, args)
		if none {
			return nullResult(c, n)
		}
		var parts func(i int) (part, error)
		if !args[0].Const {
			// A unit per row: rare.
			names := reader[string](args[0], argType(c, 0))
			parts = func(i int) (part, error) {
				f, err := partsOf(c, names(i), args[1], argType(c, 1))
				if err != nil {
					return part{}, err
				}
				return f(i)
			}
		} else {
			var err error
			name := reader[string](args[0], argType(c, 0))(0)
			if parts, err = partsOf(c, name, args[1], argType(c, 1)); err != nil {
				return nil, err
			}
		}
		if asFloat {
			w := newWriter[float64](c, n)
			err := each(c, n, selOf(c, args), &valid, func(i int) error {
				p, err := parts(i)
				if err == nil && p.null {
					return errNull
				}
				if err != nil {
					return err
				}
				return w.set(i, p.float())
			})
			if err != nil {
				return nil, err
			}
			return w.done(valid), nil
		}
		w := &bytesWriter{dt: arrow.BinaryTypes.Binary, off: make([]int32, 1, n+1), n: n, data: make([]byte, 0, 8*n)}
		err := each(c, n, selOf(c, args), &valid, func(i int) error {
			p, err := parts(i)
			if err != nil {
				return err
			}
			if p.null {
				return errNull
			}
			w.pad(i)
			if p.dec != nil || p.inf != 0 {
				w.data = numeric.AppendEncoded(w.data, p.decimal())
			} else {
				w.data = numeric.AppendInt64(w.data, p.v, p.scale)
			}
			w.end()
			return nil
		})
		if err != nil {
			return nil, err
		}
		return w.done(valid), nil
	}
}

func extracts() []*Overload {
	var out []*Overload
	for _, k := range []types.Kind{types.Date, types.Time, types.TimeTZ, types.Timestamp, types.TimestampTZ, types.Interval} {
		v := Immutable
		if k == types.TimestampTZ {
			v = Stable
		}
		args := []types.Type{types.Of(types.Text), types.Of(k)}
		out = append(out,
			&Overload{Name: "extract", Args: args, Ret: types.Of(types.Numeric), Strict: true, Volatility: v, Kernel: partKernel(false), Doc: "Part of a date or time, as numeric."},
			&Overload{Name: "date_part", Args: args, Ret: types.Of(types.Float8), Strict: true, Volatility: v, Kernel: partKernel(true), Doc: "Part of a date or time, as double precision."})
	}
	return out
}

// argTypesOf is c.ArgTypes with at least two entries.
func argTypesOf(c *Call) []types.Type {
	return []types.Type{argType(c, 0), argType(c, 1)}
}

// calendarParts is extract of a part of the calendar day from a column of dates
// or timestamps, in one loop; nil when it is something else, or when a value is
// infinite.
func calendarParts(c *Call, args []vec.Vec) arrow.Array {
	u := unitOf(reader[string](args[0], argType(c, 0))(0))
	switch u {
	case uYear, uMonth, uDay, uQuarter, uWeek, uDOW, uISODOW, uDOY:
	default:
		return nil
	}
	n := c.N
	var days32 []int32
	var us []int64
	switch argType(c, 1).Kind {
	case types.Date:
		days32 = vec.ViewOf[int32](vec.Decode(args[1].Arr)).V
	case types.Timestamp:
		if tsNanos(args[1]) {
			return nil
		}
		us = vec.ViewOf[int64](vec.Decode(args[1].Arr)).V
	default:
		return nil
	}
	valid := vec.ValidCopy(args[1].Arr)
	off := make([]int32, n+1)
	data := make([]byte, 0, 8*n)
	for i := 0; i < n; i++ {
		if valid != nil && !vec.BitAt(valid, i) {
			off[i+1] = int32(len(data))
			continue
		}
		var d int64
		if days32 != nil {
			if d = int64(days32[i]); dateInf(d) {
				return nil
			}
		} else {
			if tsInf(us[i]) {
				return nil
			}
			d, _ = pgtext.SplitTimestamp(us[i])
		}
		v := int64(0)
		switch u {
		case uYear, uMonth, uDay, uQuarter:
			y, m, day := pgtext.CivilFromDays(int(d))
			switch u {
			case uYear:
				if v = int64(y); y <= 0 {
					v--
				}
			case uMonth:
				v = int64(m)
			case uDay:
				v = int64(day)
			default:
				v = int64(m-1)/3 + 1
			}
		default:
			p, _ := datePart(u, d)
			v = p.v
		}
		data = numeric.AppendInt64(data, v, 0)
		off[i+1] = int32(len(data))
	}
	return vec.MakeBytes(arrow.BinaryTypes.Binary, off, data, valid)
}
