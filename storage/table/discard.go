package table

import (
	"context"
	"errors"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// places finds the directories of files by their manifest entries.
type places struct {
	t     *FileStore
	st    *state
	types []types.Type
	paths map[string]string // by partition image
}

func (t *FileStore) newPlaces(st *state) (*places, error) {
	cols, err := columnsOf(st.schema, st.schema.PartitionKeys)
	if err != nil {
		return nil, err
	}
	p := &places{t: t, st: st, paths: map[string]string{}}
	for _, c := range cols {
		p.types = append(p.types, st.schema.Fields[c].Type)
	}
	return p, nil
}

// dir returns a bucket's directory with a slash at the end.
func (p *places) dir(image []byte, bucket int32) (string, error) {
	path, ok := p.paths[string(image)]
	if !ok {
		vals, err := binrow.Decode(image, p.types)
		if err != nil {
			return "", err
		}
		if path, err = PartitionPath(p.st.schema.PartitionKeys, p.types, vals, p.st.options); err != nil {
			return "", err
		}
		p.paths[string(image)] = path
	}
	return p.t.dir + "/" + p.st.bucketPath(path, bucket) + "/", nil
}

// files returns the paths of a data file and what lies beside it.
func (p *places) files(e *manifest.Entry) ([]string, error) {
	dir, err := p.dir(e.Partition, e.Bucket)
	if err != nil {
		return nil, err
	}
	at := dir + e.File.Name
	if e.File.ExternalPath != "" {
		at = e.File.ExternalPath
		dir = at[:len(at)-len(e.File.Name)]
	}
	out := []string{at}
	for _, x := range e.File.ExtraFiles {
		out = append(out, dir+x)
	}
	return out, nil
}

// Discard deletes what c adds and that was never committed. See Table.
func (t *FileStore) Discard(ctx context.Context, c commit.Changes) error {
	st, err := t.state(ctx, snapshot.Ref{Branch: c.Branch}, nil)
	if err != nil {
		return err
	}
	p, err := t.newPlaces(st)
	if err != nil {
		return err
	}
	// A file that goes from one level to another is deleted and added under one
	// name: it is the table's.
	kept := map[string]bool{}
	for i := range c.Files {
		if c.Files[i].Kind == manifest.Delete {
			kept[c.Files[i].File.Name] = true
		}
	}
	var names []string
	var errs []error
	for _, list := range [][]manifest.Entry{c.Files, c.Changelog} {
		for i := range list {
			e := &list[i]
			if e.Kind != manifest.Add || kept[e.File.Name] {
				continue
			}
			fs, err := p.files(e)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			names = append(names, fs...)
		}
	}
	for _, e := range c.Indexes {
		if e.Kind != manifest.Add {
			continue
		}
		switch {
		case e.ExternalPath != "":
			names = append(names, e.ExternalPath)
		case st.options.Flag("index-file-in-data-file-dir", false):
			dir, err := p.dir(e.Partition, e.Bucket)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			names = append(names, dir+e.Name)
		default:
			names = append(names, t.dir+"/index/"+e.Name)
		}
	}
	if len(names) > 0 {
		errs = append(errs, t.env.IO.Delete(ctx, names...))
	}
	return errors.Join(errs...)
}
