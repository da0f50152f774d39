package fileio

import (
	"context"
	"errors"
	"fmt"
	"io"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"sync"

	"gocloud.dev/blob"
	"golang.org/x/sync/errgroup"
)

// Blob is a FileIO over a bucket of an object store, or over the keys of one that
// begin with a prefix.
//
// Publishing is a conditional PUT ("if no object has this key"), which the store
// decides: of many writers of one name, in any process, one wins. Stores that
// ignore the condition exist; the first publish of a Blob therefore tries it out
// and refuses to go on where it does not hold.
//
// Directories are prefixes that some key has. An object is durable when its PUT
// is answered, so there is nothing to sync.
type Blob struct {
	store  store
	prefix string // of every key; empty or ends with /
	scheme string // of absolute URIs that lead here; empty = none
	name   string // of the bucket
	// others opens further buckets of the scheme, with the same options.
	others func(ctx context.Context, name string) (store, error)

	mu     sync.Mutex       // guards opened
	opened map[string]store // other buckets, by name

	probe   sync.Mutex // guards the two below, and the probe
	probed  bool
	refused error // what the probe found
}

var _ FileIO = (*Blob)(nil)

// store is a bucket, and what its driver does in another way than all others.
type store struct {
	*blob.Bucket
	// remove deletes one key, absent or not; nil = Bucket.Delete. S3's driver asks
	// for the object first, which doubles the requests.
	remove func(ctx context.Context, key string) error
	// stopsByReader is set where an upload whose reader fails stores nothing and
	// leaves nothing behind; elsewhere its context has to end first.
	stopsByReader bool
}

// parallelRequests is how many objects of one call are copied or deleted at once.
const parallelRequests = 16

// NewBlob returns a FileIO over the keys of a bucket below prefix.
func NewBlob(b *blob.Bucket, prefix string) *Blob {
	return newBlob(store{Bucket: b}, prefix)
}

func newBlob(s store, prefix string) *Blob {
	prefix = strings.Trim(path.Clean("/"+prefix), "/")
	if prefix != "" {
		prefix += "/"
	}
	return &Blob{store: s, prefix: prefix, opened: map[string]store{}}
}

// schemeAlias joins the spellings that one store has in Paimon's tables.
func schemeAlias(s string) string {
	s = strings.ToLower(s)
	switch s {
	case "s3a", "s3n":
		return "s3"
	}
	return s
}

// resolve returns the bucket and key of a warehouse path or absolute URI. A
// directory's key has no slash at its end; the bucket's root is "".
func (b *Blob) resolve(ctx context.Context, p string) (store, string, error) {
	if scheme, rest, ok := splitScheme(p); ok {
		if b.scheme == "" || schemeAlias(scheme) != b.scheme {
			return store{}, "", &UnsupportedError{Feature: "file system scheme " + strings.ToLower(scheme)}
		}
		name, key, _ := strings.Cut(strings.TrimLeft(rest, "/"), "/")
		key = strings.TrimPrefix(path.Clean("/"+key), "/")
		if name == b.name {
			return b.store, key, nil
		}
		s, err := b.other(ctx, name)
		return s, key, err
	}
	if path.IsAbs(p) {
		return store{}, "", &UnsupportedError{Feature: "a local path in an object store's warehouse"}
	}
	c := path.Clean(p)
	if c == ".." || strings.HasPrefix(c, "../") {
		return store{}, "", &UnsupportedError{Feature: fmt.Sprintf("path %q, which leaves the warehouse,", p)}
	}
	if c == "." {
		return b.store, strings.TrimSuffix(b.prefix, "/"), nil
	}
	return b.store, b.prefix + c, nil
}

// other opens another bucket, once.
func (b *Blob) other(ctx context.Context, name string) (store, error) {
	if name == "" {
		return store{}, errors.New("the URI names no bucket")
	}
	b.mu.Lock()
	defer b.mu.Unlock()
	if s, ok := b.opened[name]; ok {
		return s, nil
	}
	s, err := b.others(ctx, name)
	if err != nil {
		return store{}, err
	}
	b.opened[name] = s
	return s, nil
}

// dirKey is the prefix of what lies in the directory with a key.
func dirKey(key string) string {
	if key == "" {
		return ""
	}
	return key + "/"
}

