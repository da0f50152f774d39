package table

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// What expiry may delete (semantics.md 10; Java: ExpireSnapshotsImpl,
// SnapshotDeletion, TagDeletion). Snapshots [begin, end) go:
//
//	data files   that the deltas of (begin, end] remove, unless the nearest tag
//	             before that snapshot holds them. A file whose level changes is
//	             removed and added in one delta: it stays.
//	changelog    files that [begin, end) added
//	manifests    lists, manifests, index files and statistics of [begin, end) that
//	             neither end nor a tag around the range names
//	snapshots    last, so that a run that was cut off can be made again
//
// Java counts no references across branches. Here nothing that another branch
// names is deleted: a file too many is an orphan, a file too few is lost data.

// Expire removes snapshots that the table's retention options, laid under o, do
// not keep, with the files that nothing else needs. Snapshots that consumers or
// transactions of this process have pinned stay, and all after them.
func (t *FileStore) Expire(ctx context.Context, o ExpireOptions) (*ExpireReport, error) {
	b := t.branch(o.Branch)
	unlock, err := b.maintain(ctx)
	if err != nil {
		return nil, err
	}
	defer unlock()
	r := &ExpireReport{}
	sch, err := b.schemas.Latest(ctx)
	if err != nil {
		return nil, err
	}
	keep, err := retentionOf(sch.Options, o)
	if err != nil {
		return nil, err
	}
	begin, end, err := t.expireRange(ctx, b, keep)
	if err != nil || end == 0 {
		return r, err
	}
	if end <= begin {
		if !o.Dry && !b.snapshots.HasEarliest(ctx) {
			return r, b.snapshots.WriteEarliest(ctx, begin)
		}
		return r, nil
	}
	x, err := t.newEraser(ctx, b, sch)
	if err != nil {
		return nil, err
	}
	return r, x.expire(ctx, begin, end, o.Dry, r)
}

// retention is what expiry keeps.
type retention struct {
	most, least int64 // snapshots
	olderThan   int64 // milliseconds: only what was followed by something older goes
	deletes     int64
}

func retentionOf(opts schema.Options, o ExpireOptions) (k retention, err error) {
	for _, x := range []struct {
		to   *int64
		key  string
		def  int64
		over int
	}{
		{&k.most, "snapshot.num-retained.max", math.MaxInt32, o.RetainMax},
		{&k.least, "snapshot.num-retained.min", 10, o.RetainMin},
		{&k.deletes, "snapshot.expire.limit", 50, o.MaxDeletes},
	} {
		if *x.to = int64(x.over); x.over > 0 {
			continue
		}
		if *x.to, err = opts.Int(x.key, x.def); err != nil {
			return k, err
		}
	}
	if o.RetainMax > 0 && o.RetainMin == 0 {
		k.least = min(k.least, k.most)
	}
	if o.RetainMin > 0 && o.RetainMax == 0 {
		k.most = max(k.least, k.most)
	}
	if k.most < k.least || k.least < 1 {
		return k, fmt.Errorf("snapshots to keep: at most %d, at least %d", k.most, k.least)
	}
	age, err := opts.Duration("snapshot.time-retained", time.Hour)
	if err != nil {
		return k, err
	}
	k.olderThan = time.Now().Add(-age).UnixMilli()
	if !o.OlderThan.IsZero() {
		k.olderThan = o.OlderThan.UnixMilli()
	}
	// Changelogs that outlive their snapshots are moved, not deleted.
	for key, limit := range map[string]int64{"changelog.num-retained.min": k.least, "changelog.num-retained.max": k.most} {
		n, err := opts.Int(key, limit)
		if err != nil {
			return k, err
		}
		if _, set := opts[key]; set && n > limit {
			return k, &fileio.UnsupportedError{Feature: "expiring snapshots of a table with option " + key}
		}
	}
	if d, err := opts.Duration("changelog.time-retained", age); err != nil {
		return k, err
	} else if d > age {
		return k, &fileio.UnsupportedError{Feature: "expiring snapshots of a table with option changelog.time-retained"}
	}
	return k, nil
}

