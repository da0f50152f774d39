package table

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"maps"
	"os"
	"sync"
	"sync/atomic"
	"time"

	"github.com/cockroachdb/pebble/v2"
	"github.com/cockroachdb/pebble/v2/vfs"
	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/internal/vec"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Where the keys of tables with cross-partition keys are: an index of every key's
// partition and bucket, on the local disk. It is read from the table's newest
// state when it is first needed and follows the snapshots from there, whoever
// makes them (Java: GlobalIndexAssigner.java, IndexBootstrap.java). It holds what
// is committed, nothing else: writers remember their own rows, and a commit is a
// conflict where a key was touched since its place was looked up
// (commit.Changes.Placed).

// keyStore holds the indexes of all tables of a process in one database of its
// own, which does not outlive it. An index is the keys with one prefix.
type keyStore struct {
	dir func() (string, error) // nil = in memory

	mu      sync.Mutex // guards all below
	db      *pebble.DB
	path    string // the database's directory
	next    uint64
	indexes map[string]*keyIndex // by table and branch
	order   []string             // of indexes, the latest used last
	files   *keyFiles            // below db; nil = it is in memory
	disk    vfs.FS               // below files; nil = the machine's

	spaces atomic.Int64 // that are in use
}

// relieve gives the disk back when it takes nothing: indexes that nobody uses are
// dropped, and with the last of them the database, whose files would else stay.
func (s *keyStore) relieve() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.files == nil || s.files.bad.Load() == nil {
		return
	}
	for _, x := range s.indexes {
		if x.mu.TryLock() {
			x.reset()
			x.mu.Unlock()
		}
	}
	if s.spaces.Load() == 0 {
		s.shut()
	}
}

// shut closes the database and removes its files; mu is held.
func (s *keyStore) shut() {
	if s.db == nil {
		return
	}
	if s.files != nil {
		close(s.files.done)
	}
	_ = s.db.Close() // what it says is of no interest any more
	if s.dir != nil {
		_ = os.RemoveAll(s.path)
	}
	s.db, s.files = nil, nil
}

// Budgets of the database, in bytes, and how many tables' indexes are kept.
const (
	keyCacheBytes = 64 << 20
	keyTableBytes = 16 << 20
	maxKeyIndexes = 64
)

// quiet keeps the database from writing to the log, or from ending the process.
type quiet struct{}

func (quiet) Infof(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(f string, args ...any) {
	panic(fmt.Sprintf("key index: "+f, args...))
}

// open opens the database; mu is held.
func (s *keyStore) open() error {
	if s.db != nil {
		return nil
	}
	cache := pebble.NewCache(keyCacheBytes)
	defer cache.Unref()
	o := &pebble.Options{Cache: cache, MemTableSize: keyTableBytes, DisableWAL: true, Logger: quiet{}, L0CompactionThreshold: 4,
		L0StopWritesThreshold: 1000} // a compaction that fails must not block writers
	if s.dir == nil {
		o.FS, s.path = vfs.NewMem(), "keys"
	} else {
		dir, err := s.dir()
		if err != nil {
			return err
		}
		if s.path, err = os.MkdirTemp(dir, "keys-"); err != nil {
			return err
		}
		disk := s.disk
		if disk == nil {
			disk = vfs.Default
		}
		s.files = newKeyFiles(disk, s.path)
		o.FS = s.files
		o.EventListener = &pebble.EventListener{BackgroundError: s.files.failed}
	}
	db, err := pebble.Open("db", o)
	if err != nil {
		if s.dir != nil {
			_ = os.RemoveAll(s.path)
		}
		s.files = nil
		return fmt.Errorf("key index: %w", err)
	}
	s.db = db
	return nil
}

// space returns a prefix of the database that is not in use.
func (s *keyStore) space() (keySpace, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.open(); err != nil {
		return keySpace{}, err
	}
	s.next++
	s.spaces.Add(1)
	return keySpace{s, s.db, s.files, s.next}, nil
}

// of returns the index of a branch of a table, making room for it.
func (s *keyStore) of(name string) *keyIndex {
	s.mu.Lock()
	defer s.mu.Unlock()
	for i, n := range s.order {
		if n == name {
			s.order = append(append(s.order[:i:i], s.order[i+1:]...), name)
			return s.indexes[name]
		}
	}
	if s.indexes == nil {
		s.indexes = map[string]*keyIndex{}
	}
	x := &keyIndex{store: s}
	s.indexes[name], s.order = x, append(s.order, name)
	if len(s.order) > maxKeyIndexes {
		if old := s.indexes[s.order[0]]; old.mu.TryLock() { // else it is in use: another time
			old.reset()
			old.mu.Unlock()
			delete(s.indexes, s.order[0])
			s.order = s.order[1:]
		}
	}
	return x
}

func (s *keyStore) close() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.shut()
	s.indexes, s.order = nil, nil
}

