package table

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	mrand "math/rand"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/oracle"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format/formattest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// javaTable is a table on disk that Java reads, too.
type javaTable struct {
	*written
	java *oracle.Client
	name string
}

func newJavaTable(t *testing.T, s *schema.Table) *javaTable {
	dir := t.TempDir()
	j := &javaTable{java: oracle.Java(t, dir), name: "db.t"}
	io := fileio.NewLocal(dir)
	raw, err := schema.Encode(s)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(dir, "db.db", "t", "schema"), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := io.Put(context.Background(), "db.db/t/schema/schema-0", raw); err != nil {
		t.Fatal(err)
	}
	env := NewEnv(io, EnvOptions{})
	t.Cleanup(env.Close)
	j.written = &written{t: t, store: Open(env, "db.db/t"), sch: s}
	return j
}

// agree commits what was written and has Java read and examine the table.
func (j *javaTable) agree() {
	j.t.Helper()
	j.publish()
	ours, _, err := readAll(context.Background(), j.store, Scan{Limit: -1}, ReadOptions{})
	if err != nil {
		j.t.Fatal(err)
	}
	var lines bytes.Buffer
	for _, r := range j.java.Rows(j.t, j.name, nil) {
		lines.Write(append(r, '\n'))
	}
	file := filepath.Join(j.t.TempDir(), "rows.jsonl")
	if err := os.WriteFile(file, lines.Bytes(), 0o644); err != nil {
		j.t.Fatal(err)
	}
	theirs := expected(j.t, file, j.sch.Fields)
	if !slices.Equal(ours, theirs) {
		j.t.Errorf("we read %d rows, Java %d", len(ours), len(theirs))
		for i := range ours {
			if i >= len(theirs) || ours[i] != theirs[i] {
				j.t.Errorf("ours %s", ours[i])
				if i < len(theirs) {
					j.t.Errorf("Java %s", theirs[i])
				}
				break
			}
		}
	}
	j.java.Check(j.t, j.name)
}

// javaTypes are the types of AllTypes whose random values mean something to Java.
func javaTypes() types.Schema {
	var out types.Schema
	next := int32(1000)
	for _, f := range formattest.AllTypes() {
		if f.Type.Kind != types.Variant {
			f.Type = renumbered(f.Type, &next)
			out = append(out, f)
		}
	}
	return out
}

// renumbered gives the members of rows ids of their own.
func renumbered(t types.Type, next *int32) types.Type {
	if t.Elem != nil {
		e := renumbered(*t.Elem, next)
		t.Elem = &e
	}
	if t.Kind == types.Row {
		t.Fields = slices.Clone(t.Fields)
		for i := range t.Fields {
			t.Fields[i].Type = renumbered(t.Fields[i].Type, next)
			t.Fields[i].ID = *next
			*next++
		}
	}
	return t
}

// random writes batches of random rows with random kinds.
func (j *javaTable) random(g *formattest.Gen, batches, rows int) {
	j.t.Helper()
	wr := j.open(nil)
	for range batches {
		b := &vec.Batch{Schema: j.sch.Fields, N: rows}
		for _, f := range j.sch.Fields {
			b.Cols = append(b.Cols, g.Array(f.Type, rows))
		}
		var kinds []uint8
		if len(j.sch.PrimaryKeys) > 0 && j.store != nil && g.Intn(2) == 0 {
			kinds = make([]uint8, rows)
			for i := range kinds {
				kinds[i] = []uint8{0, 0, 2, 3}[g.Intn(4)]
			}
		}
		if err := wr.Write(context.Background(), b, kinds); err != nil {
			j.t.Fatal(err)
		}
	}
	j.done(wr)
}

