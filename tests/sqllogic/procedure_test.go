package sqllogic_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/tests/sqllogic"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// TestProcedures runs the files that call procedures, each on a warehouse of its
// own, by both protocols.
func TestProcedures(t *testing.T) {
	if *dir != "" && *dir != "procedure" {
		t.Skip("needs -dir procedure, or no -dir")
	}
	for _, mode := range []sqllogic.Mode{sqllogic.Simple, sqllogic.Extended} {
		for _, f := range files(t, "procedure") {
			t.Run(strings.TrimSuffix(filepath.Base(f), ".slt")+"/"+mode.String(), func(t *testing.T) {
				s := testserver.Serve(t, t.TempDir(), nil)
				r, err := sqllogic.RunFile(t.Context(), f, sqllogic.Options{DSN: s.DSN, Mode: mode, Types: true, Timeout: timeout})
				if err != nil {
					t.Fatal(err)
				}
				for _, x := range r.Failures {
					t.Errorf("%s:%d: %s\n\t%s", x.File, x.Line, x.Why, oneLine(x.SQL))
				}
			})
		}
	}
}
