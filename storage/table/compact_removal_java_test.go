package table

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// What a removed row holds goes into the next row of its key as long as the removal
// is there, and a compaction that reaches the highest level forgets it. So rows
// depend on when that is, with Java, too.

// TestRemovedRowStays: the row that a removal leaves behind, by what was compacted
// before its key was inserted again; Java makes the same of the same commits.
func TestRemovedRowStays(t *testing.T) {
	rows := map[string][]types.Datum{ // k, c, g, a, h, e: c follows g, a follows h, e is in no group
		"insert": {int64(1), "a", int64(1), "first", int64(1), "first"},
		"remove": {int64(1), nil, int64(2), "removed", nil, "removed"},
		"again":  {int64(1), "b", int64(3), nil, nil, nil},
		"other":  {int64(2), "c", int64(1), nil, nil, nil},
	}
	const kept, empty = `1|"b"|3|"removed"|NULL|"removed"`, `1|"b"|3|NULL|NULL|NULL`
	for _, c := range []struct {
		steps, want string
		look        string // where compactions look rows up, if it is another
	}{
		{"insert remove again full", kept, ""},
		{"insert full remove again full", kept, ""},
		{"insert remove full again full", empty, ""},
		{"insert full remove full again full", empty, ""},
		{"insert remove full", "", ""},
		{"remove full again full", empty, ""},
		{"remove again full", kept, ""},
		// Compactions that look up fold again what they folded: a column that has a value
		// without one in its group loses it, though nobody wrote the key.
		{"base full remove minor again minor other full", kept, `1|"b"|3|NULL|NULL|"removed"`},
	} {
		for _, more := range removalOptions {
			opts := map[string]string{
				"bucket": "1", "merge-engine": "partial-update", "fields.g.sequence-group": "c", "fields.h.sequence-group": "a",
				"partial-update.remove-record-on-sequence-group": "g",
			}
			maps.Copy(opts, more)
			full := more["changelog-producer"] == "full-compaction"
			if strings.Contains(c.steps, "minor") && full {
				continue // its compactions are full
			}
			want := c.want
			switch {
			case c.look == "" || len(more) == 0:
			case more["deletion-vectors.enabled"] != "":
				want = empty // every compaction of level 0 forgets removals
			default:
				want = c.look
			}
			t.Run(fmt.Sprint(c.steps, " ", more), func(t *testing.T) { removedRowRound(t, opts, strings.Fields(c.steps), rows, want) })
		}
	}
}

func removedRowRound(t *testing.T, opts map[string]string, steps []string, rows map[string][]types.Datum, want string) {
	s := tableSchema(t, opts, []string{"k"}, "k INT", "c STRING", "g INT", "a STRING", "h INT", "e STRING")
	w := newWritten(t, s)
	java := oracle.Maybe(t, t.TempDir())
	if java != nil {
		var fields []map[string]string
		for _, f := range s.Fields {
			fields = append(fields, map[string]string{"name": f.Name, "type": types.PaimonString(f.Type)})
		}
		java.Do(t, map[string]any{"cmd": "create", "table": "db.j", "schema": map[string]any{"fields": fields, "primaryKeys": []string{"k"}, "options": opts}})
	}
	for _, step := range steps {
		if step == "full" || step == "minor" {
			if _, err := w.store.Compact(t.Context(), CompactOptions{Full: step == "full", Level0: step == "minor" && len(opts) > 6}); err != nil {
				t.Fatal(err)
			}
			if java != nil {
				java.Do(t, map[string]any{"cmd": "compact", "table": "db.j", "mode": step})
			}
			continue
		}
		data := [][]types.Datum{rows[step]}
		if step == "base" { // enough that what comes later stays in levels of its own
			data = nil
			for i := range int64(600) {
				data = append(data, []types.Datum{100 + i, fmt.Sprint(i), int64(1), fmt.Sprint(i * i), int64(1), fmt.Sprint(i * 77)})
			}
		}
		var given []any
		var kinds []uint8
		for _, row := range data {
			kind := uint8(0)
			m := map[string]any{"_rowkind": "+I"}
			if step == "remove" {
				kind, m["_rowkind"] = 3, "-D"
			}
			for i, f := range s.Fields {
				if row[i] != nil {
					m[f.Name] = row[i]
				}
			}
			given, kinds = append(given, m), append(kinds, kind)
		}
		w.write(data, kinds)
		w.publish()
		if java != nil {
			java.Do(t, map[string]any{"cmd": "write", "table": "db.j", "rows": given, "options": map[string]string{"write-only": "true"}})
		}
	}
	ours := ""
	for _, r := range w.scan(nil) {
		if strings.HasPrefix(r, "1|") {
			ours += r
		}
	}
	if ours != want {
		t.Errorf("row is %s, want %s", ours, want)
	}
	if java == nil {
		return
	}
	theirs := ""
	for _, r := range java.Rows(t, "db.j", nil) {
		var m map[string]any
		if err := json.Unmarshal(r, &m); err != nil {
			t.Fatal(err)
		}
		if m["k"] != 1.0 {
			continue
		}
		var ps []string
		for _, f := range s.Fields {
			switch v := m[f.Name].(type) {
			case nil:
				ps = append(ps, "NULL")
			case string:
				ps = append(ps, strconv.Quote(v))
			default:
				ps = append(ps, fmt.Sprint(v))
			}
		}
		theirs += strings.Join(ps, "|")
	}
	if theirs != want {
		t.Errorf("Java's row is %s, want %s", theirs, want)
	}
}

