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

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// javaAgrees has Java read and examine the table.
func (c *compactTable) javaAgrees(java *oracle.Client, when string) {
	c.t.Helper()
	c.check(when)
	var lines bytes.Buffer
	for _, r := range java.Rows(c.t, "db.t", nil) {
		lines.Write(append(r, '\n'))
	}
	file := filepath.Join(c.t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o600); err != nil {
		c.t.Fatal(err)
	}
	var want []string
	for _, r := range c.rows {
		want = append(want, r)
	}
	sort.Strings(want)
	if theirs := expected(c.t, file, c.sch.Fields); !slices.Equal(theirs, want) {
		c.t.Fatalf("%s: Java reads %d rows, want %d", when, len(theirs), len(want))
	}
	java.Check(c.t, "db.t")
}

// javaRow is a row as the oracle takes it.
func (c *compactTable) javaRow(row []types.Datum, kind uint8) map[string]any {
	m := map[string]any{}
	if kind != 0 {
		m["_rowkind"] = []string{"+I", "-U", "+U", "-D"}[kind]
	}
	for i, f := range c.sch.Fields {
		if row[i] != nil {
			m[f.Name] = row[i]
			if f.Type.Kind == types.Numeric {
				m[f.Name] = text(f.Type, row[i])
			}
		}
	}
	return m
}

// TestJavaCompacts takes turns with Java: both write, both compact, minor and
// full, and each reads what the other left; Java examines every file.
func TestJavaCompacts(t *testing.T) {
	for _, k := range []struct {
		name string
		opts map[string]string
		pk   []string
		part bool
	}{
		{name: "key", pk: []string{"k"}, opts: map[string]string{"bucket": "2"}},
		{name: "low trigger", pk: []string{"k"}, opts: map[string]string{"bucket": "1", "num-sorted-run.compaction-trigger": "2", "num-levels": "4", "compaction.size-ratio": "50"}},
		{name: "small files", pk: []string{"k"}, opts: map[string]string{"bucket": "1", "target-file-size": "3 kb", "num-sorted-run.compaction-trigger": "3"}},
		{name: "partitions", pk: []string{"p", "k"}, part: true, opts: map[string]string{"bucket": "1", "num-sorted-run.compaction-trigger": "3", "data-file.thin-mode": "true"}},
	} {
		t.Run(k.name, func(t *testing.T) {
			dir := t.TempDir()
			java := oracle.Java(t, dir)
			cols := []string{"k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)"}
			if k.part {
				cols = append([]string{"p INT"}, cols...)
			}
			s := tableSchema(t, k.opts, k.pk, cols...)
			if k.part {
				s.PartitionKeys = []string{"p"}
			}
			c := newCompactTable(t, fileio.NewLocal(dir), s, EnvOptions{})
			r := rand.New(rand.NewPCG(5, 5))
			ours, theirs := 0, 0
			for i := range 12 {
				rows, kinds := randomChange(r, s, 50, 120)
				if r.IntN(3) > 0 {
					c.mustWrite(rows, kinds)
				} else {
					var js []any
					for j, row := range rows {
						js = append(js, c.javaRow(row, kinds[j]))
					}
					java.Do(t, map[string]any{"cmd": "write", "table": "db.t", "rows": js, "options": map[string]string{"write-only": fmt.Sprint(r.IntN(2) == 0)}})
					c.apply(rows, kinds)
				}
				switch n := r.IntN(8); {
				case n < 4:
					if c.compact(CompactOptions{Full: n == 0}).SnapshotID > 0 {
						ours++
					}
				case n < 6:
					java.Do(t, map[string]any{"cmd": "compact", "table": "db.t", "mode": []string{"full", "minor"}[n-4]})
					theirs++
				}
				if i == 6 {
					c.javaAgrees(java, fmt.Sprint("step ", i))
					c.levelsAreRuns()
				}
			}
			c.compact(CompactOptions{Full: true})
			c.isFull("in the end")
			c.javaAgrees(java, "in the end")
			t.Logf("%d compactions of ours, %d of Java's", ours, theirs)
		})
	}
}

