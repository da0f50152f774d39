package schema

import (
	"encoding/json"
	"slices"
	"strings"
)

// Options whose values are lists of columns.
var columnListOptions = []string{
	optBucketKey, optSequenceField, "rowkind.field", "record-level.time-field", "clustering.columns",
	"changelog-producer.row-deduplicate-ignore-fields", "partial-update.remove-record-on-sequence-group",
}

const (
	fieldsPrefix     = "fields."
	fileIndexPrefix  = "file-index."
	pgTypePrefix     = "pg-type."
	pgDefaultPrefix  = "pg-default."
	pgIdentityPrefix = "pg-identity."
	pgConstraintName = "pg-constraint."
	pgIndexPrefix    = "pg-index."
	suffixSeqGroup   = ".sequence-group"
	suffixNestedKey  = ".nested-key"
)

// renameInOptions rewrites the options that name a column: lists of columns, the
// fields.<column>.* and file-index families, and those that this engine keeps
// beside Paimon's (pg-type, pg-default, pg-identity, pg-constraint, pg-index).
func renameInOptions(o map[string]string, from, to string) {
	rename := func(s string) string {
		if s == from {
			return to
		}
		return s
	}
	for _, k := range columnListOptions {
		if v, ok := o[k]; ok && strings.TrimSpace(v) != "" {
			o[k] = mapList(v, rename)
		}
	}
	for _, key := range sortedKeys(o) {
		value := o[key]
		nk, nv := key, value
		switch {
		case strings.HasPrefix(key, fieldsPrefix):
			// fields.<a>,<b>.<option>; a column's name may itself hold dots.
			for _, end := range []string{suffixSeqGroup, suffixNestedKey} {
				if strings.HasSuffix(key, end) && len(key) > len(fieldsPrefix)+len(end) {
					nk = fieldsPrefix + mapList(key[len(fieldsPrefix):len(key)-len(end)], rename) + end
					if end == suffixSeqGroup {
						nv = mapList(value, rename)
					}
				}
			}
			if rest, ok := strings.CutPrefix(key, fieldsPrefix+from+"."); ok && nk == key {
				nk = fieldsPrefix + to + "." + rest
			}
		case strings.HasPrefix(key, fileIndexPrefix):
			typ, rest, _ := strings.Cut(key[len(fileIndexPrefix):], ".")
			if rest == "columns" {
				nv = mapList(value, func(s string) string { return renameIndexed(s, from, to) })
			} else if opt, ok := strings.CutPrefix(rest, from+"."); ok {
				nk = fileIndexPrefix + typ + "." + to + "." + opt
			} else if opt, ok := strings.CutPrefix(rest, from+"["); ok {
				nk = fileIndexPrefix + typ + "." + to + "[" + opt
			}
		case key == pgTypePrefix+from:
			nk = pgTypePrefix + to
		case key == pgDefaultPrefix+from:
			nk = pgDefaultPrefix + to
		case key == pgIdentityPrefix+from:
			nk = pgIdentityPrefix + to
		case strings.HasPrefix(key, pgConstraintName):
			nv = renameInConstraint(value, from, to)
		case strings.HasPrefix(key, pgIndexPrefix):
			nv, _ = mapIndex(value, func(s string) (string, bool) { return renameIndexed(s, from, to), true })
		}
		if nk != key {
			delete(o, key)
		}
		o[nk] = nv
	}
}

