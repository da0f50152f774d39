package ast

import "strings"

// QuoteIdent returns name as SQL, in double quotes unless it is a plain
// lower-case word that is no keyword of PostgreSQL's reserved, column-name or
// type-name classes, and none of the unreserved ones that begin a clause
// somewhere a name may stand.
func QuoteIdent(name string) string {
	if plainWord(name) && !mustQuote[name] && !clauseWord[name] {
		return name
	}
	return `"` + strings.ReplaceAll(name, `"`, `""`) + `"`
}

// QuoteString returns s as a string literal, for standard_conforming_strings on.
func QuoteString(s string) string {
	return "'" + strings.ReplaceAll(s, "'", "''") + "'"
}

var clauseWord = map[string]bool{
	"recursive": true, "partition": true, "range": true, "rows": true, "groups": true, "double": true,
	"exclude": true, "current": true, "cube": true, "rollup": true, "operator": true, "nulls": true,
	"temp": true, "temporary": true, "unlogged": true, "local": true, "global": true, "session": true,
	"unbounded": true, "watermark": true, "map": true, "multiset": true, "struct": true, "array": true,
	"at": true, "by": true, "of": true, "with": true, "materialized": true, "savepoint": true,
	"extended": true, "catalog": true, "transaction": true, "prepare": true, "sequence": true,
	"function": true, "procedure": true, "routine": true, "database": true, "language": true,
	"schema": true, "tablespace": true, "domain": true, "type": true, "parameter": true, "large": true,
	"if": true, "set": true, "constraints": true, "characteristics": true,
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