// TestJavaRemoval has Java compact a copy of our files each time that we do: the
// same rows and the same changelog come of them, whatever the files still hold of
// removed rows.
func TestJavaRemoval(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 8))
	for i := range testkit.Rounds(len(removalOptions)) {
		more := removalOptions[i%len(removalOptions)]
		t.Run(fmt.Sprint(i, " ", more), func(t *testing.T) { javaRemovalRound(t, r, more) })
	}
}

func javaRemovalRound(t *testing.T, r *rand.Rand, more map[string]string) {
	ctx := context.Background()
	opts := map[string]string{
		"bucket": "1", "merge-engine": "partial-update", "fields.g1.sequence-group": "a,b,r", "fields.g2,h.sequence-group": "c,d",
		"partial-update.remove-record-on-sequence-group": []string{"g1", "g2", "h", "g1,g2"}[r.IntN(4)],
	}
	if r.IntN(2) == 0 {
		opts["fields.d.aggregate-function"] = "sum"
	}
	maps.Copy(opts, more)
	if r.IntN(2) == 0 {
		opts["num-sorted-run.compaction-trigger"] = "3"
	}
	s := tableSchema(t, opts, []string{"k"}, append([]string{"k INT"}, engineColumns...)...)
	rowColumn(s)
	j := newJavaTable(t, s)
	draw := func(k int64) []types.Datum {
		vals := []types.Datum{k}
		for _, f := range s.Fields[1:] {
			vals = append(vals, engineDatum(r, f, 4))
		}
		return vals
	}
	// Java's minor compactions take level 0 up then; others may merge a removal and what
	// came after it, which ours do not.
	lookup := len(more) > 0 && more["changelog-producer"] != "full-compaction"
	history := map[int64][]string{}
	note := func(k int64, what string) { history[k] = append(history[k], what) }
	big := r.IntN(2) == 0 // what is written is little beside it, and stays in lower levels
	for step := range 6 {
		var rows [][]types.Datum
		var kinds []uint8
		n := 12
		if step == 0 && big {
			n = 600
		}
		for i := range n {
			k := r.Int64N(8)
			if i >= 12 {
				k = int64(100 + i)
			}
			kind := uint8(0)
			switch r.IntN(9) {
			case 0, 1, 2:
				kind = 3
			case 3:
				kind = 1
			case 4:
				kind = 2
			}
			rows, kinds = append(rows, draw(k)), append(kinds, kind)
			var ps []string
			for c, f := range s.Fields {
				ps = append(ps, text(f.Type, rows[i][c]))
			}
			note(k, fmt.Sprint(kind, " ", strings.Join(ps, " | ")))
		}
		j.write(rows, kinds)
		j.publish()
		if r.IntN(4) == 0 && step != 0 && step != 5 {
			continue
		}
		full := step == 0 && big || r.IntN(4) == 0 || !lookup
		mode := "minor"
		if full {
			mode = "full"
		}
		for k := range history {
			note(k, mode)
		}
		at, err := j.store.Resolve(ctx, snapshot.Ref{})
		if err != nil {
			t.Fatal(err)
		}
		from := [2]int64{at.ID - 1, at.ID - 1}
		twin := fmt.Sprint("w", step)
		in := filepath.Join(j.java.Warehouse, "db.db")
		if err := os.CopyFS(filepath.Join(in, twin), os.DirFS(filepath.Join(in, "t"))); err != nil {
			t.Fatal(err)
		}
		rep, err := j.store.Compact(ctx, CompactOptions{Full: full, Level0: !full && lookup})
		if err != nil {
			t.Fatalf("step %d %s: %v", step, mode, err)
		}
		j.java.Do(t, map[string]any{"cmd": "compact", "table": "db." + twin, "mode": mode})
		when := fmt.Sprintf("%v step %d, %s: %+v", opts, step, mode, rep)
		ours, _, err := readAll(ctx, j.store, Scan{Limit: -1, SkipLevel0: true}, ReadOptions{})
		if err != nil {
			t.Fatal(when, err)
		}
		theirs := j.javaRows("db." + twin)
		for what, got := range map[string][]string{"ours as we read it": ours, "ours as Java reads it": j.javaRows(j.name)} {
			if slices.Equal(got, theirs) {
				continue
			}
			t.Errorf("%s, %s: %d rows, Java makes %d of the same files%s", when, what, len(got), len(theirs), diff(got, theirs))
			for _, row := range got {
				var k int64
				if _, err := fmt.Sscan(row, &k); err == nil && !slices.Contains(theirs, row) {
					t.Logf("key %d was written\n   %s", k, strings.Join(history[k], "\n   "))
				}
			}
		}
		if more["changelog-producer"] != "" {
			a, b := j.changes(j.store, j.name, &from[0]), j.changes(Open(j.store.Env(), "db.db/"+twin), "db."+twin, &from[1])
			if !slices.Equal(a, b) {
				t.Errorf("%s: changelogs of %d and %d rows (theirs)%s", when, len(a), len(b), diff(a, b))
			}
		}
		if t.Failed() {
			t.FailNow()
		}
		if err := os.RemoveAll(filepath.Join(in, twin)); err != nil {
			t.Fatal(err)
		}
	}
	j.java.Check(t, j.name)
}