// expireRange returns the snapshots [begin, end) to expire; end is 0 when there
// is no snapshot at all.
func (t *FileStore) expireRange(ctx context.Context, b *branch, k retention) (begin, end int64, err error) {
	newest, err := b.snapshots.Latest(ctx)
	if err != nil || newest == nil {
		return 0, 0, err
	}
	latest := newest.ID
	if begin, err = b.snapshots.EarliestID(ctx); err != nil || begin == 0 {
		return 0, 0, err
	}
	end = min(latest-k.least+1, begin+k.deletes)
	next, ok, err := consumersNext(ctx, b)
	if err != nil {
		return 0, 0, err
	}
	if ok {
		end = min(end, next)
	}
	if pins := b.snapshots.Pinned(); len(pins) > 0 {
		end = min(end, pins[0])
	}
	for id := max(latest-k.most+1, begin); id < end; id++ {
		s, err := b.snapshots.At(ctx, id+1)
		if errors.Is(err, fileio.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, 0, err
		}
		if k.olderThan <= s.TimeMillis {
			return begin, max(id, begin), nil
		}
	}
	return begin, max(end, begin), nil
}

// consumersNext returns the oldest snapshot that a consumer still has to read.
func consumersNext(ctx context.Context, b *branch) (next int64, ok bool, err error) {
	io, dir := b.snapshots.IO(), b.snapshots.Root()+"/consumer"
	es, err := io.List(ctx, dir)
	if err != nil {
		return 0, false, err
	}
	for _, e := range es {
		if !strings.HasPrefix(e.Name, "consumer-") || e.Dir {
			continue
		}
		raw, err := io.ReadFile(ctx, dir+"/"+e.Name)
		if errors.Is(err, fileio.ErrNotExist) {
			continue
		}
		if err != nil {
			return 0, false, err
		}
		var c struct {
			NextSnapshot *int64 `json:"nextSnapshot"`
		}
		if err := json.Unmarshal(raw, &c); err != nil || c.NextSnapshot == nil {
			return 0, false, &fileio.CorruptionError{Path: dir + "/" + e.Name, Offset: -1, Reason: "consumer does not parse", Err: err}
		}
		if !ok || *c.NextSnapshot < next {
			next, ok = *c.NextSnapshot, true
		}
	}
	return next, ok, nil
}

// eraser deletes the files of states that go.
type eraser struct {
	t       *FileStore
	b       *branch
	sch     *schema.Table
	files   commitFiles
	tags    []*snapshot.Snapshot // one per snapshot id, ascending
	foreign map[string]bool      // paths that other branches name
	buckets map[string]bool      // directories that lost a file
}

func (t *FileStore) newEraser(ctx context.Context, b *branch, sch *schema.Table) (*eraser, error) {
	x := &eraser{t: t, b: b, sch: sch, files: commitFiles{t, b}, foreign: map[string]bool{}, buckets: map[string]bool{}}
	var err error
	if x.tags, err = taggedSnapshots(ctx, b.snapshots); err != nil {
		return nil, err
	}
	names, err := t.Branches(ctx)
	if err != nil {
		return nil, err
	}
	for _, n := range append(names, "") {
		if n == b.name {
			continue
		}
		if err := x.protect(ctx, t.branch(n)); err != nil {
			return nil, err
		}
	}
	return x, nil
}

// taggedSnapshots returns the states that tags hold, one per id, ascending.
func taggedSnapshots(ctx context.Context, m *snapshot.Manager) ([]*snapshot.Snapshot, error) {
	names, err := m.Tags(ctx)
	if err != nil {
		return nil, err
	}
	var out []*snapshot.Snapshot
	for _, n := range names {
		s, err := m.Tag(ctx, n)
		if errors.Is(err, snapshot.ErrNotFound) {
			continue
		}
		if err != nil {
			return nil, err
		}
		if !slices.ContainsFunc(out, func(o *snapshot.Snapshot) bool { return o.ID == s.ID }) {
			out = append(out, s)
		}
	}
	slices.SortFunc(out, func(a, b *snapshot.Snapshot) int { return int(a.ID - b.ID) })
	return out, nil
}

