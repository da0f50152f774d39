package table

import (
	"context"
	"math"

	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// ManifestOptions say whose manifests to compact.
type ManifestOptions struct {
	Branch  string
	Dry     bool                                               // only look
	Publish func(ctx context.Context) (done func(), err error) // see CompactOptions
}

// ManifestReport says what a compaction of manifests did.
type ManifestReport struct {
	SnapshotID    int64 // 0 = nothing was published
	Before, After int   // manifests of the newest snapshot; After counts those of the one published
}

// CompactManifests rewrites the manifests of the newest snapshot that are small or
// hold removals into as few as can be, in a COMPACT snapshot without changes (Java:
// FileStoreCommitImpl.compactManifest). When there are none such it publishes
// nothing.
func (t *FileStore) CompactManifests(ctx context.Context, o ManifestOptions) (*ManifestReport, error) {
	r := &ManifestReport{}
	st, err := t.state(ctx, snapshot.Ref{Branch: o.Branch}, nil)
	if err != nil || st.snap == nil {
		return r, err
	}
	before, err := t.manifestsOf(ctx, st.snap)
	if err != nil {
		return nil, err
	}
	r.Before, r.After = len(before), len(before)
	target, err := schema.Options(st.schema.Options).Size("manifest.target-file-size", 8<<20)
	if err != nil {
		return nil, err
	}
	small, removals := 0, int64(0)
	for i := range before {
		if removals += before[i].Deleted; before[i].Size < target {
			small++
		}
	}
	if o.Dry || small < 2 && removals == 0 {
		return r, nil
	}
	c := commit.Changes{Kind: commit.Compact, Branch: o.Branch, Identifier: math.MaxInt64, Base: st.snap.ID, Force: true, Manifests: true}
	if r.SnapshotID, err = t.publish(ctx, c, o.Publish); err != nil {
		return nil, err
	}
	now, err := st.snapshots.Get(ctx, r.SnapshotID)
	if err != nil {
		return nil, err
	}
	after, err := t.manifestsOf(ctx, now)
	r.After = len(after)
	return r, err
}

// manifestsOf returns the manifests of a snapshot, base then delta.
func (t *FileStore) manifestsOf(ctx context.Context, s *snapshot.Snapshot) (out []manifest.FileMeta, err error) {
	for _, name := range []string{s.BaseManifestList, s.DeltaManifestList} {
		l, err := t.env.Manifests.List(ctx, t.env.IO, t.dir+"/manifest/"+name)
		if err != nil {
			return nil, err
		}
		out = append(out, l...)
	}
	return out, nil
}

// LongLivedChangelogs returns how many changelogs outlive their snapshots.
func (t *FileStore) LongLivedChangelogs(ctx context.Context, branch string) (int, error) {
	ids, err := t.branch(branch).snapshots.ChangelogIDs(ctx)
	return len(ids), err
}