// keySpace is one prefix of the database.
type keySpace struct {
	store *keyStore
	db    *pebble.DB
	files *keyFiles
	id    uint64
}

// commit applies a batch, unless the disk takes nothing.
func (k keySpace) commit(b *pebble.Batch) error {
	if k.files != nil {
		if err := k.files.room(); err != nil {
			return fmt.Errorf("key index: %w", err)
		}
	}
	return b.Commit(pebble.NoSync)
}

func (k keySpace) key(dst, key []byte) []byte {
	return append(binary.BigEndian.AppendUint64(dst[:0], k.id), key...)
}

// get returns the value of a key, copied into dst; nil = none.
func (k keySpace) get(buf, dst, key []byte) (value, scratch []byte, err error) {
	buf = k.key(buf, key)
	v, done, err := k.db.Get(buf)
	if errors.Is(err, pebble.ErrNotFound) {
		return nil, buf, nil
	}
	if err != nil {
		return nil, buf, fmt.Errorf("key index: %w", err)
	}
	dst = append(dst[:0], v...)
	return dst, buf, done.Close()
}

// drop removes everything; what stays when it fails is never read.
func (k keySpace) drop() {
	if k.db != nil {
		_ = k.db.DeleteRange(binary.BigEndian.AppendUint64(nil, k.id), binary.BigEndian.AppendUint64(nil, k.id+1), pebble.NoSync)
		k.store.spaces.Add(-1)
	}
}

// keyIndex is the index of one branch of a table.
type keyIndex struct {
	store *keyStore

	mu    sync.RWMutex // guards all below
	ready bool
	snap  *snapshot.Snapshot // state that it is of; nil = the empty table
	space keySpace
	// parts are partitions by the numbers that values name them by. A partition that
	// is replaced gets a new number; keys with the old one are not there any more.
	parts []*keyPartition
	ids   map[string]uint32 // by image
}

// keyPartition is a partition, as long as it is not replaced.
type keyPartition struct {
	image []byte
	gone  bool
	rows  map[int32]int64 // keys by bucket
}

// keyPlace is where a key is.
type keyPlace struct {
	part   uint32
	bucket int32
	time   int64 // minutes since 1970 of when it was noted
}

func (p keyPlace) append(dst []byte) []byte {
	dst = binary.AppendUvarint(dst, uint64(p.part))
	dst = binary.AppendUvarint(dst, uint64(uint32(p.bucket)))
	return binary.AppendUvarint(dst, uint64(p.time))
}

func decodePlace(b []byte) (p keyPlace, err error) {
	var v [3]uint64
	for i := range v {
		var n int
		if v[i], n = binary.Uvarint(b); n <= 0 {
			return p, errors.New("key index: damaged value")
		}
		b = b[n:]
	}
	return keyPlace{uint32(v[0]), int32(v[1]), int64(v[2])}, nil
}

func minutes() int64 { return time.Now().Unix() / 60 }

func (x *keyIndex) reset() {
	x.space.drop()
	x.space, x.ready, x.snap, x.parts, x.ids = keySpace{}, false, nil, nil, nil
}

