package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// TestBucketCountHint: what the hint says can be typed as it is.
func TestBucketCountHint(t *testing.T) {
	s := testSession(t, writeEngine(t, nil))
	runSQL(t, s, "CREATE SCHEMA d2")
	for table, plain := range map[string]string{`t`: `t`, `public."O'T"`: `"O'T"`, `d2.t`: `d2.t`} {
		runSQL(t, s, "CREATE TABLE "+table+" (id int PRIMARY KEY, v int) WITH ('bucket' = '2')")
		runSQL(t, s, "INSERT INTO "+table+" VALUES (1, 1)")
		runSQL(t, s, "ALTER TABLE "+table+" SET ('bucket' = '3')")
		err := s.Query(t.Context(), "INSERT INTO "+table+" VALUES (1, 2)", &texts{})
		var pe *pgerr.Error
		if !errors.As(err, &pe) || pe.Code != pgerr.ObjectNotInPrerequisiteState {
			t.Fatalf("%s: %v", table, err)
		}
		call, rest, ok := strings.Cut(pe.Hint, " or ")
		if !ok || !strings.HasPrefix(call, "CALL ") || !strings.HasPrefix(rest, "INSERT OVERWRITE "+plain+" SELECT * FROM "+plain+" ") ||
			!strings.Contains(rest, "ALTER TABLE "+plain+" SET ('bucket' = '2')") {
			t.Fatalf("%s: %s", table, pe.Hint)
		}
		runSQL(t, s, call)
		runSQL(t, s, "INSERT INTO "+table+" VALUES (1, 2)")
	}
}
