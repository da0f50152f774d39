package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// fleet is one table as several processes see it.
type fleet struct {
	t         testing.TB
	io        fileio.FileIO
	sch       *schema.Table
	stores    []*FileStore
	conflicts int
}

func newFleet(t testing.TB, io fileio.FileIO, s *schema.Table, n int) *fleet {
	w := newWork(t, io, s)
	f := &fleet{t: t, io: io, sch: s}
	for range n {
		f.stores = append(f.stores, w.open())
	}
	return f
}

func (f *fleet) batch(rows [][]types.Datum) *vec.Batch {
	return (&written{t: f.t, sch: f.sch}).batch(rows)
}

// prepare writes rows by one writer of a process on top of a state.
func (f *fleet) prepare(s *FileStore, o WriteOptions, rows [][]types.Datum, kinds []uint8) (commit.Changes, error) {
	ctx := context.Background()
	wr, err := s.Write(ctx, o)
	if err != nil {
		return commit.Changes{}, err
	}
	if err := wr.Write(ctx, f.batch(rows), kinds); err != nil {
		return commit.Changes{}, errors.Join(err, wr.Abort(ctx))
	}
	c, err := wr.Prepare(ctx)
	if err != nil {
		err = errors.Join(err, wr.Abort(ctx))
	}
	return c, err
}

// publish folds and commits changes as the server does.
func (f *fleet) publish(s *FileStore, c commit.Changes) error {
	ctx := context.Background()
	at, err := s.Resolve(ctx, snapshot.Ref{})
	if err != nil {
		return err
	}
	out, _, err := s.Fold(ctx, c, at, nil)
	if err != nil {
		return err
	}
	if at.Snap != nil {
		out.Base = at.Snap.ID
	}
	_, err = s.Commit(ctx, out)
	return err
}

// write writes rows by a process, again when it conflicts.
func (f *fleet) write(s *FileStore, rows [][]types.Datum, kinds []uint8) {
	f.t.Helper()
	if err := f.tryWrite(s, rows, kinds); err != nil {
		f.t.Fatal(err)
	}
}

func (f *fleet) tryWrite(s *FileStore, rows [][]types.Datum, kinds []uint8) error {
	ctx := context.Background()
	for {
		c, err := f.prepare(s, WriteOptions{}, rows, kinds)
		if err == nil {
			err = f.publish(s, c)
		}
		var conflict *commit.ConflictError
		if err == nil || !errors.As(err, &conflict) {
			return err
		}
		f.conflicts++
		if err := s.Discard(ctx, c); err != nil {
			return err
		}
	}
}

