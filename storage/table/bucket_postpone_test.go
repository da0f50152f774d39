package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

func postponeTable(t testing.TB, more ...string) *schema.Table {
	o := map[string]string{"bucket": "-2"}
	for i := 0; i < len(more); i += 2 {
		o[more[i]] = more[i+1]
	}
	return partitioned(tableSchema(t, o, []string{"p", "k"}, "p INT", "k BIGINT", "v STRING"), "p")
}

// randomRows are rows of a table with the columns p, k and v.
func randomRows(r *rand.Rand, n, parts, keys int) (rows [][]types.Datum, kinds []uint8) {
	for range n {
		rows = append(rows, []types.Datum{int64(r.IntN(parts)), int64(r.IntN(keys)), fmt.Sprint(r.IntN(1e6))})
		kinds = append(kinds, []uint8{0, 0, 0, 2, 3}[r.IntN(5)])
	}
	return rows, kinds
}

// bucketsOf returns the numbers of buckets that the live files of each partition
// say, and the buckets that they are in.
func (f *fleet) bucketsOf() map[string]string {
	f.t.Helper()
	ctx := context.Background()
	s := (&workbench{t: f.t, io: f.io}).open()
	b := s.branch("")
	latest, err := b.snapshots.Latest(ctx)
	if err != nil {
		f.t.Fatal(err)
	}
	live, err := b.publisher.Live(ctx, latest)
	if err != nil {
		f.t.Fatal(err)
	}
	p, _ := s.newPlaces(f.sch)
	seen := map[string]map[string]bool{}
	for _, e := range live {
		dir, err := p.dir(e.Partition, 0)
		if err != nil {
			f.t.Fatal(err)
		}
		part := strings.Split(strings.TrimPrefix(dir, workDir+"/"), "/")[0]
		if seen[part] == nil {
			seen[part] = map[string]bool{}
		}
		seen[part][fmt.Sprintf("%d/%d", e.Bucket, e.TotalBuckets)] = true
	}
	out := map[string]string{}
	for part, m := range seen {
		var l []string
		for k := range m {
			l = append(l, k)
		}
		slices.Sort(l)
		out[part] = strings.Join(l, " ")
	}
	return out
}

// TestPostponeDirect: rows go to a number of buckets that each partition has, and
// keeps when the option changes.
func TestPostponeDirect(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), postponeTable(t, "postpone.default-bucket-num", "2"), 1)
	s := f.stores[0]
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 2))
	model := rowModel{}
	write := func(o WriteOptions, parts int) {
		rows, kinds := randomRows(r, 60, parts, 50)
		c, err := f.prepare(s, o, rows, kinds)
		if err != nil {
			t.Fatal(err)
		}
		if err := f.publish(s, c); err != nil {
			t.Fatal(err)
		}
		for i := range rows {
			model.put(f, rows[i], kinds[i])
		}
	}
	write(WriteOptions{}, 1)
	write(WriteOptions{Options: map[string]string{"postpone.default-bucket-num": "3"}}, 2)
	wantRows(t, f.rows(), model.rows())
	if got := f.bucketsOf(); got["p=0"] != "0/2 1/2" || got["p=1"] != "0/3 1/3 2/3" {
		t.Errorf("%v", got)
	}
}

// TestPostpone: what was postponed is not there until it is compacted, and then is
// as if it had been written then, in the order in which it came.
func TestPostpone(t *testing.T) {
	for run := range 6 {
		seed := random.Seed(t)
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			f := newFleet(t, fileio.NewMem(), postponeTable(t, "postpone.batch-write-fixed-bucket", "false", "postpone.target-row-num-per-bucket", "40"), 2)
			ctx := context.Background()
			shown, waiting := rowModel{}, [][]types.Datum{}
			var waitingKinds []uint8
			direct := map[string]string{"postpone.batch-write-fixed-bucket": "true"}
			for range 10 {
				s := f.stores[r.IntN(2)]
				rows, kinds := randomRows(r, 1+r.IntN(60), 2, 80)
				switch r.IntN(5) {
				case 0, 1, 2:
					// One process only: between several there is no order.
					f.write(f.stores[0], rows, kinds)
					waiting, waitingKinds = append(waiting, rows...), append(waitingKinds, kinds...)
				case 3:
					c, err := f.prepare(s, WriteOptions{Options: direct}, rows, kinds)
					if err != nil {
						t.Fatal(err)
					}
					if err := f.publish(s, c); err != nil {
						t.Fatal(err)
					}
					for i := range rows {
						shown.put(f, rows[i], kinds[i])
					}
				case 4:
					if _, err := s.Compact(ctx, CompactOptions{Full: true}); err != nil {
						t.Fatal(err)
					}
					for i := range waiting {
						shown.put(f, waiting[i], waitingKinds[i])
					}
					waiting, waitingKinds = nil, nil
				}
				wantRows(t, f.rows(), shown.rows())
			}
			if _, err := f.stores[1].Compact(ctx, CompactOptions{Full: true}); err != nil {
				t.Fatal(err)
			}
			for i := range waiting {
				shown.put(f, waiting[i], waitingKinds[i])
			}
			wantRows(t, f.rows(), shown.rows())
			for p, b := range f.bucketsOf() {
				if strings.Contains(b, "-2") {
					t.Errorf("partition %s still has %s", p, b)
				}
			}
		})
	}
}