// protect adds everything that the states of a branch name to foreign.
func (x *eraser) protect(ctx context.Context, b *branch) error {
	states, err := taggedSnapshots(ctx, b.snapshots)
	if err != nil {
		return err
	}
	ids, err := b.snapshots.IDs(ctx)
	if err != nil {
		return err
	}
	for _, id := range ids {
		s, err := b.snapshots.At(ctx, id)
		if errors.Is(err, fileio.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		states = append(states, s)
	}
	for _, s := range states {
		meta, err := x.metadata(ctx, s, true)
		if missing := (*fileio.MissingError)(nil); errors.As(err, &missing) {
			continue // it was damaged before
		}
		if err != nil {
			return err
		}
		for _, p := range meta.all() {
			x.foreign[p] = true
		}
		live, err := b.publisher.Live(ctx, s)
		if err != nil {
			return err
		}
		for _, e := range live {
			if err := x.addPaths(x.foreign, e); err != nil {
				return err
			}
		}
	}
	return nil
}

func (x *eraser) addPaths(to map[string]bool, e *manifest.Entry) error {
	ps, err := x.files.DataPaths(x.sch, e)
	for _, p := range ps {
		to[p] = true
	}
	return err
}

// metadata are the files that a snapshot names, besides data files.
type metadata struct {
	manifests, lists, indexes, indexManifests, statistics []string
}

func (m *metadata) all() []string {
	return slices.Concat(m.manifests, m.lists, m.indexes, m.indexManifests, m.statistics)
}

// metadata lists what s names. A list that is gone, because a former run was cut
// off, is passed over unless strict.
func (x *eraser) metadata(ctx context.Context, s *snapshot.Snapshot, strict bool) (*metadata, error) {
	m := &metadata{}
	io, cache, dir := x.t.env.IO, x.t.env.Manifests, x.t.dir+"/manifest/"
	passed := func(err error) bool {
		missing := (*fileio.MissingError)(nil)
		return err == nil || !strict && errors.As(err, &missing)
	}
	for _, name := range []string{s.BaseManifestList, s.DeltaManifestList, s.ChangelogManifestList} {
		if name == "" {
			continue
		}
		l, err := cache.List(ctx, io, dir+name)
		if !passed(err) {
			return nil, err
		}
		for i := range l {
			m.manifests = append(m.manifests, dir+l[i].Name)
		}
		m.lists = append(m.lists, dir+name)
	}
	if s.IndexManifest != "" {
		es, err := cache.Index(ctx, io, dir+s.IndexManifest)
		if !passed(err) {
			return nil, err
		}
		for i := range es {
			p, err := x.files.IndexPath(x.sch, &es[i])
			if err != nil {
				return nil, err
			}
			m.indexes = append(m.indexes, p)
		}
		m.indexManifests = append(m.indexManifests, dir+s.IndexManifest)
	}
	if s.Statistics != "" {
		m.statistics = append(m.statistics, x.t.dir+"/statistics/"+s.Statistics)
	}
	return m, nil
}

// expire removes snapshots [begin, end).
func (x *eraser) expire(ctx context.Context, begin, end int64, dry bool, r *ExpireReport) error {
	var states []*snapshot.Snapshot // of [begin, end]
	for id := begin; id <= end; id++ {
		s, err := x.b.snapshots.At(ctx, id)
		if errors.Is(err, fileio.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		states = append(states, s)
	}
	if len(states) == 0 || states[len(states)-1].ID != end {
		return nil // another process is at it
	}
	gone, last := states[:len(states)-1], states[len(states)-1]
	data, err := x.removedData(ctx, states)
	if err != nil {
		return err
	}
	changelog, err := x.changelogFiles(ctx, gone)
	if err != nil {
		return err
	}
	data = append(data, changelog...)
	meta, err := x.unused(ctx, gone, append(x.tagsAround(begin, end), last))
	if err != nil {
		return err
	}
	r.Snapshots, r.DataFiles = len(gone), len(data)
	r.ManifestFiles, r.IndexFiles = len(meta.manifests)+len(meta.lists)+len(meta.indexManifests), len(meta.indexes)
	if dry {
		return nil
	}
	if err := x.erase(ctx, data, meta); err != nil {
		return err
	}
	var paths []string
	for _, s := range gone {
		paths = append(paths, x.b.snapshots.Path(s.ID))
	}
	if err := x.t.env.IO.Delete(ctx, paths...); err != nil {
		return err
	}
	return x.b.snapshots.WriteEarliest(ctx, end)
}

// erase deletes data files, directories that they leave empty, and metadata:
// what names others after what it names.
func (x *eraser) erase(ctx context.Context, data []string, meta *metadata) error {
	io := x.t.env.IO
	x.t.env.forget(data)
	if err := io.Delete(ctx, data...); err != nil {
		return err
	}
	if schema.Options(x.sch.Options).Flag("snapshot.clean-empty-directories", false) {
		x.cleanDirectories(ctx)
	}
	x.t.env.Manifests.Forget(meta.all()...)
	return io.Delete(ctx, meta.all()...)
}

// drop closes the readers of files that are about to be deleted, once nobody uses
// them: an open file keeps its room on the disk.
func (c *readerCache) drop(paths []string) {
	gone := make(map[string]bool, len(paths))
	for _, p := range paths {
		gone[p] = true
	}
	c.mu.Lock()
	var idle []*cachedReader
	for k, r := range c.open {
		if p, _, _ := strings.Cut(k, "\x00"); !gone[p] {
			continue
		}
		c.unlink(r)
		delete(c.open, k)
		if r.gone = true; r.refs == 0 {
			idle = append(idle, r)
		}
	}
	c.mu.Unlock()
	for _, r := range idle {
		_ = r.Close()
	}
}

// cleanDirectories deletes the directories of buckets and partitions that are
// empty now, deepest first. What is not empty refuses.
func (x *eraser) cleanDirectories(ctx context.Context) {
	dirs := map[string]bool{}
	for d := range x.buckets {
		dirs[d] = true
		for range x.sch.PartitionKeys {
			d = path.Dir(d)
			dirs[d] = true
		}
	}
	order := make([]string, 0, len(dirs))
	for d := range dirs {
		if strings.HasPrefix(d, x.t.dir+"/") {
			order = append(order, d)
		}
	}
	slices.SortFunc(order, func(a, b string) int { return strings.Count(b, "/") - strings.Count(a, "/") })
	for _, d := range order {
		_ = x.t.env.IO.Delete(ctx, d)
	}
}

// removedData returns the data files that the deltas after the first of states
// removed and that no tag needs.
func (x *eraser) removedData(ctx context.Context, states []*snapshot.Snapshot) ([]string, error) {
	held := map[int64]map[string]bool{} // by tagged snapshot
	var out []string
	var now map[string]bool // the paths of the last of states
	seen := map[string]bool{}
	for _, s := range states[1:] {
		entries, err := x.b.publisher.Delta(ctx, s)
		if missing := (*fileio.MissingError)(nil); errors.As(err, &missing) {
			continue // a former run was cut off; its data files went first
		}
		if err != nil {
			return nil, err
		}
		removed, err := x.removedPaths(entries)
		if err != nil {
			return nil, err
		}
		if len(removed) == 0 {
			continue
		}
		var tagged map[string]bool
		if tag := x.tagBefore(s.ID); tag != nil {
			if tagged = held[tag.ID]; tagged == nil {
				if tagged, err = x.livePaths(ctx, tag); err != nil {
					return nil, err
				}
				held[tag.ID] = tagged
			}
		}
		for _, r := range removed {
			if tagged[r.path] || seen[r.path] || x.foreign[r.path] {
				continue
			}
			if r.side {
				// Java names the index that a file gets again as the one before the last.
				if now == nil {
					if now, err = x.livePaths(ctx, states[len(states)-1]); err != nil {
						return nil, err
					}
				}
				if now[r.path] {
					continue
				}
			}
			x.buckets[path.Dir(r.path)] = true
			seen[r.path] = true
			out = append(out, r.path)
		}
	}
	return out, nil
}

// removedPath is a file that a delta removed; side says that it was beside a data
// file that stays.
type removedPath struct {
	path string
	side bool
}

// removedPaths returns what the entries of a delta remove: data files with what is
// beside them, and of those that change their level or their indexes what is no
// longer beside them.
func (x *eraser) removedPaths(entries []*manifest.Entry) ([]removedPath, error) {
	removed := map[string]*manifest.Entry{}
	for _, e := range entries {
		if e.Kind == manifest.Delete {
			removed[e.File.Name] = e
		}
	}
	stay := map[string]*manifest.DataFile{}
	for _, e := range entries {
		if e.Kind == manifest.Add && removed[e.File.Name] != nil {
			stay[e.File.Name] = e.File
		}
	}
	var out []removedPath
	for name, e := range removed {
		ps, err := x.files.DataPaths(x.sch, e)
		if err != nil {
			return nil, err
		}
		kept := stay[name]
		if kept == nil {
			out = append(out, removedPath{ps[0], false})
		}
		for k, side := range e.File.ExtraFiles {
			if kept == nil || !slices.Contains(kept.ExtraFiles, side) {
				out = append(out, removedPath{ps[1+k], kept != nil})
			}
		}
	}
	return out, nil
}

// livePaths returns the paths of a state's data files.
func (x *eraser) livePaths(ctx context.Context, s *snapshot.Snapshot) (map[string]bool, error) {
	live, err := x.b.publisher.Live(ctx, s)
	if err != nil {
		return nil, err
	}
	out := make(map[string]bool, len(live))
	for _, e := range live {
		if err := x.addPaths(out, e); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// changelogFiles returns the changelog files that snapshots added.
func (x *eraser) changelogFiles(ctx context.Context, states []*snapshot.Snapshot) ([]string, error) {
	var out []string
	for _, s := range states {
		entries, err := x.b.publisher.Changelog(ctx, s)
		if missing := (*fileio.MissingError)(nil); errors.As(err, &missing) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if e.Kind != manifest.Add {
				continue
			}
			ps, err := x.files.DataPaths(x.sch, e)
			if err != nil {
				return nil, err
			}
			x.buckets[path.Dir(ps[0])] = true
			for _, p := range ps {
				if !x.foreign[p] {
					out = append(out, p)
				}
			}
		}
	}
	return out, nil
}

// tagBefore returns the newest tagged snapshot before id, or nil.
func (x *eraser) tagBefore(id int64) *snapshot.Snapshot {
	var out *snapshot.Snapshot
	for _, s := range x.tags {
		if s.ID < id {
			out = s
		}
	}
	return out
}

// tagsAround returns the tagged snapshots of [begin, end) and the one before it.
func (x *eraser) tagsAround(begin, end int64) []*snapshot.Snapshot {
	var out []*snapshot.Snapshot
	if s := x.tagBefore(begin); s != nil {
		out = append(out, s)
	}
	for _, s := range x.tags {
		if s.ID >= begin && s.ID < end {
			out = append(out, s)
		}
	}
	return out
}

// unused returns the metadata of states that none of keep names.
func (x *eraser) unused(ctx context.Context, states, keep []*snapshot.Snapshot) (*metadata, error) {
	used := map[string]bool{}
	for _, s := range keep {
		m, err := x.metadata(ctx, s, true)
		if err != nil {
			return nil, err
		}
		for _, p := range m.all() {
			used[p] = true
		}
	}
	out := &metadata{}
	for _, s := range states {
		m, err := x.metadata(ctx, s, false)
		if err != nil {
			return nil, err
		}
		for _, x2 := range []struct {
			to   *[]string
			from []string
		}{
			{&out.manifests, m.manifests}, {&out.lists, m.lists}, {&out.indexes, m.indexes},
			{&out.indexManifests, m.indexManifests}, {&out.statistics, m.statistics},
		} {
			for _, p := range x2.from {
				if !used[p] && !x.foreign[p] {
					used[p] = true
					*x2.to = append(*x2.to, p)
				}
			}
		}
	}
	return out, nil
}
