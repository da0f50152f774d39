package sqllogic_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/tests/sqllogic"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// TestChanges runs the files that change data, alone and in transactions, by both
// protocols. All but lake*.slt were recorded on PostgreSQL 15 (sltrun -plain).
func TestChanges(t *testing.T) {
	for _, mode := range []sqllogic.Mode{sqllogic.Simple, sqllogic.Extended} {
		for _, d := range []string{"dml", "txn"} {
			if *dir != "" && *dir != d {
				continue
			}
			var total sqllogic.Result
			s := testserver.Serve(t, t.TempDir(), nil)
			for _, f := range files(t, d) {
				t.Run(d+"/"+strings.TrimSuffix(filepath.Base(f), ".slt")+"/"+mode.String(), func(t *testing.T) {
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
			t.Logf("%s, %s protocol: %s", d, mode, total)
		}
	}
}
