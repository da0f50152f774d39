package commit

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// state is what one attempt commits on top of.
type state struct {
	*job
	latest  *snapshot.Snapshot // nil = the table has none
	delta   []manifest.Entry
	indexes []manifest.IndexEntry
	nextRow int64
	// replaced are the partitions whose files go; all = every one.
	replaced map[string]bool
	all      bool
	// live files of the partitions that delta touches, read at most once
	base    []*manifest.Entry
	scanned bool
}

// changes computes what the commit changes on top of latest. skip says that it
// comes to nothing.
func (s *state) changes(ctx context.Context) (skip bool, err error) {
	s.delta, s.indexes = s.files, s.c.Indexes
	if o := s.c.Overwrite; o != nil {
		s.replaced, s.all = replacedBy(o, s.files)
		if o.Dynamic && len(s.replaced) == 0 && !s.c.Force {
			return true, nil
		}
		if err := s.replace(ctx); err != nil {
			return false, err
		}
	}
	if len(s.c.Hashes) > 0 {
		if err := s.addHashes(ctx); err != nil {
			return false, err
		}
	}
	if s.latest != nil && s.latest.NextRowID != nil {
		s.nextRow = *s.latest.NextRowID
	}
	id := int64(1)
	if s.latest != nil {
		id = s.latest.ID + 1
	}
	if s.options.Flag("row-tracking.enabled", false) {
		if s.options.Flag("row-tracking.partition-group-on-commit", true) {
			s.delta = byPartition(s.delta)
		}
		s.delta, s.nextRow = trackRows(s.delta, id, s.nextRow)
	}
	if s.options.Flag("sequence.snapshot-ordering", false) && s.c.Kind != Compact {
		s.delta = stamp(s.delta, id)
	}
	return false, nil
}

// replacedBy returns the partitions that an overwrite replaces.
func replacedBy(o *Replacement, files []manifest.Entry) (parts map[string]bool, all bool) {
	if !o.Dynamic && o.Partitions == nil {
		return nil, true
	}
	parts = map[string]bool{}
	for _, p := range o.Partitions {
		parts[partitionKey(p)] = true
	}
	if o.Dynamic {
		for i := range files {
			if files[i].Kind == manifest.Add {
				parts[partitionKey(files[i].Partition)] = true
			}
		}
	}
	return parts, false
}

// partitionKey is a partition image as a map key; nil is that of a table without
// partitions.
func partitionKey(image []byte) string {
	if len(image) == 0 {
		return "\x00\x00\x00\x00\x00\x00\x00\x00"
	}
	return string(image)
}

func (s *state) isReplaced(partition []byte) bool {
	return s.all || s.replaced[partitionKey(partition)]
}

// replace adds the removal of everything that lives in the replaced partitions
// now. Removals that the commit names itself are left out there: they are in it,
// or somebody else removed the file first, which is as good.
func (s *state) replace(ctx context.Context) error {
	var live []*manifest.Entry
	if s.latest != nil {
		var err error
		if live, err = s.p.live(ctx, s.latest, s.replaced); err != nil {
			return err
		}
	}
	out := make([]manifest.Entry, 0, len(live)+len(s.files))
	// Rows that wait for their bucket go as well, unless the table has none such
	// (any more), as Java.
	n, err := s.options.Int("bucket", -1)
	keep := err != nil || n != postponeBucket || s.c.Overwrite.KeepPostponed
	for _, e := range live {
		if e.Bucket < 0 && keep {
			continue
		}
		d := *e
		d.Kind = manifest.Delete
		out = append(out, d)
	}
	for _, e := range s.files {
		if e.Kind == manifest.Add || !s.isReplaced(e.Partition) {
			out = append(out, e)
		}
	}
	s.delta = out
	old, err := s.oldIndexes(ctx)
	if err != nil {
		return err
	}
	var idx []manifest.IndexEntry
	for _, e := range old {
		if s.isReplaced(e.Partition) {
			e.Kind = manifest.Delete
			idx = append(idx, e)
		}
	}
	for _, e := range s.c.Indexes {
		if e.Kind == manifest.Add || !s.isReplaced(e.Partition) {
			idx = append(idx, e)
		}
	}
	s.indexes = idx
	return nil
}

