package sqllogic_test

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/tests/sqllogic"
	"github.com/paimon-sql/paimon-sql/tests/testserver"
)

// suite runs the files of a directory by both protocols, on a warehouse for each
// protocol, or with alone for each file.
func suite(t *testing.T, d string, alone bool) {
	if *dir != "" && *dir != d {
		t.Skipf("needs -dir %s, or no -dir", d)
	}
	for _, mode := range []sqllogic.Mode{sqllogic.Simple, sqllogic.Extended} {
		var total sqllogic.Result
		s := testserver.Serve(t, t.TempDir(), nil)
		for _, f := range files(t, d) {
			t.Run(strings.TrimSuffix(filepath.Base(f), ".slt")+"/"+mode.String(), func(t *testing.T) {
				s := s
				if alone {
					s = testserver.Serve(t, t.TempDir(), nil)
				}
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

// TestDDL runs the files that make, change and drop tables. All but paimon*.slt
// were recorded on PostgreSQL 15.
func TestDDL(t *testing.T) { suite(t, "ddl", false) }

// TestChanges runs the files that change data, alone and in transactions. All but
// lake*.slt were recorded on PostgreSQL 15 (sltrun -plain).
func TestChanges(t *testing.T) {
	for _, d := range []string{"dml", "txn"} {
		t.Run(d, func(t *testing.T) { suite(t, d, false) })
	}
}

// TestCopy runs the files of COPY, which has one form in both protocols.
// PostgreSQL 15 answers all of it the same.
func TestCopy(t *testing.T) { suite(t, "copy", true) }

// TestProcedures runs the files that call procedures.
func TestProcedures(t *testing.T) { suite(t, "procedure", true) }
