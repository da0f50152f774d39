package pgtext

// Field types that the tokenizer tells apart, and what words mean. The decoder
// follows PostgreSQL's datetime.c in what it accepts: fields in any order, each
// at most once, numbers understood by what is still missing.

type fieldType uint8

const (
	ftNumber fieldType = iota
	ftString
	ftDate
	ftTime
	ftTZ
	ftSpecial
)

type dtField struct {
	ft fieldType
	s  string
}

// Masks of fields seen.
const (
	mMonth uint32 = 1 << iota
	mYear
	mDay
	mHour
	mMinute
	mSecond
	mMilli
	mMicro
	mDOY
	mTZ
	mDTZ
	mDTZMod
	mAMPM
	mADBC
	mDOW
	mReserv
	mWeek
	mDecade
	mCentury
	mMillennium
	mDate    = mYear | mMonth | mDay
	mTime    = mHour | mMinute | mSecond
	mAllSecs = mSecond | mMilli | mMicro
)

type tokenType uint8

const (
	tkUnknown tokenType = iota
	tkReserv
	tkMonth
	tkDTZMod
	tkDTZ
	tkTZ
	tkAMPM
	tkADBC
	tkDOW
	tkUnits
	tkISOTime
	tkIgnore
	tkAgo
)

// Values of tkReserv and tkUnits.
const (
	dtkNone = iota
	dtkNow
	dtkYesterday
	dtkToday
	dtkTomorrow
	dtkZulu
	dtkEpoch
	dtkLate
	dtkEarly
	dtkYear
	dtkMonth
	dtkDay
	dtkHour
	dtkMinute
	dtkSecond
	dtkMilli
	dtkMicro
	dtkJulian
	dtkTime
	dtkTZ
	dtkWeek
	dtkDecade
	dtkCentury
	dtkMillennium
	dtkQuarter
	dtkDOW
	dtkDOY
	dtkISODOW
	dtkISOYear
	dtkDate // the default: a full date
)

type token struct {
	t   tokenType
	val int
}

const (
	amHours = iota
	pmHours
	hr24
)

var dateTokens = map[string]token{
	"+infinity": {tkReserv, dtkLate}, "-infinity": {tkReserv, dtkEarly}, "ad": {tkADBC, 0}, "allballs": {tkReserv, dtkZulu},
	"am": {tkAMPM, amHours}, "apr": {tkMonth, 4}, "april": {tkMonth, 4}, "at": {tkIgnore, 0}, "aug": {tkMonth, 8}, "august": {tkMonth, 8},
	"bc": {tkADBC, 1}, "d": {tkUnits, dtkDay}, "dec": {tkMonth, 12}, "december": {tkMonth, 12}, "dow": {tkUnits, dtkDOW}, "doy": {tkUnits, dtkDOY},
	"dst": {tkDTZMod, 3600}, "epoch": {tkReserv, dtkEpoch}, "feb": {tkMonth, 2}, "february": {tkMonth, 2}, "fri": {tkDOW, 5}, "friday": {tkDOW, 5},
	"h": {tkUnits, dtkHour}, "infinity": {tkReserv, dtkLate}, "isodow": {tkUnits, dtkISODOW}, "isoyear": {tkUnits, dtkISOYear},
	"j": {tkUnits, dtkJulian}, "jan": {tkMonth, 1}, "january": {tkMonth, 1}, "jd": {tkUnits, dtkJulian}, "jul": {tkMonth, 7}, "julian": {tkUnits, dtkJulian},
	"july": {tkMonth, 7}, "jun": {tkMonth, 6}, "june": {tkMonth, 6}, "m": {tkUnits, dtkMonth}, "mar": {tkMonth, 3}, "march": {tkMonth, 3}, "may": {tkMonth, 5},
	"mm": {tkUnits, dtkMinute}, "mon": {tkDOW, 1}, "monday": {tkDOW, 1}, "nov": {tkMonth, 11}, "november": {tkMonth, 11}, "now": {tkReserv, dtkNow},
	"oct": {tkMonth, 10}, "october": {tkMonth, 10}, "on": {tkIgnore, 0}, "pm": {tkAMPM, pmHours}, "s": {tkUnits, dtkSecond}, "sat": {tkDOW, 6}, "saturday": {tkDOW, 6},
	"sep": {tkMonth, 9}, "sept": {tkMonth, 9}, "september": {tkMonth, 9}, "sun": {tkDOW, 0}, "sunday": {tkDOW, 0}, "t": {tkISOTime, dtkTime},
	"thu": {tkDOW, 4}, "thur": {tkDOW, 4}, "thurs": {tkDOW, 4}, "thursday": {tkDOW, 4}, "today": {tkReserv, dtkToday}, "tomorrow": {tkReserv, dtkTomorrow},
	"tue": {tkDOW, 2}, "tues": {tkDOW, 2}, "tuesday": {tkDOW, 2}, "wed": {tkDOW, 3}, "wednesday": {tkDOW, 3}, "weds": {tkDOW, 3},
	"y": {tkUnits, dtkYear}, "yesterday": {tkReserv, dtkYesterday},
}

