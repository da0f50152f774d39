package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// positions are the rows of a table by file and position.
func (w *written) positions() map[string]string {
	out := map[string]string{}
	for _, r := range w.scan([]int{PseudoFile, PseudoPos, 0, 1}) {
		c := strings.SplitN(r, "|", 3)
		f, err := strconv.Unquote(c[0])
		if err != nil {
			w.t.Fatal(err)
		}
		out[f+"#"+c[1]] = c[2]
	}
	return out
}

// TestDeleteModel deletes random rows of append tables and adds others, by
// rewriting and by deletion vectors, with what was published below what the
// transaction wrote.
func TestDeleteModel(t *testing.T) {
	for run := range 10 {
		seed := random.Seed(t)
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 1))
			opts := map[string]string{}
			vectors, bucketed := run%2 == 0, run%4 < 2
			if vectors {
				opts["deletion-vectors.enabled"] = "true"
				opts["deletion-vectors.bitmap64"] = fmt.Sprint(r.IntN(2) == 0)
			}
			if r.IntN(3) == 0 {
				opts["index-file-in-data-file-dir"] = "true"
			}
			if bucketed {
				opts["bucket"], opts["bucket-key"] = "2", "a"
			}
			s := tableSchema(t, opts, nil, "a BIGINT", "p STRING")
			if r.IntN(2) == 0 {
				partitioned(s, "p")
			}
			t.Logf("seed %d options %v", seed, opts)
			w := newWritten(t, s)
			ctx := context.Background()
			model := map[string]bool{} // rows, all different
			next := int64(0)
			for range 6 {
				wr := w.open(nil)
				victims := map[string][]int64{}
				for at, row := range w.positions() {
					file, pos, _ := strings.Cut(at, "#")
					if r.IntN(3) == 0 || r.IntN(2) == 0 && strings.HasSuffix(file, "-0.parquet") && r.IntN(4) > 0 {
						p, _ := strconv.ParseInt(pos, 10, 64)
						victims[file] = append(victims[file], p)
						delete(model, row)
					}
				}
				for f, pos := range victims {
					slices.Sort(pos)
					for len(pos) > 0 { // several calls for one file
						n := 1 + r.IntN(len(pos))
						if err := wr.Delete(ctx, f, pos[:n]); err != nil {
							t.Fatal(err)
						}
						pos = pos[n:]
					}
				}
				var rows [][]types.Datum
				for range r.IntN(60) {
					p := types.Datum([]string{"x", "a/b=c", "", "  "}[r.IntN(4)])
					if r.IntN(5) == 0 {
						p = nil
					}
					row := []types.Datum{next, p}
					next++
					rows = append(rows, row)
					model[rowText(w.batch([][]types.Datum{row}).Cols, 0)] = true
				}
				if len(rows) > 0 {
					if err := wr.Write(ctx, w.batch(rows), nil); err != nil {
						t.Fatal(err)
					}
				}
				c := w.done(wr)
				if len(victims) > 0 && c.Kind != commit.Overwrite {
					t.Errorf("kind is %s", c.Kind)
				}
				var want []string
				for row := range model {
					want = append(want, row)
				}
				wantRows(t, w.scan(nil), want)
				if bucketed && !vectors {
					w.inOrder(s.PartitionKeys == nil)
				}
				if r.IntN(2) == 0 {
					w.publish()
					wantRows(t, w.scan(nil), want)
				}
			}
		})
	}
}

// inOrder checks that rows of a bucket come in the order in which they were
// written, however often their files were rewritten.
func (w *written) inOrder(whole bool) {
	last := map[string]int64{}
	for _, r := range w.scanOrdered([]int{PseudoBucket, 1, 0}) {
		c := strings.Split(r, "|")
		id := c[0]
		if !whole {
			id += c[1]
		}
		v, err := strconv.ParseInt(c[2], 10, 64)
		if err != nil {
			w.t.Fatal(err)
		}
		if old, ok := last[id]; ok && v < old {
			w.t.Fatalf("row %d of bucket %s comes after %d", v, id, old)
		}
		last[id] = v
	}
}

// publish commits the transaction.
func (w *written) publish() {
	c := w.over
	w.over = commit.Changes{}
	if c.Empty() {
		return
	}
	c.Identifier = 1<<63 - 1
	if _, err := w.store.Commit(context.Background(), c); err != nil {
		w.t.Fatal(err)
	}
}

// TestDeleteEntries looks at what deleting leaves in the changes.
func TestDeleteEntries(t *testing.T) {
	ctx := context.Background()
	w := newWritten(t, tableSchema(t, map[string]string{"deletion-vectors.enabled": "true"}, nil, "a BIGINT", "b STRING"))
	var rows [][]types.Datum
	for i := range 10 {
		rows = append(rows, []types.Datum{int64(i), "x"})
	}
	first := adds(w.write(rows, nil))[0]
	second := adds(w.write(rows[:3], nil))[0]
	w.publish()
	del := func(f *manifest.DataFile, pos ...int64) commit.Changes {
		wr := w.open(nil)
		if err := wr.Delete(ctx, "bucket-0/"+f.Name, pos); err != nil {
			t.Fatal(err)
		}
		c := w.done(wr)
		w.publish()
		return c
	}
	c := del(first, 1, 3)
	if len(c.Files) != 0 || len(c.Indexes) != 1 || c.Indexes[0].Kind != manifest.Add || c.Indexes[0].DVs[0].Cardinality != 2 || !slices.Equal(c.Reads.Files, []string{first.Name}) {
		t.Errorf("%+v", c)
	}
	one := c.Indexes[0].Name
	if c = del(second, 0); len(c.Indexes) != 1 || len(c.Indexes[0].DVs) != 1 {
		t.Errorf("the second file's vector touches another index: %+v", c.Indexes)
	}
	if c = del(first, 1, 2); len(c.Indexes) != 2 || c.Indexes[0].Kind != manifest.Delete || c.Indexes[0].Name != one || c.Indexes[1].DVs[0].Cardinality != 3 {
		t.Errorf("%+v", c.Indexes)
	}
	if c = del(first, 1); !c.Empty() {
		t.Errorf("a row is deleted twice: %+v", c)
	}
	if c = del(second, 1, 2); len(c.Files) != 1 || c.Files[0].Kind != manifest.Delete || len(c.Indexes) != 1 || c.Indexes[0].Kind != manifest.Delete {
		t.Errorf("a file that lost its last rows: %+v", c)
	}
	if n := len(w.scan(nil)); n != 7 {
		t.Errorf("%d rows", n)
	}
	wr := w.open(nil)
	for _, x := range []struct {
		file string
		pos  int64
	}{{"bucket-0/none.parquet", 0}, {"bucket-0/" + second.Name, 0}, {"bucket-0/" + first.Name, 10}, {"bucket-0/" + first.Name, -1}} {
		if err := wr.Delete(ctx, x.file, []int64{x.pos}); err == nil {
			t.Errorf("row %d of %s is deleted", x.pos, x.file)
		}
	}
}
