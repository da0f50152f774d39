package commit

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// Types of index files that have rules of their own.
const (
	deletionVectors = "DELETION_VECTORS"
	hashIndex       = "HASH"
)

// postponeBucket holds rows that are in no bucket yet.
const postponeBucket = -2

func newUUID() string { return uuid.NewString() }

// unaware reports whether the table has no buckets.
func (j *job) unaware() bool {
	n, err := j.options.Int("bucket", -1)
	return err == nil && n == -1 && len(j.sch.PrimaryKeys) == 0
}

// writeIndex returns the name of the snapshot's index manifest: the old one where
// no index file changed, "" where there are none.
func (j *job) writeIndex(ctx context.Context, st *state) (string, error) {
	old, err := st.oldIndexes(ctx)
	if err != nil {
		return "", err
	}
	for name := range j.made { // of a lost attempt
		if strings.HasPrefix(name, "index-manifest-") {
			j.drop(name)
		}
	}
	if len(st.indexes) == 0 {
		if st.latest == nil {
			return "", nil
		}
		return st.latest.IndexManifest, nil
	}
	entries, err := combine(old, st.indexes, j.unaware())
	if err != nil {
		return "", st.conflict("%v", err)
	}
	if len(entries) == 0 {
		return "", nil
	}
	data := manifest.EncodeIndex(entries, j.arity.Partition, j.codec)
	name := j.name("index-manifest")
	if err := j.create(ctx, name, data); err != nil {
		return "", err
	}
	j.p.o.Manifests.PutIndex(j.path(name), entries, len(data))
	return name, nil
}

// combine applies changes to the live index files (Java: IndexManifestFileHandler):
// a bucket has one HASH file, all others go by their names. A data file has one
// vector; where the table has buckets, whoever adds a bucket's vectors names the
// files that they stand for, all of them.
func combine(old, changes []manifest.IndexEntry, unaware bool) ([]manifest.IndexEntry, error) {
	type slot struct {
		typ, partition, name string
		bucket               int32
	}
	of := func(e *manifest.IndexEntry) slot {
		if e.Type == hashIndex {
			return slot{typ: e.Type, partition: partitionKey(e.Partition), bucket: e.Bucket}
		}
		return slot{typ: e.Type, name: e.Name}
	}
	bucket := func(e *manifest.IndexEntry) slot {
		return slot{typ: e.Type, partition: partitionKey(e.Partition), bucket: e.Bucket}
	}
	at := map[slot]int{}
	out := make([]manifest.IndexEntry, 0, len(old)+len(changes))
	vectors := map[string]bool{}
	put := func(e manifest.IndexEntry) {
		e.Kind = manifest.Add
		if len(e.Partition) == 0 {
			e.Partition = []byte(partitionKey(nil))
		}
		at[of(&e)] = len(out)
		out = append(out, e)
		for _, v := range e.DVs {
			vectors[v.DataFile] = true
		}
	}
	for _, e := range old {
		put(e)
	}
	gone := map[int]bool{}
	// Removals first, so that they do not remove what is new.
	for i := range changes {
		e := &changes[i]
		if e.Kind != manifest.Delete {
			continue
		}
		k := of(e)
		n, ok := at[k]
		if !ok {
			if k.name == "" {
				continue
			}
			return nil, fmt.Errorf("index file %s is gone", e.Name)
		}
		gone[n] = true
		delete(at, k)
		for _, v := range out[n].DVs {
			delete(vectors, v.DataFile)
		}
	}
	left := map[slot]bool{} // buckets with vectors
	if !unaware {
		for i := range out {
			if !gone[i] && out[i].Type == deletionVectors {
				left[bucket(&out[i])] = true
			}
		}
	}
	for i := range changes {
		e := &changes[i]
		if e.Kind != manifest.Add {
			continue
		}
		if e.Type == deletionVectors && left[bucket(e)] {
			// Whoever made it did not know of those, and of the rows that they delete.
			return nil, fmt.Errorf("the deletion vectors of a bucket were changed by another commit")
		}
		k := of(e)
		if n, ok := at[k]; ok {
			if k.name != "" {
				return nil, fmt.Errorf("index file %s is there already", e.Name)
			}
			gone[n] = true
		} else if k.name != "" {
			for _, v := range e.DVs {
				if vectors[v.DataFile] {
					return nil, fmt.Errorf("data file %s has a deletion vector already", v.DataFile)
				}
			}
		}
		put(*e)
	}
	live := out[:0:0]
	for i := range out {
		if !gone[i] {
			live = append(live, out[i])
		}
	}
	return live, nil
}

// addHashes makes the index files of the buckets with dynamic hashes, on top of
// those of the newest snapshot. Those of a lost attempt are used again where the
// bucket is as it was.
func (s *state) addHashes(ctx context.Context) error {
	old, err := s.oldIndexes(ctx)
	if err != nil {
		return err
	}
	adds := map[BucketID][]int32{}
	parts := map[string]bool{}
	for b, h := range s.c.Hashes {
		b.Partition = partitionKey([]byte(b.Partition))
		adds[b] = h
		parts[b.Partition] = true
	}
	var live []manifest.IndexEntry
	for _, e := range old {
		if e.Type == hashIndex && parts[partitionKey(e.Partition)] && (s.c.Overwrite == nil || !s.isReplaced(e.Partition)) {
			live = append(live, e)
		}
	}
	made, err := s.p.o.Files.Hashes(ctx, s.sch, live, adds, s.hashes)
	// Known even when it failed, so that cleanUp finds them.
	for from, e := range made {
		if was, ok := s.hashes[from]; ok && was.Name == e.Name {
			continue
		}
		path, perr := s.p.o.Files.IndexPath(s.sch, &e)
		if perr != nil {
			return perr
		}
		s.hashPaths[e.Name] = path
		s.unsynced = append(s.unsynced, path)
	}
	if he := (*HashError)(nil); errors.As(err, &he) {
		return s.conflict("%v", he)
	}
	if err != nil {
		return err
	}
	s.hashes = made
	s.indexes = slices.Clone(s.indexes)
	for _, from := range slices.Sorted(maps.Keys(made)) {
		s.indexes = append(s.indexes, made[from])
	}
	return nil
}

// strayHashes are the index files that were made and are not named by the
// published snapshot.
func (j *job) strayHashes() []string {
	var out []string
	used := map[string]bool{}
	if j.published {
		for _, e := range j.hashes {
			used[e.Name] = true
		}
	}
	for name, path := range j.hashPaths {
		if !used[name] {
			out = append(out, path)
		}
	}
	return out
}
