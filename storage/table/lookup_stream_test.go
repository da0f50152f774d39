package table

import (
	"context"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// TestLookupStream asks for batches of ascending keys, forwards and now and then back
// again, and compares what going through the files answers with what the pages that
// a single key may be in say.
func TestLookupStream(t *testing.T) {
	ctx := context.Background()
	for _, window := range []int{7, 100, 0} {
		for _, dvs := range []string{"false", "true"} {
			t.Run(fmt.Sprint(window, " ", dvs), func(t *testing.T) {
				r := rand.New(rand.NewPCG(uint64(window), 5))
				s := tableSchema(t, map[string]string{"bucket": "1", "deletion-vectors.enabled": dvs, "num-sorted-run.compaction-trigger": "100", "compaction.size-ratio": "0", "file.block-size": "4kb"}, []string{"k", "g"}, "g STRING", "k BIGINT", "v STRING", "w INT")
				l := newCompactTable(t, fileio.NewMem(), s, EnvOptions{WindowRows: window})
				const span = 3000
				for n := range 4 {
					var rows [][]types.Datum
					var kinds []uint8
					for range []int{3000, 600, 40, 300}[n] {
						row := []types.Datum{fmt.Sprint("g", r.IntN(3)), r.Int64N(span), nil, nil}
						if r.IntN(4) > 0 {
							row[2] = fmt.Sprint("v", r.IntN(3))
						}
						if r.IntN(4) > 0 {
							row[3] = r.Int64N(1 << 20)
						}
						rows, kinds = append(rows, row), append(kinds, []uint8{0, 0, 0, 3}[r.IntN(4)])
					}
					if err := l.write(rows, kinds); err != nil {
						t.Fatal(err)
					}
					if n < 2 {
						l.compact(CompactOptions{Level0: dvs == "true", Full: dvs != "true" && n == 0})
					}
				}
				c, err := l.s.newCompaction(ctx, CompactOptions{})
				if err != nil {
					t.Fatal(err)
				}
				var runs [][]File
				var dir string
				err = l.s.filesOf(ctx, c.p.state, func(all bucketFiles) {
					for id, files := range all {
						part, err := c.p.partitionOf([]byte(id.Partition))
						if err != nil {
							t.Fatal(err)
						}
						dir = c.p.bucketDir(part, id.Bucket)
						for level := range int32(200) { // newest first; those of level 0 in any order, the same for both
							for _, e := range files {
								if e.File.Level == level {
									runs = append(runs, []File{c.file(e.File)})
								}
							}
						}
					}
				})
				if err != nil || len(runs) < 3 {
					t.Fatal(len(runs), err)
				}
				streams, tables := c.all.newLevelLookup(dir, runs), c.all.newLevelLookup(dir, runs)
				defer streams.close()
				cols := []int{0, 1, 2, 3}
				streamed := 0
				for round := range 60 {
					from, rows := int64(0), round%4 > 0
					for from < span {
						n := r.Int64N(span)
						var keys [][]byte
						for k := from; k < min(from+n, span); k++ {
							for g := range 3 {
								if r.IntN(1+round%5) == 0 {
									keys = append(keys, c.all.codec.Append(nil, []types.Datum{k, fmt.Sprint("g", g)}))
								}
							}
						}
						from += n
						got, err := streams.find(ctx, keys, rows)
						if err != nil {
							t.Fatal(err)
						}
						tables.d.rows = rows
						want := make([]levelHit, len(keys))
						tables.d.direct = nil
						err = tables.d.find(ctx, keys, func(k int, _ *lookupFile) bool { return want[k].File != nil }, func(v keyVersion) error {
							if h := &want[v.Key]; h.File == nil {
								h.File, h.Found = &v.file.file, v.Found
							}
							return nil
						})
						if err != nil {
							t.Fatal(err)
						}
						for i := range keys {
							g, w := &got[i], &want[i]
							if (g.File == nil) != (w.File == nil) || g.File != nil && (g.File.Meta.Name != w.File.Meta.Name || g.Pos != w.Pos || rows && (g.Seq != w.Seq || g.Kind != w.Kind)) {
								t.Fatalf("key %d of %d: %+v, want %+v", i, len(keys), g, w)
							}
							if g.part > 0 {
								streamed++
							}
						}
						if !rows || len(keys) == 0 {
							continue
						}
						a, err := streams.columns(got, cols)
						if err != nil {
							t.Fatal(err)
						}
						b, err := tables.columns(want, cols)
						if err != nil {
							t.Fatal(err)
						}
						for c := range cols {
							x, y := vec.Decode(a[c]), vec.Decode(b[c])
							if x.Len() != len(keys) || y.Len() != len(keys) {
								t.Fatal(x.Len(), y.Len(), len(keys))
							}
							for i := range keys {
								if p, q := vec.DatumAt(x, s.Fields[c].Type, i), vec.DatumAt(y, s.Fields[c].Type, i); p != q {
									t.Fatalf("column %d of key %d: %v, want %v", c, i, p, q)
								}
							}
						}
					}
				}
				if streamed == 0 {
					t.Error("nothing was read by going through a file")
				}
			})
		}
	}
}
