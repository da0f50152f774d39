package table

import (
	"context"
	"maps"
	"slices"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// Deletion vectors of primary-key tables come of compactions alone: one that takes
// level 0 up finds the older version of a key in a higher level and marks its row.
// A bucket has one index file with the vectors of all its files, which is replaced
// whole (BucketedDvMaintainer.java):
//
//	old index file - vectors of files that were rewritten + new marks -> new one
//
// The commit names the file that it replaces and the data files that the new one
// speaks of. Whoever changed the bucket's vectors meanwhile, or removed one of those
// files, wins (commit.combine, commit.ReadSet.Files).

// bucketVectors writes the index file of a job's bucket, if its vectors change.
func (c *compaction) bucketVectors(ctx context.Context, j *job, out *outcome) error {
	gone := map[string]bool{}
	for i := range out.files {
		if e := &out.files[i]; e.Kind == manifest.Delete {
			gone[e.File.Name] = true
		}
	}
	for i := range out.files {
		if e := &out.files[i]; e.Kind == manifest.Add {
			delete(gone, e.File.Name) // moved
		}
	}
	rows := map[string]*dv.Vector{}
	var old []*manifest.IndexEntry
	changed := len(out.marks) > 0
	for _, name := range j.files {
		v, ok := c.dvs[name]
		if ok && !slices.Contains(old, v.entry) {
			old = append(old, v.entry)
		}
		if gone[name] {
			changed = changed || ok
			continue
		}
		mark := out.marks[name]
		if !ok && mark == nil {
			continue
		}
		var all *dv.Vector
		if ok {
			var err error
			if all, err = c.t.env.vector(ctx, c.refs[name]); err != nil {
				return err
			}
		}
		if mark != nil {
			if all == nil {
				all = mark
			} else {
				all = all.Clone()
				mark.Each(func(pos int64) bool { all.Add(pos); return true })
			}
		}
		rows[name] = all
	}
	if !changed {
		return nil
	}
	// The files whose vectors these are must be there, with no newer ones.
	out.live = slices.AppendSeq(out.live, maps.Keys(rows))
	for _, e := range old {
		if e.ExternalPath != "" {
			return &fileio.UnsupportedError{Feature: "rewriting index files at external paths"}
		}
		d := *e
		d.Kind = manifest.Delete
		out.indexes = append(out.indexes, d)
	}
	if len(rows) == 0 {
		return nil
	}
	wide, err := c.p.options.Bool("deletion-vectors.bitmap64", false)
	if err != nil {
		return err
	}
	var file dv.File
	e := manifest.IndexEntry{
		Kind: manifest.Add, Partition: j.like.Partition, Bucket: j.id.Bucket, Type: "DELETION_VECTORS",
		Name: "index-" + uuid.NewString() + "-0", Rows: int64(len(rows)),
	}
	for _, name := range slices.Sorted(maps.Keys(rows)) {
		m := manifest.DeletionVectorMeta{DataFile: name, Cardinality: rows[name].Cardinality()}
		if m.Offset, m.Length, err = file.Append(rows[name], wide); err != nil {
			return err
		}
		e.DVs = append(e.DVs, m)
	}
	e.Size = int64(len(file.Bytes()))
	at := indexPath(c.p, j.part, j.id.Bucket, e.Name)
	if err := create(ctx, c.t.env.IO, at, file.Bytes()); err != nil {
		return err
	}
	out.made = append(out.made, at)
	out.indexes = append(out.indexes, e)
	return nil
}