// indexed reads the hash indexes of the newest state and makes sure that each key
// of each file is in the index of its bucket, and no hash in two.
func (f *fleet) indexed(limit int64) {
	f.t.Helper()
	ctx := context.Background()
	s := (&workbench{t: f.t, io: f.io}).open()
	st, err := s.state(ctx, snapshot.Ref{}, nil)
	if err != nil || st.snap == nil {
		f.t.Fatal(err)
	}
	buckets := map[string]map[int32]int32{} // by partition: hash -> bucket
	if st.snap.IndexManifest != "" {
		es, err := s.env.Manifests.Index(ctx, s.env.IO, s.dir+"/manifest/"+st.snap.IndexManifest)
		if err != nil {
			f.t.Fatal(err)
		}
		for i := range es {
			if es[i].Type != hashIndexType {
				continue // of deletion vectors
			}
			hashes, err := (commitFiles{s, st.branch}).readHashes(ctx, st.schema, &es[i])
			if err != nil {
				f.t.Fatal(err)
			}
			p := buckets[string(es[i].Partition)]
			if p == nil {
				p = map[int32]int32{}
				buckets[string(es[i].Partition)] = p
			}
			if int64(len(hashes)) > limit {
				f.t.Errorf("bucket %d has %d keys, more than %d", es[i].Bucket, len(hashes), limit)
			}
			for _, h := range hashes {
				if b, ok := p[h]; ok {
					f.t.Errorf("hash %d is in buckets %d and %d", h, b, es[i].Bucket)
				}
				p[h] = es[i].Bucket
			}
		}
	}
	cols, ts, err := keyTypes(st.schema)
	if err != nil {
		f.t.Fatal(err)
	}
	parts, _ := columnsOf(st.schema, st.schema.PartitionKeys)
	var pts []types.Type
	for _, c := range parts {
		pts = append(pts, st.schema.Fields[c].Type)
	}
	scan := Scan{Columns: append(append([]int{PseudoBucket}, cols...), parts...), Limit: -1, KeepDeletes: true}
	plan, err := s.Plan(ctx, scan)
	if err != nil {
		f.t.Fatal(err)
	}
	for _, sp := range plan.Splits {
		rd, err := s.Read(ctx, scan, sp, ReadOptions{})
		if err != nil {
			f.t.Fatal(err)
		}
		for {
			b, err := rd.Next(ctx)
			if err != nil {
				f.t.Fatal(err)
			}
			if b == nil {
				break
			}
			b = vec.Compact(b)
			keys := binrow.NewArrowEncoder(ts, b.Cols[1:1+len(cols)])
			images := binrow.NewArrowEncoder(pts, b.Cols[1+len(cols):])
			for i := range b.N {
				img, err := keys.Row(i)
				if err != nil {
					f.t.Fatal(err)
				}
				h := binrow.Hash(img)
				part := string(noPartition)
				if len(pts) > 0 {
					img, err := images.Row(i)
					if err != nil {
						f.t.Fatal(err)
					}
					part = string(img)
				}
				if is, ok := buckets[part][h]; !ok || is != sp.Bucket {
					f.t.Fatalf("a key of bucket %d has hash %d, which is in %d, %v", sp.Bucket, h, is, ok)
				}
			}
		}
		if err := rd.Close(); err != nil {
			f.t.Fatal(err)
		}
	}
}

// rows reads the newest state by a process that has just started.
func (f *fleet) rows() []string {
	f.t.Helper()
	return (&written{t: f.t, store: (&workbench{t: f.t, io: f.io}).open()}).scan(nil)
}

func dynamicTable(t testing.TB, target int, more ...string) *schema.Table {
	o := map[string]string{"bucket": "-1", "dynamic-bucket.target-row-num": fmt.Sprint(target)}
	for i := 0; i < len(more); i += 2 {
		o[more[i]] = more[i+1]
	}
	return partitioned(tableSchema(t, o, []string{"p", "k"}, "p INT", "k BIGINT", "v STRING"), "p")
}

// rowModel is a table as a map.
type rowModel map[string]string

func (m rowModel) put(f *fleet, row []types.Datum, kind uint8) {
	b := f.batch([][]types.Datum{row})
	key := rowText(b.Cols[:2], 0)
	if kind&1 != 0 {
		delete(m, key)
	} else {
		m[key] = rowText(b.Cols, 0)
	}
}

func (m rowModel) rows() []string {
	var out []string
	for _, v := range m {
		out = append(out, v)
	}
	return out
}

