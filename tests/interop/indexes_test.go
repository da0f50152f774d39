package interop

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/index"
	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileindex"
)

// indexQuestion is a condition as SQL, as the oracle and as indexes take it.
type indexQuestion struct {
	sql  string
	java map[string]any
	leaf *predicate.Leaf // nil: its verdict is not compared
}

var (
	bigintType, textType, intType = types.Of(types.Int8), types.Of(types.Text), types.Of(types.Int4)
	indexFields                   = types.Schema{
		{ID: 0, Name: "k", Type: bigintType.WithNotNull(true)}, {ID: 1, Name: "s", Type: textType}, {ID: 2, Name: "n", Type: intType},
		{ID: 3, Name: "m", Type: types.Type{Kind: types.Map, Key: &textType, Elem: &bigintType}},
	}
)

func indexQuestions() []indexQuestion {
	f := func(op, col string, v any) map[string]any {
		m := map[string]any{"op": op, "f": col}
		if v != nil {
			m["v"] = v
		}
		return m
	}
	l := func(op predicate.Op, col int, args ...types.Datum) *predicate.Leaf {
		return &predicate.Leaf{Op: op, Col: col, Type: indexFields[col].Type, Args: args}
	}
	return []indexQuestion{
		{"s = 's17'", f("=", "s", "s17"), l(predicate.Eq, 1, "s17")},
		{"s = 'nobody'", f("=", "s", "nobody"), l(predicate.Eq, 1, "nobody")},
		{"s IN ('s5', 's250', 'x')", f("in", "s", []string{"s5", "s250", "x"}), l(predicate.In, 1, "s5", "s250", "x")},
		{"s LIKE 's1%'", f("startswith", "s", "s1"), nil},
		{"s IS NULL", f("isnull", "s", nil), l(predicate.IsNull, 1)},
		{"n = 4", f("=", "n", 4), l(predicate.Eq, 2, int64(4))},
		{"n = 5", f("=", "n", 5), l(predicate.Eq, 2, int64(5))},
		{"n IN (1, 3, 17)", f("in", "n", []int{1, 3, 17}), l(predicate.In, 2, int64(1), int64(3), int64(17))},
		{"n > 16", f(">", "n", 16), l(predicate.Gt, 2, int64(16))},
		{"n > 18", f(">", "n", 18), l(predicate.Gt, 2, int64(18))},
		{"n IS NOT NULL", f("isnotnull", "n", nil), l(predicate.IsNotNull, 2)},
		{"n <> 4", f("<>", "n", 4), nil},
		{"k BETWEEN 90 AND 110", f("between", "k", []int{90, 110}), nil},
		{"k < 3", f("<", "k", 3), l(predicate.Lt, 0, int64(3))},
		{"n = 4 AND s = 's12'", map[string]any{"op": "and", "args": []any{f("=", "n", 4), f("=", "s", "s12")}}, nil},
		{"n = 5 OR s = 's12'", map[string]any{"op": "or", "args": []any{f("=", "n", 5), f("=", "s", "s12")}}, nil},
	}
}

// askBoth compares the rows of every question, and Java's verdicts on files of indexes
// with ours: where Java skips a file, so do we. It returns how often Java did.
func (w *warehouse) askBoth(table, when string) (skips int) {
	w.t.Helper()
	for _, q := range indexQuestions() {
		c := &collector{}
		if err := w.s.Query(w.t.Context(), "select k from "+table+" where "+q.sql, c); err != nil {
			w.t.Fatalf("%s: %s: %v", when, q.sql, err)
		}
		var ours, theirs []string
		for _, r := range c.res.rows {
			ours = append(ours, fmt.Sprint(r[0]))
		}
		reply := w.java.Do(w.t, map[string]any{"cmd": "read", "table": "d." + table, "filter": q.java, "projection": []string{"k"}})
		var rows []struct{ K json.Number }
		if err := json.Unmarshal(reply["rows"], &rows); err != nil {
			w.t.Fatal(err)
		}
		for _, r := range rows {
			theirs = append(theirs, r.K.String())
		}
		slices.Sort(ours)
		slices.Sort(theirs)
		if !slices.Equal(ours, theirs) {
			w.t.Errorf("%s: %s where %s: ours %d rows %v\nJava %d rows %v", when, table, q.sql, len(ours), ours, len(theirs), theirs)
		}
		skips += w.verdicts(table, when, q)
	}
	return skips
}

// verdicts compares the verdicts of one question.
func (w *warehouse) verdicts(table, when string, q indexQuestion) (skips int) {
	w.t.Helper()
	reply := w.java.Do(w.t, map[string]any{"cmd": "plan", "table": "d." + table, "filter": q.java})
	var splits []struct {
		BucketPath string
		Files      []struct {
			File, Index string
			Rows        int64
			ExtraFiles  []string
		}
	}
	if err := json.Unmarshal(reply["splits"], &splits); err != nil {
		w.t.Fatal(err)
	}
	var skipped []json.RawMessage
	if err := json.Unmarshal(reply["skipped"], &skipped); err != nil {
		w.t.Fatal(err)
	}
	skips = len(skipped)
	for _, sp := range splits {
		for _, f := range sp.Files {
			if f.Index == "SKIP" {
				skips++
			}
			if q.leaf == nil || len(f.ExtraFiles) == 0 {
				continue
			}
			raw, err := os.ReadFile(filepath.Join(w.dir, sp.BucketPath, f.ExtraFiles[0]))
			if err != nil {
				w.t.Fatal(err)
			}
			x, err := fileindex.Open(index.BytesSource(raw), indexFields)
			if err != nil {
				w.t.Fatal(err)
			}
			a, err := x.Eval(q.leaf, f.Rows)
			if err != nil {
				w.t.Fatal(err)
			}
			if f.Index == "SKIP" && a.Verdict != index.None {
				w.t.Errorf("%s: %s where %s: Java skips %s, we say %v", when, table, q.sql, f.File, a.Verdict)
			}
		}
	}
	return skips
}

