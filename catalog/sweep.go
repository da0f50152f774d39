package catalog

import (
	"context"
	"errors"
	"time"

	"github.com/google/uuid"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// How old things in the private directory are before they count as left behind by
// a process that is gone. Others may be at work in the same warehouse: who drops a
// table may have to put it back, for some seconds; who fills a table that is not
// committed yet may take long, but not as long without a new file.
const (
	trashAge  = time.Hour
	stagedAge = 24 * time.Hour
)

// privateName makes the name of a directory in the private one. It holds the time
// of its making, for Sweep: moving a directory does not change its own.
func privateName() string {
	id, err := uuid.NewV7()
	if err != nil {
		return uuid.NewString()
	}
	return id.String()
}

// madeAt is the time in a private name; the zero time when it has none.
func madeAt(name string) time.Time {
	id, err := uuid.Parse(name)
	if err != nil || id.Version() != 7 {
		return time.Time{}
	}
	return time.Unix(id.Time().UnixTime())
}

// Sweep deletes what processes that ended badly left of dropped tables, and of
// tables that were never made. It returns how many directories it deleted; what it
// cannot delete it leaves, and goes on.
func (c *Filesystem) Sweep(ctx context.Context, now time.Time) (int, error) {
	n := 0
	var failed error
	for _, d := range []struct {
		dir string
		age time.Duration
	}{{trashDir, trashAge}, {stagingDir, stagedAge}} {
		es, err := c.env.IO.List(ctx, d.dir)
		if err != nil {
			failed = errors.Join(failed, err)
			continue
		}
		for _, e := range es {
			path := d.dir + "/" + e.Name
			if !e.Dir || now.Sub(madeAt(e.Name)) < d.age {
				continue
			}
			if d.dir == stagingDir {
				// Somebody may still be writing.
				newest, err := c.newest(ctx, path)
				if err != nil || now.Sub(newest) < d.age {
					failed = errors.Join(failed, err)
					continue
				}
			}
			if err := c.env.IO.DeleteDir(ctx, path); err != nil {
				failed = errors.Join(failed, err)
				continue
			}
			n++
		}
	}
	return n, failed
}

// newest returns the latest time at which something in a directory was written.
func (c *Filesystem) newest(ctx context.Context, dir string) (time.Time, error) {
	es, err := c.env.IO.List(ctx, dir)
	if errors.Is(err, fileio.ErrNotExist) {
		return time.Time{}, nil
	}
	if err != nil {
		return time.Time{}, err
	}
	var out time.Time
	for _, e := range es {
		t := e.ModTime
		if e.Dir {
			sub, err := c.newest(ctx, dir+"/"+e.Name)
			if err != nil {
				return out, err
			}
			if sub.After(t) {
				t = sub
			}
		}
		if t.After(out) {
			out = t
		}
	}
	return out, nil
}
