// Package pgtext is PostgreSQL's text form of every type, both ways. Casts, the
// wire protocol, COPY and EXPLAIN all use it, so that they agree to the byte.
package pgtext

import (
	"time"
	_ "time/tzdata" // a server must know its zones wherever it runs
)

// Style is what the settings of a session say about text forms. The zero value
// is PostgreSQL's default in UTC. A Style is not changed while it is in use.
type Style struct {
	Location *time.Location // TimeZone; nil = UTC
	// DateStyle is ISO, SQL, Postgres or German; DateOrder MDY, DMY or YMD.
	DateStyle, DateOrder string
	IntervalStyle        string // postgres, postgres_verbose, sql_standard, iso_8601
	ByteaOutput          string // hex or escape
	// RoundFloats is set when extra_float_digits is 0 or less: floats then show
	// 15 (float4: 6) plus ExtraFloatDigits significant digits. Otherwise they
	// show the shortest text that reads back the same.
	RoundFloats      bool
	ExtraFloatDigits int
	// Now is the start of the transaction, for 'now', 'today' and times without
	// a date; nil = the clock.
	Now func() time.Time
}

var defaultStyle = &Style{}

func (st *Style) loc() *time.Location {
	if st == nil || st.Location == nil {
		return time.UTC
	}
	return st.Location
}

func (st *Style) now() time.Time {
	if st == nil || st.Now == nil {
		return time.Now()
	}
	return st.Now()
}

func orDefault(st *Style) *Style {
	if st == nil {
		return defaultStyle
	}
	return st
}
