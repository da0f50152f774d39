package table

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// lookupPlan is what lookups on one state of a table need, made once per state: the
// sorted runs of every bucket with the files' key ranges in memory, so that a
// lookup reads no manifest. A newer snapshot's is made of the one before and its
// delta. Immutable.
type lookupPlan struct {
	read *readPlan
	snap *snapshot.Snapshot

	pk      []int        // key columns of the table, in declared order
	pkTypes []types.Type // of these
	trimmed []int        // where in pk the columns of the files' keys are
	forms   bool         // some value is equal to another that is stored differently
	chars   bool         // and has many such: a CHAR
	partPos []int        // where in pk the partition columns are, -1 = not part of the key
	partTs  []types.Type
	whole   bool // the key holds every partition column
	hash    *bucketRule
	hashPos []int // where in pk the bucket key's columns are
	mode    lookupMode

	ignoreDelete bool
	skipLevel0   bool // where the lookup says so, level 0 is left out
	parts        map[string]*lookupPart
	asked        *atomic.Pointer[askedFields] // the columns that were last asked for
}

// lookupMode says how the versions of a key become a row.
type lookupMode uint8

// The modes: the version with the highest, or lowest, sequence number wins; all of
// them are ordered by sequence fields, or folded by the merge engine.
const (
	lookupNewest lookupMode = iota
	lookupFirst
	lookupOrdered
	lookupFolded
)

// lookupPart is one partition.
type lookupPart struct {
	image   []byte
	path    string
	total   int32 // buckets that its keys are hashed into; 0 = files disagree, or there is no such number
	buckets map[int32]*lookupBucket
	list    []*lookupBucket // the same, by number
}

// lookupBucket is one bucket.
type lookupBucket struct {
	bucket int32
	dir    string
	total  int32
	files  []*lookupFile
	runs   [][]*lookupFile // newest first; within one by key
}

// lookupPlans remembers the plans of a table's newest states.
type lookupPlans struct {
	latest atomic.Pointer[lookupPlan]

	mu   sync.Mutex // guards all below; held while a plan is made
	kept []*lookupPlan
	over []*overlaid
}

// keptPlans is how many states are remembered: transactions read older ones.
const keptPlans = 8

// overlaid is a plan with a transaction's writes laid over it.
type overlaid struct {
	base  *lookupPlan
	files *manifest.Entry
	nf    int
	index *manifest.IndexEntry
	ni    int
	repl  *commit.Replacement
	plan  *lookupPlan
}

// fits reports whether the plan is of a state and read with a schema.
func (p *lookupPlan) fits(b *branch, snap *snapshot.Snapshot, schemaID int64) bool {
	st := p.read.st
	return st.branch == b && st.schema.ID == schemaID && (p.snap == snap ||
		p.snap != nil && snap != nil && p.snap.ID == snap.ID && p.snap.DeltaManifestList == snap.DeltaManifestList)
}

// lookupPlan returns the plan of what a lookup names.
func (t *FileStore) lookupPlan(ctx context.Context, l *Lookup) (*lookupPlan, error) {
	at := &l.At
	p := t.lookups.latest.Load()
	if !p.pinned(at) {
		p = t.lookups.pinned(at)
	}
	if p == nil {
		st, err := t.state(ctx, *at, nil)
		if err != nil {
			return nil, err
		}
		if p, err = t.planOf(ctx, st); err != nil {
			return nil, err
		}
	}
	if len(l.Options) > 0 {
		st := *p.read.st
		st.options = st.options.With(l.Options)
		q, err := t.newLookupPlan(ctx, &st)
		if err != nil {
			return nil, err
		}
		q.parts = p.parts
		p = q
	}
	if l.Overlay != nil {
		return t.overlay(ctx, p, l.Overlay)
	}
	return p, nil
}

// pinned reports whether the plan is of the very snapshot and schema that a resolved
// reference holds.
func (p *lookupPlan) pinned(at *snapshot.Ref) bool {
	return p != nil && at.Snap != nil && at.Schema > 0 && p.snap == at.Snap && p.read.st.schema.ID == at.Schema-1 && sameBranch(p.read.st.branch.name, at.Branch)
}

// pinned finds the plan of a state that is not the newest one.
func (s *lookupPlans) pinned(at *snapshot.Ref) *lookupPlan {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, p := range s.kept {
		if p.pinned(at) {
			return p
		}
	}
	return nil
}

func sameBranch(a, b string) bool { return a == b || a == "" && b == "main" }

