package commit

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// readCheck looks for snapshots that touched what a transaction read. It goes on
// from where the last check ended.
type readCheck struct {
	p          *Publisher
	reads      *ReadSet
	base, seen int64
	anywhere   []BucketID // of reads: keys of any partition
}

// check returns a *ConflictError when a snapshot after base touched a read. Where
// it cannot be known, because snapshots expired or a file is gone, it is a
// conflict.
func (w *readCheck) check(ctx context.Context, sch *schema.Table, latest *snapshot.Snapshot) error {
	if w.reads == nil {
		return nil
	}
	now := int64(0)
	if latest != nil {
		now = latest.ID
	}
	no := func(id int64, format string, args ...any) error {
		return &ConflictError{SnapshotID: id, Reason: fmt.Sprintf(format, args...)}
	}
	if now < w.base {
		return no(now, "snapshot %d that was read is gone", w.base)
	}
	buckets, err := schema.Options(sch.Options).Int("bucket", -1)
	postpones := err == nil && buckets == postponeBucket
	files := map[string]bool{}
	for _, f := range w.reads.Files {
		files[path.Base(f)] = true
	}
	for id := w.seen + 1; id <= now; id++ {
		s := latest
		if id != now {
			var err error
			if s, err = w.p.o.Snapshots.Get(ctx, id); errors.Is(err, snapshot.ErrNotFound) {
				return no(id, "snapshot %d has expired since, so what it changed is not known", id)
			} else if err != nil {
				return err
			}
		}
		quiet := Kind(s.CommitKind) == Compact || Kind(s.CommitKind) == Analyze
		if w.reads.All && !quiet {
			return no(id, "the table was changed")
		}
		// A compaction that puts postponed rows into buckets makes them visible.
		settles := quiet && postpones && Kind(s.CommitKind) == Compact
		if len(files) == 0 && !settles && (quiet || len(w.reads.Keys)+len(w.reads.Partitions) == 0) {
			continue
		}
		entries, err := w.p.Delta(ctx, s)
		if missing := (*fileio.MissingError)(nil); errors.As(err, &missing) {
			return no(id, "what snapshot %d changed is not known any more", id)
		} else if err != nil {
			return err
		}
		if settles && slices.ContainsFunc(entries, func(e *manifest.Entry) bool { return e.Bucket == postponeBucket }) {
			if w.reads.All {
				return no(id, "the table was changed")
			}
			quiet = false
		}
		if name := removed(entries, files); name != "" {
			return no(id, "file %s that was read was rewritten", name)
		}
		if !quiet {
			for _, e := range entries {
				if w.reads.Partitions[partitionKey(e.Partition)] {
					return no(id, "a partition that was read was changed")
				}
			}
			if err := w.keys(ctx, sch, s, entries); err != nil {
				return err
			}
		}
	}
	if len(files) > 0 && w.seen < now {
		if err := w.vectors(ctx, latest, files); err != nil {
			return err
		}
	}
	w.seen = now
	return nil
}

// removed returns a file of files that entries remove; one that only changes its
// level is not.
func removed(entries []*manifest.Entry, files map[string]bool) string {
	if len(files) == 0 {
		return ""
	}
	gone := map[string]bool{}
	for _, e := range entries {
		if e.Kind == manifest.Delete && files[e.File.Name] {
			gone[e.File.Name] = true
		}
	}
	for _, e := range entries {
		if e.Kind == manifest.Add {
			delete(gone, e.File.Name)
		}
	}
	for name := range gone {
		return name
	}
	return ""
}

