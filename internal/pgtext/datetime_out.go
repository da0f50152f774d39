package pgtext

import "strconv"

func append2(dst []byte, v int) []byte {
	if v >= 100 {
		return strconv.AppendInt(dst, int64(v), 10)
	}
	return append(dst, byte('0'+v/10), byte('0'+v%10))
}

func appendYear(dst []byte, y int) []byte {
	if y <= 0 {
		y = 1 - y
	}
	for p := 1000; p > 1 && y < p; p /= 10 {
		dst = append(dst, '0')
	}
	return strconv.AppendInt(dst, int64(y), 10)
}

// appendFraction appends .ffffff without zeros at the end; nothing for 0.
func appendFraction(dst []byte, us int) []byte {
	if us == 0 {
		return dst
	}
	dst = append(dst, '.')
	for p := 100000; us > 0; p /= 10 {
		dst = append(dst, byte('0'+us/p))
		us %= p
	}
	return dst
}

func appendTOD(dst []byte, us int64) []byte {
	s := int(us / UsPerSecond)
	dst = append2(dst, s/3600)
	dst = append(dst, ':')
	dst = append2(dst, s/60%60)
	dst = append(dst, ':')
	dst = append2(dst, s%60)
	return appendFraction(dst, int(us%UsPerSecond))
}

// appendOffset appends +hh[:mm[:ss]] for seconds east of UTC.
func appendOffset(dst []byte, off int) []byte {
	if off < 0 {
		dst = append(dst, '-')
		off = -off
	} else {
		dst = append(dst, '+')
	}
	dst = append2(dst, off/3600)
	if off%3600 != 0 {
		dst = append(dst, ':')
		dst = append2(dst, off/60%60)
		if off%60 != 0 {
			dst = append(dst, ':')
			dst = append2(dst, off%60)
		}
	}
	return dst
}

type dateStyle uint8

const (
	styleISO dateStyle = iota
	styleSQL
	stylePostgres
	styleGerman
)

func (st *Style) dateStyle() dateStyle {
	switch st.DateStyle {
	case "SQL":
		return styleSQL
	case "Postgres", "postgres", "POSTGRES":
		return stylePostgres
	case "German", "german", "GERMAN":
		return styleGerman
	}
	return styleISO
}

func appendYMD(dst []byte, ds dateStyle, dmy bool, y, m, d int) []byte {
	three := func(a, b int, sep byte) []byte {
		dst = append2(dst, a)
		dst = append(dst, sep)
		dst = append2(dst, b)
		dst = append(dst, sep)
		return appendYear(dst, y)
	}
	switch ds {
	case styleSQL:
		if dmy {
			return three(d, m, '/')
		}
		return three(m, d, '/')
	case styleGerman:
		return three(d, m, '.')
	case stylePostgres:
		if dmy {
			return three(d, m, '-')
		}
		return three(m, d, '-')
	}
	dst = appendYear(dst, y)
	dst = append(dst, '-')
	dst = append2(dst, m)
	dst = append(dst, '-')
	return append2(dst, d)
}

const digitPairs = "00010203040506070809" +
	"10111213141516171819" +
	"20212223242526272829" +
	"30313233343536373839" +
	"40414243444546474849" +
	"50515253545556575859" +
	"60616263646566676869" +
	"70717273747576777879" +
	"80818283848586878889" +
	"90919293949596979899"

func put2(b []byte, v int) { b[0], b[1] = digitPairs[2*v], digitPairs[2*v+1] }

// putISODate writes yyyy-mm-dd to b[:10]; ok is false for other years.
func putISODate(b []byte, days int64) bool {
	// The years 1 to 9999.
	if days < -719162 || days > 2932896 {
		return false
	}
	y, m, d := CivilFromDays(int(days))
	put2(b, y/100)
	put2(b[2:], y%100)
	b[4] = '-'
	put2(b[5:], m)
	b[7] = '-'
	put2(b[8:], d)
	return true
}