// part returns the number of a partition.
func (x *keyIndex) part(image []byte) uint32 {
	id, ok := x.ids[string(image)]
	if !ok {
		id = uint32(len(x.parts))
		x.parts = append(x.parts, &keyPartition{image: append([]byte(nil), image...), rows: map[int32]int64{}})
		x.ids[string(image)] = id
	}
	return id
}

// place returns where a key is; false = nowhere. ttl 0 = for ever.
func (x *keyIndex) place(buf, val, key []byte, ttl int64) (p keyPlace, ok bool, buf2, val2 []byte, err error) {
	v, buf, err := x.space.get(buf, val, key)
	if err != nil || v == nil {
		return p, false, buf, val, err
	}
	if p, err = decodePlace(v); err != nil {
		return p, false, buf, v, err
	}
	if int(p.part) >= len(x.parts) || x.parts[p.part].gone || ttl > 0 && minutes()-p.time > ttl {
		return p, false, buf, v, nil
	}
	return p, true, buf, v, nil
}

// keyReader reads the keys of a table with the rest that the index wants.
type keyReader struct {
	t     *FileStore
	st    *state
	pk    []int
	codec *mergetree.KeyCodec
}

func (t *FileStore) newKeyReader(st *state) (*keyReader, error) {
	r := &keyReader{t: t, st: st}
	var err error
	if r.pk, err = columnsOf(st.schema, st.schema.PrimaryKeys); err != nil {
		return nil, err
	}
	var ts []types.Type
	for _, c := range r.pk {
		ts = append(ts, st.schema.Fields[c].Type)
	}
	r.codec = mergetree.NewKeyCodec(ts)
	return r, nil
}

// state calls f with the live keys of a state, split by split, from several
// goroutines. only, when not nil, are the partitions wanted.
func (r *keyReader) state(ctx context.Context, only map[string]bool, oldest time.Time, parallel int, f func(image []byte, bucket int32, keys [][]byte) error) error {
	st := r.st
	scan := Scan{
		At:      snapshot.Ref{Kind: snapshot.ID, ID: st.snap.ID, Branch: st.branch.name, Schema: st.schema.ID + 1, Snap: st.snap},
		Columns: r.pk, Limit: -1,
	}
	plan, err := r.t.Plan(ctx, scan)
	if err != nil {
		return err
	}
	parts, err := columnsOf(st.schema, st.schema.PartitionKeys)
	if err != nil {
		return err
	}
	var pts []types.Type
	for _, c := range parts {
		pts = append(pts, st.schema.Fields[c].Type)
	}
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(1, min(parallel, 2*cores.Count())))
	for i := range plan.Splits {
		sp := &plan.Splits[i]
		image, err := binrow.Encode(pts, sp.Partition)
		if err != nil {
			return errors.Join(err, g.Wait())
		}
		if only != nil && !only[string(image)] || !sp.newer(oldest) {
			continue
		}
		g.Go(func() error {
			rd, err := r.t.Read(ctx, scan, *sp, ReadOptions{})
			if err != nil {
				return err
			}
			defer rd.Close() //nolint:errcheck // reading
			for {
				b, err := rd.Next(ctx)
				if err != nil || b == nil {
					return err
				}
				b = vec.Compact(b)
				if err := f(image, sp.Bucket, r.codec.Bytes(b.Cols, b.N)); err != nil {
					return err
				}
			}
		})
	}
	return g.Wait()
}

// newer reports whether a split has a file that is not older than t.
func (s *Split) newer(t time.Time) bool {
	if t.IsZero() {
		return true
	}
	at := t.UnixMilli()
	for i := range s.Files {
		if s.Files[i].Meta.CreationMillis >= at {
			return true
		}
	}
	for _, section := range s.Sections {
		for _, run := range section {
			for i := range run {
				if run[i].Meta.CreationMillis >= at {
					return true
				}
			}
		}
	}
	return false
}