// TestDynamicModel writes random rows by three processes, with transactions of
// several statements, two transactions at once, overwritten partitions and
// rollbacks, and compares with a map.
func TestDynamicModel(t *testing.T) {
	for run := range 8 {
		seed := random.Seed(t)
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			target := 5 + r.IntN(40)
			more := []string{}
			if r.IntN(3) == 0 {
				more = append(more, "dynamic-bucket.initial-buckets", "3")
			}
			f := newFleet(t, fileio.NewMem(), dynamicTable(t, target, more...), 3)
			model := rowModel{}
			random := func(n int) (rows [][]types.Datum, kinds []uint8) {
				for range n {
					rows = append(rows, []types.Datum{int64(r.IntN(3)), int64(r.IntN(400)), fmt.Sprint(r.IntN(1e6))})
					kinds = append(kinds, []uint8{0, 0, 0, 2, 3}[r.IntN(5)])
				}
				return rows, kinds
			}
			apply := func(m rowModel, rows [][]types.Datum, kinds []uint8) {
				for i := range rows {
					m.put(f, rows[i], kinds[i])
				}
			}
			ctx := context.Background()
			for range 14 {
				s := f.stores[r.IntN(len(f.stores))]
				switch r.IntN(6) {
				case 0, 1:
					rows, kinds := random(1 + r.IntN(120))
					f.write(s, rows, kinds)
					apply(model, rows, kinds)
				case 2: // a transaction of several statements, beside one of another process
					var over commit.Changes
					var all [][]types.Datum
					var allKinds []uint8
					for range 2 + r.IntN(3) {
						rows, kinds := random(1 + r.IntN(40))
						c, err := f.prepare(s, WriteOptions{Overlay: &over}, rows, kinds)
						if err != nil {
							t.Fatal(err)
						}
						over, _ = commit.Merge(over, c)
						all, allKinds = append(all, rows...), append(allKinds, kinds...)
					}
					rows, kinds := random(1 + r.IntN(30))
					f.write(f.stores[r.IntN(len(f.stores))], rows, kinds)
					apply(model, rows, kinds)
					err := f.publish(s, over)
					var conflict *commit.ConflictError
					switch {
					case errors.As(err, &conflict):
						f.conflicts++
						if err := s.Discard(ctx, over); err != nil {
							t.Fatal(err)
						}
						f.write(s, all, allKinds)
					case err != nil:
						t.Fatal(err)
					}
					apply(model, all, allKinds)
				case 3: // INSERT OVERWRITE of the partitions written
					rows, _ := random(1 + r.IntN(60))
					c, err := f.prepare(s, WriteOptions{Overwrite: true}, rows, nil)
					if err != nil {
						t.Fatal(err)
					}
					c.Overwrite, c.Kind = &commit.Replacement{Dynamic: true}, commit.Overwrite
					if r.IntN(2) == 0 { // and more rows in the same transaction
						c.Overwrite = &commit.Replacement{Partitions: partitionsOf(c)}
						rows2, kinds2 := random(30)
						d, err := f.prepare(s, WriteOptions{Overlay: &c}, rows2, kinds2)
						if err != nil {
							t.Fatal(err)
						}
						c, _ = commit.Merge(c, d)
						if err := f.publish(s, c); err != nil {
							var conflict *commit.ConflictError
							if !errors.As(err, &conflict) {
								t.Fatal(err)
							}
							f.conflicts++
							continue
						}
						model.drop(f, rows)
						apply(model, rows, make([]uint8, len(rows)))
						apply(model, rows2, kinds2)
						break
					}
					if err := f.publish(s, c); err != nil {
						t.Fatal(err)
					}
					model.drop(f, rows)
					apply(model, rows, make([]uint8, len(rows)))
				case 4: // a statement that is given up
					rows, kinds := random(50)
					c, err := f.prepare(s, WriteOptions{}, rows, kinds)
					if err != nil {
						t.Fatal(err)
					}
					if err := s.Discard(ctx, c); err != nil {
						t.Fatal(err)
					}
				case 5: // back to the state before a commit
					latest, err := s.Resolve(ctx, snapshot.Ref{})
					if err != nil {
						t.Fatal(err)
					}
					if latest.Snap == nil {
						continue
					}
					rows, kinds := random(60)
					f.write(s, rows, kinds)
					if err := f.stores[r.IntN(len(f.stores))].RollbackTo(ctx, "", latest); err != nil {
						t.Fatal(err)
					}
				}
				if s, err := f.stores[0].Resolve(ctx, snapshot.Ref{}); err != nil || s.Snap == nil {
					continue
				}
				wantRows(t, f.rows(), model.rows())
				f.indexed(int64(3 * target)) // two at once may fill a bucket beyond its size
			}
			t.Logf("%d conflicts", f.conflicts)
		})
	}
}