// TestPostponeConflicts: a row that a compaction makes visible is one that a
// transaction which looked for it had not seen.
func TestPostponeConflicts(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), postponeTable(t, "postpone.batch-write-fixed-bucket", "false"), 1)
	s, ctx := f.stores[0], context.Background()
	f.write(s, [][]types.Datum{{int64(0), int64(1), "a"}}, nil)
	b := f.batch([][]types.Datum{{int64(0), int64(1), nil}})
	at := (&written{}).ref()
	loc, err := s.Locate(ctx, at, b.Cols[:2], 1)
	if err != nil {
		t.Fatal(err)
	}
	reads := &commit.ReadSet{Keys: map[commit.BucketID][][]byte{loc.Buckets[0]: loc.Keys}}
	if _, err := s.Compact(ctx, CompactOptions{Full: true}); err != nil {
		t.Fatal(err)
	}
	_, err = s.CheckReads(ctx, "", 1, reads)
	wantConflict(t, err, "was changed")
	_, err = s.CheckReads(ctx, "", 1, &commit.ReadSet{All: true})
	wantConflict(t, err, "was changed")
}

// TestPostponeTruncate: rows that wait go with the others.
func TestPostponeTruncate(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), postponeTable(t, "postpone.batch-write-fixed-bucket", "false"), 1)
	s, ctx := f.stores[0], context.Background()
	f.write(s, [][]types.Datum{{int64(0), int64(1), "a"}}, nil)
	if _, err := s.Commit(ctx, commit.Changes{Kind: commit.Overwrite, Overwrite: &commit.Replacement{}}); err != nil {
		t.Fatal(err)
	}
	if got := f.bucketsOf(); len(got) != 0 {
		t.Errorf("%v", got)
	}
}

// TestPostponeCrash stops the machine at every call while rows are put into
// buckets: they are there once, before and after.
func TestPostponeCrash(t *testing.T) {
	crashes := 0
	for n := 1; ; n++ {
		disk := fileio.NewCrash()
		f := newFleet(t, disk, postponeTable(t, "postpone.batch-write-fixed-bucket", "false"), 1)
		f.write(f.stores[0], [][]types.Datum{{int64(0), int64(1), "a"}, {int64(0), int64(2), "b"}}, nil)
		disk.At(n, n%2 == 0)
		_, err := f.stores[0].Compact(context.Background(), CompactOptions{Full: true})
		if !disk.Crashed() {
			if err != nil {
				t.Fatal(err)
			}
			break
		}
		crashes++
		f.io = disk.Reopen(nil)
		filesExist(t, f.io, fmt.Sprint(n))
		s := (&workbench{t: t, io: f.io}).open()
		if _, err := s.Compact(context.Background(), CompactOptions{Full: true}); err != nil {
			t.Fatalf("call %d: %v", n, err)
		}
		if got := f.rows(); len(got) != 2 {
			t.Fatalf("call %d: %v", n, got)
		}
	}
	if crashes < 20 {
		t.Errorf("%d calls", crashes)
	}
}

// TestJavaPostpone: Java reads what we put into buckets and what we compacted
// into them, and names by name what we do not read.
func TestJavaPostpone(t *testing.T) {
	j := newJavaTable(t, postponeTable(t, "postpone.default-bucket-num", "2", "write-only", "true"))
	r := rand.New(rand.NewPCG(random.Seed(t), 2))
	for range 3 {
		j.write(randomRows(r, 40, 2, 30))
		j.agree()
	}
	ctx := context.Background()
	wr, err := j.store.Write(ctx, WriteOptions{Options: map[string]string{"postpone.batch-write-fixed-bucket": "false"}})
	if err != nil {
		t.Fatal(err)
	}
	rows, kinds := randomRows(r, 40, 3, 30)
	if err := wr.Write(ctx, j.batch(rows), kinds); err != nil {
		t.Fatal(err)
	}
	before := j.scan(nil)
	j.done(wr)
	j.agree()
	wantRows(t, j.scan(nil), before)
	if _, err := j.store.Compact(ctx, CompactOptions{Full: true}); err != nil {
		t.Fatal(err)
	}
	j.agree()
	j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": []map[string]any{{"p": 0, "k": 2, "v": "java"}}})
	var un *fileio.UnsupportedError
	if _, err := j.store.Compact(ctx, CompactOptions{Full: true}); !errors.As(err, &un) || !strings.Contains(un.Feature, "AVRO") {
		t.Errorf("%v", err)
	}
}