// files calls f with the newest version of each key in files of one bucket.
func (r *keyReader) files(ctx context.Context, image []byte, bucket int32, files []*manifest.DataFile, f func(keys [][]byte, kinds []int16) error) error {
	p, err := r.t.newPlanner(ctx, Scan{
		At: snapshot.Ref{Branch: r.st.branch.name, Schema: r.st.schema.ID + 1, Empty: true}, Columns: append(append([]int(nil), r.pk...), PseudoKind), Limit: -1,
		// What matters is whether the last one is a retraction.
		Options: map[string]string{"merge-engine": "deduplicate", "ignore-delete": "false", "deduplicate.ignore-delete": "false"},
	})
	if err != nil {
		return err
	}
	part, err := p.partitionOf(image)
	if err != nil {
		return err
	}
	dir := p.bucketDir(part, bucket)
	rd := &mergeReader{plan: p.read, dir: dir, c: &format.Counters{}, im: &piece{read: p.read, dir: dir}}
	defer rd.Close() //nolint:errcheck // a reader
	section := make([][]File, len(files))
	for i, m := range files {
		section[i] = []File{{Meta: m}}
		if err := p.check(&section[i][0]); err != nil {
			return err
		}
	}
	rd.split.Sections = [][][]File{section}
	if err := rd.open(ctx); err != nil {
		return err
	}
	for {
		cols, n, err := rd.m.Next(ctx)
		if err != nil || n == 0 {
			return err
		}
		kinds := vec.ViewOf[int16](cols[len(r.pk)]).V
		if r.st.mergeEngine() != "deduplicate" {
			// A retraction may leave something of the row: the key stays where it is.
			all, ends := kinds, r.st.endsKeys()
			kinds = make([]int16, n)
			for i, k := range all[:n] {
				if ends && k == int16(mergetree.KindDelete) {
					kinds[i] = k
				}
			}
		}
		if err := f(r.codec.Bytes(cols[:len(r.pk)], n), kinds); err != nil {
			return err
		}
	}
}

// keyOptions are the cross-partition-upsert options.
func (st *state) keyOptions() (ttl time.Duration, parallel int, err error) {
	if ttl, err = st.options.Duration("cross-partition-upsert.index-ttl", 0); err != nil {
		return 0, 0, err
	}
	n, err := st.options.Int("cross-partition-upsert.bootstrap-parallelism", 10)
	return ttl, int(n), err
}

// keyIndexAt returns the index, brought to a state or ahead of it.
func (t *FileStore) keyIndexAt(ctx context.Context, st *state) (*keyIndex, error) {
	x := t.env.keys.of(t.dir + "\x00" + st.branch.name)
	x.mu.Lock()
	defer x.mu.Unlock()
	r, err := t.newKeyReader(st)
	if err != nil {
		return nil, err
	}
	if x.ready {
		ok, err := x.follow(ctx, r)
		if ok && err == nil {
			return x, nil
		}
		x.reset() // it may be half done
		x.store.relieve()
		var missing *fileio.MissingError
		if err != nil && !errors.As(err, &missing) {
			return nil, err
		}
	}
	if err := x.build(ctx, r); err != nil {
		x.reset()
		x.store.relieve()
		return nil, err
	}
	return x, nil
}

// build reads the whole state.
func (x *keyIndex) build(ctx context.Context, r *keyReader) error {
	var err error
	if x.space, err = x.store.space(); err != nil {
		return err
	}
	x.ids = map[string]uint32{}
	if r.st.snap != nil {
		if err := x.load(ctx, r, nil); err != nil {
			return err
		}
	}
	x.snap, x.ready = r.st.snap, true
	return nil
}

