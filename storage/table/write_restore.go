package table

import (
	"context"
	"sync"

	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// restored is what writers of buckets go on from: the highest sequence number of
// each bucket's files and the number of buckets of each partition. Numbers only
// have to be above those of the live files, so those of files deleted since
// count, too. Immutable once shared.
type restored struct {
	highest map[commit.BucketID]int64
	total   map[string]int32 // by partition image; partitions without files are not in it
}

// restoreCache remembers the last restored of one branch, so that a row written
// to a table of many files does not read all their entries again: a newer
// snapshot adds its delta.
type restoreCache struct {
	mu   sync.Mutex
	snap *snapshot.Snapshot
	old  *restored
}

// maxDeltas is how many snapshots are worth following one by one.
const maxDeltas = 64

func (r *restored) next(partition []byte, bucket int32) int64 {
	h, ok := r.highest[commit.BucketID{Partition: string(partition), Bucket: bucket}]
	if !ok {
		return 0
	}
	return h + 1
}

func (r *restored) add(e *manifest.Entry) {
	if e.Kind != manifest.Add {
		return
	}
	id := commit.BucketID{Partition: string(e.Partition), Bucket: e.Bucket}
	if h, ok := r.highest[id]; !ok || e.File.MaxSequence > h {
		r.highest[id] = e.File.MaxSequence
	}
	if e.TotalBuckets > 0 {
		r.total[id.Partition] = e.TotalBuckets
	}
}

func (r *restored) clone() *restored {
	out := &restored{highest: make(map[commit.BucketID]int64, len(r.highest)), total: make(map[string]int32, len(r.total))}
	for k, v := range r.highest {
		out.highest[k] = v
	}
	for k, v := range r.total {
		out.total[k] = v
	}
	return out
}

// with adds what a transaction wrote. Partitions that it replaces have the
// bucket count of its own files only.
func (r *restored) with(c *commit.Changes) *restored {
	if c == nil {
		return r
	}
	out := r.clone()
	for p := range out.total {
		if replaced(c, []byte(p)) {
			delete(out.total, p)
		}
	}
	for i := range c.Files {
		out.add(&c.Files[i])
	}
	return out
}

// replaced reports whether c's Overwrite replaces a partition.
func replaced(c *commit.Changes, partition []byte) bool {
	o := c.Overwrite
	switch {
	case o == nil:
		return false
	case o.Dynamic:
		for i := range c.Files {
			if c.Files[i].Kind == manifest.Add && string(c.Files[i].Partition) == string(partition) {
				return true
			}
		}
		return false
	case o.Partitions == nil:
		return true
	}
	for _, p := range o.Partitions {
		if string(p) == string(partition) {
			return true
		}
	}
	return false
}

// restore reads what writers on a state go on from.
func (t *FileStore) restore(ctx context.Context, st *state) (*restored, error) {
	if st.snap == nil {
		return &restored{highest: map[commit.BucketID]int64{}, total: map[string]int32{}}, nil
	}
	key := t.dir + "\x00" + st.branch.name
	c, ok := t.env.restores.Get(key)
	if !ok {
		c = &restoreCache{}
		t.env.restores.Put(key, c, 1) // of two that are made at once, one is forgotten
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	old, err := t.follow(ctx, st, c)
	if err != nil {
		return nil, err
	}
	if old == nil {
		old = &restored{highest: map[commit.BucketID]int64{}, total: map[string]int32{}}
		p, err := t.newPlanner(ctx, Scan{At: snapshot.Ref{Kind: snapshot.ID, ID: st.snap.ID, Branch: st.branch.name, Schema: st.schema.ID + 1, Snap: st.snap}, Columns: []int{}, Limit: -1})
		if err != nil {
			return nil, err
		}
		files, err := p.liveEntries(ctx)
		if err != nil {
			return nil, err
		}
		for i := range files {
			old.add(files[i].Entry)
		}
	}
	if c.snap == nil || c.snap.ID <= st.snap.ID {
		c.snap, c.old = st.snap, old
	}
	return old, nil
}

// follow brings the remembered state forward, or returns nil when it has to be
// read anew: it is another history, too far back, or partitions were replaced. A
// newer state of the same history serves as it is: its numbers are higher still,
// and a transaction's many statements need not read its old one again and again.
func (t *FileStore) follow(ctx context.Context, st *state, c *restoreCache) (*restored, error) {
	if c.snap == nil || st.snap.ID-c.snap.ID > maxDeltas {
		return nil, nil
	}
	if c.snap.ID == st.snap.ID {
		if c.snap.DeltaManifestList != st.snap.DeltaManifestList {
			return nil, nil
		}
		return c.old, nil
	}
	now, err := st.snapshots.Get(ctx, c.snap.ID)
	if err != nil || now.DeltaManifestList != c.snap.DeltaManifestList {
		return nil, nil //nolint:nilerr // expired or rolled back: read anew
	}
	if c.snap.ID > st.snap.ID {
		was, err := st.snapshots.Get(ctx, st.snap.ID)
		if err != nil || was.DeltaManifestList != st.snap.DeltaManifestList {
			return nil, nil //nolint:nilerr // a tag's state, or one that is no more
		}
		return c.old, nil
	}
	out := c.old.clone()
	for id := c.snap.ID + 1; id <= st.snap.ID; id++ {
		s := st.snap
		if id < st.snap.ID {
			if s, err = st.snapshots.Get(ctx, id); err != nil {
				return nil, nil //nolint:nilerr // expired meanwhile: read anew
			}
		}
		if s.CommitKind == string(commit.Overwrite) {
			return nil, nil
		}
		metas, err := t.env.Manifests.List(ctx, t.env.IO, t.dir+"/manifest/"+s.DeltaManifestList)
		if err != nil {
			return nil, err
		}
		for _, m := range metas {
			es, err := t.env.Manifests.Entries(ctx, t.env.IO, t.dir+"/manifest/"+m.Name)
			if err != nil {
				return nil, err
			}
			for i := range es {
				out.add(&es[i])
			}
		}
	}
	return out, nil
}
