package table

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"time"

	"github.com/paimon-sql/paimon-sql/index/predicate"
	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Planning goes
//
//	snapshot -> manifest lists -> manifests, in parallel -> entries laid over each
//	other -> files of the wanted partitions and buckets -> per bucket:
//	  append table: files that statistics do not rule out, raw
//	  key table: files by key statistics -> sections that do not overlap ->
//	    raw where nothing has to be merged, else merge splits
//
// The rule that decides correctness: a filter on value columns prunes a single
// file only where nothing merges. Where files overlap, the newer version of a row
// may fail the filter while an older one passes; there the filter may only drop
// the section whole, when none of its files can match.

// planner is the work of one Plan.
type planner struct {
	*state
	ctx    context.Context
	t      *FileStore
	scan   Scan
	filter predicate.Node // simplified
	report *PlanReport

	partCols  []int
	partTypes []types.Type
	keyCols   []int // trimmed primary key, in declared order
	codec     *mergetree.KeyCodec
	buckets   *bucketFilter

	parts       map[string]*partition
	lastPart    *partition
	reading     string // manifest whose entries are looked at, for errors
	fileSchemas map[int64]*fileSchema

	read   *readPlan
	held   map[string]bool // partitions that hold a file
	splits []Split
	proven int64 // rows proven live, for Limit
	// counted are rows of the bucket that need not be read, see countedRows.
	counted int64
	// known are rows of all buckets that need not be read, see knows.
	known      *knownRows
	partFilter *partFilter
}

func (t *FileStore) newPlanner(ctx context.Context, s Scan) (*planner, error) {
	st, err := t.state(ctx, s.At, s.Options)
	if err != nil {
		return nil, err
	}
	p := &planner{
		state: st, ctx: ctx, t: t, scan: s, filter: predicate.Simplify(s.Filter),
		report: &PlanReport{}, parts: map[string]*partition{}, held: map[string]bool{}, fileSchemas: map[int64]*fileSchema{},
	}
	if st.snap != nil {
		p.report.SnapshotID = st.snap.ID
	}
	if err := st.refuse(); err != nil {
		return nil, err
	}
	if p.partCols, err = columnsOf(st.schema, st.schema.PartitionKeys); err != nil {
		return nil, err
	}
	for _, c := range p.partCols {
		p.partTypes = append(p.partTypes, st.schema.Fields[c].Type)
	}
	if st.primaryKey() {
		if p.keyCols, err = columnsOf(st.schema, st.schema.TrimmedKey()); err != nil {
			return nil, err
		}
		var ts []types.Type
		for _, c := range p.keyCols {
			ts = append(ts, st.schema.Fields[c].Type)
		}
		p.codec = mergetree.NewKeyCodec(ts)
	}
	if p.buckets = p.newBucketFilter(); p.buckets != nil {
		p.buckets.blame = p.blameBucket()
	}
	p.partFilter = p.newPartFilter()
	p.read, err = newReadPlan(p)
	return p, err
}

// Plan splits a scan into pieces that can be read independently.
func (t *FileStore) Plan(ctx context.Context, s Scan) (*Plan, error) {
	p, err := t.newPlanner(ctx, s)
	if err != nil {
		return nil, err
	}
	var plan *Plan
	if s.Incremental != nil {
		plan, err = p.planIncremental(ctx, s.Incremental)
	} else if plan, err = p.planFallback(ctx); plan == nil && err == nil {
		plan, err = p.plan(ctx, nil)
	}
	if err == nil && t.env.events.PlanDone != nil {
		t.env.events.PlanDone(t.dir, plan.Report)
	}
	return plan, err
}

// plan makes the splits of one branch, without the partitions in without.
func (p *planner) plan(ctx context.Context, without map[string]bool) (*Plan, error) {
	files, err := p.liveEntries(ctx)
	if err != nil {
		return nil, err
	}
	dvs, err := p.vectors(ctx)
	if err != nil {
		return nil, err
	}
	var keyed []*keyedBucket // where all are judged before any is planned
	for _, g := range group(files) {
		p.held[string(g[0].part.image)] = true
		if without[string(g[0].part.image)] || p.enough() {
			continue
		}
		if p.primaryKey() && p.judges() && p.settles() {
			b, err := p.keyedBucket(g, p.withVector(dvs))
			if err != nil {
				return nil, err
			}
			keyed = append(keyed, b)
			continue
		}
		if err := p.planBucket(ctx, g, dvs); err != nil {
			return nil, err
		}
	}
	if len(keyed) > 0 {
		if err := p.judgeAll(ctx, keyed); err != nil {
			return nil, err
		}
	}
	for _, b := range keyed {
		if err := p.planKeyed(ctx, b); err != nil {
			return nil, err
		}
	}
	p.addKnown()
	p.orderSplits()
	return &Plan{Splits: p.splits, Report: p.report, Schema: p.schema}, nil
}

