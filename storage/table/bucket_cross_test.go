package table

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/cockroachdb/pebble/v2/vfs"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

func crossTable(t testing.TB, more ...string) *schema.Table {
	o := map[string]string{"bucket": "-1", "dynamic-bucket.target-row-num": "15"}
	for i := 0; i < len(more); i += 2 {
		o[more[i]] = more[i+1]
	}
	return partitioned(tableSchema(t, o, []string{"k"}, "p INT", "k BIGINT", "a BIGINT", "b STRING"), "p")
}

// crossModel is a table with cross-partition keys as a map.
type crossModel struct {
	engine string
	rows   map[int64][]types.Datum
}

func (m *crossModel) put(row []types.Datum, kind uint8) {
	k := row[1].(int64)
	old, ok := m.rows[k]
	switch {
	case m.engine == "first-row":
		if !ok {
			m.rows[k] = row
		}
	case kind&1 != 0:
		delete(m.rows, k)
	case !ok || m.engine == "deduplicate":
		m.rows[k] = row
	default: // partial-update
		now := slices.Clone(old)
		for c := 2; c < len(row); c++ {
			if row[c] != nil {
				now[c] = row[c]
			}
		}
		m.rows[k] = now
	}
}

func (m *crossModel) text(f *fleet) []string {
	var out []string
	for _, r := range m.rows {
		out = append(out, rowText(f.batch([][]types.Datum{r}).Cols, 0))
	}
	return out
}

