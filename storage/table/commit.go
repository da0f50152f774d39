package table

import (
	"bytes"
	"context"
	"encoding/binary"
	"fmt"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/format"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/mergetree"
	"github.com/paimon-sql/paimon-sql/storage/schema"
)

// Commit publishes c as the next snapshot of its branch; see commit.Committer.
func (t *FileStore) Commit(ctx context.Context, c commit.Changes) (int64, error) {
	c, err := t.upgradeOverwritten(ctx, c)
	if err != nil {
		return 0, err
	}
	return t.branch(c.Branch).publisher.Commit(ctx, c)
}

// CheckReads reports a *commit.ConflictError when a snapshot after base touched
// what was read.
func (t *FileStore) CheckReads(ctx context.Context, branch string, base int64, r *commit.ReadSet) (int64, error) {
	return t.branch(branch).publisher.CheckReads(ctx, base, r)
}

func (t *FileStore) newPublisher(b *branch) *commit.Publisher {
	return commit.NewPublisher(commit.Options{
		IO: t.env.IO, Dir: t.dir, Schemas: b.schemas, Snapshots: b.snapshots, Manifests: t.env.Manifests, Files: commitFiles{t, b},
	})
}

// commitFiles tells the committer where a table's files are and what keys they
// hold.
type commitFiles struct {
	t *FileStore
	b *branch
}

// DataPaths returns the paths of a data file and of its side files, which lie
// beside it.
func (f commitFiles) DataPaths(s *schema.Table, e *manifest.Entry) ([]string, error) {
	dir, err := f.t.bucketPath(s, e.Partition, e.Bucket)
	if err != nil {
		return nil, fmt.Errorf("file %s: %w", e.File.Name, err)
	}
	return dataPaths(dir, e.File), nil
}

// dataPaths returns the paths of a file and of its side files in a bucket's
// directory.
func dataPaths(dir string, m *manifest.DataFile) []string {
	path := dir + "/" + m.Name
	if m.ExternalPath != "" {
		path = m.ExternalPath
		dir = path[:max(0, bytes.LastIndexByte([]byte(path), '/'))]
	}
	paths := []string{path}
	for _, x := range m.ExtraFiles {
		paths = append(paths, dir+"/"+x)
	}
	return paths
}

// bucketPath returns the directory of a bucket relative to the warehouse; see
// places for many buckets.
func (t *FileStore) bucketPath(s *schema.Table, partition []byte, bucket int32) (string, error) {
	p, err := t.newPlaces(s)
	if err != nil {
		return "", err
	}
	return p.dir(partition, bucket)
}

// IndexPath returns the path of an index file.
func (f commitFiles) IndexPath(s *schema.Table, e *manifest.IndexEntry) (string, error) {
	switch {
	case e.ExternalPath != "":
		return e.ExternalPath, nil
	case schema.Options(s.Options).Flag("index-file-in-data-file-dir", false):
		dir, err := f.t.bucketPath(s, e.Partition, e.Bucket)
		return dir + "/" + e.Name, err
	}
	return f.t.dir + "/index/" + e.Name, nil
}

// keyTypes returns the positions and types of the columns that files are sorted
// by.
func keyTypes(s *schema.Table) (cols []int, ts []types.Type, err error) {
	if cols, err = columnsOf(s, s.TrimmedKey()); err != nil {
		return nil, nil, err
	}
	for _, c := range cols {
		ts = append(ts, s.Fields[c].Type)
	}
	return cols, ts, nil
}

// Key returns the byte form of a key image.
func (f commitFiles) Key(s *schema.Table, image []byte) ([]byte, error) {
	_, ts, err := keyTypes(s)
	if err != nil {
		return nil, err
	}
	vals, err := binrow.Decode(image, ts)
	if err != nil {
		return nil, err
	}
	return mergetree.NewKeyCodec(ts).Append(nil, vals), nil
}

// keyWindow is how many rows of a file are compared with the keys at a time.
const keyWindow = 8192

// Holds reports whether a data file holds one of keys, which ascend. The file is
// sorted, so both are walked in step.
func (f commitFiles) Holds(ctx context.Context, s *schema.Table, e *manifest.Entry, keys [][]byte) (bool, error) {
	cols, ts, err := keyTypes(s)
	if err != nil {
		return false, err
	}
	dir, err := f.t.bucketPath(s, e.Partition, e.Bucket)
	if err != nil {
		return false, err
	}
	codec := mergetree.NewKeyCodec(ts)
	r := &readPlan{t: f.t, st: &state{branch: f.b, schema: s, options: s.Options}, keyed: true, keyCols: cols, codec: codec}
	o, err := r.open(ctx, dir, &File{Meta: e.File})
	if err != nil {
		return false, err
	}
	defer r.close(o)
	rd, err := o.columns(ctx, format.RowRange{From: 0, To: e.File.Rows}, cols)
	if err != nil {
		return false, err
	}
	defer rd.Close() //nolint:errcheck // reading
	var win mergetree.Keys
	for row := int64(0); row < e.File.Rows && len(keys) > 0; row += keyWindow {
		n := int(min(keyWindow, e.File.Rows-row))
		arrs, err := rd.Read(ctx, n, nil)
		if err != nil {
			return false, err
		}
		codec.Fill(&win, arrs, n)
		if win.Len() != n {
			return false, &fileio.CorruptionError{Path: o.path, Offset: -1, Reason: "key columns are short"}
		}
		var hit bool
		if keys, hit = walkKeys(codec, &win, keys); hit {
			return true, nil
		}
	}
	return false, nil
}

// walkKeys looks for keys among those of a window; rest are the keys above it.
func walkKeys(codec *mergetree.KeyCodec, win *mergetree.Keys, keys [][]byte) (rest [][]byte, hit bool) {
	var buf [16]byte
	at := func(i int) []byte {
		switch codec.Form() {
		case mergetree.WordAndBytes:
			return win.At(i)
		case mergetree.TwoWords:
			binary.BigEndian.PutUint64(buf[8:], win.Lo[i])
		}
		binary.BigEndian.PutUint64(buf[:], win.Hi[i])
		return buf[:min(len(keys[0]), 16)] // all keys of a fixed-width form are as long
	}
	n := win.Len()
	for i := 0; i < n && len(keys) > 0; {
		// Most keys are far apart: find the first row that is not below the next.
		lo, step := i, 1
		for lo+step < n && bytes.Compare(at(lo+step), keys[0]) < 0 {
			lo += step
			step *= 2
		}
		hi := min(n, lo+step+1)
		for lo < hi {
			mid := int(uint(lo+hi) >> 1)
			if bytes.Compare(at(mid), keys[0]) < 0 {
				lo = mid + 1
			} else {
				hi = mid
			}
		}
		if i = lo; i == n {
			break
		}
		c := bytes.Compare(at(i), keys[0])
		if c == 0 {
			return keys, true
		}
		// The row is above the key: go on with the first key that is not below it.
		row := bytes.Clone(at(i))
		for len(keys) > 0 && bytes.Compare(keys[0], row) < 0 {
			keys = keys[1:]
		}
		if len(keys) > 0 && bytes.Equal(keys[0], row) {
			return keys, true
		}
	}
	return keys, false
}
