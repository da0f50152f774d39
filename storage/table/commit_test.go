package table

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// workbench is a table in some FileIO whose commits a test makes by hand.
type workbench struct {
	t    testing.TB
	io   fileio.FileIO
	sch  *schema.Table
	made *built // writes real data files
}

const workDir = "db.db/t"

// newWork makes a table without snapshots.
func newWork(t testing.TB, io fileio.FileIO, s *schema.Table) *workbench {
	w := &workbench{t: t, io: io, sch: s}
	w.putSchema(s)
	return w
}

func (w *workbench) putSchema(s *schema.Table) {
	raw, err := schema.Encode(s)
	if err != nil {
		w.t.Fatal(err)
	}
	if err := w.io.PutIfAbsent(context.Background(), fmt.Sprintf("%s/schema/schema-%d", workDir, s.ID), raw); err != nil {
		w.t.Fatal(err)
	}
	w.sch = s
	w.made = nil
}

// open returns the table as a process sees that opens it now.
func (w *workbench) open() *FileStore {
	env := NewEnv(w.io, EnvOptions{VerdictRows: 1})
	w.t.Cleanup(env.Close)
	return Open(env, workDir)
}

// fake makes a data file that nobody reads, and its entry.
func (w *workbench) fake(part []byte, bucket int32, lo, hi int64) manifest.Entry {
	e, err := w.tryFake(part, bucket, lo, hi)
	if err != nil {
		w.t.Fatal(err)
	}
	return e
}

func (w *workbench) tryFake(part []byte, bucket int32, lo, hi int64) (e manifest.Entry, err error) {
	f := &manifest.DataFile{
		Name: "data-" + uuid.NewString() + "-0.parquet", Size: 7, Rows: hi - lo + 1, SchemaID: w.sch.ID, DeleteRows: 0, FirstRowID: -1,
		MinSequence: lo, MaxSequence: hi, CreationMillis: 1,
	}
	e = manifest.Entry{Partition: part, Bucket: bucket, TotalBuckets: -1, File: f}
	if len(w.sch.PrimaryKeys) > 0 {
		e.TotalBuckets = 2
		f.MinKey, f.MaxKey = intImage(w.t, lo), intImage(w.t, hi)
	}
	dir, err := (&FileStore{dir: workDir}).bucketPath(w.sch, e.Partition, bucket)
	if err != nil {
		return e, err
	}
	out, err := w.io.Create(context.Background(), dir+"/"+f.Name)
	if err != nil {
		return e, err
	}
	if _, err := out.Write([]byte("content")); err != nil {
		_ = out.Abort()
		return e, err
	}
	return e, out.Close()
}

