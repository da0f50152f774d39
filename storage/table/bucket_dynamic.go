package table

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/apache/arrow/go/v15/arrow"
	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/index/hashindex"
	"github.com/paimon-sql/paimon-sql/internal/mem"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Dynamic buckets: a key table with bucket = -1 whose key holds the partition
// columns. Which bucket a key is in is not computed but remembered, by the hash
// of the key, in one HASH index file per bucket.
//
// Writers of this process share one index per partition: the hashes of the
// newest state that was seen, and those that were given to rows which are not
// committed yet, so that two sessions that insert the same new key put it into
// the same bucket. That is so that they rarely conflict; what makes it right is
// the commit: it brings the hashes of all rows written (Changes.Hashes), and each
// attempt compares them with the newest snapshot's index files, whoever wrote
// those, before it adds those that are new. So the index may forget, be behind or
// ahead, and be shared with transactions of any age.

const hashIndexType = "HASH"

// hashPart is the index of one partition.
type hashPart struct {
	mu    sync.Mutex         // guards all below; held while index files are read
	snap  *snapshot.Snapshot // newest state that a writer has brought it to
	index *hashindex.Index   // nil = not read
	files map[int32]string   // the index files that it holds, by bucket
	stale bool               // it may hold more than they do: read anew
}

// hashDelta says how an index file came of another one, "" = of nothing.
type hashDelta struct {
	from  string
	added []int32
}

// hashPart returns the index of a partition of a branch.
func (t *FileStore) hashPart(b *branch, partition string) (h *hashPart, key string) {
	key = t.dir + "\x00" + b.name + "\x00" + partition
	h, ok := t.env.hashParts.Get(key)
	if !ok {
		h = &hashPart{}
		t.env.hashParts.Put(key, h, 256) // of two that are made at once, one is forgotten
	}
	return h, key
}

// hashRules reads the dynamic-bucket options. The number of assigners is that of
// Java's DynamicBucketSink: as many as there are initial buckets.
func (st *state) hashRules(partition []byte) (hashindex.Rules, error) {
	r := hashindex.Rules{Max: -1, Assigners: 1, Partition: binrow.Hash(partition)}
	var err error
	if r.Target, err = st.options.Int("dynamic-bucket.target-row-num", 2_000_000); err != nil {
		return r, err
	}
	if r.Target < 1 {
		return r, fmt.Errorf("option \"dynamic-bucket.target-row-num\" is %d", r.Target)
	}
	for _, o := range []struct {
		name string
		def  int64
		to   *int32
	}{{"dynamic-bucket.max-buckets", -1, &r.Max}, {"dynamic-bucket.initial-buckets", 1, &r.Assigners}, {"dynamic-bucket.assigner-parallelism", 0, &r.Channels}} {
		n, err := st.options.Int(o.name, o.def)
		if err != nil {
			return r, err
		}
		if n < -1 || n > hashindex.MaxBucket+1 || n <= 0 && n != o.def {
			return r, fmt.Errorf("option %q is %d", o.name, n)
		}
		*o.to = int32(n)
	}
	if r.Channels > 0 {
		r.Assigners = min(r.Assigners, r.Channels)
	}
	return r, nil
}

// hashFiles returns the HASH index files of a partition in a state.
func (t *FileStore) hashFiles(ctx context.Context, snap *snapshot.Snapshot, partition string) ([]manifest.IndexEntry, error) {
	if snap == nil || snap.IndexManifest == "" {
		return nil, nil
	}
	es, err := t.env.Manifests.Index(ctx, t.env.IO, t.dir+"/manifest/"+snap.IndexManifest)
	if err != nil {
		return nil, err
	}
	var out []manifest.IndexEntry
	for i := range es {
		if e := &es[i]; e.Type == hashIndexType && e.Kind == manifest.Add && partitionName(e.Partition) == partition {
			out = append(out, *e)
		}
	}
	return out, nil
}

// partitionName is a partition image as a map key.
func partitionName(image []byte) string {
	if len(image) == 0 {
		return string(noPartition)
	}
	return string(image)
}

// hashBytes is about what an index takes for each of its hashes.
const hashBytes = 12

