package schema

import (
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/types"
)

// digitsOnly reports whether text is a number to Java's casts to dates and times,
// which then read it as the stored integer.
func digitsOnly(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

func int32Of(s string) (int64, bool) {
	v, err := strconv.ParseInt(strings.TrimSpace(s), 10, 32)
	return v, err == nil
}

// javaDate reads a date as Paimon's cast from text: y-m-d, y-m, days since 1970; what
// stands behind a blank does not count.
func javaDate(s string) (days int64, ok bool) {
	if digitsOnly(s) {
		return int32Of(s)
	}
	if i := strings.IndexByte(s, ' '); i > 0 {
		s = s[:i]
	}
	part := [3]int64{1, 1, 1}
	for i, p := range strings.SplitN(s, "-", 3) {
		if part[i], ok = int32Of(p); !ok {
			return 0, false
		}
	}
	y, m, d := part[0], part[1], part[2]
	if y < 0 || y > 9999 || m < 1 || m > 12 || d < 1 {
		return 0, false
	}
	t := time.Date(int(y), time.Month(m), int(d), 0, 0, 0, 0, time.UTC)
	if d > 31 || t.Month() != time.Month(m) {
		return 0, false
	}
	return floorDiv(t.Unix(), 86400), true
}

// javaTime reads a time of day as Paimon's cast from text: h, h:m, h:m:s or h:m:s.f,
// or milliseconds. Java takes hours above 23 as they come; a day has none.
func javaTime(s string) (ms int64, ok bool) {
	if digitsOnly(s) {
		if ms, ok = int32Of(s); ok && ms < 86_400_000 {
			return ms, true
		}
		return 0, false
	}
	s, frac, dot := strings.Cut(s, ".")
	part := [3]int64{}
	ps := strings.SplitN(s, ":", 3)
	if dot && len(ps) < 3 {
		return 0, false
	}
	for i, p := range ps {
		if part[i], ok = int32Of(p); !ok || part[i] < 0 {
			return 0, false
		}
	}
	if frac = strings.TrimSpace(frac); dot {
		if !digitsOnly(frac) {
			return 0, false
		}
		f, _ := strconv.ParseInt((frac + "000")[:3], 10, 64)
		if len(frac) > 3 && frac[3] >= '5' {
			f++
		}
		part[2] = part[2]*1000 + f
	} else {
		part[2] *= 1000
	}
	ms = part[0]*3_600_000 + part[1]*60_000 + part[2]
	return ms, ms < 86_400_000
}

// epochOf reads a number as Paimon's cast from text to TIMESTAMP(0, 3, 6 or 9) does:
// units of the type's precision since 1970.
func epochOf(t types.Type, s string) (int64, bool) {
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return 0, false
	}
	switch t.Prec {
	case 0:
		return v * 1_000_000, v < 1<<43
	case 3:
		return v * 1000, v < 1<<53
	case 6, 9:
		return v, true
	}
	return 0, false
}