func intImage(t testing.TB, v int64) []byte {
	b, err := binrow.Encode([]types.Type{types.Of(types.Int8)}, []types.Datum{v})
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// real writes rows of a key table as a data file.
func (w *workbench) real(level, bucket int32, rows ...row) manifest.Entry {
	if w.made == nil {
		w.made = newBuilt(w.t, w.sch)
		w.made.files = int(rand.Int32N(1 << 30))
	}
	f := w.made.addFile(level, bucket, rows, 100)
	p := fmt.Sprintf("%s/bucket-%d/%s", workDir, bucket, f.Name)
	raw, err := w.made.io.ReadFile(context.Background(), p)
	if err != nil {
		w.t.Fatal(err)
	}
	out, err := w.io.Create(context.Background(), p)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := out.Write(raw); err != nil {
		w.t.Fatal(err)
	}
	if err := out.Close(); err != nil {
		w.t.Fatal(err)
	}
	e := manifest.Entry{Partition: make([]byte, 8), Bucket: bucket, TotalBuckets: 2, File: f}
	if len(w.sch.PrimaryKeys) == 0 {
		e.TotalBuckets = -1
	}
	return e
}

func removal(e manifest.Entry) manifest.Entry { e.Kind = manifest.Delete; return e }

func atLevel(e manifest.Entry, level int32) manifest.Entry {
	f := *e.File
	f.Level = level
	e.File, e.Kind = &f, manifest.Add
	return e
}

func mustCommit(t testing.TB, s *FileStore, c commit.Changes) int64 {
	t.Helper()
	id, err := s.Commit(context.Background(), c)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// liveNames are the live data files of the newest snapshot, or of one with an id.
func liveNames(t testing.TB, io fileio.FileIO, id int64) []string {
	t.Helper()
	ctx := context.Background()
	m := snapshot.NewManager(io, workDir)
	s, err := m.Latest(ctx)
	if id > 0 {
		s, err = m.Get(ctx, id)
	}
	if err != nil {
		t.Fatal(err)
	}
	if s == nil {
		return nil
	}
	return liveOf(t, io, s)
}

// liveOf reads a snapshot without any cache and lays its entries over each other
// with a map: slow and obvious.
func liveOf(t testing.TB, io fileio.FileIO, s *snapshot.Snapshot) []string {
	t.Helper()
	ctx := context.Background()
	alive := map[manifest.Identity]bool{}
	rows := int64(0)
	for _, list := range []string{s.BaseManifestList, s.DeltaManifestList} {
		raw, err := io.ReadFile(ctx, workDir+"/manifest/"+list)
		if err != nil {
			t.Fatalf("snapshot %d: %v", s.ID, err)
		}
		metas, err := manifest.DecodeList(list, raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range metas {
			raw, err := io.ReadFile(ctx, workDir+"/manifest/"+m.Name)
			if err != nil {
				t.Fatalf("snapshot %d: %v", s.ID, err)
			}
			if int64(len(raw)) != m.Size {
				t.Fatalf("manifest %s has %d bytes, list says %d", m.Name, len(raw), m.Size)
			}
			es, err := manifest.DecodeEntries(m.Name, raw)
			if err != nil {
				t.Fatal(err)
			}
			for i := range es {
				id := es[i].Identity()
				if es[i].Kind == manifest.Add {
					if alive[id] {
						t.Fatalf("snapshot %d adds %s twice", s.ID, id.Name)
					}
					alive[id] = true
					rows += es[i].File.Rows
				} else {
					if !alive[id] {
						t.Fatalf("snapshot %d removes %s, which does not live", s.ID, id.Name)
					}
					delete(alive, id)
					rows -= es[i].File.Rows
				}
			}
		}
	}
	var out []string
	for id := range alive {
		out = append(out, id.Name)
	}
	slices.Sort(out)
	if s.TotalRecordCount == nil || *s.TotalRecordCount != rows {
		t.Errorf("snapshot %d says it has %v rows, it has %d", s.ID, s.TotalRecordCount, rows)
	}
	return out
}

func namesOf(es ...manifest.Entry) []string {
	var out []string
	for _, e := range es {
		out = append(out, e.File.Name)
	}
	slices.Sort(out)
	return out
}

func wantConflict(t testing.TB, err error, part string) {
	t.Helper()
	var c *commit.ConflictError
	if !errors.As(err, &c) {
		t.Fatalf("no conflict: %v", err)
	}
	if !strings.Contains(c.Reason, part) {
		t.Errorf("conflict %q does not say %q", c.Reason, part)
	}
}

func appendTable(t testing.TB, options map[string]string) *schema.Table {
	return tableSchema(t, options, nil, "a INT", "b STRING")
}

func keyTable(t testing.TB, options map[string]string) *schema.Table {
	o := map[string]string{"bucket": "2"}
	for k, v := range options {
		o[k] = v
	}
	return tableSchema(t, o, []string{"k"}, "k BIGINT", "v STRING")
}

func TestCommitFirst(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewLocal(t.TempDir()), appendTable(t, nil))
	s := w.open()
	if id := mustCommit(t, s, commit.Changes{}); id != 0 {
		t.Errorf("an empty commit gave snapshot %d", id)
	}
	e := w.real(0, 0, row{0, 0, []types.Datum{int64(1), "x"}}, row{1, 0, []types.Datum{int64(2), "y"}})
	if id := mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: []manifest.Entry{e}, Operation: "INSERT"}); id != 1 {
		t.Fatalf("snapshot %d", id)
	}
	f := w.real(0, 0, row{2, 0, []types.Datum{int64(3), "z"}})
	if id := mustCommit(t, s, commit.Changes{Kind: commit.Append, Base: 1, Files: []manifest.Entry{f}}); id != 2 {
		t.Fatalf("snapshot %d", id)
	}
	for _, st := range []*FileStore{s, w.open()} {
		if n := countAll(t, st); n != 3 {
			t.Errorf("%d rows", n)
		}
	}
	sn, err := w.open().Snapshots("").Latest(ctx)
	if err != nil {
		t.Fatal(err)
	}
	if sn.CommitKind != "APPEND" || *sn.TotalRecordCount != 3 || *sn.DeltaRecordCount != 1 || sn.CommitIdentifier != 1<<63-1 || *sn.NextRowID != 0 || sn.Operation != "" {
		t.Errorf("%+v", sn)
	}
	if s1, _ := s.Snapshots("").Get(ctx, 1); s1.Operation != "WRITE" {
		t.Errorf("operation %q", s1.Operation)
	}
	// What the process remembers of what it wrote is what is on disk.
	same(t, w.io, s)
	es, err := w.io.List(ctx, workDir+"/manifest")
	if err != nil || len(es) != 6 {
		t.Errorf("%d metadata files: %v", len(es), err)
	}
	for _, e := range es {
		if strings.HasPrefix(e.Name, ".") {
			t.Errorf("%s was left behind", e.Name)
		}
	}
}

