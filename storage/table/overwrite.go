package table

import (
	"bytes"
	"context"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// upgradeOverwritten moves the level-0 files of buckets that c replaces whole to
// the highest level, where their key ranges do not overlap: nothing is below
// them, so nobody has to merge, and compaction makes no changelog of what an
// overwrite has none for. Source: FileStoreCommitImpl.tryUpgrade.
func (t *FileStore) upgradeOverwritten(ctx context.Context, c commit.Changes) (commit.Changes, error) {
	if c.Overwrite == nil || len(c.Files) == 0 {
		return c, nil
	}
	st, err := t.state(ctx, snapshot.Ref{Branch: c.Branch}, nil)
	if err != nil {
		return c, err
	}
	if !st.primaryKey() || !st.options.Flag("overwrite-upgrade", true) {
		return c, nil
	}
	o, err := compact.ParseOptions(st.options, true)
	if err != nil {
		return c, err
	}
	f := commitFiles{t, t.branch(c.Branch)}
	buckets := map[commit.BucketID][]int{}
	for i := range c.Files {
		e := &c.Files[i]
		if e.Bucket < 0 || e.Kind != manifest.Add || !replaced(&c, e.Partition) {
			continue
		}
		id := commit.BucketID{Partition: string(e.Partition), Bucket: e.Bucket}
		buckets[id] = append(buckets[id], i)
	}
	out := c
	out.Files = slices.Clone(c.Files)
	for _, files := range buckets {
		ok, err := apart(c.Files, files, func(image []byte) ([]byte, error) { return f.Key(st.schema, image) })
		if err != nil {
			return c, err
		}
		for _, i := range files {
			if ok {
				out.Files[i].File = compact.Upgraded(c.Files[i].File, o.Levels-1)
			}
		}
	}
	return out, nil
}

// apart reports whether files are of level 0, hold no retraction, and their key
// ranges do not overlap.
func apart(all []manifest.Entry, files []int, key func([]byte) ([]byte, error)) (bool, error) {
	type span struct{ lo, hi []byte }
	var spans []span
	for _, i := range files {
		m := all[i].File
		if m.Level != 0 || m.DeleteRows != 0 {
			return false, nil
		}
		lo, err := key(m.MinKey)
		if err != nil {
			return false, err
		}
		hi, err := key(m.MaxKey)
		if err != nil {
			return false, err
		}
		spans = append(spans, span{lo, hi})
	}
	slices.SortFunc(spans, func(a, b span) int { return bytes.Compare(a.lo, b.lo) })
	for i := 1; i < len(spans); i++ {
		if bytes.Compare(spans[i].lo, spans[i-1].hi) <= 0 {
			return false, nil
		}
	}
	return true, nil
}
