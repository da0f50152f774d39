package sqllogic_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/tests/sqllogic"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// TestDDL runs the files that make, change and drop tables, each on a warehouse of
// its own, by both protocols. All but paimon*.slt were recorded on PostgreSQL 15.
func TestDDL(t *testing.T) {
	if *dir != "" && *dir != "ddl" {
		t.Skip("needs -dir ddl, or no -dir")
	}
	for _, mode := range []sqllogic.Mode{sqllogic.Simple, sqllogic.Extended} {
		var total sqllogic.Result
		s := testserver.Serve(t, t.TempDir(), nil)
		for _, f := range files(t, "ddl") {
			t.Run(strings.TrimSuffix(filepath.Base(f), ".slt")+"/"+mode.String(), func(t *testing.T) {
				r, err := sqllogic.RunFile(t.Context(), f, sqllogic.Options{DSN: s.DSN, Mode: mode, Types: true, Timeout: timeout})
				if err != nil {
					t.Fatal(err)
				}
				total.Add(r)
				for _, x := range r.Failures {
					t.Errorf("%s:%d: %s\n\t%s", x.File, x.Line, x.Why, oneLine(x.SQL))
				}
			})
		}
		t.Logf("%s protocol: %s", mode, total)
	}
}