// same compares the plan of a store that has just committed with that of a fresh
// one.
func same(t testing.TB, io fileio.FileIO, s *FileStore) {
	t.Helper()
	ctx := context.Background()
	show := func(s *FileStore) string {
		p, err := s.Plan(ctx, Scan{Limit: -1})
		if err != nil {
			t.Fatal(err)
		}
		var b strings.Builder
		for _, sp := range p.Splits {
			for _, f := range sp.Files {
				fmt.Fprintf(&b, "%v %d %+v\n", sp.Partition, sp.Bucket, *f.Meta)
			}
			for _, sec := range sp.Sections {
				for _, run := range sec {
					for _, f := range run {
						fmt.Fprintf(&b, "%v %d %+v\n", sp.Partition, sp.Bucket, *f.Meta)
					}
				}
			}
		}
		return b.String()
	}
	env := NewEnv(io, EnvOptions{VerdictRows: 1})
	defer env.Close()
	if a, b := show(s), show(Open(env, workDir)); a != b {
		t.Errorf("the cache says\n%s\nthe disk\n%s", a, b)
	}
}

func countAll(t testing.TB, s *FileStore) int {
	t.Helper()
	ctx := context.Background()
	sc := Scan{Limit: -1}
	p, err := s.Plan(ctx, sc)
	if err != nil {
		t.Fatal(err)
	}
	n := 0
	for _, sp := range p.Splits {
		rd, err := s.Read(ctx, sc, sp, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		for {
			var b *vec.Batch
			if b, err = rd.Next(ctx); err != nil {
				t.Fatal(err)
			}
			if b == nil {
				break
			}
			n += b.N
			if b.Sel != nil {
				n += len(b.Sel) - b.N
			}
		}
		_ = rd.Close()
	}
	return n
}

// BenchmarkCommit publishes one new file at a time: on disk the price is two waits
// for it, in memory what is left without.
func BenchmarkCommit(b *testing.B) {
	for name, io := range map[string]func() fileio.FileIO{
		"disk": func() fileio.FileIO { return fileio.NewLocal(b.TempDir()) },
		"mem":  func() fileio.FileIO { return fileio.NewMem() },
	} {
		b.Run(name, func(b *testing.B) {
			w := newWork(b, io(), appendTable(b, nil))
			s := w.open()
			ctx := context.Background()
			base := int64(0)
			for b.Loop() {
				b.StopTimer()
				e := w.fake(make([]byte, 8), 0, 0, 9)
				b.StartTimer()
				id, err := s.Commit(ctx, commit.Changes{Kind: commit.Append, Base: base, Files: []manifest.Entry{e}})
				if err != nil {
					b.Fatal(err)
				}
				base = id
			}
		})
	}
}

// TestCommitRace lets processes publish side by side: no file is lost, every
// commit is one snapshot.
func TestCommitRace(t *testing.T) {
	ctx := context.Background()
	w := newWork(t, fileio.NewMem(), appendTable(t, map[string]string{"commit.min-retry-wait": "1 ms", "commit.max-retry-wait": "20 ms", "commit.max-retries": "100", "manifest.merge-min-count": "5"}))
	const writers, each = 4, 12
	var mu sync.Mutex
	var want []string
	var wg sync.WaitGroup
	ids := map[int64]bool{}
	for n := range writers {
		s := w.open()
		sessions := 1
		if n == 0 {
			sessions = 2 // of one process
		}
		for range sessions {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range each {
					e, err := w.tryFake(make([]byte, 8), 0, 0, 0)
					if err != nil {
						t.Error(err)
						return
					}
					id, err := s.Commit(ctx, commit.Changes{Kind: commit.Append, Files: []manifest.Entry{e}})
					if err != nil {
						t.Error(err)
						return
					}
					mu.Lock()
					want = append(want, e.File.Name)
					ids[id] = true
					mu.Unlock()
				}
			}()
		}
	}
	wg.Wait()
	slices.Sort(want)
	if got := liveNames(t, w.io, 0); !slices.Equal(got, want) {
		t.Errorf("%d files live, %d were committed", len(got), len(want))
	}
	if n := int64((writers + 1) * each); int64(len(ids)) != n || !ids[1] || !ids[n] {
		t.Errorf("%d snapshot ids for %d commits", len(ids), n)
	}
	noOrphans(t, w.io)
}

