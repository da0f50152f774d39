package sqllogic_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/tests/sqllogic"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// TestCopy runs the files of COPY, each on a warehouse of its own. COPY has one form
// in both protocols; the other records are sent by both.
func TestCopy(t *testing.T) {
	if *dir != "" && *dir != "copy" {
		t.Skip("needs -dir copy, or no -dir")
	}
	for _, mode := range []sqllogic.Mode{sqllogic.Simple, sqllogic.Extended} {
		for _, f := range files(t, "copy") {
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
