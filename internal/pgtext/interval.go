package pgtext

import (
	"encoding/binary"
	"strconv"
)

// Interval is PostgreSQL's interval: three parts that are not normalised into
// each other.
type Interval struct {
	Micros int64
	Days   int32
	Months int32
}

// DecodeInterval reads the 16 bytes of a column's cell.
func DecodeInterval(b []byte) Interval {
	if len(b) < 16 {
		return Interval{}
	}
	return Interval{
		Micros: int64(binary.LittleEndian.Uint64(b)),
		Days:   int32(binary.LittleEndian.Uint32(b[8:])),
		Months: int32(binary.LittleEndian.Uint32(b[12:])),
	}
}

// AppendEncoded appends the 16 bytes of a cell.
func (v Interval) AppendEncoded(dst []byte) []byte {
	dst = binary.LittleEndian.AppendUint64(dst, uint64(v.Micros))
	dst = binary.LittleEndian.AppendUint32(dst, uint32(v.Days))
	return binary.LittleEndian.AppendUint32(dst, uint32(v.Months))
}

// Bytes returns the cell as a Datum holds it.
func (v Interval) Bytes() []byte { return v.AppendEncoded(make([]byte, 0, 16)) }

// DecodeTimeTZ reads the 12 bytes of a timetz cell.
func DecodeTimeTZ(b []byte) (us int64, west int32) {
	if len(b) < 12 {
		return 0, 0
	}
	return int64(binary.LittleEndian.Uint64(b)), int32(binary.LittleEndian.Uint32(b[8:]))
}

// EncodeTimeTZ is the inverse of DecodeTimeTZ.
func EncodeTimeTZ(us int64, west int32) []byte {
	b := binary.LittleEndian.AppendUint64(make([]byte, 0, 12), uint64(us))
	return binary.LittleEndian.AppendUint32(b, uint32(west))
}

// parts of an interval as its text form shows them; signs may differ.
type intervalParts struct {
	year, mon, day       int
	hour, min, sec, fsec int64
}

func (v Interval) parts() intervalParts {
	t := v.Micros
	p := intervalParts{year: int(v.Months) / 12, mon: int(v.Months) % 12, day: int(v.Days)}
	p.hour = t / UsPerHour
	t -= p.hour * UsPerHour
	p.min = t / UsPerMinute
	t -= p.min * UsPerMinute
	p.sec = t / UsPerSecond
	p.fsec = t - p.sec*UsPerSecond
	return p
}

func abs64(v int64) int64 {
	if v < 0 {
		return -v
	}
	return v
}

func appendSec(dst []byte, sec, fsec int64, fill bool) []byte {
	sec, fsec = abs64(sec), abs64(fsec)
	if fill {
		dst = append2(dst, int(sec))
	} else {
		dst = strconv.AppendInt(dst, sec, 10)
	}
	return appendFraction(dst, int(fsec))
}

// AppendInterval appends v in the session's IntervalStyle.
func AppendInterval(dst []byte, v Interval, st *Style) []byte {
	p := v.parts()
	switch orDefault(st).IntervalStyle {
	case "sql_standard":
		return p.appendSQL(dst)
	case "iso_8601":
		return p.appendISO(dst)
	case "postgres_verbose":
		return p.appendVerbose(dst)
	}
	return p.appendPostgres(dst)
}

func (p intervalParts) appendPostgres(dst []byte) []byte {
	zero, before := true, false
	add := func(v int64, unit string) {
		if v == 0 {
			return
		}
		if !zero {
			dst = append(dst, ' ')
		}
		if before && v > 0 {
			dst = append(dst, '+')
		}
		dst = strconv.AppendInt(dst, v, 10)
		dst = append(dst, ' ')
		dst = append(dst, unit...)
		if v != 1 {
			dst = append(dst, 's')
		}
		before, zero = v < 0, false
	}
	add(int64(p.year), "year")
	add(int64(p.mon), "mon")
	add(int64(p.day), "day")
	if zero || p.hour != 0 || p.min != 0 || p.sec != 0 || p.fsec != 0 {
		if !zero {
			dst = append(dst, ' ')
		}
		if p.hour < 0 || p.min < 0 || p.sec < 0 || p.fsec < 0 {
			dst = append(dst, '-')
		} else if before {
			dst = append(dst, '+')
		}
		dst = appendHMS(dst, p, true)
	}
	return dst
}

