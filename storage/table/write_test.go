package table

import (
	"context"
	"errors"
	"fmt"
	"maps"
	mrand "math/rand"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format/formattest"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// written is a table that tests write through its own writers. Changes pile up in
// over, as in a transaction.
type written struct {
	t     testing.TB
	store *FileStore
	io    *fileio.Mem
	sch   *schema.Table
	over  commit.Changes
}

func newWritten(t testing.TB, s *schema.Table) *written {
	b := newBuilt(t, s)
	env := NewEnv(b.io, EnvOptions{})
	t.Cleanup(env.Close)
	return &written{t: t, store: Open(env, b.dir), io: b.io, sch: s}
}

// partitioned adds partition keys to a schema.
func partitioned(s *schema.Table, keys ...string) *schema.Table { s.PartitionKeys = keys; return s }

// batch makes a batch of rows.
func (w *written) batch(rows [][]types.Datum) *vec.Batch {
	b := &vec.Batch{Schema: w.sch.Fields, N: len(rows)}
	for c, f := range w.sch.Fields {
		ds := make([]types.Datum, len(rows))
		for i := range rows {
			ds[i] = rows[i][c]
		}
		b.Cols = append(b.Cols, vec.FromDatums(f.Type, ds))
	}
	return b
}

func (w *written) open(a *mem.Account) Writer {
	wr, err := w.store.Write(context.Background(), WriteOptions{Overlay: &w.over, Account: a})
	if err != nil {
		w.t.Fatal(err)
	}
	return wr
}

// done takes what a writer wrote into the transaction.
func (w *written) done(wr Writer) commit.Changes {
	c, err := wr.Prepare(context.Background())
	if err != nil {
		w.t.Fatal(err)
	}
	if w.over.Empty() {
		w.over = c
	} else {
		w.over, _ = commit.Merge(w.over, c)
	}
	return c
}

// write writes rows by one writer.
func (w *written) write(rows [][]types.Datum, kinds []uint8) commit.Changes {
	wr := w.open(nil)
	if err := wr.Write(context.Background(), w.batch(rows), kinds); err != nil {
		w.t.Fatal(err)
	}
	return w.done(wr)
}

// scan reads columns, each row as one text, sorted.
func (w *written) scan(cols []int) []string {
	out := w.scanOrdered(cols)
	slices.Sort(out)
	return out
}

func (w *written) scanOrdered(cols []int) []string {
	var out []string
	s := Scan{Columns: cols, Limit: -1, Overlay: &w.over}
	p, err := w.store.Plan(context.Background(), s)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, sp := range p.Splits {
		rd, err := w.store.Read(context.Background(), s, sp, ReadOptions{})
		if err != nil {
			w.t.Fatal(err)
		}
		for {
			b, err := rd.Next(context.Background())
			if err != nil {
				w.t.Fatal(err)
			}
			if b == nil {
				break
			}
			b = vec.Compact(b)
			for i := range b.N {
				out = append(out, rowText(b.Cols, i))
			}
		}
		if err := rd.Close(); err != nil {
			w.t.Fatal(err)
		}
	}
	return out
}

func rowText(cols []arrow.Array, i int) string {
	cells := make([]string, len(cols))
	for c := range cols {
		cells[c] = formattest.Cell(cols[c], i)
	}
	return strings.Join(cells, "|")
}

func wantRows(t testing.TB, got, want []string) {
	t.Helper()
	slices.Sort(want)
	if slices.Equal(got, want) {
		return
	}
	t.Errorf("%d rows, want %d", len(got), len(want))
	for i := range max(len(got), len(want)) {
		g, w := "(none)", "(none)"
		if i < len(got) {
			g = got[i]
		}
		if i < len(want) {
			w = want[i]
		}
		if g != w {
			t.Fatalf("row %d is %s, want %s", i, g, w)
		}
	}
}

// TestWriteAllTypes writes every type, with NULLs, through append and key tables
// with and without partitions and buckets, and reads it back.
func TestWriteAllTypes(t *testing.T) {
	all := formattest.AllTypes()
	for _, c := range []struct {
		name       string
		pk, parts  []string
		opts       map[string]string
		want, read int
	}{
		{name: "append"},
		{name: "partitions", parts: []string{"date", "text"}},
		{name: "buckets", opts: map[string]string{"bucket": "3", "bucket-key": "big,varchar"}},
		{name: "hive buckets", opts: map[string]string{"bucket": "3", "bucket-key": "big,varchar,dec5", "bucket-function.type": "hive"}},
		{name: "key", pk: []string{"big_req", "text_req"}, opts: map[string]string{"bucket": "4"}},
		{name: "thin key", pk: []string{"big_req", "text_req"}, opts: map[string]string{"bucket": "1", "data-file.thin-mode": "true"}},
		{name: "key and partition", pk: []string{"int_req", "text_req"}, parts: []string{"int_req"}, opts: map[string]string{"bucket": "2"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := &schema.Table{Version: 3, Fields: all, PrimaryKeys: c.pk, PartitionKeys: c.parts, Options: maps.Clone(c.opts), HighestFieldID: 200}
			w := newWritten(t, s)
			g := &formattest.Gen{Rand: mrand.New(mrand.NewSource(7))}
			g.Nulls, g.Distinct = 0.2, 40
			wr := w.open(nil)
			want := map[string]string{}
			for k := range 5 {
				b := &vec.Batch{Schema: all, N: 300}
				for _, f := range all {
					b.Cols = append(b.Cols, g.Array(f.Type, b.N))
				}
				if k == 2 { // a selection
					for i := range b.N / 2 {
						b.Sel = append(b.Sel, uint16(2*i))
					}
				}
				if err := wr.Write(context.Background(), b, nil); err != nil {
					t.Fatal(err)
				}
				b = vec.Compact(b)
				for i := range b.N {
					key := fmt.Sprint(len(want))
					if c.pk != nil {
						key = ""
						for _, n := range c.pk {
							key += formattest.Cell(b.Cols[all.Index(n)], i) + "|"
						}
					}
					want[key] = rowText(b.Cols, i)
				}
			}
			changes := w.done(wr)
			if changes.Kind != commit.Append || changes.Base != 0 {
				t.Errorf("changes are %s on %d", changes.Kind, changes.Base)
			}
			wantRows(t, w.scan(nil), slices.Collect(maps.Values(want)))
			if err := w.store.Discard(context.Background(), changes); err != nil {
				t.Fatal(err)
			}
			for _, e := range changes.Files {
				dir, err := w.store.bucketPath(s, e.Partition, e.Bucket)
				if err != nil {
					t.Fatal(err)
				}
				names := dataPaths(dir, e.File)
				if _, err := w.io.Stat(context.Background(), names[0]); !errors.Is(err, fileio.ErrNotExist) {
					t.Errorf("%s is still there: %v", names[0], err)
				}
			}
		})
	}
}

// version is what the model keeps of a row.
type version struct {
	seq  types.Datum
	text string
	dead bool
}

// TestWriteModel writes random rows, changes and deletes through a key table and
// compares every state with a map that was written in the same order.
func TestWriteModel(t *testing.T) {
	for run := range 12 {
		seed := random.Seed(t)
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			opts := map[string]string{"bucket": fmt.Sprint(1 + r.IntN(5))}
			keys := []string{"k"}
			types2 := []string{"BIGINT", "INT", "STRING", "DECIMAL(20,3)", "TIMESTAMP(3)"}
			cols := []string{"k " + types2[r.IntN(len(types2))], "k2 " + types2[r.IntN(len(types2))], "s INT", "v STRING", "p INT"}
			if r.IntN(2) == 0 {
				keys = append(keys, "k2")
			}
			useSeq, desc := r.IntN(2) == 0, r.IntN(2) == 0
			if useSeq {
				opts["sequence.field"] = "s"
				if desc {
					opts["sequence.field.sort-order"] = "descending"
				}
			}
			ignore := r.IntN(4) == 0
			if ignore {
				opts["ignore-delete"] = "true"
			}
			opts["target-file-size"] = []string{"1 kb", "100 mb"}[r.IntN(2)]
			s := tableSchema(t, opts, keys, cols...)
			if r.IntN(2) == 0 {
				s = tableSchema(t, opts, append(keys, "p"), cols...)
				partitioned(s, "p")
			}
			w := newWritten(t, s)
			model := map[string]version{}
			span := []int64{10, 300, 5000}[r.IntN(3)]
			for range 1 + r.IntN(4) {
				var a *mem.Account
				if r.IntN(2) == 0 {
					a = mem.NewRoot("test", 40_000)
				}
				wr := w.open(a)
				for range r.IntN(12) {
					n := 1 + r.IntN(400)
					rows, kinds := make([][]types.Datum, n), make([]uint8, n)
					for i := range rows {
						row := []types.Datum{randomDatum(r, s.Fields[0].Type, span), randomDatum(r, s.Fields[1].Type, 4), int64(r.IntN(50)), fmt.Sprintf("v%d", r.IntN(1e6)), int64(r.IntN(3))}
						if r.IntN(6) == 0 {
							row[2] = nil
						}
						rows[i], kinds[i] = row, []uint8{0, 0, 2, 3, 1}[r.IntN(5)]
						if ignore && kinds[i]&1 != 0 {
							continue
						}
						one := w.batch([][]types.Datum{row})
						key := ""
						for _, k := range s.PrimaryKeys {
							key += formattest.Cell(one.Cols[s.Fields.Index(k)], 0) + "|"
						}
						if old, ok := model[key]; ok && useSeq && older(row[2], old.seq, desc) {
							continue
						}
						model[key] = version{row[2], rowText(one.Cols, 0), kinds[i]&1 != 0}
					}
					if err := wr.Write(context.Background(), w.batch(rows), kinds); err != nil {
						t.Fatal(err)
					}
				}
				w.done(wr)
				if a != nil && a.Used() != 0 {
					t.Errorf("%d bytes are still charged", a.Used())
				}
				check := func() {
					var want []string
					for _, v := range model {
						if !v.dead {
							want = append(want, v.text)
						}
					}
					wantRows(t, w.scan(nil), want)
				}
				check()
				if r.IntN(2) == 0 {
					out, dropped, err := w.store.Fold(context.Background(), w.over, w.ref(), nil)
					if err != nil {
						t.Fatal(err)
					}
					w.over = out
					perBucket := map[string]int{}
					for _, e := range out.Files {
						perBucket[fmt.Sprintf("%x %d", e.Partition, e.Bucket)]++
					}
					for b, n := range perBucket {
						if n > 1 && opts["target-file-size"] != "1 kb" {
							t.Errorf("bucket %s has %d files after folding", b, n)
						}
					}
					check()
					if err := w.store.Discard(context.Background(), commit.Changes{Files: dropped}); err != nil {
						t.Fatal(err)
					}
					check()
				}
			}
		})
	}
}

