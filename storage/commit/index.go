package commit

import (
	"context"
	"fmt"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// Types of index files that have rules of their own.
const (
	deletionVectors = "DELETION_VECTORS"
	hashIndex       = "HASH"
)

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
	for name := range j.made {
		if len(name) > 15 && name[:15] == "index-manifest-" {
			j.drop(name)
		}
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
// of HASH files, and of deletion vectors where the table has buckets, a bucket
// has one; all others go by their names, and a data file has one vector.
func combine(old, changes []manifest.IndexEntry, unaware bool) ([]manifest.IndexEntry, error) {
	type slot struct {
		typ, partition, name string
		bucket               int32
	}
	of := func(e *manifest.IndexEntry) slot {
		if e.Type == hashIndex || e.Type == deletionVectors && !unaware {
			return slot{typ: e.Type, partition: partitionKey(e.Partition), bucket: e.Bucket}
		}
		return slot{typ: e.Type, name: e.Name}
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
	for i := range changes {
		e := &changes[i]
		if e.Kind != manifest.Add {
			continue
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
