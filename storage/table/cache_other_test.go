package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestCachesSeeOthers reads a table through caches that stay, while another process
// writes, deletes, compacts, rolls it back, changes its schema, and drops it and makes
// another of the same name: the answers are those of a process that has just started.
func TestCachesSeeOthers(t *testing.T) {
	for seed := range uint64(12) {
		for _, keyed := range []bool{false, true} {
			t.Run(fmt.Sprintf("%d/%v", seed, keyed), func(t *testing.T) { cachesSeeOthers(t, rand.New(rand.NewPCG(seed, 7)), keyed) })
		}
	}
}

func cachesSeeOthers(t *testing.T, r *rand.Rand, keyed bool) {
	ctx := context.Background()
	io := fileio.NewMem()
	const dir = "db.db/t"
	open := func() *FileStore {
		env := NewEnv(io, EnvOptions{VerdictRows: 1, SplitBytes: 1 << 10})
		t.Cleanup(env.Close)
		return Open(env, dir)
	}
	reader := open() // as a catalog keeps it
	var writer *FileStore
	var sch *schema.Table
	generation := 0
	putSchema := func(s *schema.Table) {
		raw, err := schema.Encode(s)
		if err != nil {
			t.Fatal(err)
		}
		if err := io.Put(ctx, fmt.Sprintf("%s/schema/schema-%d", dir, s.ID), raw); err != nil {
			t.Fatal(err)
		}
		sch = s
	}
	create := func() {
		if err := io.DeleteDir(ctx, dir); err != nil {
			t.Fatal(err)
		}
		generation++
		cols := []string{"k INT", "a INT", "b INT"}
		if r.IntN(2) == 0 {
			cols = []string{"k INT", "b INT", "a INT"}
		}
		if r.IntN(3) == 0 {
			cols[1] += " NOT NULL"
		}
		o := map[string]string{"bucket": "-1"}
		var pk []string
		if keyed {
			o, pk = map[string]string{"bucket": "1"}, []string{"k"}
			if r.IntN(2) == 0 {
				o["deletion-vectors.enabled"] = "true"
			}
		}
		putSchema(tableSchema(t, o, pk, cols...))
		writer = open()
	}
	commitOf := func(rows [][]types.Datum, kinds []uint8) {
		w := &written{t: t, store: writer, io: io, sch: sch}
		w.write(rows, kinds)
		w.over.Operation, w.over.Kind = "INSERT", commit.Append
		if _, err := writer.Commit(ctx, w.over); err != nil {
			t.Fatal(err)
		}
	}
	insert := func() {
		var rows [][]types.Datum
		var kinds []uint8
		for range 1 + r.IntN(40) {
			row := make([]types.Datum, len(sch.Fields))
			for i := range row {
				row[i] = int64(generation*1000 + r.IntN(100))
			}
			row[0] = int64(r.IntN(50))
			rows = append(rows, row)
			k := uint8(0)
			if keyed && r.IntN(5) == 0 {
				k = 3
			}
			kinds = append(kinds, k)
		}
		commitOf(rows, kinds)
	}
	check := func(step string) {
		t.Helper()
		fresh := open()
		var filter predicate.Node
		if r.IntN(2) == 0 { // an old state is the first that is looked at
			at := snapshot.Ref{Kind: snapshot.ID, ID: 1}
			got, _, err1 := readAll(ctx, reader, Scan{At: at, Limit: -1}, ReadOptions{})
			want, _, err2 := readAll(ctx, fresh, Scan{At: at, Limit: -1}, ReadOptions{})
			if err1 != nil || err2 != nil || !slices.Equal(got, want) {
				t.Fatalf("after %s, generation %d, snapshot 1: %v, %v\n%v\nwant\n%v", step, generation, err1, err2, got, want)
			}
		}
		for range 3 {
			got, _, err1 := readAll(ctx, reader, Scan{Filter: filter, Limit: -1}, ReadOptions{})
			want, _, err2 := readAll(ctx, fresh, Scan{Filter: filter, Limit: -1}, ReadOptions{})
			if err1 != nil || err2 != nil {
				t.Fatalf("%s: %v, %v", step, err1, err2)
			}
			if !slices.Equal(got, want) {
				t.Fatalf("after %s, generation %d, filter %v:\n%v\nwant\n%v", step, generation, filter, got, want)
			}
			filter = leafOn(sch.Fields, r.IntN(len(sch.Fields)), predicate.GtEq, int64(generation*1000+r.IntN(100)))
		}
		st1, err1 := reader.Stats(ctx, snapshot.Ref{})
		st2, err2 := fresh.Stats(ctx, snapshot.Ref{})
		if err1 != nil || err2 != nil || st1.Rows != st2.Rows || fmt.Sprint(st1.Columns) != fmt.Sprint(st2.Columns) {
			t.Fatalf("after %s: statistics %v %v, want %v %v", step, st1, err1, st2, err2)
		}
		if keyed {
			for _, k := range []int64{int64(r.IntN(50)), int64(r.IntN(50))} {
				want, _, err := readAll(ctx, fresh, Scan{Filter: leafOn(sch.Fields, 0, predicate.Eq, k), Limit: -1}, ReadOptions{})
				if err != nil {
					t.Fatal(err)
				}
				n := 0
				for _, w := range want {
					var kk int64
					_, _ = fmt.Sscan(w, &kk)
					if kk == k {
						n++
					}
				}
				testGet(t, reader, sch, []types.Datum{k}, n)
			}
		}
	}
	create()
	insert()
	check("insert")
	for range 14 {
		step := ""
		switch r.IntN(7) {
		default:
			step = "insert"
			insert()
		case 2:
			step = "compact"
			if _, err := writer.Compact(ctx, CompactOptions{Full: true}); err != nil {
				t.Fatal(err)
			}
		case 3:
			step = "rollback"
			id, err := writer.Snapshots("").LatestID(ctx)
			if err != nil || id < 2 {
				continue
			}
			if err := writer.RollbackTo(ctx, "", snapshot.Ref{Kind: snapshot.ID, ID: 1 + r.Int64N(id)}); err != nil {
				t.Fatal(err)
			}
		case 4:
			step = "alter"
			s := *sch
			s.ID++
			s.HighestFieldID++
			s.Fields = append(slices.Clone(s.Fields), fieldOfType(t, s.HighestFieldID, fmt.Sprintf("c%d", s.HighestFieldID), "INT"))
			putSchema(&s)
			writer = open()
			if r.IntN(2) == 0 {
				insert()
			}
		case 5, 6:
			step = "drop and create"
			create()
			insert()
			if r.IntN(2) == 0 { // before anyone looks at it
				s := *sch
				s.ID++
				s.HighestFieldID++
				s.Fields = append(slices.Clone(s.Fields), fieldOfType(t, s.HighestFieldID, fmt.Sprintf("c%d", s.HighestFieldID), "INT"))
				putSchema(&s)
				writer = open()
				step += " and alter"
			}
		}
		check(step)
	}
}