// load adds the keys of partitions of a state, nil = all.
func (x *keyIndex) load(ctx context.Context, r *keyReader, only map[string]bool) error {
	ttl, parallel, err := r.st.keyOptions()
	if err != nil {
		return err
	}
	var oldest time.Time
	if ttl > 0 {
		oldest = time.Now().Add(-ttl)
	}
	var mu sync.Mutex // guards parts
	now := minutes()
	return r.state(ctx, only, oldest, parallel, func(image []byte, bucket int32, keys [][]byte) error {
		mu.Lock()
		p := keyPlace{x.part(image), bucket, now}
		x.parts[p.part].rows[bucket] += int64(len(keys))
		mu.Unlock()
		b := x.space.db.NewBatch()
		defer b.Close() //nolint:errcheck // it was applied
		val := p.append(nil)
		var key []byte
		for _, k := range keys {
			key = x.space.key(key, k)
			if err := b.Set(key, val, nil); err != nil {
				return err
			}
		}
		return x.space.commit(b)
	})
}

// follow brings the index to a writer's state, unless it is ahead. false: it has
// to be read anew.
func (x *keyIndex) follow(ctx context.Context, r *keyReader) (bool, error) {
	st := r.st
	if x.snap == nil {
		if st.snap == nil {
			return true, nil
		}
	} else {
		now, err := st.snapshots.Get(ctx, x.snap.ID)
		if err != nil || now.DeltaManifestList != x.snap.DeltaManifestList {
			return false, nil //nolint:nilerr // expired, rolled back, another table
		}
		if st.snap == nil || st.snap.ID <= x.snap.ID {
			return true, nil
		}
	}
	from := int64(0)
	if x.snap != nil {
		from = x.snap.ID
	}
	if st.snap.ID-from > maxDeltas {
		return false, nil
	}
	var steps []map[commit.BucketID][]*manifest.DataFile
	again := map[string]bool{} // partitions that lost files
	for id := from + 1; id <= st.snap.ID; id++ {
		s := st.snap
		if id != s.ID {
			var err error
			if s, err = st.snapshots.Get(ctx, id); err != nil {
				return false, nil //nolint:nilerr // expired meanwhile
			}
		}
		if k := commit.Kind(s.CommitKind); k == commit.Compact || k == commit.Analyze {
			continue
		}
		entries, err := st.publisher.Delta(ctx, s)
		if err != nil {
			return false, err
		}
		step := map[commit.BucketID][]*manifest.DataFile{}
		for _, e := range entries {
			id := commit.BucketID{Partition: partitionName(e.Partition), Bucket: e.Bucket}
			if e.Kind == manifest.Delete {
				again[id.Partition] = true
			} else if e.Bucket >= 0 {
				step[id] = append(step[id], e.File)
			}
		}
		steps = append(steps, step)
	}
	for _, step := range steps {
		maps.DeleteFunc(step, func(id commit.BucketID, _ []*manifest.DataFile) bool { return again[id.Partition] })
		// A key that moves is taken out of one bucket and put into another: first the
		// one, then the other.
		for _, put := range []bool{false, true} {
			for id, files := range step {
				if err := x.apply(ctx, r, id, files, put); err != nil {
					return false, err
				}
			}
		}
	}
	if len(again) > 0 {
		for image := range again {
			if id, ok := x.ids[image]; ok {
				x.parts[id].gone = true
				delete(x.ids, image)
			}
		}
		if err := x.load(ctx, r, again); err != nil {
			return false, err
		}
	}
	x.snap = st.snap
	return true, nil
}

// apply takes what the files of one bucket retract out of the index, or puts in
// what they add.
func (x *keyIndex) apply(ctx context.Context, r *keyReader, id commit.BucketID, files []*manifest.DataFile, put bool) error {
	deletes := int64(0)
	for _, m := range files {
		if m.DeleteRows != 0 {
			deletes++ // -1 = not known
		}
	}
	if !put && deletes == 0 {
		return nil
	}
	part := x.part([]byte(id.Partition))
	now := keyPlace{part, id.Bucket, minutes()}
	var key, val []byte
	return r.files(ctx, []byte(id.Partition), id.Bucket, files, func(keys [][]byte, kinds []int16) error {
		b := x.space.db.NewBatch()
		defer b.Close() //nolint:errcheck // it was applied
		for i, k := range keys {
			if retracts := kinds[i]&1 != 0; retracts == put {
				continue
			}
			var was keyPlace
			var ok bool
			var err error
			if was, ok, key, val, err = x.place(key, val, k, 0); err != nil {
				return err
			}
			if put {
				if ok {
					x.parts[was.part].rows[was.bucket]--
				}
				x.parts[part].rows[id.Bucket]++
				key = x.space.key(key, k)
				err = b.Set(key, now.append(val[:0]), nil)
			} else if ok && was.part == part && was.bucket == id.Bucket {
				x.parts[part].rows[id.Bucket]--
				key = x.space.key(key, k)
				err = b.Delete(key, nil)
			}
			if err != nil {
				return err
			}
		}
		return x.space.commit(b)
	})
}