// TestCrossModel writes random rows whose keys change their partitions by three
// processes, in transactions, with rollbacks, dropped partitions and whole
// overwrites, and compares with a map.
func TestCrossModel(t *testing.T) {
	for run := range 9 {
		seed := random.Seed(t)
		engine := []string{"deduplicate", "partial-update", "first-row"}[run%3]
		removes := fmt.Sprint(engine == "partial-update") // a -D ends the row
		t.Run(fmt.Sprint(engine, run), func(t *testing.T) {
			r := rand.New(rand.NewPCG(seed, 2))
			f := newFleet(t, fileio.NewMem(), crossTable(t, "merge-engine", engine, "partial-update.remove-record-on-delete", removes), 3)
			m := &crossModel{engine, map[int64][]types.Datum{}}
			random := func(n int) (rows [][]types.Datum, kinds []uint8) {
				for range n {
					row := []types.Datum{int64(r.IntN(3)), int64(r.IntN(120)), int64(r.IntN(1e6)), fmt.Sprint(r.IntN(1e6))}
					if r.IntN(4) == 0 {
						row[2+r.IntN(2)] = nil
					}
					kind := []uint8{0, 0, 0, 2, 3}[r.IntN(5)]
					if engine == "first-row" || engine == "partial-update" && kind != 3 {
						kind = 0
					}
					if engine == "partial-update" && kind == 3 { // as SQL removes: values would stay for the next row
						row[2], row[3] = nil, nil
					}
					rows, kinds = append(rows, row), append(kinds, kind)
				}
				return rows, kinds
			}
			apply := func(rows [][]types.Datum, kinds []uint8) {
				for i := range rows {
					m.put(rows[i], kinds[i])
				}
			}
			ctx := context.Background()
			for range 14 {
				s := f.stores[r.IntN(len(f.stores))]
				switch r.IntN(6) {
				case 0, 1:
					rows, kinds := random(1 + r.IntN(60))
					f.write(s, rows, kinds)
					apply(rows, kinds)
				case 2, 3: // a transaction of several statements, beside one of another process
					var over commit.Changes
					var all [][]types.Datum
					var allKinds []uint8
					for range 2 + r.IntN(3) {
						rows, kinds := random(1 + r.IntN(25))
						c, err := f.prepare(s, WriteOptions{Overlay: &over}, rows, kinds)
						if err != nil {
							t.Fatal(err)
						}
						over, _ = commit.Merge(over, c)
						all, allKinds = append(all, rows...), append(allKinds, kinds...)
					}
					if r.IntN(2) == 0 {
						rows, kinds := random(1 + r.IntN(6))
						f.write(f.stores[r.IntN(len(f.stores))], rows, kinds)
						apply(rows, kinds)
					}
					if over.Empty() {
						break
					}
					err := f.publish(s, over)
					var conflict *commit.ConflictError
					switch {
					case errors.As(err, &conflict):
						f.conflicts++
						f.write(s, all, allKinds)
					case err != nil:
						t.Fatal(err)
					}
					apply(all, allKinds)
				case 4: // overwrite all or the partitions that rows come to, or drop a partition
					if engine == "deduplicate" && r.IntN(2) == 0 {
						rows, _ := random(20)
						for i := range rows {
							rows[i][0] = int64(r.IntN(2))
						}
						c, err := f.prepare(s, WriteOptions{Overwrite: true}, rows, nil)
						if err != nil {
							t.Fatal(err)
						}
						c.Kind = commit.Overwrite
						if err := f.publish(s, c); err != nil {
							t.Fatal(err)
						}
						come := map[types.Datum]bool{}
						for _, row := range rows {
							come[row[0]] = true
						}
						maps.DeleteFunc(m.rows, func(_ int64, row []types.Datum) bool { return come[row[0]] })
						apply(rows, make([]uint8, len(rows)))
						break
					}
					if r.IntN(2) == 0 {
						rows, _ := random(40)
						c, err := f.prepare(s, WriteOptions{Overwrite: true, OverwriteAll: true}, rows, nil)
						if err != nil {
							t.Fatal(err)
						}
						c.Kind, c.Overwrite = commit.Overwrite, &commit.Replacement{}
						if err := f.publish(s, c); err != nil {
							t.Fatal(err)
						}
						clear(m.rows)
						apply(rows, make([]uint8, len(rows)))
						break
					}
					p := int64(r.IntN(3))
					c := commit.Changes{Kind: commit.Overwrite, Overwrite: &commit.Replacement{Partitions: [][]byte{intImage(t, p)}}}
					if _, err := s.Commit(ctx, c); err != nil {
						t.Fatal(err)
					}
					maps.DeleteFunc(m.rows, func(_ int64, row []types.Datum) bool { return row[0] == p })
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
				wantRows(t, f.rows(), m.text(f))
			}
			t.Logf("%d conflicts", f.conflicts)
		})
	}
}

// TestCrossRace lets processes move the same keys at once: each key ends in one
// partition.
func TestCrossRace(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), crossTable(t), 3)
	var g sync.WaitGroup
	errs := make(chan error, 6)
	for w := range 6 {
		g.Go(func() {
			mine := *f
			for i := range 6 {
				rows := [][]types.Datum{}
				for k := range 8 {
					rows = append(rows, []types.Datum{int64((w + i + k) % 5), int64((i*8 + k*3) % 30), int64(w), "x"})
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
	for _, r := range f.rows() {
		k := strings.Split(r, "|")[1]
		if seen[k] {
			t.Errorf("key %s is in two partitions", k)
		}
		seen[k] = true
	}
	want := map[int]bool{}
	for i := range 6 {
		for k := range 8 {
			want[(i*8+k*3)%30] = true
		}
	}
	if len(seen) != len(want) {
		t.Errorf("%d keys, want %d", len(seen), len(want))
	}
	noOrphansOf(t, f.io, "manifest")
}

// TestCrossOverwrite: an overwrite of some partitions takes keys out of the others,
// unless the merge engine wants their rows there.
func TestCrossOverwrite(t *testing.T) {
	for _, engine := range []string{"deduplicate", "partial-update"} {
		f := newFleet(t, fileio.NewMem(), crossTable(t, "merge-engine", engine), 1)
		s := f.stores[0]
		f.write(s, [][]types.Datum{{int64(0), int64(1), nil, "a"}, {int64(0), int64(4), nil, "a"}, {int64(1), int64(2), nil, "b"}, {int64(1), int64(5), nil, "b"}}, nil)
		c, err := f.prepare(s, WriteOptions{Overwrite: true}, [][]types.Datum{{int64(0), int64(2), nil, "c"}, {int64(0), int64(1), nil, "c"}}, nil)
		if engine != "deduplicate" {
			var un *fileio.UnsupportedError
			if !errors.As(err, &un) || !strings.Contains(un.Feature, "p=1") {
				t.Errorf("%v", err)
			}
			continue
		}
		if err != nil {
			t.Fatal(err)
		}
		c.Kind = commit.Overwrite
		if err := f.publish(s, c); err != nil {
			t.Fatal(err)
		}
		wantRows(t, f.rows(), []string{`0|1|NULL|"c"`, `0|2|NULL|"c"`, `1|5|NULL|"b"`})
		f.write(s, [][]types.Datum{{int64(2), int64(4), nil, "d"}, {int64(2), int64(2), nil, "d"}}, nil)
		wantRows(t, f.rows(), []string{`0|1|NULL|"c"`, `1|5|NULL|"b"`, `2|2|NULL|"d"`, `2|4|NULL|"d"`})
	}
}

// TestCrossSpill: a writer of more keys than it keeps in memory remembers them on
// disk, and the index on disk is gone when the process closes it.
func TestCrossSpill(t *testing.T) {
	ctx := context.Background()
	dir := t.TempDir()
	io := fileio.NewMem()
	w := newWork(t, io, crossTable(t, "dynamic-bucket.target-row-num", "1000000"))
	env := NewEnv(io, EnvOptions{KeyDir: func() (string, error) { return dir, nil }})
	s := Open(env, workDir)
	wr, err := s.Write(ctx, WriteOptions{})
	if err != nil {
		t.Fatal(err)
	}
	f := &fleet{t: t, io: io, sch: w.sch, stores: []*FileStore{s}}
	for round := range 2 { // every key moves from one partition to the other
		for from := 0; from < 3000; from += 500 {
			var rows [][]types.Datum
			for k := from; k < from+500; k++ {
				rows = append(rows, []types.Datum{int64(round), int64(k), int64(k), "x"})
			}
			if err := wr.Write(ctx, f.batch(rows), nil); err != nil {
				t.Fatal(err)
			}
			if err := wr.(*tableWriter).cross.spillOwn(); err != nil {
				t.Fatal(err)
			}
		}
	}
	c, err := wr.Prepare(ctx)
	if err != nil {
		t.Fatal(err)
	}
	mustCommit(t, s, c)
	got := f.rows()
	if len(got) != 3000 || slices.ContainsFunc(got, func(r string) bool { return !strings.HasPrefix(r, "1|") }) {
		t.Errorf("%d rows, the first %s", len(got), got[0])
	}
	f.write(s, [][]types.Datum{{int64(2), int64(7), nil, "y"}}, nil)
	if n := len(f.rows()); n != 3000 {
		t.Errorf("%d rows", n)
	}
	env.Close()
	if es, err := fileio.NewLocal(dir).List(ctx, "."); err != nil || len(es) > 0 {
		t.Errorf("%v is left, %v", es, err)
	}
}

// TestCrossLocate: a key's lock does not depend on its partition, and a change of
// it in any partition is a conflict.
func TestCrossLocate(t *testing.T) {
	f := newFleet(t, fileio.NewMem(), crossTable(t), 1)
	s, ctx := f.stores[0], context.Background()
	f.write(s, [][]types.Datum{{int64(0), int64(1), nil, "a"}, {int64(0), int64(2), nil, "b"}}, nil)
	b := f.batch([][]types.Datum{{nil, int64(1), nil, nil}, {nil, int64(9), nil, nil}})
	loc, err := s.Locate(ctx, snapshot.Ref{}, b.Cols[1:2], 2)
	if err != nil || len(loc.Buckets) != 1 || len(loc.Keys) != 2 || loc.Buckets[0] != (commit.BucketID{Partition: commit.AnyPartition, Bucket: commit.AnyBucket}) {
		t.Fatalf("%+v, %v", loc, err)
	}
	reads := &commit.ReadSet{Keys: map[commit.BucketID][][]byte{loc.Buckets[0]: loc.Keys}}
	f.write(s, [][]types.Datum{{int64(1), int64(2), nil, "b"}}, nil)
	if _, err := s.CheckReads(ctx, "", 1, reads); err != nil {
		t.Fatal(err)
	}
	f.write(s, [][]types.Datum{{int64(2), int64(9), nil, "c"}}, nil)
	_, err = s.CheckReads(ctx, "", 1, reads)
	wantConflict(t, err, "was changed")
}

// TestJavaCross: Java and we write in turns, and keys move between partitions.
func TestJavaCross(t *testing.T) {
	for _, engine := range []string{"deduplicate", "partial-update", "aggregation", "first-row"} {
		t.Run(engine, func(t *testing.T) {
			seed := random.Seed(t)
			r := rand.New(rand.NewPCG(seed, 3))
			more := []string{"merge-engine", engine, "write-only", "true"}
			if engine == "aggregation" {
				more = append(more, "fields.a.aggregate-function", "sum", "fields.b.aggregate-function", "last_value")
			}
			j := newJavaTable(t, crossTable(t, more...))
			for range 2 { // Java's index takes a second to start
				rows, kinds := [][]types.Datum{}, []uint8{}
				for range 20 {
					rows = append(rows, []types.Datum{int64(r.IntN(3)), int64(r.IntN(40)), int64(r.IntN(1000)), fmt.Sprint(r.IntN(1000))})
					kinds = append(kinds, []uint8{0, 2}[r.IntN(2)])
					if engine == "deduplicate" && r.IntN(4) == 0 {
						kinds[len(kinds)-1] = 3
					}
				}
				j.write(rows, kinds)
				j.crossAgree(engine)
				theirs := []map[string]any{}
				for range 20 {
					theirs = append(theirs, map[string]any{"p": r.IntN(3), "k": r.IntN(40), "a": r.IntN(1000), "b": fmt.Sprint(r.IntN(1000))})
				}
				j.java.Do(t, map[string]any{"cmd": "write", "table": j.name, "rows": theirs})
				j.crossAgree(engine)
			}
			j.java.Do(t, map[string]any{"cmd": "compact", "table": j.name, "mode": "full", "options": map[string]string{"write-only": "false"}})
			j.crossAgree(engine)
		})
	}
}

// crossAgree is agree, and every key is there once. Java shows a first-row table
// without its level 0.
func (j *javaTable) crossAgree(engine string) {
	j.t.Helper()
	if engine == "first-row" {
		j.publish()
		j.java.Do(j.t, map[string]any{"cmd": "compact", "table": j.name, "mode": "full", "options": map[string]string{"write-only": "false"}})
	}
	j.agree()
	seen := map[string]bool{}
	for _, r := range j.scan([]int{1}) {
		if seen[r] {
			j.t.Errorf("key %s is there twice", r)
		}
		seen[r] = true
	}
}

func noOrphansOf(t testing.TB, io fileio.FileIO, dirs ...string) {
	t.Helper()
	used := usedFiles(t, io)
	for _, dir := range dirs {
		es, err := io.List(context.Background(), workDir+"/"+dir)
		if err != nil {
			t.Fatal(err)
		}
		for _, e := range es {
			if !used[workDir+"/"+dir+"/"+e.Name] {
				t.Errorf("%s/%s is an orphan", dir, e.Name)
			}
		}
	}
}

// fullDisk is a disk that has room or none.
type fullDisk struct {
	vfs.FS
	full    atomic.Bool
	creates atomic.Int64 // of files, while it is full
}

func (d *fullDisk) Create(name string, why vfs.DiskWriteCategory) (vfs.File, error) {
	if d.full.Load() {
		d.creates.Add(1)
		return nil, &os.PathError{Op: "create", Path: name, Err: syscall.ENOSPC}
	}
	f, err := d.FS.Create(name, why)
	return &fullFile{f, d}, err
}

type fullFile struct {
	vfs.File
	d *fullDisk
}

func (f *fullFile) Write(b []byte) (int, error) {
	if f.d.full.Load() {
		n, _ := f.File.Write(b[:len(b)/2])
		return n, &os.PathError{Op: "write", Path: "a table", Err: syscall.ENOSPC}
	}
	return f.File.Write(b)
}

// TestKeyFilesFull fills the disk below the index's database: writers are told and do
// not wait for room, nothing is tried without end, what was taken is there, and when
// there is room again it goes on.
func TestKeyFilesFull(t *testing.T) {
	disk := &fullDisk{FS: vfs.Default}
	dir := t.TempDir()
	s := &keyStore{dir: func() (string, error) { return dir, nil }, disk: disk}
	sp, err := s.space()
	if err != nil {
		t.Fatal(err)
	}
	defer s.close()
	n := 0
	value := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8), 1, 7}, 256) }
	put := func() error {
		b := sp.db.NewBatch()
		defer b.Close() //nolint:errcheck // it was applied
		for i := range 64 {
			if err := b.Set(sp.key(nil, fmt.Append(nil, n+i)), value(n+i), nil); err != nil {
				t.Fatal(err)
			}
		}
		err := sp.commit(b)
		if err == nil {
			n += 64
		}
		return err
	}
	check := func(when string) {
		t.Helper()
		var buf, val []byte
		for i := 0; i < n; i += 13 {
			var v []byte
			if v, buf, err = sp.get(buf, val, fmt.Append(nil, i)); err != nil || !bytes.Equal(v, value(i)) {
				t.Fatalf("%s: key %d of %d: %d bytes, %v", when, i, n, len(v), err)
			}
			val = v
		}
	}
	for round := range 3 {
		for range 100 {
			if err := put(); err != nil {
				t.Fatal(err)
			}
		}
		disk.creates.Store(0)
		disk.full.Store(true)
		for tries := 0; err == nil; tries++ {
			if err = put(); tries == 10_000 {
				t.Fatal("nobody says that the disk is full")
			}
		}
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
		if err = put(); !errors.Is(err, syscall.ENOSPC) {
			t.Fatalf("still full: %v", err)
		}
		check("full")
		if err = sp.db.Flush(); err != nil { // as much as there may be to flush
			t.Fatal(err)
		}
		check("flushed")
		if c := disk.creates.Load(); c > 1000 {
			t.Errorf("%d files were tried on a full disk", c)
		}
		disk.full.Store(false)
		if err = put(); err != nil {
			t.Fatalf("room again: %v", err)
		}
		if len(s.files.held) != 0 || s.files.bad.Load() != nil {
			t.Errorf("round %d: %d files are still in memory", round, len(s.files.held))
		}
		check("room again")
	}
	if err := sp.db.Compact(context.Background(), []byte{0}, []byte{255}, false); err != nil {
		t.Fatal(err)
	}
	check("compacted")
	disk.full.Store(true)
	s.files.failed(syscall.ENOSPC)
	sp.drop()
	s.relieve()
	if es, err := os.ReadDir(dir); err != nil || len(es) != 0 || s.db != nil {
		t.Errorf("%v is left, %v", es, err)
	}
}

