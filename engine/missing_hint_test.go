package engine

import (
	"errors"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// TestRefusedNamesTheAlternative: what is refused says what there is instead.
func TestRefusedNamesTheAlternative(t *testing.T) {
	s := testSession(t, writeEngine(t, nil))
	runSQL(t, s, "CREATE TABLE t (id int, v text)")
	for _, tt := range []struct{ sql, message, hint string }{
		{"SELECT * FROM t$snapshot", `relation "t$snapshot" does not exist`, "t$snapshots"},
		{"SELECT * FROM tt", `relation "tt" does not exist`, ""},
		{"CLUSTER t", "CLUSTER is not supported yet", "order_strategy"},
		{"ALTER TABLE t SET ('file-index.bloom.columns' = 'id')", `there is no file index of kind "bloom", only bloom-filter, range-bitmap, bitmap, bsi`, ""},
		{"CREATE MATERIALIZED VIEW mv AS SELECT 1", "CREATE MATERIALIZED VIEW is not supported yet", ""},
		{"CREATE TABLE rk (id int PRIMARY KEY) WITH ('row-tracking.enabled' = 'true')", `"row-tracking.enabled" is not for tables with a primary key`, ""},
	} {
		var pe *pgerr.Error
		if err := s.Query(t.Context(), tt.sql, &texts{}); !errors.As(err, &pe) {
			t.Errorf("%s: %v", tt.sql, err)
			continue
		}
		if !strings.Contains(pe.Message, tt.message) || !strings.Contains(pe.Hint, tt.hint) || (tt.hint == "") != (pe.Hint == "") {
			t.Errorf("%s: %q, hint %q", tt.sql, pe.Message, pe.Hint)
		}
	}
}
