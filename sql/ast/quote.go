package ast

import "strings"

// QuoteIdent returns name as SQL, in double quotes unless it is a plain
// lower-case word that is no keyword of PostgreSQL's reserved, column-name or
// type-name classes.
func QuoteIdent(name string) string {
	if plainWord(name) && !mustQuote[name] {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteString returns s as a string literal, for standard_conforming_strings on.
func QuoteString(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

func plainWord(s string) bool {
	if s == "" {
		return false
	}
	for i := 0; i < len(s); i++ {
		c := s[i]
		switch {
		case c >= 'a' && c <= 'z', c == '_':
		case i > 0 && (c >= '0' && c <= '9' || c == '$'):
		default:
			return false
		}
	}
	return true
}