// advance brings the index to a writer's state, unless it is ahead of it. An index
// that is too big to be kept is the writer's: grow charges it.
func (h *hashPart) advance(ctx context.Context, t *FileStore, st *state, partition string, r hashindex.Rules, grow func(n int64) error) error {
	if h.index != nil && h.snap != nil && (st.snap == nil || st.snap.ID < h.snap.ID) {
		now, err := st.snapshots.Get(ctx, h.snap.ID)
		if err == nil && now.DeltaManifestList == h.snap.DeltaManifestList {
			h.index.Use(r)
			return nil
		}
	}
	live, err := t.hashFiles(ctx, st.snap, partition)
	if err != nil {
		return err
	}
	size := int64(0)
	for i := range live {
		size += hashBytes * live[i].Rows
	}
	if size > t.env.hashBytes {
		if err := grow(size); err != nil {
			return err
		}
	}
	if err := h.follow(ctx, commitFiles{t, st.branch}, st.schema, live, r); err != nil {
		return err
	}
	h.snap = st.snap
	return nil
}

// follow makes the index that of the index files live.
func (h *hashPart) follow(ctx context.Context, f commitFiles, s *schema.Table, live []manifest.IndexEntry, r hashindex.Rules) error {
	want := make(map[int32]*manifest.IndexEntry, len(live))
	for i := range live {
		want[live[i].Bucket] = &live[i]
	}
	again := h.index == nil || h.stale
	for b := range h.files {
		again = again || want[b] == nil
	}
	for b, e := range want {
		from := h.files[b]
		if again || from == e.Name {
			continue
		}
		if d, ok := f.t.env.hashAdds.Get(e.Name); ok && d.from == from {
			h.index.Commit(b, d.added)
		} else {
			hashes, err := f.readHashes(ctx, s, e)
			if err != nil {
				return err
			}
			h.index.Commit(b, hashes)
			if h.index.Committed(b) != int64(len(hashes)) {
				again = true // it is no successor of the one that was there
				continue
			}
		}
		h.files[b] = e.Name
	}
	if again {
		x := hashindex.New(r)
		h.stale = true // should reading fail
		files := make(map[int32]string, len(want))
		for b, e := range want {
			hashes, err := f.readHashes(ctx, s, e)
			if err != nil {
				return err
			}
			x.Commit(b, hashes)
			files[b] = e.Name
		}
		h.index, h.files, h.stale = x, files, false
	}
	h.index.Use(r)
	return nil
}

// readHashes reads an index file.
func (f commitFiles) readHashes(ctx context.Context, s *schema.Table, e *manifest.IndexEntry) ([]int32, error) {
	raw, err := f.readIndex(ctx, s, e)
	if err != nil {
		return nil, err
	}
	return hashindex.Decode(raw)
}

// readIndex reads the bytes of a HASH index file.
func (f commitFiles) readIndex(ctx context.Context, s *schema.Table, e *manifest.IndexEntry) ([]byte, error) {
	if e.Bucket < 0 || e.Bucket > hashindex.MaxBucket {
		return nil, &fileio.CorruptionError{Path: e.Name, Offset: -1, Reason: fmt.Sprintf("hash index of bucket %d", e.Bucket)}
	}
	path, err := f.IndexPath(s, e)
	if err != nil {
		return nil, err
	}
	raw, err := f.t.env.IO.ReadFile(ctx, path)
	if errors.Is(err, fileio.ErrNotExist) {
		return nil, &fileio.MissingError{Path: path, Err: err}
	}
	if err != nil {
		return nil, err
	}
	if int64(len(raw)) != 4*e.Rows {
		return nil, &fileio.CorruptionError{Path: path, Offset: -1, Reason: fmt.Sprintf("hash index of %d bytes for %d hashes", len(raw), e.Rows)}
	}
	return raw, nil
}

// Hashes writes the index files of buckets that get new hashes. See
// commit.Files.
func (f commitFiles) Hashes(ctx context.Context, s *schema.Table, live []manifest.IndexEntry, adds map[commit.BucketID][]int32, reuse map[string]manifest.IndexEntry) (made map[string]manifest.IndexEntry, err error) {
	buckets := make([]commit.BucketID, 0, len(adds))
	for b := range adds {
		buckets = append(buckets, b)
	}
	slices.SortFunc(buckets, func(a, b commit.BucketID) int {
		return cmp.Or(cmp.Compare(a.Partition, b.Partition), cmp.Compare(a.Bucket, b.Bucket))
	})
	made = map[string]manifest.IndexEntry{}
	for len(buckets) > 0 {
		n := 1
		for n < len(buckets) && buckets[n].Partition == buckets[0].Partition {
			n++
		}
		if err := f.hashes(ctx, s, live, buckets[:n], adds, reuse, made); err != nil {
			return made, err
		}
		buckets = buckets[n:]
	}
	return made, nil
}