// enough reports whether the splits so far hold as many proven rows as are
// wanted.
func (p *planner) enough() bool {
	return p.scan.Limit > 0 && (p.filter == nil || p.scan.Exact) && p.scan.Late == nil && p.proven >= p.scan.Limit
}

// group sorts files by bucket, keeping the order in which buckets and files
// appear.
func group(files []live) [][]live {
	at := map[bucketKey]int{}
	var out [][]live
	for from := 0; from < len(files); { // neighbours are mostly of one bucket
		k := bucketKey{files[from].part, files[from].Bucket}
		to := from + 1
		for to < len(files) && files[to].part == k.part && files[to].Bucket == k.bucket {
			to++
		}
		if i, ok := at[k]; ok {
			out[i] = append(out[i], files[from:to]...)
		} else {
			at[k] = len(out)
			out = append(out, files[from:to:to])
		}
		from = to
	}
	return out
}

// withVector makes files with their deletion vectors.
func (p *planner) withVector(dvs map[string]*manifest.DeletionVectorRef) func(live) File {
	return func(l live) File {
		f := File{Meta: l.File, DV: dvs[l.File.Name]}
		if f.DV != nil {
			p.report.DeletionVectors++
		}
		return f
	}
}

func (p *planner) planBucket(ctx context.Context, files []live, dvs map[string]*manifest.DeletionVectorRef) error {
	file := p.withVector(dvs)
	if !p.primaryKey() {
		var raw []File
		for _, l := range files {
			ok, err := p.mayMatch(l, true)
			if err != nil {
				return err
			}
			if !ok {
				p.skipStats(l, true)
				continue
			}
			found, err := p.byIndex(l)
			if err != nil {
				return err
			}
			if found != nil && found.none {
				p.skip(found.reason(), 1)
				p.report.AddRuntime(found.blame, 1)
				continue
			}
			f := file(l)
			f.found = found
			raw = append(raw, f)
		}
		slices.SortStableFunc(raw, func(a, b File) int { return cmp.Compare(a.Meta.MinSequence, b.Meta.MinSequence) })
		return p.addRaw(ctx, files[0], raw)
	}
	b, err := p.keyedBucket(files, file)
	if err == nil && p.judges() {
		err = p.judgeAll(ctx, []*keyedBucket{b})
	}
	if err != nil {
		return err
	}
	return p.planKeyed(ctx, b)
}

// vectorMode reports whether compacted files of the table never hold a live key
// twice: with deletion vectors and on first-row tables.
func (p *planner) vectorMode() bool {
	return p.options.Flag("deletion-vectors.enabled", false) || p.mergeEngine() == "first-row"
}

// skipLevel0 reports whether this scan leaves level 0 out as Java's batch reads
// do.
func (p *planner) skipLevel0() bool {
	return p.scan.SkipLevel0 && p.vectorMode() && !p.options.Flag("deletion-vectors.merge-on-read", false)
}

// keyedBucket finds the files of a bucket of a key table that matter.
func (p *planner) keyedBucket(files []live, file func(live) File) (*keyedBucket, error) {
	skip0 := p.skipLevel0()
	top, err := p.topLevel()
	if err != nil {
		return nil, err
	}
	got := map[*manifest.DataFile]File{}
	b := &keyedBucket{vectorMode: p.vectorMode(), kept: make([]live, 0, len(files)), file: func(l live) File {
		f, ok := got[l.File]
		if !ok {
			f = file(l)
			got[l.File] = f
		}
		return f
	}}
	for _, l := range files {
		if l.File.Level == 0 && skip0 {
			p.skip("level 0", 1)
			continue
		}
		if p.scan.ReadOptimized && int64(l.File.Level) != top {
			p.skip("level", 1)
			continue
		}
		ok, err := p.mayMatch(l, false)
		if err != nil {
			return nil, err
		}
		if !ok && !p.judges() {
			p.skipStats(l, false)
			continue
		}
		b.gone = append(b.gone, !ok)
		lo, err1 := p.fileKey(l.File.MinKey)
		hi, err2 := p.fileKey(l.File.MaxKey)
		if err := errors.Join(err1, err2); err != nil {
			return nil, &fileio.CorruptionError{Path: p.bucketDir(l.part, l.Bucket) + "/" + l.File.Name, Offset: -1, Reason: "key range in its manifest entry", Err: err}
		}
		b.spans = append(b.spans, mergetree.Span{Min: lo, Max: hi, Item: len(b.kept)})
		b.kept = append(b.kept, l)
	}
	return b, nil
}

