package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/lookup"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// TestLookupsFollow looks keys up through one process while others write, compact and
// replace, at the newest state, at older ones, and under writes of its own that are
// not committed: each time it must be what a scan of that state gives.
func TestLookupsFollow(t *testing.T) {
	seed := random.Seed(t)
	if v, err := strconv.ParseUint(os.Getenv("SEED"), 10, 64); err == nil {
		seed = v
	}
	r := rand.New(rand.NewPCG(seed, 13))
	for round := range testkit.Rounds(1) {
		for _, opts := range []map[string]string{
			{"bucket": "1"},
			{"bucket": "3"},
			{"bucket": "3", "bucket-function.type": "mod", "bucket-key": "k"},
			{"bucket": "-1", "dynamic-bucket.target-row-num": "20"},
			{"bucket": "-1", "dynamic-bucket.target-row-num": "20", "cross": "true"},
			{"bucket": "-1", "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true", "cross": "true"},
			{"bucket": "2", "merge-engine": "partial-update", "partial-update.remove-record-on-delete": "true"},
			{"bucket": "2", "merge-engine": "aggregation", "fields.w.aggregate-function": "sum"},
			{"bucket": "2", "sequence.field": "w"},
			{"bucket": "2", "deletion-vectors.enabled": "true"},
			{"bucket": "2", "merge-engine": "first-row"},
			{"bucket": "2", "changelog-producer": "lookup"},
		} {
			followRound(t, r, opts, round%2 == 1 || r.IntN(2) == 0)
			if t.Failed() {
				t.Fatalf("round %d of seed %d", round, seed)
			}
		}
	}
}

func followRound(t *testing.T, r *rand.Rand, opts map[string]string, partitioned bool) {
	ctx := context.Background()
	set := map[string]string{"num-sorted-run.compaction-trigger": "3", "target-file-size": "20 kb"}
	pk := []string{"k"}
	if partitioned = partitioned && opts["cross"] == ""; partitioned {
		pk = []string{"k", "p"}
	}
	cross := opts["cross"] != "" // a key is in one partition, whichever
	for k, v := range opts {
		set[k] = v
	}
	delete(set, "cross")
	s := tableSchema(t, set, pk, "k INT", "p STRING", "v STRING", "w INT")
	if partitioned || cross {
		s.PartitionKeys = []string{"p"}
	}
	io := fileio.NewMem()
	c := newCompactTable(t, io, s, EnvOptions{Lookup: lookup.Options{BlockBytes: 500}})
	other := (&workbench{t: t, io: io}).open()
	what := fmt.Sprintf("%v partitioned=%v", opts, partitioned)
	asked := map[string][]types.Datum{}
	key := func() (k int64, p string) { return r.Int64N(120), fmt.Sprint("p", r.IntN(2)) }
	rows := func(n int) (out [][]types.Datum, kinds []uint8) {
		seen := map[string]bool{}
		for range n {
			k, p := key()
			row := []types.Datum{k, p, fmt.Sprint("v", r.IntN(1000)), r.Int64N(50)}
			ask := []types.Datum{k}
			if partitioned {
				ask = append(ask, p)
			}
			id := fmt.Sprint(ask)
			if asked[id] = ask; seen[id] {
				continue
			}
			seen[id] = true
			kind := uint8(0)
			if r.IntN(5) == 0 && opts["merge-engine"] != "first-row" {
				kind = 3
			}
			out, kinds = append(out, row), append(kinds, kind)
		}
		return out, kinds
	}
	for range 5 {
		k, p := key()
		ask := []types.Datum{k + 1000}
		if partitioned {
			ask = append(ask, p)
		}
		asked[fmt.Sprint(ask)] = ask
	}
	f := &fleet{t: t, io: io, sch: s, stores: []*FileStore{c.s, other}}
	var old []snapshot.Ref
	for step := range 14 {
		w := f.stores[r.IntN(2)]
		switch r.IntN(6) {
		case 0:
			_, err := w.Compact(ctx, CompactOptions{Full: r.IntN(2) == 0})
			if refused(t, what, err) {
				return
			}
		default:
			data, kinds := rows(1 + r.IntN(40))
			if refused(t, what, f.tryWrite(w, data, kinds)) {
				return
			}
		}
		at, err := c.s.Resolve(ctx, snapshot.Ref{})
		if err != nil {
			t.Fatal(err)
		}
		if at.Snap == nil {
			continue
		}
		old = append(old, at)
		when := fmt.Sprintf("%s, step %d", what, step)
		sc := Scan{At: at, SkipLevel0: r.IntN(3) == 0}
		checkLookups(t, r, c.s, when, asked, sc)
		sc.At = old[r.IntN(len(old))]
		checkLookups(t, r, c.s, when+", an older state", asked, sc)
		sc.At = at
		over := commit.Changes{Kind: commit.Append}
		for range 2 {
			data, kinds := rows(1 + r.IntN(20))
			ch, err := f.prepare(c.s, WriteOptions{At: at, Overlay: &over}, data, kinds)
			if refused(t, what, err) {
				return
			}
			over, _ = commit.Merge(over, ch)
			o := over
			sc.Overlay = &o
			checkLookups(t, r, c.s, when+", own writes", asked, sc)
		}
		if err := c.s.Discard(ctx, over); err != nil {
			t.Fatal(err)
		}
	}
}

// refused reports whether something is not supported yet.
func refused(t *testing.T, what string, err error) bool {
	t.Helper()
	var un *fileio.UnsupportedError
	if errors.As(err, &un) {
		t.Logf("%s: %v", what, err)
		return true
	}
	if err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	return false
}
