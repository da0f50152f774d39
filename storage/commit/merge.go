package commit

import (
	"context"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// mergeResult is what merging made of the manifests of one snapshot.
type mergeResult struct {
	before, after []manifest.FileMeta
	made          []string
}

// base returns the manifests of the next snapshot's base list: those of the
// newest snapshot, in order, merged where there are many. After a lost race the
// result is used again while its input is still the beginning of the list; else
// this attempt does not merge, so that a race is not lost to merging.
func (j *job) base(ctx context.Context, latest *snapshot.Snapshot) ([]manifest.FileMeta, error) {
	before, err := j.p.manifestsOf(ctx, latest)
	if err != nil {
		return nil, err
	}
	if j.tried {
		m := j.merged
		if m != nil && len(m.before) <= len(before) {
			same := true
			for i := range m.before {
				same = same && m.before[i].Name == before[i].Name
			}
			if same {
				return append(m.after[:len(m.after):len(m.after)], before[len(m.before):]...), nil
			}
		}
		if m != nil {
			j.drop(m.made...)
			j.merged = nil
		}
		if !j.c.Manifests {
			return before, nil
		}
	}
	after, made, err := j.merge(ctx, before)
	if err != nil {
		return nil, err
	}
	j.merged = &mergeResult{before, after, made}
	return after, nil
}

// manifestsOf returns the manifests of a snapshot, base then delta.
func (p *Publisher) manifestsOf(ctx context.Context, s *snapshot.Snapshot) ([]manifest.FileMeta, error) {
	if s == nil {
		return nil, nil
	}
	var out []manifest.FileMeta
	for _, name := range []string{s.BaseManifestList, s.DeltaManifestList} {
		l, err := p.o.Manifests.List(ctx, p.o.IO, p.o.Dir+"/manifest/"+name)
		if err != nil {
			return nil, err
		}
		out = append(out, l...)
	}
	return out, nil
}

// merge rewrites small manifests into larger ones (Java: ManifestFileMerger). The
// set of live files stays the same, and the order of manifests too, because
// later entries override earlier ones.
func (j *job) merge(ctx context.Context, in []manifest.FileMeta) (out []manifest.FileMeta, made []string, err error) {
	target, err := j.options.Size("manifest.target-file-size", 8<<20)
	if err != nil {
		return nil, nil, err
	}
	full, err := j.options.Size("manifest.full-compaction-threshold-size", 16<<20)
	if err != nil {
		return nil, nil, err
	}
	least, err := j.options.Int("manifest.merge-min-count", 30)
	if err != nil {
		return nil, nil, err
	}
	changing := int64(0)
	for i := range in {
		if in[i].Deleted > 0 || in[i].Size < target {
			changing += in[i].Size
		}
	}
	if changing >= full && len(in) > 1 || j.c.Manifests {
		return j.mergeAll(ctx, in, target)
	}
	var group []manifest.FileMeta
	size := int64(0)
	take := func() error {
		metas, fresh, err := j.mergeGroup(ctx, group)
		out = append(out, metas...)
		made = append(made, fresh...)
		group, size = nil, 0
		return err
	}
	for _, m := range in {
		group = append(group, m)
		if size += m.Size; size >= target {
			if err := take(); err != nil {
				return nil, nil, err
			}
		}
	}
	if int64(len(group)) >= least {
		if err := take(); err != nil {
			return nil, nil, err
		}
	}
	return append(out, group...), made, nil
}

// mergeGroup writes the entries of adjacent manifests as few: an ADD and the
// DELETE of it cancel, a DELETE of what is in an earlier manifest stays.
func (j *job) mergeGroup(ctx context.Context, in []manifest.FileMeta) (out []manifest.FileMeta, made []string, err error) {
	if len(in) < 2 {
		return in, nil, nil
	}
	lists, err := j.p.entries(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	deleted := map[manifest.Identity]int{} // where its last entry is in kept, -1 = nowhere
	total := 0
	for _, l := range lists {
		total += len(l)
		for i := range l {
			if l[i].Kind == manifest.Delete {
				deleted[l[i].Identity()] = -1
			}
		}
	}
	kept := make([]manifest.Entry, 0, total)
	gone := map[int]bool{}
	for _, l := range lists {
		for i := range l {
			e := l[i]
			if len(deleted) > 0 {
				id := e.Identity()
				if at, ok := deleted[id]; ok {
					if e.Kind == manifest.Delete && at >= 0 && kept[at].Kind == manifest.Add {
						gone[at] = true
						deleted[id] = -1
						continue
					}
					deleted[id] = len(kept)
				}
			}
			kept = append(kept, e)
		}
	}
	live := kept
	if len(gone) > 0 {
		live = make([]manifest.Entry, 0, len(kept)-len(gone))
		for i := range kept {
			if !gone[i] {
				live = append(live, kept[i])
			}
		}
	}
	return j.rewrite(ctx, live)
}

func (j *job) rewrite(ctx context.Context, entries []manifest.Entry) (out []manifest.FileMeta, made []string, err error) {
	out, err = j.manifests(ctx, entries)
	for i := range out {
		made = append(made, out[i].Name)
	}
	return out, made, err
}

// mergeAll rewrites every manifest that is small or holds removals, and those that
// hold a removed file; big ones that hold none stay as they are and go to the
// front, which is no matter: nothing is removed any more.
func (j *job) mergeAll(ctx context.Context, in []manifest.FileMeta, target int64) (out []manifest.FileMeta, made []string, err error) {
	lists, err := j.p.entries(ctx, in)
	if err != nil {
		return nil, nil, err
	}
	alive := map[manifest.Identity]bool{} // of the identities that some entry removes: does it live?
	for _, l := range lists {
		for i := range l {
			if l[i].Kind == manifest.Delete {
				alive[l[i].Identity()] = false
			}
		}
	}
	last := map[manifest.Identity]manifest.Entry{}
	var live []manifest.Entry
	for n, l := range lists {
		rewrite := in[n].Deleted > 0 || in[n].Size < target
		hit := false
		if len(alive) > 0 {
			for i := range l {
				if _, ok := alive[l[i].Identity()]; ok {
					hit = true
					break
				}
			}
		}
		if !rewrite && !hit {
			out = append(out, in[n])
			continue
		}
		for i := range l {
			e := l[i]
			if hit {
				id := e.Identity()
				if _, ok := alive[id]; ok {
					if alive[id] = e.Kind == manifest.Add; e.Kind == manifest.Add {
						last[id] = e
					}
					continue
				}
			}
			live = append(live, e)
		}
	}
	for id, lives := range alive {
		if lives {
			live = append(live, last[id])
		}
	}
	metas, made, err := j.rewrite(ctx, live)
	return append(out, metas...), made, err
}

// entries reads manifests, side by side.
func (p *Publisher) entries(ctx context.Context, metas []manifest.FileMeta) ([][]manifest.Entry, error) {
	lists := make([][]manifest.Entry, len(metas))
	g, ctx := errgroup.WithContext(ctx)
	g.SetLimit(max(4, 2*cores.Count()))
	for i := range metas {
		g.Go(func() (err error) {
			lists[i], err = p.o.Manifests.Entries(ctx, p.o.IO, p.o.Dir+"/manifest/"+metas[i].Name)
			return err
		})
	}
	return lists, g.Wait()
}

// live returns the live files of a snapshot in some partitions, nil = all.
func (p *Publisher) live(ctx context.Context, s *snapshot.Snapshot, parts map[string]bool) ([]*manifest.Entry, error) {
	metas, err := p.manifestsOf(ctx, s)
	if err != nil {
		return nil, err
	}
	if parts != nil {
		kept := metas[:0:0]
		for _, m := range metas {
			// Bounds that are equal are those of the only partition in it.
			st := &m.PartitionStats
			if len(st.Min) > 0 && string(st.Min) == string(st.Max) && !anyNull(st.NullCounts) && !parts[string(st.Min)] {
				continue
			}
			kept = append(kept, m)
		}
		metas = kept
	}
	lists, err := p.entries(ctx, metas)
	if err != nil {
		return nil, err
	}
	return overlay(lists, parts), nil
}

func anyNull(counts []int64) bool {
	for _, n := range counts {
		if n != 0 {
			return true
		}
	}
	return false
}

// overlay lays lists of entries over each other, in order: a later ADD or DELETE
// of the same file wins. Only the identities that some DELETE names go through a
// map.
func overlay(lists [][]manifest.Entry, parts map[string]bool) []*manifest.Entry {
	deleted := map[manifest.Identity]bool{}
	total := 0
	for _, l := range lists {
		total += len(l)
		for i := range l {
			if l[i].Kind == manifest.Delete {
				deleted[l[i].Identity()] = false
			}
		}
	}
	out := make([]*manifest.Entry, 0, total)
	late := map[manifest.Identity]*manifest.Entry{}
	for _, l := range lists {
		for i := range l {
			e := &l[i]
			if parts != nil && !parts[string(e.Partition)] {
				continue
			}
			if len(deleted) > 0 {
				id := e.Identity()
				if _, ok := deleted[id]; ok {
					if deleted[id] = e.Kind == manifest.Add; e.Kind == manifest.Add {
						late[id] = e
					}
					continue
				}
			}
			out = append(out, e)
		}
	}
	for id, alive := range deleted {
		if alive {
			out = append(out, late[id])
		}
	}
	return out
}
