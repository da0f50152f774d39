package catalog

import (
	"context"
	"testing"

	"github.com/paimon-sql/paimon-sql/storage/fileio"
)

// A writer that has not noticed that a table is gone leaves files under its old
// name: they do not take the name. Snapshots do.
func TestRenameToRemains(t *testing.T) {
	warehouses(t, func(t *testing.T, c *Filesystem) {
		ctx := context.Background()
		if err := c.CreateTable(ctx, "public", "a", definition()); err != nil {
			t.Fatal(err)
		}
		put := func(path string) {
			t.Helper()
			if err := c.env.IO.PutIfAbsent(ctx, path, []byte("x")); err != nil {
				t.Fatal(err)
			}
		}
		put("default.db/b/bucket-0/data-0.parquet")
		put("default.db/b/manifest/manifest-0")
		if err := c.RenameTable(ctx, "public", "a", "public", "b"); err != nil {
			t.Fatal(err)
		}
		tables(t, c, "public", "b")
		if _, err := c.env.IO.Stat(ctx, "default.db/b/bucket-0/data-0.parquet"); err == nil {
			t.Error("what was left of the old table is part of the new one")
		}
		garbage(t, c)
		put("default.db/d/snapshot/snapshot-1")
		want(t, c.RenameTable(ctx, "public", "b", "public", "d"), ErrRelationExists)
		if _, err := c.env.IO.Stat(ctx, "default.db/d/snapshot/snapshot-1"); err != nil {
			t.Error(err)
		}
	})
}

// stealingIO takes the directory of a table away before its schema is put there,
// and lets somebody else make a table of the name.
type stealingIO struct {
	fileio.FileIO
	steal func()
}

func (s *stealingIO) PutIfAbsent(ctx context.Context, p string, data []byte) error {
	if f := s.steal; f != nil && p == "default.db/t/schema/schema-0" {
		s.steal = nil
		f()
		return &fileio.PathError{Op: "put", Path: p, Err: fileio.ErrNotExist}
	}
	return s.FileIO.PutIfAbsent(ctx, p, data)
}

// A table that another process makes while ours is taken away stays.
func TestCreateLosesDirectory(t *testing.T) {
	ctx := context.Background()
	io := &stealingIO{FileIO: fileio.NewMem()}
	c, other := newWarehouse(t, io), newWarehouse(t, io.FileIO)
	io.steal = func() {
		if err := other.CreateTable(ctx, "public", "t", definition("id")); err != nil {
			t.Error(err)
		}
	}
	want(t, c.CreateTable(ctx, "public", "t", definition()), ErrChanged)
	tables(t, other, "public", "t")
}
