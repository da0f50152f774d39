// Package proof collects figures that tests measure, for a table that a make target
// prints when they have all run.
package proof

import (
	"os"
	"strings"
	"testing"
)

// ReportEnv names the variable with the file that lines are appended to; where it is not
// set they go to the test's log only.
const ReportEnv = "PAIMON_SQL_PROOFS"

// Line is a line of the table. Empty cells are shown as "-".
type Line struct {
	What  string // was asked, of which table
	Got   string // the figure
	Of    string // what it is compared with
	Share string // of that
	Took  string // wall time
	Limit string // what the figure must keep
	Kept  bool   // whether it does; without a limit it makes no difference
}

// Add adds a line. A figure that does not keep its limit is an error of the test.
func Add(t testing.TB, l Line) {
	t.Helper()
	verdict := ""
	if l.Limit != "" {
		verdict = "ok"
		if !l.Kept {
			verdict = "MISSED"
			t.Errorf("%s: %s %s is not %s", l.What, l.Got, l.Share, l.Limit)
		}
	}
	cells := []string{l.What, l.Got, l.Of, l.Share, l.Took, l.Limit, verdict}
	for i, c := range cells {
		if c == "" {
			cells[i] = "-"
		}
	}
	t.Log(strings.Join(cells, " | "))
	name := os.Getenv(ReportEnv)
	if name == "" {
		return
	}
	f, err := os.OpenFile(name, os.O_APPEND|os.O_CREATE|os.O_WRONLY, 0o644)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.WriteString(strings.Join(cells, "\t") + "\n"); err != nil {
		t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		t.Fatal(err)
	}
}