func partitionsOf(c commit.Changes) (out [][]byte) {
	seen := map[string]bool{}
	for _, e := range c.Files {
		if !seen[string(e.Partition)] {
			seen[string(e.Partition)] = true
			out = append(out, e.Partition)
		}
	}
	return out
}

// drop removes the partitions of rows.
func (m rowModel) drop(f *fleet, rows [][]types.Datum) {
	for _, row := range rows {
		p := rowText(f.batch([][]types.Datum{row}).Cols[:1], 0) + "|"
		for k := range m {
			if len(k) > len(p) && k[:len(p)] == p {
				delete(m, k)
			}
		}
	}
}

// TestDynamicTwoWriters: two writers of one process that insert the same new keys
// at once agree; of two processes the later one conflicts, and agrees when it
// writes again.
func TestDynamicTwoWriters(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), dynamicTable(t, 2), 2)
	rows := func(from, to int) (out [][]types.Datum) {
		for k := from; k < to; k++ {
			out = append(out, []types.Datum{int64(0), int64(k), "x"})
		}
		return out
	}
	one, err := f.prepare(f.stores[0], WriteOptions{}, rows(0, 7), nil)
	if err != nil {
		t.Fatal(err)
	}
	two, err := f.prepare(f.stores[0], WriteOptions{}, slices.Concat(rows(3, 11)), nil)
	if err != nil {
		t.Fatal(err)
	}
	backwards := rows(0, 11)
	slices.Reverse(backwards)
	other, err := f.prepare(f.stores[1], WriteOptions{}, backwards, nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range []commit.Changes{two, one} {
		if err := f.publish(f.stores[0], c); err != nil {
			t.Fatal(err)
		}
	}
	f.indexed(2)
	err = f.publish(f.stores[1], other)
	wantConflict(t, err, "belongs to bucket")
	f.write(f.stores[1], backwards, nil)
	f.indexed(2)
	if n := len(f.rows()); n != 11 {
		t.Errorf("%d rows, want 11", n)
	}
}

// TestDynamicRace lets processes write at once; nothing is lost, and no key is in
// two buckets.
func TestDynamicRace(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), dynamicTable(t, 10), 3)
	var g sync.WaitGroup
	errs := make(chan error, 6)
	for w := range 6 {
		g.Go(func() {
			mine := *f
			for i := range 8 {
				rows := [][]types.Datum{}
				for k := range 20 {
					rows = append(rows, []types.Datum{int64(k % 2), int64((i*20 + k*7) % 90), fmt.Sprint(w, i)})
				}
				if err := mine.tryWrite(f.stores[w%3], rows, nil); err != nil {
					errs <- err
					return
				}
			}
		})
	}
	g.Wait()
	close(errs)
	for err := range errs {
		t.Fatal(err)
	}
	seen := map[string]bool{}
	for i := range 8 {
		for k := range 20 {
			seen[fmt.Sprint(k%2, (i*20+k*7)%90)] = true
		}
	}
	if n := len(f.rows()); n != len(seen) {
		t.Errorf("%d rows, want %d", n, len(seen))
	}
	f.indexed(30)
	noOrphans(t, f.io)
}

// TestDynamicCap: with all buckets full, new keys still find one.
func TestDynamicCap(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), dynamicTable(t, 3, "dynamic-bucket.max-buckets", "2"), 1)
	var rows [][]types.Datum
	for k := range 60 {
		rows = append(rows, []types.Datum{int64(1), int64(k), "x"})
	}
	f.write(f.stores[0], rows, nil)
	f.indexed(60)
	if n := len(f.rows()); n != 60 {
		t.Errorf("%d rows", n)
	}
}

