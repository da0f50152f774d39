package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

func fixedTable(t testing.TB, buckets int, more ...string) *schema.Table {
	o := map[string]string{"bucket": fmt.Sprint(buckets)}
	for i := 0; i < len(more); i += 2 {
		o[more[i]] = more[i+1]
	}
	return partitioned(tableSchema(t, o, []string{"p", "k"}, "p INT", "k BIGINT", "v STRING"), "p")
}

// alter gives the table another schema.
func (f *fleet) alter(s *schema.Table) {
	s.ID = f.sch.ID + 1
	(&workbench{t: f.t, io: f.io}).putSchema(s)
	f.sch = s
}

// rescaleEngines are the options of the tables that rescaling is tried with.
var rescaleEngines = map[string][]string{
	"deduplicate":    {},
	"partial-update": {"merge-engine", "partial-update"},
	"aggregation":    {"merge-engine", "aggregation", "fields.v.aggregate-function", "listagg"},
	"first-row":      {"merge-engine", "first-row"},
	"vectors":        {"deletion-vectors.enabled", "true"},
}

// TestRescale rewrites partitions of every merge engine into another number of
// buckets: the rows stay, the partitions that are not named do, too, and writing
// goes on.
func TestRescale(t *testing.T) {
	ctx := context.Background()
	for name, more := range rescaleEngines {
		t.Run(name, func(t *testing.T) {
			seed := random.Seed(t)
			r := rand.New(rand.NewPCG(seed, 2))
			f := newFleet(t, fileio.NewMem(), fixedTable(t, 2, more...), 1)
			s := f.stores[0]
			write := func() error {
				rows, kinds := randomRows(r, 60, 3, 60)
				if name != "deduplicate" && name != "vectors" {
					kinds = nil
				}
				return f.tryWrite(s, rows, kinds)
			}
			for range 3 {
				if err := write(); err != nil {
					t.Fatal(err)
				}
			}
			f.alter(fixedTable(t, 5, more...))
			var bc *BucketCountError
			if err := write(); !errors.As(err, &bc) || bc.Want != 5 || bc.Have != 2 {
				t.Fatalf("%v", err)
			}
			before := f.rows()
			rep, err := s.Rescale(ctx, RescaleOptions{Partitions: [][]byte{intImage(t, 1)}})
			if err != nil || rep.Partitions != 1 || rep.Buckets != 5 {
				t.Fatalf("%+v, %v", rep, err)
			}
			wantRows(t, f.rows(), before)
			if got := f.bucketsOf(); !strings.Contains(got["p=1"], "/5") || strings.Contains(got["p=1"], "/2") || strings.Contains(got["p=0"], "/5") {
				t.Errorf("%v", got)
			}
			if rep, err = s.Rescale(ctx, RescaleOptions{}); err != nil || rep.Partitions != 2 {
				t.Fatalf("%+v, %v", rep, err)
			}
			wantRows(t, f.rows(), before)
			if rep, err = s.Rescale(ctx, RescaleOptions{}); err != nil || rep.SnapshotID != 0 {
				t.Fatalf("%+v, %v", rep, err)
			}
			if err := write(); err != nil {
				t.Fatal(err)
			}
			if rep, err = s.Rescale(ctx, RescaleOptions{Buckets: 1}); err != nil || rep.Partitions != 3 {
				t.Fatalf("%+v, %v", rep, err)
			}
		})
	}
}