func (t *FileStore) planOf(ctx context.Context, st *state) (*lookupPlan, error) {
	s := &t.lookups
	s.mu.Lock()
	defer s.mu.Unlock()
	for i := len(s.kept) - 1; i >= 0; i-- {
		if p := s.kept[i]; p.fits(st.branch, st.snap, st.schema.ID) {
			return p, nil
		}
	}
	p, err := t.newLookupPlan(ctx, st)
	if err != nil {
		return nil, err
	}
	done := false
	if st.snap != nil {
		var from *lookupPlan // the newest state before this one
		for _, q := range s.kept {
			if q.read.st.branch == st.branch && q.read.st.schema.ID == st.schema.ID && q.snap != nil && q.snap.ID < st.snap.ID && (from == nil || q.snap.ID > from.snap.ID) {
				from = q
			}
		}
		if from != nil {
			if done, err = t.followLookups(ctx, from, p); err != nil {
				return nil, t.explain(ctx, st, p.read.at, err)
			}
		}
	}
	if !done {
		if err := t.readLookups(ctx, p); err != nil {
			return nil, err
		}
	}
	newest := true
	for _, q := range s.kept {
		newest = newest && !(q.read.st.branch == st.branch && q.snap != nil && st.snap != nil && q.snap.ID > st.snap.ID)
	}
	if len(s.kept) >= keptPlans {
		s.kept = slices.Delete(s.kept, 0, 1)
	}
	if s.kept = append(s.kept, p); newest {
		s.latest.Store(p)
	}
	return p, nil
}

// newLookupPlan makes the plan of a state, without its files.
func (t *FileStore) newLookupPlan(ctx context.Context, st *state) (*lookupPlan, error) {
	at := snapshot.Ref{Branch: st.branch.name, Schema: st.schema.ID + 1, Snap: st.snap, Empty: st.snap == nil}
	if st.snap != nil {
		at.Kind, at.ID = snapshot.ID, st.snap.ID
	}
	pl, err := t.newPlanner(ctx, Scan{At: at, Limit: -1})
	if err != nil {
		return nil, err
	}
	pl.read.st = st
	p := &lookupPlan{read: pl.read, snap: st.snap, parts: map[string]*lookupPart{}, partTs: pl.partTypes, asked: &atomic.Pointer[askedFields]{}}
	if p.pk, err = columnsOf(st.schema, st.schema.PrimaryKeys); err != nil {
		return nil, err
	}
	if len(p.pk) == 0 {
		return nil, fmt.Errorf("lookup in a table without a primary key")
	}
	for _, c := range p.pk {
		ty := st.schema.Fields[c].Type
		p.pkTypes = append(p.pkTypes, ty)
		p.chars = p.chars || ty.Kind == types.BpChar
		p.forms = p.forms || ty.Kind == types.BpChar || ty.Kind == types.Float4 || ty.Kind == types.Float8
	}
	for _, c := range pl.keyCols {
		p.trimmed = append(p.trimmed, slices.Index(p.pk, c))
	}
	p.whole = true
	for _, c := range pl.partCols {
		i := slices.Index(p.pk, c)
		p.partPos, p.whole = append(p.partPos, i), p.whole && i >= 0
	}
	p.hash, p.hashPos = p.bucketKey()
	p.ignoreDelete = st.ignoreDelete()
	p.skipLevel0 = pl.vectorMode() && !st.options.Flag("deletion-vectors.merge-on-read", false)
	switch e := st.mergeEngine(); {
	case e == "first-row":
		p.mode = lookupFirst
	case e != "deduplicate":
		p.mode = lookupFolded
		if _, err := st.newEngine(nil); err != nil {
			return nil, err
		}
	case len(p.read.seqCols) > 0:
		p.mode = lookupOrdered
	}
	return p, nil
}

// bucketKey returns how keys are hashed into buckets, and where the columns are in
// the key; nil when that cannot be computed.
func (p *lookupPlan) bucketKey() (*bucketRule, []int) {
	st := p.read.st
	names := st.options.List("bucket-key")
	if len(names) == 0 {
		names = st.schema.TrimmedKey()
	}
	r := &bucketRule{}
	switch st.options.Enum("bucket-function.type", "default") {
	case "default":
	case "mod":
		r.fn = binrow.ModBucket
	case "hive":
		r.fn = binrow.HiveBucket
	default:
		return nil, nil
	}
	var pos []int
	for _, n := range names {
		c := st.schema.Fields.Index(n)
		i := slices.Index(p.pk, c)
		if c < 0 || i < 0 {
			return nil, nil
		}
		r.cols, r.types, pos = append(r.cols, c), append(r.types, st.schema.Fields[c].Type), append(pos, i)
	}
	if len(pos) == 0 {
		return nil, nil
	}
	return r, pos
}