// TestDynamicCrash stops the machine at every call of a commit with new keys.
func TestDynamicCrash(t *testing.T) {
	for _, after := range []bool{false, true} {
		crashes := 0
		for n := 1; ; n++ {
			name := fmt.Sprintf("call %d, after %v", n, after)
			disk := fileio.NewCrash()
			f := newFleet(t, disk, dynamicTable(t, 2), 1)
			f.write(f.stores[0], [][]types.Datum{{int64(0), int64(1), "a"}, {int64(0), int64(2), "b"}, {int64(1), int64(2), "b"}}, nil)
			c, err := f.prepare(f.stores[0], WriteOptions{}, [][]types.Datum{{int64(0), int64(1), "c"}, {int64(0), int64(3), "d"}, {int64(2), int64(1), "e"}}, nil)
			if err != nil {
				t.Fatal(err)
			}
			disk.At(n, after)
			_, err = f.stores[0].Commit(context.Background(), c)
			if !disk.Crashed() {
				if err != nil {
					t.Fatalf("%s: %v", name, err)
				}
				break
			}
			crashes++
			f.io = disk.Reopen(nil)
			filesExist(t, f.io, name)
			f.indexed(2)
			if got := len(f.rows()); got != 3 && got != 5 || err == nil && got != 5 {
				t.Fatalf("%s: %d rows after %v", name, got, err)
			}
			s := (&workbench{t: t, io: f.io}).open()
			f.write(s, [][]types.Datum{{int64(0), int64(3), "f"}, {int64(0), int64(4), "g"}}, nil)
			f.indexed(2)
			filesExist(t, f.io, name)
		}
		if crashes < 12 {
			t.Errorf("a commit makes only %d calls", crashes)
		}
	}
}

// TestDynamicMemory: the hashes of rows that are written are charged to the writer's
// account, its buffers give way to them, and where they do not fit, the statement
// fails and gives everything back. Places of cross-partition keys go to the disk.
func TestDynamicMemory(t *testing.T) {
	ctx := context.Background()
	const keys, step = 120_000, 8000
	for _, c := range []struct {
		name  string
		sch   *schema.Table
		o     WriteOptions
		limit int64
		fails bool
	}{
		{"dynamic", dynamicTable(t, 1e6), WriteOptions{}, 8 << 20, false},
		{"dynamic, too many", dynamicTable(t, 1e6), WriteOptions{}, 1 << 20, true},
		{"overwrite", dynamicTable(t, 1e6), WriteOptions{Overwrite: true}, 8 << 20, false},
		{"overwrite, too many", dynamicTable(t, 1e6), WriteOptions{Overwrite: true}, 2 << 20, true},
		{"cross", crossTable(t, "dynamic-bucket.target-row-num", "1000000"), WriteOptions{}, 1 << 20, false},
	} {
		t.Run(c.name, func(t *testing.T) {
			root := mem.NewRoot("max_memory", c.limit)
			f := newFleet(t, fileio.NewMem(), c.sch, 1)
			c.o.Account = root
			wr, err := f.stores[0].Write(ctx, c.o)
			if err != nil {
				t.Fatal(err)
			}
			for from := 0; err == nil && from < keys; from += step {
				rows := make([][]types.Datum, 0, step)
				for k := from; k < from+step; k++ {
					row := []types.Datum{int64(k / 50_000), int64(k), "x"}
					if len(c.sch.Fields) == 4 {
						row = crossRow(k/50_000, k, k, "x")
					}
					rows = append(rows, row)
				}
				err = wr.Write(ctx, f.batch(rows), nil)
			}
			if c.fails {
				var limit *mem.LimitError
				if !errors.As(err, &limit) || limit.Setting != "max_memory" {
					t.Fatalf("%d of %d bytes: %v", root.Peak(), c.limit, err)
				}
				if err := wr.Abort(ctx); err != nil {
					t.Fatal(err)
				}
			} else {
				if err != nil {
					t.Fatal(err)
				}
				ch, err := wr.Prepare(ctx)
				if err != nil {
					t.Fatal(err)
				}
				mustCommit(t, f.stores[0], ch)
				if n := len(f.rows()); n != keys {
					t.Errorf("%d rows", n)
				}
			}
			if root.Used() != 0 || root.Peak() < 6*keys/4 {
				t.Errorf("%d bytes are charged, at most %d were", root.Used(), root.Peak())
			}
		})
	}
	// An index that is too big to be kept is its writer's.
	io := fileio.NewMem()
	f := newFleet(t, io, dynamicTable(t, 1e6), 1)
	var rows [][]types.Datum
	for k := range 20_000 {
		rows = append(rows, []types.Datum{int64(0), int64(k), "x"})
	}
	f.write(f.stores[0], rows, nil)
	env := NewEnv(io, EnvOptions{HashBytes: 64 << 10})
	defer env.Close()
	for limit, fits := range map[int64]bool{128 << 10: false, 4 << 20: true} {
		root := mem.NewRoot("max_memory", limit)
		wr, err := Open(env, workDir).Write(ctx, WriteOptions{Account: root})
		if err != nil {
			t.Fatal(err)
		}
		err = wr.Write(ctx, f.batch(rows[:10]), nil)
		if fits != (err == nil) || !fits && !errors.Is(err, mem.ErrLimit) {
			t.Errorf("limit %d: %v", limit, err)
		}
		if fits && root.Used() < hashBytes*20_000 {
			t.Errorf("%d bytes are charged", root.Used())
		}
		if err := wr.Abort(ctx); err != nil || root.Used() != 0 {
			t.Errorf("%d bytes are still charged, %v", root.Used(), err)
		}
	}
}

