package table

import (
	"bytes"
	"context"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"testing"
	"time"

	"github.com/paimon-sql/paimon-sql/internal/numeric"
	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// javaDatum is a value as the oracle's write takes it.
func javaDatum(t types.Type, d types.Datum) any {
	switch v := d.(type) {
	case int64:
		if t.Kind == types.Date {
			return time.Unix(v*86400, 0).UTC().Format(time.DateOnly)
		}
	case *numeric.Dec:
		return v.String()
	case []types.Datum:
		if t.Kind == types.Row {
			m := map[string]any{}
			for i, f := range t.Fields {
				m[f.Name] = javaDatum(f.Type, v[i])
			}
			return m
		}
		var out []any
		for _, e := range v {
			out = append(out, javaDatum(*t.Elem, e))
		}
		return out
	}
	return d
}

// javaRows are a table's rows as Java reads them, in the canonical form of readAll.
func (j *javaTable) javaRows(name string) []string {
	j.t.Helper()
	var lines bytes.Buffer
	for _, r := range j.java.Rows(j.t, name, nil) {
		lines.Write(append(r, '\n'))
	}
	file := filepath.Join(j.t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o644); err != nil {
		j.t.Fatal(err)
	}
	return expected(j.t, file, j.sch.Fields)
}

// TestJavaEngines gives the same commits to our writer and to Java's, write-only,
// for every merge engine. Ours read by us, ours read by Java, Java's read by us and
// Java's read by Java are the same rows, before and after Java compacted both.
func TestJavaEngines(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 3))
	for range testkit.Rounds(1) {
		for _, c := range engineCases() {
			t.Run(c.name, func(t *testing.T) { javaEngineRound(t, r, c) })
		}
	}
}

// writesOnce reports whether a commit may have one row of a key only to be the same
// from both writers: Java 1.4.2 sorts its write buffer as if the order were
// ascending, which 2.x does not, and merges a removal and what comes after it, which
// we do not.
func writesOnce(opts map[string]string) bool {
	return opts["sequence.field.sort-order"] == "descending" || mergetree.Removes(opts)
}

func javaEngineRound(t *testing.T, r *rand.Rand, c engineCase) {
	ctx := context.Background()
	opts := maps.Clone(c.opts)
	opts["write-only"] = "true"
	if r.IntN(2) == 0 {
		opts["data-file.thin-mode"] = "true"
	}
	if r.IntN(2) == 0 {
		opts["bucket"] = "2"
	}
	s := tableSchema(t, opts, []string{"l", "k"}, append([]string{"k INT", "l STRING"}, engineColumns...)...)
	rowColumn(s)
	j := newJavaTable(t, s)
	raw, err := schema.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(j.java.Warehouse, "db.db", "j", "schema"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(j.java.Warehouse, "db.db", "j", "schema", "schema-0"), raw, 0o644); err != nil {
		t.Fatal(err)
	}
	theirs := Open(j.store.Env(), "db.db/j")
	once := writesOnce(opts)
	keyCols, _ := columnsOf(s, s.PrimaryKeys)
	for range 5 {
		met := map[string]bool{}
		var rows [][]types.Datum
		var kinds []uint8
		var given []any
		for range 40 {
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
			}
			if kind != 0 {
				m["_rowkind"] = []string{"+I", "-U", "+U", "-D"}[kind]
			}
			if key := keyText(s, keyCols, vals); once && met[key] {
				continue
			} else {
				met[key] = true
			}
			rows, kinds, given = append(rows, vals), append(kinds, kind), append(given, m)
		}
		j.write(rows, kinds)
		j.publish()
		j.java.Do(t, map[string]any{"cmd": "write", "table": "db.j", "rows": given})
	}
	same := func(when string) {
		t.Helper()
		var all [4][]string
		for i, st := range []*FileStore{j.store, theirs} {
			if all[i], _, err = readAll(ctx, st, Scan{Limit: -1, SkipLevel0: true}, ReadOptions{}); err != nil {
				t.Fatal(when, err)
			}
			all[i+2] = j.javaRows([]string{j.name, "db.j"}[i])
		}
		for i, what := range []string{"ours as we read it", "Java's as we read it", "ours as Java reads it"} {
			if !slices.Equal(all[i], all[3]) {
				t.Errorf("%s, %s: %d rows; Java's as Java reads it: %d rows%s", when, what, len(all[i]), len(all[3]), diff(all[i], all[3]))
			}
		}
		if t.Failed() {
			t.FailNow()
		}
		j.java.Check(t, j.name)
	}
	same("level 0")
	for _, name := range []string{j.name, "db.j"} {
		j.java.Do(t, map[string]any{"cmd": "compact", "table": name, "mode": "full"})
	}
	same("compacted")
}