// readLookups reads the files of a state.
func (t *FileStore) readLookups(ctx context.Context, p *lookupPlan) error {
	pl, err := t.newPlanner(ctx, Scan{At: snapshot.Ref{Branch: p.read.st.branch.name, Schema: p.read.st.schema.ID + 1, Snap: p.snap, Empty: p.snap == nil}, Columns: []int{}, Limit: -1})
	if err != nil {
		return err
	}
	files, err := pl.liveEntries(ctx)
	if err != nil {
		return err
	}
	dvs, err := pl.vectors(ctx)
	if err != nil {
		return err
	}
	c := newLookupChange(p)
	for i := range files {
		if err := c.add(files[i].Entry, dvs[files[i].File.Name]); err != nil {
			return err
		}
	}
	c.done()
	return nil
}

// followLookups makes the files of p out of those of an older state of the same
// history, and reports whether that was possible.
func (t *FileStore) followLookups(ctx context.Context, from, p *lookupPlan) (bool, error) {
	st := p.read.st
	if p.snap.ID-from.snap.ID > maxDeltas {
		return false, nil
	}
	was, err := st.snapshots.Get(ctx, from.snap.ID)
	if err != nil || was.DeltaManifestList != from.snap.DeltaManifestList {
		return false, nil //nolint:nilerr // expired or rolled back: read anew
	}
	p.parts = maps.Clone(from.parts)
	c := newLookupChange(p)
	for id := from.snap.ID + 1; id <= p.snap.ID; id++ {
		s := p.snap
		if id < p.snap.ID {
			if s, err = st.snapshots.Get(ctx, id); err != nil {
				p.parts = map[string]*lookupPart{}
				return false, nil //nolint:nilerr // expired meanwhile: read anew
			}
		}
		metas, err := t.env.Manifests.List(ctx, t.env.IO, t.dir+"/manifest/"+s.DeltaManifestList)
		if err != nil {
			return false, err
		}
		for _, m := range metas {
			es, err := t.env.Manifests.Entries(ctx, t.env.IO, t.dir+"/manifest/"+m.Name)
			if err != nil {
				return false, err
			}
			for i := range es {
				if err := c.add(&es[i], nil); err != nil {
					return false, err
				}
			}
		}
	}
	if from.snap.IndexManifest != p.snap.IndexManifest || p.snap.IndexManifest != "" && len(c.own) > 0 {
		var lists [2][]manifest.IndexEntry
		for i, s := range []*snapshot.Snapshot{from.snap, p.snap} {
			if s.IndexManifest == "" {
				continue
			}
			if lists[i], err = t.env.Manifests.Index(ctx, t.env.IO, t.dir+"/manifest/"+s.IndexManifest); err != nil {
				return false, err
			}
		}
		if err := c.indexes(lists[0], lists[1]); err != nil {
			return false, err
		}
	}
	c.done()
	t.env.lookups.Forget(slices.Collect(maps.Keys(c.gone))...)
	return true, nil
}

// overlay lays a transaction's own writes over a plan.
func (t *FileStore) overlay(_ context.Context, p *lookupPlan, o *commit.Changes) (*lookupPlan, error) {
	k := &overlaid{base: p, nf: len(o.Files), ni: len(o.Indexes), repl: o.Overwrite}
	if k.nf > 0 {
		k.files = &o.Files[0]
	}
	if k.ni > 0 {
		k.index = &o.Indexes[0]
	}
	s := &t.lookups
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, x := range s.over {
		if x.base == k.base && x.files == k.files && x.nf == k.nf && x.index == k.index && x.ni == k.ni && x.repl == k.repl {
			return x.plan, nil
		}
	}
	q := *p
	q.parts = maps.Clone(p.parts)
	c := newLookupChange(&q)
	if o.Overwrite != nil {
		for name, part := range p.parts {
			if replaced(o, part.image) {
				delete(q.parts, name)
			}
		}
	}
	for i := range o.Files {
		if err := c.add(&o.Files[i], nil); err != nil {
			return nil, err
		}
	}
	if len(o.Indexes) > 0 {
		var base []manifest.IndexEntry
		if p.snap != nil && p.snap.IndexManifest != "" {
			var err error
			if base, err = t.env.Manifests.Index(context.Background(), t.env.IO, t.dir+"/manifest/"+p.snap.IndexManifest); err != nil {
				return nil, err
			}
		}
		if err := c.indexes(base, overlayIndexes(base, o.Indexes)); err != nil {
			return nil, err
		}
	}
	c.done()
	k.plan = &q
	if len(s.over) >= keptPlans {
		s.over = slices.Delete(s.over, 0, 1)
	}
	s.over = append(s.over, k)
	return k.plan, nil
}

