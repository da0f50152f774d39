package table

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"math/rand/v2"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/testkit/random"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
	"github.com/paimon-sql/paimon-sql/storage/schema"
	"github.com/paimon-sql/paimon-sql/storage/snapshot"
)

// loadMem copies a table of testdata into memory.
func loadMem(t testing.TB, table string) (*fileio.Mem, []string) {
	m := fileio.NewMem()
	var files []string
	root := filepath.Join("testdata", "warehouse")
	err := filepath.WalkDir(filepath.Join(root, table), func(p string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		raw, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		rel, err := filepath.Rel(root, p)
		if err != nil {
			return err
		}
		files = append(files, filepath.ToSlash(rel))
		return m.Put(context.Background(), filepath.ToSlash(rel), raw)
	})
	if err != nil || len(files) == 0 {
		t.Fatal(err, files)
	}
	return m, files
}

// typed reports whether an error says what is wrong with which file.
func typed(err error) bool {
	var c *fileio.CorruptionError
	var m *fileio.MissingError
	var u *fileio.UnsupportedError
	switch {
	case errors.As(err, &c):
		return c.Path != ""
	case errors.As(err, &m):
		return m.Path != ""
	case errors.As(err, &u):
		return u.Feature != ""
	}
	return errors.Is(err, snapshot.ErrNotFound) || errors.Is(err, schema.ErrNotFound)
}