// forgetColumn drops what the options say about a column that is no more, as far
// as it is this engine's own; Paimon's options that name the column make the
// change invalid, as in Java, and are for the user to reset.
func forgetColumn(o map[string]string, column string) {
	delete(o, pgTypePrefix+column)
	delete(o, pgDefaultPrefix+column)
	delete(o, pgIdentityPrefix+column)
	for _, key := range sortedKeys(o) {
		switch {
		case strings.HasPrefix(key, pgConstraintName):
			if constraintUses(o[key], column) {
				delete(o, key)
			}
		case strings.HasPrefix(key, pgIndexPrefix):
			v, left := mapIndex(o[key], func(s string) (string, bool) { return s, s != column && !strings.HasPrefix(s, column+"[") })
			if o[key] = v; left == 0 {
				delete(o, key)
			}
		case strings.HasPrefix(key, fileIndexPrefix):
			typ, rest, _ := strings.Cut(key[len(fileIndexPrefix):], ".")
			if rest == "columns" {
				var keep []string
				for _, s := range strings.Split(o[key], ",") {
					if c := strings.TrimSpace(s); c != column && !strings.HasPrefix(c, column+"[") {
						keep = append(keep, c)
					}
				}
				if len(keep) == 0 {
					delete(o, key)
				} else if v := strings.Join(keep, ","); len(keep) != strings.Count(o[key], ",")+1 {
					o[key] = v
				}
			} else if strings.HasPrefix(rest, column+".") || strings.HasPrefix(rest, column+"[") {
				delete(o, fileIndexPrefix+typ+"."+rest)
			}
		}
	}
}

// renameIndexed renames the column of an indexed column a or map key m[key].
func renameIndexed(s, from, to string) string {
	if c, ok := strings.CutPrefix(s, from+"["); ok {
		return to + "[" + c
	}
	if s == from {
		return to
	}
	return s
}

// mapIndex applies f to the columns of what catalog keeps in pg-index.<name>; f says
// whether a column stays. It returns how many do, 1 if the value is none of catalog's.
func mapIndex(value string, f func(string) (string, bool)) (out string, left int) {
	var rest map[string]json.RawMessage
	var columns []string
	if json.Unmarshal([]byte(value), &rest) != nil || json.Unmarshal(rest["columns"], &columns) != nil {
		return value, 1
	}
	keep := []string{}
	for _, c := range columns {
		if s, ok := f(c); ok {
			keep = append(keep, s)
		}
	}
	if slices.Equal(keep, columns) {
		return value, len(keep)
	}
	rest["columns"], _ = json.Marshal(keep) // strings always marshal
	b, _ := json.Marshal(rest)
	return string(b), len(keep)
}

func sortedKeys(o map[string]string) []string {
	out := make([]string, 0, len(o))
	for k := range o {
		out = append(out, k)
	}
	slices.Sort(out)
	return out
}

// mapList applies f to the items of a comma-separated list; blanks around those
// that change are lost.
func mapList(v string, f func(string) string) string {
	items := strings.Split(v, ",")
	for i, s := range items {
		if t := strings.TrimSpace(s); f(t) != t {
			items[i] = f(t)
		}
	}
	return strings.Join(items, ",")
}

// constraint is what catalog keeps in pg-constraint.<name>; members that this
// package does not touch pass through as they are.
type constraint struct {
	columns []string
	expr    string
	rest    map[string]json.RawMessage
}

func parseConstraint(value string) (c constraint, ok bool) {
	if json.Unmarshal([]byte(value), &c.rest) != nil {
		return c, false
	}
	if raw, ok := c.rest["columns"]; ok && json.Unmarshal(raw, &c.columns) != nil {
		return c, false
	}
	if raw, ok := c.rest["expr"]; ok && json.Unmarshal(raw, &c.expr) != nil {
		return c, false
	}
	return c, true
}

func renameInConstraint(value, from, to string) string {
	c, ok := parseConstraint(value)
	if !ok {
		return value
	}
	changed := false
	for i, s := range c.columns {
		if s == from {
			c.columns[i], changed = to, true
		}
	}
	if changed {
		c.rest["columns"], _ = json.Marshal(c.columns) // strings always marshal
	}
	if e := renameInSQL(c.expr, from, to); e != c.expr {
		c.rest["expr"], _ = json.Marshal(e)
		changed = true
	}
	if !changed {
		return value
	}
	b, _ := json.Marshal(c.rest)
	return string(b)
}

func constraintUses(value, column string) bool {
	c, ok := parseConstraint(value)
	if !ok {
		return false
	}
	found := slices.Contains(c.columns, column)
	eachName(c.expr, func(_, _ int, name string) { found = found || name == column })
	return found
}

