package schema

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// optionKind is what values an option has.
type optionKind uint8

const (
	textOption optionKind = iota
	boolOption
	intOption   // 32 bits
	longOption  // 64 bits
	floatOption // as Java reads a double
	sizeOption
	durationOption
	enumOption
	mapOption // k:v,k:v
)

type optionSpec struct {
	kind   optionKind
	values []string // of an enumOption
}

// KnownOption reports whether Paimon, or an engine of it, knows a table option by
// exactly this name.
func KnownOption(key string) bool {
	_, ok := optionList[key]
	return ok
}

// checkOption refuses a value that Java could not read as the option's type.
func checkOption(key, value string) error {
	spec, ok := optionList[key]
	if !ok {
		switch {
		case strings.HasPrefix(key, fieldsPrefix):
			for _, s := range []string{".ignore-retract", ".distinct"} {
				if strings.HasSuffix(key, s) {
					spec.kind = boolOption
				}
			}
			if strings.HasSuffix(key, ".count-limit") {
				spec.kind = intOption
			}
		default:
			return nil
		}
	}
	bad := func(want string) error {
		return refuse(BadOption, "invalid value for option %q: %q is not %s", key, value, want).option(key)
	}
	if v := badPath(key, value); v != "" {
		return bad(v)
	}
	switch spec.kind {
	case boolOption:
		if v := strings.ToLower(value); v != "true" && v != "false" {
			return bad("true or false")
		}
	case intOption:
		if _, err := strconv.ParseInt(value, 10, 32); err != nil {
			return bad("an integer")
		}
	case longOption:
		if _, err := strconv.ParseInt(value, 10, 64); err != nil {
			return bad("an integer")
		}
	case floatOption:
		if !javaFloat(value) {
			return bad("a number")
		}
	case sizeOption:
		if _, err := ParseSize(value); err != nil {
			return bad("a memory size such as '128 mb'")
		}
	case durationOption:
		if !javaDuration(value) {
			return bad("a duration such as '10 min'")
		}
	case enumOption:
		if !slices.ContainsFunc(spec.values, func(s string) bool { return strings.EqualFold(s, value) }) {
			return bad("one of " + strings.Join(spec.values, ", "))
		}
	case mapOption:
		m, err := parseMap(value)
		if err != nil {
			return bad("a list such as 'key:value,key:value'")
		}
		if strings.HasSuffix(key, ".per.level") {
			for k := range m {
				if _, err := strconv.ParseInt(k, 10, 32); err != nil {
					return bad("a list of levels such as '0:avro,5:parquet'")
				}
			}
		}
	}
	return nil
}

// badPath says what the value of an option that becomes part of a path must be, "" =
// it is that. Files of a table lie below its directory.
func badPath(key, value string) string {
	switch key {
	case "data-file.prefix", "changelog-file.prefix":
		if strings.ContainsAny(value, "/\\\x00") {
			return "the beginning of a file's name"
		}
	case "data-file.path-directory":
		for _, p := range strings.Split(value, "/") {
			if p == ".." || p == "." || strings.ContainsAny(p, "\\\x00") {
				return "a directory below the table's"
			}
		}
	}
	return ""
}

// LeavesTable names an option of a table whose files would not be below the table's
// directory; "" = there is none.
func LeavesTable(o Options) string {
	for _, key := range []string{"data-file.prefix", "changelog-file.prefix", "data-file.path-directory"} {
		if badPath(key, o[key]) != "" {
			return key
		}
	}
	return ""
}

// javaDuration accepts what Paimon's TimeUtils does. Durations in Java are not
// bounded by 64 bits of nanoseconds, as ParseDuration is.
func javaDuration(s string) bool {
	_, unit, err := cutNumber(s)
	if err != nil {
		return false
	}
	_, ok := durationUnits[unit]
	return ok
}

// javaFloat accepts what Double.parseDouble does: blanks around, a suffix d or f,
// NaN and Infinity by these very names.
func javaFloat(s string) bool {
	s = strings.TrimSpace(s)
	switch strings.TrimLeft(s, "+-") {
	case "NaN", "Infinity":
		return len(s)-len(strings.TrimLeft(s, "+-")) <= 1
	case "":
		return false
	}
	if c := s[len(s)-1]; c|0x20 == 'd' || c|0x20 == 'f' {
		s = s[:len(s)-1]
	}
	if strings.ContainsAny(s, "_iInNxX") {
		return false
	}
	_, err := strconv.ParseFloat(s, 64)
	return err == nil || strings.Contains(err.Error(), "out of range")
}

// parseMap reads 'k:v,k:v'; quotes, single or double, protect the delimiters.
func parseMap(s string) (map[string]string, error) {
	items, err := splitEscaped(s, ',')
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, it := range items {
		kv, err := splitEscaped(it, ':')
		if err != nil {
			return nil, err
		}
		if len(kv) != 2 {
			return nil, fmt.Errorf("%q is not key:value", it)
		}
		if _, ok := out[kv[0]]; ok {
			return nil, fmt.Errorf("key %q appears twice", kv[0])
		}
		out[kv[0]] = kv[1]
	}
	return out, nil
}

// splitEscaped splits at a delimiter outside quotes and drops blanks and quotes
// around the items; empty items are left out.
func splitEscaped(s string, delim byte) ([]string, error) {
	var out []string
	for i := 0; i < len(s); {
		for i < len(s) && s[i] == ' ' {
			i++
		}
		if i == len(s) {
			break
		}
		if q := s[i]; q == '\'' || q == '"' {
			var b strings.Builder
			j := i + 1
			for ; ; j++ {
				if j >= len(s) {
					return nil, fmt.Errorf("quote is not closed")
				}
				if s[j] == q {
					if j+1 < len(s) && s[j+1] == q {
						j++
					} else {
						break
					}
				}
				b.WriteByte(s[j])
			}
			for i = j + 1; i < len(s) && s[i] == ' '; i++ {
			}
			if i < len(s) && s[i] != delim {
				return nil, fmt.Errorf("text behind a quote")
			}
			i++
			out = append(out, b.String())
			continue
		}
		j := strings.IndexByte(s[i:], delim)
		if j < 0 {
			j = len(s) - i
		}
		if v := strings.TrimSpace(s[i : i+j]); v != "" {
			out = append(out, v)
		}
		i += j + 1
	}
	return out, nil
}

// levels returns the values of an option by level, given as 'n:v,n:v' or as options
// <key>.<n>.
func (o Options) levels(key string) map[int]string {
	out := map[int]string{}
	if v, ok := o[key]; ok {
		m, err := parseMap(v)
		if err != nil {
			return nil
		}
		for k, x := range m {
			if n, err := strconv.Atoi(k); err == nil {
				out[n] = x
			}
		}
		return out
	}
	for k, v := range o {
		if s, ok := strings.CutPrefix(k, key+"."); ok {
			if n, err := strconv.Atoi(s); err == nil {
				out[n] = v
			}
		}
	}
	return out
}