// TestJavaReadsWritten has Java read and examine tables of every kind that our
// writers made.
func TestJavaReadsWritten(t *testing.T) {
	pk := []string{"big_req", "text_req"}
	type kase struct {
		name      string
		pk, parts []string
		opts      map[string]string
	}
	cases := []kase{
		{name: "append"},
		{name: "partitions", parts: []string{"date", "text"}},
		{name: "new partitions", parts: []string{"ts3", "bool"}, opts: map[string]string{"partition.legacy-name": "false"}},
		{name: "old partitions", parts: []string{"ts6", "dec5", "time"}},
		{name: "buckets", opts: map[string]string{"bucket": "3", "bucket-key": "big,varchar,ts6,dec38"}},
		{name: "one bucket column", opts: map[string]string{"bucket": "5", "bucket-key": "int_req"}},
		{name: "mod buckets", opts: map[string]string{"bucket": "5", "bucket-key": "big_req", "bucket-function.type": "mod"}},
		{name: "key", pk: pk, opts: map[string]string{"bucket": "4"}},
		{name: "long key", pk: pk, opts: map[string]string{"bucket": "1"}},
		{name: "thin key", pk: pk, opts: map[string]string{"bucket": "1", "data-file.thin-mode": "true"}},
		{name: "key and partition", pk: []string{"int_req", "text_req"}, parts: []string{"int_req"}, opts: map[string]string{"bucket": "2"}},
		{name: "sequence", pk: pk, opts: map[string]string{"bucket": "2", "sequence.field": "ts6,varchar"}},
		{name: "sequence down", pk: pk, opts: map[string]string{"bucket": "2", "sequence.field": "dec18", "sequence.field.sort-order": "descending"}},
		{name: "small files", opts: map[string]string{"target-file-size": "20 kb", "file.suffix.include.compression": "true"}},
	}
	for _, codec := range []string{"none", "snappy", "gzip", "lz4", "zstd"} {
		cases = append(cases, kase{name: codec, opts: map[string]string{"file.compression": codec, "file.suffix.include.compression": "true"}})
	}
	for i, m := range []string{"none", "counts", "full", "truncate(3)"} {
		o := map[string]string{"metadata.stats-mode": m, "metadata.stats-dense-store": fmt.Sprint(i%2 == 0), "fields.int.stats-mode": "full", "bucket": "1"}
		cases = append(cases, kase{name: m, pk: pk, opts: o})
	}
	cases = append(cases,
		kase{name: "none at all", opts: map[string]string{"metadata.stats-mode": "none"}},
		kase{name: "first columns", opts: map[string]string{"metadata.stats-keep-first-n-columns": "4"}},
		kase{name: "level", pk: pk, opts: map[string]string{"metadata.stats-mode.per.level": "0:none,5:full", "bucket": "1"}})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			s := &schema.Table{Version: 3, Fields: javaTypes(), PrimaryKeys: c.pk, PartitionKeys: c.parts, Options: maps.Clone(c.opts), HighestFieldID: 2000}
			j := newJavaTable(t, s)
			g := &formattest.Gen{Rand: mrand.New(mrand.NewSource(11)), Nulls: 0.2, Distinct: 40}
			if c.parts != nil {
				g.Distinct = 3
			}
			j.random(g, 2, 100)
			j.random(g, 1, 50) // a second file per bucket in one commit
			j.agree()
			j.random(g, 1, 100)
			j.agree()
		})
	}
}

// TestJavaReadsDeletes has Java read append tables of which rows were deleted.
func TestJavaReadsDeletes(t *testing.T) {
	for _, opts := range []map[string]string{
		{"deletion-vectors.enabled": "true"},
		{"deletion-vectors.enabled": "true", "deletion-vectors.bitmap64": "true"},
		{"deletion-vectors.enabled": "true", "bucket": "2", "bucket-key": "a"},
		{"deletion-vectors.enabled": "true", "deletion-vector.index-file.target-size": "30 b", "index-file-in-data-file-dir": "true"},
		{},
		{"bucket": "2", "bucket-key": "a"},
	} {
		t.Run(fmt.Sprint(opts), func(t *testing.T) {
			s := partitioned(tableSchema(t, opts, nil, "a BIGINT", "p STRING"), "p")
			j := newJavaTable(t, s)
			r := mrand.New(mrand.NewSource(5))
			for k := range 4 {
				wr := j.open(nil)
				victims := map[string][]int64{}
				for at := range j.positions() {
					file, pos, _ := strings.Cut(at, "#")
					if r.Intn(3) == 0 {
						var p int64
						_, _ = fmt.Sscan(pos, &p)
						victims[file] = append(victims[file], p)
					}
				}
				for f, pos := range victims {
					if err := wr.Delete(context.Background(), f, pos); err != nil {
						t.Fatal(err)
					}
				}
				var rows [][]types.Datum
				for i := range 40 {
					rows = append(rows, []types.Datum{int64(100*k + i), []types.Datum{"x", "y y", nil}[i%3]})
				}
				if err := wr.Write(context.Background(), j.batch(rows), nil); err != nil {
					t.Fatal(err)
				}
				j.done(wr)
				j.agree()
			}
		})
	}
}

// TestJavaGoesOn has Java write to a table after us, and us after Java.
func TestJavaGoesOn(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "2", "write-only": "true"}, []string{"k"}, "k INT", "v STRING")
	j := newJavaTable(t, s)
	put := func(rows ...[]types.Datum) { j.write(rows, nil) }
	put([]types.Datum{int64(1), "a"}, []types.Datum{int64(2), "b"}, []types.Datum{int64(3), "c"})
	j.agree()
	j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": []any{
		map[string]any{"k": 2, "v": "java"}, map[string]any{"_rowkind": "-D", "k": 3, "v": "c"}, map[string]any{"k": 4, "v": "java"},
	}})
	put([]types.Datum{int64(4), "ours"}, []types.Datum{int64(5), "ours"})
	j.agree()
	wantRows(t, j.scan(nil), []string{`1|"a"`, `2|"java"`, `4|"ours"`, `5|"ours"`})
	// A transaction that began before Java's commit gets higher numbers at its end.
	wr := j.open(nil)
	if err := wr.Write(t.Context(), j.batch([][]types.Datum{{int64(1), "later"}, {int64(7), "later"}}), nil); err != nil {
		t.Fatal(err)
	}
	c := j.done(wr)
	j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": []any{map[string]any{"k": 1, "v": "java"}, map[string]any{"k": 7, "v": "java"}}})
	out, dropped, err := j.store.Fold(t.Context(), c, j.ref(), nil)
	if err != nil || len(dropped) == 0 {
		t.Fatalf("%d files dropped: %v", len(dropped), err)
	}
	j.over = out
	j.agree()
	wantRows(t, j.scan(nil), []string{`1|"later"`, `2|"java"`, `4|"ours"`, `5|"ours"`, `7|"later"`})
	if err := j.store.Discard(t.Context(), commit.Changes{Files: dropped}); err != nil {
		t.Fatal(err)
	}
	j.java.Check(t, j.name)
}