// older reports whether a loses to b.
func older(a, b types.Datum, desc bool) bool {
	switch {
	case a == nil:
		return b != nil
	case b == nil:
		return false
	case desc:
		return a.(int64) > b.(int64)
	}
	return a.(int64) < b.(int64)
}

// TestWriteRefuses names what is not written.
func TestWriteRefuses(t *testing.T) {
	for _, c := range []struct {
		pk   []string
		opts map[string]string
		cols string
		want string
	}{
		{nil, map[string]string{"file.format": "orc"}, "a INT", "file.format = orc"},
		{nil, map[string]string{"data-evolution.enabled": "true"}, "a INT", "data-evolution.enabled"},
		{nil, map[string]string{"bucket": "2"}, "a INT", "without bucket-key"},
		{nil, map[string]string{"type": "format-table"}, "a INT", "format-table"},
		{nil, nil, "a BLOB", "BLOB column (a)"},
		{nil, nil, "a VECTOR<FLOAT, 3>", "VECTOR column (a)"},
		{[]string{"a"}, map[string]string{"bucket": "1", "merge-engine": "newest"}, "a INT", "merge engine newest"},
	} {
		w := newWritten(t, tableSchema(t, c.opts, c.pk, c.cols))
		_, err := w.store.Write(context.Background(), WriteOptions{})
		var un *fileio.UnsupportedError
		if !errors.As(err, &un) || !strings.Contains(un.Feature, c.want) {
			t.Errorf("%v %s: %v, want %s", c.opts, c.cols, err, c.want)
		}
	}
	s := partitioned(tableSchema(t, map[string]string{"bucket": "1"}, []string{"a"}, "a INT", "p INT"), "p")
	w := newWritten(t, s)
	if _, err := w.store.Write(context.Background(), WriteOptions{}); err == nil || !strings.Contains(err.Error(), "fixed buckets") {
		t.Errorf("cross-partition key: %v", err)
	}
}

