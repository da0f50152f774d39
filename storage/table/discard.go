package table

import (
	"context"
	"errors"
	"slices"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/binrow"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/manifest"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// places finds the directories of buckets by their manifest entries.
type places struct {
	t     *FileStore
	st    *state // schema and options only
	types []types.Type
	paths map[string]string // of partitions, by their images
}

func (t *FileStore) newPlaces(s *schema.Table) (*places, error) {
	cols, err := columnsOf(s, s.PartitionKeys)
	if err != nil {
		return nil, err
	}
	p := &places{t: t, st: &state{schema: s, options: s.Options}, paths: map[string]string{}}
	for _, c := range cols {
		p.types = append(p.types, s.Fields[c].Type)
	}
	return p, nil
}

// dir returns a bucket's directory relative to the warehouse.
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
	return p.t.dir + "/" + p.st.bucketPath(path, bucket), nil
}

// Discard deletes what c adds and that was never committed. See Table.
func (t *FileStore) Discard(ctx context.Context, c commit.Changes) error {
	st, err := t.state(ctx, snapshot.Ref{Branch: c.Branch}, nil)
	if err != nil {
		return err
	}
	t.forgetHashes(st.branch, c.Hashes)
	p, err := t.newPlaces(st.schema)
	if err != nil {
		return err
	}
	// A file that goes from one level to another, or that gets other indexes, is
	// deleted and added under one name: it is the table's, and so are the side files
	// that it has had.
	kept := map[string][]string{}
	for i := range c.Files {
		if c.Files[i].Kind == manifest.Delete {
			kept[c.Files[i].File.Name] = c.Files[i].File.ExtraFiles
		}
	}
	var names []string
	var errs []error
	for _, list := range [][]manifest.Entry{c.Files, c.Changelog} {
		for i := range list {
			e := &list[i]
			if e.Kind != manifest.Add {
				continue
			}
			dir, err := p.dir(e.Partition, e.Bucket)
			if err != nil {
				errs = append(errs, err)
				continue
			}
			paths := dataPaths(dir, e.File)
			sides, stays := kept[e.File.Name]
			if !stays {
				names = append(names, paths...)
				continue
			}
			for k, x := range e.File.ExtraFiles {
				if !slices.Contains(sides, x) {
					names = append(names, paths[1+k])
				}
			}
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
			names = append(names, dir+"/"+e.Name)
		default:
			names = append(names, t.dir+"/index/"+e.Name)
		}
	}
	if len(names) > 0 {
		errs = append(errs, t.env.IO.Delete(ctx, names...))
	}
	return errors.Join(errs...)
}

// publish commits c once wait, which may be nil, has let it (see
// CompactOptions.Publish). Files of what was not published are deleted.
func (t *FileStore) publish(ctx context.Context, c commit.Changes, wait func(ctx context.Context) (done func(), err error)) (int64, error) {
	drop := func(err error) (int64, error) {
		return 0, errors.Join(err, t.Discard(context.WithoutCancel(ctx), c))
	}
	if wait != nil {
		done, err := wait(ctx)
		if err != nil {
			return drop(err)
		}
		defer done()
	}
	id, err := t.Commit(ctx, c)
	var unknown *commit.UnknownOutcomeError
	if err != nil && !errors.As(err, &unknown) {
		return drop(err)
	}
	return id, err
}