// TestJavaReadsBig has Java read pages that are stored because packing does not
// pay, several row groups, and files that were rolled.
func TestJavaReadsBig(t *testing.T) {
	for _, c := range []struct {
		pk   []string
		opts map[string]string
	}{
		{nil, nil},
		{nil, map[string]string{"parquet.block.size": "256 kb", "file.compression": "lz4"}},
		{[]string{"k"}, map[string]string{"bucket": "1", "target-file-size": "400 kb"}},
	} {
		s := tableSchema(t, c.opts, c.pk, "k BIGINT", "n INT", "d DECIMAL(18, 2)", "t TIMESTAMP(6)", "s STRING")
		j := newJavaTable(t, s)
		r := mrand.New(mrand.NewSource(3))
		wr := j.open(nil)
		for range 3 {
			var rows [][]types.Datum
			for range 10_000 {
				d := decimalOf(t, "0.00")
				d.Coef.SetInt64(r.Int63n(1e15))
				rows = append(rows, []types.Datum{r.Int63n(1 << 50), r.Int63n(1 << 31), d, r.Int63n(1 << 50), fmt.Sprintf("%x", r.Int63())})
			}
			if err := wr.Write(context.Background(), j.batch(rows), nil); err != nil {
				t.Fatal(err)
			}
		}
		files := adds(j.done(wr))
		if c.pk != nil && len(files) < 2 {
			t.Errorf("%d files", len(files))
		}
		j.agree()
	}
}

// TestJavaReadsVariant has Java read a VARIANT that we wrote: {"a":1} and 5.
func TestJavaReadsVariant(t *testing.T) {
	j := newJavaTable(t, tableSchema(t, nil, nil, "k INT", "v VARIANT"))
	obj := []types.Datum{[]byte{0x02, 1, 0, 0, 2, 0x0c, 1}, []byte{1, 1, 0, 1, 'a'}}
	five := []types.Datum{[]byte{0x0c, 5}, []byte{1, 0, 0}}
	j.write([][]types.Datum{{int64(1), obj}, {int64(2), five}, {int64(3), nil}}, nil)
	j.publish()
	var got []string
	for _, r := range j.java.Rows(t, j.name, nil) {
		got = append(got, string(r))
	}
	slices.Sort(got)
	if want := []string{`{"k":1,"v":"{\"a\":1}"}`, `{"k":2,"v":"5"}`, `{"k":3,"v":null}`}; !slices.Equal(got, want) {
		t.Errorf("Java reads %s", got)
	}
	j.java.Check(t, j.name)
}

// TestJavaPrunes has Java find rows by filters that our statistics let it answer
// from one of two files, with values longer than statistics keep.
func TestJavaPrunes(t *testing.T) {
	j := newJavaTable(t, tableSchema(t, nil, nil, "k INT", "s STRING", "b BYTES", "d DECIMAL(20, 2)", "t TIMESTAMP(6)", "f DOUBLE"))
	for k := range 2 {
		d := decimalOf(t, fmt.Sprintf("%d000000000000000.25", k+1))
		long := strings.Repeat("é", 20) + fmt.Sprint(k)
		j.write([][]types.Datum{{int64(k), fmt.Sprint(k) + long, []byte(fmt.Sprint(k, strings.Repeat("x", 30))), d, int64(k+1) * 86_400_000_000, float64(k) - 0.5}}, nil)
		j.publish()
	}
	for _, c := range []struct {
		col string
		v   any
	}{
		{"k", 1}, {"s", "1" + strings.Repeat("é", 20) + "1"}, {"b", fmt.Sprintf("%x", "1"+strings.Repeat("x", 30))},
		{"d", "2000000000000000.25"}, {"t", "1970-01-03T00:00:00"}, {"f", 0.5},
	} {
		r := j.java.Do(t, map[string]any{"cmd": "read", "table": j.name, "filter": map[string]any{"op": "=", "f": c.col, "v": c.v}})
		var rows, splits []map[string]any
		if err := json.Unmarshal(r["rows"], &rows); err != nil || len(rows) != 1 {
			t.Errorf("%s: %d rows: %v", c.col, len(rows), err)
		}
		r = j.java.Do(t, map[string]any{"cmd": "plan", "table": j.name, "filter": map[string]any{"op": "=", "f": c.col, "v": c.v}})
		if err := json.Unmarshal(r["splits"], &splits); err != nil {
			t.Fatal(err)
		}
		files := 0
		for _, s := range splits {
			fs, _ := s["files"].([]any)
			files += len(fs)
		}
		if files != 1 {
			t.Errorf("%s: Java reads %d files", c.col, files)
		}
	}
}
