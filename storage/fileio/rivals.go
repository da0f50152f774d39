package fileio

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/google/uuid"
)

// Java's local file system publishes by writing ".{name}.{UUID}.tmp", looking
// whether name is free, and renaming, which replaces whatever came in between
// (Java: FileIO.tryToWriteAtomic, LocalFileIO.rename; pypaimon does likewise). So a
// writer that has its temporary file there may still put it over a name that was
// linked since. Nobody can keep it from that, but it can be waited for: before the
// link, so that it goes first, and after it, so that a writer who came in between is
// noticed before anything is acknowledged.

// rivalPatience is how long a temporary file of another writer is waited for. One
// that stays longer belongs to a process that is gone.
const rivalPatience = 10 * time.Second

// tempVersion is the UUID version in the temporary names of our own processes, which
// publish by link and need no waiting for. Java's and Python's are of version 4.
const tempVersion = 7

// tempName returns a temporary name beside target.
func tempName(target string) string {
	return filepath.Join(filepath.Dir(target), "."+filepath.Base(target)+"."+uuid.Must(uuid.NewV7()).String()+".tmp")
}

// rivalOf returns the name that another writer's temporary file is about to get.
func rivalOf(temp string) (name string, ok bool) {
	const tail = len(".00000000-0000-0000-0000-000000000000.tmp")
	rest, tmp := strings.CutSuffix(temp, ".tmp")
	if !tmp || len(temp) < tail+2 || temp[0] != '.' || temp[len(temp)-tail] != '.' {
		return "", false
	}
	id, err := uuid.Parse(rest[len(rest)-36:])
	if err != nil || id.Version() == tempVersion {
		return "", false
	}
	return temp[1 : len(temp)-tail], true
}

// rivals waits for other writers on behalf of a Local.
type rivals struct {
	patience time.Duration
	waiting  func() // for tests: called when there is somebody to wait for
}

// wait returns when no other writer is about to publish path, when patience or ctx
// ends at the latest.
func (r *rivals) wait(ctx context.Context, path string) {
	dir, name := filepath.Dir(path), filepath.Base(path)
	if len(watch.pending(dir, name, r.patience)) == 0 {
		return
	}
	if r.waiting != nil {
		r.waiting()
	}
	end := time.NewTimer(r.patience)
	defer end.Stop()
	look := time.NewTicker(time.Millisecond)
	defer look.Stop()
	for {
		temps := watch.pending(dir, name, r.patience)
		if len(temps) == 0 {
			return
		}
		select {
		case <-ctx.Done():
			return
		case <-end.C:
			watch.forsake(dir, temps)
			return
		case <-look.C:
		}
	}
}

// listRivals returns the temporary files of other writers in dir that are not older
// than patience, each with the name that it is for.
func listRivals(dir string, patience time.Duration) map[string]string {
	d, err := os.Open(dir)
	if err != nil {
		return nil
	}
	defer func() { _ = d.Close() }()
	names, _ := d.Readdirnames(-1) // what cannot be listed is not waited for
	var out map[string]string
	for _, n := range names {
		name, ok := rivalOf(n)
		if !ok {
			continue
		}
		if st, err := os.Lstat(filepath.Join(dir, n)); err != nil || time.Since(st.ModTime()) > patience {
			continue
		}
		if out == nil {
			out = map[string]string{}
		}
		out[n] = name
	}
	return out
}