// TestJavaDynamic: Java and we write in turns; both know each other's buckets.
func TestJavaDynamic(t *testing.T) {
	for run, more := range [][]string{{}, {"dynamic-bucket.max-buckets", "3"}, {"index-file-in-data-file-dir", "true"}} {
		t.Run(fmt.Sprint(run), func(t *testing.T) {
			seed := random.Seed(t)
			r := rand.New(rand.NewPCG(seed, 3))
			s := dynamicTable(t, 8, append(more, "write-only", "true")...)
			j := newJavaTable(t, s)
			for range 4 {
				rows, kinds := [][]types.Datum{}, []uint8{}
				for range 25 {
					rows = append(rows, []types.Datum{int64(r.IntN(2)), int64(r.IntN(70)), fmt.Sprint(r.IntN(1000))})
					kinds = append(kinds, []uint8{0, 2, 3}[r.IntN(3)])
				}
				j.write(rows, kinds)
				j.agree()
				theirs := []map[string]any{}
				for range 25 {
					theirs = append(theirs, map[string]any{"_rowkind": []string{"+I", "-D"}[r.IntN(2)], "p": r.IntN(2), "k": r.IntN(70), "v": fmt.Sprint(r.IntN(1000))})
				}
				j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": theirs})
				j.agree()
			}
			j.java.Do(t, map[string]any{"cmd": "compact", "table": j.name, "mode": "full", "options": map[string]string{"write-only": "false"}})
			j.agree()
		})
	}
}

// TestJavaDynamicShare: buckets that we filled by the rules for several assigners
// are ones that Java goes on with.
func TestJavaDynamicShare(t *testing.T) {
	j := newJavaTable(t, dynamicTable(t, 5, "dynamic-bucket.initial-buckets", "4", "write-only", "true"))
	var rows [][]types.Datum
	for k := range 30 {
		rows = append(rows, []types.Datum{int64(k % 2), int64(k), "x"})
	}
	j.write(rows, nil)
	j.agree()
	j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": []map[string]any{{"p": 0, "k": 2, "v": "java"}, {"p": 0, "k": 100, "v": "java"}}})
	j.agree()
}

// TestDynamicGet finds keys in whatever bucket they are.
func TestDynamicGet(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), dynamicTable(t, 2), 1)
	var rows [][]types.Datum
	for k := range 9 {
		rows = append(rows, []types.Datum{int64(1), int64(k), "x"})
	}
	f.write(f.stores[0], rows[:8], nil)
	_, which, err := f.stores[0].Get(context.Background(), Lookup{Keys: f.batch(rows).Cols[:2], Columns: []int{2}})
	if err != nil || len(which) != 8 {
		t.Errorf("%d rows, %v", len(which), err)
	}
}