// lookupChange changes the files of a plan that is being made. What it has not
// touched stays shared with the plan that it came from.
type lookupChange struct {
	p     *lookupPlan
	parts map[*lookupPart]bool   // of its own
	own   map[*lookupBucket]bool // likewise
	gone  map[string]bool        // paths of files that have left
	inDir bool                   // index files lie beside the data
}

func newLookupChange(p *lookupPlan) *lookupChange {
	return &lookupChange{p: p, parts: map[*lookupPart]bool{}, own: map[*lookupBucket]bool{}, gone: map[string]bool{}, inDir: p.read.st.options.Flag("index-file-in-data-file-dir", false)}
}

// part returns a partition that may be changed.
func (c *lookupChange) part(image []byte) (*lookupPart, error) {
	name := partitionName(image)
	x := c.p.parts[name]
	switch {
	case x == nil:
		vals, err := binrow.Decode([]byte(name), c.p.partTs)
		if err != nil {
			return nil, &fileio.CorruptionError{Path: c.p.read.t.dir + "/manifest", Offset: -1, Reason: "partition of an entry", Err: err}
		}
		x = &lookupPart{image: []byte(name), buckets: map[int32]*lookupBucket{}}
		st := c.p.read.st
		if x.path, err = PartitionPath(st.schema.PartitionKeys, c.p.partTs, vals, st.options); err != nil {
			return nil, err
		}
	case c.parts[x]:
		return x, nil
	default:
		y := *x
		y.buckets = maps.Clone(x.buckets)
		x = &y
	}
	c.p.parts[name], c.parts[x] = x, true
	return x, nil
}

// bucket returns a bucket that may be changed.
func (c *lookupChange) bucket(part *lookupPart, n int32) *lookupBucket {
	b := part.buckets[n]
	switch {
	case b == nil:
		b = &lookupBucket{bucket: n, dir: c.p.read.t.dir + "/" + c.p.read.st.bucketPath(part.path, n)}
	case c.own[b]:
		return b
	default:
		d := *b
		d.files = slices.Clone(b.files)
		b = &d
	}
	part.buckets[n], c.own[b] = b, true
	return b
}

func sameFile(a, b *manifest.DataFile) bool {
	return a.Name == b.Name && a.Level == b.Level && a.ExternalPath == b.ExternalPath
}

// add applies an entry.
func (c *lookupChange) add(e *manifest.Entry, ref *manifest.DeletionVectorRef) error {
	if e.Bucket == postponeBucket {
		return nil
	}
	part, err := c.part(e.Partition)
	if err != nil {
		return err
	}
	b := c.bucket(part, e.Bucket)
	at := -1
	for i, f := range b.files {
		if f.file.Meta.Name == e.File.Name {
			if ref == nil {
				ref = f.file.DV // an upgraded file keeps its own
			}
			if sameFile(f.file.Meta, e.File) {
				at = i
			}
		}
	}
	if e.Kind == manifest.Delete {
		c.gone[dataPath(b.dir, e.File)] = true
		if at >= 0 {
			b.files = slices.Delete(b.files, at, at+1)
		}
		return nil
	}
	delete(c.gone, dataPath(b.dir, e.File)) // it has another level now
	f, err := c.p.read.lookupFile(b.dir, File{Meta: e.File, DV: ref})
	if err != nil {
		return err
	}
	b.total = e.TotalBuckets
	if at >= 0 {
		b.files[at] = f
	} else {
		b.files = append(b.files, f)
	}
	return nil
}