// TestKeyIndexDiskFull writes a table with cross-partition keys on a machine whose
// disk for the index is full: a statement fails or does all it should, and when there
// is room again, everything goes on.
func TestKeyIndexDiskFull(t *testing.T) {
	disk := &fullDisk{FS: vfs.Default}
	dir := t.TempDir()
	io := fileio.NewMem()
	w := newWork(t, io, crossTable(t, "dynamic-bucket.target-row-num", "1000000"))
	env := NewEnv(io, EnvOptions{KeyDir: func() (string, error) { return dir, nil }})
	env.keys.disk = disk
	s := Open(env, workDir)
	defer env.Close()
	f := &fleet{t: t, io: io, sch: w.sch, stores: []*FileStore{s}}
	parts := map[int]int{}
	write := func(part, from, to int) error {
		var rows [][]types.Datum
		for k := from; k < to; k++ {
			rows = append(rows, crossRow(part, k, k, "x"))
		}
		err := f.statement(s, WriteOptions{}, nil, rows)
		if err == nil {
			for k := from; k < to; k++ {
				parts[k] = part
			}
		}
		return err
	}
	check := func() {
		t.Helper()
		var want []string
		for k, p := range parts {
			want = append(want, fmt.Sprintf("%d|%d|%d|\"x\"", p, k, k))
		}
		wantRows(t, f.rows(), want)
	}
	if err := write(0, 0, 5000); err != nil {
		t.Fatal(err)
	}
	disk.full.Store(true)
	var err error
	for i := 0; err == nil && i < 100; i++ {
		err = write(i%2, 4000*i, 4000*i+8000)
	}
	if !errors.Is(err, syscall.ENOSPC) {
		t.Fatalf("the disk is full: %v", err)
	}
	check()
	if err := write(0, 0, 10); err != nil { // what there is may be few enough for memory
		if !errors.Is(err, syscall.ENOSPC) {
			t.Fatal(err)
		}
	}
	check()
	disk.full.Store(false)
	if err := write(2, 100, 3000); err != nil {
		t.Fatal(err)
	}
	check()
}