// hashes is Hashes for the buckets of one partition.
func (f commitFiles) hashes(ctx context.Context, s *schema.Table, live []manifest.IndexEntry, buckets []commit.BucketID, adds map[commit.BucketID][]int32, reuse, made map[string]manifest.IndexEntry) error {
	partition := buckets[0].Partition
	var files []manifest.IndexEntry
	for i := range live {
		if partitionName(live[i].Partition) == partition {
			files = append(files, live[i])
		}
	}
	st := &state{branch: f.b, schema: s, options: schema.Options(s.Options)}
	r, err := st.hashRules([]byte(partition))
	if err != nil {
		return err
	}
	h, key := f.t.hashPart(f.b, partition)
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.follow(ctx, f, s, files, r); err != nil {
		return err
	}
	defer func() { f.t.env.hashParts.Put(key, h, h.index.Bytes()) }()
	var own hashindex.Map
	for _, b := range buckets {
		var fresh []int32
		for _, hash := range adds[b] {
			is, ok := h.index.Get(hash)
			if !ok {
				if is, ok = own.Get(hash); !ok {
					own.Put(hash, b.Bucket)
					fresh = append(fresh, hash)
					continue
				}
			}
			if is != b.Bucket {
				return &commit.HashError{Bucket: b.Bucket, Is: is}
			}
		}
		if len(fresh) == 0 {
			continue
		}
		from := ""
		var old *manifest.IndexEntry
		for i := range files {
			if files[i].Bucket == b.Bucket {
				old, from = &files[i], files[i].Name
			}
		}
		name := fmt.Sprintf("%s\x00%d\x00%s", partition, b.Bucket, from)
		if e, ok := reuse[name]; ok {
			made[name] = e
			continue
		}
		var raw []byte
		if old != nil {
			if raw, err = f.readIndex(ctx, s, old); err != nil {
				return err
			}
		}
		raw = hashindex.Append(raw, fresh)
		e := manifest.IndexEntry{
			Kind: manifest.Add, Partition: []byte(partition), Bucket: b.Bucket, Type: hashIndexType,
			Name: "index-" + uuid.NewString() + "-0", Size: int64(len(raw)), Rows: int64(len(raw) / 4),
		}
		if err := f.createIndex(ctx, s, &e, raw); err != nil {
			return err
		}
		f.t.env.hashAdds.Put(e.Name, hashDelta{from, fresh}, int64(4*len(fresh))+256)
		made[name] = e
	}
	return nil
}

func (f commitFiles) createIndex(ctx context.Context, s *schema.Table, e *manifest.IndexEntry, raw []byte) error {
	path, err := f.IndexPath(s, e)
	if err != nil {
		return err
	}
	w, err := f.t.env.IO.Create(ctx, path)
	if err != nil {
		return err
	}
	if _, err := w.Write(raw); err != nil {
		_ = w.Abort() // the error says why
		return err
	}
	return w.Close()
}

// dynamicBuckets assigns buckets to the rows of one writer.
type dynamicBuckets struct {
	t         *FileStore
	st        *state
	overlay   *commit.Changes
	overwrite bool // what is written replaces what is there
	cols      []int
	types     []types.Type
	parts     map[string]*dynamicPart
	hashes    []int32 // scratch

	account *mem.Account
	w       *tableWriter // its buffers make room; nil = it has none yet
	charged int64        // for parts, and indexes that are the writer's
	indexes int64        // the latter
}

// dynamicPart is one partition as a writer sees it.
type dynamicPart struct {
	own    hashindex.Map // hashes that the writer and its transaction use
	added  map[int32][]int32
	shared *hashPart // nil: the partition is replaced
	key    string
	index  *hashindex.Index // of a partition that is replaced
}

func (t *FileStore) newDynamicBuckets(st *state, o WriteOptions) (*dynamicBuckets, error) {
	d := &dynamicBuckets{t: t, st: st, overlay: o.Overlay, overwrite: o.Overwrite, parts: map[string]*dynamicPart{}, account: o.Account}
	var err error
	d.cols, d.types, err = keyTypes(st.schema)
	return d, err
}