// oldIndexes returns the index files of the newest snapshot.
func (s *state) oldIndexes(ctx context.Context) ([]manifest.IndexEntry, error) {
	if s.latest == nil || s.latest.IndexManifest == "" {
		return nil, nil
	}
	return s.p.o.Manifests.Index(ctx, s.p.o.IO, s.path(s.latest.IndexManifest))
}

// byPartition puts the files of each partition together, so that the ids of its new
// rows follow one another.
func byPartition(files []manifest.Entry) []manifest.Entry {
	rank := map[string]int{}
	for i := range files {
		k := partitionKey(files[i].Partition)
		if _, ok := rank[k]; !ok {
			rank[k] = len(rank)
		}
	}
	if len(rank) < 2 {
		return files
	}
	out := slices.Clone(files)
	slices.SortStableFunc(out, func(a, b manifest.Entry) int {
		return cmp.Compare(rank[partitionKey(a.Partition)], rank[partitionKey(b.Partition)])
	})
	return out
}

// trackRows gives new files of a table with row tracking their first row id, and
// the snapshot's id as sequence number (Java: RowTrackingCommitUtils).
func trackRows(files []manifest.Entry, snapshotID, next int64) ([]manifest.Entry, int64) {
	out := slices.Clone(files)
	for i := range out {
		e := &out[i]
		f := *e.File
		switch {
		case f.MinSequence == 0:
			f.MinSequence, f.MaxSequence = snapshotID, snapshotID
		case f.MaxSequence == 0:
			f.MaxSequence = snapshotID
		}
		if e.Kind == manifest.Add && f.Source == 0 && f.FirstRowID < 0 && !slices.Contains(f.WriteCols, "_ROW_ID") {
			f.FirstRowID = next
			next += f.Rows
		}
		e.File = &f
	}
	return out, next
}

// stamp gives new files of a table with sequence.snapshot-ordering the snapshot's
// id as sequence number; those of a compaction have the ids in their rows (Java:
// FileStoreCommitImpl.stampSequenceWithSnapshotId).
func stamp(files []manifest.Entry, snapshotID int64) []manifest.Entry {
	out := slices.Clone(files)
	for i := range out {
		if e := &out[i]; e.Kind == manifest.Add {
			f := *e.File
			f.MinSequence, f.MaxSequence = snapshotID, snapshotID
			e.File = &f
		}
	}
	return out
}

// write makes the metadata files of the attempt and the snapshot that names them.
func (j *job) write(ctx context.Context, st *state) (*snapshot.Snapshot, error) {
	latest := st.latest
	base, err := j.base(ctx, latest)
	if err != nil {
		return nil, err
	}
	j.drop(j.baseList) // of a lost attempt
	baseList, baseSize, err := j.writeList(ctx, base)
	if err != nil {
		return nil, err
	}
	j.baseList = baseList
	if j.delta == nil || !sameEntries(j.delta.entries, st.delta) {
		if j.delta != nil {
			j.drop(j.delta.names...)
		}
		if j.delta, err = j.writeDelta(ctx, st.delta); err != nil {
			return nil, err
		}
	}
	if len(j.changelog) > 0 && j.chlog == nil {
		if j.chlog, err = j.writeDelta(ctx, j.changelog); err != nil {
			return nil, err
		}
	}
	index, err := j.writeIndex(ctx, st)
	if err != nil {
		return nil, err
	}
	added := countRows(st.delta, manifest.Add) - countRows(st.delta, manifest.Delete)
	total := added
	now := time.Now().UnixMilli()
	s := &snapshot.Snapshot{
		Version: snapshot.CurrentVersion, UUID: newUUID(), ID: 1, SchemaID: j.sch.ID,
		BaseManifestList: baseList, BaseManifestListSize: &baseSize,
		DeltaManifestList: j.delta.list, DeltaManifestListSize: own(j.delta.size),
		IndexManifest: index, CommitUser: j.user, CommitIdentifier: j.identifier, CommitKind: string(j.kind),
		TimeMillis: now, DeltaRecordCount: &added, Watermark: j.c.Watermark,
		Statistics: j.c.Statistics, Properties: j.c.Properties, NextRowID: own(st.nextRow), Operation: operation(j.c.Operation),
	}
	if j.chlog != nil {
		rows := countRows(j.changelog, manifest.Add)
		s.ChangelogManifestList, s.ChangelogManifestListSize, s.ChangelogRecordCount = j.chlog.list, own(j.chlog.size), &rows
	}
	if latest != nil {
		s.ID = latest.ID + 1
		// Time travel searches by time, so it never runs backwards.
		s.TimeMillis = max(now, latest.TimeMillis)
		before, err := j.totalOf(ctx, latest)
		if err != nil {
			return nil, err
		}
		total += before
		if w := latest.Watermark; w != nil && (s.Watermark == nil || *w > *s.Watermark) {
			s.Watermark = w
		}
		if s.Statistics == "" {
			s.Statistics = j.p.statisticsOf(ctx, latest, j.sch.ID)
		}
	}
	s.TotalRecordCount = &total
	return s, nil
}