func (p *planner) planKeyed(ctx context.Context, b *keyedBucket) error {
	var raw []File
	var merge []mergeSection
	spans, kept := b.spans, b.kept
	if p.judges() {
		var err error
		if spans, err = p.planJudged(b, &raw, &merge); err != nil {
			return err
		}
	}
	for _, s := range mergetree.IntervalPartition(spans) {
		if !b.merges(&s) {
			for _, r := range s.Runs {
				for _, i := range r {
					ok, err := p.mayMatch(kept[i], true)
					if err != nil {
						return err
					}
					if !ok {
						p.skipStats(kept[i], true)
						continue
					}
					found, err := p.byIndex(kept[i])
					if err != nil {
						return err
					}
					if found != nil && found.none {
						p.skip(found.reason(), 1)
						p.report.AddRuntime(found.blame, 1)
						continue
					}
					p.countLevel0(kept[i], b.vectorMode)
					f := b.file(kept[i])
					f.found = found
					raw = append(raw, f)
				}
			}
			continue
		}
		m, err := p.section(s, kept, b.file, b.vectorMode)
		if err != nil {
			return err
		}
		if m != nil {
			merge = append(merge, *m)
		}
	}
	if len(kept) == 0 {
		return nil
	}
	if err := p.addRaw(ctx, kept[0], raw); err != nil {
		return err
	}
	return p.addMerge(ctx, kept[0], merge)
}

func (p *planner) countLevel0(l live, vectorMode bool) {
	if vectorMode && l.File.Level == 0 {
		p.report.Level0Files++
	}
}

// section makes a merge section, or nil when no file of it can match.
func (p *planner) section(s mergetree.Section, kept []live, file func(live) File, vectorMode bool) (*mergeSection, error) {
	n, reason := int64(0), "stats"
	match := p.filter == nil || p.mergeEngine() != "deduplicate"
	for _, r := range s.Runs {
		for _, i := range r {
			n++
			if !match {
				ok, err := p.mayMatch(kept[i], true)
				if err != nil {
					return nil, err
				}
				if match = ok; !ok {
					continue
				}
				found, err := p.byIndex(kept[i])
				if err != nil {
					return nil, err
				}
				if found != nil && found.none {
					match, reason = false, found.reason()
				}
			}
		}
	}
	if !match {
		p.skip(reason, n)
		return nil, nil
	}
	m := &mergeSection{}
	for _, r := range s.Runs {
		var run []File
		for _, i := range r {
			p.countLevel0(kept[i], vectorMode)
			f := file(kept[i])
			run = append(run, f)
			m.rows += f.Meta.Rows
			m.bytes += f.Meta.Size
		}
		m.runs = append(m.runs, run)
	}
	return m, nil
}

// fileKey turns a key image of a file into the byte form of keys.
func (p *planner) fileKey(image []byte) ([]byte, error) {
	vals, err := binrow.Decode(image, p.codec.Types())
	if err != nil {
		return nil, err
	}
	return p.codec.Append(nil, vals), nil
}

// explain turns a missing file of an expired snapshot into the error that says
// so: another process may expire what is being read.
func (p *planner) explain(ctx context.Context, err error) error {
	return p.t.explain(ctx, p.state, p.scan.At, err)
}

// How long, and how often, it is looked whether a snapshot with a missing file is
// being expired.
const (
	expiryWait = 3 * time.Second
	expiryLook = 10 * time.Millisecond
)

func (t *FileStore) explain(ctx context.Context, st *state, at snapshot.Ref, err error) error {
	var missing *fileio.MissingError
	if st.snap == nil || at.Kind == snapshot.Tag || !errors.As(err, &missing) {
		return err
	}
	now, gone := st.snapshots.Get(ctx, st.snap.ID)
	for end := time.Now().Add(expiryWait); gone == nil && now.DeltaManifestList == st.snap.DeltaManifestList; {
		// Expiry deletes a snapshot's files before the snapshot: it may be at work.
		if id, lerr := st.snapshots.LatestID(ctx); lerr != nil || id <= st.snap.ID || time.Now().After(end) {
			break
		}
		select {
		case <-ctx.Done():
			return err
		case <-time.After(expiryLook):
		}
		now, gone = st.snapshots.Get(ctx, st.snap.ID)
	}
	var none *snapshot.NotFoundError
	switch {
	case errors.As(gone, &none):
		// Expired, rolled back, or the table was dropped: all the same to a reader.
		none.Expired = true
		return errors.Join(none, err)
	case gone == nil && now.DeltaManifestList != st.snap.DeltaManifestList:
		return errors.Join(&snapshot.NotFoundError{Ref: snapshot.Ref{Kind: snapshot.ID, ID: st.snap.ID}, Expired: true}, err)
	}
	return err
}
