package table

import (
	"context"
	"path"
	"slices"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/index/dv"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/compact"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
)

// vector is the deletion vector of a data file and the index file that it is in.
type vector struct {
	entry *manifest.IndexEntry
	meta  manifest.DeletionVectorMeta
}

// vectorsOf returns the deletion vectors of some buckets, nil = all, by data
// file.
func (t *FileStore) vectorsOf(ctx context.Context, st *state, in map[commit.BucketID]bool) (map[string]vector, error) {
	if st.snap == nil || st.snap.IndexManifest == "" {
		return nil, nil
	}
	es, err := t.env.Manifests.Index(ctx, t.env.IO, t.dir+"/manifest/"+st.snap.IndexManifest)
	if err != nil {
		return nil, err
	}
	out := map[string]vector{}
	for i := range es {
		e := &es[i]
		if e.Type != "DELETION_VECTORS" || e.Kind != manifest.Add {
			continue
		}
		if in != nil && !in[commit.BucketID{Partition: string(e.Partition), Bucket: e.Bucket}] {
			continue
		}
		for _, v := range e.DVs {
			out[v.DataFile] = vector{e, v}
		}
	}
	return out, nil
}

// appendFiles says of each file what picking wants to know.
func appendFiles(files []*manifest.DataFile, dvs map[string]vector) []compact.AppendFile {
	out := make([]compact.AppendFile, len(files))
	for i, f := range files {
		out[i].File = f
		if v, ok := dvs[f.Name]; ok {
			out[i].Index, out[i].Deleted = v.entry.Name, v.meta.Cardinality
			if v.meta.Cardinality == 0 {
				out[i].Deleted = -1
			}
		}
	}
	return out
}

// orderedBuckets reports whether an append table has fixed buckets, whose rows
// keep their order.
func (st *state) orderedBuckets() bool {
	n, err := st.options.Int("bucket", -1)
	return err == nil && n > 0
}

// pickAppend picks packs of one bucket of an append table.
func pickAppend(files []compact.AppendFile, o *compact.Options, st *state, full bool) [][]compact.AppendFile {
	if st.orderedBuckets() {
		if pack := compact.PickOrdered(files, o, full); len(pack) > 0 {
			return [][]compact.AppendFile{pack}
		}
		return nil
	}
	return compact.PickAppend(files, o, full)
}

// dropVectors returns the changes of index files that take the vectors of
// rewritten files away. What else is in those index files moves to a new one,
// whose path is appended to made.
func (c *compaction) dropVectors(ctx context.Context, j *job, made *[]string) ([]manifest.IndexEntry, error) {
	gone := map[string]bool{}
	var files []*manifest.IndexEntry
	for _, f := range j.pack {
		v, ok := c.dvs[f.File.Name]
		if !ok {
			continue
		}
		gone[f.File.Name] = true
		if !slices.Contains(files, v.entry) {
			files = append(files, v.entry)
		}
	}
	if len(files) == 0 {
		return nil, nil
	}
	wide := c.p.options.Flag("deletion-vectors.bitmap64", false)
	var out []manifest.IndexEntry
	var build dv.File
	var left []manifest.DeletionVectorMeta
	for _, e := range files {
		if e.ExternalPath != "" {
			return nil, &fileio.UnsupportedError{Feature: "rewriting index files at external paths"}
		}
		d := *e
		d.Kind = manifest.Delete
		out = append(out, d)
		for _, m := range e.DVs {
			if gone[m.DataFile] {
				continue
			}
			v, err := c.t.env.vector(ctx, &manifest.DeletionVectorRef{Path: c.refs[m.DataFile].Path, DeletionVectorMeta: m})
			if err != nil {
				return nil, err
			}
			n := manifest.DeletionVectorMeta{DataFile: m.DataFile, Cardinality: v.Cardinality()}
			if n.Offset, n.Length, err = build.Append(v, wide); err != nil {
				return nil, err
			}
			left = append(left, n)
		}
	}
	if len(left) == 0 {
		return out, nil
	}
	e := *files[0]
	e.Kind, e.Name, e.DVs, e.Rows = manifest.Add, "index-"+uuid.NewString()+"-0", left, int64(len(left))
	e.Size = int64(len(build.Bytes()))
	dir := path.Dir(c.refs[files[0].DVs[0].DataFile].Path)
	w, err := c.t.env.IO.Create(ctx, dir+"/"+e.Name)
	if err != nil {
		return nil, err
	}
	if _, err := w.Write(build.Bytes()); err != nil {
		_ = w.Abort() // nothing is left
		return nil, err
	}
	if err := w.Close(); err != nil {
		return nil, err
	}
	*made = append(*made, dir+"/"+e.Name)
	return append(out, e), nil
}
