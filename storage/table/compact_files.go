package table

import (
	"context"
	"errors"
	"sync"

	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// After every commit somebody asks whether the buckets that it touched need a
// compaction. Going through all manifests for that costs as much as a plan of the
// whole table; so the live files of a branch's newest known state are kept by
// bucket and taken forward by the delta manifests of the snapshots since, which
// the manifest cache has as a rule.

// keptFiles is how many files of a branch are remembered at most; a table with
// more is gone through anew each time.
const keptFiles = 200_000

// keptSteps is over how many snapshots a remembered state is taken forward;
// beyond that it is read anew.
const keptSteps = 64

// bucketStates are the remembered states of a table. The zero value is ready.
type bucketStates struct {
	mu sync.Mutex // guards by
	by map[string]*bucketState
}

// bucketState is the live files of one branch at one snapshot.
type bucketState struct {
	mu    sync.Mutex // guards all below, held while manifests are read
	snap  *snapshot.Snapshot
	files bucketFiles
}

type bucketFiles map[commit.BucketID]map[fileID]manifest.Entry

// fileID tells the files of a bucket apart.
type fileID struct {
	name, external string
	level          int32
}

func fileIDOf(e *manifest.Entry) fileID {
	return fileID{e.File.Name, e.File.ExternalPath, e.File.Level}
}

func (b *bucketStates) of(branch string) *bucketState {
	b.mu.Lock()
	defer b.mu.Unlock()
	s, ok := b.by[branch]
	if !ok {
		if b.by == nil {
			b.by = map[string]*bucketState{}
		}
		s = &bucketState{}
		b.by[branch] = s
	}
	return s
}

// filesOf calls f with the live files of st by bucket. f must not keep the maps;
// the entries' files are shared.
func (t *FileStore) filesOf(ctx context.Context, st *state, f func(bucketFiles)) error {
	if st.snap == nil {
		f(nil)
		return nil
	}
	s := t.buckets.of(st.name)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !sameSnapshot(s.snap, st.snap) {
		ok, err := t.forward(ctx, s, st)
		if err != nil {
			return err
		}
		if !ok {
			files := bucketFiles{}
			n := 0
			for _, list := range []string{st.snap.BaseManifestList, st.snap.DeltaManifestList} {
				k, err := t.lay(ctx, files, list)
				if err != nil {
					return t.explain(ctx, st, snapshot.Ref{Kind: snapshot.ID, ID: st.snap.ID}, err)
				}
				n += k
			}
			if n > keptFiles || s.snap != nil && s.snap.ID > st.snap.ID {
				f(files)
				return nil
			}
			s.snap, s.files = st.snap, files
		}
	}
	f(s.files)
	return nil
}

func sameSnapshot(a, b *snapshot.Snapshot) bool {
	return a == b || a != nil && b != nil && a.ID == b.ID && a.DeltaManifestList == b.DeltaManifestList
}

// forward takes a remembered state to st; false when that cannot be done. A state
// that failed half way is forgotten.
func (t *FileStore) forward(ctx context.Context, s *bucketState, st *state) (bool, error) {
	if s.snap == nil || st.snap.ID <= s.snap.ID || st.snap.ID-s.snap.ID > keptSteps {
		return false, nil
	}
	from := s.snap
	now, err := st.snapshots.Get(ctx, from.ID)
	if errors.Is(err, snapshot.ErrNotFound) || err == nil && !sameSnapshot(now, from) {
		return false, nil // expired, or rolled back and written anew
	}
	if err != nil {
		return false, err
	}
	for id := from.ID + 1; id <= st.snap.ID; id++ {
		next := st.snap
		if id < st.snap.ID {
			if next, err = st.snapshots.Get(ctx, id); err != nil {
				s.snap = nil
				if errors.Is(err, snapshot.ErrNotFound) {
					return false, nil
				}
				return false, err
			}
		}
		s.snap = nil // until the step is whole
		if _, err := t.lay(ctx, s.files, next.DeltaManifestList); err != nil {
			return false, t.explain(ctx, st, snapshot.Ref{Kind: snapshot.ID, ID: st.snap.ID}, err)
		}
		s.snap = next
	}
	return true, nil
}

// lay applies the entries of a manifest list's manifests to files and returns how
// many files it added more than it removed.
func (t *FileStore) lay(ctx context.Context, files bucketFiles, list string) (int, error) {
	metas, err := t.env.Manifests.List(ctx, t.env.IO, t.dir+"/manifest/"+list)
	if err != nil {
		return 0, err
	}
	n := 0
	for i := range metas {
		es, err := t.env.Manifests.Entries(ctx, t.env.IO, t.dir+"/manifest/"+metas[i].Name)
		if err != nil {
			return n, err
		}
		for j := range es {
			e := &es[j]
			id := commit.BucketID{Partition: string(e.Partition), Bucket: e.Bucket}
			b := files[id]
			if e.Kind == manifest.Delete {
				// A file that has got other indexes is deleted and added under one
				// fileID, in either order.
				if have, ok := b[fileIDOf(e)]; ok && have.Identity() == e.Identity() {
					n--
					delete(b, fileIDOf(e))
				}
				if len(b) == 0 {
					delete(files, id)
				}
				continue
			}
			if b == nil {
				b = map[fileID]manifest.Entry{}
				files[id] = b
			}
			if _, ok := b[fileIDOf(e)]; !ok {
				n++
			}
			b[fileIDOf(e)] = *e
		}
	}
	return n, nil
}

// Need says whether a bucket is to be compacted.
type Need struct {
	Due bool // a compaction would do something
	// Stop says that writers should wait: there are more than
	// num-sorted-run.stop-trigger sorted runs.
	Stop        bool
	Runs, Files int // sorted runs (of a primary-key table) and data files now
}

// NeedsCompaction reports on one bucket of the state that at names; partition is
// a BinaryRow image. It reads no data and, as long as it is asked after every few
// commits, only what they added. Tables that are write-only, or that have no
// compaction, never need one.
func (t *FileStore) NeedsCompaction(ctx context.Context, at snapshot.Ref, partition []byte, bucket int32) (Need, error) {
	st, err := t.state(ctx, at, nil)
	if err != nil {
		return Need{}, err
	}
	keyed := st.primaryKey()
	if st.refuse() != nil || compact.Refuse(st.options, keyed) != nil || bucket == postponeBucket {
		return Need{}, nil
	}
	o, err := compact.ParseOptions(st.options, keyed)
	if err != nil {
		return Need{}, err
	}
	id := commit.BucketID{Partition: string(partition), Bucket: bucket}
	var files []*manifest.DataFile
	n := Need{}
	itself, err := st.clustersItself()
	if err != nil {
		return Need{}, err
	}
	whole := keyed || itself || o.DeletionFiles || o.ForceRewrite || st.orderedBuckets()
	err = t.filesOf(ctx, st, func(all bucketFiles) {
		n.Files = len(all[id])
		for _, e := range all[id] {
			// Of the many files of an append table without buckets only the small ones
			// matter, and those with deletion vectors.
			if whole || e.File.Size < o.Small {
				files = append(files, e.File)
			}
		}
	})
	if err != nil {
		return Need{}, err
	}
	if keyed {
		l := compact.NewLevels(files, o)
		n.Runs = len(l.Runs)
		if !o.WriteOnly {
			m, err := t.moment(ctx, st, o, &l)
			if err != nil {
				return Need{}, err
			}
			n.Due = compact.Pick(l, o, m) != nil
			n.Stop = o.StopWriting(n.Runs)
		}
		return n, nil
	}
	if o.WriteOnly || len(files) == 0 {
		return n, nil
	}
	if itself {
		n.Due = clusterDue(files, o)
		return n, nil
	}
	dvs, err := t.vectorsOf(ctx, st, map[commit.BucketID]bool{id: true})
	if err != nil {
		return n, err
	}
	n.Due = len(pickAppend(appendFiles(files, dvs), o, st, false)) > 0
	return n, nil
}