// TestWriteNull finds NULL in NOT NULL columns.
func TestWriteNull(t *testing.T) {
	w := newWritten(t, tableSchema(t, map[string]string{"bucket": "1"}, []string{"a"}, "a INT", "b STRING"))
	err := w.open(nil).Write(context.Background(), w.batch([][]types.Datum{{int64(1), nil}, {nil, "x"}}), nil)
	var null *NullError
	if !errors.As(err, &null) || null.Column != "a" {
		t.Errorf("%v", err)
	}
}

// TestWriteBucketCount refuses partitions that were written with another number
// of buckets.
func TestWriteBucketCount(t *testing.T) {
	s := partitioned(tableSchema(t, map[string]string{"bucket": "2"}, []string{"p", "a"}, "p STRING", "a INT"), "p")
	w := newWritten(t, s)
	w.write([][]types.Datum{{"x", int64(1)}}, nil)
	ctx := context.Background()
	more := map[string]string{"bucket": "3"}
	for _, c := range []struct {
		part      string
		overwrite bool
		fails     bool
	}{{"x", false, true}, {"x", true, false}, {"y", false, false}} {
		wr, err := w.store.Write(ctx, WriteOptions{Overlay: &w.over, Options: more, Overwrite: c.overwrite})
		if err != nil {
			t.Fatal(err)
		}
		err = wr.Write(ctx, w.batch([][]types.Datum{{c.part, int64(1)}}), nil)
		var bc *BucketCountError
		if errors.As(err, &bc) != c.fails || c.fails && (bc.Partition != "p=x" || bc.Want != 3 || bc.Have != 2) {
			t.Errorf("%+v: %v", c, err)
		}
		if err := wr.Abort(ctx); err != nil {
			t.Fatal(err)
		}
	}
	// A partition that the transaction replaces is as good as empty.
	w.over.Overwrite = &commit.Replacement{}
	w.over.Files = nil
	if n := len(w.scan(nil)); n != 0 {
		t.Errorf("%d rows", n)
	}
}

