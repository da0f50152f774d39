package table

import (
	"context"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestJavaChangelog gives the same commits to a table of ours and to one of Java's
// and has each side compact its own, for every merge engine, changelog producer
// and kind of deletion vectors: the same rows and, snapshot range by snapshot
// range, the same changelog, read by Java. In the end Java compacts ours.
func TestJavaChangelog(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 4))
	oracle.Java(t, t.TempDir())
	some := testkit.Rounds(1) > 1
	for i, c := range engineCases() {
		for k, o := range changelogOptionsOf(c) {
			if !some && (i+k+int(seed%3))%3 != 0 {
				continue // each engine and each set of options is there, all in three runs
			}
			t.Run(fmt.Sprint(c.name, " ", o), func(t *testing.T) { javaChangelogRound(t, r, c, o) })
		}
	}
}

// changelogOptionsOf are the option sets of compactions that an engine allows.
func changelogOptionsOf(c engineCase) []map[string]string {
	out := []map[string]string{
		{"changelog-producer": "lookup"},
		{"changelog-producer": "lookup", "changelog-producer.row-deduplicate": "true"},
	}
	if c.opts["merge-engine"] == "first-row" {
		return append(out, map[string]string{})
	}
	return append(out,
		map[string]string{"changelog-producer": "full-compaction"},
		map[string]string{"changelog-producer": "full-compaction", "changelog-producer.row-deduplicate": "true", "changelog-producer.row-deduplicate-ignore-fields": "b,e"},
		map[string]string{"deletion-vectors.enabled": "true"},
		map[string]string{"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true", "changelog-producer": "lookup"},
		map[string]string{"force-lookup": "true"},
	)
}

