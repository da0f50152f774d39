package pgwire

import (
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/internal/pgtext"
)

// styleCache keeps the text style made from a session's settings.
type styleCache struct {
	from  engine.TextSettings
	style *pgtext.Style
}

func (s *styleCache) get(sess Session) *pgtext.Style {
	if y, ok := sess.(Styler); ok {
		return y.TextStyle()
	}
	t := sess.TextSettings()
	if s.style == nil || s.from != t {
		s.from, s.style = t, styleOf(t)
	}
	return s.style
}

// styleOf turns the settings, as SHOW prints them, into a style.
func styleOf(t engine.TextSettings) *pgtext.Style {
	style, order, _ := strings.Cut(t.DateStyle, ",")
	return &pgtext.Style{
		Location:         location(t.TimeZone),
		DateStyle:        strings.TrimSpace(style),
		DateOrder:        strings.TrimSpace(order),
		IntervalStyle:    t.IntervalStyle,
		ByteaOutput:      t.ByteaOutput,
		RoundFloats:      t.ExtraFloatDigits <= 0,
		ExtraFloatDigits: t.ExtraFloatDigits,
	}
}

// location finds a zone by its IANA name or by the POSIX form that SHOW TimeZone
// gives for an offset: <+05:30>-05:30, hours west of Greenwich. What is neither
// is UTC: the setting was checked when it was set.
func location(name string) *time.Location {
	if i := strings.IndexByte(name, '>'); i >= 0 {
		west := 0
		unit := 3600
		rest := name[i+1:]
		sign := 1
		if strings.HasPrefix(rest, "-") {
			sign = -1
		}
		for _, p := range strings.Split(strings.TrimLeft(rest, "+-"), ":") {
			n, err := strconv.Atoi(p)
			if err != nil {
				return time.UTC
			}
			west += n * unit
			unit /= 60
		}
		return time.FixedZone(strings.Trim(name[:i], "<"), -sign*west)
	}
	if loc, err := time.LoadLocation(name); err == nil {
		return loc
	}
	return time.UTC
}