// TestWriteSequences looks at sequence numbers and kinds as files have them.
func TestWriteSequences(t *testing.T) {
	w := newWritten(t, tableSchema(t, map[string]string{"bucket": "1"}, []string{"a"}, "a INT", "b STRING"))
	row := func(k int64, s string) []types.Datum { return []types.Datum{k, s} }
	c := w.write([][]types.Datum{row(2, "x"), row(1, "y"), row(2, "z")}, []uint8{0, 0, 2})
	f := c.Files[0].File
	if len(c.Files) != 1 || f.Rows != 2 || f.MinSequence != 1 || f.MaxSequence != 2 || f.DeleteRows != 0 || f.Level != 0 || f.Source != 0 {
		t.Errorf("%+v", f)
	}
	c = w.write([][]types.Datum{row(1, "old"), row(9, "u")}, []uint8{3, 1})
	if f := c.Files[0].File; f.MinSequence != 3 || f.MaxSequence != 4 || f.DeleteRows != 2 {
		t.Errorf("%+v", f)
	}
	wantRows(t, w.scan([]int{0, 1, PseudoKind}), []string{`1|"old"|3`, `2|"z"|2`, `9|"u"|1`})
	wantRows(t, w.scan([]int{0, 1}), []string{`2|"z"`})
}

