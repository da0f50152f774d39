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

// FuzzClientFirst: no message of a client makes the parser panic, and what it
// takes has a nonce.
func FuzzClientFirst(f *testing.F) {
	for _, s := range []string{"n,,n=,r=abc", "y,,n=x,r=", "p=tls-server-end-point,,n=,r=x", "n,a=b,n=,r=x", ",,,"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		if c, err := parseClientFirst(s); err == nil && (c.nonce == "" || c.header+c.bare != s) {
			t.Fatalf("%q: %+v", s, c)
		}
	})
}
