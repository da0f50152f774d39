// Package commit publishes snapshots.
package commit

import (
	"context"
	"fmt"

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
type Changes struct {
	Kind       Kind
	User       string // a fresh UUID per commit or job, as Java's batch writers
	Identifier int64  // exactly-once = User + Identifier + Kind; batch: MaxInt64
	Base       int64  // snapshot the changes were computed from
	Files      []manifest.Entry
	Changelog  []manifest.Entry
	Indexes    []manifest.IndexEntry // deletion vectors, hash index
	Reads      *ReadSet              // keys or files read before writing; nil = blind
	Statistics string                // statistics file of an Analyze
	Watermark  *int64
	Properties map[string]string
}

// ReadSet is what a statement read before it wrote: a newer snapshot that
// touched one of these is a conflict.
type ReadSet struct {
	// Keys by partition and bucket: the encoded keys, ascending.
	Keys  map[BucketID][][]byte
	Files []string // data files read and rewritten (append tables)
}

// BucketID names one bucket of one partition.
type BucketID struct {
	Partition string // BinaryRow image
	Bucket    int32
}

// Committer publishes Changes as the next snapshot; a true conflict is a
// *ConflictError.
type Committer interface {
	Commit(ctx context.Context, c Changes) (snapshotID int64, err error)
}

// ConflictError says which check failed. It is final: the caller reads again.
type ConflictError struct {
	SnapshotID int64 // the newer snapshot
	Reason     string
}

func (e *ConflictError) Error() string {
	return fmt.Sprintf("commit conflicts with snapshot %d: %s", e.SnapshotID, e.Reason)
}