// TestWriteManyPartitions keeps no file per partition open, and writes each once
// when memory suffices.
func TestWriteManyPartitions(t *testing.T) {
	for _, pk := range [][]string{nil, {"p", "a"}} {
		opts := map[string]string{}
		if pk != nil {
			opts["bucket"] = "1"
		}
		s := partitioned(tableSchema(t, opts, pk, "p INT", "a BIGINT"), "p")
		w := newWritten(t, s)
		for _, limit := range []int64{1 << 30, 200_000} {
			a := mem.NewRoot("test", limit)
			wr := w.open(a)
			var want []string
			for i := range 40 {
				var rows [][]types.Datum
				for j := range 500 {
					rows = append(rows, []types.Datum{int64(j % 100), int64(i*500 + j)})
					want = append(want, fmt.Sprintf("%d|%d", j%100, i*500+j))
				}
				if err := wr.Write(context.Background(), w.batch(rows), nil); err != nil {
					t.Fatal(err)
				}
				if a.Used() > limit {
					t.Errorf("%d bytes are charged", a.Used())
				}
			}
			w.over = commit.Changes{}
			c := w.done(wr)
			wantRows(t, w.scan(nil), want)
			if limit == 1<<30 && len(c.Files) != 100 {
				t.Errorf("%d files in 100 partitions", len(c.Files))
			}
			if limit != 1<<30 && len(c.Files) <= 100 {
				t.Errorf("%d files in 100 partitions with little memory", len(c.Files))
			}
			if a.Used() != 0 {
				t.Errorf("%d bytes are still charged", a.Used())
			}
		}
	}
}

// TestWriteAbort leaves nothing behind.
func TestWriteAbort(t *testing.T) {
	for _, pk := range [][]string{nil, {"a"}} {
		w := newWritten(t, tableSchema(t, map[string]string{"bucket": "2", "bucket-key": "a", "write-buffer-size": "1 kb"}, pk, "a BIGINT", "b STRING"))
		wr := w.open(nil)
		for i := range 5 {
			if err := wr.Write(context.Background(), w.batch([][]types.Datum{{int64(i), "x"}, {int64(i + 10), "y"}}), nil); err != nil {
				t.Fatal(err)
			}
		}
		if err := wr.Abort(context.Background()); err != nil {
			t.Fatal(err)
		}
		for b := range 2 {
			es, err := w.io.List(context.Background(), fmt.Sprintf("db.db/t/bucket-%d", b))
			if err != nil || len(es) > 0 {
				t.Errorf("bucket %d holds %v: %v", b, es, err)
			}
		}
		if _, err := wr.Prepare(context.Background()); err == nil {
			t.Error("an aborted writer prepares")
		}
	}
}

// adds are the files that changes add.
func adds(c commit.Changes) (out []*manifest.DataFile) {
	for _, e := range c.Files {
		if e.Kind == manifest.Add {
			out = append(out, e.File)
		}
	}
	return out
}

// ref is the state below the transaction.
func (w *written) ref() snapshot.Ref { return snapshot.Ref{} }