func javaChangelogRound(t *testing.T, r *rand.Rand, c engineCase, more map[string]string) {
	ctx := context.Background()
	opts := maps.Clone(c.opts)
	maps.Copy(opts, more)
	if r.IntN(2) == 0 {
		opts["num-sorted-run.compaction-trigger"] = "3"
	}
	if r.IntN(2) == 0 {
		opts["data-file.thin-mode"] = "true"
	}
	s := tableSchema(t, opts, []string{"l", "k"}, append([]string{"k INT", "l STRING"}, engineColumns...)...)
	rowColumn(s)
	j := newJavaTable(t, s)
	raw, err := schema.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	dir := filepath.Join(j.java.Warehouse, "db.db", "j", "schema")
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "schema-0"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	theirs := Open(j.store.Env(), "db.db/j")
	once := writesOnce(opts)
	keyCols, _ := columnsOf(s, s.PrimaryKeys)
	from := [2]int64{}
	history := map[string][]string{} // what was written of each key
	for step := range 5 {
		met := map[string]bool{}
		var rows [][]types.Datum
		var kinds []uint8
		var given []any
		for range 25 {
			var vals []types.Datum
			m := map[string]any{}
			for _, f := range s.Fields {
				d := engineDatum(r, f, 4)
				vals = append(vals, d)
				if d != nil {
					m[f.Name] = javaDatum(f.Type, d)
				}
			}
			kind := uint8(0)
			if len(c.kinds) > 0 && r.IntN(4) == 0 {
				kind = uint8(c.kinds[r.IntN(len(c.kinds))])
				m["_rowkind"] = []string{"+I", "-U", "+U", "-D"}[kind]
			}
			if key := keyText(s, keyCols, vals); once && met[key] {
				continue
			} else {
				met[key] = true
			}
			rows, kinds, given = append(rows, vals), append(kinds, kind), append(given, m)
			var ps []string
			for i, f := range s.Fields {
				ps = append(ps, text(f.Type, vals[i]))
			}
			key := strings.Join(ps[:2], " | ")
			history[key] = append(history[key], fmt.Sprint(step, " ", kind, " ", strings.Join(ps[2:], " | ")))
		}
		j.write(rows, kinds)
		j.publish()
		j.java.Do(t, map[string]any{"cmd": "write", "table": "db.j", "rows": given, "options": map[string]string{"write-only": "true"}})
		mode := "minor"
		switch n := r.IntN(5); {
		case n == 0 && step < 4:
			continue
		case n < 3 || opts["changelog-producer"] == "full-compaction":
			mode = "full"
		}
		// A removed row that its key's next one does not replace in every column matters as
		// long as it is there, and that is until a compaction reaches the highest level: when,
		// depends on the sizes of files, and those of Java's are others. There Java has to
		// make of our files what we make of them.
		twin := ""
		if opts["partial-update.remove-record-on-sequence-group"] != "" {
			twin = fmt.Sprint("w", step)
			in := filepath.Join(j.java.Warehouse, "db.db")
			if err := os.CopyFS(filepath.Join(in, twin), os.DirFS(filepath.Join(in, strings.TrimPrefix(j.name, "db.")))); err != nil {
				t.Fatal(err)
			}
		}
		rep, err := j.store.Compact(ctx, CompactOptions{Full: mode == "full", Level0: mode == "minor"})
		if err != nil {
			t.Fatalf("step %d %s: %v", step, mode, err)
		}
		j.java.Do(t, map[string]any{"cmd": "compact", "table": "db.j", "mode": mode})
		when := fmt.Sprintf("%v step %d, %s: %+v", opts, step, mode, rep)
		var all [4][]string
		for i, st := range []*FileStore{j.store, theirs} {
			if all[i], _, err = readAll(ctx, st, Scan{Limit: -1, SkipLevel0: true}, ReadOptions{}); err != nil {
				t.Fatal(when, err)
			}
			all[i+2] = j.javaRows([]string{j.name, "db.j"}[i])
		}
		if twin != "" && !slices.Equal(all[2], all[3]) && slices.Equal(all[0], all[2]) && slices.Equal(all[1], all[3]) {
			j.java.Do(t, map[string]any{"cmd": "compact", "table": "db." + twin, "mode": mode})
			if slices.Equal(j.javaRows("db."+twin), all[0]) {
				t.Logf("%s: Java has removed a row for good at another time%s", when, diff(all[0], all[3]))
				return
			}
		}
		for i, what := range []string{"ours as we read it", "Java's as we read it", "ours as Java reads it"} {
			if !slices.Equal(all[i], all[3]) {
				t.Errorf("%s, %s: %d rows; Java's as Java reads it: %d rows%s", when, what, len(all[i]), len(all[3]), diff(all[i], all[3]))
				for _, r := range all[i] {
					if !slices.Contains(all[3], r) {
						key := strings.Join(strings.Split(r, " | ")[:2], " | ")
						t.Logf("%s was written\n   %s", key, strings.Join(history[key], "\n   "))
					}
				}
			}
		}
		if more["changelog-producer"] != "" {
			a, b := j.changes(j.store, j.name, &from[0]), j.changes(theirs, "db.j", &from[1])
			if !slices.Equal(a, b) {
				t.Errorf("%s: changelogs of %d and %d rows (theirs)%s", when, len(a), len(b), diff(a, b))
			}
		}
		if t.Failed() {
			t.FailNow()
		}
		j.java.Check(t, j.name)
	}
	if _, err := j.store.Compact(ctx, CompactOptions{Full: true}); err != nil {
		t.Fatal(err)
	}
	before := j.javaRows(j.name)
	j.java.Do(t, map[string]any{"cmd": "compact", "table": j.name, "mode": "full"})
	if after := j.javaRows(j.name); !slices.Equal(before, after) {
		t.Errorf("after Java compacted it: %s", diff(after, before))
	}
	j.java.Check(t, j.name)
}

// changes are the changelog rows since snapshot from as Java reads them, sorted.
func (j *javaTable) changes(s *FileStore, name string, from *int64) []string {
	j.t.Helper()
	at, err := s.Resolve(context.Background(), snapshot.Ref{})
	if err != nil {
		j.t.Fatal(err)
	}
	var out []string
	o := map[string]string{"incremental-between": fmt.Sprintf("%d,%d", *from, at.ID), "incremental-between-scan-mode": "changelog"}
	for _, r := range j.java.Rows(j.t, name+"$audit_log", o) {
		out = append(out, string(r))
	}
	*from = at.ID
	slices.Sort(out)
	return out
}
