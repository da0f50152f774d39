package table

import (
	"context"
	"encoding/json"
	"math/rand"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/format/formattest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestJavaReadsStatistics analyzes tables with a column of each type and has Java read
// the file, which parses every min and max by the column's type, and read and write
// the table afterwards: a file that Java cannot read stops its commits.
func TestJavaReadsStatistics(t *testing.T) {
	ctx := context.Background()
	for seed := range int64(3) {
		s := &schema.Table{Version: 3, HighestFieldID: 5000, Options: map[string]string{}}
		for _, f := range javaTypes() {
			if !f.Type.NotNull {
				s.Fields = append(s.Fields, f)
			}
		}
		j := newJavaTable(t, s)
		g := &formattest.Gen{Rand: rand.New(rand.NewSource(seed)), Nulls: 0.1, Distinct: []int{0, 40, 0}[seed]}
		j.random(g, 2, 300)
		j.publish()
		r, err := j.store.Analyze(ctx, AnalyzeOptions{})
		if err != nil {
			t.Fatal(err)
		}
		snap, err := j.store.Snapshots("").Latest(ctx)
		if err != nil || snap.ID != r.SnapshotID {
			t.Fatal(snap, err)
		}
		ours, err := j.store.Statistics(ctx, snap.Statistics)
		if err != nil {
			t.Fatal(err)
		}
		rows := j.java.Rows(t, j.name+"$statistics", nil)
		if len(rows) != 1 {
			t.Fatalf("Java reads %d rows", len(rows))
		}
		var theirs struct {
			SnapshotID int64  `json:"snapshot_id"`
			SchemaID   int64  `json:"schema_id"`
			Rows       int64  `json:"mergedRecordCount"`
			Bytes      int64  `json:"mergedRecordSize"`
			Columns    string `json:"colstat"`
		}
		if err := json.Unmarshal(rows[0], &theirs); err != nil {
			t.Fatal(err)
		}
		if theirs.SnapshotID != ours.SnapshotID || theirs.SchemaID != ours.SchemaID || theirs.Rows != *ours.Rows || theirs.Bytes != *ours.Bytes {
			t.Errorf("Java reads %+v", theirs)
		}
		cols := map[string]*ColumnStatistics{}
		if err := json.Unmarshal([]byte(theirs.Columns), &cols); err != nil {
			t.Fatal(err)
		}
		for _, f := range s.Fields {
			a, b := ours.Columns[f.Name], cols[f.Name]
			if a == nil || b == nil {
				t.Errorf("%s: %v, %v", f.Name, a, b)
				continue
			}
			x, _ := json.Marshal(a)
			y, _ := json.Marshal(b)
			if string(x) != string(y) {
				t.Errorf("%s: %s, Java reads %s", f.Name, x, y)
			}
			lo, hi := a.Bounds(f.Type)
			if c, ok := predicate.Compare(f.Type, lo, hi); (lo != nil) != (a.Min != nil) || lo != nil && (!ok || c > 0) {
				t.Errorf("%s: %v to %v of %s", f.Name, lo, hi, x)
			}
			if bounded(f.Type) && seed == 1 && a.Min == nil {
				t.Errorf("%s has no bounds", f.Name)
			}
		}
		j.java.Check(t, j.name)
		// Java's next commit parses the file, and names it.
		j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": []any{map[string]any{}}})
		j.store.Snapshots("").Forget()
		next, err := j.store.Snapshots("").Latest(ctx)
		if err != nil || next.ID <= snap.ID || next.Statistics != snap.Statistics {
			t.Errorf("Java's snapshot is %+v, %v", next, err)
		}
		if x, err := j.store.Stats(ctx, snapshot.Ref{}); err != nil || x.Problem != nil || x.Rows != *ours.Rows+1 {
			t.Errorf("%+v, %v", x, err)
		}
	}
}

// bounded reports whether values of a type have bounds that are written.
func bounded(t types.Type) bool {
	switch t.Kind {
	case types.Bytea, types.Array, types.Map, types.Row, types.Variant:
		return false
	}
	return true
}
