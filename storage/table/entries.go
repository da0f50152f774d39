package table

import (
	"context"
	"strings"

	"golang.org/x/sync/errgroup"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/cores"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// partition is one partition that a plan met.
type partition struct {
	image []byte
	vals  []types.Datum
	path  string // "k=v/"
	read  bool   // not ruled out by the filter
	blame int    // the runtime filter that ruled it out, see blame
}

// live is one live data file.
type live struct {
	*manifest.Entry
	part  *partition
	known match // what mayMatch says with value statistics
}

// match is an answer of mayMatch.
type match uint8

const (
	unasked match = iota
	matches
	ruledOut
)

// identity is what makes two manifest entries speak of the same file.
type identity struct {
	partition, name, external, extra string
	bucket, level                    int32
}

func identityOf(e *manifest.Entry) identity {
	f := e.File
	id := identity{partition: string(e.Partition), name: f.Name, external: f.ExternalPath, bucket: e.Bucket, level: f.Level}
	if len(f.ExtraFiles) > 0 || len(f.EmbeddedIndex) > 0 {
		id.extra = strings.Join(f.ExtraFiles, "\x00") + "\x00\x00" + string(f.EmbeddedIndex)
	}
	return id
}

// liveEntries reads the manifests of the plan's snapshot and returns the files
// that live and that partition and bucket do not rule out, in manifest order.
func (p *planner) liveEntries(ctx context.Context) ([]live, error) {
	var metas []manifest.FileMeta
	if p.snap != nil {
		for _, name := range []string{p.snap.BaseManifestList, p.snap.DeltaManifestList} {
			l, err := p.t.env.Manifests.List(ctx, p.t.env.IO, p.t.dir+"/manifest/"+name)
			if err != nil {
				return nil, p.explain(ctx, err)
			}
			metas = append(metas, l...)
		}
	}
	p.report.Manifests = int64(len(metas))
	kept := metas[:0:0]
	for i := range metas {
		if p.mayHold(&metas[i]) {
			kept = append(kept, metas[i])
		}
	}
	kept, err := p.judgeManifests(ctx, kept)
	if err != nil {
		return nil, err
	}
	p.report.ManifestsRead = int64(len(kept))
	lists := make([][]manifest.Entry, len(kept), len(kept)+1)
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(max(4, 2*cores.Count()))
	for i := range kept {
		g.Go(func() (err error) {
			lists[i], err = p.t.env.Manifests.Entries(gctx, p.t.env.IO, p.t.dir+"/manifest/"+kept[i].Name)
			return err
		})
	}
	if err := g.Wait(); err != nil {
		return nil, p.explain(ctx, err)
	}
	if o := p.scan.Overlay; o != nil {
		if o.Overwrite != nil {
			for i := range lists {
				lists[i] = notReplaced(lists[i], o)
			}
		}
		lists = append(lists, overlayEntries(o))
	}
	names := make([]string, len(lists))
	for i := range kept {
		names[i] = p.t.dir + "/manifest/" + kept[i].Name
	}
	if err := p.judgeEntries(ctx, lists); err != nil {
		return nil, err
	}
	return p.mergeJudged(ctx, lists, names)
}

// notReplaced leaves out the entries of partitions that a transaction replaces.
func notReplaced(es []manifest.Entry, o *commit.Changes) []manifest.Entry {
	gone := map[string]bool{}
	out := make([]manifest.Entry, 0, len(es))
	for i := range es {
		p := string(es[i].Partition)
		r, ok := gone[p]
		if !ok {
			r = replaced(o, es[i].Partition)
			gone[p] = r
		}
		if !r {
			out = append(out, es[i])
		}
	}
	return out
}

func overlayEntries(c *commit.Changes) []manifest.Entry { return c.Files }

// mayHold reports whether a manifest may name a file of the partitions and
// buckets that are asked for.
func (p *planner) mayHold(m *manifest.FileMeta) bool {
	if p.filter == nil || len(p.partCols) == 0 || !p.scan.prunes(PrunePartitions) {
		return true
	}
	s := &m.PartitionStats
	lo, err1 := binrow.NewRow(s.Min, len(p.partCols))
	hi, err2 := binrow.NewRow(s.Max, len(p.partCols))
	if err1 != nil || err2 != nil {
		return true
	}
	v := predicate.Eval(p.filter, predicate.SourceFunc(func(l *predicate.Leaf) (predicate.ColumnStats, bool) {
		i := p.partIndex(l.Col)
		if i < 0 {
			return predicate.ColumnStats{}, false
		}
		return rowStats(lo, hi, s.NullCounts, i, p.partTypes[i], -1)
	}))
	return v != predicate.None
}

// rowStats reads field i of a pair of bound rows. rows is -1 when unknown.
func rowStats(lo, hi binrow.Row, nulls []int64, i int, t types.Type, rows int64) (predicate.ColumnStats, bool) {
	st := predicate.ColumnStats{NullCount: -1, Rows: rows}
	if i < len(nulls) {
		st.NullCount = nulls[i]
	}
	var err1, err2 error
	st.Min, err1 = lo.Get(i, t)
	st.Max, err2 = hi.Get(i, t)
	return st, err1 == nil && err2 == nil
}

// partIndex returns the position of a column among the partition keys, or -1.
func (p *planner) partIndex(col int) int {
	for i, c := range p.partCols {
		if c == col {
			return i
		}
	}
	return -1
}

// partitionOf returns what is known of a partition, judging it on first sight.
func (p *planner) partitionOf(image []byte) (*partition, error) {
	if p.lastPart != nil && string(p.lastPart.image) == string(image) {
		return p.lastPart, nil
	}
	part, ok := p.parts[string(image)]
	if !ok {
		vals, err := binrow.Decode(image, p.partTypes)
		if err != nil {
			return nil, &fileio.CorruptionError{Path: p.reading, Offset: -1, Reason: "partition of an entry", Err: err}
		}
		part = &partition{image: image, vals: vals, read: true}
		if part.path, err = PartitionPath(p.schema.PartitionKeys, p.partTypes, vals, p.options); err != nil {
			return nil, err
		}
		if p.filter != nil && len(vals) > 0 && p.scan.prunes(PrunePartitions) {
			none := func(n predicate.Node) bool {
				return predicate.Eval(n, predicate.SourceFunc(func(l *predicate.Leaf) (predicate.ColumnStats, bool) {
					if i := p.partIndex(l.Col); i >= 0 {
						return predicate.One(vals[i]), true
					}
					return predicate.ColumnStats{}, false
				})) == predicate.None
			}
			if part.read = !none(p.filter); !part.read {
				part.blame = blame(p.filter, none)
			}
		}
		if p.partFilter != nil && p.partFilter.gone[string(image)] {
			part.read = false
		}
		p.parts[string(image)] = part
		p.report.Partitions++
		if part.read {
			p.report.PartitionsRead++
		}
	}
	p.lastPart = part
	return part, nil
}

// merge lays the entries of all manifests over each other, in order: a later ADD
// or DELETE of the same file wins. Most files are never deleted, so only the
// identities that some DELETE names go through a map.
func (p *planner) merge(ctx context.Context, lists [][]manifest.Entry, names []string) ([]live, error) {
	deleted := map[identity]bool{} // value: it lives after the entries seen so far
	byName := map[string]struct{}{}
	total := 0
	for _, l := range lists {
		total += len(l)
		for i := range l {
			if l[i].Kind == manifest.Delete {
				deleted[identityOf(&l[i])] = false
				byName[l[i].File.Name] = struct{}{}
			}
		}
	}
	out := make([]live, 0, total)
	late := map[identity]live{}
	buckets := map[bucketKey]bool{}
	var lastBucket bucketKey // of the entry before
	for n, l := range lists {
		if ctx.Err() != nil {
			return nil, context.Cause(ctx)
		}
		p.reading = names[n]
		for i := range l {
			e := &l[i]
			part, err := p.partitionOf(e.Partition)
			if err != nil {
				return nil, err
			}
			delta := int64(1)
			if e.Kind == manifest.Delete {
				delta = -1
			}
			p.report.Files += delta
			if !part.read {
				p.skip("partition", delta)
				p.report.AddRuntime(part.blame, delta)
				continue
			}
			if e.Bucket == postponeBucket {
				p.skip("postpone", delta)
				continue
			}
			keep, err := p.bucketWanted(e)
			if err != nil {
				return nil, err
			}
			if k := (bucketKey{part, e.Bucket}); k != lastBucket && e.Kind == manifest.Add {
				if _, seen := buckets[k]; !seen {
					buckets[k] = keep
				}
				lastBucket = k
			}
			if !keep {
				p.skip("bucket", delta)
				p.report.AddRuntime(p.buckets.blame, delta)
				continue
			}
			if len(byName) > 0 {
				if _, ok := byName[e.File.Name]; ok {
					id := identityOf(e)
					if _, ok := deleted[id]; ok {
						deleted[id] = e.Kind == manifest.Add
						if e.Kind == manifest.Add {
							late[id] = live{Entry: e, part: part}
						}
						continue
					}
				}
			}
			out = append(out, live{Entry: e, part: part})
		}
	}
	for id, alive := range deleted {
		if alive {
			out = append(out, late[id])
		}
	}
	p.report.Buckets = int64(len(buckets))
	for _, read := range buckets {
		if read {
			p.report.BucketsRead++
		}
	}
	return out, nil
}

func (p *planner) skip(reason string, n int64) {
	if p.report.Skipped == nil {
		p.report.Skipped = map[string]int64{}
	}
	if p.report.Skipped[reason] += n; p.report.Skipped[reason] == 0 {
		delete(p.report.Skipped, reason)
	}
}

type bucketKey struct {
	part   *partition
	bucket int32
}

// indexEntries returns the index files of the snapshot under the overlay.
func (p *planner) indexEntries(ctx context.Context) ([]manifest.IndexEntry, error) {
	var entries []manifest.IndexEntry
	if p.snap != nil && p.snap.IndexManifest != "" {
		var err error
		if entries, err = p.t.env.Manifests.Index(ctx, p.t.env.IO, p.t.dir+"/manifest/"+p.snap.IndexManifest); err != nil {
			return nil, p.explain(ctx, err)
		}
	}
	if o := p.scan.Overlay; o != nil && len(o.Indexes) > 0 {
		entries = overlayIndexes(entries, o.Indexes)
	}
	return entries, nil
}

// vectors returns the deletion vectors of the snapshot by data file name, which
// holds a UUID.
func (p *planner) vectors(ctx context.Context) (map[string]*manifest.DeletionVectorRef, error) {
	entries, err := p.indexEntries(ctx)
	if err != nil {
		return nil, err
	}
	if p.snap != nil {
		p.reading = p.t.dir + "/manifest/" + p.snap.IndexManifest
	}
	out := map[string]*manifest.DeletionVectorRef{}
	inData := p.options.Flag("index-file-in-data-file-dir", false)
	for i := range entries {
		e := &entries[i]
		if e.Type != "DELETION_VECTORS" || e.Kind != manifest.Add || len(e.DVs) == 0 {
			continue
		}
		part, err := p.partitionOf(e.Partition)
		if err != nil {
			return nil, err
		}
		if !part.read {
			continue
		}
		file := p.t.dir + "/index/" + e.Name
		switch {
		case e.ExternalPath != "":
			file = e.ExternalPath
		case inData:
			file = p.bucketDir(part, e.Bucket) + "/" + e.Name
		}
		for _, v := range e.DVs {
			out[v.DataFile] = &manifest.DeletionVectorRef{Path: file, DeletionVectorMeta: v}
		}
	}
	return out, nil
}

// overlayIndexes applies a transaction's index changes: DELETE removes a file by
// name, ADD adds one.
func overlayIndexes(base, over []manifest.IndexEntry) []manifest.IndexEntry {
	gone := map[string]bool{}
	for _, e := range over {
		if e.Kind == manifest.Delete {
			gone[e.Name] = true
		}
	}
	var out []manifest.IndexEntry
	for _, e := range base {
		if !gone[e.Name] {
			out = append(out, e)
		}
	}
	for _, e := range over {
		if e.Kind == manifest.Add {
			out = append(out, e)
		}
	}
	return out
}

// bucketDir returns the directory of a bucket's files relative to the warehouse.
func (p *planner) bucketDir(part *partition, bucket int32) string {
	return p.t.dir + "/" + p.bucketPath(part.path, bucket)
}

// bucketPath returns the directory of a bucket's files relative to the table's; part is
// "k=v/", or "" without partitions.
func (st *state) bucketPath(part string, bucket int32) string {
	dir := ""
	if d := strings.Trim(st.options.String("data-file.path-directory", ""), "/"); d != "" {
		dir = d + "/"
	}
	return dir + part + BucketDir(bucket)
}
