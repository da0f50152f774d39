package schema

import (
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// Options are table options with typed access; keys are Paimon's.
type Options map[string]string

// With returns o with the entries of over laid on top; neither is changed.
func (o Options) With(over map[string]string) Options {
	if len(over) == 0 {
		return o
	}
	out := make(Options, len(o)+len(over))
	for k, v := range o {
		out[k] = v
	}
	for k, v := range over {
		out[k] = v
	}
	return out
}

// String returns a value or def. Blanks around it do not count.
func (o Options) String(key, def string) string {
	if v, ok := o[key]; ok {
		return strings.TrimSpace(v)
	}
	return def
}

// Enum returns a value in lower case.
func (o Options) Enum(key, def string) string { return strings.ToLower(o.String(key, def)) }

// List returns the items of a comma-separated value, trimmed, empty ones left out.
func (o Options) List(key string) []string {
	var out []string
	for _, s := range strings.Split(o[key], ",") {
		if s = strings.TrimSpace(s); s != "" {
			out = append(out, s)
		}
	}
	return out
}

// Bool returns a value; text that is neither true nor false is an error.
func (o Options) Bool(key string, def bool) (bool, error) {
	v, ok := o[key]
	if !ok {
		return def, nil
	}
	switch strings.ToLower(strings.TrimSpace(v)) {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return def, optionError(key, v, "true or false")
}

// Flag is Bool for options that are merely looked at: bad text counts as def.
func (o Options) Flag(key string, def bool) bool {
	b, err := o.Bool(key, def)
	if err != nil {
		return def
	}
	return b
}

// Int returns an integer.
func (o Options) Int(key string, def int64) (int64, error) {
	v, ok := o[key]
	if !ok {
		return def, nil
	}
	n, err := strconv.ParseInt(strings.TrimSpace(v), 10, 64)
	if err != nil {
		return def, optionError(key, v, "an integer")
	}
	return n, nil
}

// Float returns a number.
func (o Options) Float(key string, def float64) (float64, error) {
	v, ok := o[key]
	if !ok {
		return def, nil
	}
	f, err := strconv.ParseFloat(strings.TrimSpace(v), 64)
	if err != nil {
		return def, optionError(key, v, "a number")
	}
	return f, nil
}

// Size returns a memory size in bytes.
func (o Options) Size(key string, def int64) (int64, error) {
	v, ok := o[key]
	if !ok {
		return def, nil
	}
	n, err := ParseSize(v)
	if err != nil {
		return def, optionError(key, v, "a memory size such as '128 mb'")
	}
	return n, nil
}

// Duration returns a time span.
func (o Options) Duration(key string, def time.Duration) (time.Duration, error) {
	v, ok := o[key]
	if !ok {
		return def, nil
	}
	d, err := ParseDuration(v)
	if err != nil {
		return def, optionError(key, v, "a duration such as '10 min'")
	}
	return d, nil
}

func optionError(key, value, want string) error {
	return fmt.Errorf("option %q is %q, not %s", key, value, want)
}

// cutNumber splits "12 mb" into 12 and "mb".
func cutNumber(s string) (int64, string, error) {
	s = strings.ToLower(strings.TrimSpace(s))
	i := 0
	for i < len(s) && s[i] >= '0' && s[i] <= '9' {
		i++
	}
	n, err := strconv.ParseInt(s[:i], 10, 64)
	return n, strings.TrimSpace(s[i:]), err
}

// ParseSize reads Paimon's memory sizes: a number of bytes, or with a unit (b, k,
// kb, m, mb, g, gb, t, tb and the long forms), powers of 1024.
func ParseSize(s string) (int64, error) {
	n, unit, err := cutNumber(s)
	if err != nil {
		return 0, fmt.Errorf("size %q", s)
	}
	shift, ok := map[string]uint{
		"": 0, "b": 0, "bytes": 0, "byte": 0,
		"k": 10, "kb": 10, "kibibytes": 10, "m": 20, "mb": 20, "mebibytes": 20,
		"g": 30, "gb": 30, "gibibytes": 30, "t": 40, "tb": 40, "tebibytes": 40,
	}[unit]
	if !ok || n > math.MaxInt64>>shift {
		return 0, fmt.Errorf("size %q", s)
	}
	return n << shift, nil
}

var durationUnits = func() map[string]time.Duration {
	m := map[string]time.Duration{"": time.Millisecond}
	for _, u := range []struct {
		d     time.Duration
		names string
	}{
		{24 * time.Hour, "d day days"}, {time.Hour, "h hour hours"}, {time.Minute, "m min minute minutes"},
		{time.Second, "s sec secs second seconds"}, {time.Millisecond, "ms milli millis millisecond milliseconds"},
		{time.Microsecond, "µs micro micros microsecond microseconds"}, {time.Nanosecond, "ns nano nanos nanosecond nanoseconds"},
	} {
		for _, n := range strings.Fields(u.names) {
			m[n] = u.d
		}
	}
	return m
}()

// ParseDuration reads Paimon's time spans: "1 h", "10 s", "36 d"; a bare number
// is milliseconds.
func ParseDuration(s string) (time.Duration, error) {
	n, unit, err := cutNumber(s)
	if err != nil {
		return 0, fmt.Errorf("duration %q", s)
	}
	u, ok := durationUnits[unit]
	if !ok || n > math.MaxInt64/int64(u) {
		return 0, fmt.Errorf("duration %q", s)
	}
	return time.Duration(n) * u, nil
}