// keys looks for the keys that were read among those that a snapshot wrote or,
// if it is an overwrite, took away.
func (w *readCheck) keys(ctx context.Context, sch *schema.Table, s *snapshot.Snapshot, entries []*manifest.Entry) error {
	if len(w.reads.Keys) == 0 {
		return nil
	}
	overwrite := Kind(s.CommitKind) == Overwrite
	parts := map[string]int32{}
	w.anywhere = w.anywhere[:0]
	for b := range w.reads.Keys {
		if strings.HasPrefix(b.Partition, AnyPartition) {
			w.anywhere = append(w.anywhere, b)
		} else {
			parts[partitionKey([]byte(b.Partition))] = 0
		}
	}
	for _, e := range entries {
		n, ok := parts[string(e.Partition)]
		if !ok && len(w.anywhere) == 0 {
			continue
		}
		// With another number of buckets a key lives in another one.
		if e.TotalBuckets > 0 {
			if n > 0 && n != e.TotalBuckets {
				return &ConflictError{SnapshotID: s.ID, Reason: "a partition was given another number of buckets"}
			}
			parts[string(e.Partition)] = e.TotalBuckets
		}
		if e.Kind == manifest.Delete && !overwrite {
			continue
		}
		lists := w.lists(e)
		if len(lists) == 0 {
			continue
		}
		lo, err := w.p.o.Files.Key(sch, e.File.MinKey)
		if err != nil {
			return err
		}
		hi, err := w.p.o.Files.Key(sch, e.File.MaxKey)
		if err != nil {
			return err
		}
		for _, keys := range lists {
			from, _ := slices.BinarySearchFunc(keys, lo, bytes.Compare)
			to, found := slices.BinarySearchFunc(keys, hi, bytes.Compare)
			if found {
				to++
			}
			if from >= to {
				continue
			}
			hit, err := w.p.o.Files.Holds(ctx, sch, e, keys[from:to])
			if missing := (*fileio.MissingError)(nil); errors.As(err, &missing) {
				hit, err = true, nil // it was removed since; what it held is not known
			}
			if err != nil {
				return err
			}
			if hit {
				return &ConflictError{SnapshotID: s.ID, Reason: "a row that was read was changed"}
			}
		}
	}
	return nil
}

// lists are the keys that were read and that may be in a file.
func (w *readCheck) lists(e *manifest.Entry) (out [][][]byte) {
	parts := []string{string(e.Partition)}
	if len(e.Partition) == 8 {
		parts = append(parts, "")
	}
	for _, p := range parts {
		for _, b := range []int32{e.Bucket, AnyBucket} {
			if keys := w.reads.Keys[BucketID{p, b}]; len(keys) > 0 {
				out = append(out, keys)
			}
		}
	}
	for _, b := range w.anywhere {
		out = append(out, w.reads.Keys[b])
	}
	return out
}

// vectors compares the deletion vectors of the files that were read with those of
// base. Vectors only grow, so that one of the same cardinality is the same.
func (w *readCheck) vectors(ctx context.Context, latest *snapshot.Snapshot, files map[string]bool) error {
	before := ""
	if w.base > 0 {
		s, err := w.p.o.Snapshots.Get(ctx, w.base)
		if errors.Is(err, snapshot.ErrNotFound) {
			return &ConflictError{SnapshotID: latest.ID, Reason: fmt.Sprintf("snapshot %d that was read has expired", w.base)}
		}
		if err != nil {
			return err
		}
		before = s.IndexManifest
	}
	if before == latest.IndexManifest {
		return nil
	}
	was, err := w.vectorsOf(ctx, before, files)
	if err != nil {
		return err
	}
	is, err := w.vectorsOf(ctx, latest.IndexManifest, files)
	if err != nil {
		return err
	}
	for f := range files {
		a, b := was[f], is[f]
		if a == b || a.Cardinality > 0 && a.Cardinality == b.Cardinality {
			continue
		}
		return &ConflictError{SnapshotID: latest.ID, Reason: fmt.Sprintf("rows of file %s that was read were deleted", f)}
	}
	return nil
}

// vectorAt is one deletion vector; the zero value is none.
type vectorAt struct {
	index string
	manifest.DeletionVectorMeta
}

func (w *readCheck) vectorsOf(ctx context.Context, index string, files map[string]bool) (map[string]vectorAt, error) {
	out := map[string]vectorAt{}
	if index == "" {
		return out, nil
	}
	entries, err := w.p.o.Manifests.Index(ctx, w.p.o.IO, w.p.o.Dir+"/manifest/"+index)
	if err != nil {
		return nil, err
	}
	for i := range entries {
		for _, v := range entries[i].DVs {
			if files[v.DataFile] {
				out[v.DataFile] = vectorAt{entries[i].Name, v}
			}
		}
	}
	return out, nil
}
