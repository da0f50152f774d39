package main

import (
	"strings"
	"testing"
)

// FuzzSplitStatements: no text is lost, and a cut text has an end.
func FuzzSplitStatements(f *testing.F) {
	for _, s := range []string{"select 1; select 2", "/* ; /* */ ;", "$a$;$a$;", "E'\\';';", "--;\n;", `";"`, "$1;$", "é;"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		rest := s
		var all strings.Builder
		for {
			st, tail, ok := cutStatement(rest)
			if !ok {
				all.WriteString(tail)
				break
			}
			if !strings.HasSuffix(st, ";") {
				t.Fatalf("%q ends in no semicolon", st)
			}
			all.WriteString(st)
			rest = tail
		}
		if all.String() != s {
			t.Fatalf("%q became %q", s, all.String())
		}
		splitStatements(s)
	})
}