// TestDamage flips and cuts bytes of every kind of file: the read gives rows or a
// typed error that names a file, and never panics.
func TestDamage(t *testing.T) {
	seed := random.Seed(t)
	r := rand.New(rand.NewPCG(seed, 8))
	outcomes := map[string]int{}
	for _, table := range []string{"dv.db/pk", "merge.db/seq2", "evo.db/nested", "append.db/unaware_small"} {
		m, files := loadMem(t, table)
		for range 50 {
			f := files[r.IntN(len(files))]
			good, _ := m.ReadFile(context.Background(), f)
			bad := slices.Clone(good)
			switch r.IntN(3) {
			case 0:
				bad = bad[:r.IntN(len(bad)+1)]
			case 1:
				for range 1 + r.IntN(3) {
					bad[r.IntN(len(bad))] ^= 1 << r.IntN(8)
				}
			case 2:
				bad[r.IntN(len(bad))] = byte(r.IntN(256))
			}
			if err := m.Put(context.Background(), f, bad); err != nil {
				t.Fatal(err)
			}
			env := NewEnv(m, EnvOptions{})
			tb := Open(env, table)
			for _, at := range []snapshot.Ref{{}, {Kind: snapshot.ID, ID: 1}} {
				_, _, err := readAll(context.Background(), tb, Scan{At: at, Limit: -1}, ReadOptions{})
				switch {
				case err == nil:
					outcomes["rows"]++
				case typed(err):
					outcomes["typed error"]++
				default:
					t.Errorf("%s damaged: untyped error %v", f, err)
				}
			}
			env.Close()
			if err := m.Put(context.Background(), f, good); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Log(outcomes)
}

// TestMissing deletes each file that the latest snapshot needs: the error names it.
func TestMissing(t *testing.T) {
	for _, table := range []string{"dv.db/pk", "append.db/unaware_small"} {
		m, files := loadMem(t, table)
		named := 0
		for _, f := range files {
			base := path.Base(f)
			if strings.HasPrefix(base, "snapshot-") || base == "LATEST" || base == "EARLIEST" {
				continue
			}
			good, _ := m.ReadFile(context.Background(), f)
			_ = m.Delete(context.Background(), f)
			env := NewEnv(m, EnvOptions{})
			_, _, err := readAll(context.Background(), Open(env, table), Scan{Limit: -1}, ReadOptions{})
			env.Close()
			var me *fileio.MissingError
			switch {
			case errors.As(err, &me):
				if me.Path != f || !strings.Contains(err.Error(), f) {
					t.Errorf("%s is gone: %v", f, err)
				}
				named++
			case err != nil && !errors.Is(err, schema.ErrNotFound):
				t.Errorf("%s is gone: %v", f, err)
			}
			_ = m.Put(context.Background(), f, good)
		}
		if named == 0 {
			t.Errorf("%s: no missing file was noticed", table)
		}
	}
}

// TestExpired: what another process expired is named with what can be read.
func TestExpired(t *testing.T) {
	m, files := loadMem(t, "dv.db/pk")
	ctx := context.Background()
	env := NewEnv(m, EnvOptions{})
	defer env.Close()
	tb := Open(env, "dv.db/pk")
	plan, err := tb.Plan(ctx, Scan{Limit: -1})
	if err != nil {
		t.Fatal(err)
	}
	latest, err := tb.Snapshots("").LatestID(ctx)
	if err != nil || latest < 2 {
		t.Fatal(latest, err)
	}
	if err := m.Delete(ctx, tb.Snapshots("").Path(1), "dv.db/pk/snapshot/EARLIEST"); err != nil {
		t.Fatal(err)
	}
	var nf *snapshot.NotFoundError
	if _, err := tb.Plan(ctx, Scan{At: snapshot.Ref{Kind: snapshot.ID, ID: 1}}); !errors.As(err, &nf) || !nf.Expired || nf.Earliest != 2 || nf.Latest != latest {
		t.Errorf("an expired snapshot: %v", err)
	}
	// The snapshot of a plan goes, and its files with it.
	for _, f := range files {
		if strings.Contains(f, "/bucket-") || strings.Contains(f, "/snapshot/") {
			_ = m.Delete(ctx, f)
		}
	}
	for _, sp := range plan.Splits {
		rd, err := tb.Read(ctx, Scan{Limit: -1}, sp, ReadOptions{})
		if err == nil {
			_, err = rd.Next(ctx)
			_ = rd.Close()
		}
		var me *fileio.MissingError
		if !errors.Is(err, snapshot.ErrNotFound) || !errors.As(err, &me) {
			t.Errorf("files of an expired plan: %v", err)
		}
	}
}

// TestRolledBack: a resolved state stays what it was although its id is given
// anew, and is gone, not corrupt, when its files are.
func TestRolledBack(t *testing.T) {
	const dir = "dv.db/pk"
	ctx := context.Background()
	m, _ := loadMem(t, dir)
	env := NewEnv(m, EnvOptions{})
	defer env.Close()
	tb := Open(env, dir)
	at, err := tb.Resolve(ctx, snapshot.Ref{})
	if err != nil || at.ID < 2 {
		t.Fatal(at, err)
	}
	read := func(at snapshot.Ref) []string {
		rows, _, err := readAll(ctx, tb, Scan{At: at, Limit: -1}, ReadOptions{})
		if err != nil {
			t.Fatal(err)
		}
		return rows
	}
	want := read(at)
	// Snapshot 1 comes again under the last id, as a commit after a rollback.
	old, err := m.ReadFile(ctx, dir+"/snapshot/snapshot-1")
	if err != nil {
		t.Fatal(err)
	}
	again := strings.Replace(string(old), `"id" : 1,`, fmt.Sprintf(`"id" : %d,`, at.ID), 1)
	if err := m.Put(ctx, tb.Snapshots("").Path(at.ID), []byte(again)); err != nil {
		t.Fatal(err)
	}
	if got := read(at); !slices.Equal(got, want) {
		t.Errorf("the pinned state reads %v, want %v", got, want)
	}
	now, err := tb.Resolve(ctx, snapshot.Ref{})
	if err != nil || now.ID != at.ID || now == at || slices.Equal(read(now), want) {
		t.Errorf("resolving again finds the state before: %v, %v", now, err)
	}
	// Its files are deleted with it.
	if err := m.Delete(ctx, dir+"/manifest/"+at.Snap.DeltaManifestList); err != nil {
		t.Fatal(err)
	}
	env2 := NewEnv(m, EnvOptions{})
	defer env2.Close()
	var nf *snapshot.NotFoundError
	if _, err := Open(env2, dir).Plan(ctx, Scan{At: at, Limit: -1}); !errors.As(err, &nf) || !nf.Expired {
		t.Errorf("files of a state that was rolled back: %v", err)
	}
}

// TestFaults: errors of the file system come through as they are.
func TestFaults(t *testing.T) {
	m, _ := loadMem(t, "dv.db/pk")
	boom := errors.New("device is gone")
	f := fileio.NewFault(m)
	for _, rule := range []fileio.Rule{
		{Op: "read", Path: "manifest-list", Err: boom}, {Op: "read", Path: "/manifest-", Nth: 2, Err: boom}, {Op: "read", Path: "snapshot-", Err: boom},
		{Op: "open", Path: ".parquet", Err: boom}, {Op: "readat", Path: ".parquet", Nth: 1, Err: boom}, {Op: "list", Path: "schema", Err: boom},
	} {
		f.Clear()
		f.Add(rule)
		env := NewEnv(f, EnvOptions{})
		_, _, err := readAll(context.Background(), Open(env, "dv.db/pk"), Scan{Limit: -1}, ReadOptions{})
		env.Close()
		if !errors.Is(err, boom) {
			t.Errorf("%+v: %v", rule, err)
		}
	}
}

// TestBeingExpired: expiry deletes a snapshot's files before the snapshot. Who
// meets a missing file in between is told that the snapshot has expired.
func TestBeingExpired(t *testing.T) {
	const dir = "dv.db/pk"
	ctx := context.Background()
	m, _ := loadMem(t, dir)
	env := NewEnv(m, EnvOptions{})
	defer env.Close()
	tb := Open(env, dir)
	at, err := tb.Resolve(ctx, snapshot.Ref{Kind: snapshot.ID, ID: 1})
	if err != nil {
		t.Fatal(err)
	}
	if err := m.Delete(ctx, dir+"/manifest/"+at.Snap.DeltaManifestList, dir+"/manifest/"+at.Snap.BaseManifestList); err != nil {
		t.Fatal(err)
	}
	done := make(chan error)
	go func() {
		_, err := tb.Plan(ctx, Scan{At: at, Limit: -1})
		done <- err
	}()
	if err := m.Delete(ctx, tb.Snapshots("").Path(1), dir+"/snapshot/EARLIEST"); err != nil {
		t.Fatal(err)
	}
	var nf *snapshot.NotFoundError
	if err := <-done; !errors.As(err, &nf) || !nf.Expired {
		t.Errorf("a snapshot that is being expired: %v", err)
	}
}