// Share reports whether two files hold a row of the same key. See commit.Files.
func (f commitFiles) Share(ctx context.Context, s *schema.Table, a, b *manifest.Entry) (bool, error) {
	var lo, hi [2][]byte
	for i, e := range []*manifest.Entry{a, b} {
		var err1, err2 error
		lo[i], err1 = f.Key(s, e.File.MinKey)
		hi[i], err2 = f.Key(s, e.File.MaxKey)
		if err := errors.Join(err1, err2); err != nil {
			return false, err
		}
	}
	if bytes.Compare(hi[0], lo[1]) < 0 || bytes.Compare(hi[1], lo[0]) < 0 {
		return false, nil
	}
	// Of a key that holds some partition columns, the rest is what files are sorted
	// by: that they are equal is close enough.
	x, err := f.walk(ctx, s, a)
	if err != nil {
		return false, err
	}
	defer x.close()
	y, err := f.walk(ctx, s, b)
	if err != nil {
		return false, err
	}
	defer y.close()
	for {
		k, err := x.key(ctx)
		if err != nil || k == nil {
			return false, err
		}
		l, err := y.key(ctx)
		if err != nil || l == nil {
			return false, err
		}
		switch c := bytes.Compare(k, l); {
		case c == 0:
			return true, nil
		case c < 0:
			x.at++
		default:
			y.at++
		}
	}
}

// keyWalk reads the keys of one file in order.
type keyWalk struct {
	r     *readPlan
	o     *openFile
	rd    *fileColumns
	codec *mergetree.KeyCodec
	left  int64
	keys  [][]byte
	at    int
}

func (f commitFiles) walk(ctx context.Context, s *schema.Table, e *manifest.Entry) (*keyWalk, error) {
	cols, ts, err := keyTypes(s)
	if err != nil {
		return nil, err
	}
	dir, err := f.t.bucketPath(s, e.Partition, e.Bucket)
	if err != nil {
		return nil, err
	}
	w := &keyWalk{codec: mergetree.NewKeyCodec(ts), left: e.File.Rows}
	w.r = &readPlan{t: f.t, st: &state{branch: f.b, schema: s, options: s.Options}, keyed: true, keyCols: cols, codec: w.codec}
	if w.o, err = w.r.open(ctx, dir, &File{Meta: e.File}); err != nil {
		return nil, err
	}
	if w.rd, err = w.o.columns(ctx, format.RowRange{From: 0, To: e.File.Rows}, cols); err != nil {
		w.r.close(w.o)
		return nil, err
	}
	return w, nil
}

// key returns the key at hand, nil at the end.
func (w *keyWalk) key(ctx context.Context) ([]byte, error) {
	if w.at == len(w.keys) {
		n := int(min(keyWindow, w.left))
		if n == 0 {
			return nil, nil
		}
		arrs, err := w.rd.Read(ctx, n, nil)
		if err != nil {
			return nil, err
		}
		if w.keys = w.codec.Bytes(arrs, n); len(w.keys) != n {
			return nil, &fileio.CorruptionError{Path: w.o.path, Offset: -1, Reason: "key columns are short"}
		}
		w.left, w.at = w.left-int64(n), 0
	}
	return w.keys[w.at], nil
}

func (w *keyWalk) close() {
	_ = w.rd.Close()
	w.r.close(w.o)
}
