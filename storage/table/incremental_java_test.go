package table

import (
	"bytes"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
)

// javaChanges are the rows of t$audit_log under options, as changes makes them.
func (j *javaTable) javaChanges(o map[string]string) ([]string, error) {
	j.t.Helper()
	r, err := j.java.Try(map[string]any{"cmd": "read", "table": j.name + "$audit_log", "options": o})
	if err != nil {
		return nil, err
	}
	var rows []json.RawMessage
	if err := json.Unmarshal(r["rows"], &rows); err != nil {
		j.t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, x := range rows {
		lines.Write(append(x, '\n'))
	}
	file := filepath.Join(j.t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		j.t.Fatal(err)
	}
	out := expected(j.t, file, append(types.Schema{{ID: -1, Name: "rowkind", Type: types.Of(types.Text)}}, j.sch.Fields...))
	for i, x := range out {
		out[i] = x[1:3] + x[4:]
	}
	sort.Strings(out)
	return out, nil
}

// TestJavaChanges takes turns with Java at writing, compacting and overwriting key
// tables, with and without a changelog of their input, and asks both for the changes
// of every range in every mode.
func TestJavaChanges(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 4))
	asked := map[string]int{}
	for round := range testkit.Rounds(4) {
		opts := map[string]string{"bucket": fmt.Sprint(1 + r.IntN(2)), "write-only": "true"}
		if round%2 == 0 {
			opts["changelog-producer"] = "input"
		}
		if r.IntN(3) == 0 {
			opts["sequence.field"] = "s"
		}
		if r.IntN(3) == 0 {
			opts["data-file.thin-mode"] = "true"
		}
		sch := tableSchema(t, opts, []string{"p", "k"}, "p STRING", "k INT", "s INT", "v STRING", "d DECIMAL(10, 2)")
		if r.IntN(2) == 0 {
			sch = partitioned(sch, "p")
		}
		j := newJavaTable(t, sch)
		n := 0
		var done []string
		for range 6 {
			step := []string{"ours", "ours", "java", "java", "compact"}[r.IntN(5)]
			if round%4 == 3 && r.IntN(4) == 0 {
				step = "overwrite"
			}
			done = append(done, step)
			var rows [][]types.Datum
			var kinds []uint8
			var given []any
			met := map[string]bool{}
			for range 1 + r.IntN(12) {
				n++
				row := []types.Datum{[]string{"x", "y"}[r.IntN(2)], int64(r.IntN(8)), int64(r.IntN(5)), fmt.Sprint("v", n), decimalOf(t, fmt.Sprintf("%d.25", n))}
				kind := []uint8{0, 0, 2, 3}[r.IntN(4)]
				// A row that is written as it was is no change to us (states are compared), but
				// is one to Java where only its file is new: no value is written twice.
				if key := fmt.Sprint(row[0], row[1]); met[key] && opts["sequence.field"] != "" {
					continue
				} else {
					met[key] = true
				}
				m := map[string]any{}
				for i, f := range sch.Fields {
					m[f.Name] = javaDatum(f.Type, row[i])
				}
				if step == "overwrite" {
					kind = 0
				}
				m["_rowkind"] = kindTexts[kind]
				rows, kinds, given = append(rows, row), append(kinds, kind), append(given, m)
			}
			switch step {
			case "ours":
				j.write(rows, kinds)
				j.publish()
			case "java":
				j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": given})
			case "overwrite":
				j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": given, "overwrite": true})
			case "compact":
				j.java.Do(t, map[string]any{"cmd": "compact", "table": j.name, "mode": []string{"full", "minor"}[r.IntN(2)]})
			}
		}
		last, err := j.store.Snapshots("").LatestID(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for a := range last {
			for b := a; b <= last; b++ {
				for _, mode := range []string{"auto", "delta", "changelog", "diff"} {
					// Java has no state 0; ours is the empty table. An overwrite begins at
					// sequence number 0 again, and Java 1.4.2 (not 2.x) then takes the row after
					// for the one before. With a sequence field it shows rows of new files that
					// lose to rows of files that both states have, which it leaves out.
					if mode == "diff" && (a == 0 || slices.Contains(done, "overwrite") || opts["sequence.field"] != "") {
						continue
					}
					o := between(a, b, mode)
					theirs, errJava := j.javaChanges(o)
					ours, err := changes(t, j.store, o, true)
					if (err != nil) != (errJava != nil) {
						t.Fatalf("%v of %v after %v: %v, Java %v", o, opts, done, err, errJava)
					}
					if err == nil && !slices.Equal(ours, theirs) {
						t.Fatalf("%v of %v after %v: %d rows, Java %d%s", o, opts, done, len(ours), len(theirs), diff(ours, theirs))
					}
					asked[mode]++
				}
			}
		}
		state, errJava := j.javaChanges(nil)
		ours, _, err := readAll(t.Context(), j.store, Scan{Limit: -1, KeepDeletes: true, Columns: []int{PseudoKind, 0, 1, 2, 3, 4}}, ReadOptions{})
		if err != nil || errJava != nil {
			t.Fatal(err, errJava)
		}
		for i, x := range ours {
			ours[i] = kindTexts[x[0]-'0'] + x[1:]
		}
		sort.Strings(ours)
		if !slices.Equal(ours, state) {
			t.Fatalf("audit log of the state of %v after %v: %d rows, Java %d%s", opts, done, len(ours), len(state), diff(ours, state))
		}
		j.java.Check(t, j.name)
	}
	t.Logf("ranges compared: %v", asked)
}
