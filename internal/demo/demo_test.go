package demo

import (
	"context"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/engine"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

func TestLay(t *testing.T) {
	ctx := t.Context()
	w := fileio.NewMem()
	made, err := Lay(ctx, w)
	if err != nil || len(made) != 11 {
		t.Fatalf("made %v, %v", made, err)
	}
	for _, p := range []string{"default.db/orders/snapshot/LATEST", "default.db/orders/tag/tag-release-1", "tpch_append.db/lineitem/snapshot/snapshot-1"} {
		if _, err := w.Stat(ctx, p); err != nil {
			t.Errorf("%s: %v", p, err)
		}
	}
	if made, err = Lay(ctx, w); err != nil || len(made) != 0 {
		t.Errorf("a second time: %v, %v", made, err)
	}
	e, err := engine.Open(ctx, engine.Config{FileIO: w, Warehouse: "demo"})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close() //nolint:errcheck // a test
	s, err := e.OpenSession(ctx, engine.Startup{User: "u", Database: "paimon"})
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	holds := func(cond string) {
		t.Helper()
		out := &sink{}
		if err := s.Query(context.WithoutCancel(ctx), "SELECT "+cond, out); err != nil || !out.found {
			t.Errorf("%s: %v, %v", cond, out.found, err)
		}
	}
	holds("(SELECT count(*) FROM orders) = 14852 AND (SELECT count(*) FROM orders FOR VERSION AS OF 'release-1') = 15000")
	holds("(SELECT string_agg(snapshot_id || ' ' || total_record_count, ',' ORDER BY snapshot_id) FROM orders$snapshots) = '1 15000,2 15300,3 15448'")
	holds("(SELECT count(*) FROM tpch_append.lineitem) = 60175")
	holds("(SELECT sum(l_extendedprice * (1 - l_discount)) FROM tpch_append.lineitem) > 1000000000")
	holds("(SELECT count(*) FROM all_types WHERE c_big = 9223372036854775807 AND r IS NOT NULL) > 0")
	holds("(SELECT count(*) FROM part_date WHERE p IS NULL) = 4")
	for _, q := range Queries {
		if err := s.Query(ctx, q, &sink{}); err != nil {
			t.Errorf("%s: %v", q, err)
		}
	}
	// A table that was dropped is made again, one of the user's own stays.
	for _, sql := range []string{"DROP TABLE part_date", "DROP TABLE all_types", "CREATE TABLE all_types (mine int)"} {
		if err := s.Query(ctx, sql, &sink{}); err != nil {
			t.Fatal(sql, ": ", err)
		}
	}
	if made, err = Lay(ctx, w); err != nil || !slices.Equal(made, []string{"public.part_date"}) {
		t.Errorf("a third time: %v, %v", made, err)
	}
}