// TestRescaleRace: what others write to a partition while it is rewritten is not
// lost, and what they write to another one is no conflict.
func TestRescaleRace(t *testing.T) {
	ctx := context.Background()
	f := newFleet(t, fileio.NewMem(), fixedTable(t, 2), 2)
	f.write(f.stores[0], [][]types.Datum{{int64(0), int64(1), "a"}, {int64(1), int64(1), "a"}}, nil)
	rounds := 0
	rep, err := f.stores[0].Rescale(ctx, RescaleOptions{Buckets: 3, Partitions: [][]byte{intImage(t, 0)}, Publish: func(context.Context) (func(), error) {
		if rounds++; rounds == 1 {
			f.write(f.stores[1], [][]types.Datum{{int64(0), int64(2), "b"}}, nil)
		}
		f.write(f.stores[1], [][]types.Datum{{int64(1), int64(rounds + 1), "c"}}, nil)
		return func() {}, nil
	}})
	if err != nil || rep.LostRaces != 1 || rounds != 2 || rep.Rows != 2 {
		t.Fatalf("%+v, %d rounds, %v", rep, rounds, err)
	}
	wantRows(t, f.rows(), []string{`0|1|"a"`, `0|2|"b"`, `1|1|"a"`, `1|2|"c"`, `1|3|"c"`})
	// And the other way round: files that were written for the old number.
	c, err := f.prepare(f.stores[1], WriteOptions{Options: map[string]string{"bucket": "3"}}, [][]types.Datum{{int64(0), int64(3), "d"}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := f.stores[0].Rescale(ctx, RescaleOptions{Buckets: 2}); err != nil {
		t.Fatal(err)
	}
	wantConflict(t, f.publish(f.stores[1], c), "would be written with 3")
	_, err = f.stores[1].Commit(ctx, c)
	wantConflict(t, err, "would be written with 3")
}

// TestRescaleRefuses: tables whose buckets are not fixed.
func TestRescaleRefuses(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), dynamicTable(t, 5), 1)
	var un *fileio.UnsupportedError
	if _, err := f.stores[0].Rescale(context.Background(), RescaleOptions{Buckets: 2}); !errors.As(err, &un) {
		t.Error(err)
	}
	f = newFleet(t, fileio.NewMem(), postponeTable(t), 1)
	f.write(f.stores[0], [][]types.Datum{{int64(0), int64(1), "a"}}, nil)
	if _, err := f.stores[0].Rescale(context.Background(), RescaleOptions{}); !errors.Is(err, ErrNoBucketCount) {
		t.Error(err)
	}
	if r, err := f.stores[0].Rescale(context.Background(), RescaleOptions{Buckets: 3}); err != nil || r.SnapshotID == 0 {
		t.Error(r, err)
	}
	if got := f.bucketsOf(); !strings.HasSuffix(got["p=0"], "/3") {
		t.Errorf("%v", got)
	}
	f.write(f.stores[0], [][]types.Datum{{int64(0), int64(1), "b"}, {int64(0), int64(2), "c"}}, nil)
	wantRows(t, f.rows(), []string{`0|1|"b"`, `0|2|"c"`})
}

// TestRescaleGet: keys are found in partitions of different numbers of buckets.
func TestRescaleGet(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), fixedTable(t, 2), 1)
	s, ctx := f.stores[0], context.Background()
	var rows [][]types.Datum
	for k := range 20 {
		rows = append(rows, []types.Datum{int64(k % 2), int64(k), "x"})
	}
	f.write(s, rows, nil)
	if _, err := s.Rescale(ctx, RescaleOptions{Buckets: 7, Partitions: [][]byte{intImage(t, 1)}}); err != nil {
		t.Fatal(err)
	}
	_, which, err := s.Get(ctx, Lookup{Keys: f.batch(rows).Cols[:2], Columns: []int{2}})
	if err != nil || len(which) != 20 {
		t.Errorf("%d rows, %v", len(which), err)
	}
}