// TestFoldAppend joins the files of many statements and puts them behind what
// others committed meanwhile; few big files only get other numbers.
func TestFoldAppend(t *testing.T) {
	for _, c := range []struct {
		opts       map[string]string
		statements int
		joined     bool
	}{
		{nil, 12, true},
		{nil, 3, false},
		{map[string]string{"bucket": "1", "bucket-key": "a"}, 12, true},
		{map[string]string{"bucket": "1", "bucket-key": "a"}, 3, false},
	} {
		w := newWritten(t, tableSchema(t, c.opts, nil, "a BIGINT", "b STRING"))
		w.write([][]types.Datum{{int64(0), "before"}, {int64(0), "before"}}, nil)
		w.publish()
		var want []string
		for i := range c.statements {
			w.write([][]types.Datum{{int64(i), "ours"}}, nil)
			want = append(want, fmt.Sprintf(`%d|"ours"`, i))
		}
		ours := w.over
		w.over = commit.Changes{}
		w.write([][]types.Datum{{int64(1), "theirs"}}, nil)
		w.publish()
		out, dropped, err := w.store.Fold(context.Background(), ours, w.ref(), nil)
		if err != nil {
			t.Fatal(err)
		}
		files := adds(out)
		if c.joined && (len(files) != 1 || len(dropped) != c.statements) || !c.joined && (len(files) != c.statements || len(dropped) != 0) {
			t.Errorf("%v: %d files are left of %d, %d dropped", c.opts, len(files), c.statements, len(dropped))
		}
		if c.opts != nil && files[0].MinSequence != 3 {
			t.Errorf("sequence numbers begin at %d", files[0].MinSequence)
		}
		w.over = out
		w.publish()
		got := w.scanOrdered(nil)
		if c.opts == nil {
			slices.Sort(got)
			slices.Sort(want)
			got = slices.DeleteFunc(got, func(s string) bool { return !strings.Contains(s, "ours") })
		} else {
			want = append([]string{`0|"before"`, `0|"before"`, `1|"theirs"`}, want...)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", c.opts, got, want)
		}
	}
}

// TestWriteDictionaries takes text as dictionaries, one per batch, beside plain
// arrays.
func TestWriteDictionaries(t *testing.T) {
	for _, c := range []struct {
		pk, parts []string
		opts      map[string]string
	}{
		{},
		{parts: []string{"b"}},
		{opts: map[string]string{"bucket": "2", "bucket-key": "b"}},
		{pk: []string{"b"}, opts: map[string]string{"bucket": "2", "sequence.field": "c"}},
	} {
		w := newWritten(t, partitioned(tableSchema(t, c.opts, c.pk, "a BIGINT", "b STRING", "c STRING"), c.parts...))
		wr := w.open(nil)
		want := map[string]string{}
		for k := range 6 {
			var rows [][]types.Datum
			for i := range 50 {
				rows = append(rows, []types.Datum{int64(i), fmt.Sprint(k%3, "-", i%7), fmt.Sprintf("%03d", 100*k+i)})
			}
			b := w.batch(rows)
			for i := range rows {
				key := fmt.Sprint(k, i)
				if c.pk != nil {
					key = rows[i][1].(string)
				}
				want[key] = rowText(b.Cols, i)
			}
			if k%2 == 0 {
				for c := 1; c <= 2; c++ {
					dict, idx := []types.Datum{}, make([]int32, len(rows))
					at := map[types.Datum]int32{}
					for i := range rows {
						v := rows[i][c]
						if _, ok := at[v]; !ok {
							at[v] = int32(len(dict))
							dict = append(dict, v)
						}
						idx[i] = at[v]
					}
					b.Cols[c] = vec.MakeDict(idx, nil, vec.FromDatums(types.Of(types.Text), dict))
				}
			}
			if err := wr.Write(context.Background(), b, nil); err != nil {
				t.Fatal(err)
			}
		}
		w.done(wr)
		wantRows(t, w.scan(nil), slices.Collect(maps.Values(want)))
	}
}