// agreeOnRows has both read the table whole.
func (w *warehouse) agreeOnRows(table string) {
	w.t.Helper()
	k := kase{query: `select * from "` + table + `"`, expected: w.java.Rows(w.t, "d."+table, nil)}
	if kind, why := ask(w.s, k, w.dir); kind != "passed" {
		w.t.Errorf("%s: %s: %s", table, kind, why)
	}
}

// checkIndexed is Java's examination of a table. Entries of one file that differ in their
// indexes are one to it, so that it takes a file that got other indexes for removed.
func (w *warehouse) checkIndexed(table string) {
	w.t.Helper()
	r := w.java.Do(w.t, map[string]any{"cmd": "check", "table": "d." + table, "deep": true, "read": true})
	var problems []struct{ Severity, Kind, Where, Detail string }
	if err := json.Unmarshal(r["problems"], &problems); err != nil {
		w.t.Fatal(err)
	}
	for _, p := range problems {
		if p.Severity != "info" && !(p.Kind == "delta-mismatch" && strings.Contains(p.Detail, "lost [],")) {
			w.t.Errorf("java check of %s: %+v", table, p)
		}
	}
}

// TestIndexesBothWays has indexes written here read by Java and the other way round,
// through compactions of both and through sys.rewrite_file_index.
func TestIndexesBothWays(t *testing.T) {
	w := shared(t)
	all := []string{"'file-index.bloom-filter.columns' = 's'", "'file-index.bloom-filter.s.items' = '300'", "'file-index.bitmap.columns' = 'n,m[x]'",
		"'file-index.bsi.columns' = 'k'", "'file-index.range-bitmap.columns' = 'n,s'"}
	for _, k := range []struct {
		name, key string
		opts      []string
	}{
		{"app", "", nil},
		{"inside", "", []string{"'deletion-vectors.enabled' = 'true'", "'file-index.in-manifest-threshold' = '1 mb'"}},
		{"thin", ", primary key (k)", []string{"'bucket' = '1'", "'data-file.thin-mode' = 'true'", "'write-only' = 'true'", "'file-index.in-manifest-threshold' = '1 mb'"}},
		{"pkdv", ", primary key (k)", []string{"'bucket' = '1'", "'deletion-vectors.enabled' = 'true'", "'write-only' = 'true'"}},
	} {
		w.sql(fmt.Sprintf("create table %s (k bigint not null, s text, n int, m map<text,bigint>%s) with (%s)", k.name, k.key, strings.Join(append(k.opts, all...), ", ")))
		load := func(from, to int) {
			w.sql(fmt.Sprintf("insert into %s select g, case when g %% 7 > 0 then 's'||g end, g %% 10 * 2, case when g %% 3 > 0 then map['x', (g %% 4)::bigint, 'y', 1::bigint] end from generate_series(%d, %d) g", k.name, from, to))
		}
		load(1, 100)
		load(101, 200)
		load(201, 300)
		w.sql("delete from " + k.name + " where k % 13 = 5")
		if k.key != "" {
			w.sql("call sys.compact('d." + k.name + "')")
		}
		if w.askBoth(k.name, "written here") == 0 {
			t.Errorf("%s: Java skips nothing", k.name)
		}
		var rows []any
		for i := 301; i <= 400; i++ {
			rows = append(rows, map[string]any{"k": i, "s": fmt.Sprint("s", i), "n": i % 10 * 2})
		}
		w.java.Do(t, map[string]any{"cmd": "write", "table": "d." + k.name, "rows": rows})
		w.java.Do(t, map[string]any{"cmd": "compact", "table": "d." + k.name, "mode": "full", "options": map[string]string{"write-only": "false"}})
		if w.askBoth(k.name, "compacted by Java") == 0 {
			t.Errorf("%s: Java skips nothing", k.name)
		}
		w.sql("alter table "+k.name+" reset ('file-index.bsi.columns')", "alter table "+k.name+" set ('file-index.bitmap.columns' = 's')",
			"call sys.rewrite_file_index('d."+k.name+"')")
		w.agreeOnRows(k.name)
		w.sql("call sys.rewrite_file_index('d."+k.name+"', force => true)", "update "+k.name+" set n = 4 where k = 17")
		if k.key != "" { // Java's batch reads do not see what no compaction has reached
			w.sql("call sys.compact('d." + k.name + "')")
		}
		w.askBoth(k.name, "made anew")
		w.checkIndexed(k.name)
		w.java.Do(t, map[string]any{"cmd": "expire", "table": "d." + k.name, "retainMax": 1, "retainMin": 1})
		w.agreeOnRows(k.name)
	}
}