var deltaTokens = map[string]token{
	"ago": {tkAgo, 0}, "c": {tkUnits, dtkCentury}, "cent": {tkUnits, dtkCentury}, "centuries": {tkUnits, dtkCentury}, "century": {tkUnits, dtkCentury},
	"d": {tkUnits, dtkDay}, "day": {tkUnits, dtkDay}, "days": {tkUnits, dtkDay}, "dec": {tkUnits, dtkDecade}, "decade": {tkUnits, dtkDecade},
	"decades": {tkUnits, dtkDecade}, "decs": {tkUnits, dtkDecade}, "h": {tkUnits, dtkHour}, "hour": {tkUnits, dtkHour}, "hours": {tkUnits, dtkHour},
	"hr": {tkUnits, dtkHour}, "hrs": {tkUnits, dtkHour}, "m": {tkUnits, dtkMinute}, "microsecon": {tkUnits, dtkMicro}, "mil": {tkUnits, dtkMillennium},
	"millennia": {tkUnits, dtkMillennium}, "millennium": {tkUnits, dtkMillennium}, "millisecon": {tkUnits, dtkMilli}, "mils": {tkUnits, dtkMillennium},
	"min": {tkUnits, dtkMinute}, "mins": {tkUnits, dtkMinute}, "minute": {tkUnits, dtkMinute}, "minutes": {tkUnits, dtkMinute}, "mon": {tkUnits, dtkMonth},
	"mons": {tkUnits, dtkMonth}, "month": {tkUnits, dtkMonth}, "months": {tkUnits, dtkMonth}, "ms": {tkUnits, dtkMilli}, "msec": {tkUnits, dtkMilli},
	"mseconds": {tkUnits, dtkMilli}, "msecs": {tkUnits, dtkMilli}, "qtr": {tkUnits, dtkQuarter}, "quarter": {tkUnits, dtkQuarter}, "s": {tkUnits, dtkSecond},
	"sec": {tkUnits, dtkSecond}, "second": {tkUnits, dtkSecond}, "seconds": {tkUnits, dtkSecond}, "secs": {tkUnits, dtkSecond},
	"us": {tkUnits, dtkMicro}, "usec": {tkUnits, dtkMicro}, "useconds": {tkUnits, dtkMicro}, "usecs": {tkUnits, dtkMicro},
	"w": {tkUnits, dtkWeek}, "week": {tkUnits, dtkWeek}, "weeks": {tkUnits, dtkWeek}, "y": {tkUnits, dtkYear}, "year": {tkUnits, dtkYear},
	"years": {tkUnits, dtkYear}, "yr": {tkUnits, dtkYear}, "yrs": {tkUnits, dtkYear},
}

// tokenLen is the length to which words are compared.
const tokenLen = 10

func lookupToken(m map[string]token, s string) (token, bool) {
	if len(s) > tokenLen {
		s = s[:tokenLen]
	}
	t, ok := m[s]
	return t, ok
}

func isDigit(c byte) bool { return c >= '0' && c <= '9' }
func isAlpha(c byte) bool { return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' }
func isAlnum(c byte) bool { return isDigit(c) || isAlpha(c) }
func isSpace(c byte) bool { return c == ' ' || c >= 9 && c <= 13 }
func isPunct(c byte) bool { return c > 32 && c < 127 && !isAlnum(c) }
func lower(c byte) byte {
	if c >= 'A' && c <= 'Z' {
		return c + 32
	}
	return c
}

// maxFields bounds the fields of one date/time text.
const maxFields = 25

// splitDateTime cuts a text into fields. ok is false when a character or the
// length cannot belong to a date or time.
func splitDateTime(s string) (fields []dtField, ok bool) {
	if len(s) > 128+maxFields {
		return nil, false
	}
	i := 0
	at := func(k int) byte {
		if k < len(s) {
			return s[k]
		}
		return 0
	}
	for i < len(s) {
		c := s[i]
		if isSpace(c) {
			i++
			continue
		}
		from := i
		var ft fieldType
		var buf []byte
		take := func(cond func(byte) bool) {
			for i < len(s) && cond(s[i]) {
				buf = append(buf, lower(s[i]))
				i++
			}
		}
		switch {
		case isDigit(c):
			take(isDigit)
			switch d := at(i); {
			case d == ':':
				ft = ftTime
				take(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' })
			case d == '-' || d == '/' || d == '.':
				buf = append(buf, d)
				i++
				if isDigit(at(i)) {
					ft = ftDate
					if d == '.' {
						ft = ftNumber
					}
					take(isDigit)
					if at(i) == d {
						ft = ftDate
						take(func(c byte) bool { return isDigit(c) || c == d })
					}
				} else {
					ft = ftDate
					take(func(c byte) bool { return isAlnum(c) || c == d })
				}
			default:
				ft = ftNumber
			}
		case c == '.':
			ft = ftNumber
			buf = append(buf, '.')
			i++
			take(isDigit)
		case isAlpha(c):
			ft = ftString
			take(isAlpha)
			isDate := false
			switch d := at(i); {
			case d == '-' || d == '/' || d == '.':
				isDate = true
			case d == '+' || isDigit(d):
				_, known := lookupToken(dateTokens, string(buf))
				isDate = !known
			}
			if isDate {
				ft = ftDate
				take(func(c byte) bool {
					return c == '+' || c == '-' || c == '/' || c == '_' || c == '.' || c == ':' || isAlnum(c)
				})
			}
		case c == '+' || c == '-':
			buf = append(buf, c)
			i++
			for i < len(s) && isSpace(s[i]) {
				i++
			}
			switch {
			case isDigit(at(i)):
				ft = ftTZ
				take(func(c byte) bool { return isDigit(c) || c == ':' || c == '.' || c == '-' })
			case isAlpha(at(i)):
				ft = ftSpecial
				take(isAlpha)
			default:
				return nil, false
			}
		case isPunct(c):
			i++
			continue
		default:
			return nil, false
		}
		_ = from
		if len(fields) >= maxFields {
			return nil, false
		}
		fields = append(fields, dtField{ft, string(buf)})
	}
	return fields, true
}