// TestJavaRescale: Java reads and examines what was rescaled by an overwrite and
// by the procedure, writes to it, and we to what it rescales.
func TestJavaRescale(t *testing.T) {
	ctx := context.Background()
	for name, more := range rescaleEngines {
		for _, fn := range []string{"default", "mod", "hive"} {
			if fn != "default" && name != "deduplicate" {
				continue
			}
			t.Run(name+" "+fn, func(t *testing.T) {
				seed := random.Seed(t)
				r := rand.New(rand.NewPCG(seed, 2))
				more := append([]string{"bucket-function.type", fn}, more...)
				j := newJavaTable(t, fixedTable(t, 2, more...))
				plain := name == "first-row" || name == "vectors" // level 0 is not in Java's view
				agree := func() {
					t.Helper()
					j.publish()
					if plain {
						if _, err := j.store.Compact(ctx, CompactOptions{Level0: true}); err != nil {
							t.Fatal(err)
						}
					}
					j.agree()
				}
				write := func() {
					rows, kinds := randomRows(r, 40, 2, 40)
					if name != "deduplicate" && name != "vectors" {
						kinds = nil
					}
					j.write(rows, kinds)
					agree()
				}
				write()
				write()
				// The procedure for one partition, an overwrite for the other.
				rep, err := j.store.Rescale(ctx, RescaleOptions{Buckets: 3, Partitions: [][]byte{intImage(t, 0)}})
				if err != nil || rep.Partitions != 1 {
					t.Fatalf("%+v, %v", rep, err)
				}
				j.agree()
				wr, err := j.store.Write(ctx, WriteOptions{Overwrite: true, Options: map[string]string{"bucket": "3"}})
				if err != nil {
					t.Fatal(err)
				}
				rows, _ := randomRows(r, 40, 1, 40)
				for i := range rows {
					rows[i][0] = int64(1)
				}
				if err := wr.Write(ctx, j.batch(rows), nil); err != nil {
					t.Fatal(err)
				}
				c, err := wr.Prepare(ctx)
				if err != nil {
					t.Fatal(err)
				}
				c.Kind, c.Overwrite = commit.Overwrite, &commit.Replacement{Dynamic: true}
				mustCommit(t, j.store, c)
				j.agree()
				j.java.Do(t, map[string]any{"cmd": "alter", "table": j.name, "changes": []map[string]any{{"op": "set-option", "key": "bucket", "value": "3"}}})
				theirs := []map[string]any{}
				for range 20 {
					theirs = append(theirs, map[string]any{"p": r.IntN(3), "k": r.IntN(40), "v": fmt.Sprint(r.IntN(1000))})
				}
				j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": theirs, "options": map[string]string{"write-only": "true"}})
				agree()
				write()
				s, err := j.store.Schema(ctx, snapshot.Ref{})
				if err != nil || s.Options["bucket"] != "3" {
					t.Fatal(s.Options, err)
				}
			})
		}
	}
}

// TestJavaBucketFunctions has Java examine which buckets we put keys of several
// types into, under each function, and update what is in them.
func TestJavaBucketFunctions(t *testing.T) {
	for fn, cols := range map[string][]string{
		"default": {"k BIGINT", "a INT", "b STRING", "c DECIMAL(20, 3)", "d DATE", "e DOUBLE", "f BOOLEAN", "v STRING"},
		"hive":    {"k BIGINT", "a INT", "b STRING", "c DECIMAL(20, 3)", "d DATE", "e DOUBLE", "f BOOLEAN", "v STRING"},
		"mod":     {"k INT", "v STRING"},
	} {
		t.Run(fn, func(t *testing.T) {
			seed := random.Seed(t)
			r := rand.New(rand.NewPCG(seed, 2))
			var pk []string
			for _, c := range cols[:len(cols)-1] {
				pk = append(pk, c[:1])
			}
			s := tableSchema(t, map[string]string{"bucket": "7", "bucket-function.type": fn, "write-only": "true"}, pk, cols...)
			j := newJavaTable(t, s)
			var rows [][]types.Datum
			for range 60 {
				row := []types.Datum{int64(r.IntN(2000) - 1000)}
				if fn != "mod" {
					row = append(row, int64(r.IntN(2000)-1000), fmt.Sprint("é", r.IntN(100)), decimalOf(t, fmt.Sprintf("%d.%d", r.IntN(2000)-1000, r.IntN(100))),
						int64(r.IntN(20000)), r.NormFloat64(), r.IntN(2) == 0)
				}
				rows = append(rows, append(row, "x"))
			}
			j.write(rows, nil)
			j.agree()
			for i := range rows {
				rows[i][len(rows[i])-1] = "y"
			}
			theirs := j.java.Rows(t, j.name, nil)
			j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": theirs})
			j.agree()
			j.write(rows[:30], nil)
			j.agree()
		})
	}
}