// indexes gives files the deletion vectors of a newer list of index files.
func (c *lookupChange) indexes(old, now []manifest.IndexEntry) error {
	type key struct {
		name, external string
		bucket         int32
		part           string
	}
	was := map[key]bool{}
	for i := range old {
		e := &old[i]
		if e.Type == "DELETION_VECTORS" && e.Kind == manifest.Add {
			was[key{e.Name, e.ExternalPath, e.Bucket, partitionName(e.Partition)}] = true
		}
	}
	refs := map[string]*manifest.DeletionVectorRef{} // by data file
	type place struct {
		part   string
		bucket int32
	}
	touched := map[place]bool{}
	for i := range now {
		e := &now[i]
		if e.Type != "DELETION_VECTORS" || e.Kind != manifest.Add {
			continue
		}
		k := key{e.Name, e.ExternalPath, e.Bucket, partitionName(e.Partition)}
		if was[k] {
			delete(was, k)
		} else {
			touched[place{k.part, k.bucket}] = true
		}
		part := c.p.parts[k.part]
		if part == nil {
			continue
		}
		path := c.p.read.t.dir + "/index/" + e.Name
		switch {
		case e.ExternalPath != "":
			path = e.ExternalPath
		case c.inDir:
			path = c.p.read.t.dir + "/" + c.p.read.st.bucketPath(part.path, e.Bucket) + "/" + e.Name
		}
		for _, v := range e.DVs {
			refs[v.DataFile] = &manifest.DeletionVectorRef{Path: path, DeletionVectorMeta: v}
		}
	}
	for k := range was { // gone
		touched[place{k.part, k.bucket}] = true
	}
	for pl := range touched {
		part := c.p.parts[pl.part]
		if part == nil || part.buckets[pl.bucket] == nil {
			continue
		}
		part, err := c.part([]byte(pl.part))
		if err != nil {
			return err
		}
		b := c.bucket(part, pl.bucket)
		for i, f := range b.files {
			ref := refs[f.file.Meta.Name]
			if (ref == nil) != (f.file.DV == nil) || ref != nil && (ref.Path != f.file.DV.Path || ref.Offset != f.file.DV.Offset) {
				b.files[i] = f.with(ref)
			}
		}
	}
	// Files that came with the delta have a vector, too, where one was kept: one that
	// was moved to another level.
	for b := range c.own {
		for i, f := range b.files {
			if f.file.DV == nil && refs[f.file.Meta.Name] != nil {
				b.files[i] = f.with(refs[f.file.Meta.Name])
			}
		}
	}
	return nil
}

// done orders what was changed.
func (c *lookupChange) done() {
	for b := range c.own {
		b.order()
	}
	for part := range c.parts {
		part.list, part.total = part.list[:0:0], 0
		for n, b := range part.buckets {
			if len(b.files) == 0 {
				delete(part.buckets, n)
				continue
			}
			part.list = append(part.list, b)
		}
		slices.SortFunc(part.list, func(a, b *lookupBucket) int { return cmp.Compare(a.bucket, b.bucket) })
		for i, b := range part.list {
			if i == 0 {
				part.total = b.total
			} else if part.total != b.total {
				part.total = 0
			}
		}
		part.total = max(part.total, 0)
		for _, b := range part.list {
			if b.bucket >= part.total {
				part.total = 0 // not what the number says
			}
		}
		if len(part.list) == 0 {
			delete(c.p.parts, string(part.image))
		}
	}
}

// order makes the sorted runs of a bucket: each file of level 0 by itself, the one
// with the highest sequence number first, then the levels.
func (b *lookupBucket) order() {
	levels := map[int32][]*lookupFile{}
	var zero []*lookupFile
	for _, f := range b.files {
		if l := f.file.Meta.Level; l <= 0 {
			zero = append(zero, f)
		} else {
			levels[l] = append(levels[l], f)
		}
	}
	slices.SortStableFunc(zero, func(a, b *lookupFile) int {
		x, y := a.file.Meta, b.file.Meta
		return cmp.Or(cmp.Compare(y.MaxSequence, x.MaxSequence), cmp.Compare(y.MinSequence, x.MinSequence), cmp.Compare(y.CreationMillis, x.CreationMillis), cmp.Compare(y.Name, x.Name))
	})
	b.runs = nil
	for _, f := range zero {
		b.runs = append(b.runs, []*lookupFile{f})
	}
	for _, l := range slices.Sorted(maps.Keys(levels)) {
		run := levels[l]
		slices.SortFunc(run, func(a, b *lookupFile) int { return bytes.Compare(a.min, b.min) })
		disjoint := true
		for i := 1; i < len(run); i++ {
			disjoint = disjoint && bytes.Compare(run[i-1].max, run[i].min) < 0
		}
		if disjoint {
			b.runs = append(b.runs, run)
			continue
		}
		for _, f := range run { // odd, and all the same read right
			b.runs = append(b.runs, []*lookupFile{f})
		}
	}
}