// renameInSQL renames a column in an SQL expression over one table's columns.
func renameInSQL(expr, from, to string) string {
	var b strings.Builder
	done := 0
	eachName(expr, func(start, end int, name string) {
		if name == from {
			b.WriteString(expr[done:start])
			b.WriteString(quoteName(to))
			done = end
		}
	})
	if done == 0 {
		return expr
	}
	return b.String() + expr[done:]
}

// quoteName quotes a name always: it may be a keyword.
func quoteName(s string) string { return `"` + strings.ReplaceAll(s, `"`, `""`) + `"` }

// eachName calls f for the identifiers of an SQL expression that can be columns:
// not those behind "::" or before "(". Strings, numbers and comments are passed
// over. Unquoted names are folded to lower case.
func eachName(s string, f func(start, end int, name string)) {
	for i := 0; i < len(s); {
		c := s[i]
		switch {
		case c == '\'':
			i = skipQuoted(s, i, '\'', i > 0 && (s[i-1] == 'e' || s[i-1] == 'E'))
		case c == '"' || c == '`':
			end := skipQuoted(s, i, c, false)
			if end > i+1 && s[end-1] == c {
				q := string(c)
				name := strings.ReplaceAll(s[i+1:end-1], q+q, q)
				if !isCall(s, i, end) {
					f(i, end, name)
				}
			}
			i = end
		case c == '$':
			i = skipDollar(s, i)
		case c == '-' && strings.HasPrefix(s[i:], "--"):
			if n := strings.IndexByte(s[i:], '\n'); n >= 0 {
				i += n
			} else {
				i = len(s)
			}
		case c == '/' && strings.HasPrefix(s[i:], "/*"):
			if n := strings.Index(s[i:], "*/"); n >= 0 {
				i += n + 2
			} else {
				i = len(s)
			}
		case c >= '0' && c <= '9':
			for i < len(s) && (isWord(s[i]) || s[i] >= '0' && s[i] <= '9' || s[i] == '.') {
				i++
			}
		case isWord(c):
			end := i
			for end < len(s) && (isWord(s[end]) || s[end] >= '0' && s[end] <= '9' || s[end] == '$') {
				end++
			}
			// The letter before a quote belongs to the string: E'...', B'...'.
			if !isCall(s, i, end) && !(end < len(s) && s[end] == '\'') {
				f(i, end, strings.ToLower(s[i:end]))
			}
			if end < len(s) && s[end] == '\'' {
				i = skipQuoted(s, end, '\'', end-i == 1 && (c == 'e' || c == 'E'))
			} else {
				i = end
			}
		default:
			i++
		}
	}
}

// isCall reports whether the name in s[start:end] is that of a function or type.
func isCall(s string, start, end int) bool {
	before := strings.TrimRight(s[:start], " \t\r\n")
	after := strings.TrimLeft(s[end:], " \t\r\n")
	return strings.HasSuffix(before, "::") || strings.HasPrefix(after, "(")
}

func isWord(c byte) bool {
	return c == '_' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= 0x80
}

// skipQuoted returns the position behind the quoted text that starts at i.
func skipQuoted(s string, i int, quote byte, backslash bool) int {
	for i++; i < len(s); i++ {
		switch {
		case s[i] == '\\' && backslash:
			i++
		case s[i] == quote && i+1 < len(s) && s[i+1] == quote:
			i++
		case s[i] == quote:
			return i + 1
		}
	}
	return len(s)
}

// skipDollar passes a dollar-quoted string, or one dollar sign.
func skipDollar(s string, i int) int {
	end := i + 1
	for end < len(s) && (isWord(s[end]) || end > i+1 && s[end] >= '0' && s[end] <= '9') {
		end++
	}
	if end >= len(s) || s[end] != '$' {
		return i + 1
	}
	tag := s[i : end+1]
	if n := strings.Index(s[end+1:], tag); n >= 0 {
		return end + 1 + n + len(tag)
	}
	return len(s)
}