// part returns a partition of the writer.
func (d *dynamicBuckets) part(ctx context.Context, image []byte) (*dynamicPart, error) {
	if p, ok := d.parts[string(image)]; ok {
		return p, nil
	}
	r, err := d.st.hashRules(image)
	if err != nil {
		return nil, err
	}
	p := &dynamicPart{added: map[int32][]int32{}}
	if d.overwrite || d.overlay != nil && replaced(d.overlay, image) {
		p.index = hashindex.New(r)
	} else {
		p.shared, p.key = d.t.hashPart(d.st.branch, partitionName(image))
		p.shared.mu.Lock()
		err := p.shared.advance(ctx, d.t, d.st, partitionName(image), r, func(n int64) error {
			err := d.grow(ctx, n)
			if err == nil {
				d.indexes += n
			}
			return err
		})
		p.shared.mu.Unlock()
		if err != nil {
			return nil, err
		}
	}
	if d.overlay != nil && !d.overwrite {
		for b, hashes := range d.overlay.Hashes {
			if b.Partition != string(image) {
				continue
			}
			for _, h := range hashes {
				p.own.Put(h, b.Bucket)
			}
			if p.index != nil {
				p.index.Commit(b.Bucket, hashes)
			}
		}
	}
	d.parts[string(image)] = p
	return p, nil
}

func (p *dynamicPart) assign(h int32) (int32, error) {
	if b, ok := p.own.Get(h); ok {
		return b, nil
	}
	var b int32
	var err error
	if p.index != nil {
		b, err = p.index.Assign(h)
	} else {
		p.shared.mu.Lock()
		b, err = p.shared.index.Assign(h)
		p.shared.mu.Unlock()
	}
	if err != nil {
		return 0, err
	}
	p.own.Put(h, b)
	p.added[b] = append(p.added[b], h)
	return b, nil
}

// grow charges memory, for which the writer's buffers are given up.
func (d *dynamicBuckets) grow(ctx context.Context, n int64) error {
	err := d.account.Grow(n)
	if err != nil && d.w != nil {
		if err := d.w.flush(ctx, true); err != nil {
			return err
		}
		err = d.account.Grow(n)
	}
	if err != nil {
		return fmt.Errorf("hashes of the rows written: %w", err)
	}
	d.charged += n
	return nil
}

// charge charges what the hashes of the rows take that a writer has routed.
func (d *dynamicBuckets) charge(ctx context.Context, w *tableWriter) error {
	d.w = w
	n := d.indexes
	for _, p := range d.parts {
		n += p.own.Bytes() + 4*int64(p.own.Len())
		if p.index != nil {
			n += p.index.Bytes()
		}
	}
	if n <= d.charged {
		return nil
	}
	return d.grow(ctx, n-d.charged)
}

// hashRows returns the hash of the key of each row; it is valid until the next
// call.
func (d *dynamicBuckets) hashRows(cols []arrow.Array, n int) ([]int32, error) {
	d.hashes = slices.Grow(d.hashes[:0], n)[:n]
	out := d.hashes
	arrs := make([]arrow.Array, len(d.cols))
	for i, c := range d.cols {
		arrs[i] = cols[c]
	}
	enc := binrow.NewArrowEncoder(d.types, arrs)
	for i := range out {
		img, err := enc.Row(i)
		if err != nil {
			return nil, fmt.Errorf("key of a row: %w", err)
		}
		out[i] = binrow.Hash(img)
	}
	return out, nil
}

// changes are the hashes of the rows written; the writer is at its end.
func (d *dynamicBuckets) changes() map[commit.BucketID][]int32 {
	d.account.Shrink(d.charged)
	d.charged = 0
	out := map[commit.BucketID][]int32{}
	for image, p := range d.parts {
		for b, h := range p.added {
			out[commit.BucketID{Partition: image, Bucket: b}] = h
		}
		if p.shared != nil {
			p.shared.mu.Lock()
			d.t.env.hashParts.Put(p.key, p.shared, p.shared.index.Bytes())
			p.shared.mu.Unlock()
		}
	}
	return out
}

// forgetHashes takes assignments back whose rows will not be committed.
func (t *FileStore) forgetHashes(b *branch, hashes map[commit.BucketID][]int32) {
	for id, l := range hashes {
		h, ok := t.env.hashParts.Get(t.dir + "\x00" + b.name + "\x00" + partitionName([]byte(id.Partition)))
		if !ok {
			continue
		}
		h.mu.Lock()
		if h.index != nil {
			h.index.Forget(id.Bucket, l)
		}
		h.mu.Unlock()
	}
}
