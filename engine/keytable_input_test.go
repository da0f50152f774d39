package engine

import (
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/pgerr"
)

// TestKeyTableRefusals are statements about key tables that make no sense: each is
// refused by name, none as an internal error.
func TestKeyTableRefusals(t *testing.T) {
	_, s := maintained(t, nil)
	runSQL(t, s, "CREATE TABLE t (k int PRIMARY KEY, v int, s text)")
	runSQL(t, s, "INSERT INTO t VALUES (1, 1, 'a')")
	for _, c := range []struct {
		sql  string
		code pgerr.Code
		say  string
	}{
		{"CREATE TABLE x (k int PRIMARY KEY, v int) WITH ('rowkind.field' = 'v')", pgerr.InvalidParameterValue, `does not take column "v"`},
		{"CREATE TABLE x (k int PRIMARY KEY, v int) WITH ('record-level.expire-time' = '1 h')", pgerr.InvalidParameterValue, `needs option "record-level.time-field"`},
		{"CREATE TABLE x (k int PRIMARY KEY, v int) WITH ('num-levels' = '1')", pgerr.InvalidParameterValue, "at least 2"},
		{"ALTER TABLE t SET ('num-sorted-run.compaction-trigger' = '0')", pgerr.InvalidParameterValue, "at least 1"},
		{"CREATE TABLE x (k int PRIMARY KEY) WITH ('bucket' = '-1', 'dynamic-bucket.target-row-num' = '-5')", pgerr.InvalidParameterValue, "at least 1"},
		{"CALL sys.rescale('t', 2147483648)", pgerr.InvalidParameterValue, "must be at most 2147483647"},
		{"CALL sys.rescale('t', 0)", pgerr.InvalidParameterValue, "must be at least 1"},
		{"SELECT * FROM paimon_incremental_query('t', -1, 1)", pgerr.InvalidParameterValue, "starts with snapshot -1"},
	} {
		err := s.Query(t.Context(), c.sql, &texts{})
		if !pgerr.Is(err, c.code) || !strings.Contains(err.Error(), c.say) {
			t.Errorf("%s: %v, want %s %s", c.sql, err, c.code, c.say)
		}
	}
}