// List returns the entries directly in dir.
func (b *Blob) List(ctx context.Context, dir string) ([]Entry, error) {
	s, key, err := b.resolve(ctx, dir)
	if err != nil {
		return nil, err
	}
	prefix := dirKey(key)
	var out []Entry
	it := s.List(&blob.ListOptions{Prefix: prefix, Delimiter: "/"})
	for {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return nil, blobError(ctx, "list", dir, err)
		}
		name := strings.TrimSuffix(strings.TrimPrefix(o.Key, prefix), "/")
		if name == "" || strings.Contains(name, "/") {
			continue // the mark of the directory itself
		}
		out = append(out, Entry{Name: name, Size: o.Size, ModTime: o.ModTime, Dir: o.IsDir})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Name < out[j].Name })
	return out, nil
}

// What a name can be, as Paimon gives names.
const (
	aFile = iota + 1
	aDirectory
)

// kindOf says what a base name can only be; 0 = either. It saves a request for
// each look at the next snapshot, which is not there as a rule, and at a database.
func kindOf(base string) int {
	if strings.HasSuffix(base, ".db") {
		return aDirectory
	}
	switch base {
	case "schema", "snapshot", "manifest":
		return aDirectory
	case "LATEST", "EARLIEST":
		return aFile
	}
	for _, p := range []string{"snapshot-", "schema-"} {
		if n, ok := strings.CutPrefix(base, p); ok {
			if _, err := strconv.ParseUint(n, 10, 63); err == nil {
				return aFile
			}
		}
	}
	return 0
}

// Stat describes an object, or a directory: a prefix that some key has.
func (b *Blob) Stat(ctx context.Context, p string) (Entry, error) {
	s, key, err := b.resolve(ctx, p)
	if err != nil {
		return Entry{}, err
	}
	kind := kindOf(path.Base(key))
	if key != strings.TrimSuffix(b.prefix, "/") && key != "" && kind != aDirectory { // the root is no object
		a, err := s.Attributes(ctx, key)
		if err == nil {
			return Entry{Name: path.Base(p), Size: a.Size, ModTime: a.ModTime}, nil
		}
		if err = blobError(ctx, "stat", p, err); !errors.Is(err, ErrNotExist) || kind == aFile {
			return Entry{}, err
		}
	}
	page, _, err := s.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: dirKey(key)})
	if err != nil {
		return Entry{}, blobError(ctx, "stat", p, err)
	}
	if len(page) == 0 {
		return Entry{}, fmt.Errorf("stat %s: %w", p, ErrNotExist)
	}
	return Entry{Name: path.Base(p), Dir: true}, nil
}

// delete removes one object, absent or not.
func (s store) delete(ctx context.Context, key string) error {
	if s.remove != nil {
		return s.remove(ctx, key)
	}
	err := s.Delete(ctx, key)
	if isNotFound(err) {
		return nil
	}
	return err
}

// Delete removes objects, several at a time. It goes on after an error and returns
// the first.
func (b *Blob) Delete(ctx context.Context, paths ...string) error {
	var g errgroup.Group
	g.SetLimit(parallelRequests)
	for _, p := range paths {
		g.Go(func() error {
			s, key, err := b.resolve(ctx, p)
			if err != nil {
				return err
			}
			return blobError(ctx, "delete", p, s.delete(ctx, key))
		})
	}
	return g.Wait()
}

// Sync has nothing to do: an object is durable when its PUT is answered.
func (b *Blob) Sync(context.Context, ...string) error { return nil }

// object is one object below a directory.
type object struct {
	rel string // key without the directory's
	tag string // changes when the object does
}

// below lists every object below a directory.
func (s store) below(ctx context.Context, prefix string) ([]object, error) {
	var out []object
	it := s.List(&blob.ListOptions{Prefix: prefix})
	for {
		o, err := it.Next(ctx)
		if errors.Is(err, io.EOF) {
			return out, nil
		}
		if err != nil {
			return nil, err
		}
		out = append(out, object{strings.TrimPrefix(o.Key, prefix), fmt.Sprintf("%x %d %d", o.MD5, o.Size, o.ModTime.UnixNano())})
	}
}

// schemas splits objs into those below a schema directory, without which there is
// no table, and all others.
func schemas(objs []object) (rest, schema []object) {
	for _, o := range objs {
		if strings.HasPrefix(o.rel, "schema/") || strings.Contains(o.rel, "/schema/") {
			schema = append(schema, o)
		} else {
			rest = append(rest, o)
		}
	}
	return rest, schema
}