// AppendDate appends a date given in days since 1970.
func AppendDate(dst []byte, days int64, st *Style) []byte {
	switch days {
	case DateInfinity:
		return append(dst, "infinity"...)
	case DateNegInfinity:
		return append(dst, "-infinity"...)
	}
	st = orDefault(st)
	if st.dateStyle() == styleISO {
		var b [10]byte
		if putISODate(b[:], days) {
			return append(dst, b[:]...)
		}
	}
	y, m, d := CivilFromDays(int(days))
	dst = appendYMD(dst, st.dateStyle(), st.DateOrder == "DMY", y, m, d)
	if y <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}

// MonthNames and DayNames are PostgreSQL's short English names; Sunday is 0.
var (
	MonthNames = [13]string{"", "Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"}
	DayNames   = [7]string{"Sun", "Mon", "Tue", "Wed", "Thu", "Fri", "Sat"}
)

// Weekday returns the day of the week, Sunday 0, of days since 1970.
func Weekday(days int64) int { return int(((days+4)%7 + 7) % 7) }

// AppendTimestamp appends a timestamp given in microseconds since 1970. z is nil
// for timestamp without time zone, else the zone to show the instant in.
func AppendTimestamp(dst []byte, us int64, z *Zone, st *Style) []byte {
	switch us {
	case TimestampInfinity:
		return append(dst, "infinity"...)
	case TimestampNegInfinity:
		return append(dst, "-infinity"...)
	}
	off, abbrev := 0, ""
	if z != nil {
		days, tod := SplitTimestamp(us)
		off, abbrev = z.Offset(days*86400 + tod/UsPerSecond)
		us += int64(off) * UsPerSecond
	}
	days, tod := SplitTimestamp(us)
	ds := styleISO
	if st != nil {
		ds = st.dateStyle()
	}
	if ds == styleISO {
		var b [19]byte
		if putISODate(b[:], days) {
			s := int(tod / UsPerSecond)
			b[10] = ' '
			put2(b[11:], s/3600)
			b[13] = ':'
			put2(b[14:], s/60%60)
			b[16] = ':'
			put2(b[17:], s%60)
			dst = appendFraction(append(dst, b[:]...), int(tod-int64(s)*UsPerSecond))
			if z != nil {
				dst = appendOffset(dst, off)
			}
			return dst
		}
	}
	return appendStyled(dst, days, tod, ds, z, off, abbrev, st)
}

// appendStyled appends a timestamp in any style and of any year.
func appendStyled(dst []byte, days, tod int64, ds dateStyle, z *Zone, off int, abbrev string, st *Style) []byte {
	y, m, d := CivilFromDays(int(days))
	dmy := st != nil && st.DateOrder == "DMY"
	appendZone := func() {
		if z == nil {
			return
		}
		if ds == styleISO {
			dst = appendOffset(dst, off)
			return
		}
		if abbrev != "" && abbrev[0] != '+' && abbrev[0] != '-' {
			dst = append(dst, ' ')
			dst = append(dst, abbrev...)
			return
		}
		if ds == stylePostgres {
			dst = append(dst, ' ')
		}
		dst = appendOffset(dst, off)
	}
	if ds == stylePostgres {
		dst = append(dst, DayNames[Weekday(days)]...)
		dst = append(dst, ' ')
		if dmy {
			dst = append2(dst, d)
			dst = append(dst, ' ')
			dst = append(dst, MonthNames[m]...)
		} else {
			dst = append(dst, MonthNames[m]...)
			dst = append(dst, ' ')
			dst = append2(dst, d)
		}
		dst = append(dst, ' ')
		dst = appendTOD(dst, tod)
		dst = append(dst, ' ')
		dst = appendYear(dst, y)
		appendZone()
	} else {
		dst = appendYMD(dst, ds, dmy, y, m, d)
		dst = append(dst, ' ')
		dst = appendTOD(dst, tod)
		appendZone()
	}
	if y <= 0 {
		dst = append(dst, " BC"...)
	}
	return dst
}

// AppendTimeTZ appends a time with its offset, given in seconds west of UTC.
func AppendTimeTZ(dst []byte, us int64, west int32) []byte {
	return appendOffset(appendTOD(dst, us), -int(west))
}
