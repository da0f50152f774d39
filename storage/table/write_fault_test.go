package table

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"

	"github.com/paimon-sql/paimon-sql/internal/types"
	"github.com/paimon-sql/paimon-sql/storage/commit"
	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// tree lists every file below a directory.
func tree(t testing.TB, io fileio.FileIO, dir string) (out []string) {
	es, err := io.List(context.Background(), dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range es {
		if e.Dir {
			out = append(out, tree(t, io, dir+"/"+e.Name)...)
		} else {
			out = append(out, dir+"/"+e.Name)
		}
	}
	return out
}

// TestWriteFaults fails a writer at each of its file system calls: the error
// comes out, the writer is of no more use, and Abort leaves no file behind.
func TestWriteFaults(t *testing.T) {
	ctx := context.Background()
	disk := errors.New("disk is broken")
	for _, c := range []struct {
		name string
		pk   []string
		opts map[string]string
	}{
		{"append", nil, map[string]string{"target-file-size": "1 b"}},
		{"vectors", nil, map[string]string{"deletion-vectors.enabled": "true"}},
		{"key", []string{"a"}, map[string]string{"bucket": "3", "write-buffer-size": "2 kb"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			w := newWritten(t, tableSchema(t, c.opts, c.pk, "a BIGINT", "b STRING"))
			var rows [][]types.Datum
			for i := range 20 {
				rows = append(rows, []types.Datum{int64(i), fmt.Sprint("x", i)})
			}
			w.write(rows, nil)
			w.publish()
			var victim string
			if c.pk == nil {
				for at := range w.positions() {
					victim = at[:len(at)-len("#0")]
					if at[len(at)-2] != '#' {
						victim = at[:len(at)-len("#00")]
					}
					break
				}
			}
			before := tree(t, w.io, "db.db")
			for n := 1; ; n++ {
				f := fileio.NewFault(w.io)
				f.Add(fileio.Rule{Op: "store", Nth: n, Err: disk})
				env := NewEnv(f, EnvOptions{})
				store := Open(env, w.store.Dir())
				wr, err := store.Write(ctx, WriteOptions{})
				if err != nil {
					t.Fatal(err)
				}
				work := func() error {
					for range 3 {
						if err := wr.Write(ctx, w.batch(rows), nil); err != nil {
							return err
						}
					}
					if victim != "" {
						if err := wr.Delete(ctx, victim, []int64{0}); err != nil {
							return err
						}
					}
					_, err := wr.Prepare(ctx)
					return err
				}
				err = work()
				hit := f.Hits() > 0
				if hit && !errors.Is(err, disk) || !hit && err != nil {
					t.Fatalf("call %d: hit %v: %v", n, hit, err)
				}
				if hit {
					if _, err := wr.Prepare(ctx); err == nil {
						t.Errorf("call %d: a broken writer prepares", n)
					}
				}
				if err := wr.Abort(ctx); err != nil {
					t.Errorf("call %d: %v", n, err)
				}
				if after := tree(t, w.io, "db.db"); !slices.Equal(after, before) {
					t.Fatalf("call %d leaves %d files, there were %d", n, len(after), len(before))
				}
				env.Close()
				if !hit {
					if n < 5 {
						t.Errorf("only %d calls", n)
					}
					break
				}
			}
		})
	}
}

// TestFoldFaults fails Fold at each of its calls: the changes stay as they are,
// and their files are all there is.
func TestFoldFaults(t *testing.T) {
	ctx := context.Background()
	disk := errors.New("disk is broken")
	w := newWritten(t, tableSchema(t, map[string]string{"bucket": "2"}, []string{"a"}, "a BIGINT", "b STRING"))
	for i := range 3 {
		w.write([][]types.Datum{{int64(i), "x"}, {int64(i + 10), "y"}, {int64(i + 20), "z"}}, nil)
	}
	before := tree(t, w.io, "db.db")
	for n := 1; ; n++ {
		f := fileio.NewFault(w.io)
		f.Add(fileio.Rule{Op: "store", Nth: n, Err: disk})
		env := NewEnv(f, EnvOptions{})
		store := Open(env, w.store.Dir())
		out, dropped, err := store.Fold(ctx, w.over, w.ref(), nil)
		hit := f.Hits() > 0
		if hit != errors.Is(err, disk) {
			t.Fatalf("call %d: hit %v: %v", n, hit, err)
		}
		if hit {
			if len(out.Files) != len(w.over.Files) || len(dropped) != 0 {
				t.Errorf("call %d: %d files, %d dropped", n, len(out.Files), len(dropped))
			}
			if after := tree(t, w.io, "db.db"); !slices.Equal(after, before) {
				t.Fatalf("call %d leaves %d files, there were %d", n, len(after), len(before))
			}
		} else {
			if len(out.Files) != 2 || len(dropped) != len(w.over.Files) {
				t.Errorf("%d files, %d dropped", len(out.Files), len(dropped))
			}
			if err := store.Discard(ctx, commit.Changes{Files: dropped}); err != nil {
				t.Fatal(err)
			}
			w.over = out
			wantRows(t, w.scan([]int{0}), []string{"0", "1", "2", "10", "11", "12", "20", "21", "22"})
			env.Close()
			return
		}
		env.Close()
	}
}