func appendHMS(dst []byte, p intervalParts, fill bool) []byte {
	h := abs64(p.hour)
	if fill && h < 10 {
		dst = append(dst, '0')
	}
	dst = strconv.AppendInt(dst, h, 10)
	dst = append(dst, ':')
	dst = append2(dst, int(abs64(p.min)))
	dst = append(dst, ':')
	return appendSec(dst, p.sec, p.fsec, true)
}

func (p intervalParts) appendSQL(dst []byte) []byte {
	any := func(f func(int64) bool) bool {
		for _, v := range []int64{int64(p.year), int64(p.mon), int64(p.day), p.hour, p.min, p.sec, p.fsec} {
			if f(v) {
				return true
			}
		}
		return false
	}
	neg, pos := any(func(v int64) bool { return v < 0 }), any(func(v int64) bool { return v > 0 })
	ym := p.year != 0 || p.mon != 0
	time := p.hour != 0 || p.min != 0 || p.sec != 0 || p.fsec != 0
	day := p.day != 0
	standard := !(neg && pos) && !(ym && (time || day))
	if neg && standard {
		dst = append(dst, '-')
	}
	if !neg && !pos {
		return append(dst, '0')
	}
	absI := func(v int) int64 { return abs64(int64(v)) }
	if !standard {
		sign := func(n bool) {
			if n {
				dst = append(dst, '-')
			} else {
				dst = append(dst, '+')
			}
		}
		sign(p.year < 0 || p.mon < 0)
		dst = strconv.AppendInt(dst, absI(p.year), 10)
		dst = append(dst, '-')
		dst = strconv.AppendInt(dst, absI(p.mon), 10)
		dst = append(dst, ' ')
		sign(p.day < 0)
		dst = strconv.AppendInt(dst, absI(p.day), 10)
		dst = append(dst, ' ')
		sign(p.hour < 0 || p.min < 0 || p.sec < 0 || p.fsec < 0)
		return appendHMS(dst, p, false)
	}
	if ym {
		dst = strconv.AppendInt(dst, absI(p.year), 10)
		dst = append(dst, '-')
		return strconv.AppendInt(dst, absI(p.mon), 10)
	}
	if day {
		dst = strconv.AppendInt(dst, absI(p.day), 10)
		dst = append(dst, ' ')
	}
	return appendHMS(dst, p, false)
}

func (p intervalParts) appendISO(dst []byte) []byte {
	if p == (intervalParts{}) {
		return append(dst, "PT0S"...)
	}
	add := func(v int64, unit byte) {
		if v != 0 {
			dst = strconv.AppendInt(dst, v, 10)
			dst = append(dst, unit)
		}
	}
	dst = append(dst, 'P')
	add(int64(p.year), 'Y')
	add(int64(p.mon), 'M')
	add(int64(p.day), 'D')
	if p.hour != 0 || p.min != 0 || p.sec != 0 || p.fsec != 0 {
		dst = append(dst, 'T')
		add(p.hour, 'H')
		add(p.min, 'M')
		if p.sec != 0 || p.fsec != 0 {
			if p.sec < 0 || p.fsec < 0 {
				dst = append(dst, '-')
			}
			dst = append(appendSec(dst, p.sec, p.fsec, false), 'S')
		}
	}
	return dst
}

func (p intervalParts) appendVerbose(dst []byte) []byte {
	dst = append(dst, '@')
	zero, before := true, false
	add := func(v int64, unit string) {
		if v == 0 {
			return
		}
		if zero {
			before = v < 0
			v = abs64(v)
		} else if before {
			v = -v
		}
		dst = append(dst, ' ')
		dst = strconv.AppendInt(dst, v, 10)
		dst = append(dst, ' ')
		dst = append(dst, unit...)
		if v != 1 {
			dst = append(dst, 's')
		}
		zero = false
	}
	add(int64(p.year), "year")
	add(int64(p.mon), "mon")
	add(int64(p.day), "day")
	add(p.hour, "hour")
	add(p.min, "min")
	if p.sec != 0 || p.fsec != 0 {
		dst = append(dst, ' ')
		if p.sec < 0 || p.fsec < 0 {
			if zero {
				before = true
			} else if !before {
				dst = append(dst, '-')
			}
		} else if before {
			dst = append(dst, '-')
		}
		dst = appendSec(dst, p.sec, p.fsec, false)
		dst = append(dst, " sec"...)
		if abs64(p.sec) != 1 || p.fsec != 0 {
			dst = append(dst, 's')
		}
		zero = false
	}
	if zero {
		dst = append(dst, " 0"...)
	}
	if before {
		dst = append(dst, " ago"...)
	}
	return dst
}