// TestJavaCompactsAppend is the same for append tables.
func TestJavaCompactsAppend(t *testing.T) {
	for _, opts := range []map[string]string{
		{},
		{"deletion-vectors.enabled": "true"},
		{"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true", "compaction.min.file-num": "2"},
		{"bucket": "2", "bucket-key": "k", "compaction.min.file-num": "3"},
		{"bucket": "2", "bucket-key": "k", "compaction.min.file-num": "3", "deletion-vectors.enabled": "true"},
	} {
		t.Run(fmt.Sprint(opts), func(t *testing.T) {
			dir := t.TempDir()
			java := oracle.Java(t, dir)
			s := tableSchema(t, opts, nil, "k BIGINT", "v STRING", "p INT")
			c := newCompactTable(t, fileio.NewLocal(dir), s, EnvOptions{})
			r := rand.New(rand.NewPCG(5, 6))
			next := int64(0)
			ours := 0
			for i := range 12 {
				rows := appendRows(r, c, &next, 40)
				if r.IntN(2) == 0 {
					c.append(rows)
				} else {
					var js []any
					for _, row := range rows {
						js = append(js, c.javaRow(row, 0))
					}
					java.Do(t, map[string]any{"cmd": "write", "table": "db.t", "rows": js, "options": map[string]string{"write-only": "true"}})
					c.model(rows)
				}
				if r.IntN(3) == 0 {
					m := r.Int64N(9)
					if err := c.deleteWhere(func(k int64) bool { return k%9 == m }); err != nil {
						t.Fatal(err)
					}
				}
				switch n := r.IntN(8); {
				case n < 4:
					if c.compact(CompactOptions{Full: n == 0}).SnapshotID > 0 {
						ours++
					}
				case n == 4:
					java.Do(t, map[string]any{"cmd": "compact", "table": "db.t", "mode": "full"})
				}
				if i == 6 {
					c.javaAgrees(java, fmt.Sprint("step ", i))
					c.vectorsFit("step")
				}
			}
			c.compact(CompactOptions{Full: true})
			c.javaAgrees(java, "in the end")
			if ours == 0 {
				t.Error("no compaction was published")
			}
		})
	}
}

// TestJavaTrace has Java make the seven commits of the trace, compacting by
// itself, and compares its files' levels and rows with those of TestCompactTrace.
func TestJavaTrace(t *testing.T) {
	dir := t.TempDir()
	java := oracle.Java(t, dir)
	s := tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k BIGINT", "v STRING")
	c := newCompactTable(t, fileio.NewLocal(dir), s, EnvOptions{})
	for i := range int64(5) {
		rows := [][]types.Datum{{int64(0), fmt.Sprint(i)}, {i + 1, "x"}}
		var js []json.RawMessage
		for _, row := range rows {
			b, err := json.Marshal(c.javaRow(row, 0))
			if err != nil {
				t.Fatal(err)
			}
			js = append(js, b)
		}
		java.Do(t, map[string]any{"cmd": "write", "table": "db.t", "rows": js})
		c.apply(rows, nil)
		if l := c.live(); (len(l) == 1 && l[0].File.Level == 5) != (i == 4) {
			t.Errorf("Java after commit %d: %d files, level %d", i+1, len(l), l[0].File.Level)
		}
	}
	c.javaAgrees(java, "Java's compaction")
	if rep := c.compact(CompactOptions{Full: true}); rep.SnapshotID != 0 {
		t.Errorf("after Java's compaction there is nothing to do, we did %+v", *rep)
	}
}

// TestJavaDynamicBuckets compacts tables whose keys an index sends to buckets:
// they stay there, so the index stays right.
func TestJavaDynamicBuckets(t *testing.T) {
	dir := t.TempDir()
	java := oracle.Java(t, dir)
	s := tableSchema(t, map[string]string{"bucket": "-1", "dynamic-bucket.target-row-num": "40", "write-only": "true"}, []string{"k"}, "k BIGINT", "v STRING", "w INT", "d DECIMAL(20, 3)")
	c := newCompactTable(t, fileio.NewLocal(dir), s, EnvOptions{})
	r := rand.New(rand.NewPCG(5, 7))
	for i := range 8 {
		rows, kinds := randomChange(r, s, 50, 150)
		var js []any
		for j, row := range rows {
			js = append(js, c.javaRow(row, kinds[j]))
		}
		java.Do(t, map[string]any{"cmd": "write", "table": "db.t", "rows": js})
		c.apply(rows, kinds)
		if i%2 == 1 {
			if rep := c.compact(CompactOptions{Full: i%4 == 3}); (rep.Buckets > 1) != (i%4 == 3) {
				t.Errorf("step %d: %+v", i, *rep)
			}
		}
	}
	c.javaAgrees(java, "in the end")
}