// noOrphans makes sure that every metadata file is named by some snapshot or tag.
func noOrphans(t testing.TB, io fileio.FileIO) {
	t.Helper()
	ctx := context.Background()
	used := usedFiles(t, io)
	for _, dir := range []string{"manifest", "index", "statistics"} {
		es, err := io.List(ctx, workDir+"/"+dir)
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

// usedFiles are the paths that the snapshots and tags of the table name.
func usedFiles(t testing.TB, io fileio.FileIO) map[string]bool {
	t.Helper()
	ctx := context.Background()
	m := snapshot.NewManager(io, workDir)
	ids, err := m.IDs(ctx)
	if err != nil {
		t.Fatal(err)
	}
	var states []*snapshot.Snapshot
	for _, id := range ids {
		s, err := m.Get(ctx, id)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, s)
	}
	tags, err := m.Tags(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for _, n := range tags {
		s, err := m.Tag(ctx, n)
		if err != nil {
			t.Fatal(err)
		}
		states = append(states, s)
	}
	used := map[string]bool{}
	sm := schema.NewManager(io, workDir)
	for _, s := range states {
		var changelogs []string
		for _, list := range []string{s.BaseManifestList, s.DeltaManifestList, s.ChangelogManifestList} {
			if list == "" {
				continue
			}
			used[workDir+"/manifest/"+list] = true
			raw, err := io.ReadFile(ctx, workDir+"/manifest/"+list)
			if err != nil {
				t.Fatalf("snapshot %d: %v", s.ID, err)
			}
			metas, err := manifest.DecodeList(list, raw)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range metas {
				used[workDir+"/manifest/"+x.Name] = true
				if list == s.ChangelogManifestList {
					changelogs = append(changelogs, x.Name)
				}
			}
		}
		if s.IndexManifest != "" {
			used[workDir+"/manifest/"+s.IndexManifest] = true
			raw, err := io.ReadFile(ctx, workDir+"/manifest/"+s.IndexManifest)
			if err != nil {
				t.Fatal(err)
			}
			es, err := manifest.DecodeIndex(s.IndexManifest, raw)
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range es {
				used[workDir+"/index/"+e.Name] = true
			}
		}
		if s.Statistics != "" {
			used[workDir+"/statistics/"+s.Statistics] = true
		}
		sch, err := sm.Latest(ctx)
		if err != nil {
			t.Fatal(err)
		}
		files := liveEntriesOf(t, io, s)
		for _, n := range changelogs {
			raw, err := io.ReadFile(ctx, workDir+"/manifest/"+n)
			if err != nil {
				t.Fatal(err)
			}
			es, err := manifest.DecodeEntries(n, raw)
			if err != nil {
				t.Fatal(err)
			}
			files = append(files, es...)
		}
		for _, e := range files {
			dir, err := (&FileStore{dir: workDir}).bucketPath(sch, e.Partition, e.Bucket)
			if err != nil {
				t.Fatal(err)
			}
			for _, p := range dataPaths(dir, e.File) {
				used[p] = true
			}
		}
	}
	return used
}

func liveEntriesOf(t testing.TB, io fileio.FileIO, s *snapshot.Snapshot) []manifest.Entry {
	t.Helper()
	ctx := context.Background()
	alive := map[manifest.Identity]manifest.Entry{}
	for _, list := range []string{s.BaseManifestList, s.DeltaManifestList} {
		raw, err := io.ReadFile(ctx, workDir+"/manifest/"+list)
		if err != nil {
			t.Fatalf("snapshot %d: %v", s.ID, err)
		}
		metas, err := manifest.DecodeList(list, raw)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range metas {
			raw, err := io.ReadFile(ctx, workDir+"/manifest/"+m.Name)
			if err != nil {
				t.Fatalf("snapshot %d: %v", s.ID, err)
			}
			es, err := manifest.DecodeEntries(m.Name, raw)
			if err != nil {
				t.Fatal(err)
			}
			for i := range es {
				if es[i].Kind == manifest.Add {
					alive[es[i].Identity()] = es[i]
				} else {
					delete(alive, es[i].Identity())
				}
			}
		}
	}
	var out []manifest.Entry
	for _, e := range alive {
		out = append(out, e)
	}
	return out
}

// overtaker is a FileIO under which another writer puts its snapshot over one that
// was published, after between.
type overtaker struct {
	*fileio.Mem
	at      string // the snapshot's path
	theirs  []byte
	between func()
}

func (o *overtaker) Publish(ctx context.Context, p string, data []byte, needs ...string) error {
	if err := o.Mem.Publish(ctx, p, data, needs...); err != nil || p != o.at {
		return err
	}
	o.at = ""
	o.between()
	if err := o.Put(ctx, p, o.theirs); err != nil {
		return err
	}
	return fmt.Errorf("put %s: %w", p, fileio.ErrOvertaken)
}

// TestCommitOvertaken: a commit whose snapshot was replaced is made again, once, and
// not at all where somebody went on from it meanwhile.
func TestCommitOvertaken(t *testing.T) {
	ctx := context.Background()
	for _, upon := range []bool{false, true} {
		mem := fileio.NewMem()
		w := newWork(t, mem, appendTable(t, nil))
		a, b, c, d := w.fake(nil, 0, 0, 9), w.fake(nil, 0, 0, 9), w.fake(nil, 0, 0, 9), w.fake(nil, 0, 0, 9)
		mustCommit(t, w.open(), commit.Changes{Kind: commit.Append, Files: entries(a)})
		// Another's second snapshot is made aside.
		aside := workDir + "/snapshot/snapshot-2"
		mustCommit(t, w.open(), commit.Changes{Kind: commit.Append, Files: entries(b)})
		theirs, err := mem.ReadFile(ctx, aside)
		if err != nil {
			t.Fatal(err)
		}
		if err := mem.Delete(ctx, aside, workDir+"/snapshot/LATEST"); err != nil {
			t.Fatal(err)
		}
		want := namesOf(a, b, c)
		o := &overtaker{Mem: mem, at: aside, theirs: theirs, between: func() {
			if upon {
				mustCommit(t, w.open(), commit.Changes{Kind: commit.Append, Files: entries(d)})
			}
		}}
		if upon {
			want = namesOf(a, c, d) // what was replaced under it is not in the third snapshot
		}
		under := *w
		under.io = o
		s := under.open()
		if id := mustCommit(t, s, commit.Changes{Kind: commit.Append, Files: entries(c)}); id != 3 {
			t.Errorf("committed as snapshot %d", id)
		}
		if got := liveNames(t, mem, 0); !slices.Equal(got, want) {
			t.Errorf("upon it %v: live %v, want %v", upon, got, want)
		}
	}
}