// TestRestore follows the sequence numbers of a bucket through commits that this
// process made, that it did not see, and that were undone.
func TestRestore(t *testing.T) {
	ctx := context.Background()
	w := newWritten(t, tableSchema(t, map[string]string{"bucket": "1"}, []string{"a"}, "a BIGINT"))
	env := NewEnv(w.io, EnvOptions{})
	defer env.Close()
	other := &written{t: t, store: Open(env, w.store.Dir()), io: w.io, sch: w.sch}
	one := [][]types.Datum{{int64(1)}}
	for i := range 6 {
		x := []*written{w, w, other, other, w, other}[i]
		c := x.write(one, nil)
		if c.Base != int64(i) || c.Files[0].File.MinSequence != int64(i) {
			t.Errorf("commit %d: base %d, sequence number %d", i, c.Base, c.Files[0].File.MinSequence)
		}
		x.publish()
	}
	// A writer on an older state goes on above everything that is remembered.
	wr, err := w.store.Write(ctx, WriteOptions{At: snapshot.Ref{Kind: snapshot.ID, ID: 2}})
	if err != nil {
		t.Fatal(err)
	}
	if err := wr.Write(ctx, w.batch(one), nil); err != nil {
		t.Fatal(err)
	}
	c, err := wr.Prepare(ctx)
	if err != nil || c.Base != 2 || c.Files[0].File.MinSequence < 2 {
		t.Errorf("base %d, sequence number %d: %v", c.Base, c.Files[0].File.MinSequence, err)
	}
	// Snapshots 5 and 6 are rolled back by somebody else.
	if err := w.io.Delete(ctx, w.store.Dir()+"/snapshot/snapshot-6", w.store.Dir()+"/snapshot/snapshot-5", w.store.Dir()+"/snapshot/LATEST"); err != nil {
		t.Fatal(err)
	}
	fresh := NewEnv(w.io, EnvOptions{})
	defer fresh.Close()
	w.store = Open(fresh, w.store.Dir())
	if c := w.write(one, nil); c.Base != 4 || c.Files[0].File.MinSequence != 4 {
		t.Errorf("base %d, sequence number %d", c.Base, c.Files[0].File.MinSequence)
	}
}

// TestLocate finds keys where a writer puts them.
func TestLocate(t *testing.T) {
	ctx := context.Background()
	s := partitioned(tableSchema(t, map[string]string{"bucket": "3"}, []string{"b", "p", "a"}, "a BIGINT", "p STRING", "b STRING", "v INT"), "p")
	w := newWritten(t, s)
	rows := [][]types.Datum{}
	for i := range 60 {
		rows = append(rows, []types.Datum{int64(i % 7), fmt.Sprint(i % 3), fmt.Sprint("k\x00", i%11), int64(i)})
	}
	b := w.batch(rows)
	l, err := w.store.Locate(ctx, snapshot.Ref{}, []arrow.Array{b.Cols[2], b.Cols[1], b.Cols[0]}, b.N)
	if err != nil {
		t.Fatal(err)
	}
	codec := mergetree.NewKeyCodec([]types.Type{s.Fields[2].Type, s.Fields[0].Type})
	want := map[string]bool{} // by bucket and key
	for i, r := range rows {
		if key := codec.Append(nil, []types.Datum{r[2], r[0]}); string(l.Keys[i]) != string(key) {
			t.Errorf("key %d is %x, want %x", i, l.Keys[i], key)
		}
		id := l.Buckets[l.Bucket[i]]
		want[fmt.Sprintf("%x %d %v", id.Partition, id.Bucket, r[:3])] = true
	}
	c := w.write(rows, nil)
	got := map[string]bool{}
	for _, e := range c.Files {
		w.over = commit.Changes{Kind: commit.Append, Files: []manifest.Entry{e}}
		for _, r := range rows {
			text := rowText(w.batch([][]types.Datum{r}).Cols[:3], 0)
			if slices.Contains(w.scan([]int{0, 1, 2}), text) {
				got[fmt.Sprintf("%x %d %v", e.Partition, e.Bucket, r[:3])] = true
			}
		}
	}
	if !maps.Equal(got, want) {
		t.Errorf("%d keys are found where they were located, of %d", len(got), len(want))
	}
	if _, err := w.store.Locate(ctx, snapshot.Ref{}, []arrow.Array{vec.MakeNull(arrow.BinaryTypes.String, 1), b.Cols[1], b.Cols[0]}, 1); err == nil {
		t.Error("a NULL key is located")
	}
}
