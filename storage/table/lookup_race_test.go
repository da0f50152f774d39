package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/apache/arrow/go/v15/arrow"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestLookupsWhileWriting looks keys up in several goroutines while one writes and
// compacts. Every version of a key is higher than the one before, so that a lookup
// may find a newer one than was there when it began, never an older one or none.
func TestLookupsWhileWriting(t *testing.T) {
	const keys = 300
	s := tableSchema(t, map[string]string{"bucket": "2", "num-sorted-run.compaction-trigger": "3"}, []string{"k"}, "k INT", "v BIGINT")
	io := fileio.NewMem()
	c := newCompactTable(t, io, s, EnvOptions{Lookup: lookup.Options{MemoryBytes: 40 << 10, BlockBytes: 500, Dir: localDir(t)}})
	f := &fleet{t: t, io: io, sch: s, stores: []*FileStore{c.s}}
	ctx := context.Background()
	var version atomic.Int64 // of every key, committed
	write := func() {
		n := version.Load() + 1
		var rows [][]types.Datum
		for k := range int64(keys) {
			rows = append(rows, []types.Datum{k, n})
		}
		f.write(c.s, rows, nil)
		version.Store(n)
	}
	write()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for g := range 3 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(g), 1))
			for {
				select {
				case <-stop:
					return
				default:
				}
				least := version.Load()
				at, err := c.s.Resolve(ctx, snapshot.Ref{})
				if err != nil {
					t.Error(err)
					return
				}
				n := 1 + r.IntN(3)*r.IntN(100)
				ids := make([]int32, n)
				for i := range ids {
					ids[i] = r.Int32N(keys)
				}
				b, _, err := c.s.Get(ctx, Lookup{At: at, Keys: []arrow.Array{vec.Make(arrow.PrimitiveTypes.Int32, ids, nil)}, Columns: []int{0, 1}})
				if err != nil || b.N != n {
					t.Errorf("%d rows of %d: %v", b.N, n, err)
					return
				}
				for _, v := range vec.ViewOf[int64](b.Cols[1]).V {
					if v < least {
						t.Errorf("version %d after %d was committed", v, least)
					}
				}
			}
		})
	}
	for i := range 25 {
		write()
		if i%3 == 2 {
			c.compact(CompactOptions{Full: i%2 == 0})
		}
	}
	close(stop)
	wg.Wait()
}

// TestLookupsBecomeTables: a big file is read page by page at first, and has a table
// once that has been done often enough; one that is cancelled says so.
func TestLookupsBecomeTables(t *testing.T) {
	s := tableSchema(t, map[string]string{"bucket": "1"}, []string{"k"}, "k INT", "v STRING")
	b := newBuilt(t, s)
	var rows []row
	for k := range int64(3 * tinyRows) {
		rows = append(rows, row{k, 0, []types.Datum{k, fmt.Sprint("v", k)}})
	}
	b.addFile(5, 0, rows, 1000)
	tb := b.commit(EnvOptions{})
	ctx := context.Background()
	at, err := tb.Resolve(ctx, snapshot.Ref{})
	if err != nil {
		t.Fatal(err)
	}
	gone, cancel := context.WithCancel(ctx)
	cancel()
	if _, err := getKey(gone, tb, Lookup{At: at, Columns: []int{1}}, []types.Datum{int64(1)}); !errors.Is(err, context.Canceled) {
		t.Errorf("cancelled: %v", err)
	}
	if n := tb.Env().LookupStats().Builds; n != 0 {
		t.Errorf("%d tables at once", n)
	}
	for i := 0; tb.Env().LookupStats().Tables == 0; i++ {
		k := int64(i * 7919 % len(rows))
		x, err := getKey(ctx, tb, Lookup{At: at, Columns: []int{1}}, []types.Datum{k})
		if err != nil || x.N != 1 || vec.DatumAt(x.Cols[0], s.Fields[1].Type, 0) != fmt.Sprint("v", k) {
			t.Fatalf("key %d: %v %v", k, x, err)
		}
		if i > 200_000 {
			t.Fatal("no table after 200,000 lookups")
		}
	}
}