// own makes a number of the snapshot's own: a pointer into the attempt would keep
// the attempt alive with the snapshot, and with it the one before it, and so on.
func own(v int64) *int64 { return &v }

// totalOf returns the physical rows of the newest snapshot; old writers did not
// say.
func (j *job) totalOf(ctx context.Context, s *snapshot.Snapshot) (int64, error) {
	if s.TotalRecordCount != nil {
		return *s.TotalRecordCount, nil
	}
	live, err := j.p.live(ctx, s, nil)
	n := int64(0)
	for _, e := range live {
		n += e.File.Rows
	}
	return n, err
}

// operations are the values that Java's enum of that name knows; any other would
// make the snapshot unreadable there.
var operations = map[string]string{
	"INSERT": "WRITE", "WRITE": "WRITE", "OVERWRITE": "OVERWRITE", "DELETE": "DELETE", "TRUNCATE": "TRUNCATE", "UPDATE": "UPDATE", "MERGE": "MERGE",
	"CREATE_TABLE_AS_SELECT": "CREATE_TABLE_AS_SELECT", "REPLACE_TABLE_AS_SELECT": "REPLACE_TABLE_AS_SELECT",
	"CREATE_OR_REPLACE_TABLE_AS_SELECT": "CREATE_OR_REPLACE_TABLE_AS_SELECT",
}

func operation(s string) string { return operations[s] }

func countRows(entries []manifest.Entry, kind int8) int64 {
	n := int64(0)
	for i := range entries {
		if entries[i].Kind == kind {
			n += entries[i].File.Rows
		}
	}
	return n
}

// sameEntries reports whether two lists name the same changes of the same files.
// Files are compared by pointer: they are immutable.
func sameEntries(a, b []manifest.Entry) bool {
	return slices.EqualFunc(a, b, func(x, y manifest.Entry) bool {
		return x.Kind == y.Kind && x.File == y.File && x.Bucket == y.Bucket && x.TotalBuckets == y.TotalBuckets && string(x.Partition) == string(y.Partition)
	})
}

// manifests writes entries as one or more manifests.
func (j *job) manifests(ctx context.Context, entries []manifest.Entry) ([]manifest.FileMeta, error) {
	target, err := j.options.Size("manifest.target-file-size", 8<<20)
	if err != nil {
		return nil, err
	}
	parts, err := manifest.EncodeRolling(entries, j.arity, j.codec, target)
	if err != nil {
		return nil, err
	}
	metas := make([]manifest.FileMeta, len(parts))
	for i, part := range parts {
		name := j.name("manifest")
		if metas[i], err = manifest.Describe(name, int64(len(part.Data)), j.sch.ID, part.Entries, j.partition); err != nil {
			return nil, fmt.Errorf("describe manifest %s: %w", name, err)
		}
		if err := j.create(ctx, name, part.Data); err != nil {
			return nil, err
		}
		j.p.o.Manifests.PutEntries(j.path(name), part.Entries, len(part.Data))
	}
	return metas, nil
}

func (j *job) writeList(ctx context.Context, metas []manifest.FileMeta) (name string, size int64, err error) {
	data := manifest.EncodeList(metas, j.codec)
	name = j.name("manifest-list")
	if err := j.create(ctx, name, data); err != nil {
		return "", 0, err
	}
	j.p.o.Manifests.PutList(j.path(name), metas, len(data))
	return name, int64(len(data)), nil
}

func (j *job) writeDelta(ctx context.Context, entries []manifest.Entry) (*delta, error) {
	metas, err := j.manifests(ctx, entries)
	if err != nil {
		return nil, err
	}
	d := &delta{entries: entries}
	if d.list, d.size, err = j.writeList(ctx, metas); err != nil {
		return nil, err
	}
	for i := range metas {
		d.names = append(d.names, metas[i].Name)
	}
	d.names = append(d.names, d.list)
	return d, nil
}
