// Package commit publishes snapshots.
package commit

import (
	"bytes"
	"context"
	"fmt"
	"maps"
	"slices"

	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// Kind is a snapshot's commitKind.
type Kind string

// The commit kinds.
const (
	Append    Kind = "APPEND"
	Overwrite Kind = "OVERWRITE"
	Compact   Kind = "COMPACT"
	Analyze   Kind = "ANALYZE"
)

// Changes is everything one commit adds to and removes from a table.
//
// Files of a commit with Kind Append or Overwrite are its data snapshot; what a
// writer compacted in the same commit goes into a Changes of its own with Kind
// Compact, published as the snapshot after it.
type Changes struct {
	Kind       Kind
	Branch     string // "" = main
	User       string // "" = a fresh UUID, as Java's batch writers
	Identifier int64  // exactly-once = User + Identifier + Kind; batch: MaxInt64
	Base       int64  // snapshot the changes were computed from; 0 = the empty table
	Files      []manifest.Entry
	Changelog  []manifest.Entry
	Indexes    []manifest.IndexEntry // deletion vectors
	// Hashes are those of the keys written to buckets of a table with dynamic buckets,
	// ones that are committed already included, no duplicates. Each attempt makes the
	// buckets' HASH index files of them and of what the newest snapshot has; a hash
	// that has another bucket there is a conflict.
	Hashes map[BucketID][]int32
	// Placed says when it was looked up in which partitions the keys of Files are, in
	// a table whose key does not say it. A key that was touched since, in whatever
	// partition, is a conflict.
	Placed     *Placed
	Reads      *ReadSet     // keys or files read before writing; nil = blind
	Overwrite  *Replacement // INSERT OVERWRITE, TRUNCATE, DROP PARTITION
	Statistics string       // statistics file of an Analyze
	Watermark  *int64
	Properties map[string]string
	// Operation is what the snapshot's operation member says, e.g. "INSERT".
	Operation string
	// Force publishes a snapshot although there is nothing to publish.
	Force bool
	// Manifests rewrites every manifest that is small or holds removals, whatever the
	// options say about when that is worth it.
	Manifests bool
}

// Empty reports whether there is nothing to publish.
func (c *Changes) Empty() bool {
	return len(c.Files) == 0 && len(c.Changelog) == 0 && len(c.Indexes) == 0 && c.Overwrite == nil && c.Statistics == "" && !c.Force
}

// Replacement says which partitions' files go when the commit's own come. The
// DELETE entries are computed at each attempt from the newest snapshot, so files
// that others added meanwhile go too (Java: FileStoreCommitImpl.overwritePartition).
type Replacement struct {
	// Dynamic: the partitions that the commit adds files to; none added, nothing
	// happens.
	Dynamic bool
	// Partitions are BinaryRow images of whole partitions; nil with Dynamic unset =
	// every partition of the table.
	Partitions [][]byte
	// KeepPostponed leaves the rows of bucket-postpone where they are.
	KeepPostponed bool
}

// ReadSet is what a statement read before it wrote: a newer snapshot that
// touched one of these is a conflict. Snapshots of kind COMPACT and ANALYZE
// touch no key.
type ReadSet struct {
	// Keys by partition and bucket: memcmp-ordered images of the trimmed primary
	// key (mergetree.KeyCodec), ascending, no duplicates. Keys that were looked for
	// and not found count too.
	Keys map[BucketID][][]byte
	// Files are the data files read and rewritten (append tables): one that has
	// been removed since, or given another deletion vector, is a conflict.
	Files []string
	// Partitions are images of partitions that were read whole: any newer snapshot
	// that is not COMPACT or ANALYZE and has files of one is a conflict.
	Partitions map[string]bool
	// All: any newer snapshot that is not COMPACT or ANALYZE is a conflict.
	All bool
}

// BucketID names one bucket of one partition.
type BucketID struct {
	Partition string // BinaryRow image
	Bucket    int32
}

// Placed is the state in which the places of keys were looked up.
type Placed struct {
	At int64 // snapshot; 0 = the empty table
}

// Where it is not known, or does not matter, which bucket a key is in, a ReadSet
// names it under AnyBucket of its partition. Where it may be in any partition,
// too, Partition begins with AnyPartition, which no image does; what follows tells
// equal keys of different rows apart.
const (
	AnyBucket    = -1
	AnyPartition = "*"
)

// Committer publishes Changes as the next snapshot.
type Committer interface {
	// Commit returns the id of the snapshot that holds c, which is durable then,
	// with every file that it names. A true conflict is a *ConflictError: nothing
	// was published, the new data files are still there (the caller deletes them,
	// or rebases and tries again). An *UnknownOutcomeError says that the reply was
	// lost and the snapshot could not be found or excluded. Empty changes publish
	// nothing and return the newest id.
	Commit(ctx context.Context, c Changes) (snapshotID int64, err error)
	// CheckReads reports a *ConflictError when a snapshot after base touched what
	// was read. It returns the newest snapshot's id.
	CheckReads(ctx context.Context, branch string, base int64, r *ReadSet) (latest int64, err error)
}

// UnknownOutcomeError says that it is not known whether a commit was published.
type UnknownOutcomeError struct {
	SnapshotID int64 // the id that it would have
	Err        error
}

func (e *UnknownOutcomeError) Error() string {
	return fmt.Sprintf("outcome of the commit of snapshot %d is unknown: %v", e.SnapshotID, e.Err)
}

// Unwrap returns the cause.
func (e *UnknownOutcomeError) Unwrap() error { return e.Err }

// Merge lays d, made after c in the same transaction, over c. A file that c
// added and d deletes is in neither: it is returned in dropped, to be deleted
// once nobody reads it. What d overwrites takes c's files of those partitions
// away too.
func Merge(c, d Changes) (out Changes, dropped []manifest.Entry) {
	if c.Empty() && c.Reads == nil {
		return d, nil
	}
	out = c
	if out.Kind == "" {
		out.Kind = d.Kind
	}
	if d.Kind == Overwrite {
		out.Kind = Overwrite
	}
	if out.Operation != d.Operation {
		out.Operation = "" // several statements are no one operation
	}
	late, kept := cancel(c.Files, d.Files)
	indexes := c.Indexes
	if d.Overwrite != nil {
		parts, all := replacedBy(d.Overwrite, d.Files)
		gone := func(image []byte) bool { return all || parts[partitionKey(image)] }
		indexes = nil
		kept = slices.DeleteFunc(kept, func(e manifest.Entry) bool { return gone(e.Partition) })
		for _, e := range c.Indexes {
			if !gone(e.Partition) {
				indexes = append(indexes, e)
			}
		}
		out.Overwrite = union(c.Overwrite, &Replacement{Partitions: keysOf(parts, all)}, c.Files)
	}
	out.Files = append(kept, late...)
	stays := map[string]bool{} // names that are still used, or were before c
	for _, e := range out.Files {
		stays[e.File.Name] = true
	}
	for _, e := range c.Files {
		if e.Kind == manifest.Delete {
			stays[e.File.Name] = true
		}
	}
	for _, e := range c.Files {
		if e.Kind == manifest.Add && !stays[e.File.Name] {
			stays[e.File.Name] = true
			dropped = append(dropped, e)
		}
	}
	hashes := c.Hashes
	if d.Overwrite != nil {
		parts, all := replacedBy(d.Overwrite, d.Files)
		hashes = map[BucketID][]int32{}
		for b, h := range c.Hashes {
			if !all && !parts[partitionKey([]byte(b.Partition))] {
				hashes[b] = h
			}
		}
	}
	out.Hashes = mergeHashes(hashes, d.Hashes)
	if d.Placed != nil && (c.Placed == nil || d.Placed.At < c.Placed.At) {
		out.Placed = d.Placed
	}
	out.Changelog = append(append([]manifest.Entry(nil), c.Changelog...), d.Changelog...)
	if out.Overwrite != nil { // it is committed without a changelog
		dropped, out.Changelog = append(dropped, out.Changelog...), nil
	}
	out.Indexes = mergeIndexes(indexes, d.Indexes)
	out.Reads = c.Reads.union(d.Reads)
	out.Force = c.Force || d.Force
	if d.Statistics != "" {
		out.Statistics = d.Statistics
	}
	return out, dropped
}

// cancel returns what is left of two lists of changes when what the first adds
// and the second deletes is taken out of both.
func cancel(first, second []manifest.Entry) (late, kept []manifest.Entry) {
	added := map[manifest.Identity]int{}
	for i := range first {
		if first[i].Kind == manifest.Add {
			added[first[i].Identity()] = i
		}
	}
	gone := map[int]bool{}
	for i := range second {
		if second[i].Kind == manifest.Delete {
			if at, ok := added[second[i].Identity()]; ok && !gone[at] {
				gone[at] = true
				continue
			}
		}
		late = append(late, second[i])
	}
	kept = make([]manifest.Entry, 0, len(first)+len(second))
	for i := range first {
		if !gone[i] {
			kept = append(kept, first[i])
		}
	}
	return late, kept
}

// union is the replacement of what a or b replaces; b names its partitions, those
// of a dynamic a are those of its files.
func union(a, b *Replacement, files []manifest.Entry) *Replacement {
	if a == nil || b.Partitions == nil {
		return b
	}
	parts, all := replacedBy(a, files)
	if all {
		return &Replacement{}
	}
	for _, p := range b.Partitions {
		parts[partitionKey(p)] = true
	}
	return &Replacement{Partitions: keysOf(parts, false)}
}

// keysOf returns partition images in order; nil = all.
func keysOf(parts map[string]bool, all bool) [][]byte {
	if all {
		return nil
	}
	out := make([][]byte, 0, len(parts))
	for p := range parts {
		out = append(out, []byte(p))
	}
	slices.SortFunc(out, bytes.Compare)
	return out
}

// ConflictError says which check failed. It is final: the caller reads again.
type ConflictError struct {
	SnapshotID int64 // the newer snapshot
	Reason     string
	// Sequence: only the sequence numbers are in the way: numbered anew (Table.Fold)
	// the same changes can be published.
	Sequence bool
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("commit conflicts with snapshot %d: %s", e.SnapshotID, e.Reason)
}

func mergeIndexes(c, d []manifest.IndexEntry) []manifest.IndexEntry {
	added := map[string]int{}
	for i, e := range c {
		if e.Kind == manifest.Add {
			added[e.Name] = i
		}
	}
	gone := map[int]bool{}
	var late []manifest.IndexEntry
	for _, e := range d {
		if i, ok := added[e.Name]; ok && e.Kind == manifest.Delete {
			gone[i] = true
			continue
		}
		late = append(late, e)
	}
	var out []manifest.IndexEntry
	for i, e := range c {
		if !gone[i] {
			out = append(out, e)
		}
	}
	return append(out, late...)
}

// mergeHashes joins the hashes of two lists of changes.
func mergeHashes(c, d map[BucketID][]int32) map[BucketID][]int32 {
	switch {
	case len(c) == 0:
		return d
	case len(d) == 0:
		return c
	}
	out := maps.Clone(c)
	for b, h := range d {
		l := slices.Concat(out[b], h)
		slices.Sort(l)
		out[b] = slices.Compact(l)
	}
	return out
}

// union joins two read sets; nil is the empty one.
func (r *ReadSet) union(s *ReadSet) *ReadSet {
	switch {
	case r == nil:
		return s
	case s == nil:
		return r
	}
	out := &ReadSet{Keys: map[BucketID][][]byte{}, All: r.All || s.All}
	for _, x := range []*ReadSet{r, s} {
		for p := range x.Partitions {
			if out.Partitions == nil {
				out.Partitions = map[string]bool{}
			}
			out.Partitions[p] = true
		}
		for b, keys := range x.Keys {
			out.Keys[b] = append(out.Keys[b], keys...)
		}
		out.Files = append(out.Files, x.Files...)
	}
	for b, keys := range out.Keys {
		slices.SortFunc(keys, bytes.Compare)
		out.Keys[b] = slices.CompactFunc(keys, bytes.Equal)
	}
	slices.Sort(out.Files)
	out.Files = slices.Compact(out.Files)
	return out
}