// each runs f on every object, several at a time, and stops at the first error.
func each(ctx context.Context, objs []object, f func(context.Context, string) error) error {
	g, gctx := errgroup.WithContext(ctx)
	g.SetLimit(parallelRequests)
	for _, o := range objs {
		g.Go(func() error { return f(gctx, o.rel) })
	}
	return g.Wait()
}

// DeleteDir removes every object below dir, the schemas of tables first: what has
// none is no table to any engine.
func (b *Blob) DeleteDir(ctx context.Context, dir string) error {
	s, key, err := b.resolve(ctx, dir)
	if err != nil {
		return err
	}
	prefix := dirKey(key)
	if strings.HasPrefix(b.prefix, prefix) {
		return fmt.Errorf("path %q is the warehouse itself", dir)
	}
	objs, err := s.below(ctx, prefix)
	if err != nil {
		return blobError(ctx, "delete", dir, err)
	}
	return blobError(ctx, "delete", dir, s.deleteAll(ctx, prefix, objs))
}

func (s store) deleteAll(ctx context.Context, prefix string, objs []object) error {
	rest, schema := schemas(objs)
	for _, part := range [][]object{schema, rest} {
		if err := each(ctx, part, func(ctx context.Context, rel string) error { return s.delete(ctx, prefix+rel) }); err != nil {
			return err
		}
	}
	return nil
}

// RenameDir copies every object below from, in the store, and deletes it then. It
// is not atomic, but no engine sees half a table: schemas are copied last and
// deleted first. What is written while it copies is copied too, up to the moment
// when the schemas are.
func (b *Blob) RenameDir(ctx context.Context, from, to string) error {
	s, key, err := b.resolve(ctx, from)
	if err != nil {
		return err
	}
	t, toKey, err := b.resolve(ctx, to)
	if err != nil {
		return err
	}
	if s.Bucket != t.Bucket {
		return &UnsupportedError{Feature: "renaming from one bucket to another"}
	}
	src, dst := dirKey(key), dirKey(toKey)
	if src == "" || dst == "" || strings.HasPrefix(dst, src) {
		return fmt.Errorf("rename %s to %s: a directory cannot be moved into itself", from, to)
	}
	taken, _, err := s.ListPage(ctx, blob.FirstPageToken, 1, &blob.ListOptions{Prefix: dst})
	if err != nil {
		return blobError(ctx, "rename", to, err)
	}
	if len(taken) > 0 {
		return fmt.Errorf("rename %s to %s: %w", from, to, ErrExist)
	}
	if ok, err := s.Exists(ctx, toKey); err != nil {
		return blobError(ctx, "rename", to, err)
	} else if ok {
		return fmt.Errorf("rename %s to %s: %w", from, to, ErrExist)
	}
	objs, err := s.copyAll(ctx, src, dst)
	if err != nil {
		undo, cancel := context.WithTimeout(context.WithoutCancel(ctx), putTimeout)
		defer cancel()
		if made, e := s.below(undo, dst); e == nil {
			_ = s.deleteAll(undo, dst, made) // what stays is an orphan
		}
		return blobError(ctx, "rename", from, err)
	}
	if len(objs) == 0 {
		return fmt.Errorf("rename %s: %w", from, ErrNotExist)
	}
	// From here on both names are whole; stopping now would leave two tables.
	return blobError(ctx, "rename", from, s.deleteAll(context.WithoutCancel(ctx), src, objs))
}

// copyRounds bounds how often copyAll looks for what came meanwhile.
const copyRounds = 5

// copyAll copies the objects below src and returns them.
func (s store) copyAll(ctx context.Context, src, dst string) ([]object, error) {
	copyOne := func(ctx context.Context, rel string) error {
		err := s.Copy(ctx, dst+rel, src+rel, nil)
		if isNotFound(err) {
			return nil // expired or rewritten since the list was made
		}
		return err
	}
	done := map[object]bool{}
	for round := 1; ; round++ {
		objs, err := s.below(ctx, src)
		if err != nil {
			return nil, err
		}
		rest, schema := schemas(objs)
		fresh := slices.DeleteFunc(slices.Clone(rest), func(o object) bool { return done[o] })
		if len(fresh) == 0 || round == copyRounds {
			return objs, errors.Join(each(ctx, fresh, copyOne), each(ctx, schema, copyOne))
		}
		if err := each(ctx, fresh, copyOne); err != nil {
			return nil, err
		}
		for _, o := range fresh {
			done[o] = true
		}
	}
}
