package catalog

import (
	"context"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// Watch tells with two or three looks at a local file system whether what a name
// was resolved to is still what it means: the newest state of the same table under
// the same schema, whichever process changes it. Resolving again costs ten times as
// much. Immutable and safe for concurrent use.
//
//	<warehouse>/<earlier>.db             must not exist: schemas searched before
//	<warehouse>/<db>.db/<table>/schema   the same directory, not modified
//	   .../snapshot                      the same directory, not modified; or else
//	   .../snapshot/snapshot-<N+1>       must not exist, and
//	   .../snapshot/snapshot-<N>         is the file that was read
//
// A directory's time of modification says that nothing was added to it, taken out or
// renamed in it, once it has not been touched for a while (fileio.Settled).
type Watch struct {
	absent []string
	schema dirMark

	snapshots    dirMark // zero: it was not settled, and the files are looked at
	next, newest string
	file         os.FileInfo // of newest
	made         time.Time
}

// settles is how old a watch of files may get: by then a look at the directory may
// do.
const settles = 3 * time.Second

// dirMark is a directory as it was.
type dirMark struct {
	path string
	info os.FileInfo
}

func markOf(path string, now time.Time) (dirMark, bool) {
	st, err := os.Stat(path)
	if err != nil || !st.IsDir() || !fileio.Settled(st.ModTime(), now) {
		return dirMark{}, false
	}
	return dirMark{path, st}, true
}

func (d *dirMark) same() bool {
	st, err := os.Stat(d.path)
	return err == nil && st.ModTime().Equal(d.info.ModTime()) && os.SameFile(st, d.info)
}

// ResolveWatched resolves the newest state of the table name of sqlSchema, which is
// searched after the schemas earlier, and watches it. It returns nil when there can be
// no watch: an earlier schema exists, the name is not spelt just so, the warehouse is
// not on a local disk, the table has no snapshot or has just been made or altered.
func (c *Filesystem) ResolveWatched(ctx context.Context, earlier []string, sqlSchema, name string, o ResolveOptions) (Relation, *Watch, error) {
	for range 3 {
		// Looked at before resolving, so that what changes meanwhile is seen.
		w := c.watch(earlier, sqlSchema, name, o)
		if w == nil {
			return nil, nil, nil
		}
		rel, err := c.Resolve(ctx, sqlSchema, name, o)
		if err != nil {
			return nil, nil, err
		}
		t, ok := rel.(*TableRelation)
		if !ok || t.store.Dir() != DatabaseDir(DatabaseOf(sqlSchema))+"/"+name || t.at.Kind != snapshot.ID || t.at.Snap == nil {
			return nil, nil, nil
		}
		if w.snapshots.info != nil {
			return rel, w, nil
		}
		dir := filepath.Join(filepath.Dir(w.schema.path), "snapshot", "snapshot-")
		w.newest, w.next = dir+strconv.FormatInt(t.at.ID, 10), dir+strconv.FormatInt(t.at.ID+1, 10)
		if w.file, err = os.Stat(w.newest); err != nil {
			continue
		}
		// The file may have taken the place of the one that was read.
		again, err := c.Resolve(ctx, sqlSchema, name, o)
		if a, ok := again.(*TableRelation); err == nil && ok && a.store == t.store && a.at.Snap == t.at.Snap && a.sch == t.sch {
			return again, w, nil
		}
	}
	return nil, nil, nil
}

func (c *Filesystem) watch(earlier []string, sqlSchema, name string, o ResolveOptions) *Watch {
	local, ok := c.env.IO.(*fileio.Local)
	if !ok || o.At != (snapshot.Ref{}) || len(o.Dynamic) > 0 || o.Overlay != nil || strings.Contains(name, "$") || !validName(name) || !validName(sqlSchema) {
		return nil
	}
	now := time.Now()
	w := &Watch{made: now}
	for _, s := range earlier {
		dir := filepath.Join(local.Root(), DatabaseDir(DatabaseOf(s)))
		if _, err := os.Stat(dir); !validName(s) || !errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		w.absent = append(w.absent, dir)
	}
	dir := filepath.Join(local.Root(), DatabaseDir(DatabaseOf(sqlSchema)), name)
	if w.schema, ok = markOf(filepath.Join(dir, "schema"), now); !ok {
		return nil
	}
	w.snapshots, _ = markOf(filepath.Join(dir, "snapshot"), now)
	return w
}

// Current reports whether nothing has changed.
func (w *Watch) Current() bool {
	for _, p := range w.absent {
		if _, err := os.Stat(p); !errors.Is(err, fs.ErrNotExist) {
			return false
		}
	}
	if !w.schema.same() {
		return false
	}
	if w.snapshots.info != nil {
		return w.snapshots.same()
	}
	if time.Since(w.made) > settles {
		return false
	}
	if _, err := os.Stat(w.next); !errors.Is(err, fs.ErrNotExist) {
		return false
	}
	st, err := os.Stat(w.newest)
	return err == nil && st.Size() == w.file.Size() && st.ModTime().Equal(w.file.ModTime()) && os.SameFile(st, w.file)
}
